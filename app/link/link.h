/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file link/link.h
 * One direction of an imperfect link: rate, queue, delay and faults. The simulator (test/sim) and
 * weft-wire share it. Pure: time is an argument, random numbers are a stream of a seed, and it
 * neither allocates nor sends. It returns the fate of a frame and its time, which the caller
 * applies.
 *
 * Stages of a frame: MTU, policers -> queue and rate (marks, tail drop) -> blackout, loss,
 * duplication -> corruption -> flow cap, delay, jitter, reordering.
 */
#ifndef LINK_LINK_H
#define LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/rng.h"

/** FCS, preamble, gap: bytes on the wire in addition to those of the frame */
#define SIM_LINK_EXTRA 24

/**
 * The properties of a direction. All zero: perfect, immediate. They may change at any time, and
 * frames in flight keep their fate. Probabilities are per frame, rates in bit/s, sizes in bytes.
 */
struct sim_link {
	uint64_t rate;       /**< 0 = no limit; SIM_LINK_EXTRA counts with every frame */
	uint64_t rate_burst; /**< bytes that may pass at once after a pause: a token bucket */
	uint64_t delay_ns;
	uint64_t jitter_ns; /**< added: uniform in [0, jitter); keeps order */
	/** limit of the backlog of a slow direction; 0 = no limit; beyond: tail drop */
	uint64_t queue_bytes;
	/** backlog beyond which ECN-capable frames are marked; 0 = never */
	uint64_t ecn_bytes;
	double loss;
	/**
	 * Share of frames lost in bursts, in addition to loss (Gilbert-Elliott): the link is bad
	 * for burst_len frames on average, of which it loses burst_loss.
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
	/** Policers drop the excess at once, as allowances of cloud networks do. */
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
/** Flows with a separate cap; flows of one hash share it. */
#define SIM_LINK_FLOWS 256

struct sim_link_stats {
	uint64_t frames, bytes; /**< offered */
	uint64_t too_long, policed, tail_drops, flow_drops;
	uint64_t blackholed, lost, burst_lost;
	uint64_t marked, dupped, reordered, corrupted, truncated;
};

/** Frames dropped by congestion: queue, policers, flow caps. */
static inline uint64_t sim_link_congestion(const struct sim_link_stats *s)
{
	return s->tail_drops + s->policed + s->flow_drops;
}

/** The state of a direction. */
struct sim_link_state {
	struct sim_rng rng;
	uint64_t free_at; /**< the direction is busy until then */
	uint64_t last;    /**< arrival of the last frame in order: jitter must not overtake */
	uint64_t police_at, police_pps_at;
	uint64_t max_queue; /**< largest backlog, bytes */
	bool bad;           /**< in a burst of loss */
	struct {
		uint64_t free_at, last;
	} flow[SIM_LINK_FLOWS];
	struct sim_link_stats stats;
};

void sim_link_init(struct sim_link_state *s, uint64_t seed, uint64_t purpose);

/** The parts of a frame that the link uses. */
struct sim_link_frame {
	const uint8_t *data; /**< at least its headers: hdr_len bytes */
	uint32_t hdr_len;
	uint32_t len; /**< all of it, without FCS */
};

/** Do MTU or policers drop it before the queue? Counts the frame as offered. */
bool sim_link_refuses(const struct sim_link *l, struct sim_link_state *s,
		      const struct sim_link_frame *f, uint64_t now);

/**
 * The frame's time on the wire.
 * @return when its last bit is sent, with an unlimited queue
 */
uint64_t sim_link_serialise(const struct sim_link *l, struct sim_link_state *s, uint32_t len,
			    uint64_t now);

/**
 * The same through the queue.
 * @param[out] mark  the caller must call sim_link_mark(), which counts if it has an effect
 * @return false: tail drop
 */
bool sim_link_enqueue(const struct sim_link *l, struct sim_link_state *s, uint32_t len,
		      uint64_t now, uint64_t *sent, bool *mark);

/** The backlog in bytes. */
uint64_t sim_link_queued(const struct sim_link *l, const struct sim_link_state *s, uint64_t now);

/** A copy that arrives at the other end. */
struct sim_link_copy {
	uint64_t when;
	uint32_t len;
	unsigned int num_flips;
	uint32_t flip[3]; /**< numbers of bits; may be beyond len */
};

/**
 * The fate of a frame that was on the wire at @p sent.
 * @return number of copies: 0 to 2
 */
unsigned int sim_link_deliver(const struct sim_link *l, struct sim_link_state *s,
			      const struct sim_link_frame *f, uint64_t sent,
			      struct sim_link_copy copy[2]);

/** Flip a copy's bits in its data. */
void sim_link_flip(const struct sim_link_copy *copy, uint8_t *data, uint32_t len);

/* ---- frames: link/link.c ------------------------------------------------------------------- */

/** Length of the Ethernet header with its VLAN tags; len when it is shorter. */
uint32_t sim_link_l2_len(const uint8_t *data, uint32_t len);
/** Hash of the 5-tuple; of the addresses and the type where there is none. */
uint32_t sim_link_flow_hash(const uint8_t *data, uint32_t len);
/**
 * Set "congestion experienced" in an ECN-capable IPv4 or IPv6 header; the IPv4 checksum follows.
 * @return whether the frame is ECN-capable
 */
bool sim_link_mark(struct sim_link_state *s, uint8_t *data, uint32_t len);

/* ---- text: link/link.c ---------------------------------------------------------------------- */

/** The syntax of sim_link_parse(), for help texts: lines of at most 80 columns. */
extern const char sim_link_help[];

/**
 * Change @p l by a text such as "loss=1%,delay=50us,rate=10G,queue=150k"; "clear" makes it perfect.
 * Items that the text does not name stay. After an error @p l is unchanged.
 * @param why  after an error, one sentence that names the item
 * @return 0 or -EINVAL
 */
int sim_link_parse(const char *text, struct sim_link *l, char *why, size_t why_len);

/** The text for sim_link_parse() that makes this link; "clear" for a perfect one. @return buf */
const char *sim_link_text(const struct sim_link *l, char *buf, size_t len);

#endif /* LINK_LINK_H */
