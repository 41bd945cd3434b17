/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Remote memory beside the messages. Every endpoint has an area of its peer's memory for itself, in
 * slots with one operation at a time, so that what must lie there is known to the byte; all
 * endpoints to a node add to one counter there, which must have had each value once.
 */

#include <stdlib.h>
#include <string.h>

#include "common/pattern.h"
#include "traffic_priv.h"

#define SLOTS 6
#define SLOT 20000
#define WORD 64 /* at the start of an area: the word for compare and swap, alone in its line */
#define AREA (WORD + SLOTS * SLOT)
#define NARROW 7 /* counters of 32 bits between the counter and the areas, changed all at once */

enum rma_kind { RMA_PUT, RMA_GET, RMA_ADD, RMA_CSWAP, RMA_ARRAY };

struct rma_op {
	struct rma_end *r;
	enum rma_kind kind;
	unsigned int slot;
	size_t offset, length; /* in the slot */
	struct buf *buf;       /* put */
	bool delivered;        /* put: over when the bytes are there */
	uint8_t *into;         /* get */
	uint64_t old;
	uint32_t array[2 * NARROW]; /* what is added, what was there */
};

/* A put that notifies: what must be there, once. */
struct note {
	uint64_t id;
	size_t at, length; /* in the target's memory */
	unsigned int raised;
};

struct rma_end {
	struct link_end *e;
	struct rma_node *target;
	struct sim_rng rng;
	struct weft_rkey *rkey;
	size_t base;                /* of the area in the target's memory */
	uint8_t model[SLOTS][SLOT]; /* what must lie there */
	bool busy[SLOTS], swapping;
	bool loose[SLOTS]; /* written, but not confirmed */
	uint64_t word;
	struct note *notes;
	unsigned int num_notes;
	unsigned int ops, next, under_way;
	bool flushing, flushed, checked;
};

struct rma_node {
	struct traffic *t;
	struct sim_node *node;
	struct weft_mem *mem;
	uint8_t *bytes; /* a counter, WORD bytes, then areas */
	size_t size;
	uint64_t adds;
	uint32_t narrow[NARROW]; /* sums of what is added */
	uint8_t *seen;           /* old values of the counter */
	unsigned int adds_max;
};

static void complain(const struct rma_op *op, const char *what)
{
	static const char *const name[] = {"put", "get", "add", "compare and swap",
					   "add to an array"};

	traffic_fail(op->r->e->t, "%s of %zu bytes at %zu of slot %u: %s", name[op->kind],
		     op->length, op->offset, op->slot, what);
}

/* ---- the end of an operation ---------------------------------------------------------------- */

static void check_old(const struct rma_op *op)
{
	struct rma_end *r = op->r;

	if (op->kind == RMA_ARRAY) {
		/* What is there grows. */
		for (unsigned int i = 0; i < NARROW; i++)
			if (op->array[NARROW + i] > r->target->narrow[i] - op->array[i])
				complain(op, "an old value is more than has been added");
	} else if (op->kind == RMA_CSWAP) {
		if (op->old != r->word)
			complain(op, "the old value is not what was written last");
		r->word++;
		r->swapping = false;
	} else if (op->old >= r->target->adds_max || r->target->seen[op->old]) {
		complain(op, "two have had the same old value, or one that cannot be");
	} else {
		r->target->seen[op->old] = 1;
	}
}

/* Where its bytes lie in the target's memory. */
static size_t slot_at(const struct rma_op *op)
{
	return op->r->base + WORD + (size_t)op->slot * SLOT + op->offset;
}

static void finish(struct rma_op *op, int status)
{
	struct rma_end *r = op->r;
	const char *wrong = NULL;

	r->under_way--;
	if (status)
		complain(op, weft_strerror(status));
	else if (op->kind >= RMA_ADD)
		check_old(op);
	else if (op->kind == RMA_GET &&
		 memcmp(op->into, r->model[op->slot] + op->offset, op->length))
		complain(op, "what was read is not what lies there");
	else if (op->delivered && memcmp(r->target->bytes + slot_at(op),
					 r->model[op->slot] + op->offset, op->length))
		complain(op, "it is said to be delivered, and is not there");
	if (op->kind == RMA_PUT)
		wrong = buf_free(op->buf);
	if (wrong)
		complain(op, wrong);
	if (op->kind <= RMA_GET)
		r->busy[op->slot] = false;
	r->e->t->done++;
	r->e->t->bytes += op->length;
	free(op->into);
	free(op);
}

static void ended(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	finish(arg, c->status);
	weft_request_free(req);
}

/* ---- operations ----------------------------------------------------------------------------- */

static void dice_range(struct rma_op *op)
{
	struct sim_rng *rng = &op->r->rng;

	op->length = sim_chance(rng, 0.3) ? sim_below(rng, SLOT + 1)
					  : sim_below(rng, 1ull << sim_between(rng, 0, 12));
	op->offset = sim_below(rng, SLOT - op->length + 1);
}

/* The peer shall hear of it. */
static void announce(struct rma_op *op, uint64_t id, struct weft_op_params *p)
{
	struct rma_end *r = op->r;

	r->notes[r->num_notes] = (struct note){id, slot_at(op), op->length, 0};
	p->flags |= WEFT_OP_F_IMM;
	p->imm = (uint64_t)(r->e - r->e->t->ends) << 32 | r->num_notes++;
	p->channel = (uint16_t)id;
	p->source_channel = (uint16_t)~id;
}

/*
 * The slot's next operation stands behind a fence, or was posted when this one was delivered: what
 * lies there is this one's.
 */
static void noticed(struct weft_worker *worker, const struct weft_put_event *e, void *arg)
{
	struct rma_node *n = arg;
	struct rma_end *r = e->imm >> 32 < n->t->num_ends ? n->t->ends[e->imm >> 32].rma : NULL;
	struct note *note;

	if (!r || r->target != n || (uint32_t)e->imm >= r->num_notes) {
		traffic_fail(n->t, "a put is notified that nobody has made");
		return;
	}
	note = &r->notes[(uint32_t)e->imm];
	if (note->raised++)
		traffic_fail(n->t, "a put is notified twice");
	if (e->offset != note->at || e->length != note->length ||
	    e->channel != (uint16_t)note->id || e->source_channel != (uint16_t)~note->id ||
	    e->key != weft_mem_key(n->mem))
		traffic_fail(n->t, "a put is notified as another one");
	if (pattern_check(note->id, 0, n->bytes + note->at, note->length) != note->length)
		traffic_fail(n->t, "a put is notified before its bytes are there");
}

static int put(struct rma_op *op, struct weft_op_params *p)
{
	struct rma_end *r = op->r;
	const struct traffic_conf *conf = &r->e->t->conf;
	uint64_t id = sim_rand(&r->rng);
	enum buf_kind kind = sim_chance(&r->rng, conf->iov)       ? BUF_IOV
			     : sim_chance(&r->rng, conf->generic) ? BUF_GENERIC
								  : BUF_CONTIG;
	int ret;

	op->buf = buf_send(&r->rng, kind, id, op->length);
	pattern_fill(id, 0, r->model[op->slot] + op->offset, op->length);
	p->datatype = buf_datatype(op->buf);
	p->flags |= sim_chance(&r->rng, 0.5) ? WEFT_OP_F_DELIVERED : 0;
	op->delivered = p->flags & WEFT_OP_F_DELIVERED;
	if (sim_chance(&r->rng, 0.4))
		announce(op, id, p);
	r->loose[op->slot] = !op->delivered;
	if (op->length <= WEFT_INJECT_MAX && sim_chance(&r->rng, 0.2))
		p->flags |= WEFT_OP_F_INJECT;
	ret = weft_put(r->e->ep, buf_pointer(op->buf), buf_count(op->buf), r->rkey, slot_at(op), p,
		       NULL);
	if (p->flags & WEFT_OP_F_INJECT)
		buf_reuse(op->buf);
	return ret;
}

static int get(struct rma_op *op, struct weft_op_params *p)
{
	struct rma_end *r = op->r;

	op->into = malloc(op->length + 1);
	if (!op->into)
		abort();
	return weft_get(r->e->ep, op->into, op->length, r->rkey, slot_at(op), p, NULL);
}

/* All ends add to the same elements; with their old values, or only delivered. */
static int array(struct rma_op *op, struct weft_op_params *p)
{
	struct rma_end *r = op->r;
	struct weft_atomic_params a =
		WEFT_INIT(struct weft_atomic_params, .op = WEFT_ATOMIC_ADD,
			  .type = WEFT_ATOMIC_UINT32, .count = NARROW, .operands = op->array,
			  .result = op->array + NARROW);

	for (unsigned int i = 0; i < NARROW; i++) {
		op->array[i] = (uint32_t)sim_below(&r->rng, 1000);
		r->target->narrow[i] += op->array[i];
	}
	if (sim_chance(&r->rng, 0.5)) {
		a.result = NULL;
		p->flags |= WEFT_OP_F_DELIVERED;
	}
	return weft_atomic(r->e->ep, &a, r->rkey, 8, p, NULL);
}

static int atomic(struct rma_op *op, struct weft_op_params *p)
{
	struct rma_end *r = op->r;
	struct weft_atomic_params a = WEFT_INIT(struct weft_atomic_params, .op = WEFT_ATOMIC_ADD,
						.width = 8, .operand = 1, .result = &op->old);

	if (op->kind == RMA_ADD) {
		r->target->adds++;
		return weft_atomic(r->e->ep, &a, r->rkey, 0, p, NULL);
	}
	r->swapping = true;
	a.op = WEFT_ATOMIC_CSWAP;
	a.compare = r->word;
	a.operand = r->word + 1;
	return weft_atomic(r->e->ep, &a, r->rkey, r->base, p, NULL);
}

static void start(struct rma_end *r)
{
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = ended);
	unsigned int dice = (unsigned int)sim_below(&r->rng, 11);
	unsigned int slot = (unsigned int)sim_below(&r->rng, SLOTS);
	struct rma_op *op;
	int ret;

	if (dice < 8 ? r->busy[slot] : dice == 9 && r->swapping)
		return;
	op = calloc(1, sizeof(*op));
	if (!op)
		abort();
	*op = (struct rma_op){.r = r, .slot = slot};
	op->kind = dice < 4    ? RMA_PUT
		   : dice < 8  ? RMA_GET
		   : dice == 8 ? RMA_ADD
		   : dice == 9 ? RMA_CSWAP
			       : RMA_ARRAY;
	if (sim_chance(&r->rng, 0.2))
		p.flags = WEFT_OP_F_MORE;
	p.cb_arg = op;
	r->next++;
	r->under_way++;
	if (op->kind <= RMA_GET) {
		r->busy[slot] = true;
		dice_range(op);
		/* What is not known to be there is ordered by a fence. */
		if (r->loose[slot] && weft_ep_fence(r->e->ep))
			complain(op, "the fence failed");
		r->loose[slot] = false;
	}
	ret = op->kind == RMA_PUT     ? put(op, &p)
	      : op->kind == RMA_GET   ? get(op, &p)
	      : op->kind == RMA_ARRAY ? array(op, &p)
				      : atomic(op, &p);
	if (ret != WEFT_INPROGRESS)
		finish(op, ret);
}

/* ---- set-up, steps, the end ----------------------------------------------------------------- */

struct rma_node *rma_node_create(struct traffic *t, struct sim_node *node)
{
	struct weft_mem_params mp =
		WEFT_INIT(struct weft_mem_params, .flags = WEFT_MEM_F_REMOTE_READ |
							   WEFT_MEM_F_REMOTE_WRITE |
							   WEFT_MEM_F_REMOTE_ATOMIC);
	struct rma_node *n = calloc(1, sizeof(*n));
	int ret;

	if (!n)
		abort();
	n->t = t;
	n->node = node;
	n->size = WORD + (size_t)t->num_ends * AREA;
	n->adds_max = t->num_ends * t->conf.rma;
	n->seen = calloc(n->adds_max + 1, 1);
	n->bytes = aligned_alloc(WORD, (n->size + WORD - 1) / WORD * WORD);
	if (!n->bytes || !n->seen)
		abort();
	memset(n->bytes, 0, n->size);
	ret = weft_mem_register(sim_context(node), n->bytes, n->size, &mp, &n->mem);
	if (ret)
		traffic_fail(t, "weft_mem_register: %s", weft_strerror(ret));
	ret = weft_worker_set_put_handler(sim_worker(node), noticed, n);
	if (ret)
		traffic_fail(t, "weft_worker_set_put_handler: %s", weft_strerror(ret));
	return n;
}

struct rma_end *rma_end_create(struct link_end *e, struct rma_node *target)
{
	struct rma_end *r = calloc(1, sizeof(*r));
	unsigned int i = (unsigned int)(e - e->t->ends);

	if (!r)
		abort();
	r->e = e;
	r->target = target;
	r->rng = sim_stream(e->t->sim, 13000 + i);
	r->base = WORD + (size_t)i * AREA;
	r->ops = e->t->conf.rma;
	r->notes = calloc(r->ops, sizeof(*r->notes));
	if (!r->notes)
		abort();
	return r;
}

static void unpack_key(struct rma_end *r)
{
	size_t length;
	void *blob;
	int ret = weft_rkey_pack(r->target->mem, &blob, &length);

	if (!ret) {
		ret = weft_rkey_unpack(r->e->ep, blob, length, &r->rkey);
		weft_rkey_release_blob(blob);
	}
	if (ret)
		traffic_fail(r->e->t, "a remote key can't be made: %s", weft_strerror(ret));
}

static void flushed(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct rma_end *r = arg;

	weft_request_free(req);
	r->flushed = true;
	if (c->status)
		traffic_fail(r->e->t, "flush of remote memory: %s", weft_strerror(c->status));
}

static void flush(struct rma_end *r)
{
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = flushed, .cb_arg = r);
	int ret = weft_ep_flush(r->e->ep, &p, NULL);

	r->flushing = true;
	r->flushed = ret == 0;
	if (ret < 0)
		traffic_fail(r->e->t, "flush of remote memory: %s", weft_strerror(ret));
}

/* The peer's memory itself, which a flush has said is complete. */
static void check_memory(struct rma_end *r)
{
	const uint8_t *area = r->target->bytes + r->base;
	uint64_t word;

	r->checked = true;
	for (unsigned int i = 0; i < r->num_notes; i++) {
		if (!r->notes[i].raised)
			traffic_fail(r->e->t, "a put was flushed, and is not notified");
	}
	memcpy(&word, area, sizeof(word));
	if (word != r->word)
		traffic_fail(r->e->t, "the swapped word is %llu, not %llu",
			     (unsigned long long)word, (unsigned long long)r->word);
	if (memcmp(area + WORD, r->model, sizeof(r->model)))
		traffic_fail(r->e->t, "the peer's memory differs from what was written there");
}

void rma_step(struct rma_end *r)
{
	unsigned int n = (unsigned int)sim_below(&r->rng, 3);

	if (!r->e->ep || r->e->t->error[0])
		return;
	if (!r->rkey)
		unpack_key(r);
	for (; r->rkey && n && r->next < r->ops && !r->e->t->error[0]; n--)
		start(r);
	if (r->next == r->ops && !r->flushing)
		flush(r);
	if (r->flushed && !r->under_way && !r->checked)
		check_memory(r);
}

bool rma_finished(const struct rma_end *r)
{
	return r->checked;
}

void rma_node_check(struct rma_node *n)
{
	uint64_t counter;

	if (memcmp(n->bytes + 8, n->narrow, sizeof(n->narrow)))
		traffic_fail(n->t, "elements are not the sums of what was added to them");
	memcpy(&counter, n->bytes, sizeof(counter));
	if (counter != n->adds)
		traffic_fail(n->t, "a counter is %llu after %llu additions of 1",
			     (unsigned long long)counter, (unsigned long long)n->adds);
}

void rma_end_close(struct rma_end *r)
{
	weft_rkey_destroy(r->rkey);
	r->rkey = NULL;
}

bool rma_node_release(struct rma_node *n)
{
	if (n->mem && weft_mem_deregister(n->mem))
		return false;
	n->mem = NULL;
	return true;
}

void rma_end_free(struct rma_end *r)
{
	if (r)
		free(r->notes);
	free(r);
}

void rma_node_free(struct rma_node *n)
{
	if (!n)
		return;
	free(n->bytes);
	free(n->seen);
	free(n);
}
