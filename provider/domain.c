/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/domain.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "provider/atomic.h"
#include "provider/av.h"
#include "provider/completion.h"
#include "provider/ep.h"
#include "provider/op.h"
#include "provider/process.h"

/* ------------------------------------------------------------------ memory regions */

/* The time, in ms, for which closing makes progress for operations that still use the memory. */
#define CLOSE_MS 1000

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
	if (rc == 0)
		mr->domain->refs--;
	wfi_unlock();
	if (rc == 0)
		free(mr);
	return rc < 0 ? -wfi_errno(rc) : 0;
}

static struct fi_ops mr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = wfi_no_bind,
	.control = wfi_no_control,
	.ops_open = wfi_no_ops_open,
};

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **out)
{
	struct wfi_domain *domain = container_of(fid, struct wfi_domain, domain.fid);
	struct weft_mem_params params = WEFT_INIT(struct weft_mem_params);
	struct wfi_mr *mr;
	int rc;

	if (fid->fclass != FI_CLASS_DOMAIN || flags != 0)
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
		/*
		 * libfabric has no access flag for atomics: this one includes them, even if they
		 * fetch.
		 */
		params.flags |= WEFT_MEM_F_REMOTE_WRITE | WEFT_MEM_F_REMOTE_ATOMIC;
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
		return -wfi_errno(rc);
	}
	mr->domain = domain;
	mr->mr.fid.fclass = FI_CLASS_MR;
	mr->mr.fid.context = attr->context;
	mr->mr.fid.ops = &mr_fi_ops;
	mr->mr.mem_desc = mr;
	mr->mr.key = params.flags ? weft_mem_key(mr->mem) : FI_KEY_NOTAVAIL;
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

static struct fi_ops_mr mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};

/* ------------------------------------------------------------------ children of fork() */

/*
 * Children of fork(): worker, connections and thread belong to the parent. A child starts with
 * nothing open. Closing an object of the parent has no effect in the child, which may open its own
 * objects.
 */

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;

/*
 * Another thread of the parent may have held the lock, with a table half changed. So the child
 * reads no state: everything is initialized again, and the memory is leaked.
 */
static void in_child(void)
{
	wfi_process_forked();
	wfi_thread_forked();
	wfi_wait_forked();
	wfi_eps_forked();
	wfi_peers_forked();
	wfi_ops_forked();
}

static void watch(void)
{
	fork_error = -pthread_atfork(NULL, NULL, in_child);
}

/* From now on a child detects that it is one. @return 0, or a negative error */
static int watch_fork(void)
{
	pthread_once(&fork_once, watch);
	return fork_error;
}

/* ------------------------------------------------------------------ domains */

static int domain_close(struct fid *fid)
{
	struct wfi_domain *domain = container_of(fid, struct wfi_domain, domain.fid);
	bool last;

	if (wfi_domain_is_parents(domain))
		return 0;
	if (domain->refs > 0)
		return -FI_EBUSY;
	if (domain->has_thread)
		wfi_thread_stop();
	wfi_lock_any();
	wfi_process_put();
	last = wfi.domains == 0;
	if (last)
		wfi_ops_free();
	wfi_unlock();
	if (last)
		wfi_lock_join();
	free(domain);
	return 0;
}

static int no_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
			  void *context)
{
	return -FI_ENOSYS;
}

static int no_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
			struct fid_poll **pollset)
{
	return -FI_ENOSYS;
}

static int no_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		      void *context)
{
	return -FI_ENOSYS;
}

static int no_srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		      void *context)
{
	return -FI_ENOSYS;
}

static struct fi_ops domain_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = wfi_no_bind,
	.control = wfi_no_control,
	.ops_open = wfi_no_ops_open,
};

static struct fi_ops_domain domain_ops = {
	/* The later members are not implemented, which libfabric detects by the size. */
	.size = offsetof(struct fi_ops_domain, query_collective),
	.av_open = wfi_av_open,
	.cq_open = wfi_cq_open,
	.endpoint = wfi_ep_open,
	.scalable_ep = no_scalable_ep,
	.cntr_open = wfi_cntr_open,
	.poll_open = no_poll_open,
	.stx_ctx = no_stx_ctx,
	.srx_ctx = no_srx_ctx,
	.query_atomic = wfi_query_atomic,
};

static int start_thread(struct wfi_domain *domain, const struct fi_info *info)
{
	bool requested = info->domain_attr && info->domain_attr->data_progress == FI_PROGRESS_AUTO;
	int rc;

	if (wfi.options.progress == WFI_PROGRESS_MANUAL ||
	    (wfi.options.progress == WFI_PROGRESS_REQUESTED && !requested))
		return 0;
	rc = wfi_thread_start(wfi.options.interval_us);
	domain->has_thread = rc == 0;
	return rc;
}

/* With one domain whose calls are serialized, no other thread contends for the lock. */
static void stay_alone(const struct wfi_domain *domain, const struct fi_info *info)
{
	wfi_lock_any();
	if (wfi.domains == 1 && !domain->has_thread && info->domain_attr &&
	    info->domain_attr->threading == FI_THREAD_DOMAIN)
		wfi_unlock_alone();
	else
		wfi_unlock();
}

int wfi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
		    void *context)
{
	struct wfi_domain *domain;
	int rc;

	if (!info || (info->domain_attr && info->domain_attr->name &&
		      strcmp(info->domain_attr->name, WFI_NAME) != 0))
		return -FI_EINVAL;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	domain->domain.fid.fclass = FI_CLASS_DOMAIN;
	domain->domain.fid.context = context;
	domain->domain.fid.ops = &domain_fi_ops;
	domain->domain.ops = &domain_ops;
	domain->domain.mr = &mr_ops;
	domain->av_type = info->domain_attr ? info->domain_attr->av_type : FI_AV_UNSPEC;
	domain->generation = wfi.generation;
	rc = watch_fork();
	if (rc == 0) {
		wfi_lock_any();
		rc = wfi_process_get();
		wfi_unlock();
	}
	if (rc < 0) {
		free(domain);
		return rc;
	}
	rc = start_thread(domain, info);
	if (rc < 0) {
		wfi_lock_any();
		wfi_process_put();
		wfi_unlock();
		free(domain);
		return rc;
	}
	*out = &domain->domain;
	stay_alone(domain, info);
	return 0;
}
