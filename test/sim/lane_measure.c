/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a raw lane measures of its way while it connects is what the simulated network is made of,
 * at both ends.
 */

#include <string.h>

#include "frame/frame_port.h"
#include "lane_host.h"
#include "reseal.h"
#include "sim_test.h"

#define TIMEOUT (2 * SIM_S)

/* A link's two directions; the net between them adds nothing. */
struct way {
	uint64_t rate, delay_ns;
	double loss;
	uint32_t flags;
};

static struct sim_port *port_of(struct sim *sim, const struct way *w)
{
	const struct sim_link link = {.rate = w->rate, .delay_ns = w->delay_ns, .loss = w->loss};
	const struct sim_port_params p = {
		.up = link,
		.frame_size = 9014,
		.flags = w->flags,
		.bandwidth = 5e9, /* a guess, and wrong */
	};

	return sim_port_create(sim, &p);
}

/* Connect over such a way; what both ends have measured. */
static void measured(struct sim_case *c, uint64_t seed, const struct way *w,
		     struct weft_lane_measured out[2])
{
	struct sim *sim = case_sim_seed(c, seed);
	struct lane_host *a = lane_host_create(sim, port_of(sim, w), NULL);
	struct lane_host *b = lane_host_create(sim, port_of(sim, w), NULL);
	struct lane_end *e = lane_connect(a, b), *p;

	memset(out, 0, 2 * sizeof(*out));
	for (uint64_t t = 0; t < TIMEOUT && !e->up && !e->down; t += SIM_MS)
		sim_run(sim, SIM_MS, NULL, NULL);
	assert_true(e->up);
	p = lane_passive(b);
	assert_non_null(p);
	sim_run(sim, SIM_MS, NULL, NULL);
	assert_true(p->up);
	e->lane_ep->ops->ep_measured(e->lane_ep, &out[0]);
	p->lane_ep->ops->ep_measured(p->lane_ep, &out[1]);
	assert_true(lane_send_all(e, 0, 50, TIMEOUT));
	assert_true(lane_exactly_once(b, 0, 50));
}

static void both_ends_measure_the_networks_way_and_width(struct sim_case *c)
{
	static const struct way ways[] = {
		{.rate = SIM_GBIT, .delay_ns = 5000},
		{.rate = 10 * SIM_GBIT, .delay_ns = 2000},
		{.rate = SIM_GBIT / 10, .delay_ns = 20000},
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct way w = ways[i];
		struct weft_lane_measured is[2];
		/* A small frame of some 90 bytes once, and polls that come every 500 ns. */
		double latency = 1e-9 * (double)w.delay_ns + 8 * 114 / (double)w.rate;

		w.flags = WEFT_FRAME_PORT_MEASURE | WEFT_FRAME_PORT_GUESS;
		measured(c, c->seed + i, &w, is);
		for (int end = 0; end < 2; end++) {
			if (is[end].latency < latency * 0.95 ||
			    is[end].latency > latency * 1.1 + 1e-6)
				fail_msg("way %zu, end %d: %g s, is %g s", i, end, is[end].latency,
					 latency);
			if (is[end].bandwidth < 0.9 * (double)w.rate / 8 ||
			    is[end].bandwidth > 1.01 * (double)w.rate / 8)
				fail_msg("way %zu, end %d: %g bytes/s, is %g", i, end,
					 is[end].bandwidth, (double)w.rate / 8);
		}
	}
}

static void loss_while_measuring_does_not_fail_the_connect(struct sim_case *c)
{
	unsigned int known = 0;

	for (uint64_t seed = 0; seed < 30; seed++) {
		const struct way w = {
			.rate = SIM_GBIT,
			.delay_ns = 5000,
			.loss = seed % 3 * 0.1,
			.flags = WEFT_FRAME_PORT_MEASURE | WEFT_FRAME_PORT_GUESS,
		};
		struct weft_lane_measured is[2];

		measured(c, c->seed + seed, &w, is);
		/* What is known is not wrong: nothing is faster than the way, at least. */
		for (int end = 0; end < 2; end++) {
			assert_true(is[end].latency == 0 || is[end].latency > 5e-6);
			assert_true(is[end].bandwidth < 1.3 * SIM_GBIT / 8);
			known += is[end].latency > 0;
		}
	}
	assert_in_range(known, 20, 60);
}

static void a_way_whose_width_is_known_is_only_timed(struct sim_case *c)
{
	const struct way w = {.rate = SIM_GBIT, .delay_ns = 5000, .flags = WEFT_FRAME_PORT_MEASURE};
	struct weft_lane_measured is[2];

	measured(c, c->seed, &w, is);
	for (int end = 0; end < 2; end++) {
		assert_true(is[end].latency > 5e-6 && is[end].latency < 9e-6);
		assert_true(is[end].bandwidth == 0);
	}
}

/* Each ping takes 500 ns less than the one before, which is less than an eighth. */
static enum sim_verdict shorten(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				void *arg)
{
	const struct weft_frame_hdr *h = reseal_header(data);
	const struct weft_frame_probe *p = (const void *)(h + 1);
	unsigned int *pings = arg;

	(void)room;
	if (!reseal_is_lane(data, *len) || h->type != WEFT_FRAME_PROBE ||
	    weft_get16(p->frame_size) != WEFT_FRAME_PROBE_PING)
		return SIM_PASS;
	++*pings;
	sim_port_up(port)->delay_ns -= 500;
	return SIM_PASS;
}

/* The first one, and 12 that shorten the best round trip by little. */
static void pings_that_hardly_shorten_the_best_are_few(struct sim_case *c)
{
	const struct way w = {
		.rate = SIM_GBIT, .delay_ns = 30000, .flags = WEFT_FRAME_PORT_MEASURE};
	struct sim *sim = case_sim_seed(c, c->seed);
	struct sim_port *pa = port_of(sim, &w), *pb = port_of(sim, &w);
	struct lane_host *a = lane_host_create(sim, pa, NULL);
	struct lane_host *b = lane_host_create(sim, pb, NULL);
	unsigned int pings = 0;
	struct lane_end *e;

	sim_filter(pa, shorten, &pings);
	e = lane_connect(a, b);
	for (uint64_t t = 0; t < TIMEOUT && !e->up && !e->down; t += SIM_MS)
		sim_run(sim, SIM_MS, NULL, NULL);
	assert_true(e->up);
	assert_int_equal(pings, 13);
}

static struct sim_case cases[] = {
	SIM_CASE(both_ends_measure_the_networks_way_and_width),
	SIM_CASE(loss_while_measuring_does_not_fail_the_connect),
	SIM_CASE(pings_that_hardly_shorten_the_best_are_few),
	SIM_CASE(a_way_whose_width_is_known_is_only_timed),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_measure", cases, sizeof(cases) / sizeof(cases[0]));
}
