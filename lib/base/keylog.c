/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/keylog.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/log.h"
#include "base/secret.h"

#define FLUSH_S 1

struct line {
	int fd; /* its own: the log may be closed before the line is written */
	size_t len;
	char text[128];
};

/* Of the process; the lock is never held during a write. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t written;
static unsigned int waiting, lost;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static void init_condition(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&written, &attr);
	pthread_condattr_destroy(&attr);
}

/* Forget the lines that wait: the parent writes them. */
static void after_fork_in_child(void)
{
	waiting = lost = 0;
	init_condition();
	pthread_mutex_unlock(&lock);
}

static void init_once(void)
{
	init_condition();
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

static void init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, init_once);
}

/* Count a lost line. Only the first one is logged; the next flush reports their number. */
static void lose(int rc)
{
	bool first;

	pthread_mutex_lock(&lock);
	first = lost++ == 0;
	pthread_mutex_unlock(&lock);
	if (first)
		weft_warn("WEFT_KEYLOG: the keys of a connection are not written (%s)",
			  strerror(-rc));
}

static void end_line(struct line *line, int rc)
{
	if (line->fd >= 0)
		close(line->fd);
	weft_secret_free(line, sizeof(*line));
	if (rc < 0)
		lose(rc);
	pthread_mutex_lock(&lock);
	waiting--;
	pthread_cond_broadcast(&written);
	pthread_mutex_unlock(&lock);
}

static void write_line(void *arg)
{
	struct line *line = arg;
	ssize_t n;

	/* One call: the lines of several processes do not mix. */
	do {
		n = write(line->fd, line->text, line->len);
	} while (n < 0 && errno == EINTR);
	end_line(line, n < 0 ? -errno : (size_t)n == line->len ? 0 : -ENOSPC);
}

static void print_line(struct line *line, unsigned int mode, uint32_t conn, uint32_t token,
		       const uint8_t secret[32])
{
	int len = snprintf(line->text, sizeof(line->text), "WEFT_SEAL_1 %s %08x %08x ",
			   mode == 1 ? "auth" : "encrypt", conn, token);

	for (unsigned int i = 0; i < 32; i++)
		len += snprintf(line->text + len, sizeof(line->text) - (size_t)len, "%02x",
				secret[i]);
	line->text[len++] = '\n';
	line->len = (size_t)len;
}

/* @return NULL: there is no memory, or too many lines wait */
static struct line *begin_line(int *rc)
{
	struct line *line = weft_secret_alloc(sizeof(*line));

	init();
	pthread_mutex_lock(&lock);
	*rc = !line ? -ENOMEM : waiting >= WEFT_KEYLOG_LINES ? -ENOBUFS : 0;
	waiting += *rc == 0;
	pthread_mutex_unlock(&lock);
	if (*rc == 0)
		return line;
	lose(*rc);
	weft_secret_free(line, sizeof(*line));
	return NULL;
}

int weft_keylog_write(int fd, unsigned int mode, uint32_t conn, uint32_t token,
		      const uint8_t secret[32])
{
	int rc;
	struct line *line = begin_line(&rc);

	if (!line)
		return rc;
	print_line(line, mode, conn, token, secret);
	line->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	rc = line->fd < 0 ? -errno : weft_blocking_run(write_line, line);
	if (rc < 0)
		end_line(line, rc);
	return rc;
}

unsigned int weft_keylog_flush(void)
{
	struct timespec until;
	unsigned int missing;
	int rc = 0;

	init();
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += FLUSH_S;
	pthread_mutex_lock(&lock);
	while (waiting > 0 && rc == 0)
		rc = pthread_cond_timedwait(&written, &lock, &until);
	missing = waiting + lost;
	lost = 0;
	pthread_mutex_unlock(&lock);
	return missing;
}
