/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The prototype of lanes that a thread of their own polls (mock/lane_thread.h), in virtual time:
 * the whole library over two such lanes, or over one beside a lane of the worker's thread. The
 * "thread" is a function that the simulation calls at times of its own, so each run is the same.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "core/wire.h"
#include "core/worker.h"
#include "mock/lane_thread.h"
#include "scene.h"

#define ENDS 8u
#define NUM 24u

/* ---- the threads of all ifaces -------------------------------------------------------------- */

static struct {
	struct weft_lane_iface *iface[ENDS];
	const struct weft_platform *platform[ENDS];
	unsigned int num;
	bool one_lane; /* the first lane of each node stays with the worker's thread */
	uint64_t held_until;
	struct sim_rng rng;
	struct sim *sim;
} t;

static int wrap(const struct weft_lane_driver *bare, const struct weft_lane_open *open,
		struct weft_lane_iface **iface, char *why, size_t why_len)
{
	const struct lane_thread_conf conf = {
		.manual = true, .quiet_ns = SIM_MS / 2, .home_id = WEFT_WIRE_WIREUP};
	unsigned int n = t.num;
	int rc;

	/* Ports have numbers in the order of their creation: two for each node. */
	if (t.one_lane && open->resource[strlen(open->resource) - 1] % 2 == 0)
		return bare->open(open, iface, why, why_len);
	assert_true(n < ENDS);
	rc = lane_thread_open(bare, open, &conf, iface, why, why_len);
	t.iface[n] = *iface;
	t.platform[n] = open->platform;
	t.num += rc == 0;
	return rc;
}

/* The threads run at random times, of which some are late. */
static void tick(void *arg)
{
	uint64_t step = 200 + sim_below(&t.rng, 3000);

	(void)arg;
	if (sim_now(t.sim) >= t.held_until)
		for (unsigned int i = 0; i < t.num; i++)
			if (sim_below(&t.rng, 4) > 0)
				lane_thread_step(t.iface[i],
						 t.platform[i]->now(t.platform[i]->arg));
	if (sim_below(&t.rng, 500) == 0)
		step += 100 * SIM_US;
	sim_at(t.sim, sim_now(t.sim) + step, tick, NULL);
}

static struct scene *threads_open(struct sim_case *c, const struct scene_conf *how, bool one_lane)
{
	struct scene_conf conf = *how;
	struct scene *s;

	memset(&t, 0, sizeof(t));
	t.one_lane = one_lane;
	conf.wrap = wrap;
	s = scene_open(c, &conf);
	t.sim = s->sim;
	t.rng = sim_stream(s->sim, 4711);
	tick(NULL);
	return s;
}

static struct lane_thread_count sum(void)
{
	struct lane_thread_count sum = {0};

	for (unsigned int i = 0; i < t.num; i++) {
		const struct lane_thread_count *c = lane_thread_count(t.iface[i]);

		sum.away += c->away;
		sum.sends += c->sends;
		sum.recvs += c->recvs;
		sum.later += c->later;
		sum.reaped += c->reaped;
	}
	return sum;
}

/* ---- messages ------------------------------------------------------------------------------- */

static const size_t sizes[] = {8, 700, 5000, 65536, 300000, 1000000};

struct traffic {
	struct op *r[NUM], *w[NUM];
};

/* All receives of a direction have one tag: only the order of messages differs. */
static void begin(struct scene *s, struct scene_ep *e, struct scene_ep *f, struct traffic *m,
		  uint64_t id)
{
	for (unsigned int i = 0; i < NUM; i++) {
		size_t size = sizes[(i / 2 * 5 + id) % 6];

		m->r[i] = op_recv(s, i % 2, size, 7);
		m->w[i] = op_send(i % 2 ? e : f, id + i, size, 7);
	}
}

static void end(const struct traffic *m, uint64_t id, uint64_t max_ns)
{
	for (unsigned int i = 0; i < NUM; i++) {
		op_expect(m->r[i], max_ns, 0);
		op_holds(m->r[i], id + i, sizes[(i / 2 * 5 + id) % 6]);
		op_expect(m->w[i], max_ns, 0);
	}
}

static void messages(struct sim_case *c, bool one_lane)
{
	const struct scene_conf conf = {
		.lanes = {2, 2}, .up = {.rate = 10 * SIM_GBIT, .delay_ns = 3000, .loss = 0.005}};
	struct scene *s = threads_open(c, &conf, one_lane);
	struct scene_ep *e = scene_up(s, 0, 1), *f = scene_up(s, 1, 0);
	struct lane_thread_count n;
	struct traffic m;

	scene_run(s, 5 * SIM_MS);
	for (unsigned int k = 0; k < 6; k++) {
		begin(s, e, f, &m, 100 * k);
		end(&m, 100 * k, 2 * SIM_S);
	}
	n = sum();
	assert_true(n.away > 0 && n.sends > 100 && n.recvs > 100);
	assert_int_equal(sim_node_counter(s->node[0], "tag.unexpected_now"), 0);
	assert_int_equal(sim_node_counter(s->node[1], "tag.unexpected_now"), 0);
	assert_int_equal(e->errors + f->errors, 0);
	op_expect(op_flush(e), SIM_S, 0);
	op_expect(op_close(e, 0), SIM_S, 0);
}

static void messages_keep_their_order_and_come_once(struct sim_case *c)
{
	messages(c, false);
	messages(c, true);
}

/* ---- lanes that end ------------------------------------------------------------------------- */

static void cut(struct scene *s, unsigned int lane, bool dead)
{
	sim_port_up(s->port[0][lane])->blackhole = dead;
	sim_port_up(s->port[1][lane])->blackhole = dead;
}

/* The lane of a thread dies silently while both ends send. */
static void die(struct sim_case *c, uint64_t at, bool one_lane, struct lane_thread_count *n)
{
	const struct scene_conf conf = {.lanes = {2, 2}};
	struct scene *s = threads_open(c, &conf, one_lane);
	struct scene_ep *e = scene_up(s, 0, 1), *f = scene_up(s, 1, 0);
	struct lane_thread_count one;
	struct traffic m;

	scene_run(s, 5 * SIM_MS);
	begin(s, e, f, &m, 0);
	scene_run(s, at);
	cut(s, 1, true);
	end(&m, 0, 2 * SIM_S);
	scene_run(s, 300 * SIM_MS);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(sim_node_counter(s->node[i], "tag.unexpected_now"), 0);
	assert_int_equal(e->errors + f->errors, 0);
	cut(s, 1, false);
	scene_run(s, 3 * SIM_S);
	assert_int_equal(scene_lanes_up(e), 2);
	begin(s, e, f, &m, 500);
	end(&m, 500, 2 * SIM_S);
	one = sum();
	n->later += one.later;
	n->reaped += one.reaped;
	n->away += one.away;
	op_expect(op_close(e, 0), SIM_S, 0);
}

static void a_lane_that_dies_loses_no_message(struct sim_case *c)
{
	struct lane_thread_count n = {0};

	for (uint64_t at = 20 * SIM_US; at < 3 * SIM_MS; at = at * 6 + 7000) {
		die(c, at, false, &n);
		die(c, at, true, &n);
	}
	/* Lanes were stopped while their thread had them, with messages that they had not sent. */
	assert_true(n.later > 0 && n.reaped > 0);
}

/* The inner driver reports a failure that is certain: the thread stops the lane at once. */
static void a_device_that_is_gone_takes_its_lane_only(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {2, 2}};

	for (uint64_t at = 5 * SIM_US; at < 2 * SIM_MS; at = at * 4 + 3000) {
		struct scene *s = threads_open(c, &conf, false);
		struct scene_ep *e = scene_up(s, 0, 1), *f = scene_up(s, 1, 0);
		struct traffic m;

		scene_run(s, 5 * SIM_MS);
		begin(s, e, f, &m, 0);
		scene_run(s, at);
		sim_port_end(s->port[0][1], -ENODEV);
		end(&m, 0, 500 * SIM_MS);
		assert_int_equal(e->errors + f->errors, 0);
		/* With the last one the endpoint ends. */
		sim_port_end(s->port[0][0], -ENODEV);
		scene_run(s, 50 * SIM_MS);
		assert_int_equal(e->errors, 1);
		assert_int_equal(e->status, -ENODEV);
	}
}

/* ---- threads that are late ------------------------------------------------------------------ */

/* The threads have no processor for a time: the lanes are slow, and no call waits for them. */
static void a_thread_without_processor_loses_nothing(struct sim_case *c)
{
	static const uint64_t pauses[] = {1, 20, 200, 1500};
	const struct scene_conf conf = {.lanes = {2, 2}};

	for (unsigned int k = 0; k < 8; k++) {
		struct scene *s = threads_open(c, &conf, k & 1);
		struct scene_ep *e = scene_up(s, 0, 1), *f = scene_up(s, 1, 0);
		struct traffic m;

		scene_run(s, 5 * SIM_MS);
		begin(s, e, f, &m, 0);
		scene_run(s, 100 * SIM_US);
		t.held_until = sim_now(s->sim) + pauses[k / 2] * SIM_MS;
		end(&m, 0, 4 * SIM_S);
		assert_int_equal(e->errors + f->errors, 0);
		begin(s, e, f, &m, 500);
		end(&m, 500, 2 * SIM_S);
	}
}

/* An endpoint is closed, and another made, while threads have the ifaces. */
static void endpoints_come_and_go(struct sim_case *c)
{
	const struct scene_conf conf = {.nodes = 3, .lanes = {2, 2, 2}};
	struct scene *s = threads_open(c, &conf, false);
	struct scene_ep *e = scene_up(s, 0, 1), *g;

	for (unsigned int k = 0; k < 10; k++) {
		scene_run(s, 5 * SIM_MS);
		g = scene_up(s, k % 2, 2);
		scene_talk_long(s, g, 2, k);
		scene_talk_long(s, e, 1, k);
		op_expect(op_close(g, k % 3 ? 0 : WEFT_EP_CLOSE_F_FORCE), SIM_S, 0);
		scene_talk_long(s, e, 1, k);
	}
	assert_int_equal(e->errors, 0);
	assert_true(sum().away > 10);
}

static struct sim_case cases[] = {
	SIM_CASE(messages_keep_their_order_and_come_once),
	SIM_CASE(a_lane_that_dies_loses_no_message),
	SIM_CASE(a_device_that_is_gone_takes_its_lane_only),
	SIM_CASE(a_thread_without_processor_loses_nothing),
	SIM_CASE(endpoints_come_and_go),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_threads", cases, sizeof(cases) / sizeof(cases[0]));
}
