/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/secret.h"
#include "base/text.h"
#include "base/thread.h"
#include "weft.h"
#include "weft_build.h"
#include "weft_vcs.h"

/* Lines have wall-clock time, not the platform's, since only people read it. */

int weft_log_level = WEFT_LOG_WARN;

static int log_fd = STDERR_FILENO;
static int log_reader = -1;  /* of a pipe: log_hold_pipe() */
static atomic_uint log_lost; /* lines that a full pipe or terminal has not taken */

static weft_log_cb log_callback;
static void *log_callback_arg;

#define LIMIT_LINES 5
#define LIMIT_PERIOD (10 * 1000000000ull)

static const char *const level_names[] = {"error", "warning", "info", "debug"};

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

/*
 * Not blocking: a FIFO without a reader, or a line without a carrier, must not hold the process.
 * O_NOCTTY: a terminal does not become that of the process.
 */
static int open_to_append(const char *path, int more)
{
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | more,
		    0600);
}

static bool is_of_user(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid();
}

/* @param followed  a link led to the file: the owner is not checked */
static int check_type(int fd, bool followed)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISCHR(st.st_mode))
		return 0;
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return -EINVAL;
	return followed || is_of_user(&st) ? 0 : -EPERM;
}

/*
 * The log contains addresses and names of hosts, and root often writes it in /tmp. So only the
 * owner can access a new file. A file, pipe or link that belongs neither to root nor to the
 * effective user is refused.
 */
static int log_open(const char *path)
{
	int fd = open_to_append(path, O_NOFOLLOW), rc;
	bool followed = fd < 0 && errno == ELOOP;
	struct stat st;

	if (followed) {
		if (lstat(path, &st))
			return -errno;
		if (!is_of_user(&st))
			return -EPERM;
		fd = open_to_append(path, 0);
	}
	if (fd < 0)
		return -errno;
	rc = check_type(fd, followed);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	return fd;
}

/* While the pipe has a reader, no write of this process ends in SIGPIPE. */
static int log_hold_pipe(int fd)
{
	char path[32];
	struct stat st;

	if (fstat(fd, &st) || !S_ISFIFO(st.st_mode))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

int weft_log_setup(enum weft_log_level level, const char *file)
{
	static char current[512];
	char path[512] = "";
	int fd = STDERR_FILENO, reader = -1;

	weft_log_level = (int)level;
	if (file && file[0] != '\0')
		expand(file, path, sizeof(path));
	if (strcmp(path, current) == 0)
		return 0;
	if (path[0] != '\0') {
		fd = log_open(path);
		if (fd < 0)
			return fd;
		reader = log_hold_pipe(fd);
	}
	if (log_fd != STDERR_FILENO)
		close(log_fd);
	if (log_reader >= 0)
		close(log_reader);
	log_fd = fd;
	log_reader = reader;
	memcpy(current, path, sizeof(current));
	return 0;
}

void weft_log_set_callback(weft_log_cb callback, void *arg)
{
	log_callback = callback;
	log_callback_arg = arg;
}

/* @return true: the application has handled the line, so it is not written */
static bool call_back(enum weft_log_level level, const char *origin, const char *text)
{
	char source[256] = "";

	if (origin)
		snprintf(source, sizeof(source), "%s", origin);
	weft_text_printable(source, strlen(source));
	return log_callback(level, source, text, log_callback_arg);
}

#define LINE 1024

/* @param[out] text  offset of what follows the head @return bytes, without the end of the line */
static size_t line_make(char line[LINE], size_t *text, enum weft_log_level level,
			const char *origin, const char *fmt, va_list ap)
{
	size_t n, room = LINE - 1;
	struct timespec ts;
	struct tm tm;
	int k;

	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	n = strftime(line, room, "%F %T", &tm);
	k = snprintf(line + n, room - n, ".%06ld weft %s%s%s: ", ts.tv_nsec / 1000,
		     level_names[level], origin ? " " : "", origin ? origin : "");
	n += (size_t)k < room - n ? (size_t)k : room - n - 1;
	*text = n;
	k = vsnprintf(line + n, room - n, fmt, ap);
	if (k > 0)
		n += (size_t)k < room - n ? (size_t)k : room - n - 1;
	/* The line may contain text of the environment, of files or of a peer. */
	weft_text_printable(line, n);
	line[n] = '\0';
	return n;
}

/*
 * One write, so that lines do not mix. A pipe with room takes PIPE_BUF bytes at once. Other
 * processes share the open file of stderr, so it cannot have O_NONBLOCK.
 *
 * @param length  at most PIPE_BUF
 * @return false: the reader has not taken it
 */
static bool put_once(const char *text, size_t length)
{
	struct pollfd room = {.fd = log_fd, .events = POLLOUT};
	ssize_t n;

	if (log_fd == STDERR_FILENO && poll(&room, 1, 0) == 0)
		return false;
	n = write(log_fd, text, length);
	return n == (ssize_t)length || (n < 0 && errno != EAGAIN); /* other errors are ignored */
}

static void __attribute__((format(printf, 2, 3)))
report_lost(unsigned int num, const char *fmt, ...)
{
	char line[LINE];
	size_t text, n;
	va_list ap;

	va_start(ap, fmt);
	n = line_make(line, &text, WEFT_LOG_WARN, NULL, fmt, ap);
	va_end(ap);
	line[n++] = '\n';
	if (!put_once(line, n))
		atomic_fetch_add_explicit(&log_lost, num, memory_order_relaxed);
}

/* The log must not hold the thread that moves messages. Relaxed: nothing depends on the number. */
static void put(const char *text, size_t length, unsigned int lines)
{
	unsigned int num = 0;

	if (atomic_load_explicit(&log_lost, memory_order_relaxed) != 0)
		num = atomic_exchange_explicit(&log_lost, 0, memory_order_relaxed);
	if (num != 0)
		report_lost(num,
			    "%u lines of the log were lost: its reader does not read fast enough",
			    num);
	if (!put_once(text, length))
		atomic_fetch_add_explicit(&log_lost, lines, memory_order_relaxed);
}

void weft_log_vwrite(enum weft_log_level level, const char *origin, const char *fmt, va_list ap)
{
	char line[LINE];
	size_t text, n = line_make(line, &text, level, origin, fmt, ap);

	if (log_callback && call_back(level, origin, line + text))
		return;
	line[n++] = '\n';
	put(line, n, 1);
}

/* @return bytes of the first lines that one write takes; a longer line is cut */
static size_t some_lines(const char *text, size_t length, unsigned int *lines)
{
	size_t end = 0;

	*lines = 0;
	for (size_t i = 0; i < length && i < PIPE_BUF; i++) {
		if (text[i] != '\n')
			continue;
		end = i + 1;
		++*lines;
	}
	if (end != 0)
		return end;
	*lines = 1;
	return length < PIPE_BUF ? length : PIPE_BUF;
}

void weft_log_block(const char *text, size_t length)
{
	unsigned int lines;
	size_t n;

	for (; length != 0; text += n, length -= n) {
		n = some_lines(text, length, &lines);
		put(text, n, lines);
	}
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

/* ------------------------------------------------------------------ texts of errors, version */

static_assert(WEFT_VERSION == WEFT_BUILD_VERSION_NUMBER, "meson.build and weft_version.h differ");

uint32_t weft_version(void)
{
	return WEFT_VERSION;
}

const char *weft_version_string(void)
{
	return WEFT_BUILD_VERSION " (" WEFT_VCS_REVISION ")";
}

const char *weft_build_info(void)
{
	return "version " WEFT_BUILD_VERSION " (" WEFT_VCS_REVISION ")\n"
	       "compiler " WEFT_BUILD_COMPILER ", " WEFT_BUILD_TYPE "\n"
	       "sanitizers " WEFT_BUILD_SANITIZE "\n"
	       "DPDK " WEFT_BUILD_DPDK "\n"
	       "sealed frames " WEFT_BUILD_SEAL "\n"
	       "rdma-core " WEFT_BUILD_RDMA_CORE "\n"
	       "lane drivers"
#if WEFT_HAVE_DPDK
	       " dpdk udp"
#endif
#if WEFT_HAVE_ROCE
	       " roce"
#endif
	       " shm self\n";
}

/* Meanings often differ from those of strerror(). The log and the callbacks name the object. */
static const struct {
	int err;
	const char *text;
} sentences[] = {
	{EINVAL, "invalid argument, or damaged input"},
	{ENOMEM, "out of memory"},
	{EAGAIN, "no room now, try again after progress"},
	{ENOENT, "no such name or index"},
	{ENODEV, "no lane could be opened: no usable port or RDMA device was found"},
	{EBUSY, "in use: something still depends on it, or a port has another owner"},
	{EALREADY, "already complete"},
	{ECANCELED, "canceled"},
	{EMSGSIZE, "message truncated: it is longer than the receive buffer"},
	{ENOMSG, "no matching message has arrived"},
	{ENOTCONN, "not connected yet"},
	{ETIMEDOUT, "no valid frame of the peer arrived within the timeout"},
	{ECONNRESET, "the peer closed the connection or was restarted"},
	{ECONNREFUSED, "the peer refused the connection"},
	{EHOSTUNREACH, "the peer cannot be reached from any local interface"},
	{ENETRESET, "the network device must be reset"},
	{ENETDOWN, "the network interface is down"},
	{ENETUNREACH, "no network reaches the peer"},
	{EPROTO, "the peer broke the protocol"},
	{EPROTONOSUPPORT, "the peer runs an incompatible version of Weft"},
	{EOPNOTSUPP, "not supported"},
	{ENOSYS, "not in this build"},
	{EIO, "the device failed"},
	{EPERM, "not permitted (root or a capability may be needed)"},
	{EACCES, "access denied"},
	{ENOSPC, "no space left"},
	{ENOBUFS, "a bound on buffers or objects is reached"},
	{EOVERFLOW, "too large"},
	{ERANGE, "out of range"},
	{ESTALE,
	 "the peer does not expect this connection: it was restarted, or its number is used"},
	{EUSERS, "too many connections that the program has not claimed"},
	{EADDRINUSE, "the network address is taken"},
	{EADDRNOTAVAIL, "the network address cannot be used here"},
	{EBADMSG, "damaged message"},
	{EFAULT, "bad address"},
	{EEXIST, "it exists already"},
	{EKEYREJECTED, "the peer does not have this remote key, or has it no longer"},
};

const char *weft_strerror(int status)
{
	size_t i;

	if (status == 0)
		return "success";
	if (status == WEFT_INPROGRESS)
		return "in progress";
	for (i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++)
		if (sentences[i].err == -status)
			return sentences[i].text;
	return "unknown status";
}

/* ------------------------------------------------------------------ key log */

#define FLUSH_S 1

struct line {
	int fd; /* a duplicate: the caller may close its own before the line is written */
	size_t len;
	char text[128];
};

/* Guards the numbers, not the writes. */
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

/* The parent writes the waiting lines. */
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

/*
 * Count a line of the key log that is lost, for the reason @p rc. Only the first one since the last
 * weft_keylog_flush() causes a warning in the log.
 */
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

	/* One write, so that lines of several processes do not mix. */
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
