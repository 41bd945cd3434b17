/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim_net_bench matrix: a flow on networks of all kinds, alone and next to others. Each two values
 * of two factors meet in at least one row (a pairwise covering set, made greedily).
 *
 * With a number of rows: that many of all combinations, in a fixed random order. A missed goal of
 * the share is measured in the same place: what BBR gets alone, a second Cubic flow next to TCP,
 * one flow of Weft in place of two.
 */

#include <stdio.h>
#include <string.h>

#include "net_bench.h"
#include "net_stage_priv.h"
#include "sim_priv.h"

#define RATE (SIM_GBIT / 5)
#define FACTORS 8
#define VALUES 7
#define ROWS 100
#define COMBINATIONS 35280        /* the product of values[] */
#define JITTER_MOST (20 * SIM_MS) /* more would need more messages under way than there are */

enum factor { JITTER, LOSS, RTT, QUEUE, BESIDE, PAUSES, SIZE, MTU };

static const unsigned int values[FACTORS] = {7, 5, 7, 3, 4, 3, 2, 2};

/* Of the round trip, each way; the last three as of vCPUs: frames that wait leave together. */
static const double jitters[] = {0, 0.5, 2, 5, 0.5, 2, 5};
#define TURNS 4
static const double losses[] = {0, 1e-4, 1e-3, 1e-2, 1e-2}; /* the last one in bursts of 10 */
static const uint64_t rtts[] = {40 * SIM_US, 200 * SIM_US, SIM_MS,      2 * SIM_MS,
				10 * SIM_MS, 50 * SIM_MS,  150 * SIM_MS};
static const double queues[] = {0.25, 1, 8}; /* of the bandwidth-delay product */
static const struct {
	uint64_t least, most;
	const char *name;
} pauses[] = {
	{0, 0, "-"},
	{100 * SIM_US, 4 * SIM_MS, "4ms"},
	{5 * SIM_MS, 20 * SIM_MS, "20ms"},
};
static const uint64_t sizes[] = {65536, 1 << 20};
static const unsigned int mtus[] = {1500, 9000};
/* Payload of a full link. */
static const double payload[] = {0.915, 0.985};

enum beside { ALONE, BESIDE_CUBIC, BESIDE_BBR, BESIDE_WEFT };

static const char *const beside_names[] = {"-", "cubic", "bbr", "weft"};

struct row {
	uint8_t value[FACTORS];
};

/* ---- the covering set ----------------------------------------------------------------------- */

typedef bool pairs[FACTORS][VALUES][FACTORS][VALUES];

static unsigned int uncovered(pairs met, const struct row *r, unsigned int f, unsigned int upto)
{
	unsigned int n = 0;

	for (unsigned int g = 0; g < upto; g++)
		n += g != f && !met[f][r->value[f]][g][r->value[g]];
	return n;
}

static void cover(pairs met, const struct row *r)
{
	for (unsigned int f = 0; f < FACTORS; f++)
		for (unsigned int g = 0; g < FACTORS; g++)
			met[f][r->value[f]][g][r->value[g]] = true;
}

/* Begins with the pair (@p f, @p g), and gives each other factor the value that covers most. */
static struct row with_pair(pairs met, unsigned int f, unsigned int i, unsigned int g,
			    unsigned int k)
{
	struct row r = {{0}};
	unsigned int best, n;
	uint8_t at;

	r.value[f] = (uint8_t)i;
	r.value[g] = (uint8_t)k;
	for (unsigned int h = 0; h < FACTORS; h++) {
		if (h == f || h == g)
			continue;
		best = 0;
		at = 0;
		for (unsigned int v = 0; v < values[h]; v++) {
			r.value[h] = (uint8_t)v;
			n = uncovered(met, &r, h, h) + !met[h][v][f][i] + !met[h][v][g][k];
			if (n > best) {
				best = n;
				at = (uint8_t)v;
			}
		}
		r.value[h] = at;
	}
	return r;
}

static unsigned int make_rows(struct row *rows)
{
	static pairs met;
	unsigned int n = 0;

	memset(met, 0, sizeof(met));
	for (unsigned int f = 0; f < FACTORS; f++)
		for (unsigned int i = 0; i < values[f]; i++)
			for (unsigned int g = f + 1; g < FACTORS; g++)
				for (unsigned int k = 0; k < values[g] && n < ROWS; k++) {
					if (met[f][i][g][k])
						continue;
					rows[n] = with_pair(met, f, i, g, k);
					cover(met, &rows[n++]);
				}
	return n;
}

static unsigned int violated; /* rows in which a message was lost, late or wrong */

/* ---- a row ---------------------------------------------------------------------------------- */

static struct net_conf conf_of(const struct row *r)
{
	uint64_t rtt = rtts[r->value[RTT]],
		 jitter = (uint64_t)(jitters[r->value[JITTER]] * (double)rtt);
	double bdp = (double)RATE / 8 * (double)rtt * 1e-9, loss = losses[r->value[LOSS]];
	double least = 4 * (mtus[r->value[MTU]] + 38.0), queue = queues[r->value[QUEUE]] * bdp;
	struct net_conf c = {
		.rate = RATE,
		.host_rate = 10 * SIM_GBIT,
		.rtt_ns = rtt,
		.size = sizes[r->value[SIZE]],
		.window = r->value[SIZE] ? 16 : 64,
		.mtu = mtus[r->value[MTU]],
		.ring = 4096,
		.pause_least_ns = pauses[r->value[PAUSES]].least,
		.pause_most_ns = pauses[r->value[PAUSES]].most,
		.start_ns = 200 * SIM_MS + 40 * rtt,
		.run_ns = 600 * SIM_MS + 70 * rtt,
		.config = "CC=delay",
	};

	jitter = jitter < JITTER_MOST ? jitter : JITTER_MOST;
	if (r->value[JITTER] < TURNS)
		c.path.jitter_ns = jitter;
	else
		c.path.turn_ns = jitter;
	c.path.queue_bytes = (uint32_t)(queue > least ? queue : least);
	if (r->value[LOSS] == 4) {
		c.path.bursts = loss;
		c.path.burst_len = 10;
	} else {
		c.path.loss = loss;
	}
	c.back = c.path;
	c.back.queue_bytes = 0;
	if (r->value[BESIDE] == ALONE)
		return c;
	/* Flows of TCP need a hundred round trips and more to share a link. */
	c.start_ns = SIM_S + 100 * rtt;
	c.run_ns = 2 * c.start_ns;
	if (r->value[BESIDE] == BESIDE_WEFT)
		c.senders = 2;
	else
		c.trunks = 1;
	return c;
}

/* Twice the target, in bytes, and what two full frames take. */
static double queue_most(const struct net_conf *c)
{
	double t = 1.5 * (double)c->rtt_ns, frames = 2 * (c->mtu + 38.0);

	return 2 * ((t < 1e6 ? t : 1e6) * 1e-9 * RATE / 8 + frames);
}

static unsigned int doubted(const struct net_stage *s)
{
	return (unsigned int)(sim_node_counter(s->node, "conn.suspect") +
			      sim_node_counter(s->sender[0].node, "conn.suspect"));
}

struct result {
	struct net_figures f;
	double share;         /* of the link, of the senders or of the flow in their place */
	unsigned int suspect; /* times */
	char why[300];        /* what was violated; "" = nothing */
};

static struct tcp_flow *flow_open(struct net_stage *s, const struct tcp_algorithm *a)
{
	return a ? tcp_flow_create(net_stage_sim(s), a, net_stage_more(s, false),
				   net_stage_more(s, true))
		 : NULL;
}

/* @p instead: a flow of TCP in the place of the senders, or NULL. */
static struct result measure(const struct net_conf *c, uint64_t seed,
			     const struct tcp_algorithm *beside,
			     const struct tcp_algorithm *instead)
{
	struct net_stage *s = net_stage_open(seed, c);
	struct tcp_flow *other = flow_open(s, beside), *own = flow_open(s, instead);
	struct result m = {.share = 0};
	const char *why;
	uint64_t before;

	net_stage_start(s, own != NULL);
	if (other)
		tcp_flow_start(other);
	if (own)
		tcp_flow_start(own);
	net_stage_run(s, c->start_ns);
	net_stage_mark(s);
	s->port->down.state.max_queue = 0;
	before = own ? tcp_flow_bytes(own) : 0;
	net_stage_run(s, c->run_ns);
	m.f = net_stage_figures(s);
	m.share = own ? (double)(tcp_flow_bytes(own) - before) * 8 / m.f.seconds / RATE
		      : m.f.bits / RATE;
	m.suspect = doubted(s);
	if (other)
		tcp_flow_stop(other);
	if (own)
		tcp_flow_stop(own);
	why = net_stage_close(s);
	snprintf(m.why, sizeof(m.why), "%s", why ? why : "");
	tcp_flow_free(other);
	tcp_flow_free(own);
	return m;
}

static const struct tcp_algorithm *flow_beside(const struct row *r)
{
	return r->value[BESIDE] == BESIDE_CUBIC ? &tcp_cubic
	       : r->value[BESIDE] == BESIDE_BBR ? &tcp_bbr
						: NULL;
}

/* The share that the row's flows get at least; @p full: payload of a full link. */
static double wanted(const struct row *r, struct net_conf c, uint64_t seed, double full)
{
	double other;

	switch (r->value[BESIDE]) {
	case ALONE:
		other = measure(&c, seed, NULL, &tcp_bbr).share;
		return other >= 0.9 * payload[0] ? 0.9 * full : other;
	case BESIDE_WEFT:
		c.senders = 1;
		return 0.9 * measure(&c, seed, NULL, NULL).share;
	default:
		other = measure(&c, seed, flow_beside(r), &tcp_cubic).share;
		return other < 0.5 * full ? other : 0.5 * full;
	}
}

/* @return the missed goals as text; "" = none. @p goals: wanted() has that of the share */
static const char *missed(const struct row *r, const struct net_conf *c, const struct result *m,
			  bool goals)
{
	static char text[200];
	bool clean = r->value[LOSS] == 0 && r->value[PAUSES] == 0,
	     alone = r->value[BESIDE] == ALONE;

	text[0] = '\0';
	if (!goals && alone && clean && m->f.bits / RATE < 0.9 * payload[r->value[MTU]])
		strcat(text, " share");
	if (alone && clean && r->value[JITTER] == 0 && m->f.queue > queue_most(c))
		strcat(text, " queue");
	if (alone && clean && m->f.dropped == 0 && m->f.again > 0)
		strcat(text, " again");
	if (r->value[BESIDE] == BESIDE_WEFT && m->f.jain < 0.95)
		strcat(text, " jain");
	if (m->suspect)
		strcat(text, " suspect");
	return text;
}

/* @p goals: a share that is too small is compared with that of other flows in its place. */
static bool run_row(const struct row *r, uint64_t seed, bool goals)
{
	static const char *const loss[] = {"0", "1e-4", "1e-3", "1e-2", "burst"};
	struct net_conf c = conf_of(r);
	double full = payload[r->value[MTU]], want = 0;
	struct result m = measure(&c, seed, flow_beside(r), NULL);
	bool tcp = flow_beside(r) != NULL;
	const char *miss = missed(r, &c, &m, goals);

	if (goals && m.share < (tcp ? 0.5 : 0.9) * full)
		want = wanted(r, c, seed, full);
	printf("%6llu %8.2f %5.1f%c %6s %6.2f %6s %5s %5u %6s %6.1f %6.2f %6.2f %8.1f %3u",
	       (unsigned long long)seed, (double)c.rtt_ns * 1e-6, jitters[r->value[JITTER]],
	       r->value[JITTER] < TURNS ? ' ' : 't', loss[r->value[LOSS]], queues[r->value[QUEUE]],
	       pauses[r->value[PAUSES]].name, r->value[SIZE] ? "1M" : "64k", c.mtu,
	       beside_names[r->value[BESIDE]], m.share * 100 / full, m.f.dropped * 100,
	       m.f.again * 100, m.f.queue * 1e-3, m.suspect);
	if (r->value[BESIDE] == BESIDE_WEFT)
		printf("  Jain %.3f", m.f.jain);
	if (want > 0)
		printf("  wanted %.1f", want * 100 / full);
	if (miss[0] || m.share < want)
		printf("  missed:%s%s", m.share < want ? " goal" : "", miss);
	printf("\n");
	if (m.why[0])
		printf("       violated: %s\n", m.why);
	violated += m.why[0] != '\0';
	fflush(stdout);
	return m.why[0] || miss[0] || m.share < want;
}

static void print_head(unsigned int rows)
{
	printf("%u rows of 200 Mb/s; jitter in round trips each way, 20 ms at most, in order; "
	       "t: in turns; queue in BDP\n"
	       "%6s %8s %6s %6s %6s %6s %5s %5s %6s %6s %6s %6s %8s %3s\n",
	       rows, "seed", "rtt/ms", "jitter", "loss", "queue", "pauses", "size", "mtu", "beside",
	       "good%", "drop%", "again%", "queue/k", "sus");
}

int net_matrix_all(uint64_t seed, unsigned int most)
{
	static struct row rows[ROWS];
	unsigned int n = make_rows(rows), failed = 0;

	print_head(n);
	for (unsigned int k = 0; k < n; k++)
		failed += run_row(&rows[k], seed, false);
	printf("%u of %u runs missed a goal, of at most %u\n", failed, n, most);
	return failed > most || violated != 0;
}

/* A fixed random order: each part of it is a random sample, and two parts have none in common. */
static void make_order(uint16_t *order)
{
	struct sim_rng rng = sim_rng_make(1, 0);

	for (unsigned int i = 0, k; i < COMBINATIONS; i++) {
		k = (unsigned int)sim_below(&rng, i + 1);
		order[i] = order[k];
		order[k] = (uint16_t)i;
	}
}

static struct row combination(unsigned int number)
{
	struct row r;

	for (unsigned int f = 0; f < FACTORS; f++) {
		r.value[f] = (uint8_t)(number % values[f]);
		number /= values[f];
	}
	return r;
}

/* The rows of COMBINATIONS seeds, one after the other, are all combinations. */
int net_matrix_some(uint64_t seed, unsigned int n)
{
	static uint16_t order[COMBINATIONS];
	unsigned int failed = 0;
	struct row r;

	make_order(order);
	print_head(n);
	for (unsigned int k = 0; k < n; k++) {
		r = combination(order[(seed + k) % COMBINATIONS]);
		failed += run_row(&r, seed + k, true);
	}
	printf("%u of %u runs missed a goal\n", failed, n);
	return failed != 0;
}
