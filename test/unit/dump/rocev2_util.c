/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "rocev2_util.h"

void put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static void put24(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 16);
	put16(at + 1, v & 0xffff);
}

static uint8_t *put_ip4(uint8_t *at, const struct packet *p, uint32_t udp)
{
	at[0] = 0x45;
	at[1] = p->ecn;
	put16(at + 2, 20 + udp);
	at[8] = 64;
	at[9] = 17;
	memcpy(at + 12, (uint8_t[]){10, 0, 0, p->from, 10, 0, 0, p->to}, 8);
	return at + 20;
}

static uint8_t *put_ip6(uint8_t *at, const struct packet *p, uint32_t udp)
{
	at[0] = 0x60;
	at[1] = (uint8_t)(p->ecn << 4);
	put16(at + 4, udp);
	at[6] = 17;
	at[7] = 64;
	at[8] = at[24] = 0xfd;
	at[23] = p->from;
	at[39] = p->to;
	return at + 40;
}

struct dump_frame build(struct packet *p)
{
	uint32_t udp = 8 + 12 + p->more_len + p->payload + p->pad + 4;
	uint8_t *at = p->bytes + 12;

	memset(p->bytes, 0, sizeof(p->bytes));
	if (p->outer == VLAN) {
		memcpy(at, (uint8_t[]){0x81, 0, 0, 5}, 4);
		at += 4;
	}
	put16(at, p->outer == IP6 ? 0x86dd : 0x0800);
	at = (p->outer == IP6 ? put_ip6 : put_ip4)(at + 2, p, udp);
	put16(at, 50000);
	put16(at + 2, 4791);
	put16(at + 4, (uint32_t)((int)udp + p->udp_len));
	at += 8;
	at[0] = p->opcode;
	at[1] = (uint8_t)(p->pad << 4);
	put16(at + 2, 0xffff);
	put24(at + 5, p->qp);
	at[8] = p->ack_request ? 0x80 : 0;
	put24(at + 9, p->psn);
	memcpy(at + 12, p->more, p->more_len);
	p->len = (uint32_t)(at - p->bytes) + udp - 8;
	return (struct dump_frame){.data = p->bytes, .caplen = p->len, .len = p->len, .number = 1};
}

struct packet answer_of(uint8_t syndrome)
{
	return (struct packet){.opcode = ACKNOWLEDGE,
			       .from = 2,
			       .to = 1,
			       .qp = 0x21,
			       .psn = 7,
			       .more = {syndrome, 0, 0, 5},
			       .more_len = 4};
}
