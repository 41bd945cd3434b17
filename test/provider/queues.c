/* SPDX-License-Identifier: BSD-3-Clause */
/* How the end of operations is reported: queues of each format, counters, sleeping, threads. */

#include "world.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define LONG (4 << 20)

/* One message each way, its completions in a format. */
static void exchange(enum fi_cq_format format, size_t size)
{
	uint8_t entry[sizeof(struct fi_cq_tagged_entry) + 1];
	const struct fi_cq_tagged_entry *e = (void *)entry;
	uint64_t out = 7, in = 0, *seen[2] = {0};
	struct world w;
	ssize_t n;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED, .format = format});
	CHECK(fi_trecv(w.ep, &in, sizeof(in), NULL, w.peer, 3, 0, &in));
	CHECK(fi_tsend(w.ep, &out, sizeof(out), NULL, w.peer, 3, &out));
	for (int i = 0; i < 2; i++) {
		memset(entry, 0xee, sizeof(entry));
		do {
			n = fi_cq_read(w.cq, entry, 1);
		} while (n == -FI_EAGAIN);
		assert_int_equal(n, 1);
		assert_int_equal(entry[size], 0xee); /* no more than the format has */
		seen[e->op_context == &in] = e->op_context;
		if (format >= FI_CQ_FORMAT_MSG && e->op_context == &in)
			assert_int_equal(e->len, sizeof(in));
		if (format >= FI_CQ_FORMAT_MSG)
			assert_true(e->flags & (e->op_context == &in ? FI_RECV : FI_SEND));
		if (format >= FI_CQ_FORMAT_DATA && e->op_context == &in)
			assert_ptr_equal(e->buf, &in);
		if (format >= FI_CQ_FORMAT_TAGGED && e->op_context == &in)
			assert_int_equal(e->tag, 3);
	}
	assert_ptr_equal(seen[0], &out);
	assert_ptr_equal(seen[1], &in);
	assert_int_equal(in, 7);
	world_close(&w);
}

static void formats(void **state)
{
	exchange(FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry));
	exchange(FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry));
	exchange(FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry));
	exchange(FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry));
}

/* More at a time than the queue began with; none is lost. */
static void many(void **state)
{
	enum { COUNT = 1000 };
	static uint64_t in[COUNT], out[COUNT];
	struct fi_cq_tagged_entry entry;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED});
	for (uint64_t i = 0; i < COUNT; i++) {
		CHECK(fi_trecv(w.ep, &in[i], sizeof(in[i]), NULL, w.peer, i, 0, &in[i]));
		out[i] = i;
		CHECK(fi_tsend(w.ep, &out[i], sizeof(out[i]), NULL, w.peer, i, NULL));
	}
	for (int i = 0; i < 2 * COUNT; i++) {
		entry = world_next(&w, NULL);
		if (entry.flags & FI_RECV)
			assert_int_equal(in[entry.tag], entry.tag);
	}
	world_close(&w);
}

/* Only what asks for it is reported, and errors. */
static void selective(void **state)
{
	uint64_t value = 1;
	struct iovec iov = {&value, sizeof(value)};
	struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .tag = 2};
	struct world w;
	int quiet, loud;

	world_open(&w,
		   &(struct world_params){.caps = FI_TAGGED, .cq_flags = FI_SELECTIVE_COMPLETION});
	msg.addr = w.peer;
	if (w.me == 0) {
		CHECK(fi_tsend(w.ep, &value, sizeof(value), NULL, w.peer, 1, &quiet));
		msg.context = &loud;
		CHECK(fi_tsendmsg(w.ep, &msg, FI_COMPLETION));
		assert_ptr_equal(world_next(&w, NULL).op_context, &loud);
	} else {
		CHECK(fi_trecv(w.ep, &value, sizeof(value), NULL, w.peer, 1, 0, &quiet));
		msg.context = &loud;
		CHECK(fi_trecvmsg(w.ep, &msg, FI_COMPLETION));
		assert_ptr_equal(world_next(&w, NULL).op_context, &loud);
		CHECK(fi_trecv(w.ep, &value, sizeof(value), NULL, w.peer, 1, 0, &quiet));
		CHECK(fi_cancel(&w.ep->fid, &quiet));
		assert_ptr_equal(world_next_error(&w).op_context, &quiet);
	}
	world_close(&w);
}

static void counters(void **state)
{
	enum { COUNT = 20 };
	uint64_t value = 1;
	struct world w;

	world_open(&w, &(struct world_params){
			       .caps = FI_TAGGED, .counters = true, .wait_obj = FI_WAIT_UNSPEC});
	if (w.me == 0) {
		assert_int_equal(fi_cntr_wait(w.sent, 1, 10), -FI_ETIMEDOUT);
		world_barrier();
		for (int i = 0; i < COUNT; i++)
			CHECK(fi_tsend(w.ep, &value, sizeof(value), NULL, w.peer, 1, NULL));
		CHECK(fi_cntr_wait(w.sent, COUNT, -1));
		assert_int_equal(fi_cntr_read(w.sent), COUNT);
		CHECK(fi_cntr_set(w.sent, 5));
		CHECK(fi_cntr_add(w.sent, 2));
		assert_int_equal(fi_cntr_read(w.sent), 7);
	} else {
		world_barrier();
		for (int i = 0; i < COUNT; i++)
			CHECK(fi_trecv(w.ep, &value, sizeof(value), NULL, w.peer, 1, 0, NULL));
		CHECK(fi_cntr_wait(w.received, COUNT, -1));
		/* An error counts as one. */
		CHECK(fi_trecv(w.ep, &value, sizeof(value), NULL, w.peer, 1, 0, &value));
		CHECK(fi_cancel(&w.ep->fid, &value));
		assert_int_equal(fi_cntr_readerr(w.received), 1);
		assert_int_equal(fi_cntr_wait(w.received, COUNT + 1, 10), -FI_ETIMEDOUT);
	}
	world_close(&w);
}

/* ------------------------------------------------------------------ sleeping */

static void *signal_later(void *arg)
{
	struct world *w = arg;

	usleep(20000);
	CHECK(fi_cq_signal(w->cq));
	return NULL;
}

static void sleeping(void **state)
{
	struct fi_cq_tagged_entry entry;
	uint64_t value = 3;
	pthread_t thread;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED, .wait_obj = FI_WAIT_UNSPEC});
	if (w.me == 0) {
		assert_int_equal(fi_cq_sread(w.cq, &entry, 1, NULL, 10), -FI_EAGAIN);
		world_barrier();
		usleep(20000); /* it most likely sleeps by then */
		world_send(&w, &value, sizeof(value), 1);
		/* A signal wakes one that nothing else would. */
		assert_int_equal(pthread_create(&thread, NULL, signal_later, &w), 0);
		assert_int_equal(fi_cq_sread(w.cq, &entry, 1, NULL, -1), -FI_EAGAIN);
		pthread_join(thread, NULL);
	} else {
		CHECK(fi_trecv(w.ep, &value, sizeof(value), NULL, w.peer, 1, 0, &value));
		world_barrier();
		assert_int_equal(fi_cq_sread(w.cq, &entry, 1, NULL, -1), 1);
		assert_ptr_equal(entry.op_context, &value);
	}
	world_close(&w);
}

/* The application's own poll(). */
static void descriptor(void **state)
{
	struct fi_cq_tagged_entry entry;
	uint64_t value = 3;
	struct fid *fids[1];
	struct pollfd fd;
	struct world w;
	int rc;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED, .wait_obj = FI_WAIT_FD});
	if (w.me == 0) {
		world_barrier();
		usleep(20000);
		world_send(&w, &value, sizeof(value), 1);
	} else {
		fids[0] = &w.cq->fid;
		fd.events = POLLIN;
		CHECK(fi_control(&w.cq->fid, FI_GETWAIT, &fd.fd));
		CHECK(fi_trecv(w.ep, &value, sizeof(value), NULL, w.peer, 1, 0, &value));
		world_barrier();
		while (fi_cq_read(w.cq, &entry, 1) == -FI_EAGAIN) {
			rc = fi_trywait(w.fabric, fids, 1);
			assert_true(rc == 0 || rc == -FI_EAGAIN);
			if (rc == 0)
				assert_int_equal(poll(&fd, 1, -1), 1);
		}
		assert_ptr_equal(entry.op_context, &value);
	}
	world_close(&w);
}

/* Ready to sleep on its descriptor. */
static void arm(struct world *w, struct fid_cq *cq)
{
	struct fid *fids[] = {&cq->fid};
	int rc;

	do {
		rc = fi_trywait(w->fabric, fids, 1);
	} while (rc == -FI_EAGAIN);
	CHECK(rc);
}

static struct fid_cq *open_queue(struct world *w, int *fd)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};
	struct fid_cq *cq;

	CHECK(fi_cq_open(w->domain, &attr, &cq, NULL));
	CHECK(fi_control(&cq->fid, FI_GETWAIT, fd));
	return cq;
}

/*
 * Two queues that are slept for: looking at one does not wake the thread that sleeps for the other,
 * or both would look for ever; and calls for one don't lose what comes for the other.
 */
static void two_queues(void **state)
{
	struct pollfd fds[2] = {{.events = POLLIN}, {.events = POLLIN}};
	struct fi_cq_tagged_entry entry;
	struct fid_cq *other;
	uint64_t value = 3;
	struct world w;
	int woken = 1;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED, .wait_obj = FI_WAIT_FD});
	other = open_queue(&w, &fds[1].fd);
	CHECK(fi_control(&w.cq->fid, FI_GETWAIT, &fds[0].fd));
	if (w.me == 1)
		CHECK(fi_trecv(w.ep, &value, sizeof(value), NULL, w.peer, 1, 0, &value));
	world_barrier_progress(&w);
	/* Once in a while the worker itself has something to do. */
	for (int i = 0; i < 20 && woken > 0; i++) {
		arm(&w, w.cq);
		arm(&w, other);
		woken = poll(fds, 2, 0);
	}
	assert_int_equal(woken, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_cq_read(other, &entry, 1), -FI_EAGAIN);
	world_barrier();
	if (w.me == 0)
		world_send(&w, &value, sizeof(value), 1);
	while (w.me == 1 && fi_cq_read(w.cq, &entry, 1) == -FI_EAGAIN)
		assert_true(poll(fds, 1, 20000) == 1);
	world_barrier_progress(&w);
	CHECK(fi_close(&other->fid));
	world_close(&w);
}

/* ------------------------------------------------------------------ threads */

enum { THREADS = 3, EACH = 200 };

static struct world shared;

static void *send_some(void *arg)
{
	static const uint64_t out = 1;
	uint64_t tag = (uintptr_t)arg;

	for (uint64_t i = 0; i < EACH; i++)
		CHECK(fi_tsend(shared.ep, &out, sizeof(out), NULL, shared.peer, tag, NULL));
	return NULL;
}

static void *receive_some(void *arg)
{
	uint64_t tag = (uintptr_t)arg;
	static uint64_t in[THREADS];

	for (uint64_t i = 0; i < EACH; i++)
		CHECK(fi_trecv(shared.ep, &in[tag], sizeof(in[tag]), NULL, shared.peer, tag, 0,
			       NULL));
	return NULL;
}

static void *read_some(void *arg)
{
	struct fi_cq_tagged_entry entry;
	int *left = arg;

	while (__atomic_load_n(left, __ATOMIC_RELAXED) > 0)
		if (fi_cq_sread(shared.cq, &entry, 1, NULL, 1) == 1)
			__atomic_sub_fetch(left, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* FI_THREAD_SAFE: all post, several read and sleep. */
static void many_threads(void **state)
{
	pthread_t posters[2 * THREADS], readers[2];
	int left = 2 * THREADS * EACH;

	world_open(&shared, &(struct world_params){.caps = FI_TAGGED, .wait_obj = FI_WAIT_UNSPEC});
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_some, &left), 0);
	for (uintptr_t i = 0; i < 2 * THREADS; i++)
		assert_int_equal(pthread_create(&posters[i], NULL,
						i < THREADS ? send_some : receive_some,
						(void *)(i % THREADS)),
				 0);
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_join(posters[i], NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	assert_int_equal(left, 0);
	world_close(&shared);
}

/* A long message arrives at a process that makes no calls. */
static void arrives_without_calls(enum fi_progress progress)
{
	uint8_t *buf = malloc(LONG);
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED, .progress = progress});
	if (w.me == 0) {
		world_fill(buf, LONG, 1);
		world_barrier();
		world_send(&w, buf, LONG, 1);
		world_barrier();
	} else {
		memset(buf, 0, LONG);
		CHECK(fi_trecv(w.ep, buf, LONG, NULL, w.peer, 1, 0, NULL));
		world_barrier();
		world_barrier(); /* no call before the sender has completed */
		assert_int_equal(world_next(&w, NULL).len, LONG);
		world_compare(buf, LONG, 1);
	}
	world_close(&w);
	free(buf);
}

static void automatic(void **state)
{
	arrives_without_calls(FI_PROGRESS_AUTO);
}

/* The same later: the thread checks whether the application makes calls. */
static void watched(void **state)
{
	arrives_without_calls(FI_PROGRESS_MANUAL);
}

/* A second endpoint, and the thread that closes it. */
struct closing {
	struct fid_ep *ep;
	struct timespec at;
	int begun, closed;
};

/* So long a close waits, at least, for what the peer has yet to fetch. */
#define CLOSE_WAITS_MS 500

static long ms_since(const struct timespec *at)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - at->tv_sec) * 1000 + (now.tv_nsec - at->tv_nsec) / 1000000;
}

static void *close_endpoint(void *arg)
{
	struct closing *c = arg;

	clock_gettime(CLOCK_MONOTONIC, &c->at);
	__atomic_store_n(&c->begun, 1, __ATOMIC_RELEASE);
	CHECK(fi_close(&c->ep->fid));
	__atomic_store_n(&c->closed, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* fi_close() waits for a message that the peer has yet to fetch; other threads go on meanwhile. */
static void close_is_not_in_the_way(void **state)
{
	struct fi_cq_tagged_entry entry;
	uint8_t *buf = malloc(LONG);
	struct closing c = {0};
	struct fid_cq *cq;
	pthread_t thread;
	struct world w;
	int fd, closed;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED});
	cq = open_queue(&w, &fd);
	if (w.me == 0) {
		CHECK(fi_endpoint(w.domain, w.info, &c.ep, NULL));
		CHECK(fi_ep_bind(c.ep, &w.av->fid, 0));
		CHECK(fi_ep_bind(c.ep, &cq->fid, FI_TRANSMIT | FI_RECV));
		CHECK(fi_enable(c.ep));
		world_fill(buf, LONG, 2);
		CHECK(fi_tsend(c.ep, buf, LONG, NULL, w.peer, 9, NULL));
		assert_int_equal(pthread_create(&thread, NULL, close_endpoint, &c), 0);
		while (!__atomic_load_n(&c.begun, __ATOMIC_ACQUIRE))
			usleep(1000);
		usleep(20000);
		assert_int_equal(fi_cq_read(w.cq, &entry, 1), -FI_EAGAIN);
		usleep(100000); /* it had the lock, and is through now, if it was in the way */
		closed = __atomic_load_n(&c.closed, __ATOMIC_RELAXED);
		if (ms_since(&c.at) < CLOSE_WAITS_MS) /* else it may have given up */
			assert_int_equal(closed, 0);
		world_barrier();
		pthread_join(thread, NULL);
		world_barrier_progress(&w);
	} else {
		world_barrier(); /* no call before it */
		world_recv(&w, buf, LONG, 9);
		world_compare(buf, LONG, 2);
		world_barrier_progress(&w);
	}
	CHECK(fi_close(&cq->fid));
	world_close(&w);
	free(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats),
		cmocka_unit_test(many),
		cmocka_unit_test(selective),
		cmocka_unit_test(counters),
		cmocka_unit_test(sleeping),
		cmocka_unit_test(descriptor),
		cmocka_unit_test(many_threads),
		cmocka_unit_test(automatic),
		cmocka_unit_test(watched),
		cmocka_unit_test(two_queues),
		cmocka_unit_test(close_is_not_in_the_way),
	};

	world_begin();
	return world_end(cmocka_run_group_tests_name("provider_queues", tests, NULL, NULL));
}
