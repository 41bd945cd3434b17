/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps the messages of frames to messages of endpoints: which one, and which part of it. */

#include <string.h>

#include "dump/flight.h"
#include "dump/follow.h"
#include "dump/message.h"
#include "dump/trace.h"

/* The frame that is being read. */
struct reader {
	struct trace *t;
	uint32_t flow, back; /* back: the other direction, or TRACE_NONE */
	uint64_t time;
	uint8_t way;
	uint32_t links;
	uint16_t channel;
};

/* One message of the frame that is being read. */
struct piece {
	const uint8_t *data;
	uint32_t len, cap;
};

struct msg *link_msg(const struct trace_follow *fo, const struct msg_link *l)
{
	struct msg *m = &fo->msg[l->msg];

	return m->used && (uint32_t)m->number == l->number ? m : NULL;
}

struct msg_lane *msg_lane(struct msg *m, uint32_t flow, uint64_t time)
{
	unsigned int i;

	for (i = 0; i < m->num_lanes; i++)
		if (m->lane[i].flow == flow)
			return &m->lane[i];
	if (m->num_lanes == MSG_LANES)
		return &m->lane[MSG_LANES - 1];
	m->lane[m->num_lanes] = (struct msg_lane){.flow = flow, .first = time};
	return &m->lane[m->num_lanes++];
}

static void add_link(struct reader *r, struct msg *m, enum link_kind kind, uint64_t offset,
		     uint32_t bytes)
{
	struct trace_follow *fo = r->t->follow;
	uint32_t index;

	/* Retiring a frame may end a message of which nothing else is known. */
	while (fo->free_link == TRACE_NONE && fo->tail != fo->head)
		flight_retire(r->t);
	if (fo->free_link == TRACE_NONE || !m->used)
		return;
	index = fo->free_link;
	fo->free_link = fo->link[index].next;
	fo->link[index] = (struct msg_link){.offset = offset,
					    .msg = (uint32_t)(m - fo->msg),
					    .number = (uint32_t)m->number,
					    .next = r->links,
					    .bytes = bytes,
					    .kind = (uint8_t)kind};
	r->links = index;
	m->pending++;
	if (kind == LINK_BYTES)
		msg_lane(m, r->flow, r->time)->frames++;
}

static uint64_t ref_of(const struct weft_wire_ref *ref)
{
	return (uint64_t)weft_get32(ref->index) << 32 | weft_get32(ref->generation);
}

/* ---- finding -------------------------------------------------------------------------------- */

/*
 * Find a message by its name in this stream; else find one like it in another stream, and join the
 * two streams.
 */
static struct msg *named(struct reader *r, uint32_t flow, enum msg_key key, uint64_t a, uint64_t b,
			 uint64_t total)
{
	struct msg *m = msg_find(r->t, flow, key, a, b);

	if (m || !total)
		return m;
	m = msg_find_alike(r->t, flow, key, a, b, total);
	if (m)
		stream_join(r->t, flow, m->flow);
	return m;
}

/* Find a message by the name in its own header; begin one if it is not there. */
static struct msg *begun(struct reader *r, enum msg_kind kind, uint32_t seq, uint64_t tag,
			 uint64_t total)
{
	struct msg *m = named(r, r->flow, MSG_BY_NAME, (uint64_t)kind << 32 | seq, tag, total);

	if (m)
		return m;
	m = msg_begin(r->t, r->flow, r->time);
	m->kind = (uint8_t)kind;
	m->seq = seq;
	m->tag = tag;
	m->channel = r->channel;
	msg_name(r->t, m, MSG_BY_NAME, (uint64_t)kind << 32 | seq, tag);
	return m;
}

/* The message whose sender's or receiver's request the peer names. @return NULL: unknown */
static struct msg *requested(struct reader *r, enum msg_key key, const struct weft_wire_ref *ref)
{
	uint32_t flow = key == MSG_BY_SREQ ? r->back : r->flow;
	struct msg *m = NULL;

	if (flow != TRACE_NONE)
		m = msg_find(r->t, flow, key, 0, ref_of(ref));
	if (!m)
		r->t->follow->strays++;
	return m;
}

/* The operation on remote memory that this reply belongs to. */
static struct msg *operation(struct reader *r, enum msg_kind kind, uint64_t name)
{
	if (r->back == TRACE_NONE)
		return NULL;
	return msg_find(r->t, r->back, MSG_BY_NAME, (uint64_t)kind << 32, name);
}

static void is_answered(struct reader *r, struct msg *m)
{
	if (m->answered)
		return;
	m->answered = r->time;
	if (r->way == DUMP_IN)
		m->seen &= (uint16_t)~MSG_AT_RECEIVER;
}

/* ---- tagged and active messages ------------------------------------------------------------- */

static void eager(struct reader *r, const struct piece *p, const struct weft_wire_ref *req,
		  uint32_t head)
{
	const struct weft_wire_eager *e = (const void *)p->data;
	struct msg *m = begun(r, MSG_TAG, weft_get32(e->seq), weft_get64(e->tag), 0);

	m->total = p->len - head;
	if (req) {
		m->seen |= MSG_SYNC;
		msg_name(r->t, m, MSG_BY_SREQ, 0, ref_of(req));
	}
	add_link(r, m, LINK_BYTES, 0, p->len - head);
}

static void frag(struct reader *r, const struct piece *p, const struct weft_wire_ref *req,
		 uint32_t head)
{
	const struct weft_wire_frag *f = (const void *)p->data;
	uint64_t total = weft_get64(f->total);
	struct msg *m = begun(r, MSG_TAG, weft_get32(f->e.seq), weft_get64(f->e.tag), total);

	m->total = total;
	m->seen |= MSG_FRAG;
	if (req) {
		m->seen |= MSG_SYNC;
		msg_name(r->t, m, MSG_BY_SREQ, 0, ref_of(req));
	}
	add_link(r, m, LINK_BYTES, weft_get64(f->offset), p->len - head);
}

static void rts(struct reader *r, const struct piece *p)
{
	const struct weft_wire_rts *w = (const void *)p->data;
	struct msg *m = begun(r, MSG_TAG, weft_get32(w->e.seq), weft_get64(w->e.tag), 0);

	m->total = weft_get64(w->total);
	m->seen |= MSG_RTS;
	msg_name(r->t, m, MSG_BY_SREQ, 0, ref_of(&w->req));
	add_link(r, m, LINK_ANNOUNCE, 0, 0);
}

static void am(struct reader *r, const struct piece *p)
{
	const struct weft_wire_am *a = (const void *)p->data;
	uint32_t head = (uint32_t)sizeof(*a) + weft_get16(a->header_length);
	struct msg *m = begun(r, MSG_AM, weft_get32(a->seq), weft_get16(a->id), 0);

	m->total = p->len > head ? p->len - head : 0;
	add_link(r, m, LINK_BYTES, 0, (uint32_t)m->total);
}

static void am_frag(struct reader *r, const struct piece *p)
{
	const struct weft_wire_am_frag *a = (const void *)p->data;
	uint64_t total = weft_get64(a->total), offset = weft_get64(a->offset);
	uint32_t head = (uint32_t)sizeof(*a) + (offset ? 0 : weft_get16(a->am.header_length));
	struct msg *m = begun(r, MSG_AM, weft_get32(a->am.seq), weft_get16(a->am.id), total);

	m->total = total;
	m->seen |= MSG_FRAG;
	add_link(r, m, LINK_BYTES, offset, p->len > head ? p->len - head : 0);
}

static void am_rts(struct reader *r, const struct piece *p)
{
	const struct weft_wire_am_rts *a = (const void *)p->data;
	struct msg *m = begun(r, MSG_AM, weft_get32(a->seq), weft_get16(a->id), 0);

	m->total = weft_get64(a->total);
	m->seen |= MSG_RTS;
	msg_name(r->t, m, MSG_BY_SREQ, 0, ref_of(&a->req));
	add_link(r, m, LINK_ANNOUNCE, 0, 0);
}

/* RTR and PULL begin with the same fields. */
static void pull(struct reader *r, const struct piece *p, uint16_t seen)
{
	const struct weft_wire_rtr *w = (const void *)p->data;
	struct msg *m = NULL;

	if (r->back != TRACE_NONE)
		m = named(r, r->back, MSG_BY_SREQ, 0, ref_of(&w->sreq), 0);
	/* In another stream the sender's request, too, identifies the message. */
	if (!m && r->back != TRACE_NONE)
		m = msg_find_alike(r->t, r->back, MSG_BY_SREQ, 0, ref_of(&w->sreq), 0);
	if (m && m->name[MSG_BY_RREQ].in && m->name[MSG_BY_RREQ].b != ref_of(&w->rreq))
		m = NULL;
	if (!m) {
		r->t->follow->strays++;
		return;
	}
	if (stream_of(r->t, m->flow) != stream_of(r->t, r->back))
		stream_join(r->t, r->back, m->flow);
	is_answered(r, m);
	m->seen |= seen;
	msg_name(r->t, m, MSG_BY_RREQ, 0, ref_of(&w->rreq));
	add_link(r, m, LINK_ANSWER, weft_get64(w->offset), (uint32_t)weft_get64(w->length));
}

static void pulled(struct reader *r, const struct piece *p)
{
	const struct weft_wire_data *d = (const void *)p->data;
	struct msg *m = requested(r, MSG_BY_RREQ, &d->rreq);

	if (!m)
		return;
	m->seen |= MSG_BYTES;
	add_link(r, m, LINK_BYTES, weft_get64(d->offset), p->len - (uint32_t)sizeof(*d));
}

static void put_done(struct reader *r, const struct piece *p)
{
	const struct weft_wire_put_done *d = (const void *)p->data;
	struct msg *m = requested(r, MSG_BY_RREQ, &d->rreq);

	if (!m)
		return;
	m->seen |= MSG_PUT_DONE;
	add_link(r, m, LINK_BYTES, weft_get64(d->offset), (uint32_t)weft_get64(d->length));
}

static void ended(struct reader *r, const struct piece *p)
{
	const struct weft_wire_ats *a = (const void *)p->data;
	struct msg *m = requested(r, MSG_BY_SREQ, &a->sreq);

	if (!m)
		return;
	is_answered(r, m);
	if (weft_get32(a->status))
		m->seen |= MSG_FAILED;
	add_link(r, m, LINK_END, 0, 0);
}

static void aborted(struct reader *r, const struct piece *p)
{
	const struct weft_wire_abort *a = (const void *)p->data;
	enum msg_kind kind = weft_get32(a->flags) & WEFT_ABORT_F_AM ? MSG_AM : MSG_TAG;
	struct msg *m = begun(r, kind, weft_get32(a->e.seq), weft_get64(a->e.tag), 0);

	m->total = weft_get64(a->total);
	m->seen |= MSG_FAILED;
	add_link(r, m, m->seen & MSG_RTS ? LINK_ANNOUNCE : LINK_END, 0, 0);
}

static void withdrawn(struct reader *r, const struct piece *p)
{
	const struct weft_wire_withdraw *w = (const void *)p->data;
	struct msg *m = begun(r, MSG_TAG, weft_get32(w->e.seq), weft_get64(w->e.tag), 0);

	m->seen |= MSG_WITHDRAWN | MSG_RTS;
	msg_name(r->t, m, MSG_BY_SREQ, 0, ref_of(&w->sreq));
	add_link(r, m, LINK_ANNOUNCE, 0, 0);
}

/* ---- remote memory -------------------------------------------------------------------------- */

static void put(struct reader *r, const struct piece *p)
{
	const struct weft_wire_put *w = (const void *)p->data;
	uint32_t number = weft_get32(w->flags) >> WEFT_WIRE_RMA_SHIFT;
	struct msg *m = begun(r, MSG_PUT, number, 0, 0);

	m->total += p->len - (uint32_t)sizeof(*w);
	add_link(r, m, LINK_BYTES, weft_get64(w->offset), p->len - (uint32_t)sizeof(*w));
}

static void get(struct reader *r, const struct piece *p)
{
	const struct weft_wire_get *w = (const void *)p->data;
	struct msg *m = begun(r, MSG_GET, 0, ref_of(&w->ref), 0);

	m->total += weft_get64(w->length);
	add_link(r, m, LINK_ANNOUNCE, weft_get64(w->local), 0);
}

static void get_data(struct reader *r, const struct piece *p)
{
	const struct weft_wire_data *d = (const void *)p->data;
	struct msg *m = operation(r, MSG_GET, ref_of(&d->rreq));

	if (m)
		add_link(r, m, LINK_BYTES, weft_get64(d->offset), p->len - (uint32_t)sizeof(*d));
}

static void atomic(struct reader *r, const struct weft_wire_ref *ref, uint16_t flags,
		   uint32_t number, uint32_t bytes)
{
	bool fetch = flags & WEFT_WIRE_AMO_FETCH;
	struct msg *m = begun(r, MSG_AMO, fetch ? 0 : number, fetch ? ref_of(ref) : 1, 0);

	m->total = bytes;
	m->seen |= fetch ? MSG_FETCH : 0;
	add_link(r, m, LINK_BYTES, 0, bytes);
}

static void amo(struct reader *r, const struct piece *p)
{
	const struct weft_wire_amo *a = (const void *)p->data;

	atomic(r, &a->ref, weft_get16(a->flags), weft_get32(a->number), a->width);
}

static void amov(struct reader *r, const struct piece *p)
{
	const struct weft_wire_amov *a = (const void *)p->data;

	atomic(r, &a->ref, weft_get16(a->flags), weft_get32(a->number),
	       p->len - (uint32_t)sizeof(*a));
}

static void amo_rep(struct reader *r, const struct piece *p)
{
	const struct weft_wire_ref *ref = (const void *)p->data;
	struct msg *m = operation(r, MSG_AMO, ref_of(ref));

	if (m)
		add_link(r, m, LINK_END, 0, 0);
}

static void nak(struct reader *r, const struct piece *p)
{
	const struct weft_wire_rma_nak *n = (const void *)p->data;
	struct msg *m = operation(r, MSG_GET, ref_of(&n->ref));

	if (!m)
		m = operation(r, MSG_AMO, ref_of(&n->ref));
	if (!m)
		return;
	m->seen |= MSG_FAILED;
	add_link(r, m, LINK_END, 0, 0);
}

static uint64_t half_of(const struct weft_wire_rma_flush *w)
{
	return weft_get64(w->count) << 1 | !!(weft_get32(w->flags) & WEFT_WIRE_RMA_ODD);
}

static void flush(struct reader *r, const struct piece *p)
{
	const struct weft_wire_rma_flush *w = (const void *)p->data;
	struct msg *m = begun(r, MSG_FLUSH, 0, half_of(w), 0);

	add_link(r, m, LINK_ANNOUNCE, 0, 0);
}

/* A reply lacks the ODD flag: of a count with and one without, only one is outstanding. */
static void flushed(struct reader *r, const struct piece *p)
{
	uint64_t count =
		weft_get64(((const struct weft_wire_rma_flushed *)(const void *)p->data)->count);
	struct msg *m = operation(r, MSG_FLUSH, count << 1);

	if (!m)
		m = operation(r, MSG_FLUSH, count << 1 | 1);
	if (m)
		add_link(r, m, LINK_END, 0, 0);
}

/* ---- which is it ---------------------------------------------------------------------------- */

#define HEAD(id, type, more, records, ext) [WEFT_WIRE_##id] = sizeof(struct weft_wire_##type),

/* Length of the fixed fields; the payload after them may be cut. */
static uint32_t head_of(uint8_t id)
{
	static const uint8_t heads[] = {WEFT_WIRE_MESSAGES(HEAD)};

	return id < sizeof(heads) ? heads[id] : 0;
}

static void one(struct reader *r, uint8_t id, const struct piece *p);

static void extended(struct reader *r, const struct piece *p)
{
	const struct weft_wire_ext *x = (const void *)p->data;
	struct piece inner = {(const uint8_t *)(x + 1), p->len - (uint32_t)sizeof(*x),
			      p->cap - (uint32_t)sizeof(*x)};

	if (x->id == WEFT_WIRE_EXT)
		return;
	r->channel = weft_get16(x->channel);
	one(r, x->id, &inner);
	r->channel = 0;
}

static void of_rma(struct reader *r, uint8_t id, const struct piece *p)
{
	switch (id) {
	case WEFT_WIRE_PUT:
		return put(r, p);
	case WEFT_WIRE_GET:
		return get(r, p);
	case WEFT_WIRE_GET_DATA:
		return get_data(r, p);
	case WEFT_WIRE_AMO:
		return amo(r, p);
	case WEFT_WIRE_AMOV:
		return amov(r, p);
	case WEFT_WIRE_AMO_REP:
	case WEFT_WIRE_AMOV_REP:
		return amo_rep(r, p);
	case WEFT_WIRE_RMA_NAK:
		return nak(r, p);
	case WEFT_WIRE_RMA_FLUSH:
		return flush(r, p);
	case WEFT_WIRE_RMA_FLUSHED:
		return flushed(r, p);
	default:
		return;
	}
}

static void one(struct reader *r, uint8_t id, const struct piece *p)
{
	const struct weft_wire_eager_sync *sync = (const void *)p->data;
	const struct weft_wire_frag_sync *frag_sync = (const void *)p->data;

	if (!head_of(id) || p->cap < head_of(id))
		return;
	switch (id) {
	case WEFT_WIRE_EAGER:
		return eager(r, p, NULL, head_of(id));
	case WEFT_WIRE_EAGER_SYNC:
		return eager(r, p, &sync->req, head_of(id));
	case WEFT_WIRE_FRAG:
		return frag(r, p, NULL, head_of(id));
	case WEFT_WIRE_FRAG_SYNC:
		return frag(r, p, &frag_sync->req, head_of(id));
	case WEFT_WIRE_RTS:
		return rts(r, p);
	case WEFT_WIRE_RTR:
		return pull(r, p, MSG_RTR);
	case WEFT_WIRE_PULL:
		return pull(r, p, MSG_PULL);
	case WEFT_WIRE_DATA:
		return pulled(r, p);
	case WEFT_WIRE_PUT_DONE:
		return put_done(r, p);
	case WEFT_WIRE_ATS:
	case WEFT_WIRE_SYNC_ACK:
		return ended(r, p);
	case WEFT_WIRE_ABORT:
		return aborted(r, p);
	case WEFT_WIRE_WITHDRAW:
		return withdrawn(r, p);
	case WEFT_WIRE_AM:
		return am(r, p);
	case WEFT_WIRE_AM_FRAG:
		return am_frag(r, p);
	case WEFT_WIRE_AM_RTS:
		return am_rts(r, p);
	case WEFT_WIRE_EXT:
		return extended(r, p);
	default:
		return of_rma(r, id, p);
	}
}

uint32_t follow_messages(struct trace *t, struct trace_flow *f, const struct dump_view *v,
			 uint64_t time, uint8_t way)
{
	struct reader r = {.t = t,
			   .flow = (uint32_t)(f - t->flow),
			   .back = f->other,
			   .time = time,
			   .way = way,
			   .links = TRACE_NONE};
	struct dump_msg m;
	struct piece p;
	uint32_t at = 0;

	while (dump_msg_next(v, &at, &m)) {
		p = (struct piece){m.data, m.len, m.cap};
		if (m.id == WEFT_WIRE_WIREUP)
			stream_wireup(t, f, &m);
		else
			one(&r, m.id, &p);
	}
	return r.links;
}

void follow_frame(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		  const struct dump_view *v, uint64_t time)
{
	switch (v->hdr->type) {
	case WEFT_FRAME_DATA:
	case WEFT_FRAME_PART:
		if (f->record) {
			flight_record(t, f, frame, v, time);
			break;
		}
		flight_ack(t, f, frame, v, time);
		flight_data(t, f, frame, v, time);
		break;
	case WEFT_FRAME_ACK:
	case WEFT_FRAME_BYE:
		flight_ack(t, f, frame, v, time);
		break;
	default:
		break;
	}
	flight_sweep(t);
	msg_sweep(t, false);
}

void follow_end(struct trace *t)
{
	flight_end(t);
	msg_sweep(t, true);
}

/* ---- native operations ---------------------------------------------------------------------- */

/*
 * Reads, writes and atomics that a lane executes natively: the capture of the process that posts
 * them has their records. A read of a rendezvous moves bytes of the message whose sender's request
 * it names. The end of a write is seen by its PUT_DONE.
 */

static void of_message(struct trace *t, const struct trace_flow *f, const struct dump_view *v,
		       uint64_t time, bool over)
{
	const struct weft_record_native *n = (const void *)v->body;
	uint64_t ref = (uint64_t)weft_get32(n->ref_index) << 32 | weft_get32(n->ref_generation);
	uint32_t length = weft_get32(v->record->length);
	struct msg *m = NULL;
	struct msg_lane *lane;

	if (!ref || f->other == TRACE_NONE)
		return;
	m = msg_find(t, f->other, MSG_BY_SREQ, 0, ref);
	if (!m) {
		t->follow->strays++;
		return;
	}
	if (!m->answered)
		m->answered = time;
	flight_mark(t, m);
	flight_note(t->follow, m,
		    &(struct msg_event){.time = time,
					.offset = weft_get64(n->local),
					.flow = f->other,
					.bytes = length,
					.way = over ? DUMP_IN : DUMP_OUT,
					.kind = over ? LINK_BYTES : LINK_ANSWER});
	if (!over)
		return;
	lane = msg_lane(m, f->other, time);
	lane->frames++;
	lane->bytes += length;
	lane->last = time;
	m->bytes += length;
	m->done = time;
	msg_touch(t, m, time);
}

void follow_native(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		   const struct dump_view *v, uint64_t time)
{
	bool over = weft_get16(v->record->flags) & WEFT_RECORD_F_DONE;

	if (!f->first)
		f->first = time;
	f->last = time;
	f->out = (struct trace_port){frame->file, frame->iface, true};
	if (!over) {
		f->natives[v->record->kind]++;
		f->native_bytes[v->record->kind] += weft_get32(v->record->length);
	}
	if (v->record->kind == WEFT_RECORD_READ && v->body_cap >= sizeof(struct weft_record_native))
		of_message(t, f, v, time, over);
}
