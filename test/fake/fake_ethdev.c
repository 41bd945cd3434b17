/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports that are not there, and what tests do with them. */

#include "fake/fake_ethdev.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_thash.h>

#include "fake/fake_ethdev_priv.h"

static struct fake_eth_port *ports[FAKE_ETH_PORTS];
static uint64_t skipped_ms;

struct fake_eth_port *fake_eth_port(uint16_t id)
{
	return id < FAKE_ETH_PORTS && ports[id] && !ports[id]->gone ? ports[id] : NULL;
}

uint64_t fake_eth_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000 + skipped_ms;
}

void fake_eth_skip(uint32_t ms)
{
	skipped_ms += ms;
}

/* ---- ports ---------------------------------------------------------------------------------- */

void fake_eth_reset(void)
{
	unsigned int i;

	for (i = 0; i < FAKE_ETH_PORTS; i++) {
		if (!ports[i])
			continue;
		fake_eth_io_off(ports[i]);
		fake_eth_wipe(ports[i], true);
		free(ports[i]);
		ports[i] = NULL;
	}
	skipped_ms = 0;
}

/* A PMD's own key: one that spreads, and that can't be guessed. */
static void own_key(struct fake_eth_port *p)
{
	unsigned int i;

	for (i = 0; i < sizeof(p->key); i++)
		p->key[i] = (uint8_t)(i * 73 + 41 * (p->id + 1) + (i * i) / 3);
	for (i = 0; i < FAKE_ETH_RETA_MAX; i++)
		p->reta[i] = 0;
}

struct fake_eth_port *fake_eth_add(const char *name, const struct fake_eth_traits *traits)
{
	struct fake_eth_port *p = calloc(1, sizeof(*p));
	uint16_t id = 0;

	while (id < FAKE_ETH_PORTS && ports[id])
		id++;
	if (!p || id == FAKE_ETH_PORTS) {
		fprintf(stderr, "no fake port left for %s\n", name);
		abort();
	}
	ports[id] = p;
	p->id = id;
	p->t = *traits;
	p->mtu = traits->mtu ? traits->mtu : RTE_ETHER_MTU;
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->mac = (struct rte_ether_addr){.addr_bytes = {2, 0xfa, 0xce, 0, 0, (uint8_t)(id + 1)}};
	own_key(p);
	fake_eth_io_off(p);
	return p;
}

uint16_t fake_eth_id(const struct fake_eth_port *p)
{
	return p->id;
}

struct fake_eth_traits *fake_eth_traits(struct fake_eth_port *p)
{
	return &p->t;
}

const struct fake_eth_count *fake_eth_count(const struct fake_eth_port *p)
{
	return &p->count;
}

const struct rte_eth_conf *fake_eth_conf(const struct fake_eth_port *p)
{
	return &p->conf;
}

uint16_t fake_eth_mtu(const struct fake_eth_port *p)
{
	return p->mtu;
}

uint16_t fake_eth_rx_ring(const struct fake_eth_port *p, uint16_t queue)
{
	return p->rxq[queue].ring;
}

uint16_t fake_eth_rx_posted(const struct fake_eth_port *p, uint16_t queue)
{
	return p->rxq[queue].posted;
}

bool fake_eth_vlan(const struct fake_eth_port *p, uint16_t vlan)
{
	return p->vlans[vlan / 64] >> (vlan % 64) & 1;
}

void fake_eth_wire(struct fake_eth_port *a, struct fake_eth_port *b)
{
	if (a->peer)
		a->peer->peer = NULL;
	a->peer = b;
	if (b)
		b->peer = a;
}

void fake_eth_tap(struct fake_eth_port *p,
		  void (*seen)(void *arg, const uint8_t *frame, uint32_t len), void *arg)
{
	p->seen = seen;
	p->seen_arg = arg;
}

/* ---- link and events ------------------------------------------------------------------------ */

bool fake_eth_link(const struct fake_eth_port *p)
{
	return p->started && !p->unplugged && !p->removed && fake_eth_now_ms() >= p->link_at;
}

void fake_eth_event(struct fake_eth_port *p, enum rte_eth_event_type type)
{
	struct fake_eth_callback cb;
	unsigned int i;

	for (i = 0; i < FAKE_ETH_CALLBACKS; i++) {
		cb = p->cb[i];
		if (cb.fn && (cb.type == type || cb.type == RTE_ETH_EVENT_MAX))
			cb.fn(p->id, type, cb.arg, NULL);
	}
}

void fake_eth_plug(struct fake_eth_port *p, bool plugged)
{
	p->unplugged = !plugged;
	if (plugged)
		p->link_at = fake_eth_now_ms() + p->t.link_ms;
	if (p->started && p->conf.intr_conf.lsc)
		fake_eth_event(p, RTE_ETH_EVENT_INTR_LSC);
}

void fake_eth_remove(struct fake_eth_port *p)
{
	p->removed = true;
	fake_eth_event(p, RTE_ETH_EVENT_INTR_RMV);
}

void fake_eth_break(struct fake_eth_port *p)
{
	p->broken = true;
	fake_eth_event(p, RTE_ETH_EVENT_INTR_RESET);
}

void fake_eth_hang(struct fake_eth_port *p)
{
	p->hangs = true;
}

void fake_eth_detach(struct fake_eth_port *p)
{
	fake_eth_io_off(p);
	fake_eth_wipe(p,
		      true); /* its watchdog too: one set twice makes a ring of the timers' list */
	fake_eth_event(p, RTE_ETH_EVENT_DESTROY);
	memset(p->cb, 0, sizeof(p->cb));
	memset(&p->owner, 0, sizeof(p->owner));
	p->gone = true;
}

void fake_eth_return(struct fake_eth_port *p)
{
	if (!p->gone)
		fake_eth_detach(p);
	p->gone = p->removed = p->broken = false;
	p->mtu = p->t.mtu ? p->t.mtu : RTE_ETHER_MTU;
}

/* ---- RSS ------------------------------------------------------------------------------------ */

uint16_t fake_eth_rss_queue(const struct fake_eth_port *p, uint32_t src, uint32_t dst,
			    uint16_t sport, uint16_t dport)
{
	uint32_t tuple[3] = {src, dst, (uint32_t)sport << 16 | dport};
	uint16_t size = p->t.reta_size ? p->t.reta_size : 1;
	uint32_t hash;

	if (p->nb_rx < 2 || !(p->conf.rx_adv_conf.rss_conf.rss_hf & p->t.rss_hf) ||
	    !(p->conf.rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG))
		return 0;
	/* NICs that hash addresses alone leave the ports out. */
	hash = rte_softrss(tuple,
			   p->t.rss_hf & p->conf.rx_adv_conf.rss_conf.rss_hf &
					   RTE_ETH_RSS_NONFRAG_IPV4_UDP
				   ? 3
				   : 2,
			   p->key);
	return p->reta[hash % size] % p->nb_rx;
}
