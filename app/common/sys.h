/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/sys.h
 * Functions of the operating system for the programs: signals, cores, memory figures, time. libc
 * only.
 */
#ifndef APP_SYS_H
#define APP_SYS_H

#include <stdint.h>

/**
 * Catch SIGINT, SIGTERM and SIGHUP for sys_signal(), so that the peer is notified. SIGPIPE is
 * ignored, so that writes return EPIPE.
 */
void sys_catch_signals(void);

/** The signal that ended the program, or 0. */
int sys_signal(void);

/** oob_idle_cb: -EINTR once a signal has come. */
int sys_idle(void *arg);

/** Pin the calling thread. @return 0 or a negative error after an error message */
int sys_pin(unsigned int core);

/** Memory of this process in bytes, from /proc/self/status. */
struct sys_memory {
	uint64_t peak;    /**< VmHWM; hugepages are not in it */
	uint64_t now;     /**< VmRSS */
	uint64_t hugetlb; /**< HugetlbPages */
};

void sys_memory(struct sys_memory *memory);

/** Reset VmHWM to the present value. @return 0 or a negative error (the kernel may refuse it) */
int sys_reset_peak(void);

/** Monotonic time in seconds. */
double sys_seconds(void);

#endif /* APP_SYS_H */
