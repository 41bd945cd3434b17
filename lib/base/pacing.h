/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/pacing.h
 * Rules that pace what a worker sends, requests and registers, and what peers may send: measured
 * rate of a lane, quota of requests to peers, backoff of registrations, promptness of a peer, pool
 * of credit. Functions get the time as an argument and allocate nothing.
 */
#ifndef WEFT_PACING_H
#define WEFT_PACING_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* ------------------------------------------------------------------ measured rate of a lane */

/*
 * The measured rate of a lane: bytes that arrived (for sent data: were acknowledged) per time while
 * the lane had a backlog.
 *
 * The estimate begins with the nominal rate. It then follows the bytes that the lane delivers while
 * it is *backlogged*, that is, while its sender has more for it than it takes. Bytes are counted
 * over spans of at least #WEFT_RATE_SPAN, and the estimate follows them with a time constant of
 * #WEFT_RATE_TAU. A span in which the lane may have waited for work (*limited*) gives only a lower
 * bound of the rate.
 *
 * An estimate that was not confirmed for #WEFT_RATE_STALE drifts back to the nominal rate, by at
 * most a factor of two per #WEFT_RATE_STALE, when it is read. So a lane that was slow, and was not
 * used because of it, is tried again.
 *
 * A span begins with the first bytes that arrive after the lane got work, not with the work itself.
 * So a long round trip does not look like a low rate. Bytes that arrive at the same time as the
 * first ones are not counted, because their transfer time is unknown. A span has at most the weight
 * of #WEFT_RATE_MAX, because a peer that did not poll for a second has not become slow. If work
 * ends within a span that is not limited, the next work continues the span, and the time between is
 * not counted.
 */

#define WEFT_RATE_SPAN 1000000ull /**< ns; shortest span that counts */
#define WEFT_RATE_TAU 8000000ull  /**< ns; time constant of the estimate */
#define WEFT_RATE_MAX 8000000ull  /**< ns; longest time by which one span is weighted */
/** ns; age from which the estimate drifts to the nominal rate */
#define WEFT_RATE_STALE 500000000ull

struct weft_rate {
	double rate;    /**< estimate, bytes/s */
	double nominal; /**< the rate that the driver states, bytes/s */
	uint64_t first; /**< time of the first bytes after weft_rate_start(), ns; 0 = none yet */
	uint64_t last;  /**< time of the last bytes, ns */
	uint64_t span;  /**< length of the present span so far, ns */
	uint64_t bytes; /**< bytes that have arrived in the present span */
	uint64_t seen;  /**< time when a span last changed `rate`, or it drifted, ns; 0 = never */
	bool running;   /**< the lane has work */
	bool limited;   /**< in this span the lane may have waited for work */
};

/** @param nominal  bytes/s; 0 or less counts as 1e9 */
void weft_rate_init(struct weft_rate *r, double nominal);

/** The lane has work from now on. No effect if it already had. */
static inline void weft_rate_start(struct weft_rate *r)
{
	if (r->running)
		return;
	r->running = true;
	r->first = 0;
}

/** In a part of the present span the lane had less work than it could have carried. */
static inline void weft_rate_limited(struct weft_rate *r)
{
	r->limited = true;
}

/** Bytes have arrived or been acknowledged. @return true when the estimate has changed */
bool weft_rate_add(struct weft_rate *r, uint64_t bytes, uint64_t now);

/** The lane has finished all its work. @return true when the estimate has changed */
bool weft_rate_pause(struct weft_rate *r, uint64_t now);

/** The lane ran out of work at an unknown time. @return true when the estimate has changed */
bool weft_rate_stop(struct weft_rate *r, uint64_t now);

/** @return the estimate in bytes/s, > 0; a stale one first drifts towards the nominal rate */
double weft_rate_get(struct weft_rate *r, uint64_t now);

/* ------------------------------------------------------------------ quota of requests */

/*
 * A limit for all outstanding requests of a worker to its peers. One quota counts bytes of
 * rendezvous (rndv/pull.c), another one pieces of gets (rma/fence.c).
 *
 * A peer with nothing outstanding always gets a small request. A peer that does not deliver is
 * *stalled*: its outstanding requests no longer count, so that other peers get its share, and it
 * gets no further requests. Peers are judged only while the limit is reached, by the data that they
 * deliver. A peer must deliver a quarter of its outstanding amount within 20 ms. While any peer
 * delivers, it has more time: until all peers have delivered as much as is outstanding, but at most
 * 200 ms. A stalled peer that delivers a quarter is no longer stalled.
 *
 * So the limit applies to the peers that deliver. The requests to a stalled peer are in addition to
 * the limit.
 */

/** ns; time in which a peer must deliver a quarter of its outstanding amount */
#define WEFT_SHARE_STALL 20000000ull
/** ns; upper bound of that time while any peer delivers */
#define WEFT_SHARE_STALL_MAX 200000000ull

/** A peer's part of a quota; it begins zeroed. */
struct weft_share_user {
	TAILQ_ENTRY(weft_share_user) link; /**< in weft_share.users, if `listed` */
	uint64_t out;                      /**< outstanding amount of the peer */
	uint64_t due;                      /**< amount that must still arrive in this period */
	uint64_t since;                    /**< ns; when the period began */
	uint64_t came;                     /**< weft_share.came when the period began */
	bool listed, stalled;
};

TAILQ_HEAD(weft_share_users, weft_share_user);

/** A quota of all peers. Its amounts are all in bytes, or all in pieces. */
struct weft_share {
	uint64_t limit;
	uint64_t used;    /**< outstanding amount of peers that are not stalled */
	uint64_t peak;    /**< the greatest value of `used` after a request */
	uint64_t came;    /**< amount that arrived from all peers, cumulative */
	uint64_t stalled; /**< outstanding amount of stalled peers */
	uint64_t stalls;  /**< times that a peer became stalled */
	/** peers with outstanding requests that are not stalled, the oldest period first */
	struct weft_share_users users;
};

static inline void weft_share_init(struct weft_share *s, uint64_t limit)
{
	*s = (struct weft_share){.limit = limit};
	TAILQ_INIT(&s->users);
}

/** Is the limit not reached? If it is, the call first makes peers that are late stalled. */
bool weft_share_free(struct weft_share *s, uint64_t now);
/** May @p u get a request now? If it has nothing outstanding: yes, a small one, in any case. */
bool weft_share_room(struct weft_share *s, const struct weft_share_user *u, uint64_t now);
/** @p n were requested from the peer. */
void weft_share_take(struct weft_share *s, struct weft_share_user *u, uint64_t n, uint64_t now);
/** @p n of the outstanding amount arrived, or (@p good false) will not arrive. */
void weft_share_done(struct weft_share *s, struct weft_share_user *u, uint64_t n, bool good,
		     uint64_t now);

/* ------------------------------------------------------------------ backoff of registrations */

/*
 * Backoff for registrations on the fly that the system refuses because locked memory is used up.
 * Without it each message would cost a system call that pins its pages, fails, and unpins them.
 *
 * A failure is recorded as a total: the bytes registered already, and those of the message. A
 * smaller total may still succeed, so a smaller message, or one after a deregistration, is tried at
 * once. Other messages are tried after a time that doubles with each such failure, which detects a
 * raised limit. A success with this total or more resets the backoff.
 */

#define WEFT_BACKOFF_MIN_NS 1000000ull    /**< waiting time after the first failure: 1 ms */
#define WEFT_BACKOFF_MAX_NS 1000000000ull /**< upper bound of the waiting time: 1 s */

/** Zeroed = nothing has failed. */
struct weft_backoff {
	uint64_t until; /**< ns: no attempt with `total` or more before this time */
	uint64_t wait;  /**< ns: last waiting time; 0 = nothing has failed */
	/** bytes: least refused sum of the registered bytes and those of the message */
	size_t total;
	int err; /**< error of the last failure */
};

/** Is the cause of @p err a lack of locked memory? EPERM means a limit of 0 locked bytes. */
static inline bool weft_backoff_is_shortage(int err)
{
	return err == -ENOMEM || err == -EAGAIN || err == -ENOSPC || err == -EPERM;
}

/**
 * Is a registration of @p length bytes, in addition to @p held, worth an attempt?
 * @return 0: yes; or the error of the last failure
 */
static inline int weft_backoff_check(const struct weft_backoff *b, uint64_t now, size_t held,
				     size_t length)
{
	return b->wait != 0 && now < b->until && held + length >= b->total ? b->err : 0;
}

/** Bytes that must be deregistered before the total is less than the one that was refused. */
static inline size_t weft_backoff_excess(const struct weft_backoff *b, size_t held, size_t length)
{
	return b->wait != 0 && held + length >= b->total ? held + length - b->total + 1 : 0;
}

/** The registration was refused with @p err. */
static inline void weft_backoff_failed(struct weft_backoff *b, uint64_t now, size_t held,
				       size_t length, int err)
{
	size_t total = held + length;

	/* The wait does not grow when a smaller total is refused for the first time. */
	if (b->wait == 0 || total < b->total) {
		b->total = total;
		b->wait = b->wait ? b->wait : WEFT_BACKOFF_MIN_NS;
	} else if (now >= b->until) {
		b->wait = b->wait * 2 < WEFT_BACKOFF_MAX_NS ? b->wait * 2 : WEFT_BACKOFF_MAX_NS;
	}
	b->until = now + b->wait;
	b->err = err;
}

/** The registration succeeded: end the backoff if its total is at least the refused one. */
static inline void weft_backoff_worked(struct weft_backoff *b, size_t held, size_t length)
{
	if (b->wait != 0 && held + length >= b->total)
		*b = (struct weft_backoff){0};
}

/* ------------------------------------------------------------------ promptness of a peer */

/*
 * Does a peer on this host make progress soon when a transfer needs it? Not while its process
 * computes or waits for a core. A copy by the kernel needs no progress of the peer. So after a long
 * wait for the peer the kernel copies the next transfers. Their number doubles with each long wait,
 * and each short wait halves the number that the next long one doubles.
 */

#define WEFT_PROMPT_NS 2500000ull /**< ns; a wait above this is long, below it short */
#define WEFT_PROMPT_LEAST 16u     /**< transfers without the peer after the first long wait */
#define WEFT_PROMPT_MOST 4096u

/** The state of one peer; zeroed = the peer is prompt. */
struct weft_promptness {
	uint64_t stuck; /**< time since when a message has had no room at the peer, ns; or 0 */
	uint64_t late;  /**< time when the last long wait ended, ns */
	uint16_t left;  /**< next transfers that are made without the peer */
	uint16_t span; /**< `left` after the last long wait, halved by each short wait since then */
};

/** A wait for the peer's progress that began at @p begun has ended at @p now, ns. */
void weft_promptness_note(struct weft_promptness *p, uint64_t begun, uint64_t now);

/** Must the next transfer be made without the peer? If so, it is counted as made. */
static inline bool weft_promptness_avoid(struct weft_promptness *p)
{
	return p->left > 0 && p->left-- > 0;
}

/** A message had no room at the peer (@p full), or has been sent. */
static inline void weft_promptness_room(struct weft_promptness *p, bool full, uint64_t now)
{
	if (!full && p->stuck)
		weft_promptness_note(p, p->stuck, now);
	p->stuck = !full ? 0 : p->stuck ? p->stuck : now;
}

/* ------------------------------------------------------------------ the pool of credit */

/*
 * How much of a worker's memory for unexpected messages each peer may use. Each peer has a
 * *window*; all peers share a *pool*. One pool counts payload bytes, another one messages
 * (msg/credit.c defines which message counts in which pool).
 *
 * Each peer gets a floor, less if the pool is exhausted, that the pool never takes back. A quarter
 * of the pool is reserved for floors of future peers. A new peer also gets a part of the rest. When
 * a peer has used half of its window, the window doubles, up to twice the remaining pool.
 * Advertised credit cannot be taken back. Returned credit is not granted again while the pool is
 * nearly empty and the window larger than its even share. So idle peers keep their windows, and
 * active peers share the rest.
 *
 * In figures, with L = WEFT_UNEXP_LIMIT (64 MiB of bytes; one message for each 256 B of it, 2^18):
 * a floor is 1/2048 of the pool (32 KiB, 128 messages). 512 peers exhaust the pool; further peers
 * get 4 KiB and 16 messages each, beyond the limit: a job of 10,000 peers needs a floor for each. A
 * new peer gets its floor and up to 1/32 of the remaining pool, together at most WEFT_EAGER_CREDIT
 * and 4096 messages. Of 128 peers the first one has 1 MiB and 4096 messages, the last one 62 KiB
 * and 251. All windows together are at most L + 4 KiB x peers.
 *
 * The memory that up to 512 hostile peers together can make a worker use
 * (test/unit/msg/hostile_bench.c):
 *
 *	short and announced messages beyond their windows         WEFT_UNEXP_MEMORY
 *	payload of messages above 256 B, and 200 B for each       1.85 x L: 118 MiB
 *	short tagged messages and ABORTs, 456 B each              114 MiB
 *	announced messages, 240 B each, 400 B with keys           100 MiB
 *	active messages, short or announced, 790 B each           198 MiB
 *	gaps in messages (WEFT_RX_RANGES_LIMIT)                     4 MiB for one peer, 30 MiB +
 *	                                                          15 KiB x peers for all
 *	replies that a peer does not take                         0.8 MiB per peer
 *	replies to gets and fetching atomics, 256 per peer        0.3 KiB each
 *	pulls, 1024 per peer                                      40 B each
 */

struct weft_credit_pool {
	uint64_t limit;   /**< bound of `granted`, except for windows of `least` */
	uint64_t granted; /**< sum of all windows and of unmatched messages of ended endpoints */
	uint64_t floor;   /**< the least window of a peer that joins within the limit */
	/** the window of a peer that joins when the limit leaves no room for a floor */
	uint64_t least;
	uint64_t first; /**< the largest window of a new peer, if the floor is not larger */
	uint64_t max;   /**< the largest window of any peer */
	uint32_t peers;
};

/** @p least > 0 */
void weft_credit_pool_init(struct weft_credit_pool *p, uint64_t limit, uint64_t least,
			   uint64_t first, uint64_t max);
/** Add a peer. @return its window */
uint64_t weft_credit_pool_join(struct weft_credit_pool *p);
/** The peer is gone: free its window. */
void weft_credit_pool_leave(struct weft_credit_pool *p, uint64_t window);
/** The peer has used half of @p window. @return its window's growth, added to `granted` */
uint64_t weft_credit_pool_grow(struct weft_credit_pool *p, uint64_t window);
/**
 * A peer with @p window has returned @p back of its credit. @return the part that goes back to the
 * pool: the caller shrinks the window by this part
 */
uint64_t weft_credit_pool_keep(struct weft_credit_pool *p, uint64_t window, uint64_t back);

#endif /* WEFT_PACING_H */
