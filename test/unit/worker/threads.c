/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads: what several may do at once. The test command runs this under ThreadSanitizer too. The
 * lanes are loopbacks, so nothing but the library is shared.
 */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "weft.h"

#define THREADS 4
#define ROUNDS 300
#define LENGTH 30000

static struct weft_context *ctx;

static int setup(void **state)
{
	struct weft_config *config;
	struct weft_context_params p = WEFT_INIT(struct weft_context_params, .name = "threads");
	int rc;

	(void)state;
	rc = weft_config_read(&config);
	if (rc)
		return rc;
	weft_config_modify(config, "LANES", "self");
	p.config = config;
	rc = weft_context_create(&p, &ctx);
	weft_config_release(config);
	return rc;
}

static int teardown(void **state)
{
	(void)state;
	return weft_context_destroy(ctx);
}

/* ---- what a thread does --------------------------------------------------------------------- */

struct one {
	struct weft_worker *worker;
	struct weft_ep *ep;
};

static bool open_one(struct one *o, enum weft_thread_mode mode)
{
	struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params, .thread_mode = mode);
	struct weft_ep_params ep = WEFT_INIT(struct weft_ep_params, .err_cb = NULL);
	void *address;
	bool well;

	wp.lanes = "self";
	if (weft_worker_create(ctx, &wp, &o->worker))
		return false;
	if (weft_worker_get_address(o->worker, &address, &ep.address_length))
		return false;
	ep.address = address;
	well = weft_ep_create(o->worker, &ep, &o->ep) == 0;
	weft_worker_release_address(o->worker, address);
	return well;
}

static bool wait_for(struct weft_worker *worker, struct weft_request *req)
{
	int status = 0;

	while (req && (status = weft_request_test(req, NULL)) == WEFT_INPROGRESS)
		weft_worker_progress(worker);
	weft_request_free(req);
	return status == 0;
}

/* A message to ourselves under a tag of our own; every byte is compared. */
static bool pass(const struct one *o, uint64_t tag, size_t len, struct weft_mem *mem)
{
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .mem = mem);
	struct weft_request *s = NULL, *r = NULL;
	uint8_t *out = malloc(len), *in = calloc(1, len);
	bool well;

	memset(out, (int)tag | 1, len);
	well = weft_tag_recv(o->worker, NULL, in, len, tag, UINT64_MAX, NULL, &r) >= 0 &&
	       weft_tag_send(o->ep, out, len, tag, &p, &s) >= 0;
	well = wait_for(o->worker, s) && wait_for(o->worker, r) && well;
	well = well && memcmp(in, out, len) == 0;
	free(out);
	free(in);
	return well;
}

struct job {
	struct one *shared; /* NULL: the thread has a worker of its own */
	int n;
	bool well;
};

static void run_all(void *(*fn)(void *), struct one *shared)
{
	struct job job[THREADS];
	pthread_t t[THREADS];
	int i;

	for (i = 0; i < THREADS; i++) {
		job[i] = (struct job){.shared = shared, .n = i};
		assert_int_equal(pthread_create(&t[i], NULL, fn, &job[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		assert_true(job[i].well);
	}
}

/* ---- each its own worker -------------------------------------------------------------------- */

static void *own_worker(void *arg)
{
	struct job *j = arg;
	struct weft_mem *mem;
	struct one o;
	char buf[4096];
	int i;

	j->well = open_one(&o, WEFT_THREAD_SINGLE);
	for (i = 0; i < ROUNDS && j->well; i++) {
		j->well = weft_mem_register(ctx, buf, sizeof(buf), NULL, &mem) == 0;
		j->well = j->well && pass(&o, (uint64_t)i, i % 3 ? 100 : LENGTH, NULL);
		j->well = j->well && weft_mem_deregister(mem) == 0;
	}
	weft_worker_destroy(o.worker);
	return NULL;
}

/* @behaviour G1 */
static void workers_in_threads_register_memory_and_send(void **state)
{
	(void)state;
	run_all(own_worker, NULL);
}

/* Workers come and go, while others register: a registration knows all ifaces there are. */
static void *short_lives(void *arg)
{
	struct job *j = arg;
	struct weft_mem *mem;
	struct one o;
	char buf[64];
	int i;

	j->well = true;
	for (i = 0; i < ROUNDS / 10 && j->well; i++) {
		j->well = open_one(&o, i % 2 ? WEFT_THREAD_MULTI : WEFT_THREAD_SINGLE);
		j->well = j->well && weft_mem_register(ctx, buf, sizeof(buf), NULL, &mem) == 0;
		j->well = j->well && pass(&o, 1, 1000, NULL);
		weft_worker_destroy(o.worker);
		j->well = j->well && weft_mem_deregister(mem) == 0;
	}
	return NULL;
}

static void workers_come_and_go_in_threads(void **state)
{
	(void)state;
	run_all(short_lives, NULL);
}

/* ---- all one worker ------------------------------------------------------------------------- */

static bool probe_and_cancel(const struct one *o, uint64_t tag)
{
	struct weft_request *r = NULL;
	uint64_t word;
	int rc;

	if (weft_tag_probe(o->worker, NULL, tag | 1ull << 40, UINT64_MAX, NULL, NULL, NULL) > 0)
		return false;
	if (weft_tag_recv(o->worker, NULL, &word, sizeof(word), tag | 1ull << 40, UINT64_MAX, NULL,
			  &r) != WEFT_INPROGRESS)
		return false;
	rc = weft_request_cancel(r);
	weft_request_free(r);
	return rc == 0;
}

static void count(const char *name, uint64_t value, void *arg)
{
	(void)name;
	*(uint64_t *)arg += value;
}

static void *same_worker(void *arg)
{
	struct job *j = arg;
	uint64_t tag, sum;
	int i;

	j->well = true;
	for (i = 0; i < ROUNDS && j->well; i++) {
		tag = (uint64_t)j->n << 32 | (unsigned int)i;
		j->well = pass(j->shared, tag, i % 5 ? 64 : LENGTH, NULL) &&
			  probe_and_cancel(j->shared, tag);
		if (i % 50 == 0)
			weft_worker_counters(j->shared->worker, count, &sum);
	}
	return NULL;
}

/* @behaviour U82 */
static void threads_share_a_multi_threaded_worker(void **state)
{
	struct one o;

	(void)state;
	assert_true(open_one(&o, WEFT_THREAD_MULTI));
	run_all(same_worker, &o);
	weft_worker_destroy(o.worker);
}

/* Endpoints of one worker are made, used, flushed and closed by any thread. */
static void *own_endpoint(void *arg)
{
	struct job *j = arg;
	struct one mine = *j->shared;
	struct weft_ep_params ep = WEFT_INIT(struct weft_ep_params, .err_cb = NULL);
	struct weft_request *req;
	void *address;
	int i;

	j->well = weft_worker_get_address(mine.worker, &address, &ep.address_length) == 0;
	ep.address = address;
	for (i = 0; i < ROUNDS / 10 && j->well; i++) {
		j->well = weft_ep_create(mine.worker, &ep, &mine.ep) == 0 &&
			  pass(&mine, (uint64_t)j->n << 32 | (unsigned int)i, 5000, NULL);
		req = NULL;
		j->well = j->well && weft_ep_flush(mine.ep, NULL, &req) >= 0 &&
			  wait_for(mine.worker, req);
		req = NULL;
		j->well = j->well && weft_ep_close(mine.ep, 0, NULL, &req) >= 0 &&
			  wait_for(mine.worker, req);
	}
	weft_worker_release_address(mine.worker, address);
	return NULL;
}

/* @behaviour U82 */
static void threads_make_and_close_endpoints_of_one_worker(void **state)
{
	struct one o;

	(void)state;
	assert_true(open_one(&o, WEFT_THREAD_MULTI));
	run_all(own_endpoint, &o);
	weft_worker_destroy(o.worker);
}

#define THREAD_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		THREAD_TEST(workers_in_threads_register_memory_and_send),
		THREAD_TEST(workers_come_and_go_in_threads),
		THREAD_TEST(threads_share_a_multi_threaded_worker),
		THREAD_TEST(threads_make_and_close_endpoints_of_one_worker),
	};

	return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
