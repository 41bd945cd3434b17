/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/rocev2.h
 * Decodes packets of RoCE v2: UDP port 4791, the headers of InfiniBand, a checksum (ICRC) at the
 * end. The ICRC is not verified. All lengths are checked, as any host can write such packets.
 */
#ifndef DUMP_ROCEV2_H
#define DUMP_ROCEV2_H

#include <stdbool.h>
#include <stdint.h>

#define ROCEV2_PORT 4791u
#define ROCEV2_PSN_MASK 0xffffffu
#define ROCEV2_CNP 0x81u

/** Transports: the upper three bits of an opcode. */
enum rocev2_transport { ROCEV2_RC, ROCEV2_UC, ROCEV2_RD, ROCEV2_UD, ROCEV2_OF_CNP, ROCEV2_XRC };

/** What is known of an opcode. The first six are headers behind the BTH. */
enum rocev2_has {
	ROCEV2_DETH = 1 << 0,
	ROCEV2_RETH = 1 << 1,
	ROCEV2_AETH = 1 << 2,
	ROCEV2_IMM = 1 << 3,
	ROCEV2_ATOMIC = 1 << 4,        /**< operands of an atomic, or its result */
	ROCEV2_IETH = 1 << 5,          /**< the key that the receiver makes invalid */
	ROCEV2_REQUEST = 1 << 6,       /**< its PSN is of its sender's requests */
	ROCEV2_FULL = 1 << 7,          /**< more packets follow: its payload has the path MTU */
	ROCEV2_READ_BEGINS = 1 << 8,   /**< first or only response to a read */
	ROCEV2_READ_CONTINUES = 1 << 9 /**< further response to a read */
};

enum rocev2_answer {
	ROCEV2_ACK,
	ROCEV2_RNR, /**< the receiver had no receive buffer */
	ROCEV2_NAK_SEQUENCE,
	ROCEV2_NAK_REQUEST,
	ROCEV2_NAK_ACCESS,
	ROCEV2_NAK_OPERATION,
	ROCEV2_NAK_OTHER,
	ROCEV2_ANSWERS
};

struct rocev2_packet {
	const char *wrong; /**< why it is malformed, in static storage; NULL = it is not */
	bool cut;          /**< the capture lacks a part of its headers; those are 0 here */
	bool bth;          /**< its BTH is there, and valid */
	uint8_t opcode;
	bool solicited, ack_request, fecn, becn;
	uint16_t has; /**< enum rocev2_has; headers that the capture lacks are not in it */
	uint32_t dst_qp, psn;
	uint32_t src_qp; /**< DETH */
	uint64_t remote; /**< RETH: address */
	uint32_t length; /**< RETH: bytes of the read or write */
	uint8_t syndrome;
	uint32_t msn; /**< AETH: messages that the responder has completed */
	uint32_t imm; /**< immediate data */
	const uint8_t *payload;
	uint32_t payload_len, payload_cap;
};

/**
 * Decode what follows a UDP header.
 * @param len  bytes in the packet. @param cap  bytes that were captured
 */
void rocev2_decode(const uint8_t *at, uint32_t len, uint32_t cap, struct rocev2_packet *p);

/** "RC", "UC", ... @return NULL: unknown */
const char *rocev2_transport_name(const struct rocev2_packet *p);
/** Name of the opcode without its transport, as "SEND_ONLY". @return NULL: unknown */
const char *rocev2_opcode_name(const struct rocev2_packet *p);
/** Of a packet with an AETH. */
enum rocev2_answer rocev2_answer(const struct rocev2_packet *p);
/** "ACK", "RNR NAK", ... */
const char *rocev2_answer_name(enum rocev2_answer answer);
/** Of an RNR NAK: the time, us, for which the requester has to wait. */
uint32_t rocev2_rnr_us(const struct rocev2_packet *p);

#endif /* DUMP_ROCEV2_H */
