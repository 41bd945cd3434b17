/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/eager.h
 * Eager messages: the whole message at once, or pieces over all eager lanes at once; and the
 * headers of whole messages, pieces and announcements. Protocols are the same for both message
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

#include "msg/state.h"

extern const struct weft_proto weft_proto_eager_short;
extern const struct weft_proto weft_proto_eager_bcopy;
extern const struct weft_proto weft_proto_eager_zcopy;
extern const struct weft_proto weft_proto_multi_eager;

/* ------------------------------------------------------------------ headers */

/** The maximum length of the records behind an RTS or RTR: a key for each lane. */
#define WEFT_HEAD_RECORDS_MAX                                              \
	(sizeof(struct weft_wire_record) + sizeof(struct weft_wire_keys) + \
	 WEFT_MAX_LANES * sizeof(struct weft_wire_lane_key))

/** The longest header: EXT, and an AM_RTS with the longest user header and the longest records. */
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

/** Make the header of the piece that begins at byte req->send.offset. */
void weft_head_piece(const struct weft_request *req, struct weft_head *h);
/**
 * Make the header of an RTS. The caller appends its records at h->length.
 * @return the place of the flags of the RTS
 */
weft_le32 *weft_head_rts(const struct weft_request *req, struct weft_head *h);

#endif /* WEFT_EAGER_H */
