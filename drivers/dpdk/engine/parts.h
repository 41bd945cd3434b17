/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/parts.h
 * Frames that are longer than the path carries now. They are sent in parts, under their own
 * sequence number, and the receiver assembles them before it checks their messages. So frames that
 * were in flight when the path became narrower are delivered exactly once, as all others: the unit
 * of acknowledgement and of delivery is still the frame.
 *
 * A part may arrive twice, late, or with other boundaries than before. If a part is lost, the whole
 * frame is retransmitted. A receiver's memory for parts has a limit for each connection and for
 * all.
 */
#ifndef WEFT_ENGINE_PARTS_H
#define WEFT_ENGINE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/conn.h"
#include "frame/parse.h"

#define RAW_PARTS_OF_CONN 8u    /* frames being assembled, of a connection */
#define RAW_PARTS_OF_IFACE 256u /* the same, of all connections */

/* Would the whole frame be too long for the path? */
static inline bool raw_parts_needed(const struct raw_conn *c, const struct raw_slot *slot)
{
	return (uint32_t)slot->bytes + c->encap.len +
		       (c->csum == WEFT_FRAME_CSUM_CRC32C ? 4u : 0u) >
	       c->cut;
}

/* @return the frames of c->cut bytes into which a frame of c->frame_size is cut */
uint16_t raw_parts_count(const struct raw_conn *c);
/*
 * Send the slot's frame in parts over a path; slot->order becomes that of the last part. @return 0,
 * or -EAGAIN without side effect
 */
int raw_parts_send(struct raw_conn *c, struct raw_slot *slot, uint32_t seq, uint8_t path,
		   uint16_t flags);

/*
 * Take a part of a frame that has not been received yet.
 * @param[out] whole  when the frame is complete: the frame, valid until the result is freed
 * @return the memory of the complete frame, to be freed; NULL = parts are missing
 */
struct raw_part *raw_part_take(struct raw_conn *c, const struct weft_frame_view *v,
			       struct weft_frame_view *whole);
/* The connection is over. */
void raw_parts_forget(struct raw_conn *c);

#endif /* WEFT_ENGINE_PARTS_H */
