/* SPDX-License-Identifier: BSD-3-Clause */
/* Histories of lanes in files of the flight recorder: their text, and the delays that they show. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dump/anomaly.h"
#include "dump/clock.h"
#include "dump/delay.h"
#include "dump/history.h"
#include "dump/past.h"
#include "dump/trace.h"

#define BEGIN 1700000000000000000ull
#define EACH (1ull << 24)
#define SLOTS 100u
#define CHANGE 60u

/* ---- text ----------------------------------------------------------------------------------- */

static bool reads(struct history *h, const char *text)
{
	return history_read(h, 1, text, strlen(text), BEGIN);
}

static void missed_frames_are_read(void **state)
{
	struct history h = {0};

	(void)state;
	assert_true(reads(&h, "missed 12: the receive buffer was full"));
	assert_true(reads(&h, "missed 4294967295: more"));
	assert_true(reads(&h, "missed 4294967296: too many"));
	assert_true(reads(&h, "missed -1: none"));
	assert_true(reads(&h, "missed 12"));
	assert_true(reads(&h, "missed :"));
	assert_int_equal(h.num_missed, 2);
	assert_int_equal(h.missed[0].count, 12);
	assert_int_equal(h.missed[0].iface, 1);
	assert_int_equal(h.missed[0].time, BEGIN);
	assert_int_equal(h.missed[1].count, UINT32_MAX);
	for (unsigned int i = 0; i < 2 * HISTORY_MISSED; i++)
		assert_true(reads(&h, "missed 1: the receive buffer was full"));
	assert_int_equal(h.num_missed, HISTORY_MISSED);
	history_free(&h);
}

static void slots_of_a_line_are_read(void **state)
{
	struct history h = {0};

	(void)state;
	assert_false(reads(&h, "hw_counters mlx5_0 1/x=3"));
	assert_true(reads(&h, "history delays of 00000007 11223344 path 3 zero 1000 from 1700 each "
			      "16: -40*2 - 70*4095"));
	assert_true(reads(&h, "history counts from 1700 each 16: 1/2/3/4/5/6/7 - 8/0/0/0/0/0/1"));
	assert_int_equal(h.num, 2);
	assert_int_equal(h.series[0].iface, 1);
	assert_int_equal(h.series[0].conn, 7);
	assert_int_equal(h.series[0].token, 0x11223344);
	assert_int_equal(h.series[0].path, 3);
	assert_int_equal(h.series[0].from, 1700);
	assert_int_equal(h.series[0].num, 3);
	assert_int_equal(h.series[0].slot[0].delay, 960);
	assert_false(h.series[0].slot[1].known);
	assert_int_equal(h.series[0].slot[2].samples, 4095);
	assert_true(h.series[1].counts);
	assert_int_equal(h.series[1].slot[0].count[HISTORY_CONNS], 7);
	assert_false(h.series[1].slot[1].known);
	assert_int_equal(h.series[1].slot[2].count[HISTORY_SENT], 8);
	assert_int_equal(h.series[1].slot[2].count[HISTORY_LATE], 0);
	assert_true(
		reads(&h, "history counts from 1700 each 16: 1/2/3/4/5/6/7/8/9 1/2/3/4/5/6/7/8"));
	assert_int_equal(h.series[2].slot[0].count[HISTORY_LATE], 8);
	assert_int_equal(h.series[2].slot[0].count[HISTORY_STOPPED], 9);
	assert_false(h.series[2].slot[1].known);
	history_free(&h);
}

/* What an author of a file may write: nothing of it is read outside of the table. */
static void other_texts_are_left_out(void **state)
{
	static const char *const bad[] = {
		"history ",
		"history of the world",
		"history counts from 1 each 0: 1/2/3/4/5/6/7",
		"history counts from 1 each 99999999999999999999: 1/2/3/4/5/6/7",
		"history counts from 18446744073709551615 each 16: 1/2/3/4/5/6/7",
		"history counts from -1 each 16: 1/2/3/4/5/6/7",
		"history counts from 1 each 16",
		"history delays of 1 2 path 3 zero 4 from 5 each",
	};
	static const char *const odd[] = {
		"history counts from 1 each 16: 1/2/3/4/5/6 1/2/3/4/5/6/7/8 x/// /",
		"history delays of 1 2 path 3 zero 4 from 5 each 6: * 1* *2 99999999999999999999",
	};
	static char text[40000];
	struct history h = {0};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		reads(&h, bad[i]);
		assert_int_equal(h.num, 0);
	}
	for (i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		assert_true(reads(&h, odd[i]));
		assert_int_equal(h.num, i + 1);
		assert_false(h.series[i].slot[0].known);
		assert_false(h.series[i].slot[1].known);
	}
	strcpy(text, "history counts from 1 each 16:");
	for (i = 0; i < 1000; i++)
		strcat(text, " 1/2/3/4/5/6/7");
	assert_true(reads(&h, text));
	assert_int_equal(h.series[2].num, HISTORY_SLOTS);
	for (i = 0; i < 2 * HISTORY_SERIES; i++)
		assert_true(reads(&h, text));
	assert_int_equal(h.num, HISTORY_SERIES);
	history_free(&h);
}

/* ---- delays --------------------------------------------------------------------------------- */

/* A lane between files 0 and 1, flow 0 to file 1 and flow 1 back, and another lane's flow 2. */
static struct trace *lanes(struct survey *s, struct trace_clock *clock)
{
	struct trace *t = trace_make(2);
	unsigned int i;

	assert_non_null(t);
	t->num_flows = 3;
	for (i = 0; i < 3; i++) {
		t->flow[i].dst_conn = 10 + i;
		t->flow[i].token = 20 + i;
		t->flow[i].other = i == 2 ? TRACE_NONE : 1 - i;
		t->flow[i].out = (struct trace_port){.file = i == 1, .iface = i / 2, .known = true};
		t->flow[i].in = (struct trace_port){.file = i != 1, .iface = i / 2, .known = true};
		t->flow[i].min_delay = INT64_MAX;
		t->flow[i].came = calloc(2 * TRACE_SAMPLES, sizeof(*t->flow[i].came));
		t->flow[i].gone = t->flow[i].came + TRACE_SAMPLES;
		t->flow[i].floors = calloc(1, sizeof(*t->flow[i].floors));
		assert_true(t->flow[i].came && t->flow[i].floors);
		t->flow[i].floors->interval = TRACE_FLOOR_NS;
		s->file[i % 2].recorder = true;
	}
	t->survey = s;
	t->clock = clock;
	s->done = true;
	return t;
}

/*
 * The delays of a flow, a slot each: those of a busy host differ by up to @p busy, and come @p more
 * late behind the change. Where @p wrap is set the clocks differ by half of 2^32 ns.
 */
static void add(const struct trace *t, unsigned int flow, int more, int busy, bool wrap)
{
	const struct trace_flow *f = &t->flow[flow];
	struct survey_file *file = &t->survey->file[f->in.file];
	char text[4000];
	unsigned int i;
	size_t n;

	n = (size_t)snprintf(text, sizeof(text),
			     "history delays of %08x %08x path 0 zero %u from %llu each %llu:",
			     f->dst_conn, f->token, wrap ? UINT32_MAX : 5000, BEGIN, EACH);
	for (i = 0; i < SLOTS; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %d*3",
				      (int)(i * 7919 % 10) * (busy / 10) +
					      (i >= CHANGE ? more : 0));
	assert_true(history_read(&file->history, f->in.iface, text, n, 0));
}

/* Delays of 1 to 4 ms more behind the change, in @p slow of ten slots; else they are 0. */
static void add_jitter(const struct trace *t, unsigned int flow, unsigned int slow)
{
	const struct trace_flow *f = &t->flow[flow];
	char text[4000];
	unsigned int i;
	size_t n;

	n = (size_t)snprintf(text, sizeof(text),
			     "history delays of %08x %08x path 0 zero 5000 from %llu each %llu:",
			     f->dst_conn, f->token, BEGIN, EACH);
	for (i = 0; i < SLOTS; i++)
		n += (size_t)snprintf(
			text + n, sizeof(text) - n, " %d*3",
			i >= CHANGE && i % 10 < slow ? 1000000 + (int)(i * 7919 % 10) * 333333 : 0);
	assert_true(history_read(&t->survey->file[f->in.file].history, f->in.iface, text, n, 0));
}

/* Slots of a flow, in ns, whose delays are @p more late behind the change. */
static void add_slots(const struct trace *t, unsigned int flow, const int *slot, int more)
{
	const struct trace_flow *f = &t->flow[flow];
	char text[4000];
	unsigned int i;
	size_t n;

	n = (size_t)snprintf(text, sizeof(text),
			     "history delays of %08x %08x path 0 zero 5000 from %llu each %llu:",
			     f->dst_conn, f->token, BEGIN, EACH);
	for (i = 0; i < SLOTS; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %d*3",
				      slot[i] + (i >= CHANGE ? more : 0));
	assert_true(history_read(&t->survey->file[f->in.file].history, f->in.iface, text, n, 0));
}

static struct trace_delay found;

/* @return whether flow 0 is delayed: it and the other lane to its host have these slots */
static bool delayed_slots(const int *own, int more, const int *other, int more_of_other)
{
	static struct survey_file file[2];
	struct trace_clock clock[2] = {{0}};
	struct survey s = {.file = file, .num = 2};
	struct trace *t = lanes(&s, clock);
	bool yes;

	add_slots(t, 0, own, more);
	add_slots(t, 2, other, more_of_other);
	yes = past_delayed(t, &t->flow[0], &found);
	history_free(&file[0].history);
	history_free(&file[1].history);
	trace_free(t);
	return yes;
}

/* Of the slots before the change few are faster than half of the rise, but all are below its floor.
 */
static void a_floor_that_all_slots_before_are_below_is_a_rise(void **state)
{
	int own[SLOTS], other[SLOTS];
	unsigned int i;

	(void)state;
	for (i = 0; i < SLOTS; i++) {
		own[i] = i % 20 == 3 ? 0 : 3000000 + (int)(i * 7919 % 10) * 100000;
		other[i] = i % 8 == 3 ? 0 : 6000000;
	}
	for (i = CHANGE; i < SLOTS; i++)
		own[i] = i % 3 ? 0 : 4000000;
	assert_true(delayed_slots(own, 4500000, other, 0));
	assert_int_equal(found.after, 4500000);
	assert_int_equal(found.time, BEGIN + CHANGE * EACH);
	/* Most slots before the change are above the floor, too. */
	for (i = 0; i < CHANGE; i++)
		own[i] += i % 20 == 3 ? 0 : 3000000;
	assert_false(delayed_slots(own, 4500000, other, 0));
}

/*
 * A busy host is late by the same time on both of its lanes, and seldom by less than 2 ms: the
 * floor alone proves nothing.
 */
static void two_lanes_of_a_busy_host_show_a_longer_path(void **state)
{
	int own[SLOTS], other[SLOTS];
	unsigned int i;

	(void)state;
	for (i = 0; i < SLOTS; i++) {
		other[i] = i % 25 == 3 ? 0 : 2500000 + (int)(i * 7919 % 64) * 100000;
		own[i] = other[i] + (int)(i * 31 % 7) * 100000;
	}
	assert_true(delayed_slots(own, 2000000, other, 0));
	assert_in_range(found.after, 1800000, 2200000);
	assert_int_equal(found.time, BEGIN + CHANGE * EACH);
	assert_false(delayed_slots(own, 2000000, other, 2000000));
	assert_false(delayed_slots(own, 0, other, 0));
	assert_false(delayed_slots(other, 0, own, 2000000));
}

/* @return whether flow 0 was delayed: its delays are @p more, those of the others @p others more */
static bool delayed(int more, int others, int busy, bool wrap)
{
	static struct survey_file file[2];
	struct trace_clock clock[2] = {{0}};
	struct survey s = {.file = file, .num = 2};
	struct trace *t = lanes(&s, clock);
	bool yes;

	add(t, 0, more, busy, wrap);
	add(t, 1, others, busy, false);
	add(t, 2, others, busy, wrap);
	yes = past_delayed(t, &t->flow[0], &found);
	assert_false(past_delayed(t, &t->flow[1], &(struct trace_delay){0}));
	history_free(&file[0].history);
	history_free(&file[1].history);
	trace_free(t);
	return yes;
}

static void a_longer_path_is_found_in_the_history(void **state)
{
	(void)state;
	assert_true(delayed(5000000, 0, 3000000, false));
	assert_int_equal(found.after, 5000000);
	assert_int_equal(found.time, BEGIN + CHANGE * EACH);
	assert_true(delayed(1000000, 0, 500000, true));
	assert_int_equal(found.after, 1000000);
}

/*
 * With jitter most slots behind the change are far from its floor. Of the other flows a part of the
 * slots is slow, too.
 */
static bool jitters(unsigned int slow_of_others)
{
	static struct survey_file file[2];
	struct trace_clock clock[2] = {{0}};
	struct survey s = {.file = file, .num = 2};
	struct trace *t = lanes(&s, clock);
	bool yes;

	add_jitter(t, 0, 10);
	add_jitter(t, 1, slow_of_others);
	add_jitter(t, 2, slow_of_others);
	yes = past_delayed(t, &t->flow[0], &found);
	history_free(&file[0].history);
	history_free(&file[1].history);
	trace_free(t);
	return yes;
}

static void jitter_is_found_if_other_flows_are_fast_too_often_for_chance(void **state)
{
	(void)state;
	assert_true(jitters(5));
	assert_int_equal(found.after, 1000000);
	assert_int_equal(found.time, BEGIN + CHANGE * EACH);
	assert_false(jitters(9));
	assert_false(jitters(10));
}

/* A host that gets busy makes all frames to it late, and perhaps those to the other one. */
static void a_busy_host_is_no_longer_path(void **state)
{
	(void)state;
	assert_false(delayed(5000000, 5000000, 3000000, false));
	assert_false(delayed(0, 0, 3000000, false));
	assert_false(delayed(500000, 0, 100000, false));
}

/*
 * Slots of frames of flow 0, of 5 ms and more behind the tenth, and proved; of flow 1 they are fast
 * in @p fast slots. Another lane has no frames.
 */
static bool delayed_one_way(unsigned int slow, unsigned int fast, bool recorder)
{
	struct trace_clock clock[2] = {{0}};
	static struct survey_file file[2];
	struct survey s = {.file = file, .num = 2};
	struct trace *t = lanes(&s, clock);
	struct trace_floor *own = t->flow[0].floors->slot, *back = t->flow[1].floors->slot;
	struct trace_delay d = {0};
	unsigned int i;
	bool slower;

	for (i = 0; i < 10 + slow; i++) {
		own[i] = (struct trace_floor){.frames = 2,
					      .first = BEGIN + i * 20000000ull,
					      .least = i < 10 ? 100000 : 5000000 + i,
					      .proved = i < 10 ? 0 : 3000000};
		if (i >= 10 && i < 10 + fast)
			back[i] = (struct trace_floor){
				.frames = 2, .first = own[i].first, .least = 90000};
	}
	t->flow[0].min_delay = 100000;
	t->flow[1].min_delay = 90000;
	s.file[0].recorder = s.file[1].recorder = recorder;
	slower = trace_delayed(t, &t->flow[0], &d);
	assert_true(!slower || (d.of_path && d.time == own[10].first && d.after == 5000010));
	trace_free(t);
	return slower;
}

static void the_other_way_shows_a_longer_path(void **state)
{
	(void)state;
	assert_true(delayed_one_way(4, 4, true));
	assert_true(delayed_one_way(12, 6, true));
	assert_false(delayed_one_way(3, 3, true));
	assert_false(delayed_one_way(12, 3, true)); /* both ways may be slow */
	assert_false(delayed_one_way(12, 6, false));
}

/* ---- counts --------------------------------------------------------------------------------- */

/*
 * Counts of a lane of file @p file: in each slot behind the change again, twice, and damaged. In
 * slot @p lowered a connection goes on with smaller frames.
 */
static void add_counts(const struct trace *t, uint8_t file, unsigned int again, unsigned int twice,
		       unsigned int damaged, unsigned int lowered, unsigned int conns)
{
	char text[4000];
	unsigned int i;
	size_t n = (size_t)snprintf(text, sizeof(text),
				    "history counts from %llu each %llu:", BEGIN, EACH);

	for (i = 0; i < SLOTS; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " 20/20/%u/%u/%u/%u/%u",
				      i < CHANGE ? 0 : again, i < CHANGE ? 0 : twice,
				      i < CHANGE ? 0 : damaged, i == lowered, conns);
	assert_true(history_read(&t->survey->file[file].history, 0, text, n, 0));
}

static struct past_loss loss;
static uint64_t damaged_since;

/* @return whether flow 0 has lost frames: @p again of them are sent again in each slot */
static bool lost(unsigned int again, unsigned int twice, unsigned int conns)
{
	static struct survey_file file[2];
	struct trace_clock clock[2] = {{0}};
	struct survey s = {.file = file, .num = 2};
	struct trace *t = lanes(&s, clock);
	bool yes;

	add_counts(t, 0, again, 0, 0, SLOTS, conns);
	add_counts(t, 1, 0, twice, 3, SLOTS, conns);
	yes = past_lost(t, &t->flow[0], &loss);
	assert_false(past_lost(t, &t->flow[1], &(struct past_loss){0}));
	damaged_since = past_since(t, &t->flow[0].in, HISTORY_DAMAGED);
	assert_int_equal(past_since(t, &t->flow[0].out, HISTORY_DAMAGED), 0);
	history_free(&file[0].history);
	history_free(&file[1].history);
	trace_free(t);
	return yes;
}

/* Frames of the last 0.1 s are left out: they may still arrive. */
static void frames_that_are_sent_again_and_come_once_were_lost(void **state)
{
	(void)state;
	assert_true(lost(2, 0, 2));
	assert_int_equal(loss.since, BEGIN + CHANGE * EACH);
	assert_int_equal(damaged_since, BEGIN + CHANGE * EACH);
	assert_int_equal(loss.frames, 2 * (SLOTS - CHANGE - 6));
	assert_false(lost(2, 2, 2));
	assert_false(lost(0, 0, 2));
}

/* With several peers the counts of one end are not those of the other one. */
static void counts_of_several_peers_are_not_compared(void **state)
{
	(void)state;
	assert_false(lost(2, 0, 3));
	assert_int_equal(damaged_since, 0);
}

/* ---- MTU ------------------------------------------------------------------------------------ */

static struct trace_anomaly named;

/*
 * Flow 0 has lost five frames of 1400 bytes, and @p others of 100; none longer than 1300 came.
 * @param lowered  the slot in which its sender finds a smaller MTU; SLOTS = it does not
 * @return verdicts; the first one is in `named`
 */
static unsigned int with_mtu(unsigned int others, unsigned int lowered)
{
	static struct trace_anomaly a[TRACE_ANOMALIES];
	static struct survey_file file[2];
	struct trace_clock clock[2] = {{0}};
	struct survey s = {.file = file, .num = 2};
	struct trace *t = lanes(&s, clock);
	struct trace_flow *f = &t->flow[0];
	unsigned int n, i;

	add_counts(t, 0, 0, 0, 0, lowered, 2);
	add_counts(t, 1, 0, 0, 0, SLOTS, 2);
	for (i = 0; i < 5 + others; i++)
		f->gone[i] = (struct trace_sample){.time = BEGIN + (SLOTS - 20 + i) * EACH,
						   .len = i < 5 ? 1400 : 100};
	f->num_gone = (unsigned int)(f->lost = f->runs = 5 + others);
	f->judged = 700;
	f->first_lost = f->gone[0].time;
	f->lost_min = others ? 100 : 1400;
	f->came_max_since = 1300;
	f->large_came_at = others ? f->gone[5].time : 0;
	n = trace_verdicts(a, trace_anomalies(t, a));
	named = a[0];
	history_free(&file[0].history);
	history_free(&file[1].history);
	trace_free(t);
	return n;
}

/* A search for the MTU, whose first losses are older than the frames of the file. */
static void long_frames_are_lost_by_the_mtu_that_their_sender_has_found(void **state)
{
	(void)state;
	assert_int_equal(with_mtu(0, CHANGE), 1);
	assert_int_equal(named.fault, FAULT_PATH_MTU);
	assert_int_equal(named.time, BEGIN + CHANGE * EACH);
	assert_int_equal(with_mtu(1, CHANGE), 0);
	assert_int_equal(with_mtu(0, SLOTS), 1);
	assert_int_equal(named.fault, FAULT_RANDOM_LOSS);
}

/* @return the fault that the history alone shows: frames are sent again from the change on */
static enum trace_fault by_history(unsigned int lowered)
{
	static struct trace_anomaly a[TRACE_ANOMALIES];
	static struct survey_file file[2];
	struct trace_clock clock[2] = {{0}};
	struct survey s = {.file = file, .num = 2};
	struct trace *t = lanes(&s, clock);
	unsigned int n;

	add_counts(t, 0, 2, 0, 0, lowered, 2);
	add_counts(t, 1, 0, 0, 0, SLOTS, 2);
	n = trace_verdicts(a, trace_anomalies(t, a));
	history_free(&file[0].history);
	history_free(&file[1].history);
	trace_free(t);
	assert_int_equal(n, 1);
	assert_int_equal(a[0].time, BEGIN + CHANGE * EACH);
	return a[0].fault;
}

static void losses_before_a_smaller_mtu_are_that_mtu(void **state)
{
	(void)state;
	assert_int_equal(by_history(SLOTS), FAULT_BURST_LOSS);
	assert_int_equal(by_history(CHANGE + 10), FAULT_PATH_MTU);
	assert_int_equal(by_history(CHANGE - 10), FAULT_BURST_LOSS);
}

/* ---- hosts ---------------------------------------------------------------------------------- */

/*
 * Slots of host 0, which did not poll for @p late us of each; it has @p frames in each. Before slot
 * CHANGE it did not poll for @p stopped us, in @p silent slots without counts.
 * @return verdicts and observations; the first one is in `named`
 */
static unsigned int host(unsigned int late, unsigned int stopped, unsigned int silent,
			 unsigned int frames)
{
	static struct trace_anomaly a[TRACE_ANOMALIES];
	static struct survey_file file[2];
	struct trace_clock clock[2] = {{0}};
	struct survey s = {.file = file, .num = 2};
	struct trace *t = lanes(&s, clock);
	unsigned int n, i;
	char text[8000];
	size_t len = (size_t)snprintf(text, sizeof(text),
				      "history counts from %llu each %llu:", BEGIN, EACH);

	for (i = 0; i < SLOTS; i++)
		len += (size_t)(i < CHANGE && i + silent >= CHANGE
					? snprintf(text + len, sizeof(text) - len, " -")
					: snprintf(text + len, sizeof(text) - len,
						   " %u/%u/0/0/0/0/2/%u/%u", frames, frames,
						   late + (i == CHANGE ? stopped : 0),
						   i == CHANGE ? stopped : 0));
	assert_true(history_read(&file[0].history, 0, text, len, 0));
	n = trace_anomalies(t, a);
	trace_verdicts(a, n);
	named = a[0];
	history_free(&file[0].history);
	trace_free(t);
	return n;
}

static void a_host_that_often_did_not_poll_is_an_observation(void **state)
{
	(void)state;
	assert_int_equal(host(8000, 0, 0, 20), 1);
	assert_int_equal(named.fault, FAULT_SLOW_RECEIVER);
	assert_true(named.observation);
	assert_int_equal(named.host, 0);
	assert_int_equal(named.time, BEGIN);
	assert_in_range((int)(1000 * named.share), 470, 480);
	assert_non_null(strstr(named.text, "by its history it did not poll 47."));
	assert_int_equal(host(800, 0, 0, 20), 0);
	assert_int_equal(host(0, 0, 0, 20), 0);
}

static void a_stop_is_found_in_the_history(void **state)
{
	(void)state;
	assert_int_equal(host(0, 300000, 18, 20), 1);
	assert_int_equal(named.fault, FAULT_STOPPED_PEER);
	assert_false(named.observation);
	assert_int_equal(named.host, 0);
	assert_in_range(named.time + 300000000, BEGIN + CHANGE * EACH, BEGIN + (CHANGE + 1) * EACH);
	assert_non_null(strstr(named.text, "silent for 300.000 ms"));
	/* Its lanes had no frames, or the time of the stop is not known. */
	assert_int_equal(host(0, 300000, 18, 0), 0);
	assert_int_equal(host(0, 300000, 30, 20), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missed_frames_are_read),
		cmocka_unit_test(slots_of_a_line_are_read),
		cmocka_unit_test(other_texts_are_left_out),
		cmocka_unit_test(a_longer_path_is_found_in_the_history),
		cmocka_unit_test(jitter_is_found_if_other_flows_are_fast_too_often_for_chance),
		cmocka_unit_test(a_busy_host_is_no_longer_path),
		cmocka_unit_test(a_floor_that_all_slots_before_are_below_is_a_rise),
		cmocka_unit_test(two_lanes_of_a_busy_host_show_a_longer_path),
		cmocka_unit_test(frames_that_are_sent_again_and_come_once_were_lost),
		cmocka_unit_test(counts_of_several_peers_are_not_compared),
		cmocka_unit_test(long_frames_are_lost_by_the_mtu_that_their_sender_has_found),
		cmocka_unit_test(losses_before_a_smaller_mtu_are_that_mtu),
		cmocka_unit_test(a_host_that_often_did_not_poll_is_an_observation),
		cmocka_unit_test(a_stop_is_found_in_the_history),
		cmocka_unit_test(the_other_way_shows_a_longer_path),
	};

	return cmocka_run_group_tests_name("dump history", tests, NULL, NULL);
}
