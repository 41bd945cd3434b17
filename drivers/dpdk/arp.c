/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include "arp.h"

enum { ARP_REQUEST = 1, ARP_REPLY = 2 };

void weft_arp_table_init(struct weft_arp_table *t)
{
	memset(t, 0, sizeof(*t));
	/* A default mutex: there is nothing that could fail. */
	pthread_mutex_init(&t->lock, NULL);
}

void weft_arp_init(struct weft_arp *a, uint32_t ip, const uint8_t mac[6],
		   struct weft_arp_table *shared)
{
	memset(a, 0, sizeof(*a));
	a->ip = ip;
	memcpy(a->mac, mac, 6);
	weft_arp_table_init(&a->own);
	a->table = shared != NULL ? shared : &a->own;
}

/* The functions with "table" in the name are called with the lock. */

static struct weft_arp_entry *table_find(struct weft_arp_table *t, uint32_t ip)
{
	for (size_t i = 0; i < WEFT_ARP_ENTRIES; i++) {
		if (t->entry[i].ip == ip)
			return &t->entry[i];
	}
	return NULL;
}

/* A free entry, or the one that was not used for the longest time: not all are fixed. */
static struct weft_arp_entry *table_take(struct weft_arp_table *t, uint32_t ip, uint64_t now)
{
	struct weft_arp_entry *e = NULL;

	for (size_t i = 0; i < WEFT_ARP_ENTRIES && (e == NULL || e->ip != 0); i++) {
		if (t->entry[i].fixed)
			continue;
		if (e == NULL || t->entry[i].ip == 0 || t->entry[i].used < e->used)
			e = &t->entry[i];
	}
	*e = (struct weft_arp_entry){.ip = ip, .used = now};
	return e;
}

bool weft_arp_lookup(struct weft_arp *a, uint32_t ip, uint64_t now, uint8_t mac[6])
{
	struct weft_arp_entry *e;
	bool known;

	if (ip == 0)
		return false;
	pthread_mutex_lock(&a->table->lock);
	e = table_find(a->table, ip);
	known = e != NULL && e->known;
	if (known) {
		e->used = now;
		memcpy(mac, e->mac, 6);
	}
	pthread_mutex_unlock(&a->table->lock);
	return known;
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

static bool table_ask(struct weft_arp_table *t, uint32_t ip, uint64_t now)
{
	struct weft_arp_entry *e = table_find(t, ip);
	uint64_t wait;

	if (e == NULL)
		e = table_take(t, ip, now);
	if (e->known || now < e->next_ask)
		return false;
	wait = WEFT_ARP_RETRY_MIN << (e->asked < 8 ? e->asked : 8);
	e->next_ask = now + (wait < WEFT_ARP_RETRY_MAX ? wait : WEFT_ARP_RETRY_MAX);
	e->asked++;
	e->used = now;
	return true;
}

bool weft_arp_ask(struct weft_arp *a, uint32_t ip, uint64_t now, struct weft_frame_arp *pkt)
{
	static const uint8_t nobody[6];
	bool due;

	pthread_mutex_lock(&a->table->lock);
	due = table_ask(a->table, ip, now);
	pthread_mutex_unlock(&a->table->lock);
	if (due)
		build(a, pkt, ARP_REQUEST, nobody, ip);
	return due;
}

uint32_t weft_arp_asked(struct weft_arp *a, uint32_t ip)
{
	const struct weft_arp_entry *e;
	uint32_t asked;

	pthread_mutex_lock(&a->table->lock);
	e = table_find(a->table, ip);
	asked = e != NULL ? e->asked : 0;
	pthread_mutex_unlock(&a->table->lock);
	return asked;
}

static int table_fix(struct weft_arp_table *t, uint32_t ip, const uint8_t mac[6])
{
	struct weft_arp_entry *e = table_find(t, ip);
	unsigned int fixed = 0;

	if (e != NULL && e->fixed)
		return memcmp(e->mac, mac, 6) == 0 ? 0 : -EEXIST;
	for (size_t i = 0; i < WEFT_ARP_ENTRIES; i++)
		fixed += t->entry[i].fixed;
	if (fixed >= WEFT_ARP_FIXED_MAX)
		return -ENOSPC;
	if (e == NULL)
		e = table_take(t, ip, 0);
	memcpy(e->mac, mac, 6);
	e->known = true;
	e->fixed = true;
	return 0;
}

int weft_arp_fix(struct weft_arp *a, uint32_t ip, const uint8_t mac[6])
{
	int rc;

	pthread_mutex_lock(&a->table->lock);
	rc = table_fix(a->table, ip, mac);
	pthread_mutex_unlock(&a->table->lock);
	return rc;
}

bool weft_arp_is_fixed(const struct weft_arp *a, uint32_t ip)
{
	const struct weft_arp_entry *e;
	bool fixed;

	pthread_mutex_lock(&a->table->lock);
	e = table_find(a->table, ip);
	fixed = e != NULL && e->fixed;
	pthread_mutex_unlock(&a->table->lock);
	return fixed;
}

static void table_forget(struct weft_arp_entry *e)
{
	e->known = false;
	e->asked = 0;
	e->next_ask = 0;
}

void weft_arp_forget(struct weft_arp *a, uint32_t ip)
{
	struct weft_arp_entry *e;

	pthread_mutex_lock(&a->table->lock);
	e = table_find(a->table, ip);
	if (e != NULL && !e->fixed)
		table_forget(e);
	pthread_mutex_unlock(&a->table->lock);
}

bool weft_arp_doubt(struct weft_arp *a, uint32_t ip, uint64_t now)
{
	struct weft_arp_entry *e;
	bool doubted;

	pthread_mutex_lock(&a->table->lock);
	e = table_find(a->table, ip);
	doubted = e != NULL && e->known && !e->fixed && now >= e->learned + WEFT_ARP_FRESH;
	if (doubted)
		table_forget(e);
	pthread_mutex_unlock(&a->table->lock);
	return doubted;
}

/*
 * Only while our own question is open: what nobody asked for is what somebody wants us to believe, and so is a second answer.
 * @return learned
 */
static bool table_learn(struct weft_arp_table *t, uint32_t ip, const uint8_t mac[6], uint64_t now)
{
	struct weft_arp_entry *e;

	if (ip == 0)
		return false;
	e = table_find(t, ip);
	if (e == NULL || e->known || e->asked == 0 || now >= e->next_ask + WEFT_ARP_OPEN)
		return false;
	memcpy(e->mac, mac, 6);
	e->known = true;
	e->learned = now;
	e->asked = 0;
	return true;
}

/* Does this MAC answer for addresses of others, too? */
static bool answers_for_others(const struct weft_arp *a, const uint8_t mac[6])
{
	bool found = false;

	pthread_mutex_lock(&a->table->lock);
	for (size_t i = 0; i < WEFT_ARP_ENTRIES && !found; i++) {
		const struct weft_arp_entry *e = &a->table->entry[i];

		found = e->ip != 0 && e->known && memcmp(e->mac, mac, 6) == 0;
	}
	pthread_mutex_unlock(&a->table->lock);
	return found;
}

enum weft_arp_result weft_arp_input(struct weft_arp *a, const struct weft_frame_arp *pkt,
				    uint64_t now, struct weft_frame_arp *reply)
{
	uint32_t spa = weft_get_be32(pkt->spa), tpa = weft_get_be32(pkt->tpa);
	uint16_t op = weft_be16(pkt->op);
	bool learned;

	if ((op != ARP_REQUEST && op != ARP_REPLY) || (pkt->sha[0] & 1))
		return WEFT_ARP_IGNORED;
	if (spa == a->ip && memcmp(pkt->sha, a->mac, 6) != 0) {
		if (answers_for_others(a, pkt->sha))
			return WEFT_ARP_IGNORED;
		a->conflicts++;
		memcpy(a->conflict_mac, pkt->sha, 6);
		return WEFT_ARP_CONFLICT;
	}
	if (spa == a->ip)
		return WEFT_ARP_IGNORED; /* our own request, sent back by the link */
	if (op == ARP_REQUEST) {
		if (tpa != a->ip)
			return WEFT_ARP_IGNORED;
		build(a, reply, ARP_REPLY, pkt->sha, spa);
		return WEFT_ARP_ANSWER;
	}
	pthread_mutex_lock(&a->table->lock);
	learned = table_learn(a->table, spa, pkt->sha, now);
	pthread_mutex_unlock(&a->table->lock);
	return learned ? WEFT_ARP_LEARNED : WEFT_ARP_IGNORED;
}
