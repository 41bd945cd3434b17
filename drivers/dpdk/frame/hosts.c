/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "frame/hosts.h"

#define NET 0x0a000000u /* a unicast address of IPv4: the engine refuses others */
#define SLOT_BITS 12u
#define GENERATIONS 4096u
#define WAYS 8u /* places in which an address may be */

static_assert(1u << SLOT_BITS == WEFT_HOSTS, "a slot has SLOT_BITS");

static uint32_t number_of(const struct weft_hosts *h, uint32_t slot)
{
	return NET | h->host[slot].generation << SLOT_BITS | slot;
}

static bool is_ip(const struct weft_host *host, const void *ip)
{
	return host->used != 0 && memcmp(&host->ip, ip, sizeof(host->ip)) == 0;
}

static bool has(const struct weft_hosts *h, uint32_t number)
{
	uint32_t slot = number % WEFT_HOSTS;

	return h->host[slot].used != 0 && number_of(h, slot) == number;
}

static uint32_t first_slot(const struct weft_hosts *h, const void *ip)
{
	return (uint32_t)weft_siphash(&h->key, ip, sizeof(struct in6_addr));
}

uint32_t weft_hosts_find(const struct weft_hosts *h, const void *ip)
{
	uint32_t first = first_slot(h, ip), slot;

	for (uint32_t i = 0; i < WAYS; i++) {
		slot = (first + i) % WEFT_HOSTS;
		if (is_ip(&h->host[slot], ip))
			return number_of(h, slot);
	}
	return 0;
}

uint32_t weft_hosts_number(struct weft_hosts *h, const void *ip)
{
	uint32_t first = first_slot(h, ip), slot;
	struct weft_host *host, *least = NULL;

	for (uint32_t i = 0; i < WAYS; i++) {
		slot = (first + i) % WEFT_HOSTS;
		host = &h->host[slot];
		if (is_ip(host, ip)) {
			host->used = ++h->uses;
			return number_of(h, slot);
		}
		if (host->held == 0 && (!least || host->used < least->used))
			least = host;
	}
	if (!least)
		return 0;
	least->generation = (least->generation + 1) % GENERATIONS;
	memcpy(&least->ip, ip, sizeof(least->ip));
	least->used = ++h->uses;
	return number_of(h, (uint32_t)(least - h->host));
}

void weft_hosts_hold(struct weft_hosts *h, uint32_t number, bool yes)
{
	/* A host may have been replaced between its frame and its connection, which times out. */
	if (has(h, number))
		h->host[number % WEFT_HOSTS].held += yes ? 1 : -1u;
}

const struct in6_addr *weft_hosts_ip(const struct weft_hosts *h, uint32_t number)
{
	return has(h, number) ? &h->host[number % WEFT_HOSTS].ip : NULL;
}

struct weft_hosts *weft_hosts_new(const void *own)
{
	struct weft_hosts *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	/* Without random bytes a peer can choose the host that it replaces. */
	if (getrandom(&h->key, sizeof(h->key), 0) != sizeof(h->key))
		memset(&h->key, 0, sizeof(h->key));
	weft_hosts_hold(h, weft_hosts_number(h, own), true);
	return h;
}
