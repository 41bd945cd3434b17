/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/roce_counters.h"
#include "info/commands.h"
#include "info/query.h"
#include "weft.h"

#define METRIC_MAX 112

/* This version changes when a metric is removed, or gets another meaning, type or unit. */
#define METRICS_VERSION "1"

struct metric {
	char name[METRIC_MAX];
	double factor;
	bool level; /* true: a gauge; false: a counter */
	const char *help;
	unsigned int conn, path;
	bool of_path; /* conn and path are labels of the metric */
};

static char host_name[65];

/* ---- names ---------------------------------------------------------------------------------- */

static bool cut_end(char *name, const char *end)
{
	size_t len = strlen(name), part = strlen(end);

	if (len <= part || strcmp(name + len - part, end))
		return false;
	name[len - part] = '\0';
	return true;
}

static void end_with(struct metric *m, const char *end)
{
	size_t len = strlen(m->name);

	snprintf(m->name + len, sizeof(m->name) - len, "%s", end);
}

static void find_help(const struct sample *s, struct metric *m)
{
	char name[sizeof(s->lane) + sizeof(s->name) + 1];

	m->level = false;
	snprintf(name, sizeof(name), "%s%s%s", s->lane, s->lane[0] ? "." : "", s->name);
	m->help = weft_counter_help(name, &m->level);
	if (!m->help)
		m->help =
			s->lane[0]
				? "Counter of the port's PMD, see its page in DPDK's documentation."
				: "Counter of a later version than this weft-info.";
}

/* The numbers in names such as "conn3/path0/rtt_ns" become labels of one metric. */
static void name_metric(const struct sample *s, struct metric *m)
{
	int used = 0;

	find_help(s, m);
	m->of_path = sscanf(s->name, "conn%u/path%u/%n", &m->conn, &m->path, &used) == 2;
	m->factor = 1;
	snprintf(m->name, sizeof(m->name) - 16, "weft_%s_%s",
		 m->of_path   ? "path"
		 : s->lane[0] ? "lane"
			      : "worker",
		 s->name + (m->of_path ? used : 0));
	for (char *p = m->name; *p; p++)
		if ((*p < '0' || *p > '9') && ((*p | 32) < 'a' || (*p | 32) > 'z'))
			*p = '_';
	if (cut_end(m->name, "_ns")) {
		m->factor = 1e-9;
		end_with(m, "_seconds");
	}
	/* Prometheus reserves "_count" for histograms. */
	if (!m->level)
		end_with(m, "_total");
	else
		cut_end(m->name, "_count");
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* Names of other processes, devices and peers may contain any character. */
static void label(FILE *out, const char *name, const char *value)
{
	fprintf(out, ",%s=\"", name);
	for (; *value; value++) {
		if (*value == '\n') {
			fputs("\\n", out);
			continue;
		}
		if (*value == '\\' || *value == '"')
			putc('\\', out);
		putc(*value, out);
	}
	putc('"', out);
}

static void labels(FILE *out, const char *metric, const struct query_process *p)
{
	fprintf(out, "%s{pid=\"%ld\"", metric, p->pid);
	label(out, "host", host_name);
	label(out, "program", p->program);
	if (p->job[0])
		label(out, "job", p->job);
}

static void head(FILE *out, const char *metric, const char *help, bool level)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metric, help, metric,
		level ? "gauge" : "counter");
}

static const struct query_process *process_of(const struct query_process *list, unsigned int n,
					      long pid)
{
	static const struct query_process none;

	for (unsigned int i = 0; i < n; i++)
		if (list[i].pid == pid)
			return &list[i];
	return &none;
}

/* ---- workers -------------------------------------------------------------------------------- */

static int by_metric(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	struct metric m, n;
	int order;

	name_metric(x, &m);
	name_metric(y, &n);
	order = strcmp(m.name, n.name);
	if (!order)
		order = (x->pid > y->pid) - (x->pid < y->pid);
	if (!order)
		order = strcmp(x->worker, y->worker);
	if (!order)
		order = strcmp(x->lane, y->lane);
	return order ? order : strcmp(x->name, y->name);
}

static void print_workers(FILE *out, struct query_process *list, unsigned int n)
{
	static struct samples samples;
	char last[METRIC_MAX] = "";
	const struct sample *s;
	struct metric m;

	samples_take(list, n, &samples);
	qsort(samples.of, samples.num, sizeof(samples.of[0]), by_metric);
	for (unsigned int i = 0; i < samples.num; i++) {
		s = &samples.of[i];
		name_metric(s, &m);
		if (strcmp(m.name, last))
			head(out, m.name, m.help, m.level);
		memcpy(last, m.name, sizeof(last));
		labels(out, m.name, process_of(list, n, s->pid));
		label(out, "worker", s->worker);
		if (s->lane[0])
			label(out, "lane", s->lane);
		if (m.of_path)
			fprintf(out, ",conn=\"%u\",path=\"%u\"", m.conn, m.path);
		fprintf(out, "} %.17g\n", s->value * m.factor);
	}
}

/* ---- switches ------------------------------------------------------------------------------- */

#define SWITCH_SAMPLES 8192u

struct switch_samples {
	const struct query_process *process;
	int port;   /* of the next counters; -1 = the uplink */
	long owner; /* pid of the process that has the port; 0 = the uplink */
	unsigned int num;
	struct switch_sample {
		const struct query_process *process;
		int port;
		long owner;
		char name[64];
		double value;
	} of[SWITCH_SAMPLES];
};

static char answer[QUERY_ANSWER];

static void on_switch_counter(const char *name, const char *text, bool is_number, void *arg)
{
	struct switch_samples *to = arg;
	struct switch_sample *s;

	if (!is_number || to->num == SWITCH_SAMPLES)
		return;
	s = &to->of[to->num++];
	*s = (struct switch_sample){.process = to->process,
				    .port = to->port,
				    .owner = to->owner,
				    .value = strtod(text, NULL)};
	snprintf(s->name, sizeof(s->name), "%s", name);
	for (char *p = s->name; *p; p++)
		if ((*p < '0' || *p > '9') && ((*p | 32) < 'a' || (*p | 32) > 'z'))
			*p = '_';
}

struct ports {
	unsigned int num;
	struct {
		int number;
		long owner;
	} of[1024];
};

static void on_port(const char *name, const char *text, bool is_number, void *arg)
{
	struct ports *ports = arg;

	if (!is_number || ports->num == sizeof(ports->of) / sizeof(ports->of[0]))
		return;
	ports->of[ports->num].number = (int)strtol(name, NULL, 10);
	ports->of[ports->num++].owner = strtol(text, NULL, 10);
}

static void take_switch(struct query_process *p, struct switch_samples *to)
{
	static struct ports ports;
	char command[64];

	to->process = p;
	to->port = -1;
	to->owner = 0;
	if (query(p, "/weft_switch/counters", answer))
		query_walk(answer, on_switch_counter, to);
	ports.num = 0;
	if (query(p, "/weft_switch/ports", answer))
		query_walk(answer, on_port, &ports);
	for (unsigned int i = 0; i < ports.num; i++) {
		to->port = ports.of[i].number;
		to->owner = ports.of[i].owner;
		snprintf(command, sizeof(command), "/weft_switch/counters,%d", to->port);
		if (query(p, command, answer))
			query_walk(answer, on_switch_counter, to);
	}
}

static int by_name(const void *a, const void *b)
{
	const struct switch_sample *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (!order)
		order = (x->process->pid > y->process->pid) - (x->process->pid < y->process->pid);
	return order ? order : (x->port > y->port) - (x->port < y->port);
}

static void print_switches(FILE *out, struct query_process *list, unsigned int n)
{
	static struct switch_samples samples;
	char metric[96], last[96] = "", number[16];
	const struct switch_sample *s;

	samples.num = 0;
	for (unsigned int i = 0; i < n; i++)
		if (list[i].is_switch)
			take_switch(&list[i], &samples);
	qsort(samples.of, samples.num, sizeof(samples.of[0]), by_name);
	for (unsigned int i = 0; i < samples.num; i++) {
		s = &samples.of[i];
		snprintf(metric, sizeof(metric), "weft_switch_%s_total", s->name);
		if (strcmp(metric, last))
			head(out, metric,
			     "Counter of a switch's uplink or port, see doc/switch.md.", false);
		memcpy(last, metric, sizeof(last));
		labels(out, metric, s->process);
		snprintf(number, sizeof(number), "%d", s->port);
		label(out, "port", s->port < 0 ? "uplink" : number);
		if (s->owner)
			fprintf(out, ",owner=\"%ld\"", s->owner);
		fprintf(out, "} %.17g\n", s->value);
	}
}

/* ---- RoCE devices --------------------------------------------------------------------------- */

/* A device counts for all programs of the host, so no label names a process. */
static void print_devices(FILE *out)
{
	static struct roce_counters counters;
	const struct roce_counter *c;
	char metric[METRIC_MAX], last[METRIC_MAX] = "", help[80];

	roce_counters_read(&counters);
	roce_counters_sort(&counters);
	for (c = counters.of; c < counters.of + counters.num; c++) {
		snprintf(metric, sizeof(metric), "weft_roce_%s_total", c->name);
		snprintf(help, sizeof(help), "RoCE device: %s.", c->text);
		if (strcmp(metric, last))
			head(out, metric, help, false);
		memcpy(last, metric, sizeof(last));
		fprintf(out, "%s{host=\"%s\"", metric, host_name);
		label(out, "device", c->device);
		label(out, "port", c->port);
		fprintf(out, "} %llu\n", c->value);
	}
}

static void print_builds(FILE *out, const struct query_process *list, unsigned int n)
{
	if (n)
		head(out, "weft_build_info", "1 for each process, with its version of Weft.", true);
	for (unsigned int i = 0; i < n; i++) {
		/* A process with two sockets is in the list twice. */
		if (process_of(list, n, list[i].pid) != &list[i])
			continue;
		labels(out, "weft_build_info", &list[i]);
		label(out, "version", list[i].version);
		label(out, "metrics_version", METRICS_VERSION);
		fprintf(out, "} 1\n");
	}
}

void info_metrics(FILE *out, struct query_process *list, unsigned int n)
{
	gethostname(host_name, sizeof(host_name) - 1);
	print_builds(out, list, n);
	print_workers(out, list, n);
	print_switches(out, list, n);
	print_devices(out);
}

/* ---- HTTP ----------------------------------------------------------------------------------- */

#ifdef WEFT_HAVE_MICROHTTPD

#include <microhttpd.h>

#define CONNECTIONS 16u
#define SECONDS 10u /* time without activity after which a connection is closed */

static long only_pid;

/* @return a text that the caller frees by free(); NULL when memory is exhausted */
static char *take_metrics(size_t *len)
{
	static struct query_process list[QUERY_PROCESSES];
	unsigned int n = query_find(only_pid, true, list);
	char *text = NULL;
	FILE *out = open_memstream(&text, len);

	if (out) {
		info_metrics(out, list, n);
		fclose(out);
	}
	query_close(list, n);
	return text;
}

static enum MHD_Result reply(struct MHD_Connection *c, unsigned int status, char *text, size_t len,
			     enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(len, text, mode);
	enum MHD_Result ret;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE,
				"text/plain; version=0.0.4; charset=utf-8");
	ret = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ret;
}

/* One thread serves all requests in sequence, because queries use static buffers. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *data_len, void **state)
{
	static char none[] = "there is /metrics, for GET\n";
	char *text;
	size_t len;

	(void)arg;
	(void)version;
	(void)data;
	(void)state;
	if (*data_len) {
		*data_len = 0; /* ignore a body */
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) || strcmp(url, "/metrics"))
		return reply(c, MHD_HTTP_NOT_FOUND, none, sizeof(none) - 1, MHD_RESPMEM_PERSISTENT);
	text = take_metrics(&len);
	return text ? reply(c, MHD_HTTP_OK, text, len, MHD_RESPMEM_MUST_FREE) : MHD_NO;
}

static int listen_at(const struct addrinfo *at)
{
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, CONNECTIONS) == 0)
		return fd;
	close(fd);
	return -errno;
}

/* @return a socket, or a negative error after a message: -EINVAL = @p address is invalid */
static int open_socket(const char *address)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	char host[256] = "127.0.0.1";
	const char *port = strrchr(address, ':'), *name = address;
	struct addrinfo *list;
	uint16_t number;
	int rc, len = port ? (int)(port - address) : 0;

	if (port && address[0] == '[' && len >= 2 && address[len - 1] == ']') {
		name++;
		len -= 2;
	}
	if (port)
		snprintf(host, sizeof(host), "%.*s", len, name);
	port = port ? port + 1 : address;
	if (cli_port("--listen", port, &number))
		return -EINVAL;
	rc = getaddrinfo(host, port, &hints, &list);
	if (rc) {
		cli_error("--listen %s: %s", address, gai_strerror(rc));
		return -EINVAL;
	}
	rc = listen_at(list);
	freeaddrinfo(list);
	if (rc < 0)
		cli_error("--listen %s: %s", address, strerror(-rc));
	return rc;
}

int info_listen(const char *address, long pid)
{
	struct MHD_Daemon *daemon;
	sigset_t ends;
	int fd, sig;

	only_pid = pid;
	fd = open_socket(address);
	if (fd < 0)
		return fd == -EINVAL ? APP_USAGE : APP_FAIL;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	/* New threads inherit the blocked signals, so this thread receives them. */
	sigprocmask(SIG_BLOCK, &ends, NULL);
	daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request, NULL,
				  MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				  CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, SECONDS,
				  MHD_OPTION_END);
	if (!daemon) {
		close(fd);
		cli_error("--listen %s: the HTTP server does not start", address);
		return APP_FAIL;
	}
	fprintf(stderr, "%s: metrics at %s, path /metrics\n", cli_program, address);
	sigwait(&ends, &sig);
	MHD_stop_daemon(daemon);
	return 128 + sig;
}

#else

int info_listen(const char *address, long pid)
{
	(void)pid;
	cli_error("--listen %s: this build has no HTTP server: install libmicrohttpd-dev and "
		  "configure it again",
		  address);
	return APP_FAIL;
}

#endif
