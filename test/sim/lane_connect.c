/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The raw-DPDK engine over the simulated network: connecting, failing to, and ending.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arp_frame.h"
#include "frame/frame.h"
#include "lane_host.h"
#include "sim_test.h"

#define QUICK "CONNECT_TIMEOUT=2s PEER_TIMEOUT=3s KEEPALIVE_INTERVAL=500ms"

struct two {
	struct sim *sim;
	struct sim_port *pa, *pb;
	struct lane_host *a, *b;
};

static struct two two_hosts(struct sim_case *c, const char *config)
{
	const struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}};
	struct two t = {.sim = case_sim(c)};

	t.pa = sim_port_create(t.sim, &p);
	t.pb = sim_port_create(t.sim, &p);
	t.a = lane_host_create(t.sim, t.pa, config);
	t.b = lane_host_create(t.sim, t.pb, config);
	return t;
}

static void expect_text(const struct lane_end *e, const char *what)
{
	if (!strstr(e->text, what))
		fail_msg("\"%s\" does not say \"%s\"", e->text, what);
}

/* ---- connecting ----------------------------------------------------------------------------- */

static void connect_makes_one_end_each(struct sim_case *c)
{
	struct two t = two_hosts(c, NULL);
	struct lane_end *e = lane_up(t.a, t.b);

	assert_non_null(e);
	sim_run(t.sim, 10 * SIM_MS, NULL, NULL);
	assert_int_equal(e->ups, 1);
	assert_false(e->passive);
	assert_int_equal(lane_num_passive(t.b), 1);
	assert_int_equal(lane_passive(t.b)->ups, 1);
	assert_int_equal(lane_num_passive(t.a), 0);
	assert_true(e->lane_ep->up);
}

/* @behaviour U85: simultaneous connects, many connects */
static void connect_both_ways_makes_two_connections(struct sim_case *c)
{
	struct two t = two_hosts(c, NULL);
	struct lane_end *a = lane_connect(t.a, t.b), *b = lane_connect(t.b, t.a);

	sim_run(t.sim, 50 * SIM_MS, NULL, NULL);
	assert_true(a->up && b->up);
	assert_int_equal(lane_num_passive(t.a), 1);
	assert_int_equal(lane_num_passive(t.b), 1);
	assert_true(lane_send_all(a, 0, 50, SIM_S));
	assert_true(lane_send_all(b, 100, 150, SIM_S));
	assert_true(lane_exactly_once(t.b, 0, 50));
	assert_true(lane_exactly_once(t.a, 100, 150));
}

static void connecting_to_oneself_is_refused_at_once(struct sim_case *c)
{
	struct two t = two_hosts(c, NULL);
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	char why[200] = "";

	/* A switch sends no frame back where it came from: this is the self lane's business. */
	lane_iface(t.a)->ops->get_address(lane_iface(t.a), addr);
	assert_true(lane_iface(t.a)->ops->is_reachable(lane_iface(t.a), addr,
						       lane_iface(t.a)->attr.dev_addr_len, why,
						       sizeof(why)) < 0);
	assert_true(strlen(why) > 20);
	assert_true(lane_connect(t.a, t.a)->down);
}

static void try_with_loss(struct sim_case *c, bool of_a, unsigned int k, unsigned int n)
{
	struct two t = two_hosts(c, QUICK);
	struct sim_dropper d = {k, k + n, 0};
	struct lane_end *e;

	sim_filter(of_a ? t.pa : t.pb, sim_drop_some, &d);
	e = lane_connect(t.a, t.b);
	if (!sim_run(t.sim, SIM_S, lane_is_up, e))
		fail_msg("no connection without frames %u..%u of %s: %s", k, k + n - 1,
			 of_a ? "a" : "b", e->text);
	if (!lane_send_all(e, 0, 20, SIM_S) || !lane_exactly_once(t.b, 0, 20))
		fail_msg("messages went wrong without frames %u..%u of %s", k, k + n - 1,
			 of_a ? "a" : "b");
	assert_int_equal(lane_num_passive(t.b), 1);
	assert_int_equal(e->ups, 1);
	assert_int_equal(lane_passive(t.b)->ups, 1);
}

/*
 * @behaviour U84: lost connect, accept and acknowledgement frames
 * @behaviour R4
 */
static void any_lost_frame_of_the_handshake_is_recovered(struct sim_case *c)
{
	unsigned int k;

	for (k = 0; k < 8; k++) {
		try_with_loss(c, true, k, 1);
		try_with_loss(c, false, k, 1);
		try_with_loss(c, true, k, 3);
		try_with_loss(c, false, k, 3);
	}
}

/* @behaviour U84 */
static void connect_under_heavy_loss(struct sim_case *c)
{
	const struct sim_link bad = {
		.rate = SIM_GBIT, .delay_ns = 20000, .loss = 0.3, .dup = 0.2, .reorder = 0.3};
	uint64_t last = c->seed + (c->seeds ? c->seeds : 50);

	for (; c->seed < last; c->seed++) {
		struct two t = two_hosts(c, NULL);
		struct lane_end *e;

		sim_link_set(t.pa, t.pb, &bad);
		e = lane_connect(t.a, t.b);
		if (!sim_run(t.sim, 20 * SIM_S, lane_is_up, e))
			fail_msg("no connection: %d, %s", e->status, e->text);
		assert_true(lane_send_all(e, 0, 50, 20 * SIM_S));
		assert_true(lane_exactly_once(t.b, 0, 50));
	}
}

/* @behaviour U85 */
static void many_peers_connect_to_one(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	struct sim_port_params p = {.bufs = 512};
	struct lane_host *server = lane_host_create(sim, sim_port_create(sim, NULL), NULL), *h[30];
	struct lane_end *e[30];
	unsigned int i;

	for (i = 0; i < 30; i++) {
		h[i] = lane_host_create(sim, sim_port_create(sim, &p), NULL);
		e[i] = lane_connect(h[i], server);
	}
	sim_run(sim, 200 * SIM_MS, NULL, NULL);
	for (i = 0; i < 30; i++) {
		assert_true(e[i]->up);
		assert_true(lane_send_all(e[i], 100 * i, 100 * i + 20, SIM_S));
		assert_true(lane_exactly_once(server, 100 * i, 100 * i + 20));
	}
	assert_int_equal(lane_num_passive(server), 30);
}

/* @behaviour U85 */
static void connect_and_destroy_again_and_again(struct sim_case *c)
{
	struct two t = two_hosts(c, NULL);
	struct lane_end *e;
	unsigned int i;

	for (i = 0; i < 200; i++) {
		e = lane_connect(t.a, t.b);
		assert_true(sim_run(t.sim, 5 * SIM_S, lane_is_up, e));
		assert_true(lane_send_all(e, i * 10, i * 10 + 5, SIM_S));
		assert_true(lane_exactly_once(t.b, i * 10, i * 10 + 5));
		lane_destroy(e);
		sim_run(t.sim, SIM_MS, NULL, NULL);
		assert_non_null(lane_passive(t.b));
		assert_true(lane_passive(t.b)->gone);
		lane_destroy(lane_passive(t.b));
	}
}

/* ---- failing -------------------------------------------------------------------------------- */

/* @behaviour X8: no ARP reply, a silent gateway, no host at the address */
static void no_arp_answer_is_reported_in_time(struct sim_case *c)
{
	struct two t = two_hosts(c, QUICK);
	struct lane_end *e;

	sim_port_up(t.pb)->blackhole = true;
	e = lane_connect(t.a, t.b);
	assert_true(sim_run(t.sim, 4 * SIM_S, lane_has_failed, e));
	assert_true(e->status == -EHOSTUNREACH || e->status == -ETIMEDOUT);
	expect_text(e, "ARP");
	assert_true(e->end_at <= 2500 * SIM_MS);
	sim_run(t.sim, SIM_S, NULL, NULL);
	assert_int_equal(e->downs, 1);
}

/* A kernel that owns the address: answers ARP and nothing else. */
static void arp_only(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	const struct rte_arp_hdr *arp = arp_frame(data, len);

	(void)arg;
	if (arp)
		arp_answer(port, sim_port_mac(port), arp);
}

/* @behaviour X8 */
static void a_host_without_weft_is_reported_in_time(struct sim_case *c)
{
	struct two t = two_hosts(c, QUICK);
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	struct lane_end *e;
	size_t len = lane_iface(t.b)->attr.dev_addr_len;

	lane_iface(t.b)->ops->get_address(lane_iface(t.b), addr);
	lane_host_close(t.b);
	sim_station(t.pb, false, arp_only, NULL);
	e = lane_connect_addr(t.a, addr, len);
	assert_true(sim_run(t.sim, 4 * SIM_S, lane_has_failed, e));
	assert_int_equal(e->status, -ETIMEDOUT);
	assert_true(strlen(e->text) > 20);
	assert_true(e->end_at <= 2500 * SIM_MS);
}

/* @behaviour X8 */
static void an_address_that_has_a_new_owner_is_refused_at_once(struct sim_case *c)
{
	struct two t = two_hosts(c, QUICK);
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	struct lane_end *e;
	size_t len = lane_iface(t.b)->attr.dev_addr_len;

	lane_iface(t.b)->ops->get_address(lane_iface(t.b), addr);
	lane_host_kill(t.b);
	lane_host_create(t.sim, t.pb, QUICK);
	e = lane_connect_addr(t.a, addr, len);
	assert_true(sim_run(t.sim, 4 * SIM_S, lane_has_failed, e));
	assert_true(e->end_at < 500 * SIM_MS);
	assert_true(strlen(e->text) > 20);
}

/* The way carries small frames only, whatever both ends say. */
/* @behaviour X7: an MTU that the other side or the network can't take */
static void a_way_too_narrow_for_the_mtu_is_named_or_used(struct sim_case *c)
{
	const struct sim_port_params p = {.frame_size = 9014};
	struct sim *sim = case_sim(c);
	struct sim_port *pa = sim_port_create(sim, &p), *pb = sim_port_create(sim, &p);
	struct lane_host *a = lane_host_create(sim, pa, QUICK),
			 *b = lane_host_create(sim, pb, QUICK);
	size_t limit = 1514;
	struct lane_end *e;

	sim_filter(pa, sim_drop_longer, &limit);
	sim_filter(pb, sim_drop_longer, &limit);
	e = lane_connect(a, b);
	sim_run(sim, 4 * SIM_S, NULL, NULL);
	if (e->up) {
		/* Found a size that goes through. */
		assert_true(lane_max(e, LANE_BCOPY) <= 1514);
		assert_true(lane_send_all(e, 0, 100, 5 * SIM_S));
		assert_true(lane_exactly_once(b, 0, 100));
		return;
	}
	assert_int_equal(e->downs, 1);
	expect_text(e, "MTU");
}

/* @behaviour U50: peers of different frame size use the smaller one */
static void different_frame_sizes_agree_on_the_smaller(struct sim_case *c)
{
	struct sim_port_params p = {.frame_size = 9014};
	struct sim *sim = case_sim(c);
	struct sim_port *pa = sim_port_create(sim, &p), *pb = sim_port_create(sim, NULL);
	struct lane_host *a = lane_host_create(sim, pa, NULL), *b = lane_host_create(sim, pb, NULL);
	struct lane_end *e = lane_up(a, b);

	assert_non_null(e);
	assert_true(lane_max(e, LANE_BCOPY) <= 1514 && lane_max(e, LANE_ZCOPY) <= 1514);
	assert_true(lane_send_all(e, 0, 200, SIM_S));
	assert_true(lane_exactly_once(b, 0, 200));
	assert_true(lane_send_all(lane_passive(b), 300, 500, SIM_S));
	assert_true(lane_exactly_once(a, 300, 500));
	assert_int_equal(sim_port_stats(pa)->oversize + sim_port_stats(pb)->oversize, 0);
}

/* @behaviour X4: a port without link */
static void a_link_without_carrier_is_reported_in_time(struct sim_case *c)
{
	struct two t = two_hosts(c, QUICK);
	struct lane_end *e;

	sim_port_carrier(t.pa, false);
	assert_false(lane_iface(t.a)->ops->link_up(lane_iface(t.a)));
	e = lane_connect(t.a, t.b);
	assert_true(sim_run(t.sim, 4 * SIM_S, lane_has_failed, e) || e->down);
	assert_true(e->status < 0);
}

/* ---- ending --------------------------------------------------------------------------------- */

static void a_destroyed_end_notifies_its_peer(struct sim_case *c)
{
	struct two t = two_hosts(c, NULL);
	struct lane_end *e = lane_up(t.a, t.b);

	assert_non_null(e);
	assert_true(lane_send_all(e, 0, 10, SIM_S));
	lane_destroy(e);
	sim_run(t.sim, 100 * SIM_MS, NULL, NULL);
	assert_true(lane_passive(t.b)->gone);
	assert_int_equal(lane_passive(t.b)->downs, 1);
}

/* @behaviour U88: a connection destroyed with data in flight */
static void what_was_sent_before_destroy_arrives_or_is_reported(struct sim_case *c)
{
	struct two t = two_hosts(c, NULL);
	struct lane_end *e = lane_up(t.a, t.b);
	unsigned int i;
	int done = 0;

	assert_non_null(e);
	for (i = 0; i < 20; i++)
		assert_true(lane_send(e, LANE_BCOPY, i, 100) > 0);
	assert_int_equal(lane_flush(e, &done), 0);
	sim_run(t.sim, 50 * SIM_MS, NULL, NULL);
	assert_int_equal(done, 1);
	assert_true(lane_exactly_once(t.b, 0, 20));
	lane_destroy(e);
}

static void a_killed_peer_is_found_within_the_timeout(struct sim_case *c)
{
	struct two t = two_hosts(c, QUICK);
	struct lane_end *e = lane_up(t.a, t.b);
	int flushed = 0;
	uint64_t killed;

	assert_non_null(e);
	assert_true(lane_send_all(e, 0, 10, SIM_S));
	killed = sim_now(t.sim);
	lane_host_kill(t.b);
	assert_int_equal(lane_send(e, LANE_ZCOPY, 50, 1000), 0);
	lane_flush(e, &flushed);
	assert_true(sim_run(t.sim, 10 * SIM_S, lane_has_failed, e));
	assert_int_equal(e->status, -ETIMEDOUT);
	assert_true(e->end_at - killed <= 4 * SIM_S);
	sim_run(t.sim, 100 * SIM_MS, NULL, NULL);
	assert_int_equal(e->downs, 1);
	assert_true(flushed > 1);
	assert_int_equal(lane_zcopy_pending(t.a), 0);
	assert_true(lane_zcopy_status(t.a) < 0);
	assert_true(lane_send(e, LANE_BCOPY, 51, 10) < 0);
	assert_int_not_equal(lane_send(e, LANE_BCOPY, 51, 10), -EAGAIN);
}

/* @behaviour U74 */
static void a_killed_idle_peer_is_found_too(struct sim_case *c)
{
	struct two t = two_hosts(c, QUICK);
	struct lane_end *e = lane_up(t.a, t.b);
	uint64_t killed = sim_now(t.sim);

	assert_non_null(e);
	lane_host_kill(t.b);
	assert_true(sim_run(t.sim, 10 * SIM_S, lane_has_failed, e));
	assert_true(e->end_at - killed <= 4 * SIM_S);
}

/* @behaviour R42 */
static void a_restarted_peer_is_noticed_quickly(struct sim_case *c)
{
	struct two t = two_hosts(c, NULL);
	struct lane_end *e = lane_up(t.a, t.b), *again;
	struct lane_host *b2;
	uint64_t killed;

	assert_non_null(e);
	assert_true(lane_send_all(e, 0, 10, SIM_S));
	killed = sim_now(t.sim);
	lane_host_kill(t.b);
	b2 = lane_host_create(t.sim, t.pb, NULL);
	lane_send(e, LANE_BCOPY, 50, 10);
	assert_true(sim_run(t.sim, 10 * SIM_S, lane_has_failed, e));
	assert_true(e->end_at - killed <= SIM_S);
	assert_true(strlen(e->text) > 20);
	again = lane_connect(t.a, b2);
	assert_true(sim_run(t.sim, SIM_S, lane_is_up, again));
	assert_true(lane_send_all(again, 100, 200, SIM_S));
	assert_true(lane_exactly_once(b2, 100, 200));
	assert_int_equal(lane_got(b2, 50), 0);
}

/* @behaviour Y5: idle connections stay up, also beyond the connect timeout */
static void idle_connections_live(struct sim_case *c)
{
	struct two t = two_hosts(c, NULL);
	struct lane_end *e = lane_up(t.a, t.b);
	uint64_t frames;

	assert_non_null(e);
	frames = sim_port_stats(t.pa)->tx_frames;
	sim_set_poll(t.sim, 500, 150 * SIM_US);
	sim_run(t.sim, 600 * SIM_S, NULL, NULL);
	assert_int_equal(e->downs, 0);
	assert_int_equal(lane_passive(t.b)->downs, 0);
	/* Asked now and then, not all the time. */
	frames = sim_port_stats(t.pa)->tx_frames - frames;
	assert_true(frames > 10 && frames < 1000);
	assert_true(lane_send_all(e, 0, 10, SIM_S));
	assert_true(lane_exactly_once(t.b, 0, 10));
}

/* @behaviour Y3: a peer that pauses for 10 s is not lost */
static void a_peer_that_pauses_10_s_is_not_lost(struct sim_case *c)
{
	struct two t = two_hosts(c, NULL);
	struct lane_end *e = lane_up(t.a, t.b);
	unsigned int i;
	int done = 0;

	assert_non_null(e);
	assert_true(lane_send_all(e, 0, 10, SIM_S));
	lane_host_pause(t.b, 10 * SIM_S);
	for (i = 100; i < 120; i++)
		assert_true(lane_send(e, LANE_BCOPY, i, 500) > 0);
	lane_flush(e, &done);
	sim_run(t.sim, 9900 * SIM_MS, NULL, NULL);
	assert_int_equal(done, 0);
	sim_run(t.sim, 500 * SIM_MS, NULL, NULL);
	assert_int_equal(done, 1);
	assert_int_equal(e->downs + lane_passive(t.b)->downs, 0);
	assert_true(lane_exactly_once(t.b, 100, 120));
	/* And the one that pauses does not think its peer dead. */
	lane_host_pause(t.a, 20 * SIM_S);
	sim_run(t.sim, 25 * SIM_S, NULL, NULL);
	assert_int_equal(e->downs + lane_passive(t.b)->downs, 0);
	assert_true(lane_send_all(lane_passive(t.b), 200, 220, SIM_S));
	assert_true(lane_exactly_once(t.a, 200, 220));
}

static void a_pause_in_the_middle_of_connecting_is_survived(struct sim_case *c)
{
	struct two t = two_hosts(c, NULL);
	struct lane_end *e = lane_connect(t.a, t.b);

	while (lane_counter(t.b, "conn.passive") == 0)
		sim_run(t.sim, SIM_US, NULL, NULL);
	/* The peer's half-open entry expires meanwhile. */
	lane_host_pause(t.a, 8 * SIM_S);
	sim_run(t.sim, 9 * SIM_S, NULL, NULL);
	assert_int_equal(e->downs, 0);
	assert_true(e->up);
	assert_true(lane_send_all(e, 0, 10, SIM_S));
	assert_true(lane_exactly_once(t.b, 0, 10));
}

static struct sim_case cases[] = {
	SIM_CASE(connect_makes_one_end_each),
	SIM_CASE(connect_both_ways_makes_two_connections),
	SIM_CASE(connecting_to_oneself_is_refused_at_once),
	SIM_CASE(any_lost_frame_of_the_handshake_is_recovered),
	SIM_CASE(connect_under_heavy_loss),
	SIM_CASE(many_peers_connect_to_one),
	SIM_CASE(connect_and_destroy_again_and_again),
	SIM_CASE(no_arp_answer_is_reported_in_time),
	SIM_CASE(a_host_without_weft_is_reported_in_time),
	SIM_CASE(an_address_that_has_a_new_owner_is_refused_at_once),
	SIM_CASE(a_way_too_narrow_for_the_mtu_is_named_or_used),
	SIM_CASE(different_frame_sizes_agree_on_the_smaller),
	SIM_CASE(a_link_without_carrier_is_reported_in_time),
	SIM_CASE(a_destroyed_end_notifies_its_peer),
	SIM_CASE(what_was_sent_before_destroy_arrives_or_is_reported),
	SIM_CASE(a_killed_peer_is_found_within_the_timeout),
	SIM_CASE(a_killed_idle_peer_is_found_too),
	SIM_CASE(a_restarted_peer_is_noticed_quickly),
	SIM_CASE(idle_connections_live),
	SIM_CASE(a_peer_that_pauses_10_s_is_not_lost),
	SIM_CASE(a_pause_in_the_middle_of_connecting_is_survived),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_connect", cases, sizeof(cases) / sizeof(cases[0]));
}
