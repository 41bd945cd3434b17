/* SPDX-License-Identifier: BSD-3-Clause */

#include "seal/replay.h"

#include <string.h>

static uint64_t *word_of(struct weft_replay *r, uint64_t number)
{
	return &r->seen[number / 64 % (WEFT_REPLAY_NUMBERS / 64)];
}

/* Numbers from r->end on enter the window; their bits are those of numbers that leave it. */
static void advance(struct weft_replay *r, uint64_t end)
{
	uint64_t mask;
	unsigned int bit, num;

	if (end - r->end >= WEFT_REPLAY_NUMBERS) {
		memset(r->seen, 0, sizeof(r->seen));
		r->end = end;
		return;
	}
	while (r->end < end) {
		bit = r->end % 64;
		num = end - r->end < 64 - bit ? (unsigned int)(end - r->end) : 64 - bit;
		mask = num == 64 ? ~0ull : ((1ull << num) - 1) << bit;
		*word_of(r, r->end) &= ~mask;
		r->end += num;
	}
}

enum weft_replay_verdict weft_replay_enter(struct weft_replay *r, uint64_t number)
{
	uint64_t bit = 1ull << number % 64;

	if (number >= r->end)
		advance(r, number + 1);
	else if (r->end - number > WEFT_REPLAY_NUMBERS)
		return WEFT_REPLAY_OLD;
	else if (*word_of(r, number) & bit)
		return WEFT_REPLAY_SEEN;
	*word_of(r, number) |= bit;
	return WEFT_REPLAY_FRESH;
}
