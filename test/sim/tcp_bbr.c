/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BBR, version 1, as Linux has it: the greatest rate of ten rounds and the least round trip of ten
 * seconds make pacing and window; loss changes nothing.
 */

#include <string.h>

#include "tcp.h"

#define INITIAL 10
#define HIGH 2.885
#define WINDOW_GAIN 2.0
#define LEAST 4
#define SEGMENTS_MIN 2
#define SEGMENTS_MAX 43
#define RTT_LIFE (10 * SIM_S)
#define RTT_TIME (200 * SIM_MS)

static const double cycle[] = {1.25, 0.75, 1, 1, 1, 1, 1, 1};

#define PHASES (sizeof(cycle) / sizeof(cycle[0]))

static void bbr_init(union tcp_state *state, struct tcp_window *w)
{
	memset(state, 0, sizeof(*state));
	*w = (struct tcp_window){.cwnd = INITIAL};
}

static double greatest(const struct tcp_bbr_state *s)
{
	double max = 0;
	unsigned int i;

	for (i = 0; i < TCP_BBR_ROUNDS; i++)
		max = s->bw[i] > max ? s->bw[i] : max;
	return max;
}

static void enter_probe_bw(struct tcp_bbr_state *s, uint64_t now)
{
	s->mode = BBR_PROBE_BW;
	s->phase = 2 + s->round % (PHASES - 2);
	s->phase_at = now;
}

static void measure(struct tcp_bbr_state *s, const struct tcp_ack *ack)
{
	bool old = s->min_rtt && ack->now > s->min_rtt_at + RTT_LIFE;

	if (ack->round) {
		s->round++;
		s->bw[s->round % TCP_BBR_ROUNDS] = 0;
	}
	if (ack->rate > s->bw[s->round % TCP_BBR_ROUNDS])
		s->bw[s->round % TCP_BBR_ROUNDS] = ack->rate;
	if (old && s->mode != BBR_PROBE_RTT) {
		s->mode = BBR_PROBE_RTT;
		s->probe_until = ack->now + RTT_TIME;
	}
	if (!s->min_rtt || ack->rtt_ns <= s->min_rtt || old) {
		s->min_rtt = ack->rtt_ns;
		s->min_rtt_at = ack->now;
	}
}

/* The pipe is full when three rounds have not brought a quarter more. */
static void check_full(struct tcp_bbr_state *s, const struct tcp_ack *ack, double bw)
{
	if (s->mode != BBR_STARTUP || !ack->round)
		return;
	if (bw >= s->full_bw * 1.25) {
		s->full_bw = bw;
		s->full_count = 0;
	} else if (++s->full_count >= 3) {
		s->mode = BBR_DRAIN;
	}
}

static void advance(struct tcp_bbr_state *s, const struct tcp_ack *ack, double bdp)
{
	uint64_t in = ack->now - s->phase_at;

	if (s->mode == BBR_DRAIN && ack->inflight <= bdp)
		enter_probe_bw(s, ack->now);
	if (s->mode == BBR_PROBE_RTT && ack->now > s->probe_until)
		enter_probe_bw(s, ack->now);
	if (s->mode != BBR_PROBE_BW)
		return;
	/* What the probe put into the queue is drained, no longer. */
	if (in > s->min_rtt || (s->phase == 1 && ack->inflight <= bdp)) {
		s->phase = (s->phase + 1) % PHASES;
		s->phase_at = ack->now;
	}
}

static double gain(const struct tcp_bbr_state *s)
{
	switch (s->mode) {
	case BBR_STARTUP:
		return HIGH;
	case BBR_DRAIN:
		return 1 / HIGH;
	case BBR_PROBE_BW:
		return cycle[s->phase];
	default:
		return 1;
	}
}

/* What a device gets at once to segment: a millisecond of the rate, and 64 KiB at most. */
static double segments(double pacing)
{
	double n = pacing / 1024 / TCP_PACKET;

	if (n > SEGMENTS_MAX)
		return SEGMENTS_MAX;
	return n < SEGMENTS_MIN ? SEGMENTS_MIN : n;
}

static void bbr_acked(union tcp_state *state, struct tcp_window *w, const struct tcp_ack *ack)
{
	struct tcp_bbr_state *s = &state->bbr;
	double bw, bdp, target;

	measure(s, ack);
	bw = greatest(s);
	bdp = bw * (double)s->min_rtt * 1e-9 / TCP_PACKET;
	check_full(s, ack, bw);
	advance(s, ack, bdp);
	w->pacing = bw * gain(s);
	target = (s->mode == BBR_STARTUP ? HIGH : WINDOW_GAIN) * bdp + 3 * segments(w->pacing);
	if (s->mode == BBR_STARTUP)
		w->cwnd += w->cwnd < target ? ack->acked : 0;
	else
		w->cwnd = w->cwnd + ack->acked < target ? w->cwnd + ack->acked : target;
	if (w->cwnd < LEAST || s->mode == BBR_PROBE_RTT)
		w->cwnd = LEAST;
}

static void bbr_lost(union tcp_state *state, struct tcp_window *w, uint64_t now)
{
	(void)state;
	(void)w;
	(void)now;
}

static void bbr_timeout(union tcp_state *state, struct tcp_window *w, uint64_t now)
{
	(void)state;
	(void)now;
	w->cwnd = LEAST;
}

const struct tcp_algorithm tcp_bbr = {"bbr", bbr_init, bbr_acked, bbr_lost, bbr_timeout};
