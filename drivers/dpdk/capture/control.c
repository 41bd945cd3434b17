/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/control.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "capture/capture.h"
#include "compat.h"

static void add_state(const struct weft_capture_state *s, weft_lane_tap_answer_cb cb, void *arg)
{
	/* DPDK truncates strings of dictionaries at 127 bytes. */
	cb("file", s->file, 0, arg);
	cb("filter", s->filter, 0, arg);
	cb("interfaces", NULL, s->interfaces, arg);
	cb("frames", NULL, s->frames, arg);
	cb("dropped", NULL, s->dropped, arg);
	if (s->why[0])
		cb("ended", s->why, 0, arg);
}

/* Several captures run only if each context of the program has one of its own. */
static void report_state(weft_lane_tap_answer_cb cb, void *arg)
{
	struct weft_capture_state s;
	unsigned int n = 0;

	if (weft_capture_query(0, &s))
		add_state(&s, cb, arg);
	while (weft_capture_query(n, &s))
		n++;
	cb("captures", NULL, n, arg);
}

/* Is it this command? Its parameters then are in @p rest. */
static bool is_command(const char *params, const char *command, const char **rest)
{
	size_t len = strlen(command);

	if (strncmp(params, command, len) || (params[len] && params[len] != ','))
		return false;
	*rest = params + len + (params[len] == ',');
	return true;
}

void weft_capture_command(const char *words, weft_lane_tap_answer_cb cb, void *arg)
{
	struct weft_capture_state last;
	const char *rest;
	char why[512] = "a capture takes start,FILE[,OPTION=VALUE...], filter,EXPR or stop";
	int rc = -1;

	if (is_command(words, "stop", &rest)) {
		rc = weft_capture_stop(&last, why, sizeof(why));
		if (rc == 0) {
			add_state(&last, cb, arg);
			cb("captures", NULL, 0, arg);
			return;
		}
	} else if (is_command(words, "start", &rest)) {
		rc = weft_capture_start(rest, why, sizeof(why));
	} else if (is_command(words, "filter", &rest)) {
		rc = weft_capture_refilter(rest, why, sizeof(why));
	} else if (!words[0]) {
		rc = 0;
	}
	if (rc == 0)
		report_state(cb, arg);
	else
		cb(NULL, why, 0, arg);
}

/* ---- DPDK's telemetry ----------------------------------------------------------------------- */

struct answer {
	struct rte_tel_data *d;
	bool begun;
};

static void on_part(const char *name, const char *text, uint64_t number, void *arg)
{
	struct answer *a = arg;

	if (!name) {
		rte_tel_data_string(a->d, text);
		return;
	}
	if (!a->begun)
		rte_tel_data_start_dict(a->d);
	a->begun = true;
	if (text)
		rte_tel_data_add_dict_string(a->d, name, text);
	else
		rte_tel_data_add_dict_uint(a->d, name, number);
}

static int on_capture(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct answer a = {.d = d};

	(void)cmd;
	weft_capture_command(params ? params : "", on_part, &a);
	return 0;
}

static int on_recorder(const char *cmd, const char *params, struct rte_tel_data *d)
{
	char name[512];

	(void)cmd;
	(void)params;
	if (weft_recorder_file_write("requested by telemetry", name, sizeof(name)))
		return rte_tel_data_string(d, name);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "file", name);
	return 0;
}

static void register_once(void)
{
	/* DPDK refuses help of 128 bytes and more. */
	rte_telemetry_register_cmd("/weft/capture", on_capture,
				   "Captures of raw lanes. Parameters: none, "
				   "start,FILE[,OPTIONS], filter,EXPR, or stop; see weft(7)");
	rte_telemetry_register_cmd("/weft/recorder", on_recorder,
				   "Write the flight recorder's frames to a file. Takes no "
				   "parameters");
}

void weft_capture_control(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_once);
}
