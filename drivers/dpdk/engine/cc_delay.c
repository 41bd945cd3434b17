/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Congestion control by queueing delay. doc/raw-lanes.md has the terms and the modes.
 *
 * The algorithm decides once per round. A round lasts one round trip: it ends with the first sample
 * of a frame that was sent after the round had begun.
 */

#include "engine/cc.h"
#include "engine/cc_cause.h"
#include "engine/cc_delay.h"
#include "engine/cc_sample.h"

/* ---------------------------------------------------------------- constants */

#define BYTES_START 15000u
#define WINDOW_PARTS 64u /* the least window is a frame divided by this; by OVER_CUT with `over` */
#define TARGET_SMALL 4u  /* windows of fewer frames have a larger target */
#define JITTER_PARTS 4u  /* the target is at least this part of the jitter of a long path */
#define STILL_FRAMES 2u  /* learn_links(): largest window in frames */
#define STILL_ROUNDS 16u
/*
 * Round trips count as constant while the longest exceeds the shortest by at most a fifth of the
 * difference to the round trip of a small frame.
 */
#define STILL_PART 5u
#define FULL_MIN 4000u   /* ns: least limit that is derived from the delay of a full queue */
#define FULL_ROUNDS 256u /* the estimate of that delay grows by 1/8 every 256 rounds after a cut */
/* rounds after a loss in which the delay of the full queue is collected */
#define FULL_WAIT 3u
/* in targets: a queueing delay beyond this makes the gap between frames no longer */
#define GAP_TARGETS 8u
#define GAP_MOST 2000000u  /* ns: a sender with a longer gap does not notice other flows */
#define PACED 4u           /* windows of fewer frames leave one by one */
#define INCREASE_PARTS 16u /* fair increase per round trip: a frame divided by this */
#define TRIPS_MAX 32u      /* a round counts as at most this number of round trips */
/* see window_increase(): its proportional part doubles after this number of rounds */
#define CLEAR_ROUNDS 4u
#define GROW_PARTS 2u     /* the fair increase of one round is at most half a frame */
#define CALM_ROUNDS 16u   /* after a cut by loss the window grows slowly in these rounds */
#define LOSS_SHIFT_MAX 6u /* at first 1/64 of the bytes may be lost */
#define LOSS_SHIFT_MIN 3u /* at most 1/8, where a smaller window does not reduce the loss */
/* largest loss rate that is taken for the path's own, in 2^-16: 1/4 */
#define LOSS_RATE_MAX 16384u
#define LOSS_BURST 6u   /* frames that may be lost at once */
#define BURST_ROUNDS 4u /* burst_goes_on() observes losses in this number of rounds */
#define BURST_MOST 32u  /* frames; more losses in a round are no burst */
/* frames; smaller windows are cut without waiting for the end of a burst */
#define BURST_WINDOW 12u
#define OVER_TARGETS 4u /* overflows(): longest delay */
#define CUT_WAIT 2u     /* rounds between two cuts by loss */
/* rounds without a cut, after which a dip measures `base` again, if conf.rtt is unknown */
#define UNCUT_ROUNDS 32u
#define GAP_ROUNDS 2u         /* rounds from a gap of the peer on that contain its frames */
#define GAP_CUTS 2u           /* cuts in a row that such gaps prevent */
#define DEEP_EVERY 8u         /* of this number of cuts by delay, one drains the queue further */
#define OLD_NS 10000000000ull /* refresh_base() takes the least round trip of this time */
#define TRIP_MAX 1000000000u  /* ns: a longer sample is no round trip of a network */
#define BLIND_TRIPS 2u        /* a round without a sample ends after this number of round trips */
#define BLIND_NS 1000000u     /* the round trip that is assumed while none is known */
#define BLIND_SLOW 2u         /* less than half a window acknowledged in BLIND_TRIPS: slow hosts */
#define BLIND_PARTS 4u        /* between slow hosts a quarter of the window is added */

/* ---------------------------------------------------------------- window */

/*
 * The limit and the gap follow from the window. The gap is needed for small windows, which are no
 * multiple of a frame.
 */
void weft_cc_apply(struct weft_cc *cc, uint32_t window)
{
	uint32_t frame = cc->conf.frame,
		 least = max32(frame / (cc->delay.over != 0 ? OVER_CUT : WINDOW_PARTS), 1), trip;

	cc->window = min32(max32(least, window), max32(cc->conf.most, 1));
	cc->limit = cc->window;
	cc->gap = 0;
	if (cc->window >= PACED * frame || cc->delay.srtt == 0)
		return;
	cc->limit = (cc->window + frame - 1) / frame * frame;
	/* A longer round trip means that the peer had lost its core. */
	trip = min32(cc->delay.srtt, without_queue(cc) + GAP_TARGETS * target_plain(cc));
	cc->gap = min32(part(trip, frame, cc->window), GAP_MOST);
}

/* The queueing delay that the algorithm steers to, in ns. */
static uint32_t target_queue(const struct weft_cc *cc)
{
	const struct weft_cc_delay *d = &cc->delay;
	uint32_t t = target_plain(cc), frame = cc->conf.frame;

	/* Many senders with a part of a frame each cannot keep the queue as short as a few can. */
	if (cc->window < TARGET_SMALL * frame)
		t += part(t, TARGET_SMALL * frame - cc->window, TARGET_SMALL * frame);
	/* No queue can be steered to a small part of what the jitter adds at random. */
	if (weft_cc_long(cc))
		t = max32(t, min32(d->jitter.range, d->jitter.noise) / JITTER_PARTS);
	/* A window below PACED frames gets too few samples to measure the delay of a full queue. */
	if (d->full != 0 && cc->window >= PACED * frame)
		t = min32(t, max32(d->full / 2, FULL_MIN));
	return t;
}

/*
 * A path that began while a queue was never empty has counted that queue in `base`. The handshake
 * has measured the round trip of small frames earlier, and that bounds `base`: a full frame takes
 * longer only by its transmission time on HOPS links. While the speed of no link is known, no link
 * is assumed to be slower than the rate that this path has achieved.
 */
static void cap_base(struct weft_cc *cc, uint64_t ns)
{
	struct weft_cc_delay *d = &cc->delay;
	uint64_t most;

	if (cc->conf.rtt == 0 || d->round.acked == 0)
		return;
	if (cc->conf.frame_ns == 0) {
		most = (uint64_t)cc->conf.frame * HOPS * ns / d->round.acked;
		if (d->links == 0 || most < d->links)
			d->links = (uint32_t)(most < TRIP_MAX ? most : TRIP_MAX);
	}
	most = (uint64_t)cc->conf.rtt + d->links;
	if (most < d->base)
		d->base = (uint32_t)most;
}

/*
 * With at most STILL_FRAMES in flight this path makes hardly any queue, and the queues of other
 * flows vary. So a constant delay is no queue but a slower link than was known, and `base` is
 * corrected.
 */
static void learn_links(struct weft_cc *cc, uint32_t late, uint32_t queue)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t small = least_small(cc);

	if (cc->window > STILL_FRAMES * cc->conf.frame || queue < target_plain(cc) / 2 ||
	    !d->full_seen || late <= small) {
		d->still = 0;
		return;
	}
	d->still_least = d->still != 0 ? min32(d->still_least, late) : late;
	d->still_most = d->still != 0 ? max32(d->still_most, late) : late;
	if (d->still_most - d->still_least > (late - small) / STILL_PART) {
		d->still_least = d->still_most = late;
		d->still = 0;
	}
	if (++d->still < STILL_ROUNDS)
		return;
	d->still = 0;
	d->base = d->still_least;
	d->links = d->base - small;
}

static void begin_round(struct weft_cc *cc, uint64_t now)
{
	cc->delay.round = (struct weft_cc_round){.at = now, .from = cc->window};
}

/* The window that sustains the rate of this round with @p queue ns of queueing delay. */
static uint32_t window_of_rate(const struct weft_cc *cc, uint64_t now, uint32_t queue)
{
	const struct weft_cc_delay *d = &cc->delay;

	return part(d->round.acked, (uint64_t)without_queue(cc) + queue, now - d->round.at);
}

/* ---------------------------------------------------------------- loss */

/* Did a full queue, whose delay was observed, drop the frames lost in this round? */
static bool by_queue(const struct weft_cc *cc, uint32_t worst, uint32_t queue)
{
	const struct weft_cc_delay *d = &cc->delay;
	uint32_t least;

	if (d->round.lost == 0)
		return false;
	/* Jitter makes single round trips long; a queue that overflowed makes all of them long. */
	least = d->full != 0 ? max32(d->full / 4 * 3, FULL_MIN) : target_queue(cc);
	return worst >= least && queue >= (weft_cc_jitter(cc) ? least / 4 * 3 : least / 4);
}

/*
 * The loss exceeds the allowance. If the loss rate is about the same as before the last cut, the
 * path itself loses at this rate, and the allowance grows. A policer, or a queue that is too short
 * to show as delay, would have lost less after the cut.
 */
static void learn_loss(struct weft_cc_delay *d)
{
	uint64_t sent = d->seen_acked + d->seen_lost;
	uint32_t rate = (uint32_t)(d->seen_lost * 65536 / (sent != 0 ? sent : 1));

	if (rate >= d->loss_before / 4 * 3 && d->loss_before >= rate / 4 * 3 &&
	    rate < LOSS_RATE_MAX && d->loss_shift > LOSS_SHIFT_MIN)
		d->loss_shift--;
	d->loss_before = rate;
	d->seen_acked = d->seen_lost = 0;
}

/*
 * Has a full queue of a long path dropped more than is allowed for? One round trip of this round is
 * as long as with a full queue, or longer than noise makes it. by_queue() examines the last quarter
 * of a round, but bursts of other flows fill and drain a queue in less time. On shorter paths with
 * jitter this rule costs up to 8 % of the link. With queues of less than half of `base`, bursts of
 * other losses would count. A delay of more than OVER_TARGETS targets is mostly jitter.
 */
static bool overflows(const struct weft_cc *cc)
{
	const struct weft_cc_delay *d = &cc->delay;

	return weft_cc_long(cc) && d->mode == WEFT_CC_MODE_DELAY &&
	       (d->full != 0 || d->jitter.noise != 0) && d->round.worst >= d->base / 2 * 3 &&
	       d->round.worst - d->base <= OVER_TARGETS * target_plain(cc) &&
	       d->round.worst >= without_queue(cc) + d->full / 4 * 3;
}

/*
 * Where flows share a queue, a cut of one of them changes neither delay nor losses: the others use
 * the free space. So a test counts the queue as noise, and learn_loss() counts its losses as those
 * of the path. Noise is at most half of the delay of a full queue.
 */
static void learn_overflow(struct weft_cc_delay *d)
{
	if (d->full != 0)
		d->jitter.noise = min32(d->jitter.noise, (d->round.worst - d->base) / 2);
	if (d->loss_shift < LOSS_SHIFT_MAX)
		d->loss_shift++;
	d->loss_before = 0;
	d->seen_acked = d->seen_lost = 0;
}

static bool too_much(struct weft_cc *cc)
{
	struct weft_cc_delay *d = &cc->delay;
	int64_t most = (int64_t)LOSS_BURST * cc->conf.frame;

	if (d->cut_wait == 0) {
		d->seen_acked += d->round.acked;
		d->seen_lost += d->round.lost;
	}
	d->allow += d->round.acked >> d->loss_shift;
	d->allow -= d->round.lost;
	if (d->allow > most)
		d->allow = most;
	if (d->allow >= 0)
		return false;
	d->allow = most / 2;
	if (overflows(cc))
		learn_overflow(d);
	else
		learn_loss(d);
	return true;
}

/*
 * The losses exceed the allowance, and no delay explains them. A queue that is too short to show as
 * delay, or a policer, drops frames of each round while the window stays the same. After a burst of
 * other losses there are rounds without any. So the window does not grow for BURST_ROUNDS, and is
 * cut when each of them has lost more than is allowed for. The first one may have frames of the
 * burst itself, and does not count. More than BURST_MOST frames are no burst; windows of less than
 * BURST_WINDOW frames recover from a cut within few rounds.
 * @return true: the window is to be cut
 */
static bool burst_goes_on(struct weft_cc *cc, bool much, uint32_t queue)
{
	struct weft_cc_delay *d = &cc->delay;

	if (d->round.lost > BURST_MOST * cc->conf.frame) {
		much |= d->burst > 0;
		d->burst = 0;
		return much;
	}
	if (d->burst == 0) {
		if (!much || d->mode != WEFT_CC_MODE_DELAY || weft_cc_climbs(cc) ||
		    cc->window < BURST_WINDOW * cc->conf.frame || queue > target_queue(cc) / 2)
			return much;
		d->burst = BURST_ROUNDS;
		d->burst_lost = 0;
		return false;
	}
	if (d->burst-- == BURST_ROUNDS)
		return false;
	d->burst_lost += d->round.lost > d->round.acked >> d->loss_shift;
	return d->burst == 0 && d->burst_lost == BURST_ROUNDS - 1;
}

/*
 * The window after a loss: what the path has carried, with a queue of an eighth of `base`. It is at
 * least half and at most 7/8 of the present window. Mode START may have been far above that, and
 * leaves at least a quarter and at most the whole window.
 */
static uint32_t after_loss(const struct weft_cc *cc, uint64_t now)
{
	uint32_t w = cc->window, to = window_of_rate(cc, now, cc->delay.base / 8);

	if (cc->delay.mode == WEFT_CC_MODE_START)
		return max32(min32(to, w), w / 4);
	return max32(min32(to, w / 8 * 7), w / 2);
}

/*
 * The frames right behind the lost ones may have the longest round trips. So the largest queueing
 * delay in FULL_WAIT rounds after a loss counts as that of a full queue. After the first time, a
 * quarter of it goes into the estimate.
 */
static void learn_full(struct weft_cc_delay *d, uint32_t worst)
{
	if (d->full_wait == 0)
		return;
	d->full_new = max32(d->full_new, worst);
	if (--d->full_wait > 0)
		return;
	d->full = d->full != 0 ? d->full / 4 * 3 + d->full_new / 4 : d->full_new;
}

static void cut_by_loss(struct weft_cc *cc, uint64_t now, bool by, uint32_t worst, uint32_t queue)
{
	struct weft_cc_delay *d = &cc->delay;

	/* One long round trip next to a lost frame is no full queue. */
	if (by || queue > max32(FULL_MIN, worst / 2)) {
		d->full_new = max32(worst, 1);
		d->full_wait = FULL_WAIT;
	}
	d->calm = 0;
	d->cut_wait = CUT_WAIT;
	d->jitter.ref_window = 0;
	if (d->mode == WEFT_CC_MODE_SHARE) {
		weft_cc_share_loss(cc, by);
		return;
	}
	weft_cc_apply(cc, after_loss(cc, now));
	d->mode = WEFT_CC_MODE_DELAY;
}

/* @return true: the window has been cut, and this round changes nothing else */
static bool window_on_loss(struct weft_cc *cc, uint64_t now, uint32_t worst, uint32_t queue)
{
	struct weft_cc_delay *d = &cc->delay;
	bool by = by_queue(cc, worst, queue), much = too_much(cc);

	by |= much && overflows(cc);
	if (by)
		cc->lost_queue += d->round.lost;
	else
		cc->lost_random += d->round.lost;
	if (d->cut_wait > 0) {
		d->cut_wait--;
		return false;
	}
	/* While the window climbs, rare losses and a long delay together are no full queue. */
	if (weft_cc_climbs(cc))
		by = by && much;
	if (by)
		d->burst = 0;
	else if (!burst_goes_on(cc, much, queue))
		return false;
	cc->cut = by ? WEFT_CC_CUT_QUEUE : WEFT_CC_CUT_LOSS;
	cut_by_loss(cc, now, by, worst, queue);
	return true;
}

/* ---------------------------------------------------------------- delay */

/*
 * When the path becomes longer, its old least round trip never occurs again. If no round in ten
 * seconds had a queue below the target, the least round trip of that time becomes `base`. A deep
 * queue that flows of TCP fill may be beyond the target for longer. Its overflow shows that it is a
 * queue, and then `base` stays.
 */
static void refresh_base(struct weft_cc *cc, uint64_t now, uint32_t least, bool low)
{
	struct weft_cc_delay *d = &cc->delay;

	d->old_low |= low;
	d->old_least = d->old_least != 0 ? min32(d->old_least, least) : least;
	if (now - d->old_at < OLD_NS || weft_cc_overflowed(cc, now))
		return;
	if (!d->old_low && d->old_at != 0) {
		d->base = d->old_least;
		/* These are of the old path. */
		cc->conf.rtt = 0;
		d->small = 0;
		d->full_seen = false;
	}
	d->old_at = now;
	d->old_least = 0;
	d->old_low = false;
}

/*
 * The window grows by a fair and by a proportional part. The fair part is the same for all flows.
 * The proportional part is half of the growth that would fill the free part of the target, at most
 * an eighth of the window. On long paths the target is small compared with `base`, and so is this
 * part: it doubles with every CLEAR_ROUNDS rounds in which the queue was nearly empty.
 */
static void window_increase(struct weft_cc *cc, uint32_t queue, uint32_t target)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t w = cc->window, free = target - queue, most = w / 8, more;
	uint32_t part_of = cc->conf.frame / INCREASE_PARTS;
	uint64_t fair = min32(part_of * d->trips, cc->conf.frame / GROW_PARTS);

	d->clear = queue <= target / 8 ? (uint8_t)min32(d->clear + 1u, UINT8_MAX) : 0;
	if (!d->round.limited || d->burst > 0)
		return;
	/*
	 * A round with lost frames counts as limited. With noise beyond the target, a window that
	 * carries less than half of itself would grow without end.
	 */
	if (weft_cc_long(cc) && d->jitter.noise > target && d->round.acked < w / 2)
		return;
	if (d->calm < CALM_ROUNDS) {
		weft_cc_apply(cc, plus(cc, fair + w / 256));
		return;
	}
	more = part(w, free, 2 * ((uint64_t)without_queue(cc) + queue));
	more = part(more, 1ull << min32(d->clear / CLEAR_ROUNDS, 16), 1);
	weft_cc_apply(cc, plus(cc, fair + min32(more, most)));
}

/*
 * Reduce the window until a quarter of the target is left as queue: an empty queue would be an
 * idle link. Windows below PACED frames leave three quarters, since many flows share the queue then
 * and all of them reduce. They do not reduce while the queue is falling, which is the effect of the
 * cut one round ago.
 *
 * One in DEEP_EVERY cuts drains the queue further: a flow that began later has counted a part of
 * the queue in `base`, and only a shorter queue corrects that. One cut takes at most three quarters
 * of the window.
 */
static void window_decrease(struct weft_cc *cc, uint32_t queue, uint32_t target)
{
	struct weft_cc_delay *d = &cc->delay;
	bool few = cc->window < PACED * cc->conf.frame;
	uint64_t less = queue - target / 4 * (few ? 3 : 1);
	uint64_t all = (uint64_t)queue + without_queue(cc);
	uint32_t much;

	if (few && queue < d->queue_last / 8 * 7)
		return;
	if (++d->cuts % DEEP_EVERY == 0)
		less = queue + min32(d->base / 8, target / 4);
	much = part(cc->window, less, all);
	weft_cc_apply(cc, cc->window - min32(much, cc->window / 4 * 3));
}

/* Cuts as DCTCP does, with half of its factor, because the delay reduces the window, too. */
static void cut_by_marks(struct weft_cc *cc)
{
	const struct weft_cc_round *r = &cc->delay.round;

	cc->cut = WEFT_CC_CUT_MARKS;
	weft_cc_apply(cc, cc->window - part(cc->window / 4, r->marked, max32(r->acked, r->marked)));
}

static uint32_t first_window(const struct weft_cc *cc)
{
	return max32(BYTES_START, 2 * cc->conf.frame);
}

/*
 * The smallest window that a cut by delay leaves. A long path with few bytes under way (requests)
 * does not fill the queue, and a window for these bytes alone would hold them back.
 */
static uint32_t least_kept(const struct weft_cc *cc)
{
	const struct weft_cc_round *r = &cc->delay.round;

	if (!weft_cc_long(cc) || r->limited || r->acked >= cc->window / 2)
		return 0;
	return min32(cc->window, first_window(cc));
}

/*
 * While the peer read nothing, frames waited at the peer, and in no queue. So @p queue may be the
 * gap that the peer reports, and cuts nothing. The frames of a gap are acknowledged in two rounds.
 * Every third cut in a row is made, so false reports do not hide a queue. Marks and losses count.
 */
static bool is_peers_gap(struct weft_cc *cc, uint32_t queue, uint32_t target)
{
	struct weft_cc_delay *d = &cc->delay;

	if (queue <= target || d->gap_rounds == 0 || queue - target > d->gap ||
	    d->gap_cuts == GAP_CUTS) {
		d->gap_cuts = 0;
		return false;
	}
	d->gap_cuts++;
	return true;
}

static void delay_round(struct weft_cc *cc, uint64_t now, uint32_t queue, uint32_t target)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t to, least = least_kept(cc);

	learn_links(cc, queue + d->base, queue);
	weft_cc_look_for_others(cc, queue);
	if (d->mode == WEFT_CC_MODE_SHARE)
		return;
	/* The host's own link may be the limit: a round counts that has used half of the window. */
	d->uncut = queue > target || d->round.acked < cc->window / 2 ? 0 : (uint8_t)(d->uncut + 1);
	if (d->uncut >= UNCUT_ROUNDS && cc->conf.rtt == 0) {
		weft_cc_dip(cc, 2, cc->window);
		return;
	}
	if (weft_cc_noise_spares(cc, queue, target))
		return;
	if (is_peers_gap(cc, queue, target))
		return;
	if (queue > target)
		cc->cut = WEFT_CC_CUT_DELAY;
	if (queue > 4 * target) {
		to = window_of_rate(cc, now, target);
		weft_cc_apply(cc, max32(min32(to, cc->window / 4 * 3), cc->window / 4));
	} else if (queue > target) {
		window_decrease(cc, queue, target);
	} else if (d->round.marked != 0 && queue > target / 4) {
		cut_by_marks(cc);
	} else if (d->round.marked == 0) {
		window_increase(cc, queue, target);
	}
	if (cc->window < least)
		weft_cc_apply(cc, least);
}

static void start_round(struct weft_cc *cc, uint64_t now, uint32_t queue, uint32_t target)
{
	struct weft_cc_delay *d = &cc->delay;
	bool on = weft_cc_start_on(cc, now, queue > target / 2 ? queue : 0);

	if ((queue > target / 2 && !on) || d->round.marked != 0) {
		d->mode = WEFT_CC_MODE_DELAY;
		d->calm = CALM_ROUNDS;
	}
}

static void end_round(struct weft_cc *cc, uint64_t now)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t late = d->round.late != 0 ? d->round.late : d->srtt, delay, queue, target, worst;
	bool test;

	cap_base(cc, now - d->round.at);
	weft_cc_rate_round(cc, now);
	delay = late > d->base ? late - d->base : 0;
	test = weft_cc_noise_round(cc, delay, target_queue(cc));
	queue = late > without_queue(cc) ? late - without_queue(cc) : 0;
	worst = d->round.worst > without_queue(cc) ? d->round.worst - without_queue(cc) : 0;
	target = target_queue(cc);
	cc->target = without_queue(cc) + target;
	/* A window of a part of a frame sends less than once per round trip: rounds are longer. */
	d->trips = (uint8_t)min32((uint32_t)((now - d->round.at) / max32(late, 1)), TRIPS_MAX);
	d->trips = (uint8_t)max32(d->trips, 1);
	refresh_base(cc, now, late, queue < target);
	learn_full(d, worst);
	if (d->calm < UINT32_MAX)
		d->calm++;
	/* The bottleneck may have changed since the last loss, so `full` grows slowly. */
	if (d->calm % FULL_ROUNDS == 0)
		d->full += min32(d->full / 8, UINT32_MAX / 2 - min32(d->full, UINT32_MAX / 2));
	if (d->mode == WEFT_CC_MODE_SHARE && weft_cc_share_contended(cc)) {
		d->mode = WEFT_CC_MODE_DELAY;
		d->look = 0;
		d->over = 0;
	}
	if (!weft_cc_in_dip(cc, queue) && !window_on_loss(cc, now, worst, queue) && !test &&
	    (d->mode == WEFT_CC_MODE_SHARE || !weft_cc_noise_test(cc, delay, target))) {
		if (d->mode == WEFT_CC_MODE_START)
			start_round(cc, now, queue, target);
		if (d->mode == WEFT_CC_MODE_SHARE)
			weft_cc_share_round(cc, now, queue);
		else if (d->mode == WEFT_CC_MODE_DELAY)
			delay_round(cc, now, queue, target);
	}
	d->queue_last = queue;
	d->blind_lost = false;
	if (d->gap_rounds != 0 && --d->gap_rounds == 0)
		d->gap = 0;
	begin_round(cc, now);
}

/* The time after which a round without a sample ends, in ns. */
static uint64_t blind_after(const struct weft_cc *cc)
{
	uint32_t trip = max32(cc->delay.srtt, max32(cc->delay.base, cc->conf.rtt));

	return BLIND_TRIPS * (uint64_t)min32(trip != 0 ? trip : BLIND_NS, TRIP_MAX);
}

/*
 * The growth in a round without samples: the fair increase. If less than half of a window was
 * acknowledged in BLIND_TRIPS round trips, the hosts delay the frames, and the queue was empty in
 * the meantime. Then a window of at least PACED frames grows by a quarter. After a loss the queue
 * may be the reason, so the fair increase remains.
 */
static uint32_t blind_more(const struct weft_cc *cc, uint64_t ns)
{
	uint32_t fair = cc->conf.frame / INCREASE_PARTS, w = cc->window;
	const struct weft_cc_delay *d = &cc->delay;

	if (w >= PACED * cc->conf.frame && !d->blind_lost &&
	    part(w, ns, blind_after(cc)) / BLIND_SLOW > d->round.acked)
		return max32(fair, w / BLIND_PARTS);
	return fair;
}

/*
 * End a round in which no acknowledgement had a round-trip sample, as between hosts that lose
 * their cores most of the time. The queue is unknown then. Losses still cut the window. So do marks
 * in mode DELAY, and without either a window that was the limit grows by blind_more().
 */
static void end_blind(struct weft_cc *cc, uint64_t now)
{
	struct weft_cc_delay *d = &cc->delay;

	if (d->calm < UINT32_MAX)
		d->calm++;
	d->blind_lost |= d->round.lost != 0;
	if (!weft_cc_in_dip(cc, UINT32_MAX) && !window_on_loss(cc, now, 0, 0) &&
	    d->mode == WEFT_CC_MODE_DELAY) {
		if (d->round.marked != 0)
			cut_by_marks(cc);
		else if (d->round.lost == 0 && d->round.limited)
			weft_cc_apply(cc, plus(cc, blind_more(cc, now - d->round.at)));
	}
	begin_round(cc, now);
}

/* ---------------------------------------------------------------- what the sender calls */

static void delay_init(struct weft_cc *cc, const struct weft_cc_conf *conf)
{
	struct weft_cc_delay *d = &cc->delay;

	d->links = HOPS * min32(conf->frame_ns, TRIP_MAX);
	d->loss_shift = LOSS_SHIFT_MAX;
	d->allow = (int64_t)LOSS_BURST * conf->frame;
	d->calm = CALM_ROUNDS;
	weft_cc_apply(cc, first_window(cc));
}

/* The window doubles at most once per round, however many round trips the round lasts. */
static void start_grow(struct weft_cc *cc, uint32_t acked)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t most = part(d->round.from, 2, 1);

	if (cc->window < most)
		weft_cc_apply(cc, plus(cc, min32(acked, most - cc->window)));
	if (d->start_most != 0 && cc->window >= d->start_most) {
		d->mode = WEFT_CC_MODE_DELAY;
		d->calm = CALM_ROUNDS;
	}
}

static void delay_ack(struct weft_cc *cc, const struct weft_cc_ack *a)
{
	struct weft_cc_delay *d = &cc->delay;
	struct weft_cc_round *r = &d->round;

	if (a->now < r->at || r->at == 0)
		begin_round(cc, a->now);
	r->acked += min32(a->acked, UINT32_MAX - r->acked);
	r->marked += min32(a->marked, UINT32_MAX - r->marked);
	r->limited |= a->limited || a->inflight + cc->conf.frame > cc->limit;
	cc->marked += a->marked;
	if (cc->conf.meter)
		weft_cc_meter(cc, a);
	if (d->mode == WEFT_CC_MODE_START && a->marked != 0) {
		d->mode = WEFT_CC_MODE_DELAY;
		d->calm = CALM_ROUNDS;
	}
	if (d->mode == WEFT_CC_MODE_START && !d->climb.held && a->inflight >= cc->window / 2)
		start_grow(cc, a->acked);
	if (a->rtt == 0 || a->rtt > TRIP_MAX) {
		if (a->now - r->at >= blind_after(cc))
			end_blind(cc, a->now);
		return;
	}
	weft_cc_sample(cc, a);
	if (a->now - r->at >= a->rtt)
		end_round(cc, a->now);
}

static void delay_peer_gap(struct weft_cc *cc, uint32_t ns)
{
	struct weft_cc_delay *d = &cc->delay;

	if (ns <= target_plain(cc))
		return;
	d->gap = max32(d->gap, ns);
	d->gap_rounds = GAP_ROUNDS;
}

static void delay_loss(struct weft_cc *cc, uint32_t bytes, uint64_t now)
{
	struct weft_cc_round *r = &cc->delay.round;

	(void)now;
	r->lost += min32(bytes, UINT32_MAX - r->lost);
}

/*
 * One timeout may mean that the peer had lost its core: its next acknowledgement reports which
 * frames are lost. Two timeouts in a row mean an outage, or a queue that no frame passes.
 */
static void delay_timeout(struct weft_cc *cc, unsigned int tries, uint64_t now)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t first = first_window(cc);

	cc->delay.jitter.ref_window = 0;
	if (tries < 2) {
		d->undo_window = 0; /* saved in earlier timeouts: not to be restored */
		return;
	}
	cc->cut = WEFT_CC_CUT_TIMEOUT;
	if (tries == 2) {
		d->undo_window = cc->window;
		d->undo_most = d->start_most;
		d->undo_mode = d->mode;
		/* Doubling must not reach the window that was too large. */
		d->start_most = max32(cc->window / 2, first);
		weft_cc_apply(cc, max32(min32(cc->window / 2, first),
					min32(cc->window, cc->conf.frame)));
		begin_round(cc, now);
	}
	d->mode = WEFT_CC_MODE_START;
	d->over = 0;
}

/* The timeouts were no outage: the state before them is valid again. */
static void delay_spurious(struct weft_cc *cc)
{
	struct weft_cc_delay *d = &cc->delay;

	if (d->undo_window == 0)
		return;
	d->mode = d->undo_mode;
	d->start_most = d->undo_most;
	weft_cc_apply(cc, max32(cc->window, d->undo_window));
	d->undo_window = 0;
}

static void delay_idle(struct weft_cc *cc)
{
	uint32_t first = first_window(cc);

	cc->delay.jitter.ref_window = 0;
	if (cc->window <= first)
		return;
	cc->delay.mode = WEFT_CC_MODE_START;
	cc->delay.start_most = 0;
	weft_cc_apply(cc, max32(first, cc->window / 4));
}

const struct weft_cc_ops weft_cc_delay = {
	.name = "delay",
	.init = delay_init,
	.on_ack = delay_ack,
	.on_loss = delay_loss,
	.on_timeout = delay_timeout,
	.on_spurious = delay_spurious,
	.on_idle = delay_idle,
	.on_peer_gap = delay_peer_gap,
};
