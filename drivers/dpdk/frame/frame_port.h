/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/frame_port.h
 * What the raw-DPDK lane's engine uses: a port that sends and receives bursts of Ethernet
 * frames. Two implementations: an ethdev queue pair (port/ethdev.c) and the simulated network
 * (test/sim/). Buffers are rte_mbufs in both, so that the engine runs unchanged.
 */
#ifndef WEFT_FRAME_PORT_H
#define WEFT_FRAME_PORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "lane.h"
#include "frame/steering.h"

struct weft_arp_table;
struct weft_frame_port;

/**
 * Memory that a port with #WEFT_FRAME_PORT_REG may read: the driver's state of a registration
 * (lane.h). One reference is the registration's; each frame that the NIC may still read has one,
 * too, so memory is never unmapped under it.
 */
struct weft_mem_lane {
	_Atomic uint32_t refs;
	uint8_t page_bits;    /**< log2 of the size of the pages of iova[] */
	uintptr_t start, end; /**< bytes that may be sent */
	rte_iova_t *iova;     /**< of each page, start's first; NULL: an address is its IOVA */
	void (*unmap)(
		struct weft_mem_lane *mem); /**< the last reference is gone: unmaps and frees */
};

static inline void weft_mem_lane_put(struct weft_mem_lane *mem)
{
	/*
	 * Release: what this thread has done with the memory comes before; acquire: the last one
	 * sees all of that.
	 */
	if (atomic_fetch_sub_explicit(&mem->refs, 1, memory_order_acq_rel) == 1)
		mem->unmap(mem);
}

/**
 * @return how many of the @p len bytes at @p at, which lie in @p mem, follow each other for the
 * NIC, too
 */
static inline uint32_t weft_mem_lane_iova(const struct weft_mem_lane *mem, const void *at,
					  uint32_t len, rte_iova_t *iova)
{
	uintptr_t a = (uintptr_t)at, page = (uintptr_t)1 << mem->page_bits, first, i, got;

	*iova = a;
	if (!mem->iova)
		return len;
	first = mem->start >> mem->page_bits;
	i = (a >> mem->page_bits) - first;
	*iova = mem->iova[i] + (a & (page - 1));
	for (got = page - (a & (page - 1)); got < len; got += page, i++) {
		if (mem->iova[i + 1] != mem->iova[i] + page)
			return (uint32_t)got;
	}
	return len;
}

/** Walks a port's own counters (xstats, drops). */
typedef void (*weft_frame_port_counter_cb)(const char *name, uint64_t value, void *arg);

/** What look() finds. */
enum weft_frame_port_what {
	WEFT_FRAME_PORT_NOTHING,
	WEFT_FRAME_PORT_LINK_DOWN,
	WEFT_FRAME_PORT_LINK_UP, /**< bandwidth and the flag GUESS are set again */
	WEFT_FRAME_PORT_SPEED,   /**< the same, while the link stays up */
	/** gone, or of no use before a reset: nothing is received or taken any more */
	WEFT_FRAME_PORT_ENDED,
};

struct weft_frame_port_event {
	int status;     /**< ENDED: of the connections */
	char text[192]; /**< speed or cause; ENDED: a sentence with the way out */
};

struct weft_frame_port_ops {
	/** Receive up to @p n frames; never waits. */
	uint16_t (*rx_burst)(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n);
	/**
	 * Send; takes ownership of the frames it accepts (a prefix). Never waits: the port keeps
	 * what a PMD would sleep on below the PMD's limits.
	 */
	uint16_t (*tx_burst)(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n);
	/**
	 * Push out what the PMD holds back and reclaim sent buffers (af_packet's tail, idle TX
	 * queues). Called on idle progress and by timers; may be NULL.
	 */
	void (*tx_kick)(struct weft_frame_port *port);
	/**
	 * With #WEFT_FRAME_PORT_REG. Reclaim what can be reclaimed. @return true: the NIC has read
	 * all frames that tx_burst() has accepted, even if the PMD still holds their mbufs
	 */
	bool (*tx_done)(struct weft_frame_port *port);
	/**
	 * With #WEFT_FRAME_PORT_REG: let the NIC read memory; as weft_lane_driver.mem_register().
	 * Any thread.
	 */
	int (*mem_map)(struct weft_frame_port *port, void *addr, size_t len,
		       struct weft_mem_lane **mem, char *why, size_t why_len);
	bool (*link_up)(struct weft_frame_port *port);
	/** Why there is no link, in a sentence; "" when there is one. NULL = nothing to say. */
	void (*link_text)(struct weft_frame_port *port, char *buf, size_t size);
	/**
	 * What has happened to the port since the last call, one thing at a time: called again
	 * until it is nothing. Called when `event` is set, and a few times a second. May be NULL.
	 */
	enum weft_frame_port_what (*look)(struct weft_frame_port *port,
					  struct weft_frame_port_event *event);
	/**
	 * A descriptor that becomes readable, after arm(), when frames come. The port's own; the
	 * same until close(). NULL, or a negative error: nothing wakes who sleeps.
	 */
	int (*wait_fd)(struct weft_frame_port *port);
	/**
	 * The owner is about to sleep, after an rx_burst() that brought nothing. NULL = nothing to
	 * do.
	 * @param within  ns; lowered to when tx_kick() is wanted
	 * @return 0, or -EBUSY: frames are there
	 */
	int (*arm)(struct weft_frame_port *port, uint64_t *within);
	/** After an arm() that returned 0. With it. */
	void (*disarm)(struct weft_frame_port *port);
	void (*counters)(struct weft_frame_port *port, weft_frame_port_counter_cb cb, void *arg);
	void (*close)(struct weft_frame_port *port);
};

/** frames never leave memory (memif, ring): bits cannot rot on a wire */
#define WEFT_FRAME_PORT_MEMORY (1u << 0)
/** the NIC checks UDP checksums and marks bad ones in ol_flags */
#define WEFT_FRAME_PORT_RX_CSUM (1u << 1)
#define WEFT_FRAME_PORT_TX_CSUM (1u << 2)  /**< the NIC fills UDP checksums */
#define WEFT_FRAME_PORT_MULTISEG (1u << 3) /**< tx takes chained mbufs */
/** external buffers may be sent, and come back soon: zero-copy is possible */
#define WEFT_FRAME_PORT_EXTBUF (1u << 4)
/** memory of external buffers must be registered by mem_map() first (NICs) */
#define WEFT_FRAME_PORT_REG (1u << 5)
/** the way to a peer is to be measured while connecting: its round trip */
#define WEFT_FRAME_PORT_MEASURE (1u << 6)
/** bandwidth is a guess: it is to be measured, too */
#define WEFT_FRAME_PORT_GUESS (1u << 7)
/** the PMD copies each frame at either end with the CPU that calls it */
#define WEFT_FRAME_PORT_COPIES (1u << 8)
/** frames for this MAC, IP and UDP port may be another process's */
#define WEFT_FRAME_PORT_SHARED (1u << 9)

struct weft_frame_port {
	const struct weft_frame_port_ops *ops;
	/**
	 * look() has something to tell: set inside rx_burst() that brings nothing, and cleared by
	 * it
	 */
	bool event;
	char name[64]; /**< resource name, e.g. "0" */
	/** hardware identity, e.g. PCI address; vdev name for virtual ports */
	char device[64];
	uint32_t flags; /**< WEFT_FRAME_PORT_* */
	uint8_t mac[6];
	int socket; /**< NUMA node, or SOCKET_ID_ANY */
	/** largest frame with L2 header (VLAN tag included), without FCS */
	uint16_t frame_size;
	/** frames the TX ring holds, at most: not every PMD tells that it has cut it */
	uint16_t tx_depth;
	uint16_t rx_depth; /**< frames the RX ring holds */
	uint16_t tx_segs;  /**< mbufs of a frame to be sent, at most; 0 = any number */
	/** log2: no mbuf of user memory crosses a multiple of it; 0 = any may */
	uint8_t tx_page_bits;
	/**
	 * registrations of ports with equal names serve each other; "" without #WEFT_FRAME_PORT_REG
	 */
	char mem_domain[16];
	/** bytes that may be unsent in the port before the PMD would sleep; 0 = no limit */
	uint32_t tx_bytes_max;
	/** bytes/s from link speed; 0 = there is no link, what the CPU copies counts */
	double bandwidth;
	double latency; /**< s, first estimate */
	/**
	 * frames (RX, and TX copies): data room >= headroom + frame_size, or chained (see
	 * rx_chained)
	 */
	struct rte_mempool *pool;
	/**
	 * small mbufs: control frames, headers of zero-copy frames, external-buffer segments; data
	 * room 512, headroom included
	 */
	struct rte_mempool *hdr_pool;
	enum weft_lane_link link;
	const char
		*warning; /**< it works, but not as it should: the end of a sentence; NULL = no */
	bool rx_chained;  /**< received frames may be mbuf chains */
	/** UDP port that this queue listens on; 0 = whatever the lane says */
	uint16_t udp_port;
	struct weft_steering steering; /**< how frames find this queue */
	/** where the port's queues find the addresses that one of them learned; NULL = one queue */
	struct weft_arp_table *arp;
};

/** Why there is no link, in a sentence that says what to do; "" when there is one. */
static inline void weft_frame_port_link_text(struct weft_frame_port *port, char *buf, size_t size)
{
	if (size)
		buf[0] = '\0';
	if (port->ops->link_text)
		port->ops->link_text(port, buf, size);
}

#endif /* WEFT_FRAME_PORT_H */
