/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/raw_counters.h
 * Everything that the engine counts, once: enumerator and the name that people see.
 */
#ifndef WEFT_RAW_COUNTERS_H
#define WEFT_RAW_COUNTERS_H

#define RAW_COUNTER_LIST(X)                               \
	X(RAW_RX_FRAMES, "rx.frames")                     \
	X(RAW_RX_BYTES, "rx.bytes")                       \
	X(RAW_RX_MESSAGES, "rx.messages")                 \
	X(RAW_RX_ACKS, "rx.acks")                         \
	X(RAW_RX_MARKED, "rx.marked")                     \
	X(RAW_RX_CHAINED, "rx.chained")                   \
	X(RAW_RX_CHAINED_COPIED, "rx.chained.copied")     \
	X(RAW_RX_COPY_ONLY, "rx.copy_only")               \
	X(RAW_TX_FRAMES, "tx.frames")                     \
	X(RAW_TX_BYTES, "tx.bytes")                       \
	X(RAW_TX_DATA, "tx.data")                         \
	X(RAW_TX_ACKS, "tx.acks")                         \
	X(RAW_TX_MARKED, "tx.marked")                     \
	X(RAW_TX_CONTROL, "tx.control")                   \
	X(RAW_TX_FAST, "tx.retransmit.fast")              \
	X(RAW_TX_RTO, "tx.retransmit.rto")                \
	X(RAW_TX_PROBE, "tx.retransmit.probe")            \
	X(RAW_TX_RETX_COPY, "tx.retransmit.copied")       \
	X(RAW_TX_PING, "tx.keepalive")                    \
	X(RAW_PATH_BAD, "path.bad")                       \
	X(RAW_PATH_OPENED, "path.opened")                 \
	X(RAW_PATH_MORE, "path.more")                     \
	X(RAW_PATH_FEWER, "path.fewer")                   \
	X(RAW_PATH_BACK, "path.back")                     \
	X(RAW_PATH_SWITCHES, "path.switches")             \
	X(RAW_TX_ALIVE, "tx.alive")                       \
	X(RAW_RX_ALIVE, "rx.alive")                       \
	X(RAW_TX_RESET, "tx.reset")                       \
	X(RAW_RESET_NOT_OURS, "tx.reset.withheld")        \
	X(RAW_TX_ZCOPY, "tx.zcopy")                       \
	X(RAW_TX_ZCOPY_COPIED, "tx.zcopy.copied")         \
	X(RAW_TX_ZCOPY_EARLY, "tx.zcopy.before_free")     \
	X(RAW_TX_NO_BUFFER, "tx.no_buffer")               \
	X(RAW_TX_RING_FULL, "tx.ring_full")               \
	X(RAW_TX_WINDOW_FULL, "tx.window_full")           \
	X(RAW_TX_SHARE_FULL, "tx.share_full")             \
	X(RAW_TX_STALLED, "tx.stalled")                   \
	X(RAW_TX_TAKEN_BACK, "tx.taken_back")             \
	X(RAW_DROP_NOT_OURS, "drop.not_ours")             \
	X(RAW_DROP_BAD_LENGTH, "drop.bad_length")         \
	X(RAW_DROP_BAD_IP, "drop.bad_ip")                 \
	X(RAW_DROP_BAD_MAGIC, "drop.bad_magic")           \
	X(RAW_DROP_BAD_VERSION, "drop.bad_version")       \
	X(RAW_DROP_BAD_TYPE, "drop.bad_type")             \
	X(RAW_DROP_BAD_MESSAGE, "drop.bad_message")       \
	X(RAW_DROP_BAD_CSUM, "drop.bad_csum")             \
	X(RAW_DROP_UNKNOWN, "drop.unknown_sender")        \
	X(RAW_DROP_STALE, "drop.stale_epoch")             \
	X(RAW_DROP_DUPLICATE, "drop.duplicate")           \
	X(RAW_DROP_BEYOND, "drop.beyond_window")          \
	X(RAW_DROP_BAD_ACK, "drop.bad_ack")               \
	X(RAW_DROP_STATE, "drop.wrong_state")             \
	X(RAW_DROP_HALF_OPEN_FULL, "drop.half_open_full") \
	X(RAW_TX_PARTS, "tx.parts")                       \
	X(RAW_RX_PARTS, "rx.parts")                       \
	X(RAW_DROP_PARTS, "drop.parts")                   \
	X(RAW_MTU_LOWER, "mtu.lower")                     \
	X(RAW_MTU_HIGHER, "mtu.higher")                   \
	X(RAW_MOVE_REQUESTS, "mac.requests")              \
	X(RAW_MOVED, "mac.changed")                       \
	X(RAW_HINT_ASKED, "hint.asked")                   \
	X(RAW_HINT_LIMITED, "hint.limited")               \
	X(RAW_ICMP_IN, "icmp.received")                   \
	X(RAW_DROP_ICMP, "drop.icmp")                     \
	X(RAW_HELLO_RETRY, "hello.retry")                 \
	X(RAW_HALF_EVICTED, "conn.half_open_evicted")     \
	X(RAW_DROP_TOO_LONG, "drop.too_long")             \
	X(RAW_DROP_PROBE, "drop.probe_size")              \
	X(RAW_DROP_RESET, "drop.reset_unproven")          \
	X(RAW_STEER_HANDED, "steer.handed_over")          \
	X(RAW_STEER_HINTS, "steer.hints")                 \
	X(RAW_STEER_FULL, "steer.handed.full")            \
	X(RAW_STEER_ELSEWHERE, "steer.elsewhere")         \
	X(RAW_STEER_WRONG, "steer.wrong_queue")           \
	X(RAW_CONN_ACTIVE, "conn.active")                 \
	X(RAW_CONN_PASSIVE, "conn.passive")               \
	X(RAW_CONN_UP, "conn.up")                         \
	X(RAW_CONN_SUSPECT, "conn.suspect")               \
	X(RAW_CONN_FAILED, "conn.failed")                 \
	X(RAW_CONN_GONE, "conn.gone")                     \
	X(RAW_CONN_EXPIRED, "conn.half_open_expired")     \
	X(RAW_RESET_IN, "conn.reset_by_peer")             \
	X(RAW_ARP_REQUESTS, "arp.requests")               \
	X(RAW_ARP_ANSWERED, "arp.answered")               \
	X(RAW_ARP_IN, "arp.received")                     \
	X(RAW_ARP_CONFLICT, "arp.conflict")               \
	X(RAW_PORT_ENDED, "port.ended")                   \
	X(RAW_PORT_LINK_DOWN, "port.link_down")           \
	X(RAW_PORT_LINK_UP, "port.link_up")               \
	X(RAW_DROP_ENDED, "drop.port_ended")              \
	X(RAW_TIMER_LOOKS, "timer.looks")                 \
	X(RAW_CONN_LOOKS, "conn.looks")                   \
	X(RAW_PATH_LOOKS, "path.looks")                   \
	X(RAW_COOKIE_HASHES, "hello.cookie_hashes")       \
	X(RAW_GAPS, "progress.gaps")

#define RAW_COUNTER_ENUM(id, name) id,
enum raw_counter { RAW_COUNTER_LIST(RAW_COUNTER_ENUM) RAW_COUNTERS };
#undef RAW_COUNTER_ENUM

#endif /* WEFT_RAW_COUNTERS_H */
