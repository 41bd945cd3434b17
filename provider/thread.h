/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file thread.h
 * The thread that makes progress for FI_PROGRESS_AUTO. At intervals it checks whether the
 * application still makes calls. If the application has made none, the thread makes progress, and
 * sleeps on the worker's descriptor when there is nothing to do. There is one thread for the
 * process.
 */
#ifndef WFI_THREAD_H
#define WFI_THREAD_H

/** One more user; the lock of the process must not be held. @return 0 or a negative error */
int wfi_thread_start(unsigned int interval_us);
/** In a child of fork(), which has no such thread. */
void wfi_thread_forked(void);
/** One user less; waits for the thread's end. Not locked. */
void wfi_thread_stop(void);

#endif /* WFI_THREAD_H */
