/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/domain.h
 * The domains of a registration: the state that lane drivers keep of it, what making it costs, and
 * what is done when memory that can be registered runs out. For mem/mem.c; the context's lock is
 * held.
 */
#ifndef WEFT_MEM_DOMAIN_H
#define WEFT_MEM_DOMAIN_H

#include "core/mem.h"

/**
 * Registers @p mem with the domains of all open interfaces.
 * @param partial  lanes that can copy may do without; on the fly it must be of use to one lane at
 *                 least
 * @return 0, or the error of a domain that may not be missing: others may have been added
 */
int weft_mem_domains_add(struct weft_mem *mem, bool partial);

/** No domain has it any more. */
void weft_mem_domains_drop(struct weft_mem *mem);

/**
 * Would registering for one operation be refused as it was a moment ago?
 * @return 0, or the error
 */
int weft_mem_shortage(struct weft_context *ctx, size_t length);

#endif /* WEFT_MEM_DOMAIN_H */
