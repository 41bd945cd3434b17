/* SPDX-License-Identifier: BSD-3-Clause */

#include "info/running.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "info/query.h"
#include "info/listen.h"
#include "info/live.h"
#include "info/metrics.h"
#include "info/samples.h"
#include "weft.h"

static char answer[QUERY_ANSWER];

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

/* Print one entry of shown[] for each worker. */
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
				cli_error("process %ld does not respond to %s", list[i].pid, text);
				error = true;
			}
		}
	}
	return error ? APP_FAIL : APP_OK;
}

static bool is_shown(const char *what)
{
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (!strcmp(what, shown[i]))
			return true;
	return false;
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
		cli_error("process %ld does not respond to %s", p->pid, path);
		return APP_FAIL;
	}
	return sentence ? APP_FAIL : APP_OK;
}

bool info_is_running(const char *option)
{
	static const char *const all[] = {"--capture", "--recorder", "--metrics", "--live",
					  "--show"};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(option, all[i]))
			return true;
	return false;
}

/* A process may have two sockets; a command for it goes to one of them. */
static bool is_one(const struct query_process *list, unsigned int n)
{
	for (unsigned int i = 1; i < n; i++)
		if (list[i].pid != list[0].pid)
			return false;
	return true;
}

static int run(const char *what, struct query_process *list, unsigned int n, const char *words,
	       bool once)
{
	if (!strcmp(what, "--metrics")) {
		info_metrics(stdout, list, n);
		return APP_OK;
	}
	if (!strcmp(what, "--show"))
		return show(words, list, n);
	if (!strcmp(what, "--live")) {
		info_live(list, n, once);
		return APP_OK;
	}
	if (!is_one(list, n)) {
		cli_error("several processes respond: choose one with --pid");
		for (unsigned int i = 0; i < n; i++)
			fprintf(stderr, "  --pid %ld\n", list[i].pid);
		return APP_USAGE;
	}
	return command(&list[0], !strcmp(what, "--capture") ? "/weft/capture" : "/weft/recorder",
		       words);
}

/* @return 0: it is no number */
static long number(const char *text)
{
	char *end;
	long v = strtol(text, &end, 10);

	return *end ? 0 : v;
}

static int not_taken(const char *what, const char *word, const char *next)
{
	if (!strcmp(word, "--pid"))
		cli_error("--pid takes the number of a process, not '%s'", next ? next : "");
	else if (!strcmp(what, "--show"))
		cli_error("--show takes one of lanes, endpoints, paths, thresholds, counters, "
			  "not '%s'",
			  word);
	else
		cli_error("%s does not take '%s'; see --help", what, word);
	return APP_USAGE;
}

int info_running(int argc, char **argv)
{
	static struct query_process list[QUERY_PROCESSES];
	const char *words = "", *address = NULL;
	bool once = false, metrics = !strcmp(argv[0], "--metrics");
	unsigned int n;
	long pid = 0;
	int i, ret;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--pid") && i + 1 < argc && number(argv[i + 1]) > 0) {
			pid = number(argv[++i]);
		} else if (!strcmp(argv[i], "--listen") && i + 1 < argc &&
			   !strcmp(argv[0], "--metrics")) {
			address = argv[++i];
		} else if (!strcmp(argv[i], "--once") && !strcmp(argv[0], "--live")) {
			once = true;
		} else if (!words[0] && argv[i][0] != '-' &&
			   (!strcmp(argv[0], "--capture") ||
			    (!strcmp(argv[0], "--show") && is_shown(argv[i])))) {
			words = argv[i];
		} else {
			return not_taken(argv[0], argv[i], argv[i + 1]);
		}
	}
	if (!strcmp(argv[0], "--show") && !words[0]) {
		cli_error("--show takes one of lanes, endpoints, paths, thresholds, counters");
		return APP_USAGE;
	}
	if (address)
		return info_listen(address, pid);
	n = query_find(pid, metrics, list);
	if (n == 0) {
		cli_error("no process%s responds: it needs a worker and the same user, and with "
			  "raw lanes DPDK's telemetry (no --no-telemetry)",
			  pid ? " of that id" : " that uses Weft");
		return APP_FAIL;
	}
	ret = run(argv[0], list, n, words, once);
	query_close(list, n);
	return ret;
}
