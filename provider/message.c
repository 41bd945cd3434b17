/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/message.h"

#include <errno.h>
#include <string.h>

#include "provider/domain.h"
#include "provider/info.h"
#include "provider/op.h"
#include "provider/process.h"

/* ------------------------------------------------------------------ sends and receives */

static size_t total(const struct iovec *iov, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += iov[i].iov_len;
	return n;
}

/*
 * One buffer is passed directly; several as a datatype, from a copy that exists until the operation
 * ends.
 */
static void *buffer(struct wfi_op *op, const struct wfi_post *p, size_t *count,
		    struct weft_op_params *params)
{
	*count = p->count;
	if (p->count == 0)
		return NULL;
	if (p->count == 1) {
		*count = p->iov->iov_len;
		params->mem = p->desc ? wfi_mr_mem(p->desc[0]) : NULL;
		return p->iov->iov_base;
	}
	memcpy(op->iov, p->iov, p->count * sizeof(*p->iov));
	params->datatype = &wfi_iov_type;
	return op->iov;
}

/* ------------------------------------------------------------------ sending */

static uint32_t send_flags(const struct wfi_post *p)
{
	uint32_t flags = 0;

	if (p->flags & FI_REMOTE_CQ_DATA)
		flags |= WEFT_OP_F_IMM;
	if (p->flags & FI_MORE)
		flags |= WEFT_OP_F_MORE;
	if (p->flags & FI_INJECT)
		flags |= WEFT_OP_F_INJECT;
	/* A matched message has been delivered. */
	if (p->flags & (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE) &&
	    !(p->flags & FI_MATCH_COMPLETE))
		flags |= WEFT_OP_F_DELIVERED;
	return flags;
}

static int start_send(struct wfi_ep *ep, struct wfi_op *op, const struct wfi_post *p,
		      const struct wfi_av_entry *to)
{
	struct weft_op_params params = {
		.size = sizeof(params),
		.cb = wfi_sent_cb,
		.cb_arg = op,
		.channel = wfi_channel(to->number, p->kind),
		.source_channel = wfi_channel(ep->number, p->kind),
	};
	size_t count;
	void *buf;

	params.flags = send_flags(p);
	params.imm = p->data;
	buf = buffer(op, p, &count, &params);
	if (p->flags & FI_MATCH_COMPLETE)
		return weft_tag_send_sync(to->peer->ep, buf, count, p->tag, &params, NULL);
	return weft_tag_send(to->peer->ep, buf, count, p->tag, &params, NULL);
}

/* Locked. */
static int try_send(struct wfi_ep *ep, const struct wfi_post *p)
{
	struct wfi_av_entry *to = wfi_av_entry(ep->av, p->addr);
	struct wfi_op *op;
	int rc;

	if (!to)
		return -FI_EINVAL;
	rc = wfi_peer_connect(to->peer);
	if (rc < 0)
		return rc;
	op = wfi_op_get(ep, ep->tx.cq);
	if (!op)
		return -FI_EAGAIN;
	op->context = p->context;
	op->flags = FI_SEND | p->kind;
	op->report = !p->quiet && wfi_wants_report(&ep->tx, p->flags);
	op->cntr = ep->sends;
	rc = start_send(ep, op, p, to);
	if (rc == 0)
		wfi_op_sent(op, 0);
	else if (rc < 0)
		wfi_op_drop(op);
	return rc == -ENOMEM ? -FI_EAGAIN : rc < 0 ? -wfi_errno(rc) : 0;
}

ssize_t wfi_send(struct fid_ep *fid, const struct wfi_post *p)
{
	struct wfi_ep *ep = wfi_ep_of(fid);
	int rc;

	if (!(ep->caps & p->kind))
		return -FI_EOPNOTSUPP;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	if (p->count > WFI_IOV_MAX ||
	    (p->flags & FI_INJECT && total(p->iov, p->count) > ep->inject_size))
		return -FI_EINVAL;
	wfi_lock();
	rc = try_send(ep, p);
	wfi_unlock();
	return rc;
}

/* ------------------------------------------------------------------ receiving */

int wfi_recv_source(const struct wfi_ep *ep, fi_addr_t from, uint64_t kind,
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
	params->source_channel = wfi_channel(e->number, kind);
	return 0;
}

/*
 * A receive from one process must end when that process cannot send any more. So there must be a
 * connection, which reports that.
 */
static int watch(struct wfi_op *op, struct wfi_peer *peer, bool multi)
{
	int rc = wfi_peer_connect(peer);

	if (rc == 0)
		return 0;
	/*
	 * Messages that the process has sent may still be in the lanes. An operation that ends has
	 * no endpoint.
	 */
	wfi_progress_all();
	if (!op->ep)
		return 0;
	if (!multi)
		return wfi_op_undo(op) == 0 ? rc : 0;
	/* It may have received messages already: then the error is reported as a completion. */
	wfi_ops_end(peer, rc);
	return 0;
}

/* Locked. */
static int try_recv(struct wfi_ep *ep, const struct wfi_post *p)
{
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params params = {
		.size = sizeof(params), .cb = wfi_received_cb, .completion = &c};
	struct wfi_peer *peer;
	struct wfi_op *op;
	size_t count;
	void *buf;
	int rc;

	rc = wfi_recv_source(ep, p->addr, p->kind, &params, &peer);
	if (rc < 0)
		return rc;
	op = wfi_op_get(ep, ep->rx.cq);
	if (!op)
		return -FI_EAGAIN;
	op->context = p->context;
	op->flags = FI_RECV | p->kind;
	op->report = wfi_wants_report(&ep->rx, p->flags);
	op->cntr = ep->receives;
	op->buf = p->count > 0 ? p->iov[0].iov_base : NULL;
	op->length = total(p->iov, p->count);
	op->data = 0;
	op->tag = p->tag;
	op->peer = peer;
	params.cb_arg = op;
	buf = buffer(op, p, &count, &params);
	if (p->flags & FI_MULTI_RECV) {
		op->multi = true;
		op->params = params;
		rc = wfi_multi_post(op);
	} else {
		rc = weft_tag_recv(wfi.worker, NULL, buf, count, p->tag, ~p->ignore, &params,
				   &op->req);
	}
	if (rc == WEFT_INPROGRESS && peer && !peer->ep)
		return watch(op, peer, p->flags & FI_MULTI_RECV);
	if (rc == 0)
		wfi_op_received(op, &c);
	else if (rc < 0)
		wfi_op_drop(op);
	return rc == -ENOMEM ? -FI_EAGAIN : rc < 0 ? -wfi_errno(rc) : 0;
}

ssize_t wfi_recv(struct fid_ep *fid, const struct wfi_post *p)
{
	struct wfi_ep *ep = wfi_ep_of(fid);
	int rc;

	if (!(ep->caps & p->kind))
		return -FI_EOPNOTSUPP;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	if (p->count > WFI_IOV_MAX || (p->flags & FI_MULTI_RECV && (p->count != 1 || !ep->rx.cq)))
		return -FI_EINVAL;
	wfi_lock();
	rc = try_recv(ep, p);
	wfi_unlock();
	return rc;
}

/* ------------------------------------------------------------------ calls without a tag */

#define RECV_FLAGS (FI_COMPLETION | FI_MORE | FI_MULTI_RECV)

/* ------------------------------------------------------------------ sending */

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t to, void *context)
{
	struct wfi_post p = {
		.kind = FI_MSG,
		.iov = iov,
		.count = count,
		.desc = desc,
		.addr = to,
		.context = context,
		.flags = wfi_ep_of(fid)->tx.op_flags,
	};

	return wfi_send(fid, &p);
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			fi_addr_t to, void *context)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = length};

	return msg_sendv(fid, &iov, &desc, 1, to, context);
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
	return wfi_send(fid, &p);
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			    uint64_t data, fi_addr_t to, void *context)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = length};
	struct wfi_post p = {
		.kind = FI_MSG,
		.iov = &iov,
		.count = 1,
		.desc = &desc,
		.addr = to,
		.data = data,
		.context = context,
		.flags = wfi_ep_of(fid)->tx.op_flags | FI_REMOTE_CQ_DATA,
	};

	return wfi_send(fid, &p);
}

static ssize_t inject(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
		      fi_addr_t to, uint64_t flags)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = length};
	struct wfi_post p = {
		.kind = FI_MSG,
		.iov = &iov,
		.count = 1,
		.addr = to,
		.data = data,
		.flags = flags | FI_INJECT,
		.quiet = true,
	};

	return wfi_send(fid, &p);
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t length, fi_addr_t to)
{
	return inject(fid, buf, length, 0, to, 0);
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
			      fi_addr_t to)
{
	return inject(fid, buf, length, data, to, FI_REMOTE_CQ_DATA);
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
	return wfi_recv(fid, &p);
}

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t from, void *context)
{
	struct fi_msg msg = {
		.msg_iov = iov,
		.desc = desc,
		.iov_count = count,
		.addr = from,
		.context = context,
	};

	return msg_recvmsg(fid, &msg, wfi_ep_of(fid)->rx.op_flags);
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t length, void *desc, fi_addr_t from,
			void *context)
{
	struct iovec iov = {.iov_base = buf, .iov_len = length};

	return msg_recvv(fid, &iov, &desc, 1, from, context);
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
