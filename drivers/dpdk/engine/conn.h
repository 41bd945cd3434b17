/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/conn.h
 * A connection of the raw-DPDK lane engine: its state, and what holds the frames that it sent.
 *
 * Ownership of a data frame: the connection's slot holds one reference of every mbuf of the chain
 * until the frame is acknowledged, the TX queue or the NIC holds another while it is to be sent.
 * Only when both are gone does the buffer return to its pool, and user memory of a zero-copy send
 * to its owner.
 */
#ifndef WEFT_ENGINE_CONN_H
#define WEFT_ENGINE_CONN_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "base/deadline.h"
#include "engine/loss.h"
#include "engine/mtu_search.h"
#include "engine/rtt.h"
#include "engine/sack.h"
#include "frame/encap.h"
#include "frame/parse.h"
#include "lane.h"

#define RAW_CONNS_MAX 65536u
#define RAW_TIME_WAIT_MAX 256u
#define RAW_TIME_WAIT_NS 2000000000ull
#define RAW_WIN_FRAMES 512u /* with WEFT_CC=fixed, and WEFT_WINDOW=auto in bytes */
#define RAW_WIN_BYTES (1024u * 1024)
#define RAW_RESERVE_NS 20000000ull /* after connecting: is there traffic? (engine/path_open.c) */
/* With congestion control: the bound of what follows from the path, in bytes and peer's rings. */
#define RAW_WIN_BYTES_MAX (64u << 20)
#define RAW_WIN_RINGS 4u
#define RAW_BYE_GRACE 2000000ull
#define RAW_TMPL 96u /* encapsulation + lane header, rounded up for the copy */
#define RAW_NEVER WEFT_NEVER
#define RAW_FOREVER (WEFT_NEVER / 4) /* a time limit that is never reached, and can be added to */

static_assert(WEFT_ENCAP_MAX + sizeof(struct weft_frame_hdr) <= RAW_TMPL, "template");

struct weft_cc;
struct raw_part;
struct raw_copy;
struct raw_flush;
struct raw_iface;
struct raw_multi;
struct raw_zc;

enum raw_state {
	RAW_RESOLVE,   /* initiator: who has the next hop's address? */
	RAW_HELLO,     /* initiator: HELLO is out */
	RAW_PROBE,     /* initiator: looking for the frame size that arrives */
	RAW_PATHS,     /* initiator: looking for the ports of the other paths */
	RAW_MEASURE,   /* initiator: frames of that size arrive; how fast? */
	RAW_READY,     /* initiator: READY is out */
	RAW_HALF_OPEN, /* responder: HELLO_ACK is out, READY awaited */
	RAW_UP,
	RAW_QUIET,     /* says nothing more: another lane gets its messages (engine/reap.c) */
	RAW_DOWN,      /* failed or closed by the peer; waits for ep_destroy() */
	RAW_TIME_WAIT, /* destroyed; answers late frames, repeats BYE */
};

/* What has been done about the silence since the last acknowledgement (engine/retransmit.c). */
enum raw_tail {
	RAW_TAIL_NONE,
	RAW_TAIL_ASKED,  /* memory only: a frame without data requests an acknowledgement */
	RAW_TAIL_PROBED, /* the newest frame has been sent again */
};

enum raw_ack { RAW_ACK_NONE, RAW_ACK_DELAYED, RAW_ACK_NOW };

/* A frame that was sent and is not acknowledged. */
struct raw_slot {
	union {
		struct rte_mbuf *m;    /* NULL = acknowledged */
		struct raw_copy *copy; /* taken_back: see engine/share.c */
	};
	uint64_t sent;    /* et of the last transmission */
	uint32_t order;   /* of it, on its path */
	uint32_t payload; /* message bytes, for lane_ep->queued */
	uint16_t bytes;   /* lane bytes, for the window */
	uint8_t path;
	uint8_t tries;
	bool taken_back;
	bool lost; /* and not sent again: it is not in flight (engine/window.c) */
};

/*
 * A flow inside the lane: one pair of UDP ports, the same in both directions, with a window of its
 * own where congestion control says so (engine/window.h).
 */
struct raw_path {
	struct weft_rtt rtt;
	struct weft_loss loss;
	uint32_t order;        /* of the next frame */
	uint16_t sport, dport; /* ours, the peer's */
	uint32_t retransmits;
	uint32_t inflight;  /* with RAW_WATCH_MANY: lane bytes */
	uint32_t acked;     /* the same: since its congestion control was told */
	uint32_t ask_bytes; /* after so many the peer is asked to acknowledge; 0 = it need not be */
	uint32_t asked;     /* since it was */
	uint16_t marked;    /* the peer's frames that came marked, modulo 2^16 */
	uint16_t echoed;    /* ours, as the peer has told */
	uint32_t marks;     /* of them, those that congestion control has not been told */
};

/*
 * What the handshake finds out about the way (engine/measure.c). Times by the platform's clock, ns.
 */
struct raw_measure {
	uint64_t begin;
	uint64_t until; /* initiator: lt, the train ends */
	uint64_t sent;  /* initiator: of the last ping; responder: of its last answer to one */
	uint64_t last;  /* frame of the train: acknowledged (initiator), received (responder) */
	uint64_t mark;  /* the present stretch of the train began */
	uint64_t slow_mark;
	float best;           /* ns per frame of the fastest stretch; 0 = none yet */
	uint32_t rtt;         /* least of a small frame; 0 = none yet */
	uint32_t check;       /* what a checksum over a frame takes */
	uint16_t pings, same; /* pings made; samples since the best one */
	uint16_t out, done;   /* frames of the train: sent, over */
	uint16_t id;          /* responder: of the last ping */
};

/* The search for the peer's MAC address: see engine/move.c. */
struct raw_move {
	uint64_t next;     /* lt; not looked for before */
	uint64_t answered; /* bit k: question newest - k */
	uint32_t newest;   /* of the peer's questions that were answered */
	uint32_t asked;    /* our questions */
	uint32_t over;     /* those of them that were before the last move */
	uint32_t turn;     /* whose turn it is of those that say they have the address */
};

/* What says, unproven, that the peer is gone or has moved: see engine/doubt.c. */
enum raw_hint { RAW_HINT_ARP, RAW_HINT_ICMP, RAW_HINT_MAC, RAW_HINTS };

struct raw_doubt {
	struct {
		uint64_t next; /* lt; others are not checked before */
		uint8_t vain;  /* so many came, and the peer lived: the wait doubles */
	} hint[RAW_HINTS];
	uint64_t since, at; /* lt; of the hint, of the next question */
	uint8_t left;       /* questions, unless it answers */
};

/* The path's MTU while the connection is up: see engine/mtu.c. Times are lt. */
struct raw_mtu {
	uint64_t next;    /* a round of the search, or the next try for more; 0 = none is due */
	uint64_t again;   /* not before is lost frames' size doubted again */
	uint32_t suspect; /* a frame that was lost several times */
	uint16_t told;    /* size that the protocol layer knows of */
	uint8_t raises;   /* tries for more since the size has changed */
	bool searching, raising;
	bool parts; /* the peer takes them */
};

struct raw_conn {
	/* Line 0: all that a small send into an open frame touches. */
	struct weft_lane_ep base;
	uint8_t *open_pos;  /* where the next message goes */
	uint32_t open_room; /* 0 = no open frame */
	uint8_t state;      /* enum raw_state */
	uint8_t csum;       /* enum weft_frame_csum, agreed */
	uint8_t path_watch; /* see engine/multipath.h; 0 = frames all go one way */
	uint8_t ack_state;  /* enum raw_ack */

	/* Line 1: sending a frame, taking an acknowledgement. */
	struct rte_mbuf *open __rte_cache_aligned;
	struct raw_slot *slots;
	uint32_t slot_mask;
	uint32_t snd_una, snd_next;
	uint32_t sack_high; /* one past the newest sequence that a SACK named; snd_una = none */
	uint32_t inflight;  /* lane bytes */
	uint32_t win_bytes, win_frames;
	uint8_t next_path;
	uint8_t backoff;
	uint8_t tail; /* enum raw_tail */
	bool on_tx_list;
	uint64_t timer; /* et of tail probe or RTO; 0 = nothing outstanding */
	/*
	 * lt since when all before round_end are wanted, of which one at least is not acknowledged
	 */
	uint64_t round_at;

	/* Line 2: receiving a frame. */
	uint64_t seen __rte_cache_aligned; /* lt of the last valid frame */
	uint64_t ack_due;
	uint64_t ts_at; /* now, when ts_echo came */
	uint32_t ts_echo;
	uint32_t ack_bytes;
	uint16_t ack_frames;
	uint8_t echo_path;
	bool ts_valid;
	bool on_ack_list;
	bool heard;           /* DATA has come since the last zero-copy send */
	uint8_t echo_wait;    /* DATA frames that go without an echo before the next one with */
	uint8_t echo_missed;  /* arrivals of which nobody knows when they were */
	uint8_t echo_asked;   /* those of them that requested an acknowledgement */
	uint8_t stale_missed; /* round trips refused, since the frame was stamped long before */
	uint8_t mark_acks;    /* ACKs to come that tell marks */
	bool ack_asked;       /* ACK_REQ is out for one, and nothing has been acknowledged since */
	uint32_t probe_wait;  /* ns from a frame to its tail probe: follows the round trip */
	uint64_t et_at;       /* when raw_timers() checks it; RAW_NEVER = it need not */
	struct weft_rxwin rx; /* next and high still on this line */

	/* Per frame, but not per message. */
	uint8_t tmpl[RAW_TMPL] __rte_cache_aligned;
	struct weft_encap_hdr encap;
	bool ect;            /* our frames may be marked: the peer tells it, and we heed it */
	uint16_t frame_size; /* agreed */
	uint16_t cut;        /* longer frames go in parts (engine/parts.c); UINT16_MAX = none */
	uint16_t txq_need;   /* places in the queue that the longest frame takes */
	uint32_t room;       /* bytes for messages in a frame that is not longer */
	/* Congestion control, one for each path; NULL: the window is fixed (engine/window.h). */
	struct weft_cc *cc;
	int32_t cc_left;         /* bytes until raw_window_ask() */
	uint32_t cc_acked;       /* bytes since congestion control was told */
	bool cc_full;            /* since then the window kept a frame back */
	struct raw_multi *multi; /* NULL: there is one path */
	struct raw_path path[WEFT_FRAME_PATHS_MAX];

	/* et: first of several timeouts of which nobody knows yet what was silent; 0 = of none */
	uint64_t cc_quiet;
	uint64_t cc_next;  /* et: not before may the next frame leave, with a gap */
	uint32_t cc_limit; /* bytes in flight */
	uint32_t cc_gap;   /* ns between frames; 0 = none */
	uint32_t cc_lost;  /* frames that are lost and wait to be sent again */

	uint32_t round_end;
	uint32_t hdr_held; /* small buffers in its zero-copy frames */

	/* Cold. */
	struct raw_iface *iface;
	uint32_t win_whole;               /* win_frames of a peer that acknowledges */
	uint32_t rx_first;                /* the peer's first sequence */
	uint32_t take_next;               /* stalled: frames before this one have been taken back */
	TAILQ_ENTRY(raw_conn) stall_link; /* while win_frames < win_whole */
	TAILQ_ENTRY(raw_conn) wait_link;  /* in iface->resolving or iface->closed */
	bool resolving, lingers;          /* is in the one list, in the other */
	bool in_hello;
	LIST_ENTRY(raw_conn) hello_link;  /* in iface->hello, while in_hello: the peer made it */
	uint32_t id, token;               /* ours */
	uint32_t remote_id, remote_token; /* the peer's */
	uint64_t secret, remote_secret;   /* in no frame but HELLO and its answer */
	uint64_t cookie;                  /* initiator: from HELLO_RETRY */
	struct raw_move move;
	struct raw_doubt doubt;
	TAILQ_ENTRY(raw_conn) hop_link; /* in iface->by_hop, while in_hop */
	bool in_hop;
	TAILQ_ENTRY(raw_conn) half_link;
	bool unplaced; /* responder: ARP does not name, yet, the MAC that HELLO came from */
	uint8_t hello_mac[6];
	uint8_t half_bucket, half_mac;
	bool half_shown; /* the sender gets what is sent to its address */
	uint64_t remote_worker, remote_iface;
	uint32_t peer_ip, hop_ip;
	uint16_t peer_port;  /* that it listens on */
	uint8_t peer_queues; /* its NIC hashes to so many, or 0 */
	uint8_t peer_paths;
	uint8_t paths;  /* that we send over */
	bool path_busy; /* the window keeps frames back */
	bool ack_all;   /* the next ACK goes over all paths: those of its like do not come back */
	uint8_t reply_path;      /* 1 + path of an ACK that wants an answer; 0 = none does */
	uint8_t path_count;      /* paths wanted, and then found: of `paths` at least */
	uint8_t path_small_acks; /* small frames over path 0 answered in the meantime */
	uint16_t path_id;        /* of the last probe before */
	uint16_t path_found;     /* initiator: bit k: path k has its ports */
	bool elsewhere;          /* a path leads to another worker's queue, here or there */
	bool hash_wrong;         /* answers came elsewhere than the driver's hash says */
	uint32_t port_cursor;    /* of weft_path_port() */
	uint8_t peer_mac[6];
	uint32_t late;         /* ns; see raw_tail_answered() */
	uint64_t tail_at;      /* lt of the last question or frame sent again; 0 = of none */
	uint64_t loss_timer;   /* et; 0 = no suspect waits for patience */
	uint64_t next_ping;    /* lt */
	uint32_t pings;        /* questions since the last sign of life */
	uint64_t hs_next;      /* lt of the next try of a handshake step, or of BYE */
	uint64_t doomed_at;    /* lt; silent for WEFT_PEER_TIMEOUT: the last check of other lanes */
	uint64_t beat_at;      /* lt of the last ALIVE, */
	uint64_t own_seen;     /* and of the last frame before that the peer's owner sent */
	uint64_t suspect_next; /* lt: not before is it said again that it may be dead */
	uint64_t hs_started;
	uint64_t hs_expire;
	uint32_t hs_tries;
	bool hs_late;                  /* the log has a line about the time that it takes */
	struct weft_mtu_search search; /* times are lt */
	struct raw_mtu mtu;
	LIST_HEAD(, raw_part) parts; /* frames of which not all parts have come */
	uint32_t num_parts;
	uint16_t probe_id;
	uint32_t peer_rx_frames, peer_rx_bufs;
	uint32_t peer_rx_seqs; /* sequences that it remembers */
	struct raw_measure measure;
	/*
	 * lt; the peer has closed, and what it sent before may still arrive until then; 0 = it has
	 * not
	 */
	uint64_t bye_at;
	uint32_t bye_seq;
	uint8_t bye_path;
	bool bye_done;
	int error; /* while DOWN */
	LIST_HEAD(, raw_zc) zc;
	STAILQ_HEAD(, raw_flush) flushes;
	TAILQ_ENTRY(raw_conn) tx_link;
	TAILQ_ENTRY(raw_conn) ack_link;
	TAILQ_ENTRY(raw_conn) link;
};

/* DPDK's idea of a line: 64 bytes; 128 on arm64, where some processors have that. */
static_assert(offsetof(struct raw_conn, open) == RTE_CACHE_LINE_SIZE, "hot line 0");
static_assert(offsetof(struct raw_conn, seen) == 2 * RTE_CACHE_LINE_SIZE, "hot line 1");
static_assert(offsetof(struct raw_conn, rx) + offsetof(struct weft_rxwin, bits) <=
		      3 * RTE_CACHE_LINE_SIZE,
	      "hot line 2");

static inline struct raw_conn *raw_conn_of(struct weft_lane_ep *lane_ep)
{
	return (struct raw_conn *)lane_ep;
}

static inline struct raw_slot *raw_slot(struct raw_conn *c, uint32_t seq)
{
	return &c->slots[seq & c->slot_mask];
}

static inline struct weft_frame_hdr *raw_hdr(const struct raw_conn *c, struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod_offset(m, struct weft_frame_hdr *, c->encap.len);
}

struct raw_conn *raw_conn_new(struct raw_iface *iface, bool passive);
/* Only for connections that the protocol layer does not know (any more). */
void raw_conn_free(struct raw_conn *c);
void raw_conn_up(struct raw_conn *c, uint16_t frame_size);
void raw_conn_fail(struct raw_conn *c, int status, const char *text);
void raw_conn_bye(struct raw_conn *c);
void raw_conn_bye_input(struct raw_conn *c, const struct weft_frame_view *v);
/* The connection waits for ARP, or no more: it is in iface->resolving. */
void raw_resolving(struct raw_conn *c, bool yes);
/* The program has closed it: it stays a while to answer late frames, if the peer has seen it. */
void raw_conn_linger(struct raw_conn *c, bool met);

#endif /* WEFT_ENGINE_CONN_H */
