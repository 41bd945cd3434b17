/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file random_sim.h
 * Random calls (random/random.h) over the simulated network.
 */
#ifndef SIM_RANDOM_SIM_H
#define SIM_RANDOM_SIM_H

#include "random/random.h"
#include "sim.h"

/** A world whose nodes are hosts of the simulation. It is freed after the simulation. */
struct world *random_world_sim(struct sim *sim);

#endif /* SIM_RANDOM_SIM_H */
