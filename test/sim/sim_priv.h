/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sim_priv.h
 * Insides of the simulator, shared by its files:
 *   sim.c       clock, events, the loop
 *   sim_net.c   links: frames between ports and switches
 *   sim_fabric.c  several switches, trunks between them, ECMP
 *   sim_port.c  struct weft_frame_port over a port, mbufs
 *   sim_mem.c   memory that a port may read
 *   sim_queues.c  several queues of one port
 *   sim_host.c  hosts: clock, dice, life and death
 *   sim_node.c  nodes: a host with a Weft worker; lane driver "sim"
 *   sim_pcap.c  capture
 */
#ifndef SIM_PRIV_H
#define SIM_PRIV_H

#include <sys/queue.h>

#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "lane.h"
#include "link/link.h"
#include "sim.h"

#define SIM_FRAME_MAX 16384 /* longest frame the network carries */
#define SIM_WIRE_EXTRA SIM_LINK_EXTRA
#define SIM_MAX_PORTS 1024
#define SIM_HOST_PORTS 16

/**
 * A frame in the network: a copy, so that the sender's buffer is free as soon as a NIC would have
 * read it.
 */
struct sim_frame {
	STAILQ_ENTRY(sim_frame) entry;
	uint32_t len;
	uint8_t data[];
};

STAILQ_HEAD(sim_frames, sim_frame);

/** A direction of a link. */
struct sim_wire {
	struct sim_link link;
	struct sim_link_state state;
};

struct sim_trunk {
	struct sim *sim;
	struct sim_trunk_end {
		struct sim_trunk *trunk;
		unsigned int net;
		struct sim_wire out; /* leaves this net for the other end's */
	} end[2];
	bool up;
};

/**
 * A place in a port's TX ring: the mbuf stays the sender's until the wire has taken it and the
 * owner reclaims it.
 */
struct sim_tx {
	TAILQ_ENTRY(sim_tx) entry;
	struct sim_port *port;
	struct rte_mbuf *mbuf;   /* NULL once reclaimed */
	struct sim_frame *frame; /* injected, or copied early because the port was closed */
	uint32_t len;            /* of the mbuf's frame: counts as unsent until the wire has it */
	bool sent;
	bool dead; /* of a host that died with the frame in its ring */
};

struct sim_port {
	struct weft_frame_port fp; /* first: the engine's view */
	struct sim *sim;
	unsigned int index, net;
	struct sim_port_params params;
	char name[32];
	struct sim_wire up, down;
	struct weft_arp_table arp; /* of a port with several queues */
	struct sim_queues *queues; /* all of them; NULL = there is one */
	struct sim_stats stats;
	bool carrier, reported_carrier; /* reported: what the owner knows */
	double speed;                   /* claimed, bytes/s; fp.bandwidth is what the owner knows */
	int ended;
	bool reported_ended;
	/* owner: a frame port that is open, or a station */
	bool open;
	bool mute; /* the host died: what it still says is not heard */
	bool promisc;
	sim_frame_cb station;
	void *station_arg;
	sim_filter_cb filter;
	void *filter_arg;
	TAILQ_HEAD(sim_ring, sim_tx) ring;
	unsigned int ring_used;
	uint32_t unsent; /* bytes */
	unsigned int num_mems;
	struct sim_frames rx;
	unsigned int rx_used;
	unsigned int alone;    /* calls of the port's alone() */
	uint32_t farewell_len; /* 0 = none */
	uint8_t farewell[WEFT_FAREWELL_MAX];
};

enum sim_event_kind { SIM_EV_CALL, SIM_EV_TX, SIM_EV_SWITCH, SIM_EV_ARRIVE, SIM_EV_TRUNK };

struct sim_event {
	struct sim_due due; /* first */
	enum sim_event_kind kind;
	/* SIM_EV_CALL: none; TRUNK: struct sim_trunk_end it arrives at; else: struct sim_port */
	void *at;
	void *p; /* SIM_EV_CALL: argument; TX: struct sim_tx; else: struct sim_frame */
	void (*fn)(void *arg);
};

/**
 * Something that is polled: a node, or a bare lane engine. Owned by the simulation from
 * sim_host_add() on.
 */
struct sim_host {
	TAILQ_ENTRY(sim_host) entry;
	struct sim *sim;
	char name[32];
	unsigned int index;
	struct sim_port *ports[SIM_HOST_PORTS];
	unsigned int num_ports;
	struct weft_platform platform; /* for the host's lanes: its clock, its dice */
	struct sim_rng rng;
	uint64_t clock_offset;
	int64_t clock_ppm;
	bool alive;
	uint64_t paused_until, slow_ns;
	void (*pump)(uint64_t now_ns);
	uint64_t late; /* its end takes time, only its own */
	unsigned int (*progress)(struct sim_host *host);
	void (*stop)(struct sim_host *host); /* frees all but the struct itself */
};

struct sim_pcap;

struct sim {
	uint64_t seed, now, number, hash;
	struct sim_event *heap;
	size_t heap_len, heap_max;
	struct sim_port *ports[SIM_MAX_PORTS];
	unsigned int num_ports, num_hosts, num_trunks, stuck_contexts;
	struct sim_trunk *trunks[SIM_MAX_TRUNKS];
	bool net_down[SIM_MAX_NETS];
	bool routed;                              /* dist and tree are up to date */
	uint8_t dist[SIM_MAX_NETS][SIM_MAX_NETS]; /* trunks between; UINT8_MAX = no path */
	bool tree[SIM_MAX_TRUNKS];                /* broadcasts go along it */
	TAILQ_HEAD(, sim_host) hosts;
	uint64_t busy_ns, idle_ns;
	struct sim_rng rng;
	struct sim_pcap *pcap;
	bool running;
};

/* sim_port_life.c */
enum weft_frame_port_what sim_port_look(struct weft_frame_port *fp,
					struct weft_frame_port_event *ev);
/** Opened (again): the reset is done, and what is so now is known to the owner. */
void sim_port_renew(struct sim_port *port);

/* sim.c */
void sim_event_add(struct sim *sim, uint64_t when, enum sim_event_kind kind, void *at, void *p,
		   void (*fn)(void *arg));
void sim_hash_frame(struct sim *sim, unsigned int what, const struct sim_port *port,
		    const uint8_t *data, size_t len);
void *sim_alloc(size_t len);

/* sim_net.c */
struct sim_frame *sim_frame_new(const void *data, size_t len);
/** The wire takes the frame of a TX place: now, or when the rate allows. */
void sim_net_send(struct sim_port *port, struct sim_tx *tx, size_t len);
void sim_net_event(struct sim *sim, const struct sim_event *ev);
/** Takes the frame through a direction with its queue; what comes out is an event at @p at. */
void sim_wire_forward(struct sim *sim, struct sim_wire *w, enum sim_event_kind kind, void *at,
		      struct sim_frame *f);
/** Takes the frame, which is at a switch: to the ports of its net that want it. @return any? */
bool sim_net_deliver(struct sim *sim, unsigned int net, const struct sim_port *from,
		     struct sim_frame *f);

/* sim_fabric.c */
/**
 * Takes the frame, which has come to switch @p net by a port or a trunk (the other is NULL).
 * @return false: no port has its address
 */
bool sim_fabric_switch(struct sim *sim, unsigned int net, const struct sim_port *from,
		       const struct sim_trunk *in, struct sim_frame *f);
void sim_fabric_free(struct sim *sim);

/* sim_port.c */
/** A frame reaches the port's receive ring or station; takes the frame. */
void sim_port_receive(struct sim_port *port, struct sim_frame *frame);
/** Free what the port's rings hold. */
void sim_port_drain(struct sim_port *port);
struct weft_raw_conf;
/** The lane's settings, from the parameters of the port. */
void sim_port_conf(const struct sim_port *port, struct weft_raw_conf *rc);
/** Give the port an owner with mbufs. @return 0 or -errno */
int sim_port_open(struct sim_port *port);
/** Copy of the frame in a place's mbuf, with the checksums the port was asked for. */
struct sim_frame *sim_tx_read(const struct sim_tx *tx);
/** Free a TX place whose frame is sent and whose mbuf is reclaimed. */
void sim_tx_put(struct sim_tx *tx);

/** The UDP header of a frame that has one, whole. */
struct rte_udp_hdr *sim_find_udp(uint8_t *data, size_t len, struct rte_ipv4_hdr **ip);

/* sim_queues.c */
/** The queue that a frame to the port comes to. */
struct sim_port *sim_queue_for(struct sim_port *port, const struct sim_frame *frame);
/** A queue has sent it. */
void sim_queue_sent(struct sim_port *port, const struct sim_frame *frame);
/** Drop what the queues have handed to each other. */
void sim_queues_drain(struct sim_port *port);
void sim_queues_free(struct sim_port *port);

/* sim_host.c */
/**
 * The environment's configuration, changed by "NAME=VALUE ..." (NULL = nothing). @return 0 or
 * -errno
 */
int sim_config(const char *text, struct weft_config **config);
/**
 * Make @host, which the caller allocated and whose progress() and stop() are set, a host of the
 * simulation; alive.
 */
void sim_host_add(struct sim *sim, struct sim_host *host, const char *name,
		  struct sim_port *const *ports, unsigned int n);
/** They run on one machine. */
void sim_host_share_clock(struct sim_host *host, const struct sim_host *other);
/** @p mute: nothing it says from now on is heard. */
void sim_host_stop(struct sim_host *host, bool mute);
struct sim_port *sim_host_port(const struct sim_host *host, const char *name);
unsigned int sim_hosts_poll(struct sim *sim);
void sim_hosts_free(struct sim *sim);

/* sim_pcap.c */
struct sim_pcap *sim_pcap_open(const char *path);
void sim_pcap_close(struct sim_pcap *pcap);
void sim_pcap_frame(struct sim_pcap *pcap, const struct sim_port *port, bool out, uint64_t now,
		    const uint8_t *data, size_t len);

/* sim_mem.c */

int sim_mem_map(struct weft_frame_port *fp, void *addr, size_t len, struct weft_mem_lane **out,
		char *why, size_t why_len);
/** May a port with WEFT_FRAME_PORT_REG read this segment, by the address that it has? */
bool sim_mem_readable(const struct rte_mbuf *seg);

#endif /* SIM_PRIV_H */
