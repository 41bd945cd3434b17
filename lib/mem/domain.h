/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/domain.h
 * The domains of a registration: its state in lane drivers, the cost of making it, and the backoff
 * when registrable memory is exhausted. The context's lock is held, unless a function has another
 * rule.
 */
#ifndef WEFT_MEM_DOMAIN_H
#define WEFT_MEM_DOMAIN_H

#include "core/context.h"

/**
 * Registers @p mem with the domains of all open interfaces.
 * @param partial  lanes that can copy may lack it; on the fly at least one lane must have it
 * @return 0, or the error of a domain that must not lack it: others may have been added. A domain
 *   whose table is full (-ENOSPC) may lack memory that the user registers
 */
int weft_mem_domains_add(struct weft_mem *mem, bool partial);

/** Deregisters @p mem with all domains. */
void weft_mem_domains_drop(struct weft_mem *mem);

/**
 * Did registering for one operation fail recently for lack of memory, and would it fail again?
 * @return 0, or the error
 */
int weft_mem_shortage(struct weft_context *ctx, size_t length);

/** Driver state of @p mem for @p iface, or NULL. Needs no lock. */
struct weft_mem_lane *weft_mem_lane_of(const struct weft_mem *mem,
				       const struct weft_lane_iface *iface);

/**
 * The cost of registering in the domain of @p iface: measured (an average over the last
 * registrations of this context), else the driver's figures. Takes the context's lock.
 * @param[out] cost    s
 * @param[out] growth  s/byte
 * @return true = measured
 */
bool weft_mem_cost(struct weft_context *ctx, const struct weft_lane_iface *iface, double *cost,
		   double *growth);

/** Free the list of domains. No iface of the context is open any more. */
void weft_mem_domains_free(struct weft_context *ctx);

/** A new iface of a worker: all registrations are made with its domain, too. */
void weft_mem_iface_opened(struct weft_context *ctx, struct weft_lane_iface *iface);

/**
 * The iface is about to close; it is still open. Its registrations move to another iface of the
 * domain, or end.
 */
void weft_mem_iface_closing(struct weft_context *ctx, struct weft_lane_iface *iface);

#endif /* WEFT_MEM_DOMAIN_H */
