/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/conn.h
 * A connection of the raw-DPDK lane engine: its state, with the halves of receiver and sender, and
 * the tables that find it.
 */
#ifndef WEFT_ENGINE_CONN_H
#define WEFT_ENGINE_CONN_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_mbuf.h>

#include "base/container.h"
#include "engine/iface.h"
#include "engine/rules.h"
#include "frame/frame.h"
#include "frame/parse.h"
#include "lane.h"

/* ------------------------------------------------------------------ the receiver's half */

#define RAW_ACK_DELAY 25000ull /* ns that an ACK waits for data that carries it */
#define RAW_ACK_FRAMES 8u      /* DATA frames after which an ACK is due at once */
#define RAW_ACK_BYTES 65536u
/* one of this number of sent DATA frames has an echo, which costs reading the clock */
#define RAW_ECHO_EVERY 16u

enum raw_ack { RAW_ACK_NONE, RAW_ACK_DELAYED, RAW_ACK_NOW };

struct raw_rx {
	/* One cache line: all fields that each received frame touches. */
	uint64_t seen;      /* live_clock of the last valid frame */
	uint64_t ack_due;   /* tx_clock at which a delayed acknowledgement is to leave */
	uint64_t ts_at;     /* iface->now when the frame with ts_echo arrived */
	uint32_t ts_echo;   /* timestamp of the last received DATA frame */
	uint32_t ack_bytes; /* bytes of messages delivered since the last acknowledgement */
	uint16_t ack_frames;
	uint8_t ack_state; /* enum raw_ack */
	uint8_t echo_path;
	bool ts_valid;
	bool on_ack_list;
	bool data_received; /* DATA was received since this end's last zero-copy send */
	uint8_t echo_wait;  /* DATA frames to be sent without an echo before one with an echo */
	/* frames of rough arrival time that got no echo, since one got an echo */
	uint8_t echo_missed;
	/* frames of rough arrival time that request an ACK: every fourth still gets an echo */
	uint8_t echo_requested;
	uint8_t mark_acks; /* number of ACKs, still to be sent, that report marks */
	/* 1 + path of a received ACK with ACK_REQ: the next ACK takes it; 0 = no such request */
	uint8_t reply_path;
	uint32_t first; /* sequence of the peer's first frame */
	struct weft_rxwin win;

	TAILQ_ENTRY(raw_rx) ack_link; /* in iface->ack_list, while on_ack_list */
	/* A duplicate, or a frame beyond the window, came: the next ACK goes over all paths. */
	bool ack_all;
	bool gap_reads;    /* the peer accepts blocks of gaps (struct raw_conn_gap) */
	uint8_t gap_times; /* further frames that contain the last block */
	uint32_t gap_sent; /* iface->gaps.count at the last block that was made */
};

static_assert(offsetof(struct raw_rx, ack_link) <= RTE_CACHE_LINE_MIN_SIZE, "line of a receiver");

void raw_rx_init(struct raw_rx *rx, uint32_t first);
/** After a long silence: frees the ring of received sequences, unless the ring has a hole. */
void raw_rx_idle(struct raw_rx *rx);
void raw_rx_free(struct raw_iface *iface, struct raw_rx *rx);
/** Makes all delayed acknowledgements of the iface due now. */
void raw_rx_hurry(struct raw_iface *iface);
/** @return WEFT_FRAME_HOLD_UNITs since the last DATA frame; WEFT_FRAME_NO_ECHO: too many */
uint16_t raw_rx_hold(const struct raw_iface *iface, const struct raw_rx *rx);

/** Did the last DATA frame arrive just now? If not, an ACK only repeats the echo of that frame. */
static inline bool raw_rx_is_new(const struct raw_iface *iface, const struct raw_rx *rx)
{
	return iface->now - rx->ts_at <= 2 * RAW_ACK_DELAY;
}

/** An acknowledgement of all that was received has left, or none is to be sent. */
static inline void raw_rx_acked(struct raw_rx *rx)
{
	rx->ack_state = RAW_ACK_NONE;
	rx->ack_frames = 0;
	rx->ack_bytes = 0;
}

/** DATA is sent. It carries the acknowledgement; holes and marks still need an ACK. */
static inline void raw_rx_carried(struct raw_iface *iface, struct raw_rx *rx)
{
	if (rx->ack_state == RAW_ACK_NONE || weft_rxwin_has_hole(&rx->win) || rx->mark_acks != 0)
		return;
	raw_rx_acked(rx);
	/* Without another connection in the list, raw_acks_send_due() has nothing to do. */
	if (TAILQ_FIRST(&iface->ack_list) == rx && !TAILQ_NEXT(rx, ack_link))
		iface->acks_due = WEFT_NEVER;
}

static inline void raw_rx_schedule_ack(struct raw_iface *iface, struct raw_rx *rx, enum raw_ack how)
{
	if (how > rx->ack_state) {
		if (rx->ack_state == RAW_ACK_NONE)
			rx->ack_due = iface->tx_clock + RAW_ACK_DELAY;
		/* The list is not sorted, so acks_due is kept as its earliest due time. It may be
		 * too early: data may have carried that acknowledgement. */
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

/** @p bytes: of messages, with their headers. @p requested: the frame requests an ACK. */
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

/** An echo costs reading the clock, so most DATA frames have none. */
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

/* ------------------------------------------------------------------ the sender's half */

/*
 * Ownership of a data frame: the connection's slot holds one reference of every mbuf of the chain
 * until the frame is acknowledged, or copied to the heap (raw_slot.taken_back). The TX queue or the
 * NIC holds another while the frame is to be sent. When both are gone, the buffer returns to its
 * pool, and user memory of a zero-copy send to its owner.
 */

struct raw_copy;
struct raw_flush;
struct raw_zc;
struct weft_cc;

/* What the timer has sent since the last acknowledgement (engine/reliability.c). */
enum raw_tail {
	RAW_TAIL_NONE,
	RAW_TAIL_ACK_REQUESTED, /* memory ports: a frame without data has requested an ACK */
	RAW_TAIL_PROBED,        /* the newest unacknowledged frame has been retransmitted */
};

/*
 * What zero-copy sends have done since the last acknowledgement: nothing; requested an ACK; or
 * requested none, since the peer's data is expected to carry it (want_ack()).
 */
enum raw_zc_ack { RAW_ZC_ACK_NONE, RAW_ZC_ACK_REQUESTED, RAW_ZC_ACK_NO_REQUEST };

/* The frame of a sequence from raw_tx.una to raw_tx.next - 1. */
struct raw_slot {
	union {
		struct rte_mbuf *m;    /* NULL = acknowledged */
		struct raw_copy *copy; /* taken_back: see engine/outstanding.c */
	};
	uint64_t sent;    /* tx_clock of the last transmission */
	uint32_t order;   /* number of the last transmission on its path: raw_path.order */
	uint32_t payload; /* message bytes, for lane_ep->queued */
	uint16_t bytes;   /* length of the lane frame, by which it counts in windows */
	uint8_t path;
	uint8_t tries;
	bool taken_back;
	/* with congestion control: taken for lost, not retransmitted yet, not in flight */
	bool lost;
};

struct raw_tx {
	/* One cache line: the fields of sending a frame and of processing an acknowledgement. */
	struct rte_mbuf *open;
	struct raw_slot *slots;
	uint32_t slot_mask;
	uint32_t una, next; /* sequences: the oldest one without acknowledgement, the next one */
	uint32_t sack_high; /* one past the newest sequence in a SACK; una = none */
	uint32_t inflight;  /* sum of raw_slot.bytes of the frames in flight */
	uint32_t win_bytes, win_frames;
	uint8_t backoff;
	uint8_t tail;   /* enum raw_tail */
	uint8_t zc_ack; /* enum raw_zc_ack */
	bool on_list;
	uint64_t timer; /* tx_clock of tail probe or RTO; 0 = nothing outstanding */
	/* live_clock: begin of the wait for ACKs up to round_end, or the peer's later heartbeat */
	uint64_t round_at;

	/* One cache line: fields that each frame uses, but not each message. */
	/* Congestion control, one for each path; NULL: the window is fixed (engine/window.h). */
	struct weft_cc *cc;
	int32_t cc_left;     /* bytes of lane frames until raw_window_ack_req() is called */
	uint32_t cc_acked;   /* bytes acknowledged since the last on_ack() */
	uint32_t cc_limit;   /* bytes in flight up to which frames leave, for all paths */
	uint32_t cc_gap;     /* ns from one full frame to the next; 0 = no pacing */
	uint32_t cc_lost;    /* frames that are lost and wait for their retransmission */
	uint32_t probe_wait; /* ns without an acknowledgement, after which a tail probe is sent */
	uint32_t room;       /* bytes for messages in a frame that is sent whole */
	uint32_t round_end;
	uint32_t win_whole; /* win_frames while the peer does not stall */
	uint32_t hdr_held;  /* mbufs that this connection's unacknowledged zero-copy frames hold */
	/* bytes: longer Ethernet frames go in parts (engine/mtu.c); UINT16_MAX = no frame does */
	uint16_t cut;
	/* longer frames do not go to the port as they are: the value of `cut`, or 0 if sealed */
	uint16_t direct;
	uint8_t txq_need; /* places in iface->txq that the longest frame takes */
	/* since the last on_ack() the window has held a frame back, or a frame was lost */
	bool cc_full;
	/*
	 * 0: the peer's data carried the last acknowledgement that no zero-copy send had requested.
	 * Else an ACK frame carried it: 1 + the number of zero-copy sends since then before which
	 * DATA arrived (want_ack())
	 */
	uint8_t acked_alone;
	uint8_t limit; /* 1 + the enum raw_limit that holds frames back; 0 = none does */
	/* tx_clock of the first timeout in a row, until its cause is known; 0 = none */
	uint64_t cc_quiet;

	uint64_t cc_next; /* tx_clock before which no paced frame leaves, if cc_gap != 0 */
	STAILQ_HEAD(, raw_flush) flushes;
	LIST_HEAD(, raw_zc) zc;
	TAILQ_ENTRY(raw_tx) link;       /* in iface->tx_list */
	TAILQ_ENTRY(raw_tx) stall_link; /* in iface->share.stalled, while win_frames < win_whole */
	uint32_t take_next; /* while stalled: sequence from which on frames are to be taken back */
	/* ns: largest age of a frame that the peer acknowledged late, decaying: tail_answered() */
	uint32_t late;
	/* live_clock of the last request or retransmission of the timer; 0 = none */
	uint64_t tail_at;
	uint64_t loss_timer; /* tx_clock of the next raw_loss_detect(); 0 = none is due */
};

static_assert(offsetof(struct raw_tx, cc) <= RTE_CACHE_LINE_MIN_SIZE, "first line of a sender");
static_assert(offsetof(struct raw_tx, cc_next) <= 2 * RTE_CACHE_LINE_MIN_SIZE,
	      "second line of a sender");

static inline struct raw_slot *raw_slot(const struct raw_tx *tx, uint32_t seq)
{
	return &tx->slots[seq & tx->slot_mask];
}

/** @return number of frames from the oldest unacknowledged one on, those in a SACK included */
static inline uint32_t raw_tx_outstanding(const struct raw_tx *tx)
{
	return tx->next - tx->una;
}

/* ------------------------------------------------------------------ tables and counts */

#define RAW_CONNS_MAX 65536u
#define RAW_TIME_WAIT_MAX 256u
#define RAW_TIME_WAIT_NS 2000000000ull
#define RAW_WIN_FRAMES 512u /* WEFT_CC=fixed: most frames in flight */
/* WEFT_CC=fixed without WEFT_WINDOW: most bytes in flight */
#define RAW_WIN_BYTES (1024u * 1024)
/* ns from connecting to the first check whether traffic needs reserve paths: raw_path_reserve() */
#define RAW_RESERVE_NS 20000000ull
/* With congestion control: bounds of the window: bytes (without WEFT_WINDOW), peer's RX rings. */
#define RAW_WIN_BYTES_MAX (64u << 20)
#define RAW_WIN_RINGS 4u
/* Bytes of headers copied from raw_conn.tmpl. With IPv6 raw_stamp() fills the header's end. */
#define RAW_TMPL 96u
#define RAW_HEAD_MAX (WEFT_ENCAP_MAX + (uint32_t)sizeof(struct weft_frame_hdr))
/* raw_conn.csum, never sent: frames have a tag, and only with IPv6 a checksum, that of UDP. */
#define RAW_CSUM_SEALED 3u
#define RAW_NEVER WEFT_NEVER
/* a timeout that never expires; sums with it do not overflow */
#define RAW_FOREVER (WEFT_NEVER / 4)

static_assert(WEFT_ENCAP_MAX + offsetof(struct weft_frame_hdr, order) <= RAW_TMPL, "template");

struct raw_part;
struct raw_hs;
struct raw_iface;
struct raw_move;
struct raw_multi;
struct raw_sealed;
struct weft_mtu_search;

enum raw_state {
	RAW_RESOLVE,   /* initiator: ARP looks for the next hop's MAC address */
	RAW_HELLO,     /* initiator: HELLO is sent */
	RAW_PROBE,     /* initiator: searches the longest frame that arrives */
	RAW_PATHS,     /* initiator: searches the ports of the other paths */
	RAW_MEASURE,   /* initiator: measures latency and rate of the path */
	RAW_READY,     /* initiator: READY is sent */
	RAW_HALF_OPEN, /* responder: HELLO_ACK is sent, READY awaited */
	RAW_UP,
	RAW_QUIET,     /* sends nothing more: another lane gets its messages (engine/ep.c) */
	RAW_DOWN,      /* failed, or closed by the peer; ends with ep_destroy() */
	RAW_TIME_WAIT, /* destroyed; answers late frames, repeats BYE */
};

/* A flow inside the lane: one pair of UDP ports, the same in both directions. */
struct raw_path {
	struct weft_rtt rtt;
	struct weft_loss loss;
	uint32_t order;        /* send order of the next frame */
	uint16_t sport, dport; /* ours, the peer's */
	uint32_t retransmits;
	uint32_t inflight; /* as raw_tx.inflight, of this path; only with RAW_WATCH_MANY */
	/* raw_slot.bytes acknowledged since the path's last on_ack(); only with RAW_WATCH_MANY */
	uint32_t acked;
	uint32_t ack_req_bytes; /* bytes after which a frame requests an ACK; 0 = no frame does */
	uint32_t since_ack_req; /* bytes sent since that request; only with RAW_WATCH_MANY */
	uint16_t marked;        /* frames received with a congestion mark, modulo 2^16 */
	uint16_t echoed;        /* number of our frames with a mark that the peer has reported */
	uint32_t marks;         /* those of `echoed` that congestion control has not counted yet */
};

struct raw_measured {
	uint32_t rtt;   /* ns: least round trip of a small frame; 0 = none yet */
	uint32_t check; /* ns that this host takes for a CRC32C over a full frame */
	float frame;    /* ns per full frame; 0 = too few frames arrived */
};

/* The path's MTU while the connection is up: see engine/mtu.c; mtu_next, mtu_again. */
struct raw_mtu {
	uint32_t suspect; /* sequence of the frame whose length is suspected */
	uint16_t reported;
	uint8_t raises; /* tries of larger frames since the size has changed */
	bool searching, raising;
	bool parts; /* the peer accepts frames in parts */
};

/* ---------------------------------------------------------------- liveness */

/* Times are live_clock. */

#define RAW_BYE_GRACE 2000000ull
/* Least ns between two reports as suspect: the timer may expire every WEFT_PROBE_MIN. */
#define RAW_SUSPECT_AGAIN_NS 5000000ull

struct raw_live {
	uint64_t next_ping;
	/* time at which WEFT_PEER_TIMEOUT was over, and the last check of other lanes began */
	uint64_t doomed_at;
	uint64_t beat_at;      /* time of the last ALIVE frame */
	uint64_t own_seen;     /* time of the last frame before beat_at that was no ALIVE frame */
	uint64_t suspect_next; /* silence causes no further EV_SUSPECT before this time */
	/* keepalives, queries after hints and timeouts since the last valid frame, sent or not */
	uint32_t pings;
	bool socket; /* the peer's host reports when its process is gone */
};

/**
 * @p seen: time of the peer's last frame. @return the time of its last frame other than a
 * heartbeat, which does not show that the lane works
 */
static inline uint64_t raw_live_seen(const struct raw_live *live, uint64_t seen)
{
	return seen == live->beat_at ? live->own_seen : seen;
}

/** A heartbeat arrives. @p seen: time of the frame before it. */
static inline void raw_live_beat(struct raw_live *live, uint64_t seen, uint64_t now)
{
	live->own_seen = raw_live_seen(live, seen);
	live->beat_at = now;
}

static inline bool raw_live_reports(const struct raw_live *live, uint64_t now)
{
	return now >= live->suspect_next;
}

static inline void raw_live_reported(struct raw_live *live, uint64_t now)
{
	live->suspect_next = now + RAW_SUSPECT_AGAIN_NS;
}

struct raw_bye {
	/* live_clock until which frames from before the peer's BYE may arrive; 0 = no BYE */
	uint64_t at;
	uint32_t seq; /* sequence in BYE: one past the peer's last frame */
	uint8_t path;
	bool done; /* the peer needs no BYE of ours: it has ended, or has never met this end */
};

static inline void raw_bye_take(struct raw_bye *bye, uint32_t seq, uint8_t path, uint64_t now)
{
	bye->path = path;
	if (bye->at == 0) {
		bye->at = now + RAW_BYE_GRACE;
		bye->seq = seq;
	}
}

static inline bool raw_bye_waits(const struct raw_bye *bye, uint32_t next, uint64_t now)
{
	return next != bye->seq && now < bye->at;
}

/* Progress blocks of a connection: see "gaps between polls" below. */
struct raw_conn_gap {
	uint16_t longest;    /* the field `longest` of the last block that was made */
	uint16_t peer_total; /* the field `total` of the peer's last block, if `reported` */
	bool reported;       /* the peer has sent such a block */
};

/* ---------------------------------------------------------------- a connection */

struct raw_conn {
	/* Cache line 0: all fields that a small send into an open frame touches. */
	struct weft_lane_ep base;
	uint8_t *open_pos;
	uint32_t open_room; /* bytes left in the open frame; 0 if there is none */
	uint8_t state;      /* enum raw_state */
	uint8_t csum;       /* enum weft_frame_csum, agreed; or RAW_CSUM_SEALED */
	uint8_t path_watch; /* RAW_WATCH_* (engine/multipath.h); 0 = all frames take one path */
	uint8_t next_path;

	/* Cache line 1: receiving a frame. */
	struct raw_rx rx __rte_cache_aligned;

	/* Fields that each frame uses, but not each message. */
	/* tx_clock of the next check by raw_timers(); RAW_NEVER = none */
	uint64_t tx_clock_at;
	struct raw_multi *multi; /* NULL: there is one path */
	struct raw_path *path;   /* &first_path; with several paths an allocated array */
	struct raw_iface *iface;
	uint8_t path_room; /* allocated entries of `path` */
	bool ect;          /* sends ECT(0): the peer reports marks, and the window follows them */
	/* bytes of the longest frame, Ethernet header included, on which both ends agreed */
	uint16_t frame_size;
	uint32_t id; /* ours; `token` belongs to it */

	/* Cache lines 3 and 4: sending a frame, processing an acknowledgement. */
	struct raw_tx tx __rte_cache_aligned;

	union {
		TAILQ_ENTRY(raw_conn) wait_link; /* in iface->resolving or iface->closed */
		TAILQ_ENTRY(raw_conn) hop_link;  /* in_hop: in its list of iface->by_hop */
	};
	struct weft_table_node by_hello; /* in iface->hello, while in_hello: a responder's */
	struct raw_hs *hs; /* NULL once the connection is up, has failed or is closed */

	/* Two cache lines: the header of each frame. */
	uint8_t tmpl[RAW_HEAD_MAX];
	struct weft_encap_hdr encap;
	struct raw_path first_path;

	uint32_t token;
	uint32_t remote_id, remote_token;
	uint64_t secret, remote_secret; /* only HELLO and HELLO_ACK contain them */
	struct raw_sealed *sealed;      /* NULL: frames are plain (engine/sealed.h) */
	struct raw_move *move;          /* NULL: no hint, CHALLENGE or silence of the peer yet */
	uint64_t remote_iface;
	uint32_t peer_ip, hop_ip;
	uint16_t peer_port; /* UDP port on which the peer listens */
	uint16_t farewell;  /* slot that the port's farewell() has assigned; 0 = none */
	uint16_t hs_tries;  /* of a handshake step, or of BYE */
	uint16_t probe_id;
	uint8_t peer_queues; /* number of queues that the peer's NIC hashes to; 0 = it does not */
	uint8_t paths;      /* configured paths that the handshake has found; trials may add more */
	uint8_t path_count; /* connecting: paths wanted; then paths whose ports both ends have */
	uint8_t num_parts;
	/* sender, with a small window: samples of too old a timestamp; every fourth is used */
	uint8_t stale_missed;
	bool path_busy;          /* more paths may help: full window, growing queue or losses */
	bool elsewhere;          /* a path leads to another worker's queue, at either end */
	bool hash_wrong;         /* answers came to another queue than the driver's hash predicts */
	bool resolving, lingers; /* is in iface->resolving, in iface->closed */
	bool in_hello, in_hop;
	uint8_t peer_mac[6];
	struct raw_conn_gap gap;
	uint32_t port_cursor; /* weft_path_port() continues its search here */
	int error;            /* while DOWN: negative errno of the failure */
	/* Times are live_clock. */
	union {
		/* until the connection is up, and when it is closed */
		struct {
			uint64_t hs_next; /* the next try of a handshake step, or of BYE */
			uint64_t hs_expire;
		};
		/* while it is up */
		struct {
			/* next round of a search, or next try of larger frames; 0 = none is due */
			uint64_t mtu_next;
			uint64_t mtu_again; /* time before which no lost frame begins a search */
		};
	};
	struct weft_mtu_search *search; /* NULL = there is no search */
	LIST_HEAD(, raw_part) parts;    /* frames of which parts are missing */
	struct raw_live live;
	struct raw_bye bye;
	struct raw_mtu mtu;
	struct raw_measured measured;
};

/* This is the size with one path. Each iface may have 65,536 connections. */
static_assert(sizeof(struct raw_conn) <= 896 || RTE_CACHE_LINE_SIZE > 64, "size of a connection");
/* RTE_CACHE_LINE_SIZE is 64 bytes, and 128 on arm64, where some processors have such lines. */
static_assert(offsetof(struct raw_conn, rx) == RTE_CACHE_LINE_SIZE, "hot line 0");
static_assert(offsetof(struct raw_conn, tmpl) % RTE_CACHE_LINE_MIN_SIZE == 0, "two lines");

/* Adds the iface's counters to the history of its capture (capture/tap.h), if they are due. */
void raw_counts_note(const struct raw_iface *iface);

/* Adds the delay of a frame with stamp @p ts to the capture's history, if a sample is due. */
void raw_conn_delay(const struct raw_conn *c, uint8_t path, uint32_t ts);

static inline struct raw_conn *raw_conn_of(struct weft_lane_ep *lane_ep)
{
	return (struct raw_conn *)lane_ep;
}

static inline struct weft_frame_hdr *raw_hdr(const struct raw_conn *c, struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod_offset(m, struct weft_frame_hdr *, c->encap.len);
}

/* Bytes that the agreed checksum or the seal adds to a DATA frame. */
static inline uint32_t raw_csum_len(const struct raw_conn *c)
{
	return c->csum == WEFT_FRAME_CSUM_CRC32C ? 4u
	       : c->csum == RAW_CSUM_SEALED      ? WEFT_FRAME_SEAL_LEN
						 : 0u;
}

/*
 * As raw_csum_len(), for control frames. All of them but ACKs have a CRC32C, unless sealed. DATA
 * frames reserve its room, so that sizes do not depend on the agreed checksum.
 */
static inline uint32_t raw_csum_room(const struct raw_conn *c)
{
	return c->csum == RAW_CSUM_SEALED ? WEFT_FRAME_SEAL_LEN : 4u;
}

static inline bool raw_parts_needed(const struct raw_conn *c, const struct raw_slot *slot)
{
	return (uint32_t)slot->bytes + c->encap.len + raw_csum_len(c) > c->tx.cut;
}

/* ---------------------------------------------------------------- state that few need */

/* Such state has memory of its own, so that a host with many connections needs little. */

#define RAW_HS_RETRY_MIN 1000000ull
#define RAW_HS_RETRY_MAX 100000000ull

/* The handshake's measurement of the path (engine/path_probe.c), in ns of the platform's clock. */
struct raw_measure {
	uint64_t begin;
	uint64_t until; /* initiator: live_clock at which the train ends */
	uint64_t sent;  /* time of the last ping (initiator), or of the last answer (responder) */
	uint64_t last;  /* time of arrival: of the newest acknowledgement, or frame, of the train */
	uint64_t mark;  /* begin of the present stretch of the train */
	uint64_t slow_mark;   /* arrival of a frame: those after it count while best is 0 */
	float best;           /* ns per frame of the fastest stretch; 0 = none yet */
	uint16_t pings, same; /* pings sent; samples since the least round trip fell by over 1/8 */
	uint16_t out, done;   /* frames of the train: sent; acknowledged or received */
	uint16_t id;          /* responder: id of the last ping */
};

/* State of a connection that is being made, until it is up, has failed, or is closed. */
struct raw_hs {
	uint64_t started;
	uint64_t cookie;  /* initiator: from HELLO_RETRY */
	bool late;        /* the log has a line about the slow handshake */
	uint16_t refused; /* initiator with a job key: reason of a RESET after HELLO; 0 = none */

	/* Responder: the half-open entry (engine/lifetime.c). */
	TAILQ_ENTRY(raw_conn) half_link;
	uint8_t half_bucket, half_mac;
	bool half_shown;   /* the peer has proven that it receives at its address */
	bool mac_unproven; /* ARP has not confirmed the source MAC of HELLO yet */
	bool unanswered;   /* a HELLO has got no HELLO_ACK yet */
	uint8_t hello_mac[6];

	/* The peer's, from HELLO. */
	uint32_t peer_rx_frames;
	uint32_t peer_rx_seqs; /* sequences that the peer remembers */
	uint8_t peer_paths;

	/* The search for paths (engine/path_probe.c). */
	uint8_t small_acks;  /* replies to small probes over path 0 */
	uint16_t last_id;    /* id of the last probe before this search */
	uint16_t path_found; /* initiator: bit k: path k has its ports */

	struct raw_measure measure;
};

/* Unproven indications that the peer is gone or has moved. */
enum raw_hint {
	RAW_HINT_ARP,
	RAW_HINT_ICMP,
	RAW_HINT_MAC,
	RAW_HINT_RESET,
	RAW_HINT_GONE,
	RAW_HINTS
};

/* Exists from the first hint, CHALLENGE or silence of the peer on. Times are live_clock. */
struct raw_move {
	uint64_t next;       /* no search for the MAC address begins before this time */
	uint64_t answered;   /* bit k: the peer's CHALLENGE with number newest - k was answered */
	uint32_t newest;     /* number of the newest of the peer's CHALLENGEs that were answered */
	uint32_t challenges; /* number of CHALLENGEs sent */
	uint32_t over;       /* the value of `challenges` at the last move */
	uint32_t next_mac;   /* next index into the MACs that claim the address */

	struct {
		uint64_t next;     /* no further hint of this kind is checked before */
		uint8_t doublings; /* hints checked since a calm time: each doubles the wait */
	} hint[RAW_HINTS];
	uint64_t hint_since; /* when the hint came that is being checked */
	uint64_t query_at;   /* the next query; 0 = no hint is being checked */
	uint8_t queries;     /* queries still to be sent, unless the peer answers */
	bool refused;        /* the hint: the peer's host has reported that its process is gone */
};

/* Allocates what the handshake needs. @return 0 or -ENOMEM */
int raw_state_init(struct raw_conn *c);
void raw_state_free(struct raw_conn *c);

/* Sets the peer's address, once. port->hosts keeps its entry of it until raw_state_free(). */
void raw_state_peer(struct raw_conn *c, uint32_t ip);

/* The handshake is over, or the connection is: c->hs and c->search are freed. */
void raw_state_connected(struct raw_conn *c);
/* Pointers to struct raw_path become invalid. @return 0 or -ENOMEM */
int raw_state_paths(struct raw_conn *c, unsigned int n);

/* Allocates c->move if there is none. @return 0 or -ENOMEM */
int raw_state_move(struct raw_conn *c);

/* ---------------------------------------------------------------- tables of connections */

/*
 * A connection is in by_tx_clock while frames of it are outstanding or paced, or its paths are
 * probed. It is in by_live_clock with its next keepalive or handshake step. So an idle connection
 * costs its keepalives and nothing else.
 *
 * DPDK's rte_timer does not fit. It reads the CPU's cycle counter, but the engine's clocks stop
 * while the worker does not poll (engine/liveness.h), and the simulator's time is virtual. Its
 * lists belong to lcores, and a worker may be any thread. Entering a timer takes a lock and a walk.
 * A timer wheel would round the deadlines that a sleeping worker needs.
 */

/* The keys by which received frames are looked up, without touching the connection. */
struct raw_ref {
	uint32_t id;
	uint32_t token;
	struct raw_conn *conn; /* NULL = free */
};

/* Peer of an index's last ended connection; a half-open one replaces only a half-open one. */
struct raw_gone {
	uint32_t ip;
	uint8_t mac[6];
	bool known, half;
};

/* Takes the index that was free for longest. @return 0; -ENOSPC: none is left; -ENOMEM */
int raw_table_take(struct raw_iface *iface, uint32_t *index);
void raw_table_give(struct raw_iface *iface, uint32_t index);
/*
 * Finds a connection that was made for HELLO @p h, or for another HELLO of the same connection of
 * the peer. Each offer of keys makes a connection, so there may be several. @p after: NULL for the
 * first one, else the result of the call before. @return NULL: there is no further one
 */
struct raw_conn *raw_table_hello(struct raw_iface *iface, const struct weft_frame_hello *h,
				 const struct raw_conn *after);
/* Enters a connection that the peer has initiated: the peer's numbers are known and constant. */
void raw_table_hello_add(struct raw_conn *c);
void raw_table_hello_remove(struct raw_conn *c);
/* A connection is in the list of its next hop from RAW_UP on, until it fails or is freed. */
void raw_table_hop_add(struct raw_conn *c);
void raw_table_hop_remove(struct raw_conn *c);
/* @return connections over this hop, and others of its hash; NULL: the iface had none yet */
struct raw_hop_list *raw_table_hop(struct raw_iface *iface, uint32_t hop_ip);
void raw_table_resolving(struct raw_conn *c, bool yes);
/**
 * Walk over all connections: @p at is 0 at first. A walk may make and free connections.
 * @return NULL: there is no further one
 */
struct raw_conn *raw_table_next(const struct raw_iface *iface, uint32_t *at);
void raw_table_fini(struct raw_iface *iface);

/* A keyed permutation of 2^16 numbers, and its inverse. */
uint16_t raw_generation(const struct weft_siphash_key *key, uint16_t number);
uint16_t raw_generation_number(const struct weft_siphash_key *key, uint16_t generation);

/* ---------------------------------------------------------------- times of the next checks */

void raw_deadline_sooner(struct raw_conn *c, uint64_t t);

/*
 * raw_timers() checks the connection at @p t, or before, and then finds out itself what is due: a
 * timer that is postponed, as by every acknowledgement, has no cost here.
 */
static inline void raw_deadline_tx(struct raw_conn *c, uint64_t t)
{
	if (unlikely(t < c->tx_clock_at))
		raw_deadline_sooner(c, t);
}

void raw_deadline_live(struct raw_conn *c, uint64_t t);
void raw_deadlines_forget(struct raw_conn *c);

/* ------------------------------------------------------------------ gaps between polls */

/* ACKs report gaps, so that the peer can separate this process's delay from that of the path. */

/** The owner did not poll for @p ns, not counting a sleep that a frame would have ended. */
void raw_gap_note(struct raw_iface *iface, uint64_t ns);
/** The peer is known. @p reads: it accepts progress blocks. Earlier gaps are not reported to it. */
void raw_gap_init(struct raw_conn *c, bool reads);
/** Fills the block of the next ACK or BYE. @return false: that frame has no block */
bool raw_gap_take(struct raw_conn *c, struct weft_frame_progress *block);
/** @return ns: the longest gap that is new in @p block; 0 = none */
uint32_t raw_gap_input(struct raw_conn *c, const struct weft_frame_progress *block);

#endif /* WEFT_ENGINE_CONN_H */
