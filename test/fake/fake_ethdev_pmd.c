/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What DPDK's PMDs say and do: numbers from their sources, in 22.11 unless a line says otherwise. A
 * frame is the MTU and `overhead` for them; `buffer` is what they use of a buffer.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake/fake_ethdev_priv.h"

#define IPV4_RX RTE_ETH_RX_OFFLOAD_IPV4_CKSUM
#define UDP_RX RTE_ETH_RX_OFFLOAD_UDP_CKSUM
#define FILTER RTE_ETH_RX_OFFLOAD_VLAN_FILTER
#define SCATTER RTE_ETH_RX_OFFLOAD_SCATTER
#define IPV4_TX RTE_ETH_TX_OFFLOAD_IPV4_CKSUM
#define UDP_TX RTE_ETH_TX_OFFLOAD_UDP_CKSUM
#define SEGS RTE_ETH_TX_OFFLOAD_MULTI_SEGS
#define FAST_FREE RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE
#define LSC RTE_BIT64(RTE_ETH_EVENT_INTR_LSC)
#define RMV RTE_BIT64(RTE_ETH_EVENT_INTR_RMV)
#define RESET RTE_BIT64(RTE_ETH_EVENT_INTR_RESET)
#define RSS_UDP (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP)

#define DESC(max, min, align)                                         \
	{                                                             \
		.nb_max = (max), .nb_min = (min), .nb_align = (align) \
	}
#define RINGS(max, min, align) .rx_lim = DESC(max, min, align), .tx_lim = DESC(max, min, align)

/* 256, 512, ... 16384 */
static uint32_t power_of_two(uint32_t room)
{
	uint32_t size = 16384;

	while (size > 256 && size > room)
		size /= 2;
	return size;
}

static uint32_t whole_kib(uint32_t room)
{
	return room / 1024 * 1024;
}

static uint32_t of_128(uint32_t room)
{
	return RTE_MIN(room / 128 * 128, 16384u - 128);
}

/* 512, 1024, 2048, 4096 */
static uint32_t hns3_sizes(uint32_t room)
{
	return RTE_MIN(power_of_two(room), 4096u);
}

/* 2048 or 4096 */
static uint32_t gve_gqi(uint32_t room)
{
	return RTE_MIN(room / 2048 * 2048, 4096u);
}

static const struct fake_eth_traits pmds[] = {
	{
		/* A device that has granted CTRL_VLAN, with mergeable buffers and rings of 256. */
		.pmd = "net_virtio",
		.rx_intr = true,
		.driver = "net_virtio",
		.min_rx_bufsize = 64,
		.max_rx_pktlen = 9728,
		.max_mtu = 9698,
		.min_mtu = 68,
		RINGS(32768, 32, 1),
		.queues = 1,
		.rx_capa = UDP_RX | FILTER | SCATTER,
		.tx_capa = UDP_TX | SEGS,
		.overhead = 14 + 4 + 12,
		.strict = -EINVAL,
		.rx_ring = 256,
		.tx_ring = 256,
		.tx_free_thresh = 32,
		.no_done_cleanup = true,
		.keeps_rx = true,
		.mtu_reads_pool = true,
		.filters_vlan = true,
		.events = LSC,
	},
	{
		.pmd = "net_e1000_em",
		.driver = "net_e1000_em",
		.tx_status = true,
		.tx_ring_reported = true,
		.min_rx_bufsize = 256,
		.max_rx_pktlen = 0x2412,
		.max_mtu = UINT16_MAX,
		RINGS(4096, 32, 8),
		.queues = 1,
		.rx_capa = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.tx_capa = IPV4_TX | UDP_TX | SEGS,
		.overhead = 14 + 4 + 4,
		.buffer = power_of_two,
		.tx_free_thresh = 32,
		.no_done_cleanup = true,
		.link_ms = 2000,
		.speed = 1000,
		.events = LSC,
	},
	{
		.pmd = "net_e1000_igb",
		.rx_intr = true,
		.driver = "net_e1000_igb",
		.tx_status = true,
		.tx_ring_reported = true,
		.min_rx_bufsize = 256,
		.max_rx_pktlen = 0x3fff,
		.max_mtu = UINT16_MAX,
		RINGS(4096, 32, 8),
		.queues = 8,
		.rx_capa = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.tx_capa = IPV4_TX | UDP_TX | SEGS,
		.overhead = 14 + 4 + 4 + 8,
		.buffer = whole_kib,
		.tx_free_thresh = 32,
		.link_ms = 2000,
		.speed = 1000,
		.events = LSC,
		.rss_hf = RSS_UDP,
		.reta_size = 128,
		.key_len = 40,
	},
	{
		.pmd = "net_ixgbe",
		.rx_intr = true,
		.driver = "net_ixgbe",
		.tx_status = true,
		.tx_ring_reported = true,
		.min_rx_bufsize = 1024,
		.max_rx_pktlen = 15872,
		.max_mtu = 15872 - 18,
		.min_mtu = 68,
		RINGS(4096, 32, 8),
		.queues = 16,
		.rx_capa = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.tx_capa = IPV4_TX | UDP_TX | SEGS,
		.tx_vector = true,
		.rx_vector = true,
		.rx_vector_has = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.overhead = 14 + 4 + 8,
		.buffer = whole_kib,
		.tx_free_thresh = 32,
		.link_ms = 2000,
		.speed = 10000,
		.events = LSC,
		.rss_hf = RSS_UDP,
		.reta_size = 128,
		.key_len = 40,
	},
	{
		/* The PF lets no tagged frame through that the VF has not asked for. */
		.pmd = "net_ixgbe_vf",
		.rx_intr = true,
		.driver = "net_ixgbe_vf",
		.tx_status = true,
		.tx_ring_reported = true,
		.min_rx_bufsize = 1024,
		.max_rx_pktlen = 9728,
		.max_mtu = 9728 - 18,
		.min_mtu = 68,
		RINGS(4096, 32, 8),
		.queues = 4,
		.rx_capa = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.tx_capa = IPV4_TX | UDP_TX | SEGS,
		.tx_vector = true,
		.rx_vector = true,
		.rx_vector_has = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.overhead = 14 + 4 + 8,
		.buffer = whole_kib,
		.tx_free_thresh = 32,
		.speed = 10000,
		.filters_vlan = true,
		.events = LSC | RESET,
		.rss_hf = RSS_UDP,
		.reta_size = 64,
		.key_len = 40,
	},
	{
		.pmd = "net_iavf",
		.rx_intr = true,
		.driver = "net_iavf",
		.tx_status = true,
		.tx_ring_reported = true,
		.min_rx_bufsize = 1024,
		.max_rx_pktlen = 9728,
		.max_mtu = 9728 - 26,
		.min_mtu = 68,
		RINGS(4096, 64, 32),
		.queues = 16,
		.rx_capa = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.tx_capa = IPV4_TX | UDP_TX | SEGS | FAST_FREE,
		.tx_vector = true,
		.tx_vector_has = IPV4_TX | UDP_TX | FAST_FREE,
		.rx_vector = true,
		.rx_vector_has = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.overhead = 14 + 4 + 8,
		.buffer = of_128,
		.chain_max = 5,
		.tx_free_thresh = 32,
		.no_done_cleanup = true,
		.speed = 25000,
		.filters_vlan = true,
		.events = LSC | RESET,
		.rss_hf = RSS_UDP,
		.reta_size = 64,
		.key_len = 52,
	},
	{
		.pmd = "net_i40e",
		.driver = "net_i40e",
		.tx_status = true,
		.tx_ring_reported = true,
		.min_rx_bufsize = 1024,
		.max_rx_pktlen = 9728,
		.max_mtu = 9728 - 26,
		.min_mtu = 68,
		RINGS(4096, 64, 32),
		.queues = 16,
		.rx_capa = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.tx_capa = IPV4_TX | UDP_TX | SEGS | FAST_FREE,
		.tx_vector = true,
		.tx_vector_has = FAST_FREE,
		.rx_vector = true,
		.rx_vector_has = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.overhead = 14 + 4 + 8,
		.buffer = of_128,
		.chain_max = 5,
		.tx_free_thresh = 32,
		.speed = 40000,
		.events = LSC,
		.rss_hf = RSS_UDP,
		.reta_size = 512,
		.key_len = 52,
	},
	{
		.pmd = "net_ice",
		.driver = "net_ice",
		.tx_status = true,
		.tx_ring_reported = true,
		.min_rx_bufsize = 1024,
		.max_rx_pktlen = 9728,
		.max_mtu = 9728 - 26,
		.min_mtu = 68,
		RINGS(4096, 64, 32),
		.queues = 16,
		.rx_capa = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.tx_capa = IPV4_TX | UDP_TX | SEGS | FAST_FREE,
		.tx_vector = true,
		.tx_vector_has = IPV4_TX | UDP_TX | FAST_FREE,
		.rx_vector = true,
		.rx_vector_has = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.overhead = 14 + 4 + 8,
		.buffer = of_128,
		.chain_max = 5,
		.tx_free_thresh = 32,
		.speed = 100000,
		.events = LSC,
		.rss_hf = RSS_UDP,
		.reta_size = 512,
		.key_len = 52,
	},
	{
		.pmd = "net_igc",
		.driver = "net_igc",
		.tx_status = true,
		.tx_ring_reported = true,
		.min_rx_bufsize = 256,
		.max_rx_pktlen = 0x2600,
		.max_mtu = 0x2600 - 22,
		.min_mtu = 68,
		RINGS(32768, 8, 8),
		.queues = 4,
		.rx_capa = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.tx_capa = IPV4_TX | UDP_TX | SEGS,
		.overhead = 14 + 4 + 4,
		.buffer = whole_kib,
		.tx_free_thresh = 32,
		.link_ms = 2000,
		.speed = 2500,
		.events = LSC,
		.rss_hf = RSS_UDP,
		.reta_size = 128,
		.key_len = 40,
	},
	{
		.pmd = "net_hns3",
		.driver = "net_hns3",
		.tx_ring_reported = true,
		.min_rx_bufsize = 512,
		.max_rx_pktlen = 9728,
		.max_mtu = 9728 - 26,
		RINGS(32768, 64, 32),
		.queues = 16,
		.rx_capa = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.tx_capa = IPV4_TX | UDP_TX | SEGS | FAST_FREE,
		.least = 512,
		.overhead = 14 + 4 + 8,
		.buffer = hns3_sizes,
		.tx_free_thresh = 32,
		.link_ms = 2000,
		.speed = 100000,
		.events = LSC | RESET,
		.rss_hf = RSS_UDP,
		.reta_size = 512,
		.key_len = 40,
	},
	{
		.pmd = "mlx5_pci",
		.rx_intr = true,
		.driver = "mlx5_pci",
		.tx_ring_reported = true,
		.min_rx_bufsize = 32,
		.max_rx_pktlen = 65536,
		.max_mtu = UINT16_MAX,
		RINGS(32768, 1, 1),
		.queues = 16,
		.rx_capa = IPV4_RX | UDP_RX | FILTER | SCATTER,
		.tx_capa = IPV4_TX | UDP_TX | SEGS | FAST_FREE,
		.overhead = 14 + 4,
		.strict = -ENOSPC,
		.tx_free_thresh = 32,
		.no_done_cleanup = true,
		.speed = 100000,
		.events = LSC | RMV,
		.rss_hf = RSS_UDP,
		.reta_size = 512,
		.key_len = 40,
	},
	{
		.pmd = "net_vmxnet3",
		.rx_intr = true,
		.driver = "net_vmxnet3",
		.min_rx_bufsize = 1518 + RTE_PKTMBUF_HEADROOM,
		.max_rx_pktlen = 16384,
		.min_mtu = 60,
		.max_mtu = 9000,
		.rx_lim = DESC(4096, 128, 1),
		.tx_lim = DESC(4096, 512, 1),
		.queues = 8,
		.rx_capa = UDP_RX | FILTER | SCATTER,
		.tx_capa = UDP_TX | SEGS,
		.overhead = 14 + 4 + 4,
		.tx_free_thresh = 32,
		.no_done_cleanup = true,
		.speed = 10000,
		.events = LSC,
		.rss_hf = RSS_UDP,
		.reta_size = 0,
		.key_untold = true,
		.key_fixed = true,
	},
	{
		/* 22.11.11 */
		.pmd = "net_gve",
		.driver = "net_gve",
		.min_rx_bufsize = 2048,
		.max_rx_pktlen = 1460 + 14,
		.min_mtu = 68,
		.max_mtu = 1460,
		.mtu = 1460,
		RINGS(1024, 1024, 1),
		.queues = 16,
		.rx_capa = 0,
		.tx_capa = UDP_TX | SEGS,
		.overhead = 14,
		.buffer = gve_gqi,
		.tx_free_thresh = 256,
		.no_done_cleanup = true,
	},
	{
		/* 23.11 */
		.pmd = "net_gve_dqo",
		.driver = "net_gve",
		.min_rx_bufsize = 1024,
		.max_rx_pktlen = 8896 + 14,
		.min_mtu = 68,
		.max_mtu = 8896,
		.mtu = 1460,
		RINGS(4096, 1024, 1),
		.queues = 16,
		.rx_capa = 0,
		.tx_capa = UDP_TX | SEGS,
		.overhead = 14,
		.buffer = of_128,
		.tx_free_thresh = 256,
		.no_done_cleanup = true,
	},
	{
		.pmd = "net_ena",
		.rx_intr = true,
		.driver = "net_ena",
		.min_rx_bufsize = 64,
		.max_rx_pktlen = 9216 + 18,
		.min_mtu = 128,
		.max_mtu = 9216,
		RINGS(1024, 128, 1),
		.queues = 8,
		.rx_capa = IPV4_RX | UDP_RX | SCATTER,
		.tx_capa = IPV4_TX | UDP_TX | SEGS | FAST_FREE,
		.least = 1400,
		.overhead = 14,
		.tx_free_thresh = 32,
		.events = LSC | RESET,
		.watchdog = true,
		.rss_hf = RSS_UDP,
		.reta_size = 128,
		.key_len = 40,
	},
	{
		/* 23.11 */
		.pmd = "net_mana",
		.rx_intr = true,
		.driver = "net_mana",
		.min_rx_bufsize = 1024,
		.max_rx_pktlen = 9000 + 14,
		.min_mtu = 68,
		.max_mtu = 9000,
		RINGS(256, 64, 64),
		.queues = 16,
		.rx_capa = IPV4_RX | UDP_RX,
		.tx_capa = IPV4_TX | UDP_TX | SEGS,
		.overhead = 14,
		.never_chains = true,
		.tx_free_thresh = 32,
		.no_done_cleanup = true,
		.speed = 100000,
		.events = RMV,
		.rss_hf = RSS_UDP,
		.reta_size = 64,
		.key_len = 40,
	},
	{
		.pmd = "net_netvsc",
		.driver = "net_netvsc",
		.tx_ring_reported = true,
		.min_rx_bufsize = 1024,
		.max_rx_pktlen = 2048,
		.max_mtu = UINT16_MAX,
		.rx_lim = DESC(UINT16_MAX, 0, 1),
		.tx_lim = DESC(4096, 1, 0),
		.queues = 8,
		.rx_capa = IPV4_RX | UDP_RX,
		.tx_capa = IPV4_TX | UDP_TX | SEGS,
		.overhead = 14,
		.never_chains = true,
		.no_set_mtu = true,
		.speed = 10000,
		.events = LSC,
		.rss_hf = RSS_UDP,
		.reta_size = 128,
		.key_len = 40,
	},
};

const struct fake_eth_traits *fake_eth_pmd_nth(unsigned int n)
{
	return n < RTE_DIM(pmds) ? &pmds[n] : NULL;
}

const struct fake_eth_traits *fake_eth_pmd(const char *name)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(pmds); i++)
		if (!strcmp(pmds[i].pmd, name))
			return &pmds[i];
	fprintf(stderr, "there is no fake PMD '%s'\n", name);
	abort();
}
