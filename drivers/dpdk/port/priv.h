/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/priv.h
 * What the files of the ethdev port share, and the list of these files:
 *
 *	port/ethdev.c       open, close
 *	port/list.c         the ports of DPDK, and those that are open
 *	port/text.c         message texts
 *	port/claim_port.c   one process for each port
 *	port/claim.c        names that one process of a network namespace holds at a time
 *	port/claim_owner.c  the process that holds a name
 *	port/claim_dev.c    the names by which a device is claimed
 *	port/pick.c         WEFT_PORTS: the devices that this process takes
 *	port/pick_find.c    devices that can be taken, and their distance
 *	port/eal.c          starting the EAL, or accepting the application's
 *	port/eal_log.c      its log lines while it starts
 *	port/eal_folder.c   the folder of its sockets
 *	port/eal_dead.c     removes the sockets of processes that were killed
 *	port/lane_opts.c    options of one lane
 *	port/conf.c         configure: frames, offloads, queues, MTU, VLANs, depth of the rings
 *	port/limits.c       limits of a port: from its capabilities, and those that only its PMD's
 *	                    source shows
 *	port/nic_state.c    the reason why a NIC is no DPDK port
 *	port/pdump.c        WEFT_DUMPCAP: dpdk-dumpcap may attach
 *	port/rdma.c         NICs that the kernel and DPDK drive at the same time
 *	port/hint.c         hints about networks with limits of their own
 *	port/pool.c         buffers: whole frames, small mbufs for headers
 *	port/event.c        events of an open port: removal, reset, link, speed
 *	port/timer.c        DPDK timers for the PMDs that rely on them
 *	port/rxtx.c         the operations of an open port
 *	port/intr.c         RX interrupts, for an owner that sleeps
 *	port/xdp.c          the socket of net_af_xdp, for the same purpose
 *	port/kernel.c       ports over a kernel interface: link, MTU, af_packet's socket
 *	port/passing.c      ports of programs that forward frames
 *	port/peer_mtu.c     the MTU of a veth's other end
 *	port/memif/memif.h  code for memif alone
 *	port/spread.c       several queues: the port's hash
 *	port/steer.c        flow rules that steer frames to their queue
 *	port/switch.c       a port of weft-switch
 *	port/zcopy.c        sends from user memory
 *	port/dma.c          mapping that memory for the NIC
 */
#ifndef WEFT_PORT_PRIV_H
#define WEFT_PORT_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include <rte_ethdev.h>

#include "frame/arp.h"
#include "frame/frame.h"
#include "port/memif/memif.h"
#include "port/dma.h"
#include "port/ethdev.h"

/** The limits of a port, as found before it is configured. */
struct weft_port_limits {
	uint32_t frame_max;     /**< largest frame (no FCS) that passes */
	uint32_t frame_default; /**< when the user requests no size */
	/** the remedy when frame_max is too small; the end of a sentence */
	const char *frame_hint;
	uint32_t data_room;  /**< least RX data room without headroom; 0 = the frame size */
	uint32_t object_max; /**< largest mempool object; 0 = any */
	uint32_t buf_unit;   /**< NICs use whole units of a buffer; 0 = a power of two */
	uint32_t buf_max;    /**< largest part of a buffer that NICs use; 0 = any */
	uint32_t rx_reserve; /**< buffers that the PMD keeps beyond its rings */
	uint16_t rx_depth;   /**< frames; 0 = as configured */
	uint16_t tx_depth;
	bool memory;        /**< frames never leave memory */
	bool by_pointer;    /**< the receiver gets the sender's mbuf itself */
	bool copies_tx;     /**< tx copies and frees at once: external buffers come back */
	bool no_chains;     /**< a frame must be one mbuf */
	bool no_extbuf;     /**< the PMD takes no external buffers */
	bool set_mtu;       /**< the MTU is set by rte_eth_dev_set_mtu() */
	bool memif;         /**< port/memif/memif.c manages its connection */
	bool kernel_link;   /**< the link state is that of the kernel interface if_index */
	bool packet_socket; /**< over a packet socket, whose send sleeps */
	bool no_link;       /**< there is no link that could have a speed */
	bool guess;         /**< the link speed that the PMD reports has no meaning */
	bool copies;        /**< every frame is copied by the CPU at both ends */
	enum weft_lane_link link;
	double latency; /**< s */
	unsigned int if_index;
	/** queues of the interface that are this port's; 0 = all */
	unsigned int xdp_first, xdp_queues;
	unsigned int tx_slots; /**< packet socket: frames in its TX ring */
};

/** How a PMD reports that the NIC has read the frames that it was given. */
enum weft_port_tx_done {
	WEFT_TX_DONE_UNKNOWN, /**< it does not, or its source has not been checked */
	WEFT_TX_DONE_STATUS,  /**< by the status of the last descriptor */
	WEFT_TX_DONE_CLEANUP, /**< rte_eth_tx_done_cleanup() frees frames that are done */
};

/** Zero-copy sends of a NIC. All zero = not possible. */
struct weft_port_zcopy {
	enum weft_port_tx_done done;
	enum weft_dma_reach reach;
	bool by_page;     /**< a segment does not cross a page */
	uint16_t tx_ring; /**< descriptors */
};

struct weft_port;

/** A port with several queues. */
struct weft_port_spread {
	bool hashed;    /**< no flow rules: the port's hash chooses the queue */
	bool rss_known; /**< rss describes the hash */
	struct weft_rss rss;
	struct rte_ring **handed; /**< one per queue: see struct weft_steering */
};

/** Frames that a port keeps between arm() and the next rx_burst(). */
#define WEFT_PORT_KEEP 32u

/** Operations of a port with RX interrupts. */
struct weft_port_intr_modes {
	const struct weft_frame_port_ops *ops, *first; /**< first: right after a sleep */
};

/** RX interrupts of a queue pair: see port/intr.c. */
struct weft_port_intr {
	struct weft_port_intr_modes modes;
	int epoll; /**< wait_fd(): contains the PMD's descriptor, edge-triggered */
	bool on;   /**< the PMD was requested to raise them */
	/* The last sleep: */
	bool was_on;
	bool readable; /**< the descriptor was readable */
	bool ran_out;  /**< the sleep lasted `most` */
	uint64_t begin_tsc, most;
	/* All sleeps: */
	uint32_t life;  /**< weft_port_life() when frames last arrived */
	int trust;      /**< > 0: interrupts arrive; < 0: the number that must arrive first */
	uint64_t blind; /**< ns: the longest sleep while interrupts are not trusted */
	uint64_t wakes, empty, missed, late, refused;
	uint16_t kept, given; /**< frames of keep[], and the number of them that are delivered */
	struct rte_mbuf *keep[WEFT_PORT_KEEP];
};

/** One DPDK port, with all its queue pairs. */
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
	uint32_t ip;      /* of all its workers, host order; 0 = link-local */
	uint16_t vlan_id; /* of all its workers */
	bool vlan;
	bool started;
	bool timers;       /* started by port/timer.c */
	bool shared;       /* other processes may receive the same frames */
	bool rx_intr;      /* port/intr.c: the PMD was requested to raise them */
	char no_intr[300]; /* the reason why it has none */
	int *xdp_socks;    /* port/xdp.c: one per queue pair, -1 = not found */
	int *claims;       /* port/claim_port.c */
	unsigned int num_claims;
	char claim_note[384];       /* for `warning` */
	_Atomic uint32_t *life;     /* port/event.c */
	const char *warning;        /* for the frame port */
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
	struct weft_frame_port fp; /* first */
	void (*close)(struct weft_port *p);
	struct weft_port_dev *dev;
	uint16_t port_id;
	uint16_t queue;
	bool link_up;                /* as last reported to the owner */
	uint32_t life_seen;          /* of *dev->life */
	struct weft_port_intr *intr; /* NULL = none */
	int sock;                    /* the PMD's packet or AF_XDP socket; -1 = none */
	/* Packet socket only: bytes charged to the socket, and their limit; see port/kernel.c. */
	bool tail; /* frames may wait in the ring for another send() */
	uint32_t sock_used;
	uint32_t sock_limit;
	uint32_t unproven; /* frames given since the kernel is known to have taken all */
	uint32_t unproven_max;
	bool stuck; /* the kernel did not take them */
	uint64_t last_tx_tsc;
	uint64_t kick_cycles;
	uint32_t polls;
	uint64_t tx_refused; /* frames that the PMD did not take */
	uint64_t tx_copied;  /* frames copied because the sender keeps them */
	uint64_t tx_too_long;
	struct rte_flow *flow[1 + WEFT_FRAME_PATHS_MAX];
	uint16_t vlan; /* in the NIC's filter; 0 = none */
	bool cleanup;  /* rte_eth_tx_done_cleanup() is supported */
};

static inline struct weft_port *weft_port_of(struct weft_frame_port *fp)
{
	return (struct weft_port *)fp;
}

/** Bytes of L2 header of this port's frames. */
static inline uint32_t weft_port_l2(bool vlan)
{
	return RTE_ETHER_HDR_LEN + (vlan ? RTE_VLAN_HLEN : 0u);
}

/* port/limits.c */

/**
 * Fill @p d->limits from capabilities, device arguments and the kernel. @return 0, or an error with
 * @p why
 */
int weft_port_limits_find(struct weft_port_dev *d, char *why, size_t why_len);
/** Bytes of a receive buffer, without headroom, that hold a whole frame of this port. */
uint32_t weft_port_rx_room(const struct weft_port_dev *d);
/** Can a frame need more than one buffer of @p room bytes, by the PMDs' calculations? */
bool weft_port_rx_scatters(const struct weft_port_dev *d, uint32_t room);

/* port/claim_port.c */

/** Reserve the devices of the port for this process. @return 0, or an error with @p why */
int weft_port_claim(struct weft_port_dev *d, char *why, size_t why_len);
void weft_port_unclaim(struct weft_port_dev *d);

/* port/conf.c */

/** Choose the size of a frame. @return 0 or -EINVAL with @p why */
int weft_port_choose_frame(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
			   size_t why_len);
/** Configure a port that is stopped, with queues and pools. @return 0 or an error with @p why */
int weft_port_configure(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
			size_t why_len);
/** Right after the start: store the rings' real depth in @p d->limits. */
void weft_port_find_depth(struct weft_port_dev *d);
/** Let frames of p->vlan pass. @return 0 or an error with @p why */
int weft_port_vlan_add(struct weft_port *p, char *why, size_t why_len);
void weft_port_vlan_remove(struct weft_port *p);

/* port/kernel.c */

/** Is the kernel interface up and running? */
bool weft_kernel_link_up(unsigned int if_index);
/** Write why the interface has no link: the side that is down. */
void weft_kernel_link_why(unsigned int if_index, char *buf, size_t size);
/** MTU of the interface; 0 = there is no such interface. */
uint32_t weft_kernel_mtu(unsigned int if_index);
/** The MTU of a veth's other end; 0 = it is no veth, or the other end is not visible here. */
uint32_t weft_veth_peer_mtu(unsigned int if_index);
/** Set up p->sock and its limits. */
void weft_packet_socket_init(struct weft_port *p);
/** @return the number of frames that the PMD takes without sleeping */
uint16_t weft_packet_socket_room(struct weft_port *p, struct rte_mbuf **pkts, uint16_t n);
/** Send the frames that the kernel has left in the ring. */
void weft_packet_socket_kick(struct weft_port *p);
/** The owner is about to sleep: as arm() of frame/frame_port.h. */
int weft_packet_socket_arm(struct weft_port *p, uint64_t *within);

/* port/intr.c */

/**
 * @return the number of interrupts that a device has for DPDK; UINT_MAX: no PCI device, or its PMD
 * has interrupts of another kind
 */
unsigned int weft_port_intr_vectors(const char *sysfs, const char *device);
/** Should RX interrupts be requested from its PMD? */
bool weft_port_intr_wanted(const struct weft_port_dev *d, enum weft_rx_intr mode);
/**
 * In the thread of an event: returns when no thread is between its check whether the port has ended
 * and its use of the port.
 */
void weft_port_intr_pass(uint16_t id);
/** The port is started: let interrupts wake the owner of this queue pair, if the port has any. */
void weft_port_intr_open(struct weft_port *p, const struct weft_port_intr_modes *modes);
void weft_port_intr_close(struct weft_port *p);
void weft_port_intr_counters(const struct weft_port *p, weft_frame_port_counter_cb cb, void *arg);
/** As in frame/frame_port.h. */
int weft_port_intr_fd(struct weft_frame_port *fp);
int weft_port_intr_arm(struct weft_frame_port *fp, uint64_t *within);
void weft_port_intr_disarm(struct weft_frame_port *fp);
/** The first rx_burst() after a sleep. */
uint16_t weft_port_intr_rx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n);

/* port/xdp.c; both under weft_port_lock */

/** Before rte_eth_rx_queue_setup(), which creates the queue's socket. */
void weft_xdp_before(const struct weft_port_dev *d);
/** After rte_eth_rx_queue_setup(). */
void weft_xdp_after(struct weft_port_dev *d, uint16_t queue);
/** As arm() of frame/frame_port.h. */
int weft_xdp_arm(const struct weft_port *p);

/* port/event.c */

/** Receive a port's events from any thread that raises them. */
void weft_port_events_on(struct weft_port_dev *d);
void weft_port_events_off(struct weft_port_dev *d);
/** Request the interrupts that the port offers. */
void weft_port_events_conf(const struct weft_port_dev *d, struct rte_eth_conf *conf);
/** Before the port is opened: reset it if it requires that. @return 0, or an error with @p why */
int weft_port_revive(const struct weft_port_dev *d, char *why, size_t why_len);
/** The owner of @p p begins to poll: it knows the present state. */
void weft_port_events_begin(struct weft_port *p);
/** The port was removed or taken away, or requires a reset, since it was opened. */
bool weft_port_has_ended(const struct weft_port_dev *d);
/** A number that changes with each event. */
uint32_t weft_port_life(const struct weft_port_dev *d);
/**
 * The application took the device from DPDK in the meantime: its port number is no longer valid for
 * any call.
 */
bool weft_port_is_taken(const struct weft_port_dev *d);
enum weft_lane_link weft_port_link_kind(const struct weft_port_dev *d);
/**
 * bytes/s by the link's present speed; a guess if the speed is unknown: sets or clears the flag
 * GUESS.
 */
double weft_port_bandwidth(const struct weft_port_dev *d, uint32_t *flags);
/** As in frame/frame_port.h. */
enum weft_frame_port_what weft_port_look(struct weft_frame_port *fp,
					 struct weft_frame_port_event *event);

/**
 * Must the port not be used: not started, removed, or in need of a reset? Also sets the flag that
 * look() has an event to report.
 */
static inline bool weft_port_halted(struct weft_port *p)
{
	/* Relaxed: no other data depends on this word. */
	if (unlikely(atomic_load_explicit(p->dev->life, memory_order_relaxed) != p->life_seen)) {
		p->fp.event = true;
		if (weft_port_has_ended(p->dev))
			return true;
	}
	return unlikely(!p->dev->started);
}

/* port/timer.c */

/** Does its PMD rely on DPDK timers? */
bool weft_port_needs_timers(const struct weft_port_dev *d);
/** rte_eth_dev_start(); from then on the port's timers run. @return its result */
int weft_port_timers_start(struct weft_port_dev *d);
/** After the port was stopped. */
void weft_port_timers_stop(struct weft_port_dev *d);

/* port/spread.c */

/** Before rte_eth_dev_configure(): let the port hash UDP, if it has several queues. */
void weft_port_spread_conf(const struct weft_port_dev *d, struct rte_eth_conf *conf);
/**
 * The port is started: find out how it distributes frames to queues. @return 0 or an error with @p
 * why
 */
int weft_port_spread_open(struct weft_port_dev *d, char *why, size_t why_len);
void weft_port_spread_close(struct weft_port_dev *d);
/** Fill in what the frame port reports about its queue. */
void weft_port_spread_fill(struct weft_port *p);

/* port/steer.c */

/** Can rte_flow steer a UDP port to a queue here? The port is started. */
bool weft_port_can_steer(const struct weft_port_dev *d, uint16_t queue);
/** Make the rules of a queue pair, if its port takes rules. @return 0 or an error with @p why */
int weft_port_steer(struct weft_port *p, char *why, size_t why_len);
void weft_port_unsteer(struct weft_port *p);

/* port/rxtx.c */

extern const struct weft_frame_port_ops weft_port_ops; /**< hardware and memory */
extern const struct weft_port_intr_modes weft_port_intr_modes;
extern const struct weft_frame_port_ops weft_port_xdp_ops; /**< AF_XDP sockets */
extern const struct weft_frame_port_ops weft_port_memif_ops;
extern const struct weft_frame_port_ops weft_port_packet_ops; /**< packet sockets */
extern const struct weft_frame_port_ops weft_port_ring_ops;   /**< by pointer */

/* port/zcopy.c */

/** Fill @p d->zcopy from d->info and d->limits. */
void weft_port_zcopy_find(struct weft_port_dev *d, const struct weft_port_opts *o);
/**
 * Will chains be sent? Only zero copy sends chains, and requesting them costs some PMDs their
 * vector path.
 */
bool weft_port_wants_chains(const struct weft_port_dev *d, const struct weft_port_opts *o);
void weft_port_zcopy_txconf(const struct weft_port_dev *d, struct rte_eth_txconf *conf);
/**
 * @return #WEFT_FRAME_PORT_EXTBUF and #WEFT_FRAME_PORT_REG of a port whose other flags are set;
 * also fills the fields that belong to them.
 */
uint32_t weft_port_zcopy_flags(struct weft_port *p, const struct weft_port_opts *o);
bool weft_port_tx_done(struct weft_frame_port *fp);
int weft_port_mem_map(struct weft_frame_port *fp, void *addr, size_t len,
		      struct weft_mem_lane **mem, char *why, size_t why_len);
/**
 * A queue pair is about to close: wait until the NIC has read its frames, if the port stays open.
 */
void weft_port_zcopy_drain(struct weft_port *p);
void weft_port_zcopy_counters(const struct weft_port *p, weft_frame_port_counter_cb cb, void *arg);

/* port/text.c */

/** Format a message. @return @p rc */
__attribute__((format(printf, 4, 5))) int weft_port_fail(int rc, char *why, size_t why_len,
							 const char *fmt, ...);
void weft_port_link_text(struct weft_frame_port *fp, char *buf, size_t size);

/* port/list.c */

/**
 * Contexts of one process may open and close ports in several threads. The lock protects
 * weft_port_devs, their queues and the pools (port/pool.c).
 */
extern pthread_mutex_t weft_port_lock;
/** the open ones; NULL = not open */
extern struct weft_port_dev *weft_port_devs[RTE_MAX_ETHPORTS];

void weft_port_name(uint16_t id, char name[RTE_ETH_NAME_MAX_LEN]);
/** Find a port by number or name. @return 0, or an error with @p why */
int weft_port_find(const char *resource, uint16_t *id, char *why, size_t why_len);

#endif /* WEFT_PORT_PRIV_H */
