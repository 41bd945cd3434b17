/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/decode.h
 * A captured frame becomes a view of a lane frame: where header, blocks, body and messages are, and
 * what is wrong with it. Unlike the library's gate it takes frames for anybody, frames that the
 * capture has cut (snaplen), and says in a sentence what it does not take.
 */
#ifndef DUMP_DECODE_H
#define DUMP_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/wire.h"
#include "drivers/dpdk/frame/frame.h"
#include "lane_tap.h"
#include "dump/file.h"

enum dump_what {
	DUMP_OTHER, /**< none of ours: ARP, other protocols, UDP without the magic */
	DUMP_ARP,
	DUMP_LANE,
	DUMP_RECORD, /**< a message record (lib/lane_tap.h) of a lane without frames */
	DUMP_WRONG,  /**< a lane frame, or a record, that is not as doc/wire.md says */
};

struct dump_view {
	enum dump_what what;
	const char *wrong; /**< DUMP_WRONG: why, in static storage */
	bool cut;          /**< the capture has not all of it */
	bool crc_wrong;
	const uint8_t *dst_mac, *src_mac;
	uint16_t vlan;           /**< 0 = untagged */
	uint32_t src_ip, dst_ip; /**< host order; 0 without IP */
	uint16_t src_port, dst_port;
	uint8_t ecn; /**< of the IP header */
	/** DUMP_LANE, and DUMP_WRONG when all of it is there; else NULL */
	const struct weft_frame_hdr *hdr;
	uint16_t flags;
	uint32_t length; /**< of the lane frame, as its header says */
	uint16_t sack_words, ecn_paths;
	const weft_le64 *sack;
	const struct weft_frame_ecn_path *ecn_path;
	const uint8_t *body;
	uint32_t body_len; /**< as the frame had it */
	uint32_t body_cap; /**< of it that is there */
	const struct rte_arp_hdr *arp;
	/**
	 * DUMP_RECORD, and DUMP_WRONG when all of it is there; else NULL. @p body is the message,
	 * or the native operation. @p hdr is @p made then: what a DATA frame with this message
	 * would name it by, the same at both ends
	 */
	const struct weft_record_head *record;
	struct weft_frame_hdr made;
};

void dump_decode(const struct dump_frame *frame, struct dump_view *view);

/** Is it a record of a message, and not of a native operation? */
static inline bool dump_is_message(const struct dump_view *v)
{
	return v->what == DUMP_RECORD && v->record->kind == WEFT_RECORD_MESSAGE;
}

/** A message of a DATA frame, or of a record. */
struct dump_msg {
	uint8_t id;
	uint32_t len;        /**< as the frame had it */
	uint32_t cap;        /**< of it that is there */
	const uint8_t *data; /**< behind the id and the length */
};

/** @param at  0 at first. @return false: there is no further one (that the capture has) */
bool dump_msg_next(const struct dump_view *view, uint32_t *at, struct dump_msg *msg);

/** Is it as doc/wire.md says? @return NULL = yes, or what is wrong, in static storage */
const char *dump_msg_wrong(const struct dump_msg *msg);

#endif /* DUMP_DECODE_H */
