/* SPDX-License-Identifier: BSD-3-Clause */
/* Two hosts with one IP address: traffic goes on, and the log names both. */

#include <stdio.h>
#include <string.h>

#include "arp_frame.h"
#include "lane_host.h"
#include "sim_test.h"

#define IP_A 0x0a000001u
#define IP_B 0x0a000002u

struct scene {
	struct sim *sim;
	struct sim_port *pa, *pb, *px; /* px: the other host with one of these addresses */
	struct lane_host *a, *b;
	struct lane_end *e;
};

static void is_b_too(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	const struct rte_arp_hdr *arp = arp_frame(data, len);

	(void)arg;
	if (arp_is_request(arp) && arp->arp_data.arp_tip == rte_cpu_to_be_32(IP_B))
		arp_answer(port, sim_port_mac(port), arp);
}

static void open_scene(struct scene *s, struct sim_case *c)
{
	struct sim_port_params p = {
		.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}, .ip = IP_A, .prefix = 24};

	memset(s, 0, sizeof(*s));
	s->sim = case_sim(c);
	s->pa = sim_port_create(s->sim, &p);
	p.ip = IP_B;
	s->pb = sim_port_create(s->sim, &p);
	s->px = sim_port_create(s->sim, &p);
	s->a = lane_host_create(s->sim, s->pa, NULL);
	s->b = lane_host_create(s->sim, s->pb, NULL);
	s->e = lane_up(s->a, s->b);
}

static void assert_log_has_mac(const struct sim_port *port)
{
	const uint8_t *m = sim_port_mac(port);
	char text[18];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4],
		 m[5]);
	if (!strstr(sim_logged(), text))
		fail_msg("%s is not in:\n%s", text, sim_logged());
}

static void claim_a(struct scene *s)
{
	static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	rte_be32_t ip = rte_cpu_to_be_32(IP_A);

	for (unsigned int i = 0; i < 1000; i++) {
		arp_inject(s->px, RTE_ARP_OP_REQUEST, sim_port_mac(s->px), ip, everybody, ip);
		sim_run(s->sim, SIM_MS, NULL, NULL);
	}
}

/* Another host takes a's address. The owner's log reports it, and not a thousand times. */
/*
 * @behaviour X18: two hosts with one IP address: both MAC addresses are logged, at most a few
 * times; traffic continues
 * @behaviour R45
 */
static void a_host_that_takes_our_address_is_named(struct sim_case *c)
{
	static struct scene s;

	open_scene(&s, c);
	sim_log_begin();
	claim_a(&s);
	assert_in_range(sim_log_count("address conflict: 10.0.0.1 "), 1, 10);
	assert_log_has_mac(s.pa);
	assert_log_has_mac(s.px);
	sim_log_end();
	assert_int_equal(lane_counter(s.a, "arp.conflict"), 1000);
	lane_talk(s.e, s.b, 0);
}

/* Nothing else leaves b. */
static enum sim_verdict only_arp(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				 void *arg)
{
	(void)port;
	(void)room;
	(void)arg;
	return arp_frame(data, *len) ? SIM_PASS : SIM_DROP;
}

/* A silence makes a ask for b again, and two answer. */
static void second_b(struct scene *s)
{
	sim_station(s->px, true, is_b_too, s);
	sim_filter(s->pb, only_arp, s);
	assert_true(lane_send(s->e, LANE_SHORT, 1000, 100) >= 0);
	sim_run(s->sim, SIM_S, NULL, NULL);
	sim_filter(s->pb, NULL, NULL);
	sim_run(s->sim, SIM_S, NULL, NULL);
}

/* @behaviour X18, R45 */
static void two_that_have_a_peers_address_are_named(struct sim_case *c)
{
	static struct scene s;

	open_scene(&s, c);
	sim_log_begin();
	second_b(&s);
	assert_true(sim_log_count("address conflict: 10.0.0.2 ") > 0);
	assert_log_has_mac(s.pb);
	assert_log_has_mac(s.px);
	sim_log_end();
	assert_true(lane_counter(s.a, "arp.conflict") > 0);
	lane_talk(s.e, s.b, 0);
}

static struct sim_case cases[] = {
	SIM_CASE(a_host_that_takes_our_address_is_named),
	SIM_CASE(two_that_have_a_peers_address_are_named),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_conflict", cases, sizeof(cases) / sizeof(cases[0]));
}
