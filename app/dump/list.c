/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/roce_counters.h"
#include "dump/anomaly.h"
#include "dump/clock.h"
#include "dump/follow.h"
#include "dump/frames.h"
#include "dump/host.h"
#include "dump/list.h"
#include "dump/options.h"
#include "dump/trace.h"

/* ---- lists ---------------------------------------------------------------------------------- */

#define SHOWN 10u         /* messages printed of each list, at most: repaired, waited, unfinished */
#define END_NS 5000000u   /* ns; messages with a frame this close to the end are not reported */
#define MATCH_NS 1000000u /* ns; a shorter wait for a receive is not reported */

struct list *list_make(const struct dump_options *o, struct report *r)
{
	struct list *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->o = o;
	l->r = r;
	l->slowest.room = (unsigned int)o->slowest;
	l->repaired.room = l->waited.room = l->unfinished.room = SHOWN;
	return l;
}

/* ---- which ---------------------------------------------------------------------------------- */

static bool is_peer(const struct trace *t, const struct msg *m, const char *wanted)
{
	char name[80];

	return strstr(stream_end_name(t, &t->flow[m->flow], false, name, sizeof(name)), wanted) ||
	       strstr(stream_end_name(t, &t->flow[m->flow], true, name, sizeof(name)), wanted);
}

static bool is_wanted(const struct dump_options *o, const struct trace *t, const struct msg *m)
{
	uint64_t since = m->first > t->begin ? m->first - t->begin : 0;

	if (o->peer && !is_peer(t, m, o->peer))
		return false;
	if (o->has_tag && (m->kind != MSG_TAG || m->tag != o->tag))
		return false;
	if (m->total < o->size_from || m->total > o->size_to)
		return false;
	return since >= o->time_from && since <= o->time_to && (!o->took || msg_took(m) >= o->took);
}

static void keep(struct list_top *top, const struct msg *m, uint64_t value)
{
	unsigned int at;

	if (!value)
		return;
	top->count++;
	if (top->num == top->room && (!top->room || top->one[top->num - 1].value >= value))
		return;
	at = top->num < top->room ? top->num++ : top->num - 1;
	for (; at > 0 && top->one[at - 1].value < value; at--)
		top->one[at] = top->one[at - 1];
	top->one[at].value = value;
	top->one[at].msg = *m;
}

bool list_take(struct list *l, const struct trace *t, const struct msg *m)
{
	uint64_t match = msg_match(m);

	if (!is_wanted(l->o, t, m))
		return false;
	if (l->o->messages)
		list_line(stdout, l, m);
	keep(&l->slowest, m, msg_took(m));
	keep(&l->repaired, m, m->repair);
	keep(&l->waited, m, match >= MATCH_NS && 2 * match > msg_took(m) ? match : 0);
	/* Messages with frames shortly before the end of the captures were making progress. */
	if (!msg_complete(m) && !(m->seen & (MSG_FORCED | MSG_WITHDRAWN)) &&
	    m->touched + END_NS < t->now)
		keep(&l->unfinished, m, t->now > m->first ? t->now - m->first : 1);
	return true;
}

/* ---- words ---------------------------------------------------------------------------------- */

/* "12.3 us", "4.50 ms", "6.700 s" */
static const char *list_time(uint64_t ns, char *buf, size_t size)
{
	if (ns < 1000000)
		snprintf(buf, size, "%.1f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(buf, size, "%.2f ms", (double)ns / 1e6);
	else
		snprintf(buf, size, "%.3f s", (double)ns / 1e9);
	return buf;
}

const char *list_what(const struct msg *m, char *buf, size_t size)
{
	static const char *const kinds[] = {
		[MSG_PUT] = "put", [MSG_GET] = "get", [MSG_AMO] = "atomic", [MSG_FLUSH] = "flush"};

	if (m->kind == MSG_TAG)
		snprintf(buf, size, "tag 0x%" PRIx64, m->tag);
	else if (m->kind == MSG_AM)
		snprintf(buf, size, "am %" PRIu64, m->tag);
	else
		snprintf(buf, size, "%s", kinds[m->kind]);
	return buf;
}

static const char *end_name(const struct list *l, const struct msg *m, bool to, char *buf,
			    size_t size)
{
	return stream_end_name(l->r->trace, &l->r->trace->flow[m->flow], to, buf, size);
}

static const char *lane_name(const struct list *l, uint32_t flow)
{
	return report_lane_name(l->r, &l->r->trace->flow[flow]);
}

static double percent(const struct msg *m, const struct msg_lane *lane)
{
	return m->bytes ? 100.0 * (double)lane->bytes / (double)m->bytes : 0;
}

/* ---- text ----------------------------------------------------------------------------------- */

static void lanes_text(FILE *out, const struct list *l, const struct msg *m)
{
	const struct msg_lane *last;
	char buf[32];
	uint64_t by;
	unsigned int i;

	for (i = 0; i < m->num_lanes; i++)
		fprintf(out, "%s %s %.0f%%", i ? "," : " |", lane_name(l, m->lane[i].flow),
			percent(m, &m->lane[i]));
	last = msg_last_lane(m, &by);
	if (last && by)
		fprintf(out, ", %s last by %s", lane_name(l, last->flow),
			list_time(by, buf, sizeof(buf)));
}

static void line_text(FILE *out, const struct list *l, const struct msg *m)
{
	uint64_t begin = l->r->trace->begin, since = m->first > begin ? m->first - begin : 0;
	char from[80], to[80], what[40], buf[32];

	fprintf(out, "%8" PRIu64 " %14.9f %s > %s %s %s %" PRIu64 " bytes ", m->number,
		(double)since / 1e9, end_name(l, m, false, from, sizeof(from)),
		end_name(l, m, true, to, sizeof(to)), list_what(m, what, sizeof(what)),
		msg_protocol(m), m->total);
	if (msg_took(m))
		fprintf(out, "%s", list_time(msg_took(m), buf, sizeof(buf)));
	else
		fprintf(out, msg_complete(m) ? "-" : "not finished");
	if (msg_match(m))
		fprintf(out, ", matched after %s", list_time(msg_match(m), buf, sizeof(buf)));
	lanes_text(out, l, m);
	if (m->again)
		fprintf(out, " | %u sent again", m->again);
	if (m->repair)
		fprintf(out, ", repaired after %s by %s", list_time(m->repair, buf, sizeof(buf)),
			m->seen & MSG_BY_TIMEOUT ? "timeout" : "acknowledgements");
	fputc('\n', out);
}

/* ---- CSV ------------------------------------------------------------------------------------ */

/* A spreadsheet takes text with these first characters for a formula. */
void csv_text(FILE *out, const char *text)
{
	putc('"', out);
	if (*text && strchr("=+-@", *text))
		putc('\'', out);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}

void list_csv_head(FILE *out)
{
	fprintf(out, "number,time_ns,from,to,what,protocol,bytes,complete,took_us,match_us,"
		     "sent_again,lost,repair_us,last_lane,last_by_us,lanes,version\n");
}

/* One cell: "dpdk:0=1200;dpdk:1=800", bytes. */
static void lanes_csv(FILE *out, const struct list *l, const struct msg *m)
{
	char text[MSG_LANES * 48] = "";
	size_t at = 0;

	for (unsigned int i = 0; i < m->num_lanes && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.24s=%" PRIu64,
				       i ? ";" : "", lane_name(l, m->lane[i].flow),
				       m->lane[i].bytes);
	csv_text(out, text);
}

static void line_csv(FILE *out, const struct list *l, const struct msg *m)
{
	const struct msg_lane *last;
	char from[80], to[80], what[40];
	uint64_t by;

	fprintf(out, "%" PRIu64 ",%" PRIu64 ",", m->number, m->first);
	csv_text(out, end_name(l, m, false, from, sizeof(from)));
	putc(',', out);
	csv_text(out, end_name(l, m, true, to, sizeof(to)));
	last = msg_last_lane(m, &by);
	fprintf(out, ",%s,%s,%" PRIu64 ",%d,%.3f,%.3f,%u,%u,%.3f,",
		list_what(m, what, sizeof(what)), msg_protocol(m), m->total, msg_complete(m),
		(double)msg_took(m) / 1e3, (double)msg_match(m) / 1e3, m->again, m->lost,
		(double)m->repair / 1e3);
	csv_text(out, last ? lane_name(l, last->flow) : "");
	fprintf(out, ",%.3f,", (double)by / 1e3);
	lanes_csv(out, l, m);
	fprintf(out, ",%d\n", DUMP_FORMAT_VERSION);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void lane_json(struct json *j, const struct list *l, const struct msg *m,
		      const struct msg_lane *lane)
{
	json_begin(j, NULL, '{');
	json_text(j, "lane", lane_name(l, lane->flow));
	json_number(j, "bytes", lane->bytes);
	json_number(j, "frames", lane->frames);
	json_number(j, "sent_again", lane->again);
	json_number(j, "lost", lane->lost);
	json_real(j, "from_us", (double)(int64_t)(lane->first - m->first) / 1e3);
	if (lane->last)
		json_real(j, "to_us", (double)(int64_t)(lane->last - m->first) / 1e3);
	json_end(j, '}');
}

/* Write the message as members of the object that is open. */
static void message_json(struct json *j, const struct list *l, const struct msg *m)
{
	const struct msg_lane *last;
	char buf[80];
	unsigned int i;
	uint64_t by;

	json_number(j, "message", m->number);
	json_number(j, "time", m->first);
	json_text(j, "from", end_name(l, m, false, buf, sizeof(buf)));
	json_text(j, "to", end_name(l, m, true, buf, sizeof(buf)));
	json_text(j, "what", list_what(m, buf, sizeof(buf)));
	json_text(j, "protocol", msg_protocol(m));
	json_number(j, "seq", m->seq);
	json_number(j, "channel", m->channel);
	json_number(j, "size", m->total);
	json_number(j, "bytes", m->bytes);
	json_raw(j, "complete", msg_complete(m) ? "true" : "false");
	if (msg_took(m))
		json_real(j, "took_us", (double)msg_took(m) / 1e3);
	if (msg_match(m))
		json_real(j, "match_us", (double)msg_match(m) / 1e3);
	json_number(j, "sent_again", m->again);
	json_number(j, "lost", m->lost);
	if (m->repair) {
		json_real(j, "repair_us", (double)m->repair / 1e3);
		json_text(j, "repaired_by",
			  m->seen & MSG_BY_TIMEOUT ? "timeout" : "acknowledgements");
	}
	last = msg_last_lane(m, &by);
	if (last && by) {
		json_text(j, "last_lane", lane_name(l, last->flow));
		json_real(j, "last_by_us", (double)by / 1e3);
	}
	json_begin(j, "lanes", '[');
	for (i = 0; i < m->num_lanes; i++)
		lane_json(j, l, m, &m->lane[i]);
	json_end(j, ']');
}

void list_json(struct json *j, const struct list *l, const char *name, const struct msg *m)
{
	json_begin(j, name, '{');
	message_json(j, l, m);
	json_end(j, '}');
}

void list_line(FILE *out, const struct list *l, const struct msg *m)
{
	struct json j = {.out = out};

	if (l->o->csv) {
		line_csv(out, l, m);
	} else if (l->o->json) {
		json_begin(&j, NULL, '{');
		json_number(&j, "version", DUMP_FORMAT_VERSION);
		message_json(&j, l, m);
		json_end(&j, '}');
		putc('\n', out);
	} else {
		line_text(out, l, m);
	}
}

/* ---- sentences ------------------------------------------------------------------------------ */

/* Lanes that sent frames again: with their number of lost frames, or if 0, of retransmissions. */
static size_t damage(const struct list *l, const struct msg *m, char *buf, size_t size)
{
	size_t at = 0;
	uint32_t lost, n;
	unsigned int i;

	for (i = 0; i < m->num_lanes && at < size; i++) {
		if (!m->lane[i].again)
			continue;
		lost = m->lane[i].lost;
		n = lost ? lost : m->lane[i].again;
		at += (size_t)snprintf(buf + at, size - at, "%s%u frame%s %s on %s", at ? ", " : "",
				       n, n == 1 ? "" : "s", lost ? "lost" : "sent again",
				       lane_name(l, m->lane[i].flow));
	}
	return at < size ? at : size - 1;
}

static void report_repaired(const struct list *l, const struct msg *m, list_sentence_cb cb,
			    void *arg)
{
	char text[400], to[80], t1[32], t2[32];
	const struct msg_lane *last;
	uint64_t by;
	size_t at;

	at = (size_t)snprintf(text, sizeof(text), "message %" PRIu64 " to %s: ", m->number,
			      end_name(l, m, true, to, sizeof(to)));
	at += damage(l, m, text + at, sizeof(text) - at);
	at += (size_t)snprintf(text + at, sizeof(text) - at, ", repaired after %s by %s",
			       list_time(m->repair, t1, sizeof(t1)),
			       m->seen & MSG_BY_TIMEOUT ? "timeout" : "acknowledgements");
	last = msg_last_lane(m, &by);
	if (last && by && at < sizeof(text))
		snprintf(text + at, sizeof(text) - at, "; the other lane%s waited %s for %s",
			 m->num_lanes > 2 ? "s" : "", list_time(by, t2, sizeof(t2)),
			 lane_name(l, last->flow));
	cb(arg, m, text);
}

static void report_waited(const struct list *l, const struct msg *m, list_sentence_cb cb, void *arg)
{
	char text[300], to[80], t1[32], what[40];

	snprintf(text, sizeof(text),
		 "message %" PRIu64 " to %s: %s, %" PRIu64 " bytes, waited %s for %s", m->number,
		 end_name(l, m, true, to, sizeof(to)), list_what(m, what, sizeof(what)), m->total,
		 list_time(msg_match(m), t1, sizeof(t1)),
		 !(m->seen & MSG_AT_RECEIVER) ? "its answer"
		 : m->kind == MSG_AM          ? "its handler there"
					      : "a receive there");
	cb(arg, m, text);
}

static void report_unfinished(const struct list *l, const struct msg *m, uint64_t age,
			      list_sentence_cb cb, void *arg)
{
	char text[300], to[80], t1[32], what[40];
	const char *why = "bytes are missing";

	if (m->seen & MSG_RTS && !m->answered)
		why = m->arrived ? "announced, and no receive has matched it"
				 : "announced, and the announcement has not arrived";
	else if (m->bytes >= m->total && m->seen & (MSG_RTS | MSG_SYNC))
		why = "all bytes have arrived, and the message that ends it has not";
	snprintf(text, sizeof(text),
		 "message %" PRIu64 " to %s: %s, %" PRIu64 " of %" PRIu64
		 " bytes, is not finished %s after its first frame: %s",
		 m->number, end_name(l, m, true, to, sizeof(to)), list_what(m, what, sizeof(what)),
		 m->bytes, m->total, list_time(age, t1, sizeof(t1)), why);
	cb(arg, m, text);
}

#define QUESTIONS 3u         /* fewer unanswered requests are not reported */
#define SILENT_NS 100000000u /* lanes with a newer acknowledgement are not reported */

void list_unanswered(const struct list *l, list_sentence_cb cb, void *arg)
{
	const struct trace *t = l->r->trace;
	const struct trace_question *q;
	const struct trace_flow *f;
	char text[300], from[DUMP_ADDRESS_LEN], to[DUMP_ADDRESS_LEN], t1[32];
	uint64_t since;
	unsigned int i;

	for (i = 0; i < t->num_questions; i++) {
		q = &t->question[i];
		if (q->unanswered < QUESTIONS)
			continue;
		snprintf(text, sizeof(text),
			 "no answer to the last %" PRIu64 " %s from %s %s %s, from %s "
			 "before the end on",
			 q->unanswered,
			 q->hello                      ? "HELLO"
			 : q->from.kind == ADDRESS_IP6 ? "neighbour solicitations"
						       : "ARP requests",
			 dump_address_text(&q->from, from), q->hello ? "to" : "for",
			 dump_address_text(&q->to, to),
			 list_time(t->now > q->since ? t->now - q->since : 0, t1, sizeof(t1)));
		cb(arg, NULL, text);
	}
	for (i = 0; i < t->num_flows; i++) {
		f = &t->flow[i];
		since = f->acked_at ? f->acked_at : f->first;
		if (!f->open_frames || !f->again || since + SILENT_NS > t->now)
			continue;
		snprintf(text, sizeof(text),
			 "lane %s: %u unacknowledged frames, and no acknowledgement in the last %s",
			 lane_name(l, i), f->open_frames,
			 list_time(t->now - since, t1, sizeof(t1)));
		cb(arg, NULL, text);
	}
}

void list_sentences(const struct list *l, list_sentence_cb cb, void *arg)
{
	const struct list_top *tops[] = {&l->repaired, &l->waited, &l->unfinished};
	static const char *const rest[] = {"were repaired", "waited for a receive",
					   "are not finished"};
	char text[100];
	unsigned int i, n;

	for (i = 0; i < 3; i++) {
		for (n = 0; n < tops[i]->num; n++) {
			if (i == 0)
				report_repaired(l, &tops[i]->one[n].msg, cb, arg);
			else if (i == 1)
				report_waited(l, &tops[i]->one[n].msg, cb, arg);
			else
				report_unfinished(l, &tops[i]->one[n].msg, tops[i]->one[n].value,
						  cb, arg);
		}
		if (tops[i]->count == tops[i]->num)
			continue;
		snprintf(text, sizeof(text), "%" PRIu64 " further messages %s",
			 tops[i]->count - tops[i]->num, rest[i]);
		cb(arg, NULL, text);
	}
}

/* ---- places --------------------------------------------------------------------------------- */

/*
 * The first lines of the report. Every part has a limit, so that what is wrong fits on a screen.
 * Interfaces of all hosts have the same names, so each end is printed with file and address.
 */

/*
 * Limits without --all. A fault has three lines, and observations are printed only with fewer
 * than FAULTS. So there are 26 lines at most.
 */
#define FAULTS 5u
#define SENTENCES 2u
#define OBSERVATIONS 2u
#define REASONS 2u
#define DEVICES 2u
#define CONNECTIONS 2u
#define WHERE 400

/* The file name without its folders, unless another capture has the same name. */
static const char *file_name(const struct report *r, unsigned int file)
{
	const char *name = strrchr(r->file[file]->name, '/'), *other;
	unsigned int i;

	name = name ? name + 1 : r->file[file]->name;
	for (i = 0; i < r->trace->num_files; i++) {
		other = strrchr(r->file[i]->name, '/');
		other = other ? other + 1 : r->file[i]->name;
		if (i != file && !strcmp(name, other))
			return r->file[file]->name;
	}
	return name;
}

const char *verdict_end(const struct report *r, const struct trace_flow *f, bool to, char *buf,
			size_t size)
{
	const struct trace_port *p = to ? &f->in : &f->out;
	char address[DUMP_ADDRESS_LEN] = "";

	if (!f->record)
		dump_address_text(to ? &f->dst : &f->src, address);
	if (p->known)
		snprintf(buf, size, "%s %s %s", file_name(r, p->file),
			 r->file[p->file]->iface[p->iface].lane, address);
	else
		snprintf(buf, size, "%s", address[0] ? address : "?");
	return buf;
}

const char *verdict_where(const struct report *r, const struct trace_anomaly *a, char *buf,
			  size_t size)
{
	const struct trace_flow *f;
	char from[180], to[180];

	if (a->flow == TRACE_NONE) {
		snprintf(buf, size, "%s%s", a->fault == FAULT_CAPTURE_GAPS ? "" : "host of ",
			 file_name(r, a->host));
		return buf;
	}
	f = &r->trace->flow[a->flow];
	snprintf(buf, size, "%s > %s", verdict_end(r, f, false, from, sizeof(from)),
		 verdict_end(r, f, true, to, sizeof(to)));
	return buf;
}

/* ---- not judged ----------------------------------------------------------------------------- */

static uint64_t judged(const struct trace *t)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < t->num_flows; i++)
		sum += t->flow[i].judged;
	return sum;
}

static bool lacks_directions(const struct survey_file *f)
{
	unsigned int i;

	for (i = 0; f->undirected && i < DUMP_IFACES; i++)
		if (f->port[i].undirected && f->port[i].station == SURVEY_NO_STATION)
			return true;
	return false;
}

static void of_file(const struct report *r, unsigned int i, void (*cb)(void *arg, const char *text),
		    void *arg)
{
	const struct survey_file *f = &r->trace->survey->file[i];
	bool alone = r->trace->num_files == 1;
	char text[300];

	if (f->too_short) {
		snprintf(text, sizeof(text),
			 "%" PRIu64
			 " frames of %s: captured with %u bytes of each, and at least %u "
			 "are needed; capture with a larger snaplen",
			 f->too_short, file_name(r, i), f->caplen, f->needed);
		cb(arg, text);
	} else if (!alone && !r->clock[i].known) {
		snprintf(text, sizeof(text),
			 "%s: no frame of it is also in another capture with directions in both",
			 file_name(r, i));
		cb(arg, text);
	} else if (!alone && lacks_directions(f)) {
		snprintf(text, sizeof(text),
			 "frames of %s: the capture has no directions, and the host's own address, "
			 "which would show them, is unknown; capture on the hosts themselves",
			 file_name(r, i));
		cb(arg, text);
	}
	if (!alone && f->lost > f->placed) {
		snprintf(text, sizeof(text),
			 "frames that %s lacks: its writer has lost %" PRIu64
			 " records at unknown times",
			 file_name(r, i), f->lost);
		cb(arg, text);
	}
}

/* Files of flight recorders state which frames were damaged. */
static bool are_recorders(const struct trace *t)
{
	unsigned int i;

	for (i = 0; t->survey && i < t->num_files; i++)
		if (!t->survey->file[i].recorder)
			return false;
	return t->survey && t->survey->done;
}

void verdict_not_judged(const struct report *r, void (*cb)(void *arg, const char *text), void *arg)
{
	const struct trace *t = r->trace;
	unsigned int i, n = 0;

	if (!r->counts->frames)
		cb(arg, "anything: there is no frame, or the filter takes none");
	else if (t->num_files == 1 && !judged(t))
		cb(arg, "what became of frames: that takes the captures of both hosts");
	for (i = 0; t->survey && t->survey->done && i < t->num_files; i++) {
		n += r->clock[i].known;
		of_file(r, i, cb, arg);
	}
	if (t->num_files > 1 && n == t->num_files && t->num_flows && !judged(t))
		cb(arg, "what became of frames: no two captures have both ends of a lane at one "
			"time");
	if (judged(t) && r->counts->cut && !are_recorders(t))
		cb(arg, "corruption of frames that are cut: it takes captures of whole frames");
}

/* ---- the first lines ------------------------------------------------------------------------ */

struct lines {
	FILE *out;
	const char *before;
	unsigned int num, most;
};

static void line(void *arg, const char *text)
{
	struct lines *n = arg;

	if (n->num++ < n->most)
		fprintf(n->out, "%s%s\n", n->before, text);
}

static void sentence(void *arg, const struct msg *m, const char *text)
{
	(void)m;
	line(arg, text);
}

static void fault_text(FILE *out, const struct report *r, const struct trace_anomaly *a)
{
	uint64_t begin = r->trace->begin, after = a->time > begin ? a->time - begin : 0;
	char when[40], where[WHERE];

	fputs(trace_fault_name(a->fault), out);
	if (a->share > 0)
		fprintf(out, a->share >= 0.1 ? ", %.0f %%" : ", %.2g %%", 100 * a->share);
	fprintf(out, ", %s\n", verdict_where(r, a, where, sizeof(where)));
	fprintf(out, "  since %s (%.3f s after the first frame): %s\n",
		dump_time_text(a->time, when, sizeof(when)), (double)after / 1e9, a->text);
	fprintf(out, "  to do: %s\n", trace_fault_advice(a->fault));
}

static void observation_text(FILE *out, const struct report *r, const struct trace_anomaly *a)
{
	char where[WHERE];

	fprintf(out, "observed: %s, %s: %s\n", trace_fault_name(a->fault),
		verdict_where(r, a, where, sizeof(where)), a->text);
}

static void no_fault(FILE *out, const struct trace *t)
{
	unsigned int i, n = 0;

	for (i = 0; i < t->num_flows; i++)
		n += t->flow[i].judged > 0;
	if (judged(t))
		fprintf(out,
			"no fault found: %" PRIu64 " frames in %u direction%s of lanes are "
			"compared\n",
			judged(t), n, n == 1 ? "" : "s");
}

/* ---- devices -------------------------------------------------------------------------------- */

static bool same_port(const struct dump_device_counter *a, const struct dump_device_counter *b)
{
	return !strcmp(a->port, b->port) && !strcmp(a->device, b->device);
}

static bool has_grown(const struct dump_device_counter *c)
{
	return c->last > c->first && roce_counter_text(c->name) != NULL;
}

/* Pass a line with the counters of a port that have grown. @param c  the first of them */
static void port_line(const struct report *r, const struct dump_file *file,
		      const struct dump_device_counter *c, void (*cb)(void *arg, const char *text),
		      void *arg)
{
	const struct dump_device_counter *one, *end = file->devices.of + file->devices.num;
	uint64_t since = c->since, begin = r->trace->begin;
	char text[800];
	size_t at;

	at = (size_t)snprintf(text, sizeof(text),
			      "%.200s: RoCE device %s, port %s, all programs of its host:",
			      file->name, c->device, c->port);
	for (one = c; one < end && at < sizeof(text); one++) {
		if (!same_port(one, c) || !has_grown(one))
			continue;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %" PRIu64 " %s",
				       one == c ? "" : ",", one->last - one->first,
				       roce_counter_text(one->name));
		since = one->since && one->since < since ? one->since : since;
	}
	if (at < sizeof(text))
		snprintf(text + at, sizeof(text) - at,
			 "; the first in the second before %.3f s after the first frame",
			 since > begin ? (double)(since - begin) / 1e9 : 0);
	cb(arg, text);
}

void verdict_devices(const struct report *r, void (*cb)(void *arg, const char *text), void *arg)
{
	const struct dump_device_counter *c, *before;
	const struct dump_devices *d;

	for (unsigned int i = 0; i < r->trace->num_files; i++) {
		d = &r->file[i]->devices;
		for (c = d->of; c < d->of + d->num; c++) {
			for (before = d->of; before < c; before++)
				if (same_port(before, c) && has_grown(before))
					break;
			if (before == c && has_grown(c))
				port_line(r, r->file[i], c, cb, arg);
		}
	}
}

/* ---- all ------------------------------------------------------------------------------------ */

static void reasons(FILE *out, const struct report *r, unsigned int most)
{
	const struct trace *t = r->trace;
	unsigned int i, n = 0;

	for (i = 0; t->survey && t->survey->done && i < t->num_files; i++)
		if (t->survey->file[i].comment[0] && n++ < most)
			fprintf(out, "%s was written because: %s\n", file_name(r, i),
				t->survey->file[i].comment);
}

void verdict_text(FILE *out, const struct list *l)
{
	static struct trace_anomaly found[TRACE_ANOMALIES];
	const struct report *r = l->r;
	bool all = l->o->all;
	unsigned int i, n = trace_anomalies(r->trace, found), verdicts = trace_verdicts(found, n),
			shown = all || verdicts < FAULTS ? verdicts : FAULTS;
	struct lines silent = {out, "", 0, all ? UINT32_MAX : SENTENCES};
	struct lines devices = {out, "", 0, all ? UINT32_MAX : DEVICES};
	struct lines roce = {out, "", 0, all ? UINT32_MAX : CONNECTIONS};
	struct lines why = {out, "not judged: ", 0, all ? UINT32_MAX : REASONS};

	for (i = 0; i < shown; i++)
		fault_text(out, r, &found[i]);
	if (shown < verdicts)
		fprintf(out, "%u weaker faults: see --all\n", verdicts - shown);
	list_unanswered(l, sentence, &silent);
	if (silent.num > silent.most)
		fprintf(out, "%u further unanswered requests or lanes: see --all\n",
			silent.num - silent.most);
	if (!verdicts && !silent.num)
		no_fault(out, r->trace);
	for (i = verdicts; i < n && (all || (shown < FAULTS && i < verdicts + OBSERVATIONS)); i++)
		observation_text(out, r, &found[i]);
	verdict_devices(r, line, &devices);
	report_roce(r, line, &roce);
	verdict_not_judged(r, line, &why);
	reasons(out, r, all ? UINT32_MAX : 1);
}
