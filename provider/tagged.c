/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/tagged.h"

#include "provider/info.h"
#include "provider/message.h"
#include "provider/process.h"

#define RECV_FLAGS (FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD)

/* ------------------------------------------------------------------ sending */

static ssize_t tsendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		      fi_addr_t to, uint64_t tag, void *context)
{
	struct wfi_post p = {
		.kind = FI_TAGGED,
		.iov = iov,
		.count = count,
		.desc = desc,
		.addr = to,
		.tag = tag,
		.context = context,
		.flags = wfi_ep_of(fid)->tx.op_flags,
	};

	return wfi_send(fid, &p);
}

static ssize_t tsend(struct fid_ep *fid, const void *buf, size_t length, void *desc, fi_addr_t to,
		     uint64_t tag, void *context)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = length};

	return tsendv(fid, &iov, &desc, 1, to, tag, context);
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
	return wfi_send(fid, &p);
}

static ssize_t tsenddata(struct fid_ep *fid, const void *buf, size_t length, void *desc,
			 uint64_t data, fi_addr_t to, uint64_t tag, void *context)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = length};
	struct wfi_post p = {
		.kind = FI_TAGGED,
		.iov = &iov,
		.count = 1,
		.desc = &desc,
		.addr = to,
		.tag = tag,
		.data = data,
		.context = context,
		.flags = wfi_ep_of(fid)->tx.op_flags | FI_REMOTE_CQ_DATA,
	};

	return wfi_send(fid, &p);
}

static ssize_t inject(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
		      fi_addr_t to, uint64_t tag, uint64_t flags)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = length};
	struct wfi_post p = {
		.kind = FI_TAGGED,
		.iov = &iov,
		.count = 1,
		.addr = to,
		.tag = tag,
		.data = data,
		.flags = flags | FI_INJECT,
		.quiet = true,
	};

	return wfi_send(fid, &p);
}

static ssize_t tinject(struct fid_ep *fid, const void *buf, size_t length, fi_addr_t to,
		       uint64_t tag)
{
	return inject(fid, buf, length, 0, to, tag, 0);
}

static ssize_t tinjectdata(struct fid_ep *fid, const void *buf, size_t length, uint64_t data,
			   fi_addr_t to, uint64_t tag)
{
	return inject(fid, buf, length, data, to, tag, FI_REMOTE_CQ_DATA);
}

/* ------------------------------------------------------------------ receiving */

static ssize_t look(struct wfi_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	ssize_t rc;

	if (!(ep->caps & FI_TAGGED))
		return -FI_EOPNOTSUPP;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	if (msg->iov_count > WFI_IOV_MAX)
		return -FI_EINVAL;
	wfi_lock();
	rc = flags & FI_PEEK ? wfi_peek(ep, msg, flags) : wfi_claim(ep, msg, flags);
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

	if (flags & ~(uint64_t)RECV_FLAGS)
		return -FI_EBADFLAGS;
	if (flags & (FI_PEEK | FI_CLAIM))
		return look(wfi_ep_of(fid), msg, flags);
	return wfi_recv(fid, &p);
}

static ssize_t trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		      fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	struct wfi_post p = {
		.kind = FI_TAGGED,
		.iov = iov,
		.count = count,
		.desc = desc,
		.addr = from,
		.tag = tag,
		.ignore = ignore,
		.context = context,
		.flags = wfi_ep_of(fid)->rx.op_flags & ~(uint64_t)FI_MULTI_RECV,
	};

	return wfi_recv(fid, &p);
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
	.inject = tinject,
	.senddata = tsenddata,
	.injectdata = tinjectdata,
};
