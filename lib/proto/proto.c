/* SPDX-License-Identifier: BSD-3-Clause */

#include "proto/proto.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/config.h"
#include "core/wire.h"
#include "proto/select.h"

/* ------------------------------------------------------------------ costs: parts */

size_t weft_cost_zcopy_from(const struct weft_model *m)
{
	size_t from;

	if (m->conf.zcopy_thresh != WEFT_CONF_AUTO)
		return m->conf.zcopy_thresh;
	from = (size_t)ceil(WEFT_COST_ZCOPY * m->conf.bcopy_bw);
	return from < WEFT_ZCOPY_MOST ? from : WEFT_ZCOPY_MOST;
}

static size_t less(size_t max, size_t hdr)
{
	return max > hdr ? max - hdr : 0;
}

size_t weft_cost_zcopy_max(const struct weft_model *m, unsigned int lane, size_t hdr, weft_buf buf)
{
	const struct weft_model_lane *l = &m->lanes[lane];

	if (!(l->features & WEFT_LANE_F_ZCOPY) || hdr > l->max_zcopy_hdr ||
	    weft_buf_class(buf) == WEFT_DT_GENERIC || weft_buf_iovs(buf) > l->max_iov)
		return 0;
	if ((l->features & WEFT_LANE_F_ZCOPY_REG) && !(buf & WEFT_BUF_REG))
		return 0;
	/*
	 * The model has one cost for fragments of all messages. A lane whose zero copy pays only
	 * for messages longer than a fragment counts as one that copies.
	 */
	if (l->min_zcopy > l->max_zcopy)
		return 0;
	return less(l->max_zcopy, hdr);
}

size_t weft_cost_copy_max(const struct weft_model *m, unsigned int lane, size_t hdr)
{
	const struct weft_model_lane *l = &m->lanes[lane];

	return less(l->max_bcopy > l->max_short ? l->max_bcopy : l->max_short, hdr);
}

void weft_cost_control(struct weft_curve *cv, const struct weft_model *m, const char *name)
{
	const struct weft_model_lane *l = &m->lanes[m->am_lane];

	weft_curve_once(cv, WEFT_STAGE_SEND_CPU, (struct weft_linear){l->send_overhead, 0}, name,
			"lowest-latency lane");
	weft_curve_once(cv, WEFT_STAGE_LATENCY, (struct weft_linear){l->latency, 0}, name,
			"lowest-latency lane");
	weft_curve_once(cv, WEFT_STAGE_RECV_CPU, (struct weft_linear){l->recv_overhead, 0}, name,
			"lowest-latency lane");
}

void weft_cost_register(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes,
			enum weft_stage stage)
{
	struct weft_lanes_sum sum;

	weft_lanes_sum(m, lanes, &sum);
	weft_curve_once(cv, stage, (struct weft_linear){sum.reg_cost, sum.reg_growth}, "register",
			"each domain once");
}

struct round {
	uint32_t lanes;
	size_t payload;     /* bytes */
	unsigned int zcopy; /* lanes that send from user memory */
};

/* @param[out] zcopy  the lane sends it from user memory @return bytes; 0 = the lane has no room */
static size_t fragment_of(const struct weft_model *m, unsigned int lane, size_t hdr, weft_buf buf,
			  bool *zcopy)
{
	size_t from = weft_cost_zcopy_from(m), max = weft_cost_copy_max(m, lane, hdr);
	size_t z = weft_cost_zcopy_max(m, lane, hdr, buf);
	bool may = z && (z >= from || !max);

	if (may && z > max)
		max = z;
	*zcopy = may && max >= from;
	return max;
}

static struct round round_of(const struct weft_model *m, uint32_t lanes, size_t hdr, weft_buf buf)
{
	struct round r = {0};
	bool zcopy;

	for (uint32_t left = lanes; left; left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(left);
		size_t max = fragment_of(m, i, hdr, buf, &zcopy);

		if (!max)
			continue;
		r.lanes |= 1u << i;
		r.payload += max;
		r.zcopy += zcopy;
	}
	return r;
}

static void add_cpu(struct weft_curve *cv, const struct weft_model *m, const struct round *r,
		    const struct weft_lanes_sum *sum, const struct weft_model_lane *one)
{
	double copied = (double)(sum->num - r->zcopy) / sum->num, copy = copied / m->conf.bcopy_bw;
	double piece = copied > 0 ? WEFT_COST_PACK : WEFT_COST_ZCOPY;
	double pieces = (sum->num - r->zcopy) * WEFT_COST_PACK + r->zcopy * WEFT_COST_ZCOPY;
	char note[64];

	snprintf(note, sizeof(note), "%u lane%s, one fragment each: sum", sum->num,
		 sum->num == 1 ? "" : "s");
	weft_curve_round(cv, WEFT_STAGE_SEND_CPU,
			 (struct weft_linear){one->send_overhead + piece, 0},
			 (struct weft_linear){sum->send_overhead + pieces, 0}, "post fragments",
			 note);
	weft_curve_round(cv, WEFT_STAGE_SEND_COPY, (struct weft_linear){0, copy},
			 (struct weft_linear){0, copy}, "copy into frames",
			 r->zcopy ? "some lanes send from user memory" : "one CPU");
	weft_curve_round(cv, WEFT_STAGE_RECV_CPU, (struct weft_linear){one->recv_overhead, 0},
			 (struct weft_linear){sum->recv_overhead, 0}, "take in fragments", note);
	weft_curve_round(cv, WEFT_STAGE_RECV_COPY, (struct weft_linear){0, 1 / m->conf.bcopy_bw},
			 (struct weft_linear){0, 1 / m->conf.bcopy_bw}, "copy to the user's buffer",
			 "one CPU");
}

/* Times of the drivers' copies at both CPUs, s/byte; and times on the wire, except in memory. */
struct moved {
	double send, recv;
	double wire;  /* s for which the wire is busy in a round */
	double first; /* single fragments on the wire, s/byte */
};

static struct moved moved_of(const struct weft_curve *cv, const struct weft_model *m,
			     const struct round *r, const struct weft_model_lane *one)
{
	struct moved is = {.first = one->features & WEFT_LANE_F_MEMORY ? 0 : 1 / one->bandwidth};

	for (uint32_t left = r->lanes; left; left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(left);
		const struct weft_model_lane *l = &m->lanes[i];
		double wire = cv->share[i] * (double)r->payload / l->bandwidth;

		if (l->features & WEFT_LANE_F_COPIES)
			is.send += cv->share[i] / m->conf.bcopy_bw;
		if (l->features & WEFT_LANE_F_MEMORY)
			is.recv += cv->share[i] / l->bandwidth;
		else if (l->features & WEFT_LANE_F_COPIES)
			is.recv += cv->share[i] / m->conf.bcopy_bw;
		if (!(l->features & WEFT_LANE_F_MEMORY) && wire > is.wire)
			is.wire = wire;
	}
	return is;
}

static void add_moved(struct weft_curve *cv, const struct moved *is)
{
	if (is->send > 0)
		weft_curve_round(cv, WEFT_STAGE_SEND_COPY, (struct weft_linear){0, is->send},
				 (struct weft_linear){0, is->send}, "drivers copy frames",
				 "one CPU");
	if (is->recv > 0)
		weft_curve_round(cv, WEFT_STAGE_RECV_COPY, (struct weft_linear){0, is->recv},
				 (struct weft_linear){0, is->recv}, "drivers take frames in",
				 "one CPU");
}

int weft_cost_fragments(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes,
			size_t hdr, weft_buf buf)
{
	struct round r = round_of(m, lanes, hdr, buf);
	const struct weft_model_lane *one;
	struct weft_lanes_sum sum;
	struct moved is;
	unsigned int single;
	char note[64];
	bool zcopy;

	if (!r.lanes) {
		snprintf(cv->why, sizeof(cv->why), "no lane carries a header of %zu bytes and data",
			 hdr);
		return -ENOTSUP;
	}
	single = r.lanes >> m->am_lane & 1 ? m->am_lane : (unsigned int)__builtin_ctz(r.lanes);
	one = &m->lanes[single];
	weft_curve_lanes(cv, m, r.lanes);
	weft_lanes_sum(m, r.lanes, &sum);
	cv->fragment = fragment_of(m, single, hdr, buf, &zcopy);
	cv->round = r.payload;
	add_cpu(cv, m, &r, &sum, one);
	snprintf(note, sizeof(note), "%u lane%s together %.4g GB/s", sum.num,
		 sum.num == 1 ? "" : "s", sum.bandwidth / 1e9);
	is = moved_of(cv, m, &r, one);
	add_moved(cv, &is);
	/* In the first round each lane is busy for a whole fragment, even with less data. */
	if (is.first > 0 || is.wire > 0)
		weft_curve_round(cv, WEFT_STAGE_WIRE, (struct weft_linear){0, is.first},
				 (struct weft_linear){is.wire, 0}, "data on the wire", note);
	weft_curve_once(cv, WEFT_STAGE_LATENCY, (struct weft_linear){sum.latency, 0}, "data",
			"the slowest lane");
	return 0;
}

double weft_cost_native_rate(const struct weft_model *m, uint32_t lanes, bool *in_memory)
{
	double rate = 0;

	*in_memory = false;
	for (uint32_t left = lanes; left; left &= left - 1) {
		const struct weft_model_lane *l = &m->lanes[__builtin_ctz(left)];
		bool is = l->features & WEFT_LANE_F_MEMORY;
		double most = is ? m->conf.bcopy_bw : l->bandwidth;

		rate += l->get_bandwidth > 0 ? fmin(l->get_bandwidth, most) : most;
		*in_memory = *in_memory || is;
	}
	return rate;
}

void weft_cost_native(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes,
		      enum weft_stage poster)
{
	struct weft_lanes_sum sum;
	bool in_memory;
	char note[64];

	weft_lanes_sum(m, lanes, &sum);
	sum.bandwidth = weft_cost_native_rate(m, lanes, &in_memory);
	if (in_memory)
		weft_curve_once(cv, poster, (struct weft_linear){WEFT_COST_KERNEL, 0},
				"have the kernel copy", NULL);
	snprintf(note, sizeof(note), "%u lane%s, sum", sum.num, sum.num == 1 ? "" : "s");
	weft_curve_once(cv, poster, (struct weft_linear){sum.send_overhead, 0}, "post pieces",
			note);
	snprintf(note, sizeof(note), "%u lane%s together %.4g GB/s", sum.num,
		 sum.num == 1 ? "" : "s", sum.bandwidth / 1e9);
	weft_curve_once(cv, WEFT_STAGE_WIRE, (struct weft_linear){0, 1 / sum.bandwidth},
			"data on the wire", note);
	weft_curve_once(cv, WEFT_STAGE_LATENCY, (struct weft_linear){sum.latency, 0}, "data",
			"the slowest lane");
}

/* ------------------------------------------------------------------ costs: rendezvous */

enum how { BY_GET, BY_PUT, BY_AM };

/*
 * WEFT_RNDV_SCHEME: auto means get, natively or by pulls, which every lane supports. Without an
 * offer of get, auto is the faster of the other schemes; every sender supports data as messages.
 */
static bool wanted(const struct weft_model *m, const struct weft_proto_key *key, enum how how,
		   struct weft_curve *cv)
{
	static const char *const names[] = {"auto", "get", "put", "am"};
	uint32_t scheme = m->conf.rndv_scheme;
	bool yes;

	if (key->lacks & WEFT_NEEDS_PULL)
		yes = how == BY_PUT ? scheme == WEFT_RNDV_AUTO || scheme == WEFT_RNDV_PUT
				    : how == BY_AM;
	else if (scheme == WEFT_RNDV_AUTO || scheme == WEFT_RNDV_GET)
		yes = how == BY_GET;
	else /* lanes that cannot write get the data as messages */
		yes = how == BY_AM || (how == BY_PUT && scheme == WEFT_RNDV_PUT);
	if (!yes)
		snprintf(cv->why, sizeof(cv->why), "WEFT_RNDV_SCHEME=%s excludes it",
			 scheme < 4 ? names[scheme] : "?");
	return yes;
}

static void begin(const struct weft_model *m, const struct weft_proto_key *key,
		  struct weft_curve *cv)
{
	weft_curve_begin(cv, 0, SIZE_MAX);
	cv->scale = 1 - m->conf.perf_diff / 100;
	weft_curve_once(cv, WEFT_STAGE_SEND_CPU, (struct weft_linear){WEFT_COST_RNDV, 0},
			"keep the request", NULL);
	weft_curve_once(cv, WEFT_STAGE_RECV_CPU,
			(struct weft_linear){WEFT_COST_RNDV + m->lanes[m->am_lane].send_overhead,
					     0},
			"end, send ATS", NULL);
	if (key->op != WEFT_OP_RNDV_DATA)
		weft_cost_control(cv, m, "RTS");
}

int weft_rndv_cost_am(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		      struct weft_curve *cv)
{
	int rc;

	if (!wanted(m, key, BY_AM, cv))
		return -ENOTSUP;
	begin(m, key, cv);
	weft_cost_control(cv, m, "RTR");
	rc = weft_cost_fragments(cv, m, lanes, sizeof(struct weft_wire_data), key->buf);
	if (rc == 0)
		weft_curve_end(cv);
	return rc;
}

int weft_rndv_cost_pull(const struct weft_model *m, const struct weft_proto_key *key,
			uint32_t lanes, struct weft_curve *cv)
{
	int rc;

	if (!wanted(m, key, BY_GET, cv))
		return -ENOTSUP;
	/*
	 * Native reads leave both CPUs to the program, an advantage that the computed times do not
	 * contain; and the sender has already registered the memory.
	 */
	if (key->op == WEFT_OP_RNDV_DATA && !(key->lacks & WEFT_NEEDS_NATIVE) &&
	    weft_buf_class(key->buf) == WEFT_DT_CONTIG &&
	    weft_lanes_choose(m, &weft_lanes_rndv_get, key, NULL, 0)) {
		snprintf(cv->why, sizeof(cv->why),
			 "data/get reads the memory natively, and pulls over other lanes");
		return -ENOTSUP;
	}
	begin(m, key, cv);
	/* Only the first request takes time: later ones are sent while data arrives. */
	weft_cost_control(cv, m, "pull request");
	rc = weft_cost_fragments(cv, m, lanes, sizeof(struct weft_wire_data), key->buf);
	if (rc == 0)
		weft_curve_end(cv);
	return rc;
}

static int cost_rma(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		    struct weft_curve *cv, enum weft_stage poster)
{
	uint32_t all;

	if (weft_buf_class(key->buf) != WEFT_DT_CONTIG) {
		snprintf(cv->why, sizeof(cv->why),
			 "only contiguous memory is read and written remotely");
		return -ENOTSUP;
	}
	/*
	 * Lanes without native operations carry a share of the data as messages (rndv/pull.c,
	 * rndv/sender.c). The copies of these messages take no time of their own: the native lanes'
	 * wires are busy for as long. Only the receiver's choice counts these lanes.
	 */
	all = lanes;
	if (key->op == WEFT_OP_RNDV_DATA)
		all |= weft_lanes_choose(m, &weft_lanes_rndv_am, key, NULL, 0);
	weft_curve_lanes(cv, m, all);
	/*
	 * The receiver, which decides, uses its own buffer type; the sender's memory is registered,
	 * or there are no keys.
	 */
	if (key->op != WEFT_OP_RNDV_DATA) {
		if (!(key->buf & WEFT_BUF_REG))
			weft_cost_register(cv, m, lanes, WEFT_STAGE_SEND_REG);
		weft_cost_register(cv, m, lanes, WEFT_STAGE_RECV_REG);
	} else if (!(key->buf & WEFT_BUF_REG)) {
		weft_cost_register(cv, m, lanes, WEFT_STAGE_RECV_REG);
	}
	weft_cost_native(cv, m, all, poster);
	return 0;
}

int weft_rndv_cost_get(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv)
{
	struct weft_lanes_sum sum;
	int rc;

	if (!wanted(m, key, BY_GET, cv))
		return -ENOTSUP;
	begin(m, key, cv);
	rc = cost_rma(m, key, lanes, cv, WEFT_STAGE_RECV_CPU);
	if (rc)
		return rc;
	weft_lanes_sum(m, lanes, &sum);
	weft_curve_once(cv, WEFT_STAGE_LATENCY, (struct weft_linear){sum.latency, 0},
			"read requests", "the slowest lane");
	weft_curve_end(cv);
	return 0;
}

int weft_rndv_cost_put(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv)
{
	int rc;

	if (!wanted(m, key, BY_PUT, cv))
		return -ENOTSUP;
	begin(m, key, cv);
	weft_cost_control(cv, m, "RTR");
	rc = cost_rma(m, key, lanes, cv, WEFT_STAGE_SEND_CPU);
	if (rc)
		return rc;
	/* The writes must be complete, which takes a reply, before the message that reports it. */
	weft_cost_control(cv, m, "acknowledgement of the writes");
	weft_cost_control(cv, m, "all is written");
	weft_curve_end(cv);
	return 0;
}

/* ------------------------------------------------------------------ names of stages */

const char *const weft_stage_names[WEFT_NUM_STAGES] = {
	[WEFT_STAGE_SEND_CPU] = "send CPU",
	[WEFT_STAGE_SEND_COPY] = "send copy",
	[WEFT_STAGE_SEND_REG] = "registration at the sender",
	[WEFT_STAGE_WIRE] = "wire",
	[WEFT_STAGE_RECV_CPU] = "receive CPU",
	[WEFT_STAGE_RECV_COPY] = "receive copy",
	[WEFT_STAGE_RECV_REG] = "registration at the receiver",
	[WEFT_STAGE_LATENCY] = "latency",
};

/* ------------------------------------------------------------------ curves */

/* The resource that a stage occupies. Rounds overlap between resources, never within one. */
enum resource { SENDER, WIRE, RECEIVER, NOTHING, NUM_RESOURCES };

static const enum resource resource_of[WEFT_NUM_STAGES] = {
	[WEFT_STAGE_SEND_CPU] = SENDER,   [WEFT_STAGE_SEND_COPY] = SENDER,
	[WEFT_STAGE_SEND_REG] = SENDER,   [WEFT_STAGE_WIRE] = WIRE,
	[WEFT_STAGE_RECV_CPU] = RECEIVER, [WEFT_STAGE_RECV_COPY] = RECEIVER,
	[WEFT_STAGE_RECV_REG] = RECEIVER, [WEFT_STAGE_LATENCY] = NOTHING,
};

static const enum weft_stage stage_of[NOTHING] = {
	[SENDER] = WEFT_STAGE_SEND_CPU,
	[WIRE] = WEFT_STAGE_WIRE,
	[RECEIVER] = WEFT_STAGE_RECV_CPU,
};

void weft_curve_begin(struct weft_curve *cv, size_t min, size_t max)
{
	*cv = (struct weft_curve){.min = min, .max = max, .scale = 1, .round = SIZE_MAX};
}

static void add_term(struct weft_curve *cv, const struct weft_term *term, const char *name,
		     const char *note)
{
	struct weft_term *t;

	/*
	 * More terms than fit would be a bug: the last term then has the cost of the others, too.
	 */
	if (!(term->f.c > 0) && !(term->f.m > 0))
		return;
	if (cv->num_terms == WEFT_CURVE_TERMS) {
		t = &cv->terms[WEFT_CURVE_TERMS - 1];
		t->f.c += term->f.c;
		t->f.m += term->f.m;
		return;
	}
	t = &cv->terms[cv->num_terms++];
	*t = *term;
	snprintf(t->name, sizeof(t->name), "%s", name);
	snprintf(t->note, sizeof(t->note), "%s", note ? note : "");
}

void weft_curve_once(struct weft_curve *cv, enum weft_stage stage, struct weft_linear f,
		     const char *name, const char *note)
{
	add_term(cv, &(struct weft_term){.stage = stage, .f = f}, name, note);
}

void weft_curve_round(struct weft_curve *cv, enum weft_stage stage, struct weft_linear one,
		      struct weft_linear round, const char *name, const char *note)
{
	add_term(cv, &(struct weft_term){.stage = stage, .round = true, .f = round, .one = one},
		 name, note);
}

static void add_piece(struct weft_curve *cv, size_t max, struct weft_linear f, int pace)
{
	if (max > cv->max)
		max = cv->max;
	if (max < cv->min || (cv->num_pieces && max <= cv->pieces[cv->num_pieces - 1].max))
		return;
	cv->pieces[cv->num_pieces++] = (struct weft_piece){
		.max = max,
		.f = {f.c * cv->scale, f.m * cv->scale},
		.pace = pace,
	};
}

struct sums {
	struct weft_linear once, one, first, round[NUM_RESOURCES];
};

static void add_up(const struct weft_curve *cv, struct sums *s)
{
	*s = (struct sums){.once = {0}};
	for (unsigned int i = 0; i < cv->num_terms; i++) {
		const struct weft_term *t = &cv->terms[i];
		struct weft_linear *to = t->round ? &s->round[resource_of[t->stage]] : &s->once;
		const struct weft_linear *one = t->round ? &t->one : &t->f;

		to->c += t->f.c;
		to->m += t->f.m;
		s->one.c += one->c;
		s->one.m += one->m;
		s->first.c += t->f.c;
		s->first.m += t->f.m;
	}
}

void weft_curve_end(struct weft_curve *cv)
{
	struct weft_linear rest = {0};
	double f = (double)cv->round, slope[NOTHING];
	int pace = SENDER;
	struct sums s;

	cv->num_pieces = 0;
	add_up(cv, &s);
	if (cv->round == SIZE_MAX) {
		add_piece(cv, cv->max, s.one, WEFT_PACE_ONE);
		return;
	}
	add_piece(cv, cv->fragment, s.one, WEFT_PACE_ONE);
	add_piece(cv, cv->round, s.first, WEFT_PACE_FIRST);
	/*
	 * From the second round on each resource adds its cost of a round, and the slowest one
	 * determines the time; the costs of the others are in the first round. The two pieces meet
	 * where the first round ends, at f bytes.
	 */
	for (int r = 0; r < NOTHING; r++) {
		slope[r] = s.round[r].m + s.round[r].c / f;
		if (slope[r] > slope[pace])
			pace = r;
	}
	rest.m = s.once.m + slope[pace];
	rest.c = weft_linear_at(s.first, f) - rest.m * f;
	add_piece(cv, cv->max, rest, (int)stage_of[pace]);
}

double weft_curve_at(const struct weft_curve *cv, size_t x)
{
	unsigned int i = 0;

	while (i + 1 < cv->num_pieces && x > cv->pieces[i].max)
		i++;
	return weft_linear_at(cv->pieces[i].f, (double)x);
}

/* ------------------------------------------------------------------ sets of lanes */

void weft_lanes_sum(const struct weft_model *m, uint32_t lanes, struct weft_lanes_sum *sum)
{
	*sum = (struct weft_lanes_sum){0};
	for (uint32_t left = lanes; left; left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(left);
		const struct weft_model_lane *l = &m->lanes[i];
		bool again = false;

		sum->num++;
		sum->bandwidth += l->bandwidth;
		sum->send_overhead += l->send_overhead;
		sum->recv_overhead += l->recv_overhead;
		if (l->latency > sum->latency)
			sum->latency = l->latency;
		for (uint32_t k = lanes & ((1u << i) - 1); k; k &= k - 1)
			again |= m->lanes[__builtin_ctz(k)].domain == l->domain;
		if (again)
			continue;
		sum->reg_cost += l->reg_cost;
		sum->reg_growth += l->reg_growth;
	}
}

void weft_curve_lanes(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes)
{
	struct weft_lanes_sum sum;

	weft_lanes_sum(m, lanes, &sum);
	cv->lanes = lanes;
	for (unsigned int i = 0; i < WEFT_MODEL_LANES; i++)
		cv->share[i] = lanes >> i & 1 ? m->lanes[i].bandwidth / sum.bandwidth : 0;
}

/* ------------------------------------------------------------------ lower envelope */

static bool better(const struct weft_env_line *lines, int a, int b, size_t x)
{
	double ta = weft_linear_at(lines[a].f, (double)x);
	double tb = weft_linear_at(lines[b].f, (double)x);

	return ta < tb || (!(tb < ta) && a < b);
}

/* The lowest rank of lines valid at a size, and the last size before a line begins or ends. */
struct field {
	unsigned int rank;
	bool any;
	size_t end; /* inclusive */
};

static bool valid(const struct weft_env_line *l, size_t x)
{
	return l->min <= x && x <= l->max;
}

static struct field look(const struct weft_env_line *lines, unsigned int num, size_t x)
{
	struct field f = {.end = SIZE_MAX};

	for (unsigned int i = 0; i < num; i++) {
		const struct weft_env_line *l = &lines[i];

		if (valid(l, x) && (!f.any || l->rank < f.rank)) {
			f.rank = l->rank;
			f.any = true;
		}
		if (l->min > l->max)
			continue;
		if (l->min > x && l->min - 1 < f.end)
			f.end = l->min - 1;
		if (valid(l, x) && l->max < f.end)
			f.end = l->max;
	}
	return f;
}

static int best_at(const struct weft_env_line *lines, unsigned int num, unsigned int rank, size_t x)
{
	int best = -1;

	for (unsigned int i = 0; i < num; i++) {
		if (!valid(&lines[i], x) || lines[i].rank != rank)
			continue;
		if (best < 0 || better(lines, (int)i, best, x))
			best = (int)i;
	}
	return best;
}

/*
 * The first size in (x, end] where line @p a is better than @p b, which is better at @p x. Rounding
 * may shift the intersection, so the integers around it are compared exactly. 0 = there is none
 */
static size_t overtakes(const struct weft_env_line *lines, int a, int b, size_t x, size_t end)
{
	double at = (lines[a].f.c - lines[b].f.c) / (lines[b].f.m - lines[a].f.m);
	size_t lo = x, hi = end, mid; /* b is better at lo, a at hi */

	if (!better(lines, a, b, end))
		return 0;
	if (isfinite(at) && at > (double)lo + 2 && at < (double)hi - 2) {
		mid = (size_t)at;
		if (better(lines, a, b, mid - 1))
			hi = mid - 1;
		else
			lo = mid - 1;
		if (mid + 2 < hi && better(lines, a, b, mid + 2))
			hi = mid + 2;
	}
	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (better(lines, a, b, mid))
			hi = mid;
		else
			lo = mid;
	}
	return hi;
}

static int append(const struct weft_env_line *lines, struct weft_env_range *out, unsigned int n,
		  unsigned int max_out, size_t max, int line)
{
	if (n && (out[n - 1].line == line || (line >= 0 && out[n - 1].line >= 0 &&
					      lines[out[n - 1].line].id == lines[line].id))) {
		out[n - 1].max = max;
		return (int)n;
	}
	if (n == max_out)
		return -ENOSPC;
	out[n] = (struct weft_env_range){max, line};
	return (int)n + 1;
}

int weft_envelope(const struct weft_env_line *lines, unsigned int num, struct weft_env_range *out,
		  unsigned int max_out)
{
	size_t x = 0, end, next;
	int n = 0;

	for (;;) {
		struct field f = look(lines, num, x);
		int best = f.any ? best_at(lines, num, f.rank, x) : -1;

		end = f.end;
		for (unsigned int i = 0; best >= 0 && i < num; i++) {
			if (!valid(&lines[i], x) || lines[i].rank != f.rank || (int)i == best)
				continue;
			next = overtakes(lines, (int)i, best, x, end);
			if (next)
				end = next - 1;
		}
		n = append(lines, out, (unsigned int)n, max_out, end, best);
		if (n < 0 || end == SIZE_MAX)
			return n;
		x = end + 1;
	}
}
