/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts that notify their target. Each piece contains the notification, the length of the put, and
 * its number. The target adds up the bytes that it has written. So lanes may deliver the pieces in
 * any order, and a lane may cut pieces that it takes over from a dead one. A put that ends early
 * (refused, or its pack callback fails) sends how many bytes it has sent, so that the target drops
 * its state.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "msg/msg.h"
#include "rma/fence.h"
#include "rma/initiator.h"
#include "rma/rma.h"
#include "rma/target.h"

/* ------------------------------------------------------------------ initiator */

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

/* ------------------------------------------------------------------ target */

/* A put of which a part has arrived. */
struct note {
	struct weft_table_node by_number;
	struct weft_ext ext;
	uint64_t key;
	uint64_t offset; /* lowest so far */
	uint64_t total, came;
	bool ended;  /* total is the number of bytes sent */
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

/* Add one more message of a put. @return false: the message contradicts earlier ones */
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

/* ------------------------------------------------------------------ handler */

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
