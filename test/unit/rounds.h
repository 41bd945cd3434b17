/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rounds.h
 * How often tests repeat themselves with other dice.
 */
#ifndef ROUNDS_H
#define ROUNDS_H

#include <stdlib.h>

/**
 * Of @p n rounds all; or an Nth with TEST_ROUNDS=N in the environment, under tools (valgrind) that
 * take fifty times as long and look at the code, which is the same each time.
 */
static inline unsigned int test_rounds(unsigned int n)
{
	const char *text = getenv("TEST_ROUNDS");
	unsigned int part = text != NULL ? (unsigned int)strtoul(text, NULL, 10) : 1;

	return part > 1 ? (n + part - 1) / part : n;
}

#endif
