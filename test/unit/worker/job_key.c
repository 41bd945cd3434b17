/* SPDX-License-Identifier: BSD-3-Clause */
/* The job key of a context: where it comes from, and what is refused instead of sent in clear. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/secret.h"
#include "lane.h"
#include "weft_build.h"

static char folder[] = "/tmp/weft-job-key-XXXXXX", path[64], log_path[64], keylog_path[64];
static const char bytes[33] = "32 bytes of the key in this file";

static int none(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	(void)conf;
	(void)add;
	(void)arg;
	return 0;
}

/* What a driver was opened with. */
static struct weft_lane_conf seen;
static uint8_t seen_key[32];
static unsigned int opened;

static int notes(const struct weft_lane_open *params, struct weft_lane_iface **iface, char *why,
		 size_t why_len)
{
	(void)iface;
	seen = *params->conf;
	if (seen.job_key)
		memcpy(seen_key, seen.job_key, sizeof(seen_key));
	opened++;
	snprintf(why, why_len, "noted");
	return -ENODEV;
}

static struct weft_lane_driver sealing = {
	.name = "sealing", .abi = WEFT_LANE_ABI, .seals = true, .query = none, .open = notes};
static struct weft_lane_driver plain = {
	.name = "plain", .abi = WEFT_LANE_ABI, .query = none, .open = notes};

static void put_key(const void *key, size_t len, mode_t mode)
{
	int fd;

	unlink(path);
	fd = open(path, O_CREAT | O_WRONLY, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, key, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* What has been logged since the last call contains the text. */
static void logged(const char *text)
{
	char buf[8192] = "";
	FILE *f = fopen(log_path, "r+");

	assert_non_null(f);
	(void)!fread(buf, 1, sizeof(buf) - 1, f);
	fclose(f);
	assert_int_equal(truncate(log_path, 0), 0);
	if (!strstr(buf, text))
		fail_msg("'%s' is not in '%s'", text, buf);
}

/* Create a context with these settings: name, value, ..., NULL. */
static int create(const void *key, struct weft_context **ctx, ...)
{
	struct weft_context_params p = WEFT_INIT(struct weft_context_params);
	struct weft_config *config;
	const char *name;
	va_list ap;
	int rc;

	assert_int_equal(weft_config_read(&config), 0);
	assert_int_equal(weft_config_modify(config, "LOG_FILE", log_path), 0);
	va_start(ap, ctx);
	while ((name = va_arg(ap, const char *)))
		assert_int_equal(weft_config_modify(config, name, va_arg(ap, const char *)), 0);
	va_end(ap);
	p.config = config;
	p.job_key = key;
	rc = weft_context_create(&p, ctx);
	weft_config_release(config);
	return rc;
}

static int open_lane(struct weft_context *ctx, const char *lanes)
{
	struct weft_worker_params p = WEFT_INIT(struct weft_worker_params, .lanes = lanes);
	struct weft_worker *w;

	return weft_worker_create(ctx, &p, &w);
}

static void a_lane_gets_the_key(void **state)
{
	static const char given[33] = "32 bytes that the program gives.";
	struct weft_context *ctx;

	(void)state;
	if (!WEFT_HAVE_SEAL)
		skip();
	put_key(bytes, 32, 0600);
	assert_int_equal(create(NULL, &ctx, "JOB_KEY", path, NULL), 0);
	assert_int_equal(open_lane(ctx, "sealing:0"), -ENODEV);
	assert_memory_equal(seen_key, bytes, 32);
	assert_false(seen.seal_auth);
	assert_true(seen.seal_dh);
	weft_context_destroy(ctx);

	assert_int_equal(create(given, &ctx, "JOB_KEY", path, "SEAL", "auth", "SEAL_DH", "n", NULL),
			 0);
	assert_int_equal(open_lane(ctx, "sealing:0"), -ENODEV);
	assert_memory_equal(seen_key, given, 32);
	assert_true(seen.seal_auth);
	assert_false(seen.seal_dh);
	weft_context_destroy(ctx);

	assert_int_equal(create(given, &ctx, "JOB_KEY", path, "SEAL", "off", NULL), 0);
	assert_int_equal(open_lane(ctx, "sealing:0"), -ENODEV);
	assert_null(seen.job_key);
	weft_context_destroy(ctx);
}

/* @behaviour Y60: a process that is to seal its frames and can't is refused, and sends none */
static void what_cannot_be_sealed_is_refused(void **state)
{
	static const char zeros[32];
	struct weft_context *ctx;

	(void)state;
	assert_int_equal(create(NULL, &ctx, "SEAL", "encrypt", NULL), -EINVAL);
	logged("WEFT_SEAL needs a job key: set WEFT_JOB_KEY=FILE");
	assert_int_equal(create(NULL, &ctx, "SEAL", "auth", NULL), -EINVAL);
	put_key(bytes, 32, 0600);
	if (!WEFT_HAVE_SEAL) {
		assert_int_equal(create(NULL, &ctx, "JOB_KEY", path, NULL), -ENOTSUP);
		return;
	}
	put_key(bytes, 32, 0640);
	assert_int_equal(create(NULL, &ctx, "JOB_KEY", path, NULL), -EACCES);
	logged("other users may use it (mode 0640): chmod 600");
	put_key(bytes, 31, 0600);
	assert_int_equal(create(NULL, &ctx, "JOB_KEY", path, NULL), -EINVAL);
	logged("it has 31 bytes instead of 32");
	put_key(zeros, 32, 0600);
	assert_int_equal(create(NULL, &ctx, "JOB_KEY", path, NULL), -EINVAL);
	assert_int_equal(create(NULL, &ctx, "JOB_KEY", "/no/file", NULL), -ENOENT);
}

/* @behaviour Y74: a key log is written only where WEFT_KEYLOG names a file, into one that its owner
 * alone may use, and the log warns of it */
static void a_key_log_is_for_its_owner_alone(void **state)
{
	static const uint8_t secret[32] = {0xab, 1};
	struct weft_context *ctx;
	char line[256] = "";
	struct stat st;
	FILE *f;

	(void)state;
	if (!WEFT_HAVE_SEAL)
		skip();
	put_key(bytes, 32, 0600);
	assert_int_equal(create(NULL, &ctx, "JOB_KEY", path, NULL), 0);
	assert_int_equal(open_lane(ctx, "sealing:0"), -ENODEV);
	assert_null(seen.keylog);
	weft_context_destroy(ctx);
	/* Without a job key there is nothing to write. */
	assert_int_equal(create(NULL, &ctx, "KEYLOG", keylog_path, NULL), 0);
	weft_context_destroy(ctx);
	assert_int_equal(access(keylog_path, F_OK), -1);

	assert_int_equal(create(NULL, &ctx, "JOB_KEY", path, "KEYLOG", keylog_path, NULL), 0);
	logged("a reader of this file can read all messages");
	assert_int_equal(open_lane(ctx, "sealing:0"), -ENODEV);
	assert_non_null(seen.keylog);
	assert_int_equal(weft_keylog_write(*seen.keylog, 2, 0x12, 0x89abcdef, secret), 0);
	weft_context_destroy(ctx);
	assert_int_equal(stat(keylog_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	f = fopen(keylog_path, "r");
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	assert_string_equal(line, "WEFT_SEAL_1 encrypt 00000012 89abcdef "
				  "ab01000000000000000000000000000000000000000000000000000000000000"
				  "\n");

	assert_int_equal(chmod(keylog_path, 0640), 0);
	assert_int_equal(create(NULL, &ctx, "JOB_KEY", path, "KEYLOG", keylog_path, NULL), -EACCES);
	logged("other users may use it (mode 0640)");
	unlink(keylog_path);
	assert_int_equal(symlink(path, keylog_path), 0);
	assert_int_equal(create(NULL, &ctx, "JOB_KEY", path, "KEYLOG", keylog_path, NULL), -ELOOP);
	unlink(keylog_path);
	assert_int_equal(create(NULL, &ctx, "JOB_KEY", path, "KEYLOG", "/dev/null", NULL), -EINVAL);
}

/* @behaviour Y72: with a job key, lanes that cannot seal are used only by WEFT_SEAL_ALLOW */
static void a_lane_that_cannot_seal_is_left_out(void **state)
{
	struct weft_context *ctx;
	unsigned int before;

	(void)state;
	if (!WEFT_HAVE_SEAL)
		skip();
	put_key(bytes, 32, 0600);
	assert_int_equal(create(NULL, &ctx, "JOB_KEY", path, NULL), 0);
	before = opened;
	assert_int_equal(open_lane(ctx, "plain:0"), -EPERM);
	logged("its lanes do not seal messages, and a job key is set");
	assert_int_equal(opened, before);
	weft_context_destroy(ctx);
	assert_int_equal(create(NULL, &ctx, "JOB_KEY", path, "SEAL_ALLOW", "roce", NULL), 0);
	assert_int_equal(open_lane(ctx, "plain:0"), -ENODEV);
	assert_int_equal(opened, before + 1);
	weft_context_destroy(ctx);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/key", folder);
	snprintf(log_path, sizeof(log_path), "%s/log", folder);
	snprintf(keylog_path, sizeof(keylog_path), "%s/keys", folder);
	return weft_lane_driver_add(&sealing) | weft_lane_driver_add(&plain);
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	unlink(log_path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lane_gets_the_key),
		cmocka_unit_test(what_cannot_be_sealed_is_refused),
		cmocka_unit_test(a_key_log_is_for_its_owner_alone),
		cmocka_unit_test(a_lane_that_cannot_seal_is_left_out),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
