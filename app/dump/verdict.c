/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first lines of the report. Every part has a limit, so that what is wrong fits on a screen.
 * Interfaces of all hosts have the same names, so each end is printed with file and address.
 */

#include "dump/verdict.h"

#include <inttypes.h>
#include <string.h>

#include "common/roce_counters.h"
#include "dump/anomaly.h"
#include "dump/clock.h"
#include "dump/options.h"
#include "dump/trace.h"

/*
 * Limits without --all. A fault has three lines, and observations are printed only with fewer
 * than FAULTS. So there are 24 lines at most.
 */
#define FAULTS 5u
#define SENTENCES 2u
#define OBSERVATIONS 2u
#define REASONS 2u
#define DEVICES 2u
#define WHERE 400

/* The last part of a path, if that is another one for each file. */
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
		fprintf(out, ", %.2g %%", 100 * a->share);
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

/* The counters of the port of @p c, which is its first one that has grown. */
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
		snprintf(text + at, sizeof(text) - at, "; the first within 1 s before %.3f s",
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
	struct lines why = {out, "not judged: ", 0, all ? UINT32_MAX : REASONS};

	for (i = 0; i < shown; i++)
		fault_text(out, r, &found[i]);
	if (shown < verdicts)
		fprintf(out, "%u weaker faults: see --all\n", verdicts - shown);
	list_unanswered(l, sentence, &silent);
	if (silent.num > silent.most)
		fprintf(out, "%u further: see --all\n", silent.num - silent.most);
	if (!verdicts && !silent.num)
		no_fault(out, r->trace);
	for (i = verdicts; i < n && (all || (shown < FAULTS && i < verdicts + OBSERVATIONS)); i++)
		observation_text(out, r, &found[i]);
	verdict_devices(r, line, &devices);
	verdict_not_judged(r, line, &why);
	reasons(out, r, all ? UINT32_MAX : 1);
}
