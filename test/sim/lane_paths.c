/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lane of several paths (doc/multipath.md), of which some carry nothing, or carry it slowly.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lane_host.h"
#include "reseal.h"
#include "sim_test.h"

#define PATHS 4
#define FAR 1

struct two {
	struct sim *sim;
	struct sim_port *pa, *pb;
	struct lane_host *a, *b;
	struct lane_end *e;
};

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

static struct two connected(struct sim_case *c, const char *config)
{
	struct two t = {.sim = case_sim_seed(c, c->seed)};

	t.pa = sim_port_create(t.sim, &fast);
	t.pb = sim_port_create(t.sim, &fast);
	t.a = lane_host_create(t.sim, t.pa, config);
	t.b = lane_host_create(t.sim, t.pb, config);
	t.e = lane_up(t.a, t.b);
	assert_non_null(t.e);
	return t;
}

/* As much as goes in one millisecond. @return the next number */
static uint32_t busy_ms(struct two *t, struct lane_end *e, uint32_t n)
{
	for (unsigned int k = 0; k < 100; k++) {
		while (n < LANE_MAX_NUMBERS &&
		       lane_send(e, LANE_BCOPY, n, lane_max(e, LANE_BCOPY)) >= 0)
			n++;
		sim_run(t->sim, 10 * SIM_US, NULL, NULL);
	}
	return n;
}

static void settle(struct two *t, struct lane_host *to, uint32_t n)
{
	assert_true(n < LANE_MAX_NUMBERS);
	sim_run(t->sim, 200 * SIM_MS, NULL, NULL);
	assert_true(lane_exactly_once(to, 0, n));
}

/* One of four paths loses all, in one direction or both, whoever connected. */
static void black_hole(struct sim_case *c, const char *config, bool back, bool passive)
{
	struct two t = connected(c, config);
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

static void a_black_hole_is_left_at_once(struct sim_case *c)
{
	black_hole(c, "WINDOW=64k", true, false);
	black_hole(c, "WINDOW=64k", false, false);
	black_hole(c, "CC=delay WINDOW=64k", true, false);
}

static void the_end_that_did_not_connect_leaves_it_too(struct sim_case *c)
{
	black_hole(c, "WINDOW=64k", true, true);
	black_hole(c, "CC=delay WINDOW=64k", false, true);
}

/* Messages one at a time, of which none may wait long. */
static uint64_t slowest(struct two *t, uint32_t from, uint32_t to)
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

static void single_messages_pass_a_black_hole(struct sim_case *c)
{
	for (unsigned int lost = 0; lost < PATHS; lost++) {
		struct two t = connected(c, "WINDOW=64k");
		struct eater e = {.all_types = true};

		sim_filter(t.pa, eat, &e);
		slowest(&t, 0, 100);
		e.lost = 1u << lost;
		assert_true(slowest(&t, 100, 200) < 5 * SIM_MS);
		assert_true(slowest(&t, 200, 300) < 100 * SIM_US);
		assert_true(lane_exactly_once(t.b, 0, 300));
	}
}

/* What is sent arrives, but no acknowledgement comes back over that path. */
static void acknowledgements_that_vanish_make_a_path_bad(struct sim_case *c)
{
	for (unsigned int lost = 0; lost < PATHS; lost++) {
		struct two t = connected(c, "WINDOW=64k");
		struct eater e = {.all_types = true};

		sim_filter(t.pb, eat, &e);
		slowest(&t, 0, 100);
		e.lost = 1u << lost;
		assert_true(slowest(&t, 100, 200) < 5 * SIM_MS);
		assert_true(slowest(&t, 200, 300) < 100 * SIM_US);
	}
}

static void a_path_that_returns_is_used_again(struct sim_case *c)
{
	struct two t = connected(c, "WINDOW=64k");
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
static void a_path_that_flaps_is_asked_ever_more_seldom(struct sim_case *c)
{
	struct two t = connected(c, "WINDOW=64k");
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

/* Nobody else proves anything: the peer is silent, and no path is blamed. */
static void when_all_are_silent_none_is_bad(struct sim_case *c)
{
	struct two t = connected(c, "WINDOW=64k");
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

static void a_peer_that_was_away_makes_no_path_bad(struct sim_case *c)
{
	struct two t = connected(c, "WINDOW=64k");
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
	struct two t = {.sim = case_sim_seed(c, c->seed)};
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
	SIM_CASE(a_path_that_flaps_is_asked_ever_more_seldom),
	SIM_CASE(when_all_are_silent_none_is_bad),
	SIM_CASE(a_peer_that_was_away_makes_no_path_bad),
	SIM_CASE(paths_of_ten_times_the_round_trip_make_no_retransmissions),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_paths", cases, sizeof(cases) / sizeof(cases[0]));
}
