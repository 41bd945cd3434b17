/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/eq.h
 * Event queues. The provider reports events of address vectors; endpoints have none.
 */
#ifndef WFI_EQ_H
#define WFI_EQ_H

#include <sys/queue.h>

#include "provider/process.h"
#include "provider/provider.h"

struct wfi_event;

struct wfi_eq {
	struct fid_eq eq;
	unsigned int refs;       /**< of address vectors and endpoints */
	unsigned int generation; /**< generation of the process: domain.h */
	enum fi_wait_obj wait_obj;
	struct wfi_wait wait;
	STAILQ_HEAD(, wfi_event) events;
};

int wfi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		void *context);

/** Locked. Without memory the event is lost, and a warning is logged. */
void wfi_eq_report(struct wfi_eq *eq, uint32_t event, fid_t fid, void *context, uint64_t data);
void wfi_eq_report_error(struct wfi_eq *eq, fid_t fid, void *context, uint64_t data, int error);

/** Locked, for fi_trywait(). @return 0, or -FI_EAGAIN: the queue is not empty */
int wfi_eq_trywait(struct wfi_eq *eq);

#endif /* WFI_EQ_H */
