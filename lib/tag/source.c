/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The source of messages is a worker, identified by its id, whatever endpoints lead to it. So the
 * user can receive messages of a peer by its address after its connection has closed, and can post
 * such a receive without a connection.
 *
 * A source without endpoints stays while it has messages or receives. Whether it has any is checked
 * when the table is full, so that messages need no counter.
 */

#include <errno.h>
#include <stdlib.h>

#include "tag/tag.h"

#define FIRST_BITS 4

static struct weft_tag_sources *list_of(const struct weft_tag_worker *tw, uint64_t id)
{
	/* Peers choose their ids, so the hash is seeded. */
	return &tw->sources[weft_match_bucket(&tw->match, id, tw->source_bits)];
}

int weft_tag_sources_init(struct weft_tag_worker *tw)
{
	tw->source_bits = FIRST_BITS;
	tw->sources = calloc((size_t)1 << FIRST_BITS, sizeof(*tw->sources));
	return tw->sources ? 0 : -ENOMEM;
}

static void source_drop(struct weft_tag_worker *tw, struct weft_tag_source *s)
{
	weft_match_source_fini(&tw->match, &s->match);
	tw->num_sources--;
	free(s);
}

static bool source_unused(const struct weft_tag_source *s)
{
	return s->eps == 0 && TAILQ_EMPTY(&s->match.recvs) && TAILQ_EMPTY(&s->match.msgs);
}

static void sources_sweep(struct weft_tag_worker *tw)
{
	struct weft_tag_sources kept;
	struct weft_tag_source *s;

	for (size_t i = 0; i < (size_t)1 << tw->source_bits; i++) {
		SLIST_INIT(&kept);
		while ((s = SLIST_FIRST(&tw->sources[i]))) {
			SLIST_REMOVE_HEAD(&tw->sources[i], link);
			if (source_unused(s))
				source_drop(tw, s);
			else
				SLIST_INSERT_HEAD(&kept, s, link);
		}
		tw->sources[i] = kept;
	}
}

/* Twice the number of lists; without memory the present ones grow longer. */
static void sources_grow(struct weft_tag_worker *tw)
{
	struct weft_tag_sources *old = tw->sources;
	size_t n = (size_t)1 << tw->source_bits;
	struct weft_tag_source *s;

	tw->sources = calloc(2 * n, sizeof(*old));
	if (!tw->sources) {
		tw->sources = old;
		return;
	}
	tw->source_bits++;
	for (size_t i = 0; i < n; i++) {
		while ((s = SLIST_FIRST(&old[i]))) {
			SLIST_REMOVE_HEAD(&old[i], link);
			SLIST_INSERT_HEAD(list_of(tw, s->id), s, link);
		}
	}
	free(old);
}

struct weft_tag_source *weft_tag_source_find(const struct weft_tag_worker *tw, uint64_t id)
{
	struct weft_tag_source *s;

	SLIST_FOREACH(s, list_of(tw, id), link) {
		if (s->id == id)
			return s;
	}
	return NULL;
}

struct weft_tag_source *weft_tag_source_get(struct weft_tag_worker *tw, uint64_t id)
{
	struct weft_tag_source *s = weft_tag_source_find(tw, id);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	if (tw->num_sources >> tw->source_bits) {
		sources_sweep(tw);
		if (tw->num_sources >> (tw->source_bits - 1))
			sources_grow(tw);
	}
	s->id = id;
	weft_match_source_init(&tw->match, &s->match);
	SLIST_INSERT_HEAD(list_of(tw, id), s, link);
	tw->num_sources++;
	return s;
}

void weft_tag_source_leave(struct weft_tag_worker *tw, struct weft_tag_source *s)
{
	s->eps--;
	if (!source_unused(s))
		return;
	SLIST_REMOVE(list_of(tw, s->id), s, weft_tag_source, link);
	source_drop(tw, s);
}

void weft_tag_sources_fini(struct weft_tag_worker *tw)
{
	struct weft_tag_source *s;

	for (size_t i = 0; tw->sources && i < (size_t)1 << tw->source_bits; i++) {
		while ((s = SLIST_FIRST(&tw->sources[i]))) {
			SLIST_REMOVE_HEAD(&tw->sources[i], link);
			source_drop(tw, s);
		}
	}
	free(tw->sources);
	tw->sources = NULL;
}
