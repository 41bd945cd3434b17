/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file weft_plan.h
 * Plans: which protocol is used for which size over some lanes, and why. They serve tools such as
 * weft-info and tests of a configuration; no program needs them to communicate.
 */
#ifndef WEFT_PUBLIC_PLAN_H
#define WEFT_PUBLIC_PLAN_H

#include <stddef.h>
#include <stdio.h>

#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A plan: which protocol would be used for which size over some lanes, and why. The lanes are those
 * of an endpoint, or of a profile file. A profile file needs no hardware, no EAL and no rights. A
 * plan is a copy: the caller owns it, any thread may use it, and later changes of the endpoint do
 * not change it.
 */
struct weft_plan;

/**
 * Read a profile, an INI file: sections `[lane NAME]` and `[model]`; weft-info(1) describes the
 * keys.
 * @param config  settings that the file lacks; NULL = as weft_config_read() reads them
 * @param in      the file, read to its end
 * @param name    name of the file, for error messages
 * @param why     gets an error message, with the line if one is at fault
 * @return 0; -EINVAL: the file is malformed, or the settings are; -EIO; -ENOMEM
 */
WEFT_API int weft_plan_read(const struct weft_config *config, FILE *in, const char *name,
			    struct weft_plan **plan, char *why, size_t why_len);
/** The plan that an endpoint follows now. Thread of its worker. @return 0, -ENOTCONN, -ENOMEM */
WEFT_API int weft_plan_of_ep(struct weft_ep *ep, struct weft_plan **plan);
/** Free a plan. NULL is allowed. */
WEFT_API void weft_plan_destroy(struct weft_plan *plan);

enum weft_plan_format {
	WEFT_PLAN_TABLE = 0, /**< boxes, with the lanes and the threshold below */
	WEFT_PLAN_CSV =
		1, /**< min,max,protocol,lanes,shares,version; then lines threshold.NAME=VALUE */
	WEFT_PLAN_TEXT = 2, /**< a sentence for each range of sizes, then lanes and threshold */
};

/**
 * Print which protocol and which lanes carry which sizes.
 * @return 0; -EOPNOTSUPP, with the reason in @p out: there is no protocol for the operation, or
 *   lanes are missing; -EINVAL
 */
WEFT_API int weft_plan_print(const struct weft_plan *plan, FILE *out, enum weft_op op,
			     enum weft_plan_format format);
/**
 * Print for every protocol of the operation how long @p length bytes take, term by term.
 * @return as weft_plan_print(); -EOPNOTSUPP also if no protocol carries @p length bytes
 */
WEFT_API int weft_plan_explain(const struct weft_plan *plan, FILE *out, enum weft_op op,
			       size_t length);

/**
 * Describe protocol number @p index of those for an operation, for @p length contiguous bytes (put
 * and get: registered ones). The numbers have no particular order.
 * @return 0, also for those that cannot carry the size (`usable`); -ENOENT past the last one;
 *   -EINVAL
 */
WEFT_API int weft_plan_query(const struct weft_plan *plan, enum weft_op op, size_t length,
			     unsigned int index, struct weft_proto_info *info);

/** @return the operation by name ("tag_send"; "fadd", "cswap" = WEFT_OP_AMO_FETCH), or -EINVAL */
WEFT_API int weft_op_find(const char *name);
/** @return the name of an operation, static storage; NULL = there is no such operation */
WEFT_API const char *weft_op_name(enum weft_op op);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_PUBLIC_PLAN_H */
