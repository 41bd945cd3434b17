/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/iface.h
 * One iface of the raw-DPDK lane engine: what its connections share. Owned by one thread.
 */
#ifndef WEFT_ENGINE_IFACE_H
#define WEFT_ENGINE_IFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/container.h"
#include "base/hash.h"
#include "base/log.h"
#include "capture/tap.h"
#include "engine/raw_counters.h"
#include "frame/arp.h"
#include "frame/frame_port.h"
#include "frame/parse.h"
#include "lane.h"

#define RAW_BURST 32u
#define RAW_TXQ 64u     /* most frames that are complete and that the port has not accepted */
#define RAW_QUOTERS 16u /* buckets of senders of short ICMP quotes */
#define RAW_STALE 64u   /* number of stale timestamps that are remembered */

struct weft_question;
struct raw_conn;
struct raw_gone;
struct raw_part;
struct raw_ref;
struct raw_rx;
struct raw_tx;
struct raw_zc;

/* Buffers that connections share: see engine/outstanding.c. */
struct raw_share {
	/* Frame buffers held until acknowledged; their limit, and the limit with least shares. */
	uint32_t tx_held, tx_held_max, tx_held_hard;
	/* Small buffers in zero-copy frames: limited, since ACKs need some, too. */
	uint32_t hdr_held, hdr_held_max, hdr_held_hard;
	bool pressed; /* a buffer was refused since the last progress() */
	TAILQ_HEAD(, raw_tx) stalled;
	uint64_t taken_back; /* bytes of the heap for frames taken back, and their limit */
	uint64_t taken_back_max;
};

/* Frames that wait for the port: a ring. See engine/build.h. */
struct raw_txq {
	unsigned int head, count;
	struct rte_mbuf *frames[RAW_TXQ];
};

/* Zero-copy messages: see engine/zcopy.c. */
struct raw_zc_state {
	STAILQ_HEAD(, raw_zc) free;
	STAILQ_HEAD(, raw_zc) released; /* neither hardware nor slots refer to them any more */
	/* the lane endpoint is destroyed, the hardware still refers to them */
	LIST_HEAD(, raw_zc) orphans;
	/* no slot refers to them, a PMD with registered memory does */
	LIST_HEAD(raw_zc_list, raw_zc) waiting;
	uint64_t poll_at; /* `now` of the next query to that PMD */
	void *chunks;
};

/* Half-open connections: see engine/half_open.c. */
struct raw_half {
	uint32_t count;
	TAILQ_HEAD(, raw_conn) list; /* oldest first */
	/* Entries with a proven address, by bucket of address and MAC, and of MAC alone. */
	uint16_t by_source[256], by_mac[256];
};

struct raw_iface {
	struct weft_lane_iface base;
	char name[64], note[128];
	struct weft_frame_port *port;
	struct weft_tap *tap; /* recorder and captures; NULL = neither */

	uint64_t rest_until; /* progress calls before this time do nothing; see idle_poll() */
	uint64_t now, tx_clock, live_clock;
	uint64_t next_tx_clock, next_live_clock; /* times at which raw_timers() is to be called */
	bool gap;           /* this progress call came late: no round-trip samples */
	bool sent_first;    /* it sent frames between reading the clock and receiving */
	bool slept;         /* since the last one the owner has slept, armed for wake-up */
	uint64_t sleep_max; /* ns: the longest time that it meant to sleep */
	bool rx_l4_ok;      /* the NIC has checked the UDP checksum of the present frame */
	uint32_t hand_max;  /* most frames in another worker's ring when we add one */
	bool rx_elsewhere;  /* the present frame has come to another worker's queue */
	bool in_progress;
	bool rx_far;        /* another core or a NIC wrote the frames: prefetch them */
	unsigned int lcore; /* of the thread that is in raw_rx_poll() */
	bool sent_outside;  /* frames were sent since the last progress call ended */
	bool sent;          /* frames have the present `now` as timestamp, which gets stale */
	uint32_t step;      /* ns between the last two progress calls */
	struct {
		uint32_t ts, error;
	} stale[RAW_STALE]; /* ns by which it was stale, by timestamp */
	struct raw_ref *refs;
	struct raw_gone *gone; /* refs_len entries, too */
	uint32_t refs_len;     /* a power of two */
	/* Free indices into refs: a FIFO. */
	uint16_t *free_ring;
	uint32_t free_first, free_num;
	struct weft_table hello; /* connections, by the peer's numbers in HELLO */
	/* Connections that are up, by the IP address of their next hop; refs_len buckets. */
	TAILQ_HEAD(raw_hop_list, raw_conn) * by_hop;
	struct weft_deadlines by_tx_clock, by_live_clock; /* connections, by their index in refs */
	uint32_t kept, keep_max;  /* receive buffers held by the protocol layer */
	struct rte_mbuf *in_hand; /* the frame whose messages are being delivered */
	uint32_t in_hand_back;    /* number of its releases in the meantime */
	struct raw_share share;
	weft_lane_recv_cb recv;
	weft_lane_recv_batch_cb recv_batch; /* NULL = none */
	uint8_t batch_id;
	weft_lane_split_fn split;
	void *cb_arg;
	TAILQ_HEAD(, raw_tx) tx_list; /* senders with an open frame */
	/* receivers of connections with an acknowledgement to send */
	TAILQ_HEAD(raw_rx_list, raw_rx) ack_list;
	bool acks_now; /* some of these are due at once */
	/* tx_clock at which the first of the others is due */
	uint64_t acks_due;
	unsigned int tx_batch; /* full frames are collected up to this number */
	unsigned int idle_polls;
	unsigned int full_bursts;
	unsigned int kicks; /* by raw_arm(), since a frame was sent */
	bool tx_used;       /* frames were sent since the port was last idle for IDLE_KICK polls */
	struct raw_txq txq;
	struct weft_question *telemetry; /* NULL = no telemetry */

	struct weft_rx_pattern pattern;
	struct weft_rx_filter rx_filter;
	uint64_t counter[RAW_COUNTERS];

	weft_lane_event_cb event;
	weft_lane_iface_event_cb iface_event;
	uint64_t look_at; /* live_clock of the next poll of the port's events */
	bool link_up;     /* as last reported by the port */
	int ended;        /* error of connections after the port has ended; 0 = it has not */
	char ended_why[256];
	double copy_bw;
	const struct weft_platform *platform;
	struct weft_lane_conf conf;
	struct raw_zc_state zc;
	TAILQ_HEAD(, raw_conn) conns;
	TAILQ_HEAD(, raw_conn) resolving; /* those in RESOLVE, and some that have left it */
	/* those in TIME_WAIT that are not due, oldest first */
	TAILQ_HEAD(, raw_conn) closed;
	TAILQ_HEAD(raw_parts, raw_part) parts; /* of all connections, oldest first */
	uint32_t num_parts;
	uint32_t conn_count, time_wait;
	struct raw_half half;
	uint32_t generation;         /* number of connections made */
	struct weft_siphash_key key; /* random: for generations, cookies, hashes */
	uint64_t worker_id, iface_id;
	uint64_t next_reset;
	uint64_t move_arp;  /* see engine/move.c; live_clock */
	uint64_t hint_next; /* live_clock; see engine/move.c */
	/* live_clock: for all senders, for each bucket of senders */
	uint64_t quote_next, quote_by[RAW_QUOTERS];
	uint64_t announce_at; /* live_clock of the next announcement of this iface */
	uint8_t announced;    /* number of announcements */
	struct weft_arp arp;
	struct weft_log_limit conflict_log, late_log;
	uint32_t gateway;
	uint8_t prefix;
	bool no_ip; /* no IP address is configured: a link-local one is used */
	bool ecn;   /* frames may be sent as ECN-capable: congestion control respects marks */
	uint8_t dscp;
	uint8_t paths;
	bool paths_auto; /* further paths are opened where they help */
	uint8_t encap_len;
	uint8_t csum_wanted;
	uint16_t frame_size;
	bool set_first_seq;
	uint32_t first_seq;
	uint8_t *scratch; /* buffer in which chained frames are made contiguous */
};

static inline struct raw_iface *raw_iface_of(struct weft_lane_iface *i)
{
	return (struct raw_iface *)i;
}

static inline void raw_count(struct raw_iface *iface, enum raw_counter c)
{
	iface->counter[c]++;
}

#endif /* WEFT_ENGINE_IFACE_H */
