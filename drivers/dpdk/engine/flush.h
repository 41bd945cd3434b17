/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/flush.h
 * Flushes: a completion when all frames sent before are acknowledged.
 */
#ifndef WEFT_ENGINE_FLUSH_H
#define WEFT_ENGINE_FLUSH_H

#include <stdint.h>
#include <sys/queue.h>

#include "engine/conn.h"
#include "lane.h"

struct raw_flush {
	struct weft_lane_comp *comp;
	uint32_t seq; /* completes when all sequences before it are acknowledged */
	STAILQ_ENTRY(raw_flush) link;
};

/* Queue @p f, from malloc(): it completes when all frames sent so far are acknowledged. */
void raw_flush_queue(struct raw_conn *c, struct raw_flush *f, struct weft_lane_comp *comp);
void raw_flushes_end(struct raw_conn *c, int status);
unsigned int raw_flushes_check(struct raw_conn *c);

#endif /* WEFT_ENGINE_FLUSH_H */
