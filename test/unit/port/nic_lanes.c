/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The whole library over ports of NICs: two workers, a cable, and what each PMD does to frames.
 * Every byte is compared.
 */

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_cycles.h>
#include <rte_random.h>

#include "eal.h"
#include "fake/fake_ethdev.h"
#include "lane.h"
#include "weft.h"

#define SECONDS 20 /* loaded machines */
#define LARGE 300000

/* The library refers to its drivers weakly: named here, so that the program gets this one. */
extern const struct weft_lane_driver weft_dpdk_driver;

struct pair {
	struct fake_eth_port *nic[2];
	struct weft_context *ctx;
	struct weft_worker *worker[2];
	struct weft_ep *ep[2];
};

static struct pair w;
static unsigned int ended;
static bool closing; /* what has not ended by now is canceled */

static void check(int rc, const char *what)
{
	if (rc < 0)
		fail_msg("%s (%s to %s): %s", what, fake_eth_traits(w.nic[0])->pmd,
			 fake_eth_traits(w.nic[1])->pmd, weft_strerror(rc));
}

static int tidy(void **state)
{
	(void)state;
	closing = true;
	for (unsigned int i = 0; i < 2; i++)
		if (w.worker[i])
			weft_worker_destroy(w.worker[i]);
	if (w.ctx)
		weft_context_destroy(w.ctx);
	memset(&w, 0, sizeof(w));
	closing = false;
	fake_eth_reset();
	return 0;
}

/* The link comes late for some, and time passes at once. */
static void progress_until(const unsigned int *what, unsigned int wanted, unsigned int ports)
{
	uint64_t end = rte_get_tsc_cycles() + SECONDS * rte_get_tsc_hz();

	while (*what < wanted && rte_get_tsc_cycles() < end)
		for (unsigned int i = 0; i < 2; i++)
			if (ports >> i & 1)
				weft_worker_progress(w.worker[i]);
	if (*what < wanted)
		fail_msg("%s to %s: %u of %u", fake_eth_traits(w.nic[0])->pmd,
			 fake_eth_traits(w.nic[1])->pmd, *what, wanted);
}

static void on_end(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	(void)req;
	(void)arg;
	if (!closing)
		check(c->status, "message");
	ended++;
}

static void connect_workers(const char *options)
{
	struct weft_ep_params ep_params = WEFT_INIT(struct weft_ep_params);
	struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params);
	char lanes[64];
	size_t len;
	void *addr;

	check(weft_context_create(NULL, &w.ctx), "context");
	fake_eth_wire(w.nic[0], w.nic[1]);
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(lanes, sizeof(lanes), "dpdk:%u%s", fake_eth_id(w.nic[i]), options);
		wp.lanes = lanes;
		check(weft_worker_create(w.ctx, &wp, &w.worker[i]), "worker");
	}
	fake_eth_skip(2000);
	for (unsigned int i = 0; i < 2; i++) {
		check(weft_worker_get_address(w.worker[1 - i], &addr, &len), "address");
		ep_params.address = addr;
		ep_params.address_length = len;
		check(weft_ep_create(w.worker[i], &ep_params, &w.ep[i]), "endpoint");
		weft_worker_release_address(w.worker[1 - i], addr);
	}
}

/* @p length bytes each way. */
static void exchange(size_t length)
{
	static uint8_t out[2][LARGE], in[2][LARGE];
	struct weft_op_params op = WEFT_INIT(struct weft_op_params, .cb = on_end);
	unsigned int i;

	ended = 0;
	for (i = 0; i < 2; i++) {
		for (size_t k = 0; k < length; k++)
			out[i][k] = (uint8_t)rte_rand();
		memset(in[i], 0, length);
		check(weft_tag_recv(w.worker[i], NULL, in[i], length, 7, WEFT_TAG_MASK_FULL, &op,
				    NULL),
		      "receive");
	}
	for (i = 0; i < 2; i++)
		check(weft_tag_send(w.ep[i], out[i], length, 7, NULL, NULL), "send");
	progress_until(&ended, 2, 3);
	for (i = 0; i < 2; i++)
		assert_memory_equal(in[i], out[1 - i], length);
}

static void open_pair(const struct fake_eth_traits *a, const struct fake_eth_traits *b,
		      const char *options)
{
	w.nic[0] = fake_eth_add("nic0", a);
	w.nic[1] = fake_eth_add("nic1", b);
	connect_workers(options);
}

static void exchange_all(void)
{
	exchange(8);
	exchange(1000);
	exchange(20000);
	exchange(LARGE);
}

static void messages_pass_between_all_pmds_in_whole_frames(void **state)
{
	const struct fake_eth_traits *a, *b;

	(void)state;
	for (unsigned int n = 0; (a = fake_eth_pmd_nth(n)) != NULL; n++) {
		b = fake_eth_pmd_nth(n + 1) ? fake_eth_pmd_nth(n + 1) : fake_eth_pmd_nth(0);
		open_pair(a, b, ",mtu=1460");
		exchange_all();
		for (unsigned int i = 0; i < 2; i++) {
			assert_int_equal(fake_eth_count(w.nic[i])->rx_chained, 0);
			assert_int_equal(fake_eth_count(w.nic[i])->tx_cut, 0);
			assert_int_equal(fake_eth_count(w.nic[i])->tx_unsummed, 0);
		}
		tidy(NULL);
	}
}

static void messages_pass_over_a_vlan_that_devices_filter(void **state)
{
	(void)state;
	open_pair(fake_eth_pmd("net_virtio"), fake_eth_pmd("net_iavf"), ",vlan=5");
	exchange_all();
	assert_int_equal(fake_eth_count(w.nic[0])->rx_vlan, 0);
}

static void the_nic_sums_where_it_supports_udp_alone(void **state)
{
	(void)state;
	open_pair(fake_eth_pmd("net_virtio"), fake_eth_pmd("net_vmxnet3"), ",csum=udp");
	exchange_all();
	assert_true(fake_eth_count(w.nic[0])->tx_summed > 100);
	assert_true(fake_eth_count(w.nic[1])->tx_summed > 100);
}

struct counter {
	const char *name;
	uint64_t value;
};

static void find_counter(const char *name, uint64_t value, void *arg)
{
	struct counter *c = arg;
	size_t len = strlen(name), want = strlen(c->name);

	if (len >= want && !strcmp(name + len - want, c->name))
		c->value += value;
}

static uint64_t counted(unsigned int i, const char *name)
{
	struct counter c = {.name = name};

	weft_worker_counters(w.worker[i], find_counter, &c);
	return c.value;
}

static void what_is_longer_than_any_buffer_of_the_nic_is_placed_from_its_buffers(void **state)
{
	uint64_t chained, before;

	(void)state;
	/* Else a frame that waited for the window may have company, and be put together. */
	assert_int_equal(setenv("WEFT_CC", "fixed", 1), 0);
	open_pair(fake_eth_pmd("net_hns3"), fake_eth_pmd("mlx5_pci"), ",mtu=9000");
	unsetenv("WEFT_CC");
	exchange_all();
	chained = fake_eth_count(w.nic[0])->rx_chained;
	before = counted(0, "rx.chained.copied");
	for (unsigned int i = 0; i < 10; i++)
		exchange(LARGE);
	/* Every byte was right, and no frame of data was put together first. */
	assert_true(fake_eth_count(w.nic[0])->rx_chained > chained + 200);
	assert_int_equal(counted(0, "rx.chained.copied"), before);
	assert_int_equal(fake_eth_count(w.nic[1])->rx_chained, 0);
}

/* Without a checksum that the NIC has seen, or with little in the first buffer: put together. */
static void other_chains_are_put_together(void **state)
{
	struct fake_eth_traits t = *fake_eth_pmd("net_hns3");

	(void)state;
	t.rx_capa = RTE_ETH_RX_OFFLOAD_SCATTER;
	open_pair(&t, &t, ",mtu=9000,csum=crc32c");
	exchange_all();
	assert_true(counted(0, "rx.chained.copied") > 10);
}

/* @p stuck: the sender's NIC reads nothing until all have been sent. */
static void flood(bool stuck)
{
	struct weft_op_params op = WEFT_INIT(struct weft_op_params, .cb = on_end);
	static uint8_t out[400][1200], in[400][1200];
	unsigned int i;

	exchange(8);
	ended = 0;
	memset(in, 0, sizeof(in));
	fake_eth_traits(w.nic[0])->tx_stuck = stuck;
	for (i = 0; i < 400; i++) {
		memset(out[i], (int)i, sizeof(out[i]));
		check(weft_tag_recv(w.worker[1], NULL, in[i], sizeof(in[i]), i, WEFT_TAG_MASK_FULL,
				    &op, NULL),
		      "receive");
		check(weft_tag_send(w.ep[0], out[i], sizeof(out[i]), i, NULL, NULL), "send");
	}
	for (i = 0; i < 200; i++)
		weft_worker_progress(w.worker[0]);
	fake_eth_traits(w.nic[0])->tx_stuck = false;
	progress_until(&ended, 400, 3);
	assert_memory_equal(in, out, sizeof(in));
	assert_int_equal(fake_eth_count(w.nic[1])->rx_no_buffer, 0);
}

static void a_peer_that_does_not_poll_loses_nothing_from_its_short_ring(void **state)
{
	struct fake_eth_traits t = *fake_eth_pmd("net_virtio");

	(void)state;
	t.rx_ring = t.tx_ring = 64;
	/* Else the window may be larger than the ring: it follows the measured rate. */
	assert_int_equal(setenv("WEFT_CC", "fixed", 1), 0);
	open_pair(&t, &t, "");
	unsetenv("WEFT_CC");
	flood(false);
}

static void a_send_ring_that_alone_was_cut_loses_nothing(void **state)
{
	struct fake_eth_traits t = *fake_eth_pmd("net_virtio");

	(void)state;
	t.rx_ring = 512;
	t.tx_ring = 64;
	/* Else the window is the shorter one: a slow machine measures little bandwidth. */
	assert_int_equal(setenv("WEFT_CC", "fixed", 1), 0);
	assert_int_equal(setenv("WEFT_WINDOW", "512k", 1), 0);
	for (unsigned int reported = 0; reported < 2; reported++) {
		t.tx_ring_reported = reported;
		open_pair(&t, &t, "");
		flood(true);
		/* Its ring was full, which was no loss. */
		assert_int_equal(counted(0, ".tx.retransmit.fast"), 0);
		assert_true(counted(0, ".tx.ring_full") > 0);
		tidy(NULL);
	}
	unsetenv("WEFT_CC");
	unsetenv("WEFT_WINDOW");
}

/* ---- what is said --------------------------------------------------------------------------- */

static int log_file = -1;

/* A context that logs into memory. */
static void open_context_with_log(const char *level)
{
	struct weft_context_params p = WEFT_INIT(struct weft_context_params);
	struct weft_config *config;
	char path[40];

	log_file = memfd_create("log", 0);
	assert_true(log_file >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", log_file);
	check(weft_config_read(&config), "configuration");
	check(weft_config_modify(config, "LOG_LEVEL", level), "level");
	check(weft_config_modify(config, "LOG_FILE", path), "file");
	p.config = config;
	check(weft_context_create(&p, &w.ctx), "context");
	weft_config_release(config);
}

static const char *logged(void)
{
	static char text[16384];
	ssize_t n = pread(log_file, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static int tidy_log(void **state)
{
	struct weft_context *ctx = NULL;

	tidy(state);
	/* The log goes where it went before. */
	if (weft_context_create(NULL, &ctx) == 0)
		weft_context_destroy(ctx);
	close(log_file);
	log_file = -1;
	return 0;
}

static int open_lane(unsigned int n, const char *options)
{
	struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params);
	char lanes[64];

	snprintf(lanes, sizeof(lanes), "dpdk:%u%s", fake_eth_id(w.nic[0]), options);
	wp.lanes = lanes;
	return weft_worker_create(w.ctx, &wp, &w.worker[n]);
}

static void a_lane_over_ena_logs_the_paths_that_its_link_needs(void **state)
{
	struct fake_eth_traits t = *fake_eth_pmd("net_ena");

	(void)state;
	t.speed = 50000;
	w.nic[0] = w.nic[1] = fake_eth_add("0000:00:06.0", &t);
	open_context_with_log("info");
	check(open_lane(0, ",mtu=9001"), "worker");
	if (!strstr(logged(), "this link of 50 Gb/s needs paths=10, or paths=5 in a cluster "
			      "placement group (10 Gb/s a flow), and has 8 at most"))
		fail_msg("%s", logged());
	weft_worker_destroy(w.worker[0]);
	w.worker[0] = NULL;
	assert_int_equal(ftruncate(log_file, 0), 0);
	check(open_lane(0, ",mtu=9001,paths=10"), "worker");
	assert_null(strstr(logged(), "AWS"));
}

/* ARP comes to the first queue, whose worker answers for one address, in one VLAN. */
static void workers_on_one_port_have_one_address(void **state)
{
	static const struct {
		const char *options, *logs[2];
	} other[] = {
		{",ip=10.0.0.2/24", {"10.0.0.1", "10.0.0.2"}},
		{"", {"10.0.0.1", "169.254."}},
		{",ip=10.0.0.1/24,vlan=5", {"in VLAN 0", "wants 5"}},
		{",encap=ether", {"queues=2", "encap=ether"}},
	};

	(void)state;
	w.nic[0] = w.nic[1] = fake_eth_add("0000:00:06.0", fake_eth_pmd("net_ixgbe"));
	open_context_with_log("error");
	check(open_lane(0, ",queues=2,ip=10.0.0.1/24"), "worker");
	for (unsigned int i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		assert_int_equal(ftruncate(log_file, 0), 0);
		assert_true(open_lane(1, other[i].options) < 0);
		if (!strstr(logged(), "0000:00:06.0") || !strstr(logged(), other[i].logs[0]) ||
		    !strstr(logged(), other[i].logs[1]))
			fail_msg("'%s': %s", other[i].options, logged());
	}
	check(open_lane(1, ",ip=10.0.0.1/24"), "second worker");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(messages_pass_between_all_pmds_in_whole_frames, tidy),
		cmocka_unit_test_teardown(messages_pass_over_a_vlan_that_devices_filter, tidy),
		cmocka_unit_test_teardown(the_nic_sums_where_it_supports_udp_alone, tidy),
		cmocka_unit_test_teardown(
			what_is_longer_than_any_buffer_of_the_nic_is_placed_from_its_buffers, tidy),
		cmocka_unit_test_teardown(other_chains_are_put_together, tidy),
		cmocka_unit_test_teardown(
			a_peer_that_does_not_poll_loses_nothing_from_its_short_ring, tidy),
		cmocka_unit_test_teardown(a_send_ring_that_alone_was_cut_loses_nothing, tidy),
		cmocka_unit_test_teardown(a_lane_over_ena_logs_the_paths_that_its_link_needs,
					  tidy_log),
		cmocka_unit_test_teardown(workers_on_one_port_have_one_address, tidy_log),
	};

	assert(weft_dpdk_driver.abi == WEFT_LANE_ABI);
	test_eal_init("256");
	return cmocka_run_group_tests_name("nic_lanes", tests, NULL, NULL);
}
