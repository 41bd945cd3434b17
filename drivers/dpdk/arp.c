/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "arp.h"

enum { ARP_REQUEST = 1, ARP_REPLY = 2 };

void weft_arp_init(struct weft_arp *a, uint32_t ip, const uint8_t mac[6])
{
	memset(a, 0, sizeof(*a));
	a->ip = ip;
	memcpy(a->mac, mac, 6);
}

static struct weft_arp_entry *find(const struct weft_arp *a, uint32_t ip)
{
	for (size_t i = 0; i < WEFT_ARP_ENTRIES; i++) {
		if (a->entry[i].ip == ip)
			return (struct weft_arp_entry *)&a->entry[i];
	}
	return NULL;
}

/* A free entry, or the one that was not used for the longest time. */
static struct weft_arp_entry *take(struct weft_arp *a, uint32_t ip, uint64_t now)
{
	struct weft_arp_entry *e = &a->entry[0];

	for (size_t i = 0; i < WEFT_ARP_ENTRIES && e->ip != 0; i++) {
		if (a->entry[i].ip == 0 || a->entry[i].used < e->used)
			e = &a->entry[i];
	}
	*e = (struct weft_arp_entry){.ip = ip, .used = now};
	return e;
}

const uint8_t *weft_arp_lookup(struct weft_arp *a, uint32_t ip, uint64_t now)
{
	struct weft_arp_entry *e = ip != 0 ? find(a, ip) : NULL;

	if (e == NULL || !e->known)
		return NULL;
	e->used = now;
	return e->mac;
}

static void build(const struct weft_arp *a, struct weft_frame_arp *pkt, uint16_t op,
		  const uint8_t tha[6], uint32_t tpa)
{
	*pkt = (struct weft_frame_arp){
		.htype = weft_be16(1),
		.ptype = weft_be16(0x0800),
		.hlen = 6,
		.plen = 4,
		.op = weft_be16(op),
	};
	memcpy(pkt->sha, a->mac, 6);
	weft_put_be32(pkt->spa, a->ip);
	memcpy(pkt->tha, tha, 6);
	weft_put_be32(pkt->tpa, tpa);
}

bool weft_arp_ask(struct weft_arp *a, uint32_t ip, uint64_t now, struct weft_frame_arp *pkt)
{
	static const uint8_t nobody[6];
	struct weft_arp_entry *e = find(a, ip);
	uint64_t wait;

	if (e == NULL)
		e = take(a, ip, now);
	if (e->known || now < e->next_ask)
		return false;
	wait = WEFT_ARP_RETRY_MIN << (e->asked < 8 ? e->asked : 8);
	e->next_ask = now + (wait < WEFT_ARP_RETRY_MAX ? wait : WEFT_ARP_RETRY_MAX);
	e->asked++;
	e->used = now;
	build(a, pkt, ARP_REQUEST, nobody, ip);
	return true;
}

uint32_t weft_arp_asked(const struct weft_arp *a, uint32_t ip)
{
	const struct weft_arp_entry *e = find(a, ip);

	return e != NULL ? e->asked : 0;
}

void weft_arp_forget(struct weft_arp *a, uint32_t ip)
{
	struct weft_arp_entry *e = find(a, ip);

	if (e != NULL) {
		e->known = false;
		e->asked = 0;
		e->next_ask = 0;
	}
}

enum weft_arp_result weft_arp_input(struct weft_arp *a, const struct weft_frame_arp *pkt,
				    uint64_t now, struct weft_frame_arp *reply)
{
	uint32_t spa = weft_get_be32(pkt->spa), tpa = weft_get_be32(pkt->tpa);
	uint16_t op = weft_be16(pkt->op);
	bool asks_us = op == ARP_REQUEST && tpa == a->ip;
	struct weft_arp_entry *e;

	if ((op != ARP_REQUEST && op != ARP_REPLY) || (pkt->sha[0] & 1))
		return WEFT_ARP_IGNORED;
	if (spa == a->ip && memcmp(pkt->sha, a->mac, 6) != 0) {
		a->conflicts++;
		memcpy(a->conflict_mac, pkt->sha, 6);
		return WEFT_ARP_CONFLICT;
	}
	if (spa == a->ip)
		return WEFT_ARP_IGNORED; /* our own request, sent back by the link */
	e = spa != 0 ? find(a, spa) : NULL;
	if (e == NULL && asks_us && spa != 0)
		e = take(a, spa, now); /* who asks for us will be written to next */
	if (e != NULL) {
		memcpy(e->mac, pkt->sha, 6);
		e->known = true;
		e->asked = 0;
	}
	if (asks_us) {
		build(a, reply, ARP_REPLY, pkt->sha, spa);
		return WEFT_ARP_ANSWER;
	}
	return e != NULL ? WEFT_ARP_LEARNED : WEFT_ARP_IGNORED;
}
