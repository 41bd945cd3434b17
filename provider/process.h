/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/process.h
 * The state that all domains of a process share: context, worker, the lock of everything in this
 * folder, the domains' numbers, sleeping threads, and the progress thread. The first domain creates
 * the context; the first enabled endpoint creates the worker.
 */
#ifndef WFI_PROCESS_H
#define WFI_PROCESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "provider/provider.h"
#include "weft.h"

/* ------------------------------------------------------------------ the lock */

/*
 * The lock is a mutex. But an application with one domain that promises to serialize its calls
 * (FI_THREAD_DOMAIN), as MPI without MPI_THREAD_MULTIPLE does, needs no mutex. A mutex taken twice
 * for each message, and once for each poll of a queue, would be a large part of the costs. In this
 * *alone* mode the lock is taken by a store. Other threads (another domain, the progress thread,
 * calls on objects of the fabric) use wfi_lock_any(), which ends this mode: it takes the mutex,
 * clears `alone`, and waits until no thread holds the lock by a store. From then on all threads use
 * the mutex.
 *
 * A thread that takes the lock by a store sets `inside` and then reads `alone`. A thread that ends
 * the mode clears `alone` and then reads `inside`. If each has a fence in between, one of them sees
 * the other's store. The thread that ends the mode issues the fence for both, by membarrier().
 * Without that system call the mode is never enabled.
 *
 * The process must register for membarrier() first. In a process with several threads the
 * registration takes 8 to 16 ms, until each CPU has switched tasks. So a separate thread registers,
 * and enables the mode afterwards if it is still wanted; until then the mutex is the lock.
 */

struct wfi_lock {
	_Atomic bool alone;  /**< set to true with the mutex, when no other thread is inside */
	_Atomic bool inside; /**< a thread has the lock by a store, or tries to get it */
	bool by_store;       /**< whether the present owner took the lock by a store */
	bool wanted;         /**< the mode is to be enabled when the process is registered */
	bool registered;     /**< the process is registered for membarrier() */
	pthread_mutex_t mutex;
};

extern struct wfi_lock wfi_the_lock;

/** End alone mode, and take the mutex: for threads that may meet a thread in alone mode. */
void wfi_lock_any(void);
/**
 * Unlock after wfi_lock_any(): from now on all callers serialize their calls. Alone mode is enabled
 * now, or some ms later by a thread. Without membarrier() it is never enabled.
 */
void wfi_unlock_alone(void);
/**
 * Wait for the end of the thread that enables alone mode, since the shared object may be unloaded
 * afterwards. The caller must not hold the lock.
 */
void wfi_lock_join(void);
/**
 * wfi_lock_join() at the end of the process. A signal handler that calls exit() may interrupt a
 * call that has the mutex and never continues. So the function waits for the mutex for 1 s at most.
 */
void wfi_lock_join_at_exit(void);
/** The part of wfi_lock() that takes the mutex. */
void wfi_lock_slow(void);
/** In a child of fork(): initialize the lock, which another thread of the parent may have held. */
void wfi_lock_forked(void);
/** End alone mode, with the lock held: from now on other threads may take the mutex. */
static inline void wfi_lock_shared(void)
{
	/*
	 * Release: a thread that reads `alone` as false also sees `inside`, which is true if this
	 * thread took the lock by a store.
	 */
	atomic_store_explicit(&wfi_the_lock.alone, false, memory_order_release);
	wfi_the_lock.wanted = false;
}

/** Take the lock, for calls on objects of a domain. */
static inline void wfi_lock(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	/* Relaxed: `alone` is read again below. */
	if (__builtin_expect(!atomic_load_explicit(&l->alone, memory_order_relaxed), 0)) {
		wfi_lock_slow();
		return;
	}
	atomic_store_explicit(&l->inside, true, memory_order_relaxed);
	/* The membarrier() of the thread that ends the mode makes a fence of this. */
	atomic_signal_fence(memory_order_seq_cst);
	/* Acquire: changes made before the mode was enabled are visible. */
	if (__builtin_expect(atomic_load_explicit(&l->alone, memory_order_acquire), 1)) {
		l->by_store = true;
		return;
	}
	atomic_store_explicit(&l->inside, false, memory_order_relaxed);
	wfi_lock_slow();
}

/** Release the lock, however it was taken. wfi_unlock() also arms the worker for sleepers. */
static inline void wfi_lock_release(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	/* Release: a thread that waits until `inside` is false sees this thread's changes. */
	if (__builtin_expect(l->by_store, 1))
		atomic_store_explicit(&l->inside, false, memory_order_release);
	else
		pthread_mutex_unlock(&l->mutex);
}

/* ------------------------------------------------------------------ state of the process */

struct wfi_process {
	/** number of armed struct wfi_wait, for which wfi_unlock() arms the worker */
	unsigned int sleepers;
	/** number of progress calls of the application: how the thread detects polling */
	atomic_uint progress_calls;
	unsigned int empty_calls;        /**< consecutive progress calls without an event */
	unsigned int domains, endpoints; /**< open domains; enabled endpoints */
	bool serialized;                 /**< one domain with serialized calls (stay_alone()) */
	unsigned int closing;            /**< connections whose close is under way */
	struct wfi_options options;
	struct weft_context *ctx;
	/** auth_key of the first domain, of weft_secret_alloc(); NULL: none */
	uint8_t *key;
	/**
	 * key by which frames are sealed: `key`, or else the key of WEFT_JOB_KEY; of
	 * weft_secret_alloc(), constant while there are domains; NULL: frames are not sealed
	 */
	uint8_t *seal_key;
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

/** Release the lock and take it again, so that other threads get it while the caller waits. */
void wfi_yield(void);

/** Make progress once, in a call of the application. Locked. @return number of events */
static inline unsigned int wfi_progress(void)
{
	unsigned int events = wfi.worker ? weft_worker_progress(wfi.worker) : 0;

	/*
	 * Relaxed, and no atomic increment: writers hold the lock, and the progress thread only
	 * compares.
	 */
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

/** Make progress until there are no more events, 10000 times at most. Locked. */
static inline void wfi_progress_all(void)
{
	for (unsigned int i = 0; i < 10000 && wfi_progress() > 0; i++)
		;
}

/**
 * Count one more domain. The first one reads the variables and creates the context. Locked.
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
/** Count one domain less. The last one destroys the context. Locked. */
void wfi_process_put(void);

/**
 * Count one more enabled endpoint. The first one creates the worker. Locked. @return 0, or a
 * negative libfabric error
 */
int wfi_worker_get(void);
/**
 * Count one enabled endpoint less. The last one waits until messages are delivered, and destroys
 * the worker. The wait ends after 30 s without an event, or after 2 minutes. Locked.
 */
void wfi_worker_put(void);
/** Close a connection after its messages are delivered. The call does not wait. Locked. */
void wfi_connection_close(struct weft_ep *ep);

/**
 * In a child of fork(): initialize all state and the lock, which are the parent's. The generation
 * grows by 1, and the number of workers stays.
 */
void wfi_process_forked(void);

/** libfabric's error, positive, for a status of Weft. */
int wfi_errno(int status);

/* ------------------------------------------------------------------ domains */

/*
 * The progress thread, one for the process. At intervals it checks whether the application still
 * makes calls that make progress.
 *
 * WFI_THREAD_AUTO, for FI_PROGRESS_AUTO: if the application has made none, the thread makes
 * progress, and sleeps on the worker's descriptor when there is nothing to do.
 *
 * WFI_THREAD_WATCH, for FI_PROGRESS_MANUAL: the same after a longer interval, with pauses. So a
 * message whose send is complete arrives even if a frame was held back or lost and the application
 * makes no further call. While threads of the application sleep, this thread does nothing.
 */
enum wfi_thread { WFI_THREAD_NONE, WFI_THREAD_WATCH, WFI_THREAD_AUTO };

/**
 * A domain: a group of objects of an application. In a child of fork() each domain that was open
 * before the fork belongs to the parent.
 */
struct wfi_domain {
	struct fid_domain domain;
	unsigned int refs;       /**< number of open objects in it */
	enum wfi_thread thread;  /**< its use of the progress thread */
	unsigned int generation; /**< generation of the process that opened it */
	uint32_t api_version;    /**< libfabric's version that the application has requested */
	bool app_keys;           /**< the application chooses keys of regions */
	uint8_t number;          /**< with app_keys: the domain's number in endpoints' addresses */
	uint32_t addr_format;    /**< of its addresses: FI_FORMAT_UNSPEC or FI_ADDR_STR */
	enum fi_av_type av_type;
};

/**
 * Give the domain a number, if the application chooses keys. Locked. @return 0, or -FI_EMFILE: all
 * 256 numbers are in use
 */
int wfi_domain_number_take(struct wfi_domain *domain);
/** Free the domain's number, if it has one. Locked. */
void wfi_domain_number_put(const struct wfi_domain *domain);

/** Was the domain opened before the fork() that made this process, so by one of its ancestors? */
static inline bool wfi_domain_is_parents(const struct wfi_domain *domain)
{
	return domain->generation != wfi.generation;
}

/* ------------------------------------------------------------------ sleeping */

/*
 * A struct wfi_wait has a descriptor that becomes readable when the worker has events, or when a
 * call of another thread has processed them. There is one for each completion queue, counter and
 * event queue on which threads may wait, and one for the progress thread.
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
	bool shy;              /**< the progress thread's: each wfi_unlock() wakes it */
	unsigned int sleeping; /**< threads in wfi_wait_sleep() */
	/**
	 * How often wfi_unlock() arms the worker for it, before it is woken and disarmed: an
	 * application that has returned from its own poll() leaves it armed without a sleeper.
	 */
	unsigned int rearms;
	LIST_ENTRY(wfi_wait) entry; /**< in the list of armed waits */
};

#define WFI_WAIT_CLOSED                  \
	{                                \
		.epoll = -1, .event = -1 \
	}

/** Open the descriptors. @return 0 or a negative error */
int wfi_wait_open(struct wfi_wait *wait);
void wfi_wait_close(struct wfi_wait *wait);

/**
 * Prepare to sleep. Locked; the caller has checked that nothing that it waits for is there.
 * @return 0: unlock by wfi_unlock_armed() and sleep; -FI_EAGAIN: make progress and poll again; or
 * another error
 */
int wfi_wait_arm(struct wfi_wait *wait);
/** Unlock, and neither arm the worker nor wake sleepers. */
void wfi_unlock_armed(void);
/** Wake threads that sleep on @p wait, if it is open. Any thread may call it. */
void wfi_wait_signal(struct wfi_wait *wait);
/**
 * Sleep at most @p timeout ms; negative: without limit. The caller has the lock, which is released
 * during the sleep, and has found nothing that it waits for.
 * @return 0: make progress and poll again; or a negative error
 */
int wfi_wait_sleep(struct wfi_wait *wait, int timeout);

/** In a child of fork(): no thread sleeps. */
void wfi_wait_forked(void);

/* The time at which a wait ends. wfi_deadline() takes ms from now on; negative: never. */
struct wfi_deadline {
	bool never;
	uint64_t at; /**< ms of CLOCK_MONOTONIC */
};

struct wfi_deadline wfi_deadline(int timeout);
/** @return remaining ms; 0: the deadline has passed; -1: there is none */
int wfi_deadline_left(const struct wfi_deadline *deadline);

/* ------------------------------------------------------------------ progress thread */

/**
 * Add a user of the progress thread. The first one starts it. The caller must not hold the lock of
 * the process.
 * @param interval_us  us between checks of WFI_THREAD_AUTO; that of the first user is valid
 * @return 0 or a negative error
 */
int wfi_thread_start(enum wfi_thread kind, unsigned int interval_us);
/** In a child of fork(): the progress thread does not run and has no users. */
void wfi_thread_forked(void);
/**
 * Remove a user, with the @p kind of its start. The last one ends the thread, and waits for it.
 * The caller must not hold the lock of the process.
 */
void wfi_thread_stop(enum wfi_thread kind);

#endif /* WFI_PROCESS_H */
