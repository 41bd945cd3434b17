/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/wait.h
 * Waiting without spinning. A worker that waits has one epoll descriptor, in which are
 *  - the descriptor of each lane that can wake its owner (lane.h, wait_fd()),
 *  - a timer for what is due: the earliest time that a lane's arm() or wire-up names, or the next
 *    check lanes that cannot wake,
 *  - an eventfd for weft_worker_signal() and other threads' calls.
 *
 * States: *awake*, *armed*. weft_worker_arm() looks first (a signal, callbacks that are due, each
 * lane), and only when nothing is found is the worker armed; whatever happens from then on makes
 * the epoll descriptor readable. The first progress call afterwards, whoever makes it, disarms.
 *
 * With WEFT_THREAD_MULTI several threads may sleep, and others call in the meantime:
 *  - who posts something rouses the sleepers: it may have a deadline of its own;
 *  - a progress call that handles something rouses them, too: it may be what they wait for; one
 *    that handles nothing arms the worker again for them;
 *  - who waits while others sleep joins them, and moves the timer forward if need be;
 *  - roused sleepers leave one after the other, and until then the descriptor stays readable. A
 *    thread that would sleep meanwhile waits until the last of them has left (`left`): it would
 *    only find that same wake-up again, and keep the core that they need.
 * The eventfd is emptied by the last sleeper that leaves, and by arm() when no thread sleeps: it
 * cannot be taken away from a thread that is just about to wake.
 */
#ifndef WEFT_WAIT_H
#define WEFT_WAIT_H

#include <pthread.h>

#include "core/worker.h"

/** What a worker that has waited once has: wait.c, and core/wake.c for those who wake it. */
struct weft_wait {
	int epoll, timer, event;
	uint32_t in_epoll;     /* bit i: ifaces[i] wakes */
	uint32_t armed_ifaces; /* bit i: arm() of ifaces[i] was called */
	uint64_t timer_at;     /* what the timer is set to; NEVER = nothing */
	uint64_t sleep;        /* of lanes that cannot wake: the next one */
	unsigned int sleepers; /* threads that sleep in weft_worker_wait() */
	pthread_t armer;       /* who armed it */
	bool others;           /* a progress call was made by another thread than those that wait */
	bool roused;           /* sleepers are to return: the eventfd was rung */
	/*
	 * Times that the last roused sleeper has left. Written with both locks, the worker's first;
	 * read with one of them.
	 */
	uint64_t wakeups;
	pthread_mutex_t left_lock;
	pthread_cond_t left; /* by the monotonic clock */
	/*
	 * Adaptive polling: so many waits to come go without; and how many after the next failure.
	 */
	unsigned int spin_skip, spin_backoff;
};

/** A progress call begins while the worker is armed: lanes go on without descriptors. Locked. */
void weft_wait_disarm(struct weft_worker *w);
/** The same call ends, and has handled @p n events. Locked. */
void weft_wait_after(struct weft_worker *w, unsigned int n);
/** The iface's descriptor, or a negative error: it cannot wake. */
int weft_wait_fd_of(struct weft_lane_iface *iface);
/** The worker ends. Nothing is made or freed when nobody has waited. */
void weft_wait_close(struct weft_worker *w);

#endif /* WEFT_WAIT_H */
