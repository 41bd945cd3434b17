/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "lane_attr.h"
#include "msg/request.h"
#include "msg/state.h"

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

static inline void request_release(struct weft_request *req)
{
	weft_dt_finish(&req->dt);
	if (req->ops->release)
		req->ops->release(req);
}

void weft_request_drop(struct weft_request *req)
{
	request_release(req);
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

/* Fill all fields but the size. */
static inline void fill_completion(const struct weft_request *req, struct weft_completion *c)
{
	c->status = req->status == WEFT_INPROGRESS ? 0 : req->status;
	c->tag = req->tag;
	c->length = req->length;
	c->ep = ep_of(req);
	c->source_id = req->source_id;
	c->imm = req->ext.imm;
	c->flags = req->ext.has_imm ? WEFT_COMPLETION_F_IMM : 0;
	c->channel = req->ext.channel;
	c->source_channel = req->ext.source_channel;
}

void weft_request_result(const struct weft_request *req, struct weft_completion *c)
{
	struct weft_completion full;

	if (c->size >= sizeof(*c)) {
		fill_completion(req, c);
		return;
	}
	fill_completion(req, &full);
	weft_completion_copy(c, &full);
}

static inline void request_settle(struct weft_request *req)
{
	if (req->me && req->me->ep) {
		req->ep_slot = req->me->ep->slot;
		req->ep_generation = req->me->ep->generation;
	}
	req->me = NULL;
}

void weft_request_settle(struct weft_request *req)
{
	request_settle(req);
}

static inline void request_finish(struct weft_request *req, int status)
{
	WEFT_PROBE4(complete, req, status, req->tag, req->length);
	req->status = status;
	/* first: release() may need req->me, to count the end for its endpoint */
	request_release(req);
	request_settle(req);
}

static inline void call_back(struct weft_request *req)
{
	bool held = req->flags & WEFT_REQ_HELD;

	req->flags |= WEFT_REQ_DONE;
	if (req->cb) {
		struct weft_completion c;

		c.size = sizeof(c);
		fill_completion(req, &c);
		req->flags |= WEFT_REQ_CALLING;
		req->cb(held ? req : NULL, &c, req->cb_arg);
		req->flags &= ~WEFT_REQ_CALLING;
	}
	if (!(req->flags & WEFT_REQ_HELD))
		weft_request_give_back(req);
}

void weft_request_complete(struct weft_request *req, int status)
{
	/* Lanes that close report what they held, under the context's lock: callbacks run later. */
	if (__builtin_expect(req->mw->fini, 0)) {
		weft_request_complete_later(req, status);
		return;
	}
	request_finish(req, status);
	call_back(req);
}

void weft_request_complete_later(struct weft_request *req, int status)
{
	request_finish(req, status);
	req->flags |= WEFT_REQ_LATER;
	TAILQ_INSERT_TAIL(&req->mw->later, req, link);
}

unsigned int weft_request_run_later(struct weft_msg_worker *mw)
{
	struct weft_request *req, *last = TAILQ_LAST(&mw->later, weft_requests);
	unsigned int n = 0;

	/* Callbacks may add more: those complete at the next progress. */
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

static const char *request_state(const struct weft_request *req)
{
	if (req->flags & WEFT_REQ_DONE)
		return weft_strerror(req->status);
	if (req->flags & WEFT_REQ_LATER)
		return "complete";
	if (req->flags & WEFT_REQ_ACTIVE)
		return "matched, data is coming";
	return "waiting for the lanes";
}

static int describe_other(const struct weft_request *req, char *buf, size_t size)
{
	return snprintf(buf, size, "%s, %s", req->what,
			req->flags & (WEFT_REQ_DONE | WEFT_REQ_LATER) ? request_state(req)
								      : "in progress");
}

static const struct weft_request_ops other_ops = {.describe = describe_other};

struct weft_request *weft_msg_request_new(struct weft_worker *worker, const char *what,
					  const struct weft_op_params *params, bool wanted)
{
	struct weft_request *req = weft_request_alloc(worker->msg, &other_ops, params, wanted);

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
	int status = WEFT_INPROGRESS;
	struct weft_worker *w;

	if (!req)
		return -EINVAL;
	w = req->mw->worker;
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
	struct weft_worker *w;
	bool was;
	int rc = 0;

	if (!req)
		return -EINVAL;
	w = req->mw->worker;
	weft_worker_lock(w);
	was = weft_worker_enter(w);
	if (weft_dt_calls) {
		rc = weft_dt_refuse("weft_request_cancel");
	} else if (req->flags & WEFT_REQ_DONE) {
		rc = -EALREADY;
	} else if (req->flags & WEFT_REQ_LATER) {
		rc = -EBUSY; /* complete: the next progress call reports it */
	} else {
		rc = req->ops->cancel ? req->ops->cancel(req) : -EBUSY;
	}
	weft_worker_leave(w, was);
	weft_worker_unlock(w);
	return rc;
}

/* ------------------------------------------------------------------ in words */

const char *weft_send_state(const struct weft_request *req)
{
	if (req->flags & (WEFT_REQ_DONE | WEFT_REQ_LATER))
		return request_state(req);
	if (req->flags & WEFT_REQ_PENDING)
		return req->flags & WEFT_REQ_STARTED ? "partly sent" : "queued";
	if ((req->flags & WEFT_REQ_DATA) || ((req->flags & WEFT_REQ_RNDV) && req->send.pulls))
		return "sending the data that the receiver requested";
	if (req->flags & WEFT_REQ_WAIT_ACK)
		return "waiting for the receiver";
	return request_state(req);
}

int weft_send_describe(const struct weft_request *req, const char *what, const char *key, char *buf,
		       size_t size)
{
	const struct weft_proto *proto = req->flags & WEFT_REQ_DONE ? NULL : req->send.proto;

	return snprintf(buf, size, "%s, %s, %s 0x%" PRIx64 ", %zu bytes, %zu handed to lanes, %s",
			what, proto ? proto->name : "no protocol yet", key, req->tag, req->length,
			req->send.offset, weft_send_state(req));
}

int weft_recv_describe(const struct weft_request *req, const char *what, const char *key, char *buf,
		       size_t size)
{
	return snprintf(buf, size, "%s receive, %s 0x%" PRIx64 ", %zu bytes, room for %zu, %s",
			what, key, req->tag, req->length, req->dt.length, request_state(req));
}

int weft_request_query(const struct weft_request *req, char *buf, size_t size)
{
	struct weft_worker *w = req->mw->worker;
	int n;

	weft_worker_lock(w);
	n = req->ops->describe(req, buf, size);
	weft_worker_unlock(w);
	return n;
}

/* ------------------------------------------------------------------ the buffer of an operation */

_Thread_local unsigned int weft_dt_calls;
_Thread_local bool weft_dt_in_place;

int weft_dt_refuse(const char *call)
{
	static struct weft_log_limit limit;

	weft_log_limited(&limit, WEFT_LOG_ERROR,
			 "%s() called inside a callback of a datatype: refused", call);
	return -EBUSY;
}

static int init_iov(struct weft_dt *dt, const struct iovec *iov, size_t count)
{
	if (count > UINT32_MAX || (count && !iov))
		return -EINVAL;
	dt->iov = iov;
	dt->iovcnt = count;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len > SIZE_MAX - dt->length)
			return -EINVAL;
		dt->length += iov[i].iov_len;
	}
	return 0;
}

static int init_generic(struct weft_dt *dt, const struct weft_datatype *type, const void *buffer,
			size_t count, bool unpack)
{
	const struct weft_generic_ops *ops = type->ops;

	if (!ops || ops->size < sizeof(*ops))
		return -EINVAL;
	dt->ops = ops;
	weft_dt_calls++;
	dt->state = unpack ? ops->start_unpack(type->arg, (void *)(uintptr_t)buffer, count)
			   : ops->start_pack(type->arg, buffer, count);
	if (dt->state)
		dt->length = ops->packed_size(dt->state);
	weft_dt_calls--;
	return dt->state ? 0 : -ENOMEM;
}

int weft_dt_init_slow(struct weft_dt *dt, const struct weft_datatype *type, const void *buffer,
		      size_t count, bool unpack)
{
	*dt = (struct weft_dt){.dt_class = type ? type->dt_class : WEFT_DT_CONTIG};
	if (type && type->size < sizeof(*type))
		return -EINVAL;
	switch (dt->dt_class) {
	case WEFT_DT_CONTIG:
		dt->buf = (void *)(uintptr_t)buffer;
		dt->length = count;
		return count && !buffer ? -EINVAL : 0;
	case WEFT_DT_IOV:
		return init_iov(dt, buffer, count);
	case WEFT_DT_GENERIC:
		return init_generic(dt, type, buffer, count, unpack);
	default:
		return -EINVAL;
	}
}

/* Put the cursor on the entry that holds byte @p off (off < length). */
static void iov_seek(struct weft_dt *dt, size_t off)
{
	while (off < dt->base)
		dt->base -= dt->iov[--dt->pos].iov_len;
	while (off >= dt->base + dt->iov[dt->pos].iov_len)
		dt->base += dt->iov[dt->pos++].iov_len;
}

/* The longest contiguous memory that begins with byte @p off, at most @p len bytes. */
static void *contiguous_at(struct weft_dt *dt, size_t off, size_t *len)
{
	size_t skip, here;

	iov_seek(dt, off);
	skip = off - dt->base;
	here = dt->iov[dt->pos].iov_len - skip;
	if (here < *len)
		*len = here;
	return (uint8_t *)dt->iov[dt->pos].iov_base + skip;
}

int weft_dt_pack_slow(struct weft_dt *dt, size_t off, void *dst, size_t len)
{
	uint8_t *d = dst;

	while (len) {
		size_t n = len;

		if (dt->dt_class == WEFT_DT_IOV) {
			const void *s = contiguous_at(dt, off, &n);

			memcpy(d, s, n);
		} else {
			ssize_t rc;

			weft_dt_calls++;
			rc = dt->ops->pack(dt->state, off, d, len);
			weft_dt_calls--;
			if (rc < 0)
				return (int)rc;
			/* 0 would loop forever; more than len has overrun the buffer */
			if (rc == 0 || (size_t)rc > len)
				return -EINVAL;
			n = (size_t)rc;
		}
		off += n;
		d += n;
		len -= n;
	}
	return 0;
}

static int unpack_generic(struct weft_dt *dt, size_t off, const void *src, size_t len)
{
	int rc;

	if (!len)
		return 0;
	weft_dt_calls++;
	rc = dt->ops->unpack(dt->state, off, src, len);
	weft_dt_calls--;
	return rc;
}

/* From memory that another process can change: the callback gets a copy, in parts. */
static __attribute__((noinline)) int unpack_copies(struct weft_dt *dt, size_t off,
						   const uint8_t *src, size_t len)
{
	uint8_t copy[1024];
	size_t n;
	int rc = 0;

	for (; len && rc >= 0; off += n, src += n, len -= n) {
		n = len < sizeof(copy) ? len : sizeof(copy);
		memcpy(copy, src, n);
		rc = unpack_generic(dt, off, copy, n);
	}
	return rc;
}

int weft_dt_unpack_slow(struct weft_dt *dt, size_t off, const void *src, size_t len)
{
	const uint8_t *s = src;

	if (dt->dt_class == WEFT_DT_GENERIC)
		return weft_dt_in_place ? unpack_copies(dt, off, src, len)
					: unpack_generic(dt, off, src, len);
	while (len) {
		size_t n = len;
		void *d = contiguous_at(dt, off, &n);

		memcpy(d, s, n);
		off += n;
		s += n;
		len -= n;
	}
	return 0;
}

unsigned int weft_dt_iov_some(struct weft_dt *dt, size_t off, size_t *len, struct iovec *out,
			      unsigned int max)
{
	unsigned int num = 0;
	size_t rest = *len;

	if (dt->dt_class == WEFT_DT_CONTIG) {
		*out = (struct iovec){dt->buf + off, rest};
		return 1;
	}
	while (rest && num < max) {
		size_t n = rest;
		void *p = contiguous_at(dt, off, &n);

		out[num++] = (struct iovec){p, n};
		off += n;
		rest -= n;
	}
	*len -= rest;
	return num;
}

unsigned int weft_dt_iov(struct weft_dt *dt, size_t off, size_t len, struct iovec *out,
			 unsigned int max)
{
	size_t some = len;
	unsigned int num;

	if (dt->dt_class == WEFT_DT_GENERIC)
		return 0;
	num = weft_dt_iov_some(dt, off, &some, out, max);
	return some == len ? num : 0;
}

/* ------------------------------------------------------------------ stalls */

static void count(struct weft_stalls *s, enum weft_stall stall, int32_t more)
{
	s->num[stall] += (uint32_t)more;
	s->all += (uint32_t)more;
}

void weft_stall_set(struct weft_msg_ep *me, enum weft_stall stall)
{
	if (me->stall == stall)
		return;
	if (me->stall != WEFT_STALL_NONE)
		count(&me->mw->stalls, (enum weft_stall)me->stall, -1);
	if (stall != WEFT_STALL_NONE)
		count(&me->mw->stalls, stall, 1);
	me->stall = (uint8_t)stall;
}

void weft_stall_offered(struct weft_request *req)
{
	if (req->flags & WEFT_REQ_OFFERED)
		return;
	req->flags |= WEFT_REQ_OFFERED;
	count(&req->mw->stalls, WEFT_STALL_RECEIVE, 1);
}

void weft_stall_requested(struct weft_request *req)
{
	if (!(req->flags & WEFT_REQ_OFFERED))
		return;
	req->flags &= ~WEFT_REQ_OFFERED;
	count(&req->mw->stalls, WEFT_STALL_RECEIVE, -1);
}

void weft_stall_account(struct weft_stalls *s, uint64_t ns)
{
	for (unsigned int i = 1; i < WEFT_STALLS; i++)
		if (s->num[i])
			s->ns[i] += ns;
}

/* ------------------------------------------------------------------ latencies */

/* The longest message of each class but the last. */
static const size_t sizes[WEFT_LATENCY_SIZES - 1] = {64, 4096, 65536, 1048576};

void weft_latency_begin(struct weft_request *req)
{
	req->send.begin = req->mw->worker->now;
	req->flags |= WEFT_REQ_TIMED;
}

/* Powers of four from 1 us on; the last step has no end. */
static unsigned int step_of(uint64_t ns)
{
	uint64_t us = ns / 1000;
	unsigned int bits = us ? 64 - (unsigned int)__builtin_clzll(us) : 0, step = (bits + 1) / 2;

	return step < WEFT_LATENCY_STEPS ? step : WEFT_LATENCY_STEPS - 1;
}

void weft_latency_end(const struct weft_request *req)
{
	unsigned int size = 0;

	/* Operations that began without weft_latency_begin() end here, too. */
	if (!(req->flags & WEFT_REQ_TIMED))
		return;
	while (size < WEFT_LATENCY_SIZES - 1 && req->dt.length > sizes[size])
		size++;
	req->mw->stalls.latency[size][step_of(req->mw->worker->now - req->send.begin)]++;
	req->mw->stalls.bytes[size] += req->dt.length;
}

size_t weft_latency_mean_size(const struct weft_stalls *s, unsigned int size)
{
	uint64_t sends = 0;

	for (unsigned int k = 0; k < WEFT_LATENCY_STEPS; k++)
		sends += s->latency[size][k];
	return sends ? (size_t)(s->bytes[size] / sends) : 0;
}

/* ------------------------------------------------------------------ counters */

#define STALLS(X)                                                            \
	X(WEFT_STALL_CONNECT, "stall.connect_ns",                            \
	  "ns in which sends of an endpoint waited for its connection.")     \
	X(WEFT_STALL_CREDIT, "stall.credit_ns",                              \
	  "ns in which sends of an endpoint waited for credit of the peer.") \
	X(WEFT_STALL_LANE, "stall.lane_ns",                                  \
	  "ns in which sends of an endpoint waited for room on its lanes.")  \
	X(WEFT_STALL_RECEIVE, "stall.receive_ns",                            \
	  "ns in which an announced message waited for the receiver to request its data.")

/* clang-format off */
const struct weft_lane_counter weft_stall_counter_help[] = {
	STALLS(WEFT_COUNTER_HELP)
	{"latency.size#.step#",
	 "Sends that ended after their call, by length (64, 4k, 64k, 1M, more), within 4^step us.",
	 false},
	WEFT_COUNTER_HELP_END
};
/* clang-format on */

void weft_stall_counters(const struct weft_stalls *s, weft_lane_counter_cb cb, void *arg)
{
	char name[40];

#define REPORT(stall, name, help) cb(name, s->ns[stall], arg);
	STALLS(REPORT)
#undef REPORT
	for (unsigned int i = 0; i < WEFT_LATENCY_SIZES; i++)
		for (unsigned int k = 0; k < WEFT_LATENCY_STEPS; k++) {
			if (!s->latency[i][k])
				continue;
			snprintf(name, sizeof(name), "latency.size%u.step%u", i, k);
			cb(name, s->latency[i][k], arg);
		}
}
