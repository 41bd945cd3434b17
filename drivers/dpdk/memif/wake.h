/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file memif/wake.h
 * Signals of an eventfd that another process has open, too.
 *
 * O_NONBLOCK belongs to the open file, so the other process can remove it, and fill the counter. A
 * write() then blocks for good, also right after a poll(). The kernel's asynchronous I/O adds to
 * the counter of an eventfd when an operation ends, and never blocks for it. So the signal is the
 * end of a write of no bytes to /dev/null.
 */
#ifndef WEFT_MEMIF_WAKE_H
#define WEFT_MEMIF_WAKE_H

#include <stdbool.h>

struct weft_mwake {
	unsigned long aio; /**< 0 = the kernel or a sandbox forbids it: then poll() and write() */
	int null;
};

void weft_mwake_open(struct weft_mwake *w);
void weft_mwake_close(struct weft_mwake *w);

/** @return false: the eventfd was not signalled */
bool weft_mwake_signal(struct weft_mwake *w, int event);

#endif /* WEFT_MEMIF_WAKE_H */
