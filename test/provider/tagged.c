/* SPDX-License-Identifier: BSD-3-Clause */
/* Tagged messages through libfabric, between two processes. */

#include "world.h"

#include <stdlib.h>

static const size_t sizes[] = {0, 1, 8, 300, 1016, 5000, 16384, 70000, 1 << 20};

#define NUM_SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define MOST (1 << 20)

/* Every size whole, both ways. */
static void every_size(void **state)
{
	struct world w;
	uint8_t *buf = malloc(MOST);
	struct fi_cq_tagged_entry entry;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED});
	for (unsigned int i = 0; i < 2 * NUM_SIZES; i++) {
		size_t size = sizes[i / 2];

		if ((int)(i % 2) == w.me) {
			world_fill(buf, size, i);
			world_send(&w, buf, size, i);
		} else {
			memset(buf, 0, MOST);
			entry = world_recv(&w, buf, MOST, i);
			assert_int_equal(entry.len, size);
			assert_int_equal(entry.tag, i);
			world_compare(buf, size, i);
		}
	}
	world_close(&w);
	free(buf);
}

/* In pieces at both ends, which are not the same. */
static void pieces(void **state)
{
	uint8_t *buf = malloc(90000);
	struct iovec out[3] = {{buf, 10}, {buf + 10, 39990}, {buf + 40000, 50000}};
	struct iovec in[2] = {{buf, 70000}, {buf + 70000, 20000}};
	struct fi_cq_tagged_entry entry;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED});
	if (w.me == 0) {
		world_fill(buf, 90000, 1);
		CHECK(fi_tsendv(w.ep, out, NULL, 3, w.peer, 5, NULL));
		world_next(&w, NULL);
		assert_int_equal(fi_tsendv(w.ep, out, NULL, 100, w.peer, 5, NULL), -FI_EINVAL);
	} else {
		CHECK(fi_trecvv(w.ep, in, NULL, 2, FI_ADDR_UNSPEC, 5, 0, NULL));
		entry = world_next(&w, NULL);
		assert_int_equal(entry.len, 90000);
		world_compare(buf, 90000, 1);
	}
	world_close(&w);
	free(buf);
}

/* Order of one sender's messages; tags and what of them is ignored. */
static void matching(void **state)
{
	struct fi_cq_tagged_entry entry;
	uint64_t value;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED});
	if (w.me == 0) {
		for (value = 0; value < 8; value++)
			world_send(&w, &value, sizeof(value), 0xab00 + value / 4);
		value = 99;
		world_send(&w, &value, sizeof(value), UINT64_MAX);
	} else {
		entry = world_recv(&w, &value, sizeof(value), UINT64_MAX);
		assert_int_equal(value, 99);
		entry = world_recv(&w, &value, sizeof(value), 0xab01);
		assert_int_equal(value, 4);
		for (uint64_t i = 0; i < 7; i++) {
			CHECK(fi_trecv(w.ep, &value, sizeof(value), NULL, FI_ADDR_UNSPEC, 0xab00,
				       0xff, NULL));
			entry = world_next(&w, NULL);
			assert_int_equal(value, i < 4 ? i : i + 1);
			assert_int_equal(entry.tag, 0xab00 + value / 4);
		}
	}
	world_close(&w);
}

static void truncation(void **state)
{
	struct fi_cq_err_entry error;
	uint8_t buf[256] = {0};
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED});
	if (w.me == 0) {
		world_fill(buf, 200, 3);
		world_send(&w, buf, 200, 7);
	} else {
		CHECK(fi_trecv(w.ep, buf, 150, NULL, w.peer, 7, 0, &error));
		error = world_next_error(&w);
		assert_int_equal(error.err, FI_ETRUNC);
		assert_int_equal(error.len, 150);
		assert_int_equal(error.olen, 50);
		assert_int_equal(error.tag, 7);
		world_compare(buf, 150, 3);
		assert_int_equal(buf[150], 0);
		assert_non_null(fi_cq_strerror(w.cq, error.prov_errno, NULL, NULL, 0));
	}
	world_close(&w);
}

/* Side 1 sends all, closes its endpoint and is not there any more. Its messages are. */
static void from_one_that_has_gone(bool progress, bool any)
{
	static const size_t lengths[] = {8, 0, 300, 1000, 2000};
	struct fi_cq_err_entry error;
	struct world w;
	uint8_t buf[2000];
	ssize_t rc;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED | FI_DIRECTED_RECV});
	/* Side 1 makes the connection, and side 0 has none of its own. */
	if (w.me == 1) {
		world_send(&w, buf, 8, 100);
	} else {
		CHECK(fi_trecv(w.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 100, 0, NULL));
		world_next(&w, NULL);
	}
	for (unsigned int i = 0; w.me == 1 && i < 5; i++) {
		world_fill(buf, lengths[i], i);
		world_send(&w, buf, lengths[i], i);
	}
	if (w.me == 1)
		world_close_ep(&w);
	if (progress)
		world_barrier_progress(&w);
	else
		world_barrier();
	for (unsigned int i = 5; w.me == 0 && i-- > 0;) {
		fi_addr_t source = any && i % 2 ? FI_ADDR_UNSPEC : w.peer;

		memset(buf, 0, sizeof(buf));
		CHECK(fi_trecv(w.ep, buf, sizeof(buf), NULL, source, i, 0, NULL));
		assert_int_equal(world_next(&w, NULL).len, lengths[i]);
		world_compare(buf, lengths[i], i);
	}
	/* Nothing of it is left, and nothing can come: the call or its completion reports it. */
	if (w.me == 0) {
		rc = fi_trecv(w.ep, buf, sizeof(buf), NULL, w.peer, 1, 0, NULL);
		if (rc == 0) {
			error = world_next_error(&w);
			rc = -error.err;
		}
		assert_true(rc == -FI_EHOSTUNREACH || rc == -FI_ECONNRESET);
	}
	world_close(&w);
}

/* @behaviour T28 */
static void what_came_from_a_process_that_has_gone_is_received(void **state)
{
	from_one_that_has_gone(false, false);
	from_one_that_has_gone(true, false);
	from_one_that_has_gone(false, true);
}

static void is_cancelled(struct world *w, const void *context, const void * or)
{
	struct fi_cq_err_entry error = world_next_error(w);

	assert_int_equal(error.err, FI_ECANCELED);
	assert_true(error.op_context == context || error.op_context == or);
}

/* Operations end because their peer is gone, and are cancelled before the errors are read. */
static void unread_errors_are_cancelled(void **state)
{
	uint8_t in[8], out[8] = {0};
	struct world w;
	ssize_t rc;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED | FI_DIRECTED_RECV});
	if (w.me == 1)
		world_close_ep(&w);
	world_barrier();
	if (w.me == 0) {
		CHECK(fi_trecv(w.ep, in, 8, NULL, w.peer, 1, 0, in));
		rc = fi_tsend(w.ep, out, 8, NULL, w.peer, 1, out);
		while (fi_cq_read(w.cq, NULL, 0) == -FI_EAGAIN)
			continue;
		assert_int_equal(fi_cancel(&w.ep->fid, &w), -FI_ENOENT);
		assert_int_equal(fi_cancel(&w.ep->fid, in), 0);
		if (rc == 0) {
			assert_int_equal(fi_cancel(&w.ep->fid, out), 0);
			is_cancelled(&w, out, in);
		}
		is_cancelled(&w, in, rc == 0 ? out : in);
		assert_int_equal(fi_cancel(&w.ep->fid, in), -FI_ENOENT);
	}
	world_close(&w);
}

/* A send that no receive has matched is cancelled: the peer never gets it. */
static void a_send_is_cancelled(void **state)
{
	static uint8_t out[1 << 20], in[1 << 20];
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED});
	if (w.me == 0) {
		CHECK(fi_tsend(w.ep, out, sizeof(out), NULL, w.peer, 1, out));
		assert_int_equal(fi_cancel(&w.ep->fid, out), 0);
	}
	world_barrier_progress(&w);
	if (w.me == 0) {
		is_cancelled(&w, out, out);
		world_fill(out, sizeof(out), 2);
		world_send(&w, out, sizeof(out), 1);
	} else {
		world_recv(&w, in, sizeof(in), 1);
		world_compare(in, sizeof(in), 2);
	}
	world_close(&w);
}

/* Side 1 forgets the address of side 0, which waits, and then sends: the receive is still there. */
/* @behaviour T28 */
static void a_receive_outlives_its_connection(void **state)
{
	uint8_t address[64], buf[8], in[8] = {0};
	size_t length = sizeof(address);
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED | FI_DIRECTED_RECV});
	if (w.me == 0)
		CHECK(fi_trecv(w.ep, in, 8, NULL, w.peer, 2, 0, NULL));
	world_fill(buf, 8, 1);
	if (w.me == 1) {
		world_send(&w, buf, 8, 1);
		CHECK(fi_av_lookup(w.av, w.peer, address, &length));
	} else {
		uint8_t first[8];

		CHECK(fi_trecv(w.ep, first, 8, NULL, w.peer, 1, 0, NULL));
		world_next(&w, NULL);
	}
	world_barrier_progress(&w);
	if (w.me == 1) {
		CHECK(fi_av_remove(w.av, &w.peer, 1, 0));
		assert_int_equal(fi_av_insert(w.av, address, 1, &w.peer, 0, NULL), 1);
	}
	world_barrier_progress(&w);
	if (w.me == 1) {
		world_send(&w, buf, 8, 2);
	} else {
		assert_int_equal(world_next(&w, NULL).tag, 2);
		world_compare(in, 8, 1);
	}
	world_close(&w);
}

static void cancelling(void **state)
{
	struct fi_cq_err_entry error;
	uint8_t buf[8], other[8];
	struct world w;
	int a, b;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED});
	if (w.me == 1) {
		CHECK(fi_trecv(w.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &a));
		CHECK(fi_trecv(w.ep, other, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &b));
		CHECK(fi_cancel(&w.ep->fid, &a));
		error = world_next_error(&w);
		assert_int_equal(error.err, FI_ECANCELED);
		assert_ptr_equal(error.op_context, &a);
		assert_int_equal(fi_cancel(&w.ep->fid, &a), -FI_ENOENT);
	}
	world_barrier();
	if (w.me == 0) {
		world_fill(buf, 8, 4);
		world_send(&w, buf, 8, 1);
	} else {
		assert_ptr_equal(world_next(&w, NULL).op_context, &b);
		world_compare(other, 8, 4);
		assert_int_equal(fi_cancel(&w.ep->fid, &b), -FI_ENOENT);
	}
	world_close(&w);
}

static ssize_t peek(struct world *w, uint64_t tag, uint64_t flags, void *context)
{
	struct fi_msg_tagged msg = {.addr = FI_ADDR_UNSPEC, .tag = tag, .context = context};

	return fi_trecvmsg(w->ep, &msg, FI_PEEK | FI_COMPLETION | flags);
}

static ssize_t fetch(struct world *w, void *buf, size_t length, uint64_t flags, void *context)
{
	struct iovec iov = {buf, length};
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = context};

	return fi_trecvmsg(w->ep, &msg, FI_CLAIM | FI_COMPLETION | flags);
}

static void look_at_messages(struct world *w)
{
	struct fi_cq_tagged_entry entry;
	struct fi_context a, b;
	uint8_t buf[100];

	CHECK(peek(w, 1234, 0, &a));
	assert_int_equal(world_next_error(w).err, FI_ENOMSG);
	/* Looked at, it is still there; its whole length is known. */
	CHECK(peek(w, 10, 0, &a));
	entry = world_next(w, NULL);
	assert_ptr_equal(entry.op_context, &a);
	assert_int_equal(entry.len, 100);
	/* Claimed, no other receive gets it. */
	CHECK(peek(w, 10, FI_CLAIM, &a));
	assert_int_equal(world_next(w, NULL).len, 100);
	CHECK(peek(w, 10, 0, &b));
	assert_int_equal(world_next_error(w).err, FI_ENOMSG);
	assert_int_equal(fetch(w, buf, sizeof(buf), 0, &b), -FI_EINVAL);
	CHECK(fetch(w, buf, sizeof(buf), 0, &a));
	entry = world_next(w, NULL);
	assert_int_equal(entry.len, 100);
	assert_int_equal(entry.tag, 10);
	world_compare(buf, 100, 10);
	/* Dropped, at once and after a claim. */
	CHECK(peek(w, 11, FI_DISCARD, &a));
	world_next(w, NULL);
	CHECK(peek(w, 12, FI_CLAIM, &a));
	world_next(w, NULL);
	CHECK(fetch(w, NULL, 0, FI_DISCARD, &a));
	world_next(w, NULL);
	for (uint64_t tag = 10; tag < 13; tag++) {
		CHECK(peek(w, tag, 0, &a));
		assert_int_equal(world_next_error(w).err, FI_ENOMSG);
	}
}

static void peeking(void **state)
{
	uint8_t buf[100];
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED});
	if (w.me == 0) {
		for (unsigned int i = 10; i < 14; i++) {
			world_fill(buf, 100, i);
			world_send(&w, buf, 100, i);
		}
	} else {
		/* When this one is here, those before it are. */
		world_recv(&w, buf, 100, 13);
		look_at_messages(&w);
	}
	world_close(&w);
}

/* A receive from one sender is not for another's messages. */
static void directed(void **state)
{
	struct fi_cq_tagged_entry entry;
	uint64_t mine = 1, in = 0, other = 0;
	fi_addr_t source;
	struct world w;
	int a, b;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE});
	/* What it was not opened for. */
	assert_int_equal(fi_recv(w.ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, &a), -FI_EOPNOTSUPP);
	assert_int_equal(fi_inject(w.ep, &in, sizeof(in), w.peer), -FI_EOPNOTSUPP);
	assert_int_equal(fi_write(w.ep, &in, sizeof(in), NULL, w.peer, 0, 1, &a), -FI_EOPNOTSUPP);
	if (w.me == 0) {
		mine = 2;
		world_send(&w, &mine, sizeof(mine), 3);
	} else {
		CHECK(fi_trecv(w.ep, &in, sizeof(in), NULL, w.peer, 3, 0, &a));
		CHECK(fi_tsend(w.ep, &mine, sizeof(mine), NULL, w.self, 3, NULL));
		do {
			entry = world_next(&w, &source);
		} while (entry.flags & FI_SEND);
		assert_ptr_equal(entry.op_context, &a);
		assert_int_equal(in, 2);
		assert_int_equal(source, w.peer);
		CHECK(fi_trecv(w.ep, &other, sizeof(other), NULL, w.self, 3, 0, &b));
		do {
			entry = world_next(&w, &source);
		} while (entry.flags & FI_SEND);
		assert_ptr_equal(entry.op_context, &b);
		assert_int_equal(other, 1);
		assert_int_equal(source, w.self);
		assert_int_equal(fi_trecv(w.ep, &in, sizeof(in), NULL, 77, 3, 0, &a), -FI_EINVAL);
	}
	world_close(&w);
}

/* FI_MATCH_COMPLETE: not before the receive is there. */
static void match_complete(void **state)
{
	struct fi_cq_tagged_entry entry;
	uint64_t value = 5;
	struct iovec iov = {&value, sizeof(value)};
	struct world w;
	struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .tag = 9};

	world_open(&w, &(struct world_params){.caps = FI_TAGGED});
	msg.addr = w.peer;
	if (w.me == 0) {
		CHECK(fi_tsendmsg(w.ep, &msg, FI_MATCH_COMPLETE | FI_COMPLETION));
		for (int i = 0; i < 1000; i++)
			assert_int_equal(fi_cq_read(w.cq, &entry, 1), -FI_EAGAIN);
		world_barrier();
		world_next(&w, NULL);
		assert_int_equal(fi_tsendmsg(w.ep, &msg, FI_COMMIT_COMPLETE), -FI_EBADFLAGS);
	} else {
		world_barrier();
		world_recv(&w, &value, sizeof(value), 9);
	}
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size),
		cmocka_unit_test(pieces),
		cmocka_unit_test(matching),
		cmocka_unit_test(truncation),
		cmocka_unit_test(what_came_from_a_process_that_has_gone_is_received),
		cmocka_unit_test(unread_errors_are_cancelled),
		cmocka_unit_test(a_send_is_cancelled),
		cmocka_unit_test(a_receive_outlives_its_connection),
		cmocka_unit_test(cancelling),
		cmocka_unit_test(peeking),
		cmocka_unit_test(directed),
		cmocka_unit_test(match_complete),
	};

	world_begin();
	return world_end(cmocka_run_group_tests_name("provider_tagged", tests, NULL, NULL));
}
