/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that runs out in the middle of a call of the user, at each of its allocations in turn,
 * over the whole library: the call answers with an error and there is no callback, or with a
 * request whose one callback comes from a later progress call.
 *
 * The lanes have no room meanwhile: what finds none is kept, which takes memory; and the mock lanes
 * themselves need none.
 */

#include "mock/mock_lane.h"
#include "mock/msg_util.h"

#define MS 1000000ull

/* ---- memory that runs out (linked with --wrap) ---- */

static struct {
	unsigned int nth; /* allocation that fails, from now on; 0 = none does */
	bool came;        /* it has failed */
} out;

static bool fails(void)
{
	if (!out.nth || --out.nth)
		return false;
	out.came = true;
	return true;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

/* ---- two workers, and an operation under watch ---- */

struct world {
	struct weft_context *ctx;
	struct weft_worker *w[2];
	struct weft_ep *ep;   /* of w[0], to w[1] */
	struct weft_mem *mem; /* of w[1] */
	struct weft_rkey *rkey;
	struct weft_am_data *kept; /* the active message that has come to w[1] */
	uint8_t send[100000], recv[100000];
	struct op op;
	unsigned int nth;    /* to be armed */
	unsigned int errors; /* err_cb */
};

static bool in_call;

static void watched_cb(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	assert_false(in_call);
	op_cb(req, c, arg);
}

static void watched_err(struct weft_ep *ep, int status, const char *why, void *arg)
{
	struct world *x = arg;

	(void)ep;
	(void)why;
	assert_false(in_call);
	assert_int_not_equal(status, 0);
	x->errors++;
}

static int keep(struct weft_worker *w, const struct weft_am_msg *msg, void *arg)
{
	struct world *x = arg;

	(void)w;
	x->kept = msg->desc;
	return WEFT_INPROGRESS;
}

static void run(struct world *x, int rounds)
{
	mock_run((unsigned int)rounds, MS, x->w[0], x->w[1], NULL);
}

static void world_open(struct world *x, const char *scheme)
{
	struct weft_ep_params p = {.size = sizeof(p), .err_cb = watched_err, .err_arg = x};
	void *addr;

	*x = (struct world){.nth = 0};
	mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_AM | WEFT_FEATURE_RMA;
	x->ctx = mock_context("CONNECT_TIMEOUT=30s", "MULTI_EAGER_LIMIT=16k", "LOG_LEVEL=error",
			      scheme, NULL);
	for (int i = 0; i < 2; i++)
		x->w[i] = mock_worker(x->ctx, "mock:0;mock:1,net=1");
	assert_int_equal(weft_worker_get_address(x->w[1], &addr, &p.address_length), 0);
	p.address = addr;
	assert_int_equal(weft_ep_create(x->w[0], &p, &x->ep), 0);
	weft_worker_release_address(x->w[1], addr);
	assert_int_equal(weft_worker_set_am_handler(x->w[1], 1, keep, x, 0), 0);
	run(x, 20);
}

static void world_close(struct world *x)
{
	weft_rkey_destroy(x->rkey);
	for (int i = 0; i < 2; i++)
		weft_worker_destroy(x->w[i]);
	if (x->mem)
		assert_int_equal(weft_mem_deregister(x->mem), 0);
	assert_int_equal(weft_context_destroy(x->ctx), 0);
}

/* From here on there is no room, and the allocation in question fails. */
static void begin_want(struct world *x)
{
	mock_set_eagain(NULL, 1000);
	out.nth = x->nth;
	out.came = false;
}

static void end_want(void)
{
	out.nth = 0;
	mock_set_eagain(NULL, 0);
}

static struct weft_op_params watched(struct world *x, const struct weft_datatype *type)
{
	struct weft_op_params p = op_params(&x->op, type);

	p.cb = watched_cb;
	return p;
}

/* What is tried: @return the answer of the call, made between in_call's two values. */
typedef void (*prepare_fn)(struct world *x);
typedef int (*call_fn)(struct world *x, const struct weft_op_params *p);

/* @return true when an allocation of the call did fail */
static bool try_one(struct world *x, const char *scheme, prepare_fn prepare, call_fn call,
		    const struct weft_datatype *type, unsigned int nth)
{
	struct weft_op_params p;
	bool came;

	world_open(x, scheme);
	if (prepare)
		prepare(x);
	p = watched(x, type);
	x->nth = nth;
	if (!type)
		begin_want(x);
	in_call = true;
	x->op.rc = call(x, &p);
	in_call = false;
	came = out.came;
	end_want();
	if (x->op.rc < 0)
		assert_int_equal(x->op.calls, 0);
	for (int t = 0; !op_done(&x->op) && !x->errors && t < 200; t++)
		run(x, 1);
	run(x, 20);
	if (x->op.rc == WEFT_INPROGRESS && !x->op.calls)
		fail_msg("%s, allocation %u: no callback ever came", scheme, nth);
	op_end(&x->op, x->op.calls ? x->op.c.status : x->op.rc);
	world_close(x);
	return came;
}

/* @param least  allocations that the call makes at least: or there is nothing to see */
static void try_all(const char *scheme, prepare_fn prepare, call_fn call,
		    const struct weft_datatype *type, unsigned int least)
{
	struct world *x = malloc(sizeof(*x));
	unsigned int nth = 1;

	while (try_one(x, scheme, prepare, call, type, nth))
		nth++;
	assert_in_range(nth - 1, least, 50);
	free(x);
}

/* ---- calls ---- */

static void rts_has_come(struct world *x)
{
	assert_int_equal(weft_tag_send(x->ep, x->send, sizeof(x->send), 5, NULL, NULL),
			 WEFT_INPROGRESS);
	run(x, 20);
}

static int recv_it(struct world *x, const struct weft_op_params *p)
{
	return weft_tag_recv(x->w[1], NULL, x->recv, sizeof(x->recv), 5, FULL, p, &x->op.req);
}

static void receiving_a_rendezvous(void **state)
{
	(void)state;
	try_all("RNDV_SCHEME=get", rts_has_come, recv_it, NULL, 2);
	try_all("RNDV_SCHEME=am", rts_has_come, recv_it, NULL, 3);
}

static int recv_short(struct world *x, const struct weft_op_params *p)
{
	return weft_tag_recv(x->w[1], NULL, x->recv, 10, 5, FULL, p, &x->op.req);
}

static void receiving_a_rendezvous_into_too_little(void **state)
{
	(void)state;
	try_all("RNDV_SCHEME=auto", rts_has_come, recv_short, NULL, 1);
}

static void am_rts_has_come(struct world *x)
{
	struct weft_am_send_params a = {.size = sizeof(a), .id = 1, .flags = WEFT_AM_SEND_F_RNDV};

	assert_int_equal(weft_am_send(x->ep, &a, x->send, sizeof(x->send), NULL, NULL),
			 WEFT_INPROGRESS);
	run(x, 20);
	assert_non_null(x->kept);
}

static int am_recv_it(struct world *x, const struct weft_op_params *p)
{
	int rc = weft_am_recv_data(x->w[1], x->kept, x->recv, sizeof(x->recv), p, &x->op.req);

	if (rc == -ENOMEM) /* then it is not used up */
		assert_int_equal(weft_am_data_release(x->w[1], x->kept), 0);
	return rc;
}

static void receiving_the_data_of_an_active_message(void **state)
{
	(void)state;
	try_all("RNDV_SCHEME=get", am_rts_has_come, am_recv_it, NULL, 2);
	try_all("RNDV_SCHEME=am", am_rts_has_come, am_recv_it, NULL, 3);
}

static int am_send_it(struct world *x, const struct weft_op_params *p)
{
	struct weft_am_send_params a = {
		.size = sizeof(a), .id = 1, .header = x->send, .header_length = 20};
	int rc = weft_am_send(x->ep, &a, x->send, 100, p, &x->op.req);

	if (rc < 0) /* it has left no trace, so the next one goes */
		assert_int_equal(rc, -ENOMEM);
	return rc;
}

static void sending_an_active_message(void **state)
{
	(void)state;
	try_all("RNDV_SCHEME=auto", NULL, am_send_it, NULL, 1);
}

static void an_active_message_that_could_not_be_sent_leaves_no_trace(void **state)
{
	struct weft_am_send_params a = {
		.size = sizeof(a), .id = 1, .header = "head", .header_length = 4};
	struct world *x = malloc(sizeof(*x));
	int rc = -ENOMEM;

	(void)state;
	world_open(x, "RNDV_SCHEME=auto");
	for (x->nth = 1; rc == -ENOMEM; x->nth++) {
		begin_want(x);
		rc = weft_am_send(x->ep, &a, x->send, 100, NULL, NULL);
		end_want();
		assert_int_equal(rc, out.came ? -ENOMEM : WEFT_INPROGRESS);
		assert_int_equal(x->w[0]->msg->reqs.in_use, rc == WEFT_INPROGRESS);
	}
	assert_in_range(x->nth, 3, 5); /* a place for the request, a copy of the header */
	run(x, 20);
	assert_int_equal(x->errors, 0);
	assert_int_equal(x->w[1]->msg->count.am_received, 1);
	world_close(x);
	free(x);
}

/* A type that fails behind its first bytes, and then nothing works any more. */
static struct world *packing;

static void *pack_start(void *arg, const void *buffer, size_t count)
{
	(void)buffer;
	(void)count;
	return arg;
}

static size_t pack_size(void *state)
{
	(void)state;
	return 12000;
}

static ssize_t pack_some(void *state, size_t offset, void *dst, size_t max)
{
	(void)state;
	if (offset) {
		begin_want(packing);
		return -EIO;
	}
	memset(dst, 0, max);
	return (ssize_t)max;
}

static void pack_finish(void *state)
{
	(void)state;
}

static int send_broken(struct world *x, const struct weft_op_params *p)
{
	packing = x;
	out.came = false;
	return weft_tag_send(x->ep, x->send, 1, 5, p, &x->op.req);
}

static void a_pack_error_whose_abort_cannot_be_kept(void **state)
{
	static const struct weft_generic_ops ops = {
		.size = sizeof(ops),
		.start_pack = pack_start,
		.packed_size = pack_size,
		.pack = pack_some,
		.finish = pack_finish,
	};
	static int arg;
	const struct weft_datatype type = WEFT_INIT(
		struct weft_datatype, .dt_class = WEFT_DT_GENERIC, .ops = &ops, .arg = &arg);

	(void)state;
	try_all("RNDV_THRESH=inf", NULL, send_broken, &type, 1);
}

static void share(struct world *x)
{
	struct weft_mem_params p = {
		.size = sizeof(p),
		.flags = WEFT_MEM_F_REMOTE_READ | WEFT_MEM_F_REMOTE_WRITE,
	};
	size_t length;
	void *blob;

	assert_int_equal(weft_mem_register(x->ctx, x->recv, sizeof(x->recv), &p, &x->mem), 0);
	assert_int_equal(weft_rkey_pack(x->mem, &blob, &length), 0);
	assert_int_equal(weft_rkey_unpack(x->ep, blob, length, &x->rkey), 0);
	weft_rkey_release_blob(blob);
}

static int put_it(struct world *x, const struct weft_op_params *p)
{
	return weft_put(x->ep, x->send, sizeof(x->send), x->rkey, 0, p, &x->op.req);
}

static int get_it(struct world *x, const struct weft_op_params *p)
{
	return weft_get(x->ep, x->send, sizeof(x->send), x->rkey, 0, p, &x->op.req);
}

static void putting_and_getting(void **state)
{
	(void)state;
	try_all("RNDV_SCHEME=auto", share, put_it, NULL, 1);
	try_all("RNDV_SCHEME=auto", share, get_it, NULL, 1);
}

static int flush_it(struct world *x, const struct weft_op_params *p)
{
	return weft_ep_flush(x->ep, p, &x->op.req);
}

static void flushing(void **state)
{
	(void)state;
	try_all("RNDV_SCHEME=auto", NULL, flush_it, NULL, 1);
}

/* ---- */

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
	mock_features = 0;
	return 0;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(receiving_a_rendezvous),
		TEST(receiving_a_rendezvous_into_too_little),
		TEST(receiving_the_data_of_an_active_message),
		TEST(sending_an_active_message),
		TEST(an_active_message_that_could_not_be_sent_leaves_no_trace),
		TEST(a_pack_error_whose_abort_cannot_be_kept),
		TEST(putting_and_getting),
		TEST(flushing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
