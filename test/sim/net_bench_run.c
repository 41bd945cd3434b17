/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The runs of sim_net_bench, and its table.
 */

#include <stdlib.h>
#include <string.h>

#include "net_bench.h"

/* ---- columns -------------------------------------------------------------------------------- */

enum column {
	GOODPUT,
	OF_LINK,
	JAIN,
	DROPPED,
	AGAIN,
	MARKED,
	QUEUE,
	START_GOODPUT,
	START_DROPPED,
	BY_P50,
	BY_P99,
	MSG_P50,
	MSG_P99,
	MSG_P999,
	MSG_P9999,
	MSG_MAX,
	BESIDE,
	COLUMNS,
};

static const struct {
	const char *name;
	int decimals;
	double factor; /* of the figure, for human readers */
} columns[COLUMNS] = {
	[GOODPUT] = {"goodput%", 1, 100},
	[OF_LINK] = {"link%", 1, 100},
	[JAIN] = {"Jain", 3, 1},
	[DROPPED] = {"dropped%", 2, 100},
	[AGAIN] = {"again%", 2, 100},
	[MARKED] = {"marked%", 1, 100},
	[QUEUE] = {"queue/k", 1, 1e-3},
	[START_GOODPUT] = {"start:good%", 1, 100},
	[START_DROPPED] = {"drop%", 2, 100},
	[BY_P50] = {"by50/us", 1, 1e-3},
	[BY_P99] = {"by99/us", 1, 1e-3},
	[MSG_P50] = {"msg50/us", 1, 1e-3},
	[MSG_P99] = {"msg99/us", 1, 1e-3},
	[MSG_P999] = {"msg99.9", 1, 1e-3},
	[MSG_P9999] = {"msg99.99", 1, 1e-3},
	[MSG_MAX] = {"max/us", 1, 1e-3},
	[BESIDE] = {"beside%", 1, 100},
};

static bool shown(const struct net_run *r, enum column c)
{
	const struct net_scenario *s = &r->scenario;

	switch (c) {
	case BY_P50:
	case BY_P99:
		return s->conf.bystander;
	case MSG_P999:
	case MSG_P9999:
		return s->conf.request;
	case BESIDE:
		return s->beside;
	case JAIN:
		return s->conf.senders > 1;
	case MARKED:
		return s->conf.path.ecn_bytes;
	default:
		return true;
	}
}

static void print_header(const struct net_run *r)
{
	enum column c;

	printf("%6s", "seed");
	for (c = 0; c < COLUMNS; c++)
		if (shown(r, c))
			printf(" %7s", columns[c].name);
	printf("\n");
}

static void print_row(const struct net_run *r, const char *name, const double *v)
{
	int width;
	enum column c;

	printf("%6s", name);
	for (c = 0; c < COLUMNS; c++) {
		if (!shown(r, c))
			continue;
		width = (int)strlen(columns[c].name);
		printf(" %*.*f", width < 7 ? 7 : width, columns[c].decimals,
		       v[c] * columns[c].factor);
	}
	printf("\n");
	fflush(stdout);
}

/* ---- runs ----------------------------------------------------------------------------------- */

static void hole(void *arg)
{
	struct net_stage *s = arg;

	sim_trunk_link(net_stage_trunk(s, 0), net_stage_net(s, false))->blackhole = true;
	sim_trunk_link(net_stage_trunk(s, 0), net_stage_net(s, true))->blackhole = true;
}

static double alone_bits(const struct net_run *r)
{
	struct net_conf c = r->scenario.conf;
	struct net_figures f;
	struct net_stage *s;
	const char *why;

	if (r->scenario.idle)
		return 1;
	c.senders = 1;
	c.path = c.back = (struct sim_link){0};
	c.trunks = 0;
	c.slow_ns = 0;
	c.bystander = false;
	c.start_ns = c.start_ns ? c.start_ns : 5 * SIM_MS;
	c.run_ns = c.start_ns + 50 * SIM_MS;
	s = net_stage_open(r->seed, &c);
	net_stage_start(s, false);
	net_stage_run(s, c.start_ns);
	net_stage_mark(s);
	net_stage_run(s, c.run_ns);
	f = net_stage_figures(s);
	why = net_stage_close(s);
	if (why) {
		printf("alone: %s\n", why);
		exit(1);
	}
	return f.bits;
}

static void fill(const struct net_run *r, const struct net_figures *start,
		 const struct net_figures *f, double alone, double *v)
{
	double rate = r->scenario.conf.rate ? (double)r->scenario.conf.rate : 10e9;

	v[GOODPUT] = f->bits / alone;
	v[OF_LINK] = f->bits / rate;
	v[JAIN] = f->jain;
	v[DROPPED] = f->dropped;
	v[AGAIN] = f->again;
	v[MARKED] = f->marked;
	v[QUEUE] = f->queue;
	v[START_GOODPUT] = start->bits / alone;
	v[START_DROPPED] = start->dropped;
	v[BY_P50] = (double)f->bystander_p50;
	v[BY_P99] = (double)f->bystander_p99;
	v[MSG_P50] = (double)f->message_p50;
	v[MSG_P99] = (double)f->message_p99;
	v[MSG_P999] = (double)f->message_p999;
	v[MSG_P9999] = (double)f->message_p9999;
	v[MSG_MAX] = (double)f->message_max;
}

/* Flows of TCP: beside the senders, and in their place. */
struct flows {
	struct tcp_flow *beside, *instead;
	uint64_t beside_bytes, instead_bytes;
};

static void flows_open(struct flows *t, const struct net_scenario *sc, struct net_stage *s)
{
	*t = (struct flows){0};
	if (sc->instead)
		t->instead = tcp_flow_create(net_stage_sim(s), sc->instead,
					     net_stage_more(s, false), net_stage_more(s, true));
	if (sc->beside)
		t->beside = tcp_flow_create(net_stage_sim(s), sc->beside, net_stage_more(s, false),
					    net_stage_more(s, true));
}

static void start_flow(void *arg)
{
	tcp_flow_start(arg);
}

static void flows_start(const struct flows *t, const struct net_scenario *sc, struct net_stage *s)
{
	struct sim *sim = net_stage_sim(s);

	if (t->instead && sc->conf.later_ns)
		sim_at(sim, sim_now(sim) + sc->conf.later_ns, start_flow, t->instead);
	else if (t->instead)
		tcp_flow_start(t->instead);
	if (t->beside)
		tcp_flow_start(t->beside);
}

static void flows_mark(struct flows *t)
{
	t->beside_bytes = t->beside ? tcp_flow_bytes(t->beside) : 0;
	t->instead_bytes = t->instead ? tcp_flow_bytes(t->instead) : 0;
}

static void flows_end(const struct flows *t, const struct net_run *r, double seconds, double alone,
		      double *v)
{
	double rate = r->scenario.conf.rate ? (double)r->scenario.conf.rate : 10e9;
	double bits;

	if (t->beside) {
		bits = (double)(tcp_flow_bytes(t->beside) - t->beside_bytes) * 8 / seconds;
		v[BESIDE] = bits / rate;
		tcp_flow_stop(t->beside);
	}
	if (t->instead) {
		bits = (double)(tcp_flow_bytes(t->instead) - t->instead_bytes) * 8 / seconds;
		v[GOODPUT] = bits / alone;
		v[OF_LINK] = bits / rate;
		tcp_flow_stop(t->instead);
	}
}

static const char *one(const struct net_run *r, uint64_t seed, double alone, double *v)
{
	const struct net_scenario *sc = &r->scenario;
	struct net_stage *s = net_stage_open(seed, &sc->conf);
	struct net_figures start, f;
	uint64_t begin = sim_now(net_stage_sim(s));
	struct flows t;
	const char *why;

	flows_open(&t, sc, s);
	if (sc->hole_ns && sc->conf.trunks)
		sim_at(net_stage_sim(s), begin + sc->hole_ns, hole, s);
	net_stage_start(s, sc->idle || sc->instead);
	flows_start(&t, sc, s);
	net_stage_run(s, sc->conf.start_ns ? sc->conf.start_ns : 5 * SIM_MS);
	start = net_stage_figures(s);
	net_stage_mark(s);
	flows_mark(&t);
	net_stage_run(s, sc->conf.run_ns ? sc->conf.run_ns : 100 * SIM_MS);
	f = net_stage_figures(s);
	fill(r, &start, &f, alone, v);
	flows_end(&t, r, f.seconds, alone, v);
	why = net_stage_close(s);
	tcp_flow_free(t.beside);
	tcp_flow_free(t.instead);
	return why;
}

static void summary(const struct net_run *r, double (*all)[COLUMNS], unsigned int n)
{
	double median[COLUMNS], min[COLUMNS], max[COLUMNS], v[NET_SEEDS];
	struct net_spread s;
	unsigned int i;
	enum column c;

	for (c = 0; c < COLUMNS; c++) {
		for (i = 0; i < n; i++)
			v[i] = all[i][c];
		s = net_spread(v, n);
		median[c] = s.median;
		min[c] = s.min;
		max[c] = s.max;
	}
	print_row(r, "median", median);
	print_row(r, "least", min);
	print_row(r, "most", max);
}

int net_run_all(const struct net_run *r)
{
	static double all[NET_SEEDS][COLUMNS];
	double alone = alone_bits(r);
	unsigned int i, failed = 0;
	const char *why;
	char name[24];

	printf("%s: %s; one sender alone: %.3f Gb/s of payload; %s\n", r->scenario.name,
	       r->scenario.what, alone / 1e9,
	       r->scenario.conf.config ? r->scenario.conf.config : "default settings");
	print_header(r);
	for (i = 0; i < r->seeds; i++) {
		snprintf(name, sizeof(name), "%llu", (unsigned long long)(r->seed + i));
		why = one(r, r->seed + i, alone, all[i]);
		print_row(r, name, all[i]);
		if (why) {
			failed++;
			printf("       violated: %s\n", why);
		}
	}
	summary(r, all, r->seeds);
	return failed != 0;
}
