/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file seal/seal.h
 * Sealed frames: the exchange of keys, and authenticated encryption. doc/sealing.md has the design.
 * engine/sealed.c uses it for the connections of a lane.
 *
 *	seal/crypto.c    the primitives of the exchange, which are libcrypto's
 *	seal/noise.c     Noise_NNpsk0_25519_AESGCM_SHA256
 *	seal/exchange.c  HELLO and HELLO_ACK: their bytes, their validation, the key schedule;
 *	                 keys of the further lanes of endpoints
 *	seal/greeting.c  the two messages by which a listener gives its address
 *	seal/cipher.c    AES-128-GCM of frames, which is libipsec-mb's
 *	seal/replay.c    the window of frame numbers that have arrived
 *	seal/sealed.c    a connection: numbers, nonces, keys and their rotation
 *
 * Nothing here reads a clock or makes random bytes: both are arguments, so that the simulator can
 * run it. base/secret.h has the memory for keys, and the file of the job key.
 */
#ifndef WEFT_SEAL_H
#define WEFT_SEAL_H

#include "seal/cipher.h"
#include "seal/exchange.h"
#include "seal/sealed.h"

#endif /* WEFT_SEAL_H */
