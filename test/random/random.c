/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The run of random.h: nodes and settings from the seed, steps, and an orderly end.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

uint64_t random_calls, random_messages;

void random_fail(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->error[0])
		return;
	va_start(ap, fmt);
	vsnprintf(w->error, sizeof(w->error), fmt, ap);
	va_end(ap);
	random_trace(w, "FAILED: %s", w->error);
}

void random_trace(struct world *w, const char *fmt, ...)
{
	const char *trace = getenv("SIM_TRACE");
	va_list ap;

	if (!trace || !*trace)
		return;
	fprintf(stderr, "%6llu %9.3f us ", (unsigned long long)w->now,
		(double)w->net->now(w) / 1e3);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void *random_grow(void *list, unsigned int num, size_t size)
{
	if (num & (num - 1) && num)
		return list;
	list = realloc(list, (num ? num * 2 : 1) * size);
	if (!list)
		abort();
	return list;
}

/* ---- making --------------------------------------------------------------------------------- */

void random_config(struct world *w, char *text, size_t size)
{
	static const char *const rndv[] = {"auto", "auto", "8k", "64k", "inf", "1"};
	static const char *const limit[] = {"256k", "32k", "0"};
	static const char *const scheme[] = {"auto", "get", "put", "am"};

	snprintf(text, size, "RNDV_THRESH=%s MULTI_EAGER_LIMIT=%s RNDV_SCHEME=%s ZCOPY=%s%s",
		 rndv[sim_below(&w->rng, 6)], limit[sim_below(&w->rng, 3)],
		 scheme[sim_below(&w->rng, 4)], sim_chance(&w->rng, 0.7) ? "y" : "n",
		 sim_chance(&w->rng, 0.2) ? " EAGER_CREDIT=16k UNEXP_LIMIT=64k WINDOW=16k" : "");
}

unsigned int random_flags(struct world *w)
{
	return sim_chance(&w->rng, 0.4) ? WEFT_WORKER_F_SEND_NOW : 0;
}

static void learn_id(struct rnode *n)
{
	struct weft_address_attr a = {.size = sizeof(a)};
	void *address;
	size_t length;

	if (weft_worker_get_address(n->worker, &address, &length) ||
	    weft_address_query(address, length, &a))
		random_fail(n->w, "an address can't be had or read");
	n->id = a.worker_id;
	weft_worker_release_address(n->worker, address);
}

struct world *random_world(const struct random_net *net, void *lanes, uint64_t seed)
{
	struct world *w = calloc(1, sizeof(*w));
	unsigned int i;

	if (!w)
		abort();
	w->net = net;
	w->lanes = lanes;
	w->seed = seed;
	w->rng = sim_rng_make(seed, 20 + (1ull << 32));
	w->nodes = (unsigned int)sim_between(&w->rng, 2, net->nodes_max);
	w->accept = sim_chance(&w->rng, 0.4);
	w->loopback = sim_chance(&w->rng, 0.3);
	w->faulty = sim_chance(&w->rng, 0.6);
	w->dying = sim_chance(&w->rng, net->dying);
	for (i = 0; i < w->nodes && !w->error[0]; i++) {
		w->node[i] = (struct rnode){.w = w, .index = i};
		net->open(&w->node[i]);
		if (w->error[0])
			return w;
		learn_id(&w->node[i]);
		am_recv_all(&w->node[i]);
		rma_recv_all(&w->node[i]);
	}
	for (i = 0; i < w->nodes; i++)
		mem_renew(&w->node[i]);
	if (w->dying)
		net->cut(w);
	return w;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void sleep_calls(struct rnode *n)
{
	int ret;

	weft_worker_kick(n->worker);
	weft_worker_signal(n->worker);
	if (sim_chance(&n->w->rng, 0.5)) {
		ret = weft_worker_arm(n->worker);
		if (ret != -EBUSY && ret != -EDEADLK)
			random_fail(n->w, "weft_worker_arm() after a signal: %s",
				    weft_strerror(ret));
	} else {
		ret = weft_worker_wait(n->worker, 0);
		if (ret < 0 && ret != -ETIMEDOUT && ret != -EDEADLK)
			random_fail(n->w, "weft_worker_wait(): %s", weft_strerror(ret));
	}
}

static void cancel_one(struct rnode *n)
{
	struct world *w = n->w;
	struct rop *op = w->num_ops ? w->op[sim_below(&w->rng, w->num_ops)] : NULL;

	if (op && op->node == n && !op->posting)
		op_cancel(op);
}

void random_step(struct rnode *n)
{
	struct world *w = n->w;
	unsigned int die = (unsigned int)sim_below(&w->rng, 100);
	struct end *e;

	if (w->error[0] || w->closing)
		return;
	if (die < 25)
		tag_send(n);
	else if (die < 44)
		tag_recv(n);
	else if (die < 52)
		tag_probe(n);
	else if (die < 64)
		am_send(n);
	else if (die < 68)
		am_use_kept(n);
	else if (die < 80)
		rma_post(n);
	else if (die < 86)
		end_flush(n);
	else if (die < 88)
		end_fence(n);
	else if (die < 92)
		cancel_one(n);
	else if (die < 93)
		sleep_calls(n);
	else if (die < 94)
		mem_renew(n);
	else if (die < 98)
		end_create(n);
	else if (sim_chance(&w->rng, 0.4) && (e = end_open(n)))
		end_close(e);
}

static void poll_all(struct world *w)
{
	struct rmem *m;
	unsigned int i;

	for (i = 0; i < w->num_ends; i++)
		end_poll(w->end[i]);
	for (i = 0; i < w->num_ops; i++)
		op_poll(w->op[i]);
	for (m = w->mems; m; m = m->next)
		mem_poll(m);
}

/* ---- the end -------------------------------------------------------------------------------- */

/* Receives from anybody take what there is, until nothing is left of what must come. */
static bool settled(struct world *w)
{
	struct rmem *m;
	unsigned int i;

	for (i = 0; i < w->num_ops; i++)
		if (!w->op[i]->done && !w->op[i]->forgotten && w->op[i]->kind != K_RECV)
			return false;
	for (i = 0; i < w->num_msgs; i++)
		if (!w->msg[i]->am && !w->msg[i]->taker && w->msg[i]->send->status >= 0 &&
		    end_whole(w->msg[i]->end, w->now))
			return false;
	for (m = w->mems; m; m = m->next)
		if (m->mem && m->dead)
			return false;
	return true;
}

static void print_what_hangs(struct world *w)
{
	char text[200] = "forgotten";
	unsigned int i;

	for (i = 0;
	     i < w->num_ops && (w->op[i]->done || w->op[i]->forgotten || w->op[i]->kind == K_RECV);
	     i++)
		;
	if (i == w->num_ops) {
		random_fail(w, "a message or a registration is left over");
		return;
	}
	if (w->op[i]->req)
		weft_request_query(w->op[i]->req, text, sizeof(text));
	random_fail(w, "a %s posted at %llu never ended: %s", op_name(w->op[i]),
		    (unsigned long long)w->op[i]->posted, text);
}

static void receive_all(struct world *w)
{
	struct weft_op_params p = WEFT_INIT(struct weft_op_params);
	/* A boot address names one interface: it is waited for when its lane is dead. */
	unsigned int i, round, most = w->dying ? 20000 : w->net->timeout;

	for (round = 0; round < most && !w->error[0]; round++) {
		for (i = 0; i < w->nodes * RANDOM_CHANNELS; i++) {
			struct rnode *n = &w->node[i % w->nodes];

			p.channel = (uint16_t)(i / w->nodes);
			if (!weft_tag_probe(n->worker, NULL, 0, 0, &p, NULL, NULL))
				tag_recv_all(n, p.channel);
			am_use_kept(n);
		}
		w->net->run(w, RANDOM_MS);
		poll_all(w);
		if (settled(w))
			return;
	}
	print_what_hangs(w);
}

static void close_ends(struct world *w)
{
	unsigned int i;

	for (i = 0; i < w->num_ops; i++)
		if (w->op[i]->kind == K_RECV && !w->op[i]->done)
			op_cancel(w->op[i]);
	for (i = 0; i < w->nodes; i++)
		mem_renew(&w->node[i]);
	tag_check_all(w);
	am_check_all(w);
	for (i = 0; i < w->num_ends; i++)
		if (w->end[i]->ep)
			end_close(w->end[i]);
}

const char *random_run(struct world *w, unsigned int steps)
{
	unsigned int i;

	for (i = 0; i < steps && !w->error[0]; i++) {
		random_step(&w->node[sim_below(&w->rng, w->nodes)]);
		if (sim_chance(&w->rng, 0.7))
			w->net->run(w,
				    sim_below(&w->rng, sim_chance(&w->rng, 0.1) ? 2 * RANDOM_MS
										: 20 * RANDOM_US));
		if (i % 8 == 0)
			poll_all(w);
	}
	w->closing = true;
	if (!w->error[0])
		receive_all(w);
	if (!w->error[0])
		close_ends(w);
	if (!w->error[0])
		receive_all(w);
	for (i = 0; i < w->num_ops && !w->error[0]; i++)
		if (!w->op[i]->done && !w->op[i]->forgotten)
			random_fail(w, "a %s of %llu has not ended", op_name(w->op[i]),
				    (unsigned long long)w->op[i]->posted);
	if (!w->error[0])
		mem_check_all(w);
	w->ending = true;
	if (!w->error[0])
		poll_all(w);
	return w->error[0] ? w->error : NULL;
}

void random_free(struct world *w)
{
	struct rmem *m;
	unsigned int i;

	if (!w)
		return;
	for (i = 0; i < w->num_ops; i++) {
		if (w->op[i]->buf)
			buf_free(w->op[i]->buf);
		free(w->op[i]->array);
		free(w->op[i]);
	}
	for (i = 0; i < w->num_msgs; i++)
		free(w->msg[i]);
	for (i = 0; i < w->num_ends; i++)
		free(w->end[i]);
	while ((m = w->mems)) {
		w->mems = m->next;
		weft_rkey_release_blob(m->blob);
		free(m->bytes);
		free(m->copy);
		free(m);
	}
	free(w->op);
	free(w->msg);
	free(w->end);
	free(w->kept);
	w->net->free(w);
	free(w);
}
