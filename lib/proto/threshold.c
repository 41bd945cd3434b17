/* SPDX-License-Identifier: BSD-3-Clause */

#include <math.h>

#include "core/config.h"
#include "proto/cost.h"
#include "proto/threshold.h"

const char *const weft_thresh_rule_names[] = {
	[WEFT_THRESH_CROSSING] = "crossing", [WEFT_THRESH_ALWAYS] = "always",
	[WEFT_THRESH_FALLBACK] = "fallback", [WEFT_THRESH_CAPPED] = "capped",
	[WEFT_THRESH_FIXED] = "fixed",
};

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

struct weft_linear weft_thresh_eager_line(const struct weft_thresh_in *in)
{
	const struct weft_thresh_lanes *e = &in->eager;

	return (struct weft_linear){
		.c = e->reg_cost + e->overhead,
		.m = e->reg_growth + 1 / smaller(e->bandwidth, in->bcopy_bw),
	};
}

struct weft_linear weft_thresh_rndv_line(const struct weft_thresh_in *in)
{
	const struct weft_thresh_lanes *r = &in->rndv;
	double d = 1 - in->perf_diff / 100, ends = in->rma ? 2 : 1;
	double bw = in->rma ? r->bandwidth : smaller(r->bandwidth, in->bcopy_bw);

	return (struct weft_linear){
		.c = d * (ends * r->reg_cost + 4 * r->latency + 3 * r->overhead),
		.m = d * (ends * r->reg_growth + 1 / bw),
	};
}

/* Round up to the next integer; a value that no size can hold means "never". */
static size_t round_up(double x)
{
	x = ceil(x);
	return x < 18446744073709549568.0 ? (size_t)x : SIZE_MAX;
}

void weft_threshold(const struct weft_thresh_in *in, struct weft_thresh *out)
{
	struct weft_linear e = weft_thresh_eager_line(in), r = weft_thresh_rndv_line(in);

	*out = (struct weft_thresh){.num = r.c - e.c, .den = e.m - r.m};
	if (fabs(out->den) < WEFT_THRESH_EPSILON)
		out->den = 0;
	out->has_quotient = out->den > 0 || out->den < 0;
	if (out->has_quotient)
		out->quotient = out->num / out->den;

	if (in->has_fixed) {
		out->rule = WEFT_THRESH_FIXED;
		out->bytes = in->fixed;
		return;
	}
	if (out->num > 0 && out->den > 0) {
		out->rule = WEFT_THRESH_CROSSING;
		out->bytes = round_up(out->quotient);
	} else if (out->num <= 0 && out->den >= 0) {
		out->rule = WEFT_THRESH_ALWAYS;
		out->bytes = 0;
	} else {
		out->rule = WEFT_THRESH_FALLBACK;
		out->bytes = in->fallback;
	}
	if (out->bytes > in->cap) {
		out->rule = WEFT_THRESH_CAPPED;
		out->bytes = in->cap;
	}
}

static struct weft_thresh_lanes sum_of(const struct weft_model *m, uint32_t lanes)
{
	struct weft_lanes_sum s;

	weft_lanes_sum(m, lanes, &s);
	return (struct weft_thresh_lanes){s.bandwidth, s.latency, s.send_overhead, s.reg_cost,
					  s.reg_growth};
}

void weft_threshold_in(const struct weft_model *m, uint32_t eager, uint32_t rndv, bool rma,
		       size_t single, struct weft_thresh_in *in)
{
	const struct weft_model_conf *conf = &m->conf;
	bool in_memory;

	*in = (struct weft_thresh_in){
		.eager = sum_of(m, eager),
		.rndv = sum_of(m, rndv),
		.rma = rma,
		.bcopy_bw = conf->bcopy_bw,
		.perf_diff = conf->perf_diff,
		.fallback = conf->rndv_fallback,
		.cap = conf->multi_eager_limit ? conf->multi_eager_limit
		       : single < SIZE_MAX     ? single + 1
					       : SIZE_MAX,
		.has_fixed =
			conf->rndv_thresh != WEFT_CONF_AUTO && conf->rndv_thresh != WEFT_CONF_MODEL,
		.fixed = conf->rndv_thresh,
	};
	if (rma)
		in->rndv.bandwidth = weft_cost_native_rate(m, rndv, &in_memory);
}

void weft_threshold_of(const struct weft_model *m, uint32_t eager, uint32_t rndv, bool rma,
		       size_t single, struct weft_thresh *out)
{
	struct weft_thresh_in in;

	weft_threshold_in(m, eager, rndv, rma, single, &in);
	weft_threshold(&in, out);
}
