/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/share.h"

/* Start a new span in which the peer must deliver. */
static void judge_anew(struct weft_share *s, struct weft_share_user *u, uint64_t now)
{
	u->due = u->out / 4 + 1;
	u->since = now;
	u->came = s->came;
	if (u->listed)
		TAILQ_REMOVE(&s->users, u, link);
	TAILQ_INSERT_TAIL(&s->users, u, link);
	u->listed = true;
}

static void unlist(struct weft_share *s, struct weft_share_user *u)
{
	if (u->listed)
		TAILQ_REMOVE(&s->users, u, link);
	u->listed = false;
}

static bool is_late(const struct weft_share *s, const struct weft_share_user *u, uint64_t now)
{
	uint64_t came = s->came - u->came;

	if (now - u->since < WEFT_SHARE_STALL)
		return false;
	/* If no other peer delivers, the load of other peers is not the reason for the delay. */
	return came == 0 || came >= s->used || now - u->since >= WEFT_SHARE_STALL_MAX;
}

bool weft_share_free(struct weft_share *s, uint64_t now)
{
	struct weft_share_user *u;

	while (s->used >= s->limit && (u = TAILQ_FIRST(&s->users)) && is_late(s, u, now)) {
		unlist(s, u);
		u->stalled = true;
		s->used -= u->out;
		s->stalled += u->out;
		s->stalls++;
	}
	return s->used < s->limit;
}

bool weft_share_room(struct weft_share *s, const struct weft_share_user *u, uint64_t now)
{
	return u->out == 0 || (weft_share_free(s, now) && !u->stalled);
}

void weft_share_take(struct weft_share *s, struct weft_share_user *u, uint64_t n, uint64_t now)
{
	bool first = u->out == 0;

	u->out += n;
	if (u->stalled) {
		s->stalled += n;
		return;
	}
	s->used += n;
	if (s->used > s->peak)
		s->peak = s->used;
	if (first)
		judge_anew(s, u, now);
}

void weft_share_done(struct weft_share *s, struct weft_share_user *u, uint64_t n, bool good,
		     uint64_t now)
{
	u->out -= n;
	if (u->stalled)
		s->stalled -= n;
	else
		s->used -= n;
	if (good)
		s->came += n;
	if (u->out == 0) {
		unlist(s, u);
		u->stalled = false;
		return;
	}
	if (!good)
		return;
	u->due -= n < u->due ? n : u->due;
	if (u->due)
		return;
	if (u->stalled) {
		u->stalled = false;
		s->stalled -= u->out;
		s->used += u->out;
	}
	judge_anew(s, u, now);
}
