/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/decode.h
 * Decodes a captured frame into a view of a lane frame: where header, blocks, body and messages
 * are, and what is wrong with it. The library's validation accepts frames for one receiver. This
 * one accepts frames for any receiver, and frames that the capture has cut (snaplen). For a
 * malformed frame it returns the reason as text. A sealed frame whose key is known is decoded as
 * the plain frame in it. Message records, the messages of lanes without frames (lib/lane_tap.h),
 * become views like those of DATA frames with one message.
 */
#ifndef DUMP_DECODE_H
#define DUMP_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/wire.h"
#include "drivers/dpdk/frame/frame.h"
#include "dump/file.h"
#include "dump/network.h"
#include "dump/rocev2.h"
#include "dump/shapes.h"
#include "lane_tap.h"

enum dump_what {
	DUMP_OTHER, /**< no frame of Weft: other protocols, UDP without the magic */
	DUMP_ARP,
	DUMP_ND, /**< neighbour discovery of IPv6: a solicitation or an advertisement */
	DUMP_LANE,
	DUMP_ROCE,   /**< a packet of RoCE v2: in it lanes have messages without frames */
	DUMP_RECORD, /**< a message record (lib/lane_tap.h) of a lane without frames */
	DUMP_CUT,    /**< a lane frame whose header the capture has cut */
	DUMP_WRONG,  /**< a lane frame, or a record, that contradicts doc/wire.md */
};

struct dump_view {
	enum dump_what what;
	const char *wrong; /**< DUMP_WRONG: why, in static storage */
	bool cut;          /**< the capture has only the first bytes of the frame */
	bool damaged;      /**< a checksum is wrong: the frame was changed on its way */
	bool sealed;       /**< a sealed frame that no key has opened: only its header is known */
	/** of a sealed frame that was opened: the lane header in the capture; else NULL */
	const uint8_t *opened;
	const uint8_t *dst_mac, *src_mac;
	uint16_t vlan;                /**< 0 = untagged */
	struct dump_address src, dst; /**< of IP, else of Ethernet; of a record none */
	uint16_t src_port, dst_port;  /**< 0 without UDP */
	uint8_t ecn;                  /**< ECN bits of the IP header */
	/** lane header, or of a record `made`; NULL = none, cut, or magic or version is wrong */
	const struct weft_frame_hdr *hdr;
	uint16_t flags;
	uint32_t length; /**< length of the lane frame, according to its header */
	uint16_t sack_words, ecn_paths;
	const weft_le64 *sack;
	const struct weft_frame_ecn_path *ecn_path;
	const struct weft_frame_progress *progress; /**< NULL = there is none */
	const uint8_t *body;
	uint32_t body_len;               /**< length in the frame */
	uint32_t body_cap;               /**< bytes that were captured */
	struct dump_neighbour neighbour; /**< DUMP_ARP, DUMP_ND */
	struct dump_icmp icmp;           /**< DUMP_OTHER: an error about a UDP packet */
	struct rocev2_packet roce;       /**< DUMP_ROCE */
	/**
	 * DUMP_RECORD; else NULL. With a record, @p body is the message or the native operation,
	 * and @p hdr points to @p made, the header that a DATA frame with this message would have.
	 * The records of both ends of a message have the same @p made.
	 */
	const struct weft_record_head *record;
	struct weft_frame_hdr made;
};

void dump_decode(const struct dump_frame *frame, struct dump_view *view);

/**
 * The plain frame in a sealed one that was opened: without number and tag, with a CRC32C.
 * @param view  of this frame, before the next dump_decode()
 * @param out   room for the frame's caplen
 * @param len   bytes that the plain frame has
 * @return bytes in @p out, fewer than @p len of a frame that the capture has cut; 0: not opened
 */
uint32_t dump_decode_plain(const struct dump_frame *frame, const struct dump_view *view,
			   uint8_t *out, uint32_t *len);

/** Is the view a request for a MAC address, or the answer to one? */
static inline bool dump_is_neighbour(const struct dump_view *v)
{
	return v->what == DUMP_ARP || v->what == DUMP_ND;
}

/** Is the view a record of a message, rather than of a native operation? */
static inline bool dump_is_message(const struct dump_view *v)
{
	return v->what == DUMP_RECORD && v->record->kind == WEFT_RECORD_MESSAGE;
}

/** A message of a DATA frame, or of a record. */
struct dump_msg {
	uint8_t id;
	uint32_t len;        /**< length in the frame */
	uint32_t cap;        /**< bytes that were captured */
	const uint8_t *data; /**< the bytes after the id and the length */
};

/**
 * The next message of a DATA frame, or of a record.
 * @param at  0 for the first call. @return false: no further message was captured
 */
bool dump_msg_next(const struct dump_view *view, uint32_t *at, struct dump_msg *msg);

/**
 * Check a message against doc/wire.md. A message that the capture has cut is not checked. Of a
 * wire-up message in fragments, or of another version, only the head is checked.
 * @return the error, in static storage; NULL = none was found
 */
const char *dump_msg_wrong(const struct dump_msg *msg);

/** Does the header of the record's message differ from that of any other message? */
bool dump_record_is_unique(const struct dump_view *v);

#endif /* DUMP_DECODE_H */
