/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which protocol for which message: per operation and kind of buffer an array {max size, protocol}
 * that a send looks through.
 *
 * This is the seat of the cost model: weft_proto_select_build() is the only function that decides.
 * For now it obeys thresholds from the configuration, bounded by what the lanes can carry; the
 * model will fill the same arrays.
 */

#include <stdint.h>

#include "msg.h"

/* From here on sending out of user memory beats copying, where nothing is known better. */
#define ZCOPY_THRESH_AUTO (8u << 10)

static void add(struct weft_proto_select *sel, size_t max, const struct weft_proto *proto)
{
	struct weft_proto_range *last = sel->num ? &sel->ranges[sel->num - 1] : NULL;

	if (last && max <= last->max)
		return;
	if (last && last->proto == proto) {
		last->max = max;
		return;
	}
	sel->ranges[sel->num++] = (struct weft_proto_range){max, proto};
}

static size_t less(size_t max, size_t hdr)
{
	return max > hdr ? max - hdr : 0;
}

static void build_one(struct weft_msg_ep *me, struct weft_proto_select *sel, enum weft_op op,
		      enum weft_buf_type buf)
{
	const struct weft_msg_conf *conf = &me->mw->conf;
	const struct weft_msg_lane *l = &me->lanes[me->am_lane];
	size_t hdr = op == WEFT_OP_TAG_SEND_SYNC ? sizeof(struct weft_wire_eager_sync)
						 : sizeof(struct weft_wire_eager);
	bool contig = buf == WEFT_BUF_CONTIG || buf == WEFT_BUF_CONTIG_REG;
	bool zcopy = contig && l->max_zcopy && hdr <= l->max_zcopy_hdr &&
		     (l->zcopy_any || buf == WEFT_BUF_CONTIG_REG);
	size_t eager_end = conf->rndv_thresh ? conf->rndv_thresh - 1 : 0;
	size_t small = less(l->max_bcopy > l->max_short ? l->max_bcopy : l->max_short, hdr);

	sel->num = 0;
	/* Empty messages have no data to ask for: they are eager whatever the threshold. */
	if (contig && l->max_short >= hdr)
		add(sel, less(l->max_short, hdr) < eager_end ? less(l->max_short, hdr) : eager_end,
		    &weft_proto_eager_short);
	if (zcopy && conf->zcopy_thresh && conf->zcopy_thresh - 1 < small)
		small = conf->zcopy_thresh - 1;
	add(sel, small < eager_end ? small : eager_end, &weft_proto_eager_bcopy);
	if (zcopy && less(l->max_zcopy, hdr) >= conf->zcopy_thresh)
		add(sel, less(l->max_zcopy, hdr) < eager_end ? less(l->max_zcopy, hdr) : eager_end,
		    &weft_proto_eager_zcopy);
	add(sel, conf->multi_eager_limit < eager_end ? conf->multi_eager_limit : eager_end,
	    &weft_proto_multi_eager);
	add(sel, SIZE_MAX, &weft_proto_rndv);
}

/* The fastest lanes, at most @max of them. */
static uint32_t best_lanes(const struct weft_msg_ep *me, unsigned int max)
{
	uint32_t left = me->lanes_up, mask = 0;

	while (left && max--) {
		int best = -1;

		for (uint32_t m = left; m; m &= m - 1) {
			int i = __builtin_ctz(m);

			if (best < 0 || me->lanes[i].per_byte < me->lanes[best].per_byte)
				best = i;
		}
		mask |= 1u << best;
		left &= ~(1u << best);
	}
	return mask;
}

void weft_proto_select_build(struct weft_msg_ep *me)
{
	me->eager_lanes = best_lanes(me, me->mw->conf.max_eager_lanes);
	me->rndv_lanes = best_lanes(me, me->mw->conf.max_rndv_lanes);
	for (int op = 0; op < 2; op++) {
		for (int buf = 0; buf < WEFT_NUM_BUF; buf++)
			build_one(me, &me->select[op][buf], (enum weft_op)op,
				  (enum weft_buf_type)buf);
	}
}

void weft_msg_conf_read(struct weft_msg_conf *to, const struct weft_conf *from)
{
	*to = (struct weft_msg_conf){
		.rndv_thresh = from->rndv_thresh,
		.zcopy_thresh = from->zcopy_thresh == WEFT_CONF_AUTO ? ZCOPY_THRESH_AUTO
								     : from->zcopy_thresh,
		.multi_eager_limit = from->multi_eager_limit,
		.min_chunk = from->min_chunk ? from->min_chunk : 1,
		.unexp_limit = from->unexp_limit,
		.eager_credit = from->eager_credit,
		.max_eager_lanes = from->max_eager_lanes,
		.max_rndv_lanes = from->max_rndv_lanes,
		.seq_start = from->seq_start,
	};
	/*
	 * Until the model computes a crossing, the cap decides: rendezvous begins where multi-eager
	 * ends.
	 */
	if (from->rndv_thresh == WEFT_CONF_AUTO)
		to->rndv_thresh =
			from->multi_eager_limit < SIZE_MAX ? from->multi_eager_limit + 1 : SIZE_MAX;
	if (!from->lane.zcopy)
		to->zcopy_thresh = SIZE_MAX;
}
