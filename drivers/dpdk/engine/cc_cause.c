/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/cc_cause.h"

#include "engine/cc_delay.h"

/* ------------------------------------------------------------------ growth next to other flows */

#define CLIMB_PARTS 6u /* the window grows by this part (1/6) in a round */
/* a delay ends mode START, unless the round's rate was 7/4 (START_MORE) of the last one */
#define START_PARTS 4u
#define START_MORE 7u
/* in place of START_MORE for the round after one in which the window was held */
#define START_HELD 6u
#define CLIMB_IDLE 4u  /* a climb ends after this number of rounds that the window did not limit */
#define AGAIN_FIRST 8u /* rounds to the next climb after the first cut by loss */
#define AGAIN_MOST 64u /* largest number of these: each cut, and the end of a climb, doubles it */
/* from a cut or the end of a climb to the next one, at most: rounds in a deep queue are long */
#define AGAIN_NS 2500000000ull
#define AGAIN_CLIMB 12u /* after a cut by loss, a climb grows the window by 1/12 in a round */
/*
 * The rate of a flow with a share of s grows by at most 1 - s of what its window grows by, and by
 * less while the others grow, too. A climb goes on while the rate grows by at least
 * AGAIN_GROW / AGAIN_PARTS of what the window grows by.
 */
#define AGAIN_PARTS 1024u
#define AGAIN_GROW 416u
#define STARVED_PARTS 4u   /* starved: the rate is less than 1/4 of the highest one */
#define STARVED_ROUNDS 32u /* rounds in a row with such a rate and a delay: mode SHARE begins */
#define STARVED_NS 200000000u
#define OVERFLOW_NS 60000000000ull
/* for this time the flows that made the queue overflow are assumed to stay */
#define FULL_NS 5000000000ull
#define NOISE_AGAIN 128u
#define CATCH_UP 32u  /* a window that carries less than half of the peak grows by 1/32 */
#define PEAK_LESS 16u /* a cut by loss lowers the peak by 1/16 */

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
static void cubic_cut(struct weft_cc *cc)
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

#define CUBIC_MS 60000 /* limit of the time, so that no product overflows */

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

/* @return bytes per 2^20 ns. A clock that went back can make @p ns any number. */
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
 * A climb without loss ends: more bytes in flight carry no more, so the link is full, or the window
 * is not the limit. So the delay of the climb was noise, or the queue of a flow that has room for
 * it: mode DELAY tolerates it. After a full queue in the last FULL_NS mode SHARE goes on.
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
	/* The link may be slower than when the peak was measured. */
	if (d->climb.peak > d->climb.rate_now * STARVED_PARTS / 2)
		d->climb.peak = d->climb.rate_now * STARVED_PARTS / 2;
	d->mode = WEFT_CC_MODE_DELAY;
	d->over = 0;
}

/*
 * In a deep queue Cubic's growth takes minutes to reach its share. After a loss the rate shows how
 * far this path is from its share: with a small share the window and the rate grow by one factor.
 */
static void climb_again(struct weft_cc *cc)
{
	struct weft_cc_climb *c = &cc->delay.climb;

	c->on = true;
	c->again = true;
	c->wait = 0;
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
		grown = part(AGAIN_GROW, r->from - c->from, c->from);
		if (rate * AGAIN_PARTS < c->rate * (AGAIN_PARTS + grown)) {
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
static bool is_starved(struct weft_cc *cc)
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

static void share_grow(struct weft_cc *cc, uint64_t now, uint32_t queue)
{
	struct weft_cc_climb *c = &cc->delay.climb;
	bool due = c->wait > 0 && (--c->wait == 0 || now - c->cut_at >= AGAIN_NS);
	uint32_t to = plus(cc, cc->conf.frame);

	if (due && weft_cc_long(cc))
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

/* ---------------------------------------------------------------- noise */

/*
 * The delay of a queue of this path shrinks with the window. Jitter of the network does not, and is
 * no reason for a smaller window.
 *
 * When the delay of a path whose round trips vary is beyond the target, a test halves the window
 * for some rounds, and compares the mean round trips. A queue would have become shorter by what the
 * window has lost. If the mean has hardly changed, the delay that is left is noise: `noise` rises
 * to it, by what NOISE_RANGES allows, and the window returns.
 */

#define TEST_PART 2u /* a test halves the window */
/* rounds of a test, at least, after the first, whose samples are of frames sent before it */
#define TEST_ROUNDS 4u
#define TEST_SAMPLES 8u /* samples of a test, at least */
#define TEST_MOST 32u   /* rounds: a test with fewer than TEST_SAMPLES by then decides nothing */
#define TEST_FRAMES 1u  /* no test with a smaller window, in frames: many paths share the link */
/*
 * The delay is a queue if the mean round trip falls by FALL_LEAST of FALL_PARTS parts of what it
 * would fall by if the whole queue were of this path.
 */
#define FALL_PARTS 5u
#define FALL_LEAST 2u
#define OVER_MORE 5u   /* a round beyond the target counts as five below it */
#define OVER_LAST 12u  /* the sum from which on a test is due: three rounds in a row */
#define HIGH_PARTS 16u /* the largest window of the last rounds loses 1/16 in each round */
#define HIGH_LEAST 5u  /* a test needs a window of at most 5/8 of that largest one */
#define HIGH_FEW 6u    /* HIGH_LEAST for windows of fewer than MANY frames */
#define MANY 32u
#define LOW_ROUNDS 16u /* rounds of which the shortest round trip counts */
/* jitter: the shortest round trip exceeds `base` by at most 1/3 of what the mean does */
#define LOW_PARTS 3u
#define WAIT_FIRST 32u /* rounds from one test to the next; longer after each that finds a queue */
#define WAIT_MOST 1024u
#define AGAIN_ROUNDS 256u /* rounds with noise until a test whether it is still there */
#define RANGE_PARTS 3u    /* a delay that varies by less than 1/3 of itself is no jitter */
#define NOISE_RANGES 2u   /* a test sets the noise to at most this multiple of the range */
#define SPARE_PARTS 2u    /* half of a delay beyond the target that ended without a cut is noise */
#define PEAK_ROUNDS 64u   /* the noise is no more than the longest delay of these rounds */

static bool near(uint32_t window, uint32_t other)
{
	return window <= other / 4 * 5 && window >= other / 4 * 3;
}

static void learn(struct weft_cc *cc, uint32_t queue)
{
	struct weft_cc_delay *d = &cc->delay;
	const struct weft_cc_round *r = &d->round;
	struct weft_cc_noise *n = &d->jitter;
	uint32_t mean, range;

	if (r->samples == 0)
		return;
	mean = (uint32_t)(r->sum / r->samples);
	range = r->worst - r->least;
	/* Only rounds of about the same window have a mean in common. */
	n->steady = n->mean != 0 && near(r->from, n->from) && near(cc->window, n->from);
	n->mean = n->steady ? n->mean / 2 + mean / 2 : mean;
	n->from = r->from;
	if (r->samples > 1)
		n->range = n->range - n->range / 8 + range / 8;
	n->low = n->low_rounds != 0 ? min32(n->low, r->least) : r->least;
	if (++n->low_rounds >= LOW_ROUNDS) {
		n->low_before = n->low;
		n->low_rounds = 0;
	}
	n->peak = max32(n->peak, queue);
	if (++n->peak_rounds < PEAK_ROUNDS)
		return;
	n->noise = min32(n->noise, n->peak);
	n->peak = 0;
	n->peak_rounds = 0;
}

static void halve(struct weft_cc *cc)
{
	struct weft_cc_noise *n = &cc->delay.jitter;

	n->rounds = 0;
	n->samples = 0;
	n->sum = 0;
	n->late = 0;
	cc->cut = WEFT_CC_CUT_TEST;
	weft_cc_apply(cc, cc->window / TEST_PART);
}

/*
 * A mean of rounds in which the window changed belongs to no single window. Then the reference is
 * the mean for half of the window, which the first half of the test measures.
 */
static void test_begin(struct weft_cc *cc)
{
	struct weft_cc_noise *n = &cc->delay.jitter;

	n->ref_mean = n->steady ? n->mean : 0;
	n->ref_window = n->steady ? cc->window : cc->window / TEST_PART;
	n->again = AGAIN_ROUNDS;
	halve(cc);
}

static bool is_queue(const struct weft_cc *cc)
{
	const struct weft_cc_delay *d = &cc->delay;
	const struct weft_cc_noise *n = &d->jitter;
	uint32_t mean = (uint32_t)(n->sum / n->samples),
		 most = n->ref_mean - n->ref_mean / TEST_PART;

	most = min32(most, n->ref_mean > d->base ? n->ref_mean - d->base : 0);
	return mean + most / FALL_PARTS * FALL_LEAST < n->ref_mean;
}

static void test_end(struct weft_cc *cc, uint32_t target)
{
	struct weft_cc_delay *d = &cc->delay;
	struct weft_cc_noise *n = &d->jitter;
	uint32_t window = n->ref_window;

	if (n->samples < TEST_SAMPLES) {
		n->ref_window = 0;
		weft_cc_apply(cc, max32(cc->window, window / 4 * 3));
		return;
	}
	if (n->ref_mean == 0 && n->late > n->noise + target) {
		n->ref_mean = (uint32_t)(n->sum / n->samples);
		n->ref_window = cc->window;
		halve(cc);
		return;
	}
	n->ref_window = 0;
	if (n->ref_mean == 0 || is_queue(cc)) {
		n->noise = min32(n->noise, n->late);
		n->backoff = (uint16_t)min32(max32(WAIT_FIRST, n->backoff * 4u), WAIT_MOST);
		n->wait = n->backoff;
		return;
	}
	n->noise = max32(n->noise, min32(n->late, NOISE_RANGES * n->range));
	n->backoff = 0;
	n->peak = 0;
	n->peak_rounds = 0;
	/* What was taken for the delay of a full queue was noise, too. */
	if (d->full <= n->noise / 4 * 5)
		d->full = 0;
	d->over = 0;
	weft_cc_apply(cc, max32(cc->window, window));
	n->over = 0;
}

static void test_round(struct weft_cc *cc, uint32_t queue, uint32_t target)
{
	struct weft_cc_delay *d = &cc->delay;
	struct weft_cc_noise *n = &d->jitter;
	const struct weft_cc_round *r = &d->round;

	/* The samples of the first round are of frames that left before the test. */
	if (n->rounds++ == 0)
		return;
	n->sum += r->sum;
	n->samples += r->samples;
	n->late = max32(n->late, queue);
	if ((n->rounds > TEST_ROUNDS && n->samples >= TEST_SAMPLES) || n->rounds >= TEST_MOST)
		test_end(cc, target);
}

bool weft_cc_noise_round(struct weft_cc *cc, uint32_t queue, uint32_t target)
{
	struct weft_cc_noise *n = &cc->delay.jitter;

	n->wait -= (uint16_t)min32(n->wait, 1);
	n->again -= (uint16_t)min32(n->again, 1);
	if (n->ref_window == 0) {
		learn(cc, queue);
		return false;
	}
	test_round(cc, queue, target);
	return true;
}

/* With a small window, jitter passes some frames without delay; a queue of others delays all. */
static bool is_jitter(const struct weft_cc *cc)
{
	const struct weft_cc_delay *d = &cc->delay;
	const struct weft_cc_noise *n = &d->jitter;
	uint32_t low = n->low_rounds != 0 ? min32(n->low, n->low_before) : n->low_before;

	if (n->low_before == 0 || n->mean <= d->base || !weft_cc_jitter(cc))
		return false;
	return n->range >= (n->mean - d->base) / RANGE_PARTS &&
	       low <= d->base + (n->mean - d->base) / LOW_PARTS;
}

/*
 * One cut takes the queue of this path away, one round later. A delay that is beyond the target in
 * three rounds in a row, or often (OVER_MORE, OVER_LAST), is of other flows, or noise.
 */
bool weft_cc_noise_test(struct weft_cc *cc, uint32_t queue, uint32_t target)
{
	struct weft_cc_delay *d = &cc->delay;
	struct weft_cc_noise *n = &d->jitter;
	bool over = queue > n->noise + target, many = cc->window >= MANY * cc->conf.frame;

	n->high = max32(cc->window, n->high - n->high / HIGH_PARTS);
	if (over)
		n->over = (uint8_t)min32(n->over + OVER_MORE, UINT8_MAX);
	else
		n->over -= (uint8_t)min32(n->over, 1);
	if (!d->round.limited || cc->window < TEST_FRAMES * cc->conf.frame || d->round.samples == 0)
		return false;
	/* A test is also due now and then: what counts as noise may have become a queue. */
	if (over ? n->over < OVER_LAST || n->wait > 0 || !is_jitter(cc) ||
			    cc->window > n->high / 8 * (many ? HIGH_LEAST : HIGH_FEW)
		 : n->noise == 0 || n->again > 0)
		return false;
	test_begin(cc);
	return true;
}

/*
 * Beyond noise that is known, the first long round does not cut the window. A queue is still there
 * one round later. A delay that is gone then, though the window was not cut, was noise, too.
 */
bool weft_cc_noise_spares(struct weft_cc *cc, uint32_t queue, uint32_t target)
{
	struct weft_cc_delay *d = &cc->delay;
	struct weft_cc_noise *n = &d->jitter;
	bool over = queue > target, spared = n->spared;

	n->spared = over && !spared && n->noise > target && n->range > target &&
		    d->queue_last <= target;
	if (spared && !over)
		n->noise += (d->queue_last - min32(d->queue_last, target)) / SPARE_PARTS;
	return n->spared;
}

/* ---------------------------------------------------------------- other flows */

#define OVER_HALVES 3u /* in halves of the target: only other flows keep a longer queue */
#define OVER_NS 20000000u
#define OVER_ROUNDS 12u  /* rounds in which paths of Weft would have drained the queue */
#define FEW_ROUNDS 48u   /* fewer rounds in OVER_NS mean windows of a small part of a frame */
#define FEW_NS 40000000u /* many senders with such windows need this time to drain the queue */
#define SHARE_FRAMES 2u
#define SHARE_SAMPLE 256u /* frames, at least, over which the loss rate is judged */
#define SHARE_LOSS 10u    /* TCP would not lose more than 1/10 of the bytes */
#define SHARE_BAN 256u    /* after too many losses, mode SHARE must not begin in these rounds */
#define BAN_NS 50000000u  /* ends a ban, too: rounds of a small window are long */
#define AGAIN_LOSS 3u     /* 1/3 of the bytes: the limit after mode SHARE began again */
#define SHARE_ROUNDS 256u
/* A dip of mode SHARE: for LOOK_ROUNDS rounds the window is 1/LOOK_PART, so its queue drains. */
#define LOOK_EVERY 4u /* one in this number of cuts by loss begins a dip, if LOOK_WAIT is over */
#define LOOK_ROUNDS 2u
#define LOOK_PART 16u
#define LOOKS_EMPTY 3u /* dips in a row with an empty queue end mode SHARE; one may be chance */
#define LOOK_WAIT 32u  /* rounds between two dips: frequent losses would make dips the rule */
#define IDLE_ROUNDS 2u /* rounds in a row with a short queue end mode SHARE: no others are left */
#define MEAN_PARTS 16u
#define MEAN_TARGETS 3u /* in targets: only other flows keep a longer mean queue */
#define MEAN_NS 50000000u
#define MEAN_ROUNDS 24u
#define MEAN_FRAMES 4u /* with more frames in its window, the queue may be this path's own */
#define OVER_BACK 3u   /* rounds with a long queue that one with a short queue takes back */

/*
 * Rules for a long path. Its rounds are long: OVER_ROUNDS rounds with a window of one frame would
 * cost seconds. And its target is a small part of the round trip: TCP takes the link while the
 * queue is still below the target.
 */
#define CLIMB_CUTS 3u           /* with fewer cuts by loss, the loss rate is not judged */
#define CONTENDED_TRIPS 16u     /* windows of data, at least, over which the loss rate is judged */
#define LONG_ROUNDS 6u          /* rounds in which paths of Weft drain their own queue */
#define LONG_CUT 2u             /* in these rounds the window must have fallen to 1/2 or less */
#define YIELD_ROUNDS 24u        /* rounds in a row in which the queue was never short */
#define YIELD_CUT 4u            /* in these rounds the window must have fallen to 1/4 or less */
#define RECENT_NS 5000000000ull /* for this time after mode SHARE its cause is assumed to stay */
#define RECENT_ROUNDS 3u
#define RECENT_YIELD 8u

void weft_cc_dip(struct weft_cc *cc, uint32_t to_part, uint32_t back)
{
	struct weft_cc_delay *d = &cc->delay;

	d->look = LOOK_ROUNDS;
	d->back = back;
	d->base_before = d->base;
	d->uncut = 0;
	cc->cut = WEFT_CC_CUT_TEST;
	weft_cc_apply(cc, cc->window / to_part);
}

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
	/* If the dip has shown that the path is shorter, the window before was too large. */
	if (d->base + d->base / 8 >= d->base_before)
		weft_cc_apply(cc, d->back);
	return true;
}

/*
 * The queue was full, and all flows that share it lost frames at the same time. If all of them are
 * paths of Weft, all dip together and observe an empty queue.
 */
void weft_cc_share_loss(struct weft_cc *cc, bool by_queue)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t to;

	if (by_queue)
		d->climb.full_at = d->round.at;
	to = max32(cc->window / 10 * 7, cc->conf.frame);
	cubic_cut(cc);
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
	/* Trials of several paths must not coincide: the clock's digits are the random number. */
	d->share_left = SHARE_ROUNDS + (uint32_t)(d->round.at / 64 % SHARE_ROUNDS);
	/* Paths of Weft have left the mode at the ban. The queue stayed, so it is of others. */
	d->again = d->ban_at != 0 && d->round.at - d->ban_at < 4ull * BAN_NS;
	d->over = d->empty = d->idle = 0;
	/* A mean from before this mode is no evidence of the queue after it. */
	d->mean_queue = min32(d->mean_queue, MEAN_TARGETS * target_plain(cc));
	d->mean_at = 0;
	d->look_wait = 0;
	d->share_acked = d->share_lost = 0;
	cc->modes++;
	weft_cc_apply(cc, max32(d->over_from / 2, SHARE_FRAMES * cc->conf.frame));
	weft_cc_climb_begin(cc);
}

/* On a long path: would the rounds in which the window fell have drained a queue of Weft? */
static bool long_others(struct weft_cc *cc, uint32_t queue)
{
	struct weft_cc_delay *d = &cc->delay;
	struct weft_cc_climb *c = &d->climb;
	bool recent = c->left_at != 0 && d->round.at - c->left_at < RECENT_NS;

	if (queue < target_plain(cc) / 2) {
		c->yield = 0;
		c->yield_from = cc->window;
		return false;
	}
	c->yield = (uint8_t)min32(c->yield + 1u, UINT8_MAX);
	c->yield_from = max32(c->yield_from, cc->window);
	if (d->over >= (recent ? RECENT_ROUNDS : LONG_ROUNDS) && queue >= d->over_queue / 2 &&
	    d->round.at - d->over_at >= OVER_NS &&
	    (recent || cc->window <= c->yield_from / LONG_CUT)) {
		d->over_from = c->yield_from;
		return true;
	}
	if (c->yield < (recent ? RECENT_YIELD : YIELD_ROUNDS) ||
	    cc->window > (recent ? c->yield_from / 4 * 3 : c->yield_from / YIELD_CUT))
		return false;
	d->over_from = c->yield_from;
	return true;
}

/*
 * Flows such as BBR let the queue run empty at times. A round with a short queue takes back
 * OVER_BACK rounds with a long one, and this path's window grows. So the count `over` may not show
 * these flows. The mean over a longer time shows them.
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
	if (weft_cc_long(cc) && d->share_ban == 0 && (long_others(cc, queue) || is_starved(cc))) {
		share_begin(cc);
		return;
	}
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

/* TCP keeps losses rare: with a high loss rate all flows are paths of Weft. */
bool weft_cc_share_contended(struct weft_cc *cc)
{
	struct weft_cc_delay *d = &cc->delay;
	uint64_t all;

	d->share_acked += d->round.acked;
	d->share_lost += d->round.lost;
	all = d->share_acked + d->share_lost;
	if (all < SHARE_SAMPLE * (uint64_t)cc->conf.frame)
		return false;
	if (weft_cc_long(cc) &&
	    (d->climb.cuts < CLIMB_CUTS || all < CONTENDED_TRIPS * (uint64_t)cc->window))
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

void weft_cc_share_round(struct weft_cc *cc, uint64_t now, uint32_t queue)
{
	struct weft_cc_delay *d = &cc->delay;

	d->idle = queue < target_plain(cc) / 2 ? (uint8_t)(d->idle + 1) : 0;
	if (d->idle >= IDLE_ROUNDS || d->share_left == 0) {
		d->mode = WEFT_CC_MODE_DELAY;
		d->over = 0;
		d->climb.left_at = d->round.at;
		if (d->again)
			d->ban_at = d->round.at;
		return;
	}
	d->share_left--;
	d->look_wait -= (uint16_t)min32(d->look_wait, 1);
	share_grow(cc, now, queue);
}
