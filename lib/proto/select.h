/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file proto/select.h
 * The engine: protocols with their times in, arrays {max size, protocol} out. Pure: a model in, the
 * choice out; live endpoints and profile files use the same code.
 */
#ifndef WEFT_PROTO_SELECT_H
#define WEFT_PROTO_SELECT_H

#include "proto/proto.h"
#include "proto/threshold.h"

/** Lanes that eager messages and rendezvous data may use, and the threshold between them. */
struct weft_proto_bounds {
	uint32_t eager, rndv;      /**< lane sets of the closed form */
	bool rma;                  /**< rendezvous by remote access */
	struct weft_thresh thresh; /**< closed form, even if a threshold is configured */
	size_t rndv_from;          /**< eager below, rendezvous from here on; 0 with by_model */
	size_t zcopy_from;         /**< as configured; SIZE_MAX = never; 0 with by_model */
	bool by_model, zcopy_by_model;
};

/**
 * Choose the protocols for a key.
 * @param why  gets the reason when there is no protocol for some sizes: which lanes are missing;
 *   may be NULL
 * @return 0; -ENOTSUP when no protocol implements the operation for this buffer type, -EHOSTUNREACH
 * when lanes are missing for some sizes; then sel->num is 1 and its protocol NULL
 */
int weft_proto_choose(const struct weft_model *m, const struct weft_proto_key *key,
		      struct weft_proto_select *sel, char *why, size_t why_len);

/** Does the protocol implement this operation with such a buffer? */
static inline bool weft_proto_implements(const struct weft_proto *p,
					 const struct weft_proto_key *key)
{
	return (p->ops & WEFT_OP_BIT(key->op)) && (p->classes >> weft_buf_class(key->buf) & 1) &&
	       !(p->needs & key->lacks);
}

/** The longest eager message in one fragment, for weft_proto_bounds(). */
size_t weft_proto_single(const struct weft_model *m, const struct weft_proto_key *key);

/**
 * Time and range of one protocol for a key. @return 0, or a negative error with the reason in
 * cv->why
 */
int weft_proto_curve(const struct weft_model *m, const struct weft_proto_key *key,
		     const struct weft_proto *proto, struct weft_curve *cv);

/** The bounds for a key; @p single is the longest eager message in one fragment. */
void weft_proto_bounds(const struct weft_model *m, const struct weft_proto_key *key, size_t single,
		       struct weft_proto_bounds *b);

#endif /* WEFT_PROTO_SELECT_H */
