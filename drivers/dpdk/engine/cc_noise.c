/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Distinguishes a queue from noise. The delay of a queue of this path shrinks with the window.
 * Jitter of the network does not, and is no reason for a smaller window.
 *
 * When the delay of a path whose round trips vary is beyond the target, a test halves the window
 * for some rounds, and compares the mean round trips. A queue would have become shorter by what the
 * window has lost. If the mean has hardly changed, all the delay that is left is noise: it is added
 * to what counts as no queue (`noise`), and the window returns. doc/raw-lanes.md has the numbers.
 */

#include "engine/cc_delay.h"

#define TEST_PART 2u    /* the window of a test: half */
#define TEST_ROUNDS 4u  /* at least, after the one of frames that left before it */
#define TEST_SAMPLES 8u /* at least */
#define TEST_MOST 32u   /* rounds; a test with fewer samples by then decides nothing */
#define TEST_FRAMES 1u  /* least window before a test: paths with less are many */
#define FALL_PARTS 5u   /* a queue shrinks by at least FALL_LEAST of these of what it would alone */
#define FALL_LEAST 2u
#define OVER_MORE 5u /* a round beyond the target counts as five below it */
#define OVER_LAST 12u
#define HIGH_PARTS 16u /* the largest window of the last rounds is forgotten by this part */
#define HIGH_LEAST 5u  /* of 8 parts of it: a smaller window was cut without result */
#define HIGH_FEW 6u    /* the same for windows of fewer than MANY frames */
#define MANY 32u
#define LOW_ROUNDS 16u /* in which the shortest round trip counts */
#define LOW_PARTS 3u   /* it is beyond `base` by at most this part of what the mean is */
#define WAIT_FIRST 32u /* rounds from one test to the next; longer after each that finds a queue */
#define WAIT_MOST 1024u
#define AGAIN_ROUNDS 256u /* rounds with noise until a test whether it is still there */
#define RANGE_PARTS 3u    /* a delay that varies by less than this part of itself is no jitter */
#define NOISE_RANGES 2u   /* the noise is at most this multiple of the range */
#define PEAK_ROUNDS 64u   /* the noise is no more than the longest delay of these rounds */

static bool near(uint32_t window, uint32_t other)
{
	return window <= other / 4 * 5 && window >= other / 4 * 3;
}

/* What the round shows of the noise, whether there is a test or not. */
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

/* The rounds from now on have half of the window. */
static void halve(struct weft_cc *cc)
{
	struct weft_cc_noise *n = &cc->delay.jitter;

	n->rounds = 0;
	n->samples = 0;
	n->sum = 0;
	n->late = 0;
	weft_cc_apply(cc, cc->window / TEST_PART);
}

/*
 * The mean of rounds in which the window changed is of no one window: then the first half of the
 * test finds the mean for half of it.
 */
static void test_begin(struct weft_cc *cc)
{
	struct weft_cc_noise *n = &cc->delay.jitter;

	n->ref_mean = n->steady ? n->mean : 0;
	n->ref_window = n->steady ? cc->window : cc->window / TEST_PART;
	n->again = AGAIN_ROUNDS;
	halve(cc);
}

/* Is what the mean round trip has lost what a queue would have lost? */
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

/*
 * With a small window, jitter passes some frames without delay again and again. A queue that other
 * flows keep delays all of them.
 */
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
 * One cut takes the queue of this path away, one round later. A delay that stays beyond the target
 * for OVER_LAST rounds is of other flows, or noise.
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
	/* Also, now and then, whether what counts as noise has become a queue. */
	if (over ? n->over < OVER_LAST || n->wait > 0 || !is_jitter(cc) ||
			    cc->window > n->high / 8 * (many ? HIGH_LEAST : HIGH_FEW)
		 : n->noise == 0 || n->again > 0)
		return false;
	test_begin(cc);
	return true;
}
