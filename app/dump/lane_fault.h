/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/lane_fault.h
 * Faults of lanes: losses by kind, holes, a smaller MTU, corruption, duplicates, order, delays.
 */
#ifndef DUMP_LANE_FAULT_H
#define DUMP_LANE_FAULT_H

#include "dump/fault.h"

/** Add the faults of all lanes. */
void fault_lanes(const struct trace *t, struct fault_list *l);

#endif /* DUMP_LANE_FAULT_H */
