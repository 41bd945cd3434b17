/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/path_trial.h
 * Would more paths help? Equal frames leave at the same time over a path in use and over a spare
 * one, and their round trips are compared: where a queue, or a limit, is one flow's own, the spare
 * path is faster or loses less; where all share it, as on one switch, it is not. Pure.
 */
#ifndef WEFT_PATH_TRIAL_H
#define WEFT_PATH_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_TRIAL_PAIRS 8u /**< that wait for their answers */

struct weft_trial_pair {
	uint32_t used, spare; /**< ns; 0 = no answer yet */
	uint16_t id;          /**< of the used path's question; the spare path's is the next */
	uint8_t used_path, spare_path;
	bool open;     /**< not evaluated yet */
	uint64_t sent; /**< of the clock that round trips are measured by */
};

struct weft_path_trial {
	uint16_t rounds; /**< pairs that were compared */
	uint16_t wins;   /**< of those the spare path was clearly better in */
	uint16_t losses; /**< and clearly worse */
	uint16_t sent;   /**< pairs that left */
	struct weft_trial_pair pair[WEFT_TRIAL_PAIRS];
};

enum weft_trial_result {
	WEFT_TRIAL_ON,   /**< not known yet */
	WEFT_TRIAL_MORE, /**< more paths help */
	WEFT_TRIAL_ENDS, /**< they do not */
};

/** A pair is about to leave: the oldest one is over, whatever has come of it. */
struct weft_trial_pair *weft_trial_send(struct weft_path_trial *t, uint64_t now, uint16_t id,
					uint8_t used_path, uint8_t spare_path);
/** An answer. @return false: to no question of the trial's */
bool weft_trial_answer(struct weft_path_trial *t, uint16_t id, uint8_t path, uint64_t now);
enum weft_trial_result weft_trial_result(const struct weft_path_trial *t);

#endif /* WEFT_PATH_TRIAL_H */
