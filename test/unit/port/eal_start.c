/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Before the EAL starts: a folder for its sockets, without dead ones. When it does not start: no
 * port is held.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "drivers/dpdk/port/claim.h"
#include "drivers/dpdk/port/eal.h"

static char tmp[64];

static int setup(void **state)
{
	(void)state;
	snprintf(tmp, sizeof(tmp), "/tmp/eal-start.XXXXXX");
	return mkdtemp(tmp) ? 0 : -1;
}

static int tidy(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", tmp);
	return system(command);
}

static const char *in_tmp(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", tmp, name);
	return path;
}

/* No user can make anything in it, not even root. */
static void spoil(const char *name)
{
	int fd = open(in_tmp(name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void the_eals_own_folder_is_left_to_it(void **state)
{
	char own[128] = "";

	(void)state;
	assert_int_equal(weft_eal_folder_find(1000, NULL, tmp, own, sizeof(own)),
			 WEFT_EAL_FOLDER_ITS);
	assert_int_equal(weft_eal_folder_find(1000, tmp, "/nowhere", own, sizeof(own)),
			 WEFT_EAL_FOLDER_ITS);
	assert_int_equal(weft_eal_folder_find(0, tmp, "/nowhere", own, sizeof(own)),
			 WEFT_EAL_FOLDER_ITS);
	assert_string_equal(own, "");
}

/* As /tmp/dpdk is, when another user came first. */
static void a_user_that_cannot_write_there_gets_a_folder(void **state)
{
	unsigned int uid = geteuid();
	char own[128], want[128];

	(void)state;
	if (uid == 0)
		uid = 4711; /* the name's alone: the folder is made by whom we are */
	snprintf(want, sizeof(want), "%s/weft-%u", tmp, uid);
	spoil("dpdk");
	assert_int_equal(weft_eal_folder_find(uid, NULL, tmp, own, sizeof(own)),
			 WEFT_EAL_FOLDER_OWN);
	assert_string_equal(own, want);
	assert_int_equal(access(want, W_OK | X_OK), 0);
	/* It is there the next time; where others may write it is none of ours. */
	assert_int_equal(weft_eal_folder_find(uid, "/nowhere", tmp, own, sizeof(own)),
			 WEFT_EAL_FOLDER_OWN);
	assert_int_equal(chmod(want, 0777), 0);
	assert_int_equal(weft_eal_folder_find(uid, NULL, tmp, own, sizeof(own)),
			 WEFT_EAL_FOLDER_NONE);
}

/* Made in advance by another user, to get our sockets, or a link to a place of its choice. */
static void what_others_can_write_to_is_none_of_ours(void **state)
{
	unsigned int uid = geteuid();
	char own[128], elsewhere[128];

	(void)state;
	if (uid == 0)
		uid = 4711;
	assert_int_equal(mkdir(in_tmp("dpdk"), 0700), 0);
	assert_int_equal(chmod(in_tmp("dpdk"), 01777), 0);
	assert_int_equal(weft_eal_folder_find(uid, NULL, tmp, own, sizeof(own)),
			 WEFT_EAL_FOLDER_OWN);
	assert_int_equal(rmdir(in_tmp("dpdk")), 0);
	snprintf(elsewhere, sizeof(elsewhere), "%s", own);
	assert_int_equal(symlink(elsewhere, in_tmp("dpdk")), 0);
	assert_int_equal(weft_eal_folder_find(uid, NULL, tmp, own, sizeof(own)),
			 WEFT_EAL_FOLDER_OWN);
	/* A user that names a folder is responsible for it. */
	assert_int_equal(weft_eal_folder_find(uid, tmp, "/nowhere", own, sizeof(own)),
			 WEFT_EAL_FOLDER_ITS);
}

static void root_of_a_container_has_no_other(void **state)
{
	char own[128];

	(void)state;
	spoil("dpdk");
	assert_int_equal(weft_eal_folder_find(0, tmp, tmp, own, sizeof(own)), WEFT_EAL_FOLDER_NONE);
}

/* A socket of this type at dpdk/weft/NAME. @return its descriptor */
static int bound(const char *name, int type)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/dpdk/weft/%s", tmp, name);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

static bool is_left(const char *name)
{
	struct stat st;
	char path[160];

	snprintf(path, sizeof(path), "%s/dpdk/weft/%s", tmp, name);
	return lstat(path, &st) == 0 && !unlink(path);
}

/* Where it starts beside others, DPDK would complain of them. */
static void sockets_of_killed_processes_are_removed(void **state)
{
	int living, silent;

	(void)state;
	weft_eal_dead_remove(tmp); /* no such folder */
	assert_int_equal(mkdir(in_tmp("dpdk"), 0700), 0);
	assert_int_equal(mkdir(in_tmp("dpdk/weft"), 0700), 0);
	close(bound("dpdk_telemetry.v2", SOCK_SEQPACKET));
	close(bound("dpdk_telemetry.v2:3", SOCK_SEQPACKET));
	close(bound("other.sock", SOCK_SEQPACKET));
	living = bound("dpdk_telemetry.v2:1", SOCK_SEQPACKET);
	assert_int_equal(listen(living, 1), 0);
	silent = bound("dpdk_telemetry.v2:2", SOCK_SEQPACKET); /* it will listen soon */
	spoil("dpdk/weft/dpdk_telemetry.v2:4");
	assert_int_equal(symlink("other.sock", in_tmp("dpdk/weft/dpdk_telemetry.v2:5")), 0);
	weft_eal_dead_remove(tmp);
	assert_false(is_left("dpdk_telemetry.v2"));
	assert_false(is_left("dpdk_telemetry.v2:3"));
	assert_true(is_left("dpdk_telemetry.v2:1"));
	assert_true(is_left("dpdk_telemetry.v2:2"));
	assert_true(is_left("dpdk_telemetry.v2:4"));
	assert_true(is_left("dpdk_telemetry.v2:5"));
	assert_true(is_left("other.sock"));
	assert_int_equal(rmdir(in_tmp("dpdk/weft")), 0);
	close(living);
	close(silent);
}

/* @return 0: the EAL did not start, and no process holds the device */
static int start_badly(void)
{
	const struct weft_eal_conf conf = {.ports = "net_ring*"};
	char note[256], why[512], name[WEFT_CLAIM_NAME];
	int rc, err = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	weft_claim_args_name(name, "net_ring4711", "");
	dup2(null, STDERR_FILENO);
	rc = weft_eal_start("--no-huge --no-shconf --no-pci -m 16 --no-telemetry --nonsense "
			    "--vdev=net_ring4711",
			    &conf, note, sizeof(note), why, sizeof(why));
	dup2(err, STDERR_FILENO);
	if (rc >= 0 || !strstr(note, "net_ring4711") || !strstr(why, "did not start"))
		return 1;
	return weft_claim_find(name) >= 0 ? 2 : 0;
}

static void an_eal_that_does_not_start_holds_no_port(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	pid = fork(); /* it can't be tried again */
	if (pid == 0)
		_exit(start_badly());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* @return 0: the missing driver is named, each time */
static int start_without_pools(void)
{
	const struct weft_eal_conf conf = {0};
	char note[256], why[512];

	for (int i = 0; i < 2; i++) {
		why[0] = '\0';
		if (weft_eal_start("--no-huge --no-shconf --no-pci -m 16 --no-telemetry "
				   "--mbuf-pool-ops-name=absent",
				   &conf, note, sizeof(note), why, sizeof(why)) != -ENOENT ||
		    !strstr(why, "no driver \"absent\"") || !strstr(why, "librte-mempool-ring"))
			return 1 + i;
	}
	return 0;
}

static void a_missing_driver_of_pools_is_named(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	pid = fork(); /* with an EAL of its own */
	if (pid == 0)
		_exit(start_without_pools());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, tidy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_eals_own_folder_is_left_to_it),
		TEST(a_user_that_cannot_write_there_gets_a_folder),
		TEST(what_others_can_write_to_is_none_of_ours),
		TEST(root_of_a_container_has_no_other),
		TEST(sockets_of_killed_processes_are_removed),
		TEST(an_eal_that_does_not_start_holds_no_port),
		TEST(a_missing_driver_of_pools_is_named),
	};

	return cmocka_run_group_tests_name("start of the EAL", tests, NULL, NULL);
}
