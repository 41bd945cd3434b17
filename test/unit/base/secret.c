/* SPDX-License-Identifier: BSD-3-Clause */

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
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/secret.h"

/* ------------------------------------------------------------------ memory */

/* The flags that the kernel has for the mapping of @p. */
static void flags_of(const void *p, char *flags, size_t size)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	bool inside = false;
	char line[512];

	assert_non_null(f);
	flags[0] = '\0';
	while (fgets(line, sizeof(line), f)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = (unsigned long)p >= from && (unsigned long)p < to;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			snprintf(flags, size, "%s", line + 8);
	}
	fclose(f);
}

static void keys_are_in_no_core_dump_and_no_child(void **state)
{
	const size_t size = 5000;
	uint8_t *p = weft_secret_alloc(size);
	char flags[256];
	int status;
	pid_t pid;

	(void)state;
	assert_non_null(p);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(p[i], 0);
	memset(p, 0x5a, size);
	flags_of(p, flags, sizeof(flags));
	assert_non_null(strstr(flags, " dd"));
	assert_non_null(strstr(flags, " wf"));
	pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < size; i++)
			if (p[i] != 0)
				_exit(1);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(p[size - 1], 0x5a);
	weft_secret_free(p, size);
	weft_secret_free(NULL, size);
}

/* ------------------------------------------------------------------ the file */

/* What fstatfs() reports; 0 = the truth. */
static uint32_t fs_type;

int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __real_fstatfs64(int fd, struct statfs *fs);
int __wrap_fstatfs64(int fd, struct statfs *fs);

int __wrap_fstatfs(int fd, struct statfs *fs)
{
	int rc = __real_fstatfs(fd, fs);

	if (rc == 0 && fs_type != 0)
		fs->f_type = (__typeof__(fs->f_type))fs_type;
	return rc;
}

/* The name of the same function where files may be large. */
int __wrap_fstatfs64(int fd, struct statfs *fs)
{
	int rc = __real_fstatfs64(fd, fs);

	if (rc == 0 && fs_type != 0)
		fs->f_type = (__typeof__(fs->f_type))fs_type;
	return rc;
}

struct folder {
	char path[64], key[96];
};

static void write_key(const struct folder *f, const void *bytes, size_t len, mode_t mode)
{
	int fd;

	unlink(f->key);
	fd = open(f->key, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int make_folder(void **state)
{
	static struct folder f;
	const char *tmp = getenv("TMPDIR");

	snprintf(f.path, sizeof(f.path), "%.40s/weft-key-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(f.path))
		return -1;
	snprintf(f.key, sizeof(f.key), "%s/key", f.path);
	*state = &f;
	fs_type = 0;
	return 0;
}

static int remove_folder(void **state)
{
	struct folder *f = *state;

	unlink(f->key);
	return rmdir(f->path);
}

static const uint8_t bytes[40] = "0123456789abcdef0123456789ABCDEF+more..";

/* The key is refused with @rc, and the sentence has path and @part. */
static void refused(const struct folder *f, int rc, const char *part)
{
	uint8_t key[WEFT_JOB_KEY_LEN], before[WEFT_JOB_KEY_LEN];
	bool remote = false;
	char why[256] = "";

	memset(key, 0xee, sizeof(key));
	memcpy(before, key, sizeof(key));
	assert_int_equal(weft_job_key_load(f->key, key, &remote, why, sizeof(why)), rc);
	assert_memory_equal(key, before, sizeof(key));
	assert_non_null(strstr(why, f->key));
	if (!strstr(why, part))
		fail_msg("'%s' does not contain '%s'", why, part);
}

static void a_key_of_the_owner_alone_is_read(void **state)
{
	const struct folder *f = *state;
	uint8_t key[WEFT_JOB_KEY_LEN];
	bool remote = true;
	char why[256];

	write_key(f, bytes, 32, 0600);
	assert_int_equal(weft_job_key_load(f->key, key, &remote, why, sizeof(why)), 0);
	assert_memory_equal(key, bytes, sizeof(key));
	assert_false(remote);
	write_key(f, bytes, 32, 0400);
	assert_int_equal(weft_job_key_load(f->key, key, &remote, why, sizeof(why)), 0);
}

static void a_key_that_others_may_use_is_refused(void **state)
{
	static const mode_t modes[] = {0640, 0604, 0620, 0602, 0610, 0601, 0644, 0666};
	const struct folder *f = *state;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		char mode[16];

		snprintf(mode, sizeof(mode), "mode %04o", (unsigned int)modes[i]);
		write_key(f, bytes, 32, modes[i]);
		refused(f, -EACCES, mode);
	}
}

static void a_key_of_another_user_is_refused(void **state)
{
	const struct folder *f = *state;

	if (geteuid() != 0) {
		print_message("SKIP: only root can give a file away\n");
		skip();
	}
	write_key(f, bytes, 32, 0600);
	assert_int_equal(chown(f->key, 12345, (gid_t)-1), 0);
	refused(f, -EACCES, "belongs to user 12345");
}

static void a_key_of_another_size_is_refused(void **state)
{
	const struct folder *f = *state;

	write_key(f, bytes, 0, 0600);
	refused(f, -EINVAL, "has 0 bytes instead of 32");
	write_key(f, bytes, 31, 0600);
	refused(f, -EINVAL, "has 31 bytes");
	write_key(f, bytes, 33, 0600);
	refused(f, -EINVAL, "has 33 bytes");
}

static void a_key_of_zeros_is_refused(void **state)
{
	static const uint8_t zeros[32];
	const struct folder *f = *state;

	write_key(f, zeros, 32, 0600);
	refused(f, -EINVAL, "bytes are zero");
}

/* Without a writer, too: the call must return. */
static void what_is_no_file_is_refused(void **state)
{
	const struct folder *f = *state;

	unlink(f->key);
	refused(f, -ENOENT, "no such file on this host: copy");
	assert_int_equal(mkfifo(f->key, 0600), 0);
	refused(f, -EINVAL, "no regular file");
	unlink(f->key);
	assert_int_equal(mkdir(f->key, 0700), 0);
	refused(f, -EINVAL, "no regular file");
	rmdir(f->key);
}

static void a_key_in_a_network_file_system_is_reported(void **state)
{
	static const uint32_t types[] = {0x6969, 0xfe534d42, 0x0bd00bd0, 0x65735546};
	const struct folder *f = *state;
	uint8_t key[WEFT_JOB_KEY_LEN];
	char why[256];

	write_key(f, bytes, 32, 0600);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		bool remote = false;

		fs_type = types[i];
		assert_int_equal(weft_job_key_load(f->key, key, &remote, why, sizeof(why)), 0);
		assert_true(remote);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_in_no_core_dump_and_no_child),
		cmocka_unit_test_setup_teardown(a_key_of_the_owner_alone_is_read, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(a_key_that_others_may_use_is_refused, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(a_key_of_another_user_is_refused, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(a_key_of_another_size_is_refused, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(a_key_of_zeros_is_refused, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(what_is_no_file_is_refused, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(a_key_in_a_network_file_system_is_reported,
						make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
