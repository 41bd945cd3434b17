/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Children of fork() (provider/process.h): what they close of their parent's, with its progress
 * thread and a lock that is held, and what they open themselves.
 */

#include "world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* More than a child takes that does not hang. */
#define CHILD_S 20
#define CHILDREN 20

/* The exit code of a child: 0, or which call failed. */
static int close_all(struct world *w, struct world_region *r)
{
	struct fid *fids[] = {&r->mr->fid, &w->ep->fid,     &w->cq->fid,
			      &w->av->fid, &w->domain->fid, &w->fabric->fid};

	for (int i = 0; i < (int)(sizeof(fids) / sizeof(fids[0])); i++)
		if (fi_close(fids[i]) != 0)
			return i + 1;
	return 0;
}

/* A message to itself over endpoints of its own. */
static int open_own(struct fi_info *info)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {0};
	struct fi_cq_tagged_entry entry;
	size_t length = FI_NAME_MAX;
	uint8_t name[FI_NAME_MAX], out = 7, in = 0;
	struct world w = {0};
	int left = 2;
	ssize_t n;

	if (fi_fabric(info->fabric_attr, &w.fabric, NULL) != 0 ||
	    fi_domain(w.fabric, info, &w.domain, NULL) != 0 ||
	    fi_av_open(w.domain, &av_attr, &w.av, NULL) != 0 ||
	    fi_cq_open(w.domain, &cq_attr, &w.cq, NULL) != 0 ||
	    fi_endpoint(w.domain, info, &w.ep, NULL) != 0 || fi_ep_bind(w.ep, &w.av->fid, 0) != 0 ||
	    fi_ep_bind(w.ep, &w.cq->fid, FI_TRANSMIT | FI_RECV) != 0 || fi_enable(w.ep) != 0 ||
	    fi_getname(&w.ep->fid, name, &length) != 0 ||
	    fi_av_insert(w.av, name, 1, &w.self, 0, NULL) != 1)
		return 20;
	if (fi_trecv(w.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 5, 0, NULL) != 0 ||
	    fi_tsend(w.ep, &out, 1, NULL, w.self, 5, NULL) != 0)
		return 21;
	while (left > 0) {
		n = fi_cq_read(w.cq, &entry, 1);
		if (n != 1 && n != -FI_EAGAIN)
			return 22;
		left -= n == 1;
	}
	if (fi_close(&w.ep->fid) != 0 || fi_close(&w.cq->fid) != 0 || fi_close(&w.av->fid) != 0 ||
	    fi_close(&w.domain->fid) != 0 || fi_close(&w.fabric->fid) != 0)
		return 23;
	return in == 7 ? 0 : 24;
}

static void child_ends_well(struct world *w, struct world_region *r, bool own)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(CHILD_S);
		status = close_all(w, r);
		if (status == 0 && own)
			status = open_own(w->info);
		_exit(status);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void exchange(struct world *w, uint64_t tag)
{
	static uint8_t buf[100000];

	if (w->me == 0) {
		world_fill(buf, sizeof(buf), (unsigned int)tag);
		world_send(w, buf, sizeof(buf), tag);
	} else {
		memset(buf, 0, sizeof(buf));
		world_recv(w, buf, sizeof(buf), tag);
		world_compare(buf, sizeof(buf), (unsigned int)tag);
	}
}

static void exchange_with_children(enum fi_progress progress)
{
	struct world_region r;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED | FI_RMA, .progress = progress});
	world_region_open(&w, &r, 4096, FI_REMOTE_WRITE);
	exchange(&w, 1);
	if (w.me == 0)
		child_ends_well(&w, &r, true);
	exchange(&w, 2);
	if (w.me == 1)
		child_ends_well(&w, &r, false);
	exchange(&w, 3);
	world_region_close(&w, &r);
	world_close(&w);
}

/* @behaviour R83 */
static void children_that_close_all_disturb_no_peer(void **state)
{
	exchange_with_children(FI_PROGRESS_MANUAL);
}

/* @behaviour R83 */
static void nor_where_a_thread_makes_progress(void **state)
{
	exchange_with_children(FI_PROGRESS_AUTO);
}

struct reader {
	struct fid_cq *cq;
	atomic_bool stop;
};

static void *read_on(void *arg)
{
	struct reader *reader = arg;
	struct fi_cq_tagged_entry entry;

	while (!atomic_load_explicit(&reader->stop, memory_order_relaxed))
		fi_cq_read(reader->cq, &entry, 1);
	return NULL;
}

/* A thread is in the provider most of the time: children get a lock that no thread releases. */
/* @behaviour R83 */
static void a_child_whose_parent_was_in_a_call_does_not_hang(void **state)
{
	struct reader reader = {0};
	struct world_region r;
	pthread_t thread;
	struct world w;

	world_open(&w, &(struct world_params){.caps = FI_TAGGED | FI_RMA});
	world_region_open(&w, &r, 4096, FI_REMOTE_WRITE);
	if (w.me == 0) {
		reader.cq = w.cq;
		assert_int_equal(pthread_create(&thread, NULL, read_on, &reader), 0);
		for (int i = 0; i < CHILDREN; i++)
			child_ends_well(&w, &r, i == 0);
		atomic_store(&reader.stop, true);
		pthread_join(thread, NULL);
	}
	world_barrier();
	exchange(&w, 4);
	world_region_close(&w, &r);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_that_close_all_disturb_no_peer),
		cmocka_unit_test(nor_where_a_thread_makes_progress),
		cmocka_unit_test(a_child_whose_parent_was_in_a_call_does_not_hang),
	};

	world_begin();
	return world_end(cmocka_run_group_tests_name("provider_fork", tests, NULL, NULL));
}
