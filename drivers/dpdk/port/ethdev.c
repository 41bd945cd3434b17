/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_memzone.h>
#include <rte_random.h>

#include "frame/arp.h"
#include "frame/farewell.h"
#include "port/conf.h"
#include "port/ethdev.h"
#include "port/event.h"
#include "port/kernel.h"
#include "port/nic_state.h"
#include "port/port.h"
#include "port/ports.h"
#include "port/rxtx.h"
#include "port/spread.h"
#include "port/zcopy.h"

/* ---- buffers -------------------------------------------------------------------------------- */

#define HDR_BUFS 1023 /* the least small mbufs of a queue pair: for control frames */
#define HDR_BUFS_MAX 16383
#define HDR_PER_FRAME 3    /* small mbufs of a frame with user memory: header, data, CRC */
#define HDR_ROOM 256       /* bytes */
#define FRAME_BUFS 4095    /* default number of frame buffers: more have no benefit */
#define FRAME_BUFS_MIN 255 /* least default number of frame buffers beyond those of the rings */
#define CACHE 256
#define MIB (1u << 20)

struct late {
	LIST_ENTRY(late) link;
	struct rte_mempool *mp;
	uint16_t port, queue;
	bool known; /* the PMD refers to the pool, until the queue gets another one */
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

static void forget_late(const struct weft_port_dev *d, uint16_t q)
{
	struct late *l;

	LIST_FOREACH(l, &late_pools, link)
		if (l->port == d->port_id && l->queue == q)
			l->known = false;
}

/*
 * net_af_xdp registers as many bytes as all objects of the pool have, from the page of the first
 * one on. Frames in objects beyond these bytes are lost. So objects of a page each begin at a page,
 * and are not spread over memory channels.
 */
static unsigned int pool_flags(const struct weft_port_dev *d)
{
	return d->limits.object_max ? RTE_MEMPOOL_F_NO_SPREAD : 0;
}

static uint32_t object_size(const struct weft_port_dev *d, uint32_t room)
{
	return rte_mempool_calc_obj_size((uint32_t)sizeof(struct rte_mbuf) + room, pool_flags(d),
					 NULL);
}

uint16_t weft_port_pool_room(const struct weft_port_dev *d)
{
	uint32_t room = weft_port_rx_room(d);

	/* Whole cache lines, so that copies of frames begin and end on them. */
	room = RTE_ALIGN(RTE_PKTMBUF_HEADROOM + room, RTE_CACHE_LINE_SIZE);
	/* A frame longer than 16 bits allow (with headroom) would come as a chain. */
	room = RTE_MIN(room, (uint32_t)RTE_ALIGN_FLOOR(UINT16_MAX, RTE_CACHE_LINE_SIZE));
	/* The pool adds a header to each object. */
	while (d->limits.object_max && object_size(d, room) > d->limits.object_max)
		room -= RTE_CACHE_LINE_SIZE;
	return (uint16_t)room;
}

static uint32_t hdr_size(void)
{
	return rte_mempool_calc_obj_size(
		(uint32_t)sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM + HDR_ROOM, 0, NULL);
}

static uint32_t hdrs_per_frame(const struct weft_port_dev *d)
{
	return d->limits.no_extbuf || d->limits.no_chains ? 0 : HDR_PER_FRAME;
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

	/* A port that copies keeps no buffer; one that passes pointers keeps only unread ones. */
	if ((d->limits.copies_tx || d->limits.by_pointer) && !d->limits.rx_reserve)
		rings = 0;
	if (rx_bufs)
		return rings + rx_bufs;
	n = (WEFT_PORT_POOL_BYTES - HDR_BUFS * hdr_size()) /
	    (object_size(d, room) + hdrs_per_frame(d) * hdr_size());
	n = RTE_MIN(n, (uint32_t)FRAME_BUFS);
	return RTE_MAX(n, rings + FRAME_BUFS_MIN);
}

static void pages_free(struct rte_mempool_memhdr *memhdr, void *zone)
{
	RTE_SET_USED(memhdr);
	rte_memzone_free(zone);
}

/* Make a pool whose objects follow each other from a page boundary on: see pool_flags(). */
static struct rte_mempool *make_pages(const struct weft_port_dev *d, const char *name, uint32_t n,
				      uint16_t room)
{
	struct rte_pktmbuf_pool_private private = {.mbuf_data_room_size = room};
	int socket = rte_eth_dev_socket_id(d->port_id), rc;
	const struct rte_memzone *zone;
	struct rte_mempool *mp;

	mp = rte_mempool_create_empty(name, n, (unsigned int)sizeof(struct rte_mbuf) + room, CACHE,
				      sizeof(private), socket, pool_flags(d));
	if (!mp)
		return NULL;
	rte_pktmbuf_pool_init(mp, &private);
	zone = rte_memzone_reserve_aligned(name, (size_t)n * object_size(d, room), socket, 0,
					   (unsigned int)getpagesize());
	rc = zone ? rte_mempool_set_ops_byname(mp, rte_mbuf_best_mempool_ops(), NULL) : -ENOMEM;
	if (!rc)
		rc = rte_mempool_populate_iova(mp, zone->addr, zone->iova, zone->len, pages_free,
					       (void *)(uintptr_t)zone);
	if (rc != (int)n) {
		if (rc <= 0 && zone)
			rte_memzone_free(zone);
		rte_mempool_free(mp);
		return NULL;
	}
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	return mp;
}

static struct rte_mempool *make_pool(const struct weft_port_dev *d, const char *kind, uint16_t q,
				     uint32_t n, uint16_t room, bool pages)
{
	static unsigned int serial; /* a pool that is freed late keeps its name */
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "weft_%s_%u_%u_%u", kind, d->port_id, q, serial++);
	if (pages)
		return make_pages(d, name, n, room);
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
	d->pools[q] = make_pool(d, "frames", q, n, room, d->limits.object_max > 0);
	d->hdr_pools[q] = make_pool(d, "hdrs", q, hdrs, RTE_PKTMBUF_HEADROOM + HDR_ROOM, false);
	if (d->pools[q] && d->hdr_pools[q])
		return 0;
	bytes = (uint64_t)n * object_size(d, room) + (uint64_t)hdrs * hdr_size();
	weft_nic_env_here(&env);
	weft_nic_node_memory(&env, rte_eth_dev_socket_id(d->port_id), node, sizeof(node));
	snprintf(
		why, why_len,
		"port %u (%s): no memory for %u buffers of %u bytes (%u MiB with those for "
		"headers; every lane has its own); give the EAL more (hugepages, or -m MB), or set "
		"WEFT_RX_BUFS lower%s",
		d->port_id, d->name, n, object_size(d, room),
		(unsigned int)((bytes + MIB - 1) / MIB), node);
	return -ENOMEM;
}

void weft_port_pools_free(struct weft_port_dev *d, uint16_t q)
{
	if (d->pools)
		free_or_keep(d, q, d->pools[q], q > 0 && d->limits.set_mtu);
	if (d->hdr_pools)
		free_or_keep(d, q, d->hdr_pools[q], false);
}

/* ---- claiming ------------------------------------------------------------------------------- */

static struct rte_eth_dev_owner owner; /* of all open ports */

static int dev_claim(struct weft_port_dev *d, bool no_owner, char *why, size_t why_len)
{
	if (!owner.id) {
		if (rte_eth_dev_owner_new(&owner.id))
			return weft_port_fail(-EBUSY, why, why_len, "port %u (%s) can't be claimed",
					      d->port_id, d->name);
		snprintf(owner.name, sizeof(owner.name), "weft");
	}
	if (rte_eth_dev_owner_set(d->port_id, &owner))
		return weft_port_fail(-EBUSY, why, why_len,
				      "port %u (%s) belongs to another part of this process",
				      d->port_id, d->name);
	if (no_owner)
		rte_eth_dev_owner_unset(d->port_id, owner.id);
	return 0;
}

static void dev_unclaim(const struct weft_port_dev *d)
{
	struct rte_eth_dev_owner now;

	/* With no_owner the application may have claimed the port in the meantime. */
	if (!weft_port_is_taken(d) && rte_eth_dev_owner_get(d->port_id, &now) == 0 &&
	    now.id == owner.id)
		rte_eth_dev_owner_unset(d->port_id, owner.id);
}

/* ---- start and stop ------------------------------------------------------------------------- */

static int dev_start(struct weft_port_dev *d, char *why, size_t why_len)
{
	int rc;

	if (d->limits.memif) {
		/* A zero-copy client returns slots late: its ring does not show new frames. */
		d->memif.no_wait = d->num_queues > 1 || d->limits.no_extbuf;
		/* A client whose server does not run yet starts later. */
		weft_memif_start(&d->memif);
		return 0;
	}
	rc = weft_port_needs_timers(d) ? weft_port_timers_start(d) : rte_eth_dev_start(d->port_id);
	d->started = rc == 0;
	if (rc == 0) {
		weft_port_find_depth(d);
		return 0;
	}
	return weft_port_fail(rc, why, why_len, "port %u (%s) does not start (%s)", d->port_id,
			      d->name, rte_strerror(-rc));
}

static void dev_stop(struct weft_port_dev *d)
{
	if (d->limits.memif)
		weft_memif_stop(&d->memif);
	else if (d->started && !weft_port_is_taken(d))
		rte_eth_dev_stop(d->port_id);
	weft_port_timers_stop(d);
	d->started = false;
}

/* ---- the device ----------------------------------------------------------------------------- */

static void dev_close(struct weft_port_dev *d)
{
	uint16_t q;

	dev_stop(d);
	weft_dma_close(d->port_id);
	weft_port_events_off(d);
	weft_port_spread_close(d);
	for (q = 0; q < d->num_queues; q++)
		weft_port_pools_free(d, q);
	dev_unclaim(d);
	weft_port_unclaim(d);
	weft_port_devs[d->port_id] = NULL;
	free(d->queues);
	free(d->pools);
	free(d->hdr_pools);
	weft_arp_table_fini(&d->arp);
	free(d->xdp_socks);
	free(d);
}

static int needs_udp(const struct weft_port_dev *d, char *why, size_t why_len)
{
	return weft_port_fail(
		-EINVAL, why, why_len,
		"port %u (%s): frames without UDP can't be steered, so queues=%u does not go "
		"with encap=ether",
		d->port_id, d->name, d->num_queues);
}

static int needs_ipv4(const struct weft_port_dev *d, char *why, size_t why_len)
{
	return weft_port_fail(-EINVAL, why, why_len,
			      "port %u (%s): with an IPv6 address it has one queue, and one worker",
			      d->port_id, d->name);
}

static int count_queues(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
			size_t why_len)
{
	uint16_t max = RTE_MIN(d->info.max_rx_queues, d->info.max_tx_queues);

	d->num_queues = o->queues ? o->queues : 1;
	if (d->num_queues > 1 && o->raw_ethertype)
		return needs_udp(d, why, why_len);
	if (d->num_queues > 1 && o->six)
		return needs_ipv4(d, why, why_len);
	if (d->num_queues > max)
		return weft_port_fail(-EINVAL, why, why_len,
				      "port %u (%s) has %u queue pairs, queues=%u is too many",
				      d->port_id, d->name, max, d->num_queues);
	if (o->udp_port + d->num_queues > 65536)
		return weft_port_fail(
			-EINVAL, why, why_len,
			"port %u (%s): queues=%u take as many UDP ports, from %u on: beyond "
			"65535, so choose a smaller port=",
			d->port_id, d->name, d->num_queues, o->udp_port);
	return 0;
}

static int dev_prepare(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
		       size_t why_len)
{
	int rc = rte_eth_dev_info_get(d->port_id, &d->info);

	if (rc)
		return weft_port_fail(rc, why, why_len,
				      "port %u (%s) reports nothing about itself (%s)", d->port_id,
				      d->name, rte_strerror(-rc));
	rc = weft_port_limits_find(d, why, why_len);
	if (!rc)
		weft_port_zcopy_find(d, o->no_extbuf);
	if (!rc)
		rc = weft_port_choose_frame(d, o, why, why_len);
	if (!rc)
		rc = count_queues(d, o, why, why_len);
	return rc;
}

static int try_set_up(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
		      size_t why_len)
{
	int rc = weft_port_configure(d, o, why, why_len);

	return rc ? rc : dev_start(d, why, why_len);
}

/* PMDs refuse RX interrupts at configuration, queue setup or start: the port then has none. */
static int set_up(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
		  size_t why_len)
{
	uint16_t q;
	int rc;

	for (q = 0; q < d->num_queues; q++)
		d->xdp_socks[q] = -1;
	d->rx_intr = weft_port_intr_wanted(d, o->rx_intr);
	rc = try_set_up(d, o, why, why_len);
	if (rc == 0 || !d->rx_intr)
		return rc;
	snprintf(d->no_intr, sizeof(d->no_intr), "%s", why);
	dev_stop(d); /* undo the first try: the timers of a PMD */
	d->rx_intr = false;
	for (q = 0; q < d->num_queues; q++) {
		weft_port_pools_free(d, q);
		d->pools[q] = d->hdr_pools[q] = NULL;
	}
	return try_set_up(d, o, why, why_len);
}

static int dev_open(uint16_t id, const struct weft_port_opts *o, char *why, size_t why_len)
{
	struct weft_port_dev *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return weft_port_fail(-ENOMEM, why, why_len, "no memory for port %u", id);
	d->port_id = id;
	d->vlan = o->vlan != 0;
	d->vlan_id = o->vlan;
	d->ip = o->ip;
	d->base_udp_port = o->udp_port;
	weft_port_name(id, d->name);
	weft_arp_table_init(&d->arp, rte_rand());
	rc = weft_port_revive(d, why, why_len);
	if (!rc)
		rc = dev_prepare(d, o, why, why_len);
	if (!rc)
		rc = weft_port_claim(d, why, why_len);
	if (!rc)
		rc = dev_claim(d, o->no_owner, why, why_len);
	if (rc) {
		weft_port_unclaim(d);
		weft_dma_close(id);
		weft_arp_table_fini(&d->arp);
		free(d);
		return rc;
	}
	weft_port_devs[id] = d;
	weft_port_events_on(d);
	d->queues = calloc(d->num_queues, sizeof(*d->queues));
	d->pools = calloc(d->num_queues, sizeof(*d->pools));
	d->hdr_pools = calloc(d->num_queues, sizeof(*d->hdr_pools));
	d->xdp_socks = malloc(d->num_queues * sizeof(*d->xdp_socks));
	if (!d->queues || !d->pools || !d->hdr_pools || !d->xdp_socks)
		rc = weft_port_fail(-ENOMEM, why, why_len, "no memory for port %u (%s)", id,
				    d->name);
	if (!rc)
		rc = set_up(d, o, why, why_len);
	if (!rc)
		rc = weft_port_spread_open(d, why, why_len);
	if (rc)
		dev_close(d);
	return rc;
}

/* ---- one queue pair ------------------------------------------------------------------------- */

static uint32_t port_flags(const struct weft_port_dev *d)
{
	uint32_t flags = 0;

	if (d->limits.memory)
		flags |= WEFT_FRAME_PORT_MEMORY;
	if (d->limits.rx_own)
		flags |= WEFT_FRAME_PORT_RX_OWN;
	if (d->shared)
		flags |= WEFT_FRAME_PORT_SHARED;
	if (d->offloads_rx & RTE_ETH_RX_OFFLOAD_UDP_CKSUM)
		flags |= WEFT_FRAME_PORT_RX_CSUM;
	if (d->offloads_tx & RTE_ETH_TX_OFFLOAD_UDP_CKSUM)
		flags |= WEFT_FRAME_PORT_TX_CSUM;
	/* A port that passes pointers copies chains into one buffer. */
	if ((d->offloads_tx & RTE_ETH_TX_OFFLOAD_MULTI_SEGS && !d->limits.no_chains) ||
	    d->limits.by_pointer)
		flags |= WEFT_FRAME_PORT_MULTISEG;
	return flags;
}

static const struct weft_frame_port_ops *ops_for(const struct weft_port_limits *l)
{
	if (l->xdp_queues)
		return &weft_port_xdp_ops;
	if (l->packet_socket)
		return &weft_port_packet_ops;
	if (l->memif)
		return &weft_port_memif_ops;
	return l->by_pointer ? &weft_port_ring_ops : &weft_port_ops;
}

static int fill_frame_port(struct weft_port *p, const struct weft_port_opts *o, char *why,
			   size_t why_len)
{
	struct weft_port_dev *d = p->dev;
	struct weft_frame_port *fp = &p->fp;
	struct rte_ether_addr mac;

	if (rte_eth_macaddr_get(d->port_id, &mac))
		return weft_port_fail(-EIO, why, why_len, "port %u (%s) has no MAC address",
				      d->port_id, d->name);
	memcpy(fp->mac, &mac, sizeof(fp->mac));
	fp->ops = ops_for(&d->limits);
	snprintf(fp->name, sizeof(fp->name), "%u", d->port_id);
	snprintf(fp->device, sizeof(fp->device), "%s", d->name);
	fp->flags = port_flags(d);
	fp->socket = rte_eth_dev_socket_id(d->port_id);
	fp->frame_size = (uint16_t)d->frame_size;
	fp->rx_depth = d->limits.rx_depth;
	fp->tx_depth = d->limits.tx_depth;
	fp->flags |= WEFT_FRAME_PORT_MEASURE | (d->limits.copies ? WEFT_FRAME_PORT_COPIES : 0u);
	fp->bandwidth = weft_port_bandwidth(d, &fp->flags);
	fp->link = d->limits.link;
	fp->warning = d->warning;
	if (o->six)
		weft_port_take_ip6(p, o);
	weft_port_events_begin(p);
	fp->latency = d->limits.latency;
	fp->kernel_ip = d->limits.kernel_link ? weft_kernel_ip(d->limits.if_index) : 0;
	fp->pool = d->pools[p->queue];
	fp->hdr_pool = d->hdr_pools[p->queue];
	fp->rx_chained = weft_port_rx_scatters(d, rte_pktmbuf_data_room_size(fp->pool) -
							  RTE_PKTMBUF_HEADROOM);
	p->cleanup = true;
	p->kick_cycles = rte_get_tsc_hz() / 20000; /* 50 us */
	if (d->limits.packet_socket)
		weft_packet_socket_init(p);
	weft_port_intr_open(p, &weft_port_intr_modes);
	weft_port_spread_fill(p);
	fp->flags |= weft_port_zcopy_flags(p, o->no_extbuf);
	return 0;
}

static int next_queue(struct weft_port_dev *d, const struct weft_port_opts *o, uint16_t *queue,
		      char *why, size_t why_len)
{
	uint16_t q;

	for (q = 0; q < d->num_queues && d->queues[q]; q++)
		;
	if (q == d->num_queues)
		return weft_port_fail(
			-EBUSY, why, why_len,
			"port %u (%s) has %u queue pair%s and as many workers: give each worker "
			"its own port%s",
			d->port_id, d->name, d->num_queues, d->num_queues > 1 ? "s" : "",
			RTE_MIN(d->info.max_rx_queues, d->info.max_tx_queues) > d->num_queues
				? ", or more queues with queues=N"
				: "; this one has no more");
	*queue = q;
	return 0;
}

static void close_queue(struct weft_port *p)
{
	struct weft_port_dev *d = p->dev;

	pthread_mutex_lock(&weft_port_lock);
	weft_port_unsteer(p);
	weft_port_zcopy_drain(p);
	d->queues[p->queue] = NULL;
	weft_port_vlan_remove(p);
	weft_port_intr_close(p);
	weft_port_leave_ip6(p);
	if (p->farewells)
		weft_farewell_end();
	free(p);
	if (--d->open_queues == 0)
		dev_close(d);
	pthread_mutex_unlock(&weft_port_lock);
}

static int queue_open(struct weft_port_dev *d, const struct weft_port_opts *o,
		      struct weft_port **out, char *why, size_t why_len)
{
	struct weft_port *p;
	uint16_t queue = 0;
	int rc = next_queue(d, o, &queue, why, why_len);

	if (rc)
		return rc;
	p = calloc(1, sizeof(*p));
	if (!p)
		return weft_port_fail(-ENOMEM, why, why_len, "no memory for port %u (%s)",
				      d->port_id, d->name);
	p->dev = d;
	p->close = close_queue;
	p->port_id = d->port_id;
	p->queue = queue;
	p->groups = -1;
	p->sock = d->xdp_socks[queue];
	p->vlan = o->vlan;
	rc = weft_port_vlan_add(p, why, why_len);
	if (!rc)
		rc = fill_frame_port(p, o, why, why_len);
	if (!rc)
		rc = weft_port_steer(p, why, why_len);
	if (rc) {
		weft_port_vlan_remove(p);
		weft_port_intr_close(p);
		weft_port_leave_ip6(p);
		free(p);
		return rc;
	}
	p->farewells = (d->limits.packet_socket || d->limits.xdp_queues) &&
		       weft_farewell_begin(WEFT_FAREWELL_PACKET);
	d->queues[queue] = p;
	d->open_queues++;
	*out = p;
	return 0;
}

static void ip_text(const struct weft_port_dev *d, uint32_t ip, char text[40])
{
	struct rte_ether_addr mac = {0};

	if (!ip && rte_eth_macaddr_get(d->port_id, &mac) == 0)
		ip = weft_lane_link_local(mac.addr_bytes);
	snprintf(text, 40, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
}

/*
 * ARP has no UDP port: the first queue receives it, and its worker answers for that worker's own
 * address and VLAN only.
 */
static int fits_others(const struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
		       size_t why_len)
{
	char theirs[40], ours[40];

	if (weft_port_has_ended(d))
		return weft_port_fail(
			-EBUSY, why, why_len,
			"port %u (%s) was removed, taken away or wants a reset: all workers on it "
			"must be closed first",
			d->port_id, d->name);
	if (d->num_queues < 2)
		return 0;
	if (o->raw_ethertype)
		return needs_udp(d, why, why_len);
	if (o->six)
		return needs_ipv4(d, why, why_len);
	ip_text(d, d->ip, theirs);
	ip_text(d, o->ip, ours);
	if (strcmp(ours, theirs))
		return weft_port_fail(
			-EINVAL, why, why_len,
			"port %u (%s): its other worker has the address %s, this one wants %s; one "
			"of them answers ARP for all, so give all lanes on this port the same ip=",
			d->port_id, d->name, theirs, ours);
	if (o->vlan != d->vlan_id)
		return weft_port_fail(
			-EINVAL, why, why_len,
			"port %u (%s): its other worker is in VLAN %u, this one wants %u (0: "
			"none); one of them answers ARP for all, so give all lanes on this port "
			"the same vlan=",
			d->port_id, d->name, d->vlan_id, o->vlan);
	return 0;
}

static int port_open(const char *resource, const struct weft_port_opts *opts,
		     struct weft_frame_port **port, char *why, size_t why_len)
{
	struct weft_port *p = NULL;
	uint16_t id = 0;
	bool first;
	int rc;

	rc = weft_port_find(resource, &id, why, why_len);
	if (rc)
		return rc;
	first = !weft_port_devs[id];
	rc = first ? dev_open(id, opts, why, why_len)
		   : fits_others(weft_port_devs[id], opts, why, why_len);
	if (rc)
		return rc;
	rc = queue_open(weft_port_devs[id], opts, &p, why, why_len);
	if (rc) {
		if (first)
			dev_close(weft_port_devs[id]);
		return rc;
	}
	*port = &p->fp;
	return 0;
}

int weft_port_ethdev_open(const char *resource, const struct weft_port_opts *opts,
			  struct weft_frame_port **port, char *why, size_t why_len)
{
	int rc;

	pthread_mutex_lock(&weft_port_lock);
	rc = port_open(resource, opts, port, why, why_len);
	pthread_mutex_unlock(&weft_port_lock);
	return rc;
}

/* ---- ports of programs that forward frames -------------------------------------------------- */

#define MTU_LEAST 1280 /* least MTU of a lane; a program's shorter MTU does not limit its ports */

static int find_device(struct weft_port_dev *d, uint16_t port, const struct weft_port_opts *o,
		       char *why, size_t why_len)
{
	int rc;

	d->port_id = port;
	d->num_queues = 1;
	weft_port_name(port, d->name);
	rc = rte_eth_dev_info_get(port, &d->info);
	if (rc)
		return weft_port_fail(rc, why, why_len,
				      "port %u (%s) reports nothing about itself (%s)", port,
				      d->name, rte_strerror(-rc));
	rc = weft_port_limits_find(d, why, why_len);
	return rc ? rc : weft_port_choose_frame(d, o, why, why_len);
}

/* Frames are not Weft's own: no UDP checksum is requested, and no frame is a chain. */
static struct weft_port_opts passing_options(uint16_t mtu, struct rte_mempool *pool)
{
	return (struct weft_port_opts){.mtu = mtu && mtu < MTU_LEAST ? MTU_LEAST : mtu,
				       .raw_ethertype = true,
				       .no_extbuf = true,
				       .rx_intr = WEFT_RX_INTR_NO,
				       .pool = pool};
}

int weft_passing_find(uint16_t port, uint16_t mtu, struct weft_passing_limits *limits, char *why,
		      size_t why_len)
{
	struct weft_port_opts o = passing_options(mtu, NULL);
	struct weft_port_dev d = {0};
	int rc = find_device(&d, port, &o, why, why_len);

	if (rc)
		return rc;
	limits->mtu = (uint16_t)(d.frame_size - weft_port_l2(false));
	limits->room = weft_port_pool_room(&d);
	return 0;
}

static int passing_start(const struct weft_port_dev *d, char *why, size_t why_len)
{
	int rc = rte_eth_dev_start(d->port_id);

	if (rc)
		return weft_port_fail(rc, why, why_len, "port %u (%s) does not start (%s)",
				      d->port_id, d->name, rte_strerror(-rc));
	/* A PMD without promiscuous mode has no filter to open. */
	rc = rte_eth_promiscuous_enable(d->port_id);
	if (rc && rc != -ENOTSUP)
		return weft_port_fail(rc, why, why_len,
				      "port %u (%s) does not take all frames: it can't be made "
				      "promiscuous (%s)",
				      d->port_id, d->name, rte_strerror(-rc));
	return 0;
}

int weft_passing_open(uint16_t port, uint16_t mtu, uint16_t ring, struct rte_mempool *pool,
		      char *why, size_t why_len)
{
	struct weft_port_opts o = passing_options(mtu, pool);
	struct rte_mempool *pools[1] = {NULL};
	int socks[1] = {-1};
	struct weft_port_dev d = {.pools = pools, .xdp_socks = socks};
	int rc = find_device(&d, port, &o, why, why_len);

	o.ring = ring;
	if (!rc)
		rc = weft_port_configure(&d, &o, why, why_len);
	return rc ? rc : passing_start(&d, why, why_len);
}
