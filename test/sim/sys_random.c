/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random sequences of public calls against a model of weft.h (random/random.h), over the
 * simulated network. `-s SEED -n N` runs more;
 * SIM_TRACE=1 in the environment prints every call and every completion.
 */

#include <errno.h>

#include "mock/rounds.h"
#include "random/random.h"
#include "random_sim.h"
#include "scene.h"
#include "sim_test.h"

static void sweep(struct sim_case *c, unsigned int steps, unsigned int seeds)
{
	/* The world of a failed case stays until the next: requests point into it. */
	static struct world *w;
	uint64_t first = c->seed, last = first + (c->seeds ? c->seeds : test_rounds(seeds));
	const char *why;
	struct sim *sim;

	random_calls = random_messages = 0;
	for (; c->seed < last; c->seed++) {
		sim = case_sim_seed(c, c->seed);
		random_free(w);
		w = random_world_sim(sim);
		why = random_run(w, steps);
		if (why)
			fail_msg("seed %llu: %s", (unsigned long long)c->seed, why);
	}
	case_end(c);
	print_message("# %llu calls, %llu messages received\n", (unsigned long long)random_calls,
		      (unsigned long long)random_messages);
	c->seed = first;
}

/* @behaviour U65 */
static void random_calls_keep_what_weft_h_promises(struct sim_case *c)
{
	sweep(c, 400, 60);
}

static void long_random_runs_keep_it_too(struct sim_case *c)
{
	sweep(c, 4000, 4);
}

/* The close takes no error from the flush that was under way when it was called. */
/* @behaviour U79 */
static void a_flush_reports_a_refused_put_though_a_close_follows(struct sim_case *c)
{
	struct scene *s = scene_open(c, NULL);
	struct scene_ep *e = scene_up(s, 0, 1);
	struct weft_mem_params mp =
		WEFT_INIT(struct weft_mem_params, .flags = WEFT_MEM_F_REMOTE_WRITE);
	static uint8_t memory[4096];
	struct weft_rkey *rkey;
	struct weft_mem *mem;
	struct op *flush;
	size_t length;
	void *blob;

	assert_int_equal(
		weft_mem_register(sim_context(s->node[1]), memory, sizeof(memory), &mp, &mem), 0);
	assert_int_equal(weft_rkey_pack(mem, &blob, &length), 0);
	assert_int_equal(weft_rkey_unpack(e->ep, blob, length, &rkey), 0);
	weft_rkey_release_blob(blob);
	assert_int_equal(weft_mem_deregister(mem), 0);
	assert_int_equal(weft_put(e->ep, "gone", 4, rkey, 0, NULL, NULL), 0);
	weft_rkey_destroy(rkey);
	flush = op_flush(e);
	op_expect(op_close(e, 0), SIM_S, 0);
	op_expect(flush, 0, -EKEYREJECTED);
	assert_int_equal(memory[0], 0);
}

static struct sim_case cases[] = {
	SIM_CASE(a_flush_reports_a_refused_put_though_a_close_follows),
	SIM_CASE(random_calls_keep_what_weft_h_promises),
	SIM_CASE(long_random_runs_keep_it_too),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_random", cases, sizeof(cases) / sizeof(cases[0]));
}
