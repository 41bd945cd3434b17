/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole library in virtual time: peers that pause, die, come back, or are not there; hostile
 * frames; idle connections.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"

#define QUICK "PEER_TIMEOUT=3s CONNECT_TIMEOUT=3s KEEPALIVE_INTERVAL=500ms"

/* ---- a worker ends ------------------------------------------------------------------------- */

/* The lanes still hold the user's memory, and the requests, when their endpoint is gone already. */
static void sends_that_a_port_still_holds_end_with_their_worker(struct sim_case *c)
{
	const struct scene_conf conf = {.up = {.rate = SIM_GBIT / 1000, .delay_ns = 5000},
					.config = "RNDV_THRESH=inf MULTI_EAGER_LIMIT=0"};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *w[4];
	unsigned int i;

	for (i = 0; i < 4; i++)
		w[i] = op_send(e, i, 8000, i);
	scene_run(s, 100000);
	sim_node_close(s->node[0]);
	for (i = 0; i < 4; i++)
		op_expect(w[i], 0, -ECANCELED);
}

/* ---- no peer there -------------------------------------------------------------------------- */

/* @behaviour X8 */
static void no_arp_answer_ends_with_a_sentence(struct sim_case *c)
{
	const struct scene_conf conf = {.config = QUICK};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e;
	struct op *w;

	sim_port_up(s->port[1][0])->blackhole = true;
	e = scene_connect(s, 0, 1);
	w = op_send(e, 1, 100, 1);
	assert_true(sim_run(s->sim, 10 * SIM_S, scene_ep_has_failed, e));
	assert_true(e->error_at <= 4 * SIM_S);
	assert_true(e->status == -EHOSTUNREACH || e->status == -ETIMEDOUT);
	if (!strstr(e->why, "ARP") || !strstr(e->why, "10.0.0."))
		fail_msg("\"%s\" does not name ARP and the address", e->why);
	op_expect(w, 0, e->status);
	assert_int_equal(scene_wait_up(e, SIM_MS), e->status);
	scene_run(s, 10 * SIM_S);
	assert_int_equal(e->errors, 1);
}

/*
 * A lane's clock leaves out the time without polls, so the endpoint's limit comes first.
 */
static void no_arp_answer_is_reported_to_a_thread_that_polls_seldom_too(struct sim_case *c)
{
	const struct scene_conf conf = {.config = QUICK};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e;

	sim_port_up(s->port[1][0])->blackhole = true;
	e = scene_connect(s, 0, 1);
	scene_run(s, 10 * SIM_MS);
	sim_node_pause(s->node[0], 10 * SIM_S);
	assert_true(sim_run(s->sim, 20 * SIM_S, scene_ep_has_failed, e));
	assert_int_equal(e->status, -ETIMEDOUT);
	if (!strstr(e->why, "ARP") || !strstr(e->why, "10.0.0."))
		fail_msg("\"%s\" does not name ARP and the address", e->why);
}

/* @behaviour X8 */
static void a_link_without_peer_ends_with_a_sentence(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}, .config = QUICK};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e;

	sim_port_carrier(s->port[0][0], false);
	sim_port_carrier(s->port[0][1], false);
	e = scene_connect(s, 0, 1);
	assert_true(sim_run(s->sim, 10 * SIM_S, scene_ep_has_failed, e));
	assert_true(e->error_at <= 4 * SIM_S);
	assert_true(strlen(e->why) > 20);
}

/* @behaviour R42 */
static void a_worker_that_is_gone_is_reported_at_once(struct sim_case *c)
{
	const struct scene_conf conf = {.config = QUICK};
	struct scene *s = scene_open(c, &conf);
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params);
	struct weft_ep_attr a = {.size = sizeof(a)};
	struct weft_ep *ep;
	void *address;
	size_t len;

	/* The address outlives its worker; another one has the port now. */
	assert_int_equal(weft_worker_get_address(scene_worker(s, 1), &address, &len), 0);
	p.address = malloc(len);
	memcpy((void *)(uintptr_t)p.address, address, len);
	p.address_length = len;
	weft_worker_release_address(scene_worker(s, 1), address);
	sim_node_kill(s->node[1]);
	scene_start(s, 1);
	assert_int_equal(weft_ep_create(scene_worker(s, 0), &p, &ep), 0);
	scene_run(s, SIM_S);
	assert_int_equal(weft_ep_query(ep, &a), 0);
	assert_true(a.status < 0);
	assert_int_equal(weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL), 0);
	free((void *)(uintptr_t)p.address);
}

/* @behaviour X7 */
static void a_wrong_mtu_is_named_or_avoided(struct sim_case *c)
{
	const struct scene_conf conf = {.port = {.frame_size = 9014}, .config = QUICK};
	struct scene *s = scene_open(c, &conf);
	static size_t limit = 1514, tiny = 600;
	struct scene_ep *e;

	/* The switch between takes ordinary frames only, though both ends are set to jumbo. */
	sim_filter(s->port[0][0], sim_drop_longer, &limit);
	sim_filter(s->port[1][0], sim_drop_longer, &limit);
	e = scene_connect(s, 0, 1);
	if (scene_wait_up(e, 10 * SIM_S) == 0) {
		scene_talk(s, e, 1, 1);
	} else if (!strstr(e->why, "MTU")) {
		fail_msg("\"%s\" does not name the MTU", e->why);
	}
	/* A way that nothing of use goes through. */
	s = scene_open(c, &conf);
	sim_filter(s->port[0][0], sim_drop_longer, &tiny);
	sim_filter(s->port[1][0], sim_drop_longer, &tiny);
	e = scene_connect(s, 0, 1);
	assert_true(sim_run(s->sim, 10 * SIM_S, scene_ep_has_failed, e));
	if (!strstr(e->why, "MTU"))
		fail_msg("\"%s\" does not name the MTU", e->why);
}

/* ---- pauses and deaths ---------------------------------------------------------------------- */

/*
 * @behaviour R40: A peer that pauses for less than WEFT_PEER_TIMEOUT loses no message
 * @behaviour Y3
 */
static void a_peer_that_pauses_10_s_is_not_lost(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *w[20], *r[20];
	unsigned int i;

	for (i = 0; i < 20; i++)
		r[i] = op_recv(s, 1, 300000, i);
	sim_node_pause(s->node[1], 10 * SIM_S);
	for (i = 0; i < 20; i++)
		w[i] = op_send(e, i, i * 15000, i);
	scene_run(s, 9 * SIM_S);
	assert_int_equal(e->errors, 0);
	for (i = 0; i < 20; i++) {
		op_expect(r[i], 3 * SIM_S, 0);
		op_holds(r[i], i, i * 15000);
		op_expect(w[i], SIM_S, 0);
	}
	/* The other way round: the one that was away does not think the rest of the world dead. */
	sim_node_pause(s->node[0], 25 * SIM_S);
	scene_run(s, 40 * SIM_S);
	assert_int_equal(e->errors, 0);
	scene_talk(s, e, 1, 100);
}

/*
 * @behaviour F3: all lanes dead: every operation ends with an error in time
 * @behaviour R41: A peer that is dead ends every request of its endpoint, with one reason
 * @behaviour U69, X10
 */
static void a_killed_peer_ends_every_request(struct sim_case *c)
{
	const struct scene_conf conf = {.nodes = 3, .lanes = {2, 2, 2}, .config = QUICK};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1), *other = scene_up(s, 0, 2);
	struct op *op[8], *any;
	uint64_t killed;
	unsigned int i;

	op[0] = op_send(e, 0, 3000000, 0); /* rendezvous, under way */
	op_recv(s, 1, 3000000, 0);
	op[1] = op_send_sync(e, 1, 10, 1);
	op[2] = op_send(e, 2, 2000000, 2); /* rendezvous, not matched */
	op[3] = op_recv_mask(s, 0, e->ep, 100, 3, WEFT_TAG_MASK_FULL);
	scene_run(s, 100 * SIM_US);
	killed = sim_now(s->sim);
	sim_node_kill(s->node[1]);
	op[4] = op_send(e, 4, 50000, 4);
	op[5] = op_send_sync(e, 5, 0, 5);
	op[6] = op_flush(e);
	op[7] = op_send(e, 7, 1000000, 7);
	any = op_recv(s, 0, 100, 99);
	assert_true(sim_run(s->sim, 20 * SIM_S, scene_ep_has_failed, e));
	assert_true(e->error_at - killed <= 4500 * SIM_MS);
	scene_run(s, 200 * SIM_MS);
	for (i = 0; i < 8; i++) {
		if (!op[i]->done)
			fail_msg("operation %u has not ended", i);
		if (i != 4 && !op[i]->c.status)
			fail_msg("operation %u ended well", i);
		assert_int_equal(op[i]->completions, 1);
	}
	/*
	 * A receive from anybody waits on; others are untouched; the dead endpoint says what is up.
	 */
	assert_false(any->done);
	scene_talk(s, other, 2, 50);
	op_expect(op_send(e, 8, 10, 8), 0, e->status);
	scene_run(s, 10 * SIM_S);
	assert_int_equal(e->errors, 1);
	assert_int_equal(other->errors, 0);
	op_expect(op_close(e, 0), SIM_MS, 0);
	assert_int_equal(weft_request_cancel(any->req), 0);
}

/* @behaviour U38 */
static void a_sender_killed_in_a_rendezvous_ends_the_receive(struct sim_case *c)
{
	const struct scene_conf conf = {.config = QUICK};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *back = scene_up(s, 1, 0), *e = scene_up(s, 0, 1);
	struct op *r = op_recv(s, 1, 30000000, 1);
	uint8_t *copy;

	op_send(e, 1, 30000000, 1);
	scene_run(s, 5 * SIM_MS);
	assert_false(r->done);
	sim_node_kill(s->node[0]);
	assert_true(op_wait(r, 10 * SIM_S));
	assert_true(r->c.status < 0);
	assert_int_equal(back->errors, 1);
	/* Nothing is written into the buffer afterwards. */
	copy = malloc(r->cap);
	memcpy(copy, r->buf, r->cap);
	scene_run(s, SIM_S);
	assert_memory_equal(copy, r->buf, r->cap);
	free(copy);
}

/* @behaviour U74, R41 */
static void an_idle_dead_peer_is_found_by_keepalive(struct sim_case *c)
{
	const struct scene_conf conf = {.config = QUICK};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);

	scene_run(s, 5 * SIM_S);
	sim_node_kill(s->node[1]);
	assert_true(sim_run(s->sim, 5 * SIM_S, scene_ep_has_failed, e));
	assert_true(strlen(e->why) > 20);
}

/*
 * @behaviour R42: The restart of a dead process is detected at once
 * @behaviour U87, S5
 */
static void a_restarted_peer_fails_the_old_endpoint_quickly(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1), *again;
	uint64_t when;

	scene_talk(s, e, 1, 1);
	sim_node_kill(s->node[1]);
	scene_start(s, 1);
	when = sim_now(s->sim);
	op_send(e, 2, 100, 2);
	assert_true(sim_run(s->sim, 30 * SIM_S, scene_ep_has_failed, e));
	assert_true(e->error_at - when < 2 * SIM_S);
	assert_true(strlen(e->why) > 20);
	again = scene_up(s, 0, 1);
	scene_talk(s, again, 1, 3);
	assert_int_equal(e->errors, 1);
	/* The new one connects first: the old endpoint must not stay. */
	sim_node_kill(s->node[1]);
	scene_start(s, 1);
	scene_up(s, 1, 0);
	assert_true(sim_run(s->sim, 30 * SIM_S, scene_ep_has_failed, again));
	assert_true(sim_now(s->sim) - again->error_at < 30 * SIM_S);
}

static void a_peer_that_closes_is_not_an_error_for_others(struct sim_case *c)
{
	const struct scene_conf conf = {.nodes = 3};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *b = scene_up(s, 0, 1), *d = scene_up(s, 0, 2), *back = scene_up(s, 1, 0);

	sim_node_close(s->node[1]);
	scene_run(s, SIM_S);
	assert_int_equal(b->errors, 1);
	assert_int_equal(d->errors, 0);
	(void)back;
	scene_talk(s, d, 2, 5);
}

/* @behaviour U71 */
static void new_operations_on_a_failed_endpoint_return_its_error(struct sim_case *c)
{
	const struct scene_conf conf = {.config = QUICK};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct weft_ep_attr a = {.size = sizeof(a)};

	sim_node_kill(s->node[1]);
	assert_true(sim_run(s->sim, 10 * SIM_S, scene_ep_has_failed, e));
	op_expect(op_send(e, 1, 8, 1), 0, e->status);
	op_expect(op_send_sync(e, 1, 8, 1), 0, e->status);
	op_expect(op_flush(e), 0, e->status);
	assert_int_equal(weft_ep_query(e->ep, &a), 0);
	assert_int_equal(a.status, e->status);
}

/* @behaviour Y5 */
static void idle_endpoints_live(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *a = scene_up(s, 0, 1), *b = scene_up(s, 1, 0);

	scene_talk(s, a, 1, 1);
	scene_run(s, 600 * SIM_S);
	assert_int_equal(a->errors + b->errors, 0);
	assert_int_equal(scene_lanes_up(a), 2);
	scene_talk(s, a, 1, 2);
	scene_talk(s, b, 0, 3);
}

/* Whatever was left over from connecting must not end an endpoint when its time-out comes. */
/* @behaviour Y5 */
static void endpoints_live_beyond_the_connect_timeout(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 3},
					.config = "CONNECT_TIMEOUT=2s",
					.up = {.rate = SIM_GBIT,
					       .delay_ns = 20000,
					       .loss = 0.05,
					       .dup = 0.05,
					       .reorder = 0.3,
					       .reorder_ns = SIM_MS}};
	uint64_t first = c->seed, last = first + (c->seeds ? c->seeds : 100);

	for (; c->seed < last; c->seed++) {
		struct scene *s = scene_open(c, &conf);
		struct sim_rng dice = sim_stream(s->sim, 5);
		struct scene_ep *a = scene_connect(s, 0, 1), *b;

		scene_run(s, sim_below(&dice, 500 * SIM_US));
		b = scene_connect(s, 1, 0);
		scene_talk(s, a, 1, 1);
		scene_talk(s, b, 0, 2);
		scene_run(s, 5 * SIM_S);
		if (a->errors || b->errors)
			fail_msg("%s %s", a->why, b->why);
		assert_int_equal(scene_lanes_up(a), 2);
		scene_talk(s, a, 1, 3);
		scene_talk(s, b, 0, 4);
	}
	c->seed = first;
}

/* ---- hostile frames ------------------------------------------------------------------------- */

struct storm {
	struct scene *s;
	struct sim_port *px;
	struct sim_rng rng;
	uint8_t old[64][1600];
	size_t len[64];
	unsigned int n, injected;
};

static enum sim_verdict remember(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				 void *arg)
{
	struct storm *st = arg;
	unsigned int slot = st->n++ % 64;

	(void)port;
	(void)room;
	if (*len <= sizeof(st->old[0])) {
		memcpy(st->old[slot], data, *len);
		st->len[slot] = *len;
	}
	return SIM_PASS;
}

static void blow(void *arg)
{
	struct storm *st = arg;
	unsigned int k = (unsigned int)sim_below(&st->rng, 64);
	uint8_t f[1600];
	size_t len = st->len[k];

	switch (sim_below(&st->rng, 3)) {
	case 0: /* garbage for one of them */
		len = sim_between(&st->rng, 20, 1514);
		sim_fill(&st->rng, f, len);
		memcpy(f, sim_port_mac(st->s->port[sim_below(&st->rng, 2)][0]), 6);
		sim_inject(st->px, f, len);
		break;
	case 1: /* a replay */
		if (len)
			sim_inject(st->px, st->old[k], len);
		break;
	default: /* a piece of one */
		if (len > 2)
			sim_inject(st->px, st->old[k], sim_between(&st->rng, 1, len - 1));
		break;
	}
	if (++st->injected < 3000)
		sim_at(st->s->sim, sim_now(st->s->sim) + sim_below(&st->rng, 4000), blow, st);
}

/* @behaviour F10, R5 */
static void hostile_frames_do_not_harm_traffic(struct sim_case *c)
{
	static struct storm st;
	struct scene *s = scene_open(c, NULL);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *r;
	unsigned int i;

	memset(&st, 0, sizeof(st));
	st.s = s;
	st.rng = sim_stream(s->sim, 77);
	st.px = sim_port_create(s->sim, NULL);
	sim_filter(s->port[0][0], remember, &st);
	blow(&st);
	for (i = 0; i < 200; i++) {
		r = op_recv(s, 1, 60000, i);
		op_send(e, i, i * 271, i);
		op_expect(r, SIM_S, 0);
		op_holds(r, i, i * 271);
	}
	scene_run(s, 50 * SIM_MS);
	assert_int_equal(e->errors, 0);
	assert_true(sim_node_counter(s->node[1], "drop.duplicate") > 0);
	assert_true(sim_node_counter(s->node[1], "drop.not_ours") +
			    sim_node_counter(s->node[1], "drop.bad_length") >
		    0);
}

static struct sim_case cases[] = {
	SIM_CASE(sends_that_a_port_still_holds_end_with_their_worker),
	SIM_CASE(no_arp_answer_ends_with_a_sentence),
	SIM_CASE(no_arp_answer_is_reported_to_a_thread_that_polls_seldom_too),
	SIM_CASE(a_link_without_peer_ends_with_a_sentence),
	SIM_CASE(a_worker_that_is_gone_is_reported_at_once),
	SIM_CASE(a_wrong_mtu_is_named_or_avoided),
	SIM_CASE(a_peer_that_pauses_10_s_is_not_lost),
	SIM_CASE(a_killed_peer_ends_every_request),
	SIM_CASE(a_sender_killed_in_a_rendezvous_ends_the_receive),
	SIM_CASE(an_idle_dead_peer_is_found_by_keepalive),
	SIM_CASE(a_restarted_peer_fails_the_old_endpoint_quickly),
	SIM_CASE(a_peer_that_closes_is_not_an_error_for_others),
	SIM_CASE(new_operations_on_a_failed_endpoint_return_its_error),
	SIM_CASE(idle_endpoints_live),
	SIM_CASE(endpoints_live_beyond_the_connect_timeout),
	SIM_CASE(hostile_frames_do_not_harm_traffic),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_failure", cases, sizeof(cases) / sizeof(cases[0]));
}
