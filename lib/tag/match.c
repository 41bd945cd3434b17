/* SPDX-License-Identifier: BSD-3-Clause */

#include "tag/match.h"

#include <errno.h>
#include <stdlib.h>

#include "tag/match_index.h"

/* ------------------------------------------------------------------ masks of receives */

/*
 * The masks with receives are in one array without gaps, because an arriving message is compared
 * with each of them. A mask that has lost its last receive stays in the table by mask: programs
 * that post one receive at a time use the same mask again.
 */

#define FIRST_BITS 4

static struct weft_match_same *same_of(const struct weft_match *m, uint64_t mask)
{
	return &m->mask_table[weft_match_bucket(m, mask, m->mask_bits)];
}

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

/* Memory for a mask that is not in the table: that of an idle mask if there are many, or new. */
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

static void fill_buckets(struct weft_match *m);

/* The entry of a mask, which is idle until a receive with the mask gets into a bucket. */
static __attribute__((noinline)) struct weft_match_mask *mask_get(struct weft_match *m,
								  uint64_t mask)
{
	struct weft_match_mask *k = find_mask(m, mask);

	if (!k) {
		/* The masks of fresh receives may be idle: no entry may be replaced before. */
		fill_buckets(m);
		k = new_mask(m);
		if (!k)
			return NULL;
		k->mask = mask;
		/* One-to-one, and 0 for the full mask only, whose key is the tag alone. */
		k->key = ~mask * 0xa0761d6478bd642full;
		SLIST_INSERT_HEAD(same_of(m, mask), k, same);
	}
	m->last_mask = k;
	return k;
}

/* A receive with the mask gets into a bucket. */
static inline void mask_use(struct weft_match *m, struct weft_match_mask *k, uint64_t tag)
{
	struct weft_match_used *u;

	if (k->num++ == 0) {
		TAILQ_REMOVE(&m->idle, k, idle_link);
		m->num_idle--;
		k->at = m->num_used++;
		u = &m->used[k->at];
		*u = (struct weft_match_used){.agreed = k->mask, .value = tag, .mask = k};
	} else {
		u = &m->used[k->at];
		u->agreed &= ~(tag ^ u->value);
	}
}

static __attribute__((noinline)) void mask_idle(struct weft_match *m, struct weft_match_mask *k)
{
	struct weft_match_used *last = &m->used[--m->num_used];

	m->used[k->at] = *last;
	last->mask->at = k->at;
	TAILQ_INSERT_TAIL(&m->idle, k, idle_link);
	m->num_idle++;
}

/* ------------------------------------------------------------------ matching */

static inline uint64_t pair_key(const struct weft_match_source *s, uint64_t tag)
{
	return s ? tag ^ s->key : tag;
}

#define FROM_KEY 0x8ebc6af09c88c6e3ull

static inline struct weft_match_recvs *recv_bucket(const struct weft_match *m,
						   const struct weft_match_source *s, uint64_t tag)
{
	return &m->recv_table[weft_match_bucket(m, pair_key(s, tag), m->bits)];
}

static inline struct weft_match_recvs *bucket_for(const struct weft_match *m,
						  const struct weft_match_recv *r)
{
	uint64_t key = r->kind ? r->kind->key : 0;

	key ^= weft_match_chan_key(r->channel) ^ r->from * FROM_KEY;
	return recv_bucket(m, r->source, (r->tag & r->mask) ^ key);
}

static inline struct weft_match_msgs *tag_bucket(const struct weft_match *m, uint64_t tag,
						 uint16_t channel)
{
	return &m->tag_table[weft_match_bucket(m, tag ^ weft_match_chan_key(channel), m->bits)];
}

static inline struct weft_match_msgs *pair_bucket(const struct weft_match *m,
						  const struct weft_match_source *s, uint64_t tag,
						  uint16_t channel)
{
	return &m->pair_table[weft_match_bucket(m, pair_key(s, tag ^ weft_match_chan_key(channel)),
						m->bits)];
}

static inline bool is_exact(const struct weft_match_recv *r)
{
	return r->mask == UINT64_MAX;
}

size_t weft_match_table_size(unsigned int bits)
{
	return ((size_t)1 << bits) *
	       (sizeof(struct weft_match_recvs) + 2 * sizeof(struct weft_match_msgs));
}

static void set_tables(struct weft_match *m, void *mem, unsigned int bits)
{
	size_t n = (size_t)1 << bits;

	m->recv_table = mem;
	m->tag_table = (void *)(m->recv_table + n);
	m->pair_table = m->tag_table + n;
	m->bits = bits;
	m->load_limit = 2 * n;
	for (size_t i = 0; i < n; i++) {
		TAILQ_INIT(&m->recv_table[i]);
		TAILQ_INIT(&m->tag_table[i]);
		TAILQ_INIT(&m->pair_table[i]);
	}
}

void weft_match_init(struct weft_match *m, void *mem, unsigned int bits, uint64_t seed)
{
	*m = (struct weft_match){.order = 1, .multiplier = seed | 1};
	set_tables(m, mem, bits);
	LIST_INIT(&m->fresh);
	TAILQ_INIT(&m->msgs);
	TAILQ_INIT(&m->idle);
}

void weft_match_source_init(struct weft_match *m, struct weft_match_source *s)
{
	/* An odd multiple of a large odd constant: never 0, which means "no source". */
	s->key = (2 * m->next_key++ + 1) * 0xd1b54a32d192ed03ull;
	s->num_exact = 0;
	s->num_wild = 0;
	s->from_exact = 0;
	s->from_wild = 0;
	s->listed = false;
	TAILQ_INIT(&s->recvs);
	TAILQ_INIT(&s->msgs);
}

static void forget_seen(struct weft_match *m, struct weft_match_seen *seen)
{
	seen->last = NULL;
	m->num_seen--;
}

void weft_match_source_fini(struct weft_match *m, struct weft_match_source *s)
{
	struct weft_match_msg *msg;

	if (s->listed)
		LIST_REMOVE(s, fresh_link);
	for (unsigned int i = 0; i < WEFT_MATCH_SEEN; i++) {
		if (m->seen[i].last && m->seen[i].source == s)
			forget_seen(m, &m->seen[i]);
	}
	while ((msg = TAILQ_FIRST(&s->msgs))) {
		if (msg->nodes)
			weft_match_index_forget(m, msg, true);
		TAILQ_REMOVE(&s->msgs, msg, source_link);
		TAILQ_REMOVE(pair_bucket(m, s, msg->tag, msg->channel), msg, pair_link);
		msg->source = NULL;
	}
}

void *weft_match_grow(struct weft_match *m, void *mem, unsigned int bits)
{
	struct weft_match_recvs *old = m->recv_table;
	size_t n = (size_t)1 << m->bits;
	struct weft_match_recv *r;
	struct weft_match_msg *msg;

	/* Equal keys are in one old bucket, in order: their receives are appended in that order. */
	set_tables(m, mem, bits);
	for (size_t i = 0; i < n; i++) {
		while ((r = TAILQ_FIRST(&old[i]))) {
			TAILQ_REMOVE(&old[i], r, link);
			TAILQ_INSERT_TAIL(bucket_for(m, r), r, link);
		}
	}
	TAILQ_FOREACH(msg, &m->msgs, arrival_link) {
		TAILQ_INSERT_TAIL(tag_bucket(m, msg->tag, msg->channel), msg, tag_link);
		if (msg->source)
			TAILQ_INSERT_TAIL(pair_bucket(m, msg->source, msg->tag, msg->channel), msg,
					  pair_link);
	}
	return old;
}

static struct weft_match_recv *first_exact(const struct weft_match *m,
					   const struct weft_match_source *s, uint64_t tag,
					   struct weft_match_chan c)
{
	uint64_t key = weft_match_chan_key(c.channel) ^ c.from * FROM_KEY;
	struct weft_match_recv *r;

	TAILQ_FOREACH(r, recv_bucket(m, s, tag ^ key), link) {
		if (r->tag == tag && r->source == s && is_exact(r) && r->channel == c.channel &&
		    r->from == c.from)
			return r;
	}
	return NULL;
}

static inline struct weft_match_recv *earlier_recv(struct weft_match_recv *a,
						   struct weft_match_recv *b)
{
	return a && a->order < b->order ? a : b;
}

static inline struct weft_match_recv *earlier_of(struct weft_match *m,
						 const struct weft_match_mask *k,
						 const struct weft_match_source *s, uint64_t tag,
						 struct weft_match_chan c,
						 struct weft_match_recv *best)
{
	uint64_t key = k->key ^ weft_match_chan_key(c.channel) ^ c.from * FROM_KEY;
	struct weft_match_recv *r;

	TAILQ_FOREACH(r, recv_bucket(m, s, (tag & k->mask) ^ key), link) {
		m->looks++;
		if (((r->tag ^ tag) & k->mask) == 0 && r->mask == k->mask && r->source == s &&
		    r->channel == c.channel && r->from == c.from)
			return earlier_recv(best, r);
	}
	return best;
}

static struct weft_match_recv *earlier_wild(struct weft_match *m, struct weft_match_source *source,
					    uint64_t tag, struct weft_match_chan c,
					    struct weft_match_recv *best)
{
	const struct weft_match_chan any = {c.channel, 0};
	const struct weft_match_used *u = m->used, *end = u + m->num_used;
	const struct weft_match_mask *k;

	for (; u < end; u++) {
		/* All receives with the mask agree in these bits: no other tag can match. */
		if ((tag ^ u->value) & u->agreed)
			continue;
		k = u->mask;
		if (m->num_wild)
			best = earlier_of(m, k, NULL, tag, any, best);
		if (source->num_wild)
			best = earlier_of(m, k, source, tag, any, best);
		if (source->from_wild)
			best = earlier_of(m, k, source, tag, c, best);
	}
	return best;
}

static inline uint32_t *source_count(struct weft_match_source *s, const struct weft_match_recv *r)
{
	if (is_exact(r))
		return r->from ? &s->from_exact : &s->num_exact;
	return r->from ? &s->from_wild : &s->num_wild;
}

static inline void take_out(struct weft_match *m, struct weft_match_recv *r)
{
	struct weft_match_source *s = r->source;

	m->num_recvs--;
	if (s)
		TAILQ_REMOVE(&s->recvs, r, source_link);
	if (r->fresh) {
		m->num_fresh--;
		return;
	}
	if (s)
		*source_count(s, r) -= 1;
	else
		*(r->kind ? &m->num_wild : &m->num_exact) -= 1;
	TAILQ_REMOVE(bucket_for(m, r), r, link);
	if (r->kind && --r->kind->num == 0)
		mask_idle(m, r->kind);
}

static inline void put_in(struct weft_match *m, struct weft_match_recv *r)
{
	r->fresh = false;
	if (r->source)
		*source_count(r->source, r) += 1;
	else
		m->num_wild++;
	if (r->kind)
		mask_use(m, r->kind, r->tag);
	TAILQ_INSERT_TAIL(bucket_for(m, r), r, link);
}

static __attribute__((noinline)) void fill_buckets(struct weft_match *m)
{
	struct weft_match_recv *r, *first;
	struct weft_match_source *s;

	while ((s = LIST_FIRST(&m->fresh))) {
		LIST_REMOVE(s, fresh_link);
		s->listed = false;
		first = NULL;
		TAILQ_FOREACH_REVERSE(r, &s->recvs, weft_match_recvs, source_link)
		{
			if (!r->fresh)
				break;
			first = r;
		}
		for (r = first; r; r = TAILQ_NEXT(r, source_link))
			put_in(m, r);
	}
	m->num_fresh = 0;
}

/* The most common case: no receive that may match names the source or has a wildcard. */
static inline struct weft_match_recv *take_exact(struct weft_match *m, uint64_t tag,
						 uint16_t channel)
{
	struct weft_match_recvs *bucket = recv_bucket(m, NULL, tag ^ weft_match_chan_key(channel));
	struct weft_match_recv *r;

	TAILQ_FOREACH(r, bucket, link) {
		if (r->tag == tag && !r->source && is_exact(r) && r->channel == channel) {
			TAILQ_REMOVE(bucket, r, link);
			m->num_recvs--;
			m->num_exact--;
			return r;
		}
	}
	return NULL;
}

static __attribute__((noinline)) struct weft_match_recv *take_earliest(
	struct weft_match *m, struct weft_match_source *source, uint64_t tag,
	struct weft_match_chan chan)
{
	const struct weft_match_chan any = {chan.channel, 0};
	struct weft_match_recv *best = NULL, *r;

	if (m->num_fresh)
		fill_buckets(m);
	if (m->num_exact)
		best = first_exact(m, NULL, tag, any);
	if (source->num_exact) {
		r = first_exact(m, source, tag, any);
		if (r)
			best = earlier_recv(best, r);
	}
	if (source->from_exact) {
		r = first_exact(m, source, tag, chan);
		if (r)
			best = earlier_recv(best, r);
	}
	if (m->num_wild | source->num_wild | source->from_wild)
		best = earlier_wild(m, source, tag, chan, best);
	if (best)
		take_out(m, best);
	return best;
}

struct weft_match_recv *weft_match_arrive(struct weft_match *m, struct weft_match_source *source,
					  uint64_t tag, struct weft_match_chan chan)
{
	struct weft_match_recv *r;

	if (m->num_exact && !m->num_wild && TAILQ_EMPTY(&source->recvs))
		return take_exact(m, tag, chan.channel);
	if (m->num_exact | m->num_wild)
		return take_earliest(m, source, tag, chan);
	/* Only receives of the source may match, as mostly in programs of MPI. */
	r = TAILQ_FIRST(&source->recvs);
	if (r && ((r->tag ^ tag) & r->mask) == 0 &&
	    weft_match_takes(r->channel, r->from, chan.channel, chan.from)) {
		take_out(m, r);
		return r;
	}
	return r && TAILQ_NEXT(r, source_link) ? take_earliest(m, source, tag, chan) : NULL;
}

void weft_match_msg_add(struct weft_match *m, struct weft_match_msg *msg)
{
	m->num_msgs++;
	msg->nodes = NULL;
	TAILQ_INSERT_TAIL(&m->msgs, msg, arrival_link);
	TAILQ_INSERT_TAIL(tag_bucket(m, msg->tag, msg->channel), msg, tag_link);
	if (m->num_index)
		weft_match_index_add(m, msg);
	if (!msg->source)
		return;
	TAILQ_INSERT_TAIL(&msg->source->msgs, msg, source_link);
	TAILQ_INSERT_TAIL(pair_bucket(m, msg->source, msg->tag, msg->channel), msg, pair_link);
}

static void search_unsee(struct weft_match *m, struct weft_match_msg *msg)
{
	struct weft_match_seen *seen;

	for (unsigned int i = 0; i < WEFT_MATCH_SEEN; i++) {
		seen = &m->seen[i];
		if (seen->last != msg)
			continue;
		seen->last = seen->source ? TAILQ_PREV(msg, weft_match_msgs, source_link)
					  : TAILQ_PREV(msg, weft_match_msgs, arrival_link);
		if (!seen->last)
			m->num_seen--;
	}
}

void weft_match_msg_remove(struct weft_match *m, struct weft_match_msg *msg)
{
	m->num_msgs--;
	if (m->num_seen)
		search_unsee(m, msg);
	TAILQ_REMOVE(&m->msgs, msg, arrival_link);
	if (msg->nodes)
		weft_match_index_forget(m, msg, false);
	TAILQ_REMOVE(tag_bucket(m, msg->tag, msg->channel), msg, tag_link);
	if (!msg->source)
		return;
	TAILQ_REMOVE(&msg->source->msgs, msg, source_link);
	TAILQ_REMOVE(pair_bucket(m, msg->source, msg->tag, msg->channel), msg, pair_link);
}

static struct weft_match_msg *find_exact(const struct weft_match *m,
					 const struct weft_match_source *source, uint64_t tag,
					 struct weft_match_chan c)
{
	struct weft_match_msg *msg;

	if (!source) {
		TAILQ_FOREACH(msg, tag_bucket(m, tag, c.channel), tag_link) {
			if (msg->tag == tag &&
			    weft_match_takes(c.channel, c.from, msg->channel, msg->from))
				return msg;
		}
		return NULL;
	}
	TAILQ_FOREACH(msg, pair_bucket(m, source, tag, c.channel), pair_link) {
		if (msg->tag == tag && msg->source == source &&
		    weft_match_takes(c.channel, c.from, msg->channel, msg->from))
			return msg;
	}
	return NULL;
}

#define SEEN_LEAST 8 /* a search that compared no more messages is not worth a place in seen[] */

static struct weft_match_seen *seen_of(struct weft_match *m, const struct weft_match_source *source,
				       uint64_t tag, uint64_t mask, struct weft_match_chan c)
{
	struct weft_match_seen *seen;

	for (unsigned int i = 0; m->num_seen && i < WEFT_MATCH_SEEN; i++) {
		seen = &m->seen[i];
		if (seen->last && seen->source == source && seen->tag == tag &&
		    seen->mask == mask && seen->chan.channel == c.channel &&
		    seen->chan.from == c.from)
			return seen;
	}
	return NULL;
}

static void note_seen(struct weft_match *m, const struct weft_match_source *source, uint64_t tag,
		      uint64_t mask, struct weft_match_chan c, struct weft_match_msg *last)
{
	struct weft_match_seen *seen = &m->seen[m->next_seen++ % WEFT_MATCH_SEEN];

	m->num_seen += seen->last == NULL;
	*seen = (struct weft_match_seen){source, c, tag, mask, last};
}

static inline struct weft_match_msg *next_msg(const struct weft_match *m,
					      const struct weft_match_source *source,
					      const struct weft_match_msg *last)
{
	if (!last)
		return TAILQ_FIRST(source ? &source->msgs : &m->msgs);
	return source ? TAILQ_NEXT(last, source_link) : TAILQ_NEXT(last, arrival_link);
}

static struct weft_match_msg *find_wild(struct weft_match *m,
					const struct weft_match_source *source, uint64_t tag,
					uint64_t mask, struct weft_match_chan c)
{
	struct weft_match_index *x;
	struct weft_match_seen *seen;
	struct weft_match_msg *msg, *last;
	uint64_t before = m->msg_looks;

	m->searches++;
	x = m->num_index ? weft_match_index_of(m, mask, source != NULL) : NULL;
	if (x)
		return weft_match_index_find(m, x, source, tag, c);
	seen = seen_of(m, source, tag, mask, c);
	last = seen ? seen->last : NULL;
	while ((msg = next_msg(m, source, last))) {
		m->msg_looks++;
		if (((msg->tag ^ tag) & mask) == 0 &&
		    weft_match_takes(c.channel, c.from, msg->channel, msg->from))
			break;
		last = msg;
	}
	if (seen)
		seen->last = last;
	else if (m->msg_looks - before > SEEN_LEAST)
		note_seen(m, source, tag, mask, c, last);
	if (m->msg_looks - before > WEFT_MATCH_MANY)
		weft_match_index_make(m, mask, source != NULL);
	return msg;
}

struct weft_match_msg *weft_match_search(struct weft_match *m,
					 const struct weft_match_source *source, uint64_t tag,
					 uint64_t mask, struct weft_match_chan chan)
{
	return mask == UINT64_MAX ? find_exact(m, source, tag, chan)
				  : find_wild(m, source, tag, mask, chan);
}

static __attribute__((noinline)) int post_other(struct weft_match *m, struct weft_match_recv *r)
{
	struct weft_match_source *s = r->source;
	struct weft_match_mask *k = NULL;

	if (!is_exact(r)) {
		k = m->last_mask;
		if (!k || k->mask != r->mask)
			k = mask_get(m, r->mask);
		if (!k)
			return -ENOMEM;
	}
	r->kind = k;
	r->order = m->order++;
	m->num_recvs++;
	if (!s) {
		put_in(m, r);
		return 0;
	}
	if (m->num_fresh == WEFT_MATCH_FRESH)
		fill_buckets(m);
	m->num_fresh++;
	r->fresh = true;
	TAILQ_INSERT_TAIL(&s->recvs, r, source_link);
	if (!s->listed) {
		s->listed = true;
		LIST_INSERT_HEAD(&m->fresh, s, fresh_link);
	}
	return 0;
}

int weft_match_post(struct weft_match *m, struct weft_match_recv *r)
{
	/* The most common case: the full mask, and no source. */
	if (!is_exact(r) || r->source)
		return post_other(m, r);
	weft_match_post_exact(m, r, r->tag ^ weft_match_chan_key(r->channel));
	return 0;
}

void weft_match_cancel(struct weft_match *m, struct weft_match_recv *r)
{
	take_out(m, r);
}

struct weft_match_recv *weft_match_any_recv(struct weft_match *m)
{
	size_t n = (size_t)1 << m->bits;
	struct weft_match_source *s;
	struct weft_match_recv *r;

	if (m->num_recvs == 0)
		return NULL;
	LIST_FOREACH(s, &m->fresh, fresh_link) {
		r = TAILQ_LAST(&s->recvs, weft_match_recvs);
		if (r && r->fresh)
			return r;
	}
	/* The caller removes all receives one by one: buckets found empty are not checked again. */
	for (size_t i = 0; i < n; i++, m->any++) {
		if (!TAILQ_EMPTY(&m->recv_table[m->any & (n - 1)]))
			return TAILQ_FIRST(&m->recv_table[m->any & (n - 1)]);
	}
	return NULL;
}

void weft_match_fini(struct weft_match *m)
{
	struct weft_match_mask *k;

	weft_match_index_fini(m);
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
