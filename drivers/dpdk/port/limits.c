/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limits of a port. Capabilities report them for hardware. Virtual ports of DPDK 22.11 report
 * 1518 bytes, whatever they carry, so for them the device arguments and the source of the PMD
 * decide. Only this file has that knowledge.
 */

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_kvargs.h>

#include "compat.h"
#include "port/priv.h"
#include "port/switch.h"
#include "port/switch.h"

/* An Ethernet frame of MTU 9000: the default of a port in memory. */
#define JUMBO_FRAME (9000 + RTE_ETHER_HDR_LEN)

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

/* @return the number of memif ports of this process with this end of this socket */
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
	mi->name.vouched = !strcmp(d->name, WEFT_SWITCH_DEVICE);
	mi->id = (uint32_t)arg_number(kv, "id", 0);
	mi->port_id = d->port_id;
	mi->started = &d->started;
	mi->alone = count_on_socket(mi->name.path, mi->name.server) == 1;
}

/*
 * A frame longer than a ring buffer (bsize) is sent as chained descriptors. But the PMD's sender
 * does not clear the chain flag of a frame's first descriptor: if its slot was in the middle of an
 * earlier chain, a short frame is joined to the next one. So a frame must fit one buffer.
 */
static int memif_limits(struct weft_port_dev *d, const struct rte_kvargs *kv)
{
	const struct weft_switch_place *place = weft_switch_place(d->port_id);
	struct weft_port_limits *l = &d->limits;
	unsigned long rsize = arg_number(kv, "rsize", 10);

	/* A switch with an uplink connects to a network. */
	l->memory = !place || !place->uplink;
	l->frame_max = (uint32_t)arg_number(kv, "bsize", 2048);
	l->frame_default = RTE_MIN(l->frame_max, (uint32_t)JUMBO_FRAME);
	l->frame_hint = "give a larger bsize= in its --vdev (a frame must fit one memif buffer; "
			"bsize=9216 carries MTU 9000), the same at both ends";
	l->rx_depth = l->tx_depth = (uint16_t)(1u << RTE_MIN(rsize, 14ul));
	/*
	 * With zero-copy the peer reads this process's hugepages: descriptors can name no other
	 * memory.
	 */
	l->no_extbuf = arg_is(kv, "zero-copy", "yes") && !is_server(kv);
	l->copies_tx = !l->no_extbuf;
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
	l->no_extbuf = true; /* the receiver would hold the user's memory */
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
	/*
	 * A veth refuses a frame that is too long for its other end, and then the ring stops for
	 * ever.
	 */
	peer = weft_veth_peer_mtu(l->if_index);
	if (peer && peer < mtu) {
		l->frame_max = peer + weft_port_l2(d->vlan);
		l->frame_hint = "the other end of this veth has a smaller MTU: raise it there";
	}
	return 0;
}

/*
 * A ring frame (framesz) begins with headers: 32 bytes when sending, 66 when receiving, and the
 * mbuf must hold the whole slot. A frame longer than the interface's MTU would block its slot for
 * ever.
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
	l->copies = true;
	l->guess = true; /* the PMD reports 10 Gb/s, whatever the interface is */
	l->latency = 5e-6;
	return 0;
}

/*
 * Frames are in chunks of at most a page, which are the mempool's objects. Each also contains the
 * object's header, the mbuf, the headrooms of DPDK and of the kernel, and a cache line of padding.
 * The fill ring takes 2048 of them.
 */
#define XDP_OVERHEAD (64u + 64u + sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM + 256u)

/*
 * A frame, the kernel's headroom and its struct skb_shared_info share a page: 3506 on a veth, 3498
 * on mlx5. With more, drivers refuse to attach the program. Then the PMD's queue is not set up, and
 * the PMD cannot be closed safely.
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
	l->data_room = l->object_max; /* all that fits the object */
	l->rx_reserve = 2048;
	l->no_extbuf = true;
	l->guess = true; /* as in packet_limits() */
	l->latency = 5e-6;
	return 0;
}

/* ---- hardware, and anything else ------------------------------------------------------------ */

/*
 * PMDs add to the frame: FCS (4), two tags (8), virtio's header (12). They refuse a smaller buffer,
 * or split frames. Some NICs use whole KiB of a buffer, some a power of two; no capability reports
 * which. The default suits all with units of up to 1 KiB; since no MTU is below 1280, it is never
 * less than the usual 2048.
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
	/* A frame longer than any buffer of the NIC is split anyway. */
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
	uint16_t mtu = 0;

	RTE_SET_USED(kv);
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

typedef int (*find_fn)(struct weft_port_dev *d, const struct rte_kvargs *kv);

static const struct {
	const char *driver;
	find_fn find;
} known[] = {
	{"net_memif", memif_limits},
	{"net_ring", ring_limits},
	{"net_af_packet", packet_limits},
	{"net_af_xdp", xdp_limits},
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
			 "port %u (%s): its device arguments are invalid: blocksz= "
			 "must be at least framesz=",
			 d->port_id, d->name);
	return rc;
}
