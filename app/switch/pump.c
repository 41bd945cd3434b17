/* SPDX-License-Identifier: BSD-3-Clause */

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_common.h>
#include <rte_ether.h>

#include "switch/pump.h"
#include "switch/switch.h"
#include "switch/control.h"

/* ---- hand-over of rings --------------------------------------------------------------------- */

/*
 * The control thread hands rings to the forwarder and takes them back. The queue has one entry: the
 * control thread waits until the forwarder has taken a change, which it does once in each round. So
 * the rings and the memory of a connection belong to exactly one thread at any time.
 */

/* A round takes some us, and the forwarder sleeps for 50 us by default. */
#define LOOK_NS 50000

/* ---- control thread ------------------------------------------------------------------------- */

static void hand_over(struct sw *s, struct sw_farewells *farewells)
{
	struct sw_handover *h = &s->handover;

	h->farewells = farewells;
	/* release: the change is written; acquire: the forwarder is done with it */
	atomic_store_explicit(&h->wanted, true, memory_order_release);
	while (atomic_load_explicit(&h->wanted, memory_order_acquire) &&
	       !atomic_load_explicit(&h->ended, memory_order_acquire))
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	free(h->farewells);
	h->farewells = NULL;
}

void sw_lane_attach(struct sw *s, unsigned int port, const struct sw_conn *c)
{
	struct sw_handover *h = &s->handover;

	/* the bit is of the previous connection; relaxed: no other data goes with it */
	atomic_fetch_and_explicit(&h->broken, ~(1ull << port), memory_order_relaxed);
	h->attach = true;
	h->gone = false;
	h->port = port;
	h->user = c->user;
	h->rx = c->rx;
	h->tx = c->tx;
	hand_over(s, NULL);
}

void sw_lane_detach(struct sw *s, unsigned int port)
{
	s->handover.attach = false;
	s->handover.gone = false;
	s->handover.port = port;
	hand_over(s, NULL);
}

void sw_lane_gone(struct sw *s, unsigned int port, struct sw_farewells *farewells)
{
	s->handover.attach = false;
	s->handover.gone = true;
	s->handover.port = port;
	hand_over(s, farewells);
}

/* ---- forwarder ------------------------------------------------------------------------------ */

static struct sw_share *share_of(struct sw *s, uid_t user)
{
	unsigned int i;

	for (i = 0; i < s->num_shares; i++)
		if (s->share[i].user == user)
			return &s->share[i];
	s->share[s->num_shares] = (struct sw_share){.user = user};
	return &s->share[s->num_shares++];
}

static void drop_lane(struct sw *s, unsigned int port)
{
	struct sw_lane *l = &s->lane[port];
	struct sw_share *share;

	if (!(s->plan.up >> port & 1))
		return;
	s->plan.up &= ~(1ull << port);
	l->filled = l->room = 0;
	share = share_of(s, l->user);
	share->ports &= ~(1ull << port);
	if (share->ports == 0)
		*share = s->share[--s->num_shares];
}

/* @p h gets those of an earlier process, because this thread does not free memory. */
static void swap_farewells(struct sw_lane *l, struct sw_handover *h)
{
	struct sw_farewells *old = l->farewells;

	l->farewells = h->farewells;
	h->farewells = old;
}

static void take_lane(struct sw *s, struct sw_handover *h)
{
	struct sw_lane *l = &s->lane[h->port];

	drop_lane(s, h->port);
	l->rx = h->rx;
	l->tx = h->tx;
	l->user = h->user;
	swap_farewells(l, h);
	share_of(s, h->user)->ports |= 1ull << h->port;
	s->plan.up |= 1ull << h->port;
	s->plan.gone &= ~(1ull << h->port);
	s->probing &= ~(1ull << h->port);
}

static void process_gone(struct sw *s, struct sw_handover *h)
{
	struct sw_lane *l = &s->lane[h->port];

	s->plan.gone |= 1ull << h->port;
	s->probing |= 1ull << h->port;
	l->probes = 0;
	l->probe_at = 0;
	swap_farewells(l, h);
	l->next_farewell = 0;
	l->next_farewell_at = 0;
}

/* @param ports  have invalid indices: the control thread ends their connections */
static void sw_lane_broken(struct sw *s, uint64_t ports)
{
	uint64_t p;

	if (ports == 0)
		return;
	for (p = ports; p; p &= p - 1)
		drop_lane(s, (unsigned int)__builtin_ctzll(p));
	/* relaxed: no other data goes with the bits */
	atomic_fetch_or_explicit(&s->handover.broken, ports, memory_order_relaxed);
	sw_control_notify(s);
}

/* ---- forwarding ----------------------------------------------------------------------------- */

/*
 * Users are served round robin, starting with another one in each round. The ports of a user share
 * its burst, unless there is only one user. A frame for a port without a free buffer is dropped. A
 * frame for an uplink without space stays in the ring of its sender. So no process waits for
 * another one.
 */

/* An uplink that sends nothing for this time is dead, and frames for it are dropped. */
#define STUCK_NS 100000000ull

/* A frame with a copy of its head. The remainder is memory of the sender, which may change it. */
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

static enum sw_drop put(struct sw_lane *p, const struct frame *f)
{
	struct weft_mring *r = &p->tx;
	struct weft_mring_buf room;

	if (p->filled >= p->room) {
		p->room = weft_mring_poll(r);
		if (p->filled >= p->room)
			return SW_DROP_FULL;
	}
	room = weft_mring_room(r, (unsigned int)p->filled);
	if (!room.at)
		return SW_DROP_BAD;
	if (f->len > room.len)
		return SW_DROP_LONG;
	copy(room.at, f);
	weft_mring_fill(r, (unsigned int)p->filled, f->len);
	p->filled++;
	SW_COUNT(p->counters.tx_frames, 1);
	SW_COUNT(p->counters.tx_bytes, f->len);
	return SW_PASS;
}

static void to_ports(struct sw *s, uint64_t ports, const struct frame *f)
{
	enum sw_drop why;
	unsigned int i;

	for (; ports; ports &= ports - 1) {
		i = (unsigned int)__builtin_ctzll(ports);
		why = put(&s->lane[i], f);
		if (why != SW_PASS)
			SW_COUNT(s->lane[i].counters.drop[why], 1);
	}
}

/*
 * The index is written before the flag is read: the client clears the flag before it reads the
 * index again. Clients of net_memif issue no barrier for this processor, so the fence is here.
 */
static bool client_sleeps(const struct weft_mring *r)
{
	atomic_thread_fence(memory_order_seq_cst);
	return r->event >= 0 && weft_mring_sleeps(r);
}

/* @return ports that got frames and whose process may sleep */
static uint64_t flush_ports(struct sw *s)
{
	uint64_t up = s->plan.up, asleep = 0;
	unsigned int i;
	struct sw_lane *p;

	for (; up; up &= up - 1) {
		i = (unsigned int)__builtin_ctzll(up);
		p = &s->lane[i];
		if (p->filled > 0) {
			weft_mring_done(&p->tx, (unsigned int)p->filled);
			if (client_sleeps(&p->tx)) {
				SW_COUNT(p->counters.wakes, 1);
				asleep |= 1ull << i;
			}
		}
		p->filled = p->room = 0;
	}
	return asleep;
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
	SW_COUNT(u->counters.tx_frames, sent);
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
	SW_COUNT(u->counters.tx_bytes, f->len);
	u->out[u->num_out++] = m;
	return SW_PASS;
}

/* ---- for processes that have ended ---------------------------------------------------------- */

/* Time between two farewells, and the number that may leave at once: as the engine's for RESET. */
#define FAREWELL_NS 100000ull
#define FAREWELL_BURST 32u
/* Probes for each process that has ended: some get lost in full rings and in networks. */
#define PROBES 3u
#define PROBE_NS 100000000ull /* from the first probe to the second; each gap doubles */

/* Each port has its own rate of farewells, which frames of other ports do not use up. */
static bool may_answer(struct sw *s, unsigned int to, uint64_t now)
{
	uint64_t *at = to == SW_NO_UPLINK ? &s->uplink.farewell_at : &s->lane[to].farewell_at;

	if (now < *at)
		return false;
	*at = FAREWELL_NS + RTE_MAX(*at, now - RTE_MIN(now, FAREWELL_BURST * FAREWELL_NS));
	return true;
}

/* @param to  the port that the frame has come from; SW_NO_UPLINK: it came from the uplink */
static void answer(struct sw *s, unsigned int to, const struct frame *f, uint64_t now)
{
	uint8_t bytes[SW_FAREWELL_MAX];
	struct frame farewell = {.head = bytes, .at = bytes};
	uint32_t len = sw_farewell(f->head, f->head_len, bytes);

	if (len == 0 || !may_answer(s, to, now))
		return;
	farewell.head_len = farewell.len = len;
	if (to != SW_NO_UPLINK) {
		SW_COUNT(s->lane[to].counters.farewells, 1);
		to_ports(s, 1ull << to, &farewell);
	} else if (!uplink_is_full(&s->uplink, now)) {
		SW_COUNT(s->uplink.counters.farewells, 1);
		to_uplink(&s->uplink, &farewell);
	}
}

/* @return false: the uplink is full */
static bool send_farewell(struct sw *s, unsigned int port, const struct sw_farewell *w,
			  uint64_t now)
{
	const struct frame f = {
		.head = w->frame, .at = w->frame, .head_len = w->len, .len = w->len};
	struct sw_route r = sw_from_port(&s->plan, port, w->frame, w->len);

	/* A farewell is for one peer: copies for all ports would take the time of other users. */
	if (r.drop == SW_PASS && __builtin_popcountll(r.ports) + r.uplink != 1)
		r.drop = SW_DROP_KIND;
	if (r.drop == SW_PASS && r.uplink && uplink_is_full(&s->uplink, now))
		return false;
	if (r.drop != SW_PASS) {
		SW_COUNT(s->lane[port].counters.drop[r.drop], 1);
	} else if (r.uplink) {
		SW_COUNT(s->uplink.counters.farewells, 1);
		to_uplink(&s->uplink, &f);
	} else {
		SW_COUNT(s->lane[__builtin_ctzll(r.ports)].counters.farewells, 1);
		to_ports(s, r.ports, &f);
	}
	return true;
}

/*
 * A burst of the farewells that a process with a job key has left. Their source is checked like
 * that of its frames: the process could have sent them itself. @return all are sent
 */
static bool send_farewells(struct sw *s, unsigned int port, uint64_t now)
{
	struct sw_lane *l = &s->lane[port];
	unsigned int i;

	if (!l->farewells || l->next_farewell == l->farewells->num)
		return true;
	if (now < l->next_farewell_at)
		return false;
	l->next_farewell_at = now + FAREWELL_BURST * FAREWELL_NS;
	for (i = 0; i < FAREWELL_BURST && l->next_farewell < l->farewells->num; i++) {
		if (!send_farewell(s, port, &l->farewells->at[l->next_farewell], now))
			return false;
		l->next_farewell++;
	}
	return l->next_farewell == l->farewells->num;
}

/* Peers without traffic query their connections when they receive a probe. */
static void probe(struct sw *s, unsigned int port, uint64_t now)
{
	struct sw_lane *l = &s->lane[port];
	uint8_t bytes[SW_FAREWELL_MAX];
	struct frame f = {.head = bytes, .at = bytes};

	if (!send_farewells(s, port, now) || now < l->probe_at)
		return;
	if (l->probes == PROBES) {
		s->probing &= ~(1ull << port);
		return;
	}
	f.head_len = f.len = sw_probe(&s->plan, port, bytes);
	to_ports(s, s->plan.up, &f);
	if (s->plan.uplink && !uplink_is_full(&s->uplink, now))
		to_uplink(&s->uplink, &f);
	l->probe_at = now + (PROBE_NS << l->probes);
	l->probes++;
	l->next_farewell = 0;
}

static void probe_all(struct sw *s, uint64_t now)
{
	uint64_t ports;

	for (ports = s->probing; ports; ports &= ports - 1)
		probe(s, (unsigned int)__builtin_ctzll(ports), now);
}

/* ---- from a port ---------------------------------------------------------------------------- */

/*
 * A frame for many ports is copied for each of them, so it counts as that number of frames in the
 * turn of its sender. @return that number; 0: the frame stays in its ring while the uplink is full
 */
static unsigned int one_frame(struct sw *s, unsigned int from, const struct frame *f, uint64_t now)
{
	struct sw_counters *c = &s->lane[from].counters;
	struct sw_route r = sw_from_port(&s->plan, from, f->head, f->head_len);

	if (r.uplink && uplink_is_full(&s->uplink, now)) {
		if (s->uplink.stuck == 0 || now - s->uplink.stuck < STUCK_NS)
			return 0;
		SW_COUNT(s->uplink.counters.drop[SW_DROP_FULL], 1);
		r.uplink = false;
	}
	SW_COUNT(c->rx_frames, 1);
	SW_COUNT(c->rx_bytes, f->len);
	if (r.drop != SW_PASS)
		SW_COUNT(c->drop[r.drop], 1);
	if (r.gone)
		answer(s, from, f, now);
	to_ports(s, r.ports, f);
	if (r.uplink) {
		r.drop = to_uplink(&s->uplink, f);
		if (r.drop != SW_PASS)
			SW_COUNT(s->uplink.counters.drop[r.drop], 1);
	}
	return r.ports ? (unsigned int)__builtin_popcountll(r.ports) : 1;
}

/* Clients choose the lengths of frames and buffers, up to a whole region. */
static enum sw_drop take_head(const struct sw *s, const struct weft_mring_buf *b,
			      uint8_t head[SW_HEAD], struct frame *f)
{
	if (!b->at || b->more)
		return SW_DROP_BAD;
	if (b->len > longest(s))
		return SW_DROP_LONG;
	*f = (struct frame){
		.head = head, .at = b->at, .head_len = RTE_MIN(b->len, SW_HEAD), .len = b->len};
	memcpy(head, b->at, f->head_len);
	return SW_PASS;
}

/* Takes no further frame after @p most. @return number of frames; both count each copy */
static unsigned int from_port(struct sw *s, unsigned int from, unsigned int most, uint64_t now)
{
	struct sw_lane *p = &s->lane[from];
	unsigned int used = 0, cost, i;
	struct weft_mring_buf b;
	uint8_t head[SW_HEAD];
	struct frame f;
	enum sw_drop why;
	int ready = weft_mring_poll(&p->rx);

	if (ready < 0) {
		SW_COUNT(p->counters.drop[SW_DROP_BAD], 1);
		s->broken |= 1ull << from;
		return 0;
	}
	most = RTE_MIN(most, SW_BURST);
	for (i = 0; i < (unsigned int)ready && used < most; i++) {
		b = weft_mring_frame(&p->rx, i);
		why = take_head(s, &b, head, &f);
		if (why != SW_PASS)
			SW_COUNT(p->counters.drop[why], 1);
		cost = why == SW_PASS ? one_frame(s, from, &f, now) : 1;
		if (cost == 0)
			break;
		used += cost;
	}
	if (i > 0)
		weft_mring_done(&p->rx, i);
	return used;
}

/* ---- from the uplink ------------------------------------------------------------------------ */

/* A tag that the NIC or kernel has stripped is put back, so that it is checked. */
static bool restore_tag(struct rte_mbuf **m)
{
	if (!((*m)->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED))
		return true;
	(*m)->ol_flags &= ~RTE_MBUF_F_RX_VLAN_STRIPPED;
	return rte_vlan_insert(m) == 0;
}

static unsigned int from_uplink(struct sw *s, uint64_t now)
{
	struct sw_uplink *u = &s->uplink;
	struct rte_mbuf *pkts[SW_BURST];
	struct sw_route r;
	struct frame f;
	uint16_t n, i;

	n = rte_eth_rx_burst(u->id, 0, pkts, SW_BURST);
	for (i = 0; i < n; i++) {
		SW_COUNT(u->counters.rx_frames, 1);
		SW_COUNT(u->counters.rx_bytes, pkts[i]->pkt_len);
		if (rte_pktmbuf_linearize(pkts[i]) || !restore_tag(&pkts[i])) {
			SW_COUNT(u->counters.drop[SW_DROP_LONG], 1);
			continue;
		}
		f.at = f.head = rte_pktmbuf_mtod(pkts[i], const uint8_t *);
		f.len = pkts[i]->data_len;
		f.head_len = RTE_MIN(f.len, SW_HEAD);
		r = sw_from_uplink(&s->plan, f.head, f.head_len);
		if (r.drop != SW_PASS)
			SW_COUNT(u->counters.drop[r.drop], 1);
		if (r.gone)
			answer(s, SW_NO_UPLINK, &f, now);
		to_ports(s, r.ports, &f);
	}
	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

/* ---- changes -------------------------------------------------------------------------------- */

/*
 * A client ends its connection after it has written its last frames, BYE among them. The end may
 * arrive before the forwarder has seen these frames, so it forwards them here. The forwarder does
 * not wait for a full uplink. A frame for it is lost, and so are all frames behind that one.
 */
static void last_frames(struct sw *s, unsigned int port, uint64_t now)
{
	struct sw_lane *l = &s->lane[port];
	unsigned int used = 1;
	int left;

	if (!(s->plan.up >> port & 1))
		return;
	for (left = weft_mring_poll(&l->rx); left > 0 && used > 0; left -= (int)used)
		used = from_port(s, port, (unsigned int)left, now);
	s->broken &= ~(1ull << port); /* the connection ends anyway */
	left = weft_mring_poll(&l->rx);
	if (left > 0)
		SW_COUNT(l->counters.drop[SW_DROP_FULL], (unsigned int)left);
}

void sw_lane_change(struct sw *s, uint64_t now)
{
	struct sw_handover *h = &s->handover;

	/* acquire and release: see hand_over() */
	if (!atomic_load_explicit(&h->wanted, memory_order_acquire))
		return;
	if (h->attach) {
		take_lane(s, h);
	} else {
		last_frames(s, h->port, now);
		drop_lane(s, h->port);
	}
	if (h->gone)
		process_gone(s, h);
	atomic_store_explicit(&h->wanted, false, memory_order_release);
}

/* ---- a round -------------------------------------------------------------------------------- */

/*
 * A user sends one burst, from its next port, and from the ports after that if it has fewer frames.
 * When there is only one user, all of its ports send a burst.
 */
static unsigned int from_user(struct sw *s, struct sw_share *u, uint64_t now)
{
	unsigned int most = s->num_shares > 1 ? SW_BURST : UINT_MAX, first = u->first, frames = 0;
	uint64_t ports = u->ports;
	unsigned int at;

	/* Rotate: bit 0 is the next port to be served. */
	ports = first ? ports >> first | ports << (WEFT_SWITCH_PORTS - first) : ports;
	for (; ports && frames < most; ports &= ports - 1) {
		at = ((unsigned int)__builtin_ctzll(ports) + first) % WEFT_SWITCH_PORTS;
		frames += from_port(s, at, most - frames, now);
		u->first = (at + 1) % WEFT_SWITCH_PORTS;
	}
	return frames;
}

/* The array of shares does not change during a round: broken ports leave it at the end. */
static unsigned int from_users(struct sw *s, uint64_t now)
{
	unsigned int i, frames = 0;

	for (i = 0; i < s->num_shares; i++)
		frames += from_user(s, &s->share[(s->first + i) % s->num_shares], now);
	s->first++;
	sw_lane_broken(s, s->broken);
	s->broken = 0;
	return frames;
}

unsigned int sw_round(struct sw *s, uint64_t now)
{
	unsigned int frames;

	sw_lane_change(s, now);
	frames = from_users(s, now);
	probe_all(s, now);
	if (s->uplink.id != SW_NO_UPLINK) {
		frames += from_uplink(s, now);
		flush_uplink(&s->uplink, now);
	}
	sw_wake(s, flush_ports(s));
	return frames;
}
