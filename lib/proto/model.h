/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file proto/model.h
 * The staged performance model: how long a message of x bytes takes, as linear pieces made of named
 * terms. Pure: numbers in, numbers out; no clock, no endpoint, no I/O. doc/thresholds.md derives
 * it.
 *
 * A protocol describes itself by terms `c + m * x`, each in one **stage**. There are two kinds:
 *
 *  - **once** terms are paid once per message, whatever its length (envelopes, latency,
 *    registration);
 *  - **round** terms are those of one round of fragments (one fragment on each lane), and what they
 *    are when the whole message is one fragment on one lane. Stages belong to a *resource*: the
 *    sender's CPU, the wire, the receiver's CPU. Rounds overlap, so while the first round pays for
 *    all resources, from the second on only the slowest one does: the line breaks there.
 *
 * Units: seconds, bytes, bytes per second.
 */
#ifndef WEFT_MODEL_H
#define WEFT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lane.h"

#define WEFT_MODEL_LANES 16 /**< = WEFT_MAX_LANES of core/endpoint.h */
#define WEFT_CURVE_TERMS 32
#define WEFT_CURVE_PIECES 4

struct weft_proto;

/* ------------------------------------------------------------------ what is known */

/** One lane, as the model sees it: both ends' numbers, already agreed. */
struct weft_model_lane {
	double bandwidth;     /**< bytes/s, > 0 */
	double latency;       /**< one way, s, CPU time of the ends not included */
	double send_overhead; /**< CPU per lane message, s */
	double recv_overhead;
	double reg_cost, reg_growth; /**< registration: s, s/byte */
	size_t max_short;            /**< header + payload, 0 = cannot */
	size_t max_bcopy;
	size_t max_zcopy;
	size_t max_zcopy_hdr; /**< header part of it */
	unsigned int max_iov;
	size_t max_get, max_put; /**< of native remote reads and writes */
	unsigned int max_rma_iov;
	uint64_t features; /**< WEFT_LANE_F_* */
	uint32_t domain;   /**< equal numbers = one registration domain */
	uint32_t device;   /**< equal numbers = one device */
};

/** Settings that the model obeys; sizes may be WEFT_CONF_INF. */
struct weft_model_conf {
	double bcopy_bw;          /**< bytes/s at which a CPU copies, the slower end's, > 0 */
	double perf_diff;         /**< WEFT_RNDV_PERF_DIFF, percent, 0 <= .. < 100 */
	size_t rndv_thresh;       /**< bytes, WEFT_CONF_INF, WEFT_CONF_AUTO, WEFT_CONF_MODEL */
	size_t rndv_fallback;     /**< WEFT_RNDV_THRESH_FALLBACK */
	size_t zcopy_thresh;      /**< bytes, WEFT_CONF_INF, WEFT_CONF_AUTO */
	size_t multi_eager_limit; /**< 0 = no multi-eager */
	unsigned int max_eager_lanes, max_rndv_lanes;
	/** which there are, NULL-terminated; between equal times the first wins */
	const struct weft_proto *const *protos;
	/** 1 + place in protos of the protocol that is used wherever it can be; 0 = none */
	unsigned int forced;
	uint32_t rndv_scheme; /**< WEFT_RNDV_SCHEME: enum weft_rndv_scheme */
	/** WEFT_ATOMIC_MODE=device: by the lanes only; else by messages only */
	uint32_t atomic_device;
};

/**
 * Everything that decides which protocols an endpoint uses. Equal bytes = equal choices: unused
 * bytes are 0.
 */
struct weft_model {
	struct weft_model_lane lanes[WEFT_MODEL_LANES];
	uint32_t lanes_up; /**< bit i = lanes[i] exists */
	uint32_t am_lane;  /**< lowest latency: single-fragment messages and control */
	struct weft_model_conf conf;
};

/* ------------------------------------------------------------------ lines */

struct weft_linear {
	double c, m; /**< s, s/byte */
};

static inline double weft_linear_at(struct weft_linear f, double x)
{
	return f.c + f.m * x;
}

enum weft_stage {
	WEFT_STAGE_SEND_CPU,
	WEFT_STAGE_SEND_COPY,
	WEFT_STAGE_SEND_REG, /**< registration at the sender */
	WEFT_STAGE_WIRE,
	WEFT_STAGE_RECV_CPU,
	WEFT_STAGE_RECV_COPY,
	WEFT_STAGE_RECV_REG,
	WEFT_STAGE_LATENCY,
	WEFT_NUM_STAGES
};

extern const char *const weft_stage_names[WEFT_NUM_STAGES];

/** A named contribution, for computing and for explaining. */
struct weft_term {
	enum weft_stage stage;
	bool round;             /**< of one round of fragments; else once per message */
	struct weft_linear f;   /**< once; or of one round */
	struct weft_linear one; /**< round: when the message is one fragment */
	char name[40];          /**< "RTS", "copy into frames" */
	char note[64];          /**< where the number comes from: "2 lanes, sum" */
};

#define WEFT_PACE_ONE (-1)   /**< one fragment: all stages add up */
#define WEFT_PACE_FIRST (-2) /**< first round: all stages add up */

/** Up to @p max (inclusive), from the piece before on. */
struct weft_piece {
	size_t max;
	struct weft_linear f;
	int pace; /**< stage that sets the pace from the second round on; WEFT_PACE_* before */
};

/**
 * How long one protocol takes, over the sizes that it can carry. Filled by struct weft_proto.cost()
 * with the functions below: begin, terms, end.
 */
struct weft_curve {
	size_t min, max;                /**< sizes it can carry, inclusive; min > max = none */
	uint32_t lanes;                 /**< that carry data */
	double share[WEFT_MODEL_LANES]; /**< part of the bytes that each gets; sums to 1 */
	double scale; /**< the whole is multiplied by it: 1, or 1 - PERF_DIFF/100 of a rendezvous */
	size_t fragment; /**< payload of one fragment on the lane that takes single ones */
	size_t round;    /**< payload of one round of fragments; SIZE_MAX = there are no rounds */
	unsigned int num_terms, num_pieces;
	struct weft_term terms[WEFT_CURVE_TERMS];
	struct weft_piece pieces[WEFT_CURVE_PIECES];
	char why[160]; /**< why it can carry nothing, or why these lanes */
};

/** Nothing in it; @p min .. @p max is what the protocol can carry. */
void weft_curve_begin(struct weft_curve *cv, size_t min, size_t max);

/** Add a term that is paid once per message. @p note may be NULL */
void weft_curve_once(struct weft_curve *cv, enum weft_stage stage, struct weft_linear f,
		     const char *name, const char *note);
/** Add a term of a message in one fragment (@p one), and of one round of fragments. */
void weft_curve_round(struct weft_curve *cv, enum weft_stage stage, struct weft_linear one,
		      struct weft_linear round, const char *name, const char *note);
/** All terms are there: make the pieces. cv->fragment, cv->round and cv->scale are set by now. */
void weft_curve_end(struct weft_curve *cv);

/** Time of @p x bytes; @p x lies within min..max. */
double weft_curve_at(const struct weft_curve *cv, size_t x);

/* ------------------------------------------------------------------ sets of lanes */

/**
 * Several lanes as one: bandwidths, overheads and registration (each domain once, its first lane
 * counts) summed, latency the largest.
 */
struct weft_lanes_sum {
	unsigned int num;
	double bandwidth, send_overhead, recv_overhead, latency;
	double reg_cost, reg_growth;
};

void weft_lanes_sum(const struct weft_model *m, uint32_t lanes, struct weft_lanes_sum *sum);

/** Set cv->lanes, and cv->share by bandwidth. */
void weft_curve_lanes(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes);

/* ------------------------------------------------------------------ lower envelope */

/**
 * A line that is valid for sizes min..max (inclusive). Smaller @p rank goes first: a line of rank 1
 * is checked only where none of rank 0 is.
 */
struct weft_env_line {
	size_t min, max;
	struct weft_linear f;
	unsigned int rank;
	unsigned int id; /**< caller's; equal times go to the line that stands first in the array */
};

struct weft_env_range {
	size_t max; /**< inclusive; the range begins after the one before */
	int line;   /**< position in the array of lines, or -1: none is valid here */
};

/**
 * The fastest line for every size 0..SIZE_MAX, by walking from intersection to intersection x = (c2
 * - c1)/(m1 - m2).
 * @param out  neighbours with the same id are joined; the last max is SIZE_MAX
 * @return number of ranges, or -ENOSPC when more than @p max_out are needed
 */
int weft_envelope(const struct weft_env_line *lines, unsigned int num, struct weft_env_range *out,
		  unsigned int max_out);

#endif /* WEFT_MODEL_H */
