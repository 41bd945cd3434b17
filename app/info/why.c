/* SPDX-License-Identifier: BSD-3-Clause */

#include "info/commands.h"

#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "common/cli.h"
#include "common/roce_counters.h"

#define FINDINGS 64u
/* Findings with a smaller share, in percent, are not printed. */
#define LEAST 5.0
/* Classes of lengths, and steps of times, in the counters of latencies (lib/msg/request.h). */
#define SIZES 5u
#define STEPS 11u

/* ---- the kernel's times --------------------------------------------------------------------- */

/* The thread of a process with most CPU time since that thread began. */
struct host_times {
	double cpu, waits; /* s for which the thread ran, and waited in a run queue */
	double steal;      /* s for which the hypervisor ran other machines; the mean of all CPUs */
	int on;            /* the CPU on which the thread ran last; -1 = not known */
	char may[40];      /* CPUs on which the thread may run: "0-3,7"; "" = not known */
	unsigned int num_may;
};

/* Processes of the host, to name the one that had the CPU while the thread waited. */
#define PROCESSES 4096u

struct processes {
	unsigned int num;
	struct process {
		long pid;
		int on;
		double cpu; /* s */
		char name[20];
	} of[PROCESSES];
};

static bool read_line(const char *path, char *buf, int size)
{
	FILE *f = fopen(path, "r");
	bool ok = f && fgets(buf, size, f);

	if (f)
		fclose(f);
	return ok;
}

/* "0-3,7": 5. */
static unsigned int count_cpus(const char *list)
{
	unsigned int n = 0, from, to;
	int used;

	while (sscanf(list, "%u%n", &from, &used) == 1) {
		list += used;
		to = from;
		if (sscanf(list, "-%u%n", &to, &used) == 1)
			list += used;
		n += to >= from ? to - from + 1 : 1;
		if (*list++ != ',')
			break;
	}
	return n;
}

/* @return the text behind the name, which may contain brackets; NULL: the thread has ended */
static const char *read_stat(const char *path, char *line, int size)
{
	const char *end = read_line(path, line, size) ? strrchr(line, ')') : NULL;

	return end && end[1] == ' ' ? end + 2 : NULL;
}

/* Fields of /proc/PID/stat between name and utime, and between stime and the CPU. */
#define STAT_SKIPPED "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
#define STAT_TO_CPU                                                                            \
	"%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s " \
	"%*s %*s "

static void read_place(long pid, const char *task, struct host_times *t)
{
	char path[300], line[1024];
	const char *stat;
	FILE *f;

	t->on = -1;
	t->may[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%ld/task/%.32s/stat", pid, task);
	stat = read_stat(path, line, sizeof(line));
	if (stat && sscanf(stat, STAT_SKIPPED "%*s %*s " STAT_TO_CPU "%d", &t->on) != 1)
		t->on = -1;
	snprintf(path, sizeof(path), "/proc/%ld/task/%.32s/status", pid, task);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Cpus_allowed_list: %39s", t->may) == 1)
			break;
	if (f)
		fclose(f);
	t->num_may = count_cpus(t->may);
}

static void read_process(const char *pid, struct processes *all)
{
	struct process *p = &all->of[all->num];
	char path[64], line[1024];
	unsigned long user, system;
	const char *stat, *name;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	stat = read_stat(path, line, sizeof(line));
	name = stat ? strchr(line, '(') : NULL;
	if (!name ||
	    sscanf(stat, STAT_SKIPPED "%lu %lu " STAT_TO_CPU "%d", &user, &system, &p->on) != 3)
		return;
	p->pid = strtol(pid, NULL, 10);
	p->cpu = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
	snprintf(p->name, sizeof(p->name), "%.*s", (int)(stat - 2 - name - 1), name + 1);
	weft_text_printable(p->name, strlen(p->name));
	all->num++;
}

static void read_processes(struct processes *all)
{
	DIR *dir = opendir("/proc");
	const struct dirent *d;

	all->num = 0;
	while (dir && all->num < PROCESSES && (d = readdir(dir)))
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9')
			read_process(d->d_name, all);
	if (dir)
		closedir(dir);
}

static double cpu_of(const struct processes *all, long pid)
{
	for (unsigned int i = 0; i < all->num; i++)
		if (all->of[i].pid == pid)
			return all->of[i].cpu;
	return 0; /* the process is new */
}

/* @return the process, other than @p pid and last on @p cpu, with most CPU time, over 50 ms */
static const struct process *other_on(const struct processes *before, const struct processes *after,
				      int cpu, long pid)
{
	const struct process *found = NULL, *p;
	double used, most = 0.05;

	for (p = after->of; p < after->of + after->num; p++) {
		if (p->on != cpu || p->pid == pid)
			continue;
		used = p->cpu - cpu_of(before, p->pid);
		if (used > most) {
			most = used;
			found = p;
		}
	}
	return found;
}

static void read_thread(long pid, const char *task, struct host_times *t)
{
	unsigned long long cpu, waits;
	char path[300], line[128];

	snprintf(path, sizeof(path), "/proc/%ld/task/%.32s/schedstat", pid, task);
	if (!read_line(path, line, sizeof(line)) || sscanf(line, "%llu %llu", &cpu, &waits) != 2)
		return;
	if ((double)cpu * 1e-9 < t->cpu)
		return;
	t->cpu = (double)cpu * 1e-9;
	t->waits = (double)waits * 1e-9;
	read_place(pid, task, t);
}

/* @return s of steal of one CPU, as the mean of all. The kernel counts in ticks of 10 ms. */
static double read_steal(void)
{
	unsigned long long v[8] = {0};
	char line[256];

	if (!read_line("/proc/stat", line, sizeof(line)) ||
	    sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3],
		   &v[4], &v[5], &v[6], &v[7]) != 8)
		return 0;
	return (double)v[7] * 1e-2 / (double)sysconf(_SC_NPROCESSORS_ONLN);
}

static struct host_times read_host(long pid)
{
	struct host_times t = {0};
	const struct dirent *d;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%ld/task", pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			read_thread(pid, d->d_name, &t);
	if (dir)
		closedir(dir);
	t.steal = read_steal();
	return t;
}

/* ---- findings ------------------------------------------------------------------------------- */

struct finding {
	double share; /* percent: of the time, or of frames, messages or sends */
	char text[240];
};

struct why {
	const struct samples *a, *b;
	struct sample worker; /* names the worker; its lane is "" */
	double ns;            /* time between the samples, by the worker's clock */
	unsigned int num;
	struct finding found[FINDINGS];
};

static double grown(const struct why *y, const struct sample *like, const char *name)
{
	double d = samples_value(y->b, like, name) - samples_value(y->a, like, name);

	return d > 0 ? d : 0;
}

static double share_of(const struct why *y, const struct sample *like, const char *name)
{
	double share = grown(y, like, name) / y->ns * 100;

	return share < 100 ? share : 100;
}

static void __attribute__((format(printf, 3, 4)))
found(struct why *y, double share, const char *fmt, ...)
{
	struct finding *f = &y->found[y->num];
	va_list args;

	if (share < LEAST || y->num == FINDINGS)
		return;
	f->share = share < 100 ? share : 100;
	va_start(args, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, args);
	va_end(args);
	y->num++;
}

static int larger(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	return (x->share < y->share) - (x->share > y->share);
}

/* ---- lanes ---------------------------------------------------------------------------------- */

static const struct {
	const char *counter, *head, *text;
} limits[] = {
	{"time/congestion_ns", "congestion", "congestion control held frames back on %s"},
	{"time/window_ns", "window",
	 "the configured window (WEFT_WINDOW) or number of buffers held frames back on %s"},
	{"time/peer_ring_ns", "peer ring",
	 "the limit of frames for a peer's receive ring held frames back on %s"},
	{"time/silent_ns", "silent", "a peer on %s acknowledged nothing"},
	{"time/port_full_ns", "port full", "the port of %s did not take frames"},
	{"time/buffers_ns", "buffers", "no buffer was free to send on %s"},
};

#define LIMITS (sizeof(limits) / sizeof(limits[0]))

static bool is_lane(const struct why *y, const struct sample *s)
{
	return s->pid == y->worker.pid && !strcmp(s->worker, y->worker.worker) && s->lane[0] &&
	       !strcmp(s->name, "time/busy_ns");
}

static void look_at_lane(struct why *y, const struct sample *lane)
{
	double again = grown(y, lane, "tx/retransmit/fast") + grown(y, lane, "tx/retransmit/rto"),
	       data = grown(y, lane, "tx/data"), busy = share_of(y, lane, "time/busy_ns");
	char text[160];

	if (samples_value(y->b, lane, "port/link_down") > samples_value(y->b, lane, "port/link_up"))
		found(y, 100, "the link of %s is down: the log of the process names the side",
		      lane->lane);
	if (data == 0 && busy > 95)
		found(y, busy,
		      "%s sends nothing new, as it waits for acknowledgements: do its frames "
		      "reach the peer? (weft-info --check, for DPDK ports a capture)",
		      lane->lane);
	for (size_t i = 0; i < LIMITS; i++) {
		snprintf(text, sizeof(text), "%s", limits[i].text);
		*strstr(text, "%s") = '\0';
		found(y, share_of(y, lane, limits[i].counter), "%s%.40s%s", text, lane->lane,
		      strstr(limits[i].text, "%s") + 2);
	}
	found(y, share_of(y, lane, "peer/gap_ns"),
	      "peers on %s did not poll, by their own reports: they compute, or have no CPU",
	      lane->lane);
	if (data > 0 && again > 0)
		found(y, again / (data + again) * 100, "%s sent frames again: %.0f of %.0f",
		      lane->lane, again, data);
}

/* @return us of the least smoothed round trip of the lane's paths; 0 = not known */
static double rtt_of(const struct why *y, const struct sample *lane)
{
	const struct sample *s;
	unsigned int conn, path;
	double least = 0;
	int used;

	for (unsigned int i = 0; i < y->b->num; i++) {
		s = &y->b->of[i];
		used = 0;
		if (s->pid != lane->pid || strcmp(s->worker, lane->worker) ||
		    strcmp(s->lane, lane->lane) || s->value <= 0 ||
		    sscanf(s->name, "conn%u/path%u/rtt_ns%n", &conn, &path, &used) != 2 || !used ||
		    s->name[used])
			continue;
		least = least == 0 || s->value / 1e3 < least ? s->value / 1e3 : least;
	}
	return least;
}

#define SLOW_RAIL 4      /* least factor of a slow rail's round trip over the fastest one's */
#define SLOW_RAIL_US 200 /* least difference, us: other processes on the CPU delay by less */

/* Messages over several lanes wait for the slowest. */
static void look_at_rails(struct why *y)
{
	const struct sample *lane, *best = NULL;
	double rtt, least = 0;

	for (unsigned int i = 0; i < y->b->num; i++) {
		lane = &y->b->of[i];
		rtt = is_lane(y, lane) ? rtt_of(y, lane) : 0;
		if (rtt > 0 && (!best || rtt < least)) {
			best = lane;
			least = rtt;
		}
	}
	for (unsigned int i = 0; best && i < y->b->num; i++) {
		lane = &y->b->of[i];
		rtt = is_lane(y, lane) ? rtt_of(y, lane) : 0;
		if (rtt > SLOW_RAIL * least && rtt > least + SLOW_RAIL_US)
			found(y, share_of(y, lane, "time/busy_ns"),
			      "%s is a slow rail: a round trip takes %.0f us there, %.0f us on %s",
			      lane->lane, rtt, least, best->lane);
	}
}

static void print_lanes(const struct why *y)
{
	const struct sample *s;
	bool head = false;

	for (unsigned int i = 0; i < y->b->num; i++) {
		s = &y->b->of[i];
		if (!is_lane(y, s))
			continue;
		if (!head) {
			printf("  %-14s %8s", "percent of time", "busy");
			for (size_t k = 0; k < LIMITS; k++)
				printf(" %10s", limits[k].head);
			printf(" %15s\n", "nothing to send");
		}
		head = true;
		printf("  %-15.15s %8.0f", s->lane, share_of(y, s, s->name));
		for (size_t k = 0; k < LIMITS; k++)
			printf(" %10.0f", share_of(y, s, limits[k].counter));
		printf(" %15.0f\n", 100 - share_of(y, s, s->name));
	}
}

/* ---- messages ------------------------------------------------------------------------------- */

/* The number of sends that ended after their call. @param size  their class; SIZES = all */
static double sends(const struct why *y, unsigned int size)
{
	double sum = 0;
	char name[40];

	for (unsigned int i = 0; i < SIZES; i++) {
		for (unsigned int k = 0; (size == SIZES || i == size) && k < STEPS; k++) {
			snprintf(name, sizeof(name), "latency/size%u/step%u", i, k);
			sum += grown(y, &y->worker, name);
		}
	}
	return sum;
}

static void look_at_messages(struct why *y)
{
	const struct sample *w = &y->worker;
	double before = grown(y, w, "tag/unexpected"), all = before + grown(y, w, "tag/expected"),
	       refused = grown(y, w, "tag/no_eager_credit");

	found(y, share_of(y, w, "stall/connect_ns"), "sends waited for a connection");
	found(y, share_of(y, w, "stall/credit_ns"),
	      "sends waited for credit: a peer has many messages without a receive");
	found(y, share_of(y, w, "stall/receive_ns"),
	      "announced messages waited for the peer: it had posted no receive, or was late");
	if (all > 0)
		found(y, before / all * 100,
		      "messages came before their receive was posted (unexpected): %.0f of %.0f",
		      before, all);
	if (refused > 0)
		found(y, refused / fmax(refused, sends(y, SIZES)) * 100,
		      "%.0f sends were announced for want of credit: a peer has many messages "
		      "without a receive",
		      refused);
}

/* ---- thresholds ----------------------------------------------------------------------------- */

static const size_t class_ends[] = {64, 4096, 65536, 1048576}; /* bytes; the last has no end */

/* @return percent, of all sends that ended after their call, in the class of @p length */
static double share_of_class(const struct why *y, size_t length)
{
	double all = sends(y, SIZES);
	unsigned int of = 0;

	while (of < SIZES - 1 && length > class_ends[of])
		of++;
	return all > 0 ? sends(y, of) / all * 100 : 0;
}

/* Only the lines of /weft/thresholds about a threshold that the user has set are findings. */
static void on_threshold(const char *name, const char *text, bool is_number, void *arg)
{
	char setting[20], value[24], own[20], best[20];
	double own_us, best_us;
	struct why *y = arg;
	unsigned int set;
	size_t length;

	(void)name;
	if (is_number ||
	    sscanf(text,
		   "set %u, %19[A-Z_]=%23[^:]: sends of %zu bytes by %19s take %lf us, by %19s "
		   "%lf us",
		   &set, setting, value, &length, own, &own_us, best, &best_us) != 8)
		return;
	found(y, share_of_class(y, length),
	      "WEFT_%s=%s makes sends of %zu bytes go by %s, which takes %.1f us by the model: %s "
	      "takes %.1f us",
	      setting, value, length, own, own_us, best, best_us);
}

static void look_at_thresholds(struct why *y, struct query_process *p)
{
	static char answer[QUERY_ANSWER];
	char command[64];

	snprintf(command, sizeof(command), "/weft/thresholds,%.16s", y->worker.worker);
	if (query(p, command, answer))
		query_walk(answer, on_threshold, y);
}

/* ---- the host ------------------------------------------------------------------------------- */

/* @param host  waits and steal between the two samples. @param other  result of other_on() */
static void look_at_host(struct why *y, const struct host_times *host, const struct process *other,
			 double seconds)
{
	double late = share_of(y, &y->worker, "progress/late_work_ns"),
	       waits = host->waits / seconds * 100, steal = host->steal / seconds * 100;
	double lost = grown(y, &y->worker, "progress/wake_lost"),
	       lost_ns = grown(y, &y->worker, "progress/wake_lost_ns");
	char most[80] = "";

	if (lost > 0)
		found(y, lost_ns / y->ns * 100,
		      "frames came, and no port woke the sleeping program (lost wake-up): %.0f "
		      "sleeps went on until their timer, for %.1f ms each",
		      lost, lost_ns / lost / 1e6);
	if (other)
		snprintf(most, sizeof(most), ", most of it process %ld, %s", other->pid,
			 other->name);
	found(y, steal, "the hypervisor ran other machines on this one's CPUs (steal)");
	found(y, waits, "its thread was ready to run and other processes had the CPU (run queue)%s",
	      most);
	if (host->num_may && host->num_may < sysconf(_SC_NPROCESSORS_ONLN))
		found(y, waits,
		      "its placement: it may run on %u of %ld CPUs only (%s), and was on CPU %d",
		      host->num_may, sysconf(_SC_NPROCESSORS_ONLN), host->may, host->on);
	/* Time without a CPU is not the program's fault. */
	found(y, late - waits - steal,
	      "the program called progress late while messages were waiting (%.0f times)",
	      grown(y, &y->worker, "progress/late"));
}

/* ---- latencies ------------------------------------------------------------------------------ */

static const char *within(unsigned int step, char text[24])
{
	double us = (double)(1ull << 2 * step);

	if (step == STEPS - 1)
		snprintf(text, 24, "over 262 ms");
	else if (us < 1000)
		snprintf(text, 24, "up to %.0f us", us);
	else
		snprintf(text, 24, "up to %.0f ms", us / 1000);
	return text;
}

/* @param of  share of all sends, 0 to 1. @return the step by which this share had ended */
static unsigned int step_at(const double step[STEPS], double all, double of)
{
	double sum = 0;
	unsigned int i;

	for (i = 0; i < STEPS - 1; i++) {
		sum += step[i];
		if (sum >= all * of)
			break;
	}
	return i;
}

static void print_latencies(const struct why *y)
{
	static const char *const names[SIZES] = {"64 B", "4 KiB", "64 KiB", "1 MiB", "any length"};
	char name[40], half[24], most[24];
	double step[STEPS], all;

	for (unsigned int i = 0; i < SIZES; i++) {
		all = 0;
		for (unsigned int k = 0; k < STEPS; k++) {
			snprintf(name, sizeof(name), "latency/size%u/step%u", i, k);
			step[k] = grown(y, &y->worker, name);
			all += step[k];
		}
		if (all > 0)
			printf("  sends of up to %s that ended after their call: %.0f; half took "
			       "%s, 99 %% %s\n",
			       names[i], all, within(step_at(step, all, 0.5), half),
			       within(step_at(step, all, 0.99), most));
	}
}

/* ---- output --------------------------------------------------------------------------------- */

#define COLUMNS 96u

static void print_words(const char *text, unsigned int *column)
{
	size_t n;

	while (*text) {
		n = strcspn(text, " ");
		if (*column + n + 1 > COLUMNS) {
			printf("\n ");
			*column = 1;
		}
		printf(" %.*s", (int)n, text);
		*column += (unsigned int)n + 1;
		text += n;
		text += strspn(text, " ");
	}
}

static double busiest(const struct why *y)
{
	double most = 0, share;

	for (unsigned int i = 0; i < y->b->num; i++) {
		if (!is_lane(y, &y->b->of[i]))
			continue;
		share = share_of(y, &y->b->of[i], "time/busy_ns");
		most = share > most ? share : most;
	}
	return most;
}

static void print_findings(struct why *y)
{
	unsigned int column = 1;
	char text[256];

	qsort(y->found, y->num, sizeof(y->found[0]), larger);
	printf(" ");
	for (unsigned int i = 0; i < y->num; i++) {
		snprintf(text, sizeof(text), "%.0f %%: %s%s", y->found[i].share, y->found[i].text,
			 i + 1 < y->num ? ";" : ".");
		print_words(text, &column);
	}
	if (y->num == 0) {
		snprintf(text, sizeof(text),
			 "Nothing limits it. Frames waited for acknowledgement for %.0f %% of the "
			 "time; else it had nothing to send.",
			 busiest(y));
		print_words(text, &column);
	}
	printf("\n");
}

static void print_worker(struct why *y, struct query_process *p, const struct host_times *host,
			 const struct process *other, double seconds)
{
	printf("process %ld %s, worker %.8s, over %.1f s:\n", p->pid, p->program, y->worker.worker,
	       y->ns * 1e-9);
	look_at_messages(y);
	look_at_thresholds(y, p);
	look_at_host(y, host, other, seconds);
	look_at_rails(y);
	for (unsigned int i = 0; i < y->b->num; i++)
		if (is_lane(y, &y->b->of[i]))
			look_at_lane(y, &y->b->of[i]);
	print_findings(y);
	print_lanes(y);
	print_latencies(y);
}

/* @return an entry of the process without a failed query; NULL: there is none */
static struct query_process *process_of(struct query_process *list, unsigned int n,
					const struct sample *s)
{
	for (unsigned int i = 0; i < n; i++)
		if (list[i].pid == s->pid && list[i].fd >= 0)
			return &list[i];
	return NULL;
}

static double seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void read_hosts(const struct query_process *list, unsigned int n, struct host_times *t)
{
	for (unsigned int i = 0; i < n; i++)
		t[i] = read_host(list[i].pid);
}

int info_why(struct query_process *list, unsigned int n)
{
	static struct samples a, b;
	static struct processes others_before, others_after;
	static struct roce_counters device_before, device_after;
	static struct host_times before[QUERY_PROCESSES], after[QUERY_PROCESSES];
	const struct timespec second = {.tv_sec = 1};
	struct query_process *p;
	double begin, seconds;
	bool any = false;

	samples_take(list, n, &a);
	read_processes(&others_before);
	roce_counters_read(&device_before);
	read_hosts(list, n, before);
	begin = seconds_now();
	nanosleep(&second, NULL);
	samples_take(list, n, &b);
	read_hosts(list, n, after);
	seconds = seconds_now() - begin;
	read_processes(&others_after);
	roce_counters_read(&device_after);
	for (unsigned int i = 0; i < b.num; i++) {
		static struct why y;
		struct host_times host;

		if (b.of[i].lane[0] || strcmp(b.of[i].name, "progress/clock_ns"))
			continue;
		p = process_of(list, n, &b.of[i]);
		y = (struct why){.a = &a, .b = &b, .worker = b.of[i]};
		y.ns = b.of[i].value - samples_value(&a, &y.worker, "progress/clock_ns");
		if (!p || y.ns <= 0 || y.ns >= b.of[i].value)
			continue;
		host = after[p - list];
		host.waits = after[p - list].waits - before[p - list].waits;
		host.steal = after[p - list].steal - before[p - list].steal;
		print_worker(&y, p, &host, other_on(&others_before, &others_after, host.on, p->pid),
			     seconds);
		any = true;
	}
	roce_counters_print(&device_before, &device_after);
	if (!any)
		cli_error("no worker has answered twice: it does not call progress, or is of an "
			  "older version");
	return any ? APP_OK : APP_FAIL;
}
