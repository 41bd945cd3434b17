/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/rma.h"

#include <errno.h>
#include <string.h>

#include "provider/domain.h"
#include "provider/info.h"
#include "provider/message.h"
#include "provider/op.h"
#include "provider/process.h"

/* Flags of calls that have flags. */
#define READ_FLAGS (WFI_TX_OP_FLAGS | FI_FENCE | FI_MORE)
#define WRITE_FLAGS (READ_FLAGS | FI_REMOTE_CQ_DATA)

/* A read or write with the arguments of the call. */
struct post {
	uint64_t kind; /* FI_READ or FI_WRITE */
	const struct iovec *iov;
	size_t count;
	void **desc;
	fi_addr_t addr;
	uint64_t offset, key;
	uint64_t data;
	void *context;
	uint64_t flags;
	bool quiet;
};

static uint32_t op_flags(const struct post *p)
{
	uint32_t flags = 0;

	if (p->flags & FI_MORE)
		flags |= WEFT_OP_F_MORE;
	if (p->kind == FI_READ)
		return flags;
	if (p->flags & FI_INJECT)
		flags |= WEFT_OP_F_INJECT;
	if (p->flags & FI_REMOTE_CQ_DATA)
		flags |= WEFT_OP_F_IMM;
	if (p->flags & (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE))
		flags |= WEFT_OP_F_DELIVERED;
	return flags;
}

static int start(struct wfi_ep *ep, struct wfi_op *op, const struct post *p, struct weft_ep *to,
		 struct weft_rkey *rkey)
{
	struct weft_op_params params = {
		.size = sizeof(params),
		.flags = op_flags(p),
		.imm = p->data,
		.channel = wfi_channel(wfi_av_entry(ep->av, p->addr)->number, FI_RMA),
		.source_channel = wfi_channel(ep->number, FI_RMA),
		.cb = wfi_sent_cb,
		.cb_arg = op,
	};
	size_t count = p->count;
	void *buf = op->iov;

	if (count == 1) {
		buf = p->iov->iov_base;
		count = p->iov->iov_len;
		params.mem = p->desc ? wfi_mr_mem(p->desc[0]) : NULL;
	} else {
		memcpy(op->iov, p->iov, count * sizeof(*p->iov));
		params.datatype = &wfi_iov_type;
	}
	if (p->kind == FI_READ)
		return weft_get(to, buf, count, rkey, p->offset, &params, NULL);
	return weft_put(to, buf, count, rkey, p->offset, &params, NULL);
}

int wfi_rma_target(struct wfi_ep *ep, fi_addr_t addr, uint64_t key, uint64_t flags,
		   struct weft_ep **to, struct weft_rkey **rkey)
{
	struct wfi_av_entry *e = wfi_av_entry(ep->av, addr);
	int rc;

	if (!e)
		return -FI_EINVAL;
	rc = wfi_peer_connect(e->peer);
	if (rc == 0)
		rc = wfi_peer_rkey(e->peer, key, rkey);
	if (rc < 0)
		return rc;
	*to = e->peer->ep;
	rc = flags & FI_FENCE || ep->ordered ? weft_ep_fence(*to) : 0;
	return rc < 0 ? -wfi_errno(rc) : 0;
}

/* Locked. */
static int try(struct wfi_ep *ep, const struct post *p)
{
	struct weft_rkey *rkey;
	struct weft_ep *to;
	struct wfi_op *op;
	int rc;

	rc = wfi_rma_target(ep, p->addr, p->key, p->flags, &to, &rkey);
	if (rc < 0)
		return rc;
	op = wfi_op_get(ep, ep->tx.cq);
	if (!op)
		return -FI_EAGAIN;
	op->context = p->context;
	op->flags = FI_RMA | p->kind;
	op->report = !p->quiet && wfi_wants_report(&ep->tx, p->flags);
	op->cntr = p->kind == FI_READ ? ep->reads : ep->writes;
	rc = start(ep, op, p, to, rkey);
	if (rc == 0)
		wfi_op_sent(op, 0);
	else if (rc < 0)
		wfi_op_drop(op);
	return rc == -ENOMEM ? -FI_EAGAIN : rc < 0 ? -wfi_errno(rc) : 0;
}

static ssize_t post(struct fid_ep *fid, const struct post *p)
{
	struct wfi_ep *ep = wfi_ep_of(fid);
	size_t length = 0;
	int rc;

	if (!(ep->caps & FI_RMA))
		return -FI_EOPNOTSUPP;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	for (size_t i = 0; i < p->count && i < WFI_IOV_MAX; i++)
		length += p->iov[i].iov_len;
	if (p->count > WFI_IOV_MAX ||
	    (p->kind == FI_WRITE && p->flags & FI_INJECT && length > ep->inject_size))
		return -FI_EINVAL;
	wfi_lock();
	rc = try(ep, p);
	wfi_unlock();
	return rc;
}

/* ------------------------------------------------------------------ peers' writes */

void wfi_rma_notified(struct weft_worker *worker, const struct weft_put_event *event, void *arg)
{
	struct wfi_ep *ep = wfi_ep_find(event->channel / 2);
	struct wfi_completion *c;

	if (!ep || !ep->rx.cq || !(ep->caps & FI_RMA))
		return; /* the endpoint has been closed, or does not request events */
	/* No operation was posted that could have reserved an entry. */
	if (wfi_cq_reserve(ep->rx.cq) < 0) {
		FI_WARN(&wfi_provider, FI_LOG_CQ, "no memory: a peer's write is not reported\n");
		return;
	}
	c = wfi_cq_push(ep->rx.cq);
	*c = (struct wfi_completion){
		.entry = {.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
			  .len = event->length,
			  .data = event->imm},
		.source = FI_ADDR_NOTAVAIL,
	};
	if (ep->source)
		c->source = wfi_av_find(ep->av, event->source_id, event->source_channel / 2);
}

/* ------------------------------------------------------------------ libfabric's calls */

static ssize_t vector(struct fid_ep *fid, uint64_t kind, const struct iovec *iov, void **desc,
		      size_t count, fi_addr_t addr, uint64_t offset, uint64_t key, void *context)
{
	struct post p = {
		.kind = kind,
		.iov = iov,
		.count = count,
		.desc = desc,
		.addr = addr,
		.offset = offset,
		.key = key,
		.context = context,
		.flags = wfi_ep_of(fid)->tx.op_flags,
	};

	return post(fid, &p);
}

static ssize_t message(struct fid_ep *fid, uint64_t kind, const struct fi_msg_rma *msg,
		       uint64_t flags)
{
	struct post p = {
		.kind = kind,
		.iov = msg->msg_iov,
		.count = msg->iov_count,
		.desc = msg->desc,
		.addr = msg->addr,
		.data = msg->data,
		.context = msg->context,
		.flags = flags,
	};

	if (flags & ~(uint64_t)(kind == FI_READ ? READ_FLAGS : WRITE_FLAGS))
		return -FI_EBADFLAGS;
	if (msg->rma_iov_count != 1)
		return -FI_EINVAL;
	p.offset = msg->rma_iov->addr;
	p.key = msg->rma_iov->key;
	return post(fid, &p);
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t from, uint64_t addr, uint64_t key, void *context)
{
	return vector(fid, FI_READ, iov, desc, count, from, addr, key, context);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t length, void *desc, fi_addr_t from,
			uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = {.iov_base = buf, .iov_len = length};

	return vector(fid, FI_READ, &iov, &desc, 1, from, addr, key, context);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return message(fid, FI_READ, msg, flags);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
	return vector(fid, FI_WRITE, iov, desc, count, to, addr, key, context);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			 fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = length};

	return vector(fid, FI_WRITE, &iov, &desc, 1, to, addr, key, context);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return message(fid, FI_WRITE, msg, flags);
}

static ssize_t inject(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
		      fi_addr_t to, uint64_t addr, uint64_t key, uint64_t flags)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = length};
	struct post p = {
		.kind = FI_WRITE,
		.iov = &iov,
		.count = 1,
		.addr = to,
		.offset = addr,
		.key = key,
		.data = data,
		.flags = flags | FI_INJECT,
		.quiet = true,
	};

	return post(fid, &p);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t length, fi_addr_t to,
			  uint64_t addr, uint64_t key)
{
	return inject(fid, buf, length, 0, to, addr, key, 0);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			     uint64_t data, fi_addr_t to, uint64_t addr, uint64_t key,
			     void *context)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = length};
	struct post p = {
		.kind = FI_WRITE,
		.iov = &iov,
		.count = 1,
		.desc = &desc,
		.addr = to,
		.offset = addr,
		.key = key,
		.data = data,
		.context = context,
		.flags = wfi_ep_of(fid)->tx.op_flags | FI_REMOTE_CQ_DATA,
	};

	return post(fid, &p);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
			      fi_addr_t to, uint64_t addr, uint64_t key)
{
	return inject(fid, buf, length, data, to, addr, key, FI_REMOTE_CQ_DATA);
}

struct fi_ops_rma wfi_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
