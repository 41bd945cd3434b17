/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mem/uffd.h
 * Hearing of memory that goes away: what the registration cache needs of Linux's userfaultfd(2). A
 * watched range behaves as before: nothing in it is write-protected, so no fault ever waits for us.
 * Mappings are watched as a whole, so that each stays one mapping. A thread that unmaps, moves or
 * empties a part of one waits in the kernel until the event is read.
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
 * @param why  gets a sentence on error, with the way out
 * @return a descriptor, or a negative error
 */
int weft_uffd_open(char *why, size_t why_len);

/**
 * Watch whole pages. @return 0, or an error: what is mapped there cannot be watched, or somebody
 * else does
 */
int weft_uffd_watch(int fd, uintptr_t start, uintptr_t end);
void weft_uffd_unwatch(int fd, uintptr_t start, uintptr_t end);

/**
 * Is somebody, at this moment, taking watched memory away, without the event having been read?
 * A caller that maps memory again where others have just unmapped it gets true until then: the
 * kernel counts such calls from a time on when the address is not free yet.
 * @param page  a watched page that stays (of the caller)
 */
bool weft_uffd_changing(int fd, uintptr_t page);

/**
 * Read events; whoever waits for them goes on. Does not block. @return ranges written, at most @p
 * max; 0 = none left
 */
unsigned int weft_uffd_read(int fd, struct weft_uffd_range *out, unsigned int max);

/**
 * Is all of it private anonymous memory? Only such memory cannot lose its pages behind the event's
 * back (files and shared memory can be truncated or punched through other mappings).
 *
 * @param whole  out, if so: it and the remainder of the mappings in which it begins and ends. To
 *               watch a part of a mapping splits it, and mremap() of both parts fails with EFAULT.
 */
bool weft_uffd_anonymous(uintptr_t start, uintptr_t end, struct weft_uffd_range *whole);

#endif /* WEFT_UFFD_H */
