/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/path_rules.h
 * The rules by which a connection with several paths chooses: the path that delivers soonest, the
 * paths that have stopped delivering, and whether more paths would help. doc/raw-lanes.md has the
 * reasons. Pure: times are passed in.
 */
#ifndef WEFT_PATH_RULES_H
#define WEFT_PATH_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/loss_rules.h"

#define WEFT_PATHS_MAX 16u
/** The maximum number of paths of a connection whose number of paths is not configured. */
#define RAW_PATHS_AUTO 8u
#define WEFT_PATH_STRIKES 3u /**< frames in a row that did not arrive: the path is bad */
/** ns until a bad path is probed for the first time */
#define WEFT_PATH_PROBE_WAIT_MIN 2000000ull
#define WEFT_PATH_PROBE_WAIT_MAX 1000000000ull /**< ns between two probes */

/** The state of a path that the choice depends on. */
struct weft_path_load {
	uint32_t srtt;     /**< ns; 0 = unknown */
	uint32_t inflight; /**< bytes */
	bool full;         /**< its window has no room */
};

/**
 * @return the path of @p mask that delivers a frame of @p bytes soonest. Both a long round trip, by
 * distance or by other traffic, and bytes in flight count against a path.
 * @param after  of equal paths the next one behind it is taken, in rotation
 */
unsigned int weft_path_soonest(const struct weft_path_load load[WEFT_PATHS_MAX], uint16_t mask,
			       unsigned int after, uint32_t bytes);

/** @return the next path of @p mask behind @p path; @p path itself if there is no other */
static inline unsigned int weft_path_other(uint16_t mask, unsigned int path)
{
	for (unsigned int i = 1; i < WEFT_PATHS_MAX; i++) {
		unsigned int k = (path + i) % WEFT_PATHS_MAX;

		if (mask & 1u << k)
			return k;
	}
	return path;
}

enum weft_path_verdict {
	WEFT_PATH_WAIT, /**< it may still arrive */
	/** the frame is lost; frames of other paths may have been lost at that time, too */
	WEFT_PATH_LATE,
	/** lost, and another path has delivered a frame of that time: a strike */
	WEFT_PATH_SILENT,
};

/**
 * A frame left over a path at @p sent and is not acknowledged. The newest frame of the same path
 * that arrived left at @p proved, the newest one of any other path at @p other. @p r: of the path.
 */
static inline enum weft_path_verdict weft_path_judge(const struct weft_rtt *r, uint64_t sent,
						     uint64_t proved, uint64_t other)
{
	uint64_t rto = weft_rtt_rto(r, 0);

	if (sent <= proved || other <= sent || other - sent < rto)
		return WEFT_PATH_WAIT;
	return other - sent < 3 * rto ? WEFT_PATH_SILENT : WEFT_PATH_LATE;
}

/** @return ns that a path is not probed after @p tries probes without an answer */
static inline uint64_t weft_path_wait(unsigned int tries)
{
	uint64_t wait = WEFT_PATH_PROBE_WAIT_MIN << (tries < 16 ? tries : 16);

	return wait < WEFT_PATH_PROBE_WAIT_MAX ? wait : WEFT_PATH_PROBE_WAIT_MAX;
}

/* ---------------------------------------------------------------- trials */

/*
 * Would more paths help? Equal frames leave at the same time over a path in use and over a spare
 * one, and their round trips are compared. If a queue or a limit applies to a single flow, the
 * spare path is faster or loses less. If all flows share it, as on one switch, it is not.
 */

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

#endif /* WEFT_PATH_RULES_H */
