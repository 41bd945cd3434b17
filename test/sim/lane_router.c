/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A router between the two hosts: other networks, a gateway that answers ARP and forwards.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "arp_frame.h"
#include "frame/arp.h"
#include "lane_host.h"
#include "sim_test.h"

#define CONFIG "CONNECT_TIMEOUT=2s CSUM=crc32c"

#define LEFT 0x0a010001u  /* 10.1.0.1 */
#define RIGHT 0x0a020001u /* 10.2.0.1 */
#define GW_LEFT 0x0a0100feu
#define GW_RIGHT 0x0a0200feu

/* One of the router's two legs. */
struct leg {
	struct sim_port *port;
	struct leg *other;
	uint32_t ip;      /* the gateway's in this net */
	uint32_t host_ip; /* the only host here */
	const uint8_t *host_mac;
	size_t mtu;      /* longer packets are dropped */
	bool deaf;       /* answers no ARP */
	uint32_t nic_ip; /* packets from other addresses are dropped; 0 = none are */
	bool all;        /* answers for every address, as a cloud's virtual network does */
	unsigned int requests, forwarded, dropped;
	uint8_t least_ttl; /* that came in */
};

struct world {
	struct sim *sim;
	struct leg leg[2];
	struct sim_port *port[2];
	struct lane_host *host[2];
};

static void answer_arp(struct leg *leg, const struct rte_arp_hdr *request)
{
	leg->requests += request->arp_data.arp_sip != 0; /* probes request nothing */
	if (!leg->deaf && arp_is_request(request) &&
	    (leg->all || request->arp_data.arp_tip == rte_cpu_to_be_32(leg->ip)))
		arp_answer(leg->port, sim_port_mac(leg->port), request);
}

/* As RFC 1812 wants it: one hop less to live, a new header checksum, the next hop's MAC address. */
static void forward(struct leg *leg, const uint8_t *data, size_t len)
{
	struct leg *out = leg->other;
	uint8_t f[9100];
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(f + RTE_ETHER_HDR_LEN);

	if (len > sizeof(f) || len < RTE_ETHER_HDR_LEN + sizeof(*ip))
		return;
	memcpy(f, data, len);
	if (ip->time_to_live < leg->least_ttl)
		leg->least_ttl = ip->time_to_live;
	if (rte_be_to_cpu_32(ip->dst_addr) != out->host_ip || ip->time_to_live < 2 ||
	    rte_be_to_cpu_16(ip->total_length) > out->mtu ||
	    (leg->nic_ip && rte_be_to_cpu_32(ip->src_addr) != leg->nic_ip)) {
		leg->dropped++;
		return;
	}
	ip->time_to_live--;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	memcpy(f, out->host_mac, 6);
	memcpy(f + 6, sim_port_mac(out->port), 6);
	leg->forwarded++;
	sim_inject(out->port, f, len);
}

static void at_router(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	const struct rte_arp_hdr *arp = arp_frame(data, len);
	struct leg *leg = arg;

	(void)port;
	if (arp)
		answer_arp(leg, arp);
	else if (!memcmp(data, sim_port_mac(leg->port), 6))
		forward(leg, data, len);
}

/* Addresses of the hosts, and what the router has in their networks. */
struct plan {
	uint32_t ip[2], router[2];
	uint8_t prefix;
	bool no_gateway; /* the hosts are given none */
	const struct weft_lane_neigh *neigh[2];
};

/* Host 0 in net 0, host 1 in net 1, a leg of the router in each. */
static void build_as(struct sim_case *c, struct world *w, const struct plan *plan,
		     uint16_t frame_size, size_t mtu)
{
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000},
				    .frame_size = frame_size,
				    .prefix = plan->prefix};
	int i;

	w->sim = case_sim(c);
	for (i = 0; i < 2; i++) {
		p.net = (unsigned int)i;
		p.ip = plan->ip[i];
		p.gateway = plan->no_gateway ? 0 : plan->router[i];
		p.neigh = plan->neigh[i];
		p.num_neigh = plan->neigh[i] != NULL;
		w->port[i] = sim_port_create(w->sim, &p);
		w->leg[i] = (struct leg){.port = sim_port_create(w->sim, &p),
					 .other = &w->leg[1 - i],
					 .ip = plan->router[i],
					 .host_ip = plan->ip[i],
					 .host_mac = sim_port_mac(w->port[i]),
					 .mtu = mtu,
					 .least_ttl = 255};
		sim_station(w->leg[i].port, false, at_router, &w->leg[i]);
		w->host[i] = lane_host_create(w->sim, w->port[i], CONFIG);
	}
}

static void build(struct sim_case *c, struct world *w, uint16_t frame_size, size_t mtu)
{
	static const struct plan plan = {
		.ip = {LEFT, RIGHT}, .router = {GW_LEFT, GW_RIGHT}, .prefix = 24};

	build_as(c, w, &plan, frame_size, mtu);
}

static void hosts_of_two_networks_reach_each_other(struct sim_case *c)
{
	struct world w;
	struct lane_end *e;

	build(c, &w, 0, 9000);
	e = lane_connect(w.host[0], w.host[1]);
	if (!sim_run(w.sim, SIM_S, lane_is_up, e))
		fail_msg("no connection: %s", e->text);
	assert_true(lane_send_all(e, 0, 200, SIM_S));
	assert_true(lane_exactly_once(w.host[1], 0, 200));
	assert_true(lane_send_all(lane_passive(w.host[1]), 300, 500, SIM_S));
	assert_true(lane_exactly_once(w.host[0], 300, 500));
	/*
	 * All of it went through the router, which was asked for by both: the other answers to no
	 * MAC address but the one that ARP names. */
	assert_true(w.leg[0].forwarded > 20 && w.leg[1].forwarded > 20);
	assert_int_equal(w.leg[0].dropped + w.leg[1].dropped, 0);
	assert_int_equal(w.leg[0].requests, 1);
	assert_int_equal(w.leg[1].requests, 1);
	/* Other routers may follow. */
	assert_in_range(w.leg[0].least_ttl, 32, 255);
	assert_in_range(w.leg[1].least_ttl, 32, 255);
}

static void loss_behind_a_router_is_made_good(struct sim_case *c)
{
	const struct sim_link bad = {.rate = 10 * SIM_GBIT,
				     .delay_ns = 5000,
				     .loss = 0.02,
				     .dup = 0.02,
				     .reorder = 0.05,
				     .corrupt = 0.01};
	struct world w;
	struct lane_end *e;

	build(c, &w, 0, 9000);
	sim_link_set(w.leg[0].port, w.leg[1].port, &bad);
	e = lane_connect(w.host[0], w.host[1]);
	assert_true(sim_run(w.sim, 2 * SIM_S, lane_is_up, e));
	assert_true(lane_send_all(e, 0, 2000, 10 * SIM_S));
	assert_true(lane_exactly_once(w.host[1], 0, 2000));
	assert_int_equal(lane_wrong(w.host[1]), 0);
}

static void a_router_that_does_not_answer_is_named(struct sim_case *c)
{
	struct world w;
	struct lane_end *e;

	build(c, &w, 0, 9000);
	w.leg[0].deaf = true;
	e = lane_connect(w.host[0], w.host[1]);
	assert_true(sim_run(w.sim, 4 * SIM_S, lane_has_failed, e));
	assert_int_equal(e->status, -ETIMEDOUT);
	if (!strstr(e->text, "10.1.0.254") || !strstr(e->text, "10.2.0.1"))
		fail_msg("names the gateway and whom it was wanted for: %s", e->text);
	assert_int_equal(w.leg[0].forwarded, 0);
}

/* Hosts with big frames, a path between that carries small ones and says nothing about it. */
static void a_narrow_way_behind_a_router_is_found(struct sim_case *c)
{
	struct world w;
	struct lane_end *e;

	build(c, &w, 9014, 1500);
	e = lane_connect(w.host[0], w.host[1]);
	assert_true(sim_run(w.sim, 4 * SIM_S, lane_is_up, e));
	assert_true(lane_max(e, LANE_BCOPY) <= 1514);
	assert_true(lane_send_all(e, 0, 100, 5 * SIM_S));
	assert_true(lane_exactly_once(w.host[1], 0, 100));
}

/* What the clouds' networks carry between hosts that believe in 9001, and under loss. */
/* @behaviour X7 */
static void what_clouds_carry_is_found(struct sim_case *c)
{
	static const unsigned int mtu[] = {9000, 8896, 8500, 3900, 1500, 1460, 1400, 1280};
	struct sim_link bad = {.rate = 10 * SIM_GBIT, .delay_ns = 5000};
	struct lane_end *e;
	struct world w;
	char used[40];
	size_t i;

	for (i = 0; i < 2 * sizeof(mtu) / sizeof(mtu[0]); i++) {
		unsigned int m = mtu[i / 2];

		build(c, &w, 9015, m);
		bad.loss = i % 2 ? 0.1 : 0;
		sim_link_set(w.leg[0].port, w.leg[1].port, &bad);
		e = lane_connect(w.host[0], w.host[1]);
		if (!sim_run(w.sim, SIM_S, lane_is_up, e))
			fail_msg("MTU %u: no connection: %s", m, e->text);
		snprintf(used, sizeof(used), "so %u are used", m + 14);
		if (!strstr(e->text, used))
			fail_msg("MTU %u: not '%s': %s", m, used, e->text);
		assert_true(lane_send_all(e, 0, 100, 10 * SIM_S));
		assert_true(lane_exactly_once(w.host[1], 0, 100));
	}
}

static void set_mtu(struct world *w, size_t mtu)
{
	w->leg[0].mtu = w->leg[1].mtu = mtu;
}

/* @p reason: the last one reported to the sender. */
static void goes_on(struct world *w, struct lane_end *e, uint32_t from, const char *reason)
{
	lane_talk(e, w->host[1], from);
	if (reason && !strstr(e->text, reason))
		fail_msg("not '%s': %s", reason, e->text);
}

/* In mid-transfer the way goes through ever narrower networks, and then through wide ones again. */
/* @behaviour X20, R46 */
static void a_way_that_changes_its_mtu_is_followed(struct sim_case *c)
{
	struct lane_end *e;
	struct world w;
	uint32_t i;

	build(c, &w, 9014, 9000);
	e = lane_up(w.host[0], w.host[1]);
	goes_on(&w, e, 0, NULL);
	for (i = 1000; i < 1050; i++)
		while (lane_send(e, LANE_BCOPY, i, 8000) < 0)
			sim_run(w.sim, SIM_US, NULL, NULL);
	set_mtu(&w, 1500);
	goes_on(&w, e, 2000, NULL);
	assert_true(lane_exactly_once(w.host[1], 1000, 1050));
	sim_run(w.sim, SIM_S, NULL, NULL);
	goes_on(&w, e, 3000, "so 1514 are used");
	set_mtu(&w, 1400);
	goes_on(&w, e, 4000, NULL);
	sim_run(w.sim, SIM_S, NULL, NULL);
	goes_on(&w, e, 5000, "so 1414 are used");
	set_mtu(&w, 9000);
	sim_run(w.sim, 20 * SIM_S, NULL, NULL);
	goes_on(&w, e, 6000, "frames of 9014 bytes reach");
	assert_int_equal(lane_counter(w.host[0], "mtu.lower"), 2);
	assert_int_equal(lane_counter(w.host[0], "mtu.higher"), 1);
}

/* Another gateway takes over, with a MAC address of its own. */
/*
 * @behaviour X22: a gateway is replaced by another one, with another MAC address
 * @behaviour R45: A peer, or a gateway, that is behind another MAC address is found and proven; two
 * hosts with one address are named
 */
static void a_gateway_with_another_mac_is_found(struct sim_case *c)
{
	struct lane_end *e;
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}, .prefix = 24};
	struct sim_port *old;
	struct world w;

	build(c, &w, 9014, 9000);
	e = lane_up(w.host[0], w.host[1]);
	goes_on(&w, e, 0, NULL);
	old = w.leg[0].port;
	w.leg[0].port = sim_port_create(w.sim, &p);
	sim_station(old, false, sim_ignore, NULL);
	sim_station(w.leg[0].port, false, at_router, &w.leg[0]);
	goes_on(&w, e, 1000, NULL);
	assert_int_equal(lane_counter(w.host[0], "mac.changed"), 1);
}

/* Without a gateway the other network is refused at once, with the way out. */
static void another_network_without_a_gateway_is_refused(struct sim_case *c)
{
	struct sim_port_params p = {.ip = LEFT, .prefix = 24};
	struct sim *sim = case_sim(c);
	struct lane_host *a = lane_host_create(sim, sim_port_create(sim, &p), CONFIG), *b;
	struct weft_lane_iface *ai = lane_iface(a), *bi;
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	char why[300] = "";

	p.ip = RIGHT;
	b = lane_host_create(sim, sim_port_create(sim, &p), CONFIG);
	bi = lane_iface(b);
	bi->ops->get_address(bi, addr);
	assert_int_equal(ai->ops->is_reachable(ai, addr, bi->attr.dev_addr_len, why, sizeof(why)),
			 -EHOSTUNREACH);
	assert_non_null(strstr(why, "gw="));
}

/*
 * ---- clouds: both hosts in one network, on which nothing but the fabric hears them ------------
 */

#define CLOUD_A 0x0a800002u /* 10.128.0.2 */
#define CLOUD_B 0x0a800003u
#define CLOUD_GW 0x0a800001u

static void both_ways(struct world *w)
{
	struct lane_end *e = lane_connect(w->host[0], w->host[1]);

	if (!sim_run(w->sim, SIM_S, lane_is_up, e))
		fail_msg("no connection: %s", e->text);
	assert_true(lane_send_all(e, 0, 200, SIM_S));
	assert_true(lane_exactly_once(w->host[1], 0, 200));
	assert_true(lane_send_all(lane_passive(w->host[1]), 300, 500, SIM_S));
	assert_true(lane_exactly_once(w->host[0], 300, 500));
}

/* ARP is answered for the gateway only: hosts have /32, and everything goes through it. */
static void a_gateway_outside_the_prefix_is_on_the_link(struct sim_case *c)
{
	static const struct plan plan = {
		.ip = {CLOUD_A, CLOUD_B}, .router = {CLOUD_GW, CLOUD_GW}, .prefix = 32};
	struct world w;

	build_as(c, &w, &plan, 0, 9000);
	both_ways(&w);
	assert_int_equal(w.leg[0].requests, 1);
}

/* The same network with the prefix that the subnet has: the error says what to give. */
/* @behaviour X8 */
static void a_peer_that_only_the_gateway_answers_for_is_reported(struct sim_case *c)
{
	static const struct plan plan = {
		.ip = {CLOUD_A, CLOUD_B}, .router = {CLOUD_GW, CLOUD_GW}, .prefix = 20};
	struct world w;
	struct lane_end *e;

	build_as(c, &w, &plan, 0, 9000);
	e = lane_connect(w.host[0], w.host[1]);
	assert_true(sim_run(w.sim, 4 * SIM_S, lane_has_failed, e));
	assert_int_equal(e->status, -ETIMEDOUT);
	if (!strstr(e->text, "10.128.0.3") || !strstr(e->text, "ip=ADDRESS/32 and gw="))
		fail_msg("says what to give: %s", e->text);
}

/* An unrequested reply of the fabric: @p ip is here. */
static void claim(struct leg *leg, const uint8_t *host_mac, uint32_t ip)
{
	arp_inject(leg->port, RTE_ARP_OP_REPLY, sim_port_mac(leg->port), rte_cpu_to_be_32(ip),
		   host_mac, rte_cpu_to_be_32(ip));
}

/* One MAC answers for everybody, the hosts' own addresses included: no conflict. */
static void one_mac_that_answers_all_arp_works(struct sim_case *c)
{
	static const struct plan plan = {.ip = {CLOUD_A, CLOUD_B},
					 .router = {CLOUD_GW, CLOUD_GW},
					 .prefix = 24,
					 .no_gateway = true};
	struct world w;

	build_as(c, &w, &plan, 0, 9000);
	w.leg[0].all = true;
	w.leg[1].all = true;
	both_ways(&w);
	claim(&w.leg[0], sim_port_mac(w.port[0]), CLOUD_A);
	sim_run(w.sim, 10 * SIM_MS, NULL, NULL);
	assert_int_equal(lane_counter(w.host[0], "arp.conflict"), 0);
	assert_int_equal(lane_counter(w.host[1], "arp.conflict"), 0);
}

/* The fabric answers ARP to anybody, and carries nothing from an address that is not the NIC's. */
static void an_address_that_is_unknown_to_the_cloud_is_named(struct sim_case *c)
{
	static const struct plan plan = {.ip = {CLOUD_A, CLOUD_B},
					 .router = {CLOUD_GW, CLOUD_GW},
					 .prefix = 24,
					 .no_gateway = true};
	struct lane_end *e;
	struct world w;

	build_as(c, &w, &plan, 0, 9000);
	for (int i = 0; i < 2; i++) {
		w.leg[i].all = true;
		w.leg[i].nic_ip = plan.ip[i];
	}
	both_ways(&w);
	/* The same, but that one end believes in another address than its NIC's. */
	build_as(c, &w, &plan, 0, 9000);
	for (int i = 0; i < 2; i++) {
		w.leg[i].all = true;
		w.leg[i].nic_ip = CLOUD_B;
	}
	e = lane_connect(w.host[0], w.host[1]);
	assert_true(sim_run(w.sim, 4 * SIM_S, lane_has_failed, e));
	assert_int_equal(e->status, -ETIMEDOUT);
	assert_true(w.leg[0].requests > 0 && w.leg[0].dropped > 0);
	assert_int_equal(w.leg[0].forwarded, 0);
	if (!strstr(e->text, "no answer from 10.128.0.3") ||
	    !strstr(e->text, "that ip=10.128.0.2 is this NIC's own (clouds drop others)"))
		fail_msg("says what may be wrong: %s", e->text);
}

/* Without any ARP: the initiator is configured with the MAC of its next hop, and requests none. */
static void static_neighbours_need_no_arp(struct sim_case *c)
{
	static struct weft_lane_neigh hop = {.ip = CLOUD_B};
	static const struct plan plan = {.ip = {CLOUD_A, CLOUD_B},
					 .router = {CLOUD_GW, CLOUD_GW},
					 .prefix = 32,
					 .no_gateway = true,
					 .neigh = {&hop, NULL}};
	struct world w;
	int i;

	/*
	 * The port's MAC is known once it is there; the lane opens with build_as() and asks later.
	 */
	hop.mac[0] = 2;
	build_as(c, &w, &plan, 0, 9000);
	assert_memory_not_equal(hop.mac, sim_port_mac(w.leg[0].port), 6);
	lane_host_close(w.host[0]);
	memcpy(hop.mac, sim_port_mac(w.leg[0].port), 6);
	w.host[0] = lane_host_create(w.sim, w.port[0], CONFIG);
	for (i = 0; i < 2; i++)
		w.leg[i].deaf = true;
	both_ways(&w);
	assert_int_equal(w.leg[0].requests + w.leg[1].requests, 0);
}

/* On a NIC of a network, without ip=: the failed connection says what to give. */
/* @behaviour X8 */
static void a_lane_without_ip_is_refused_with_the_remedy(struct sim_case *c)
{
	static const struct plan plan = {.prefix = 0, .no_gateway = true};
	struct world w;
	struct lane_end *e;

	build_as(c, &w, &plan, 0, 9000);
	e = lane_connect(w.host[0], w.host[1]);
	assert_true(sim_run(w.sim, 4 * SIM_S, lane_has_failed, e));
	assert_int_equal(e->status, -ETIMEDOUT);
	if (!strstr(e->text, "without ip=") || !strstr(e->text, "weft-info --lane-options"))
		fail_msg("says what to give: %s", e->text);
}

static struct sim_case cases[] = {
	SIM_CASE(hosts_of_two_networks_reach_each_other),
	SIM_CASE(loss_behind_a_router_is_made_good),
	SIM_CASE(a_router_that_does_not_answer_is_named),
	SIM_CASE(a_narrow_way_behind_a_router_is_found),
	SIM_CASE(what_clouds_carry_is_found),
	SIM_CASE(a_way_that_changes_its_mtu_is_followed),
	SIM_CASE(a_gateway_with_another_mac_is_found),
	SIM_CASE(another_network_without_a_gateway_is_refused),
	SIM_CASE(a_gateway_outside_the_prefix_is_on_the_link),
	SIM_CASE(a_peer_that_only_the_gateway_answers_for_is_reported),
	SIM_CASE(one_mac_that_answers_all_arp_works),
	SIM_CASE(an_address_that_is_unknown_to_the_cloud_is_named),
	SIM_CASE(static_neighbours_need_no_arp),
	SIM_CASE(a_lane_without_ip_is_refused_with_the_remedy),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_router", cases, sizeof(cases) / sizeof(cases[0]));
}
