/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/amo.h
 * Atomics on typed elements: the operations of each type, and their effect on one element.
 */
#ifndef WEFT_CORE_AMO_H
#define WEFT_CORE_AMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft.h"

/** Bytes of an element; 0 = there is no such type. @param type  enum weft_atomic_type */
size_t weft_amo_width(unsigned int type);
/** Does the type support the operation? @param op  enum weft_atomic_op */
bool weft_amo_known(unsigned int op, unsigned int type);
/** Does the operation need compares? */
bool weft_amo_compares(unsigned int op);
/** Arrays that the operation needs: operands, compares. */
static inline size_t weft_amo_arrays(unsigned int op)
{
	return (op == WEFT_ATOMIC_READ ? 0u : 1u) + (weft_amo_compares(op) ? 1u : 0u);
}
/**
 * Apply the operation to one element, atomically. All arguments are in host order; operands need no
 * alignment.
 * @param word  naturally aligned
 * @param old   gets the old value
 */
void weft_amo_do(unsigned int op, unsigned int type, void *word, const void *operand,
		 const void *compare, void *old);

#endif /* WEFT_CORE_AMO_H */
