/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/share.h
 * Buffers that connections share (engine/share.c).
 */
#ifndef WEFT_ENGINE_SHARE_H
#define WEFT_ENGINE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "engine/conn.h"
#include "engine/iface.h"

/* Frames that a connection may hold whatever the others hold. */
#define RAW_SHARE_MIN 8u
#define RAW_SHARE_TIMES 4u
#define RAW_STALL_NS 10000000ull

/*
 * May a connection with @p mine frames outstanding hold one more? The limit of each is a multiple
 * of the free frames: a single connection gets four fifths, yet some are always left for the next
 * one. The least share is guaranteed to each.
 */
static inline bool raw_share_frame(struct raw_iface *iface, uint32_t mine)
{
	uint32_t held = iface->share.tx_held;

	if (likely(held < iface->share.tx_held_max &&
		   mine < RAW_SHARE_TIMES * (iface->share.tx_held_max - held)))
		return true;
	if (mine < RAW_SHARE_MIN && held < iface->share.tx_held_hard)
		return true;
	iface->share.pressed = true;
	return false;
}

bool raw_share_hdrs(struct raw_conn *c, uint32_t n);
void raw_share_init(struct raw_iface *iface);
void raw_share_stalled(struct raw_conn *c);
void raw_share_acked(struct raw_conn *c, unsigned int acked);
void raw_share_forget(struct raw_conn *c);
void raw_share_take_back(struct raw_iface *iface);
void raw_copy_free(struct raw_iface *iface, struct raw_copy *copy);
struct rte_mbuf *raw_copy_frame(struct raw_iface *iface, const struct raw_copy *copy);
const uint8_t *raw_copy_bytes(const struct raw_copy *copy, struct raw_zc **zc);

#endif /* WEFT_ENGINE_SHARE_H */
