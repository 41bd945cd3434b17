/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/pacing.h
 * Pacing of what a worker sends, requests and registers, and of what peers may send. Functions get
 * the time as an argument and allocate nothing.
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
 * The measured rate: bytes that arrive (sent data: are acknowledged) per time while the lane has a
 * backlog, that is, while its sender has more for it than it takes.
 *
 * The estimate begins with the nominal rate, and follows the bytes counted in *spans*. A span in
 * which the lane may have waited for work (*limited*) gives only a lower bound of the rate.
 *
 * An estimate not confirmed for #WEFT_RATE_STALE drifts back to the nominal rate when it is read,
 * by at most a factor of two in that time. So a lane that was slow, and was not used because of
 * it, is tried again.
 *
 * A span begins with the first bytes that arrive for new work, so a long round trip does not look
 * like a low rate. Bytes that arrive together with the first ones do not count, because their
 * transfer time is unknown. A span weighs at most #WEFT_RATE_MAX, because a peer that did not poll
 * for a second has not become slow. If work ends within a span that is not limited, the next work
 * continues the span without the time between.
 */

#define WEFT_RATE_SPAN 1000000ull /**< ns; shortest span that counts */
#define WEFT_RATE_TAU 8000000ull  /**< ns; time constant of the estimate */
#define WEFT_RATE_MAX 8000000ull  /**< ns; longest weight of a span */
/** ns; age from which the estimate drifts to the nominal rate */
#define WEFT_RATE_STALE 500000000ull

struct weft_rate {
	double rate;    /**< estimate, bytes/s */
	double nominal; /**< bytes/s, as the driver reports */
	uint64_t first; /**< ns; first bytes after weft_rate_start(); 0 = none yet */
	uint64_t last;  /**< ns; last bytes */
	uint64_t span;  /**< ns; length of the present span so far */
	uint64_t bytes; /**< in the present span */
	uint64_t seen;  /**< ns; when a span changed `rate`, or `rate` drifted; 0 = never */
	bool running;
	bool limited; /**< the lane may have waited for work in this span */
};

/** @param nominal  bytes/s; 0 or less counts as 1e9 */
void weft_rate_init(struct weft_rate *r, double nominal);

/** The lane has work. No effect if it already had. */
static inline void weft_rate_start(struct weft_rate *r)
{
	if (r->running)
		return;
	r->running = true;
	r->first = 0;
}

/** The lane had less work than it could have carried, in a part of the present span. */
static inline void weft_rate_limited(struct weft_rate *r)
{
	r->limited = true;
}

/** @return true when the estimate has changed */
bool weft_rate_add(struct weft_rate *r, uint64_t bytes, uint64_t now);

/** All work is finished. @return true when the estimate has changed */
bool weft_rate_pause(struct weft_rate *r, uint64_t now);

/** Work ran out at an unknown time. @return true when the estimate has changed */
bool weft_rate_stop(struct weft_rate *r, uint64_t now);

/** @return bytes/s, > 0; a stale estimate first drifts towards the nominal rate */
double weft_rate_get(struct weft_rate *r, uint64_t now);

/* ------------------------------------------------------------------ quota of requests */

/*
 * A limit for all outstanding requests of a worker to its peers: bytes of rendezvous (rndv/pull.c),
 * or pieces of gets (rma/fence.c).
 *
 * A peer with nothing outstanding always gets a small request. A peer that does not deliver is
 * *stalled*: its outstanding requests do not count, so that other peers get its share, and it gets
 * no further requests. While the limit is reached, a peer must deliver a quarter of its outstanding
 * amount within 20 ms. While any peer delivers, it has more time: until all peers have delivered as
 * much as is outstanding, but at most 200 ms. A stalled peer that delivers a quarter is no longer
 * stalled. So the requests to stalled peers are in addition to the limit.
 */

/** ns in which a peer must deliver a quarter of its outstanding amount */
#define WEFT_SHARE_STALL 20000000ull
/** ns: upper bound of that time while any peer delivers */
#define WEFT_SHARE_STALL_MAX 200000000ull

/** Begins zeroed. */
struct weft_share_user {
	TAILQ_ENTRY(weft_share_user) link; /**< in weft_share.users, if `listed` */
	uint64_t out;
	uint64_t due;   /**< amount that must still arrive in this period */
	uint64_t since; /**< ns: start of the period */
	uint64_t came;  /**< weft_share.came at `since` */
	bool listed, stalled;
};

TAILQ_HEAD(weft_share_users, weft_share_user);

/** Amounts are all in bytes, or all in pieces. */
struct weft_share {
	uint64_t limit;
	uint64_t used; /**< outstanding amount of peers that are not stalled */
	uint64_t peak; /**< the greatest value of `used` after a request */
	uint64_t came; /**< cumulative amount that arrived from all peers */
	uint64_t stalled;
	uint64_t stalls;
	/** peers with outstanding requests that are not stalled, the oldest period first */
	struct weft_share_users users;
};

static inline void weft_share_init(struct weft_share *s, uint64_t limit)
{
	*s = (struct weft_share){.limit = limit};
	TAILQ_INIT(&s->users);
}

/** @return false: the limit is reached, also without peers that are late, which become stalled */
bool weft_share_free(struct weft_share *s, uint64_t now);
/** May @p u get a request? With nothing outstanding it may get a small one in any case. */
bool weft_share_room(struct weft_share *s, const struct weft_share_user *u, uint64_t now);
void weft_share_take(struct weft_share *s, struct weft_share_user *u, uint64_t n, uint64_t now);
/** @p n has arrived, or (@p good false) will not arrive. */
void weft_share_done(struct weft_share *s, struct weft_share_user *u, uint64_t n, bool good,
		     uint64_t now);

/* ------------------------------------------------------------------ backoff of registrations */

/*
 * Registrations on the fly are refused when locked memory is used up. Without a backoff each
 * message would cost a system call that pins its pages, fails, and unpins them.
 *
 * A failure is recorded as a total: the bytes registered already, and those of the message. A
 * smaller total may succeed, so it is tried at once. Others are tried after a time that doubles
 * with each such failure, which detects a raised limit. A success with this total or more resets
 * the backoff.
 */

#define WEFT_BACKOFF_MIN_NS 1000000ull    /**< after the first failure: 1 ms */
#define WEFT_BACKOFF_MAX_NS 1000000000ull /**< upper bound: 1 s */

/** Zeroed = nothing has failed. */
struct weft_backoff {
	uint64_t until; /**< ns: no attempt with `total` or more before */
	uint64_t wait;  /**< ns: last wait; 0 = nothing has failed */
	size_t total;   /**< bytes: least refused total */
	int err;
};

/** Is locked memory the cause? EPERM means a limit of 0 locked bytes. */
static inline bool weft_backoff_is_shortage(int err)
{
	return err == -ENOMEM || err == -EAGAIN || err == -ENOSPC || err == -EPERM;
}

/** @param held  bytes registered. @return 0: worth an attempt; or the error of the last failure */
static inline int weft_backoff_check(const struct weft_backoff *b, uint64_t now, size_t held,
				     size_t length)
{
	return b->wait != 0 && now < b->until && held + length >= b->total ? b->err : 0;
}

/** Bytes to be deregistered before the total is less than the refused one. */
static inline size_t weft_backoff_excess(const struct weft_backoff *b, size_t held, size_t length)
{
	return b->wait != 0 && held + length >= b->total ? held + length - b->total + 1 : 0;
}

static inline void weft_backoff_failed(struct weft_backoff *b, uint64_t now, size_t held,
				       size_t length, int err)
{
	size_t total = held + length;

	/* A smaller total refused for the first time does not raise the wait. */
	if (b->wait == 0 || total < b->total) {
		b->total = total;
		b->wait = b->wait ? b->wait : WEFT_BACKOFF_MIN_NS;
	} else if (now >= b->until) {
		b->wait = b->wait * 2 < WEFT_BACKOFF_MAX_NS ? b->wait * 2 : WEFT_BACKOFF_MAX_NS;
	}
	b->until = now + b->wait;
	b->err = err;
}

/** The backoff ends if the total is at least the refused one. */
static inline void weft_backoff_worked(struct weft_backoff *b, size_t held, size_t length)
{
	if (b->wait != 0 && held + length >= b->total)
		*b = (struct weft_backoff){0};
}

/* ------------------------------------------------------------------ promptness of a peer */

/*
 * A peer on this host makes no progress while its process computes or waits for a core. A copy by
 * the kernel needs no progress of the peer, so after a long wait for the peer the kernel copies the
 * next transfers. Their number doubles with each long wait, and each short wait halves the number
 * that the next long one doubles.
 */

#define WEFT_PROMPT_NS 2500000ull /**< a longer wait is long, another one short */
#define WEFT_PROMPT_LEAST 16u     /**< transfers without the peer after the first long wait */
#define WEFT_PROMPT_MOST 4096u
#define WEFT_PROMPT_SLOW 4u /**< slow transfers in a row that are as a long wait */

/** Zeroed: the peer is prompt. */
struct weft_promptness {
	uint64_t stuck; /**< ns: since when the peer has had no room; 0 = it has room */
	uint64_t late;  /**< ns: end of the last long wait */
	uint16_t left;  /**< next transfers without the peer */
	uint16_t span;  /**< `left` after the last long wait, halved by each short wait */
	uint16_t slow;  /**< slow transfers since the last fast one */
};

/** A wait for the peer's progress has ended. Times in ns. */
void weft_promptness_note(struct weft_promptness *p, uint64_t begun, uint64_t now);

/**
 * A transfer with the peer's help has ended. It is slow if the kernel alone needs less time, @p
 * alone.
 */
void weft_promptness_compare(struct weft_promptness *p, uint64_t begun, uint64_t now,
			     uint64_t alone);

/** @return true: the next transfer must be made without the peer, and is counted as made */
static inline bool weft_promptness_avoid(struct weft_promptness *p)
{
	return p->left > 0 && p->left-- > 0;
}

/** @param full  a message had no room at the peer; false: one has been sent */
static inline void weft_promptness_room(struct weft_promptness *p, bool full, uint64_t now)
{
	if (!full && p->stuck)
		weft_promptness_note(p, p->stuck, now);
	p->stuck = !full ? 0 : p->stuck ? p->stuck : now;
}

/* ------------------------------------------------------------------ the pool of credit */

/*
 * How much of a worker's memory for unexpected messages each peer may use. Each peer has a
 * *window*; all peers share a *pool*, one of payload bytes, another one of messages (msg/credit.c
 * defines which message counts in which).
 *
 * Each peer gets a floor, less if the pool is exhausted, that the pool never takes back. A quarter
 * of the pool is reserved for floors of future peers. A new peer also gets a part of the rest. When
 * a peer has used half of its window, the window doubles, up to twice the remaining pool.
 * Advertised credit cannot be taken back. Returned credit is not granted again while the pool is
 * nearly empty and the window larger than its even share. So idle peers keep their windows, and
 * active peers share the rest.
 *
 * With L = WEFT_UNEXP_LIMIT (64 MiB of bytes; one message for each 256 B of it, 2^18): a floor is
 * 1/2048 of the pool (32 KiB, 128 messages). 512 peers exhaust the pool; further peers get 4 KiB
 * and 16 messages each, beyond the limit: a job of 10,000 peers needs a floor for each. A new peer
 * gets its floor and up to 1/32 of the remaining pool, together at most WEFT_EAGER_CREDIT and 4096
 * messages. All windows together are at most L + 4 KiB x peers.
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
	uint64_t granted; /**< all windows, and unmatched messages of ended endpoints */
	uint64_t floor;   /**< least window of a peer that joins within the limit */
	uint64_t least;   /**< window of a peer that joins beyond the limit */
	uint64_t first;   /**< largest window of a new peer, if the floor is not larger */
	uint64_t max;
	uint32_t peers;
};

/** Requires @p least > 0. */
void weft_credit_pool_init(struct weft_credit_pool *p, uint64_t limit, uint64_t least,
			   uint64_t first, uint64_t max);
uint64_t weft_credit_pool_join(struct weft_credit_pool *p);
void weft_credit_pool_leave(struct weft_credit_pool *p, uint64_t window);
/** The peer has used half of @p window. @return the growth, added to `granted` */
uint64_t weft_credit_pool_grow(struct weft_credit_pool *p, uint64_t window);
/** @return the part of the returned credit @p back by which the caller shrinks the window */
uint64_t weft_credit_pool_keep(struct weft_credit_pool *p, uint64_t window, uint64_t back);

#endif /* WEFT_PACING_H */
