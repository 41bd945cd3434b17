/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file seal/keyring.h
 * Keys of WEFT_EXCHANGE_NEXT with which peers may connect, by the key id in their hello. Each is
 * of an endpoint, which owns it.
 */
#ifndef WEFT_SEAL_KEYRING_H
#define WEFT_SEAL_KEYRING_H

#include <stdint.h>

#include "base/container.h"
#include "seal/exchange.h"

/** All zero = empty. Key ids are hashes of secrets, so no seed is necessary. */
struct weft_keyring {
	struct weft_table by_id;
};

/** @return 0, also when it is there; -ENOMEM */
int weft_keyring_add(struct weft_keyring *r, const struct weft_exchange_key *key);
/** @return NULL: there is none */
const struct weft_exchange_key *weft_keyring_find(const struct weft_keyring *r,
						  const uint8_t id[WEFT_KEY_ID_LEN]);
void weft_keyring_remove(struct weft_keyring *r, const struct weft_exchange_key *key);
/** The keys stay their owners'. */
void weft_keyring_fini(struct weft_keyring *r);

#endif /* WEFT_SEAL_KEYRING_H */
