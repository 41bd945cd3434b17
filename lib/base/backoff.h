/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/backoff.h
 * Not to ask again and again for what is refused: registrations on the fly when locked memory is
 * used up. Each message would pay for a system call that pins its pages, fails, and lets them go.
 * Pure: no clock, no locks.
 *
 * What failed is known by how much there would have been: what is registered, and the message. Less
 * than that may still go, so a smaller message, or one after something was deregistered, is tried
 * at once; the others after a while that doubles with each failure. A limit that was raised is
 * noticed then; after that it begins again.
 */
#ifndef WEFT_BACKOFF_H
#define WEFT_BACKOFF_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_BACKOFF_MIN_NS 1000000ull    /**< after the first failure: 1 ms */
#define WEFT_BACKOFF_MAX_NS 1000000000ull /**< at most: 1 s */

/** Zeroed = nothing has failed. */
struct weft_backoff {
	uint64_t until; /**< ns: not again before */
	uint64_t wait;  /**< ns: how long the last time; 0 = nothing has failed */
	/** bytes: least that was refused since it last went well, with all that was there */
	size_t total;
	int err; /**< what it failed with */
};

/**
 * An error that other memory of the same size would get, too? A limit of no locked memory at all is
 * EPERM.
 */
static inline bool weft_backoff_is_shortage(int err)
{
	return err == -ENOMEM || err == -EAGAIN || err == -ENOSPC || err == -EPERM;
}

/**
 * Shall @p length bytes more beside @p held be requested?
 * @return 0, or the error that was the answer before
 */
static inline int weft_backoff_ask(const struct weft_backoff *b, uint64_t now, size_t held,
				   size_t length)
{
	return b->wait != 0 && now < b->until && held + length >= b->total ? b->err : 0;
}

/** Bytes that must go before they are not known to be too many. */
static inline size_t weft_backoff_excess(const struct weft_backoff *b, size_t held, size_t length)
{
	return b->wait != 0 && held + length >= b->total ? held + length - b->total + 1 : 0;
}

/** They were refused with @p err. */
static inline void weft_backoff_failed(struct weft_backoff *b, uint64_t now, size_t held,
				       size_t length, int err)
{
	size_t total = held + length;

	/*
	 * Something smaller, or after something else went: that is news, not the same thing again.
	 */
	if (b->wait == 0 || total < b->total) {
		b->total = total;
		b->wait = b->wait ? b->wait : WEFT_BACKOFF_MIN_NS;
	} else if (now >= b->until) {
		b->wait = b->wait * 2 < WEFT_BACKOFF_MAX_NS ? b->wait * 2 : WEFT_BACKOFF_MAX_NS;
	}
	b->until = now + b->wait;
	b->err = err;
}

/** They were taken. */
static inline void weft_backoff_worked(struct weft_backoff *b, size_t held, size_t length)
{
	if (b->wait != 0 && held + length >= b->total)
		*b = (struct weft_backoff){0};
}

#endif /* WEFT_BACKOFF_H */
