/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/handshake.h
 * Connecting: HELLO .. READY, and RESET, by which the peer reports that it has no such connection.
 */
#ifndef WEFT_ENGINE_HANDSHAKE_H
#define WEFT_ENGINE_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "frame/parse.h"

#define RAW_HS_RETRY_MIN 1000000ull
#define RAW_HS_RETRY_MAX 100000000ull

/*
 * The handshake's measurement of the path (engine/path_probe.c). Times are ns of the platform's
 * clock.
 */
struct raw_measure {
	uint64_t begin;
	uint64_t until; /* initiator: live_clock at which the train ends */
	uint64_t sent;  /* the last ping (initiator), the last answer to one (responder) */
	uint64_t last;  /* the last frame of the train: acknowledged, or received (responder) */
	uint64_t mark;  /* begin of the present stretch of the train */
	uint64_t slow_mark;
	float best;           /* ns per frame of the fastest stretch; 0 = none yet */
	uint16_t pings, same; /* pings sent; samples since the best one */
	uint16_t out, done;   /* frames of the train: sent, finished */
	uint16_t id;          /* responder: of the last ping */
};

/*
 * State of a connection that is being made: it is freed when the connection is up, has failed, or
 * is closed.
 */
struct raw_hs {
	uint64_t cookie; /* initiator: from HELLO_RETRY */
	bool late;       /* the log has a line about the slow handshake */

	/* Responder: the half-open entry (engine/half_open.c). */
	TAILQ_ENTRY(raw_conn) half_link;
	uint8_t half_bucket, half_mac;
	bool half_shown;   /* the peer has proven that it receives at its address */
	bool mac_unproven; /* ARP has not confirmed the source MAC of HELLO yet */
	uint8_t hello_mac[6];

	/* The peer's, from HELLO. */
	uint32_t peer_rx_frames;
	uint32_t peer_rx_seqs; /* sequences that the peer remembers */
	uint8_t peer_paths;

	/* The search for paths (engine/path_probe.c). */
	uint8_t small_acks;  /* answers over path 0 */
	uint16_t last_id;    /* of the last probe before */
	uint16_t path_found; /* initiator: bit k: path k has its ports */

	struct raw_measure measure;
};

void raw_hs_start(struct raw_conn *c);
void raw_hs_timer(struct raw_conn *c);
void raw_hs_ready(struct raw_conn *c);
void raw_hs_enter(struct raw_conn *c, enum raw_state state);
void raw_hs_measure(struct raw_conn *c);
void raw_hs_input(struct raw_conn *c, const struct weft_frame_view *v);
/* Sends HELLO_ACK: the connection is half-open with a known MAC address, or it is up. */
void raw_hello_answer(struct raw_conn *c);
void raw_hello_input(struct raw_iface *iface, const struct weft_frame_view *v);

void raw_reset_input(struct raw_iface *iface, const struct weft_frame_view *v);

void raw_ep_waits_for(const struct weft_lane_ep *lane_ep, char *text, size_t size);

#endif /* WEFT_ENGINE_HANDSHAKE_H */
