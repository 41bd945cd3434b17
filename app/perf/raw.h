/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/raw.h
 * raw_lat and raw_bw: the performance of a lane's port without the lane's protocol. Port code,
 * frame sizes and header bytes are those of a lane; frames are sent in bursts. The sender copies
 * each payload into frames once (or passes external buffers to the port, where a lane would). The
 * receiver copies it once into a user buffer. There are no windows and no acknowledgements: raw_bw
 * counts received bytes, and raw_lat repeats a message that gets no reply.
 */
#ifndef APP_PERF_RAW_H
#define APP_PERF_RAW_H

#include "perf/flow.h"

struct perf_raw;
struct perf_side;

/** Open the first raw-DPDK lane's port of the configuration. @return APP_OK or an exit code */
int perf_raw_open(struct peer *p, struct perf_raw **raw);
/**
 * Agree with the peer on frames, and wait until both links are up. @return APP_OK or an exit code
 */
int perf_raw_connect(struct perf_raw *raw);
/** Close the port. NULL is allowed. */
void perf_raw_close(struct perf_raw *raw);

/** Run raw_lat or raw_bw. @return APP_OK or an exit code */
int perf_raw_run(struct perf_raw *raw, struct perf_side *side);

#endif /* APP_PERF_RAW_H */
