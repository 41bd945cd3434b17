/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/conn_rx.h
 * The receiver's half of a connection: the received sequences, the echo of the peer's timestamps,
 * and the acknowledgement that is to be sent. These functions need nothing else of a connection.
 */
#ifndef WEFT_ENGINE_CONN_RX_H
#define WEFT_ENGINE_CONN_RX_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_common.h>

#include "engine/iface.h"
#include "engine/rules.h"
#include "frame/frame.h"

#define RAW_ACK_DELAY 25000ull /* ns by which an ACK is delayed at most */
#define RAW_ACK_FRAMES 8u      /* DATA frames after which an ACK is due at once */
#define RAW_ACK_BYTES 65536u   /* bytes of messages after which an ACK is due at once */
/* one of this number of DATA frames has an echo, which costs reading the clock */
#define RAW_ECHO_EVERY 16u

enum raw_ack { RAW_ACK_NONE, RAW_ACK_DELAYED, RAW_ACK_NOW };

struct raw_rx {
	/* One line: all fields that a received frame touches. */
	uint64_t seen;       /* live_clock of the last valid frame */
	uint64_t ack_due;    /* tx_clock at which a delayed acknowledgement is to leave */
	uint64_t ts_at;      /* `now` when ts_echo arrived */
	uint32_t ts_echo;    /* timestamp of the newest DATA frame */
	uint32_t ack_bytes;  /* bytes of messages delivered since the last acknowledgement */
	uint16_t ack_frames; /* frames delivered since the last acknowledgement */
	uint8_t ack_state;   /* enum raw_ack */
	uint8_t echo_path;
	bool ts_valid;
	bool on_ack_list;
	bool data_received; /* DATA was received since the last zero-copy send */
	uint8_t echo_wait;  /* DATA frames without an echo before the next one with an echo */
	/* frames in a row whose time of arrival was too rough for an echo */
	uint8_t echo_missed;
	/*
	 * frames of rough arrival times that request an ACK: each fourth gets an echo all the same
	 */
	uint8_t echo_requested;
	uint8_t mark_acks;  /* number of further ACKs that report marks */
	uint8_t reply_path; /* 1 + path of an ACK with ACK_REQ, for the answer; 0 = none */
	uint32_t first;     /* the peer's first sequence */
	struct weft_rxwin win;

	/* Few frames touch these. */
	TAILQ_ENTRY(raw_rx) ack_link; /* in iface->ack_list, while on_ack_list */
	bool ack_all; /* a duplicate came: the next ACK goes over all paths, as ACKs may be lost */
};

static_assert(offsetof(struct raw_rx, ack_link) <= RTE_CACHE_LINE_MIN_SIZE, "line of a receiver");

/** The peer's first sequence is known: nothing is received yet. */
void raw_rx_init(struct raw_rx *rx, uint32_t first);
/**
 * Nothing has been received for a long time: frees the ring of received sequences, unless a
 * sequence before the newest is missing.
 */
void raw_rx_idle(struct raw_rx *rx);
/** The connection is over: leaves iface->ack_list, frees memory. */
void raw_rx_free(struct raw_iface *iface, struct raw_rx *rx);
/** Delayed acknowledgements become due now. */
void raw_rx_hurry(struct raw_iface *iface);
/**
 * @return the time for which the newest frame has waited here, in units of WEFT_FRAME_HOLD_UNIT
 */
uint16_t raw_rx_hold(const struct raw_iface *iface, const struct raw_rx *rx);

/** An acknowledgement of all that was received has left, or none is to be sent. */
static inline void raw_rx_acked(struct raw_rx *rx)
{
	rx->ack_state = RAW_ACK_NONE;
	rx->ack_frames = 0;
	rx->ack_bytes = 0;
}

/**
 * DATA is sent. It carries the acknowledgement, but no SACK or mark blocks: holes and marks still
 * need an ACK.
 */
static inline void raw_rx_carried(struct raw_iface *iface, struct raw_rx *rx)
{
	if (rx->ack_state == RAW_ACK_NONE || weft_rxwin_has_hole(&rx->win) || rx->mark_acks != 0)
		return;
	raw_rx_acked(rx);
	/* Alone in the list: raw_acks_send_due() has nothing to do until the next frame. */
	if (TAILQ_FIRST(&iface->ack_list) == rx && !TAILQ_NEXT(rx, ack_link))
		iface->acks_due = WEFT_NEVER;
}

/** An acknowledgement is to be sent. */
static inline void raw_rx_schedule_ack(struct raw_iface *iface, struct raw_rx *rx, enum raw_ack how)
{
	if (how > rx->ack_state) {
		if (rx->ack_state == RAW_ACK_NONE)
			rx->ack_due = iface->tx_clock + RAW_ACK_DELAY;
		/* The due time of the list's first connection is no bound: data may have carried
		 * its acknowledgement already. */
		if (rx->ack_due < iface->acks_due)
			iface->acks_due = rx->ack_due;
		rx->ack_state = (uint8_t)how;
	}
	if (how == RAW_ACK_NOW)
		iface->acks_now = true;
	if (!rx->on_ack_list) {
		rx->on_ack_list = true;
		TAILQ_INSERT_TAIL(&iface->ack_list, rx, ack_link);
	}
}

/** The messages of a frame with @p bytes of them are delivered: it may be acknowledged. */
static __rte_always_inline void raw_rx_delivered(struct raw_iface *iface, struct raw_rx *rx,
						 uint32_t seq, uint32_t bytes, bool requested)
{
	weft_rxwin_mark(&rx->win, seq);
	rx->ack_frames++;
	rx->ack_bytes += bytes;
	raw_rx_schedule_ack(iface, rx,
			    weft_rxwin_has_hole(&rx->win) || requested ||
					    rx->ack_frames >= RAW_ACK_FRAMES ||
					    rx->ack_bytes >= RAW_ACK_BYTES
				    ? RAW_ACK_NOW
				    : RAW_ACK_DELAYED);
}

/**
 * Fills the acknowledgement and the echo, which depend on the moment at which a frame leaves. An
 * echo costs reading the clock, so most DATA frames have none.
 */
static inline void raw_rx_stamp(const struct raw_iface *iface, struct raw_rx *rx,
				struct weft_frame_hdr *hdr)
{
	uint16_t hold = WEFT_FRAME_NO_ECHO;

	if (rx->ts_valid) {
		if (hdr->type != WEFT_FRAME_DATA) {
			hold = raw_rx_hold(iface, rx);
		} else if (rx->echo_wait > 0) {
			rx->echo_wait--;
		} else {
			rx->echo_wait = RAW_ECHO_EVERY - 1;
			hold = raw_rx_hold(iface, rx);
		}
	}
	hdr->ack = weft_put32(rx->win.next);
	hdr->echo_path = rx->echo_path;
	hdr->ts_echo = weft_put32(rx->ts_echo);
	hdr->ts_hold = weft_put16(hold);
}

#endif /* WEFT_ENGINE_CONN_RX_H */
