/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "udp/udp_host.h"

#define NET 0x0a000000u /* a unicast address of IPv4: the engine refuses others */
#define SLOT_BITS 12u
#define GENERATIONS 4096u
#define WAYS 8u /* places in which an address may be */

static_assert(1u << SLOT_BITS == WEFT_UDP_HOSTS, "a slot has SLOT_BITS");

static uint32_t number_of(const struct weft_udp_hosts *h, uint32_t slot)
{
	return NET | h->host[slot].generation << SLOT_BITS | slot;
}

static bool is_ip(const struct weft_udp_host *host, const struct in6_addr *ip)
{
	return host->used != 0 && memcmp(&host->ip, ip, sizeof(*ip)) == 0;
}

static bool has(const struct weft_udp_hosts *h, uint32_t number)
{
	uint32_t slot = number % WEFT_UDP_HOSTS;

	return h->host[slot].used != 0 && number_of(h, slot) == number;
}

uint32_t weft_udp_host_number(struct weft_udp_hosts *h, const struct in6_addr *ip)
{
	uint32_t first = (uint32_t)weft_siphash(&h->key, ip, sizeof(*ip)), slot;
	struct weft_udp_host *host, *least = NULL;

	for (uint32_t i = 0; i < WAYS; i++) {
		slot = (first + i) % WEFT_UDP_HOSTS;
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
	least->ip = *ip;
	least->used = ++h->uses;
	return number_of(h, (uint32_t)(least - h->host));
}

void weft_udp_host_hold(struct weft_udp_hosts *h, uint32_t number, bool yes)
{
	/* A host may have been replaced between its frame and its connection, which times out. */
	if (has(h, number))
		h->host[number % WEFT_UDP_HOSTS].held += yes ? 1 : -1u;
}

const struct in6_addr *weft_udp_host_ip(const struct weft_udp_hosts *h, uint32_t number)
{
	return has(h, number) ? &h->host[number % WEFT_UDP_HOSTS].ip : NULL;
}

struct weft_udp_hosts *weft_udp_hosts_new(const struct in6_addr *own)
{
	struct weft_udp_hosts *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	/* Without random bytes a peer can choose the host that it replaces. */
	if (getrandom(&h->key, sizeof(h->key), 0) != sizeof(h->key))
		memset(&h->key, 0, sizeof(h->key));
	weft_udp_host_hold(h, weft_udp_host_number(h, own), true);
	return h;
}
