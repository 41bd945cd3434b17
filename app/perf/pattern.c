/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contents of messages with -V: 64-bit words that depend on the number of the message and the
 * offset of the word. So a byte that is missing, moved, or from another message is detected. The
 * function uses only additions, for which the compiler generates vector code.
 */

#include <string.h>

#include "perf/perf.h"

#define STEP 0x9e3779b97f4a7c15ull

static uint64_t first_word(uint64_t index)
{
	index = (index + 1) * 0xbf58476d1ce4e5b9ull;
	return index ^ index >> 29;
}

void perf_fill(void *buffer, uint64_t size, uint64_t index)
{
	uint64_t *words = buffer, first = first_word(index), last;
	uint64_t count = size / 8;

	for (uint64_t i = 0; i < count; i++)
		words[i] = first + i * STEP;
	last = first + count * STEP;
	if (size % 8)
		memcpy(words + count, &last, size % 8);
}

bool perf_check(const void *buffer, uint64_t size, uint64_t index)
{
	const uint64_t *words = buffer;
	uint64_t first = first_word(index), last, wrong = 0;
	uint64_t count = size / 8;

	for (uint64_t i = 0; i < count; i++)
		wrong |= words[i] ^ (first + i * STEP);
	last = first + count * STEP;
	return !wrong && (!(size % 8) || memcmp(words + count, &last, size % 8) == 0);
}
