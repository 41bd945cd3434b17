/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole library in virtual time: lanes that die while their endpoint goes on, and come back.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/worker.h"
#include "lane.h"
#include "mock/rounds.h"
#include "scene.h"
#include "wireup/codec.h"
#include "wireup/failover.h"

/* No node has lost or found a lane but those that should. */
static void lost_and_back(struct scene *s, uint64_t lost, uint64_t back)
{
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(sim_node_counter(s->node[i], "ep.lanes_lost"), lost);
		assert_int_equal(sim_node_counter(s->node[i], "ep.lanes_back"), back);
	}
}

/* Lane @p lane carries nothing in either direction, without an event. */
static void cut(struct scene *s, unsigned int lane, bool dead)
{
	sim_port_up(s->port[0][lane])->blackhole = dead;
	sim_port_up(s->port[1][lane])->blackhole = dead;
}

/* ---- one lane dies -------------------------------------------------------------------------- */

/* All is delivered, and soon: what two lanes need, and the lane that is left alone. */
static void transfer(struct sim_case *c, const struct scene_conf *conf, size_t size, uint64_t at)
{
	struct scene *s = scene_open(c, conf);
	struct scene_ep *e = scene_up(s, 0, 1), *f = scene_up(s, 1, 0);
	struct op *r[8], *w[8];
	uint64_t alone = size * 8 * 10 / 9 + 200 * SIM_US, from, lost;

	scene_run(s, 20 * SIM_MS);
	assert_int_equal(scene_lanes_up(e), conf->lanes[0]);
	from = sim_now(s->sim);
	for (unsigned int i = 0; i < 8; i++) {
		r[i] = op_recv(s, i % 2, size, i);
		w[i] = op_send(i % 2 ? e : f, i, size, i);
	}
	scene_run(s, at);
	cut(s, 0, true);
	for (unsigned int i = 0; i < 8; i++) {
		op_expect(r[i], 2 * SIM_S, 0);
		op_holds(r[i], i, size);
		op_expect(w[i], 2 * SIM_S, 0);
	}
	/* Four of them each way at 10 Gb/s. */
	if (sim_now(s->sim) - from > at + 4 * alone / 10 + 100 * SIM_MS)
		fail_msg("%zu bytes, cut after %.3f ms: %.1f ms", size, (double)at / 1e6,
			 (double)(sim_now(s->sim) - from) / 1e6);
	scene_run(s, 300 * SIM_MS);
	/* One that had nothing to do is not missed. */
	lost = sim_node_counter(s->node[0], "ep.lanes_lost");
	assert_in_range(lost, size > 1000000 && at < SIM_MS, 2);
	lost_and_back(s, lost, 0);
	scene_talk(s, e, 1, 100);
	op_expect(op_flush(e), SIM_S, 0);
	op_expect(op_close(e, 0), SIM_S, 0);
}

/*
 * @behaviour U73: lane failover
 * @behaviour F2: lane killed in the middle of a message
 * @behaviour R30: Each message arrives exactly once, whenever one of two or more lanes dies
 */
static void a_lane_that_dies_loses_no_message(struct sim_case *c)
{
	static const size_t sizes[] = {100, 1000, 8000, 100000, 2000000};
	const struct scene_conf two = {.lanes = {2, 2}}, three = {.lanes = {3, 3}};

	for (unsigned int i = 0; i < 5; i++)
		for (uint64_t at = 5 * SIM_US; at < 4 * SIM_MS; at = at * 3 + 1000) {
			transfer(c, &two, sizes[i], at);
			transfer(c, &three, sizes[i], at);
		}
}

/* What the receiver has got over the other lane, in each 10 ms, from before the death on. */
/* @behaviour U73, R31 */
static void the_other_lane_goes_on_as_fast(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2},
					.up = {.rate = SIM_GBIT, .delay_ns = 5000}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	const struct sim_stats *other = sim_port_stats(s->port[1][1]);
	struct op *r = op_recv(s, 1, 60000000, 1), *w = op_send(e, 1, 60000000, 1);
	uint64_t bytes, from = sim_now(s->sim);

	scene_run(s, 50 * SIM_MS);
	cut(s, 0, true);
	for (unsigned int ms = 0; ms < 250; ms += 10) {
		bytes = other->rx_bytes;
		scene_run(s, 10 * SIM_MS);
		/* 1.25 MB is the link. */
		if (other->rx_bytes - bytes < 9 * 125000)
			fail_msg("%u ms after the death: %llu bytes in 10 ms", ms,
				 (unsigned long long)(other->rx_bytes - bytes));
	}
	op_expect(r, SIM_S, 0);
	op_expect(w, SIM_S, 0);
	op_holds(r, 1, 60000000);
	/* 50 ms of two lanes, and the rest over one. */
	assert_true(sim_now(s->sim) - from < (480 - 50 + 60) * SIM_MS);
	lost_and_back(s, 1, 0);
}

/* Request and answer, one at a time, over the lane that dies: the longest is the stall. */
static uint64_t longest(struct scene *s, struct scene_ep *e, struct scene_ep *f, unsigned int n)
{
	uint64_t worst = 0, from;
	struct op *r[2];

	for (unsigned int i = 0; i < n; i++) {
		from = sim_now(s->sim);
		r[1] = op_recv(s, 1, 8, 1);
		r[0] = op_recv(s, 0, 8, 2);
		op_send(e, i, 8, 1);
		op_expect(r[1], SIM_S, 0);
		op_holds(r[1], i, 8);
		op_send(f, i, 8, 2);
		op_expect(r[0], SIM_S, 0);
		op_holds(r[0], i, 8);
		if (sim_now(s->sim) - from > worst)
			worst = sim_now(s->sim) - from;
	}
	return worst;
}

/*
 * @behaviour R31: The stall is 100 ms at most, the other lane continues at its rate, the death of
 * an idle lane has no effect
 * @behaviour U73
 */
static void a_stall_is_short_and_an_idle_lane_is_not_missed(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}, .config = "KEEPALIVE_INTERVAL=500ms"};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1), *f = scene_up(s, 1, 0);
	uint64_t usual, ns;
	unsigned int used;

	scene_run(s, 20 * SIM_MS);
	usual = longest(s, e, f, 100);
	assert_true(usual < SIM_MS);
	used = scene_lane(e, 1).tx_msgs > scene_lane(e, 0).tx_msgs;
	/* The idle one: only keepalives notice it, and no traffic is disturbed. */
	cut(s, !used, true);
	for (unsigned int i = 0; i < 50; i++) {
		assert_true(longest(s, e, f, 10) < 2 * usual);
		scene_run(s, 100 * SIM_MS);
	}
	lost_and_back(s, 1, 0);
	cut(s, !used, false);
	scene_run(s, SIM_S);
	lost_and_back(s, 1, 1);
	cut(s, used, true);
	ns = longest(s, e, f, 20);
	if (ns > 100 * SIM_MS)
		fail_msg("%.1f ms for a message", (double)ns / 1e6);
	assert_int_equal(e->errors + f->errors, 0);
}

/* Its own port says so: no timeout has to pass, and nothing has to be under way. */
/* @behaviour U73, F6, R33 */
static void a_lost_link_is_left_at_once_and_used_at_once(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}, .port = {.link = WEFT_LANE_LINK_NIC}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	bool leads = weft_failover_leads(e->ep);

	scene_run(s, 100 * SIM_MS);
	sim_port_carrier(s->port[0][1], false);
	scene_run(s, 40 * SIM_MS);
	lost_and_back(s, 1, 0);
	scene_run(s, 5 * SIM_S);
	sim_port_carrier(s->port[0][1], true);
	/* At once where its port is the leader's. */
	scene_run(s, leads ? 100 * SIM_MS : SIM_S);
	lost_and_back(s, 1, 1);
	scene_talk(s, e, 1, 1);
}

/*
 * @behaviour R34: An endpoint ends with its last lane only
 * @behaviour U73
 */
static void a_device_that_is_gone_takes_its_lane_only(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *r = op_recv(s, 1, 3000000, 1), *w = op_send(e, 1, 3000000, 1);

	scene_run(s, 100 * SIM_US);
	sim_port_end(s->port[0][0], -ENODEV);
	op_expect(r, 200 * SIM_MS, 0);
	op_expect(w, 200 * SIM_MS, 0);
	op_holds(r, 1, 3000000);
	lost_and_back(s, 1, 0);
	/* With the last one the endpoint ends. */
	sim_port_end(s->port[0][1], -ENODEV);
	scene_run(s, 10 * SIM_MS);
	assert_int_equal(e->errors, 1);
	assert_int_equal(e->status, -ENODEV);
}

/* The second one dies at each step of the first one's handshake, and the first one returns. */
/* @behaviour U73, R30 */
static void lanes_that_die_one_after_the_other_lose_nothing(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};

	for (unsigned int ms = 30; ms<70; ms += test_rounds(40)> 20 ? 2 : 8) {
		struct scene *s = scene_open(c, &conf);
		struct scene_ep *e = scene_up(s, 0, 1);
		struct op *r = op_recv(s, 1, 8000000, 1), *w = op_send(e, 1, 8000000, 1);

		scene_run(s, 500 * SIM_US);
		cut(s, 0, true);
		scene_run(s, ms * SIM_MS + ms * 37 * SIM_US);
		cut(s, 1, true);
		scene_run(s, 700 * SIM_MS);
		cut(s, 0, false);
		/* Where the handshake was not over it needs the second one. */
		scene_run(s, SIM_S);
		cut(s, 1, false);
		op_expect(r, 3 * SIM_S, 0);
		op_expect(w, SIM_S, 0);
		op_holds(r, 1, 8000000);
		scene_run(s, 2 * SIM_S);
		assert_int_equal(scene_lanes_up(e), 2);
		op_expect(op_close(e, 0), SIM_S, 0);
	}
}

/* It acknowledged nothing for a while, and now does: whatever is sent over it meanwhile. */
/* @behaviour R39 */
static void a_deaf_lane_that_recovers_is_kept(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *r[40], *w[40];
	unsigned int i, k;

	scene_run(s, 20 * SIM_MS);
	for (k = 0; k < 6; k++) {
		weft_failover_suspect(e->ep, k & 1, 1, "it answers, but acknowledges nothing");
		assert_int_equal(e->ep->failover->lane[k & 1].life, WEFT_LANE_SUSPECTED);
		for (i = 0; i < 40; i++) {
			r[i] = op_recv(s, 1, 3000000, i);
			w[i] = op_send(e, i, 3000000, i);
			if (k < 2)
				scene_run(s, SIM_MS);
		}
		for (i = 0; i < 40; i++) {
			op_expect(r[i], SIM_S, 0);
			op_expect(w[i], SIM_S, 0);
			op_holds(r[i], i, 3000000);
		}
		assert_int_equal(e->ep->failover->lane[k & 1].life, WEFT_LANE_USED);
	}
	lost_and_back(s, 0, 0);
}

/* ---- what the peer is sent ------------------------------------------------------------------ */

/*
 * Nothing is under way, so the peer has no other way to notice it for a long time. Both directions,
 * since one of the two workers is the leader.
 */
/* @behaviour U73, F6 */
static void a_lost_device_is_reported_to_the_peer_at_once(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};

	for (unsigned int side = 0; side < 2; side++) {
		struct scene *s = scene_open(c, &conf);
		struct scene_ep *e = scene_up(s, 0, 1), *f = scene_up(s, 1, 0);

		scene_run(s, 100 * SIM_MS);
		sim_port_end(s->port[side][0], -ENODEV);
		scene_run(s, 5 * SIM_MS);
		lost_and_back(s, 1, 0);
		assert_int_equal(e->ep->failover->lane[0].life, WEFT_LANE_GONE);
		assert_int_equal(f->ep->failover->lane[0].life, WEFT_LANE_GONE);
	}
}

/* The interval doubles from 20 ms on: a peer that computes is not sent the same all the time. */
/* @behaviour R39 */
static void a_peer_that_computes_is_rarely_sent_the_same(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);

	scene_run(s, 100 * SIM_MS);
	sim_node_pause(s->node[1], 400 * SIM_MS);
	sim_port_end(s->port[0][0], -ENODEV);
	scene_run(s, 350 * SIM_MS);
	assert_int_equal(e->ep->failover->lane[0].life, WEFT_LANE_CLOSING);
	/* After 20, 60, 140 and 300 ms. */
	assert_int_equal(e->ep->failover->lane[0].tries, 5);
	scene_run(s, 100 * SIM_MS);
	lost_and_back(s, 1, 0);
	scene_talk(s, e, 1, 1);
}

/* ---- the peer is silent --------------------------------------------------------------------- */

/* @behaviour R32: While all lanes are silent none is abandoned */
static void a_peer_that_pauses_loses_no_lane(struct sim_case *c)
{
	static const uint64_t pauses[] = {50, 100, 300, 1000, 5000, 20000};
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *w[20], *r[20];

	for (unsigned int p = 0; p < 12; p++) {
		for (unsigned int i = 0; i < 20; i++) {
			r[i] = op_recv(s, 1, 300000, i);
			w[i] = op_send(e, i, i * 15000, i);
		}
		scene_run(s, p * 20 * SIM_US);
		sim_node_pause(s->node[p % 2], pauses[p / 2] * SIM_MS);
		for (unsigned int i = 0; i < 20; i++) {
			op_expect(r[i], pauses[p / 2] * SIM_MS + SIM_S, 0);
			op_holds(r[i], i, i * 15000);
			op_expect(w[i], SIM_S, 0);
		}
		lost_and_back(s, 0, 0);
	}
	assert_int_equal(e->errors, 0);
}

/* All links are cut for a while: nothing is decided, and all lanes go on. */
/* @behaviour U73, R32 */
static void a_network_that_is_silent_loses_no_lane(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *w, *r;

	for (unsigned int ms = 50; ms < 10000; ms *= 3) {
		r = op_recv(s, 1, 3000000, ms);
		w = op_send(e, ms, 3000000, ms);
		scene_run(s, 100 * SIM_US);
		cut(s, 0, true);
		cut(s, 1, true);
		scene_run(s, ms * SIM_MS);
		cut(s, 0, false);
		cut(s, 1, false);
		op_expect(r, 2 * SIM_S, 0);
		op_expect(w, SIM_S, 0);
		op_holds(r, ms, 3000000);
		lost_and_back(s, 0, 0);
	}
}

/*
 * A lane of an idle endpoint dies while the peer is away. An end that polls after the pause has
 * received frames of both lanes for as long, and asks before one ends the endpoint.
 */
/* @behaviour R32 */
static void an_idle_lane_that_dies_in_a_pause_takes_no_endpoint_along(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);

	scene_run(s, 10 * SIM_MS);
	sim_node_pause(s->node[1], 26 * SIM_S);
	cut(s, 0, true);
	scene_run(s, 40 * SIM_S);
	assert_int_equal(e->errors, 0);
	scene_talk(s, e, 1, 100);
	lost_and_back(s, 1, 0);
}

/* ---- lanes that come back ------------------------------------------------------------------- */

/*
 * @behaviour F6: a lane that comes back
 * @behaviour R33: A lane that is back is used again within a second
 * @behaviour U73
 */
static void a_lane_that_returns_is_used_within_a_second(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1), *f = scene_up(s, 1, 0);
	const struct weft_failover_lane *l;
	struct weft_lane_info before, after;
	struct op *w, *r;

	for (unsigned int n = 1; n < 6; n++) {
		unsigned int lane = n % 2;

		r = op_recv(s, 1, 3000000, n);
		w = op_send(e, n, 3000000, n);
		scene_run(s, 100 * SIM_US);
		cut(s, lane, true);
		op_expect(r, 2 * SIM_S, 0);
		op_expect(w, SIM_S, 0);
		scene_run(s, n * 700 * SIM_MS);
		assert_int_equal(scene_lanes_up(e), 1);
		lost_and_back(s, n, n - 1);
		cut(s, lane, false);
		scene_run(s, SIM_S);
		assert_int_equal(scene_lanes_up(e), 2);
		lost_and_back(s, n, n);
		before = scene_lane(e, lane);
		r = op_recv(s, 1, 3000000, n);
		w = op_send(e, n, 3000000, n);
		op_expect(r, SIM_S, 0);
		op_expect(w, SIM_S, 0);
		op_holds(r, n, 3000000);
		after = scene_lane(e, lane);
		assert_true(after.tx_bytes - before.tx_bytes > 1000000);
	}
	/* A failure after ten seconds of use is the first one. */
	l = &(weft_failover_leads(e->ep) ? e : f)->ep->failover->lane[1];
	assert_in_range(l->returns, 5, 20);
	scene_run(s, 11 * SIM_S);
	cut(s, 1, true);
	r = op_recv(s, 1, 3000000, 6);
	w = op_send(e, 6, 3000000, 6);
	op_expect(r, SIM_S, 0);
	op_expect(w, SIM_S, 0);
	assert_int_equal(l->life, WEFT_LANE_GONE);
	assert_int_equal(l->returns, 1);
	op_expect(op_close(e, 0), SIM_S, 0);
}

/* The leader's port has no link: each attempt is 100 ms later than the last one, at most 500 ms. */
/* @behaviour U73 */
static void a_lane_that_stays_away_is_tried_less_often(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}, .port = {.link = WEFT_LANE_LINK_NIC}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1), *f = scene_up(s, 1, 0);
	bool leads = weft_failover_leads(e->ep);
	const struct weft_failover_lane *l;
	unsigned int tries;

	scene_run(s, 100 * SIM_MS);
	l = &(leads ? e : f)->ep->failover->lane[0];
	sim_port_carrier(s->port[!leads][0], false);
	/* After 100, 300, 600, 1000 and 1500 ms. */
	scene_run(s, 1400 * SIM_MS);
	lost_and_back(s, 1, 0);
	assert_int_equal(l->returns, 5);
	tries = l->returns;
	scene_run(s, 5 * SIM_S);
	assert_int_equal(l->returns - tries, 10);
}

/* @behaviour U73 */
static void the_numbers_of_a_lanes_connections_wrap(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1), *f = scene_up(s, 1, 0);

	scene_run(s, 20 * SIM_MS);
	e->ep->failover->lane[0].epoch = UINT16_MAX;
	f->ep->failover->lane[0].epoch = UINT16_MAX;
	cut(s, 0, true);
	scene_talk_long(s, e, 1, 1);
	scene_run(s, 500 * SIM_MS);
	lost_and_back(s, 1, 0);
	cut(s, 0, false);
	scene_run(s, 2 * SIM_S);
	lost_and_back(s, 1, 1);
	/* 0 is only the first connection. */
	assert_int_equal(e->ep->failover->lane[0].epoch, 1);
	assert_int_equal(f->ep->failover->lane[0].epoch, 1);
	scene_talk(s, e, 1, 2);
}

struct attach_drop {
	const struct weft_ep *leader;
	bool dead;
};

static enum sim_verdict drop_attach(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				    void *arg)
{
	struct attach_drop *d = arg;

	(void)port;
	(void)data;
	(void)len;
	(void)room;
	d->dead |= d->leader->failover->lane[0].life == WEFT_LANE_ATTACHING;
	return d->dead ? SIM_DROP : SIM_PASS;
}

/*
 * The leader has the new connection, and the peer never receives ATTACH. The peer's answer must not
 * contain the receive state of the connection before, which no state of the new one agrees with.
 */
/* @behaviour R33, U73 */
static void a_lane_that_dies_before_it_is_attached_returns_later(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1), *f = scene_up(s, 1, 0);
	struct attach_drop drop = {.leader = weft_failover_leads(e->ep) ? e->ep : f->ep};

	for (unsigned int i = 0; i < 20; i++)
		scene_talk(s, e, 1, i);
	cut(s, 0, true);
	scene_talk(s, e, 1, 100);
	scene_talk(s, f, 0, 101);
	scene_run(s, 500 * SIM_MS);
	lost_and_back(s, 1, 0);
	for (unsigned int i = 0; i < 2; i++)
		sim_filter(s->port[i][0], drop_attach, &drop);
	cut(s, 0, false);
	scene_run(s, 8 * SIM_S);
	assert_true(drop.dead);
	assert_int_equal(drop.leader->failover->lane[0].epoch, 1);
	assert_int_equal(e->errors + f->errors, 0);
	lost_and_back(s, 1, 0);
	for (unsigned int i = 0; i < 2; i++)
		sim_filter(s->port[i][0], NULL, NULL);
	scene_run(s, 10 * SIM_S);
	lost_and_back(s, 1, 1);
	scene_talk(s, e, 1, 102);
}

/* ---- hostile peers -------------------------------------------------------------------------- */

/* The peer's own end, with its secrets: what it could say if it lied. */
struct liar {
	struct scene *s;
	struct weft_ep *ep; /* of node 1 */
	struct scene_ep *victim;
};

static struct liar liar_open_with(struct sim_case *c, const char *config)
{
	const struct scene_conf conf = {.lanes = {2, 2}, .lazy = true, .config = config};
	struct liar l = {.s = scene_open(c, &conf)};

	l.s->accept = true;
	scene_start(l.s, 0);
	scene_start(l.s, 1);
	l.victim = scene_up(l.s, 0, 1);
	scene_run(l.s, 20 * SIM_MS);
	assert_non_null(l.s->accepted[1]);
	l.ep = l.s->accepted[1]->ep;
	return l;
}

static struct liar liar_open(struct sim_case *c)
{
	return liar_open_with(c, NULL);
}

static void send_lie(struct liar *l, unsigned int over, enum weft_wireup_type type,
		     unsigned int lane, uint16_t epoch, const void *state, size_t len)
{
	struct weft_records r = {.len = 0};
	struct weft_wire_wireup h;

	weft_wireup_head(l->ep, type, lane, &h);
	h.lane_epoch = weft_put16(epoch);
	if (state)
		weft_records_add(&r, WEFT_RECORD_RX_STATE, state, len);
	assert_int_equal(weft_wireup_send(l->ep->lanes[over].lane_ep, &h, r.buf, r.len), 0);
	scene_run(l->s, SIM_MS);
}

static uint64_t dropped(struct liar *l)
{
	return sim_node_counter(l->s->node[0], "wireup.drop.stale") +
	       sim_node_counter(l->s->node[0], "wireup.drop.bad");
}

/* @behaviour R35: A peer that lies about its lanes harms itself */
static void what_is_not_about_a_lane_as_it_is_has_no_effect(struct sim_case *c)
{
	static const uint8_t state[WEFT_LANE_STATE_MAX + 1];
	struct liar l = liar_open(c);
	uint64_t before = dropped(&l);

	for (unsigned int type = WEFT_WIREUP_LANE_DOWN; type <= WEFT_WIREUP_LANE_SUSPECT; type++) {
		send_lie(&l, 1, type, 1, 0, state, 8); /* over the lane itself */
		send_lie(&l, 1, type, 7, 0, state, 8); /* no such lane */
		send_lie(&l, 1, type, 200, 0, state, 8);
		send_lie(&l, 1, type, 0, 1, state, 8); /* of a later connection */
		send_lie(&l, 1, type, 0, 0xffff, state, 8);
		send_lie(&l, 1, type, 0, 0, state, sizeof(state)); /* too long */
	}
	send_lie(&l, 1, WEFT_WIREUP_LANE_DOWN, 0, 0, NULL, 0);
	for (unsigned int i = 0; i < 200; i++)
		send_lie(&l, 1, WEFT_WIREUP_LANE_DOWN_ACK, 0, 0, state, 8); /* unrequested */
	assert_int_equal(dropped(&l) - before, 3 * 6 + 1 + 200);
	/* The longest state that a lane may have is not malformed. */
	before = sim_node_counter(l.s->node[0], "wireup.drop.bad");
	send_lie(&l, 1, WEFT_WIREUP_LANE_DOWN_ACK, 0, 0, state, WEFT_LANE_STATE_MAX);
	assert_int_equal(sim_node_counter(l.s->node[0], "wireup.drop.bad"), before);
	lost_and_back(l.s, 0, 0);
	scene_talk(l.s, l.victim, 1, 1);
}

/* @behaviour R35 */
static void a_state_that_cannot_be_ends_the_endpoint(struct sim_case *c)
{
	for (unsigned int kind = 0; kind < 3; kind++) {
		struct liar l = liar_open(c);
		uint8_t state[WEFT_LANE_STATE_MAX], lie[WEFT_LANE_STATE_MAX];
		weft_le32 next;
		int len;

		scene_talk(l.s, l.victim, 1, 1);
		len = l.ep->lanes[0].lane_ep->ops->ep_quiesce(l.ep->lanes[0].lane_ep, state);
		assert_in_range(len, 8, sizeof(state));
		memcpy(lie, state, sizeof(lie));
		memcpy(&next, state, sizeof(next));
		/* Has what was never sent; takes back what it has acknowledged. */
		next = weft_put32(weft_get32(next) + (kind == 0 ? 1 : 0u - 100));
		if (kind < 2)
			memcpy(lie, &next, sizeof(next));
		else
			lie[4] = 16; /* is shorter than it says */
		send_lie(&l, 1, WEFT_WIREUP_LANE_DOWN, 0, 0, lie, (size_t)len);
		assert_int_equal(l.victim->errors, 1);
		assert_int_equal(l.victim->status, -EPROTO);
		assert_non_null(strstr(l.victim->why, "impossible receive state"));
	}
}

static unsigned int refused;

static int no_room_short(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *header,
			 size_t header_len, const void *payload, size_t payload_len)
{
	refused++;
	return -EAGAIN;
}

static ssize_t no_room_bcopy(struct weft_lane_ep *lane_ep, uint8_t am_id, weft_lane_pack_cb pack,
			     void *arg)
{
	refused++;
	return -EAGAIN;
}

/* Run until the state of lane 0 is CONNECTING, or until it is another one. */
static void run_until(struct liar *l, const struct weft_ep *ep, bool connecting)
{
	uint64_t from = sim_now(l->s->sim);

	while ((ep->failover->lane[0].life == WEFT_LANE_CONNECTING) != connecting) {
		scene_run(l->s, 10 * SIM_US);
		assert_true(sim_now(l->s->sim) - from < 5 * SIM_S);
	}
}

/*
 * The peer repeats LANE_DOWN while the leader connects the lane again, and the reply finds no room.
 * Once the new connection is up, a reply would be about that one.
 */
/* @behaviour R35, U73 */
static void no_reply_is_about_a_later_connection(struct sim_case *c)
{
	static const uint8_t state[8];
	struct liar l = liar_open(c);
	struct weft_ep *leader = l.victim->ep;
	const struct weft_lane_ops *ops;
	struct weft_lane_ops full;
	unsigned int peer = 1;
	uint64_t stale;

	if (!weft_failover_leads(leader)) {
		leader = l.ep;
		l.ep = l.victim->ep;
		peer = 0;
	}
	cut(l.s, 0, true);
	scene_talk_long(l.s, l.victim, 1, 1);
	scene_run(l.s, 500 * SIM_MS);
	lost_and_back(l.s, 1, 0);
	run_until(&l, leader, true);
	run_until(&l, leader, false);
	cut(l.s, 0, false);
	run_until(&l, leader, true);
	stale = sim_node_counter(l.s->node[peer], "wireup.drop.stale");
	ops = leader->lanes[1].lane_ep->ops;
	full = *ops;
	full.am_short = no_room_short;
	full.am_bcopy = no_room_bcopy;
	leader->lanes[1].lane_ep->ops = &full;
	refused = 0;
	send_lie(&l, 1, WEFT_WIREUP_LANE_DOWN, 0, 0, state, sizeof(state));
	run_until(&l, leader, false);
	leader->lanes[1].lane_ep->ops = ops;
	assert_true(refused > 0);
	scene_run(l.s, SIM_S);
	lost_and_back(l.s, 1, 1);
	assert_int_equal(sim_node_counter(l.s->node[peer], "wireup.drop.stale"), stale);
	scene_talk(l.s, l.victim, 1, 2);
}

/* It stops lanes as often as it can: they come back, and all is delivered meanwhile. */
/* @behaviour R35 */
static void a_peer_that_stops_lanes_all_the_time_harms_itself(struct sim_case *c)
{
	struct liar l = liar_open(c);
	uint64_t lost;

	for (unsigned int i = 0; i < 300; i++) {
		unsigned int n = i / 50 % 2;

		if (l.ep->lanes[!n].up)
			send_lie(&l, !n, WEFT_WIREUP_LANE_SUSPECT, n, l.ep->failover->lane[n].epoch,
				 NULL, 0);
		scene_run(l.s, 20 * SIM_MS);
		if (i % 10 == 0)
			scene_talk(l.s, l.victim, 1, i);
	}
	lost = sim_node_counter(l.s->node[0], "ep.lanes_lost");
	assert_in_range(lost, 0, 20);
	assert_int_equal(l.victim->errors, 0);
	scene_run(l.s, 2 * SIM_S);
	assert_int_equal(scene_lanes_up(l.victim), 2);
}

/*
 * The peer's process receives LANE_DOWN again and again, and never reports its receive state. The
 * sender then cannot find out which messages of the lane have arrived.
 */
/* @behaviour R35, R39 */
static void a_peer_that_never_reports_its_state_ends_the_endpoint(struct sim_case *c)
{
	struct liar l = liar_open_with(c, "PEER_TIMEOUT=5s");
	uint64_t from = sim_now(l.s->sim);

	scene_talk(l.s, l.victim, 1, 1);
	l.ep->failover->lane[0].epoch = 7; /* LANE_DOWN seems to be of an earlier connection */
	sim_port_end(l.s->port[0][0], -ENODEV);
	while (l.victim->errors == 0 && sim_now(l.s->sim) - from < 60 * SIM_S)
		scene_run(l.s, 100 * SIM_MS);
	assert_int_equal(l.victim->errors, 1);
	assert_int_equal(l.victim->status, -ETIMEDOUT);
	assert_non_null(strstr(l.victim->why, "has not reported its receive state of lane 0"));
	assert_in_range(l.victim->error_at - from, 4 * SIM_S, 10 * SIM_S);
}

static struct sim_case cases[] = {
	SIM_CASE(a_lane_that_dies_loses_no_message),
	SIM_CASE(the_other_lane_goes_on_as_fast),
	SIM_CASE(a_stall_is_short_and_an_idle_lane_is_not_missed),
	SIM_CASE(a_lost_link_is_left_at_once_and_used_at_once),
	SIM_CASE(a_device_that_is_gone_takes_its_lane_only),
	SIM_CASE(lanes_that_die_one_after_the_other_lose_nothing),
	SIM_CASE(a_deaf_lane_that_recovers_is_kept),
	SIM_CASE(a_lost_device_is_reported_to_the_peer_at_once),
	SIM_CASE(a_peer_that_computes_is_rarely_sent_the_same),
	SIM_CASE(a_peer_that_pauses_loses_no_lane),
	SIM_CASE(a_network_that_is_silent_loses_no_lane),
	SIM_CASE(an_idle_lane_that_dies_in_a_pause_takes_no_endpoint_along),
	SIM_CASE(a_lane_that_returns_is_used_within_a_second),
	SIM_CASE(a_lane_that_stays_away_is_tried_less_often),
	SIM_CASE(the_numbers_of_a_lanes_connections_wrap),
	SIM_CASE(a_lane_that_dies_before_it_is_attached_returns_later),
	SIM_CASE(what_is_not_about_a_lane_as_it_is_has_no_effect),
	SIM_CASE(a_state_that_cannot_be_ends_the_endpoint),
	SIM_CASE(no_reply_is_about_a_later_connection),
	SIM_CASE(a_peer_that_stops_lanes_all_the_time_harms_itself),
	SIM_CASE(a_peer_that_never_reports_its_state_ends_the_endpoint),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_failover", cases, sizeof(cases) / sizeof(cases[0]));
}
