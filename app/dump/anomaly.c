/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "dump/anomaly.h"
#include "dump/clock.h"
#include "dump/delay.h"
#include "dump/fate.h"
#include "dump/host.h"
#include "dump/trace.h"

/* ---- names of faults ------------------------------------------------------------------------ */

/* Names of faults, and what to do about them. */

static const struct {
	const char *name, *advice;
} faults[FAULT_COUNT] = {
	[FAULT_NONE] = {"none", ""},
	[FAULT_RANDOM_LOSS] = {"random loss",
			       "compare error counters of ports on this way; a cable, a connector"},
	[FAULT_BURST_LOSS] = {"burst loss",
			      "look for a link or a switch on this way that comes and goes"},
	[FAULT_QUEUE_LOSS] = {"queue or policer loss",
			      "look for a full queue or a rate limit on this way; lower the rate"},
	[FAULT_DUPLICATION] = {"duplication",
			       "look for a loop or a mirror port between the two hosts"},
	[FAULT_REORDERING] = {"reordering",
			      "look for packets spread over links on this way (hash of flows)"},
	[FAULT_CORRUPTION] = {"corruption",
			      "compare CRC counters of ports on this way; a cable, a NIC, memory"},
	[FAULT_DELAY] = {"delay or jitter",
			 "look for a changed route or a standing queue on this way"},
	[FAULT_BLACKHOLE_ONE_WAY] = {"blackhole one way",
				     "look on this way: route, firewall, TTL, a port that is down"},
	[FAULT_BLACKHOLE_BOTH_WAYS] = {"blackhole both ways",
				       "look for a link or a switch between the two that is down"},
	[FAULT_LANE_DOWN] = {"lane down", "check the link of this interface: ip link, cable"},
	[FAULT_PATH_MTU] = {"path MTU",
			    "give all hops of this way the MTU of the hosts, or lower theirs"},
	[FAULT_MOVED_MAC] = {"moved MAC",
			     "was the NIC, the bond or the gateway exchanged? else look for a "
			     "second owner of the address"},
	[FAULT_STOPPED_PEER] =
		{"stopped peer",
		 "check the process there: it may be stopped, swapped out, in a debugger, or "
		 "computing without progress calls"},
	[FAULT_SLOW_RECEIVER] = {"slow receiver",
				 "give the process there a core of its own, or call "
				 "weft_worker_progress() more often"},
	[FAULT_PEER_GONE] = {"peer gone", "look for the end of the process there: log, core dump"},
	[FAULT_PEER_SILENT] = {"peer silent",
			       "look there: is the process running, is the host up? capture there"},
	[FAULT_WRONG_VLAN] = {"wrong VLAN", "give both ends the same vlan= in WEFT_LANES"},
	[FAULT_TWO_ANSWERS] = {"two ARP answers", "remove the address from one of the two hosts"},
	[FAULT_FIREWALL] = {"firewall", "permit Weft's UDP port at the reporting host"},
	[FAULT_TTL] = {"TTL", "look for a routing loop, or a ttl= that is too small"},
	[FAULT_UNREACHABLE] = {"unreachable",
			       "check the route there, and whether the process is running"},
	[FAULT_CAPTURE_GAPS] = {"capture with gaps",
				"capture with a larger buffer (tcpdump -B, WEFT_CAPTURE ring=) or "
				"a smaller snaplen"},
};

const char *trace_fault_name(enum trace_fault fault)
{
	return faults[fault].name;
}

const char *trace_fault_advice(enum trace_fault fault)
{
	return faults[fault].advice;
}

/* ---- kinds of loss -------------------------------------------------------------------------- */

/*
 * Kinds of loss. Queues and policers drop the excess over their rate: lost frames follow many
 * bytes, or frames that had waited. Bursts lose neighbours, independent of the load. All other loss
 * is random.
 */

#define RANK_LIMIT 0.62 /* rank_of() of a queue, at least; and three deviations above 0.5 */
#define LONG_RUN 4.5    /* frames lost in a row, on average: queues lose fewer */
#define SHORT_RUN 2.0   /* frames lost in a row, on average: a burst from here on */

/*
 * The probability that a lost frame had more in front of it than a frame that arrived (0.5 = no
 * correlation). Counts frames sent from the first loss on.
 */
static double rank_of(const struct trace_flow *f, bool by_delay)
{
	double better = 0, pairs = 0, a, b;
	unsigned int i, j;

	for (i = 0; i < f->num_gone; i++) {
		for (j = 0; j < f->num_came; j++) {
			if (f->came[j].time < f->first_lost)
				continue;
			a = by_delay ? (double)f->gone[i].delay : f->gone[i].load;
			b = by_delay ? (double)f->came[j].delay : f->came[j].load;
			better += a > b ? 1 : a == b ? 0.5 : 0;
			pairs++;
		}
	}
	return pairs > 0 ? better / pairs : 0.5;
}

/* Classify losses that are neither a blackhole's nor an MTU's. */
static enum trace_fault trace_kind_of_loss(const struct trace_flow *f)
{
	double run = (double)f->lost / (double)f->runs, load = rank_of(f, false),
	       delay = rank_of(f, true), limit = 0.5 + 3 / sqrt(12.0 * f->num_gone);

	if (limit < RANK_LIMIT)
		limit = RANK_LIMIT;
	if (run < LONG_RUN && (load >= limit || delay >= limit))
		return FAULT_QUEUE_LOSS;
	return run >= SHORT_RUN ? FAULT_BURST_LOSS : FAULT_RANDOM_LOSS;
}

/* ---- anomalies ------------------------------------------------------------------------------ */

/*
 * Which faults explain the observations: the table in doc/capture.md. Each fault is named, the
 * strongest first. What is too small for a verdict is an observation.
 */

#define STOP_NS 5000000u   /* a silence from this length on is a stop */
#define SLOW_SILENCES 10u  /* a slow receiver has at least this number of silences */
#define TIME_SHARE 0.05    /* a smaller share of the time is an observation */
#define FRAME_SHARE 0.0002 /* a smaller share of the frames is an observation */
#define GAP_FACTOR 3       /* losses are judged from this multiple of the capture's own gaps on */
#define LEFT_NS 18000000u  /* ends that stop earlier after a loss: left_at_once() */
#define BUSY_NS 20000000u  /* a sender of DATA within this time has more to send */
#define DOWN_NS 1500000u   /* an end that has lost its link is silent at the latest after this */
#define SEVERAL 4u         /* fewer frames are an observation */
#define PROVED 2u          /* SEVERAL for frames that nothing but the fault makes */
#define MTU_FRAMES 3u      /* lost frames that show a smaller MTU, at least */
#define GONE_NS 50000000u  /* a host without frames for longer, to which others send, is gone */
#define UNWRITTEN_NS 200000000u /* frames of this time a killed process may not have written */
#define SILENT_NS 200000000u    /* GONE_NS for a peer without a capture */
#define CONSEQUENCE_NS 5000000u /* a cause may be seen later than its consequence by this */

struct list {
	struct trace_anomaly *a;
	unsigned int num;
};

/* @return the entry, for further fields */
__attribute__((format(printf, 6, 7))) static struct trace_anomaly *name(struct list *l,
									enum trace_fault fault,
									uint32_t flow, uint8_t host,
									uint64_t time,
									const char *fmt, ...)
{
	static struct trace_anomaly spare;
	struct trace_anomaly *a = l->num < TRACE_ANOMALIES ? &l->a[l->num++] : &spare;
	va_list ap;

	*a = (struct trace_anomaly){.fault = fault, .flow = flow, .host = host, .time = time};
	va_start(ap, fmt);
	vsnprintf(a->text, sizeof(a->text), fmt, ap);
	va_end(ap);
	return a;
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static double share_of(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

static uint32_t index_of(const struct trace *t, const struct trace_flow *f)
{
	return (uint32_t)(f - t->flow);
}

/* ---- hosts ---------------------------------------------------------------------------------- */

static uint64_t overflowed(const struct trace *t, uint8_t file)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < t->num_flows; i++)
		if (t->flow[i].in.known && t->flow[i].in.file == file)
			sum += t->flow[i].overflowed;
	return sum;
}

static uint64_t stop(const struct trace *t, uint8_t file, struct list *l)
{
	const struct trace_host *h = &t->host[file];
	uint64_t longest = h->longest.to - h->longest.from, full = overflowed(t, file);
	double share = share_of(longest, trace_host_time(h));
	unsigned int stops = trace_host_stops(h, NULL);
	struct trace_anomaly *a;
	char lost[80] = "", more[60] = "";

	if (longest < STOP_NS || (longest < TRACE_STOP_NS && share < TIME_SHARE))
		return 0;
	if (full)
		snprintf(lost, sizeof(lost), "; %" PRIu64 " frames were lost in its silences",
			 full);
	if (stops > 1)
		snprintf(more, sizeof(more), "; %u more of %.0f ms and longer", stops - 1,
			 ms(TRACE_STOP_NS));
	a = name(l, FAULT_STOPPED_PEER, TRACE_NONE, file, h->longest.from,
		 "silent for %.3f ms while %u frames waited for it%s%s", ms(longest),
		 h->longest.frames, more, lost);
	a->share = share;
	a->weight = 0.5 + share;
	return longest;
}

static void host_fault(const struct trace *t, uint8_t file, struct list *l)
{
	const struct trace_host *h = &t->host[file];
	uint64_t stopped = stop(t, file, l), rest = h->silent - stopped;
	uint64_t number = h->silences - (stopped != 0), full = overflowed(t, file);
	double share = share_of(rest, trace_host_time(h)), own = trace_host_pauses(t, file);
	struct trace_anomaly *a;
	char lost[80] = "", reports[80] = "";

	if (!number && own < TIME_SHARE)
		return;
	if (full)
		snprintf(lost, sizeof(lost), ", %" PRIu64 " frames lost in them", full);
	if (own >= TIME_SHARE)
		snprintf(reports, sizeof(reports), "; it reports that it did not poll %.1f %%",
			 100 * own);
	a = name(l, FAULT_SLOW_RECEIVER, TRACE_NONE, file, number ? h->gap[0].from : h->first,
		 "answered late %.1f %% of the time: %" PRIu64 " silences of up to %.3f ms%s%s",
		 100 * share, number, ms(h->longest.to - h->longest.from), lost, reports);
	a->share = share;
	a->weight = 0.5 + share;
	a->reported = own >= TIME_SHARE;
	a->observation = number < SLOW_SILENCES || share < TIME_SHARE;
}

/* What happened on lanes to a host since the last frame from it. */
struct ending {
	uint64_t last_from, until; /* last frame from it, last frame to it */
	uint64_t frames;           /* frames to it that stay unacknowledged */
	uint32_t flow;             /* the flow with the most of these frames */
	unsigned int lanes;
};

static void add_lane(const struct trace *t, const struct trace_flow *f, struct ending *e)
{
	const struct trace_flow *g = trace_other(t, f);

	e->last_from = g && g->last > e->last_from ? g->last : e->last_from;
	if (g && g->bye)
		return; /* closed by the host itself */
	if (!e->lanes++ || f->open_frames > t->flow[e->flow].open_frames)
		e->flow = index_of(t, f);
	e->frames += f->open_frames;
	e->until = f->last > e->until ? f->last : e->until;
}

/*
 * Nothing comes from the host after its capture's end, and others still send to it. If Weft has not
 * closed the capture, it ended with its process. Then a shorter silence is enough. Lanes that a
 * peer has closed are then included: the peer may have learned of the end in another way.
 */
static void gone(const struct trace *t, uint8_t file, struct list *l)
{
	const struct survey_file *s =
		t->survey && t->survey->done && !t->survey->partial ? &t->survey->file[file] : NULL;
	const struct trace_host *h = &t->host[file];
	bool broken_off = s && s->broken_off;
	struct ending e = {.last_from = h->last};
	const struct trace_flow *f;
	unsigned int i;

	if (!h->seen || (t->span && t->span[file].ran_until > h->last + GONE_NS))
		return; /* the capture ran on after the last frame */
	for (i = 0; i < t->num_flows; i++) {
		f = &t->flow[i];
		if (f->record || !f->in.known || f->in.file != file || !f->out.known)
			continue;
		if (f->bye && !broken_off)
			return;
		add_lane(t, f, &e);
	}
	/* Weft writes to the file 10 times a second, so frames of the last 0.1 s are not in it. */
	if (e.last_from > h->last + (broken_off ? UNWRITTEN_NS : DOWN_NS) ||
	    e.until < e.last_from + (broken_off ? BUSY_NS : GONE_NS) || !e.frames)
		return; /* only the capture has ended */
	name(l, FAULT_PEER_GONE, TRACE_NONE, file, e.last_from,
	     "%s, and nothing comes from it any more on %u lanes, %.0f ms before others stop "
	     "sending to it; %" PRIu64 " frames stay unacknowledged",
	     broken_off ? "its capture was not closed: its process was killed or has crashed"
			: "its capture ends with its last frame",
	     e.lanes, ms(e.until - e.last_from), e.frames)
		->weight = 2.4;
}

/*
 * A peer without a capture falls silent on all lanes of an endpoint. One end can't show whether the
 * process, its host or the network has ended.
 */
static void silent_peers(const struct trace *t, struct list *l)
{
	const struct trace_flow *f;
	struct ending e;
	unsigned int i, k;

	for (i = 0; i < t->num_flows; i++) {
		if (t->flow[i].record || stream_of(t, i) != i)
			continue;
		e = (struct ending){0};
		for (k = 0; k < t->num_flows; k++) {
			f = &t->flow[k];
			if (f->out.known && !f->in.known && !f->record && stream_of(t, k) == i)
				add_lane(t, f, &e);
		}
		if (!e.frames || !e.last_from || e.until < e.last_from + SILENT_NS)
			continue;
		name(l, FAULT_PEER_SILENT, e.flow, 0, e.last_from,
		     "nothing comes from it any more on %s%.0u%s, for %.0f ms in which frames "
		     "were sent to it; %" PRIu64 " stay unacknowledged",
		     e.lanes > 1 ? "all " : "the only lane", e.lanes > 1 ? e.lanes : 0,
		     e.lanes > 1 ? " lanes" : "", ms(e.until - e.last_from), e.frames)
			->weight = 2.4;
	}
}

/* ---- lanes ---------------------------------------------------------------------------------- */

/* Most of the lost frames are in runs that last long, or until the end. */
static bool is_hole(const struct trace_flow *f)
{
	return f->holes && 2 * f->hole_lost >= f->lost;
}

/* From the first loss on, no frame as long as the lost ones came, and shorter frames did. */
static bool is_mtu(const struct trace_flow *f)
{
	return f->lost >= MTU_FRAMES && f->large_came_at == 0 &&
	       f->came_max_before >= f->lost_min && f->num_came > 0 &&
	       f->came[f->num_came - 1].time > f->first_lost;
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
 * Both ends stopped sending at once. An end that finds a dead lane by silence sends for more than
 * 20 ms (doc/raw-lanes.md). When a device reports that its link is down, both ends stop earlier.
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
	return g->data_at && spoke(g, r->from > BUSY_NS ? r->from - BUSY_NS : 0, r->from) &&
	       g->data_at < r->from + DOWN_NS && g->data_at + BUSY_NS > r->from &&
	       !spoke(g, r->from, r->from + DOWN_NS);
}

static struct trace_anomaly *one_way(const struct trace *t, const struct trace_flow *f,
				     const struct trace_flow *g, struct list *l)
{
	const struct trace_run *r = &f->longest;
	bool other = g && spoke(g, r->from, r->to);

	return name(l, FAULT_BLACKHOLE_ONE_WAY, index_of(t, f), f->in.file, r->from,
		    "%" PRIu64 " frames lost in a row in %.3f ms; %s%s", r->count,
		    ms(r->to - r->from),
		    other ? "the other way they come" : "nothing was sent the other way",
		    f->holes > 1 ? "; it is not the only such time" : "");
}

static void hole(const struct trace *t, const struct trace_flow *f, const struct trace_flow *g,
		 struct list *l)
{
	const struct trace_run *r = &f->longest;
	uint64_t first =
		g && g->longest.count && g->longest.from < r->from ? g->longest.from : r->from;
	struct trace_anomaly *a;

	if (g && !is_hole(g) && is_down(g, r))
		a = name(l, FAULT_LANE_DOWN, index_of(t, f), f->in.file, r->from,
			 "%" PRIu64 " frames lost in a row, and the receiver, which was sending, "
			 "sends nothing on this lane from then on",
			 r->count);
	else if (g && is_hole(g) && left_at_once(t, f, g))
		a = name(l, FAULT_LANE_DOWN, index_of(t, f), f->in.file, first,
			 "no frames arrive, and both ends have left the lane after %.3f ms: "
			 "earlier than silence would have shown it",
			 ms((f->last > g->last ? f->last : g->last) - r->from));
	else if (g && is_hole(g) && g->longest.from < r->to && r->from < g->longest.to)
		a = name(l, FAULT_BLACKHOLE_BOTH_WAYS, index_of(t, f), f->in.file, first,
			 "%" PRIu64 " and %" PRIu64 " frames lost in a row, both ways at once",
			 r->count, g->longest.count);
	else
		a = one_way(t, f, g, l);
	a->share = share_of(f->hole_lost, f->judged);
	a->weight = 2.3;
}

static void counted(const struct trace *t, const struct trace_flow *f, enum trace_fault fault,
		    uint64_t count, uint64_t first, const char *what, double base, struct list *l)
{
	uint64_t least = fault == FAULT_CORRUPTION || fault == FAULT_DUPLICATION ? PROVED : SEVERAL;
	double share = share_of(count, f->judged);
	struct trace_anomaly *a;

	if (!count)
		return;
	a = name(l, fault, index_of(t, f), f->in.file, first,
		 "%" PRIu64 " of %" PRIu64 " frames %s", count, f->judged, what);
	a->share = share;
	a->weight = base + (share > 0.09 ? 0.9 : 10 * share);
	a->observation =
		(fault == FAULT_REORDERING ? f->overtaken : count) < least || share < FRAME_SHARE;
}

/* The share of acknowledged frames that a capture lacks, though it reports no lost records. */
static double gaps_of(const struct trace *t, uint8_t file)
{
	const struct trace_flow *f;
	double most = 0, share;
	unsigned int i;

	for (i = 0; i < t->num_flows; i++) {
		f = &t->flow[i];
		if (!f->in.known || f->in.file != file || f->unseen_in < SEVERAL)
			continue;
		share = share_of(f->unseen_in, f->judged);
		most = share > most ? share : most;
	}
	return most;
}

/*
 * The MTU of the path has fallen in an earlier connection. A later one searches for it: it loses
 * frames that are longer than any that come, or as long as those that were lost before.
 */
static uint64_t too_long(const struct trace *t, const struct trace_flow *f)
{
	const struct trace_flow *g;
	uint64_t most = 0, n;
	unsigned int i;
	uint32_t shortest;

	for (g = t->flow; g < t->flow + t->num_flows; g++) {
		if (g == f || !trace_same_ports(f, g) || !is_mtu(g))
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
static void losses(const struct trace *t, const struct trace_flow *f, bool hole, struct list *l)
{
	uint64_t other = 2 * f->changed + too_long(t, f), lost;

	if (f->holes)
		other += f->hole_lost;
	else if (hole) /* the last frames, behind which none came: they met the hole, too */
		other += f->run.count;
	lost = other < f->lost ? f->lost - other : 0;
	if (!lost || share_of(lost, f->judged) < GAP_FACTOR * gaps_of(t, f->in.file))
		return;
	counted(t, f, trace_kind_of_loss(f), lost, f->first_lost, "did not come", 0.9, l);
}

static void delays(const struct trace *t, const struct trace_flow *f, struct list *l)
{
	struct trace_anomaly *a;
	struct trace_delay d;

	if (!trace_delayed(t, f, &d))
		return;
	a = name(l, FAULT_DELAY, index_of(t, f), f->in.file, d.time,
		 d.of_path ? "frames take %.3f ms and more instead of %.3f; no busy host explains "
			     "it: another lane is faster then, or no frame is for long"
			   : "frames take %.3f ms instead of %.3f (one in ten is faster)",
		 (double)d.after / 1e6, (double)d.before / 1e6);
	a->of_path = d.of_path;
	a->weight = 0.2 + (double)(d.after - d.before) / 1e11;
}

static uint64_t moved(const struct trace_flow *f)
{
	return f->lost && f->first_lost < f->moved_at ? f->first_lost : f->moved_at;
}

/* A fault of one direction that explains all of its losses. @return whether there is one */
static bool explained(const struct trace *t, const struct trace_flow *f, struct list *l)
{
	if (f->moved_at) {
		name(l, FAULT_MOVED_MAC, index_of(t, f), f->in.file, moved(f),
		     "frames go to another MAC address than before")
			->weight = 2.2;
		return true;
	}
	if (!is_mtu(f))
		return false;
	name(l, FAULT_PATH_MTU, index_of(t, f), f->in.file, f->first_lost,
	     "frames of %u bytes and more no longer arrive, shorter ones do", f->lost_min)
		->weight = 2.1;
	return true;
}

/* Both directions of a lane. */
static void lane_faults(const struct trace *t, const struct trace_flow *f, struct list *l)
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

/* ---- captures ------------------------------------------------------------------------------- */

static void capture_gaps(const struct trace *t, uint8_t file, struct list *l)
{
	const struct survey_file *s =
		t->survey && t->survey->done && !t->survey->partial ? &t->survey->file[file] : NULL;
	uint64_t missing = 0, first = UINT64_MAX, all = 0;
	const struct trace_flow *f;
	struct trace_anomaly *a;
	unsigned int i;

	if (s && s->lost) {
		a = name(l, FAULT_CAPTURE_GAPS, TRACE_NONE, file, t->host[file].first,
			 "its writer reports %" PRIu64 " lost records; frames of such times are "
			 "not judged",
			 s->lost);
		a->share = share_of(s->lost, s->lost + s->lane_frames);
		return;
	}
	for (i = 0; i < t->num_flows; i++) {
		f = &t->flow[i];
		if (f->in.known && f->in.file == file && f->unseen_in) {
			missing += f->unseen_in;
			first = f->first_unseen_in < first ? f->first_unseen_in : first;
			all += f->judged;
		}
		if (f->out.known && f->out.file == file && f->in.known && f->unseen_out) {
			missing += f->unseen_out;
			first = f->first_unseen_out < first ? f->first_unseen_out : first;
			all += f->judged;
		}
	}
	if (!missing)
		return;
	a = name(l, FAULT_CAPTURE_GAPS, TRACE_NONE, file, first,
		 "%" PRIu64 " frames that passed are missing in it, and it reports no lost records",
		 missing);
	a->share = share_of(missing, all);
	a->observation = missing < SEVERAL || a->share < FRAME_SHARE;
}

/* ---- other protocols ------------------------------------------------------------------------ */

#define ip_text(ip, buf) stream_address(ip, buf, sizeof(buf))

/* Does a lane, or a request for one, have these addresses? */
static bool is_ours(const struct trace *t, uint32_t src, uint32_t dst, uint32_t *flow)
{
	unsigned int i;

	for (i = t->num_flows; i > 0; i--) {
		if (t->flow[i - 1].src != src || t->flow[i - 1].dst != dst)
			continue;
		*flow = i - 1;
		return true;
	}
	*flow = TRACE_NONE;
	for (i = 0; i < t->num_questions; i++)
		if (t->question[i].from == src && t->question[i].to == dst)
			return true;
	return false;
}

static void icmp(const struct trace *t, const struct trace_icmp *i, struct list *l)
{
	enum trace_fault fault = FAULT_UNREACHABLE;
	char from[16], src[16], dst[16];
	uint32_t flow;

	if (!is_ours(t, i->src, i->dst, &flow))
		return;
	if (i->type == 11)
		fault = FAULT_TTL;
	else if (i->code == 4)
		fault = FAULT_PATH_MTU;
	else if (i->code == 9 || i->code == 10 || i->code == 13)
		fault = FAULT_FIREWALL;
	name(l, fault, flow, i->file, i->first,
	     "%s reports %s for %s > %s, %" PRIu64 " times (ICMP type %u, code %u)",
	     ip_text(i->from, from),
	     i->type == 11             ? "time exceeded"
	     : i->code == 4            ? "packet too big"
	     : i->code == 3            ? "port unreachable"
	     : fault == FAULT_FIREWALL ? "administratively prohibited"
				       : "unreachable",
	     ip_text(i->src, src), ip_text(i->dst, dst), i->count, i->type, i->code)
		->weight = 2.35;
}

static void other_protocols(const struct trace *t, struct list *l)
{
	const struct trace_owner *o;
	const struct trace_tag *tag;
	char ip[16], peer[16];
	unsigned int i;

	for (i = 0; i < t->num_tags; i++) {
		tag = &t->tag[i];
		if (tag->count)
			name(l, FAULT_WRONG_VLAN, TRACE_NONE, tag->file, tag->first,
			     "%s sends in VLAN %u (0 = none), and %s requests its address in VLAN "
			     "%u, %" PRIu64 " times",
			     ip_text(tag->ip, ip), tag->own, ip_text(tag->peer, peer), tag->theirs,
			     tag->count)
				->weight = 3;
	}
	for (i = 0; i < t->num_owners; i++) {
		o = &t->owner[i];
		if (o->conflicts)
			name(l, FAULT_TWO_ANSWERS, TRACE_NONE, o->file, o->first,
			     "%02x:%02x:%02x:%02x:%02x:%02x and %02x:%02x:%02x:%02x:%02x:%02x both "
			     "answer ARP for %s",
			     o->mac[0], o->mac[1], o->mac[2], o->mac[3], o->mac[4], o->mac[5],
			     o->second[0], o->second[1], o->second[2], o->second[3], o->second[4],
			     o->second[5], ip_text(o->ip, ip))
				->weight = 3;
	}
	for (i = 0; i < t->num_icmp; i++)
		icmp(t, &t->icmp[i], l);
}

/* ---- the list ------------------------------------------------------------------------------- */

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
	if (gone->fault != FAULT_PEER_GONE || a->time + UNWRITTEN_NS < gone->time)
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
static void find_consequences(const struct trace *t, struct list *l)
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

unsigned int trace_anomalies(struct trace *t, struct trace_anomaly a[TRACE_ANOMALIES])
{
	struct list l = {.a = a};
	const struct trace_flow *f, *g;
	unsigned int i;

	other_protocols(t, &l);
	for (i = 0; i < t->num_files; i++) {
		host_fault(t, (uint8_t)i, &l);
		gone(t, (uint8_t)i, &l);
		capture_gaps(t, (uint8_t)i, &l);
	}
	for (i = 0; i < t->num_flows; i++) {
		f = &t->flow[i];
		g = trace_other(t, f);
		if (!g || g > f)
			lane_faults(t, f, &l);
	}
	silent_peers(t, &l);
	find_consequences(t, &l);
	qsort(a, l.num, sizeof(*a), by_strength);
	return l.num;
}
