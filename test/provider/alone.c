/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A domain whose calls are serialized has the provider's lock by a store alone. A thread that
 * sleeps on an event queue, which is the fabric's and not the domain's, since before the domain was
 * opened, must not meet it inside. One process.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#define SLEEP_MS 400
#define LEAST_S 0.1 /* that each of the two is behind the other's begin */
#define TRIES 5

static struct fid_eq *eq;
static int begun;
static double due, woke;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The wake needs the lock: it is over when no other thread has it. */
static void *sleep_on_events(void *arg)
{
	uint8_t buf[256];
	uint32_t event;
	ssize_t n;

	due = seconds() + SLEEP_MS * 1e-3;
	__atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
	n = fi_eq_sread(eq, &event, buf, sizeof(buf), SLEEP_MS, 0);
	woke = seconds();
	return n == -FI_EAGAIN ? NULL : arg;
}

struct own {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	uint8_t name[FI_NAME_MAX];
};

static void open_own(struct own *o, struct fid_fabric *fabric, struct fi_info *info)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {0};
	size_t length = sizeof(o->name);

	assert_int_equal(fi_domain(fabric, info, &o->domain, NULL), 0);
	assert_int_equal(fi_av_open(o->domain, &av_attr, &o->av, NULL), 0);
	assert_int_equal(fi_cq_open(o->domain, &cq_attr, &o->cq, NULL), 0);
	assert_int_equal(fi_endpoint(o->domain, info, &o->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(o->ep, &o->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(o->ep), 0);
	assert_int_equal(fi_getname(&o->ep->fid, o->name, &length), 0);
}

static void close_own(struct own *o)
{
	assert_int_equal(fi_close(&o->ep->fid), 0);
	assert_int_equal(fi_close(&o->cq->fid), 0);
	assert_int_equal(fi_close(&o->av->fid), 0);
	assert_int_equal(fi_close(&o->domain->fid), 0);
}

/* One call that has the lock: equal addresses are sought one behind the other. */
static void insert(struct own *o, size_t count)
{
	uint8_t *names = malloc(count * FI_NAME_MAX);

	for (size_t i = 0; i < count; i++)
		memcpy(names + i * FI_NAME_MAX, o->name, FI_NAME_MAX);
	assert_int_equal(fi_av_insert(o->av, names, count, NULL, 0, NULL), count);
	free(names);
}

static struct fi_info *get_info(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->fabric_attr->prov_name = strdup("weft");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(hints);
	return info;
}

/*
 * @return whether the sleeper was to wake inside the call. It was not when the machine was too
 * slow, or too fast, for the two to overlap: then nothing was shown. The thread with the lock may
 * lose its core right behind it, so the sleeper may be a little earlier than the end is seen.
 */
static bool overlap(struct fid_fabric *fabric, struct fi_info *info, size_t *count)
{
	struct own o = {0};
	double start, end;
	pthread_t thread;
	void *failed;

	begun = 0;
	assert_int_equal(pthread_create(&thread, NULL, sleep_on_events, &eq), 0);
	while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
		usleep(1000);
	usleep(50000); /* it sleeps */
	open_own(&o, fabric, info);
	start = seconds();
	insert(&o, *count);
	end = seconds();
	pthread_join(thread, &failed);
	assert_null(failed);
	close_own(&o);
	if (end - start < 2 * SLEEP_MS * 1e-3)
		*count += *count / 2;
	if (start > due - LEAST_S || end < due + LEAST_S)
		return false;
	assert_true(woke > due + (end - due) / 2);
	return true;
}

static void a_thread_that_wakes_waits_for_the_lock(void **state)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_info *info = get_info();
	struct fid_fabric *fabric;
	size_t count = 16384;
	bool shown = false;

	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_eq_open(fabric, &attr, &eq, NULL), 0);
	for (int i = 0; i < TRIES && !shown; i++)
		shown = overlap(fabric, info, &count);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	if (!shown)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_wakes_waits_for_the_lock),
	};

	setenv("FI_PROVIDER", "weft", 1);
	setenv("FI_WEFT_LANES", "shm", 1);
	return cmocka_run_group_tests_name("provider_alone", tests, NULL, NULL);
}
