/* SPDX-License-Identifier: BSD-3-Clause */

/* Round trips and timeouts, loss detection, received sequences. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire_types.h"
#include "engine/loss_rules.h"
#include "frame/frame.h"

/* ---------------------------------------------------------------- round trips */

void weft_rtt_sample(struct weft_rtt *r, uint32_t ns)
{
	uint32_t err;

	if (ns == 0)
		ns = 1;
	r->last = ns;
	if (r->srtt == 0) {
		r->srtt = ns;
		r->var = ns / 2;
		r->min = ns;
		return;
	}
	if (ns < r->min)
		r->min = ns;
	err = ns > r->srtt ? ns - r->srtt : r->srtt - ns;
	r->var = r->var - r->var / 4 + err / 4;
	r->srtt = r->srtt - r->srtt / 8 + ns / 8;
	if (r->srtt == 0)
		r->srtt = 1;
}

/*
 * The timeout before backoff. It is never less than the round trip and a quarter: the variance of a
 * quiet path falls to nothing, and the peer still delays its acknowledgement.
 */
static uint64_t first_rto(const struct weft_rtt *r)
{
	uint64_t rto;

	if (r->srtt == 0)
		rto = 2ull * r->first > WEFT_RTO_INITIAL ? 2ull * r->first : WEFT_RTO_INITIAL;
	else
		rto = r->srtt + (r->var > r->srtt / 16 ? 4ull * r->var : r->srtt / 4);
	if (rto < WEFT_RTO_MIN)
		rto = WEFT_RTO_MIN;
	return rto > WEFT_RTO_ROOF ? WEFT_RTO_ROOF : rto;
}

/*
 * Only the backoff has a limit: a path that carries nothing is tried again often. A timeout below
 * the round trip would retransmit each frame of a long path.
 */
uint64_t weft_rtt_rto(const struct weft_rtt *r, unsigned int backoff)
{
	uint64_t first = first_rto(r), most = first > WEFT_RTO_MAX ? first : WEFT_RTO_MAX, rto;

	rto = first << (backoff > 16 ? 16 : backoff);
	return rto > most ? most : rto;
}

uint64_t weft_rtt_probe(const struct weft_rtt *r, uint64_t ack_delay)
{
	uint64_t t, most = first_rto(r);

	if (r->srtt == 0)
		return most;
	if (most < WEFT_RTO_MAX)
		most = WEFT_RTO_MAX;
	t = 2ull * r->srtt + ack_delay;
	if (t < WEFT_PROBE_MIN)
		t = WEFT_PROBE_MIN;
	return t > most ? most : t;
}

/* ---------------------------------------------------------------- loss */

/* Of one path, by newer frames that have overtaken older ones. */

void weft_loss_init(struct weft_loss *l)
{
	*l = (struct weft_loss){.reorder = WEFT_LOSS_REORDER};
}

void weft_loss_spurious(struct weft_loss *l)
{
	if (l->reorder < WEFT_LOSS_REORDER_MAX)
		l->reorder++;
}

/* ---------------------------------------------------------------- received sequences */

void weft_rxwin_init(struct weft_rxwin *w, uint32_t first)
{
	*w = (struct weft_rxwin){.next = first, .high = first};
}

void weft_rxwin_free(struct weft_rxwin *w)
{
	free(w->bits);
	w->bits = NULL;
}

int weft_rxwin_alloc(struct weft_rxwin *w)
{
	w->bits = calloc(WEFT_RXWIN_WORDS, sizeof(*w->bits));
	return w->bits ? 0 : -ENOMEM;
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
