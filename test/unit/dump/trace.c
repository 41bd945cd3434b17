/* SPDX-License-Identifier: BSD-3-Clause */
/* Two hosts' captures of one lane, built frame by frame: clocks, fates, and the fault's name. */

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dump/anomaly.h"
#include "dump/clock.h"
#include "dump/trace.h"

#define FRAMES 600u
#define EVERY_NS 100000u
#define WAY_NS 20000
#define BEGIN 1700000000000000000ull
#define HDR_AT 14

struct built {
	uint8_t bytes[1500];
	uint32_t len;
	uint64_t sent;
};

/* Frame i of one direction (0: from host 0 to host 1), under Weft's own ethertype. */
static struct built build(unsigned int dir, uint32_t i, uint32_t len)
{
	struct built b = {.len = len, .sent = BEGIN + (uint64_t)i * EVERY_NS + dir * 31000u};
	struct weft_frame_hdr *h = (void *)(b.bytes + HDR_AT);
	struct weft_frame_msg *m = (void *)(h + 1);

	b.bytes[5] = (uint8_t)(2 - dir);
	b.bytes[11] = (uint8_t)(1 + dir);
	memcpy(b.bytes + 12, "\x88\xb5", 2);
	*h = (struct weft_frame_hdr){.magic = weft_put16(WEFT_FRAME_MAGIC),
				     .version = WEFT_FRAME_VERSION,
				     .type = WEFT_FRAME_DATA,
				     .length = weft_put16((uint16_t)(len - HDR_AT)),
				     .dst_conn = weft_put32(0x10000 + dir),
				     .token = weft_put32(77 + dir),
				     .src_conn = weft_put16((uint16_t)!dir),
				     .seq = weft_put32(i),
				     .order = weft_put32(i),
				     .ts = weft_put32((uint32_t)b.sent)};
	m->length = weft_put16((uint16_t)(len - HDR_AT - sizeof(*h) - sizeof(*m)));
	m->am_id = WEFT_WIRE_EAGER;
	return b;
}

static void record(struct trace *t, struct built *b, uint8_t file, uint8_t way, uint64_t time)
{
	struct dump_frame frame = {
		.data = b->bytes, .caplen = b->len, .len = b->len, .file = file, .way = way};
	struct dump_view view;

	dump_decode(&frame, &view);
	assert_int_equal(view.what, DUMP_LANE);
	trace_frame(t, &frame, &view, time);
}

/* How often frame @p i of a direction comes. */
typedef unsigned int (*fate_cb)(unsigned int dir, uint32_t i, uint32_t len);

/* The end of a connection, sent again and again: its peer has ended by other means. */
static void close_connection(struct trace *t)
{
	struct weft_frame_hdr *h;
	struct built b;
	weft_le32 crc;
	uint32_t i;

	for (i = FRAMES; i < FRAMES + 100; i++) {
		b = build(0, i, HDR_AT + sizeof(*h));
		h = (void *)(b.bytes + HDR_AT);
		h->type = WEFT_FRAME_BYE;
		h->flags = weft_put16(WEFT_FRAME_F_CRC32C);
		crc = weft_put32(~weft_crc32c(WEFT_CRC32C_INIT, h, sizeof(*h)));
		memcpy(h + 1, &crc, sizeof(crc));
		b.len += sizeof(crc);
		record(t, &b, 0, DUMP_OUT, b.sent);
	}
}

static unsigned int named(fate_cb fate, struct trace_anomaly a[TRACE_ANOMALIES])
{
	struct trace *t = trace_make(2);
	unsigned int dir, n, copies;
	struct built b;
	uint32_t i;

	assert_non_null(t);
	for (i = 0; i < FRAMES; i++) {
		for (dir = 0; dir < 2; dir++) {
			b = build(dir, i, i % 3 ? 1400 : 200);
			record(t, &b, (uint8_t)dir, DUMP_OUT, b.sent);
			copies = fate(dir, i, b.len);
			for (n = 0; n < copies; n++)
				record(t, &b, (uint8_t)!dir, DUMP_IN, b.sent + WAY_NS + n);
		}
	}
	close_connection(t);
	trace_end(t);
	n = trace_anomalies(t, a);
	trace_free(t);
	return n;
}

static void expect(fate_cb fate, enum trace_fault fault, unsigned int from, unsigned int dir)
{
	static struct trace_anomaly a[TRACE_ANOMALIES];
	unsigned int n = named(fate, a);

	if (fault == FAULT_NONE) {
		assert_int_equal(n, 0);
		return;
	}
	assert_int_equal(n, 1);
	assert_string_equal(trace_fault_name(a[0].fault), trace_fault_name(fault));
	assert_in_range(a[0].time, build(dir, from, 200).sent,
			build(dir, from, 200).sent + 2 * WAY_NS);
}

static unsigned int all_come(unsigned int dir, uint32_t i, uint32_t len)
{
	return 1;
}

static unsigned int some_are_lost(unsigned int dir, uint32_t i, uint32_t len)
{
	return dir == 0 && i >= 200 && i % 17 == 13 ? 0 : 1;
}

static unsigned int some_come_twice(unsigned int dir, uint32_t i, uint32_t len)
{
	return dir == 1 && i >= 100 && i % 20 == 0 ? 2 : 1;
}

static unsigned int neighbours_are_lost(unsigned int dir, uint32_t i, uint32_t len)
{
	return dir == 0 && i >= 100 && i < 500 && i % 100 < 8 ? 0 : 1;
}

static unsigned int none_comes_one_way(unsigned int dir, uint32_t i, uint32_t len)
{
	return dir == 0 && i >= 300 ? 0 : 1;
}

static unsigned int none_comes(unsigned int dir, uint32_t i, uint32_t len)
{
	return i >= 300 ? 0 : 1;
}

static unsigned int long_ones_do_not_come(unsigned int dir, uint32_t i, uint32_t len)
{
	return i >= 301 && len > 1000 ? 0 : 1;
}

static void faults_are_named_with_their_time(void **state)
{
	(void)state;
	expect(all_come, FAULT_NONE, 0, 0);
	expect(some_are_lost, FAULT_RANDOM_LOSS, 200, 0);
	expect(neighbours_are_lost, FAULT_BURST_LOSS, 100, 0);
	expect(some_come_twice, FAULT_DUPLICATION, 100, 1);
	expect(none_comes_one_way, FAULT_BLACKHOLE_ONE_WAY, 300, 0);
	expect(none_comes, FAULT_BLACKHOLE_BOTH_WAYS, 300, 0);
	expect(long_ones_do_not_come, FAULT_PATH_MTU, 301, 0);
}

/* Another fault in each direction, and a third on top: none hides another. */
static unsigned int three_faults(unsigned int dir, uint32_t i, uint32_t len)
{
	if (dir == 1)
		return i >= 100 && i % 20 == 0 ? 2 : 1;
	return i >= 200 && i % 17 == 13 ? 0 : i % 30 == 0 ? 2 : 1;
}

static void no_fault_hides_another(void **state)
{
	static struct trace_anomaly a[TRACE_ANOMALIES];
	unsigned int n = named(three_faults, a);

	(void)state;
	assert_int_equal(n, 3);
	assert_int_equal(trace_verdicts(a, n), 3);
	assert_string_equal(trace_fault_name(a[0].fault), "random loss");
	assert_true(a[0].weight > a[1].weight && a[1].weight >= a[2].weight);
	assert_true(a[1].fault == FAULT_DUPLICATION && a[2].fault == FAULT_DUPLICATION);
}

static unsigned int three_are_lost(unsigned int dir, uint32_t i, uint32_t len)
{
	return dir == 0 && (i == 200 || i == 300 || i == 420) ? 0 : 1;
}

static void little_loss_is_an_observation(void **state)
{
	static struct trace_anomaly a[TRACE_ANOMALIES];
	unsigned int n = named(three_are_lost, a);

	(void)state;
	assert_int_equal(n, 1);
	assert_int_equal(trace_verdicts(a, n), 0);
	assert_true(a[0].fault == FAULT_RANDOM_LOSS && a[0].observation);
}

/* ---- silences ------------------------------------------------------------------------------- */

/* When frame i of host 0 comes to host 1, which answers each at once. */
typedef uint64_t (*arrival_cb)(uint32_t i, uint64_t sent);

static unsigned int silences(arrival_cb arrival, uint64_t every, struct trace_anomaly *a,
			     uint64_t *silent)
{
	struct trace *t = trace_make(2);
	struct built out, back;
	uint32_t i, o = 0;
	unsigned int n;

	assert_non_null(t);
	for (i = 0; i < FRAMES; i++) {
		for (; o < FRAMES; o++) { /* what was sent before that arrival */
			out = build(0, o, 200);
			out.sent = BEGIN + o * every;
			if (out.sent >= arrival(i, BEGIN + i * every))
				break;
			record(t, &out, 0, DUMP_OUT, out.sent);
		}
		out = build(0, i, 200);
		out.sent = BEGIN + i * every;
		back = build(1, i, 200);
		back.sent = arrival(i, out.sent) + 1000;
		record(t, &out, 1, DUMP_IN, arrival(i, out.sent));
		record(t, &back, 1, DUMP_OUT, back.sent);
	}
	trace_end(t);
	n = trace_anomalies(t, a);
	*silent = t->host[1].silent;
	trace_free(t);
	return n;
}

static uint64_t on_time(uint32_t i, uint64_t sent)
{
	return sent + WAY_NS;
}

/* The host does nothing for 40 ms, and then takes all that has come. */
static uint64_t after_a_stop(uint32_t i, uint64_t sent)
{
	uint64_t from = BEGIN + 200 * EVERY_NS, to = from + 40000000;

	return sent >= from && sent < to ? to + WAY_NS + i : sent + WAY_NS;
}

/* The path takes 2 ms from then on: the distances of frames stay. */
static uint64_t by_a_longer_path(uint32_t i, uint64_t sent)
{
	return sent + WAY_NS + (i >= 200 ? 2000000 : 0);
}

static void a_silence_is_the_hosts_if_frames_then_come_at_once(void **state)
{
	static struct trace_anomaly a[TRACE_ANOMALIES];
	uint64_t silent;

	(void)state;
	/* A sender that pauses 20 ms after each frame: its receiver has nothing to answer. */
	assert_int_equal(silences(on_time, 20000000, a, &silent), 0);
	assert_int_equal(silent, 0);
	assert_int_equal(silences(after_a_stop, EVERY_NS, a, &silent), 1);
	assert_true(a[0].fault == FAULT_STOPPED_PEER && a[0].host == 1);
	assert_in_range(silent, 39000000, 41000000);
	assert_in_range(a[0].time, BEGIN + 199 * EVERY_NS, BEGIN + 201 * EVERY_NS);
	assert_int_equal(silences(by_a_longer_path, EVERY_NS, a, &silent), 1);
	assert_true(a[0].fault == FAULT_DELAY);
	assert_int_equal(silent, 0);
}

/* Host 1 stops for 30 ms. Then it sends a frame, pauses for 400 us, and takes all that has come. */
static void a_pause_behind_a_stop_does_not_hide_it(void **state)
{
	struct trace *t = trace_make(2);
	struct built b, back;
	uint32_t i, n;

	(void)state;
	assert_non_null(t);
	for (i = 0; i < FRAMES; i++) {
		b = build(0, i, 200);
		back = build(1, i, 200);
		record(t, &b, 0, DUMP_OUT, b.sent);
		for (n = 200; i == 504 && n < i; n++) {
			b = build(0, n, 200);
			record(t, &b, 1, DUMP_IN, back.sent - 1000 + n);
		}
		b = build(0, i, 200);
		if (i < 200 || i >= 504)
			record(t, &b, 1, DUMP_IN, b.sent + WAY_NS + 10000);
		if (i < 200 || i == 500 || i >= 504)
			record(t, &back, 1, DUMP_OUT, back.sent);
	}
	assert_in_range(t->host[1].longest.to - t->host[1].longest.from, 29000000, 31000000);
	trace_free(t);
}

/* A clean capture, in which host 1 reports with each frame that it did not poll for @p units. */
static unsigned int reports(uint16_t units, struct trace_anomaly *a)
{
	struct trace *t = trace_make(2);
	struct weft_frame_progress *p;
	struct weft_frame_hdr *h;
	struct built out, back;
	unsigned int n;
	uint32_t i;

	assert_non_null(t);
	for (i = 0; i < FRAMES; i++) {
		out = build(0, i, 200);
		back = build(1, i, 200);
		h = (void *)(back.bytes + HDR_AT);
		p = (void *)(h + 1);
		memmove(p + 1, p, 200 - HDR_AT - sizeof(*h));
		h->flags = weft_put16(WEFT_FRAME_F_PROGRESS);
		h->length = weft_put16((uint16_t)(200 - HDR_AT + sizeof(*p)));
		p->longest = weft_put16(units);
		p->total = weft_put16((uint16_t)((i + 1) * units));
		back.len += (uint32_t)sizeof(*p);
		record(t, &out, 0, DUMP_OUT, out.sent);
		record(t, &out, 1, DUMP_IN, out.sent + WAY_NS);
		record(t, &back, 1, DUMP_OUT, back.sent);
		record(t, &back, 0, DUMP_IN, back.sent + WAY_NS);
	}
	trace_end(t);
	n = trace_anomalies(t, a);
	trace_free(t);
	return n;
}

/* A unit is 16 us, and a frame is sent every 100 us. */
static void pauses_that_a_host_reports_are_observed(void **state)
{
	static struct trace_anomaly a[TRACE_ANOMALIES];

	(void)state;
	assert_int_equal(reports(0, a), 0);
	/* None has waited for it, so this is an observation. It explains delays. */
	assert_int_equal(reports(3, a), 1);
	assert_true(a[0].fault == FAULT_SLOW_RECEIVER && a[0].host == 1);
	assert_true(a[0].observation && a[0].reported);
	assert_non_null(strstr(a[0].text, "it did not poll 48"));
}

/* ---- delays of busy hosts ------------------------------------------------------------------- */

#define PERIOD_NS 40000000u /* the receiver has a core for the first AWAKE_NS of each */
#define AWAKE_NS 2000000u
#define POLL_NS 100000u
#define SPAN_NS 1000000000u
#define LONGER_AT 600000000u
#define LONGER_NS 5000000u
#define HELD_AT 280000000u /* what is sent from then on comes at HELD_TO */
#define HELD_TO 720000000u
#define HELD UINT64_MAX

/* When the receiver's next poll is. */
static uint64_t polled_at(uint64_t time)
{
	uint64_t at = (time - BEGIN + POLL_NS - 1) / POLL_NS * POLL_NS, in = at % PERIOD_NS;

	return BEGIN + (in <= AWAKE_NS ? at : at - in + PERIOD_NS);
}

/* A frame of a lane: the lane's number is that of its interface, and in its connection. */
static struct built of_lane(uint16_t lane, uint64_t sent)
{
	struct built b = build(0, (uint32_t)((sent - BEGIN) / POLL_NS), 200);
	struct weft_frame_hdr *h = (void *)(b.bytes + HDR_AT);

	h->dst_conn = weft_put32(0x10000 + 2u * lane);
	h->token = weft_put32(77 + 2u * lane);
	b.sent = sent;
	return b;
}

static void record_lane(struct trace *t, struct built *b, uint16_t lane, uint8_t file, uint8_t way,
			uint64_t time)
{
	struct dump_frame frame = {.data = b->bytes,
				   .caplen = b->len,
				   .len = b->len,
				   .file = file,
				   .iface = lane,
				   .worker = 1u + file,
				   .way = way};
	struct dump_view view;

	dump_decode(&frame, &view);
	trace_frame(t, &frame, &view, time);
}

/* The delay of a frame of lane 0. @param longer  of the path, or HELD */
static uint64_t delay_of(uint64_t sent, uint64_t longer)
{
	if (longer != HELD)
		return WAY_NS + (sent >= BEGIN + LONGER_AT ? longer : 0);
	if (sent < BEGIN + HELD_AT || sent >= BEGIN + HELD_TO)
		return WAY_NS;
	return WAY_NS + BEGIN + HELD_TO - sent;
}

/* All that comes at this poll, of frames that were sent every POLL_NS on lane 1, every ms on 0. */
static void poll_lane(struct trace *t, uint16_t lane, uint64_t poll, uint64_t longer)
{
	uint64_t sent, every = lane ? POLL_NS : 1000000, delay;
	struct built b;

	for (sent = BEGIN + 7000 + lane; sent < poll; sent += every) {
		delay = lane ? WAY_NS : delay_of(sent, longer);
		if (polled_at(sent + delay) != poll)
			continue;
		b = of_lane(lane, sent);
		record_lane(t, &b, lane, 1, DUMP_IN, poll + lane);
	}
}

/* One lane's path takes LONGER_NS more from then on. @return the anomalies */
static unsigned int of_busy_host(uint64_t longer, struct trace_anomaly *a)
{
	struct trace *t = trace_make(2);
	uint64_t time, at;
	struct built b;
	unsigned int n;

	assert_non_null(t);
	for (time = BEGIN; time < BEGIN + SPAN_NS; time += POLL_NS) {
		if (polled_at(time) == time) {
			poll_lane(t, 0, time, longer);
			poll_lane(t, 1, time, longer);
		}
		at = time + 7000;
		if ((time - BEGIN) % 1000000 == 0) {
			b = of_lane(0, at);
			record_lane(t, &b, 0, 0, DUMP_OUT, at);
		}
		b = of_lane(1, at + 1);
		record_lane(t, &b, 1, 0, DUMP_OUT, at + 1);
	}
	trace_end(t);
	n = trace_anomalies(t, a);
	trace_free(t);
	return n;
}

/* The receiver is late by up to 38 ms, and its polls prove that one lane's frames take 5 ms. */
static void a_longer_path_of_a_busy_host_is_proved_by_its_polls(void **state)
{
	static struct trace_anomaly a[TRACE_ANOMALIES];
	unsigned int i, n, delays = 0;

	(void)state;
	n = of_busy_host(LONGER_NS, a);
	for (i = 0; i < trace_verdicts(a, n); i++) {
		if (a[i].fault != FAULT_DELAY)
			continue;
		delays++;
		assert_true(a[i].of_path);
		assert_int_equal(a[i].flow, 0);
		assert_in_range(a[i].time, BEGIN + LONGER_AT, BEGIN + LONGER_AT + PERIOD_NS);
	}
	assert_int_equal(delays, 1);
	n = of_busy_host(0, a);
	for (i = 0; i < trace_verdicts(a, n); i++)
		assert_int_not_equal(a[i].fault, FAULT_DELAY);
}

/* A queue of the receiver's kernel is not served for some time: that is one event. */
static void frames_that_are_held_and_come_at_once_are_no_longer_path(void **state)
{
	static struct trace_anomaly a[TRACE_ANOMALIES];
	unsigned int i, n = of_busy_host(HELD, a);

	(void)state;
	for (i = 0; i < trace_verdicts(a, n); i++)
		assert_int_not_equal(a[i].fault, FAULT_DELAY);
}

/* ---- frames that are overtaken -------------------------------------------------------------- */

#define BEHIND 20u

/* Now and then a burst of BEHIND frames comes after the next frame. @return what is named */
static unsigned int overtaken(unsigned int times, struct trace_anomaly *a)
{
	struct trace *t = trace_make(2);
	struct built b[BEHIND], next;
	uint32_t i, n;

	assert_non_null(t);
	for (i = 0; i < FRAMES; i++) {
		next = build(0, i, 200);
		record(t, &next, 0, DUMP_OUT, next.sent);
		if (i >= 100 && i < 100 + 50 * times && i % 50 < BEHIND) {
			b[i % 50] = next;
			continue;
		}
		record(t, &next, 1, DUMP_IN, next.sent + WAY_NS);
		for (n = 0; i >= 100 && i < 100 + 50 * times && i % 50 == BEHIND && n < BEHIND; n++)
			record(t, &b[n], 1, DUMP_IN, next.sent + WAY_NS + 1 + n);
	}
	trace_end(t);
	n = trace_verdicts(a, trace_anomalies(t, a));
	trace_free(t);
	return n;
}

static void a_burst_that_is_late_once_is_an_observation(void **state)
{
	static struct trace_anomaly a[TRACE_ANOMALIES];

	(void)state;
	assert_int_equal(overtaken(1, a), 0);
	assert_int_equal(a[0].fault, FAULT_REORDERING);
	assert_int_equal(overtaken(3, a), 0);
	assert_int_equal(overtaken(4, a), 1);
	assert_int_equal(a[0].fault, FAULT_REORDERING);
}

/* ---- losses that another fault explains ----------------------------------------------------- */

/* The path's MTU falls, and a new connection between the same ports searches for it. */
static void a_later_connection_meets_the_same_mtu(void **state)
{
	static struct trace_anomaly a[TRACE_ANOMALIES];
	struct trace *t = trace_make(2);
	struct weft_frame_hdr *h;
	struct built b;
	uint32_t i;

	(void)state;
	assert_non_null(t);
	for (i = 0; i < 2 * FRAMES; i++) {
		b = build(0, i, i % 3 ? 200 : i < FRAMES ? 1400 : 1300);
		h = (void *)(b.bytes + HDR_AT);
		if (i >= FRAMES) {
			h->dst_conn = weft_put32(0x20000);
			h->token = weft_put32(99);
		}
		record(t, &b, 0, DUMP_OUT, b.sent);
		if (i < 300 || b.len == 200)
			record(t, &b, 1, DUMP_IN, b.sent + WAY_NS);
	}
	trace_end(t);
	assert_int_equal(trace_anomalies(t, a), 1);
	assert_int_equal(a[0].fault, FAULT_PATH_MTU);
	trace_free(t);
}

/* A link goes down: the last frames of one end are lost, and the other end sends on for a while. */
static void the_last_frames_of_a_lane_meet_its_hole(void **state)
{
	static struct trace_anomaly a[TRACE_ANOMALIES];
	struct trace *t = trace_make(2);
	struct built b;
	uint32_t i, dir;

	(void)state;
	assert_non_null(t);
	for (i = 0; i < FRAMES; i++) {
		for (dir = 0; dir < (i < 300 ? 2 : 1); dir++) {
			b = build(dir, i, 200);
			record(t, &b, (uint8_t)dir, DUMP_OUT, b.sent);
			if (i < (dir ? 280 : 300))
				record(t, &b, (uint8_t)!dir, DUMP_IN, b.sent + WAY_NS);
		}
	}
	trace_end(t);
	assert_int_equal(trace_verdicts(a, trace_anomalies(t, a)), 1);
	assert_true(a[0].fault == FAULT_LANE_DOWN || a[0].fault == FAULT_BLACKHOLE_ONE_WAY);
	trace_free(t);
}

/* What one host alone has seen says nothing about what became of its frames. */
static void one_capture_names_no_fault(void **state)
{
	static struct trace_anomaly a[TRACE_ANOMALIES];
	struct trace *t = trace_make(1);
	struct built b;
	uint32_t i;

	(void)state;
	assert_non_null(t);
	for (i = 0; i < FRAMES; i++) {
		b = build(0, i, 300);
		record(t, &b, 0, DUMP_OUT, b.sent);
	}
	trace_end(t);
	assert_int_equal(t->num_flows, 1);
	assert_int_equal(t->flow[0].frames, FRAMES);
	assert_int_equal(t->flow[0].judged, 0);
	assert_int_equal(trace_anomalies(t, a), 0);
	trace_free(t);
}

static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* Every frame another connection: what there is no room for is counted. All memory is freed. */
static void flows_are_bounded(void **state)
{
	size_t before = heap_bytes();
	struct trace *t = trace_make(1);
	struct weft_frame_hdr *h;
	struct built b;
	uint32_t i;

	(void)state;
	assert_non_null(t);
	for (i = 0; i < TRACE_FLOWS + 100; i++) {
		b = build(0, i, 300);
		h = (void *)(b.bytes + HDR_AT);
		h->token = weft_put32(i * 2654435761u);
		record(t, &b, 0, DUMP_IN, b.sent);
	}
	trace_end(t);
	assert_int_equal(t->num_flows, TRACE_FLOWS);
	assert_int_equal(t->too_many, 100);
	trace_free(t);
	assert_int_equal(heap_bytes(), before);
}

/* ---- clocks --------------------------------------------------------------------------------- */

static void put_block(FILE *f, uint32_t type, const void *body, uint32_t len)
{
	const uint32_t head[2] = {type, 12 + len};

	fwrite(head, sizeof(head), 1, f);
	fwrite(body, len, 1, f);
	fwrite(&head[1], sizeof(head[1]), 1, f);
}

static void begin_file(FILE *f)
{
	static const uint32_t section[] = {0x1a2b3c4d, 1, UINT32_MAX, UINT32_MAX};
	static const struct {
		uint16_t link, zero;
		uint32_t snaplen;
		uint16_t code, len;
		uint8_t resolution[4];
	} iface = {.link = 1, .code = 9, .len = 1, .resolution = {9}};

	put_block(f, 0x0a0d0d0a, section, sizeof(section));
	put_block(f, 1, &iface, sizeof(iface));
}

static void put_frame(FILE *f, const struct built *b, enum dump_way way, uint64_t time)
{
	struct {
		uint32_t iface, high, low, caplen, len;
		uint8_t data[200];
		uint16_t code, opt_len;
		uint32_t flags;
	} p = {0, (uint32_t)(time >> 32), (uint32_t)time, 200, b->len, .code = 2, .opt_len = 4};

	p.flags = way;
	memcpy(p.data, b->bytes, sizeof(p.data));
	put_block(f, 6, &p, sizeof(p));
}

/* Of the second host: 5 s ahead, and 40 us more each second. */
static uint64_t second(uint64_t t)
{
	return t + 5000000000u + (t - BEGIN) / 25000;
}

static uint64_t same(uint64_t t)
{
	return t;
}

/* Least delays of stretches, one way, differ by milliseconds. */
static uint64_t delay_on_a_busy_host(unsigned int dir, uint32_t i)
{
	return WAY_NS + (dir ? 0 : (i / 640 * 7919u) % 5 * 700000u);
}

static uint64_t delay_of_a_path(unsigned int dir, uint32_t i)
{
	(void)dir;
	return WAY_NS + i * 7919u % 40000;
}

/* Captures of two seconds: the clock of the second one, and the delay of each frame. */
static struct trace_clock clock_of(uint64_t (*other)(uint64_t),
				   uint64_t (*delay)(unsigned int, uint32_t))
{
	char path[2][64], *names[2] = {path[0], path[1]};
	struct trace_clock clock[2];
	struct survey survey;
	unsigned int dir, i;
	uint64_t sent, got;
	FILE *f[2];
	struct built b;

	for (i = 0; i < 2; i++) {
		snprintf(path[i], sizeof(path[i]), "/tmp/weft-trace.%d.%u", (int)getpid(), i);
		f[i] = fopen(path[i], "w");
		assert_non_null(f[i]);
		begin_file(f[i]);
	}
	for (i = 0; i < 20000; i += 10) {
		for (dir = 0; dir < 2; dir++) {
			b = build(dir, i, 200);
			sent = b.sent;
			got = sent + delay(dir, i);
			put_frame(f[dir], &b, DUMP_OUT, dir ? other(sent) : sent);
			put_frame(f[!dir], &b, DUMP_IN, dir ? got : other(got));
		}
	}
	for (i = 0; i < 2; i++)
		fclose(f[i]);
	assert_int_equal(trace_clocks(names, 2, clock, &survey), 0);
	survey_free(&survey);
	assert_true(clock[1].known);
	for (i = 0; i < 2; i++)
		unlink(path[i]);
	return clock[1];
}

static void offset_and_drift_of_clocks_are_found(void **state)
{
	struct trace_clock clock = clock_of(second, delay_of_a_path);
	uint64_t sent;
	unsigned int i;

	(void)state;
	for (i = 0; i < 20000; i += 1000) {
		sent = BEGIN + (uint64_t)i * EVERY_NS;
		assert_in_range(trace_time(&clock, second(sent)) - sent + 5000, 0, 10000);
	}
	assert_true(clock.drift > 35e-6 && clock.drift < 45e-6);
	assert_true(clock.drift_error >= 0 && clock.drift_error < 20e-6);
}

static uint64_t ahead(uint64_t t)
{
	return t + 5000000000u;
}

static void a_drift_needs_stretches_that_agree(void **state)
{
	struct trace_clock clock = clock_of(ahead, delay_on_a_busy_host);

	(void)state;
	assert_true(clock.drift == 0);
	assert_in_range(clock.offset, 5000000000u - 100000, 5000000000u + 100000);
}

static void clocks_that_no_frame_contradicts_are_equal(void **state)
{
	struct trace_clock clock = clock_of(same, delay_on_a_busy_host);

	(void)state;
	assert_true(clock.equal);
	assert_int_equal(clock.offset, 0);
	assert_true(clock.drift == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_are_named_with_their_time),
		cmocka_unit_test(no_fault_hides_another),
		cmocka_unit_test(little_loss_is_an_observation),
		cmocka_unit_test(a_silence_is_the_hosts_if_frames_then_come_at_once),
		cmocka_unit_test(a_longer_path_of_a_busy_host_is_proved_by_its_polls),
		cmocka_unit_test(a_pause_behind_a_stop_does_not_hide_it),
		cmocka_unit_test(pauses_that_a_host_reports_are_observed),
		cmocka_unit_test(frames_that_are_held_and_come_at_once_are_no_longer_path),
		cmocka_unit_test(a_burst_that_is_late_once_is_an_observation),
		cmocka_unit_test(a_later_connection_meets_the_same_mtu),
		cmocka_unit_test(the_last_frames_of_a_lane_meet_its_hole),
		cmocka_unit_test(one_capture_names_no_fault),
		cmocka_unit_test(a_drift_needs_stretches_that_agree),
		cmocka_unit_test(clocks_that_no_frame_contradicts_are_equal),
		cmocka_unit_test(flows_are_bounded),
		cmocka_unit_test(offset_and_drift_of_clocks_are_found),
	};

	return cmocka_run_group_tests_name("dump trace", tests, NULL, NULL);
}
