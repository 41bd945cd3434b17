/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/frame_port.h
 * The interface between the raw-DPDK lane engine and a port that sends and receives bursts of
 * Ethernet frames. It has three implementations: an ethdev queue pair (port/ethdev.c), UDP sockets
 * (udp/udp.c) and the simulated network (test/sim/). Buffers are rte_mbufs in all, so that the
 * engine runs unchanged.
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
 * (lane.h). The registration holds one reference, and so does each frame that the NIC may still
 * read. So memory is never unmapped while the NIC may read it.
 */
struct weft_mem_lane {
	_Atomic uint32_t refs;
	uint8_t page_bits;    /**< log2 of the size of the pages of iova[] */
	uintptr_t start, end; /**< bytes that may be sent */
	rte_iova_t *iova;     /**< of each page, start's first; NULL: an address is its IOVA */
	/** called after the last reference is dropped: unmaps and frees */
	void (*unmap)(struct weft_mem_lane *mem);
};

static inline void weft_mem_lane_put(struct weft_mem_lane *mem)
{
	/*
	 * Release orders this thread's accesses to the memory before the decrement. Acquire lets
	 * the thread that drops the last reference see all of them.
	 */
	if (atomic_fetch_sub_explicit(&mem->refs, 1, memory_order_acq_rel) == 1)
		mem->unmap(mem);
}

/**
 * @return the number of bytes, at most @p len, from @p at in @p mem on that are contiguous for the
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

/** Receives each of a port's own counters (xstats, drops). */
typedef void (*weft_frame_port_counter_cb)(const char *name, uint64_t value, void *arg);

/** Events that look() reports. */
enum weft_frame_port_what {
	WEFT_FRAME_PORT_NOTHING,
	WEFT_FRAME_PORT_LINK_DOWN,
	WEFT_FRAME_PORT_LINK_UP, /**< `bandwidth` and the flag GUESS have been updated */
	WEFT_FRAME_PORT_SPEED,   /**< the same, while the link stays up */
	/** removed, or unusable before a reset: it receives and accepts no frame any more */
	WEFT_FRAME_PORT_ENDED,
};

struct weft_frame_port_event {
	int status;     /**< ENDED: the error of the connections */
	char text[192]; /**< speed or cause; ENDED: a sentence with the remedy */
};

struct weft_frame_port_ops {
	/** Receive up to @p n frames; never waits. */
	uint16_t (*rx_burst)(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n);
	/**
	 * Send; takes ownership of the frames that it accepts (a prefix). Never waits: the port
	 * keeps the number of unsent frames below the limits at which a PMD would sleep.
	 */
	uint16_t (*tx_burst)(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n);
	/**
	 * Send frames that the PMD holds back and reclaim sent buffers (af_packet's tail, idle TX
	 * queues). Called on idle progress and by timers; may be NULL.
	 */
	void (*tx_kick)(struct weft_frame_port *port);
	/**
	 * With #WEFT_FRAME_PORT_REG. Reclaim sent buffers.
	 * @return true: the NIC has read all frames that tx_burst() has accepted, even if the PMD
	 * still holds their mbufs
	 */
	bool (*tx_done)(struct weft_frame_port *port);
	/**
	 * With #WEFT_FRAME_PORT_REG: let the NIC read memory; as weft_lane_driver.mem_register().
	 * Any thread.
	 */
	int (*mem_map)(struct weft_frame_port *port, void *addr, size_t len,
		       struct weft_mem_lane **mem, char *why, size_t why_len);
	bool (*link_up)(struct weft_frame_port *port);
	/**
	 * The reason why there is no link, as a sentence; "" with a link. NULL = the port has no
	 * text.
	 */
	void (*link_text)(struct weft_frame_port *port, char *buf, size_t size);
	/**
	 * The next event of the port since the last call. Called again until it returns NOTHING.
	 * Called when `event` is set, and a few times a second. May be NULL.
	 */
	enum weft_frame_port_what (*look)(struct weft_frame_port *port,
					  struct weft_frame_port_event *event);
	/**
	 * A file descriptor that becomes readable, after arm(), when frames arrive. It belongs to
	 * the port and is constant until close(). NULL, or a negative error: the port cannot wake a
	 * sleeping owner.
	 */
	int (*wait_fd)(struct weft_frame_port *port);
	/**
	 * The owner is about to sleep, after an rx_burst() that returned no frame. NULL = nothing
	 * to prepare.
	 * @param within  ns; lowered if tx_kick() must be called earlier
	 * @return 0, or -EBUSY: frames have arrived
	 */
	int (*arm)(struct weft_frame_port *port, uint64_t *within);
	/** Called after an arm() that returned 0. Exists if arm() does. */
	void (*disarm)(struct weft_frame_port *port);
	/**
	 * The port's owner does not choose the next hop: a kernel routes. Does a route lead from
	 * this port to @p ip (host order)? NULL = the engine's subnet and gateway decide.
	 * @return 0, or a negative error with a sentence in @p why
	 */
	int (*reach)(struct weft_frame_port *port, uint32_t ip, char *why, size_t why_len);
	void (*counters)(struct weft_frame_port *port, weft_frame_port_counter_cb cb, void *arg);
	void (*close)(struct weft_frame_port *port);
};

/** frames never leave memory (memif, ring): no wire can corrupt them */
#define WEFT_FRAME_PORT_MEMORY (1u << 0)
/** the NIC checks UDP checksums and marks bad ones in ol_flags */
#define WEFT_FRAME_PORT_RX_CSUM (1u << 1)
#define WEFT_FRAME_PORT_TX_CSUM (1u << 2)  /**< the NIC fills UDP checksums */
#define WEFT_FRAME_PORT_MULTISEG (1u << 3) /**< tx_burst() accepts chained mbufs */
/** external buffers may be sent, and are released soon: zero-copy is possible */
#define WEFT_FRAME_PORT_EXTBUF (1u << 4)
/** memory of external buffers must be registered by mem_map() before (NICs) */
#define WEFT_FRAME_PORT_REG (1u << 5)
/** the round trip to a peer is to be measured during the handshake */
#define WEFT_FRAME_PORT_MEASURE (1u << 6)
/** `bandwidth` is a guess: it is to be measured, too */
#define WEFT_FRAME_PORT_GUESS (1u << 7)
/** the PMD copies each frame at either end, on the core of its caller */
#define WEFT_FRAME_PORT_COPIES (1u << 8)
/** frames for this MAC, IP and UDP port may belong to another process */
#define WEFT_FRAME_PORT_SHARED (1u << 9)

struct weft_frame_port {
	const struct weft_frame_port_ops *ops;
	/**
	 * look() has an event to report: set inside an rx_burst() that returns no frame, and
	 * cleared by look()
	 */
	bool event;
	/**
	 * ns; a poll is a system call, so an owner without connections polls once in this time.
	 * 0 = each progress call polls
	 */
	uint32_t idle_wait;
	const char *driver; /**< part of lane names in front of the resource's; NULL = "dpdk" */
	char name[64];      /**< resource name, e.g. "0" */
	/** hardware identity, e.g. PCI address; vdev name for virtual ports */
	char device[64];
	uint32_t flags; /**< WEFT_FRAME_PORT_* */
	uint8_t mac[6];
	int socket; /**< NUMA node, or SOCKET_ID_ANY */
	/** largest frame with L2 header (VLAN tag included), without FCS */
	uint16_t frame_size;
	/** most frames that the TX ring holds: some PMDs reduce it without reporting that */
	uint16_t tx_depth;
	uint16_t rx_depth; /**< frames the RX ring holds */
	uint16_t tx_segs;  /**< most mbufs of a frame to be sent; 0 = any number */
	/** log2: no mbuf of user memory may cross a multiple of it; 0 = no such limit */
	uint8_t tx_page_bits;
	/** Ports with equal names share registrations; "" without #WEFT_FRAME_PORT_REG. */
	char mem_domain[16];
	/** most unsent bytes in the port, so that the PMD does not sleep; 0 = no limit */
	uint32_t tx_bytes_max;
	/** bytes/s of the link; 0 = there is no link, and the copy rate of the CPU counts */
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
	/** the port works, but with a deficiency: the end of a sentence; NULL = none */
	const char *warning;
	bool rx_chained; /**< received frames may be mbuf chains */
	/** UDP port on which this queue listens; 0 = that of the lane's options */
	uint16_t udp_port;
	/** source ports of paths; mask 0 = those of weft_port_range() */
	struct weft_port_range path_ports;
	struct weft_steering steering; /**< how frames reach this queue */
	/** the ARP table that the port's queues share; NULL = one queue */
	struct weft_arp_table *arp;
};

/** The driver whose lanes are over this port, as in WEFT_LANES. */
static inline const char *weft_frame_port_driver(const struct weft_frame_port *port)
{
	return port->driver ? port->driver : "dpdk";
}

/** The reason why there is no link, as a sentence with the remedy; "" with a link. */
static inline void weft_frame_port_link_text(struct weft_frame_port *port, char *buf, size_t size)
{
	if (size)
		buf[0] = '\0';
	if (port->ops->link_text)
		port->ops->link_text(port, buf, size);
}

#endif /* WEFT_FRAME_PORT_H */
