/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/keylog.h
 * The keys of sealed frames, from files that WEFT_KEYLOG has written (doc/sealing.md, "Key log"),
 * and the opening of captured frames with them.
 */
#ifndef DUMP_KEYLOG_H
#define DUMP_KEYLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dump_keylog;

enum dump_opened {
	DUMP_NO_KEY,
	DUMP_OPENED,
	DUMP_BAD_TAG, /**< changed on its way, or forged */
};

/** @return NULL: @p why has the error; also for a file without keys, or a build without sealing */
struct dump_keylog *dump_keylog_load(const char *name, char *why, size_t why_len);

/**
 * Open a sealed frame. A frame that the capture has cut is decrypted as far as it is there, without
 * a check of its tag. That takes a whole frame of its direction that was opened before; else the
 * result is DUMP_NO_KEY.
 * @param lane    from the lane header on; at least WEFT_SEALED_HEAD bytes
 * @param cap     bytes that were captured
 * @param length  the length in the lane header; the tag follows
 * @param plain   the plain frame, up to the length or the cut; valid until the next call
 */
enum dump_opened dump_keylog_open(struct dump_keylog *k, const uint8_t *lane, uint32_t cap,
				  uint32_t length, const uint8_t **plain);

/**
 * Return to the first keys, before captures are read again from their beginning.
 * @param k  NULL = none. @return false: no memory
 */
bool dump_keylog_rewind(struct dump_keylog *k);

void dump_keylog_free(struct dump_keylog *k);

#endif /* DUMP_KEYLOG_H */
