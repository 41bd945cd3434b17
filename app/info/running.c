/* SPDX-License-Identifier: BSD-3-Clause */

#include "info/running.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "info/ask.h"

#define SAMPLES_MAX 8192u
#define LANES_MAX 64u

/* A counter of a lane, or of its worker, at one moment. */
struct sample {
	long pid;
	char worker[20], lane[64], name[80];
	double value;
};

struct samples {
	unsigned int num;
	struct sample of[SAMPLES_MAX];
};

static char answer[ASK_ANSWER];

/* ---- counters of all processes -------------------------------------------------------------- */

struct lanes {
	unsigned int num;
	char text[LANES_MAX][96]; /* "ID dpdk:0 device" */
};

static void on_lane(const char *name, const char *text, bool is_number, void *arg)
{
	struct lanes *l = arg;

	(void)name;
	if (!is_number && l->num < LANES_MAX)
		snprintf(l->text[l->num++], sizeof(l->text[0]), "%s", text);
}

struct place {
	struct samples *to;
	struct sample like;
	size_t skip; /* bytes of each name that say which lane it is */
};

static void on_counter(const char *name, const char *text, bool is_number, void *arg)
{
	struct place *p = arg;
	struct sample *s;

	if (!is_number || p->to->num == SAMPLES_MAX || strlen(name) <= p->skip)
		return;
	s = &p->to->of[p->to->num++];
	*s = p->like;
	snprintf(s->name, sizeof(s->name), "%s", name + p->skip);
	s->value = strtod(text, NULL);
}

static void take_lane(struct ask_process *p, const char *text, bool first, struct samples *to)
{
	static const char *const others[] = {"ep.",  "wireup.", "tag.", "am.",
					     "rma.", "rndv.",   "msg.", "regcache."};
	struct place place = {.to = to, .like = {.pid = p->pid}};
	char command[160], device[64];

	if (sscanf(text, "%19s %63s %63s", place.like.worker, place.like.lane, device) < 2)
		return;
	snprintf(command, sizeof(command), "/weft/counters,%s,%s.", place.like.worker,
		 place.like.lane);
	place.skip = strlen(place.like.lane) + 1;
	if (ask(p, command, answer))
		ask_walk(answer, on_counter, &place);
	if (!first)
		return;
	/* What is not of a lane: by prefixes, since DPDK's answers have 250 counters at most. */
	place.skip = 0;
	place.like.lane[0] = '\0';
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(command, sizeof(command), "/weft/counters,%s,%s", place.like.worker,
			 others[i]);
		if (ask(p, command, answer))
			ask_walk(answer, on_counter, &place);
	}
}

static void take(struct ask_process *list, unsigned int n, struct samples *to)
{
	static struct lanes lanes;
	unsigned int i, j, k;

	to->num = 0;
	for (i = 0; i < n; i++) {
		lanes.num = 0;
		if (!ask(&list[i], "/weft/workers", answer) || !ask_walk(answer, on_lane, &lanes))
			continue;
		for (j = 0; j < lanes.num; j++) {
			for (k = 0; k < j && strncmp(lanes.text[k], lanes.text[j], 16); k++)
				;
			take_lane(&list[i], lanes.text[j], k == j, to);
		}
	}
}

/* ---- metrics -------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	if (c == 0)
		c = strcmp(x->worker, y->worker);
	return c ? c : strcmp(x->lane, y->lane);
}

/* Names of connections and paths ("conn3/path0/rtt_ns") are labels, not metrics. */
static void split(const struct sample *s, char metric[96], unsigned int *conn, unsigned int *path,
		  int *parts)
{
	int used = 0;

	*parts = sscanf(s->name, "conn%u/path%u/%n", conn, path, &used);
	snprintf(metric, 96, "weft_%s_%s",
		 *parts == 2  ? "path"
		 : s->lane[0] ? "lane"
			      : "worker",
		 s->name + (*parts == 2 ? used : 0));
	for (char *p = metric; *p; p++)
		if ((*p < '0' || *p > '9') && ((*p | 32) < 'a' || (*p | 32) > 'z'))
			*p = '_';
}

/* Backslash, quote and newline; weft-info's reader leaves no other control characters. */
static void label(const char *name, const char *value)
{
	printf(",%s=\"", name);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			putchar('\\');
		putchar(*value);
	}
	putchar('"');
}

static bool is_gauge(const char *metric)
{
	static const char *const ends[] = {"_kept",   "_held", "_count", "_ns",
					   "_window", "_now",  "_open"};
	size_t len = strlen(metric), n;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		n = strlen(ends[i]);
		if (len > n && strcmp(metric + len - n, ends[i]) == 0)
			return true;
	}
	return false;
}

static int metric_order(const void *a, const void *b)
{
	char x[96], y[96];
	unsigned int c, p;
	int n, order;

	split(a, x, &c, &p, &n);
	split(b, y, &c, &p, &n);
	order = strcmp(x, y);
	return order ? order : by_name(a, b);
}

static void print_metrics(struct samples *s)
{
	char metric[96], last[96] = "";
	unsigned int conn, path;
	int parts;

	qsort(s->of, s->num, sizeof(s->of[0]), metric_order);
	for (unsigned int i = 0; i < s->num; i++) {
		split(&s->of[i], metric, &conn, &path, &parts);
		if (strcmp(metric, last))
			printf("# HELP %s Weft's counter of that name, see weft(7)\n# TYPE %s %s\n",
			       metric, metric, is_gauge(metric) ? "gauge" : "counter");
		snprintf(last, sizeof(last), "%s", metric);
		printf("%s{pid=\"%ld\"", metric, s->of[i].pid);
		label("worker", s->of[i].worker);
		if (s->of[i].lane[0])
			label("lane", s->of[i].lane);
		if (parts == 2)
			printf(",conn=\"%u\",path=\"%u\"", conn, path);
		printf("} %.17g\n", s->of[i].value);
	}
}

/* ---- live ----------------------------------------------------------------------------------- */

static double value_of(const struct samples *s, const struct sample *lane, const char *name)
{
	for (unsigned int i = 0; i < s->num; i++)
		if (s->of[i].pid == lane->pid && !strcmp(s->of[i].worker, lane->worker) &&
		    !strcmp(s->of[i].lane, lane->lane) && !strcmp(s->of[i].name, name))
			return s->of[i].value;
	return 0;
}

static double rtt_of(const struct samples *s, const struct sample *lane)
{
	double most = 0;
	size_t len;

	for (unsigned int i = 0; i < s->num; i++) {
		len = strlen(s->of[i].name);
		if (s->of[i].pid == lane->pid && !strcmp(s->of[i].worker, lane->worker) &&
		    !strcmp(s->of[i].lane, lane->lane) && len > 7 &&
		    !strcmp(s->of[i].name + len - 7, "/rtt_ns") && s->of[i].value > most)
			most = s->of[i].value;
	}
	return most;
}

static void print_lane(const struct samples *a, const struct samples *b, const struct sample *l,
		       double seconds)
{
	static const char *const again[] = {"tx/retransmit/fast", "tx/retransmit/rto"};
	double retx = 0, tx = value_of(b, l, "tx/frames") - value_of(a, l, "tx/frames");

	for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++)
		retx += value_of(b, l, again[i]) - value_of(a, l, again[i]);
	printf("%8ld  %.8s  %-12.12s %10.2f %10.2f %12.0f %8.0f %7.3f %9.1f\n", l->pid, l->worker,
	       l->lane, (value_of(b, l, "tx/bytes") - value_of(a, l, "tx/bytes")) / seconds / 1e6,
	       (value_of(b, l, "rx/bytes") - value_of(a, l, "rx/bytes")) / seconds / 1e6,
	       (value_of(b, l, "rx/messages") - value_of(a, l, "rx/messages")) / seconds,
	       retx / seconds, tx > 0 ? retx / tx * 100 : 0, rtt_of(b, l) / 1e3);
}

static void print_live(const struct samples *a, const struct samples *b, double seconds)
{
	struct sample worker;
	double bytes;

	printf("%8s  %-8s  %-12s %10s %10s %12s %8s %7s %9s\n", "pid", "worker", "lane", "tx MB/s",
	       "rx MB/s", "rx msgs/s", "again/s", "again%", "rtt us");
	for (unsigned int i = 0; i < b->num; i++)
		if (b->of[i].lane[0] && !strcmp(b->of[i].name, "tx/frames"))
			print_lane(a, b, &b->of[i], seconds);
	for (unsigned int i = 0; i < b->num; i++) {
		worker = b->of[i];
		if (worker.lane[0] || strcmp(worker.name, "ep/open"))
			continue;
		bytes = value_of(b, &worker, "tag/unexpected_bytes");
		printf("%8ld  %.8s  endpoints %.0f, failed %.0f, unexpected messages %.0f kB\n",
		       worker.pid, worker.worker, worker.value, value_of(b, &worker, "ep/failed"),
		       bytes / 1e3);
	}
	fflush(stdout);
}

static void live(struct ask_process *list, unsigned int n, bool once)
{
	static struct samples samples[2];
	unsigned int i = 0;

	take(list, n, &samples[0]);
	do {
		sleep(1);
		i ^= 1;
		take(list, n, &samples[i]);
		if (!once)
			printf("\033[H\033[2J");
		print_live(&samples[i ^ 1], &samples[i], 1);
	} while (!once && samples[i].num);
}

/* ---- commands ------------------------------------------------------------------------------- */

static void on_answer(const char *name, const char *text, bool is_number, void *arg)
{
	bool *sentence = arg;

	(void)is_number;
	if (name[0])
		printf("  %-10s %s\n", name, text);
	else {
		*sentence = true;
		cli_error("%s", text);
	}
}

static int command(struct ask_process *p, const char *path, const char *words)
{
	bool sentence = false;
	char text[1024];

	if (snprintf(text, sizeof(text), "%s%s%s", path, words[0] ? "," : "", words) >=
	    (int)sizeof(text)) {
		cli_error("more than %zu bytes", sizeof(text) - 1);
		return APP_USAGE;
	}
	if (!ask(p, text, answer) || !ask_walk(answer, on_answer, &sentence)) {
		cli_error("process %ld gives no answer to %s", p->pid, path);
		return APP_FAIL;
	}
	return sentence ? APP_FAIL : APP_OK;
}

bool info_is_running(const char *option)
{
	static const char *const all[] = {"--capture", "--recorder", "--metrics", "--live"};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(option, all[i]))
			return true;
	return false;
}

static int run(const char *what, struct ask_process *list, unsigned int n, const char *words,
	       bool once)
{
	static struct samples samples;

	if (!strcmp(what, "--metrics")) {
		take(list, n, &samples);
		print_metrics(&samples);
		return APP_OK;
	}
	if (!strcmp(what, "--live")) {
		live(list, n, once);
		return APP_OK;
	}
	if (n > 1) {
		cli_error("%u processes have raw lanes: choose one with --pid", n);
		for (unsigned int i = 0; i < n; i++)
			fprintf(stderr, "  --pid %ld\n", list[i].pid);
		return APP_USAGE;
	}
	return command(&list[0], !strcmp(what, "--capture") ? "/weft/capture" : "/weft/recorder",
		       words);
}

/* @return 0: it is none */
static long number(const char *text)
{
	char *end;
	long v = strtol(text, &end, 10);

	return *end ? 0 : v;
}

int info_running(int argc, char **argv)
{
	static struct ask_process list[ASK_PROCESSES];
	const char *words = "";
	bool once = false;
	unsigned int n;
	long pid = 0;
	int i, ret;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--pid") && i + 1 < argc && number(argv[i + 1]) > 0) {
			pid = number(argv[++i]);
		} else if (!strcmp(argv[i], "--once") && !strcmp(argv[0], "--live")) {
			once = true;
		} else if (!words[0] && argv[i][0] != '-' && !strcmp(argv[0], "--capture")) {
			words = argv[i];
		} else {
			cli_error("%s does not take '%s'; see --help", argv[0], argv[i]);
			return APP_USAGE;
		}
	}
	n = ask_find(pid, list);
	if (n == 0) {
		cli_error("no process%s with raw lanes answers: it needs DPDK's telemetry (no "
			  "--no-telemetry) and the same user; without raw lanes (shm, roce alone) "
			  "there is nobody to ask",
			  pid ? " of that id" : "");
		return APP_FAIL;
	}
	ret = run(argv[0], list, n, words, once);
	ask_close(list, n);
	return ret;
}
