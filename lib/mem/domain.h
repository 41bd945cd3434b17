/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/domain.h
 * The domains of a registration: its state in lane drivers, the cost of making it, and the backoff
 * when registrable memory is exhausted. For mem/mem.c; the context's lock is held.
 */
#ifndef WEFT_MEM_DOMAIN_H
#define WEFT_MEM_DOMAIN_H

#include "core/mem.h"

/**
 * Registers @p mem with the domains of all open interfaces.
 * @param partial  lanes that can copy may lack it; on the fly at least one lane must have it
 * @return 0, or the error of a domain that must not lack it: others may have been added
 */
int weft_mem_domains_add(struct weft_mem *mem, bool partial);

/** Deregisters @p mem with all domains. */
void weft_mem_domains_drop(struct weft_mem *mem);

/**
 * Did registering for one operation fail recently for lack of memory, and would it fail again?
 * @return 0, or the error
 */
int weft_mem_shortage(struct weft_context *ctx, size_t length);

#endif /* WEFT_MEM_DOMAIN_H */
