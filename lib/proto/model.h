/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file proto/model.h
 * The staged performance model: the time of a message of x bytes, as linear pieces made of named
 * terms. Pure: numbers in, numbers out; no clock, no endpoint, no I/O. doc/thresholds.md derives
 * it.
 *
 * A protocol describes itself by terms `c + m * x`, each in one **stage**. There are two kinds:
 *
 * - **once** terms count once per message, whatever its length (envelopes, latency, registration);
 * - **round** terms count for one round of fragments (one fragment on each lane), and have another
 *   value when the whole message is one fragment on one lane.
 *
 * Stages belong to a *resource*: the sender's CPU, the wire, the receiver's CPU. Rounds overlap.
 * The first round counts all resources, later ones only the slowest: there the line has a bend.
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

/* ------------------------------------------------------------------ input */

/** One lane in the model: values on which both ends have agreed. */
struct weft_model_lane {
	double bandwidth;     /**< bytes/s, > 0 */
	double latency;       /**< one way, s, CPU time of the ends not included */
	double send_overhead; /**< CPU per lane message, s */
	double recv_overhead;
	double reg_cost, reg_growth; /**< registration: s, s/byte */
	size_t max_short;            /**< header + payload, 0 = cannot */
	size_t max_bcopy;
	size_t max_zcopy;
	size_t max_zcopy_hdr; /**< the header's part of it */
	size_t min_zcopy;     /**< shorter messages are copied */
	unsigned int max_iov;
	double get_bandwidth;    /**< of native reads, bytes/s; 0 = as in struct weft_lane_attr */
	size_t max_get, max_put; /**< longest native remote read and write */
	unsigned int max_rma_iov;
	uint64_t features; /**< WEFT_LANE_F_* */
	uint32_t domain;   /**< equal numbers = one registration domain */
	uint32_t device;   /**< equal numbers = one device */
};

/** Settings of the model; sizes may be WEFT_CONF_INF. */
struct weft_model_conf {
	double bcopy_bw;          /**< bytes/s of a CPU's copies, of the slower end, > 0 */
	double perf_diff;         /**< percent in favour of rendezvous, 0 <= .. < 100 */
	size_t rndv_thresh;       /**< bytes, WEFT_CONF_INF, WEFT_CONF_AUTO, WEFT_CONF_MODEL */
	size_t zcopy_thresh;      /**< bytes, WEFT_CONF_INF, WEFT_CONF_AUTO */
	size_t multi_eager_limit; /**< 0 = no multi-eager */
	unsigned int max_eager_lanes, max_rndv_lanes;
	/** all protocols, NULL-terminated; of equal times the first wins */
	const struct weft_proto *const *protos;
	/** 1 + index in protos of the protocol to be used wherever possible; 0 = none */
	unsigned int forced;
	uint32_t rndv_scheme; /**< WEFT_RNDV_SCHEME: enum weft_rndv_scheme */
	/** WEFT_ATOMIC_MODE=device: atomics by lanes only; else by messages only */
	uint32_t atomic_device;
};

/**
 * All input to the choice of an endpoint's protocols. Equal bytes give equal choices: unused bytes
 * are 0.
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

/** A named contribution, for the computation and its explanation. */
struct weft_term {
	enum weft_stage stage;
	bool round;             /**< of one round of fragments; else once per message */
	struct weft_linear f;   /**< once; or of one round */
	struct weft_linear one; /**< round: when the message is one fragment */
	char name[40];          /**< "RTS", "copy into frames" */
	char note[64];          /**< origin of the number: "2 lanes, sum" */
};

#define WEFT_PACE_ONE (-1)   /**< one fragment: all stages add up */
#define WEFT_PACE_FIRST (-2) /**< first round: all stages add up */

/** Valid up to @p max (inclusive), from the end of the previous piece. */
struct weft_piece {
	size_t max;
	struct weft_linear f;
	int pace; /**< the slowest stage from the second round on; WEFT_PACE_* before */
};

/**
 * The time of one protocol, over the sizes that it can carry. struct weft_proto.cost() fills it
 * with the functions below: begin, terms, end.
 */
struct weft_curve {
	size_t min, max;                /**< sizes it can carry, inclusive; min > max = none */
	uint32_t lanes;                 /**< lanes that carry data */
	double share[WEFT_MODEL_LANES]; /**< part of the bytes that each lane gets; the sum is 1 */
	double scale;    /**< factor of the whole: 1, or 1 - PERF_DIFF/100 of a rendezvous */
	size_t fragment; /**< payload of one fragment on the lane for single fragments */
	size_t round;    /**< payload of one round of fragments; SIZE_MAX = there are no rounds */
	unsigned int num_terms, num_pieces;
	struct weft_term terms[WEFT_CURVE_TERMS];
	struct weft_piece pieces[WEFT_CURVE_PIECES];
	char why[160]; /**< why it can carry nothing, or why these lanes */
};

/** Start with an empty curve; the protocol can carry @p min .. @p max. */
void weft_curve_begin(struct weft_curve *cv, size_t min, size_t max);

/** Add a term that counts once per message. @p note may be NULL */
void weft_curve_once(struct weft_curve *cv, enum weft_stage stage, struct weft_linear f,
		     const char *name, const char *note);
/** Add a term of a message in one fragment (@p one), and of one round of fragments. */
void weft_curve_round(struct weft_curve *cv, enum weft_stage stage, struct weft_linear one,
		      struct weft_linear round, const char *name, const char *note);
/** All terms are added: make the pieces. cv->fragment, cv->round and cv->scale must be set. */
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
 * A line that is valid for sizes min..max (inclusive). A line of rank 1 is used only at sizes where
 * none of rank 0 is valid.
 */
struct weft_env_line {
	size_t min, max;
	struct weft_linear f;
	unsigned int rank;
	unsigned int id; /**< the caller's; of equal times the first line in the array wins */
};

struct weft_env_range {
	size_t max; /**< inclusive; the range begins behind the previous one */
	int line;   /**< index in the array of lines, or -1: none is valid here */
};

/**
 * The fastest line for every size 0..SIZE_MAX, by stepping from intersection to intersection x =
 * (c2 - c1)/(m1 - m2).
 * @param out  neighbours with the same id are joined; the last max is SIZE_MAX
 * @return number of ranges, or -ENOSPC when more than @p max_out are needed
 */
int weft_envelope(const struct weft_env_line *lines, unsigned int num, struct weft_env_range *out,
		  unsigned int max_out);

#endif /* WEFT_MODEL_H */
