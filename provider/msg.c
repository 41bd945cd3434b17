/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/msg.h"

#include "provider/info.h"
#include "provider/message.h"

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
