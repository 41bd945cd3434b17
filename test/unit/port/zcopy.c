/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zero-copy sends of ports with PMDs like DPDK's: where they are offered, what is asked of the PMD
 * for it, that nothing is sent to find out, and that memory comes back soon.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_memory.h>

#include "eal.h"
#include "engine/conn.h"
#include "engine/engine.h"
#include "engine/iface.h"
#include "engine/outstanding.h"
#include "fake/fake_ethdev.h"
#include "port/ethdev.h"
#include "port/zcopy.h"

#define BYTES 65536u

/* ---- bus and IOMMU, before DPDK's in the order of linking ---- */

static bool iommu;
static unsigned int maps;
static uint64_t device;           /* of all ports that have no other */
static volatile uint64_t seen_of; /* a device: a read of a freed one is reported */

static void query_device(struct rte_device *dev)
{
	uint64_t first;

	memcpy(&first, dev, sizeof(first));
	seen_of = first;
}

int rte_dev_dma_map(struct rte_device *dev, void *addr, uint64_t iova, size_t len)
{
	query_device(dev);
	(void)addr;
	(void)iova;
	(void)len;
	maps += iommu;
	return iommu ? 0 : -1;
}

int rte_dev_dma_unmap(struct rte_device *dev, void *addr, uint64_t iova, size_t len)
{
	query_device(dev);
	(void)addr;
	(void)iova;
	(void)len;
	maps--;
	return 0;
}

enum rte_iova_mode rte_eal_iova_mode(void)
{
	return iommu ? RTE_IOVA_VA : RTE_IOVA_PA;
}

int rte_eal_has_hugepages(void)
{
	return 1;
}

const char *rte_dev_name(const struct rte_device *dev)
{
	(void)dev;
	return "fake";
}

const struct rte_devargs *rte_dev_devargs(const struct rte_device *dev)
{
	(void)dev;
	return NULL;
}

const struct rte_bus *rte_dev_bus(const struct rte_device *dev)
{
	(void)dev;
	return NULL;
}

/* ---- */

static unsigned int frames;
static uint16_t cut_to; /* entries of send rings; 0: as asked */

static void seen(void *arg, const uint8_t *frame, uint32_t len)
{
	(void)arg;
	(void)frame;
	(void)len;
	frames++;
}

static struct fake_eth_port *add(const char *pmd, const char *name)
{
	struct fake_eth_port *p = fake_eth_add(name, fake_eth_pmd(pmd));

	fake_eth_traits(p)->device = (struct rte_device *)&device;
	fake_eth_traits(p)->link_ms = 0;
	fake_eth_traits(p)->tx_ring = cut_to;
	fake_eth_tap(p, seen, NULL);
	return p;
}

static struct weft_frame_port *open_port(const char *name, bool no_extbuf)
{
	const struct weft_port_opts o = {.rx_bufs = 512, .no_extbuf = no_extbuf};
	struct weft_frame_port *port = NULL;
	char why[256] = "";

	if (weft_port_ethdev_open(name, &o, &port, why, sizeof(why)))
		fail_msg("%s", why);
	return port;
}

static int tidy(void **state)
{
	struct weft_dma_stats s;

	(void)state;
	fake_eth_reset();
	weft_dma_query(&s);
	assert_int_equal(s.areas, 0);
	assert_int_equal(maps, 0);
	iommu = true;
	frames = 0;
	cut_to = 0;
	return 0;
}

static const struct {
	const char *pmd;
	bool zcopy;
} table[] = {
	{"net_e1000_em", true}, {"net_e1000_igb", true}, {"net_ixgbe", true},
	{"net_iavf", false},    {"net_ixgbe_vf", true},  {"net_i40e", true},
	{"net_ice", false},     {"net_igc", true},       {"net_ena", true},
	{"net_virtio", false},  {"mlx5_pci", false},     {"net_vmxnet3", false},
	{"net_gve", false},     {"net_gve_dqo", false},  {"net_netvsc", false},
	{"net_mana", false},    {"net_hns3", false},
};

static void offered_where_memory_comes_back_and_chains_nowhere_else(void **state)
{
	const uint32_t both = WEFT_FRAME_PORT_EXTBUF | WEFT_FRAME_PORT_REG;
	struct weft_frame_port *port;
	struct fake_eth_port *p;
	bool chains, off;

	(void)state;
	for (unsigned int i = 0; i < 2 * RTE_DIM(table); i++) {
		off = i % 2;
		p = add(table[i / 2].pmd, "0000:00:05.0");
		port = open_port("0000:00:05.0", off);
		chains = fake_eth_conf(p)->txmode.offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
		assert_int_equal(port->flags & both, table[i / 2].zcopy && !off ? both : 0);
		assert_int_equal(chains, table[i / 2].zcopy && !off);
		assert_string_equal(port->mem_domain, table[i / 2].zcopy && !off ? "dpdk" : "");
		port->ops->close(port);
		/* Whose network is it? */
		assert_int_equal(frames, 0);
		tidy(NULL);
	}
}

/* ixgbe and i40e lose the vector path to UDP checksums anyhow, so chains cost nothing more. */
static void short_frames_keep_the_vector_path_and_long_ones_are_not_copied(void **state)
{
	static const struct {
		const char *pmd;
		uint16_t mtu;
		bool no_udp_csum, vector;
	} rows[] = {
		{"net_ixgbe", 1500, true, true},     {"net_ixgbe", 1500, false, false},
		{"net_ixgbe", 9000, true, false},    {"net_ixgbe_vf", 1500, true, true},
		{"net_ixgbe_vf", 9000, true, false}, {"net_i40e", 1500, true, true},
		{"net_i40e", 1500, false, false},    {"net_i40e", 9000, true, false},
		{"net_iavf", 1500, true, true},      {"net_iavf", 1500, false, true},
		{"net_iavf", 9000, false, false},    {"net_ice", 1500, true, true},
		{"net_ice", 1500, false, true},      {"net_ice", 9000, false, false},
	};
	struct weft_port_opts o = {.rx_bufs = 512};
	struct weft_frame_port *port;
	struct fake_eth_port *p;
	char why[256] = "";

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
		p = add(rows[i].pmd, "0000:00:05.0");
		o.mtu = rows[i].mtu;
		o.no_udp_csum = rows[i].no_udp_csum;
		if (weft_port_ethdev_open("0000:00:05.0", &o, &port, why, sizeof(why)))
			fail_msg("%s", why);
		if (fake_eth_tx_vector(p) != rows[i].vector || !fake_eth_rx_vector(p) ||
		    !(port->flags & WEFT_FRAME_PORT_EXTBUF) != rows[i].vector)
			fail_msg("%s, MTU %u: flags %x, offloads %#lx", rows[i].pmd, o.mtu,
				 port->flags, (unsigned long)fake_eth_conf(p)->txmode.offloads);
		port->ops->close(port);
		tidy(NULL);
	}
}

static void without_an_iommu_it_is_for_memory_of_the_eal(void **state)
{
	struct weft_frame_port *port;
	struct weft_mem_lane *mem;
	char why[256];
	void *user;

	(void)state;
	iommu = false;
	add("net_e1000_em", "0000:00:05.0");
	port = open_port("0000:00:05.0", false);
	assert_true(port->flags & WEFT_FRAME_PORT_REG);
	assert_string_equal(port->mem_domain, "dpdk-eal");
	user = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(port->ops->mem_map(port, user, BYTES, &mem, why, sizeof(why)),
			 -EOPNOTSUPP);
	munmap(user, BYTES);
	port->ops->close(port);
	assert_int_equal(frames, 0);
}

/* ---- two lanes ---- */

static uint64_t now;
static unsigned int messages, ups, done_count;

static uint64_t pf_now(void *arg)
{
	(void)arg;
	return now;
}

static int pf_random(void *arg, void *buf, size_t len)
{
	(void)arg;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)rand();
	return 0;
}

static int on_recv(void *arg, struct weft_lane_ep *lane_ep, uint8_t am_id, const void *data,
		   size_t len, void *desc)
{
	(void)arg;
	(void)lane_ep;
	(void)am_id;
	(void)desc;
	for (size_t i = 0; i < len; i++)
		assert_int_equal(((const uint8_t *)data)[i], 'x');
	messages++;
	return 0;
}

static void on_event(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev, int status,
		     const char *text)
{
	(void)arg;
	(void)lane_ep;
	(void)status;
	if (ev == WEFT_LANE_EV_DOWN)
		fail_msg("%s", text);
	ups += ev == WEFT_LANE_EV_UP;
}

static void on_done(struct weft_lane_comp *comp, int status)
{
	(void)comp;
	assert_int_equal(status, 0);
	done_count++;
}

static struct weft_lane_iface *open_iface(const char *name, uint64_t id)
{
	static const struct weft_platform platform = {.now = pf_now, .random = pf_random};
	const struct weft_lane_conf conf = {.zcopy = true, .peer_timeout_ns = 30000000000ull};
	const struct weft_raw_conf rc = {.ip = 0x0a000000 + (uint32_t)id, .prefix = 24};
	struct weft_lane_open open = {.resource = name,
				      .options = "",
				      .worker_id = id,
				      .iface_id = id,
				      .platform = &platform,
				      .conf = &conf,
				      .recv = on_recv,
				      .event = on_event};
	struct weft_lane_iface *iface;
	char why[256];

	if (weft_raw_iface_open(open_port(name, false), &rc, &open, &iface, why, sizeof(why)))
		fail_msg("%s", why);
	return iface;
}

static void step(struct weft_lane_iface **end, unsigned int n)
{
	while (n-- > 0) {
		for (unsigned int i = 0; i < 2; i++) {
			end[i]->ops->progress(end[i], now);
			end[i]->ops->tx_flush(end[i]);
		}
		now += 1000;
	}
}

struct lanes {
	struct fake_eth_port *port[2];
	struct weft_lane_iface *end[2];
	struct weft_lane_ep *lane_ep;
	struct weft_mem_lane *mem;
	uint8_t *user;
};

static void open_lanes(struct lanes *l, const char *pmd)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	char why[256];

	l->port[0] = add(pmd, "0000:00:05.0");
	l->port[1] = add("net_virtio", "0000:00:06.0");
	fake_eth_wire(l->port[0], l->port[1]);
	now = 1000000000;
	messages = ups = done_count = 0;
	l->end[0] = open_iface("0000:00:05.0", 1);
	l->end[1] = open_iface("0000:00:06.0", 2);
	assert_int_equal(frames, 0);
	assert_true(l->end[0]->attr.features & WEFT_LANE_F_ZCOPY);
	assert_false(l->end[1]->attr.features & WEFT_LANE_F_ZCOPY);
	l->end[1]->ops->get_address(l->end[1], addr);
	assert_int_equal(l->end[0]->ops->ep_connect(l->end[0], addr, l->end[1]->attr.dev_addr_len,
						    NULL, &l->lane_ep),
			 0);
	for (unsigned int i = 0; i < 1000 && ups < 2; i++)
		step(l->end, 1000);
	assert_int_equal(ups, 2);
	l->user = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(l->user, 'x', BYTES);
	assert_int_equal(
		weft_raw_mem_register(l->end[0], l->user, BYTES, 0, &l->mem, why, sizeof(why)), 0);
	assert_int_equal(maps, 1);
}

static void close_lanes(struct lanes *l)
{
	weft_raw_mem_deregister(l->end[0], l->mem);
	l->end[0]->ops->close(l->end[0]);
	l->end[1]->ops->close(l->end[1]);
	munmap(l->user, BYTES);
}

static int send_one(struct lanes *l, size_t at, struct weft_lane_comp *comp)
{
	struct iovec iov = {l->user + at, 1000};

	return l->lane_ep->ops->am_zcopy(l->lane_ep, 1, "xx", 2, &iov, 1, l->mem, comp);
}

static void the_last_message_completes_though_nothing_follows(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};
	struct lanes l;

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(table); i++) {
		if (!table[i].zcopy)
			continue;
		open_lanes(&l, table[i].pmd);
		for (unsigned int k = 1; k <= 5; k++) {
			step(l.end, 1000);
			assert_int_equal(send_one(&l, k * 1111, &comp), 0);
			/* 100 us, with a round trip of 2 us. */
			step(l.end, 100);
			assert_int_equal(messages, k);
			assert_int_equal(done_count, k);
		}
		assert_int_equal(raw_iface_of(l.end[0])->counter[RAW_TX_ZCOPY], 5);
		assert_true(fake_eth_count(l.port[0])->tx_chained >= 5);
		assert_int_equal(fake_eth_count(l.port[0])->tx_cut, 0);
		close_lanes(&l);
		tidy(NULL);
	}
}

/* The status is asked of the newest descriptor of the ring that there is. */
static void a_send_ring_that_was_cut_gives_memory_back_as_soon(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};
	struct lanes l;

	(void)state;
	cut_to = 64;
	open_lanes(&l, "net_e1000_em");
	assert_int_equal(send_one(&l, 0, &comp), 0);
	step(l.end, 100);
	assert_int_equal(messages, 1);
	assert_int_equal(done_count, 1);
	close_lanes(&l);
}

/*
 * The NIC has stopped reading: pause frames, or a link that is gone. An acknowledgement cannot come
 * then, but a forged one.
 */
static void memory_is_not_given_back_while_the_nic_may_read_it(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};
	struct lanes l;

	(void)state;
	open_lanes(&l, "net_e1000_em");
	fake_eth_traits(l.port[0])->tx_stuck = true;
	assert_int_equal(send_one(&l, 0, &comp), 0);
	step(l.end, 50);
	raw_zc_fail(&raw_conn_of(l.lane_ep)->tx, 0);
	raw_slots_release(raw_iface_of(l.end[0]), &raw_conn_of(l.lane_ep)->tx);
	step(l.end, 1000);
	assert_int_equal(done_count, 0);
	weft_raw_mem_deregister(l.end[0], l.mem);
	assert_int_equal(maps, 1);
	fake_eth_traits(l.port[0])->tx_stuck = false;
	step(l.end, 50);
	assert_int_equal(done_count, 1);
	assert_int_equal(maps, 0);
	l.end[0]->ops->close(l.end[0]);
	l.end[1]->ops->close(l.end[1]);
	munmap(l.user, BYTES);
}

/*
 * Registered through one NIC, and still registered for another when the first is taken out of the
 * process.
 */
static void a_nic_may_go_while_memory_is_registered(void **state)
{
	struct weft_frame_port *port[2];
	struct rte_device *dev[2];
	struct fake_eth_port *p[2];
	struct weft_mem_lane *mem;
	char name[16], why[256];
	uint8_t *user;

	(void)state;
	user = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* The port is closed first, or is still open; another is open, or none. */
	for (unsigned int how = 0; how < 4; how++) {
		for (unsigned int i = 0; i < 2; i++) {
			snprintf(name, sizeof(name), "0000:00:0%u.0", 5 + i);
			p[i] = add("net_e1000_em", name);
			dev[i] = calloc(1, 64);
			fake_eth_traits(p[i])->device = dev[i];
			port[i] = open_port(name, false);
		}
		assert_int_equal(
			port[0]->ops->mem_map(port[0], user, BYTES, &mem, why, sizeof(why)), 0);
		if (how & 2)
			port[1]->ops->close(port[1]);
		if (how & 1)
			port[0]->ops->close(port[0]);
		fake_eth_detach(p[0]);
		free(dev[0]);
		assert_int_equal(maps, how & 2 ? 0 : 1);
		weft_mem_lane_put(mem);
		assert_int_equal(maps, 0);
		if (!(how & 1)) {
			assert_int_equal(port[0]->ops->mem_map(port[0], user, BYTES, &mem, why,
							       sizeof(why)),
					 -ENODEV);
			port[0]->ops->close(port[0]);
		}
		if (!(how & 2))
			port[1]->ops->close(port[1]);
		tidy(NULL);
		free(dev[1]);
	}
	munmap(user, BYTES);
}

static int start(void **state)
{
	(void)state;
	iommu = true;
	test_eal_init("256");
	return 0;
}

#define TIDY(t) cmocka_unit_test_teardown(t, tidy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TIDY(offered_where_memory_comes_back_and_chains_nowhere_else),
		TIDY(short_frames_keep_the_vector_path_and_long_ones_are_not_copied),
		TIDY(without_an_iommu_it_is_for_memory_of_the_eal),
		TIDY(the_last_message_completes_though_nothing_follows),
		TIDY(a_send_ring_that_was_cut_gives_memory_back_as_soon),
		TIDY(a_nic_may_go_while_memory_is_registered),
		TIDY(memory_is_not_given_back_while_the_nic_may_read_it),
	};

	return cmocka_run_group_tests_name("port_zcopy", tests, start, NULL);
}
