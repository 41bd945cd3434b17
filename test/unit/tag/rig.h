/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file unit/tag/rig.h
 * A table of receives and messages whose entries the test has.
 */
#ifndef UNIT_TAG_RIG_H
#define UNIT_TAG_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tag/match.h"
#include "mock/rounds.h"

#define MAX 512
#define SOURCES 4
#define SEED 0x9e3779b97f4a7c15ull

struct rig {
	struct weft_match m;
	void *mem;
	struct weft_match_source src[SOURCES];
	struct weft_match_recv recv[MAX];
	struct weft_match_msg msg[MAX];
	/* The model: what is there, in posting and in arrival order. */
	struct weft_match_recv *posted[MAX];
	struct weft_match_msg *arrived[MAX];
	unsigned int num_posted, num_arrived;
	bool recv_used[MAX], msg_used[MAX];
};

static inline uint64_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static inline void rig_init(struct rig *r, unsigned int bits)
{
	memset(r, 0, sizeof(*r));
	r->mem = malloc(weft_match_table_size(bits));
	weft_match_init(&r->m, r->mem, bits, SEED);
	for (int i = 0; i < SOURCES; i++)
		weft_match_source_init(&r->m, &r->src[i]);
}

static inline int setup(void **state)
{
	struct rig *r = malloc(sizeof(*r));

	rig_init(r, 4);
	*state = r;
	return 0;
}

static inline int teardown(void **state)
{
	struct rig *r = *state;

	weft_match_fini(&r->m);
	free(r->mem);
	free(r);
	return 0;
}

static inline void grow(struct rig *r)
{
	unsigned int bits = r->m.bits + 1;
	void *mem = malloc(weft_match_table_size(bits));

	free(weft_match_grow(&r->m, mem, bits));
	r->mem = mem;
}

static inline struct weft_match_recv *post(struct rig *r, unsigned int i,
					   struct weft_match_source *s, uint64_t tag, uint64_t mask)
{
	r->recv[i].tag = tag;
	r->recv[i].mask = mask;
	r->recv[i].source = s;
	weft_match_post(&r->m, &r->recv[i]);
	return &r->recv[i];
}

static inline struct weft_match_msg *keep(struct rig *r, unsigned int i,
					  struct weft_match_source *s, uint64_t tag)
{
	r->msg[i].tag = tag;
	r->msg[i].source = s;
	weft_match_msg_add(&r->m, &r->msg[i]);
	return &r->msg[i];
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif /* UNIT_TAG_RIG_H */
