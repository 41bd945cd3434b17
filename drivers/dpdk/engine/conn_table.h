/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/conn_table.h
 * Which connection a frame is for.
 */
#ifndef WEFT_ENGINE_CONN_TABLE_H
#define WEFT_ENGINE_CONN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/conn.h"
#include "engine/iface.h"

/* What incoming frames are looked up by, without touching the connection. */
struct raw_ref {
	uint32_t id;
	uint32_t token;
	struct raw_conn *conn; /* NULL = free */
};

/* Whose the last connection of an index was that is no more. A half-open one is nobody's yet. */
struct raw_gone {
	uint32_t ip;
	uint8_t mac[6];
	bool known, half;
};

/*
 * A free index. One goes round through all free ones before it is used again. @return 0 or -ENOSPC
 */
int raw_table_take(struct raw_iface *iface, uint32_t *index);
void raw_table_give(struct raw_iface *iface, uint32_t index);
/* The connection that was made for this very HELLO, or NULL. */
struct raw_conn *raw_table_hello(struct raw_iface *iface, const struct weft_frame_hello *h);
/* The peer made it, and its numbers at the peer are known and stay. */
void raw_table_hello_add(struct raw_conn *c);
void raw_table_hello_remove(struct raw_conn *c);
/* The connection is up, until it ends: it is in the list of its next hop. */
void raw_table_hop_add(struct raw_conn *c);
void raw_table_hop_remove(struct raw_conn *c);
/* Of connections by this hop, and some others. NULL: there is none. */
struct raw_hop_list *raw_table_hop(struct raw_iface *iface, uint32_t hop_ip);
void raw_table_fini(struct raw_iface *iface);

#endif /* WEFT_ENGINE_CONN_TABLE_H */
