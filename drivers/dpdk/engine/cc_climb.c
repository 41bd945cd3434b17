/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Growth on a long path next to other flows. Its rounds are long, so a frame in each would be slow.
 */

#include "engine/cc_climb.h"
#include "engine/cc_delay.h"

#define CLIMB_PARTS 6u /* the window grows by this part (1/6) in a round */
#define START_PARTS 4u /* a round of mode START carries nearly twice what the one before did */
#define START_MORE 7u
#define START_HELD 6u   /* in place of START_MORE for a round in which the window was held */
#define CLIMB_IDLE 4u   /* rounds whose window was not the limit: there is no reason to climb */
#define AGAIN_FIRST 8u  /* rounds from a cut by loss to the next climb */
#define AGAIN_MOST 64u  /* the same after climbs without result */
#define AGAIN_CLIMB 12u /* the part by which the window grows in a round of such a climb */
/*
 * The rate of a flow with a share of s grows by 1 - s of what its window grows by, or by less. A
 * climb goes on while the rate grows by at least AGAIN_GROW / AGAIN_PARTS of what the window grows
 * by.
 */
#define AGAIN_PARTS 16u
#define AGAIN_GROW 9u
#define STARVED_PARTS 4u   /* the rate is less than this part of the highest one */
#define STARVED_ROUNDS 32u /* rounds in a row in which others kept a queue */
#define STARVED_NS 200000000u
#define OVERFLOW_NS 60000000000ull
#define FULL_NS 5000000000ull /* after an overflow the same flows are likely to be there */
#define NOISE_AGAIN 128u
#define CATCH_UP 32u  /* the part by which a window grows that carries less than half of the peak */
#define PEAK_LESS 16u /* the part of the peak that a cut by loss takes away */

bool weft_cc_overflowed(const struct weft_cc *cc, uint64_t now)
{
	const struct weft_cc_climb *c = &cc->delay.climb;

	return c->full_at != 0 && now - c->full_at < OVERFLOW_NS;
}

static uint32_t cube_root(uint64_t x)
{
	uint32_t root = 0;

	for (uint32_t bit = 1u << 20; bit != 0; bit /= 2)
		if ((uint64_t)(root + bit) * (root + bit) * (root + bit) <= x)
			root += bit;
	return root;
}

/* Cubic's growth begins: `mid` ms from now, the window is what it was before the cut (RFC 9438). */
void weft_cc_cubic_cut(struct weft_cc *cc)
{
	struct weft_cc_climb *c = &cc->delay.climb;

	c->on = false;
	c->backoff = c->backoff != 0 ? (uint8_t)min32(c->backoff * 2u, AGAIN_MOST) : AGAIN_FIRST;
	c->wait = c->backoff;
	c->cuts = (uint8_t)min32(c->cuts + 1u, UINT8_MAX);
	c->high = cc->window;
	c->cut_at = cc->delay.round.at;
	c->peak -= c->peak / PEAK_LESS;
	/* In ms: the cube root of the 0.3 of the window that are cut, in frames, divided by C. */
	c->mid = 10 * cube_root((uint64_t)c->high / 4 * 3 / cc->conf.frame * 1000000);
}

#define CUBIC_MS 60000 /* no product overflows */

/* The window that Cubic would have at @p now. */
static uint32_t cubic_window(const struct weft_cc *cc, uint64_t now)
{
	const struct weft_cc_climb *c = &cc->delay.climb;
	int64_t t = (int64_t)((now - c->cut_at) / 1000000) - (int64_t)c->mid, w;

	t = t > CUBIC_MS ? CUBIC_MS : t < -CUBIC_MS ? -CUBIC_MS : t;
	/* C = 0.4 frames per cubic second */
	w = (int64_t)c->high + t * t * t / 2500 * cc->conf.frame / 1000000;
	return w < 0 ? 0 : (uint32_t)(w < INT32_MAX ? w : INT32_MAX);
}

/* In bytes per 2^20 ns. A clock that went back can make @p ns any number. */
static uint64_t rate_of(uint64_t bytes, uint64_t ns)
{
	return (bytes << 20) / (ns | 1);
}

static void climb_stage(struct weft_cc *cc)
{
	struct weft_cc_climb *c = &cc->delay.climb;

	c->from = cc->window;
	c->acked = 0;
	c->at = 0;
}

void weft_cc_climb_begin(struct weft_cc *cc)
{
	struct weft_cc_climb *c = &cc->delay.climb;

	c->on = weft_cc_long(cc);
	c->again = false;
	c->cuts = c->unlimited = c->yield = 0;
	c->wait = c->backoff = 0;
	c->rate = 0;
	c->late = 0;
	climb_stage(cc);
}

/* The window returns to what it was before the last stage, and grows from there as Cubic's does. */
static void climb_again_end(struct weft_cc *cc, uint64_t now)
{
	struct weft_cc_climb *c = &cc->delay.climb;

	c->on = false;
	c->backoff = (uint8_t)min32(c->backoff * 2u, AGAIN_MOST);
	c->wait = c->backoff;
	weft_cc_apply(cc, min32(cc->window, c->from));
	c->high = cc->window;
	c->cut_at = now;
	c->mid = 0;
}

/*
 * No frame was lost, and more bytes in flight carry no more: the link is full. So the delay of the
 * climb was noise, or the queue of a flow that has room for it: mode DELAY tolerates it. A queue
 * that has overflowed lately is neither, and mode SHARE goes on.
 */
static void climb_full(struct weft_cc *cc)
{
	struct weft_cc_delay *d = &cc->delay;

	if (d->climb.full_at != 0 && d->round.at - d->climb.full_at < FULL_NS) {
		climb_again_end(cc, d->round.at);
		return;
	}
	d->jitter.noise = max32(d->jitter.noise, d->climb.late);
	d->jitter.again = NOISE_AGAIN;
	d->jitter.peak = 0;
	d->jitter.peak_rounds = 0;
	d->climb.left_at = d->round.at;
	/* The link may be slower than it was. */
	if (d->climb.peak > d->climb.rate_now * STARVED_PARTS / 2)
		d->climb.peak = d->climb.rate_now * STARVED_PARTS / 2;
	d->mode = WEFT_CC_MODE_DELAY;
	d->over = 0;
}

/*
 * In a deep queue Cubic's growth takes minutes to reach its share. After a loss the rate shows how
 * far this path is from its share: with a small one the window and the rate grow by the same part.
 */
static void climb_again(struct weft_cc *cc)
{
	struct weft_cc_climb *c = &cc->delay.climb;

	c->on = true;
	c->again = true;
	c->unlimited = 0;
	c->rate = c->rate_now;
	climb_stage(cc);
}

static void climb_again_round(struct weft_cc *cc, uint64_t now)
{
	const struct weft_cc_round *r = &cc->delay.round;
	struct weft_cc_climb *c = &cc->delay.climb;
	uint64_t rate = rate_of(r->acked, now - r->at), grown;

	if (!r->limited) {
		climb_again_end(cc, now);
		return;
	}
	if (r->from >= c->from / 4 * 5) {
		grown = part(AGAIN_PARTS, r->from - c->from, c->from);
		if (rate * AGAIN_PARTS <
		    c->rate * (AGAIN_PARTS + grown * AGAIN_GROW / AGAIN_PARTS)) {
			climb_again_end(cc, now);
			return;
		}
		c->from = r->from;
		c->rate = rate;
	}
	weft_cc_apply(cc, plus(cc, max32(cc->window / AGAIN_CLIMB, cc->conf.frame)));
}

/*
 * Grow by a part of the window as long as that increases the rate. The rate is compared by stages:
 * in each the window grows by half.
 */
static void climb_round(struct weft_cc *cc, uint64_t now, uint32_t queue)
{
	struct weft_cc_climb *c = &cc->delay.climb;
	uint64_t rate;

	if (!cc->delay.round.limited) {
		if (++c->unlimited >= CLIMB_IDLE)
			climb_full(cc);
		return;
	}
	c->unlimited = 0;
	c->late = max32(c->late, queue + cc->delay.jitter.noise);
	if (c->at == 0)
		c->at = cc->delay.round.at;
	c->acked += cc->delay.round.acked;
	weft_cc_apply(cc, plus(cc, max32(cc->window / CLIMB_PARTS, cc->conf.frame)));
	if (cc->window < c->from / 2 * 3)
		return;
	rate = rate_of(c->acked, now - c->at);
	if (c->rate != 0 && rate < c->rate / 4 * 5) {
		climb_full(cc);
		return;
	}
	c->rate = rate;
	climb_stage(cc);
}

void weft_cc_rate_round(struct weft_cc *cc, uint64_t now)
{
	const struct weft_cc_round *r = &cc->delay.round;
	struct weft_cc_climb *c = &cc->delay.climb;

	if (!weft_cc_long(cc) || !r->limited)
		return;
	c->rate_now = c->rate_now - c->rate_now / 4 + rate_of(r->acked, now - r->at) / 4;
	if (c->rate_now > c->peak)
		c->peak = c->rate_now;
}

/*
 * On a long path: a window that has doubled, and carries nearly twice as much, has no queue of its
 * own. So the delay is noise, or the queue of others. Jitter makes the rate of a round uncertain:
 * if it has grown by less, the window stays for one more round.
 */
bool weft_cc_start_on(struct weft_cc *cc, uint64_t now, uint32_t queue)
{
	struct weft_cc_delay *d = &cc->delay;
	struct weft_cc_climb *c = &d->climb;
	uint64_t rate = rate_of(d->round.acked, now - d->round.at), before = c->rate;
	bool held = c->held;

	c->held = false;
	if (!weft_cc_long(cc) || d->round.lost != 0 || d->round.marked != 0)
		return false;
	if (before != 0 && rate < before / START_PARTS * (held ? START_HELD : START_MORE)) {
		c->held = !held && queue != 0;
		return c->held;
	}
	c->rate = rate;
	d->jitter.noise += queue;
	d->jitter.again = NOISE_AGAIN;
	return true;
}

bool weft_cc_climbs(const struct weft_cc *cc)
{
	return weft_cc_long(cc) && (cc->delay.mode == WEFT_CC_MODE_START ||
				    (cc->delay.mode == WEFT_CC_MODE_SHARE && cc->delay.climb.on));
}

/*
 * On a long path: the rate has fallen far, and all the time a delay has been there. Other flows
 * have taken the link, with a queue that this path tolerates, as noise or as its target.
 */
bool weft_cc_starved(struct weft_cc *cc)
{
	struct weft_cc_delay *d = &cc->delay;
	struct weft_cc_climb *c = &d->climb;

	if (!d->round.limited || c->rate_now >= c->peak / STARVED_PARTS ||
	    d->round.least < d->base + target_plain(cc) / 2) {
		c->starved = 0;
		return false;
	}
	if (c->starved == 0)
		c->starved_at = d->round.at;
	c->starved = (uint8_t)min32(c->starved + 1u, UINT8_MAX);
	if (c->starved < STARVED_ROUNDS || d->round.at - c->starved_at < STARVED_NS)
		return false;
	c->starved = 0;
	d->over_from = plus(cc, cc->window);
	return true;
}

void weft_cc_share_grow(struct weft_cc *cc, uint64_t now, uint32_t queue)
{
	struct weft_cc_climb *c = &cc->delay.climb;
	uint32_t to = plus(cc, cc->conf.frame);

	if (c->wait > 0 && --c->wait == 0 && weft_cc_long(cc))
		climb_again(cc);
	if (c->on && c->again) {
		climb_again_round(cc, now);
		return;
	}
	if (c->on) {
		climb_round(cc, now, queue);
		return;
	}
	if (!cc->delay.round.limited)
		return;
	if (weft_cc_long(cc) && c->high != 0)
		to = max32(to, min32(cubic_window(cc, now), plus(cc, cc->window / 2)));
	if (c->rate_now < c->peak / 2)
		to = max32(to, plus(cc, cc->window / CATCH_UP));
	weft_cc_apply(cc, to);
}
