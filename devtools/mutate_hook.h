/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mutate_hook.h
 * What mutate.py includes in each source that it mutates.
 */
#ifndef WEFT_MUTANT_H
#define WEFT_MUTANT_H

/** The mutation that is on, or -1. */
extern int weft_mutant;
/** One byte for each mutation, of the case that runs. */
extern unsigned char *weft_mutant_seen;

#define WEFT_MUTANT_REACHED 1
/** reached, and the mutation changes the value */
#define WEFT_MUTANT_DIFFERS 2

static inline int mutant(int number)
{
	weft_mutant_seen[number] = WEFT_MUTANT_REACHED | WEFT_MUTANT_DIFFERS;
	return weft_mutant == number;
}

static inline int mutant_if(int number, int differs)
{
	weft_mutant_seen[number] |= WEFT_MUTANT_REACHED | (differs ? WEFT_MUTANT_DIFFERS : 0);
	return weft_mutant == number;
}

#endif /* WEFT_MUTANT_H */
