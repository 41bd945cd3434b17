/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file link/link.h
 * One direction of an imperfect link: rate, queue, delay and faults. The simulator (test/sim) and
 * weft-wire share it. Pure: time is an argument, random numbers are a stream of a seed, and it
 * neither allocates nor sends. It returns the fate of a frame and its time, which the caller
 * applies. Here are also the random numbers of both, and the queue in which they keep frames until
 * their time.
 *
 * Stages of a frame: MTU, policers -> queue and rate (marks, tail drop) -> blackout, loss,
 * duplication -> corruption -> flow cap, delay, jitter, reordering.
 */
#ifndef LINK_LINK_H
#define LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- random numbers -------------------------------------------------------------------------- */

/*
 * Random numbers of simulated networks: splitmix64, with one stream per purpose. So a change in one
 * place of a scenario does not change the random numbers of all others.
 */

struct sim_rng {
	uint64_t state;
};

static inline uint64_t sim_mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/** A stream of its own for every (seed, purpose). */
static inline struct sim_rng sim_rng_make(uint64_t seed, uint64_t purpose)
{
	return (struct sim_rng){sim_mix64(seed ^ sim_mix64(purpose + 0x9e3779b97f4a7c15ull))};
}

static inline uint64_t sim_rand(struct sim_rng *r)
{
	return sim_mix64(r->state += 0x9e3779b97f4a7c15ull);
}

/** Uniform in [0, n); 0 for n = 0. */
static inline uint64_t sim_below(struct sim_rng *r, uint64_t n)
{
	return n ? sim_rand(r) % n : 0;
}

/** Uniform in [min, max]. */
static inline uint64_t sim_between(struct sim_rng *r, uint64_t min, uint64_t max)
{
	return min + sim_below(r, max - min + 1);
}

static inline bool sim_chance(struct sim_rng *r, double p)
{
	/* For a probability of 0 no number is drawn: a perfect link does not change its stream. */
	return p > 0 && (double)(sim_rand(r) >> 11) * 0x1p-53 < p;
}

static inline void sim_fill(struct sim_rng *r, void *buf, size_t len)
{
	uint8_t *p = buf;
	uint64_t x;
	size_t n;

	for (; len; p += n, len -= n) {
		x = sim_rand(r);
		n = len < 8 ? len : 8;
		memcpy(p, &x, n);
	}
}

/* ---- a queue by due time --------------------------------------------------------------------- */

/*
 * A binary heap in an array of the caller. Elements have any type that begins with struct sim_due.
 * Callers pass a constant size, so copies are inline.
 */

struct sim_due {
	uint64_t when, number; /**< the number makes the order of equal times definite */
};

static inline bool sim_due_before(const void *a, const void *b)
{
	const struct sim_due *x = a, *y = b;

	return x->when != y->when ? x->when < y->when : x->number < y->number;
}

/** @p heap has room for @p len + 1 elements. */
static inline void sim_heap_add(void *heap, size_t *len, const void *item, size_t size)
{
	char *h = heap;
	size_t i, parent;

	for (i = (*len)++; i; i = parent) {
		parent = (i - 1) / 2;
		if (!sim_due_before(item, h + parent * size))
			break;
		memcpy(h + i * size, h + parent * size, size);
	}
	memcpy(h + i * size, item, size);
}

/** Remove the element that is due first, into @p item. *len > 0 */
static inline void sim_heap_take(void *heap, size_t *len, void *item, size_t size)
{
	char *h = heap, *last;
	size_t i = 0, child;

	memcpy(item, h, size);
	last = h + --*len * size;
	while ((child = 2 * i + 1) < *len) {
		if (child + 1 < *len && sim_due_before(h + (child + 1) * size, h + child * size))
			child++;
		if (!sim_due_before(h + child * size, last))
			break;
		memcpy(h + i * size, h + child * size, size);
		i = child;
	}
	if (h + i * size != last)
		memcpy(h + i * size, last, size);
}

/* ---- the link -------------------------------------------------------------------------------- */

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
/** Number of separate caps; flows whose hashes have one remainder share a cap. */
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
	bool bad;           /**< the link is in a burst of loss */
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
	uint32_t len; /**< bytes of the whole frame, without FCS */
};

/** Do MTU or policers drop the frame before the queue? Counts it as offered. */
bool sim_link_refuses(const struct sim_link *l, struct sim_link_state *s,
		      const struct sim_link_frame *f, uint64_t now);

/**
 * The frame's time on the wire.
 * @return when its last bit is sent, with an unlimited queue
 */
uint64_t sim_link_serialise(const struct sim_link *l, struct sim_link_state *s, uint32_t len,
			    uint64_t now);

/**
 * sim_link_serialise() through the queue.
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
 * The fate of a frame whose last bit was sent at @p sent.
 * @return number of copies: 0 to 2
 */
unsigned int sim_link_deliver(const struct sim_link *l, struct sim_link_state *s,
			      const struct sim_link_frame *f, uint64_t sent,
			      struct sim_link_copy copy[2]);

/** Flip a copy's bits in its data. */
void sim_link_flip(const struct sim_link_copy *copy, uint8_t *data, uint32_t len);

/* ---- frames: link/link.c ------------------------------------------------------------------- */

/** Length of the Ethernet header with its VLAN tags; @p len if the frame ends before. */
uint32_t sim_link_l2_len(const uint8_t *data, uint32_t len);
/**
 * Hash of the 5-tuple; of IP addresses and protocol where there are no ports; of the Ethernet
 * header where there is no IP. After an IPv6 header any four bytes count as the ports.
 */
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
