/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/learn.h
 * A peer of which only the boot address is known: the address that follows from it, and the request
 * for the whole address.
 */
#ifndef WEFT_LEARN_H
#define WEFT_LEARN_H

#include "core/address.h"
#include "wireup/wireup.h"

/** Make the part of an address that follows from a boot address. @return 0, or -EINVAL: damaged */
int weft_learn_address(struct weft_worker *w, const struct weft_boot *b, struct weft_address *a);
/** Reply to a request for our address, WEFT_WIREUP_WHO. */
void weft_learn_answer(struct weft_worker *w, struct weft_lane_ep *lane_ep,
		       const struct weft_wireup_msg *m);
void weft_learn_answered(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			 const struct weft_wireup_msg *m);
/** The peer's whole address is @p remote. */
void weft_learn_from(struct weft_ep *ep, const struct weft_address *remote);

#endif /* WEFT_LEARN_H */
