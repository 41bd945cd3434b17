/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that one process holds at a time: the errors, the valid owners, and what the dead leave
 * behind.
 */

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "port/claim.h"

static char name[WEFT_CLAIM_NAME];

/* A process that has the name, as user @p uid. @return its id */
static pid_t owner_start(unsigned int uid, const char *comm)
{
	struct weft_claim_owner owner;
	char ok = 0;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_NAME, comm);
		ok = (uid == 0 || setuid(uid) == 0) && weft_claim(name, &owner) >= 0;
		if (write(fds[1], &ok, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(fds[0], &ok, 1), 1);
	close(fds[0]);
	close(fds[1]);
	assert_true(ok);
	return pid;
}

static void owner_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int setup(void **state)
{
	(void)state;
	snprintf(name, sizeof(name), "weft/test/%d", (int)getpid());
	return 0;
}

/* @behaviour T18 */
static void the_owner_is_named(void **state)
{
	struct weft_claim_owner owner;
	char text[96], want[96];
	pid_t pid;

	(void)state;
	assert_false(weft_claimed(name, &owner));
	pid = owner_start(0, "some owner");
	assert_int_equal(weft_claim(name, &owner), -EADDRINUSE);
	assert_true(weft_claimed(name, &owner));
	assert_int_equal(owner.pid, pid);
	weft_claim_owner_text(&owner, text, sizeof(text));
	snprintf(want, sizeof(want), "process %d (some owner)", (int)pid);
	assert_string_equal(text, want);
	owner_end(pid);
}

/* @behaviour T18 */
static void a_name_is_free_when_its_owner_is_dead(void **state)
{
	struct weft_claim_owner owner;
	pid_t pid = owner_start(0, "owner");
	int fd;

	(void)state;
	/* Not waited for: it may be about to end still, and be a zombie after that. */
	kill(pid, SIGKILL);
	fd = weft_claim(name, &owner);
	assert_true(fd >= 0);
	close(fd);
	assert_false(weft_claimed(name, &owner));
	waitpid(pid, NULL, 0);
}

/* Between the signal and exit(), where a process that dumps core stays long. */
/* @behaviour T18 */
static void an_owner_that_a_signal_ends_is_ending(void **state)
{
	struct weft_claim_owner owner;
	pid_t pid = owner_start(0, "owner");
	int fd, status;

	(void)state;
	if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXIT)) { /* the system forbids it */
		owner_end(pid);
		skip();
	}
	kill(pid, SIGTERM);
	/* The stops are those of the signal and of the exit. */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, SIGTERM), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status >> 8, SIGTRAP | PTRACE_EVENT_EXIT << 8);
	assert_int_equal(weft_claim_now(name, &owner), -EAGAIN);
	assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, 0), 0);
	fd = weft_claim(name, &owner);
	assert_true(fd >= 0);
	close(fd);
	waitpid(pid, NULL, 0);
}

static void closing_gives_it_back(void **state)
{
	struct weft_claim_owner owner;
	int fd = weft_claim(name, &owner), again;
	char text[96];

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(weft_claim(name, &owner), -EADDRINUSE);
	weft_claim_owner_text(&owner, text, sizeof(text));
	assert_string_equal(text, "this process already");
	close(fd);
	again = weft_claim(name, &owner);
	assert_true(again >= 0);
	close(again);
}

/* @behaviour T10 */
static void what_a_process_calls_itself_is_printable(void **state)
{
	struct weft_claim_owner owner;
	pid_t pid = owner_start(0, "a\033[31m\nb");

	(void)state;
	assert_int_equal(weft_claim(name, &owner), -EADDRINUSE);
	assert_null(strpbrk(owner.name, "\033\n"));
	owner_end(pid);
}

/* Anybody can listen under any name: that must not keep root from its ports. */
/* @behaviour T18 */
static void root_ignores_others(void **state)
{
	struct weft_claim_owner owner;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	pid = owner_start(65534, "squatter");
	assert_int_equal(weft_claim(name, &owner), -EPERM);
	assert_int_equal(owner.pid, pid);
	assert_int_equal(owner.uid, 65534);
	assert_false(weft_claimed(name, &owner));
	owner_end(pid);
}

/* The claim of one ordinary user, seen by user @p uid. @return as weft_claim() */
static int claim_as(unsigned int uid, bool *claimed)
{
	struct weft_claim_owner owner;
	int result[2], fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		if (setuid(uid))
			_exit(77);
		result[0] = weft_claim(name, &owner);
		result[1] = weft_claimed(name, &owner);
		_exit(write(fds[1], result, sizeof(result)) != sizeof(result));
	}
	assert_int_equal(read(fds[0], result, sizeof(result)), sizeof(result));
	waitpid(pid, NULL, 0);
	close(fds[0]);
	close(fds[1]);
	*claimed = result[1];
	return result[0];
}

/* @behaviour T18 */
static void a_user_keeps_no_other_user_from_a_port(void **state)
{
	bool claimed;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	pid = owner_start(65533, "squatter");
	assert_int_equal(claim_as(65534, &claimed), -EPERM);
	assert_false(claimed);
	/* The same user's claim counts, and so does root's. */
	assert_int_equal(claim_as(65533, &claimed), -EADDRINUSE);
	assert_true(claimed);
	owner_end(pid);
	pid = owner_start(0, "root's");
	assert_int_equal(claim_as(65534, &claimed), -EADDRINUSE);
	assert_true(claimed);
	owner_end(pid);
}

/*
 * ---- owners of a name that don't claim it -------------------------------------------------
 */

enum way { SILENT, FULL };

static int socket_at(struct sockaddr_un *un, socklen_t *len)
{
	*un = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(un->sun_path + 1, name, strlen(name));
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
}

static bool take_name(enum way way)
{
	struct sockaddr_un un;
	socklen_t len;
	int fd = socket_at(&un, &len), i;

	if (bind(fd, (struct sockaddr *)&un, len))
		return false;
	if (way == SILENT)
		return true;
	if (listen(fd, 0))
		return false;
	/* Its own queue: one more finds no room. */
	for (i = 0; i < 8; i++)
		if (connect(socket_at(&un, &len), (struct sockaddr *)&un, len))
			return errno == EAGAIN;
	return false;
}

static pid_t squatter_start(unsigned int uid, enum way way)
{
	char ok = 0;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		ok = (uid == 0 || setuid(uid) == 0) && take_name(way);
		if (write(fds[1], &ok, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(fds[0], &ok, 1), 1);
	close(fds[0]);
	close(fds[1]);
	assert_true(ok);
	return pid;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void a_user_keeps_root_from_nothing(void **state)
{
	static const enum way ways[] = {SILENT, FULL};
	struct weft_claim_owner owner;
	unsigned int i;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	for (i = 0; i < 2; i++) {
		pid = squatter_start(65534, ways[i]);
		assert_int_equal(weft_claim(name, &owner), -EPERM);
		assert_true(owner.uid == 65534 || owner.uid == WEFT_CLAIM_NO_UID);
		assert_false(weft_claimed(name, &owner));
		owner_end(pid);
	}
}

/* @behaviour T18 */
static void a_silent_name_keeps_no_other_user_from_a_port(void **state)
{
	bool claimed;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	for (int i = 0; i < 2; i++) {
		pid = squatter_start(65533, i ? FULL : SILENT);
		assert_int_equal(claim_as(65534, &claimed), -EPERM);
		assert_false(claimed);
		owner_end(pid);
	}
}

/* Where the kernel does not list its sockets, no owner is taken for root. */
static void refuse_netlink(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = {.len = 6, .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		_exit(77);
}

static void an_unknown_user_is_not_root(void **state)
{
	struct weft_claim_owner owner;
	enum way way;
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	for (way = SILENT; way <= FULL; way++) {
		pid_t asker;

		pid = squatter_start(65534, way);
		asker = fork();
		if (asker == 0) {
			refuse_netlink();
			_exit(weft_claim(name, &owner) != -EPERM ||
			      owner.uid != WEFT_CLAIM_NO_UID || weft_claimed(name, &owner));
		}
		assert_int_equal(waitpid(asker, &status, 0), asker);
		owner_end(pid);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) == 77)
			skip();
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

/* Not even root's own: a process that does not listen has not claimed it. */
static void a_holder_of_the_name_that_does_not_listen_is_not_waited_for_long(void **state)
{
	struct weft_claim_owner owner;
	double begun = seconds();
	pid_t pid;

	(void)state;
	pid = squatter_start(0, SILENT);
	assert_int_equal(weft_claim(name, &owner), -EPERM);
	assert_true(seconds() - begun < 8);
	owner_end(pid);
}

/* A queue that is full, of root: the kernel still says whose it is. */
static void many_requests_do_not_make_an_owner_unknown(void **state)
{
	struct weft_claim_owner owner;
	pid_t pid = squatter_start(0, FULL);

	(void)state;
	assert_int_equal(weft_claim(name, &owner), -EADDRINUSE);
	assert_true(weft_claimed(name, &owner));
	owner_end(pid);
}

/* The owner is a zombie, and its child has the descriptor: as long as the child lives. */
static void a_descriptor_that_was_left_to_a_child_is_not_waited_for_long(void **state)
{
	struct weft_claim_owner owner;
	siginfo_t info;
	pid_t pid, child;
	double begun;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	/* The test waits for the end of the child, whose name is that of the next owner. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (pid == 0) {
		if (weft_claim(name, &owner) < 0)
			_exit(1);
		child = fork();
		if (child == 0)
			pause();
		_exit(write(fds[1], &child, sizeof(child)) != sizeof(child));
	}
	assert_int_equal(read(fds[0], &child, sizeof(child)), sizeof(child));
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	begun = seconds();
	assert_int_equal(weft_claim(name, &owner), -EADDRINUSE);
	assert_true(seconds() - begun < 8);
	assert_int_equal(owner.pid, pid);
	waitpid(pid, NULL, 0);
	owner_end(child);
	close(fds[0]);
	close(fds[1]);
}

static void *outlive(void *arg)
{
	(void)arg;
	pause();
	return NULL;
}

/* The first thread's own copies of the files: the end of each packet socket takes milliseconds. */
static void end_slowly(void)
{
	if (unshare(CLONE_FILES) == 0)
		for (int i = 0; i < 50; i++)
			(void)!socket(AF_PACKET, SOCK_RAW, 0);
	pthread_exit(NULL);
}

/* Its first thread ends, which makes it look like a zombie. */
static void a_process_lives_until_its_last_thread_ends(void **state)
{
	struct weft_claim_owner owner;
	pthread_t thread;
	double begun;
	int fds[2];
	pid_t pid;
	char ok;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		ok = weft_claim(name, &owner) >= 0 && !pthread_create(&thread, NULL, outlive, NULL);
		if (write(fds[1], &ok, 1) == 1)
			end_slowly();
		_exit(1);
	}
	assert_int_equal(read(fds[0], &ok, 1), 1);
	assert_true(ok);
	for (begun = seconds(); seconds() - begun < 0.3; usleep(1000))
		assert_int_equal(weft_claim_now(name, &owner), -EADDRINUSE);
	owner_end(pid);
	close(fds[0]);
	close(fds[1]);
}

/* No process takes the waiting ones out of the queue. */
static void repeated_queries_do_no_harm(void **state)
{
	struct weft_claim_owner owner;
	pid_t pid = owner_start(0, "owner");
	int i;

	(void)state;
	for (i = 0; i < 5000; i++)
		assert_true(weft_claimed(name, &owner));
	owner_end(pid);
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	char long_name[WEFT_CLAIM_NAME + 1];
	struct weft_claim_owner owner;

	(void)state;
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(weft_claim(long_name, &owner), -ENAMETOOLONG);
	assert_false(weft_claimed(long_name, &owner));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_owner_is_named),
		cmocka_unit_test(a_name_is_free_when_its_owner_is_dead),
		cmocka_unit_test(an_owner_that_a_signal_ends_is_ending),
		cmocka_unit_test(closing_gives_it_back),
		cmocka_unit_test(what_a_process_calls_itself_is_printable),
		cmocka_unit_test(root_ignores_others),
		cmocka_unit_test(a_user_keeps_root_from_nothing),
		cmocka_unit_test(a_user_keeps_no_other_user_from_a_port),
		cmocka_unit_test(a_silent_name_keeps_no_other_user_from_a_port),
		cmocka_unit_test(an_unknown_user_is_not_root),
		cmocka_unit_test(a_holder_of_the_name_that_does_not_listen_is_not_waited_for_long),
		cmocka_unit_test(many_requests_do_not_make_an_owner_unknown),
		cmocka_unit_test(a_descriptor_that_was_left_to_a_child_is_not_waited_for_long),
		cmocka_unit_test(a_process_lives_until_its_last_thread_ends),
		cmocka_unit_test(repeated_queries_do_no_harm),
		cmocka_unit_test(a_name_that_is_too_long_is_refused),
	};

	return cmocka_run_group_tests_name("claim", tests, setup, NULL);
}
