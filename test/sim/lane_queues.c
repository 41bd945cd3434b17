/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Several workers on one port, each with a queue of its own: flow rules steer UDP ports, and
 * everything else, ARP above all, comes to the first queue.
 */

#include <errno.h>

#include "arp_frame.h"
#include "icmp_frame.h"
#include "lane_host.h"
#include "sim_test.h"

#define CONFIG "CONNECT_TIMEOUT=2s"

struct world {
	struct sim *sim;
	struct lane_host *queue[2]; /* of one port */
	struct lane_host *peer;
	struct sim_port *peer_port, *queue_port[2];
};

static struct world world_with(struct sim_case *c, uint32_t peer_ip, uint32_t ip)
{
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}, .ip = peer_ip};
	struct world w = {.sim = case_sim(c)};

	w.peer_port = sim_port_create(w.sim, &p);
	p.ip = ip;
	w.peer = lane_host_create(w.sim, w.peer_port, CONFIG);
	sim_port_queues(w.sim, &p, SIM_SPREAD_RULES, 2, w.queue_port);
	w.queue[0] = lane_host_create(w.sim, w.queue_port[0], CONFIG);
	w.queue[1] = lane_host_create(w.sim, w.queue_port[1], CONFIG);
	return w;
}

static struct world world(struct sim_case *c)
{
	return world_with(c, 0, 0);
}

static void a_worker_on_another_queue_finds_a_peer(struct sim_case *c)
{
	struct world w = world(c);
	struct lane_end *e = lane_connect(w.queue[1], w.peer);

	if (!sim_run(w.sim, SIM_S, lane_is_up, e))
		fail_msg("no connection: %s", e->text);
	/* The reply came to the first one, which had requested nothing. */
	assert_int_equal(lane_counter(w.queue[1], "arp.received"), 0);
	assert_true(lane_counter(w.queue[0], "arp.received") > 0);
	assert_true(e->up_at < 20 * SIM_MS);
	assert_true(lane_send_all(e, 0, 100, SIM_S));
	assert_true(lane_exactly_once(w.peer, 0, 100));
	assert_true(lane_send_all(lane_passive(w.peer), 200, 300, SIM_S));
	assert_true(lane_exactly_once(w.queue[1], 200, 300));
	assert_int_equal(lane_received(w.queue[0]), 0);
}

static void both_find_it_by_one_question(struct sim_case *c)
{
	struct world w = world(c);
	struct lane_end *a = lane_connect(w.queue[0], w.peer),
			*b = lane_connect(w.queue[1], w.peer);

	assert_true(sim_run(w.sim, SIM_S, lane_is_up, a));
	assert_true(sim_run(w.sim, SIM_S, lane_is_up, b));
	assert_int_equal(lane_counter(w.queue[0], "arp.requests") +
				 lane_counter(w.queue[1], "arp.requests"),
			 1);
	assert_true(lane_send_all(a, 0, 100, SIM_S));
	assert_true(lane_send_all(b, 100, 200, SIM_S));
	assert_true(lane_exactly_once(w.peer, 0, 200));
}

static void a_peer_finds_both(struct sim_case *c)
{
	struct world w = world(c);
	struct lane_end *a = lane_connect(w.peer, w.queue[0]),
			*b = lane_connect(w.peer, w.queue[1]);

	assert_true(sim_run(w.sim, SIM_S, lane_is_up, a));
	assert_true(sim_run(w.sim, SIM_S, lane_is_up, b));
	assert_true(lane_send_all(a, 0, 100, SIM_S));
	assert_true(lane_send_all(b, 200, 300, SIM_S));
	assert_true(lane_exactly_once(w.queue[0], 0, 100));
	assert_true(lane_exactly_once(w.queue[1], 200, 300));
}

/* The first queue is not polled meanwhile: the others' requests are answered when it is. */
static void a_first_worker_that_computes_delays_and_does_not_lose_answers(struct sim_case *c)
{
	struct world w = world(c);
	struct lane_end *e;

	lane_host_pause(w.queue[0], 500 * SIM_MS);
	e = lane_connect(w.queue[1], w.peer);
	assert_false(sim_run(w.sim, 490 * SIM_MS, lane_is_up, e));
	assert_true(sim_run(w.sim, SIM_S, lane_is_up, e));
}

/* What one worker took for gone the other asks for anew. */
static void an_address_that_one_gives_up_is_requested_again(struct sim_case *c)
{
	struct world w = world(c);
	struct lane_end *e = lane_connect(w.queue[1], w.peer);
	uint64_t requests;

	assert_true(sim_run(w.sim, SIM_S, lane_is_up, e));
	requests =
		lane_counter(w.queue[0], "arp.requests") + lane_counter(w.queue[1], "arp.requests");
	lane_host_pause(w.peer, 5 * SIM_S);
	e = lane_connect(w.queue[1], w.peer);
	assert_true(sim_run(w.sim, 4 * SIM_S, lane_has_failed, e));
	assert_int_equal(e->status, -ETIMEDOUT);
	sim_run(w.sim, 2 * SIM_S, NULL, NULL);
	e = lane_connect(w.queue[0], w.peer);
	assert_true(sim_run(w.sim, SIM_S, lane_is_up, e));
	assert_true(lane_counter(w.queue[0], "arp.requests") +
			    lane_counter(w.queue[1], "arp.requests") >
		    requests);
}

/* ---- hints ---------------------------------------------------------------------------------- */

static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* What ARP says of a host comes to the first queue, and is for the others, too. */
/* @behaviour R48 */
static void a_restarted_peer_is_noticed_by_all_queues(struct sim_case *c)
{
	struct world w = world(c);
	struct lane_end *e = lane_connect(w.queue[1], w.peer);
	struct sim_port *port = w.peer_port;
	uint64_t killed;

	assert_true(sim_run(w.sim, SIM_S, lane_is_up, e));
	sim_run(w.sim, SIM_S, NULL, NULL);
	lane_host_kill(w.peer);
	killed = sim_now(w.sim);
	lane_host_create(w.sim, port, CONFIG);
	assert_true(sim_run(w.sim, 10 * SIM_S, lane_has_failed, e));
	assert_true(e->end_at - killed <= SIM_S);
	assert_int_equal(e->status, -ECONNRESET);
}

/* ARP of hosts that no worker here has requested stays with the first. */
/* @behaviour R48 */
static void others_arp_is_not_handed_on(struct sim_case *c)
{
	struct world w = world(c);
	struct lane_end *e = lane_connect(w.queue[1], w.peer);
	uint64_t handed;

	assert_true(sim_run(w.sim, SIM_S, lane_is_up, e));
	sim_run(w.sim, SIM_S, NULL, NULL);
	handed = lane_counter(w.queue[0], "steer.hints");
	for (unsigned int i = 0; i < 100; i++) {
		rte_be32_t ip = rte_cpu_to_be_32(0xa9fe0001u + i);

		arp_inject(w.peer_port, RTE_ARP_OP_REQUEST, sim_port_mac(w.peer_port), ip,
			   everybody, ip);
	}
	sim_run(w.sim, 100 * SIM_MS, NULL, NULL);
	assert_int_equal(lane_counter(w.queue[0], "steer.hints"), handed);
}

/* No worker may ever take them out of its ring, and they are buffers of the first one's. */
static void a_worker_that_does_not_look_is_left_few_hints(struct sim_case *c)
{
	const uint32_t ip = 0x0a000001; /* the peer's */
	struct world w = world_with(c, ip, ip + 1);
	struct lane_end *e = lane_connect(w.queue[0], w.peer);
	uint64_t handed;

	assert_true(sim_run(w.sim, SIM_S, lane_is_up, e));
	handed = lane_counter(w.queue[0], "steer.hints");
	lane_host_pause(w.queue[1], SIM_S);
	for (unsigned int i = 0; i < 1000; i++) {
		arp_inject(w.peer_port, RTE_ARP_OP_REQUEST, sim_port_mac(w.peer_port),
			   rte_cpu_to_be_32(ip), everybody, rte_cpu_to_be_32(ip));
		sim_run(w.sim, 5000, NULL, NULL);
	}
	handed = lane_counter(w.queue[0], "steer.hints") - handed;
	assert_in_range(handed, 1, 32);
	/* Nothing was lost that anybody needs. */
	assert_int_equal(lane_counter(w.queue[0], "steer.handed.full"), 0);
}

/* The newest frame of the second queue that has UDP. */
static enum sim_verdict sample_sent(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				    void *arg)
{
	(void)port;
	(void)room;
	if (*len >= 60 && data[23] == 17)
		memcpy(arg, data, 60);
	return SIM_PASS;
}

/* ICMP that quotes a frame of the second queue's worker. */
/* @behaviour R48 */
static void icmp_comes_to_the_worker_that_it_is_about(struct sim_case *c)
{
	struct world w = world(c);
	struct lane_end *e = lane_connect(w.queue[1], w.peer);
	uint8_t sent[60] = "";

	sim_filter(w.queue_port[1], sample_sent, sent);
	assert_true(sim_run(w.sim, SIM_S, lane_is_up, e));
	assert_true(lane_send_all(e, 0, 10, SIM_S));
	assert_int_equal(sent[23], 17);
	icmp_frame_inject(w.peer_port, sim_port_mac(w.queue_port[0]), 0, sent, WEFT_IP_UDP_LEN, 3);
	sim_run(w.sim, 10 * SIM_MS, NULL, NULL);
	assert_int_equal(lane_counter(w.queue[1], "icmp.received"), 1);
	assert_int_equal(lane_counter(w.queue[0], "icmp.received"), 0);
}

/* ---- frames for a worker that does not look ------------------------------------------------- */

struct sample {
	uint8_t frame[1600];
	size_t len;
};

/* The last frame that was sent to the second queue. */
static enum sim_verdict sample_frame(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				     void *arg)
{
	struct sample *s = arg;

	(void)port;
	(void)room;
	/* Ethernet, IPv4, UDP: to port 9339 */
	if (*len < sizeof(s->frame) && *len > 60 && data[23] == 17 && data[36] == 0x24 &&
	    data[37] == 0x7b) {
		memcpy(s->frame, data, *len);
		s->len = *len;
	}
	return SIM_PASS;
}

/*
 * The port brings all to the first queue, whose worker hands on. An unknown sender floods the
 * second one's UDP port, and its worker computes: the first has buffers left for its own peers.
 */
static void a_flood_for_a_worker_that_computes_leaves_buffers_for_the_others(struct sim_case *c)
{
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}};
	struct sim *sim = case_sim(c);
	struct sim_port *peer_port = sim_port_create(sim, &p), *x = sim_port_create(sim, &p);
	struct sim_port *queue[2];
	struct lane_host *peer, *first, *second;
	static struct sample s;
	struct lane_end *e[2];
	unsigned int i;

	s.len = 0;
	sim_station(x, false, sim_ignore, NULL);
	peer = lane_host_create(sim, peer_port, CONFIG);
	p.bufs = 400; /* fewer than the ring between the workers could hold */
	sim_port_queues(sim, &p, SIM_SPREAD_FIRST, 2, queue);
	first = lane_host_create(sim, queue[0], CONFIG);
	second = lane_host_create(sim, queue[1], CONFIG);
	e[0] = lane_up(peer, first);
	sim_filter(peer_port, sample_frame, &s);
	e[1] = lane_up(peer, second);
	assert_true(lane_send_all(e[1], 0, 100, SIM_S));
	sim_filter(peer_port, NULL, NULL);
	assert_true(s.len > 0);
	for (i = 50; i < s.len; i++)
		s.frame[i] ^= 0xa5;
	lane_host_pause(second, 300 * SIM_MS);
	for (i = 0; i < 20000; i++) {
		sim_inject(x, s.frame, s.len);
		sim_run(sim, 5000, NULL, NULL);
	}
	assert_true(lane_counter(first, "steer.handed.full") > 10000);
	assert_true(lane_send_all(e[0], 1000, 1200, 100 * SIM_MS));
	assert_true(lane_exactly_once(first, 1000, 1200));
	/* And its own peers find the second one as it was. */
	assert_true(lane_send_all(e[1], 2000, 2200, 5 * SIM_S));
	assert_true(lane_exactly_once(second, 2000, 2200));
	assert_int_equal(e[0]->downs + e[1]->downs, 0);
}

static struct sim_case cases[] = {
	SIM_CASE(a_worker_on_another_queue_finds_a_peer),
	SIM_CASE(both_find_it_by_one_question),
	SIM_CASE(a_peer_finds_both),
	SIM_CASE(a_first_worker_that_computes_delays_and_does_not_lose_answers),
	SIM_CASE(an_address_that_one_gives_up_is_requested_again),
	SIM_CASE(a_restarted_peer_is_noticed_by_all_queues),
	SIM_CASE(others_arp_is_not_handed_on),
	SIM_CASE(a_worker_that_does_not_look_is_left_few_hints),
	SIM_CASE(icmp_comes_to_the_worker_that_it_is_about),
	SIM_CASE(a_flood_for_a_worker_that_computes_leaves_buffers_for_the_others),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_queues", cases, sizeof(cases) / sizeof(cases[0]));
}
