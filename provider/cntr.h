/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cntr.h
 * Counters of operations that have ended.
 */
#ifndef WFI_CNTR_H
#define WFI_CNTR_H

#include "provider/domain.h"
#include "provider/wait.h"

struct wfi_cntr {
	struct fid_cntr cntr;
	struct wfi_domain *domain;
	unsigned int refs; /**< endpoints */
	enum fi_wait_obj wait_obj;
	struct wfi_wait wait;
	uint64_t value, errors;
};

int wfi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		  void *context);

/** One more operation has ended. Locked. */
static inline void wfi_cntr_count(struct wfi_cntr *cntr, bool error)
{
	if (error)
		cntr->errors++;
	else
		cntr->value++;
	if (cntr->wait.armed)
		wfi_wait_signal(&cntr->wait);
}

/** Locked, for fi_trywait(). @return 0 or a negative error */
int wfi_cntr_trywait(struct wfi_cntr *cntr);

#endif /* WFI_CNTR_H */
