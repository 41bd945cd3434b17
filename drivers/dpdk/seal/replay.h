/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file seal/replay.h
 * The replay window of one slot: which of the newest 4096 frame numbers have arrived. Frames of a
 * slot take one path, so few are reordered. A frame older than the window counts as lost, and its
 * data is sent again under another number.
 */
#ifndef WEFT_SEAL_REPLAY_H
#define WEFT_SEAL_REPLAY_H

#include <stdint.h>

#define WEFT_REPLAY_NUMBERS 4096u

/** Zero-initialised. */
struct weft_replay {
	uint64_t end; /**< highest number accepted + 1 */
	uint64_t
		seen[WEFT_REPLAY_NUMBERS / 64]; /**< a ring of bits, of the numbers before @p end */
};

enum weft_replay_verdict {
	WEFT_REPLAY_FRESH,
	WEFT_REPLAY_SEEN,
	WEFT_REPLAY_OLD, /**< before the window */
};

/** Enter @p number, which is authentic: only after the tag was verified. */
enum weft_replay_verdict weft_replay_enter(struct weft_replay *r, uint64_t number);

#endif /* WEFT_SEAL_REPLAY_H */
