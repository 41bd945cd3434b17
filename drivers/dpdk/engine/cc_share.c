/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The delay algorithm beside others who fill the queue until it overflows, as TCP does: mode
 * SHARE, its begin and its end. doc/congestion.md, Beside others.
 */

#include "engine/cc_delay.h"

#define OVER_HALVES 3u /* of the target: a queue that others keep */
#define OVER_NS 20000000u
#define OVER_ROUNDS 12u /* so long others are given the chance to drain the queue */
/* Fewer rounds are of windows of a small part of a frame: crowds of our kind take so long. */
#define FEW_ROUNDS 48u
#define FEW_NS 40000000u
#define SHARE_FRAMES 2u
#define SHARE_SAMPLE 256u /* frames */
#define SHARE_LOSS 10u    /* a part of them that TCP would not lose */
#define SHARE_BAN 256u    /* rounds */
#define BAN_NS 50000000u  /* which are long where a window is a part of a frame */
#define AGAIN_LOSS 3u     /* a part of them, for who had to come back after a ban */
#define SHARE_ROUNDS 256u
#define LOOK_EVERY 4u /* loss */
#define LOOK_ROUNDS 2u
#define LOOK_PART 16u
#define LOOKS_EMPTY 3u /* in a row: the queues of others are empty now and then, too */
#define LOOK_WAIT 32u  /* rounds between two looks: where each few lose, looks would be all */
#define IDLE_ROUNDS 2u /* in a row: then nobody else is there */
#define MEAN_PARTS 16u
#define MEAN_TARGETS 3u /* a mean queue that only others keep */
#define MEAN_NS 50000000u
#define MEAN_ROUNDS 24u
#define MEAN_FRAMES 4u /* window, at most */
#define OVER_BACK 3u   /* rounds of a queue that others keep are undone by one that sees it short */

/* For a moment the window is small, so that the queue is seen without us; then it is @p back. */
void weft_cc_dip(struct weft_cc *cc, uint32_t to_part, uint32_t back)
{
	struct weft_cc_delay *d = &cc->delay;

	d->look = LOOK_ROUNDS;
	d->back = back;
	d->base_before = d->base;
	d->uncut = 0;
	weft_cc_apply(cc, cc->window / to_part);
}

/* @return the round was one of a dip */
bool weft_cc_in_dip(struct weft_cc *cc, uint32_t queue)
{
	struct weft_cc_delay *d = &cc->delay;

	if (d->look == 0)
		return false;
	if (--d->look > 0)
		return true;
	if (d->mode == WEFT_CC_MODE_SHARE) {
		d->empty = queue < target_plain(cc) / 2 ? (uint8_t)(d->empty + 1) : 0;
		if (d->empty >= LOOKS_EMPTY) {
			d->mode = WEFT_CC_MODE_DELAY;
			d->over = 0;
		}
	}
	/* The way is shorter than was thought: what was a window for it is none. */
	if (d->base + d->base / 8 >= d->base_before)
		weft_cc_apply(cc, d->back);
	return true;
}

/*
 * The queue was full, and whoever shares it was told at the same time. Are these all of our
 * kind? Then all leave it for a moment, and it is seen empty.
 */
void weft_cc_share_loss(struct weft_cc *cc)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t to;

	to = max32(cc->window / 10 * 7, cc->conf.frame);
	if (++d->looks % LOOK_EVERY != 0 || d->look_wait > 0) {
		weft_cc_apply(cc, to);
		return;
	}
	d->look_wait = LOOK_WAIT;
	weft_cc_dip(cc, LOOK_PART, to);
}

static void share_begin(struct weft_cc *cc)
{
	struct weft_cc_delay *d = &cc->delay;

	d->mode = WEFT_CC_MODE_SHARE;
	/* Not all at the same time: what the clock says is as good as a die. */
	d->share_left = SHARE_ROUNDS + (uint32_t)(d->round.at / 64 % SHARE_ROUNDS);
	/* They have left after a ban, and the queue stays: so it is others who lose that much. */
	d->again = d->ban_at != 0 && d->round.at - d->ban_at < 4ull * BAN_NS;
	d->over = d->empty = d->idle = 0;
	/* What it was says nothing of the queue when this mode ends. */
	d->mean_queue = min32(d->mean_queue, MEAN_TARGETS * target_plain(cc));
	d->mean_at = 0;
	d->look_wait = 0;
	d->share_acked = d->share_lost = 0;
	cc->modes++;
	weft_cc_apply(cc, max32(d->over_from / 2, SHARE_FRAMES * cc->conf.frame));
}

/*
 * Where others let the queue run empty now and then, as BBR does, no dozen rounds in a row see it,
 * nor does our window stay as small as it can be. Over a longer time the mean tells.
 */
static bool mean_of_others(struct weft_cc *cc, uint32_t queue)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t most = MEAN_TARGETS * target_plain(cc);

	d->mean_queue = d->mean_queue - d->mean_queue / MEAN_PARTS + queue / MEAN_PARTS;
	if (d->mean_queue < most || d->share_ban > 0 || cc->window > MEAN_FRAMES * cc->conf.frame) {
		d->mean_at = 0;
		return false;
	}
	if (d->mean_at == 0) {
		d->mean_at = d->round.at;
		d->mean_rounds = 0;
	}
	if (d->mean_rounds < UINT8_MAX)
		d->mean_rounds++;
	return d->mean_rounds >= MEAN_ROUNDS && d->round.at - d->mean_at >= MEAN_NS;
}

/*
 * The queue stays far beyond the target although our window has fallen: others keep it there,
 * who give way to loss only, and would take all.
 */
void weft_cc_look_for_others(struct weft_cc *cc, uint32_t queue)
{
	struct weft_cc_delay *d = &cc->delay;
	uint64_t ns;

	if (d->share_ban > 0 && (--d->share_ban == 0 || d->round.at - d->ban_at >= BAN_NS))
		d->share_ban = 0;
	if (mean_of_others(cc, queue)) {
		d->over_from = max32(d->over_from, MEAN_FRAMES * cc->conf.frame);
		share_begin(cc);
		return;
	}
	if (queue < target_plain(cc) / 2 * OVER_HALVES || d->share_ban > 0) {
		d->over -= (uint8_t)min32(d->over, d->share_ban > 0 ? d->over : OVER_BACK);
		return;
	}
	if (d->over == 0) {
		d->over_from = cc->window;
		d->over_queue = queue;
		d->over_at = d->round.at;
	}
	if (d->over < UINT8_MAX)
		d->over++;
	ns = d->over < FEW_ROUNDS ? FEW_NS : OVER_NS;
	if (d->over >= OVER_ROUNDS && d->round.at - d->over_at >= ns &&
	    queue >= d->over_queue / 2 &&
	    cc->window <= max32(d->over_from / 2, cc->conf.frame) / OVER_CUT)
		share_begin(cc);
}

/*
 * TCP keeps losses rare. Where many are lost all are of our kind, each of which took the others
 * for something else.
 */
bool weft_cc_share_crowd(struct weft_cc *cc)
{
	struct weft_cc_delay *d = &cc->delay;
	uint64_t all;

	d->share_acked += d->round.acked;
	d->share_lost += d->round.lost;
	all = d->share_acked + d->share_lost;
	if (all < SHARE_SAMPLE * (uint64_t)cc->conf.frame)
		return false;
	if (d->share_lost * (d->again ? AGAIN_LOSS : SHARE_LOSS) > all) {
		d->share_ban = SHARE_BAN;
		d->ban_at = d->round.at;
		return true;
	}
	d->share_acked /= 2;
	d->share_lost /= 2;
	return false;
}

void weft_cc_share_round(struct weft_cc *cc, uint32_t queue)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t frame = cc->conf.frame;

	d->idle = queue < target_plain(cc) / 2 ? (uint8_t)(d->idle + 1) : 0;
	if (d->idle >= IDLE_ROUNDS || d->share_left == 0) {
		d->mode = WEFT_CC_MODE_DELAY;
		d->over = 0;
		if (d->again)
			d->ban_at = d->round.at;
		return;
	}
	d->share_left--;
	d->look_wait -= (uint16_t)min32(d->look_wait, 1);
	if (d->round.limited)
		weft_cc_apply(cc, plus(cc, frame));
}
