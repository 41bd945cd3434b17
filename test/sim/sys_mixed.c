/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mixed traffic with full verification (traffic.h) through bad networks.
 */

#include <stdlib.h>
#include <string.h>

#include "mixed.h"
#include "mock/rounds.h"
#include "sim_test.h"

/*
 * @behaviour G5: 24 h soak; does not apply: not a test of minutes; `sim_soak` runs as long as
 * wanted and counts what is left over
 */

static void sweep(struct sim_case *c, const struct mixed_conf *conf, unsigned int seeds)
{
	uint64_t first = c->seed, last = first + (c->seeds ? c->seeds : test_rounds(seeds));
	const char *why;

	for (; c->seed < last; c->seed++) {
		why = mixed_run(case_sim_seed(c, c->seed), conf, NULL);
		if (why)
			fail_msg("%s", why);
		case_end(c);
		mixed_free();
	}
	c->seed = first;
}

static void mixed_traffic_on_a_clean_network(struct sim_case *c)
{
	sweep(c, &(struct mixed_conf){.kind = MIXED_CLEAN}, 10);
}

/* @behaviour F1, R1 */
static void mixed_traffic_under_loss_duplication_and_reordering(struct sim_case *c)
{
	sweep(c, &(struct mixed_conf){.kind = MIXED_FAULTY}, 60);
}

/* @behaviour F1, R3 */
static void mixed_traffic_under_corruption_with_crc32c(struct sim_case *c)
{
	sweep(c, &(struct mixed_conf){.kind = MIXED_CORRUPT}, 20);
}

/* @behaviour Y3, R40 */
static void mixed_traffic_with_pausing_nodes(struct sim_case *c)
{
	sweep(c, &(struct mixed_conf){.kind = MIXED_PAUSES}, 10);
}

/* @behaviour Y6, R2 */
static void mixed_traffic_with_sequences_that_wrap(struct sim_case *c)
{
	sweep(c, &(struct mixed_conf){.kind = MIXED_WRAP}, 10);
}

/* @behaviour U91 */
static void mixed_traffic_with_little_memory(struct sim_case *c)
{
	sweep(c, &(struct mixed_conf){.kind = MIXED_SMALL}, 20);
}

static void mixed_traffic_over_a_network_that_breaks(struct sim_case *c)
{
	sweep(c, &(struct mixed_conf){.kind = MIXED_BREAK}, 10);
}

/* @behaviour U73, R30, R29 */
static void mixed_traffic_over_lanes_that_die_and_come_back(struct sim_case *c)
{
	sweep(c, &(struct mixed_conf){.kind = MIXED_LANES_DIE}, 15);
}

/* @behaviour Y8 */
static void the_same_seed_gives_the_same_traffic(struct sim_case *c)
{
	uint64_t hash;

	assert_null(mixed_run(case_sim(c), &(struct mixed_conf){.kind = MIXED_FAULTY}, &hash));
	for (int i = 0; i < 2; i++) {
		uint64_t again;

		assert_null(
			mixed_run(case_sim(c), &(struct mixed_conf){.kind = MIXED_FAULTY}, &again));
		assert_true(again == hash);
	}
}

static struct sim_case cases[] = {
	SIM_CASE(mixed_traffic_on_a_clean_network),
	SIM_CASE(mixed_traffic_under_loss_duplication_and_reordering),
	SIM_CASE(mixed_traffic_under_corruption_with_crc32c),
	SIM_CASE(mixed_traffic_with_pausing_nodes),
	SIM_CASE(mixed_traffic_with_sequences_that_wrap),
	SIM_CASE(mixed_traffic_with_little_memory),
	SIM_CASE(mixed_traffic_over_a_network_that_breaks),
	SIM_CASE(mixed_traffic_over_lanes_that_die_and_come_back),
	SIM_CASE(the_same_seed_gives_the_same_traffic),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_mixed", cases, sizeof(cases) / sizeof(cases[0]));
}
