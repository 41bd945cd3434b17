/* SPDX-License-Identifier: BSD-3-Clause */

#include "proto/select.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "proto/proto.h"

/* ------------------------------------------------------------------ threshold in closed form */

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
		out->bytes = SIZE_MAX;
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

/* ------------------------------------------------------------------ lane selectors */

uint32_t weft_lanes_choose(const struct weft_model *m, const struct weft_lane_selector *sel,
			   const struct weft_proto_key *key, char *why, size_t why_len)
{
	unsigned int max = sel->max(m), best;
	struct weft_lane_rating best_r, r;
	uint32_t mask = 0;

	if (why && why_len)
		snprintf(why, why_len, "there is no lane");
	for (unsigned int n = 0; n < max; n++) {
		best = WEFT_MODEL_LANES;
		for (uint32_t left = m->lanes_up & ~mask; left; left &= left - 1) {
			unsigned int i = (unsigned int)__builtin_ctz(left);

			r = (struct weft_lane_rating){.score = 0};
			if (!sel->rate(m, key, i, &r)) {
				if (!mask && why)
					snprintf(why, why_len, "lane %u %s", i, r.why);
				continue;
			}
			if (best == WEFT_MODEL_LANES || r.priority > best_r.priority ||
			    (r.priority == best_r.priority && r.score > best_r.score)) {
				best = i;
				best_r = r;
			}
		}
		if (best == WEFT_MODEL_LANES)
			break;
		mask |= 1u << best;
	}
	return mask;
}

static bool carries_messages(const struct weft_model_lane *l, struct weft_lane_rating *r)
{
	if (l->max_short || l->max_bcopy || l->max_zcopy)
		return true;
	snprintf(r->why, sizeof(r->why), "carries no active messages");
	return false;
}

static bool rate_am(const struct weft_model *m, const struct weft_proto_key *key, unsigned int lane,
		    struct weft_lane_rating *r)
{
	if (lane == m->am_lane)
		return carries_messages(&m->lanes[lane], r);
	snprintf(r->why, sizeof(r->why), "is not the one with the lowest latency");
	return false;
}

static bool rate_bandwidth(const struct weft_model *m, const struct weft_proto_key *key,
			   unsigned int lane, struct weft_lane_rating *r)
{
	r->score = m->lanes[lane].bandwidth;
	return carries_messages(&m->lanes[lane], r);
}

static bool rate_feature(const struct weft_model *m, unsigned int lane, uint64_t feature,
			 const char *what, struct weft_lane_rating *r)
{
	r->score = m->lanes[lane].bandwidth;
	if (m->lanes[lane].features & feature)
		return true;
	snprintf(r->why, sizeof(r->why), "has no native remote %s", what);
	return false;
}

static bool rate_get(const struct weft_model *m, const struct weft_proto_key *key,
		     unsigned int lane, struct weft_lane_rating *r)
{
	return rate_feature(m, lane, WEFT_LANE_F_GET, "read", r);
}

static bool rate_put(const struct weft_model *m, const struct weft_proto_key *key,
		     unsigned int lane, struct weft_lane_rating *r)
{
	return rate_feature(m, lane, WEFT_LANE_F_PUT, "write", r);
}

static bool rate_amo(const struct weft_model *m, const struct weft_proto_key *key,
		     unsigned int lane, struct weft_lane_rating *r)
{
	/* One lane is enough for an atomic: the lane with the lowest latency. */
	bool can = rate_feature(m, lane, WEFT_LANE_F_AMO64, "atomics", r);

	r->score = -m->lanes[lane].latency;
	return can;
}

static unsigned int one_lane(const struct weft_model *m)
{
	return 1;
}

static unsigned int eager_lanes(const struct weft_model *m)
{
	return m->conf.max_eager_lanes;
}

static unsigned int all_lanes(const struct weft_model *m)
{
	return WEFT_MODEL_LANES;
}

static unsigned int rndv_lanes(const struct weft_model *m)
{
	return m->conf.max_rndv_lanes;
}

const struct weft_lane_selector weft_lanes_am = {"lowest latency", rate_am, one_lane};
const struct weft_lane_selector weft_lanes_eager = {"eager", rate_bandwidth, eager_lanes};
const struct weft_lane_selector weft_lanes_rndv_am = {"bulk messages", rate_bandwidth, rndv_lanes};
const struct weft_lane_selector weft_lanes_rndv_get = {"remote read", rate_get, rndv_lanes};
const struct weft_lane_selector weft_lanes_rndv_put = {"remote write", rate_put, rndv_lanes};

const struct weft_lane_selector weft_lanes_get = {"remote read", rate_get, all_lanes};
const struct weft_lane_selector weft_lanes_put = {"remote write", rate_put, all_lanes};
const struct weft_lane_selector weft_lanes_amo = {"remote atomics", rate_amo, one_lane};

/* ------------------------------------------------------------------ candidates */

#define MAX_PROTOS 32

struct candidate {
	const struct weft_proto *proto;
	size_t min, max;
	uint32_t lanes;
	unsigned int num;
	struct weft_piece pieces[WEFT_CURVE_PIECES];
};

struct candidates {
	struct candidate list[MAX_PROTOS];
	unsigned int num;
	unsigned int implement; /* protocols with this operation and buffer type */
	size_t single;
	bool zcopy; /* a candidate sends a single fragment from user memory */
	bool rndv;
	char why[256]; /* the reasons of protocols that cannot serve */
};

int weft_proto_curve(const struct weft_model *m, const struct weft_proto_key *key,
		     const struct weft_proto *proto, struct weft_curve *cv)
{
	uint32_t lanes;
	int rc;

	*cv = (struct weft_curve){.min = 1};
	if (!weft_proto_implements(proto, key)) {
		snprintf(cv->why, sizeof(cv->why), "does not support this buffer type");
		return -ENOTSUP;
	}
	lanes = weft_lanes_choose(m, proto->lanes, key, cv->why, sizeof(cv->why));
	if (!lanes)
		return -EHOSTUNREACH;
	rc = proto->cost(m, key, lanes, cv);
	if (rc == 0 && cv->min > cv->max) {
		snprintf(cv->why, sizeof(cv->why),
			 "carries no size: the least, %zu bytes, exceeds the largest, %zu", cv->min,
			 cv->max);
		rc = -EHOSTUNREACH;
	}
	return rc;
}

static void find_candidates(const struct weft_model *m, const struct weft_proto_key *key,
			    struct candidates *c)
{
	struct weft_curve cv;
	size_t n = 0;

	c->num = 0;
	c->implement = 0;
	c->single = 0;
	c->zcopy = c->rndv = false;
	c->why[0] = '\0';
	for (const struct weft_proto *const *p = m->conf.protos; *p && c->num < MAX_PROTOS; p++) {
		if (!weft_proto_implements(*p, key))
			continue;
		c->implement++;
		if (weft_proto_curve(m, key, *p, &cv) < 0) {
			if (n < sizeof(c->why))
				n += (size_t)snprintf(c->why + n, sizeof(c->why) - n, "%s%s: %s",
						      n ? "; " : "", (*p)->name, cv.why);
			continue;
		}
		c->list[c->num] =
			(struct candidate){*p, cv.min, cv.max, cv.lanes, cv.num_pieces, {{0}}};
		for (unsigned int i = 0; i < cv.num_pieces; i++)
			c->list[c->num].pieces[i] = cv.pieces[i];
		c->num++;
		if (!((*p)->flags & (WEFT_PROTO_F_RNDV | WEFT_PROTO_F_MULTI)) && cv.max > c->single)
			c->single = cv.max;
		c->zcopy |= ((*p)->flags & WEFT_PROTO_F_ZCOPY) != 0;
		c->rndv |= ((*p)->flags & WEFT_PROTO_F_RNDV) != 0;
	}
}

size_t weft_proto_single(const struct weft_model *m, const struct weft_proto_key *key)
{
	struct candidates c;

	find_candidates(m, key, &c);
	return c.single;
}

/* ------------------------------------------------------------------ bounds */

void weft_proto_bounds(const struct weft_model *m, const struct weft_proto_key *key, size_t single,
		       struct weft_proto_bounds *b)
{
	size_t zcopy = m->conf.zcopy_thresh;

	*b = (struct weft_proto_bounds){.by_model = m->conf.rndv_thresh == WEFT_CONF_MODEL};
	b->zcopy_by_model = zcopy == WEFT_CONF_AUTO;
	b->zcopy_from = b->zcopy_by_model ? 0 : zcopy;
	b->eager = weft_lanes_choose(m, &weft_lanes_eager, key, NULL, 0);
	b->rndv = weft_lanes_choose(m, &weft_lanes_rndv_get, key, NULL, 0);
	b->rma = b->rndv != 0;
	if (!b->rma)
		b->rndv = weft_lanes_choose(m, &weft_lanes_rndv_am, key, NULL, 0);
	if (!b->eager || !b->rndv) {
		b->thresh.rule = WEFT_THRESH_FALLBACK;
		b->thresh.bytes = SIZE_MAX;
	} else {
		weft_threshold_of(m, b->eager, b->rndv, b->rma, single, &b->thresh);
	}
	b->rndv_from = b->by_model ? 0 : b->thresh.bytes;
}

/* Sizes lo..hi for which a protocol competes. lo > hi: none. */
struct window {
	size_t lo, hi;
};

static struct window size_window(const struct candidates *c, const struct candidate *cand,
				 const struct weft_proto_bounds *b)
{
	struct window w = {cand->min, cand->max};
	uint32_t flags = cand->proto->flags;

	if (flags & WEFT_PROTO_F_RNDV) {
		/* Empty messages have no data to request: they are eager with any threshold. */
		size_t from = b->rndv_from > 1 ? b->rndv_from : 1;

		w.lo = from > w.lo ? from : w.lo;
		if (b->rndv_from == SIZE_MAX)
			w = (struct window){1, 0};
		return w;
	}
	if (c->rndv && !b->by_model && b->rndv_from < SIZE_MAX) {
		size_t end = b->rndv_from ? b->rndv_from - 1 : 0;

		w.hi = end < w.hi ? end : w.hi;
	}
	if (b->zcopy_by_model || !c->zcopy || (flags & WEFT_PROTO_F_MULTI))
		return w;
	if (flags & WEFT_PROTO_F_ZCOPY)
		w.lo = b->zcopy_from > w.lo ? b->zcopy_from : w.lo;
	else if (b->zcopy_from == 0)
		w = (struct window){1, 0};
	else if (b->zcopy_from - 1 < w.hi)
		w.hi = b->zcopy_from - 1;
	return w;
}

/* ------------------------------------------------------------------ lines */

#define MAX_LINES (MAX_PROTOS * (WEFT_CURVE_PIECES + 2))

struct lines {
	struct weft_env_line list[MAX_LINES];
	unsigned int num;
};

static void add_line(struct lines *l, size_t lo, size_t hi, const struct weft_piece *piece,
		     unsigned int rank, unsigned int id)
{
	if (lo > hi || l->num == MAX_LINES)
		return;
	l->list[l->num++] = (struct weft_env_line){lo, hi, piece->f, rank, id};
}

/*
 * The pieces of a candidate compete within its window. Outside, the candidate serves sizes that no
 * other protocol can carry. A forced protocol precedes all others.
 */
static void add_candidate(struct lines *l, const struct candidates *c, unsigned int id,
			  const struct weft_proto_bounds *b, const struct weft_proto *forced)
{
	const struct candidate *cand = &c->list[id];
	struct window w = size_window(c, cand, b);
	unsigned int rank = forced && cand->proto != forced;
	size_t lo = cand->min;

	if (cand->proto == forced)
		w = (struct window){lo > 1 ? lo : 1, cand->max};

	for (unsigned int i = 0; i < cand->num; i++) {
		const struct weft_piece *p = &cand->pieces[i];
		size_t hi = p->max, in_lo = w.lo > lo ? w.lo : lo, in_hi = w.hi < hi ? w.hi : hi;

		if (in_lo > in_hi) {
			add_line(l, lo, hi, p, rank + 1, id);
		} else {
			add_line(l, in_lo, in_hi, p, rank, id);
			if (in_lo > lo)
				add_line(l, lo, in_lo - 1, p, rank + 1, id);
			if (in_hi < hi)
				add_line(l, in_hi + 1, hi, p, rank + 1, id);
		}
		if (hi == SIZE_MAX)
			break;
		lo = hi + 1;
	}
}

/* ------------------------------------------------------------------ the choice */

static const struct weft_proto *best_rndv(const struct candidates *c)
{
	for (unsigned int i = 0; i < c->num; i++)
		if ((c->list[i].proto->flags & WEFT_PROTO_F_RNDV) && c->list[i].max == SIZE_MAX)
			return c->list[i].proto;
	return NULL;
}

static int nothing(struct weft_proto_select *sel, int status)
{
	*sel = (struct weft_proto_select){.ranges = {{SIZE_MAX, NULL, 0}}, .num = 1};
	return status;
}

static int fill(struct weft_proto_select *sel, const struct weft_proto_key *key,
		const struct candidates *c, const struct lines *l, char *why, size_t why_len)
{
	struct weft_env_range out[WEFT_PROTO_RANGES];
	size_t from = 0;
	int n = weft_envelope(l->list, l->num, out, WEFT_PROTO_RANGES);

	if (n < 0) {
		if (why)
			snprintf(why, why_len, "more than %d ranges of protocols",
				 WEFT_PROTO_RANGES);
		return nothing(sel, n);
	}
	sel->num = (unsigned int)n;
	sel->uncredited = best_rndv(c);
	for (int i = 0; i < n; i++) {
		const struct candidate *cand;

		if (out[i].line < 0 && i && i == n - 1 && (WEFT_OPS_BOUNDED >> key->op & 1)) {
			sel->ranges[i] = (struct weft_proto_range){.max = SIZE_MAX};
			break;
		}
		if (out[i].line < 0) {
			if (why)
				snprintf(why, why_len, "no protocol for %zu bytes: %s", from,
					 c->why[0] ? c->why : "it is too long for all");
			return nothing(sel, -EHOSTUNREACH);
		}
		cand = &c->list[l->list[out[i].line].id];
		sel->ranges[i] = (struct weft_proto_range){out[i].max, cand->proto, cand->lanes};
		from = out[i].max + 1;
	}
	return 0;
}

int weft_proto_choose(const struct weft_model *m, const struct weft_proto_key *key,
		      struct weft_proto_select *sel, char *why, size_t why_len)
{
	struct weft_proto_bounds b;
	struct candidates c;
	struct lines l = {.num = 0};

	find_candidates(m, key, &c);
	if (!c.implement) {
		if (why)
			snprintf(why, why_len, "no protocol implements this operation");
		return nothing(sel, -ENOTSUP);
	}
	weft_proto_bounds(m, key, c.single, &b);
	for (unsigned int i = 0; i < c.num; i++)
		add_candidate(&l, &c, i, &b,
			      m->conf.forced ? m->conf.protos[m->conf.forced - 1] : NULL);
	return fill(sel, key, &c, &l, why, why_len);
}

/* ------------------------------------------------------------------ configuration of endpoints */

void weft_model_conf_read(struct weft_model_conf *to, const struct weft_conf *from, double bcopy_bw,
			  const struct weft_proto *const *protos)
{
	memset(to, 0, sizeof(*to));
	to->protos = protos;
	to->bcopy_bw = from->bcopy_bw > 0 ? from->bcopy_bw : bcopy_bw;
	to->perf_diff = from->rndv_perf_diff;
	to->rndv_thresh = from->rndv_thresh;
	to->zcopy_thresh = from->lane.zcopy ? from->zcopy_thresh : SIZE_MAX;
	to->multi_eager_limit = from->multi_eager_limit;
	to->max_eager_lanes = from->max_eager_lanes;
	to->max_rndv_lanes = from->max_rndv_lanes;
	to->rndv_scheme = from->rndv_scheme;
	to->atomic_device = from->atomic_device == 1;
}

void weft_ep_config_fill(struct weft_ep_config *config, enum weft_op op, weft_buf buf)
{
	struct weft_proto_key key = {op, buf};

	weft_proto_choose(&config->model, &key, &config->select[op][buf], NULL, 0);
}

const struct weft_proto_range *weft_ep_config_variant(struct weft_ep_config *config,
						      const struct weft_proto_key *key,
						      size_t length)
{
	struct weft_proto_variant *v = config->variants;

	while (v && (v->key.op != key->op || v->key.buf != key->buf || v->key.lacks != key->lacks))
		v = v->next;
	if (!v) {
		/* Operations, buffer types and needs bound the number of variants: few. */
		v = malloc(sizeof(*v));
		if (!v)
			return NULL;
		v->key = *key;
		weft_proto_choose(&config->model, key, &v->select, NULL, 0);
		v->next = config->variants;
		config->variants = v;
	}
	return weft_proto_range(&v->select, length);
}

static struct weft_ep_config *config_new(const struct weft_model *model)
{
	struct weft_ep_config *config = calloc(1, sizeof(*config));

	if (!config)
		return NULL;
	config->model = *model;
	/* The hot path uses the selections for contiguous buffers without a check. */
	for (unsigned int op = 0; op < WEFT_NUM_OPS; op++) {
		weft_ep_config_fill(config, (enum weft_op)op, WEFT_BUF_CONTIG);
		weft_ep_config_fill(config, (enum weft_op)op, WEFT_BUF_CONTIG | WEFT_BUF_REG);
	}
	return config;
}

struct weft_ep_config *weft_ep_config_get(struct weft_ep_configs *list,
					  const struct weft_model *model)
{
	struct weft_ep_config *config;

	/* The list is short, because measured values are rounded coarsely (wireup/select.c). */
	LIST_FOREACH(config, list, link) {
		if (memcmp(&config->model, model, sizeof(*model)) == 0) {
			config->refs++;
			return config;
		}
	}
	config = config_new(model);
	if (!config)
		return NULL;
	config->refs = 1;
	LIST_INSERT_HEAD(list, config, link);
	return config;
}

void weft_ep_config_put(struct weft_ep_config *config)
{
	if (!config || --config->refs)
		return;
	LIST_REMOVE(config, link);
	while (config->variants) {
		struct weft_proto_variant *v = config->variants;

		config->variants = v->next;
		free(v);
	}
	free(config);
}
