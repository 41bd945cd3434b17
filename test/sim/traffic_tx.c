/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traffic_priv.h"

/* ---- what a message is ---------------------------------------------------------------------- */

static struct sim_rng message_dice(const struct flow *f, unsigned int number)
{
	return sim_rng_make(sim_seed(f->t->sim) ^ 0x6d657373616765ull,
			    ((uint64_t)f->id << 32) + number);
}

size_t message_size(const struct flow *f, unsigned int number)
{
	/* Edges of protocols and frames, and a stretch around each. */
	static const uint16_t edge[] = {0,    1,    8,    64,   255,  256,  257,  1024,
					1400, 1440, 2048, 4096, 8192, 8900, 16384};
	struct sim_rng r = message_dice(f, number);
	size_t max = f->t->conf.max_size, size;

	if (sim_chance(&r, f->t->conf.large) && max > 16384)
		size = 16384 + sim_below(&r, max - 16384);
	else if (sim_chance(&r, 0.5))
		size = edge[sim_below(&r, sizeof(edge) / sizeof(edge[0]))] + sim_below(&r, 40);
	else
		size = sim_below(&r, 1ull << sim_between(&r, 4, 14));
	return size < max ? size : max;
}

bool message_any(const struct flow *f, unsigned int number)
{
	struct sim_rng r = message_dice(f, number);

	sim_rand(&r);
	r.state ^= 1;
	return sim_chance(&r, f->t->conf.any);
}

unsigned int message_class(const struct flow *f, unsigned int number)
{
	struct sim_rng r = message_dice(f, number);

	r.state ^= 2;
	return (unsigned int)sim_below(&r, CLASSES);
}

uint64_t message_tag(const struct flow *f, unsigned int number)
{
	return (message_any(f, number) ? TAG_ANY : 0) | TAG_FLOW(f->id) |
	       TAG_CLASS(message_class(f, number)) | number;
}

bool message_has_imm(const struct flow *f, unsigned int number)
{
	struct sim_rng r = message_dice(f, number);

	r.state ^= 3;
	return sim_chance(&r, 0.5);
}

uint16_t flow_channel(const struct flow *f)
{
	return (uint16_t)(f->id % 3 * 1000);
}

/* ---- sending -------------------------------------------------------------------------------- */

static void gone(struct flow *f, unsigned int number)
{
	f->gone[number] = 1;
	f->t->withdrawn++;
	if (f->order[number])
		traffic_fail(f->t, "send %u of flow %u was cancelled, but its message received",
			     number, f->id);
	inbox_withdrawn(&f->in);
}

static void finish(struct tx *tx, int status)
{
	struct flow *f = tx->flow;
	const char *wrong = buf_free(tx->buf);

	f->under_way--;
	f->tx[tx->number] = NULL;
	if (f->tx_done[tx->number]++)
		traffic_fail(f->t, "send %u of flow %u completed twice", tx->number, f->id);
	if (status == -ECANCELED && tx->withdrawn)
		gone(f, tx->number);
	else if (status)
		traffic_fail(f->t, "send %u of flow %u: %s", tx->number, f->id,
			     weft_strerror(status));
	if (wrong)
		traffic_fail(f->t, "send %u of flow %u: %s", tx->number, f->id, wrong);
	free(tx);
}

static void sent(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct tx *tx = arg;

	if (tx->kept != (req != NULL))
		traffic_fail(tx->flow->t,
			     "a send's callback got a request it was not asked for, or none");
	finish(tx, c->status);
	weft_request_free(req);
}

static void dice_flags(struct tx *tx, struct weft_op_params *p)
{
	struct flow *f = tx->flow;

	if (sim_chance(&f->rng, 0.1))
		p->flags |= WEFT_OP_F_FORCE_REQUEST;
	if (sim_chance(&f->rng, 0.2))
		p->flags |= WEFT_OP_F_MORE;
	if (sim_chance(&f->rng, 0.2))
		p->flags |= WEFT_OP_F_DELIVERED;
	if (message_size(f, tx->number) <= WEFT_INJECT_MAX && sim_chance(&f->rng, 0.2))
		p->flags |= WEFT_OP_F_INJECT;
	if (message_has_imm(f, tx->number))
		p->flags |= WEFT_OP_F_IMM;
	p->imm = ~message_id(f, tx->number);
	if (!message_any(f, tx->number)) {
		p->channel = flow_channel(f);
		p->source_channel = (uint16_t)tx->number;
	}
}

static void send_one(struct flow *f)
{
	const struct traffic_conf *conf = &f->t->conf;
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = sent);
	struct tx *tx = calloc(1, sizeof(*tx));
	enum buf_kind kind = sim_chance(&f->rng, conf->iov)       ? BUF_IOV
			     : sim_chance(&f->rng, conf->generic) ? BUF_GENERIC
								  : BUF_CONTIG;
	uint64_t tag;
	int ret;

	if (!tx)
		abort();
	tx->flow = f;
	tx->number = f->next++;
	tx->buf = buf_send(&f->rng, kind, message_id(f, tx->number), message_size(f, tx->number));
	tx->sync = sim_chance(&f->rng, conf->sync);
	tx->kept = sim_chance(&f->rng, 0.5);
	tag = message_tag(f, tx->number);
	f->under_way++;
	f->tx[tx->number] = tx;
	p.cb_arg = tx;
	p.datatype = buf_datatype(tx->buf);
	dice_flags(tx, &p);
	ret = (tx->sync ? weft_tag_send_sync : weft_tag_send)(f->ep, buf_pointer(tx->buf),
							      buf_count(tx->buf), tag, &p,
							      tx->kept ? &tx->req : NULL);
	if (p.flags & WEFT_OP_F_INJECT)
		buf_reuse(tx->buf);
	if (sim_chance(&f->rng, 0.1))
		weft_worker_kick(sim_worker(f->src));
	if (ret == WEFT_INPROGRESS)
		return;
	if (!ret && (tx->sync || (p.flags & WEFT_OP_F_FORCE_REQUEST)))
		traffic_fail(f->t, "a send was done in the call that must not be");
	finish(tx, ret);
}

/*
 * All sends before a flush must be complete when it is, or wait for their receiver alone. Looked at
 * in the next step, since the order of callbacks is free.
 */
static void flushed(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct flow *f = arg;

	weft_request_free(req);
	f->flushing = false;
	f->flushed = true;
	if (c->status)
		traffic_fail(f->t, "flush of flow %u: %s", f->id, weft_strerror(c->status));
}

static bool waits_for_receiver(const struct tx *tx)
{
	char text[200];

	if (!tx || !tx->req)
		return true; /* not known */
	weft_request_query(tx->req, text, sizeof(text));
	return !strstr(text, "queued") &&
	       (strstr(text, ", rndv/") || strstr(text, "waiting for the receiver"));
}

static void check_flushed(struct flow *f)
{
	unsigned int i;

	f->flushed = false;
	for (i = 0; i < f->flush_mark; i++)
		if (!f->tx_done[i] && !waits_for_receiver(f->tx[i]))
			traffic_fail(f->t, "flush of flow %u was done before send %u", f->id, i);
}

static void flush(struct flow *f)
{
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = flushed, .cb_arg = f);
	struct weft_request *req;
	int ret;

	f->flushing = true;
	f->flush_mark = f->next;
	ret = weft_ep_flush(f->ep, &p, &req);
	if (ret == WEFT_INPROGRESS)
		return;
	f->flushing = false;
	if (ret)
		traffic_fail(f->t, "flush of flow %u: %s", f->id, weft_strerror(ret));
}

/* For messages of the any plane the receives to take back would not be known. */
static void withdraw(struct flow *f)
{
	unsigned int number = (unsigned int)sim_below(&f->rng, f->next);
	struct tx *tx = f->tx[number];
	int ret;

	if (!tx || !tx->req || tx->withdrawn || message_any(f, number))
		return;
	tx->withdrawn = true;
	ret = weft_request_cancel(tx->req);
	if (ret == 0)
		return; /* tx may be gone */
	tx->withdrawn = false;
	if (ret != -EBUSY && ret != -EALREADY)
		traffic_fail(f->t, "cancel of a send said: %s", weft_strerror(ret));
}

void flow_send_step(struct flow *f)
{
	unsigned int n = (unsigned int)sim_below(&f->rng, 4);

	if (!f->ep)
		return;
	if (f->flushed)
		check_flushed(f);
	for (; n && f->next < f->messages && f->under_way < f->t->conf.window; n--)
		send_one(f);
	if (f->next && sim_chance(&f->rng, f->t->conf.withdraw))
		withdraw(f);
	if (!f->flushing && f->next < f->messages && sim_chance(&f->rng, 0.002))
		flush(f);
}

bool flow_sent(const struct flow *f)
{
	return f->next == f->messages && !f->under_way && !f->flushing;
}
