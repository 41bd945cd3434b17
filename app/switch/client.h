/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch/client.h
 * The server's side of memif's control messages, in the control thread.
 */
#ifndef APP_SWITCH_CLIENT_H
#define APP_SWITCH_CLIENT_H

#include "switch/switch.h"

void sw_conn_init(struct sw_conn *c);
void sw_conn_accept(struct sw *s, uint64_t now);

/** @param half  number of a connection that has not sent the secret of a port yet */
void sw_half_event(struct sw *s, unsigned int half, uint64_t now);
void sw_conn_event(struct sw *s, unsigned int port);

void sw_conn_end(struct sw *s, unsigned int port);
/** Close connections that have not sent the secret 2 s, or their rings 5 s, after accept(). */
void sw_half_expire(struct sw *s, uint64_t now);

/** The maximum of a client's memory in bytes: two rings with buffers, and a table of farewells. */
size_t sw_region_max(unsigned int log2_ring, uint32_t bsize);

#endif /* APP_SWITCH_CLIENT_H */
