/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/share.h
 * Outstanding requests of a worker to its peers, within a limit for all of them: bytes of
 * rendezvous (rndv/pull.c), pieces of gets (rma/gets.c).
 *
 * A peer with nothing outstanding always gets a small request: that is its guarantee. A peer that
 * does not deliver is *stalled*: its outstanding requests do not count any more, so that other
 * peers get its share, and it gets no further requests. Peers are judged by the data that they
 * deliver. A peer must deliver a quarter of its outstanding amount within 20 ms. While others
 * deliver, it has the time in which they deliver as much as all had outstanding, but at most 200
 * ms. A stalled peer that delivers a quarter is no longer stalled.
 *
 * So the limit applies to the peers that deliver. Earlier requests to stalled peers, at most their
 * lanes' windows, are in addition to it once these peers continue.
 */
#ifndef WEFT_SHARE_H
#define WEFT_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/** ns; time for a quarter to arrive, unless other peers are slow, too */
#define WEFT_SHARE_STALL 20000000ull
/** ns; upper bound of that time */
#define WEFT_SHARE_STALL_MAX 200000000ull

/** A peer. Zero-initialised. */
struct weft_share_user {
	TAILQ_ENTRY(weft_share_user) link; /**< while it has something outstanding, not stalled */
	uint64_t out;
	uint64_t due;   /**< amount to arrive until it is judged again */
	uint64_t since; /**< ns; when it was judged last */
	uint64_t came;  /**< weft_share.came at that time */
	bool listed, stalled;
};

TAILQ_HEAD(weft_share_users, weft_share_user);

struct weft_share {
	uint64_t limit;
	uint64_t used;                 /**< outstanding, of those that are not stalled */
	uint64_t peak;                 /**< of used */
	uint64_t came;                 /**< arrived from all peers, cumulative */
	uint64_t stalled;              /**< outstanding, of stalled peers */
	uint64_t stalls;               /**< times that a peer became stalled */
	struct weft_share_users users; /**< in the order of their last judgement */
};

static inline void weft_share_init(struct weft_share *s, uint64_t limit)
{
	*s = (struct weft_share){.limit = limit};
	TAILQ_INIT(&s->users);
}

/** Is there room below the limit? If not, the call first searches for stalled peers. */
bool weft_share_free(struct weft_share *s, uint64_t now);
/**
 * May @p u get a request now? It may exceed the limit by a small request if it has nothing
 * outstanding.
 */
bool weft_share_room(struct weft_share *s, const struct weft_share_user *u, uint64_t now);
/** @p n were requested from the peer. */
void weft_share_take(struct weft_share *s, struct weft_share_user *u, uint64_t n, uint64_t now);
/** @p n of the outstanding amount arrived, or (@p good false) will not arrive. */
void weft_share_done(struct weft_share *s, struct weft_share_user *u, uint64_t n, bool good,
		     uint64_t now);

#endif /* WEFT_SHARE_H */
