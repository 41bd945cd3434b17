/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file thread.h
 * The thread that makes progress for FI_PROGRESS_AUTO. While the application calls it only looks,
 * once in an interval, that it still does; when it has not, the thread makes progress, and sleeps
 * on the worker's descriptor where there is nothing to do. One for the process.
 */
#ifndef WFI_THREAD_H
#define WFI_THREAD_H

/** One more user; not to be called with the lock of the process. @return 0 or a negative error */
int wfi_thread_start(unsigned int interval_us);
/** In a child of fork(), which has no such thread. */
void wfi_thread_forked(void);
/** One user less; waits for the thread's end. Not locked. */
void wfi_thread_stop(void);

#endif /* WFI_THREAD_H */
