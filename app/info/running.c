/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cli.h"
#include "info/commands.h"
#include "info/query.h"

#define SLOWEST 5u
#define PEERS_MAX 4096u

static char answer[QUERY_ANSWER];

/* ---- peers ---------------------------------------------------------------------------------- */

/* A path that is in use, not in reserve, from the answer to /weft/paths. */
struct peer {
	struct sample lane; /* only process, worker and lane */
	double rtt_us;
	unsigned int sent, again; /* frames sent; frames resent */
	char name[80];
};

struct peers {
	struct sample like;
	unsigned int num;
	struct peer peer[PEERS_MAX];
};

/* Another version of Weft may send lines in another format, which are ignored. */
static void on_path(const char *name, const char *text, bool is_number, void *arg)
{
	struct peers *s = arg;
	struct peer *p = &s->peer[s->num];
	unsigned int conn, path, window;
	const char *to = strstr(text, ", to ");
	double var;

	(void)name;
	if (is_number || !to || s->num == PEERS_MAX || strstr(text, ", in reserve, "))
		return;
	p->lane = s->like;
	if (sscanf(text, "%63s conn%u/path%u rtt %lf us +- %lf, window %u, %u sent, %u ",
		   p->lane.lane, &conn, &path, &p->rtt_us, &var, &window, &p->sent, &p->again) != 8)
		return;
	snprintf(p->name, sizeof(p->name), "%s", to + strlen(", to "));
	s->num++;
}

static int slower(const void *a, const void *b)
{
	const struct peer *x = a, *y = b;

	return (x->rtt_us < y->rtt_us) - (x->rtt_us > y->rtt_us);
}

static void take_peers(struct query_process *list, unsigned int n, struct peers *s)
{
	static struct lanes lanes;
	char command[64];

	s->num = 0;
	for (unsigned int i = 0; i < n; i++) {
		s->like.pid = list[i].pid;
		if (!lanes_take(&list[i], &lanes))
			continue;
		for (unsigned int j = 0; j < lanes.num; j++) {
			if (!lanes_first(&lanes, j))
				continue;
			snprintf(s->like.worker, sizeof(s->like.worker), "%.16s", lanes.text[j]);
			snprintf(command, sizeof(command), "/weft/paths,%s", s->like.worker);
			if (query(&list[i], command, answer))
				query_walk(answer, on_path, s);
		}
	}
	qsort(s->peer, s->num, sizeof(s->peer[0]), slower);
}

/* @param us  0 = not measured yet */
static const char *rtt_text(double us, char text[16])
{
	if (us > 0)
		snprintf(text, 16, "%.1f", us);
	else
		snprintf(text, 16, "-");
	return text;
}

static void print_slowest(const struct peers *s)
{
	const struct peer *p;
	char rtt[16];

	if (s->num)
		printf("\n%8s  %-8s  %-12s %9s %11s %9s  slowest peers\n", "pid", "worker", "lane",
		       "rtt us", "sent", "again");
	for (unsigned int i = 0; i < s->num && i < SLOWEST; i++) {
		p = &s->peer[i];
		printf("%8ld  %.8s  %-12.12s %9s %11u %9u  %s\n", p->lane.pid, p->lane.worker,
		       p->lane.lane, rtt_text(p->rtt_us, rtt), p->sent, p->again, p->name);
	}
}

/* ---- lanes and workers ---------------------------------------------------------------------- */

struct between {
	const struct samples *a, *b; /* earlier and later */
	const struct peers *peers;   /* at the later time */
	double seconds;
};

static double rate(const struct between *t, const struct sample *like, const char *name)
{
	return (samples_value(t->b, like, name) - samples_value(t->a, like, name)) / t->seconds;
}

static bool counts(const struct samples *s, const struct sample *like, const char *name)
{
	for (unsigned int i = 0; i < s->num; i++)
		if (s->of[i].pid == like->pid && !strcmp(s->of[i].worker, like->worker) &&
		    !strcmp(s->of[i].lane, like->lane) && !strcmp(s->of[i].name, name))
			return true;
	return false;
}

/* Lanes of shm and self count no bytes. */
static const char *rate_text(const struct between *t, const struct sample *l, const char *name,
			     char text[16])
{
	if (counts(t->b, l, name))
		snprintf(text, 16, "%.2f", rate(t, l, name) / 1e6);
	else
		snprintf(text, 16, "-");
	return text;
}

static bool same_lane(const struct sample *a, const struct sample *b)
{
	return a->pid == b->pid && !strcmp(a->worker, b->worker) && !strcmp(a->lane, b->lane);
}

static double rtt_of(const struct peers *peers, const struct sample *lane)
{
	for (unsigned int i = 0; i < peers->num; i++)
		if (same_lane(&peers->peer[i].lane, lane))
			return peers->peer[i].rtt_us;
	return 0;
}

static double drops(const struct between *t, const struct sample *lane)
{
	double sum = 0;

	for (unsigned int i = 0; i < t->b->num; i++)
		if (same_lane(&t->b->of[i], lane) && !strncmp(t->b->of[i].name, "drop/", 5))
			sum += rate(t, lane, t->b->of[i].name);
	return sum;
}

static double bytes(const struct between *t, const struct sample *lane)
{
	return rate(t, lane, "tx/bytes") + rate(t, lane, "rx/bytes");
}

/* One sample represents a lane: frames sent, or messages sent if the lane counts no frames. */
static bool is_lane(const struct samples *samples, const struct sample *s)
{
	if (!s->lane[0])
		return false;
	return !strcmp(s->name, "tx/frames") ||
	       (!strcmp(s->name, "tx/messages") && !counts(samples, s, "tx/frames"));
}

/* @return the lane's percent of the bytes on all lanes of its worker */
static double share(const struct between *t, const struct sample *lane)
{
	const struct sample *s;
	double all = 0;

	for (unsigned int i = 0; i < t->b->num; i++) {
		s = &t->b->of[i];
		if (s->lane[0] && s->pid == lane->pid && !strcmp(s->worker, lane->worker) &&
		    is_lane(t->b, s))
			all += bytes(t, s);
	}
	return all > 0 ? bytes(t, lane) / all * 100 : 0;
}

static const char *share_text(const struct between *t, const struct sample *l, char text[16])
{
	if (counts(t->b, l, "tx/bytes"))
		snprintf(text, 16, "%.1f", share(t, l));
	else
		snprintf(text, 16, "-");
	return text;
}

static void print_lane(const struct between *t, const struct sample *l)
{
	double tx = rate(t, l, "tx/frames"),
	       again = rate(t, l, "tx/retransmit/fast") + rate(t, l, "tx/retransmit/rto");
	char sent[16], received[16], part[16], rtt[16];

	printf("%8ld  %.8s  %-12.12s %9s %9s %6s %11.0f %9.0f %6.2f %8.0f %9s\n", l->pid, l->worker,
	       l->lane, rate_text(t, l, "tx/bytes", sent), rate_text(t, l, "rx/bytes", received),
	       share_text(t, l, part), rate(t, l, "rx/messages"), again,
	       tx > 0 ? again / tx * 100 : 0, drops(t, l), rtt_text(rtt_of(t->peers, l), rtt));
}

static void print_worker(const struct samples *s, const struct sample *w)
{
	printf("%8ld  %.8s  endpoints %.0f, failed %.0f; unexpected messages %.1f kB now, %.1f kB "
	       "at most\n",
	       w->pid, w->worker, w->value, samples_value(s, w, "ep/failed"),
	       samples_value(s, w, "tag/unexpected_bytes") / 1e3,
	       samples_value(s, w, "tag/unexpected_bytes_peak") / 1e3);
}

static void print_live(const struct between *t)
{
	const struct samples *b = t->b;

	printf("%8s  %-8s  %-12s %9s %9s %6s %11s %9s %6s %8s %9s\n", "pid", "worker", "lane",
	       "tx MB/s", "rx MB/s", "share%", "rx msgs/s", "again/s", "again%", "drops/s",
	       "rtt us");
	for (unsigned int i = 0; i < b->num; i++)
		if (is_lane(b, &b->of[i]))
			print_lane(t, &b->of[i]);
	for (unsigned int i = 0; i < b->num; i++)
		if (!b->of[i].lane[0] && !strcmp(b->of[i].name, "ep/open"))
			print_worker(b, &b->of[i]);
}

static void print_processes(const struct query_process *list, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (query_first(list, i))
			printf("process %ld  %s  Weft %s%s%s\n", list[i].pid,
			       list[i].program[0] ? list[i].program : "?",
			       list[i].version[0] ? list[i].version : "of an older version",
			       list[i].job[0] ? "  job " : "", list[i].job);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Print until no process responds. @param once  print once, without clearing the screen */
static void info_live(struct query_process *list, unsigned int n, bool once)
{
	static struct samples samples[2];
	static struct peers peers;
	struct between t = {.peers = &peers};
	const struct timespec second = {.tv_sec = 1};
	double before, at = now();
	unsigned int i = 0;

	samples_take(list, n, &samples[0]);
	do {
		nanosleep(&second, NULL);
		t.a = &samples[i];
		i ^= 1;
		before = at;
		/* Late answers make the interval longer than a second. */
		at = now();
		samples_take(list, n, &samples[i]);
		take_peers(list, n, &peers);
		t.b = &samples[i];
		t.seconds = at - before;
		if (!once)
			printf("\033[H\033[2J");
		print_processes(list, n);
		print_live(&t);
		print_slowest(&peers);
		fflush(stdout);
	} while (!once && samples[i].num);
}

/* ---- the state of workers ------------------------------------------------------------------- */

static void on_shown(const char *name, const char *text, bool is_number, void *arg)
{
	bool *error = arg;

	(void)is_number;
	if (!strcmp(name, "error")) {
		*error = true;
		cli_error("%s", text);
	} else if (name[0]) {
		printf("  %-44s %s\n", name, text);
	} else {
		printf("  %s\n", text);
	}
}

static const char *const shown[] = {"lanes", "endpoints", "paths", "thresholds", "counters"};

static int show(const char *what, struct query_process *list, unsigned int n)
{
	static struct lanes lanes;
	bool error = false;
	char text[64];

	for (unsigned int i = 0; i < n; i++) {
		error |= !lanes_take(&list[i], &lanes);
		for (unsigned int j = 0; j < lanes.num; j++) {
			if (!lanes_first(&lanes, j))
				continue;
			printf("process %ld, worker %.16s\n", list[i].pid, lanes.text[j]);
			snprintf(text, sizeof(text), "/weft/%s,%.16s", what, lanes.text[j]);
			if (!query(&list[i], text, answer) ||
			    !query_walk(answer, on_shown, &error)) {
				cli_error("process %ld gave no valid answer to %s: it may hang, or "
					  "have another version of Weft",
					  list[i].pid, text);
				error = true;
			}
		}
	}
	return error ? APP_FAIL : APP_OK;
}

int info_show_check(const char *option, const char *value)
{
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (!strcmp(value, shown[i]))
			return APP_OK;
	cli_error("%s takes one of lanes, endpoints, paths, thresholds, counters, not '%s'", option,
		  value);
	return APP_USAGE;
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

static int command(struct query_process *p, const char *path, const char *words)
{
	bool sentence = false;
	char text[1024];

	if (snprintf(text, sizeof(text), "%s%s%s", path, words[0] ? "," : "", words) >=
	    (int)sizeof(text)) {
		cli_error("the command is longer than %zu bytes", sizeof(text) - 1);
		return APP_USAGE;
	}
	if (!query(p, text, answer) || !query_walk(answer, on_answer, &sentence)) {
		cli_error("process %ld gave no valid answer to %s: it may hang, or have another "
			  "version of Weft",
			  p->pid, path);
		return APP_FAIL;
	}
	return sentence ? APP_FAIL : APP_OK;
}

bool info_is_running(const struct info_running *o)
{
	return o->capture || o->recorder || o->metrics || o->live || o->why || o->show;
}

/* A process may have two entries; a command goes to the first. */
static bool is_one(const struct query_process *list, unsigned int n)
{
	for (unsigned int i = 1; i < n; i++)
		if (list[i].pid != list[0].pid)
			return false;
	return true;
}

static int run(const struct info_running *o, struct query_process *list, unsigned int n,
	       const char *words)
{
	if (o->metrics) {
		info_metrics(stdout, list, n);
		return APP_OK;
	}
	if (o->show)
		return show(o->show, list, n);
	if (o->why)
		return info_why(list, n);
	if (o->live) {
		info_live(list, n, o->once);
		return APP_OK;
	}
	if (!is_one(list, n)) {
		cli_error("several processes respond: choose one with --pid");
		for (unsigned int i = 0; i < n; i++)
			if (query_first(list, i))
				fprintf(stderr, "  --pid %ld\n", list[i].pid);
		return APP_USAGE;
	}
	return command(&list[0], o->capture ? "/weft/capture" : "/weft/recorder", words);
}

int info_running(const struct info_running *o, const char *words)
{
	static struct query_process list[QUERY_PROCESSES];
	unsigned int n;
	int ret;

	if (o->listen)
		return info_listen(o->listen, (long)o->pid);
	n = query_find((long)o->pid, o->metrics, list);
	if (n == 0) {
		cli_error("no process%s responds: it needs a worker and the same user, and with "
			  "raw lanes DPDK's telemetry (no --no-telemetry)",
			  o->pid ? " of that id" : " that uses Weft");
		return APP_FAIL;
	}
	ret = run(o, list, n, words);
	query_close(list, n);
	return ret;
}
