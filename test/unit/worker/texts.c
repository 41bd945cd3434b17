/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts in the results of queries: each stays valid, and stays the same, while its object lives,
 * whatever is queried later, in any thread.
 */

#include <pthread.h>

#include "core/worker.h"
#include "mock/conn_util.h"
#include "weft_listen.h"
#include "weft_plan.h"
#include "wireup/lanes.h"

static const char two_nics[] = "mock:0;mock:1";

/* A text of a result, and the bytes that it had then. */
struct held {
	const char *text;
	char copy[400];
};

static struct held holds[64];
static unsigned int num_holds;

static void hold(const char *text)
{
	struct held *h = &holds[num_holds++];

	assert_true(num_holds <= sizeof(holds) / sizeof(holds[0]));
	assert_non_null(text);
	h->text = text;
	snprintf(h->copy, sizeof(h->copy), "%s", text);
}

static void check_holds(void)
{
	for (unsigned int i = 0; i < num_holds; i++)
		assert_string_equal(holds[i].text, holds[i].copy);
	num_holds = 0;
}

static struct weft_lane_info hold_lane(struct weft_ep *ep, unsigned int n)
{
	struct weft_lane_info info = {.size = sizeof(info)};

	assert_int_equal(weft_ep_query_lane(ep, n, &info), 0);
	hold(info.name);
	hold(info.remote);
	hold(info.why);
	hold(info.bandwidth_from);
	hold(info.latency_from);
	return info;
}

static struct weft_iface_info hold_iface(struct weft_worker *w, unsigned int n)
{
	struct weft_iface_info info = {.size = sizeof(info)};

	assert_int_equal(weft_worker_query_iface(w, n, &info), 0);
	hold(info.driver);
	hold(info.name);
	hold(info.device);
	hold(info.address);
	hold(info.why);
	return info;
}

static const char *hold_name(struct weft_ep *ep)
{
	struct weft_ep_attr attr = {.size = sizeof(attr)};

	assert_int_equal(weft_ep_query(ep, &attr), 0);
	hold(attr.remote_name);
	return attr.remote_name;
}

static void texts_of_lanes_and_endpoints_stay(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct weft_ep *x = mock_connect(a, b), *y;
	struct weft_lane_info first, second;

	(void)state;
	mock_run(100, MS, a, b, NULL);
	y = conn_first_ep(b);
	first = hold_lane(x, 0);
	second = hold_lane(x, 1);
	assert_string_not_equal(first.remote, second.remote);
	weft_ep_set_remote_name(y, "other");
	assert_string_not_equal(hold_name(x), hold_name(y));
	/* The reason of a lane changes: a new query returns the new one. */
	weft_lane_format_why(x, 1, "given up: cut");
	assert_string_equal(hold_lane(x, 1).why, "given up: cut");
	/* The same text is stored once, so repeated queries need no memory. */
	assert_ptr_equal(hold_lane(x, 0).why, first.why);
	check_holds();
	conn_destroy(ctx, a, b);
}

static void texts_of_interfaces_stay(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct weft_iface_info first, second;

	(void)state;
	first = hold_iface(a, 0);
	second = hold_iface(a, 1);
	assert_string_not_equal(first.address, second.address);
	hold_iface(b, 0);
	a->ifaces[0]->note = "another reason";
	assert_string_not_equal(hold_iface(a, 0).why, first.why);
	check_holds();
	conn_destroy(ctx, a, b);
}

static void *query_in_another_thread(void *arg)
{
	struct weft_lane_info info = {.size = sizeof(info)};
	struct weft_ep *ep = arg;

	assert_int_equal(weft_ep_query_lane(ep, 0, &info), 0);
	return (void *)(uintptr_t)info.remote;
}

static void texts_outlive_the_thread_that_queried(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct weft_ep *x = mock_connect(a, b);
	pthread_t thread;
	void *remote;

	(void)state;
	mock_run(100, MS, a, b, NULL);
	assert_int_equal(pthread_create(&thread, NULL, query_in_another_thread, x), 0);
	assert_int_equal(pthread_join(thread, &remote), 0);
	assert_ptr_equal(hold_lane(x, 0).remote, remote);
	check_holds();
	conn_destroy(ctx, a, b);
}

static void texts_of_plans_stay(void **state)
{
	static const char text[] = "[lane a]\ndriver=dpdk\nbandwidth=25Gbps\nlatency=10us\n";
	struct weft_proto_info info = {.size = sizeof(info)};
	struct weft_plan *plan[2];
	unsigned int different = 0;
	const char *last = "";
	char why[256];
	FILE *in;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
		assert_int_equal(weft_plan_read(NULL, in, "p.ini", &plan[i], why, sizeof(why)), 0);
		fclose(in);
	}
	for (unsigned int i = 0; i < 2 * WEFT_OP_LAST; i++) {
		const enum weft_op op = (enum weft_op)(i / 2);

		for (unsigned int k = 0; weft_plan_query(plan[i % 2], op, 8, k, &info) == 0; k++) {
			if (info.why[0] == '\0')
				continue;
			different += strcmp(info.why, last) != 0;
			last = info.why;
			hold(info.why);
		}
	}
	assert_true(different >= 2);
	check_holds();
	weft_plan_destroy(plan[0]);
	weft_plan_destroy(plan[1]);
}

static void texts_of_contexts_and_listeners_stay(void **state)
{
	struct weft_listener_params p = WEFT_INIT(struct weft_listener_params, .host = "127.0.0.1");
	struct weft_listener_attr attr = {.size = sizeof(attr)};
	struct weft_context_attr of_context = {.size = sizeof(of_context)};
	struct weft_context *ctx = mock_context("LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct weft_listener *listener[2];

	(void)state;
	assert_int_equal(weft_listener_create(w, &p, &listener[0]), 0);
	p.host = NULL;
	assert_int_equal(weft_listener_create(w, &p, &listener[1]), 0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(weft_listener_query(listener[i], &attr), 0);
		hold(attr.host);
	}
	assert_string_equal(holds[0].copy, "127.0.0.1");
	assert_string_not_equal(holds[1].copy, holds[0].copy);
	assert_int_equal(weft_context_query(ctx, &of_context), 0);
	hold(of_context.name);
	check_holds();
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void *query_address(void *arg)
{
	struct weft_address_attr attr = {.size = sizeof(attr)};
	const uint8_t *address = arg;

	assert_int_equal(weft_address_query(address + sizeof(size_t), *(size_t *)arg, &attr), 0);
	return NULL;
}

/* An address has no object: its text is that of the thread. */
static void the_text_of_an_address_is_that_of_a_thread(void **state)
{
	struct weft_address_attr attr = {.size = sizeof(attr)};
	struct weft_context_params p = WEFT_INIT(struct weft_context_params);
	static const char *const names[] = {"one", "two"};
	struct {
		size_t length;
		uint8_t bytes[2048];
	} address[2];
	pthread_t thread;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct weft_context *ctx;
		struct weft_worker *w;
		size_t length;
		void *buf;

		p.name = names[i];
		assert_int_equal(weft_context_create(&p, &ctx), 0);
		w = mock_worker(ctx, "self");
		assert_int_equal(weft_worker_get_address(w, &buf, &length), 0);
		assert_true(length <= sizeof(address[i].bytes));
		memcpy(address[i].bytes, buf, length);
		address[i].length = length;
		weft_worker_release_address(w, buf);
		weft_worker_destroy(w);
		assert_int_equal(weft_context_destroy(ctx), 0);
	}
	assert_int_equal(weft_address_query(address[0].bytes, address[0].length, &attr), 0);
	assert_string_equal(attr.name, "one");
	assert_int_equal(pthread_create(&thread, NULL, query_address, &address[1]), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(attr.name, "one");
	assert_int_equal(weft_address_query(address[1].bytes, address[1].length, &attr), 0);
	assert_string_equal(attr.name, "two");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(texts_of_lanes_and_endpoints_stay),
		CONN_TEST(texts_of_interfaces_stay),
		CONN_TEST(texts_outlive_the_thread_that_queried),
		CONN_TEST(texts_of_plans_stay),
		CONN_TEST(texts_of_contexts_and_listeners_stay),
		CONN_TEST(the_text_of_an_address_is_that_of_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
