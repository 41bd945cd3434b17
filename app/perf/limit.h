/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/limit.h
 * How long a run goes on: a number of iterations, or until a deadline.
 *
 * With a deadline both ends know a *total* of iterations that come for certain. While the run is
 * open the client raises the total, about 10 ms of work at a time, before its end is reached, and
 * informs the server (OOB_MORE). At the deadline the client closes the run: what was announced
 * still happens, and nothing more. So the run ends within some 10 ms of work after the deadline,
 * at the rate that it had before, and the receivers of both ends were posted in time.
 *
 * The server of a stream reports twelve times a second what has arrived (OOB_SEEN): lines per
 * second count that.
 */
#ifndef APP_PERF_LIMIT_H
#define APP_PERF_LIMIT_H

#include "perf/perf.h"

/** Both ends, before the first iteration, when the clock starts. */
void perf_limit_begin(struct perf_side *side);

/** The total rises by N iterations each time: of runs that go in rounds. */
void perf_limit_rounds(struct perf_side *side, uint64_t length);

/**
 * Raise the total, or take what the client has announced. Does not wait.
 * @param done  iterations begun here (a receiver's: that have come)
 * @return 0, or -ECANCELED when the run is over (the peer has the exit code)
 */
int perf_limit_look(struct perf_side *side, uint64_t done);

/** Server: report what has arrived, when it is time. @return as above */
int perf_limit_report(struct perf_side *side, uint64_t received);

/** Client: take what the server has reported, into side->seen. @return as above */
int perf_limit_seen(struct perf_side *side);

/** Is it time to look? */
static inline bool perf_limit_near(const struct perf_side *side, uint64_t done)
{
	return side->open && done + side->margin >= side->total;
}

#endif /* APP_PERF_LIMIT_H */
