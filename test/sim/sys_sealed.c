/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole library in virtual time: the keys of an endpoint's further lanes follow from those of
 * its first one (doc/sealing.md, exchange 3).
 */

#include <string.h>

#include "core/worker.h"
#include "lane.h"
#include "reseal.h"
#include "scene.h"
#include "seal/exchange.h"
#include "wireup/codec.h"
#include "wireup/failover.h"
#include "wireup/state.h"

static const uint8_t key[32] = "a job key of the sealed lanes 02";

static const struct scene_conf two = {.lanes = {2, 2}, .job_key = key};

/* HELLOs that have left a port, by their exchange. */
struct hellos {
	unsigned int sent[4];
};

static struct hellos hellos[2][SCENE_LANES];

/* HELLOs of exchange 3 that the net loses: all, or those of lane 1 with this key. */
static bool lose_all;
static const struct weft_exchange_key *lose_key;

static bool is_lost(const struct weft_seal_hello *h)
{
	return h->kind == WEFT_EXCHANGE_NEXT &&
	       (lose_all || (lose_key && h->lane == 1 &&
			     memcmp(h->key_id, lose_key->id, WEFT_KEY_ID_LEN) == 0));
}

static enum sim_verdict see_hello(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				  void *arg)
{
	const struct weft_seal_hello *sealed;
	struct hellos *h = arg;

	(void)port;
	(void)room;
	if (!reseal_is_lane(data, *len) || reseal_header(data)->type != WEFT_FRAME_HELLO)
		return SIM_PASS;
	sealed = (const struct weft_seal_hello *)((uint8_t *)(reseal_header(data) + 1) +
						  WEFT_EXCHANGE_AT);
	assert_in_range(sealed->kind, WEFT_EXCHANGE_NOISE, WEFT_EXCHANGE_NEXT);
	h->sent[sealed->kind]++;
	return is_lost(sealed) ? SIM_DROP : SIM_PASS;
}

static void see_hellos(struct scene *s, unsigned int lanes)
{
	memset(hellos, 0, sizeof(hellos));
	lose_all = false;
	lose_key = NULL;
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int n = 0; n < lanes; n++)
			sim_filter(s->port[i][n], see_hello, &hellos[i][n]);
}

static unsigned int sent(unsigned int lane, enum weft_exchange_kind kind)
{
	return hellos[0][lane].sent[kind] + hellos[1][lane].sent[kind];
}

static void cut(struct scene *s, unsigned int lane, bool dead)
{
	sim_port_up(s->port[0][lane])->blackhole = dead;
	sim_port_up(s->port[1][lane])->blackhole = dead;
}

/* ---- lanes that are made -------------------------------------------------------------------- */

/*
 * @behaviour Y86: further lanes of a sealed endpoint, also one that is back, make their keys from
 * those of its first lane, without X25519
 */
static void further_lanes_and_one_that_is_back_use_the_first_ones_secret(struct sim_case *c)
{
	const struct scene_conf conf = {.lanes = {3, 3}, .job_key = key};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e, *f;

	see_hellos(s, 3);
	/* Both at once: two endpoints, and two further lanes of each. */
	e = scene_connect(s, 0, 1);
	f = scene_connect(s, 1, 0);
	assert_int_equal(scene_wait_up(e, SIM_S), 0);
	assert_int_equal(scene_wait_up(f, SIM_S), 0);
	scene_run(s, 100 * SIM_MS);
	assert_int_equal(scene_lanes_up(e), 3);
	assert_int_equal(scene_lanes_up(f), 3);
	for (unsigned int n = 0; n < 3; n++) {
		bool first = sent(n, WEFT_EXCHANGE_NOISE) > 0;

		assert_int_equal(sent(n, WEFT_EXCHANGE_PSK), 0);
		assert_true(first != (sent(n, WEFT_EXCHANGE_NEXT) > 0));
	}
	assert_true(sent(0, WEFT_EXCHANGE_NOISE) > 0);
	scene_talk_long(s, e, 1, 1);
	scene_talk_long(s, f, 0, 2);

	/* The first one, too, comes back with the secret that it gave. */
	for (unsigned int n = 0; n < 2; n++) {
		unsigned int before = sent(0, WEFT_EXCHANGE_NOISE);

		cut(s, n, true);
		scene_talk_long(s, e, 1, 3);
		scene_run(s, 2 * SIM_S);
		assert_int_equal(scene_lanes_up(e), 2);
		cut(s, n, false);
		scene_run(s, 2 * SIM_S);
		assert_int_equal(scene_lanes_up(e), 3);
		assert_true(sent(n, WEFT_EXCHANGE_NEXT) > 0);
		assert_int_equal(sent(0, WEFT_EXCHANGE_NOISE), before);
		scene_talk_long(s, f, 0, 4);
	}
	assert_int_equal(e->errors + f->errors, 0);
}

/* @behaviour Y86 */
static void a_worker_that_restarts_makes_all_keys_again(struct sim_case *c)
{
	struct scene *s = scene_open(c, &two);
	struct scene_ep *e = scene_up(s, 0, 1);

	scene_run(s, 100 * SIM_MS);
	assert_int_equal(scene_lanes_up(e), 2);
	sim_node_kill(s->node[1]);
	scene_start(s, 1);
	see_hellos(s, 2);
	e = scene_up(s, 0, 1);
	scene_run(s, 100 * SIM_MS);
	assert_int_equal(scene_lanes_up(e), 2);
	assert_true(sent(0, WEFT_EXCHANGE_NOISE) > 0);
	assert_int_equal(sent(1, WEFT_EXCHANGE_NOISE), 0);
	assert_true(sent(1, WEFT_EXCHANGE_NEXT) > 0);
	scene_talk_long(s, e, 1, 1);
}

/* ---- lanes that are forged ------------------------------------------------------------------ */

/* Of an endpoint with two lanes: the end that attaches the second one, and the other end. */
struct stage {
	struct scene *s;
	struct scene_ep *user;
	struct weft_ep *opener, *acceptor;
	unsigned int node; /* of the acceptor */
};

static void stage_open(struct stage *t, struct scene *s)
{
	struct weft_ep *far;

	*t = (struct stage){.s = s, .user = scene_up(s, 0, 1)};
	scene_run(s, 100 * SIM_MS);
	far = s->accepted[1]->ep;
	t->node = t->user->ep->worker->id < far->worker->id;
	t->opener = t->node ? t->user->ep : far;
	t->acceptor = t->node ? far : t->user->ep;
}

/*
 * An attacker with all that a member of the job can know: the job key, both secrets of the
 * endpoint, the addresses and ids of its interfaces. It connects, with its key if it has one, and
 * attaches. @known: the acceptor has this key. @return true: the endpoint took the lane
 */
static bool forge(struct stage *t, const struct weft_lane_key *with, bool known, uint8_t lane,
		  uint16_t epoch)
{
	struct weft_worker *w = t->opener->worker, *victim = t->acceptor->worker;
	struct weft_lane_iface *from = w->ifaces[1], *to = victim->ifaces[1];
	uint64_t stale = sim_node_counter(t->s->node[t->node], "wireup.drop.stale");
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	struct weft_wire_wireup h;
	struct weft_lane_ep *x;
	bool taken;

	to->ops->get_address(to, addr);
	if (with)
		assert_int_equal(from->ops->ep_connect_key(from, addr, to->attr.dev_addr_len, NULL,
							   with, lane, &x),
				 0);
	else
		assert_int_equal(from->ops->ep_connect(from, addr, to->attr.dev_addr_len, NULL, &x),
				 0);
	x->index = WEFT_NO_LANE;
	/* ARP may have to look for the host again. */
	for (unsigned int i = 0; i < 100 && !x->up; i++)
		scene_run(t->s, 5 * SIM_MS);
	if (x->up != known)
		fail_msg("a connection %s made", x->up ? "was" : "was not");
	if (!x->up) {
		weft_lane_ep_destroy(w, x);
		return false;
	}
	weft_wireup_head(t->opener, WEFT_WIREUP_ATTACH, 1, &h);
	h.lane_epoch = weft_put16(epoch);
	assert_int_equal(weft_wireup_send(x, &h, NULL, 0), 0);
	scene_run(t->s, 20 * SIM_MS);
	taken = t->acceptor->lanes[1].up;
	if (!taken)
		assert_true(sim_node_counter(t->s->node[t->node], "wireup.drop.stale") > stale);
	weft_lane_ep_destroy(w, x);
	return taken;
}

/*
 * @behaviour Y87: a member of the job that knows the secrets of a sealed endpoint attaches no lane
 * to it, neither at the start nor when a lane is down
 */
static void a_member_of_the_job_attaches_no_lane_to_others_endpoints(struct sim_case *c)
{
	struct scene_conf conf = two;
	struct weft_lane_key wrong;
	struct stage t, u;
	struct scene *s;
	uint16_t epoch;

	conf.lazy = true;
	s = scene_open(c, &conf);
	s->accept = true;
	scene_start(s, 0);
	scene_start(s, 1);
	see_hellos(s, 2);
	/* The second lane is awaited. */
	lose_all = true;
	stage_open(&t, s);
	stage_open(&u, s);
	assert_int_equal(t.acceptor->lanes_up | t.opener->lanes_up, 1);
	assert_false(forge(&t, NULL, true, 1, 0));
	lose_all = false;
	scene_run(s, 2 * SIM_S);
	assert_int_equal(scene_lanes_up(t.user), 2);

	/* The lane is down at both ends. */
	lose_key = (const struct weft_exchange_key *)t.opener->lane_key->bytes;
	cut(s, 1, true);
	scene_talk_long(s, t.user, 1, 1);
	scene_run(s, 2 * SIM_S);
	cut(s, 1, false);
	assert_int_equal(scene_lanes_up(t.user), 1);
	assert_int_equal(t.acceptor->failover->lane[1].life, WEFT_LANE_GONE);
	epoch = (uint16_t)(t.acceptor->failover->lane[1].epoch + 1);
	assert_false(forge(&t, NULL, true, 1, epoch));
	/* Keys of another endpoint, for another lane, and of no endpoint. */
	assert_false(forge(&t, u.opener->lane_key, true, 1, epoch));
	assert_false(forge(&t, t.opener->lane_key, true, 2, epoch));
	wrong = *t.opener->lane_key;
	((struct weft_exchange_key *)wrong.bytes)->id[0] ^= 1;
	assert_int_equal(sim_node_counter(s->node[t.node], "seal.hello_key"), 0);
	assert_false(forge(&t, &wrong, false, 1, epoch));
	assert_true(sim_node_counter(s->node[t.node], "seal.hello_key") > 0);
	lose_key = NULL;
	scene_talk(s, t.user, 1, 2);
	scene_run(s, 3 * SIM_S);
	assert_int_equal(scene_lanes_up(t.user), 2);
	scene_talk_long(s, t.user, 1, 3);
	assert_int_equal(t.user->errors + u.user->errors, 0);
}

static struct sim_case cases[] = {
	SIM_CASE(further_lanes_and_one_that_is_back_use_the_first_ones_secret),
	SIM_CASE(a_worker_that_restarts_makes_all_keys_again),
	SIM_CASE(a_member_of_the_job_attaches_no_lane_to_others_endpoints),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_sealed", cases, sizeof(cases) / sizeof(cases[0]));
}
