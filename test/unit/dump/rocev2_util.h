/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rocev2_util.h
 * Packets of RoCE v2, built in memory.
 */
#ifndef DUMP_ROCEV2_UTIL_H
#define DUMP_ROCEV2_UTIL_H

#include <stdbool.h>
#include <stdint.h>

#include "dump/file.h"

#define SEND_FIRST 0x00
#define SEND_LAST 0x02
#define SEND_ONLY 0x04
#define SEND_ONLY_IMM 0x05
#define WRITE_ONLY 0x0a
#define READ_REQUEST 0x0c
#define READ_FIRST 0x0d
#define READ_MIDDLE 0x0e
#define READ_LAST 0x0f
#define ACKNOWLEDGE 0x11
#define FETCH_ADD 0x14
#define UD_SEND_ONLY 0x64
#define XRC_SEND_ONLY 0xa4
#define CNP 0x81

#define SYNDROME_RNR 0x20
#define SYNDROME_NAK 0x60

enum outer { IP4, IP6, VLAN };

/** A packet, and the parts of which it is made. */
struct packet {
	enum outer outer;
	uint8_t from, to; /**< last byte of the addresses */
	uint8_t opcode, ecn;
	uint32_t qp, psn;
	bool ack_request;
	uint8_t more[32]; /**< headers behind the BTH */
	uint32_t more_len, payload;
	uint8_t pad;
	int udp_len; /**< added to the right length */
	uint32_t len;
	uint8_t bytes[2048];
};

/** Offset of the BTH over IPv4 without VLAN. */
#define BTH_AT (14 + 20 + 8)

void put16(uint8_t *at, uint32_t v);
struct dump_frame build(struct packet *p);
/** An answer with this syndrome. */
struct packet answer_of(uint8_t syndrome);

#endif /* DUMP_ROCEV2_UTIL_H */
