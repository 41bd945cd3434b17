/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared contexts: several endpoints send by one, and receive by one. */

#include "world.h"

#include <stdlib.h>

#define ENDPOINTS 3
#define CAPS (FI_TAGGED | FI_MSG | FI_SOURCE | FI_DIRECTED_RECV | FI_MULTI_RECV)

/* Endpoints with shared contexts, in the domain of a world, whose own endpoint shares nothing. */
struct shared {
	struct fi_info *info;
	struct fid_stx *stx;
	struct fid_ep *srx;
	struct fid_ep *ep[ENDPOINTS];
	fi_addr_t peer[ENDPOINTS]; /* of the other side */
};

static struct fid_ep *open_ep(struct world *w, struct shared *s, struct fid_cq *cq)
{
	struct fid_ep *ep;

	CHECK(fi_endpoint(w->domain, s->info, &ep, NULL));
	CHECK(fi_ep_bind(ep, &w->av->fid, 0));
	CHECK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(fi_ep_bind(ep, &s->stx->fid, 0));
	CHECK(fi_ep_bind(ep, &s->srx->fid, 0));
	return ep;
}

static void shared_open(struct world *w, struct shared *s)
{
	struct fi_info *hints = world_hints(&(struct world_params){.caps = CAPS});
	uint8_t mine[FI_NAME_MAX], other[FI_NAME_MAX];
	size_t length = sizeof(mine);

	world_open(w, &(struct world_params){.caps = CAPS});
	hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &s->info));
	fi_freeinfo(hints);
	CHECK(fi_stx_context(w->domain, s->info->tx_attr, &s->stx, NULL));
	CHECK(fi_srx_context(w->domain, s->info->rx_attr, &s->srx, NULL));
	for (int i = 0; i < ENDPOINTS; i++) {
		s->ep[i] = open_ep(w, s, w->cq);
		CHECK(fi_enable(s->ep[i]));
		CHECK(fi_getname(&s->ep[i]->fid, mine, &length));
		world_give(mine, sizeof(mine));
		world_take(other, sizeof(other));
		assert_int_equal(fi_av_insert(w->av, other, 1, &s->peer[i], 0, NULL), 1);
	}
	world_barrier();
}

static void shared_close(struct world *w, struct shared *s)
{
	world_barrier_progress(w);
	for (int i = 0; i < ENDPOINTS; i++) {
		assert_int_equal(fi_close(&s->srx->fid), -FI_EBUSY);
		assert_int_equal(fi_close(&s->stx->fid), -FI_EBUSY);
		CHECK(fi_close(&s->ep[i]->fid));
	}
	CHECK(fi_close(&s->srx->fid));
	CHECK(fi_close(&s->stx->fid));
	fi_freeinfo(s->info);
	world_close(w);
}

/*
 * Receives of the context match messages to any endpoint, in the order of their sends. Each message
 * has the endpoint that sent it as its source.
 */
static void any_endpoint(void **state)
{
	uint64_t in = 0, out;
	struct shared s;
	struct world w;
	fi_addr_t from;

	shared_open(&w, &s);
	for (unsigned int i = 0; i < 12; i++) {
		if (w.me == 0) {
			out = i;
			CHECK(fi_send(s.ep[i / 4], &out, 8, NULL, s.peer[i % 3], NULL));
			world_next(&w, NULL);
		} else {
			CHECK(fi_recv(s.srx, &in, 8, NULL, FI_ADDR_UNSPEC, &in));
			assert_ptr_equal(world_next(&w, &from).op_context, &in);
			assert_int_equal(in, i);
			assert_int_equal(from, s.peer[i / 4]);
		}
	}
	world_barrier_progress(&w);
	/* By tag and by sender; the endpoint that shares nothing is another one. */
	if (w.me == 0) {
		out = 100;
		CHECK(fi_tsend(w.ep, &out, 8, NULL, w.peer, 5, NULL));
		world_next(&w, NULL);
		for (unsigned int i = 0; i < 3; i++) {
			out = i;
			CHECK(fi_tsend(s.ep[i], &out, 8, NULL, s.peer[2 - i], 5, NULL));
			world_next(&w, NULL);
		}
	} else {
		for (unsigned int i = 3; i-- > 0;) {
			CHECK(fi_trecv(s.srx, &in, 8, NULL, s.peer[i], 5, 0, &in));
			world_next(&w, &from);
			assert_int_equal(in, i);
			assert_int_equal(from, s.peer[i]);
		}
		CHECK(fi_trecv(w.ep, &in, 8, NULL, w.peer, 5, 0, &in));
		world_next(&w, NULL);
		assert_int_equal(in, 100);
	}
	shared_close(&w, &s);
}

/* Long messages, a buffer for several, a probe, and a receive that is cancelled. */
static void other_receives(void **state)
{
	enum { LENGTH = 300000 };
	struct iovec iov = {.iov_len = LENGTH};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
	struct fi_msg_tagged probe = {.addr = FI_ADDR_UNSPEC, .tag = 9};
	uint8_t *buf = calloc(1, LENGTH);
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	struct shared s;
	struct world w;

	shared_open(&w, &s);
	if (w.me == 0) {
		world_fill(buf, LENGTH, 3);
		CHECK(fi_tsend(s.ep[1], buf, LENGTH, NULL, s.peer[0], 9, NULL));
		world_next(&w, NULL);
		for (unsigned int i = 0; i < 20; i++) {
			CHECK(fi_send(s.ep[i % 3], buf, 100, NULL, s.peer[i % 2], NULL));
			world_next(&w, NULL);
		}
		free(buf);
		shared_close(&w, &s);
		return;
	}
	do {
		CHECK(fi_trecvmsg(s.srx, &probe, FI_PEEK));
		while (fi_cq_read(w.cq, &entry, 1) == -FI_EAGAIN)
			;
	} while (fi_cq_readerr(w.cq, &error, 0) == 1);
	assert_int_equal(entry.len, LENGTH);
	CHECK(fi_trecv(s.srx, buf, LENGTH, NULL, FI_ADDR_UNSPEC, 9, 0, NULL));
	assert_int_equal(world_next(&w, NULL).len, LENGTH);
	world_compare(buf, LENGTH, 3);
	memset(buf, 0, LENGTH);
	iov.iov_base = buf;
	msg.context = buf;
	CHECK(fi_recvmsg(s.srx, &msg, FI_MULTI_RECV));
	for (unsigned int i = 0; i < 20; i++) {
		entry = world_next(&w, NULL);
		assert_ptr_equal(entry.buf, buf + 100 * (size_t)i);
		world_compare(entry.buf, 100, 3);
	}
	CHECK(fi_cancel(&s.srx->fid, buf));
	assert_int_equal(world_next_error(&w).err, FI_ECANCELED);
	shared_close(&w, &s);
	free(buf);
}

/* Receives are the context's, sends the endpoints'; the context has one queue. */
static void limits(void **state)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fid_ep *srx, *ep;
	struct fid_cq *cq;
	struct shared s;
	struct world w;
	uint64_t in;

	shared_open(&w, &s);
	assert_int_equal(fi_recv(s.ep[0], &in, 8, NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPNOTSUPP);
	assert_int_equal(fi_trecv(s.ep[0], &in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL),
			 -FI_EOPNOTSUPP);
	assert_int_equal(fi_send(s.srx, &in, 8, NULL, w.peer, NULL), -FI_EOPNOTSUPP);
	assert_int_equal(fi_write(s.srx, &in, 8, NULL, w.peer, 0, 1, NULL), -FI_EOPNOTSUPP);
	CHECK(fi_cq_open(w.domain, &cq_attr, &cq, NULL));
	ep = open_ep(&w, &s, cq);
	assert_int_equal(fi_enable(ep), -FI_EINVAL);
	CHECK(fi_close(&ep->fid));
	/* Endpoints without the contexts that they have requested; contexts of others. */
	CHECK(fi_endpoint(w.domain, s.info, &ep, NULL));
	CHECK(fi_ep_bind(ep, &w.av->fid, 0));
	CHECK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(fi_ep_bind(ep, &s.stx->fid, 0));
	assert_int_equal(fi_ep_bind(ep, &s.stx->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_enable(ep), -FI_EINVAL);
	/* The first endpoint makes the context usable, and takes its queue along. */
	CHECK(fi_srx_context(w.domain, s.info->rx_attr, &srx, NULL));
	CHECK(fi_enable(srx));
	CHECK(fi_ep_bind(ep, &srx->fid, 0));
	assert_int_equal(fi_recv(srx, &in, 8, NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPBADSTATE);
	CHECK(fi_enable(ep));
	CHECK(fi_recv(srx, &in, 8, NULL, FI_ADDR_UNSPEC, NULL));
	CHECK(fi_close(&ep->fid));
	assert_int_equal(fi_recv(srx, &in, 8, NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPBADSTATE);
	CHECK(fi_close(&cq->fid));
	CHECK(fi_close(&srx->fid));
	CHECK(fi_endpoint(w.domain, w.info, &ep, NULL));
	assert_int_equal(fi_ep_bind(ep, &s.srx->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &s.stx->fid, 0), -FI_EINVAL);
	CHECK(fi_close(&ep->fid));
	shared_close(&w, &s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_endpoint),
		cmocka_unit_test(other_receives),
		cmocka_unit_test(limits),
	};

	world_begin();
	return world_end(cmocka_run_group_tests_name("provider_shared", tests, NULL, NULL));
}
