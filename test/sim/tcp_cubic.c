/* SPDX-License-Identifier: BSD-3-Clause */
/* CUBIC (RFC 9438) as a window of packets; slow start without HyStart. */

#include <math.h>

#include "tcp.h"

#define C 0.4
#define BETA 0.7
#define INITIAL 10

static void cubic_init(union tcp_state *state, struct tcp_window *w)
{
	state->cubic = (struct tcp_cubic_state){.ssthresh = 1e9};
	*w = (struct tcp_window){.cwnd = INITIAL};
}

static void begin_epoch(struct tcp_cubic_state *s, double cwnd, uint64_t now)
{
	s->epoch = now;
	s->w_reno = cwnd;
	s->k = s->w_max > cwnd ? cbrt((s->w_max - cwnd) / C) : 0;
}

static void cubic_acked(union tcp_state *state, struct tcp_window *w, const struct tcp_ack *ack)
{
	struct tcp_cubic_state *s = &state->cubic;
	double t, target;

	if (w->cwnd < s->ssthresh) {
		w->cwnd += ack->acked;
		return;
	}
	if (!s->epoch) {
		s->w_max = w->cwnd;
		begin_epoch(s, w->cwnd, ack->now);
	}
	t = (double)(ack->now - s->epoch + ack->min_rtt_ns) * 1e-9 - s->k;
	target = C * t * t * t + s->w_max;
	if (target > 1.5 * w->cwnd)
		target = 1.5 * w->cwnd;
	s->w_reno += 3 * (1 - BETA) / (1 + BETA) * ack->acked / w->cwnd;
	if (target > w->cwnd)
		w->cwnd += (target - w->cwnd) / w->cwnd * ack->acked;
	if (s->w_reno > w->cwnd)
		w->cwnd = s->w_reno;
}

static void cubic_lost(union tcp_state *state, struct tcp_window *w, uint64_t now)
{
	struct tcp_cubic_state *s = &state->cubic;

	/* Fast convergence: a flow with less than the last time leaves more to others. */
	s->w_max = w->cwnd < s->w_max ? w->cwnd * (1 + BETA) / 2 : w->cwnd;
	w->cwnd = w->cwnd * BETA > 2 ? w->cwnd * BETA : 2;
	s->ssthresh = w->cwnd;
	begin_epoch(s, w->cwnd, now);
}

static void cubic_timeout(union tcp_state *state, struct tcp_window *w, uint64_t now)
{
	cubic_lost(state, w, now);
	state->cubic.epoch = 0;
	w->cwnd = 1;
}

const struct tcp_algorithm tcp_cubic = {"cubic", cubic_init, cubic_acked, cubic_lost,
					cubic_timeout};
