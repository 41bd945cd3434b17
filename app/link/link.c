/* SPDX-License-Identifier: BSD-3-Clause */

#include "link/link.h"

#define SECOND 1000000000ull

void sim_link_init(struct sim_link_state *s, uint64_t seed, uint64_t purpose)
{
	*s = (struct sim_link_state){.rng = sim_rng_make(seed, purpose)};
}

/* Nanoseconds of @bytes at @rate. Bytes stay below 2^31: the product fits. */
static uint64_t byte_time(uint64_t bytes, uint64_t rate)
{
	return bytes * 8 * SECOND / rate;
}

/* ---- policers: GCRA ------------------------------------------------------------------------- */

/* @cost: the frame's time at the allowed rate; @burst: the time by which traffic may be ahead. */
static bool exceeds(uint64_t *at, uint64_t now, uint64_t cost, uint64_t burst)
{
	uint64_t start = *at > now ? *at : now;

	if (start + cost > now + burst)
		return true;
	*at = start + cost;
	return false;
}

static bool polices(const struct sim_link *l, struct sim_link_state *s, uint32_t len, uint64_t now)
{
	uint64_t frames = l->police_pps_burst ? l->police_pps_burst : SIM_LINK_PPS_BURST;
	uint64_t bytes = l->police_burst ? l->police_burst : SIM_LINK_BURST;

	if (l->police_pps && exceeds(&s->police_pps_at, now, SECOND / l->police_pps,
				     frames * SECOND / l->police_pps))
		return true;
	return l->police_rate && exceeds(&s->police_at, now, byte_time(len, l->police_rate),
					 byte_time(bytes, l->police_rate));
}

bool sim_link_refuses(const struct sim_link *l, struct sim_link_state *s,
		      const struct sim_link_frame *f, uint64_t now)
{
	s->stats.frames++;
	s->stats.bytes += f->len;
	if (l->mtu && f->len > l->mtu + sim_link_l2_len(f->data, f->hdr_len)) {
		s->stats.too_long++;
		return true;
	}
	if (polices(l, s, f->len, now)) {
		s->stats.policed++;
		return true;
	}
	return false;
}

/* ---- rate and queue ------------------------------------------------------------------------- */

uint64_t sim_link_serialise(const struct sim_link *l, struct sim_link_state *s, uint32_t len,
			    uint64_t now)
{
	uint64_t idle = now, burst;

	if (!l->rate) {
		s->free_at = s->free_at > now ? s->free_at : now;
		return s->free_at;
	}
	burst = l->rate_burst ? byte_time(l->rate_burst, l->rate) : 0;
	/* A direction that has been idle may be behind by its burst. */
	idle = now > burst ? now - burst : 0;
	if (s->free_at < idle)
		s->free_at = idle;
	s->free_at += byte_time((uint64_t)len + SIM_LINK_EXTRA, l->rate);
	return s->free_at > now ? s->free_at : now;
}

uint64_t sim_link_queued(const struct sim_link *l, const struct sim_link_state *s, uint64_t now)
{
	/* The backlog in bytes: the time for which the direction is busy, times the rate. */
	if (!l->rate || s->free_at <= now)
		return 0;
	return (uint64_t)((double)(s->free_at - now) * (double)l->rate / 8e9);
}

bool sim_link_enqueue(const struct sim_link *l, struct sim_link_state *s, uint32_t len,
		      uint64_t now, uint64_t *sent, bool *mark)
{
	uint64_t queued = sim_link_queued(l, s, now);

	if (l->queue_bytes && l->rate && queued + len > l->queue_bytes) {
		s->stats.tail_drops++;
		return false;
	}
	if (queued + len > s->max_queue)
		s->max_queue = queued + len;
	*mark = l->ecn_bytes && queued > l->ecn_bytes;
	*sent = sim_link_serialise(l, s, len, now);
	return true;
}

/* ---- faults --------------------------------------------------------------------------------- */

/* Gilbert-Elliott: the two probabilities of the chain follow from the share and the length. */
static bool burst_loses(const struct sim_link *l, struct sim_link_state *s)
{
	double loss = l->burst_loss > 0 ? l->burst_loss : 1;
	double leave = 1 / (l->burst_len > 1 ? l->burst_len : l->burst_len > 0 ? 1 : 10);
	double bad = l->bursts / loss;

	if (!(l->bursts > 0)) {
		s->bad = false;
		return false;
	}
	if (s->bad)
		s->bad = !sim_chance(&s->rng, leave);
	else
		s->bad = sim_chance(&s->rng, bad < 1 ? leave * bad / (1 - bad) : 1);
	return s->bad && sim_chance(&s->rng, loss);
}

static void corrupt(const struct sim_link *l, struct sim_link_state *s, struct sim_link_copy *c)
{
	unsigned int i;

	if (sim_chance(&s->rng, l->corrupt)) {
		s->stats.corrupted++;
		c->num_flips = (unsigned int)sim_between(&s->rng, 1, 3);
		for (i = 0; i < c->num_flips; i++)
			c->flip[i] = (uint32_t)sim_below(&s->rng, (uint64_t)c->len * 8);
	}
	if (sim_chance(&s->rng, l->truncate) && c->len > 1) {
		s->stats.truncated++;
		c->len = (uint32_t)sim_between(&s->rng, 1, c->len - 1);
	}
}

/* @last: of the flow, when flows are shaped separately: they do not delay each other. */
static uint64_t arrival(const struct sim_link *l, struct sim_link_state *s, uint64_t sent,
			uint64_t *last)
{
	uint64_t when = sent + l->delay_ns;

	if (sim_chance(&s->rng, l->reorder)) {
		/* A reordered frame neither follows the order of the others nor changes it. */
		s->stats.reordered++;
		return when + 1 + sim_below(&s->rng, l->reorder_ns ? l->reorder_ns : 100000);
	}
	if (l->jitter_ns)
		when += sim_below(&s->rng, l->jitter_ns);
	if (when < *last)
		when = *last;
	*last = when;
	return when;
}

static unsigned int pass(const struct sim_link *l, struct sim_link_state *s,
			 const struct sim_link_frame *f, uint64_t sent, struct sim_link_copy *c)
{
	uint64_t queue = l->flow_queue ? l->flow_queue : SIM_LINK_BURST, start;
	unsigned int flow;

	*c = (struct sim_link_copy){.len = f->len};
	corrupt(l, s, c);
	if (!l->flow_rate) {
		c->when = arrival(l, s, sent, &s->last);
		return 1;
	}
	flow = sim_link_flow_hash(f->data, f->hdr_len) % SIM_LINK_FLOWS;
	start = s->flow[flow].free_at > sent ? s->flow[flow].free_at : sent;
	if (start - sent > byte_time(queue, l->flow_rate)) {
		s->stats.flow_drops++;
		return 0;
	}
	s->flow[flow].free_at = start + byte_time((uint64_t)f->len + SIM_LINK_EXTRA, l->flow_rate);
	c->when = arrival(l, s, s->flow[flow].free_at, &s->flow[flow].last);
	return 1;
}

unsigned int sim_link_deliver(const struct sim_link *l, struct sim_link_state *s,
			      const struct sim_link_frame *f, uint64_t sent,
			      struct sim_link_copy copy[2])
{
	unsigned int n = 0;

	if (l->blackhole) {
		s->stats.blackholed++;
		return 0;
	}
	if (sim_chance(&s->rng, l->loss)) {
		s->stats.lost++;
		return 0;
	}
	if (burst_loses(l, s)) {
		s->stats.burst_lost++;
		return 0;
	}
	if (sim_chance(&s->rng, l->dup)) {
		s->stats.dupped++;
		n += pass(l, s, f, sent, &copy[n]);
	}
	return n + pass(l, s, f, sent, &copy[n]);
}

void sim_link_flip(const struct sim_link_copy *copy, uint8_t *data, uint32_t len)
{
	unsigned int i;

	for (i = 0; i < copy->num_flips; i++)
		if (copy->flip[i] / 8 < len)
			data[copy->flip[i] / 8] ^= (uint8_t)(1u << (copy->flip[i] % 8));
}
