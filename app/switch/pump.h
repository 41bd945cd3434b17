/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch/pump.h
 * The forwarder, and how the control thread hands rings to it.
 */
#ifndef APP_SWITCH_PUMP_H
#define APP_SWITCH_PUMP_H

#include "switch/switch.h"

/** By the control thread; waits for the forwarder, which never waits. */
void sw_lane_attach(struct sw *s, unsigned int port, const struct sw_conn *c);
void sw_lane_detach(struct sw *s, unsigned int port);
/**
 * Notify the peers of a process that has ended and whose port has no rings.
 * @param farewells  the forwarder's from now on; NULL = none
 */
void sw_lane_gone(struct sw *s, unsigned int port, struct sw_farewells *farewells);

/** By the forwarder: apply a pending change. The last frames of a lost port are forwarded. */
void sw_lane_change(struct sw *s, uint64_t now);

/** @return number of frames */
unsigned int sw_round(struct sw *s, uint64_t now);

#endif /* APP_SWITCH_PUMP_H */
