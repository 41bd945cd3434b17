/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/session.h
 * Shared by the parts of the client: one session with a server (perf/run.c), and its measurements.
 */
#ifndef APP_PERF_SESSION_H
#define APP_PERF_SESSION_H

#include "perf/perf.h"
#include "perf/raw.h"

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
 * @param[in,out] side    the run at this end; sets side->run->id
 * @param[out]    remote  figures of the server
 */
int perf_measure(struct perf_session *s, struct perf_run *run, struct perf_side *side,
		 struct perf_remote *remote);

/** Client: --sweep (perf/sweep_run.c). @return APP_OK or an exit code */
int perf_sweep(struct perf_session *s);

#endif /* APP_PERF_SESSION_H */
