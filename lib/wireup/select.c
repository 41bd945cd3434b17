/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <string.h>

#include "wireup/select.h"

/* An iface is worth another lane while it has this share of its bandwidth left. */
#define REST_MIN 0.25

static inline double min_double(double a, double b)
{
	return a < b ? a : b;
}

/* 0 means "not known": use a small rate, so that known ones win. */
static inline double nominal_rate(const struct weft_address_iface *a)
{
	return a->bandwidth > 0 ? (double)a->bandwidth : 1.0;
}

static double pair_bandwidth(const struct weft_address_iface *l, const struct weft_address_iface *r)
{
	return min_double(nominal_rate(l), nominal_rate(r));
}

double weft_pair_cpu(const struct weft_address_iface *l, const struct weft_address_iface *r)
{
	double there = (double)l->send_overhead + (double)r->recv_overhead;
	double back = (double)r->send_overhead + (double)l->recv_overhead;

	return there > back ? there : back;
}

/*
 * Latency of a small message in one direction: the slower end's estimate, and the time of both
 * CPUs. The formula is symmetric, so both ends compute the same result.
 */
static double pair_latency(const struct weft_address_iface *l, const struct weft_address_iface *r)
{
	double lat =
		(double)l->latency > (double)r->latency ? (double)l->latency : (double)r->latency;

	return lat + weft_pair_cpu(l, r);
}

static uint32_t largest_message(const struct weft_address_iface *a)
{
	uint32_t m = a->max_short;

	if (a->max_bcopy > m)
		m = a->max_bcopy;
	if (a->max_zcopy > m)
		m = a->max_zcopy;
	return m;
}

uint32_t weft_pair_max_frag(const struct weft_address_iface *l, const struct weft_address_iface *r)
{
	return largest_message(l) < largest_message(r) ? largest_message(l) : largest_message(r);
}

static inline bool pair_reaches(const struct weft_select *in, unsigned int l, unsigned int r)
{
	return in->reach[l] >> r & 1;
}

static inline bool is_control(const struct weft_select *in, unsigned int l)
{
	return in->local[l].features & WEFT_LANE_F_CONTROL;
}

/* Can the pair be a lane? */
static inline bool pair_carries(const struct weft_select *in, unsigned int l, unsigned int r)
{
	return pair_reaches(in, l, r) && !is_control(in, l);
}

static inline bool pair_links(const struct weft_select *in, unsigned int l, unsigned int r)
{
	return pair_carries(in, l, r) && in->local[l].features & WEFT_LANE_F_TO_EP;
}

static inline bool is_host(const struct weft_select *in, unsigned int l)
{
	return in->local[l].features & WEFT_LANE_F_HOST;
}

/* ------------------------------------------------------------------ bootstrap */

/* Is pair a better than pair b to connect with? */
static bool boot_better(const struct weft_select *in, struct weft_pair a, struct weft_pair b)
{
	double la = pair_latency(&in->local[a.local], &in->remote[a.remote]);
	double lb = pair_latency(&in->local[b.local], &in->remote[b.remote]);
	double ba, bb;

	if (is_host(in, a.local) != is_host(in, b.local))
		return is_host(in, a.local);
	if (la < lb || la > lb)
		return la < lb;
	ba = pair_bandwidth(&in->local[a.local], &in->remote[a.remote]);
	bb = pair_bandwidth(&in->local[b.local], &in->remote[b.remote]);
	if (ba < bb || ba > bb)
		return ba > bb;
	if (a.local != b.local)
		return a.local < b.local;
	return a.remote < b.remote;
}

/* Pairs that become lane 0, or (@p control) pairs that carry the exchange only. */
static unsigned int boot_pairs(const struct weft_select *in, bool control, struct weft_pair *out,
			       unsigned int max)
{
	unsigned int used_l[WEFT_MAX_IFACES] = {0}, used_r[WEFT_MAX_IFACES] = {0};
	uint16_t taken[WEFT_MAX_IFACES] = {0};
	unsigned int n, l, r, use, best_use;
	struct weft_pair best = {0, 0}, p;
	bool found;

	for (n = 0; n < max; n++) {
		found = false;
		best_use = 0;
		for (l = 0; l < in->num_local; l++) {
			for (r = 0; r < in->num_remote; r++) {
				if (!pair_reaches(in, l, r) || taken[l] >> r & 1 ||
				    is_control(in, l) != control ||
				    !weft_address_bootable(in->local[l].features) ||
				    !weft_address_bootable(in->remote[r].features))
					continue;
				p = (struct weft_pair){(uint8_t)l, (uint8_t)r};
				use = used_l[l] + used_r[r];
				if (!found || use < best_use ||
				    (use == best_use && boot_better(in, p, best))) {
					best = p;
					best_use = use;
					found = true;
				}
			}
		}
		if (!found)
			break;
		taken[best.local] |= (uint16_t)(1u << best.remote);
		used_l[best.local]++;
		used_r[best.remote]++;
		out[n] = best;
	}
	return n;
}

/* The first lane of two ends that have connected over a control channel. */
static bool first_link(const struct weft_select *in, struct weft_pair *best)
{
	struct weft_pair p;
	bool found = false;
	unsigned int l, r;

	for (l = 0; l < in->num_local; l++) {
		for (r = 0; r < in->num_remote; r++) {
			p = (struct weft_pair){(uint8_t)l, (uint8_t)r};
			if (pair_links(in, l, r) && (!found || boot_better(in, p, *best))) {
				*best = p;
				found = true;
			}
		}
	}
	return found;
}

unsigned int weft_select_boot(const struct weft_select *in, struct weft_pair *out, unsigned int max)
{
	unsigned int n = boot_pairs(in, false, out, max);
	struct weft_pair link;

	/* A control channel is of no use without a lane to connect. */
	if (in->any_control || first_link(in, &link))
		n += boot_pairs(in, true, out + n, max - n);
	return n;
}

/* ------------------------------------------------------------------ lanes */

/* Work state of a selection. */
struct state {
	double rest_l[WEFT_MAX_IFACES],
		rest_r[WEFT_MAX_IFACES]; /* bandwidth not given to a lane yet */
	uint16_t taken[WEFT_MAX_IFACES];
};

/* Number of lanes chosen so far that use the device of iface @p i of that side. */
static unsigned int device_use(const struct weft_select *in, const struct weft_select_lane *lanes,
			       unsigned int n, bool local, unsigned int i)
{
	const struct weft_address_iface *side = local ? in->local : in->remote;
	unsigned int k, use = 0;

	for (k = 0; k < n; k++)
		use += side[local ? lanes[k].pair.local : lanes[k].pair.remote].device ==
		       side[i].device;
	return use;
}

static double rest_of(const struct state *st, struct weft_pair p)
{
	return min_double(st->rest_l[p.local], st->rest_r[p.remote]);
}

static bool has_rest(const struct weft_select *in, const struct state *st, struct weft_pair p)
{
	return st->rest_l[p.local] >= REST_MIN * nominal_rate(&in->local[p.local]) &&
	       st->rest_r[p.remote] >= REST_MIN * nominal_rate(&in->remote[p.remote]);
}

static void take_pair(const struct weft_select *in, struct state *st, struct weft_pair p,
		      struct weft_select_lane *lane)
{
	const struct weft_address_iface *l = &in->local[p.local], *r = &in->remote[p.remote];
	double bw = rest_of(st, p);

	memset(lane, 0, sizeof(*lane));
	lane->pair = p;
	lane->bandwidth = bw;
	lane->latency = pair_latency(l, r);
	lane->max_frag = weft_pair_max_frag(l, r);
	st->rest_l[p.local] -= bw;
	st->rest_r[p.remote] -= bw;
	st->taken[p.local] |= (uint16_t)(1u << p.remote);
}

/*
 * Lanes inside the host and lanes of networks are not mixed, because a stripe over both would wait
 * for the slower. The kind of lane 0 decides. Lane 0 is the connection that was made, so the other
 * kind was missing, or could not be connected.
 */
static bool lane_fits(const struct weft_select *in, const struct weft_select_lane *lanes,
		      unsigned int n, unsigned int l)
{
	return n == 0 || is_host(in, l) == is_host(in, lanes[0].pair.local);
}

/* The best pair that uses no device @p round times already. */
static bool best_pair(const struct weft_select *in, const struct state *st,
		      const struct weft_select_lane *lanes, unsigned int n, unsigned int round,
		      struct weft_pair *best)
{
	unsigned int l, r;
	struct weft_pair p;
	bool found = false;
	double a, b;

	for (l = 0; l < in->num_local; l++) {
		if (device_use(in, lanes, n, true, l) >= round || !lane_fits(in, lanes, n, l))
			continue;
		for (r = 0; r < in->num_remote; r++) {
			p = (struct weft_pair){(uint8_t)l, (uint8_t)r};
			if (!pair_carries(in, l, r) || st->taken[l] >> r & 1 ||
			    !has_rest(in, st, p) || device_use(in, lanes, n, false, r) >= round)
				continue;
			a = rest_of(st, p);
			b = found ? rest_of(st, *best) : 0;
			if (!found || a > b || (!(a < b) && boot_better(in, p, *best))) {
				*best = p;
				found = true;
			}
		}
	}
	return found;
}

unsigned int weft_select_lanes(const struct weft_select *in, struct weft_select_lane *out,
			       unsigned int max)
{
	struct state st = {0};
	unsigned int n = 0, round, i;
	struct weft_pair p;

	for (i = 0; i < in->num_local; i++)
		st.rest_l[i] = nominal_rate(&in->local[i]);
	for (i = 0; i < in->num_remote; i++)
		st.rest_r[i] = nominal_rate(&in->remote[i]);

	if (in->control_boot) {
		if (max == 0 || !first_link(in, &p))
			return 0;
		take_pair(in, &st, p, &out[0]);
		snprintf(out[0].why, sizeof(out[0].why),
			 "lowest latency of those that need no other lane's help");
		n = 1;
	} else if (in->have_boot && max > 0) {
		take_pair(in, &st, in->boot, &out[0]);
		snprintf(out[0].why, sizeof(out[0].why), "connected first");
		n = 1;
	}
	for (round = 1; round <= WEFT_MAX_IFACES && n < max; round++) {
		while (n < max && best_pair(in, &st, out, n, round, &p)) {
			take_pair(in, &st, p, &out[n]);
			snprintf(out[n].why, sizeof(out[n].why), "%s",
				 round == 1 ? "both devices were free"
					    : "bandwidth was left on the shared device");
			n++;
		}
	}
	return n;
}
