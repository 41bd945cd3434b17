/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/lifetime.h
 * The lifetime of a connection: creation, reports that it is up or has failed, closing, release.
 */
#ifndef WEFT_ENGINE_LIFETIME_H
#define WEFT_ENGINE_LIFETIME_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "frame/parse.h"

/* Makes a HALF_OPEN connection. @return 0; -ENOSPC: RAW_CONNS_MAX exist; -ENOMEM; or of random() */
int raw_conn_new(struct raw_iface *iface, bool passive, struct raw_conn **conn);
/* Frees a connection. The protocol layer must have no reference to it (any more). */
void raw_conn_free(struct raw_conn *c);
void raw_conn_up(struct raw_conn *c, uint16_t frame_size);
/* The connection sends nothing any more: frees its unacknowledged frames, and received parts. */
void raw_conn_tx_end(struct raw_conn *c);
void raw_conn_fail(struct raw_conn *c, int status, const char *text);
void raw_conn_bye(struct raw_conn *c);
void raw_conn_bye_input(struct raw_conn *c, const struct weft_frame_view *v);
/* The peer's process has ended: a sealed frame has proven it. */
void raw_conn_gone_input(struct raw_conn *c);
/*
 * The program has closed the connection.
 * @param lingers  the peer may still send frames on the connection, so it answers them in TIME_WAIT
 *   for RAW_TIME_WAIT_NS, or until RAW_TIME_WAIT_MAX newer ones linger; false: the next call of
 *   raw_timers() frees the connection
 */
void raw_conn_linger(struct raw_conn *c, bool lingers);

/* ---------------------------------------------------------------- half-open connections */

#define RAW_HALF_OPEN_MAX 256u
#define RAW_HALF_OPEN_NS 5000000000ull

/*
 * May the sender of this HELLO have a half-open connection? @p shown: the sender has proven its
 * address, for raw_half_add().
 * @return false: the HELLO has been answered, by HELLO_RETRY or RESET, unless the limit of RESETs
 *   or a full queue prevented that
 */
bool raw_half_admit(struct raw_iface *iface, const struct weft_frame_view *v, bool *shown);
void raw_half_add(struct raw_conn *c, const struct weft_frame_view *v, bool shown);

/* The peer has proven its address: by a cookie, or by a token that only HELLO_ACK contains. */
void raw_half_shown(struct raw_conn *c);

#endif /* WEFT_ENGINE_LIFETIME_H */
