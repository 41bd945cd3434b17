/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/crc32c.h
 * CRC-32C (Castagnoli) without special instructions: for messages at set-up, for processors without
 * the instruction, and as the reference for code that uses the instruction.
 */
#ifndef WEFT_BASE_CRC32C_H
#define WEFT_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#define WEFT_CRC32C_INIT 0xffffffffu

/**
 * Continue a CRC. Start with WEFT_CRC32C_INIT; the value on the wire is the complement of the last
 * result.
 */
uint32_t weft_crc32c_soft(uint32_t crc, const void *data, size_t len);

/**
 * The value for the wire of @p length bytes. The 4 bytes at offset @p at are its field and count as
 * 0.
 */
uint32_t weft_crc32c_of(const void *data, size_t length, size_t at);

#endif /* WEFT_BASE_CRC32C_H */
