/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/rma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/info.h"
#include "provider/message.h"
#include "provider/op.h"
#include "provider/process.h"

/* The maximum time, in ms, that fi_close() of a region waits for operations that use its memory. */
#define CLOSE_MS 1000

#define READ_FLAGS (WFI_TX_OP_FLAGS | FI_FENCE | FI_MORE)
#define WRITE_FLAGS (READ_FLAGS | FI_REMOTE_CQ_DATA)

/* The id of active messages that notify the target of an executed read or atomic. */
#define AM_EXECUTED 0

/* ------------------------------------------------------------------ memory regions */

/*
 * Weft's key for a key that the application has chosen. Each domain may have the same keys, so the
 * domain's number is an input. Weft has no key 0: of the keys of a domain, two have the same result
 * (UINT64_MAX), and all others have results of their own. The hash is the output function of
 * splitmix64: the library prefers keys whose low bits differ.
 */
static uint64_t region_key(uint8_t domain, uint64_t key)
{
	uint64_t x = key + (domain + 1u) * 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	return x ? x : UINT64_MAX;
}

/* Regions with a counter; few, so that a search of all of them is short. */
static LIST_HEAD(, wfi_mr) counted_regions = LIST_HEAD_INITIALIZER(counted_regions);

/* A peer has changed the region with Weft's @p key: increment its counter, if any. Locked. */
static void region_written(uint64_t key)
{
	struct wfi_mr *mr;

	LIST_FOREACH(mr, &counted_regions, counted) {
		if (mr->key == key)
			wfi_cntr_count(mr->writes, false);
	}
}

static int bind_cntr(struct wfi_mr *mr, struct wfi_cntr *cntr)
{
	int rc = -FI_EINVAL;

	wfi_lock();
	if (!mr->writes && cntr->domain == mr->domain) {
		mr->writes = cntr;
		cntr->refs++;
		LIST_INSERT_HEAD(&counted_regions, mr, counted);
		rc = 0;
	}
	wfi_unlock();
	return rc;
}

static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	if (bfid->fclass != FI_CLASS_CNTR)
		return -FI_EINVAL;
	if (flags != FI_REMOTE_WRITE)
		return -FI_EBADFLAGS;
	return bind_cntr(container_of(fid, struct wfi_mr, mr.fid),
			 container_of(bfid, struct wfi_cntr, cntr.fid));
}

/* fi_mr_enable() does nothing: a region is usable from its registration on. */
static int mr_control(struct fid *fid, int command, void *arg)
{
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

void wfi_mrs_forked(void)
{
	LIST_INIT(&counted_regions);
}

static void mr_unbind(struct wfi_mr *mr)
{
	if (!mr->writes)
		return;
	LIST_REMOVE(mr, counted);
	mr->writes->refs--;
	mr->writes = NULL;
}

static int mr_close(struct fid *fid)
{
	struct wfi_deadline deadline = wfi_deadline(CLOSE_MS);
	struct wfi_mr *mr = container_of(fid, struct wfi_mr, mr.fid);
	int rc;

	if (wfi_domain_is_parents(mr->domain))
		return 0;
	wfi_lock();
	for (;;) {
		rc = weft_mem_deregister(mr->mem);
		if (rc != -EBUSY || !wfi.worker || wfi_deadline_left(&deadline) == 0)
			break;
		weft_worker_progress(wfi.worker);
		wfi_yield();
	}
	if (rc == 0) {
		mr_unbind(mr);
		mr->domain->refs--;
	}
	wfi_unlock();
	if (rc == 0)
		free(mr);
	return rc < 0 ? -wfi_errno(rc) : 0;
}

static struct fi_ops mr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = wfi_no_ops_open,
};

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **out)
{
	struct wfi_domain *domain = container_of(fid, struct wfi_domain, domain.fid);
	struct weft_mem_params params = WEFT_INIT(struct weft_mem_params);
	struct wfi_mr *mr;
	int rc;

	if (fid->fclass != FI_CLASS_DOMAIN || flags & ~(uint64_t)FI_RMA_EVENT)
		return fid->fclass != FI_CLASS_DOMAIN ? -FI_EINVAL : -FI_EBADFLAGS;
	if (attr->iface != FI_HMEM_SYSTEM) {
		FI_WARN(&wfi_provider, FI_LOG_MR,
			"memory of a device (iface %d) is not supported: copy it to host memory\n",
			(int)attr->iface);
		return -FI_EOPNOTSUPP;
	}
	if (attr->iov_count != 1 || attr->offset != 0)
		return -FI_EINVAL;
	if (attr->access & FI_REMOTE_READ)
		params.flags |= WEFT_MEM_F_REMOTE_READ;
	if (attr->access & FI_REMOTE_WRITE)
		/* libfabric has no access flag for atomics: FI_REMOTE_WRITE allows all of them. */
		params.flags |= WEFT_MEM_F_REMOTE_WRITE | WEFT_MEM_F_REMOTE_ATOMIC;
	if (domain->app_keys && params.flags) {
		params.flags |= WEFT_MEM_F_KEY;
		params.key = region_key(domain->number, attr->requested_key);
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	wfi_lock();
	rc = weft_mem_register(wfi.ctx, attr->mr_iov[0].iov_base, attr->mr_iov[0].iov_len, &params,
			       &mr->mem);
	if (rc == 0)
		domain->refs++;
	wfi_unlock();
	if (rc < 0) {
		free(mr);
		return rc == -EEXIST ? -FI_ENOKEY : -wfi_errno(rc);
	}
	mr->domain = domain;
	mr->key = weft_mem_key(mr->mem);
	mr->mr.fid.fclass = FI_CLASS_MR;
	mr->mr.fid.context = attr->context;
	mr->mr.fid.ops = &mr_fi_ops;
	mr->mr.mem_desc = mr;
	mr->mr.key = params.flags ? mr->key : FI_KEY_NOTAVAIL;
	if (domain->app_keys)
		mr->mr.key = attr->requested_key;
	*out = &mr->mr;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		   uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		   void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
	};

	return mr_regattr(fid, &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t length, uint64_t access, uint64_t offset,
		  uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = length};

	return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr wfi_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};

/* ------------------------------------------------------------------ reads and writes */

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

	return e && ep->domain->app_keys ? region_key(e->addr.domain, key) : key;
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
		region_written(key);
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
