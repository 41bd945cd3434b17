/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/message.h"

#include <errno.h>
#include <string.h>

#include "provider/domain.h"
#include "provider/info.h"
#include "provider/op.h"
#include "provider/process.h"

/* ------------------------------------------------------------------ sends and receives */

static int start_send(struct wfi_ep *ep, struct wfi_op *op, const struct wfi_post *p,
		      const struct wfi_av_entry *to)
{
	struct weft_op_params params = {
		.size = sizeof(params),
		.cb = wfi_sent_cb,
		.cb_arg = op,
		.channel = wfi_channel(to->receiver, p->kind),
		.source_channel = ep->source_channel,
	};
	size_t count;
	void *buf;

	params.flags = wfi_post_flags(p) | wfi_op_polled(op);
	params.imm = p->data;
	buf = wfi_post_buffer(op, p, &count, &params);
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
	op = wfi_post_op(ep, &ep->tx, p, FI_SEND | p->kind, ep->sends);
	if (!op)
		return -FI_EAGAIN;
	return wfi_post_started(op, start_send(ep, op, p, to));
}

ssize_t wfi_send(struct fid_ep *fid, const struct wfi_post *p)
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
	 * the operation, its endpoint is NULL.
	 */
	wfi_progress_all();
	if (!op->ep)
		return 0;
	if (!multi)
		return wfi_op_undo(op) == 0 ? rc : 0;
	/*
	 * A buffer for several messages may have received some: then a completion reports the
	 * error.
	 */
	wfi_ops_end(peer, rc);
	return 0;
}

/* Locked. */
static int try_recv(struct wfi_ep *ep, const struct wfi_post *p)
{
	struct weft_completion c; /* filled if the receive completes at once */
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
	op = wfi_post_op(ep, &ep->rx, p, FI_RECV | p->kind, ep->receives);
	if (!op)
		return -FI_EAGAIN;
	op->buf = p->count > 0 ? p->iov[0].iov_base : NULL;
	op->length = wfi_post_length(p);
	op->data = 0;
	op->tag = p->tag;
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
	if (rc == WEFT_INPROGRESS && peer && !peer->ep)
		return watch(op, peer, p->flags & FI_MULTI_RECV);
	if (rc == 0)
		wfi_op_received(op, &c);
	else if (rc < 0)
		wfi_op_drop(op);
	return wfi_post_result(rc);
}

ssize_t wfi_recv(struct fid_ep *fid, const struct wfi_post *p)
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

ssize_t wfi_send_one(struct fid_ep *fid, const void *buf, size_t length, struct wfi_post *p)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = length};

	p->iov = &iov;
	p->count = 1;
	return wfi_send(fid, p);
}

ssize_t wfi_recv_one(struct fid_ep *fid, void *buf, size_t length, struct wfi_post *p)
{
	struct iovec iov = {.iov_base = buf, .iov_len = length};

	p->iov = &iov;
	p->count = 1;
	return wfi_recv(fid, p);
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
	return wfi_send(fid, &p);
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			fi_addr_t to, void *context)
{
	struct wfi_post p = wfi_post_of(FI_MSG, &desc, to, context, wfi_ep_of(fid)->tx.op_flags);

	return wfi_send_one(fid, buf, length, &p);
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
	struct wfi_post p = wfi_post_of(FI_MSG, &desc, to, context, wfi_ep_of(fid)->tx.op_flags);

	p.data = data;
	p.flags |= FI_REMOTE_CQ_DATA;
	return wfi_send_one(fid, buf, length, &p);
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t length, fi_addr_t to)
{
	struct wfi_post p = wfi_post_inject(fid, FI_MSG, to);

	return wfi_send_one(fid, buf, length, &p);
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
			      fi_addr_t to)
{
	struct wfi_post p = wfi_post_inject(fid, FI_MSG, to);

	p.data = data;
	p.flags |= FI_REMOTE_CQ_DATA;
	return wfi_send_one(fid, buf, length, &p);
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
	struct wfi_post p = wfi_post_of(FI_MSG, desc, from, context, wfi_ep_of(fid)->rx.op_flags);

	p.iov = iov;
	p.count = count;
	return wfi_recv(fid, &p);
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t length, void *desc, fi_addr_t from,
			void *context)
{
	struct wfi_post p = wfi_post_of(FI_MSG, &desc, from, context, wfi_ep_of(fid)->rx.op_flags);

	return wfi_recv_one(fid, buf, length, &p);
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
