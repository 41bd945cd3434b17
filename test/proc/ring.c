/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two net_ring ports crossed, in a program that has started the EAL itself: one worker on each,
 * through the public interface. The receiver gets the sender's buffers themselves, so what is sent
 * is compared after it has arrived, too.
 */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "weft.h"

#define TIMEOUT_S 60

/* Around what changes: frames, coalescing, thresholds. */
static const size_t sizes[] = {0,      1,      8,      63,     256,      257,           1500,
			       8900,   8999,   9000,   9001,   20000,    65536,         65537,
			       262143, 262144, 262145, 500001, 1u << 20, (4u << 20) + 3};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct side {
	struct weft_worker *worker;
	struct weft_ep *ep;
	void *address;
	size_t address_len;
};

static struct weft_context *ctx;
static struct side side[2];
static uint16_t port[2];

/* ---- ports ---------------------------------------------------------------------------------- */

static struct rte_ring *make_ring(const char *name)
{
	struct rte_ring *r = rte_ring_create(name, 1024, SOCKET_ID_ANY, 0);

	assert_non_null(r);
	return r;
}

static void make_ports(void)
{
	struct rte_ring *ab = make_ring("ab"), *ba = make_ring("ba");
	int a = rte_eth_from_rings("a", &ba, 1, &ab, 1, 0);
	int b = rte_eth_from_rings("b", &ab, 1, &ba, 1, 0);

	assert_true(a >= 0 && b >= 0);
	port[0] = (uint16_t)a;
	port[1] = (uint16_t)b;
}

static int start_eal(void **state)
{
	static char words[][32] = {"ring",
				   "--no-huge",
				   "--no-shconf",
				   "-m256",
				   "--no-pci",
				   "--log-level=error",
				   "--file-prefix=weft-ring"};
	char *argv[sizeof(words) / sizeof(words[0])];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		argv[i] = words[i];
	if (rte_eal_init((int)i, argv) < 0)
		return -1;
	make_ports();
	return 0;
}

/* ---- workers -------------------------------------------------------------------------------- */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void open_side(int n)
{
	struct weft_worker_params p = WEFT_INIT(struct weft_worker_params, .thread_mode = 0);
	char lanes[64];

	snprintf(lanes, sizeof(lanes), "dpdk:%u,ip=10.9.0.%d/24,mtu=9000", port[n], n + 1);
	p.lanes = lanes;
	assert_int_equal(weft_worker_create(ctx, &p, &side[n].worker), 0);
	assert_int_equal(
		weft_worker_get_address(side[n].worker, &side[n].address, &side[n].address_len), 0);
}

static void connect_side(int n)
{
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params, .err_cb = NULL);

	p.address = side[!n].address;
	p.address_length = side[!n].address_len;
	assert_int_equal(weft_ep_create(side[n].worker, &p, &side[n].ep), 0);
}

static int open_both(void **state)
{
	struct weft_config *config;

	(void)state;
	assert_int_equal(weft_config_read(&config), 0);
	assert_int_equal(weft_config_modify(config, "CONNECT_TIMEOUT", "20s"), 0);
	struct weft_context_params p = WEFT_INIT(struct weft_context_params, .config = config);
	assert_int_equal(weft_context_create(&p, &ctx), 0);
	weft_config_release(config);
	open_side(0);
	open_side(1);
	connect_side(0);
	connect_side(1);
	return 0;
}

static int close_both(void **state)
{
	int n;

	(void)state;
	for (n = 0; n < 2; n++)
		weft_worker_release_address(side[n].worker, side[n].address);
	for (n = 0; n < 2; n++)
		weft_worker_destroy(side[n].worker);
	return weft_context_destroy(ctx);
}

/* ---- messages ------------------------------------------------------------------------------- */

static uint8_t byte_at(size_t i, uint64_t tag)
{
	return (uint8_t)((i * 31 + tag * 17) ^ i >> 8);
}

static uint8_t *make_data(size_t len, uint64_t tag)
{
	uint8_t *p = malloc(len + 1);
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = byte_at(i, tag);
	return p;
}

static bool holds(const uint8_t *p, size_t len, uint64_t tag)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != byte_at(i, tag))
			return false;
	return true;
}

static bool done(struct weft_request *req)
{
	return !req || weft_request_test(req, NULL) != WEFT_INPROGRESS;
}

static bool ended_well(struct weft_request *req)
{
	bool well = !req || weft_request_test(req, NULL) == 0;

	weft_request_free(req);
	return well;
}

/* @p own  the other side has a thread of its own */
static void progress(int n, bool own)
{
	weft_worker_progress(side[n].worker);
	if (!own)
		weft_worker_progress(side[!n].worker);
}

/* Send each size from one side, by one thread that progresses both. */
static void each_size(int from)
{
	double until = now() + TIMEOUT_S;
	struct weft_request *s, *r;
	uint8_t *out, *in;
	size_t i;

	for (i = 0; i < SIZES; i++) {
		out = make_data(sizes[i], i);
		in = calloc(1, sizes[i] + 1);
		s = r = NULL;
		assert_true(weft_tag_recv(side[!from].worker, NULL, in, sizes[i], i, UINT64_MAX,
					  NULL, &r) >= 0);
		assert_true(weft_tag_send(side[from].ep, out, sizes[i], i, NULL, &s) >= 0);
		while ((!done(s) || !done(r)) && now() < until)
			progress(from, false);
		assert_true(ended_well(s) && ended_well(r));
		assert_true(holds(in, sizes[i], i));
		assert_true(holds(out, sizes[i], i));
		free(out);
		free(in);
	}
}

static void every_size_both_ways(void **state)
{
	(void)state;
	each_size(0);
	each_size(1);
}

/* What a thread found wrong; cmocka's assertions belong to the main thread. */
struct job {
	int n;
	bool wrong;
	atomic_int *left;
};

#define ROUNDS 200u
#define BATCH 8u

static bool exchange(int n, unsigned int round)
{
	size_t len = sizes[round % (SIZES - 1)];
	struct weft_request *s[BATCH] = {0}, *r[BATCH] = {0};
	uint8_t *out[BATCH], *in[BATCH];
	double until = now() + TIMEOUT_S;
	bool all = false, well = true;
	unsigned int i;

	for (i = 0; i < BATCH; i++) {
		out[i] = make_data(len, round + i);
		in[i] = calloc(1, len + 1);
		well = weft_tag_recv(side[n].worker, side[n].ep, in[i], len, round * BATCH + i,
				     UINT64_MAX, NULL, &r[i]) >= 0 &&
		       weft_tag_send(side[n].ep, out[i], len, round * BATCH + i, NULL, &s[i]) >=
			       0 &&
		       well;
	}
	while (well && !all && now() < until) {
		progress(n, true);
		for (all = true, i = 0; i < BATCH; i++)
			all = all && done(s[i]) && done(r[i]);
	}
	for (i = 0; i < BATCH; i++) {
		well = ended_well(s[i]) && ended_well(r[i]) && holds(in[i], len, round + i) && well;
		free(out[i]);
		free(in[i]);
	}
	return well && all;
}

static void *run(void *arg)
{
	struct job *j = arg;
	unsigned int round;

	for (round = 0; round < ROUNDS && !j->wrong; round++)
		j->wrong = !exchange(j->n, round);
	/* The other one may still wait for an acknowledgement. */
	atomic_fetch_sub(j->left, 1);
	while (atomic_load(j->left) > 0)
		progress(j->n, true);
	return NULL;
}

static void two_workers_in_two_threads(void **state)
{
	atomic_int left = 2;
	struct job job[2] = {{.n = 0, .left = &left}, {.n = 1, .left = &left}};
	pthread_t t[2];
	int i;

	(void)state;
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, run, &job[i]), 0);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert_false(job[0].wrong);
	assert_false(job[1].wrong);
}

static uint64_t counter_value;

static void counter_cb(const char *name, uint64_t value, void *arg)
{
	if (strstr(name, arg))
		counter_value += value;
}

static uint64_t counted(char *name)
{
	counter_value = 0;
	weft_worker_counters(side[0].worker, counter_cb, name);
	return counter_value;
}

/*
 * What the sender keeps for sending again is copied: the receiver may write to what it gets. Bytes
 * of long messages are copied once, from user memory.
 */
static void what_is_kept_is_copied(void **state)
{
	char copied[] = "tx_copied", zcopy[] = "tx.zcopy";

	(void)state;
	each_size(0);
	assert_true(counted(copied) > 0);
	assert_true(counted(zcopy) > 0);
}

static void a_port_has_one_worker(void **state)
{
	struct weft_worker_params p = WEFT_INIT(struct weft_worker_params, .thread_mode = 0);
	struct weft_worker *w;
	char lanes[64];

	(void)state;
	snprintf(lanes, sizeof(lanes), "dpdk:%u,ip=10.9.0.9/24", port[0]);
	p.lanes = lanes;
	assert_int_equal(weft_worker_create(ctx, &p, &w), -EBUSY);
}

#define RING_TEST(f) cmocka_unit_test_setup_teardown(f, open_both, close_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RING_TEST(every_size_both_ways),
		RING_TEST(two_workers_in_two_threads),
		RING_TEST(what_is_kept_is_copied),
		RING_TEST(a_port_has_one_worker),
	};

	return cmocka_run_group_tests_name("ring", tests, start_eal, NULL);
}
