/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file tag/match.h
 * Tag matching, and nothing else: no clock, no lanes. Receives that wait for a
 * message and messages that wait for a receive are links inside their owners' structures.
 *
 * Rules
 *  - A receive matches a message when `((message tag ^ tag) & mask) == 0`, their channels are equal
 *    and it names no source or the message's; of that, no channel (`from`) or the message's.
 *  - A message goes to the matching receive that was posted first, whichever list it is in
 *    (#weft_match_recv.order decides).
 *  - A receive takes the matching message that arrived first. The caller adds messages of one
 *    source in send order.
 *
 * Where things stand, so that a match costs the same with 10 or 10^5 entries:
 *  - receives: hash buckets keyed by (mask, tag under the mask, source or none). A message is
 *    looked for once under the full mask and once under each other mask in use, and of what is
 *    found the one that was posted first gets it. The cost grows with the masks, not with the
 *    receives. There is no limit to the masks (tag/match_mask.c), and a mask whose receives all
 *    differ from the message in a bit that they share costs a comparison only;
 *  - messages: hash buckets by tag, hash buckets by (tag, source), all in arrival order, and each
 *    source's in arrival order; and, for up to #WEFT_MATCH_INDEXES masks of searches with wildcards
 *    that had to check many, hash buckets by tag under the mask (tag/match_index.c).
 *
 * The hash tables are memory that the owner gives; weft_match_crowded() says when to give more. The
 * indexes and the table of masks allocate for themselves. An index goes with its last message.
 */
#ifndef WEFT_MATCH_H
#define WEFT_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct weft_match_source;

/** Where a search is, beside tag and source: as the fields of these names. */
struct weft_match_chan {
	uint16_t channel;
	uint32_t from;
};

/** Keys differ from channel to channel; those of channel 0 are as they are. */
static inline uint64_t weft_match_chan_key(uint16_t channel)
{
	/* A branch that is foreseen costs less than a product that is waited for. */
	return __builtin_expect(channel != 0, 0) ? channel * 0xd6e8feb86659fd93ull : 0;
}

/** A posted receive. The owner fills tag, mask, source, channel and from. */
struct weft_match_recv {
	uint64_t tag, mask;
	struct weft_match_source *source; /**< NULL = any */
	uint16_t channel;
	uint32_t from;                            /**< 1 + channel of the source; 0 = any of its */
	uint64_t order;                           /**< posting order */
	struct weft_match_mask *kind;             /**< its mask, posted; NULL = the full one */
	TAILQ_ENTRY(weft_match_recv) link;        /**< in a bucket */
	TAILQ_ENTRY(weft_match_recv) source_link; /**< all receives that name this source */
};

TAILQ_HEAD(weft_match_recvs, weft_match_recv);

/** A message that no receive has taken yet. The owner fills tag, source, channel and from. */
struct weft_match_msg {
	uint64_t tag;
	struct weft_match_source *source; /**< NULL = its endpoint is gone */
	uint16_t channel;
	uint32_t from; /**< 1 + channel of the source */
	TAILQ_ENTRY(weft_match_msg) tag_link;
	TAILQ_ENTRY(weft_match_msg) pair_link; /**< (tag, source) */
	TAILQ_ENTRY(weft_match_msg) arrival_link;
	TAILQ_ENTRY(weft_match_msg) source_link;
	struct weft_match_node *nodes; /**< in the indexes; NULL when it is added */
};

TAILQ_HEAD(weft_match_msgs, weft_match_msg);

/** Where messages come from: one per endpoint. */
struct weft_match_source {
	uint64_t key;                  /**< hashed; differs from source to source */
	struct weft_match_recvs recvs; /**< all receives from here only */
	struct weft_match_msgs msgs;   /**< messages from here, in arrival order */
	/* Receives from here only: of the full mask, and others; and those that name its channel */
	uint32_t num_exact, num_wild;
	uint32_t from_exact, from_wild;
};

/**
 * A search with wildcards for a message that had to check many: what is known of them. Programs
 * probe again and again for the same, and would check each message again that is not for them.
 */
struct weft_match_seen {
	const struct weft_match_source *source; /**< searched for; NULL = any */
	struct weft_match_chan chan;
	uint64_t tag, mask;
	struct weft_match_msg *last; /**< none up to this one matches; NULL = the place is free */
};

#define WEFT_MATCH_SEEN 4

/** A mask beside the full one. It stays for a while when its last receive has gone. */
struct weft_match_mask {
	uint64_t mask;
	uint64_t key;                      /**< hashed; differs from mask to mask */
	size_t num;                        /**< its receives; 0 = it is idle */
	uint32_t at;                       /**< its place in weft_match.used, unless it is idle */
	SLIST_ENTRY(weft_match_mask) same; /**< in the table of masks */
	TAILQ_ENTRY(weft_match_mask) idle_link; /**< the longest idle one comes first */
};

/** What an arriving message is compared with before the table is: one of the masks in use. */
struct weft_match_used {
	uint64_t agreed; /**< bits of the tag in which all its receives agree */
	uint64_t value;  /**< and what they are */
	struct weft_match_mask *mask;
};

SLIST_HEAD(weft_match_same, weft_match_mask);

/** Idle masks that are kept: a mask that comes and goes with each receive costs no allocation. */
#define WEFT_MATCH_MASKS_IDLE 16

/** Masks of searches that have an index, one with and one without a source being two. */
#define WEFT_MATCH_INDEXES 8
/** A search that had to check more messages makes one. */
#define WEFT_MATCH_MANY 64
/** Searches after which an unused one may go. */
#define WEFT_MATCH_IDLE 1024

struct weft_match_index {
	struct weft_match_nodes *table; /**< NULL = the place is free */
	uint64_t mask;
	uint64_t used; /**< number of the search that used it last */
	size_t num;
	unsigned int bits;
	bool sourced;
};

struct weft_match {
	struct weft_match_recvs *recv_table; /**< by (mask, tag under it, source or none) */
	struct weft_match_msgs *tag_table;
	struct weft_match_msgs *pair_table;
	uint64_t multiplier; /**< odd and secret */
	unsigned int bits;   /**< each table has 2^bits buckets */
	uint64_t order;      /**< of the next receive */
	uint64_t next_key;
	size_t num_exact;            /**< full-mask receives without a source */
	size_t num_wild;             /**< other receives without a source */
	size_t num_recvs, num_msgs;  /**< all */
	size_t crowd;                /**< entries of the fuller table at which it is crowded */
	struct weft_match_msgs msgs; /**< all messages in arrival order */
	uint64_t looks;     /**< receives with wildcards that messages were compared with */
	uint64_t msg_looks; /**< messages that searches with wildcards were compared with */
	uint32_t num_seen;  /**< entries of seen[] in use */
	uint32_t next_seen; /**< and the one that is used next */
	struct weft_match_seen seen[WEFT_MATCH_SEEN];
	uint64_t searches; /**< with wildcards */
	uint32_t num_index;
	struct weft_match_index index[WEFT_MATCH_INDEXES];
	size_t any;                        /**< bucket at which weft_match_any_recv() goes on */
	struct weft_match_used *used;      /**< one for each mask with receives, without gaps */
	struct weft_match_mask *last_mask; /**< of the receive that was posted last, or NULL */
	struct weft_match_same *mask_table;
	TAILQ_HEAD(, weft_match_mask) idle;
	uint32_t num_used;  /**< masks with receives */
	uint32_t num_masks; /**< and without */
	uint32_t num_idle;
	unsigned int mask_bits; /**< the table of masks has 2^bits buckets, `used` as many places */
};

/**
 * The high bits of a product with a random odd number: any two keys meet with a probability of at
 * most 2^(1 - bits) (Dietzfelbinger et al., 1997), so that a peer which chooses its tags, or its
 * sequences, but can't know the number, can't have them all meet. The fixed one-to-one scrambling
 * before it is for what counts up: with some numbers a progression falls into a few buckets.
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
 * @param mem   weft_match_table_size(bits) bytes; stays the caller's, must outlive @p m
 * @param seed  random: tags that meet in one bucket can't be chosen without it
 */
void weft_match_init(struct weft_match *m, void *mem, unsigned int bits, uint64_t seed);

void weft_match_source_init(struct weft_match *m, struct weft_match_source *s);

/**
 * The endpoint goes away: its messages stay, without a source. Its receives must have been
 * cancelled.
 */
void weft_match_source_fini(struct weft_match *m, struct weft_match_source *s);

/** Larger tables would help: weft_match_grow() with more bits. */
static inline bool weft_match_crowded(const struct weft_match *m)
{
	return m->num_recvs > m->crowd || m->num_msgs > m->crowd;
}

/** Move everything into larger tables. @return the former memory, to be freed */
void *weft_match_grow(struct weft_match *m, void *mem, unsigned int bits);

/**
 * A message has arrived on @p chan, from channel `from` of the source. @return the receive that
 * gets it, taken out; or NULL
 */
struct weft_match_recv *weft_match_arrive(struct weft_match *m, struct weft_match_source *source,
					  uint64_t tag, struct weft_match_chan chan);

/** Nobody takes it: keep it. */
void weft_match_msg_add(struct weft_match *m, struct weft_match_msg *msg);
void weft_match_msg_remove(struct weft_match *m, struct weft_match_msg *msg);

/** As weft_match_find(), where there are messages. */
struct weft_match_msg *weft_match_search(struct weft_match *m,
					 const struct weft_match_source *source, uint64_t tag,
					 uint64_t mask, struct weft_match_chan chan);

/** The message that a receive would take; it stays in. @param source  NULL = any */
static inline struct weft_match_msg *weft_match_find(struct weft_match *m,
						     const struct weft_match_source *source,
						     uint64_t tag, uint64_t mask,
						     struct weft_match_chan chan)
{
	return m->num_msgs == 0 ? NULL : weft_match_search(m, source, tag, mask, chan);
}

/**
 * Post a receive for which weft_match_find() had nothing.
 * @return 0, or -ENOMEM: there is no memory for its mask, and it is not posted
 */
int weft_match_post(struct weft_match *m, struct weft_match_recv *recv);
void weft_match_cancel(struct weft_match *m, struct weft_match_recv *recv);

/* tag/match_mask.c, for tag/match.c */
/**
 * The mask for a receive that is about to be posted. An idle one is put in use.
 * @return NULL = no memory
 */
struct weft_match_mask *weft_match_mask_get(struct weft_match *m, uint64_t tag, uint64_t mask);
/** Its last receive has gone. */
void weft_match_mask_idle(struct weft_match *m, struct weft_match_mask *k);
void weft_match_masks_fini(struct weft_match *m);

/* tag/match_index.c, for tag/match.c */
void weft_match_index_make(struct weft_match *m, uint64_t mask, bool sourced);
/** The index for such searches, or NULL. It is used. */
struct weft_match_index *weft_match_index_of(struct weft_match *m, uint64_t mask, bool sourced);
struct weft_match_msg *weft_match_index_find(struct weft_match *m, struct weft_match_index *x,
					     const struct weft_match_source *source, uint64_t tag,
					     struct weft_match_chan chan);
void weft_match_index_add(struct weft_match *m, struct weft_match_msg *msg);
/** @param sourced  from those with a source only */
void weft_match_index_remove(struct weft_match *m, struct weft_match_msg *msg, bool sourced);

/** The owner is done; messages that are in still may be. */
void weft_match_fini(struct weft_match *m);

/** Any posted receive, or NULL: for taking all out at the end. */
struct weft_match_recv *weft_match_any_recv(struct weft_match *m);

#endif /* WEFT_MATCH_H */
