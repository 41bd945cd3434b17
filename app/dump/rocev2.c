/* SPDX-License-Identifier: BSD-3-Clause */

#include <stddef.h>

#include "dump/rocev2.h"

#define BTH_LEN 12u
#define ICRC_LEN 4u
#define DETH_LEN 8u
#define RETH_LEN 16u
#define AETH_LEN 4u
#define IMM_LEN 4u
#define IETH_LEN 4u
#define OPERANDS_LEN 28u /* of an atomic request: address, key, two operands */
#define RESULT_LEN 8u

/* ---- opcodes -------------------------------------------------------------------------------- */

#define REQUEST ROCEV2_REQUEST
#define FULL ROCEV2_FULL
#define RETH ROCEV2_RETH
#define AETH ROCEV2_AETH
#define IMM ROCEV2_IMM
#define ATOMIC ROCEV2_ATOMIC
#define IETH ROCEV2_IETH
#define BEGINS ROCEV2_READ_BEGINS
#define CONTINUES ROCEV2_READ_CONTINUES

/* The lower five bits of an opcode: InfiniBand Architecture Specification 1.4, table 38. */
static const struct {
	const char *name;
	uint16_t has;
} opcodes[32] = {
	[0x00] = {"SEND_FIRST", REQUEST | FULL},
	[0x01] = {"SEND_MIDDLE", REQUEST | FULL},
	[0x02] = {"SEND_LAST", REQUEST},
	[0x03] = {"SEND_LAST_WITH_IMMEDIATE", REQUEST | IMM},
	[0x04] = {"SEND_ONLY", REQUEST},
	[0x05] = {"SEND_ONLY_WITH_IMMEDIATE", REQUEST | IMM},
	[0x06] = {"RDMA_WRITE_FIRST", REQUEST | FULL | RETH},
	[0x07] = {"RDMA_WRITE_MIDDLE", REQUEST | FULL},
	[0x08] = {"RDMA_WRITE_LAST", REQUEST},
	[0x09] = {"RDMA_WRITE_LAST_WITH_IMMEDIATE", REQUEST | IMM},
	[0x0a] = {"RDMA_WRITE_ONLY", REQUEST | RETH},
	[0x0b] = {"RDMA_WRITE_ONLY_WITH_IMMEDIATE", REQUEST | RETH | IMM},
	[0x0c] = {"RDMA_READ_REQUEST", REQUEST | RETH},
	[0x0d] = {"RDMA_READ_RESPONSE_FIRST", FULL | AETH | BEGINS},
	[0x0e] = {"RDMA_READ_RESPONSE_MIDDLE", FULL | CONTINUES},
	[0x0f] = {"RDMA_READ_RESPONSE_LAST", AETH | CONTINUES},
	[0x10] = {"RDMA_READ_RESPONSE_ONLY", AETH | BEGINS},
	[0x11] = {"ACKNOWLEDGE", AETH},
	[0x12] = {"ATOMIC_ACKNOWLEDGE", AETH | ATOMIC},
	[0x13] = {"COMPARE_SWAP", REQUEST | ATOMIC},
	[0x14] = {"FETCH_ADD", REQUEST | ATOMIC},
	[0x16] = {"SEND_LAST_WITH_INVALIDATE", REQUEST | IETH},
	[0x17] = {"SEND_ONLY_WITH_INVALIDATE", REQUEST | IETH},
};

static const char *const transports[8] = {"RC", "UC", "RD", "UD", "CNP", "XRC"};

static const char *const answers[ROCEV2_ANSWERS] = {
	[ROCEV2_ACK] = "ACK",
	[ROCEV2_RNR] = "RNR NAK",
	[ROCEV2_NAK_SEQUENCE] = "NAK PSN sequence",
	[ROCEV2_NAK_REQUEST] = "NAK invalid request",
	[ROCEV2_NAK_ACCESS] = "NAK remote access",
	[ROCEV2_NAK_OPERATION] = "NAK remote operational",
	[ROCEV2_NAK_OTHER] = "NAK of another kind",
};

static unsigned int transport(const struct rocev2_packet *p)
{
	return p->opcode >> 5;
}

/* RD and XRC have headers of their own in front of the others: none of them is decoded. */
static uint16_t headers(const struct rocev2_packet *p)
{
	uint16_t has = opcodes[p->opcode & 0x1f].has;

	switch (transport(p)) {
	case ROCEV2_RC:
		return has;
	case ROCEV2_UC:
		return has & REQUEST && !(has & (ATOMIC | IETH)) ? has : 0;
	case ROCEV2_UD:
		return p->opcode == 0x64 || p->opcode == 0x65 ? has | ROCEV2_DETH : 0;
	default:
		return 0;
	}
}

const char *rocev2_transport_name(const struct rocev2_packet *p)
{
	return transports[transport(p)];
}

const char *rocev2_opcode_name(const struct rocev2_packet *p)
{
	if (p->opcode == ROCEV2_CNP)
		return "CNP";
	return transport(p) == ROCEV2_OF_CNP ? NULL : opcodes[p->opcode & 0x1f].name;
}

/* ---- headers -------------------------------------------------------------------------------- */

/* What is not decoded yet. */
struct rest {
	const uint8_t *p;
	uint32_t len, cap;
};

static uint32_t get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | get24(p + 1);
}

/* @return the header; NULL: the capture lacks it, or the packet is too short for it */
static const uint8_t *take(struct rest *r, uint32_t size, struct rocev2_packet *p)
{
	const uint8_t *at = r->p;

	if (r->len < size) {
		p->wrong = "the packet is too short for the headers of its opcode";
		return NULL;
	}
	if (r->cap < size) {
		p->cut = true;
		return NULL;
	}
	r->p += size;
	r->len -= size;
	r->cap -= size;
	return at;
}

static void deth(struct rocev2_packet *p, const uint8_t *at)
{
	p->src_qp = get24(at + 5);
}

static void reth(struct rocev2_packet *p, const uint8_t *at)
{
	p->remote = (uint64_t)get32(at) << 32 | get32(at + 4);
	p->length = get32(at + 12);
}

static void aeth(struct rocev2_packet *p, const uint8_t *at)
{
	p->syndrome = at[0];
	p->msn = get24(at + 1);
}

static void immediate(struct rocev2_packet *p, const uint8_t *at)
{
	p->imm = get32(at);
}

/* Headers in the order in which a packet has them. No packet has an operand and a result. */
static const struct {
	uint16_t has;
	uint8_t size;
	void (*decode)(struct rocev2_packet *p, const uint8_t *at);
} parts[] = {
	{ROCEV2_DETH, DETH_LEN, deth}, {RETH, RETH_LEN, reth},     {AETH, AETH_LEN, aeth},
	{IMM, IMM_LEN, immediate},     {ATOMIC, RESULT_LEN, NULL}, {IETH, IETH_LEN, NULL},
};

static void decode_parts(struct rocev2_packet *p, struct rest *r)
{
	uint16_t has = headers(p), missing = has & 0x3f;
	const uint8_t *at;
	uint32_t size;
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!(has & parts[i].has))
			continue;
		size = has & ATOMIC & parts[i].has && has & REQUEST ? OPERANDS_LEN : parts[i].size;
		at = take(r, size, p);
		if (!at)
			break;
		missing &= (uint16_t)~parts[i].has;
		if (parts[i].decode)
			parts[i].decode(p, at);
	}
	p->has = has & (uint16_t)~missing;
}

/* @return the number of bytes that fill up the payload to a multiple of four */
static uint32_t bth(struct rocev2_packet *p, const uint8_t *at)
{
	p->bth = true;
	p->opcode = at[0];
	p->solicited = at[1] >> 7;
	p->fecn = at[4] >> 7;
	p->becn = at[4] >> 6 & 1;
	p->dst_qp = get24(at + 5);
	p->ack_request = at[8] >> 7;
	p->psn = get24(at + 9);
	return at[1] >> 4 & 3;
}

void rocev2_decode(const uint8_t *at, uint32_t len, uint32_t cap, struct rocev2_packet *p)
{
	struct rest r = {at, len, cap < len ? cap : len};
	uint32_t pad;

	*p = (struct rocev2_packet){0};
	if (len < BTH_LEN + ICRC_LEN) {
		p->wrong = "the packet is too short for a BTH and an ICRC";
		return;
	}
	r.len -= ICRC_LEN;
	r.cap = r.cap < r.len ? r.cap : r.len;
	at = take(&r, BTH_LEN, p);
	if (!at)
		return;
	if (at[1] & 0xf) {
		p->wrong = "the version of the BTH is not 0";
		return;
	}
	pad = bth(p, at);
	decode_parts(p, &r);
	if (p->wrong)
		p->bth = false;
	else if (!p->cut && r.len < pad)
		p->wrong = "the padding is longer than the payload";
	if (p->wrong || p->cut)
		return;
	p->payload = r.p;
	p->payload_len = r.len - pad;
	p->payload_cap = r.cap < p->payload_len ? r.cap : p->payload_len;
}

/* ---- answers -------------------------------------------------------------------------------- */

enum rocev2_answer rocev2_answer(const struct rocev2_packet *p)
{
	switch (p->syndrome >> 5) {
	case 0:
		return ROCEV2_ACK;
	case 1:
		return ROCEV2_RNR;
	case 3:
		break;
	default:
		return ROCEV2_NAK_OTHER;
	}
	switch (p->syndrome & 0x1f) {
	case 0:
		return ROCEV2_NAK_SEQUENCE;
	case 1:
		return ROCEV2_NAK_REQUEST;
	case 2:
		return ROCEV2_NAK_ACCESS;
	case 3:
		return ROCEV2_NAK_OPERATION;
	default:
		return ROCEV2_NAK_OTHER;
	}
}

const char *rocev2_answer_name(enum rocev2_answer answer)
{
	return answers[answer];
}

/* InfiniBand Architecture Specification 1.4, table 45; the first code is the longest time. */
uint32_t rocev2_rnr_us(const struct rocev2_packet *p)
{
	static const uint16_t tens[32] = {0,    1,    2,    3,     4,     6,     8,     12,
					  16,   24,   32,   48,    64,    96,    128,   192,
					  256,  384,  512,  768,   1024,  1536,  2048,  3072,
					  4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
	uint32_t code = p->syndrome & 0x1f;

	return code ? tens[code] * 10u : 655360u;
}
