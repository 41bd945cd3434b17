/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/wake.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "core/worker.h"

static void ring(int fd)
{
	uint64_t one = 1;
	ssize_t n;

	/* The write fails when the counter is full; the event is readable in that case, too. */
	do {
		n = write(fd, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
}

void weft_worker_signal(struct weft_worker *w)
{
	int fd, saved = errno; /* signal handlers */

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
