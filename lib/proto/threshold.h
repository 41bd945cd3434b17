/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file proto/threshold.h
 * The multilane rendezvous threshold in closed form. Pure. doc/thresholds.md derives it and lists
 * its differences to the documents on which it is based.
 *
 *	eager(s) = ecost + s*egro + s/min(ebw, B) + eover
 *	rndv(s)  = d*((1+rrc)*(rcost + s*rgro) + 4*rlat + 3*rover + s/rbw')
 *
 * B: rate of a CPU's copy. rbw' = rbw for remote access (RMA, rrc = 1), min(rbw, B) for active
 * messages (AM, rrc = 0). d = 1 - PERF_DIFF/100. For each set of lanes, bandwidths, overheads and
 * registration costs (each domain once) are summed; latency is the largest.
 */
#ifndef WEFT_THRESHOLD_H
#define WEFT_THRESHOLD_H

#include "proto/model.h"

/** Slopes that differ by less are equal, s/byte. */
#define WEFT_THRESH_EPSILON 1e-18

enum weft_thresh_rule {
	WEFT_THRESH_CROSSING, /**< num > 0, den > 0: the lines meet at num/den */
	WEFT_THRESH_ALWAYS,   /**< num <= 0, den >= 0: rendezvous is cheaper at every size */
	/** the lines never meet, or rendezvous wins only below the crossing */
	WEFT_THRESH_FALLBACK,
	WEFT_THRESH_CAPPED, /**< above what multi-eager may carry */
	WEFT_THRESH_FIXED,  /**< configured */
};

/** One set of lanes, summed up (weft_lanes_sum() makes it). */
struct weft_thresh_lanes {
	double bandwidth;  /**< bytes/s, > 0 */
	double latency;    /**< s; of eager not used */
	double overhead;   /**< s */
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
	size_t fallback; /**< SIZE_MAX = never */
	size_t cap;      /**< multi-eager carries less than this; SIZE_MAX = no cap */
};

struct weft_thresh {
	double num;        /**< s */
	double den;        /**< s/byte; 0 when it is below #WEFT_THRESH_EPSILON */
	bool has_quotient; /**< den != 0 */
	double quotient;   /**< num/den, bytes, not rounded; may be negative */
	size_t bytes;      /**< rendezvous from this size on, rounded up; SIZE_MAX = never */
	enum weft_thresh_rule rule;
};

/** "crossing", ... */
extern const char *const weft_thresh_rule_names[];

/**
 * The threshold.
 *
 *	num = d*((1+rrc)*rcost + 4*rlat + 3*rover) - ecost - eover
 *	den = egro + 1/min(ebw, B) - d*((1+rrc)*rgro + 1/rbw')
 *
 *	num >  0, den >  0   crossing   num/den
 *	num <= 0, den >= 0   always     0
 *	any other            fallback   in->fallback
 *
 * Then a threshold above in->cap becomes in->cap (capped). A configured one is used unchanged; num,
 * den and quotient are computed nevertheless.
 */
void weft_threshold(const struct weft_thresh_in *in, struct weft_thresh *out);

/** The two lines, for diagrams and for tests of the engine. */
struct weft_linear weft_thresh_eager_line(const struct weft_thresh_in *in);
struct weft_linear weft_thresh_rndv_line(const struct weft_thresh_in *in);

/**
 * The threshold of lanes and settings as an endpoint uses it: sets by weft_lanes_sum(), cap and
 * fixed value from the settings.
 * @param eager, rndv  lane masks, not empty
 * @param single       largest eager message in one fragment: the cap when there is no multi-eager
 */
void weft_threshold_of(const struct weft_model *m, uint32_t eager, uint32_t rndv, bool rma,
		       size_t single, struct weft_thresh *out);
/** The input of weft_threshold() in weft_threshold_of(). */
void weft_threshold_in(const struct weft_model *m, uint32_t eager, uint32_t rndv, bool rma,
		       size_t single, struct weft_thresh_in *in);

#endif /* WEFT_THRESHOLD_H */
