/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random calls (random.h) over lanes through shared memory.
 */

#include <stdio.h>

#include "lanes.h"

static void list(const struct rnode *n, char *lanes, size_t size, char *options,
		 size_t options_size)
{
	(void)n;
	(void)options;
	(void)options_size;
	snprintf(lanes, size, "shm");
}

static const struct lanes_conf shm = {.nodes_max = RANDOM_NODES, .list = list};

static const struct lanes_case cases[] = {
	{"random_calls_over_shared_memory", &shm, 200},
};

int main(int argc, char **argv)
{
	return lanes_test_main(argc, argv, "random_shm", cases, sizeof(cases) / sizeof(cases[0]));
}
