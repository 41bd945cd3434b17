/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/tagged.h"

#include <errno.h>
#include <string.h>

#include "provider/mr.h"
#include "provider/op.h"
#include "provider/process.h"

#define RECV_FLAGS (FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD | FI_MULTI_RECV)
#define SEND_FLAGS (FI_COMPLETION | FI_MORE | FI_INJECT_COMPLETE | FI_MATCH_COMPLETE)

/* ------------------------------------------------------------------ sending */

struct post {
	const struct iovec *iov;
	size_t count;
	void *desc;
	fi_addr_t to;
	uint64_t tag;
	void *context;
	uint64_t flags;
};

/* One buffer as it is; several as a datatype, from a copy that lives as long as the operation. */
static const void *buffer(struct wfi_op *op, const struct iovec *iov, size_t *count,
			  struct weft_op_params *params)
{
	if (*count == 1) {
		*count = iov->iov_len;
		return iov->iov_base;
	}
	if (*count == 0)
		return NULL;
	memcpy(op->iov, iov, *count * sizeof(*iov));
	params->datatype = &wfi_iov_type;
	return op->iov;
}

static int start_send(struct wfi_op *op, const struct post *p, struct weft_ep *to)
{
	struct weft_op_params params = {.size = sizeof(params), .cb = wfi_sent_cb, .cb_arg = op};
	size_t count = p->count;
	const void *buf;

	buf = buffer(op, p->iov, &count, &params);
	if (p->count == 1)
		params.mem = wfi_mr_mem(p->desc);
	if (p->flags & FI_MATCH_COMPLETE)
		return weft_tag_send_sync(to, buf, count, p->tag, &params, NULL);
	return weft_tag_send(to, buf, count, p->tag, &params, NULL);
}

/* Locked. */
static int try_send(struct wfi_ep *ep, const struct post *p)
{
	struct wfi_av_entry *to = wfi_av_entry(ep->av, p->to);
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
	op->flags = FI_SEND | FI_TAGGED;
	op->report = wfi_wants_report(&ep->tx, p->flags);
	op->cntr = ep->sends;
	rc = start_send(op, p, to->peer->ep);
	if (rc == 0)
		wfi_op_sent(op, 0);
	else if (rc < 0)
		wfi_op_drop(op);
	return rc == -ENOMEM ? -FI_EAGAIN : rc < 0 ? -wfi_errno(rc) : 0;
}

static ssize_t post_send(struct fid_ep *fid, const struct post *p)
{
	struct wfi_ep *ep = wfi_ep_of(fid);
	int rc;

	if (!ep->enabled || p->count > WFI_IOV_MAX)
		return !ep->enabled ? -FI_EOPBADSTATE : -FI_EINVAL;
	wfi_lock();
	rc = try_send(ep, p);
	wfi_unlock();
	return rc;
}

static ssize_t tsendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		      fi_addr_t to, uint64_t tag, void *context)
{
	struct post p = {
		.iov = iov,
		.count = count,
		.desc = desc && count > 0 ? desc[0] : NULL,
		.to = to,
		.tag = tag,
		.context = context,
		.flags = wfi_ep_of(fid)->tx.op_flags,
	};

	return post_send(fid, &p);
}

static ssize_t tsend(struct fid_ep *fid, const void *buf, size_t length, void *desc, fi_addr_t to,
		     uint64_t tag, void *context)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = length};

	return tsendv(fid, &iov, &desc, 1, to, tag, context);
}

static ssize_t tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct post p = {
		.iov = msg->msg_iov,
		.count = msg->iov_count,
		.desc = msg->desc && msg->iov_count > 0 ? msg->desc[0] : NULL,
		.to = msg->addr,
		.tag = msg->tag,
		.context = msg->context,
		.flags = flags,
	};

	if (flags & ~SEND_FLAGS)
		return -FI_EBADFLAGS;
	return post_send(fid, &p);
}

/* ------------------------------------------------------------------ receiving */

int wfi_recv_source(const struct wfi_ep *ep, fi_addr_t from, struct weft_ep **source)
{
	struct wfi_av_entry *e;
	int rc;

	*source = NULL;
	if (!ep->directed || from == FI_ADDR_UNSPEC)
		return 0;
	e = wfi_av_entry(ep->av, from);
	if (!e)
		return -FI_EINVAL;
	rc = wfi_peer_connect(e->peer);
	if (rc == 0)
		*source = e->peer->ep;
	return rc;
}

static size_t total(const struct iovec *iov, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += iov[i].iov_len;
	return n;
}

/* Locked. */
static int try_recv(struct wfi_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params params = {
		.size = sizeof(params), .cb = wfi_received_cb, .completion = &c};
	size_t count = msg->iov_count;
	struct weft_ep *source;
	struct wfi_op *op;
	const void *buf;
	int rc;

	rc = wfi_recv_source(ep, msg->addr, &source);
	if (rc < 0)
		return rc;
	op = wfi_op_get(ep, ep->rx.cq);
	if (!op)
		return -FI_EAGAIN;
	op->context = msg->context;
	op->flags = FI_RECV | FI_TAGGED;
	op->report = wfi_wants_report(&ep->rx, flags);
	op->cntr = ep->receives;
	op->buf = count > 0 ? msg->msg_iov[0].iov_base : NULL;
	op->length = total(msg->msg_iov, count);
	op->data = 0;
	op->tag = msg->tag;
	params.cb_arg = op;
	buf = buffer(op, msg->msg_iov, &count, &params);
	if (msg->iov_count == 1 && msg->desc)
		params.mem = wfi_mr_mem(msg->desc[0]);
	rc = weft_tag_recv(wfi.worker, source, (void *)(uintptr_t)buf, count, msg->tag,
			   ~msg->ignore, &params, &op->req);
	if (rc == 0)
		wfi_op_received(op, &c);
	else if (rc < 0)
		wfi_op_drop(op);
	return rc == -ENOMEM ? -FI_EAGAIN : rc < 0 ? -wfi_errno(rc) : 0;
}

static ssize_t trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct wfi_ep *ep = wfi_ep_of(fid);
	ssize_t rc;

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	if (flags & ~RECV_FLAGS || flags & FI_MULTI_RECV)
		return -FI_EBADFLAGS;
	if (msg->iov_count > WFI_IOV_MAX)
		return -FI_EINVAL;
	wfi_lock();
	if (flags & FI_PEEK)
		rc = wfi_peek(ep, msg, flags);
	else if (flags & FI_CLAIM)
		rc = wfi_claim(ep, msg, flags);
	else
		rc = try_recv(ep, msg, flags);
	wfi_unlock();
	return rc;
}

static ssize_t trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		      fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	struct fi_msg_tagged msg = {
		.msg_iov = iov,
		.desc = desc,
		.iov_count = count,
		.addr = from,
		.tag = tag,
		.ignore = ignore,
		.context = context,
	};

	return trecvmsg(fid, &msg, wfi_ep_of(fid)->rx.op_flags);
}

static ssize_t trecv(struct fid_ep *fid, void *buf, size_t length, void *desc, fi_addr_t from,
		     uint64_t tag, uint64_t ignore, void *context)
{
	struct iovec iov = {.iov_base = buf, .iov_len = length};

	return trecvv(fid, &iov, &desc, 1, from, tag, ignore, context);
}

struct fi_ops_tagged wfi_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = trecv,
	.recvv = trecvv,
	.recvmsg = trecvmsg,
	.send = tsend,
	.sendv = tsendv,
	.sendmsg = tsendmsg,
};
