/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports that spread frames over their queues by a hash, without flow rules: connections find UDP
 * ports by which their frames come to the right queue at both ends. And what those ports are to
 * firewalls in between.
 */

#include <stdlib.h>
#include <string.h>

#include "frame/frame.h"
#include "lane_host.h"
#include "reseal.h"
#include "sim_test.h"

#define CONFIG "CONNECT_TIMEOUT=8s"
#define ENDS 160

static const struct sim_port_params fast = {
	.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000},
	.bufs = 512,
};

/* A machine: one port, a worker on each of its queues. */
struct machine {
	struct lane_host *worker[SIM_QUEUES_MAX];
	struct sim_port *port[SIM_QUEUES_MAX];
	unsigned int n;
};

static void machine(struct sim *sim, struct machine *m, const struct sim_port_params *p,
		    enum sim_spread how, unsigned int n)
{
	m->n = n;
	if (n == 1)
		m->port[0] = sim_port_create(sim, p);
	else
		sim_port_queues(sim, p, how, n, m->port);
	for (unsigned int q = 0; q < n; q++)
		m->worker[q] = lane_host_create(sim, m->port[q], CONFIG);
}

static uint64_t machine_counter(struct machine *m, const char *name)
{
	uint64_t sum = 0;

	for (unsigned int q = 0; q < m->n; q++)
		sum += lane_counter(m->worker[q], name);
	return sum;
}

struct ends {
	struct lane_end *e[ENDS];
	unsigned int n;
};

static bool all_up(void *arg)
{
	const struct ends *ends = arg;

	for (unsigned int i = 0; i < ends->n; i++)
		if (!ends->e[i]->up)
			return false;
	return true;
}

/* Each worker of one with each of the other, from either side. */
static void connect_all(struct machine *a, struct machine *b, struct ends *ends)
{
	for (unsigned int i = 0; i < a->n; i++)
		for (unsigned int k = 0; k < b->n; k++)
			ends->e[ends->n++] = (i + k) % 2 ? lane_connect(a->worker[i], b->worker[k])
							 : lane_connect(b->worker[k], a->worker[i]);
}

static void expect_up(struct sim *sim, struct ends *ends, uint64_t max_ns)
{
	if (sim_run(sim, max_ns, all_up, ends))
		return;
	for (unsigned int i = 0; i < ends->n; i++)
		if (!ends->e[i]->up)
			fail_msg("no connection: %d %s", ends->e[i]->status, ends->e[i]->text);
}

static void send_all(struct ends *ends, uint32_t each)
{
	for (unsigned int i = 0; i < ends->n; i++)
		assert_true(lane_send_all(ends->e[i], i * each, (i + 1) * each, SIM_S));
}

static unsigned int received(struct machine *m)
{
	unsigned int sum = 0;

	for (unsigned int q = 0; q < m->n; q++) {
		sum += lane_received(m->worker[q]);
		assert_int_equal(lane_wrong(m->worker[q]), 0);
	}
	return sum;
}

/* The other ends send, too: as many as came in. */
static void answer_all(struct machine *m, uint32_t from, uint32_t each)
{
	for (unsigned int q = 0; q < m->n; q++)
		if (lane_num_passive(m->worker[q]))
			assert_true(lane_send_all(lane_passive(m->worker[q]), from + q * each,
						  from + (q + 1) * each, SIM_S));
}

static void steered(struct sim_case *c, enum sim_spread how, unsigned int na, unsigned int nb,
		    uint8_t paths)
{
	struct sim *sim = case_sim_seed(c, c->seed + na * 64 + nb * 8 + how + paths);
	struct sim_port_params p = fast;
	struct machine a, b;
	struct ends ends = {.n = 0};
	uint64_t before;

	p.paths = paths;
	machine(sim, &a, &p, how, na);
	machine(sim, &b, &p, how, nb);
	connect_all(&a, &b, &ends);
	expect_up(sim, &ends, 2 * SIM_S);
	for (unsigned int i = 0; i < ends.n; i++)
		assert_int_equal(ends.e[i]->status, 0);
	/* What was still under way to wrong queues when the last one came up. */
	sim_run(sim, 50 * SIM_MS, NULL, NULL);
	before = machine_counter(&a, "steer.elsewhere") + machine_counter(&b, "steer.elsewhere");
	send_all(&ends, 20);
	answer_all(&a, 10000, 20);
	answer_all(&b, 15000, 20);
	assert_true(received(&a) + received(&b) >= ends.n * 20);
	assert_int_equal(machine_counter(&a, "steer.elsewhere") +
				 machine_counter(&b, "steer.elsewhere"),
			 before);
	assert_int_equal(machine_counter(&a, "drop.not_ours"), 0);
	assert_int_equal(machine_counter(&b, "drop.not_ours"), 0);
	case_end(c);
}

static void every_size(struct sim_case *c, enum sim_spread how)
{
	for (unsigned int na = 1; na <= 4; na++)
		for (unsigned int nb = 1; nb <= 4; nb++)
			steered(c, how, na, nb, (uint8_t)(1 + (na + nb) % 3 * 2));
}

static void expect_text(struct sim_case *c, enum sim_spread how, const char *words)
{
	struct machine m;

	machine(case_sim(c), &m, &fast, how, 2);
	for (unsigned int q = 0; q < 2; q++)
		if (!strstr(lane_iface(m.worker[q])->note, words))
			fail_msg("'%s' is not in '%s'", words, lane_iface(m.worker[q])->note);
	assert_non_null(strstr(lane_iface(m.worker[1])->note, "queue 1 of 2 on UDP port 9339"));
}

static void an_iface_reports_how_frames_find_its_queue(struct sim_case *c)
{
	struct machine m;

	expect_text(c, SIM_SPREAD_RULES, "flow rules");
	expect_text(c, SIM_SPREAD_RSS, "the NIC's hash, which its driver reports");
	expect_text(c, SIM_SPREAD_SECRET, "found by trying");
	machine(case_sim(c), &m, &fast, SIM_SPREAD_RULES, 1);
	assert_null(lane_iface(m.worker[0])->note);
}

static void flow_rules_bring_every_frame_to_its_queue(struct sim_case *c)
{
	every_size(c, SIM_SPREAD_RULES);
}

static void a_hash_that_is_reported_brings_every_frame_to_its_queue(struct sim_case *c)
{
	every_size(c, SIM_SPREAD_RSS);
}

static void a_hash_that_is_not_reported_is_learnt_by_trying(struct sim_case *c)
{
	every_size(c, SIM_SPREAD_SECRET);
}

static void a_hash_that_is_not_as_reported_is_learnt_by_trying(struct sim_case *c)
{
	steered(c, SIM_SPREAD_LIE, 2, 2, 1);
	steered(c, SIM_SPREAD_LIE, 3, 1, 1);
	steered(c, SIM_SPREAD_LIE, 1, 4, 3);
}

static void a_tap_follows_what_was_sent(struct sim_case *c)
{
	every_size(c, SIM_SPREAD_TAP);
}

static void many_queues_at_both_ends(struct sim_case *c)
{
	steered(c, SIM_SPREAD_RSS, 4, 8, 2);
	steered(c, SIM_SPREAD_RSS, 1, 16, 1);
	steered(c, SIM_SPREAD_SECRET, 6, 4, 1);
}

/* 32 peers, some of them with queues, and a loss of one frame in a hundred. */
static void many_peers_reach_every_worker(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	struct sim_port_params p = fast;
	static struct machine peer[32];
	struct ends ends = {.n = 0};
	struct machine m;
	unsigned int sum = 0;

	p.up.loss = 0.01;
	machine(sim, &m, &p, SIM_SPREAD_RSS, 4);
	p.bufs = 256;
	for (unsigned int i = 0; i < 32; i++) {
		machine(sim, &peer[i], &p, i % 2 ? SIM_SPREAD_SECRET : SIM_SPREAD_RSS,
			1 + (i % 8 == 3));
		connect_all(&m, &peer[i], &ends);
	}
	expect_up(sim, &ends, 5 * SIM_S);
	send_all(&ends, 5);
	for (unsigned int i = 0; i < 32; i++)
		sum += received(&peer[i]);
	assert_int_equal(sum + received(&m), ends.n * 5);
}

/* ---- when there is no good port ------------------------------------------------------------- */

static void a_port_that_does_not_spread_works_through_its_first_worker(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	struct ends ends = {.n = 0};
	struct machine a, b;

	machine(sim, &a, &fast, SIM_SPREAD_FIRST, 2);
	machine(sim, &b, &fast, SIM_SPREAD_FIRST, 1);
	ends.e[ends.n++] = lane_connect(b.worker[0], a.worker[1]);
	ends.e[ends.n++] = lane_connect(a.worker[1], b.worker[0]);
	ends.e[ends.n++] = lane_connect(b.worker[0], a.worker[0]);
	expect_up(sim, &ends, 3 * SIM_S);
	send_all(&ends, 50);
	assert_true(lane_exactly_once(a.worker[1], 0, 50));
	assert_true(lane_exactly_once(b.worker[0], 50, 100));
	assert_true(lane_exactly_once(a.worker[0], 100, 150));
	assert_true(lane_counter(a.worker[0], "steer.handed_over") > 0);
	assert_int_equal(lane_counter(a.worker[0], "steer.handed_over"),
			 lane_counter(a.worker[1], "steer.elsewhere"));
	/* An end whose frames go the long way gets a warning; the others do not. */
	assert_int_equal(ends.e[0]->status, 1);
	assert_int_equal(ends.e[1]->status, 1);
	assert_non_null(strstr(ends.e[1]->text, "through another worker of the port"));
	assert_int_equal(lane_passive(a.worker[1])->status, 1);
	assert_int_equal(ends.e[2]->status, 0);
}

/* Only the second queue's worker runs; what comes to the first one's is lost. */
static void queues_that_no_thread_polls_are_avoided(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	struct ends ends = {.n = 0};
	struct machine a, b;

	machine(sim, &a, &fast, SIM_SPREAD_SECRET, 4);
	machine(sim, &b, &fast, SIM_SPREAD_SECRET, 1);
	/* Each side learns the other's MAC address: ARP comes to the first queue. */
	ends.e[ends.n++] = lane_connect(a.worker[1], b.worker[0]);
	expect_up(sim, &ends, 2 * SIM_S);
	lane_host_pause(a.worker[0], 100 * SIM_S);
	lane_host_pause(a.worker[2], 100 * SIM_S);
	lane_host_pause(a.worker[3], 100 * SIM_S);
	ends.e[ends.n++] = lane_connect(a.worker[1], b.worker[0]);
	ends.e[ends.n++] = lane_connect(b.worker[0], a.worker[1]);
	expect_up(sim, &ends, 2 * SIM_S);
	send_all(&ends, 50);
	assert_int_equal(ends.e[1]->status | ends.e[2]->status, 0);
}

/* ---- firewalls ------------------------------------------------------------------------------ */

/* In front of `inside`: lets out everything, and in what answers it, or is for UDP port `open`. */
struct firewall {
	struct sim_port *inside;
	uint16_t open; /* 0 = none */
	uint8_t seen[(1 << 20) / 8];
	unsigned int dropped, passed, tuples;
};

/* Of the inner port and the outer one. */
static uint32_t pair_bit(uint16_t in, uint16_t out)
{
	return (in * 0x9e3779b1u ^ out * 0x85ebca6bu) >> 12;
}

static enum sim_verdict firewall(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				 void *arg)
{
	struct firewall *w = arg;
	uint16_t src, dst;
	uint32_t bit;

	(void)room;
	if (!reseal_is_lane(data, *len))
		return SIM_PASS;
	src = rte_be_to_cpu_16(reseal_udp(data)->src_port);
	dst = rte_be_to_cpu_16(reseal_udp(data)->dst_port);
	if (port == w->inside) {
		bit = pair_bit(src, dst);
		w->tuples += !(w->seen[bit / 8] & 1u << bit % 8);
		w->seen[bit / 8] |= (uint8_t)(1u << bit % 8);
		return SIM_PASS;
	}
	bit = pair_bit(dst, src);
	if (dst == w->open || w->seen[bit / 8] & 1u << bit % 8) {
		w->passed++;
		return SIM_PASS;
	}
	w->dropped++;
	return SIM_DROP;
}

/* Nothing may come in to a, but answers; to b what is for 9338 and answers. */
static void answers_are_answers_to_a_firewall(struct sim_case *c)
{
	struct sim_port_params p = fast;
	struct sim *sim = case_sim(c);
	struct firewall *w = calloc(1, sizeof(*w));
	struct machine a, b;
	struct lane_end *e;
	unsigned int tuples;

	p.paths = 4;
	p.udp_port = 9338;
	machine(sim, &a, &p, SIM_SPREAD_RULES, 1);
	machine(sim, &b, &p, SIM_SPREAD_RULES, 1);
	w->inside = a.port[0];
	sim_filter(a.port[0], firewall, w);
	sim_filter(b.port[0], firewall, w);
	e = lane_up(a.worker[0], b.worker[0]);
	assert_non_null(e);
	assert_int_equal(e->status, 0);
	assert_true(lane_send_all(e, 0, 500, SIM_S));
	assert_true(lane_send_all(lane_passive(b.worker[0]), 1000, 1500, SIM_S));
	assert_true(lane_exactly_once(a.worker[0], 1000, 1500));
	tuples = w->tuples;
	assert_int_equal(w->dropped, 0);
	assert_true(w->passed > 100);
	assert_int_equal(tuples, 4);
	free(w);
}

/* The one rule that doc/clouds.md requires is enough, whichever end connects. */
static void one_rule_for_incoming_frames_is_enough(struct sim_case *c)
{
	struct sim_port_params p = fast;
	struct sim *sim = case_sim(c);
	struct firewall *w = calloc(2, sizeof(*w));
	struct ends ends = {.n = 0};
	struct machine a, b;

	p.paths = 4;
	p.udp_port = 9338;
	machine(sim, &a, &p, SIM_SPREAD_RULES, 1);
	machine(sim, &b, &p, SIM_SPREAD_RULES, 1);
	w[0] = (struct firewall){.inside = a.port[0], .open = 9338};
	sim_filter(a.port[0], firewall, w);
	sim_filter(b.port[0], firewall, w);
	ends.e[ends.n++] = lane_connect(a.worker[0], b.worker[0]);
	ends.e[ends.n++] = lane_connect(b.worker[0], a.worker[0]);
	expect_up(sim, &ends, SIM_S);
	send_all(&ends, 100);
	assert_int_equal(w[0].dropped, 0);
	assert_int_equal(ends.e[0]->status | ends.e[1]->status, 0);
	free(w);
}

/* A firewall passes nothing but 9338 to 9338. */
static enum sim_verdict only_9338(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				  void *arg)
{
	(void)port;
	(void)room;
	(void)arg;
	return !reseal_is_lane(data, *len) || (reseal_udp(data)->src_port == RTE_BE16(9338) &&
					       reseal_udp(data)->dst_port == RTE_BE16(9338))
		       ? SIM_PASS
		       : SIM_DROP;
}

static void paths_without_an_answer_are_left_out(struct sim_case *c)
{
	struct sim_port_params p = fast;
	struct sim *sim = case_sim(c);
	struct machine a, b;
	struct lane_end *e;

	p.paths = 4;
	p.udp_port = 9338;
	machine(sim, &a, &p, SIM_SPREAD_RULES, 1);
	machine(sim, &b, &p, SIM_SPREAD_RULES, 1);
	sim_filter(a.port[0], only_9338, NULL);
	e = lane_up(a.worker[0], b.worker[0]);
	assert_non_null(e);
	assert_int_equal(e->status, 1);
	assert_non_null(strstr(e->text, "1 of 4 paths"));
	assert_true(lane_send_all(e, 0, 500, SIM_S));
	assert_true(lane_send_all(lane_passive(b.worker[0]), 1000, 1500, SIM_S));
	assert_int_equal(lane_counter(a.worker[0], ".frames") > 0, 1);
}

/*
 * The side that wants more decides how many pairs of ports there are; each sends over its own
 * number.
 */
static void each_end_sends_over_as_many_paths_as_it_wants(struct sim_case *c)
{
	struct sim_port_params p = fast;
	struct sim *sim = case_sim(c);
	struct firewall *w = calloc(2, sizeof(*w));
	struct machine a, b;
	struct lane_end *e;

	p.paths = 1;
	p.udp_port = 9338;
	machine(sim, &a, &p, SIM_SPREAD_RULES, 1);
	p.paths = 3;
	machine(sim, &b, &p, SIM_SPREAD_RULES, 1);
	e = lane_up(a.worker[0], b.worker[0]);
	assert_non_null(e);
	/* From here on only what carries data. */
	w[0].inside = a.port[0];
	w[1].inside = b.port[0];
	sim_filter(a.port[0], firewall, &w[0]);
	sim_filter(b.port[0], firewall, &w[1]);
	assert_true(lane_send_all(e, 0, 300, SIM_S));
	assert_int_equal(w[0].tuples, 1);
	assert_int_equal(w[1].tuples, 1); /* acknowledgements go the way that the data came */
	assert_true(lane_send_all(lane_passive(b.worker[0]), 1000, 1300, SIM_S));
	assert_int_equal(w[1].tuples, 3);
	free(w);
}

static struct sim_case cases[] = {
	SIM_CASE(an_iface_reports_how_frames_find_its_queue),
	SIM_CASE(flow_rules_bring_every_frame_to_its_queue),
	SIM_CASE(a_hash_that_is_reported_brings_every_frame_to_its_queue),
	SIM_CASE(a_hash_that_is_not_reported_is_learnt_by_trying),
	SIM_CASE(a_hash_that_is_not_as_reported_is_learnt_by_trying),
	SIM_CASE(a_tap_follows_what_was_sent),
	SIM_CASE(many_queues_at_both_ends),
	SIM_CASE(many_peers_reach_every_worker),
	SIM_CASE(a_port_that_does_not_spread_works_through_its_first_worker),
	SIM_CASE(queues_that_no_thread_polls_are_avoided),
	SIM_CASE(answers_are_answers_to_a_firewall),
	SIM_CASE(one_rule_for_incoming_frames_is_enough),
	SIM_CASE(paths_without_an_answer_are_left_out),
	SIM_CASE(each_end_sends_over_as_many_paths_as_it_wants),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_spread", cases, sizeof(cases) / sizeof(cases[0]));
}
