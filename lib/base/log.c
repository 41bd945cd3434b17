/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

/*
 * The log stamps lines with wall-clock time. Only people read it, so it does not use the platform's
 * clock.
 */

int weft_log_level = WEFT_LOG_WARN;

static int log_fd = STDERR_FILENO;

static weft_log_cb log_callback;
static void *log_callback_arg;

#define LIMIT_LINES 5
#define LIMIT_PERIOD (10 * 1000000000ull)

static const char *const level_names[] = {"error", "warning", "info", "debug"};

/* "%p" and "%h" of WEFT_LOG_FILE. */
static void expand(const char *file, char *path, size_t size)
{
	char host[64] = "localhost";
	size_t n = 0;

	gethostname(host, sizeof(host) - 1);
	for (; *file != '\0' && n + 1 < size; file++) {
		if (file[0] == '%' && file[1] == 'p') {
			n += (size_t)snprintf(path + n, size - n, "%d", (int)getpid());
			file++;
		} else if (file[0] == '%' && file[1] == 'h') {
			n += (size_t)snprintf(path + n, size - n, "%s", host);
			file++;
		} else {
			path[n++] = *file;
		}
		if (n >= size)
			n = size - 1;
	}
	path[n] = '\0';
}

static int log_flags(int more)
{
	return O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | more;
}

/*
 * The log contains addresses and names of hosts, and root often writes it in /tmp. So only the
 * owner can access a new file. A file, a pipe or a link that another user than root has put there
 * is refused. O_NONBLOCK: opening a pipe without a reader fails and does not block.
 */
static int log_open(const char *path)
{
	int fd = open(path, log_flags(O_NOFOLLOW | O_NONBLOCK), 0600);
	struct stat st;

	if (fd < 0 && errno == ELOOP) {
		if (lstat(path, &st))
			return -errno;
		if (st.st_uid != 0 && st.st_uid != geteuid())
			return -EPERM;
		fd = open(path, log_flags(0), 0600);
		return fd < 0 ? -errno : fd;
	}
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || ((S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode)) && st.st_uid != 0 &&
			       st.st_uid != geteuid())) {
		close(fd);
		return -EPERM;
	}
	fcntl(fd, F_SETFL, O_WRONLY | O_APPEND); /* blocking writes, so that lines are complete */
	return fd;
}

int weft_log_setup(enum weft_log_level level, const char *file)
{
	static char current[512];
	char path[512] = "";
	int fd = STDERR_FILENO, old;

	weft_log_level = (int)level;
	if (file && file[0] != '\0')
		expand(file, path, sizeof(path));
	if (strcmp(path, current) == 0)
		return 0;
	if (path[0] != '\0') {
		fd = log_open(path);
		if (fd < 0)
			return fd;
	}
	old = log_fd;
	log_fd = fd;
	if (old != STDERR_FILENO)
		close(old);
	memcpy(current, path, sizeof(current));
	return 0;
}

void weft_log_set_callback(weft_log_cb callback, void *arg)
{
	log_callback = callback;
	log_callback_arg = arg;
}

/* @return the application handled the line */
static bool call_back(enum weft_log_level level, const char *origin, const char *text)
{
	char source[256] = "";

	if (origin)
		snprintf(source, sizeof(source), "%s", origin);
	weft_text_printable(source, strlen(source));
	return log_callback(level, source, text, log_callback_arg);
}

void weft_log_vwrite(enum weft_log_level level, const char *origin, const char *fmt, va_list ap)
{
	size_t n, text, room;
	char line[1024];
	struct timespec ts;
	struct tm tm;
	int k;

	room = sizeof(line) - 1; /* the last byte is for the line feed */
	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	n = strftime(line, room, "%F %T", &tm);
	k = snprintf(line + n, room - n, ".%06ld weft %s%s%s: ", ts.tv_nsec / 1000,
		     level_names[level], origin ? " " : "", origin ? origin : "");
	n += (size_t)k < room - n ? (size_t)k : room - n - 1;
	text = n;
	k = vsnprintf(line + n, room - n, fmt, ap);
	if (k > 0)
		n += (size_t)k < room - n ? (size_t)k : room - n - 1;
	/* The line may contain text of the environment, of files or of a peer. */
	weft_text_printable(line, n);
	line[n] = '\0';
	if (log_callback && call_back(level, origin, line + text))
		return;
	line[n++] = '\n';
	/*
	 * One write, so that lines of several threads or processes do not mix. A failed write of
	 * the log is ignored.
	 */
	if (write(log_fd, line, n) < 0)
		return;
}

void weft_log_block(const char *text, size_t length)
{
	if (write(log_fd, text, length) < 0)
		return; /* as above */
}

void weft_log_write(enum weft_log_level level, const char *origin, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	weft_log_vwrite(level, origin, fmt, ap);
	va_end(ap);
}

bool weft_log_allowed(struct weft_log_limit *limit)
{
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
	if (limit->since_ns == 0 || now - limit->since_ns > LIMIT_PERIOD) {
		if (limit->suppressed != 0)
			weft_log_write(WEFT_LOG_WARN, NULL,
				       "%" PRIu64 " lines like the next one were left out",
				       limit->suppressed);
		*limit = (struct weft_log_limit){.since_ns = now};
	}
	if (limit->lines >= LIMIT_LINES) {
		limit->suppressed++;
		return false;
	}
	limit->lines++;
	return true;
}
