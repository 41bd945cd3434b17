/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_footprint.h
 * What a process holds at a time: verbs objects, files, memory. To be compared before and after, so
 * that whatever is left behind shows.
 */
#ifndef WEFT_ROCE_FOOTPRINT_H
#define WEFT_ROCE_FOOTPRINT_H

#include <stdbool.h>
#include <stddef.h>

struct footprint {
	char objects[512]; /* a line for each device, of all processes; without regions */
	unsigned int regions;
	unsigned int files; /* open ones */
	size_t heap;        /* bytes that were allocated and not freed */
	size_t mapped;      /* bytes of address space but for the heap */
};

/** @return false: it could not be counted */
bool footprint_take(struct footprint *f);

/** How much may be there afterwards that was not there before. */
struct footprint_slack {
	unsigned int regions;
	size_t heap, mapped; /* bytes */
};

/*
 * How many of a device's threads (drivers/roce/roce_async.c) are needed at a time is chance: a
 * stack with its guard page, and what the C library keeps for a thread, each. Both devices of a
 * test are the process's.
 */
#define FOOTPRINT_THREADS_MAPPED (2 * 8 * (260ul << 10))
#define FOOTPRINT_THREADS_HEAP (2 * 8 * 320ul)

/** Is nothing left behind? Other objects and files must be the same. What differs is printed. */
bool footprint_same(const char *when, const struct footprint *before, const struct footprint *after,
		    struct footprint_slack slack);

#endif /* WEFT_ROCE_FOOTPRINT_H */
