/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The window of a port that many senders share, over a model of senders: each answers what is
 * requested after its round trip, and the port carries one after the other.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rndv/rndv.h"

#define US 1000ull
#define MS 1000000ull
#define PIECE 16384ull
#define PIECES 4096

struct model {
	struct weft_pull_port port;
	uint64_t now;
	double rate;         /* bytes/ns that the port carries */
	uint64_t answer;     /* ns from a request to the piece at the port's queue */
	uint32_t rtt, trip;  /* ns: least round trip, and the one that senders measure now */
	uint64_t seed;       /* != 0: up to four times as long */
	uint64_t free_at;    /* when the port has carried all that has come to it */
	uint64_t at[PIECES]; /* when pieces are there: a ring, in order */
	unsigned int first, num;
	uint64_t carried, most_wait;
};

static void model_init(struct model *m, double claimed, double rate, uint64_t rtt, uint64_t answer)
{
	memset(m, 0, sizeof(*m));
	m->rate = rate;
	m->answer = answer;
	m->rtt = m->trip = (uint32_t)rtt;
	weft_pull_port_init(&m->port, claimed * 1e9);
	weft_pull_port_rtt(&m->port, m->rtt, m->trip);
}

static uint64_t answer_of(struct model *m)
{
	if (!m->seed)
		return m->answer;
	m->seed ^= m->seed << 13;
	m->seed ^= m->seed >> 7;
	m->seed ^= m->seed << 17;
	return m->answer + m->seed % (3 * m->answer);
}

static void request(struct model *m)
{
	uint64_t comes = m->now + answer_of(m), begin = comes > m->free_at ? comes : m->free_at;

	if (begin - comes > m->most_wait)
		m->most_wait = begin - comes;
	m->free_at = begin + (uint64_t)((double)PIECE / m->rate);
	assert_true(m->num < PIECES);
	m->at[(m->first + m->num++) % PIECES] = m->free_at;
	weft_pull_port_rtt(&m->port, m->rtt, m->trip);
	/* Another sender each time. */
	weft_pull_port_take(&m->port, PIECE, true);
}

/* One endpoint always waits. */
static void model_run(struct model *m, uint64_t ns)
{
	uint64_t end = m->now + ns;

	m->carried = m->most_wait = 0;
	while (m->now < end) {
		while (weft_pull_port_room(&m->port, true))
			request(m);
		m->now = m->at[m->first];
		m->first = (m->first + 1) % PIECES;
		m->num--;
		m->carried += PIECE;
		weft_pull_port_done(&m->port, PIECE, true);
		weft_pull_port_came(&m->port, PIECE, true, m->now);
	}
}

static void few_have_a_piece_however_full_the_port_is(void **state)
{
	struct weft_pull_port p;

	(void)state;
	weft_pull_port_init(&p, 1e6);
	assert_true(weft_pull_port_room(&p, false));
	weft_pull_port_take(&p, 100000, true);
	assert_false(weft_pull_port_room(&p, false));
	assert_true(weft_pull_port_room(&p, true));
	weft_pull_port_take(&p, 10, true);
	assert_false(weft_pull_port_room(&p, true));
	weft_pull_port_done(&p, 100000, true);
	assert_true(weft_pull_port_room(&p, true));
	weft_pull_port_done(&p, 10, true);
	assert_int_equal(p.out, 0);
	assert_int_equal(p.users, 0);
}

/* 10 Gb/s, 10 us: the link is full, and its queue short. */
/* @behaviour R11 */
static void the_port_is_filled_and_its_queue_is_short(void **state)
{
	struct model m;

	(void)state;
	model_init(&m, 1.25, 1.25, 10 * US, 12 * US);
	model_run(&m, 20 * MS);
	model_run(&m, 20 * MS);
	print_message("# %.3f of the port, at most %.1f us of queue, slack %.1f us\n",
		      (double)m.carried / (1.25 * 20 * MS), (double)m.most_wait * 1e-3,
		      m.port.slack * 1e-3);
	assert_true((double)m.carried > 0.85 * 1.25 * 20 * MS);
	assert_true(m.most_wait < 40 * US);
	assert_true(m.port.window < 60000);
}

/* Senders that need much longer than their round trip: more of them are asked at a time. */
static void a_late_peer_is_requested_earlier(void **state)
{
	struct model m;

	(void)state;
	model_init(&m, 1.25, 1.25, 10 * US, 150 * US);
	m.seed = 7;
	model_run(&m, 50 * MS);
	model_run(&m, 20 * MS);
	print_message("# %.3f of the port, slack %.1f us\n", (double)m.carried / (1.25 * 20 * MS),
		      m.port.slack * 1e-3);
	assert_true((double)m.carried > 0.8 * 1.25 * 20 * MS);
	assert_true(m.port.slack > 150 * US);
	/* And it is forgotten when they do not any more. */
	m.seed = 0;
	m.answer = 12 * US;
	model_run(&m, 60 * MS);
	assert_true(m.port.slack < 60 * US);
}

/* 25 Gb/s, 1 ms, and 100 Gb/s, 20 us. */
static void long_paths_are_filled(void **state)
{
	static const struct {
		double rate;
		uint64_t rtt;
	} path[] = {{3.125, 1000 * US}, {12.5, 20 * US}};
	struct model m;

	(void)state;
	for (int i = 0; i < 2; i++) {
		model_init(&m, path[i].rate, path[i].rate, path[i].rtt, path[i].rtt);
		model_run(&m, 40 * MS);
		model_run(&m, 20 * MS);
		print_message("# %.3f of the port\n", (double)m.carried / (path[i].rate * 20 * MS));
		assert_true((double)m.carried > 0.87 * path[i].rate * 20 * MS);
	}
}

/*
 * 200 Mb/s, 10 ms, and jitter that makes each round trip 50 ms. The window for 10 ms carried less,
 * the rate fell to what it carried, and the window with it: to 2 % of the link.
 */
/* @behaviour R13 */
static void jitter_is_no_slow_port(void **state)
{
	struct model m;

	(void)state;
	model_init(&m, 0.025, 0.025, 10 * MS, 50 * MS);
	m.trip = 50 * MS;
	model_run(&m, 4000 * MS);
	model_run(&m, 4000 * MS);
	print_message("# %.3f of the port, rate %.4f\n", (double)m.carried / (0.025 * 4000 * MS),
		      m.port.rate * 1e-9);
	assert_true((double)m.carried > 0.85 * 0.025 * 4000 * MS);
	assert_true(m.port.rate > 0.024e9);
	/* Its end leaves no queue of 40 ms. */
	m.trip = m.rtt;
	m.answer = 10 * MS;
	model_run(&m, 4000 * MS);
	model_run(&m, 1000 * MS);
	assert_true((double)m.carried > 0.85 * 0.025 * 1000 * MS);
	assert_true(m.most_wait < 10 * MS);
}

/* 200 Mb/s, 50 ms, senders that begin with a twentieth of it: the window leaves room for growth. */
static void a_long_path_becomes_fast_soon(void **state)
{
	struct model m;

	(void)state;
	model_init(&m, 0.025, 0.00125, 50 * MS, 50 * MS);
	model_run(&m, 2000 * MS);
	assert_true(m.port.rate < 0.004e9);
	m.rate = 0.025;
	model_run(&m, 3000 * MS);
	model_run(&m, 1000 * MS);
	print_message("# %.3f of the port\n", (double)m.carried / (0.025 * 1000 * MS));
	assert_true((double)m.carried > 0.85 * 0.025 * 1000 * MS);
}

/* A port that says too much, as behind a slower link, and one that says too little. */
static void the_rate_is_what_comes(void **state)
{
	struct model m;

	(void)state;
	model_init(&m, 12.5, 1.25, 10 * US, 12 * US);
	model_run(&m, 400 * MS);
	print_message("# 10 times too much claimed: rate %.2f, window %llu\n", m.port.rate * 1e-9,
		      (unsigned long long)m.port.window);
	assert_true(m.port.rate < 1.4e9);
	assert_true(m.port.window < 200000);
	model_init(&m, 0.125, 1.25, 10 * US, 12 * US);
	model_run(&m, 100 * MS);
	print_message("# 10 times too little: rate %.2f\n", m.port.rate * 1e-9);
	assert_true(m.port.rate > 1.0e9);
}

/* What is found after a time off the core did not come in the moment in which it is read. */
static void a_full_ring_is_no_fast_port(void **state)
{
	struct weft_pull_port p;
	uint64_t now = MS;

	(void)state;
	weft_pull_port_init(&p, 1e9);
	weft_pull_port_rtt(&p, 10000, 10000);
	for (int k = 0; k < 100; k++) {
		now += 5 * MS;
		for (int i = 0; i < 100; i++, now += 10 * US)
			weft_pull_port_came(&p, 60000, true, now);
	}
	/* 6 MB in 6 ms, of which they are read in one. */
	assert_true(p.rate < 1.3e9);
}

static void numbers_of_peers_break_nothing(void **state)
{
	struct weft_pull_port p;
	uint64_t seed = 5, now = 0;

	(void)state;
	weft_pull_port_init(&p, -1);
	for (int k = 0; k < 100000; k++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		now += seed >> 40;
		weft_pull_port_rtt(&p, (uint32_t)(seed >> 32), (uint32_t)(seed >> 20));
		weft_pull_port_came(&p, seed >> 34, k & 1, now);
		assert_in_range(p.slack, WEFT_PULL_SLACK_MIN, 2000000000);
		assert_true(p.window > 0 && p.rate > 0);
		assert_in_range(p.rtt, 0, 1100000000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_have_a_piece_however_full_the_port_is),
		cmocka_unit_test(the_port_is_filled_and_its_queue_is_short),
		cmocka_unit_test(a_late_peer_is_requested_earlier),
		cmocka_unit_test(long_paths_are_filled),
		cmocka_unit_test(jitter_is_no_slow_port),
		cmocka_unit_test(a_long_path_becomes_fast_soon),
		cmocka_unit_test(the_rate_is_what_comes),
		cmocka_unit_test(a_full_ring_is_no_fast_port),
		cmocka_unit_test(numbers_of_peers_break_nothing),
	};

	return cmocka_run_group_tests_name("port", tests, NULL, NULL);
}
