/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_telemetry.h>

#include "common/cli.h"
#include "common/eal_start.h"
#include "common/eth_port.h"
#include "drivers/dpdk/compat.h"
#include "drivers/dpdk/port/eal.h"
#include "weft.h"
#include "wire/bridge.h"

/* ---- text ----------------------------------------------------------------------------------- */

static size_t dir_head(const struct wire *w, unsigned int i, char *buf, size_t len)
{
	const struct wire_dir *d = &w->pair[i / 2].dir[i % 2];
	char from[RTE_ETH_NAME_MAX_LEN], to[RTE_ETH_NAME_MAX_LEN];
	int n = snprintf(buf, len, "%u %-5s %s -> %s:", i / 2, wire_dir_name[i % 2],
			 eth_port_name(d->from, from), eth_port_name(d->to, to));

	return (size_t)n < len ? (size_t)n : len;
}

static size_t line_end(char *buf, size_t len, size_t at)
{
	if (at + 1 < len) {
		buf[at++] = '\n';
		buf[at] = '\0';
	}
	return at;
}

static void report_links(const struct wire *w, char *buf, size_t len)
{
	char text[1024];
	unsigned int i;
	size_t at = 0;

	for (i = 0; i < 2 * w->num_pairs; i++) {
		at += dir_head(w, i, buf + at, len - at);
		sim_link_text(&w->pair[i / 2].dir[i % 2].link, text, sizeof(text));
		at += (size_t)snprintf(buf + at, len - at, " %s", text);
		if (at >= len)
			return;
		at = line_end(buf, len, at);
	}
}

/* Counters that are 0 are left out, except received and sent frames. */
static void report_counters(const struct wire *w, char *buf, size_t len)
{
	const struct wire_dir *d;
	unsigned int i;
	size_t at = 0, k;

	for (i = 0; i < 2 * w->num_pairs; i++) {
		d = &w->pair[i / 2].dir[i % 2];
		at += dir_head(w, i, buf + at, len - at);
		for (k = 0; k < WIRE_COUNTERS && at < len; k++)
			if (k < 2 || wire_counter_value(d, k))
				at += (size_t)snprintf(buf + at, len - at, " %s %" PRIu64,
						       wire_counter[k].name,
						       wire_counter_value(d, k));
		if (at >= len)
			return;
		at = line_end(buf, len, at);
	}
}

/* ---- commands ------------------------------------------------------------------------------- */

#define LINE 1024

static const char command_help[] =
	"  [PAIR] [forth|back] LINK   change links, e.g.  1 back loss=5%\n"
	"  show                       all links\n"
	"  counters                   the counters so far\n"
	"  quit                       the end\n";

/* ---- one command ---------------------------------------------------------------------------- */

static bool takes(const char **line, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*line, word, n) != 0 || ((*line)[n] && !isspace((unsigned char)(*line)[n])))
		return false;
	*line += n;
	*line += strspn(*line, " \t");
	return true;
}

/* @param[out] first, last  all pairs, or the one that the line names. @param[out] answer  error */
static int which_pairs(const struct wire *w, const char **line, unsigned int *first,
		       unsigned int *last, char *answer, size_t len)
{
	unsigned long n;
	char *end;

	*first = 0;
	*last = w->num_pairs - 1;
	if (!isdigit((unsigned char)**line))
		return 0;
	n = strtoul(*line, &end, 10);
	if ((*end && !isspace((unsigned char)*end)) || n >= w->num_pairs) {
		snprintf(answer, len, "there is no pair '%.*s'; the last one is %u",
			 (int)strcspn(*line, " \t"), *line, w->num_pairs - 1);
		return -EINVAL;
	}
	*first = *last = (unsigned int)n;
	*line = end + strspn(end, " \t");
	return 0;
}

static int change(struct wire *w, const char *line, char *answer, size_t len)
{
	unsigned int first, last, i, dir, from = WIRE_FORTH, to = WIRE_BACK;
	struct sim_link changed[WIRE_PAIRS][2];
	int ret = which_pairs(w, &line, &first, &last, answer, len);

	if (ret)
		return ret;
	if (takes(&line, "forth"))
		to = WIRE_FORTH;
	else if (takes(&line, "back"))
		from = WIRE_BACK;
	if (!*line) {
		snprintf(answer, len, "the change is missing, e.g. loss=5%%");
		return -EINVAL;
	}
	/* The command changes all selected links, or none if the change of one is invalid. */
	for (i = first; i <= last; i++) {
		for (dir = from; dir <= to; dir++) {
			changed[i][dir] = w->pair[i].dir[dir].link;
			ret = sim_link_parse(line, &changed[i][dir], answer, len);
			if (ret)
				return ret;
		}
	}
	for (i = first; i <= last; i++)
		for (dir = from; dir <= to; dir++)
			w->pair[i].dir[dir].link = changed[i][dir];
	report_links(w, answer, len);
	return 0;
}

/* The caller holds the lock. @param[out] answer  lines of text, or after an error one sentence */
static int run_command(struct wire *w, const char *line, char *answer, size_t len)
{
	line += strspn(line, " \t");
	answer[0] = '\0';
	if (!*line || *line == '#')
		return 0;
	if (takes(&line, "show"))
		report_links(w, answer, len);
	else if (takes(&line, "counters"))
		report_counters(w, answer, len);
	else if (takes(&line, "help"))
		snprintf(answer, len, "%s%s", command_help, sim_link_help);
	else if (takes(&line, "quit"))
		w->ended = true;
	else
		return change(w, line, answer, len);
	if (!*line)
		return 0;
	snprintf(answer, len, "unexpected text after the command: '%s'", line);
	return -EINVAL;
}

/* ---- standard input ------------------------------------------------------------------------- */

static void do_line(struct wire *w, const char *line)
{
	static char answer[16384];
	int ret;

	rte_ticketlock_lock(&w->lock);
	ret = run_command(w, line, answer, sizeof(answer));
	rte_ticketlock_unlock(&w->lock);
	if (ret) {
		cli_error("%s", answer);
		return;
	}
	fputs(answer, stdout);
	fflush(stdout);
}

/* @return bytes of the last line, which is incomplete and now at the start of @p buf */
static size_t do_lines(struct wire *w, char *buf, size_t len)
{
	char *line = buf, *end;

	while ((end = memchr(line, '\n', len - (size_t)(line - buf)))) {
		*end = '\0';
		do_line(w, line);
		line = end + 1;
	}
	len -= (size_t)(line - buf);
	memmove(buf, line, len);
	return len;
}

static void read_commands(struct wire *w)
{
	static char buf[LINE];
	static size_t len;
	static bool over;
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	ssize_t n;

	if (over || poll(&p, 1, 0) <= 0)
		return;
	n = read(STDIN_FILENO, buf + len, sizeof(buf) - 1 - len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		/* At the end of input the bridge continues; the last line may lack a newline. */
		over = true;
		buf[len] = '\0';
		do_line(w, buf);
		return;
	}
	len = do_lines(w, buf, len + (size_t)n);
	if (len == sizeof(buf) - 1) {
		cli_error("a command is longer than %zu characters", sizeof(buf) - 1);
		len = 0;
	}
}

/* ---- telemetry ------------------------------------------------------------------------------ */

/* DPDK's telemetry callbacks have no argument for the bridge. */
static struct wire *reported;

static int on_links(const char *cmd, const char *params, struct rte_tel_data *data)
{
	char text[1024], name[32];
	unsigned int i;

	(void)cmd;
	(void)params;
	rte_tel_data_start_dict(data);
	rte_ticketlock_lock(&reported->lock);
	for (i = 0; i < 2 * reported->num_pairs; i++) {
		snprintf(name, sizeof(name), "%u/%s", i / 2, wire_dir_name[i % 2]);
		sim_link_text(&reported->pair[i / 2].dir[i % 2].link, text, sizeof(text));
		rte_tel_data_add_dict_string(data, name, text);
	}
	rte_ticketlock_unlock(&reported->lock);
	return 0;
}

static unsigned int pair_of(const char *params)
{
	unsigned int pair = 0;

	if (params && sscanf(params, "%u", &pair) == 1 && pair >= reported->num_pairs)
		return WIRE_PAIRS;
	return pair;
}

static int on_counters(const char *cmd, const char *params, struct rte_tel_data *data)
{
	unsigned int pair = pair_of(params), dir;
	char name[64];
	size_t k;

	(void)cmd;
	if (pair == WIRE_PAIRS)
		return -EINVAL;
	rte_tel_data_start_dict(data);
	rte_ticketlock_lock(&reported->lock);
	for (dir = 0; dir < 2; dir++) {
		for (k = 0; k < WIRE_COUNTERS; k++) {
			snprintf(name, sizeof(name), "%s/%s", wire_dir_name[dir],
				 wire_counter[k].name);
			rte_tel_data_add_dict_uint(
				data, name, wire_counter_value(&reported->pair[pair].dir[dir], k));
		}
	}
	rte_ticketlock_unlock(&reported->lock);
	return 0;
}

static int do_command(const char *cmd, const char *params, struct rte_tel_data *data)
{
	char answer[512] = "";
	int ret;

	(void)cmd;
	rte_ticketlock_lock(&reported->lock);
	ret = run_command(reported, params ? params : "", answer, sizeof(answer));
	rte_ticketlock_unlock(&reported->lock);
	rte_tel_data_start_dict(data);
	rte_tel_data_add_dict_string(data, ret ? "error" : "done",
				     ret || !params ? answer : params);
	return 0;
}

static void register_telemetry(struct wire *w)
{
	reported = w;
	/* Names of commands have no '-'. With --no-telemetry no socket serves the commands. */
	rte_telemetry_register_cmd("/weft_wire/links", on_links, "Links of all pairs.");
	rte_telemetry_register_cmd("/weft_wire/counters", on_counters,
				   "Counters of a pair. Parameter: its number (0).");
	rte_telemetry_register_cmd("/weft_wire/set", do_command,
				   "Change links, as a command: [PAIR] [forth|back] LINK.");
}

/* ---- options and start ---------------------------------------------------------------------- */

struct options {
	struct wire wire;
	uint64_t seed, mtu, mbufs, sleep_us;
	const char *trace;
	struct sim_link link[2];
	char *const *ports;
	unsigned int num_ports;
};

/* -l sets both directions, -f and -b one. */
static int option_link(void *options, const char *option, const char *value)
{
	struct options *o = options;
	char why[400];

	for (int dir = WIRE_FORTH; dir <= WIRE_BACK; dir++) {
		if (option[1] == (dir == WIRE_FORTH ? 'b' : 'f') ||
		    sim_link_parse(value, &o->link[dir], why, sizeof(why)) == 0)
			continue;
		cli_error("%s '%s': %s", option, value, why);
		return APP_USAGE;
	}
	return APP_OK;
}

static int option_trace(void *options, const char *option, const char *value)
{
	struct options *o = options;

	(void)option;
	o->trace = value;
	return APP_OK;
}

static const struct cli_option table[] = {
	{"link", 'l', "LINK", "both directions of all pairs", .set = option_link},
	{"forth", 'f', "LINK", "from the first port of each pair to the second",
	 .set = option_link},
	{"back", 'b', "LINK", "from the second to the first", .set = option_link},
	{"seed", 's', "N", "seed of all random numbers (1)",
	 .number = {offsetof(struct options, seed), 0, UINT64_MAX}},
	{"mtu", 'm', "BYTES",
	 "longest packet that is carried (the smallest MTU of the ports, at most 1500)",
	 .number = {offsetof(struct options, mtu), 68, 9700}},
	{"mbufs", 'n', "N", "frames that may be in flight at a time (16k)",
	 .number = {offsetof(struct options, mbufs), 64, 10000000}},
	{"sleep", 'S', "US", "sleep for US microseconds while no frames come (0: never)",
	 .number = {offsetof(struct options, sleep_us), 0, 100000}},
	{"trace", 't', "FILE",
	 "write a line for each frame that a link drops, delays, changes or duplicates",
	 .set = option_trace},
	{0},
};

static const struct cli_command command = {
	.name = "weft-wire",
	.usage =
		"usage: weft-wire [EAL ARGUMENTS --] [options] [PORT PORT]...\n"
		"\n"
		"Bridges DPDK ports in pairs, as a bad network would: each direction of a pair is "
		"a link with a rate,\n"
		"queue, delay and faults of its own, which can change while frames pass; without a "
		"LINK it is perfect.\n"
		"Without PORTs it takes all ports, in their order. It ends with a signal or the "
		"command quit,\n"
		"and prints counters.\n"
		"\n",
	.options = table,
	.after =
		{"\nCommands, one a line on standard input:\n", command_help,
		 "\nLINK is a list of items, and changes those that it names:\n", sim_link_help,
		 "\n"
		 "Exit code: 0 ended by quit, 1 could not start or write the trace, 2 wrong usage, "
		 "128+N ended by signal N.\n"
		 "\n"
		 "1 % loss and 1 ms between two programs, each with a memif port of "
		 "role=client:\n"
		 "  weft-wire --no-pci --vdev=net_memif0,role=server,socket=/run/a \\\n"
		 "            --vdev=net_memif1,role=server,socket=/run/b -- -l "
		 "loss=1%,delay=1ms\n"},
};

static int parse(struct options *o, int argc, char **argv)
{
	int ret = cli_options_parse(&command, o, argc, argv);

	o->wire.seed = o->seed;
	o->wire.mtu = (uint16_t)o->mtu;
	o->wire.mbufs = (uint32_t)o->mbufs;
	o->wire.sleep_us = (unsigned int)o->sleep_us;
	o->ports = argv + optind;
	o->num_ports = (unsigned int)(argc - optind);
	return ret;
}

static void print_all(struct wire *w, void (*report)(const struct wire *w, char *buf, size_t len),
		      FILE *out)
{
	static char text[65536];

	rte_ticketlock_lock(&w->lock);
	report(w, text, sizeof(text));
	rte_ticketlock_unlock(&w->lock);
	fputs(text, out);
	fflush(out);
}

static int bridge(struct options *o)
{
	struct wire *w = &o->wire;
	unsigned int i;
	int ret = wire_ports_open(w, o->ports, o->num_ports);

	if (!ret)
		ret = wire_bridge_init(w);
	if (!ret && o->trace)
		ret = wire_trace_open(w, o->trace);
	if (!ret) {
		for (i = 0; i < 2 * w->num_pairs; i++)
			w->pair[i / 2].dir[i % 2].link = o->link[i % 2];
		register_telemetry(w);
		print_all(w, report_links, stdout);
		wire_bridge_run(w, read_commands);
		wire_ports_stop(w);
		print_all(w, report_counters, stdout);
		if (o->trace)
			ret = wire_trace_close(w, o->trace);
	}
	return ret;
}

static int run(struct options *o, int eal_count, char **eal_words)
{
	struct weft_config *config;
	int ret = weft_config_read(&config);

	if (ret) {
		cli_error("the configuration is invalid: %s; weft-info -c lists all variables",
			  weft_strerror(ret));
		return APP_USAGE;
	}
	ret = eal_start(eal_count, eal_words, config, -1);
	weft_config_release(config);
	if (!ret)
		ret = bridge(o);
	if (!ret && sys_signal())
		ret = 128 + sys_signal();
	return ret;
}

int main(int argc, char **argv)
{
	static struct options o = {.seed = 1, .mbufs = 16000};
	char **eal_words;
	int eal_count, ret;

	cli_program = "weft-wire";
	eal_count = weft_eal_split_args(&argc, &argv, &eal_words);
	sys_catch_signals();
	ret = parse(&o, argc, argv);
	if (!ret)
		ret = run(&o, eal_count, eal_words);
	/* Telemetry callbacks may still run, so the links stay until the process ends. */
	return eal_exit(ret < 0 ? APP_OK : ret);
}
