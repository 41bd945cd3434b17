/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/conn_state.h
 * Parts of a connection's state that most connections do not need, or not for long. They have
 * memory of their own, so that a host with many connections needs little. RAW_NO_MEMORY counts the
 * times that there was none.
 */
#ifndef WEFT_ENGINE_CONN_STATE_H
#define WEFT_ENGINE_CONN_STATE_H

#include "engine/conn.h"

/* Allocates what the handshake needs. @return 0 or -ENOMEM */
int raw_state_init(struct raw_conn *c);
void raw_state_free(struct raw_conn *c);

/* The handshake is over, or the connection is: c->hs and c->search are freed. */
void raw_state_connected(struct raw_conn *c);
/* Allocates c->search if there is none. @return 0 or -ENOMEM */
int raw_state_search(struct raw_conn *c);
void raw_state_search_end(struct raw_conn *c);

/*
 * Make room for the state of N paths; pointers to struct raw_path become invalid.
 * @return 0 or -ENOMEM
 */
int raw_state_paths(struct raw_conn *c, unsigned int n);

/* Allocates c->move if there is none. @return 0 or -ENOMEM */
int raw_state_move(struct raw_conn *c);

#endif /* WEFT_ENGINE_CONN_STATE_H */
