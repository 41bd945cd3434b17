/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file tcp.h
 * Cross traffic: one flow that always has something to send, with the congestion control of a TCP,
 * between two stations. No TCP: packets have numbers that are never used twice, as QUIC's, so that
 * what is lost is not sent again but something new is, and every packet is acknowledged at once.
 * What a queue sees of it is the same. Selective acknowledgements cover 256 packets; losses are
 * seen by three later arrivals, a tail probe after two round trips, and a timeout of 200 ms at
 * least.
 */
#ifndef SIM_TCP_H
#define SIM_TCP_H

#include "sim.h"

#define TCP_MSS 1448
#define TCP_PACKET (TCP_MSS + 66) /* with Ethernet, IPv4 and TCP headers, and timestamps */

/** What an algorithm decides. */
struct tcp_window {
	double cwnd;   /**< packets */
	double pacing; /**< bytes/s; 0 = none */
};

/** What it receives when packets are acknowledged. */
struct tcp_ack {
	uint64_t now, rtt_ns, min_rtt_ns;
	unsigned int acked;    /**< packets, by this acknowledgement */
	unsigned int inflight; /**< packets, afterwards */
	double rate;           /**< delivered, bytes/s; 0 = not known */
	bool round; /**< a packet sent in this round is acknowledged: a new round begins */
};

union tcp_state;

/** Congestion control: pure, time passed in. */
struct tcp_algorithm {
	const char *name;
	void (*init)(union tcp_state *state, struct tcp_window *w);
	void (*acked)(union tcp_state *state, struct tcp_window *w, const struct tcp_ack *ack);
	/** At most once a round. */
	void (*lost)(union tcp_state *state, struct tcp_window *w, uint64_t now);
	void (*timeout)(union tcp_state *state, struct tcp_window *w, uint64_t now);
};

extern const struct tcp_algorithm tcp_cubic, tcp_bbr;

struct tcp_cubic_state {
	double ssthresh, w_max, w_reno, k;
	uint64_t epoch;
};

#define TCP_BBR_ROUNDS 10

struct tcp_bbr_state {
	enum { BBR_STARTUP, BBR_DRAIN, BBR_PROBE_BW, BBR_PROBE_RTT } mode;
	double bw[TCP_BBR_ROUNDS]; /* greatest of each round */
	unsigned int round, phase, full_count;
	double full_bw;
	uint64_t phase_at, min_rtt, min_rtt_at, probe_until;
};

union tcp_state {
	struct tcp_cubic_state cubic;
	struct tcp_bbr_state bbr;
};

struct tcp_flow;

/** A flow between two ports of @p sim, which become its stations. */
struct tcp_flow *tcp_flow_create(struct sim *sim, const struct tcp_algorithm *algorithm,
				 struct sim_port *from, struct sim_port *to);
void tcp_flow_start(struct tcp_flow *flow);
/** Payload that has arrived. */
uint64_t tcp_flow_bytes(const struct tcp_flow *flow);
uint64_t tcp_flow_packets(const struct tcp_flow *flow);
/** It sends nothing more. */
void tcp_flow_stop(struct tcp_flow *flow);
/** After the simulation has ended, which may still call it. NULL is allowed. */
void tcp_flow_free(struct tcp_flow *flow);

#endif /* SIM_TCP_H */
