/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/wait.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "provider/process.h"
#include "provider/provider.h"

#define REARMS 8

static LIST_HEAD(, wfi_wait) sleepers = LIST_HEAD_INITIALIZER(sleepers);

static int add(const struct wfi_wait *wait, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(wait->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int wfi_wait_open(struct wfi_wait *wait)
{
	int rc;

	wait->sleeping = 0;
	wait->worker = 0; /* the new epoll set has no worker's descriptor yet */
	wait->epoll = epoll_create1(EPOLL_CLOEXEC);
	wait->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = wait->epoll < 0 || wait->event < 0 ? -errno : add(wait, wait->event);
	if (rc < 0)
		wfi_wait_close(wait);
	return rc;
}

static void disarm(struct wfi_wait *wait)
{
	if (!wait->armed)
		return;
	wait->armed = false;
	LIST_REMOVE(wait, entry);
	wfi.sleepers--;
}

void wfi_wait_close(struct wfi_wait *wait)
{
	disarm(wait);
	if (wait->epoll >= 0)
		close(wait->epoll);
	if (wait->event >= 0)
		close(wait->event);
	wait->epoll = -1;
	wait->event = -1;
}

void wfi_wait_signal(struct wfi_wait *wait)
{
	uint64_t one = 1;
	ssize_t n;

	if (wait->event < 0)
		return;
	n = write(wait->event, &one, sizeof(one)); /* full: it is readable */
	(void)n;
}

/* Wake all, or those whose rearms are used up. */
static void wake(bool all)
{
	struct wfi_wait *wait, *next;

	for (wait = LIST_FIRST(&sleepers); wait; wait = next) {
		next = LIST_NEXT(wait, entry);
		if (!all && !wait->shy && wait->rearms-- > 0)
			continue;
		wfi_wait_signal(wait);
		disarm(wait);
	}
}

void wfi_arm_for_sleepers(void)
{
	wake(false);
	if (wfi.sleepers != 0 && wfi.worker && weft_worker_arm(wfi.worker) < 0)
		wake(true);
}

/* Consume a signal for which no thread has slept. @return was there one? */
static bool take_signal(const struct wfi_wait *wait)
{
	uint64_t count;

	return read(wait->event, &count, sizeof(count)) == (ssize_t)sizeof(count);
}

static int add_worker(struct wfi_wait *wait)
{
	int fd, rc;

	/* The descriptor of an earlier worker left the set when it was closed. */
	if (!wfi.worker || wait->worker == wfi.worker_number)
		return 0;
	fd = weft_worker_get_fd(wfi.worker);
	rc = fd < 0 ? fd : add(wait, fd);
	if (rc == 0)
		wait->worker = wfi.worker_number;
	return rc;
}

int wfi_wait_arm(struct wfi_wait *wait)
{
	int rc;

	/* Other threads must be able to wake the sleeper. */
	wfi_lock_shared();
	if (take_signal(wait))
		return -FI_EAGAIN;
	rc = add_worker(wait);
	if (rc == 0 && wfi.worker)
		rc = weft_worker_arm(wfi.worker);
	if (rc < 0)
		return rc == -EBUSY ? -FI_EAGAIN : -wfi_errno(rc);
	wait->rearms = REARMS;
	if (!wait->armed) {
		wait->armed = true;
		LIST_INSERT_HEAD(&sleepers, wait, entry);
		wfi.sleepers++;
	}
	return 0;
}

void wfi_unlock_armed(void)
{
	wfi_lock_release();
}

int wfi_wait_sleep(struct wfi_wait *wait, int timeout)
{
	struct pollfd fd = {.fd = wait->epoll, .events = POLLIN};
	int rc;

	rc = wfi_wait_arm(wait);
	if (rc == -FI_EAGAIN) {
		wfi_unlock();
		sched_yield();
		wfi_lock_any(); /* as below */
		return 0;
	}
	if (rc < 0)
		return rc;
	wait->sleeping++;
	wfi_unlock_armed();
	poll(&fd, 1, timeout); /* if interrupted, the caller polls and sleeps again */
	/* By the mutex: in the meantime the lock may be in alone mode for another thread. */
	wfi_lock_any();
	if (--wait->sleeping == 0)
		disarm(wait);
	return 0;
}

void wfi_wait_forked(void)
{
	LIST_INIT(&sleepers);
}

/* ------------------------------------------------------------------ deadlines */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

struct wfi_deadline wfi_deadline(int timeout)
{
	if (timeout < 0)
		return (struct wfi_deadline){.never = true};
	return (struct wfi_deadline){.at = now_ms() + (unsigned int)timeout};
}

int wfi_deadline_left(const struct wfi_deadline *deadline)
{
	uint64_t now;

	if (deadline->never)
		return -1;
	now = now_ms();
	return now < deadline->at ? (int)(deadline->at - now) : 0;
}
