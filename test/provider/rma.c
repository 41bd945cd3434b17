/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory: reads and writes of every size, and what their owner refuses. */

#include "world.h"

#include <stdlib.h>

#define ROOM (1 << 20)

/* Written, complete at the peer, read back. Both at once, so both have progress made. */
static void every_size(void **state)
{
	static const size_t sizes[] = {1, 8, 1000, 5000, 70000, ROOM - 64};
	struct world_region r;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_RMA, .tx_flags = FI_DELIVERY_COMPLETE});
	world_region_open(&w, &r, ROOM, FI_REMOTE_READ | FI_REMOTE_WRITE);
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		world_fill(r.local, sizes[i], i + (unsigned int)w.me);
		CHECK(fi_write(w.ep, r.local, sizes[i], NULL, w.peer, 64, r.key, &i));
		assert_int_equal(world_next(&w, NULL).flags & (FI_RMA | FI_WRITE | FI_READ),
				 FI_RMA | FI_WRITE);
		world_barrier_progress(&w);
		world_compare(r.memory + 64, sizes[i], i + (unsigned int)w.other);
		memset(r.local, 0, sizes[i]);
		CHECK(fi_read(w.ep, r.local, sizes[i], NULL, w.peer, 64, r.key, &i));
		assert_int_equal(world_next(&w, NULL).flags & (FI_RMA | FI_WRITE | FI_READ),
				 FI_RMA | FI_READ);
		world_compare(r.local, sizes[i], i + (unsigned int)w.me);
		world_barrier_progress(&w);
	}
	world_region_close(&w, &r);
	world_close(&w);
}

/* In pieces, injected, behind a fence. */
static void other_forms(void **state)
{
	struct fi_rma_iov at = {.addr = 0, .len = 100};
	struct fi_msg_rma msg = {.iov_count = 2, .rma_iov = &at, .rma_iov_count = 1};
	struct iovec iov[2];
	struct world_region r;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_RMA});
	world_region_open(&w, &r, ROOM, FI_REMOTE_READ | FI_REMOTE_WRITE);
	world_fill(r.local, 100, 5);
	iov[0] = (struct iovec){r.local, 30};
	iov[1] = (struct iovec){r.local + 30, 70};
	msg.msg_iov = iov;
	msg.addr = w.peer;
	at.key = r.key;
	CHECK(fi_writemsg(w.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
	world_next(&w, NULL);
	CHECK(fi_inject_write(w.ep, "abcd", 4, w.peer, 200, r.key));
	/* Behind the fence the injected bytes are there. */
	msg.iov_count = 1;
	iov[0] = (struct iovec){r.local + 200, 4};
	at.addr = 200;
	at.len = 4;
	CHECK(fi_readmsg(w.ep, &msg, FI_FENCE | FI_COMPLETION));
	world_next(&w, NULL);
	assert_memory_equal(r.local + 200, "abcd", 4);
	world_barrier_progress(&w);
	world_compare(r.memory, 100, 5);
	assert_int_equal(fi_readmsg(w.ep, &msg, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	msg.rma_iov_count = 2;
	assert_int_equal(fi_writemsg(w.ep, &msg, 0), -FI_EINVAL);
	world_region_close(&w, &r);
	world_close(&w);
}

/* Two buffers are written and read as one range; no buffer is a range of no bytes. */
static void vectors(void **state)
{
	struct world_region r;
	struct iovec iov[2];
	struct world w;
	char mark;

	world_open(&w, &(struct world_params){.caps = FI_RMA, .tx_flags = FI_DELIVERY_COMPLETE});
	world_region_open(&w, &r, ROOM, FI_REMOTE_READ | FI_REMOTE_WRITE);
	world_fill(r.local, 100, 7);
	iov[0] = (struct iovec){r.local, 30};
	iov[1] = (struct iovec){r.local + 30, 70};
	CHECK(fi_writev(w.ep, iov, NULL, 2, w.peer, 300, r.key, &mark));
	assert_ptr_equal(world_next(&w, NULL).op_context, &mark);
	CHECK(fi_writev(w.ep, NULL, NULL, 0, w.peer, 300, r.key, &mark));
	assert_int_equal(world_next(&w, NULL).flags & (FI_WRITE | FI_READ), FI_WRITE);
	world_barrier_progress(&w);
	world_compare(r.memory + 300, 100, 7);
	iov[0] = (struct iovec){r.local + 1000, 70};
	iov[1] = (struct iovec){r.local + 1070, 30};
	CHECK(fi_readv(w.ep, iov, NULL, 2, w.peer, 300, r.key, &mark));
	assert_ptr_equal(world_next(&w, NULL).op_context, &mark);
	world_compare(r.local + 1000, 100, 7);
	CHECK(fi_readv(w.ep, NULL, NULL, 0, w.peer, 300, r.key, &mark));
	assert_int_equal(world_next(&w, NULL).flags & (FI_WRITE | FI_READ), FI_READ);
	assert_int_equal(fi_writev(w.ep, iov, NULL, 1000, w.peer, 0, r.key, NULL), -FI_EINVAL);
	world_region_close(&w, &r);
	world_close(&w);
}

/*
 * Three operations at the same place, none of which waits for another: a long write, a short one
 * into it, and a read of both. On an endpoint that requests these orders they take effect one after
 * the other. Without them the read, which needs nothing of the peer over shared memory, comes
 * before the writes.
 */
static void in_order(void **state)
{
	enum { LENGTH = ROOM - 64, AT = ROOM / 2 };
	static uint8_t back[LENGTH];
	struct world_region r;
	struct world w;
	uint8_t *shorter;

	world_open(&w, &(struct world_params){.caps = FI_RMA,
					      .order = FI_ORDER_RMA_WAW | FI_ORDER_RMA_RAW,
					      .tx_flags = FI_DELIVERY_COMPLETE});
	world_region_open(&w, &r, ROOM, FI_REMOTE_READ | FI_REMOTE_WRITE);
	shorter = r.local + LENGTH;
	for (unsigned int i = 0; i < 20; i++) {
		memset(r.local, (int)i + 1, LENGTH);
		memset(shorter, (int)i + 101, 8);
		memset(back, 0, LENGTH);
		CHECK(fi_write(w.ep, r.local, LENGTH, NULL, w.peer, 0, r.key, NULL));
		CHECK(fi_write(w.ep, shorter, 8, NULL, w.peer, AT, r.key, NULL));
		CHECK(fi_read(w.ep, back, LENGTH, NULL, w.peer, 0, r.key, NULL));
		for (int n = 0; n < 3; n++)
			world_next(&w, NULL);
		memcpy(r.local + AT, shorter, 8);
		assert_memory_equal(back, r.local, LENGTH);
		world_barrier_progress(&w);
	}
	world_region_close(&w, &r);
	world_close(&w);
}

/* The limits that are offered: 16 pieces, 16 KiB injected, the buffer changed at once. */
static void limits(void **state)
{
	struct fi_rma_iov at = {.addr = 0, .len = 16 * 16};
	struct fi_msg_rma msg = {.iov_count = 16, .rma_iov = &at, .rma_iov_count = 1};
	struct iovec iov[17];
	struct world_region r;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_RMA, .inject_size = 16384});
	world_region_open(&w, &r, ROOM, FI_REMOTE_READ | FI_REMOTE_WRITE);
	world_fill(r.local, 16384, 7);
	CHECK(fi_inject_write(w.ep, r.local, 16384, w.peer, 1000, r.key));
	memset(r.local, 0, 16384);
	assert_int_equal(fi_inject_write(w.ep, r.local, 16385, w.peer, 1000, r.key), -FI_EINVAL);
	world_fill(r.local + 20000, 256, 9);
	for (int i = 0; i < 17; i++)
		iov[i] = (struct iovec){r.local + 20000 + 16 * (i % 16), 16};
	msg.msg_iov = iov;
	msg.addr = w.peer;
	at.key = r.key;
	CHECK(fi_writemsg(w.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION | FI_FENCE));
	world_next(&w, NULL);
	msg.iov_count = 17;
	assert_int_equal(fi_writemsg(w.ep, &msg, 0), -FI_EINVAL);
	world_barrier_progress(&w);
	world_compare(r.memory, 256, 9);
	world_compare(r.memory + 1000, 16384, 7);
	world_region_close(&w, &r);
	world_close(&w);
}

/* Memory of a device is refused, not taken for the host's. */
static void device_memory(void **state)
{
	struct iovec iov = {.iov_base = &iov, .iov_len = sizeof(iov)};
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = FI_READ, .iface = FI_HMEM_CUDA};
	struct fid_mr *mr;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_RMA});
	assert_int_equal(fi_mr_regattr(w.domain, &attr, 0, &mr), -FI_EOPNOTSUPP);
	world_close(&w);
}

static void write_fails(struct world *w, struct world_region *r, uint64_t offset, uint64_t key)
{
	struct fi_cq_err_entry error;
	ssize_t rc;

	/* In the call where the key is known already, else by the peer. */
	rc = fi_write(w->ep, r->local, 8, NULL, w->peer, offset, key, &offset);
	if (rc < 0) {
		assert_int_equal(rc, -FI_EACCES);
		return;
	}
	error = world_next_error(w);
	assert_true(error.err == FI_EACCES || error.err == FI_EINVAL);
	assert_ptr_equal(error.op_context, &offset);
}

/* Past the end, without the right, with a key that is none: refused, and nothing is written. */
static void refused(void **state)
{
	struct world_region r;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_RMA, .tx_flags = FI_DELIVERY_COMPLETE});
	world_region_open(&w, &r, ROOM, FI_REMOTE_READ);
	memset(r.local, 0xff, 8);
	write_fails(&w, &r, 0, r.key);
	write_fails(&w, &r, 0, r.key ^ 1);
	write_fails(&w, &r, ROOM, r.key);
	CHECK(fi_read(w.ep, r.local, 8, NULL, w.peer, 0, r.key, NULL));
	world_next(&w, NULL);
	assert_int_equal(r.local[0], 0);
	world_barrier_progress(&w);
	for (int i = 0; i < 8; i++)
		assert_int_equal(r.memory[i], 0);
	world_region_close(&w, &r);
	world_close(&w);
}

/* Data that goes along is reported when the bytes are there, from whom, to the right endpoint. */
static void with_data(void **state)
{
	static const size_t lengths[] = {0, 8, 4000, 70000, ROOM};
	/* Behind what the write before it has written, which the peer compares meanwhile. */
	struct fi_rma_iov at = {.addr = 12};
	struct iovec iov = {.iov_len = 100};
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .rma_iov = &at, .rma_iov_count = 1, .data = 1002};
	struct fi_cq_tagged_entry e;
	struct world_region r;
	struct world w;
	fi_addr_t from;

	world_open(&w, &(struct world_params){.caps = FI_RMA | FI_SOURCE});
	world_region_open(&w, &r, ROOM, FI_REMOTE_WRITE);
	for (unsigned int i = 0; i < 5; i++) {
		if (w.me == 0) {
			world_fill(r.local, lengths[i], i);
			CHECK(fi_writedata(w.ep, r.local, lengths[i], NULL, ~0ull - i, w.peer, 0,
					   r.key, &r));
			e = world_next(&w, NULL);
			assert_ptr_equal(e.op_context, &r);
			assert_int_equal(e.flags & FI_REMOTE_CQ_DATA, 0);
		} else {
			e = world_next(&w, &from);
			assert_int_equal(from, w.peer);
			assert_int_equal(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
			assert_int_equal(e.len, lengths[i]);
			assert_true(e.data == ~0ull - i);
			world_compare(r.memory, lengths[i], i);
		}
		world_barrier_progress(&w);
	}
	if (w.me == 0) {
		CHECK(fi_inject_writedata(w.ep, "abcd", 4, 1001, w.peer, 8, r.key));
		iov.iov_base = r.local;
		msg.addr = w.peer;
		at.key = r.key;
		CHECK(fi_writemsg(w.ep, &msg, FI_REMOTE_CQ_DATA | FI_FENCE | FI_COMPLETION));
		world_next(&w, NULL);
	} else {
		assert_int_equal(world_next(&w, NULL).data, 1001);
		assert_memory_equal(r.memory + 8, "abcd", 4);
		assert_int_equal(world_next(&w, NULL).data, 1002);
	}
	world_region_close(&w, &r);
	world_close(&w);
}

/* ------------------------------------------------------------------ keys of the application */

#define KEY 5
#define ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)

static void put_and_get(struct world *w, fi_addr_t to, uint8_t value)
{
	uint8_t out[100], in[100] = {0};

	memset(out, value, sizeof(out));
	CHECK(fi_write(w->ep, out, sizeof(out), NULL, to, 8, KEY, NULL));
	world_next(w, NULL);
	CHECK(fi_read(w->ep, in, sizeof(in), NULL, to, 8, KEY, NULL));
	world_next(w, NULL);
	assert_memory_equal(in, out, sizeof(in));
}

/* Both sides know the key without a message. After the region's end it may be of another one. */
static void chosen_keys(void **state)
{
	static uint8_t one[ROOM], other[ROOM];
	struct fi_cq_err_entry error;
	struct fid_mr *mr, *again;
	struct world w;

	memset(one, 0, sizeof(one));
	memset(other, 0, sizeof(other));
	world_open(&w, &(struct world_params){
			       .caps = FI_RMA, .app_keys = true, .tx_flags = FI_DELIVERY_COMPLETE});
	CHECK(fi_mr_reg(w.domain, one, ROOM, ACCESS, 0, KEY, 0, &mr, NULL));
	assert_int_equal(fi_mr_key(mr), KEY);
	assert_int_equal(fi_mr_reg(w.domain, other, ROOM, ACCESS, 0, KEY, 0, &again, NULL),
			 -FI_ENOKEY);
	world_barrier();
	put_and_get(&w, w.peer, (uint8_t)(1 + w.me));
	put_and_get(&w, w.peer, (uint8_t)(1 + w.me));
	world_barrier_progress(&w);
	assert_int_equal(one[8], 1 + w.other);
	assert_int_equal(one[7], 0);
	CHECK(fi_close(&mr->fid));
	world_barrier_progress(&w);
	CHECK(fi_write(w.ep, other, 8, NULL, w.peer, 0, KEY, &mr));
	error = world_next_error(&w);
	assert_int_equal(error.err, FI_EACCES);
	assert_ptr_equal(error.op_context, &mr);
	world_barrier_progress(&w);
	CHECK(fi_mr_reg(w.domain, other, ROOM, ACCESS, 0, KEY, 0, &mr, NULL));
	world_barrier_progress(&w);
	put_and_get(&w, w.peer, (uint8_t)(11 + w.me));
	world_barrier_progress(&w);
	assert_int_equal(other[8], 11 + w.other);
	assert_int_equal(one[8], 1 + w.other);
	CHECK(fi_close(&mr->fid));
	world_close(&w);
}

/* A key is of one domain: two domains of a process have different memory by the same key. */
static void keys_of_two_domains(void **state)
{
	static uint8_t memory[2][ROOM];
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	uint8_t mine[FI_NAME_MAX], other[FI_NAME_MAX];
	size_t length = sizeof(mine);
	struct fi_av_attr av_attr = {0};
	struct fid_domain *domain;
	struct fid_mr *mr[2];
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct world w;
	fi_addr_t to;

	memset(memory, 0, sizeof(memory));
	world_open(&w, &(struct world_params){
			       .caps = FI_RMA, .app_keys = true, .tx_flags = FI_DELIVERY_COMPLETE});
	CHECK(fi_domain(w.fabric, w.info, &domain, NULL));
	CHECK(fi_av_open(domain, &av_attr, &av, NULL));
	CHECK(fi_cq_open(domain, &cq_attr, &cq, NULL));
	CHECK(fi_endpoint(domain, w.info, &ep, NULL));
	CHECK(fi_ep_bind(ep, &av->fid, 0));
	CHECK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(fi_enable(ep));
	CHECK(fi_getname(&ep->fid, mine, &length));
	world_give(mine, sizeof(mine));
	world_take(other, sizeof(other));
	assert_int_equal(fi_av_insert(w.av, other, 1, &to, 0, NULL), 1);
	CHECK(fi_mr_reg(w.domain, memory[0], ROOM, ACCESS, 0, KEY, 0, &mr[0], NULL));
	CHECK(fi_mr_reg(domain, memory[1], ROOM, ACCESS, 0, KEY, 0, &mr[1], NULL));
	world_barrier();
	put_and_get(&w, w.peer, 1);
	put_and_get(&w, to, 2);
	put_and_get(&w, w.peer, 3);
	world_barrier_progress(&w);
	assert_int_equal(memory[0][8], 3);
	assert_int_equal(memory[1][8], 2);
	CHECK(fi_close(&mr[1]->fid));
	CHECK(fi_close(&mr[0]->fid));
	CHECK(fi_close(&ep->fid));
	CHECK(fi_close(&cq->fid));
	CHECK(fi_close(&av->fid));
	CHECK(fi_close(&domain->fid));
	world_close(&w);
}

/* Counters of regions, and atomics, by such keys. */
static void chosen_keys_are_counted(void **state)
{
	uint64_t one = 1, memory[2] = {0};
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_RMA | FI_ATOMIC | FI_RMA_EVENT,
					      .app_keys = true});
	CHECK(fi_cntr_open(w.domain, NULL, &cntr, NULL));
	CHECK(fi_mr_reg(w.domain, memory, sizeof(memory), ACCESS, 0, KEY, FI_RMA_EVENT, &mr, NULL));
	CHECK(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE));
	CHECK(fi_mr_enable(mr));
	world_barrier();
	CHECK(fi_write(w.ep, &one, 8, NULL, w.peer, 8, KEY, NULL));
	CHECK(fi_atomic(w.ep, &one, 1, NULL, w.peer, 0, KEY, FI_UINT64, FI_SUM, NULL));
	world_next(&w, NULL);
	world_next(&w, NULL);
	CHECK(fi_cntr_wait(cntr, 2, 20000));
	assert_int_equal(memory[0], 1);
	assert_int_equal(memory[1], 1);
	world_barrier_progress(&w);
	CHECK(fi_close(&mr->fid));
	CHECK(fi_close(&cntr->fid));
	world_close(&w);
}

/* ------------------------------------------------------------------ FI_RMA_EVENT */

/* A region with a counter of its own. */
struct counted {
	struct world_region r;
	struct fid_cntr *cntr;
};

static void counted_open(struct world *w, struct counted *c)
{
	world_region_open(w, &c->r, ROOM, FI_REMOTE_READ | FI_REMOTE_WRITE);
	CHECK(fi_cntr_open(w->domain, NULL, &c->cntr, NULL));
	assert_int_equal(fi_mr_bind(c->r.mr, &c->cntr->fid, FI_REMOTE_READ), -FI_EBADFLAGS);
	CHECK(fi_mr_bind(c->r.mr, &c->cntr->fid, FI_REMOTE_WRITE));
	assert_int_equal(fi_mr_bind(c->r.mr, &c->cntr->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	CHECK(fi_mr_enable(c->r.mr));
	assert_int_equal(fi_close(&c->cntr->fid), -FI_EBUSY);
	world_barrier();
}

static void counted_close(struct world *w, struct counted *c)
{
	world_region_close(w, &c->r);
	CHECK(fi_close(&c->cntr->fid));
}

/* Each write is counted once, when all its bytes are there: at its region and at its endpoint. */
static void counted_writes(void **state)
{
	static const size_t lengths[] = {0, 1, 8, 4000, 70000, ROOM};
	struct counted a, b;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_RMA | FI_RMA_EVENT});
	counted_open(&w, &a);
	counted_open(&w, &b);
	for (unsigned int i = 0; i < 6; i++) {
		if (w.me == 0) {
			world_fill(a.r.local, lengths[i], i);
			CHECK(fi_write(w.ep, a.r.local, lengths[i], NULL, w.peer, 0, a.r.key, &a));
			world_next(&w, NULL);
		} else {
			CHECK(fi_cntr_wait(a.cntr, i + 1, 20000));
			world_compare(a.r.memory, lengths[i], i);
		}
		world_barrier_progress(&w);
	}
	if (w.me == 0) {
		CHECK(fi_inject_write(w.ep, "abcd", 4, w.peer, 0, b.r.key));
		CHECK(fi_writedata(w.ep, a.r.local, 100, NULL, 7, w.peer, 0, b.r.key, &a));
		world_next(&w, NULL);
		for (unsigned int i = 0; i < 3; i++) {
			CHECK(fi_read(w.ep, a.r.local, lengths[2 * i], NULL, w.peer, 0, b.r.key,
				      &a));
			world_next(&w, NULL);
		}
		/* It changes no memory. */
		write_fails(&w, &b.r, ROOM, b.r.key);
		world_barrier();
	} else {
		/* The only event with a completion. */
		assert_int_equal(world_next(&w, NULL).data, 7);
		CHECK(fi_cntr_wait(b.cntr, 2, 20000));
		CHECK(fi_cntr_wait(w.written, 8, 20000));
		CHECK(fi_cntr_wait(w.read, 3, 20000));
		world_barrier_progress(&w);
		assert_int_equal(fi_cntr_read(w.read), 3);
		assert_int_equal(fi_cntr_read(a.cntr), 6);
		assert_int_equal(fi_cntr_read(b.cntr), 2);
		assert_int_equal(fi_cntr_read(w.written), 8);
		assert_int_equal(fi_cntr_readerr(b.cntr), 0);
	}
	counted_close(&w, &b);
	counted_close(&w, &a);
	world_close(&w);
}

static void atomics_of(struct world *w, uint64_t key)
{
	uint64_t one = 1, old = 0, five = 5;
	ssize_t rc;

	/* Refused: by the peer if this side does not know the key yet. */
	rc = fi_atomic(w->ep, &one, 1, NULL, w->peer, ROOM, key, FI_UINT64, FI_SUM, NULL);
	if (rc == 0)
		assert_int_equal(world_next_error(w).err, FI_EACCES);
	else
		assert_int_equal(rc, -FI_EACCES);
	CHECK(fi_atomic(w->ep, &one, 1, NULL, w->peer, 0, key, FI_UINT64, FI_SUM, NULL));
	world_next(w, NULL);
	CHECK(fi_inject_atomic(w->ep, &one, 1, w->peer, 0, key, FI_UINT64, FI_SUM));
	CHECK(fi_fetch_atomic(w->ep, &one, 1, NULL, &old, NULL, w->peer, 0, key, FI_UINT64, FI_SUM,
			      NULL));
	world_next(w, NULL);
	CHECK(fi_compare_atomic(w->ep, &five, 1, NULL, &old, NULL, &old, NULL, w->peer, 0, key,
				FI_UINT64, FI_CSWAP, NULL));
	world_next(w, NULL);
	/* It changes no memory. */
	CHECK(fi_fetch_atomic(w->ep, NULL, 1, NULL, &old, NULL, w->peer, 0, key, FI_UINT64,
			      FI_ATOMIC_READ, NULL));
	world_next(w, NULL);
}

/* Regions count atomics that change memory; endpoints count those with a result as reads. */
static void counted_atomics(void **state)
{
	struct counted a;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_RMA | FI_ATOMIC | FI_RMA_EVENT});
	counted_open(&w, &a);
	if (w.me == 0) {
		atomics_of(&w, a.r.key);
	} else {
		CHECK(fi_cntr_wait(a.cntr, 4, 20000));
		CHECK(fi_cntr_wait(w.written, 2, 20000));
		CHECK(fi_cntr_wait(w.read, 3, 20000));
	}
	world_barrier_progress(&w);
	if (w.me == 1) {
		assert_int_equal(fi_cntr_read(w.read), 3);
		assert_int_equal(fi_cntr_read(a.cntr), 4);
		assert_int_equal(fi_cntr_read(w.written), 2);
	}
	counted_close(&w, &a);
	world_close(&w);
}

/*
 * With FI_DELIVERY_COMPLETE by default a counter counts an injected write when it is in the peer's
 * memory. The peer makes no progress while this side observes the counter.
 */
static void counted_when_written(void **state)
{
	static const uint32_t words[2] = {7, 8};
	struct world_region r;
	uint64_t counted;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_RMA | FI_ATOMIC,
					      .counters = true,
					      .tx_flags = FI_DELIVERY_COMPLETE});
	world_region_open(&w, &r, ROOM, FI_REMOTE_READ | FI_REMOTE_WRITE);
	CHECK(fi_inject_write(w.ep, &words[0], 4, w.peer, 8, r.key));
	CHECK(fi_cntr_wait(w.sent, 1, 20000)); /* both are connected now */
	world_barrier_progress(&w);
	if (w.me == 0) {
		CHECK(fi_inject_write(w.ep, &words[0], 4, w.peer, 0, r.key));
		CHECK(fi_inject_atomic(w.ep, &words[1], 1, w.peer, 4, r.key, FI_UINT32,
				       FI_ATOMIC_WRITE));
		fi_cntr_wait(w.sent, 3, 50);
		counted = fi_cntr_read(w.sent) - 1;
		world_give(&counted, sizeof(counted));
		CHECK(fi_cntr_wait(w.sent, 3, 20000));
	} else {
		world_take(&counted, sizeof(counted));
		if (counted > 0) /* over some lanes the write needs no progress of the peer */
			assert_memory_equal(r.memory, words, counted * 4);
		while (memcmp(r.memory, words, 8) != 0)
			fi_cntr_read(w.received);
	}
	world_region_close(&w, &r);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size),
		cmocka_unit_test(other_forms),
		cmocka_unit_test(refused),
		cmocka_unit_test(with_data),
		cmocka_unit_test(in_order),
		cmocka_unit_test(limits),
		cmocka_unit_test(device_memory),
		cmocka_unit_test(vectors),
		cmocka_unit_test(counted_writes),
		cmocka_unit_test(counted_atomics),
		cmocka_unit_test(counted_when_written),
		cmocka_unit_test(chosen_keys),
		cmocka_unit_test(keys_of_two_domains),
		cmocka_unit_test(chosen_keys_are_counted),
	};

	world_begin();
	return world_end(cmocka_run_group_tests_name("provider_rma", tests, NULL, NULL));
}
