/* SPDX-License-Identifier: BSD-3-Clause */
/* What every object of libfabric needs. provider.c sets the other members of the provider. */

#include "provider/provider.h"

struct fi_provider wfi_provider = {
	.version = FI_VERSION(0, 1),
	.name = WFI_NAME,
};

int wfi_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

int wfi_no_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

int wfi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	return -FI_ENOSYS;
}
