/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages without a tag, data that goes along, several endpoints in a process. */

#include "world.h"

#include <stdlib.h>
#include <unistd.h>

#define DATA 0x0123456789abcdefull

/* Look until there is such a message. */
static struct fi_cq_tagged_entry wait_peek(struct world *w, uint64_t tag)
{
	struct fi_msg_tagged msg = {.addr = FI_ADDR_UNSPEC, .tag = tag};
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	ssize_t n;

	for (;;) {
		CHECK(fi_trecvmsg(w->ep, &msg, FI_PEEK | FI_COMPLETION));
		n = fi_cq_read(w->cq, &entry, 1);
		if (n == 1)
			return entry;
		assert_int_equal(n, -FI_EAVAIL);
		assert_int_equal(fi_cq_readerr(w->cq, &error, 0), 1);
		assert_int_equal(error.err, FI_ENOMSG);
	}
}

/* Data goes along, tagged or not, whatever the length, and a look at the message shows it. */
static void immediate_data(void **state)
{
	static const size_t sizes[] = {0, 8, 5000, 300000};
	uint8_t *buf = calloc(1, 300000);
	struct fi_cq_tagged_entry entry;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_MSG | FI_TAGGED});
	assert_int_equal(w.info->domain_attr->cq_data_size, 8);
	for (unsigned int i = 0; i < 4; i++) {
		if (w.me == 0) {
			CHECK(fi_tsenddata(w.ep, buf, sizes[i], NULL, DATA + i, w.peer, 3, NULL));
			CHECK(fi_senddata(w.ep, buf, sizes[i], NULL, DATA - i, w.peer, NULL));
			world_next(&w, NULL);
			world_next(&w, NULL);
			continue;
		}
		entry = wait_peek(&w, 3);
		assert_true(entry.flags & FI_REMOTE_CQ_DATA);
		assert_int_equal(entry.data, DATA + i);
		assert_int_equal(entry.len, sizes[i]);
		entry = world_recv(&w, buf, 300000, 3);
		assert_true(entry.flags & FI_REMOTE_CQ_DATA);
		assert_int_equal(entry.data, DATA + i);
		assert_int_equal(entry.len, sizes[i]);
		CHECK(fi_recv(w.ep, buf, 300000, NULL, FI_ADDR_UNSPEC, NULL));
		entry = world_next(&w, NULL);
		assert_int_equal(entry.flags & (FI_MSG | FI_TAGGED | FI_REMOTE_CQ_DATA),
				 FI_MSG | FI_REMOTE_CQ_DATA);
		assert_int_equal(entry.data, DATA - i);
		assert_int_equal(entry.len, sizes[i]);
	}
	world_close(&w);
	free(buf);
}

/* Without data there is none, and the two kinds don't take each other's messages. */
static void kinds_apart(void **state)
{
	uint64_t value = 1, tagged = 0, plain = 0;
	struct fi_cq_tagged_entry entry;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_MSG | FI_TAGGED});
	if (w.me == 0) {
		CHECK(fi_send(w.ep, &value, sizeof(value), NULL, w.peer, NULL));
		world_next(&w, NULL);
		value = 2;
		world_send(&w, &value, sizeof(value), 0);
	} else {
		CHECK(fi_trecv(w.ep, &tagged, sizeof(tagged), NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX,
			       &tagged));
		entry = world_next(&w, NULL);
		assert_ptr_equal(entry.op_context, &tagged);
		assert_false(entry.flags & FI_REMOTE_CQ_DATA);
		assert_int_equal(tagged, 2);
		CHECK(fi_recv(w.ep, &plain, sizeof(plain), NULL, FI_ADDR_UNSPEC, &plain));
		entry = world_next(&w, NULL);
		assert_ptr_equal(entry.op_context, &plain);
		assert_false(entry.flags & FI_REMOTE_CQ_DATA);
		assert_int_equal(plain, 1);
	}
	world_close(&w);
}

/* One buffer for many messages: each behind the one before, until too little is left. */
static void multi_recv(void **state)
{
	enum { ROOM = 1000, LEAST = 100, EACH = 95 };
	uint8_t buf[2][ROOM], out[EACH];
	struct iovec iov[2] = {{buf[0], ROOM}, {buf[1], ROOM}};
	struct fi_msg msg = {.iov_count = 1, .addr = FI_ADDR_UNSPEC};
	struct fi_cq_tagged_entry entry;
	size_t least = LEAST;
	struct world w;
	int n = 0;

	world_open(&w, &(struct world_params){.caps = FI_MSG | FI_MULTI_RECV});
	if (w.me == 0) {
		for (unsigned int i = 0; i < 20; i++) {
			world_fill(out, EACH, i);
			CHECK(fi_send(w.ep, out, EACH, NULL, w.peer, NULL));
			world_next(&w, NULL);
		}
		world_close(&w);
		return;
	}
	CHECK(fi_setopt(&w.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
	for (int i = 0; i < 2; i++) {
		msg.msg_iov = &iov[i];
		msg.context = buf[i];
		CHECK(fi_recvmsg(w.ep, &msg, FI_MULTI_RECV));
	}
	for (int i = 0; i < 2; i++) {
		for (size_t at = 0; at + LEAST <= ROOM; at += EACH) {
			entry = world_next(&w, NULL);
			assert_ptr_equal(entry.op_context, buf[i]);
			assert_ptr_equal(entry.buf, buf[i] + at);
			assert_int_equal(entry.len, EACH);
			world_compare(entry.buf, EACH, (unsigned int)n++);
			assert_int_equal(!!(entry.flags & FI_MULTI_RECV), at + EACH + LEAST > ROOM);
		}
	}
	assert_int_equal(n, 20);
	world_close(&w);
}

/* A buffer for many that is cancelled comes back. */
static void multi_recv_cancelled(void **state)
{
	struct fi_cq_err_entry error;
	uint8_t buf[1000];
	struct iovec iov = {buf, sizeof(buf)};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = buf};
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_MSG | FI_MULTI_RECV});
	if (w.me == 1) {
		CHECK(fi_recvmsg(w.ep, &msg, FI_MULTI_RECV));
		CHECK(fi_cancel(&w.ep->fid, buf));
		error = world_next_error(&w);
		assert_int_equal(error.err, FI_ECANCELED);
		assert_true(error.flags & FI_MULTI_RECV);
	}
	world_close(&w);
}

/* The buffer is free when the call returns; nothing is reported. */
static void injecting(void **state)
{
	enum { COUNT = 200 };
	uint8_t buf[4096];
	struct fi_cq_tagged_entry entry;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_MSG | FI_TAGGED});
	assert_int_equal(w.info->tx_attr->inject_size, sizeof(buf));
	for (unsigned int i = 0; i < COUNT; i++) {
		size_t size = i * 37 % sizeof(buf);

		if (w.me == 1) {
			entry = world_recv(&w, buf, sizeof(buf), i);
			assert_int_equal(entry.len, size);
			world_compare(buf, size, i);
			assert_int_equal(entry.data, i % 2 ? i : 0);
			continue;
		}
		world_fill(buf, size, i);
		if (i % 2)
			CHECK(fi_tinjectdata(w.ep, buf, size, i, w.peer, i));
		else
			CHECK(fi_tinject(w.ep, buf, size, w.peer, i));
		memset(buf, 0xff, sizeof(buf));
		assert_int_equal(fi_cq_read(w.cq, &entry, 1), -FI_EAGAIN);
	}
	if (w.me == 0) {
		CHECK(fi_inject(w.ep, "abc", 4, w.peer));
		assert_int_equal(fi_inject(w.ep, buf, 4097, w.peer), -FI_EINVAL);
	} else {
		CHECK(fi_recv(w.ep, buf, sizeof(buf), NULL, w.peer, NULL));
		assert_int_equal(world_next(&w, NULL).len, 4);
		assert_string_equal((char *)buf, "abc");
	}
	world_close(&w);
}

/* The calls with several buffers, with a struct, and without a completion: each without a tag. */
static void forms_without_a_tag(void **state)
{
	static const struct {
		const char *text;
		size_t length;
		uint64_t data;
	} sent[] = {
		{"abcdefgh", 8, 0},
		{"abcdefgh", 8, DATA},
		{"xyz", 4, DATA + 1},
		{"", 0, 0},
	};
	char buf[64], mark;
	struct iovec iov[2] = {{buf, 3}, {buf + 3, sizeof(buf) - 3}};
	struct fi_msg msg = {.msg_iov = iov, .iov_count = 2, .context = &mark};
	struct fi_cq_tagged_entry entry;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_MSG});
	if (w.me == 0) {
		memcpy(buf, "abcdefgh", 8);
		iov[1].iov_len = 5;
		msg.addr = w.peer;
		msg.data = DATA;
		CHECK(fi_sendv(w.ep, iov, NULL, 2, w.peer, &mark));
		assert_ptr_equal(world_next(&w, NULL).op_context, &mark);
		CHECK(fi_sendmsg(w.ep, &msg, FI_REMOTE_CQ_DATA | FI_COMPLETION));
		assert_ptr_equal(world_next(&w, NULL).op_context, &mark);
		CHECK(fi_injectdata(w.ep, "xyz", 4, DATA + 1, w.peer));
		CHECK(fi_sendv(w.ep, NULL, NULL, 0, w.peer, &mark));
		assert_ptr_equal(world_next(&w, NULL).op_context, &mark);
		assert_int_equal(fi_sendv(w.ep, iov, NULL, 1000, w.peer, &mark), -FI_EINVAL);
		assert_int_equal(fi_sendmsg(w.ep, &msg, FI_MULTI_RECV), -FI_EBADFLAGS);
		assert_int_equal(fi_tsend(w.ep, buf, 8, NULL, w.peer, 1, NULL), -FI_EOPNOTSUPP);
		assert_int_equal(fi_cq_read(w.cq, &entry, 1), -FI_EAGAIN);
		world_close(&w);
		return;
	}
	for (unsigned int i = 0; i < 4; i++) {
		memset(buf, 0, sizeof(buf));
		CHECK(fi_recvv(w.ep, iov, NULL, 2, FI_ADDR_UNSPEC, &mark));
		entry = world_next(&w, NULL);
		assert_ptr_equal(entry.op_context, &mark);
		assert_int_equal(entry.len, sent[i].length);
		assert_string_equal(buf, sent[i].text);
		assert_int_equal(!!(entry.flags & FI_REMOTE_CQ_DATA), sent[i].data != 0);
		assert_int_equal(entry.data, sent[i].data);
	}
	world_close(&w);
}

/* Sent and not waited for, a short message is there while its sender makes no more calls. */
static void leaves_now(void **state)
{
	uint64_t value = 6;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED});
	/* Connected first. */
	if (w.me == 0)
		world_send(&w, &value, sizeof(value), 1);
	else
		world_recv(&w, &value, sizeof(value), 1);
	world_barrier_progress(&w);
	if (w.me == 0) {
		CHECK(fi_tsend(w.ep, &value, sizeof(value), NULL, w.peer, 2, NULL));
		world_barrier();
		world_next(&w, NULL);
	} else {
		world_recv(&w, &value, sizeof(value), 2);
		world_barrier();
	}
	world_close(&w);
}

/* Complete when the peer has it, though no receive has taken it; and its buffer is not needed. */
static void delivered(void **state)
{
	static const uint64_t levels[] = {FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE};
	uint64_t value = 6;
	struct world w;

	for (int i = 0; i < 2; i++) {
		world_open(&w, &(struct world_params){.caps = FI_TAGGED, .tx_flags = levels[i]});
		assert_true(w.info->tx_attr->op_flags & levels[i]);
		if (w.me == 0)
			world_send(&w, &value, sizeof(value), 1);
		world_barrier_progress(&w);
		if (w.me == 1)
			world_recv(&w, &value, sizeof(value), 1);
		world_close(&w);
	}
}

/* ------------------------------------------------------------------ several endpoints */

struct second {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t first_peer, second_peer;
};

/* In a domain of its own, as an MPI's one-sided part has it. */
static void open_second(struct world *w, struct second *s)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {0};
	uint8_t mine[2][64], other[2][64];
	size_t length = 64;

	CHECK(fi_domain(w->fabric, w->info, &s->domain, NULL));
	CHECK(fi_av_open(s->domain, &av_attr, &s->av, NULL));
	CHECK(fi_cq_open(s->domain, &cq_attr, &s->cq, NULL));
	CHECK(fi_endpoint(s->domain, w->info, &s->ep, NULL));
	CHECK(fi_ep_bind(s->ep, &s->av->fid, 0));
	CHECK(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(fi_enable(s->ep));
	CHECK(fi_getname(&w->ep->fid, mine[0], &length));
	CHECK(fi_getname(&s->ep->fid, mine[1], &length));
	assert_memory_not_equal(mine[0], mine[1], 64);
	world_give(mine, sizeof(mine));
	world_take(other, sizeof(other));
	assert_int_equal(fi_av_insert(s->av, other[0], 1, &s->first_peer, 0, NULL), 1);
	assert_int_equal(fi_av_insert(s->av, other[1], 1, &s->second_peer, 0, NULL), 1);
}

static void close_second(struct second *s)
{
	CHECK(fi_close(&s->ep->fid));
	CHECK(fi_close(&s->cq->fid));
	CHECK(fi_close(&s->av->fid));
	CHECK(fi_close(&s->domain->fid));
}

/* Each gets what was sent to it, and knows from which endpoint; directed receives do, too. */
static void several_endpoints(void **state)
{
	uint64_t out[2] = {10, 11}, in[2] = {0};
	struct fi_cq_tagged_entry entry;
	fi_addr_t source;
	struct second s;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV});
	open_second(&w, &s);
	if (w.me == 0) {
		/* From the second to the second, then from the first. */
		CHECK(fi_tsend(s.ep, &out[1], 8, NULL, s.second_peer, 1, NULL));
		CHECK(fi_tsend(w.ep, &out[0], 8, NULL, w.peer, 1, NULL));
		world_next(&w, NULL);
		while (fi_cq_read(s.cq, &entry, 1) == -FI_EAGAIN)
			;
	} else {
		CHECK(fi_trecv(w.ep, &in[0], 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
		world_next(&w, &source);
		assert_int_equal(in[0], 10);
		assert_int_equal(source, w.peer);
		/* The message for the second is not from the first. */
		CHECK(fi_trecv(s.ep, &in[0], 8, NULL, s.first_peer, 1, 0, &in[0]));
		CHECK(fi_trecv(s.ep, &in[1], 8, NULL, s.second_peer, 1, 0, &in[1]));
		while (fi_cq_readfrom(s.cq, &entry, 1, &source) == -FI_EAGAIN)
			;
		assert_ptr_equal(entry.op_context, &in[1]);
		assert_int_equal(in[1], 11);
		assert_int_equal(source, s.second_peer);
	}
	world_barrier_progress(&w);
	close_second(&s);
	world_close(&w);
}

/* An address that is damaged, unknown or removed. */
static void bad_addresses(void **state)
{
	uint8_t bytes[64];
	size_t length = sizeof(bytes);
	struct world w;
	fi_addr_t a;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED});
	CHECK(fi_getname(&w.ep->fid, bytes, &length));
	for (int i = 0; i < 40; i++) {
		bytes[i] ^= 0x5a;
		if (i != 3 && (i < 6 || i > 7)) /* all but numbers, which may be any */
			assert_int_equal(fi_av_insert(w.av, bytes, 1, &a, 0, NULL), 0);
		bytes[i] ^= 0x5a;
	}
	assert_int_equal(fi_tsend(w.ep, bytes, 1, NULL, 1000, 1, NULL), -FI_EINVAL);
	length = 10;
	assert_int_equal(fi_getname(&w.ep->fid, bytes, &length), -FI_ETOOSMALL);
	assert_int_equal(length, 64);
	world_barrier();
	/* Removed and inserted again by both, they meet again. */
	length = sizeof(bytes);
	CHECK(fi_av_lookup(w.av, w.peer, bytes, &length));
	world_barrier_progress(&w);
	CHECK(fi_av_remove(w.av, &w.peer, 1, 0));
	assert_int_equal(fi_tsend(w.ep, bytes, 1, NULL, w.peer, 1, NULL), -FI_EINVAL);
	world_barrier_progress(&w);
	assert_int_equal(fi_av_insert(w.av, bytes, 1, &w.peer, 0, NULL), 1);
	if (w.me == 0)
		world_send(&w, "x", 1, 9);
	else
		world_recv(&w, bytes, 1, 9);
	world_close(&w);
}

#define LAST_MANY 3000u
#define LAST_BYTES 500u
#define LAST_SLOW 900u

/*
 * An MPI removes the addresses of its peers and closes its endpoint right after its last sends. The
 * peer, which is late, receives them all. It is slow as well: credit for the last messages is there
 * after more than 10 s.
 */
static void last_messages_of_a_removed_peer(void **state)
{
	uint8_t bytes[LAST_BYTES] = {0};
	struct world w;
	uint32_t i;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED});
	if (w.me == 0)
		world_send(&w, bytes, sizeof(bytes), 9);
	else
		world_recv(&w, bytes, sizeof(bytes), 9);
	world_barrier_progress(&w);
	if (w.me == 0) {
		for (i = 0; i < LAST_MANY; i++) {
			memcpy(bytes, &i, sizeof(i));
			CHECK((int)fi_tinject(w.ep, bytes, sizeof(bytes), w.peer, 1));
		}
		CHECK(fi_av_remove(w.av, &w.peer, 1, 0));
		world_barrier(); /* the peer has made no progress so far */
		world_close_ep(&w);
		world_barrier();
	} else {
		world_barrier();
		for (i = 0; i < LAST_MANY; i++) {
			uint32_t got;

			if (i < LAST_SLOW)
				usleep(12500);

			world_recv(&w, bytes, sizeof(bytes), 1);
			memcpy(&got, bytes, sizeof(got));
			assert_int_equal(got, i);
		}
		world_barrier();
	}
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(immediate_data),
		cmocka_unit_test(kinds_apart),
		cmocka_unit_test(multi_recv),
		cmocka_unit_test(multi_recv_cancelled),
		cmocka_unit_test(injecting),
		cmocka_unit_test(leaves_now),
		cmocka_unit_test(delivered),
		cmocka_unit_test(several_endpoints),
		cmocka_unit_test(bad_addresses),
		cmocka_unit_test(forms_without_a_tag),
		cmocka_unit_test(last_messages_of_a_removed_peer),
	};

	world_begin();
	return world_end(cmocka_run_group_tests_name("provider_messages", tests, NULL, NULL));
}
