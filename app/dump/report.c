/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/report.h"

#include <inttypes.h>

#include "dump/json.h"

static struct trace_anomaly found[TRACE_ANOMALIES];

/* Where a flow's frames were seen; "?" = nowhere. */
static const char *port_name(const struct report *r, const struct trace_port *p)
{
	return p->known ? r->file[p->file]->iface[p->iface].name : "?";
}

static const char *host_name(const struct report *r, const struct trace_port *p)
{
	return p->known ? r->file[p->file]->name : "?";
}

/* Lanes: flows, each with its other direction. */
static const struct trace_flow *lane(const struct report *r, unsigned int i)
{
	const struct trace_flow *f = &r->trace->flow[i], *g = trace_other(r->trace, f);

	return g && g < f ? NULL : f;
}

static double seconds(const struct trace_flow *f)
{
	return f->last > f->first ? (double)(f->last - f->first) / 1e9 : 0;
}

static double rate(const struct trace_flow *f)
{
	return seconds(f) > 0 ? (double)f->bytes / seconds(f) / 1e6 : 0;
}

/* ---- text ----------------------------------------------------------------------------------- */

static void flow_text(FILE *out, const struct report *r, const struct trace_flow *f)
{
	fprintf(out,
		"    %s > %s: %" PRIu64 " frames, %" PRIu64 " bytes, %.2f MB/s, %" PRIu64
		" sent again",
		port_name(r, &f->out), port_name(r, &f->in), f->frames, f->bytes, rate(f),
		f->again);
	if (f->judged)
		fprintf(out,
			"; %" PRIu64 " lost, %" PRIu64 " twice, %" PRIu64 " late, %" PRIu64
			" changed, least delay %.3f us",
			f->lost, f->twice, f->late, f->changed,
			f->min_delay == INT64_MAX ? 0 : (double)f->min_delay / 1e3);
	fputc('\n', out);
}

static void anomaly_text(FILE *out, const struct report *r, const struct trace_anomaly *a)
{
	const struct trace_flow *f = a->flow == TRACE_NONE ? NULL : &r->trace->flow[a->flow];
	char when[40];

	fprintf(out, "  %s %s", dump_time_text(a->time, when, sizeof(when)),
		trace_fault_name(a->fault));
	if (f)
		fprintf(out, ", lane %s > %s", port_name(r, &f->out), port_name(r, &f->in));
	else
		fprintf(out, ", host of %s", r->file[a->host]->name);
	fprintf(out, ": %s\n", a->text);
}

void report_text(FILE *out, const struct report *r)
{
	unsigned int i, n;

	for (i = 0; i < r->trace->num_files; i++)
		if (r->trace->num_files > 1)
			fprintf(out, "%s: clock %+.3f us, drift %+.3f ppm%s\n", r->file[i]->name,
				(double)r->clock[i].offset / 1e3, r->clock[i].drift * 1e6,
				r->clock[i].known ? "" : " (no frame tells)");
	dump_counts_text(out, r->counts);
	for (i = 0; i < r->trace->num_flows; i++) {
		if (!lane(r, i))
			continue;
		fprintf(out, "lane %u\n", i);
		flow_text(out, r, lane(r, i));
		if (trace_other(r->trace, lane(r, i)))
			flow_text(out, r, trace_other(r->trace, lane(r, i)));
	}
	n = trace_anomalies(r->trace, found);
	fprintf(out, n ? "anomalies\n" : "no anomalies\n");
	for (i = 0; i < n; i++)
		anomaly_text(out, r, &found[i]);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void json_real(struct json *j, const char *name, double v)
{
	char buf[40];

	snprintf(buf, sizeof(buf), "%.6f", v);
	json_raw(j, name, buf);
}

static void flow_json(struct json *j, const struct report *r, const struct trace_flow *f)
{
	json_begin(j, NULL, '{');
	json_text(j, "from", port_name(r, &f->out));
	json_text(j, "from_file", host_name(r, &f->out));
	json_text(j, "to", port_name(r, &f->in));
	json_text(j, "to_file", host_name(r, &f->in));
	json_number(j, "frames", f->frames);
	json_number(j, "bytes", f->bytes);
	json_real(j, "rate_mb_s", rate(f));
	json_number(j, "sent_again", f->again);
	if (f->judged) {
		json_number(j, "compared", f->judged);
		json_number(j, "lost", f->lost);
		json_number(j, "twice", f->twice);
		json_number(j, "late", f->late);
		json_number(j, "changed", f->changed);
		if (f->min_delay != INT64_MAX)
			json_real(j, "least_delay_us", (double)f->min_delay / 1e3);
	}
	json_end(j, '}');
}

static void anomaly_json(struct json *j, const struct report *r, const struct trace_anomaly *a)
{
	const struct trace_flow *f = a->flow == TRACE_NONE ? NULL : &r->trace->flow[a->flow];

	json_begin(j, NULL, '{');
	json_text(j, "class", trace_fault_name(a->fault));
	json_number(j, "time", a->time);
	if (f) {
		json_begin(j, "lane", '[');
		json_text(j, NULL, port_name(r, &f->out));
		json_text(j, NULL, port_name(r, &f->in));
		json_end(j, ']');
	}
	json_text(j, "host", r->file[a->host]->name);
	json_text(j, "evidence", a->text);
	json_end(j, '}');
}

static void clocks_json(struct json *j, const struct report *r)
{
	unsigned int i;

	json_begin(j, "captures", '[');
	for (i = 0; i < r->trace->num_files; i++) {
		json_begin(j, NULL, '{');
		json_text(j, "file", r->file[i]->name);
		json_number(j, "frames", r->file[i]->frames);
		json_number(j, "lost_by_writer", r->file[i]->dropped);
		json_real(j, "clock_us", (double)r->clock[i].offset / 1e3);
		json_real(j, "drift_ppm", r->clock[i].drift * 1e6);
		if (r->file[i]->why[0])
			json_text(j, "damaged", r->file[i]->why);
		json_end(j, '}');
	}
	json_end(j, ']');
}

void report_json(FILE *out, const struct report *r)
{
	struct json j = {.out = out};
	unsigned int i, n;

	json_begin(&j, NULL, '{');
	dump_counts_json(&j, r->counts);
	clocks_json(&j, r);
	json_begin(&j, "lanes", '[');
	for (i = 0; i < r->trace->num_flows; i++) {
		if (!lane(r, i))
			continue;
		json_begin(&j, NULL, '[');
		flow_json(&j, r, lane(r, i));
		if (trace_other(r->trace, lane(r, i)))
			flow_json(&j, r, trace_other(r->trace, lane(r, i)));
		json_end(&j, ']');
	}
	json_end(&j, ']');
	json_begin(&j, "anomalies", '[');
	n = trace_anomalies(r->trace, found);
	for (i = 0; i < n; i++)
		anomaly_json(&j, r, &found[i]);
	json_end(&j, ']');
	json_end(&j, '}');
	fputc('\n', out);
}
