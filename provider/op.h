/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/op.h
 * Endpoints, operations from their post to their completion, and buffers for several messages.
 */
#ifndef WFI_OP_H
#define WFI_OP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "provider/av.h"
#include "provider/completion.h"
#include "provider/provider.h"
#include "weft.h"

/* ------------------------------------------------------------------ endpoints */

struct wfi_claim;
struct wfi_op;
struct wfi_stx;

/** One direction of an endpoint: transmit or receive. */
struct wfi_half {
	struct wfi_cq *cq;
	bool selective;    /**< success is reported with FI_COMPLETION only; errors always */
	uint64_t op_flags; /**< default flags of calls without flags */
};

/** An endpoint; or a shared receive context, which has receives only (ep.c). */
struct wfi_ep {
	struct fid_ep ep;
	struct wfi_domain *domain;
	struct wfi_av *av;
	struct wfi_eq *eq;
	struct wfi_name_server *server; /**< sends the address to TCP clients (name.h); or NULL */
	struct wfi_half tx, rx;
	struct wfi_cntr *sends, *receives, *reads, *writes, *remote_reads, *remote_writes;
	uint64_t caps;
	uint16_t number;
	uint16_t source_channel; /**< Weft's source channel of its messages and writes (av.h) */
	bool enabled;
	bool directed;   /**< FI_DIRECTED_RECV */
	bool source;     /**< FI_SOURCE */
	bool source_err; /**< FI_SOURCE_ERR */
	bool events;     /**< FI_RMA_EVENT: targets count its reads, writes and atomics */
	bool ordered;    /**< a fence precedes each read, write and atomic (WFI_ORDER_FENCED) */
	size_t inject_size;
	size_t min_multi_recv;
	/** queue of FI_MULTI_RECV buffers for messages of any process; the first has a receive */
	STAILQ_HEAD(, wfi_op) multi;
	LIST_HEAD(, wfi_claim) claims; /**< messages reserved by FI_CLAIM */
	bool shared_tx, shared_rx;     /**< FI_SHARED_CONTEXT */
	struct wfi_stx *stx;
	struct wfi_ep *srx; /**< shared receive context of this endpoint; NULL: none */
	/** of a shared receive context: number of its endpoints, and of those that are enabled */
	unsigned int users, enabled_users;
	bool closing; /**< fi_close() has begun: it keeps its number and the worker until the end */
	unsigned int busy; /**< while it closes: operations whose buffers Weft still uses */
};

static inline struct wfi_ep *wfi_ep_of(struct fid_ep *ep)
{
	return container_of(ep, struct wfi_ep, ep);
}

/* fi_endpoint(), fi_stx_context() and fi_srx_context() (ep.c). */
int wfi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
int wfi_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		 void *context);
int wfi_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx,
		 void *context);

/**
 * Give an endpoint, or a shared receive context, a number. Locked. @return 0, or -FI_EMFILE: all
 * WFI_ENDPOINTS numbers are in use
 */
int wfi_ep_number_take(struct wfi_ep *ep);
/** Free the endpoint's number. Locked. */
void wfi_ep_number_put(const struct wfi_ep *ep);
/** The enabled endpoint with this number. Locked. @return NULL: there is none */
struct wfi_ep *wfi_ep_find(unsigned int number);

/* ------------------------------------------------------------------ operations */

/*
 * Operations, from the call that posts one to its completion. They come from a pool that grows, and
 * is freed when the last domain closes.
 */

struct wfi_op {
	struct wfi_ep *ep;        /**< NULL: free, or its endpoint has been closed */
	struct weft_request *req; /**< of a posted receive, or of a send that is not `inject` */
	struct wfi_ep *closing; /**< its endpoint, which closes and counts it as busy; else NULL */
	struct wfi_cq *cq;      /**< NULL: none */
	struct wfi_cntr *cntr;  /**< NULL: none */
	void *context;
	void *buf;
	size_t length;  /**< bytes of a receive's buffer, or of a message that a probe has found */
	uint64_t flags; /**< flags of the completion */
	bool report;    /**< success is reported in `cq`, not only errors */
	bool cancelled; /**< the application has cancelled it */
	bool inject;    /**< FI_INJECT: the sent data or operands have been copied */
	bool multi;     /**< FI_MULTI_RECV: a buffer for several messages, one receive at a time */
	struct weft_op_params params;
	/** receives: only messages of this process match; NULL: any. Never dereferenced */
	struct wfi_peer *peer;
	/** an atomic: operations of Weft that have not ended, and 1 while they are started */
	unsigned int parts;
	int status; /**< the first error of the parts; or the reason of wfi_ops_end() */
	void *copy; /**< allocated copy of an atomic's operands and compares; NULL: none */
	/** FI_RMA_EVENT, reads and atomics: what the target counts (rma.h); 0: nothing */
	unsigned int counts;
	fi_addr_t target;
	uint64_t key;
	STAILQ_ENTRY(wfi_op) waiting;
	struct wfi_op *next;
	/** Weft reads it until the operation has ended; of an injected atomic: small operands */
	struct iovec iov[WFI_IOV_MAX];
};

extern const struct weft_datatype wfi_iov_type;

/** A memory region. The descriptor for sends and receives is the region itself. */
struct wfi_mr {
	struct fid_mr mr;
	struct wfi_domain *domain;
	struct weft_mem *mem;
	uint64_t key;               /**< Weft's key of the region */
	struct wfi_cntr *writes;    /**< FI_RMA_EVENT: counts peers' writes and atomics; or NULL */
	LIST_ENTRY(wfi_mr) counted; /**< in the list of regions with a counter */
};

/** The registration of a descriptor; NULL for none. */
static inline struct weft_mem *wfi_mr_mem(void *desc)
{
	return desc ? ((struct wfi_mr *)desc)->mem : NULL;
}

/** The arguments of a call that posts an operation, of any kind. */
struct wfi_post {
	uint64_t kind; /**< FI_TAGGED, FI_MSG, FI_READ or FI_WRITE; not used for atomics */
	const struct iovec *iov;
	size_t count;
	void **desc; /**< may be NULL */
	fi_addr_t addr;
	uint64_t tag, ignore; /**< messages only */
	uint64_t offset, key; /**< of the target's memory: reads, writes and atomics */
	uint64_t data;
	void *context;
	uint64_t flags; /**< flags of the operation; FI_REMOTE_CQ_DATA: `data` is valid */
	bool quiet;     /**< success is not reported, as for fi_inject() */
};

/** Operations that are free: a list by `next`. Locked. */
extern struct wfi_op *wfi_ops_unused;
/** No operation is free: allocate some. Locked. @return 0 or -FI_ENOMEM */
int wfi_ops_more(void);

/**
 * Allocate an operation, and reserve its completion in @p cq, if that is not NULL. Locked.
 * @return NULL: there is no memory, or the queue cannot grow
 */
static inline struct wfi_op *wfi_op_get(struct wfi_ep *ep, struct wfi_cq *cq)
{
	struct wfi_op *op;

	if (__builtin_expect(!wfi_ops_unused, 0) && wfi_ops_more() < 0)
		return NULL;
	if (cq && wfi_cq_reserve(cq) < 0)
		return NULL;
	op = wfi_ops_unused;
	wfi_ops_unused = op->next;
	op->ep = ep;
	op->cq = cq;
	op->cancelled = false;
	op->multi = false;
	op->inject = false;
	op->peer = NULL;
	op->status = 0;
	return op;
}

/** Set the arguments that most calls have. The caller adds buffers, a tag or a remote address. */
static inline struct wfi_post wfi_post_of(uint64_t kind, void **desc, fi_addr_t addr, void *context,
					  uint64_t flags)
{
	return (struct wfi_post){
		.kind = kind, .desc = desc, .addr = addr, .context = context, .flags = flags};
}

/**
 * Flags of a call that copies the data and reports only errors. A bound counter counts the
 * operation at the completion level of the endpoint's default flags: MPICH and OpenSHMEM wait for
 * that count.
 * @param cntr  of the operation's kind; NULL = none
 */
static inline uint64_t wfi_inject_flags(const struct wfi_ep *ep, const struct wfi_cntr *cntr)
{
	const uint64_t levels = FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;

	return FI_INJECT | (cntr ? ep->tx.op_flags & levels : 0);
}

/** The arguments of a call that copies the data and reports only errors. */
static inline struct wfi_post wfi_post_inject(struct fid_ep *fid, uint64_t kind, fi_addr_t addr)
{
	const struct wfi_ep *ep = wfi_ep_of(fid);
	const struct wfi_cntr *cntr = kind == FI_WRITE ? ep->writes : ep->sends;

	return (struct wfi_post){
		.kind = kind, .addr = addr, .flags = wfi_inject_flags(ep, cntr), .quiet = true};
}

/**
 * May the endpoint post operations that need all of @p caps? @return 0; -FI_EOPNOTSUPP: it lacks
 * one of them; or -FI_EOPBADSTATE: it is not enabled
 */
static inline int wfi_post_check(const struct wfi_ep *ep, uint64_t caps)
{
	if ((ep->caps & caps) != caps)
		return -FI_EOPNOTSUPP;
	return ep->enabled ? 0 : -FI_EOPBADSTATE;
}

/** Is success of an operation with these flags to be reported? */
static inline bool wfi_post_reported(const struct wfi_half *half, uint64_t flags)
{
	return half->cq && (!half->selective || flags & FI_COMPLETION);
}

/**
 * wfi_post_length() of any number of buffers. Like wfi_post_vector() it gets no pointer to struct
 * wfi_post: the compiler then drops tests of a caller's constants.
 */
size_t wfi_post_lengths(const struct iovec *iov, size_t count);
/** @return bytes of all buffers together */
static inline size_t wfi_post_length(const struct wfi_post *p)
{
	return p->count == 1 ? p->iov->iov_len : wfi_post_lengths(p->iov, p->count);
}

/**
 * Allocate the operation of a call.
 * @param half   of the endpoint: the direction of the operation, which has the completion queue
 * @param flags  of the completion
 * @param cntr   NULL = none
 * @return NULL: the call returns -FI_EAGAIN. Locked.
 */
static inline struct wfi_op *wfi_post_op(struct wfi_ep *ep, const struct wfi_half *half,
					 const struct wfi_post *p, uint64_t flags,
					 struct wfi_cntr *cntr)
{
	struct wfi_op *op = wfi_op_get(ep, half->cq);

	if (!op)
		return NULL;
	op->context = p->context;
	op->flags = flags;
	op->report = !p->quiet && wfi_post_reported(half, p->flags);
	/* Results arrive in the application's buffer. */
	op->inject = p->flags & FI_INJECT && !(flags & FI_READ);
	op->cntr = cntr;
	return op;
}

/** wfi_post_buffer() for no buffer, or several. */
void *wfi_post_vector(struct wfi_op *op, const struct iovec *iov, size_t count,
		      struct weft_op_params *params);
/**
 * Pass the buffers to Weft: one directly; several as a datatype. Their list is copied to op->iov,
 * because Weft reads it until the operation ends.
 * @param[out] count  argument of Weft's call: bytes of one buffer, or the number of buffers
 * @return the buffer argument of Weft's call
 */
static inline void *wfi_post_buffer(struct wfi_op *op, const struct wfi_post *p, size_t *count,
				    struct weft_op_params *params)
{
	*count = p->count;
	if (p->count != 1)
		return wfi_post_vector(op, p->iov, p->count, params);
	*count = p->iov->iov_len;
	params->mem = p->desc ? wfi_mr_mem(p->desc[0]) : NULL;
	return p->iov->iov_base;
}
/** Weft's flags for a send, read or write. */
static inline uint32_t wfi_post_flags(const struct wfi_post *p)
{
	uint32_t flags = 0;

	if (p->flags & FI_MORE)
		flags |= WEFT_OP_F_MORE;
	if (p->kind == FI_READ)
		return flags;
	if (p->flags & FI_REMOTE_CQ_DATA)
		flags |= WEFT_OP_F_IMM;
	if (p->flags & FI_INJECT)
		flags |= WEFT_OP_F_INJECT;
	/* A message with FI_MATCH_COMPLETE needs no flag: weft_tag_send_sync() sends it. */
	if (p->flags & (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE) &&
	    (p->kind == FI_WRITE || !(p->flags & FI_MATCH_COMPLETE)))
		flags |= WEFT_OP_F_DELIVERED;
	return flags;
}
/**
 * Weft's flag for an operation whose frame may wait for further operations. If the queue reports
 * the operation, the application reads the queue soon, and that sends all frames. Other operations
 * are sent in their calls, since the application may call nothing after them.
 */
static inline uint32_t wfi_op_polled(const struct wfi_op *op)
{
	return op->report ? WEFT_OP_F_POLLED : 0;
}

/**
 * The result of libfabric's call for @p rc, the result of Weft's call.
 * @return 0, also while the operation is in progress; -FI_EAGAIN: there is no memory; or another
 * negative libfabric error
 */
int wfi_post_result(int rc);
/**
 * After the post of a send, read or write: if Weft's call has returned 0, report the end of the
 * operation; if it has returned an error, drop the operation. Locked.
 * @param rc  result of Weft's call. @return wfi_post_result()
 */
int wfi_post_started(struct wfi_op *op, int rc);

/** Free an operation without a completion. Locked. */
void wfi_op_drop(struct wfi_op *op);
/** A send, read, write or atomic has ended, with Weft's status: report and free it. Locked. */
void wfi_op_sent(struct wfi_op *op, int status);
/** Report a receive that has ended, or a message in a buffer for several messages. Locked. */
void wfi_op_received(struct wfi_op *op, const struct weft_completion *c);
/**
 * Enter the source into a completion that is a success: FI_ADDR_NOTAVAIL if the address vector
 * lacks it. With FI_SOURCE_ERR the completion then becomes an error with the source's address, if
 * wfi_sender_addr() has that. Locked.
 */
void wfi_op_source(const struct wfi_ep *ep, struct wfi_completion *c, uint64_t id,
		   uint16_t source_channel);

/** Callbacks for Weft; the argument is the operation. */
void wfi_sent_cb(struct weft_request *req, const struct weft_completion *c, void *arg);
void wfi_received_cb(struct weft_request *req, const struct weft_completion *c, void *arg);

/**
 * A receive was posted, but its call returns an error: end it without a completion. Locked.
 * @return 0, or -EBUSY: a message has matched it, and completes it
 */
int wfi_op_undo(struct wfi_op *op);
/** Is there a posted receive that only messages of this process match? Locked. */
bool wfi_ops_await(const struct wfi_peer *peer);
/**
 * No more messages will come from this process: end the posted receives that accept only messages
 * of this process. A receive that has matched ends with its message.
 * @param status  negative error of Weft or of libfabric, which these receives report. Locked.
 */
void wfi_ops_end(const struct wfi_peer *peer, int status);

/**
 * fi_cancel(): cancel a receive or send with this context that is not matched. If it has ended
 * because its peer is gone, and the error is unread, the error becomes FI_ECANCELED. Locked.
 * @return 0, or -FI_ENOENT: there is none
 */
int wfi_ops_cancel(struct wfi_ep *ep, void *context);
/**
 * The endpoint closes: report none of its operations, and cancel its receives. Operations without
 * FI_INJECT are counted in ep->busy until they end. Locked.
 */
void wfi_ops_close(struct wfi_ep *ep);
/** Withdraw sends of an endpoint that closes, which no receive of a peer has matched. Locked. */
void wfi_ops_withdraw(const struct wfi_ep *ep);
/** Free the pool; there is no operation any more. */
void wfi_ops_free(void);
/** In a child of fork(): there are no endpoints and no operations. */
void wfi_ops_forked(void);

/* ------------------------------------------------------------------ buffers for messages */

/*
 * FI_MULTI_RECV: a buffer for several messages, one behind the other. A buffer has one receive at a
 * time, for the rest of its space. Of an endpoint's buffers for messages of any process, only the
 * first has such a receive. The others wait until the application has the first one back. A buffer
 * for messages of one process does not wait.
 */

/**
 * Post a buffer for several messages; `buf`, `length` and `params` of @p op are set. Locked.
 * @return WEFT_INPROGRESS, also if messages have arrived; or Weft's error, negative
 */
int wfi_multi_post(struct wfi_op *op);
/** The endpoint closes: drop its buffers that wait, and empty the queue. Locked. */
void wfi_multi_close(struct wfi_ep *ep);

#endif /* WFI_OP_H */
