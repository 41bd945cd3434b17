/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "core/config.h"
#include "proto/cost.h"

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

/* The fragments of one round. */
struct round {
	uint32_t lanes;
	size_t payload;     /* of one round */
	unsigned int zcopy; /* lanes that send from user memory */
};

static struct round round_of(const struct weft_model *m, uint32_t lanes, size_t hdr, weft_buf buf)
{
	size_t from = weft_cost_zcopy_from(m);
	struct round r = {0};

	for (uint32_t left = lanes; left; left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(left);
		size_t max = weft_cost_copy_max(m, i, hdr), z = weft_cost_zcopy_max(m, i, hdr, buf);
		bool zcopy = z && (z >= from || !max);

		if (zcopy && z > max)
			max = z;
		if (!max)
			continue;
		r.lanes |= 1u << i;
		r.payload += max;
		r.zcopy += zcopy && max >= from;
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

/* Time of drivers' copies at both CPUs, s/byte, and of lanes with a wire. */
struct moved {
	double send, recv;
	double wire;  /* busy for one round, s */
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

	if (!r.lanes) {
		snprintf(cv->why, sizeof(cv->why), "no lane carries a header of %zu bytes and data",
			 hdr);
		return -ENOTSUP;
	}
	/* A single fragment goes over the lowest-latency lane, if that is in the set. */
	single = r.lanes >> m->am_lane & 1 ? m->am_lane : (unsigned int)__builtin_ctz(r.lanes);
	one = &m->lanes[single];
	weft_curve_lanes(cv, m, r.lanes);
	weft_lanes_sum(m, r.lanes, &sum);
	cv->fragment = weft_cost_copy_max(m, single, hdr);
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

		rate += is ? m->conf.bcopy_bw : l->bandwidth;
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
