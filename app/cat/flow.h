/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cat/flow.h
 * weft-cat: options (cat/cat.c) and the two streams (cat/flow.c).
 *
 * A stream is a sequence of messages with one tag, each at most a chunk long. An empty message ends
 * it. The receiver keeps a window of receives posted, and posts one again only when its bytes are
 * written: a slow writer slows the sender, and no data accumulates. After the empty message, when
 * all bytes are written, the receiver reports to the sender over TCP how many bytes it wrote, and
 * their CRC (RESULT). The sender has reported the same of its input. A stream is complete when the
 * two reports agree.
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
	uint64_t chunk;  /**< bytes of the largest message */
	uint64_t window; /**< messages in flight in each direction, at most */
	bool listen;
	bool no_stdin;
	bool quiet;   /**< no progress line, also on a terminal */
	bool summary; /**< lines at the end, also without a terminal */
};

struct cat;

/** @return NULL when memory is exhausted */
struct cat *cat_new(const struct cat_options *opts, struct peer *p);

/** Run both streams; the peer is connected. @return APP_OK or an exit code */
int cat_run(struct cat *cat);

/** Free, after peer_end(): until then the lanes may use the buffers. NULL is allowed. */
void cat_free(struct cat *cat);

#endif /* APP_CAT_FLOW_H */
