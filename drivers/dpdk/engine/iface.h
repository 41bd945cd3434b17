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

#include "base/deadline.h"
#include "base/log.h"
#include "base/siphash.h"
#include "capture/tap.h"
#include "engine/raw_counters.h"
#include "engine/telemetry.h"
#include "frame/arp.h"
#include "frame/frame_port.h"
#include "frame/parse.h"
#include "lane.h"

#define RAW_BURST 32u
#define RAW_TXQ 64u     /* frames sealed and not yet taken by the port */
#define RAW_QUOTERS 16u /* senders of short ICMP that are told from each other */
#define RAW_STALE 64u   /* timestamps of the last progress calls that had a stale one */

struct raw_conn;
struct raw_gone;
struct raw_part;
struct raw_ref;
struct raw_zc;

/* Buffers that connections share: see engine/share.c. */
struct raw_share {
	/* Frame buffers held until acknowledged, and what the least share may come to. */
	uint32_t tx_held, tx_held_max, tx_held_hard;
	/* small buffers in zero-copy frames: acknowledgements need some too */
	uint32_t hdr_held, hdr_held_max, hdr_held_hard;
	bool pressed; /* somebody was refused a buffer since the last progress() */
	TAILQ_HEAD(, raw_conn) stalled;
	uint64_t taken_back; /* bytes of heap, and their bound */
	uint64_t taken_back_max;
};

/* Frames that wait for the port: a ring. See engine/txq.h. */
struct raw_txq {
	unsigned int head, count;
	struct rte_mbuf *frames[RAW_TXQ];
};

/* Zero-copy messages: see engine/zc.c. */
struct raw_zc_state {
	STAILQ_HEAD(, raw_zc) free;
	STAILQ_HEAD(, raw_zc) released; /* hardware and peer are done with it */
	LIST_HEAD(, raw_zc) orphans;    /* lane ep destroyed, hardware not done */
	/* no slot has them, a PMD with registered memory does */
	LIST_HEAD(raw_zc_list, raw_zc) waiting;
	uint64_t ask_at; /* now; when it is asked again */
	void *chunks;
};

/* Half-open connections: see engine/half_open.c. */
struct raw_half {
	uint32_t count;
	TAILQ_HEAD(, raw_conn) list; /* oldest first */
	/* Those that have shown their address, by bucket of address and MAC, and of MAC alone. */
	uint16_t by_source[256], by_mac[256];
};

struct raw_iface {
	struct weft_lane_iface base;
	struct weft_frame_port *port;
	struct weft_tap *tap; /* recorder and captures; NULL = neither */

	uint64_t now, et, lt;
	uint64_t next_et, next_lt; /* when raw_timers() has something to do */
	bool gap;                  /* this progress call came late */
	bool sent_first;    /* it sent, after its check of the clock and before that of the port */
	bool slept;         /* since the last one the owner slept, ready to be woken */
	uint64_t sleep_max; /* and this long at most */
	bool rx_l4_ok;      /* the NIC has checked the UDP checksum of the frame in hand */
	uint32_t hand_max;  /* frames in another worker's ring beyond which we add none */
	bool rx_elsewhere;  /* the frame in hand has come to another worker's queue */
	bool in_progress;
	bool rx_far; /* frames were not written by this core, as those are that a PMD copies */
	unsigned int lcore; /* of the thread that is in raw_rx() */
	bool sent_outside;  /* frames were sent since the last progress call ended */
	bool sent;     /* frames were stamped with the present `now`: computing makes it stale */
	uint32_t step; /* ns between the last two progress calls */
	struct {
		uint32_t ts, error;
	} stale[RAW_STALE]; /* how stale, by timestamp */
	struct raw_ref *refs;
	struct raw_gone *gone; /* as many */
	uint32_t refs_len;     /* a power of two */
	/* Indices into refs that are free: the one that was so first goes first. */
	uint16_t *free_ring;
	uint32_t free_first, free_num;
	/* By what peers' HELLOs say; refs_len buckets. */
	LIST_HEAD(raw_hello_list, raw_conn) * hello;
	/* Those that are up, by the address that ARP knows them by; refs_len buckets. */
	TAILQ_HEAD(raw_hop_list, raw_conn) * by_hop;
	struct weft_deadlines by_et, by_lt; /* connections, by their index in refs */
	uint32_t kept, keep_max;            /* receive buffers held by the protocol layer */
	struct rte_mbuf *in_hand;           /* its messages are being delivered */
	uint32_t in_hand_back;              /* so often it was given back in the meantime */
	struct raw_share share;
	weft_lane_recv_cb recv;
	weft_lane_split_fn split;
	void *cb_arg;
	TAILQ_HEAD(, raw_conn) tx_list;           /* have an open frame */
	TAILQ_HEAD(raw_conns, raw_conn) ack_list; /* owe a delayed acknowledgement */
	bool acks_now;                            /* some of them owe it at once */
	uint64_t acks_due;                        /* et; when the first of the others is due */
	unsigned int tx_batch;                    /* full frames wait for so many */
	unsigned int idle_polls;
	unsigned int full_bursts;
	unsigned int kicks; /* by raw_arm(), since something was sent */
	bool tx_used;       /* something was sent since the port was last idle for long */
	struct raw_txq txq;
	struct weft_telemetry *telemetry; /* NULL = nobody can ask */

	struct weft_gate_pattern pattern;
	struct weft_gate_conf gate;
	uint64_t counter[RAW_COUNTERS];

	weft_lane_event_cb event;
	weft_lane_iface_event_cb iface_event;
	uint64_t look_at; /* lt; when the port is asked what has happened to it */
	bool link_up;     /* as last told */
	int ended;        /* the port has: error of connections; 0 = it has not */
	char ended_why[256];
	double copy_bw;
	const struct weft_platform *platform;
	struct weft_lane_conf conf;
	struct raw_zc_state zc;
	TAILQ_HEAD(, raw_conn) conns;
	TAILQ_HEAD(, raw_conn) resolving;      /* in RESOLVE, and some that have left it */
	TAILQ_HEAD(, raw_conn) closed;         /* in TIME_WAIT and not due, oldest first */
	TAILQ_HEAD(raw_parts, raw_part) parts; /* of all connections, oldest first */
	uint32_t num_parts;
	uint32_t conn_count, time_wait;
	struct raw_half half;
	uint32_t generation;         /* connections made */
	struct weft_siphash_key key; /* random: of generations, cookies, hashes */
	uint64_t worker_id, iface_id;
	uint64_t next_reset;
	uint64_t move_arp;                          /* see engine/move.c; lt */
	uint64_t doubt_next;                        /* lt; see engine/doubt.c */
	uint64_t quote_next, quote_by[RAW_QUOTERS]; /* lt; of all, and of each sender's share */
	uint64_t announce_at; /* lt; of the next word that somebody begins here */
	uint8_t announced;    /* such words */
	struct weft_arp arp;
	struct weft_log_limit conflict_log, late_log;
	uint32_t gateway;
	uint8_t prefix;
	bool no_ip; /* none was given: ours is link-local */
	bool ecn;   /* frames may say that they are ECN-capable: marks are heeded */
	uint8_t dscp;
	uint8_t paths;
	bool paths_auto; /* more are opened where they help */
	uint8_t encap_len;
	uint8_t csum_wish;
	uint16_t frame_size;
	bool set_first_seq;
	uint32_t first_seq;
	uint8_t *scratch; /* chained frames are made contiguous here */
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
