/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/eager.h
 * Eager messages: the whole message at once, or pieces over all eager lanes at once; and the
 * headers that all sends put in front of their bytes. Protocols are the same for both message
 * classes, tagged and active messages. Headers differ, and are made here: sequence, tag or handler,
 * the user's header.
 *
 *	whole   all bytes in one lane message           EAGER, EAGER_SYNC, AM
 *	piece   some of them, at an offset              FRAG, FRAG_SYNC, AM_FRAG
 *	rts     none: the message is announced          RTS, AM_RTS
 *
 * EXT precedes a header when the message has channels or immediate data.
 */
#ifndef WEFT_EAGER_H
#define WEFT_EAGER_H

#include "msg/endpoint.h"

extern const struct weft_proto weft_proto_eager_short;
extern const struct weft_proto weft_proto_eager_bcopy;
extern const struct weft_proto weft_proto_eager_zcopy;
extern const struct weft_proto weft_proto_multi_eager;

/* ------------------------------------------------------------------ headers */

/** The maximum length of the records behind an RTS or RTR: a key for each lane. */
#define WEFT_HEAD_RECORDS_MAX                                              \
	(sizeof(struct weft_wire_record) + sizeof(struct weft_wire_keys) + \
	 WEFT_MAX_LANES * sizeof(struct weft_wire_lane_key))

/**
 * The longest header: an AM_RTS with the longest user header, and the records of the announcement.
 */
#define WEFT_HEAD_MAX                                                                           \
	(sizeof(struct weft_wire_ext) + sizeof(struct weft_wire_am_rts) + WEFT_WIRE_AM_HEADER + \
	 WEFT_HEAD_RECORDS_MAX)

struct weft_head {
	uint8_t id;
	uint16_t length;
	union {
		struct weft_wire_eager_sync eager;
		struct weft_wire_frag_sync frag;
		struct weft_wire_rts rts;
		struct weft_wire_am am;
		struct weft_wire_am_frag am_frag;
		struct weft_wire_am_rts am_rts;
		uint8_t bytes[WEFT_HEAD_MAX];
	};
};

/** The piece at req->send.offset. */
void weft_head_piece(const struct weft_request *req, struct weft_head *h);
/** Without records, which follow at h->length. @return where the RTS' flags go */
weft_le32 *weft_head_rts(const struct weft_request *req, struct weft_head *h);

/* ------------------------------------------------------------------ headers of split messages */

/** Writable bytes in front of a message for weft_msg_recast(). */
#define WEFT_RECAST_ROOM 16

/** The header of a further piece of a message in several buffers: weft_lane_split_fn. Pure. */
size_t weft_msg_split(uint8_t id, const void *msg, size_t had, void *piece);
/**
 * Converts a whole message of at least one byte to a piece with all of its bytes, which can be
 * split. The piece begins #WEFT_RECAST_ROOM bytes earlier. @return its id; 0: nothing was changed
 */
uint8_t weft_msg_recast(uint8_t id, void *msg, size_t length);
/**
 * As weft_msg_split(), for all messages that can be split for a lane with a lower limit. @p had 0:
 * returns the length of the message's header. The first part contains this header and at least a
 * byte.
 */
size_t weft_msg_part(uint8_t id, const void *msg, size_t had, void *piece);
/** Is it a PUT of any kind? */
bool weft_msg_is_put(uint8_t id, const void *msg);
/**
 * Split a PUT of @p length bytes into two, each of which counts as half of it.
 * @param second     room for the second one: @p length bytes are enough
 * @param[out] rest  its length
 * @return bytes that stay in the first one; 0: it cannot be halved
 */
size_t weft_put_halve(uint8_t id, void *msg, size_t length, void *second, size_t *rest);

#endif /* WEFT_EAGER_H */
