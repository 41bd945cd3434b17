/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/share.h
 * What a worker has asked its peers for and not got, within a limit for all of them: bytes of
 * rendezvous (rndv/pull.c), pieces of gets (rma/gets.c).
 *
 * A peer that has nothing outstanding may always request a little: that is its guarantee. One that
 * does not deliver is *stalled*: what it has outstanding does not count any more, so others get its
 * share, and it gets nothing further. It is judged by progress, not by signs of life: it has to
 * deliver a quarter of what it had within 20 ms, or, while others deliver, within the time in which
 * they deliver as much as all had outstanding, but 200 ms at most. A quarter delivered makes it one
 * like the others again.
 *
 * So a limit is held among those that deliver; what stalled peers were asked for before,
 * at most their lanes' windows, comes in addition once they go on.
 */
#ifndef WEFT_SHARE_H
#define WEFT_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/** ns; in which a quarter has to come, unless others are slow, too */
#define WEFT_SHARE_STALL 20000000ull
/** ns; in any case */
#define WEFT_SHARE_STALL_MAX 200000000ull

/** A peer. Zero is a good beginning. */
struct weft_share_user {
	TAILQ_ENTRY(weft_share_user) link; /**< while it has something outstanding, not stalled */
	uint64_t out;
	uint64_t due;   /**< to come until it is judged again */
	uint64_t since; /**< ns; when it was judged last */
	uint64_t came;  /**< of all, then */
	bool listed, stalled;
};

TAILQ_HEAD(weft_share_users, weft_share_user);

struct weft_share {
	uint64_t limit;
	uint64_t used;                 /**< outstanding, of those that are not stalled */
	uint64_t peak;                 /**< of used */
	uint64_t came;                 /**< cumulative */
	uint64_t stalled;              /**< outstanding, of stalled ones */
	uint64_t stalls;               /**< how often one was found stalled */
	struct weft_share_users users; /**< the one first that was judged longest ago */
};

static inline void weft_share_init(struct weft_share *s, uint64_t limit)
{
	*s = (struct weft_share){.limit = limit};
	TAILQ_INIT(&s->users);
}

/** Is there room below the limit? Stalled users are found first, if there is none. */
bool weft_share_free(struct weft_share *s, uint64_t now);
/** May @p u have more now? Beyond the limit a little, when it has nothing. */
bool weft_share_room(struct weft_share *s, const struct weft_share_user *u, uint64_t now);
/** It was asked for @p n. */
void weft_share_take(struct weft_share *s, struct weft_share_user *u, uint64_t n, uint64_t now);
/** @p n of it came, or (@p good false) will not come. */
void weft_share_done(struct weft_share *s, struct weft_share_user *u, uint64_t n, bool good,
		     uint64_t now);

#endif /* WEFT_SHARE_H */
