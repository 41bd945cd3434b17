/* SPDX-License-Identifier: BSD-3-Clause */

/* Ports of NICs open, whatever their PMD wants of buffers, rings, MTU, VLANs and offloads. */

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ethdev.h>

#include "eal.h"
#include "fake/fake_ethdev.h"
#include "port/conf.h"
#include "port/ethdev.h"
#include "port/port.h"

static struct weft_frame_port *opened[4]; /* closed after a test that fails, too */

static void close_port(struct weft_frame_port *port)
{
	for (unsigned int i = 0; i < RTE_DIM(opened); i++)
		if (opened[i] == port)
			opened[i] = NULL;
	port->ops->close(port);
}

static int tidy(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(opened); i++)
		if (opened[i])
			close_port(opened[i]);
	fake_eth_reset();
	return 0;
}

static struct weft_frame_port *try_open(struct fake_eth_port *f, const struct weft_port_opts *opts,
					int *rc, char why[300])
{
	struct weft_port_opts o = *opts;
	struct weft_frame_port *port = NULL;
	char id[8];

	o.rx_bufs = 32; /* little memory */
	why[0] = '\0';
	snprintf(id, sizeof(id), "%u", fake_eth_id(f));
	*rc = weft_port_ethdev_open(id, &o, &port, why, 300);
	for (unsigned int i = 0; port && i < RTE_DIM(opened); i++) {
		if (opened[i])
			continue;
		opened[i] = port;
		break;
	}
	return port;
}

static struct weft_frame_port *must_open(struct fake_eth_port *f, const struct weft_port_opts *opts)
{
	struct weft_frame_port *port;
	char why[300];
	int rc;

	port = try_open(f, opts, &rc, why);
	if (!port)
		fail_msg("%s: %s", fake_eth_traits(f)->pmd, why);
	return port;
}

static struct weft_frame_port *open_mtu(struct fake_eth_port *f, uint16_t mtu)
{
	const struct weft_port_opts opts = {.mtu = mtu};

	return must_open(f, &opts);
}

/* A frame as long as the port's, from the wire. @return its mbufs */
static unsigned int receive_longest(struct fake_eth_port *f, struct weft_frame_port *port)
{
	static uint8_t frame[UINT16_MAX];
	struct rte_mbuf *m;
	unsigned int segs;

	assert_true(fake_eth_input(f, frame, port->frame_size));
	assert_int_equal(port->ops->rx_burst(port, &m, 1), 1);
	assert_int_equal(m->pkt_len, port->frame_size);
	segs = m->nb_segs;
	rte_pktmbuf_free(m);
	return segs;
}

/* ---- buffers -------------------------------------------------------------------------------- */

/* The longest MTU that a PMD takes with a tag or without. */
static uint32_t mtu_max(const struct fake_eth_traits *t)
{
	return t->max_mtu != UINT16_MAX ? t->max_mtu : t->max_rx_pktlen - 18;
}

/* What the PMD's largest buffer holds; frames beyond come as chains. */
static uint32_t holds(const struct fake_eth_traits *t)
{
	return t->buffer ? t->buffer(UINT16_MAX - RTE_PKTMBUF_HEADROOM - 63) : UINT16_MAX;
}

static void check_mtu(const struct fake_eth_traits *t, uint32_t mtu, bool vlan)
{
	struct weft_port_dev d = {.frame_size = mtu + weft_port_l2(vlan), .vlan = vlan};
	uint32_t room, used;
	char why[200];
	bool chains;

	d.info.driver_name = t->driver;
	d.info.min_rx_bufsize = t->min_rx_bufsize;
	d.info.max_mtu = t->max_mtu;
	d.info.max_rx_pktlen = t->max_rx_pktlen;
	assert_int_equal(weft_port_limits_find(&d, why, sizeof(why)), 0);
	room = weft_port_pool_room(&d) - RTE_PKTMBUF_HEADROOM;
	used = t->buffer ? t->buffer(room) : room;
	chains = weft_port_rx_scatters(&d, room);
	if (room < t->min_rx_bufsize || room < t->least)
		fail_msg("%s, MTU %u: %u bytes are refused", t->pmd, mtu, room);
	if (t->strict && mtu + t->overhead > used && !chains)
		fail_msg("%s, MTU %u: %u bytes without scatter are refused", t->pmd, mtu, room);
	if (d.frame_size > used && (t->never_chains || d.frame_size + 32 <= holds(t)))
		fail_msg("%s, MTU %u: a frame of %u does not fit %u of %u bytes", t->pmd, mtu,
			 d.frame_size, used, room);
	if (mtu + t->overhead > used && mtu + 46 <= holds(t))
		fail_msg("%s, MTU %u: %u bytes, of which %u are used, make it scatter", t->pmd, mtu,
			 room, used);
	if (room > 2u * RTE_MAX(d.frame_size + 32, 2048u))
		fail_msg("%s, MTU %u: %u bytes are a waste", t->pmd, mtu, room);
}

static void a_whole_frame_fits_one_buffer_of_any_pmd_at_any_mtu(void **state)
{
	const struct fake_eth_traits *t;
	unsigned int n, checked = 0;
	uint32_t mtu;

	(void)state;
	for (n = 0; (t = fake_eth_pmd_nth(n)) != NULL; n++)
		for (mtu = 1280; mtu <= 9216 && mtu <= mtu_max(t); mtu++) {
			check_mtu(t, mtu, false);
			check_mtu(t, mtu, true);
			checked++;
		}
	assert_true(n >= 17 && checked > 60000);
}

/* A device may offer more than the usual 1460, and its PMD knows no chains. */
static void gve_with_page_lists_and_a_larger_mtu_uses_its_larger_buffers(void **state)
{
	struct fake_eth_traits t = *fake_eth_pmd("net_gve");

	(void)state;
	t.max_mtu = 4050;
	t.max_rx_pktlen = t.max_mtu + 14;
	t.never_chains = true;
	for (uint32_t mtu = 1280; mtu <= t.max_mtu; mtu++)
		check_mtu(&t, mtu, false);
}

static void every_pmd_opens_and_receives_whole_frames(void **state)
{
	static const uint16_t mtus[] = {1280, 1300, 1443, 1460, 1500, 1514, 1700,
					3900, 8896, 8995, 9000, 9001, 9010, 9216};
	const struct fake_eth_traits *t;
	struct weft_frame_port *port;
	struct fake_eth_port *f;
	unsigned int n, i, segs;

	(void)state;
	for (n = 0; (t = fake_eth_pmd_nth(n)) != NULL; n++) {
		for (i = 0; i < RTE_DIM(mtus); i++) {
			if (mtus[i] > mtu_max(t) || (t->no_set_mtu && mtus[i] > 1500))
				continue;
			f = fake_eth_add("nic", t);
			port = open_mtu(f, mtus[i]);
			fake_eth_skip(t->link_ms);
			segs = receive_longest(f, port);
			if (segs != 1 && port->frame_size + 32u <= holds(t))
				fail_msg("%s, MTU %u: %u mbufs", t->pmd, mtus[i], segs);
			close_port(port);
			fake_eth_reset();
		}
	}
}

static void scatter_is_requested_only_where_it_is_needed(void **state)
{
	struct fake_eth_port *v = fake_eth_add("v", fake_eth_pmd("net_virtio"));
	struct fake_eth_port *h = fake_eth_add("h", fake_eth_pmd("net_hns3"));
	struct weft_frame_port *port = open_mtu(v, 9001);

	(void)state;
	assert_false(port->rx_chained);
	assert_false(fake_eth_conf(v)->rxmode.offloads & RTE_ETH_RX_OFFLOAD_SCATTER);
	close_port(port);
	port = open_mtu(h, 9000);
	assert_true(port->rx_chained);
	assert_true(fake_eth_conf(h)->rxmode.offloads & RTE_ETH_RX_OFFLOAD_SCATTER);
	close_port(port);
	port = open_mtu(h, 1500);
	assert_false(fake_eth_conf(h)->rxmode.offloads & RTE_ETH_RX_OFFLOAD_SCATTER);
	close_port(port);
}

static void a_pmd_that_refuses_is_named_with_mtu_and_buffer(void **state)
{
	struct fake_eth_port *f = fake_eth_add("0000:00:05.0", fake_eth_pmd("net_virtio"));
	const struct weft_port_opts opts = {.mtu = 1500};
	char why[300];
	int rc;

	(void)state;
	fake_eth_traits(f)->least = 60000;
	assert_null(try_open(f, &opts, &rc, why));
	assert_int_equal(rc, -EINVAL);
	if (!strstr(why, "0000:00:05.0") || !strstr(why, "net_virtio") ||
	    !strstr(why, "MTU of 1500") || !strstr(why, "2048 bytes"))
		fail_msg("%s", why);
}

static void an_mtu_beyond_the_nic_is_named_with_its_limit(void **state)
{
	struct fake_eth_port *f = fake_eth_add("0000:00:06.0", fake_eth_pmd("net_gve"));
	struct fake_eth_port *n = fake_eth_add("vmbus", fake_eth_pmd("net_netvsc"));
	char why[300];
	int rc;

	(void)state;
	assert_null(try_open(f, &(const struct weft_port_opts){.mtu = 1500}, &rc, why));
	assert_int_equal(rc, -EINVAL);
	if (!strstr(why, "0000:00:06.0") || !strstr(why, "MTU 1460"))
		fail_msg("%s", why);
	assert_null(try_open(n, &(const struct weft_port_opts){.mtu = 2000}, &rc, why));
	if (!strstr(why, "vmbus") || !strstr(why, "MTU of 2000") || !strstr(why, "1500"))
		fail_msg("%s", why);
}

/* ---- lives ---------------------------------------------------------------------------------- */

static void a_port_opens_again_with_a_larger_mtu(void **state)
{
	static const uint16_t mtus[] = {1300, 1500, 9000, 1300, 9000};
	struct fake_eth_port *v = fake_eth_add("v", fake_eth_pmd("net_virtio"));
	struct weft_frame_port *port;

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(mtus); i++) {
		port = open_mtu(v, mtus[i]);
		assert_int_equal(fake_eth_mtu(v), mtus[i]);
		/* In buffers of the last life, perhaps. */
		receive_longest(v, port);
		close_port(port);
	}
	assert_int_equal(fake_eth_count(v)->mtu_early, 0);
	assert_int_equal(fake_eth_count(v)->stale_pool, 0);
}

static void no_pmd_reads_the_pool_of_a_queue_that_is_not_used_any_more(void **state)
{
	struct fake_eth_port *v = fake_eth_add("v", fake_eth_pmd("net_virtio"));
	struct weft_frame_port *port;
	struct weft_port_opts o = {.queues = 3, .vlan = 5, .no_extbuf = true};
	char why[300];
	int rc;

	(void)state;
	fake_eth_traits(v)->queues = 4;
	fake_eth_traits(v)->keeps_rx = false;
	fake_eth_traits(v)->vlan_filter_error = -EPERM;
	/* Its filter refuses, so the open fails after the queues have been set up. */
	port = try_open(v, &o, &rc, why);
	assert_null(port);
	assert_int_equal(rc, -EPERM);
	port = open_mtu(v, 1500);
	assert_int_equal(fake_eth_count(v)->stale_pool, 0);
	close_port(port);
}

/* ---- rings ---------------------------------------------------------------------------------- */

static void the_depth_of_a_ring_is_what_the_device_has(void **state)
{
	struct fake_eth_port *v = fake_eth_add("v", fake_eth_pmd("net_virtio"));
	struct fake_eth_port *e = fake_eth_add("e", fake_eth_pmd("net_ena"));
	struct weft_frame_port *port;

	(void)state;
	for (int life = 0; life < 3; life++) {
		port = open_mtu(v, 1500);
		assert_int_equal(port->rx_depth, 256);
		assert_int_equal(port->tx_depth, 256);
		close_port(port);
	}
	fake_eth_traits(e)->rx_ring = 128;
	fake_eth_traits(e)->tx_ring = 128;
	fake_eth_traits(e)->rx_spare = 1;
	port = open_mtu(e, 1500);
	assert_int_equal(port->rx_depth, 127);
	assert_int_equal(port->tx_depth, 127);
	close_port(port);
	fake_eth_traits(e)->rx_ring = 0;
	port = open_mtu(e, 1500);
	assert_int_equal(port->rx_depth, 511);
	close_port(port);
}

/* Send rings alone: the PMD reports, or nothing does and what is found is the most. */
static void the_depth_of_a_send_ring_is_what_the_pmd_reports(void **state)
{
	struct fake_eth_port *e = fake_eth_add("e", fake_eth_pmd("net_e1000_em"));
	struct weft_frame_port *port;

	(void)state;
	fake_eth_traits(e)->tx_ring = 64;
	port = open_mtu(e, 1500);
	assert_int_equal(port->rx_depth, 512);
	assert_int_equal(port->tx_depth, 64);
	close_port(port);
	/* A short ring for receiving does not shorten one that is reported. */
	fake_eth_traits(e)->rx_ring = 128;
	fake_eth_traits(e)->tx_ring = 0;
	port = open_mtu(e, 1500);
	assert_int_equal(port->rx_depth, 128);
	assert_int_equal(port->tx_depth, 256);
	close_port(port);
}

/* ---- VLANs ---------------------------------------------------------------------------------- */

static bool gets_tagged(struct fake_eth_port *f, struct weft_frame_port *port, uint8_t vlan)
{
	const uint8_t frame[64] = {[12] = 0x81, [15] = vlan, [16] = 8};
	struct rte_mbuf *m;

	fake_eth_skip(2000);
	fake_eth_input(f, frame, sizeof(frame));
	if (port->ops->rx_burst(port, &m, 1) == 0)
		return false;
	rte_pktmbuf_free(m);
	return true;
}

static void frames_of_the_vlan_are_let_in_by_any_pmd(void **state)
{
	const struct fake_eth_traits *t;
	struct weft_frame_port *port;
	struct fake_eth_port *f;

	(void)state;
	for (unsigned int n = 0; (t = fake_eth_pmd_nth(n)) != NULL; n++) {
		f = fake_eth_add("nic", t);
		port = must_open(f, &(const struct weft_port_opts){.vlan = 5, .mtu = 1400});
		if (!gets_tagged(f, port, 5))
			fail_msg("%s lets nothing in", t->pmd);
		if (t->filters_vlan && gets_tagged(f, port, 6))
			fail_msg("%s lets others in", t->pmd);
		close_port(port);
		assert_false(fake_eth_vlan(f, 5));
		fake_eth_reset();
	}
}

static void a_filter_that_refuses_a_vlan_is_named(void **state)
{
	struct fake_eth_port *f = fake_eth_add("0000:00:07.0", fake_eth_pmd("net_iavf"));
	char why[300];
	int rc;

	(void)state;
	fake_eth_traits(f)->vlan_filter_error = -EPERM;
	assert_null(try_open(f, &(const struct weft_port_opts){.vlan = 5}, &rc, why));
	assert_int_equal(rc, -EPERM);
	if (!strstr(why, "0000:00:07.0") || !strstr(why, "VLAN 5") || !strstr(why, "not permitted"))
		fail_msg("%s", why);
	fake_eth_traits(f)->vlan_filter_error = -ENOTSUP;
	close_port(must_open(f, &(const struct weft_port_opts){.vlan = 5}));
}

/* ---- offloads ------------------------------------------------------------------------------- */

static void only_offloads_that_are_used_are_requested(void **state)
{
	const uint64_t rx = RTE_ETH_RX_OFFLOAD_UDP_CKSUM, tx = RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	const struct fake_eth_traits *t;
	struct weft_frame_port *port;
	struct fake_eth_port *f;

	(void)state;
	for (unsigned int n = 0; (t = fake_eth_pmd_nth(n)) != NULL; n++) {
		f = fake_eth_add("nic", t);
		port = must_open(f, &(const struct weft_port_opts){.mtu = 1400});
		if (fake_eth_conf(f)->rxmode.offloads != (t->rx_capa & rx) ||
		    fake_eth_conf(f)->txmode.offloads != (t->tx_capa & tx))
			fail_msg("%s: rx %" PRIx64 " tx %" PRIx64, t->pmd,
				 fake_eth_conf(f)->rxmode.offloads,
				 fake_eth_conf(f)->txmode.offloads);
		/* UDP's sum alone is enough. */
		if (!(port->flags & WEFT_FRAME_PORT_TX_CSUM) != !(t->tx_capa & tx) ||
		    !(port->flags & WEFT_FRAME_PORT_RX_CSUM) != !(t->rx_capa & rx))
			fail_msg("%s: flags %x", t->pmd, port->flags);
		close_port(port);
		port = must_open(f, &(const struct weft_port_opts){.raw_ethertype = true});
		assert_int_equal(fake_eth_conf(f)->txmode.offloads, 0);
		close_port(port);
		port = must_open(f, &(const struct weft_port_opts){.no_udp_csum = true});
		assert_int_equal(fake_eth_conf(f)->txmode.offloads, 0);
		assert_int_equal(fake_eth_conf(f)->rxmode.offloads & rx, 0);
		close_port(port);
		fake_eth_reset();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_frame_fits_one_buffer_of_any_pmd_at_any_mtu),
		cmocka_unit_test(gve_with_page_lists_and_a_larger_mtu_uses_its_larger_buffers),
		cmocka_unit_test_teardown(every_pmd_opens_and_receives_whole_frames, tidy),
		cmocka_unit_test_teardown(scatter_is_requested_only_where_it_is_needed, tidy),
		cmocka_unit_test_teardown(a_pmd_that_refuses_is_named_with_mtu_and_buffer, tidy),
		cmocka_unit_test_teardown(an_mtu_beyond_the_nic_is_named_with_its_limit, tidy),
		cmocka_unit_test_teardown(a_port_opens_again_with_a_larger_mtu, tidy),
		cmocka_unit_test_teardown(
			no_pmd_reads_the_pool_of_a_queue_that_is_not_used_any_more, tidy),
		cmocka_unit_test_teardown(the_depth_of_a_ring_is_what_the_device_has, tidy),
		cmocka_unit_test_teardown(the_depth_of_a_send_ring_is_what_the_pmd_reports, tidy),
		cmocka_unit_test_teardown(frames_of_the_vlan_are_let_in_by_any_pmd, tidy),
		cmocka_unit_test_teardown(a_filter_that_refuses_a_vlan_is_named, tidy),
		cmocka_unit_test_teardown(only_offloads_that_are_used_are_requested, tidy),
	};

	test_eal_init("256");
	return cmocka_run_group_tests_name("port_nic", tests, NULL, NULL);
}
