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
#define WAYS 8u        /* places in which an address may be */
#define OWN UINT64_MAX /* used: of the lane's own address */

static_assert(1u << SLOT_BITS == WEFT_UDP_HOSTS, "a slot has SLOT_BITS");

static uint32_t number_of(const struct weft_udp_hosts *h, uint32_t slot)
{
	return NET | h->host[slot].generation << SLOT_BITS | slot;
}

static bool is_ip(const struct weft_udp_host *host, const struct in6_addr *ip)
{
	return host->used != 0 && memcmp(&host->ip, ip, sizeof(*ip)) == 0;
}

static void count_use(struct weft_udp_hosts *h, struct weft_udp_host *host)
{
	if (host->used == OWN)
		return;
	host->used = ++h->uses;
	host->frames += host->frames != UINT32_MAX;
}

/*
 * Is @p a replaced rather than @p b? A host with a connection has had many frames, also if it is
 * idle now. A flood from many addresses has had few of each.
 */
static bool is_lesser(const struct weft_udp_host *a, const struct weft_udp_host *b)
{
	unsigned int of_a = (unsigned int)__builtin_clz(a->frames | 1);
	unsigned int of_b = (unsigned int)__builtin_clz(b->frames | 1);

	return of_a != of_b ? of_a > of_b : a->used < b->used;
}

uint32_t weft_udp_host_number(struct weft_udp_hosts *h, const struct in6_addr *ip)
{
	uint32_t first = (uint32_t)weft_siphash(&h->key, ip, sizeof(*ip)), slot, least = 0;
	struct weft_udp_host *host;

	for (uint32_t i = 0; i < WAYS; i++) {
		slot = (first + i) % WEFT_UDP_HOSTS;
		host = &h->host[slot];
		if (is_ip(host, ip)) {
			count_use(h, host);
			return number_of(h, slot);
		}
		if (i == 0 || is_lesser(host, &h->host[least]))
			least = slot;
	}
	host = &h->host[least];
	host->generation = (host->generation + 1) % GENERATIONS;
	host->ip = *ip;
	host->frames = 0;
	count_use(h, host);
	return number_of(h, least);
}

const struct in6_addr *weft_udp_host_ip(struct weft_udp_hosts *h, uint32_t number)
{
	uint32_t slot = number % WEFT_UDP_HOSTS;
	struct weft_udp_host *host = &h->host[slot];

	if (host->used == 0 || number_of(h, slot) != number)
		return NULL;
	count_use(h, host);
	return &host->ip;
}

struct weft_udp_hosts *weft_udp_hosts_new(const struct in6_addr *own)
{
	struct weft_udp_hosts *h = calloc(1, sizeof(*h));
	uint32_t number;

	if (!h)
		return NULL;
	/* Without random bytes a peer can choose the host that it replaces. */
	if (getrandom(&h->key, sizeof(h->key), 0) != sizeof(h->key))
		memset(&h->key, 0, sizeof(h->key));
	number = weft_udp_host_number(h, own);
	h->host[number % WEFT_UDP_HOSTS].frames = UINT32_MAX;
	h->host[number % WEFT_UDP_HOSTS].used = OWN;
	return h;
}
