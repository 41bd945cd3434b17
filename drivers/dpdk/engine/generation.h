/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/generation.h
 * The generation, which distinguishes successive connections of one index.
 */
#ifndef WEFT_ENGINE_GENERATION_H
#define WEFT_ENGINE_GENERATION_H

#include <stdint.h>

#include "base/hash.h"

/* A keyed permutation of 2^16 numbers, and its inverse. */
uint16_t raw_generation(const struct weft_siphash_key *key, uint16_t number);
uint16_t raw_generation_number(const struct weft_siphash_key *key, uint16_t generation);

#endif /* WEFT_ENGINE_GENERATION_H */
