/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous over lanes that read and write remote memory themselves, and over such and others
 * together. Mock lanes: reads and writes are copies inside the process, done when the reader's or
 * writer's worker progresses. U n = item n of the list in doc/behaviours.md.
 */

#include <unistd.h>

#include "mock/mock_lane.h"
#include "mock/msg_util.h"

#define MS 1000000ull
#define LEN 1000000

static const char *cache = "REG_CACHE=off"; /* of the next duos */

static int setup(void **state)
{
	(void)state;
	mock_reset();
	cache = "REG_CACHE=off";
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(mock_num_ifaces(), 0);
	assert_int_equal(mock_num_lane_eps(), 0);
	assert_int_equal(mock_num_mems(), 0);
	return 0;
}

struct duo {
	struct weft_context *ctx[2];
	struct weft_worker *w[2];
	struct weft_ep *ep;
	uint8_t *sbuf, *rbuf;
};

static void duo_run(struct duo *d, int rounds)
{
	while (rounds--)
		mock_run(1, MS / 10, d->w[0], d->w[1], NULL);
}

static void duo_open(struct duo *d, const char *lanes, const char *send_scheme,
		     const char *recv_scheme)
{
	for (int i = 0; i < 2; i++) {
		char scheme[64];

		snprintf(scheme, sizeof(scheme), "RNDV_SCHEME=%s", i ? recv_scheme : send_scheme);
		d->ctx[i] = mock_context(scheme, "RNDV_THRESH=1k", cache, "LOG_LEVEL=error", NULL);
		d->w[i] = mock_worker(d->ctx[i], lanes);
	}
	d->ep = mock_connect(d->w[0], d->w[1]);
	duo_run(d, 50);
	d->sbuf = malloc(LEN);
	d->rbuf = malloc(LEN + 8);
	fill(d->sbuf, LEN, 5);
	memset(d->rbuf, 0xee, LEN + 8);
}

static void duo_close(struct duo *d)
{
	for (int i = 0; i < 2; i++)
		weft_worker_destroy(d->w[i]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(weft_context_destroy(d->ctx[i]), 0);
	free(d->sbuf);
	free(d->rbuf);
}

static void guard_is_whole(const struct duo *d, size_t len)
{
	for (size_t i = len; i < len + 8 && i < LEN + 8; i++)
		assert_int_equal(d->rbuf[i], 0xee);
}

static void wait_for(struct duo *d, const struct op *a, const struct op *b)
{
	for (int i = 0; i < 5000 && !(op_done(a) && op_done(b)); i++)
		duo_run(d, 1);
}

/* One message of @len bytes, and its counters. */
static void one(struct duo *d, size_t len)
{
	struct op s, r;

	op_recv(&r, d->w[1], d->rbuf, len, 1, FULL);
	op_send_sync(&s, d->ep, d->sbuf, len, 1);
	wait_for(d, &s, &r);
	op_end(&s, 0);
	op_end_recv(&r, d->rbuf, len, 1, 5);
	guard_is_whole(d, len);
}

static uint64_t gets(const struct duo *d)
{
	return d->w[1]->msg->count.gets;
}

static uint64_t pulls(const struct duo *d)
{
	return d->w[1]->msg->count.pulls;
}

static uint64_t puts_of(const struct duo *d)
{
	return d->w[0]->msg->count.puts;
}

static void a_lane_that_reads_is_read_from_and_the_sender_copies_nothing(void **state)
{
	struct duo d;

	(void)state;
	duo_open(&d, "mock:0,get=65536", "auto", "auto");
	one(&d, LEN);
	assert_true(gets(&d) >= LEN / 65536);
	assert_int_equal(pulls(&d), 0);
	assert_int_equal(d.w[0]->msg->count.copied_bytes, 0);
	assert_int_equal(mock_num_mems(), 0);
	duo_close(&d);
}

static void one_message_is_read_natively_and_pulled_at_the_same_time(void **state)
{
	struct duo d;

	(void)state;
	duo_open(&d, "mock:0,get=1000000;mock:1", "auto", "auto");
	one(&d, LEN);
	assert_true(gets(&d) > 0);
	assert_true(pulls(&d) > 0);
	assert_int_equal(d.w[0]->msg->count.copied_bytes, 0);
	assert_int_equal(d.w[1]->msg->rndv->pulls.used, 0);
	duo_close(&d);
}

static void U35_schemes_get_put_and_am_give_the_same_bytes(void **state)
{
	static const char *const schemes[] = {"auto", "get", "put", "am"};
	static const char *const lanes[] = {
		"mock:0",
		"mock:0,get=65536,put=65536",
		"mock:0,get=65536;mock:1,put=32768;mock:2",
		"mock:0,put=4096;mock:1,zcopy=0",
	};
	static const size_t sizes[] = {1024, 4097, 65536, 300001, LEN};

	(void)state;
	for (unsigned int i = 0; i < 4 * 4 * 4; i++) {
		struct duo d;

		mock_reset();
		duo_open(&d, lanes[i / 16], schemes[i / 4 % 4], schemes[i % 4]);
		for (unsigned int k = 0; k < 5; k++)
			one(&d, sizes[k]);
		assert_int_equal(d.w[1]->msg->rndv->pulls.used, 0);
		assert_int_equal(d.w[0]->msg->count.native_failed, 0);
		assert_int_equal(d.w[1]->msg->count.native_failed, 0);
		/* Each end's wish is obeyed. */
		if (i / 4 % 4 == 3 || i % 4 == 3)
			assert_int_equal(gets(&d) + pulls(&d) + puts_of(&d), 0);
		if (i / 4 % 4 == 2 || i % 4 == 2)
			assert_int_equal(gets(&d) + pulls(&d), 0);
		if (i / 16 == 1 && (i / 4 % 4 == 2 || i / 4 % 4 == 0) && i % 4 == 2)
			assert_true(puts_of(&d) > 0);
		duo_close(&d);
		assert_int_equal(mock_num_mems(), 0);
	}
}

/* What the sender says of its writes, and over which lane. */
struct told {
	const struct weft_lane_iface *writes;
	unsigned int right, wrong;
};

static enum mock_verdict watch_put_done(const struct mock_msg_view *msg, void *arg)
{
	struct told *t = arg;

	if (msg->am_id == WEFT_WIRE_PUT_DONE && msg->from == t->writes)
		t->right++;
	else if (msg->am_id == WEFT_WIRE_PUT_DONE)
		t->wrong++;
	return MOCK_DELIVER;
}

static void that_bytes_are_written_is_said_over_the_lane_that_wrote_them(void **state)
{
	struct told t = {.right = 0};
	struct duo d;

	(void)state;
	/*
	 * Another lane is the first for control messages; then the one that writes has room seldom.
	 */
	duo_open(&d, "mock:0,lat=1e-7;mock:1,net=1,put=65536,lat=1e-4,bw=1e10", "put", "put");
	t.writes = mock_iface(d.w[0], 1);
	mock_set_filter(watch_put_done, &t);
	one(&d, LEN);
	assert_true(t.right > 0);
	mock_set_eagain(mock_iface(d.w[0], 1), 700);
	one(&d, LEN);
	assert_int_equal(t.wrong, 0);
	mock_set_eagain(NULL, 0);
	mock_set_filter(NULL, NULL);
	duo_close(&d);
}

static void U35_memory_that_cannot_be_registered_goes_as_messages(void **state)
{
	static const char *const schemes[] = {"get", "put"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct duo d;

		mock_reset();
		duo_open(&d, "mock:0,get=65536,put=65536;mock:1", schemes[i], schemes[i]);
		mock_fail_register(-EPERM);
		one(&d, LEN);
		assert_int_equal(gets(&d) + puts_of(&d), 0);
		mock_fail_register(0);
		mock_now += 2 * WEFT_BACKOFF_MIN_NS; /* else it is not asked for again so soon */
		one(&d, LEN);
		assert_true(gets(&d) + puts_of(&d) > 0);
		duo_close(&d);
	}
}

static void a_read_or_write_that_is_refused_or_fails_comes_as_messages(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		const char *scheme = i / 2 ? "put" : "get";
		struct duo d;

		mock_reset();
		duo_open(&d, "mock:0,get=65536,put=65536;mock:1", scheme, scheme);
		mock_fail_rma(i % 2 ? -EINVAL : 0, i % 2 ? 0 : -EACCES);
		one(&d, LEN);
		assert_true(d.w[0]->msg->count.native_failed + d.w[1]->msg->count.native_failed >
			    0);
		assert_int_equal(d.w[1]->msg->rndv->pulls.used, 0);
		assert_int_equal(d.ep->status, 0);
		duo_close(&d);
	}
}

static void reads_under_way_are_bounded_and_room_is_waited_for(void **state)
{
	struct duo d;

	(void)state;
	duo_open(&d, "mock:0,get=4096", "auto", "auto");
	mock_set_rma_window(1);
	mock_set_eagain(NULL, 300);
	one(&d, LEN);
	assert_true(gets(&d) >= LEN / 4096);
	mock_set_eagain(NULL, 0);
	duo_close(&d);
}

static void iov_and_generic_receivers_pull_what_a_plain_one_would_read(void **state)
{
	struct iovec iov[3];
	const struct weft_datatype type = WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_IOV);
	struct op s, r;
	struct duo d;

	(void)state;
	duo_open(&d, "mock:0,get=65536;mock:1", "auto", "auto");
	iov[0] = (struct iovec){d.rbuf, 1000};
	iov[1] = (struct iovec){d.rbuf + 1000, 499000};
	iov[2] = (struct iovec){d.rbuf + 500000, LEN - 500000};
	op_recv_dt(&r, d.w[1], NULL, iov, 3, 1, FULL, &type);
	op_send(&s, d.ep, d.sbuf, LEN, 1);
	wait_for(&d, &s, &r);
	op_end(&s, 0);
	op_end_recv(&r, d.rbuf, LEN, 1, 5);
	assert_int_equal(gets(&d), 0);
	iov[0] = (struct iovec){d.sbuf, 70000};
	iov[1] = (struct iovec){d.sbuf + 70000, LEN - 70000};
	memset(d.rbuf, 0, LEN);
	op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
	op_send_dt(&s, d.ep, iov, 2, 1, false, &type);
	wait_for(&d, &s, &r);
	op_end(&s, 0);
	op_end_recv(&r, d.rbuf, LEN, 1, 5);
	assert_int_equal(gets(&d), 0);
	duo_close(&d);
}

static void U29_U39_truncation_reads_what_has_room_and_frees_the_sender(void **state)
{
	struct op s, r;
	struct duo d;

	(void)state;
	duo_open(&d, "mock:0,get=65536", "auto", "auto");
	op_recv(&r, d.w[1], d.rbuf, 5000, 1, FULL);
	op_send(&s, d.ep, d.sbuf, LEN, 1);
	wait_for(&d, &s, &r);
	op_end(&s, 0);
	op_end(&r, -EMSGSIZE);
	assert_int_equal(r.c.length, LEN);
	assert_int_equal(pulls(&d), 0);
	assert_int_equal(gets(&d), 1);
	check(d.rbuf, 5000, 5);
	guard_is_whole(&d, 5000);
	/* No room, nothing to read. */
	op_recv(&r, d.w[1], d.rbuf, 0, 1, FULL);
	op_send(&s, d.ep, d.sbuf, LEN, 1);
	wait_for(&d, &s, &r);
	op_end(&s, 0);
	op_end(&r, -EMSGSIZE);
	assert_int_equal(gets(&d), 1);
	duo_close(&d);
}

static void an_unexpected_offer_keeps_its_keys_until_it_is_received(void **state)
{
	struct op s, r;
	struct duo d;

	(void)state;
	duo_open(&d, "mock:0,get=65536", "auto", "auto");
	op_send(&s, d.ep, d.sbuf, LEN, 1);
	duo_run(&d, 20);
	assert_int_equal(mock_num_mems(), 1);
	op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
	wait_for(&d, &s, &r);
	op_end(&s, 0);
	op_end_recv(&r, d.rbuf, LEN, 1, 5);
	assert_true(gets(&d) > 0);
	/* One that nobody takes frees its registration with its sender's endpoint. */
	op_send(&s, d.ep, d.sbuf, LEN, 2);
	duo_run(&d, 20);
	assert_int_equal(mock_num_mems(), 1);
	assert_int_equal(weft_request_cancel(s.req), 0);
	wait_for(&d, &s, &s);
	op_end(&s, -ECANCELED);
	assert_int_equal(mock_num_mems(), 0);
	duo_close(&d);
}

static void U38_a_death_amid_reads_ends_the_receive_once_and_nothing_is_written_after(void **state)
{
	(void)state;
	for (int cut = 0; cut < 2; cut++) {
		struct op s, r;
		struct duo d;

		mock_reset();
		duo_open(&d, "mock:0,get=4096", "auto", "auto");
		mock_set_rma_window(2);
		op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
		op_send(&s, d.ep, d.sbuf, LEN, 1);
		duo_run(&d, 20);
		assert_false(op_done(&r));
		assert_true(gets(&d) > 0);
		if (cut)
			mock_hold(NULL); /* reads hang until their lane is destroyed */
		mock_kill(NULL, NULL, -ECONNRESET, "cut");
		duo_run(&d, 5);
		assert_true(op_done(&r));
		assert_true(op_done(&s));
		memset(d.rbuf, 0x11, LEN);
		mock_release(NULL);
		duo_run(&d, 20);
		for (size_t i = 0; i < LEN; i++)
			assert_int_equal(d.rbuf[i], 0x11);
		op_end(&r, -ECONNRESET);
		op_end(&s, -ECONNRESET);
		duo_close(&d);
	}
}

/* ------------------------------------------------------------------ rights */

static void the_key_of_a_send_buffer_allows_reading_and_that_of_a_receive_buffer_writing(
	void **state)
{
	static const struct {
		const char *scheme;
		unsigned int rights;
	} cases[] = {{"get", WEFT_LANE_ACCESS_REMOTE_READ}, {"put", WEFT_LANE_ACCESS_REMOTE_WRITE}};
	struct op s, r;
	struct duo d;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		mock_reset();
		duo_open(&d, "mock:0,get=4096,put=4096", cases[i].scheme, cases[i].scheme);
		mock_set_rma_window(1);
		op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
		op_send_sync(&s, d.ep, d.sbuf, LEN, 1);
		duo_run(&d, 20);
		assert_false(op_done(&r));
		assert_int_equal(mock_mem_remote_rights(), cases[i].rights);
		wait_for(&d, &s, &r);
		op_end(&s, 0);
		op_end_recv(&r, d.rbuf, LEN, 1, 5);
		assert_int_equal(mock_num_denied(), 0);
		duo_close(&d);
	}
}

static void send_from(struct duo *d, struct weft_mem *mem, const uint8_t *buf, struct op *op)
{
	struct weft_op_params p = op_params(op, NULL);

	p.mem = mem;
	op->rc = weft_tag_send_sync(d->ep, buf, LEN, 1, &p, &op->req);
	assert_int_equal(op->rc, WEFT_INPROGRESS);
}

static void memory_of_the_user_is_sent_by_a_key_for_reading_that_is_made_once(void **state)
{
	static const unsigned int flags[] = {0, WEFT_MEM_REMOTE_READ,
					     WEFT_MEM_REMOTE_READ | WEFT_MEM_REMOTE_WRITE};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct weft_mem_params mp = WEFT_INIT(struct weft_mem_params, .flags = flags[i]);
		struct weft_mem *mem;
		struct op s, r;
		struct duo d;
		unsigned int before;

		mock_reset();
		mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_RMA;
		duo_open(&d, "mock:0,get=65536", "auto", "auto");
		assert_int_equal(weft_mem_register(d.ctx[0], d.sbuf, LEN, &mp, &mem), 0);
		before = mock_num_registers();
		for (int k = 0; k < 3; k++) {
			op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
			send_from(&d, mem, d.sbuf, &s);
			wait_for(&d, &s, &r);
			op_end(&s, 0);
			op_end_recv(&r, d.rbuf, LEN, 1, 5);
		}
		assert_true(gets(&d) >= 3 * LEN / 65536);
		assert_int_equal(mock_num_denied(), 0);
		/*
		 * Three of the receiver, and one of the sender: never a key that the user gives
		 * away.
		 */
		assert_int_equal(mock_num_registers() - before, 4);
		assert_int_equal(weft_mem_deregister(mem), 0);
		assert_int_equal(mock_num_mems(), 0);
		duo_close(&d);
	}
	mock_features = 0;
}

static void memory_that_the_user_may_only_read_is_registered_and_sent(void **state)
{
	struct weft_mem_params mp = WEFT_INIT(struct weft_mem_params, .flags = 0);
	struct weft_mem *mem;
	struct op s, r;
	struct duo d;

	(void)state;
	duo_open(&d, "mock:0,get=65536", "auto", "auto");
	mock_set_read_only(d.sbuf, LEN);
	assert_int_equal(weft_mem_register(d.ctx[0], d.sbuf, LEN, &mp, &mem), 0);
	op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
	send_from(&d, mem, d.sbuf, &s);
	wait_for(&d, &s, &r);
	op_end(&s, 0);
	op_end_recv(&r, d.rbuf, LEN, 1, 5);
	assert_true(gets(&d) > 0);
	assert_int_equal(weft_mem_deregister(mem), 0);
	/* Nor on the fly. */
	one(&d, LEN);
	assert_int_equal(pulls(&d), 0);
	duo_close(&d);
}

static void memory_that_may_not_be_written_has_no_key_for_writing(void **state)
{
	struct weft_mem_params mp =
		WEFT_INIT(struct weft_mem_params, .flags = WEFT_MEM_REMOTE_WRITE);
	struct weft_mem *mem;
	struct duo d;

	(void)state;
	mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_RMA;
	duo_open(&d, "mock:0,get=65536,put=65536", "auto", "auto");
	mock_set_read_only(d.sbuf, LEN);
	assert_int_equal(weft_mem_register(d.ctx[0], d.sbuf, LEN, &mp, &mem), -EFAULT);
	mp.flags = WEFT_MEM_REMOTE_READ;
	assert_int_equal(weft_mem_register(d.ctx[0], d.sbuf, LEN, &mp, &mem), 0);
	assert_int_equal(weft_mem_deregister(mem), 0);
	duo_close(&d);
	mock_features = 0;
}

/* Else what a peer's hardware has been told goes on in memory that is its owner's again. */
static void keys_of_a_message_that_ends_before_its_time_are_dead_when_it_ends(void **state)
{
	static const char *const schemes[] = {"get", "put"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct op s, r;
		struct duo d;
		bool keeps;

		mock_reset();
		cache = "REG_CACHE=auto";
		duo_open(&d, "mock:0,get=4096,put=4096", schemes[i], schemes[i]);
		one(&d, LEN);
		/* It ended as agreed: it stays for the next. */
		keeps = mock_mem_remote_rights() != 0;
		mock_set_rma_window(1);
		op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
		op_send(&s, d.ep, d.sbuf, LEN, 1);
		duo_run(&d, 20);
		assert_false(op_done(&r));
		assert_int_not_equal(mock_mem_remote_rights(), 0);
		mock_kill(NULL, NULL, -ECONNRESET, "cut");
		for (int k = 0; k < 50 && !(op_done(&r) && op_done(&s)); k++)
			duo_run(&d, 1);
		assert_int_equal(mock_mem_remote_rights(), 0);
		op_end(&r, -ECONNRESET);
		op_end(&s, -ECONNRESET);
		duo_close(&d);
		if (!keeps) {
			print_message("left out: the kernel does not let registrations be kept\n");
			skip();
		}
	}
}

/* The user's registration stays; the one that was made for messages does not. */
static void a_key_to_memory_of_the_user_is_dead_when_its_message_fails(void **state)
{
	static const unsigned int flags[] = {0, WEFT_MEM_REMOTE_READ};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct weft_mem_params mp = WEFT_INIT(struct weft_mem_params, .flags = flags[i]);
		struct weft_mem *mem;
		unsigned int before;
		struct op s, r;
		struct duo d;

		mock_reset();
		mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_RMA;
		duo_open(&d, "mock:0,get=4096", "get", "get");
		assert_int_equal(weft_mem_register(d.ctx[0], d.sbuf, LEN, &mp, &mem), 0);
		before = mock_num_mems();
		mock_set_rma_window(1);
		op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
		send_from(&d, mem, d.sbuf, &s);
		duo_run(&d, 20);
		assert_false(op_done(&r));
		assert_int_equal(mock_num_mems(), before + 2);
		mock_kill(NULL, NULL, -ECONNRESET, "cut");
		for (int k = 0; k < 50 && !(op_done(&r) && op_done(&s)); k++)
			duo_run(&d, 1);
		assert_int_equal(mock_num_mems(), before);
		op_end(&r, -ECONNRESET);
		op_end(&s, -ECONNRESET);
		assert_int_equal(weft_mem_deregister(mem), 0);
		duo_close(&d);
	}
	mock_features = 0;
}

static void a_registration_beside_the_buffer_is_not_offered(void **state)
{
	struct weft_mem *mem;
	struct op s, r;
	struct duo d;

	(void)state;
	duo_open(&d, "mock:0,get=65536", "auto", "auto");
	assert_int_equal(weft_mem_register(d.ctx[0], d.sbuf, LEN / 2, NULL, &mem), 0);
	op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
	send_from(&d, mem, d.sbuf, &s);
	wait_for(&d, &s, &r);
	op_end(&s, 0);
	op_end_recv(&r, d.rbuf, LEN, 1, 5);
	assert_int_equal(gets(&d), 0);
	assert_int_equal(weft_mem_deregister(mem), 0);
	duo_close(&d);
}

/*
 * The lanes give back what they still hold when they close, under the context's lock; its
 * registration, made on the fly, goes with it, under the same lock.
 */
static void a_worker_may_go_while_its_lanes_hold_what_was_registered_on_the_fly(void **state)
{
	static const char *const schemes[] = {"put", "get"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct weft_op_params p;
		struct duo d;
		struct op s, r;

		alarm(20); /* it would wait for itself for ever */
		duo_open(&d, "mock:0,get=16k,put=16k", schemes[i], schemes[i]);
		p = op_params(&r, NULL);
		assert_int_equal(weft_tag_recv(d.w[1], NULL, d.rbuf, LEN, 1, FULL, &p, NULL),
				 WEFT_INPROGRESS);
		p = op_params(&s, NULL);
		assert_int_equal(weft_tag_send(d.ep, d.sbuf, LEN, 1, &p, NULL), WEFT_INPROGRESS);
		for (int k = 0; k < 200 && !puts_of(&d) && !gets(&d); k++)
			duo_run(&d, 1);
		assert_true(puts_of(&d) + gets(&d) > 0);
		assert_in_range(mock_num_mems(), 1, 2);
		mock_set_slow_hardware(true);
		duo_close(&d);
		assert_int_equal(s.calls, 1);
		assert_int_equal(r.calls, 1);
		assert_true(s.c.status < 0 && r.c.status < 0);
		alarm(0);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_worker_may_go_while_its_lanes_hold_what_was_registered_on_the_fly),
		T(a_lane_that_reads_is_read_from_and_the_sender_copies_nothing),
		T(one_message_is_read_natively_and_pulled_at_the_same_time),
		T(U35_schemes_get_put_and_am_give_the_same_bytes),
		T(that_bytes_are_written_is_said_over_the_lane_that_wrote_them),
		T(U35_memory_that_cannot_be_registered_goes_as_messages),
		T(a_read_or_write_that_is_refused_or_fails_comes_as_messages),
		T(reads_under_way_are_bounded_and_room_is_waited_for),
		T(iov_and_generic_receivers_pull_what_a_plain_one_would_read),
		T(U29_U39_truncation_reads_what_has_room_and_frees_the_sender),
		T(an_unexpected_offer_keeps_its_keys_until_it_is_received),
		T(the_key_of_a_send_buffer_allows_reading_and_that_of_a_receive_buffer_writing),
		T(memory_of_the_user_is_sent_by_a_key_for_reading_that_is_made_once),
		T(memory_that_the_user_may_only_read_is_registered_and_sent),
		T(memory_that_may_not_be_written_has_no_key_for_writing),
		T(a_registration_beside_the_buffer_is_not_offered),
		T(keys_of_a_message_that_ends_before_its_time_are_dead_when_it_ends),
		T(a_key_to_memory_of_the_user_is_dead_when_its_message_fails),
		T(U38_a_death_amid_reads_ends_the_receive_once_and_nothing_is_written_after),
	};

	return cmocka_run_group_tests_name("rendezvous, native", tests, NULL, NULL);
}
