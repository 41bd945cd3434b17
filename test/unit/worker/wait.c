/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting: what comes between the last look and the sleep is never lost, whenever it comes. Lanes
 * are mock lanes, which wake their owner only while they are armed.
 */

#include <poll.h>
#include <time.h>

#include "mock/conn_util.h"

#define WAITS(f) cmocka_unit_test_setup_teardown(f, wait_setup, wait_teardown)

static struct weft_context *ctx;
static struct weft_worker *a, *b;
static struct weft_ep *ep;

static int wait_setup(void **state)
{
	ep = NULL;
	return conn_setup(state);
}

static int wait_teardown(void **state)
{
	mock_on_arm(NULL, NULL);
	weft_worker_destroy(a);
	weft_worker_destroy(b);
	weft_context_destroy(ctx);
	return conn_teardown(state);
}

/* a and b, connected, with nothing under way. */
static void open_pair(const char *lanes)
{
	ctx = mock_context("LOG_FILE=/dev/null", "WAIT_SPIN=0s", NULL);
	a = mock_worker(ctx, lanes);
	b = mock_worker(ctx, lanes);
	ep = mock_connect(a, b);
	conn_message(ep, b, 100, 1);
	mock_run(100, MS, a, b, NULL);
}

static bool readable(struct weft_worker *w, int timeout_ms)
{
	struct pollfd p = {.fd = weft_worker_get_fd(w), .events = POLLIN};

	assert_true(p.fd >= 0);
	return poll(&p, 1, timeout_ms) == 1;
}

/* As an application does it. */
static void arm(struct weft_worker *w)
{
	int rc, tries = 0;

	while ((rc = weft_worker_arm(w)) == -EBUSY) {
		weft_worker_progress(w);
		assert_true(++tries < 100);
	}
	assert_int_equal(rc, 0);
}

static void send_one(struct weft_ep *from)
{
	static const char text[] = "hello";

	assert_int_equal(weft_tag_send(from, text, sizeof(text), 7, NULL, NULL), 0);
}

static unsigned int received(struct weft_worker *w)
{
	struct weft_completion c = {.size = sizeof(c)};
	char text[16];
	unsigned int n = 0;

	while (weft_tag_probe(w, NULL, 7, UINT64_MAX, NULL, NULL, &c) == 0) {
		assert_int_equal(
			weft_tag_recv(w, NULL, text, sizeof(text), 7, UINT64_MAX, NULL, NULL), 0);
		n++;
	}
	return n;
}

/* ------------------------------------------------------------------ arm, fd */

/*
 * @behaviour U75: wake-up: arm reports busy while events wait, a signal wakes, two count as one,
 * nothing is lost between arm and sleep
 */
static void arm_is_busy_while_something_waits(void **state)
{
	(void)state;
	open_pair("mock:0,wakes");
	arm(b);
	assert_false(readable(b, 0));
	weft_worker_progress(b);
	send_one(ep);
	assert_int_equal(weft_worker_arm(b), -EBUSY);
	assert_int_equal(weft_worker_arm(b), -EBUSY);
	assert_true(weft_worker_progress(b) > 0);
	assert_int_equal(received(b), 1);
	arm(b);
}

/* @behaviour T37 */
static void what_comes_makes_the_descriptor_readable(void **state)
{
	(void)state;
	open_pair("mock:0,wakes");
	arm(b);
	assert_false(readable(b, 0));
	send_one(ep);
	assert_true(readable(b, 0));
	assert_true(readable(b, 0)); /* until it has been taken */
	assert_true(weft_worker_progress(b) > 0);
	assert_int_equal(received(b), 1);
	arm(b);
	assert_false(readable(b, 0));
}

/* An application that arms twice, as one whose poll() was for something else. */
static void arming_again_is_allowed(void **state)
{
	(void)state;
	open_pair("mock:0,wakes");
	arm(b);
	arm(b);
	send_one(ep);
	assert_true(readable(b, 0));
}

/* ------------------------------------------------------------------ the worst moment */

struct worst {
	struct weft_lane_iface *iface;
	enum mock_arm_moment moment;
	unsigned int sent;
};

static void send_then(struct weft_lane_iface *iface, enum mock_arm_moment moment, void *arg)
{
	struct worst *w = arg;

	if (iface != w->iface || moment != w->moment || w->sent > 0)
		return;
	w->sent++;
	send_one(ep);
}

/* At each moment of the arming of either of two lanes: arm() says so, or the descriptor does. */
/*
 * @behaviour T37: a wait misses no event at any moment, by descriptor and by call
 * @behaviour U75
 */
static void nothing_is_lost_at_any_moment(void **state)
{
	struct worst w;
	unsigned int i, m;
	int rc;

	(void)state;
	open_pair("mock:0,wakes,net=1;mock:1,wakes,net=2");
	for (i = 0; i < 2; i++) {
		for (m = MOCK_ARM_BEGINS; m <= MOCK_ARM_ENDS; m++) {
			arm(b);
			weft_worker_progress(b);
			w = (struct worst){mock_iface(b, i), (enum mock_arm_moment)m, 0};
			mock_on_arm(send_then, &w);
			rc = weft_worker_arm(b);
			mock_on_arm(NULL, NULL);
			assert_int_equal(w.sent, 1);
			assert_true(rc == -EBUSY || (rc == 0 && readable(b, 0)));
			weft_worker_progress(b);
			assert_int_equal(received(b), 1);
		}
	}
}

/* And weft_worker_wait() comes back, at whichever moment. It would hang else. */
/* @behaviour U75, T37 */
static void wait_sees_what_comes_at_any_moment(void **state)
{
	struct worst w;
	unsigned int i, m;

	(void)state;
	open_pair("mock:0,wakes,net=1;mock:1,wakes,net=2");
	for (i = 0; i < 2; i++) {
		for (m = MOCK_ARM_BEGINS; m <= MOCK_ARM_ENDS; m++) {
			w = (struct worst){mock_iface(b, i), (enum mock_arm_moment)m, 0};
			mock_on_arm(send_then, &w);
			while (received(b) == 0)
				assert_true(weft_worker_wait(b, -1) >= 0);
			mock_on_arm(NULL, NULL);
			assert_int_equal(w.sent, 1);
		}
	}
}

static void signal_then(struct weft_lane_iface *iface, enum mock_arm_moment moment, void *arg)
{
	(void)arg;
	if (moment == MOCK_ARM_ENDS)
		weft_worker_signal((struct weft_worker *)iface->user);
}

static void a_signal_while_arming_is_not_lost(void **state)
{
	(void)state;
	open_pair("mock:0,wakes");
	mock_on_arm(signal_then, NULL);
	assert_int_equal(weft_worker_wait(b, -1), 0);
	mock_on_arm(NULL, NULL);
}

/* ------------------------------------------------------------------ signals */

/* @behaviour U75 */
static void a_signal_before_the_wait_ends_it(void **state)
{
	(void)state;
	open_pair("mock:0,wakes");
	weft_worker_signal(b); /* before there is a descriptor */
	weft_worker_signal(b);
	assert_int_equal(weft_worker_wait(b, -1), 0);
	weft_worker_signal(b);
	weft_worker_signal(b);
	assert_int_equal(weft_worker_wait(b, -1), 0);
	/* Two counted as one. */
	arm(b);
	assert_false(readable(b, 0));
	weft_worker_signal(b);
	weft_worker_signal(b);
	assert_true(readable(b, 0));
	assert_int_equal(weft_worker_arm(b), -EBUSY);
	assert_int_equal(weft_worker_arm(b), 0);
	assert_false(readable(b, 0));
}

/* ------------------------------------------------------------------ time */

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Mock lanes' time stands still, so what is due is due at a time of theirs: 20 ms from now. */
/* @behaviour T37 */
static void what_is_due_makes_the_descriptor_readable(void **state)
{
	double begin;

	(void)state;
	ctx = mock_context("LOG_FILE=/dev/null", "CONNECT_TIMEOUT=20ms", NULL);
	a = mock_worker(ctx, "mock:0,wakes");
	b = mock_worker(ctx, "mock:0,wakes");
	mock_refuse(NULL, NULL, 0, NULL);
	ep = mock_connect(a, b);
	begin = seconds();
	arm(a);
	assert_true(readable(a, 60000));
	assert_true(seconds() - begin > 0.0005);
	mock_now += 20 * MS;
	assert_true(weft_worker_progress(a) > 0);
	mock_allow_all();
}

/* Sleeps where a lane can't wake begin short, double, and never go beyond the setting. */
/* @behaviour T37 */
static void lanes_that_cannot_wake_are_looked_at(void **state)
{
	struct weft_iface_info info = WEFT_INIT(struct weft_iface_info);
	int i;

	(void)state;
	open_pair("mock:0");
	assert_int_equal(weft_worker_query_iface(b, 0, &info), 0);
	assert_int_equal(info.wakes, 0);
	for (i = 0; i < 20; i++) {
		arm(b);
		assert_true(readable(b, 60000));
		mock_now += 60 * MS;
		weft_worker_progress(b);
	}
	assert_int_equal(weft_config_modify(ctx->config, "WAIT_SLEEP", "50ms"), 0);
	for (i = 0; i < 20; i++) {
		arm(b);
		assert_true(readable(b, 60000));
		mock_now += 60 * MS;
		weft_worker_progress(b);
	}
	/* Now it sleeps for 50 ms; once something has come, for 50 us. */
	arm(b);
	assert_false(readable(b, 5));
	assert_true(readable(b, 60000));
	send_one(ep);
	while (received(b) == 0)
		assert_true(weft_worker_wait(b, -1) >= 0);
}

/* @behaviour T37 */
static void an_interface_reports_whether_it_wakes(void **state)
{
	struct weft_iface_info info = WEFT_INIT(struct weft_iface_info);

	(void)state;
	open_pair("mock:0,wakes");
	assert_int_equal(weft_worker_query_iface(b, 0, &info), 0);
	assert_int_equal(info.wakes, 1);
}

/* ------------------------------------------------------------------ refusals */

static int in_callback(struct weft_worker *w, const struct weft_am_msg *msg, void *arg)
{
	int *rc = arg;

	(void)msg;
	rc[0] = weft_worker_wait(w, -1);
	rc[1] = weft_worker_arm(w);
	return 0;
}

static void callbacks_may_not_wait(void **state)
{
	struct weft_am_send_params am = WEFT_INIT(struct weft_am_send_params, .id = 3);
	int rc[2] = {0};

	(void)state;
	mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_AM;
	open_pair("mock:0,wakes");
	assert_int_equal(weft_worker_set_am_handler(b, 3, in_callback, rc, 0), 0);
	assert_int_equal(weft_am_send(ep, &am, "x", 1, NULL, NULL), 0);
	mock_run(10, MS, a, b, NULL);
	assert_int_equal(rc[0], -EDEADLK);
	assert_int_equal(rc[1], -EDEADLK);
	assert_int_equal(weft_worker_wait(NULL, -1), -EINVAL);
	assert_int_equal(weft_worker_arm(NULL), -EINVAL);
	assert_int_equal(weft_worker_get_fd(NULL), -EINVAL);
	assert_int_equal(weft_request_test(NULL, NULL), -EINVAL);
	assert_int_equal(weft_request_cancel(NULL), -EINVAL);
	assert_int_equal(weft_ep_force_proto(NULL, NULL), -EINVAL);
	weft_worker_signal(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WAITS(arm_is_busy_while_something_waits),
		WAITS(what_comes_makes_the_descriptor_readable),
		WAITS(arming_again_is_allowed),
		WAITS(nothing_is_lost_at_any_moment),
		WAITS(wait_sees_what_comes_at_any_moment),
		WAITS(a_signal_while_arming_is_not_lost),
		WAITS(a_signal_before_the_wait_ends_it),
		WAITS(what_is_due_makes_the_descriptor_readable),
		WAITS(lanes_that_cannot_wake_are_looked_at),
		WAITS(an_interface_reports_whether_it_wakes),
		WAITS(callbacks_may_not_wait),
	};

	return cmocka_run_group_tests_name("wait", tests, NULL, NULL);
}
