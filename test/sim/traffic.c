/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "traffic_priv.h"

const struct traffic_conf traffic_mixed = {
	.messages = 100,
	.max_size = 100000,
	.window = 24,
	.large = 0.06,
	.sync = 0.1,
	.iov = 0.2,
	.generic = 0.1,
	.cancel = 0.02,
	.probe = 0.2,
	.trunc = 0.05,
	.any = 0.15,
	.drop = 0.1,
	.source = 0.3,
	.lag = 0.02,
	.withdraw = 0.02,
	.am = 40,
	.rma = 40,
	.loopback = true,
};

void traffic_fail(struct traffic *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	/* The first one counts: what follows are often consequences. */
	if (t->error[0])
		return;
	n = snprintf(t->error, sizeof(t->error),
		     "t=%llu us: ", (unsigned long long)(sim_now(t->sim) / SIM_US));
	va_start(ap, fmt);
	vsnprintf(t->error + n, sizeof(t->error) - (size_t)n, fmt, ap);
	va_end(ap);
}

/* ---- connections ---------------------------------------------------------------------------- */

static void ep_failed(struct weft_ep *ep, int status, const char *why, void *arg)
{
	struct link_end *e = arg;

	(void)ep;
	if (e->t->closing && status == -ECONNRESET)
		return;
	traffic_fail(e->t, "an endpoint failed: %s: %s", weft_strerror(status), why);
}

static void connect_end(struct link_end *e)
{
	struct weft_ep_params p =
		WEFT_INIT(struct weft_ep_params, .err_cb = ep_failed, .err_arg = e);
	unsigned int i;
	int ret = sim_ep_create(e->node, e->peer, &p, &e->ep);

	if (ret) {
		traffic_fail(e->t, "weft_ep_create: %s", weft_strerror(ret));
		return;
	}
	for (i = 0; i < e->t->num_flows; i++) {
		if (e->t->flows[i].src == e->node && e->t->flows[i].dst == e->peer)
			e->t->flows[i].ep = e->ep;
		if (e->t->flows[i].src == e->peer && e->t->flows[i].dst == e->node)
			e->t->flows[i].in.source = e->ep;
	}
}

static void closed(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct link_end *e = arg;

	weft_request_free(req);
	e->closed = true;
	if (c->status)
		traffic_fail(e->t, "close: %s", weft_strerror(c->status));
}

static void close_end(struct link_end *e)
{
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = closed, .cb_arg = e);
	struct weft_request *req;
	int ret;

	if (e->rma)
		rma_end_close(e->rma);
	ret = weft_ep_close(e->ep, 0, &p, &req);

	e->closing = true;
	if (ret == WEFT_INPROGRESS)
		return;
	e->closed = true;
	if (ret)
		traffic_fail(e->t, "close: %s", weft_strerror(ret));
}

/* ---- set-up --------------------------------------------------------------------------------- */

static void add_end(struct traffic *t, struct sim_node *node, struct sim_node *peer, uint64_t when)
{
	t->ends[t->num_ends++] = (struct link_end){.t = t,
						   .node = node,
						   .peer = peer,
						   .wanted = true,
						   .create_at = sim_now(t->sim) + when};
}

static void add_flow(struct traffic *t, struct sim_node *src, struct sim_node *dst)
{
	struct flow *f = &t->flows[t->num_flows];

	*f = (struct flow){
		.t = t, .id = t->num_flows++, .src = src, .dst = dst, .messages = t->conf.messages};
	f->rng = sim_stream(t->sim, 3000 + f->id);
	f->order = calloc(f->messages + 1, sizeof(*f->order));
	f->tx_done = calloc(f->messages + 1, 1);
	f->gone = calloc(f->messages + 1, 1);
	f->tx = calloc(f->messages + 1, sizeof(struct tx *));
	if (!f->order || !f->tx_done || !f->gone || !f->tx)
		abort();
	inbox_init(&f->in, t, dst, f, 0);
	if (t->conf.am)
		f->am = am_create(f, t->conf.am);
}

/* Both at once, one after the other, or one side only: the dice say. */
static void connect_pair(struct traffic *t, struct sim_node *a, struct sim_node *b)
{
	switch (sim_below(&t->rng, 5)) {
	case 0:
		add_end(t, a, b, 0);
		add_flow(t, a, b);
		break;
	case 1:
		add_end(t, a, b, 0);
		add_end(t, b, a, sim_below(&t->rng, SIM_MS));
		add_flow(t, a, b);
		add_flow(t, b, a);
		break;
	default:
		add_end(t, a, b, 0);
		add_end(t, b, a, 0);
		add_flow(t, a, b);
		add_flow(t, b, a);
		break;
	}
}

static void make_any_boxes(struct traffic *t)
{
	unsigned int i, f, m, n;

	for (i = 0; i < t->num_nodes; i++) {
		n = 0;
		for (f = 0; f < t->num_flows; f++)
			for (m = 0; t->flows[f].dst == t->nodes[i] && m < t->flows[f].messages; m++)
				n += message_any(&t->flows[f], m);
		inbox_init(&t->any[i], t, t->nodes[i], NULL, n);
	}
}

/* What runs beside the tagged messages. */
static void make_side_traffic(struct traffic *t)
{
	unsigned int i, n;

	for (n = 0; n < t->num_nodes; n++) {
		if (t->conf.am)
			am_listen(&t->any[n]);
		if (!t->conf.rma)
			continue;
		t->memory[n] = rma_node_create(t, t->nodes[n]);
		for (i = 0; i < t->num_ends; i++)
			if (t->ends[i].peer == t->nodes[n])
				t->ends[i].rma = rma_end_create(&t->ends[i], t->memory[n]);
	}
}

struct traffic *traffic_create(struct sim *sim, struct sim_node *const *nodes, unsigned int n,
			       const struct traffic_conf *conf)
{
	struct traffic *t = calloc(1, sizeof(*t));
	unsigned int i, j;

	if (!t)
		abort();
	t->sim = sim;
	t->conf = *conf;
	t->num_nodes = n;
	t->rng = sim_stream(sim, 2000);
	t->nodes = calloc(n, sizeof(struct sim_node *));
	t->any = calloc(n, sizeof(*t->any));
	t->flows = calloc((size_t)n * n, sizeof(*t->flows));
	t->ends = calloc((size_t)n * n, sizeof(*t->ends));
	t->memory = calloc(n, sizeof(struct rma_node *));
	if (!t->nodes || !t->any || !t->flows || !t->ends || !t->memory)
		abort();
	for (i = 0; i < n; i++)
		t->nodes[i] = nodes[i];
	for (i = 0; i < n; i++) {
		for (j = i + 1; j < n; j++) {
			if (sim_chance(&t->rng, 0.5))
				connect_pair(t, nodes[i], nodes[j]);
			else
				connect_pair(t, nodes[j], nodes[i]);
		}
		if (conf->loopback) {
			add_end(t, nodes[i], nodes[i], 0);
			add_flow(t, nodes[i], nodes[i]);
		}
	}
	make_any_boxes(t);
	make_side_traffic(t);
	return t;
}

/* ---- run ------------------------------------------------------------------------------------ */

static void connect_step(struct traffic *t)
{
	unsigned int i;

	for (i = 0; i < t->num_ends; i++)
		if (!t->ends[i].ep && !t->ends[i].closing &&
		    sim_now(t->sim) >= t->ends[i].create_at)
			connect_end(&t->ends[i]);
}

static bool side_finished(const struct traffic *t)
{
	unsigned int i;

	for (i = 0; i < t->num_flows; i++)
		if (t->flows[i].am && !am_finished(t->flows[i].am))
			return false;
	for (i = 0; i < t->num_ends; i++)
		if (t->ends[i].rma && !rma_finished(t->ends[i].rma))
			return false;
	return true;
}

static bool all_received(struct traffic *t)
{
	unsigned int i;

	for (i = 0; i < t->num_flows; i++)
		if (!flow_sent(&t->flows[i]) || !inbox_finished(&t->flows[i].in))
			return false;
	for (i = 0; i < t->num_nodes; i++)
		if (!inbox_finished(&t->any[i]))
			return false;
	return side_finished(t);
}

static bool transfer_step(void *arg)
{
	struct traffic *t = arg;
	unsigned int i;

	connect_step(t);
	for (i = 0; i < t->num_flows; i++) {
		flow_send_step(&t->flows[i]);
		inbox_step(&t->flows[i].in);
		if (t->flows[i].am)
			am_step(t->flows[i].am);
	}
	for (i = 0; i < t->num_ends; i++)
		if (t->ends[i].rma)
			rma_step(t->ends[i].rma);
	for (i = 0; i < t->num_nodes; i++)
		inbox_step(&t->any[i]);
	return t->error[0] || all_received(t);
}

static bool close_step(void *arg)
{
	struct traffic *t = arg;
	unsigned int i;
	bool all = true;

	for (i = 0; i < t->num_ends; i++) {
		/* Some close a little later than others. */
		if (!t->ends[i].closing && sim_chance(&t->rng, 0.3))
			close_end(&t->ends[i]);
		all &= t->ends[i].closed;
	}
	for (i = 0; i < t->num_nodes; i++)
		all &= !t->memory[i] || rma_node_release(t->memory[i]);
	return t->error[0] || all;
}

/* What the library says about operations that do not end. */
static void print_flow(const struct flow *f)
{
	char text[200];
	unsigned int i;

	for (i = 0; i < f->messages; i++) {
		if (!f->tx[i])
			continue;
		text[0] = '\0';
		if (f->tx[i]->req)
			weft_request_query(f->tx[i]->req, text, sizeof(text));
		fprintf(stderr,
			"  flow %u message %u of %zu bytes, tag %llx, sync %d, got by receive %d: "
			"%s\n",
			f->id, i, message_size(f, i), (unsigned long long)message_tag(f, i),
			f->tx[i]->sync, (int)f->order[i] - 1, text);
	}
	for (i = 0; i < f->in.num_rx; i++) {
		text[0] = '\0';
		if (f->in.rx[i]->req)
			weft_request_query(f->in.rx[i]->req, text, sizeof(text));
		if (f->in.rx[i]->buf)
			fprintf(stderr, "  flow %u receive %u tag %llx mask %llx, %zu bytes: %s\n",
				f->id, i, (unsigned long long)f->in.rx[i]->tag,
				(unsigned long long)f->in.rx[i]->mask, f->in.rx[i]->cap, text);
	}
}

static void stuck(struct traffic *t)
{
	char words[256] = "";
	size_t at = 0;
	unsigned int i, n = 0;

	for (i = 0; i < t->num_flows; i++) {
		const struct flow *f = &t->flows[i];

		if (flow_sent(f) && inbox_finished(&t->flows[i].in))
			continue;
		print_flow(f);
		if (n++ < 3)
			at += (size_t)snprintf(
				words + at, sizeof(words) - at,
				" [flow %u: sent %u/%u, under way %u, received %u/%u, posted %u]",
				f->id, f->next, f->messages, f->under_way, f->in.done,
				f->in.messages, f->in.outstanding);
	}
	for (i = 0; i < t->num_nodes; i++)
		if (!inbox_finished(&t->any[i]) && n++ < 4)
			at += (size_t)snprintf(words + at, sizeof(words) - at, " [any %u: %u/%u]",
					       i, t->any[i].done, t->any[i].messages);
	if (!side_finished(t))
		snprintf(words + at, sizeof(words) - at, " [active messages or remote memory]");
	traffic_fail(t, "not finished in time:%s", words);
}

const char *traffic_run(struct traffic *t, uint64_t max_ns)
{
	unsigned int i;

	if (!sim_run(t->sim, max_ns, transfer_step, t))
		stuck(t);
	for (i = 0; i < t->num_flows && !t->error[0]; i++)
		inbox_check(&t->flows[i].in);
	for (i = 0; i < t->num_nodes && !t->error[0]; i++) {
		inbox_check(&t->any[i]);
		if (t->memory[i])
			rma_node_check(t->memory[i]);
	}
	t->closing = true;
	if (!t->error[0] && !sim_run(t->sim, max_ns, close_step, t))
		traffic_fail(t, "endpoints are not closed in time");
	return t->error[0] ? t->error : NULL;
}

void traffic_destroy(struct traffic *t)
{
	unsigned int i;

	if (!t)
		return;
	for (i = 0; i < t->num_flows; i++) {
		inbox_free(&t->flows[i].in);
		free(t->flows[i].order);
		free(t->flows[i].tx_done);
		free(t->flows[i].gone);
		am_free(t->flows[i].am);
		free(t->flows[i].tx);
	}
	for (i = 0; i < t->num_nodes; i++) {
		inbox_free(&t->any[i]);
		rma_node_free(t->memory[i]);
	}
	for (i = 0; i < t->num_ends; i++)
		rma_end_free(t->ends[i].rma);
	free(t->memory);
	free(t->flows);
	free(t->any);
	free(t->ends);
	free(t->nodes);
	free(t);
}

uint64_t traffic_done(const struct traffic *t)
{
	return t->done;
}

uint64_t traffic_bytes(const struct traffic *t)
{
	return t->bytes;
}

uint64_t traffic_withdrawn(const struct traffic *t)
{
	return t->withdrawn;
}
