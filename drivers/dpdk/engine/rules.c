/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "engine/rules.h"
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
 * The timeout before backoff. Up to WEFT_RTO_ROOF, it is at least five quarters of the round trip:
 * the variance of a quiet path falls to nothing, and the peer still delays its ACK.
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
 * WEFT_RTO_MAX limits the backoff, so that a path that carries nothing is tried again often. It
 * does not limit the first timeout: one below the round trip would retransmit each frame of a long
 * path.
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

/* @return 64 bits of the ring from sequence `seq` on, across word boundaries */
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

/* ---------------------------------------------------------------- several paths */

/* A path that was never measured counts as the best one. */
static uint32_t least_srtt(const struct weft_path_load *load, uint16_t mask)
{
	uint32_t least = 0;

	for (unsigned int k = 0; k < WEFT_PATHS_MAX; k++)
		if (mask & 1u << k && load[k].srtt != 0 && (least == 0 || load[k].srtt < least))
			least = load[k].srtt;
	return least != 0 ? least : 1;
}

unsigned int weft_path_soonest(const struct weft_path_load load[WEFT_PATHS_MAX], uint16_t mask,
			       unsigned int after, uint32_t bytes)
{
	uint32_t least = least_srtt(load, mask);
	uint64_t best = UINT64_MAX, cost;
	unsigned int found = after;

	for (unsigned int i = 1; i <= WEFT_PATHS_MAX; i++) {
		unsigned int k = (after + i) % WEFT_PATHS_MAX;

		if (!(mask & 1u << k))
			continue;
		cost = (load[k].srtt != 0 ? load[k].srtt : least);
		cost *= (uint64_t)load[k].inflight + bytes;
		if (load[k].full)
			cost = cost / 2 + UINT64_MAX / 2;
		if (cost < best) {
			best = cost;
			found = k;
		}
	}
	return found;
}

/* ---------------------------------------------------------------- trials */

/* ns: round trip a is better than b if a + a / 4 + NOISE_NS < b */
#define NOISE_NS 4000u
#define WINS 12u /* pairs that the spare path must win clearly */
#define CLEAR 6u /* required ratio of wins to losses */
#define ROUNDS_MIN 16u
#define ROUNDS_MAX 64u

static bool is_better(uint32_t a, uint32_t than)
{
	return a != 0 && (than == 0 || (uint64_t)a + a / 4 + NOISE_NS < than);
}

static void compare_pair(struct weft_path_trial *t, struct weft_trial_pair *p)
{
	if (!p->open)
		return;
	p->open = false;
	t->rounds++;
	t->wins += is_better(p->spare, p->used);
	t->losses += is_better(p->used, p->spare);
}

struct weft_trial_pair *weft_trial_send(struct weft_path_trial *t, uint64_t now, uint16_t id,
					uint8_t used_path, uint8_t spare_path)
{
	struct weft_trial_pair *p = &t->pair[t->sent++ % WEFT_TRIAL_PAIRS];

	compare_pair(t, p);
	*p = (struct weft_trial_pair){
		.id = id,
		.used_path = used_path,
		.spare_path = spare_path,
		.open = true,
		.sent = now,
	};
	return p;
}

bool weft_trial_answer(struct weft_path_trial *t, uint16_t id, uint8_t path, uint64_t now)
{
	for (unsigned int i = 0; i < WEFT_TRIAL_PAIRS; i++) {
		struct weft_trial_pair *p = &t->pair[i];
		uint64_t rtt = now - p->sent;
		uint32_t ns = rtt == 0 ? 1 : rtt < UINT32_MAX ? (uint32_t)rtt : UINT32_MAX;

		if (!p->open)
			continue;
		if (id == p->id && path == p->used_path)
			p->used = ns;
		else if (id == (uint16_t)(p->id + 1) && path == p->spare_path)
			p->spare = ns;
		else
			continue;
		if (p->used != 0 && p->spare != 0)
			compare_pair(t, p);
		return true;
	}
	return false;
}

enum weft_trial_result weft_trial_result(const struct weft_path_trial *t)
{
	if (t->wins >= WINS && t->wins >= CLEAR * t->losses)
		return WEFT_TRIAL_MORE;
	/* The trial cannot succeed any more, or hardly. */
	if (t->rounds >= ROUNDS_MAX || (t->rounds >= ROUNDS_MIN && t->wins < t->rounds / 3) ||
	    CLEAR * t->losses > ROUNDS_MAX)
		return WEFT_TRIAL_ENDS;
	return WEFT_TRIAL_ON;
}
