/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages of random.h. A header: the message's tag, then bytes of its pattern.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

#define AM_IDS 3 /* 0: nothing is copied to be kept; 1: everything can be; 2: has no handler */

static void keep(struct rnode *n, struct rmsg *m, const struct weft_am_msg *msg)
{
	struct world *w = n->w;

	w->kept = random_grow(w->kept, w->num_kept, sizeof(*w->kept));
	w->kept[w->num_kept++] = (struct kept){.node = n,
					       .msg = m,
					       .desc = msg->desc,
					       .data = msg->data,
					       .rndv = msg->flags & WEFT_AM_F_RNDV};
}

/* @return whether the descriptor is used up */
static bool get_data(struct rnode *n, struct rmsg *m, struct weft_am_data *desc)
{
	struct world *w = n->w;
	struct rop *op = op_new(n, K_AM_DATA, NULL);
	struct weft_completion c = {.size = sizeof(c), .status = 1};
	struct weft_op_params p;
	int ret;

	op->msg = m;
	op->cap = sim_chance(&w->rng, 0.7) ? 1u << 19 : random_size(w);
	op->buf = buf_recv(&w->rng, random_kind(w), op->cap);
	p = op_params(op);
	p.completion = &c;
	ret = weft_am_recv_data(n->worker, desc, buf_pointer(op->buf), buf_count(op->buf), &p,
				op_req(op));
	if (!op_posted(op, ret) && (ret != -ECONNRESET || end_whole(m->end, w->now)))
		random_fail(w, "data of an active message: %s", weft_strerror(ret));
	if (ret)
		return ret != -EINVAL && ret != -ENOMEM;
	op->done = true;
	op->completions = 1;
	op->ended = ++w->now;
	am_received(op, &c);
	buf_free(op->buf);
	op->buf = NULL;
	return true;
}

static int use(struct rnode *n, struct rmsg *m, const struct weft_am_msg *msg)
{
	struct world *w = n->w;
	double die = (double)sim_below(&w->rng, 100) / 100;

	if (msg->flags & WEFT_AM_F_RNDV) {
		if (!msg->desc || msg->data)
			random_fail(w, "a rendezvous has data, or no descriptor");
		if (die < 0.4 && get_data(n, m, msg->desc))
			return 0;
		if (die > 0.9)
			return 0;
		if (die > 0.8) {
			m->refused = true;
			return -EIO;
		}
	} else if (msg->length && pattern_check(m->id, 0, msg->data, msg->length) != msg->length) {
		random_fail(w, "active message %u has a wrong byte", (uint32_t)m->tag);
	}
	if (!msg->desc || die > 0.7)
		return 0;
	keep(n, m, msg);
	return WEFT_INPROGRESS;
}

static int handler(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	struct rnode *n = arg;
	struct world *w = n->w;
	struct end *e = NULL;
	struct rmsg *m;
	uint64_t tag = 0;
	unsigned int i;
	int ret;

	(void)worker;
	random_messages++;
	if (msg->header_length >= sizeof(tag))
		memcpy(&tag, msg->header, sizeof(tag));
	m = msg_of_tag(w, tag);
	if (!m || !m->am || m->end->peer != n || msg->length != m->size ||
	    msg->source_id != m->end->node->id || m->delivered++) {
		random_fail(w, "a handler got what was not sent, or twice: tag %llx, %zu bytes",
			    (unsigned long long)tag, msg->length);
		return 0;
	}
	random_trace(w, "%c: handler of message %u", 'a' + n->index, (uint32_t)tag);
	if (pattern_check(m->id, 0, (const uint8_t *)msg->header + 8, msg->header_length - 8) !=
	    msg->header_length - 8)
		random_fail(w, "the header of active message %u is wrong", (uint32_t)tag);
	if (msg->imm != (m->has_imm ? ~m->id : 0) || !(msg->flags & WEFT_AM_F_IMM) == m->has_imm ||
	    msg->channel != m->channel || msg->source_channel != m->source_channel)
		random_fail(w, "active message %u came with %llx on channel %u from %u",
			    (uint32_t)tag, (unsigned long long)msg->imm, msg->channel,
			    msg->source_channel);
	if (m->end->am_last > (uint32_t)tag)
		random_fail(w, "active message %u came after %u", (uint32_t)tag,
			    m->end->am_last - 1);
	m->end->am_last = (uint32_t)tag + 1;
	for (i = 0; i < w->num_ends; i++)
		if (w->end[i]->ep == msg->ep && msg->ep)
			e = w->end[i];
	if (e || w->accept)
		end_named(n, m, msg->ep, "handler");
	ret = use(n, m, msg);
	if (w->depth < 2 && !w->ending && sim_chance(&w->rng, 0.15)) {
		w->depth++;
		random_step(n);
		w->depth--;
	}
	return ret;
}

void am_recv_all(struct rnode *n)
{
	unsigned int id;

	for (id = 0; id < 2; id++)
		if (weft_worker_set_am_handler(n->worker, id, handler, n,
					       id ? WEFT_AM_HANDLER_F_PERSISTENT_DATA : 0))
			random_fail(n->w, "no handler");
}

void am_send(struct rnode *n)
{
	struct world *w = n->w;
	struct weft_am_send_params am = WEFT_INIT(struct weft_am_send_params,
						  .id = (unsigned int)sim_below(&w->rng, AM_IDS));
	struct end *e = end_open(n);
	uint8_t header[WEFT_AM_HEADER_MAX];
	struct weft_op_params p;
	struct rmsg *m;
	struct rop *op;
	int ret;

	if (!e)
		return;
	op = op_new(n, K_AM, e);
	m = msg_new(op, true);
	m->dropped = am.id == 2;
	memcpy(header, &m->tag, 8);
	am.header = header;
	am.header_length = 8 + (sim_chance(&w->rng, 0.5) ? sim_below(&w->rng, 249) : 0);
	am.flags = sim_chance(&w->rng, 0.3) ? WEFT_AM_SEND_F_RNDV : 0;
	pattern_fill(m->id, 0, header + 8, am.header_length - 8);
	p = op_params(op);
	ret = weft_am_send(e->ep, &am, buf_pointer(op->buf), buf_count(op->buf), &p, op_req(op));
	if (op->flags & WEFT_OP_F_INJECT)
		buf_reuse(op->buf);
	op_posted(op, ret);
	memset(header, 0x5a, sizeof(header));
}

void am_use_kept(struct rnode *n)
{
	struct world *w = n->w;
	struct kept k;
	unsigned int i;
	int ret;

	for (i = 0; i < w->num_kept && w->kept[i].node != n; i++)
		;
	if (i == w->num_kept)
		return;
	k = w->kept[i];
	memmove(w->kept + i, w->kept + i + 1, (w->num_kept - i - 1) * sizeof(k));
	w->num_kept--;
	if (!k.rndv && pattern_check(k.msg->id, 0, k.data, k.msg->size) != k.msg->size)
		random_fail(w, "kept data of message %u has changed", (uint32_t)k.msg->tag);
	if (k.rndv && sim_chance(&w->rng, 0.6) && get_data(n, k.msg, k.desc))
		return;
	ret = weft_am_data_release(n->worker, k.desc);
	if (ret)
		random_fail(w, "weft_am_data_release(): %s", weft_strerror(ret));
}

void am_received(struct rop *op, const struct weft_completion *c)
{
	struct world *w = op->w;
	struct rmsg *m = op->msg;
	const char *wrong;

	/* Its connection has ended meanwhile. */
	if (c->status && c->status != -EMSGSIZE) {
		if (end_whole(m->end, w->now))
			random_fail(w, "data of message %u: %s", (uint32_t)m->tag,
				    weft_strerror(c->status));
		return;
	}
	if (c->length != m->size || (c->status == -EMSGSIZE) != (m->size > op->cap))
		random_fail(w, "data of %zu bytes for %zu: %zu, %s", m->size, op->cap, c->length,
			    weft_strerror(c->status));
	wrong = buf_verify(op->buf, m->id, c->length);
	if (wrong)
		random_fail(w, "data of message %u: %s", (uint32_t)m->tag, wrong);
}

void am_check_all(struct world *w)
{
	unsigned int i;

	for (i = 0; i < w->num_msgs; i++) {
		const struct rmsg *m = w->msg[i];

		if (!m->am)
			continue;
		if (m->delivered && m->send->status == -ECANCELED && m->send->withdrawn)
			random_fail(w, "active message %u was cancelled, and delivered", i);
		if (!m->delivered && !m->dropped && end_whole(m->end, w->now) &&
		    m->send->status >= 0)
			random_fail(w, "active message %u was never delivered", i);
	}
}
