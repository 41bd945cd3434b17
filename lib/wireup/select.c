/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wireup/codec.h"
#include "wireup/select.h"
#include "wireup/state.h"

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

/* The formula is symmetric, so both ends compute the same latency. */
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

static uint32_t pair_max_frag(const struct weft_address_iface *l,
			      const struct weft_address_iface *r)
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

	if (in->any_control || first_link(in, &link))
		n += boot_pairs(in, true, out + n, max - n);
	return n;
}

/* ------------------------------------------------------------------ lanes */

struct state {
	double rest_l[WEFT_MAX_IFACES],
		rest_r[WEFT_MAX_IFACES]; /* bandwidth not given to a lane yet */
	uint16_t taken[WEFT_MAX_IFACES];
};

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
	lane->max_frag = pair_max_frag(l, r);
	st->rest_l[p.local] -= bw;
	st->rest_r[p.remote] -= bw;
	st->taken[p.local] |= (uint16_t)(1u << p.remote);
}

/*
 * Lanes inside the host and lanes of networks are not mixed, because a stripe over both would wait
 * for the slower. The kind of lane 0 decides. weft_select_boot() prefers pairs inside the host.
 */
static bool lane_fits(const struct weft_select *in, const struct weft_select_lane *lanes,
		      unsigned int n, unsigned int l)
{
	return n == 0 || is_host(in, l) == is_host(in, lanes[0].pair.local);
}

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
		out[0].why = "lowest latency of lanes a control channel opens";
		n = 1;
	} else if (in->have_boot && max > 0) {
		take_pair(in, &st, in->boot, &out[0]);
		out[0].why = "connected first";
		n = 1;
	}
	for (round = 1; round <= WEFT_MAX_IFACES && n < max; round++) {
		while (n < max && best_pair(in, &st, out, n, round, &p)) {
			take_pair(in, &st, p, &out[n]);
			out[n].why = round == 1 ? "both devices were free"
						: "bandwidth was left on the shared device";
			n++;
		}
	}
	return n;
}

/* ------------------------------------------------------------------ the lane map */

/* Pairs are stored as positions in select.local and select.remote, on the wire as iface numbers. */

void weft_lanes_describe_local(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_worker *w = ep->worker;
	unsigned int i, n = 0;

	for (i = 0; i < w->num_ifaces; i++)
		if (!(w->ifaces[i]->attr.features & WEFT_LANE_F_LOOPBACK))
			weft_address_from_iface(&wu->local[n++], i, w->ifaces[i]);
	wu->select.local = wu->local;
	wu->select.num_local = n;
	wu->select.remote = wu->remote.ifaces;
	wu->select.num_remote = wu->remote.num_ifaces;
}

/* An end that needs an endpoint address must have one. */
static bool same_kind(const struct weft_address_iface *l, const struct weft_address_iface *r)
{
	const uint32_t kind = WEFT_LANE_F_TO_IFACE | WEFT_LANE_F_TO_EP | WEFT_LANE_F_CONTROL;

	if ((l->features ^ r->features) & kind)
		return false;
	return !(l->features & WEFT_LANE_F_TO_EP) || (l->ep_addr_len != 0 && r->ep_addr_len != 0);
}

void weft_lanes_find_reachable(struct weft_ep *ep, bool complain)
{
	enum weft_log_level level = complain ? WEFT_LOG_ERROR : WEFT_LOG_DEBUG;
	struct weft_wireup *wu = ep->wireup;
	struct weft_lane_iface *iface;
	const struct weft_address_iface *a;
	char why[384], words[128];
	unsigned int l, r;

	for (l = 0; l < wu->select.num_local; l++) {
		wu->select.reach[l] = 0;
		iface = ep->worker->ifaces[wu->local[l].index];
		for (r = 0; r < wu->select.num_remote; r++) {
			a = &wu->remote.ifaces[r];
			if (!weft_address_is_of(iface->driver, a->driver) ||
			    !same_kind(&wu->local[l], a)) {
				weft_log_ep(ep, level,
					    "%s does not reach the peer's %s interface %u: another "
					    "kind of lane",
					    iface->name, a->driver, a->index);
				continue;
			}
			why[0] = '\0';
			if (iface->ops->is_reachable(iface, a->addr, a->addr_len, why,
						     sizeof(why)) == 0) {
				wu->select.reach[l] |= (uint16_t)(1u << r);
				continue;
			}
			iface->ops->print_address(a->addr, a->addr_len, words, sizeof(words));
			weft_log_ep(ep, level, "%s does not reach %s: %s", iface->name, words, why);
		}
	}
	if (complain && (wu->select.num_local == 0 || wu->select.num_remote == 0))
		weft_log_ep(ep, level, "%s has no network interface",
			    wu->select.num_local == 0 ? "this worker" : "the peer");
}

/*
 * Round a number coarsely: endpoints whose lanes have about the same measurements share one
 * configuration, and noise does not make equal lanes different.
 */
static double round_coarse(double x, double steps_per_octave)
{
	return exp2(round(log2(x) * steps_per_octave) / steps_per_octave);
}

void weft_map_measured(struct weft_lane_ep *lane_ep, uint32_t set, struct weft_select_lane *lane)
{
	struct weft_lane_measured is = {0};

	if (!lane_ep->ops->ep_measured)
		return;
	lane_ep->ops->ep_measured(lane_ep, &is);
	if (is.latency >= 1e-9 && is.latency <= 10 && !(set & WEFT_LANE_F_LAT_SET)) {
		lane->latency = round_coarse(is.latency, 4);
		lane->measured |= WEFT_WIRE_LANE_F_LAT;
	}
	if (is.bandwidth >= 1e3 && is.bandwidth <= 1e13 && !(set & WEFT_LANE_F_BW_SET)) {
		lane->bandwidth = round_coarse(is.bandwidth, 8);
		lane->measured |= WEFT_WIRE_LANE_F_BW;
	}
}

void weft_map_take_measured(struct weft_ep *ep, unsigned int n, struct weft_lane_ep *lane_ep)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_select_lane *lane = &wu->map[n];

	if (lane->max_frag != 0)
		weft_map_measured(lane_ep,
				  wu->local[lane->pair.local].features |
					  wu->remote.ifaces[lane->pair.remote].features,
				  lane);
}

/* Later maps are parts of this one. Lanes for which there is no memory are left out. */
static void make_room(struct weft_ep *ep, struct weft_select_lane *map)
{
	struct weft_ep_lane_info *info;
	unsigned int n = WEFT_MAX_LANES;
	struct weft_ep_lane *lanes;

	while (n > 1 && map[n - 1].max_frag == 0)
		n--;
	if (n <= ep->lane_room)
		return;
	info = calloc(n, sizeof(*info));
	lanes = calloc(n, sizeof(*lanes));
	if (!info || !lanes) {
		free(info);
		free(lanes);
		for (n = ep->lane_room; n < WEFT_MAX_LANES; n++)
			map[n].max_frag = 0;
		return;
	}
	memcpy(info, ep->lane_info, ep->lane_room * sizeof(*info));
	memcpy(lanes, ep->lanes, ep->lane_room * sizeof(*lanes));
	if (ep->lanes != &ep->first_lane) {
		free(ep->lane_info);
		free(ep->lanes);
	}
	ep->lane_info = info;
	ep->lanes = lanes;
	ep->lane_room = (uint8_t)n;
}

void weft_lanes_propose(struct weft_ep *ep, struct weft_pair boot)
{
	struct weft_wireup *wu = ep->wireup;

	memset(wu->map, 0, sizeof(wu->map));
	wu->select.have_boot = !wu->control;
	wu->select.control_boot = wu->control;
	wu->select.boot = boot;
	weft_select_lanes(&wu->select, wu->map, WEFT_MAX_LANES);
	make_room(ep, wu->map);
	if (!wu->control && wu->boot)
		weft_map_take_measured(ep, 0, wu->boot);
}

int weft_lanes_position(const struct weft_address_iface *list, unsigned int n, unsigned int index)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (list[i].index == index)
			return (int)i;
	return -1;
}

void weft_map_get_numbers(const struct weft_wire_lane *wl, struct weft_select_lane *lane)
{
	lane->bandwidth = (double)weft_get_single(wl->bandwidth);
	lane->latency = (double)weft_get_single(wl->latency);
	lane->measured = wl->flags & (WEFT_WIRE_LANE_F_BW | WEFT_WIRE_LANE_F_LAT);
}

/* @return NULL, or the reason to leave the lane out */
static const char *accept_entry(struct weft_ep *ep, const struct weft_wire_lane *wl,
				struct weft_pair boot, struct weft_select_lane *out)
{
	struct weft_wireup *wu = ep->wireup;
	bool lower = ep->worker->id < ep->remote_id;
	int l = weft_lanes_position(wu->local, wu->select.num_local,
				    lower ? wl->lower_iface : wl->higher_iface);
	int r = weft_lanes_position(wu->remote.ifaces, wu->select.num_remote,
				    lower ? wl->higher_iface : wl->lower_iface);
	const struct weft_select_lane *mine = &wu->map[wl->lane];
	uint32_t max;

	if (l < 0)
		return "its interface here is not open";
	if (r < 0)
		return "the peer's address does not have its interface there";
	if (wl->lane == 0 && !wu->control && (l != boot.local || r != boot.remote))
		return "the first lane has connected over other interfaces";
	if (wl->lane == 0 && wu->control && !(wu->local[l].features & WEFT_LANE_F_TO_EP))
		return "its interface does not connect to endpoints";
	if ((wl->lane != 0 || wu->control) && !(wu->select.reach[l] >> r & 1))
		return "its interfaces do not reach each other";
	if (wu->local[l].features & WEFT_LANE_F_CONTROL)
		return "its interface carries control messages only";
	/* The map that the leader receives must be a part of its proposal. */
	if (wu->leader && (mine->max_frag == 0 || mine->pair.local != l || mine->pair.remote != r))
		return "it was not proposed";
	*out = *mine;
	out->pair = (struct weft_pair){(uint8_t)l, (uint8_t)r};
	max = pair_max_frag(&wu->local[l], &wu->remote.ifaces[r]);
	out->max_frag = weft_get32(wl->max_frag) < max ? weft_get32(wl->max_frag) : max;
	weft_map_get_numbers(wl, out);
	if (!wu->leader)
		out->why =
			wl->lane == 0 && !wu->control ? "connected first" : "proposed by the peer";
	return out->max_frag > 0 ? NULL : "its frames have no room for a message";
}

int weft_lanes_accept(struct weft_ep *ep, const struct weft_wireup_msg *m, struct weft_pair boot)
{
	struct weft_select_lane map[WEFT_MAX_LANES] = {0}, lane;
	struct weft_wireup *wu = ep->wireup;
	unsigned int i, n = 0;

	for (i = 0; i < m->num_lanes; i++) {
		const char *why = accept_entry(ep, &m->lanes[i], boot, &lane);

		if (why) {
			weft_log_ep(ep, WEFT_LOG_INFO, "lane %u of the peer's map is left out: %s",
				    m->lanes[i].lane, why);
			continue;
		}
		map[m->lanes[i].lane] = lane;
		n++;
	}
	if (map[0].max_frag == 0)
		return -EPROTO;
	make_room(ep, map);
	memcpy(wu->map, map, sizeof(map));
	return (int)n;
}

struct weft_wire_lane weft_map_wire_lane(const struct weft_ep *ep, unsigned int n)
{
	const struct weft_wireup *wu = ep->wireup;
	const struct weft_select_lane *lane = &wu->map[n];
	bool lower = ep->worker->id < ep->remote_id;
	uint8_t mine = wu->local[lane->pair.local].index;
	uint8_t theirs = wu->remote.ifaces[lane->pair.remote].index;

	return (struct weft_wire_lane){
		.lane = (uint8_t)n,
		.lower_iface = lower ? mine : theirs,
		.higher_iface = lower ? theirs : mine,
		.flags = lane->measured,
		.max_frag = weft_put32(lane->max_frag),
		.bandwidth = weft_put_single((float)lane->bandwidth),
		.latency = weft_put_single((float)lane->latency),
	};
}

void weft_lanes_record(const struct weft_ep *ep, struct weft_records *r)
{
	struct weft_wire_lane out[WEFT_MAX_LANES] = {0};
	unsigned int i, n = 0;

	for (i = 0; i < WEFT_MAX_LANES; i++)
		if (ep->wireup->map[i].max_frag != 0)
			out[n++] = weft_map_wire_lane(ep, i);
	weft_records_add(r, WEFT_RECORD_LANES, out, n * sizeof(out[0]));
}
