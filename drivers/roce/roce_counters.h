/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_counters.h
 * All counters of the two kinds of interface, once: field, name and help text.
 */
#ifndef WEFT_ROCE_COUNTERS_H
#define WEFT_ROCE_COUNTERS_H

#include "base/counters.h"

#define ROCE_COUNTERS(X)                                                                         \
	X(tx, "tx.messages", "Messages sent.")                                                   \
	X(tx_bytes, "tx.bytes", "Bytes of messages sent.")                                       \
	X(doorbells, "tx.doorbells", "Times that requests were posted to it.")                   \
	X(words, "tx.counts", "Writes of a count of processed messages.")                        \
	X(no_credit, "tx.no_credit", "Sends that found the peer's window full.")                 \
	X(no_place, "tx.no_place", "Sends and operations that found the send queues full.")      \
	X(no_buffer, "tx.no_buffer", "Sends that found no buffer.")                              \
	X(rx, "rx.messages", "Messages received.")                                               \
	X(rx_bytes, "rx.bytes", "Bytes of messages received.")                                   \
	X(rx_copied, "rx.copied", "Messages received that had to be copied: buffers are short.") \
	X(partial_word, "rx.torn_count", "Counts of peers read while they were being written.")  \
	X(gets, "rma.gets", "Native reads posted.")                                              \
	X(get_bytes, "rma.get_bytes", "Bytes of native reads.")                                  \
	X(puts, "rma.puts", "Native writes posted.")                                             \
	X(put_bytes, "rma.put_bytes", "Bytes of native writes.")                                 \
	X(amos, "rma.atomics", "Native atomic operations posted.")                               \
	X(bad_imm, "drop.bad_immediate",                                                         \
	  "Messages that ended a lane: missing or invalid immediate data.")                      \
	X(bad_ack, "drop.bad_count", "Counts that ended a lane: of what was never sent.")        \
	X(bad_addr, "drop.bad_address", "Addresses of peers refused: malformed.")                \
	X(oversize, "drop.too_long", "Messages that ended a lane: longer than a buffer.")        \
	X(late, "drop.late", "Messages dropped: their lane is closed.")                          \
	X(stray, "drop.stray_completion", "Completions dropped: of no request.")                 \
	X(failed, "lanes.failed", "Lanes that failed.")                                          \
	X(suspect, "lanes.suspect", "Times that a silent lane was suspected to be dead.")        \
	X(stopped, "lanes.stopped", "Lanes stopped, with a report to the peer.")                 \
	X(events, "device.events", "Asynchronous events of the device.")

#define UD_COUNTERS(X)                                                                  \
	X(tx, "tx.messages", "Datagrams sent.")                                         \
	X(no_room, "tx.no_room", "Sends that found the queue full.")                    \
	X(tx_error, "tx.errors", "Datagrams that the device did not send.")             \
	X(cookie_requests, "tx.retry", "Cookies requested of peers.")                   \
	X(resets, "qp.resets", "Times that the queue pair failed and was reset.")       \
	X(rx, "rx.messages", "Datagrams received.")                                     \
	X(shown, "rx.retry", "Cookies sent at the request of a peer.")                  \
	X(looks, "conn.looks", "Connections checked to find a peer's.")                 \
	X(bad, "drop.malformed", "Datagrams dropped: malformed.")                       \
	X(bad_addr, "drop.bad_address", "Addresses of peers refused: malformed.")       \
	X(late, "drop.late", "Datagrams dropped: their connection is gone.")            \
	X(full, "drop.too_many_peers", "Datagrams dropped: no place for another peer.") \
	X(stray, "drop.stray_completion", "Completions dropped: of no request.")

#endif /* WEFT_ROCE_COUNTERS_H */
