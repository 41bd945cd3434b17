/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sim.h
 * A network in one process, in virtual time. See doc/testing.md.
 *
 * A **net** is a switch. A **port** hangs on one net by a link with two directions, each with its
 * own rate, delay and faults. A **node** is a host: its own clock, its own randomness, a Weft
 * context and worker whose lanes are ports of the simulation. A port without a node is a
 * **station**: the test sees and sends raw frames there.
 *
 * Everything that happens is a function of the seed: events are ordered by time and then by number,
 * dice are streams of the seed, and nothing reads the machine's clock. sim_hash() sums up a run.
 *
 * Time is in ns since the start of the simulation. Nodes see other clocks (an offset and a drift of
 * their own), as hosts do.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "link/link.h"
#include "weft.h"

#define SIM_US 1000ull
#define SIM_MS 1000000ull
#define SIM_S 1000000000ull
#define SIM_GBIT 1000000000ull

struct sim;
struct weft_lane_iface;
struct weft_lane_open;
struct sim_port;
struct sim_node;
struct sim_wire; /* one direction's state: sim_net.c */

/* ------------------------------------------------------------------ simulation */

struct sim *sim_create(uint64_t seed);
/** Nodes still there are killed. Frees everything. NULL is allowed. */
void sim_destroy(struct sim *sim);

uint64_t sim_now(const struct sim *sim);
uint64_t sim_seed(const struct sim *sim);
/** Digest of every frame that was sent or delivered, with its time and place. */
uint64_t sim_hash(const struct sim *sim);
/** A stream for the test's own dice. */
struct sim_rng sim_stream(const struct sim *sim, uint64_t purpose);

/**
 * Polling: a node that had work is polled again after @p busy_ns, an idle one after steps that
 * double up to @p idle_ns, or when the next frame comes.
 */
void sim_set_poll(struct sim *sim, uint64_t busy_ns, uint64_t idle_ns);

/** Call @p fn at @p when (now at the earliest). */
void sim_at(struct sim *sim, uint64_t when, void (*fn)(void *arg), void *arg);

/** Is it over? Called after each round of progress. */
typedef bool (*sim_done_cb)(void *arg);

/**
 * Run until @p done says so, or for @p max_ns. @return what @p done said last (NULL: true after @p
 * max_ns)
 */
bool sim_run(struct sim *sim, uint64_t max_ns, sim_done_cb done, void *arg);

/** Write every frame of every port to a pcapng. @return 0 or -errno */
int sim_capture(struct sim *sim, const char *path);

/* ------------------------------------------------------------------ links */

/*
 * One direction of a port's link is a struct sim_link (link/link.h), which may be changed at any
 * time. Upwards a port's own ring is the queue: queue_bytes and ecn_bytes count downwards and on
 * trunks.
 */

struct sim_stats {
	uint64_t tx_frames, tx_bytes; /**< put on the wire by the port's owner */
	uint64_t rx_frames, rx_bytes; /**< put in the port's receive ring */
	/** both directions; see struct sim_link_stats. tail_drops: all that congestion drops */
	uint64_t lost, dupped, reordered, corrupted, truncated, blackholed, too_long, marked;
	uint64_t tail_drops;
	uint64_t rx_full;  /**< receive ring */
	uint64_t rx_nobuf; /**< no mbuf */
	/** for a MAC address that no port of the net has, or without a listener at the port */
	uint64_t no_listener;
	uint64_t filtered;
	uint64_t leaked;  /**< mbufs missing when the port was closed */
	uint64_t tx_busy; /**< tx_burst that did not take all */
	/** frames the owner sent that are longer than its port's frame_size */
	uint64_t oversize;
	/** frames the owner sent that need a flag the port has not, or memory it may not read */
	uint64_t not_allowed;
	uint64_t chains; /* frames of more than one buffer */
};

/* ------------------------------------------------------------------ ports */

struct sim_port_params {
	const char *name;      /**< resource name; NULL = "p0", "p1", ... */
	unsigned int net;      /**< which switch */
	struct sim_link up;    /**< towards the net */
	struct sim_link down;  /**< from the net */
	uint16_t frame_size;   /**< 0 = 1514 */
	uint16_t tx_depth;     /**< 0 = 256 */
	uint16_t rx_depth;     /**< 0 = 512 */
	uint32_t tx_bytes_max; /**< see frame_port.h */
	uint32_t bufs;         /**< frame mbufs; 0 = 2048 */
	uint32_t hdr_bufs;     /**< small ones; 0 = as many */
	uint32_t flags;        /**< WEFT_FRAME_PORT_* in addition to MULTISEG | EXTBUF */
	uint32_t no_flags;     /**< without these of them */
	/* With WEFT_FRAME_PORT_REG: a NIC whose PMD keeps sent mbufs until the ring runs short. */
	unsigned int max_mems; /**< registrations at a time; 0 = any number */
	bool scattered;        /**< pages do not follow each other for the NIC */
	double bandwidth;      /**< claimed, bytes/s; 0 = up.rate / 8, or 1.25e9 */
	double latency;        /**< claimed, s; 0 = 1e-6 */
	int link;              /**< enum weft_lane_link of lane.h */
	const char *device;    /**< hardware identity; NULL = one of its own */
	/* The lane on it, as the options of WEFT_LANES would say; 0 = default */
	uint32_t ip; /**< host order; 0 = link-local from the MAC */
	uint8_t prefix;
	uint32_t gateway;
	/** instead of ip: an IPv6 address, of a network of 64 bits; 0 behind: from the MAC */
	const char *ip6;
	const struct weft_lane_neigh *neigh; /**< outlives the simulation */
	unsigned int num_neigh;
	uint16_t vlan, udp_port;
	uint16_t lane_frame_size; /**< below frame_size: as if the user had said mtu= */
	uint8_t paths;
	bool raw_ethertype;
	bool set_first_seq; /**< begin frame sequences at first_seq: wrap tests */
	uint32_t first_seq;
	/* The lane's frames are sealed; NULL = plain. */
	const uint8_t *job_key; /**< 32 bytes, outlives the simulation */
	bool seal_auth;
	bool seal_psk; /**< keys without X25519 */
	uint64_t seal_rekey_ns;
	const int *keylog; /**< file for the keys; NULL = none */
	/** set by sim_port_queues(): not a port but another queue of that one */
	struct sim_port *queue_of;
};

/** @p params may be NULL. The port lives as long as the simulation. */
struct sim_port *sim_port_create(struct sim *sim, const struct sim_port_params *params);

#define SIM_QUEUES_MAX 64

/** Which of a port's queues a frame comes to. What is no UDP comes to the first. */
enum sim_spread {
	SIM_SPREAD_RULES,  /**< flow rules: by the port that it is for */
	SIM_SPREAD_RSS,    /**< Toeplitz hash; the driver reports key and table */
	SIM_SPREAD_SECRET, /**< the same; it reports nothing */
	SIM_SPREAD_LIE,    /**< the same; it tells another key */
	SIM_SPREAD_TAP,   /**< where the flow was sent from last, else by a hash; reports nothing */
	SIM_SPREAD_FIRST, /**< all to the first queue; reports nothing */
};

/**
 * A port with @p n queues, which listen on params->udp_port (0 = 9338) and the following. They have
 * one MAC address and one link, those of the first; their owners run on one machine: its
 * clock is the same.
 */
void sim_port_queues(struct sim *sim, const struct sim_port_params *params, enum sim_spread how,
		     unsigned int n, struct sim_port **out);
struct sim_link *sim_port_up(struct sim_port *port);
struct sim_link *sim_port_down(struct sim_port *port);
/** Set both directions of both (b may be NULL). */
void sim_link_set(struct sim_port *a, struct sim_port *b, const struct sim_link *link);
const struct sim_stats *sim_port_stats(const struct sim_port *port);
/** Peers without a socket that the engine has named to the port. */
unsigned int sim_port_alone(const struct sim_port *port);
/** The farewell that was entered last, of any connection. @return its length; 0 = none */
uint32_t sim_port_farewell(const struct sim_port *port, uint8_t *frame);
const char *sim_port_name(const struct sim_port *port);
const uint8_t *sim_port_mac(const struct sim_port *port);
unsigned int sim_port_index(const struct sim_port *port);
/**
 * link_up() of the frame port; a port without carrier sends and receives nothing. Its owner is
 * notified.
 */
void sim_port_carrier(struct sim_port *port, bool up);
/** The speed that the port claims changes; its owner is notified. */
void sim_port_speed(struct sim_port *port, double bandwidth);
/**
 * The NIC is removed (-ENODEV: it can't be opened again) or wants a reset (-ENETRESET, by opening
 * it anew): nothing goes in or out, and its owner is notified.
 */
void sim_port_end(struct sim_port *port, int status);
/** Plug the port into another net. */
void sim_port_move(struct sim_port *port, unsigned int net);

/** What the direction from the net has done. */
const struct sim_link_stats *sim_port_down_stats(const struct sim_port *port);

/* ------------------------------------------------------------------ several switches */

#define SIM_MAX_NETS 64
#define SIM_MAX_TRUNKS 128

struct sim_trunk;

/**
 * Join two nets by a link. Frames take a shortest path of trunks; where several are equally short,
 * the hash of the 5-tuple chooses (ECMP), differently at each switch. Broadcasts go along a tree.
 * @param ab, ba  the directions; NULL = perfect
 */
struct sim_trunk *sim_trunk_create(struct sim *sim, unsigned int a, unsigned int b,
				   const struct sim_link *ab, const struct sim_link *ba);
/** The direction that leaves @p from. May be changed at any time. */
struct sim_link *sim_trunk_link(struct sim_trunk *trunk, unsigned int from);
const struct sim_link_stats *sim_trunk_stats(const struct sim_trunk *trunk, unsigned int from);
/**
 * The trunk goes down, or returns, and the switches know at once: paths go round it. (A failure
 * without detection is sim_link.blackhole.)
 */
void sim_trunk_set(struct sim_trunk *trunk, bool up);
/** The same for a whole switch: what is at it, or comes to it, is lost. */
void sim_switch_set(struct sim *sim, unsigned int net, bool up);

/** Frames that queues, policers and flow caps have dropped, everywhere. */
uint64_t sim_congestion_drops(const struct sim *sim);

/* ------------------------------------------------------------------ stations */

/** Frame at a station. @p data is valid during the call. */
typedef void (*sim_frame_cb)(struct sim_port *port, const uint8_t *data, size_t len, void *arg);
/**
 * Make the port a station: frames for its MAC, and broadcasts, go to @p cb; with @p promisc all
 * frames of the net.
 */
void sim_station(struct sim_port *port, bool promisc, sim_frame_cb cb, void *arg);
/** Put a frame on the wire at @p port, as its owner would. */
void sim_inject(struct sim_port *port, const void *data, size_t len);

enum sim_verdict { SIM_PASS, SIM_DROP };
/**
 * Sees, and may change or drop, each frame that @p port sends, before the link's own faults. @p
 * data has room for @p room bytes.
 */
typedef enum sim_verdict (*sim_filter_cb)(struct sim_port *port, uint8_t *data, size_t *len,
					  size_t room, void *arg);
void sim_filter(struct sim_port *port, sim_filter_cb cb, void *arg);

/* ------------------------------------------------------------------ nodes */

struct sim_node_params {
	const char *name; /**< NULL = "n0", "n1", ... */
	struct sim_port *const *ports;
	unsigned int num_ports;
	/**
	 * Configuration, "NAME=VALUE" separated by blanks, without the WEFT_ prefix; NULL =
	 * defaults
	 */
	const char *config;
	const uint8_t *job_key; /**< 32 bytes; NULL = plain frames */
	enum weft_thread_mode thread_mode;
	unsigned int flags; /**< WEFT_WORKER_F_* */
	/** See struct weft_worker_params. */
	void (*accept_cb)(struct weft_worker *worker, struct weft_ep *ep, uint64_t remote_id,
			  const char *remote_name, void *arg);
	void *accept_arg;
	/**
	 * Devices of the test's own, beside the ports: their driver, its lanes ("roce:a0;roce:a1"),
	 * and what makes them go on, called before each look of the worker, and while the node
	 * closes
	 */
	const struct weft_lane_driver *driver;
	const char *lanes;
	void (*pump)(uint64_t now_ns);
	/** It is in one process with this node: their clock is the same. NULL = another host */
	const struct sim_node *beside;
	/** Opens the lanes of the ports, from the driver of the bare ones; NULL = they are bare */
	int (*wrap)(const struct weft_lane_driver *bare, const struct weft_lane_open *open,
		    struct weft_lane_iface **iface, char *why, size_t why_len);
};

/** Make a host with a context and a worker on these ports; fails the test when that fails. */
struct sim_node *sim_node_create(struct sim *sim, const struct sim_node_params *params);
/** As above, but gives the worker's error. */
int sim_node_try(struct sim *sim, const struct sim_node_params *params, struct sim_node **node);
struct weft_worker *sim_worker(const struct sim_node *node);
/**
 * Create an endpoint of @p from to the worker of @p to.
 * @param params  without an address; NULL = the defaults
 * @return as weft_ep_create()
 */
int sim_ep_create(struct sim_node *from, struct sim_node *to, const struct weft_ep_params *params,
		  struct weft_ep **ep);
struct weft_context *sim_context(const struct sim_node *node);
/** What the node's own clock says now. */
uint64_t sim_node_now(const struct sim_node *node);
/** The node's worker is not progressed for @p ns. */
void sim_node_pause(struct sim_node *node, uint64_t ns);
/** A slow receiver: the worker is progressed at most once in @p ns (0 = as fast as it can). */
void sim_node_slow(struct sim_node *node, uint64_t ns);
/** @p mem lives as long as the worker: it is deregistered when that is gone, whatever the end. */
void sim_node_keep(struct sim_node *node, struct weft_mem *mem);
/** Destroy the worker in good order (it may tell its peers). */
void sim_node_close(struct sim_node *node);
/**
 * The host loses its power: it says nothing more. Its ports are free for a new node with the same
 * addresses.
 */
void sim_node_kill(struct sim_node *node);
/** Close all nodes that live, in the order they were made. */
void sim_close_nodes(struct sim *sim);
bool sim_node_alive(const struct sim_node *node);
/** Counters of the worker whose name ends in @p suffix, summed up. */
uint64_t sim_node_counter(const struct sim_node *node, const char *suffix);
/** mbufs that no port got back when it was closed. */
uint64_t sim_leaked(const struct sim *sim);
/** Frames that were sealed, of all hosts; and those whose key and nonce an earlier one had. */
struct sim_nonces {
	uint64_t sealed, repeated;
};

/** Of the simulation that was made last. In a build that cannot seal, zeros. */
struct sim_nonces sim_nonces(void);
/** Count from zero again, as sim_create() does. */
void sim_nonces_forget(void);
/** Contexts that could not be destroyed with their hosts, since something still held them. */
unsigned int sim_stuck_contexts(const struct sim *sim);

/* ------------------------------------------------------------------ DPDK */

/**
 * Start the EAL for simulations: no hugepages, no devices, no files. Once per process; fails
 * loudly.
 */
void sim_eal_init(void);

/* ---- figures */

/** Bytes that malloc() has given out. */
size_t sim_heap_used(void);
/** For qsort() of uint64_t. */
int sim_by_value(const void *a, const void *b);

#endif /* SIM_H */
