/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/count_port.h
 * A pair of frame ports for measurements of one end. First each sends to the other, so that a
 * connection is made by the engine at both ends. Then the far end is left alone, and the near port
 * takes its place: it counts frames and acknowledges them, or delivers a ring of frames again and
 * again. The bytes of a ring are written once, as a NIC would write them, without the CPU.
 */
#ifndef MOCK_COUNT_PORT_H
#define MOCK_COUNT_PORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frame/frame_port.h"
#include "lane.h"

#define COUNT_AM 5u
#define COUNT_DEPTH 512u /* frames of a filled ring */

/** The header of the messages: bytes [offset, offset + len) of message @p id. */
struct count_frag {
	uint64_t id;
	uint32_t offset, len;
};

struct count_end {
	struct weft_frame_port port; /* first */
	struct count_end *peer;
	struct rte_mbuf *queue[256];
	unsigned int queued;

	/* what the far end has sent to this one, for copies */
	uint8_t ack[256]; /* an ACK frame */
	uint32_t ack_len;
	struct rte_mbuf *ring[COUNT_DEPTH];
	uint32_t ring_len; /* DATA frames of the ring so far */
	uint32_t next_seq, next_order;

	/* while it is alone */
	bool alone;
	uint32_t sent_seq, acked_seq; /* of frames of this end */
	unsigned int idle;
	uint64_t frames, bytes;
	/** Gets each message that is sent; NULL = messages are only counted. */
	void (*check)(void *arg, const struct count_frag *frag, const uint8_t *data);
	void *arg;

	/** of a filled ring */
	uint64_t delivered;         /* frames */
	uint32_t per_message;       /* of these that a message has here */
	_Atomic uint64_t permitted; /* messages up to this id may be delivered */
};

/** Two ports with pools, for frames of @p frame_size. @return 0 or -ENOMEM */
int count_pair_open(struct count_end end[2], unsigned int number, uint16_t frame_size);

/** Both ends are connected, and have sent a message or the ring: the far end is left alone. */
void count_pair_part(struct count_end *near);

/** Keep the DATA frames from now on that the far end sends, as templates; then fill the ring. */
void count_ring_begin(struct count_end *near);
void count_ring_fill(struct count_end *near);

#endif /* MOCK_COUNT_PORT_H */
