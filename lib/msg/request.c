/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "mem/mem.h"
#include "msg/msg.h"
#include "am/am.h"
#include "rma/rma.h"

/* ------------------------------------------------------------------ table */

static int request_table_grow(struct weft_msg_worker *mw)
{
	struct weft_request_table *t = &mw->reqs;
	struct weft_request **chunks, *chunk;

	if (t->num_chunks >= UINT32_MAX / WEFT_REQ_CHUNK)
		return -ENOMEM;
	chunks = realloc(t->chunks, (t->num_chunks + 1) * sizeof(*chunks));
	if (!chunks)
		return -ENOMEM;
	t->chunks = chunks;
	chunk = aligned_alloc(64, WEFT_REQ_CHUNK * sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	for (uint32_t i = 0; i < WEFT_REQ_CHUNK; i++) {
		chunk[i].mw = mw;
		chunk[i].index = t->num_chunks * WEFT_REQ_CHUNK + i;
		chunk[i].generation = 1;
		chunk[i].flags = WEFT_REQ_DONE;
		chunk[i].link.tqe_next = t->free;
		t->free = &chunk[i];
	}
	t->chunks[t->num_chunks++] = chunk;
	return 0;
}

struct weft_request *weft_request_more(struct weft_msg_worker *mw)
{
	return request_table_grow(mw) ? NULL : mw->reqs.free;
}

void weft_request_table_fini(struct weft_msg_worker *mw)
{
	struct weft_request_table *t = &mw->reqs;

	for (uint32_t i = 0; i < t->num_chunks; i++)
		free(t->chunks[i]);
	free(t->chunks);
	t->chunks = NULL;
	t->num_chunks = 0;
}

static void let_go_mem(struct weft_request *req)
{
	/*
	 * The peer has not said that it is through: its hardware may read for a while yet, but not
	 * what is here then.
	 */
	bool dead = req->flags & WEFT_REQ_KEYS;

	if (!req->send.mem)
		return;
	weft_rndv_withdraw_keys(req, dead);
	if ((req->flags & WEFT_REQ_OWN_MEM) && dead)
		weft_mem_put_dead(req->send.mem);
	else if (req->flags & WEFT_REQ_OWN_MEM)
		weft_mem_put(req->send.mem);
	else
		req->send.mem->refs--;
	req->send.mem = NULL;
}

static void let_go_send(struct weft_request *req)
{
	let_go_mem(req);
	if (req->flags & WEFT_REQ_RNDV)
		free(req->send.put);
	if (req->kind == WEFT_REQ_RMA)
		weft_rma_let_go(req);
	else if (req->flags & WEFT_REQ_AM)
		weft_am_let_go(req);
}

/* What the operation has borrowed. */
static inline void let_go(struct weft_request *req)
{
	weft_dt_finish(&req->dt);
	if (req->kind == WEFT_REQ_SEND || req->kind == WEFT_REQ_RMA)
		let_go_send(req);
}

void weft_request_drop(struct weft_request *req)
{
	let_go(req);
	req->flags = WEFT_REQ_DONE;
	weft_request_give_back(req);
}

struct weft_request *weft_request_lookup(const struct weft_msg_worker *mw, struct weft_wire_ref ref)
{
	uint32_t index = weft_get32(ref.index);
	struct weft_request *req;

	if (index / WEFT_REQ_CHUNK >= mw->reqs.num_chunks)
		return NULL;
	req = &mw->reqs.chunks[index / WEFT_REQ_CHUNK][index % WEFT_REQ_CHUNK];
	if (req->generation != weft_get32(ref.generation) || (req->flags & WEFT_REQ_DONE))
		return NULL;
	return req;
}

/* ------------------------------------------------------------------ completion */

/* The endpoint may have been closed since: its slot then has another generation. */
static inline struct weft_ep *ep_of(const struct weft_request *req)
{
	const struct weft_worker *w = req->mw->worker;
	struct weft_ep *ep;

	if (req->ep_generation == 0 || req->ep_slot >= w->ep_table_size)
		return NULL;
	ep = w->ep_table[req->ep_slot];
	return ep && ep->generation == req->ep_generation ? weft_ep_of_user(ep) : NULL;
}

/* All but its size. */
static inline void fill(const struct weft_request *req, struct weft_completion *c)
{
	c->status = req->status == WEFT_INPROGRESS ? 0 : req->status;
	c->tag = req->tag;
	c->length = req->length;
	c->ep = ep_of(req);
	c->source_id = req->source_id;
}

void weft_request_result(const struct weft_request *req, struct weft_completion *c)
{
	struct weft_completion full;

	if (c->size >= sizeof(*c)) {
		fill(req, c);
		return;
	}
	fill(req, &full);
	weft_completion_copy(c, &full);
}

static inline void settle(struct weft_request *req)
{
	if (req->me && req->me->ep) {
		req->ep_slot = req->me->ep->slot;
		req->ep_generation = req->me->ep->generation;
	}
	req->me = NULL;
}

void weft_request_settle(struct weft_request *req)
{
	settle(req);
}

static inline void finish(struct weft_request *req, int status)
{
	req->status = status;
	settle(req);
	let_go(req);
	if (status && (req->kind == WEFT_REQ_SEND || req->kind == WEFT_REQ_RMA))
		req->length = 0;
}

static inline void call_back(struct weft_request *req)
{
	bool held = req->flags & WEFT_REQ_HELD;

	req->flags |= WEFT_REQ_DONE;
	if (req->cb) {
		struct weft_completion c;

		c.size = sizeof(c);
		fill(req, &c);
		req->flags |= WEFT_REQ_CALLING;
		req->cb(held ? req : NULL, &c, req->cb_arg);
		req->flags &= ~WEFT_REQ_CALLING;
	}
	if (!(req->flags & WEFT_REQ_HELD))
		weft_request_give_back(req);
}

void weft_request_complete(struct weft_request *req, int status)
{
	/* Lanes that close tell what they still held, under the context's lock. */
	if (__builtin_expect(req->mw->fini, 0)) {
		weft_request_complete_later(req, status);
		return;
	}
	finish(req, status);
	call_back(req);
}

void weft_request_complete_later(struct weft_request *req, int status)
{
	finish(req, status);
	req->flags |= WEFT_REQ_LATER;
	TAILQ_INSERT_TAIL(&req->mw->later, req, link);
}

unsigned int weft_request_run_later(struct weft_msg_worker *mw)
{
	struct weft_request *req, *last = TAILQ_LAST(&mw->later, weft_requests);
	unsigned int n = 0;

	/* Callbacks may add more: those are for the next time. */
	while ((req = TAILQ_FIRST(&mw->later))) {
		TAILQ_REMOVE(&mw->later, req, link);
		req->flags &= ~WEFT_REQ_LATER;
		n++;
		call_back(req);
		if (req == last)
			break;
	}
	return n;
}

/* ------------------------------------------------------------------ for the connection half */

struct weft_request *weft_msg_request_new(struct weft_worker *worker, const char *what,
					  const struct weft_op_params *params, bool wanted)
{
	struct weft_request *req = weft_request_alloc(worker->msg, WEFT_REQ_OTHER, params, wanted);

	if (!req)
		return NULL;
	req->tag = 0;
	req->length = 0;
	req->what = what;
	return req;
}

void weft_msg_request_done(struct weft_request *req, int status)
{
	weft_request_complete(req, status);
}

int weft_msg_request_at_once(struct weft_request *req, int status)
{
	if (req->flags & WEFT_REQ_FORCE) {
		weft_request_complete_later(req, status);
		return WEFT_INPROGRESS;
	}
	weft_request_drop(req);
	return status;
}

/* ------------------------------------------------------------------ calls of the user */

int weft_request_test(struct weft_request *req, struct weft_completion *c)
{
	struct weft_worker *w = req->mw->worker;
	int status = WEFT_INPROGRESS;

	weft_worker_lock(w);
	if (req->flags & WEFT_REQ_DONE) {
		status = req->status;
		if (c)
			weft_request_result(req, c);
	}
	weft_worker_unlock(w);
	return status;
}

void weft_request_free(struct weft_request *req)
{
	struct weft_worker *w;

	if (!req)
		return;
	w = req->mw->worker;
	weft_worker_lock(w);
	req->flags &= ~WEFT_REQ_HELD;
	if (!(req->flags & WEFT_REQ_DONE))
		req->cb = NULL;
	else if (!(req->flags & WEFT_REQ_CALLING))
		weft_request_give_back(req);
	weft_worker_unlock(w);
}

int weft_request_cancel(struct weft_request *req)
{
	struct weft_msg_worker *mw = req->mw;
	struct weft_worker *w = mw->worker;
	bool was;
	int rc = 0;

	weft_worker_lock(w);
	was = weft_worker_enter(w);
	if (weft_dt_calls) {
		rc = weft_dt_refuse("weft_request_cancel");
	} else if (req->flags & WEFT_REQ_DONE) {
		rc = -EALREADY;
	} else if (req->flags & WEFT_REQ_LATER) {
		rc = -EBUSY; /* decided, and not told yet */
	} else if (req->kind == WEFT_REQ_SEND) {
		rc = weft_send_cancel(req);
	} else if (!(req->flags & WEFT_REQ_POSTED)) {
		rc = -EBUSY;
	} else {
		req->flags &= ~WEFT_REQ_POSTED;
		weft_match_cancel(&mw->match, &req->recv.match);
		req->length = 0;
		weft_request_complete(req, -ECANCELED);
	}
	weft_worker_leave(w, was);
	weft_worker_unlock(w);
	return rc;
}

/* ------------------------------------------------------------------ in words */

static const char *state_of(const struct weft_request *req)
{
	if (req->flags & WEFT_REQ_DONE)
		return weft_strerror(req->status);
	if (req->flags & WEFT_REQ_LATER)
		return "complete";
	if (req->flags & WEFT_REQ_POSTED)
		return "posted";
	if (req->flags & WEFT_REQ_ACTIVE)
		return "matched, data is coming";
	if (req->kind == WEFT_REQ_OTHER)
		return "in progress";
	if (req->flags & WEFT_REQ_PENDING)
		return req->flags & WEFT_REQ_STARTED ? "partly sent" : "queued";
	if ((req->flags & WEFT_REQ_DATA) || ((req->flags & WEFT_REQ_RNDV) && req->send.pulls))
		return "sending the data the receiver asked for";
	if (req->flags & WEFT_REQ_WAIT_ACK)
		return req->kind == WEFT_REQ_RMA ? "waiting for the peer"
						 : "waiting for the receiver";
	return "waiting for the lanes";
}

static int query_send(const struct weft_request *req, char *buf, size_t size)
{
	const struct weft_proto *proto = req->flags & WEFT_REQ_DONE ? NULL : req->send.proto;

	return snprintf(buf, size, "%s, %s, %s 0x%" PRIx64 ", %zu bytes, %zu handed to lanes, %s",
			req->flags & WEFT_REQ_AM     ? "active message"
			: req->flags & WEFT_REQ_SYNC ? "tag synchronous send"
						     : "tag send",
			proto ? proto->name : "no protocol yet",
			req->flags & WEFT_REQ_AM ? "id" : "tag", req->tag, req->length,
			req->send.offset, state_of(req));
}

static int query_recv(const struct weft_request *req, char *buf, size_t size)
{
	bool am = req->flags & WEFT_REQ_AM;

	if (req->flags & WEFT_REQ_POSTED)
		return snprintf(buf, size,
				"tag receive, tag 0x%" PRIx64 " mask 0x%" PRIx64
				", room for %zu bytes, posted",
				req->recv.match.tag, req->recv.match.mask, req->dt.length);
	return snprintf(buf, size, "%s receive, %s 0x%" PRIx64 ", %zu bytes, room for %zu, %s",
			am ? "active message" : "tag", am ? "id" : "tag", req->tag, req->length,
			req->dt.length, state_of(req));
}

int weft_request_query(const struct weft_request *req, char *buf, size_t size)
{
	struct weft_worker *w = req->mw->worker;
	int n;

	weft_worker_lock(w);
	if (req->kind == WEFT_REQ_OTHER)
		n = snprintf(buf, size, "%s, %s", req->what, state_of(req));
	else if (req->kind == WEFT_REQ_SEND)
		n = query_send(req, buf, size);
	else if (req->kind == WEFT_REQ_RMA)
		n = weft_rma_query(req, state_of(req), buf, size);
	else
		n = query_recv(req, buf, size);
	weft_worker_unlock(w);
	return n;
}
