/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/path_change.h
 * Whether other paths deliver more than those in use. A policer of each flow adds no delay, and
 * drops what exceeds its rate. A pair of frames (engine/rules.h) shows nothing then. So spans of
 * time with few and with more paths take turns, and what is sent in them is compared.
 */
#ifndef WEFT_ENGINE_PATH_CHANGE_H
#define WEFT_ENGINE_PATH_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

/** What a connection has sent in a span of time. */
struct weft_path_span {
	uint64_t ns;
	uint32_t frames; /**< sent for the first time */
	uint32_t again;  /**< retransmitted */
	bool busy;       /**< frames waited or were lost: the network was the limit */
};

/**
 * @param found  a policer was found before
 * @return true: the loss is so frequent that a policer of the flow is likely
 */
bool weft_span_policed(const struct weft_path_span *s, bool found);

struct weft_path_change {
	uint8_t spans;    /**< spans so far: the first one with the present paths, then in turn */
	uint8_t num, den; /**< more paths stay if they send num / den as much */
	bool fewer;       /**< the other paths are fewer */
	bool last;        /**< the second span is the last one */
	double from, to;  /**< best rate of the present paths, worst one of the others */
	struct weft_path_span first;
};

enum weft_change_next {
	WEFT_CHANGE_TURN, /**< the next span has the other paths */
	WEFT_CHANGE_STAY, /**< the other paths stay in use */
	WEFT_CHANGE_BACK, /**< the present paths stay in use */
};

/**
 * @param paths  number of the present paths
 * @param fewer  the other paths are fewer
 * @param found  a policer was found before, so two spans are enough
 */
void weft_change_begin(struct weft_path_change *t, unsigned int paths, bool fewer, bool found);
/** A span has ended. */
enum weft_change_next weft_change_span(struct weft_path_change *t, const struct weft_path_span *s);
/** @return true: the present span of more paths sends less than half, so it ends now */
bool weft_change_hurts(const struct weft_path_change *t, const struct weft_path_span *s);

#endif /* WEFT_ENGINE_PATH_CHANGE_H */
