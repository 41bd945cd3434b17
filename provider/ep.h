/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ep.h
 * Endpoints.
 */
#ifndef WFI_EP_H
#define WFI_EP_H

#include <sys/queue.h>

#include "provider/av.h"
#include "provider/completion.h"
#include "provider/domain.h"

struct wfi_claim;
struct wfi_op;

/** One direction of an endpoint. */
struct wfi_half {
	struct wfi_cq *cq;
	bool selective;    /**< only operations that request it are reported */
	uint64_t op_flags; /**< default flags of calls without flags */
};

struct wfi_ep {
	struct fid_ep ep;
	struct wfi_domain *domain;
	struct wfi_av *av;
	struct wfi_eq *eq;
	struct wfi_half tx, rx;
	struct wfi_cntr *sends, *receives, *reads, *writes;
	uint64_t caps;
	uint16_t number;
	bool enabled;
	bool directed; /**< FI_DIRECTED_RECV */
	bool source;   /**< FI_SOURCE */
	bool ordered;  /**< a fence before each read, write and atomic (WFI_ORDER_FENCED) */
	size_t inject_size;
	size_t min_multi_recv;
	STAILQ_HEAD(, wfi_op) multi;   /**< buffers for several messages; the first one receives */
	LIST_HEAD(, wfi_claim) claims; /**< messages reserved by FI_CLAIM */
};

int wfi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);

/** The enabled endpoint with this number. Locked. @return NULL: there is none */
struct wfi_ep *wfi_ep_find(unsigned int number);

/** In a child of fork(): there are no endpoints. */
void wfi_eps_forked(void);

static inline struct wfi_ep *wfi_ep_of(struct fid_ep *ep)
{
	return container_of(ep, struct wfi_ep, ep);
}

#endif /* WFI_EP_H */
