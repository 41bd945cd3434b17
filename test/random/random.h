/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file random.h
 * Random sequences of public calls, and a model of what weft.h promises of them. The model was
 * written from weft.h alone: it knows no protocol, no state of the library and no kind of lane. A
 * struct random_net has the nodes: the simulator (sim/random_sim.h) or lanes of this machine
 * (lanes.h).
 *
 * Every call and every completion has a number (its place in time): the model compares these. A
 * **stream** is what one endpoint sends. A stream is **whole** when nothing but its own graceful
 * close can have ended its connection: what is sent on it must arrive. Of others a message may be
 * lost, but never be wrong, come twice or overtake.
 *
 *	random.c      the run, its end, and the checks that look at all of it
 *	random_op.c   operations: one completion each, cancelling, what statuses are allowed
 *	random_tag.c  tagged messages
 *	random_am.c   active messages
 *	random_rma.c  memory
 *	random_ep.c   endpoints
 */
#ifndef RANDOM_RANDOM_H
#define RANDOM_RANDOM_H

#include "sim/buffers.h"
#include "common/pattern.h"
#include "weft.h"

#define RANDOM_NODES 3
#define RANDOM_CHANNELS 3

enum kind {
	K_SEND,
	K_SYNC,
	K_AM,
	K_RECV,
	K_MSG_RECV,
	K_AM_DATA,
	K_PUT,
	K_GET,
	K_ATOMIC,
	K_FLUSH,
	K_WORKER_FLUSH,
	K_CLOSE,
	K_LOOK, /* a probe, no request */
};

struct world;
struct rop;

struct rnode {
	struct world *w;
	unsigned int index;
	struct weft_context *ctx;
	struct weft_worker *worker;
	uint64_t id;
	struct rmem *mem; /* registered now */
};

/** An endpoint. It stays here after its close. */
struct end {
	struct rnode *node, *peer;
	struct weft_ep *ep; /* as long as it is open */
	unsigned int index, errors;
	bool accepted, force;
	int status; /* it failed with */
	uint64_t created, closed, close_done, failed;
	struct end *from; /* the peer's endpoint whose messages name this one */
	uint32_t am_last; /* number of the last active message that came from it, + 1 */
};

/** A message, tagged or active. */
struct rmsg {
	bool am;
	struct end *end;
	struct rop *send;
	uint64_t tag, id;
	size_t size;
	bool has_imm;
	uint16_t channel, source_channel;
	struct rop *taker;      /* receive or probe */
	uint64_t taken;         /* completion of the receive; the probe's call */
	unsigned int delivered; /* active: calls of the handler */
	bool dropped, refused;
};

struct rmem {
	struct rnode *node;
	struct rmem *next;
	struct weft_mem *mem; /* NULL when deregistered */
	void *blob;
	size_t blob_len;
	uint8_t *bytes, *copy; /* copy: what it held when it was deregistered */
	uint64_t dead;         /* first call of weft_mem_deregister() */
	uint64_t key;
	size_t slot;      /* next that no put has used */
	unsigned int bit; /* next that no atomic has used */
	bool read_only;
};

/** An operation. It stays here after its end. */
struct rop {
	struct world *w;
	enum kind kind;
	struct rnode *node;
	struct end *end; /* source, for receives */
	struct weft_request *req;
	bool has_req, has_cb, posting, done, forgotten, withdrawn, busy;
	bool matched; /* a receive: its cancel said so */
	unsigned int completions;
	int status;
	uint64_t posted, ended;
	struct buf *buf;
	size_t cap;
	uint64_t tag, mask;
	uint32_t flags; /* WEFT_OP_F_* that say what it does */
	uint64_t imm;
	uint16_t channel, source_channel;
	struct rmsg *msg;
	/* memory */
	struct rmem *mem;
	size_t at;
	unsigned int bit;
	uint64_t id, result;
	uint64_t *array; /* of an atomic: operands, then what was there */
	unsigned int count, raised;
	bool delivered, reported, superseded;
};

struct kept {
	struct rnode *node;
	struct rmsg *msg;
	struct weft_am_data *desc;
	const void *data;
	bool rndv;
};

/** What a world runs on. */
struct random_net {
	unsigned int nodes_max;
	/** how often lanes die and come back in a world: 0 = never, 1 = in each */
	double dying;
	/** most times 1 ms until all has ended, in a world where no lane dies */
	unsigned int timeout;
	/**
	 * Make the context and the worker of a node, of random_config() and random_flags(), with
	 * end_accepted() where the world accepts. An error is reported by random_fail().
	 */
	void (*open)(struct rnode *n);
	/** Lanes die and come back from now on. */
	void (*cut)(struct world *w);
	/** All workers make progress for @p ns. */
	void (*run)(struct world *w, uint64_t ns);
	/** ns, for the trace */
	uint64_t (*now)(const struct world *w);
	/** The world's end. */
	void (*free)(struct world *w);
};

#define RANDOM_US UINT64_C(1000)
#define RANDOM_MS UINT64_C(1000000)

struct world {
	const struct random_net *net;
	void *lanes; /* the net's own */
	uint64_t seed;
	struct sim_rng rng;
	uint64_t now;
	unsigned int nodes, depth;
	struct rnode node[RANDOM_NODES];
	struct end **end;
	struct rop **op;
	struct rmsg **msg;
	struct kept *kept;
	struct rmem *mems;
	unsigned int num_ends, num_ops, num_msgs, num_kept;
	bool accept, closing, ending, loopback;
	bool faulty; /* frames are lost */
	bool dying;  /* lanes die and come back */
	char error[400], text[400];
};

/** Calls, and messages that arrived, of all runs. */
extern uint64_t random_calls, random_messages;

/** @param lanes  the net's own, which its free() frees */
struct world *random_world(const struct random_net *net, void *lanes, uint64_t seed);
/** @return NULL, or what is wrong, valid as long as the world */
const char *random_run(struct world *w, unsigned int steps);
/** After the workers' end. NULL is allowed. */
void random_free(struct world *w);
/** Options of a node: NAME=VALUE, separated by spaces. */
void random_config(struct world *w, char *text, size_t size);
/** WEFT_WORKER_F_*. */
unsigned int random_flags(struct world *w);

void random_fail(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void random_trace(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void *random_grow(void *list, unsigned int num, size_t size);
/** One call of any kind by the node. */
void random_step(struct rnode *n);

/* random_op.c */
struct rop *op_new(struct rnode *n, enum kind kind, struct end *e);
struct weft_op_params op_params(struct rop *op);
/** Where the call's request goes. */
struct weft_request **op_req(struct rop *op);
/** What the call has returned. @return whether the operation exists, or is done */
bool op_posted(struct rop *op, int ret);
void op_poll(struct rop *op);
void op_cancel(struct rop *op);
bool op_is_send(const struct rop *op);
const char *op_name(const struct rop *op);
/** Is what came with a message what was sent with it? */
void op_check_imm(struct world *w, const struct rmsg *m, const struct weft_completion *c);
enum buf_kind random_kind(struct world *w);
size_t random_size(struct world *w);

/* random_ep.c */
struct end *end_open(struct rnode *n);
struct end *end_any(struct rnode *n);
void end_create(struct rnode *n);
void end_close(struct end *e);
void end_accepted(struct weft_worker *worker, struct weft_ep *ep, uint64_t remote_id,
		  const char *remote_name, void *arg);
void end_flush(struct rnode *n);
void end_fence(struct rnode *n);
void end_poll(struct end *e);
bool end_has_failed(struct end *e);
/** Nothing but its own graceful close can have ended its connection until @p when. */
bool end_whole(const struct end *e, uint64_t when);
/** A message of @p m came, and named @p ep. */
void end_named(struct rnode *n, struct rmsg *m, struct weft_ep *ep, const char *by);
void flush_done(struct rop *op);

/* random_tag.c */
struct rmsg *msg_new(struct rop *op, bool am);
struct rmsg *msg_of_tag(struct world *w, uint64_t tag);
bool tag_accepts(const struct rop *r, const struct rmsg *m);
void tag_send(struct rnode *n);
void tag_recv(struct rnode *n);
/** Of any tag and source. */
void tag_recv_all(struct rnode *n, unsigned int channel);
void tag_probe(struct rnode *n);
void tag_received(struct rop *op, const struct weft_completion *c);
/** A whole message that no receive waits for must be found by a probe. */
void tag_check_there(struct rmsg *m);
void tag_check_all(struct world *w);

/* random_am.c */
void am_recv_all(struct rnode *n);
void am_send(struct rnode *n);
void am_use_kept(struct rnode *n);
void am_received(struct rop *op, const struct weft_completion *c);
void am_check_all(struct world *w);

/* random_rma.c */
/** Hear of puts that notify. */
void rma_recv_all(struct rnode *n);
void mem_renew(struct rnode *n);
void mem_poll(struct rmem *m);
void rma_post(struct rnode *n);
void rma_done(struct rop *op);
/** A flush, or a close, that has to do with @p e has ended. */
void rma_flushed(struct end *e, const struct rop *flush);
void mem_check_all(struct world *w);

#endif /* RANDOM_RANDOM_H */
