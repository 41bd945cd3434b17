/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous over lanes that read and write remote memory themselves, and over such and others
 * together. Mock lanes: reads and writes are copies inside the process, done when the reader's or
 * writer's worker progresses. U n = item n of the list in doc/behaviours.md.
 */

#include <unistd.h>

#include "unit/rndv/duo.h"

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

/* While reads are under way, two registrations: the receiver's is not needed by every lane. */
static void only_lanes_that_need_it_have_the_receivers_memory_registered(void **state)
{
	(void)state;
	for (int any = 0; any < 2; any++) {
		struct op s, r;
		struct duo d;

		mock_reset();
		duo_open(&d, "mock:0,get=4096", "auto", "auto");
		if (any)
			mock_iface(d.w[1], 0)->attr.features |= WEFT_LANE_F_GET_ANY;
		mock_set_rma_window(2);
		op_recv(&r, d.w[1], d.rbuf, LEN, 1, FULL);
		op_send(&s, d.ep, d.sbuf, LEN, 1);
		for (int i = 0; i < 100 && gets(&d) == 0; i++)
			duo_run(&d, 1);
		assert_true(gets(&d) > 0);
		assert_false(op_done(&r));
		assert_int_equal(mock_num_mems(), any ? 1 : 2);
		wait_for(&d, &s, &r);
		op_end(&s, 0);
		op_end_recv(&r, d.rbuf, LEN, 1, 5);
		assert_int_equal(pulls(&d), 0);
		duo_close(&d);
	}
}

/* @behaviour U37 */
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

/*
 * @behaviour U35: get, put and am give the same bytes; memory that can't be registered is sent as
 * messages
 * @behaviour U32
 */
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
struct native_comp {
	const struct weft_lane_iface *writes;
	unsigned int right, wrong;
};

static enum mock_verdict watch_put_done(const struct mock_msg_view *msg, void *arg)
{
	struct native_comp *t = arg;

	if (msg->am_id == WEFT_WIRE_PUT_DONE && msg->from == t->writes)
		t->right++;
	else if (msg->am_id == WEFT_WIRE_PUT_DONE)
		t->wrong++;
	return MOCK_DELIVER;
}

static void written_bytes_are_reported_over_the_lane_that_wrote_them(void **state)
{
	struct native_comp t = {.right = 0};
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

/* @behaviour U35, B9 */
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

/*
 * @behaviour B9: a rendezvous read that is refused is replaced by copies
 * @behaviour U35
 */
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

/* @behaviour U90: limits of remote reads */
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

/*
 * @behaviour U39: a rendezvous that is truncated or dropped frees its sender
 * @behaviour U29
 */
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
	pattern_expect(5, d.rbuf, 5000);
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
	/* One that no receive takes frees its registration with its sender's endpoint. */
	op_send(&s, d.ep, d.sbuf, LEN, 2);
	duo_run(&d, 20);
	assert_int_equal(mock_num_mems(), 1);
	assert_int_equal(weft_request_cancel(s.req), 0);
	wait_for(&d, &s, &s);
	op_end(&s, -ECANCELED);
	assert_int_equal(mock_num_mems(), 0);
	duo_close(&d);
}

/* @behaviour U38 */
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

/* Lanes through memory, of which the kernel reads @p part of what copies carry. */
static void open_memory(struct duo *d, double part)
{
	duo_workers(d, "mock:0,get=1000000", "auto", "auto");
	for (int i = 0; i < 2; i++) {
		struct weft_lane_attr *attr = &mock_iface(d->w[i], 0)->attr;

		attr->features |= WEFT_LANE_F_MEMORY;
		attr->get_bandwidth = attr->bandwidth * part;
	}
	duo_connect(d);
}

/*
 * Reads that are slower than copies are left to messages while the peer is prompt. With half of the
 * speed or more they still suit streams.
 */
static void lanes_with_slow_reads_are_known(void **state)
{
	static const struct {
		double part[2];
		uint32_t slow, stream;
	} t[] = {
		{{0, 0}, 0, 0},     {{1, 1}, 0, 0},     {{0.9, 1}, 1, 1}, {{1, 0.9}, 2, 2},
		{{0.5, 0.4}, 3, 1}, {{0.4, 0.5}, 3, 2}, {{0.4, 0}, 1, 0}, {{0.4, 0.4}, 3, 0},
	};
	struct duo d;

	(void)state;
	for (unsigned int i = 0; i < 2 * sizeof(t) / sizeof(t[0]); i++) {
		bool memory = i % 2;

		mock_reset();
		duo_workers(&d, "mock:0,get=1000000;mock:1,get=1000000", "auto", "auto");
		for (unsigned int k = 0; k < 4; k++) {
			struct weft_lane_attr *attr = &mock_iface(d.w[k / 2], k % 2)->attr;

			attr->features |= memory ? WEFT_LANE_F_MEMORY : 0;
			attr->get_bandwidth = attr->bandwidth * t[i / 2].part[k % 2];
		}
		duo_connect(&d);
		one(&d, LEN);
		assert_int_equal(d.ep->msg->slow_reads, memory ? t[i / 2].slow : 0);
		assert_int_equal(d.ep->msg->stream_reads, memory ? t[i / 2].stream : 0);
		duo_close(&d);
	}
}

static void messages_are_read_unless_the_kernel_is_slow(void **state)
{
	static const double parts[] = {2, 0.6, 0.4};
	struct duo d;

	(void)state;
	for (unsigned int i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		mock_reset();
		open_memory(&d, parts[i]);
		one(&d, LEN);
		assert_int_equal(gets(&d) > 0, parts[i] > 0.5);
		assert_int_equal(pulls(&d) > 0, parts[i] < 0.5);
		duo_close(&d);
	}
}

/* A single message is copied, the others of a burst are announced. */
static void a_burst_is_announced_where_the_kernel_is_fast(void **state)
{
	enum { NUM = 4, SIZE = 40000 };
	struct op s[NUM], r[NUM];
	struct duo d;

	(void)state;
	for (int fast = 0; fast < 2; fast++) {
		mock_reset();
		thresh = "RNDV_THRESH=auto";
		open_memory(&d, fast ? 0.6 : 0.4);
		for (int i = 0; i < 2 * NUM; i++) {
			op_recv(&r[i / 2], d.w[1], d.rbuf, SIZE, 1, FULL);
			op_send(&s[i / 2], d.ep, d.sbuf, SIZE, 1);
			wait_for(&d, &s[i / 2], &r[i / 2]);
			op_end(&s[i / 2], 0);
			op_end_recv(&r[i / 2], d.rbuf, SIZE, 1, 5);
		}
		assert_int_equal(d.w[1]->msg->count.rts, 0);
		for (int i = 0; i < NUM; i++) {
			op_recv(&r[i], d.w[1], d.rbuf + i * SIZE, SIZE, 1, FULL);
			op_send(&s[i], d.ep, d.sbuf, SIZE, 1);
		}
		for (int i = 0; i < NUM; i++) {
			wait_for(&d, &s[i], &r[i]);
			op_end(&s[i], 0);
			op_end_recv(&r[i], d.rbuf + i * SIZE, SIZE, 1, 5);
		}
		assert_int_equal(d.w[1]->msg->count.rts, fast ? NUM - 1 : 0);
		duo_close(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_lane_that_reads_is_read_from_and_the_sender_copies_nothing),
		T(only_lanes_that_need_it_have_the_receivers_memory_registered),
		T(one_message_is_read_natively_and_pulled_at_the_same_time),
		T(U35_schemes_get_put_and_am_give_the_same_bytes),
		T(written_bytes_are_reported_over_the_lane_that_wrote_them),
		T(U35_memory_that_cannot_be_registered_goes_as_messages),
		T(a_read_or_write_that_is_refused_or_fails_comes_as_messages),
		T(reads_under_way_are_bounded_and_room_is_waited_for),
		T(iov_and_generic_receivers_pull_what_a_plain_one_would_read),
		T(U29_U39_truncation_reads_what_has_room_and_frees_the_sender),
		T(an_unexpected_offer_keeps_its_keys_until_it_is_received),
		T(lanes_with_slow_reads_are_known),
		T(messages_are_read_unless_the_kernel_is_slow),
		T(a_burst_is_announced_where_the_kernel_is_fast),
		T(U38_a_death_amid_reads_ends_the_receive_once_and_nothing_is_written_after),
	};

	return cmocka_run_group_tests_name("rendezvous, native", tests, NULL, NULL);
}
