/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tagged messages of random.h. A tag: 41..40 class, 49..48 sending node, 31..0 number.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

#define TAG_CLASS (3ull << 40)
#define TAG_NODE (3ull << 48)

struct rmsg *msg_new(struct rop *op, bool am)
{
	struct world *w = op->w;
	struct rmsg *m = calloc(1, sizeof(*m));

	w->msg = random_grow(w->msg, w->num_msgs, sizeof(*w->msg));
	if (!m)
		abort();
	m->am = am;
	m->end = op->end;
	m->send = op;
	m->size = random_size(w);
	m->tag = sim_below(&w->rng, 4) << 40 | (uint64_t)op->node->index << 48 | w->num_msgs;
	m->id = sim_mix64(w->seed + w->num_msgs);
	op->msg = m;
	if (sim_chance(&w->rng, 0.5)) {
		m->channel = (uint16_t)sim_below(&w->rng, RANDOM_CHANNELS);
		m->source_channel = (uint16_t)(sim_below(&w->rng, 3) * 0x7fff);
		m->has_imm = sim_chance(&w->rng, 0.5);
	}
	op->channel = m->channel;
	op->source_channel = m->source_channel;
	op->imm = ~m->id; /* of no account without the flag */
	op->flags = (m->has_imm ? WEFT_OP_F_IMM : 0) |
		    (m->size <= WEFT_INJECT_MAX && sim_chance(&w->rng, 0.2) ? WEFT_OP_F_INJECT : 0);
	op->delivered = sim_chance(&w->rng, 0.2);
	op->buf = buf_send(&w->rng, random_kind(w), m->id, m->size);
	w->msg[w->num_msgs++] = m;
	return m;
}

struct rmsg *msg_of_tag(struct world *w, uint64_t tag)
{
	uint32_t number = (uint32_t)tag;

	if (number >= w->num_msgs || w->msg[number]->tag != tag)
		return NULL;
	return w->msg[number];
}

bool tag_accepts(const struct rop *r, const struct rmsg *m)
{
	return !m->am && m->end->peer == r->node && !((r->tag ^ m->tag) & r->mask) &&
	       r->channel == m->channel &&
	       (!(r->flags & WEFT_OP_F_SOURCE_CHANNEL) || r->source_channel == m->source_channel) &&
	       (!r->end || r->end->peer == m->end->node) &&
	       (!(r->flags & WEFT_OP_F_SOURCE_ID) || r->imm == m->end->node->id);
}

void tag_send(struct rnode *n)
{
	struct end *e = end_open(n);
	struct weft_op_params p;
	struct rop *op;
	int ret;

	if (!e)
		return;
	op = op_new(n, sim_chance(&n->w->rng, 0.25) ? K_SYNC : K_SEND, e);
	msg_new(op, false);
	p = op_params(op);
	ret = (op->kind == K_SYNC ? weft_tag_send_sync : weft_tag_send)(
		e->ep, buf_pointer(op->buf), buf_count(op->buf), op->msg->tag, &p, op_req(op));
	if (op->flags & WEFT_OP_F_INJECT)
		buf_reuse(op->buf);
	if (!ret && (op->kind == K_SYNC || (p.flags & WEFT_OP_F_FORCE_REQUEST)))
		random_fail(n->w, "a send was done in the call that must not be");
	op_posted(op, ret);
}

static void dice_match(struct rop *op)
{
	struct world *w = op->w;
	const struct rmsg *m;

	if (sim_chance(&w->rng, 0.4))
		op->channel = (uint16_t)sim_below(&w->rng, RANDOM_CHANNELS);
	if (!op->end && sim_chance(&w->rng, 0.15)) {
		op->flags = WEFT_OP_F_SOURCE_ID;
		op->imm = w->node[sim_below(&w->rng, w->nodes)].id;
	}
	if ((op->end || op->flags) && sim_chance(&w->rng, 0.3)) {
		op->flags |= WEFT_OP_F_SOURCE_CHANNEL;
		op->source_channel = (uint16_t)(sim_below(&w->rng, 3) * 0x7fff);
	}
	if (sim_chance(&w->rng, 0.3))
		return;
	op->mask = sim_chance(&w->rng, 0.5) ? TAG_CLASS : TAG_CLASS | TAG_NODE;
	op->tag = sim_below(&w->rng, 4) << 40 | sim_below(&w->rng, w->nodes) << 48;
	if (w->num_msgs && sim_chance(&w->rng, 0.15)) {
		m = w->msg[sim_below(&w->rng, w->num_msgs)];
		op->tag = m->tag;
		op->mask = WEFT_TAG_MASK_FULL;
	}
}

static void receive(struct rop *op, struct weft_message *message)
{
	struct world *w = op->w;
	struct weft_completion c = {.size = sizeof(c), .status = 1};
	struct weft_op_params p;
	int ret;

	op->cap = sim_chance(&w->rng, 0.7) ? 1u << 19 : random_size(w);
	op->buf = buf_recv(&w->rng, op->cap > 100000 ? BUF_CONTIG : random_kind(w), op->cap);
	p = op_params(op);
	p.completion = &c;
	if (message)
		ret = weft_tag_msg_recv(op->node->worker, message, buf_pointer(op->buf),
					buf_count(op->buf), &p, op_req(op));
	else
		ret = weft_tag_recv(op->node->worker, op->end ? op->end->ep : NULL,
				    buf_pointer(op->buf), buf_count(op->buf), op->tag, op->mask, &p,
				    op_req(op));
	if (!op_posted(op, ret) || ret)
		return;
	if (c.status || (p.flags & WEFT_OP_F_FORCE_REQUEST))
		random_fail(w, "a receive was done in the call that must not be");
	op->done = true;
	op->completions = 1;
	op->ended = ++w->now;
	tag_received(op, &c);
	if (buf_free(op->buf))
		random_fail(w, "a receive's datatype was not used as it must be");
	op->buf = NULL;
}

void tag_recv(struct rnode *n)
{
	struct rop *op = op_new(n, K_RECV, sim_chance(&n->w->rng, 0.15) ? end_open(n) : NULL);

	dice_match(op);
	receive(op, NULL);
}

void tag_recv_all(struct rnode *n, unsigned int channel)
{
	struct rop *op = op_new(n, K_RECV, NULL);

	op->channel = (uint16_t)channel;
	receive(op, NULL);
}

void tag_received(struct rop *op, const struct weft_completion *c)
{
	struct world *w = op->w;
	const char *wrong;
	struct rmsg *m;

	if (c->status && c->status != -EMSGSIZE)
		return;
	random_messages++;
	m = msg_of_tag(w, c->tag);
	if (!m || (op->kind == K_RECV &&
		   (m->am || m->end->peer != op->node || ((op->tag ^ m->tag) & op->mask) ||
		    op->channel != m->channel))) {
		random_fail(w, "a receive got a message with tag %llx, which it did not ask for",
			    (unsigned long long)c->tag);
		return;
	}
	if (op->kind == K_MSG_RECV ? op->msg != m : m->taker != NULL)
		random_fail(w, "message %u was received twice, or another than probed",
			    (uint32_t)m->tag);
	if (c->length != m->size || (c->status == -EMSGSIZE) != (m->size > op->cap))
		random_fail(w, "a message of %zu bytes for %zu: %zu, %s", m->size, op->cap,
			    c->length, weft_strerror(c->status));
	if (op->kind == K_RECV && !tag_accepts(op, m))
		random_fail(w, "a receive from one worker got a message of another");
	if (c->source_id != m->end->node->id)
		random_fail(w, "a receive named another sender");
	op_check_imm(w, m, c);
	if (op->flags & WEFT_OP_F_SOURCE_CHANNEL && op->source_channel != m->source_channel)
		random_fail(w, "a receive got a message of another channel of the source");
	end_named(op->node, m, c->ep, "receive");
	wrong = buf_verify(op->buf, m->id, c->length);
	if (wrong)
		random_fail(w, "message %u: %s", (uint32_t)m->tag, wrong);
	op->msg = m;
	m->taken = op->ended;
	if (op->kind == K_RECV)
		m->taker = op;
}

static void use_message(struct rnode *n, struct rop *look, struct weft_message *message)
{
	struct rop *op;

	look->msg->taker = look;
	look->msg->taken = look->ended;
	if (sim_chance(&n->w->rng, 0.3)) {
		weft_tag_msg_drop(n->worker, message);
		look->msg->dropped = true;
		return;
	}
	op = op_new(n, K_MSG_RECV, NULL);
	op->msg = look->msg;
	receive(op, message);
}

void tag_probe(struct rnode *n)
{
	struct world *w = n->w;
	struct rop *op = op_new(n, K_LOOK, sim_chance(&w->rng, 0.15) ? end_open(n) : NULL);
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_message *message = NULL;
	struct rmsg *m;
	bool take = sim_chance(&w->rng, 0.6);
	struct weft_op_params p = WEFT_INIT(struct weft_op_params);
	int ret;

	dice_match(op);
	p.flags = op->flags;
	p.channel = op->channel;
	p.source_channel = op->source_channel;
	p.imm = op->imm;
	ret = weft_tag_probe(n->worker, op->end ? op->end->ep : NULL, op->tag, op->mask,
			     p.channel || p.flags ? &p : NULL, take ? &message : NULL, &c);
	op->done = true;
	op->completions = 1;
	op->ended = ++w->now;
	op->status = ret;
	if (ret) {
		if (ret != -ENOMSG)
			random_fail(w, "a probe said: %s", weft_strerror(ret));
		return;
	}
	m = msg_of_tag(w, c.tag);
	if (!m || m->am || m->end->peer != n || ((op->tag ^ m->tag) & op->mask) || m->taker ||
	    c.length != m->size || c.source_id != m->end->node->id) {
		random_fail(w, "a probe found what is not there: tag %llx, %zu bytes",
			    (unsigned long long)c.tag, c.length);
		return;
	}
	op_check_imm(w, m, &c);
	if (!tag_accepts(op, m))
		random_fail(w, "a probe found a message of another worker or channel");
	end_named(n, m, c.ep, "probe");
	op->msg = m;
	if (take)
		use_message(n, op, message);
}

/* ---- looking back --------------------------------------------------------------------------- */

static bool is_match(const struct rop *r)
{
	return (r->kind == K_RECV || r->kind == K_LOOK) && r->msg;
}

void tag_check_there(struct rmsg *m)
{
	struct rnode *n = m->end->peer;
	struct world *w = n->w;
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .channel = m->channel);
	unsigned int i;

	if (m->taker || m->am || m->send->withdrawn || (m->send->done && m->send->status))
		return;
	for (i = 0; i < w->num_ops; i++)
		if (w->op[i]->kind == K_RECV && w->op[i]->node == n && !w->op[i]->done &&
		    w->op[i]->channel == m->channel && !((w->op[i]->tag ^ m->tag) & w->op[i]->mask))
			return;
	if (weft_tag_probe(n->worker, NULL, m->tag, WEFT_TAG_MASK_FULL, &p, NULL, &c) ||
	    c.length != m->size)
		random_fail(w, "message %u was flushed, and is not there", (uint32_t)m->tag);
}

/* @p r has met @p got: what was sent before on the same stream was taken by an earlier receive. */
static void check_overtaking(struct world *w, const struct rop *r, const struct rmsg *got)
{
	unsigned int i;

	for (i = 0; i < (uint32_t)got->tag; i++) {
		const struct rmsg *m = w->msg[i];

		if (m->end != got->end || !tag_accepts(r, m) || m->send->status == -ECANCELED)
			continue;
		if (m->taker ? m->taker->posted > r->posted
			     : end_whole(m->end, w->now) && m->send->status >= 0)
			random_fail(w, "message %u was overtaken by message %u at a %s of %llu", i,
				    (uint32_t)got->tag, op_name(r), (unsigned long long)r->posted);
	}
}

/* @p r met nothing until its end: no later receive got a message that matches it. */
static void check_passed_over(struct world *w, const struct rop *r)
{
	uint64_t end = r->done ? r->ended : UINT64_MAX;
	unsigned int i;

	/* A receive that was matched may end badly with its connection. */
	if ((r->done && !r->withdrawn) || r->matched)
		return;
	if (r->end && r->end->closed && r->end->closed < end)
		end = r->end->closed;
	if (r->end && r->end->failed && r->end->failed < end)
		end = r->end->failed;
	for (i = 0; i < w->num_msgs; i++) {
		const struct rmsg *m = w->msg[i];

		if (m->taker && m->taker->posted > r->posted && m->taken < end && tag_accepts(r, m))
			random_fail(w, "message %u passed over a receive of %llu", i,
				    (unsigned long long)r->posted);
	}
}

static void check_message(struct world *w, const struct rmsg *m)
{
	const struct rop *s = m->send;
	bool whole = end_whole(m->end, w->now);

	if (s->done && s->status < 0 && m->taker && s->withdrawn && s->status == -ECANCELED)
		random_fail(w, "message %u was cancelled, and received", (uint32_t)m->tag);
	if (!whole || (s->done && s->status < 0))
		return;
	if (!m->taker)
		random_fail(w, "message %u of %zu bytes was never received", (uint32_t)m->tag,
			    m->size);
	else if (s->kind == K_SYNC && s->done && m->taker->posted > s->ended)
		random_fail(w, "message %u was not received yet when its send was done",
			    (uint32_t)m->tag);
}

void tag_check_all(struct world *w)
{
	unsigned int i;

	for (i = 0; i < w->num_ops && !w->error[0]; i++) {
		if (is_match(w->op[i]))
			check_overtaking(w, w->op[i], w->op[i]->msg);
		else if (w->op[i]->kind == K_RECV)
			check_passed_over(w, w->op[i]);
	}
	for (i = 0; i < w->num_msgs && !w->error[0]; i++)
		if (!w->msg[i]->am)
			check_message(w, w->msg[i]);
}
