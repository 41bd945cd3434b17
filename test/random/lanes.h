/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lanes.h
 * Random calls (random.h) over lanes of this machine. The nodes are contexts of one process, and
 * one thread polls their workers in turn. Between two calls it counts polls and not time, so most
 * of a run is repeated by its seed.
 */
#ifndef RANDOM_LANES_H
#define RANDOM_LANES_H

#include "random.h"

/** A kind of lanes. All functions but list() may be NULL. */
struct lanes_conf {
	unsigned int nodes_max;
	double dying; /**< as struct random_net's */
	/** Factor of the time between two calls in a world where lanes die. */
	unsigned int slower;
	/** A world begins. */
	void (*begin)(struct world *w);
	/** Lanes of a node as in WEFT_LANES; options, NAME=VALUE, each with a space before it. */
	void (*list)(const struct rnode *n, char *lanes, size_t size, char *options,
		     size_t options_size);
	/** Lanes die and come back from now on. */
	void (*cut)(struct world *w);
	/** Before each poll. */
	void (*tick)(struct world *w);
	/** The workers are gone. */
	void (*end)(struct world *w);
};

struct world *lanes_world(const struct lanes_conf *conf, uint64_t seed);
/** Destroy workers and contexts. @return NULL, or what is wrong, valid as long as the world */
const char *lanes_close(struct world *w);
/** Lanes of endpoints that died and came back, of all worlds. */
extern uint64_t lanes_lost, lanes_back;
/** ns of the clock that tick() may use. */
uint64_t lanes_now(void);

/** A test: random runs over one kind of lanes. */
struct lanes_case {
	const char *name;
	const struct lanes_conf *conf;
	unsigned int seeds; /**< without -n */
};

/** Run the cases as a cmocka group; exit code for main(). */
int lanes_test_main(int argc, char **argv, const char *group, const struct lanes_case *cases,
		    size_t num);

#endif /* RANDOM_LANES_H */
