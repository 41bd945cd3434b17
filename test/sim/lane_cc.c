/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The raw-DPDK engine with WEFT_CC=delay: as right as with a fixed window, and kinder to queues.
 * The algorithm alone is tested in test/unit/engine/cc.c.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/conn.h"
#include "engine/ep.h"
#include "engine/window.h"
#include "frame/frame.h"
#include "lane_host.h"
#include "sim_test.h"

#define SENDERS 12

static const struct sim_port_params fast = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}};

static void both_ways(struct lane_two *t, unsigned int n, uint64_t max_ns)
{
	assert_true(lane_send_all(t->e, 0, n, max_ns));
	assert_true(lane_exactly_once(t->b, 0, n));
	assert_true(lane_send_all(lane_passive(t->b), n, 2 * n, max_ns));
	assert_true(lane_exactly_once(t->a, n, 2 * n));
}

/* @behaviour U86: retransmission; congestion control can be chosen */
static void everything_arrives_once_over_bad_links(struct sim_case *c)
{
	static const struct sim_link bad[] = {
		{.rate = 10 * SIM_GBIT, .delay_ns = 5000, .loss = 0.05},
		{.rate = SIM_GBIT, .delay_ns = 50000, .loss = 0.02, .dup = 0.1, .reorder = 0.2},
		{.rate = SIM_GBIT / 10, .delay_ns = 500000, .queue_bytes = 20000},
		{.rate = SIM_GBIT, .delay_ns = 5000, .loss = 0.33},
	};

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct lane_two t = lane_two_up(c, fast, "CC=delay");

		sim_link_set(t.pa, t.pb, &bad[i]);
		both_ways(&t, i == 3 ? 200 : 500, 60 * SIM_S);
	}
}

/* A queue of 8 bandwidth-delay products: what the fixed window throws away, this one keeps. */
static uint64_t dropped(struct sim_case *c, const char *config)
{
	struct lane_two t = lane_two_up(c, fast, config);

	*sim_port_down(t.pb) =
		(struct sim_link){.rate = SIM_GBIT / 5, .delay_ns = 90000, .queue_bytes = 40000};
	assert_true(lane_send_all(t.e, 0, 6000, 60 * SIM_S));
	assert_true(lane_exactly_once(t.b, 0, 6000));
	return sim_port_stats(t.pb)->tail_drops;
}

/* @behaviour U86, R10 */
static void a_shallow_queue_is_not_overrun(struct sim_case *c)
{
	uint64_t fixed = dropped(c, "CC=fixed"), delay = dropped(c, "CC=delay");

	assert_true(fixed > 500);
	assert_true(delay < fixed / 10);
}

/* @behaviour R14: Retransmissions stay inside the window */
static void lost_frames_wait_for_room_in_the_window(struct sim_case *c)
{
	struct lane_two t = lane_two_up(c, fast, "CC=delay");
	struct sim_dropper drop = {.from = 40, .to = 200};

	sim_filter(t.pa, sim_drop_some, &drop);
	assert_true(lane_send_all(t.e, 0, 3000, 10 * SIM_S));
	assert_true(lane_exactly_once(t.b, 0, 3000));
	/* Those that were dropped, and not much more. */
	assert_in_range(t.e->lane_ep->retransmits, 20, 400);
}

/* @behaviour R11 */
static void windows_of_parts_of_a_frame(struct sim_case *c)
{
	struct sim *sim = case_sim_seed(c, c->seed);
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 2000},
				    .frame_size = 9014,
				    .paths = 1}; /* trials of others are frames, too */
	struct lane_host *to, *from[SENDERS];
	struct lane_end *e[SENDERS];
	struct sim_port *port;
	uint64_t before;
	uint32_t n[SENDERS];

	p.down = (struct sim_link){.rate = 10 * SIM_GBIT, .delay_ns = 2000, .queue_bytes = 150000};
	port = sim_port_create(sim, &p);
	to = lane_host_create(sim, port, "CC=delay");
	for (unsigned int i = 0; i < SENDERS; i++) {
		from[i] = lane_host_create(sim, sim_port_create(sim, &p), "CC=delay");
		e[i] = lane_up(from[i], to);
		n[i] = i * 1000;
	}
	before = sim_port_stats(port)->tail_drops;
	for (unsigned int k = 0; k < 20 * SENDERS; k++) {
		for (unsigned int i = 0; i < SENDERS; i++)
			while (n[i] < i * 1000 + 999 &&
			       lane_send(e[i], LANE_BCOPY, n[i], lane_max(e[i], LANE_BCOPY)) >= 0)
				n[i]++;
		sim_run(sim, 50 * SIM_US, NULL, NULL);
	}
	assert_true(lane_received(to) > 500);
	assert_int_equal(lane_wrong(to), 0);
	/* The first windows overrun it, what follows does not. */
	assert_true(sim_port_stats(port)->tail_drops - before < lane_received(to) / 5);
	sim_run(sim, 200 * SIM_MS, NULL, NULL);
	for (unsigned int i = 0; i < SENDERS; i++)
		assert_true(lane_exactly_once(to, i * 1000, n[i]));
}

static void it_goes_on_after_a_blackout(struct sim_case *c)
{
	struct lane_two t = lane_two_up(c, fast, "CC=delay");

	assert_true(lane_send_all(t.e, 0, 500, SIM_S));
	for (uint32_t i = 500; i < 600; i++)
		while (lane_send(t.e, LANE_BCOPY, i, 1000) == -EAGAIN)
			sim_run(t.sim, 10 * SIM_US, NULL, NULL);
	sim_port_up(t.pa)->blackhole = true;
	sim_run(t.sim, 100 * SIM_MS, NULL, NULL);
	sim_port_up(t.pa)->blackhole = false;
	assert_true(lane_send_all(t.e, 600, 2000, SIM_S));
	assert_true(lane_exactly_once(t.b, 0, 2000));
}

static void several_paths_have_windows_of_their_own(struct sim_case *c)
{
	struct sim_port_params p = fast;
	struct lane_two t;

	p.paths = 4;
	t = lane_two_up(c, p, "CC=delay");
	sim_link_set(t.pa, t.pb,
		     &(struct sim_link){.rate = SIM_GBIT, .delay_ns = 50000, .loss = 0.01});
	both_ways(&t, 1000, 60 * SIM_S);
	assert_true(lane_counter(t.a, "path3.frames") > 100);
	assert_true(lane_counter(t.a, "path3.window") > 0);
}

/* Nothing is queued on the way, so each path's window grows as far as it may. */
static void windows_of_all_paths_are_the_lanes_window_at_most(struct sim_case *c)
{
	struct sim_port_params p = fast;
	uint64_t sum = 0;
	char name[32];
	struct lane_two t;

	p.paths = 4;
	t = lane_two_up(c, p, "CC=delay WINDOW=64k");
	sim_link_set(t.pa, t.pb, &(struct sim_link){.rate = 100 * SIM_GBIT, .delay_ns = 500000});
	both_ways(&t, 3000, 60 * SIM_S);
	for (unsigned int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "path%u.window", i);
		sum += lane_counter(t.a, name);
	}
	assert_in_range(sum, 20000, 65536);
}

static void counters_report_window_target_and_losses(struct sim_case *c)
{
	struct lane_two t = lane_two_up(c, fast, "CC=delay");

	sim_link_set(t.pa, t.pb,
		     &(struct sim_link){.rate = SIM_GBIT, .delay_ns = 50000, .loss = 0.02});
	both_ways(&t, 1000, 60 * SIM_S);
	assert_true(lane_counter(t.a, "path0.window") > 0);
	assert_true(lane_counter(t.a, "path0.target_ns") > 100000);
	assert_true(lane_counter(t.a, "path0.lost_otherwise") > 0);
	t = lane_two_up(c, fast, "CC=fixed");
	both_ways(&t, 100, SIM_S);
	assert_int_equal(lane_counter(t.a, "path0.window"), 0);
}

struct lines {
	unsigned int paths, delays;
	char last[256]; /* of `delays` */
};

static void note_line(const char *text, void *arg)
{
	struct lines *l = arg;

	l->paths += strstr(text, " rtt ") != NULL;
	if (!strstr(text, " base "))
		return;
	l->delays++;
	snprintf(l->last, sizeof(l->last), "%s", text);
}

/* For weft-info --show paths. */
static void paths_report_delays_and_the_last_cut(struct sim_case *c)
{
	struct lane_two t = lane_two_up(c, fast, "CC=delay");
	double base, now, noise, target;
	struct lines l = {0};
	char cut[32] = "";

	sim_link_set(t.pa, t.pb,
		     &(struct sim_link){
			     .rate = SIM_GBIT / 10, .delay_ns = 50000, .queue_bytes = 200000});
	both_ways(&t, 1000, 60 * SIM_S);
	raw_paths_print((const struct raw_iface *)lane_iface(t.a), note_line, &l);
	print_message("# %s\n", l.last);
	/* A path in reserve has no delays yet. */
	assert_true(l.delays > 0 && l.delays <= l.paths);
	assert_int_equal(sscanf(l.last,
				"%*s %*s base %lf us, now %lf, noise %lf, target %lf, last cut by "
				"%31s",
				&base, &now, &noise, &target, cut),
			 5);
	assert_true(base > 100 && now >= base && target > base && noise >= 0);
	assert_string_equal(cut, "delay");
	/* All of a line passes DPDK's telemetry. */
	assert_true(strlen(l.last) < 128);
	t = lane_two_up(c, fast, "CC=fixed");
	both_ways(&t, 100, SIM_S);
	l = (struct lines){0};
	raw_paths_print((const struct raw_iface *)lane_iface(t.a), note_line, &l);
	assert_true(l.paths > 0 && l.delays == 0);
}

/* ---- congestion marks */

struct seen {
	uint64_t ect, ce, other; /* long frames by ECN */
};

#define TOS_AT 15 /* in an untagged frame */

static enum sim_verdict note_tos(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				 void *arg)
{
	struct seen *seen = arg;

	(void)port;
	(void)room;
	if (*len < 300 || data[12] != 8 || data[13] != 0)
		return SIM_PASS;
	seen->ect += (data[TOS_AT] & 3) == 2;
	seen->ce += (data[TOS_AT] & 3) == 3;
	seen->other += (data[TOS_AT] & 3) < 2;
	return SIM_PASS;
}

/* Only a sender that follows marks has its frames marked. */
/* @behaviour R15 */
static void frames_are_ecn_capable_where_marks_are_heeded(struct sim_case *c)
{
	static const char *const config[] = {"CC=delay", "CC=fixed"};

	for (unsigned int i = 0; i < 2; i++) {
		struct lane_two t = lane_two_up(c, fast, config[i]);
		struct seen seen = {0};

		sim_filter(t.pa, note_tos, &seen);
		assert_true(lane_send_all(t.e, 0, 100, SIM_S));
		assert_int_equal(seen.ce, 0);
		assert_true(i == 0 ? seen.ect >= 10 && seen.other == 0
				   : seen.ect == 0 && seen.other >= 10);
	}
}

/* A queue that marks before it is full: as much gets through, and less waits or is lost. */
/* @behaviour R15 */
static void marks_keep_a_queue_short(struct sim_case *c)
{
	uint64_t drops[2], marked[2], began, took[2], waited[2];

	for (unsigned int i = 0; i < 2; i++) {
		struct lane_two t = lane_two_up(c, fast, "CC=delay");

		*sim_port_down(t.pb) = (struct sim_link){.rate = SIM_GBIT,
							 .delay_ns = 50000,
							 .queue_bytes = 60000,
							 .ecn_bytes = i == 0 ? 0 : 12000};
		began = sim_now(t.sim);
		assert_true(lane_send_all(t.e, 0, 20000, 60 * SIM_S));
		assert_true(lane_exactly_once(t.b, 0, 20000));
		took[i] = sim_now(t.sim) - began;
		drops[i] = sim_port_stats(t.pb)->tail_drops;
		marked[i] = lane_counter(t.b, "rx.marked");
		assert_in_range(lane_counter(t.a, "tx.marked"), marked[i] / 2, marked[i]);
		waited[i] = lane_counter(t.a, "path0.marked_bytes");
	}
	assert_true(marked[0] == 0 && waited[0] == 0);
	assert_true(marked[1] > 10 && waited[1] > 1000);
	assert_true(drops[1] <= drops[0]);
	assert_true(took[1] < took[0] / 4 * 5);
}

/* A peer that tells more marks than it was sent frames: what counts is what it acknowledges. */
/* @behaviour R15 */
static void marks_that_cannot_be_are_bounded(struct sim_case *c)
{
	struct {
		struct weft_frame_ecn ecn;
		struct weft_frame_ecn_path path[3];
	} __attribute__((packed)) block = {.ecn.paths = weft_put16(3), .path[1].path = 15};
	struct lane_two t = lane_two_up(c, fast, "CC=delay");
	struct raw_conn *conn = raw_conn_of(t.e->lane_ep);

	for (uint32_t i = 0; i < 2000; i++) {
		block.path[0].marked = weft_put16((uint16_t)(i * 30000));
		block.path[2].marked = weft_put16((uint16_t)(i * 30000 + 500));
		raw_window_marks(conn, &block.ecn);
		while (lane_send(t.e, LANE_BCOPY, i, 1000) == -EAGAIN)
			sim_run(t.sim, 10 * SIM_US, NULL, NULL);
	}
	sim_run(t.sim, 100 * SIM_MS, NULL, NULL);
	assert_true(lane_exactly_once(t.b, 0, 2000));
	assert_int_equal(lane_counter(t.a, "drop.bad_ack"), 2000);
	assert_in_range(lane_counter(t.a, "path0.marked_bytes"), 100000, 2000 * 1200);
	assert_true(lane_counter(t.a, "path0.window") > 0);
}

/*
 * A receiver that looks at its port each 100 us, far less often than a round trip takes: the
 * time of arrival is not known, but a window of a few frames cannot be steered without round trips.
 */
static void round_trips_are_measured_by_a_peer_that_polls_rarely(struct sim_case *c)
{
	struct lane_two t = lane_two_up(c, fast, "CC=delay");
	struct raw_conn *conn = raw_conn_of(t.e->lane_ep);
	unsigned int measured = 0;
	uint32_t n = 4000;

	*sim_port_down(t.pb) =
		(struct sim_link){.rate = SIM_GBIT / 5, .delay_ns = 5000, .queue_bytes = 40000};
	both_ways(&t, 1000, 10 * SIM_S);
	for (unsigned int i = 0; i < 1000; i++) {
		uint32_t last = conn->path[0].rtt.last;

		while (lane_send(t.e, LANE_BCOPY, n, 1000) >= 0)
			n++;
		lane_host_pause(t.b, 100 * SIM_US);
		sim_run(t.sim, 101 * SIM_US, NULL, NULL);
		measured += conn->path[0].rtt.last != last;
	}
	sim_run(t.sim, 100 * SIM_MS, NULL, NULL);
	assert_true(lane_exactly_once(t.b, 4000, n));
	print_message("# %u round trips told, %u frames, %u dropped\n", measured, n - 4000,
		      (unsigned int)sim_port_stats(t.pb)->tail_drops);
	assert_true(measured > 40);
}

static uint32_t fill(struct lane_two *t, uint32_t n)
{
	while (lane_send(t->e, LANE_BCOPY, n, 1000) >= 0)
		n++;
	return n;
}

/* A peer that is off its core for long loses nothing, whatever timeouts there were meanwhile. */
static void a_pause_of_the_peer_makes_no_window_smaller(struct sim_case *c)
{
	struct lane_two t = lane_two_up(c, fast, "CC=delay");
	uint64_t before;
	uint32_t n;

	*sim_port_down(t.pb) =
		(struct sim_link){.rate = SIM_GBIT, .delay_ns = 100000, .queue_bytes = 100000};
	assert_true(lane_send_all(t.e, 0, 10000, 10 * SIM_S));
	before = lane_counter(t.a, "path0.window");
	assert_true(before > 20000);
	n = fill(&t, 10000);
	lane_host_pause(t.b, 30 * SIM_MS);
	sim_run(t.sim, 30 * SIM_MS + 300 * SIM_US, NULL, NULL);
	assert_true(lane_counter(t.a, "tx.retransmit.rto") > 2);
	assert_in_range(lane_counter(t.a, "path0.window"), before / 8 * 7, UINT32_MAX);
	sim_run(t.sim, 10 * SIM_MS, NULL, NULL);
	assert_true(lane_exactly_once(t.b, 0, n));
}

/*
 * The frames of a pause fill several bursts of the receiver's port. The second burst and later ones
 * are read without a gap, so their echoes contain the pause. The queue is too deep for a loss.
 */
/* @behaviour R10 */
static void pauses_on_a_long_path_are_no_queue(struct sim_case *c)
{
	struct lane_two t = lane_two_up(c, fast, "CC=delay");
	uint64_t before, window, least = UINT64_MAX;
	uint32_t n = 0;

	*sim_port_down(t.pb) = (struct sim_link){
		.rate = SIM_GBIT / 5, .delay_ns = 5 * SIM_MS, .queue_bytes = 4000000};
	for (unsigned int i = 0; i < 2500; i++) {
		n = fill(&t, n);
		sim_run(t.sim, 100 * SIM_US, NULL, NULL);
	}
	before = lane_counter(t.a, "path0.window");
	assert_true(before > 100000);
	for (unsigned int i = 0; i < 2000; i++) {
		if (i % 400 == 0)
			lane_host_pause(t.b, (8 + i / 200) * SIM_MS);
		n = fill(&t, n);
		sim_run(t.sim, 100 * SIM_US, NULL, NULL);
		window = lane_counter(t.a, "path0.window");
		least = window < least ? window : least;
	}
	sim_run(t.sim, 100 * SIM_MS, NULL, NULL);
	print_message("# window: %llu, with pauses at least %llu\n", (unsigned long long)before,
		      (unsigned long long)least);
	assert_true(lane_exactly_once(t.b, 0, n));
	assert_in_range(least, before / 8 * 7, UINT32_MAX);
}

/*
 * What an outage took is not given back by a moment's silence of the peer long after it, with a few
 * frames in flight, over what is a slow way by then.
 */
static void an_outage_is_not_undone_by_a_later_silence(struct sim_case *c)
{
	struct lane_two t = lane_two_up(c, fast, "CC=delay");
	struct sim_link link = {.rate = SIM_GBIT, .delay_ns = 100000, .queue_bytes = 100000};
	uint64_t large, small, rto;
	uint32_t n;

	*sim_port_down(t.pb) = link;
	assert_true(lane_send_all(t.e, 0, 5000, 10 * SIM_S));
	n = fill(&t, 5000);
	large = lane_counter(t.a, "path0.window");
	sim_port_up(t.pa)->blackhole = true;
	sim_run(t.sim, 30 * SIM_MS, NULL, NULL);
	sim_port_up(t.pa)->blackhole = false;
	assert_true(lane_counter(t.a, "path0.window") < large);
	link.rate = SIM_GBIT / 20;
	*sim_port_down(t.pb) = link;
	assert_true(lane_send_all(t.e, n, n + 1000, 10 * SIM_S));
	small = lane_counter(t.a, "path0.window");
	assert_true(small < large / 2);
	n += 1000;
	rto = lane_counter(t.a, "tx.retransmit.rto");
	for (unsigned int i = 0; lane_counter(t.a, "tx.retransmit.rto") == rto; i++) {
		lane_host_pause(t.b, 20 * SIM_US);
		if (i < 3)
			assert_true(lane_send(t.e, LANE_BCOPY, n++, 100) >= 0);
		sim_run(t.sim, 10 * SIM_US, NULL, NULL);
	}
	sim_run(t.sim, SIM_MS, NULL, NULL);
	assert_true(lane_exactly_once(t.b, 0, n));
	assert_int_equal(lane_counter(t.a, "tx.retransmit.rto"), rto + 1);
	assert_in_range(lane_counter(t.a, "path0.window"), 1, small + small / 4);
}

/* Messages that arrive at a host that has a look at its port every 10 ms only. */
static uint32_t between_rare_looks(struct sim_case *c, const char *config)
{
	struct lane_two t = lane_two_up(c, fast, config);
	uint32_t n = 0;

	for (unsigned int i = 0; i < 40; i++) {
		n = fill(&t, n);
		lane_host_pause(t.b, 10 * SIM_MS);
		sim_run(t.sim, 10 * SIM_MS + 3 * SIM_US, NULL, NULL);
	}
	sim_run(t.sim, 100 * SIM_MS, NULL, NULL);
	assert_true(lane_exactly_once(t.b, 0, n));
	assert_int_equal(sim_port_stats(t.pb)->tail_drops, 0);
	return n;
}

/* It yields no round trip, and windows of a few frames carry nothing. */
static void a_host_that_hardly_ever_looks_is_sent_as_much_as_with_a_fixed_window(struct sim_case *c)
{
	uint32_t fixed = between_rare_looks(c, "CC=fixed"),
		 delay = between_rare_looks(c, "CC=delay");

	print_message("# %u messages, %u with a fixed window\n", delay, fixed);
	assert_true(delay > fixed / 4 * 3);
}

static struct sim_case cases[] = {
	SIM_CASE(a_pause_of_the_peer_makes_no_window_smaller),
	SIM_CASE(pauses_on_a_long_path_are_no_queue),
	SIM_CASE(an_outage_is_not_undone_by_a_later_silence),
	SIM_CASE(a_host_that_hardly_ever_looks_is_sent_as_much_as_with_a_fixed_window),
	SIM_CASE(frames_are_ecn_capable_where_marks_are_heeded),
	SIM_CASE(marks_keep_a_queue_short),
	SIM_CASE(marks_that_cannot_be_are_bounded),
	SIM_CASE(everything_arrives_once_over_bad_links),
	SIM_CASE(a_shallow_queue_is_not_overrun),
	SIM_CASE(lost_frames_wait_for_room_in_the_window),
	SIM_CASE(windows_of_parts_of_a_frame),
	SIM_CASE(it_goes_on_after_a_blackout),
	SIM_CASE(several_paths_have_windows_of_their_own),
	SIM_CASE(windows_of_all_paths_are_the_lanes_window_at_most),
	SIM_CASE(counters_report_window_target_and_losses),
	SIM_CASE(paths_report_delays_and_the_last_cut),
	SIM_CASE(round_trips_are_measured_by_a_peer_that_polls_rarely),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_cc", cases, sizeof(cases) / sizeof(cases[0]));
}
