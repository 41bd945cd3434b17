/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/port.h
 * What the files of the ethdev port share, and the list of these files:
 *
 *	port/ports.c      the ports of DPDK, those that are open; one process for each; texts; a
 *	                  port of weft-switch
 *	port/ethdev.c     open, close; buffers; ports of programs that forward frames
 *	port/conf.c       limits: from capabilities, and those that only the PMD's source shows;
 *	                  configure: frames, offloads, queues, MTU, VLANs, depth of the rings
 *	port/rxtx.c       the operations of an open port; RX interrupts, for an owner that sleeps
 *	port/event.c      events of an open port: removal, reset, link, speed; DPDK timers for the
 *	                  PMDs that rely on them
 *	port/spread.c     several queues: flow rules, the port's hash; hints about networks with
 *	                  limits of their own
 *	port/zcopy.c      sends from user memory; mapping that memory for the NIC
 *	port/kernel.c     ports over a kernel interface: link, MTU, af_packet's socket, AF_XDP's
 *	                  socket, the MTU of a veth's other end
 *	port/lane_opts.c  options of one lane
 *	port/nic_state.c  the reason why a NIC is no DPDK port; NICs that the kernel drives, too
 *	port/memif/memif.h  code for memif alone
 *
 * Before the EAL starts:
 *
 *	port/claim.c      names that one process of a network namespace holds at a time; those of
 *	                  a device
 *	port/pick.c       WEFT_PORTS: the devices that this process takes
 *	port/eal.c        starting the EAL, or accepting the application's; its log lines; the
 *	                  folder of its sockets
 */
#ifndef WEFT_PORT_H
#define WEFT_PORT_H

#include <pthread.h>
#include <stdatomic.h>

#include <rte_ethdev.h>

#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "port/memif/memif.h"

struct weft_port_limits {
	uint32_t frame_max; /**< largest frame (no FCS) that passes */
	uint32_t frame_default;
	/** the remedy or reason when frame_max is too small; the end of a sentence */
	const char *frame_hint;
	/** without set_mtu: least RX data room, as far as object_max allows; 0 = the frame size */
	uint32_t data_room;
	uint32_t object_max; /**< largest mempool object; 0 = any */
	uint32_t buf_unit;   /**< bytes: NICs use whole units of a buffer; 0 = a power of two */
	uint32_t buf_max;    /**< largest part of a buffer that NICs use; 0 = any */
	uint32_t rx_reserve; /**< buffers that the PMD keeps beyond its rings */
	uint16_t rx_depth;   /**< frames in a receive ring; 0 = as configured */
	uint16_t tx_depth;
	bool memory;     /**< frames never leave memory */
	bool by_pointer; /**< the receiver gets the sender's mbuf itself */
	bool copies_tx;  /**< tx copies and frees at once: external buffers come back */
	bool no_chains;  /**< a frame must be one mbuf */
	bool no_extbuf;
	bool set_mtu; /**< the MTU is set by rte_eth_dev_set_mtu() */
	bool any_mtu; /**< without that call, too, the port carries frames of frame_max */
	bool memif;
	bool kernel_link;   /**< the link state is that of the kernel interface if_index */
	bool packet_socket; /**< over a packet socket: the PMD's send may sleep */
	bool no_link;       /**< there is no link that could have a speed */
	bool guess;         /**< the link speed that the PMD reports has no meaning */
	bool rx_own;        /**< no other process can write to received buffers */
	bool copies;        /**< every frame is copied by the CPU at both ends */
	enum weft_lane_link link;
	double latency; /**< one way, s */
	unsigned int if_index;
	/** AF_XDP: the interface's queues that are this port's; xdp_queues 0 = no AF_XDP port */
	unsigned int xdp_first, xdp_queues;
	unsigned int tx_slots; /**< packet socket: frames in its TX ring */
};

/** Memory that NICs of this process may read, in addition to mbufs. */
enum weft_dma_reach {
	WEFT_DMA_NONE,
	WEFT_DMA_EAL,
	WEFT_DMA_USER,
};

/** How a PMD reports that the NIC has read the frames that it was given. */
enum weft_port_tx_done {
	WEFT_TX_DONE_UNKNOWN, /**< no report, or the PMD's source has not been checked */
	WEFT_TX_DONE_STATUS,  /**< by the status of the newest frame's descriptor */
	WEFT_TX_DONE_CLEANUP, /**< rte_eth_tx_done_cleanup() frees frames that are done */
};

/** Sends for which a PMD has a path with vector instructions, where no frame is a chain. */
enum weft_port_vector {
	WEFT_VECTOR_NONE,  /**< there is no such path, or it needs what a lane does not do */
	WEFT_VECTOR_PLAIN, /**< frames whose checksums the CPU has computed */
	WEFT_VECTOR_SUMS,  /**< also frames whose UDP checksums the NIC fills */
};

/** Zero-copy sends of a NIC. All zero = not possible. */
struct weft_port_zcopy {
	enum weft_port_tx_done done;
	enum weft_port_vector vector;
	enum weft_dma_reach reach;
	bool by_page; /**< a segment must not cross a page */
	uint16_t tx_ring;
};

struct weft_port;

struct weft_port_spread {
	bool hashed; /**< no flow rules: the port's hash chooses the queue */
	bool rss_known;
	struct weft_rss rss;
	struct rte_ring **handed; /**< one per queue: see struct weft_steering */
};

/** Frames that a port keeps between arm() and the next rx_burst(), at most. */
#define WEFT_PORT_KEEP 32u

struct weft_port_intr_modes {
	const struct weft_frame_port_ops *ops, *first; /**< first: from arm() to the next poll */
};

/** RX interrupts of a queue pair: see port/rxtx.c. */
struct weft_port_intr {
	struct weft_port_intr_modes modes;
	int epoll; /**< wait_fd(): contains the PMD's descriptor, edge-triggered */
	bool on;
	/* The last sleep: */
	bool was_on;
	bool readable;
	bool ran_out; /**< the sleep lasted `most` */
	uint64_t begin_tsc, most;
	/* All sleeps: */
	uint32_t life; /**< weft_port_life() when frames last arrived */
	/**
	 * > 0: interrupts are trusted; else (1 - trust) interrupts must first arrive with frames
	 */
	int trust;
	uint64_t blind; /**< ns: the longest sleep while interrupts are not trusted */
	uint64_t wakes, empty, missed, late, refused;
	uint16_t kept, given; /**< number of frames in keep[], and of those delivered */
	struct rte_mbuf *keep[WEFT_PORT_KEEP];
};

/* Bits of *weft_port_dev.life, which port/event.c sets; the other bits count events. */
#define WEFT_PORT_REMOVED 1u
#define WEFT_PORT_RESET 2u
/** the application took the device from DPDK: the number may belong to another one */
#define WEFT_PORT_TAKEN 4u
#define WEFT_PORT_ENDED (WEFT_PORT_REMOVED | WEFT_PORT_RESET | WEFT_PORT_TAKEN)

struct weft_port_dev {
	struct rte_eth_dev_info info;
	struct weft_port_limits limits;
	struct weft_memif memif;
	struct weft_port_zcopy zcopy;
	char name[RTE_ETH_NAME_MAX_LEN];
	uint16_t port_id;
	uint16_t num_queues;
	uint16_t open_queues;
	uint16_t base_udp_port;
	uint32_t ip; /* IPv4 address of all its workers, host order; 0 = link-local */
	uint16_t vlan_id;
	bool vlan;
	atomic_bool started; /* of a memif port the interrupt thread writes it, too */
	bool timers;         /* port/event.c runs timers of its PMD */
	bool shared;         /* other processes may receive the same frames */
	bool rx_intr;
	char no_intr[300];
	int *xdp_socks; /* port/kernel.c: one per queue pair, -1 = not found */
	int *claims;    /* port/ports.c: descriptors that hold the names of its devices */
	unsigned int num_claims;
	char claim_note[384];   /* text of `warning` if a name cannot be claimed */
	_Atomic uint32_t *life; /* port/event.c: counts events; WEFT_PORT_* */
	const char *warning;
	struct weft_port **queues;  /**< NULL where free */
	struct rte_mempool **pools; /**< one per queue pair */
	struct rte_mempool **hdr_pools;
	struct weft_arp_table arp;       /* of all queues */
	struct weft_port_spread *spread; /* NULL = one queue */
	uint32_t frame_size;
	uint64_t offloads_rx;
	uint64_t offloads_tx;
};

/** One queue pair: the frame port. */
struct weft_port {
	struct weft_frame_port fp; /* the first member: weft_port_of() casts */
	void (*close)(struct weft_port *p);
	struct weft_port_dev *dev;
	uint16_t port_id;
	uint16_t queue;
	bool link_up;                /* as last reported to the owner */
	uint32_t life_seen;          /* *dev->life at the last look() of the owner */
	struct weft_port_intr *intr; /* NULL = none */
	int sock;                    /* the PMD's packet or AF_XDP socket; -1 = none */
	/* Packet socket: see port/kernel.c. */
	/*
	 * packet socket: frames may wait in the ring; other ports: frames were sent since tx_kick()
	 */
	bool tail;
	uint32_t sock_used;  /* bytes charged to the socket */
	uint32_t sock_limit; /* bytes: largest sock_used */
	uint32_t unproven;   /* frames given since the kernel is known to have taken all */
	uint32_t unproven_max;
	bool stuck; /* the kernel did not take frames that it was given */
	uint64_t last_tx_tsc;
	uint64_t kick_cycles;
	uint32_t polls;
	uint64_t tx_refused;
	uint64_t tx_copied;
	uint64_t tx_too_long;
	struct rte_flow *flow[1 + WEFT_FRAME_PATHS_MAX];
	uint16_t vlan;  /* VLAN of its frames; 0 = none */
	bool cleanup;   /* false: rte_eth_tx_done_cleanup() is not supported */
	bool farewells; /* a helper sends its farewells: frame/farewell.c */
	int groups; /* IPv6: socket that keeps group addresses in the kernel's filter; -1 = none */
};

static inline struct weft_port *weft_port_of(struct weft_frame_port *fp)
{
	return (struct weft_port *)fp;
}

/** The port was removed or taken away, or requires a reset, since it was opened. */
static inline bool weft_port_has_ended(const struct weft_port_dev *d)
{
	/* Relaxed, wherever the word is read: no other data depends on it. */
	return d->life &&
	       (atomic_load_explicit(d->life, memory_order_relaxed) & WEFT_PORT_ENDED) != 0;
}

static inline bool weft_port_is_started(const struct weft_port_dev *d)
{
	/* acquire: with the release of the interrupt thread in port/memif/memif.c */
	return atomic_load_explicit(&d->started, memory_order_acquire);
}

static inline uint32_t weft_port_l2(bool vlan)
{
	return RTE_ETHER_HDR_LEN + (vlan ? RTE_VLAN_HLEN : 0u);
}

#endif /* WEFT_PORT_H */
