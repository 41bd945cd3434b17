/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends: choice of protocol, the queue of an endpoint without room, order, service by progress. */

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "mem/mem.h"
#include "msg/endpoint.h"
#include "msg/replay.h"
#include "msg/send.h"
#include "msg/transmit.h"

/* A message that takes at least this number of round trips is hardly delayed by an announcement. */
#define ROOMS 4u

/* ------------------------------------------------------------------ what is to be sent */

/* Could a further weft_tx_service() send something? Not without credit: CREDIT kicks the queue. */
static bool has_work(const struct weft_msg_ep *me)
{
	const struct weft_request *req = TAILQ_FIRST(&me->pending);

	if (!me->up)
		return false;
	if (weft_msg_has_replay(me) || !STAILQ_EMPTY(&me->ctl) || me->credit_due ||
	    !TAILQ_EMPTY(&me->flush_waits))
		return true;
	WEFT_EACH_MODULE(m, me->mw, has_work) {
		if (m->has_work(me))
			return true;
	}
	if (!req || (req->flags & WEFT_REQ_STARTED))
		return req;
	if (!weft_tx_has_seq(req))
		return false;
	if (req->send.proto && (req->send.proto->flags & WEFT_PROTO_F_RNDV))
		return weft_tx_has_small(me);
	return weft_tx_has_small(me) || weft_tx_has_credit(me, req->length);
}

/* What the queue waits for. A queue that has work and has been served waits for its lanes. */
static enum weft_stall stall_of(const struct weft_msg_ep *me)
{
	if (has_work(me))
		return WEFT_STALL_LANE;
	if (TAILQ_EMPTY(&me->pending))
		return WEFT_STALL_NONE;
	return me->up ? WEFT_STALL_CREDIT : WEFT_STALL_CONNECT;
}

/* ------------------------------------------------------------------ ends */

void weft_send_withdraw_keys(struct weft_request *req, bool dead)
{
	if (!(req->flags & WEFT_REQ_KEYS))
		return;
	req->flags &= ~WEFT_REQ_KEYS;
	weft_mem_unexport(req->send.mem, req->send.offered, dead);
}

static void release_mem(struct weft_request *req)
{
	/* The peer has not sent ATS: its hardware must read no later contents here. */
	bool dead = req->flags & WEFT_REQ_KEYS;

	if (!req->send.mem)
		return;
	weft_send_withdraw_keys(req, dead);
	if ((req->flags & WEFT_REQ_OWN_MEM) && dead)
		weft_mem_put_dead(req->send.mem);
	else if (req->flags & WEFT_REQ_OWN_MEM)
		weft_mem_put(req->send.mem);
	else
		req->send.mem->refs--;
	req->send.mem = NULL;
}

/* Allocates the copy's memory before anything is sent, so that a call that fails has no effect. */
int weft_send_flags(struct weft_request *req, uint32_t flags)
{
	if (flags & WEFT_OP_F_DELIVERED)
		req->flags |= WEFT_REQ_DELIVER;
	if (!(flags & WEFT_OP_F_INJECT))
		return 0;
	if (req->dt.length > WEFT_INJECT_MAX)
		return -EMSGSIZE;
	req->send.inject = malloc(req->dt.length ? req->dt.length : 1);
	if (!req->send.inject)
		return -ENOMEM;
	req->flags |= WEFT_REQ_INJECT;
	/* Packing may fail, and later there is no call that could report this. */
	return req->dt.dt_class == WEFT_DT_GENERIC ? weft_send_keep(req) : 0;
}

int weft_send_keep(struct weft_request *req)
{
	size_t length = req->dt.length;
	int rc;

	if (!(req->flags & WEFT_REQ_INJECT))
		return 0;
	req->flags &= ~WEFT_REQ_INJECT;
	rc = length ? weft_dt_pack(&req->dt, 0, req->send.inject, length) : 0;
	weft_dt_finish(&req->dt);
	req->dt.dt_class = WEFT_DT_CONTIG;
	req->dt.buf = req->send.inject;
	return rc;
}

/* @return true: all lanes that the send waits for have taken the request for a flush */
static bool flush_lanes(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	req->send.unflushed &= me->lanes_up;
	for (uint32_t m = req->send.unflushed; m; m &= m - 1) {
		if (weft_tx_flush_lane(req, me->lanes[__builtin_ctz(m)].lane_ep) == 0)
			req->send.unflushed &= ~(m & -m);
	}
	return req->send.unflushed == 0;
}

/*
 * The message is with the lanes, and only they report when the peer has it. A lane that fails
 * returns the request for a flush with the messages that the peer has not received. Lanes without
 * room get that request later.
 */
static void request_delivery(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	if (!(req->flags & WEFT_REQ_DELIVER) || (req->flags & WEFT_REQ_WAIT_ACK))
		return;
	req->send.unflushed = me->lanes_up;
	if (flush_lanes(req))
		return;
	req->flags |= WEFT_REQ_FLUSH_WAIT;
	req->send.zcopies++;
	TAILQ_INSERT_TAIL(&me->flush_waits, req, link);
	weft_tx_kick(me);
}

static void end_flush_wait(struct weft_request *req)
{
	TAILQ_REMOVE(&req->me->flush_waits, req, link);
	req->flags &= ~WEFT_REQ_FLUSH_WAIT;
	req->send.zcopies--;
}

static unsigned int serve_flush_waits(struct weft_msg_ep *me)
{
	struct weft_request *req;
	unsigned int n = 0;

	/* In order: if the first finds no room, the next ones find none either. */
	while (n < WEFT_TX_BURST && me->up && (req = TAILQ_FIRST(&me->flush_waits)) &&
	       flush_lanes(req)) {
		end_flush_wait(req);
		weft_send_check(req);
		n++;
	}
	return n;
}

void weft_send_release(struct weft_request *req)
{
	weft_stall_requested(req);
	release_mem(req);
	free(req->send.inject);
	req->send.inject = NULL;
	if (req->flags & WEFT_REQ_RNDV)
		free(req->send.put);
	/* A failed send reports no bytes as sent. */
	if (req->status < 0)
		req->length = 0;
}

static void send_end(struct weft_request *req, int status)
{
	struct weft_msg_ep *me = req->me;

	TAILQ_REMOVE(req->flags & WEFT_REQ_PARKED ? &me->parked : &me->ops, req, send.ops_link);
	weft_latency_end(req);
	weft_msg_ep_hold(me);
	weft_request_complete(req, status);
	weft_flush_check(me);
	weft_msg_ep_release(me);
}

void weft_send_check(struct weft_request *req)
{
	const uint32_t busy = WEFT_REQ_PENDING | WEFT_REQ_DATA | WEFT_REQ_WAIT_ACK;

	if (!(req->flags & WEFT_REQ_HANDED) || (req->flags & busy) || req->send.zcopies)
		return;
	send_end(req, req->status == WEFT_INPROGRESS ? 0 : req->status);
}

/*
 * Everything that can be sent unrequested is with the lanes; the rest depends on the peer's
 * application. A flush does not wait for that, a close does.
 */
static void park_until_ack(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	if (!(req->flags & WEFT_REQ_WAIT_ACK))
		return;
	req->flags |= WEFT_REQ_PARKED;
	TAILQ_REMOVE(&me->ops, req, send.ops_link);
	TAILQ_INSERT_TAIL(&me->parked, req, send.ops_link);
}

void weft_tx_abort(struct weft_request *req, struct weft_wire_ref rreq, int status)
{
	struct weft_wire_abort abort = {
		.e = {weft_put32(req->send.seq), weft_put64(req->tag)},
		.rreq = rreq,
		.total = weft_put64(req->length),
		.status = weft_put32(status > -4096 ? (uint32_t)-status : EIO),
		.flags = weft_put32(req->flags & WEFT_REQ_AM ? WEFT_ABORT_F_AM : 0),
	};

	struct {
		struct weft_wire_ext x;
		struct weft_wire_abort abort;
	} __attribute__((packed)) both = {weft_ext_to_wire(&req->ext, WEFT_WIRE_ABORT), abort};

	/* ABORT may be all that the peer ever receives of the message. */
	if (req->ext.any)
		weft_tx_ctl(req->me, WEFT_WIRE_EXT, &both, sizeof(both));
	else
		weft_tx_ctl(req->me, WEFT_WIRE_ABORT, &abort, sizeof(abort));
}

void weft_send_abort(struct weft_request *req, int status)
{
	const struct weft_proto *proto = req->send.proto;

	if (req->status == WEFT_INPROGRESS)
		req->status = status;
	if (proto && proto->abort)
		proto->abort(req, status);
}

/* Request the receiver to drop the RTS. Its reply reports whether a receive has matched already. */
static void send_withdraw(struct weft_request *req)
{
	struct weft_wire_withdraw w = {
		.e = {weft_put32(req->send.seq), weft_put64(req->tag)},
		.sreq = weft_request_ref(req),
	};

	req->flags |= WEFT_REQ_CANCEL;
	weft_tx_ctl(req->me, WEFT_WIRE_WITHDRAW, &w, sizeof(w));
}

/* Remove a send from the queue. @return false: a part of it has been sent, or it is not there */
static bool take_back(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	if ((req->flags & (WEFT_REQ_PENDING | WEFT_REQ_STARTED)) != WEFT_REQ_PENDING)
		return false;
	TAILQ_REMOVE(&me->pending, req, link);
	req->flags = (req->flags & ~WEFT_REQ_PENDING) | WEFT_REQ_HANDED;
	weft_tx_update(me);
	weft_stall_set(me, stall_of(me));
	return true;
}

bool weft_tx_undo(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	if (!take_back(req))
		return false;
	TAILQ_REMOVE(&me->ops, req, send.ops_link);
	weft_request_drop(req);
	return true;
}

int weft_send_cancel(struct weft_request *req)
{
	if (take_back(req)) {
		send_end(req, -ECANCELED);
		return 0;
	}
	/* The handler of an active message may have been called for the announcement already. */
	if ((req->flags & WEFT_REQ_AM) ||
	    (req->flags & (WEFT_REQ_RNDV | WEFT_REQ_WAIT_ACK | WEFT_REQ_RTR | WEFT_REQ_CANCEL)) !=
		    (WEFT_REQ_RNDV | WEFT_REQ_WAIT_ACK))
		return -EBUSY;
	send_withdraw(req);
	return 0;
}

/* ------------------------------------------------------------------ queues */

void weft_tx_kick(struct weft_msg_ep *me)
{
	if (me->ready || !me->up)
		return;
	me->ready = true;
	TAILQ_INSERT_TAIL(&me->mw->ready, me, ready_link);
}

/*
 * @return the least length that no copying eager protocol sends whole, or that weft_tx_piece()
 * sends from user memory
 */
static size_t copied_end(const struct weft_msg_ep *me, const struct weft_proto_select *sel)
{
	const struct weft_msg_lane *l = &me->lanes[me->am_lane];
	size_t end = 0, zcopy = me->zcopy_from;

	for (unsigned int i = 0; i < sel->num; i++) {
		const struct weft_proto_range *r = &sel->ranges[i];

		if (!r->proto || !(r->proto->flags & WEFT_PROTO_F_COPIED) || r->max == SIZE_MAX)
			break;
		end = r->max + 1;
	}
	if (!l->max_zcopy)
		return end;
	if (me->mw->conf.model.zcopy_thresh == WEFT_CONF_AUTO && zcopy < l->max_bcopy / 2)
		zcopy = l->max_bcopy / 2 - sizeof(struct weft_wire_eager);
	if (zcopy < l->min_zcopy)
		zcopy = l->min_zcopy;
	return zcopy < end ? zcopy : end;
}

void weft_tx_update(struct weft_msg_ep *me)
{
	const struct weft_proto_select *sel;
	const struct weft_proto_range *r;
	size_t end;

	weft_tx_no_short(me);
	if (!me->up || me->closing || !TAILQ_EMPTY(&me->pending))
		return;
	sel = &me->config->select[WEFT_OP_TAG_SEND][WEFT_BUF_CONTIG];
	end = copied_end(me, sel);
	me->copied_end = end < UINT32_MAX ? (uint32_t)end : UINT32_MAX;
	r = &sel->ranges[0];
	if (!r->proto || !(r->proto->flags & WEFT_PROTO_F_SHORT))
		return;
	end = (r->max < WEFT_EAGER_FREE ? r->max : WEFT_EAGER_FREE) + 1;
	if (me->mw->worker->multi)
		me->short_locked = (uint32_t)end;
	else
		me->short_end = end;
}

static const struct weft_proto_select *select_of(const struct weft_request *req)
{
	bool reg = req->send.mem != NULL;

	if (req->dt.dt_class == WEFT_DT_CONTIG)
		return &req->me->config->select[req->op][WEFT_BUF_CONTIG + reg];
	return weft_ep_config_select(
		req->me->config, (enum weft_op)req->op,
		weft_buf_make(req->dt.dt_class,
			      req->dt.dt_class == WEFT_DT_IOV ? req->dt.iovcnt : 0, reg));
}

/*
 * More than the peer ever allows unrequested: this message, and all behind it, would wait forever.
 * After the peer has matched everything, it may still keep a quarter of its window unadvertised
 * (weft_credit_update()).
 */
static bool beyond_credit(const struct weft_request *req)
{
	const struct weft_msg_ep *me = req->me;

	return req->length > WEFT_EAGER_FREE && req->length > me->tx_window - me->tx_window / 4 &&
	       req->length > me->tx_credit - me->tx_used;
}

/*
 * A message that must not be announced (WEFT_OP_AM_EAGER) may be too long. The call reports this at
 * once, without regard to messages in the queue. Before the endpoint is connected the limit is
 * unknown, and the request ends with this error.
 */
static bool too_long(const struct weft_request *req)
{
	return req->op == WEFT_OP_AM_EAGER && req->me->config &&
	       (beyond_credit(req) || !weft_proto_range(select_of(req), req->length)->proto);
}

int weft_tx_announce(struct weft_request *req)
{
	weft_send_keep(req);
	req->send.proto = select_of(req)->uncredited;
	return req->send.proto->progress(req);
}

/*
 * Does a long message over stream_reads belong to a stream? Copies through the lane occupy both
 * cores, while a read by the kernel occupies only the receiver's. So a single message is faster by
 * copies, and several at once are faster by reads, even more so if both ends send. A message is of
 * a stream if an announced or synchronous one is under way, or if it is not the first since the
 * last progress call.
 */
static bool in_stream(struct weft_msg_ep *me)
{
	uint64_t now = me->mw->worker->now;
	bool another = me->tx_long_at == now || !TAILQ_EMPTY(&me->parked);

	me->tx_long_at = now;
	return another;
}

bool weft_tx_contended(const struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;
	size_t thresh = me->mw->conf.model.rndv_thresh;
	uint64_t room = 0, most = 0;

	if ((thresh != WEFT_CONF_AUTO && thresh != WEFT_CONF_MODEL) ||
	    !select_of(req)->uncredited || !weft_tx_has_small(me))
		return false;
	if (me->slow_reads && weft_promptness_avoid(&me->promptness))
		return true;
	if (!(me->eager_lanes & ~me->stream_reads) && in_stream(me))
		return true;
	for (uint32_t m = me->eager_lanes; m; m &= m - 1) {
		const struct weft_msg_lane *l = &me->lanes[__builtin_ctz(m)];

		if (l->room == 0)
			return me->peer_contended;
		room += l->room;
		most += l->room_most;
	}
	/* A lane that has just begun has a small window, which does not indicate load. */
	return me->peer_contended || (room * ROOMS < req->length && room <= most / 2);
}

int weft_tx_uncredited(struct weft_request *req)
{
	const struct weft_proto *proto = select_of(req)->uncredited;

	/*
	 * Wait for CREDIT, which kicks the queue, if the message cannot be announced: there is no
	 * protocol for it, or it is an active message without data, whose handler must not get
	 * WEFT_AM_F_RNDV. An announcement takes a message credit, too.
	 */
	if (!proto || ((req->flags & WEFT_REQ_AM) && !req->length))
		return beyond_credit(req) ? -EMSGSIZE : -EAGAIN;
	if (!weft_tx_has_small(req->me))
		return -EAGAIN;
	req->mw->count.no_eager_credit++;
	return weft_tx_announce(req);
}

/* Nothing is sent yet: choose a protocol, begin. @return as progress(), -EMSGSIZE, -EOPNOTSUPP */
static int choose_and_begin(struct weft_request *req)
{
	const struct weft_proto_range *r = weft_proto_range(select_of(req), req->length);
	int rc;

	do {
		req->send.proto = r->proto;
		if (__builtin_expect(!r->proto, 0))
			return WEFT_OPS_BOUNDED >> req->op & 1 ? -EMSGSIZE : -EOPNOTSUPP;
		if (r->proto->flags & WEFT_PROTO_F_RNDV)
			weft_send_keep(req);
		rc = r->proto->progress(req);
	} while (__builtin_expect(rc == WEFT_PROTO_NEXT, 0) && r++->max != SIZE_MAX);
	return rc == WEFT_PROTO_NEXT ? -EMSGSIZE : rc;
}

/*
 * One step of the send at the head of the queue. @return 0 = all is handed over, or the send has
 * failed after its first piece (req->status); -EAGAIN; the error of a send that has not begun
 */
static int send_step(struct weft_request *req)
{
	int rc;

	if (!(req->flags & WEFT_REQ_STARTED))
		rc = weft_tx_has_seq(req) ? choose_and_begin(req) : -EAGAIN;
	else
		rc = req->send.proto->progress(req);
	if (rc == 0 || rc == -EAGAIN || !(req->flags & WEFT_REQ_STARTED))
		return rc;
	weft_send_abort(req, rc);
	return 0;
}

int weft_tx_start(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;
	int rc = -EAGAIN;

	if (too_long(req)) {
		weft_request_drop(req);
		return -EMSGSIZE;
	}
	WEFT_PROBE5(post, req, req->op, me, req->tag, req->length);
	req->send.op_sn = me->op_sn++;
	TAILQ_INSERT_TAIL(&me->ops, req, send.ops_link);
	if (me->up && TAILQ_EMPTY(&me->pending))
		rc = send_step(req);
	if (rc == -EAGAIN) {
		weft_send_keep(req);
		req->flags |= WEFT_REQ_PENDING;
		TAILQ_INSERT_TAIL(&me->pending, req, link);
		weft_tx_no_short(me);
		weft_tx_kick(me);
		weft_stall_set(me, stall_of(me));
		weft_latency_begin(req);
		return WEFT_INPROGRESS;
	}
	if (rc == 0)
		request_delivery(req);
	if (rc == 0 && ((req->flags & WEFT_REQ_WAIT_ACK) || req->send.zcopies)) {
		req->flags |= WEFT_REQ_HANDED;
		park_until_ack(req);
		weft_latency_begin(req);
		return WEFT_INPROGRESS;
	}
	TAILQ_REMOVE(&me->ops, req, send.ops_link);
	if (rc == 0 && (req->status != WEFT_INPROGRESS || (req->flags & WEFT_REQ_FORCE))) {
		weft_request_complete_later(req, req->status == WEFT_INPROGRESS ? 0 : req->status);
		return WEFT_INPROGRESS;
	}
	weft_request_drop(req);
	return rc;
}

void weft_tx_reset(struct weft_msg_ep *me)
{
	struct weft_request *req;

	TAILQ_FOREACH(req, &me->ops, send.ops_link) {
		const uint32_t left = WEFT_REQ_STARTED | WEFT_REQ_PENDING;

		if ((req->flags & left) != left || !req->send.proto || !req->send.proto->reset ||
		    req->send.proto->reset(req))
			continue;
		req->flags &= ~WEFT_REQ_STARTED;
		req->send.proto = NULL;
	}
}

static unsigned int serve_pending(struct weft_msg_ep *me)
{
	struct weft_request *req;
	unsigned int n = 0;

	while (n < WEFT_TX_BURST && me->up && (req = TAILQ_FIRST(&me->pending))) {
		int rc = send_step(req);

		if (rc == -EAGAIN)
			break;
		n++;
		TAILQ_REMOVE(&me->pending, req, link);
		req->flags = (req->flags & ~WEFT_REQ_PENDING) | WEFT_REQ_HANDED;
		if (rc < 0) {
			send_end(req, rc);
			continue;
		}
		request_delivery(req);
		park_until_ack(req);
		weft_send_check(req);
	}
	if (n)
		weft_tx_update(me);
	return n;
}

static unsigned int serve_data(struct weft_msg_ep *me)
{
	unsigned int n = 0;

	WEFT_EACH_MODULE(m, me->mw, data)
		n += m->data(me);
	return n;
}

unsigned int weft_tx_service(struct weft_msg_ep *me)
{
	unsigned int n;

	weft_msg_ep_hold(me);
	if (me->tx_full)
		weft_stripe_measure(me);
	n = weft_replay_serve(me);
	n += weft_tx_serve_ctl(me);
	n += serve_flush_waits(me);
	/* Messages and rendezvous data alternate, so that neither starves on a busy lane. */
	me->data_turn = !me->data_turn;
	if (me->data_turn)
		n += serve_data(me);
	n += serve_pending(me);
	if (!me->data_turn)
		n += serve_data(me);
	WEFT_EACH_MODULE(m, me->mw, serve)
		n += m->serve(me);
	if (n)
		weft_flush_check(me);
	if (has_work(me))
		weft_tx_kick(me);
	else if (me->tx_full)
		weft_stripe_measure_end(me);
	weft_stall_set(me, stall_of(me));
	weft_msg_ep_release(me);
	return n;
}

void weft_tx_fail(struct weft_msg_ep *me, int status)
{
	struct weft_request *req;

	weft_tx_drop_ctl(me);
	while ((req = TAILQ_FIRST(&me->flush_waits)))
		end_flush_wait(req);
	/*
	 * First remove everything from all queues, then call callbacks, which may free anything.
	 * Messages that lanes still hold end with their completion.
	 */
	TAILQ_INIT(&me->pending);
	weft_stall_set(me, WEFT_STALL_NONE);
	TAILQ_CONCAT(&me->parked, &me->ops, send.ops_link);
	TAILQ_CONCAT(&me->ops, &me->parked, send.ops_link);
	TAILQ_FOREACH(req, &me->ops, send.ops_link)
		weft_send_abort(req, status);
	WEFT_EACH_MODULE(m, me->mw, fail)
		m->fail(me);
	TAILQ_FOREACH(req, &me->ops, send.ops_link) {
		req->flags &=
			~(WEFT_REQ_PENDING | WEFT_REQ_DATA | WEFT_REQ_WAIT_ACK | WEFT_REQ_PARKED);
		req->flags |= WEFT_REQ_HANDED;
		if (req->status == WEFT_INPROGRESS)
			req->status = status;
	}
	weft_replay_fail(me, status);
	for (;;) {
		TAILQ_FOREACH(req, &me->ops, send.ops_link) {
			if (req->send.zcopies == 0)
				break;
		}
		if (!req)
			break;
		send_end(req, req->status);
	}
}
