/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/conn_state.h
 * Parts of a connection's state that most connections do not need, or not for long. They have
 * memory of their own, so that a host with many connections needs little. RAW_NO_MEMORY counts the
 * times that there was none.
 */
#ifndef WEFT_ENGINE_CONN_STATE_H
#define WEFT_ENGINE_CONN_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/conn.h"

#define RAW_HS_RETRY_MIN 1000000ull
#define RAW_HS_RETRY_MAX 100000000ull

/*
 * The handshake's measurement of the path (engine/path_probe.c). Times are ns of the platform's
 * clock.
 */
struct raw_measure {
	uint64_t begin;
	uint64_t until; /* initiator: live_clock at which the train ends */
	uint64_t sent;  /* the last ping (initiator), the last answer to one (responder) */
	uint64_t last;  /* the last frame of the train: acknowledged, or received (responder) */
	uint64_t mark;  /* begin of the present stretch of the train */
	uint64_t slow_mark;
	float best;           /* ns per frame of the fastest stretch; 0 = none yet */
	uint16_t pings, same; /* pings sent; samples since the best one */
	uint16_t out, done;   /* frames of the train: sent, finished */
	uint16_t id;          /* responder: of the last ping */
};

/*
 * State of a connection that is being made: it is freed when the connection is up, has failed, or
 * is closed.
 */
struct raw_hs {
	uint64_t cookie; /* initiator: from HELLO_RETRY */
	bool late;       /* the log has a line about the slow handshake */

	/* Responder: the half-open entry (engine/half_open.c). */
	TAILQ_ENTRY(raw_conn) half_link;
	uint8_t half_bucket, half_mac;
	bool half_shown;   /* the peer has proven that it receives at its address */
	bool mac_unproven; /* ARP has not confirmed the source MAC of HELLO yet */
	uint8_t hello_mac[6];

	/* The peer's, from HELLO. */
	uint32_t peer_rx_frames;
	uint32_t peer_rx_seqs; /* sequences that the peer remembers */
	uint8_t peer_paths;

	/* The search for paths (engine/path_probe.c). */
	uint8_t small_acks;  /* answers over path 0 */
	uint16_t last_id;    /* of the last probe before */
	uint16_t path_found; /* initiator: bit k: path k has its ports */

	struct raw_measure measure;
};

/* Unproven indications that the peer is gone or has moved. */
enum raw_hint { RAW_HINT_ARP, RAW_HINT_ICMP, RAW_HINT_MAC, RAW_HINTS };

/* Exists from the first hint, CHALLENGE or silence of the peer on. Times are live_clock. */
struct raw_move {
	/* The search for the peer's MAC address. */
	uint64_t next;       /* no search before */
	uint64_t answered;   /* bit k: the peer's CHALLENGE newest - k */
	uint32_t newest;     /* of the peer's CHALLENGEs that were answered */
	uint32_t challenges; /* number of our CHALLENGEs */
	uint32_t over;       /* those of them that were before the last move */
	uint32_t next_mac;   /* next index into the MACs that claim the address */

	/* Hints. */
	struct {
		uint64_t next;     /* no further hint of this kind is checked before */
		uint8_t doublings; /* hints checked since a calm time: each doubles the wait */
	} hint[RAW_HINTS];
	uint64_t hint_since; /* when the hint came that is being checked */
	uint64_t query_at;   /* the next query; 0 = no hint is being checked */
	uint8_t queries;     /* queries to send, unless the peer answers */
};

/* Allocates what the handshake needs. @return 0 or -ENOMEM */
int raw_state_init(struct raw_conn *c);
void raw_state_free(struct raw_conn *c);

/* The handshake is over, or the connection is: c->hs and c->search are freed. */
void raw_state_connected(struct raw_conn *c);
/*
 * Make room for the state of N paths; pointers to struct raw_path become invalid.
 * @return 0 or -ENOMEM
 */
int raw_state_paths(struct raw_conn *c, unsigned int n);

/* Allocates c->move if there is none. @return 0 or -ENOMEM */
int raw_state_move(struct raw_conn *c);

#endif /* WEFT_ENGINE_CONN_STATE_H */
