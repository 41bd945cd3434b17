/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/session.h
 * What the client's parts share: one conversation with a server (perf/run.c), and what is measured
 * in it.
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
 * @param[in,out] side    what runs here; side->run->id is set
 * @param[out]    remote  what the server saw
 */
int perf_measure(struct perf_session *s, struct perf_run *run, struct perf_side *side,
		 struct perf_remote *remote);

/** Client: --sweep (perf/sweep_run.c). @return APP_OK or an exit code */
int perf_sweep(struct perf_session *s);

#endif /* APP_PERF_SESSION_H */
