/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Congestion control by queueing delay: doc/congestion.md has the equations and says why.
 *
 * Decisions fall once per round, which is a round trip: it ends with the first sample of a frame
 * that was sent after its begin.
 */

#include "engine/cc_delay.h"
#include "engine/cc_list.h"

#define BYTES_START 15000u
#define WINDOW_PARTS 64u /* the least window: a frame, cut into so many */
#define TARGET_SMALL 4u  /* frames: smaller windows have a larger target */
#define STILL_FRAMES 2u  /* in flight at most */
#define STILL_ROUNDS 16u
#define STILL_PART 5u  /* of the least time in queues or on slow links, that it may change by */
#define FULL_MIN 4000u /* ns */
#define FULL_ROUNDS 256u
#define FULL_WAIT 3u       /* rounds until what was seen of a full queue counts */
#define GAP_TARGETS 8u     /* of queueing, at most, that the gap between frames follows */
#define GAP_MOST 2000000u  /* ns: who sends less does not see what others do */
#define PACED 4u           /* windows of fewer frames leave one by one */
#define INCREASE_PARTS 16u /* fair increase per round: a frame, cut into so many */
#define TRIPS_MAX 32u
#define CLEAR_ROUNDS 4u
#define GROW_PARTS 2u        /* of a frame: most of the fair increase at once */
#define CALM_ROUNDS 16u      /* after a loss by a queue the window grows slowly for so long */
#define LOSS_SHIFT_MAX 6u    /* at first 1/64 of what is sent may be lost */
#define LOSS_SHIFT_MIN 3u    /* and 1/8 at most where less sent is not less lost */
#define LOSS_RATE_MAX 16384u /* 2^-16: a quarter */
#define LOSS_BURST 6u        /* frames that may be lost at once */
#define CUT_WAIT 2u          /* rounds between two cuts by loss */
#define UNCUT_ROUNDS 32u     /* a limit that was not cut for so long looks what is behind it */
#define DEEP_EVERY 8u        /* cut by delay */
#define OLD_NS 10000000000ull
#define TRIP_MAX 1000000000u /* ns: a sample beyond is nobody's round trip */
#define BLIND_TRIPS 2u       /* a round without a sample ends after so many round trips */
#define BLIND_NS 1000000u    /* a round trip where none is known */
#define BLIND_SLOW 2u        /* so many times less than two windows in that time */
#define BLIND_PARTS 4u       /* of the window: growth between hosts that are so slow */

/* ---------------------------------------------------------------- window */

/* What follows from the window: the sender's limit, and the gap that makes parts of a frame. */
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
	/* A round trip that is longer than a queue of ours is a peer's that was off its core. */
	trip = min32(cc->delay.srtt, cc->delay.base + GAP_TARGETS * target_plain(cc));
	cc->gap = min32(part(trip, frame, cc->window), GAP_MOST);
}

/* Queueing delay that is aimed at. */
static uint32_t target_queue(const struct weft_cc *cc)
{
	const struct weft_cc_delay *d = &cc->delay;
	uint32_t t = target_plain(cc), frame = cc->conf.frame;

	/* Who has only a part of a frame can't keep the queue as short as few can. */
	if (cc->window < TARGET_SMALL * frame)
		t += part(t, TARGET_SMALL * frame - cc->window, TARGET_SMALL * frame);
	/* Nor do they have enough round trips to know a full queue by. */
	if (d->full != 0 && cc->window >= PACED * frame)
		t = min32(t, max32(d->full / 2, FULL_MIN));
	return t;
}

/*
 * Who came to a queue that was never empty took it for the way. The handshake has asked earlier,
 * with small frames; full ones take longer by their own time on a few links. As long as nobody
 * knows of a slow one, none is slower than what this path gets through.
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
 * With a frame or two in flight there is hardly a queue of our own, and one of others never stays
 * as long as it is. What stays the same is the way: a link of it is slower than was known.
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

/* What this path got through, with @p queue ns of it waiting. */
static uint32_t achieved(const struct weft_cc *cc, uint64_t now, uint32_t queue)
{
	const struct weft_cc_delay *d = &cc->delay;

	return part(d->round.acked, (uint64_t)d->base + queue, now - d->round.at);
}

/* ---------------------------------------------------------------- loss */

/* Were frames lost in this round by a queue that was full? Else the way loses them anyway. */
static bool by_queue(const struct weft_cc *cc, uint32_t worst)
{
	const struct weft_cc_delay *d = &cc->delay;

	if (d->round.lost == 0)
		return false;
	if (d->full != 0)
		return worst >= max32(d->full / 4 * 3, FULL_MIN);
	return worst >= target_queue(cc);
}

/*
 * More is lost than may be. Where a smaller window did not help the last time, the way loses
 * that much by itself; a policer or a queue too short to be felt would have lost less.
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
	learn_loss(d);
	return true;
}

/*
 * What got through, an eighth less than was; half at least. At the start it was too much by far.
 */
static uint32_t after_loss(const struct weft_cc *cc, uint64_t now)
{
	uint32_t w = cc->window, to = achieved(cc, now, cc->delay.base / 8);

	if (cc->delay.mode == WEFT_CC_MODE_START)
		return max32(min32(to, w), w / 4);
	return max32(min32(to, w / 8 * 7), w / 2);
}

/*
 * Frames were lost, and the longest round trips may be of those right behind them: what they show
 * within two rounds is what a full queue is.
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

static void cut_by_loss(struct weft_cc *cc, uint64_t now, bool queue, uint32_t worst)
{
	struct weft_cc_delay *d = &cc->delay;

	if (queue || worst > max32(FULL_MIN, d->base / 64)) {
		d->full_new = max32(worst, 1);
		d->full_wait = FULL_WAIT;
	}
	d->calm = 0;
	d->cut_wait = CUT_WAIT;
	if (d->mode == WEFT_CC_MODE_SHARE) {
		weft_cc_share_loss(cc);
		return;
	}
	weft_cc_apply(cc, after_loss(cc, now));
	d->mode = WEFT_CC_MODE_DELAY;
}

/* @return the window has been cut, and nothing else is to be done in this round */
static bool loss(struct weft_cc *cc, uint64_t now, uint32_t worst)
{
	struct weft_cc_delay *d = &cc->delay;
	bool queue = by_queue(cc, worst), much = too_much(cc);

	if (queue)
		cc->lost_queue += d->round.lost;
	else
		cc->lost_random += d->round.lost;
	if (d->cut_wait > 0) {
		d->cut_wait--;
		return false;
	}
	if (!queue && !much)
		return false;
	cut_by_loss(cc, now, queue, worst);
	return true;
}

/* ---------------------------------------------------------------- delay */

/*
 * The least round trip of a way that has become longer is never seen again. When for ten seconds
 * no round came near the target, what was the least in the meantime is the way's.
 */
static void refresh_base(struct weft_cc *cc, uint64_t now, uint32_t least, bool low)
{
	struct weft_cc_delay *d = &cc->delay;

	d->old_low |= low;
	d->old_least = d->old_least != 0 ? min32(d->old_least, least) : least;
	if (now - d->old_at < OLD_NS)
		return;
	if (!d->old_low && d->old_at != 0) {
		d->base = d->old_least;
		/* The handshake saw another way, and so did the least of small and full frames. */
		cc->conf.rtt = 0;
		d->small = 0;
		d->full_seen = false;
	}
	d->old_at = now;
	d->old_least = 0;
	d->old_low = false;
}

/*
 * Fair: the same for all. Proportional: half of what is free of the target, an eighth at most;
 * where the queue was empty for long, or is short beside the way, ever more.
 */
static void increase(struct weft_cc *cc, uint32_t queue, uint32_t target)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t w = cc->window, free = target - queue, most = w / 8, more;
	uint32_t part_of = cc->conf.frame / INCREASE_PARTS;
	uint64_t fair = min32(part_of * d->trips, cc->conf.frame / GROW_PARTS);

	d->clear = queue <= target / 8 ? (uint8_t)min32(d->clear + 1u, UINT8_MAX) : 0;
	if (!d->round.limited)
		return;
	if (d->calm < CALM_ROUNDS) {
		weft_cc_apply(cc, plus(cc, fair + w / 256));
		return;
	}
	more = part(w, free, 2 * ((uint64_t)d->base + queue));
	more = part(more, 1ull << min32(d->clear / CLEAR_ROUNDS, 16), 1);
	weft_cc_apply(cc, plus(cc, fair + min32(more, most)));
}

/*
 * To a quarter of the target: an empty queue would be an idle link. With few frames to three
 * quarters, for then many share the queue, and all do the same; what falls already falls by what
 * was cut a round ago. Now and then further, for who came later and took what waited then for the
 * way sees only so that it is shorter. No more than three quarters at once.
 */
static void decrease(struct weft_cc *cc, uint32_t queue, uint32_t target)
{
	struct weft_cc_delay *d = &cc->delay;
	bool few = cc->window < PACED * cc->conf.frame;
	uint64_t less = queue - target / 4 * (few ? 3 : 1), all = (uint64_t)queue + d->base;
	uint32_t much;

	if (few && queue < d->queue_last / 8 * 7)
		return;
	if (++d->cuts % DEEP_EVERY == 0)
		less = queue + min32(d->base / 8, target / 4);
	much = part(cc->window, less, all);
	weft_cc_apply(cc, cc->window - min32(much, cc->window / 4 * 3));
}

/* As DCTCP, and half as much: the delay is felt, too. */
static void cut_by_marks(struct weft_cc *cc)
{
	const struct weft_cc_round *r = &cc->delay.round;

	weft_cc_apply(cc, cc->window - part(cc->window / 4, r->marked, max32(r->acked, r->marked)));
}

static void delay_round(struct weft_cc *cc, uint64_t now, uint32_t queue, uint32_t target)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t to;

	learn_links(cc, queue + d->base, queue);
	weft_cc_look_for_others(cc, queue);
	if (d->mode == WEFT_CC_MODE_SHARE)
		return;
	/*
	 * Who uses half of it fills it, even if a link of its own keeps it from being the limit.
	 */
	d->uncut = queue > target || d->round.acked < cc->window / 2 ? 0 : (uint8_t)(d->uncut + 1);
	if (d->uncut >= UNCUT_ROUNDS && cc->conf.rtt == 0) {
		weft_cc_dip(cc, 2, cc->window);
		return;
	}
	if (queue > 4 * target) {
		to = achieved(cc, now, target);
		weft_cc_apply(cc, max32(min32(to, cc->window / 4 * 3), cc->window / 4));
	} else if (queue > target) {
		decrease(cc, queue, target);
	} else if (d->round.marked != 0 && queue > target / 4) {
		cut_by_marks(cc);
	} else if (d->round.marked == 0) {
		increase(cc, queue, target);
	}
}

static void start_round(struct weft_cc *cc, uint32_t queue, uint32_t target)
{
	struct weft_cc_delay *d = &cc->delay;

	if (queue > target / 2 || d->round.marked != 0) {
		d->mode = WEFT_CC_MODE_DELAY;
		d->calm = CALM_ROUNDS;
	}
}

static void end_round(struct weft_cc *cc, uint64_t now)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t late = d->round.late != 0 ? d->round.late : d->srtt, queue, target, worst;

	cap_base(cc, now - d->round.at);
	queue = late > d->base ? late - d->base : 0;
	worst = d->round.worst > d->base ? d->round.worst - d->base : 0;
	target = target_queue(cc);
	cc->target = d->base + target;
	/* Parts of a frame are further apart than round trips. */
	d->trips = (uint8_t)min32((uint32_t)((now - d->round.at) / max32(late, 1)), TRIPS_MAX);
	d->trips = (uint8_t)max32(d->trips, 1);
	refresh_base(cc, now, late, queue < target);
	learn_full(d, worst);
	if (d->calm < UINT32_MAX)
		d->calm++;
	/* The way may have another queue by now. */
	if (d->calm % FULL_ROUNDS == 0)
		d->full += min32(d->full / 8, UINT32_MAX / 2 - min32(d->full, UINT32_MAX / 2));
	if (d->mode == WEFT_CC_MODE_SHARE && weft_cc_share_crowd(cc)) {
		d->mode = WEFT_CC_MODE_DELAY;
		d->look = 0;
		d->over = 0;
	}
	if (!weft_cc_in_dip(cc, queue) && !loss(cc, now, worst)) {
		if (d->mode == WEFT_CC_MODE_START)
			start_round(cc, queue, target);
		if (d->mode == WEFT_CC_MODE_SHARE)
			weft_cc_share_round(cc, queue);
		else if (d->mode == WEFT_CC_MODE_DELAY)
			delay_round(cc, now, queue, target);
	}
	d->queue_last = queue;
	d->blind_lost = false;
	begin_round(cc, now);
}

/* How long a round may last without a sample. */
static uint64_t blind_after(const struct weft_cc *cc)
{
	uint32_t trip = max32(cc->delay.srtt, max32(cc->delay.base, cc->conf.rtt));

	return BLIND_TRIPS * (uint64_t)min32(trip != 0 ? trip : BLIND_NS, TRIP_MAX);
}

/*
 * The fair increase. Where far less came back in @p ns than the way carries in that time it is the
 * hosts that keep the window for so long, and the queue has been empty meanwhile; unless frames
 * get lost: then it is the queue.
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
 * A round in which no acknowledgement told a round trip, as where hosts are off their cores most of
 * the time. Nothing is known of the queue, but losses and marks are: those cut the window, and
 * without them it grows by the fair increase only.
 */
static void end_blind(struct weft_cc *cc, uint64_t now)
{
	struct weft_cc_delay *d = &cc->delay;

	if (d->calm < UINT32_MAX)
		d->calm++;
	d->blind_lost |= d->round.lost != 0;
	if (!weft_cc_in_dip(cc, UINT32_MAX) && !loss(cc, now, 0) && d->mode == WEFT_CC_MODE_DELAY) {
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
	weft_cc_apply(cc, max32(BYTES_START, 2 * conf->frame));
}

/* Twice as much in a round, however many round trips it takes to end it. */
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
	if (d->mode == WEFT_CC_MODE_START && a->inflight >= cc->window / 2)
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

static void delay_loss(struct weft_cc *cc, uint32_t bytes, uint64_t now)
{
	struct weft_cc_round *r = &cc->delay.round;

	(void)now;
	r->lost += min32(bytes, UINT32_MAX - r->lost);
}

/*
 * One timeout may be the peer's, off its core; what it says after it tells which frames were
 * lost. Two in a row are an outage or a queue that nothing passes.
 */
static void delay_timeout(struct weft_cc *cc, unsigned int tries, uint64_t now)
{
	struct weft_cc_delay *d = &cc->delay;
	uint32_t first = max32(BYTES_START, 2 * cc->conf.frame);

	if (tries < 2) {
		d->undo_window = 0; /* of another silence: nothing is to come back */
		return;
	}
	if (tries == 2) {
		d->undo_window = cc->window;
		d->undo_most = d->start_most;
		d->undo_mode = d->mode;
		/* What was too much is not to be doubled to again. */
		d->start_most = max32(cc->window / 2, first);
		weft_cc_apply(cc, max32(min32(cc->window / 2, first),
					min32(cc->window, cc->conf.frame)));
		begin_round(cc, now);
	}
	d->mode = WEFT_CC_MODE_START;
	d->over = 0;
}

/* It was no outage: nothing has changed. */
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
	uint32_t first = max32(BYTES_START, 2 * cc->conf.frame);

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
};
