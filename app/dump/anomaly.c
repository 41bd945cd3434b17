/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults of the directions of a lane, by the fates of its frames; the strongest of all faults. */

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "dump/anomaly.h"
#include "dump/delay.h"
#include "dump/fault.h"
#include "dump/host.h"
#include "dump/past.h"
#include "dump/trace.h"

/* ---- kinds of loss -------------------------------------------------------------------------- */

/*
 * Kinds of loss. Queues and policers drop the excess over their rate: lost frames follow many
 * bytes, or frames that had waited. Bursts lose neighbours, independent of the load. All other loss
 * is random.
 */

#define RANK_LIMIT 0.62 /* least rank_of() of a queue's loss; also three deviations above 0.5 */
#define LONG_RUN 4.5    /* queues lose fewer frames in a row, on average */
#define RANK_LONG 0.85  /* rank_of() the load from which LONG_RUN is no limit: rare large bursts */
#define SHORT_RUN 2.0   /* average frames lost in a row from which on the loss is a burst's */

/* The probability that a lost frame has a higher rank than one that came; 0.5 = no correlation. */
static double rank_of(const struct trace_ranks *r)
{
	double better = 0, below = 0, gone = 0;

	for (unsigned int i = 0; i < TRACE_RANKS; i++) {
		better += r->gone[i] * (below + r->came[i] / 2.0);
		below += r->came[i];
		gone += r->gone[i];
	}
	return gone > 0 && below > 0 ? better / (gone * below) : 0.5;
}

/* Classify losses that are neither a blackhole's nor an MTU's. */
static enum trace_fault trace_kind_of_loss(const struct trace_flow *f)
{
	double run = (double)f->lost / (double)f->runs, load = rank_of(&f->by_load),
	       rank = fmax(load, rank_of(&f->by_delay)),
	       limit = 0.5 + 3 / sqrt(12.0 * (double)f->lost);

	if (limit < RANK_LIMIT)
		limit = RANK_LIMIT;
	if (rank >= limit && (run < LONG_RUN || load >= RANK_LONG))
		return FAULT_QUEUE_LOSS;
	return run >= SHORT_RUN ? FAULT_BURST_LOSS : FAULT_RANDOM_LOSS;
}

/* ---- lanes ---------------------------------------------------------------------------------- */

#define GAP_FACTOR 3      /* losses count if their share is this multiple of gaps_of() or more */
#define LEFT_NS 18000000u /* ns within which both ends stop: left_at_once() */
#define PROVED 2u         /* FAULT_SEVERAL for corruption and duplication, which one frame proves */
#define MTU_FRAMES 3u     /* lost frames that show a smaller MTU, at least */
#define MTU_SEARCH 9u     /* MTU_FRAMES where the capture may begin after the change of the MTU */

/* Are half or more of the lost frames in runs that last long, or until the end? */
static bool is_hole(const struct trace_flow *f)
{
	return f->holes && 2 * f->hole_lost >= f->lost;
}

/*
 * From the first loss on, no frame as long as the lost ones came, and shorter frames did. Before
 * the first loss such long frames came. A flight recorder's file may lack that time. Then
 * MTU_SEARCH losses are required, since an end that searches for the MTU of a new path loses fewer,
 * or the lane's history shows that its sender has found a smaller MTU.
 */
static bool is_mtu(const struct trace *t, const struct trace_flow *f)
{
	uint64_t least = past_lowered(t, &f->out) ? MTU_FRAMES : MTU_SEARCH;
	bool had = f->came_max_before >= f->lost_min ||
		   (f->lost >= least && trace_is_recorder(t, f->in.file));

	return f->lost >= MTU_FRAMES && f->large_came_at == 0 && had && f->came_max_since > 0;
}

static bool within(const struct trace_sample *s, unsigned int n, uint64_t from, uint64_t to)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (s[i].time > from && s[i].time < to)
			return true;
	return false;
}

/* Did the sender of the flow send frames in this time? */
static bool spoke(const struct trace_flow *f, uint64_t from, uint64_t to)
{
	return within(f->came, f->num_came, from, to) || within(f->gone, f->num_gone, from, to);
}

/*
 * Did both ends stop within LEFT_NS after their longest losses began? An end that finds a dead lane
 * by silence sends for more than 20 ms (doc/raw-lanes.md). When a device reports that its link is
 * down, both ends stop earlier.
 */
static bool left_at_once(const struct trace *t, const struct trace_flow *f,
			 const struct trace_flow *g)
{
	uint64_t last = f->last > g->last ? f->last : g->last;

	return last < f->longest.from + LEFT_NS && last < g->longest.from + LEFT_NS &&
	       last + LEFT_NS < t->now;
}

/*
 * A receiver to which nothing comes has nothing to acknowledge: its silence alone is no evidence.
 * But a host with DATA to send, which stops at once, has lost its link.
 */
static bool is_down(const struct trace_flow *g, const struct trace_run *r)
{
	return g->data_at &&
	       spoke(g, r->from > FAULT_BUSY_NS ? r->from - FAULT_BUSY_NS : 0, r->from) &&
	       g->data_at < r->from + FAULT_DOWN_NS && g->data_at + FAULT_BUSY_NS > r->from &&
	       !spoke(g, r->from, r->from + FAULT_DOWN_NS);
}

static struct trace_anomaly *one_way(const struct trace *t, const struct trace_flow *f,
				     const struct trace_flow *g, struct fault_list *l)
{
	const struct trace_run *r = &f->longest;
	bool other = g && spoke(g, r->from, r->to);

	return fault_add(l, FAULT_BLACKHOLE_ONE_WAY, trace_index(t, f), f->in.file, r->from,
			 "%" PRIu64 " frames lost in a row in %.3f ms; %s%s", r->count,
			 fault_ms(r->to - r->from),
			 other ? "frames were sent the other way"
			       : "nothing was sent the other way",
			 f->holes > 1 ? "; it is not the only such time" : "");
}

static void hole(const struct trace *t, const struct trace_flow *f, const struct trace_flow *g,
		 struct fault_list *l)
{
	const struct trace_run *r = &f->longest;
	uint64_t first =
		g && g->longest.count && g->longest.from < r->from ? g->longest.from : r->from;
	struct trace_anomaly *a;

	if (g && !is_hole(g) && is_down(g, r))
		a = fault_add(l, FAULT_LANE_DOWN, trace_index(t, f), f->in.file, r->from,
			      "%" PRIu64
			      " frames lost in a row, and the receiver, which was sending, "
			      "sends no data on this lane from then on",
			      r->count);
	else if (g && is_hole(g) && left_at_once(t, f, g))
		a = fault_add(l, FAULT_LANE_DOWN, trace_index(t, f), f->in.file, first,
			      "no frames arrive, and both ends have left the lane after %.3f ms: "
			      "earlier than silence would have shown it",
			      fault_ms((f->last > g->last ? f->last : g->last) - r->from));
	else if (g && is_hole(g) && g->longest.from < r->to && r->from < g->longest.to)
		a = fault_add(l, FAULT_BLACKHOLE_BOTH_WAYS, trace_index(t, f), f->in.file, first,
			      "%" PRIu64 " and %" PRIu64 " frames lost in a row, both ways at once",
			      r->count, g->longest.count);
	else
		a = one_way(t, f, g, l);
	a->share = fault_share(f->hole_lost, f->judged);
	a->weight = 2.3;
}

static void counted(const struct trace *t, const struct trace_flow *f, enum trace_fault fault,
		    uint64_t count, uint64_t first, const char *what, double base,
		    struct fault_list *l)
{
	uint64_t least =
		fault == FAULT_CORRUPTION || fault == FAULT_DUPLICATION ? PROVED : FAULT_SEVERAL;
	/* Such frames prove themselves: if fewer are judged, they are compared with all frames. */
	uint64_t all = least == PROVED && f->judged < count ? f->frames + count : f->judged;
	double share = fault_share(count, all);
	struct trace_anomaly *a;
	uint64_t since;

	if (!count)
		return;
	a = fault_add(l, fault, trace_index(t, f), f->in.file, first,
		      "%" PRIu64 " of %" PRIu64 " frames %s", count, all, what);
	a->share = share;
	a->weight = base + (share > 0.09 ? 0.9 : 10 * share);
	a->observation = (fault == FAULT_REORDERING ? f->overtaken : count) < least ||
			 share < FAULT_FRAME_SHARE;
	/* The frames of a flight recorder's file may all be newer than the first such event. */
	since = fault == FAULT_CORRUPTION    ? past_since(t, &f->in, HISTORY_DAMAGED)
		: fault == FAULT_DUPLICATION ? past_since(t, &f->in, HISTORY_TWICE)
		: fault == FAULT_REORDERING  ? 0
					     : past_since(t, &f->out, HISTORY_AGAIN);
	if (since && since < a->time && !a->observation)
		a->time = since;
}

/* The share of acknowledged frames that a capture lacks, though it reports no lost records. */
static double gaps_of(const struct trace *t, uint8_t file)
{
	const struct trace_flow *f;
	double most = 0, share;
	unsigned int i;

	for (i = 0; i < t->num_flows; i++) {
		f = &t->flow[i];
		if (!f->in.known || f->in.file != file || f->unseen_in < FAULT_SEVERAL)
			continue;
		share = fault_share(f->unseen_in, f->judged);
		most = share > most ? share : most;
	}
	return most;
}

/* The number of lost frames that are longer than each one that came since the first loss. */
static uint64_t beyond_all(const struct trace_flow *f)
{
	unsigned int i;
	uint64_t n = 0;

	for (i = 0; f->came_max_since && i < f->num_gone; i++)
		n += f->gone[i].len > f->came_max_since;
	return n;
}

/*
 * The number of frames that were lost because the path's MTU has fallen: in this connection, if its
 * sender has found a smaller one, or in an earlier one. A later connection searches for the MTU: it
 * loses frames that are longer than any that come, or as long as those that were lost before.
 */
static uint64_t too_long(const struct trace *t, const struct trace_flow *f)
{
	uint64_t most = past_lowered(t, &f->out) ? beyond_all(f) : 0, n;
	const struct trace_flow *g;
	unsigned int i;
	uint32_t shortest;

	for (g = t->flow; g < t->flow + t->num_flows; g++) {
		if (g == f || !trace_same_ports(f, g) || !is_mtu(t, g))
			continue;
		shortest = f->large_came_at ? g->lost_min : 0;
		for (i = 0, n = 0; i < f->num_gone; i++)
			n += f->gone[i].time >= g->first_lost && f->gone[i].len >= shortest;
		most = n > most ? n : most;
	}
	return most;
}

/*
 * Losses that corruption, an MTU and holes do not explain, which have verdicts of their own. A
 * frame that arrives changed also counts as lost, because the frame that was sent is missing. A
 * frame whose changed bits are in the headers of Ethernet, IP or UDP does not arrive at all, which
 * is about one in two of the short ones. So each changed frame explains two losses.
 */
static void losses(const struct trace *t, const struct trace_flow *f, bool hole,
		   struct fault_list *l)
{
	uint64_t other = 2 * f->changed + too_long(t, f), lost;

	if (f->holes)
		other += f->hole_lost;
	else if (hole) /* its last frames, behind which none came, met the hole, too */
		other += f->run.count;
	lost = other < f->lost ? f->lost - other : 0;
	if (!lost || fault_share(lost, f->judged) < GAP_FACTOR * gaps_of(t, f->in.file))
		return;
	counted(t, f, trace_kind_of_loss(f), lost, f->first_lost, "did not come", 0.9, l);
}

/* Losses that only the history of the lane shows, as its frames are newer. */
static void past_losses(const struct trace *t, const struct trace_flow *f, struct fault_list *l)
{
	const struct trace_anomaly *a;
	struct trace_anomaly *b;
	struct past_loss p;

	/* Frames that show a fault of a lane name its kind better. */
	for (a = l->a; a < l->a + l->num; a++)
		if (a->flow != TRACE_NONE && !a->observation && a->fault != FAULT_DELAY)
			return;
	if (!past_lost(t, f, &p))
		return;
	if (past_lowered(t, &f->out) >= p.since) {
		fault_add(
			l, FAULT_PATH_MTU, trace_index(t, f), f->in.file, p.since,
			"by the history of the lane, %u of %u frames were sent again, and then its "
			"sender went on with smaller ones",
			p.again, p.sent)
			->weight = 2.1;
		return;
	}
	b = fault_add(
		l, p.frames >= SHORT_RUN * p.slots ? FAULT_BURST_LOSS : FAULT_RANDOM_LOSS,
		trace_index(t, f), f->in.file, p.since,
		"by the history of the lane, %u of %u frames were sent again, and %u of these "
		"had not come",
		p.again, p.sent, p.frames);
	b->share = fault_share(p.frames, p.sent);
	b->weight = 0.9 + b->share;
}

/* Delays that only the history of the lane shows, as its frames are newer. */
static void past_delays(const struct trace *t, const struct trace_flow *f, struct fault_list *l)
{
	struct trace_anomaly *a;
	struct trace_delay d;

	if (!past_delayed(t, f, &d))
		return;
	a = fault_add(l, FAULT_DELAY, trace_index(t, f), f->in.file, d.time,
		      "by the history of the lane, frames take at least %.3f ms longer than the "
		      "fastest before; another lane, or the other way, is as fast as before",
		      fault_ms((uint64_t)d.after));
	a->of_path = true;
	a->weight = 0.2 + (double)d.after / 1e11;
}

static void delays(const struct trace *t, const struct trace_flow *f, struct fault_list *l)
{
	struct trace_delay d, past;
	struct trace_anomaly *a;

	if (!trace_delayed(t, f, &d)) {
		past_delays(t, f, l);
		return;
	}
	if (past_delayed(t, f, &past) && past.time < d.time) {
		d.time = past.time;
		d.of_path = true;
	}
	a = fault_add(
		l, FAULT_DELAY, trace_index(t, f), f->in.file, d.time,
		d.of_path ? "frames take %.3f ms and more instead of %.3f; no busy host explains "
			    "it: another lane or way is faster then, or no frame is for long"
			  : "frames take %.3f ms instead of %.3f (one in ten is faster)",
		(double)d.after / 1e6, (double)d.before / 1e6);
	a->of_path = d.of_path;
	a->weight = 0.2 + (double)(d.after - d.before) / 1e11;
}

static uint64_t moved(const struct trace_flow *f)
{
	return f->lost && f->first_lost < f->moved_at ? f->first_lost : f->moved_at;
}

/* The frames of a flight recorder's file may all be newer than the change of the MTU. */
static uint64_t mtu_since(const struct trace *t, const struct trace_flow *f)
{
	uint64_t again = past_since(t, &f->out, HISTORY_AGAIN), lowered = past_lowered(t, &f->out);
	uint64_t since = f->first_lost;

	since = again && again < since ? again : since;
	return lowered && lowered < since ? lowered : since;
}

/* Add a fault that explains all losses of a direction. @return whether there is one */
static bool explained(const struct trace *t, const struct trace_flow *f, struct fault_list *l)
{
	if (f->moved_at) {
		fault_add(l, FAULT_MOVED_MAC, trace_index(t, f), f->in.file, moved(f),
			  "frames go to another MAC address than before")
			->weight = 2.2;
		return true;
	}
	if (!is_mtu(t, f))
		return false;
	fault_add(l, FAULT_PATH_MTU, trace_index(t, f), f->in.file, mtu_since(t, f),
		  "frames of %u bytes and more no longer arrive, shorter ones do", f->lost_min)
		->weight = 2.1;
	return true;
}

/* Add the faults of both directions of a lane. */
static void lane_faults(const struct trace *t, const struct trace_flow *f, struct fault_list *l)
{
	const struct trace_flow *g = trace_other(t, f), *both[2] = {f, g};
	unsigned int i, n = g ? 2 : 1;
	bool known = false, found = false;

	for (i = 0; i < n && !known; i++)
		known = explained(t, both[i], l);
	for (i = 0; i < n && !known; i++) {
		if (is_hole(both[i])) {
			hole(t, both[i], both[1 - i], l);
			found = true;
			break;
		}
	}
	for (i = 0; i < n; i++) {
		if (!known)
			losses(t, both[i], found, l);
		counted(t, both[i], FAULT_CORRUPTION, both[i]->changed, both[i]->first_changed,
			"came changed, with a wrong checksum", 1, l);
		counted(t, both[i], FAULT_DUPLICATION, both[i]->twice, both[i]->first_twice,
			"came twice", 0.4, l);
		counted(t, both[i], FAULT_REORDERING, both[i]->late, both[i]->first_late,
			"came after later ones of their path", 0.3, l);
		delays(t, both[i], l);
	}
}

/* Add the faults of all lanes. */
static void fault_lanes(const struct trace *t, struct fault_list *l)
{
	const struct trace_flow *f, *g;
	unsigned int i;

	for (i = 0; i < t->num_flows; i++) {
		f = &t->flow[i];
		g = trace_other(t, f);
		if (!g || g > f)
			lane_faults(t, f, l);
	}
	for (i = 0; i < t->num_flows; i++)
		past_losses(t, &t->flow[i], l);
}

/* ---- which faults explain the observations -------------------------------------------------- */

/*
 * Which faults explain the observations: the table in doc/capture.md. Each fault is named, the
 * strongest first. What is too small for a verdict is an observation.
 */

#define CONSEQUENCE_NS 5000000u /* ns by which a cause may be seen after its consequence */

/*
 * May @p b be the cause of the delay @p a? A fault of any lane can be: the other lanes then carry
 * more, so their frames wait. A fault of a host can be the cause for frames from or to this host: a
 * host that waits for a core delays them, also by times too short to count as a silence.
 */
static bool may_cause(const struct trace *t, const struct trace_anomaly *b,
		      const struct trace_anomaly *a)
{
	const struct trace_flow *f = &t->flow[a->flow];

	if ((b->observation && !b->reported) || b->fault == FAULT_CAPTURE_GAPS)
		return false;
	if (a->of_path && b->fault == FAULT_DELAY && !b->of_path)
		return false;
	if (b->flow != TRACE_NONE)
		return b->weight > a->weight && b->time < a->time + CONSEQUENCE_NS;
	return !a->of_path && (b->host == f->in.file || (f->out.known && b->host == f->out.file));
}

/*
 * The last frames of a process that was killed are not in its file, and not those of all lanes are
 * missing from the same time on. So they look like losses, or like gaps of the capture.
 */
static bool unwritten(const struct trace *t, const struct trace_anomaly *gone,
		      const struct trace_anomaly *a)
{
	if (gone->fault != FAULT_PEER_GONE || a->time + FAULT_UNWRITTEN_NS < gone->time)
		return false;
	switch (a->fault) {
	case FAULT_CAPTURE_GAPS:
		return a->host == gone->host;
	case FAULT_RANDOM_LOSS:
	case FAULT_BURST_LOSS:
	case FAULT_QUEUE_LOSS:
	case FAULT_BLACKHOLE_ONE_WAY:
	case FAULT_BLACKHOLE_BOTH_WAYS:
	case FAULT_LANE_DOWN:
		return t->flow[a->flow].in.file == gone->host;
	default:
		return false;
	}
}

/* A fault that may be the consequence of another one is an observation. */
static void find_consequences(const struct trace *t, struct fault_list *l)
{
	struct trace_anomaly *a, *b;

	for (a = l->a; a < l->a + l->num; a++)
		for (b = l->a; b < l->a + l->num; b++)
			if ((a->fault == FAULT_DELAY && may_cause(t, b, a)) || unwritten(t, b, a))
				a->observation = true;
}

static int by_strength(const void *x, const void *y)
{
	const struct trace_anomaly *a = x, *b = y;

	if (a->observation != b->observation)
		return a->observation ? 1 : -1;
	if (a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	if (a->time != b->time)
		return a->time > b->time ? 1 : -1;
	return a->flow > b->flow ? 1 : a->flow < b->flow ? -1 : 0;
}

unsigned int trace_verdicts(const struct trace_anomaly *a, unsigned int num)
{
	unsigned int n = 0;

	while (n < num && !a[n].observation)
		n++;
	return n;
}

unsigned int trace_anomalies(const struct trace *t, struct trace_anomaly a[TRACE_ANOMALIES])
{
	struct fault_list l = {.a = a};

	fault_hosts(t, &l);
	fault_lanes(t, &l);
	find_consequences(t, &l);
	qsort(a, l.num, sizeof(*a), by_strength);
	return l.num;
}
