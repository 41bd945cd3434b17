/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/priv.h
 * What the files of the ethdev port share, and which there are:
 *
 *	port/ethdev.c       open, close
 *	port/list.c         which ports there are, and which are open
 *	port/text.c         message texts
 *	port/claim_port.c   one process for each port
 *	port/claim.c        names that one process of a network namespace holds at a time
 *	port/claim_owner.c  who holds one
 *	port/claim_dev.c    which names a device is claimed by
 *	port/pick.c         WEFT_PORTS: which devices this process takes
 *	port/pick_find.c    devices there are to take, and how near they are
 *	port/eal.c          starting the EAL, or accepting the application's
 *	port/eal_log.c      its log lines while it starts
 *	port/eal_folder.c   where it has its sockets
 *	port/eal_dead.c     those of who was killed are removed
 *	port/lane_opts.c    options of one lane
 *	port/conf.c         configure: frames, offloads, queues, MTU, VLANs, depth of the rings
 *	port/limits.c       what a port can take: from its capabilities, and what only its PMD's
 *	                    source shows
 *	port/nic_state.c    why a NIC is no DPDK port
 *	port/pdump.c        WEFT_DUMPCAP: dpdk-dumpcap may attach
 *	port/rdma.c         NICs that the kernel and DPDK drive at the same time
 *	port/hint.c         what is worth saying about a network with limits of its own
 *	port/pool.c         buffers: whole frames, small mbufs for headers
 *	port/event.c        what happens to it while it is open: removal, reset, link, speed
 *	port/timer.c        DPDK timers for the PMDs that rely on them
 *	port/rxtx.c         the operations of an open port
 *	port/intr.c         RX interrupts, for an owner that sleeps
 *	port/xdp.c          the socket of net_af_xdp, for the same
 *	port/kernel.c       ports that stand on a kernel interface: link, MTU, af_packet's socket
 *	port/passing.c      ports of programs that pass frames on
 *	port/peer_mtu.c     the MTU of a veth's other end
 *	port/memif/memif.h  what is about memif alone
 *	port/spread.c       several queues: what the port's hash is
 *	port/steer.c        flow rules that bring a queue's frames home
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

/** What a port can take, as found before it is configured. */
struct weft_port_limits {
	uint32_t frame_max;     /**< largest frame (no FCS) that passes */
	uint32_t frame_default; /**< when the user wants nothing */
	const char *frame_hint; /**< what to change when frame_max is too small; a sentence's end */
	uint32_t data_room;     /**< least RX data room without headroom; 0 = the frame size */
	uint32_t object_max;    /**< largest mempool object; 0 = any */
	uint32_t buf_unit;      /**< NICs use whole units of a buffer; 0 = a power of two */
	uint32_t buf_max;       /**< and no more than this; 0 = any */
	uint32_t rx_reserve;    /**< buffers that the PMD keeps beyond its rings */
	uint16_t rx_depth;      /**< frames; 0 = what is configured */
	uint16_t tx_depth;
	bool memory;        /**< frames never leave memory */
	bool by_pointer;    /**< the receiver gets our mbuf itself */
	bool copies_tx;     /**< tx copies and frees at once: external buffers come back */
	bool no_chains;     /**< a frame must be one mbuf */
	bool no_extbuf;     /**< external buffers must not be given to it */
	bool set_mtu;       /**< the MTU is set by rte_eth_dev_set_mtu() */
	bool memif;         /**< its connection is looked after by port/memif/memif.c */
	bool kernel_link;   /**< link state is that of the kernel interface if_index */
	bool packet_socket; /**< rests on a packet socket whose send sleeps */
	bool no_link;       /**< there is no link that could have a speed */
	bool guess;         /**< the link speed that the PMD reports means nothing */
	bool copies;        /**< every frame is copied by the CPU at both ends */
	enum weft_lane_link link;
	double latency; /**< s */
	unsigned int if_index;
	unsigned int xdp_first, xdp_queues; /**< queues of it that are ours; 0 = all */
	unsigned int tx_slots;              /**< packet socket: frames in its TX ring */
};

/** How a PMD tells that the NIC has read what it was given. */
enum weft_port_tx_done {
	WEFT_TX_DONE_UNKNOWN, /**< not at all, or nobody has read its source */
	WEFT_TX_DONE_STATUS,  /**< by the status of the last descriptor */
	WEFT_TX_DONE_CLEANUP, /**< it frees what is done when asked to */
};

/** Zero-copy sends of a NIC. All zero = there are none. */
struct weft_port_zcopy {
	enum weft_port_tx_done done;
	enum weft_dma_reach reach;
	bool by_page;     /**< a segment stays within a page */
	uint16_t tx_ring; /**< descriptors */
};

struct weft_port;

/** A port with several queues. */
struct weft_port_spread {
	bool hashed; /**< no flow rules: the port's hash chooses the queue */
	bool told;   /**< rss says how */
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
	int epoll; /**< wait_fd(): in it the PMD's descriptor, edge-triggered */
	bool on;   /**< the PMD was told to raise them */
	/* Of the last sleep: */
	bool was_on;
	bool told;    /**< the descriptor said that there is something */
	bool ran_out; /**< it was as long as `most` */
	uint64_t begin_tsc, most;
	/* Of all: */
	uint32_t life;  /**< of the port, when frames came last */
	int trust;      /**< over 0: they come; below: so many must come first */
	uint64_t blind; /**< ns: the longest sleep, as long as there is no trust */
	uint64_t wakes, empty, missed, late, refused;
	uint16_t kept, given; /**< frames of keep[], and those of them that are handed out */
	struct rte_mbuf *keep[WEFT_PORT_KEEP];
};

/** One DPDK port of ours, with all its queue pairs. */
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
	uint16_t vlan_id; /* the same */
	bool vlan;
	bool started;
	bool timers;       /* started by port/timer.c */
	bool shared;       /* other processes may receive the same frames */
	bool rx_intr;      /* port/intr.c: the PMD was asked for them */
	char no_intr[300]; /* why it has none */
	int *xdp_socks;    /* port/xdp.c: one per queue pair, -1 = not found */
	int *claims;       /* port/claim_port.c */
	unsigned int num_claims;
	char claim_note[384];       /* for warning */
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
	bool link_up;                /* as the owner knows it */
	uint32_t life_seen;          /* of *dev->life */
	struct weft_port_intr *intr; /* NULL = none */
	int sock;                    /* the PMD's packet or AF_XDP socket; -1 = none */
	/* packet socket only: bytes charged to it, at most; see port/kernel.c */
	bool tail; /* frames may wait in the ring for another send() */
	uint32_t sock_used;
	uint32_t sock_limit;
	uint32_t unproven; /* frames given since the kernel last said that it had taken all */
	uint32_t unproven_max;
	bool stuck; /* it did not take them */
	uint64_t last_tx_tsc;
	uint64_t kick_cycles;
	uint32_t polls;
	uint64_t tx_refused; /* frames not taken */
	uint64_t tx_copied;  /* frames copied because the sender keeps them */
	uint64_t tx_too_long;
	struct rte_flow *flow[1 + WEFT_FRAME_PATHS_MAX];
	uint16_t vlan; /* asked of the NIC's filter; 0 = none */
	bool cleanup;  /* rte_eth_tx_done_cleanup() is there */
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
/** Bytes of a receive buffer, headroom not counted, that hold a whole frame of this port. */
uint32_t weft_port_rx_room(const struct weft_port_dev *d);
/** Can a frame need more than one buffer of @p room bytes, with all that PMDs count? */
bool weft_port_rx_scatters(const struct weft_port_dev *d, uint32_t room);

/* port/claim_port.c */

/** Have what the port rests on for this process alone. @return 0, or an error with @p why */
int weft_port_claim(struct weft_port_dev *d, char *why, size_t why_len);
void weft_port_unclaim(struct weft_port_dev *d);

/* port/conf.c */

/** Choose the size of a frame. @return 0 or -EINVAL with @p why */
int weft_port_choose_frame(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
			   size_t why_len);
/** Configure a port that is stopped, with queues and pools. @return 0 or an error with @p why */
int weft_port_configure(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
			size_t why_len);
/** Right after the start: how deep are the rings really? Into @p d->limits. */
void weft_port_find_depth(struct weft_port_dev *d);
/** Let frames of p->vlan in. @return 0 or an error with @p why */
int weft_port_vlan_add(struct weft_port *p, char *why, size_t why_len);
void weft_port_vlan_remove(struct weft_port *p);

/* port/kernel.c */

/** Is the kernel interface up and running? */
bool weft_kernel_link_up(unsigned int if_index);
/** Why it has no link: which side it is that is down. */
void weft_kernel_link_why(unsigned int if_index, char *buf, size_t size);
/** Its MTU; 0 = there is none. */
uint32_t weft_kernel_mtu(unsigned int if_index);
/** The MTU of a veth's other end; 0 = it is no veth, or the other end is not visible here. */
uint32_t weft_veth_peer_mtu(unsigned int if_index);
/** Set up p->sock and its limits. */
void weft_packet_socket_init(struct weft_port *p);
/** How many of the frames may be given to the PMD without its sleeping. */
uint16_t weft_packet_socket_room(struct weft_port *p, struct rte_mbuf **pkts, uint16_t n);
/** Send what the kernel has left in the ring. */
void weft_packet_socket_kick(struct weft_port *p);
/** Its owner is about to sleep: as arm() of frame/frame_port.h. */
int weft_packet_socket_arm(struct weft_port *p, uint64_t *within);

/* port/intr.c */

/**
 * How many interrupts has a device for DPDK? UINT_MAX: no PCI device, or its PMD has its own way.
 */
unsigned int weft_port_intr_vectors(const char *sysfs, const char *device);
/** Is its PMD to be asked for RX interrupts? */
bool weft_port_intr_wanted(const struct weft_port_dev *d, enum weft_rx_intr mode);
/** The port is started: have interrupts wake the owner of this queue pair, if it has any. */
/** In the thread of an event: nobody is between looking whether the port has ended and using it. */
void weft_port_intr_pass(uint16_t id);
void weft_port_intr_open(struct weft_port *p, const struct weft_port_intr_modes *modes);
void weft_port_intr_close(struct weft_port *p);
void weft_port_intr_counters(const struct weft_port *p, weft_frame_port_counter_cb cb, void *arg);
/** As frame/frame_port.h says. */
int weft_port_intr_fd(struct weft_frame_port *fp);
int weft_port_intr_arm(struct weft_frame_port *fp, uint64_t *within);
void weft_port_intr_disarm(struct weft_frame_port *fp);
/** The first rx_burst() after a sleep. */
uint16_t weft_port_intr_rx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n);

/* port/xdp.c; both under weft_port_lock */

/** rte_eth_rx_queue_setup(), which makes the socket of the queue, is about to be called. */
void weft_xdp_before(const struct weft_port_dev *d);
/** It was. */
void weft_xdp_after(struct weft_port_dev *d, uint16_t queue);
/** As arm() of frame/frame_port.h. */
int weft_xdp_arm(const struct weft_port *p);

/* port/event.c */

/** Hear of a port's events, whoever raises them. */
void weft_port_events_on(struct weft_port_dev *d);
void weft_port_events_off(struct weft_port_dev *d);
/** Request the interrupts that it offers. */
void weft_port_events_conf(const struct weft_port_dev *d, struct rte_eth_conf *conf);
/** Before it is opened: reset it if it wants that. @return 0, or an error with @p why */
int weft_port_revive(const struct weft_port_dev *d, char *why, size_t why_len);
/** The owner of @p p begins to look: what is so now it knows. */
void weft_port_events_begin(struct weft_port *p);
/** It was removed, taken away or wants a reset since it was opened. */
bool weft_port_has_ended(const struct weft_port_dev *d);
/** Changes with each event. */
uint32_t weft_port_life(const struct weft_port_dev *d);
/**
 * The application took the device from DPDK meanwhile: its number says nothing any more, and is not
 * to be called with.
 */
bool weft_port_is_taken(const struct weft_port_dev *d);
enum weft_lane_link weft_port_link_kind(const struct weft_port_dev *d);
/** bytes/s, as the link says now; a guess where nobody tells: sets or clears the flag GUESS. */
double weft_port_bandwidth(const struct weft_port_dev *d, uint32_t *flags);
/** As frame/frame_port.h says. */
enum weft_frame_port_what weft_port_look(struct weft_frame_port *fp,
					 struct weft_frame_port_event *event);

/**
 * Is the port to be left alone: not started, removed, or in want of a reset? Also notes that look()
 * has something to tell.
 */
static inline bool weft_port_halted(struct weft_port *p)
{
	/* Relaxed: the word hands over nothing but itself. */
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
/** rte_eth_dev_start(), and from then on its timers run. @return what it says */
int weft_port_timers_start(struct weft_port_dev *d);
/** After it was stopped. */
void weft_port_timers_stop(struct weft_port_dev *d);

/* port/spread.c */

/** Before rte_eth_dev_configure(): have the port hash UDP, if it has several queues. */
void weft_port_spread_conf(const struct weft_port_dev *d, struct rte_eth_conf *conf);
/** The port is started: how does it bring frames to queues? @return 0 or an error with @p why */
int weft_port_spread_open(struct weft_port_dev *d, char *why, size_t why_len);
void weft_port_spread_close(struct weft_port_dev *d);
/** What the frame port says of its queue. */
void weft_port_spread_fill(struct weft_port *p);

/* port/steer.c */

/** Can rte_flow bring a UDP port to a queue here? The port is started. */
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

/** Fill @p d->zcopy: d->info and d->limits are there. */
void weft_port_zcopy_find(struct weft_port_dev *d, const struct weft_port_opts *o);
/**
 * Will chains be sent? Nothing but zero copy has them, and asking for them costs some PMDs their
 * vector path.
 */
bool weft_port_wants_chains(const struct weft_port_dev *d, const struct weft_port_opts *o);
void weft_port_zcopy_txconf(const struct weft_port_dev *d, struct rte_eth_txconf *conf);
/**
 * #WEFT_FRAME_PORT_EXTBUF and #WEFT_FRAME_PORT_REG of a port whose other flags are there; fills
 * what belongs to them.
 */
uint32_t weft_port_zcopy_flags(struct weft_port *p, const struct weft_port_opts *o);
bool weft_port_tx_done(struct weft_frame_port *fp);
int weft_port_mem_map(struct weft_frame_port *fp, void *addr, size_t len,
		      struct weft_mem_lane **mem, char *why, size_t why_len);
/** A queue pair is about to close: wait until the NIC has read what it has, if the port goes on. */
void weft_port_zcopy_drain(struct weft_port *p);
void weft_port_zcopy_counters(const struct weft_port *p, weft_frame_port_counter_cb cb, void *arg);

/* port/text.c */

/** Put a sentence together. @return @p rc */
__attribute__((format(printf, 4, 5))) int weft_port_fail(int rc, char *why, size_t why_len,
							 const char *fmt, ...);
void weft_port_link_text(struct weft_frame_port *fp, char *buf, size_t size);

/* port/list.c */

/**
 * Contexts of one process may open and close ports in several threads: for weft_port_devs, their
 * queues and the pools (port/pool.c).
 */
extern pthread_mutex_t weft_port_lock;
extern struct weft_port_dev *weft_port_devs[RTE_MAX_ETHPORTS]; /**< that are open; NULL = not */

void weft_port_name(uint16_t id, char name[RTE_ETH_NAME_MAX_LEN]);
/** By number or name. @return 0, or an error with @p why */
int weft_port_find(const char *resource, uint16_t *id, char *why, size_t why_len);

#endif /* WEFT_PORT_PRIV_H */
