/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/rma.h"

#include <string.h>

#include "provider/info.h"
#include "provider/message.h"
#include "provider/op.h"
#include "provider/process.h"

/* Flags of calls that have flags. */
#define READ_FLAGS (WFI_TX_OP_FLAGS | FI_FENCE | FI_MORE)
#define WRITE_FLAGS (READ_FLAGS | FI_REMOTE_CQ_DATA)

/* The id of active messages: a read or an atomic has been executed. */
#define AM_EXECUTED 0

void wfi_rma_executed(const struct wfi_op *op)
{
	const struct weft_am_send_params am =
		WEFT_INIT(struct weft_am_send_params, .id = AM_EXECUTED, .header = &op->key,
			  .header_length = sizeof(op->key));
	struct weft_op_params params =
		WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_IMM, .imm = op->counts);
	const struct wfi_av_entry *e = op->ep ? wfi_av_entry(op->ep->av, op->target) : NULL;
	int rc;

	if (!e)
		return; /* the target's address has been removed, or the endpoint closed */
	rc = wfi_peer_connect(e->peer);
	if (rc == 0) {
		params.channel = wfi_channel(e->number, FI_RMA);
		rc = weft_am_send(e->peer->ep, &am, NULL, 0, &params, NULL);
	}
	if (rc < 0)
		FI_WARN(&wfi_provider, FI_LOG_EP_DATA,
			"the target is not notified of a read or an atomic, and does not count "
			"it: %s\n",
			fi_strerror(-wfi_post_result(rc)));
}

static void read_cb(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	if (c->status >= 0)
		wfi_rma_executed(arg);
	wfi_op_sent(arg, c->status);
}

/*
 * A write that notifies names the target's endpoint by its channel of tagged messages. A write that
 * is only counted, without data for the application, names the endpoint's channel of untagged ones.
 */
static bool is_only_counted(uint16_t channel)
{
	return channel == wfi_channel(channel / 2, FI_MSG);
}

static int start(struct wfi_ep *ep, struct wfi_op *op, const struct wfi_post *p, struct weft_ep *to,
		 struct weft_rkey *rkey)
{
	bool counted = ep->events && p->kind == FI_WRITE && !(p->flags & FI_REMOTE_CQ_DATA);
	struct weft_op_params params = {
		.size = sizeof(params),
		.flags = wfi_post_flags(p) | wfi_op_polled(op) | (counted ? WEFT_OP_F_IMM : 0),
		.imm = counted ? 0 : p->data,
		.channel = wfi_channel(wfi_av_entry(ep->av, p->addr)->number,
				       counted ? FI_MSG : FI_RMA),
		.source_channel = ep->source_channel,
		.cb = ep->events && p->kind == FI_READ ? read_cb : wfi_sent_cb,
		.cb_arg = op,
	};
	size_t count;
	void *buf = wfi_post_buffer(op, p, &count, &params);

	if (p->kind == FI_READ)
		return weft_get(to, buf, count, rkey, p->offset, &params, NULL);
	return weft_put(to, buf, count, rkey, p->offset, &params, NULL);
}

uint64_t wfi_rma_key(const struct wfi_ep *ep, fi_addr_t addr, uint64_t key)
{
	const struct wfi_av_entry *e = wfi_av_entry(ep->av, addr);

	return e && ep->domain->app_keys ? wfi_mr_key(e->addr.domain, key) : key;
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
		rc = wfi_peer_rkey(e->peer, wfi_rma_key(ep, addr, key), rkey);
	if (rc < 0)
		return rc;
	*to = e->peer->ep;
	rc = flags & FI_FENCE || ep->ordered ? weft_ep_fence(*to) : 0;
	return rc < 0 ? -wfi_errno(rc) : 0;
}

/* Locked. */
static int try(struct wfi_ep *ep, const struct wfi_post *p)
{
	struct weft_rkey *rkey;
	struct weft_ep *to;
	struct wfi_op *op;
	int rc;

	rc = wfi_rma_target(ep, p->addr, p->key, p->flags, &to, &rkey);
	if (rc < 0)
		return rc;
	op = wfi_post_op(ep, &ep->tx, p, FI_RMA | p->kind,
			 p->kind == FI_READ ? ep->reads : ep->writes);
	if (!op)
		return -FI_EAGAIN;
	op->counts = ep->events && p->kind == FI_READ ? WFI_COUNT_READ : 0;
	op->target = p->addr;
	op->key = wfi_rma_key(ep, p->addr, p->key);
	rc = start(ep, op, p, to, rkey);
	if (rc == 0 && op->counts != 0)
		wfi_rma_executed(op);
	return wfi_post_started(op, rc);
}

static ssize_t post(struct fid_ep *fid, const struct wfi_post *p)
{
	struct wfi_ep *ep = wfi_ep_of(fid);
	int rc = wfi_post_check(ep, FI_RMA);

	if (rc < 0)
		return rc;
	if (p->count > WFI_IOV_MAX ||
	    (p->kind == FI_WRITE && p->flags & FI_INJECT && wfi_post_length(p) > ep->inject_size))
		return -FI_EINVAL;
	wfi_lock();
	rc = try(ep, p);
	wfi_unlock();
	return rc;
}

/* ------------------------------------------------------------------ peers' operations */

static void count(uint16_t channel, uint64_t key, uint64_t what)
{
	struct wfi_ep *ep = wfi_ep_find(channel / 2);

	if (what & WFI_COUNT_REGION)
		wfi_mr_written(key);
	if (what & WFI_COUNT_READ && ep && ep->remote_reads)
		wfi_cntr_count(ep->remote_reads, false);
	if (what & WFI_COUNT_WRITE && ep && ep->remote_writes)
		wfi_cntr_count(ep->remote_writes, false);
}

static int executed(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	uint64_t key;

	if (msg->header_length == sizeof(key)) {
		memcpy(&key, msg->header, sizeof(key));
		count(msg->channel, key, msg->imm);
	}
	return 0;
}

static void written(struct weft_worker *worker, const struct weft_put_event *event, void *arg)
{
	struct wfi_ep *ep = wfi_ep_find(event->channel / 2);
	struct wfi_completion *c;

	count(event->channel, event->key, WFI_COUNT_REGION | WFI_COUNT_WRITE);
	if (is_only_counted(event->channel))
		return;
	if (!ep || !ep->rx.cq || !(ep->caps & FI_RMA))
		return; /* the endpoint has been closed, or has no queue or no FI_RMA */
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
		wfi_op_source(ep, c, event->source_id, event->source_channel);
}

int wfi_rma_listen(const struct wfi_ep *ep)
{
	int rc = 0;

	weft_worker_set_put_handler(wfi.worker, written, NULL);
	if (ep->events)
		rc = weft_worker_set_am_handler(wfi.worker, AM_EXECUTED, executed, NULL, 0);
	return rc < 0 ? -wfi_errno(rc) : 0;
}

/* ------------------------------------------------------------------ libfabric's calls */

static struct wfi_post post_of(struct fid_ep *fid, uint64_t kind, void **desc, fi_addr_t addr,
			       uint64_t offset, uint64_t key, void *context)
{
	struct wfi_post p = wfi_post_of(kind, desc, addr, context, wfi_ep_of(fid)->tx.op_flags);

	p.offset = offset;
	p.key = key;
	return p;
}

static ssize_t post_one(struct fid_ep *fid, const void *buf, size_t length, struct wfi_post *p)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = length};

	p->iov = &iov;
	p->count = 1;
	return post(fid, p);
}

static ssize_t message(struct fid_ep *fid, uint64_t kind, const struct fi_msg_rma *msg,
		       uint64_t flags)
{
	struct wfi_post p = {
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
	struct wfi_post p = post_of(fid, FI_READ, desc, from, addr, key, context);

	p.iov = iov;
	p.count = count;
	return post(fid, &p);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t length, void *desc, fi_addr_t from,
			uint64_t addr, uint64_t key, void *context)
{
	struct wfi_post p = post_of(fid, FI_READ, &desc, from, addr, key, context);

	return post_one(fid, buf, length, &p);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return message(fid, FI_READ, msg, flags);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
	struct wfi_post p = post_of(fid, FI_WRITE, desc, to, addr, key, context);

	p.iov = iov;
	p.count = count;
	return post(fid, &p);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			 fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
	struct wfi_post p = post_of(fid, FI_WRITE, &desc, to, addr, key, context);

	return post_one(fid, buf, length, &p);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return message(fid, FI_WRITE, msg, flags);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t length, fi_addr_t to,
			  uint64_t addr, uint64_t key)
{
	struct wfi_post p = wfi_post_inject(fid, FI_WRITE, to);

	p.offset = addr;
	p.key = key;
	return post_one(fid, buf, length, &p);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			     uint64_t data, fi_addr_t to, uint64_t addr, uint64_t key,
			     void *context)
{
	struct wfi_post p = post_of(fid, FI_WRITE, &desc, to, addr, key, context);

	p.data = data;
	p.flags |= FI_REMOTE_CQ_DATA;
	return post_one(fid, buf, length, &p);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
			      fi_addr_t to, uint64_t addr, uint64_t key)
{
	struct wfi_post p = wfi_post_inject(fid, FI_WRITE, to);

	p.offset = addr;
	p.key = key;
	p.data = data;
	p.flags |= FI_REMOTE_CQ_DATA;
	return post_one(fid, buf, length, &p);
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
