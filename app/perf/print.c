/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The output of weft-perf. Figures mean the same as in ucx_perftest: the latency of a ping-pong is
 * half a round trip, its bandwidth and rate count both directions, "MB" is 2^20 bytes.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "perf/flow.h"
#include "perf/print.h"

#define MIB 1048576.0

struct printed {
	uint64_t iters;
	double recent, average, overall, p50, p99, p999; /* us */
	double average_rate, overall_rate;               /* messages/s */
	double average_bw, overall_bw;                   /* MiB/s */
};

static double per_second(double seconds)
{
	return seconds > 0 ? 1 / seconds : 0;
}

static struct printed figures(const struct perf_run *run, const struct perf_meter *meter)
{
	/*
	 * An iteration of a ping-pong has two messages one after the other, one of tag_bibw has two
	 * at a time. An iteration of get_lat, fadd_lat and cswap_lat is a whole operation.
	 */
	double halves = perf_is_ping_pong(run->test) ? 2 : 1;
	double messages = perf_is_ping_pong(run->test) || run->test == PERF_TAG_BIBW ? 2 : 1;
	struct perf_figures f;
	struct printed p;

	perf_meter_read(meter, &f);
	p.iters = f.iters;
	p.recent = f.recent_median / halves * 1e6;
	p.average = f.average / halves * 1e6;
	p.overall = f.overall / halves * 1e6;
	p.p50 = f.p50 / halves * 1e6;
	p.p99 = f.p99 / halves * 1e6;
	p.p999 = f.p999 / halves * 1e6;
	p.average_rate = per_second(f.average) * messages;
	p.overall_rate = per_second(f.overall) * messages;
	p.average_bw = p.average_rate * (double)run->size / MIB;
	p.overall_bw = p.overall_rate * (double)run->size / MIB;
	return p;
}

/* "dpdk:0=51.2%;dpdk:1=48.8%", or short: "51:49". */
static void shares(const struct perf_lanes *lanes, bool brief, char *buf, size_t len)
{
	uint64_t sum = 0;
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; i < lanes->count; i++)
		sum += lanes->bytes[i];
	if (!lanes->count)
		snprintf(buf, len, "-");
	for (unsigned int i = 0; i < lanes->count && at < len; i++) {
		double part = sum ? 100.0 * (double)lanes->bytes[i] / (double)sum : 0;

		at += (size_t)(brief ? snprintf(buf + at, len - at, "%s%.0f", i ? ":" : "", part)
				     : snprintf(buf + at, len - at, "%s%s=%.1f%%", i ? ";" : "",
						lanes->name[i], part));
	}
}

/* ---- CSV */

static void csv_begin(const struct perf_options *opts)
{
	if (opts->tests[0] == PERF_TAG_FLOOD)
		printf("messages,size,payload_bytes,before_bytes,peak_bytes,growth_bytes,bound_"
		       "bytes,late_us,"
		       "wrong,version\n");
	else
		printf("iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_"
		       "mr,overall_mr,"
		       "p50_lat,p99_lat,p99.9_lat,test,size,window,protocol,lanes,retransmits,"
		       "wrong,"
		       "idle_hwm_kb,hwm_kb,hugetlb_kb,peer_idle_hwm_kb,peer_hwm_kb,peer_hugetlb_"
		       "kb,version\n");
}

static void csv_figures(const struct perf_run *run, const struct printed *p)
{
	printf("%" PRIu64 ",%.3f,%.3f,%.3f,%.2f,%.2f,%.0f,%.0f,%.3f,%.3f,%.3f,%s,%" PRIu64
	       ",%" PRIu64,
	       p->iters, p->recent, p->average, p->overall, p->average_bw, p->overall_bw,
	       p->average_rate, p->overall_rate, p->p50, p->p99, p->p999, perf_test_name(run->test),
	       run->size, run->window);
}

static void csv_run(const struct perf_report *r, const struct printed *p)
{
	struct sys_memory memory;
	char lanes[512];

	sys_memory(&memory);
	shares(r->lanes, false, lanes, sizeof(lanes));
	csv_figures(r->run, p);
	printf(",%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
	       ",%" PRIu64 ",%" PRIu64 ",%d\n",
	       r->protocol, lanes, r->lanes->retransmits, r->wrong, r->idle_peak / 1024,
	       memory.peak / 1024, memory.hugetlb / 1024, r->remote->idle_peak / 1024,
	       r->remote->peak / 1024, r->remote->hugetlb / 1024, PERF_FORMAT_VERSION);
}

/* ---- JSON: an object in each line, so that a failed run leaves the figures before it */

static void json_text(const char *name, const char *text)
{
	printf(",\"%s\":\"", name);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text >= ' ')
			putchar(*text);
	}
	putchar('"');
}

static void json_begin(struct peer *p)
{
	struct weft_lane_info info = {.size = sizeof(info)};

	printf("{\"version\":%d,\"type\":\"begin\"", PERF_FORMAT_VERSION);
	json_text("weft", weft_version_string());
	json_text("peer", oob_peer_name(p->oob));
	printf(",\"lanes\":[");
	for (unsigned int i = 0; p->ep && weft_ep_query_lane(p->ep, i, &info) == 0; i++) {
		printf("%s{\"index\":%u", i ? "," : "", i);
		json_text("name", info.name);
		json_text("state", weft_lane_state_name(info.state));
		json_text("remote", info.remote);
		if (info.frame_size)
			printf(",\"frame_size\":%zu", info.frame_size);
		printf("}");
	}
	printf("]}\n");
}

static void json_figures(const char *type, const struct perf_run *run, const struct printed *p)
{
	printf("{\"version\":%d,\"type\":\"%s\"", PERF_FORMAT_VERSION, type);
	json_text("test", perf_test_name(run->test));
	printf(",\"size_bytes\":%" PRIu64 ",\"window\":%" PRIu64 ",\"iterations\":%" PRIu64
	       ",\"p50_seconds\":%.9f,\"p99_seconds\":%.9f,\"p99_9_seconds\":%.9f"
	       ",\"average_seconds\":%.9f,\"overall_seconds\":%.9f"
	       ",\"average_bytes_per_second\":%.0f,\"bytes_per_second\":%.0f"
	       ",\"average_messages_per_second\":%.1f,\"messages_per_second\":%.1f",
	       run->size, run->window, p->iters, p->p50 / 1e6, p->p99 / 1e6, p->p999 / 1e6,
	       p->average / 1e6, p->overall / 1e6, p->average_bw * MIB, p->overall_bw * MIB,
	       p->average_rate, p->overall_rate);
}

static void json_run(const struct perf_report *r, const struct printed *p)
{
	struct sys_memory memory;

	sys_memory(&memory);
	json_figures("result", r->run, p);
	json_text("protocol", r->protocol);
	printf(",\"reverse\":%s,\"lanes\":[", r->run->flags & PERF_F_REVERSE ? "true" : "false");
	for (unsigned int i = 0; i < r->lanes->count; i++) {
		printf("%s{\"index\":%u", i ? "," : "", i);
		json_text("name", r->lanes->name[i]);
		printf(",\"%s\":%" PRIu64 "}", perf_is_atomic(r->run->test) ? "messages" : "bytes",
		       r->lanes->bytes[i]);
	}
	printf("],\"retransmits\":%" PRIu64 ",\"wrong\":%" PRIu64 ",\"peak_bytes\":%" PRIu64
	       ",\"peer_peak_bytes\":%" PRIu64 "}\n",
	       r->lanes->retransmits, r->wrong, memory.peak, r->remote->peak);
}

/* ---- human-readable */

void perf_print_lanes(struct peer *p)
{
	struct weft_lane_info info = {.size = sizeof(info)};

	for (unsigned int i = 0; p->ep && weft_ep_query_lane(p->ep, i, &info) == 0; i++) {
		printf("  lane %-8s %-10s to %s", info.name, weft_lane_state_name(info.state),
		       info.remote);
		if (info.frame_size)
			printf(" frames of %zu", info.frame_size);
		printf("\n");
	}
}

static void columns(const struct perf_options *opts)
{
	if (opts->table)
		printf("\n%8s  %-14s %-8s %9s %9s %12s %13s\n%8s  %-14s %-8s %9s %9s %12s %13s\n",
		       "", "", "lane", "half rtt", "", "bandwidth", "rate", "size", "protocol",
		       "shares %", "p50 us", "p99 us", "MB/s", "messages/s");
	else if (opts->tests[0] == PERF_TAG_FLOOD)
		printf("\n%8s %9s %12s %12s %12s %12s\n", "size", "messages", "payload kB",
		       "growth kB", "bound kB", "expected us");
	else
		printf("\n%-12s %8s  %-14s %-8s %10s %9s %9s %9s %9s %9s %11s %13s\n", "test",
		       "size", "protocol", "lanes %", "iterations", "p50 us", "avg us", "overall",
		       "p99 us", "p99.9 us", "MB/s", "messages/s");
}

void perf_print_begin(const struct perf_options *opts, struct peer *p)
{
	if (opts->json) {
		json_begin(p);
	} else if (opts->csv && !opts->sweep) {
		csv_begin(opts);
	} else if (!opts->csv) {
		printf("weft-perf %s, client of %s\n", weft_version_string(),
		       oob_peer_name(p->oob));
		perf_print_lanes(p);
		if (!opts->sweep)
			columns(opts);
	}
	fflush(stdout);
}

static void print_line(const struct perf_run *run, const struct printed *p, const char *protocol,
		       const char *lanes)
{
	char size[24];

	printf("%-12s %8s  %-14s %-8s %10" PRIu64 " %9.3f %9.3f %9.3f %9.3f %9.3f %11.2f %13.0f\n",
	       perf_test_name(run->test), cli_size_text(run->size, size, sizeof(size)), protocol,
	       lanes, p->iters, p->p50, p->average, p->overall, p->p99, p->p999, p->overall_bw,
	       p->overall_rate);
	fflush(stdout);
}

void perf_print_tick(const struct perf_meter *meter, void *arg)
{
	struct perf_ticker *t = arg;
	struct perf_meter arrived = *meter;
	struct printed p;

	/* A sender's count includes messages in queues: print what the server has received. */
	if (perf_can_reverse(t->run->test) && !(t->run->flags & PERF_F_REVERSE)) {
		perf_limit_seen(t->side);
		arrived.iters = t->side->seen;
		arrived.report_iters = t->before;
		t->before = t->side->seen;
	}
	p = figures(t->run, &arrived);

	if (t->opts->json) {
		json_figures("second", t->run, &p);
		printf("}\n");
		fflush(stdout);
	} else if (t->opts->csv) {
		csv_figures(t->run, &p);
		printf(",,,,,,,,,,,%d\n", PERF_FORMAT_VERSION);
		fflush(stdout);
	} else {
		print_line(t->run, &p, "...", "");
	}
	/* The owner of the meter calls this, so the cast is safe. */
	perf_meter_mark((struct perf_meter *)meter);
}

void perf_print_run(const struct perf_options *opts, const struct perf_report *r)
{
	struct printed p = figures(r->run, r->meter);
	char lanes[64];

	if (opts->csv || opts->json) {
		if (opts->csv)
			csv_run(r, &p);
		else
			json_run(r, &p);
		fflush(stdout);
		return;
	}
	shares(r->lanes, true, lanes, sizeof(lanes));
	print_line(r->run, &p, r->protocol, lanes);
}

void perf_print_table(const struct perf_report *lat, const struct perf_report *bw)
{
	struct printed l = figures(lat->run, lat->meter), b = figures(bw->run, bw->meter);
	char size[24], lanes[64];

	shares(bw->lanes, true, lanes, sizeof(lanes));
	printf("%8s  %-14s %-8s %9.3f %9.3f %12.2f %13.0f\n",
	       cli_size_text(lat->run->size, size, sizeof(size)), bw->protocol, lanes, l.p50, l.p99,
	       b.overall_bw, b.overall_rate);
	fflush(stdout);
}

void perf_print_flood(const struct perf_options *opts, const struct perf_report *r)
{
	uint64_t payload = r->run->iters * r->run->size;
	uint64_t growth = r->remote->flood_peak > r->remote->flood_before
				  ? r->remote->flood_peak - r->remote->flood_before
				  : 0;
	uint64_t bound = payload / 10 * 11 + 256 * r->run->iters;
	double late = (double)r->remote->flood_late_ns / 1e3;
	char size[24];

	if (opts->csv)
		printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
		       ",%" PRIu64 ",%.1f,%" PRIu64 ",%d\n",
		       r->run->iters, r->run->size, payload, r->remote->flood_before,
		       r->remote->flood_peak, growth, bound, late, r->wrong, PERF_FORMAT_VERSION);
	else
		printf("%8s %9" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12.1f\n",
		       cli_size_text(r->run->size, size, sizeof(size)), r->run->iters,
		       payload / 1024, growth / 1024, bound / 1024, late);
	fflush(stdout);
}

void perf_print_end(const struct perf_options *opts, const struct perf_report *last)
{
	const struct perf_remote *r = last->remote;
	struct sys_memory memory;

	if (opts->csv || opts->json || !r)
		return;
	sys_memory(&memory);
	printf("\nmemory: VmHWM %.1f MB here (%.1f idle after connecting), %.1f MB at the server "
	       "(%.1f); hugepages "
	       "%.0f MB and %.0f MB\n",
	       (double)memory.peak / MIB, (double)last->idle_peak / MIB, (double)r->peak / MIB,
	       (double)r->idle_peak / MIB, (double)memory.hugetlb / MIB, (double)r->hugetlb / MIB);
	fflush(stdout);
}
