/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file tag/match.h
 * Tag matching, and nothing else: no clock, no lanes. Receives that wait for a message, and
 * messages that wait for a receive, are links inside their owners' structures.
 *
 * Rules
 * - A receive matches a message if `((message tag ^ tag) & mask) == 0` and both have one channel. A
 *   receive may name a source, and a channel of this source (`from`): then these must be the
 *   message's, too.
 * - A message goes to the matching receive that was posted first, in whichever list it is
 *   (#weft_match_recv.order decides).
 * - A receive gets the matching message that arrived first. The caller adds messages of one source
 *   in send order.
 *
 * Data structures, by which a match costs the same with 10 or 10^5 entries:
 * - receives: hash buckets keyed by (mask, tag under the mask, source or none, channels). For a
 *   message, receives are searched under the full mask and under each other mask in use; of those
 *   found the one posted first gets the message. The cost grows with the number of masks, not of
 *   receives. The number of masks is not limited. If all receives of a mask share a bit in which
 *   they differ from the message, the mask costs a comparison only;
 * - messages: hash buckets by tag, hash buckets by (tag, source), all in arrival order, and a list
 *   of each source's in arrival order. For up to #WEFT_MATCH_INDEXES masks of wildcard searches
 *   that had to compare many messages there are hash buckets by tag under the mask
 *   (tag/match_index.c).
 *
 * The owner provides the memory of the hash tables; weft_match_overloaded() reports when to provide
 * more. Indexes and the table of masks allocate their own memory. An index is freed with its last
 * message.
 */
#ifndef WEFT_MATCH_H
#define WEFT_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct weft_match_source;

/** The channels of a search or of a message, as in struct weft_match_recv and _msg. */
struct weft_match_chan {
	uint16_t channel;
	uint32_t from;
};

/** Makes keys differ between channels; keys of channel 0 are unchanged. */
static inline uint64_t weft_match_chan_key(uint16_t channel)
{
	/* A predicted branch costs less than the latency of a multiplication. */
	return __builtin_expect(channel != 0, 0) ? channel * 0xd6e8feb86659fd93ull : 0;
}

/** A posted receive. The owner fills tag, mask, source, channel and from. */
struct weft_match_recv {
	uint64_t tag, mask;
	struct weft_match_source *source; /**< NULL = any source */
	uint16_t channel;
	bool fresh;     /**< while posted: in no bucket, and not counted by source and mask */
	uint32_t from;  /**< 1 + channel of the source; 0 = any channel */
	uint64_t order; /**< posting order */
	/** entry of the receive's mask, while posted; NULL = the full mask */
	struct weft_match_mask *kind;
	TAILQ_ENTRY(weft_match_recv) link;        /**< in a bucket of recv_table, unless fresh */
	TAILQ_ENTRY(weft_match_recv) source_link; /**< in all receives that name this source */
};

TAILQ_HEAD(weft_match_recvs, weft_match_recv);

/** A message that no receive has matched yet. The owner fills tag, source, channel and from. */
struct weft_match_msg {
	uint64_t tag;
	struct weft_match_source *source; /**< NULL = the source has been freed */
	uint16_t channel;
	uint32_t from; /**< 1 + channel of the source */
	TAILQ_ENTRY(weft_match_msg) tag_link;
	TAILQ_ENTRY(weft_match_msg) pair_link; /**< in a bucket by tag and source */
	TAILQ_ENTRY(weft_match_msg) arrival_link;
	TAILQ_ENTRY(weft_match_msg) source_link;
	struct weft_match_node *nodes; /**< entries of the message in indexes; NULL = none */
};

TAILQ_HEAD(weft_match_msgs, weft_match_msg);

/** The origin of messages: one per worker that sends them. */
struct weft_match_source {
	uint64_t key; /**< part of hash keys; differs from source to source */
	/** all receives from this source only, in posting order; fresh ones come last */
	struct weft_match_recvs recvs;
	struct weft_match_msgs msgs; /**< messages from this source, in arrival order */
	/*
	 * Number of receives in buckets that name this source: num_ those from any of its channels,
	 * from_ those from one channel; _exact those with the full mask, _wild those with another.
	 */
	uint32_t num_exact, num_wild;
	uint32_t from_exact, from_wild;
	bool listed; /**< in weft_match.fresh */
	LIST_ENTRY(weft_match_source) fresh_link;
};

/**
 * A wildcard search that had to compare many messages, and its result. Programs repeat the same
 * probe, which would compare each message again that does not match.
 */
struct weft_match_seen {
	const struct weft_match_source *source; /**< source of the search; NULL = any */
	struct weft_match_chan chan;
	uint64_t tag, mask;
	/** no message up to this one, in arrival order, matches; NULL = the entry is free */
	struct weft_match_msg *last;
};

#define WEFT_MATCH_SEEN 4

/** A mask other than the full one. It stays, idle, after its last receive is gone. */
struct weft_match_mask {
	uint64_t mask;
	uint64_t key;                      /**< part of hash keys; differs from mask to mask */
	size_t num;                        /**< number of receives in buckets; 0 = idle */
	uint32_t at;                       /**< index of the mask in weft_match.used, unless idle */
	SLIST_ENTRY(weft_match_mask) same; /**< in the table of masks */
	TAILQ_ENTRY(weft_match_mask) idle_link; /**< the mask idle for longest comes first */
};

/** A mask in use. An arriving message is compared with this before the table is searched. */
struct weft_match_used {
	uint64_t agreed; /**< bits of the tag in which all receives in buckets agree */
	uint64_t value;  /**< a tag with their values of these bits */
	struct weft_match_mask *mask;
};

SLIST_HEAD(weft_match_same, weft_match_mask);

/** With this number of idle masks or more, a new mask takes the place of the one idle longest. */
#define WEFT_MATCH_MASKS_IDLE 16

/** Most fresh receives: they get into their buckets in one call. */
#define WEFT_MATCH_FRESH 256

/** Greatest number of indexes. A mask may have two: for searches with a source, and without. */
#define WEFT_MATCH_INDEXES 8
/** A search that had to compare more messages makes an index. */
#define WEFT_MATCH_MANY 64
/** Number of searches after which an unused index may be replaced. */
#define WEFT_MATCH_IDLE 1024

struct weft_match_index {
	struct weft_match_nodes *table; /**< NULL = the entry is free */
	uint64_t mask;
	uint64_t used; /**< weft_match.searches at its last use */
	size_t num;
	unsigned int bits;
	bool sourced;
};

struct weft_match {
	struct weft_match_recvs *recv_table; /**< by mask, tag under the mask, source, channels */
	struct weft_match_msgs *tag_table;
	struct weft_match_msgs *pair_table;
	uint64_t multiplier; /**< odd and secret */
	unsigned int bits;   /**< each table has 2^bits buckets */
	uint64_t order;      /**< order of the next receive to be posted */
	uint64_t next_key;
	size_t num_exact;           /**< number of full-mask receives without a source */
	size_t num_wild;            /**< number of other receives without a source */
	size_t num_recvs, num_msgs; /**< number of all posted receives; of all messages */
	/**
	 * sources that may have fresh receives. These get into their buckets when a message has to
	 * be searched for there. Most match as the first receive of their source before.
	 */
	LIST_HEAD(, weft_match_source) fresh;
	uint32_t num_fresh; /**< number of fresh receives */
	/** number of receives, and of messages, above which the tables should grow */
	size_t load_limit;
	struct weft_match_msgs msgs; /**< all messages in arrival order */
	uint64_t looks;              /**< comparisons of messages with wildcard receives */
	uint64_t msg_looks;          /**< comparisons of wildcard searches with messages */
	uint32_t num_seen;           /**< entries of seen[] in use */
	uint32_t next_seen; /**< modulo WEFT_MATCH_SEEN: entry of seen[] that is replaced next */
	struct weft_match_seen seen[WEFT_MATCH_SEEN];
	uint64_t searches; /**< number of searches with wildcards */
	uint32_t num_index;
	struct weft_match_index index[WEFT_MATCH_INDEXES];
	size_t any;                        /**< bucket at which weft_match_any_recv() continues */
	struct weft_match_used *used;      /**< one for each mask with receives, without gaps */
	struct weft_match_mask *last_mask; /**< mask of the wildcard receive posted last, or NULL */
	struct weft_match_same *mask_table;
	TAILQ_HEAD(, weft_match_mask) idle;
	uint32_t num_used;  /**< number of masks with receives */
	uint32_t num_masks; /**< number of masks in the table: num_used and num_idle */
	uint32_t num_idle;
	/** the table of masks has 2^bits buckets, `used` the same number of entries */
	unsigned int mask_bits;
};

/**
 * The high bits of a product with a random odd number: any two keys collide with a probability of
 * at most 2^(1 - bits) (Dietzfelbinger et al., 1997). So a peer, which can choose its tags or
 * sequences but does not have the number, cannot make all of them collide. The fixed one-to-one
 * scrambling before it is for numbers that count up: with some multipliers a progression falls into
 * a few buckets.
 * @param bits  1 to 63
 */
static inline size_t weft_match_bucket(const struct weft_match *m, uint64_t key, unsigned int bits)
{
	key *= 0x9e3779b97f4a7c15u;
	key ^= key >> 32;
	return (size_t)((key * m->multiplier) >> (64 - bits));
}

/** Bytes that the tables of 2^bits buckets need. */
size_t weft_match_table_size(unsigned int bits);

/**
 * @param mem   weft_match_table_size(bits) bytes; remains the caller's, must exist as long as @p m
 * @param seed  random: a peer that does not know it cannot choose tags that share a bucket
 */
void weft_match_init(struct weft_match *m, void *mem, unsigned int bits, uint64_t seed);

void weft_match_source_init(struct weft_match *m, struct weft_match_source *s);

/** Detach messages from a source that is about to be freed, and that no receive names. */
void weft_match_source_fini(struct weft_match *m, struct weft_match_source *s);

/** Should weft_match_grow() be called with more bits? */
static inline bool weft_match_overloaded(const struct weft_match *m)
{
	return m->num_recvs > m->load_limit || m->num_msgs > m->load_limit;
}

/** Move everything into larger tables. @return the previous memory, to be freed */
void *weft_match_grow(struct weft_match *m, void *mem, unsigned int bits);

/** A message came, for chan.channel. @return the receive that gets it, removed; or NULL */
struct weft_match_recv *weft_match_arrive(struct weft_match *m, struct weft_match_source *source,
					  uint64_t tag, struct weft_match_chan chan);

/**
 * As weft_match_arrive() for a message without channels, in the most common case: no receive that
 * may match names the source or has a wildcard, and the receive is the first one of its bucket.
 * @return the receive, removed; or NULL: call weft_match_arrive()
 */
static inline struct weft_match_recv *weft_match_take_first(struct weft_match *m,
							    const struct weft_match_source *s,
							    uint64_t tag)
{
	struct weft_match_recvs *bucket;
	struct weft_match_recv *r;

	/* When all receives are of this kind, the source needs no look. */
	if (m->num_recvs != m->num_exact && (m->num_wild || !TAILQ_EMPTY(&s->recvs)))
		return NULL;
	bucket = &m->recv_table[weft_match_bucket(m, tag, m->bits)];
	r = TAILQ_FIRST(bucket);
	if (!r || r->tag != tag || r->mask != UINT64_MAX || r->source || r->channel)
		return NULL;
	TAILQ_REMOVE(bucket, r, link);
	m->num_recvs--;
	m->num_exact--;
	return r;
}

/** Do the channels of a receive or search match those of a message? @param from  0 = any */
static inline bool weft_match_takes(uint16_t channel, uint32_t from, uint16_t msg_channel,
				    uint32_t msg_from)
{
	return channel == msg_channel && (from == 0 || from == msg_from);
}

/**
 * As weft_match_arrive(), in the most common case of programs of MPI: all receives name a source,
 * and the first one of the message's source matches.
 * @return the receive, removed; or NULL: call weft_match_arrive()
 */
static inline struct weft_match_recv *weft_match_take_fresh(struct weft_match *m,
							    struct weft_match_source *s,
							    uint64_t tag,
							    struct weft_match_chan chan)
{
	struct weft_match_recv *r = TAILQ_FIRST(&s->recvs);

	if (!r || !r->fresh || ((r->tag ^ tag) & r->mask) ||
	    !weft_match_takes(r->channel, r->from, chan.channel, chan.from) ||
	    (m->num_exact | m->num_wild))
		return NULL;
	TAILQ_REMOVE(&s->recvs, r, source_link);
	m->num_recvs--;
	m->num_fresh--;
	return r;
}

/** No receive matches the message: store it. */
void weft_match_msg_add(struct weft_match *m, struct weft_match_msg *msg);
void weft_match_msg_remove(struct weft_match *m, struct weft_match_msg *msg);

/** As weft_match_find(), if there are messages. */
struct weft_match_msg *weft_match_search(struct weft_match *m,
					 const struct weft_match_source *source, uint64_t tag,
					 uint64_t mask, struct weft_match_chan chan);

/** The message that a receive would get; it is not removed. @param source  NULL = any */
static inline struct weft_match_msg *weft_match_find(struct weft_match *m,
						     const struct weft_match_source *source,
						     uint64_t tag, uint64_t mask,
						     struct weft_match_chan chan)
{
	return m->num_msgs == 0 ? NULL : weft_match_search(m, source, tag, mask, chan);
}

/**
 * Post a receive for which weft_match_find() has found no message.
 * @return 0, or -ENOMEM: there is no memory for its mask, and it is not posted
 */
int weft_match_post(struct weft_match *m, struct weft_match_recv *recv);

/** As weft_match_post() for a receive with the full mask and no source, in the bucket of @p key. */
static inline void weft_match_post_exact(struct weft_match *m, struct weft_match_recv *r,
					 uint64_t key)
{
	struct weft_match_recvs *bucket = &m->recv_table[weft_match_bucket(m, key, m->bits)];

	r->fresh = false;
	r->kind = NULL;
	r->order = m->order++;
	m->num_recvs++;
	m->num_exact++;
	TAILQ_INSERT_TAIL(bucket, r, link);
}

/** As weft_match_post() for a receive with a source, whose mask is mostly that of the last one. */
static inline int weft_match_post_from(struct weft_match *m, struct weft_match_recv *r)
{
	struct weft_match_source *s = r->source;

	if (!m->last_mask || m->last_mask->mask != r->mask || !s->listed ||
	    m->num_fresh == WEFT_MATCH_FRESH)
		return weft_match_post(m, r);
	r->kind = m->last_mask;
	r->fresh = true;
	r->order = m->order++;
	m->num_recvs++;
	m->num_fresh++;
	TAILQ_INSERT_TAIL(&s->recvs, r, source_link);
	return 0;
}

void weft_match_cancel(struct weft_match *m, struct weft_match_recv *recv);

/** Free all memory but the owner's; messages may still be in the lists. */
void weft_match_fini(struct weft_match *m);
/** Any posted receive, or NULL: for removing all of them at the end. */
struct weft_match_recv *weft_match_any_recv(struct weft_match *m);

#endif /* WEFT_MATCH_H */
