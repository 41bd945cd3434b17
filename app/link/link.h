/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file link/link.h
 * One direction of an imperfect link, for the simulator (test/sim) and weft-wire. Functions return
 * the fate of a frame and its time; the caller passes the time, and sends the frame. They allocate
 * nothing, and the seed decides all random numbers.
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

struct sim_rng {
	uint64_t state;
};

static inline uint64_t sim_mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/** splitmix64. Each purpose has its own stream, so that a change of one leaves others alone. */
static inline struct sim_rng sim_rng_make(uint64_t seed, uint64_t purpose)
{
	return (struct sim_rng){sim_mix64(seed ^ sim_mix64(purpose + 0x9e3779b97f4a7c15ull))};
}

static inline uint64_t sim_rand(struct sim_rng *r)
{
	return sim_mix64(r->state += 0x9e3779b97f4a7c15ull);
}

/** @return uniform in [0, n); 0 for n = 0 */
static inline uint64_t sim_below(struct sim_rng *r, uint64_t n)
{
	return n ? sim_rand(r) % n : 0;
}

/** @return uniform in [min, max] */
static inline uint64_t sim_between(struct sim_rng *r, uint64_t min, uint64_t max)
{
	return min + sim_below(r, max - min + 1);
}

static inline bool sim_chance(struct sim_rng *r, double p)
{
	/* A fault that is off (0) draws no number, and so leaves the stream as it is. */
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

/* A binary heap of any type that begins with struct sim_due. Constant sizes make copies inline. */

struct sim_due {
	uint64_t when, number; /**< ns; order of elements with equal times */
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

/** Move the element that is due first to @p item. The heap must not be empty. */
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

/** Bytes on the wire in addition to those of the frame: FCS, preamble, gap. */
#define SIM_LINK_EXTRA 24

/**
 * 0 turns a limit or fault off, or selects a default. Members may change at any time, and frames in
 * flight keep their fate. Probabilities are per frame, rates in bit/s, sizes in bytes.
 */
struct sim_link {
	uint64_t rate;       /**< each frame also uses it for SIM_LINK_EXTRA bytes */
	uint64_t rate_burst; /**< bytes that may pass at once after a pause */
	uint64_t delay_ns;
	uint64_t jitter_ns; /**< added to the delay: uniform in [0, jitter_ns); keeps the order */
	uint64_t turn_ns;   /**< a frame waits less than this, and those behind it leave with it */
	uint64_t queue_bytes; /**< needs `rate`; a frame that makes the backlog larger is dropped */
	uint64_t ecn_bytes;   /**< needs `rate`; a larger backlog marks ECN-capable frames */
	double loss;
	double bursts;     /**< share of all frames lost in bursts, in addition to `loss` */
	double burst_len;  /**< mean number of frames of a burst; 0 = 10 */
	double burst_loss; /**< share of a burst's frames that is lost; 0 = all */
	double dup;
	double reorder;            /**< frames held back by up to reorder_ns, while others pass */
	uint64_t reorder_ns;       /**< 0 = 100 us */
	double corrupt;            /**< frames with 1 to 3 flipped bits */
	double truncate;           /**< frames cut to 1 byte or more */
	bool blackhole;            /**< drops all frames; the link stays up */
	uint32_t mtu;              /**< longest frame without its Ethernet and VLAN headers */
	uint64_t police_rate;      /**< excess is dropped and not queued, as in clouds */
	uint64_t police_burst;     /**< 0 = SIM_LINK_BURST */
	uint64_t police_pps;       /**< frames a second; excess is dropped */
	uint64_t police_pps_burst; /**< frames; 0 = SIM_LINK_PPS_BURST */
	uint64_t flow_rate;        /**< limit of each flow (5-tuple), with a queue of its own */
	uint64_t flow_queue;       /**< 0 = SIM_LINK_BURST */
	uint64_t flow_police;      /**< limit of each flow; excess is dropped and not queued */
	uint64_t flow_burst;       /**< 0 = SIM_LINK_BURST */
};

#define SIM_LINK_BURST 65536
#define SIM_LINK_PPS_BURST 64
/** Flows whose hashes modulo this number are equal share a rate and a queue. */
#define SIM_LINK_FLOWS 256

struct sim_link_stats {
	uint64_t frames, bytes; /**< offered to the link, dropped ones included */
	uint64_t too_long, policed, tail_drops, flow_drops;
	uint64_t blackholed, lost, burst_lost;
	uint64_t marked, dupped, reordered, corrupted, truncated;
};

static inline uint64_t sim_link_congestion(const struct sim_link_stats *s)
{
	return s->tail_drops + s->policed + s->flow_drops;
}

struct sim_link_state {
	struct sim_rng rng;
	uint64_t free_at; /**< ns until which the direction is busy */
	uint64_t last;    /**< ns of the last arrival in order, which jitter must not overtake */
	uint64_t turn_at; /**< ns of the end of the last wait by turn_ns */
	uint64_t police_at, police_pps_at;
	uint64_t max_queue; /**< largest backlog, bytes */
	bool bad;           /**< a burst of loss goes on */
	struct {
		uint64_t free_at, last, police_at;
	} flow[SIM_LINK_FLOWS];
	struct sim_link_stats stats;
};

void sim_link_init(struct sim_link_state *s, uint64_t seed, uint64_t purpose);

struct sim_link_frame {
	const uint8_t *data; /**< hdr_len bytes: at least the headers */
	uint32_t hdr_len;
	uint32_t len; /**< bytes of the whole frame, without FCS */
};

/** Count a frame as offered. @return true: MTU or policers drop it */
bool sim_link_refuses(const struct sim_link *l, struct sim_link_state *s,
		      const struct sim_link_frame *f, uint64_t now);

/** Occupy the rate for a frame, without a queue limit. @return ns at which the last bit is sent */
uint64_t sim_link_serialise(const struct sim_link *l, struct sim_link_state *s, uint32_t len,
			    uint64_t now);

/**
 * sim_link_serialise() with the limit queue_bytes.
 * @param[out] mark  true: the caller must call sim_link_mark()
 * @return false: the frame is dropped
 */
bool sim_link_enqueue(const struct sim_link *l, struct sim_link_state *s, uint32_t len,
		      uint64_t now, uint64_t *sent, bool *mark);

/** @return the backlog in bytes */
uint64_t sim_link_queued(const struct sim_link *l, const struct sim_link_state *s, uint64_t now);

struct sim_link_copy {
	uint64_t when; /**< ns of the arrival */
	uint32_t len;
	unsigned int num_flips;
	uint32_t flip[3]; /**< numbers of bits, also of bits that truncation has cut off */
};

/** @param sent  ns at which the last bit was sent. @return number of copies that arrive: 0 to 2 */
unsigned int sim_link_deliver(const struct sim_link *l, struct sim_link_state *s,
			      const struct sim_link_frame *f, uint64_t sent,
			      struct sim_link_copy copy[2]);

void sim_link_flip(const struct sim_link_copy *copy, uint8_t *data, uint32_t len);

/* ---- frames: link/link.c ------------------------------------------------------------------- */

/** @return bytes of the Ethernet header with VLAN tags; @p len if the frame ends before */
uint32_t sim_link_l2_len(const uint8_t *data, uint32_t len);
/**
 * Hash the 5-tuple; if there are no ports, addresses and protocol; without IP, the Ethernet header.
 * The four bytes behind an IPv6 header always count as ports.
 */
uint32_t sim_link_flow_hash(const uint8_t *data, uint32_t len);
/**
 * Set "congestion experienced" in an ECN-capable IPv4 or IPv6 header, update the IPv4 checksum, and
 * count the mark.
 * @return whether the frame is ECN-capable
 */
bool sim_link_mark(struct sim_link_state *s, uint8_t *data, uint32_t len);

/* ---- text: link/link.c ---------------------------------------------------------------------- */

/** The syntax of sim_link_parse(), in lines of at most 80 columns. */
extern const char sim_link_help[];

/**
 * Change @p l by a text such as "loss=1%,delay=50us,rate=10G,queue=150k"; "clear" makes it perfect.
 * Items that the text does not name stay. After an error @p l is unchanged.
 * @param why  after an error, one sentence that names the item
 * @return 0 or -EINVAL
 */
int sim_link_parse(const char *text, struct sim_link *l, char *why, size_t why_len);

/** @return @p buf: the text from which sim_link_parse() makes this link; "clear" = perfect */
const char *sim_link_text(const struct sim_link *l, char *buf, size_t len);

#endif /* LINK_LINK_H */
