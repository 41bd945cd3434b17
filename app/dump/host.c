/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dump/clock.h"
#include "dump/host.h"
#include "dump/trace.h"

/* ---- spans ---------------------------------------------------------------------------------- */

/* When captures ran: a frame that a capture lacks was lost only if the capture could have it. */

/*
 * A flight recorder has the last frames, and all frames of a progress call have one time, that of
 * its begin. So some frames of the first time may be missing, however late the call received them.
 */
static uint64_t begin_of(const struct survey_file *f, const struct survey_port *p)
{
	return f->comment[0] ? p->second : p->first;
}

static int full_of(struct trace_span *span, const struct history *h, const struct trace_clock *c)
{
	const struct history_missed *m;
	uint64_t time, last = 0;

	span->full = calloc(h->num_missed + 1, sizeof(*span->full));
	if (!span->full)
		return -ENOMEM;
	for (m = h->missed; m && m < h->missed + h->num_missed; m++) {
		time = trace_time(c, m->time);
		last = time > last ? time : last; /* of a writer the times grow */
		span->full[span->num_full++] = (struct trace_full){last, m->count, m->iface};
	}
	return 0;
}

bool trace_buffer_full(struct trace *t, const struct trace_port *port, uint64_t sent)
{
	struct trace_span *s = t->span ? &t->span[port->file] : NULL;
	unsigned int from = 0, to = s ? s->num_full : 0, mid;

	while (from < to) {
		mid = (from + to) / 2;
		if (s->full[mid].time < sent)
			from = mid + 1;
		else
			to = mid;
	}
	for (; s && from < s->num_full && s->full[from].time < sent + TRACE_FULL_NS; from++) {
		if (s->full[from].iface != port->iface || s->full[from].left == 0)
			continue;
		s->full[from].left--;
		return true;
	}
	return false;
}

int trace_spans(struct trace *t, const struct survey *s, const struct trace_clock *clock)
{
	const struct survey_file *f;
	struct trace_span *span;
	unsigned int i, n;
	uint64_t begin;

	t->survey = s;
	t->clock = clock;
	if (!s->done || s->partial)
		return 0;
	t->span = calloc(t->num_files, sizeof(*t->span));
	if (!t->span)
		return -ENOMEM;
	for (i = 0; i < t->num_files; i++) {
		f = &s->file[i];
		span = &t->span[i];
		/* Behind its last record a lane may be closed: what comes then is not recorded. */
		span->end = trace_time(&clock[i], f->last);
		span->ran_until = trace_time(&clock[i], f->end);
		span->unplaced = f->lost > f->placed;
		for (n = 0; n < DUMP_IFACES; n++) {
			begin = begin_of(f, &f->port[n]);
			span->begin[n] = begin ? trace_time(&clock[i], begin) : UINT64_MAX;
		}
		span->missing = calloc(f->num_holes + 1, sizeof(*span->missing));
		if (!span->missing)
			return -ENOMEM;
		for (n = 0; n < f->num_holes; n++)
			span->missing[n] =
				(struct trace_missing){trace_time(&clock[i], f->hole[n].from),
						       trace_time(&clock[i], f->hole[n].to),
						       f->hole[n].iface};
		span->num_missing = f->num_holes;
		if (full_of(span, &f->history, &clock[i]))
			return -ENOMEM;
	}
	return 0;
}

void trace_spans_free(struct trace *t)
{
	unsigned int i;

	for (i = 0; t->span && i < t->num_files; i++) {
		free(t->span[i].missing);
		free(t->span[i].full);
	}
	free(t->span);
	t->span = NULL;
}

/* All stretches are searched: where a clock was set back, they are not in the order of time. */
static bool lost_some(const struct trace_span *s, uint16_t iface, uint64_t from, uint64_t to)
{
	unsigned int i;

	for (i = 0; i < s->num_missing; i++)
		if ((s->missing[i].iface == iface || s->missing[i].iface == UINT16_MAX) &&
		    s->missing[i].from <= to && s->missing[i].to >= from)
			return true;
	return false;
}

bool trace_runs(const struct trace *t, uint8_t file, uint64_t time)
{
	return time <= (t->span ? t->span[file].end : t->now);
}

bool trace_covers(const struct trace *t, const struct trace_port *port, uint64_t from, uint64_t to)
{
	const struct trace_span *s;

	if (!t->span)
		return true;
	s = &t->span[port->file];
	return !s->unplaced && from >= s->begin[port->iface] && to <= s->end &&
	       !lost_some(s, port->iface, from, to);
}

/* ---- silences ------------------------------------------------------------------------------- */

/*
 * Silences of hosts. A host is silent from the time at which a frame could have been there: its
 * sending plus the least delay of its flow, and not before the host's last record. A host to which
 * no frame was sent is not silent.
 *
 * A silence is the host's, and not the path's, if the frames of that time then come at once. A path
 * that got slower delivers frames at the distances at which they were sent.
 *
 * A capture by the kernel has records of frames while the process does not run. There the silence
 * is that of a lane: DATA has come, and nothing leaves. The protocol answers within 25 us.
 */

#define GAP_NS 200000u     /* ns; a shorter time is no silence */
#define FRAMES 2u          /* frames that come at once, at least */
#define AT_ONCE_NS 100000u /* "at once" after a silence; or an eighth of it, if that is longer */

/* Silences of several lanes are one if they overlap. */
static void add(struct trace_host *h, uint64_t from, uint64_t to, uint32_t frames)
{
	struct trace_gap *last = h->num_gaps ? &h->gap[h->num_gaps - 1] : NULL;

	if (last && from < last->to) {
		from = last->to;
		if (to <= from)
			return;
		h->silent += to - from;
		last->to = to;
		last->frames += frames;
	} else {
		h->silences++;
		h->silent += to - from;
		if (h->num_gaps == TRACE_GAPS)
			return;
		h->gap[h->num_gaps++] = (struct trace_gap){from, to, frames};
		last = &h->gap[h->num_gaps - 1];
	}
	if (last->to - last->from > h->longest.to - h->longest.from)
		h->longest = *last;
}

/*
 * The host has a record again: the silence is kept until frames show whose it was. Of two silences
 * that are undecided the longer one is kept.
 */
static void wake(struct trace_host *h, uint64_t now)
{
	uint64_t from = h->due > h->last ? h->due : h->last;
	bool open = h->wake.gap.to && now <= h->wake.until;
	uint64_t pending = open ? h->wake.gap.to - h->wake.gap.from : 0;

	if (h->since && now > from && now - from >= GAP_NS && now - from > pending) {
		h->wake =
			(struct trace_wake){.gap = {from, now, h->since}, .sent_first = UINT64_MAX};
		h->wake.until = now + (now - from) / 8;
		if (h->wake.until < now + AT_ONCE_NS)
			h->wake.until = now + AT_ONCE_NS;
	}
	h->since = 0;
}

/* A frame came to the host. @param sent  when it was sent; 0 = not known */
static void after_silence(struct trace_host *h, uint16_t iface, uint64_t sent, uint64_t now)
{
	struct trace_wake *w = &h->wake;
	uint64_t half = (w->gap.to - w->gap.from) / 2;

	if (!w->gap.to || !sent || now > w->until || sent > w->gap.to)
		return;
	w->frames++;
	if (sent < w->sent_first)
		w->sent_first = sent;
	if (sent > w->sent_last)
		w->sent_last = sent;
	if (sent < w->gap.to - half)
		w->ifaces |= 1ull << iface % 64;
	if (w->frames >= FRAMES &&
	    (w->sent_last - w->sent_first >= half || (w->ifaces & (w->ifaces - 1)))) {
		add(h, w->gap.from, w->gap.to, w->gap.frames);
		w->gap.to = 0;
	}
}

#define CALL_NS 1000u /* closer calls are one: a received frame states its pause in us */

/*
 * A flight recorder has a frame that came at the end of its call's pause, and the answer to it at
 * the begin. The peer may then wait for a lost frame, and the lane sends nothing more.
 */
static bool is_answered(const struct trace *t, const struct dump_frame *frame,
			const struct trace_flow *g, uint64_t time)
{
	return g && g->answered && g->answered + CALL_NS >= time &&
	       trace_is_recorder(t, frame->file);
}

/* Find silences of a lane: DATA has come, and the lane has sent nothing for GAP_NS or longer. */
static void answers(struct trace *t, struct trace_host *h, const struct dump_frame *frame,
		    struct trace_flow *f, bool data, uint64_t time)
{
	struct trace_flow *g = trace_other(t, f);

	if (frame->way == DUMP_IN && data && !is_answered(t, frame, g, time) && !f->owed_frames++)
		f->owed = time;
	if (frame->way != DUMP_OUT)
		return;
	f->answered = time + frame->within;
	if (!g || !g->owed_frames)
		return;
	if (time - g->owed >= GAP_NS && g->in.file == frame->file &&
	    trace_covers(t, &g->in, g->owed, time))
		add(h, g->owed, time, g->owed_frames);
	g->owed_frames = 0;
}

void trace_host_record(struct trace *t, const struct dump_frame *frame, const struct dump_view *v,
		       struct trace_flow *f, uint64_t time)
{
	struct trace_host *h = &t->host[frame->file], *peer;
	uint64_t delay = 0;

	if (!h->seen)
		h->first = h->last = time;
	h->seen = true;
	if (frame->way == DUMP_WAY_UNKNOWN)
		return;
	wake(h, time);
	if (frame->way == DUMP_IN)
		after_silence(h, frame->iface, f ? t->sent_at : 0, time);
	if (time > h->last)
		h->last = time;
	if (!f || f->record)
		return;
	answers(t, h, frame, f, v->hdr->type == WEFT_FRAME_DATA, time);
	if (frame->way != DUMP_OUT || !f->in.known || f->in.file == frame->file)
		return;
	peer = &t->host[f->in.file];
	if (f->min_delay > 0 && f->min_delay < TRACE_WAIT_NS)
		delay = (uint64_t)f->min_delay;
	if (!peer->since++)
		peer->due = time + delay;
}

/* @return the first silence that ends after @p time; num_gaps = none */
static unsigned int first_after(const struct trace_host *h, uint64_t time)
{
	unsigned int low = 0, high = h->num_gaps, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (h->gap[mid].to <= time)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool trace_host_silent(const struct trace_host *h, uint64_t from, uint64_t to)
{
	unsigned int i = first_after(h, from);

	return i < h->num_gaps && h->gap[i].from < to;
}

const struct trace_gap *trace_host_gap(const struct trace_host *h, uint64_t time)
{
	unsigned int i = first_after(h, time);

	return i < h->num_gaps && h->gap[i].from <= time ? &h->gap[i] : NULL;
}

unsigned int trace_host_stops(const struct trace_host *h, struct trace_gap *stop)
{
	unsigned int i, n = 0;

	for (i = 0; i < h->num_gaps; i++) {
		if (h->gap[i].to - h->gap[i].from < TRACE_STOP_NS &&
		    h->gap[i].from != h->longest.from)
			continue;
		if (stop && n < TRACE_STOPS)
			stop[n] = h->gap[i];
		n++;
	}
	return n;
}

uint64_t trace_host_time(const struct trace_host *h)
{
	return h->last > h->first ? h->last - h->first : 0;
}

double trace_host_pauses(const struct trace *t, uint8_t file)
{
	const struct trace_flow *f;
	double most = 0, share;

	for (f = t->flow; f < t->flow + t->num_flows; f++) {
		share = f->last > f->first ? (double)f->gap_ns / (double)(f->last - f->first) : 0;
		if (f->out.known && f->out.file == file && share > most)
			most = share < 1 ? share : 1;
	}
	return most;
}

/* ---- polls ---------------------------------------------------------------------------------- */

/*
 * A frame that a poll did not find came after it, however late the receiver polls next. So a path's
 * delay has a lower bound, also on a host without a core. Records of one poll have one time, and a
 * poll that takes fewer frames than a burst leaves none. A worker polls all of its lanes in turn:
 * between two polls of another lane there was one of this lane. A worker may lose its core between
 * the poll and the time of its frames: frame->within. On a lane over sockets each socket is polled
 * alone, other lanes prove nothing about it, and a poll takes fewer datagrams.
 */

#define BURST 32u       /* frames that a poll of the engine takes, at most */
#define DATAGRAMS 4u    /* least room, in datagrams, of a call that reads a socket */
#define APART_NS 20000u /* records whose times are closer may be of one poll */
#define NEIGHBOURS 16u  /* the first interfaces of a file, which are checked */

static struct trace_poll *poll_of(const struct trace *t, uint8_t file, uint16_t iface)
{
	return &t->poll[(size_t)(file * DUMP_IFACES + iface % DUMP_IFACES) * TRACE_POLLS];
}

struct trace_poll *trace_poll_of(const struct trace *t, const struct trace_port *port)
{
	return poll_of(t, port->file, port->iface);
}

static struct trace_poll *socket_of(const struct trace *t, uint8_t file, uint16_t iface,
				    uint16_t udp_port)
{
	return poll_of(t, file, iface) + 1 + udp_port % (TRACE_POLLS - 1);
}

void trace_socket_read(struct trace *t, const struct trace_port *port, uint16_t udp_port,
		       uint64_t sent)
{
	struct trace_poll *p = socket_of(t, port->file, port->iface, udp_port);

	if (sent > p->sent)
		p->sent = sent;
}

static uint64_t polled_others(const struct trace *t, const struct dump_frame *frame, uint64_t empty)
{
	const struct trace_poll *o;
	uint16_t i;

	for (i = 0; i < NEIGHBOURS; i++) {
		o = poll_of(t, frame->file, i);
		if (i != frame->iface && o->worker == frame->worker && o->empty > empty)
			empty = o->empty;
	}
	return empty;
}

/* When the port was polled for frames of this time. A full burst may leave some behind. */
static void polled(struct trace_poll *p, const struct dump_frame *frame, uint64_t time)
{
	uint64_t at = frame->within < time ? time - frame->within : 0;
	bool full = p->burst >= BURST;

	if (time != p->time) {
		p->polled = full && p->polled < at ? p->polled : at;
		p->burst = 0;
	}
	p->time = time;
	p->burst++;
}

bool trace_is_recorder(const struct trace *t, uint8_t file)
{
	return t->survey && t->survey->done && t->survey->file[file].recorder;
}

void trace_called(struct trace *t, const struct dump_frame *frame, uint64_t time)
{
	struct trace_poll *p = poll_of(t, frame->file, frame->iface);
	bool in = frame->way == DUMP_IN;
	uint64_t call = in && frame->within < time ? time - frame->within : time;

	if (!trace_is_recorder(t, frame->file) || frame->record)
		return;
	p->owner = frame->worker;
	p->sockets = frame->sockets;
	if (call > p->call + CALL_NS) {
		if (p->calls < BURST)
			p->full = 0;
		p->before = p->call;
		p->call = call;
		p->calls = 0;
	} else if (call > p->before && call + CALL_NS < p->call) {
		p->before = call;
	}
	p->calls += in && call + CALL_NS >= p->call;
	if (p->calls >= BURST && !p->full)
		p->full = call;
}

/* The newest call of the worker that had ended, by records of all of its lanes. */
static uint64_t ended_call(const struct trace *t, const struct trace_port *port)
{
	const struct trace_poll *own = poll_of(t, port->file, port->iface), *p;
	uint64_t newest = own->call, before = own->before;
	uint16_t i;

	for (i = 0; i < NEIGHBOURS; i++) {
		p = poll_of(t, port->file, i);
		if (p == own || !p->call || p->owner != own->owner)
			continue;
		if (p->call > newest + CALL_NS) {
			before = newest > p->before ? newest : p->before;
			newest = p->call;
		} else {
			before = p->call + CALL_NS < newest && p->call > before ? p->call : before;
			before = p->before > before ? p->before : before;
		}
	}
	return before;
}

/* frames of one burst overtake each other by less than this; frames of a socket wait for less */
#define QUEUED_NS 100000000u

bool trace_was_polled(const struct trace *t, const struct trace_port *port, uint16_t udp_port,
		      uint64_t sent, uint64_t due)
{
	const struct trace_poll *p = poll_of(t, port->file, port->iface),
				*s = socket_of(t, port->file, port->iface, udp_port);
	uint64_t call;
	bool full;

	/* A socket delivers in order: it was read when the frame was due, and not up to it. */
	if (s->sent && s->sent <= sent && s->newest > due)
		return false;
	if (!trace_is_recorder(t, port->file) || !p->call)
		return true;
	call = ended_call(t, port);
	/* A call reads few datagrams of one socket. */
	if (p->sockets)
		return sent + QUEUED_NS < p->sent || sent + QUEUED_NS < call;
	/*
	 * A port delivers in order. While calls take whole bursts, more frames are there, and the
	 * kernel of a busy host has some in the queue of another core.
	 */
	full = p->full && call + CALL_NS >= p->full && (p->calls >= BURST || call < p->call);
	return full ? sent + QUEUED_NS < p->sent : sent < p->sent || due < call;
}

uint64_t trace_polled(struct trace *t, const struct dump_frame *frame, const struct dump_view *v,
		      uint64_t time)
{
	struct trace_poll *port = poll_of(t, frame->file, frame->iface), *p = port;

	if (frame->sockets)
		p = socket_of(t, frame->file, frame->iface, v->dst_port);
	if (time > p->newest + APART_NS) {
		p->drained = p->frames < (frame->sockets ? DATAGRAMS : BURST);
		if (p->drained)
			p->empty = p->found;
		p->frames = 0;
	} else if (time != p->newest) {
		p->frames = 0;
	}
	polled(port, frame, time);
	p->worker = frame->sockets ? 0 : frame->worker;
	port->sockets = frame->sockets;
	p->newest = time;
	p->found = port->polled;
	p->frames++;
	return p->drained && p->worker ? polled_others(t, frame, p->empty) : p->empty;
}

/* ---- unanswered requests -------------------------------------------------------------------- */

/* Requests of hosts before they have a lane, for MAC addresses and HELLO, and their answers. */

static struct trace_question *find(struct trace *t, bool hello, const struct dump_address *from,
				   const struct dump_address *to)
{
	struct trace_question *q;
	unsigned int i;

	for (i = 0; i < t->num_questions; i++) {
		q = &t->question[i];
		if (q->hello == hello && dump_address_same(&q->from, from) &&
		    dump_address_same(&q->to, to))
			return q;
	}
	return NULL;
}

static void add_request(struct trace *t, const struct dump_frame *frame, bool hello,
			const struct dump_address *from, const struct dump_address *to,
			uint64_t time)
{
	struct trace_question *q = find(t, hello, from, to);

	/* A host receives requests of others (broadcasts), but not the answers to them. */
	if (frame->way == DUMP_IN || (!q && t->num_questions == TRACE_QUESTIONS))
		return;
	if (!q) {
		q = &t->question[t->num_questions++];
		*q = (struct trace_question){.hello = hello, .from = *from, .to = *to};
	}
	if (!q->unanswered++)
		q->since = time;
}

static void answered(struct trace *t, bool hello, const struct dump_address *from,
		     const struct dump_address *to)
{
	struct trace_question *q = find(t, hello, to, from);

	if (q)
		q->unanswered = 0;
}

static void neighbour(struct trace *t, const struct dump_frame *frame,
		      const struct dump_neighbour *n, uint64_t time)
{
	if (n->answer)
		answered(t, false, &n->from, &n->to);
	else if (!dump_address_is_none(&n->from) && !dump_address_same(&n->from, &n->to))
		add_request(t, frame, false, &n->from, &n->to, time);
	/* else a probe or an announcement, which gets no answer */
}

void trace_question(struct trace *t, const struct dump_frame *frame, const struct dump_view *v,
		    uint64_t time)
{
	if (dump_is_neighbour(v))
		neighbour(t, frame, &v->neighbour, time);
	else if (v->hdr->type == WEFT_FRAME_HELLO)
		add_request(t, frame, true, &v->src, &v->dst, time);
	else if (v->hdr->type == WEFT_FRAME_HELLO_ACK || v->hdr->type == WEFT_FRAME_HELLO_RETRY ||
		 v->hdr->type == WEFT_FRAME_RESET)
		answered(t, true, &v->src, &v->dst);
}

/* ---- other protocols ------------------------------------------------------------------------ */

/*
 * What frames of other protocols reveal about lanes: ICMP errors that quote a packet, requests for
 * MAC addresses in another VLAN, and two stations that answer one request.
 */

/* Has the process of the flow's sender closed its capture by then, and so its lanes? */
static bool has_ended(const struct trace *t, const struct trace_flow *f, uint64_t time)
{
	return t->span && f->out.known && time > t->span[f->out.file].end &&
	       !t->survey->file[f->out.file].broken_off;
}

/*
 * Has the host that the packet was for closed its newest connection from that port, or its lanes?
 * Then it has no port any more. Processes of a host share its address. A lane with several ports,
 * which are neighbours, has used another one last: then the newest connection from the nearest
 * port counts.
 */
static bool has_closed(const struct trace *t, const struct dump_icmp *e, uint64_t time)
{
	const struct trace_flow *f, *newest = NULL;
	unsigned int i;

	for (i = t->num_flows; i > 0; i--) {
		f = &t->flow[i - 1];
		if (!dump_address_same(&f->src, &e->dst) || !dump_address_same(&f->dst, &e->src))
			continue;
		if (f->port == e->port)
			return f->bye || has_ended(t, f, time);
		if (!newest || (f->port ^ e->port) < (newest->port ^ e->port))
			newest = f;
	}
	return newest && (newest->bye || has_ended(t, newest, time));
}

static bool is_same_error(const struct trace_icmp *i, const struct dump_view *v)
{
	const struct dump_icmp *a = &i->error, *b = &v->icmp;

	return a->type == b->type && a->code == b->code && dump_address_same(&i->from, &v->src) &&
	       dump_address_same(&a->src, &b->src) && dump_address_same(&a->dst, &b->dst);
}

static void icmp(struct trace *t, const struct dump_frame *frame, const struct dump_view *v,
		 uint64_t time)
{
	const struct dump_icmp *error = &v->icmp;
	struct trace_icmp *i;

	if (frame->way == DUMP_OUT)
		return;
	if (error->error == ICMP_ERROR_NO_PORT && has_closed(t, error, time))
		return;
	for (i = t->icmp; i < t->icmp + t->num_icmp; i++)
		if (is_same_error(i, v))
			break;
	if (i == t->icmp + TRACE_ICMP)
		return;
	if (i == t->icmp + t->num_icmp) {
		*i = (struct trace_icmp){
			.error = *error, .from = v->src, .file = frame->file, .first = time};
		t->num_icmp++;
	}
	i->count++;
}

static struct trace_owner *owner_of(struct trace *t, const struct dump_address *ip)
{
	unsigned int i;

	for (i = 0; i < t->num_owners; i++)
		if (dump_address_same(&t->owner[i].ip, ip))
			return &t->owner[i];
	if (t->num_owners == TRACE_OWNERS)
		return NULL;
	t->owner[t->num_owners] = (struct trace_owner){.ip = *ip};
	return &t->owner[t->num_owners++];
}

/*
 * Two MAC addresses answer for one IP address within TRACE_WAIT_NS, without a request between the
 * answers: two hosts have the address.
 */
static void answer(struct trace *t, const struct dump_frame *frame, const struct dump_neighbour *n,
		   uint64_t time)
{
	struct trace_owner *o = owner_of(t, &n->from);

	if (!o || frame->way == DUMP_OUT)
		return;
	if (o->answered && o->file == frame->file && o->answered + TRACE_WAIT_NS > time &&
	    memcmp(o->mac, n->mac, sizeof(o->mac))) {
		memcpy(o->second, n->mac, sizeof(o->second));
		if (!o->conflicts++)
			o->first = time;
		return;
	}
	memcpy(o->mac, n->mac, sizeof(o->mac));
	o->answered = time;
	o->file = frame->file;
}

static struct trace_tag *tag_of(struct trace *t, const struct dump_frame *frame, uint8_t kind)
{
	struct trace_tag *tag;

	for (tag = t->tag; tag < t->tag + t->num_tags; tag++)
		if (tag->file == frame->file && tag->iface == frame->iface && tag->kind == kind)
			return tag;
	if (t->num_tags == TRACE_TAGS)
		return NULL;
	*tag = (struct trace_tag){.file = frame->file, .iface = frame->iface, .kind = kind};
	t->num_tags++;
	return tag;
}

/* A request comes for the interface's address in another VLAN: the neighbour is in that VLAN. */
static void tags(struct trace *t, const struct dump_frame *frame, const struct dump_view *v,
		 uint64_t time)
{
	const struct dump_neighbour *n = &v->neighbour;
	struct trace_tag *tag = tag_of(t, frame, n->from.kind);

	if (!tag)
		return;
	if (frame->way == DUMP_OUT) {
		tag->own = v->vlan;
		tag->ip = n->from;
		tag->has = true;
	} else if (tag->has && v->vlan != tag->own && dump_address_same(&n->to, &tag->ip)) {
		tag->peer = n->from;
		tag->theirs = v->vlan;
		if (!tag->count++)
			tag->first = time;
	}
}

void trace_notice(struct trace *t, const struct dump_frame *frame, const struct dump_view *v,
		  uint64_t time)
{
	struct trace_owner *o;

	if (v->icmp.error != ICMP_ERROR_NONE)
		icmp(t, frame, v, time);
	if (!dump_is_neighbour(v))
		return;
	tags(t, frame, v, time);
	if (v->neighbour.answer) {
		answer(t, frame, &v->neighbour, time);
		return;
	}
	o = owner_of(t, &v->neighbour.to);
	if (o)
		o->answered = 0;
}
