/* SPDX-License-Identifier: BSD-3-Clause */
/* Searches with wildcards among unexpected messages, by an index. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tag/match.h"

#define SOURCES 2

struct rig {
	struct weft_match m;
	void *mem;
	struct weft_match_source src[SOURCES];
};

static uint64_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void rig_init(struct rig *r, unsigned int bits)
{
	r->mem = malloc(weft_match_table_size(bits));
	weft_match_init(&r->m, r->mem, bits, 0x9e3779b97f4a7c15ull);
	for (int i = 0; i < SOURCES; i++)
		weft_match_source_init(&r->m, &r->src[i]);
}

/*
 * A peer sends messages that match no receive, without end. Receives with wildcards, each with a
 * tag of its own, for messages of another peer that come behind them: the first search of a kind
 * looks at all, the others at what they find.
 */
/* @behaviour S17: unmatched messages slow down no receive with wildcards */
static void a_flood_without_receives_costs_no_search(void **state)
{
	static const uint64_t mask[4] = {0xffffffff00000000u, 0xffff00000000u, 0xffffffffff000000u,
					 0x0000ffffffff0000u};
	enum { N = 100000, HONEST = 400 };
	struct weft_match_msg *msg = calloc(N + HONEST, sizeof(*msg)), *found;
	struct rig *r = malloc(sizeof(*r));
	uint64_t looks, s = 9;

	(void)state;
	rig_init(r, 12);
	for (unsigned int i = 0; i < N + HONEST; i++) {
		bool flood = i < N;

		msg[i] = (struct weft_match_msg){.tag = flood ? next_random(&s) | 1ull << 63
							      : (uint64_t)i << 32,
						 .source = &r->src[!flood]};
		weft_match_msg_add(&r->m, &msg[i]);
	}
	for (unsigned int i = 0; i < HONEST; i++) {
		struct weft_match_source *source = i / 4 % 2 ? &r->src[1] : NULL;

		found = weft_match_find(&r->m, source, msg[N + i].tag, mask[i % 4],
					((struct weft_match_chan){0, 0}));
		assert_true(found && ((found->tag ^ msg[N + i].tag) & mask[i % 4]) == 0);
		if (found == &msg[N + i])
			weft_match_msg_remove(&r->m, found);
	}
	/*
	 * Without a source each mask has walked once; with one, the honest peer's are all that
	 * there is.
	 */
	assert_in_range(r->m.msg_looks, 4 * N, 4 * N + 60 * HONEST);
	/* More of them come, and go: still nothing to look at. */
	looks = r->m.msg_looks;
	for (unsigned int i = 0; i < N; i += 3)
		weft_match_msg_remove(&r->m, &msg[i]);
	for (unsigned int i = 0; i < N; i += 3)
		weft_match_msg_add(&r->m, &msg[i]);
	for (unsigned int i = 0; i < 100; i++)
		assert_null(weft_match_find(&r->m, NULL, (uint64_t)(N + 5000 + i) << 32, mask[0],
					    ((struct weft_match_chan){0, 0})));
	assert_in_range(r->m.msg_looks - looks, 0, 1000);
	weft_match_fini(&r->m);
	free(msg);
	free(r->mem);
	free(r);
}

/* Indexes that come and go say what a walk says, whatever the order of it all. */
/* @behaviour S17 */
static void searches_by_an_index_agree_with_a_walk(void **state)
{
	enum { N = 3000, STEPS = 40000 };
	static struct weft_match_msg msg[N];
	static bool in[N];
	struct rig *r = malloc(sizeof(*r));
	uint64_t s = 11, arrived = 0;
	static uint64_t when[N];

	(void)state;
	rig_init(r, 8);
	for (unsigned int step = 0; step < STEPS; step++) {
		unsigned int i = (unsigned int)(next_random(&s) % N);
		uint64_t mask = ~(0x7ull << 2 * (next_random(&s) % 12)),
			 tag = next_random(&s) % 4096;
		struct weft_match_source *source = next_random(&s) % 2 ? &r->src[tag % 2] : NULL;
		struct weft_match_msg *best = NULL;
		struct weft_match_chan chan = {next_random(&s) % 3,
					       (uint32_t)(next_random(&s) % 3)};

		if (in[i]) {
			weft_match_msg_remove(&r->m, &msg[i]);
		} else {
			msg[i] = (struct weft_match_msg){.tag = next_random(&s) % 4096,
							 .source = &r->src[i % 2],
							 .channel = i / 2 % 2,
							 .from = 1 + i / 4 % 2};
			weft_match_msg_add(&r->m, &msg[i]);
			when[i] = arrived++;
		}
		in[i] = !in[i];
		if (step % 20)
			continue;
		for (unsigned int k = 0; k < N; k++)
			if (in[k] && ((msg[k].tag ^ tag) & mask) == 0 &&
			    (!source || msg[k].source == source) &&
			    msg[k].channel == chan.channel &&
			    (!chan.from || msg[k].from == chan.from) &&
			    (!best || when[k] < when[best - msg]))
				best = &msg[k];
		assert_ptr_equal(weft_match_find(&r->m, source, tag, mask, chan), best);
	}
	assert_true(r->m.num_index > 0);
	weft_match_source_fini(&r->m, &r->src[0]);
	for (unsigned int i = 0; i < N; i++)
		if (in[i])
			weft_match_msg_remove(&r->m, &msg[i]);
	assert_int_equal(r->m.num_index, 0);
	free(r->mem);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flood_without_receives_costs_no_search),
		cmocka_unit_test(searches_by_an_index_agree_with_a_walk),
	};

	return cmocka_run_group_tests_name("match_index", tests, NULL, NULL);
}
