/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/raw.h
 * raw_lat and raw_bw: what a lane's port can do with nothing of Weft on it but the frames. The same
 * port code, the same frame sizes and as many header bytes as a lane's; bursts only; the sender
 * copies each payload into frames once (or hands the port external buffers, where a lane would),
 * the receiver copies it once into a user buffer. No window, no acknowledgements: what is lost is
 * lost, and raw_bw counts what arrived.
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

/** What both sides send each other about their port; on the wire as u64 each. */
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
 * What has happened to the port since the last call; at most ten times a second something is done
 * for that. A port that was removed or wants a reset ends the test, and so does a lost link, as
 * soon as there has been one, with an error message. @return APP_OK or an exit code
 */
int perf_raw_look(struct perf_raw *raw);
/** NULL is allowed. */
void perf_raw_close(struct perf_raw *raw);

/* ---- perf/raw.c */

/** Run raw_lat or raw_bw. @return APP_OK or an exit code */
int perf_raw_run(struct perf_raw *raw, struct perf_side *side);

#endif /* APP_PERF_RAW_H */
