/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/generation.h
 * What tells connections of one index apart.
 */
#ifndef WEFT_ENGINE_GENERATION_H
#define WEFT_ENGINE_GENERATION_H

#include <stdint.h>

#include "base/siphash.h"

/* Any of 2^16 numbers to another one, each to its own, as the key says; and back. */
uint16_t raw_generation(const struct weft_siphash_key *key, uint16_t number);
uint16_t raw_generation_number(const struct weft_siphash_key *key, uint16_t generation);

#endif /* WEFT_ENGINE_GENERATION_H */
