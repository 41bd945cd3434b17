/* SPDX-License-Identifier: BSD-3-Clause */

/* Several workers on one port without flow rules, over ports that hash as NICs do. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "eal.h"
#include "engine/engine.h"
#include "fake/fake_ethdev.h"
#include "port/ethdev.h"
#include "port/spread.h"

#define QUEUES 8
#define BYTES 100

struct worker {
	struct weft_lane_iface *iface;
	struct weft_frame_port *port;
	unsigned int up, down, warned, got;
	char text[400];
	uint64_t counter;
};

struct machine {
	struct fake_eth_port *fake;
	struct worker w[QUEUES];
	unsigned int n;
};

static uint64_t dice_state = 7;

static uint32_t dice(void)
{
	dice_state = dice_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(dice_state >> 32);
}

static uint64_t real_now(void *arg)
{
	struct timespec t;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int real_random(void *arg, void *buf, size_t len)
{
	(void)arg;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)dice();
	return 0;
}

static const struct weft_platform platform = {.now = real_now, .random = real_random};

static int on_recv(void *arg, struct weft_lane_ep *lane_ep, uint8_t am_id, const void *data,
		   size_t length, void *desc)
{
	struct worker *w = arg;

	(void)lane_ep;
	(void)desc;
	assert_int_equal(am_id, 3);
	assert_int_equal(length, BYTES);
	assert_int_equal(((const uint8_t *)data)[BYTES - 1], 0x5a);
	w->got++;
	return 0;
}

static void on_event(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev, int status,
		     const char *text)
{
	struct worker *w = arg;

	(void)lane_ep;
	w->up += ev == WEFT_LANE_EV_UP;
	w->down += ev == WEFT_LANE_EV_DOWN;
	if (ev == WEFT_LANE_EV_UP && status > 0) {
		w->warned++;
		assert_non_null(strstr(text, "no UDP port was found"));
		assert_non_null(strstr(text, "use fewer queues="));
	}
	snprintf(w->text, sizeof(w->text), "%s", text ? text : "");
}

static struct weft_frame_port *open_queue(const struct fake_eth_port *fake, uint16_t queues)
{
	struct weft_port_opts opts = {.udp_port = 9338, .queues = queues, .rx_bufs = 255};
	struct weft_frame_port *port = NULL;
	char name[16], why[256] = "";

	snprintf(name, sizeof(name), "%u", fake_eth_id(fake));
	if (weft_port_ethdev_open(name, &opts, &port, why, sizeof(why)))
		fail_msg("%s", why);
	return port;
}

static void machine_open(struct machine *m, const char *pmd, unsigned int n, uint32_t ip,
			 uint8_t paths, void (*change)(struct fake_eth_port *))
{
	static unsigned int number;
	struct weft_lane_conf conf = {.paths = paths};
	char name[32], why[256] = "";

	snprintf(name, sizeof(name), "%s%u", pmd, number++);
	*m = (struct machine){.fake = fake_eth_add(name, fake_eth_pmd(pmd)), .n = n};
	if (change)
		change(m->fake);
	for (unsigned int q = 0; q < n; q++) {
		struct weft_raw_conf rc = {.ip = ip, .prefix = 24};
		struct weft_lane_open open = {
			.resource = "x",
			.options = "",
			.worker_id = dice() | 1,
			.iface_id = dice() | 1,
			.platform = &platform,
			.conf = &conf,
			.recv = on_recv,
			.event = on_event,
			.arg = &m->w[q],
		};

		m->w[q].port = open_queue(m->fake, (uint16_t)n);
		assert_int_equal(m->w[q].port->udp_port, n > 1 ? 9338 + q : 0);
		if (weft_raw_iface_open(m->w[q].port, &rc, &open, &m->w[q].iface, why, sizeof(why)))
			fail_msg("%s", why);
	}
}

static void machine_close(struct machine *m)
{
	for (unsigned int q = 0; q < m->n; q++)
		m->w[q].iface->ops->close(m->w[q].iface);
}

static void run(struct machine *m)
{
	for (unsigned int q = 0; q < m->n; q++) {
		m->w[q].iface->ops->progress(m->w[q].iface, real_now(NULL));
		m->w[q].iface->ops->tx_flush(m->w[q].iface);
	}
}

static unsigned int sum(const struct machine *m, size_t field)
{
	unsigned int n = 0;

	for (unsigned int q = 0; q < m->n; q++)
		n += *(const unsigned int *)(const void *)((const char *)&m->w[q] + field);
	return n;
}

#define SUM(m, field) sum(m, offsetof(struct worker, field))

static void count(const char *name, uint64_t value, void *arg)
{
	if (!strcmp(name, "steer.elsewhere"))
		((struct worker *)arg)->counter += value;
}

static uint64_t elsewhere(struct machine *m)
{
	uint64_t n = 0;

	for (unsigned int q = 0; q < m->n; q++) {
		m->w[q].counter = 0;
		m->w[q].iface->ops->counters(m->w[q].iface, count, &m->w[q]);
		n += m->w[q].counter;
	}
	return n;
}

/* Runs until as many connections are up, or as many messages have come, at each. */
static void run_until(struct machine *a, struct machine *b, size_t field, unsigned int wanted)
{
	uint64_t end = real_now(NULL) + 60000000000ull;

	while (sum(a, field) + sum(b, field) < wanted) {
		if (real_now(NULL) > end)
			fail_msg("only %u of %u in a minute", sum(a, field) + sum(b, field),
				 wanted);
		run(a);
		run(b);
	}
}

static void connect_and_send(struct machine *a, struct machine *b)
{
	struct weft_lane_ep *ep[QUEUES][QUEUES];
	uint8_t addr[WEFT_LANE_ADDR_MAX], data[BYTES] = {[BYTES - 1] = 0x5a};
	uint64_t before;

	fake_eth_wire(a->fake, b->fake);
	fake_eth_skip(5000); /* links come up late */
	for (unsigned int i = 0; i < a->n; i++)
		for (unsigned int k = 0; k < b->n; k++) {
			b->w[k].iface->ops->get_address(b->w[k].iface, addr);
			assert_int_equal(a->w[i].iface->ops->ep_connect(
						 a->w[i].iface, addr,
						 b->w[k].iface->attr.dev_addr_len, NULL, &ep[i][k]),
					 0);
		}
	run_until(a, b, offsetof(struct worker, up), 2 * a->n * b->n);
	assert_int_equal(SUM(a, down) + SUM(b, down), 0);
	for (unsigned int i = 0; i < 100; i++) {
		run(a);
		run(b);
	}
	before = elsewhere(a) + elsewhere(b);
	for (unsigned int i = 0; i < a->n; i++)
		for (unsigned int k = 0; k < b->n; k++)
			assert_true(a->w[i].iface->ops->am_short(ep[i][k], 3, NULL, 0, data,
								 sizeof(data)) >= 0);
	run_until(a, b, offsetof(struct worker, got), a->n * b->n);
	if (SUM(a, warned) + SUM(b, warned) == 0)
		assert_int_equal(elsewhere(a) + elsewhere(b), before);
}

static void pair(const char *pa, unsigned int na, const char *pb, unsigned int nb, uint8_t paths,
		 void (*change)(struct fake_eth_port *), unsigned int warned)
{
	static struct machine a, b;

	machine_open(&a, pa, na, 0x0a000001, paths, change);
	machine_open(&b, pb, nb, 0x0a000002, paths, change);
	connect_and_send(&a, &b);
	/* The connecting end always knows; the other end where the wrong queue is its own. */
	assert_int_equal(SUM(&a, warned), warned);
	assert_in_range(SUM(&b, warned), 0, warned);
	machine_close(&a);
	machine_close(&b);
	fake_eth_reset();
}

static void workers_share_ports_that_report_their_hash(void **state)
{
	(void)state;
	pair("net_ena", 2, "net_ena", 2, 1, NULL, 0);
	pair("net_ena", 4, "net_ena", 1, 3, NULL, 0);
	pair("net_ixgbe_vf", 3, "net_iavf", 4, 2, NULL, 0);
}

static void keep_the_key(struct fake_eth_port *p)
{
	fake_eth_traits(p)->key_untold = true;
}

static void workers_share_ports_that_report_no_key(void **state)
{
	(void)state;
	pair("net_ena", 2, "net_ena", 3, 2, keep_the_key, 0);
	pair("net_ena", 4, "net_ena", 4, 1, keep_the_key, 0);
}

static void do_not_spread(struct fake_eth_port *p)
{
	fake_eth_traits(p)->rss_hf = 0;
}

/* Answers to the second worker come to the first: it warns. */
static void a_port_that_does_not_spread_is_shared_with_a_warning(void **state)
{
	(void)state;
	pair("net_ena", 2, "net_ena", 1, 1, do_not_spread, 1);
}

/* 16 bits again and again: a flow and its way back have the same hash. */
static void hash_both_ways_alike(struct fake_eth_port *p)
{
	uint8_t key[40];
	struct rte_eth_rss_conf conf = {
		.rss_key = key,
		.rss_key_len = sizeof(key),
		.rss_hf = RTE_ETH_RSS_NONFRAG_IPV4_UDP,
	};

	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = i % 2 ? 0x5a : 0x6d;
	assert_int_equal(rte_eth_dev_rss_hash_update(fake_eth_id(p), &conf), 0);
}

static void hash_both_ways_alike_and_report_no_key(struct fake_eth_port *p)
{
	hash_both_ways_alike(p);
	keep_the_key(p);
}

/*
 * The hash of a flow is the same at both ends, so of 8 x 8 pairs of workers the 8 with equal queues
 * find a port, of 8 x 2 those with equal queues modulo 2, and the others do not: each of these has
 * its warning, and its messages.
 */
static void workers_that_no_port_suits_are_connected_with_a_warning(void **state)
{
	(void)state;
	pair("net_ena", 8, "net_ena", 8, 1, hash_both_ways_alike, 56);
	pair("net_ena", 8, "net_ena", 2, 1, hash_both_ways_alike_and_report_no_key, 8);
}

static void what_is_reported_of_the_hash_is_what_the_port_does(void **state)
{
	struct fake_eth_port *fake = fake_eth_add("told", fake_eth_pmd("net_ena"));
	struct weft_frame_port *port[QUEUES];
	uint32_t src, dst;
	uint16_t sport, dport;

	(void)state;
	for (uint16_t q = 0; q < QUEUES; q++)
		port[q] = open_queue(fake, QUEUES);
	assert_true(port[3]->steering.hashed);
	assert_int_equal(port[3]->steering.queue, 3);
	assert_int_equal(port[3]->steering.queues, QUEUES);
	assert_non_null(port[3]->steering.rss);
	for (unsigned int i = 0; i < 1000; i++) {
		src = dice();
		dst = dice();
		sport = (uint16_t)dice();
		dport = (uint16_t)dice();
		assert_int_equal(weft_rss_queue(port[3]->steering.rss, src, dst, sport, dport),
				 fake_eth_rss_queue(fake, src, dst, sport, dport));
	}
	for (uint16_t q = 0; q < QUEUES; q++)
		port[q]->ops->close(port[q]);
	fake_eth_reset();
}

static void ports_beyond_65535_are_refused(void **state)
{
	struct fake_eth_port *fake = fake_eth_add("high", fake_eth_pmd("net_ena"));
	struct weft_port_opts opts = {.udp_port = 65534, .queues = 4};
	struct weft_frame_port *port;
	char name[16], why[256] = "";

	(void)state;
	snprintf(name, sizeof(name), "%u", fake_eth_id(fake));
	assert_int_equal(weft_port_ethdev_open(name, &opts, &port, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "beyond 65535"));
	assert_non_null(strstr(why, "port="));
	fake_eth_reset();
}

static void hint(uint32_t mbps, uint16_t mtu, unsigned int paths, const char *wanted)
{
	char text[320];

	weft_port_flow_hint("net_ena", mbps, mtu, paths, text, sizeof(text));
	if (*wanted ? !strstr(text, wanted) : *text)
		fail_msg("\"%s\" instead of \"%s\"", text, wanted);
}

static void a_link_of_aws_needs_a_path_for_every_5_gbit(void **state)
{
	char text[320];

	(void)state;
	hint(25000, 9001, 1, "25 Gb/s needs paths=5, or paths=3 in a cluster placement group");
	hint(25000, 9001, 4, "needs paths=5");
	hint(25000, 9001, 5, "");
	hint(25000, 1500, 5, "mtu=9001");
	hint(25000, 1500, 1, "1 at most; inside a VPC mtu=9001 is carried");
	hint(100000, 9001, 1, "needs paths=16, or paths=10");
	hint(5000, 9001, 1, "");
	hint(0, 9001, 1, "paths=N/5");
	weft_port_flow_hint("net_virtio", 25000, 1500, 1, text, sizeof(text));
	assert_string_equal(text, "");
	weft_port_flow_hint(NULL, 25000, 1500, 1, text, sizeof(text));
	assert_string_equal(text, "");
}

static int start(void **state)
{
	(void)state;
	test_eal_init("512");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_reported_of_the_hash_is_what_the_port_does),
		cmocka_unit_test(workers_share_ports_that_report_their_hash),
		cmocka_unit_test(workers_share_ports_that_report_no_key),
		cmocka_unit_test(a_port_that_does_not_spread_is_shared_with_a_warning),
		cmocka_unit_test(workers_that_no_port_suits_are_connected_with_a_warning),
		cmocka_unit_test(ports_beyond_65535_are_refused),
		cmocka_unit_test(a_link_of_aws_needs_a_path_for_every_5_gbit),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
