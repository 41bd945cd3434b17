/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/limit.h
 * The length of a run: a number of iterations, or a deadline.
 *
 * With a deadline, both ends have a *total* of iterations that will be executed. While the run is
 * open, the client raises the total before it is reached, by about 10 ms of work at a time, and
 * sends it to the server (OOB_MORE). At the deadline the client closes the run: both ends execute
 * the announced iterations and no more. So the run ends within about 10 ms of work after the
 * deadline, at the rate that it had before, and both ends have posted their receives in time.
 *
 * The server of a stream reports the number of received messages twelve times a second (OOB_SEEN),
 * which the lines per second print.
 */
#ifndef APP_PERF_LIMIT_H
#define APP_PERF_LIMIT_H

#include "perf/perf.h"

/** Both ends call it before the first iteration, when the clock starts. */
void perf_limit_begin(struct perf_side *side);

/** For runs in rounds: the total rises by N iterations each time. */
void perf_limit_rounds(struct perf_side *side, uint64_t length);

/**
 * Client: raise the total. Server: take a total that the client has announced. Does not wait.
 * @param done  iterations begun here (at a receiver: received)
 * @return 0, or -ECANCELED when the run is over (the peer has the exit code)
 */
int perf_limit_look(struct perf_side *side, uint64_t done);

/** Server: report the number of received messages, if a report is due. @return as above */
int perf_limit_report(struct perf_side *side, uint64_t received);

/** Client: take reports of the server, into side->seen. @return as above */
int perf_limit_seen(struct perf_side *side);

/** Is @p done so close to the total that perf_limit_look() is due? */
static inline bool perf_limit_near(const struct perf_side *side, uint64_t done)
{
	return side->open && done + side->margin >= side->total;
}

#endif /* APP_PERF_LIMIT_H */
