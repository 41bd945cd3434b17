/* SPDX-License-Identifier: BSD-3-Clause */

#include "core/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* ------------------------------------------------------------------ waking */

static void ring(int fd)
{
	uint64_t one = 1;
	ssize_t n;

	/* The write fails when the counter is full: the event is readable then, too. */
	do {
		n = write(fd, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
}

void weft_worker_signal(struct weft_worker *w)
{
	int fd, saved = errno; /* the caller may be a signal handler */

	if (!w)
		return;
	atomic_store(&w->signalled, true); /* before wake_fd is read: see wait_open() */
	fd = atomic_load(&w->wake_fd);
	if (fd >= 0)
		ring(fd);
	errno = saved;
}

void weft_wait_nudge(struct weft_worker *w)
{
	int fd = atomic_load(&w->wake_fd);

	if (fd >= 0)
		ring(fd);
}

void weft_wait_rouse(struct weft_worker *w)
{
	if (w->wait->roused)
		return;
	w->wait->roused = true;
	ring(w->wait->event);
}

/* ------------------------------------------------------------------ log */

void weft_log_worker_write(enum weft_log_level level, const struct weft_worker *worker,
			   const char *fmt, ...)
{
	char origin[48];
	va_list ap;

	snprintf(origin, sizeof(origin), "[worker %08" PRIx32 "]", (uint32_t)(worker->id >> 32));
	va_start(ap, fmt);
	weft_log_vwrite(level, origin, fmt, ap);
	va_end(ap);
}

void weft_log_ep_write(enum weft_log_level level, const struct weft_ep *ep, const char *fmt, ...)
{
	char origin[96];
	va_list ap;

	snprintf(origin, sizeof(origin),
		 "[worker %08" PRIx32 " ep %" PRIu32 " to %.24s/%08" PRIx32 "]",
		 (uint32_t)(ep->worker->id >> 32), ep->slot, ep->remote_name,
		 (uint32_t)(ep->remote_id >> 32));
	va_start(ap, fmt);
	weft_log_vwrite(level, origin, fmt, ap);
	va_end(ap);
}
