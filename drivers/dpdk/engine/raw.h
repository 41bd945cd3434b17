/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/raw.h
 * Inside of the raw-DPDK lane engine: the iface, the connection, and who provides what.
 *
 * Ownership of a data frame: the connection's slot holds one reference of every mbuf of the chain
 * until the frame is acknowledged, the TX queue or the NIC holds another while it is to be sent.
 * Only when both are gone does the buffer return to its pool, and user memory of a zero-copy send
 * to its owner.
 *
 * Three clocks, all in ns, all derived from the `now` of progress():
 *   now   real time; timestamps and RTT samples
 *   et    engine time: as now, but no step is longer than RAW_STEP_MAX. Retransmission timers run
 *         on it, so a pause of the owner, in which nothing could be received, never looks like
 *         silence of the peer. When frames were sent between two progress calls, nobody knows when
 *         in that step, and only RAW_OUTSIDE_STEP_MAX of it counts.
 *   lt    liveness: steps of up to RAW_LIVE_STEP_MAX count. Keepalive, peer timeout and connect
 *         timeout run on it.
 * An owner that sleeps until the port wakes it misses nothing: all clocks go on, for as long as it
 * meant to sleep (engine/wait.c).
 */
#ifndef WEFT_RAW_H
#define WEFT_RAW_H

#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "frame/arp.h"
#include "base/deadline.h"
#include "frame/encap.h"
#include "frame/parse.h"
#include "frame/frame_port.h"
#include "lane.h"
#include "engine/loss.h"
#include "engine/mtu_search.h"
#include "engine/raw_counters.h"
#include "engine/raw_iface.h"
#include "engine/rtt.h"
#include "engine/sack.h"
#include "base/siphash.h"
#include "engine/telemetry.h"

#define RAW_BURST 32u
#define RAW_TXQ 64u /* frames sealed and not yet taken by the port */
/*
 * Full frames wait for each other before they go to the port, whose calls cost (a doorbell, vhost's
 * locks and barriers): so many bytes, which are read while the next are written, in so many frames.
 */
#define RAW_TX_BATCH_BYTES 32768u
#define RAW_TX_BATCH_MIN 4u
#define RAW_TX_BATCH_MAX 16u
#define RAW_CONNS_MAX 65536u
/*
 * connections looked at by one raw_timers(), per clock: what is due beyond that waits for the next
 */
#define RAW_TIMER_BATCH 32u
#define RAW_HALF_OPEN_MAX 256u
#define RAW_TIME_WAIT_MAX 256u
#define RAW_WIN_FRAMES_MAX 512u /* half of the receiver's memory of sequences */
#define RAW_SLOTS_MIN 16u       /* what an idle connection has; more on demand */
#define RAW_WIN_BYTES (1024u * 1024)
#define RAW_STEP_MAX 2000000ull
#define RAW_LIVE_STEP_MAX 100000000ull
#define RAW_GAP 200000ull /* between two progress calls: samples across it are discarded */
#define RAW_OUTSIDE_STEP_MAX 100000ull
#define RAW_STALE 64u         /* timestamps of the last progress calls that had a stale one */
#define RAW_STAMP_ERROR 1000u /* ns that a timestamp may be wrong by in any case */
#define RAW_ECHO_EVERY 16u    /* of so many DATA frames one echoes: it costs a look at the clock */
#define RAW_STEP_ROUGH 20000u /* between two looks at the port: a rough time of arrival */
#define RAW_ECHO_ROUGH 255u   /* arrivals in vain until a rough echo is better than none */
#define RAW_ACK_DELAY 25000ull
#define RAW_ACK_FRAMES 8u
#define RAW_ACK_BYTES 65536u
#define RAW_HS_RETRY_MIN 1000000ull
#define RAW_HS_RETRY_MAX 100000000ull
#define RAW_PLACE_NS 1000000000ull /* lt; so long a responder waits for an answer of ARP */
#define RAW_HALF_OPEN_NS 5000000000ull
#define RAW_TIME_WAIT_NS 2000000000ull
#define RAW_BYE_GRACE 2000000ull
#define RAW_ROUND 8u /* frames of which one must not stay unacknowledged for the peer's timeout */
/*
 * Between two RESETs, and so many at once: strangers can't make us loud, and who was restarted
 * tells all.
 */
#define RAW_RESET_GAP 100000ull
#define RAW_RESET_BURST 32u
/* tries of a step in which handshake frames that came to another queue are not taken */
#define RAW_STEER_ROUNDS 12u
#define RAW_TMPL 96u /* encapsulation + lane header, rounded up for the copy */
#define RAW_NEVER WEFT_NEVER

static_assert(WEFT_ENCAP_MAX + sizeof(struct weft_frame_hdr) <= RAW_TMPL, "template");
static_assert(2 * RAW_WIN_FRAMES_MAX <= WEFT_RXWIN, "receive window");

struct raw_iface;

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

enum raw_ack { RAW_ACK_NONE, RAW_ACK_DELAYED, RAW_ACK_NOW };

struct raw_copy;

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
};

/*
 * A flow inside the lane: one pair of UDP ports, the same in both directions. Congestion control
 * will keep its window here; until then the connection's fixed window is the only limit.
 */
struct raw_path {
	struct weft_rtt rtt;
	struct weft_loss loss;
	uint32_t order;        /* of the next frame */
	uint16_t sport, dport; /* ours, the peer's */
	uint32_t retransmits;
};

/* Zero-copy message under way. shinfo counts the mbufs that refer to user memory. */
struct raw_zc {
	struct rte_mbuf_ext_shared_info shinfo;
	struct raw_iface *iface;
	struct weft_lane_comp *comp; /* NULL = already told */
	struct weft_mem_lane *mem;   /* with comp; NULL = the port needs no registration */
	int status;
	bool waiting;                 /* for the port: in iface->zc_waiting */
	LIST_ENTRY(raw_zc) wait_link; /* of that */
	LIST_ENTRY(raw_zc) conn_link; /* of conn->zc, or iface->zc_orphans, while comp is set */
	STAILQ_ENTRY(raw_zc) link;    /* of iface->zc_free or zc_released */
};

struct raw_flush {
	struct weft_lane_comp *comp;
	uint32_t seq; /* done when all before it is acknowledged */
	STAILQ_ENTRY(raw_flush) link;
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

struct raw_conn {
	/* Line 0: all that a small send into an open frame touches. */
	struct weft_lane_ep base;
	uint8_t *open_pos;  /* where the next message goes */
	uint32_t open_room; /* 0 = no open frame */
	uint8_t state;      /* enum raw_state */
	uint8_t csum;       /* enum weft_frame_csum, agreed */
	uint8_t paths;
	uint8_t ack_state; /* enum raw_ack */

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
	bool tail_probed;
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
	bool ack_asked;       /* ACK_REQ is out for one, and nothing has been acknowledged since */
	uint32_t probe_wait;  /* ns from a frame to its tail probe: follows the round trip */
	uint64_t et_at;       /* when raw_timers() looks at it; RAW_NEVER = it need not */
	struct weft_rxwin rx; /* next and high still on this line */

	/* Per frame, but not per message. */
	uint8_t tmpl[RAW_TMPL] __rte_cache_aligned;
	struct weft_encap_hdr encap;
	uint16_t frame_size; /* agreed */
	uint32_t room;       /* bytes for messages in a frame */
	struct raw_path path[WEFT_FRAME_PATHS_MAX];

	uint32_t round_end;
	uint32_t hdr_held; /* small buffers in its zero-copy frames */

	/* Cold. */
	struct raw_iface *iface;
	uint32_t win_whole;               /* win_frames of a peer that acknowledges */
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
	uint64_t move_next;               /* see engine/move.c; lt */
	uint64_t move_answered;           /* bit k: question move_newest - k */
	uint32_t move_newest;             /* of the peer's questions that were answered */
	uint32_t move_asked, move_over;   /* our questions; those that were before the last move */
	uint32_t move_turn; /* whose turn it is of those that say they have the address */
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
	uint8_t path_count;      /* paths wanted, and then found */
	uint8_t path_small_acks; /* small frames over path 0 answered meanwhile */
	uint16_t path_id;        /* of the last probe before */
	uint16_t path_found;     /* initiator: bit k: path k has its ports */
	bool elsewhere;          /* a path leads to another worker's queue, here or there */
	bool hash_wrong;         /* answers came elsewhere than the driver's hash says */
	uint32_t port_cursor;    /* of weft_path_port() */
	uint8_t peer_mac[6];
	uint64_t loss_timer; /* et; 0 = no suspect waits for patience */
	uint64_t next_ping;  /* lt */
	uint32_t pings;      /* questions since the last sign of life */
	uint64_t hs_next;    /* lt of the next try of a handshake step, or of BYE */
	uint64_t hs_started;
	uint64_t hs_expire;
	uint32_t hs_tries;
	struct weft_mtu_search search; /* times are lt */
	uint16_t probe_id;
	uint32_t peer_rx_frames, peer_rx_bufs;
	struct raw_measure measure;
	/*
	 * lt; the peer has closed, and what it sent before may still arrive until then; 0 = it has
	 * not
	 */
	uint64_t bye_at;
	uint32_t bye_seq;
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

/* What incoming frames are looked up by, without touching the connection. */
struct raw_ref {
	uint32_t id;
	uint32_t token;
	struct raw_conn *conn; /* NULL = free */
};

/* Whose the last connection of an index was that is no more. A half-open one is nobody's yet. */
struct raw_gone {
	uint32_t ip;
	uint8_t mac[6];
	bool known, half;
};

struct raw_iface {
	struct weft_lane_iface base;
	struct weft_frame_port *port;

	uint64_t now, et, lt;
	uint64_t next_et, next_lt; /* when raw_timers() has something to do */
	bool gap;                  /* this progress call came late */
	bool slept;                /* since the last one the owner slept, ready to be woken */
	uint64_t sleep_max;        /* and this long at most */
	bool rx_l4_ok;             /* the NIC has checked the UDP checksum of the frame in hand */
	uint32_t hand_max;         /* frames in another worker's ring beyond which we add none */
	bool rx_elsewhere;         /* the frame in hand has come to another worker's queue */
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
	struct weft_deadlines by_et, by_lt; /* connections, by their index in refs */
	uint32_t kept, keep_max;            /* receive buffers held by the protocol layer */
	struct rte_mbuf *in_hand;           /* its messages are being delivered */
	uint32_t in_hand_back;              /* so often it was given back meanwhile */
	/*
	 * Frame buffers held until acknowledged: what engine/share.c shares out, and what the least
	 * share may come to.
	 */
	uint32_t tx_held, tx_held_max, tx_held_hard;
	/* small buffers in zero-copy frames: acknowledgements need some too */
	uint32_t hdr_held, hdr_held_max;
	bool pressed; /* somebody was refused a buffer since the last progress() */
	weft_lane_recv_cb recv;
	weft_lane_split_fn split;
	void *cb_arg;
	TAILQ_HEAD(, raw_conn) tx_list;           /* have an open frame */
	TAILQ_HEAD(raw_conns, raw_conn) ack_list; /* owe a delayed acknowledgement */
	bool acks_now;                            /* some of them owe it at once */
	uint64_t acks_due;                        /* et; when the first of the others is due */
	unsigned int txq_head, txq_count, tx_batch;
	unsigned int idle_polls;
	unsigned int full_bursts;
	unsigned int kicks; /* by raw_arm(), since something was sent */
	bool tx_used;       /* something was sent since the port was last idle for long */
	struct weft_telemetry *telemetry; /* NULL = nobody can ask */
	struct rte_mbuf *txq[RAW_TXQ];

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
	STAILQ_HEAD(, raw_zc) zc_free;
	STAILQ_HEAD(, raw_zc) zc_released; /* hardware and peer are done with it */
	LIST_HEAD(, raw_zc) zc_orphans;    /* lane ep destroyed, hardware not done */
	LIST_HEAD(raw_zc_list, raw_zc)
	zc_waiting;         /* no slot has them, a PMD with registered memory does */
	uint64_t zc_ask_at; /* now; when it is asked again */
	void *zc_chunks;
	TAILQ_HEAD(, raw_conn) conns;
	TAILQ_HEAD(, raw_conn) stalled;
	TAILQ_HEAD(, raw_conn) resolving; /* in RESOLVE, and some that have left it */
	TAILQ_HEAD(, raw_conn) closed;    /* in TIME_WAIT and not due, oldest first */
	uint64_t taken_back;              /* bytes of heap, and their bound */
	uint64_t taken_back_max;
	uint32_t conn_count, half_open, time_wait;
	TAILQ_HEAD(, raw_conn) half; /* half-open ones, oldest first; half_open of them */
	/*
	 * Those of them that have shown their address, by bucket of address and MAC, and of the MAC
	 * alone.
	 */
	uint16_t half_of[256], half_of_mac[256];
	uint32_t generation;         /* connections made */
	struct weft_siphash_key key; /* random: of generations, cookies, hashes */
	uint64_t worker_id, iface_id;
	uint64_t next_reset;
	uint64_t move_arp; /* see engine/move.c; lt */
	struct weft_arp arp;
	uint32_t gateway;
	uint8_t prefix;
	bool no_ip; /* none was given: ours is link-local */
	uint8_t paths;
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

static inline struct raw_conn *raw_conn_of(struct weft_lane_ep *lane_ep)
{
	return (struct raw_conn *)lane_ep;
}

static inline void raw_count(struct raw_iface *iface, enum raw_counter c)
{
	iface->counter[c]++;
}

/* ---- engine/conn_table.c: which connection a frame is for */
/*
 * A free index. One goes round through all free ones before it is used again. @return 0 or -ENOSPC
 */
int raw_table_take(struct raw_iface *iface, uint32_t *index);
void raw_table_give(struct raw_iface *iface, uint32_t index);
/* The connection that was made for this very HELLO, or NULL. */
struct raw_conn *raw_table_hello(struct raw_iface *iface, const struct weft_frame_hello *h);
/* The peer made it, and its numbers at the peer are known and stay. */
void raw_table_hello_add(struct raw_conn *c);
void raw_table_hello_remove(struct raw_conn *c);
void raw_table_fini(struct raw_iface *iface);

/* ---- engine/timer.c: which connections are looked at, and when */
void raw_deadline_et_sooner(struct raw_conn *c, uint64_t t);

/*
 * raw_timers() looks at the connection at @p t, or before, and then finds out itself what is due: a
 * timer that is put off, as by every acknowledgement, costs nothing here.
 */
static inline void raw_deadline_et(struct raw_conn *c, uint64_t t)
{
	if (unlikely(t < c->et_at))
		raw_deadline_et_sooner(c, t);
}

void raw_deadline_lt(struct raw_conn *c, uint64_t t);
void raw_deadlines_forget(struct raw_conn *c);
void raw_timers(struct raw_iface *iface);

static inline struct raw_slot *raw_slot(struct raw_conn *c, uint32_t seq)
{
	return &c->slots[seq & c->slot_mask];
}

static inline struct weft_frame_hdr *raw_hdr(const struct raw_conn *c, struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod_offset(m, struct weft_frame_hdr *, c->encap.len);
}

/* ---- engine/txq.c: frames to the port, never waiting */

static inline unsigned int raw_txq_space(const struct raw_iface *iface)
{
	return RAW_TXQ - iface->txq_count;
}

static inline void raw_txq_push(struct raw_iface *iface, struct rte_mbuf *m)
{
	iface->txq[(iface->txq_head + iface->txq_count++) % RAW_TXQ] = m;
	iface->base.tx_open = true;
}

void raw_txq_flush(struct raw_iface *iface);
void raw_txq_drop(struct raw_iface *iface);

/* ---- engine/move.c: the peer's MAC address may have changed */

/* The peer is silent: is it behind another MAC now? */
void raw_move_look(struct raw_conn *c);
void raw_challenge_input(struct raw_iface *iface, const struct weft_frame_view *v);
void raw_challenge_ack_input(struct raw_conn *c, const struct weft_frame_view *v);

/* ---- engine/half_open.c: state for who has only said HELLO */

/*
 * May the sender of this HELLO have a half-open connection? *@shown: it has shown its address, for
 * raw_half_add(). @return false: it was answered
 */
bool raw_half_admit(struct raw_iface *iface, const struct weft_frame_view *v, bool *shown);
void raw_half_add(struct raw_conn *c, const struct weft_frame_view *v, bool shown);
/* It has answered with a cookie, or with what only HELLO_ACK tells. */
void raw_half_shown(struct raw_conn *c);
void raw_half_remove(struct raw_conn *c);

/* ---- engine/place.c: which MAC address gets the answer to a HELLO */

void raw_place_begin(struct raw_conn *c, const struct weft_frame_view *v);
/* @return it is known: c->peer_mac */
bool raw_placed(struct raw_conn *c);
/* ARP has told something. */
void raw_place_learned(struct raw_iface *iface);

/* ---- engine/generation.c: what tells connections of one index apart */

/* Any of 2^16 numbers to another one, each to its own, as the key says; and back. */
uint16_t raw_generation(const struct weft_siphash_key *key, uint16_t number);
uint16_t raw_generation_number(const struct weft_siphash_key *key, uint16_t generation);

/* ---- engine/share.c: buffers that connections share */

/* A connection may hold so many frames whatever the others hold. */
#define RAW_SHARE_MIN 8u
#define RAW_STALL_NS 10000000ull

/*
 * May a connection with @p mine frames outstanding hold one more? Half of what is free is the most
 * for each, so something is always left for whoever comes; the least share is everybody's.
 */
static inline bool raw_share_frame(struct raw_iface *iface, uint32_t mine)
{
	uint32_t held = iface->tx_held;

	if (likely(held < iface->tx_held_max && mine < (iface->tx_held_max - held) / 2))
		return true;
	if (mine < RAW_SHARE_MIN && held < iface->tx_held_hard)
		return true;
	iface->pressed = true;
	return false;
}

bool raw_share_hdrs(struct raw_conn *c, uint32_t n);
void raw_share_init(struct raw_iface *iface);
void raw_share_stalled(struct raw_conn *c);
void raw_share_acked(struct raw_conn *c, unsigned int acked);
void raw_share_forget(struct raw_conn *c);
void raw_share_take_back(struct raw_iface *iface);
void raw_copy_free(struct raw_iface *iface, struct raw_copy *copy);
struct rte_mbuf *raw_copy_frame(struct raw_iface *iface, const struct raw_copy *copy);
const uint8_t *raw_copy_bytes(const struct raw_copy *copy, struct raw_zc **zc);

/* ---- frame/frame.c: building frames */

/* One reference more for the queue, on every segment. */
static inline void raw_ref_chain(struct rte_mbuf *m)
{
	do {
		rte_mbuf_refcnt_update(m, 1);
	} while ((m = m->next));
}

/*
 * A buffer whose last reference is most likely ours. As rte_pktmbuf_free(), by a core known
 * already.
 */
static inline void raw_mbuf_free(struct rte_mbuf *m, unsigned int lcore)
{
	void *obj = m;

	if (unlikely(rte_mbuf_refcnt_read(m) != 1 || m->next || !RTE_MBUF_DIRECT(m))) {
		rte_pktmbuf_free(m);
		return;
	}
	rte_mempool_generic_put(m->pool, &obj, 1, rte_mempool_default_cache(m->pool, lcore));
}

/* The buffers of a frame go back, and the connection's share with them. */
static inline void raw_slot_release(struct raw_conn *c, struct raw_slot *slot, unsigned int lcore)
{
	struct raw_iface *iface = c->iface;

	iface->tx_held--;
	if (unlikely(slot->m->nb_segs > 1)) {
		iface->hdr_held -= slot->m->nb_segs;
		c->hdr_held -= slot->m->nb_segs;
	}
	raw_mbuf_free(slot->m, lcore);
	slot->m = NULL;
}

void raw_conn_template(struct raw_conn *c);
uint16_t raw_hold_time(struct raw_conn *c);
void raw_put_csum(struct raw_conn *c, struct rte_mbuf *m, uint32_t lane_len, bool crc);

/*
 * What every frame carries from the moment it leaves: acknowledgement, order, times. The echo needs
 * a look at the clock, and so most DATA frames have none.
 */
static inline void raw_stamp(struct raw_conn *c, struct weft_frame_hdr *hdr, uint8_t path)
{
	uint16_t hold = WEFT_FRAME_NO_ECHO;

	if (c->ts_valid) {
		if (hdr->type != WEFT_FRAME_DATA) {
			hold = raw_hold_time(c);
		} else if (c->echo_wait > 0) {
			c->echo_wait--;
		} else {
			c->echo_wait = RAW_ECHO_EVERY - 1;
			hold = raw_hold_time(c);
		}
	}
	hdr->ack = weft_le32(c->rx.next);
	hdr->path = path;
	hdr->echo_path = c->echo_path;
	hdr->order = weft_le32(c->path[path].order);
	hdr->ts = weft_le32((uint32_t)c->iface->now);
	hdr->ts_echo = weft_le32(c->ts_echo);
	hdr->ts_hold = weft_le16(hold);
}

/*
 * Last touch before a frame leaves (again): lengths, source port, checksums. `lane_len` counts the
 * lane header and the body; with CRC32C the four bytes behind it are there already.
 */
static inline void raw_finish(struct raw_conn *c, struct rte_mbuf *m, uint32_t lane_len,
			      uint8_t path)
{
	struct weft_frame_hdr *hdr = raw_hdr(c, m);
	bool crc = hdr->flags & weft_le16(WEFT_FRAME_F_CRC32C);

	hdr->length = weft_le16((uint16_t)lane_len);
	weft_encap_patch(&c->encap, rte_pktmbuf_mtod(m, uint8_t *), lane_len + (crc ? 4 : 0),
			 c->path[path].sport, c->path[path].dport);
	if (unlikely(crc || c->csum == WEFT_FRAME_CSUM_UDP))
		raw_put_csum(c, m, lane_len, crc);
	c->iface->counter[RAW_TX_FRAMES]++;
	c->iface->counter[RAW_TX_BYTES] += m->pkt_len;
}

int raw_ctl_send(struct raw_conn *c, uint8_t type, uint16_t flags, const void *body,
		 uint32_t body_len, uint32_t pad_to);
int raw_ctl_send_on(struct raw_conn *c, uint8_t path, uint8_t type, uint16_t flags,
		    const void *body, uint32_t body_len, uint32_t pad_to);
int raw_ack_send(struct raw_conn *c, uint16_t flags);
int raw_bye_send(struct raw_conn *c);
/* Answer a frame that belongs to no connection: with its own numbers, which prove the answer. */
void raw_stranger_send(struct raw_iface *iface, const struct weft_frame_view *v, uint8_t type,
		       const void *body, uint32_t len);
void raw_reset_send(struct raw_iface *iface, const struct weft_frame_view *v, uint16_t reason);
/*
 * Ask for an address, if it is time to; `theirs`: a stranger says that it has it. @return it was
 * asked
 */
bool raw_arp_ask(struct raw_iface *iface, uint32_t ip, bool theirs);
void raw_arp_send(struct raw_iface *iface, const uint8_t dst[6], const struct weft_frame_arp *pkt);

/* ---- engine/tx.c */
int raw_am_short(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const void *payload, size_t length);
ssize_t raw_am_bcopy(struct weft_lane_ep *lane_ep, uint8_t am_id, weft_lane_pack_cb pack,
		     void *arg);
int raw_tx_ready(struct raw_conn *c);
void raw_tx_commit(struct raw_conn *c, struct rte_mbuf *m, uint32_t lane_len, uint32_t payload,
		   uint16_t flags);
bool raw_seal(struct raw_conn *c, uint16_t flags);
void raw_seal_all(struct raw_iface *iface);

/* ---- engine/zcopy.c */
int raw_am_zcopy(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		 struct weft_lane_comp *comp);
unsigned int raw_zc_complete(struct raw_iface *iface);
void raw_zc_cancel(struct raw_conn *c);
void raw_zc_fail(struct raw_conn *c, int status);
void raw_zc_destroy(struct raw_iface *iface);
unsigned int raw_zc_ask(struct raw_iface *iface);
void raw_zc_wait(struct raw_iface *iface, struct raw_zc *zc);

/* The zero-copy message in a frame, or NULL. */
static inline struct raw_zc *raw_zc_of(const struct rte_mbuf *m)
{
	const struct rte_mbuf *user = m->next;

	return user != NULL && RTE_MBUF_HAS_EXTBUF(user) ? user->shinfo->fcb_opaque : NULL;
}

/*
 * The lane has let go of a frame. A port that copies or frees at once has done so, too; a NIC's PMD
 * may hold its mbufs for as long as nothing else is sent, and somebody waits for the memory.
 */
static inline void raw_zc_slot_freed(struct raw_iface *iface, struct raw_zc *zc)
{
	if (zc && iface->port->flags & WEFT_FRAME_PORT_REG &&
	    rte_mbuf_ext_refcnt_read(&zc->shinfo) != 0)
		raw_zc_wait(iface, zc);
}

/* ---- engine/ack.c: the sender's half of reliability */
unsigned int raw_ack_new(struct raw_conn *c, const struct weft_frame_hdr *hdr,
			 const struct weft_frame_sack *sack);

/* Acknowledgements of any frame of the peer. @return frames newly acknowledged */
static inline unsigned int raw_ack_input(struct raw_conn *c, const struct weft_frame_hdr *hdr,
					 const struct weft_frame_sack *sack)
{
	if (weft_le32(hdr->ack) == c->snd_una && !sack)
		return 0;
	return raw_ack_new(c, hdr, sack);
}

void raw_loss_detect(struct raw_conn *c);
int raw_retransmit(struct raw_conn *c, uint32_t seq, enum raw_counter why, uint16_t flags);
void raw_timer_learn(struct raw_conn *c);
void raw_timer_arm(struct raw_conn *c);
void raw_timer_fire(struct raw_conn *c);
void raw_slots_release(struct raw_conn *c);
void raw_flush_queue(struct raw_conn *c, struct raw_flush *f, struct weft_lane_comp *comp);
int raw_ep_flush(struct weft_lane_ep *lane_ep, struct weft_lane_comp *comp);
void raw_flushes_end(struct raw_conn *c, int status);
unsigned int raw_flushes_check(struct raw_conn *c);

/* ---- engine/rx.c */
unsigned int raw_rx(struct raw_iface *iface);
void raw_acks(struct raw_iface *iface);

/* ---- engine/measure.c: what the handshake finds out about the way */

/* Initiator, when the frame size is known. @return false: there is nothing to measure */
bool raw_measure_begin(struct raw_conn *c);
/* Initiator: a PROBE_ACK in state MEASURE */
void raw_measure_ack(struct raw_conn *c, uint16_t id, uint16_t kind);
void raw_measure_timer(struct raw_conn *c);
/* Responder: a PROBE has been answered */
void raw_measure_probe(struct raw_conn *c, uint16_t id, uint16_t kind);
void raw_ep_measured(struct weft_lane_ep *lane_ep, struct weft_lane_measured *out);

/* ---- engine/paths.c: which ports each path uses */
/* Initiator: HELLO from as many ports as it takes, by now, for one to reach the right queues. */
unsigned int raw_paths_hellos(const struct raw_conn *c);
void raw_paths_next(struct raw_conn *c, unsigned int path);
/*
 * Is this question of the handshake, or its answer, to be ignored, since it came to another queue?
 */
bool raw_paths_ignored(struct raw_conn *c, bool any);
/* Initiator, when the frame size is known. @return false: there is one path only */
bool raw_paths_begin(struct raw_conn *c);
void raw_paths_send(struct raw_conn *c);
void raw_paths_ack(struct raw_conn *c, const struct weft_frame_view *v, uint16_t kind);
/* Both: the paths that READY names. */
uint32_t raw_paths_ready(const struct raw_conn *c, void *body);
bool raw_paths_take(struct raw_conn *c, const struct weft_frame_view *v);

/* ---- engine/handshake.c: HELLO .. READY, RESET, BYE */
void raw_hs_start(struct raw_conn *c);
void raw_hs_timer(struct raw_conn *c);
void raw_hs_ready(struct raw_conn *c);
void raw_hs_enter(struct raw_conn *c, enum raw_state state);
void raw_hs_measure(struct raw_conn *c);
/* It waits for ARP, or no more. */
void raw_resolving(struct raw_conn *c, bool yes);
void raw_hs_input(struct raw_conn *c, const struct weft_frame_view *v);
/* To the initiator of a half-open connection that is placed, or of one that is up. */
void raw_hello_answer(struct raw_conn *c);
void raw_hello_input(struct raw_iface *iface, const struct weft_frame_view *v);
void raw_reset_input(struct raw_iface *iface, const struct weft_frame_view *v);

void raw_arp_input(struct raw_iface *iface, const struct weft_frame_view *v);
void raw_ep_waits_for(const struct weft_lane_ep *lane_ep, char *text, size_t size);

/* ---- engine/conn.c */
struct raw_conn *raw_conn_new(struct raw_iface *iface, bool passive);
void raw_conn_free(struct raw_conn *c);
/* Slots for more frames outstanding. @return false: no memory */
bool raw_slots_grow(struct raw_conn *c);
/* Nothing is outstanding, nor has been for long. */
void raw_slots_shrink(struct raw_conn *c);
void raw_conn_up(struct raw_conn *c, uint16_t frame_size);
void raw_conn_fail(struct raw_conn *c, int status, const char *text);
void raw_conn_bye(struct raw_conn *c);
void raw_conn_bye_input(struct raw_conn *c, const struct weft_frame_view *v);
int raw_ep_connect(struct weft_lane_iface *iface, const void *addr, size_t len, void *user,
		   struct weft_lane_ep **lane_ep);
void raw_ep_destroy(struct weft_lane_ep *lane_ep);
void raw_ep_check(struct weft_lane_ep *lane_ep);
bool raw_ep_is_from(struct weft_lane_ep *lane_ep, const void *addr, size_t len);
uint64_t raw_ep_host(const struct weft_lane_ep *lane_ep);
void raw_ep_print(struct weft_lane_ep *lane_ep, char *buf, size_t size);
const char *raw_peer_text(const struct raw_conn *c, char *buf, size_t size);

/* ---- engine/wait.c */
int raw_wait_fd(struct weft_lane_iface *base);
int raw_arm(struct weft_lane_iface *base, uint64_t now, uint64_t *due);
void raw_disarm(struct weft_lane_iface *base);

/* ---- engine/life.c: what happens to the port */
#define RAW_LOOK_UP 1000000000ull  /* lt between two looks at a port with a link */
#define RAW_LOOK_DOWN 100000000ull /* without one */
void raw_port_look(struct raw_iface *iface);
/* What waits for a port that takes nothing any more is counted and given up. */
void raw_txq_end(struct raw_iface *iface);

/* ---- engine/iface.c */
void raw_clocks(struct raw_iface *iface, uint64_t now);
void raw_fill_numbers(struct raw_iface *iface);

/* ---- engine/address.c */
#define RAW_ADDR_LEN 32u

struct raw_addr {
	uint8_t version;
	bool raw_ethertype;
	uint16_t udp_port, vlan, frame_size;
	uint32_t ip;
	uint8_t prefix, queues;
	uint8_t mac[6];
	uint64_t iface_id;
};

int raw_addr_read(const void *buf, size_t len, struct raw_addr *a);
void raw_get_address(struct weft_lane_iface *iface, void *buf);
int raw_is_reachable(struct weft_lane_iface *iface, const void *addr, size_t len, char *why,
		     size_t why_len);
int raw_next_hop(const struct raw_iface *iface, uint32_t ip, uint32_t *hop);
/* What to do about a missing ip=; "" when there is one, or nobody needs it. */
const char *raw_ip_hint(const struct raw_iface *iface);

#endif /* WEFT_RAW_H */
