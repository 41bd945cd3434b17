/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The delay algorithm in competition with flows that fill the queue until it overflows, as TCP
 * does: mode SHARE, its begin and its end. doc/raw-lanes.md has the rules.
 */

#include "engine/cc_delay.h"

#define OVER_HALVES 3u /* of the target: only other flows keep a longer queue */
#define OVER_NS 20000000u
#define OVER_ROUNDS 12u /* other flows have this number of rounds to drain the queue */
/*
 * Fewer rounds than this in OVER_NS mean windows of a small part of a frame: many senders of this
 * kind need FEW_NS to drain the queue.
 */
#define FEW_ROUNDS 48u
#define FEW_NS 40000000u
#define SHARE_FRAMES 2u
#define SHARE_SAMPLE 256u /* frames */
#define SHARE_LOSS 10u    /* TCP would not lose more than this part of them */
#define SHARE_BAN 256u    /* rounds */
#define BAN_NS 50000000u  /* ends a ban, too: rounds of a small window are long */
#define AGAIN_LOSS 3u     /* the part that may be lost after mode SHARE began again */
#define SHARE_ROUNDS 256u
#define LOOK_EVERY 4u /* one in this number of losses begins a dip */
#define LOOK_ROUNDS 2u
#define LOOK_PART 16u
#define LOOKS_EMPTY 3u /* dips in a row: the queue of other flows is empty at times, too */
#define LOOK_WAIT 32u  /* rounds between two dips: frequent losses would make dips the rule */
#define IDLE_ROUNDS 2u /* rounds in a row with a short queue: no other flow is there */
#define MEAN_PARTS 16u
#define MEAN_TARGETS 3u /* only other flows keep a longer mean queue */
#define MEAN_NS 50000000u
#define MEAN_ROUNDS 24u
#define MEAN_FRAMES 4u /* window, at most */
#define OVER_BACK 3u   /* rounds with a long queue that one with a short queue takes back */

/*
 * Reduces the window for LOOK_ROUNDS, to observe the queue without this path's frames. After them
 * it is @p back.
 */
void weft_cc_dip(struct weft_cc *cc, uint32_t to_part, uint32_t back)
{
	struct weft_cc_delay *d = &cc->delay;

	d->look = LOOK_ROUNDS;
	d->back = back;
	d->base_before = d->base;
	d->uncut = 0;
	weft_cc_apply(cc, cc->window / to_part);
}

/* @return true: the round was one of a dip */
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
	/*
	 * If the dip has shown that the path is shorter, the window before was too large: it is not
	 * restored.
	 */
	if (d->base + d->base / 8 >= d->base_before)
		weft_cc_apply(cc, d->back);
	return true;
}

/*
 * The queue was full, and all flows that share it lost frames at the same time. If all of them are
 * paths of this kind, all dip together and observe an empty queue.
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
	/*
	 * The trials of several paths must not coincide: digits of the clock serve as a random
	 * number.
	 */
	d->share_left = SHARE_ROUNDS + (uint32_t)(d->round.at / 64 % SHARE_ROUNDS);
	/*
	 * At the ban the paths of this kind left the mode. The queue has stayed, so other flows
	 * cause the high loss.
	 */
	d->again = d->ban_at != 0 && d->round.at - d->ban_at < 4ull * BAN_NS;
	d->over = d->empty = d->idle = 0;
	/* A mean from before this mode is no evidence of the queue after it. */
	d->mean_queue = min32(d->mean_queue, MEAN_TARGETS * target_plain(cc));
	d->mean_at = 0;
	d->look_wait = 0;
	d->share_acked = d->share_lost = 0;
	cc->modes++;
	weft_cc_apply(cc, max32(d->over_from / 2, SHARE_FRAMES * cc->conf.frame));
}

/*
 * Flows such as BBR let the queue run empty at times. So OVER_ROUNDS rounds with a long queue never
 * follow each other, and the window does not stay at its minimum. The mean over a longer time shows
 * these flows.
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
 * If the queue stays far beyond the target although this path's window has fallen, other flows keep
 * it there. They yield to loss only, and would take the whole link.
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
 * TCP keeps losses rare. A high loss rate means that all flows are paths of this kind, and each has
 * taken the others for TCP.
 */
bool weft_cc_share_contended(struct weft_cc *cc)
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
