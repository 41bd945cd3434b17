/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fetch exists from weft_rndv_fetch() until its request has ended and no lane writes into the
 * user's memory any more: an end with native reads in flight (f->reads) waits for them. Of a
 * message that is longer than the buffer only the bytes that fit are requested; ATS completes the
 * send with success.
 */

#include <errno.h>
#include <stdlib.h>

#include "core/lane_show.h"
#include "mem/mem.h"
#include "msg/msg.h"
#include "proto/proto.h"
#include "rndv/fetch.h"
#include "rndv/pull.h"
#include "rndv/rndv.h"
#include "rndv/sender.h"

/* ------------------------------------------------------------------ offers */

void weft_rndv_offer_read(struct weft_rndv_offer *offer, struct weft_wire_ref sreq, weft_le32 flags,
			  const void *records, size_t length)
{
	offer->sreq = sreq;
	offer->flags = weft_get32(flags);
	weft_rndv_keys_read(offer, records, length);
}

void weft_rndv_send_ats(struct weft_msg_ep *me, uint8_t id, struct weft_wire_ref sreq, int status)
{
	struct weft_wire_ats ats = {.sreq = sreq, .status = weft_put32((uint32_t)-status)};

	weft_tx_ctl(me, id, &ats, sizeof(ats));
}

void weft_rndv_refuse(struct weft_msg_ep *me, struct weft_wire_ref sreq, int status)
{
	weft_rndv_send_ats(me, WEFT_WIRE_ATS, sreq, status);
}

/* ------------------------------------------------------------------ life of a fetch */

static struct weft_fetch *fetch_new(struct weft_msg_ep *me, struct weft_request *req)
{
	struct weft_msg_worker *mw = me->mw;
	struct weft_fetch *f = TAILQ_FIRST(&mw->rndv->free_fetches);

	if (f)
		TAILQ_REMOVE(&mw->rndv->free_fetches, f, link);
	else
		f = malloc(sizeof(*f));
	if (!f)
		return NULL;
	f->req = req;
	f->me = me;
	f->length = req->length < req->dt.length ? req->length : req->dt.length;
	weft_ivals_init(&f->got);
	f->next = 0;
	TAILQ_INIT(&f->ranges);
	TAILQ_INIT(&f->again);
	f->reads = 0;
	f->queued = false;
	f->over = false;
	f->pulled = f->written = false;
	f->mem = NULL;
	f->native = 0;
	weft_msg_ep_hold(me);
	return f;
}

static void fetch_free(struct weft_fetch *f)
{
	struct weft_msg_worker *mw = f->req->mw;
	struct weft_msg_ep *me = f->me;
	/*
	 * The peer's hardware may still write to the buffer, which the user gets back now. So the
	 * registration ends, and is not kept for later use.
	 */
	bool dead = f->written && f->got.covered < f->length;

	weft_rx_forget(me, &f->got);
	if (f->mem && dead)
		weft_mem_put_dead(f->mem);
	else if (f->mem)
		weft_mem_put(f->mem);
	TAILQ_INSERT_HEAD(&mw->rndv->free_fetches, f, link);
	weft_msg_ep_release(me);
}

/* @return true when the request may end now; else rndv_fetch_reads_over() ends it */
static bool fetch_end(struct weft_fetch *f)
{
	weft_rndv_pull_end(f);
	f->over = true;
	return f->reads == 0;
}

static void fetch_done(struct weft_fetch *f, bool now)
{
	struct weft_request *req = f->req;
	struct weft_msg_ep *me = f->me;

	weft_msg_ep_hold(me);
	if (!me->failed)
		weft_rndv_refuse(me, f->offer.sreq, 0);
	req->recv.fetch = NULL;
	fetch_free(f);
	weft_recv_done(req, now);
	weft_msg_ep_release(me);
}

static void fetch_over(struct weft_fetch *f)
{
	struct weft_request *req = f->req;

	TAILQ_REMOVE(&f->me->rndv->active, req, link);
	req->flags &= ~WEFT_REQ_ACTIVE;
	if (fetch_end(f))
		fetch_done(f, false);
}

static void rndv_fetch_reads_over(struct weft_fetch *f)
{
	fetch_done(f, false);
}

static void rndv_fetch_progress(struct weft_fetch *f)
{
	if (f->got.covered == f->length)
		fetch_over(f);
}

static void fetch_fail(struct weft_request *req, int status)
{
	struct weft_fetch *f = req->recv.fetch;

	weft_recv_fail(req, status);
	if (fetch_end(f))
		fetch_done(f, false);
}

void weft_rndv_ended(struct weft_msg_ep *me, int status)
{
	struct weft_request *req;

	while (me->rndv && (req = TAILQ_FIRST(&me->rndv->active))) {
		TAILQ_REMOVE(&me->rndv->active, req, link);
		req->flags &= ~WEFT_REQ_ACTIVE;
		fetch_fail(req, status);
	}
}

/* ------------------------------------------------------------------ schemes */

static bool is_plain(const struct weft_fetch *f)
{
	return f->req->dt.dt_class == WEFT_DT_CONTIG;
}

static int register_it(struct weft_fetch *f, unsigned int access)
{
	int rc = weft_mem_get(f->req->mw->worker->ctx, f->req->dt.buf, f->length, access, &f->mem);

	if (rc) {
		f->mem = NULL;
		f->req->mw->count.register_failed++;
	}
	return rc;
}

static void send_rtr(struct weft_fetch *f, bool keys)
{
	struct {
		struct weft_wire_rtr rtr;
		uint8_t records[WEFT_HEAD_RECORDS_MAX];
	} __attribute__((packed)) m = {
		.rtr =
			{
				.sreq = f->offer.sreq,
				.rreq = weft_request_ref(f->req),
				.length = weft_put64(f->length),
			},
	};
	size_t length = sizeof(m.rtr);

	if (keys && register_it(f, WEFT_LANE_ACCESS_REMOTE_WRITE) == 0) {
		f->written = true;
		length += weft_rndv_keys_write(f->me, weft_rndv_native_lanes(f->me, true), f->mem,
					       f->req->dt.buf, m.records);
	}
	weft_tx_ctl(f->me, WEFT_WIRE_RTR, &m, length);
}

static uint32_t need_nothing(const struct weft_msg_ep *me, uint32_t lanes)
{
	uint32_t mask = 0;

	for (; lanes; lanes &= lanes - 1) {
		int i = __builtin_ctz(lanes);

		if (me->lanes[i].lane_ep->iface->attr.features & WEFT_LANE_F_GET_ANY)
			mask |= 1u << i;
	}
	return mask;
}

/*
 * Bytes. Shorter messages are read, as a pull begins with a message to the sender and back. Half
 * a round trip on AMD EPYC, cores of two chiplets, by a read and by pulls: 11.5 and 14.3 us for
 * 128 KiB, 19.3 and 20.8 us for 256 KiB, 74 and 61 us for 1 MiB. On cores of one chiplet pulls have
 * more than twice the bandwidth, so the limit is below the break-even point of two chiplets.
 */
#define PULL_FROM (256u << 10)

/* Those of @p lanes that pull although they can read: DATA of a prompt peer is faster. */
static uint32_t pull_faster(const struct weft_fetch *f, uint32_t lanes)
{
	lanes &= f->me->slow_reads & ~f->me->stream_reads;
	if (!lanes || f->length < PULL_FROM || weft_promptness_avoid(&f->me->promptness) ||
	    weft_promptness_avoid(&f->me->rndv->pulling))
		return 0;
	return lanes;
}

static void use_keys(struct weft_fetch *f)
{
	uint32_t lanes = f->offer.lanes & weft_rndv_native_lanes(f->me, false);

	if (!lanes || !is_plain(f))
		return;
	lanes &= ~pull_faster(f, lanes);
	f->native |= need_nothing(f->me, lanes);
	lanes &= ~f->native;
	if (!lanes || (!f->mem && register_it(f, WEFT_LANE_ACCESS_LOCAL_WRITE)))
		return;
	for (; lanes; lanes &= lanes - 1) {
		int i = __builtin_ctz(lanes);

		if (weft_mem_lane_of(f->mem, f->me->lanes[i].lane_ep->iface))
			f->native |= 1u << i;
	}
}

static int rndv_begin_pull(struct weft_request *req)
{
	struct weft_fetch *f = req->recv.fetch;

	f->pulled = true;
	weft_rndv_pull_add(f);
	weft_rndv_pump(f->me->mw);
	return 0;
}

static int rndv_begin_get(struct weft_request *req)
{
	use_keys(req->recv.fetch);
	return rndv_begin_pull(req);
}

/* reset() of data/pull. @return 0: nothing was requested yet; 1: the fetch continues */
static int rndv_reset_pull(struct weft_request *req)
{
	struct weft_fetch *f = req->recv.fetch;

	if (f->next || !TAILQ_EMPTY(&f->ranges) || !TAILQ_EMPTY(&f->again) || f->got.covered)
		return 1;
	weft_rndv_pull_end(f);
	f->pulled = false;
	return 0;
}

/* reset() of data/get. After the first request, new lanes with a key in the offer read, too. */
static int rndv_reset_get(struct weft_request *req)
{
	struct weft_fetch *f = req->recv.fetch;

	if (rndv_reset_pull(req) == 0) {
		f->native = 0;
		return 0;
	}
	if (f->queued)
		use_keys(f);
	return 1;
}

static int rndv_begin_put(struct weft_request *req)
{
	send_rtr(req->recv.fetch, true);
	return 0;
}

static int rndv_begin_am(struct weft_request *req)
{
	send_rtr(req->recv.fetch, false);
	return 0;
}

static const struct weft_proto *choose_proto(const struct weft_fetch *f)
{
	const struct weft_dt *dt = &f->req->dt;
	struct weft_proto_key key = {
		.op = WEFT_OP_RNDV_DATA,
		.buf = weft_buf_make(dt->dt_class, dt->dt_class == WEFT_DT_IOV ? dt->iovcnt : 0,
				     false),
	};
	const struct weft_proto_range *r;

	if (!(f->offer.flags & WEFT_RTS_F_PULL))
		key.lacks |= WEFT_NEEDS_PULL;
	if (!(f->offer.flags & WEFT_RTS_F_PUT))
		key.lacks |= WEFT_NEEDS_PUT;
	if (!(f->offer.lanes & weft_rndv_native_lanes(f->me, false)))
		key.lacks |= WEFT_NEEDS_NATIVE;
	r = weft_ep_config_range(f->me->config, &key, f->length);
	return r ? r->proto : NULL;
}

static void fetch_start(struct weft_fetch *f)
{
	f->proto = NULL;
	if (!f->me->config)
		return; /* no table of protocols exists yet: weft_rndv_reset() begins the fetch */
	f->proto = choose_proto(f);
	if (f->proto)
		f->proto->progress(f->req);
	else /* no lane carries messages, or no memory: the endpoint cannot work */
		weft_msg_fail_later(f->me, -EOPNOTSUPP,
				    "no protocol gets the data of a rendezvous");
}

void weft_rndv_reset(struct weft_msg_ep *me)
{
	struct weft_request *req;

	if (!me->rndv)
		return;
	TAILQ_FOREACH(req, &me->rndv->active, link) {
		struct weft_fetch *f = req->recv.fetch;

		if (f->proto && (!f->proto->reset || f->proto->reset(req)))
			continue;
		fetch_start(f);
		if (me->failed)
			return;
	}
}

void weft_rndv_fetch(struct weft_msg_ep *me, struct weft_request *req,
		     const struct weft_rndv_offer *offer, bool now)
{
	struct weft_fetch *f = NULL;

	if (req->length && req->dt.length &&
	    (req->status == WEFT_INPROGRESS || req->status == -EMSGSIZE)) {
		f = weft_rndv_of(me) ? fetch_new(me, req) : NULL;
		if (!f)
			req->status = -ENOMEM;
	}
	if (!f) {
		weft_rndv_refuse(me, offer->sreq, 0);
		weft_recv_done(req, now);
		return;
	}
	f->offer = *offer;
	req->recv.fetch = f;
	req->flags |= WEFT_REQ_ACTIVE;
	TAILQ_INSERT_TAIL(&me->rndv->active, req, link);
	fetch_start(f);
}

/* ------------------------------------------------------------------ what comes */

/* @return NULL: no fetch of this endpoint has this reference; that is counted */
static struct weft_fetch *find_fetch(struct weft_msg_ep *me, struct weft_wire_ref ref)
{
	struct weft_request *req = weft_request_lookup(me->mw, ref);

	if (req && (req->flags & WEFT_REQ_ACTIVE) && req->recv.fetch && req->me == me)
		return req->recv.fetch;
	me->mw->count.bad_ref++;
	return NULL;
}

void weft_rndv_recv_data_in_place(struct weft_msg_ep *me, const void *header, const void *payload,
				  size_t length)
{
	const struct weft_wire_data *hdr = header;
	struct weft_fetch *f = find_fetch(me, hdr->rreq);
	uint64_t off = weft_get64(hdr->offset);
	bool over;

	if (!f)
		return;
	if (off + length > f->length || (f->pulled && !weft_rndv_pull_requested(f, off, length))) {
		me->mw->count.mismatch++;
		return;
	}
	if (weft_rx_note(me, &f->got, off, length))
		return;
	weft_recv_place(f->req, off, payload, length);
	over = f->pulled && weft_rndv_pull_came(f, off, length);
	rndv_fetch_progress(f);
	/* A complete PULL has made room. Else weft_msg_progress() requests more, once per call. */
	if (over && (!TAILQ_EMPTY(&me->mw->rndv->fetching) || me->mw->rndv->waiting))
		weft_rndv_pump(me->mw);
}

void weft_rndv_recv_data(struct weft_msg_ep *me, const void *data, size_t length)
{
	weft_rndv_recv_data_in_place(me, data, (const struct weft_wire_data *)data + 1, length);
}

void weft_rndv_recv_put_done(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_put_done *done = data;
	struct weft_fetch *f = find_fetch(me, done->rreq);
	uint64_t off = weft_get64(done->offset), len = weft_get64(done->length);

	if (!f)
		return;
	if (!f->written || len > f->length || off > f->length - len) {
		me->mw->count.mismatch++;
		return;
	}
	if (weft_rx_note(me, &f->got, off, len) == 0)
		rndv_fetch_progress(f);
}

void weft_rndv_recv_abort(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_abort *abort = data;
	struct weft_fetch *f = find_fetch(me, abort->rreq);

	if (!f)
		return;
	/* Pieces in flight on other lanes match no fetch, and are dropped. */
	weft_recv_fail(f->req, -(int)weft_get32(abort->status));
	fetch_over(f);
}

/* ------------------------------------------------------------------ protocols of the transfer */

/* Lanes without the native operation pull (data/get) or carry DATA (data/put). */

const struct weft_proto weft_proto_data_get = {
	.name = "data/get",
	.desc = "read from the sender's memory over all lanes that can",
	.ops = WEFT_OP_BIT(WEFT_OP_RNDV_DATA),
	.classes = 1u << WEFT_DT_CONTIG,
	.needs = WEFT_NEEDS_NATIVE | WEFT_NEEDS_PULL,
	.lanes = &weft_lanes_rndv_get,
	.cost = weft_rndv_cost_get,
	.progress = rndv_begin_get,
	.reset = rndv_reset_get,
};

const struct weft_proto weft_proto_data_pull = {
	.name = "data/pull",
	.desc = "pulled piece by piece over all lanes",
	.ops = WEFT_OP_BIT(WEFT_OP_RNDV_DATA),
	.classes = WEFT_CLASSES_ALL,
	.needs = WEFT_NEEDS_PULL,
	.lanes = &weft_lanes_rndv_am,
	.cost = weft_rndv_cost_pull,
	.progress = rndv_begin_pull,
	.reset = rndv_reset_pull,
};

const struct weft_proto weft_proto_data_put = {
	.name = "data/put",
	.desc = "written by the sender over all lanes that can",
	.ops = WEFT_OP_BIT(WEFT_OP_RNDV_DATA),
	.classes = 1u << WEFT_DT_CONTIG,
	.needs = WEFT_NEEDS_PUT,
	.lanes = &weft_lanes_rndv_put,
	.cost = weft_rndv_cost_put,
	.progress = rndv_begin_put,
};

const struct weft_proto weft_proto_data_am = {
	.name = "data/am",
	.desc = "requested at once, sent over all lanes",
	.ops = WEFT_OP_BIT(WEFT_OP_RNDV_DATA),
	.classes = WEFT_CLASSES_ALL,
	.lanes = &weft_lanes_rndv_am,
	.cost = weft_rndv_cost_am,
	.progress = rndv_begin_am,
};

/* ------------------------------------------------------------------ native reads */

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
			rndv_fetch_reads_over(f);
		return;
	}
	if (status == 0 && weft_rx_note(f->me, &f->got, off, len) == 0)
		rndv_fetch_progress(f);
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
