/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mixed_priv.h
 * Insides of mixed scenarios: mixed.c dices nodes and traffic, mixed_break.c the network that
 * breaks, mixed_lanes.c the lanes that die.
 */
#ifndef SIM_MIXED_PRIV_H
#define SIM_MIXED_PRIV_H

#include "mixed.h"

#define MIXED_NODES 3
#define MIXED_LANES 4

/** Which net a node's lane is on. */
unsigned int mixed_break_net(unsigned int lane, unsigned int node);
/** Switches between those nets, cross traffic, and outages from now on. */
void mixed_break_begin(struct sim *sim, struct sim_node *const *node, unsigned int nodes,
		       unsigned int lanes);
/** Before the nodes are closed: cross traffic would go on for ever. */
void mixed_break_end(void);

/** Lanes die and come back from now on; the arrays outlive the simulation's last event. */
void mixed_lanes_begin(struct sim *sim, struct sim_port *(*port)[MIXED_LANES],
		       const unsigned int *lanes, unsigned int nodes);

#endif /* SIM_MIXED_PRIV_H */
