/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole library in virtual time: what happens to ports while they are used. Links that are lost
 * and come back, links that come late, NICs that are removed or want a reset.
 */

#include <errno.h>
#include <string.h>

#include "lane.h"
#include "scene.h"

#define QUICK "PEER_TIMEOUT=3s CONNECT_TIMEOUT=3s KEEPALIVE_INTERVAL=500ms"

/* ---- ends ----------------------------------------------------------------------------------- */

static void ends_both(struct sim_case *c, int status, const char *cause)
{
	const struct scene_conf conf = {.config = QUICK, .lazy = true};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e, *f;
	struct weft_ep_attr a = {.size = sizeof(a)};
	struct op *r, *w;
	uint64_t at;

	s->accept = true;
	scene_start(s, 0);
	scene_start(s, 1);
	sim_log_begin();
	e = scene_up(s, 0, 1);
	scene_talk_long(s, e, 1, 1);
	f = s->accepted[1];
	assert_non_null(f);
	r = op_recv(s, 1, 4000000, 2);
	w = op_send(e, 2, 4000000, 2);
	scene_run(s, 100 * SIM_US);
	assert_false(w->done);
	at = sim_now(s->sim);
	sim_port_end(s->port[0][0], status);
	/* Here at once, with the port and the cause; there when its silence has lasted. */
	assert_true(sim_run(s->sim, SIM_MS, scene_ep_has_failed, e));
	assert_true(e->error_at - at < SIM_MS);
	assert_int_equal(e->status, status);
	if (!strstr(e->why, cause) || !strstr(e->why, sim_port_name(s->port[0][0])))
		fail_msg("\"%s\" does not name the port and %s", e->why, cause);
	op_expect(w, SIM_S, status);
	assert_true(op_wait(r, 10 * SIM_S));
	assert_int_equal(r->c.status, -ETIMEDOUT);
	assert_int_equal(weft_ep_query(f->ep, &a), 0);
	assert_int_equal(a.status, -ETIMEDOUT);
	assert_int_equal(sim_log_count("no sign of 10.0.0."), 1);
	/* One line of the worker, one of its endpoint. */
	assert_int_equal(sim_log_count(cause), 2);
	assert_true(sim_node_counter(s->node[0], "port.ended") == 1);
	sim_log_end();
}

static void a_port_that_wants_a_reset_ends_the_endpoint_at_both_ends(struct sim_case *c)
{
	ends_both(c, -ENETRESET, "the NIC wants a reset");
}

static void a_removed_port_ends_the_endpoint_at_both_ends(struct sim_case *c)
{
	ends_both(c, -ENODEV, "the NIC was removed");
}

/* Nothing is connected over it, and the error has the cause instead of a timeout. */
static void a_port_that_has_ended_connects_to_no_peer(struct sim_case *c)
{
	const struct scene_conf conf = {.config = QUICK};
	struct scene *s = scene_open(c, &conf);
	struct weft_ep *ep = NULL;

	sim_log_begin();
	sim_port_end(s->port[0][0], -ENETRESET);
	scene_run(s, 10 * SIM_MS);
	assert_int_equal(sim_ep_create(s->node[0], s->node[1], NULL, &ep), -EHOSTUNREACH);
	assert_true(sim_log_count("the NIC wants a reset") >= 2);
	sim_log_end();
}

static void a_port_that_was_reset_can_be_opened_again(struct sim_case *c)
{
	const struct scene_conf conf = {.config = QUICK};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e = scene_up(s, 0, 1);

	scene_talk_long(s, e, 1, 1);
	sim_port_end(s->port[0][0], -ENETRESET);
	assert_true(sim_run(s->sim, SIM_MS, scene_ep_has_failed, e));
	op_close(e, WEFT_EP_CLOSE_F_FORCE);
	sim_node_close(s->node[0]);
	scene_start(s, 0);
	scene_talk_long(s, scene_up(s, 0, 1), 1, 2);
}

/* ---- links ---------------------------------------------------------------------------------- */

static void a_link_that_flaps_keeps_the_endpoint_and_is_logged(struct sim_case *c)
{
	const struct scene_conf conf = {.port = {.link = WEFT_LANE_LINK_NIC}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e;
	struct op *r, *w;

	sim_log_begin();
	e = scene_up(s, 0, 1);
	scene_talk_long(s, e, 1, 1);
	r = op_recv(s, 1, 4000000, 2);
	w = op_send(e, 2, 4000000, 2);
	scene_run(s, 100 * SIM_US);
	sim_port_carrier(s->port[0][0], false);
	scene_run(s, 1200 * SIM_MS);
	assert_int_equal(sim_log_count("link lost"), 1);
	sim_port_carrier(s->port[0][0], true);
	op_expect(w, 5 * SIM_S, 0);
	op_expect(r, SIM_S, 0);
	op_holds(r, 2, 4000000);
	assert_int_equal(e->errors, 0);
	assert_int_equal(sim_log_count("link lost"), 1);
	assert_int_equal(sim_log_count("link is back after 1.2 s, 10 Gb/s"), 1);
	assert_non_null(strstr(sim_logged(), sim_port_name(s->port[0][0])));
	assert_int_equal(sim_node_counter(s->node[0], "port.link_down"), 1);
	assert_int_equal(sim_node_counter(s->node[0], "port.link_up"), 1);
	sim_log_end();
}

static void a_link_that_flaps_for_long_does_not_flood_the_log(struct sim_case *c)
{
	const struct scene_conf conf = {.port = {.link = WEFT_LANE_LINK_NIC}};
	struct scene *s = scene_open(c, &conf);
	unsigned int i;

	sim_log_begin();
	for (i = 0; i < 200; i++) {
		sim_port_carrier(s->port[0][0], i % 2);
		scene_run(s, SIM_MS);
	}
	/* weft_log_allowed() goes by the machine's clock: a period may end meanwhile. */
	assert_true(sim_log_count("link ") >= 2 && sim_log_count("link ") <= 20);
	sim_log_end();
}

/* Another process that comes and goes is no fault. */
static void a_peer_that_is_not_there_is_no_warning(struct sim_case *c)
{
	struct scene *s = scene_open(c, NULL);

	sim_log_begin();
	sim_port_carrier(s->port[0][0], false);
	scene_run(s, 10 * SIM_S);
	sim_port_carrier(s->port[0][0], true);
	scene_run(s, SIM_S);
	assert_string_equal(sim_logged(), "");
	sim_log_end();
}

static struct weft_iface_info info_of(struct scene *s)
{
	struct weft_iface_info info = {.size = sizeof(info)};

	assert_int_equal(weft_worker_query_iface(scene_worker(s, 0), 0, &info), 0);
	return info;
}

static struct scene *without_link(struct sim_case *c)
{
	const struct scene_conf conf = {.port = {.link = WEFT_LANE_LINK_NIC}, .lazy = true};
	struct scene *s = scene_open(c, &conf);

	sim_port_carrier(s->port[0][0], false);
	scene_start(s, 0);
	scene_start(s, 1);
	/* A new context directs the log anew. */
	sim_log_begin();
	return s;
}

static void a_link_that_comes_late_is_waited_for_in_silence(struct sim_case *c)
{
	struct scene *s = without_link(c);
	struct weft_iface_info info = info_of(s);

	assert_false(info.up);
	assert_true(info.link_expected);
	assert_null(strstr(info.why, "cable"));
	scene_run(s, 2 * SIM_S);
	sim_port_carrier(s->port[0][0], true);
	scene_run(s, 100 * SIM_MS);
	info = info_of(s);
	assert_true(info.up);
	assert_false(info.link_expected);
	assert_true(info.up_after > 1.9 && info.up_after < 2.2);
	scene_run(s, 10 * SIM_S);
	assert_string_equal(sim_logged(), "");
	scene_talk_long(s, scene_up(s, 0, 1), 1, 1);
	/* A later outage does not change how long the first link took. */
	sim_port_carrier(s->port[0][0], false);
	scene_run(s, SIM_S);
	sim_port_carrier(s->port[0][0], true);
	scene_run(s, 100 * SIM_MS);
	assert_true(info_of(s).up);
	assert_true(info_of(s).up_after == info.up_after);
	sim_log_end();
}

static void a_link_that_does_not_come_is_logged_once_after_5_s(struct sim_case *c)
{
	struct scene *s = without_link(c);
	struct weft_iface_info info;

	scene_run(s, 4900 * SIM_MS);
	assert_string_equal(sim_logged(), "");
	scene_run(s, 200 * SIM_MS);
	assert_int_equal(sim_log_count("no link for 5.0 s"), 1);
	assert_int_equal(sim_log_count("cable"), 1);
	info = info_of(s);
	assert_false(info.link_expected);
	assert_non_null(strstr(info.why, "cable"));
	scene_run(s, 20 * SIM_S);
	assert_int_equal(sim_log_count("cable"), 1);
	/* A peer that was notified of its absence is notified of its return. */
	sim_port_carrier(s->port[0][0], true);
	scene_run(s, 200 * SIM_MS);
	assert_int_equal(sim_log_count("link is up after 25."), 1);
	sim_log_end();
}

/* ---- speed ---------------------------------------------------------------------------------- */

static void a_speed_that_changes_is_what_new_endpoints_count_with(struct sim_case *c)
{
	const struct scene_conf conf = {.port = {.link = WEFT_LANE_LINK_NIC}};
	struct scene *s = scene_open(c, &conf);
	struct weft_iface_info before = info_of(s), after;
	struct scene_ep *e = scene_up(s, 0, 1), *f;
	double old = scene_lane(e, 0).bandwidth;
	unsigned int i;

	sim_log_begin();
	for (i = 0; i < 2; i++)
		sim_port_speed(s->port[i][0], 1.25e8);
	scene_run(s, 2 * SIM_S);
	after = info_of(s);
	assert_true(after.bandwidth < before.bandwidth * 0.11 &&
		    after.bandwidth > before.bandwidth * 0.09);
	assert_int_equal(sim_log_count("link speed is now 1 Gb/s"), 2);
	/* What both ends have agreed on stays. */
	assert_true(scene_lane(e, 0).bandwidth == old);
	op_close(e, 0);
	scene_run(s, 100 * SIM_MS);
	f = scene_up(s, 0, 1);
	assert_true(scene_lane(f, 0).bandwidth < old * 0.2);
	sim_log_end();
}

static void a_link_that_comes_back_slower_counts_as_such(struct sim_case *c)
{
	const struct scene_conf conf = {.port = {.link = WEFT_LANE_LINK_NIC}};
	struct scene *s = scene_open(c, &conf);
	struct weft_iface_info before, after;

	sim_port_carrier(s->port[0][0], false);
	scene_run(s, 10 * SIM_MS);
	before = info_of(s);
	sim_port_speed(s->port[0][0], 1.25e8);
	scene_run(s, 2 * SIM_S);
	after = info_of(s);
	/* No link, no speed. */
	assert_true(after.bandwidth == before.bandwidth);
	sim_port_carrier(s->port[0][0], true);
	scene_run(s, 10 * SIM_MS);
	after = info_of(s);
	assert_true(after.bandwidth < before.bandwidth * 0.11);
}

static struct sim_case cases[] = {
	SIM_CASE(a_port_that_wants_a_reset_ends_the_endpoint_at_both_ends),
	SIM_CASE(a_removed_port_ends_the_endpoint_at_both_ends),
	SIM_CASE(a_port_that_has_ended_connects_to_no_peer),
	SIM_CASE(a_port_that_was_reset_can_be_opened_again),
	SIM_CASE(a_link_that_flaps_keeps_the_endpoint_and_is_logged),
	SIM_CASE(a_link_that_flaps_for_long_does_not_flood_the_log),
	SIM_CASE(a_peer_that_is_not_there_is_no_warning),
	SIM_CASE(a_link_that_comes_late_is_waited_for_in_silence),
	SIM_CASE(a_link_that_does_not_come_is_logged_once_after_5_s),
	SIM_CASE(a_speed_that_changes_is_what_new_endpoints_count_with),
	SIM_CASE(a_link_that_comes_back_slower_counts_as_such),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_port", cases, sizeof(cases) / sizeof(cases[0]));
}
