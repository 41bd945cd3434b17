/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/deadline.h
 * Deadlines of items with small numbers (connections, endpoints), and the first one due. A heap
 * with four children per node: adding the latest deadline, as a retransmission timer mostly is,
 * costs one comparison, however many there are. Removing the first one costs the logarithm of their
 * number. No clock: times are any numbers that the owner compares.
 */
#ifndef WEFT_DEADLINE_H
#define WEFT_DEADLINE_H

#include <stdint.h>

#define WEFT_NEVER UINT64_MAX

/** All zero = empty, without room for items. */
struct weft_deadlines {
	struct weft_deadline {
		uint64_t at;
		uint32_t item;
	} * heap;
	uint32_t *place; /**< of each item: 1 + its index in the heap; 0 = not in the heap */
	uint32_t num, room;
};

/** Make room for items below @p room. The room never shrinks. @return 0 or -ENOMEM */
int weft_deadlines_reserve(struct weft_deadlines *d, uint32_t room);
void weft_deadlines_fini(struct weft_deadlines *d);

/** Time of the first one, WEFT_NEVER when there is none. */
static inline uint64_t weft_deadlines_first(const struct weft_deadlines *d)
{
	return d->num == 0 ? WEFT_NEVER : d->heap[0].at;
}

/** @p item is due at @p at, or earlier if it is already. WEFT_NEVER changes nothing. */
void weft_deadlines_by(struct weft_deadlines *d, uint32_t item, uint64_t at);
void weft_deadlines_remove(struct weft_deadlines *d, uint32_t item);
/** Take the first one out; there must be one. */
uint32_t weft_deadlines_pop(struct weft_deadlines *d);

#endif /* WEFT_DEADLINE_H */
