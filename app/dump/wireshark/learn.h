/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/wireshark/learn.h
 * What the plugin keeps of earlier frames: connections, sequences, questions, pieces of messages,
 * credit.
 * Wireshark dissects all frames once in order, and then again in any order, so a frame is learned
 * on the first pass only. What is known of a frame then stays with the frame.
 */
#ifndef DUMP_WIRESHARK_LEARN_H
#define DUMP_WIRESHARK_LEARN_H

#include <stdbool.h>
#include <stdint.h>

#include <epan/packet.h>

#include "core/wire_def.h"
#include "core/wire_frame_def.h"

/** A piece of a message. */
struct dissect_piece {
	uint32_t first;  /**< number of the frame with the first piece */
	uint32_t before; /**< number of the frame with the piece before; of the first: its own */
	uint32_t nth;    /**< which piece this is, from 1 on */
};

/** What other frames show about a frame; numbers of frames are 0 without one. */
struct dissect_note {
	uint32_t again;       /**< earlier transmission of this retransmitted frame */
	uint32_t twice;       /**< earlier copy of this duplicated frame */
	uint32_t missing;     /**< number of frames of its path that are missing before it */
	uint32_t answer;      /**< of a PROBE: the answer; of an answer: the PROBE */
	bool timed, spent;    /**< @p response is known; the credit is used up */
	nstime_t response;    /**< since the PROBE */
	wmem_array_t *pieces; /**< struct dissect_piece of each piece in the frame; or NULL */
};

/** @return NULL: nothing is known */
struct dissect_note *dissect_note(packet_info *pinfo);

/**
 * Where a frame was captured: interface and direction. Captures of both ends in one file have each
 * frame twice.
 */
uint32_t dissect_place(packet_info *pinfo);

/** The number of a lane frame's connection, the same both ways. */
uint32_t dissect_stream(packet_info *pinfo, const struct weft_frame_hdr *hdr);
/** The number of a message record's lane, the same both ways. */
uint32_t dissect_record_stream(uint64_t from, uint64_t to, uint32_t conn_sn, uint8_t lane);

/** Learn a DATA frame: was it there before, and are others missing before it? */
void dissect_learn_data(packet_info *pinfo, uint32_t place, const struct weft_frame_hdr *hdr);
/** Learn a PROBE, or the PROBE_ACK that answers one. @param probe  the body of the frame */
void dissect_learn_probe(packet_info *pinfo, uint8_t type, uint32_t stream,
			 const struct weft_frame_probe *probe);

/** Is a message of this id one of the pieces of a longer message? */
bool dissect_is_piece(uint8_t id);
/**
 * Learn a piece of a message.
 * @param data  the message without its head, with all fields
 * @param conn  connection and token, or what takes their place: only a piece of DATA needs it
 */
void dissect_learn_piece(packet_info *pinfo, uint8_t id, const uint8_t *data, uint64_t conn);

/* ---- credit --------------------------------------------------------------------------------- */

/*
 * What the sender of a direction of an endpoint may send, and what it has sent, over all lanes.
 * Wire-up names the endpoint of a connection, and has the first credit: without it in the capture
 * nothing is known. Endpoints and credits are kept for each interface of the capture, since
 * captures of both ends have every frame twice.
 */

/**
 * Learn the messages of a DATA frame that is there for the first time.
 * @param place  dissect_place()
 * @param body   @p len bytes of messages
 */
void dissect_learn_credit(packet_info *pinfo, uint32_t place, const struct weft_frame_hdr *hdr,
			  const uint8_t *body, uint32_t len);

void dissect_learn_register(void);

#endif /* DUMP_WIRESHARK_LEARN_H */
