/* SPDX-License-Identifier: BSD-3-Clause */
/* How endpoints end: in good order, by force, from both sides at once; and flush. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"

static void close_delivers_everything_sent_before(struct sim_case *c)
{
	static const size_t sizes[] = {0, 8, 1000, 5000, 100000};
	const struct scene_conf conf = {.lanes = {2, 2},
					.up = {.rate = SIM_GBIT, .delay_ns = 50000, .loss = 0.02}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_connect(s, 0, 1);
	struct op *r[5], *w[5], *closed;
	unsigned int i;

	for (i = 0; i < 5; i++)
		r[i] = op_recv(s, 1, 200000, i);
	for (i = 0; i < 5; i++)
		w[i] = op_send(e, i, sizes[i], i);
	closed = op_close(e, 0);
	op_expect(closed, 5 * SIM_S, 0);
	for (i = 0; i < 5; i++) {
		op_expect(w[i], SIM_S, 0);
		op_expect(r[i], SIM_S, 0);
		op_holds(r[i], i, sizes[i]);
	}
}

static void close_waits_for_an_unmatched_rendezvous(struct sim_case *c)
{
	struct scene *s = scene_open(c, NULL);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *w = op_send(e, 1, 2000000, 1), *closed = op_close(e, 0), *r;

	scene_run(s, 100 * SIM_MS);
	assert_false(closed->done);
	r = op_recv(s, 1, 2000000, 1);
	op_expect(r, SIM_S, 0);
	op_expect(w, SIM_S, 0);
	op_expect(closed, SIM_S, 0);
	op_holds(r, 1, 2000000);
}

/* @behaviour U70 */
static void force_close_cancels_and_ends_soon(struct sim_case *c)
{
	struct scene *s = scene_open(c, NULL);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *w = op_send(e, 1, 2000000, 1), *y = op_send_sync(e, 2, 10, 2), *r, *closed;
	uint64_t start;

	r = op_recv_mask(s, 0, e->ep, 10, 5, WEFT_TAG_MASK_FULL);
	scene_run(s, SIM_MS);
	start = sim_now(s->sim);
	closed = op_close(e, WEFT_EP_CLOSE_F_FORCE);
	op_expect(w, 100 * SIM_MS, -ECANCELED);
	op_expect(y, 100 * SIM_MS, -ECANCELED);
	op_expect(r, 100 * SIM_MS, -ECANCELED);
	assert_true(op_wait(closed, 100 * SIM_MS));
	assert_true(sim_now(s->sim) - start < 100 * SIM_MS);
}

/*
 * The peer force-closes, without notice, and connects again. A worker that then makes an endpoint
 * adopts the one that is closed, hears of it soon, and adopts the other one with the next.
 */
static void an_unheard_forced_close_ends_the_endpoint_that_adopts_it(struct sim_case *c)
{
	unsigned int lanes;

	for (lanes = 1; lanes <= 2; lanes++) {
		const struct scene_conf conf = {.lanes = {lanes, lanes}};
		struct scene *s = scene_open(c, &conf);
		struct scene_ep *first = scene_up(s, 0, 1), *second, *adopted, *next;
		struct op *r;
		unsigned int i;

		scene_run(s, 20 * SIM_MS);
		for (i = 0; i < lanes; i++)
			sim_port_up(s->port[0][i])->blackhole = true;
		op_close(first, WEFT_EP_CLOSE_F_FORCE);
		scene_run(s, 20 * SIM_MS);
		for (i = 0; i < lanes; i++)
			sim_port_up(s->port[0][i])->blackhole = false;
		second = scene_up(s, 0, 1);
		adopted = scene_connect(s, 1, 0);
		op_send(adopted, 1, 100, 1);
		scene_run(s, SIM_S);
		/* The closed one, or, had the close been heard meanwhile, the other. */
		if (adopted->errors) {
			assert_int_equal(adopted->status, -ECONNRESET);
			next = scene_connect(s, 1, 0);
		} else {
			next = adopted;
		}
		assert_int_equal(scene_wait_up(next, SIM_S), 0);
		r = op_recv_mask(s, 0, second->ep, 100, 2, WEFT_TAG_MASK_FULL);
		op_send(next, 2, 100, 2);
		op_expect(r, SIM_S, 0);
		assert_ptr_equal(r->c.ep, second->ep);
		assert_int_equal(second->errors, 0);
	}
}

/* @behaviour U70, U88 */
static void force_close_while_the_peer_is_silent(struct sim_case *c)
{
	struct scene *s = scene_open(c, NULL);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *w[20], *closed;
	unsigned int i;

	sim_node_pause(s->node[1], 100 * SIM_S);
	for (i = 0; i < 20; i++)
		w[i] = op_send(e, i, 60000, i);
	scene_run(s, SIM_MS);
	closed = op_close(e, WEFT_EP_CLOSE_F_FORCE);
	assert_true(op_wait(closed, 200 * SIM_MS));
	for (i = 0; i < 20; i++)
		assert_true(op_wait(w[i], 200 * SIM_MS));
}

/* @behaviour U64 */
static void connect_and_close_again_and_again(struct sim_case *c)
{
	struct scene *s = scene_open(c, NULL);
	unsigned int i;

	for (i = 0; i < 100; i++) {
		struct scene_ep *e = scene_connect(s, i & 1, !(i & 1));
		struct op *r = op_recv(s, !(i & 1), 100, i);

		op_send(e, i, 100, i);
		op_expect(op_close(e, i % 3 == 2 && op_wait(r, SIM_S) ? WEFT_EP_CLOSE_F_FORCE : 0),
			  SIM_S, 0);
		op_expect(r, SIM_S, 0);
		op_holds(r, i, 100);
		/*
		 * Else the peer's next endpoint may adopt a connection whose end it has not heard
		 * of.
		 */
		scene_run(s, SIM_MS);
	}
}

/* @behaviour U65 */
static void both_close_at_once(struct sim_case *c)
{
	uint64_t first = c->seed;

	for (; c->seed < first + 30; c->seed++) {
		struct scene *s = scene_open(c, NULL);
		struct scene_ep *a = scene_connect(s, 0, 1), *b = scene_connect(s, 1, 0);
		struct sim_rng r = sim_stream(s->sim, 1);
		struct op *ca, *cb;

		scene_run(s, sim_below(&r, 200 * SIM_US));
		op_send(a, 1, 10, 1);
		op_send(b, 1, 10, 1);
		/* Unmatched rendezvous on both sides would wait for each other for ever. */
		op_send(a, 2, 1000000, 2);
		op_send(b, 2, 1000000, 2);
		ca = op_close(a, 0);
		scene_run(s, sim_below(&r, 100 * SIM_US));
		cb = op_close(b, 0);
		assert_true(op_wait(ca, 5 * SIM_S));
		assert_true(op_wait(cb, 5 * SIM_S));
	}
	c->seed = first;
}

/*
 * Until the word that a connection closes has come, its other end may get an owner. What that one
 * sends arrives, or ends with an error, and the endpoint says so once; the next one works. @return
 * did it work at once?
 */
static bool connect_while_it_closes(struct sim_case *c, uint64_t after)
{
	struct scene *s = scene_open(c, NULL);
	struct scene_ep *a = scene_up(s, 0, 1), *b;
	struct op *closed, *r, *w;

	scene_talk(s, a, 1, 7);
	closed = op_close(a, 0);
	scene_run(s, after);
	b = scene_connect(s, 1, 0);
	r = op_recv(s, 0, 100, 9);
	w = op_send(b, 9, 100, 9);
	op_expect(closed, SIM_S, 0);
	assert_true(op_wait(w, SIM_S));
	scene_run(s, 10 * SIM_MS);
	if (b->errors == 0) {
		op_expect(w, 0, 0);
		op_expect(r, 0, 0);
		op_holds(r, 9, 100);
		scene_talk(s, b, 0, 10);
		return true;
	}
	assert_int_equal(b->errors, 1);
	assert_int_equal(b->status, -ECONNRESET);
	/* A send that ended well has arrived, whatever came after it. */
	if (w->c.status == 0)
		op_expect(r, 0, 0);
	else
		assert_int_equal(w->c.status, -ECONNRESET);
	scene_talk(s, scene_up(s, 1, 0), 0, 10);
	return false;
}

static void an_endpoint_made_while_its_peer_closes_works_or_reports_it(struct sim_case *c)
{
	unsigned int fine = 0, reset = 0;
	uint64_t after;

	for (after = 0; after < 100 * SIM_US; after += 2 * SIM_US) {
		if (connect_while_it_closes(c, after)) {
			fine++;
			continue;
		}
		reset++;
		/* One way, and what two hosts need that poll every few microseconds. */
		assert_true(after < 40 * SIM_US);
	}
	assert_true(fine > 0 && reset > 0);
}

/* Both connect at once, and one gives up: that peer can be reached, but has closed. */
static void a_close_by_the_peer_while_connecting_is_reported(struct sim_case *c)
{
	const struct scene_conf lossy = {
		.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000, .loss = 0.3}};
	uint64_t first = c->seed;
	unsigned int failed = 0;

	for (; c->seed < first + 100; c->seed++) {
		struct scene *s = scene_open(c, &lossy);
		struct scene_ep *e = scene_connect(s, 0, 1), *f = scene_connect(s, 1, 0);

		scene_run(s, c->seed % 40 * 100 * SIM_US);
		op_close(f, WEFT_EP_CLOSE_F_FORCE);
		scene_run(s, 100 * SIM_MS);
		if (e->status && e->status != -ECONNRESET)
			fail_msg("seed %llu: %s", (unsigned long long)c->seed, e->why);
		failed += e->status != 0;
	}
	c->seed = first;
	assert_true(failed > 0);
}

/* @behaviour U40 */
static void flush_completes_after_delivery(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct op *w, *f;

	op_expect(op_flush(e), SIM_S, 0);
	sim_node_pause(s->node[1], 5 * SIM_MS);
	w = op_send(e, 1, 20000, 1);
	f = op_flush(e);
	scene_run(s, 4 * SIM_MS);
	assert_false(f->done);
	op_expect(f, SIM_S, 0);
	op_expect(w, 0, 0);
}

static struct sim_case cases[] = {
	SIM_CASE(close_delivers_everything_sent_before),
	SIM_CASE(close_waits_for_an_unmatched_rendezvous),
	SIM_CASE(force_close_cancels_and_ends_soon),
	SIM_CASE(an_unheard_forced_close_ends_the_endpoint_that_adopts_it),
	SIM_CASE(force_close_while_the_peer_is_silent),
	SIM_CASE(connect_and_close_again_and_again),
	SIM_CASE(both_close_at_once),
	SIM_CASE(an_endpoint_made_while_its_peer_closes_works_or_reports_it),
	SIM_CASE(a_close_by_the_peer_while_connecting_is_reported),
	SIM_CASE(flush_completes_after_delivery),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_close", cases, sizeof(cases) / sizeof(cases[0]));
}
