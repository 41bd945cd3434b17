/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frame of the test programs; see sim_test.h.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
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
	uint64_t leaked, repeated;

	if (!c->sim)
		return;
	sim_close_nodes(c->sim);
	leaked = sim_leaked(c->sim);
	stuck = sim_stuck_contexts(c->sim);
	repeated = sim_nonces().repeated;
	drop(c);
	if (stuck)
		fail_msg("%u contexts were still in use when their hosts had ended", stuck);
	if (leaked)
		fail_msg("%llu mbufs did not come back when ports were closed",
			 (unsigned long long)leaked);
	if (repeated)
		fail_msg("%llu frames were sealed with a key and a nonce of an earlier one",
			 (unsigned long long)repeated);
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

static bool is_up(void *ep)
{
	struct weft_ep_attr attr = {.size = sizeof(attr)};

	assert_int_equal(weft_ep_query(ep, &attr), 0);
	return attr.status == 0;
}

struct weft_ep *sim_ep_up(struct sim *sim, struct sim_node *from, struct sim_node *to)
{
	struct weft_ep *ep;

	assert_int_equal(sim_ep_create(from, to, NULL, &ep), 0);
	assert_true(sim_run(sim, SIM_S, is_up, ep));
	return ep;
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

enum sim_verdict sim_drop_longer(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				 void *arg)
{
	(void)port;
	(void)data;
	(void)room;
	return *len > *(size_t *)arg ? SIM_DROP : SIM_PASS;
}

void sim_ignore(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	(void)port;
	(void)data;
	(void)len;
	(void)arg;
}

/* ---- the log -------------------------------------------------------------------------------- */

static char log_name[64];
static char log_text[65536];

const char *sim_log_begin(void)
{
	snprintf(log_name, sizeof(log_name), "weft-sim-%d.log", (int)getpid());
	unlink(log_name);
	assert_int_equal(weft_log_setup(WEFT_LOG_WARN, log_name), 0);
	return log_name;
}

const char *sim_logged(void)
{
	FILE *f = fopen(log_name, "r");
	size_t n = f ? fread(log_text, 1, sizeof(log_text) - 1, f) : 0;

	log_text[n] = '\0';
	if (f)
		fclose(f);
	return log_text;
}

unsigned int sim_log_count(const char *what)
{
	const char *at = sim_logged();
	unsigned int n = 0;

	for (; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

void sim_log_end(void)
{
	weft_log_setup(WEFT_LOG_WARN, NULL);
	unlink(log_name);
}
