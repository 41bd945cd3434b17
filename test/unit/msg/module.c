/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A new operation is a module, a line in the table of modules and one for each of its messages
 * (msg/state.h): here it is a sum that the peer computes, with a request, a question, an answer,
 * a queue for when lanes have no room, and nothing in lib/ that knows of it.
 */

#include "dispatch.h"
#include "mock/msg_util.h"

#define ID_SUM_REQ 30
#define ID_ANSWER 31

/* ------------------------------------------------------------------ the module */

struct wire_sum_req {
	struct weft_wire_ref req;
	weft_le64 a, b;
} __attribute__((packed));

struct wire_answer {
	struct weft_wire_ref req;
	weft_le64 sum;
} __attribute__((packed));

struct sum_ep {
	struct weft_requests pending;
};

struct sum_req {
	uint64_t a, b, *result;
};

static struct {
	int workers, eps, closed;
} seen;

static const struct weft_module sum_module;
static const struct weft_request_ops sum_ops;

static struct sum_ep *sum_of(const struct weft_msg_ep *me)
{
	return *weft_module_own((struct weft_msg_ep *)(uintptr_t)me, &sum_module);
}

static int worker_init(struct weft_msg_worker *mw)
{
	seen.workers++;
	return 0;
}

static void worker_fini(struct weft_msg_worker *mw)
{
	seen.workers--;
}

static int ep_init(struct weft_msg_ep *me)
{
	void **own = weft_module_own(me, &sum_module);
	struct sum_ep *s = own ? malloc(sizeof(*s)) : NULL;

	if (!s)
		return -ENOMEM;
	TAILQ_INIT(&s->pending);
	*own = s;
	seen.eps++;
	return 0;
}

static void ep_fini(struct weft_msg_ep *me)
{
	free(sum_of(me));
	seen.eps--;
}

static void closing(struct weft_msg_ep *me)
{
	seen.closed++;
}

static void failed(struct weft_msg_ep *me)
{
	TAILQ_INIT(&sum_of(me)->pending);
}

static int send_sum_req(struct weft_request *req)
{
	const struct sum_req *s = (const void *)req->send.own;
	struct wire_sum_req req_msg = {weft_request_ref(req), weft_put64(s->a), weft_put64(s->b)};

	if (weft_tx_envelope_any(req->me, ID_SUM_REQ, &req_msg, sizeof(req_msg)))
		return -EAGAIN;
	req->flags |= WEFT_REQ_HANDED | WEFT_REQ_WAIT_ACK;
	return 0;
}

static unsigned int serve(struct weft_msg_ep *me)
{
	struct weft_request *req;
	unsigned int n = 0;

	while ((req = TAILQ_FIRST(&sum_of(me)->pending)) && send_sum_req(req) == 0) {
		TAILQ_REMOVE(&sum_of(me)->pending, req, link);
		req->flags &= ~WEFT_REQ_PENDING;
		n++;
	}
	return n;
}

static bool has_work(const struct weft_msg_ep *me)
{
	return !TAILQ_EMPTY(&sum_of(me)->pending);
}

static const struct weft_module sum_module = {
	.name = "sum",
	.worker_init = worker_init,
	.worker_fini = worker_fini,
	.ep_init = ep_init,
	.ep_fini = ep_fini,
	.serve = serve,
	.has_work = has_work,
	.fail = failed,
	.closing = closing,
};

static int cancel(struct weft_request *req)
{
	if (!(req->flags & WEFT_REQ_PENDING))
		return -EBUSY;
	TAILQ_REMOVE(&sum_of(req->me)->pending, req, link);
	req->flags = (req->flags & ~WEFT_REQ_PENDING) | WEFT_REQ_HANDED;
	req->status = -ECANCELED;
	weft_send_check(req);
	return 0;
}

static int describe(const struct weft_request *req, char *buf, size_t size)
{
	return snprintf(buf, size, "sum, %s", weft_send_state(req));
}

static const struct weft_request_ops sum_ops = {
	.release = weft_send_release,
	.cancel = cancel,
	.describe = describe,
	.check = weft_send_check,
};

/* The call of its user. */
static void op_sum(struct op *op, struct weft_ep *ep, uint64_t a, uint64_t b, uint64_t *result)
{
	struct weft_op_params params = op_params(op, NULL);
	struct weft_msg_ep *me = ep->msg;
	struct weft_request *req = weft_request_alloc(me->mw, &sum_ops, &params, true);

	assert_non_null(req);
	req->me = me;
	req->tag = 0;
	req->length = sizeof(*result);
	req->send.proto = NULL;
	req->send.mem = NULL;
	req->send.inject = NULL;
	req->send.zcopies = 0;
	req->send.op_sn = me->op_sn++;
	*(struct sum_req *)req->send.own = (struct sum_req){a, b, result};
	TAILQ_INSERT_TAIL(&me->ops, req, send.ops_link);
	if (send_sum_req(req)) {
		req->flags |= WEFT_REQ_PENDING;
		TAILQ_INSERT_TAIL(&sum_of(me)->pending, req, link);
		weft_tx_kick(me);
	}
	op->req = req;
	op->rc = WEFT_INPROGRESS;
}

static int check_sum_req(uint8_t id, const void *data, size_t length)
{
	return length == sizeof(struct wire_sum_req) ? 0 : -EBADMSG;
}

static int check_answer(uint8_t id, const void *data, size_t length)
{
	return length == sizeof(struct wire_answer) ? 0 : -EBADMSG;
}

static void recv_sum_req(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct wire_sum_req *req_msg = data;
	struct wire_answer answer = {req_msg->req,
				     weft_put64(weft_get64(req_msg->a) + weft_get64(req_msg->b))};

	weft_tx_ctl(me, ID_ANSWER, &answer, sizeof(answer));
}

static void recv_answer(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct wire_answer *answer = data;
	struct weft_request *req = weft_request_lookup(me->mw, answer->req);

	if (!req || req->ops != &sum_ops || req->me != me) {
		me->mw->count.bad_ref++;
		return;
	}
	*((struct sum_req *)req->send.own)->result = weft_get64(answer->sum);
	req->flags &= ~WEFT_REQ_WAIT_ACK;
	weft_send_check(req);
}

/* ------------------------------------------------------------------ the tables, longer by it */

static const struct weft_module *modules[WEFT_MODULES_MAX + 1];
static struct weft_handler handlers[WEFT_HANDLERS];
static struct weft_tables tables = {.modules = modules, .handlers = handlers};

static void start(struct pair *p, bool with_it)
{
	unsigned int n = 0;

	memset(&seen, 0, sizeof(seen));
	tables.protos = weft_tables.protos;
	memcpy(handlers, weft_tables.handlers, sizeof(handlers));
	for (; weft_tables.modules[n]; n++)
		modules[n] = weft_tables.modules[n];
	assert_in_range(n, 1, WEFT_MODULES_MAX - 1);
	modules[n] = &sum_module;
	handlers[ID_SUM_REQ] =
		(struct weft_handler){sizeof(struct wire_sum_req), check_sum_req, recv_sum_req};
	handlers[ID_ANSWER] =
		(struct weft_handler){sizeof(struct wire_answer), check_answer, recv_answer};
	pair_defaults(p);
	if (with_it)
		p->ctx.tables = &tables;
	pair_open(p, 2, NULL);
}

static void finish(struct pair *p)
{
	pair_close(p);
	assert_int_equal(seen.workers, 0);
	assert_int_equal(seen.eps, 0);
}

/* ------------------------------------------------------------------ tests */

static void it_requests_and_is_answered_beside_other_messages(void **state)
{
	uint8_t from[3000], to[3000];
	uint64_t sum = 0;
	struct op op, s, r;
	char text[128];
	struct pair p;

	(void)state;
	start(&p, true);
	assert_int_equal(seen.workers, 2);
	assert_int_equal(seen.eps, 2);
	pattern_fill(1, 0, from, sizeof(from));
	op_recv(&r, &p.w[1], to, sizeof(to), 4, FULL);
	op_send(&s, &p.ep[0], from, sizeof(from), 4);
	op_sum(&op, &p.ep[0], 40, 2, &sum);
	weft_request_query(op.req, text, sizeof(text));
	assert_string_equal(text, "sum, waiting for the receiver");
	assert_int_equal(weft_request_cancel(op.req), -EBUSY);
	pair_run(&p);
	op_end(&op, 0);
	assert_int_equal(op.c.length, sizeof(sum));
	assert_int_equal(sum, 42);
	op_end(&s, 0);
	op_end_recv(&r, to, sizeof(to), 4, 1);
	pair_check_empty(&p);
	finish(&p);
}

static void flush_done(void *arg, int status)
{
	*(int *)arg = status;
}

static void it_waits_for_room_and_a_flush_for_it(void **state)
{
	uint64_t sum = 0, none = 7;
	int flushed = 99;
	struct op op, gone;
	char text[128];
	struct pair p;

	(void)state;
	start(&p, true);
	pair_room(&p, 0, 0);
	op_sum(&op, &p.ep[0], 1, 2, &sum);
	op_sum(&gone, &p.ep[0], 3, 4, &none);
	weft_request_query(op.req, text, sizeof(text));
	assert_string_equal(text, "sum, queued");
	assert_int_equal(weft_request_cancel(gone.req), 0);
	op_end(&gone, -ECANCELED);
	assert_int_equal(gone.c.length, 0);
	assert_int_equal(weft_msg_ep_flush(&p.ep[0], flush_done, &flushed), 0);
	pair_run(&p);
	assert_int_equal(flushed, 99);
	assert_int_equal(op.calls, 0);
	pair_room(&p, 0, -1);
	pair_run(&p);
	op_end(&op, 0);
	assert_int_equal(sum, 3);
	assert_int_equal(none, 7);
	for (unsigned int i = 0; i < 2; i++)
		pair_flushed(&p.lane_ep[0][i], 0);
	assert_int_equal(flushed, 0);
	finish(&p);
}

static void its_requests_end_with_the_endpoint(void **state)
{
	uint64_t sum = 0;
	struct op sent, waiting;
	struct pair p;

	(void)state;
	start(&p, true);
	op_sum(&sent, &p.ep[0], 1, 2, &sum);
	pair_room(&p, 0, 0);
	op_sum(&waiting, &p.ep[0], 1, 2, &sum);
	pair_fail(&p, 0, -ECONNRESET);
	op_end(&sent, -ECONNRESET);
	op_end(&waiting, -ECONNRESET);
	assert_int_equal(sum, 0);
	/* They are no sends: no latency is counted. */
	for (unsigned int i = 0; i < WEFT_LATENCY_SIZES; i++)
		for (unsigned int k = 0; k < WEFT_LATENCY_STEPS; k++)
			assert_int_equal(p.ep[0].msg->mw->stalls.latency[i][k], 0);
	finish(&p);
}

static void it_is_notified_of_the_close(void **state)
{
	struct pair p;
	int flushed = 99;

	(void)state;
	start(&p, true);
	p.ep[0].state = WEFT_EP_CLOSING;
	weft_msg_ep_flush(&p.ep[0], flush_done, &flushed);
	weft_msg_ep_flush(&p.ep[0], flush_done, &flushed);
	assert_int_equal(seen.closed, 1);
	finish(&p);
}

static void bad(const void *data, size_t length, uint8_t id, bool with_it)
{
	struct pair p;

	start(&p, with_it);
	weft_msg_recv(&p.ep[1], 0, id, data, length);
	assert_int_equal(p.fail_status[1], -EPROTO);
	assert_int_equal(p.w[1].msg->count.malformed, 1);
	finish(&p);
}

static void its_own_check_is_called_and_ids_without_a_handler_are_malformed(void **state)
{
	struct wire_answer answer = {.sum = weft_put64(1)};
	struct wire_sum_req req_msg = {.a = weft_put64(1)};
	struct pair p;

	(void)state;
	bad(&req_msg, sizeof(req_msg) - 1, ID_SUM_REQ, true);
	bad(&answer, sizeof(answer) - 1, ID_ANSWER, true);
	bad(&req_msg, sizeof(req_msg), ID_SUM_REQ, false);
	bad(&req_msg, sizeof(req_msg), WEFT_HANDLERS + ID_SUM_REQ, true);
	bad(&req_msg, sizeof(req_msg), 0, true);
	/* An answer without a request is counted. */
	start(&p, true);
	weft_msg_recv(&p.ep[1], 0, ID_ANSWER, &answer, sizeof(answer));
	assert_int_equal(p.fail_status[1], 0);
	assert_int_equal(p.w[1].msg->count.bad_ref, 1);
	finish(&p);
}

static void more_modules_than_have_room_are_refused(void **state)
{
	const struct weft_module *many[WEFT_MODULES_MAX + 2] = {NULL};
	struct weft_tables t = weft_tables;
	struct weft_worker w;
	struct pair p;

	(void)state;
	start(&p, true);
	for (unsigned int i = 0; i <= WEFT_MODULES_MAX; i++)
		many[i] = modules[0];
	t.modules = many;
	w = p.w[0];
	p.ctx.tables = &t;
	assert_int_equal(weft_msg_worker_init(&w), -EINVAL);
	p.ctx.tables = &tables;
	finish(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_requests_and_is_answered_beside_other_messages),
		cmocka_unit_test(it_waits_for_room_and_a_flush_for_it),
		cmocka_unit_test(its_requests_end_with_the_endpoint),
		cmocka_unit_test(it_is_notified_of_the_close),
		cmocka_unit_test(more_modules_than_have_room_are_refused),
		cmocka_unit_test(its_own_check_is_called_and_ids_without_a_handler_are_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
