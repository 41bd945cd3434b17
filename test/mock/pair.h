/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/pair.h Two endpoints' message layers, connected by lanes that do nothing by
 * themselves: what is sent lies in one queue, in order of sending, and the test delivers any entry
 * of it at any time, twice, or never. No connection half, no clock.
 *
 * The mock lane driver (mock/mock_lane.h) runs the whole library; this runs the message half alone,
 * to the piece.
 */
#ifndef WEFT_TEST_PAIR_H
#define WEFT_TEST_PAIR_H

#include "am/am.h"
#include "core/worker.h"
#include "dispatch.h"
#include "msg/msg.h"
#include "rma/rma.h"
#include "rndv/rndv.h"
#include "tag/tag.h"

#define PAIR_LANES 4
#define PAIR_FLUSHES 16

/** One message under way. */
struct pair_msg {
	unsigned int to, lane;
	uint8_t id;
	uint8_t *data;
	size_t length;
	struct weft_lane_comp *comp; /**< zcopy: to be completed with the delivery */
	bool delivered;              /**< completion pending */
};

struct pair_lane_params {
	size_t max_short, max_bcopy, max_zcopy; /**< 0 = no such call */
	size_t min_zcopy;
	size_t max_iov;
	bool zcopy_reg; /**< zcopy wants registered memory */
	double bandwidth, latency;
	size_t align;
};

struct pair_iface {
	struct weft_lane_iface base;
	struct pair *pair;
};

struct pair_lane_ep {
	struct weft_lane_ep base;
	struct pair *pair;
	unsigned int side, lane;
	int room; /**< sends that still succeed; -1 = any number */
	struct weft_lane_comp *flush[PAIR_FLUSHES];
	unsigned int num_flush;
};

struct pair {
	struct weft_conf conf;
	struct weft_context ctx;
	struct weft_worker w[2];
	struct weft_ep ep[2];
	struct weft_ep *table[2][1];
	struct weft_ep_lane lanes[2][WEFT_MAX_LANES];
	struct weft_ep_lane_info info[2][WEFT_MAX_LANES];
	struct pair_iface iface[2][PAIR_LANES];
	struct pair_lane_ep lane_ep[2][PAIR_LANES];
	unsigned int num_lanes;
	struct pair_msg *msgs; /**< under way, in order of sending */
	size_t num, cap;
	int fail_status[2]; /**< what weft_ep_events.fail() was called with */
	bool null;          /**< throw away what is sent (benchmarks) */
	uint64_t sent;
};

/** Defaults: one lane, 256 short, 1024 bcopy, no zcopy; conf as the table's defaults, small. */
void pair_defaults(struct pair *p);
/** Make workers and endpoints, connected. @param lanes  NULL = all like the default one */
void pair_open(struct pair *p, unsigned int num_lanes, const struct pair_lane_params *lanes);
/** The same, but the two sides are not connected before pair_connect(). */
void pair_open_unconnected(struct pair *p, unsigned int num_lanes,
			   const struct pair_lane_params *lanes);
void pair_connect(struct pair *p);
/** Ends both sides; fails the test when requests or messages are left without an owner. */
void pair_close(struct pair *p);

/** A message that is in no queue; from where the peer can change it, if the library takes it so. */
void pair_receive(struct pair *p, unsigned int to, unsigned int lane, uint8_t id, const void *data,
		  size_t length);
/** Deliver entry @p i of the queue and take it out. */
void pair_deliver(struct pair *p, size_t i);
/** Deliver a copy of it and leave it in. */
void pair_deliver_copy(struct pair *p, size_t i);
void pair_drop(struct pair *p, size_t i);
/** All that waits for the lane to be idle ends. */
void pair_flushed(struct pair_lane_ep *l, int status);
/** Deliver everything, and what that causes, until nothing moves. */
void pair_run(struct pair *p);
/** The same in an order from the seed. */
void pair_run_random(struct pair *p, uint64_t *seed);
/** Only let the message layers serve their queues. */
void pair_progress(struct pair *p);
/** Entries of the queue to @p side with this id (0 = any). */
size_t pair_count(const struct pair *p, unsigned int to, uint8_t id);
/** Set the room of all lanes of @p side. */
void pair_room(struct pair *p, unsigned int side, int room);
/** Both endpoints see their connection die. */
void pair_fail(struct pair *p, unsigned int side, int status);

static inline uint64_t pair_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

#endif /* WEFT_TEST_PAIR_H */
