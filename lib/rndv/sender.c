/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer may refer, by index and generation, to a request of the endpoint to it that waits for a
 * reply, and to bytes inside that message. Anything else is dropped and counted, also after the
 * request has ended. The pulls that wait for their lanes are bounded: an endpoint with more than
 * WEFT_RNDV_PULLS_MAX fails, because its peer violates the protocol.
 */

#include <errno.h>
#include <stdlib.h>

#include "core/lane_show.h"
#include "mem/mem.h"
#include "msg/msg.h"
#include "proto/proto.h"
#include "rndv/pull.h"
#include "rndv/rndv.h"
#include "rndv/sender.h"

/* ------------------------------------------------------------------ offer */

/* Native lanes read and write one contiguous range of memory. */
static bool is_plain(const struct weft_request *req)
{
	return req->dt.dt_class == WEFT_DT_CONTIG && req->length;
}

/*
 * Registers the memory, unless the request has a registration: the user's, or that of an earlier
 * attempt to send the RTS. @p access: for the peer; 0 = only our lanes read it. @return 0; -EINVAL:
 * the request's registration does not cover the buffer; or the error of weft_mem_get(), counted
 */
static int register_it(struct weft_request *req, unsigned int access)
{
	int rc;

	if (req->send.mem)
		return weft_mem_covers(req->send.mem, req->dt.buf, req->length) ? 0 : -EINVAL;
	rc = weft_mem_get(req->mw->worker->ctx, req->dt.buf, req->length, access, &req->send.mem);
	if (rc) {
		req->send.mem = NULL;
		req->mw->count.register_failed++;
		return rc;
	}
	req->flags |= WEFT_REQ_OWN_MEM;
	return 0;
}

/* @param records  WEFT_HEAD_RECORDS_MAX bytes, to follow the RTS. @return bytes of records */
static size_t rndv_offer(struct weft_request *req, weft_le32 *flags, void *records)
{
	enum weft_rndv_scheme scheme = req->mw->conf.rndv_scheme;
	struct weft_msg_ep *me = req->me;
	uint32_t f = 0, lanes = 0;

	if (scheme == WEFT_RNDV_AUTO || scheme == WEFT_RNDV_GET) {
		f |= WEFT_RTS_F_PULL;
		lanes = weft_rndv_native_lanes(me, false);
	}
	if ((scheme == WEFT_RNDV_AUTO || scheme == WEFT_RNDV_PUT) && is_plain(req) &&
	    weft_rndv_native_lanes(me, true))
		f |= WEFT_RTS_F_PUT;
	*flags = weft_put32(f);
	/* Without a registration the offer has no keys, and the receiver cannot read. */
	if (!lanes || !is_plain(req) || register_it(req, WEFT_LANE_ACCESS_REMOTE_READ))
		return 0;
	if (!(req->flags & WEFT_REQ_KEYS)) {
		req->send.offered = weft_mem_export(req->send.mem, WEFT_LANE_ACCESS_REMOTE_READ);
		if (!req->send.offered) {
			req->mw->count.register_failed++;
			return 0;
		}
		req->flags |= WEFT_REQ_KEYS;
	}
	return weft_rndv_keys_write(me, lanes, req->send.offered, req->dt.buf, records);
}

/* A lane has taken the RTS: until ATS the peer may refer to the request (WEFT_REQ_WAIT_ACK). */
static void rndv_offered(struct weft_request *req)
{
	req->send.offset = 0;
	req->send.end = 0;
	req->send.pulls = 0;
	req->send.put = NULL;
	req->flags |= WEFT_REQ_WAIT_ACK | WEFT_REQ_RNDV;
	weft_stall_offered(req);
}

static struct weft_request *find_send(struct weft_msg_ep *me, struct weft_wire_ref ref)
{
	struct weft_request *req = weft_request_lookup(me->mw, ref);

	/* Only rendezvous and synchronous sends wait for PULL, RTR, ATS or SYNC_ACK. */
	if (req && req->me == me && (req->flags & WEFT_REQ_WAIT_ACK) &&
	    (req->flags & (WEFT_REQ_RNDV | WEFT_REQ_SYNC)))
		return req;
	me->mw->count.bad_ref++;
	return NULL;
}

/* A request that has offered [offset, offset + length). NULL: none (counted), or it has failed. */
static struct weft_request *find_offer(struct weft_msg_ep *me, struct weft_wire_ref ref,
				       uint64_t offset, uint64_t length)
{
	struct weft_request *req = find_send(me, ref);

	if (!req)
		return NULL;
	if (!(req->flags & WEFT_REQ_RNDV) || length > req->length ||
	    offset > req->length - length) {
		me->mw->count.mismatch++;
		return NULL;
	}
	/* The send has failed, for example its pack callback: ABORT is being sent. */
	return req->status == WEFT_INPROGRESS ? req : NULL;
}

/* ------------------------------------------------------------------ registering, to send */

/* A lane without native reads that sends user memory only if registered; NULL = there is none. */
static const struct weft_msg_lane *lane_registers(const struct weft_msg_ep *me)
{
	const struct weft_msg_lane *l;
	uint32_t up;

	for (up = me->lanes_up; up; up &= up - 1) {
		l = &me->lanes[__builtin_ctz(up)];
		if (l->max_zcopy && !l->zcopy_any && !l->max_get)
			return l;
	}
	return NULL;
}

/*
 * The data is registered if the cache keeps registrations, or if a registration costs less than the
 * copy here. The receiver copies in either case.
 */
static void register_to_send(struct weft_request *req)
{
	const struct weft_msg_lane *l;
	struct weft_lane_iface *iface;
	double cost, growth;

	if (req->flags & WEFT_REQ_RTR || req->send.mem || !is_plain(req) || !req->mw->conf.zcopy ||
	    req->length < req->me->zcopy_from)
		return;
	l = lane_registers(req->me);
	if (!l)
		return;
	iface = l->lane_ep->iface;
	if (!weft_regcache_keeps(req->mw->worker->ctx->regcache)) {
		weft_mem_cost(req->mw->worker->ctx, iface, &cost, &growth);
		if (cost + growth * (double)req->length >=
		    (double)req->length / req->mw->conf.model.bcopy_bw)
			return;
	}
	register_it(req, 0); /* a failure is counted there, and the data is copied */
}

/* ------------------------------------------------------------------ pulls */

static struct weft_pull *pull_new(struct weft_msg_worker *mw)
{
	struct weft_pull *p = STAILQ_FIRST(&mw->rndv->free_pulls);

	if (!p)
		return malloc(sizeof(*p));
	STAILQ_REMOVE_HEAD(&mw->rndv->free_pulls, link);
	return p;
}

static void pull_free(struct weft_msg_ep *me, struct weft_pull *p)
{
	p->req->send.pulls--;
	me->rndv->num_pulls--;
	STAILQ_INSERT_HEAD(&me->mw->rndv->free_pulls, p, link);
}

static unsigned int lane_for(const struct weft_msg_ep *me, uint32_t lane)
{
	return lane < WEFT_MAX_LANES && (me->lanes_up & 1u << lane) ? lane : me->am_lane;
}

void weft_rndv_recv_pull(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_pull *pull = data;
	uint64_t offset = weft_get64(pull->offset), length = weft_get64(pull->length);
	struct weft_request *req = find_offer(me, pull->sreq, offset, length);
	struct weft_pull *p;

	if (!req)
		return;
	if (me->rndv && me->rndv->num_pulls >= WEFT_RNDV_PULLS_MAX) {
		weft_msg_fail(me, -EPROTO, "the peer has more than %u pulls waiting",
			      WEFT_RNDV_PULLS_MAX);
		return;
	}
	p = weft_rndv_of(me) ? pull_new(me->mw) : NULL;
	if (!p) {
		/* The peer would wait forever: fail the endpoint, which both ends detect. */
		weft_msg_fail(me, -ENOMEM, "no memory for what the peer requests");
		return;
	}
	*p = (struct weft_pull){.req = req, .offset = offset, .end = offset + length};
	me->peer_contended = weft_get16(pull->flags) & WEFT_PULL_F_CONTENDED;
	register_to_send(req);
	req->send.peer = pull->rreq;
	req->send.pulls++;
	req->flags |= WEFT_REQ_RTR;
	weft_stall_requested(req);
	me->rndv->num_pulls++;
	STAILQ_INSERT_TAIL(&me->rndv->lanes[lane_for(me, weft_get16(pull->lane))].pulls, p, link);
	weft_tx_kick(me);
}

static void drop_pulls(struct weft_msg_ep *me, struct weft_rndv_lane *l,
		       const struct weft_request *req)
{
	struct weft_pull *p, *next;

	for (p = STAILQ_FIRST(&l->pulls); p; p = next) {
		next = STAILQ_NEXT(p, link);
		if (p->req != req)
			continue;
		STAILQ_REMOVE(&l->pulls, p, weft_pull, link);
		pull_free(me, p);
	}
}

static void rndv_send_end(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	if (req->flags & WEFT_REQ_DATA)
		TAILQ_REMOVE(&me->rndv->data, req, link);
	req->flags &= ~WEFT_REQ_DATA;
	for (unsigned int i = 0; req->send.pulls && i < WEFT_MAX_LANES; i++)
		drop_pulls(me, &me->rndv->lanes[i], req);
}

/* @return the length of the piece, -EAGAIN, or the pack error */
static ssize_t send_piece(struct weft_request *req, unsigned int lane, size_t off, size_t rest)
{
	struct weft_wire_data hdr = {.rreq = req->send.peer, .offset = weft_put64(off)};
	size_t len = weft_tx_piece_max(req, lane, sizeof(hdr));
	int rc;

	if (len == 0)
		return -EAGAIN;
	len = weft_tx_cut(req->me, off, rest, len, req->me->lanes[lane].align);
	rc = weft_tx_piece(req, lane, WEFT_WIRE_DATA, &hdr, sizeof(hdr), off, len);
	return rc ? rc : (ssize_t)len;
}

/* @return pieces handed over, and pieces whose pack callback failed */
static unsigned int serve_lane(struct weft_msg_ep *me, unsigned int lane)
{
	struct weft_pull *p;
	unsigned int n = 0;

	while ((p = STAILQ_FIRST(&me->rndv->lanes[lane].pulls))) {
		struct weft_request *req = p->req;
		ssize_t rc = send_piece(req, lane, p->offset, p->end - p->offset);

		weft_lane_took(&me->lanes[lane], rc == -EAGAIN);
		if (rc == -EAGAIN)
			break;
		n++;
		if (rc < 0) {
			weft_send_abort(req, (int)rc);
			weft_send_check(req);
			continue;
		}
		p->offset += (size_t)rc;
		if (req->send.end == 0)
			/* for weft_request_query(); after RTR, weft_stripe() counts it */
			req->send.offset += (size_t)rc;
		if (p->offset == p->end) {
			STAILQ_REMOVE_HEAD(&me->rndv->lanes[lane].pulls, link);
			pull_free(me, p);
		}
	}
	return n;
}

/* ------------------------------------------------------------------ native writes */

static void put_again(struct weft_request *req, unsigned int lane, uint64_t off, uint64_t len)
{
	struct weft_msg_ep *me = req->me;
	struct weft_pull *p = pull_new(me->mw);

	me->mw->count.native_failed++;
	if (req->send.put)
		req->send.put->lanes &= ~(1u << lane);
	if (!p) {
		weft_msg_fail(me, -ENOMEM, "no memory for what the peer requests");
		return;
	}
	*p = (struct weft_pull){.req = req, .offset = off, .end = off + len};
	req->send.pulls++;
	me->rndv->num_pulls++;
	STAILQ_INSERT_TAIL(&me->rndv->lanes[me->am_lane].pulls, p, link);
	weft_tx_kick(me);
}

/* For captures: a write is posted, or has succeeded. */
static void show_put(const struct weft_request *req, const struct weft_native *p, bool over)
{
	struct weft_lane_ep *lane_ep = req->me->lanes[p->lane].lane_ep;
	const struct weft_rndv_offer *to = req->send.put;
	const struct weft_shown_native n = {
		.kind = WEFT_RECORD_WRITE,
		.length = p->length,
		.offset = to ? to->offset + p->offset : 0,
		.key = to ? to->key[p->lane] : 0,
		.local = p->offset,
		.ref_index = weft_get32(req->send.peer.index),
		.ref_generation = weft_get32(req->send.peer.generation),
	};

	if (lane_ep && weft_lanes_are_shown())
		weft_shown_native(lane_ep, &n, over);
}

static void put_done(struct weft_lane_comp *comp, int status)
{
	struct weft_native *p = container_of(comp, struct weft_native, comp);
	struct weft_request *req = p->req;
	struct weft_msg_ep *me = req->me;
	struct weft_wire_put_done done = {
		.rreq = req->send.peer,
		.offset = weft_put64(p->offset),
		.length = weft_put64(p->length),
	};
	uint64_t off = p->offset, len = p->length;
	unsigned int lane = p->lane;

	weft_msg_ep_hold(me);
	if (!status)
		show_put(req, p, true);
	weft_native_over(p, status);
	/* Otherwise the endpoint's failure, ATS or an abort has ended the request. */
	if (!me->failed && (req->flags & WEFT_REQ_WAIT_ACK) && req->status == WEFT_INPROGRESS) {
		if (status)
			put_again(req, lane, off, len);
		else
			/* On the same lane: over another one it could overtake the write. */
			weft_tx_ctl_on(me, (int)lane, WEFT_WIRE_PUT_DONE, &done, sizeof(done));
	}
	weft_send_check(req);
	weft_msg_ep_release(me);
}

/* @return bytes being written, -EAGAIN; a lane that fails loses its key */
static ssize_t put_piece(struct weft_request *req, unsigned int lane, size_t off, size_t rest)
{
	const struct weft_msg_lane *l = &req->me->lanes[lane];
	struct weft_rndv_offer *to = req->send.put;
	struct weft_native *p;
	struct iovec iov;
	int rc;

	if (weft_lane_loads(req->me) != 0)
		return -EAGAIN;
	rest = weft_load_room(&l->load[WEFT_DIR_TX], rest, req->mw->conf.rndv_min_piece);
	if (rest == 0)
		return -EAGAIN;
	p = weft_native_new(req, lane, WEFT_DIR_TX);
	if (!p)
		return -EAGAIN;
	iov.iov_base = req->dt.buf + off;
	iov.iov_len = weft_rndv_piece(req->me, lane, off, rest, l->max_put);
	p->comp.done = put_done;
	rc = l->lane_ep->ops->put_zcopy(l->lane_ep, &iov, 1,
					weft_mem_lane_of(req->send.mem, l->lane_ep->iface),
					to->offset + off, to->key[lane], &p->comp);
	if (rc) {
		weft_native_drop(p);
		if (rc != -EAGAIN) {
			to->lanes &= ~(1u << lane);
			req->mw->count.native_failed++;
		}
		return -EAGAIN;
	}
	weft_native_given(p, off, iov.iov_len);
	show_put(req, p, false);
	weft_lane_wrote(req->me, lane, iov.iov_len);
	req->mw->count.puts++;
	return (ssize_t)iov.iov_len;
}

static void read_put_keys(struct weft_request *req, const void *records, size_t length)
{
	struct weft_rndv_offer keys = {.lanes = 0};

	weft_rndv_keys_read(&keys, records, length);
	keys.lanes &= weft_rndv_native_lanes(req->me, true);
	if (!keys.lanes || !is_plain(req) || register_it(req, 0))
		return;
	for (uint32_t m = keys.lanes; m; m &= m - 1) {
		int i = __builtin_ctz(m);

		if (!weft_mem_lane_of(req->send.mem, req->me->lanes[i].lane_ep->iface))
			keys.lanes &= ~(1u << i);
	}
	free(req->send.put);
	req->send.put = malloc(sizeof(keys));
	if (req->send.put)
		*req->send.put = keys;
}

/* ------------------------------------------------------------------ RTR, ATS */

static ssize_t data_piece(struct weft_request *req, unsigned int lane, size_t off, size_t rest)
{
	if (req->send.put && (req->send.put->lanes & 1u << lane))
		return put_piece(req, lane, off, rest);
	return send_piece(req, lane, off, rest);
}

static unsigned int serve_data(struct weft_msg_ep *me)
{
	struct weft_request *req;
	unsigned int n = 0;

	while (n < WEFT_TX_BURST && me->up && (req = TAILQ_FIRST(&me->rndv->data))) {
		int rc = weft_stripe(req, me->rndv_lanes, WEFT_DIR_TX, req->send.end, data_piece);

		if (rc == -EAGAIN)
			break;
		n++;
		TAILQ_REMOVE(&me->rndv->data, req, link);
		req->flags &= ~WEFT_REQ_DATA;
		if (rc < 0)
			weft_send_abort(req, rc);
		weft_send_check(req);
	}
	return n;
}

unsigned int weft_rndv_serve(struct weft_msg_ep *me)
{
	unsigned int n;

	if (!me->rndv)
		return 0;
	n = serve_data(me);
	for (unsigned int i = 0; me->rndv->num_pulls && i < WEFT_MAX_LANES; i++) {
		if (me->up && (me->lanes_up & 1u << i))
			n += serve_lane(me, i);
	}
	return n;
}

void weft_rndv_recv_rtr(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_rtr *rtr = data;
	uint64_t offset = weft_get64(rtr->offset), len = weft_get64(rtr->length);
	struct weft_request *req = find_offer(me, rtr->sreq, offset, len);

	if (!req)
		return;
	if (offset != req->send.end || req->send.pulls) {
		me->mw->count.mismatch++;
		return;
	}
	if (!weft_rndv_of(me)) {
		weft_msg_fail(me, -ENOMEM, "no memory for what the peer requests");
		return;
	}
	register_to_send(req);
	req->send.peer = rtr->rreq;
	req->send.end = offset + len;
	req->flags |= WEFT_REQ_RTR;
	weft_stall_requested(req);
	if (req->flags & WEFT_REQ_DATA)
		return;
	req->send.offset = offset;
	read_put_keys(req, rtr + 1, payload);
	req->flags |= WEFT_REQ_DATA;
	TAILQ_INSERT_TAIL(&me->rndv->data, req, link);
	weft_tx_kick(me);
}

static void recv_ats(struct weft_msg_ep *me, uint8_t id, const struct weft_wire_ats *ats)
{
	struct weft_request *req = find_send(me, ats->sreq);

	if (!req)
		return;
	if ((id == WEFT_WIRE_ATS) != !!(req->flags & WEFT_REQ_RNDV)) {
		me->mw->count.mismatch++;
		return;
	}
	if (weft_get32(ats->status) && req->status == WEFT_INPROGRESS)
		req->status = -(int)weft_get32(ats->status);
	if (req->flags & WEFT_REQ_RNDV) {
		rndv_send_end(req);
		weft_send_withdraw_keys(req, false);
	}
	req->flags &= ~WEFT_REQ_WAIT_ACK;
	weft_send_check(req);
}

void weft_rndv_recv_ats(struct weft_msg_ep *me, const void *data, size_t payload)
{
	recv_ats(me, WEFT_WIRE_ATS, data);
}

void weft_rndv_recv_sync_ack(struct weft_msg_ep *me, const void *data, size_t payload)
{
	recv_ats(me, WEFT_WIRE_SYNC_ACK, data);
}

/* ------------------------------------------------------------------ endpoint */

void weft_rndv_send_ep_lanes(struct weft_msg_ep *me)
{
	struct weft_rndv_lane *to = &me->rndv->lanes[me->am_lane];

	for (unsigned int i = 0; me->rndv->num_pulls && i < WEFT_MAX_LANES; i++) {
		if (!(me->lanes_up & 1u << i))
			STAILQ_CONCAT(&to->pulls, &me->rndv->lanes[i].pulls);
	}
}

/* ------------------------------------------------------------------ protocols */

/*
 * Rendezvous by active messages: the data is sent only when a receive has matched, directly to its
 * buffer.
 *
 *	sender                                      receiver
 *	  | RTS seq tag total sreq ------------------> | matched in sequence
 *	  | <------------- RTR sreq rreq offset length | requests these bytes
 *	  | DATA rreq offset --------------- lane 0 -> | direct to the user's buffer
 *	  | DATA rreq offset --------------- lane 1 -> |
 *	  | <------------------------- ATS sreq status | all there, or not wanted
 *
 * One RTR requests one range; a further one must continue at its end. Receivers of this version
 * send one RTR for all bytes that fit; the lanes' windows are the flow control.
 */

/* ------------------------------------------------------------------ the announcement */

static int rts_progress(struct weft_request *req)
{
	struct weft_head h;
	weft_le32 *flags;

	if (!weft_tx_has_small(req->me))
		return -EAGAIN; /* the next CREDIT message continues the queue */
	flags = weft_head_rts(req, &h);
	h.length = (uint16_t)(h.length + rndv_offer(req, flags, h.bytes + h.length));
	/* The receiver restores the order of messages, so any lane with room may carry the RTS. */
	if (weft_tx_envelope_any(req->me, h.id, h.bytes, h.length))
		return -EAGAIN;
	weft_tx_take_seq(req, false);
	rndv_offered(req);
	return 0;
}

static void rndv_abort(struct weft_request *req, int status)
{
	if (!(req->flags & WEFT_REQ_RNDV))
		return;
	rndv_send_end(req);
	if (req->flags & WEFT_REQ_RTR)
		weft_tx_abort(req, req->send.peer, status);
}

/* The sender's table predicts the receiver's decision by the same rules. */

const struct weft_proto weft_proto_rndv_get = {
	.name = "rndv/get",
	.desc = "rendezvous: the receiver reads user memory over all lanes that can",
	.ops = WEFT_OPS_RNDV,
	.classes = 1u << WEFT_DT_CONTIG,
	.flags = WEFT_PROTO_F_RNDV,
	.lanes = &weft_lanes_rndv_get,
	.cost = weft_rndv_cost_get,
	.progress = rts_progress,
	.abort = rndv_abort,
};

const struct weft_proto weft_proto_rndv_pull = {
	.name = "rndv/pull",
	.desc = "rendezvous: the receiver pulls pieces over all lanes",
	.ops = WEFT_OPS_RNDV,
	.classes = WEFT_CLASSES_ALL,
	.flags = WEFT_PROTO_F_RNDV,
	.lanes = &weft_lanes_rndv_am,
	.cost = weft_rndv_cost_pull,
	.progress = rts_progress,
	.abort = rndv_abort,
};

const struct weft_proto weft_proto_rndv_put = {
	.name = "rndv/put",
	.desc = "rendezvous: written to the receiver's memory over all lanes that can",
	.ops = WEFT_OPS_RNDV,
	.classes = 1u << WEFT_DT_CONTIG,
	.flags = WEFT_PROTO_F_RNDV,
	.lanes = &weft_lanes_rndv_put,
	.cost = weft_rndv_cost_put,
	.progress = rts_progress,
	.abort = rndv_abort,
};

const struct weft_proto weft_proto_rndv_am = {
	.name = "rndv/am",
	.desc = "rendezvous: sent over all lanes when the receive is posted",
	.ops = WEFT_OPS_RNDV,
	.classes = WEFT_CLASSES_ALL,
	.flags = WEFT_PROTO_F_RNDV,
	.lanes = &weft_lanes_rndv_am,
	.cost = weft_rndv_cost_am,
	.progress = rts_progress,
	.abort = rndv_abort,
};
