/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frame of the test programs; see sim_test.h.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim_test.h"

#define DEFAULT_SEED 1

static const char *capture, *program;

static void drop(struct sim_case *c)
{
	sim_destroy(c->sim);
	c->sim = NULL;
}

struct sim *case_sim_seed(struct sim_case *c, uint64_t seed)
{
	case_end(c);
	c->seed = seed;
	c->sim = sim_create(seed);
	if (capture && sim_capture(c->sim, capture))
		print_message("# can't write %s\n", capture);
	return c->sim;
}

struct sim *case_sim(struct sim_case *c)
{
	return case_sim_seed(c, c->seed);
}

void case_end(struct sim_case *c)
{
	unsigned int stuck;
	uint64_t leaked;

	if (!c->sim)
		return;
	sim_close_nodes(c->sim);
	leaked = sim_leaked(c->sim);
	stuck = sim_stuck_contexts(c->sim);
	drop(c);
	if (stuck)
		fail_msg("%u contexts were still in use when their hosts had ended", stuck);
	if (leaked)
		fail_msg("%llu mbufs did not come back when ports were closed",
			 (unsigned long long)leaked);
}

static void run_case(void **state)
{
	struct sim_case *c = *state;

	c->fn(c);
	case_end(c);
	c->finished = true;
}

static int after_case(void **state)
{
	struct sim_case *c = *state;

	if (!c->finished) {
		print_message("# reproduce: %s -k %s -s %llu -n 1\n", program, c->name,
			      (unsigned long long)c->seed);
		drop(c);
	}
	return 0;
}

int sim_test_main(int argc, char **argv, const char *group, struct sim_case *cases, size_t n)
{
	struct CMUnitTest *tests = calloc(n, sizeof(*tests));
	const char *pattern = NULL;
	uint64_t seed = DEFAULT_SEED;
	unsigned int seeds = 0;
	size_t i, chosen = 0;
	int opt, ret;

	program = argv[0];
	while ((opt = getopt(argc, argv, "s:n:k:w:")) != -1) {
		switch (opt) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			seeds = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'k':
			pattern = optarg;
			break;
		case 'w':
			capture = optarg;
			break;
		default:
			fprintf(stderr,
				"usage: %s [-s SEED] [-n SEEDS] [-k PATTERN] [-w FILE.pcapng]\n",
				argv[0]);
			free(tests);
			return 2;
		}
	}
	for (i = 0; i < n; i++) {
		if (pattern && !strstr(cases[i].name, pattern))
			continue;
		cases[i].seed = seed;
		cases[i].seeds = seeds;
		tests[chosen++] =
			(struct CMUnitTest){cases[i].name, run_case, NULL, after_case, &cases[i]};
	}
	ret = _cmocka_run_group_tests(group, tests, chosen, NULL, NULL);
	free(tests);
	return ret;
}

enum sim_verdict sim_drop_some(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
			       void *arg)
{
	struct sim_dropper *d = arg;
	unsigned int n = d->count++;

	(void)port;
	(void)data;
	(void)len;
	(void)room;
	return n >= d->from && n < d->to ? SIM_DROP : SIM_PASS;
}
