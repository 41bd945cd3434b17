/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file proto/select.h
 * The choice of a protocol: the rendezvous threshold in closed form, the engine that compares the
 * times of protocols, and the arrays that endpoints with equal lanes share.
 */
#ifndef WEFT_PROTO_SELECT_H
#define WEFT_PROTO_SELECT_H

#include <sys/queue.h>

#include "proto/proto.h"

/* ------------------------------------------------------------------ threshold in closed form */

/*
 * The multilane rendezvous threshold in closed form. Pure. doc/thresholds.md derives it.
 *
 *	eager(s) = ecost + s*egro + s/min(ebw, B) + eover
 *	rndv(s)  = d*((1+rrc)*(rcost + s*rgro) + 4*rlat + 3*rover + s/rbw')
 *
 * B: rate of a CPU's copy. rbw' = rbw for remote access (RMA, rrc = 1), min(rbw, B) for active
 * messages (AM, rrc = 0). d = 1 - perf_diff/100. For each set of lanes, bandwidths, overheads and
 * registration costs (each domain once) are summed; latency is the largest.
 */

/** Slopes that differ by less are equal, s/byte. */
#define WEFT_THRESH_EPSILON 1e-18

enum weft_thresh_rule {
	WEFT_THRESH_CROSSING,
	WEFT_THRESH_ALWAYS,
	/** rendezvous wins at no size, or only below the crossing */
	WEFT_THRESH_FALLBACK,
	/** another rule's threshold would be above the cap, so the cap is the threshold */
	WEFT_THRESH_CAPPED,
	WEFT_THRESH_FIXED, /**< the threshold is configured */
};

/** Sums of one set of lanes, by weft_lanes_sum(). */
struct weft_thresh_lanes {
	double bandwidth;  /**< bytes/s, > 0 */
	double latency;    /**< s; not used for eager */
	double overhead;   /**< send overhead, s */
	double reg_cost;   /**< s */
	double reg_growth; /**< s/byte */
};

struct weft_thresh_in {
	struct weft_thresh_lanes eager, rndv;
	bool rma;         /**< rendezvous by remote access; else by active messages */
	double bcopy_bw;  /**< bytes/s, > 0 */
	double perf_diff; /**< percent, 0 <= .. < 100 */
	size_t fixed;     /**< a configured threshold, SIZE_MAX = never; only with has_fixed */
	bool has_fixed;
	size_t cap; /**< bytes: eager messages are shorter; SIZE_MAX = no cap */
};

struct weft_thresh {
	double num; /**< s */
	double den; /**< s/byte; may be negative; 0 when |den| < #WEFT_THRESH_EPSILON */
	bool has_quotient;
	double quotient; /**< num/den, bytes, not rounded; may be negative */
	size_t bytes;    /**< rendezvous from this size on, rounded up; SIZE_MAX = never */
	enum weft_thresh_rule rule;
};

extern const char *const weft_thresh_rule_names[];

/**
 * The threshold.
 *
 *	num = d*((1+rrc)*rcost + 4*rlat + 3*rover) - ecost - eover
 *	den = egro + 1/min(ebw, B) - d*((1+rrc)*rgro + 1/rbw')
 *
 *	num >  0, den >  0   crossing   num/den
 *	num <= 0, den >= 0   always     0
 *	any other            fallback   never
 *
 * Then a threshold above in->cap becomes in->cap (capped). A configured one is used unchanged; num,
 * den and quotient are computed nevertheless.
 */
void weft_threshold(const struct weft_thresh_in *in, struct weft_thresh *out);

struct weft_linear weft_thresh_eager_line(const struct weft_thresh_in *in);
struct weft_linear weft_thresh_rndv_line(const struct weft_thresh_in *in);

/**
 * The threshold as an endpoint uses it, with cap and fixed value from the settings.
 * @param eager, rndv  lane masks, not empty
 * @param single  bytes of the largest eager message in one fragment; without multi-eager the cap is
 * one byte more
 */
void weft_threshold_of(const struct weft_model *m, uint32_t eager, uint32_t rndv, bool rma,
		       size_t single, struct weft_thresh *out);
void weft_threshold_in(const struct weft_model *m, uint32_t eager, uint32_t rndv, bool rma,
		       size_t single, struct weft_thresh_in *in);

/* ------------------------------------------------------------------ choice */

/* Pure: live endpoints and profile files use the same code. */

struct weft_proto_bounds {
	uint32_t eager, rndv; /**< lane sets of the closed form */
	bool rma;             /**< rendezvous by remote access */
	/**
	 * of weft_threshold(): `bytes` is the configured threshold if there is one. SIZE_MAX
	 * (fallback) if `eager` or `rndv` is empty
	 */
	struct weft_thresh thresh;
	size_t rndv_from;  /**< eager below, rendezvous from here on; 0 with by_model */
	size_t zcopy_from; /**< as configured; SIZE_MAX = never; 0 with zcopy_by_model */
	bool by_model, zcopy_by_model;
};

/**
 * Choose the protocols for a key.
 * @param why  gets the reason when there is no protocol for some sizes: which lanes are missing;
 *   may be NULL
 * @return 0; -ENOTSUP when no protocol implements the operation for this buffer type; -EHOSTUNREACH
 *   when no protocol can carry some sizes over these lanes; -ENOSPC when there are more than
 *   WEFT_PROTO_RANGES ranges. After an error sel->num is 1 and its protocol NULL. With 0 the last
 *   range of WEFT_OPS_BOUNDED has the protocol NULL if the operation may be too long for all
 */
int weft_proto_choose(const struct weft_model *m, const struct weft_proto_key *key,
		      struct weft_proto_select *sel, char *why, size_t why_len);

static inline bool weft_proto_implements(const struct weft_proto *p,
					 const struct weft_proto_key *key)
{
	return (p->ops & WEFT_OP_BIT(key->op)) && (p->classes >> weft_buf_class(key->buf) & 1) &&
	       !(p->needs & key->lacks);
}

/** The longest eager message in one fragment, for weft_proto_bounds(). */
size_t weft_proto_single(const struct weft_model *m, const struct weft_proto_key *key);

/** Time and range of one protocol for a key. @return 0, or a negative error with cv->why */
int weft_proto_curve(const struct weft_model *m, const struct weft_proto_key *key,
		     const struct weft_proto *proto, struct weft_curve *cv);

void weft_proto_bounds(const struct weft_model *m, const struct weft_proto_key *key, size_t single,
		       struct weft_proto_bounds *b);

/* ------------------------------------------------------------------ selectors of lanes */

/**
 * @param why  gets the reason of the last lane when none is found; may be NULL
 * @return mask of lanes
 */
uint32_t weft_lanes_choose(const struct weft_model *m, const struct weft_lane_selector *sel,
			   const struct weft_proto_key *key, char *why, size_t why_len);

extern const struct weft_lane_selector weft_lanes_am;
extern const struct weft_lane_selector weft_lanes_eager;    /**< fastest, up to max_eager_lanes */
extern const struct weft_lane_selector weft_lanes_rndv_am;  /**< fastest, up to max_rndv_lanes */
extern const struct weft_lane_selector weft_lanes_rndv_get; /**< the fastest with native reads */
extern const struct weft_lane_selector weft_lanes_rndv_put; /**< the fastest with native writes */
/* All lanes with native reads, all with native writes; one lane with native 64-bit atomics. */
extern const struct weft_lane_selector weft_lanes_get, weft_lanes_put, weft_lanes_amo;

/* ------------------------------------------------------------------ configuration of endpoints */

/*
 * The configuration that endpoints with equal lanes share. A worker has one per set of lanes and
 * settings.
 */

struct weft_conf;

/** Read the settings for the choice of protocols. @param bcopy_bw  if none is set, bytes/s */
void weft_model_conf_read(struct weft_model_conf *to, const struct weft_conf *from, double bcopy_bw,
			  const struct weft_proto *const *protos);

/** The choice for operations that lack what some protocols need, made by the first of them. */
struct weft_proto_variant {
	struct weft_proto_variant *next;
	struct weft_proto_key key;
	struct weft_proto_select select;
};

struct weft_ep_config {
	/** By operation and buffer type. num == 0: not computed yet (never of contiguous ones). */
	struct weft_proto_select select[WEFT_NUM_OPS][WEFT_NUM_BUFS];
	struct weft_proto_variant *variants;
	struct weft_model model;
	LIST_ENTRY(weft_ep_config) link;
	uint32_t refs;
	bool logged; /* WEFT_PROTO_INFO has logged it */
};

LIST_HEAD(weft_ep_configs, weft_ep_config);

/** Release it by weft_ep_config_put(). @return NULL = no memory */
struct weft_ep_config *weft_ep_config_get(struct weft_ep_configs *list,
					  const struct weft_model *model);
void weft_ep_config_put(struct weft_ep_config *config);

void weft_ep_config_fill(struct weft_ep_config *config, enum weft_op op, weft_buf buf);

static inline const struct weft_proto_select *weft_ep_config_select(struct weft_ep_config *config,
								    enum weft_op op, weft_buf buf)
{
	struct weft_proto_select *sel = &config->select[op][buf];

	if (__builtin_expect(sel->num == 0, 0))
		weft_ep_config_fill(config, op, buf);
	return sel;
}

/** The range of @p length for the protocols that the key allows. @return NULL = no memory */
const struct weft_proto_range *weft_ep_config_variant(struct weft_ep_config *config,
						      const struct weft_proto_key *key,
						      size_t length);

/** @return NULL = no memory */
static inline const struct weft_proto_range *weft_ep_config_range(struct weft_ep_config *config,
								  const struct weft_proto_key *key,
								  size_t length)
{
	const struct weft_proto_range *r =
		weft_proto_range(weft_ep_config_select(config, key->op, key->buf), length);

	if (r->proto && !(r->proto->needs & key->lacks))
		return r;
	return key->lacks ? weft_ep_config_variant(config, key, length) : r;
}

#endif /* WEFT_PROTO_SELECT_H */
