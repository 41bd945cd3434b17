/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "capture/history.h"

/* ---- writing: the lane's thread ------------------------------------------------------------- */

/* ns without a sample after which another path may take the row */
#define PAUSED 1000000000ull

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return (uint32_t)a < (uint32_t)b ? a : b;
}

/* The newest short slot has ended: add its samples to its long slot. */
static void finish(struct weft_history_path *p)
{
	uint64_t last = atomic_load_explicit(&p->last, memory_order_relaxed);
	uint64_t s =
		atomic_load_explicit(&p->fine[last % WEFT_HISTORY_SLOTS], memory_order_relaxed);
	uint64_t number = last >> (WEFT_HISTORY_COARSE - WEFT_HISTORY_FINE), old, samples;
	_Atomic uint64_t *to = &p->coarse[number % WEFT_HISTORY_LONG];

	samples = s >> WEFT_HISTORY_SAMPLES & WEFT_HISTORY_SAMPLES_MOST;
	old = atomic_load_explicit(to, memory_order_relaxed);
	if (old >> WEFT_HISTORY_NUMBER == (number << WEFT_HISTORY_NUMBER) >> WEFT_HISTORY_NUMBER) {
		samples += old >> WEFT_HISTORY_SAMPLES & WEFT_HISTORY_SAMPLES_MOST;
		s = least_of(s, old);
	}
	if (samples > WEFT_HISTORY_SAMPLES_MOST)
		samples = WEFT_HISTORY_SAMPLES_MOST;
	atomic_store_explicit(
		to, number << WEFT_HISTORY_NUMBER | samples << WEFT_HISTORY_SAMPLES | (uint32_t)s,
		memory_order_relaxed);
}

static void clear(struct weft_history_path *p)
{
	unsigned int i;

	for (i = 0; i < WEFT_HISTORY_SLOTS; i++)
		atomic_store_explicit(&p->fine[i], 0, memory_order_relaxed);
	for (i = 0; i < WEFT_HISTORY_LONG; i++)
		atomic_store_explicit(&p->coarse[i], 0, memory_order_relaxed);
	atomic_store_explicit(&p->last, 0, memory_order_relaxed);
}

/* A row keeps delay - `zero`, which lies within FAR of MIDDLE. */
#define MIDDLE (1u << 31)
#define FAR (1u << 30)

static void give(struct weft_history_path *p, uint64_t conn, uint8_t path, uint32_t zero)
{
	atomic_store_explicit(&p->conn, 0, memory_order_relaxed);
	clear(p);
	atomic_store_explicit(&p->path, path, memory_order_relaxed);
	atomic_store_explicit(&p->zero, zero, memory_order_relaxed);
	atomic_store_explicit(&p->conn, conn, memory_order_relaxed);
}

/* @return another path has the row, and had a sample within PAUSED */
static bool is_taken(const struct weft_history_path *p, uint64_t conn, uint8_t path,
		     uint64_t number)
{
	uint64_t old = atomic_load_explicit(&p->conn, memory_order_relaxed);

	return old &&
	       (old != conn || atomic_load_explicit(&p->path, memory_order_relaxed) != path) &&
	       atomic_load_explicit(&p->last, memory_order_relaxed) +
			       (PAUSED >> WEFT_HISTORY_FINE) >
		       number;
}

void weft_history_begin(struct weft_history *h, uint64_t conn, uint8_t path, uint64_t now,
			uint32_t delay)
{
	struct weft_history_path *p = weft_history_row(h, conn, path);
	uint64_t number = now >> WEFT_HISTORY_FINE;

	if (is_taken(p, conn, path, number))
		return;
	/* A new path, or clocks that drifted for hours or were set: the row starts again. */
	if (atomic_load_explicit(&p->conn, memory_order_relaxed) != conn ||
	    atomic_load_explicit(&p->path, memory_order_relaxed) != path || delay < MIDDLE - FAR ||
	    delay > MIDDLE + FAR) {
		delay += atomic_load_explicit(&p->zero, memory_order_relaxed);
		give(p, conn, path, delay - MIDDLE);
		delay = MIDDLE;
	}
	if (atomic_load_explicit(&p->last, memory_order_relaxed))
		finish(p);
	atomic_store_explicit(&p->fine[number % WEFT_HISTORY_SLOTS],
			      number << WEFT_HISTORY_NUMBER | 1ull << WEFT_HISTORY_SAMPLES | delay,
			      memory_order_relaxed);
	atomic_store_explicit(&p->last, number, memory_order_relaxed);
}

static void set(struct weft_history_counts *c, uint64_t number, const uint32_t *count)
{
	/* 0 while counts change. A reader may get some of the old counts and some of the new. */
	atomic_store_explicit(&c->number, 0, memory_order_relaxed);
	for (unsigned int i = 0; i < WEFT_HISTORY_COUNTS; i++)
		atomic_store_explicit(&c->count[i], count[i], memory_order_relaxed);
	/* Release: after the counts. */
	atomic_store_explicit(&c->number, number, memory_order_release);
}

void weft_history_note(struct weft_history *h, uint64_t now,
		       const uint32_t count[WEFT_HISTORY_COUNTS])
{
	uint64_t fine = now >> WEFT_HISTORY_FINE, coarse = now >> WEFT_HISTORY_COARSE;

	set(&h->fine[fine % WEFT_HISTORY_SLOTS], fine, count);
	set(&h->coarse[coarse % WEFT_HISTORY_LONG], coarse, count);
	atomic_store_explicit(&h->noted, fine, memory_order_relaxed);
}

void weft_history_reset(struct weft_history *h)
{
	for (unsigned int i = 0; i < WEFT_HISTORY_PATHS; i++) {
		atomic_store_explicit(&h->path[i].conn, 0, memory_order_relaxed);
		clear(&h->path[i]);
	}
	for (unsigned int i = 0; i < WEFT_HISTORY_SLOTS; i++)
		atomic_store_explicit(&h->fine[i].number, 0, memory_order_relaxed);
	for (unsigned int i = 0; i < WEFT_HISTORY_LONG; i++)
		atomic_store_explicit(&h->coarse[i].number, 0, memory_order_relaxed);
	atomic_store_explicit(&h->noted, 0, memory_order_relaxed);
}

/* ---- reading: any thread, a signal handler too ---------------------------------------------- */

struct line {
	char *text;
	size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->text + l->used, l->size - l->used, fmt, ap);
	va_end(ap);
	l->used = n < 0 || (size_t)n >= l->size - l->used ? l->size - 1 : l->used + (size_t)n;
}

/* A ring of slots. Those with the last `num` numbers are in the flight recorder's file. */
struct ring {
	unsigned int shift; /* log2 of the ns of a slot */
	unsigned int num;   /* slots */
	uint64_t newest;    /* number of the newest slot; 0 = none */
};

static uint64_t begin_of(const struct ring *r)
{
	return r->newest >= r->num ? r->newest + 1 - r->num : 1;
}

static bool path_has(const _Atomic uint64_t *slots, const struct ring *r, uint64_t i, uint64_t *v)
{
	*v = atomic_load_explicit(&slots[i % r->num], memory_order_relaxed);
	return *v && *v >> WEFT_HISTORY_NUMBER == (i & UINT64_MAX >> WEFT_HISTORY_NUMBER);
}

static void write_path(struct line *l, const _Atomic uint64_t *slots, const struct ring *r,
		       uint64_t i)
{
	uint64_t v;

	for (; i <= r->newest; i++) {
		if (path_has(slots, r, i, &v))
			add(l, " %d*%u", (int)((uint32_t)v - MIDDLE),
			    (unsigned int)(v >> WEFT_HISTORY_SAMPLES & WEFT_HISTORY_SAMPLES_MOST));
		else
			add(l, " -");
	}
}

static bool counts_have(const struct weft_history_counts *slots, const struct ring *r, uint64_t i)
{
	/* Acquire: pairs with set(). */
	return atomic_load_explicit(&slots[i % r->num].number, memory_order_acquire) == i;
}

/*
 * A slot's text has the increase since the last slot with counts; 0 for the first one. Connections
 * are written as they are.
 */
static void write_counts(struct line *l, const struct weft_history_counts *slots,
			 const struct ring *r, uint64_t i)
{
	uint32_t last[WEFT_HISTORY_COUNTS], now;
	bool first = true;
	unsigned int k;

	for (; i <= r->newest; i++) {
		if (!counts_have(slots, r, i)) {
			add(l, " -");
			continue;
		}
		for (k = 0; k < WEFT_HISTORY_COUNTS; k++) {
			now = atomic_load_explicit(&slots[i % r->num].count[k],
						   memory_order_relaxed);
			add(l, "%c%u", k ? '/' : ' ',
			    k == WEFT_HISTORY_CONNS ? now
			    : first                 ? 0
						    : now - last[k]);
			last[k] = now;
		}
		first = false;
	}
}

/* @param fine  number of the newest short slot */
static struct ring ring_of(bool coarse, uint64_t fine)
{
	return coarse ? (struct ring){WEFT_HISTORY_COARSE, WEFT_HISTORY_LONG,
				      fine >> (WEFT_HISTORY_COARSE - WEFT_HISTORY_FINE)}
		      : (struct ring){WEFT_HISTORY_FINE, WEFT_HISTORY_SLOTS, fine};
}

static size_t counts_text(const struct weft_history *h, bool coarse, uint64_t offset,
			  struct line *l)
{
	struct ring r = ring_of(coarse, atomic_load_explicit(&h->noted, memory_order_relaxed));
	const struct weft_history_counts *slots = coarse ? h->coarse : h->fine;
	uint64_t from = begin_of(&r);

	while (from <= r.newest && !counts_have(slots, &r, from))
		from++;
	if (!r.newest || from > r.newest)
		return 0;
	add(l, "history counts from %" PRIu64 " each %" PRIu64 ":", (from << r.shift) + offset,
	    (uint64_t)1 << r.shift);
	write_counts(l, slots, &r, from);
	return l->used;
}

static size_t path_text(const struct weft_history_path *p, bool coarse, uint64_t offset,
			struct line *l)
{
	struct ring r = ring_of(coarse, atomic_load_explicit(&p->last, memory_order_relaxed));
	const _Atomic uint64_t *slots = coarse ? p->coarse : p->fine;
	uint64_t conn = atomic_load_explicit(&p->conn, memory_order_relaxed), v;
	uint64_t from = begin_of(&r);

	while (from <= r.newest && !path_has(slots, &r, from, &v))
		from++;
	if (!r.newest || !conn || from > r.newest)
		return 0;
	add(l, "history delays of %08x %08x path %u zero %u from %" PRIu64 " each %" PRIu64 ":",
	    (unsigned int)(uint32_t)conn, (unsigned int)(conn >> 32),
	    (unsigned int)atomic_load_explicit(&p->path, memory_order_relaxed),
	    (unsigned int)(atomic_load_explicit(&p->zero, memory_order_relaxed) + MIDDLE),
	    (from << r.shift) + offset, (uint64_t)1 << r.shift);
	write_path(l, slots, &r, from);
	return l->used;
}

size_t weft_history_text(const struct weft_history *h, unsigned int n, uint64_t offset, char *text,
			 size_t size)
{
	struct line l = {.text = text, .size = size};

	return n / 2 < WEFT_HISTORY_PATHS ? path_text(&h->path[n / 2], n % 2, offset, &l)
					  : counts_text(h, n % 2, offset, &l);
}
