/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/raw.h
 * raw_lat and raw_bw: the performance of a lane's port without the lane's protocol. Port code,
 * frame sizes and header bytes are those of a lane; frames are sent in bursts. The sender copies
 * each payload into frames once (or passes external buffers to the port, where a lane would). The
 * receiver copies it once into a user buffer. There are no windows and no acknowledgements: lost
 * frames are not retransmitted, and raw_bw counts received bytes.
 */
#ifndef APP_PERF_RAW_H
#define APP_PERF_RAW_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/dpdk/frame/frame_port.h"
#include "perf/perf.h"

/**
 * Bytes in front of the payload: Ethernet, IPv4, UDP, lane header, message header, protocol header.
 */
#define PERF_RAW_HEAD 100u

/** Data of a port that both sides exchange; on the wire as u64 each. */
struct perf_raw_hello {
	uint64_t mac;
	uint64_t frame_size;
};

struct perf_raw {
	struct weft_frame_port *port;
	struct peer *peer;
	uint32_t room; /**< payload bytes of a frame, agreed */
	uint8_t head[PERF_RAW_HEAD];
	uint32_t ip_sum;  /**< of the IPv4 header with length 0 */
	uint64_t look_at; /**< TSC: when the port is checked again */
	bool linked;      /**< there was a link at both ends */
};

/* ---- perf/raw_port.c */

/** Open the first raw-DPDK lane's port of the configuration. @return APP_OK or an exit code */
int perf_raw_open(struct peer *p, struct perf_raw **raw);
/**
 * Agree with the peer on frames, and wait until both links are up. @return APP_OK or an exit code
 */
int perf_raw_connect(struct perf_raw *raw);
/**
 * Check for events of the port, at most ten times a second. The test ends, with an error message,
 * when the port was removed or requires a reset, or when a link that was up is lost. @return APP_OK
 * or an exit code
 */
int perf_raw_look(struct perf_raw *raw);
/** NULL is allowed. */
void perf_raw_close(struct perf_raw *raw);

/* ---- perf/raw.c */

/** Run raw_lat or raw_bw. @return APP_OK or an exit code */
int perf_raw_run(struct perf_raw *raw, struct perf_side *side);

#endif /* APP_PERF_RAW_H */
