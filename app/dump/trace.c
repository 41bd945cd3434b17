/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/text.h"
#include "dump/fate.h"
#include "dump/follow.h"
#include "dump/host.h"
#include "dump/message.h"
#include "dump/plot.h"
#include "dump/trace.h"

/* ---- hashes --------------------------------------------------------------------------------- */

uint64_t dump_seed[5];

/* Draws dump_seed once, before the first table is filled. */
static void dump_seed_draw(void)
{
	static bool drawn;
	struct timespec ts;

	if (drawn)
		return;
	drawn = true;
	if (getrandom(dump_seed, sizeof(dump_seed), 0) == (ssize_t)sizeof(dump_seed))
		return;
	/* Without getrandom(): a capture that exists already was not crafted for these numbers. */
	clock_gettime(CLOCK_REALTIME, &ts);
	for (unsigned int i = 0; i < 5; i++)
		dump_seed[i] = ((uint64_t)ts.tv_nsec * (i + 1) ^ (uint64_t)ts.tv_sec << 21) *
			       0x9e3779b97f4a7c15ull;
}

/* ---- histograms ----------------------------------------------------------------------------- */

/* Each value below HIST_SUB has a bucket; then each power of two has HIST_SUB buckets. */
static unsigned int bucket_of(uint64_t v)
{
	unsigned int power;

	if (v < HIST_SUB)
		return (unsigned int)v;
	power = 63 - (unsigned int)__builtin_clzll(v);
	return (power - 2) * HIST_SUB + (unsigned int)(v >> (power - 3) & (HIST_SUB - 1));
}

static uint64_t middle_of(unsigned int bucket)
{
	unsigned int power = bucket / HIST_SUB + 2;
	uint64_t width;

	if (bucket < HIST_SUB)
		return bucket;
	width = 1ull << (power - 3);
	return (1ull << power) + bucket % HIST_SUB * width + width / 2;
}

void hist_add(struct hist *h, uint64_t ns)
{
	uint32_t *bucket = &h->bucket[bucket_of(ns)];

	h->count++;
	if (ns > h->max)
		h->max = ns;
	*bucket += *bucket < UINT32_MAX;
}

uint64_t hist_quantile(const struct hist *h, double q)
{
	uint64_t want = (uint64_t)(q * (double)h->count), before = 0, v;
	unsigned int i;

	for (i = 0; i < sizeof(h->bucket) / sizeof(h->bucket[0]); i++) {
		before += h->bucket[i];
		if (before > want) {
			v = middle_of(i);
			return v < h->max ? v : h->max;
		}
	}
	return h->max;
}

/* ---- streams -------------------------------------------------------------------------------- */

/*
 * Streams: flows in the same direction that are lanes of one endpoint. Wire-up messages name them.
 * In a capture that begins after wire-up, messages with fragments over several flows identify them.
 */

/* Names of workers. An entry may be overwritten: then only the worker's number is printed. */
#define NAMES 4096u

struct stream_name {
	uint64_t worker;
	char name[64];
};

static struct stream_name *name_of(const struct trace *t, uint64_t worker)
{
	return &t->names[(worker * 0x9e3779b97f4a7c15ull >> 40) % NAMES];
}

static struct stream_name *stream_names_make(void)
{
	return calloc(NAMES, sizeof(struct stream_name));
}

uint32_t stream_of(const struct trace *t, uint32_t flow)
{
	while (t->flow[flow].parent != flow) {
		t->flow[flow].parent = t->flow[t->flow[flow].parent].parent;
		flow = t->flow[flow].parent;
	}
	return flow;
}

static void unite(struct trace *t, uint32_t a, uint32_t b)
{
	a = stream_of(t, a);
	b = stream_of(t, b);
	if (a < b)
		t->flow[b].parent = a;
	else
		t->flow[a].parent = b;
}

/* The other direction of a stream: of any of its flows. */
static uint32_t back_of(const struct trace *t, uint32_t flow)
{
	uint32_t i, root = stream_of(t, flow);

	for (i = 0; i < t->num_flows; i++)
		if (t->flow[i].other != TRACE_NONE && stream_of(t, i) == root)
			return t->flow[i].other;
	return TRACE_NONE;
}

void stream_join(struct trace *t, uint32_t a, uint32_t b)
{
	uint32_t back_a = back_of(t, a), back_b = back_of(t, b);

	unite(t, a, b);
	if (back_a != TRACE_NONE && back_b != TRACE_NONE)
		unite(t, back_a, back_b);
}

/* The flow has found its other direction: join the other directions of its stream, too. */
static void stream_paired(struct trace *t, uint32_t flow)
{
	uint32_t i, root = stream_of(t, flow), other = t->flow[flow].other;

	for (i = 0; i < t->num_flows; i++)
		if (i != flow && t->flow[i].other != TRACE_NONE && stream_of(t, i) == root)
			unite(t, t->flow[i].other, other);
}

static bool same_place(const struct trace_port *a, const struct trace_port *b)
{
	return !a->known || !b->known || a->file == b->file;
}

bool stream_may_join(const struct trace *t, uint32_t a, uint32_t b)
{
	const struct trace_flow *f = &t->flow[a], *g = &t->flow[b];

	if (f->named && g->named)
		return false;
	/* Each lane of an endpoint has its own interface at each end. */
	return !dump_address_same(&f->src, &g->src) && !dump_address_same(&f->dst, &g->dst) &&
	       same_place(&f->out, &g->out) && same_place(&f->in, &g->in);
}

/* ---- wire-up -------------------------------------------------------------------------------- */

static void learn_name(struct trace *t, const uint8_t *data, uint32_t len)
{
	const struct weft_wire_address *a = (const void *)data;
	struct stream_name *n;

	if (len < sizeof(*a) || weft_get32(a->magic) != WEFT_ADDRESS_MAGIC || !a->name_len ||
	    len - sizeof(*a) < a->name_len)
		return;
	n = name_of(t, weft_get64(a->worker_id));
	n->worker = weft_get64(a->worker_id);
	weft_text_copy(n->name, sizeof(n->name), data + sizeof(*a), a->name_len);
}

/*
 * The first record of a REQ or ADDRESS message is the worker's address. The first fragment of the
 * message contains the worker's name.
 */
static void look_for_name(struct trace *t, const struct dump_msg *msg)
{
	const struct weft_wire_wireup *w = (const void *)msg->data;
	const struct weft_wire_record *r = (const void *)(w + 1);
	uint32_t left = msg->cap - (uint32_t)sizeof(*w);

	if (weft_get16(w->offset) || left < sizeof(*r) ||
	    weft_get16(r->type) != WEFT_RECORD_ADDRESS)
		return;
	left -= (uint32_t)sizeof(*r);
	learn_name(t, (const uint8_t *)(r + 1),
		   left < weft_get16(r->length) ? left : weft_get16(r->length));
}

static bool of_this_lane(const struct weft_wire_wireup *w)
{
	return w->type == WEFT_WIREUP_REP || w->type == WEFT_WIREUP_ACK ||
	       w->type == WEFT_WIREUP_ATTACH || w->type == WEFT_WIREUP_ATTACHED;
}

static bool same_endpoint(const struct trace_flow *f, const struct trace_flow *g)
{
	return f->conn_sn == g->conn_sn && f->worker[0] == g->worker[0] &&
	       f->worker[1] == g->worker[1];
}

static void set_workers(struct trace *t, struct trace_flow *f, const uint64_t worker[2],
			uint32_t conn_sn)
{
	uint32_t i, index = (uint32_t)(f - t->flow);

	memcpy(f->worker, worker, sizeof(f->worker));
	f->conn_sn = conn_sn;
	f->named = true;
	for (i = t->num_flows; i > 0; i--) {
		if (i - 1 == index || !t->flow[i - 1].named || !same_endpoint(f, &t->flow[i - 1]))
			continue;
		stream_join(t, index, i - 1);
		return;
	}
}

/* Take the lane and the workers of flow @p f from its first record. */
static void stream_record(struct trace *t, struct trace_flow *f, const struct weft_record_head *r)
{
	uint64_t worker[2] = {weft_get64(r->from), weft_get64(r->to)};

	f->lane = r->lane;
	set_workers(t, f, worker, weft_get32(r->conn_sn));
}

/* A wire-up message: learn the names of workers. */
static void stream_learn(struct trace *t, const struct dump_msg *msg)
{
	const struct weft_wire_wireup *w = (const void *)msg->data;

	if (msg->cap >= sizeof(*w) && w->major == WEFT_WIRE_MAJOR &&
	    (w->type == WEFT_WIREUP_REQ || w->type == WEFT_WIREUP_ADDRESS))
		look_for_name(t, msg);
}

void stream_wireup(struct trace *t, struct trace_flow *f, const struct dump_msg *msg)
{
	const struct weft_wire_wireup *w = (const void *)msg->data;
	struct trace_flow *g = trace_other(t, f);
	uint64_t worker[2], back[2];

	if (msg->cap < sizeof(*w) || w->major != WEFT_WIRE_MAJOR)
		return;
	stream_learn(t, msg);
	if (f->named || !of_this_lane(w))
		return;
	worker[0] = back[1] = weft_get64(w->src_worker);
	worker[1] = back[0] = weft_get64(w->dst_worker);
	f->lane = w->type == WEFT_WIREUP_REP || w->type == WEFT_WIREUP_ACK ? 0 : w->lane;
	set_workers(t, f, worker, weft_get32(w->conn_sn));
	if (!g || g->named)
		return;
	g->lane = f->lane;
	set_workers(t, g, back, weft_get32(w->conn_sn));
}

const char *stream_end_name(const struct trace *t, const struct trace_flow *f, bool to, char *buf,
			    size_t size)
{
	uint64_t worker = f->worker[to];
	const struct stream_name *n;
	char address[DUMP_ADDRESS_LEN];

	if (f->named) {
		n = name_of(t, worker);
		if (n->worker == worker && n->name[0])
			snprintf(buf, size, "%s", n->name);
		else
			snprintf(buf, size, "worker %016" PRIx64, worker);
	} else {
		snprintf(buf, size, "%s", dump_address_text(to ? &f->dst : &f->src, address));
	}
	return buf;
}

/* ---- flows ---------------------------------------------------------------------------------- */

/* Flows: the directions of lanes. Connection and token of the receiver identify a flow. */

#define FIRST_INTERVAL_NS 10000u
#define ALONE_FRAMES 4096u
#define TABLE (4u * TRACE_FLOWS)

static uint32_t slot_of(uint32_t conn, uint32_t token)
{
	return dump_hash((uint64_t)conn << 32 | token, 0) % TABLE;
}

/* Pair with the newest flow in the other direction between the same two connections. */
static void pair(struct trace *t, uint32_t index)
{
	struct trace_flow *f = &t->flow[index], *g;
	uint32_t i;

	for (i = index; i > 0; i--) {
		g = &t->flow[i - 1];
		if (g->other != TRACE_NONE || !dump_address_same(&g->src, &f->dst) ||
		    !dump_address_same(&g->dst, &f->src) || (g->dst_conn & 0xffff) != f->src_conn ||
		    (f->dst_conn & 0xffff) != g->src_conn)
			continue;
		g->other = index;
		f->other = i - 1;
		stream_paired(t, index);
		return;
	}
}

static struct trace_hello *hello_of(struct trace *t, uint32_t conn, uint32_t token)
{
	/* The hash is without the seed: each run must overwrite the same entry. */
	return &t->hello[((conn ^ token) * 0x9e3779b1u >> 16) % TRACE_HELLOS];
}

static void remember_hello(struct trace *t, const struct dump_view *v)
{
	const struct weft_frame_hello *h = (const void *)v->body;
	uint32_t conn, token, i;

	if (v->body_cap < sizeof(*h))
		return;
	conn = weft_get32(h->conn);
	token = weft_get32(h->token);
	*hello_of(t, conn, token) = (struct trace_hello){conn, token, weft_get32(h->rx_frames)};
	/* A capture by the kernel may have the first frame of the flow before the HELLO. */
	for (i = 0; i < t->num_flows; i++)
		if (t->flow[i].dst_conn == conn && t->flow[i].token == token)
			t->flow[i].rx_frames = weft_get32(h->rx_frames);
}

static uint32_t rx_frames_of(struct trace *t, uint32_t conn, uint32_t token)
{
	const struct trace_hello *h = hello_of(t, conn, token);

	return h->conn == conn && h->token == token ? h->rx_frames : 0;
}

static struct trace_flow *add(struct trace *t, uint32_t *slot, const struct dump_view *v)
{
	struct trace_flow *f = &t->flow[t->num_flows];
	uint64_t from, to;
	unsigned int i;

	if (t->num_flows == TRACE_FLOWS) {
		t->too_many++;
		return NULL;
	}
	*f = (struct trace_flow){.dst_conn = weft_get32(v->hdr->dst_conn),
				 .token = weft_get32(v->hdr->token),
				 .src_conn = weft_get16(v->hdr->src_conn),
				 .other = TRACE_NONE,
				 .min_delay = INT64_MAX,
				 .lost_min = UINT32_MAX,
				 .parent = t->num_flows,
				 .stride = 1};
	if (!v->record) {
		f->src = v->src;
		f->dst = v->dst;
	} else {
		f->record = true;
		from = weft_get64(v->record->from);
		to = weft_get64(v->record->to);
		f->src = dump_address(ADDRESS_WORKER, &from);
		f->dst = dump_address(ADDRESS_WORKER, &to);
	}
	f->rx_frames = rx_frames_of(t, f->dst_conn, f->token);
	for (i = 0; i < WEFT_FRAME_PATHS_MAX; i++)
		f->path[i].min_delay = INT64_MAX;
	f->came = calloc(2 * TRACE_SAMPLES, sizeof(*f->came));
	f->floors = calloc(1, sizeof(*f->floors));
	if (!f->came || !f->floors) {
		free(f->came);
		free(f->floors);
		return NULL;
	}
	f->floors->interval = TRACE_FLOOR_NS;
	f->gone = f->came + TRACE_SAMPLES;
	*slot = t->num_flows++;
	pair(t, *slot);
	if (v->record)
		stream_record(t, f, v->record);
	return f;
}

/* @return NULL: the frame belongs to no connection, or the table is full */
static struct trace_flow *flow_of(struct trace *t, const struct dump_view *v)
{
	uint32_t conn, token, i, *slot;
	struct trace_flow *f;

	if (v->hdr->type == WEFT_FRAME_HELLO || v->hdr->type == WEFT_FRAME_HELLO_ACK)
		remember_hello(t, v);
	/* Types whose frames name the sender's connection, none, or one without its token. */
	if (v->hdr->type == WEFT_FRAME_HELLO || v->hdr->type == WEFT_FRAME_RESET ||
	    v->hdr->type == WEFT_FRAME_CHALLENGE)
		return NULL;
	conn = weft_get32(v->hdr->dst_conn);
	token = weft_get32(v->hdr->token);
	for (i = slot_of(conn, token);; i = (i + 1) % TABLE) {
		slot = &t->table[i];
		if (*slot == TRACE_NONE)
			return add(t, slot, v);
		f = &t->flow[*slot];
		/* Connection and token of a record are hashes, which a frame may have by chance. */
		if (f->dst_conn == conn && f->token == token && f->record == (v->record != NULL))
			return f;
	}
}

struct trace *trace_make(unsigned int num_files)
{
	struct trace *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	dump_seed_draw();
	t->num_files = num_files;
	t->flow = calloc(TRACE_FLOWS, sizeof(*t->flow));
	t->table = malloc(TABLE * sizeof(*t->table));
	t->host = calloc(num_files, sizeof(*t->host));
	t->poll = calloc((size_t)num_files * DUMP_IFACES * TRACE_POLLS, sizeof(*t->poll));
	t->pending = trace_pending_make();
	t->follow = follow_make();
	t->names = stream_names_make();
	t->interval = FIRST_INTERVAL_NS;
	if (!t->flow || !t->table || !t->host || !t->poll || !t->pending || !t->follow ||
	    !t->names) {
		trace_free(t);
		return NULL;
	}
	memset(t->table, 0xff, TABLE * sizeof(*t->table));
	return t;
}

void trace_free(struct trace *t)
{
	unsigned int i;

	if (!t)
		return;
	for (i = 0; i < t->num_flows; i++) {
		free(t->flow[i].came);
		free(t->flow[i].floors);
	}
	plot_free(t->plot);
	trace_pending_free(t->pending);
	follow_free(t->follow);
	free(t->names);
	trace_spans_free(t);
	free(t->poll);
	free(t->host);
	free(t->table);
	free(t->flow);
	free(t);
}

static void remember_port(struct trace_port *port, const struct dump_frame *frame)
{
	*port = (struct trace_port){.file = frame->file, .iface = frame->iface, .known = true};
}

static void sent(struct trace_flow *f, const struct dump_frame *frame, const struct dump_view *v,
		 uint64_t time)
{
	if (v->record)
		;
	else if (!f->out.known)
		memcpy(f->dst_mac, v->dst_mac, sizeof(f->dst_mac));
	else if (memcmp(f->dst_mac, v->dst_mac, sizeof(f->dst_mac)) && !f->moved_at)
		f->moved_at = time;
	remember_port(&f->out, frame);
}

/* Two neighbouring intervals of a series as one. */
static struct trace_slot joined(const struct trace_slot *a, const struct trace_slot *b)
{
	struct trace_slot s = *a;

	s.bytes += b->bytes;
	s.again += b->again;
	s.lost += b->lost;
	if (b->rtt_most > 0 && (s.rtt_most <= 0 || b->rtt_least < s.rtt_least))
		s.rtt_least = b->rtt_least;
	s.rtt_most = b->rtt_most > s.rtt_most ? b->rtt_most : s.rtt_most;
	s.in_flight = b->in_flight > s.in_flight ? b->in_flight : s.in_flight;
	return s;
}

static void widen(struct trace *t)
{
	struct trace_slot *s;
	unsigned int i, n;

	for (i = 0; i < t->num_flows; i++) {
		s = t->flow[i].series;
		for (n = 0; n < TRACE_SERIES / 2; n++)
			s[n] = joined(&s[2 * n], &s[2 * n + 1]);
		memset(&s[n], 0, n * sizeof(*s));
	}
	t->interval *= 2;
}

struct trace_slot *trace_slot(struct trace *t, struct trace_flow *f, uint64_t time)
{
	uint64_t since = time > t->begin ? time - t->begin : 0;

	while (since / t->interval >= TRACE_SERIES)
		widen(t);
	return &f->series[since / t->interval];
}

/* Count a frame at its sender, or at its receiver where the sender has no capture. */
static void count(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		  const struct dump_view *v, uint64_t time)
{
	struct trace_path *path = &f->path[v->hdr->path % WEFT_FRAME_PATHS_MAX];
	struct trace_slot *slot = trace_slot(t, f, time);
	uint32_t len = v->record ? v->body_len : frame->len;
	bool again = v->flags & WEFT_FRAME_F_RETX;

	f->frames++;
	f->bytes += len;
	f->again += again;
	path->frames++;
	path->bytes += len;
	path->again += again;
	slot->bytes += len;
	slot->again += again;
}

/*
 * Are fates judged? Not after ALONE_FRAMES frames of which only one end has a capture; again when
 * the other end's capture has frames. Files of flight recorders have few frames: always judged.
 */
static bool is_compared(const struct trace *t, struct trace_flow *f, uint64_t time)
{
	if (!(f->out.known && f->in.known) && f->frames > ALONE_FRAMES &&
	    !trace_is_recorder(t, t->file)) {
		f->alone = true;
		return false;
	}
	if (f->alone) /* frames in flight now are not in the ring */
		f->compared_from = time + TRACE_LOST_NS;
	f->alone = false;
	return true;
}

static_assert(PLOT_PENDING == TRACE_PENDING, "one point for each frame");

static void draw(struct trace *t, const struct trace_flow *f, const struct dump_frame *frame,
		 const struct dump_view *v, uint64_t time, bool counted)
{
	struct plot_point point = {.time = time,
				   .number = frame->number,
				   .message = t->message,
				   .seq = weft_get32(v->hdr->seq),
				   .path = v->hdr->path,
				   .file = frame->file};

	plot_frame(t->plot, trace_index(t, f), v, &point, t->fate, counted);
}

static void seen(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		 const struct dump_view *v, uint64_t time)
{
	struct trace_flow *g = trace_other(t, f);
	bool compared, counted;

	if (!f->frames)
		f->first = time;
	f->last = time;
	if (frame->way == DUMP_IN && g)
		g->unanswered = 0;
	else if (frame->way == DUMP_OUT && v->hdr->type == WEFT_FRAME_DATA && !f->unanswered)
		f->unanswered = time;
	if (frame->way == DUMP_IN)
		remember_port(&f->in, frame);
	else if (frame->way == DUMP_OUT)
		sent(f, frame, v, time);
	else
		remember_port(&f->at, frame);
	if (frame->way == DUMP_OUT && v->hdr->type == WEFT_FRAME_DATA)
		f->data_at = time;
	f->port = v->src_port;
	if (!f->bye && v->hdr->type == WEFT_FRAME_BYE) {
		f->bye = true;
		f->bye_at = time;
	}
	counted = frame->way == DUMP_OUT ||
		  (!f->out.known && (frame->way == DUMP_IN || !f->in.known));
	if (counted)
		count(t, f, frame, v, time);
	compared = frame->way != DUMP_WAY_UNKNOWN && is_compared(t, f, time);
	if (compared && !v->record)
		trace_fate(t, f, frame, v, time);
	follow_frame(t, f, frame, v, time);
	if (t->plot)
		draw(t, f, frame, v, time, counted);
}

static void record(struct trace *t, const struct dump_frame *frame, const struct dump_view *v,
		   uint64_t time)
{
	struct trace_flow *f;
	struct dump_msg m;
	uint32_t at = 0;

	/* Before the lane has a number it carries wire-up only, which names both workers. */
	if (v->record->lane == WEFT_RECORD_NO_LANE) {
		if (dump_msg_next(v, &at, &m) && m.id == WEFT_WIRE_WIREUP)
			stream_learn(t, &m);
		return;
	}
	f = flow_of(t, v);
	if (!f)
		return;
	if (dump_is_message(v))
		seen(t, f, frame, v, time);
	else
		follow_native(t, f, frame, v, time);
}

void trace_frame(struct trace *t, const struct dump_frame *frame, const struct dump_view *v,
		 uint64_t time)
{
	struct trace_flow *f = NULL;

	t->now = time;
	t->sent_at = 0;
	trace_called(t, frame, time);
	t->absent_at = frame->way == DUMP_IN ? trace_polled(t, frame, v, time) : 0;
	t->fate = UINT64_MAX;
	t->number = frame->number;
	t->message = 0;
	t->file = frame->file;
	if (!t->begin)
		t->begin = time;
	if (v->what == DUMP_LANE)
		f = flow_of(t, v);
	if (v->what == DUMP_LANE || dump_is_neighbour(v))
		trace_question(t, frame, v, time);
	if (f)
		seen(t, f, frame, v, time);
	else if (v->what == DUMP_RECORD)
		record(t, frame, v, time);
	else if (v->damaged && frame->way == DUMP_IN)
		trace_fate_changed(t, frame, v, time);
	trace_notice(t, frame, v, time);
	trace_host_record(t, frame, v, f, time);
	trace_fate_judge(t, false);
}

void trace_end(struct trace *t)
{
	unsigned int i;

	follow_end(t);
	trace_fate_judge(t, true);
	for (i = 0; i < t->num_flows; i++)
		trace_run_end(&t->flow[i], true);
}
