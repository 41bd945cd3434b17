/* SPDX-License-Identifier: BSD-3-Clause */
/* Two workers with shm lanes, by the public interface: all kinds of messages, waiting, an end. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "weft.h"
#include "weft_msg.h"
#include "weft_rma.h"
#include "weft_build.h"
#include "base/pacing.h"
#include "common/pattern.h"

static struct weft_context *ctx;
static struct weft_worker *a, *b;
static struct weft_ep *ep;
static unsigned int done;
static int status;

static void on_done(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	(void)req;
	(void)arg;
	done++;
	status = c->status;
}

static const struct weft_op_params params = {.size = sizeof(params), .cb = on_done};

static const char *copy_rate = "auto", *scheme = "auto";

static void make_context_for(const char *lanes, const char *min_lanes)
{
	struct weft_context_params cp = {.size = sizeof(cp)};
	struct weft_config *config;

	assert_int_equal(weft_config_read(&config), 0);
	assert_int_equal(weft_config_modify(config, "LANES", lanes), 0);
	assert_int_equal(weft_config_modify(config, "MIN_LANES", min_lanes), 0);
	assert_int_equal(weft_config_modify(config, "LOG_FILE", "/dev/null"), 0);
	assert_int_equal(weft_config_modify(config, "BCOPY_BW", copy_rate), 0);
	assert_int_equal(weft_config_modify(config, "RNDV_SCHEME", scheme), 0);
	cp.config = config;
	cp.features = WEFT_FEATURE_TAG | WEFT_FEATURE_RMA;
	assert_int_equal(weft_context_create(&cp, &ctx), 0);
	weft_config_release(config);
}

static void make_context(const char *lanes)
{
	make_context_for(lanes, "1");
}

static struct weft_ep *connect_to(struct weft_worker *from, struct weft_worker *to)
{
	struct weft_ep_params ep_params = {.size = sizeof(ep_params)};
	struct weft_ep *made;
	void *address;

	assert_int_equal(weft_worker_get_address(to, &address, &ep_params.address_length), 0);
	ep_params.address = address;
	assert_int_equal(weft_ep_create(from, &ep_params, &made), 0);
	weft_worker_release_address(to, address);
	return made;
}

static int setup(void **state)
{
	(void)state;
	done = 0;
	make_context("shm");
	assert_int_equal(weft_worker_create(ctx, NULL, &a), 0);
	assert_int_equal(weft_worker_create(ctx, NULL, &b), 0);
	ep = connect_to(a, b);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	weft_worker_destroy(a);
	weft_worker_destroy(b);
	assert_int_equal(weft_context_destroy(ctx), 0);
	return 0;
}

static void run_until(unsigned int want)
{
	for (unsigned long i = 0; done < want; i++) {
		weft_worker_progress(a);
		weft_worker_progress(b);
		assert_true(i < 200000000);
	}
}

static void transfer(struct weft_worker *to, struct weft_ep *from, size_t length, uint64_t tag)
{
	uint8_t *out = malloc(length), *in = calloc(1, length);
	struct weft_request *recv = NULL, *send = NULL;
	unsigned int want = done;
	int rc;

	assert_true(out && in);
	pattern_fill(tag, 0, out, length);
	rc = weft_tag_recv(to, NULL, in, length, tag, UINT64_MAX, &params, &recv);
	want += rc == WEFT_INPROGRESS;
	assert_true(rc >= 0);
	rc = weft_tag_send(from, out, length, tag, &params, &send);
	want += rc == WEFT_INPROGRESS;
	assert_true(rc >= 0);
	run_until(want);
	assert_memory_equal(in, out, length);
	weft_request_free(recv);
	weft_request_free(send);
	free(out);
	free(in);
}

static void messages_of_all_sizes_arrive(void **state)
{
	struct weft_lane_info info = {.size = sizeof(info)};
	struct weft_ep *back;
	size_t length;

	(void)state;
	transfer(b, ep, 8, 1);
	for (length = 1; length <= 4 << 20; length = length * 3 + 1)
		transfer(b, ep, length, length);
	back = connect_to(b, a);
	for (length = 1; length <= 4 << 20; length = length * 3 + 1)
		transfer(a, back, length, length);
	assert_int_equal(weft_ep_query_lane(ep, 0, &info), 0);
	assert_string_equal(info.name, "shm:host");
	assert_int_equal(weft_ep_query_lane(ep, 1, &info), -ENOENT);
	weft_ep_close(back, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
}

static void count_native(const char *name, uint64_t value, void *arg)
{
	uint64_t *sum = arg;

	if (strstr(name, "native.get_bytes"))
		*sum += value;
}

/*
 * Puts as the model chooses, gets natively where the system allows it: under load the measured copy
 * rate may be so low that the model prefers messages.
 */
static void remote_memory_is_written_and_read(void **state)
{
	static const size_t lengths[] = {1, 8, 1000, 70000, 1 << 20};
	struct weft_mem_params mp = {.size = sizeof(mp),
				     .flags = WEFT_MEM_F_REMOTE_READ | WEFT_MEM_F_REMOTE_WRITE};
	uint8_t *there = calloc(1, 2 << 20), *out = malloc(1 << 20), *in = malloc(1 << 20);
	uint64_t native = 0;
	struct weft_rkey *rkey;
	struct weft_mem *mem;
	size_t length;
	void *blob;

	(void)state;
	assert_true(there && out && in);
	transfer(b, ep, 8, 1);
	assert_int_equal(weft_mem_register(ctx, there, 2 << 20, &mp, &mem), 0);
	assert_int_equal(weft_rkey_pack(mem, &blob, &length), 0);
	assert_int_equal(weft_rkey_unpack(ep, blob, length, &rkey), 0);
	weft_rkey_release_blob(blob);
	assert_int_equal(weft_ep_force_proto(ep, "get/native"), 0);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		length = lengths[i];
		pattern_fill(i, 0, out, length);
		done = 0;
		if (weft_put(ep, out, length, rkey, 999, &params, NULL) == WEFT_INPROGRESS)
			run_until(1);
		done = 0;
		if (weft_get(ep, in, length, rkey, 999, &params, NULL) == WEFT_INPROGRESS)
			run_until(1);
		assert_memory_equal(in, out, length);
		assert_memory_equal(there + 999, out, length);
	}
	weft_worker_counters(a, count_native, &native);
	if (native > 0)
		assert_true(native > 1 << 20);
	weft_rkey_destroy(rkey);
	weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	assert_int_equal(weft_mem_deregister(mem), 0);
	free(there);
	free(out);
	free(in);
}

/* ------------------------------------------------------------------ reads and pulls */

#define LONG_MESSAGE (256u << 10)

struct moved {
	uint64_t reads, pulls;
};

static void count_moved(const char *name, uint64_t value, void *arg)
{
	struct moved *m = arg;

	if (strcmp(name, "rndv.gets") == 0)
		m->reads = value;
	if (strcmp(name, "rndv.pulls") == 0)
		m->pulls = value;
}

/* @return what @count long messages to b have added */
static struct moved moved_by(unsigned int count)
{
	struct moved before = {0}, after = {0};

	weft_worker_counters(b, count_moved, &before);
	for (unsigned int i = 0; i < count; i++)
		transfer(b, ep, LONG_MESSAGE, 100 + i);
	weft_worker_counters(b, count_moved, &after);
	return (struct moved){after.reads - before.reads, after.pulls - before.pulls};
}

/* This process may itself be late, which looks the same, so the first ones may be read. */
static bool is_pulled_soon(void)
{
	for (unsigned int i = 0; i < 3 * WEFT_PROMPT_MOST; i++)
		if (moved_by(1).pulls)
			return true;
	return false;
}

static void begin_with(const char *rate, const char *how)
{
	copy_rate = rate;
	scheme = how;
	assert_int_equal(setup(NULL), 0);
	transfer(b, ep, 8, 1);
}

static void end_of_run(void)
{
	weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	teardown(NULL);
	copy_rate = scheme = "auto";
}

static bool can_read(void)
{
	bool can;

	begin_with("auto", "get");
	can = moved_by(1).reads > 0;
	end_of_run();
	return can;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The sender does not progress for some time after it has announced the message. */
static void send_and_pause(uint64_t pause_ns)
{
	static uint8_t out[LONG_MESSAGE], in[LONG_MESSAGE];
	unsigned int want = done + 2;
	uint64_t begun;

	assert_int_equal(weft_tag_recv(b, NULL, in, sizeof(in), 7, UINT64_MAX, &params, NULL),
			 WEFT_INPROGRESS);
	memset(out, 7, sizeof(out));
	assert_int_equal(weft_tag_send(ep, out, sizeof(out), 7, &params, NULL), WEFT_INPROGRESS);
	begun = now_ns();
	while (now_ns() - begun < pause_ns)
		weft_worker_progress(b);
	run_until(want);
	assert_memory_equal(in, out, sizeof(in));
}

static void need_reads(void)
{
	if (can_read())
		return;
	print_message("left out: the system does not let processes read each other\n");
	skip();
}

/*
 * Where a core copies faster than the kernel, a prompt sender's messages are faster than reads. A
 * sender that computes, or waits for a core, is read.
 */
static void a_prompt_sender_is_pulled_from_and_a_late_one_read(void **state)
{
	struct moved m;

	(void)state;
	need_reads();
	begin_with("400GBs", "auto");
	assert_true(is_pulled_soon());
	do /* a message that was read already does not depend on the sender */
		send_and_pause(10000000);
	while (moved_by(1).pulls);
	m = moved_by(8);
	assert_true(m.reads >= 8);
	assert_int_equal(m.pulls, 0);
	assert_true(is_pulled_soon());
	end_of_run();
}

static void where_the_kernel_copies_faster_it_reads(void **state)
{
	struct moved m;

	(void)state;
	need_reads();
	begin_with("1GBs", "auto");
	m = moved_by(4);
	assert_true(m.reads >= 4);
	assert_int_equal(m.pulls, 0);
	end_of_run();
}

/* The table that peers look into has 65536 places: messages carry what goes beyond. */
static void more_memory_than_the_table_has_places_is_reached(void **state)
{
	enum { REGIONS = 65536 + 8, LENGTH = 100000 };
	struct weft_mem_params mp = {.size = sizeof(mp),
				     .flags = WEFT_MEM_F_REMOTE_READ | WEFT_MEM_F_REMOTE_WRITE};
	struct weft_mem **mem = calloc(REGIONS, sizeof(struct weft_mem *));
	uint8_t *there = malloc(LENGTH), *in = calloc(1, LENGTH);
	struct weft_rkey *rkey;
	size_t length;
	unsigned int i;
	void *blob;

	(void)state;
	assert_true(mem && there && in);
	memset(there, 0x5c, LENGTH);
	transfer(b, ep, 8, 1);
	for (i = 0; i < REGIONS; i++)
		assert_int_equal(weft_mem_register(ctx, there, LENGTH, &mp, &mem[i]), 0);
	assert_int_equal(weft_rkey_pack(mem[REGIONS - 1], &blob, &length), 0);
	assert_int_equal(weft_rkey_unpack(ep, blob, length, &rkey), 0);
	weft_rkey_release_blob(blob);
	done = 0;
	if (weft_get(ep, in, LENGTH, rkey, 0, &params, NULL) == WEFT_INPROGRESS)
		run_until(1);
	assert_memory_equal(in, there, LENGTH);
	memset(in, 0xa7, LENGTH);
	done = 0;
	if (weft_put(ep, in, LENGTH, rkey, 0, &params, NULL) == WEFT_INPROGRESS)
		run_until(1);
	assert_memory_equal(in, there, LENGTH);
	weft_rkey_destroy(rkey);
	/* As the source of a large message, too. */
	transfer(b, ep, 1 << 20, 2);
	weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	for (i = 0; i < REGIONS; i++)
		assert_int_equal(weft_mem_deregister(mem[i]), 0);
	free(mem);
	free(there);
	free(in);
}

static void a_waiting_worker_is_woken(void **state)
{
	uint64_t in = 0, out = 42;
	struct weft_request *recv;

	(void)state;
	transfer(b, ep, 8, 1);
	for (int i = 0; i < 1000; i++) {
		weft_worker_progress(a);
		weft_worker_progress(b);
	}
	for (unsigned int i = 0; i < 20; i++) {
		assert_int_equal(weft_tag_recv(b, NULL, &in, 8, i, UINT64_MAX, &params, &recv),
				 WEFT_INPROGRESS);
		/* Nothing is there: it sleeps, or finds what wire-up left, then sleeps. */
		while (weft_worker_wait(b, 2000000) >= 0)
			;
		assert_int_equal(weft_tag_send(ep, &out, 8, i, NULL, NULL), 0);
		while (weft_request_test(recv, NULL) == WEFT_INPROGRESS)
			assert_true(weft_worker_wait(b, 5000000000) > 0);
		assert_int_equal(in, 42);
		weft_request_free(recv);
		in = 0;
	}
	weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
}

static void a_peer_that_goes_ends_the_endpoint(void **state)
{
	struct weft_ep_attr attr = {.size = sizeof(attr), .status = 0};
	struct weft_request *recv;

	(void)state;
	transfer(b, ep, 8, 1);
	assert_int_equal(weft_tag_recv(a, ep, &done, 4, 9, UINT64_MAX, &params, &recv),
			 WEFT_INPROGRESS);
	done = 0;
	weft_worker_destroy(b);
	b = NULL;
	while (weft_request_test(recv, NULL) == WEFT_INPROGRESS)
		weft_worker_progress(a);
	assert_int_equal(status, -ECONNRESET);
	assert_int_equal(weft_ep_query(ep, &attr), 0);
	assert_int_equal(attr.status, -ECONNRESET);
	weft_request_free(recv);
	weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
}

/* ---- fork() --------------------------------------------------------------------------------- */

/* As exit handlers and destructors of objects would do. */
static int child_closes_all(struct weft_mem *mem)
{
	if (weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL) != 0 || weft_mem_deregister(mem))
		return 2;
	weft_worker_destroy(a);
	weft_worker_destroy(b);
	return weft_context_destroy(ctx) == 0 ? 0 : 3;
}

static int status_of(pid_t pid)
{
	int child = -1;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &child, 0), pid);
	return child;
}

/*
 * @behaviour R83: A forked child does not affect its parent, whatever it closes, and has lanes of
 * its own
 */
static void a_child_that_closes_all_disturbs_no_peer(void **state)
{
	struct weft_mem_params mp = {.size = sizeof(mp), .flags = WEFT_MEM_F_REMOTE_WRITE};
	static uint8_t there[4096];
	struct weft_mem *mem;
	pid_t pid;

	(void)state;
	transfer(b, ep, 100000, 1);
	assert_int_equal(weft_mem_register(ctx, there, sizeof(there), &mp, &mem), 0);
	pid = fork();
	if (pid == 0)
		_exit(child_closes_all(mem));
	assert_int_equal(status_of(pid), 0);
	transfer(b, ep, 100000, 2);
	/* The descriptors wake as before. */
	a_waiting_worker_is_woken(state);
	assert_int_equal(weft_mem_deregister(mem), 0);
}

/* What a child says on an old kernel. */
#define NO_CLOSE_RANGE 77

/* All numbers that were the parent's are others' files, when it opens lanes of its own. */
static int child_opens_lanes(void)
{
	int null;

	if (close_range(3, ~0u, 0) < 0)
		return NO_CLOSE_RANGE;
	for (null = 2; null < 200;) {
		null = open("/dev/null", O_RDONLY);
		if (null < 0)
			return 4;
	}
	setup(NULL);
	transfer(b, ep, 8, 1);
	weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	teardown(NULL);
	for (int fd = 3; fd <= null; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			return 5;
	return 0;
}

/* @behaviour R83 */
static void a_child_with_lanes_of_its_own_closes_no_others_file(void **state)
{
	int result;
	pid_t pid;

	(void)state;
#ifdef __SANITIZE_THREAD__
	/* It ends a child whose thread gets the stack of one of the parent's: "dup thread". */
	print_message("left out: ThreadSanitizer does not know threads of a child\n");
	skip();
#endif
	transfer(b, ep, 8, 1);
	pid = fork();
	if (pid == 0)
		_exit(child_opens_lanes());
	result = status_of(pid);
	transfer(b, ep, 8, 2);
	weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	if (WIFEXITED(result) && WEXITSTATUS(result) == NO_CLOSE_RANGE) {
		print_message("left out: the kernel has no close_range()\n");
		skip();
	}
	assert_int_equal(result, 0);
}

static bool has_shm(const char *lanes)
{
	struct weft_iface_info info = {.size = sizeof(info)};
	struct weft_worker_params wp = {.size = sizeof(wp), .lanes = lanes};
	bool found = false;

	assert_int_equal(weft_worker_create(ctx, &wp, &a), 0);
	for (unsigned int i = 0; weft_worker_query_iface(a, i, &info) == 0; i++)
		found = found || strcmp(info.name, "shm:host") == 0;
	weft_worker_destroy(a);
	return found;
}

/* Without WEFT_LANES, and next to lanes that are named; unless the text excludes it. */
static void taken_by_all(void **state)
{
	(void)state;
	make_context("");
	assert_true(has_shm(""));
	assert_true(has_shm("self;*"));
	assert_true(has_shm("shm;*"));
	assert_true(has_shm("self;shm"));
	assert_true(has_shm("shm:host,mix"));
	assert_false(has_shm("self"));
	assert_false(has_shm("self;*;-shm"));
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* It is no rail: with MIN_LANES=2 it does not count, but a peer reached by it needs no other. */
static void is_no_rail(void **state)
{
	struct weft_worker_params wp = {.size = sizeof(wp), .lanes = "*"};

	(void)state;
	make_context_for("shm", "2");
	/* Without drivers of networks '*' asks for none. */
	if (WEFT_HAVE_DPDK || WEFT_HAVE_ROCE)
		assert_int_equal(weft_worker_create(ctx, &wp, &a), -ENODEV);
	assert_int_equal(weft_worker_create(ctx, NULL, &a), 0);
	assert_int_equal(weft_worker_create(ctx, NULL, &b), 0);
	ep = connect_to(a, b);
	transfer(b, ep, 8, 1);
	teardown(state);
}

static void an_option_that_is_none_is_refused(void **state)
{
	struct weft_worker_params wp = {.size = sizeof(wp), .lanes = "shm:host,mix=2"};

	(void)state;
	make_context("shm");
	assert_int_equal(weft_worker_create(ctx, &wp, &a), -EINVAL);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(messages_of_all_sizes_arrive),
		TEST(remote_memory_is_written_and_read),
		TEST(more_memory_than_the_table_has_places_is_reached),
		cmocka_unit_test(a_prompt_sender_is_pulled_from_and_a_late_one_read),
		cmocka_unit_test(where_the_kernel_copies_faster_it_reads),
		TEST(a_waiting_worker_is_woken),
		TEST(a_peer_that_goes_ends_the_endpoint),
		TEST(a_child_that_closes_all_disturbs_no_peer),
		TEST(a_child_with_lanes_of_its_own_closes_no_others_file),
		cmocka_unit_test(taken_by_all),
		cmocka_unit_test(is_no_rail),
		cmocka_unit_test(an_option_that_is_none_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
