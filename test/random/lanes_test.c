/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The frame of tests with random calls over lanes of this machine:
 *
 *	PROGRAM [-s SEED] [-n SEEDS] [-r RUNS] [-k PATTERN]
 *
 * Without -s the first seed is a new one. Each run that fails is printed with a command that
 * repeats it, and so is one that crashes, or needs too much processor time. Lanes of this machine
 * need real time, so a seed repeats the choices and not each moment: -r runs each seed several
 * times.
 */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lanes.h"
#include "mock/rounds.h"

#define STEPS 1000
#define ENOUGH 5      /* runs in which a lane dies, if lanes do */
#define CPU_MAX_S 120 /* of one run */

static const char *program;
static uint64_t first_seed;
static unsigned int num_seeds; /* 0 = each case's own */
static unsigned int repeats = 1;
/* What a signal's handler prints, made before the run. */
static char command[300];

static void died(int sig)
{
	ssize_t ret = write(STDOUT_FILENO, command, strlen(command));

	(void)ret;
	signal(sig, SIG_DFL);
	raise(sig);
}

/* In the test: cmocka sets handlers of its own before it. */
static void guard(void)
{
	static const int sigs[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGPROF};

	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		signal(sigs[i], died);
}

static void limit_cpu(time_t seconds)
{
	const struct itimerval t = {.it_value.tv_sec = seconds};

	setitimer(ITIMER_PROF, &t, NULL);
}

static bool one(const struct lanes_case *c, uint64_t seed)
{
	const char *why, *left;
	struct world *w;

	snprintf(command, sizeof(command), "# reproduce: %s -k %s -s %llu -n 1 -r 20\n", program,
		 c->name, (unsigned long long)seed);
	limit_cpu(CPU_MAX_S);
	w = lanes_world(c->conf, seed);
	why = random_run(w, STEPS);
	/* In a world with an error this is the error. */
	left = lanes_close(w);
	why = why ? why : left;
	if (why)
		print_message("# seed %llu: %s\n%s", (unsigned long long)seed, why, command);
	random_free(w);
	limit_cpu(0);
	return !why;
}

static void run_case(void **state)
{
	const struct lanes_case *c = *state;
	unsigned int seeds = num_seeds ? num_seeds : test_rounds(c->seeds);
	unsigned int i, failed = 0, runs = seeds * repeats;

	guard();
	random_calls = random_messages = lanes_lost = lanes_back = 0;
	print_message("# %s: seeds %llu to %llu\n", c->name, (unsigned long long)first_seed,
		      (unsigned long long)(first_seed + seeds - 1));
	for (i = 0; i < runs; i++)
		failed += !one(c, first_seed + i / repeats);
	print_message("# %s: %u runs, %u failed, %llu calls, %llu messages received, %llu lanes "
		      "lost, %llu back\n",
		      c->name, runs, failed, (unsigned long long)random_calls,
		      (unsigned long long)random_messages, (unsigned long long)lanes_lost,
		      (unsigned long long)lanes_back);
	assert_int_equal(failed, 0);
	if (c->conf->dying >= 1 && runs >= ENOUGH)
		assert_true(lanes_lost > 0 && lanes_back > 0);
}

static uint64_t new_seed(void)
{
	uint32_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		abort();
	return seed;
}

int lanes_test_main(int argc, char **argv, const char *group, const struct lanes_case *cases,
		    size_t num)
{
	struct CMUnitTest *tests = calloc(num, sizeof(*tests));
	const char *pattern = "";
	size_t i, chosen = 0;
	int opt, ret;

	program = argv[0];
	first_seed = new_seed();
	while ((opt = getopt(argc, argv, "s:n:r:k:")) != -1) {
		if (opt == 's') {
			first_seed = strtoull(optarg, NULL, 0);
		} else if (opt == 'n') {
			num_seeds = (unsigned int)strtoul(optarg, NULL, 0);
		} else if (opt == 'r') {
			repeats = (unsigned int)strtoul(optarg, NULL, 0);
		} else if (opt == 'k') {
			pattern = optarg;
		} else {
			fprintf(stderr, "usage: %s [-s SEED] [-n SEEDS] [-r RUNS] [-k PATTERN]\n",
				argv[0]);
			free(tests);
			return 2;
		}
	}
	for (i = 0; i < num; i++)
		if (strstr(cases[i].name, pattern))
			tests[chosen++] = (struct CMUnitTest){cases[i].name, run_case, NULL, NULL,
							      (void *)(uintptr_t)&cases[i]};
	ret = _cmocka_run_group_tests(group, tests, chosen, NULL, NULL);
	free(tests);
	return ret;
}
