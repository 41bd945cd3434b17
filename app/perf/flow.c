/* SPDX-License-Identifier: BSD-3-Clause */

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "common/cli.h"
#include "perf/flow.h"

/* ---- names ------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum perf_test test;
} tests[] = {
	{"tag_lat", PERF_TAG_LAT},     {"tag_sync_lat", PERF_TAG_SYNC_LAT},
	{"tag_bw", PERF_TAG_BW},       {"tag_bibw", PERF_TAG_BIBW},
	{"tag_flood", PERF_TAG_FLOOD}, {"raw_lat", PERF_RAW_LAT},
	{"raw_bw", PERF_RAW_BW},       {"am_lat", PERF_AM_LAT},
	{"am_bw", PERF_AM_BW},         {"put_lat", PERF_PUT_LAT},
	{"put_bw", PERF_PUT_BW},       {"get_lat", PERF_GET_LAT},
	{"get_bw", PERF_GET_BW},       {"fadd_lat", PERF_FADD_LAT},
	{"cswap_lat", PERF_CSWAP_LAT},
};

const char *perf_test_name(enum perf_test test)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (tests[i].test == test)
			return tests[i].name;
	return "?";
}

enum perf_test perf_test_named(const char *name)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (!strcmp(tests[i].name, name))
			return tests[i].test;
	return PERF_END;
}

/* ---- figures -------------------------------------------------------------------------------- */

static uint64_t origin_tsc;
static double origin_seconds;

/*
 * The EAL may have the TSC's rate only to within 10 MHz. So measure it against the kernel's clock:
 * the longer the program runs, the more accurate this is.
 */
static double tsc_rate(void)
{
	double seconds = sys_seconds() - origin_seconds;

	return seconds < 0.02 ? (double)rte_get_tsc_hz()
			      : (double)(rte_rdtsc() - origin_tsc) / seconds;
}

void perf_meter_start(struct perf_meter *m)
{
	memset(m, 0, sizeof(*m));
	if (!origin_tsc) {
		origin_seconds = sys_seconds();
		origin_tsc = rte_rdtsc();
	}
	m->start = rte_rdtsc();
	m->last = m->start;
	m->report_time = m->start;
	m->next_tick = m->start + rte_get_tsc_hz();
}

void perf_meter_mark(struct perf_meter *m)
{
	m->report_time = m->last;
	m->report_iters = m->iters;
	m->next_tick = m->last + rte_get_tsc_hz();
}

static double bucket_value(unsigned int index)
{
	unsigned int shift = index >> PERF_HIST_BITS;
	uint64_t low = index & ((1u << PERF_HIST_BITS) - 1);

	if (!shift)
		return (double)low;
	low |= 1u << PERF_HIST_BITS;
	return ((double)low + 0.5) * (double)(1ull << (shift - 1));
}

static double percentile(const struct perf_meter *m, double part)
{
	double want = part * (double)m->iters;
	uint64_t sum = 0;

	for (unsigned int i = 0; i < PERF_HIST_SIZE; i++) {
		sum += m->hist[i];
		if (sum && (double)sum >= want)
			return bucket_value(i);
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double recent_median(const struct perf_meter *m)
{
	uint64_t sorted[PERF_RECENT];
	uint32_t count = m->recent_at < PERF_RECENT ? m->recent_at : PERF_RECENT;

	if (!count)
		return 0;
	memcpy(sorted, m->recent, count * sizeof(sorted[0]));
	qsort(sorted, count, sizeof(sorted[0]), compare);
	return (double)sorted[count / 2];
}

void perf_meter_read(const struct perf_meter *m, struct perf_figures *f)
{
	uint64_t since = m->iters - m->report_iters;
	double hz = tsc_rate();

	memset(f, 0, sizeof(*f));
	f->iters = m->iters;
	if (!m->iters)
		return;
	f->recent_median = recent_median(m) / hz;
	f->overall = (double)(m->last - m->start) / (double)m->iters / hz;
	f->average = since ? (double)(m->last - m->report_time) / (double)since / hz : f->overall;
	f->p50 = percentile(m, 0.5) / hz;
	f->p99 = percentile(m, 0.99) / hz;
	f->p999 = percentile(m, 0.999) / hz;
}

/* ---- contents of messages ------------------------------------------------------------------- */

/*
 * The contents of messages with -V: 64-bit words that depend on the number of the message and the
 * offset of the word. So a byte that is missing, moved, or from another message is detected. Each
 * word is the one before it plus STEP: the compiler generates vector code for that.
 */

#define STEP 0x9e3779b97f4a7c15ull

static uint64_t first_word(uint64_t index)
{
	index = (index + 1) * 0xbf58476d1ce4e5b9ull;
	return index ^ index >> 29;
}

void perf_fill(void *buffer, uint64_t size, uint64_t index)
{
	uint64_t *words = buffer, first = first_word(index), last;
	uint64_t count = size / 8;

	for (uint64_t i = 0; i < count; i++)
		words[i] = first + i * STEP;
	last = first + count * STEP;
	if (size % 8)
		memcpy(words + count, &last, size % 8);
}

bool perf_check(const void *buffer, uint64_t size, uint64_t index)
{
	const uint64_t *words = buffer;
	uint64_t first = first_word(index), last, wrong = 0;
	uint64_t count = size / 8;

	for (uint64_t i = 0; i < count; i++)
		wrong |= words[i] ^ (first + i * STEP);
	last = first + count * STEP;
	return !wrong && (!(size % 8) || memcmp(words + count, &last, size % 8) == 0);
}

/* ---- the length of a run -------------------------------------------------------------------- */

#define RISES_PER_SECOND 100u
#define REPORTS_PER_SECOND 12u
#define RISE_GROWTH 4u /* the quotient of two successive rises, at most */
#define REPORT_TURNS 64u

struct more {
	uint64_t total; /* little-endian */
	uint64_t open;  /* 0 = this total is final */
};

static uint64_t ns_to_tsc(uint64_t ns)
{
	return (uint64_t)((double)ns * 1e-9 * (double)rte_get_tsc_hz());
}

static void set_rise(struct perf_side *s, uint64_t rise)
{
	s->rise = rise ? rise : 1;
	/* The server needs the new total before it posts the next window of receives. */
	s->margin = s->peer->server ? 2 * s->run->window + 16 : s->rise / 2;
}

void perf_limit_begin(struct perf_side *s)
{
	s->open = s->run->limit_ns != 0;
	s->total = s->run->iters;
	s->fixed = false;
	s->seen = 0;
	s->begin = rte_rdtsc();
	s->deadline = s->begin + ns_to_tsc(s->run->limit_ns);
	s->next_report = s->begin;
	set_rise(s, s->total);
}

void perf_limit_rounds(struct perf_side *s, uint64_t length)
{
	if (!s->open)
		return;
	s->fixed = true;
	s->rise = length;
	s->total = 0;
	s->margin = 0;
}

/* Iterations in about 10 ms at the rate of the run so far. */
static uint64_t next_rise(const struct perf_side *s, uint64_t now)
{
	uint64_t most = RISE_GROWTH * s->rise, done = s->meter ? s->meter->iters : 0;
	double want;

	if (!done || now <= s->begin)
		return s->rise;
	want = (double)done * (double)rte_get_tsc_hz() / RISES_PER_SECOND /
	       (double)(now - s->begin);
	return want < (double)most ? (uint64_t)want : most;
}

static int announce(struct perf_side *s)
{
	struct more m = {.total = htole64(s->total), .open = htole64(s->open)};

	return peer_send(s->peer, OOB_MORE, &m, sizeof(m)) ? -ECANCELED : 0;
}

static int raise_total(struct perf_side *s)
{
	uint64_t now = rte_rdtsc();

	if (now >= s->deadline) {
		s->open = false;
	} else {
		if (!s->fixed)
			set_rise(s, next_rise(s, now));
		s->total += s->rise;
	}
	return announce(s);
}

static int take_total(struct perf_side *s)
{
	struct more m;

	while (s->open && oob_next(s->peer->oob)) {
		if (peer_take(s->peer, OOB_MORE, &m, sizeof(m)))
			return -ECANCELED;
		if (le64toh(m.total) < s->total) {
			cli_error("the client reduced the announced number of iterations; are both "
				  "ends the same version?");
			peer_fail(s->peer, APP_PEER);
			return -ECANCELED;
		}
		s->total = le64toh(m.total);
		s->open = m.open;
	}
	return 0;
}

int perf_limit_look(struct perf_side *s, uint64_t done)
{
	if (s->peer->server)
		return take_total(s);
	while (perf_limit_near(s, done))
		if (raise_total(s))
			return -ECANCELED;
	return 0;
}

int perf_limit_report(struct perf_side *s, uint64_t received)
{
	uint64_t now, wire = htole64(received);

	if (!s->peer->server || ++s->turns % REPORT_TURNS)
		return 0;
	now = rte_rdtsc();
	if (now < s->next_report)
		return 0;
	s->next_report = now + rte_get_tsc_hz() / REPORTS_PER_SECOND;
	return peer_send(s->peer, OOB_SEEN, &wire, sizeof(wire)) ? -ECANCELED : 0;
}

int perf_limit_seen(struct perf_side *s)
{
	uint64_t wire;

	while (oob_next(s->peer->oob) == OOB_SEEN) {
		if (peer_take(s->peer, OOB_SEEN, &wire, sizeof(wire)))
			return -ECANCELED;
		s->seen = le64toh(wire);
	}
	return 0;
}

/* ---- windows of operations ------------------------------------------------------------------ */

void perf_flow_init(struct perf_flow *f, struct perf_side *side)
{
	f->side = side;
	f->peer = side->peer;
	f->run = side->run;
	f->validate = side->run->flags & PERF_F_VALIDATE;
}

struct perf_slot *perf_flow_slots(struct perf_flow *f, unsigned int count, weft_complete_cb cb,
				  void *buffers, uint64_t stride, struct weft_mem *mem)
{
	struct perf_slot *slots = calloc(count, sizeof(*slots));

	for (unsigned int i = 0; slots && i < count; i++) {
		slots[i].flow = f;
		slots[i].buffer = (char *)buffers + i * stride;
		slots[i].params =
			WEFT_INIT(struct weft_op_params, .cb = cb, .cb_arg = &slots[i], .mem = mem);
	}
	return slots;
}

/* Each byte is written, so that the measurement includes no page faults. */
void *perf_flow_memory(uint64_t length, int value)
{
	void *memory;

	if (posix_memalign(&memory, 4096, length))
		return NULL;
	return memset(memory, value, length);
}

int perf_flow_register(const struct perf_flow *f, void *memory, uint64_t length,
		       struct weft_mem **mem)
{
	struct weft_mem_params params = WEFT_INIT(struct weft_mem_params);

	if (!(f->run->flags & PERF_F_REGISTERED))
		return 0;
	return weft_mem_register(f->peer->ctx, memory, length, &params, mem);
}

int perf_flow_finish(struct perf_flow *f, int ret, struct weft_request *req)
{
	while (ret == WEFT_INPROGRESS) {
		if (perf_flow_turn(f))
			break;
		ret = weft_request_test(req, NULL);
	}
	weft_request_free(req);
	if (ret < 0 && !f->error)
		f->error = ret;
	return ret ? -ECANCELED : 0;
}

int perf_flow_wait_more(struct perf_flow *f, uint64_t done)
{
	struct perf_side *s = f->side;

	if (perf_limit_look(s, done))
		return -ECANCELED;
	while (s->open && done >= s->total)
		if (perf_flow_turn(f) || perf_limit_look(s, done))
			return -ECANCELED;
	return done < s->total;
}

static int flush_one(struct perf_flow *f, struct weft_ep *ep)
{
	struct weft_request *req = NULL;
	int ret = weft_ep_flush(ep, NULL, &req);

	return perf_flow_finish(f, ret, req);
}

int perf_flow_flush(struct perf_flow *f)
{
	int ret = flush_one(f, f->peer->ep);

	for (unsigned int i = 0; !ret && i < f->peer->num_more; i++)
		ret = flush_one(f, f->peer->more[i]);
	return ret;
}

void perf_flow_stop(struct perf_flow *f)
{
	if (f->side->meter && !perf_is_latency(f->run->test))
		f->side->meter->last = rte_rdtsc();
}

void perf_flow_sent(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct perf_slot *slot = arg;

	(void)req;
	slot->busy = false;
	slot->flow->out--;
	if (c->status)
		slot->flow->error = c->status;
}
