/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/rtt.h
 * Round-trip estimate and the timeouts that follow from it (RFC 6298's smoothing). Pure; times in
 * ns.
 */
#ifndef WEFT_RTT_H
#define WEFT_RTT_H

#include <stdint.h>

/** 1 ms: on a shared machine a peer may be off its core for that time */
#define WEFT_RTO_MIN 1000000ull
/** between two tries, backoff included; longer only where the first timeout is longer */
#define WEFT_RTO_MAX 50000000ull
#define WEFT_RTO_INITIAL 5000000ull /**< before the first sample; longer on long paths */
#define WEFT_RTO_ROOF 3000000000ull /**< ns of 32 bits, whatever the peer echoes */
#define WEFT_RTT_FIRST_MAX 1000000000u
#define WEFT_PROBE_MIN 200000ull /**< a tail probe is not sent earlier */

struct weft_rtt {
	uint32_t first; /**< the handshake's, until there is a sample; 0 = unknown */
	uint32_t srtt;  /**< 0 = no sample yet */
	uint32_t var;
	uint32_t min;
	uint32_t last;
};

/** Take one sample. 0 counts as 1 ns (two events of one poll). */
void weft_rtt_sample(struct weft_rtt *r, uint32_t ns);

/** A step of the handshake took @p ns: one round trip, or a few. */
static inline void weft_rtt_first(struct weft_rtt *r, uint64_t ns)
{
	r->first = ns < WEFT_RTT_FIRST_MAX ? (uint32_t)ns : WEFT_RTT_FIRST_MAX;
}

/** The round trip as far as it is known; 0 = unknown */
static inline uint32_t weft_rtt_known(const struct weft_rtt *r)
{
	return r->srtt != 0 ? r->srtt : r->first;
}

/** Retransmission timeout of try number @p backoff (0 = first). */
uint64_t weft_rtt_rto(const struct weft_rtt *r, unsigned int backoff);

/**
 * @return ns without an acknowledgement after which a tail probe is sent. @p ack_delay: how long
 * the peer may delay an acknowledgement.
 */
uint64_t weft_rtt_probe(const struct weft_rtt *r, uint64_t ack_delay);

#endif /* WEFT_RTT_H */
