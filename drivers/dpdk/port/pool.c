/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include <rte_log.h>
#include <rte_mbuf.h>

#include "port/nic_state.h"
#include "port/priv.h"

#define HDR_BUFS 1023      /* small mbufs if frames are one buffer each: control frames */
#define HDR_BUFS_MAX 16383 /* otherwise up to this number */
#define HDR_PER_FRAME 3    /* for each frame: a frame with user memory has header, data, CRC */
#define HDR_ROOM 256       /* bytes: the longest headers */
#define FRAME_BUFS 4095    /* a larger default has no benefit */
#define FRAME_BUFS_MIN 255 /* default number beyond the buffers of the rings */
#define CACHE 256
#define MIB (1u << 20)

/* A pool that could not be freed when its port was closed. */
struct late {
	LIST_ENTRY(late) link;
	struct rte_mempool *mp;
	uint16_t port, queue;
	bool known; /* the PMD refers to it, until the queue gets another one */
};

static LIST_HEAD(, late) late_pools = LIST_HEAD_INITIALIZER(late_pools);

static void free_or_keep(const struct weft_port_dev *d, uint16_t q, struct rte_mempool *mp,
			 bool known)
{
	struct late *l;

	if (!mp)
		return;
	if (!known && rte_mempool_full(mp)) {
		rte_mempool_free(mp);
		return;
	}
	l = malloc(sizeof(*l));
	if (!l) {
		RTE_LOG(ERR, USER1, "weft: no memory to remember %s: its buffers are lost\n",
			mp->name);
		return;
	}
	*l = (struct late){.mp = mp, .port = d->port_id, .queue = q, .known = known};
	LIST_INSERT_HEAD(&late_pools, l, link);
}

static void free_late(void)
{
	struct late *l = LIST_FIRST(&late_pools), *next;

	for (; l; l = next) {
		next = LIST_NEXT(l, link);
		if (l->known || !rte_mempool_full(l->mp))
			continue;
		rte_mempool_free(l->mp);
		LIST_REMOVE(l, link);
		free(l);
	}
}

/* The queue is about to get another pool: the old one may be freed by the next call. */
static void forget_late(const struct weft_port_dev *d, uint16_t q)
{
	struct late *l;

	LIST_FOREACH(l, &late_pools, link)
		if (l->port == d->port_id && l->queue == q)
			l->known = false;
}

static uint32_t object_size(uint32_t room)
{
	return rte_mempool_calc_obj_size((uint32_t)sizeof(struct rte_mbuf) + room, 0, NULL);
}

uint16_t weft_port_pool_room(const struct weft_port_dev *d)
{
	uint32_t room = weft_port_rx_room(d);

	/* Whole cache lines, so that copies of frames begin and end on them. */
	room = RTE_ALIGN(RTE_PKTMBUF_HEADROOM + room, RTE_CACHE_LINE_SIZE);
	/* A frame longer than 16 bits allow (with headroom) would come as a chain. */
	room = RTE_MIN(room, (uint32_t)RTE_ALIGN_FLOOR(UINT16_MAX, RTE_CACHE_LINE_SIZE));
	/* The pool adds its own header, and padding that spreads objects over memory channels. */
	while (d->limits.object_max && object_size(room) > d->limits.object_max)
		room -= RTE_CACHE_LINE_SIZE;
	return (uint16_t)room;
}

static uint32_t hdr_size(void)
{
	return object_size(RTE_PKTMBUF_HEADROOM + HDR_ROOM);
}

static uint32_t hdrs_per_frame(const struct weft_port_dev *d)
{
	return d->limits.no_extbuf || d->limits.no_chains || d->limits.by_pointer ? 0
										  : HDR_PER_FRAME;
}

static uint32_t count_hdrs(const struct weft_port_dev *d, uint32_t frames)
{
	return RTE_MIN(RTE_MAX(frames * hdrs_per_frame(d), (uint32_t)HDR_BUFS),
		       (uint32_t)HDR_BUFS_MAX);
}

static uint32_t count_frames(const struct weft_port_dev *d, uint16_t room, uint16_t nb_rx,
			     uint16_t nb_tx, uint32_t rx_bufs)
{
	uint32_t rings = nb_rx + nb_tx + d->limits.rx_reserve, n;

	/* Memory, kernel and ring ports keep none of these buffers in their rings. */
	if ((d->limits.copies_tx || d->limits.by_pointer) && !d->limits.rx_reserve)
		rings = 0;
	if (rx_bufs)
		return rings + rx_bufs;
	n = (WEFT_PORT_POOL_BYTES - HDR_BUFS * hdr_size()) /
	    (object_size(room) + hdrs_per_frame(d) * hdr_size());
	n = RTE_MIN(n, (uint32_t)FRAME_BUFS);
	return RTE_MAX(n, rings + FRAME_BUFS_MIN);
}

static struct rte_mempool *make_pool(const struct weft_port_dev *d, const char *kind, uint16_t q,
				     uint32_t n, uint16_t room)
{
	static unsigned int serial; /* a pool that is freed late keeps its name */
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "weft_%s_%u_%u_%u", kind, d->port_id, q, serial++);
	return rte_pktmbuf_pool_create(name, n, n >= 2 * CACHE ? CACHE : 0, 0, room,
				       rte_eth_dev_socket_id(d->port_id));
}

int weft_port_pools_create(struct weft_port_dev *d, uint16_t q, uint16_t nb_rx, uint16_t nb_tx,
			   uint32_t rx_bufs, char *why, size_t why_len)
{
	uint16_t room = weft_port_pool_room(d);
	uint32_t n = count_frames(d, room, nb_rx, nb_tx, rx_bufs), hdrs = count_hdrs(d, n);
	struct weft_nic_env env;
	char node[300];
	uint64_t bytes;

	free_late();
	forget_late(d, q);
	d->pools[q] = make_pool(d, "frames", q, n, room);
	d->hdr_pools[q] = make_pool(d, "hdrs", q, hdrs, RTE_PKTMBUF_HEADROOM + HDR_ROOM);
	if (d->pools[q] && d->hdr_pools[q])
		return 0;
	bytes = (uint64_t)n * object_size(room) + (uint64_t)hdrs * hdr_size();
	weft_nic_env_here(&env);
	weft_nic_node_memory(&env, rte_eth_dev_socket_id(d->port_id), node, sizeof(node));
	snprintf(
		why, why_len,
		"port %u (%s): no memory for %u buffers of %u bytes (%u MiB with those for "
		"headers; every lane has its own); give the EAL more (hugepages, or -m MB), or set "
		"WEFT_RX_BUFS lower%s",
		d->port_id, d->name, n, object_size(room), (unsigned int)((bytes + MIB - 1) / MIB),
		node);
	return -ENOMEM;
}

void weft_port_pools_free(struct weft_port_dev *d, uint16_t q)
{
	if (d->pools)
		free_or_keep(d, q, d->pools[q], q > 0 && d->limits.set_mtu);
	if (d->hdr_pools)
		free_or_keep(d, q, d->hdr_pools[q], false);
}
