/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wait.h
 * Sleeping until the worker has events, or until a call of another thread has processed them: a
 * descriptor that is readable then. There is one for each completion queue and counter on which
 * threads may wait.
 *
 * A thread that sleeps has armed the worker, and any call on the worker, by any thread, disarms it.
 * So such a call arms it again (wfi_unlock()), and wakes sleepers if that is not possible. If it
 * always woke them, two threads that only poll and sleep again would wake each other forever.
 */
#ifndef WFI_WAIT_H
#define WFI_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct wfi_wait {
	int epoll; /**< epoll set of the worker's descriptor and of `event`; -1: not open */
	int event;
	unsigned int worker; /**< number of the worker whose descriptor is in the set; 0: none */
	bool armed;
	bool shy;              /**< a call of the application wakes it: for the progress thread */
	unsigned int sleeping; /**< threads in wfi_wait_sleep() */
	/**
	 * A sleeper that has woken up elsewhere and is still armed costs every call. After this
	 * number of calls it is woken.
	 */
	unsigned int rearms;
	LIST_ENTRY(wfi_wait) entry; /**< in the list of armed ones */
};

#define WFI_WAIT_CLOSED                  \
	{                                \
		.epoll = -1, .event = -1 \
	}

/** @return 0 or a negative error */
int wfi_wait_open(struct wfi_wait *wait);
void wfi_wait_close(struct wfi_wait *wait);

/**
 * Locked, when nothing that the caller waits for is there. @return 0: sleep, unlocked by
 * wfi_unlock_armed(); -FI_EAGAIN: make progress and poll again; or another error
 */
int wfi_wait_arm(struct wfi_wait *wait);
/** Unlocks, and does not wake sleepers. */
void wfi_unlock_armed(void);
/** Wakes the sleeper. Any thread. */
void wfi_wait_signal(struct wfi_wait *wait);
/**
 * Locked, when nothing that the caller waits for is there. Sleeps unlocked, at most @p timeout ms;
 * negative: without limit. @return 0: make progress and poll again; or a negative error
 */
int wfi_wait_sleep(struct wfi_wait *wait, int timeout);

/** In a child of fork(): no thread sleeps. */
void wfi_wait_forked(void);

/* A time from now, in ms; negative: never. */
struct wfi_deadline {
	bool never;
	uint64_t at;
};

struct wfi_deadline wfi_deadline(int timeout);
/** @return remaining ms; 0: it is over; -1: never */
int wfi_deadline_left(const struct wfi_deadline *deadline);

#endif /* WFI_WAIT_H */
