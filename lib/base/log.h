/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/log.h
 * The library's log: one line per event, on stderr or in WEFT_LOG_FILE.
 *
 * A line is `date time level [who] text`; *who* names the worker or endpoint (core/log_who.h).
 * Nothing logs per message: what a peer can provoke goes through weft_log_limited(), so that nobody
 * can flood a disk. The level and the file belong to the process; the context created last sets
 * them. Any thread may log: a line is one write.
 */
#ifndef WEFT_LOG_H
#define WEFT_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft.h"

/**
 * Lines of this level and below are written. Read without a lock: a torn change costs a line, no
 * more.
 */
extern int weft_log_level;

/**
 * Direct the log.
 * @param file  NULL or "" = stderr; "%p" becomes the process id, "%h" the host's name
 * @return 0, or the error of opening the file; the log then goes on as before
 */
int weft_log_setup(enum weft_log_level level, const char *file);

/** Write text of several lines as it is, whatever the level: something that was requested. */
void weft_log_block(const char *text, size_t length);

/** Write a line. @p who = NULL: nobody in particular. */
void weft_log_write(enum weft_log_level level, const char *who, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void weft_log_vwrite(enum weft_log_level level, const char *who, const char *fmt, va_list ap)
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

/** State of one rate limit; zero-initialised, static or in an object. */
struct weft_log_limit {
	uint64_t since_ns;
	unsigned int lines;
	uint64_t suppressed;
};

/**
 * May another line be written? At most 5 in 10 seconds; when a new period begins a line tells how
 * many were left out. Reads the clock, so ask only when a line is due.
 */
bool weft_log_allowed(struct weft_log_limit *limit);

/** weft_log() at a place that a peer can make run often. */
#define weft_log_limited(limit, level, ...)                                    \
	do {                                                                   \
		if ((int)(level) <= weft_log_level && weft_log_allowed(limit)) \
			weft_log_write(level, NULL, __VA_ARGS__);              \
	} while (0)

#endif /* WEFT_LOG_H */
