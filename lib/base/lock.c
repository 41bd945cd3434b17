/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/lock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK_PAUSES 8u     /* between two looks: each takes the line from the owner's cache */
#define SPIN_LOOKS 60u     /* before a waiting thread sleeps: about 15 us */
#define GIVE_WAY_LOOKS 24u /* a waiting thread may sleep, or have no core */
#define SLEEP_NS 1000000   /* at most: a release may miss that a thread goes to sleep */

_Thread_local uint32_t weft_lock_thread;

uint32_t weft_lock_number(void)
{
	static _Atomic uint32_t last;

	/* Relaxed: numbers have to be different, in any order. */
	do
		weft_lock_thread = 1 + atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
	while (weft_lock_thread == 0);
	return weft_lock_thread;
}

static inline void pause_once(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void pause_between_looks(void)
{
	for (unsigned int i = 0; i < LOOK_PAUSES; i++)
		pause_once();
}

static uint32_t load(const _Atomic uint32_t *word)
{
	/* Relaxed: a hint; weft_lock_take() orders. */
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *limit)
{
	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, limit, NULL, 0);
}

void weft_lock_wake(struct weft_lock *l)
{
	/* Relaxed: one call for all that sleep now; a thread that sleeps again sets it again. */
	if (atomic_exchange_explicit(&l->sleeps, 0, memory_order_relaxed))
		futex(&l->owner, FUTEX_WAKE, INT_MAX, NULL);
}

static void sleep_once(struct weft_lock *l)
{
	const struct timespec limit = {.tv_nsec = SLEEP_NS};
	uint32_t owner = load(&l->owner);

	if (owner == 0)
		return;
	/* Relaxed: the time limit covers a release that does not see it. */
	atomic_store_explicit(&l->sleeps, 1, memory_order_relaxed);
	futex(&l->owner, FUTEX_WAIT, owner, &limit);
}

static void wait_for(struct weft_lock *l, uint32_t self)
{
	unsigned int looks = 0;

	/* Relaxed: the owner gives way a little later. */
	atomic_fetch_add_explicit(&l->waiting, 1, memory_order_relaxed);
	while (load(&l->owner) != 0 || !weft_lock_take(l, self)) {
		if (++looks > SPIN_LOOKS)
			sleep_once(l);
		else
			pause_between_looks();
	}
	atomic_fetch_sub_explicit(&l->waiting, 1, memory_order_relaxed);
}

/* The caller has the lock. */
static void count_streak(struct weft_lock *l, uint32_t self)
{
	bool again = l->last == self && load(&l->yields) != self;

	l->last = self;
	l->streak = again ? l->streak + 1 : 0;
	/* Relaxed: read by this thread alone for a decision. */
	atomic_store_explicit(&l->yields, l->streak >= WEFT_LOCK_STREAK ? self : 0,
			      memory_order_relaxed);
}

void weft_lock_contended(struct weft_lock *l, uint32_t self)
{
	/* A waiting thread that takes it clears `yields`. */
	for (unsigned int i = 0; i < GIVE_WAY_LOOKS && load(&l->waiting) != 0; i++) {
		if (load(&l->yields) != self)
			break;
		pause_between_looks();
	}
	if (!weft_lock_take(l, self))
		wait_for(l, self);
	count_streak(l, self);
}
