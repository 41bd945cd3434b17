/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include <rte_log.h>
#include <rte_mempool.h>
#include <rte_thash.h>

#include "frame/frame_port.h"

/* ---- steering ------------------------------------------------------------------------------- */

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
	uint32_t step = ch->token >> 15 | 1; /* odd, so it reaches every port: size is 2^n */
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
			continue; /* the range may include the port on which this end listens */
		if (at >= size || !ch->rss ||
		    weft_rss_queue(ch->rss, ch->peer_ip, ch->ip, ch->peer_port, port) == ch->queue)
			return port;
	}
}

/* ---- pools ---------------------------------------------------------------------------------- */

#define POOL_BYTES (24u << 20) /* limit of both pools, unless a number of buffers is set */
#define FRAME_BUFS_MAX 4095u
#define HDR_ROOM 256u
#define HDR_BUFS 1023u
#define HDR_PER_FRAME 3u /* mbufs of a frame with user memory: header, data, CRC */
#define HDR_BUFS_MAX 8191u
#define CACHE 256u

static struct rte_mempool *pool(const char *kind, const char *what, uint32_t n, uint32_t room)
{
	static unsigned int serial; /* atomic: several contexts open ports at the same time */
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "weft_%s_%s_%u", kind, what,
		 __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED));
	return rte_pktmbuf_pool_create(name, n, n >= 2 * CACHE ? CACHE : 0, 0, (uint16_t)room,
				       SOCKET_ID_ANY);
}

int weft_frame_pools_make(struct weft_frame_port *port, struct weft_frame_pools *conf)
{
	uint32_t room =
		(uint32_t)RTE_ALIGN(RTE_PKTMBUF_HEADROOM + port->frame_size, RTE_CACHE_LINE_SIZE);
	uint32_t hdr = RTE_PKTMBUF_HEADROOM + HDR_ROOM, hdrs;
	uint32_t per_frame = conf->no_extbuf ? 0 : HDR_PER_FRAME;
	uint32_t each = (uint32_t)sizeof(struct rte_mbuf) + room +
			per_frame * (hdr + (uint32_t)sizeof(struct rte_mbuf));

	if (conf->frames == 0)
		conf->frames = RTE_MIN(POOL_BYTES / each, FRAME_BUFS_MAX);
	conf->frames = RTE_MAX(conf->frames, conf->least);
	conf->room = room;
	hdrs = RTE_MIN(RTE_MAX(conf->frames * per_frame, HDR_BUFS), HDR_BUFS_MAX);
	port->pool = pool(conf->name, "frames", conf->frames, room);
	port->hdr_pool = pool(conf->name, "hdrs", hdrs, hdr);
	return port->pool && port->hdr_pool ? 0 : -ENOMEM;
}

/*
 * Pools of closed ports of which a capture or the protocol layer holds buffers. A later close frees
 * them.
 */
struct late {
	LIST_ENTRY(late) link;
	struct rte_mempool *mp;
};

static LIST_HEAD(, late) late_pools = LIST_HEAD_INITIALIZER(late_pools);
static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;

/* late_lock is held. */
static void free_late(void)
{
	struct late *l = LIST_FIRST(&late_pools), *next;

	for (; l; l = next) {
		next = LIST_NEXT(l, link);
		if (!rte_mempool_full(l->mp))
			continue;
		rte_mempool_free(l->mp);
		LIST_REMOVE(l, link);
		free(l);
	}
}

/* late_lock is held. */
static void keep(struct rte_mempool *mp)
{
	struct late *l = malloc(sizeof(*l));

	if (!l) {
		RTE_LOG(ERR, USER1, "weft: no memory to remember %s: its buffers are lost\n",
			mp->name);
		return;
	}
	l->mp = mp;
	LIST_INSERT_HEAD(&late_pools, l, link);
}

static void free_or_keep(struct rte_mempool *mp)
{
	pthread_mutex_lock(&late_lock);
	free_late();
	if (mp && !rte_mempool_full(mp))
		keep(mp);
	else
		rte_mempool_free(mp);
	pthread_mutex_unlock(&late_lock);
}

void weft_frame_pools_free(struct weft_frame_port *port)
{
	free_or_keep(port->pool);
	free_or_keep(port->hdr_pool);
}
