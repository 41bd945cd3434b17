/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/boot.h
 * Boot addresses: enough to reach a worker, in 56 bytes. The worker sends its whole address once it
 * is reached (wireup/learn.c). doc/wire.md has the bytes, core/wire_conn.h the structure.
 */
#ifndef WEFT_CORE_BOOT_H
#define WEFT_CORE_BOOT_H

#include "core/address.h"
#include "lane_boot.h"

struct weft_boot {
	uint64_t worker_id, secret;
	uint64_t digest; /**< weft_address_digest() of the whole address */
	uint32_t host;   /**< low half of the host's id; 0 = not known */
	uint8_t major;
	uint8_t kind;      /**< enum weft_lane_boot_kind of the interface; NONE = no network */
	uint8_t index;     /**< of it at its worker */
	uint8_t host_lane; /**< 1 + index of the interface inside the host; 0 = none */
	struct weft_lane_boot iface;
};

/** Do the first bytes identify a boot address? */
bool weft_boot_is(const void *buf, size_t length);
/** @param buf  WEFT_BOOT_ADDRESS_MAX bytes. @return bytes written */
size_t weft_boot_pack(const struct weft_boot *b, void *buf);
/**
 * Unpack; every field is checked before it is used.
 * @param why  gets a sentence on error; may be NULL
 * @return 0, -EINVAL (truncated, damaged), -EPROTONOSUPPORT (another major version)
 */
int weft_boot_unpack(struct weft_boot *b, const void *buf, size_t length, char *why,
		     size_t why_len);

#endif /* WEFT_CORE_BOOT_H */
