/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cat/cat.h
 * weft-cat: options (cat/cat.c) and the two streams (cat/flow.c).
 *
 * A stream is a row of messages with one tag, each at most a chunk long, and an empty one at its
 * end. Its receiver has a window of receives posted and posts one again only when its bytes are
 * written: a slow writer slows the sender, and nothing piles up. When the empty message has come
 * and all is written, the receiver reports to the sender over TCP how many bytes with which CRC it
 * wrote (RESULT); the sender has reported what it read. A stream is done when the two agree.
 */
#ifndef APP_CAT_H
#define APP_CAT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/peer.h"

#define CAT_CHUNK_MAX (64ull << 20)
#define CAT_WINDOW_MAX 1024u

struct cat_options {
	struct peer_options peer;
	uint64_t chunk;  /**< largest message */
	uint64_t window; /**< messages in flight */
	bool listen;
	bool no_stdin;
	bool quiet;   /**< no progress line, whatever stderr is */
	bool summary; /**< a line at the end, whatever stderr is */
};

struct cat;

/** @return NULL without memory */
struct cat *cat_new(const struct cat_options *opts, struct peer *p);

/** Both streams, once the peer is connected. @return APP_OK or an exit code */
int cat_run(struct cat *cat);

/** Only after peer_end(): until then the lanes may hold the buffers. NULL is allowed. */
void cat_free(struct cat *cat);

#endif /* APP_CAT_H */
