/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames. Each port is served in its turn, a burst at a time, and another one is the first in each
 * round. What goes to a port without room is dropped there; what goes to an uplink without room
 * waits in its sender's own ring. So nobody waits for anybody else's process.
 */

#include "switch/switch.h"

#include <string.h>

#include <rte_common.h>
#include <rte_ether.h>

/* An uplink that takes nothing for so long is dead, and what is for it is dropped. */
#define STUCK_NS 100000000ull

/* A frame, its head copied: the rest is the sender's memory, which it may change. */
struct frame {
	const uint8_t *head, *at;
	uint32_t head_len, len;
};

static uint32_t longest(const struct sw *s)
{
	return (uint32_t)s->mtu + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN;
}

static void copy(uint8_t *to, const struct frame *f)
{
	memcpy(to, f->head, f->head_len);
	memcpy(to + f->head_len, f->at + f->head_len, f->len - f->head_len);
}

/* ---- to a port ------------------------------------------------------------------------------ */

/* @return why not */
static enum sw_drop put(struct sw_port *p, const struct frame *f)
{
	const struct sw_ring *r = &p->conn.tx;
	struct sw_buf room;

	if (!p->conn.up)
		return SW_DROP_UNKNOWN;
	if (p->filled >= p->room) {
		p->room = sw_ring_ready(r);
		if (p->filled >= p->room)
			return SW_DROP_FULL;
	}
	room = sw_ring_at(r, (unsigned int)p->filled);
	if (!room.at)
		return SW_DROP_BAD;
	if (f->len > room.len)
		return SW_DROP_LONG;
	copy(room.at, f);
	sw_ring_fill(r, (unsigned int)p->filled, f->len);
	p->filled++;
	p->counters.tx_frames++;
	p->counters.tx_bytes += f->len;
	return SW_PASS;
}

static void to_ports(struct sw *s, uint64_t ports, const struct frame *f)
{
	enum sw_drop why;
	unsigned int i;

	for (; ports; ports &= ports - 1) {
		i = (unsigned int)__builtin_ctzll(ports);
		why = put(&s->port[i], f);
		if (why != SW_PASS)
			s->port[i].counters.drop[why]++;
	}
}

static void flush_ports(struct sw *s)
{
	uint64_t up = s->plan.up;
	struct sw_port *p;

	for (; up; up &= up - 1) {
		p = &s->port[__builtin_ctzll(up)];
		if (p->filled > 0) {
			sw_ring_done(&p->conn.tx, (unsigned int)p->filled);
			p->wake = sw_ring_sleeps(&p->conn.tx);
		}
		p->filled = p->room = 0;
	}
}

/* ---- to the uplink -------------------------------------------------------------------------- */

static void flush_uplink(struct sw_uplink *u, uint64_t now)
{
	uint16_t sent, i;

	if (u->num_out == 0)
		return;
	sent = rte_eth_tx_burst(u->id, 0, u->out, u->num_out);
	if (sent > 0)
		u->stuck = 0;
	else if (u->stuck == 0)
		u->stuck = now;
	u->counters.tx_frames += sent;
	for (i = sent; i < u->num_out; i++)
		u->out[i - sent] = u->out[i];
	u->num_out = (uint16_t)(u->num_out - sent);
}

static bool uplink_is_full(struct sw_uplink *u, uint64_t now)
{
	if (u->num_out >= SW_BURST)
		flush_uplink(u, now);
	return u->num_out >= SW_BURST;
}

static enum sw_drop to_uplink(struct sw_uplink *u, const struct frame *f)
{
	struct rte_mbuf *m;

	m = rte_pktmbuf_alloc(u->pool);
	if (!m)
		return SW_DROP_FULL;
	copy((uint8_t *)rte_pktmbuf_append(m, (uint16_t)f->len), f);
	u->counters.tx_bytes += f->len;
	u->out[u->num_out++] = m;
	return SW_PASS;
}

/* ---- from a port ---------------------------------------------------------------------------- */

/* @return false: it waits for room at the uplink */
static bool one_frame(struct sw *s, unsigned int from, const struct frame *f, uint64_t now)
{
	struct sw_counters *c = &s->port[from].counters;
	struct sw_route r = sw_from_port(&s->plan, from, f->head, f->head_len);

	if (r.uplink && uplink_is_full(&s->uplink, now)) {
		if (s->uplink.stuck == 0 || now - s->uplink.stuck < STUCK_NS)
			return false;
		s->uplink.counters.drop[SW_DROP_FULL]++;
		r.uplink = false;
	}
	c->rx_frames++;
	c->rx_bytes += f->len;
	if (r.drop != SW_PASS)
		c->drop[r.drop]++;
	to_ports(s, r.ports, f);
	if (r.uplink) {
		r.drop = to_uplink(&s->uplink, f);
		if (r.drop != SW_PASS)
			s->uplink.counters.drop[r.drop]++;
	}
	return true;
}

static unsigned int from_port(struct sw *s, unsigned int from, uint64_t now)
{
	struct sw_port *p = &s->port[from];
	uint8_t head[SW_HEAD];
	struct sw_buf b;
	struct frame f = {.head = head};
	unsigned int i, n;
	int ready = sw_ring_ready(&p->conn.rx);

	if (ready < 0) {
		/* Its index has left the ring: nothing more is to be had from it. */
		p->counters.drop[SW_DROP_BAD]++;
		sw_conn_end(s, from);
		return 0;
	}
	n = RTE_MIN((unsigned int)ready, SW_BURST);
	for (i = 0; i < n; i++) {
		b = sw_ring_at(&p->conn.rx, i);
		if (!b.at) {
			p->counters.drop[SW_DROP_BAD]++;
			continue;
		}
		/* It and the room for it are as long as clients say: up to a whole region. */
		if (b.len > longest(s)) {
			p->counters.drop[SW_DROP_LONG]++;
			continue;
		}
		f.at = b.at;
		f.len = b.len;
		f.head_len = RTE_MIN(b.len, SW_HEAD);
		memcpy(head, b.at, f.head_len);
		if (!one_frame(s, from, &f, now))
			break;
	}
	if (i > 0)
		sw_ring_done(&p->conn.rx, i);
	return i;
}

/* ---- from the uplink ------------------------------------------------------------------------ */

static unsigned int from_uplink(struct sw *s)
{
	struct sw_uplink *u = &s->uplink;
	struct rte_mbuf *pkts[SW_BURST];
	struct sw_route r;
	struct frame f;
	uint16_t n, i;

	n = rte_eth_rx_burst(u->id, 0, pkts, SW_BURST);
	for (i = 0; i < n; i++) {
		u->counters.rx_frames++;
		u->counters.rx_bytes += pkts[i]->pkt_len;
		if (rte_pktmbuf_linearize(pkts[i])) {
			u->counters.drop[SW_DROP_LONG]++;
			continue;
		}
		f.at = f.head = rte_pktmbuf_mtod(pkts[i], const uint8_t *);
		f.len = pkts[i]->data_len;
		f.head_len = RTE_MIN(f.len, SW_HEAD);
		r = sw_from_uplink(&s->plan, f.head, f.head_len);
		if (r.drop != SW_PASS)
			u->counters.drop[r.drop]++;
		to_ports(s, r.ports, &f);
	}
	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

/* ---- a round -------------------------------------------------------------------------------- */

unsigned int sw_round(struct sw *s, uint64_t now)
{
	uint64_t first = s->first % WEFT_SWITCH_PORTS, up = s->plan.up;
	unsigned int frames = 0, at;

	/* Bit 0 is whose turn it is. */
	up = first ? up >> first | up << (WEFT_SWITCH_PORTS - first) : up;
	for (; up; up &= up - 1) {
		at = ((unsigned int)__builtin_ctzll(up) + (unsigned int)first) % WEFT_SWITCH_PORTS;
		frames += from_port(s, at, now);
	}
	s->first++;
	if (s->uplink.id != SW_NO_UPLINK) {
		frames += from_uplink(s);
		flush_uplink(&s->uplink, now);
	}
	flush_ports(s);
	return frames;
}
