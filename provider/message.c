/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/info.h"
#include "provider/op.h"
#include "provider/process.h"

/* ------------------------------------------------------------------ sends and receives */

static inline int start_send(struct wfi_ep *ep, struct wfi_op *op, const struct wfi_post *p,
			     const struct wfi_av_entry *to)
{
	struct weft_op_params params = {
		.size = sizeof(params),
		.cb = wfi_sent_cb,
		.cb_arg = op,
		.channel = wfi_channel(to->receiver, p->kind),
		.source_channel = ep->source_channel,
	};
	/* fi_cancel() and fi_close() of the endpoint cancel a send by its request. */
	struct weft_request **req = op->inject ? NULL : &op->req;
	size_t count;
	void *buf;

	params.flags = wfi_post_flags(p) | wfi_op_polled(op);
	params.imm = p->data;
	buf = wfi_post_buffer(op, p, &count, &params);
	if (p->flags & FI_MATCH_COMPLETE)
		return weft_tag_send_sync(to->peer->ep, buf, count, p->tag, &params, req);
	return weft_tag_send(to->peer->ep, buf, count, p->tag, &params, req);
}

/* Locked. */
static inline __attribute__((always_inline)) int try_send(struct wfi_ep *ep,
							  const struct wfi_post *p)
{
	struct wfi_av_entry *to = wfi_av_entry(ep->av, p->addr);
	struct wfi_op *op;
	int rc;

	if (!to)
		return -FI_EINVAL;
	rc = wfi_peer_connect(to->peer);
	if (rc < 0)
		return rc;
	op = wfi_post_op(ep, &ep->tx, p, FI_SEND | p->kind, ep->sends);
	if (!op)
		return -FI_EAGAIN;
	return wfi_post_started(op, start_send(ep, op, p, to));
}

/* Inline: a caller's constants leave few tests. */
static inline __attribute__((always_inline)) ssize_t send_post_inline(struct fid_ep *fid,
								      const struct wfi_post *p)
{
	struct wfi_ep *ep = wfi_ep_of(fid);
	int rc = wfi_post_check(ep, p->kind | FI_SEND);

	if (rc < 0)
		return rc;
	if (p->count > WFI_IOV_MAX ||
	    (p->flags & FI_INJECT && wfi_post_length(p) > ep->inject_size))
		return -FI_EINVAL;
	wfi_lock();
	rc = try_send(ep, p);
	wfi_unlock();
	return rc;
}

static ssize_t send_post(struct fid_ep *fid, const struct wfi_post *p)
{
	return send_post_inline(fid, p);
}

/* ------------------------------------------------------------------ receiving */

/*
 * Set the channel and the source of a receive or probe. Without FI_DIRECTED_RECV the source @p from
 * is ignored. No connection is needed. Locked.
 * @param[out] peer  the process of the source; NULL: any
 * @return 0 or a negative error
 */
static int recv_source(const struct wfi_ep *ep, fi_addr_t from, uint64_t kind,
		       struct weft_op_params *params, struct wfi_peer **peer)
{
	struct wfi_av_entry *e;

	params->channel = wfi_channel(ep->number, kind);
	*peer = NULL;
	if (!ep->directed || from == FI_ADDR_UNSPEC)
		return 0;
	e = wfi_av_entry(ep->av, from);
	if (!e)
		return -FI_EINVAL;
	*peer = e->peer;
	params->flags |= WEFT_OP_F_SOURCE_ID | WEFT_OP_F_SOURCE_CHANNEL;
	params->source_id = e->peer->id;
	params->source_channel = wfi_source_channel(e->number, e->receiver);
	return 0;
}

/*
 * A receive from one process must end when that process cannot send any more. So there must be a
 * connection, which reports that. @return 0; or an error: the call returns it, and the receive has
 * ended without a completion
 */
static int watch(struct wfi_op *op, struct wfi_peer *peer, bool multi)
{
	int rc = wfi_peer_connect(peer);

	if (rc == 0)
		return 0;
	/*
	 * Messages that the process has sent may still be in the lanes. If one of them has ended
	 * the operation, op->ep is NULL.
	 */
	wfi_progress_all();
	if (!op->ep)
		return 0;
	if (!multi)
		return wfi_op_undo(op) == 0 ? rc : 0;
	/*
	 * A buffer for several messages may have received some. So a completion reports the error,
	 * and the call returns 0.
	 */
	wfi_ops_end(peer, rc);
	return 0;
}

/* Locked. */
static inline __attribute__((always_inline)) int try_recv(struct wfi_ep *ep,
							  const struct wfi_post *p)
{
	struct weft_completion c; /* filled if the receive completes at once */
	struct weft_op_params params = {
		.size = sizeof(params),
		.flags = WEFT_OP_F_LENT,
		.cb = wfi_received_cb,
		.completion = &c,
	};
	struct wfi_peer *peer;
	struct wfi_op *op;
	size_t count;
	void *buf;
	int rc;

	rc = recv_source(ep, p->addr, p->kind, &params, &peer);
	if (rc < 0)
		return rc;
	op = wfi_post_op(ep, &ep->rx, p, FI_RECV | p->kind, ep->receives);
	if (!op)
		return -FI_EAGAIN;
	op->buf = p->count > 0 ? p->iov[0].iov_base : NULL;
	op->length = wfi_post_length(p);
	op->peer = peer;
	params.cb_arg = op;
	c.size = sizeof(c);
	buf = wfi_post_buffer(op, p, &count, &params);
	if (p->flags & FI_MULTI_RECV) {
		op->multi = true;
		op->params = params;
		rc = wfi_multi_post(op);
	} else {
		rc = weft_tag_recv(wfi.worker, NULL, buf, count, p->tag, ~p->ignore, &params,
				   &op->req);
	}
	if (rc == WEFT_INPROGRESS) {
		if (peer && !peer->ep)
			return watch(op, peer, p->flags & FI_MULTI_RECV);
		return 0;
	}
	if (rc == 0)
		wfi_op_received(op, &c);
	else if (rc < 0)
		wfi_op_drop(op);
	return wfi_post_result(rc);
}

/* Inline: a caller's constants leave few tests. */
static inline __attribute__((always_inline)) ssize_t recv_post_inline(struct fid_ep *fid,
								      const struct wfi_post *p)
{
	struct wfi_ep *ep = wfi_ep_of(fid);
	int rc = wfi_post_check(ep, p->kind | FI_RECV);

	if (rc < 0)
		return rc;
	if (p->count > WFI_IOV_MAX || (p->flags & FI_MULTI_RECV && (p->count != 1 || !ep->rx.cq)))
		return -FI_EINVAL;
	wfi_lock();
	rc = try_recv(ep, p);
	wfi_unlock();
	return rc;
}

static ssize_t recv_post(struct fid_ep *fid, const struct wfi_post *p)
{
	return recv_post_inline(fid, p);
}

static inline __attribute__((always_inline)) ssize_t send_one_inline(struct fid_ep *fid,
								     const void *buf, size_t length,
								     struct wfi_post *p)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = length};

	p->iov = &iov;
	p->count = 1;
	return send_post_inline(fid, p);
}

static ssize_t send_one(struct fid_ep *fid, const void *buf, size_t length, struct wfi_post *p)
{
	return send_one_inline(fid, buf, length, p);
}

static ssize_t recv_one(struct fid_ep *fid, void *buf, size_t length, struct wfi_post *p)
{
	struct iovec iov = {.iov_base = buf, .iov_len = length};

	p->iov = &iov;
	p->count = 1;
	return recv_post(fid, p);
}

/* ------------------------------------------------------------------ calls without a tag */

#define RECV_FLAGS (FI_COMPLETION | FI_MORE | FI_MULTI_RECV)

/* ------------------------------------------------------------------ sending */

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t to, void *context)
{
	struct wfi_post p = wfi_post_of(FI_MSG, desc, to, context, wfi_ep_of(fid)->tx.op_flags);

	p.iov = iov;
	p.count = count;
	return send_post(fid, &p);
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			fi_addr_t to, void *context)
{
	struct wfi_post p = wfi_post_of(FI_MSG, &desc, to, context, wfi_ep_of(fid)->tx.op_flags);

	return send_one(fid, buf, length, &p);
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct wfi_post p = {
		.kind = FI_MSG,
		.iov = msg->msg_iov,
		.count = msg->iov_count,
		.desc = msg->desc,
		.addr = msg->addr,
		.data = msg->data,
		.context = msg->context,
		.flags = flags,
	};

	if (flags & ~(uint64_t)WFI_SEND_FLAGS)
		return -FI_EBADFLAGS;
	return send_post(fid, &p);
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			    uint64_t data, fi_addr_t to, void *context)
{
	struct wfi_post p = wfi_post_of(FI_MSG, &desc, to, context, wfi_ep_of(fid)->tx.op_flags);

	p.data = data;
	p.flags |= FI_REMOTE_CQ_DATA;
	return send_one(fid, buf, length, &p);
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t length, fi_addr_t to)
{
	struct wfi_post p = wfi_post_inject(fid, FI_MSG, to);

	return send_one(fid, buf, length, &p);
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
			      fi_addr_t to)
{
	struct wfi_post p = wfi_post_inject(fid, FI_MSG, to);

	p.data = data;
	p.flags |= FI_REMOTE_CQ_DATA;
	return send_one(fid, buf, length, &p);
}

/* ------------------------------------------------------------------ receiving */

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct wfi_post p = {
		.kind = FI_MSG,
		.iov = msg->msg_iov,
		.count = msg->iov_count,
		.desc = msg->desc,
		.addr = msg->addr,
		.context = msg->context,
		.flags = flags,
	};

	if (flags & ~(uint64_t)RECV_FLAGS)
		return -FI_EBADFLAGS;
	return recv_post(fid, &p);
}

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t from, void *context)
{
	struct wfi_post p = wfi_post_of(FI_MSG, desc, from, context, wfi_ep_of(fid)->rx.op_flags);

	p.iov = iov;
	p.count = count;
	return recv_post(fid, &p);
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t length, void *desc, fi_addr_t from,
			void *context)
{
	struct wfi_post p = wfi_post_of(FI_MSG, &desc, from, context, wfi_ep_of(fid)->rx.op_flags);

	return recv_one(fid, buf, length, &p);
}

struct fi_ops_msg wfi_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};

/* ------------------------------------------------------------------ before the receive */

/* A message that FI_CLAIM has reserved for the receive with the same context. */
struct wfi_claim {
	LIST_ENTRY(wfi_claim) entry;
	void *context;
	struct weft_message *message;
	struct weft_completion about;
};

static struct wfi_op *new_op(struct wfi_ep *ep, const struct fi_msg_tagged *msg)
{
	struct wfi_op *op = wfi_op_get(ep, ep->rx.cq);

	if (!op)
		return NULL;
	op->context = msg->context;
	op->flags = FI_RECV | FI_TAGGED;
	op->report = true;
	op->cntr = NULL;
	op->buf = NULL;
	op->length = 0;
	return op;
}

static void keep(struct wfi_ep *ep, struct wfi_claim *claim, void *context,
		 struct weft_message *message, const struct weft_completion *about)
{
	claim->context = context;
	claim->message = message;
	claim->about = *about;
	LIST_INSERT_HEAD(&ep->claims, claim, entry);
}

/* Report success of a probe, or of a drop of a reserved message. @p c describes the message. */
static void found(struct wfi_op *op, struct weft_completion *c)
{
	c->status = 0;
	op->length = c->length; /* the message's, though nothing is received */
	wfi_op_received(op, c);
}

/*
 * Programs repeat probes until one finds a message. So each probe that finds nothing checks whether
 * the peer has failed.
 * @param peer       NULL: the probe is for messages of any process
 * @param[out] dead  negative libfabric error: the peer has failed, and there is no message; or 0
 * @return as weft_tag_probe()
 */
static int probe(const struct fi_msg_tagged *msg, struct wfi_peer *peer,
		 const struct weft_op_params *params, struct weft_message **message,
		 struct weft_completion *c, int *dead)
{
	int rc;

	*dead = 0;
	rc = weft_tag_probe(wfi.worker, NULL, msg->tag, ~msg->ignore, params, message, c);
	if (rc == -ENOMSG) {
		wfi_progress();
		rc = weft_tag_probe(wfi.worker, NULL, msg->tag, ~msg->ignore, params, message, c);
	}
	if (rc != -ENOMSG || !peer)
		return rc;
	*dead = wfi_peer_connect(peer);
	if (*dead >= 0)
		return rc;
	wfi_progress_all(); /* messages that the peer has sent may be in the lanes */
	rc = weft_tag_probe(wfi.worker, NULL, msg->tag, ~msg->ignore, params, message, c);
	if (rc != -ENOMSG)
		*dead = 0;
	return rc;
}

/* fi_trecvmsg() with FI_PEEK: alone, with FI_CLAIM or with FI_DISCARD. Locked. */
static ssize_t peek_message(struct wfi_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	bool take = flags & (FI_CLAIM | FI_DISCARD), claimed = take && !(flags & FI_DISCARD);
	struct weft_op_params params = {.size = sizeof(params)};
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_message *message = NULL;
	struct wfi_claim *claim = NULL;
	struct wfi_peer *peer;
	struct wfi_op *op;
	int rc, dead;

	rc = recv_source(ep, msg->addr, FI_TAGGED, &params, &peer);
	if (rc < 0)
		return rc;
	/* Allocate before the probe: a message that is taken cannot be put back. */
	if (claimed) {
		claim = calloc(1, sizeof(*claim));
		if (!claim)
			return -FI_ENOMEM;
	}
	op = new_op(ep, msg);
	if (!op) {
		free(claim);
		return -FI_EAGAIN;
	}
	rc = probe(msg, peer, &params, take ? &message : NULL, &c, &dead);
	if (claimed && rc == 0 && message)
		keep(ep, claim, msg->context, message, &c);
	else
		free(claim);
	if (dead < 0) {
		wfi_op_drop(op);
		return dead;
	}
	if (rc < 0) {
		c = (struct weft_completion){.status = rc, .tag = msg->tag};
		wfi_op_received(op, &c);
		return 0;
	}
	if (message && !claimed)
		weft_tag_msg_drop(wfi.worker, message);
	found(op, &c);
	return 0;
}

static struct wfi_claim *find_claim(struct wfi_ep *ep, const void *context)
{
	struct wfi_claim *claim;

	LIST_FOREACH(claim, &ep->claims, entry)
		if (claim->context == context)
			return claim;
	return NULL;
}

static void forget(struct wfi_claim *claim)
{
	LIST_REMOVE(claim, entry);
	free(claim);
}

static int fetch(struct wfi_op *op, const struct fi_msg_tagged *msg, struct wfi_claim *claim)
{
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params params = {
		.size = sizeof(params),
		.flags = WEFT_OP_F_LENT,
		.cb = wfi_received_cb,
		.cb_arg = op,
		.completion = &c,
	};
	int rc;

	for (size_t i = 0; i < msg->iov_count; i++) {
		op->iov[i] = msg->msg_iov[i];
		op->length += msg->msg_iov[i].iov_len;
	}
	op->buf = msg->iov_count > 0 ? msg->msg_iov[0].iov_base : NULL;
	params.datatype = &wfi_iov_type;
	rc = weft_tag_msg_recv(wfi.worker, claim->message, op->iov, msg->iov_count, &params,
			       &op->req);
	if (rc == 0)
		wfi_op_received(op, &c);
	return rc;
}

/*
 * fi_trecvmsg() with FI_CLAIM and without FI_PEEK: receive the message that FI_PEEK has reserved,
 * or drop it with FI_DISCARD. Locked.
 */
static ssize_t claim_message(struct wfi_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct wfi_claim *claim = find_claim(ep, msg->context);
	struct wfi_op *op;
	int rc;

	if (!claim)
		return -FI_EINVAL;
	op = new_op(ep, msg);
	if (!op)
		return -FI_EAGAIN;
	op->cntr = ep->receives;
	op->report = wfi_post_reported(&ep->rx, flags);
	if (flags & FI_DISCARD) {
		weft_tag_msg_drop(wfi.worker, claim->message);
		claim->about.length = 0;
		found(op, &claim->about);
	} else {
		rc = fetch(op, msg, claim);
		if (rc < 0) {
			wfi_op_drop(op);
			return wfi_post_result(rc);
		}
	}
	forget(claim);
	return 0;
}

void wfi_claims_drop(struct wfi_ep *ep)
{
	struct wfi_claim *claim;

	while ((claim = LIST_FIRST(&ep->claims))) {
		weft_tag_msg_drop(wfi.worker, claim->message);
		forget(claim);
	}
}

/* ------------------------------------------------------------------ calls for tagged messages */

#define TRECV_FLAGS (FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD)

/* ------------------------------------------------------------------ sending */

static ssize_t tsendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		      fi_addr_t to, uint64_t tag, void *context)
{
	struct wfi_post p = wfi_post_of(FI_TAGGED, desc, to, context, wfi_ep_of(fid)->tx.op_flags);

	p.iov = iov;
	p.count = count;
	p.tag = tag;
	return send_post(fid, &p);
}

static ssize_t tsend(struct fid_ep *fid, const void *buf, size_t length, void *desc, fi_addr_t to,
		     uint64_t tag, void *context)
{
	struct wfi_post p = wfi_post_of(FI_TAGGED, &desc, to, context, wfi_ep_of(fid)->tx.op_flags);

	p.tag = tag;
	return send_one(fid, buf, length, &p);
}

static ssize_t tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct wfi_post p = {
		.kind = FI_TAGGED,
		.iov = msg->msg_iov,
		.count = msg->iov_count,
		.desc = msg->desc,
		.addr = msg->addr,
		.tag = msg->tag,
		.data = msg->data,
		.context = msg->context,
		.flags = flags,
	};

	if (flags & ~(uint64_t)WFI_SEND_FLAGS)
		return -FI_EBADFLAGS;
	return send_post(fid, &p);
}

/* The sends of Open MPI and MPICH: this one and tinjectdata(). */
static ssize_t tsenddata(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			 uint64_t data, fi_addr_t to, uint64_t tag, void *context)
{
	struct wfi_post p = wfi_post_of(FI_TAGGED, &desc, to, context, wfi_ep_of(fid)->tx.op_flags);

	p.tag = tag;
	p.data = data;
	p.flags |= FI_REMOTE_CQ_DATA;
	return send_one_inline(fid, buf, length, &p);
}

static ssize_t tinject(struct fid_ep *fid, const void *buf, size_t length, fi_addr_t to,
		       uint64_t tag)
{
	struct wfi_post p = wfi_post_inject(fid, FI_TAGGED, to);

	p.tag = tag;
	return send_one(fid, buf, length, &p);
}

static ssize_t tinjectdata(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
			   fi_addr_t to, uint64_t tag)
{
	struct wfi_post p = wfi_post_inject(fid, FI_TAGGED, to);

	p.tag = tag;
	p.data = data;
	p.flags |= FI_REMOTE_CQ_DATA;
	return send_one_inline(fid, buf, length, &p);
}

/* ------------------------------------------------------------------ receiving */

static ssize_t look(struct wfi_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	ssize_t rc = wfi_post_check(ep, FI_TAGGED | FI_RECV);

	if (rc < 0)
		return rc;
	if (msg->iov_count > WFI_IOV_MAX)
		return -FI_EINVAL;
	wfi_lock();
	rc = flags & FI_PEEK ? peek_message(ep, msg, flags) : claim_message(ep, msg, flags);
	wfi_unlock();
	return rc;
}

static ssize_t trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct wfi_post p = {
		.kind = FI_TAGGED,
		.iov = msg->msg_iov,
		.count = msg->iov_count,
		.desc = msg->desc,
		.addr = msg->addr,
		.tag = msg->tag,
		.ignore = msg->ignore,
		.context = msg->context,
		.flags = flags,
	};

	if (flags & ~(uint64_t)TRECV_FLAGS)
		return -FI_EBADFLAGS;
	if (flags & (FI_PEEK | FI_CLAIM))
		return look(wfi_ep_of(fid), msg, flags);
	return recv_post(fid, &p);
}

static ssize_t trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		      fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	struct wfi_post p =
		wfi_post_of(FI_TAGGED, desc, from, context, wfi_ep_of(fid)->rx.op_flags);

	p.iov = iov;
	p.count = count;
	p.tag = tag;
	p.ignore = ignore;
	p.flags &= ~(uint64_t)FI_MULTI_RECV;
	return recv_post(fid, &p);
}

/* The receive of Open MPI and MPICH. */
static ssize_t trecv(struct fid_ep *fid, void *buf, size_t length, void *desc, fi_addr_t from,
		     uint64_t tag, uint64_t ignore, void *context)
{
	struct iovec iov = {.iov_base = buf, .iov_len = length};
	struct wfi_post p =
		wfi_post_of(FI_TAGGED, &desc, from, context, wfi_ep_of(fid)->rx.op_flags);

	p.iov = &iov;
	p.count = 1;
	p.tag = tag;
	p.ignore = ignore;
	p.flags &= ~(uint64_t)FI_MULTI_RECV;
	return recv_post_inline(fid, &p);
}

struct fi_ops_tagged wfi_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = trecv,
	.recvv = trecvv,
	.recvmsg = trecvmsg,
	.send = tsend,
	.sendv = tsendv,
	.sendmsg = tsendmsg,
	.inject = tinject,
	.senddata = tsenddata,
	.injectdata = tinjectdata,
};
