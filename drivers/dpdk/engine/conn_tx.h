/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/conn_tx.h
 * The sender's half of a connection: its open frame, the slots of the frames that it has sent, the
 * window and the timers.
 *
 * Ownership of a data frame: the connection's slot holds one reference of every mbuf of the chain
 * until the frame is acknowledged. The TX queue or the NIC holds another while the frame is to be
 * sent. When both are gone, the buffer returns to its pool, and user memory of a zero-copy send to
 * its owner.
 */
#ifndef WEFT_ENGINE_CONN_TX_H
#define WEFT_ENGINE_CONN_TX_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_common.h>
#include <rte_mbuf.h>

struct raw_copy;
struct raw_flush;
struct raw_zc;
struct weft_cc;

/* What the timer has sent since the last acknowledgement (engine/reliability.c). */
enum raw_tail {
	RAW_TAIL_NONE,
	RAW_TAIL_ACK_REQUESTED, /* ports in memory: a frame without data has requested an ACK */
	RAW_TAIL_PROBED,        /* the newest frame has been retransmitted */
};

/* What the last zero-copy send that may await an acknowledgement has done. */
enum raw_zc_ack { RAW_ZC_ACK_NONE, RAW_ZC_ACK_REQUESTED, RAW_ZC_ACK_NO_REQUEST };

/* A frame that was sent and is not acknowledged. */
struct raw_slot {
	union {
		struct rte_mbuf *m;    /* NULL = acknowledged */
		struct raw_copy *copy; /* taken_back: see engine/outstanding.c */
	};
	uint64_t sent;    /* tx_clock of the last transmission */
	uint32_t order;   /* of the last transmission, on its path */
	uint32_t payload; /* message bytes, for lane_ep->queued */
	uint16_t bytes;   /* lane bytes, for the window */
	uint8_t path;
	uint8_t tries;
	bool taken_back;
	bool lost; /* and not retransmitted yet: not in flight (engine/window.c) */
};

struct raw_tx {
	/* One line: all fields that sending a frame and processing an acknowledgement touch. */
	struct rte_mbuf *open; /* the open frame, or NULL */
	struct raw_slot *slots;
	uint32_t slot_mask;
	uint32_t una, next; /* sequences: the oldest one without acknowledgement, the next one */
	uint32_t sack_high; /* one past the newest sequence in a SACK; una = none */
	uint32_t inflight;  /* lane bytes */
	uint32_t win_bytes, win_frames;
	uint8_t backoff;
	uint8_t tail;   /* enum raw_tail */
	uint8_t zc_ack; /* enum raw_zc_ack */
	bool on_list;   /* is in iface->tx_list */
	uint64_t timer; /* tx_clock of tail probe or RTO; 0 = nothing outstanding */
	/* live_clock since which a frame before round_end has been missing its acknowledgement. */
	uint64_t round_at;

	/* One line: fields that each frame uses, but not each message. */
	/* Congestion control, one for each path; NULL: the window is fixed (engine/window.h). */
	struct weft_cc *cc;
	int32_t cc_left;     /* bytes until raw_window_ack_req() */
	uint32_t cc_acked;   /* bytes acknowledged since the last on_ack() */
	uint32_t cc_limit;   /* most bytes in flight */
	uint32_t cc_gap;     /* ns between frames; 0 = none */
	uint32_t cc_lost;    /* frames that are lost and wait for their retransmission */
	uint32_t probe_wait; /* ns from a frame to its tail probe: follows the round trip */
	uint32_t room;       /* bytes for messages in a frame that is sent whole */
	uint32_t round_end;
	uint32_t win_whole; /* win_frames while the peer acknowledges */
	uint32_t hdr_held;  /* small buffers held by its zero-copy frames */
	uint16_t cut;       /* longer frames go in parts (engine/mtu.c); UINT16_MAX = none */
	uint16_t direct;    /* longer frames do not go to the port as they are: cut; sealed: 0 */
	uint8_t txq_need;   /* places in the queue that the longest frame takes */
	bool cc_full;       /* since the last on_ack() the window has held a frame back */
	/* zero-copy sends since the peer's data last carried their acknowledgement */
	uint8_t acked_alone;
	uint8_t limit;    /* 1 + enum raw_limit that holds its frames back; 0 = none does */
	uint64_t cc_next; /* tx_clock: with a gap no frame leaves before */

	/*
	 * tx_clock of the first of several timeouts in a row whose cause is not known yet; 0 = none
	 */
	uint64_t cc_quiet;
	STAILQ_HEAD(, raw_flush) flushes;
	LIST_HEAD(, raw_zc) zc;
	TAILQ_ENTRY(raw_tx) link;       /* in iface->tx_list */
	TAILQ_ENTRY(raw_tx) stall_link; /* while win_frames < win_whole */
	uint32_t take_next;             /* stalled: frames before this one have been taken back */
	uint32_t late;                  /* ns; see tail_answered() */
	/* round-trip samples refused: the frame's timestamp was too old */
	uint8_t stale_missed;
	/* live_clock of the last request or retransmission of the timer; 0 = none */
	uint64_t tail_at;
	uint64_t loss_timer; /* tx_clock; 0 = no frame is a candidate for loss */
};

static_assert(offsetof(struct raw_tx, cc) <= RTE_CACHE_LINE_MIN_SIZE, "first line of a sender");
static_assert(offsetof(struct raw_tx, cc_quiet) <= 2 * RTE_CACHE_LINE_MIN_SIZE,
	      "second line of a sender");

static inline struct raw_slot *raw_slot(const struct raw_tx *tx, uint32_t seq)
{
	return &tx->slots[seq & tx->slot_mask];
}

/** @return the number of frames that were sent and are not acknowledged */
static inline uint32_t raw_tx_outstanding(const struct raw_tx *tx)
{
	return tx->next - tx->una;
}

#endif /* WEFT_ENGINE_CONN_TX_H */
