/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net_stage.h
 * A stage for congestion: senders, each with a window of messages under way all the time, one
 * receiver, and a bystander that sends the same receiver a short message now and then. Every
 * message carries its sender's number and its own, and the receiver demands each one once and in
 * order.
 *
 *	senders ── up ──┐                                  ┌── down (the bottleneck) ── receiver
 *	bystander ──────┴─ switch [── trunks ── switch] ───┘
 *	                   (with trunks, these are the bottleneck)
 */
#ifndef SIM_NET_STAGE_H
#define SIM_NET_STAGE_H

#include "net_measure.h"
#include "sim.h"

#define NET_SENDERS 512
#define NET_TRUNKS 16

struct net_conf {
	unsigned int senders; /**< 0 = 1 */
	uint64_t size;        /**< of a message; 0 = 64 KiB */
	unsigned int window;  /**< messages under way of a sender; 0 = 4 */
	unsigned int mtu;     /**< 0 = 1500 */
	uint64_t rate;        /**< of the bottleneck; 0 = 10 Gb/s */
	uint64_t host_rate;   /**< of the senders' ports; 0 = the same */
	uint64_t rtt_ns;      /**< without a queue; 0 = 10 us */
	/** Faults of the path to the receiver, rate and delay excepted. */
	struct sim_link path;
	struct sim_link back; /**< faults of the path from the receiver */
	unsigned int
		trunks;    /**< > 0: the receiver is behind so many equal paths, each of the rate */
	unsigned int ring; /**< receive ring of each port; 0 = the default of ports */
	unsigned int paths; /**< source ports of a lane; 0 = the default of the port */
	bool request;       /**< each message is answered by one of its size before the next one */
	bool bystander;
	/** a host is off its core for so long, every 25 ms on average; 0 = never */
	uint64_t pause_least_ns, pause_most_ns;
	uint64_t later_ns;  /**< each sender begins this much later than the one before it */
	bool all_pause;     /**< any of the hosts; otherwise the receiver or the first sender */
	bool rx_pause;      /**< the receiver alone */
	uint64_t slow_ns;   /**< the receiver is progressed once in this time */
	const char *config; /**< WEFT_ variables, as struct sim_node_params has them */
	uint64_t start_ns;  /**< reported apart; 0 = 5 ms */
	uint64_t run_ns;    /**< in all, from the first message on; 0 = 100 ms */
};

struct net_stage;

/** All connected, nothing sent. Fails loudly. */
struct net_stage *net_stage_open(uint64_t seed, const struct net_conf *conf);
/** @return NULL or what was violated (in static memory); the simulation is gone */
const char *net_stage_close(struct net_stage *s);

struct sim *net_stage_sim(const struct net_stage *s);
struct sim_port *net_stage_receiver(const struct net_stage *s);
/** Number of the switch that senders (false) or the receiver (true) are at. */
unsigned int net_stage_net(const struct net_stage *s, bool receiver);
/** Another host's port at that switch, for cross traffic. */
struct sim_port *net_stage_more(struct net_stage *s, bool receiver);
struct sim_trunk *net_stage_trunk(const struct net_stage *s, unsigned int i);

/** Begin to send; @p idle: the bystander only. */
void net_stage_start(struct net_stage *s, bool idle);
/** Go on until @p ns after the start. */
void net_stage_run(struct net_stage *s, uint64_t ns);

/** What has happened since the last mark. */
void net_stage_mark(struct net_stage *s);

struct net_figures {
	double seconds;
	double bits;    /**< payload delivered, bit/s, all senders */
	double jain;    /**< over payload delivered per sender */
	double dropped; /**< frames dropped by queues and policers / frames at the bottleneck */
	double again;   /**< frames sent again / the same */
	double marked;  /**< frames marked / the same */
	double queue;   /**< the most that waited at the bottleneck, bytes, since the start */
	/** ns; bystander: one way; message: from its sending to its receipt (or answer) */
	uint64_t bystander_p50, bystander_p99, message_p50, message_p99, message_p999,
		message_p9999;
	uint64_t message_max;
};

struct net_figures net_stage_figures(struct net_stage *s);

#endif /* SIM_NET_STAGE_H */
