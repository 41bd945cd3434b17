/* SPDX-License-Identifier: BSD-3-Clause */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frame/farewell.h"
#include "weft_build.h"

#define TABLE_LEN (WEFT_FAREWELL_SLOTS * sizeof(struct weft_farewell_slot))
/*
 * When a process ends, the kernel closes its highest descriptor first, and is slow with packet
 * sockets. So the pipe has a high number.
 */
#define FD_HIGH 900

static struct {
	pthread_mutex_t lock;
	unsigned int users;
	int alive;       /* the pipe's end of this process */
	bool has_packet; /* the helper has a packet socket, which needs CAP_NET_RAW */
	uint32_t next;
	struct weft_farewell_slot *table;
	pid_t owner; /* process of the table: a forked child must not change its parent's */
} farewell = {.lock = PTHREAD_MUTEX_INITIALIZER, .alive = -1};

/* ---- start ---------------------------------------------------------------------------------- */

/* A relative path of the library is not used: the working directory may be another user's. */
static bool find_helper(char *path, size_t size)
{
	static const char *const places[] = {"weft/weft-farewell", "app/weft-farewell",
					     "weft-farewell"};
	const char *slash = NULL;
	Dl_info info;
	size_t i;

	if (dladdr((void *)(uintptr_t)weft_farewell_begin, &info) && info.dli_fname &&
	    info.dli_fname[0] == '/')
		slash = strrchr(info.dli_fname, '/');
	for (i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, size, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname,
			 places[i]);
		if (access(path, X_OK) == 0)
			return true;
	}
	snprintf(path, size, "%s", WEFT_BUILD_FAREWELL);
	return access(path, X_OK) == 0;
}

/* Replaces @p fd. @return a descriptor of the same file, at least @p least; -1 = none */
static int move_up(int fd, int least)
{
	int up = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, least);

	if (fd >= 0)
		close(fd);
	return up;
}

/* The started process forks the helper and ends, so that the application gets no signal. */
static int spawn(const char *path, int table, int sock, int alive)
{
	char *const argv[] = {(char *)(uintptr_t) "weft-farewell", NULL}, *const env[] = {NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int rc = posix_spawn_file_actions_init(&actions);

	if (rc)
		return -rc;
	rc = posix_spawn_file_actions_adddup2(&actions, table, WEFT_FAREWELL_FD_TABLE);
	if (!rc && sock >= 0)
		rc = posix_spawn_file_actions_adddup2(&actions, sock, WEFT_FAREWELL_FD_SOCKET);
	else if (!rc)
		rc = posix_spawn_file_actions_addclose(&actions, WEFT_FAREWELL_FD_SOCKET);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&actions, alive, WEFT_FAREWELL_FD_ALIVE);
	if (!rc)
		rc = posix_spawn(&pid, path, &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	if (!rc)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	return -rc;
}

static int start(const char *path)
{
	int pair[2] = {-1, -1}, table, sock, rc;

	table = move_up(memfd_create("weft-farewell", MFD_CLOEXEC), 10);
	sock = move_up(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), 10);
	if (pipe2(pair, O_CLOEXEC) == 0) {
		pair[0] = move_up(pair[0], 10);
		farewell.alive = fcntl(pair[1], F_DUPFD_CLOEXEC, FD_HIGH);
		if (farewell.alive < 0)
			farewell.alive = fcntl(pair[1], F_DUPFD_CLOEXEC, 10);
		close(pair[1]);
	}
	farewell.has_packet = sock >= 0;
	if (table >= 0 && pair[0] >= 0 && farewell.alive >= 0 &&
	    ftruncate(table, (off_t)TABLE_LEN) == 0)
		farewell.table =
			mmap(NULL, TABLE_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, table, 0);
	if (farewell.table == MAP_FAILED)
		farewell.table = NULL;
	rc = farewell.table ? spawn(path, table, sock, pair[0]) : -EIO;
	if (table >= 0)
		close(table);
	if (sock >= 0)
		close(sock);
	if (pair[0] >= 0)
		close(pair[0]);
	return rc;
}

static void stop(void)
{
	if (farewell.table)
		munmap(farewell.table, TABLE_LEN);
	if (farewell.alive >= 0)
		close(farewell.alive);
	farewell.table = NULL;
	farewell.alive = -1;
}

bool weft_farewell_begin(enum weft_farewell_kind kind)
{
	char path[PATH_MAX];
	bool can;
	int rc;

	pthread_mutex_lock(&farewell.lock);
	if (farewell.users == 0 || farewell.owner != getpid()) {
		farewell.users = 0;
		stop(); /* in a forked child: releases its copies of the parent's table and pipe */
		farewell.owner = getpid();
		rc = find_helper(path, sizeof(path)) ? start(path) : -ENOENT;
		if (rc) {
			stop();
			pthread_mutex_unlock(&farewell.lock);
			return false;
		}
	}
	can = kind != WEFT_FAREWELL_PACKET || farewell.has_packet;
	if (can)
		farewell.users++;
	else if (farewell.users == 0)
		stop();
	pthread_mutex_unlock(&farewell.lock);
	return can;
}

void weft_farewell_end(void)
{
	pthread_mutex_lock(&farewell.lock);
	if (farewell.owner == getpid() && --farewell.users == 0)
		stop();
	pthread_mutex_unlock(&farewell.lock);
}

/* ---- the table ------------------------------------------------------------------------------ */

/* @return a free slot; 0 = none is free */
static uint16_t take_slot(void)
{
	uint32_t i, at;

	for (i = 0; i < WEFT_FAREWELL_SLOTS - 1; i++) {
		at = 1 + (farewell.next + i) % (WEFT_FAREWELL_SLOTS - 1);
		if (farewell.table[at].way.kind == WEFT_FAREWELL_NONE) {
			farewell.next = at;
			return (uint16_t)at;
		}
	}
	return 0;
}

static void write_slot(struct weft_farewell_slot *s, const struct weft_farewell_way *way,
		       const uint8_t *bytes, uint32_t len)
{
	/* If the process is killed during the write, len is 0, so that no fragment is sent. */
	atomic_store_explicit(&s->len, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	s->way = *way;
	if (len == 0)
		s->way.kind = WEFT_FAREWELL_NONE;
	else
		memcpy(s->bytes, bytes, len);
	atomic_store_explicit(&s->len, len, memory_order_release);
}

void weft_farewell_set(const struct weft_farewell_way *way, uint16_t *slot, const uint8_t *bytes,
		       uint32_t len)
{
	if (len == 0 && *slot == 0)
		return;
	pthread_mutex_lock(&farewell.lock);
	if (farewell.table && farewell.owner == getpid() && len <= sizeof(farewell.table->bytes)) {
		if (*slot == 0)
			*slot = take_slot();
		if (*slot != 0)
			write_slot(&farewell.table[*slot], way, bytes, len);
	}
	if (len == 0)
		*slot = 0;
	pthread_mutex_unlock(&farewell.lock);
}
