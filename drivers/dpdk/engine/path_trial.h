/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/path_trial.h
 * Would more paths help? Equal frames leave at the same time over a path in use and over a spare
 * one, and their round trips are compared. If a queue or a limit applies to a single flow, the
 * spare path is faster or loses less. If all flows share it, as on one switch, it is not. Pure.
 */
#ifndef WEFT_PATH_TRIAL_H
#define WEFT_PATH_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_TRIAL_PAIRS 8u /**< pairs without an answer */

struct weft_trial_pair {
	uint32_t used, spare; /**< ns; 0 = no answer yet */
	uint16_t id;          /**< of the used path's probe; the spare path's is the next */
	uint8_t used_path, spare_path;
	bool open;     /**< not evaluated yet */
	uint64_t sent; /**< by the clock that measures round trips */
};

struct weft_path_trial {
	uint16_t rounds; /**< pairs that were compared */
	uint16_t wins;   /**< pairs in which the spare path was clearly better */
	uint16_t losses; /**< pairs in which it was clearly worse */
	uint16_t sent;   /**< pairs that left */
	struct weft_trial_pair pair[WEFT_TRIAL_PAIRS];
};

enum weft_trial_result {
	WEFT_TRIAL_ON,   /**< undecided */
	WEFT_TRIAL_MORE, /**< more paths help */
	WEFT_TRIAL_ENDS, /**< they do not */
};

/** A pair is about to leave: the oldest one is evaluated as it is. */
struct weft_trial_pair *weft_trial_send(struct weft_path_trial *t, uint64_t now, uint16_t id,
					uint8_t used_path, uint8_t spare_path);
/** Process an answer. @return false: it belongs to no probe of the trial */
bool weft_trial_answer(struct weft_path_trial *t, uint16_t id, uint8_t path, uint64_t now);
enum weft_trial_result weft_trial_result(const struct weft_path_trial *t);

#endif /* WEFT_PATH_TRIAL_H */
