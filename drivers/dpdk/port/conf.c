/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <rte_kvargs.h>

#include "compat.h"
#include "frame/arp.h"
#include "port/conf.h"
#include "port/ethdev.h"
#include "port/event.h"
#include "port/kernel.h"
#include "port/port.h"
#include "port/ports.h"
#include "port/spread.h"
#include "port/zcopy.h"

/* Virtual ports of DPDK 22.11 report 1518 bytes, whatever they carry. So their limits are here. */

/* Bytes of an Ethernet frame of MTU 9000, the default of a memory port. */
#define JUMBO_FRAME (9000 + RTE_ETHER_HDR_LEN)
#define MTU_LEAST 1280u

/* ---- device arguments ----------------------------------------------------------------------- */

static struct rte_kvargs *device_args(const struct weft_port_dev *d)
{
	const struct rte_devargs *da = d->info.device ? rte_dev_devargs(d->info.device) : NULL;

	return da && da->args ? rte_kvargs_parse(da->args, NULL) : NULL;
}

static unsigned long arg_number(const struct rte_kvargs *kv, const char *key, unsigned long other)
{
	const char *v = kv ? rte_kvargs_get(kv, key) : NULL;

	return v ? strtoul(v, NULL, 10) : other;
}

static bool arg_is(const struct rte_kvargs *kv, const char *key, const char *word)
{
	const char *v = kv ? rte_kvargs_get(kv, key) : NULL;

	return v && strstr(v, word);
}

/* ---- memif ---------------------------------------------------------------------------------- */

static const char *socket_path(const struct rte_kvargs *kv)
{
	const char *v = kv ? rte_kvargs_get(kv, "socket") : NULL;

	return v ? v : "/run/memif.sock";
}

static bool is_server(const struct rte_kvargs *kv)
{
	return arg_is(kv, "role", "server") || arg_is(kv, "role", "master");
}

static unsigned int count_on_socket(const char *path, bool server)
{
	struct weft_port_dev other = {0};
	struct rte_kvargs *kv;
	unsigned int n = 0;
	uint16_t id;

	for (id = 0; id < RTE_MAX_ETHPORTS; id++) {
		if (!rte_eth_dev_is_valid_port(id) || rte_eth_dev_info_get(id, &other.info) ||
		    strcmp(other.info.driver_name, "net_memif"))
			continue;
		kv = device_args(&other);
		n += is_server(kv) == server && !strcmp(socket_path(kv), path);
		rte_kvargs_free(kv);
	}
	return n;
}

static void memif_socket(struct weft_port_dev *d, const struct rte_kvargs *kv)
{
	struct weft_memif *mi = &d->memif;

	snprintf(mi->name.path, sizeof(mi->name.path), "%s", socket_path(kv));
	mi->name.abstract = !arg_is(kv, "socket-abstract", "no");
	mi->name.server = is_server(kv);
	mi->id = (uint32_t)arg_number(kv, "id", 0);
	mi->port_id = d->port_id;
	mi->started = &d->started;
	mi->alone = count_on_socket(mi->name.path, mi->name.server) == 1;
}

/*
 * A frame longer than a ring buffer (bsize) is sent as chained descriptors. But the PMD's sender
 * does not clear the chain flag of a frame's first descriptor, so a short frame may be joined to
 * the next one. So a frame must fit one buffer.
 */
static int memif_limits(struct weft_port_dev *d, const struct rte_kvargs *kv)
{
	struct weft_port_limits *l = &d->limits;
	unsigned long rsize = arg_number(kv, "rsize", 10);

	l->memory = true;
	l->frame_max = (uint32_t)arg_number(kv, "bsize", 2048);
	l->frame_default = RTE_MIN(l->frame_max, (uint32_t)JUMBO_FRAME);
	l->frame_hint = "give a larger bsize= in its --vdev (a frame must fit one memif buffer; "
			"bsize=9216 carries MTU 9000), the same at both ends";
	l->rx_depth = l->tx_depth = (uint16_t)(1u << RTE_MIN(rsize, 14ul));
	/* The descriptors of a zero-copy client refer to its own hugepages only. */
	l->no_extbuf = arg_is(kv, "zero-copy", "yes") && !is_server(kv);
	l->copies_tx = l->rx_own = !l->no_extbuf;
	l->no_chains = WEFT_MEMIF_SPLITS_CHAINS;
	l->memif = true;
	memif_socket(d, kv);
	l->no_link = true;
	l->copies = true;
	l->latency = 300e-9;
	return 0;
}

/* ---- ring ----------------------------------------------------------------------------------- */

static int ring_limits(struct weft_port_dev *d, const struct rte_kvargs *kv)
{
	struct weft_port_limits *l = &d->limits;

	RTE_SET_USED(kv);
	l->memory = true;
	l->by_pointer = true;
	l->copies_tx = true; /* ring_tx(): what the sender keeps, and user memory */
	l->frame_max = UINT16_MAX;
	l->frame_default = JUMBO_FRAME;
	l->no_link = true;
	l->latency = 300e-9;
	return 0;
}

/* ---- kernel interfaces ---------------------------------------------------------------------- */

static int kernel_limits(struct weft_port_dev *d)
{
	struct weft_port_limits *l = &d->limits;
	uint32_t mtu, peer;

	l->if_index = d->info.if_index;
	l->kernel_link = true;
	mtu = weft_kernel_mtu(l->if_index);
	if (!mtu)
		return -ENODEV;
	/* The kernel accepts frames of the MTU and a VLAN tag. */
	l->frame_max = mtu + weft_port_l2(d->vlan);
	l->frame_hint =
		"raise the MTU of the kernel interface (ip link set dev NAME mtu N), at both "
		"ends";
	peer = weft_veth_peer_mtu(l->if_index);
	if (peer && peer < mtu) {
		l->frame_max = peer + weft_port_l2(d->vlan);
		l->frame_hint = "the other end of this veth has a smaller MTU: raise it there";
	}
	return 0;
}

/*
 * A ring frame (framesz) begins with headers, and the mbuf must hold the whole slot. A frame longer
 * than the interface's MTU blocks its slot for ever.
 */
#define PACKET_RX_OVERHEAD 66u
#define PACKET_TX_OVERHEAD 32u

static int packet_limits(struct weft_port_dev *d, const struct rte_kvargs *kv)
{
	struct weft_port_limits *l = &d->limits;
	uint32_t framesz = (uint32_t)arg_number(kv, "framesz", 2048);
	uint32_t blocksz = (uint32_t)arg_number(kv, "blocksz", (unsigned long)getpagesize());
	uint32_t framecnt = (uint32_t)arg_number(kv, "framecnt", 512);
	int rc = kernel_limits(d);

	if (rc)
		return rc;
	if (framesz < PACKET_RX_OVERHEAD + RTE_ETHER_MIN_LEN || framesz > blocksz)
		return -EINVAL;
	if (l->frame_max > framesz - PACKET_RX_OVERHEAD) {
		l->frame_max = framesz - PACKET_RX_OVERHEAD;
		l->frame_hint = "give a larger framesz= and blocksz= in its --vdev "
				"(framesz=9216,blocksz=36864 carries MTU 9000)";
	}
	l->frame_default = l->frame_max;
	l->data_room = framesz - PACKET_TX_OVERHEAD;
	l->tx_slots = framecnt / (blocksz / framesz) * (blocksz / framesz);
	l->rx_depth = l->tx_depth = (uint16_t)RTE_MIN(l->tx_slots, (uint32_t)UINT16_MAX);
	l->packet_socket = true;
	l->copies_tx = true;
	l->copies = l->rx_own = true;
	l->guess = true; /* the PMD reports 10 Gb/s, whatever the interface is */
	l->latency = 5e-6;
	return 0;
}

/*
 * Chunks of at most a page, the mempool's objects, also contain the object's header, the mbuf, the
 * headrooms of DPDK and of the kernel, and a cache line of padding.
 */
#define XDP_OVERHEAD (64u + 64u + sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM + 256u)

/*
 * A frame, the kernel's headroom and its struct skb_shared_info share a page. So the largest MTU is
 * 3506 on a veth, 3498 on mlx5. With a larger one, drivers refuse to attach the XDP program. Then
 * the PMD's queue is not set up, and the PMD cannot be closed safely.
 */
#define XDP_MTU_MAX 3506u

static int xdp_limits(struct weft_port_dev *d, const struct rte_kvargs *kv)
{
	struct weft_port_limits *l = &d->limits;
	int rc = kernel_limits(d);

	if (rc)
		return rc;
	if (l->frame_max > XDP_MTU_MAX + weft_port_l2(d->vlan))
		return -EMSGSIZE;
	l->xdp_first = (unsigned int)arg_number(kv, "start_queue", 0);
	l->xdp_queues = (unsigned int)RTE_MAX(arg_number(kv, "queue_count", 1), 1ul);
	l->object_max = (uint32_t)getpagesize();
	if (l->frame_max > l->object_max - XDP_OVERHEAD) {
		l->frame_max = l->object_max - (uint32_t)XDP_OVERHEAD;
		l->frame_hint = "this port's buffers are a page each, with headers";
	}
	l->frame_default = l->frame_max;
	l->data_room = l->object_max; /* weft_port_pool_room() cuts the room to the object */
	l->rx_reserve = 2048;
	l->no_extbuf = true;
	l->rx_own = true; /* the kernel can write to received buffers, but it can write anywhere */
	l->guess = true;
	l->latency = 5e-6;
	return 0;
}

/* ---- hardware, and anything else ------------------------------------------------------------ */

/*
 * PMDs add to the frame: FCS (4), two tags (8), virtio's header (12). They refuse a smaller buffer,
 * or split frames. Some NICs use whole KiB of a buffer, some a power of two; no capability reports
 * which. RX_UNIT suits all NICs with units of up to 1 KiB. Since no MTU is below 1280, a buffer has
 * at least the usual 2048 bytes.
 */
#define RX_EXTRA 32u
#define RX_UNIT 1024u

static const struct {
	const char *driver;
	uint32_t unit; /* 0 = powers of two */
	uint32_t max;
} rx_units[] = {
	{"net_e1000_em", 0, 16384},
	{"net_hns3", 0, 4096},
	{"net_hns3_vf", 0, 4096},
	{"net_gve", 2048, 0},
};

static void find_rx_unit(struct weft_port_dev *d)
{
	struct weft_port_limits *l = &d->limits;
	size_t i;

	l->buf_unit = RX_UNIT;
	for (i = 0; i < RTE_DIM(rx_units); i++) {
		if (!d->info.driver_name || strcmp(d->info.driver_name, rx_units[i].driver))
			continue;
		l->buf_unit = rx_units[i].unit;
		l->buf_max = rx_units[i].max;
	}
}

uint32_t weft_port_rx_room(const struct weft_port_dev *d)
{
	const struct weft_port_limits *l = &d->limits;
	uint32_t room;

	if (!l->set_mtu)
		return RTE_MAX(d->frame_size, l->data_room);
	room = RTE_MAX(d->frame_size + RX_EXTRA, d->info.min_rx_bufsize);
	if (l->buf_max && room > l->buf_max)
		return RTE_ALIGN(room, RX_UNIT);
	return l->buf_unit ? RTE_ALIGN(room, l->buf_unit) : rte_align32pow2(room);
}

bool weft_port_rx_scatters(const struct weft_port_dev *d, uint32_t room)
{
	const struct weft_port_limits *l = &d->limits;

	if (!l->set_mtu)
		return room < d->frame_size;
	room = l->buf_unit ? RTE_ALIGN_FLOOR(room, l->buf_unit) : rte_align32prevpow2(room);
	if (l->buf_max)
		room = RTE_MIN(room, l->buf_max);
	return room < d->frame_size + RX_EXTRA;
}

static int ethdev_limits(struct weft_port_dev *d, const struct rte_kvargs *kv)
{
	struct weft_port_limits *l = &d->limits;
	const struct rte_bus *bus = d->info.device ? rte_bus_find_by_device(d->info.device) : NULL;
	uint16_t mtu = 0;

	RTE_SET_USED(kv);
	/* The peer process of a virtual device may map this process's memory (net_virtio_user). */
	l->rx_own = bus && strcmp(rte_bus_name(bus), "vdev") != 0;
	l->set_mtu = true;
	find_rx_unit(d);
	l->frame_max = (d->info.max_mtu ? d->info.max_mtu : RTE_ETHER_MTU) + weft_port_l2(d->vlan);
	if (d->info.max_mtu == UINT16_MAX && d->info.max_rx_pktlen > RTE_ETHER_CRC_LEN)
		l->frame_max = d->info.max_rx_pktlen - RTE_ETHER_CRC_LEN;
	l->frame_max = RTE_MIN(l->frame_max, (uint32_t)UINT16_MAX);
	l->frame_hint = "that is the most this port takes";
	if (rte_eth_dev_get_mtu(d->port_id, &mtu) || mtu < RTE_ETHER_MIN_MTU)
		mtu = RTE_ETHER_MTU;
	l->frame_default = RTE_MIN(mtu + weft_port_l2(d->vlan), l->frame_max);
	l->latency = 3e-6;
	return 0;
}

/*
 * The PMD copies frames into the peer's buffers at once. It has no call that sets an MTU, and sends
 * frames of any size that these buffers hold.
 */
static int vhost_limits(struct weft_port_dev *d, const struct rte_kvargs *kv)
{
	int rc = ethdev_limits(d, kv);

	d->limits.copies_tx = true;
	d->limits.any_mtu = true;
	return rc;
}

typedef int (*find_fn)(struct weft_port_dev *d, const struct rte_kvargs *kv);

static const struct {
	const char *driver;
	find_fn find;
} known[] = {
	{"net_memif", memif_limits}, {"net_ring", ring_limits},   {"net_af_packet", packet_limits},
	{"net_af_xdp", xdp_limits},  {"net_vhost", vhost_limits},
};

static find_fn find_for(const struct weft_port_dev *d)
{
	size_t i;

	for (i = 0; i < RTE_DIM(known); i++)
		if (d->info.driver_name && !strcmp(d->info.driver_name, known[i].driver))
			return known[i].find;
	return ethdev_limits;
}

int weft_port_limits_find(struct weft_port_dev *d, char *why, size_t why_len)
{
	struct rte_kvargs *kv = device_args(d);
	char ifname[IF_NAMESIZE] = "?";
	int rc;

	memset(&d->limits, 0, sizeof(d->limits));
	rc = find_for(d)(d, kv);
	d->limits.link = weft_port_link_kind(d);
	rte_kvargs_free(kv);
	if (rc == -ENODEV)
		snprintf(why, why_len, "port %u (%s): its kernel interface (index %u, %s) is gone",
			 d->port_id, d->name, d->info.if_index,
			 if_indextoname(d->info.if_index, ifname) ? ifname : "?");
	else if (rc == -EMSGSIZE)
		snprintf(why, why_len,
			 "port %u (%s): its kernel interface %s has an MTU of %u, and AF_XDP takes "
			 "%u at most: make it smaller at both ends (ip link set dev %s mtu 3400), "
			 "or use net_af_packet",
			 d->port_id, d->name,
			 if_indextoname(d->info.if_index, ifname) ? ifname : "?",
			 d->limits.frame_max - weft_port_l2(d->vlan), XDP_MTU_MAX, ifname);
	else if (rc)
		snprintf(why, why_len,
			 "port %u (%s): its device arguments are invalid: framesz= must be at "
			 "least %u, for an MTU of %u, and blocksz= at least framesz=",
			 d->port_id, d->name,
			 PACKET_RX_OVERHEAD + MTU_LEAST + weft_port_l2(d->vlan), MTU_LEAST);
	return rc;
}

#define RX_DESC 512 /* frames that may arrive while the owner computes */
#define TX_DESC 256 /* deeper rings only add delay that congestion control does not see */

/* ---- size of a frame ------------------------------------------------------------------------ */

int weft_port_choose_frame(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
			   size_t why_len)
{
	const struct weft_port_limits *l = &d->limits;
	uint32_t want = o->mtu ? o->mtu + weft_port_l2(d->vlan) : o->frame_size;
	uint32_t least = MTU_LEAST + weft_port_l2(d->vlan);

	if (want > l->frame_max)
		return weft_port_fail(
			-EINVAL, why, why_len,
			"port %u (%s) carries frames of at most %u bytes (MTU %u), wanted are "
			"%u (MTU %u): %s",
			d->port_id, d->name, l->frame_max, l->frame_max - weft_port_l2(d->vlan),
			want, want - weft_port_l2(d->vlan), l->frame_hint ? l->frame_hint : "");
	d->frame_size = want ? want : l->frame_default;
	if (d->frame_size < least)
		return weft_port_fail(
			-EINVAL, why, why_len,
			"port %u (%s): frames of %u bytes (MTU %u) are too small, lanes need "
			"an MTU of at least %u%s%s",
			d->port_id, d->name, d->frame_size, d->frame_size - weft_port_l2(d->vlan),
			MTU_LEAST, want ? "" : ": ", want || !l->frame_hint ? "" : l->frame_hint);
	return 0;
}

static uint16_t mtu_of(const struct weft_port_dev *d)
{
	return (uint16_t)(d->frame_size - weft_port_l2(d->vlan));
}

/* ---- offloads ------------------------------------------------------------------------------- */

/*
 * The CPU computes and checks the checksum of the 20-byte IPv4 header. Each offload may cost a PMD
 * its vector path (doc/ports.md), so only those in use are requested.
 */
static void choose_offloads(const struct weft_port_dev *d, const struct weft_port_opts *o,
			    struct rte_eth_conf *conf)
{
	uint32_t room = weft_port_pool_room(d) - RTE_PKTMBUF_HEADROOM;
	bool sums = !o->raw_ethertype && !o->no_udp_csum;
	uint64_t rx = 0, tx = 0;

	if (weft_port_wants_chains(d, o->no_extbuf, sums))
		tx |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (sums) {
		rx |= RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
		tx |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	}
	if (weft_port_rx_scatters(d, room))
		rx |= RTE_ETH_RX_OFFLOAD_SCATTER;
	if (o->vlan)
		rx |= RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
	conf->rxmode.offloads = rx & d->info.rx_offload_capa;
	conf->txmode.offloads = tx & d->info.tx_offload_capa;
}

/* ---- queues and MTU ------------------------------------------------------------------------- */

static int setup_queue(struct weft_port_dev *d, uint16_t q, uint16_t nb_rx, uint16_t nb_tx,
		       const struct rte_eth_conf *conf, const struct weft_port_opts *o, char *why,
		       size_t why_len)
{
	struct rte_eth_rxconf rxconf = d->info.default_rxconf;
	struct rte_eth_txconf txconf = d->info.default_txconf;
	int socket = rte_eth_dev_socket_id(d->port_id), rc = 0;

	if (o->pool)
		d->pools[q] = o->pool;
	else
		rc = weft_port_pools_create(d, q, nb_rx, nb_tx, o->rx_bufs, why, why_len);
	if (rc)
		return rc;
	rxconf.offloads = conf->rxmode.offloads;
	txconf.offloads = conf->txmode.offloads;
	weft_port_zcopy_txconf(d, &txconf);
	weft_xdp_before(d);
	rc = rte_eth_rx_queue_setup(d->port_id, q, nb_rx, (unsigned int)socket, &rxconf,
				    d->pools[q]);
	weft_xdp_after(d, q);
	if (rc)
		return weft_port_fail(
			rc, why, why_len,
			"port %u (%s): its PMD (%s) does not take receive queue %u with %u "
			"buffers of %u bytes for an MTU of %u (%s)%s",
			d->port_id, d->name, d->info.driver_name, q, nb_rx,
			weft_port_pool_room(d) - RTE_PKTMBUF_HEADROOM, mtu_of(d), rte_strerror(-rc),
			d->limits.object_max
				? "; AF_XDP needs root, an MTU of at most about 3500 and a kernel "
				  "that can attach an XDP program to the interface"
				: "; try another MTU with the lane option mtu=");
	rc = rte_eth_tx_queue_setup(d->port_id, q, nb_tx, (unsigned int)socket, &txconf);
	if (rc)
		return weft_port_fail(rc, why, why_len,
				      "port %u (%s): its PMD (%s) does not take send queue %u with "
				      "%u entries (%s)",
				      d->port_id, d->name, d->info.driver_name, q, nb_tx,
				      rte_strerror(-rc));
	return 0;
}

/* Set the MTU after the queues: some PMDs check their queues' pools in this call. */
static int set_mtu(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
		   size_t why_len)
{
	uint16_t mtu = mtu_of(d);
	int rc;

	if (!d->limits.set_mtu)
		return 0;
	rc = rte_eth_dev_set_mtu(d->port_id, mtu);
	/* A lane requires that its frames pass; a program that forwards frames counts losses. */
	if (rc == -ENOTSUP && (mtu <= RTE_ETHER_MTU || o->pool || d->limits.any_mtu))
		rc = 0;
	if (rc)
		return weft_port_fail(
			rc, why, why_len, "port %u (%s) does not take an MTU of %u (%s)%s",
			d->port_id, d->name, mtu, rte_strerror(-rc),
			rc == -ENOTSUP ? ": its PMD can't set any; 1500 needs no setting" : "");
	return 0;
}

int weft_port_configure(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
			size_t why_len)
{
	struct rte_eth_conf conf = {0};
	uint16_t nb_rx = o->ring ? o->ring : RX_DESC, nb_tx = o->ring ? o->ring : TX_DESC, q;
	int rc;

	choose_offloads(d, o, &conf);
	if (d->limits.set_mtu)
		conf.rxmode.mtu = mtu_of(d);
	weft_port_events_conf(d, &conf);
	conf.intr_conf.rxq = d->rx_intr;
	weft_port_spread_conf(d, &conf);
	rc = rte_eth_dev_configure(d->port_id, d->num_queues, d->num_queues, &conf);
	if (rc)
		return weft_port_fail(rc, why, why_len, "port %u (%s) can't be configured (%s)%s",
				      d->port_id, d->name, rte_strerror(-rc),
				      rc == -EBUSY ? "; this process has started it already, and "
						     "a lane needs a port of its own"
						   : "");
	rc = rte_eth_dev_adjust_nb_rx_tx_desc(d->port_id, &nb_rx, &nb_tx);
	if (rc)
		return weft_port_fail(
			rc, why, why_len,
			"port %u (%s): its driver does not report the sizes of rings (%s)",
			d->port_id, d->name, rte_strerror(-rc));
	d->zcopy.tx_ring = nb_tx;
	if (!d->limits.rx_depth)
		d->limits.rx_depth = nb_rx;
	if (!d->limits.tx_depth)
		d->limits.tx_depth = nb_tx;
	for (q = 0; !rc && q < d->num_queues; q++)
		rc = setup_queue(d, q, nb_rx, nb_tx, &conf, o, why, why_len);
	if (!rc)
		rc = set_mtu(d, o, why, why_len);
	if (rc)
		return rc;
	d->offloads_rx = conf.rxmode.offloads;
	d->offloads_tx = conf.txmode.offloads;
	return 0;
}

/* ---- depth of the rings --------------------------------------------------------------------- */

/*
 * A PMD may have cut its rings to the device's limits, and few PMDs report that. The buffers that
 * it has taken from the pool right after the start are the depth of the ring. If it took none
 * (buffers of the previous opening are still in the ring, or it copies), the earlier result counts.
 * @return true: the ring was cut
 */
static bool find_rx_depth(struct weft_port_dev *d)
{
	static uint16_t found[RTE_MAX_ETHPORTS];
	struct weft_port_limits *l = &d->limits;
	uint32_t taken, least = UINT32_MAX;
	uint16_t q;

	for (q = 0; q < d->num_queues; q++) {
		taken = d->pools[q]->size - rte_mempool_avail_count(d->pools[q]);
		least = RTE_MIN(least, taken);
	}
	if (least == 0)
		least = found[d->port_id];
	if (least == 0 || least >= l->rx_depth)
		return false;
	found[d->port_id] = l->rx_depth = (uint16_t)least;
	return true;
}

/*
 * @return entries of the shortest send ring; 0: not reported (Intel's PMDs, mlx5, netvsc, hns3 do)
 */
static uint16_t tx_ring_reported(const struct weft_port_dev *d)
{
	struct rte_eth_txq_info info;
	uint16_t q, least = UINT16_MAX;

	for (q = 0; q < d->num_queues; q++) {
		memset(&info, 0, sizeof(info));
		if (rte_eth_tx_queue_info_get(d->port_id, q, &info))
			return 0;
		least = RTE_MIN(least, info.nb_desc);
	}
	return least;
}

/*
 * If the PMD does not report the send ring, a device with a short receive ring is assumed to have a
 * short send ring, too. The result is an upper bound.
 */
void weft_port_find_depth(struct weft_port_dev *d)
{
	struct weft_port_limits *l = &d->limits;
	uint16_t reported;
	bool cut;

	if (!l->set_mtu)
		return;
	cut = find_rx_depth(d);
	reported = tx_ring_reported(d);
	if (reported) {
		l->tx_depth = RTE_MIN(l->tx_depth, reported);
		d->zcopy.tx_ring = reported;
	} else if (cut) {
		l->tx_depth = RTE_MIN(l->tx_depth, l->rx_depth);
	}
}

/* ---- VLANs ---------------------------------------------------------------------------------- */

static bool others_have_vlan(const struct weft_port *p)
{
	const struct weft_port_dev *d = p->dev;
	uint16_t q;

	for (q = 0; q < d->num_queues; q++)
		if (d->queues[q] && d->queues[q] != p && d->queues[q]->vlan == p->vlan)
			return true;
	return false;
}

int weft_port_vlan_add(struct weft_port *p, char *why, size_t why_len)
{
	int rc;

	if (!p->vlan || !(p->dev->offloads_rx & RTE_ETH_RX_OFFLOAD_VLAN_FILTER))
		return 0;
	rc = rte_eth_dev_vlan_filter(p->port_id, p->vlan, 1);
	/* The port offers a filter but has none: then nothing is filtered. */
	if (rc == 0 || rc == -ENOTSUP)
		return 0;
	return weft_port_fail(
		rc, why, why_len,
		"port %u (%s) does not let frames of VLAN %u in: its filter refuses it (%s); allow "
		"the VLAN where the NIC's host or hypervisor is configured, or leave vlan= out",
		p->port_id, p->dev->name, p->vlan, rte_strerror(-rc));
}

void weft_port_vlan_remove(struct weft_port *p)
{
	if (p->vlan && p->dev->offloads_rx & RTE_ETH_RX_OFFLOAD_VLAN_FILTER &&
	    !others_have_vlan(p) && !weft_port_is_taken(p->dev))
		rte_eth_dev_vlan_filter(p->port_id, p->vlan, 0);
}

/* ---- IPv6 ----------------------------------------------------------------------------------- */

/* Neighbour discovery uses group addresses. A port that can't open its filter needs neigh=. */
static void join_groups(struct weft_port *p)
{
	struct rte_ether_addr list[2];
	uint8_t mac[2][6], group[16];

	weft_ip6_group(p->fp.ip6, group, mac[0]);
	weft_ip6_group(NULL, group, mac[1]);
	memcpy(list, mac, sizeof(list));
	if (p->dev->limits.if_index)
		p->groups = weft_kernel_join(p->dev->limits.if_index, mac);
	if (p->groups >= 0 || p->dev->limits.memory ||
	    rte_eth_dev_set_mc_addr_list(p->port_id, list, 2) == 0 ||
	    rte_eth_allmulticast_enable(p->port_id) == 0)
		return;
	p->fp.warning = "it may receive no group addresses, by which IPv6 finds neighbours: if "
			"no peer answers, give neigh= at both ends";
}

void weft_port_take_ip6(struct weft_port *p, const struct weft_port_opts *o)
{
	static const uint8_t none[8];
	struct weft_frame_port *fp = &p->fp;

	memcpy(fp->ip6, o->ip6, sizeof(fp->ip6));
	fp->prefix6 = o->prefix6;
	if (o->prefix6 == 64 && memcmp(o->ip6 + 8, none, sizeof(none)) == 0)
		weft_ip6_from_mac(fp->ip6, fp->mac);
	join_groups(p);
}

void weft_port_leave_ip6(struct weft_port *p)
{
	if (p->groups >= 0)
		close(p->groups);
	free(p->fp.hosts);
}
