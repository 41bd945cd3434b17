/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/platform.h
 * Inputs of the library that a simulator must be able to replace. Protocols read no other clock.
 * The log, threads, captures, sleeping workers and TCP connections read the kernel's clock.
 */
#ifndef WEFT_PLATFORM_H
#define WEFT_PLATFORM_H

#include <stdint.h>
#include <stddef.h>

struct weft_platform {
	/**
	 * Monotonic ns; > 0. Called at the start of each progress call, when a frame begins to wait
	 * for more messages, for acknowledgements that arrive during progress, and on slow paths.
	 */
	uint64_t (*now)(void *arg);
	/** Unpredictable bytes, for set-up only. @return 0 or a negative error */
	int (*random)(void *arg, void *buf, size_t len);
	/** The number of this boot of the host, for all processes; NULL or 0 = unknown. */
	uint64_t (*host_id)(void *arg);
	void *arg;
};

#endif /* WEFT_PLATFORM_H */
