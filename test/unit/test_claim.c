/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that one process holds at a time: who is told, who is heeded, and what the dead leave behind. */

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "claim.h"

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
static void root_does_not_heed_others(void **state)
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

/* Nobody takes the askers out of the queue. */
static void asking_often_does_no_harm(void **state)
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
		cmocka_unit_test(closing_gives_it_back),
		cmocka_unit_test(what_a_process_calls_itself_is_printable),
		cmocka_unit_test(root_does_not_heed_others),
		cmocka_unit_test(asking_often_does_no_harm),
		cmocka_unit_test(a_name_that_is_too_long_is_refused),
	};

	return cmocka_run_group_tests_name("claim", tests, setup, NULL);
}
