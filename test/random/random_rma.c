/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of random.h. A registered block: a pattern that is only read, slots that one put writes
 * each (and a second one behind a fence), words in which each atomic adds one bit of its own: done
 * twice, it would be another bit.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

#define MEM_READ (64u << 10)
#define MEM_WORDS MEM_READ
#define MEM_SLOTS (MEM_WORDS + 1024)
#define MEM_SIZE (256u << 10)
#define READ_ID 77

static void mem_register(struct rnode *n)
{
	struct world *w = n->w;
	struct weft_mem_params p =
		WEFT_INIT(struct weft_mem_params, .flags = WEFT_MEM_F_REMOTE_READ);
	struct rmem *m = calloc(1, sizeof(*m));

	if (!m || !(m->bytes = calloc(1, MEM_SIZE)))
		abort();
	m->node = n;
	m->slot = MEM_SLOTS;
	m->read_only = sim_chance(&w->rng, 0.1);
	if (!m->read_only)
		p.flags |= WEFT_MEM_F_REMOTE_WRITE | WEFT_MEM_F_REMOTE_ATOMIC;
	pattern_fill(READ_ID, 0, m->bytes, MEM_READ);
	m->next = w->mems;
	w->mems = m;
	n->mem = m;
	if (weft_mem_register(n->ctx, m->bytes, MEM_SIZE, &p, &m->mem) ||
	    weft_rkey_pack(m->mem, &m->blob, &m->blob_len))
		random_fail(w, "memory can't be registered");
	m->key = weft_mem_key(m->mem);
}

void mem_poll(struct rmem *m)
{
	struct world *w = m->node->w;
	int ret;

	if (!m->mem || !m->dead)
		return;
	ret = weft_mem_deregister(m->mem);
	if (ret && ret != -EBUSY)
		random_fail(w, "weft_mem_deregister(): %s", weft_strerror(ret));
	if (!ret)
		m->mem = NULL;
}

void mem_renew(struct rnode *n)
{
	struct rmem *m = n->mem;

	if (m) {
		m->dead = ++n->w->now;
		mem_poll(m);
		m->copy = malloc(MEM_SIZE);
		if (!m->copy)
			abort();
		memcpy(m->copy, m->bytes, MEM_SIZE);
		random_trace(n->w, "%c: memory deregistered", 'a' + n->index);
	}
	n->mem = NULL;
	if (!n->w->closing)
		mem_register(n);
}

/* Any block of the peer; of the dead ones the last. */
static struct rmem *choose(struct rnode *peer)
{
	struct rmem *m;

	if (peer->mem && !sim_chance(&peer->w->rng, 0.1))
		return peer->mem;
	for (m = peer->w->mems; m && (m->node != peer || !m->dead); m = m->next)
		;
	return m ? m : peer->mem;
}

static int post(struct rop *op, struct weft_rkey *rkey)
{
	struct weft_atomic_params a = WEFT_INIT(struct weft_atomic_params, .op = WEFT_ATOMIC_ADD,
						.width = 8, .operand = 1ull << (op->bit & 63));
	struct weft_op_params p = op_params(op);
	struct weft_ep *ep = op->end->ep;
	int ret;

	if (op->kind == K_PUT) {
		ret = weft_put(ep, buf_pointer(op->buf), buf_count(op->buf), rkey, op->at, &p,
			       op_req(op));
		if (op->flags & WEFT_OP_F_INJECT)
			buf_reuse(op->buf);
		return ret;
	}
	if (op->kind == K_GET)
		return weft_get(ep, buf_pointer(op->buf), buf_count(op->buf), rkey, op->at, &p,
				op_req(op));
	if (op->id)
		a.result = &op->result;
	if (op->count) {
		a.type = op->bit & 1 ? WEFT_ATOMIC_INT64 : WEFT_ATOMIC_UINT64;
		a.count = op->count;
		a.operands = op->array;
		a.result = op->id ? op->array + op->count : NULL;
	}
	return weft_atomic(ep, &a, rkey, op->at, &p, op_req(op));
}

static void dice_put(struct rop *op)
{
	struct world *w = op->w;

	if (op->cap <= WEFT_INJECT_MAX && sim_chance(&w->rng, 0.3))
		op->flags |= WEFT_OP_F_INJECT;
	if (!sim_chance(&w->rng, 0.4))
		return;
	op->flags |= WEFT_OP_F_IMM;
	op->imm = w->num_ops - 1;
	op->channel = (uint16_t)op->id;
	op->source_channel = (uint16_t)~op->id;
}

/* Its own bit, and nothing for the words behind it. */
static void make_array(struct rop *op)
{
	unsigned int most = (MEM_SLOTS - MEM_WORDS) / 8 - op->bit / 64;

	op->count = 1 + (unsigned int)sim_below(&op->w->rng, most < 80 ? most : 80);
	op->array = calloc(2 * op->count, sizeof(uint64_t));
	if (!op->array)
		abort();
	op->array[0] = 1ull << (op->bit & 63);
}

static void prepare(struct rop *op)
{
	struct world *w = op->w;
	struct rmem *m = op->mem;

	op->cap = sim_below(&w->rng, sim_chance(&w->rng, 0.1) ? 60000 : 4000) + 1;
	if (op->kind == K_GET) {
		op->at = sim_below(&w->rng, MEM_READ - op->cap);
		op->buf = buf_recv(&w->rng, BUF_CONTIG, op->cap);
	} else if (op->kind == K_PUT) {
		op->id = sim_rand(&w->rng) | 1;
		op->at = m->slot;
		op->delivered = sim_chance(&w->rng, 0.3);
		op->buf = buf_send(&w->rng, random_kind(w), op->id, op->cap);
		m->slot += op->cap;
		dice_put(op);
	} else {
		op->bit = m->bit++;
		op->at = MEM_WORDS + op->bit / 64 * 8;
		op->id = sim_chance(&w->rng, 0.5);
		op->delivered = !op->id && sim_chance(&w->rng, 0.3);
		if (sim_chance(&w->rng, 0.4))
			make_array(op);
	}
}

/* Write the slot again, behind a fence: the second content stays. */
static struct rop *again(struct rop *first, struct weft_rkey *rkey)
{
	struct rop *op = op_new(first->node, K_PUT, first->end);

	op->mem = first->mem;
	op->cap = first->cap;
	op->at = first->at;
	op->id = sim_rand(&op->w->rng) | 1;
	op->buf = buf_send(&op->w->rng, BUF_CONTIG, op->id, op->cap);
	first->superseded = true;
	op_posted(op, post(op, rkey));
	return op;
}

void rma_post(struct rnode *n)
{
	struct world *w = n->w;
	struct end *e = end_open(n);
	struct rmem *m = e ? choose(e->peer) : NULL;
	struct weft_rkey *rkey;
	struct rop *op;
	int ret;

	if (!m || end_has_failed(e) || m->slot + 60000 > MEM_SIZE || m->bit > 1000)
		return;
	ret = sim_chance(&w->rng, 0.3) ? weft_rkey_from_key(e->ep, m->key, &rkey)
				       : weft_rkey_unpack(e->ep, m->blob, m->blob_len, &rkey);
	if (ret) {
		if (end_whole(e, w->now))
			random_fail(w, "no remote key: %s", weft_strerror(ret));
		return;
	}
	op = op_new(n, m->read_only ? K_GET : K_PUT + (enum kind)sim_below(&w->rng, 3), e);
	op->mem = m;
	prepare(op);
	ret = post(op, rkey);
	if (op_posted(op, ret) && op->kind == K_PUT && sim_chance(&w->rng, 0.2) && e->ep &&
	    !weft_ep_fence(e->ep))
		again(op, rkey);
	weft_rkey_destroy(rkey);
}

static bool is_there(const struct rop *op)
{
	uint64_t word;

	if (op->kind == K_PUT)
		return pattern_check(op->id, 0, op->mem->bytes + op->at, op->cap) == op->cap;
	memcpy(&word, op->mem->bytes + op->at, 8);
	return word >> (op->bit & 63) & 1;
}

/* The peer has confirmed it. */
static void check_raised(const struct rop *op)
{
	if (op->flags & WEFT_OP_F_IMM && !op->raised && !op->mem->dead &&
	    end_whole(op->end, op->w->now))
		random_fail(op->w, "a put of %llu is there, and nobody was notified",
			    (unsigned long long)op->posted);
}

/* What is written over it afterwards stands behind a fence. */
static void noted(struct weft_worker *worker, const struct weft_put_event *e, void *arg)
{
	struct rnode *n = arg;
	struct world *w = n->w;
	struct rop *op = e->imm < w->num_ops ? w->op[e->imm] : NULL;

	if (!op || op->kind != K_PUT || !(op->flags & WEFT_OP_F_IMM) || op->mem->node != n ||
	    worker != n->worker || e->offset != op->at || e->length != op->cap ||
	    e->key != op->mem->key || e->source_id != op->node->id || e->channel != op->channel ||
	    e->source_channel != op->source_channel) {
		random_fail(w, "a put is notified that nobody has made");
		return;
	}
	random_trace(w, "%c: put %llu is notified", 'a' + n->index, (unsigned long long)op->posted);
	if (op->raised++)
		random_fail(w, "a put of %llu is notified twice", (unsigned long long)op->posted);
	if (op->mem->dead && op->mem->dead < op->posted)
		random_fail(w, "a put to memory that was gone is notified");
	if (!is_there(op))
		random_fail(w, "a put of %llu is notified before it is there",
			    (unsigned long long)op->posted);
	if (w->depth < 2 && !w->ending && sim_chance(&w->rng, 0.15)) {
		w->depth++;
		random_step(n);
		w->depth--;
	}
}

void rma_recv_all(struct rnode *n)
{
	if (weft_worker_set_put_handler(n->worker, noted, n))
		random_fail(n->w, "no handler of puts");
}

void rma_done(struct rop *op)
{
	struct world *w = op->w;
	const struct rmem *m = op->mem;
	const char *wrong;

	if (op->status)
		return;
	if (op->kind == K_GET) {
		wrong = pattern_check(READ_ID, op->at, op->buf->mem, op->cap) != op->cap
				? "a byte is wrong"
				: NULL;
		if (wrong || (m->dead && m->dead < op->posted))
			random_fail(w, "a get of %zu bytes at %zu is done: %s", op->cap, op->at,
				    wrong ? wrong : "from memory that was gone");
		return;
	}
	if (op->count)
		op->result = op->array[op->count];
	if (op->kind == K_ATOMIC && op->id && op->result >> (op->bit & 63) & 1)
		random_fail(w, "an atomic saw its own bit");
	if (!op->delivered && !(op->kind == K_ATOMIC && op->id))
		return;
	if (m->dead && m->dead < op->posted)
		random_fail(w, "a %s went to memory that was gone", op_name(op));
	else if (!op->superseded && !is_there(op))
		random_fail(w, "a %s of %llu is done, and is not there", op_name(op),
			    (unsigned long long)op->posted);
	check_raised(op);
}

/* The error is reported by the first flush posted after the operation, which may end later. */
static bool will_be_reported(const struct rop *op, const struct rop *flush)
{
	const struct world *w = op->w;

	for (unsigned int i = 0; i < w->num_ops; i++) {
		const struct rop *f = w->op[i];

		if (!f->done && f->posted > op->posted && f->posted < flush->posted &&
		    (f->kind == K_WORKER_FLUSH ? f->node == op->node
					       : f->kind == K_FLUSH && f->end == op->end))
			return true;
	}
	return false;
}

/* "the error is then forgotten": one flush reports it, so with several under way any. */
static void check_flushed(const struct rop *op, const struct rop *flush)
{
	if (!op->mem->dead) {
		if (!op->superseded && !is_there(op))
			random_fail(op->w, "a %s of %llu at %zu was flushed, and is not there",
				    op_name(op), (unsigned long long)op->posted, op->at);
		check_raised(op);
	} else if (flush->kind != K_CLOSE && op->done && !op->status && !op->reported &&
		   op->mem->dead < op->posted && !will_be_reported(op, flush)) {
		random_fail(op->w, "a flush did not tell of a %s of %llu that was refused",
			    op_name(op), (unsigned long long)op->posted);
	}
}

void rma_flushed(struct end *e, const struct rop *flush)
{
	const struct world *w = e->node->w;
	unsigned int i;

	for (i = 0; i < w->num_ops; i++) {
		struct rop *op = w->op[i];

		if (op->end != e || (op->kind != K_PUT && op->kind != K_ATOMIC) || op->forgotten ||
		    (op->status && op->status != -EKEYREJECTED))
			continue;
		/*
		 * It may have reported what was posted behind it; a worker's reports the first of
		 * many errors, but not that the application has closed an endpoint.
		 */
		if (op->mem->dead && (flush->status == -EKEYREJECTED ||
				      (flush->kind == K_WORKER_FLUSH && flush->status &&
				       flush->status != -ECANCELED)))
			op->reported = true;
		else if (!flush->status && op->posted < flush->posted)
			check_flushed(op, flush);
	}
}

static void check_words(struct world *w, const struct rmem *m)
{
	uint64_t have[128], may[128] = {0};
	unsigned int i;

	memcpy(have, m->bytes + MEM_WORDS, sizeof(have));
	for (i = 0; i < w->num_ops; i++)
		if (w->op[i]->kind == K_ATOMIC && w->op[i]->mem == m)
			may[w->op[i]->bit / 64] |= 1ull << (w->op[i]->bit & 63);
	for (i = 0; i < 128; i++)
		if (have[i] & ~may[i])
			random_fail(w, "an atomic was done twice");
}

void mem_check_all(struct world *w)
{
	struct rmem *m;

	for (m = w->mems; m; m = m->next) {
		check_words(w, m);
		if (pattern_check(READ_ID, 0, m->bytes, MEM_READ) != MEM_READ)
			random_fail(w, "memory was written that nobody wrote to");
		if (m->copy && memcmp(m->copy, m->bytes, MEM_SIZE))
			random_fail(w, "memory was written after it was deregistered");
	}
}
