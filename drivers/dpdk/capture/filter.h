/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/filter.h
 * tcpdump's filter expressions, by libpcap.
 */
#ifndef WEFT_CAPTURE_FILTER_H
#define WEFT_CAPTURE_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include <rte_mbuf.h>

struct weft_capture_filter;

/**
 * This may take long: host names are resolved.
 * @param[out] out  NULL for an empty expression: all frames match
 * @return 0, or a negative errno with a sentence
 */
int weft_capture_filter_make(const char *expression, struct weft_capture_filter **out, char *why,
			     size_t why_len);
/** Take another reference, to be freed as well. NULL is allowed. */
struct weft_capture_filter *weft_capture_filter_share(struct weft_capture_filter *f);
void weft_capture_filter_free(struct weft_capture_filter *f);
/** Does the frame match? Of a chained frame the first 2048 bytes are checked. */
bool weft_capture_filter_takes(const struct weft_capture_filter *f, const struct rte_mbuf *m);

#endif /* WEFT_CAPTURE_FILTER_H */
