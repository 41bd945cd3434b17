/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Native reads of a fetch. A lane writes into the user's memory until the read has ended, even if
 * the fetch has failed. So the request ends after its reads.
 */

#include <errno.h>

#include "core/lane_show.h"
#include "mem/mem.h"
#include "rndv/rndv.h"

/* For captures: a read is posted, or has succeeded. */
static void show_read(const struct weft_fetch *f, const struct weft_pull_range *a, bool over)
{
	struct weft_lane_ep *lane_ep = f->me->lanes[a->lane].lane_ep;
	const struct weft_shown_native n = {
		.kind = WEFT_RECORD_READ,
		.length = a->left,
		.offset = f->offer.offset + a->offset,
		.key = f->offer.key[a->lane],
		.local = a->offset,
		.ref_index = weft_get32(f->offer.sreq.index),
		.ref_generation = weft_get32(f->offer.sreq.generation),
	};

	if (lane_ep && weft_lanes_are_shown())
		weft_shown_native(lane_ep, &n, over);
}

static void read_done(struct weft_lane_comp *comp, int status)
{
	struct weft_pull_range *a = container_of(comp, struct weft_pull_range, comp);
	struct weft_fetch *f = a->fetch;
	struct weft_msg_worker *mw = f->req->mw;
	uint64_t off = a->offset, len = a->left;
	uint8_t lane = a->lane;

	f->reads--;
	if (status == 0) {
		show_read(f, a, true);
		weft_lane_read(f->me, lane, len);
	}
	if (status && !f->over) {
		/* The key or the lane may be the cause: the bytes are then pulled. */
		f->native &= ~(1u << lane);
		mw->count.native_failed++;
	}
	weft_rndv_pull_read(a, status == 0);
	if (f->over) {
		if (f->reads == 0)
			weft_rndv_fetch_reads_over(f);
		return;
	}
	if (status == 0 && weft_rx_note(f->me, &f->got, off, len) == 0)
		weft_rndv_fetch_progress(f);
	if (!TAILQ_EMPTY(&mw->rndv->fetching))
		weft_rndv_pump(mw);
}

int weft_rndv_native_read(struct weft_fetch *f, struct weft_pull_range *a)
{
	struct weft_lane_ep *lane_ep = f->me->lanes[a->lane].lane_ep;
	const struct iovec iov = {f->req->dt.buf + a->offset, a->left};
	int rc;

	a->comp.done = read_done;
	rc = lane_ep->ops->get_zcopy(lane_ep, &iov, 1,
				     f->mem ? weft_mem_lane_of(f->mem, lane_ep->iface) : NULL,
				     f->offer.offset + a->offset, f->offer.key[a->lane], &a->comp);
	if (rc == 0) {
		show_read(f, a, false);
		f->reads++;
	}
	return rc;
}
