/* SPDX-License-Identifier: BSD-3-Clause */

#include "perf/limit.h"

#include <endian.h>
#include <errno.h>

#include <rte_cycles.h>

#define RISES_PER_SECOND 100u
#define REPORTS_PER_SECOND 12u
#define RISE_GROWTH 4u /* a rise is at most N times the last one */
#define REPORT_TURNS 64u

struct more {
	uint64_t total; /* little-endian */
	uint64_t open;  /* 0 = the last one */
};

static uint64_t ns_to_tsc(uint64_t ns)
{
	return (uint64_t)((double)ns * 1e-9 * (double)rte_get_tsc_hz());
}

static void set_rise(struct perf_side *s, uint64_t rise)
{
	s->rise = rise ? rise : 1;
	/* The server must read an announcement before it posts a window of receives, so early. */
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

/* The number of iterations in about 10 ms, at the rate of the run so far. */
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
		/* An announced total must not fall. */
		if (le64toh(m.total) < s->total) {
			cli_error("the client reduced the announced number of iterations");
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
