/* SPDX-License-Identifier: BSD-3-Clause */

#include "rndv/port.h"

#define RTT_MOST 1000000000u /* ns */

static void set_window(struct weft_pull_port *p)
{
	double slack = p->rate * p->slack * 1e-9;

	if (slack > WEFT_PULL_SLACK_BYTES)
		slack = WEFT_PULL_SLACK_BYTES;
	p->window = (uint64_t)(p->rate * p->rtt * 1e-9 + slack) + 1;
}

static void set_slack(struct weft_pull_port *p, uint64_t slack)
{
	if (slack > WEFT_PULL_SLACK_MAX)
		slack = WEFT_PULL_SLACK_MAX;
	p->slack = slack < WEFT_PULL_SLACK_MIN ? WEFT_PULL_SLACK_MIN : (uint32_t)slack;
	set_window(p);
}

void weft_pull_port_init(struct weft_pull_port *p, double rate)
{
	*p = (struct weft_pull_port){.rate = rate > 0 ? rate : 1e9, .spare = true};
	set_slack(p, WEFT_PULL_SLACK_FIRST);
}

void weft_pull_port_rtt(struct weft_pull_port *p, uint32_t rtt_ns)
{
	bool much;

	if (rtt_ns == 0 || (p->rtt != 0 && rtt_ns >= p->rtt))
		return;
	rtt_ns = rtt_ns < RTT_MOST ? rtt_ns : RTT_MOST;
	much = p->rtt == 0 || rtt_ns < p->rtt / 2;
	p->rtt = rtt_ns;
	/* The slack of a much longer path does not fit this one. */
	if (much)
		set_slack(p, WEFT_PULL_SLACK_FIRST + rtt_ns / 2);
	else
		set_window(p);
}

/*
 * All that the greatest slack allows was requested, and less came than the rate. If this lasts for
 * WEFT_PULL_LOW, that is the rate.
 */
static void judge_rate(struct weft_pull_port *p, double rate, uint64_t ns)
{
	if (p->slack < WEFT_PULL_SLACK_MAX) {
		p->low_ns = 0;
		p->low_rate = 0;
		return;
	}
	if (rate > p->low_rate)
		p->low_rate = rate;
	p->low_ns += ns;
	if (p->low_ns < WEFT_PULL_LOW || p->low_rate <= 0)
		return;
	p->rate = p->low_rate;
	p->low_ns = 0;
	p->low_rate = 0;
}

static void judge_round_trip(struct weft_pull_port *p, double rate, uint64_t ns)
{
	/* The path may have become longer; no path is longer than a second. */
	if (p->rtt < RTT_MOST)
		p->rtt += p->rtt >> 10;
	if (rate < p->rate / 32 * 28) {
		judge_rate(p, rate, ns);
		set_slack(p,
			  rate < p->rate / 2 ? 2ull * p->slack : (uint64_t)p->slack + p->slack / 4);
	} else if (rate > p->rate / 32 * 30) {
		set_slack(p, p->slack - p->slack / 8);
	}
}

void weft_pull_port_came(struct weft_pull_port *p, uint64_t n, bool waiting, uint64_t now)
{
	uint64_t ns = now - p->at, span = 2ull * (p->rtt + p->slack);
	double rate;

	p->came += n;
	p->spare |= !waiting;
	if (ns < WEFT_PULL_SPAN || ns < span)
		return;
	/*
	 * Over two spans: bytes that a descheduled receiver finds in its ring did not arrive in the
	 * short time in which it polls them.
	 */
	rate = (double)(p->came + p->before_came) * 1e9 / (double)(ns + p->before_ns);
	if (p->before_ns != 0 && rate > p->rate) {
		p->rate = rate;
		set_window(p);
	}
	if (!p->spare)
		judge_round_trip(p, (double)p->came * 1e9 / (double)ns, ns);
	p->before_ns = ns;
	p->before_came = p->came;
	p->at = now;
	p->came = 0;
	p->spare = !waiting;
}

uint64_t weft_pull_port_late(const struct weft_pull_port *p)
{
	return WEFT_PULL_LATE + 4ull * (p->rtt + p->slack);
}
