/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/wire_conn.h
 * Structures for connecting workers: wire-up messages, worker addresses, remote keys. core/wire.def
 * has them; here are their limits. wireup/codec.c, core/address.c and rma/rkey.c validate them.
 */
#ifndef WEFT_WIRE_CONN_H
#define WEFT_WIRE_CONN_H

#include <stddef.h>

#include "core/wire_conn_def.h"
#include "core/wire_types.h"

/** weft_wire_wireup.lane of an ERROR that ends the whole endpoint. */
#define WEFT_WIREUP_ALL_LANES 0xff

/** The maximum length of the records of one WIREUP message, over all its pieces. */
#define WEFT_WIREUP_MAX 8192

#define WEFT_ADDRESS_MAGIC 0x54464557u  /* "WEFT" */
#define WEFT_BOOT_ADDRESS_MAGIC 0x4657u /* "WF" */
#define WEFT_RKEY_MAGIC 0x594b5457u     /* "WTKY" */

/** The maximum number of domains, and of workers, in one key. */
#define WEFT_RKEY_DOMAINS 16
#define WEFT_RKEY_WORKERS 64

/*
 * The bytes before are the same in every version, so that a peer of another version gets an answer
 * that names both, and a damaged address is distinguished from one of another version.
 */
static_assert(offsetof(struct weft_wire_wireup, src_secret) == 48, "same in every version");
static_assert(offsetof(struct weft_wire_address, worker_id) == 16, "same in every version");

#endif /* WEFT_WIRE_CONN_H */
