/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: the directions of lanes. Connection and token of the receiver identify a flow. */

#include <stdlib.h>
#include <string.h>

#include "dump/message.h"
#include "dump/seed.h"

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
		if (g->other != TRACE_NONE || g->src != f->dst || g->dst != f->src ||
		    (g->dst_conn & 0xffff) != f->src_conn || (f->dst_conn & 0xffff) != g->src_conn)
			continue;
		g->other = index;
		f->other = i - 1;
		stream_paired(t, index);
		return;
	}
}

static struct trace_hello *hello_of(struct trace *t, uint32_t conn, uint32_t token)
{
	/* Without the seed: which entry is overwritten must be the same in each run. */
	return &t->hello[((conn ^ token) * 0x9e3779b1u >> 16) % TRACE_HELLOS];
}

static void remember_hello(struct trace *t, const struct dump_view *v)
{
	const struct weft_frame_hello *h = (const void *)v->body;
	uint32_t conn, token;

	if (v->body_cap < sizeof(*h))
		return;
	conn = weft_get32(h->conn);
	token = weft_get32(h->token);
	*hello_of(t, conn, token) = (struct trace_hello){conn, token, weft_get32(h->rx_frames)};
}

static uint32_t rx_frames_of(struct trace *t, uint32_t conn, uint32_t token)
{
	const struct trace_hello *h = hello_of(t, conn, token);

	return h->conn == conn && h->token == token ? h->rx_frames : 0;
}

static struct trace_flow *add(struct trace *t, uint32_t *slot, const struct dump_view *v)
{
	struct trace_flow *f = &t->flow[t->num_flows];
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
		f->src = trace_address(v->src_ip, v->src_mac);
		f->dst = trace_address(v->dst_ip, v->dst_mac);
	} else {
		f->record = true;
		f->src = weft_get64(v->record->from);
		f->dst = weft_get64(v->record->to);
	}
	f->rx_frames = rx_frames_of(t, f->dst_conn, f->token);
	for (i = 0; i < WEFT_FRAME_PATHS_MAX; i++)
		f->path[i].min_delay = INT64_MAX;
	f->came = calloc(2 * TRACE_SAMPLES, sizeof(*f->came));
	if (!f->came)
		return NULL;
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
	/* These frames name the sender's connection, none, or one without its token. */
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
		/* Both values of a record are hashes: a frame may have the same ones. */
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
	t->pending = trace_pending_make();
	t->follow = follow_make();
	t->names = stream_names_make();
	t->interval = FIRST_INTERVAL_NS;
	if (!t->flow || !t->table || !t->host || !t->pending || !t->follow || !t->names) {
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
	for (i = 0; i < t->num_flows; i++)
		free(t->flow[i].came);
	trace_pending_free(t->pending);
	follow_free(t->follow);
	free(t->names);
	trace_spans_free(t);
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

/* Double the intervals of the series. */
static void widen(struct trace *t)
{
	struct trace_series *s;
	unsigned int i, n;

	for (i = 0; i < t->num_flows; i++) {
		s = &t->flow[i].series;
		for (n = 0; n < TRACE_SERIES / 2; n++) {
			s->bytes[n] = s->bytes[2 * n] + s->bytes[2 * n + 1];
			s->again[n] = s->again[2 * n] + s->again[2 * n + 1];
		}
		memset(&s->bytes[n], 0, n * sizeof(s->bytes[0]));
		memset(&s->again[n], 0, n * sizeof(s->again[0]));
	}
	t->interval *= 2;
}

/* Count a frame at its sender, or at its receiver where the sender has no capture. */
static void count(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		  const struct dump_view *v, uint64_t time)
{
	struct trace_path *path = &f->path[v->hdr->path % WEFT_FRAME_PATHS_MAX];
	uint64_t since = time > t->begin ? time - t->begin : 0;
	uint32_t len = v->record ? v->body_len : frame->len;
	bool again = v->flags & WEFT_FRAME_F_RETX;

	while (since / t->interval >= TRACE_SERIES)
		widen(t);
	f->frames++;
	f->bytes += len;
	f->again += again;
	path->frames++;
	path->bytes += len;
	path->again += again;
	f->series.bytes[since / t->interval] += len;
	f->series.again[since / t->interval] += again;
}

/* Does the other end's capture cover the flow, too? If not for long, fates are not judged. */
static bool is_compared(struct trace_flow *f, uint64_t time)
{
	if (!(f->out.known && f->in.known) && f->frames > ALONE_FRAMES) {
		f->alone = true;
		return false;
	}
	if (f->alone) /* frames in flight now are not in the ring */
		f->compared_from = time + TRACE_LOST_NS;
	f->alone = false;
	return true;
}

static void seen(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		 const struct dump_view *v, uint64_t time)
{
	bool compared;

	if (!f->frames)
		f->first = time;
	f->last = time;
	if (frame->way == DUMP_IN)
		remember_port(&f->in, frame);
	else if (frame->way == DUMP_OUT)
		sent(f, frame, v, time);
	else
		remember_port(&f->at, frame);
	if (frame->way == DUMP_OUT && v->hdr->type == WEFT_FRAME_DATA)
		f->data_at = time;
	f->bye = f->bye || v->hdr->type == WEFT_FRAME_BYE;
	if (frame->way != DUMP_IN || !f->out.known)
		count(t, f, frame, v, time);
	compared = frame->way != DUMP_WAY_UNKNOWN && is_compared(f, time);
	if (compared && !v->record)
		trace_fate(t, f, frame, v, time);
	follow_frame(t, f, frame, v, time);
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
	t->fate = UINT64_MAX;
	if (!t->begin)
		t->begin = time;
	if (v->what == DUMP_LANE)
		f = flow_of(t, v);
	if (v->what == DUMP_LANE || v->what == DUMP_ARP)
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
