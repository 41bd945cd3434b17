/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wait.h
 * Sleeping until the worker has something to do, or another thread's call has done it: a descriptor
 * that is readable then. One for each completion queue and counter that may be waited for.
 *
 * Who sleeps has armed the worker, and any call on it, by any thread, ends that. So such a call
 * arms it again (wfi_unlock()), and wakes who sleeps where that can't be done. Were they always
 * woken, two who only look and sleep again would wake each other for ever.
 */
#ifndef WFI_WAIT_H
#define WFI_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct wfi_wait {
	int epoll; /**< the worker's descriptor and the next; -1: not open */
	int event;
	unsigned int worker; /**< number of the worker whose descriptor is in it; 0: none */
	bool armed;
	bool shy;              /**< a call of the application wakes it: the thread's */
	unsigned int sleeping; /**< threads in wfi_wait_sleep() */
	/** Who is awake and has not said so costs every call: so often, then it is woken. */
	unsigned int rearms;
	LIST_ENTRY(wfi_wait) entry; /**< of those that are armed */
};

#define WFI_WAIT_CLOSED                  \
	{                                \
		.epoll = -1, .event = -1 \
	}

/** @return 0 or a negative error */
int wfi_wait_open(struct wfi_wait *wait);
void wfi_wait_close(struct wfi_wait *wait);

/**
 * Locked, with nothing there that the caller waits for. @return 0: sleep, unlocked by
 * wfi_unlock_armed(); -FI_EAGAIN: make progress and look again; or another error
 */
int wfi_wait_arm(struct wfi_wait *wait);
/** Unlocks, and leaves sleepers asleep. */
void wfi_unlock_armed(void);
/** Any thread: wakes this one. */
void wfi_wait_signal(struct wfi_wait *wait);
/**
 * Locked, with nothing there that the caller waits for: sleeps unlocked, at most @p timeout ms;
 * negative: for ever. @return 0: make progress and look again; or a negative error
 */
int wfi_wait_sleep(struct wfi_wait *wait, int timeout);

/** In a child of fork(): nobody sleeps. */
void wfi_wait_forked(void);

/* A time from now, in ms; negative: never. */
struct wfi_deadline {
	bool never;
	uint64_t at;
};

struct wfi_deadline wfi_deadline(int timeout);
/** @return ms that are left, at most; 0: it is over; -1: never */
int wfi_deadline_left(const struct wfi_deadline *deadline);

#endif /* WFI_WAIT_H */
