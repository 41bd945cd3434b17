/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "core/wire_types.h"
#include "frame/frame.h"
#include "engine/sack.h"

void weft_rxwin_init(struct weft_rxwin *w, uint32_t first)
{
	memset(w, 0, sizeof(*w));
	w->next = first;
	w->high = first;
}

static inline bool test_bit(const struct weft_rxwin *w, uint32_t seq)
{
	return w->bits[seq % WEFT_RXWIN / 64] >> (seq % 64) & 1;
}

/* Bits below `next` are always clear, so that the ring can be reused as the window moves on. */
void weft_rxwin_mark_slow(struct weft_rxwin *w, uint32_t seq)
{
	w->bits[seq % WEFT_RXWIN / 64] |= 1ull << (seq % 64);
	if (weft_seq_diff(seq + 1, w->high) > 0)
		w->high = seq + 1;
	while (w->next != w->high && test_bit(w, w->next)) {
		w->bits[w->next % WEFT_RXWIN / 64] &= ~(1ull << (w->next % 64));
		w->next++;
	}
}

/* 64 bits of the ring from sequence `seq` on, across word boundaries. */
static uint64_t ring_word(const struct weft_rxwin *w, uint32_t seq)
{
	uint32_t i = seq % WEFT_RXWIN / 64, shift = seq % 64;
	uint64_t lo = w->bits[i] >> shift;

	if (shift == 0)
		return lo;
	return lo | w->bits[(i + 1) % WEFT_RXWIN_WORDS] << (64 - shift);
}

uint32_t weft_rxwin_sack(const struct weft_rxwin *w, void *word, uint32_t max)
{
	uint32_t words = weft_rxwin_words(w), i;
	uint8_t *out = word;
	weft_le64 wire;
	uint64_t v;

	if (words > max)
		words = max;
	for (i = 0; i < words; i++) {
		uint32_t first = w->next + 1 + 64 * i;
		uint32_t left = w->high - first;

		v = ring_word(w, first);
		/* The ring wraps: bits past `high` belong to the other end of the window. */
		if (left < 64)
			v &= (1ull << left) - 1;
		wire = weft_put64(v);
		memcpy(out + 8 * i, &wire, 8);
	}
	return words;
}

bool weft_sack_next(const void *word, uint32_t words, uint32_t *pos, uint32_t *bit)
{
	const uint8_t *in = word;
	weft_le64 wire;
	uint64_t v;

	while (*pos < 64 * words) {
		memcpy(&wire, in + 8 * (*pos / 64), 8);
		v = weft_get64(wire) >> (*pos % 64);
		if (v != 0) {
			*bit = *pos + (uint32_t)__builtin_ctzll(v);
			*pos = *bit + 1;
			return true;
		}
		*pos = (*pos / 64 + 1) * 64;
	}
	return false;
}
