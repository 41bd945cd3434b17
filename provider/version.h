/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file version.h
 * Versions of libfabric's interface. The headers of the build and the library of the run may have
 * different ones. A library serves a request of version N only from providers that report N or
 * more. So a provider that reported the version of its headers would be absent for every
 * application that is newer than the build.
 *
 * The provider therefore reports the version of the library that has loaded it. Three rules keep
 * that true:
 * - Structures that the provider returns are allocated by the library (fi_allocinfo()), which sets
 *   members that the headers do not have to 0. In all of them 0 is the default.
 * - Members that the headers do not have are read by declarations of our own, and only where the
 *   library is new enough to pass them.
 * - Tables of functions have their size, by which applications detect functions that are absent.
 */
#ifndef WFI_VERSION_H
#define WFI_VERSION_H

#include <stddef.h>
#include <stdint.h>

#include "provider/provider.h"

/** The newest version that the provider was run with; requests for a newer one are not served. */
#define WFI_VERSION_NEWEST FI_VERSION(2, 6)

/** When the library has loaded the provider: the version that the provider reports to it. */
void wfi_version_start(void);

/** Members of struct fi_domain_attr from tclass on, as of 1.20. */
struct wfi_domain_attr_1_20 {
	uint32_t tclass;
	size_t max_ep_auth_key;
	uint32_t max_group_id;
};

/**
 * Later members of an application's hints; NULL: the library is older. The library copies hints of
 * applications that were built with older headers, so all hints have the members of its version.
 */
const struct wfi_domain_attr_1_20 *wfi_version_domain_attr(const struct fi_domain_attr *attr);

#endif /* WFI_VERSION_H */
