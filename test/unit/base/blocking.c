/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that block, and descriptors that another process has chosen. */

#include <dirent.h>
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "mock/fd_limit.h"

static void pause_ms(long ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

/* All calls have returned. */
static void wait_for_none(void)
{
	for (int i = 0; i < 1000 && weft_blocking_pending() > 0; i++)
		pause_ms(10);
	assert_int_equal(weft_blocking_pending(), 0);
}

/* Of the pool: a sanitizer has threads of its own. */
static unsigned int threads_now(void)
{
	DIR *dir = opendir("/proc/self/task");
	char path[300], name[32];
	unsigned int n = 0;
	struct dirent *e;
	FILE *f;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		n += fgets(name, sizeof(name), f) && !strcmp(name, "weft-blocking\n");
		fclose(f);
	}
	closedir(dir);
	return n;
}

struct calls {
	sem_t may_go;
	atomic_uint begun, ended;
};

static void wait_to_go(void *arg)
{
	struct calls *c = arg;

	atomic_fetch_add(&c->begun, 1);
	while (sem_wait(&c->may_go) < 0)
		;
	atomic_fetch_add(&c->ended, 1);
}

static void wait_for_begun(struct calls *c, unsigned int num)
{
	for (int i = 0; i < 2000 && atomic_load(&c->begun) < num; i++)
		pause_ms(10);
	assert_int_equal(atomic_load(&c->begun), num);
}

static void begin(struct calls *c, unsigned int num)
{
	memset(c, 0, sizeof(*c));
	sem_init(&c->may_go, 0, 0);
	for (unsigned int i = 0; i < num; i++)
		assert_int_equal(weft_blocking_run(wait_to_go, c), 0);
}

static void let_go(struct calls *c, unsigned int num)
{
	for (unsigned int i = 0; i < num; i++)
		sem_post(&c->may_go);
	wait_for_none();
	assert_int_equal(atomic_load(&c->ended), num);
	sem_destroy(&c->may_go);
}

static void more_calls_than_threads_wait_in_the_queue(void **state)
{
	const unsigned int num = WEFT_BLOCKING_THREADS + 36;
	struct calls c;

	(void)state;
	begin(&c, num);
	wait_for_begun(&c, WEFT_BLOCKING_THREADS);
	pause_ms(50);
	assert_int_equal(atomic_load(&c.begun), WEFT_BLOCKING_THREADS);
	assert_int_equal(weft_blocking_pending(), num);
	let_go(&c, num);
}

/* 600 of them would fill all threads, and the bound of weft_foreign_fd_has_room(). */
static void long_calls_leave_threads_to_others(void **state)
{
	const unsigned int half = WEFT_BLOCKING_THREADS / 2, num = 600;
	struct calls waiting, c;

	(void)state;
	begin(&waiting, 0);
	for (unsigned int i = 0; i < num; i++)
		assert_int_equal(weft_blocking_run_long(wait_to_go, &waiting), 0);
	wait_for_begun(&waiting, half);
	assert_true(weft_foreign_fd_has_room());
	begin(&c, half);
	wait_for_begun(&c, half);
	assert_int_equal(atomic_load(&waiting.begun), half);
	let_go(&c, half);
	for (unsigned int i = 0; i < num; i++)
		sem_post(&waiting.may_go);
	for (int i = 0; i < 1000 && atomic_load(&waiting.ended) < num; i++)
		pause_ms(10);
	assert_int_equal(atomic_load(&waiting.ended), num);
	sem_destroy(&waiting.may_go);
}

static void threads_end_when_there_is_nothing_to_do(void **state)
{
	unsigned int before;
	struct calls c;

	(void)state;
	begin(&c, 4);
	before = threads_now();
	let_go(&c, 4);
	for (int i = 0; i < 500 && threads_now() > 0; i++)
		pause_ms(10);
	assert_true(before > 0);
	assert_int_equal(threads_now(), 0);
	/* And start again. */
	begin(&c, 1);
	let_go(&c, 1);
}

static void a_child_has_a_queue_of_its_own(void **state)
{
	struct calls c, own;
	int status;
	pid_t pid;

	(void)state;
	begin(&c, WEFT_BLOCKING_THREADS + 1);
	/* A sanitizer's locks, which a starting thread holds, stay locked in a child. */
	wait_for_begun(&c, WEFT_BLOCKING_THREADS);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (weft_blocking_pending() != 0)
			_exit(1);
		alarm(10);
		begin(&own, 3);
		let_go(&own, 3);
		_exit(42);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
	let_go(&c, WEFT_BLOCKING_THREADS + 1);
}

static atomic_uint interrupted;

static void count_signal(int signo)
{
	(void)signo;
	atomic_fetch_add(&interrupted, 1);
}

static void read_for_ever(void *arg)
{
	char byte;

	/* The pipe has a writer that writes nothing. */
	while (read(*(int *)arg, &byte, 1) < 0 && atomic_load(&interrupted) == 0)
		;
}

static void a_signal_ends_a_call_that_lasts(void **state)
{
	struct sigaction sa = {.sa_handler = count_signal};
	int fds[2];

	(void)state;
	/* Threads that are there already have the signal blocked. */
	for (int i = 0; i < 500 && threads_now() > 0; i++)
		pause_ms(10);
	sigaction(SIGUSR2, &sa, NULL);
	weft_blocking_init(SIGUSR2, NULL);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(weft_blocking_run(read_for_ever, &fds[0]), 0);
	for (int i = 0; i < 100 && weft_blocking_pending() > 0; i++) {
		weft_blocking_interrupt();
		pause_ms(20);
	}
	assert_int_equal(weft_blocking_pending(), 0);
	assert_true(atomic_load(&interrupted) > 0);
	weft_blocking_init(0, NULL);
	close(fds[0]);
	close(fds[1]);
}

static void send_fds(int sock, unsigned int num)
{
	union {
		char bytes[CMSG_SPACE(253 * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = (char[]){"hello"}, .iov_len = 5};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = CMSG_SPACE(num * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(num * sizeof(int));
	for (unsigned int i = 0; i < num; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &(int){STDIN_FILENO}, sizeof(int));
	assert_int_equal(sendmsg(sock, &msg, 0), 5);
}

/* @return the lowest free number: all below are open */
static int lowest_free(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

/* The kernel drops descriptors for which the process has no number left. */
static void receive_without_numbers(int sock[2], int lowest)
{
	struct rlimit before, few;
	char text[8];
	int fds[2];

	getrlimit(RLIMIT_NOFILE, &before);
	few = before;
	few.rlim_cur = (rlim_t)lowest + 3;
	setrlimit(RLIMIT_NOFILE, &few);
	if (kernel_fd_limit() == few.rlim_cur) {
		send_fds(sock[0], 20);
		assert_int_equal(weft_foreign_fd_recv(sock[1], text, sizeof(text), fds, 2),
				 -EPROTO);
		assert_int_equal(fds[0], -1);
	}
	wait_for_none();
	setrlimit(RLIMIT_NOFILE, &before);
}

static void descriptors_that_no_caller_wants_are_closed(void **state)
{
	int sock[2], fds[2], lowest;
	char text[8];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock), 0);
	lowest = lowest_free();
	send_fds(sock[0], 253);
	assert_int_equal(weft_foreign_fd_recv(sock[1], text, sizeof(text), fds, 2), 5);
	assert_true(fds[0] >= 0 && fds[1] >= 0);
	close(fds[0]);
	close(fds[1]);
	wait_for_none();
	assert_int_equal(lowest_free(), lowest);

	assert_int_equal(weft_foreign_fd_recv(sock[1], text, sizeof(text), fds, 2), -EAGAIN);
	send_fds(sock[0], 1);
	assert_int_equal(weft_foreign_fd_recv(sock[1], text, 3, fds, 2), -EMSGSIZE);
	assert_int_equal(fds[0], -1);
	assert_int_equal(weft_socket_send_fds(sock[0], "", 0, sock, 2), 0);
	assert_int_equal(weft_foreign_fd_recv(sock[1], text, sizeof(text), fds, 2), 0);
	assert_int_equal(fds[0], -1);
	wait_for_none();
	assert_int_equal(lowest_free(), lowest);

	receive_without_numbers(sock, lowest);
	assert_int_equal(lowest_free(), lowest);
	close(sock[0]);
	assert_int_equal(weft_foreign_fd_recv(sock[1], text, sizeof(text), fds, 2), 0);
	close(sock[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_calls_than_threads_wait_in_the_queue),
		cmocka_unit_test(long_calls_leave_threads_to_others),
		cmocka_unit_test(threads_end_when_there_is_nothing_to_do),
		cmocka_unit_test(a_child_has_a_queue_of_its_own),
		cmocka_unit_test(a_signal_ends_a_call_that_lasts),
		cmocka_unit_test(descriptors_that_no_caller_wants_are_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
