/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/log_origin.h
 * Log lines that name the worker or the endpoint they are about.
 */
#ifndef WEFT_LOG_ORIGIN_H
#define WEFT_LOG_ORIGIN_H

#include "base/log.h"

struct weft_ep;
struct weft_worker;

void weft_log_worker_write(enum weft_log_level level, const struct weft_worker *worker,
			   const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void weft_log_ep_write(enum weft_log_level level, const struct weft_ep *ep, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** weft_log() with the worker, or the endpoint, in the line. */
#define weft_log_worker(worker, level, ...)                                \
	do {                                                               \
		if (__builtin_expect((int)(level) <= weft_log_level, 0))   \
			weft_log_worker_write(level, worker, __VA_ARGS__); \
	} while (0)
#define weft_log_ep(ep, level, ...)                                      \
	do {                                                             \
		if (__builtin_expect((int)(level) <= weft_log_level, 0)) \
			weft_log_ep_write(level, ep, __VA_ARGS__);       \
	} while (0)

#endif /* WEFT_LOG_ORIGIN_H */
