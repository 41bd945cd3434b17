/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file fake/fake_ethdev.h
 * Ethernet ports in this process, in the place of DPDK's ethdev library: for unit tests of
 * drivers/dpdk. Not for measuring.
 *
 * The fake defines the rte_eth_*() and rte_flow_*() calls that the driver uses. They come before
 * those of librte_ethdev when a test program is linked (test/unit/meson.build: fake_ethdev). The
 * burst calls are inline in DPDK: the fake fills rte_eth_fp_ops. Pools and mbufs are DPDK's own, so
 * test_eal_init() comes first. One thread at a time.
 *
 * A port behaves as its traits say. fake_eth_pmd() has the traits of DPDK's PMDs by name, with the
 * limits and formulas of their sources (DPDK 22.11; "net_gve_dqo" and "net_mana": 23.11). A test
 * may change traits until the port is configured. What is modelled:
 *
 *  - the checks of the ethdev library: order of the calls, offloads, MTU range, ring sizes, least
 *    buffer;
 *  - receive buffers: which part of them the NIC uses, refusals without scatter, chains, frames
 *    dropped because they do not fit, set_mtu() that looks at the pool of the port's last life,
 *    buffers that stay in the ring after a stop;
 *  - rings shorter than asked, silently; a ring without buffers drops; sent mbufs that come
 *    back late: only when descriptors run short, by tx_done_cleanup() or at stop. A frame is read
 *    after tx_burst() has returned;
 *  - links that come up late. Time is the monotonic clock plus fake_eth_skip();
 *  - offloads that were not asked for do not work: chains are cut to their first mbuf, checksums
 *    are not filled in;
 *  - VLAN filters; RSS by Toeplitz hash and indirection table, with a key that is reported or not;
 *  - RX interrupts: one for what comes after they were switched on, none for what came before, and
 *    off again; configurations and devices that refuse them, that have no descriptor, whose
 *    descriptor is readable for nothing, that raise none;
 *  - events of removal, reset and link, a port that is dead after them;
 *  - a watchdog that is a DPDK timer, and runs on whatever thread looks after those.
 *
 * Two ports that are wired to each other exchange frames; a frame at a port without a wire is
 * lost.
 */
#ifndef FAKE_ETHDEV_H
#define FAKE_ETHDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_ethdev.h>

#define FAKE_ETH_QUEUES 16
#define FAKE_ETH_RETA_MAX 512
#define FAKE_ETH_KEY_MAX 64

/** What a port is like. Zero is the simplest port. */
struct fake_eth_traits {
	const char *pmd;           /**< name of the preset */
	const char *driver;        /**< as in rte_eth_dev_info.driver_name */
	struct rte_device *device; /**< as in rte_eth_dev_info */

	/* What it says of itself. */
	uint32_t min_rx_bufsize;
	uint32_t max_rx_pktlen; /**< with FCS */
	uint16_t min_mtu;
	uint16_t max_mtu; /**< UINT16_MAX: says nothing */
	uint16_t mtu;     /**< before anybody sets it; 0: 1500 */
	struct rte_eth_desc_lim rx_lim, tx_lim;
	uint16_t queues;
	uint64_t rx_capa, tx_capa;
	/** Paths with vector instructions, and the offloads that leave them on. */
	bool tx_vector, rx_vector;
	uint64_t tx_vector_has, rx_vector_has;

	/* Receive buffers. */
	uint32_t (*buffer)(
		uint32_t room); /**< bytes used of a buffer (without headroom); NULL: all */
	uint32_t least;    /**< refused by the PMD itself below this; the library does not know */
	uint32_t overhead; /**< counted beyond the MTU */
	/** Error when MTU + overhead does not fit and scatter is not asked for; 0: none */
	int strict;
	bool never_chains;  /**< a frame that does not fit is dropped */
	uint16_t chain_max; /**< mbufs of a frame; 0: any number */

	/* Rings. */
	uint16_t rx_ring, tx_ring; /**< real entries, whatever is asked for; 0: as asked */
	uint16_t rx_spare;         /**< entries that get no buffer */
	uint16_t tx_free_thresh;   /**< sent mbufs come back when fewer descriptors are free */
	bool no_done_cleanup;      /**< -ENOTSUP */
	bool tx_ring_reported;     /**< rte_eth_tx_queue_info_get() tells the real entries */
	/**
	 * rte_eth_tx_descriptor_status() of the newest descriptor tells, when each frame reports
	 * (tx_rs_thresh 1): done once the NIC has read it
	 */
	bool tx_status;
	bool tx_stuck; /**< the NIC reads nothing, for now */
	/**
	 * Set-up of a receive queue is refused; what the PMD keeps of it is not fit to be closed.
	 */
	int rx_setup_error;
	bool keeps_rx; /**< buffers stay in the receive ring after stop */

	/* MTU. */
	bool no_set_mtu; /**< -ENOTSUP */
	/** set_mtu() looks at the pool of each receive ring, also of an earlier life's. */
	bool mtu_reads_pool;

	/* Link. */
	uint32_t link_ms; /**< it comes so long after the start */
	uint32_t speed;   /**< Mb/s; 0: unknown */
	bool watchdog;    /**< a timer of one second, on the lcore that starts the port */
	/** RTE_BIT64(RTE_ETH_EVENT_*) that the PMD can raise; LSC and RMV as interrupts, too. */
	uint64_t events;

	/** Tagged frames without a filter are dropped, also without the offload. */
	bool filters_vlan;
	int vlan_filter_error;

	/* RX interrupts. */
	bool rx_intr;             /**< there is a descriptor, from start to stop */
	int rx_intr_lsc_error;    /**< of configure() with both */
	int rx_intr_start_error;  /**< of start() with them */
	int rx_intr_enable_error; /**< of rte_eth_dev_rx_intr_enable() */
	bool rx_intr_dead;        /**< none is raised */

	/* RSS, with more than one queue. */
	uint64_t rss_hf; /**< 0: everything goes to the first queue */
	uint16_t reta_size;
	uint8_t key_len;
	bool key_untold; /**< rss_hash_conf_get(): -ENOTSUP */
	bool key_fixed;  /**< a key that is given is refused */
};

/** Counts that a PMD has no way to tell. */
struct fake_eth_count {
	uint64_t rx_frames, tx_frames;
	uint64_t rx_chained;   /**< frames that took more than one mbuf */
	uint64_t rx_no_buffer; /**< the ring had none */
	uint64_t rx_too_long;  /**< beyond the MTU, or never_chains */
	uint64_t rx_vlan;      /**< dropped by the filter */
	uint64_t rx_no_link;
	uint64_t tx_cut;            /**< chains without MULTI_SEGS: only the first mbuf was sent */
	uint64_t tx_chained;        /**< chains that were sent whole */
	uint64_t tx_summed;         /**< UDP checksums filled in */
	uint64_t tx_unsummed;       /**< wanted by the mbuf, not by the configuration */
	uint64_t stale_pool;        /**< set_mtu() read a pool that had been freed */
	uint64_t mtu_early;         /**< set_mtu() while a ring had no pool of this life */
	uint64_t intr_on, intr_off; /**< calls */
	uint64_t configures, starts, stops, resets, closes;
	/** of a port whose queue was refused: net_af_xdp reads freed memory */
	uint64_t unfit_closes;
	_Atomic uint64_t watched; /**< runs of the watchdog */
};

struct fake_eth_port;

/** Forget all ports. They must be closed by the driver: mbufs in their rings are freed. */
void fake_eth_reset(void);
/**
 * Traits of a PMD by name: "net_virtio", "net_e1000_em", ...; fails the program for an unknown
 * name.
 */
const struct fake_eth_traits *fake_eth_pmd(const char *name);
/** The n-th preset; NULL: no more. For tables over all PMDs. */
const struct fake_eth_traits *fake_eth_pmd_nth(unsigned int n);

/** A new port, with its own MAC address. @param name as rte_eth_dev_get_name_by_port() gives it */
struct fake_eth_port *fake_eth_add(const char *name, const struct fake_eth_traits *traits);
uint16_t fake_eth_id(const struct fake_eth_port *p);
/** To be changed before the driver opens the port. */
struct fake_eth_traits *fake_eth_traits(struct fake_eth_port *p);
const struct fake_eth_count *fake_eth_count(const struct fake_eth_port *p);
const struct rte_eth_conf *fake_eth_conf(const struct fake_eth_port *p);
uint16_t fake_eth_mtu(const struct fake_eth_port *p);
/**
 * Does the port, as it is configured, send and receive by vector instructions? For sending
 * tx_rs_thresh must be the PMD's default, or 32 and more; a receive ring must be a power of two.
 */
bool fake_eth_tx_vector(const struct fake_eth_port *p);
bool fake_eth_rx_vector(const struct fake_eth_port *p);
/** Receive ring of a queue: entries that exist, and those that have a buffer. */
uint16_t fake_eth_rx_ring(const struct fake_eth_port *p, uint16_t queue);
uint16_t fake_eth_rx_posted(const struct fake_eth_port *p, uint16_t queue);
/** Is a VLAN in the filter's table? */
bool fake_eth_vlan(const struct fake_eth_port *p, uint16_t vlan);

/** A cable between two ports, or none (NULL). */
void fake_eth_wire(struct fake_eth_port *a, struct fake_eth_port *b);
/** A frame (without FCS) from the wire. @return false: the port did not take it, see its counts */
bool fake_eth_input(struct fake_eth_port *p, const void *frame, uint32_t len);
/** What a port sends, in addition to the wire; NULL: no check. */
void fake_eth_tap(struct fake_eth_port *p,
		  void (*seen)(void *arg, const uint8_t *frame, uint32_t len), void *arg);

/** Time passes at once. */
void fake_eth_skip(uint32_t ms);
/**
 * The other end of the cable. Up again after link_ms. Raises LSC where the port was configured for
 * it.
 */
void fake_eth_plug(struct fake_eth_port *p, bool plugged);
/** An interrupt for nothing. */
void fake_eth_interrupt(struct fake_eth_port *p, uint16_t queue);
/** Is the RX interrupt of this queue switched on? */
bool fake_eth_intr_is_on(const struct fake_eth_port *p, uint16_t queue);
/** The PMD calls back, on this thread. */
void fake_eth_event(struct fake_eth_port *p, enum rte_eth_event_type type);
/** The NIC is gone for good: RMV, and every call fails with -EIO. */
void fake_eth_remove(struct fake_eth_port *p);
/** The NIC wants a reset: RESET, and nothing moves until rte_eth_dev_reset(). */
void fake_eth_break(struct fake_eth_port *p);
/** The NIC hangs: its watchdog, if it runs, finds that out. */
void fake_eth_hang(struct fake_eth_port *p);
/**
 * The application takes the device from DPDK (rte_dev_remove()): the port is closed, its number is
 * free. Its struct rte_device is the test's to free.
 */
void fake_eth_detach(struct fake_eth_port *p);
/** The same NIC is back after either, as a new device under the same port number. */
void fake_eth_return(struct fake_eth_port *p);

/** Which queue receives this UDP flow? All in host byte order. */
uint16_t fake_eth_rss_queue(const struct fake_eth_port *p, uint32_t src, uint32_t dst,
			    uint16_t sport, uint16_t dport);

#endif /* FAKE_ETHDEV_H */
