/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One sender and 128 peers over the raw-DPDK engine: those that stop, die or trickle
 * acknowledgements slow down no other peer.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lane_host.h"
#include "mock/rounds.h"
#include "sim_test.h"

#define PEERS 128
#define BULK 750 /* messages of a frame: 1 MiB */

/*
 * All of them, or a part with TEST_ROUNDS in the environment, and of the bad ones as large a part.
 */
static unsigned int peers(void)
{
	return test_rounds(PEERS);
}

enum how_bad { STOPPED, DEAD, TRICKLING };

struct many {
	struct sim *sim;
	struct lane_host *a, *peer[PEERS];
	struct sim_port *port[PEERS];
	struct lane_end *e[PEERS];
	unsigned int bad; /* the first so many */
	uint32_t feed;    /* number of the next message to one of them */
};

/* A sender that does not know which peers are stopped goes on sending to all. */
static void feed_bad(struct many *w)
{
	for (unsigned int i = 0; i < w->bad; i++)
		for (unsigned int k = 0; k < 4 && w->e[i]->up; k++)
			if (lane_send(w->e[i], (w->feed + k) % 2 ? LANE_BCOPY : LANE_ZCOPY, w->feed,
				      1200) < 0)
				break;
	w->feed = (w->feed + 1) % 1000;
}

struct bulk {
	struct many *w;
	struct lane_end *to;
	uint32_t next, end;
	size_t size;
	int flushed;
	bool single;
};

static bool bulk_step(void *arg)
{
	struct bulk *b = arg;

	feed_bad(b->w);
	while (b->next < b->end &&
	       lane_send(b->to, b->next % 2 ? LANE_BCOPY : LANE_ZCOPY, b->next, b->size) >= 0)
		b->next++;
	/* Of one message counts when it arrives, not when a delayed acknowledgement says so. */
	if (b->single)
		return lane_got(b->w->peer[peers() - 1], b->end - 1) > 0;
	if (b->next == b->end && b->flushed == 0) {
		b->flushed = -1;
		if (lane_flush(b->to, &b->flushed) == WEFT_LANE_IDLE)
			b->flushed = 1;
	}
	return b->flushed == 1;
}

/* @return ns until @p n messages of @p size bytes are acknowledged */
static uint64_t takes(struct many *w, unsigned int peer, uint32_t n, size_t size)
{
	static uint32_t number = 2000;
	uint64_t begin = sim_now(w->sim);
	struct bulk b = {.w = w, .to = w->e[peer], .size = size, .single = n == 1};

	number = number + n > LANE_MAX_NUMBERS ? 2000 : number;
	b.next = number;
	number += n;
	b.end = number;
	assert_true(sim_run(w->sim, 60 * SIM_S, bulk_step, &b));
	return sim_now(w->sim) - begin;
}

/* The median of some tries to the last peer, which is always a good one. */
static uint64_t typically(struct many *w, uint32_t n, size_t size)
{
	uint64_t t[9];

	for (unsigned int i = 0; i < 9; i++)
		t[i] = takes(w, peers() - 1, n, size);
	qsort(t, 9, sizeof(t[0]), sim_by_value);
	return t[4];
}

static void gather(struct many *w, struct sim_case *c)
{
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000},
				    .down = {.rate = 10 * SIM_GBIT}};

	memset(w, 0, sizeof(*w));
	w->sim = case_sim_seed(c, c->seed);
	w->a = lane_host_create(w->sim, sim_port_create(w->sim, &p), NULL);
	for (unsigned int i = 0; i < peers(); i++) {
		w->port[i] = sim_port_create(w->sim, &p);
		w->peer[i] = lane_host_create(w->sim, w->port[i], NULL);
		w->e[i] = lane_up(w->a, w->peer[i]);
		assert_non_null(w->e[i]);
	}
}

static void spoil(struct many *w, unsigned int bad, enum how_bad how)
{
	for (unsigned int i = 0; i < bad; i++) {
		if (how == STOPPED)
			lane_host_pause(w->peer[i], 1000 * SIM_S);
		else if (how == DEAD)
			lane_host_kill(w->peer[i]);
		else /* a frame every 9 s */
			*sim_port_down(w->port[i]) =
				(struct sim_link){.rate = 1300 * 8 / 9, .queue_bytes = 3000};
	}
	w->bad = bad;
}

static void others_are_not_slowed(struct sim_case *c, unsigned int bad, enum how_bad how)
{
	uint64_t bulk, lat, worst = 0, t;
	struct many w;

	bad = test_rounds(bad);
	gather(&w, c);
	lat = typically(&w, 1, 8);
	bulk = typically(&w, BULK, 1390);
	spoil(&w, bad, how);
	/* While it is not known yet, and later. */
	for (unsigned int i = 0; i < 10; i++) {
		t = takes(&w, peers() - 1, BULK, 1390);
		worst = t > worst ? t : worst;
	}
	if (worst > 100 * SIM_MS)
		fail_msg("1 MiB took %.1f ms, %.2f ms alone", (double)worst / 1e6,
			 (double)bulk / 1e6);
	t = typically(&w, 1, 8);
	if (t > lat * 3 / 2)
		fail_msg("8 B take %.1f us, %.1f us alone", (double)t / 1e3, (double)lat / 1e3);
	t = typically(&w, BULK, 1390);
	if (t > bulk * 3 / 2)
		fail_msg("1 MiB takes %.2f ms, %.2f ms alone", (double)t / 1e6, (double)bulk / 1e6);
	assert_int_equal(lane_wrong(w.peer[peers() - 1]), 0);
}

/* @behaviour T1 */
static void one_stopped_peer_slows_down_no_peer(struct sim_case *c)
{
	others_are_not_slowed(c, 1, STOPPED);
}

/* @behaviour T1 */
static void eight_stopped_peers_slow_down_no_peer(struct sim_case *c)
{
	others_are_not_slowed(c, 8, STOPPED);
}

/* @behaviour T1 */
static void sixty_four_stopped_peers_slow_down_no_peer(struct sim_case *c)
{
	others_are_not_slowed(c, 64, STOPPED);
}

/* @behaviour T1 */
static void dead_peers_slow_down_no_peer(struct sim_case *c)
{
	others_are_not_slowed(c, 8, DEAD);
	others_are_not_slowed(c, 64, DEAD);
}

/* @behaviour T4 */
static void trickling_peers_slow_down_no_peer(struct sim_case *c)
{
	others_are_not_slowed(c, 1, TRICKLING);
	others_are_not_slowed(c, 64, TRICKLING);
}

/* What was taken back from a peer that stopped is delivered when it goes on: every message once. */
/* @behaviour T1 */
static void what_a_stopped_peer_was_sent_arrives_when_it_goes_on(struct sim_case *c)
{
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}, .bufs = 700};
	struct sim *sim = case_sim_seed(c, c->seed);
	struct lane_host *a = lane_host_create(sim, sim_port_create(sim, &p), "CSUM=crc32c"), *b[8];
	struct lane_end *e[8];
	uint32_t sent[8];

	for (unsigned int i = 0; i < 8; i++) {
		b[i] = lane_host_create(sim, sim_port_create(sim, &p), "CSUM=crc32c");
		e[i] = lane_up(a, b[i]);
		assert_non_null(e[i]);
		lane_host_pause(b[i], i < 7 ? 2 * SIM_S : 0);
	}
	for (unsigned int i = 0; i < 7; i++)
		for (sent[i] = 0; lane_send(e[i], sent[i] % 2 ? LANE_BCOPY : LANE_ZCOPY, sent[i],
					    1 + sent[i] * 7 % 1300) >= 0;
		     sent[i]++)
			;
	/* Until it shows that they have stopped. */
	sim_run(sim, 50 * SIM_MS, NULL, NULL);
	/* The eighth needs the buffers that the others hold. */
	assert_true(lane_send_all(e[7], 5000, 7000, 500 * SIM_MS));
	assert_true(lane_counter(a, "tx.taken_back") > 0);
	/* A completion is an acknowledgement: what was copied away has none. */
	assert_true(lane_zcopy_pending(a) > 0);
	sim_run(sim, 4 * SIM_S, NULL, NULL);
	for (unsigned int i = 0; i < 7; i++) {
		assert_true(e[i]->up);
		assert_true(lane_exactly_once(b[i], 0, sent[i]));
		assert_int_equal(lane_wrong(b[i]), 0);
	}
	assert_int_equal(lane_zcopy_pending(a), 0);
	assert_int_equal(lane_zcopy_status(a), 0);
	assert_int_equal(lane_counter(a, "tx.taken_back_bytes"), 0);
	/* And all have their whole windows again. */
	for (unsigned int i = 0; i < 7; i++)
		assert_true(lane_send_all(e[i], 8000 + 200 * i, 8200 + 200 * i, 50 * SIM_MS));
}

/*
 * Progress counts, not signs of life: a peer that acknowledges a frame now and then does not hold a
 * connection for ever.
 */
/* @behaviour T4 */
static void a_peer_that_trickles_is_given_up(struct sim_case *c)
{
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}};
	struct sim *sim = case_sim_seed(c, c->seed);
	struct sim_port *pb;
	struct lane_host *a = lane_host_create(sim, sim_port_create(sim, &p), NULL), *b;
	struct lane_end *e;
	uint32_t n = 0;

	pb = sim_port_create(sim, &p);
	b = lane_host_create(sim, pb, NULL);
	e = lane_up(a, b);
	assert_non_null(e);
	*sim_port_down(pb) = (struct sim_link){.rate = 1300 * 8 / 9, .queue_bytes = 3000};
	while (lane_send(e, LANE_BCOPY, n, 1200) >= 0)
		n++;
	sim_run(sim, 25 * SIM_S, NULL, NULL);
	assert_true(e->up);
	sim_run(sim, 60 * SIM_S, NULL, NULL);
	assert_true(e->down);
	assert_int_equal(e->status, -ETIMEDOUT);
	assert_non_null(strstr(e->text, "acknowledged"));
}

static struct sim_case cases[] = {
	SIM_CASE(one_stopped_peer_slows_down_no_peer),
	SIM_CASE(eight_stopped_peers_slow_down_no_peer),
	SIM_CASE(sixty_four_stopped_peers_slow_down_no_peer),
	SIM_CASE(dead_peers_slow_down_no_peer),
	SIM_CASE(trickling_peers_slow_down_no_peer),
	SIM_CASE(what_a_stopped_peer_was_sent_arrives_when_it_goes_on),
	SIM_CASE(a_peer_that_trickles_is_given_up),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_share", cases, sizeof(cases) / sizeof(cases[0]));
}
