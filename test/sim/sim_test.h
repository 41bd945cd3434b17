/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sim_test.h
 * Test programs of the simulated network: cmocka, a seed for every test, and how to reproduce a
 * failure.
 *
 *	sim_NAME [-s SEED] [-n SEEDS] [-k PATTERN] [-w FILE.pcapng]
 *
 * A test gets a struct sim_case and makes its simulations with case_sim(): they are destroyed after
 * the test, whatever its end. A simulation that lost mbufs, or sealed two frames with the same key
 * and nonce, fails the test.
 */
#ifndef SIM_TEST_H
#define SIM_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim.h"

struct sim_case {
	const char *name;
	void (*fn)(struct sim_case *c);
	/** of the run under way; a test that runs several sets it by case_sim_seed() */
	uint64_t seed;
	unsigned int seeds; /**< how many seeds a sweep runs; 0 = the test's own number */
	struct sim *sim;    /**< the last one made */
	bool finished;
};

/** A new simulation with the case's seed; the one before is destroyed (and checked for leaks). */
struct sim *case_sim(struct sim_case *c);
struct sim *case_sim_seed(struct sim_case *c, uint64_t seed);
/** Destroy the simulation of the case and fail if it lost mbufs or repeated a nonce. */
void case_end(struct sim_case *c);

#define SIM_CASE(fn)                       \
	{                                  \
#fn, fn, 0, 0, NULL, false \
	}

/** Run the cases as a cmocka group; exit code for main(). */
int sim_test_main(int argc, char **argv, const char *group, struct sim_case *cases, size_t n);

/** An endpoint of @p from to @p to; fails the test if it is not up within 1 s. */
struct weft_ep *sim_ep_up(struct sim *sim, struct sim_node *from, struct sim_node *to);

/** The frames of a port from number @p from on, and before @p to, vanish. */
struct sim_dropper {
	unsigned int from, to, count;
};

/** A filter (sim_port_filter()) for a struct sim_dropper. */
enum sim_verdict sim_drop_some(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
			       void *arg);

/** A filter: longer frames than *(size_t *)@p arg vanish. */
enum sim_verdict sim_drop_longer(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				 void *arg);

/** For sim_station(): the frames have no effect. */
void sim_ignore(struct sim_port *port, const uint8_t *data, size_t len, void *arg);

/* ---- the log: into a file of this process, from warnings on */

/** Begin an empty file. @return its name, for WEFT_LOG_FILE of nodes that start later */
const char *sim_log_begin(void);
/** What has been logged since sim_log_begin(). Valid until the next call. */
const char *sim_logged(void);
/** How often @p what has been logged. */
unsigned int sim_log_count(const char *what);
/** Log to standard error again. */
void sim_log_end(void);

#endif /* SIM_TEST_H */
