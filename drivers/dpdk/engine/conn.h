/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/conn.h
 * A connection of the raw-DPDK lane engine: its state. The halves of sender and receiver are in
 * engine/conn_tx.h and engine/conn_rx.h.
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

#include "base/container.h"
#include "engine/conn_live.h"
#include "engine/conn_rx.h"
#include "engine/conn_tx.h"
#include "engine/loss_rules.h"
#include "frame/encap.h"
#include "frame/parse.h"
#include "lane.h"

#define RAW_CONNS_MAX 65536u
#define RAW_TIME_WAIT_MAX 256u
#define RAW_TIME_WAIT_NS 2000000000ull
#define RAW_WIN_FRAMES 512u /* with WEFT_CC=fixed, and WEFT_WINDOW=auto in bytes */
#define RAW_WIN_BYTES (1024u * 1024)
#define RAW_RESERVE_NS 20000000ull /* after connecting: check for traffic (engine/path_open.c) */
/* With congestion control: bounds of the window, in bytes and in receive rings of the peer. */
#define RAW_WIN_BYTES_MAX (64u << 20)
#define RAW_WIN_RINGS 4u
#define RAW_TMPL 96u /* encapsulation + lane header, rounded up for the copy */
#define RAW_NEVER WEFT_NEVER
/* a timeout that never expires; sums with it do not overflow */
#define RAW_FOREVER (WEFT_NEVER / 4)

static_assert(WEFT_ENCAP_MAX + sizeof(struct weft_frame_hdr) <= RAW_TMPL, "template");

struct raw_part;
struct raw_hs;
struct raw_iface;
struct raw_move;
struct raw_multi;
struct weft_mtu_search;

enum raw_state {
	RAW_RESOLVE,   /* initiator: ARP looks for the next hop's MAC address */
	RAW_HELLO,     /* initiator: HELLO is sent */
	RAW_PROBE,     /* initiator: searches the frame size that arrives */
	RAW_PATHS,     /* initiator: searches the ports of the other paths */
	RAW_MEASURE,   /* initiator: measures latency and rate of the path */
	RAW_READY,     /* initiator: READY is sent */
	RAW_HALF_OPEN, /* responder: HELLO_ACK is sent, READY awaited */
	RAW_UP,
	RAW_QUIET,     /* sends nothing more: another lane gets its messages (engine/ep.c) */
	RAW_DOWN,      /* failed, or closed by the peer; ends with ep_destroy() */
	RAW_TIME_WAIT, /* destroyed; answers late frames, repeats BYE */
};

/*
 * A flow inside the lane: one pair of UDP ports, the same in both directions. With congestion
 * control it has a window of its own (engine/window.h).
 */
struct raw_path {
	struct weft_rtt rtt;
	struct weft_loss loss;
	uint32_t order;        /* send order of the next frame */
	uint16_t sport, dport; /* ours, the peer's */
	uint32_t retransmits;
	/* Both with RAW_WATCH_MANY only. */
	uint32_t inflight;      /* lane bytes */
	uint32_t acked;         /* lane bytes acknowledged since the last on_ack() of its cc */
	uint32_t ack_req_bytes; /* a frame requests an ACK after this number; 0 = none does */
	uint32_t since_ack_req; /* bytes sent since the last request */
	uint16_t marked;        /* frames received with a congestion mark, modulo 2^16 */
	uint16_t echoed;        /* frames of ours with a mark, as the peer reports: modulo 2^16 */
	uint32_t marks;         /* those of them that congestion control has not got yet */
};

/* What the handshake has measured. */
struct raw_measured {
	uint32_t rtt;   /* ns: least round trip of a small frame; 0 = none yet */
	uint32_t check; /* ns of a checksum over a frame */
	float frame;    /* ns per full frame; 0 = too few frames arrived */
};

/* The path's MTU while the connection is up: see engine/mtu.c. Times are live_clock. */
struct raw_mtu {
	uint64_t next;  /* next round of a search, or next try of larger frames; 0 = none is due */
	uint64_t again; /* no search because of lost frames before */
	uint32_t suspect;  /* sequence of a frame that was lost several times */
	uint16_t reported; /* size that was reported to the protocol layer */
	uint8_t raises;    /* tries of larger frames since the size has changed */
	bool searching, raising;
	bool parts; /* the peer accepts frames in parts */
};

struct raw_conn {
	/* Line 0: all fields that a small send into an open frame touches. */
	struct weft_lane_ep base;
	uint8_t *open_pos;  /* position of the next message */
	uint32_t open_room; /* bytes; 0 = no open frame */
	uint8_t state;      /* enum raw_state */
	uint8_t csum;       /* enum weft_frame_csum, agreed */
	uint8_t path_watch; /* RAW_WATCH_* (engine/multipath.h); 0 = all frames take one path */
	uint8_t next_path;  /* of the next frame */

	/* Line 1: receiving a frame. */
	struct raw_rx rx __rte_cache_aligned;

	/* Fields that each frame uses, but not each message. */
	/* tx_clock of the next check by raw_timers(); RAW_NEVER = none */
	uint64_t tx_clock_at;
	struct raw_multi *multi; /* NULL: there is one path */
	struct raw_path *path;   /* &first_path, or memory of their own for several */
	struct raw_iface *iface;
	uint8_t path_room;   /* entries of path */
	bool ect;            /* frames are ECN-capable: the peer reports marks, cc respects them */
	uint16_t frame_size; /* agreed */

	/* Lines 3 and 4: sending a frame, processing an acknowledgement. */
	struct raw_tx tx __rte_cache_aligned;

	uint8_t tmpl[RAW_TMPL];
	struct weft_encap_hdr encap;
	struct raw_path first_path;

	/* Cold. */
	TAILQ_ENTRY(raw_conn) wait_link; /* in iface->resolving or iface->closed */
	bool resolving, lingers;         /* is in iface->resolving, in iface->closed */
	bool in_hello;
	struct weft_table_node by_hello;  /* in iface->hello, while in_hello: a responder's */
	uint32_t id, token;               /* ours */
	uint32_t remote_id, remote_token; /* the peer's */
	uint64_t secret, remote_secret;   /* only HELLO and HELLO_ACK contain them */
	struct raw_hs *hs;                /* while connecting (engine/handshake.h) */
	struct raw_move *move;            /* NULL: no hint yet, and no silence (engine/move.h) */
	TAILQ_ENTRY(raw_conn) hop_link;   /* in iface->by_hop, while in_hop */
	bool in_hop;
	uint64_t remote_iface;
	uint32_t peer_ip, hop_ip;
	uint16_t peer_port;   /* that the peer listens on */
	uint8_t peer_queues;  /* number of queues that the peer's NIC hashes to; 0 = it does not */
	uint8_t paths;        /* number of paths for sending */
	bool path_busy;       /* more paths may help: full window, growing queue or losses */
	uint8_t path_count;   /* paths wanted, and then found: at least `paths` */
	bool elsewhere;       /* a path leads to another worker's queue, at either end */
	bool hash_wrong;      /* answers came to another queue than the driver's hash predicts */
	uint32_t port_cursor; /* of weft_path_port() */
	uint8_t peer_mac[6];
	uint64_t hs_next; /* live_clock of the next try of a handshake step, or of BYE */
	uint64_t hs_started;
	uint64_t hs_expire;
	uint32_t hs_tries;
	/* Searches the frame size: while connecting, and later; NULL = there is no search. */
	struct weft_mtu_search *search; /* times are live_clock */
	struct raw_mtu mtu;
	LIST_HEAD(, raw_part) parts; /* frames of which parts are missing */
	uint32_t num_parts;
	uint16_t probe_id;
	struct raw_measured measured;
	struct raw_live live;
	struct raw_bye bye;
	int error; /* while DOWN */
	TAILQ_ENTRY(raw_conn) link;
};

/* With one path. A host may have 65,536 connections of each iface. */
static_assert(sizeof(struct raw_conn) <= 1024 || RTE_CACHE_LINE_SIZE > 64, "size of a connection");
/* RTE_CACHE_LINE_SIZE is 64 bytes, and 128 on arm64, where some processors have such lines. */
static_assert(offsetof(struct raw_conn, rx) == RTE_CACHE_LINE_SIZE, "hot line 0");

static inline struct raw_conn *raw_conn_of(struct weft_lane_ep *lane_ep)
{
	return (struct raw_conn *)lane_ep;
}

static inline struct weft_frame_hdr *raw_hdr(const struct raw_conn *c, struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod_offset(m, struct weft_frame_hdr *, c->encap.len);
}

/* Would the whole frame be too long for the path? */
static inline bool raw_parts_needed(const struct raw_conn *c, const struct raw_slot *slot)
{
	return (uint32_t)slot->bytes + c->encap.len +
		       (c->csum == WEFT_FRAME_CSUM_CRC32C ? 4u : 0u) >
	       c->tx.cut;
}

#endif /* WEFT_ENGINE_CONN_H */
