/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/conn_table.h
 * The connections of an iface. Finds them by a received frame, by a HELLO, by a next hop, and by
 * the time of their next check. Assigns their indices and the generations of these.
 *
 * A connection is in by_tx_clock while frames of it are outstanding, and in by_live_clock with its
 * next keepalive or handshake step: an idle connection costs its share of keepalives and nothing
 * else.
 *
 * DPDK's rte_timer does not fit. It reads the CPU's cycle counter. The engine has clocks of its
 * own, which stop while the worker does not poll (engine/clock.h), and virtual time in the
 * simulator. Its lists belong to lcores, and a worker may be any thread. Entering a timer takes a
 * lock and a walk; here a timer is entered once per connection and expiry, not per frame. A timer
 * wheel would round the deadlines that a sleeping worker needs.
 */
#ifndef WEFT_ENGINE_CONN_TABLE_H
#define WEFT_ENGINE_CONN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#include "base/hash.h"
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
/* The connection waits for ARP, and is in iface->resolving; or it waits no more. */
void raw_table_resolving(struct raw_conn *c, bool yes);
void raw_table_fini(struct raw_iface *iface);

/* A keyed permutation of 2^16 numbers, and its inverse. */
uint16_t raw_generation(const struct weft_siphash_key *key, uint16_t number);
uint16_t raw_generation_number(const struct weft_siphash_key *key, uint16_t generation);

/* ---------------------------------------------------------------- times of the next checks */

void raw_deadline_et_sooner(struct raw_conn *c, uint64_t t);

/*
 * raw_timers() checks the connection at @p t, or before, and then finds out itself what is due: a
 * timer that is postponed, as by every acknowledgement, has no cost here.
 */
static inline void raw_deadline_tx(struct raw_conn *c, uint64_t t)
{
	if (unlikely(t < c->tx_clock_at))
		raw_deadline_et_sooner(c, t);
}

void raw_deadline_live(struct raw_conn *c, uint64_t t);
void raw_deadlines_forget(struct raw_conn *c);
#endif /* WEFT_ENGINE_CONN_TABLE_H */
