/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/process.h
 * The state that all domains of a process share: the context, from the first domain on, the worker,
 * from the first endpoint on, the lock of both and of everything in this folder, the threads that
 * sleep, and the progress thread.
 */
#ifndef WFI_PROCESS_H
#define WFI_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "provider/lock.h"
#include "provider/options.h"
#include "weft.h"

/* ------------------------------------------------------------------ state of the process */

struct wfi_process {
	/** number of armed struct wfi_wait, for which wfi_unlock() arms the worker */
	unsigned int sleepers;
	/** progress calls of the application, by which the progress thread detects polling */
	atomic_uint progress_calls;
	unsigned int empty_calls; /**< consecutive calls without an event */
	unsigned int domains, endpoints;
	bool serialized;      /**< one domain, whose application serializes its calls (lock.h) */
	unsigned int closing; /**< connections whose close is under way */
	struct wfi_options options;
	struct weft_context *ctx;
	/** job key that an application has given, of weft_secret_alloc(); NULL: none */
	uint8_t *key;
	struct weft_worker *worker; /**< NULL without endpoints */
	unsigned int worker_number; /**< number of workers so far */
	/** generation of the process: a child of fork() has the next */
	unsigned int generation;
};

extern struct wfi_process wfi;

/**
 * A call on the worker has disarmed it: arm it again for threads that sleep, or wake them if it
 * cannot be armed. Locked.
 */
void wfi_arm_for_sleepers(void);

static inline void wfi_unlock(void)
{
	if (wfi.sleepers != 0)
		wfi_arm_for_sleepers();
	wfi_lock_release();
}

/** Locked, in a loop that waits: lets other threads take the lock. */
void wfi_yield(void);

/** Locked, in calls of the application. @return number of events */
static inline unsigned int wfi_progress(void)
{
	unsigned int events = wfi.worker ? weft_worker_progress(wfi.worker) : 0;

	/* Relaxed, and no locked operation: the lock is held, and the thread only compares. */
	atomic_store_explicit(&wfi.progress_calls,
			      atomic_load_explicit(&wfi.progress_calls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	wfi.empty_calls = events ? 0 : wfi.empty_calls + 1;
	return events;
}

/**
 * Locked, after a call of the application that had no event. @return true: the caller should leave
 * the core to other ranks, by sched_yield() after wfi_unlock() (FI_WEFT_YIELD)
 */
static inline bool wfi_turn_is_over(void)
{
	if (wfi.empty_calls < wfi.options.yield_after)
		return false;
	wfi.empty_calls = 0;
	return true;
}

/**
 * Make progress until there are no more events. Bounded, because peers may keep sending. Locked.
 */
static inline void wfi_progress_all(void)
{
	for (unsigned int i = 0; i < 10000 && wfi_progress() > 0; i++)
		;
}

/**
 * One more domain. Locked.
 * @param key  WFI_KEY_LEN bytes that the application has given, or NULL
 * @return 0; -FI_EINVAL: the process has another key, or a variable an invalid value; or another
 * negative libfabric error
 */
int wfi_process_get(const uint8_t *key);
/**
 * Is @p key NULL, or the key that the first domain was opened with? Otherwise a warning is logged.
 * Locked.
 */
bool wfi_process_has_key(const uint8_t *key);
/** One domain less. The last one destroys the context. Locked. */
void wfi_process_put(void);

/** One more enabled endpoint. The first one creates the worker. Locked. @return 0, or an error */
int wfi_worker_get(void);
/**
 * One enabled endpoint less. The last one waits until messages are delivered, and destroys the
 * worker. The wait ends after 30 s without an event, or after 2 minutes. Locked.
 */
void wfi_worker_put(void);
/** Close a connection; what was sent over it is first delivered. Locked. */
void wfi_connection_close(struct weft_ep *ep);

/**
 * In a child of fork(): initialize all state and the lock, which are the parent's. The generation
 * grows by 1, and the number of workers stays.
 */
void wfi_process_forked(void);

/** libfabric's error, positive, for a status of Weft. */
int wfi_errno(int status);

/* ------------------------------------------------------------------ sleeping */

/*
 * Sleeping until the worker has events, or until a call of another thread has processed them: a
 * descriptor that is readable then. There is one for each completion queue, counter and event queue
 * on which threads may wait, and one for the progress thread.
 *
 * A thread that sleeps has armed the worker, and any call on the worker, by any thread, disarms it.
 * So such a call arms it again (wfi_unlock()), and wakes sleepers if that is not possible. If it
 * always woke them, two threads that only poll and sleep again would wake each other forever.
 */

struct wfi_wait {
	int epoll; /**< epoll set of the worker's descriptor and of `event`; -1: not open */
	int event;
	unsigned int worker; /**< number of the worker whose descriptor is in the set; 0: none */
	bool armed;
	bool shy;              /**< the progress thread's: any call of the application wakes it */
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

/** Open the descriptors. @return 0 or a negative error */
int wfi_wait_open(struct wfi_wait *wait);
void wfi_wait_close(struct wfi_wait *wait);

/**
 * Prepare to sleep. Locked, when nothing that the caller waits for is there. @return 0: unlock by
 * wfi_unlock_armed() and sleep; -FI_EAGAIN: make progress and poll again; or another error
 */
int wfi_wait_arm(struct wfi_wait *wait);
/** Unlock, and do not wake sleepers. */
void wfi_unlock_armed(void);
/** Wake threads that sleep on it; any thread may call it. No effect if it is not open. */
void wfi_wait_signal(struct wfi_wait *wait);
/**
 * Sleep unlocked, at most @p timeout ms; negative: without limit. Locked, when nothing that the
 * caller waits for is there. @return 0: make progress and poll again; or a negative error
 */
int wfi_wait_sleep(struct wfi_wait *wait, int timeout);

/** In a child of fork(): no thread sleeps. */
void wfi_wait_forked(void);

/* The end of a wait. wfi_deadline() takes the time until then, in ms; negative: never. */
struct wfi_deadline {
	bool never;
	uint64_t at;
};

struct wfi_deadline wfi_deadline(int timeout);
/** @return remaining ms; 0: it is over; -1: never */
int wfi_deadline_left(const struct wfi_deadline *deadline);

/* ------------------------------------------------------------------ progress thread */

/*
 * The progress thread, one for the process. At intervals it checks whether the application still
 * makes calls.
 *
 * WFI_THREAD_AUTO, for FI_PROGRESS_AUTO: if the application has made none, the thread makes
 * progress, and sleeps on the worker's descriptor when there is nothing to do.
 *
 * WFI_THREAD_WATCH, for FI_PROGRESS_MANUAL: the same after a longer interval, with pauses. So a
 * message whose send is complete arrives, also if a frame was held back or lost, and the
 * application makes no further call.
 */
enum wfi_thread { WFI_THREAD_NONE, WFI_THREAD_WATCH, WFI_THREAD_AUTO };

/**
 * One more user; the lock of the process must not be held.
 * @param interval_us  interval of the checks of WFI_THREAD_AUTO; that of the first user is valid
 * @return 0 or a negative error
 */
int wfi_thread_start(enum wfi_thread kind, unsigned int interval_us);
/** In a child of fork(): there is no such thread. */
void wfi_thread_forked(void);
/**
 * One user less, of the @p kind of its start. The last one ends the thread, and waits for its end.
 * The caller must not hold the lock of the process.
 */
void wfi_thread_stop(enum wfi_thread kind);

#endif /* WFI_PROCESS_H */
