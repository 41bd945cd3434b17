/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A report in one file: no scripts and no external resources, which its content security policy
 * enforces in the browser. Buttons and styles zoom the pictures, and titles show values under the
 * mouse. svg_text() escapes all text from captures.
 */

#include "dump/html.h"

#include "dump/anomaly.h"
#include "dump/clock.h"
#include "dump/frames.h"
#include "dump/list.h"
#include "dump/report.h"
#include "dump/svg.h"
#include "dump/timeline.h"
#include "dump/trace.h"
#include "dump/verdict.h"

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" "
	"content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
	"<title>Weft captures</title>\n<style>\n"
	"body{font-family:sans-serif;max-width:1000px;margin:2em auto;padding:0 1em}\n"
	"table{border-collapse:collapse;font-size:13px}\n"
	"td,th{padding:3px 9px;border-bottom:1px solid #ddd;text-align:right}\n"
	"td.t,th.t{text-align:left}\n"
	"li{margin:4px 0}\n"
	/* A picture in a window of its own; text and lines keep their size when it grows. */
	".v{overflow:auto;max-height:95vh;border:1px solid #ddd}\n"
	".v svg{width:100%;height:auto;display:block}\n"
	".v line,.v polyline{vector-effect:non-scaling-stroke}\n"
	".v g:hover line,.v g:hover polyline{stroke-width:3}\n"
	".p input:nth-of-type(2):checked~.v svg{width:200%}\n"
	".p input:nth-of-type(2):checked~.v text{font-size:6px}\n"
	".p input:nth-of-type(3):checked~.v svg{width:400%}\n"
	".p input:nth-of-type(3):checked~.v text{font-size:3px}\n"
	".p input:nth-of-type(4):checked~.v svg{width:800%}\n"
	".p input:nth-of-type(4):checked~.v text{font-size:1.5px}\n"
	".p input:nth-of-type(5):checked~.v svg{width:1600%}\n"
	".p input:nth-of-type(5):checked~.v text{font-size:.75px}\n"
	"</style></head><body>\n<h1>Weft captures</h1>\n";

static void cell(FILE *out, const char *text)
{
	fputs("<td class=\"t\">", out);
	svg_text(out, text);
	fputs("</td>", out);
}

static void number(FILE *out, double value, int digits)
{
	fprintf(out, "<td>%.*f</td>", digits, value);
}

/* A cell with a time; the mouse shows its exact value. */
static void cell_time(FILE *out, double us)
{
	char text[24];

	fprintf(out, "<td title=\"%.3f us\">%s</td>", us, svg_time(us, text));
}

static void cell_bytes(FILE *out, double bytes)
{
	char text[24];

	fprintf(out, "<td title=\"%.0f bytes\">%s</td>", bytes, svg_bytes(bytes, text));
}

/* Begin a picture, with the buttons of its zoom; picture_end() ends it. */
static void picture_begin(FILE *out, unsigned int n)
{
	fputs("<div class=\"p\">zoom", out);
	for (unsigned int i = 0; i < 5; i++)
		fprintf(out,
			"<input type=\"radio\" name=\"z%u\" id=\"z%u-%u\"%s>"
			"<label for=\"z%u-%u\">%u</label>",
			n, n, i, i == 0 ? " checked" : "", n, i, 1u << i);
	fputs("<div class=\"v\">\n", out);
}

static void picture_end(FILE *out)
{
	fputs("</div></div>\n", out);
}

static void table(FILE *out, const char *const *columns, unsigned int texts)
{
	unsigned int i;

	fputs("<table><tr>", out);
	for (i = 0; columns[i]; i++)
		fprintf(out, "<th%s>%s</th>", i < texts ? " class=\"t\"" : "", columns[i]);
	fputs("</tr>\n", out);
}

static void captures(FILE *out, const struct report *r)
{
	static const char *const columns[] = {
		"capture", "begins", "frames", "lost by writer", "clock ahead", "drift, ppm", NULL};
	char when[40];
	unsigned int i;

	table(out, columns, 2);
	for (i = 0; i < r->trace->num_files; i++) {
		fputs("<tr>", out);
		cell(out, r->file[i]->name);
		cell(out, dump_time_text(r->trace->host[i].first, when, sizeof(when)));
		number(out, (double)r->file[i]->frames, 0);
		number(out, (double)dump_file_dropped(r->file[i]), 0);
		cell_time(out, (double)r->clock[i].offset / 1e3);
		number(out, r->clock[i].drift * 1e6, 3);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

static void reason(void *arg, const char *text)
{
	fputs("<li>not judged: ", arg);
	svg_text(arg, text);
	fputs("</li>\n", arg);
}

static void device(void *arg, const char *text)
{
	fputs("<li>", arg);
	svg_text(arg, text);
	fputs("</li>\n", arg);
}

static void anomalies(FILE *out, const struct report *r)
{
	static struct trace_anomaly found[TRACE_ANOMALIES];
	unsigned int i, n = trace_anomalies(r->trace, found), verdicts = trace_verdicts(found, n);
	char when[40], where[400];

	for (i = 0; i < n; i++) {
		fprintf(out, "<li>%s<b>%s</b>, ", found[i].observation ? "observed: " : "",
			trace_fault_name(found[i].fault));
		svg_text(out, verdict_where(r, &found[i], where, sizeof(where)));
		fprintf(out, ", %s: ", dump_time_text(found[i].time, when, sizeof(when)));
		svg_text(out, found[i].text);
		if (!found[i].observation) {
			fputs("; to do: ", out);
			svg_text(out, trace_fault_advice(found[i].fault));
		}
		fputs("</li>\n", out);
	}
	if (!verdicts)
		fputs("<li>no fault of the network is seen</li>\n", out);
	verdict_devices(r, device, out);
	verdict_not_judged(r, reason, out);
}

static void sentence(void *arg, const struct msg *m, const char *text)
{
	(void)m;
	fputs("<li>", arg);
	svg_text(arg, text);
	fputs("</li>\n", arg);
}

static void conversations(FILE *out, const struct report *r)
{
	static const char *const columns[] = {"from", "to", "messages", "bytes", "lanes", NULL};
	struct report_conversation c;
	char name[80];
	unsigned int i;

	table(out, columns, 2);
	for (i = 0; i < r->trace->num_flows; i++) {
		if (!report_conversation(r, i, &c))
			continue;
		fputs("<tr>", out);
		cell(out, stream_end_name(r->trace, &r->trace->flow[i], false, name, sizeof(name)));
		cell(out, stream_end_name(r->trace, &r->trace->flow[i], true, name, sizeof(name)));
		number(out, (double)c.messages, 0);
		cell_bytes(out, (double)c.bytes);
		number(out, c.lanes, 0);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

static void lanes(FILE *out, const struct report *r)
{
	static const char *const columns[] = {"from",       "to",   "frames",    "bytes", "MB/s",
					      "again",      "lost", "twice",     "late",  "changed",
					      "round trip", "p99",  "in flight", "most",  NULL};
	const struct trace_flow *f;
	char name[200];
	unsigned int i;

	table(out, columns, 2);
	for (i = 0; i < r->trace->num_flows; i++) {
		f = &r->trace->flow[i];
		fputs("<tr>", out);
		cell(out, verdict_end(r, f, false, name, sizeof(name)));
		cell(out, verdict_end(r, f, true, name, sizeof(name)));
		number(out, (double)f->frames, 0);
		cell_bytes(out, (double)f->bytes);
		number(out, report_rate(f), 2);
		number(out, (double)f->again, 0);
		number(out, (double)f->lost, 0);
		number(out, (double)f->twice, 0);
		number(out, (double)f->late, 0);
		number(out, (double)f->changed, 0);
		cell_time(out, (double)hist_quantile(&f->rtt, 0.5) / 1e3);
		cell_time(out, (double)hist_quantile(&f->rtt, 0.99) / 1e3);
		cell_bytes(out, report_flight(f));
		cell_bytes(out, (double)f->most_bytes);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

static void protocols(FILE *out, const struct trace_follow *fo)
{
	static const char *const columns[] = {"protocol", "messages", "bytes", "median",
					      "p99",      "most",     NULL};
	const struct msg_sum *s;
	unsigned int i;

	table(out, columns, 1);
	for (i = 0; i < MSG_PROTOCOLS; i++) {
		s = &fo->sum[i];
		if (!s->count)
			continue;
		fputs("<tr>", out);
		cell(out, msg_protocol_name(i));
		number(out, (double)s->count, 0);
		cell_bytes(out, (double)s->bytes);
		cell_time(out, (double)hist_quantile(&s->took, 0.5) / 1e3);
		cell_time(out, (double)hist_quantile(&s->took, 0.99) / 1e3);
		cell_time(out, (double)s->took.max / 1e3);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

void html_report(FILE *out, struct list *l)
{
	const struct trace_follow *fo = l->r->trace->follow;
	unsigned int i;

	fputs(head, out);
	captures(out, l->r);
	fputs("<h2>What was wrong</h2>\n<ul>\n", out);
	anomalies(out, l->r);
	list_unanswered(l, sentence, out);
	list_sentences(l, sentence, out);
	fputs("</ul>\n<h2>Conversations</h2>\n", out);
	conversations(out, l->r);
	fputs("<h2>Lanes</h2>\n", out);
	lanes(out, l->r);
	picture_begin(out, 0);
	svg_lanes(out, l);
	picture_end(out);
	fputs("<h2>Messages</h2>\n", out);
	protocols(out, fo);
	fputs("<h2>The slowest messages</h2>\n", out);
	for (i = 0; i < fo->num_watched; i++) {
		if (!fo->watch[i].found)
			continue;
		picture_begin(out, i + 1);
		svg_message(out, l, &fo->watch[i]);
		picture_end(out);
	}
	fputs("</body></html>\n", out);
}
