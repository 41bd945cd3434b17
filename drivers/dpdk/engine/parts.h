/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/parts.h
 * Frames that are longer than what the path carries now: they go in parts, under their own
 * sequence, and the receiver puts them together before it checks their messages. So what was in
 * flight when the path became narrower arrives exactly once like all else: the unit of
 * acknowledgement and of delivery is the frame still.
 *
 * A part may come twice, late, or cut elsewhere than before. A frame of which a part is lost goes
 * again as a whole. What receivers keep has a bound for each connection and for all.
 */
#ifndef WEFT_ENGINE_PARTS_H
#define WEFT_ENGINE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/conn.h"
#include "frame/parse.h"

#define RAW_PARTS_OF_CONN 8u    /* frames that are being put together */
#define RAW_PARTS_OF_IFACE 256u /* at most, of all connections */

/* Would the frame be too long as it is? */
static inline bool raw_parts_needed(const struct raw_conn *c, const struct raw_slot *slot)
{
	return (uint32_t)slot->bytes + c->encap.len +
		       (c->csum == WEFT_FRAME_CSUM_CRC32C ? 4u : 0u) >
	       c->cut;
}

/* Frames of c->cut bytes that one of c->frame_size makes. */
uint16_t raw_parts_count(const struct raw_conn *c);
/*
 * Send the slot's frame in parts over a path; slot->order becomes that of the last one. @return 0,
 * or -EAGAIN without side effect
 */
int raw_parts_send(struct raw_conn *c, struct raw_slot *slot, uint32_t seq, uint8_t path,
		   uint16_t flags);

/*
 * Take a part of a frame that is not there yet.
 * @param[out] whole  when the frame is complete: it, valid until the result is freed
 * @return what holds the bytes of the complete frame, for free(); NULL = some are missing
 */
struct raw_part *raw_part_take(struct raw_conn *c, const struct weft_frame_view *v,
			       struct weft_frame_view *whole);
/* The connection is over. */
void raw_parts_forget(struct raw_conn *c);

#endif /* WEFT_ENGINE_PARTS_H */
