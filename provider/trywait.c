/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/trywait.h"

#include "provider/cntr.h"
#include "provider/cq.h"
#include "provider/eq.h"
#include "provider/process.h"
#include "provider/wait.h"

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

int wfi_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
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
