/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file traffic_priv.h
 * Insides of the traffic generator: traffic.c (connections, the run), traffic_tx.c (senders),
 * traffic_rx.c (receivers and the oracle), traffic_am.c and traffic_rma.c (what runs beside).
 */
#ifndef SIM_TRAFFIC_PRIV_H
#define SIM_TRAFFIC_PRIV_H

#include "buffers.h"
#include "traffic.h"

#define TAG_ANY (1ull << 63)
#define TAG_FLOW(f) ((uint64_t)(f) << 48)
#define TAG_CLASS(c) ((uint64_t)(c) << 40)
#define CLASSES 4
#define WILD 0xff

struct flow;
struct inbox;
struct am_flow;
struct rma_end;
struct rma_node;

/** A message under way at its sender. */
struct tx {
	struct flow *flow;
	unsigned int number;
	struct buf *buf;
	struct weft_request *req;
	bool kept;            /* we asked for the request */
	bool sync, withdrawn; /* cancel was taken: may end with -ECANCELED */
};

/** A receive, in the order of posting. */
struct rx {
	struct inbox *inbox;
	uint64_t tag, mask;
	struct buf *buf;
	size_t cap;
	struct weft_request *req;
	struct weft_message *msg; /* taken out by a probe */
	bool looked;              /* a probe said which message it will be: expect */
	uint64_t expect;
	enum { RX_POSTED, RX_DONE, RX_CANCELLED } state;
	uint64_t got; /* tag of the message */
};

/** Where messages are received: one per flow, and one per node for the any plane. */
struct inbox {
	struct traffic *t;
	struct sim_node *node;
	struct flow *flow; /* NULL: any plane */
	struct weft_ep *source;
	struct sim_rng rng;
	uint8_t *plan; /* classes to ask for, or WILD */
	unsigned int plan_len, plan_next;
	struct rx **rx;
	unsigned int num_rx, outstanding, messages, done;
	uint64_t idle_until;
	bool sealed; /* nothing is left over: only completions are missing */
};

/** All messages of one node to another. */
struct flow {
	struct traffic *t;
	unsigned int id;
	struct sim_node *src, *dst;
	struct weft_ep *ep;
	struct sim_rng rng;
	struct inbox in;
	unsigned int messages, next, under_way;
	bool flushing, flushed;
	unsigned int flush_mark;
	uint32_t *order; /* per message: index + 1 of the receive that got it */
	uint8_t *tx_done;
	uint8_t *gone;  /* per message: withdrawn by its sender, no receive may get it */
	struct tx **tx; /* under way, by number */
	struct am_flow *am;
};

/** An endpoint of a node. */
struct link_end {
	struct traffic *t;
	struct sim_node *node, *peer;
	struct weft_ep *ep;
	uint64_t create_at;
	bool wanted, closing, closed;
	struct rma_end *rma;
};

struct traffic {
	struct sim *sim;
	struct traffic_conf conf;
	struct sim_node **nodes;
	unsigned int num_nodes, num_flows, num_ends;
	struct flow *flows;
	struct inbox *any; /* one per node */
	struct link_end *ends;
	struct rma_node **memory; /* one per node */
	uint64_t done, bytes, withdrawn;
	bool closing; /* all is received: whose peer closes first may hear of it as an error */
	struct sim_rng rng;
	char error[300];
	char last_words[200];
};

void traffic_fail(struct traffic *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline uint64_t message_id(const struct flow *f, unsigned int number)
{
	return sim_mix64(sim_seed(f->t->sim) + ((uint64_t)f->id << 32) + number);
}

/* All of a message follows from its number. */
size_t message_size(const struct flow *f, unsigned int number);
bool message_any(const struct flow *f, unsigned int number);
unsigned int message_class(const struct flow *f, unsigned int number);
uint64_t message_tag(const struct flow *f, unsigned int number);
/** Immediate data of half of them. */
bool message_has_imm(const struct flow *f, unsigned int number);
/** What flows send on, and their receivers listen on; the any plane has the first one. */
uint16_t flow_channel(const struct flow *f);

/* traffic_tx.c */
void flow_send_step(struct flow *f);
bool flow_sent(const struct flow *f);

/* traffic_rx.c */
void inbox_init(struct inbox *in, struct traffic *t, struct sim_node *node, struct flow *f,
		unsigned int messages);
void inbox_step(struct inbox *in);
/** Everything has come, and went where it had to. */
bool inbox_finished(struct inbox *in);
/** The final check which receive got which message. */
void inbox_check(struct inbox *in);
void inbox_free(struct inbox *in);
/** The sender has withdrawn a message. */
void inbox_withdrawn(struct inbox *in);

/* traffic_am.c */
/** Handle active messages of a node; @p in: its inbox of the any plane */
void am_listen(struct inbox *in);
struct am_flow *am_create(struct flow *f, unsigned int messages);
void am_step(struct am_flow *a);
bool am_finished(const struct am_flow *a);
void am_free(struct am_flow *a);

/* traffic_rma.c */
/** Memory of a node, when all link_ends are known. */
struct rma_node *rma_node_create(struct traffic *t, struct sim_node *node);
struct rma_end *rma_end_create(struct link_end *e, struct rma_node *target);
void rma_step(struct rma_end *r);
/** All is done, flushed, and was compared with the peer's memory. */
bool rma_finished(const struct rma_end *r);
/** When all ends have finished. */
void rma_node_check(struct rma_node *n);
/** Before its endpoint is closed. */
void rma_end_close(struct rma_end *r);
/** Deregister. @return false while it is still in use */
bool rma_node_release(struct rma_node *n);
void rma_end_free(struct rma_end *r);
void rma_node_free(struct rma_node *n);

#endif /* SIM_TRAFFIC_PRIV_H */
