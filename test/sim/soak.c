/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Many seeds of mixed traffic, or (kind calls) of random sequences of calls, one after the other:
 *
 *	sim_soak [--seeds N] [--seed FIRST] [--messages N] [--capture FILE] [-v]
 *		 [--kind any|faulty|corrupt|clean|pauses|wrap|small|break|lanes|calls]
 *
 * Prints one line per failing seed with the command that reproduces it, and a summary. Exit code 1
 * when a seed failed.
 */

#include <assert.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mixed_priv.h"
#include "random/random.h"
#include "random_sim.h"

/* Behind those of mixed traffic: the seed decides among them; calls instead. */
#define SOAK_ANY MIXED_KINDS
#define SOAK_CALLS (MIXED_KINDS + 1)

static const char *const kinds[] = {"clean", "faulty", "corrupt", "pauses", "wrap",
				    "small", "break",  "lanes",   "any",    "calls"};

static_assert(sizeof(kinds) / sizeof(kinds[0]) == SOAK_CALLS + 1, "names of all kinds");

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int kind_of(const char *name)
{
	int k;

	for (k = 0; k <= SOAK_CALLS; k++)
		if (!strcmp(name, kinds[k]))
			return k;
	return -1;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* All hosts are in this process. What traffic has under way is far less. */
#define SOAK_MEMORY (256u << 20)
/* What a run may leave behind: entries for pools that are kept. */
#define SOAK_REST (64u << 10)

static size_t peak, worst;

static void watch(void *arg)
{
	struct sim *sim = arg;
	size_t used = sim_heap_used();

	peak = used > peak ? used : peak;
	worst = used > worst ? used : worst;
	sim_at(sim, sim_now(sim) + 10 * SIM_MS, watch, sim);
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* What weft.h promises of random calls; @p world is to be freed after the simulation. */
static const char *calls(struct sim *sim, const struct mixed_conf *conf, struct world **world)
{
	const char *why;

	random_messages = 0;
	*world = random_world_sim(sim);
	why = random_run(*world, conf->messages ? conf->messages : 1000);
	sim_close_nodes(sim);
	mixed_messages = random_messages;
	mixed_text[0] = '\0';
	return why;
}

static const char *one(uint64_t seed, const struct mixed_conf *conf, const char *capture)
{
	struct sim *sim = sim_create(seed);
	struct world *world = NULL;
	static char text[400];
	const char *why;

	if (capture && sim_capture(sim, capture))
		fprintf(stderr, "sim_soak: can't write %s\n", capture);
	peak = 0;
	watch(sim);
	why = (int)conf->kind == SOAK_CALLS ? calls(sim, conf, &world) : mixed_run(sim, conf, NULL);
	if (!why && sim_leaked(sim))
		why = "mbufs were lost";
	if (!why && peak > SOAK_MEMORY)
		why = "the heap grew beyond its bound";
	if (!why && sim_stuck_contexts(sim))
		why = "a context was still in use when its host had ended";
	if (why)
		snprintf(text, sizeof(text), "%s", why);
	sim_destroy(sim);
	random_free(world);
	mixed_free();
	return why ? text : NULL;
}

/* Of kind "any" the seed decides. */
static enum mixed_kind kind_for(const struct mixed_conf *conf, uint64_t seed)
{
	struct sim_rng r = sim_rng_make(seed, 13);

	return (int)conf->kind == SOAK_ANY ? (enum mixed_kind)sim_below(&r, MIXED_KINDS)
					   : conf->kind;
}

struct soak {
	struct mixed_conf conf;
	uint64_t seeds, seed;
	const char *capture;
	bool verbose;
};

static int parse(int argc, char **argv, struct soak *o)
{
	static const struct option options[] = {
		{"seeds", required_argument, NULL, 'n'},
		{"seed", required_argument, NULL, 's'},
		{"kind", required_argument, NULL, 'k'},
		{"messages", required_argument, NULL, 'm'},
		{"capture", required_argument, NULL, 'w'},
		{"verbose", no_argument, NULL, 'v'},
		{0},
	};
	int opt, kind;

	while ((opt = getopt_long(argc, argv, "n:s:k:m:w:v", options, NULL)) != -1) {
		switch (opt) {
		case 'n':
			o->seeds = strtoull(optarg, NULL, 0);
			break;
		case 's':
			o->seed = strtoull(optarg, NULL, 0);
			break;
		case 'm':
			o->conf.messages = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'w':
			o->capture = optarg;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'k':
			kind = kind_of(optarg);
			if (kind >= 0) {
				o->conf.kind = (enum mixed_kind)kind;
				break;
			}
			/* fall through */
		default:
			fprintf(stderr,
				"usage: %s [--seeds N] [--seed FIRST] "
				"[--kind any|clean|faulty|corrupt|pauses|wrap|small|break|lanes"
				"|calls] "
				"[--messages N] [--capture FILE] [-v]\n",
				argv[0]);
			return -1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct soak o = {.conf.kind = MIXED_FAULTY, .seeds = 1000, .seed = 1};
	uint64_t i, messages = 0, bytes = 0, withdrawn = 0, failed = 0, lost = 0;
	double start = seconds();
	struct mixed_conf conf;
	char more[40] = "";
	const char *why;
	size_t before;

	if (parse(argc, argv, &o))
		return 2;
	if (o.conf.messages)
		snprintf(more, sizeof(more), " --messages %u", o.conf.messages);
	for (i = 0; i < o.seeds; i++) {
		conf = o.conf;
		conf.kind = kind_for(&o.conf, o.seed + i);
		before = sim_heap_used();
		why = one(o.seed + i, &conf, o.capture);
		/* The first runs make what is kept for all. */
		if (!why && i > 2 && sim_heap_used() > before + SOAK_REST)
			why = "memory was left behind";
		messages += mixed_messages;
		bytes += mixed_bytes;
		withdrawn += mixed_withdrawn;
		lost += mixed_lanes_lost;
		if (o.verbose || why)
			printf("seed %llu: %s: %s: %s\n", (unsigned long long)(o.seed + i),
			       kinds[conf.kind], mixed_text, why ? why : "ok");
		if (why) {
			failed++;
			printf("  reproduce: %s --kind %s --seeds 1 --seed %llu%s\n", argv[0],
			       kinds[conf.kind], (unsigned long long)(o.seed + i), more);
		}
		fflush(stdout);
	}
	printf("sim_soak: %s: %llu seeds, %llu failed; %llu messages and operations, %.1f MB "
	       "verified, %llu sends withdrawn, %llu lanes lost, at most %.0f MB of heap, %.0f s\n",
	       kinds[o.conf.kind], (unsigned long long)o.seeds, (unsigned long long)failed,
	       (unsigned long long)messages, (double)bytes / 1e6, (unsigned long long)withdrawn,
	       (unsigned long long)lost, (double)worst / 1e6, seconds() - start);
	return failed != 0;
}
