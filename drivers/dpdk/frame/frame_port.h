/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/frame_port.h
 * The interface between the raw-DPDK lane engine and a port of Ethernet frames. It has four
 * implementations: an ethdev queue pair (port/ethdev.c), UDP sockets (udp/udp.c), memif rings
 * (memif/memif.c) and the simulated network (test/sim/). All use rte_mbufs, so that the engine is
 * the same.
 */
#ifndef WEFT_FRAME_PORT_H
#define WEFT_FRAME_PORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_mbuf.h>

#include "lane.h"

/* ---------------------------------------------------------------- steering */

/*
 * Queue q of a port listens on the port's UDP port + q. The initiator of a connection sends each
 * path from a port of its own to the port on which the peer listens. The peer answers with both
 * exchanged, so a stateful firewall passes the answers. Whatever spreads by flow (RSS, ECMP, a
 * cloud's limit per flow) finds one flow for each path. Where a NIC hashes frames to queues, the
 * initiator searches a port with which frames reach the right queue at both ends. Only the hash of
 * its own NIC may be known; it tries ports for the other end.
 */

#define WEFT_RSS_KEY_MAX 64u
#define WEFT_RSS_RETA_MAX 1024u

struct rte_ring;

/** How a NIC hashes UDP over IPv4 to queues (Toeplitz), as its driver reports it. */
struct weft_rss {
	uint32_t key[WEFT_RSS_KEY_MAX / 4]; /**< the key's bytes, in the driver's order */
	uint16_t reta_size;                 /**< entries of reta[], a power of two */
	uint16_t reta[WEFT_RSS_RETA_MAX];   /**< queue, by the low bits of the hash */
};

/** @return the queue to which a received frame comes. Addresses and ports are in host order. */
uint16_t weft_rss_queue(const struct weft_rss *rss, uint32_t src_ip, uint32_t dst_ip,
			uint16_t src_port, uint16_t dst_port);

/** How frames reach the queue of a frame port. All zero: the port has one queue. */
struct weft_steering {
	uint16_t queue, queues;
	/** the NIC hashes addresses and ports; false: frames to our UDP ports come to this queue */
	bool hashed;
	/** number of ports, the first of the range, that flow rules bring to this queue; 0 = all */
	uint16_t range_max;
	const struct weft_rss *rss; /**< the hash; NULL = the driver reports none */
	/** for each queue a ring of frames from another queue's worker; NULL = one queue */
	struct rte_ring **handed;
};

/** Ports p with (p & mask) == first. */
struct weft_port_range {
	uint16_t first, mask;
};

/** Source ports of an initiator on @p queue: a share of a quarter in which no queue listens. */
struct weft_port_range weft_port_range(uint16_t base, uint16_t queue, uint16_t queues);

/** @return the queue that listens on @p udp_port, or sends paths from it; -1 = none */
int weft_port_owner(uint16_t base, uint16_t queues, uint16_t udp_port);

struct weft_path_choice {
	struct weft_port_range range;
	uint16_t range_max; /**< number of usable ports, the first of the range; 0 = all */
	/** the hash of our NIC; NULL = every UDP port is suitable, or the hash is unknown */
	const struct weft_rss *rss;
	uint16_t queue; /**< the queue to which answers are to come */
	bool spread;    /**< path 0, too, gets a port of the range: the NIC of an end hashes */
	uint32_t ip, peer_ip;
	uint16_t port, peer_port; /**< UDP ports on which the ends listen */
	uint32_t token;           /**< random number that gives the order of the search */
};

/**
 * The next candidate for the source port of @p path.
 *
 * Without choice->spread path 0 has the port on which this end listens. Otherwise successive calls
 * walk through the range in an order that the token determines, so no port comes twice in a round.
 * The first round takes the ports whose answers hash to our queue. The second round takes any port,
 * since the driver's report of the hash may be wrong.
 * @param cursor  position of the search, one for all paths of a connection; 0 at first
 */
uint16_t weft_path_port(const struct weft_path_choice *choice, unsigned int path, uint32_t *cursor);

/* ---------------------------------------------------------------- the interface */

struct weft_arp_table;
struct weft_frame_port;
struct weft_hosts;

/**
 * Memory that the NIC of a port with #WEFT_FRAME_PORT_REG may read. The registration (lane.h) holds
 * one reference, and so does each frame that the NIC may still read. So memory is never unmapped
 * while the NIC may read it.
 */
struct weft_mem_lane {
	_Atomic uint32_t refs;
	uint8_t page_bits;    /**< log2 of the size of the pages of iova[] */
	uintptr_t start, end; /**< [start, end) may be sent */
	rte_iova_t *iova;     /**< one per page, start's first; NULL: an address is its IOVA */
	/** called after the last reference is dropped: unmaps the memory and frees @p mem */
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

/** @return bytes from @p at on, at most @p len, whose IOVAs are contiguous from *@p iova on */
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

typedef void (*weft_frame_port_counter_cb)(const char *name, uint64_t value, void *arg);

enum weft_frame_port_what {
	WEFT_FRAME_PORT_NOTHING,
	WEFT_FRAME_PORT_LINK_DOWN,
	WEFT_FRAME_PORT_LINK_UP, /**< `bandwidth` and GUESS may have changed, too */
	WEFT_FRAME_PORT_SPEED,   /**< `bandwidth` has changed; the link stays up */
	/** the port is removed, or unusable before a reset: it receives and sends nothing more */
	WEFT_FRAME_PORT_ENDED,
};

struct weft_frame_port_event {
	int status;     /**< ENDED: the error with which the connections end */
	char text[192]; /**< speed, or cause of LINK_DOWN; ENDED: a sentence with the remedy */
};

struct weft_frame_port_ops {
	/**
	 * Receive up to @p n frames; never waits. With rx_in_place a long frame may have two
	 * segments. The first one is private, contains the first bytes, and has room for the whole
	 * frame. The second one contains the other bytes, which another process can change
	 * (weft_in_place_at()), and is valid until the next call. The owner removes it by
	 * weft_in_place_end() or weft_in_place_copy().
	 */
	uint16_t (*rx_burst)(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n);
	/**
	 * Takes ownership of the accepted frames, a prefix of @p pkts. Never waits: the port keeps
	 * unsent frames below the limits at which a PMD would sleep.
	 */
	uint16_t (*tx_burst)(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n);
	/**
	 * Send frames that the PMD holds back, and reclaim sent buffers. Called while progress is
	 * idle, before the owner sleeps, and when a connection ends. May be NULL.
	 */
	void (*tx_kick)(struct weft_frame_port *port);
	/**
	 * With #WEFT_FRAME_PORT_REG. Reclaim sent buffers. @return true: the NIC has read all
	 * accepted frames, even if the PMD still holds their mbufs
	 */
	bool (*tx_done)(struct weft_frame_port *port);
	/** With #WEFT_FRAME_PORT_REG, in any thread: as weft_lane_driver.mem_register(). */
	int (*mem_map)(struct weft_frame_port *port, void *addr, size_t len,
		       struct weft_mem_lane **mem, char *why, size_t why_len);
	bool (*link_up)(struct weft_frame_port *port);
	/** Write the reason for a missing link, a sentence; "" with a link. May be NULL. */
	void (*link_text)(struct weft_frame_port *port, char *buf, size_t size);
	/**
	 * @return the next event since the last call. The owner calls until the result is NOTHING:
	 * when `event` is set, once a second with a link, every 0.1 s without one. May be NULL.
	 */
	enum weft_frame_port_what (*look)(struct weft_frame_port *port,
					  struct weft_frame_port_event *event);
	/**
	 * @return a descriptor that becomes readable, after arm(), when frames arrive: the port's,
	 *   and constant until close(). NULL, or a negative result: the port cannot wake its owner.
	 */
	int (*wait_fd)(struct weft_frame_port *port);
	/**
	 * The owner is about to sleep, after an rx_burst() without frames. NULL = nothing to do.
	 * @param within  ns; lowered if tx_kick() must be called earlier
	 * @return 0; -EBUSY: frames have arrived; another error: the owner must not sleep
	 */
	int (*arm)(struct weft_frame_port *port, uint64_t *within);
	/** Called after an arm() that returned 0. Exists if arm() does. */
	void (*disarm)(struct weft_frame_port *port);
	/**
	 * Does a kernel's route lead from this port to @p ip (host order)? For ports over which a
	 * kernel chooses the next hop. NULL = the engine's subnet and gateway give the next hop.
	 * @return 0, or a negative error with a sentence in @p why
	 */
	int (*reach)(struct weft_frame_port *port, uint32_t ip, char *why, size_t why_len);
	/**
	 * A peer at @p ip has a port of DPDK, no socket. From now on frames to it leave one by one,
	 * since a veth or a tap would not cut merged frames (UDP GSO). NULL = the port merges none.
	 */
	void (*alone)(struct weft_frame_port *port, uint32_t ip);
	/**
	 * Enter, replace or remove a connection's farewell, which is sent if this process ends
	 * first. NULL = the port has no farewells.
	 * @param slot  the connection's entry, 0 at first; written
	 * @param len  0 = remove
	 */
	void (*farewell)(struct weft_frame_port *port, uint16_t *slot, const uint8_t *frame,
			 uint32_t len);
	void (*counters)(struct weft_frame_port *port, weft_frame_port_counter_cb cb, void *arg);
	/** @return frames so far for which the receive buffer had no room. NULL = not known */
	uint64_t (*missed)(struct weft_frame_port *port);
	void (*close)(struct weft_frame_port *port);
};

/** frames never leave memory (memif, ring): no wire can corrupt them */
#define WEFT_FRAME_PORT_MEMORY (1u << 0)
/** the NIC checks UDP checksums and marks bad ones in ol_flags */
#define WEFT_FRAME_PORT_RX_CSUM (1u << 1)
#define WEFT_FRAME_PORT_TX_CSUM (1u << 2)  /**< the NIC fills UDP checksums */
#define WEFT_FRAME_PORT_MULTISEG (1u << 3) /**< tx_burst() accepts chained mbufs */
/** tx_burst() accepts external buffers, and the PMD releases them soon: zero-copy is possible */
#define WEFT_FRAME_PORT_EXTBUF (1u << 4)
/** memory of external buffers must first be registered by mem_map() (NICs) */
#define WEFT_FRAME_PORT_REG (1u << 5)
/** the round trip to a peer is to be measured during the handshake */
#define WEFT_FRAME_PORT_MEASURE (1u << 6)
/** `bandwidth` is a guess: it is to be measured, too */
#define WEFT_FRAME_PORT_GUESS (1u << 7)
/** the port copies the frames that it sends or receives, on the core of the caller */
#define WEFT_FRAME_PORT_COPIES (1u << 8)
/** frames for this MAC, IP and UDP port may belong to another process */
#define WEFT_FRAME_PORT_SHARED (1u << 9)
/** UDP sockets: after the process has ended its kernel answers frames with "port unreachable" */
#define WEFT_FRAME_PORT_SOCKET (1u << 10)
/** no other process can write to received buffers: frames are decrypted in place */
#define WEFT_FRAME_PORT_RX_OWN (1u << 11)
/** received frames can be left where the peer has written them: see rx_in_place */
#define WEFT_FRAME_PORT_IN_PLACE (1u << 12)

struct weft_frame_port {
	const struct weft_frame_port_ops *ops;
	/** look() has an event to report: set by the port, cleared before look() is called */
	bool event;
	/** ns between polls of an owner without connections: a poll is a system call; 0 = none */
	uint32_t idle_wait;
	const char *driver; /**< part of lane names in front of the resource's; NULL = "dpdk" */
	char name[64];      /**< resource name, e.g. "0" */
	/** hardware identity, e.g. PCI address; vdev name for virtual ports */
	char device[64];
	uint32_t flags;
	uint8_t mac[6];
	/*
	 * Of the kernel's interface below, since the kernel passes no frame between its sockets
	 * and a port of DPDK: of UDP sockets its MAC address, of a port of DPDK its IPv4 address
	 * (host order). All zero: there is no such interface.
	 */
	uint8_t kernel_mac[6];
	uint32_t kernel_ip;
	/** hosts of an IPv6 lane, with their numbers; freed with the port. NULL = no IPv6 */
	struct weft_hosts *hosts;
	uint8_t ip6[16]; /**< on an IPv6 lane its address */
	uint8_t prefix6;
	int socket; /**< NUMA node, or SOCKET_ID_ANY */
	/** largest frame with L2 header (VLAN tag included), without FCS */
	uint16_t frame_size;
	/** most frames in the TX ring; the ring may be shorter, if the PMD does not report that */
	uint16_t tx_depth;
	uint16_t rx_depth;
	/** full frames of a tx_burst() that costs least for each; 0 = the engine's default */
	uint16_t tx_batch;
	uint16_t tx_segs; /**< most mbufs of a frame to be sent; 0 = any number */
	/** n: no mbuf of user memory may cross a multiple of 2^n bytes; 0 = no such limit */
	uint8_t tx_page_bits;
	/** Ports with equal names share registrations; "" without #WEFT_FRAME_PORT_REG. */
	char mem_domain[16];
	/** most unsent bytes that the port accepts: with more the PMD sleeps; 0 = no limit */
	uint32_t tx_bytes_max;
	/** bytes/s of the link; 0 = no network (memif), so the copy rate of the CPU is used */
	double bandwidth;
	double latency; /**< s in one direction, before it is measured */
	/** for received and copied frames: data room for headroom + frame_size, or rx_chained */
	struct rte_mempool *pool;
	/** small mbufs, from 128 bytes on: control frames, headers, external buffers */
	struct rte_mempool *hdr_pool;
	enum weft_lane_link link;
	/** the port works, but with a deficiency: the end of a sentence; NULL = none */
	const char *warning;
	bool rx_chained; /**< received frames may be mbuf chains */
	/** set by the owner if it accepts frames in place (#WEFT_FRAME_PORT_IN_PLACE) */
	bool rx_in_place;
	/** UDP port on which this queue listens; 0 = the port in the lane's options */
	uint16_t udp_port;
	/** source ports of paths; mask 0 = the ports of weft_port_range() */
	struct weft_port_range path_ports;
	struct weft_steering steering;
	/** the ARP table that the port's queues share; NULL = one queue */
	struct weft_arp_table *arp;
};

/** The driver whose lanes are over this port, as in WEFT_LANES. */
static inline const char *weft_frame_port_driver(const struct weft_frame_port *port)
{
	return port->driver ? port->driver : "dpdk";
}

static inline void weft_frame_port_link_text(struct weft_frame_port *port, char *buf, size_t size)
{
	if (size)
		buf[0] = '\0';
	if (port->ops->link_text)
		port->ops->link_text(port, buf, size);
}

/* ---------------------------------------------------------------- frames in place */

/** The bytes of a frame in place, from the first one on, where another process can change them. */
static inline const uint8_t *weft_in_place_at(const struct rte_mbuf *m)
{
	return m->next->buf_addr;
}

static inline void weft_in_place_end(struct rte_mbuf *m)
{
	m->next = NULL;
	m->nb_segs = 1;
}

static inline void weft_in_place_copy(struct rte_mbuf *m)
{
	memcpy(rte_pktmbuf_mtod_offset(m, void *, m->data_len),
	       rte_pktmbuf_mtod(m->next, const void *), m->next->data_len);
	m->data_len = (uint16_t)m->pkt_len;
	weft_in_place_end(m);
}

/* ---------------------------------------------------------------- pools */

/** The pools of a port that is not an ethdev (memif, UDP sockets). */
struct weft_frame_pools {
	const char *name;
	uint32_t frames; /**< number of frame buffers; 0 = by their size. Out: the number chosen */
	uint32_t least;
	bool no_extbuf;
	uint32_t room; /**< out: data room of a frame buffer, bytes */
};

/** @p port has its frame_size. @return 0 or -ENOMEM; weft_frame_pools_free() follows both. */
int weft_frame_pools_make(struct weft_frame_port *port, struct weft_frame_pools *conf);

/** Free the pools that exist. If buffers are in use, a later call for any port frees the pool. */
void weft_frame_pools_free(struct weft_frame_port *port);

/* ---------------------------------------------------------------- counters */

/* Counters of a port, without the xstats of its PMD: field, visible name, meaning. */

/** struct weft_port */
#define WEFT_PORT_COUNTERS(X)                                                             \
	X(tx_refused, "tx_refused", "Frames that the PMD did not take at once.")          \
	X(tx_copied, "tx_copied", "Frames copied for a PMD that keeps what it is given.") \
	X(tx_too_long, "tx_too_long", "Frames not sent: longer than the port takes.")

/** struct weft_dma_stats, of the process */
#define WEFT_DMA_COUNTERS(X)                                                \
	X(mapped, "dma.mapped", "Areas of memory mapped for NICs.")         \
	X(no_room, "dma.no_room", "Registrations refused: too many areas.") \
	X(failed, "dma.failed", "Registrations refused by the EAL or the IOMMU.")
#define WEFT_DMA_LEVELS(X)                                               \
	X(areas, "dma.areas", "Areas of memory that NICs may read now.") \
	X(bytes, "dma.bytes", "Bytes of memory that NICs may read now.")

/** struct weft_port_intr */
#define WEFT_PORT_INTR_COUNTERS(X)                                                             \
	X(wakes, "rx_intr.wakes", "Interrupts that woke the worker, with frames.")             \
	X(empty, "rx_intr.empty", "Interrupts that woke the worker for nothing.")              \
	X(missed, "rx_intr.missed", "Sleeps that ran out with a frame waiting: no interrupt.") \
	X(late, "rx_intr.late", "Times that a frame came just before falling asleep.")         \
	X(refused, "rx_intr.refused", "Times that the PMD refused to switch interrupts on.")

/** struct weft_memif_stats */
#define WEFT_MEMIF_COUNTERS(X)                                                                 \
	X(connects, "memif.connects", "Connections of the port that its peer has completed.")  \
	X(refused, "memif.refused", "Peers refused: neither root's nor this user's.")          \
	X(rx_frames, "memif.rx_frames", "Frames received.")                                    \
	X(tx_frames, "memif.tx_frames", "Frames sent.")                                        \
	X(wakes, "memif.wakes", "System calls that woke a sleeping peer.")                     \
	X(tx_full, "memif.tx_full", "Frames that found the ring full.")                        \
	X(tx_too_long, "memif.tx_too_long", "Frames lost: the peer's buffer is too short.")    \
	X(rx_invalid, "memif.rx_invalid", "Frames dropped: the peer's descriptor is invalid.") \
	X(rx_no_buffer, "memif.rx_no_buffer", "Times that there was no buffer to receive into.")

/** struct weft_udp_stats */
#define WEFT_UDP_COUNTERS(X)                                                                     \
	X(tx_calls, "udp.tx_calls", "System calls that sent.")                                   \
	X(tx_datagrams, "udp.tx_datagrams", "Datagrams that the kernel took.")                   \
	X(tx_failed, "udp.tx_failed", "Frames lost by an error of the kernel (no route, down).") \
	X(tx_too_long, "udp.tx_too_long", "Frames lost: longer than the interface's MTU.")       \
	X(tx_no_port, "udp.tx_no_port", "Frames lost: another socket has the path's port.")      \
	X(rx_calls, "udp.rx_calls", "System calls that received datagrams.")                     \
	X(rx_empty, "udp.rx_empty", "System calls to receive that found nothing.")               \
	X(rx_datagrams, "udp.rx_datagrams", "Datagrams received.")                               \
	X(rx_copied, "udp.rx_copied", "Datagrams received that were copied once more.")          \
	X(rx_missed, "udp.rx_missed", "Datagrams that a full socket dropped.")                   \
	X(rx_too_long, "udp.rx_too_long", "Datagrams dropped: longer than a frame.")             \
	X(rx_no_buffer, "udp.rx_no_buffer", "Times that there was no buffer to receive into.")
#define WEFT_UDP_LEVELS(X) X(num_socks, "udp.sockets", "Sockets that are open now.")

#endif /* WEFT_FRAME_PORT_H */
