/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "common/eal_start.h"
#include "common/program.h"
#include "drivers/dpdk/port/eal.h"
#include "weft.h"

/* ---- options ------------------------------------------------------------------------------- */

int peer_options_init(struct peer_options *opts)
{
	int ret;

	*opts = (struct peer_options){.port = CLI_DEFAULT_PORT, .wait = 3, .core = -1};
	ret = weft_config_read(&opts->config);
	if (!ret)
		return APP_OK;
	cli_error("the configuration is invalid: %s; weft-info -c lists all variables",
		  ret == -EINVAL ? "a WEFT_ variable or the file of WEFT_CONFIG is malformed "
				   "(see above)"
				 : weft_strerror(ret));
	return APP_USAGE;
}

static int set_variable(struct weft_config *config, const char *name, const char *value)
{
	int ret = weft_config_modify(config, name, value);

	if (!ret)
		return APP_OK;
	if (ret == -ENOENT)
		cli_error("there is no variable '%s'; weft-info -c lists all", name);
	else
		cli_error("'%s' is no value for %s; weft-info -c shows possible values", value,
			  name);
	return APP_USAGE;
}

static int option_set(struct weft_config *config, const char *text)
{
	const char *equals = strchr(text, '=');
	char name[64];

	if (!equals || equals == text || (size_t)(equals - text) >= sizeof(name)) {
		cli_error("-S takes NAME=VALUE, not '%s'", text);
		return APP_USAGE;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
	return set_variable(config, name, equals + 1);
}

int peer_option(void *options, const char *option, const char *value)
{
	struct peer_options *opts = options;

	return strcmp(option, "-L") ? option_set(opts->config, value)
				    : set_variable(opts->config, "LANES", value);
}

static int option_port(void *options, const char *option, const char *value)
{
	return cli_port(option, value, &((struct peer_options *)options)->port) ? APP_USAGE
										: APP_OK;
}

static int option_wait(void *options, const char *option, const char *value)
{
	double *wait = &((struct peer_options *)options)->wait;

	return cli_seconds(option, value, 0, 86400, wait) ? APP_USAGE : APP_OK;
}

static int option_core(void *options, const char *option, const char *value)
{
	uint64_t core = 0;
	int ret = cli_count(option, value, 0, 1023, &core);

	((struct peer_options *)options)->core = (int)core;
	return ret ? APP_USAGE : APP_OK;
}

const struct cli_option peer_option_table[] = {
	{"port", 'p', "PORT", "TCP port of the out-of-band connection (13377)", .set = option_port},
	{"wait", 'W', "SECONDS", "client: how long to wait for a server (3)", .set = option_wait},
	{"core", 'c', "CORE", "pin the program to this core", .set = option_core},
	{"lanes", 'L', "LIST",
	 "lanes to use, as WEFT_LANES, for example 'dpdk:0,mtu=9000;roce:mlx5_0'",
	 .set = peer_option},
	{"set", 'S', "NAME=VALUE", "set a configuration variable, e.g. RNDV_THRESH=64k",
	 .set = peer_option},
	{"counters", 0, NULL, "at the end, all counters that are not 0, on standard error",
	 .flag = offsetof(struct peer_options, counters)},
	{0},
};

static int host_option(struct peer_options *opts, const char *text, const char **out)
{
	if (cli_host_port(text, opts->name, sizeof(opts->name), &opts->port))
		return APP_USAGE;
	*out = opts->name;
	return APP_OK;
}

int peer_host(struct peer_options *opts, const char *text)
{
	return host_option(opts, text, &opts->host);
}

int peer_local(struct peer_options *opts, const char *text)
{
	return host_option(opts, text, &opts->local);
}

/* ---- losses --------------------------------------------------------------------------------- */

struct lanes {
	unsigned int count;
	struct {
		char name[64];
		uint64_t again, dropped;
	} lane[32];
};

static bool is_drop(const char *counter)
{
	static const char *const port[] = {"rx_missed_errors", "rx_mbuf_allocation_errors"};
	/* Normal: frames for others on a shared interface, and duplicates of retransmissions. */
	static const char *const normal[] = {"drop.not_ours", "drop.duplicate"};
	size_t i;

	for (i = 0; i < sizeof(port) / sizeof(port[0]); i++)
		if (!strcmp(counter, port[i]))
			return true;
	for (i = 0; i < sizeof(normal) / sizeof(normal[0]); i++)
		if (!strcmp(counter, normal[i]))
			return false;
	return !strncmp(counter, "drop.", 5);
}

static void count_drop(const char *name, uint64_t value, void *arg)
{
	struct lanes *l = arg;
	size_t len;

	for (unsigned int i = 0; i < l->count; i++) {
		len = strlen(l->lane[i].name);
		if (!strncmp(name, l->lane[i].name, len) && name[len] == '.' &&
		    is_drop(name + len + 1))
			l->lane[i].dropped += value;
	}
}

/* Several lanes of an endpoint may share an interface. */
static void take_lane(struct lanes *l, const struct weft_lane_info *info)
{
	unsigned int i;

	for (i = 0; i < l->count && strcmp(l->lane[i].name, info->name); i++)
		;
	if (i == sizeof(l->lane) / sizeof(l->lane[0]))
		return;
	if (i == l->count)
		snprintf(l->lane[l->count++].name, sizeof(l->lane[i].name), "%s", info->name);
	l->lane[i].again += info->retransmits;
}

__attribute__((format(printf, 3, 4))) static void append(char *buf, size_t size, const char *fmt,
							 ...)
{
	size_t at = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + at, size - at, fmt, ap);
	va_end(ap);
}

void lane_losses(struct peer *p, char *buf, size_t size)
{
	struct weft_lane_info info = {.size = sizeof(info)};
	struct lanes l = {0};

	for (unsigned int i = 0; p->ep && weft_ep_query_lane(p->ep, i, &info) == 0; i++)
		take_lane(&l, &info);
	weft_worker_counters(p->worker, count_drop, &l);
	snprintf(buf, size, "sent again:");
	for (unsigned int i = 0; i < l.count; i++) {
		if (!strncmp(l.lane[i].name, "roce:", 5))
			append(buf, size, "%s %s by its NIC", i ? "," : "", l.lane[i].name);
		else
			append(buf, size, "%s %s %" PRIu64 "%s", i ? "," : "", l.lane[i].name,
			       l.lane[i].again, i ? "" : " frames");
	}
	append(buf, size, "; dropped here:");
	for (unsigned int i = 0; i < l.count; i++)
		append(buf, size, "%s %s %" PRIu64, i ? "," : "", l.lane[i].name,
		       l.lane[i].dropped);
}

/* ---- start ---------------------------------------------------------------------------------- */

int program_connect(struct peer *p, const struct peer_options *options, int eal_count,
		    char **eal_words)
{
	int ret;

	*p = (struct peer){.opts = options};
	ret = eal_start(eal_count, eal_words, options->config, options->core);
	if (!ret)
		ret = peer_init(p, options);
	if (!ret)
		ret = peer_open(p);
	if (!ret)
		ret = peer_meet(p);
	return ret ? ret : peer_connect(p);
}

int program_main(const struct program *p, struct peer_options *options, int argc, char **argv)
{
	char **eal_words;
	int eal_count, ret = APP_OK;

	cli_program = p->name;
	cli_server = p->server;
	eal_count = weft_eal_split_args(&argc, &argv, &eal_words);
	sys_catch_signals();
	if (!cli_wants_help(argc, argv))
		ret = peer_options_init(options);
	if (!ret)
		ret = p->parse(options, argc, argv);
	if (!ret)
		ret = p->run(options, eal_count, eal_words);
	weft_config_release(options->config);
	return ret < 0 ? APP_OK : ret;
}
