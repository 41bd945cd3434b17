/* SPDX-License-Identifier: BSD-3-Clause */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "provider/av.h"
#include "provider/completion.h"
#include "provider/info.h"
#include "provider/op.h"
#include "provider/process.h"
#include "provider/provider.h"
#include "provider/rma.h"

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
 * keeps nothing but two numbers (wfi_process_forked()): all else is initialized again, and the
 * memory is leaked.
 */
static void in_child(void)
{
	wfi_process_forked();
	wfi_thread_forked();
	wfi_wait_forked();
	wfi_peers_forked();
	wfi_ops_forked();
	wfi_mrs_forked();
}

static void watch(void)
{
	fork_error = -pthread_atfork(NULL, NULL, in_child);
}

/* Call in_child() in children of fork() from now on. @return 0, or a negative error */
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
	if (domain->thread != WFI_THREAD_NONE)
		wfi_thread_stop(domain->thread);
	wfi_lock_any();
	wfi_domain_number_put(domain);
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
	.stx_ctx = wfi_stx_open,
	.srx_ctx = wfi_srx_open,
	.query_atomic = wfi_query_atomic,
};

static enum wfi_thread thread_of(const struct fi_info *info)
{
	bool requested = info->domain_attr && info->domain_attr->data_progress == FI_PROGRESS_AUTO;

	if (wfi.options.progress == WFI_PROGRESS_MANUAL)
		return WFI_THREAD_NONE;
	return wfi.options.progress == WFI_PROGRESS_AUTO || requested ? WFI_THREAD_AUTO
								      : WFI_THREAD_WATCH;
}

/*
 * Enable alone mode (process.h) if this is the only domain, its application serializes its calls,
 * and no WFI_THREAD_AUTO is used; else end that mode.
 */
static void stay_alone(const struct wfi_domain *domain, const struct fi_info *info)
{
	wfi_lock_any();
	wfi.serialized = wfi.domains == 1 && domain->thread != WFI_THREAD_AUTO &&
			 info->domain_attr && info->domain_attr->threading == FI_THREAD_DOMAIN;
	if (wfi.serialized)
		wfi_unlock_alone();
	else
		wfi_unlock();
}

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
		       void *context)
{
	struct wfi_domain *domain;
	const uint8_t *key;
	int rc;

	if (!info || (info->domain_attr && info->domain_attr->name &&
		      strcmp(info->domain_attr->name, WFI_NAME) != 0))
		return -FI_EINVAL;
	rc = wfi_info_key(info, &key);
	if (rc < 0)
		return rc;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	domain->domain.fid.fclass = FI_CLASS_DOMAIN;
	domain->domain.fid.context = context;
	domain->domain.fid.ops = &domain_fi_ops;
	domain->domain.ops = &domain_ops;
	domain->domain.mr = &wfi_mr_ops;
	domain->av_type = info->domain_attr ? info->domain_attr->av_type : FI_AV_UNSPEC;
	domain->addr_format = info->addr_format;
	domain->generation = wfi.generation;
	domain->api_version = fabric->api_version;
	domain->app_keys = info->caps & WFI_CAPS_MEMORY && info->domain_attr &&
			   !(info->domain_attr->mr_mode & FI_MR_PROV_KEY);
	rc = watch_fork();
	if (rc == 0) {
		wfi_lock_any();
		rc = wfi_domain_number_take(domain);
		if (rc == 0) {
			rc = wfi_process_get(key);
			if (rc < 0)
				wfi_domain_number_put(domain);
		}
		wfi_unlock();
	}
	if (rc < 0) {
		free(domain);
		return rc;
	}
	domain->thread = thread_of(info);
	/* Alone mode first: with a second thread the registration for membarrier() is slower. */
	stay_alone(domain, info);
	rc = domain->thread == WFI_THREAD_NONE
		     ? 0
		     : wfi_thread_start(domain->thread, wfi.options.interval_us);
	if (rc < 0) {
		wfi_lock_any();
		wfi_domain_number_put(domain);
		wfi_process_put();
		wfi_unlock();
		free(domain);
		return rc;
	}
	*out = &domain->domain;
	return 0;
}

/* ------------------------------------------------------------------ fi_trywait() */

static int try_one(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return wfi_cq_trywait(container_of(fid, struct wfi_cq, cq.fid));
	case FI_CLASS_CNTR:
		return wfi_cntr_trywait(container_of(fid, struct wfi_cntr, cntr.fid));
	case FI_CLASS_EQ:
		return wfi_eq_trywait(container_of(fid, struct wfi_eq, eq.fid));
	default:
		return -FI_EINVAL;
	}
}

/* fi_trywait(): may the application sleep on the descriptors of these objects? */
static int fabric_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int rc = 0;

	wfi_lock_any();
	wfi_progress_all();
	for (int i = 0; i < count && rc == 0; i++)
		rc = try_one(fids[i]);
	if (rc == 0)
		wfi_unlock_armed();
	else
		wfi_unlock();
	return rc;
}

/* ------------------------------------------------------------------ fabrics and the entry point */

static int fabric_close(struct fid *fid)
{
	free(container_of(fid, struct fid_fabric, fid));
	return 0;
}

static int no_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			 void *context)
{
	return -FI_ENOSYS; /* there are no connected endpoints */
}

static int no_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			struct fid_wait **waitset)
{
	return -FI_ENOSYS;
}

static struct fi_ops fabric_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = wfi_no_bind,
	.control = wfi_no_control,
	.ops_open = wfi_no_ops_open,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = domain_open,
	.passive_ep = no_passive_ep,
	.eq_open = wfi_eq_open,
	.wait_open = no_wait_open,
	.trywait = fabric_trywait,
};

static int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct fid_fabric *f;

	if (attr->name && strcmp(attr->name, WFI_NAME) != 0)
		return -FI_ENODATA;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -FI_ENOMEM;
	f->fid.fclass = FI_CLASS_FABRIC;
	f->fid.context = context;
	f->fid.ops = &fabric_fi_ops;
	f->ops = &fabric_ops;
	f->api_version = attr->api_version;
	*fabric = f;
	return 0;
}

/*
 * libfabric unloads the shared object after this call, so no thread may run its code. The last
 * domain that closes joins the thread that enables alone mode, but an application may end without
 * closing anything.
 */
static void cleanup(void)
{
	wfi_lock_join_at_exit();
}

/* libfabric looks this symbol up after it has loaded the object. */
struct fi_provider *fi_prov_ini(void);

FI_EXT_INI
{
	wfi_provider.getinfo = wfi_getinfo;
	wfi_provider.fabric = fabric_open;
	wfi_provider.cleanup = cleanup;
	wfi_version_start();
	wfi_options_define();
	return &wfi_provider;
}
