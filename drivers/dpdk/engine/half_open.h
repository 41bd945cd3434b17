/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/half_open.h
 * Admission of peers that have only sent HELLO.
 */
#ifndef WEFT_ENGINE_HALF_OPEN_H
#define WEFT_ENGINE_HALF_OPEN_H

#include <stdbool.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "frame/parse.h"

#define RAW_HALF_OPEN_MAX 256u
#define RAW_HALF_OPEN_NS 5000000000ull

/*
 * May the sender of this HELLO have a half-open connection? @p shown: the sender has proven its
 * address, for raw_half_add().
 * @return false: the HELLO has been answered
 */
bool raw_half_admit(struct raw_iface *iface, const struct weft_frame_view *v, bool *shown);
void raw_half_add(struct raw_conn *c, const struct weft_frame_view *v, bool shown);

/* The peer has proven its address: by a cookie, or by a token that only HELLO_ACK contains. */
void raw_half_shown(struct raw_conn *c);
void raw_half_remove(struct raw_conn *c);

#endif /* WEFT_ENGINE_HALF_OPEN_H */
