/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_wire.h
 * The wire format of RoCE lanes, except the protocol layer's messages, and its validation.
 * core/wire.def has the structures: little-endian, packed. Pure: no verbs calls.
 *
 * A message is one SEND with immediate data; the immediate data is its header:
 *
 *	bit 31     control: the am id is enum weft_roce_control, there is no payload
 *	bit 30     the sender requests a count at once when this message is processed
 *	bits 25-29 am id
 *	bits 0-24  messages of the other direction, on this queue pair, that the sender has
 *	           processed; cumulative, modulo 2^25
 *
 * Without a message to carry it, the same count is sent by an RDMA WRITE of a struct weft_roce_word
 * into the peer's memory. A write needs no receive buffer, so it can't be refused when there is
 * none. Counts are cumulative, so a later write may replace an earlier one.
 */
#ifndef WEFT_ROCE_WIRE_H
#define WEFT_ROCE_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/wire_roce_def.h"
#include "core/wire_types.h"

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

/** @return true when the word is consistent */
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
 * Validate an iface's address from a peer.
 * @param why  gets a sentence after an error; may be NULL
 * @return 0, -EINVAL, or -EPROTONOSUPPORT for another version
 */
int weft_roce_addr_check(const void *addr, size_t len, enum weft_roce_kind kind, char *why,
			 size_t why_len);

/** weft_roce_addr_check() for a lane_ep's address. */
int weft_roce_ep_addr_check(const void *addr, size_t len, char *why, size_t why_len);

/** A GID as text: "10.0.0.1", "fe80::1". @p buf of 46 bytes at least. */
void weft_roce_gid_print(const uint8_t gid[16], char *buf, size_t size);

/** Is @p gid an IPv4-mapped address? */
static inline bool weft_roce_gid_is_ipv4(const uint8_t gid[16])
{
	int i;

	for (i = 0; i < 10; i++)
		if (gid[i])
			return false;
	return gid[10] == 0xff && gid[11] == 0xff;
}

/* ------------------------------------------------------------------ wire-up over UD */

#define WEFT_ROCE_UD_MAGIC 0x5557 /* "WU" */
#define WEFT_ROCE_UD_BYE 0xff     /* the sender has closed this connection */
#define WEFT_ROCE_UD_RETRY 0xfe   /* send the last datagram again, with this cookie */
#define WEFT_ROCE_GRH 40          /**< bytes before every datagram in its receive buffer */

/** A validated datagram. */
struct weft_roce_ud_packet {
	uint8_t gid[16]; /**< its source, from the IP header */
	uint8_t am_id, mtu;
	uint32_t src_conn, dst_conn, src_qkey;
	uint64_t cookie;
	const uint8_t *data;
	size_t length;
};

/**
 * Validate a received datagram: @p buf is the receive buffer, network header included, @p len the
 * completion's byte count.
 * @return 0 or -EBADMSG
 */
int weft_roce_ud_check(const uint8_t *buf, size_t len, struct weft_roce_ud_packet *out);

#endif /* WEFT_ROCE_WIRE_H */
