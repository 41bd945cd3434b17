/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting: which end may begin, what comes of several that begin, and the document of the
 * messages.
 */

#include "mock/conn_util.h"
#include "msg/msg.h"
#include "mock/rounds.h"

static const char two_nics[] = "mock:0;mock:1";

/* ------------------------------------------------------------------ which end connects */

/*
 * @behaviour U61: one-sided, two-sided, simultaneous, loopback, many (there is no no_loopback flag)
 */
static void one_side_connects_and_both_can_send(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	struct weft_ep *ep = mock_connect(a, b), *back;

	(void)state;
	conn_message(ep, b, 100, 1);
	back = mock_connect(b, a);
	/* It adopts what the peer made: nothing new is connected. */
	assert_int_equal(a->num_eps, 1);
	assert_int_equal(b->num_eps, 1);
	assert_int_equal(back->state, WEFT_EP_UP);
	conn_message(back, a, 100, 2);
	conn_destroy(ctx, a, b);
}

/* Both orders of the ids, with both sides connecting at once: they meet. */
/* @behaviour U61 */
static void simultaneous_connects_share_one_connection(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct weft_ep *x, *y;

	(void)state;
	x = mock_connect(a, b);
	y = mock_connect(b, a);
	mock_run(1000, MS, a, b, NULL);
	assert_int_equal(x->state, WEFT_EP_UP);
	assert_int_equal(y->state, WEFT_EP_UP);
	assert_int_equal(a->num_eps, 1);
	assert_int_equal(b->num_eps, 1);
	assert_int_equal(x->lanes_up, 3);
	assert_int_equal(y->lanes_up, 3);
	/* No connection is left that carries no lane. */
	assert_int_equal(mock_num_lane_eps(), 4);
	assert_null(x->wireup);
	assert_null(y->wireup);
	conn_message(x, b, 100000, 1);
	conn_message(y, a, 100000, 2);
	conn_destroy(ctx, a, b);
}

/* The same with messages delivered late, in any order, and lanes without room, from 300 seeds. */
/* @behaviour U61 */
static void connects_meet_in_any_order_of_events(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=60s", NULL);
	struct weft_worker *a, *b;
	struct weft_ep *x, *y;
	unsigned int seed, i;

	(void)state;
	for (seed = 1; seed <= test_rounds(300); seed++) {
		mock_seed(seed);
		mock_set_order(MOCK_RANDOM);
		mock_set_burst(1 + seed % 3);
		mock_set_eagain(NULL, seed % 5 * 150);
		a = mock_worker(ctx, two_nics);
		b = mock_worker(ctx, seed % 4 == 0 ? "mock:0" : two_nics);
		x = mock_connect(a, b);
		for (i = 0; i < seed % 7; i++)
			mock_run(1, MS, seed % 2 ? a : b, NULL);
		y = mock_connect(b, a);
		/* Where three of five sends are refused, retries take seconds. */
		for (i = 0; i < 12000; i++) {
			mock_run(1, MS, a, NULL);
			if (i % 3 != seed % 3)
				mock_run(1, MS, b, NULL);
		}
		if (x->state != WEFT_EP_UP || y->state != WEFT_EP_UP || a->num_eps != 1 ||
		    b->num_eps != 1)
			fail_msg("seed %u: states %d %d, endpoints %u %u", seed, x->state, y->state,
				 a->num_eps, b->num_eps);
		if (x->lanes_up != y->lanes_up || conn_lanes_up(x) != (seed % 4 == 0 ? 1u : 2u))
			fail_msg("seed %u: lanes %x %x", seed, x->lanes_up, y->lanes_up);
		if (mock_num_lane_eps() != 2 * conn_lanes_up(x))
			fail_msg("seed %u: %u connections for %u lanes", seed, mock_num_lane_eps(),
				 conn_lanes_up(x));
		mock_set_eagain(NULL, 0);
		weft_worker_destroy(a);
		weft_worker_destroy(b);
	}
	assert_int_equal(weft_context_destroy(ctx), 0);
}

static void several_endpoints_pair_in_the_order_of_creation(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	struct weft_ep *x[8], *y[8];
	unsigned int i;

	(void)state;
	for (i = 0; i < 8; i++) {
		x[i] = mock_connect(a, b);
		y[i] = mock_connect(b, a);
		if (i % 2)
			mock_run(3, MS, a, b, NULL);
	}
	mock_run(500, MS, a, b, NULL);
	assert_int_equal(a->num_eps, 8);
	assert_int_equal(b->num_eps, 8);
	for (i = 0; i < 8; i++) {
		assert_int_equal(x[i]->state, WEFT_EP_UP);
		assert_int_equal(x[i]->conn_sn, y[i]->conn_sn);
		assert_int_equal(weft_get32(x[i]->remote.index), y[i]->slot);
		assert_int_equal(weft_get32(y[i]->remote.index), x[i]->slot);
	}
	conn_destroy(ctx, a, b);
}

static void claiming_while_the_connection_is_being_made(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct weft_ep *x = mock_connect(a, b), *y = NULL;
	unsigned int i;

	(void)state;
	for (i = 0; i < 100 && !y; i++) {
		mock_run(1, MS, a, b, NULL);
		if (b->num_eps == 1)
			y = mock_connect(b, a);
	}
	assert_non_null(y);
	mock_run(200, MS, a, b, NULL);
	assert_int_equal(b->num_eps, 1);
	assert_int_equal(conn_counter(b, "ep.unclaimed"), 0);
	assert_int_equal(x->lanes_up, 3);
	assert_int_equal(y->lanes_up, 3);
	conn_message(x, b, 5000, 1);
	conn_message(y, a, 5000, 1);
	conn_destroy(ctx, a, b);
}

static struct weft_ep *accepted;

static void accept_cb(struct weft_worker *worker, struct weft_ep *ep, uint64_t remote_id,
		      const char *remote_name, void *arg)
{
	(void)worker;
	assert_string_equal(remote_name, "test");
	*(uint64_t *)arg = remote_id;
	accepted = ep;
}

static int failed;

static void on_failure(struct weft_ep *ep, int status, const char *why, void *arg)
{
	assert_ptr_equal(ep, accepted);
	assert_ptr_equal(arg, &failed);
	assert_true(why && *why);
	failed = status;
}

static void modify_in_accept_cb(struct weft_worker *worker, struct weft_ep *ep, uint64_t remote_id,
				const char *remote_name, void *arg)
{
	struct weft_ep_modify_params p =
		WEFT_INIT(struct weft_ep_modify_params,
			  .fields = WEFT_EP_MODIFY_F_ERR_CB | WEFT_EP_MODIFY_F_USER_DATA,
			  .err_cb = on_failure, .err_arg = &failed, .user_data = arg);

	(void)worker;
	(void)remote_id;
	(void)remote_name;
	accepted = ep;
	assert_int_equal(weft_ep_modify(ep, &p), 0);
}

static void an_accepted_endpoint_gets_a_callback_and_user_data(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker_params p = WEFT_INIT(struct weft_worker_params, .lanes = "mock:0",
						.accept_cb = modify_in_accept_cb);
	struct weft_ep_modify_params change = WEFT_INIT(struct weft_ep_modify_params);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b;
	struct weft_ep_attr attr = WEFT_INIT(struct weft_ep_attr);
	struct weft_ep *ep;
	int data;

	(void)state;
	p.accept_arg = &data;
	assert_int_equal(weft_worker_create(ctx, &p, &b), 0);
	accepted = NULL;
	failed = 0;
	ep = mock_connect(a, b);
	conn_message(ep, b, 10, 1);
	assert_int_equal(weft_ep_query(accepted, &attr), 0);
	assert_ptr_equal(attr.user_data, &data);
	change.fields = 1u << 2;
	assert_int_equal(weft_ep_modify(accepted, &change), -EINVAL);
	change.fields = 0;
	assert_int_equal(weft_ep_modify(accepted, &change), 0);
	change.fields = WEFT_EP_MODIFY_F_USER_DATA;
	change.user_data = &change;
	assert_int_equal(weft_ep_modify(accepted, &change), 0);
	assert_int_equal(failed, 0);
	assert_int_equal(conn_close(ep, b), 0);
	mock_run(10, MS, a, b, NULL);
	assert_int_equal(failed, -ECONNRESET);
	change.user_data = &failed;
	assert_int_equal(weft_ep_modify(accepted, &change), -ECONNRESET);
	assert_int_equal(weft_ep_query(accepted, &attr), 0);
	assert_ptr_equal(attr.user_data, &failed);
	assert_int_equal(weft_ep_close(accepted, 0, NULL, NULL), 0);
	conn_destroy(ctx, a, b);
}

static void must_not_run(struct weft_ep *ep, int status, const char *why, void *arg)
{
	(void)ep;
	(void)status;
	(void)why;
	(void)arg;
	fail_msg("the error callback runs although weft_ep_modify() has returned the failure");
}

static void modify_in_completion(struct weft_request *req, const struct weft_completion *c,
				 void *arg)
{
	struct weft_ep_modify_params change =
		WEFT_INIT(struct weft_ep_modify_params, .fields = WEFT_EP_MODIFY_F_ERR_CB,
			  .err_cb = must_not_run);

	(void)req;
	assert_int_equal(c->status, -ECONNRESET);
	*(int *)arg = weft_ep_modify(accepted, &change);
}

/* The operations of an endpoint that fails end before its error callback runs. */
static void a_failure_that_modify_returns_has_no_callback(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker_params p = WEFT_INIT(struct weft_worker_params, .lanes = "mock:0",
						.accept_cb = modify_in_accept_cb);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b;
	struct weft_op_params op = WEFT_INIT(struct weft_op_params, .cb = modify_in_completion);
	int returned = 0;
	struct weft_ep *ep;
	char buf[8];

	(void)state;
	assert_int_equal(weft_worker_create(ctx, &p, &b), 0);
	accepted = NULL;
	failed = 0;
	ep = mock_connect(a, b);
	conn_message(ep, b, 10, 1);
	op.cb_arg = &returned;
	assert_int_equal(weft_tag_recv(b, accepted, buf, sizeof(buf), 7, UINT64_MAX, &op, NULL),
			 WEFT_INPROGRESS);
	assert_int_equal(conn_close(ep, b), 0);
	mock_run(10, MS, a, b, NULL);
	assert_int_equal(returned, -ECONNRESET);
	assert_int_equal(failed, 0);
	assert_int_equal(weft_ep_close(accepted, 0, NULL, NULL), 0);
	conn_destroy(ctx, a, b);
}

static void accept_callback_makes_the_application_the_owner(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker_params p =
		WEFT_INIT(struct weft_worker_params, .lanes = "mock:0", .accept_cb = accept_cb);
	struct weft_worker *a = mock_worker(ctx, "mock:0"), *b;
	uint64_t id = 0;
	struct weft_ep *ep;

	(void)state;
	p.accept_arg = &id;
	assert_int_equal(weft_worker_create(ctx, &p, &b), 0);
	accepted = NULL;
	ep = mock_connect(a, b);
	conn_message(ep, b, 10, 1);
	assert_non_null(accepted);
	assert_true(id == a->id);
	conn_message(accepted, a, 10, 2);
	assert_int_equal(conn_close(ep, b), 0);
	/* It stays until its owner closes it, and says what happened. */
	mock_run(10, MS, a, b, NULL);
	assert_int_equal(b->num_eps, 1);
	assert_int_equal(weft_tag_send(accepted, "x", 1, 1, NULL, NULL), -ECONNRESET);
	assert_int_equal(weft_ep_close(accepted, 0, NULL, NULL), 0);
	assert_int_equal(b->num_eps, 0);
	conn_destroy(ctx, a, b);
}

/* @behaviour U61 */
static void loopback_is_up_at_creation(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, "mock:0");
	struct weft_ep *x = mock_connect(a, a), *y = mock_connect(a, a);
	struct weft_ep_attr attr = {.size = sizeof(attr)};

	(void)state;
	assert_int_equal(weft_ep_query(x, &attr), 0);
	assert_int_equal(attr.status, 0);
	assert_true(attr.remote_id == a->id);
	conn_message(x, a, 0, 1);
	conn_message(y, a, 100000, 2);
	conn_message(x, a, 1000000, 3);
	assert_int_equal(conn_close(x, a), 0);
	assert_int_equal(weft_ep_close(y, WEFT_EP_CLOSE_F_FORCE, NULL, NULL), 0);
	weft_worker_destroy(a);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/* @behaviour U62: messages sent before the connection is up arrive in order */
static void messages_sent_before_the_connection_arrive_in_order(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
	struct weft_worker *a = mock_worker(ctx, two_nics), *b = mock_worker(ctx, two_nics);
	struct weft_ep *ep = mock_connect(a, b);
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .completion = &c);
	static uint8_t big[20][30000];
	uint8_t in[30000];
	struct weft_request *r;
	unsigned int i;
	int rc, k;

	(void)state;
	for (i = 0; i < 20; i++) {
		memset(big[i], (int)i, sizeof(big[i]));
		assert_true(weft_tag_send(ep, big[i], i % 3 == 0 ? sizeof(big[i]) : i, 5, NULL,
					  NULL) >= 0);
	}
	for (i = 0; i < 20; i++) {
		rc = weft_tag_recv(b, NULL, in, sizeof(in), 5, WEFT_TAG_MASK_FULL, &p, &r);
		for (k = 0; rc == WEFT_INPROGRESS && k < 1000 &&
			    weft_request_test(r, &c) == WEFT_INPROGRESS;
		     k++)
			mock_run(1, MS, a, b, NULL);
		assert_int_equal(c.status, 0);
		assert_int_equal(c.length, i % 3 == 0 ? sizeof(big[i]) : i);
		assert_memory_equal(in, big[i], c.length);
		if (rc == WEFT_INPROGRESS)
			weft_request_free(r);
	}
	conn_destroy(ctx, a, b);
}

/* ------------------------------------------------------------------ the document */

struct seen {
	uint8_t type;
	size_t len;
	uint8_t data[1024];
};

static enum mock_verdict see(const struct mock_msg_view *msg, void *arg)
{
	struct seen *s = arg;

	if (msg->am_id != WEFT_WIRE_WIREUP || ((const uint8_t *)msg->data)[0] != s->type ||
	    s->len != 0)
		return MOCK_DELIVER;
	s->len = msg->length;
	memcpy(s->data, msg->data, msg->length);
	return MOCK_DELIVER;
}

/*
 * The bytes of one message in the example: hex pairs at the beginning of the lines, up to an empty
 * line.
 */
static size_t example(const char *text, const char *name, uint8_t *out)
{
	const char *p = strstr(text, name);
	unsigned int byte;
	size_t n = 0;

	assert_non_null(p);
	for (p += strlen(name); p[0] != '\n' || p[1] != '\n';) {
		p += strspn(p, " \n");
		if (strspn(p, "0123456789abcdef") == 2 && (p[2] == ' ' || p[2] == '\n') &&
		    sscanf(p, "%2x", &byte) == 1) {
			out[n++] = (uint8_t)byte;
			p += 2;
			if (p[0] == '\n' && p[1] == '\n')
				break;
		} else {
			p += strcspn(p, "\n"); /* the rest is for human readers */
		}
	}
	return n;
}

/* @behaviour Y13: the bytes in doc/wire.md are the bytes that are sent */
static void the_example_in_the_document_is_what_is_sent(void **state)
{
	static const struct {
		const char *name;
		enum weft_wireup_type type;
	} list[] = {{"\nREQ  ", WEFT_WIREUP_REQ},
		    {"\nREP  ", WEFT_WIREUP_REP},
		    {"\nACK  ", WEFT_WIREUP_ACK}};
	static const char path[] = WEFT_TEST_DATA "/../../doc/wire.md";
	static char text[262144];
	struct weft_context *ctx;
	struct weft_worker *a, *b;
	uint8_t bytes[1024];
	struct seen seen;
	size_t i, n, secret;
	FILE *f;

	(void)state;
	f = fopen(path, "r");
	if (!f)
		fail_msg("%s cannot be read", path);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	for (i = 0; i < 3; i++) {
		mock_reset();
		ctx = mock_context("CONNECT_TIMEOUT=30s", NULL);
		b = mock_worker(ctx, "mock:0");
		a = mock_worker(ctx, "mock:0");
		/* The document's, whatever else draws random numbers. */
		a->id = 0x790482def8c542c4;
		b->id = 0xd84b18274327aefb;
		seen = (struct seen){.type = (uint8_t)list[i].type};
		mock_set_filter(see, &seen);
		a->secret = 0xf352ba6607c8319e;
		b->secret = 0xd7283b44e61f905c;
		mock_connect(a, b)->secret = 0x18c27793a50e6d21;
		mock_run(50, MS, a, b, NULL);
		n = example(strstr(text, "### An example\n\nLane messages of two workers"),
			    list[i].name, bytes);
		assert_int_equal(n, seen.len);
		/* b's endpoint was made on the way: its secret is any. */
		secret = offsetof(struct weft_wire_wireup, src_secret) +
			 (list[i].type == WEFT_WIREUP_REP ? 0 : sizeof(weft_le64));
		if (list[i].type != WEFT_WIREUP_REQ)
			memcpy(seen.data + secret, bytes + secret, sizeof(weft_le64));
		assert_memory_equal(bytes, seen.data, n);
		conn_destroy(ctx, a, b);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(one_side_connects_and_both_can_send),
		CONN_TEST(simultaneous_connects_share_one_connection),
		CONN_TEST(connects_meet_in_any_order_of_events),
		CONN_TEST(several_endpoints_pair_in_the_order_of_creation),
		CONN_TEST(claiming_while_the_connection_is_being_made),
		CONN_TEST(a_failure_that_modify_returns_has_no_callback),
		CONN_TEST(accept_callback_makes_the_application_the_owner),
		CONN_TEST(an_accepted_endpoint_gets_a_callback_and_user_data),
		CONN_TEST(loopback_is_up_at_creation),
		CONN_TEST(messages_sent_before_the_connection_arrive_in_order),
		CONN_TEST(the_example_in_the_document_is_what_is_sent),
	};

	weft_log_level = WEFT_LOG_ERROR;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("wireup", tests, NULL, NULL);
}
