/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_wire.h
 * The wire format of RoCE lanes, except the protocol layer's messages, and its validation; and
 * decisions about a queue pair. core/wire.def has the structures: little-endian, packed. Pure: no
 * verbs calls.
 *
 * A message is one SEND with immediate data, which is its header:
 *
 *	bit 31     control: the am id is enum weft_roce_control, there is no payload
 *	bit 30     the sender requests a count at once when this message is processed
 *	bits 25-29 am id
 *	bits 0-24  messages of the other direction, on this queue pair, that the sender has
 *	           processed; cumulative, modulo 2^25
 *
 * Without a message to carry it, an RDMA WRITE of a struct weft_roce_word puts the count into the
 * peer's memory. A write needs no receive buffer, so it can't be refused when there is none. Counts
 * are cumulative, so a later write may replace an earlier one.
 */
#ifndef WEFT_ROCE_WIRE_H
#define WEFT_ROCE_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/wire_roce_def.h"

/* Version 1 had no cookies in datagrams; version 2 had no PING and no LANE_DOWN. */
#define WEFT_ROCE_VERSION 3
#define WEFT_ROCE_MAX_QPS 8
static_assert(sizeof(struct weft_roce_rx_state) == 4 * WEFT_ROCE_MAX_QPS, "one count each");

/* ------------------------------------------------------------------ immediate data */

#define WEFT_ROCE_IMM_CONTROL (1u << 31)
#define WEFT_ROCE_IMM_ACK_REQ (1u << 30)
#define WEFT_ROCE_COUNT_BITS 25
#define WEFT_ROCE_COUNT_MASK ((1u << WEFT_ROCE_COUNT_BITS) - 1)

static inline uint32_t weft_roce_imm(uint32_t flags, uint8_t am_id, uint32_t processed)
{
	return flags | (uint32_t)am_id << WEFT_ROCE_COUNT_BITS | (processed & WEFT_ROCE_COUNT_MASK);
}

static inline uint8_t weft_roce_imm_id(uint32_t imm)
{
	return imm >> WEFT_ROCE_COUNT_BITS & 31;
}

/* ------------------------------------------------------------------ counts without a message */

static inline struct weft_roce_word weft_roce_word(uint32_t processed)
{
	return (struct weft_roce_word){weft_put32(processed), weft_put32(~processed)};
}

static inline bool weft_roce_word_read(const volatile struct weft_roce_word *word,
				       uint32_t *processed)
{
	uint32_t p = le32toh(word->processed.v), c = le32toh(word->check.v);

	*processed = p;
	return p == ~c;
}

/* ------------------------------------------------------------------ addresses */

#define WEFT_ROCE_WINDOW_MAX 1024
#define WEFT_ROCE_SEG_MIN 1024
#define WEFT_ROCE_SEG_MAX 65536

/**
 * @param why  gets a sentence after an error; may be NULL
 * @return 0, -EINVAL, or -EPROTONOSUPPORT for another version
 */
int weft_roce_addr_check(const void *addr, size_t len, enum weft_roce_kind kind, char *why,
			 size_t why_len);

/** Validate a lane_ep's address from a peer, as weft_roce_addr_check() does. */
int weft_roce_ep_addr_check(const void *addr, size_t len, char *why, size_t why_len);

/** A GID as text: "10.0.0.1", "fe80::1". @p buf of 46 bytes at least. */
void weft_roce_gid_print(const uint8_t gid[16], char *buf, size_t size);

static inline bool weft_roce_gid_is_ipv4(const uint8_t gid[16])
{
	int i;

	for (i = 0; i < 10; i++)
		if (gid[i])
			return false;
	return gid[10] == 0xff && gid[11] == 0xff;
}

/* ------------------------------------------------------------------ wire-up over UD */

#define WEFT_ROCE_UD_MAGIC 0x5557
#define WEFT_ROCE_UD_BYE 0xff   /* the sender has closed this connection */
#define WEFT_ROCE_UD_RETRY 0xfe /* send the last datagram again, with this cookie */
#define WEFT_ROCE_GRH 40        /**< bytes before every datagram in its receive buffer */

struct weft_roce_ud_packet {
	uint8_t gid[16]; /**< its source, from the IP header */
	uint8_t am_id, mtu;
	uint32_t src_conn, dst_conn, src_qkey;
	uint64_t cookie;
	const uint8_t *data;
	size_t length;
};

/** @p buf begins with the network header; @p len is the completion's. @return 0 or -EBADMSG */
int weft_roce_ud_check(const uint8_t *buf, size_t len, struct weft_roce_ud_packet *out);

/* ------------------------------------------------------------------ credit */

/*
 * Every message takes one buffer of the receiver's shared queue. The receiver promises each queue
 * pair a *window* of buffers, and posts at least the sum of all windows. A sender has at most a
 * window of messages that the receiver has not reported as processed. So the shared queue is never
 * empty, and the hardware never delays a sender ("receiver not ready").
 *
 * "Processed" is "acknowledged" in the contract of lanes: the acknowledgement of the hardware means
 * only that the data are in the peer's memory.
 */

struct weft_roce_credit {
	uint32_t sent;       /**< messages handed to the queue pair; cumulative */
	uint32_t acked;      /**< messages of `sent` that the peer has processed */
	uint32_t window;     /**< messages that may be outstanding: the peer's promise */
	uint32_t processed;  /**< messages of the peer whose callback has returned */
	uint32_t reported;   /**< messages of `processed` that were reported to the peer */
	uint32_t own_window; /**< messages of the peer that may be outstanding */
};

static inline bool weft_roce_credit_room(const struct weft_roce_credit *c)
{
	return c->sent - c->acked < c->window;
}

enum weft_roce_ack { WEFT_ROCE_ACK_OLD, WEFT_ROCE_ACK_NEW, WEFT_ROCE_ACK_BAD };

/**
 * The peer reports that it has processed @p count messages, modulo 2^25. Counts arrive in messages
 * and in the word, and may overtake each other. So an older count is no error; a count beyond the
 * number of sent messages is.
 */
static inline enum weft_roce_ack weft_roce_credit_ack(struct weft_roce_credit *c, uint32_t count)
{
	uint32_t ahead = (count - c->acked) & WEFT_ROCE_COUNT_MASK;

	if (ahead == 0)
		return WEFT_ROCE_ACK_OLD;
	if (ahead <= c->sent - c->acked) {
		c->acked += ahead;
		return WEFT_ROCE_ACK_NEW;
	}
	/* An old count is at most two windows back: it preceded the last full window. */
	if (WEFT_ROCE_COUNT_MASK + 1 - ahead <= 2 * WEFT_ROCE_WINDOW_MAX)
		return WEFT_ROCE_ACK_OLD;
	return WEFT_ROCE_ACK_BAD;
}

/**
 * Take the count from the weft_roce_word that the peer writes, which has all 32 bits. It may be
 * arbitrarily old: while messages carry the count, the peer does not write the word.
 */
static inline enum weft_roce_ack weft_roce_credit_word(struct weft_roce_credit *c, uint32_t count)
{
	int32_t ahead = (int32_t)(count - c->acked);

	if (ahead <= 0)
		return WEFT_ROCE_ACK_OLD;
	if ((uint32_t)ahead > c->sent - c->acked)
		return WEFT_ROCE_ACK_BAD;
	c->acked = count;
	return WEFT_ROCE_ACK_NEW;
}

static inline bool weft_roce_credit_due(const struct weft_roce_credit *c)
{
	return c->processed - c->reported >= (c->own_window + 3) / 4;
}

/**
 * The window of a new queue pair: as configured while few buffers are promised, later 1/256 of the
 * buffers left, but at least 4. This leaves buffers for many peers.
 * @param left  buffers that can still be promised: weft_roce_left()
 * @return window, or 0: no more peers
 */
static inline uint32_t weft_roce_window(uint32_t wanted, uint32_t left)
{
	uint32_t w = left / 256 < wanted ? left / 256 : wanted;

	if (w < 4)
		w = 4;
	/* One more buffer is for BYE. */
	return left >= w + 1 ? w : 0;
}

/**
 * Receive buffers that can still be promised. An eighth is reserved for buffers that are being
 * processed, and buffers that the protocol layer keeps can't be posted. So posted buffers cover all
 * windows, for any number of peers.
 */
static inline uint32_t weft_roce_left(uint32_t total, uint32_t promised, uint32_t kept)
{
	uint32_t most = total - total / 8;

	return promised + kept < most ? most - promised - kept : 0;
}

/* ------------------------------------------------------------------ the send queue */

/*
 * Requests are posted in batches, because each post costs a doorbell (or, with a software device, a
 * system call). The first request on an idle queue is posted at once; the others wait until the
 * batch is full or the worker's progress call ends. The last request of a batch is signaled, and
 * its completion completes all before it: a stream of messages costs one completion per batch.
 * Reads, writes and atomics have a completion callback of their own, so each of them is signaled.
 */

#define WEFT_ROCE_BATCH 16 /**< requests per doorbell at most */

struct weft_roce_sq {
	uint32_t depth; /**< places; a power of 2 */
	uint32_t head;
	uint32_t posted; /**< requests handed to the device; head - posted more are collected */
	uint32_t tail;   /**< number of the first request that is not complete */
};

/** Are places left? @p reserve of them are kept for BYE and counts. */
static inline bool weft_roce_sq_room(const struct weft_roce_sq *sq, uint32_t reserve)
{
	return sq->head - sq->tail + reserve < sq->depth;
}

/** After a request was added: post now? @p idle: nothing was outstanding before it. */
static inline bool weft_roce_sq_ring(const struct weft_roce_sq *sq, bool idle)
{
	return idle || sq->head - sq->posted >= WEFT_ROCE_BATCH;
}

/** Request @p at has completed. @return number of requests complete by it; 0 = @p at is invalid */
static inline uint32_t weft_roce_sq_complete(const struct weft_roce_sq *sq, uint32_t at)
{
	uint32_t n = at + 1 - sq->tail;

	return n <= sq->posted - sq->tail ? n : 0;
}

/* ------------------------------------------------------------------ silence of a device */

/*
 * The longest time without a completion, while requests are outstanding, after which the lane is
 * suspected.
 *
 * A slow lane takes long for many bytes, and a lost packet is retransmitted only after the device's
 * own timeout. So the limit follows measurements of the lane, as a retransmission timeout does. It
 * is the sum of twice the longest wait for a completion and four times the time of the outstanding
 * requests at the slowest rate. Both are of the last 10 to 20 seconds in which the lane worked. The
 * limit is at least WEFT_ROCE_SILENCE_MIN_NS and at most WEFT_ROCE_SILENCE_MAX_NS. While there are
 * too few measurements it is WEFT_ROCE_SILENCE_NEW_NS, or the maximum if the sum is larger than
 * that.
 */

#define WEFT_ROCE_SILENCE_MIN_NS 50000000ull
#define WEFT_ROCE_SILENCE_NEW_NS 300000000ull
#define WEFT_ROCE_SILENCE_MAX_NS 1000000000ull
#define WEFT_ROCE_SILENCE_PERIOD_NS 10000000000ull
/** Completions before a limit is computed from them, and bytes before a rate is. */
#define WEFT_ROCE_SILENCE_ANSWERS 8u
#define WEFT_ROCE_SILENCE_BYTES 65536u

struct weft_roce_silence {
	uint64_t until;      /**< ns: end of this period */
	uint64_t longest[2]; /**< longest wait, ns: in this period, in the previous one */
	uint64_t ns, bytes;  /**< time and bytes of the measurement of a rate in progress */
	uint64_t
		ns_per_mib[2]; /**< slowest rate of this period, of the previous one; 0 = unknown */
	uint32_t answers;
};

/** The device has completed @p bytes of requests, after a silence of @p waited ns. */
static inline void weft_roce_silence_note(struct weft_roce_silence *s, uint64_t now,
					  uint64_t waited, uint64_t bytes)
{
	if (now >= s->until) {
		s->until = now + WEFT_ROCE_SILENCE_PERIOD_NS;
		s->longest[1] = s->longest[0];
		s->ns_per_mib[1] = s->ns_per_mib[0];
		s->longest[0] = s->ns_per_mib[0] = 0;
	}
	if (s->answers < WEFT_ROCE_SILENCE_ANSWERS)
		s->answers++;
	if (waited > s->longest[0])
		s->longest[0] = waited;
	s->ns += waited;
	s->bytes += bytes;
	if (s->bytes < WEFT_ROCE_SILENCE_BYTES)
		return;
	/* Add 1, because a rate of 0 means unknown. */
	waited = (s->ns << 20) / s->bytes + 1;
	if (waited > s->ns_per_mib[0])
		s->ns_per_mib[0] = waited;
	s->ns = s->bytes = 0;
}

static inline uint64_t weft_roce_silence_limit(const struct weft_roce_silence *s, uint64_t bytes)
{
	uint64_t longest = s->longest[s->longest[0] < s->longest[1]];
	uint64_t slowest = s->ns_per_mib[s->ns_per_mib[0] < s->ns_per_mib[1]];
	double ns = 2.0 * (double)longest + 4.0 * (double)slowest * (double)bytes / (1 << 20);

	if (s->answers < WEFT_ROCE_SILENCE_ANSWERS ||
	    (slowest == 0 && bytes >= WEFT_ROCE_SILENCE_BYTES / 2))
		return ns > WEFT_ROCE_SILENCE_NEW_NS ? WEFT_ROCE_SILENCE_MAX_NS
						     : WEFT_ROCE_SILENCE_NEW_NS;
	if (ns < WEFT_ROCE_SILENCE_MIN_NS)
		return WEFT_ROCE_SILENCE_MIN_NS;
	return ns < WEFT_ROCE_SILENCE_MAX_NS ? (uint64_t)ns : WEFT_ROCE_SILENCE_MAX_NS;
}

/* ------------------------------------------------------------------ the end of a queue pair */

/*
 * When a queue pair whose lane has ended may go into the error state.
 *
 * A queue pair in the error state sends no acknowledgements. So if one end leaves too early, the
 * device of the other retransmits its last request until it gives up. For these seconds the other
 * end can neither free its memory nor exit. The hardware sends an acknowledgement only after the
 * receiver's completion, and drops it if the queue pair goes into the error state in between. So an
 * end that has received BYE must not leave at once for that reason alone.
 *
 * Each end sends BYE, also in reply to that of the peer. It leaves
 *  - at once, when its own BYE is acknowledged and the peer's has arrived: both ends have finished;
 *  - soon, when one of the two is missing: the peer may not close at all, or has left already;
 *  - soon, when no message was received from the peer and none was sent to it: after a connection
 *    attempt that the other end has abandoned, no peer is left that could acknowledge BYE;
 *  - else when the device gives up.
 */

/**
 * ns. Longest delay of an acknowledgement in a busy device or host. It is less than the 268 ms
 * after which a request is retransmitted (default of the option `timeout`), so that no
 * retransmission goes to a queue pair that has left.
 */
#define WEFT_ROCE_LINGER_NS 100000000ull
/** ns. Timeout for BYE of the peer, which need not come. */
#define WEFT_ROCE_GRACE_NS 20000000ull

/** Times are ns of the worker's clock; 0 = not yet. */
struct weft_roce_close {
	uint64_t begin;    /**< our BYE was posted */
	uint64_t give_up;  /**< the device gives up */
	uint64_t acked_at; /**< all own requests have completed */
	uint64_t seen_at;  /**< BYE of the peer arrived */
	/** a message, count or acknowledgement of the peer came, or messages were sent to it */
	bool received;
};

static inline bool weft_roce_close_over(const struct weft_roce_close *c, uint64_t now)
{
	if (now >= c->give_up || (c->acked_at != 0 && c->seen_at != 0))
		return true;
	if (c->acked_at != 0)
		return now - c->acked_at >= WEFT_ROCE_GRACE_NS;
	if (c->seen_at != 0)
		return now - c->seen_at >= WEFT_ROCE_LINGER_NS;
	return !c->received && now - c->begin >= WEFT_ROCE_LINGER_NS;
}

#endif /* WEFT_ROCE_WIRE_H */
