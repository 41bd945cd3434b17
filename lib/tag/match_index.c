/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Indexes of unexpected messages by their tag under a mask, with or without their source. They
 * serve searches with wildcards. These would otherwise compare one message after another, however
 * many a peer has sent that no receive matches. An index is made when a search had to compare many
 * messages, and freed with its last message. There are few indexes. An unused one is replaced by
 * that of another mask, but only after WEFT_MATCH_IDLE other searches, so that alternating masks do
 * not rebuild it each time.
 *
 * Unlike the tables, an index allocates its memory: a node for each message. Without memory the
 * search runs without an index.
 */

#include <stdlib.h>

#include "tag/match.h"

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

/* Remove the message from @p x. */
static void take_out(struct weft_match *m, struct weft_match_index *x, struct weft_match_msg *msg)
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
			take_out(m, x, msg);
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

void weft_match_index_remove(struct weft_match *m, struct weft_match_msg *msg, bool sourced)
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

void weft_match_indexes_fini(struct weft_match *m)
{
	struct weft_match_index *x;

	for (x = m->index; x < m->index + WEFT_MATCH_INDEXES; x++) {
		if (x->table)
			drop_index(m, x);
	}
}

/* ------------------------------------------------------------------ masks of receives */

/*
 * The masks of posted receives, without a limit to their number. The masks with receives are in one
 * array without gaps, because an arriving message is compared with each of them. A table by mask
 * finds the mask of a receive to be posted. A mask that has lost its last receive is removed from
 * the array and stays in the table: programs that post one receive at a time use the same mask
 * again.
 */

#define FIRST_BITS 4

static struct weft_match_same *same_of(const struct weft_match *m, uint64_t mask)
{
	return &m->mask_table[weft_match_bucket(m, mask, m->mask_bits)];
}

/* Memory for twice the number of masks. */
static int masks_grow(struct weft_match *m)
{
	unsigned int bits = m->mask_table ? m->mask_bits + 1 : FIRST_BITS;
	size_t n = (size_t)1 << bits, before = m->mask_table ? n / 2 : 0;
	struct weft_match_same *table = calloc(n, sizeof(*table)), *old = m->mask_table;
	struct weft_match_used *used = realloc(m->used, n * sizeof(*used));
	struct weft_match_mask *k;

	if (used)
		m->used = used;
	if (!table || !used) {
		free(table);
		return -1;
	}
	m->mask_table = table;
	m->mask_bits = bits;
	for (size_t i = 0; i < before; i++) {
		while ((k = SLIST_FIRST(&old[i]))) {
			SLIST_REMOVE_HEAD(&old[i], same);
			SLIST_INSERT_HEAD(same_of(m, k->mask), k, same);
		}
	}
	free(old);
	return 0;
}

/* Memory for a mask that is not in the table: that of an idle mask, or new. */
static struct weft_match_mask *new_mask(struct weft_match *m)
{
	struct weft_match_mask *k = TAILQ_FIRST(&m->idle);

	if (k && m->num_idle >= WEFT_MATCH_MASKS_IDLE) {
		SLIST_REMOVE(same_of(m, k->mask), k, weft_match_mask, same);
		return k;
	}
	if ((!m->mask_table || m->num_masks >> m->mask_bits) && masks_grow(m))
		return NULL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	m->num_masks++;
	m->num_idle++;
	TAILQ_INSERT_TAIL(&m->idle, k, idle_link);
	return k;
}

static struct weft_match_mask *find_mask(const struct weft_match *m, uint64_t mask)
{
	struct weft_match_mask *k;

	if (!m->mask_table)
		return NULL;
	SLIST_FOREACH(k, same_of(m, mask), same) {
		if (k->mask == mask)
			return k;
	}
	return NULL;
}

struct weft_match_mask *weft_match_mask_get(struct weft_match *m, uint64_t tag, uint64_t mask)
{
	struct weft_match_mask *k = m->last_mask;

	if (!k || k->mask != mask)
		k = find_mask(m, mask);
	if (!k) {
		k = new_mask(m);
		if (!k)
			return NULL;
		k->mask = mask;
		/* One-to-one, and 0 for the full mask only, whose key is the tag alone. */
		k->key = ~mask * 0xa0761d6478bd642full;
		SLIST_INSERT_HEAD(same_of(m, mask), k, same);
	}
	m->last_mask = k;
	if (k->num == 0) {
		TAILQ_REMOVE(&m->idle, k, idle_link);
		m->num_idle--;
		k->at = m->num_used++;
		m->used[k->at] = (struct weft_match_used){.agreed = mask, .value = tag, .mask = k};
	}
	return k;
}

void weft_match_mask_idle(struct weft_match *m, struct weft_match_mask *k)
{
	struct weft_match_used *last = &m->used[--m->num_used];

	m->used[k->at] = *last;
	last->mask->at = k->at;
	TAILQ_INSERT_TAIL(&m->idle, k, idle_link);
	m->num_idle++;
}

void weft_match_masks_fini(struct weft_match *m)
{
	struct weft_match_mask *k;

	for (size_t i = 0; m->mask_table && i < (size_t)1 << m->mask_bits; i++) {
		while ((k = SLIST_FIRST(&m->mask_table[i]))) {
			SLIST_REMOVE_HEAD(&m->mask_table[i], same);
			free(k);
		}
	}
	free(m->mask_table);
	free(m->used);
	m->mask_table = NULL;
	m->used = NULL;
	m->last_mask = NULL;
}
