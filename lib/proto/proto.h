/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file proto/proto.h
 * A protocol is an entry of a table (lib/dispatch.c). For an operation and a buffer type, every
 * protocol that implements them selects its lanes and computes its time as a curve (cost()). The
 * lower envelope over 0..SIZE_MAX, with the configured thresholds, becomes an array {max size,
 * protocol} in which sends search.
 *
 *	proto/proto.c   the model of times, and the costs of rendezvous protocols
 *	proto/select.c  the choice of protocols and lanes
 */
#ifndef WEFT_PROTO_H
#define WEFT_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lane.h"
#include "weft.h"

/* ------------------------------------------------------------------ model */

/*
 * The staged performance model: the time of a message of x bytes. doc/thresholds.md derives it.
 *
 * A protocol describes itself by terms `c + m * x`, each in one **stage**. A *once* term counts
 * once per message, whatever its length. A *round* term counts for one round of fragments (one
 * fragment on each lane), and has another value when the whole message is one fragment on one lane.
 *
 * Stages, except latency, belong to a *resource*: the sender's CPU, the wire, the receiver's CPU.
 * Rounds overlap: the first counts all resources, later ones only the slowest.
 */

#define WEFT_MODEL_LANES 16 /**< = WEFT_MAX_LANES of core/worker.h */
#define WEFT_CURVE_TERMS 32
#define WEFT_CURVE_PIECES 4

struct weft_proto;

/* ------------------------------------------------------------------ input */

/**
 * One lane in the model. Both ends have agreed on rate, latency, overheads and registration costs.
 */
struct weft_model_lane {
	double bandwidth;     /**< bytes/s, > 0 */
	double latency;       /**< one way, s, CPU time of the ends not included */
	double send_overhead; /**< CPU per lane message, s */
	double recv_overhead;
	double reg_cost, reg_growth; /**< registration: s, s/byte */
	size_t max_short;            /**< bytes of header and payload; 0 = no short messages */
	size_t max_bcopy;
	size_t max_zcopy;
	size_t max_zcopy_hdr; /**< bytes of max_zcopy that may be the header */
	size_t min_zcopy;     /**< shorter messages are copied */
	unsigned int max_iov;
	/** bytes/s of native reads and writes; 0 = bandwidth, and bcopy_bw in memory */
	double get_bandwidth;
	size_t max_get, max_put; /**< bytes of one native remote read, and write */
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

/** All input to the choice of an endpoint's protocols. Compared as bytes, so unused ones are 0. */
struct weft_model {
	struct weft_model_lane lanes[WEFT_MODEL_LANES];
	uint32_t lanes_up; /**< bit i = lanes[i] exists */
	uint32_t am_lane;  /**< of the lowest latency: for single fragments and control messages */
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
	WEFT_STAGE_SEND_REG,
	WEFT_STAGE_WIRE,
	WEFT_STAGE_RECV_CPU,
	WEFT_STAGE_RECV_COPY,
	WEFT_STAGE_RECV_REG,
	WEFT_STAGE_LATENCY,
	WEFT_NUM_STAGES
};

extern const char *const weft_stage_names[WEFT_NUM_STAGES];

struct weft_term {
	enum weft_stage stage;
	bool round; /**< of one round of fragments; else once per message */
	struct weft_linear f;
	struct weft_linear one; /**< of a round term: time if the whole message is one fragment */
	char name[40];
	char note[64]; /**< origin of the number: "2 lanes, sum" */
};

#define WEFT_PACE_ONE (-1)   /**< one fragment: all stages add up */
#define WEFT_PACE_FIRST (-2) /**< first round: all stages add up */

/** Valid up to @p max (inclusive), from the end of the previous piece. */
struct weft_piece {
	size_t max;
	struct weft_linear f;
	int pace; /**< the slowest stage from the second round on; WEFT_PACE_* before */
};

/** struct weft_proto.cost() fills it with the functions below: begin, terms, end. */
struct weft_curve {
	size_t min, max; /**< sizes that the protocol can carry, inclusive; min > max = none */
	uint32_t lanes;
	double share[WEFT_MODEL_LANES]; /**< part of the bytes that each lane gets; the sum is 1 */
	double scale;    /**< factor of the whole: 1, or 1 - PERF_DIFF/100 of a rendezvous */
	size_t fragment; /**< payload of one fragment on the lane for single fragments */
	size_t round;    /**< payload of one round of fragments; SIZE_MAX = there are no rounds */
	unsigned int num_terms, num_pieces;
	struct weft_term terms[WEFT_CURVE_TERMS];
	struct weft_piece pieces[WEFT_CURVE_PIECES];
	char why[160]; /**< why the protocol carries nothing, or why these lanes */
};

void weft_curve_begin(struct weft_curve *cv, size_t min, size_t max);

/** @p note may be NULL */
void weft_curve_once(struct weft_curve *cv, enum weft_stage stage, struct weft_linear f,
		     const char *name, const char *note);
/** Add a term of a message in one fragment (@p one), and of one round of fragments. */
void weft_curve_round(struct weft_curve *cv, enum weft_stage stage, struct weft_linear one,
		      struct weft_linear round, const char *name, const char *note);
/** All terms are added: make the pieces. With rounds, cv->fragment must be set, too. */
void weft_curve_end(struct weft_curve *cv);

/** @p x lies within min..max. */
double weft_curve_at(const struct weft_curve *cv, size_t x);

/* ------------------------------------------------------------------ sets of lanes */

/** Of each domain only the first lane's registration costs count. The latency is the largest. */
struct weft_lanes_sum {
	unsigned int num;
	double bandwidth, send_overhead, recv_overhead, latency;
	double reg_cost, reg_growth;
};

void weft_lanes_sum(const struct weft_model *m, uint32_t lanes, struct weft_lanes_sum *sum);

/** Set cv->lanes, and cv->share by bandwidth. */
void weft_curve_lanes(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes);

/* ------------------------------------------------------------------ lower envelope */

/** A line valid for sizes min..max, inclusive. Among valid lines only the lowest rank counts. */
struct weft_env_line {
	size_t min, max;
	struct weft_linear f;
	unsigned int rank;
	unsigned int id; /**< the caller's number: lines with equal numbers are joined */
};

struct weft_env_range {
	size_t max; /**< inclusive; the range begins behind the previous one */
	int line;   /**< index in the array of lines, or -1: none is valid here */
};

/**
 * The fastest line for every size. Of equal times the first line in the array wins.
 * @param out  neighbours with the same id are joined; the last max is SIZE_MAX
 * @return number of ranges, or -ENOSPC when more than @p max_out are needed
 */
int weft_envelope(const struct weft_env_line *lines, unsigned int num, struct weft_env_range *out,
		  unsigned int max_out);

struct weft_request;

/* ------------------------------------------------------------------ operations */

/** Variants that programs select by flags, after the operations of weft.h. */
#define WEFT_OP_AM_EAGER ((enum weft_op)WEFT_OP_LAST)      /**< WEFT_AM_SEND_F_EAGER */
#define WEFT_OP_AM_RNDV ((enum weft_op)(WEFT_OP_LAST + 1)) /**< WEFT_AM_SEND_F_RNDV */
#define WEFT_NUM_OPS (WEFT_OP_LAST + 2)

#define WEFT_OP_BIT(op) (1u << (op))
#define WEFT_CLASSES_ALL (1u << WEFT_DT_CONTIG | 1u << WEFT_DT_IOV | 1u << WEFT_DT_GENERIC)
#define WEFT_OPS_TAG (WEFT_OP_BIT(WEFT_OP_TAG_SEND) | WEFT_OP_BIT(WEFT_OP_TAG_SEND_SYNC))
#define WEFT_OPS_AM                                                     \
	(WEFT_OP_BIT(WEFT_OP_AM_SEND) | WEFT_OP_BIT(WEFT_OP_AM_EAGER) | \
	 WEFT_OP_BIT(WEFT_OP_AM_RNDV))
#define WEFT_OPS_EAGER (WEFT_OPS_TAG | (WEFT_OPS_AM & ~WEFT_OP_BIT(WEFT_OP_AM_RNDV)))
#define WEFT_OPS_RNDV (WEFT_OPS_TAG | (WEFT_OPS_AM & ~WEFT_OP_BIT(WEFT_OP_AM_EAGER)))
/** Operations that may be too long for every protocol. */
#define WEFT_OPS_BOUNDED (WEFT_OP_BIT(WEFT_OP_AM_EAGER) | WEFT_OPS_AMO)
#define WEFT_OPS_AMO (WEFT_OP_BIT(WEFT_OP_AMO) | WEFT_OP_BIT(WEFT_OP_AMO_FETCH))

/* ------------------------------------------------------------------ buffer types */

/**
 * Datatype class, number of iov entries (in classes), and whether the memory is registered, as one
 * small number. Host memory is the only memory type.
 */
typedef uint8_t weft_buf;

enum {
	WEFT_BUF_CONTIG = 0,
	WEFT_BUF_IOV_FEW = 2,
	WEFT_BUF_IOV_SOME = 4,
	WEFT_BUF_IOV_MANY = 6,
	WEFT_BUF_GENERIC = 8,
	WEFT_BUF_REG = 1, /**< added: the memory is registered */
	WEFT_NUM_BUFS = 10
};

#define WEFT_IOV_FEW 4
#define WEFT_IOV_SOME 32

static inline weft_buf weft_buf_make(unsigned int dt_class, size_t iovcnt, bool reg)
{
	unsigned int buf = WEFT_BUF_CONTIG;

	if (dt_class == WEFT_DT_GENERIC)
		buf = WEFT_BUF_GENERIC;
	else if (dt_class == WEFT_DT_IOV)
		buf = iovcnt <= WEFT_IOV_FEW    ? WEFT_BUF_IOV_FEW
		      : iovcnt <= WEFT_IOV_SOME ? WEFT_BUF_IOV_SOME
						: WEFT_BUF_IOV_MANY;
	return (weft_buf)(buf + reg);
}

static inline unsigned int weft_buf_class(weft_buf buf)
{
	return buf < WEFT_BUF_IOV_FEW   ? WEFT_DT_CONTIG
	       : buf < WEFT_BUF_GENERIC ? WEFT_DT_IOV
					: WEFT_DT_GENERIC;
}

static inline size_t weft_buf_iovs(weft_buf buf)
{
	static const size_t most[WEFT_NUM_BUFS / 2] = {1, WEFT_IOV_FEW, WEFT_IOV_SOME, SIZE_MAX,
						       SIZE_MAX};

	return most[buf / 2];
}

/* What protocols need in addition to suitable lanes, and an operation may lack. */
#define WEFT_NEEDS_NATIVE (1u << 0) /**< keys and registrations of the operation's memory */
#define WEFT_NEEDS_PULL (1u << 1)   /**< a sender that serves pulls */
#define WEFT_NEEDS_PUT (1u << 2)    /**< a sender that writes */

struct weft_proto_key {
	enum weft_op op;
	weft_buf buf;
	uint8_t lacks; /**< WEFT_NEEDS_*: protocols that need these are left out */
};

/** For queries that name no buffer type: remote memory is accessed from registered memory. */
static inline weft_buf weft_buf_usual(enum weft_op op)
{
	return op == WEFT_OP_PUT || op == WEFT_OP_GET ? WEFT_BUF_CONTIG | WEFT_BUF_REG
						      : WEFT_BUF_CONTIG;
}

/* ------------------------------------------------------------------ lane selectors */

struct weft_lane_rating {
	unsigned int priority; /**< larger first */
	double score;          /**< larger first; then the lower lane number */
	char why[96];          /**< the reason if the lane can't serve */
};

/**
 * rate() is called for every remaining lane, and the best is taken, until none is valid or max()
 * lanes are found.
 */
struct weft_lane_selector {
	const char *name;
	/** @return true, and the rating; false, and the reason */
	bool (*rate)(const struct weft_model *m, const struct weft_proto_key *key,
		     unsigned int lane, struct weft_lane_rating *r);
	unsigned int (*max)(const struct weft_model *m);
};

/* ------------------------------------------------------------------ protocols */

/** short messages may bypass the request (the short send of tag/tag.c) */
#define WEFT_PROTO_F_SHORT (1u << 0)
/** announces first: used from the rendezvous threshold on; needs no credit of bytes */
#define WEFT_PROTO_F_RNDV (1u << 1)
/** eager from user memory: used from zcopy_thresh on, if that is configured */
#define WEFT_PROTO_F_ZCOPY (1u << 2)
/** eager in several fragments: below WEFT_MULTI_EAGER_LIMIT, or a larger WEFT_RNDV_THRESH */
#define WEFT_PROTO_F_MULTI (1u << 3)
/** a whole message that the lane copies; contiguous ones may bypass the request */
#define WEFT_PROTO_F_COPIED (1u << 4)

/**
 * progress(): nothing has been sent, and this protocol cannot carry the message (the header of an
 * active message is too long for it): the engine uses the protocol of the next larger size.
 */
#define WEFT_PROTO_NEXT 1

struct weft_proto {
	const char *name;
	const char *desc; /**< description, up to 95 characters */
	uint32_t ops;     /**< WEFT_OP_BIT() of the operations that it implements */
	uint32_t classes; /**< datatype classes: 1 << WEFT_DT_CONTIG, ... */
	uint32_t flags;   /**< WEFT_PROTO_F_* */
	uint32_t needs;   /**< WEFT_NEEDS_* */
	const struct weft_lane_selector *lanes;
	/**
	 * Computes the sizes and the time over @p lanes (from the selector, not empty):
	 * weft_curve_begin() ... weft_curve_end(). Unsuitable ones of @p lanes are excluded by
	 * weft_curve_lanes().
	 * @return 0, or a negative error with the reason in cv->why: the protocol cannot serve this
	 * key
	 */
	int (*cost)(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		    struct weft_curve *cv);
	/**
	 * Hand over as much as the lanes accept. In the first calls nothing of the message has been
	 * sent. The protocol takes the message's sequence number with the first piece.
	 * @return 0 nothing more to hand over for now; -EAGAIN no room (or no sequence), call
	 * again; WEFT_PROTO_NEXT; or the error of the user's pack
	 */
	int (*progress)(struct weft_request *req);
	/**
	 * Optional: a send ends early with @p status (a pack error in the middle, failure of the
	 * endpoint). Remove the request from the protocol's own queues, and notify the peer unless
	 * req->me->failed is set. The engine completes the request.
	 */
	void (*abort)(struct weft_request *req, int status);
	/**
	 * Optional: the endpoint's lanes have changed while a request that has begun has more to
	 * hand over, or to request. No callback of the user runs in it. @return 0 = the request has
	 * not begun, and is selected again; 1 = it continues over the present lanes (as with NULL)
	 */
	int (*reset)(struct weft_request *req);
};

/* ------------------------------------------------------------------ the result */

/** Sizes above the previous max, up to @p max, use @p proto. The last max is SIZE_MAX. */
struct weft_proto_range {
	size_t max;
	const struct weft_proto *proto;
	uint32_t lanes;
};

#define WEFT_PROTO_RANGES 12

struct weft_proto_select {
	struct weft_proto_range ranges[WEFT_PROTO_RANGES];
	unsigned int num;
	/** replaces an eager protocol without credit, or while lanes are contended; NULL = wait */
	const struct weft_proto *uncredited;
};

static inline const struct weft_proto_range *weft_proto_range(const struct weft_proto_select *sel,
							      size_t length)
{
	const struct weft_proto_range *r = sel->ranges;

	while (length > r->max)
		r++;
	return r;
}

static inline const struct weft_proto *weft_proto_lookup(const struct weft_proto_select *sel,
							 size_t length)
{
	return weft_proto_range(sel, length)->proto;
}

/* ------------------------------------------------------------------ costs: parts */

/*
 * Costs of the protocol layer itself per piece, s, in addition to the lanes' overheads. These are
 * estimates; weft-perf --sweep verifies them.
 */
#define WEFT_COST_PACK 10e-9    /**< a call of am_bcopy()'s pack callback, without the copy */
#define WEFT_COST_ZCOPY 250e-9  /**< a zero-copy piece: describe the memory, complete later */
#define WEFT_COST_KERNEL 600e-9 /**< a native read or write in memory: calls of the kernel */
#define WEFT_COST_RNDV 60e-9    /**< request allocated, looked up, ended: per end of a rendezvous */

/**
 * Bytes from which zero copy pays at the latest, whatever the measured rate of copies: that rate is
 * measured within a cache, and a real copy displaces other data from it. Pieces of 64 KiB messages
 * over net_memif with frames of 9 KB take 0.77 of the CPU time [0.71-0.84] without the copy, where
 * copies are estimated at 40 GB/s.
 */
#define WEFT_ZCOPY_MOST 4096

/** The setting, or where the copy takes as long as WEFT_COST_ZCOPY, at most #WEFT_ZCOPY_MOST. */
size_t weft_cost_zcopy_from(const struct weft_model *m);

/** Can the lane send this buffer in place behind @p hdr bytes? @return longest payload, 0 = no */
size_t weft_cost_zcopy_max(const struct weft_model *m, unsigned int lane, size_t hdr, weft_buf buf);
size_t weft_cost_copy_max(const struct weft_model *m, unsigned int lane, size_t hdr);

/** Add a message without payload on the lowest-latency lane: both CPUs and the latency. */
void weft_cost_control(struct weft_curve *cv, const struct weft_model *m, const char *name);

/** @p stage: WEFT_STAGE_SEND_REG or WEFT_STAGE_RECV_REG */
void weft_cost_register(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes,
			enum weft_stage stage);

/**
 * Bytes/s. In memory the initiator's CPU copies once.
 * @param[out] in_memory  at least one of the lanes is in memory
 */
double weft_cost_native_rate(const struct weft_model *m, uint32_t lanes, bool *in_memory);

/** Posted by the CPU of stage @p poster. weft_curve_lanes() sets lanes and shares. */
void weft_cost_native(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes,
		      enum weft_stage poster);

/**
 * Data by active messages with headers of @p hdr bytes. Lanes that cannot carry it are excluded.
 * Sets lanes, shares, fragment and round.
 * @return 0, or -ENOTSUP with the reason in cv->why
 */
int weft_cost_fragments(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes,
			size_t hdr, weft_buf buf);

/* ------------------------------------------------------------------ costs: rendezvous */

/*
 * The sender uses these times for its estimate. The receiver, which decides on the scheme, compares
 * the same numbers (operation WEFT_OP_RNDV_DATA: without RTS). Time ends when the receiver has the
 * data.
 */

int weft_rndv_cost_am(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		      struct weft_curve *cv);
int weft_rndv_cost_pull(const struct weft_model *m, const struct weft_proto_key *key,
			uint32_t lanes, struct weft_curve *cv);
int weft_rndv_cost_get(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv);
int weft_rndv_cost_put(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv);

#include "proto/select.h"

#endif /* WEFT_PROTO_H */
