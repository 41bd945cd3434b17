/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <stdarg.h>

#include "dump/clock.h"
#include "dump/fault.h"
#include "dump/host.h"
#include "dump/past.h"
#include "dump/trace.h"

/* ---- names of faults ------------------------------------------------------------------------ */

/* Names of faults, and what to do about them. */

static const struct {
	const char *name, *advice;
} faults[FAULT_COUNT] = {
	[FAULT_NONE] = {"none", ""},
	[FAULT_RANDOM_LOSS] =
		{"random loss",
		 "compare error counters of ports on this way; check cables, connectors"},
	[FAULT_BURST_LOSS] = {"burst loss",
			      "look for a link or a switch on this way that comes and goes"},
	[FAULT_QUEUE_LOSS] = {"queue or policer loss",
			      "look for a full queue or a rate limit on this way; lower the rate"},
	[FAULT_DUPLICATION] = {"duplication",
			       "look for a loop or a mirror port between the two hosts"},
	[FAULT_REORDERING] = {"reordering",
			      "look for packets spread over links on this way (hash of flows)"},
	[FAULT_CORRUPTION] =
		{"corruption",
		 "compare CRC counters of ports on this way; check cables, NICs, memory"},
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
	[FAULT_FULL_BUFFER] = {"full receive buffer",
			       "give the process there a core of its own, and its sockets larger "
			       "buffers: net.core.rmem_max"},
	[FAULT_PEER_GONE] = {"peer gone", "look for the end of the process there: log, core dump"},
	[FAULT_PEER_SILENT] = {"peer silent",
			       "look there: is the process running, is the host up? capture there"},
	[FAULT_WRONG_VLAN] = {"wrong VLAN", "give both ends the same vlan= in WEFT_LANES"},
	[FAULT_TWO_ANSWERS] = {"two ARP answers", "remove the address from one of the two hosts"},
	[FAULT_TWO_ADVERTISEMENTS] = {"two advertisements",
				      "remove the address from one of the two hosts"},
	[FAULT_FIREWALL] = {"firewall", "permit Weft's UDP port at the reporting host"},
	[FAULT_TTL] = {"TTL", "look for a routing loop on this way"},
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

/* ---- the list ------------------------------------------------------------------------------- */

struct trace_anomaly *fault_add(struct fault_list *l, enum trace_fault fault, uint32_t flow,
				uint8_t host, uint64_t time, const char *fmt, ...)
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

/* ---- hosts ---------------------------------------------------------------------------------- */

#define STOP_NS 5000000u  /* ns; a shorter silence is no stop, whatever its share of the time */
#define SLOW_SILENCES 10u /* fewer silences of a slow receiver are an observation */
#define TIME_SHARE 0.05   /* least share of the time: slow receivers, stops below TRACE_STOP_NS */
#define GONE_NS 50000000u /* ns for which others send to a host that has gone, at least */
#define SILENT_NS 200000000u /* GONE_NS for a peer without a capture */

static uint64_t overflowed(const struct trace *t, uint8_t file)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < t->num_flows; i++)
		if (t->flow[i].in.known && t->flow[i].in.file == file)
			sum += t->flow[i].overflowed;
	return sum;
}

static uint64_t stop(const struct trace *t, uint8_t file, struct fault_list *l)
{
	const struct trace_host *h = &t->host[file];
	uint64_t longest = h->longest.to - h->longest.from, full = overflowed(t, file);
	double share = fault_share(longest, trace_host_time(h));
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
			 fault_ms(TRACE_STOP_NS));
	a = fault_add(l, FAULT_STOPPED_PEER, TRACE_NONE, file, h->longest.from,
		      "silent for %.3f ms while %u frames waited for it%s%s", fault_ms(longest),
		      h->longest.frames, more, lost);
	a->share = share;
	a->weight = 0.5 + share;
	return longest;
}

/* A stop that only the history of the host's lanes shows, as the frames of its file are newer. */
static void past_stop(const struct trace *t, uint8_t file, struct fault_list *l)
{
	const struct trace_host *h = &t->host[file];
	uint64_t longest = h->longest.to - h->longest.from;
	struct trace_anomaly *a;
	struct trace_gap stop;

	if (!past_stopped(t, file, &stop) ||
	    (longest >= (stop.to - stop.from) / 2 && h->longest.from < stop.to &&
	     stop.from < h->longest.to))
		return;
	a = fault_add(l, FAULT_STOPPED_PEER, TRACE_NONE, file, stop.from,
		      "silent for %.3f ms, by the history of its lanes: it did not poll",
		      fault_ms(stop.to - stop.from));
	a->past = true;
	a->weight = 0.5;
}

/* Silences without the stop, if there is one: the first one, and the longest one. */
struct pauses {
	struct trace_gap first, longest;
};

static struct pauses pauses_of(const struct trace_host *h, bool stopped)
{
	struct pauses p = {0};
	const struct trace_gap *g;

	for (g = h->gap; g < h->gap + h->num_gaps; g++) {
		if (stopped && g->from == h->longest.from)
			continue;
		p.first = p.first.to ? p.first : *g;
		if (g->to - g->from > p.longest.to - p.longest.from)
			p.longest = *g;
	}
	return p;
}

static void host_fault(const struct trace *t, uint8_t file, struct fault_list *l)
{
	const struct trace_host *h = &t->host[file];
	uint64_t stopped = stop(t, file, l), rest = h->silent - stopped;
	uint64_t number = h->silences - (stopped != 0), full = overflowed(t, file);
	double share = fault_share(rest, trace_host_time(h)), own = trace_host_pauses(t, file);
	struct pauses p = pauses_of(h, stopped);
	bool several = number >= SLOW_SILENCES && share >= TIME_SHARE;
	struct trace_anomaly *a;
	struct past_pauses past;
	char lost[80] = "", reports[80] = "";

	past_stop(t, file, l);
	if (past_paused(t, file, &past) && past.share >= TIME_SHARE)
		own = past.share;
	else
		past.slots = 0;
	if (!number && own < TIME_SHARE)
		return;
	if (full)
		snprintf(lost, sizeof(lost), ", %" PRIu64 " frames lost in them", full);
	if (past.slots)
		snprintf(reports, sizeof(reports),
			 "; by its history it did not poll %.1f %% of %.0f ms", 100 * own,
			 fault_ms(past.ns));
	else if (own >= TIME_SHARE)
		snprintf(reports, sizeof(reports), "; it reports that it did not poll %.1f %%",
			 100 * own);
	a = fault_add(l, FAULT_SLOW_RECEIVER, TRACE_NONE, file,
		      p.first.to ? p.first.from : h->first,
		      "answered late %.1f %% of the time: %" PRIu64
		      " silences of up to %.3f ms%s%s",
		      100 * share, number, fault_ms(p.longest.to - p.longest.from), lost, reports);
	/* Late answers are a part of the time without polls. */
	a->share = past.slots && own > share ? own : share;
	/* A host that is only busy comes behind each fault of the network. */
	a->weight = several ? 0.5 + share : 0.1;
	a->reported = own >= TIME_SHARE;
	/* The history cannot distinguish a host without a core from a program that computes. */
	a->observation = !several;
	if (past.slots)
		a->time = past.since;
}

/* Losses of the host itself, by the counts in its capture. */
static void full_buffer(const struct trace *t, uint8_t file, struct fault_list *l)
{
	uint64_t lost = 0, all = 0, first = UINT64_MAX;
	const struct trace_flow *f;
	struct trace_anomaly *a;

	for (f = t->flow; f < t->flow + t->num_flows; f++) {
		if (!f->in.known || f->in.file != file)
			continue;
		all += f->judged;
		lost += f->full;
		if (f->full && f->first_full < first)
			first = f->first_full;
	}
	if (!lost)
		return;
	a = fault_add(l, FAULT_FULL_BUFFER, TRACE_NONE, file, first,
		      "%" PRIu64 " of %" PRIu64
		      " frames to it came to its own port, which had no room for them",
		      lost, all);
	a->share = fault_share(lost, all);
	a->weight = 0.6 + a->share;
	a->observation = lost < FAULT_SEVERAL || a->share < FAULT_FRAME_SHARE;
}

/*
 * The lanes to a host that it has not closed, since the last frame from it. The host is silent from
 * the first DATA that it does not answer: before that frame it may have had nothing to send.
 */
struct ending {
	uint64_t last_from, until; /* last frame from it, last frame to it */
	uint64_t since;            /* first DATA to it that is not answered; 0 = none */
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
		e->flow = trace_index(t, f);
	e->frames += f->open_frames;
	e->until = f->last > e->until ? f->last : e->until;
	if (f->unanswered && (!e->since || f->unanswered < e->since))
		e->since = f->unanswered;
}

/* For how long were frames sent to the host since it fell silent? */
static uint64_t silence_of(const struct ending *e)
{
	uint64_t from = e->since > e->last_from ? e->since : e->last_from;

	return e->since && e->until > from ? e->until - from : 0;
}

/*
 * Nothing comes from the host after its capture's end, and others still send to it. If Weft has not
 * closed the capture, it ended with its process. Then a shorter silence is enough, and peers may
 * have closed lanes: a peer may learn of the end in another way. Else a closed lane is no fault. A
 * flight recorder's file is written by a process that runs: its end is no sign.
 */
static void gone(const struct trace *t, uint8_t file, struct fault_list *l)
{
	const struct survey_file *s =
		t->survey && t->survey->done && !t->survey->partial ? &t->survey->file[file] : NULL;
	const struct trace_host *h = &t->host[file];
	bool broken_off = s && s->broken_off;
	struct ending e = {.last_from = h->last};
	const struct trace_flow *f;
	unsigned int i;

	if (!h->seen || trace_is_recorder(t, file) ||
	    (t->span && t->span[file].ran_until > h->last + GONE_NS))
		return; /* the host's capture ran on after its last frame: the host was there */
	for (i = 0; i < t->num_flows; i++) {
		f = &t->flow[i];
		if (f->record || !f->in.known || f->in.file != file || !f->out.known)
			continue;
		if (f->bye && !broken_off)
			return;
		add_lane(t, f, &e);
	}
	/* Weft writes to the file 10 times a second: frames of the last 0.1 s may not be in it. */
	if (e.last_from > h->last + (broken_off ? FAULT_UNWRITTEN_NS : FAULT_DOWN_NS) ||
	    silence_of(&e) < (broken_off ? FAULT_BUSY_NS : GONE_NS) || !e.frames)
		return; /* only the capture has ended */
	fault_add(l, FAULT_PEER_GONE, TRACE_NONE, file, e.last_from,
		  "%s, and nothing comes from it any more on %u lanes, %.0f ms before others stop "
		  "sending to it; %" PRIu64 " frames stay unacknowledged",
		  broken_off ? "its capture was not closed: its process was killed or has crashed"
			     : "its capture ends with its last frame",
		  e.lanes, fault_ms(silence_of(&e)), e.frames)
		->weight = 2.4;
}

/*
 * A peer without a capture falls silent on all lanes of an endpoint. One end can't show whether the
 * process, its host or the network has failed.
 */
static void silent_peers(const struct trace *t, struct fault_list *l)
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
		if (!e.frames || !e.last_from || silence_of(&e) < SILENT_NS)
			continue;
		fault_add(l, FAULT_PEER_SILENT, e.flow, 0, e.last_from,
			  "nothing comes from it any more on %s%.0u%s, for %.0f ms in which frames "
			  "were sent to it; %" PRIu64 " stay unacknowledged",
			  e.lanes > 1 ? "all " : "the only lane", e.lanes > 1 ? e.lanes : 0,
			  e.lanes > 1 ? " lanes" : "", fault_ms(silence_of(&e)), e.frames)
			->weight = 2.4;
	}
}

/* ---- captures ------------------------------------------------------------------------------- */

static void capture_gaps(const struct trace *t, uint8_t file, struct fault_list *l)
{
	const struct survey_file *s =
		t->survey && t->survey->done && !t->survey->partial ? &t->survey->file[file] : NULL;
	uint64_t missing = 0, first = UINT64_MAX, all = 0;
	const struct trace_flow *f;
	struct trace_anomaly *a;
	unsigned int i;

	if (s && s->lost) {
		a = fault_add(l, FAULT_CAPTURE_GAPS, TRACE_NONE, file, t->host[file].first,
			      "its writer reports %" PRIu64
			      " lost records; frames of such times are "
			      "not judged",
			      s->lost);
		a->share = fault_share(s->lost, s->lost + s->lane_frames);
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
	a = fault_add(l, FAULT_CAPTURE_GAPS, TRACE_NONE, file, first,
		      "%" PRIu64
		      " frames that passed are missing in it, and it reports no lost records",
		      missing);
	a->share = fault_share(missing, all);
	a->observation = missing < FAULT_SEVERAL || a->share < FAULT_FRAME_SHARE;
}

/* ---- other protocols ------------------------------------------------------------------------ */

/* Does a lane, or a request for one, have these addresses? */
static bool is_ours(const struct trace *t, const struct dump_icmp *e, uint32_t *flow)
{
	unsigned int i;

	for (i = t->num_flows; i > 0; i--) {
		if (!dump_address_same(&t->flow[i - 1].src, &e->src) ||
		    !dump_address_same(&t->flow[i - 1].dst, &e->dst))
			continue;
		*flow = i - 1;
		return true;
	}
	*flow = TRACE_NONE;
	for (i = 0; i < t->num_questions; i++)
		if (dump_address_same(&t->question[i].from, &e->src) &&
		    dump_address_same(&t->question[i].to, &e->dst))
			return true;
	return false;
}

static const struct {
	enum trace_fault fault;
	const char *name;
} errors[] = {
	[ICMP_ERROR_UNREACHABLE] = {FAULT_UNREACHABLE, "unreachable"},
	[ICMP_ERROR_NO_PORT] = {FAULT_UNREACHABLE, "port unreachable"},
	[ICMP_ERROR_PROHIBITED] = {FAULT_FIREWALL, "administratively prohibited"},
	[ICMP_ERROR_TOO_LONG] = {FAULT_PATH_MTU, "packet too big"},
	[ICMP_ERROR_TIME] = {FAULT_TTL, "time exceeded"},
};

static void icmp(const struct trace *t, const struct trace_icmp *i, struct fault_list *l)
{
	char from[DUMP_ADDRESS_LEN], src[DUMP_ADDRESS_LEN], dst[DUMP_ADDRESS_LEN], mtu[24] = "";
	const struct dump_icmp *e = &i->error;
	uint32_t flow;

	if (!is_ours(t, e, &flow))
		return;
	if (e->mtu)
		snprintf(mtu, sizeof(mtu), " (MTU %u)", e->mtu);
	fault_add(l, errors[e->error].fault, flow, i->file, i->first,
		  "%s reports %s%s for %s > %s, %" PRIu64 " times (%s type %u, code %u)",
		  dump_address_text(&i->from, from), errors[e->error].name, mtu,
		  dump_address_text(&e->src, src), dump_address_text(&e->dst, dst), i->count,
		  e->src.kind == ADDRESS_IP6 ? "ICMPv6" : "ICMP", e->type, e->code)
		->weight = 2.35;
}

static void two_answers(const struct trace_owner *o, struct fault_list *l)
{
	bool six = o->ip.kind == ADDRESS_IP6;
	char ip[DUMP_ADDRESS_LEN];

	fault_add(l, six ? FAULT_TWO_ADVERTISEMENTS : FAULT_TWO_ANSWERS, TRACE_NONE, o->file,
		  o->first,
		  "%02x:%02x:%02x:%02x:%02x:%02x and %02x:%02x:%02x:%02x:%02x:%02x both answer "
		  "%s for %s",
		  o->mac[0], o->mac[1], o->mac[2], o->mac[3], o->mac[4], o->mac[5], o->second[0],
		  o->second[1], o->second[2], o->second[3], o->second[4], o->second[5],
		  six ? "neighbour solicitations" : "ARP", dump_address_text(&o->ip, ip))
		->weight = 3;
}

static void other_protocols(const struct trace *t, struct fault_list *l)
{
	char ip[DUMP_ADDRESS_LEN], peer[DUMP_ADDRESS_LEN];
	const struct trace_tag *tag;
	unsigned int i;

	for (tag = t->tag; tag < t->tag + t->num_tags; tag++)
		if (tag->count)
			fault_add(l, FAULT_WRONG_VLAN, TRACE_NONE, tag->file, tag->first,
				  "%s sends in VLAN %u (0 = none), and %s requests its address in "
				  "VLAN %u, %" PRIu64 " times",
				  dump_address_text(&tag->ip, ip), tag->own,
				  dump_address_text(&tag->peer, peer), tag->theirs, tag->count)
				->weight = 3;
	for (i = 0; i < t->num_owners; i++)
		if (t->owner[i].conflicts)
			two_answers(&t->owner[i], l);
	for (i = 0; i < t->num_icmp; i++)
		icmp(t, &t->icmp[i], l);
}

/* ---- all ------------------------------------------------------------------------------------ */

void fault_hosts(const struct trace *t, struct fault_list *l)
{
	unsigned int i;

	other_protocols(t, l);
	for (i = 0; i < t->num_files; i++) {
		host_fault(t, (uint8_t)i, l);
		full_buffer(t, (uint8_t)i, l);
		gone(t, (uint8_t)i, l);
		capture_gaps(t, (uint8_t)i, l);
	}
	silent_peers(t, l);
}
