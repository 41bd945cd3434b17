/* SPDX-License-Identifier: BSD-3-Clause */

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/iface.h"
#include "engine/engine.h"
#include "common/pattern.h"
#include "eal.h"
#include "mock/raw_pair.h"

uint64_t pair_rand(struct pair *p)
{
	uint64_t z = p->rng += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static bool dice(struct pair *p, double chance)
{
	return chance > 0 && (double)(pair_rand(p) >> 11) / 9007199254740992.0 < chance;
}

struct msg {
	uint32_t n, len;
	uint8_t fill[];
};

/* ---- wire ---- */

static void enqueue(struct pair_end *to, const struct rte_mbuf *m, uint64_t due, bool corrupt)
{
	struct rte_mbuf *c;
	uint8_t *d;

	if (to->queued == RTE_DIM(to->queue))
		return;
	c = rte_pktmbuf_alloc(to->port.pool);
	if (!c)
		return;
	d = (uint8_t *)rte_pktmbuf_append(c, (uint16_t)m->pkt_len);
	for (uint32_t off = 0; m; off += m->data_len, m = m->next)
		memcpy(d + off, rte_pktmbuf_mtod(m, void *), m->data_len);
	if (corrupt)
		d[pair_rand(to->pair) % c->pkt_len] ^= (uint8_t)(1u << pair_rand(to->pair) % 8);
	if (to->peer->wire.edit) {
		c->pkt_len = to->peer->wire.edit(to->peer, d, c->pkt_len);
		c->data_len = (uint16_t)c->pkt_len;
		if (c->pkt_len == 0) {
			rte_pktmbuf_free(c);
			return;
		}
	}
	to->queue[to->queued].m = c;
	to->queue[to->queued++].due = due;
}

static uint16_t wire_tx(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n)
{
	struct pair_end *e = (struct pair_end *)port;
	struct pair_wire *w = &e->wire;
	uint64_t due;

	if (w->full)
		return 0;
	for (uint16_t i = 0; i < n; i++) {
		due = e->pair->now + w->delay_ns;
		if (dice(e->pair, w->reorder))
			due += 1000 + pair_rand(e->pair) % 50000;
		if (!w->blackhole && !dice(e->pair, w->loss) &&
		    (w->max_frame == 0 || pkts[i]->pkt_len <= w->max_frame)) {
			enqueue(e->peer, pkts[i], due, dice(e->pair, w->corrupt));
			if (dice(e->pair, w->dup))
				enqueue(e->peer, pkts[i], due + 500, false);
		}
		if (w->hold_sent && e->held_count < RTE_DIM(e->held))
			e->held[e->held_count++] = pkts[i];
		else
			rte_pktmbuf_free(pkts[i]);
	}
	return n;
}

/* ---- frames in place ---- */

#define IN_PLACE_MIN 300u
#define IN_PLACE_HEAD 128u
#define SHARED_MAX 64u

struct pair_shared {
	struct rte_mbuf rest;
	uint8_t *bytes; /* of exactly the frame's length */
};

/* Bytes of a DATA frame up to the fill of its first message, as far as they exist. */
static uint32_t checked_bytes(const uint8_t *frame, uint32_t len)
{
	uint32_t at = 14;

	if (frame[12] == 0x81)
		at += 4;
	if (frame[at - 2] == 8 && frame[at - 1] == 0)
		at += 28;
	at += sizeof(struct weft_frame_hdr) + sizeof(struct weft_frame_msg) + sizeof(struct msg);
	return RTE_MIN(at, len);
}

/*
 * The peer overwrites all headers once they have been copied, and the private copy has other bytes
 * behind its end.
 */
static void leave_in_place(struct pair_end *e, struct rte_mbuf *m)
{
	struct pair_shared *s = &e->shared[e->num_shared];
	uint8_t *at = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t len = m->pkt_len;

	if (len < IN_PLACE_MIN || e->num_shared == SHARED_MAX)
		return;
	e->num_shared++;
	s->bytes = malloc(len);
	assert_non_null(s->bytes);
	memcpy(s->bytes, at, len);
	memset(s->bytes, 0xff, checked_bytes(at, len));
	memset(at + IN_PLACE_HEAD, 0xee, len - IN_PLACE_HEAD);
	s->rest = (struct rte_mbuf){.buf_addr = s->bytes,
				    .buf_len = UINT16_MAX,
				    .data_off = IN_PLACE_HEAD,
				    .data_len = (uint16_t)(len - IN_PLACE_HEAD),
				    .nb_segs = 1,
				    .refcnt = 1};
	m->data_len = IN_PLACE_HEAD;
	m->nb_segs = 2;
	m->next = &s->rest;
}

static void shared_end(struct pair_end *e)
{
	while (e->num_shared > 0)
		free(e->shared[--e->num_shared].bytes);
}

static uint16_t wire_rx(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n)
{
	struct pair_end *e = (struct pair_end *)port;
	unsigned int i, k = 0;
	uint16_t got = 0;

	e->polls++;
	for (i = 0; i < e->queued; i++) {
		if (got < n && e->queue[i].due <= e->pair->now)
			pkts[got++] = e->queue[i].m;
		else
			e->queue[k++] = e->queue[i];
	}
	for (i = 0; i < got && port->flags & WEFT_FRAME_PORT_RX_CSUM; i++)
		pkts[i]->ol_flags |= e->rx_verdict;
	e->queued = k;
	shared_end(e);
	for (i = 0; i < got && port->rx_in_place; i++)
		leave_in_place(e, pkts[i]);
	return got;
}

static void wire_kick(struct weft_frame_port *port)
{
	struct pair_end *e = (struct pair_end *)port;

	e->kicks++;
	if (e->wire.lazy)
		return;
	while (e->held_count > 0)
		rte_pktmbuf_free(e->held[--e->held_count]);
}

static bool wire_link(struct weft_frame_port *port)
{
	(void)port;
	return true;
}

static void wire_close(struct weft_frame_port *port)
{
	struct pair_end *e = (struct pair_end *)port;

	e->wire.lazy = false;
	wire_kick(port);
	shared_end(e);
	free(e->shared);
	e->shared = NULL;
	while (e->queued > 0)
		rte_pktmbuf_free(e->queue[--e->queued].m);
}

static bool wire_done(struct weft_frame_port *port)
{
	struct pair_end *e = (struct pair_end *)port;

	e->wire.reg_calls++;
	return !e->wire.busy;
}

static void wire_farewell(struct weft_frame_port *port, uint16_t *slot, const uint8_t *frame,
			  uint32_t len)
{
	struct pair_end *e = (struct pair_end *)port;

	assert_true(len <= sizeof(e->farewell));
	e->farewell_len = len;
	if (len > 0)
		memcpy(e->farewell, frame, len);
	*slot = len > 0;
}

void pair_inject(struct pair_end *from, const uint8_t *frame, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(from->port.pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	from->port.ops->tx_burst(&from->port, &m, 1);
}

static const struct weft_frame_port_ops wire_ops = {
	.farewell = wire_farewell,
	.rx_burst = wire_rx,
	.tx_burst = wire_tx,
	.tx_kick = wire_kick,
	.tx_done = wire_done,
	.link_up = wire_link,
	.close = wire_close,
};

/* ---- callbacks ---- */

/* A buffer that is back in the pool has another owner now. */
static void use_free_buffers(struct rte_mempool *mp)
{
	static struct rte_mbuf *m[8192];
	unsigned int n = 0;

	for (; n < RTE_DIM(m) && (m[n] = rte_pktmbuf_alloc(mp)) != NULL; n++)
		memset(rte_pktmbuf_mtod(m[n], void *), 0xff, 512);
	while (n > 0)
		rte_pktmbuf_free(m[--n]);
}

static void check_message(struct pair_end *e, uint8_t am_id, const struct msg *m,
			  const uint8_t *fill, size_t len)
{
	e->messages++;
	e->bytes += len;
	if (am_id != 5 || len != sizeof(*m) + m->len)
		e->bad++;
	else
		e->bad += pattern_check(m->n, 0, fill, m->len) != m->len;
	if (e->seen && m->n < e->seen_len)
		e->seen[m->n]++;
}

static bool on_recv_in_place(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *head,
			     size_t head_len, const void *shared, size_t length)
{
	struct raw_iface *iface = (struct raw_iface *)lane_ep->iface;
	struct pair_end *e = iface->cb_arg;
	struct msg m;

	if (am_id != 5 || head_len < sizeof(m) || length < sizeof(m) || e->on_message ||
	    (e->leave != 0 && ++e->offered % e->leave == 0))
		return false;
	memcpy(&m, head, sizeof(m));
	check_message(e, am_id, &m, (const uint8_t *)shared + sizeof(m), length);
	if (e->on_in_place)
		e->on_in_place(e, lane_ep);
	return true;
}

static int on_recv(void *arg, struct weft_lane_ep *lane_ep, uint8_t am_id, const void *data,
		   size_t len, void *desc)
{
	struct pair_end *e = arg;
	struct msg m;
	const uint8_t *fill = (const uint8_t *)data + sizeof(m);

	if (e->on_message) {
		e->messages++;
		e->bytes += len;
		e->on_message(e, lane_ep, data, len);
		return 0;
	}
	memcpy(&m, data, RTE_MIN(len, sizeof(m)));
	check_message(e, am_id, &m, fill, len);
	if (e->keep && desc && e->release_at_once) {
		e->iface->ops->release(e->iface, desc);
		use_free_buffers(e->port.pool);
		return WEFT_LANE_KEEP;
	}
	if (e->keep && desc && e->kept_count < RTE_DIM(e->kept)) {
		e->kept[e->kept_count++] = desc;
		return WEFT_LANE_KEEP;
	}
	return 0;
}

static void on_event(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev, int status,
		     const char *text)
{
	struct pair_end *e = arg;

	if (ev == WEFT_LANE_EV_SUSPECT) {
		e->suspects++;
		if (e->on_suspect)
			e->on_suspect(e, lane_ep, status);
		return;
	}
	e->ups += ev == WEFT_LANE_EV_UP;
	e->downs += ev == WEFT_LANE_EV_DOWN;
	e->gones += ev == WEFT_LANE_EV_GONE;
	e->status = status;
	snprintf(e->text, sizeof(e->text), "%s", text);
	if (ev == WEFT_LANE_EV_UP && lane_ep->passive)
		e->accepted = lane_ep;
}

static uint64_t pf_now(void *arg)
{
	return ((struct pair *)arg)->now;
}

static int pf_random(void *arg, void *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)pair_rand(arg);
	return 0;
}

static struct weft_platform platform = {.now = pf_now, .random = pf_random};

/*
 * Pools go from one pair to the next: making one and giving it back takes longer than most cases,
 * for DPDK clears what is freed. What lies in the buffers is of an earlier pair.
 */
static struct rte_mempool *idle_pools[4];

static struct rte_mempool *pool(const char *what, unsigned int n, uint16_t room)
{
	static unsigned int number;
	struct rte_mempool *mp;
	char name[32];

	for (unsigned int i = 0; i < RTE_DIM(idle_pools); i++) {
		mp = idle_pools[i];
		if (mp && mp->size == n && rte_pktmbuf_data_room_size(mp) == room) {
			idle_pools[i] = NULL;
			return mp;
		}
	}
	snprintf(name, sizeof(name), "%s%u", what, number++);
	mp = rte_pktmbuf_pool_create(name, n, 0, 0, room, SOCKET_ID_ANY);
	assert_non_null(mp);
	return mp;
}

static void pool_idle(struct rte_mempool *mp)
{
	assert_int_equal(rte_mempool_in_use_count(mp), 0);
	for (unsigned int i = 0; i < RTE_DIM(idle_pools); i++) {
		if (!idle_pools[i]) {
			idle_pools[i] = mp;
			return;
		}
	}
	rte_mempool_free(mp);
}

static void open_end(struct pair *p, int i, const struct pair_params *pp,
		     const struct weft_lane_conf *conf)
{
	struct pair_end *e = &p->end[i];
	struct weft_raw_conf rc = {
		.raw_ethertype = pp->raw_ethertype,
		.vlan = i == 1 && pp->untagged_1 ? 0 : pp->vlan,
		.ip = i == 1 && pp->off_subnet ? 0x0a000102 : 0x0a000001 + (uint32_t)i,
		.prefix = 24,
		.gateway = pp->off_subnet ? (i == 0 ? 0x0a000002 : 0x0a000101) : 0,
		.paths = pp->paths,
		.set_first_seq = true,
		.first_seq = pp->first_seq,
	};
	static uint64_t opened;
	struct weft_lane_open open = {
		.resource = "x",
		.options = "",
		.worker_id = (uint64_t)i + 1,
		.iface_id = 0x1face000 + ++opened,
		.platform = &platform,
		.conf = conf,
		.recv = on_recv,
		.recv_in_place = on_recv_in_place,
		.event = on_event,
		.arg = e,
	};
	char why[256];

	e->pair = p;
	e->peer = &p->end[1 - i];
	e->wire.delay_ns = 2000;
	e->port = (struct weft_frame_port){
		.ops = &wire_ops,
		.flags = (pp->network ? 0 : WEFT_FRAME_PORT_MEMORY) | WEFT_FRAME_PORT_MULTISEG |
			 (pp->no_extbuf ? 0 : WEFT_FRAME_PORT_EXTBUF) |
			 (pp->reg ? WEFT_FRAME_PORT_REG : 0) |
			 (pp->copies ? WEFT_FRAME_PORT_COPIES : 0) |
			 (pp->in_place ? WEFT_FRAME_PORT_IN_PLACE : 0) |
			 (pp->nic_csum ? WEFT_FRAME_PORT_RX_CSUM : 0),
		.tx_segs = pp->tx_segs,
		.tx_batch = pp->tx_batch,
		.tx_page_bits = pp->tx_page_bits,
		.mac = {2, 0, 0, 0, 0, (uint8_t)(i + 1)},
		.frame_size = pp->frame_size[i] != 0 ? pp->frame_size[i] : 9018,
		.tx_depth = 256,
		.rx_depth = (uint16_t)(pp->rx_depth != 0 ? pp->rx_depth : 512),
		.bandwidth = 1e9,
		.latency = 1e-6,
		.pool = pool("f", pp->bufs != 0 ? pp->bufs : 4095, RTE_PKTMBUF_HEADROOM + 9216),
		.hdr_pool = pool("h", 4095, 512),
	};
	snprintf(e->port.name, sizeof(e->port.name), "%d", i);
	if (pp->in_place) {
		e->shared =
			aligned_alloc(alignof(struct pair_shared), SHARED_MAX * sizeof(*e->shared));
		assert_non_null(e->shared);
	}
	assert_int_equal(weft_raw_iface_open(&e->port, &rc, &open, &e->iface, why, sizeof(why)), 0);
}

const struct pair_params pair_fixed = {.cc = WEFT_CC_FIXED};

void pair_open(struct pair *p, const struct pair_params *params, uint64_t seed)
{
	static const struct pair_params none;
	const struct pair_params *pp = params ? params : &none;
	struct weft_lane_conf conf = {
		.peer_timeout_ns = pp->peer_timeout_ns != 0 ? pp->peer_timeout_ns : 30000000000ull,
		.connect_timeout_ns = 3000000000ull,
		.keepalive_ns = 1000000000ull,
		.csum = pp->csum,
		.window = pp->window,
		.cc = pp->cc,
		.zcopy = true,
	};

	test_eal_init("512");
	memset(p, 0, sizeof(*p));
	p->rng = seed;
	p->now = 5000000000ull;
	platform.arg = p;
	for (int i = 0; i < 2; i++)
		open_end(p, i, pp, &conf);
}

/* Everything must have come home: a leak is a failure. */
void pair_close(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		struct pair_end *e = &p->end[i];

		while (e->kept_count > 0)
			e->iface->ops->release(e->iface, e->kept[--e->kept_count]);
		e->iface->ops->close(e->iface);
	}
	for (int i = 0; i < 2; i++) {
		struct pair_end *e = &p->end[i];

		wire_close(&e->port);
		pool_idle(e->port.pool);
		pool_idle(e->port.hdr_pool);
	}
}

void pair_step(struct pair *p, uint64_t ns)
{
	for (int i = 0; i < 2; i++) {
		p->end[i].iface->ops->progress(p->end[i].iface, p->now);
		p->end[i].iface->ops->tx_flush(p->end[i].iface);
	}
	p->now += ns;
}

bool pair_run(struct pair *p, uint64_t max_ns, bool (*cond)(struct pair *p))
{
	uint64_t end = p->now + max_ns;

	while (p->now < end) {
		if (cond && cond(p))
			return true;
		pair_step(p, 1000);
	}
	return cond == NULL || cond(p);
}

bool pair_both_up(struct pair *p)
{
	return p->end[0].lane_ep != NULL && p->end[0].lane_ep->up && p->end[1].accepted &&
	       p->end[1].accepted->up;
}

void pair_begin_connect(struct pair *p)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	struct pair_end *a = &p->end[0], *b = &p->end[1];

	b->iface->ops->get_address(b->iface, addr);
	assert_int_equal(a->iface->ops->ep_connect(a->iface, addr, b->iface->attr.dev_addr_len, a,
						   &a->lane_ep),
			 0);
}

void pair_connect(struct pair *p)
{
	pair_begin_connect(p);
	if (!pair_run(p, 3000000000ull, pair_both_up))
		fail_msg("not up: %s", p->end[0].text);
}

uint64_t pair_counter(struct pair_end *e, enum raw_counter c)
{
	return ((struct raw_iface *)e->iface)->counter[c];
}

int pair_send(struct pair_end *e, struct weft_lane_ep *lane_ep, uint32_t n, uint32_t len)
{
	uint8_t fill[16384];
	struct msg m = {.n = n, .len = len};

	pattern_fill(n, 0, fill, len);
	return e->iface->ops->am_short(lane_ep, 5, &m, sizeof(m), fill, len);
}
