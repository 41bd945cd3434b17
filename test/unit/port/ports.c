/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Contexts of one process open, list and close ports from several threads at the same time. Each
 * context has a lock of its own, so what the ports share (their owners, pools that outlive their
 * port) needs another.
 */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "eal.h"
#include "lane.h"
#include "port/ethdev.h"
#include "port/ports.h"

#define THREADS 4
#define ROUNDS 100

struct job {
	pthread_t thread;
	unsigned int n;
	unsigned int opened, busy;
	char why[300]; /* what went wrong; "" = nothing */
};

static pthread_barrier_t start;
static atomic_int owners; /* of the port that all want */

static struct weft_frame_port *open_port(struct job *j, const char *name, int *rc)
{
	const struct weft_port_opts opts = {.no_extbuf = true, .rx_bufs = 64, .frame_size = 1514};
	struct weft_frame_port *port = NULL;
	char why[256] = "";

	*rc = weft_port_ethdev_open(name, &opts, &port, why, sizeof(why));
	if (*rc && *rc != -EBUSY)
		snprintf(j->why, sizeof(j->why), "%s: %s", name, why);
	j->opened += *rc == 0;
	j->busy += *rc == -EBUSY;
	return port;
}

/* Its own port, one of whose buffers comes back after it has been closed. */
static void use_own(struct job *j)
{
	struct weft_frame_port *port;
	struct rte_mbuf *m;
	char name[32];
	int rc;

	snprintf(name, sizeof(name), "net_null_ports%u", j->n);
	port = open_port(j, name, &rc);
	if (!port) {
		snprintf(j->why, sizeof(j->why), "%s is busy", name);
		return;
	}
	m = rte_pktmbuf_alloc(port->pool);
	if (!m)
		snprintf(j->why, sizeof(j->why), "%s has no buffer", name);
	port->ops->close(port);
	rte_pktmbuf_free(m);
}

/* One port for all: no worker gets it while another one has it. */
static void use_common(struct job *j)
{
	struct weft_frame_port *port;
	int rc;

	port = open_port(j, "net_null_common", &rc);
	if (!port)
		return;
	if (atomic_fetch_add(&owners, 1) != 0)
		snprintf(j->why, sizeof(j->why), "two have the port");
	atomic_fetch_sub(&owners, 1);
	port->ops->close(port);
}

static int count(void *arg, const struct weft_lane_resource *resource)
{
	*(int *)arg += !resource->inside;
	return 0;
}

static void *run(void *arg)
{
	struct job *j = arg;
	int n, added;

	pthread_barrier_wait(&start);
	for (unsigned int i = 0; i < ROUNDS && !j->why[0]; i++) {
		use_own(j);
		use_common(j);
		added = 0;
		n = weft_port_ethdev_list(count, &added);
		if (n != THREADS + 1 || n != added)
			snprintf(j->why, sizeof(j->why), "%d ports", n);
	}
	return NULL;
}

static void threads_open_list_and_close_ports_at_the_same_time(void **state)
{
	static struct job jobs[THREADS];
	unsigned int opened = 0, busy = 0;

	(void)state;
	pthread_barrier_init(&start, NULL, THREADS);
	for (unsigned int i = 0; i < THREADS; i++) {
		jobs[i] = (struct job){.n = i};
		assert_int_equal(pthread_create(&jobs[i].thread, NULL, run, &jobs[i]), 0);
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(jobs[i].thread, NULL);
		if (jobs[i].why[0])
			fail_msg("%s", jobs[i].why);
		opened += jobs[i].opened;
		busy += jobs[i].busy;
	}
	pthread_barrier_destroy(&start);
	assert_int_equal(opened + busy, 2 * THREADS * ROUNDS);
	assert_in_range(opened, THREADS * ROUNDS + 1, 2 * THREADS * ROUNDS);
}

/* With WEFT_DUMPCAP ports have no owner: the application may take one, and keeps it. */
static void closing_leaves_others_their_port(void **state)
{
	const struct weft_port_opts opts = {
		.no_extbuf = true, .rx_bufs = 64, .frame_size = 1514, .no_owner = true};
	struct rte_eth_dev_owner app = {.name = "application"}, now;
	struct weft_frame_port *port;
	char why[256];
	uint16_t id;

	(void)state;
	assert_int_equal(weft_port_ethdev_open("net_null_common", &opts, &port, why, sizeof(why)),
			 0);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_null_common", &id), 0);
	assert_int_equal(rte_eth_dev_owner_new(&app.id), 0);
	assert_int_equal(rte_eth_dev_owner_set(id, &app), 0);
	port->ops->close(port);
	assert_int_equal(rte_eth_dev_owner_get(id, &now), 0);
	assert_int_equal(now.id, app.id);
	assert_int_equal(rte_eth_dev_owner_unset(id, app.id), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closing_leaves_others_their_port),
		cmocka_unit_test(threads_open_list_and_close_ports_at_the_same_time),
	};
	char name[32];

	test_eal_init("256");
	for (unsigned int i = 0; i < THREADS; i++) {
		snprintf(name, sizeof(name), "net_null_ports%u", i);
		if (rte_dev_probe(name)) {
			puts("there is no net_null in this DPDK");
			return 77;
		}
	}
	rte_dev_probe("net_null_common");
	return cmocka_run_group_tests_name("ports", tests, NULL, NULL);
}
