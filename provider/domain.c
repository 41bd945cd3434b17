/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/domain.h"

#include <stdlib.h>
#include <string.h>

#include "provider/atomic.h"
#include "provider/av.h"
#include "provider/cntr.h"
#include "provider/cq.h"
#include "provider/ep.h"
#include "provider/fork.h"
#include "provider/mr.h"
#include "provider/op.h"
#include "provider/process.h"
#include "provider/thread.h"

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
	domain->domain.mr = &wfi_mr_ops;
	domain->av_type = info->domain_attr ? info->domain_attr->av_type : FI_AV_UNSPEC;
	domain->generation = wfi.generation;
	rc = wfi_fork_watch();
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
