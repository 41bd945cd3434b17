/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/link_state.h
 * The port of an iface: its events, and how its owner sleeps.
 */
#ifndef WEFT_ENGINE_LINK_STATE_H
#define WEFT_ENGINE_LINK_STATE_H

#include <stdint.h>

#include "engine/iface.h"
#include "lane.h"

#define RAW_LOOK_UP 1000000000ull  /* live_clock between two checks of a port with a link */
#define RAW_LOOK_DOWN 100000000ull /* the same, without a link */
void raw_port_look(struct raw_iface *iface);

/* ---- engine/attr.c: attributes of the iface */
void raw_fill_attr(struct raw_iface *iface);
/* Also called when the speed of the link changes. */
void raw_fill_numbers(struct raw_iface *iface);

/* ---- engine/wait.c */
int raw_wait_fd(struct weft_lane_iface *base);
int raw_arm(struct weft_lane_iface *base, uint64_t now, uint64_t *due);
void raw_disarm(struct weft_lane_iface *base);

#endif /* WEFT_ENGINE_LINK_STATE_H */
