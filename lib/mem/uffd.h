/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/uffd.h
 * Events of memory that is unmapped: the registration cache's use of Linux's userfaultfd(2). A
 * watched range behaves as before: nothing in it is write-protected, so no page fault waits for
 * this process. Mappings are watched as a whole, so that each remains one mapping. A thread that
 * unmaps, moves or empties a part of one waits in the kernel until the event is read.
 */
#ifndef WEFT_UFFD_H
#define WEFT_UFFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A range whose pages are gone. */
struct weft_uffd_range {
	uintptr_t start, end;
};

/**
 * @param why  gets the reason of an error, and its remedy
 * @return a descriptor, or a negative error
 */
int weft_uffd_open(char *why, size_t why_len);

/**
 * Watch whole pages. @return 0, or an error: the mapping cannot be watched, or another descriptor
 * watches it
 */
int weft_uffd_watch(int fd, uintptr_t start, uintptr_t end);
void weft_uffd_unwatch(int fd, uintptr_t start, uintptr_t end);

/**
 * Is a thread unmapping watched memory at this moment, whose event is not read yet? A caller that
 * maps memory at an address that another thread has just unmapped gets true until then: the kernel
 * counts such calls before the address is free.
 * @param page  a watched page that stays mapped (of the caller)
 */
bool weft_uffd_changing(int fd, uintptr_t page);

/**
 * Read events; the threads that wait for them continue. Does not block. @return ranges written, at
 * most @p max; 0 = none left
 */
unsigned int weft_uffd_read(int fd, struct weft_uffd_range *out, unsigned int max);

/**
 * Is all of it private anonymous memory? Only such memory cannot lose its pages without an event
 * (files and shared memory can be truncated or punched through other mappings).
 *
 * @param whole  out, if so: the range and the remainder of the mappings in which it begins and
 *   ends. Watching a part of a mapping splits it, and mremap() of both parts fails with EFAULT.
 */
bool weft_uffd_anonymous(uintptr_t start, uintptr_t end, struct weft_uffd_range *whole);

#endif /* WEFT_UFFD_H */
