/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/wake.h
 * The state of a worker that waits (wait.h), and how its sleeping threads are woken. Every call
 * that takes the worker's lock refers to it, and needs nothing else of waiting.
 */
#ifndef WEFT_WAKE_H
#define WEFT_WAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct weft_worker;

/** State of a worker that has waited at least once: wait.c. */
struct weft_wait {
	int epoll, timer, event;
	uint32_t in_epoll;     /* bit i: ifaces[i] wakes */
	uint32_t armed_ifaces; /* bit i: arm() of ifaces[i] was called */
	uint64_t timer_at;     /* time of the timer; NEVER = not set */
	uint64_t sleep;        /* next sleep, if a lane cannot wake the worker */
	unsigned int sleepers; /* threads that sleep in weft_worker_wait() */
	pthread_t armer;       /* thread that armed it */
	bool others;           /* another thread than those that wait has called progress */
	bool roused;           /* sleepers must return: the eventfd was written */
	/*
	 * Number of wake-ups whose last sleeper has left. Written with both locks, the worker's
	 * first; read with one of them.
	 */
	uint64_t wakeups;
	pthread_mutex_t left_lock;
	pthread_cond_t left; /* by the monotonic clock */
	/*
	 * Adaptive polling. spin_skip: number of further waits that do not poll. spin_backoff: the
	 * value of spin_skip after the last poll. A poll without result doubles it, up to
	 * SPIN_SKIP_MAX (0 becomes 1).
	 */
	unsigned int spin_skip, spin_backoff;
};

/** A sleeping thread makes a progress call, and waits on. Any thread; without the lock. */
void weft_wait_nudge(struct weft_worker *w);
/** Rouse sleeping threads, because a call has changed state that they may wait for. Locked. */
void weft_wait_rouse(struct weft_worker *w);

#endif /* WEFT_WAKE_H */
