/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How operations share two devices that both state 100 Gb/s and 1 us, and are slower, far away,
 * tell of completions in bursts, or stand still for a while. Each protocol that spreads one
 * operation over lanes, the same schedule.
 */

#include "mock/rma_world.h"

#define SIZE 200000u
#define DEPTH 4
#define US 1000ull
#define STEP (10 * US)
#define STATED "bw=12.5e9,lat=1e-6,net="

enum how { PUT, GET, RNDV_READ, RNDV_WRITE, RNDV_PULL, MULTI_EAGER, HOWS };

static const struct {
	const char *name, *options, *setting;
} hows[HOWS] = {
	{"put", ",native=1000000", "ATOMIC_MODE=cpu"},
	{"get", ",native=1000000", "ATOMIC_MODE=cpu"},
	{"rendezvous, read", ",native=1000000", "RNDV_SCHEME=get"},
	{"rendezvous, written", ",native=1000000", "RNDV_SCHEME=put"},
	{"rendezvous, pulled", ",zcopy=65536", "RNDV_SCHEME=get"},
	{"multi-eager", "", "RNDV_THRESH=1M"},
};

/* One device as it is. */
struct device {
	double rate;
	uint64_t lag, burst;
};

struct stream {
	struct world x;
	enum how how;
	uint8_t *to;
	struct op op[DEPTH], recv[DEPTH];
	unsigned int next;
};

static void begin_one(struct stream *s)
{
	unsigned int i = s->next++ % DEPTH;
	struct weft_op_params p;

	switch (s->how) {
	case PUT:
		put(&s->x, &s->op[i], 0, 0, SIZE);
		return;
	case GET:
		get(&s->x, &s->op[i], 0, 0, SIZE);
		return;
	default:
		p = params(&s->recv[i], NULL);
		s->recv[i].rc = weft_tag_recv(s->x.peer[0], NULL, s->to + (size_t)i * SIZE, SIZE,
					      s->next, ~0ull, &p, &s->recv[i].req);

		p = params(&s->op[i], s->how == RNDV_PULL ? NULL : s->x.local);
		s->op[i].rc = weft_tag_send(s->x.ep[0], s->x.buf, SIZE, s->next, &p, &s->op[i].req);
	}
}

static void turn(struct stream *s)
{
	mock_run(1, STEP, s->x.w, NULL);
	mock_run(1, 0, s->x.peer[0], NULL);
}

/* The oldest ends, and the next begins. */
static void follow(struct stream *s)
{
	unsigned int i = s->next % DEPTH;
	bool tag = s->how >= RNDV_READ;

	for (int t = 0; t < 100000 && (!op_done(&s->op[i]) || (tag && !op_done(&s->recv[i]))); t++)
		turn(s);
	op_end(&s->op[i], 0);
	if (tag) {
		op_end(&s->recv[i], 0);
		pattern_expect(4, s->to + (size_t)i * SIZE, SIZE);
	}
	begin_one(s);
}

static void stream_open(struct stream *s, enum how how, const struct device *d)
{
	char lanes[200];

	*s = (struct stream){.how = how};
	snprintf(lanes, sizeof(lanes), "mock:0," STATED "0%s;mock:1," STATED "1%s",
		 hows[how].options, hows[how].options);
	world_open(&s->x, 1, lanes, hows[how].setting, false);
	s->to = malloc((size_t)SIZE * DEPTH);
	pattern_fill(4, 0, s->x.buf, s->x.size);
	memcpy(s->x.bytes[0], s->x.buf, s->x.size);
	mock_set_window(how == MULTI_EAGER || how == RNDV_PULL ? 16 : 0);
	for (unsigned int i = 0; i < 2; i++) {
		mock_set_speed(mock_iface(s->x.w, i), d[i].rate, d[i].lag, d[i].burst);
		mock_set_speed(mock_iface(s->x.peer[0], i), d[i].rate, d[i].lag, d[i].burst);
	}
	for (unsigned int i = 0; i < DEPTH; i++)
		begin_one(s);
}

static void stream_close(struct stream *s)
{
	for (unsigned int i = 0; i < DEPTH; i++) {
		s->next = i;
		for (int t = 0; t < 100000 && !op_done(&s->op[i]); t++)
			turn(s);
		op_end(&s->op[i], 0);
		for (int t = 0; t < 1000 && s->how >= RNDV_READ && !op_done(&s->recv[i]); t++)
			turn(s);
		if (s->how >= RNDV_READ)
			op_end(&s->recv[i], 0);
	}
	mock_set_window(0);
	free(s->to);
	world_close(&s->x);
}

static uint64_t moved(struct stream *s, unsigned int lane)
{
	return mock_moved(mock_iface(s->x.w, lane)) + mock_moved(mock_iface(s->x.peer[0], lane));
}

/* @n operations. @return percent of the bytes that lane 0 has carried; @took: how long, ns */
static unsigned int share_of(struct stream *s, unsigned int n, uint64_t *took)
{
	uint64_t m0 = moved(s, 0), m1 = moved(s, 1), begin = mock_now;

	while (n--)
		follow(s);
	m0 = moved(s, 0) - m0;
	m1 = moved(s, 1) - m1;
	*took = mock_now - begin;
	return (unsigned int)(m0 * 100 / (m0 + m1));
}

/* Lane 0's share and the time for @n operations, beside what both devices can do together. */
static void expect(struct stream *s, unsigned int n, double sum, unsigned int least,
		   unsigned int most, double times, const char *what)
{
	uint64_t took;
	unsigned int percent = share_of(s, n, &took);
	double ideal = (double)n * SIZE * 1e9 / sum;

	if (percent < least || percent > most || (double)took > ideal * times)
		fail_msg("%s, %s: %u %% over lane 0 (%u to %u), %.2f times as long as possible "
			 "(%.2f)",
			 hows[s->how].name, what, percent, least, most, (double)took / ideal,
			 times);
}

/* @behaviour Y27 */
static void unreported_rates_make_the_shares(void **state)
{
	static const struct {
		struct device d[2];
		unsigned int least, most;
	} cases[] = {
		{{{4e8, 2 * US, 0}, {4e8, 2 * US, 0}}, 42, 58},
		{{{1e8, 2 * US, 0}, {4e8, 2 * US, 0}}, 13, 27},
		{{{4e8, 2 * US, 0}, {1e8, 2 * US, 0}}, 73, 87},
	};
	struct stream s;

	(void)state;
	for (enum how how = 0; how < HOWS; how++) {
		for (unsigned int i = 0; i < 3; i++) {
			stream_open(&s, how, cases[i].d);
			for (unsigned int k = 0; k < 20; k++)
				follow(&s);
			expect(&s, 100, cases[i].d[0].rate + cases[i].d[1].rate, cases[i].least,
			       cases[i].most, 1.3, "true rates");
			stream_close(&s);
		}
	}
}

/* @behaviour Y27 */
static void a_far_device_gets_its_share(void **state)
{
	static const struct device d[2] = {{4e8, 2 * US, 0}, {4e8, 200 * US, 0}};
	struct stream s;

	(void)state;
	for (enum how how = 0; how < HOWS; how++) {
		stream_open(&s, how, d);
		for (unsigned int k = 0; k < 20; k++)
			follow(&s);
		expect(&s, 100, 8e8, 35, 70, 1.6, "latencies of 2 and 200 us");
		stream_close(&s);
	}
}

/* @behaviour Y27 */
static void completions_in_bursts_count_when_they_come(void **state)
{
	static const struct device d[2] = {{4e8, 2 * US, 500 * US}, {4e8, 2 * US, 0}};
	struct stream s;

	(void)state;
	for (enum how how = 0; how < HOWS; how++) {
		stream_open(&s, how, d);
		for (unsigned int k = 0; k < 20; k++)
			follow(&s);
		expect(&s, 100, 8e8, 30, 70, 1.6, "bursts");
		stream_close(&s);
	}
}

/* @behaviour Y27 */
static void a_device_that_stands_still_is_given_no_more_and_taken_again(void **state)
{
	static const struct device d[2] = {{4e8, 2 * US, 0}, {4e8, 2 * US, 0}};
	struct stream s;
	uint64_t before, took;

	(void)state;
	for (enum how how = 0; how < HOWS; how++) {
		stream_open(&s, how, d);
		for (unsigned int k = 0; k < 20; k++)
			follow(&s);
		before = moved(&s, 1);
		mock_stall(mock_iface(s.x.w, 1), 20000 * US);
		mock_stall(mock_iface(s.x.peer[0], 1), 20000 * US);
		for (unsigned int t = 0; t < 1900; t++)
			turn(&s);
		if (moved(&s, 1) - before > DEPTH * SIZE)
			fail_msg("%s: %llu bytes for a device that stands still", hows[how].name,
				 (unsigned long long)(moved(&s, 1) - before));
		share_of(&s, 60, &took);
		expect(&s, 100, 8e8, 40, 60, 1.4, "after a stall");
		stream_close(&s);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(unreported_rates_make_the_shares, setup, teardown),
		cmocka_unit_test_setup_teardown(a_far_device_gets_its_share, setup, teardown),
		cmocka_unit_test_setup_teardown(completions_in_bursts_count_when_they_come, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_device_that_stands_still_is_given_no_more_and_taken_again, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
