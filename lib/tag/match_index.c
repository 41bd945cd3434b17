/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Indexes of unexpected messages by their tag under a mask, for searches with wildcards. An index
 * is made when a search had to compare many messages, and freed with its last message. It is
 * replaced only after WEFT_MATCH_IDLE searches without it, so that alternating masks do not rebuild
 * it each time. Without memory for its nodes an index is dropped, and searches run without it.
 */

#include "tag/match_index.h"

#include <stdlib.h>

struct weft_match_node {
	TAILQ_ENTRY(weft_match_node) link; /* of the bucket, in arrival order */
	struct weft_match_node *next;      /* next node of the message */
	struct weft_match_msg *msg;
	struct weft_match_index *index;
};

TAILQ_HEAD(weft_match_nodes, weft_match_node);

static struct weft_match_nodes *index_bucket(const struct weft_match *m,
					     const struct weft_match_index *x,
					     const struct weft_match_source *source, uint64_t tag,
					     uint16_t channel)
{
	uint64_t key =
		(tag & x->mask) ^ (x->sourced ? source->key : 0) ^ weft_match_chan_key(channel);

	return &x->table[weft_match_bucket(m, key, x->bits)];
}

static void drop_node(struct weft_match *m, struct weft_match_node *n)
{
	struct weft_match_index *x = n->index;

	TAILQ_REMOVE(index_bucket(m, x, n->msg->source, n->msg->tag, n->msg->channel), n, link);
	x->num--;
	free(n);
}

static void index_remove(struct weft_match *m, struct weft_match_index *x,
			 struct weft_match_msg *msg)
{
	struct weft_match_node **p = &msg->nodes, *n;

	while ((n = *p) && n->index != x)
		p = &n->next;
	if (n) {
		*p = n->next;
		drop_node(m, n);
	}
}

static void drop_index(struct weft_match *m, struct weft_match_index *x)
{
	struct weft_match_msg *msg;

	if (x->num)
		TAILQ_FOREACH(msg, &m->msgs, arrival_link)
			index_remove(m, x, msg);
	free(x->table);
	x->table = NULL;
	m->num_index--;
}

static bool put_in(struct weft_match *m, struct weft_match_index *x, struct weft_match_msg *msg)
{
	struct weft_match_node *n;

	if (x->sourced && !msg->source)
		return true; /* no search can name its source any more */
	n = malloc(sizeof(*n));
	if (!n)
		return false;
	*n = (struct weft_match_node){.next = msg->nodes, .msg = msg, .index = x};
	msg->nodes = n;
	TAILQ_INSERT_TAIL(index_bucket(m, x, msg->source, msg->tag, msg->channel), n, link);
	x->num++;
	return true;
}

static bool index_fill(struct weft_match *m, struct weft_match_index *x)
{
	struct weft_match_msg *msg;
	unsigned int bits = 8;

	while (((size_t)1 << bits) < m->num_msgs)
		bits++;
	x->table = malloc(sizeof(*x->table) << bits);
	if (!x->table)
		return false;
	m->num_index++;
	x->bits = bits;
	x->num = 0;
	for (size_t i = 0; i < (size_t)1 << bits; i++)
		TAILQ_INIT(&x->table[i]);
	TAILQ_FOREACH(msg, &m->msgs, arrival_link) {
		if (!put_in(m, x, msg)) {
			drop_index(m, x);
			return false;
		}
	}
	return true;
}

void weft_match_index_make(struct weft_match *m, uint64_t mask, bool sourced)
{
	struct weft_match_index *x = NULL, *i;

	for (i = m->index; i < m->index + WEFT_MATCH_INDEXES; i++) {
		if (!i->table) {
			x = i;
			break;
		}
		if (m->searches - i->used > WEFT_MATCH_IDLE && (!x || i->used < x->used))
			x = i;
	}
	if (!x)
		return;
	if (x->table)
		drop_index(m, x);
	x->mask = mask;
	x->sourced = sourced;
	x->used = m->searches;
	index_fill(m, x);
}

struct weft_match_index *weft_match_index_of(struct weft_match *m, uint64_t mask, bool sourced)
{
	struct weft_match_index *x;

	for (x = m->index; x < m->index + WEFT_MATCH_INDEXES; x++) {
		if (x->table && x->mask == mask && x->sourced == sourced) {
			x->used = m->searches;
			return x;
		}
	}
	return NULL;
}

struct weft_match_msg *weft_match_index_find(struct weft_match *m, struct weft_match_index *x,
					     const struct weft_match_source *source, uint64_t tag,
					     struct weft_match_chan chan)
{
	struct weft_match_node *n;

	TAILQ_FOREACH(n, index_bucket(m, x, source, tag, chan.channel), link) {
		m->msg_looks++;
		if (((n->msg->tag ^ tag) & x->mask) == 0 && (!source || n->msg->source == source) &&
		    n->msg->channel == chan.channel && (!chan.from || n->msg->from == chan.from))
			return n->msg;
	}
	return NULL;
}

void weft_match_index_add(struct weft_match *m, struct weft_match_msg *msg)
{
	struct weft_match_index *x;

	for (x = m->index; x < m->index + WEFT_MATCH_INDEXES; x++) {
		if (!x->table)
			continue;
		if (!put_in(m, x, msg)) {
			drop_index(m, x);
		} else if (x->num > (size_t)2 << x->bits) {
			drop_index(m, x);
			index_fill(m, x);
		}
	}
}

void weft_match_index_forget(struct weft_match *m, struct weft_match_msg *msg, bool sourced)
{
	struct weft_match_node **p = &msg->nodes, *n;
	struct weft_match_index *x;

	while ((n = *p)) {
		x = n->index;
		if (sourced && !x->sourced) {
			p = &n->next;
			continue;
		}
		*p = n->next;
		drop_node(m, n);
		if (x->num == 0)
			drop_index(m, x);
	}
}

void weft_match_index_fini(struct weft_match *m)
{
	for (struct weft_match_index *x = m->index; x < m->index + WEFT_MATCH_INDEXES; x++) {
		if (x->table)
			drop_index(m, x);
	}
}
