/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One element at a time, by compare-and-swap on its bits. So floating-point operations, too, are
 * atomic among all operations of this file on the element, and among CPU atomics of its width.
 */

#include "core/amo.h"

#include <string.h>

static const uint8_t widths[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};

size_t weft_amo_width(unsigned int type)
{
	return type < sizeof(widths) ? widths[type] : 0;
}

bool weft_amo_compares(unsigned int op)
{
	return op == WEFT_ATOMIC_CSWAP || (op >= WEFT_ATOMIC_CSWAP_NE && op <= WEFT_ATOMIC_MSWAP);
}

bool weft_amo_known(unsigned int op, unsigned int type)
{
	const bool bits = op == WEFT_ATOMIC_AND || op == WEFT_ATOMIC_OR || op == WEFT_ATOMIC_XOR ||
			  op == WEFT_ATOMIC_MSWAP;

	if (op > WEFT_ATOMIC_MSWAP || weft_amo_width(type) == 0)
		return false;
	return !(bits && type >= WEFT_ATOMIC_FLOAT);
}

/* Operations that are the same for all types; a sum or product of integers wraps. */
#define CASES(type, wide)                            \
	case WEFT_ATOMIC_ADD:                        \
		return (type)((wide)v + (wide)a);    \
	case WEFT_ATOMIC_PROD:                       \
		return (type)((wide)v * (wide)a);    \
	case WEFT_ATOMIC_MIN:                        \
		return a < v ? a : v;                \
	case WEFT_ATOMIC_MAX:                        \
		return a > v ? a : v;                \
	case WEFT_ATOMIC_LAND:                       \
		return (type)(v != 0 && a != 0);     \
	case WEFT_ATOMIC_LOR:                        \
		return (type)(v != 0 || a != 0);     \
	case WEFT_ATOMIC_LXOR:                       \
		return (type)((v != 0) != (a != 0)); \
	case WEFT_ATOMIC_READ:                       \
		return v;                            \
	case WEFT_ATOMIC_CSWAP_NE:                   \
		return c < v || c > v ? a : v;       \
	case WEFT_ATOMIC_CSWAP_LE:                   \
		return c <= v ? a : v;               \
	case WEFT_ATOMIC_CSWAP_LT:                   \
		return c < v ? a : v;                \
	case WEFT_ATOMIC_CSWAP_GE:                   \
		return c >= v ? a : v;               \
	case WEFT_ATOMIC_CSWAP_GT:                   \
		return c > v ? a : v

#define INTEGER(name, type)                                       \
	static type name(unsigned int op, type v, type a, type c) \
	{                                                         \
		switch (op) {                                     \
			CASES(type, uint64_t);                    \
		case WEFT_ATOMIC_AND:                             \
			return (type)(v & a);                     \
		case WEFT_ATOMIC_OR:                              \
			return (type)(v | a);                     \
		case WEFT_ATOMIC_XOR:                             \
			return (type)(v ^ a);                     \
		case WEFT_ATOMIC_MSWAP:                           \
			return (type)((a & c) | (v & (type)~c));  \
		case WEFT_ATOMIC_CSWAP:                           \
			return v == c ? a : v;                    \
		default: /* SWAP */                               \
			return a;                                 \
		}                                                 \
	}

#define FLOATING(name, type)                                           \
	static type name(unsigned int op, type v, type a, type c)      \
	{                                                              \
		switch (op) {                                          \
			CASES(type, type);                             \
		case WEFT_ATOMIC_CSWAP: /* by bits, as CPUs do it */   \
			return memcmp(&v, &c, sizeof(v)) == 0 ? a : v; \
		default:                                               \
			return a;                                      \
		}                                                      \
	}

INTEGER(do_int8, int8_t)
INTEGER(do_uint8, uint8_t)
INTEGER(do_int16, int16_t)
INTEGER(do_uint16, uint16_t)
INTEGER(do_int32, int32_t)
INTEGER(do_uint32, uint32_t)
INTEGER(do_int64, int64_t)
INTEGER(do_uint64, uint64_t)
FLOATING(do_float, float)
FLOATING(do_double, double)

/* Sequentially consistent, as the atomics on words are. */
#define ELEMENT(fn, type, bits)                                                             \
	do {                                                                                \
		bits was = __atomic_load_n((bits *)word, __ATOMIC_SEQ_CST), now;            \
		type v, a = 0, c = 0;                                                       \
                                                                                            \
		if (operand)                                                                \
			memcpy(&a, operand, sizeof(a));                                     \
		if (compare)                                                                \
			memcpy(&c, compare, sizeof(c));                                     \
		do {                                                                        \
			memcpy(&v, &was, sizeof(v));                                        \
			v = fn(op, v, a, c);                                                \
			memcpy(&now, &v, sizeof(now));                                      \
		} while (!__atomic_compare_exchange_n((bits *)word, &was, now, false,       \
						      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)); \
		memcpy(old, &was, sizeof(was));                                             \
	} while (0)

void weft_amo_do(unsigned int op, unsigned int type, void *word, const void *operand,
		 const void *compare, void *old)
{
	switch (type) {
	case WEFT_ATOMIC_INT8:
		ELEMENT(do_int8, int8_t, uint8_t);
		break;
	case WEFT_ATOMIC_UINT8:
		ELEMENT(do_uint8, uint8_t, uint8_t);
		break;
	case WEFT_ATOMIC_INT16:
		ELEMENT(do_int16, int16_t, uint16_t);
		break;
	case WEFT_ATOMIC_UINT16:
		ELEMENT(do_uint16, uint16_t, uint16_t);
		break;
	case WEFT_ATOMIC_INT32:
		ELEMENT(do_int32, int32_t, uint32_t);
		break;
	case WEFT_ATOMIC_UINT32:
		ELEMENT(do_uint32, uint32_t, uint32_t);
		break;
	case WEFT_ATOMIC_INT64:
		ELEMENT(do_int64, int64_t, uint64_t);
		break;
	case WEFT_ATOMIC_UINT64:
		ELEMENT(do_uint64, uint64_t, uint64_t);
		break;
	case WEFT_ATOMIC_FLOAT:
		ELEMENT(do_float, float, uint32_t);
		break;
	default:
		ELEMENT(do_double, double, uint64_t);
	}
}
