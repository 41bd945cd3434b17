/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Order among operations on remote memory. Lanes deliver in any order, so fences are implemented at
 * the initiator: operations posted after a fence start when those posted before it are confirmed.
 *
 * A worker's fences are numbered. An operation's epoch is the number of fences before it. The
 * operation starts when that number of fences is passed, that is when no operation of an earlier
 * epoch is in progress on any endpoint. So all operations in progress on one endpoint have the same
 * epoch.
 *
 * A fence scans the worker's list of endpoints that have operations. An endpoint joins the list
 * with its first operation; a scan removes endpoints without operations. Endpoints with the
 * oldest epoch hold the fence, and are counted. The next scan takes place when the last of them has
 * finished that epoch.
 */

#include "rma/fence.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "msg/msg.h"
#include "rma/initiator.h"
#include "rma/rma.h"
#include "rma/target.h"

/* ------------------------------------------------------------------ confirmation */

void weft_rma_flush_send(struct weft_msg_ep *me)
{
	struct weft_rma *rma = me->rma;
	struct weft_wire_rma_flush flush = {
		.count = weft_put64(rma->half[rma->odd]),
		.flags = weft_put32(rma->odd ? WEFT_WIRE_RMA_ODD : 0),
	};

	rma->flush_due = false;
	if (rma->flush_outstanding || rma->wanted <= rma->confirmed || me->failed)
		return;
	if (weft_tx_envelope_any(me, WEFT_WIRE_RMA_FLUSH, &flush, sizeof(flush))) {
		rma->flush_due = true;
		weft_tx_kick(me);
		return;
	}
	rma->flush_outstanding = true;
	rma->flush_answered = false;
	rma->flush_sent = rma->sent;
	/* The last reply confirmed all messages of the other half, which takes the next ones. */
	rma->odd = !rma->odd;
}

void weft_rma_want(struct weft_msg_ep *me, uint64_t count)
{
	struct weft_rma *rma = me->rma;

	if (count > rma->wanted)
		rma->wanted = count;
	weft_rma_flush_send(me);
}

static void confirm_count(struct weft_msg_ep *me, uint64_t count)
{
	struct weft_rma *rma = me->rma;
	struct weft_request *req;

	if (count > rma->confirmed)
		rma->confirmed = count;
	while (!me->failed && (req = TAILQ_FIRST(&rma->waiting)) &&
	       weft_rma_req(req)->count <= rma->confirmed) {
		TAILQ_REMOVE(&rma->waiting, req, link);
		req->flags &= ~WEFT_REQ_WAIT_ACK;
		weft_rma_check(req);
	}
	if (!me->failed)
		weft_rma_moved(me);
}

/* A reply takes effect when all the NAKs that it counts have come. */
static void take_answer(struct weft_msg_ep *me)
{
	struct weft_rma *rma = me->rma;

	if (!rma->flush_outstanding || !rma->flush_answered ||
	    rma->naks[!rma->odd] < rma->flushed_naks)
		return;
	rma->flush_outstanding = false;
	confirm_count(me, rma->flush_sent);
	if (!me->failed)
		weft_rma_flush_send(me);
}

void weft_rma_nak_counted(struct weft_msg_ep *me)
{
	take_answer(me);
}

void weft_rma_error(struct weft_rma *rma, uint64_t first, uint64_t last, int status)
{
	struct weft_rma_error *e;

	for (uint32_t i = 0; i < rma->num_errors; i++)
		if (rma->error[i].first <= first && last <= rma->error[i].last)
			return;
	if (rma->num_errors < WEFT_RMA_ERRORS) {
		rma->error[rma->num_errors++] = (struct weft_rma_error){first, last, status};
		return;
	}
	/*
	 * The list is full, so its last entry takes this error, too. A flush in between may then
	 * report an error of other operations, with the first status, but no failure is lost.
	 */
	e = &rma->error[WEFT_RMA_ERRORS - 1];
	if (first < e->first)
		e->first = first;
	if (last > e->last)
		e->last = last;
}

/*
 * Some of the operations from @p first to @p last were refused, and it is unknown which. All
 * requests that wait for one of these operations get the error, and a flush reports it, too.
 */
static void refuse_range(struct weft_rma *rma, uint64_t first, uint64_t last, int status)
{
	struct weft_request *req;

	weft_rma_error(rma, first, last, status);
	TAILQ_FOREACH(req, &rma->waiting, link) {
		if (req->status == WEFT_INPROGRESS && req->send.op_sn >= first &&
		    req->send.op_sn <= last)
			req->status = status;
	}
	/*
	 * A put in the queue may have begun: the pieces already sent may be among those refused,
	 * and no later reply counts them again. The loop relies on the order of the queue:
	 * operations that have begun are at its head, where weft_rma_restart() inserts them, too.
	 */
	TAILQ_FOREACH(req, &rma->pending, link) {
		if (!(req->flags & WEFT_REQ_STARTED))
			break;
		if (weft_rma_req(req)->kind == WEFT_RMA_PUT && !weft_rma_req(req)->native &&
		    req->status == WEFT_INPROGRESS && req->send.op_sn >= first &&
		    req->send.op_sn <= last)
			req->status = status;
	}
}

void weft_rma_recv_flushed(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_rma_flushed *f = data;
	struct weft_rma *rma = me->rma;
	uint64_t count = weft_get64(f->count), errors = weft_get64(f->errors);

	if (!rma || !rma->flush_outstanding || rma->flush_answered ||
	    count != rma->half[!rma->odd]) {
		me->mw->count.mismatch++;
		return;
	}
	if (errors > rma->errors && weft_get32(f->status)) {
		rma->errors = errors;
		refuse_range(rma, weft_rma_op_sn(me, weft_get32(f->first)),
			     weft_rma_op_sn(me, weft_get32(f->last)), -(int)weft_get32(f->status));
	}
	rma->flush_answered = true;
	rma->flushed_naks = weft_get64(f->naks);
	take_answer(me);
}

/* ------------------------------------------------------------------ fences */

bool weft_rma_blocked(const struct weft_request *req)
{
	const struct weft_msg_ep *me = req->me;

	return (weft_rma_req(req)->fence && !weft_rma_quiet(me->rma)) ||
	       (req->ext.any && !weft_rma_note_room(me->rma)) ||
	       (int32_t)(weft_rma_req(req)->epoch - me->mw->rma->fence_done) > 0;
}

bool weft_rma_may_start(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;

	if (!weft_rma_blocked(req))
		return true;
	if (me->rma->running == 0 && me->rma->sent != me->rma->confirmed)
		weft_rma_want(me, me->rma->sent);
	return false;
}

static bool has_any(const struct weft_rma *rma)
{
	return !rma->me->failed && (!weft_rma_quiet(rma) || !TAILQ_EMPTY(&rma->pending));
}

/* The number of fences before the oldest operation of an endpoint that has operations. */
static uint32_t epoch_of(const struct weft_rma *rma)
{
	return weft_rma_quiet(rma) ? weft_rma_req(TAILQ_FIRST(&rma->pending))->epoch : rma->epoch;
}

/* The oldest epoch of any operation, or fence_sn. Endpoints without operations leave the list. */
static uint32_t oldest_epoch(struct weft_msg_worker *mw)
{
	uint32_t oldest = mw->rma->fence_sn;
	struct weft_rma *rma, *next;

	for (rma = LIST_FIRST(&mw->rma->used); rma; rma = next) {
		next = LIST_NEXT(rma, used_link);
		mw->count.looks++;
		rma->holds = false;
		if (!has_any(rma)) {
			LIST_REMOVE(rma, used_link);
			rma->listed = false;
		} else if ((int32_t)(epoch_of(rma) - oldest) < 0) {
			oldest = epoch_of(rma);
		}
	}
	return oldest;
}

static void want_all(struct weft_rma *rma)
{
	if (epoch_of(rma) != rma->me->mw->rma->fence_sn && rma->running == 0)
		weft_rma_want(rma->me, rma->sent);
}

static void pass_fences(struct weft_msg_worker *mw)
{
	uint32_t oldest = oldest_epoch(mw);
	bool passed = oldest != mw->rma->fence_done;
	struct weft_rma *rma;

	mw->rma->fence_done = oldest;
	mw->rma->fence_holders = 0;
	LIST_FOREACH(rma, &mw->rma->used, used_link) {
		mw->count.looks++;
		if (oldest != mw->rma->fence_sn && epoch_of(rma) == oldest) {
			rma->holds = true;
			mw->rma->fence_holders++;
		}
		want_all(rma);
		if (passed && !TAILQ_EMPTY(&rma->pending))
			weft_tx_kick(rma->me);
	}
}

static void fence_moved(struct weft_rma *rma)
{
	struct weft_msg_worker *mw = rma->me->mw;
	bool any = has_any(rma);

	if (any)
		want_all(rma);
	if (!rma->holds || (any && epoch_of(rma) == mw->rma->fence_done))
		return;
	rma->holds = false;
	if (--mw->rma->fence_holders == 0)
		pass_fences(mw);
}

void weft_rma_moved(struct weft_msg_ep *me)
{
	struct weft_request *req;

	if (me->mw->rma->fence_done != me->mw->rma->fence_sn)
		fence_moved(me->rma);
	if (me->failed)
		return;
	weft_flush_check(me);
	if (me->failed || !(req = TAILQ_FIRST(&me->rma->pending)))
		return;
	if ((req->flags & WEFT_REQ_STARTED) || weft_rma_may_start(req))
		weft_tx_kick(me);
}

int weft_ep_fence(struct weft_ep *ep)
{
	int rc = 0;

	if (!ep)
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_ep_fence");
	weft_worker_lock(ep->worker);
	if (ep->msg->failed || ep->state == WEFT_EP_FAILED)
		rc = weft_msg_ep_why(ep);
	else if (ep->msg->rma && has_any(ep->msg->rma))
		ep->msg->rma->fence = true;
	weft_worker_unlock(ep->worker);
	return rc;
}

int weft_worker_fence(struct weft_worker *worker)
{
	struct weft_msg_worker *mw;

	if (!worker)
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_worker_fence");
	weft_worker_lock(worker);
	mw = worker->msg;
	oldest_epoch(mw);
	if (!LIST_EMPTY(&mw->rma->used))
		mw->rma->fence_sn++;
	pass_fences(mw);
	weft_worker_unlock(worker);
	return 0;
}

/* ------------------------------------------------------------------ for flush */

bool weft_rma_flushed(struct weft_msg_ep *me, uint64_t *count)
{
	struct weft_rma *rma = me->rma;

	if (!rma)
		return true;
	if (*count == 0)
		*count = rma->sent;
	if (rma->confirmed >= *count)
		return true;
	weft_rma_want(me, *count);
	return false;
}

int weft_rma_take_status(struct weft_msg_ep *me, uint64_t op_sn)
{
	struct weft_rma *rma = me->rma;
	uint32_t i, left = 0;
	int status = 0;

	for (i = 0; rma && i < rma->num_errors; i++) {
		struct weft_rma_error e = rma->error[i];

		if (e.first < op_sn && !status)
			status = e.status;
		if (e.last < op_sn)
			continue;
		/* The rest of the error's range may contain the failed operation, too. */
		if (e.first < op_sn)
			e.first = op_sn;
		rma->error[left++] = e;
	}
	if (rma)
		rma->num_errors = left;
	return status;
}

/* ------------------------------------------------------------------ gets outstanding */

/*
 * The limit is WEFT_RMA_MAX_GETS pieces of gets and native atomics, plus one for each peer without
 * any, because other operations may depend on its reply. So with many peers the initiator decides
 * how much arrives at a time. Peers that do not deliver do not occupy the limit (base/pacing.h).
 */

bool weft_rma_gets_room(struct weft_msg_ep *me)
{
	struct weft_msg_worker *mw = me->mw;
	struct weft_rma *rma = me->rma;

	if (weft_share_room(&mw->rma->gets, &rma->share, mw->worker->now))
		return true;
	mw->rma->gets_limited++;
	rma->gets_wait = true;
	/* A stalled endpoint continues when its own pieces come. */
	if (rma->gets_listed || rma->share.stalled)
		return false;
	rma->gets_listed = true;
	mw->work++;
	TAILQ_INSERT_TAIL(&mw->rma->gets_waiting, rma, gets_link);
	return false;
}

void weft_rma_gets_leave(struct weft_msg_ep *me)
{
	struct weft_rma *rma = me->rma;

	rma->gets_wait = false;
	if (!rma->gets_listed)
		return;
	rma->gets_listed = false;
	me->mw->work--;
	TAILQ_REMOVE(&me->mw->rma->gets_waiting, rma, gets_link);
}

static void go_on(struct weft_rma *rma)
{
	weft_rma_gets_leave(rma->me);
	weft_tx_kick(rma->me);
}

void weft_rma_gets_look(struct weft_msg_worker *mw)
{
	struct weft_rma *rma;

	if (TAILQ_EMPTY(&mw->rma->gets_waiting) ||
	    !weft_share_free(&mw->rma->gets, mw->worker->now))
		return;
	/* All waiting endpoints continue: the first may wait for something else now. */
	while ((rma = TAILQ_FIRST(&mw->rma->gets_waiting)))
		go_on(rma);
}

void weft_rma_gets_take(struct weft_msg_ep *me, uint32_t pieces)
{
	weft_share_take(&me->mw->rma->gets, &me->rma->share, pieces, me->mw->worker->now);
}

void weft_rma_gets_done(struct weft_msg_ep *me, uint32_t pieces, bool good)
{
	struct weft_rma *rma = me->rma;

	if (!pieces)
		return;
	weft_share_done(&me->mw->rma->gets, &rma->share, pieces, good, me->mw->worker->now);
	if (rma->gets_wait && !rma->share.stalled && (rma->share.out == 0 || !rma->gets_listed))
		go_on(rma);
	weft_rma_gets_look(me->mw);
}

void weft_rma_set_pieces(struct weft_request *req, uint64_t left)
{
	uint16_t now = (uint16_t)((left + WEFT_RMA_CHUNK - 1) / WEFT_RMA_CHUNK);

	req->me->rma->open -= weft_rma_req(req)->pieces;
	req->me->rma->open += now;
	if (weft_rma_req(req)->kind == WEFT_RMA_GET) {
		req->me->rma->gets += now - weft_rma_req(req)->pieces;
		if (now > weft_rma_req(req)->pieces)
			weft_rma_gets_take(req->me, now - weft_rma_req(req)->pieces);
		else
			weft_rma_gets_done(req->me, weft_rma_req(req)->pieces - now, true);
	}
	weft_rma_req(req)->pieces = now;
}

/* ------------------------------------------------------------------ notifying puts */

/*
 * Each piece contains the notification, the length of the put, and its number. The target adds up
 * the bytes that have arrived. So lanes may deliver the pieces in any order, and a lane may cut
 * pieces that it takes over from a dead one. If a put ends early (refused, or its pack callback
 * fails), the initiator sends how many bytes it has sent, so that the target drops its state.
 */

/* ------------------------------------------------------------------ their initiator */

struct head {
	struct weft_wire_ext x;
	struct weft_wire_put_note n;
} __attribute__((packed));

static struct head head_of(const struct weft_request *req, size_t off)
{
	return (struct head){
		weft_ext_to_wire(&req->ext, WEFT_WIRE_PUT),
		{
			.put = weft_rma_put_head(req, off),
			.total = weft_put64(req->length),
			.number = weft_put32(weft_rma_req(req)->number),
		},
	};
}

/*
 * All earlier puts are with the lanes, because operations are sent one after the other. So when
 * everything sent up to a mark is confirmed, no put before the mark is incomplete at the target.
 */
void weft_rma_note_begin(struct weft_request *req)
{
	struct weft_rma *rma = req->me->rma;

	if (rma->notes == WEFT_WIRE_NOTES / 4) {
		rma->notes = 0;
		rma->note_mark = rma->sent;
		weft_rma_want(req->me, rma->note_mark);
	}
	rma->notes++;
	weft_rma_req(req)->number = rma->note_number++;
}

static int send_small(struct weft_request *req, const struct head *h)
{
	if (weft_tx_envelope_any(req->me, WEFT_WIRE_EXT, h, sizeof(*h)))
		return -EAGAIN;
	weft_rma_count(req->me->rma, req->me->rma->odd);
	return 0;
}

static ssize_t put_piece(struct weft_request *req, unsigned int lane, size_t off, size_t rest)
{
	const struct head h = head_of(req, off);

	return weft_rma_put_piece(req, lane, WEFT_WIRE_EXT, &h, sizeof(h), off, rest);
}

/* Ends a put of which only a part was sent: the target must not wait for the rest. */
static int send_end(struct weft_request *req)
{
	struct head h = head_of(req, 0);

	h.x.flags = WEFT_EXT_F_END;
	h.x.imm = weft_put64(0);
	h.n.total = weft_put64(req->send.offset);
	return send_small(req, &h);
}

int weft_rma_note_step(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;
	struct head h;
	int rc = 0;

	if (req->status == WEFT_INPROGRESS && req->length == 0) {
		h = head_of(req, 0);
		return send_small(req, &h);
	}
	if (req->status == WEFT_INPROGRESS)
		rc = weft_stripe(req, me->rndv_lanes | 1u << me->am_lane, WEFT_DIR_TX, req->length,
				 put_piece);
	if (rc == -EAGAIN)
		return rc;
	if (rc && req->status == WEFT_INPROGRESS)
		req->status = rc;
	if (req->send.offset == 0 || req->send.offset == req->length)
		return 0;
	return send_end(req);
}

/* ------------------------------------------------------------------ their target */

/* A put of which a part has arrived. */
struct note {
	struct weft_table_node by_number;
	struct weft_ext ext;
	uint64_t key;
	uint64_t offset; /* in the memory; the lowest of the put's messages so far */
	uint64_t total, came;
	bool ended;  /* the message with WEFT_EXT_F_END has come: total is what was sent */
	bool failed; /* no notification follows */
};

static void notify_app(struct weft_msg_ep *me, const struct weft_ext *x, uint64_t key,
		       uint64_t offset, uint64_t length)
{
	struct weft_rma_worker *rw = me->mw->rma;
	const struct weft_put_event event = {
		.size = sizeof(event),
		.source_id = me->ep->remote_id,
		.ep = me->ep,
		.imm = x->imm,
		.channel = x->channel,
		.source_channel = x->source_channel,
		.key = key,
		.offset = offset,
		.length = length,
	};

	if (!rw->put_cb || me->closing) {
		rw->notes_dropped++;
		return;
	}
	rw->notes++;
	rw->put_cb(me->mw->worker, &event, rw->put_arg);
}

static struct note *find_note(struct weft_rma *rma, uint32_t number)
{
	struct weft_table_node *node = weft_table_find(&rma->noted, number);

	return node ? container_of(node, struct note, by_number) : NULL;
}

static bool table_seeded(struct weft_msg_ep *me)
{
	const struct weft_platform *platform = me->mw->worker->ctx->platform;
	struct weft_table *t = &me->rma->noted;

	return t->seed || platform->random(platform->arg, &t->seed, sizeof(t->seed)) == 0;
}

/* @return NULL: the endpoint has failed */
static struct note *new_note(struct weft_msg_ep *me, const struct weft_wire_put_note *n,
			     const struct weft_ext *x)
{
	struct weft_rma *rma = me->rma;
	struct note *note;

	if (rma->noted.num >= WEFT_WIRE_NOTES) {
		weft_msg_fail(me, -EPROTO, "the peer has begun more than %u puts that notify",
			      WEFT_WIRE_NOTES);
		return NULL;
	}
	note = malloc(sizeof(*note));
	if (!note || !table_seeded(me) ||
	    weft_table_add(&rma->noted, &note->by_number, weft_get32(n->number))) {
		free(note);
		weft_msg_fail(me, -ENOMEM, "no memory or random seed for a put that notifies");
		return NULL;
	}
	note->ext = *x;
	note->key = weft_get64(n->put.key);
	note->offset = UINT64_MAX;
	note->total = weft_get64(n->total);
	note->came = 0;
	note->ended = note->failed = false;
	return note;
}

/* @return false: the message contradicts earlier ones, and is not counted */
static bool note_add(struct note *note, const struct weft_wire_put_note *n, size_t length, bool end)
{
	uint64_t total = weft_get64(n->total), offset = weft_get64(n->put.offset);

	if (end ? note->ended || total > note->total
		: !note->ended && (total != note->total || note->key != weft_get64(n->put.key)))
		return false;
	if (end) {
		note->total = total;
		note->ended = note->failed = true;
	}
	if (note->came > note->total || length > note->total - note->came)
		return false;
	note->came += length;
	if (!end && offset < note->offset)
		note->offset = offset;
	return true;
}

static void of_several(struct weft_msg_ep *me, const struct weft_wire_put_note *n, size_t length,
		       const struct weft_ext *x, int status)
{
	struct weft_rma *rma = me->rma;
	struct note *note = find_note(rma, weft_get32(n->number)), whole;

	if (!note && !(note = new_note(me, n, x)))
		return;
	if (!note_add(note, n, length, !x->has_imm))
		me->mw->count.mismatch++;
	note->failed |= status != 0;
	if (note->came < note->total)
		return;
	/* The callback may close the endpoint. */
	weft_table_remove(&rma->noted, &note->by_number);
	whole = *note;
	free(note);
	if (!whole.failed)
		notify_app(me, &whole.ext, whole.key, whole.offset, whole.total);
}

/* A message without immediate data ends a put, and has no bytes. */
void weft_rma_recv_put_note(struct weft_msg_ep *me, const struct weft_wire_put_note *n,
			    size_t length, const struct weft_ext *x)
{
	uint32_t flags = weft_get32(n->put.flags);
	int rc = 0;

	if (!weft_rma_ready(me))
		return;
	if (x->has_imm)
		rc = weft_rma_write(me, &n->put, n + 1, length);
	if (!x->has_imm || length != weft_get64(n->total))
		of_several(me, n, length, x, rc);
	else if (rc == 0)
		notify_app(me, x, weft_get64(n->put.key), weft_get64(n->put.offset), length);
	if (!me->failed)
		weft_rma_counted(me, n->put.ref, flags, flags >> WEFT_WIRE_RMA_SHIFT, rc);
}

void weft_rma_note_drop(struct weft_rma *rma)
{
	struct weft_table_node *node;
	uint32_t from = 0;

	while ((node = weft_table_any(&rma->noted, &from))) {
		weft_table_remove(&rma->noted, node);
		free(container_of(node, struct note, by_number));
	}
	weft_table_fini(&rma->noted);
}

/* ------------------------------------------------------------------ the handler of PUT_NOTE */

int weft_worker_set_put_handler(struct weft_worker *worker, weft_put_cb cb, void *arg)
{
	if (!worker)
		return -EINVAL;
	if (!(worker->ctx->features & WEFT_FEATURE_RMA)) {
		weft_error("puts that notify need WEFT_FEATURE_RMA when the context is created");
		return -EOPNOTSUPP;
	}
	weft_worker_lock(worker);
	worker->msg->rma->put_cb = cb;
	worker->msg->rma->put_arg = arg;
	weft_worker_unlock(worker);
	return 0;
}
