/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Figures of the raw lane on networks that choke, in virtual time:
 *
 *	sim_net_bench SCENARIO [SEEDS] [NAME=VALUE...]
 *
 * Lower-case names change the scenario, upper-case ones are WEFT_ variables without their prefix.
 *	sim_net_bench matrix [SEED [ROWS | most=N]]
 *
 * One line for each seed, then median, least and greatest.
 */

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net_bench.h"

/* ---- scenarios ------------------------------------------------------------------------------ */

#define QUEUE 150000

static const struct net_scenario scenarios[] = {
	{"one",
	 "one flow from a faster port through a queue of 8 BDP",
	 {.host_rate = 40 * SIM_GBIT, .path = {.queue_bytes = 100000}, .bystander = true}},
	{"incast8",
	 "8 senders to one, queue of 150 kB",
	 {.senders = 8, .path = {.queue_bytes = QUEUE}, .bystander = true}},
	{"incast32",
	 "32 senders to one",
	 {.senders = 32, .path = {.queue_bytes = QUEUE}, .bystander = true}},
	{"incast64",
	 "64 senders to one",
	 {.senders = 64, .path = {.queue_bytes = QUEUE}, .bystander = true}},
	{"incast420",
	 "420 senders to one",
	 {.senders = 420, .path = {.queue_bytes = QUEUE}, .bystander = true}},
	{"bystander",
	 "nobody but the bystander: an idle network",
	 {.bystander = true},
	 .idle = true},
	{"long25",
	 "25 Gb/s x 1 ms",
	 {.rate = 25 * SIM_GBIT,
	  .rtt_ns = SIM_MS,
	  .ring = 4096,
	  .window = 16,
	  .size = 1 << 20,
	  .start_ns = 20 * SIM_MS}},
	{"long100",
	 "100 Gb/s x 20 us",
	 {.rate = 100 * SIM_GBIT,
	  .rtt_ns = 20 * SIM_US,
	  .ring = 4096,
	  .window = 16,
	  .size = 1 << 20,
	  .mtu = 9000,
	  .start_ns = 400 * SIM_US,
	  .run_ns = 20 * SIM_MS}},
	{"loss",
	 "0.1 % of frames lost at random, RTT 0.1 ms",
	 {.rate = SIM_GBIT,
	  .rtt_ns = 100 * SIM_US,
	  .path = {.loss = 0.001},
	  .back = {.loss = 0.001}}},
	{"cap",
	 "a flow may have a fifth of the link",
	 {.path = {.flow_rate = 2 * SIM_GBIT, .queue_bytes = QUEUE}}},
	{"ecmp",
	 "four equal paths, of which one loses all from 20 ms on; figures from 50 ms later on",
	 {.trunks = 4,
	  .paths = 4,
	  .path = {.queue_bytes = QUEUE},
	  .start_ns = 70 * SIM_MS,
	  .run_ns = 120 * SIM_MS},
	 .hole_ns = 20 * SIM_MS},
	{"request",
	 "request and answer of 4 KiB, RTT 0.1 ms, 0.1 % lost each way",
	 {.request = true,
	  .size = 4096,
	  .rtt_ns = 100 * SIM_US,
	  .path = {.loss = 0.001},
	  .back = {.loss = 0.001},
	  .run_ns = 5 * SIM_S}},
	{"cubic",
	 "beside one Cubic flow: 200 Mb/s, 40 kB",
	 {.rate = SIM_GBIT / 5,
	  .host_rate = SIM_GBIT,
	  .rtt_ns = 200 * SIM_US,
	  .trunks = 1,
	  .path = {.queue_bytes = 40000},
	  .start_ns = SIM_S,
	  .run_ns = 5 * SIM_S},
	 .beside = &tcp_cubic},
	{"bbr",
	 "beside one BBR flow: 200 Mb/s, 40 kB",
	 {.rate = SIM_GBIT / 5,
	  .host_rate = SIM_GBIT,
	  .rtt_ns = 200 * SIM_US,
	  .trunks = 1,
	  .path = {.queue_bytes = 40000},
	  .start_ns = SIM_S,
	  .run_ns = 5 * SIM_S},
	 .beside = &tcp_bbr},
	{NULL, NULL, {0}},
};

/* ---- arguments ------------------------------------------------------------------------------ */

static void usage(void)
{
	const struct net_scenario *s;

	fprintf(stderr, "usage: sim_net_bench SCENARIO [SEEDS] [NAME=VALUE...]\n"
			"       sim_net_bench matrix [SEED [ROWS | most=N]]: networks of all "
			"kinds,\n"
			"       of which at most N may miss a goal; ROWS: one row for each seed "
			"from SEED on,\n"
			"       all combinations in 35,280 seeds\n"
			"One line for each of SEEDS (5) runs, then median, least and greatest. "
			"Scenarios:\n");
	for (s = scenarios; s->name; s++)
		fprintf(stderr, "  %-10s %s\n", s->name, s->what);
	fprintf(stderr,
		"Lower-case names: seed (first), ms (of the run), start (ms reported apart), n "
		"(senders),\n"
		"size (bytes), window (messages of a sender), mtu, rate, host_rate, rtt, ring, "
		"paths, trunks,\n"
		"pause_least and pause (bounds of the times for which hosts are off their cores),\n"
		"all_pause (yes: any host, else the receiver or the first sender),\n"
		"rx_pause (yes: the receiver alone),\n"
		"slow (the receiver polls once in this time), later (from one sender's begin to "
		"the next's,\nand from that of the flow beside to that of by),\n"
		"hole (time of a path's end), beside (cubic, bbr,\n"
		"none), by (the same: a TCP flow in the senders' place), bystander (yes, no), path "
		"and back\n"
		"(link texts, as path=loss=1%%,ecn=30k).\n"
		"Upper-case names are WEFT_ variables without the prefix, as WINDOW=64k. Link "
		"texts:\n"
		"%s",
		sim_link_help);
	exit(2);
}

static void bad(const char *name, const char *value, const char *why)
{
	fprintf(stderr, "sim_net_bench: %s=%s: %s\n", name, value, why);
	exit(2);
}

/* One number in the units of link texts: @p key of a link tells which. */
static uint64_t value_of(const char *name, const char *key, const char *value)
{
	struct sim_link l = {0};
	char text[100], why[300];

	snprintf(text, sizeof(text), "%s=%s", key, value);
	if (sim_link_parse(text, &l, why, sizeof(why)))
		bad(name, value, why);
	return l.rate + l.delay_ns + l.police_pps;
}

static void link_text(const char *name, const char *value, struct net_conf *c, struct sim_link *l)
{
	uint64_t rate = l->rate;
	char why[300];

	/* A queue needs a rate; the stage's is put in later. */
	l->rate = c->rate ? c->rate : 10 * SIM_GBIT;
	if (sim_link_parse(value, l, why, sizeof(why)))
		bad(name, value, why);
	l->rate = rate;
}

static const struct tcp_algorithm *algorithm(const char *name, const char *value)
{
	if (!strcmp(value, "none"))
		return NULL;
	if (!strcmp(value, tcp_cubic.name))
		return &tcp_cubic;
	if (!strcmp(value, tcp_bbr.name))
		return &tcp_bbr;
	bad(name, value, "cubic, bbr or none");
	return NULL;
}

struct setting {
	const char *name, *unit; /* unit: the item of a link text that is like it */
	size_t offset;
	bool wide;
};

#define SET(name, unit, field)                                     \
	{                                                          \
		name, unit, offsetof(struct net_conf, field),      \
			sizeof(((struct net_conf *)0)->field) == 8 \
	}

static bool plain_setting(struct net_conf *c, const char *name, const char *value)
{
	static const struct setting settings[] = {
		SET("n", "pps", senders),
		SET("size", "pps", size),
		SET("window", "pps", window),
		SET("mtu", "pps", mtu),
		SET("rate", "rate", rate),
		SET("host_rate", "rate", host_rate),
		SET("rtt", "delay", rtt_ns),
		SET("ring", "pps", ring),
		SET("paths", "pps", paths),
		SET("trunks", "pps", trunks),
		SET("slow", "delay", slow_ns),
		SET("later", "delay", later_ns),
		SET("pause_least", "delay", pause_least_ns),
		SET("pause", "delay", pause_most_ns),
	};
	uint64_t x;
	size_t i;

	for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (strcmp(settings[i].name, name) != 0)
			continue;
		x = value_of(name, settings[i].unit, value);
		if (settings[i].wide)
			memcpy((char *)c + settings[i].offset, &x, sizeof(x));
		else
			memcpy((char *)c + settings[i].offset, &(unsigned int){(unsigned int)x},
			       sizeof(unsigned int));
		return true;
	}
	return false;
}

static void setting(struct net_run *r, const char *name, const char *value)
{
	struct net_conf *c = &r->scenario.conf;

	if (plain_setting(c, name, value))
		return;
	if (!strcmp(name, "seed"))
		r->seed = value_of(name, "pps", value);
	else if (!strcmp(name, "ms"))
		c->run_ns = value_of(name, "pps", value) * SIM_MS;
	else if (!strcmp(name, "start"))
		c->start_ns = value_of(name, "pps", value) * SIM_MS;
	else if (!strcmp(name, "hole"))
		r->scenario.hole_ns = value_of(name, "delay", value);
	else if (!strcmp(name, "beside"))
		r->scenario.beside = algorithm(name, value);
	else if (!strcmp(name, "by"))
		r->scenario.instead = algorithm(name, value);
	else if (!strcmp(name, "bystander"))
		c->bystander = !strcmp(value, "yes");
	else if (!strcmp(name, "all_pause"))
		c->all_pause = !strcmp(value, "yes");
	else if (!strcmp(name, "rx_pause"))
		c->rx_pause = !strcmp(value, "yes");
	else if (!strcmp(name, "path"))
		link_text(name, value, c, &c->path);
	else if (!strcmp(name, "back"))
		link_text(name, value, c, &c->back);
	else
		bad(name, value, "no such name");
}

static void parse(struct net_run *r, int argc, char **argv)
{
	const struct net_scenario *s;
	static char config[1000];
	char *value;
	int i;

	for (s = scenarios; argc > 1 && s->name && strcmp(s->name, argv[1]) != 0; s++)
		;
	if (argc < 2 || !s->name)
		usage();
	r->scenario = *s;
	for (i = 2; i < argc; i++) {
		value = strchr(argv[i], '=');
		if (!value && isdigit((unsigned char)argv[i][0])) {
			r->seeds = (unsigned int)strtoul(argv[i], NULL, 10);
			continue;
		}
		if (!value)
			usage();
		if (isupper((unsigned char)argv[i][0])) {
			snprintf(config + strlen(config), sizeof(config) - strlen(config), "%s ",
				 argv[i]);
			continue;
		}
		*value++ = '\0';
		setting(r, argv[i], value);
	}
	if (config[0])
		r->scenario.conf.config = config;
	/* A flow of TCP has ports of its own, so a trunk is the one link that the flows share. */
	if ((r->scenario.beside || r->scenario.instead) && !r->scenario.conf.trunks)
		r->scenario.conf.trunks = 1;
	if (!r->seeds || r->seeds > NET_SEEDS)
		usage();
}

int main(int argc, char **argv)
{
	struct net_run r = {.seeds = 5, .seed = 1};

	if (argc > 3 && !strcmp(argv[1], "matrix") && !strncmp(argv[3], "most=", 5))
		return net_matrix_all(strtoull(argv[2], NULL, 10),
				      (unsigned int)strtoul(argv[3] + 5, NULL, 10));
	if (argc > 3 && !strcmp(argv[1], "matrix"))
		return net_matrix_some(strtoull(argv[2], NULL, 10),
				       (unsigned int)strtoul(argv[3], NULL, 10));
	if (argc > 1 && !strcmp(argv[1], "matrix"))
		return net_matrix_all(argc > 2 ? strtoull(argv[2], NULL, 10) : 1, 0);
	parse(&r, argc, argv);
	return net_run_all(&r);
}
