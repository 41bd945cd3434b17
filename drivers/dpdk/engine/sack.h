/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/sack.h
 * The receiver's record of the received sequences. It finds duplicates and writes the SACK block.
 * Pure.
 *
 * Sequences are 32-bit and wrap. `next` is the first one missing; `high` is one past the newest
 * received one. A ring of WEFT_RXWIN bits, indexed by the sequence itself, marks the received ones
 * in [next, next + WEFT_RXWIN).
 */
#ifndef WEFT_SACK_H
#define WEFT_SACK_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_RXWIN 4096u
#define WEFT_RXWIN_WORDS (WEFT_RXWIN / 64)

struct weft_rxwin {
	uint32_t next;
	uint32_t high;
	uint64_t bits[WEFT_RXWIN_WORDS];
};

enum weft_rxwin_verdict {
	WEFT_RXWIN_NEW,
	WEFT_RXWIN_DUPLICATE,
	WEFT_RXWIN_BEYOND, /**< beyond the window: no correct sender does that */
};

void weft_rxwin_init(struct weft_rxwin *w, uint32_t first);

/** a - b as a signed distance modulo 2^32. */
static inline int32_t weft_seq_diff(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

static inline bool weft_rxwin_has_hole(const struct weft_rxwin *w)
{
	return w->high != w->next;
}

/** Words of the bitmap in use; 0 = no hole, no SACK block needed. */
static inline uint32_t weft_rxwin_words(const struct weft_rxwin *w)
{
	uint32_t span = w->high - w->next; /* the first of these is the missing one itself */

	return span <= 1 ? 0 : (span - 1 + 63) / 64;
}

/** Was @p seq received before? Without side effect. */
static inline enum weft_rxwin_verdict weft_rxwin_check(const struct weft_rxwin *w, uint32_t seq)
{
	int32_t d = weft_seq_diff(seq, w->next);

	if (d < 0)
		return WEFT_RXWIN_DUPLICATE;
	if ((uint32_t)d >= WEFT_RXWIN)
		return WEFT_RXWIN_BEYOND;
	return w->bits[seq % WEFT_RXWIN / 64] >> (seq % 64) & 1 ? WEFT_RXWIN_DUPLICATE
								: WEFT_RXWIN_NEW;
}

/** The slow path of weft_rxwin_mark(). */
void weft_rxwin_mark_slow(struct weft_rxwin *w, uint32_t seq);

/**
 * Record a sequence for which weft_rxwin_check() returned NEW, after its messages were delivered.
 */
static inline void weft_rxwin_mark(struct weft_rxwin *w, uint32_t seq)
{
	if (seq == w->next && w->high == w->next)
		w->high = ++w->next;
	else
		weft_rxwin_mark_slow(w, seq);
}

/**
 * Write the bitmap of a SACK block: bit i = sequence next + 1 + i was received.
 * @param word  @p max words, little-endian as on the wire, any alignment
 * @return words in use; 0 = no hole, no block needed
 */
uint32_t weft_rxwin_sack(const struct weft_rxwin *w, void *word, uint32_t max);

/**
 * Walks the set bits of a received bitmap in ascending order; starts with *pos = 0. @return false
 * at the end
 */
bool weft_sack_next(const void *word, uint32_t words, uint32_t *pos, uint32_t *bit);

#endif /* WEFT_SACK_H */
