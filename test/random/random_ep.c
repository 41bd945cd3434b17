/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Endpoints of random.h: made, adopted, closed in both ways, flushed, fenced.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

/* Only a peer that has closed something can have ended the connection. */
static void check_reason(const struct end *e)
{
	const struct world *w = e->node->w;
	unsigned int i;

	for (i = 0; i < w->num_ends; i++)
		if (w->end[i]->closed && w->end[i]->node == e->peer && w->end[i]->peer == e->node)
			return;
	random_fail(e->node->w, "endpoint %u failed, and nobody has closed", e->index);
}

static void failed(struct weft_ep *ep, int status, const char *why, void *arg)
{
	struct end *e = arg;

	random_trace(e->node->w, "%c: endpoint %u failed: %s", 'a' + e->node->index, e->index, why);
	if (e->ep != ep || e->errors++)
		random_fail(e->node->w, "endpoint %u failed twice, or after its close", e->index);
	if (status != -ECONNRESET)
		random_fail(e->node->w, "endpoint %u failed: %s", e->index, why);
	check_reason(e);
	e->status = status;
	e->failed = ++e->node->w->now;
}

static struct end *end_new(struct rnode *n, struct rnode *peer)
{
	struct world *w = n->w;
	struct end *e = calloc(1, sizeof(*e));

	w->end = random_grow(w->end, w->num_ends, sizeof(*w->end));
	if (!e)
		abort();
	e->node = n;
	e->peer = peer;
	e->index = w->num_ends;
	e->created = ++w->now;
	w->end[w->num_ends++] = e;
	return e;
}

static unsigned int num_open(const struct rnode *n, const struct rnode *peer)
{
	unsigned int i, count = 0;

	for (i = 0; i < n->w->num_ends; i++)
		count += n->w->end[i]->ep && n->w->end[i]->node == n && n->w->end[i]->peer == peer;
	return count;
}

/* Any open endpoint of the node, also one that has failed. */
struct end *end_open(struct rnode *n)
{
	struct world *w = n->w;
	unsigned int i, start = (unsigned int)sim_below(&w->rng, w->num_ends);
	struct end *e;

	for (i = 0; i < w->num_ends; i++) {
		e = w->end[(start + i) % w->num_ends];
		if (e->ep && e->node == n)
			return e;
	}
	return NULL;
}

/* By its boot address, now and then; not all of a world's interfaces reach the one in it. */
static int create(struct rnode *n, struct rnode *peer, struct weft_ep_params *p,
		  struct weft_ep **ep)
{
	uint8_t boot[WEFT_BOOT_ADDRESS_MAX];
	void *address;
	int ret;

	if (sim_chance(&n->w->rng, 0.3)) {
		p->address = boot;
		p->address_length = sizeof(boot);
		if (weft_worker_get_boot_address(peer->worker, boot, &p->address_length))
			random_fail(n->w, "no boot address");
		ret = weft_ep_create(n->worker, p, ep);
		if (ret != -EHOSTUNREACH)
			return ret;
	}
	if (weft_worker_get_address(peer->worker, &address, &p->address_length))
		random_fail(n->w, "no address");
	p->address = address;
	ret = weft_ep_create(n->worker, p, ep);
	weft_worker_release_address(peer->worker, address);
	return ret;
}

void end_create(struct rnode *n)
{
	struct world *w = n->w;
	struct rnode *peer = &w->node[sim_below(&w->rng, w->nodes)];
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params, .err_cb = failed);
	struct end *e;
	int ret;

	if ((peer == n && !w->loopback) || num_open(n, peer) > (sim_chance(&w->rng, 0.1) ? 1 : 0))
		return;
	e = end_new(n, peer);
	p.err_arg = p.user_data = e;
	ret = create(n, peer, &p, &e->ep);
	random_trace(w, "%c: endpoint %u to %c: %s", 'a' + n->index, e->index, 'a' + peer->index,
		     weft_strerror(ret));
	if (ret)
		random_fail(w, "weft_ep_create(): %s", weft_strerror(ret));
	random_calls++;
}

void end_accepted(struct weft_worker *worker, struct weft_ep *ep, uint64_t remote_id,
		  const char *remote_name, void *arg)
{
	struct rnode *n = arg;
	struct world *w = n->w;
	struct end *e;
	unsigned int i;

	(void)worker;
	(void)remote_name;
	for (i = 0; i < w->nodes && w->node[i].id != remote_id; i++)
		;
	if (i == w->nodes || w->ending) {
		if (!w->ending)
			random_fail(w, "a stranger was accepted");
		weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
		return;
	}
	e = end_new(n, &w->node[i]);
	e->ep = ep;
	e->accepted = true;
	random_trace(w, "%c: endpoint %u accepted from %c", 'a' + n->index, e->index, 'a' + i);
}

/* Between the completions of a failure, and before its own callback: it has failed already. */
bool end_has_failed(struct end *e)
{
	struct weft_ep_attr a = {.size = sizeof(a)};

	return e->failed || (e->ep && !weft_ep_query(e->ep, &a) && a.status < 0);
}

void end_close(struct end *e)
{
	struct world *w = e->node->w;
	struct rop *op = op_new(e->node, K_CLOSE, e);
	struct weft_op_params p = op_params(op);
	struct weft_ep *ep = e->ep;
	int ret;

	e->force = !w->closing && sim_chance(&w->rng, 0.4);
	if (!e->failed && end_has_failed(e)) {
		check_reason(e);
		e->status = -ECONNRESET;
		e->failed = ++w->now;
	}
	e->closed = ++w->now;
	e->ep = NULL;
	ret = weft_ep_close(ep, e->force ? WEFT_EP_CLOSE_F_FORCE : 0, &p, op_req(op));
	/* The status of a failed endpoint is no promise broken: it is gone all the same. */
	if (ret < 0 && ret != -EINVAL && ret != -EBUSY && !end_whole(e, w->now)) {
		op->posting = false;
		op->done = true;
		op->completions = 1;
		op->status = ret;
		return;
	}
	op_posted(op, ret);
}

void end_poll(struct end *e)
{
	struct weft_ep_attr a = {.size = sizeof(a)};

	if (!e->ep)
		return;
	if (weft_ep_query(e->ep, &a) || a.remote_id != e->peer->id ||
	    (!e->accepted && a.user_data != e))
		random_fail(e->node->w, "weft_ep_query() of endpoint %u", e->index);
	if (a.status < 0 && !e->failed) {
		if (!e->accepted || a.status != -ECONNRESET)
			random_fail(e->node->w, "endpoint %u failed and has not said so: %s",
				    e->index, weft_strerror(a.status));
		check_reason(e);
		e->status = a.status;
		e->failed = ++e->node->w->now;
	}
	if (e->failed && a.status != e->status)
		random_fail(e->node->w, "endpoint %u failed with %s, and has: %s", e->index,
			    weft_strerror(e->status), weft_strerror(a.status));
}

bool end_whole(const struct end *e, uint64_t when)
{
	struct world *w = e->node->w;
	unsigned int i;

	if (e->force || (e->failed && e->failed < when))
		return false;
	/* A loopback's other end is itself: "with both sides closing, ...". */
	if (e->node == e->peer && e->closed)
		return false;
	for (i = 0; i < w->num_ends; i++) {
		const struct end *o = w->end[i];

		if (o == e || !((o->node == e->node && o->peer == e->peer) ||
				(o->node == e->peer && o->peer == e->node)))
			continue;
		/* It may have shared the connection. */
		if ((o->closed > e->created && o->closed < when) ||
		    (o->failed > e->created && o->failed < when) ||
		    (o->close_done > e->created && o->closed < when) ||
		    (o->closed && !o->close_done))
			return false;
	}
	return true;
}

void end_named(struct rnode *n, struct rmsg *m, struct weft_ep *ep, const char *by)
{
	struct world *w = n->w;
	unsigned int i;
	struct end *e;

	if (!ep)
		return;
	for (i = 0; i < w->num_ends && w->end[i]->ep != ep; i++)
		;
	if (i == w->num_ends || w->end[i]->node != n || w->end[i]->peer != m->end->node) {
		random_fail(w, "a %s named an endpoint that is closed, or another's", by);
		return;
	}
	e = w->end[i];
	if (e->from && e->from != m->end)
		random_fail(w, "a %s named endpoint %u for messages of %u and %u", by, i,
			    e->from->index, m->end->index);
	e->from = m->end;
}

void end_flush(struct rnode *n)
{
	struct end *e = end_open(n);
	struct weft_op_params p;
	struct rop *op;

	if (!e)
		return;
	if (sim_chance(&n->w->rng, 0.3)) {
		op = op_new(n, K_WORKER_FLUSH, NULL);
		p = op_params(op);
		op_posted(op, weft_worker_flush(n->worker, &p, op_req(op)));
		return;
	}
	op = op_new(n, K_FLUSH, e);
	p = op_params(op);
	op_posted(op, weft_ep_flush(e->ep, &p, op_req(op)));
}

void end_fence(struct rnode *n)
{
	struct end *e = end_open(n);
	int ret;

	if (!e || end_has_failed(e))
		return;
	ret = sim_chance(&n->w->rng, 0.5) ? weft_ep_fence(e->ep) : weft_worker_fence(n->worker);
	if (ret && end_whole(e, n->w->now))
		random_fail(n->w, "a fence said: %s", weft_strerror(ret));
}

/* What was sent before the flush has arrived, unless its stream was cut. */
static void check_messages(struct rop *op)
{
	struct world *w = op->w;
	struct rmsg *m;
	unsigned int i;

	for (i = 0; i < w->num_msgs; i++) {
		m = w->msg[i];
		if (m->send->posted > op->posted || m->send->node != op->node ||
		    (op->end && op->end != m->end) || !end_whole(m->end, w->now) ||
		    (!op->end && m->end->closed && m->end->closed < op->posted))
			continue;
		if (!m->am)
			tag_check_there(m);
		else if (!m->delivered && !m->dropped && !m->send->withdrawn &&
			 m->send->status >= 0)
			random_fail(w, "active message %u was flushed, and no handler has it", i);
	}
}

void flush_done(struct rop *op)
{
	struct world *w = op->w;
	struct end *e;
	unsigned int i;

	for (i = 0; i < w->num_ends; i++) {
		e = w->end[i];
		if (e->node == op->node && (!op->end || op->end == e) && end_whole(e, w->now) &&
		    (op->end || !e->closed || e->closed > op->posted))
			rma_flushed(e, op);
	}
	if (!op->status)
		check_messages(op);
}
