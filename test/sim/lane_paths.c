/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lane of several paths (doc/raw-lanes.md), of which some carry nothing, or carry it slowly.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/iface.h"
#include "engine/multipath.h"
#include "lane_host.h"
#include "reseal.h"
#include "sim_test.h"

#define PATHS 4
#define FAR 1
#define LISTEN RTE_BE16(9338)

/* What the network does to frames of each path; bit k: those of path k are lost. */
struct eater {
	unsigned int lost;
	bool all_types; /* else DATA only */
	unsigned int data[WEFT_FRAME_PATHS_MAX];
};

static enum sim_verdict eat(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
			    void *arg)
{
	const struct weft_frame_hdr *h = reseal_header(data);
	struct eater *e = arg;

	(void)port;
	(void)room;
	if (!reseal_is_lane(data, *len))
		return SIM_PASS;
	if (h->type == WEFT_FRAME_DATA)
		e->data[h->path]++;
	return e->lost >> h->path & 1 && (e->all_types || h->type == WEFT_FRAME_DATA) ? SIM_DROP
										      : SIM_PASS;
}

static const struct sim_port_params fast = {.up = {.rate = SIM_GBIT, .delay_ns = 5000},
					    .paths = PATHS};

/* As much as goes in one millisecond. @return the next number */
static uint32_t busy_ms(struct lane_two *t, struct lane_end *e, uint32_t n)
{
	for (unsigned int k = 0; k < 100; k++) {
		while (n < LANE_MAX_NUMBERS &&
		       lane_send(e, LANE_BCOPY, n, lane_max(e, LANE_BCOPY)) >= 0)
			n++;
		sim_run(t->sim, 10 * SIM_US, NULL, NULL);
	}
	return n;
}

static void settle(struct lane_two *t, struct lane_host *to, uint32_t n)
{
	assert_true(n < LANE_MAX_NUMBERS);
	sim_run(t->sim, 200 * SIM_MS, NULL, NULL);
	assert_true(lane_exactly_once(to, 0, n));
}

/* One of four paths loses all, in one direction or both, whichever end connected. */
static void black_hole(struct sim_case *c, const char *config, bool back, bool passive)
{
	struct lane_two t = lane_two_up(c, fast, config);
	struct eater here = {.lost = 0, .all_types = true}, there = here;
	struct lane_end *e = passive ? lane_passive(t.b) : t.e;
	struct lane_host *to = passive ? t.a : t.b;
	unsigned int before, after;
	uint32_t n = 0;

	sim_filter(t.pa, eat, &here);
	sim_filter(t.pb, eat, &there);
	for (unsigned int k = 0; k < 20; k++)
		n = busy_ms(&t, e, n);
	before = lane_received(to);
	here.lost = there.lost = 1u << 2;
	if (!back)
		*(passive ? &here : &there) = (struct eater){0};
	for (unsigned int k = 0; k < 5; k++)
		n = busy_ms(&t, e, n);
	after = lane_received(to);
	for (unsigned int k = 0; k < 20; k++)
		n = busy_ms(&t, e, n);
	/* Within 5 ms as much goes over the others as over all before. */
	assert_true(lane_received(to) - after >= before / 10 * 9);
	assert_int_equal(lane_counter(passive ? t.b : t.a, "path.bad"), 1);
	assert_int_equal(lane_counter(passive ? t.b : t.a, "path2.bad"), 1);
	settle(&t, to, n);
	assert_int_equal(t.e->downs, 0);
}

/*
 * @behaviour R20: One of several paths loses all frames, in either direction: within milliseconds
 * the other paths carry its traffic
 */
static void a_black_hole_is_left_at_once(struct sim_case *c)
{
	black_hole(c, "WINDOW=64k", true, false);
	black_hole(c, "WINDOW=64k", false, false);
	black_hole(c, "CC=delay WINDOW=64k", true, false);
}

/* @behaviour R20 */
static void the_end_that_did_not_connect_leaves_it_too(struct sim_case *c)
{
	black_hole(c, "WINDOW=64k", true, true);
	black_hole(c, "CC=delay WINDOW=64k", false, true);
}

/* Messages one at a time, of which none may wait long. */
static uint64_t slowest(struct lane_two *t, uint32_t from, uint32_t to)
{
	uint64_t worst = 0, begin;

	for (uint32_t n = from; n < to; n++) {
		begin = sim_now(t->sim);
		assert_true(lane_send_all(t->e, n, n + 1, SIM_S));
		if (sim_now(t->sim) - begin > worst)
			worst = sim_now(t->sim) - begin;
	}
	return worst;
}

/* One path after the other loses all that leaves one end: the @p answers, or what is sent. */
static void each_path_lost(struct sim_case *c, bool answers)
{
	for (unsigned int lost = 0; lost < PATHS; lost++) {
		struct lane_two t = lane_two_up(c, fast, "WINDOW=64k");
		struct eater e = {.all_types = true};

		sim_filter(answers ? t.pb : t.pa, eat, &e);
		slowest(&t, 0, 100);
		e.lost = 1u << lost;
		assert_true(slowest(&t, 100, 200) < 5 * SIM_MS);
		assert_true(slowest(&t, 200, 300) < 100 * SIM_US);
		assert_true(lane_exactly_once(t.b, 0, 300));
	}
}

/* @behaviour R20 */
static void single_messages_pass_a_black_hole(struct sim_case *c)
{
	each_path_lost(c, false);
}

/* What is sent arrives, but no acknowledgement comes back over that path. */
/* @behaviour R20 */
static void acknowledgements_that_vanish_make_a_path_bad(struct sim_case *c)
{
	each_path_lost(c, true);
}

/*
 * @behaviour R21: A path that returns is used again; a path that flaps is probed less and less
 * often
 */
static void a_path_that_returns_is_used_again(struct sim_case *c)
{
	struct lane_two t = lane_two_up(c, fast, "WINDOW=64k");
	struct eater e = {.lost = 1u << 1, .all_types = true};
	uint32_t n = 0;

	sim_filter(t.pa, eat, &e);
	for (unsigned int k = 0; k < 10; k++)
		n = busy_ms(&t, t.e, n);
	assert_int_equal(lane_counter(t.a, "path1.bad"), 1);
	e.lost = 0;
	e.data[1] = 0;
	/* It is asked at growing intervals: no later than it was bad before, once more. */
	for (unsigned int k = 0; k < 20; k++)
		n = busy_ms(&t, t.e, n);
	assert_int_equal(lane_counter(t.a, "path1.bad"), 0);
	assert_int_equal(lane_counter(t.a, "path.back"), 1);
	assert_true(e.data[1] > 100);
	settle(&t, t.b, n);
}

/* It comes and goes: each time it is left, and asked more seldom. */
/* @behaviour R21 */
static void a_path_that_flaps_is_probed_ever_more_seldom(struct sim_case *c)
{
	struct lane_two t = lane_two_up(c, fast, "WINDOW=64k");
	struct eater e = {.all_types = true};
	uint32_t n = 0;

	sim_filter(t.pa, eat, &e);
	for (unsigned int k = 0; k < 120; k++) {
		e.lost = k / 3 % 2 << 3;
		n = busy_ms(&t, t.e, n);
	}
	assert_in_range(lane_counter(t.a, "path.bad"), 1, 8);
	settle(&t, t.b, n);
	assert_int_equal(t.e->downs, 0);
}

/* No other frame proves anything: the peer is silent, and no path is blamed. */
/* One flow, as the initiator's port names it, loses all, both ways. */
struct flow {
	uint16_t port; /* big endian; 0 = the one that path `of` has, from its next frame on */
	uint8_t of;
	unsigned int eaten;
};

static enum sim_verdict eat_flow(struct sim_port *at, uint8_t *data, size_t *len, size_t room,
				 void *arg)
{
	const struct rte_udp_hdr *udp = reseal_udp(data);
	struct flow *f = arg;
	uint16_t port;

	(void)at;
	(void)room;
	if (!reseal_is_lane(data, *len))
		return SIM_PASS;
	port = udp->src_port == LISTEN ? udp->dst_port : udp->src_port;
	if (f->port == 0 && reseal_header(data)->path == f->of)
		f->port = port;
	if (port != f->port)
		return SIM_PASS;
	f->eaten++;
	return SIM_DROP;
}

static struct lane_two automatic(struct sim_case *c, const char *config)
{
	struct sim_port_params p = fast;
	struct lane_two t = {.sim = case_sim_seed(c, c->seed)};

	p.paths = 0;
	t.pa = sim_port_create(t.sim, &p);
	t.pb = sim_port_create(t.sim, &p);
	t.a = lane_host_create(t.sim, t.pa, config);
	t.b = lane_host_create(t.sim, t.pb, config);
	t.e = lane_up(t.a, t.b);
	assert_non_null(t.e);
	return t;
}

/* Without configuration there is one path, and it falls into a black hole. */
/*
 * @behaviour R24: A path in a black hole is left without configuration, whichever end sends, and at
 * connect
 */
static void without_configuration_another_path_is_found(struct sim_case *c)
{
	for (unsigned int i = 0; i < 8; i++) {
		struct lane_two t = automatic(c, i & 4 ? "CC=delay WINDOW=64k" : "WINDOW=64k");
		struct lane_end *e = i & 1 ? lane_passive(t.b) : t.e;
		struct lane_host *to = i & 1 ? t.a : t.b;
		struct eater eater = {.all_types = true};
		unsigned int after;
		uint32_t n = 0;

		for (unsigned int k = 0; k < 30; k++)
			n = busy_ms(&t, e, n);
		eater.lost = 1;
		if (!(i & 2))
			sim_filter(t.pa, eat, &eater);
		sim_filter(t.pb, eat, &eater);
		for (unsigned int k = 0; k < 10; k++)
			n = busy_ms(&t, e, n);
		after = lane_received(to);
		for (unsigned int k = 0; k < 10; k++)
			n = busy_ms(&t, e, n);
		/* 1 Gb/s are 81 frames each ms. */
		assert_true(lane_received(to) - after >= 700);
		settle(&t, to, n);
		assert_int_equal(t.e->downs + e->downs, 0);
	}
}

/* The helper of a process that ends now sends it: does it pass? */
static bool farewell_passes(struct sim_port *port, struct flow *f)
{
	uint8_t frame[WEFT_FAREWELL_MAX];
	size_t len = sim_port_farewell(port, frame);

	assert_true(len > 0);
	return eat_flow(port, frame, &len, sizeof(frame), f) == SIM_PASS;
}

/* @behaviour R24 */
static void a_bad_path_gets_another_port(struct sim_case *c)
{
	struct lane_two t = automatic(c, "WINDOW=64k");
	struct flow f = {.of = 0};
	uint32_t n = 0;

	for (unsigned int k = 0; k < 30; k++)
		n = busy_ms(&t, t.e, n);
	assert_int_equal(lane_counter(t.a, "path.opened"), 1);
	sim_filter(t.pa, eat_flow, &f);
	for (unsigned int k = 0; k < 30; k++)
		n = busy_ms(&t, t.e, n);
	assert_true(f.eaten > 0);
	assert_int_equal(lane_counter(t.a, "path.bad"), 1);
	/* The old port is as dead as it was. */
	assert_int_equal(lane_counter(t.a, "path.back"), 1);
	settle(&t, t.b, n);
	assert_true(farewell_passes(t.pa, &f));
	assert_true(farewell_passes(t.pb, &f));
}

/* HELLO's own flow falls into a black hole: it is said from other ports, too. */
/* @behaviour R24 */
static void a_black_hole_does_not_stop_a_connect(struct sim_case *c)
{
	struct sim_port_params p = fast;
	struct sim *sim = case_sim_seed(c, c->seed);
	struct flow f = {.of = 0};
	struct lane_host *a, *b;
	struct sim_port *pa;

	p.paths = 0;
	pa = sim_port_create(sim, &p);
	sim_filter(pa, eat_flow, &f);
	a = lane_host_create(sim, pa, "");
	b = lane_host_create(sim, sim_port_create(sim, &p), "");
	assert_non_null(lane_up(a, b));
	assert_true(f.eaten > 0);
}

/*
 * Four equal trunks, of which one dies unnoticed: flows have their way there and their way back
 * chosen by hashes, so every case comes up, among them paths that lack one direction each.
 */
/* @behaviour R24 */
static void one_of_four_trunks_dies(struct sim_case *c)
{
	const struct sim_link link = {.rate = SIM_GBIT, .delay_ns = 5000};
	struct sim_port_params p = {.up = {.rate = SIM_GBIT}};

	for (unsigned int i = 0; i < 16; i++) {
		struct lane_two t = {.sim = case_sim_seed(c, c->seed + i)};
		struct sim_trunk *trunk[4];
		unsigned int after;
		uint32_t n = 0;

		p.paths = i % 2 ? PATHS : 0;
		p.net = 0;
		for (unsigned int k = 0; k < 4; k++)
			trunk[k] = sim_trunk_create(t.sim, 0, FAR, &link, &link);
		t.a = lane_host_create(t.sim, sim_port_create(t.sim, &p), "WINDOW=64k");
		p.net = FAR;
		t.b = lane_host_create(t.sim, sim_port_create(t.sim, &p), "WINDOW=64k");
		t.e = lane_up(t.a, t.b);
		for (unsigned int k = 0; k < 10; k++)
			n = busy_ms(&t, t.e, n);
		sim_trunk_link(trunk[i / 2 % 4], 0)->blackhole = true;
		sim_trunk_link(trunk[i / 2 % 4], FAR)->blackhole = true;
		for (unsigned int k = 0; k < 50; k++)
			n = busy_ms(&t, t.e, n);
		after = lane_received(t.b);
		for (unsigned int k = 0; k < 20; k++)
			n = busy_ms(&t, t.e, n);
		assert_true(lane_received(t.b) - after >= 20 * 81 * 7 / 10);
		settle(&t, t.b, n);
	}
}

/* A flow gets a fifth of the link, and the number of paths is not configured. */
/* @behaviour R25: A limit per flow is found without configuration; on one switch one path stays */
static void a_limit_per_flow_is_found_without_configuration(struct sim_case *c)
{
	struct lane_two t = automatic(c, "WINDOW=64k");
	unsigned int after;
	uint32_t n = 0;

	*sim_port_down(t.pb) = (struct sim_link){.rate = SIM_GBIT, .flow_rate = SIM_GBIT / 5};
	for (unsigned int k = 0; k < 100; k++)
		n = busy_ms(&t, t.e, n);
	after = lane_received(t.b);
	for (unsigned int k = 0; k < 20; k++)
		n = busy_ms(&t, t.e, n);
	assert_true(lane_received(t.b) - after >= 20 * 81 * 9 / 10);
	assert_in_range(lane_counter(t.a, "path.more"), 2, 4);
	settle(&t, t.b, n);
}

/* The limit is gone: half of the paths are put back each second, until one is left. */
/* @behaviour R25 */
static void paths_that_no_longer_help_are_put_back(struct sim_case *c)
{
	struct lane_two t = automatic(c, "WINDOW=64k");
	const struct raw_multi *mp;
	unsigned int before;
	uint32_t n = 0;

	*sim_port_down(t.pb) = (struct sim_link){.rate = SIM_GBIT, .flow_rate = SIM_GBIT / 5};
	for (unsigned int k = 0; k < 100; k++)
		n = busy_ms(&t, t.e, n);
	mp = raw_conn_of(t.e->lane_ep)->multi;
	before = (unsigned int)__builtin_popcount(mp->active);
	assert_in_range(before, 4, 16);
	assert_int_equal(lane_counter(t.a, "path.fewer"), 0);
	*sim_port_down(t.pb) = (struct sim_link){.rate = SIM_GBIT};
	for (unsigned int left = before / 2, i = 1; left > 0; left /= 2, i++) {
		sim_run(t.sim, 1100 * SIM_MS, NULL, NULL);
		for (unsigned int k = 0; k < 5; k++)
			n = busy_ms(&t, t.e, n);
		assert_int_equal(lane_counter(t.a, "path.fewer"), i);
		assert_int_equal(__builtin_popcount(mp->active), left);
	}
	settle(&t, t.b, n);
}

/* A queue that all flows share: another path is no better, and none is taken. */
/* @behaviour R25 */
static void on_one_switch_one_path_stays(struct sim_case *c)
{
	static const char *const config[] = {"WINDOW=64k", "WINDOW=64k CC=delay"};

	for (unsigned int i = 0; i < 2; i++) {
		struct lane_two t = automatic(c, config[i]);
		uint32_t n = 0;

		*sim_port_down(t.pb) =
			(struct sim_link){.rate = SIM_GBIT / 2, .queue_bytes = i ? 40000 : 100000};
		for (unsigned int k = 0; k < 100; k++)
			n = busy_ms(&t, t.e, n);
		assert_int_equal(lane_counter(t.a, "path.more"), 0);
		settle(&t, t.b, n);
	}
}

static void idle_connections_open_no_reserve(struct sim_case *c)
{
	struct lane_two t = automatic(c, "");

	assert_true(lane_send_all(t.e, 0, 10, SIM_S));
	sim_run(t.sim, 20 * SIM_S, NULL, NULL);
	assert_int_equal(lane_counter(t.a, "path.opened"), 0);
	assert_true(lane_send_all(t.e, 10, 100, SIM_S));
	sim_run(t.sim, 20 * SIM_S, NULL, NULL);
	assert_int_equal(lane_counter(t.a, "path.opened"), 1);
	assert_int_equal(lane_counter(t.b, "path.opened"), 1);
}

/*
 * @behaviour R91: a path whose opening is not answered is given up for a while, and opens later
 */
static void an_unanswered_opening_is_tried_again(struct sim_case *c)
{
	struct lane_two t = automatic(c, "WINDOW=64k");
	struct eater e = {.lost = 1u << 1, .all_types = true};
	uint32_t n = 0;

	sim_filter(t.pa, eat, &e);
	sim_filter(t.pb, eat, &e);
	for (unsigned int k = 0; k < 5; k++)
		n = busy_ms(&t, t.e, n);
	sim_run(t.sim, SIM_S, NULL, NULL);
	assert_int_equal(lane_counter(t.a, "path.opened"), 0);
	e.lost = 0;
	for (unsigned int k = 0; k < 5; k++) {
		n = busy_ms(&t, t.e, n);
		sim_run(t.sim, SIM_S, NULL, NULL);
	}
	assert_int_equal(lane_counter(t.a, "path.opened"), 1);
	settle(&t, t.b, n);
	assert_int_equal(t.e->downs, 0);
}

/* @behaviour R22: A peer or network that is silent as a whole makes no path bad */
static void when_all_are_silent_none_is_bad(struct sim_case *c)
{
	struct lane_two t = lane_two_up(c, fast, "WINDOW=64k");
	struct eater e = {.all_types = true};
	uint32_t n = 0;

	sim_filter(t.pa, eat, &e);
	for (unsigned int k = 0; k < 10; k++)
		n = busy_ms(&t, t.e, n);
	e.lost = (1u << PATHS) - 1;
	for (unsigned int k = 0; k < 200; k++)
		n = busy_ms(&t, t.e, n);
	e.lost = 0;
	for (unsigned int k = 0; k < 100; k++)
		n = busy_ms(&t, t.e, n);
	assert_int_equal(lane_counter(t.a, "path.bad"), 0);
	settle(&t, t.b, n);
	assert_int_equal(t.e->downs, 0);
}

/* @behaviour R22 */
static void a_peer_that_was_away_makes_no_path_bad(struct sim_case *c)
{
	struct lane_two t = lane_two_up(c, fast, "WINDOW=64k");
	uint32_t n = 0;

	for (unsigned int k = 0; k < 40; k++) {
		if (k % 8 == 4)
			lane_host_pause(t.b, (k + 1) * SIM_MS);
		n = busy_ms(&t, t.e, n);
	}
	settle(&t, t.b, n);
	assert_int_equal(lane_counter(t.a, "path.bad"), 0);
}

/* Two trunks, of which one takes ten times as long: frames overtake each other, none is lost. */
static void skewed_paths(struct sim_case *c, const char *config, uint64_t rate)
{
	const struct sim_link near = {.rate = rate, .delay_ns = 10 * SIM_US};
	const struct sim_link far = {.rate = rate, .delay_ns = 100 * SIM_US};
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT}, .paths = 8};
	struct lane_two t = {.sim = case_sim_seed(c, c->seed)};
	struct sim_trunk *trunk[2];
	uint32_t n = 0;

	trunk[0] = sim_trunk_create(t.sim, 0, FAR, &near, &near);
	trunk[1] = sim_trunk_create(t.sim, 0, FAR, &far, &far);
	t.a = lane_host_create(t.sim, sim_port_create(t.sim, &p), config);
	p.net = FAR;
	t.b = lane_host_create(t.sim, sim_port_create(t.sim, &p), config);
	t.e = lane_up(t.a, t.b);
	for (unsigned int k = 0; k < 12 && n < LANE_MAX_NUMBERS; k++)
		n = busy_ms(&t, t.e, n);
	for (unsigned int i = 0; i < 2; i++)
		assert_true(sim_trunk_stats(trunk[i], 0)->frames > 20);
	sim_run(t.sim, 20 * SIM_MS, NULL, NULL);
	assert_true(lane_exactly_once(t.b, 0, n));
	assert_true(lane_received(t.b) > 500);
	assert_int_equal(lane_counter(t.a, "tx.retransmit.fast"), 0);
	assert_in_range(t.e->lane_ep->retransmits, 0, 2);
	assert_int_equal(lane_counter(t.a, "path.bad"), 0);
}

/* @behaviour R23: Paths of different round trips make no needless retransmissions */
static void paths_of_ten_times_the_round_trip_make_no_retransmissions(struct sim_case *c)
{
	skewed_paths(c, "", SIM_GBIT);
	skewed_paths(c, "CC=delay WINDOW=64k", SIM_GBIT);
	skewed_paths(c, "", 10 * SIM_GBIT);
}

static struct sim_case cases[] = {
	SIM_CASE(a_black_hole_is_left_at_once),
	SIM_CASE(the_end_that_did_not_connect_leaves_it_too),
	SIM_CASE(single_messages_pass_a_black_hole),
	SIM_CASE(acknowledgements_that_vanish_make_a_path_bad),
	SIM_CASE(a_path_that_returns_is_used_again),
	SIM_CASE(a_path_that_flaps_is_probed_ever_more_seldom),
	SIM_CASE(without_configuration_another_path_is_found),
	SIM_CASE(a_bad_path_gets_another_port),
	SIM_CASE(a_black_hole_does_not_stop_a_connect),
	SIM_CASE(one_of_four_trunks_dies),
	SIM_CASE(a_limit_per_flow_is_found_without_configuration),
	SIM_CASE(paths_that_no_longer_help_are_put_back),
	SIM_CASE(on_one_switch_one_path_stays),
	SIM_CASE(idle_connections_open_no_reserve),
	SIM_CASE(an_unanswered_opening_is_tried_again),
	SIM_CASE(when_all_are_silent_none_is_bad),
	SIM_CASE(a_peer_that_was_away_makes_no_path_bad),
	SIM_CASE(paths_of_ten_times_the_round_trip_make_no_retransmissions),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_paths", cases, sizeof(cases) / sizeof(cases[0]));
}
