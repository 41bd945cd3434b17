/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/sealed_state.h
 * State of sealed interfaces and connections: of sealed.c and sealed_frame.c only.
 */
#ifndef WEFT_ENGINE_SEALED_STATE_H
#define WEFT_ENGINE_SEALED_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "seal/exchange.h"
#include "seal/seal.h"

/* The exchange, while the connection is made. */
struct raw_offer;

struct raw_seal {
	struct weft_cipher *cipher;
	struct weft_exchange_key *key; /* of the job */
	struct weft_exchange_conf conf;
	struct weft_keyring further; /* keys of further lanes, with which peers may connect */
	struct weft_log_limit refused_log;
	uint64_t rekey_ns; /* 0 = no limit */
	const int *keylog; /* NULL: keys are not logged */
	/* A buffer of which one reference stays here: see raw_sealed_spare(). NULL: none yet */
	struct rte_mbuf *spare;
};

struct raw_sealed {
	struct weft_sealed *keys; /* NULL: the initiator waits for HELLO_ACK */
	struct raw_offer *offer;  /* NULL: the connection is up */
	uint64_t tick_at;         /* iface->now of the next check of the keys' age */
	uint64_t probe_at;        /* iface->now of the next probe that confirms a key */
	uint16_t probe;           /* id of such probes: another one for each key */
	bool gone;                /* the peer reads GONE */
	bool further;             /* a lane of an endpoint that is not its first connection */
	uint8_t lane;
	uint8_t key_id[WEFT_KEY_ID_LEN];
	bool farewell_due; /* the helper's GONE is sealed with an earlier key */
	uint32_t key_from; /* first sequence that this end may have sealed with its key */
};

#endif /* WEFT_ENGINE_SEALED_STATE_H */
