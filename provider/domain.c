/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/domain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/completion.h"
#include "provider/process.h"

/* The time, in ms, for which closing makes progress for operations that still use the memory. */
#define CLOSE_MS 1000

#define APP_DOMAINS 256

/* Numbers in use, by domains in which the application chooses keys. */
static bool numbers[APP_DOMAINS];

int wfi_domain_number_take(struct wfi_domain *domain)
{
	if (!domain->app_keys)
		return 0;
	for (unsigned int i = 0; i < APP_DOMAINS; i++) {
		if (numbers[i])
			continue;
		numbers[i] = true;
		domain->number = (uint8_t)i;
		return 0;
	}
	return -FI_EMFILE;
}

void wfi_domain_number_put(const struct wfi_domain *domain)
{
	if (domain->app_keys)
		numbers[domain->number] = false;
}

/* The output function of splitmix64: the library prefers keys whose low bits differ. */
uint64_t wfi_mr_key(uint8_t domain, uint64_t key)
{
	uint64_t x = key + (domain + 1u) * 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	return x ? x : UINT64_MAX; /* Weft has no key 0 */
}

/* Regions with a counter; few, so that a search of all of them is short. */
static LIST_HEAD(, wfi_mr) counted = LIST_HEAD_INITIALIZER(counted);

void wfi_mr_written(uint64_t key)
{
	struct wfi_mr *mr;

	LIST_FOREACH(mr, &counted, counted) {
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
		LIST_INSERT_HEAD(&counted, mr, counted);
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

/* A region is usable from its registration on, whatever is bound to it later. */
static int mr_control(struct fid *fid, int command, void *arg)
{
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

void wfi_mrs_forked(void)
{
	LIST_INIT(&counted);
	memset(numbers, 0, sizeof(numbers));
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
		/*
		 * libfabric has no access flag for atomics: this one includes them, even if they
		 * fetch.
		 */
		params.flags |= WEFT_MEM_F_REMOTE_WRITE | WEFT_MEM_F_REMOTE_ATOMIC;
	if (domain->app_keys && params.flags) {
		params.flags |= WEFT_MEM_F_KEY;
		params.key = wfi_mr_key(domain->number, attr->requested_key);
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
