/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_silence.h
 * The time for which a device may not complete requests before its lane is suspected. Pure.
 *
 * A device completes requests within microseconds. But a slow lane takes long for many bytes, and a
 * lost packet is retransmitted only after the device's own timeout. So the limit follows
 * measurements of the lane, as a retransmission timeout does. It is twice the longest wait for a
 * completion, and four times the time of the outstanding requests at the slowest rate, both of the
 * last 10 to 20 seconds in which the lane worked. A lane without measurements has
 * WEFT_ROCE_SILENCE_NEW_NS.
 */
#ifndef WEFT_ROCE_SILENCE_H
#define WEFT_ROCE_SILENCE_H

#include <stdint.h>

#define WEFT_ROCE_SILENCE_MIN_NS 50000000ull
#define WEFT_ROCE_SILENCE_NEW_NS 300000000ull
#define WEFT_ROCE_SILENCE_MAX_NS 1000000000ull
#define WEFT_ROCE_SILENCE_PERIOD_NS 10000000000ull
/** Completions, and bytes, from which on a rate is computed. */
#define WEFT_ROCE_SILENCE_ANSWERS 8u
#define WEFT_ROCE_SILENCE_BYTES 65536u

struct weft_roce_silence {
	uint64_t until;      /**< end of this period */
	uint64_t longest[2]; /**< wait for a completion: in this period, in the previous one */
	uint64_t ns, bytes;  /**< of the rate that is being measured */
	uint64_t
		ns_per_mib[2]; /**< slowest rate of this period, of the previous one; 0 = unknown */
	uint32_t answers;
};

/** The device has completed @p bytes of requests, after a silence of @p waited ns. */
static inline void weft_roce_silence_note(struct weft_roce_silence *s, uint64_t now,
					  uint64_t waited, uint64_t bytes)
{
	if (now >= s->until) {
		s->until = now + WEFT_ROCE_SILENCE_PERIOD_NS;
		s->longest[1] = s->longest[0];
		s->ns_per_mib[1] = s->ns_per_mib[0];
		s->longest[0] = s->ns_per_mib[0] = 0;
	}
	if (s->answers < WEFT_ROCE_SILENCE_ANSWERS)
		s->answers++;
	if (waited > s->longest[0])
		s->longest[0] = waited;
	s->ns += waited;
	s->bytes += bytes;
	if (s->bytes < WEFT_ROCE_SILENCE_BYTES)
		return;
	/* Never 0, which means unknown. */
	waited = (s->ns << 20) / s->bytes + 1;
	if (waited > s->ns_per_mib[0])
		s->ns_per_mib[0] = waited;
	s->ns = s->bytes = 0;
}

/** The limit of the device's silence, with @p bytes outstanding. */
static inline uint64_t weft_roce_silence_limit(const struct weft_roce_silence *s, uint64_t bytes)
{
	uint64_t longest = s->longest[s->longest[0] < s->longest[1]];
	uint64_t slowest = s->ns_per_mib[s->ns_per_mib[0] < s->ns_per_mib[1]];
	double ns = 2.0 * (double)longest + 4.0 * (double)slowest * (double)bytes / (1 << 20);

	if (s->answers < WEFT_ROCE_SILENCE_ANSWERS ||
	    (slowest == 0 && bytes >= WEFT_ROCE_SILENCE_BYTES / 2))
		return ns > WEFT_ROCE_SILENCE_NEW_NS ? WEFT_ROCE_SILENCE_MAX_NS
						     : WEFT_ROCE_SILENCE_NEW_NS;
	if (ns < WEFT_ROCE_SILENCE_MIN_NS)
		return WEFT_ROCE_SILENCE_MIN_NS;
	return ns < WEFT_ROCE_SILENCE_MAX_NS ? (uint64_t)ns : WEFT_ROCE_SILENCE_MAX_NS;
}

#endif /* WEFT_ROCE_SILENCE_H */
