/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>
#include <string.h>

#include "scene.h"

/* One at a time: a case's next scene frees the last one, after its simulation. */
static struct scene *current;

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

static void scene_free(struct scene *s)
{
	unsigned int i;

	if (!s)
		return;
	for (i = 0; i < s->num_ops; i++) {
		free(s->ops[i]->buf);
		free(s->ops[i]);
	}
	for (i = 0; i < s->num_eps; i++)
		free(s->eps[i]);
	free(s->ops);
	free(s->eps);
	free(s);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static void make_ports(struct scene *s, unsigned int node)
{
	static const struct sim_link usual = {.rate = 10 * SIM_GBIT, .delay_ns = 5000};
	static const struct sim_link nothing;
	struct sim_port_params p = s->conf.port;
	unsigned int i, lanes = s->conf.lanes[node] ? s->conf.lanes[node] : 1;
	char name[16];

	for (i = 0; i < lanes; i++) {
		snprintf(name, sizeof(name), "%c%u", 'a' + node, i);
		p.name = name;
		p.net = s->conf.one_net ? 0 : i;
		/* 10.net.0.0/24; on one net all are neighbours. */
		p.ip = 0x0a000000 | p.net << 16 | (node * SCENE_LANES + i + 1);
		p.prefix = 24;
		p.up = memcmp(&s->conf.up, &nothing, sizeof(nothing)) ? s->conf.up : usual;
		p.down = s->conf.port.down;
		s->port[node][i] = sim_port_create(s->sim, &p);
	}
}

static void ep_error(struct weft_ep *ep, int status, const char *why, void *arg)
{
	struct scene_ep *e = arg;

	(void)ep;
	e->errors++;
	e->status = status;
	e->error_at = sim_now(e->s->sim);
	snprintf(e->why, sizeof(e->why), "%s", why);
}

static struct scene_ep *new_ep(struct scene *s)
{
	struct scene_ep *e = need(calloc(1, sizeof(*e)));

	s->eps = need(realloc(s->eps, (s->num_eps + 1) * sizeof(*s->eps)));
	s->eps[s->num_eps++] = e;
	e->s = s;
	return e;
}

struct accept_arg {
	struct scene *s;
	unsigned int node;
};

static struct accept_arg accept_args[SCENE_NODES];

static void accepted(struct weft_worker *worker, struct weft_ep *ep, uint64_t remote_id,
		     const char *remote_name, void *arg)
{
	struct accept_arg *a = arg;

	(void)worker;
	(void)remote_id;
	(void)remote_name;
	a->s->accepted[a->node] = new_ep(a->s);
	a->s->accepted[a->node]->ep = ep;
}

struct sim_node *scene_start(struct scene *s, unsigned int i)
{
	char name[2] = {(char)('a' + i), 0};
	struct sim_node_params p = {.name = name,
				    .ports = s->port[i],
				    .num_ports = s->conf.lanes[i] ? s->conf.lanes[i] : 1};

	p.job_key = s->conf.job_key;
	p.wrap = s->conf.wrap;
	p.config = s->conf.node_config[i] ? s->conf.node_config[i] : s->conf.config;
	if (s->accept) {
		accept_args[i] = (struct accept_arg){s, i};
		p.accept_cb = accepted;
		p.accept_arg = &accept_args[i];
	}
	s->node[i] = sim_node_create(s->sim, &p);
	return s->node[i];
}

struct scene *scene_open(struct sim_case *c, const struct scene_conf *conf)
{
	struct scene *s = need(calloc(1, sizeof(*s)));
	unsigned int i;

	/* First the old simulation ends: its callbacks still write to the old scene. */
	s->sim = case_sim(c);
	scene_free(current);
	current = s;
	if (conf)
		s->conf = *conf;
	if (!s->conf.nodes)
		s->conf.nodes = 2;
	for (i = 0; i < s->conf.nodes; i++)
		make_ports(s, i);
	for (i = 0; i < s->conf.nodes && !s->conf.lazy; i++)
		scene_start(s, i);
	return s;
}

struct weft_worker *scene_worker(const struct scene *s, unsigned int i)
{
	return sim_worker(s->node[i]);
}

void scene_run(struct scene *s, uint64_t ns)
{
	sim_run(s->sim, ns, NULL, NULL);
}

/* ---- endpoints ------------------------------------------------------------------------------ */

struct scene_ep *scene_connect(struct scene *s, unsigned int from, unsigned int to)
{
	struct scene_ep *e = new_ep(s);
	struct weft_ep_params p =
		WEFT_INIT(struct weft_ep_params, .err_cb = ep_error, .err_arg = e, .user_data = e);
	int ret = sim_ep_create(s->node[from], s->node[to], &p, &e->ep);

	if (ret)
		fail_msg("weft_ep_create: %s", weft_strerror(ret));
	return e;
}

static int ep_status(struct scene_ep *e)
{
	struct weft_ep_attr a = {.size = sizeof(a)};

	assert_int_equal(weft_ep_query(e->ep, &a), 0);
	return a.status;
}

static bool settled(void *arg)
{
	return ep_status(arg) != WEFT_INPROGRESS;
}

int scene_wait_up(struct scene_ep *e, uint64_t max_ns)
{
	sim_run(e->s->sim, max_ns, settled, e);
	return ep_status(e);
}

struct scene_ep *scene_up(struct scene *s, unsigned int from, unsigned int to)
{
	struct scene_ep *e = scene_connect(s, from, to);
	int ret = scene_wait_up(e, SIM_S);

	if (ret)
		fail_msg("endpoint is not up: %s; %s", weft_strerror(ret), e->why);
	return e;
}

struct weft_lane_info scene_lane(struct scene_ep *e, unsigned int i)
{
	struct weft_lane_info info = {.size = sizeof(info)};

	if (weft_ep_query_lane(e->ep, i, &info))
		memset(&info, 0, sizeof(info));
	return info;
}

unsigned int scene_lanes_up(struct scene_ep *e)
{
	struct weft_ep_attr a = {.size = sizeof(a)};
	unsigned int i, n = 0;

	assert_int_equal(weft_ep_query(e->ep, &a), 0);
	for (i = 0; i < a.num_lanes; i++)
		n += scene_lane(e, i).state == WEFT_LANE_STATE_UP;
	return n;
}

/* ---- operations ----------------------------------------------------------------------------- */

static void op_done(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct op *op = arg;

	op->done = true;
	op->completions++;
	op->c = *c;
	op->done_at = sim_now(op->s->sim);
	weft_request_free(req);
	op->req = NULL;
}

static struct op *new_op(struct scene *s, size_t cap)
{
	struct op *op = need(calloc(1, sizeof(*op)));

	s->ops = need(realloc(s->ops, (s->num_ops + 1) * sizeof(*s->ops)));
	s->ops[s->num_ops++] = op;
	op->s = s;
	op->cap = cap;
	op->buf = need(malloc(cap + 16));
	memset(op->buf, 0xa5, cap + 16);
	op->c.size = sizeof(op->c);
	return op;
}

static struct weft_op_params params(struct op *op)
{
	return WEFT_INIT(struct weft_op_params, .cb = op_done, .cb_arg = op, .completion = &op->c);
}

static struct op *started(struct op *op, int ret)
{
	if (ret == WEFT_INPROGRESS)
		return op;
	op->done = true;
	op->completions++;
	op->c.status = ret;
	op->done_at = sim_now(op->s->sim);
	return op;
}

struct op *op_send(struct scene_ep *e, uint64_t id, size_t size, uint64_t tag)
{
	struct op *op = new_op(e->s, size);
	struct weft_op_params p = params(op);

	pattern_fill(id, 0, op->buf, size);
	return started(op, weft_tag_send(e->ep, op->buf, size, tag, &p, &op->req));
}

struct op *op_send_sync(struct scene_ep *e, uint64_t id, size_t size, uint64_t tag)
{
	struct op *op = new_op(e->s, size);
	struct weft_op_params p = params(op);

	pattern_fill(id, 0, op->buf, size);
	return started(op, weft_tag_send_sync(e->ep, op->buf, size, tag, &p, &op->req));
}

struct op *op_recv_mask(struct scene *s, unsigned int node, struct weft_ep *source, size_t cap,
			uint64_t tag, uint64_t mask)
{
	struct op *op = new_op(s, cap);
	struct weft_op_params p = params(op);

	return started(op, weft_tag_recv(scene_worker(s, node), source, op->buf, cap, tag, mask, &p,
					 &op->req));
}

struct op *op_recv(struct scene *s, unsigned int node, size_t cap, uint64_t tag)
{
	return op_recv_mask(s, node, NULL, cap, tag, WEFT_TAG_MASK_FULL);
}

struct op *op_msg_recv(struct scene *s, unsigned int node, struct weft_message *msg, size_t cap)
{
	struct op *op = new_op(s, cap);
	struct weft_op_params p = params(op);

	return started(op,
		       weft_tag_msg_recv(scene_worker(s, node), msg, op->buf, cap, &p, &op->req));
}

struct op *op_flush(struct scene_ep *e)
{
	struct op *op = new_op(e->s, 0);
	struct weft_op_params p = params(op);

	return started(op, weft_ep_flush(e->ep, &p, &op->req));
}

struct op *op_close(struct scene_ep *e, unsigned int flags)
{
	struct op *op = new_op(e->s, 0);
	struct weft_op_params p = params(op);
	struct weft_ep *ep = e->ep;

	e->ep = NULL;
	return started(op, weft_ep_close(ep, flags, &p, &op->req));
}

static bool is_done(void *arg)
{
	return ((struct op *)arg)->done;
}

bool op_wait(struct op *op, uint64_t max_ns)
{
	return op->done || sim_run(op->s->sim, max_ns, is_done, op);
}

void op_expect(struct op *op, uint64_t max_ns, int status)
{
	if (!op_wait(op, max_ns))
		fail_msg("an operation has not ended after %llu us",
			 (unsigned long long)(max_ns / SIM_US));
	if (op->c.status != status)
		fail_msg("an operation ended with: %s; not: %s", weft_strerror(op->c.status),
			 weft_strerror(status));
	if (op->completions != 1)
		fail_msg("an operation ended %u times", op->completions);
}

void op_holds(struct op *op, uint64_t id, size_t size)
{
	size_t good, i;

	assert_true(op->done);
	if (op->c.status || op->c.length != size)
		fail_msg("%zu bytes received, %s; not %zu", op->c.length,
			 weft_strerror(op->c.status), size);
	good = pattern_check(id, 0, op->buf, size);
	if (good != size)
		fail_msg("byte %zu of %zu is wrong", good, size);
	for (i = size; i < op->cap + 16; i++)
		if (op->buf[i] != 0xa5)
			fail_msg("byte %zu behind a message of %zu was written", i - size, size);
}

static void talk(struct scene *s, struct scene_ep *e, unsigned int to, uint64_t tag, size_t size)
{
	struct op *r = op_recv(s, to, size, tag), *w = op_send(e, tag, size, tag);

	op_expect(r, 2 * SIM_S, 0);
	op_expect(w, 2 * SIM_S, 0);
	op_holds(r, tag, size);
}

void scene_talk(struct scene *s, struct scene_ep *e, unsigned int to, uint64_t tag)
{
	talk(s, e, to, tag, 3000);
}

void scene_talk_long(struct scene *s, struct scene_ep *e, unsigned int to, uint64_t tag)
{
	talk(s, e, to, tag, 300000);
}

bool scene_ep_has_failed(void *ep)
{
	return ((struct scene_ep *)ep)->errors > 0;
}
