/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/backoff.h
 * Backoff for registrations on the fly that the system refuses because locked memory is used up.
 * Without it each message would cost a system call that pins its pages, fails, and unpins them.
 * Pure: no clock, no locks.
 *
 * A failure is recorded as a total: the bytes registered already, and those of the message. A
 * smaller total may still succeed, so a smaller message, or one after a deregistration, is tried at
 * once. Other messages are tried after a time that doubles with each failure, which detects a
 * raised limit. A success with this total or more resets the backoff.
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
	uint64_t until; /**< ns: no attempt before */
	uint64_t wait;  /**< ns: last waiting time; 0 = nothing has failed */
	/**
	 * bytes: smallest total that was refused since the last success, registered bytes included
	 */
	size_t total;
	int err; /**< error of the failure */
};

/**
 * Would other memory of the same size get the same error? EPERM means a limit of 0 locked bytes.
 */
static inline bool weft_backoff_is_shortage(int err)
{
	return err == -ENOMEM || err == -EAGAIN || err == -ENOSPC || err == -EPERM;
}

/**
 * Is it worth registering @p length bytes in addition to @p held?
 * @return 0, or the error of the last attempt
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

	/* A smaller total was refused: this is a new fact, not a repetition of the last failure. */
	if (b->wait == 0 || total < b->total) {
		b->total = total;
		b->wait = b->wait ? b->wait : WEFT_BACKOFF_MIN_NS;
	} else if (now >= b->until) {
		b->wait = b->wait * 2 < WEFT_BACKOFF_MAX_NS ? b->wait * 2 : WEFT_BACKOFF_MAX_NS;
	}
	b->until = now + b->wait;
	b->err = err;
}

/** The registration succeeded. */
static inline void weft_backoff_worked(struct weft_backoff *b, size_t held, size_t length)
{
	if (b->wait != 0 && held + length >= b->total)
		*b = (struct weft_backoff){0};
}

#endif /* WEFT_BACKOFF_H */
