/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_thash.h>

#include "frame/frame_port.h"

#define QUARTER 0x4000u

uint16_t weft_rss_queue(const struct weft_rss *rss, uint32_t src_ip, uint32_t dst_ip,
			uint16_t src_port, uint16_t dst_port)
{
	union rte_thash_tuple t = {.v4 = {.src_addr = src_ip, .dst_addr = dst_ip}};
	uint32_t hash;

	t.v4.sport = src_port;
	t.v4.dport = dst_port;
	hash = rte_softrss((uint32_t *)&t, RTE_THASH_V4_L4_LEN, (const uint8_t *)rss->key);
	return rss->reta[hash & (rss->reta_size - 1u)];
}

/* The highest quarter of the port numbers in which no queue listens. */
static uint16_t free_quarter(uint16_t base, uint16_t queues)
{
	uint32_t last = base + (queues ? queues : 1u) - 1, q;

	for (q = 3 * QUARTER; q == (base & 0xc000u) || q == (last & 0xc000u); q -= QUARTER)
		;
	return (uint16_t)q;
}

static uint16_t queue_share(uint16_t queues)
{
	uint32_t size = QUARTER;

	while (size * queues > QUARTER)
		size /= 2;
	return (uint16_t)size;
}

struct weft_port_range weft_port_range(uint16_t base, uint16_t queue, uint16_t queues)
{
	uint16_t size = queue_share(queues);

	return (struct weft_port_range){
		.first = (uint16_t)(free_quarter(base, queues) + queue * size),
		.mask = (uint16_t) ~(size - 1u),
	};
}

int weft_port_owner(uint16_t base, uint16_t queues, uint16_t udp_port)
{
	int queue;

	if (udp_port >= base && udp_port - base < queues)
		return udp_port - base;
	if ((udp_port & 0xc000u) != free_quarter(base, queues))
		return -1;
	queue = (udp_port & (QUARTER - 1)) / queue_share(queues);
	return queue < queues ? queue : -1;
}

uint16_t weft_path_port(const struct weft_path_choice *ch, unsigned int path, uint32_t *cursor)
{
	uint32_t size = (uint16_t)~ch->range.mask + 1u, at;
	uint32_t step = ch->token >> 15 | 1; /* odd: reaches every port of a power of two */
	uint16_t port;

	if (path == 0 && !ch->spread)
		return ch->port;
	if (ch->range_max && ch->range_max < size)
		size = ch->range_max;
	for (;;) {
		at = (*cursor)++;
		if (at >= 2 * size)
			*cursor = 0;
		port = (uint16_t)(ch->range.first + ((ch->token + at * step) & (size - 1)));
		if (port == ch->port)
			continue; /* the range includes the port on which this end listens */
		if (at >= size || !ch->rss ||
		    weft_rss_queue(ch->rss, ch->peer_ip, ch->ip, ch->peer_port, port) == ch->queue)
			return port;
	}
}
