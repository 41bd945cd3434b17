/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file domain.h
 * Domains: groups of objects of an application. All domains share the process's worker.
 */
#ifndef WFI_DOMAIN_H
#define WFI_DOMAIN_H

#include <stdbool.h>

#include "provider/process.h"
#include "provider/provider.h"

struct wfi_domain {
	struct fid_domain domain;
	unsigned int refs;       /**< number of its objects */
	bool has_thread;         /**< it requested FI_PROGRESS_AUTO */
	unsigned int generation; /**< generation of the process that opened it */
	enum fi_av_type av_type;
};

/** It was opened before this process was forked (fork.h). */
static inline bool wfi_domain_is_parents(const struct wfi_domain *domain)
{
	return domain->generation != wfi.generation;
}

int wfi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		    void *context);

#endif /* WFI_DOMAIN_H */
