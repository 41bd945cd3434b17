/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file tag/source.h
 * Sources of messages: workers, by their id; and the end of an endpoint.
 */
#ifndef WEFT_TAG_SOURCE_H
#define WEFT_TAG_SOURCE_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/container.h"
#include "tag/match.h"

struct weft_msg_ep;
struct weft_tag_worker;

/**
 * A worker that sends messages. All endpoints to it share this. Messages that they have left
 * behind, and receives by #WEFT_OP_F_SOURCE_ID, preserve it when the endpoints are gone.
 */
struct weft_tag_source {
	struct weft_match_source match;
	struct weft_table_node by_id;
	uint32_t eps; /* endpoints to it */
};

/** @return the worker's source, or NULL: it has none */
struct weft_tag_source *weft_tag_source_find(const struct weft_tag_worker *tw, uint64_t id);
/** The worker's source, created if there is none. @return NULL = no memory */
struct weft_tag_source *weft_tag_source_get(struct weft_tag_worker *tw, uint64_t id);
/** The source has one endpoint less. It is freed if nothing else uses it. */
void weft_tag_source_leave(struct weft_tag_worker *tw, struct weft_tag_source *s);
/** All receives and messages are gone. */
void weft_tag_sources_fini(struct weft_tag_worker *tw);

/* ------------------------------------------------------------------ the end of an endpoint */

/**
 * The user has closed the endpoint: notify senders that wait for a match that there will be none.
 */
void weft_tag_closing(struct weft_msg_ep *me);
/** Incomplete messages from the endpoint end. */
void weft_tag_ended(struct weft_msg_ep *me, int status);
/** The endpoint is freed: complete messages stay. */
void weft_tag_detach(struct weft_msg_ep *me);

#endif /* WEFT_TAG_SOURCE_H */
