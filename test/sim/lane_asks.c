/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames that carry no messages, on a lane of several paths: path 0 is one as any other, what is
 * lost is said again, and watching over the paths costs little.
 */

#include <string.h>

#include "lane_host.h"
#include "reseal.h"
#include "sim_test.h"

#define PATHS 4
#define NARROW 1414u

struct way {
	unsigned int lost; /* bit k: frames of path k */
	unsigned int uses; /* frames with USE that are lost from now on */
	bool first_use;    /* the next USE is lost, of whichever path */
	bool no_over;      /* OVER is lost: paths come back with ports of their own alone */
	unsigned int use_of[PATHS];
	uint32_t max_frame; /* longer ones are lost; 0 = none are */
	unsigned int byes, bye_acks, used;
	uint16_t ports[64]; /* ports that PATH came from */
	unsigned int num_ports;
};

static bool is_probe(const struct weft_frame_hdr *h, uint16_t kind)
{
	const struct weft_frame_probe *p = (const struct weft_frame_probe *)(h + 1);

	return h->type == WEFT_FRAME_PROBE && weft_get16(p->frame_size) == kind;
}

static void note_port(struct way *w, uint16_t port)
{
	for (unsigned int i = 0; i < w->num_ports; i++)
		if (w->ports[i] == port)
			return;
	if (w->num_ports < RTE_DIM(w->ports))
		w->ports[w->num_ports++] = port;
}

static enum sim_verdict look(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
			     void *arg)
{
	const struct weft_frame_hdr *h = reseal_header(data);
	struct way *w = arg;

	(void)port;
	(void)room;
	if (!reseal_is_lane(data, *len))
		return SIM_PASS;
	w->byes += h->type == WEFT_FRAME_BYE;
	w->bye_acks += h->type == WEFT_FRAME_BYE_ACK;
	if (is_probe(h, WEFT_FRAME_PROBE_PATH))
		note_port(w, reseal_udp(data)->src_port);
	if (is_probe(h, WEFT_FRAME_PROBE_USE)) {
		w->used++;
		w->use_of[h->path % PATHS]++;
		if (w->first_use) {
			w->first_use = false;
			return SIM_DROP;
		}
		if (w->uses > 0) {
			w->uses--;
			return SIM_DROP;
		}
	}
	if (w->no_over && is_probe(h, WEFT_FRAME_PROBE_OVER))
		return SIM_DROP;
	if (w->max_frame != 0 && *len > w->max_frame)
		return SIM_DROP;
	return w->lost >> h->path & 1 ? SIM_DROP : SIM_PASS;
}

static const struct sim_port_params four = {.up = {.rate = SIM_GBIT, .delay_ns = 5000},
					    .paths = PATHS};

/* Path 0 carries nothing any more, and both ends have found out. */
static struct lane_two without_path_0(struct sim_case *c, struct way *here, struct way *there)
{
	struct lane_two t = lane_two_up(c, four, NULL);

	*here = *there = (struct way){.lost = 1};
	sim_filter(t.pa, look, here);
	sim_filter(t.pb, look, there);
	assert_true(lane_send_all(t.e, 0, 500, 5 * SIM_S));
	assert_true(lane_send_all(lane_passive(t.b), 0, 500, 5 * SIM_S));
	return t;
}

/*
 * @behaviour R26: No frame needs path 0: terminations, narrow paths and lost requests are handled
 * over the other paths; monitoring of paths costs little
 */
static void an_end_is_acknowledged_without_path_0(struct sim_case *c)
{
	struct way here, there;
	struct lane_two t = without_path_0(c, &here, &there);

	lane_destroy(t.e);
	sim_run(t.sim, 3 * SIM_S, NULL, NULL);
	assert_true(lane_passive(t.b)->gone);
	/* By the second one, if the first was on its way over path 0. */
	assert_in_range(here.byes, 1, 2);
	assert_in_range(there.bye_acks, 1, 2);
}

/* @behaviour R26 */
static void a_narrow_path_is_found_without_path_0(struct sim_case *c)
{
	struct way here, there;
	struct lane_two t = without_path_0(c, &here, &there);

	here.max_frame = there.max_frame = NARROW;
	assert_true(lane_send_all(t.e, 1000, 1200, 5 * SIM_S));
	assert_true(lane_exactly_once(t.b, 1000, 1200));
	sim_run(t.sim, SIM_S, NULL, NULL);
	assert_int_equal(lane_counter(t.a, "mtu.lower"), 1);
	assert_true(lane_max(t.e, LANE_BCOPY) > NARROW - 150);
	assert_true(lane_send_all(t.e, 2000, 2200, SIM_S));
	assert_int_equal(t.e->downs + lane_passive(t.b)->downs, 0);
}

/* One port is enough: what asks for it is said again, not another port tried. */
/* @behaviour R26 */
static void a_lost_use_is_sent_again(struct sim_case *c)
{
	static const struct sim_port_params one = {.up = {.rate = SIM_GBIT, .delay_ns = 5000}};
	struct lane_two t = lane_two_up(c, one, NULL);
	struct way here = {.uses = 2}, there = {0};

	sim_filter(t.pa, look, &here);
	sim_filter(t.pb, look, &there);
	assert_true(lane_send_all(t.e, 0, 200, SIM_S));
	sim_run(t.sim, 10 * SIM_S, NULL, NULL);
	assert_int_equal(lane_counter(t.a, "path.opened"), 1);
	assert_int_equal(lane_counter(t.b, "path.opened"), 1);
	assert_int_equal(here.num_ports, 1);
	assert_int_equal(here.used, 3);
}

static bool all_back(void *arg)
{
	return lane_counter(arg, "path.back") == PATHS - 1;
}

/* What is said of one path is not older than what is said of another. */
/* @behaviour R21 */
static void paths_that_return_together_do_not_wait_for_each_other(struct sim_case *c)
{
	struct lane_two t = lane_two_up(c, four, NULL);
	struct way here = {.lost = 0xe, .no_over = true}, there = here;

	sim_filter(t.pa, look, &here);
	sim_filter(t.pb, look, &there);
	assert_true(lane_send_all(t.e, 0, 500, 5 * SIM_S));
	sim_run(t.sim, 5 * SIM_S, NULL, NULL);
	assert_int_equal(lane_counter(t.a, "path.bad"), PATHS - 1);
	here.lost = there.lost = 0;
	here.first_use = true;
	assert_true(sim_run(t.sim, 10 * SIM_S, all_back, t.a));
	sim_run(t.sim, 100 * SIM_MS, NULL, NULL);
	assert_int_equal(here.used, PATHS);
	for (unsigned int k = 1; k < PATHS; k++)
		assert_in_range(here.use_of[k], 1, 2);
	assert_true(lane_send_all(t.e, 1000, 1200, SIM_S));
}

/* Of a thousand frames under way those that may be late are looked at. */
/* @behaviour R26 */
static void watching_the_paths_costs_little(struct sim_case *c)
{
	static const struct sim_port_params far = {
		.up = {.rate = 10 * SIM_GBIT, .delay_ns = 300 * SIM_US}, .paths = PATHS};
	struct lane_two t = lane_two_up(c, far, "CC=delay");
	uint64_t sent, looks;
	uint32_t n = 0;

	for (unsigned int k = 0; k < 2000; k++) {
		while (n < LANE_MAX_NUMBERS - 1 &&
		       lane_send(t.e, LANE_BCOPY, n, lane_max(t.e, LANE_BCOPY)) >= 0)
			n++;
		sim_run(t.sim, 10 * SIM_US, NULL, NULL);
	}
	sim_run(t.sim, 100 * SIM_MS, NULL, NULL);
	sent = lane_counter(t.a, "tx.data");
	looks = lane_counter(t.a, "path.looks");
	assert_true(sent > 5000);
	if (looks > sent / 2)
		fail_msg("%lu frames, %lu looks", sent, looks);
}

static struct sim_case cases[] = {
	SIM_CASE(an_end_is_acknowledged_without_path_0),
	SIM_CASE(a_narrow_path_is_found_without_path_0),
	SIM_CASE(a_lost_use_is_sent_again),
	SIM_CASE(paths_that_return_together_do_not_wait_for_each_other),
	SIM_CASE(watching_the_paths_costs_little),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_asks", cases, sizeof(cases) / sizeof(cases[0]));
}
