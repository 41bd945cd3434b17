/* SPDX-License-Identifier: BSD-3-Clause */
/* FI_SOURCE_ERR: a message whose sender the address vector lacks brings the address along. */

#include "world.h"

#include <stdlib.h>

#define ROOM 300000

static const size_t lengths[] = {0, 8, 5000, ROOM};

#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static uint8_t buf[ROOM];

/* Side 1 does not know side 0, and has not been connected to it. */
static void open_unknown(struct world *w, uint64_t caps)
{
	world_open(w, &(struct world_params){.caps = caps});
	if (w->me == 1)
		CHECK(fi_av_remove(w->av, &w->peer, 1, 0));
	world_barrier();
}

/* The next completion is a message of an unknown sender, whose address is stored in @p addr. */
static struct fi_cq_err_entry next_unknown(struct world *w, uint8_t addr[FI_NAME_MAX])
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {.err_data = addr, .err_data_size = FI_NAME_MAX};
	ssize_t n;

	do {
		n = fi_cq_read(w->cq, &entry, 1);
	} while (n == -FI_EAGAIN);
	assert_int_equal(n, -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(w->cq, &error, 0), 1);
	assert_int_equal(error.err, FI_EADDRNOTAVAIL);
	assert_int_equal(error.olen, 0);
	assert_int_equal(error.err_data_size, FI_NAME_MAX);
	assert_ptr_equal(error.err_data, addr);
	return error;
}

/* The data is there all the same. The address can be inserted, and leads to the sender. */
static void unknown_sender(void **state)
{
	struct fi_cq_err_entry error;
	uint8_t addr[FI_NAME_MAX];
	struct world w;
	fi_addr_t from;

	open_unknown(&w, FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR | FI_DIRECTED_RECV);
	for (unsigned int i = 0; i < LENGTHS; i++) {
		if (w.me == 0) {
			world_fill(buf, lengths[i], i);
			world_send(&w, buf, lengths[i], i);
			continue;
		}
		memset(buf, 0, lengths[i]);
		CHECK(fi_trecv(w.ep, buf, ROOM, NULL, FI_ADDR_UNSPEC, i, 0, &error));
		error = next_unknown(&w, addr);
		assert_ptr_equal(error.op_context, &error);
		assert_int_equal(error.len, lengths[i]);
		assert_int_equal(error.tag, i);
		assert_int_equal(error.flags & (FI_RECV | FI_TAGGED), FI_RECV | FI_TAGGED);
		world_compare(buf, lengths[i], i);
	}
	if (w.me == 1) {
		assert_int_equal(fi_av_insert(w.av, addr, 1, &w.peer, 0, NULL), 1);
		world_send(&w, "reply", 6, 77);
		CHECK(fi_trecv(w.ep, buf, ROOM, NULL, w.peer, 78, 0, NULL));
		world_next(&w, &from);
		assert_int_equal(from, w.peer);
	} else {
		world_recv(&w, buf, ROOM, 77);
		assert_string_equal((char *)buf, "reply");
		world_send(&w, buf, 1, 78);
	}
	world_close(&w);
}

/* Without FI_SOURCE_ERR the message of an unknown sender is an ordinary success. */
static void not_requested(void **state)
{
	fi_addr_t from = 0;
	struct world w;

	open_unknown(&w, FI_TAGGED | FI_SOURCE);
	if (w.me == 0) {
		world_send(&w, buf, 8, 1);
	} else {
		CHECK(fi_trecv(w.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
		world_next(&w, &from);
		assert_int_equal(from, FI_ADDR_NOTAVAIL);
	}
	world_close(&w);
}

/*
 * The application passes no buffer, and gets the queue's, or one that is too short. Errors of
 * another kind have no address.
 */
static void buffers(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	uint8_t addr[FI_NAME_MAX], shorter[FI_NAME_MAX] = {0};
	struct world w;

	open_unknown(&w, FI_MSG | FI_SOURCE | FI_SOURCE_ERR);
	if (w.me == 0) {
		for (int i = 0; i < 5; i++)
			CHECK(fi_inject(w.ep, buf, 8, w.peer));
		world_close(&w);
		return;
	}
	CHECK(fi_recv(w.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL));
	next_unknown(&w, addr);
	CHECK(fi_recv(w.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL));
	error = world_next_error(&w);
	assert_int_equal(error.err, FI_EADDRNOTAVAIL);
	assert_int_equal(error.err_data_size, FI_NAME_MAX);
	assert_memory_equal(error.err_data, addr, FI_NAME_MAX);
	CHECK(fi_recv(w.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL));
	error = (struct fi_cq_err_entry){.err_data = shorter, .err_data_size = 10};
	while (fi_cq_readerr(w.cq, &error, 0) == -FI_EAGAIN)
		fi_cq_read(w.cq, NULL, 0);
	assert_int_equal(error.err_data_size, 10);
	assert_memory_equal(shorter, addr, 10);
	assert_int_equal(shorter[10], 0);
	/* A message that is too long is first of all that. */
	CHECK(fi_recv(w.ep, buf, 4, NULL, FI_ADDR_UNSPEC, NULL));
	error = world_next_error(&w);
	assert_int_equal(error.err, FI_ETRUNC);
	assert_int_equal(error.err_data_size, 0);
	/* An error that is never read is freed with its queue. */
	CHECK(fi_recv(w.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL));
	while (fi_cq_read(w.cq, &entry, 1) == -FI_EAGAIN)
		;
	world_close(&w);
}

/* The address of a sender that is connected already, when it learns of the first such endpoint. */
static void connected_before(void **state)
{
	uint8_t mine[FI_NAME_MAX], other[FI_NAME_MAX];
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	size_t length = sizeof(mine);
	struct fi_info *hints, *info;
	struct fi_av_attr av_attr = {0};
	struct world w, second;
	fi_addr_t to;

	open_unknown(&w, FI_TAGGED | FI_SOURCE);
	if (w.me == 0) {
		world_send(&w, buf, 8, 1);
		world_take(other, sizeof(other));
		assert_int_equal(fi_av_insert(w.av, other, 1, &to, 0, NULL), 1);
		CHECK(fi_tsend(w.ep, "abcd", 5, NULL, to, 2, NULL));
		world_next(&w, NULL);
		world_close(&w);
		return;
	}
	CHECK(fi_trecv(w.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	world_next(&w, NULL);
	second = w;
	hints = world_hints(&(struct world_params){.caps = FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR});
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	CHECK(fi_av_open(w.domain, &av_attr, &second.av, NULL));
	CHECK(fi_cq_open(w.domain, &cq_attr, &second.cq, NULL));
	CHECK(fi_endpoint(w.domain, info, &second.ep, NULL));
	CHECK(fi_ep_bind(second.ep, &second.av->fid, 0));
	CHECK(fi_ep_bind(second.ep, &second.cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(fi_enable(second.ep));
	CHECK(fi_getname(&second.ep->fid, mine, &length));
	world_give(mine, sizeof(mine));
	CHECK(fi_trecv(second.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 2, 0, NULL));
	next_unknown(&second, other);
	assert_string_equal((char *)buf, "abcd");
	CHECK(fi_close(&second.ep->fid));
	CHECK(fi_close(&second.cq->fid));
	CHECK(fi_close(&second.av->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	world_close(&w);
}

/* A write with data has a source, too. */
static void written_by_unknown(void **state)
{
	struct fi_cq_err_entry error;
	uint8_t addr[FI_NAME_MAX];
	struct world_region r;
	struct world w;

	open_unknown(&w, FI_RMA | FI_MSG | FI_SOURCE | FI_SOURCE_ERR);
	world_region_open(&w, &r, 4096, FI_REMOTE_WRITE);
	if (w.me == 0) {
		CHECK(fi_send(w.ep, buf, 8, NULL, w.peer, NULL));
		world_next(&w, NULL);
		world_barrier_progress(&w);
		CHECK(fi_writedata(w.ep, r.local, 100, NULL, 7, w.peer, 0, r.key, NULL));
		world_next(&w, NULL);
	} else {
		CHECK(fi_recv(w.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL));
		next_unknown(&w, addr);
		world_barrier_progress(&w);
		error = next_unknown(&w, addr);
		assert_int_equal(error.data, 7);
		assert_int_equal(error.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		assert_int_equal(fi_av_insert(w.av, addr, 1, &w.peer, 0, NULL), 1);
	}
	world_region_close(&w, &r);
	world_close(&w);
}

/* The address of the sender is a text where addresses are texts. */
static void as_text(void **state)
{
	const struct world_params params = {.caps = FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR,
					    .text = true};
	struct fi_cq_err_entry error = {.err_data_size = 0};
	struct fi_cq_tagged_entry entry;
	char own[200], other[200];
	size_t size = sizeof(own);
	struct world w;
	ssize_t n;

	world_open_at(&w, &params, NULL, NULL, 0);
	CHECK(fi_getname(&w.ep->fid, own, &size));
	world_give(own, sizeof(own));
	world_take(other, sizeof(other));
	if (w.me == 0) {
		assert_int_equal(fi_av_insert(w.av, other, 1, &w.peer, 0, NULL), 1);
		world_send(&w, "hello", 6, 1);
	} else {
		CHECK(fi_trecv(w.ep, buf, ROOM, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
		do {
			n = fi_cq_read(w.cq, &entry, 1);
		} while (n == -FI_EAGAIN);
		assert_int_equal(n, -FI_EAVAIL);
		assert_int_equal(fi_cq_readerr(w.cq, &error, 0), 1);
		assert_int_equal(error.err, FI_EADDRNOTAVAIL);
		assert_int_equal(error.err_data_size, strlen(other) + 1);
		assert_int_equal(fi_av_insert(w.av, error.err_data, 1, &w.peer, 0, NULL), 1);
		size = sizeof(own);
		CHECK(fi_av_lookup(w.av, w.peer, own, &size));
		assert_memory_equal(error.err_data, own, size);
	}
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_sender),
		cmocka_unit_test(not_requested),
		cmocka_unit_test(buffers),
		cmocka_unit_test(connected_before),
		cmocka_unit_test(written_by_unknown),
		cmocka_unit_test(as_text),
	};

	world_begin();
	return world_end(cmocka_run_group_tests_name("provider_source", tests, NULL, NULL));
}
