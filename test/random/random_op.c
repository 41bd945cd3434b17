/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations of random.h: one completion each, cancelling, what statuses are allowed.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

const char *op_name(const struct rop *op)
{
	static const char *const name[] = {"send",
					   "synchronous send",
					   "active message",
					   "receive",
					   "receive of a message",
					   "receive of data",
					   "put",
					   "get",
					   "atomic",
					   "flush",
					   "flush of the worker",
					   "close",
					   "probe"};

	return name[op->kind];
}

bool op_is_send(const struct rop *op)
{
	return op->kind <= K_AM;
}

enum buf_kind random_kind(struct world *w)
{
	return sim_chance(&w->rng, 0.2)   ? BUF_IOV
	       : sim_chance(&w->rng, 0.2) ? BUF_GENERIC
					  : BUF_CONTIG;
}

size_t random_size(struct world *w)
{
	return sim_below(&w->rng,
			 1ull << sim_between(&w->rng, 1, sim_chance(&w->rng, 0.1) ? 19 : 13));
}

struct rop *op_new(struct rnode *n, enum kind kind, struct end *e)
{
	struct world *w = n->w;
	struct rop *op = calloc(1, sizeof(*op));

	w->op = random_grow(w->op, w->num_ops, sizeof(*w->op));
	if (!op)
		abort();
	w->op[w->num_ops++] = op;
	op->w = w;
	op->kind = kind;
	op->node = n;
	op->end = e;
	/* One without could not be taken back at the end. */
	op->has_req = kind == K_RECV || sim_chance(&w->rng, 0.7);
	/* Of a flush the moment of its end counts. */
	op->has_cb = !op->has_req || kind == K_FLUSH || kind == K_WORKER_FLUSH || kind == K_CLOSE ||
		     sim_chance(&w->rng, 0.8);
	op->posted = ++w->now;
	random_calls++;
	return op;
}

static bool ended_between(const struct world *w, const struct rnode *a, const struct rnode *b)
{
	for (unsigned int i = 0; i < w->num_ends; i++) {
		const struct end *e = w->end[i];

		if ((e->closed || e->failed) &&
		    ((e->node == a && e->peer == b) || (e->node == b && e->peer == a)))
			return true;
	}
	return false;
}

/* Ends of an operation that no mistake of the library is needed for. */
static bool allowed(const struct rop *op, int status)
{
	const struct end *e = op->end;
	const struct world *w = op->w;
	unsigned int i;

	if (!status)
		return true;
	if (status == -ECANCELED && op->withdrawn)
		return true;
	if (op_is_send(op) && status == -EIO && op->msg->refused)
		return true;
	if ((op->kind == K_PUT || op->kind == K_GET || op->kind == K_ATOMIC) && op->mem->dead &&
	    status == -EKEYREJECTED)
		return true;
	/* Judged by what memory they concern: rma_flushed(). */
	if ((op->kind == K_FLUSH || op->kind == K_WORKER_FLUSH || op->kind == K_CLOSE) &&
	    status == -EKEYREJECTED)
		return true;
	if (status != -ECANCELED && status != -ECONNRESET)
		return false;
	/* A receive from one endpoint ends with it: by its close, or with its error. */
	if (op->kind == K_RECV && e &&
	    (e->closed && !e->failed ? status == -ECANCELED : status == e->status || !e->status))
		return true;
	/* Another endpoint to the same worker may have had its message. */
	if (op->kind == K_RECV && e)
		return ended_between(w, e->node, e->peer);
	if (e)
		return !end_whole(e, w->now) || end_has_failed(op->end);
	/* A receive from anybody, matched when its connection ended; a flush of all endpoints. */
	for (i = 0; i < w->num_ends; i++)
		if ((w->end[i]->node == op->node || w->end[i]->peer == op->node) &&
		    (w->end[i]->closed || w->end[i]->failed))
			return true;
	return false;
}

static void check_buffer(struct rop *op, const struct weft_completion *c)
{
	const char *wrong;

	if (op->kind == K_RECV || op->kind == K_MSG_RECV)
		tag_received(op, c);
	else if (op->kind == K_AM_DATA)
		am_received(op, c);
	if (!op->buf)
		return;
	wrong = buf_free(op->buf);
	op->buf = NULL;
	if (wrong)
		random_fail(op->w, "%s: %s", op_name(op), wrong);
}

static void end_op(struct rop *op, const struct weft_completion *c)
{
	struct world *w = op->w;

	op->done = true;
	op->ended = ++w->now;
	op->status = c->status;
	random_trace(w, "%c: %s %llu ends: %s", 'a' + op->node->index, op_name(op),
		     (unsigned long long)op->posted, weft_strerror(c->status));
	if (op->completions++)
		random_fail(w, "a %s completed twice", op_name(op));
	if (op->forgotten)
		random_fail(w, "a %s called back after its request was freed", op_name(op));
	if (op->kind == K_CLOSE)
		op->end->close_done = op->ended;
	if (c->status != -EMSGSIZE && !allowed(op, c->status))
		random_fail(w, "a %s posted at %llu ended with: %s", op_name(op),
			    (unsigned long long)op->posted, weft_strerror(c->status));
	if (op->kind == K_PUT || op->kind == K_GET || op->kind == K_ATOMIC)
		rma_done(op);
	if (op->kind <= K_SYNC && op->delivered && !c->status && end_whole(op->end, w->now))
		tag_check_there(op->msg);
	check_buffer(op, c);
	if (op->kind == K_FLUSH || op->kind == K_WORKER_FLUSH || op->kind == K_CLOSE)
		flush_done(op);
}

static void completed(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct rop *op = arg;
	struct world *w = op->w;

	if (op->posting)
		random_fail(w, "a %s called back inside its call", op_name(op));
	if (op->has_req != (req != NULL) || (req && req != op->req))
		random_fail(w, "a %s called back with another request", op_name(op));
	end_op(op, c);
	if (req && sim_chance(&w->rng, 0.5)) {
		op->req = NULL;
		weft_request_free(req);
	}
	if (w->depth < 2 && !w->ending && sim_chance(&w->rng, 0.15)) {
		w->depth++;
		random_step(op->node);
		w->depth--;
	}
}

void op_check_imm(struct world *w, const struct rmsg *m, const struct weft_completion *c)
{
	if (c->flags != (m->has_imm ? WEFT_COMPLETION_F_IMM : 0) ||
	    c->imm != (m->has_imm ? ~m->id : 0) || c->channel != m->channel ||
	    c->source_channel != m->source_channel)
		random_fail(w, "message %u came with %llx on channel %u from %u", (uint32_t)m->tag,
			    (unsigned long long)c->imm, c->channel, c->source_channel);
}

struct weft_op_params op_params(struct rop *op)
{
	struct weft_op_params p =
		WEFT_INIT(struct weft_op_params, .cb_arg = op, .imm = op->imm,
			  .channel = op->channel, .source_channel = op->source_channel);

	op->posting = true;
	if (op->has_cb)
		p.cb = completed;
	if (op->buf)
		p.datatype = buf_datatype(op->buf);
	if (sim_chance(&op->w->rng, 0.1))
		p.flags = WEFT_OP_F_FORCE_REQUEST;
	if (op->delivered)
		p.flags |= WEFT_OP_F_DELIVERED;
	p.flags |= op->flags;
	if ((op_is_send(op) || op->kind == K_PUT || op->kind == K_GET || op->kind == K_ATOMIC) &&
	    sim_chance(&op->w->rng, 0.2))
		p.flags |= WEFT_OP_F_MORE;
	return p;
}

struct weft_request **op_req(struct rop *op)
{
	return op->has_req ? &op->req : NULL;
}

bool op_posted(struct rop *op, int ret)
{
	struct weft_ep_attr a = {.size = sizeof(a)};
	struct weft_completion c = {.size = sizeof(c), .status = ret};
	struct world *w = op->w;

	op->posting = false;
	random_trace(w, "%c: %s %llu on %d: %s", 'a' + op->node->index, op_name(op),
		     (unsigned long long)op->posted, op->end ? (int)op->end->index : -1,
		     weft_strerror(ret));
	if (ret == WEFT_INPROGRESS) {
		if (op->has_req && !op->req)
			random_fail(w, "a %s goes on without a request", op_name(op));
		if (op->has_req && sim_chance(&w->rng, 0.02) &&
		    (op_is_send(op) || op->kind == K_PUT)) {
			op->forgotten = true;
			weft_request_free(op->req);
			op->req = NULL;
		}
		return true;
	}
	if (op->req)
		random_fail(w, "a %s that does not go on has a request", op_name(op));
	if (ret >= 0 ||
	    (ret == -EKEYREJECTED && (op->kind == K_FLUSH || op->kind == K_WORKER_FLUSH))) {
		if (op->kind != K_RECV && op->kind != K_MSG_RECV && op->kind != K_AM_DATA)
			end_op(op, &c);
		return true;
	}
	op->done = true;
	op->ended = ++w->now;
	op->status = ret;
	op->completions = 1;
	if (op->buf)
		buf_free(op->buf);
	op->buf = NULL;
	/* An endpoint's error, and no other. */
	if (op->kind == K_AM_DATA || (!op->end && allowed(op, ret)))
		return false;
	if (op->kind == K_CLOSE || !op->end || weft_ep_query(op->end->ep, &a) || a.status != ret)
		random_fail(w, "a %s was refused: %s", op_name(op), weft_strerror(ret));
	return false;
}

/* Requests without a callback, and those that their callback has left. */
void op_poll(struct rop *op)
{
	struct weft_completion c = {.size = sizeof(c)};
	char text[200];
	int ret, len;

	if (!op->req)
		return;
	len = weft_request_query(op->req, text, sizeof(text));
	if (len <= 0 || (size_t)len >= sizeof(text) || strlen(text) != (size_t)len)
		random_fail(op->w, "weft_request_query() said %d", len);
	ret = weft_request_test(op->req, &c);
	if (ret == WEFT_INPROGRESS) {
		if (op->done)
			random_fail(op->w, "a %s goes on after its end", op_name(op));
		return;
	}
	if (ret != c.status)
		random_fail(op->w, "weft_request_test() said two things of a %s", op_name(op));
	if (op->has_cb && !op->done)
		random_fail(op->w, "a %s has ended without its callback", op_name(op));
	if (op->done && ret != op->status)
		random_fail(op->w, "a %s has ended in two ways", op_name(op));
	if (!op->done)
		end_op(op, &c);
	if (sim_chance(&op->w->rng, 0.5) || op->w->ending) {
		weft_request_free(op->req);
		op->req = NULL;
	}
}

void op_cancel(struct rop *op)
{
	bool was = op->done;
	int ret;

	if (!op->req ||
	    (!op->has_cb && !was && weft_request_test(op->req, NULL) != WEFT_INPROGRESS))
		return;
	if (!was)
		op->withdrawn = true;
	ret = weft_request_cancel(op->req);
	random_trace(op->w, "%c: cancel of %s %llu: %s", 'a' + op->node->index, op_name(op),
		     (unsigned long long)op->posted, weft_strerror(ret));
	if (was ? ret != -EALREADY : ret != 0 && ret != -EBUSY)
		random_fail(op->w, "cancel of a %s said: %s", op_name(op), weft_strerror(ret));
	op->matched |= ret == -EBUSY;
	if (ret)
		op->withdrawn = false;
	else if (!op->has_cb)
		op_poll(op);
	if (!ret && op->kind == K_RECV && (!op->done || op->status != -ECANCELED))
		random_fail(op->w, "a receive was cancelled, but has not ended so");
}
