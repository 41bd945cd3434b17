/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rounds.h
 * How often tests repeat themselves with other dice.
 */
#ifndef ROUNDS_H
#define ROUNDS_H

#include <stdlib.h>

/**
 * Of @p n rounds all; or an eighth with TEST_ROUNDS in the environment, under tools (valgrind) that
 * take fifty times as long and look at the code, which is the same each time.
 */
static inline unsigned int test_rounds(unsigned int n)
{
	return getenv("TEST_ROUNDS") != NULL ? (n + 7) / 8 : n;
}

#endif
