/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_counters.h
 * Everything that the two kinds of interface count, once: field, and the name that people see.
 */
#ifndef WEFT_ROCE_COUNTERS_H
#define WEFT_ROCE_COUNTERS_H

#include <stdint.h>

#define ROCE_COUNTERS(X)                  \
	X(tx, "tx.messages")              \
	X(tx_bytes, "tx.bytes")           \
	X(doorbells, "tx.doorbells")      \
	X(words, "tx.counts")             \
	X(no_credit, "tx.no_credit")      \
	X(no_place, "tx.no_place")        \
	X(no_buffer, "tx.no_buffer")      \
	X(rx, "rx.messages")              \
	X(rx_bytes, "rx.bytes")           \
	X(rx_copied, "rx.copied")         \
	X(torn_word, "rx.torn_count")     \
	X(gets, "rma.gets")               \
	X(get_bytes, "rma.get_bytes")     \
	X(puts, "rma.puts")               \
	X(put_bytes, "rma.put_bytes")     \
	X(amos, "rma.atomics")            \
	X(bad_imm, "drop.bad_immediate")  \
	X(bad_ack, "drop.bad_count")      \
	X(bad_addr, "drop.bad_address")   \
	X(oversize, "drop.too_long")      \
	X(late, "drop.late")              \
	X(stray, "drop.stray_completion") \
	X(failed, "lanes.failed")         \
	X(suspect, "lanes.suspect")       \
	X(stopped, "lanes.stopped")       \
	X(events, "device.events")

#define UD_COUNTERS(X)                  \
	X(tx, "tx.messages")            \
	X(no_room, "tx.no_room")        \
	X(tx_error, "tx.errors")        \
	X(asked, "tx.retry")            \
	X(resets, "qp.resets")          \
	X(rx, "rx.messages")            \
	X(shown, "rx.retry")            \
	X(looks, "conn.looks")          \
	X(bad, "drop.malformed")        \
	X(bad_addr, "drop.bad_address") \
	X(late, "drop.late")            \
	X(full, "drop.too_many_peers")  \
	X(stray, "drop.stray_completion")

#define ROCE_COUNTER_FIELD(field, name) uint64_t field;

#endif /* WEFT_ROCE_COUNTERS_H */
