/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/provider.h"

#include <assert.h>
#include <stdalign.h>

/* ------------------------------------------------------------------ what every object needs */

/* fi_prov_ini() (fabric.c) and wfi_version_start() set the other members of the provider. */

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

/* ------------------------------------------------------------------ versions of libfabric */

#define BUILT_WITH FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

static_assert(offsetof(struct fi_domain_attr, tclass) % alignof(struct wfi_domain_attr_1_20) == 0,
	      "the members begin where those of 1.20 do");

void wfi_version_start(void)
{
	uint32_t library = fi_version();

	wfi_provider.fi_version = library < WFI_VERSION_NEWEST ? library : WFI_VERSION_NEWEST;
	FI_INFO(&wfi_provider, FI_LOG_CORE,
		"built with libfabric %u.%u, running with %u.%u: serves requests up to %u.%u\n",
		FI_MAJOR_VERSION, FI_MINOR_VERSION, FI_MAJOR(library), FI_MINOR(library),
		FI_MAJOR(wfi_provider.fi_version), FI_MINOR(wfi_provider.fi_version));
	if (library > WFI_VERSION_NEWEST)
		FI_WARN(&wfi_provider, FI_LOG_CORE,
			"libfabric %u.%u is newer than %u.%u, the newest that was tested: requests "
			"for its version get no provider weft\n",
			FI_MAJOR(library), FI_MINOR(library), FI_MAJOR(WFI_VERSION_NEWEST),
			FI_MINOR(WFI_VERSION_NEWEST));
}

const struct wfi_domain_attr_1_20 *wfi_version_domain_attr(const struct fi_domain_attr *attr)
{
	if (fi_version() < FI_VERSION(1, 20))
		return NULL;
	return (const void *)((const char *)attr + offsetof(struct fi_domain_attr, tclass));
}
