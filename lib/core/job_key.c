/* SPDX-License-Identifier: BSD-3-Clause */

#include "core/job_key.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/secret.h"
#include "weft_build.h"

static int read_key(const char *path, uint8_t key[WEFT_JOB_KEY_LEN])
{
	bool remote = false;
	char why[512];
	int rc = weft_job_key_load(path, key, &remote, why, sizeof(why));

	if (rc < 0)
		weft_error("WEFT_JOB_KEY: %s", why);
	else if (remote)
		weft_warn(
			"WEFT_JOB_KEY=%.256s is in a network's file system: its server, and hosts "
			"that can read that network, can read the key",
			path);
	return rc;
}

static int check(const struct weft_conf *conf, bool has_key)
{
	if (!has_key &&
	    (conf->seal == WEFT_SEAL_WORD_AUTH || conf->seal == WEFT_SEAL_WORD_ENCRYPT)) {
		weft_error("WEFT_SEAL needs a job key: set WEFT_JOB_KEY=FILE, the same at all "
			   "processes of the job");
		return -EINVAL;
	}
	if (!has_key && conf->job_key_ignored && conf->seal != WEFT_SEAL_WORD_OFF) {
		weft_error("WEFT_JOB_KEY is set, and a program with more rights than its user "
			   "takes no file from the environment: set it in a configuration file of "
			   "root, or set WEFT_SEAL=off to send plain frames");
		return -EPERM;
	}
	if (has_key && !WEFT_HAVE_SEAL) {
		weft_error(
			"this build of Weft can't seal frames (it was made without libcrypto 3 or "
			"libipsec-mb), and a job key is set: remove the key, and use only a "
			"network whose members you trust");
		return -ENOTSUP;
	}
	return 0;
}

/* With a key only: without one there is nothing to log. */
static int open_keylog(struct weft_conf *conf)
{
	char why[512];
	int fd;

	if (conf->keylog[0] == '\0')
		return 0;
	fd = weft_keylog_open(conf->keylog, why, sizeof(why));
	if (fd < 0) {
		weft_error("WEFT_KEYLOG: %s", why);
		return fd;
	}
	weft_warn("WEFT_KEYLOG: the keys of all sealed frames are written to %.256s; a reader of "
		  "this file can read all messages",
		  conf->keylog);
	conf->keylog_fd = fd;
	conf->lane.keylog = &conf->keylog_fd;
	return 0;
}

int weft_job_key_take(struct weft_conf *conf, const void *given)
{
	bool has_key = conf->seal != WEFT_SEAL_WORD_OFF && (given || conf->job_key[0] != '\0');
	uint8_t *key;
	int rc = check(conf, has_key);

	if (rc < 0 || !has_key)
		return rc;
	key = weft_secret_alloc(WEFT_JOB_KEY_LEN);
	if (!key)
		return -ENOMEM;
	if (given)
		memcpy(key, given, WEFT_JOB_KEY_LEN);
	else
		rc = read_key(conf->job_key, key);
	if (rc == 0)
		rc = open_keylog(conf);
	if (rc < 0) {
		weft_secret_free(key, WEFT_JOB_KEY_LEN);
		return rc;
	}
	conf->lane.job_key = key;
	conf->lane.seal_auth = conf->seal == WEFT_SEAL_WORD_AUTH;
	return 0;
}

void weft_job_key_release(struct weft_conf *conf)
{
	weft_secret_free((void *)(uintptr_t)conf->lane.job_key, WEFT_JOB_KEY_LEN);
	conf->lane.job_key = NULL;
	if (conf->lane.keylog)
		close(conf->keylog_fd);
	conf->lane.keylog = NULL;
}
