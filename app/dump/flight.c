/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DATA frames in flight: from the first transmission, or the first in the captures, to the
 * acknowledgement. Each frame has links to the messages that it carries. So arrival, loss and
 * retransmission of the frame are recorded for these messages.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dump/fate.h"
#include "dump/flight.h"
#include "dump/follow.h"
#include "dump/message.h"
#include "dump/plot.h"
#include "dump/trace.h"

#define BUCKETS (2u * FLIGHTS)
#define PROMPT_NS 50000u /* ns. An acknowledgement causes retransmissions that follow so soon */
#define JUMP 65536       /* if more sequences are acknowledged at once, frames are missing */
#define SENT 8u          /* first transmissions of a frame that are distinguished */
/* A transmission that has not come this many ns after its frame's acknowledgement is lost. */
#define AWAIT_NS 100000000u

struct flight {
	uint64_t entered;     /* of a message record: when it was seen first */
	uint64_t first, sent; /* times of the first and last transmission; 0 = not seen */
	uint32_t flow, seq, len, ts, next, link;
	uint64_t fate;          /* trace.fate of the first transmission */
	uint32_t sent_as[SENT]; /* name_of() each of the first SENT transmissions */
	uint32_t outs;          /* number of transmissions */
	/*
	 * When a retransmission arrived, and the first transmission had not; 0 = never. `needed`:
	 * transmissions up to then. `ins`: transmissions that have arrived; `came`: the same as
	 * bits of `sent_as`.
	 */
	uint64_t repaired;
	uint32_t needed, ins;
	uint8_t came, path;
	/* Time until which missing transmissions of the acknowledged frame may come; 0 = none. */
	uint64_t awaited_until;
	bool live;          /* not acknowledged */
	bool listed;        /* in the table: until all before it are acknowledged, too */
	bool out, here;     /* a transmission was seen; the frame has arrived */
	bool again, resent; /* sent more than once; its newest transmission is a retransmission */
	bool record;        /* a message record, which gets no acknowledgement */
	bool by_ack;        /* retransmitted because later ones were acknowledged */
	bool missed;        /* seen first as a retransmission: the first transmission is missing */
};

int flight_make(struct trace_follow *fo)
{
	uint32_t i;

	fo->flight = calloc(FLIGHTS, sizeof(*fo->flight));
	fo->flight_bucket = malloc(BUCKETS * sizeof(*fo->flight_bucket));
	fo->link = calloc(LINKS, sizeof(*fo->link));
	if (!fo->flight || !fo->flight_bucket || !fo->link)
		return -ENOMEM;
	memset(fo->flight_bucket, 0xff, BUCKETS * sizeof(*fo->flight_bucket));
	for (i = 0; i < LINKS; i++)
		fo->link[i].next = i + 1 < LINKS ? i + 1 : TRACE_NONE;
	return 0;
}

void flight_free(struct trace_follow *fo)
{
	free(fo->link);
	free(fo->flight_bucket);
	free(fo->flight);
}

static uint32_t *bucket_of(const struct trace_follow *fo, uint32_t flow, uint32_t seq)
{
	return &fo->flight_bucket[dump_hash_near(flow, 0, seq) % BUCKETS];
}

static struct flight *find(const struct trace_follow *fo, uint32_t flow, uint32_t seq)
{
	uint32_t at;

	for (at = *bucket_of(fo, flow, seq); at != TRACE_NONE; at = fo->flight[at].next)
		if (fo->flight[at].flow == flow && fo->flight[at].seq == seq)
			return &fo->flight[at];
	return NULL;
}

/* ---- transmissions -------------------------------------------------------------------------- */

/* Each transmission has an order of its own on its path. */
static uint32_t name_of(const struct weft_frame_hdr *h)
{
	return weft_get32(h->order) << 4 | (h->path & (WEFT_FRAME_PATHS_MAX - 1));
}

static void transmission_came(struct flight *e, const struct weft_frame_hdr *h)
{
	unsigned int i;

	e->ins++;
	for (i = 0; i < e->outs && i < SENT; i++)
		if (e->sent_as[i] == name_of(h))
			e->came |= (uint8_t)(1u << i);
	if (e->came & 1)
		e->repaired = 0; /* the first transmission arrived after all */
	e->missed = e->missed && weft_get16(h->flags) & WEFT_FRAME_F_RETX;
}

/* The number of missing transmissions, of those before the one that arrived first. */
static uint32_t missing(const struct flight *e)
{
	uint32_t came = e->ins;

	if (!e->repaired)
		return e->missed;
	if (e->needed <= SENT)
		came = (uint32_t)__builtin_popcount(e->came & ((1u << e->needed) - 1));
	return e->missed + (e->needed > came ? e->needed - came : 0);
}

/* ---- what happens to messages --------------------------------------------------------------- */

void flight_note(struct trace_follow *fo, const struct msg *m, const struct msg_event *event)
{
	struct msg_watch *w = &fo->watch[m->watched];

	if (m->watched == MSG_WATCHED)
		return;
	if (w->num_events == MSG_EVENTS)
		w->missed++;
	else
		w->event[w->num_events++] = *event;
}

static bool more_frames(struct msg_watch *w)
{
	unsigned int room = w->room_frames ? 2 * w->room_frames : 256;
	struct msg_frame *more;

	if (w->room_frames == MSG_FRAMES)
		return false;
	more = realloc(w->frame, room * sizeof(*more));
	if (!more)
		return false;
	w->frame = more;
	w->room_frames = room;
	return true;
}

void flight_mark(struct trace *t, const struct msg *m)
{
	struct msg_watch *w = &t->follow->watch[m->watched];
	struct msg_frame *last;

	if (m->watched == MSG_WATCHED)
		return;
	last = w->num_frames ? &w->frame[w->num_frames - 1] : NULL;
	if (last && last->number == t->number && last->file == t->file)
		return;
	if (w->num_frames == w->room_frames && !more_frames(w))
		w->missed_frames++;
	else
		w->frame[w->num_frames++] = (struct msg_frame){t->number, t->file};
}

/* The frame that was taken last carries these messages, or an acknowledgement of them. */
static void mark_all(struct trace *t, const struct flight *e)
{
	const struct msg_link *l;
	const struct msg *m;
	uint32_t at;

	for (at = e->link; at != TRACE_NONE; at = l->next) {
		l = &t->follow->link[at];
		m = link_msg(t->follow, l);
		if (m)
			flight_mark(t, m);
	}
}

/* The number of the frame's first message; 0 = none, or it has ended. */
static uint64_t message_of(const struct trace_follow *fo, const struct flight *e)
{
	const struct msg *m = e->link == TRACE_NONE ? NULL : link_msg(fo, &fo->link[e->link]);

	return m ? m->number : 0;
}

static void record(struct trace_follow *fo, const struct msg *m, const struct msg_link *l,
		   const struct flight *e, uint64_t time, uint8_t way, bool acked)
{
	flight_note(fo, m,
		    &(struct msg_event){.time = time,
					.offset = l->offset,
					.flow = e->flow,
					.seq = e->seq,
					.bytes = l->bytes,
					.way = way,
					.kind = l->kind,
					.again = e->resent,
					.acked = acked});
}

/* A link of a frame that arrived: bytes, announcement or end of message @p m. */
static void is_there(struct msg *m, const struct msg_link *l, const struct flight *e, uint64_t time,
		     uint8_t way)
{
	struct msg_lane *lane;

	if (l->kind == LINK_END) {
		m->ended = time;
		m->seen |= MSG_ENDED;
	}
	if (l->kind > LINK_ANNOUNCE)
		return;
	if (!m->arrived)
		m->arrived = time;
	if (way == DUMP_IN && m->kind <= MSG_AM && !m->answered)
		m->seen |= MSG_AT_RECEIVER;
	if (l->kind == LINK_ANNOUNCE)
		return;
	lane = msg_lane(m, e->flow, time);
	lane->bytes += l->bytes;
	if (time > lane->last)
		lane->last = time;
	m->bytes += l->bytes;
	if (time > m->done)
		m->done = time;
}

/* A retransmitted frame has arrived: note the time since its first transmission. */
static void is_repaired(struct msg *m, const struct flight *e)
{
	if (e->again && e->out && e->repaired > e->first && e->repaired - e->first > m->repair) {
		m->repair = e->repaired - e->first;
		if (e->by_ack)
			m->seen &= (uint16_t)~MSG_BY_TIMEOUT;
		else
			m->seen |= MSG_BY_TIMEOUT;
	}
}

/*
 * Count the losses of a frame that was sent more than once. The count waits for the frame's
 * acknowledgement, and for transmissions that the receiver's capture still lacks: those that wait
 * in the receiver's socket may be read in another order.
 */
static void settle_repair(struct msg *m, const struct msg_link *l, const struct flight *e)
{
	uint32_t lost = l->kind > LINK_ANNOUNCE ? e->missed : missing(e);

	if (l->kind <= LINK_ANNOUNCE && e->repaired)
		is_repaired(m, e);
	if (l->kind <= LINK_ANNOUNCE && lost)
		msg_lane(m, e->flow, e->repaired ? e->repaired : m->touched)->lost += lost;
	m->lost += lost;
}

/*
 * A frame has arrived. With @p acked only its acknowledgement shows that, and @p way is
 * DUMP_WAY_UNKNOWN. @param repairs  a retransmission has arrived, or with @p acked may have
 */
static void arrives(struct trace *t, struct flight *e, uint64_t time, uint8_t way, bool acked,
		    bool repairs)
{
	struct trace_follow *fo = t->follow;
	struct msg_link *l;
	struct msg *m;
	uint32_t at;
	bool first = !e->here;

	e->here = true;
	if (first && repairs) {
		e->repaired = time;
		e->needed = acked ? 0 : e->outs;
	}
	for (at = e->link; at != TRACE_NONE; at = l->next) {
		l = &fo->link[at];
		m = link_msg(fo, l);
		if (!m)
			continue;
		record(fo, m, l, e, time, way, acked);
		if (!first)
			continue;
		is_there(m, l, e, time, way);
		msg_touch(t, m, time);
	}
}

/* A retransmission, because the frame was lost or seemed to be. */
static void goes_again(struct trace *t, struct flight *e, uint64_t time)
{
	struct trace_follow *fo = t->follow;
	struct msg_link *l;
	struct msg *m;
	uint32_t at;

	e->again = true;
	for (at = e->link; at != TRACE_NONE; at = l->next) {
		l = &fo->link[at];
		m = link_msg(fo, l);
		if (!m)
			continue;
		if (l->kind <= LINK_ANNOUNCE)
			msg_lane(m, e->flow, time)->again++;
		m->again++;
	}
}

/* ---- frames --------------------------------------------------------------------------------- */

static void free_links(struct trace *t, struct flight *e)
{
	struct trace_follow *fo = t->follow;
	uint32_t at = e->link, next;
	struct msg *m;

	for (; at != TRACE_NONE; at = next) {
		next = fo->link[at].next;
		m = link_msg(fo, &fo->link[at]);
		if (m)
			settle_repair(m, &fo->link[at], e);
		fo->link[at].next = fo->free_link;
		fo->free_link = at;
		if (!m)
			continue;
		m->pending--;
		msg_touch(t, m, m->touched);
	}
	e->link = TRACE_NONE;
}

static void count_flight(struct trace_flow *f, uint64_t time)
{
	if (time > f->flight_at)
		f->flight_area += (double)f->flight_bytes * (double)(time - f->flight_at);
	f->flight_at = time;
}

/* The frame is no longer in flight: it is acknowledged, or no acknowledgement will be seen. */
static void lands(struct trace *t, struct flight *e, uint64_t time)
{
	struct trace_flow *f = &t->flow[e->flow];

	if (e->live && e->out) {
		count_flight(f, time);
		f->flight_bytes -= e->len;
		f->flight_frames--;
	}
	e->live = false;
}

/* Release an entry. */
static void let_go(struct trace *t, struct flight *e, uint64_t time)
{
	lands(t, e, time);
	e->awaited_until = 0;
	free_links(t, e);
}

static void forget(struct trace_follow *fo, struct flight *e)
{
	uint32_t *at = bucket_of(fo, e->flow, e->seq), index = (uint32_t)(e - fo->flight);

	while (*at != index)
		at = &fo->flight[*at].next;
	*at = e->next;
	e->listed = false;
}

/* Keep an entry whose transmissions may yet come, until flight_sweep(). */
static void await(struct trace *t, struct flight *e, uint64_t time)
{
	struct trace_follow *fo = t->follow;
	uint64_t index = (uint64_t)(e - fo->flight);

	if (fo->awaited_head - fo->awaited_tail == FLIGHTS_AWAITED) {
		let_go(t, e, time);
		return;
	}
	lands(t, e, time);
	e->awaited_until = time + AWAIT_NS;
	fo->awaited[fo->awaited_head++ % FLIGHTS_AWAITED] =
		fo->tail + (index + FLIGHTS - fo->tail % FLIGHTS) % FLIGHTS;
}

void flight_sweep(struct trace *t)
{
	struct trace_follow *fo = t->follow;
	struct flight *e;
	uint64_t number;

	for (; fo->awaited_tail != fo->awaited_head; fo->awaited_tail++) {
		number = fo->awaited[fo->awaited_tail % FLIGHTS_AWAITED];
		e = &fo->flight[number % FLIGHTS];
		if (number < fo->tail || !e->awaited_until)
			continue; /* it was retired, and its entry may be that of another frame */
		if (e->awaited_until > t->now)
			return;
		if (e->listed && (int32_t)(t->flow[e->flow].una - e->seq) > 0)
			forget(fo, e);
		let_go(t, e, t->now);
	}
}

/* Without a record of the receiver, a message counts as arrived when it was sent. */
static void settle(struct trace *t, struct flight *e)
{
	if (e->record && e->live && !e->here)
		arrives(t, e, e->first, DUMP_OUT, false, false);
}

void flight_retire(struct trace *t)
{
	struct trace_follow *fo = t->follow;
	struct flight *e = &fo->flight[fo->tail % FLIGHTS];

	if (fo->tail == fo->head)
		return;
	fo->tail++;
	settle(t, e);
	if (e->listed)
		forget(fo, e);
	let_go(t, e, t->now);
}

void flight_end(struct trace *t)
{
	uint32_t i;

	for (i = 0; i < t->num_flows; i++)
		t->flow[i].open_frames = t->flow[i].record ? 0 : t->flow[i].flight_frames;
	while (t->follow->tail != t->follow->head)
		flight_retire(t);
}

static struct flight *enter(struct trace *t, uint32_t flow, const struct dump_view *v, uint32_t len)
{
	struct trace_follow *fo = t->follow;
	uint32_t *bucket, seq = weft_get32(v->hdr->seq);
	struct flight *e;

	if (fo->head - fo->tail == FLIGHTS)
		flight_retire(t);
	bucket = bucket_of(fo, flow, seq);
	e = &fo->flight[fo->head % FLIGHTS];
	*e = (struct flight){.flow = flow,
			     .seq = seq,
			     .len = len,
			     .path = v->hdr->path,
			     .next = *bucket,
			     .link = TRACE_NONE,
			     .live = true,
			     .listed = true};
	*bucket = (uint32_t)(fo->head++ % FLIGHTS);
	return e;
}

/* Was a frame acknowledged before it was seen? Then it is late, and is not counted. */
static bool is_over(struct trace_flow *f, uint32_t seq)
{
	if (!f->has_una) {
		f->una = seq;
		f->has_una = true;
	}
	if ((int32_t)(seq - f->una) >= 0)
		return false;
	if (!f->acked)
		f->una = seq;
	return f->acked;
}

/* @param name  name_of() this transmission */
static void goes_out(struct trace *t, struct trace_flow *f, struct flight *e, uint32_t ts,
		     uint32_t name, uint64_t time)
{
	struct trace_slot *slot;

	e->resent = e->out;
	if (e->outs < SENT)
		e->sent_as[e->outs] = name;
	e->outs++;
	if (!e->out) {
		e->fate = t->fate;
		e->first = time;
		count_flight(f, time);
		f->flight_bytes += e->len;
		f->flight_frames++;
		if (f->flight_bytes > f->most_bytes)
			f->most_bytes = f->flight_bytes;
		slot = trace_slot(t, f, time);
		if (f->flight_bytes > slot->in_flight)
			slot->in_flight = f->flight_bytes < UINT32_MAX ? (uint32_t)f->flight_bytes
								       : UINT32_MAX;
		if (f->flight_frames > f->most_frames)
			f->most_frames = f->flight_frames;
	} else {
		e->by_ack = f->sacked_at > e->sent && time < f->acked_at + PROMPT_NS;
		goes_again(t, e, time);
	}
	e->out = true;
	e->sent = time;
	e->ts = ts;
}

static void seen_out(struct trace *t, struct flight *e, uint64_t time, uint8_t way)
{
	struct trace_follow *fo = t->follow;
	struct msg_link *l;
	struct msg *m;
	uint32_t at;

	for (at = e->link; at != TRACE_NONE; at = l->next) {
		l = &fo->link[at];
		m = link_msg(fo, l);
		if (m)
			record(fo, m, l, e, time, way, false);
	}
}

/* The first part of a frame has the head of its first message. */
static uint32_t messages_of_part(struct trace *t, struct trace_flow *f, const struct dump_view *v,
				 uint64_t time, uint8_t way)
{
	const struct weft_frame_part *part = (const void *)v->body;
	struct weft_frame_hdr hdr = *v->hdr;
	struct dump_view whole = *v;

	hdr.type = WEFT_FRAME_DATA;
	whole.hdr = &hdr;
	whole.body = (const uint8_t *)(part + 1);
	whole.body_len = weft_get16(part->total);
	whole.body_cap = v->body_cap - (uint32_t)sizeof(*part);
	return follow_messages(t, f, &whole, time, way);
}

void flight_data(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		 const struct dump_view *v, uint64_t time)
{
	uint32_t flow = (uint32_t)(f - t->flow), seq = weft_get32(v->hdr->seq);
	const struct weft_frame_part *part = (const void *)v->body;
	struct flight *e = find(t->follow, flow, seq);
	bool whole = v->hdr->type == WEFT_FRAME_DATA;

	/* The first part represents the whole frame; the acknowledgement shows when all arrived. */
	if (!whole && (v->body_cap < sizeof(*part) || weft_get16(part->offset))) {
		if (e)
			mark_all(t, e);
		return;
	}
	if (!e) {
		if (is_over(f, seq))
			return;
		e = enter(t, flow, v, frame->len);
		e->link = whole ? follow_messages(t, f, v, time, frame->way)
				: messages_of_part(t, f, v, time, frame->way);
		e->missed = frame->way == DUMP_IN && v->flags & WEFT_FRAME_F_RETX;
		if (e->missed)
			goes_again(t, e, time);
	}
	mark_all(t, e);
	t->message = message_of(t->follow, e);
	/* Of a frame that is acknowledged only arrivals count, which may be awaited. */
	if (e->live && frame->way != DUMP_IN) {
		goes_out(t, f, e, weft_get32(v->hdr->ts), name_of(v->hdr), time);
		seen_out(t, e, time, frame->way);
	}
	if (frame->way == DUMP_OUT || !whole)
		return;
	transmission_came(e, v->hdr);
	if (e->live)
		arrives(t, e, time, frame->way, false,
			e->again && name_of(v->hdr) != e->sent_as[0]);
}

/* ---- records -------------------------------------------------------------------------------- */

/* Settle records that have waited long enough for the record of the other end. */
static void settle_old(struct trace *t)
{
	struct trace_follow *fo = t->follow;
	struct flight *e;

	while (fo->tail != fo->head) {
		e = &fo->flight[fo->tail % FLIGHTS];
		if ((e->live || e->listed) && (!e->record || e->entered + TRACE_WAIT_NS > t->now))
			return;
		flight_retire(t);
	}
}

static struct flight *enter_record(struct trace *t, struct trace_flow *f, const struct dump_view *v,
				   uint64_t time, uint8_t way)
{
	struct flight *e = enter(t, (uint32_t)(f - t->flow), v, v->body_len);

	e->record = true;
	e->entered = time;
	e->link = follow_messages(t, f, v, time, way);
	return e;
}

/*
 * Each end makes one record of a message, and the header in both records is the same. A second
 * record of the same end with this header is of another message.
 */
void flight_record(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		   const struct dump_view *v, uint64_t time)
{
	struct flight *e = find(t->follow, (uint32_t)(f - t->flow), weft_get32(v->hdr->seq));
	bool in = frame->way == DUMP_IN;

	if (e && ((e->here && e->out) || (in ? e->here : e->out))) {
		settle(t, e);
		forget(t->follow, e);
		let_go(t, e, time);
		e = NULL;
	}
	if (!e)
		e = enter_record(t, f, v, time, frame->way);
	mark_all(t, e);
	if (!in && e->live) {
		goes_out(t, f, e, 0, 0, time);
		seen_out(t, e, time, frame->way);
	}
	e->out = e->out || !in;
	if (in || f->alone) {
		arrives(t, e, time, frame->way, false, false);
		let_go(t, e, time);
	}
	settle_old(t);
}

/* ---- acknowledgements ----------------------------------------------------------------------- */

static void draw_rtt(struct trace_slot *slot, float us)
{
	if (slot->rtt_most <= 0 || us < slot->rtt_least)
		slot->rtt_least = us;
	if (us > slot->rtt_most)
		slot->rtt_most = us;
}

static void acknowledged(struct trace *t, struct flight *e, const struct dump_view *v,
			 uint64_t time)
{
	uint64_t hold = (uint64_t)weft_get16(v->hdr->ts_hold) * WEFT_FRAME_HOLD_UNIT;
	struct trace_flow *f = &t->flow[e->flow];

	if (e->out && weft_get16(v->hdr->ts_hold) != WEFT_FRAME_NO_ECHO &&
	    weft_get32(v->hdr->ts_echo) == e->ts && time > e->sent + hold) {
		hist_add(&f->rtt, time - e->sent - hold);
		draw_rtt(trace_slot(t, f, time), (float)(time - e->sent - hold) / 1e3f);
	}
	mark_all(t, e);
	if (e->out && e->outs == 1)
		trace_fate_acked(t, e->fate);
	if (!e->here)
		arrives(t, e, time, DUMP_WAY_UNKNOWN, true, e->again);
	if (f->in.known && missing(e))
		await(t, e, time);
	else
		let_go(t, e, time);
}

/* Word @p i of the last SACK block, after a shift by @p shift bits. */
static uint64_t known_word(const struct trace_flow *f, uint32_t shift, unsigned int i)
{
	uint32_t at = i + shift / 64, bits = shift % 64;
	uint64_t low = at < f->sack_words ? f->sack[at] : 0;
	uint64_t high = at + 1 < f->sack_words ? f->sack[at + 1] : 0;

	return bits ? low >> bits | high << (64 - bits) : low;
}

static void sacked(struct trace *t, struct trace_flow *f, const struct dump_view *v, uint64_t time)
{
	uint32_t flow = (uint32_t)(f - t->flow), ack = weft_get32(v->hdr->ack);
	uint32_t shift = ack - f->sack_ack;
	struct flight *e;
	uint64_t fresh;
	unsigned int i;

	if ((int32_t)shift < 0 && f->sack_words)
		return; /* an older one */
	for (i = 0; i < v->sack_words; i++) {
		fresh = weft_get64(v->sack[i]);
		fresh &= shift < 64 * WEFT_FRAME_SACK_WORDS ? ~known_word(f, shift, i) : ~0ull;
		for (; fresh; fresh &= fresh - 1) {
			e = find(t->follow, flow,
				 ack + 1 + 64 * i + (uint32_t)__builtin_ctzll(fresh));
			if (e && e->live)
				acknowledged(t, e, v, time);
		}
	}
	for (i = 0; i < v->sack_words; i++)
		f->sack[i] = weft_get64(v->sack[i]);
	f->sack_words = v->sack_words;
	f->sack_ack = ack;
	f->sacked_at = time;
}

/* Take a progress block. Several frames repeat one, and its total covers blocks that were lost. */
static void polled_late(struct trace_flow *g, const struct weft_frame_progress *p)
{
	uint16_t longest = weft_get16(p->longest), total = weft_get16(p->total);
	uint16_t sum = (uint16_t)(total - g->gap_total);

	if (g->gaps && (sum == 0 || (sum > INT16_MAX && longest + 1u < sum)))
		return;
	if (!g->gaps || sum < longest)
		sum = longest;
	g->gaps++;
	g->gap_total = total;
	g->gap_ns += sum * PROGRESS_UNIT;
	if (longest > g->gap_longest)
		g->gap_longest = longest;
}

void flight_ack(struct trace *t, struct trace_flow *g, const struct dump_frame *frame,
		const struct dump_view *v, uint64_t time)
{
	struct trace_flow *f = trace_other(t, g);
	uint32_t ack = weft_get32(v->hdr->ack), flow;
	struct flight *e;

	if (v->progress)
		polled_late(g, v->progress);
	/* The sender's capture has the time at which the acknowledgement arrived. */
	if (!f || !f->has_una || (frame->way == DUMP_OUT && f->out.known))
		return;
	flow = (uint32_t)(f - t->flow);
	f->acked_at = time;
	plot_acked(t->plot, flow, ack, time);
	if ((int32_t)(ack - f->una) > JUMP)
		f->una = ack;
	for (; (int32_t)(ack - f->una) > 0; f->una++) {
		f->acked = true;
		e = find(t->follow, flow, f->una);
		if (!e)
			continue;
		if (e->live)
			acknowledged(t, e, v, time);
		if (!e->awaited_until)
			forget(t->follow, e);
	}
	if (v->sack_words)
		sacked(t, f, v, time);
}
