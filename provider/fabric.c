/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>
#include <string.h>

#include "provider/completion.h"
#include "provider/domain.h"
#include "provider/eq.h"
#include "provider/info.h"
#include "provider/lock.h"
#include "provider/options.h"
#include "provider/process.h"
#include "provider/provider.h"

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
	while (wfi_progress() > 0)
		;
	for (int i = 0; i < count && rc == 0; i++)
		rc = try_one(fids[i]);
	if (rc == 0)
		wfi_unlock_armed();
	else
		wfi_unlock();
	return rc;
}

/* ------------------------------------------------------------------ fabrics and the entry point */

/* The entry point of the shared object, and fabrics, of which there is one kind. */

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
	.domain = wfi_domain_open,
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

/* An application may end without closing anything. */
static void cleanup(void)
{
	wfi_lock_join();
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
