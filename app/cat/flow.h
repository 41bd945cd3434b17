/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cat/flow.h
 * weft-cat copies standard input of each end to standard output of the other, over all lanes.
 *
 * A stream is a sequence of messages with one tag, which an empty message ends. The receiver posts
 * a receive again only when its bytes are written: a slow writer slows the sender, and no data
 * accumulates. Each end reports over TCP (OOB_RESULT) the number and the CRC of the bytes that it
 * has read, and of those that it has written. A stream is complete when both reports agree.
 */
#ifndef APP_CAT_FLOW_H
#define APP_CAT_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/peer.h"

#define CAT_CHUNK_MAX (64ull << 20)
#define CAT_WINDOW_MAX 1024u

struct cat_options {
	struct peer_options peer;
	uint64_t chunk;  /**< bytes of the largest message that this end sends */
	uint64_t window; /**< most messages in flight in each direction */
	bool listen;
	bool no_stdin;
	bool quiet;   /**< no progress line, even on a terminal */
	bool summary; /**< lines at the end even without a terminal */
};

struct cat;

struct cat *cat_new(const struct cat_options *opts, struct peer *p);

/** @return APP_OK or an exit code. The peer of cat_new() must be connected */
int cat_run(struct cat *cat);

/** Call after peer_end(): until then the lanes may use the buffers. @p cat may be NULL. */
void cat_free(struct cat *cat);

#endif /* APP_CAT_FLOW_H */
