/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/sealed_state.h
 * State of sealed interfaces and connections, for sealed.c and sealed_frame.c only.
 */
#ifndef WEFT_ENGINE_SEALED_STATE_H
#define WEFT_ENGINE_SEALED_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "seal/exchange.h"
#include "seal/seal.h"

struct raw_offer;

struct raw_seal {
	struct weft_cipher *cipher;
	struct weft_exchange_key *key; /* derived from the job key */
	struct weft_exchange_conf conf;
	struct weft_keyring further; /* keys of further lanes, with which peers may connect */
	struct weft_log_limit refused_log;
	uint64_t rekey_ns; /* age of a key at which the next one is due; 0 = no limit by age */
	const int *keylog; /* file descriptor (WEFT_KEYLOG); NULL: keys are not logged */
	/* The buffer of raw_sealed_spare(), with a reference of its own; NULL: none yet */
	struct rte_mbuf *spare;
};

struct raw_sealed {
	struct weft_sealed *keys; /* NULL: the initiator waits for HELLO_ACK */
	struct raw_offer *offer;  /* NULL: the connection is up */
	uint64_t tick_at;         /* iface->now from which the next frame checks the keys' age */
	uint64_t probe_at; /* iface->now from which the next probe that confirms a key may leave */
	uint16_t probe;    /* id of probes that confirm the present key */
	bool gone;         /* the peer supports GONE */
	bool further;      /* exchange 3: `lane` and `key_id` are valid */
	uint8_t lane;
	uint8_t key_id[WEFT_KEY_ID_LEN];
	bool farewell_due; /* the helper's GONE is sealed with an earlier key */
	uint32_t key_from; /* sequences from this one on were sealed with the present key only */
};

#endif /* WEFT_ENGINE_SEALED_STATE_H */
