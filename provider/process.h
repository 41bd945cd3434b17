/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file process.h
 * What all domains of a process share: the context, from the first domain on, the worker, from the
 * first endpoint on, and the lock of both and of everything in this folder.
 */
#ifndef WFI_PROCESS_H
#define WFI_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "provider/lock.h"
#include "provider/options.h"
#include "weft.h"

struct wfi_process {
	unsigned int sleepers;       /**< armed struct wfi_wait: wfi_unlock() cares for them */
	unsigned int progress_calls; /**< of the application; tells the thread that it polls */
	unsigned int empty_calls;    /**< of them in a row, without an event */
	unsigned int domains, endpoints;
	struct wfi_options options;
	struct weft_context *ctx;
	struct weft_worker *worker; /**< NULL without endpoints */
	unsigned int worker_number; /**< how many there have been */
	unsigned int generation;    /**< of processes: a child of fork() has the next */
};

extern struct wfi_process wfi;

/* A call on the worker has ended what it was armed for. */
void wfi_arm_for_sleepers(void);

static inline void wfi_unlock(void)
{
	if (wfi.sleepers != 0)
		wfi_arm_for_sleepers();
	wfi_lock_release();
}

/** Locked, in a loop that waits: other threads get the lock for a moment. */
void wfi_yield(void);

/** Locked. Of the application. @return number of events */
static inline unsigned int wfi_progress(void)
{
	unsigned int events = wfi.worker ? weft_worker_progress(wfi.worker) : 0;

	wfi.progress_calls++;
	wfi.empty_calls = events ? 0 : wfi.empty_calls + 1;
	return events;
}

/**
 * Locked, after a call of the application that found nothing. @return true: the core is to be left
 * to other ranks, by sched_yield() after wfi_unlock() (FI_WEFT_YIELD)
 */
static inline bool wfi_turn_is_over(void)
{
	if (wfi.empty_calls < wfi.options.yield_after)
		return false;
	wfi.empty_calls = 0;
	return true;
}

/** Until nothing more is there, or other peers keep sending. Locked. */
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

/** In a child of fork(): all is the parent's, the lock included. */
void wfi_process_forked(void);

/** libfabric's error, positive, for a status of Weft's. */
int wfi_errno(int status);

#endif /* WFI_PROCESS_H */
