/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/seed.h"

#include <stdbool.h>
#include <sys/random.h>
#include <time.h>

uint64_t dump_seed[5];

void dump_seed_draw(void)
{
	static bool drawn;
	struct timespec ts;

	if (drawn)
		return;
	drawn = true;
	if (getrandom(dump_seed, sizeof(dump_seed), 0) == (ssize_t)sizeof(dump_seed))
		return;
	/* Without getrandom(): at least no capture written earlier can contain this value. */
	clock_gettime(CLOCK_REALTIME, &ts);
	for (unsigned int i = 0; i < 5; i++)
		dump_seed[i] = ((uint64_t)ts.tv_nsec * (i + 1) ^ (uint64_t)ts.tv_sec << 21) *
			       0x9e3779b97f4a7c15ull;
}
