/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/domain.h
 * Domains, and their memory regions. In a child of fork() each domain that was open before the
 * fork belongs to the parent.
 */
#ifndef WFI_DOMAIN_H
#define WFI_DOMAIN_H

#include <stdbool.h>
#include <sys/queue.h>

#include "provider/process.h"
#include "provider/provider.h"
#include "weft.h"

/* ------------------------------------------------------------------ memory regions */

struct wfi_cntr;
struct wfi_domain;

/** A memory region. The descriptor for sends and receives is the region itself. */
struct wfi_mr {
	struct fid_mr mr;
	struct wfi_domain *domain;
	struct weft_mem *mem;
	uint64_t key;            /**< Weft's key of the region */
	struct wfi_cntr *writes; /**< FI_RMA_EVENT: peers' writes and atomics; NULL: not counted */
	LIST_ENTRY(wfi_mr) counted; /**< in the list of regions with such a counter */
};

/** The registration of a descriptor; NULL for none. */
static inline struct weft_mem *wfi_mr_mem(void *desc)
{
	return desc ? ((struct wfi_mr *)desc)->mem : NULL;
}

extern struct fi_ops_mr wfi_mr_ops;

/**
 * Weft's key for a key that the application has chosen. Each domain may have the same keys, so the
 * domain's number is an input. Weft has no key 0: of the keys of a domain, two have the same result
 * (UINT64_MAX), and all others have results of their own.
 */
uint64_t wfi_mr_key(uint8_t domain, uint64_t key);

/** A peer has changed the region with Weft's @p key: its counter, if any, counts it. Locked. */
void wfi_mr_written(uint64_t key);

/** In a child of fork(): forget all regions, and the numbers of domains. */
void wfi_mrs_forked(void);

/* ------------------------------------------------------------------ domains */

/** A domain: a group of objects of an application. All domains share the process's worker. */
struct wfi_domain {
	struct fid_domain domain;
	unsigned int refs;       /**< number of its objects */
	enum wfi_thread thread;  /**< what it uses the progress thread for */
	unsigned int generation; /**< generation of the process that opened it */
	uint32_t api_version;    /**< version that the application has requested */
	bool app_keys;           /**< the application chooses keys of regions */
	uint8_t number;          /**< with app_keys: number of the domain, in its addresses */
	enum fi_av_type av_type;
};

/**
 * Give the domain a number, if the application chooses keys. Locked. @return 0, or -FI_EMFILE: all
 * 256 numbers are in use
 */
int wfi_domain_number_take(struct wfi_domain *domain);
/** Free the domain's number, if it has one. Locked. */
void wfi_domain_number_put(const struct wfi_domain *domain);

/** Was the domain opened before the fork() that made this process, so by one of its ancestors? */
static inline bool wfi_domain_is_parents(const struct wfi_domain *domain)
{
	return domain->generation != wfi.generation;
}

#endif /* WFI_DOMAIN_H */
