/* SPDX-License-Identifier: BSD-3-Clause */

/* The fake ports do what they say, so that tests over them mean something. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "eal.h"
#include "fake/fake_ethdev.h"

/* RTE_IPV4() shifts an int, whose highest bit addresses from 128 on would reach. */
static uint32_t ipv4(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	return a << 24 | b << 16 | c << 8 | d;
}

static struct rte_mempool *pool;

static int tidy(void **state)
{
	(void)state;
	fake_eth_reset();
	assert_int_equal(rte_mempool_avail_count(pool), pool->size);
	return 0;
}

static void bring_up(struct fake_eth_port *p, const struct rte_eth_conf *conf, uint16_t queues)
{
	uint16_t id = fake_eth_id(p), nb_rx = 512, nb_tx = 256, q;

	assert_int_equal(rte_eth_dev_configure(id, queues, queues, conf), 0);
	assert_int_equal(rte_eth_dev_adjust_nb_rx_tx_desc(id, &nb_rx, &nb_tx), 0);
	for (q = 0; q < queues; q++) {
		assert_int_equal(rte_eth_rx_queue_setup(id, q, nb_rx, 0, NULL, pool), 0);
		assert_int_equal(rte_eth_tx_queue_setup(id, q, nb_tx, 0, NULL), 0);
	}
	assert_int_equal(rte_eth_dev_start(id), 0);
	fake_eth_skip(2000);
}

static struct fake_eth_port *up(const char *pmd, const char *name)
{
	const struct rte_eth_conf conf = {0};
	struct fake_eth_port *p = fake_eth_add(name, fake_eth_pmd(pmd));

	bring_up(p, &conf, 1);
	return p;
}

static struct rte_mbuf *some(uint32_t len, uint8_t with)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	assert_non_null(m);
	memset(rte_pktmbuf_append(m, (uint16_t)len), with, len);
	return m;
}

static void frames_pass_between_wired_ports(void **state)
{
	struct fake_eth_port *a = up("net_ena", "a"), *b = up("net_ena", "b");
	struct rte_mbuf *m = some(1000, 7), *got[4];

	(void)state;
	fake_eth_wire(a, b);
	assert_int_equal(rte_eth_tx_burst(fake_eth_id(a), 0, &m, 1), 1);
	/* Read after the call has returned. */
	rte_pktmbuf_mtod(m, uint8_t *)[999] = 8;
	assert_int_equal(rte_eth_rx_burst(fake_eth_id(b), 0, got, 4), 1);
	assert_int_equal(got[0]->pkt_len, 1000);
	assert_int_equal(got[0]->nb_segs, 1);
	assert_int_equal(rte_pktmbuf_mtod(got[0], uint8_t *)[0], 7);
	assert_int_equal(rte_pktmbuf_mtod(got[0], uint8_t *)[999], 8);
	rte_pktmbuf_free(got[0]);
}

static void sent_mbufs_come_back_late_or_when_requested(void **state)
{
	struct fake_eth_port *v = up("net_virtio", "v"), *e = up("net_ena", "e");
	unsigned int before = rte_mempool_avail_count(pool), i;
	struct rte_mbuf *m;

	(void)state;
	for (i = 0; i < 100; i++) {
		m = some(60, 1);
		assert_int_equal(rte_eth_tx_burst(fake_eth_id(v), 0, &m, 1), 1);
		m = some(60, 1);
		assert_int_equal(rte_eth_tx_burst(fake_eth_id(e), 0, &m, 1), 1);
	}
	assert_int_equal(rte_mempool_avail_count(pool), before - 200);
	assert_int_equal(rte_eth_tx_done_cleanup(fake_eth_id(v), 0, 0), -ENOTSUP);
	assert_int_equal(rte_eth_tx_done_cleanup(fake_eth_id(e), 0, 0), 100);
	assert_int_equal(rte_mempool_avail_count(pool), before - 100);
	for (i = 0; i < 200; i++) {
		m = some(60, 1);
		assert_int_equal(rte_eth_tx_burst(fake_eth_id(v), 0, &m, 1), 1);
	}
	assert_true(rte_mempool_avail_count(pool) > before - 256);
}

static void rings_are_cut_without_a_word(void **state)
{
	struct fake_eth_port *v = up("net_virtio", "v");

	(void)state;
	assert_int_equal(fake_eth_rx_ring(v, 0), 256);
	assert_int_equal(fake_eth_rx_posted(v, 0), 256);
	for (unsigned int i = 0; i < 300; i++)
		fake_eth_input(v, (const uint8_t[60]){0}, 60);
	assert_int_equal(fake_eth_count(v)->rx_frames, 256);
	assert_int_equal(fake_eth_count(v)->rx_no_buffer, 44);
}

static void frames_longer_than_what_the_nic_uses_of_a_buffer_come_as_chains(void **state)
{
	struct fake_eth_port *e = up("net_e1000_em", "e");
	static uint8_t frame[1514];
	struct rte_mbuf *m;

	(void)state;
	/* 1600 bytes of room are 1024 for this PMD. */
	memset(frame, 5, sizeof(frame));
	assert_true(fake_eth_input(e, frame, sizeof(frame)));
	assert_int_equal(rte_eth_rx_burst(fake_eth_id(e), 0, &m, 1), 1);
	assert_int_equal(m->nb_segs, 2);
	assert_int_equal(m->data_len, 1024);
	assert_int_equal(m->next->data_len, 1514 - 1024);
	rte_pktmbuf_free(m);
}

static void a_buffer_too_small_is_refused_as_the_pmd_does(void **state)
{
	static const struct {
		const char *pmd;
		uint16_t mtu;
		int rc;
	} all[] = {
		{"net_virtio", 1500, 0},       {"net_virtio", 1570, 0}, /* 1600 */
		{"net_virtio", 1571, -EINVAL}, {"mlx5_pci", 1582, 0},
		{"mlx5_pci", 1583, -ENOSPC},   {"net_vmxnet3", 1500, -EINVAL},
		{"net_gve", 1460, -EINVAL},    {"net_iavf", 9000, 0},
	};
	struct rte_eth_conf conf = {0};
	struct fake_eth_port *p;

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(all); i++) {
		p = fake_eth_add("p", fake_eth_pmd(all[i].pmd));
		conf.rxmode.mtu = all[i].mtu;
		assert_int_equal(rte_eth_dev_configure(fake_eth_id(p), 1, 1, &conf), 0);
		if (rte_eth_rx_queue_setup(fake_eth_id(p), 0, 1024, 0, NULL, pool) != all[i].rc)
			fail_msg("%s at %u", all[i].pmd, all[i].mtu);
	}
}

static void links_come_late(void **state)
{
	struct fake_eth_port *e = up("net_e1000_em", "e");
	uint16_t id = fake_eth_id(e);
	struct rte_eth_link link;

	(void)state;
	fake_eth_plug(e, false);
	fake_eth_plug(e, true);
	assert_int_equal(rte_eth_link_get_nowait(id, &link), 0);
	assert_int_equal(link.link_status, RTE_ETH_LINK_DOWN);
	fake_eth_skip(2000);
	assert_int_equal(rte_eth_link_get_nowait(id, &link), 0);
	assert_int_equal(link.link_status, RTE_ETH_LINK_UP);
	assert_int_equal(link.link_speed, 1000);
}

static int count_event(uint16_t id, enum rte_eth_event_type type, void *arg, void *ret)
{
	(void)id;
	(void)ret;
	((unsigned int *)arg)[type]++;
	return 0;
}

static void events_reach_the_owner_and_the_port_is_dead(void **state)
{
	struct fake_eth_port *e = up("net_ena", "e");
	unsigned int seen[RTE_ETH_EVENT_MAX] = {0};
	struct rte_mbuf *m = some(60, 1);
	uint16_t id = fake_eth_id(e);

	(void)state;
	rte_eth_dev_callback_register(id, RTE_ETH_EVENT_INTR_RESET, count_event, seen);
	rte_eth_dev_callback_register(id, RTE_ETH_EVENT_INTR_RMV, count_event, seen);
	fake_eth_break(e);
	assert_int_equal(seen[RTE_ETH_EVENT_INTR_RESET], 1);
	assert_int_equal(rte_eth_tx_burst(id, 0, &m, 1), 0);
	rte_eth_dev_stop(id);
	assert_int_equal(rte_eth_dev_start(id), -EIO);
	assert_int_equal(rte_eth_dev_reset(id), 0);
	bring_up(e, &(const struct rte_eth_conf){0}, 1);
	assert_int_equal(rte_eth_tx_burst(id, 0, &m, 1), 1);
	fake_eth_remove(e);
	assert_int_equal(seen[RTE_ETH_EVENT_INTR_RMV], 1);
	assert_int_equal(rte_eth_dev_is_removed(id), 1);
	fake_eth_return(e);
	bring_up(e, &(const struct rte_eth_conf){0}, 1);
}

/* The example of Microsoft's verification suite. */
static void rss_is_toeplitz(void **state)
{
	static uint8_t key[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
				  0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
				  0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
				  0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
	struct rte_eth_conf conf = {
		.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS,
		.rx_adv_conf.rss_conf = {.rss_key = key,
					 .rss_key_len = 40,
					 .rss_hf = RTE_ETH_RSS_NONFRAG_IPV4_UDP},
	};
	struct fake_eth_port *e = fake_eth_add("e", fake_eth_pmd("net_ena"));

	(void)state;
	bring_up(e, &conf, 8);
	/* 66.9.149.187:2794 to 161.142.100.80:1766 hashes to 0x51ccc178; 128 entries, 8 queues */
	assert_int_equal(fake_eth_rss_queue(e, ipv4(66, 9, 149, 187), ipv4(161, 142, 100, 80), 2794,
					    1766),
			 0x78 % 128 % 8);
	/* 199.92.111.2:14230 to 65.69.140.83:4739 is 0xc626b0ea */
	assert_int_equal(fake_eth_rss_queue(e, ipv4(199, 92, 111, 2), ipv4(65, 69, 140, 83), 14230,
					    4739),
			 0x6a % 128 % 8);
}

static void a_device_that_filters_vlans_drops_what_is_not_in_its_table(void **state)
{
	const struct rte_eth_conf conf = {.rxmode.offloads = RTE_ETH_RX_OFFLOAD_VLAN_FILTER};
	struct fake_eth_port *v = fake_eth_add("v", fake_eth_pmd("net_virtio"));
	uint8_t frame[64] = {[12] = 0x81, [15] = 5, [16] = 8};

	(void)state;
	bring_up(v, &conf, 1);
	assert_false(fake_eth_input(v, frame, sizeof(frame)));
	assert_int_equal(rte_eth_dev_vlan_filter(fake_eth_id(v), 5, 1), 0);
	assert_true(fake_eth_input(v, frame, sizeof(frame)));
	assert_int_equal(fake_eth_count(v)->rx_vlan, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(frames_pass_between_wired_ports, tidy),
		cmocka_unit_test_teardown(sent_mbufs_come_back_late_or_when_requested, tidy),
		cmocka_unit_test_teardown(rings_are_cut_without_a_word, tidy),
		cmocka_unit_test_teardown(
			frames_longer_than_what_the_nic_uses_of_a_buffer_come_as_chains, tidy),
		cmocka_unit_test_teardown(a_buffer_too_small_is_refused_as_the_pmd_does, tidy),
		cmocka_unit_test_teardown(links_come_late, tidy),
		cmocka_unit_test_teardown(events_reach_the_owner_and_the_port_is_dead, tidy),
		cmocka_unit_test_teardown(rss_is_toeplitz, tidy),
		cmocka_unit_test_teardown(
			a_device_that_filters_vlans_drops_what_is_not_in_its_table, tidy),
	};

	test_eal_init("256");
	pool = rte_pktmbuf_pool_create("fake", 8191, 0, 0, RTE_PKTMBUF_HEADROOM + 1600, 0);
	if (!pool)
		return 1;
	return cmocka_run_group_tests_name("fake_ethdev", tests, NULL, NULL);
}
