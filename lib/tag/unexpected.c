/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that are not received yet: their memory, the table by sequence, the receives that they
 * match, their sources, and the end of an endpoint.
 */

#include <errno.h>
#include <stdlib.h>

#include "rndv/rndv.h"
#include "tag/tag.h"
#include "tag/unexpected.h"

/*
 * A message of n bytes may cost n * 1.1 + 256 bytes. A struct weft_message and a payload of up to
 * the last size share a slot; the steps are small enough for this bound. malloc() would need hardly
 * more memory, but more time when 10^5 messages are allocated and freed.
 */
static const uint16_t slot_payload[WEFT_MSG_SLOTS] = {0, 8, 40, 80, 120, 160, 208, 256};

#define CHUNK_SIZE (64u << 10)

static_assert(sizeof(struct weft_message) <= 200, "payload x 1.1 + 256 bytes per message");

static size_t slot_size(unsigned int i)
{
	return sizeof(struct weft_message) + slot_payload[i];
}

void weft_message_pool_fini(struct weft_message_pool *pool)
{
	void *chunk;

	while ((chunk = pool->chunks)) {
		pool->chunks = *(void **)chunk;
		free(chunk);
	}
}

/* Cut a new chunk into slots of one size. */
static int add_chunk(struct weft_message_pool *pool, unsigned int slot)
{
	size_t size = slot_size(slot);
	uint8_t *chunk = malloc(CHUNK_SIZE);

	if (!chunk)
		return -ENOMEM;
	*(void **)chunk = pool->chunks;
	pool->chunks = chunk;
	pool->slot_bytes += CHUNK_SIZE;
	for (uint8_t *p = chunk + 16; p + size <= chunk + CHUNK_SIZE; p += size) {
		struct weft_message *msg = (void *)p;

		msg->link.le_next = pool->free[slot];
		pool->free[slot] = msg;
	}
	return 0;
}

static unsigned int slot_for(uint64_t total)
{
	unsigned int i = 0;

	while (slot_payload[i] < total)
		i++;
	return i;
}

struct weft_message *weft_message_alloc(struct weft_msg_ep *me, uint64_t total, bool with_data)
{
	struct weft_message_pool *pool = &me->mw->tag->messages;
	bool in_slot = with_data && total <= slot_payload[WEFT_MSG_SLOTS - 1];
	unsigned int slot = in_slot ? slot_for(total) : 0;
	struct weft_message *msg = pool->free[slot];
	uint8_t *data = NULL;

	if (!msg) {
		if (add_chunk(pool, slot))
			return NULL;
		msg = pool->free[slot];
	}
	if (in_slot) {
		data = (uint8_t *)(msg + 1);
	} else if (with_data) {
		data = malloc(total);
		if (!data)
			return NULL;
	}
	pool->free[slot] = msg->link.le_next;
	msg->tw = me->mw->tag;
	msg->me = me;
	msg->total = total;
	msg->data = data;
	weft_ivals_init(&msg->got);
	msg->imm = 0;
	msg->error = 0;
	msg->flags = 0;
	msg->slot = (uint8_t)slot;
	pool->num++;
	if (with_data) {
		pool->bytes += total;
		if (pool->bytes > pool->bytes_peak)
			pool->bytes_peak = pool->bytes;
	}
	return msg;
}

void weft_message_free_data(struct weft_message *msg)
{
	if (!msg->data)
		return;
	msg->tw->messages.bytes -= msg->total;
	if (msg->data != (uint8_t *)(msg + 1))
		free(msg->data);
	msg->data = NULL;
}

/*
 * Bytes of WEFT_UNEXP_MEMORY that a message takes: itself, its payload, its share of the hash
 * tables, the keys of its announcement.
 */
static uint64_t message_cost(const struct weft_message *msg)
{
	bool keys = (msg->flags & WEFT_MSG_RTS) && msg->rts.keys;

	return slot_size(msg->slot) + 64 + (keys ? sizeof(struct weft_rndv_offer) : 0);
}

/* A short or announced message that no receive matches yet: free its credit if memory permits. */
static void tag_spill(struct weft_message *msg)
{
	if (((msg->flags & WEFT_MSG_RTS) || msg->total <= WEFT_EAGER_FREE) &&
	    weft_credit_spill(msg->me, message_cost(msg)))
		msg->flags |= WEFT_MSG_SPILLED;
}

void weft_message_free(struct weft_message *msg)
{
	struct weft_message_pool *pool = &msg->tw->messages;

	if (msg->flags & WEFT_MSG_SPILLED)
		weft_credit_unspill(msg->tw->mw, msg->me, message_cost(msg));

	weft_message_free_data(msg);
	if (msg->flags & WEFT_MSG_RTS)
		free(msg->rts.keys);
	else
		weft_rx_forget(msg->me, &msg->got);
	pool->num--;
	msg->link.le_next = pool->free[msg->slot];
	pool->free[msg->slot] = msg;
}

void weft_message_set_offer(struct weft_message *msg, const struct weft_rndv_offer *offer)
{
	msg->flags |= WEFT_MSG_RTS;
	msg->sreq = offer->sreq;
	msg->rts.flags = offer->flags;
	msg->rts.withdrawn = false;
	msg->rts.keys = NULL;
	if (!offer->lanes)
		return;
	/* Without memory the keys are dropped, and the data is transferred without them. */
	msg->rts.keys = malloc(sizeof(*offer));
	if (msg->rts.keys)
		*msg->rts.keys = *offer;
}

static void message_get_offer(const struct weft_message *msg, struct weft_rndv_offer *offer)
{
	if (msg->rts.keys) {
		*offer = *msg->rts.keys;
		return;
	}
	offer->sreq = msg->sreq;
	offer->flags = msg->rts.flags;
	offer->lanes = 0;
}

/* ------------------------------------------------------------------ messages by sequence */

struct weft_message *weft_rx_lookup(const struct weft_msg_ep *me, uint32_t seq)
{
	struct weft_table_node *node = weft_table_find(&me->tag->open, seq);

	return node ? container_of(node, struct weft_message, by_seq) : NULL;
}

int weft_rx_hash(struct weft_msg_ep *me, struct weft_message *msg, uint32_t seq)
{
	if (weft_table_add(&me->tag->open, &msg->by_seq, seq))
		return -ENOMEM;
	msg->flags |= WEFT_MSG_HASHED;
	return 0;
}

void weft_rx_unhash(struct weft_message *msg)
{
	if (!(msg->flags & WEFT_MSG_HASHED))
		return;
	weft_table_remove(&msg->me->tag->open, &msg->by_seq);
	msg->flags &= ~WEFT_MSG_HASHED;
}

/* Insert a probed message into the list of its endpoint, or of the worker if that is gone. */
static void hold_probed(struct weft_message *msg)
{
	LIST_INSERT_HEAD(msg->me ? &msg->me->tag->probed : &msg->tw->probed, msg, link);
	msg->flags |= WEFT_MSG_HELD;
}

/*
 * The endpoint of a message is gone: the pools count the message while it stays (@p stays true),
 * and stop when it is freed (false).
 */
static void tag_credit_left(const struct weft_message *msg, bool stays)
{
	if (!(msg->flags & WEFT_MSG_SPILLED))
		weft_credit_left(msg->tw->mw, msg->flags & WEFT_MSG_RTS ? 0 : msg->total, stays);
}

void weft_rx_free(struct weft_message *msg)
{
	weft_rx_unhash(msg);
	if (msg->flags & WEFT_MSG_HELD)
		LIST_REMOVE(msg, link);
	if (!msg->me)
		tag_credit_left(msg, false);
	weft_message_free(msg);
}

/* ------------------------------------------------------------------ receives */

/* ------------------------------------------------------------------ a message and its receive */

void weft_rx_await_rest(struct weft_message *msg, struct weft_request *req)
{
	msg->recv = req;
	msg->flags |= WEFT_MSG_BOUND;
	req->recv.fetch = NULL;
	weft_tag_recv_of(req)->msg = msg;
	req->flags |= WEFT_REQ_ACTIVE;
	TAILQ_INSERT_TAIL(&msg->me->tag->active, req, link);
}

static void copy_kept(struct weft_message *msg, struct weft_request *req)
{
	struct weft_ival_pos pos = {0};
	const struct weft_ival *v;

	while ((v = weft_ivals_next(&msg->got, &pos)))
		weft_recv_place(req, v->lo, msg->data + v->lo, v->hi - v->lo);
}

void weft_rx_ack(struct weft_message *msg, int status)
{
	if (!msg->me || (msg->flags & (WEFT_MSG_SYNC | WEFT_MSG_ACKED)) != WEFT_MSG_SYNC)
		return;
	msg->flags |= WEFT_MSG_ACKED;
	weft_rndv_send_ats(msg->me, WEFT_WIRE_SYNC_ACK, msg->sreq, status);
}

void weft_rx_bind(struct weft_message *msg, struct weft_request *req, bool now)
{
	struct weft_msg_ep *me = msg->me;
	struct weft_rndv_offer offer;

	weft_recv_matched(req, me, msg->match.tag, msg->total);
	req->ext = weft_message_ext(msg);
	req->source_id = weft_message_source_id(msg);
	weft_credit_give_msg(msg);
	if (me)
		weft_credit_update(me);
	if (msg->error) {
		req->status = msg->error;
		weft_rx_free(msg);
		weft_recv_done(req, now);
		return;
	}
	if (msg->flags & WEFT_MSG_RTS) {
		message_get_offer(msg, &offer);
		weft_rx_free(msg);
		weft_rndv_fetch(me, req, &offer, now);
		return;
	}
	weft_rx_ack(msg, 0);
	copy_kept(msg, req);
	if (!weft_message_complete(msg)) {
		weft_message_free_data(msg);
		weft_rx_await_rest(msg, req);
	} else {
		weft_rx_free(msg);
		weft_recv_done(req, now);
	}
}

void weft_rx_take(struct weft_message *msg)
{
	weft_match_msg_remove(&msg->tw->match, &msg->match);
	msg->flags = (uint16_t)((msg->flags & ~WEFT_MSG_QUEUED) | WEFT_MSG_PROBED);
	if (!(msg->flags & WEFT_MSG_HASHED))
		hold_probed(msg);
}

void weft_rx_drop(struct weft_message *msg)
{
	struct weft_request *sink;

	if (msg->flags & WEFT_MSG_RTS) {
		if (msg->me && !msg->error)
			weft_rndv_refuse(msg->me, msg->sreq, 0);
		weft_credit_give_msg(msg);
		weft_rx_free(msg);
		return;
	}
	/* Later pieces must be consumed: bind the message to a receive that stores nothing. */
	sink = weft_request_alloc(msg->tw->mw, &weft_tag_recv_ops, NULL, false);
	if (!sink)
		return; /* the message stays until its endpoint ends */
	sink->dt = (struct weft_dt){.length = msg->total};
	sink->flags |= WEFT_REQ_UNPACKERR;
	weft_rx_bind(msg, sink, false);
}

void weft_rx_over(struct weft_message *msg)
{
	struct weft_request *req = msg->recv;

	if (msg->flags & WEFT_MSG_BOUND) {
		TAILQ_REMOVE(&msg->me->tag->active, req, link);
		req->flags &= ~WEFT_REQ_ACTIVE;
		weft_rx_free(msg);
		weft_recv_done(req, false);
		return;
	}
	if (msg->flags & WEFT_MSG_AHEAD)
		return; /* weft_rx_drain() finds the message in the table by its sequence number */
	weft_rx_unhash(msg);
	if (msg->flags & WEFT_MSG_PROBED)
		hold_probed(msg);
}

/*
 * The sender waits for a match, and the user has closed this end. Without a refusal, two closing
 * peers would wait for each other.
 */
void weft_rx_refuse(struct weft_message *msg)
{
	if (msg->flags & WEFT_MSG_QUEUED)
		weft_match_msg_remove(&msg->tw->match, &msg->match);
	msg->flags &= (uint16_t)~WEFT_MSG_QUEUED;
	if (msg->flags & WEFT_MSG_RTS) {
		weft_rndv_refuse(msg->me, msg->sreq, -ECONNRESET);
		weft_credit_give_msg(msg);
		weft_rx_free(msg);
	} else {
		weft_rx_ack(msg, -ECONNRESET);
		weft_rx_drop(msg);
	}
}

void weft_rx_queue(struct weft_message *msg)
{
	struct weft_tag_worker *tw = msg->tw;

	if (msg->me->closing && (msg->flags & (WEFT_MSG_RTS | WEFT_MSG_SYNC))) {
		weft_rx_refuse(msg);
		return;
	}
	tw->mw->count.unexpected++;
	msg->flags |= WEFT_MSG_QUEUED;
	weft_match_msg_add(&tw->match, &msg->match);
	if (__builtin_expect(weft_match_overloaded(&tw->match), 0))
		weft_tag_match_grow(tw);
	weft_credit_kept(msg->me);
	if (__builtin_expect(weft_credit_short(msg->me), 0))
		tag_spill(msg);
}

/* ------------------------------------------------------------------ sources of messages */

/*
 * The source of messages is a worker, identified by its id, whatever endpoints lead to it. So the
 * user can receive messages of a peer by the worker's id after the connection has closed, and can
 * post such a receive without a connection.
 *
 * A source without endpoints stays while it has messages or receives. So that messages need no
 * counter, all sources are checked only when one is added and the table has twice the entries that
 * the last check left.
 */

#define SWEEP_LEAST 16u /* with fewer sources, sources_sweep() does not run */

static void source_drop(struct weft_tag_worker *tw, struct weft_tag_source *s)
{
	weft_match_source_fini(&tw->match, &s->match);
	weft_table_remove(&tw->sources, &s->by_id);
	if (tw->found == s)
		tw->found = NULL;
	free(s);
}

static bool source_unused(const struct weft_tag_source *s)
{
	return s->eps == 0 && TAILQ_EMPTY(&s->match.recvs) && TAILQ_EMPTY(&s->match.msgs);
}

static void sources_sweep(struct weft_tag_worker *tw)
{
	struct weft_table_node *n, *next;
	struct weft_tag_source *s;

	for (uint32_t i = 0; (n = weft_table_any(&tw->sources, &i)); i++) {
		for (; n; n = next) {
			next = SLIST_NEXT(n, link);
			s = container_of(n, struct weft_tag_source, by_id);
			if (source_unused(s))
				source_drop(tw, s);
		}
	}
	tw->sources_kept = tw->sources.num;
}

struct weft_tag_source *weft_tag_source_search(struct weft_tag_worker *tw, uint64_t id)
{
	struct weft_table_node *n = weft_table_find(&tw->sources, id);

	if (!n)
		return NULL;
	tw->found = container_of(n, struct weft_tag_source, by_id);
	return tw->found;
}

struct weft_tag_source *weft_tag_source_get(struct weft_tag_worker *tw, uint64_t id)
{
	struct weft_tag_source *s = weft_tag_source_find(tw, id);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	if (tw->sources.num >= SWEEP_LEAST && tw->sources.num >= 2 * tw->sources_kept)
		sources_sweep(tw);
	if (weft_table_add(&tw->sources, &s->by_id, id) < 0) {
		free(s);
		return NULL;
	}
	weft_match_source_init(&tw->match, &s->match);
	return s;
}

void weft_tag_source_leave(struct weft_tag_worker *tw, struct weft_tag_source *s)
{
	s->eps--;
	if (source_unused(s))
		source_drop(tw, s);
}

void weft_tag_sources_fini(struct weft_tag_worker *tw)
{
	struct weft_table_node *n;

	for (uint32_t i = 0; (n = weft_table_any(&tw->sources, &i));)
		source_drop(tw, container_of(n, struct weft_tag_source, by_id));
	weft_table_fini(&tw->sources);
}

/* ------------------------------------------------------------------ the end of an endpoint */

/*
 * The end of an endpoint: the user closes it, its connection fails, it is freed. Messages that can
 * still be received stay. Senders that wait for a match are notified that there will be none.
 */

/* ------------------------------------------------------------------ closed by the user */

/* weft_rx_refuse() for a message that a probe took: a receive by its handle gets the error. */
static void refuse_probed(struct weft_message *msg)
{
	if (!(msg->flags & (WEFT_MSG_RTS | WEFT_MSG_SYNC)) || msg->error)
		return;
	if (msg->flags & WEFT_MSG_RTS) {
		weft_rndv_refuse(msg->me, msg->sreq, -ECONNRESET);
	} else {
		weft_rx_ack(msg, -ECONNRESET);
		weft_message_free_data(msg);
	}
	msg->error = -ECONNRESET;
}

static void refuse_all_probed(struct weft_msg_ep *me)
{
	struct weft_table_node *node;
	struct weft_message *msg;

	for (uint32_t i = 0; (node = weft_table_any(&me->tag->open, &i)); i++) {
		for (; node; node = SLIST_NEXT(node, link)) {
			msg = container_of(node, struct weft_message, by_seq);
			if (msg->flags & WEFT_MSG_PROBED)
				refuse_probed(msg);
		}
	}
	LIST_FOREACH(msg, &me->tag->probed, link)
		refuse_probed(msg);
}

void weft_tag_closing(struct weft_msg_ep *me)
{
	struct weft_match_msg *m, *next;

	refuse_all_probed(me);
	for (m = TAILQ_FIRST(&me->tag->source->match.msgs); m; m = next) {
		struct weft_message *msg = container_of(m, struct weft_message, match);

		next = TAILQ_NEXT(m, source_link);
		if (msg->me == me && (msg->flags & (WEFT_MSG_RTS | WEFT_MSG_SYNC)))
			weft_rx_refuse(msg);
	}
}

/* ------------------------------------------------------------------ failed, gone */

static void fail_active(struct weft_msg_ep *me, int status)
{
	struct weft_request *req;

	while ((req = TAILQ_FIRST(&me->tag->active))) {
		TAILQ_REMOVE(&me->tag->active, req, link);
		req->flags &= ~WEFT_REQ_ACTIVE;
		weft_rx_free(weft_tag_recv_of(req)->msg);
		weft_request_complete(req, status);
	}
}

/* End a message with an error. If a probe took it, it stays until the user receives or drops it. */
static void fail_message(struct weft_message *msg, int status)
{
	if (msg->flags & WEFT_MSG_QUEUED)
		weft_match_msg_remove(&msg->tw->match, &msg->match);
	msg->error = (int16_t)status;
	if (!(msg->flags & WEFT_MSG_PROBED)) {
		weft_rx_free(msg);
		return;
	}
	weft_rx_unhash(msg);
	if (!(msg->flags & WEFT_MSG_RTS))
		weft_rx_forget(msg->me, &msg->got);
	weft_message_free_data(msg);
	tag_credit_left(msg, true);
	weft_message_orphan(msg);
	hold_probed(msg);
}

/*
 * End complete synchronous messages that no receive has matched. The senders have been notified, or
 * their own endpoints fail, too.
 */
static void fail_synchronous(struct weft_msg_ep *me, int status)
{
	struct weft_match_msg *m, *next;
	struct weft_message *msg;

	for (m = TAILQ_FIRST(&me->tag->source->match.msgs); m; m = next) {
		next = TAILQ_NEXT(m, source_link);
		msg = container_of(m, struct weft_message, match);
		if (msg->me == me && (msg->flags & WEFT_MSG_SYNC))
			fail_message(msg, status);
	}
	LIST_FOREACH(msg, &me->tag->probed, link) {
		if (!(msg->flags & WEFT_MSG_SYNC) || msg->error)
			continue;
		msg->error = (int16_t)status;
		weft_message_free_data(msg);
	}
}

/* End posted receives that name the endpoint; those that name others to the same worker remain. */
static void end_receives(struct weft_msg_ep *me, int status)
{
	struct weft_requests ended = TAILQ_HEAD_INITIALIZER(ended);
	struct weft_match_recv *recv, *next;
	struct weft_request *req;

	for (recv = TAILQ_FIRST(&me->tag->source->match.recvs); recv; recv = next) {
		next = TAILQ_NEXT(recv, source_link);
		req = weft_tag_req_of(recv);
		if (weft_tag_recv_of(req)->named != me)
			continue;
		weft_match_cancel(&me->mw->tag->match, recv);
		req->flags &= ~WEFT_REQ_POSTED;
		req->length = 0;
		TAILQ_INSERT_TAIL(&ended, req, link);
	}
	/* A callback may post, cancel and free other receives. */
	while ((req = TAILQ_FIRST(&ended))) {
		TAILQ_REMOVE(&ended, req, link);
		weft_request_complete(req, status);
	}
}

void weft_tag_ended(struct weft_msg_ep *me, int status)
{
	struct weft_tag *t = me->tag;
	struct weft_table_node *node;

	t->ahead = 0;
	fail_active(me, status);
	for (uint32_t i = 0; (node = weft_table_any(&t->open, &i));)
		fail_message(container_of(node, struct weft_message, by_seq), status);
	fail_synchronous(me, status);
	end_receives(me, status);
}

void weft_tag_detach(struct weft_msg_ep *me)
{
	struct weft_match_msg *m;
	struct weft_message *msg;

	TAILQ_FOREACH(m, &me->tag->source->match.msgs, source_link) {
		msg = container_of(m, struct weft_message, match);
		if (msg->me != me)
			continue;
		tag_credit_left(msg, true);
		weft_message_orphan(msg);
	}
	weft_tag_source_leave(me->mw->tag, me->tag->source);
	me->tag->source = NULL;
	while ((msg = LIST_FIRST(&me->tag->probed))) {
		LIST_REMOVE(msg, link);
		tag_credit_left(msg, true);
		weft_message_orphan(msg);
		hold_probed(msg);
	}
	if (me->tag->draining) {
		TAILQ_REMOVE(&me->mw->tag->drain, me->tag, drain_link);
		me->mw->work--;
	}
	me->tag->draining = false;
	weft_table_fini(&me->tag->open);
}
