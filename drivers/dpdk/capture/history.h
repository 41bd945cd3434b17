/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/history.h
 * The last minute of a lane, for files of the flight recorder: the least delay of paths towards
 * this host, and counts of frames, in slots of time. The recorder's frames reach back only 0.1 to
 * 0.3 s on a busy lane, and a fault may be older. doc/capture.md has the form in the file.
 *
 * The lane's thread writes without a lock: when it acknowledges DATA frames, when an ACK frame
 * arrives, and at timers. Any thread, or a signal handler, may read at any time. Of a slot that
 * changes in the meantime each value is old or new. Slots of 2^24 ns are kept for 2 s, those of
 * 2^30 ns for a minute.
 */
#ifndef WEFT_CAPTURE_HISTORY_H
#define WEFT_CAPTURE_HISTORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#define WEFT_HISTORY_FINE 24u   /**< log2 of the ns of a short slot */
#define WEFT_HISTORY_COARSE 30u /**< log2 of the ns of a long slot */
#define WEFT_HISTORY_WANTED 18u /**< log2 of the ns for one true weft_history_wants() */
#define WEFT_HISTORY_SLOTS 128u /**< short slots */
#define WEFT_HISTORY_LONG 64u   /**< long slots */
/** Rows of a lane. Of paths with the same row the first one has it, until that path pauses. */
#define WEFT_HISTORY_PATHS 16u

/** Counts of a lane: totals since it was opened, modulo 2^32, except CONNS. */
#define WEFT_HISTORY_LIST(X)                                                            \
	X(SENT, "sent")                                                                 \
	X(RECEIVED, "received")                                                         \
	X(AGAIN, "again")                                                               \
	X(TWICE, "twice")                                                               \
	X(DAMAGED, "damaged")                                                           \
	X(LOWERED, "lowered") /* times that a connection went on with smaller frames */ \
	X(CONNS, "conns")     /* connections now */                                     \
	X(LATE, "late")       /* us without a poll, in times of 1 ms and more */        \
	X(STOPPED, "stopped") /* the same, of 0.1 s and more */
#define WEFT_HISTORY_ENUM(id, name) WEFT_HISTORY_##id,
enum weft_history_count { WEFT_HISTORY_LIST(WEFT_HISTORY_ENUM) WEFT_HISTORY_COUNTS };
#undef WEFT_HISTORY_ENUM

/* A slot of delays: number << 44 | samples << 32 | least delay - zero, in ns. 0 = none. */
#define WEFT_HISTORY_NUMBER 44u
#define WEFT_HISTORY_SAMPLES 32u
#define WEFT_HISTORY_SAMPLES_MOST 4095u

struct weft_history_path {
	_Atomic uint64_t conn; /**< token << 32 | id, both of this end; 0 = none */
	_Atomic uint32_t path, zero;
	_Atomic uint64_t last; /**< number of the newest short slot; 0 = none */
	_Atomic uint64_t fine[WEFT_HISTORY_SLOTS], coarse[WEFT_HISTORY_LONG];
};

/** A slot's counts: those of the first note in a short slot, of the last note in a long one. */
struct weft_history_counts {
	_Atomic uint64_t number; /**< number of the slot; 0 = no counts */
	_Atomic uint32_t count[WEFT_HISTORY_COUNTS];
};

struct weft_history {
	struct weft_history_path path[WEFT_HISTORY_PATHS];
	uint64_t wanted;        /**< time of the last weft_history_wants(), in 2^18 ns */
	_Atomic uint64_t noted; /**< number of the newest short slot with counts; 0 = none */
	struct weft_history_counts fine[WEFT_HISTORY_SLOTS], coarse[WEFT_HISTORY_LONG];
};

/** Clear the history: a lane opens. */
void weft_history_reset(struct weft_history *h);

/**
 * The first sample of a path in a slot.
 * @param conn   as in struct weft_history_path
 * @param delay  minus `zero` of the row
 */
void weft_history_begin(struct weft_history *h, uint64_t conn, uint8_t path, uint64_t now,
			uint32_t delay);

static inline struct weft_history_path *weft_history_row(struct weft_history *h, uint64_t conn,
							 uint8_t path)
{
	return &h->path[(conn + path) % WEFT_HISTORY_PATHS];
}

/**
 * A frame that came at @p now was sent @p delay ns before, by the sender's clock. Clocks of hosts
 * differ, so only differences of delays have a meaning, modulo 2^32.
 */
static inline void weft_history_sample(struct weft_history *h, uint64_t conn, uint8_t path,
				       uint64_t now, uint32_t delay)
{
	struct weft_history_path *p = weft_history_row(h, conn, path);
	/* Relaxed: this thread's own; others read slots one by one. */
	uint64_t last = atomic_load_explicit(&p->last, memory_order_relaxed), v;
	_Atomic uint64_t *s = &p->fine[last % WEFT_HISTORY_SLOTS];

	delay -= atomic_load_explicit(&p->zero, memory_order_relaxed);
	if (unlikely(last != now >> WEFT_HISTORY_FINE ||
		     atomic_load_explicit(&p->conn, memory_order_relaxed) != conn ||
		     atomic_load_explicit(&p->path, memory_order_relaxed) != path)) {
		weft_history_begin(h, conn, path, now, delay);
		return;
	}
	v = atomic_load_explicit(s, memory_order_relaxed);
	if (delay < (uint32_t)v)
		v = (v & ~(uint64_t)UINT32_MAX) | delay;
	if ((v >> WEFT_HISTORY_SAMPLES & WEFT_HISTORY_SAMPLES_MOST) != WEFT_HISTORY_SAMPLES_MOST)
		v += 1ull << WEFT_HISTORY_SAMPLES;
	atomic_store_explicit(s, v, memory_order_relaxed);
}

/** @return true at most once in 2^18 ns: a measured delay is worth a reading of the clock */
static inline bool weft_history_wants(struct weft_history *h, uint64_t now)
{
	bool yes = h->wanted != now >> WEFT_HISTORY_WANTED;

	h->wanted = now >> WEFT_HISTORY_WANTED;
	return yes;
}

/** Has the slot of @p now no counts yet? */
static inline bool weft_history_is_due(const struct weft_history *h, uint64_t now)
{
	return atomic_load_explicit(&h->noted, memory_order_relaxed) != now >> WEFT_HISTORY_FINE;
}

/** Store the counts at @p now. */
void weft_history_note(struct weft_history *h, uint64_t now,
		       const uint32_t count[WEFT_HISTORY_COUNTS]);

/** Lines of a lane in a file, at most: two of each row and two of the counts. */
#define WEFT_HISTORY_LINES (2u * WEFT_HISTORY_PATHS + 2u)
#define WEFT_HISTORY_TEXT 16384u /**< a line is shorter than this */

/**
 * Write line @p n of the lane to @p text. A signal handler may call this function.
 * @param offset  ns from the lane's times to those of the file
 * @return bytes of the line; 0 = the lane has no such line
 */
size_t weft_history_text(const struct weft_history *h, unsigned int n, uint64_t offset, char *text,
			 size_t size);

#endif /* WEFT_CAPTURE_HISTORY_H */
