/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports: a struct weft_frame_port for the engine, and raw stations for tests.
 *
 * Two things are as nasty as on real cards. Sent mbufs come back late (only when tx_burst() runs
 * short or on tx_kick()), and their content is read when the wire has taken the frame, not before.
 * And received frames lie in memory of exactly their length, so that AddressSanitizer sees one byte
 * read too far.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "eal.h"
#include "engine/engine.h"
#include "frame/arp.h"
#include "sim_priv.h"

#define RECLAIM_AT 32 /* as tx_free_thresh of many PMDs */
#define HDR_ROOM 512

/* ---- EAL and pools -------------------------------------------------------------------------- */

void sim_eal_init(void)
{
	test_eal_init("4096");
}

/* Pools are kept for the next simulation: making one costs more than a short test. */
struct pool {
	LIST_ENTRY(pool) entry;
	struct rte_mempool *mp;
	unsigned int n;
	uint16_t room;
};

static LIST_HEAD(, pool) pools;

static struct rte_mempool *pool_get(unsigned int n, uint16_t room)
{
	static unsigned int number;
	struct rte_mempool *mp;
	struct pool *p;
	char name[32];

	LIST_FOREACH(p, &pools, entry) {
		if (p->n == n && p->room == room) {
			mp = p->mp;
			LIST_REMOVE(p, entry);
			free(p);
			return mp;
		}
	}
	snprintf(name, sizeof(name), "sim%u", number++);
	mp = rte_pktmbuf_pool_create(name, n, 0, 0, room, SOCKET_ID_ANY);
	while (!mp && (p = LIST_FIRST(&pools))) {
		/* No room: give up what is kept of other sizes. */
		LIST_REMOVE(p, entry);
		rte_mempool_free(p->mp);
		free(p);
		mp = rte_pktmbuf_pool_create(name, n, 0, 0, room, SOCKET_ID_ANY);
	}
	return mp;
}

static void pool_put(struct sim_port *port, struct rte_mempool *mp, unsigned int n, uint16_t room)
{
	unsigned int used = rte_mempool_in_use_count(mp);
	struct pool *p;

	if (used) {
		/* A device may still write there: the pool stays away from others. */
		port->stats.leaked += used;
		return;
	}
	p = sim_alloc(sizeof(*p));
	*p = (struct pool){.mp = mp, .n = n, .room = room};
	LIST_INSERT_HEAD(&pools, p, entry);
}

/* ---- checksums as a NIC does them ----------------------------------------------------------- */

struct rte_udp_hdr *sim_find_udp(uint8_t *data, size_t len, struct rte_ipv4_hdr **ip)
{
	size_t at = sizeof(struct rte_ether_hdr);
	uint16_t type;
	unsigned int ihl;

	if (len < at + sizeof(**ip) + sizeof(struct rte_udp_hdr))
		return NULL;
	memcpy(&type, data + at - 2, 2);
	if (type == RTE_BE16(RTE_ETHER_TYPE_VLAN)) {
		memcpy(&type, data + at + 2, 2);
		at += 4;
	}
	if (type != RTE_BE16(RTE_ETHER_TYPE_IPV4) || len < at + sizeof(**ip))
		return NULL;
	*ip = (struct rte_ipv4_hdr *)(data + at);
	ihl = rte_ipv4_hdr_len(*ip);
	if (ihl < sizeof(**ip) || (*ip)->next_proto_id != IPPROTO_UDP ||
	    len < at + ihl + sizeof(struct rte_udp_hdr) ||
	    rte_be_to_cpu_16((*ip)->total_length) < ihl + sizeof(struct rte_udp_hdr) ||
	    len < at + rte_be_to_cpu_16((*ip)->total_length))
		return NULL;
	return (struct rte_udp_hdr *)(data + at + ihl);
}

/* The UDP header of a frame with IPv6 that has one, whole. */
static struct rte_udp_hdr *find_udp6(uint8_t *data, size_t len, struct rte_ipv6_hdr **ip)
{
	size_t at = sizeof(struct rte_ether_hdr);
	rte_be16_t type;

	if (len < at + 4 + sizeof(**ip) + sizeof(struct rte_udp_hdr))
		return NULL;
	memcpy(&type, data + at - 2, 2);
	if (type == RTE_BE16(RTE_ETHER_TYPE_VLAN)) {
		memcpy(&type, data + at + 2, 2);
		at += 4;
	}
	*ip = (struct rte_ipv6_hdr *)(data + at);
	if (type != RTE_BE16(RTE_ETHER_TYPE_IPV6) || (*ip)->proto != IPPROTO_UDP ||
	    len < at + sizeof(**ip) + rte_be_to_cpu_16((*ip)->payload_len))
		return NULL;
	return (struct rte_udp_hdr *)(*ip + 1);
}

static void tx_checksum6(uint64_t flags, struct sim_frame *f)
{
	struct rte_ipv6_hdr *ip;
	struct rte_udp_hdr *udp = find_udp6(f->data, f->len, &ip);

	if (!udp || (flags & RTE_MBUF_F_TX_L4_MASK) != RTE_MBUF_F_TX_UDP_CKSUM)
		return;
	udp->dgram_cksum = 0;
	udp->dgram_cksum = rte_ipv6_udptcp_cksum(ip, udp);
}

static void rx_checksum6(struct rte_mbuf *m, struct sim_frame *f)
{
	struct rte_ipv6_hdr *ip;
	struct rte_udp_hdr *udp = find_udp6(f->data, f->len, &ip);
	uint16_t sum;

	if (!udp || udp->dgram_cksum == 0)
		return;
	sum = udp->dgram_cksum;
	udp->dgram_cksum = 0;
	m->ol_flags |= rte_ipv6_udptcp_cksum(ip, udp) == sum ? RTE_MBUF_F_RX_L4_CKSUM_GOOD
							     : RTE_MBUF_F_RX_L4_CKSUM_BAD;
	udp->dgram_cksum = sum;
}

static void tx_checksums(uint64_t flags, struct sim_frame *f)
{
	struct rte_ipv4_hdr *ip;
	struct rte_udp_hdr *udp;

	if (flags & RTE_MBUF_F_TX_IPV6)
		tx_checksum6(flags, f);
	if (!(flags & (RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM)))
		return;
	udp = sim_find_udp(f->data, f->len, &ip);
	if (!udp)
		return;
	if (flags & RTE_MBUF_F_TX_IP_CKSUM) {
		ip->hdr_checksum = 0;
		ip->hdr_checksum = rte_ipv4_cksum(ip);
	}
	if ((flags & RTE_MBUF_F_TX_L4_MASK) == RTE_MBUF_F_TX_UDP_CKSUM) {
		udp->dgram_cksum = 0;
		udp->dgram_cksum = rte_ipv4_udptcp_cksum(ip, udp);
	}
}

static void rx_checksums(struct rte_mbuf *m, struct sim_frame *f)
{
	struct rte_ipv4_hdr *ip;
	struct rte_udp_hdr *udp = sim_find_udp(f->data, f->len, &ip);
	uint16_t sum;

	rx_checksum6(m, f);
	if (!udp)
		return;
	sum = ip->hdr_checksum;
	ip->hdr_checksum = 0;
	m->ol_flags |= rte_ipv4_cksum(ip) == sum ? RTE_MBUF_F_RX_IP_CKSUM_GOOD
						 : RTE_MBUF_F_RX_IP_CKSUM_BAD;
	ip->hdr_checksum = sum;
	sum = udp->dgram_cksum;
	if (!sum)
		return;
	udp->dgram_cksum = 0;
	m->ol_flags |= rte_ipv4_udptcp_cksum(ip, udp) == sum ? RTE_MBUF_F_RX_L4_CKSUM_GOOD
							     : RTE_MBUF_F_RX_L4_CKSUM_BAD;
	udp->dgram_cksum = sum;
}

static bool is_nic(const struct weft_frame_port *fp)
{
	return fp->flags & WEFT_FRAME_PORT_REG;
}

/* ---- sending -------------------------------------------------------------------------------- */

void sim_tx_put(struct sim_tx *tx)
{
	if (!tx->mbuf && tx->sent)
		free(tx);
}

struct sim_frame *sim_tx_read(const struct sim_tx *tx)
{
	struct sim_frame *f = sim_frame_new(NULL, rte_pktmbuf_pkt_len(tx->mbuf));
	const struct rte_mbuf *seg;
	size_t at = 0;

	for (seg = tx->mbuf; seg; seg = seg->next) {
		if (is_nic(&tx->port->fp) && RTE_MBUF_HAS_EXTBUF(seg) && !sim_mem_readable(seg))
			tx->port->stats.not_allowed++;
		memcpy(f->data + at, rte_pktmbuf_mtod(seg, const void *), seg->data_len);
		at += seg->data_len;
	}
	tx_checksums(tx->mbuf->ol_flags, f);
	return f;
}

static void reclaim(struct sim_port *port)
{
	struct sim_tx *tx;

	while ((tx = TAILQ_FIRST(&port->ring)) && tx->sent) {
		TAILQ_REMOVE(&port->ring, tx, entry);
		port->ring_used--;
		rte_pktmbuf_free(tx->mbuf);
		tx->mbuf = NULL;
		sim_tx_put(tx);
	}
}

static uint16_t port_tx_burst(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct sim_port *port = (struct sim_port *)fp;
	struct sim_tx *tx;
	uint32_t len;
	uint16_t i;

	if (port->ended)
		return 0;
	if (port->ring_used >= RECLAIM_AT || port->ring_used + n > fp->tx_depth)
		reclaim(port);
	for (i = 0; i < n; i++) {
		len = rte_pktmbuf_pkt_len(pkts[i]);
		if (port->ring_used == fp->tx_depth ||
		    (fp->tx_bytes_max && port->unsent + len > fp->tx_bytes_max))
			break;
		rte_mbuf_sanity_check(pkts[i], 1);
		if (len > fp->frame_size)
			port->stats.oversize++;
		if (pkts[i]->nb_segs > 1 && !(fp->flags & WEFT_FRAME_PORT_MULTISEG))
			port->stats.not_allowed++;
		port->stats.chains += pkts[i]->nb_segs > 1;
		tx = sim_alloc(sizeof(*tx));
		tx->port = port;
		tx->mbuf = pkts[i];
		tx->len = len;
		TAILQ_INSERT_TAIL(&port->ring, tx, entry);
		port->ring_used++;
		port->unsent += len;
		sim_net_send(port, tx, len);
	}
	if (i < n)
		port->stats.tx_busy++;
	return i;
}

static void port_tx_kick(struct weft_frame_port *fp)
{
	if (!is_nic(fp))
		reclaim((struct sim_port *)fp);
}

static bool port_tx_done(struct weft_frame_port *fp)
{
	const struct sim_tx *last = TAILQ_LAST(&((struct sim_port *)fp)->ring, sim_ring);

	return !last || last->sent;
}

void sim_inject(struct sim_port *port, const void *data, size_t len)
{
	struct sim_tx *tx = sim_alloc(sizeof(*tx));

	if (len > SIM_FRAME_MAX)
		len = SIM_FRAME_MAX;
	tx->port = port;
	tx->frame = sim_frame_new(data, len);
	sim_net_send(port, tx, len);
}

/* ---- receiving ------------------------------------------------------------------------------ */

void sim_port_receive(struct sim_port *port, struct sim_frame *frame)
{
	struct sim *sim = port->sim;

	port = sim_queue_for(port, frame);

	if (!port->station && !port->open) {
		port->stats.no_listener++;
		free(frame);
		return;
	}
	if (!port->station && port->rx_used >= port->fp.rx_depth) {
		port->stats.rx_full++;
		free(frame);
		return;
	}
	port->stats.rx_frames++;
	port->stats.rx_bytes += frame->len;
	sim_hash_frame(sim, 2, port, frame->data, frame->len);
	if (sim->pcap)
		sim_pcap_frame(sim->pcap, port, false, sim->now, frame->data, frame->len);
	if (port->station) {
		port->station(port, frame->data, frame->len, port->station_arg);
		free(frame);
		return;
	}
	STAILQ_INSERT_TAIL(&port->rx, frame, entry);
	port->rx_used++;
}

/* Memory of one received frame, outside the pool. */
struct exact {
	struct rte_mbuf_ext_shared_info shared;
	void *data;
};

static void exact_free(void *addr, void *opaque)
{
	struct exact *x = opaque;

	(void)addr;
	free(x->data);
	free(x);
}

static void exact_attach(struct rte_mbuf *m, const struct sim_frame *f)
{
	struct exact *x = sim_alloc(sizeof(*x));

	x->data = sim_alloc(f->len);
	memcpy(x->data, f->data, f->len);
	x->shared.free_cb = exact_free;
	x->shared.fcb_opaque = x;
	rte_mbuf_ext_refcnt_set(&x->shared, 1);
	rte_pktmbuf_attach_extbuf(m, x->data, RTE_BAD_IOVA, (uint16_t)f->len, &x->shared);
	m->data_len = (uint16_t)f->len;
	m->pkt_len = f->len;
}

static uint16_t port_rx_burst(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct sim_port *port = (struct sim_port *)fp;
	struct sim_frame *f;
	uint16_t got = 0;

	while (!port->ended && got < n && (f = STAILQ_FIRST(&port->rx))) {
		STAILQ_REMOVE_HEAD(&port->rx, entry);
		port->rx_used--;
		pkts[got] = rte_pktmbuf_alloc(fp->pool);
		if (pkts[got]) {
			exact_attach(pkts[got], f);
			if (fp->flags & WEFT_FRAME_PORT_RX_CSUM)
				rx_checksums(pkts[got], f);
			got++;
		} else {
			port->stats.rx_nobuf++;
		}
		free(f);
	}
	return got;
}

/* ---- life ----------------------------------------------------------------------------------- */

static bool port_link_up(struct weft_frame_port *fp)
{
	return ((struct sim_port *)fp)->carrier && !((struct sim_port *)fp)->ended;
}

static void port_counters(struct weft_frame_port *fp, weft_frame_port_counter_cb cb, void *arg)
{
	const struct sim_port *port = (struct sim_port *)fp;

	cb("sim.rx_full", port->stats.rx_full, arg);
	cb("sim.rx_nobuf", port->stats.rx_nobuf, arg);
}

void sim_port_drain(struct sim_port *port)
{
	struct sim_frame *f;
	struct sim_tx *tx;

	while ((f = STAILQ_FIRST(&port->rx))) {
		STAILQ_REMOVE_HEAD(&port->rx, entry);
		free(f);
	}
	port->rx_used = 0;
	/*
	 * What a card has taken it sends, even if its driver is stopped; of a dead host nothing is
	 * heard (mute).
	 */
	while ((tx = TAILQ_FIRST(&port->ring))) {
		TAILQ_REMOVE(&port->ring, tx, entry);
		if (!tx->sent)
			tx->frame = sim_tx_read(tx);
		rte_pktmbuf_free(tx->mbuf);
		tx->mbuf = NULL;
		tx->dead = port->mute;
		sim_tx_put(tx);
	}
	port->ring_used = 0;
	port->unsent = 0;
}

static uint16_t frame_room(const struct sim_port *port)
{
	return (uint16_t)(RTE_PKTMBUF_HEADROOM + port->fp.frame_size);
}

static void port_close(struct weft_frame_port *fp)
{
	struct sim_port *port = (struct sim_port *)fp;

	if (!port->open)
		return;
	sim_port_drain(port);
	sim_queues_drain(port);
	port->open = false;
	pool_put(port, fp->pool, port->params.bufs, frame_room(port));
	pool_put(port, fp->hdr_pool, port->params.hdr_bufs, HDR_ROOM);
	free(fp->hosts);
	fp->hosts = NULL;
}

static void port_farewell(struct weft_frame_port *fp, uint16_t *slot, const uint8_t *frame,
			  uint32_t len)
{
	struct sim_port *port = (struct sim_port *)fp;

	*slot = len > 0;
	port->farewell_len = len;
	if (len > 0)
		memcpy(port->farewell, frame, len);
}

static void port_alone(struct weft_frame_port *fp, uint32_t ip)
{
	(void)ip;
	((struct sim_port *)fp)->alone++;
}

unsigned int sim_port_alone(const struct sim_port *port)
{
	return port->alone;
}

uint32_t sim_port_farewell(const struct sim_port *port, uint8_t *frame)
{
	memcpy(frame, port->farewell, port->farewell_len);
	return port->farewell_len;
}

static const struct weft_frame_port_ops port_ops = {
	.rx_burst = port_rx_burst,
	.tx_burst = port_tx_burst,
	.tx_kick = port_tx_kick,
	.tx_done = port_tx_done,
	.mem_map = sim_mem_map,
	.link_up = port_link_up,
	.look = sim_port_look,
	.alone = port_alone,
	.farewell = port_farewell,
	.counters = port_counters,
	.close = port_close,
};

int sim_port_open(struct sim_port *port)
{
	if (port->open || port->station)
		return -EBUSY;
	if (port->ended == -ENODEV)
		return -ENODEV;
	sim_port_renew(port);
	port->fp.pool = pool_get(port->params.bufs, frame_room(port));
	port->fp.hdr_pool = pool_get(port->params.hdr_bufs, HDR_ROOM);
	if (!port->fp.pool || !port->fp.hdr_pool)
		return -ENOMEM;
	if (port->params.ip6) {
		if (inet_pton(AF_INET6, port->params.ip6, port->fp.ip6) != 1)
			return -EINVAL;
		if (memcmp(port->fp.ip6 + 8, (uint8_t[8]){0}, 8) == 0)
			weft_ip6_from_mac(port->fp.ip6, port->fp.mac);
		port->fp.prefix6 = 64;
		port->fp.hosts = weft_hosts_new(port->fp.ip6);
	}
	port->open = true;
	return 0;
}

void sim_port_conf(const struct sim_port *port, struct weft_raw_conf *rc)
{
	const struct sim_port_params *p = &port->params;

	*rc = (struct weft_raw_conf){
		.raw_ethertype = p->raw_ethertype,
		.vlan = p->vlan,
		.ip = p->ip,
		.prefix = p->prefix,
		.gateway = p->gateway,
		.neigh = p->neigh,
		.num_neigh = p->num_neigh,
		.udp_port = p->udp_port,
		.paths = p->paths,
		.frame_size = p->lane_frame_size,
		.set_first_seq = p->set_first_seq,
		.first_seq = p->first_seq,
	};
	if (port->fp.hosts) {
		rc->six = true;
		rc->ip = weft_hosts_find(port->fp.hosts, port->fp.ip6);
	}
}

static void fill_frame_port(struct sim_port *port)
{
	const struct sim_port_params *p = &port->params;
	struct weft_frame_port *fp = &port->fp;

	fp->ops = &port_ops;
	memcpy(fp->name, port->name, sizeof(port->name));
	if (p->device)
		snprintf(fp->device, sizeof(fp->device), "%s", p->device);
	else
		snprintf(fp->device, sizeof(fp->device), "sim-%s", port->name);
	fp->flags = (WEFT_FRAME_PORT_MULTISEG | WEFT_FRAME_PORT_EXTBUF | WEFT_FRAME_PORT_RX_OWN |
		     p->flags) &
		    ~p->no_flags;
	if (is_nic(fp))
		snprintf(fp->mem_domain, sizeof(fp->mem_domain), "sim");
	fp->socket = SOCKET_ID_ANY;
	fp->frame_size = p->frame_size ? p->frame_size : 1514;
	fp->tx_depth = p->tx_depth ? p->tx_depth : 256;
	fp->rx_depth = p->rx_depth ? p->rx_depth : 512;
	fp->tx_bytes_max = p->tx_bytes_max;
	fp->bandwidth = p->bandwidth > 0 ? p->bandwidth
			: p->up.rate     ? (double)p->up.rate / 8
					 : 1.25e9;
	port->speed = fp->bandwidth;
	fp->link = p->link;
	fp->latency = p->latency > 0 ? p->latency : 1e-6;
	/* Locally administered; unlike any other in this simulation. */
	memcpy(fp->mac,
	       (uint8_t[6]){0x02, 0x57, 0x46, 0, (uint8_t)(port->index >> 8), (uint8_t)port->index},
	       6);
}

struct sim_port *sim_port_create(struct sim *sim, const struct sim_port_params *params)
{
	struct sim_port *port;

	if (sim->num_ports == SIM_MAX_PORTS) {
		fprintf(stderr, "sim: more than %d ports\n", SIM_MAX_PORTS);
		abort();
	}
	port = sim_alloc(sizeof(*port));
	if (params)
		port->params = *params;
	if (!port->params.bufs)
		port->params.bufs = 2048;
	if (!port->params.hdr_bufs)
		port->params.hdr_bufs = port->params.bufs;
	port->sim = sim;
	port->index = sim->num_ports;
	port->net = port->params.net;
	port->carrier = true;
	if (port->params.name)
		snprintf(port->name, sizeof(port->name), "%s", port->params.name);
	else
		snprintf(port->name, sizeof(port->name), "p%u", port->index);
	weft_arp_table_init(&port->arp, 42);
	TAILQ_INIT(&port->ring);
	STAILQ_INIT(&port->rx);
	port->up.link = port->params.up;
	port->down.link = port->params.down;
	sim_link_init(&port->up.state, sim->seed, 1000 + 2 * port->index);
	sim_link_init(&port->down.state, sim->seed, 1001 + 2 * port->index);
	fill_frame_port(port);
	sim->ports[sim->num_ports++] = port;
	return port;
}

void sim_station(struct sim_port *port, bool promisc, sim_frame_cb cb, void *arg)
{
	port->station = cb;
	port->station_arg = arg;
	port->promisc = promisc;
}

void sim_filter(struct sim_port *port, sim_filter_cb cb, void *arg)
{
	port->filter = cb;
	port->filter_arg = arg;
}

struct sim_link *sim_port_up(struct sim_port *port)
{
	return &port->up.link;
}

struct sim_link *sim_port_down(struct sim_port *port)
{
	return &port->down.link;
}

void sim_link_set(struct sim_port *a, struct sim_port *b, const struct sim_link *link)
{
	a->up.link = *link;
	a->down.link = *link;
	if (b)
		sim_link_set(b, NULL, link);
}

const struct sim_stats *sim_port_stats(const struct sim_port *port)
{
	const struct sim_link_stats *up = &port->up.state.stats, *down = &port->down.state.stats;
	struct sim_stats *s = &port->sim->ports[port->index]->stats;

	s->lost = up->lost + up->burst_lost + down->lost + down->burst_lost;
	s->dupped = up->dupped + down->dupped;
	s->reordered = up->reordered + down->reordered;
	s->corrupted = up->corrupted + down->corrupted;
	s->truncated = up->truncated + down->truncated;
	s->blackholed = up->blackholed + down->blackholed;
	s->too_long = up->too_long + down->too_long;
	s->marked = up->marked + down->marked;
	s->tail_drops = sim_link_congestion(up) + sim_link_congestion(down);
	return s;
}

const struct sim_link_stats *sim_port_down_stats(const struct sim_port *port)
{
	return &port->down.state.stats;
}

const char *sim_port_name(const struct sim_port *port)
{
	return port->name;
}

const uint8_t *sim_port_mac(const struct sim_port *port)
{
	return port->fp.mac;
}

unsigned int sim_port_index(const struct sim_port *port)
{
	return port->index;
}

void sim_port_move(struct sim_port *port, unsigned int net)
{
	port->net = net;
}

uint64_t sim_leaked(const struct sim *sim)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < sim->num_ports; i++)
		sum += sim->ports[i]->stats.leaked;
	return sum;
}
