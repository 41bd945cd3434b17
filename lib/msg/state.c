/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocols of an endpoint: its lanes as the model from which protocols are chosen
 * (proto/proto.h), and the result in the fields that the hot paths read. Both ends agreed at
 * wire-up on values that must be equal at both (wireup/lanes.c); sizes are the limits of this end
 * and of the connection.
 */

#include "msg/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/host.h"
#include "proto/proto.h"

/* A small number for a name: the position of the first lane with the same name. */
static uint32_t same_as(const struct weft_msg_ep *me, unsigned int lane, size_t field)
{
	const char *mine = (const char *)&me->lanes[lane].lane_ep->iface->attr + field;

	for (unsigned int i = 0; i < lane; i++) {
		if (!(me->lanes_up >> i & 1))
			continue;
		if (mine[0] &&
		    strcmp((const char *)&me->lanes[i].lane_ep->iface->attr + field, mine) == 0)
			return i;
	}
	return lane;
}

static void model_lane(const struct weft_msg_ep *me, unsigned int i, struct weft_model_lane *out)
{
	const struct weft_ep_lane_info *info = &me->ep->lane_info[i];
	const struct weft_msg_lane *l = &me->lanes[i];
	const struct weft_lane_attr *attr = &l->lane_ep->iface->attr;
	const struct weft_ep_lane *lane = &me->ep->lanes[i];

	out->bandwidth = lane->bandwidth > 0 ? lane->bandwidth : 1e9;
	out->latency = (double)lane->latency > info->cpu ? (double)lane->latency - info->cpu : 0;
	out->send_overhead = (double)info->send_overhead;
	out->recv_overhead = (double)info->recv_overhead;
	out->reg_cost = (double)info->reg_cost;
	out->reg_growth = (double)info->reg_growth;
	out->max_short = l->max_short;
	out->max_bcopy = l->max_bcopy;
	out->max_zcopy = l->max_zcopy;
	out->max_zcopy_hdr = l->max_zcopy_hdr;
	out->min_zcopy = l->min_zcopy;
	out->max_iov = l->max_iov;
	out->get_bandwidth = attr->get_bandwidth;
	out->max_get = attr->max_get;
	out->max_put = attr->max_put;
	out->max_rma_iov = attr->max_rma_iov;
	out->features =
		attr->features & ~(l->lane_ep->lacks | WEFT_LANE_F_COPIES | WEFT_LANE_F_MEMORY |
				   WEFT_LANE_F_BW_SET | WEFT_LANE_F_LAT_SET);
	out->features |= info->features;
	out->domain = same_as(me, i, offsetof(struct weft_lane_attr, domain));
	out->device = same_as(me, i, offsetof(struct weft_lane_attr, device));
}

static void model_of(const struct weft_msg_ep *me, struct weft_model *m)
{
	/* Models are compared byte by byte, including padding. */
	memset(m, 0, sizeof(*m));
	for (unsigned int i = 0; i < WEFT_MAX_LANES; i++)
		if (me->lanes_up >> i & 1)
			model_lane(me, i, &m->lanes[i]);
	m->lanes_up = me->lanes_up;
	m->am_lane = me->am_lane;
	memcpy(&m->conf, &me->mw->conf.model, sizeof(m->conf));
	if (me->ep->bcopy_bw > 0)
		m->conf.bcopy_bw = me->ep->bcopy_bw;
	m->conf.forced = me->forced;
}

/* Lanes through memory whose reads by the kernel have less than @p part of their bandwidth. */
static uint32_t slower_reads(const struct weft_model *m, double part)
{
	uint32_t mask = 0;

	for (uint32_t left = m->lanes_up; left; left &= left - 1) {
		const struct weft_model_lane *l = &m->lanes[__builtin_ctz(left)];

		if ((l->features & WEFT_LANE_F_MEMORY) && l->get_bandwidth > 0 &&
		    l->get_bandwidth < l->bandwidth * part)
			mask |= left & -left;
	}
	return mask;
}

static void choose_reads(struct weft_msg_ep *me, const struct weft_model *m)
{
	me->slow_reads = me->stream_reads = 0;
	if (m->conf.rndv_scheme != WEFT_RNDV_AUTO)
		return;
	me->slow_reads = slower_reads(m, 1);
	/* The lane's bandwidth is that of copies in a cache: between cores it is about half. */
	me->stream_reads = me->slow_reads & ~slower_reads(m, 0.5);
}

int weft_proto_select_build(struct weft_msg_ep *me)
{
	const struct weft_proto_key key = {WEFT_OP_TAG_SEND, WEFT_BUF_CONTIG};
	struct weft_ep_config *config, *before = me->config;
	struct weft_model m;
	bool changed;

	model_of(me, &m);
	config = weft_ep_config_get(&me->mw->configs, &m);
	if (!config)
		return -ENOMEM;
	changed = before && config != before;
	weft_ep_config_put(before);
	me->config = config;
	me->eager_lanes = weft_lanes_choose(&m, &weft_lanes_eager, &key, NULL, 0);
	me->rndv_lanes = weft_lanes_choose(&m, &weft_lanes_rndv_am, &key, NULL, 0);
	choose_reads(me, &m);
	me->zcopy_from = weft_cost_zcopy_from(&m);
	return changed;
}

/*
 * A worker's share of a quarter of the memory for this process, if each processor runs one worker;
 * at least 64 MiB, but no more than that quarter
 */
static size_t memory_share(void)
{
	const size_t least = 64u << 20;
	size_t memory = weft_memory_limit(), share;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	if (memory == 0 || cpus <= 0)
		return least;
	share = memory / 4 / (size_t)cpus;
	/* In a small control group 64 MiB are too much. */
	return share > least ? share : least < memory / 4 ? least : memory / 4;
}

void weft_msg_conf_read(struct weft_msg_conf *to, const struct weft_conf *from, double bcopy_bw,
			const struct weft_proto *const *protos)
{
	*to = (struct weft_msg_conf){
		.min_chunk = from->min_chunk ? from->min_chunk : 1,
		.unexp_limit = from->unexp_limit,
		.unexp_memory =
			from->unexp_memory == WEFT_CONF_AUTO ? memory_share() : from->unexp_memory,
		.eager_credit = from->eager_credit,
		.seq_start = from->seq_start,
		.rndv_scheme = (enum weft_rndv_scheme)from->rndv_scheme,
		.rndv_min_piece = from->rndv_min_piece,
		.rndv_window = from->rndv_window,
		.rndv_limit = from->rndv_limit,
		.rma_max_gets = from->rma_max_gets,
		.zcopy = from->lane.zcopy,
		.atomic_device = from->atomic_device == 1,
	};
	weft_model_conf_read(&to->model, from, bcopy_bw, protos);
}

/* ------------------------------------------------------------------ queries */

/* Reports the protocol that a message of a connected endpoint would use. plan/plan.c lists all. */

static double time_of(const struct weft_msg_ep *me, const struct weft_proto_key *key,
		      const struct weft_proto *proto, size_t length)
{
	struct weft_curve cv;

	if (weft_proto_curve(&me->config->model, key, proto, &cv) < 0 || length < cv.min ||
	    length > cv.max)
		return 0;
	return weft_curve_at(&cv, length);
}

static int query_chosen(const struct weft_msg_ep *me, enum weft_op op, size_t length,
			struct weft_proto_info *full)
{
	const struct weft_proto_key key = {op, weft_buf_usual(op)};
	const struct weft_proto_select *sel = weft_ep_config_select(me->config, op, key.buf);
	const struct weft_proto_range *r = sel->ranges;

	while (length > r->max)
		r++;
	if (!r->proto)
		return -EOPNOTSUPP;
	full->min = r > sel->ranges ? r[-1].max + 1 : 0;
	full->max = r->max;
	full->lanes = r->lanes;
	full->chosen = true;
	full->usable = true;
	full->time = time_of(me, &key, r->proto, length);
	full->name = r->proto->name;
	full->desc = r->proto->desc;
	full->why = "";
	return 0;
}

int weft_ep_query_proto(struct weft_ep *ep, enum weft_op op, size_t length,
			struct weft_proto_info *info)
{
	struct weft_proto_info full = {.min = 0};
	int rc = -ENOTCONN;

	if ((unsigned int)op >= WEFT_OP_LAST)
		return -EINVAL;
	weft_worker_lock(ep->worker);
	if (ep->msg->up)
		rc = query_chosen(ep->msg, op, length, &full);
	weft_worker_unlock(ep->worker);
	return rc < 0 ? rc : weft_struct_out(info, &full, sizeof(full));
}
