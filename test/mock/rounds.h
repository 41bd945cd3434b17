/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/rounds.h
 * How often tests repeat themselves with other dice.
 */
#ifndef ROUNDS_H
#define ROUNDS_H

#include <stdlib.h>

/**
 * @return N with TEST_ROUNDS=N in the environment: tests shall do an Nth, under tools (sanitizers,
 *         valgrind) that take five to fifty times as long and look at the code, which is the same
 *         each time; else 1
 */
static inline unsigned int test_part(void)
{
	const char *text = getenv("TEST_ROUNDS");
	unsigned int part = text ? (unsigned int)strtoul(text, NULL, 10) : 1;

	return part > 1 ? part : 1;
}

/** Of @p n rounds all, or the Nth part. */
static inline unsigned int test_rounds(unsigned int n)
{
	return (n + test_part() - 1) / test_part();
}

/** Of a table of cases all, or each Nth: is number @p i left out? N is odd, cases come in twos. */
static inline int test_left_out(unsigned int i)
{
	return i % test_part() != 0;
}

#endif /* ROUNDS_H */
