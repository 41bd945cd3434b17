/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages over the whole library: several peers, the loopback lane, threads, closing. Mock lanes,
 * so any order and no room.
 */

#include <pthread.h>

#include "mock/mock_lane.h"
#include "msg/msg.h"
#include "mock/msg_util.h"
#include "mock/rounds.h"

#define MS 1000000ull

static int setup(void **state)
{
	(void)state;
	mock_reset();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(mock_num_ifaces(), 0);
	assert_int_equal(mock_num_lane_eps(), 0);
	assert_int_equal(mock_num_kept(), 0);
	return 0;
}

#define MAX_PEERS 8

/** Some workers that send to one. */
struct star {
	struct weft_context *ctx;
	struct weft_worker *hub, *peer[MAX_PEERS];
	struct weft_ep *to_hub[MAX_PEERS];
	int n;
};

static void star_open(struct star *s, int n, const char *lanes)
{
	s->ctx = mock_context("CONNECT_TIMEOUT=30s", "MULTI_EAGER_LIMIT=64k", "LOG_LEVEL=error",
			      NULL);
	s->hub = mock_worker(s->ctx, lanes);
	s->n = n;
	for (int i = 0; i < n; i++) {
		s->peer[i] = mock_worker(s->ctx, lanes);
		s->to_hub[i] = mock_connect(s->peer[i], s->hub);
	}
}

static void star_run(struct star *s, int rounds)
{
	while (rounds--) {
		mock_run(1, MS, s->hub, NULL);
		for (int i = 0; i < s->n; i++)
			mock_run(1, 0, s->peer[i], NULL);
	}
}

static void star_close(struct star *s)
{
	for (int i = 0; i < s->n; i++)
		weft_worker_destroy(s->peer[i]);
	weft_worker_destroy(s->hub);
	assert_int_equal(weft_context_destroy(s->ctx), 0);
}

/* @behaviour A7: wildcard source under all senders: no sender starves */
static void A7_wildcard_receives_serve_all_senders_and_keep_each_ones_order(void **state)
{
	enum { PER = 200 };
	struct star s;
	uint64_t got, expect[MAX_PEERS] = {0}, first_lag = 0;

	(void)state;
	star_open(&s, 5, "mock:0;mock:1");
	mock_set_burst(3);
	star_run(&s, 50);
	for (uint64_t k = 0; k < PER; k++) {
		for (int i = 0; i < s.n; i++) {
			uint64_t v = (uint64_t)i << 32 | k;

			assert_in_range(weft_tag_send(s.to_hub[i], &v, sizeof(v), (uint64_t)i, NULL,
						      NULL),
					0, 1);
		}
	}
	for (int k = 0; k < PER * s.n; k++) {
		struct op r;
		uint64_t from, most = 0, least = PER;

		op_recv(&r, s.hub, &got, sizeof(got), 0, 0);
		for (int t = 0; !op_done(&r) && t < 1000; t++)
			star_run(&s, 1);
		op_end(&r, 0);
		from = got >> 32;
		assert_true(from == r.c.tag);
		assert_true((got & UINT32_MAX) == expect[from]);
		assert_true(r.c.source_id == s.peer[from]->id);
		expect[from]++;
		for (int i = 0; i < s.n; i++) {
			most = expect[i] > most ? expect[i] : most;
			least = expect[i] < least ? expect[i] : least;
		}
		first_lag = most - least > first_lag ? most - least : first_lag;
	}
	/* No stream waits until the others are through. */
	assert_true(first_lag < PER / 2);
	star_close(&s);
}

/* @behaviour A11 */
static void A11_interleaved_pieces_of_messages_from_several_peers(void **state)
{
	enum { K = 6, LEN = 30000 };
	struct star s;

	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		uint8_t *sbuf[4][K], *rbuf[4][K];
		struct op so[4][K], ro[4][K];

		mock_reset();
		mock_seed(seed);
		star_open(&s, 4, "mock:0,bcopy=1500,zcopy=0;mock:1,bcopy=900,zcopy=2000");
		mock_set_order(MOCK_RANDOM);
		star_run(&s, 30);
		for (int k = 0; k < K; k++) {
			for (int i = 0; i < s.n; i++) {
				uint64_t id = (uint64_t)(i * K + k);

				sbuf[i][k] = malloc(LEN);
				rbuf[i][k] = malloc(LEN);
				pattern_fill(id, 0, sbuf[i][k], LEN);
				if (k % 2)
					op_recv(&ro[i][k], s.hub, rbuf[i][k], LEN, id, FULL);
				op_send(&so[i][k], s.to_hub[i], sbuf[i][k], LEN, id);
			}
			mock_set_burst(2);
			star_run(&s, 2);
		}
		for (int k = 0; k < K; k += 2) {
			for (int i = 0; i < s.n; i++)
				op_recv(&ro[i][k], s.hub, rbuf[i][k], LEN, (uint64_t)(i * K + k),
					FULL);
		}
		mock_set_burst(0);
		star_run(&s, 400);
		for (int i = 0; i < s.n; i++) {
			for (int k = 0; k < K; k++) {
				op_end(&so[i][k], 0);
				op_end_recv(&ro[i][k], rbuf[i][k], LEN, (uint64_t)(i * K + k),
					    (uint64_t)(i * K + k));
				free(sbuf[i][k]);
				free(rbuf[i][k]);
			}
		}
		star_close(&s);
	}
}

/*
 * @behaviour U5: two senders, two wildcard receives: each gets one whole message; more senders: A7,
 * A11
 */
static void U5_two_senders_two_wildcard_receives_each_gets_one_whole_message(void **state)
{
	static const size_t lens[] = {50000, 3u << 20};
	struct star s;

	(void)state;
	for (int how = 0; how < 4; how++) {
		size_t len = lens[how & 1];
		uint8_t *buf[4];
		struct op so[2], ro[2];

		mock_reset();
		star_open(&s, 2, "mock:0;mock:1");
		mock_set_order(MOCK_RANDOM);
		star_run(&s, 30);
		for (int i = 0; i < 4; i++)
			buf[i] = malloc(len);
		for (int i = 0; i < 2; i++) {
			pattern_fill((uint64_t)i, 0, buf[i], len);
			if (how & 2)
				op_recv(&ro[i], s.hub, buf[2 + i], len, 0, 0);
		}
		for (int i = 0; i < 2; i++)
			op_send(&so[i], s.to_hub[i], buf[i], len, (uint64_t)i);
		star_run(&s, 20);
		for (int i = 0; i < 2 && !(how & 2); i++)
			op_recv(&ro[i], s.hub, buf[2 + i], len, 0, 0);
		star_run(&s, 200);
		for (int i = 0; i < 2; i++) {
			op_end(&so[i], 0);
			op_end(&ro[i], 0);
			assert_int_equal(ro[i].c.length, len);
			pattern_expect(ro[i].c.tag, buf[2 + i], len);
		}
		assert_true(ro[0].c.tag != ro[1].c.tag);
		for (int i = 0; i < 4; i++)
			free(buf[i]);
		star_close(&s);
	}
}

/* @behaviour E5: one lane stalls, the others continue */
static void E5_a_lane_that_stands_still_does_not_stop_the_others(void **state)
{
	static uint8_t buf[100];
	struct star s;
	struct op r;

	(void)state;
	star_open(&s, 1, "mock:0,lat=1e-6;mock:1,lat=5e-6");
	star_run(&s, 50);
	assert_int_equal(s.to_hub[0]->lanes_up, 3);
	mock_hold(mock_iface(s.hub, 1));
	for (int i = 0; i < 500; i++) {
		op_recv(&r, s.hub, buf, sizeof(buf), 1, FULL);
		assert_in_range(weft_tag_send(s.to_hub[0], buf, sizeof(buf), 1, NULL, NULL), 0, 1);
		star_run(&s, 3);
		op_end(&r, 0);
	}
	mock_release(mock_iface(s.hub, 1));
	star_run(&s, 3);
	star_close(&s);
}

/* @behaviour E7: floods and incast end */
static void E7_incast_of_80_KB_rendezvous_from_eight_senders_ends(void **state)
{
	enum { K = 10, LEN = 80000 };
	static uint8_t sbuf[LEN], rbuf[MAX_PEERS * K][LEN];
	struct op so[MAX_PEERS * K], ro[MAX_PEERS * K];
	struct star s;

	(void)state;
	star_open(&s, MAX_PEERS, "mock:0");
	mock_set_window(8);
	pattern_fill(3, 0, sbuf, LEN);
	for (int k = 0; k < K * s.n; k++)
		op_send(&so[k], s.to_hub[k % s.n], sbuf, LEN, (uint64_t)k);
	star_run(&s, 30);
	for (int k = K * s.n; k-- > 0;)
		op_recv(&ro[k], s.hub, rbuf[k], LEN, (uint64_t)k, FULL);
	star_run(&s, 2000);
	for (int k = 0; k < K * s.n; k++) {
		op_end(&so[k], 0);
		op_end_recv(&ro[k], rbuf[k], LEN, (uint64_t)k, 3);
	}
	star_close(&s);
}

/* ------------------------------------------------------------------ random traffic */

#define OPS 120

struct exchange {
	struct op s, r;
	uint8_t *sb, *rb;
	size_t len, room;
};

/* Any order, no room, bursts: what the seed says. */
static struct weft_context *random_lanes(uint64_t seed)
{
	struct weft_context *ctx;

	mock_reset();
	mock_seed(seed);
	ctx = mock_context("CONNECT_TIMEOUT=60s", "MULTI_EAGER_LIMIT=20k", "EAGER_CREDIT=200k",
			   "SEQ_START=4294967200", "LOG_LEVEL=error", NULL);
	mock_set_order(MOCK_RANDOM);
	mock_set_eagain(NULL, seed % 4 * 200);
	mock_set_window(seed % 3 ? 0 : 5);
	mock_set_no_keep(seed % 2);
	mock_set_burst((unsigned int)(seed % 5));
	return ctx;
}

static void exchange_begin(struct exchange *o, int i, struct weft_ep *ep, struct weft_worker *to,
			   uint64_t *x)
{
	static const size_t lens[] = {0, 8, 200, 256, 300, 2000, 5000, 19000, 60000};

	o->len = lens[pair_random(x) % 9];
	o->room = pair_random(x) % 8 ? o->len + pair_random(x) % 100 : o->len / 2;
	o->sb = malloc(o->len + 1);
	o->rb = malloc(o->room + 1);
	pattern_fill((uint64_t)i, 0, o->sb, o->len);
	if (pair_random(x) % 2)
		op_recv(&o->r, to, o->rb, o->room, (uint64_t)i, FULL);
	op_send_dt(&o->s, ep, o->sb, o->len, (uint64_t)i, pair_random(x) % 4 == 0, NULL);
}

static void exchange_end(struct exchange *o, int i, struct weft_worker *w[2], uint64_t seed)
{
	for (int t = 0; t < 20000 && !(op_done(&o->s) && op_done(&o->r)); t++)
		mock_run(1, MS / 10, w[0], w[1], NULL);
	if (!op_done(&o->s) || !op_done(&o->r))
		fail_msg("seed %llu: message %d of %zu bytes is not over", (unsigned long long)seed,
			 i, o->len);
	op_end(&o->s, 0);
	op_end(&o->r, o->len > o->room ? -EMSGSIZE : 0);
	assert_int_equal(o->r.c.length, o->len);
	if (o->len <= o->room)
		pattern_expect((uint64_t)i, o->rb, o->len);
	free(o->sb);
	free(o->rb);
}

static void random_traffic(uint64_t seed, const char *lanes_a, const char *lanes_b)
{
	struct weft_context *ctx = random_lanes(seed);
	struct weft_worker *w[2];
	struct weft_ep *ep[2];
	struct exchange *o = calloc(2 * OPS, sizeof(*o));
	uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;

	w[0] = mock_worker(ctx, lanes_a);
	w[1] = mock_worker(ctx, lanes_b);
	ep[0] = mock_connect(w[0], w[1]);
	ep[1] = mock_connect(w[1], w[0]);
	for (int i = 0; i < 2 * OPS; i++) {
		exchange_begin(&o[i], i, ep[i & 1], w[!(i & 1)], &x);
		mock_run((unsigned int)(pair_random(&x) % 3), MS / 10, w[0], w[1], NULL);
	}
	for (int i = 0; i < 2 * OPS; i++) {
		if (!o[i].r.c.size)
			op_recv(&o[i].r, w[!(i & 1)], o[i].rb, o[i].room, (uint64_t)i, FULL);
	}
	for (int i = 0; i < 2 * OPS; i++)
		exchange_end(&o[i], i, w, seed);
	free(o);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(w[i]->msg->reqs.in_use, 0);
		assert_int_equal(w[i]->msg->tag->messages.num, 0);
		weft_worker_destroy(w[i]);
	}
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void random_traffic_in_any_order_without_room_arrives_exactly(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= test_rounds(40); seed++)
		random_traffic(seed,
			       "mock:0;mock:1,bcopy=1500,zcopy=3000,lat=2e-6;mock:2,bw=4e9,zcopy=0",
			       seed % 2 ? "mock:0;mock:1,bcopy=1500;mock:2"
					: "mock:0,short=100,bcopy=1000;mock:1");
}

/* @behaviour E7 */
static void E7_no_room_anywhere_for_long_still_ends(void **state)
{
	(void)state;
	random_traffic(203, "mock:0", "mock:0");
	random_traffic(207, "mock:0,short=100", "mock:0,bcopy=600,zcopy=0");
}

/* ------------------------------------------------------------------ loopback, threads, closing */

/* @behaviour A15: loopback follows the same rules */
static void A15_loopback_follows_the_same_rules(void **state)
{
	static const size_t lens[] = {0, 8, 300, 20000, 70000, 3u << 20};
	struct weft_context *ctx = mock_context("LOG_LEVEL=error", NULL);
	struct weft_worker *w = mock_worker(ctx, "self");
	struct weft_ep *ep = mock_connect(w, w);
	uint8_t *sbuf = malloc(3u << 20), *rbuf[6];
	struct op s[6], r[6];

	(void)state;
	pattern_fill(1, 0, sbuf, 3u << 20);
	for (int late = 0; late < 2; late++) {
		for (int i = 0; i < 6; i++) {
			rbuf[i] = calloc(1, lens[i] + 1);
			if (!late)
				op_recv(&r[i], w, rbuf[i], lens[i], 1, FULL);
		}
		for (int i = 0; i < 6; i++)
			op_send_dt(&s[i], ep, sbuf, lens[i], 1, i % 2, NULL);
		if (late)
			mock_run(20, MS, w, NULL);
		for (int i = 0; late && i < 6; i++)
			op_recv(&r[i], w, rbuf[i], lens[i], 1, FULL);
		mock_run(200, MS, w, NULL);
		for (int i = 0; i < 6; i++) {
			op_end(&s[i], 0);
			op_end_recv(&r[i], rbuf[i], lens[i], 1, 1);
			free(rbuf[i]);
		}
	}
	free(sbuf);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void what_was_sent_before_an_orderly_close_arrives(void **state)
{
	static uint8_t small[8], mid[5000], rbuf[5000];
	struct star s;
	struct op r;

	(void)state;
	star_open(&s, 1, "mock:0;mock:1");
	pattern_fill(4, 0, mid, sizeof(mid));
	for (int i = 0; i < 50; i++) {
		assert_in_range(weft_tag_send(s.to_hub[0], small, sizeof(small), 1, NULL, NULL), 0,
				1);
		assert_in_range(weft_tag_send(s.to_hub[0], mid, sizeof(mid), 2, NULL, NULL), 0, 1);
	}
	assert_in_range(weft_ep_close(s.to_hub[0], 0, NULL, NULL), 0, 1);
	star_run(&s, 300);
	assert_int_equal(s.peer[0]->num_eps, 0);
	assert_int_equal(s.hub->num_eps, 0);
	for (int i = 0; i < 50; i++) {
		op_recv(&r, s.hub, rbuf, sizeof(rbuf), 1, FULL);
		op_end(&r, 0);
		op_recv(&r, s.hub, rbuf, sizeof(rbuf), 2, FULL);
		op_end_recv(&r, rbuf, sizeof(mid), 2, 4);
		assert_null(r.c.ep);
	}
	star_close(&s);
}

static void a_forced_close_ends_everything_under_way(void **state)
{
	static uint8_t buf[100000];
	struct op s[4], r;
	struct star st;

	(void)state;
	for (int rounds = 0; rounds < 12; rounds++) {
		mock_reset();
		star_open(&st, 1, "mock:0;mock:1");
		star_run(&st, 20);
		op_recv(&r, st.hub, buf, sizeof(buf), 1, FULL);
		for (int i = 0; i < 4; i++)
			op_send_dt(&s[i], st.to_hub[0], buf,
				   i ? sizeof(buf) >> (4 * i) : sizeof(buf), 1, i & 1, NULL);
		mock_set_burst(1);
		star_run(&st, rounds);
		weft_ep_close(st.to_hub[0], WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
		star_run(&st, 100);
		for (int i = 0; i < 4; i++) {
			assert_true(op_done(&s[i]));
			op_end(&s[i], s[i].rc == 0 ? 0 : s[i].c.status);
			assert_true(s[i].c.status == 0 || s[i].c.status == -ECANCELED);
		}
		if (op_done(&r))
			op_end(&r, r.c.status);
		else
			weft_request_free(r.req);
		star_close(&st);
	}
}

struct thread_arg {
	struct weft_worker *w;
	struct weft_ep *ep;
	uint64_t id;
	int bad;
};

static void *thread_main(void *p)
{
	struct thread_arg *a = p;

	for (uint64_t i = 0; i < 3000; i++) {
		uint64_t out = a->id << 32 | i, in[300] = {0};
		size_t len = i % 7 ? sizeof(out) : sizeof(in);
		struct weft_request *r, *s = NULL;
		uint64_t buf[300] = {out};

		if (weft_tag_recv(a->w, NULL, in, sizeof(in), a->id, UINT64_MAX, NULL, &r) < 0)
			a->bad++;
		if (weft_tag_send(a->ep, buf, len, a->id, NULL, &s) < 0)
			a->bad++;
		while (r && weft_request_test(r, NULL) == WEFT_INPROGRESS)
			weft_worker_progress(a->w);
		while (s && weft_request_test(s, NULL) == WEFT_INPROGRESS)
			weft_worker_progress(a->w);
		weft_request_free(r);
		weft_request_free(s);
		a->bad += in[0] != out;
	}
	return NULL;
}

#define KEPT 50

static struct weft_am_data *kept[KEPT + 1];
static unsigned int num_kept;

static int keep(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	(void)worker;
	(void)arg;
	kept[num_kept++] = msg->desc;
	return WEFT_INPROGRESS;
}

/* Handlers keep messages of one endpoint: another one that closes does not look at them. */
static void closing_looks_at_no_message_of_other_endpoints(void **state)
{
	const struct weft_am_send_params am = {.size = sizeof(am), .id = 1};
	struct weft_worker *a, *b;
	struct weft_ep *x[2], *y[2];
	struct weft_context *ctx;
	uint64_t before;

	(void)state;
	mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_AM;
	ctx = mock_context("LOG_LEVEL=error", NULL);
	a = mock_worker(ctx, "mock:0");
	b = mock_worker(ctx, "mock:0");
	num_kept = 0;
	assert_int_equal(
		weft_worker_set_am_handler(b, 1, keep, NULL, WEFT_AM_HANDLER_F_PERSISTENT_DATA), 0);
	for (int i = 0; i < 2; i++) {
		x[i] = mock_connect(a, b);
		mock_run(10, MS, a, b, NULL);
		y[i] = mock_connect(b, a);
		mock_run(10, MS, a, b, NULL);
	}
	for (int i = 0; i <= KEPT; i++)
		assert_int_equal(weft_am_send(x[i == KEPT], &am, "12345678", 8, NULL, NULL), 0);
	mock_run(20, MS, a, b, NULL);
	assert_int_equal(num_kept, KEPT + 1);
	before = b->msg->count.looks;
	assert_in_range(weft_ep_close(y[1], 0, NULL, NULL), 0, 1);
	assert_int_equal(b->msg->count.looks - before, 1);
	for (unsigned int i = 0; i < num_kept; i++)
		assert_int_equal(weft_am_data_release(b, kept[i]), 0);
	mock_run(20, MS, a, b, NULL);
	weft_worker_destroy(a);
	weft_worker_destroy(b);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/*
 * @behaviour G1: threads
 * @behaviour U82
 */
static void G1_threads_share_a_worker(void **state)
{
	struct weft_context *ctx = mock_context("LOG_LEVEL=error", "THREAD_MULTI=y", NULL);
	struct weft_worker *w = mock_worker(ctx, "self");
	struct weft_ep *ep = mock_connect(w, w);
	struct thread_arg arg[3];
	pthread_t t[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		arg[i] = (struct thread_arg){w, ep, (uint64_t)i + 1, 0};
		assert_int_equal(pthread_create(&t[i], NULL, thread_main, &arg[i]), 0);
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(arg[i].bad, 0);
	}
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(A7_wildcard_receives_serve_all_senders_and_keep_each_ones_order),
		T(A11_interleaved_pieces_of_messages_from_several_peers),
		T(U5_two_senders_two_wildcard_receives_each_gets_one_whole_message),
		T(E5_a_lane_that_stands_still_does_not_stop_the_others),
		T(E7_incast_of_80_KB_rendezvous_from_eight_senders_ends),
		T(random_traffic_in_any_order_without_room_arrives_exactly),
		T(E7_no_room_anywhere_for_long_still_ends),
		T(A15_loopback_follows_the_same_rules),
		T(what_was_sent_before_an_orderly_close_arrives),
		T(a_forced_close_ends_everything_under_way),
		T(closing_looks_at_no_message_of_other_endpoints),
		T(G1_threads_share_a_worker),
	};

	return cmocka_run_group_tests_name("messages, whole library", tests, NULL, NULL);
}
