/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/conn_table.h
 * Finds connections: by a received frame, by a HELLO, by a next hop. Assigns their indices.
 */
#ifndef WEFT_ENGINE_CONN_TABLE_H
#define WEFT_ENGINE_CONN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/conn.h"
#include "engine/iface.h"

/* The keys by which received frames are looked up, without touching the connection. */
struct raw_ref {
	uint32_t id;
	uint32_t token;
	struct raw_conn *conn; /* NULL = free */
};

/* The peer of the last ended connection of an index. A half-open one had not been established. */
struct raw_gone {
	uint32_t ip;
	uint8_t mac[6];
	bool known, half;
};

/*
 * Takes a free index. Indices are used in turn: the one that has been free for longest is next.
 * @return 0 or -ENOSPC
 */
int raw_table_take(struct raw_iface *iface, uint32_t *index);
void raw_table_give(struct raw_iface *iface, uint32_t index);
/* The connection that was made for this HELLO, or NULL. */
struct raw_conn *raw_table_hello(struct raw_iface *iface, const struct weft_frame_hello *h);
/* Enters a connection that the peer has initiated: the peer's numbers are known and constant. */
void raw_table_hello_add(struct raw_conn *c);
void raw_table_hello_remove(struct raw_conn *c);
/* While a connection is up, it is in the list of its next hop. */
void raw_table_hop_add(struct raw_conn *c);
void raw_table_hop_remove(struct raw_conn *c);
/*
 * The list of the connections over this hop, which contains some others, too. NULL: there is none.
 */
struct raw_hop_list *raw_table_hop(struct raw_iface *iface, uint32_t hop_ip);
void raw_table_fini(struct raw_iface *iface);

#endif /* WEFT_ENGINE_CONN_TABLE_H */
