/* SPDX-License-Identifier: BSD-3-Clause */
/* What the polls of a receiver prove about frames that came later. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dump/clock.h"
#include "dump/fate.h"
#include "dump/host.h"
#include "dump/trace.h"

#define BEGIN 1700000000000000000ull

/* A received frame. @return the time of a poll that did not find it, after BEGIN; 0 = none */
static uint64_t not_found(struct trace *t, uint16_t iface, uint16_t port, bool sockets,
			  uint64_t within, uint64_t time)
{
	const struct dump_frame frame = {
		.iface = iface, .worker = 1, .within = within, .sockets = sockets, .way = DUMP_IN};
	const struct dump_view view = {.dst_port = port};
	uint64_t at = trace_polled(t, &frame, &view, BEGIN + time);

	return at ? at - BEGIN : 0;
}

/* The clock is read after the poll: the worker may have lost its core in between. */
static void a_poll_is_earlier_than_the_time_of_its_frames(void **state)
{
	struct trace *t = trace_make(1);
	unsigned int i;

	(void)state;
	assert_non_null(t);
	assert_int_equal(not_found(t, 0, 0, false, 5000000, 10000000), 0);
	assert_int_equal(not_found(t, 0, 0, false, 0, 11000000), 5000000);
	assert_int_equal(not_found(t, 0, 0, false, 0, 12000000), 11000000);
	assert_int_equal(not_found(t, 0, 0, false, UINT64_MAX, 13000000), 12000000);
	assert_int_equal(not_found(t, 0, 0, false, 0, 14000000), 0);
	/* A full burst is no end: the poll before it found less than there was. */
	for (i = 0; i < 32; i++)
		not_found(t, 0, 0, false, 0, 15000000);
	assert_int_equal(not_found(t, 0, 0, false, 0, 16000000), 14000000);
	trace_free(t);
}

/* A poll of a lane over sockets reads one of them, and few datagrams. */
static void a_poll_of_a_socket_proves_nothing_about_others(void **state)
{
	struct trace *t = trace_make(1);
	unsigned int i;

	(void)state;
	assert_non_null(t);
	not_found(t, 0, 1, true, 0, 10000000);
	assert_int_equal(not_found(t, 0, 1, true, 0, 11000000), 10000000);
	assert_int_equal(not_found(t, 0, 2, true, 0, 12000000), 0);
	not_found(t, 1, 1, true, 0, 13000000);
	not_found(t, 1, 1, true, 0, 14000000);
	assert_int_equal(not_found(t, 0, 2, true, 0, 15000000), 12000000);
	for (i = 0; i < 4; i++)
		not_found(t, 0, 1, true, 0, 16000000);
	assert_int_equal(not_found(t, 0, 1, true, 0, 17000000), 11000000);
	trace_free(t);
}

/* @p frames that came to an interface in the progress call of this time */
static void called(struct trace *t, uint16_t iface, uint64_t time, unsigned int frames)
{
	const struct dump_frame frame = {.iface = iface, .worker = 1, .way = DUMP_IN};

	while (frames--)
		trace_called(t, &frame, BEGIN + time);
}

/* A whole burst that came in this call, which then sent a frame. Its pause is rounded up. */
static void called_and_sent(struct trace *t, uint64_t time)
{
	const struct dump_frame out = {.worker = 1, .way = DUMP_OUT};
	const struct dump_frame in = {.worker = 1, .way = DUMP_IN, .within = 2000000};
	unsigned int i;

	for (i = 0; i < 32; i++)
		trace_called(t, &in, BEGIN + time + 1999600);
	trace_called(t, &out, BEGIN + time);
}

/*
 * The file of a flight recorder ends, and each of the last calls took a whole burst: frames that
 * were sent long before may still be in the port. They are in none after a call that took less.
 */
static void full_bursts_leave_frames_in_the_port(void **state)
{
	struct survey_file file = {.recorder = true};
	const struct survey s = {.file = &file, .num = 1, .done = true};
	const struct trace_port port = {.known = true};
	struct trace *t = trace_make(1);

	(void)state;
	assert_non_null(t);
	t->survey = &s;
	called(t, 0, 10000000, 5);
	called_and_sent(t, 20000000);
	called_and_sent(t, 30000000);
	called(t, 1, 31000000, 1);
	assert_false(trace_was_polled(t, &port, 0, BEGIN + 24000000, BEGIN + 25000000));
	assert_false(trace_was_polled(t, &port, 0, BEGIN + 4000000, BEGIN + 5000000));
	/* Frames that were sent later have come: by another queue of the kernel, or it is lost. */
	trace_poll_of(t, &port)->sent = BEGIN + 103000000;
	assert_false(trace_was_polled(t, &port, 0, BEGIN + 4000000, BEGIN + 5000000));
	assert_true(trace_was_polled(t, &port, 0, BEGIN + 2000000, BEGIN + 3000000));
	called(t, 0, 40000000, 31);
	called(t, 1, 41000000, 1);
	assert_true(trace_was_polled(t, &port, 0, BEGIN + 24000000, BEGIN + 25000000));
	t->survey = NULL;
	trace_free(t);
}

/* A backlog: the socket was still read when the frame was due, but only frames from before it. */
static void a_socket_is_not_read_up_to_the_end(void **state)
{
	const struct trace_port port = {.known = true};
	struct trace *t = trace_make(1);

	(void)state;
	assert_non_null(t);
	not_found(t, 0, 7, true, 0, 30000000);
	trace_socket_read(t, &port, 7, BEGIN + 10000000);
	assert_false(trace_was_polled(t, &port, 7, BEGIN + 20000000, BEGIN + 21000000));
	/* One sent later has been read, the socket was not read since, or it is another socket. */
	assert_true(trace_was_polled(t, &port, 7, BEGIN + 9000000, BEGIN + 21000000));
	assert_true(trace_was_polled(t, &port, 7, BEGIN + 30000000, BEGIN + 31000000));
	assert_true(trace_was_polled(t, &port, 8, BEGIN + 20000000, BEGIN + 21000000));
	trace_free(t);
}

/* The datagrams that a socket holds are not in the file either, and calls take turns. */
static void sockets_hold_frames_for_longer(void **state)
{
	const struct dump_frame in = {.worker = 1, .way = DUMP_IN, .sockets = true};
	struct survey_file file = {.recorder = true};
	const struct survey s = {.file = &file, .num = 1, .done = true};
	const struct trace_port port = {.known = true};
	struct trace *t = trace_make(1);

	(void)state;
	assert_non_null(t);
	t->survey = &s;
	trace_called(t, &in, BEGIN + 190000000);
	trace_called(t, &in, BEGIN + 200000000);
	assert_false(trace_was_polled(t, &port, 0, BEGIN + 100000000, BEGIN + 101000000));
	assert_true(trace_was_polled(t, &port, 0, BEGIN + 80000000, BEGIN + 81000000));
	t->survey = NULL;
	trace_free(t);
}

/* ---- silences ------------------------------------------------------------------------------- */

#define PAUSE 50000000u /* ns */

/*
 * A host has a pause in the call in which it sends a frame. DATA comes @p after that call's begin,
 * and the lane sends nothing more for 70 ms. @return silences
 */
static uint64_t silences(bool recorder, uint64_t after)
{
	struct survey_file file = {.recorder = recorder};
	const struct survey s = {.file = &file, .num = 1, .done = true};
	struct dump_frame out = {.way = DUMP_OUT, .within = PAUSE};
	struct dump_frame in = {.way = DUMP_IN, .within = PAUSE};
	const struct weft_frame_hdr data = {.type = WEFT_FRAME_DATA};
	const struct dump_view view = {.hdr = &data};
	struct trace *t = trace_make(1);
	uint64_t found;

	assert_non_null(t);
	t->survey = &s;
	t->num_flows = 2;
	t->flow[0].other = 1;
	t->flow[1].other = 0;
	t->flow[0].out.known = t->flow[1].in.known = true;
	trace_host_record(t, &out, &view, &t->flow[0], BEGIN);
	trace_host_record(t, &in, &view, &t->flow[1], BEGIN + after);
	out.within = 0;
	trace_host_record(t, &out, &view, &t->flow[0], BEGIN + after + 70000000);
	found = t->host[0].silences;
	t->survey = NULL;
	trace_free(t);
	return found;
}

/* The answer left in the call that took the DATA, whose pause a recorder adds to its time. */
static void a_peer_that_answered_in_its_pause_is_not_silent(void **state)
{
	(void)state;
	assert_int_equal(silences(true, PAUSE), 0);
	assert_int_equal(silences(true, PAUSE + 900), 0);
	assert_int_equal(silences(true, PAUSE + 2000), 1);
	assert_int_equal(silences(false, PAUSE), 1);
}

/* ---- what a file lacks ---------------------------------------------------------------------- */

/* A frame of flow 0, sent by host 0 or come to host 1, @p after the begin. */
static void frame_of(struct trace *t, enum dump_way way, uint8_t path, uint32_t seq, uint64_t after)
{
	const struct weft_frame_hdr hdr = {
		.type = WEFT_FRAME_DATA, .path = path, .seq = weft_put32(seq)};
	const struct dump_frame frame = {.way = way, .file = way == DUMP_IN, .len = 100};
	const struct dump_view view = {.hdr = &hdr, .cut = true};

	trace_fate(t, &t->flow[0], &frame, &view, BEGIN + after);
}

/* Make flow 0 one from host 0 to host 1. */
static void one_flow(struct trace *t)
{
	t->num_flows = 1;
	t->flow[0].other = TRACE_NONE;
	t->flow[0].out = (struct trace_port){.file = 0, .known = true};
	t->flow[0].in = (struct trace_port){.file = 1, .known = true};
	t->flow[0].stride = 1;
	t->flow[0].came = calloc(2 * TRACE_SAMPLES, sizeof(*t->flow[0].came));
	t->flow[0].gone = t->flow[0].came + TRACE_SAMPLES;
	t->flow[0].floors = calloc(1, sizeof(*t->flow[0].floors));
	assert_true(t->flow[0].came && t->flow[0].floors);
	t->flow[0].floors->interval = TRACE_FLOOR_NS;
}

/* A frame may wait in a socket for longer than in the ring of a port. */
static void a_frame_waits_for_ten_seconds_in_a_socket(void **state)
{
	const uint64_t s = 1000000000;
	struct trace *t;

	(void)state;
	for (int sockets = 0; sockets < 2; sockets++) {
		t = trace_make(2);
		assert_non_null(t);
		t->begin = BEGIN;
		one_flow(t);
		trace_poll_of(t, &t->flow[0].in)->sockets = sockets;
		frame_of(t, DUMP_OUT, 0, 1, s);
		t->now = BEGIN + 11 * s;
		trace_fate_judge(t, false);
		assert_int_equal(t->flow[0].judged, sockets ? 0 : 1);
		frame_of(t, DUMP_IN, 0, 1, 11 * s);
		trace_fate_judge(t, true);
		assert_int_equal(t->flow[0].lost, sockets ? 0 : 1);
		trace_free(t);
	}
}

/*
 * The file of a sender's flight recorder begins with a frame of path 1, which overtakes those of
 * path 0 that were sent before.
 */
static void frames_before_the_first_one_of_their_path_are_not_missing(void **state)
{
	struct survey_file file[2] = {{.recorder = true}, {.recorder = true}};
	const struct survey s = {.file = file, .num = 2, .done = true};
	struct trace *t = trace_make(2);

	(void)state;
	assert_non_null(t);
	t->survey = &s;
	one_flow(t);
	frame_of(t, DUMP_OUT, 1, 1, 5000000);
	frame_of(t, DUMP_IN, 1, 1, 10000000);
	frame_of(t, DUMP_IN, 0, 2, 12000000);
	frame_of(t, DUMP_OUT, 0, 3, 13000000);
	frame_of(t, DUMP_IN, 0, 3, 14000000);
	frame_of(t, DUMP_IN, 0, 4, 15000000);
	trace_fate_judge(t, true);
	assert_int_equal(t->flow[0].unseen_out, 1);
	assert_int_equal(t->flow[0].first_unseen_out, BEGIN + 15000000);
	t->survey = NULL;
	trace_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_poll_is_earlier_than_the_time_of_its_frames),
		cmocka_unit_test(a_poll_of_a_socket_proves_nothing_about_others),
		cmocka_unit_test(full_bursts_leave_frames_in_the_port),
		cmocka_unit_test(a_socket_is_not_read_up_to_the_end),
		cmocka_unit_test(sockets_hold_frames_for_longer),
		cmocka_unit_test(a_peer_that_answered_in_its_pause_is_not_silent),
		cmocka_unit_test(a_frame_waits_for_ten_seconds_in_a_socket),
		cmocka_unit_test(frames_before_the_first_one_of_their_path_are_not_missing),
	};

	return cmocka_run_group_tests_name("dump polls", tests, NULL, NULL);
}
