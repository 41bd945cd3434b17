/* SPDX-License-Identifier: BSD-3-Clause */

/* Rules for several paths: which delivers soonest, and whether more would help. */

#include "engine/path_rules.h"

/* A path that was never measured counts as the best one. */
static uint32_t least_srtt(const struct weft_path_load *load, uint16_t mask)
{
	uint32_t least = 0;

	for (unsigned int k = 0; k < WEFT_PATHS_MAX; k++)
		if (mask & 1u << k && load[k].srtt != 0 && (least == 0 || load[k].srtt < least))
			least = load[k].srtt;
	return least != 0 ? least : 1;
}

unsigned int weft_path_soonest(const struct weft_path_load load[WEFT_PATHS_MAX], uint16_t mask,
			       unsigned int after, uint32_t bytes)
{
	uint32_t least = least_srtt(load, mask);
	uint64_t best = UINT64_MAX, cost;
	unsigned int found = after;

	for (unsigned int i = 1; i <= WEFT_PATHS_MAX; i++) {
		unsigned int k = (after + i) % WEFT_PATHS_MAX;

		if (!(mask & 1u << k))
			continue;
		cost = (load[k].srtt != 0 ? load[k].srtt : least);
		cost *= (uint64_t)load[k].inflight + bytes;
		/* A full path is taken only when all are full. */
		if (load[k].full)
			cost = cost / 2 + UINT64_MAX / 2;
		if (cost < best) {
			best = cost;
			found = k;
		}
	}
	return found;
}

/* ---------------------------------------------------------------- trials */

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
