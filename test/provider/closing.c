/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fi_close() of an endpoint that has operations under way, while another one keeps the worker.
 * After a success the application may use the buffers.
 */

#include "world.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#define LENGTH (1u << 20)

static uint8_t buf[LENGTH];

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* An endpoint that keeps the worker when the first one closes. */
static struct fid_ep *second_endpoint(struct world *w)
{
	struct fid_ep *ep;

	CHECK(fi_endpoint(w->domain, w->info, &ep, NULL));
	CHECK(fi_ep_bind(ep, &w->av->fid, 0));
	CHECK(fi_ep_bind(ep, &w->cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(fi_enable(ep));
	return ep;
}

static void connect_both(struct world *w)
{
	char byte = 0;

	world_open(w, &(struct world_params){.caps = FI_TAGGED});
	if (w->me == 0)
		world_send(w, &byte, 1, 99);
	else
		world_recv(w, &byte, 1, 99);
}

/* Connect, and open what side 0 needs besides. @return NULL on side 1 */
static struct fid_ep *begin(struct world *w)
{
	connect_both(w);
	return w->me == 0 ? second_endpoint(w) : NULL;
}

static void end(struct world *w, struct fid_ep *second)
{
	world_barrier_progress(w);
	if (second)
		CHECK(fi_close(&second->fid));
	world_close(w);
}

static void post_receive(struct world *w)
{
	memset(buf, 0, LENGTH);
	CHECK(fi_trecv(w->ep, buf, LENGTH, NULL, FI_ADDR_UNSPEC, 1, 0, buf));
}

static void post_send(struct world *w)
{
	world_fill(buf, LENGTH, 1);
	CHECK(fi_tsend(w->ep, buf, LENGTH, NULL, w->peer, 1, NULL));
}

static void stop_peer(void)
{
	int status;

	kill(world_child, SIGSTOP);
	assert_int_equal(waitpid(world_child, &status, WUNTRACED), world_child);
	assert_true(WIFSTOPPED(status));
}

static void post_unmatched(struct world *w)
{
	post_send(w);
	assert_int_equal(fi_cq_read(w->cq, NULL, 0), -FI_EAGAIN); /* sends it */
}

static void nothing_comes(struct world *w)
{
	struct fi_cq_err_entry error;
	double start;

	post_receive(w);
	for (start = seconds(); seconds() - start < 0.3;)
		assert_int_equal(fi_cq_read(w->cq, NULL, 0), -FI_EAGAIN);
	CHECK(fi_cancel(&w->ep->fid, buf));
	error = world_next_error(w);
	assert_int_equal(error.err, FI_ECANCELED);
}

/* The peer has no receive: the message is withdrawn, and a later receive does not get it. */
static void withdrawn(void **state)
{
	struct world w;
	struct fid_ep *second = begin(&w);

	if (w.me == 0) {
		post_unmatched(&w);
		world_close_ep(&w);
		world_fill(buf, LENGTH, 2);
	}
	world_barrier_progress(&w);
	if (w.me == 1)
		nothing_comes(&w);
	end(&w, second);
}

/* The process has its last endpoint closed, which waits for connections that are closed, too. */
static void withdrawn_by_the_last_one(void **state)
{
	struct world w;
	double start;

	connect_both(&w);
	if (w.me == 0) {
		post_unmatched(&w);
		CHECK(fi_av_remove(w.av, &w.peer, 1, 0));
		start = seconds();
		world_close_ep(&w);
		assert_true(seconds() - start < 20);
		world_fill(buf, LENGTH, 2);
	}
	world_barrier_progress(&w);
	if (w.me == 1)
		nothing_comes(&w);
	world_close(&w);
}

/* The peer does not run: the endpoint is not closed before the peer has the message. */
static void stopped(void **state)
{
	struct world w;
	struct fid_ep *second = begin(&w);

	if (w.me == 1) {
		post_receive(&w);
		world_barrier();
		world_next(&w, NULL);
		world_compare(buf, LENGTH, 1);
	} else {
		world_barrier();
		stop_peer();
		post_send(&w);
		assert_int_equal(fi_cq_read(w.cq, NULL, 0), -FI_EAGAIN); /* sends it */
		assert_int_equal(fi_close(&w.ep->fid), -FI_EBUSY);
		assert_int_equal(fi_tsend(w.ep, buf, 1, NULL, w.peer, 1, NULL), -FI_EOPBADSTATE);
		assert_int_equal(fi_enable(w.ep), -FI_EBUSY);
		kill(world_child, SIGCONT);
		world_close_ep(&w);
		world_fill(buf, LENGTH, 2);
	}
	end(&w, second);
}

/* Data that was copied needs no buffer: the endpoint closes while the peer does not run. */
static void copied(void **state)
{
	struct world w;
	struct fid_ep *second = begin(&w);

	if (w.me == 1) {
		world_barrier();
		for (unsigned int i = 0; i < 20000; i++)
			world_recv(&w, buf, 64, i);
	} else {
		world_barrier();
		stop_peer();
		for (unsigned int i = 0; i < 20000; i++)
			CHECK(fi_tinject(w.ep, buf, 64, w.peer, i));
		world_close_ep(&w);
		kill(world_child, SIGCONT);
	}
	end(&w, second);
}

/* FI_INJECT copies operands, not results: the result's buffer is in use until the peer answers. */
static void awaits_results(void **state)
{
	static uint64_t operand = 1, result;
	struct fi_ioc operands = {&operand, 1}, results = {&result, 1};
	struct fi_rma_ioc at = {.count = 1};
	struct fi_msg_atomic msg = {
		.msg_iov = &operands,
		.iov_count = 1,
		.rma_iov = &at,
		.rma_iov_count = 1,
		.datatype = FI_UINT64,
		.op = FI_SUM,
	};
	struct fid_ep *second = NULL;
	struct world_region r;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_RMA | FI_ATOMIC});
	world_region_open(&w, &r, 4096, FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE);
	world_barrier();
	if (w.me == 0) {
		second = second_endpoint(&w);
		at.key = r.key;
		msg.addr = w.peer;
		stop_peer();
		CHECK(fi_fetch_atomicmsg(w.ep, &msg, &results, NULL, 1, FI_INJECT));
		assert_int_equal(fi_close(&w.ep->fid), -FI_EBUSY);
		kill(world_child, SIGCONT);
		world_close_ep(&w);
		result = 1234;
	}
	world_barrier_progress(&w);
	if (second)
		CHECK(fi_close(&second->fid));
	assert_int_equal(result, w.me == 0 ? 1234 : 0);
	world_region_close(&w, &r);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(withdrawn),      cmocka_unit_test(withdrawn_by_the_last_one),
		cmocka_unit_test(stopped),        cmocka_unit_test(copied),
		cmocka_unit_test(awaits_results),
	};

	world_begin();
	return world_end(cmocka_run_group_tests_name("closing", tests, NULL, NULL));
}
