/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/control.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "capture/capture.h"
#include "compat.h"

static void add_state(struct rte_tel_data *d, const struct weft_capture_state *s)
{
	/* DPDK truncates strings of dictionaries at 127 bytes. */
	rte_tel_data_add_dict_string(d, "file", s->file);
	rte_tel_data_add_dict_string(d, "filter", s->filter);
	rte_tel_data_add_dict_uint(d, "interfaces", s->interfaces);
	rte_tel_data_add_dict_uint(d, "frames", s->frames);
	rte_tel_data_add_dict_uint(d, "dropped", s->dropped);
	if (s->why[0])
		rte_tel_data_add_dict_string(d, "ended", s->why);
}

/* Several captures run only if each context of the program has one of its own. */
static int tell_state(struct rte_tel_data *d)
{
	struct weft_capture_state s;
	unsigned int n = 0;

	rte_tel_data_start_dict(d);
	if (weft_capture_query(0, &s))
		add_state(d, &s);
	while (weft_capture_query(n, &s))
		n++;
	rte_tel_data_add_dict_uint(d, "captures", n);
	return 0;
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

static int on_capture(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct weft_capture_state last;
	const char *rest;
	char why[512];
	int rc;

	(void)cmd;
	if (!params || !params[0])
		return tell_state(d);
	if (is_command(params, "stop", &rest)) {
		rc = weft_capture_stop(&last, why, sizeof(why));
		if (rc)
			return rte_tel_data_string(d, why);
		rte_tel_data_start_dict(d);
		add_state(d, &last);
		rte_tel_data_add_dict_uint(d, "captures", 0);
		return 0;
	}
	if (is_command(params, "start", &rest))
		rc = weft_capture_start(rest, why, sizeof(why));
	else if (is_command(params, "filter", &rest))
		rc = weft_capture_refilter(rest, why, sizeof(why));
	else
		return rte_tel_data_string(d, "a capture takes start,FILE[,OPTION=VALUE...], "
					      "filter,EXPR or stop");
	return rc ? rte_tel_data_string(d, why) : tell_state(d);
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
