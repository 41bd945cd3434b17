/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/amo.h
 * Atomics on typed elements: which there are, and what one does to an element.
 */
#ifndef WEFT_CORE_AMO_H
#define WEFT_CORE_AMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of an element; 0 = there is no such type. @param type  enum weft_atomic_type */
size_t weft_amo_width(unsigned int type);
/** Has the type the operation? @param op  enum weft_atomic_op */
bool weft_amo_known(unsigned int op, unsigned int type);
/** Does it need compares? */
bool weft_amo_compares(unsigned int op);
/** Arrays that go with it: operands, compares. */
static inline size_t weft_amo_arrays(unsigned int op)
{
	return (op == 12 ? 0u : 1u) + (weft_amo_compares(op) ? 1u : 0u);
}
/**
 * Do it to one element, atomically; all arguments in host order, operands anywhere.
 * @param word  naturally aligned
 * @param old   gets the value of before
 */
void weft_amo_do(unsigned int op, unsigned int type, void *word, const void *operand,
		 const void *compare, void *old);

#endif /* WEFT_CORE_AMO_H */
