/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that ask a port, or that claim it. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fake/fake_ethdev_priv.h"

#define TX_MAX_BURST 32 /* of the vector paths of ixgbe, i40e, iavf and ice */

bool fake_eth_tx_vector(const struct fake_eth_port *p)
{
	uint16_t q;

	if (!p->t.tx_vector || p->conf.txmode.offloads & ~p->t.tx_vector_has)
		return false;
	for (q = 0; q < p->nb_tx; q++)
		if (p->txq[q].rs_thresh && p->txq[q].rs_thresh < TX_MAX_BURST)
			return false;
	return true;
}

bool fake_eth_rx_vector(const struct fake_eth_port *p)
{
	uint16_t q;

	if (!p->t.rx_vector || p->conf.rxmode.offloads & ~p->t.rx_vector_has)
		return false;
	for (q = 0; q < p->nb_rx; q++)
		if (p->rxq[q].ring & (p->rxq[q].ring - 1))
			return false;
	return true;
}

/* ---- which ports there are ------------------------------------------------------------------ */

int rte_eth_dev_is_valid_port(uint16_t port_id)
{
	return fake_eth_port(port_id) != NULL;
}

uint16_t rte_eth_dev_count_avail(void)
{
	uint16_t i, n = 0;

	for (i = 0; i < FAKE_ETH_PORTS; i++)
		n += fake_eth_port(i) != NULL;
	return n;
}

uint16_t rte_eth_find_next(uint16_t port_id)
{
	while (port_id < FAKE_ETH_PORTS && !fake_eth_port(port_id))
		port_id++;
	return port_id < FAKE_ETH_PORTS ? port_id : RTE_MAX_ETHPORTS;
}

uint64_t rte_eth_find_next_owned_by(uint16_t port_id, const uint64_t owner_id)
{
	uint16_t id = rte_eth_find_next(port_id);

	while (id < RTE_MAX_ETHPORTS && fake_eth_port(id)->owner.id != owner_id)
		id = rte_eth_find_next((uint16_t)(id + 1));
	return id;
}

int rte_eth_dev_get_name_by_port(uint16_t port_id, char *name)
{
	const struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	snprintf(name, RTE_ETH_NAME_MAX_LEN, "%s", p->name);
	return 0;
}

int rte_eth_dev_get_port_by_name(const char *name, uint16_t *port_id)
{
	uint16_t i;

	for (i = 0; i < FAKE_ETH_PORTS; i++) {
		if (!fake_eth_port(i) || strcmp(fake_eth_port(i)->name, name))
			continue;
		*port_id = i;
		return 0;
	}
	return -ENODEV;
}

int rte_eth_dev_socket_id(uint16_t port_id)
{
	return fake_eth_port(port_id) ? 0 : SOCKET_ID_ANY;
}

int rte_eth_dev_is_removed(uint16_t port_id)
{
	const struct fake_eth_port *p = fake_eth_port(port_id);

	return p && p->removed;
}

/* ---- owners --------------------------------------------------------------------------------- */

int rte_eth_dev_owner_new(uint64_t *owner_id)
{
	static uint64_t last;

	*owner_id = ++last;
	return 0;
}

int rte_eth_dev_owner_set(const uint16_t port_id, const struct rte_eth_dev_owner *owner)
{
	struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	if (p->owner.id != RTE_ETH_DEV_NO_OWNER)
		return -EPERM;
	p->owner = *owner;
	return 0;
}

int rte_eth_dev_owner_unset(const uint16_t port_id, const uint64_t owner_id)
{
	struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	if (p->owner.id != owner_id)
		return -EPERM;
	memset(&p->owner, 0, sizeof(p->owner));
	return 0;
}

int rte_eth_dev_owner_get(const uint16_t port_id, struct rte_eth_dev_owner *owner)
{
	const struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	*owner = p->owner;
	return 0;
}

/* ---- what it is like ------------------------------------------------------------------------ */

int rte_eth_dev_info_get(uint16_t port_id, struct rte_eth_dev_info *info)
{
	const struct fake_eth_port *p = fake_eth_port(port_id);
	static const uint32_t no_flags;
	const struct fake_eth_traits *t;

	if (!p)
		return -ENODEV;
	memset(info, 0, sizeof(*info));
	if (p->removed)
		return -EIO;
	t = &p->t;
	info->driver_name = t->driver;
	info->device = t->device;
	info->dev_flags = &no_flags;
	if (t->events & (RTE_BIT64(RTE_ETH_EVENT_INTR_LSC) | RTE_BIT64(RTE_ETH_EVENT_INTR_RMV))) {
		static const uint32_t flags[4] = {0, RTE_ETH_DEV_INTR_LSC, RTE_ETH_DEV_INTR_RMV,
						  RTE_ETH_DEV_INTR_LSC | RTE_ETH_DEV_INTR_RMV};

		info->dev_flags = &flags[(t->events >> RTE_ETH_EVENT_INTR_LSC & 1) |
					 (t->events >> RTE_ETH_EVENT_INTR_RMV & 1) << 1];
	}
	info->min_mtu = t->min_mtu ? t->min_mtu : 46;
	info->max_mtu = t->max_mtu;
	info->min_rx_bufsize = t->min_rx_bufsize;
	info->max_rx_pktlen = t->max_rx_pktlen;
	info->max_rx_queues = info->max_tx_queues = t->queues;
	info->nb_rx_queues = p->nb_rx;
	info->nb_tx_queues = p->nb_tx;
	info->rx_offload_capa = t->rx_capa;
	info->tx_offload_capa = t->tx_capa;
	info->rx_desc_lim = t->rx_lim;
	info->tx_desc_lim = t->tx_lim;
	info->reta_size = t->reta_size;
	info->hash_key_size = t->key_len;
	info->flow_type_rss_offloads = t->rss_hf;
	info->max_mac_addrs = 1;
	return 0;
}

int rte_eth_tx_queue_info_get(uint16_t port_id, uint16_t queue, struct rte_eth_txq_info *info)
{
	const struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	if (queue >= p->nb_tx)
		return -EINVAL;
	if (!p->t.tx_ring_reported)
		return -ENOTSUP;
	memset(info, 0, sizeof(*info));
	info->nb_desc = p->txq[queue].ring;
	return 0;
}

uint32_t fake_eth_l2_overhead(const struct fake_eth_port *p)
{
	if (p->t.max_mtu != UINT16_MAX && p->t.max_rx_pktlen > p->t.max_mtu)
		return p->t.max_rx_pktlen - p->t.max_mtu;
	return RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
}

int fake_eth_mtu_valid(const struct fake_eth_port *p, uint32_t mtu)
{
	if (mtu < p->t.min_mtu || mtu > p->t.max_mtu ||
	    mtu + fake_eth_l2_overhead(p) > p->t.max_rx_pktlen)
		return -EINVAL;
	return 0;
}

int rte_eth_dev_adjust_nb_rx_tx_desc(uint16_t port_id, uint16_t *nb_rx, uint16_t *nb_tx)
{
	const struct fake_eth_port *p = fake_eth_port(port_id);
	const struct rte_eth_desc_lim *lim[2];
	uint16_t *nb[2] = {nb_rx, nb_tx};
	int i;

	if (!p)
		return -ENODEV;
	lim[0] = &p->t.rx_lim;
	lim[1] = &p->t.tx_lim;
	for (i = 0; i < 2; i++) {
		if (!nb[i])
			continue;
		if (lim[i]->nb_align)
			*nb[i] = (uint16_t)((*nb[i] + lim[i]->nb_align - 1) / lim[i]->nb_align *
					    lim[i]->nb_align);
		if (lim[i]->nb_max)
			*nb[i] = RTE_MIN(*nb[i], lim[i]->nb_max);
		*nb[i] = RTE_MAX(*nb[i], lim[i]->nb_min);
	}
	return 0;
}

int rte_eth_macaddr_get(uint16_t port_id, struct rte_ether_addr *mac)
{
	const struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	*mac = p->mac;
	return 0;
}

int rte_eth_dev_get_mtu(uint16_t port_id, uint16_t *mtu)
{
	const struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	*mtu = p->mtu;
	return 0;
}

int rte_eth_link_get_nowait(uint16_t port_id, struct rte_eth_link *link)
{
	const struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	memset(link, 0, sizeof(*link));
	if (!fake_eth_link(p))
		return 0;
	link->link_status = RTE_ETH_LINK_UP;
	link->link_duplex = RTE_ETH_LINK_FULL_DUPLEX;
	link->link_speed = p->t.speed ? p->t.speed : RTE_ETH_SPEED_NUM_UNKNOWN;
	return 0;
}

/* Real ones wait up to 9 s here, on whose thread asks. */
int rte_eth_link_get(uint16_t port_id, struct rte_eth_link *link)
{
	struct fake_eth_port *p = fake_eth_port(port_id);

	if (p && p->started && !p->unplugged && p->link_at > fake_eth_now_ms())
		fake_eth_skip((uint32_t)(p->link_at - fake_eth_now_ms()));
	return rte_eth_link_get_nowait(port_id, link);
}

/* ---- statistics ----------------------------------------------------------------------------- */

#define XSTATS 3

int rte_eth_xstats_get_names(uint16_t port_id, struct rte_eth_xstat_name *names, unsigned int size)
{
	static const char *const name[XSTATS] = {"rx_good_packets", "tx_good_packets",
						 "rx_missed_errors"};
	unsigned int i;

	if (!fake_eth_port(port_id))
		return -ENODEV;
	for (i = 0; names && i < XSTATS && i < size; i++)
		snprintf(names[i].name, sizeof(names[i].name), "%s", name[i]);
	return XSTATS;
}

int rte_eth_xstats_get(uint16_t port_id, struct rte_eth_xstat *xstats, unsigned int n)
{
	const struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	if (!xstats || n < XSTATS)
		return XSTATS;
	xstats[0] = (struct rte_eth_xstat){.id = 0, .value = p->count.rx_frames};
	xstats[1] = (struct rte_eth_xstat){.id = 1, .value = p->count.tx_frames};
	xstats[2] = (struct rte_eth_xstat){.id = 2, .value = p->count.rx_no_buffer};
	return XSTATS;
}

/* ---- events --------------------------------------------------------------------------------- */

int rte_eth_dev_callback_register(uint16_t port_id, enum rte_eth_event_type event,
				  rte_eth_dev_cb_fn fn, void *arg)
{
	struct fake_eth_port *p = fake_eth_port(port_id);
	unsigned int i;

	if (!p)
		return -ENODEV;
	for (i = 0; i < FAKE_ETH_CALLBACKS; i++) {
		if (p->cb[i].fn)
			continue;
		p->cb[i] = (struct fake_eth_callback){event, fn, arg};
		return 0;
	}
	return -ENOMEM;
}

int rte_eth_dev_callback_unregister(uint16_t port_id, enum rte_eth_event_type event,
				    rte_eth_dev_cb_fn fn, void *arg)
{
	struct fake_eth_port *p = fake_eth_port(port_id);
	unsigned int i;

	if (!p)
		return -ENODEV;
	for (i = 0; i < FAKE_ETH_CALLBACKS; i++)
		if (p->cb[i].fn == fn && p->cb[i].type == event &&
		    (arg == (void *)-1 || p->cb[i].arg == arg))
			p->cb[i].fn = NULL;
	return 0;
}

/* ---- RSS ------------------------------------------------------------------------------------ */

int rte_eth_dev_rss_hash_conf_get(uint16_t port_id, struct rte_eth_rss_conf *conf)
{
	const struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	if (p->t.key_untold || !p->t.rss_hf)
		return -ENOTSUP;
	if (conf->rss_key && conf->rss_key_len < p->t.key_len)
		return -EINVAL;
	if (conf->rss_key)
		memcpy(conf->rss_key, p->key, p->t.key_len);
	conf->rss_key_len = p->t.key_len;
	conf->rss_hf = p->conf.rx_adv_conf.rss_conf.rss_hf;
	return 0;
}

int rte_eth_dev_rss_hash_update(uint16_t port_id, struct rte_eth_rss_conf *conf)
{
	struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	if (!p->t.rss_hf || (conf->rss_key && p->t.key_fixed))
		return -ENOTSUP;
	if (conf->rss_hf & ~p->t.rss_hf || (conf->rss_key && conf->rss_key_len != p->t.key_len))
		return -EINVAL;
	if (conf->rss_key)
		memcpy(p->key, conf->rss_key, p->t.key_len);
	p->conf.rx_adv_conf.rss_conf.rss_hf = conf->rss_hf;
	return 0;
}

int rte_eth_dev_rss_reta_query(uint16_t port_id, struct rte_eth_rss_reta_entry64 *reta,
			       uint16_t size)
{
	const struct fake_eth_port *p = fake_eth_port(port_id);
	uint16_t i;

	if (!p)
		return -ENODEV;
	if (!p->t.reta_size)
		return -ENOTSUP;
	if (size != p->t.reta_size)
		return -EINVAL;
	for (i = 0; i < size; i++)
		if (reta[i / 64].mask >> (i % 64) & 1)
			reta[i / 64].reta[i % 64] = p->reta[i];
	return 0;
}

int rte_eth_dev_rss_reta_update(uint16_t port_id, struct rte_eth_rss_reta_entry64 *reta,
				uint16_t size)
{
	struct fake_eth_port *p = fake_eth_port(port_id);
	uint16_t i;

	if (!p)
		return -ENODEV;
	if (!p->t.reta_size)
		return -ENOTSUP;
	if (size != p->t.reta_size)
		return -EINVAL;
	for (i = 0; i < size; i++)
		if (reta[i / 64].mask >> (i % 64) & 1 && reta[i / 64].reta[i % 64] >= p->nb_rx)
			return -EINVAL;
	for (i = 0; i < size; i++)
		if (reta[i / 64].mask >> (i % 64) & 1)
			p->reta[i] = reta[i / 64].reta[i % 64];
	return 0;
}
