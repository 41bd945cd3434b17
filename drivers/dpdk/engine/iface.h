/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/iface.h
 * One iface of the raw-DPDK lane engine: what its connections share. One thread owns it.
 */
#ifndef WEFT_ENGINE_IFACE_H
#define WEFT_ENGINE_IFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/container.h"
#include "base/log.h"
#include "capture/tap.h"
#include "frame/arp.h"
#include "frame/frame_port.h"
#include "frame/parse.h"
#include "lane.h"

/* All counters of the engine: enumerator, name in reports, description. */

#define RAW_COUNTER_LIST(X)                                                                        \
	X(RAW_RX_FRAMES, "rx.frames", "Frames received, those dropped included.")                  \
	X(RAW_RX_BYTES, "rx.bytes", "Bytes of frames received.")                                   \
	X(RAW_RX_MESSAGES, "rx.messages", "Messages received.")                                    \
	X(RAW_RX_ACKS, "rx.acks", "Frames received that acknowledge and carry no message.")        \
	X(RAW_RX_MARKED, "rx.marked", "Data frames received with a congestion mark (ECN).")        \
	X(RAW_RX_CHAINED, "rx.chained", "Frames received in several buffers.")                     \
	X(RAW_RX_CHAINED_COPIED, "rx.chained.copied",                                              \
	  "Frames received in several buffers and copied into one.")                               \
	X(RAW_RX_IN_PLACE, "rx.in_place",                                                          \
	  "Messages copied from the port's memory to their destination.")                          \
	X(RAW_RX_COPY_ONLY, "rx.copy_only",                                                        \
	  "Messages received that had to be copied: buffers are short.")                           \
	X(RAW_TX_FRAMES, "tx.frames", "Frames given to the port.")                                 \
	X(RAW_TX_BYTES, "tx.bytes", "Bytes of frames given to the port.")                          \
	X(RAW_TX_DATA, "tx.data", "Data frames sent, each counted once.")                          \
	X(RAW_TX_ACKS, "tx.acks", "Frames sent that acknowledge and carry no message.")            \
	X(RAW_TX_MARKED, "tx.marked",                                                              \
	  "Data frames that peers received with a congestion mark (ECN).")                         \
	X(RAW_TX_CONTROL, "tx.control",                                                            \
	  "Control frames sent: to connect, probe, answer and close.")                             \
	X(RAW_TX_FAST, "tx.retransmit.fast",                                                       \
	  "Frames sent again since later ones were acknowledged.")                                 \
	X(RAW_TX_RTO, "tx.retransmit.rto", "Frames sent again after a timeout.")                   \
	X(RAW_TX_PROBE, "tx.retransmit.probe",                                                     \
	  "Last frames sent again early, to detect losses at the end.")                            \
	X(RAW_TX_RETX_COPY, "tx.retransmit.copied",                                                \
	  "Frames sent again as a copy, since the port held the first.")                           \
	X(RAW_TX_QUERY, "tx.query",                                                                \
	  "Requests for an acknowledgement, on memory ports before a frame is sent again.")        \
	X(RAW_TX_PING, "tx.keepalive", "Frames sent to an idle peer to check that it lives.")      \
	X(RAW_PATH_BAD, "path.bad", "Times that a path was found bad.")                            \
	X(RAW_PATH_OPENED, "path.opened", "Further paths opened.")                                 \
	X(RAW_PATH_MORE, "path.more", "Trials that ended with one path more in use.")              \
	X(RAW_PATH_FEWER, "path.fewer", "Times that half of the paths became reserve.")            \
	X(RAW_PATH_BACK, "path.back", "Times that a bad path was found good again.")               \
	X(RAW_PATH_SWITCHES, "path.switches",                                                      \
	  "Times that sending left a path that was found bad.")                                    \
	X(RAW_TX_ALIVE, "tx.alive", "Heartbeats sent for a program that computes.")                \
	X(RAW_RX_ALIVE, "rx.alive", "Heartbeats received from peers that do not poll now.")        \
	X(RAW_TX_RESET, "tx.reset", "Frames sent to refuse a received one (RESET).")               \
	X(RAW_RESET_NOT_OURS, "tx.reset.withheld",                                                 \
	  "RESETs not sent: the frame was not for this interface.")                                \
	X(RAW_TX_ZCOPY, "tx.zcopy", "Frames sent from user memory.")                               \
	X(RAW_TX_ZCOPY_COPIED, "tx.zcopy.copied",                                                  \
	  "Frames copied that should have gone from user memory.")                                 \
	X(RAW_TX_ZCOPY_EARLY, "tx.zcopy.before_free",                                              \
	  "Zero-copy sends complete while the port held the buffers.")                             \
	X(RAW_TX_NO_BUFFER, "tx.no_buffer", "Times that no buffer was free to send.")              \
	X(RAW_TX_RING_FULL, "tx.ring_full",                                                        \
	  "Times that the port took fewer frames than it was given.")                              \
	X(RAW_TX_WINDOW_FULL, "tx.window_full", "Sends that found the window full.")               \
	X(RAW_TX_SHARE_FULL, "tx.share_full",                                                      \
	  "Sends that found their share of the buffers used up.")                                  \
	X(RAW_TX_WAITED, "tx.waited",                                                              \
	  "Frames that waited for more messages while earlier frames were unacknowledged.")        \
	X(RAW_TX_WAITED_LATE, "tx.waited_late",                                                    \
	  "Times that a frame waited too long for messages: others then left at once.")            \
	X(RAW_TX_STALLED, "tx.stalled", "Peers that stopped acknowledging; share cut.")            \
	X(RAW_TX_TAKEN_BACK, "tx.taken_back",                                                      \
	  "Frames to stalled peers whose buffers were taken back.")                                \
	X(RAW_DROP_NOT_OURS, "drop.not_ours",                                                      \
	  "Frames dropped: for another address, port or protocol.")                                \
	X(RAW_DROP_BAD_LENGTH, "drop.bad_length",                                                  \
	  "Frames dropped: lengths contradict each other.")                                        \
	X(RAW_DROP_BAD_IP, "drop.bad_ip",                                                          \
	  "Frames dropped: IP header wrong, with options, or a fragment.")                         \
	X(RAW_DROP_BAD_MAGIC, "drop.bad_magic", "Frames dropped: not of Weft.")                    \
	X(RAW_DROP_BAD_VERSION, "drop.bad_version", "Frames dropped: of another version of Weft.") \
	X(RAW_DROP_BAD_TYPE, "drop.bad_type", "Frames dropped: invalid type, flags or contents.")  \
	X(RAW_DROP_BAD_MESSAGE, "drop.bad_message",                                                \
	  "Frames dropped: their messages do not fill the body.")                                  \
	X(RAW_DROP_BAD_CSUM, "drop.bad_csum", "Frames dropped: wrong or missing checksum.")        \
	X(RAW_DROP_UNKNOWN, "drop.unknown_sender",                                                 \
	  "Frames dropped: of no connection of this interface.")                                   \
	X(RAW_DROP_STALE, "drop.stale_epoch",                                                      \
	  "Frames dropped: of an earlier incarnation of a connection.")                            \
	X(RAW_DROP_DUPLICATE, "drop.duplicate", "Data frames dropped: received before.")           \
	X(RAW_DROP_BEYOND, "drop.beyond_window",                                                   \
	  "Data frames dropped: beyond the receive window.")                                       \
	X(RAW_DROP_BAD_ACK, "drop.bad_ack", "Acknowledgements dropped: of what was never sent.")   \
	X(RAW_DROP_STATE, "drop.wrong_state",                                                      \
	  "Frames dropped: unexpected in the connection's state.")                                 \
	X(RAW_DROP_HALF_OPEN_FULL, "drop.half_open_full",                                          \
	  "Requests to connect refused: no place for another.")                                    \
	X(RAW_TX_PARTS, "tx.parts", "Parts of frames sent, since the path takes smaller ones.")    \
	X(RAW_RX_PARTS, "rx.parts", "Parts of frames received.")                                   \
	X(RAW_DROP_PARTS, "drop.parts",                                                            \
	  "Frames in parts dropped: incomplete, or parts contradict.")                             \
	X(RAW_MTU_LOWER, "mtu.lower", "Times that a connection went on with smaller frames.")      \
	X(RAW_MTU_HIGHER, "mtu.higher", "Times that a connection went on with larger frames.")     \
	X(RAW_MOVE_REQUESTS, "mac.requests",                                                       \
	  "CHALLENGEs sent to check another MAC address of a peer.")                               \
	X(RAW_MOVED, "mac.changed", "Peers found at another MAC address.")                         \
	X(RAW_HINT_QUERIES, "hint.asked", "Probes of a peer after a hint that it may be gone.")    \
	X(RAW_HINT_LIMITED, "hint.limited",                                                        \
	  "Hints that a peer may be gone that were ignored: too many.")                            \
	X(RAW_ICMP_IN, "icmp.received",                                                            \
	  "ICMP errors received that quote a frame of a connection.")                              \
	X(RAW_DROP_ICMP, "drop.icmp", "ICMP errors dropped: they quote no frame that was sent.")   \
	X(RAW_HELLO_RETRY, "hello.retry",                                                          \
	  "Requests to connect answered by a request for a cookie.")                               \
	X(RAW_HALF_EVICTED, "conn.half_open_evicted",                                              \
	  "Half-open connections given up for others.")                                            \
	X(RAW_DROP_TOO_LONG, "drop.too_long", "Frames dropped: longer than any frame of Weft.")    \
	X(RAW_DROP_PROBE, "drop.probe_size",                                                       \
	  "Probes of the frame size dropped: shorter than stated.")                                \
	X(RAW_DROP_RESET, "drop.reset_unproven",                                                   \
	  "RESETs dropped: they do not prove what they refuse.")                                   \
	X(RAW_DROP_UNSEALED, "drop.unsealed", "Plain frames dropped: their connection is sealed.") \
	X(RAW_DROP_SEAL_TAG, "drop.seal_tag",                                                      \
	  "Sealed frames dropped: changed, forged, or of another connection.")                     \
	X(RAW_DROP_SEAL_SEEN, "drop.seal_replay", "Sealed frames dropped: replays.")               \
	X(RAW_DROP_SEAL_OLD, "drop.seal_old",                                                      \
	  "Sealed frames dropped: older than 4096 others of their path.")                          \
	X(RAW_SEAL_HELLO_PLAIN, "seal.hello_plain",                                                \
	  "Hellos refused: one end seals its frames, the other does not.")                         \
	X(RAW_SEAL_HELLO_KEY, "seal.hello_key", "Hellos refused: of another job key.")             \
	X(RAW_SEAL_HELLO_MAC, "seal.hello_mac", "Hellos refused: changed, forged or replayed.")    \
	X(RAW_SEAL_HELLO_MODE, "seal.hello_mode",                                                  \
	  "Hellos refused: another WEFT_SEAL or WEFT_SEAL_DH.")                                    \
	X(RAW_RESET_HINTS, "seal.reset_hints",                                                     \
	  "RESETs received that are hints only: the interface has a job key.")                     \
	X(RAW_SEAL_REKEYS, "seal.rekeys",                                                          \
	  "Times that a connection changed the key it sends with.")                                \
	X(RAW_SEAL_KEY_SPENT, "seal.key_spent", "Frames that no key may seal or open any more.")   \
	X(RAW_STEER_HANDED, "steer.handed_over", "Frames of another queue handed to its worker.")  \
	X(RAW_STEER_HINTS, "steer.hints", "Hints handed to workers of other queues.")              \
	X(RAW_STEER_FULL, "steer.handed.full",                                                     \
	  "Frames of another queue dropped: its worker is late.")                                  \
	X(RAW_STEER_ELSEWHERE, "steer.elsewhere", "Frames received that came to another queue.")   \
	X(RAW_STEER_WRONG, "steer.wrong_queue",                                                    \
	  "Requests and probes not answered: they hashed to another queue.")                       \
	X(RAW_CONN_ACTIVE, "conn.active", "Connections begun from here.")                          \
	X(RAW_CONN_PASSIVE, "conn.passive", "Connections begun by peers.")                         \
	X(RAW_CONN_UP, "conn.up", "Connections that came up.")                                     \
	X(RAW_CONN_SUSPECT, "conn.suspect",                                                        \
	  "Times that a silent connection was suspected to be dead.")                              \
	X(RAW_CONN_FAILED, "conn.failed", "Connections that failed.")                              \
	X(RAW_CONN_GONE, "conn.gone", "Connections that the peer closed.")                         \
	X(RAW_CONN_EXPIRED, "conn.half_open_expired",                                              \
	  "Half-open connections that their peer did not finish.")                                 \
	X(RAW_RESET_IN, "conn.reset_by_peer",                                                      \
	  "Connections that the peer refused or forgot (RESET).")                                  \
	X(RAW_ARP_REQUESTS, "arp.requests", "ARP requests sent, or solicitations of IPv6.")        \
	X(RAW_ARP_ANSWERED, "arp.answered", "ARP requests, or solicitations, of others answered.") \
	X(RAW_ARP_IN, "arp.received", "ARP frames received.")                                      \
	X(RAW_ARP_CONFLICT, "arp.conflict", "ARP frames that show two hosts with one address.")    \
	X(RAW_PORT_ENDED, "port.ended", "Times that the port was removed or reset for good.")      \
	X(RAW_PORT_LINK_DOWN, "port.link_down", "Times that the link went down.")                  \
	X(RAW_PORT_LINK_UP, "port.link_up", "Times that the link came up.")                        \
	X(RAW_DROP_ENDED, "drop.port_ended",                                                       \
	  "Frames dropped: the port had ended before they left.")                                  \
	X(RAW_TIMER_LOOKS, "timer.looks", "Connections checked because a timer was due.")          \
	X(RAW_CONN_LOOKS, "conn.looks", "Connections checked to find a certain peer's.")           \
	X(RAW_PATH_LOOKS, "path.looks", "Frames checked to find a path that is late.")             \
	X(RAW_COOKIE_HASHES, "hello.cookie_hashes", "Cookies computed for requests to connect.")   \
	X(RAW_NO_MEMORY, "conn.no_memory",                                                         \
	  "Times that a connection found no memory for its state.")                                \
	X(RAW_TIME_BUSY, "time.busy_ns", "ns in which sent frames waited for acknowledgement.")    \
	X(RAW_TIME_CONGESTION, "time.congestion_ns",                                               \
	  "ns in which congestion control held a peer's frames back.")                             \
	X(RAW_TIME_WINDOW, "time.window_ns",                                                       \
	  "ns in which the window (WEFT_WINDOW) or the number of buffers held frames back.")       \
	X(RAW_TIME_PEER, "time.peer_ring_ns",                                                      \
	  "ns in which the limit of frames for a peer's receive ring held frames back.")           \
	X(RAW_TIME_SILENT, "time.silent_ns",                                                       \
	  "ns in which a peer that acknowledges nothing had used up its share of the buffers.")    \
	X(RAW_TIME_PORT, "time.port_full_ns", "ns in which the port did not take frames.")         \
	X(RAW_TIME_BUFFERS, "time.buffers_ns", "ns in which no buffer was free to send.")          \
	X(RAW_PEER_GAPS, "peer.gaps", "Reports of peers that they did not poll for a while.")      \
	X(RAW_PEER_GAP_NS, "peer.gap_ns", "ns in which peers did not poll, by their reports.")     \
	X(RAW_GAPS, "progress.gaps",                                                               \
	  "Times of more than 0.2 ms in which the owner neither polled nor slept.")

#define RAW_COUNTER_ENUM(id, name, help) id,
enum raw_counter { RAW_COUNTER_LIST(RAW_COUNTER_ENUM) RAW_COUNTERS };
#undef RAW_COUNTER_ENUM

#define RAW_LEVELS(X)                                                                         \
	X(iface->kept, "rx.kept", "Receive buffers now that the program has not given back.") \
	X(iface->share.tx_held, "tx.held", "Buffers now that wait for an acknowledgement.")   \
	X(iface->share.taken_back, "tx.taken_back_bytes",                                     \
	  "Bytes now of frames to stalled peers, copied to take their buffers back.")         \
	X(iface->conn_count, "conn.count", "Connections now, half-open ones included.")

/** Counters of path i of connection c; "conn#.path#." precedes their names. */
#define RAW_PATH_COUNTERS(X)                                              \
	X(c->path[i].order, "frames", "Data frames sent over this path.") \
	X(c->path[i].retransmits, "retransmits", "Frames sent again over this path.")
#define RAW_PATH_LEVELS(X) \
	X(c->path[i].rtt.srtt, "rtt_ns", "ns a round trip over this path takes now, smoothed.")
#define RAW_PATH_BAD_LEVEL(X) \
	X(c->multi->bad >> path & 1, "bad", "1 while this path is bad, else 0.")

/** Levels and counters of a path's congestion control: members of struct weft_cc. */
#define RAW_CC_LEVELS(X)                                                     \
	X(window, "window", "Bytes that may be in flight on this path now.") \
	X(target, "target_ns", "ns of round trip that this path aims at now.")
#define RAW_CC_COUNTERS(X)                                                          \
	X(marked, "marked_bytes", "Bytes that came with a congestion mark (ECN).")  \
	X(lost_queue, "lost_by_queue", "Bytes lost that a full queue explains.")    \
	X(lost_random, "lost_otherwise", "Bytes lost that no full queue explains.") \
	X(modes, "shares", "Times that this path shared a queue with other flows.")

#define RAW_BURST 32u
#define RAW_TXQ 64u     /* most frames that are complete and that the port has not accepted */
#define RAW_QUOTERS 16u /* hash buckets of senders: rate limits of short ICMP quotes */
#define RAW_STALE 64u   /* slots for stale timestamps, a hash table */

struct weft_question;
struct raw_conn;
struct raw_gone;
struct raw_part;
struct raw_ref;
struct raw_rx;
struct raw_seal;
struct raw_tx;
struct raw_zc;

/* Buffers that connections share: see engine/outstanding.c. */
struct raw_share {
	/* Frames held until acknowledged; their limit, and the limit that includes least shares. */
	uint32_t tx_held, tx_held_max, tx_held_hard;
	/* Small buffers in frames of several segments, as above. ACKs need some, too. */
	uint32_t hdr_held, hdr_held_max, hdr_held_hard;
	bool pressed; /* a buffer was refused since the last raw_share_take_back() */
	TAILQ_HEAD(, raw_tx) stalled;
	uint64_t taken_back; /* bytes of frames that were copied to the heap */
	uint64_t taken_back_max;
};

/* What holds frames back (engine/window.h). A counter has the time of each, in this order. */
enum raw_limit {
	RAW_LIMIT_CONGESTION,
	RAW_LIMIT_WINDOW,
	RAW_LIMIT_PEER,
	RAW_LIMIT_SILENT,
	RAW_LIMIT_CONNS, /* smaller values: limits of a connection; the others: of the iface */
	RAW_LIMIT_PORT = RAW_LIMIT_CONNS,
	RAW_LIMIT_BUFFERS,
	RAW_LIMITS
};

struct raw_limits {
	uint32_t bits;                 /* bit i: limit i holds frames back */
	uint32_t num[RAW_LIMIT_CONNS]; /* [i]: connections that limit i holds back */
};

/* An open frame waits only if its connection has at least this number of unacknowledged frames. */
#define RAW_WAIT_FRAMES 4u

/* Open frames that wait for further messages after raw_tx_posted(). */
struct raw_wait {
	bool leave;       /* an open frame must not wait: all leave */
	bool opened;      /* a frame was opened since the last raw_tx_posted() */
	uint8_t posts;    /* calls of raw_tx_posted() since a frame was last opened */
	uint16_t skip;    /* further intervals between progress calls in which no frame waits */
	uint16_t back;    /* `skip` after the last late wait, less 1 for each later wait in time */
	uint64_t skip_at; /* iface->now in the last interval that `skip` counted */
	uint64_t at;      /* platform's time when the newest wait began; 0 = no frame waits */
};

#define RAW_GAPS_KEPT 16u /* a power of two */

/* Times in which the owner did not poll: raw_gap_note(). */
struct raw_gaps {
	uint64_t total;         /* ns */
	uint64_t late, stopped; /* ns in long ones, and in very long ones */
	uint32_t count;
	uint16_t recent[RAW_GAPS_KEPT]; /* units of 16 us; newest: (count - 1) % RAW_GAPS_KEPT */
};

struct raw_txq {
	unsigned int head, count;
	struct rte_mbuf *frames[RAW_TXQ];
};

/* Zero-copy messages: see engine/outstanding.c. */
struct raw_zc_state {
	STAILQ_HEAD(, raw_zc) free;
	STAILQ_HEAD(, raw_zc) released; /* no slot and no mbuf refers to the message any more */
	/* the lane endpoint is destroyed, and mbufs of the port still refer to the message */
	LIST_HEAD(, raw_zc) orphans;
	/* no slot refers to the message, but mbufs of a PMD with registered memory do */
	LIST_HEAD(raw_zc_list, raw_zc) waiting;
	uint64_t poll_at; /* `now` before which the port's tx_done() is not called */
	void *chunks;
};

/* Half-open connections: see engine/lifetime.c. */
struct raw_half {
	uint32_t count;
	TAILQ_HEAD(, raw_conn) list; /* oldest first */
	/* Number of entries with a proven address, by hash of address and MAC, and of MAC alone. */
	uint16_t by_source[256], by_mac[256];
};

struct raw_iface {
	struct weft_lane_iface base;
	char name[64], note[128];
	struct weft_frame_port *port;
	struct weft_tap *tap; /* recorder and captures; NULL = neither */

	uint64_t rest_until; /* progress calls before this time may do nothing: idle_poll() */
	uint64_t now, tx_clock, live_clock;
	uint64_t next_tx_clock, next_live_clock; /* times at which raw_timers() is to be called */
	bool gap;           /* this progress call came late: no round-trip samples */
	bool sent_first;    /* this call may have sent frames before it received any */
	bool slept;         /* the owner has armed a wake-up by the port since the last call */
	uint64_t sleep_max; /* ns: the longest time that the owner meant to sleep */
	bool rx_l4_ok;      /* the UDP checksum of the present frame has been verified */
	uint32_t hand_max;  /* another worker's ring with this many frames gets no more */
	bool rx_elsewhere;  /* the present frame has come to another worker's queue */
	bool in_progress;
	bool rx_far;        /* another core or a NIC wrote the frames: prefetch them */
	unsigned int lcore; /* DPDK's number of the thread that is in raw_rx_poll() */
	bool sent_outside;  /* frames were sent since the last progress call ended */
	bool sent;          /* a frame has been sent with the present `now` as timestamp */
	uint32_t step;      /* ns between the last two calls of raw_clocks() */
	struct {
		uint32_t ts, error;
	} stale[RAW_STALE]; /* sent timestamps, and the ns by which each was stale at most */
	struct raw_ref *refs;
	struct raw_gone *gone;
	uint32_t refs_len; /* entries of refs and of gone; a power of two */
	/* Free indices into refs: a FIFO. */
	uint16_t *free_ring;
	uint32_t free_first, free_num;
	struct weft_table hello; /* connections, by the peer's numbers in HELLO */
	/* Connections that came up and have not failed, by hash of hop_ip; refs_len buckets. */
	TAILQ_HEAD(raw_hop_list, raw_conn) * by_hop;
	struct weft_deadlines by_tx_clock, by_live_clock; /* connections, by their index in refs */
	uint32_t kept, keep_max;  /* receive buffers that the protocol layer holds; the limit */
	struct rte_mbuf *in_hand; /* the frame whose messages are being delivered */
	uint32_t in_hand_back;    /* releases of in_hand during its delivery */
	struct raw_share share;
	struct raw_limits limits;
	struct raw_gaps gaps;
	weft_lane_recv_cb recv;
	weft_lane_recv_batch_cb recv_batch;
	weft_lane_recv_in_place_cb recv_in_place; /* exists if port->rx_in_place is set */
	uint8_t batch_id;
	/* header of an empty message of batch_id; without recv_batch a value that no header has */
	uint64_t alone;
	weft_lane_split_fn split;
	void *cb_arg;
	TAILQ_HEAD(, raw_tx) tx_list; /* senders with an open frame */
	TAILQ_HEAD(raw_rx_list, raw_rx) ack_list;
	bool acks_now; /* an acknowledgement of ack_list is due at once */
	/* tx_clock before which no other acknowledgement of ack_list is due */
	uint64_t acks_due;
	unsigned int tx_batch; /* full frames are collected in txq up to this number */
	unsigned int idle_polls;
	unsigned int full_bursts;
	unsigned int kicks; /* calls of tx_kick() by raw_arm() since it last cleared tx_used */
	bool tx_used;       /* frames were sent, and tx_kick() must still be called for them */
	struct raw_txq txq;
	struct raw_wait wait;
	struct weft_question *telemetry; /* NULL = no telemetry */

	struct weft_rx_pattern pattern;
	struct weft_rx_pattern sealed_pattern;
	struct weft_rx_filter rx_filter;
	uint64_t counter[RAW_COUNTERS];

	weft_lane_event_cb event;
	weft_lane_iface_event_cb iface_event;
	uint64_t look_at; /* live_clock of the next poll of the port's events */
	bool link_up;
	int ended; /* error of connections after the port has ended; 0 = it has not */
	char ended_why[256];
	double copy_bw;
	const struct weft_platform *platform;
	struct weft_lane_conf conf;
	struct raw_zc_state zc;
	TAILQ_HEAD(, raw_conn) resolving; /* in state RESOLVE; some have left that state */
	/* connections that linger in TIME_WAIT, oldest first */
	TAILQ_HEAD(, raw_conn) closed;
	TAILQ_HEAD(raw_parts, raw_part) parts; /* frames being assembled, oldest first */
	uint32_t num_parts;
	uint32_t conn_count, time_wait;
	struct raw_half half;
	struct raw_seal *seal;       /* NULL: no connection is sealed */
	uint32_t generation;         /* number of connections made */
	struct weft_siphash_key key; /* random: for generations, cookies, hashes */
	uint64_t worker_id, iface_id;
	uint64_t next_reset;
	/* Earliest times, by live_clock; engine/neighbour.c has the rules. */
	uint64_t move_arp;  /* of an ARP request for a peer that may have moved */
	uint64_t hint_next; /* of the next query of a peer because of a hint */
	/* rates of searches for the connection of a short quote, of all and by sender: is_due() */
	uint64_t quote_next, quote_by[RAW_QUOTERS];
	uint64_t announce_at; /* live_clock of the next announcement of this iface */
	uint8_t announced;    /* announcements since raw_announce_begin() */
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
	uint8_t l2_tag;      /* bytes of the VLAN tag in frames, or 0 */
	uint8_t wire_less;   /* a size in HELLO or PROBE is that of the frame less these bytes */
	uint16_t least_size; /* no connection agrees on a smaller frame size */
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
