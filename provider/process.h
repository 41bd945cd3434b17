/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file process.h
 * The state that all domains of a process share: the context, from the first domain on, the worker,
 * from the first endpoint on, and the lock of both and of everything in this folder.
 */
#ifndef WFI_PROCESS_H
#define WFI_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "provider/lock.h"
#include "provider/options.h"
#include "weft.h"

struct wfi_process {
	/** armed struct wfi_wait, for which wfi_unlock() arms the worker */
	unsigned int sleepers;
	/** calls of the application; by them the thread detects polling */
	unsigned int progress_calls;
	unsigned int empty_calls; /**< consecutive calls without an event */
	unsigned int domains, endpoints;
	struct wfi_options options;
	struct weft_context *ctx;
	struct weft_worker *worker; /**< NULL without endpoints */
	unsigned int worker_number; /**< number of workers so far */
	/** generation of the process: a child of fork() has the next */
	unsigned int generation;
};

extern struct wfi_process wfi;

/* A call on the worker has disarmed it: arm it again for threads that sleep. */
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

	wfi.progress_calls++;
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

/** One more domain. Locked. @return 0, or a negative libfabric error */
int wfi_process_get(void);
/** One domain less. Locked. */
void wfi_process_put(void);

/** One more endpoint. Locked. @return 0, or a negative libfabric error */
int wfi_worker_get(void);
/** One endpoint less. Locked. */
void wfi_worker_put(void);

/** In a child of fork(): all state is the parent's, including the lock. */
void wfi_process_forked(void);

/** libfabric's error, positive, for a status of Weft. */
int wfi_errno(int status);

#endif /* WFI_PROCESS_H */
