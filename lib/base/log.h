/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/log.h
 * The log, probes for tracers, the key log. A line is `date time weft level [source]: text`; the
 * source is a worker or endpoint (core/worker.h). Nothing logs per message. Lines that a peer can
 * cause go through weft_log_limited(), so that no peer can fill a disk. The level and the file
 * belong to the process; the context created last sets them. Any thread may log.
 */
#ifndef WEFT_LOG_H
#define WEFT_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft.h"
#include "weft_build.h"

/** Lines of higher levels are not written. Threads read it without a lock. */
extern int weft_log_level;

/**
 * @param file  NULL or "" = stderr; "%p" becomes the process id, "%h" the host's name
 * @return 0; -EPERM: another user owns the file; -EINVAL: it is a disk; or the error of opening the
 *   file. After an error the level is set, and lines still go to the previous file
 */
int weft_log_setup(enum weft_log_level level, const char *file);

/** Write lines unchanged, at any weft_log_level, because the user has requested them. */
void weft_log_block(const char *text, size_t length);

/** @param origin  source of the line; NULL = the process as a whole */
void weft_log_write(enum weft_log_level level, const char *origin, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void weft_log_vwrite(enum weft_log_level level, const char *origin, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

#define weft_log(level, ...)                                             \
	do {                                                             \
		if (__builtin_expect((int)(level) <= weft_log_level, 0)) \
			weft_log_write(level, NULL, __VA_ARGS__);        \
	} while (0)
#define weft_error(...) weft_log(WEFT_LOG_ERROR, __VA_ARGS__)
#define weft_warn(...) weft_log(WEFT_LOG_WARN, __VA_ARGS__)
#define weft_info(...) weft_log(WEFT_LOG_INFO, __VA_ARGS__)
#define weft_debug(...) weft_log(WEFT_LOG_DEBUG, __VA_ARGS__)

/** Begins zeroed. */
struct weft_log_limit {
	uint64_t since_ns;
	unsigned int lines;
	uint64_t suppressed;
};

/**
 * At most 5 lines in a period of 10 s. The first line of the next period follows a line with the
 * number of lines left out. Reads the clock, and counts the line.
 */
bool weft_log_allowed(struct weft_log_limit *limit);

/** For lines that a peer can cause often. */
#define weft_log_limited(limit, level, ...)                                    \
	do {                                                                   \
		if ((int)(level) <= weft_log_level && weft_log_allowed(limit)) \
			weft_log_write(level, NULL, __VA_ARGS__);              \
	} while (0)

/* ------------------------------------------------------------------ USDT probes */

/*
 * USDT probes (doc/capture.md) are places at which a tracer may stop or count. A probe is one nop
 * and a note in the ELF file; without SystemTap's header at build time it is nothing. Arguments are
 * values that the code has anyway. Scripts use their number and order, so new ones are appended.
 */

#if WEFT_HAVE_SDT
#include <sys/sdt.h>
#define WEFT_PROBE4(name, a, b, c, d) DTRACE_PROBE4(weft, name, a, b, c, d)
#define WEFT_PROBE5(name, a, b, c, d, e) DTRACE_PROBE5(weft, name, a, b, c, d, e)
#else
#define WEFT_PROBE4(name, a, b, c, d) ((void)0)
#define WEFT_PROBE5(name, a, b, c, d, e) ((void)0)
#endif

/* ------------------------------------------------------------------ key log */

/* A server may not respond, so threads of base/thread.h write the file (doc/sealing.md). */

#define WEFT_KEYLOG_LINES 256u

/**
 * Append the secret of frames with this connection and token in their header. Any thread may call
 * this; it returns before the line is written. Lost lines are counted; the log reports the first
 * one since the last flush.
 * @param fd  of weft_keylog_open(); may be closed after this call
 * @param mode  2 encrypt, 1 auth
 * @return 0: a thread will try to write the line; -ENOBUFS: WEFT_KEYLOG_LINES lines wait; or
 *   another negative errno
 */
int weft_keylog_write(int fd, unsigned int mode, uint32_t conn, uint32_t token,
		      const uint8_t secret[32]);

/** Blocks for at most 1 s. @return lines that still wait, or were lost since the last flush */
unsigned int weft_keylog_flush(void);

#endif /* WEFT_LOG_H */
