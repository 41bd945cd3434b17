/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The lane map of an endpoint. The worker with the lower id is its authority: it proposes, and it
 * opens the further lanes; the other one may leave lanes out and binds what is opened. Pairs are
 * kept as positions in select.local and select.remote, on the wire they are iface numbers.
 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "wireup/wireup.h"

#define ATTACH_RETRY_NS 500000000ull

static double larger(float a, float b)
{
	return (double)(a > b ? a : b);
}

/* Both ends have both addresses: the larger of each number is the same at both. */
static void agree_lane(const struct weft_address_iface *l, const struct weft_address_iface *r,
		       struct weft_ep_lane_info *info)
{
	info->send_overhead = larger(l->send_overhead, r->send_overhead);
	info->recv_overhead = larger(l->recv_overhead, r->recv_overhead);
	info->reg_cost = larger(l->reg_cost, r->reg_cost);
	info->reg_growth = larger(l->reg_growth, r->reg_growth);
	info->cpu = weft_pair_cpu(l, r);
	info->features = ((l->features | r->features) & (uint32_t)WEFT_LANE_F_COPIES) |
			 (l->features & r->features & (uint32_t)WEFT_LANE_F_MEMORY);
}

static inline struct weft_lane_iface *local_iface(const struct weft_ep *ep, unsigned int pos)
{
	return ep->worker->ifaces[ep->wireup->local[pos].index];
}

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

/*
 * Ends that connect in the same way; one that should give endpoint addresses and has none is no
 * use.
 */
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
		iface = local_iface(ep, l);
		for (r = 0; r < wu->select.num_remote; r++) {
			a = &wu->remote.ifaces[r];
			if (strcmp(a->driver, iface->driver->name) != 0 ||
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
 * A coarse number: endpoints whose lanes measure about the same share one configuration, and lanes
 * that are equal are not told apart by noise.
 */
static double coarse(double x, double steps_per_octave)
{
	return exp2(round(log2(x) * steps_per_octave) / steps_per_octave);
}

/*
 * The authority: what lane @p n has found out about its way replaces what the interfaces state,
 * unless a user knows better. The peer gets the same numbers with the map, or with ATTACH.
 */
static void take_measured(struct weft_ep *ep, unsigned int n, struct weft_lane_ep *lane_ep)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_select_lane *lane = &wu->map[n];
	struct weft_lane_measured is = {0};
	uint32_t set;

	if (lane->max_frag == 0 || !lane_ep->ops->ep_measured)
		return;
	set = wu->local[lane->pair.local].features | wu->remote.ifaces[lane->pair.remote].features;
	lane_ep->ops->ep_measured(lane_ep, &is);
	if (is.latency >= 1e-9 && is.latency <= 10 && !(set & WEFT_LANE_F_LAT_SET)) {
		lane->latency = coarse(is.latency, 4);
		lane->measured |= WEFT_WIRE_LANE_F_LAT;
	}
	if (is.bandwidth >= 1e3 && is.bandwidth <= 1e13 && !(set & WEFT_LANE_F_BW_SET)) {
		lane->bandwidth = coarse(is.bandwidth, 8);
		lane->measured |= WEFT_WIRE_LANE_F_BW;
	}
}

/*
 * What is kept per lane is made here, for as many as the map has: later maps are parts of it. Lanes
 * for which there is no memory are left out.
 */
static void make_room(struct weft_ep *ep, struct weft_select_lane *map)
{
	struct weft_ep_lane_info *info;
	unsigned int n = WEFT_MAX_LANES;

	while (n > 1 && map[n - 1].max_frag == 0)
		n--;
	if (n <= ep->lane_room)
		return;
	info = realloc(ep->lane_info, n * sizeof(*info));
	if (!info) {
		for (n = ep->lane_room; n < WEFT_MAX_LANES; n++)
			map[n].max_frag = 0;
		return;
	}
	memset(info + ep->lane_room, 0, (n - ep->lane_room) * sizeof(*info));
	ep->lane_info = info;
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
		take_measured(ep, 0, wu->boot);
}

int weft_lanes_position(const struct weft_address_iface *list, unsigned int n, unsigned int index)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (list[i].index == index)
			return (int)i;
	return -1;
}

/* The peer's numbers of a lane: what it has chosen by. */
static void get_numbers(const struct weft_wire_lane *wl, struct weft_select_lane *lane)
{
	lane->bandwidth = (double)weft_get_single(wl->bandwidth);
	lane->latency = (double)weft_get_single(wl->latency);
	lane->measured = wl->flags & (WEFT_WIRE_LANE_F_BW | WEFT_WIRE_LANE_F_LAT);
}

/* One entry of a map that the peer sent. @return false: leave it out */
static bool accept_entry(struct weft_ep *ep, const struct weft_wire_lane *wl, struct weft_pair boot,
			 struct weft_select_lane *out)
{
	struct weft_wireup *wu = ep->wireup;
	bool lower = ep->worker->id < ep->remote_id;
	int l = weft_lanes_position(wu->local, wu->select.num_local,
				    lower ? wl->lower_iface : wl->higher_iface);
	int r = weft_lanes_position(wu->remote.ifaces, wu->select.num_remote,
				    lower ? wl->higher_iface : wl->lower_iface);
	const struct weft_select_lane *mine = &wu->map[wl->lane];
	uint32_t max;

	if (l < 0 || r < 0)
		return false;
	if (wl->lane == 0 && !wu->control && (l != boot.local || r != boot.remote))
		return false;
	if (wl->lane == 0 && wu->control && !(wu->local[l].features & WEFT_LANE_F_TO_EP))
		return false;
	if ((wl->lane != 0 || wu->control) && !(wu->select.reach[l] >> r & 1))
		return false;
	if (wu->local[l].features & WEFT_LANE_F_CONTROL)
		return false;
	/* What the authority gets back is a part of what it proposed. */
	if (wu->authority &&
	    (mine->max_frag == 0 || mine->pair.local != l || mine->pair.remote != r))
		return false;
	*out = *mine;
	out->pair = (struct weft_pair){(uint8_t)l, (uint8_t)r};
	max = weft_pair_max_frag(&wu->local[l], &wu->remote.ifaces[r]);
	out->max_frag = weft_get32(wl->max_frag) < max ? weft_get32(wl->max_frag) : max;
	get_numbers(wl, out);
	if (!wu->authority)
		snprintf(out->why, sizeof(out->why), "%s",
			 wl->lane == 0 && !wu->control ? "connected first"
						       : "proposed by the peer");
	return out->max_frag > 0;
}

int weft_lanes_accept(struct weft_ep *ep, const struct weft_wireup_msg *m, struct weft_pair boot)
{
	struct weft_select_lane map[WEFT_MAX_LANES] = {0}, lane;
	struct weft_wireup *wu = ep->wireup;
	unsigned int i, n = 0;

	for (i = 0; i < m->num_lanes; i++) {
		if (!accept_entry(ep, &m->lanes[i], boot, &lane)) {
			weft_log_ep(ep, WEFT_LOG_INFO, "lane %u of the peer's map is left out",
				    m->lanes[i].lane);
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

static struct weft_wire_lane wire_lane(const struct weft_ep *ep, unsigned int n)
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
			out[n++] = wire_lane(ep, i);
	weft_records_add(r, WEFT_RECORD_LANES, out, n * sizeof(out[0]));
}

/* ------------------------------------------------------------------ lanes of the endpoint */

static const char *from_words(bool measured, uint32_t set, const char *stated)
{
	if (measured)
		return "measured";
	if (set)
		return "configured";
	return stated ? stated : "stated by the driver";
}

/*
 * One side has computed these numbers, the other got them in single precision: rounded, they are
 * the same at both ends, and so is what is chosen by them. Else two equal lanes look different to
 * one side, answers do not come back over the lane of the question, and acknowledgements do not
 * ride on them.
 */
static void set_numbers(struct weft_ep *ep, unsigned int n)
{
	const struct weft_wireup *wu = ep->wireup;
	const struct weft_select_lane *from = &wu->map[n];
	const struct weft_address_iface *l = &wu->local[from->pair.local],
					*r = &wu->remote.ifaces[from->pair.remote];
	const struct weft_lane_attr *attr = &ep->worker->ifaces[l->index]->attr;
	struct weft_ep_lane_info *info = &ep->lane_info[n];
	struct weft_ep_lane *lane = &ep->lanes[n];
	uint32_t set = l->features | r->features;

	lane->bandwidth = (double)(float)from->bandwidth;
	lane->latency = (double)(float)from->latency;
	info->bandwidth_from = from_words(from->measured & WEFT_WIRE_LANE_F_BW,
					  set & WEFT_LANE_F_BW_SET, attr->bandwidth_from);
	info->latency_from = from_words(from->measured & WEFT_WIRE_LANE_F_LAT,
					set & WEFT_LANE_F_LAT_SET, attr->latency_from);
	snprintf(info->why, sizeof(info->why), "%.48s; %.3g GB/s (%.32s), %.3g us (%.32s)",
		 from->why, lane->bandwidth / 1e9, info->bandwidth_from, lane->latency * 1e6,
		 info->latency_from);
}

void weft_lane_bind(struct weft_ep *ep, unsigned int n, struct weft_lane_ep *lane_ep)
{
	const struct weft_select_lane *from = &ep->wireup->map[n];
	const struct weft_address_iface *remote = &ep->wireup->remote.ifaces[from->pair.remote];
	struct weft_ep_lane_info *info = &ep->lane_info[n];
	struct weft_ep_lane *lane = &ep->lanes[n];

	weft_pending_remove(ep->worker, lane_ep);
	lane_ep->user = ep;
	lane_ep->index = (uint8_t)n;
	lane->lane_ep = lane_ep;
	lane->max_frag = from->max_frag;
	lane->remote_domain = remote->domain;
	info->local_iface = ep->wireup->local[from->pair.local].index;
	info->remote_iface = remote->index;
	agree_lane(&ep->wireup->local[from->pair.local], remote, info);
	set_numbers(ep, n);
	lane_ep->iface->ops->print_address(remote->addr, remote->addr_len, info->remote,
					   sizeof(info->remote));
	if (ep->num_lanes <= n)
		ep->num_lanes = (uint8_t)(n + 1);
}

/*
 * Single-fragment messages go over the lane with the lowest latency; both ends have the same
 * numbers.
 */
static void choose_am_lane(struct weft_ep *ep)
{
	unsigned int i, best = WEFT_MAX_LANES;

	for (i = 0; i < ep->num_lanes; i++)
		if (ep->lanes[i].up &&
		    (best == WEFT_MAX_LANES || ep->lanes[i].latency < ep->lanes[best].latency))
			best = i;
	if (best < WEFT_MAX_LANES)
		ep->am_lane = (uint8_t)best;
}

void weft_lane_up(struct weft_ep *ep, unsigned int n)
{
	struct weft_ep_lane *lane = &ep->lanes[n];

	/* The connection may take less than its ends: a way between them with a smaller MTU. */
	if (lane->lane_ep->max_msg != 0 && lane->lane_ep->max_msg < lane->max_frag)
		lane->max_frag = lane->lane_ep->max_msg;
	lane->up = true;
	ep->lanes_up |= (uint16_t)(1u << n);
	choose_am_lane(ep);
	weft_log_ep(ep, WEFT_LOG_INFO, "lane %u is up: %s to %s, %s", n, lane->lane_ep->iface->name,
		    ep->lane_info[n].remote, ep->lane_info[n].why);
	if (n != 0)
		weft_msg_ep_connected(ep, NULL);
}

/* ------------------------------------------------------------------ further lanes */

bool weft_lanes_settled(const struct weft_ep *ep)
{
	unsigned int i;

	for (i = 0; i < WEFT_MAX_LANES; i++)
		if (ep->wireup->attach[i] != WEFT_ATTACH_NONE)
			return false;
	return true;
}

void weft_lane_leave_out(struct weft_ep *ep, unsigned int n, const char *why, bool tell)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_lane_ep *lane_ep = ep->lanes[n].lane_ep;
	char text[400];

	snprintf(text, sizeof(text), "%s%s",
		 strncmp(why, "left out", 8) == 0 ? "" : "left out: ", why);
	weft_log_ep(ep, WEFT_LOG_WARN, "lane %u (%s to the peer's interface %u) is %s", n,
		    local_iface(ep, wu->map[n].pair.local)->name,
		    wu->remote.ifaces[wu->map[n].pair.remote].index, text);
	snprintf(ep->lane_info[n].why, sizeof(ep->lane_info[n].why), "%.*s",
		 (int)sizeof(ep->lane_info[n].why) - 1, text);
	snprintf(wu->reason, sizeof(wu->reason), "%s", text);
	wu->map[n].max_frag = 0;
	wu->attach[n] = tell ? WEFT_ATTACH_DROP : WEFT_ATTACH_NONE;
	if (lane_ep) {
		ep->lanes[n].lane_ep = NULL;
		weft_lane_ep_destroy(ep->worker, lane_ep);
	}
	if (tell)
		weft_ep_timer_at(ep, 0);
}

static void open_lane(struct weft_ep *ep, unsigned int n)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_lane_iface *iface = local_iface(ep, wu->map[n].pair.local);
	const struct weft_address_iface *remote = &wu->remote.ifaces[wu->map[n].pair.remote];
	struct weft_lane_ep *lane_ep;
	int rc;

	wu->attach[n] = WEFT_ATTACH_OPENING;
	rc = iface->ops->ep_connect(iface, remote->addr, remote->addr_len, ep, &lane_ep);
	if (rc < 0) {
		weft_lane_leave_out(ep, n, weft_strerror(rc), true);
		return;
	}
	weft_lane_bind(ep, n, lane_ep);
}

static void start_lane(struct weft_ep *ep, unsigned int n)
{
	struct weft_wireup *wu = ep->wireup;

	if (!wu->authority) {
		wu->attach[n] = WEFT_ATTACH_AWAIT;
	} else if (!weft_link_needed(ep, n)) {
		open_lane(ep, n);
	} else {
		wu->attach[n] = WEFT_ATTACH_OPENING;
		if (ep->lanes[n].lane_ep->up)
			weft_lane_ep_up(ep, n);
	}
}

void weft_lanes_start(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	unsigned int i;

	wu->map_final = true;
	wu->attach_deadline = ep->worker->now + ep->worker->ctx->conf->lane.connect_timeout_ns;
	for (i = 1; i < WEFT_MAX_LANES; i++)
		if (wu->map[i].max_frag != 0)
			start_lane(ep, i);
	for (i = 1; i < WEFT_MAX_LANES; i++)
		if (wu->attach[i] == WEFT_ATTACH_DROP)
			weft_ep_timer_at(ep, 0);
	weft_ep_timer_at(ep, wu->authority ? wu->attach_deadline : UINT64_MAX);
}

static void answer_attach(struct weft_ep *ep, struct weft_lane_ep *lane_ep, unsigned int n)
{
	struct weft_wire_wireup h;

	/* No room is no harm: ATTACH comes again. */
	weft_wireup_head(ep, WEFT_WIREUP_ATTACHED, n, &h);
	weft_wireup_send(lane_ep, &h, NULL, 0);
}

static void send_attach(struct weft_ep *ep, unsigned int n)
{
	struct weft_wire_lane numbers = wire_lane(ep, n);
	struct weft_records r = {.len = 0};
	struct weft_wire_wireup h;
	int rc;

	weft_wireup_head(ep, WEFT_WIREUP_ATTACH, n, &h);
	weft_records_add(&r, WEFT_RECORD_LANES, &numbers, sizeof(numbers));
	rc = weft_wireup_send(ep->lanes[n].lane_ep, &h, r.buf, r.len);
	weft_ep_timer_at(ep, rc == -EAGAIN ? 0 : ep->worker->now + ATTACH_RETRY_NS);
}

void weft_lane_ep_up(struct weft_ep *ep, unsigned int n)
{
	if (ep->wireup->attach[n] == WEFT_ATTACH_EARLY) {
		answer_attach(ep, ep->lanes[n].lane_ep, n);
		weft_link_attached(ep, n);
	} else if (ep->wireup->attach[n] == WEFT_ATTACH_OPENING) {
		ep->wireup->attach[n] = WEFT_ATTACH_SENT;
		take_measured(ep, n, ep->lanes[n].lane_ep);
		set_numbers(ep, n);
		send_attach(ep, n);
	}
}

/* The peer waits for a lane that will not come. @return false = no room, try again */
static bool tell_left_out(struct weft_ep *ep, unsigned int n)
{
	struct weft_records r = {.len = 0};
	struct weft_wire_wireup h;

	weft_records_add(&r, WEFT_RECORD_TEXT, ep->lane_info[n].why, strlen(ep->lane_info[n].why));
	weft_wireup_head(ep, WEFT_WIREUP_ERROR, n, &h);
	h.status = weft_put16(EHOSTUNREACH);
	return weft_wireup_send(ep->lanes[0].lane_ep, &h, r.buf, r.len) != -EAGAIN;
}

void weft_lanes_timer(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	uint64_t now = ep->worker->now;
	unsigned int i;

	for (i = 0; i < WEFT_MAX_LANES; i++) {
		switch (wu->attach[i]) {
		case WEFT_ATTACH_OPENING:
			if (i == 0)
				break; /* bounded by the connect timeout as a whole */
			if (now >= wu->attach_deadline)
				weft_lane_leave_out(
					ep, i, "no connection within WEFT_CONNECT_TIMEOUT", true);
			else
				weft_ep_timer_at(ep, wu->attach_deadline);
			break;
		case WEFT_ATTACH_SENT:
			send_attach(ep, i);
			break;
		case WEFT_ATTACH_DROP:
			if (wu->step != WEFT_STEP_JOINED)
				break;
			if (tell_left_out(ep, i))
				wu->attach[i] = WEFT_ATTACH_NONE;
			else
				weft_ep_timer_at(ep, 0);
			break;
		default:
			break;
		}
	}
}

/* ATTACH on a connection that is bound: a lane that was connected by addresses, or a retry. */
static void attach_again(struct weft_ep *ep, struct weft_lane_ep *lane_ep, unsigned int n)
{
	struct weft_wireup *wu = ep->wireup;

	if (!wu || wu->attach[n] != WEFT_ATTACH_AWAIT) {
		if (!wu || wu->attach[n] == WEFT_ATTACH_NONE)
			answer_attach(ep, lane_ep, n);
	} else if (!lane_ep->up) {
		wu->attach[n] = WEFT_ATTACH_EARLY;
	} else {
		answer_attach(ep, lane_ep, n);
		weft_link_attached(ep, n);
	}
}

/* ATTACH carries what the lane has measured since the map was made. Older peers send none. */
static void attach_numbers(struct weft_ep *ep, const struct weft_wireup_msg *m)
{
	unsigned int n = m->head.lane;
	struct weft_wireup *wu = ep->wireup;

	if (!wu || wu->authority || wu->attach[n] != WEFT_ATTACH_AWAIT || m->num_lanes != 1 ||
	    m->lanes[0].lane != n)
		return;
	get_numbers(&m->lanes[0], &wu->map[n]);
	if (ep->lanes[n].lane_ep)
		set_numbers(ep, n);
}

void weft_lanes_attach(struct weft_worker *worker, struct weft_ep *ep, struct weft_lane_ep *lane_ep,
		       const struct weft_wireup_msg *m)
{
	unsigned int n = m->head.lane;
	struct weft_wireup *wu = ep->wireup;
	struct weft_wire_wireup h;

	attach_numbers(ep, m);
	if (ep->lanes[n].lane_ep == lane_ep) {
		attach_again(ep, lane_ep, n);
		return;
	}
	if (wu && !lane_ep->user && wu->attach[n] == WEFT_ATTACH_AWAIT && !ep->lanes[n].lane_ep &&
	    lane_ep->iface == local_iface(ep, wu->map[n].pair.local) &&
	    weft_lane_ep_is_from(lane_ep, &wu->remote.ifaces[wu->map[n].pair.remote])) {
		wu->attach[n] = WEFT_ATTACH_NONE;
		weft_lane_bind(ep, n, lane_ep);
		answer_attach(ep, lane_ep, n);
		weft_lane_up(ep, n);
		return;
	}
	worker->count.wireup_stale++;
	weft_wireup_head(ep, WEFT_WIREUP_ERROR, n, &h);
	h.status = weft_put16(ESTALE);
	weft_wireup_send(lane_ep, &h, NULL, 0);
}

void weft_lanes_attached(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			 const struct weft_wireup_msg *m)
{
	unsigned int n = m->head.lane;

	if (!ep->wireup || ep->wireup->attach[n] != WEFT_ATTACH_SENT ||
	    ep->lanes[n].lane_ep != lane_ep)
		return; /* a second one */
	weft_link_attached(ep, n);
}
