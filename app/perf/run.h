/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/run.h
 * A session of client and server (perf/run.c), and the client's measurements in it.
 */
#ifndef APP_PERF_RUN_H
#define APP_PERF_RUN_H

#include "perf/flow.h"

struct perf_session {
	const struct perf_options *opts;
	struct peer peer;
	struct perf_raw *raw;
	struct perf_meter *meter;
	uint64_t idle_peak;
	uint64_t next_id;
	uint64_t wrong;
};

/**
 * Client: one run at both ends, with the figures in s->meter. @return APP_OK or an exit code
 * @param[in,out] run     gets an id and, with a deadline, the number of iterations executed
 * @param[in,out] side    this end of @p run; gets `wrong`
 * @param[out]    remote  figures of the server; but flood_late_ns is of this end
 */
int perf_measure(struct perf_session *s, struct perf_run *run, struct perf_side *side,
		 struct perf_remote *remote);

/** @param proto  "" = the library's choice */
void perf_force_put(struct perf_run *run, const char *proto);

/* The EAL is up. @return exit code */
int perf_client(const struct perf_options *opts);
int perf_server(const struct perf_options *opts);

#endif /* APP_PERF_RUN_H */
