/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuring a port: frames, offloads, queues, MTU, VLANs, and the real depth of its rings. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>

#include "port/pool.h"
#include "port/priv.h"

#define RX_DESC 512 /* frames that may arrive while the owner computes */
#define TX_DESC 256 /* deeper rings only add delay that congestion control does not see */

/* ---- size of a frame ------------------------------------------------------------------------ */

int weft_port_choose_frame(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
			   size_t why_len)
{
	const struct weft_port_limits *l = &d->limits;
	uint32_t want = o->mtu ? o->mtu + weft_port_l2(d->vlan) : o->frame_size;
	uint32_t least = 1280 + weft_port_l2(d->vlan);

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
			"an MTU of at least 1280%s%s",
			d->port_id, d->name, d->frame_size, d->frame_size - weft_port_l2(d->vlan),
			want ? "" : ": ", want || !l->frame_hint ? "" : l->frame_hint);
	return 0;
}

static uint16_t mtu_of(const struct weft_port_dev *d)
{
	return (uint16_t)(d->frame_size - weft_port_l2(d->vlan));
}

/* ---- offloads ------------------------------------------------------------------------------- */

/*
 * Chains are requested only if external buffers can be sent: they cost some PMDs their vector path.
 * The checksum of the 20-byte IPv4 header is computed and checked by the CPU.
 */
static void choose_offloads(const struct weft_port_dev *d, const struct weft_port_opts *o,
			    struct rte_eth_conf *conf)
{
	uint32_t room = weft_port_pool_room(d) - RTE_PKTMBUF_HEADROOM;
	uint64_t rx = 0, tx = weft_port_wants_chains(d, o) ? RTE_ETH_TX_OFFLOAD_MULTI_SEGS : 0;

	if (!o->raw_ethertype) {
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
	weft_port_zcopy_txconf(d, &txconf);
	rxconf.offloads = conf->rxmode.offloads;
	txconf.offloads = conf->txmode.offloads;
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

/*
 * After the queues are set up: some PMDs check the pools of their queues here, and before that
 * these are the pools of the port's previous opening.
 */
static int set_mtu(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
		   size_t why_len)
{
	uint16_t mtu = mtu_of(d);
	int rc;

	if (!d->limits.set_mtu)
		return 0;
	rc = rte_eth_dev_set_mtu(d->port_id, mtu);
	/* A lane must know that its frames pass; a program that forwards frames counts losses. */
	if (rc == -ENOTSUP && (mtu <= RTE_ETHER_MTU || o->pool))
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
		return weft_port_fail(rc, why, why_len, "port %u (%s): no ring size suits it",
				      d->port_id, d->name);
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
 *
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
 * @return entries of the shortest send ring, if the PMD reports it (Intel's, mlx5, netvsc, hns3);
 * 0: it does not
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
 * The length of a send ring is not visible. So if the PMD does not report it, a device with a short
 * receive ring is assumed to have a short send ring, too. If only the send ring is short, the
 * result is too large: it is an upper bound, and the real limit is a ring that takes no more.
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
