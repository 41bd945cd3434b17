/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that have begun and have not ended. Each has up to three names: that of its own headers
 * (sequence and tag, number of an operation), its sender's request (named by the receiver), and its
 * receiver's request (named by the sender). When the table is full, the oldest complete put or get
 * is retired, or if there is none, the message without frames for the longest time.
 */

#include <stdlib.h>
#include <string.h>

#include "dump/flight.h"
#include "dump/follow.h"
#include "dump/message.h"
#include "dump/trace.h"

#define BUCKETS (2u * MSG_OPEN)
#define IDLE_NS 20000000u /* ns without a frame after which a complete put or get has ended */

struct trace_follow *follow_make(void)
{
	struct trace_follow *fo = calloc(1, sizeof(*fo));
	unsigned int i;

	if (!fo)
		return NULL;
	fo->msg = calloc(MSG_OPEN, sizeof(*fo->msg));
	for (i = 0; i < MSG_KEYS; i++) {
		fo->bucket[i] = malloc(BUCKETS * sizeof(*fo->bucket[i]));
		if (fo->bucket[i])
			memset(fo->bucket[i], 0xff, BUCKETS * sizeof(*fo->bucket[i]));
	}
	if (flight_make(fo) || !fo->msg || !fo->bucket[0] || !fo->bucket[1] || !fo->bucket[2]) {
		follow_free(fo);
		return NULL;
	}
	for (i = 0; i < MSG_OPEN; i++)
		fo->msg[i].behind = i + 1 < MSG_OPEN ? i + 1 : TRACE_NONE;
	fo->oldest[0] = fo->oldest[1] = fo->newest[0] = fo->newest[1] = TRACE_NONE;
	return fo;
}

void follow_free(struct trace_follow *fo)
{
	unsigned int i;

	if (!fo)
		return;
	for (i = 0; i < fo->num_watched; i++) {
		free(fo->watch[i].frame);
		free(fo->watch[i].event);
	}
	for (i = 0; i < MSG_KEYS; i++)
		free(fo->bucket[i]);
	flight_free(fo);
	free(fo->msg);
	free(fo);
}

struct msg_watch *follow_watch(struct trace_follow *fo, uint64_t number)
{
	struct msg_watch *w = &fo->watch[fo->num_watched];

	if (fo->num_watched == MSG_WATCHED)
		return NULL;
	w->event = calloc(MSG_EVENTS, sizeof(*w->event));
	if (!w->event)
		return NULL;
	w->number = number;
	fo->num_watched++;
	return w;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* The lower half of `a` is a sequence. */
static uint32_t *bucket_of(const struct trace_follow *fo, enum msg_key key, uint64_t a, uint64_t b)
{
	return &fo->bucket[key][dump_hash_near(b, (uint32_t)(a >> 32), (uint32_t)a) % BUCKETS];
}

static void forget_name(struct trace_follow *fo, struct msg *m, enum msg_key key)
{
	uint32_t index = (uint32_t)(m - fo->msg), *at;

	if (!m->name[key].in)
		return;
	at = bucket_of(fo, key, m->name[key].a, m->name[key].b);
	while (*at != index)
		at = &fo->msg[*at].name[key].next;
	*at = m->name[key].next;
	m->name[key].in = false;
}

static bool has_name(const struct msg *m, enum msg_key key, uint64_t a, uint64_t b)
{
	return m->name[key].a == a && m->name[key].b == b;
}

struct msg *msg_find(const struct trace *t, uint32_t flow, enum msg_key key, uint64_t a, uint64_t b)
{
	const struct trace_follow *fo = t->follow;
	uint32_t at, stream = stream_of(t, flow);

	for (at = *bucket_of(fo, key, a, b); at != TRACE_NONE; at = fo->msg[at].name[key].next)
		if (has_name(&fo->msg[at], key, a, b) && stream_of(t, fo->msg[at].flow) == stream)
			return &fo->msg[at];
	return NULL;
}

/* When two messages of a stream have one name, the newer one gets it: it is found first anyway. */
void msg_name(struct trace *t, struct msg *m, enum msg_key key, uint64_t a, uint64_t b)
{
	struct trace_follow *fo = t->follow;
	uint32_t *bucket = bucket_of(fo, key, a, b);
	struct msg *older;

	if (m->name[key].in)
		return;
	older = msg_find(t, m->flow, key, a, b);
	if (older)
		forget_name(fo, older, key);
	m->name[key] = (struct msg_name){.a = a, .b = b, .next = *bucket, .in = true};
	*bucket = (uint32_t)(m - fo->msg);
}

struct msg *msg_find_alike(const struct trace *t, uint32_t flow, enum msg_key key, uint64_t a,
			   uint64_t b, uint64_t total)
{
	const struct trace_follow *fo = t->follow;
	struct msg *m;
	uint32_t at;

	for (at = *bucket_of(fo, key, a, b); at != TRACE_NONE; at = m->name[key].next) {
		m = &fo->msg[at];
		if (has_name(m, key, a, b) && (!total || m->total == total) &&
		    m->bytes < m->total && stream_may_join(t, flow, m->flow))
			return m;
	}
	return NULL;
}

/* ---- lists ---------------------------------------------------------------------------------- */

static void unlist(struct trace_follow *fo, struct msg *m)
{
	if (m->before == TRACE_NONE)
		fo->oldest[m->idle] = m->behind;
	else
		fo->msg[m->before].behind = m->behind;
	if (m->behind == TRACE_NONE)
		fo->newest[m->idle] = m->before;
	else
		fo->msg[m->behind].before = m->before;
}

static void enlist(struct trace_follow *fo, struct msg *m, bool idle)
{
	uint32_t index = (uint32_t)(m - fo->msg);

	m->idle = idle;
	m->behind = TRACE_NONE;
	m->before = fo->newest[idle];
	if (m->before == TRACE_NONE)
		fo->oldest[idle] = index;
	else
		fo->msg[m->before].behind = index;
	fo->newest[idle] = index;
}

/* ---- begin and end -------------------------------------------------------------------------- */

static unsigned int protocol_of(const struct msg *m)
{
	static const uint8_t of_kind[] = {
		[MSG_PUT] = 8, [MSG_GET] = 9, [MSG_AMO] = 10, [MSG_FLUSH] = 11};

	if (m->kind > MSG_AM)
		return of_kind[m->kind];
	if (m->seen & MSG_RTS) {
		if (m->seen & MSG_PUT_DONE)
			return 6;
		if (m->seen & MSG_BYTES)
			return m->seen & MSG_PULL ? 4 : 5;
		return m->seen & MSG_ENDED ? 7 : 12;
	}
	return (m->kind == MSG_AM ? 2u : 0u) + !!(m->seen & MSG_FRAG);
}

const char *msg_protocol(const struct msg *m)
{
	return msg_protocol_name(protocol_of(m));
}

const char *msg_protocol_name(unsigned int protocol)
{
	static const char *const names[MSG_PROTOCOLS] = {
		"eager",     "multi-eager", "am/eager", "am/multi-eager",
		"rndv/pull", "rndv/send",   "rndv/put", "rndv/get",
		"put",       "get",         "atomic",   "flush",
		"rndv"};

	return names[protocol];
}

bool msg_complete(const struct msg *m)
{
	switch (m->kind) {
	case MSG_PUT:
		return m->pending == 0 || m->bytes >= m->total;
	case MSG_GET:
		return m->bytes >= m->total || m->seen & MSG_FAILED;
	case MSG_FLUSH:
		return m->seen & MSG_ENDED;
	case MSG_AMO:
		return m->seen & MSG_FETCH ? m->seen & MSG_ENDED : m->bytes >= m->total;
	default:
		if (m->seen & (MSG_RTS | MSG_SYNC | MSG_FAILED))
			return m->seen & MSG_ENDED;
		return m->done && m->bytes >= m->total;
	}
}

uint64_t msg_took(const struct msg *m)
{
	uint64_t end = m->done > m->first ? m->done : m->ended;

	return msg_complete(m) && end > m->first ? end - m->first : 0;
}

uint64_t msg_match(const struct msg *m)
{
	uint64_t from = m->seen & MSG_AT_RECEIVER ? m->arrived : m->first;

	return m->answered > from && m->seen & (MSG_RTS | MSG_SYNC) ? m->answered - from : 0;
}

const struct msg_lane *msg_last_lane(const struct msg *m, uint64_t *by)
{
	const struct msg_lane *last = NULL, *next = NULL, *l;
	unsigned int i;

	for (i = 0; i < m->num_lanes; i++) {
		l = &m->lane[i];
		if (!l->bytes)
			continue;
		if (!last || l->last > last->last) {
			next = last;
			last = l;
		} else if (!next || l->last > next->last) {
			next = l;
		}
	}
	*by = next ? last->last - next->last : 0;
	return last;
}

static void end(struct trace *t, struct msg *m)
{
	struct trace_follow *fo = t->follow;
	struct msg_sum *sum = &fo->sum[protocol_of(m)];
	unsigned int i;

	sum->count++;
	sum->bytes += m->bytes;
	if (msg_took(m))
		hist_add(&sum->took, msg_took(m));
	fo->sent_again += m->again > 0;
	fo->repaired += m->repair > 0;
	t->flow[m->flow].messages++;
	t->flow[m->flow].message_bytes += m->bytes;
	if (m->watched != MSG_WATCHED) {
		fo->watch[m->watched].msg = *m;
		fo->watch[m->watched].found = true;
	}
	if (fo->over)
		fo->over(fo->arg, t, m);
	for (i = 0; i < MSG_KEYS; i++)
		forget_name(fo, m, i);
	unlist(fo, m);
	m->used = false;
	m->behind = fo->free;
	fo->free = (uint32_t)(m - fo->msg);
}

static void make_room(struct trace *t)
{
	struct trace_follow *fo = t->follow;
	uint32_t oldest = fo->oldest[1] != TRACE_NONE ? fo->oldest[1] : fo->oldest[0];

	if (!fo->msg[oldest].idle) {
		fo->forced++;
		fo->msg[oldest].seen |= MSG_FORCED;
	}
	end(t, &fo->msg[oldest]);
}

struct msg *msg_begin(struct trace *t, uint32_t flow, uint64_t time)
{
	struct trace_follow *fo = t->follow;
	struct msg *m;
	unsigned int i;

	if (fo->free == TRACE_NONE)
		make_room(t);
	m = &fo->msg[fo->free];
	fo->free = m->behind;
	*m = (struct msg){.number = ++fo->messages,
			  .flow = flow,
			  .first = time,
			  .touched = time,
			  .used = true,
			  .watched = MSG_WATCHED};
	for (i = 0; i < fo->num_watched; i++)
		if (fo->watch[i].number == m->number)
			m->watched = i;
	enlist(fo, m, false);
	return m;
}

void msg_touch(struct trace *t, struct msg *m, uint64_t time)
{
	bool idles = m->kind == MSG_PUT || m->kind == MSG_GET;

	m->touched = time;
	if (!m->pending && !idles && msg_complete(m)) {
		end(t, m);
		return;
	}
	unlist(t->follow, m);
	enlist(t->follow, m, idles && !m->pending && msg_complete(m));
}

void msg_sweep(struct trace *t, bool all)
{
	struct trace_follow *fo = t->follow;
	struct msg *m;

	while (fo->oldest[1] != TRACE_NONE) {
		m = &fo->msg[fo->oldest[1]];
		if (!all && m->touched + IDLE_NS > t->now)
			return;
		end(t, m);
	}
	while (all && fo->oldest[0] != TRACE_NONE) {
		m = &fo->msg[fo->oldest[0]];
		fo->unfinished += !msg_complete(m);
		end(t, m);
	}
}
