/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/path_trial.h"

#define NOISE_NS 4000u /* by which two round trips may differ, plus a quarter */
#define WINS 12u       /* clear results that are required */
#define CLEAR 6u       /* required ratio of wins to losses */
#define ROUNDS_MIN 16u
#define ROUNDS_MAX 64u

static bool is_better(uint32_t a, uint32_t than)
{
	return a != 0 && (than == 0 || (uint64_t)a + a / 4 + NOISE_NS < than);
}

static void compare_pair(struct weft_path_trial *t, struct weft_trial_pair *p)
{
	if (!p->open)
		return;
	p->open = false;
	t->rounds++;
	t->wins += is_better(p->spare, p->used);
	t->losses += is_better(p->used, p->spare);
}

struct weft_trial_pair *weft_trial_send(struct weft_path_trial *t, uint64_t now, uint16_t id,
					uint8_t used_path, uint8_t spare_path)
{
	struct weft_trial_pair *p = &t->pair[t->sent++ % WEFT_TRIAL_PAIRS];

	compare_pair(t, p);
	*p = (struct weft_trial_pair){
		.id = id,
		.used_path = used_path,
		.spare_path = spare_path,
		.open = true,
		.sent = now,
	};
	return p;
}

bool weft_trial_answer(struct weft_path_trial *t, uint16_t id, uint8_t path, uint64_t now)
{
	for (unsigned int i = 0; i < WEFT_TRIAL_PAIRS; i++) {
		struct weft_trial_pair *p = &t->pair[i];
		uint64_t rtt = now - p->sent;
		uint32_t ns = rtt == 0 ? 1 : rtt < UINT32_MAX ? (uint32_t)rtt : UINT32_MAX;

		if (!p->open)
			continue;
		if (id == p->id && path == p->used_path)
			p->used = ns;
		else if (id == (uint16_t)(p->id + 1) && path == p->spare_path)
			p->spare = ns;
		else
			continue;
		if (p->used != 0 && p->spare != 0)
			compare_pair(t, p);
		return true;
	}
	return false;
}

enum weft_trial_result weft_trial_result(const struct weft_path_trial *t)
{
	if (t->wins >= WINS && t->wins >= CLEAR * t->losses)
		return WEFT_TRIAL_MORE;
	/* The trial cannot succeed any more, or hardly. */
	if (t->rounds >= ROUNDS_MAX || (t->rounds >= ROUNDS_MIN && t->wins < t->rounds / 3) ||
	    CLEAR * t->losses > ROUNDS_MAX)
		return WEFT_TRIAL_ENDS;
	return WEFT_TRIAL_ON;
}
