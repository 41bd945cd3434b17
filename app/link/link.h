/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file link/link.h
 * One direction of an imperfect link: rate, queue, delay and faults. The simulator (test/sim) and
 * weft-wire share it. Pure: time is passed in, dice are a stream of a seed, nothing is allocated
 * and nothing is sent; it says what becomes of a frame and when, and the caller does it.
 *
 * A frame's way: MTU, policers -> queue and rate (marks, tail drop) -> blackout, loss, duplication
 * -> corruption -> flow cap, delay, jitter, reordering.
 */
#ifndef LINK_LINK_H
#define LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/rng.h"

/** FCS, preamble, gap: what a frame costs on the wire beyond its bytes */
#define SIM_LINK_EXTRA 24

/**
 * What a direction does. All zero: perfect, immediate. May be changed at any time; frames under way
 * keep their fate. Probabilities are per frame, rates in bit/s, sizes in bytes.
 */
struct sim_link {
	uint64_t rate;       /**< 0 = no limit; SIM_LINK_EXTRA counts with every frame */
	uint64_t rate_burst; /**< that may pass at once after a pause: a token bucket */
	uint64_t delay_ns;
	uint64_t jitter_ns; /**< added: uniform in [0, jitter); keeps order */
	/** what waits for the rate in front of a slow direction; 0 = no limit; beyond: tail drop */
	uint64_t queue_bytes;
	/** with more than this waiting, ECN-capable frames are marked; 0 = never */
	uint64_t ecn_bytes;
	double loss;
	/**
	 * Share of frames lost in bursts, besides loss (Gilbert-Elliott): the link turns bad for
	 * burst_len frames on average, of which it loses burst_loss.
	 */
	double bursts;
	double burst_len;  /**< 0 = 10 */
	double burst_loss; /**< 0 = all */
	double dup;
	double reorder;      /**< held back by up to reorder_ns while others pass */
	uint64_t reorder_ns; /**< 0 = 100 us */
	double corrupt;      /**< 1 to 3 bits flipped anywhere */
	double truncate;     /**< cut short */
	bool blackhole;      /**< all frames vanish; the link stays up */
	uint32_t mtu;        /**< longest frame without its Ethernet and VLAN headers; 0 = any */
	/** Policers drop at once what exceeds them, as allowances of cloud networks do. */
	uint64_t police_rate;
	uint64_t police_burst;     /**< 0 = SIM_LINK_BURST */
	uint64_t police_pps;       /**< frames a second */
	uint64_t police_pps_burst; /**< frames; 0 = SIM_LINK_PPS_BURST */
	/** Each flow (5-tuple) gets at most this rate, with a queue of its own. */
	uint64_t flow_rate;
	uint64_t flow_queue; /**< 0 = SIM_LINK_BURST */
};

#define SIM_LINK_BURST 65536
#define SIM_LINK_PPS_BURST 64
/** Flows with a cap of their own; those of one hash share it. */
#define SIM_LINK_FLOWS 256

struct sim_link_stats {
	uint64_t frames, bytes; /**< offered */
	uint64_t too_long, policed, tail_drops, flow_drops;
	uint64_t blackholed, lost, burst_lost;
	uint64_t marked, dupped, reordered, corrupted, truncated;
};

/** Frames that found no room: queue, policers, flow caps. */
static inline uint64_t sim_link_congestion(const struct sim_link_stats *s)
{
	return s->tail_drops + s->policed + s->flow_drops;
}

/** What a direction remembers. */
struct sim_link_state {
	struct sim_rng rng;
	uint64_t free_at; /**< the rate is taken until then */
	uint64_t last;    /**< arrival of the last frame in order: jitter must not overtake */
	uint64_t police_at, police_pps_at;
	uint64_t max_queue; /**< the most that waited, bytes */
	bool bad;           /**< in a burst of loss */
	struct {
		uint64_t free_at, last;
	} flow[SIM_LINK_FLOWS];
	struct sim_link_stats stats;
};

void sim_link_init(struct sim_link_state *s, uint64_t seed, uint64_t purpose);

/** A frame as far as the link checks it. */
struct sim_link_frame {
	const uint8_t *data; /**< at least its headers: hdr_len bytes */
	uint32_t hdr_len;
	uint32_t len; /**< all of it, without FCS */
};

/** Is it dropped before it gets to the queue, by MTU or policers? Counts it as offered. */
bool sim_link_refuses(const struct sim_link *l, struct sim_link_state *s,
		      const struct sim_link_frame *f, uint64_t now);

/**
 * The frame's time on the wire.
 * @return when its last bit is sent, the queue being endless
 */
uint64_t sim_link_serialise(const struct sim_link *l, struct sim_link_state *s, uint32_t len,
			    uint64_t now);

/**
 * The same through the queue.
 * @param[out] mark  the caller shall call sim_link_mark(); counted when that has an effect
 * @return false: tail drop
 */
bool sim_link_enqueue(const struct sim_link *l, struct sim_link_state *s, uint32_t len,
		      uint64_t now, uint64_t *sent, bool *mark);

/** Bytes that wait for the rate. */
uint64_t sim_link_queued(const struct sim_link *l, const struct sim_link_state *s, uint64_t now);

/** A copy that comes out at the other end. */
struct sim_link_copy {
	uint64_t when;
	uint32_t len;
	unsigned int num_flips;
	uint32_t flip[3]; /**< numbers of bits; may be beyond len */
};

/**
 * What becomes of a frame that has been on the wire at @p sent.
 * @return number of copies: 0 to 2
 */
unsigned int sim_link_deliver(const struct sim_link *l, struct sim_link_state *s,
			      const struct sim_link_frame *f, uint64_t sent,
			      struct sim_link_copy copy[2]);

/** Flip a copy's bits in its data. */
void sim_link_flip(const struct sim_link_copy *copy, uint8_t *data, uint32_t len);

/* ---- frames: link/frame.c ------------------------------------------------------------------- */

/** Length of the Ethernet header with its VLAN tags; len when it is shorter. */
uint32_t sim_link_l2_len(const uint8_t *data, uint32_t len);
/** Hash of the 5-tuple; of the addresses and the type where there is none. */
uint32_t sim_link_flow_hash(const uint8_t *data, uint32_t len);
/**
 * Set "congestion experienced" in an ECN-capable IPv4 or IPv6 header; the IPv4 checksum follows.
 * @return whether the frame is ECN-capable
 */
bool sim_link_mark(struct sim_link_state *s, uint8_t *data, uint32_t len);

/* ---- text: link/text.c ---------------------------------------------------------------------- */

/** What sim_link_parse() knows, for help texts: lines of at most 80 columns. */
extern const char sim_link_help[];

/**
 * Change @p l as a text says: "loss=1%,delay=50us,rate=10G,queue=150k"; "clear" makes it perfect.
 * What the text does not name stays. On error @p l is as it was.
 * @param why  on error one sentence that names the item
 * @return 0 or -EINVAL
 */
int sim_link_parse(const char *text, struct sim_link *l, char *why, size_t why_len);

/** The text that sim_link_parse() would take; "clear" for a perfect one. @return buf */
const char *sim_link_text(const struct sim_link *l, char *buf, size_t len);

#endif /* LINK_LINK_H */
