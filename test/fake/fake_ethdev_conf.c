/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration and life of a port, with the checks of DPDK's ethdev library and of its PMDs. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_flow.h>

#include "fake/fake_ethdev_priv.h"

/* ---- configure ------------------------------------------------------------------------------ */

static int check_conf(const struct fake_eth_port *p, uint16_t nb_rx, uint16_t nb_tx,
		      const struct rte_eth_conf *c)
{
	if (p->removed || p->broken)
		return -EIO;
	if (p->started)
		return -EBUSY;
	if (nb_rx > p->t.queues || nb_tx > p->t.queues || nb_rx > FAKE_ETH_QUEUES ||
	    nb_tx > FAKE_ETH_QUEUES)
		return -EINVAL;
	if ((c->intr_conf.lsc && !(p->t.events & RTE_BIT64(RTE_ETH_EVENT_INTR_LSC))) ||
	    (c->intr_conf.rmv && !(p->t.events & RTE_BIT64(RTE_ETH_EVENT_INTR_RMV))))
		return -EINVAL;
	if (c->intr_conf.lsc && c->intr_conf.rxq && p->t.rx_intr_lsc_error)
		return p->t.rx_intr_lsc_error;
	if (c->rxmode.offloads & ~p->t.rx_capa || c->txmode.offloads & ~p->t.tx_capa)
		return -EINVAL;
	if (c->rx_adv_conf.rss_conf.rss_hf & ~p->t.rss_hf)
		return -EINVAL;
	return fake_eth_mtu_valid(p, c->rxmode.mtu ? c->rxmode.mtu : RTE_ETHER_MTU);
}

static int configure_rss(struct fake_eth_port *p, const struct rte_eth_rss_conf *c)
{
	unsigned int i;

	if (!(p->conf.rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG))
		return 0;
	if (c->rss_key && p->t.key_fixed)
		return -ENOTSUP;
	if (c->rss_key && c->rss_key_len && c->rss_key_len != p->t.key_len)
		return -EINVAL;
	if (c->rss_key)
		memcpy(p->key, c->rss_key, p->t.key_len);
	for (i = 0; i < FAKE_ETH_RETA_MAX; i++)
		p->reta[i] = (uint16_t)(i % p->nb_rx);
	return 0;
}

int rte_eth_dev_configure(uint16_t port_id, uint16_t nb_rx, uint16_t nb_tx,
			  const struct rte_eth_conf *conf)
{
	struct fake_eth_port *p = fake_eth_port(port_id);
	uint16_t q;
	int rc;

	if (!p)
		return -ENODEV;
	rc = check_conf(p, nb_rx, nb_tx, conf);
	if (rc)
		return rc;
	p->count.configures++;
	p->conf = *conf;
	p->mtu = conf->rxmode.mtu ? (uint16_t)conf->rxmode.mtu : RTE_ETHER_MTU;
	p->nb_rx = nb_rx;
	p->nb_tx = nb_tx;
	for (q = 0; q < FAKE_ETH_QUEUES; q++)
		p->rxq[q].fresh = p->txq[q].fresh = false;
	memset(p->vlans, 0, sizeof(p->vlans));
	rc = configure_rss(p, &conf->rx_adv_conf.rss_conf);
	p->configured = rc == 0;
	return rc;
}

/* ---- queues --------------------------------------------------------------------------------- */

static bool ring_fits(uint16_t nb, const struct rte_eth_desc_lim *lim)
{
	return nb && nb <= lim->nb_max && nb >= lim->nb_min &&
	       (!lim->nb_align || nb % lim->nb_align == 0);
}

/* Does a frame of this MTU fit a buffer, or is the PMD content with less? */
static int check_fit(const struct fake_eth_port *p, uint16_t mtu, const struct rte_mempool *mp)
{
	uint32_t room = rte_pktmbuf_data_room_size((struct rte_mempool *)(uintptr_t)mp) -
			RTE_PKTMBUF_HEADROOM;

	if (room < p->t.least)
		return -EINVAL;
	if (p->t.strict && !(p->conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_SCATTER) &&
	    mtu + p->t.overhead > fake_eth_usable(p, mp))
		return p->t.strict;
	return 0;
}

static int set_ring(struct rte_mbuf ***bufs, uint16_t *ring, uint16_t want)
{
	struct rte_mbuf **more = realloc(*bufs, want * sizeof(**bufs));

	if (!more)
		return -ENOMEM;
	*bufs = more;
	*ring = want;
	return 0;
}

int rte_eth_rx_queue_setup(uint16_t port_id, uint16_t queue, uint16_t nb, unsigned int socket,
			   const struct rte_eth_rxconf *conf, struct rte_mempool *mp)
{
	struct fake_eth_port *p = fake_eth_port(port_id);
	struct fake_eth_rxq *q;
	int rc;

	RTE_SET_USED(socket);
	if (!p)
		return -ENODEV;
	if (p->removed || p->broken)
		return -EIO;
	if (p->started)
		return -EBUSY;
	if (!p->configured || queue >= p->nb_rx || !ring_fits(nb, &p->t.rx_lim) ||
	    (conf && conf->offloads & ~p->conf.rxmode.offloads) ||
	    rte_pktmbuf_data_room_size(mp) < p->t.min_rx_bufsize + RTE_PKTMBUF_HEADROOM)
		return -EINVAL;
	rc = check_fit(p, p->mtu, mp);
	if (!rc)
		rc = p->t.rx_setup_error;
	if (rc)
		return rc;
	q = &p->rxq[queue];
	if (!p->t.keeps_rx)
		fake_eth_rxq_drop(q);
	if (p->t.rx_ring && p->t.rx_ring < nb)
		nb = p->t.rx_ring;
	/* Buffers of the last life that are still in the ring keep their places. */
	rc = set_ring(&q->bufs, &q->ring, RTE_MAX(nb, q->posted));
	if (rc)
		return rc;
	q->port = p;
	q->mp = mp;
	snprintf(q->mp_name, sizeof(q->mp_name), "%s", mp->name);
	q->fresh = true;
	return 0;
}

int rte_eth_rx_queue_info_get(uint16_t port_id, uint16_t queue, struct rte_eth_rxq_info *info)
{
	const struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	if (queue >= p->nb_rx || !p->rxq[queue].port)
		return -EINVAL;
	*info = (struct rte_eth_rxq_info){.mp = p->rxq[queue].mp, .nb_desc = p->rxq[queue].ring};
	return 0;
}

int rte_eth_tx_queue_setup(uint16_t port_id, uint16_t queue, uint16_t nb, unsigned int socket,
			   const struct rte_eth_txconf *conf)
{
	struct fake_eth_port *p = fake_eth_port(port_id);
	struct fake_eth_txq *q;
	int rc;

	RTE_SET_USED(socket);
	if (!p)
		return -ENODEV;
	if (p->removed || p->broken)
		return -EIO;
	if (p->started)
		return -EBUSY;
	if (!p->configured || queue >= p->nb_tx || !ring_fits(nb, &p->t.tx_lim) ||
	    (conf && conf->offloads & ~p->conf.txmode.offloads))
		return -EINVAL;
	q = &p->txq[queue];
	fake_eth_txq_drop(q);
	if (p->t.tx_ring && p->t.tx_ring < nb)
		nb = p->t.tx_ring;
	rc = set_ring(&q->bufs, &q->ring, nb);
	if (rc)
		return rc;
	q->port = p;
	q->fresh = true;
	q->rs_thresh = conf ? conf->tx_rs_thresh : 0;
	return 0;
}

/* ---- MTU, VLAN ------------------------------------------------------------------------------ */

/*
 * As a PMD that looks at the pools of its rings, whatever made them, and whether they are still
 * there.
 */
static int read_pools(struct fake_eth_port *p, uint16_t mtu)
{
	struct fake_eth_rxq *q;
	int rc;

	for (q = p->rxq; q < p->rxq + FAKE_ETH_QUEUES; q++) {
		if (!q->mp)
			continue;
		if (rte_mempool_lookup(q->mp_name) != q->mp) {
			p->count.stale_pool++;
			return -EINVAL;
		}
		p->count.mtu_early += !q->fresh;
		rc = check_fit(p, mtu, q->mp);
		if (rc)
			return rc;
	}
	return 0;
}

int rte_eth_dev_set_mtu(uint16_t port_id, uint16_t mtu)
{
	struct fake_eth_port *p = fake_eth_port(port_id);
	int rc;

	if (!p)
		return -ENODEV;
	if (p->t.no_set_mtu)
		return -ENOTSUP;
	if (p->removed || p->broken)
		return -EIO;
	rc = fake_eth_mtu_valid(p, mtu);
	if (rc)
		return rc;
	if (!p->configured)
		return -EINVAL;
	if (p->started)
		return -EBUSY;
	rc = p->t.mtu_reads_pool ? read_pools(p, mtu) : 0;
	if (!rc)
		p->mtu = mtu;
	return rc;
}

int rte_eth_dev_vlan_filter(uint16_t port_id, uint16_t vlan, int on)
{
	struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	if (!(p->conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER))
		return -ENOSYS;
	if (vlan > 4095)
		return -EINVAL;
	if (p->t.vlan_filter_error)
		return p->t.vlan_filter_error;
	if (on)
		p->vlans[vlan / 64] |= RTE_BIT64(vlan % 64);
	else
		p->vlans[vlan / 64] &= ~RTE_BIT64(vlan % 64);
	return 0;
}

/* ---- start, stop, reset, close -------------------------------------------------------------- */

/* As net_ena's: the lcore that starts the port runs it, if anybody does. */
static void watch(struct rte_timer *timer, void *arg)
{
	struct fake_eth_port *p = arg;

	RTE_SET_USED(timer);
	p->count.watched++;
	if (p->hangs && !p->broken)
		fake_eth_break(p);
}

static void watchdog_on(struct fake_eth_port *p)
{
	rte_timer_subsystem_init();
	rte_timer_init(&p->watchdog);
	rte_timer_reset(&p->watchdog, rte_get_timer_hz(), PERIODICAL, rte_lcore_id(), watch, p);
}

int rte_eth_dev_start(uint16_t port_id)
{
	struct fake_eth_port *p = fake_eth_port(port_id);
	uint16_t q;

	if (!p)
		return -ENODEV;
	if (p->removed || p->broken)
		return -EIO;
	if (!p->configured)
		return -EINVAL;
	if (p->started)
		return 0;
	for (q = 0; q < p->nb_rx; q++)
		if (!p->rxq[q].fresh)
			return -EINVAL;
	for (q = 0; q < p->nb_tx; q++)
		if (!p->txq[q].fresh)
			return -EINVAL;
	if (p->conf.intr_conf.rxq && p->t.rx_intr_start_error)
		return p->t.rx_intr_start_error;
	p->count.starts++;
	p->started = true;
	fake_eth_intr_make(p);
	p->link_at = fake_eth_now_ms() + p->t.link_ms;
	for (q = 0; q < p->nb_rx; q++)
		fake_eth_post(&p->rxq[q]);
	fake_eth_io_on(p);
	if (p->t.watchdog)
		watchdog_on(p);
	return 0;
}

int rte_eth_dev_stop(uint16_t port_id)
{
	struct fake_eth_port *p = fake_eth_port(port_id);
	uint16_t q;

	if (!p)
		return -ENODEV;
	if (!p->started)
		return 0;
	fake_eth_io_off(p);
	if (p->t.watchdog)
		rte_timer_stop_sync(&p->watchdog);
	p->started = false;
	p->count.stops++;
	fake_eth_intr_drop(p);
	for (q = 0; q < FAKE_ETH_QUEUES; q++) {
		fake_eth_txq_drop(&p->txq[q]);
		if (!p->t.keeps_rx)
			fake_eth_rxq_drop(&p->rxq[q]);
	}
	return 0;
}

void fake_eth_wipe(struct fake_eth_port *p, bool rings_too)
{
	uint16_t q;

	if (p->started && p->t.watchdog)
		rte_timer_stop_sync(&p->watchdog);
	p->started = p->configured = false;
	fake_eth_intr_drop(p);
	for (q = 0; q < FAKE_ETH_QUEUES; q++) {
		fake_eth_txq_drop(&p->txq[q]);
		fake_eth_rxq_drop(&p->rxq[q]);
		p->rxq[q].fresh = p->txq[q].fresh = false;
		if (!rings_too)
			continue;
		free(p->rxq[q].bufs);
		free(p->txq[q].bufs);
		memset(&p->rxq[q], 0, sizeof(p->rxq[q]));
		memset(&p->txq[q], 0, sizeof(p->txq[q]));
	}
}

int rte_eth_dev_reset(uint16_t port_id)
{
	struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	if (p->removed)
		return -EIO;
	rte_eth_dev_stop(port_id);
	fake_eth_wipe(p, true);
	p->broken = p->hangs = false;
	p->count.resets++;
	return 0;
}

/* The port number stays: a test may look at it, and fake_eth_return() brings it back. */
int rte_eth_dev_close(uint16_t port_id)
{
	struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	if (p->started)
		return -EINVAL;
	if (p->configured && p->t.rx_setup_error)
		p->count.unfit_closes++;
	fake_eth_wipe(p, true);
	p->count.closes++;
	p->removed = true;
	return 0;
}

int rte_eth_promiscuous_enable(uint16_t port_id)
{
	struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	p->promiscuous = true;
	return 0;
}

/* ---- no flow rules -------------------------------------------------------------------------- */

int rte_flow_validate(uint16_t port_id, const struct rte_flow_attr *attr,
		      const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
		      struct rte_flow_error *error)
{
	RTE_SET_USED(port_id);
	RTE_SET_USED(attr);
	RTE_SET_USED(pattern);
	RTE_SET_USED(actions);
	error->type = RTE_FLOW_ERROR_TYPE_UNSPECIFIED;
	return -ENOSYS;
}

struct rte_flow *rte_flow_create(uint16_t port_id, const struct rte_flow_attr *attr,
				 const struct rte_flow_item pattern[],
				 const struct rte_flow_action actions[],
				 struct rte_flow_error *error)
{
	rte_flow_validate(port_id, attr, pattern, actions, error);
	return NULL;
}

int rte_flow_destroy(uint16_t port_id, struct rte_flow *flow, struct rte_flow_error *error)
{
	RTE_SET_USED(port_id);
	RTE_SET_USED(flow);
	RTE_SET_USED(error);
	return -ENOSYS;
}
