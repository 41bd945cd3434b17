/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/cc_sample.h
 * What the delay algorithm takes from one acknowledgement: a round trip, and bytes at a time.
 */
#ifndef WEFT_CC_SAMPLE_H
#define WEFT_CC_SAMPLE_H

#include "engine/cc.h"

/** Adds the round trip of @p a, which is not 0, to the round; updates the least round trips. */
void weft_cc_sample(struct weft_cc *cc, const struct weft_cc_ack *a);

/** Counts the bytes of @p a. Updates the least time of a full frame (`frame_ns`). */
void weft_cc_meter(struct weft_cc *cc, const struct weft_cc_ack *a);

#endif /* WEFT_CC_SAMPLE_H */
