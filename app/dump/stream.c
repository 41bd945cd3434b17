/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams: flows in the same direction that are lanes of one endpoint. Wire-up messages name them.
 * In a capture that begins after wire-up, messages with fragments over several flows identify them.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "dump/message.h"

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

struct stream_name *stream_names_make(void)
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

void stream_paired(struct trace *t, uint32_t flow)
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
	return f->src != g->src && f->dst != g->dst && same_place(&f->out, &g->out) &&
	       same_place(&f->in, &g->in);
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

/* The first record of a REQ or ADDRESS is the address; its first fragment has the name. */
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

void stream_record(struct trace *t, struct trace_flow *f, const struct weft_record_head *r)
{
	uint64_t worker[2] = {weft_get64(r->from), weft_get64(r->to)};

	f->lane = r->lane;
	set_workers(t, f, worker, weft_get32(r->conn_sn));
}

void stream_learn(struct trace *t, const struct dump_msg *msg)
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

const char *stream_address(uint64_t address, char *buf, size_t size)
{
	uint8_t b[8];
	unsigned int i;

	for (i = 0; i < 8; i++)
		b[i] = (uint8_t)(address >> 8 * i);
	if (address >> 63)
		snprintf(buf, size, "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4],
			 b[5]);
	else
		snprintf(buf, size, "%u.%u.%u.%u", b[3], b[2], b[1], b[0]);
	return buf;
}

const char *stream_end_name(const struct trace *t, const struct trace_flow *f, bool to, char *buf,
			    size_t size)
{
	uint64_t worker = f->worker[to];
	const struct stream_name *n;

	if (f->named) {
		n = name_of(t, worker);
		if (n->worker == worker && n->name[0])
			snprintf(buf, size, "%s", n->name);
		else
			snprintf(buf, size, "worker %016" PRIx64, worker);
	} else {
		stream_address(to ? f->dst : f->src, buf, size);
	}
	return buf;
}
