/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/fd_aside.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

#define CLOSE_TRIES 20

/* A forked child has none of its parent's threads; its count starts too high, which only limits. */
static atomic_uint under_way;

static void *close_one(void *arg)
{
	close((int)(intptr_t)arg);
	/* Relaxed: the number is a bound and orders nothing. */
	atomic_fetch_sub_explicit(&under_way, 1, memory_order_relaxed);
	return NULL;
}

bool weft_fd_aside_has_room(void)
{
	return atomic_load_explicit(&under_way, memory_order_relaxed) < WEFT_FD_ASIDE_MAX;
}

bool weft_fd_close_aside(int fd)
{
	if (atomic_fetch_add_explicit(&under_way, 1, memory_order_relaxed) < WEFT_FD_ASIDE_MAX &&
	    weft_thread_start("weft-close", close_one, (void *)(intptr_t)fd, NULL, NULL) == 0)
		return true;
	atomic_fetch_sub_explicit(&under_way, 1, memory_order_relaxed);
	return false;
}

bool weft_socket_refuse_fds(int sock)
{
	const int off = 0;

	return setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)) == 0;
}

void weft_socket_close_public(int sock)
{
	const struct timespec tick = {.tv_nsec = 1000000};
	unsigned int before;

	if (weft_socket_refuse_fds(sock)) {
		close(sock);
		return;
	}
	before = atomic_load_explicit(&under_way, memory_order_relaxed);
	if (!weft_fd_close_aside(sock))
		return;
	/* Most often it closes at once, and the name is free when the caller goes on. */
	for (int i = 0; i < CLOSE_TRIES; i++) {
		if (atomic_load_explicit(&under_way, memory_order_relaxed) <= before)
			return;
		nanosleep(&tick, NULL);
	}
}
