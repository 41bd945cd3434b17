/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net_stage_priv.h
 * Insides of the stage: net_stage.c makes the network and counts, net_stage_run.c sends and
 * receives.
 */
#ifndef SIM_NET_STAGE_PRIV_H
#define SIM_NET_STAGE_PRIV_H

#include "net_stage.h"

#define NET_WINDOW 64
#define NET_RECVS (NET_WINDOW + 2)
#define BYSTANDER_SIZE 64

/** What a message begins with. */
struct net_stamp {
	uint64_t sender, number, sent_at;
};

struct net_sender;

/** A buffer of a message under way, at either end. */
struct net_slot {
	struct net_sender *sender;
	uint8_t *buf;
	bool busy;
	uint64_t turn; /* of a receive: number of the message that it matches */
	bool answer;   /* the sender's receive of an answer, or the receiver's sending of it */
};

struct net_sender {
	struct net_stage *s;
	unsigned int index;
	bool bystander;
	struct sim_port *port;
	struct sim_node *node;
	struct weft_ep *ep, *back; /* back: the receiver's, for answers */
	uint64_t size;
	struct net_slot out[NET_WINDOW], in[NET_RECVS], answer_out, answer_in;
	unsigned int window;
	uint64_t sent, received, posted; /* messages */
	uint64_t payload;                /* received, bytes */
	uint64_t next_at;                /* bystander */
};

/** Sums that figures are differences of. */
struct net_sums {
	uint64_t when, frames, drops, marks, again;
	uint64_t payload[NET_SENDERS];
};

struct net_stage {
	struct net_conf conf;
	struct sim *sim;
	struct sim_rng rng;
	struct net_sender sender[NET_SENDERS + 1]; /* the bystander is the last */
	unsigned int num;                          /* with the bystander */
	struct sim_port *port;
	struct sim_node *node;
	struct sim_trunk *trunk[NET_TRUNKS];
	uint64_t started_at;
	bool sending, idle;
	struct net_sums mark;
	struct net_samples bystander, message;
	char error[400];
};

/** The first violation counts. */
void net_stage_fail(struct net_stage *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* net_stage_run.c */
void net_sender_prepare(struct net_sender *sender);
void net_sender_pump(struct net_sender *sender);
/** @return whether all that was sent has come */
bool net_sender_idle(const struct net_sender *sender);
void net_sender_free(struct net_sender *sender);

#endif /* SIM_NET_STAGE_PRIV_H */
