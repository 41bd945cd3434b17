/* SPDX-License-Identifier: BSD-3-Clause */
/* The leader opens the connections of lanes after lane 0, and the other end binds them. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/secret.h"
#include "core/config.h"
#include "msg/msg.h"
#include "wireup/codec.h"
#include "wireup/ep.h"
#include "wireup/exchange.h"
#include "wireup/lanes.h"
#include "wireup/peer.h"
#include "wireup/select.h"

#define ATTACH_RETRY_NS 500000000ull

/* Without memory for ep->failover the endpoint fails when any of its lanes fails. */
static void failover_init(struct weft_ep *ep)
{
	const struct weft_wireup *wu = ep->wireup;
	struct weft_failover *f;

	if (ep->failover || !wu || !ep->peer)
		return;
	f = calloc(1, sizeof(*f) + ep->lane_room * sizeof(f->lane[0]));
	if (!f)
		return;
	f->room = ep->lane_room;
	for (unsigned int i = 0; i < ep->lane_room; i++) {
		const struct weft_address_iface *l = &wu->local[wu->map[i].pair.local],
						*r = &wu->remote.ifaces[wu->map[i].pair.remote];

		f->lane[i].look_at = UINT64_MAX;
		if (wu->map[i].max_frag == 0)
			continue;
		f->lane[i].map = wu->map[i];
		f->lane[i].set = l->features | r->features;
		f->lane[i].addr_len = r->addr_len;
		memcpy(f->lane[i].addr, r->addr, r->addr_len);
	}
	ep->failover = f;
}

struct weft_lane_ep *weft_lane_any(const struct weft_ep *ep)
{
	return ep->lanes_up ? ep->lanes[__builtin_ctz(ep->lanes_up)].lane_ep : NULL;
}

static float larger_of(float a, float b)
{
	return a > b ? a : b;
}

/* ------------------------------------------------------------------ texts */

static void free_why(struct weft_ep_lane_info *info)
{
	if (!info->why_static)
		free((void *)(uintptr_t)info->why);
}

void weft_lane_set_why(struct weft_ep *ep, unsigned int n, const char *why)
{
	free_why(&ep->lane_info[n]);
	ep->lane_info[n].why = why;
	ep->lane_info[n].why_static = true;
}

void weft_lane_format_why(struct weft_ep *ep, unsigned int n, const char *fmt, ...)
{
	struct weft_ep_lane_info *info = &ep->lane_info[n];
	char *text;
	va_list ap;

	free_why(info);
	va_start(ap, fmt);
	info->why = vasprintf(&text, fmt, ap) < 0 ? NULL : text;
	va_end(ap);
	info->why_static = false;
	info->numbers = false;
}

void weft_lane_set_remote(struct weft_ep *ep, unsigned int n, const struct weft_lane_iface *iface,
			  const void *addr, size_t len)
{
	char words[128];

	iface->ops->print_address(addr, len, words, sizeof(words));
	free(ep->lane_info[n].remote);
	ep->lane_info[n].remote = strdup(words);
}

const char *weft_lane_why_text(const struct weft_ep *ep, unsigned int n,
			       char buf[WEFT_LANE_WHY_MAX])
{
	const struct weft_ep_lane_info *info = &ep->lane_info[n];

	if (!info->numbers)
		return weft_lane_why(ep, n);
	snprintf(buf, WEFT_LANE_WHY_MAX, "%s; %.3g GB/s (%.32s), %.3g us (%.32s)",
		 weft_lane_why(ep, n), (double)ep->lanes[n].bandwidth / 1e9, info->bandwidth_from,
		 (double)ep->lanes[n].latency * 1e6, info->latency_from);
	return buf;
}

void weft_lanes_free(struct weft_ep *ep)
{
	for (unsigned int i = 0; i < ep->lane_room; i++) {
		free(ep->lane_info[i].remote);
		free_why(&ep->lane_info[i]);
	}
	if (ep->lanes == &ep->first_lane)
		return;
	free(ep->lane_info);
	free(ep->lanes);
}

/* ------------------------------------------------------------------ numbers */

/* Both ends have both addresses, so the larger of two numbers is the same at both ends. */
static void agree_lane(const struct weft_address_iface *l, const struct weft_address_iface *r,
		       struct weft_ep_lane_info *info)
{
	info->send_overhead = larger_of(l->send_overhead, r->send_overhead);
	info->recv_overhead = larger_of(l->recv_overhead, r->recv_overhead);
	info->reg_cost = larger_of(l->reg_cost, r->reg_cost);
	info->reg_growth = larger_of(l->reg_growth, r->reg_growth);
	info->cpu = weft_pair_cpu(l, r);
	info->features = ((l->features | r->features) & (uint32_t)WEFT_LANE_F_COPIES) |
			 (l->features & r->features & (uint32_t)WEFT_LANE_F_MEMORY);
}

static const char *from_words(bool measured, uint32_t set, const char *stated)
{
	if (measured)
		return "measured";
	if (set)
		return "configured";
	return stated ? stated : "stated by the driver";
}

/*
 * The leader has computed these numbers, and the other end got them in single precision. Rounded,
 * they are the same at both ends, and both make the same choices. Otherwise two equal lanes would
 * differ for one side. Replies would go over another lane than the requests, and could not carry
 * their acknowledgements.
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

	lane->bandwidth = (float)from->bandwidth;
	lane->latency = (float)from->latency;
	info->bandwidth_from = from_words(from->measured & WEFT_WIRE_LANE_F_BW,
					  set & WEFT_LANE_F_BW_SET, attr->bandwidth_from);
	info->latency_from = from_words(from->measured & WEFT_WIRE_LANE_F_LAT,
					set & WEFT_LANE_F_LAT_SET, attr->latency_from);
	weft_lane_set_why(ep, n, from->why);
	info->numbers = true;
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
	weft_lane_set_remote(ep, n, lane_ep->iface, remote->addr, remote->addr_len);
	if (ep->num_lanes <= n)
		ep->num_lanes = (uint8_t)(n + 1);
}

/* Both ends have the same numbers, and so make the same choice. */
static void choose_short_lane(struct weft_ep *ep)
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
	char why[WEFT_LANE_WHY_MAX];

	/* The connection may take smaller messages than its ends, if the path has a smaller MTU. */
	if (lane->lane_ep->max_msg != 0 && lane->lane_ep->max_msg < lane->max_frag)
		lane->max_frag = lane->lane_ep->max_msg;
	WEFT_PROBE4(lane_up, ep, n, lane->lane_ep->iface->name, weft_lane_remote(ep, n));
	lane->up = true;
	ep->lanes_up |= (uint16_t)(1u << n);
	choose_short_lane(ep);
	weft_log_ep(ep, WEFT_LOG_INFO, "lane %u is up: %s to %s, %s", n, lane->lane_ep->iface->name,
		    weft_lane_remote(ep, n), weft_lane_why_text(ep, n, why));
	if (n != 0)
		failover_init(ep);
	if (ep->state != WEFT_EP_CONNECTING)
		weft_msg_ep_connected(ep, NULL);
}

void weft_lane_lost(struct weft_ep *ep, unsigned int n)
{
	ep->lanes[n].up = false;
	ep->lanes_up &= (uint16_t) ~(1u << n);
	ep->lanes_closing |= (uint16_t)(1u << n);
	choose_short_lane(ep);
	if (ep->closing)
		weft_ep_closing_lanes(ep);
	weft_msg_ep_connected(ep, NULL);
}

static bool link_needed(const struct weft_ep *ep, unsigned int n)
{
	const struct weft_wireup *wu = ep->wireup;

	return wu->map[n].max_frag != 0 &&
	       wu->local[wu->map[n].pair.local].features & WEFT_LANE_F_TO_EP;
}

/* ------------------------------------------------------------------ the key of further lanes */

/* An interface of another driver makes its own keys. */
static bool uses_key(const struct weft_ep *ep, const struct weft_lane_iface *iface)
{
	return ep->lane_key && iface->ops->ep_export == ep->lane_key->ops->ep_export;
}

static bool has_further_lane(const struct weft_wireup *wu)
{
	unsigned int i;

	for (i = 1; i < WEFT_MAX_LANES; i++)
		if (wu->map[i].max_frag != 0)
			return true;
	return false;
}

/* The peer connects over any interface of the map. Lane 0 may die and be connected again, too. */
static int accept_key(struct weft_ep *ep)
{
	struct weft_lane_iface *iface;
	unsigned int i;
	int rc;

	for (i = 0; i < WEFT_MAX_LANES; i++) {
		if (ep->wireup->map[i].max_frag == 0)
			continue;
		iface = weft_map_iface(ep, i);
		rc = uses_key(ep, iface) ? iface->ops->key_accept(iface, ep->lane_key) : 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int make_key(struct weft_ep *ep)
{
	struct weft_lane_ep *first = ep->lanes[0].lane_ep;
	struct weft_lane_key *key;
	int rc;

	if (!first || !first->ops->ep_export || !has_further_lane(ep->wireup))
		return 0;
	key = weft_secret_alloc(sizeof(*key));
	if (!key)
		return -ENOMEM;
	key->ops = first->ops;
	rc = first->ops->ep_export(first, key);
	if (rc < 0) {
		weft_secret_free(key, sizeof(*key));
		return rc == -ENOTSUP ? 0 : rc;
	}
	ep->lane_key = key;
	return ep->wireup->leader ? 0 : accept_key(ep);
}

int weft_lanes_make_key(struct weft_ep *ep)
{
	int rc = ep->lane_key ? 0 : make_key(ep);

	/* Lanes without the key would not prove that the peer has attached them. */
	if (rc < 0)
		weft_ep_fail(ep, rc, "no key for further lanes to %s: %s", ep->remote_name,
			     weft_strerror(rc));
	return rc;
}

void weft_lanes_drop_key(struct weft_ep *ep)
{
	struct weft_worker *w = ep->worker;
	unsigned int i;

	if (!ep->lane_key)
		return;
	for (i = 0; i < w->num_ifaces; i++)
		if (uses_key(ep, w->ifaces[i]))
			w->ifaces[i]->ops->key_forget(w->ifaces[i], ep->lane_key);
	weft_secret_free(ep->lane_key, sizeof(*ep->lane_key));
	ep->lane_key = NULL;
}

int weft_lane_connect(struct weft_ep *ep, unsigned int n, struct weft_lane_iface *iface,
		      const void *addr, size_t len, struct weft_lane_ep **lane_ep)
{
	if (!uses_key(ep, iface))
		return iface->ops->ep_connect(iface, addr, len, ep, lane_ep);
	return iface->ops->ep_connect_key(iface, addr, len, ep, ep->lane_key, (uint8_t)n, lane_ep);
}

bool weft_lane_has_key(const struct weft_ep *ep, unsigned int n, const struct weft_lane_ep *lane_ep)
{
	return !uses_key(ep, lane_ep->iface) ||
	       lane_ep->ops->ep_has_key(lane_ep, ep->lane_key, (uint8_t)n);
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

void weft_lane_leave_out(struct weft_ep *ep, unsigned int n, const char *why, bool notify_peer)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_lane_ep *lane_ep = ep->lanes[n].lane_ep;
	char text[400];

	snprintf(text, sizeof(text), "%s%s",
		 strncmp(why, "left out", 8) == 0 ? "" : "left out: ", why);
	weft_log_ep(ep, WEFT_LOG_WARN, "lane %u (%s to the peer's interface %u) is %s", n,
		    weft_map_iface(ep, n)->name, wu->remote.ifaces[wu->map[n].pair.remote].index,
		    text);
	weft_lane_format_why(ep, n, "%.159s", text);
	weft_reason_set(&wu->reason, "%s", text);
	wu->map[n].max_frag = 0;
	wu->attach[n] = notify_peer ? WEFT_ATTACH_DROP : WEFT_ATTACH_NONE;
	if (lane_ep) {
		ep->lanes[n].lane_ep = NULL;
		weft_lane_ep_destroy(ep->worker, lane_ep);
	}
	if (notify_peer)
		weft_ep_timer_at(ep, 0);
}

static void open_lane(struct weft_ep *ep, unsigned int n)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_lane_iface *iface = weft_map_iface(ep, n);
	const struct weft_address_iface *remote = &wu->remote.ifaces[wu->map[n].pair.remote];
	struct weft_lane_ep *lane_ep;
	int rc;

	wu->attach[n] = WEFT_ATTACH_OPENING;
	rc = weft_lane_connect(ep, n, iface, remote->addr, remote->addr_len, &lane_ep);
	if (rc < 0) {
		weft_lane_leave_out(ep, n, weft_strerror(rc), true);
		return;
	}
	weft_lane_bind(ep, n, lane_ep);
}

static void start_lane(struct weft_ep *ep, unsigned int n)
{
	struct weft_wireup *wu = ep->wireup;

	if (!wu->leader) {
		wu->attach[n] = WEFT_ATTACH_AWAIT;
	} else if (!link_needed(ep, n)) {
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

	if (weft_lanes_make_key(ep) < 0)
		return;
	wu->map_final = true;
	wu->attach_deadline = ep->worker->now + ep->worker->ctx->conf->lane.connect_timeout_ns;
	for (i = 1; i < WEFT_MAX_LANES; i++)
		if (wu->map[i].max_frag != 0)
			start_lane(ep, i);
	for (i = 1; i < WEFT_MAX_LANES; i++)
		if (wu->attach[i] == WEFT_ATTACH_DROP)
			weft_ep_timer_at(ep, 0);
	weft_ep_timer_at(ep, wu->leader ? wu->attach_deadline : UINT64_MAX);
}

void weft_lane_answer_attach(struct weft_ep *ep, struct weft_lane_ep *lane_ep, unsigned int n,
			     uint16_t epoch)
{
	struct weft_wire_wireup h;

	/* A send without room does no harm, because the peer repeats ATTACH. */
	weft_wireup_head(ep, WEFT_WIREUP_ATTACHED, n, &h);
	h.lane_epoch = weft_put16(epoch);
	weft_wireup_send(lane_ep, &h, NULL, 0);
}

static void send_attach(struct weft_ep *ep, unsigned int n)
{
	struct weft_wire_lane numbers = weft_map_wire_lane(ep, n);
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
		weft_lane_answer_attach(ep, ep->lanes[n].lane_ep, n, 0);
		weft_link_attached(ep, n);
	} else if (ep->wireup->attach[n] == WEFT_ATTACH_OPENING) {
		ep->wireup->attach[n] = WEFT_ATTACH_SENT;
		weft_map_take_measured(ep, n, ep->lanes[n].lane_ep);
		set_numbers(ep, n);
		send_attach(ep, n);
	}
}

/* @return false: no room, try again */
static bool notify_left_out(struct weft_ep *ep, unsigned int n)
{
	struct weft_records r = {.len = 0};
	struct weft_wire_wireup h;

	weft_records_add(&r, WEFT_RECORD_TEXT, weft_lane_why(ep, n), strlen(weft_lane_why(ep, n)));
	weft_wireup_head(ep, WEFT_WIREUP_ERROR, n, &h);
	h.status = weft_put16(EHOSTUNREACH);
	return !weft_lane_any(ep) ||
	       weft_wireup_send(weft_lane_any(ep), &h, r.buf, r.len) != -EAGAIN;
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
				break; /* the endpoint's connect timeout bounds lane 0's time */
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
			if (wu->step != WEFT_STEP_ESTABLISHED)
				break;
			if (notify_left_out(ep, i))
				wu->attach[i] = WEFT_ATTACH_NONE;
			else
				weft_ep_timer_at(ep, 0);
			break;
		default:
			break;
		}
	}
}

/* The lane was connected by addresses, or the ATTACH is repeated. */
static void attach_again(struct weft_ep *ep, struct weft_lane_ep *lane_ep, unsigned int n)
{
	struct weft_wireup *wu = ep->wireup;

	if (!wu || wu->attach[n] != WEFT_ATTACH_AWAIT) {
		if (!wu || wu->attach[n] == WEFT_ATTACH_NONE)
			weft_lane_answer_attach(ep, lane_ep, n, 0);
	} else if (!lane_ep->up) {
		wu->attach[n] = WEFT_ATTACH_EARLY;
	} else {
		weft_lane_answer_attach(ep, lane_ep, n, 0);
		weft_link_attached(ep, n);
	}
}

/* ATTACH of older peers has no numbers. */
static void attach_numbers(struct weft_ep *ep, const struct weft_wireup_msg *m)
{
	unsigned int n = m->head.lane;
	struct weft_wireup *wu = ep->wireup;

	if (!wu || wu->leader || wu->attach[n] != WEFT_ATTACH_AWAIT || m->num_lanes != 1 ||
	    m->lanes[0].lane != n)
		return;
	weft_map_get_numbers(&m->lanes[0], &wu->map[n]);
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
	if (n < ep->lane_room && ep->lanes[n].lane_ep == lane_ep) {
		attach_again(ep, lane_ep, n);
		return;
	}
	if (wu && !lane_ep->user && wu->attach[n] == WEFT_ATTACH_AWAIT && !ep->lanes[n].lane_ep &&
	    lane_ep->iface == weft_map_iface(ep, n) &&
	    weft_lane_ep_is_from(lane_ep, &wu->remote.ifaces[wu->map[n].pair.remote]) &&
	    weft_lane_has_key(ep, n, lane_ep)) {
		wu->attach[n] = WEFT_ATTACH_NONE;
		weft_lane_bind(ep, n, lane_ep);
		weft_lane_answer_attach(ep, lane_ep, n, 0);
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
		return; /* a duplicate */
	weft_link_attached(ep, n);
}

/* ------------------------------------------------------------------ addresses of both ends */

/*
 * Lanes whose two ends need each other's address (WEFT_LANE_F_TO_EP). The ends are made with the
 * lane map, and their addresses are in the same messages: the leader's with its proposal, the other
 * side's with its confirmation. So the other side is connected before the leader, and the leader
 * sends the first message on every such lane: ATTACH. The reply is ATTACHED.
 *
 * If the exchange goes over a control channel, lane 0 is such a lane, too, and its ATTACH and
 * ATTACHED establish the endpoint. Until then only wire-up messages have been sent on any lane, so
 * after a failure another pair of interfaces can be tried.
 */

static void drop_end(struct weft_ep *ep, unsigned int n)
{
	struct weft_lane_ep *lane_ep = ep->lanes[n].lane_ep;

	ep->lanes[n].lane_ep = NULL;
	weft_lane_ep_destroy(ep->worker, lane_ep);
}

void weft_links_reset(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_lane_ep *boot = wu->boot;
	unsigned int i;

	weft_lanes_drop_key(ep);
	wu->boot = NULL;
	for (i = 0; i < WEFT_MAX_LANES; i++)
		wu->attach[i] = WEFT_ATTACH_NONE;
	for (i = 0; i < ep->lane_room; i++) {
		if (ep->lanes[i].lane_ep == boot)
			boot = NULL;
		if (ep->lanes[i].lane_ep)
			drop_end(ep, i);
	}
	if (boot)
		weft_lane_ep_destroy(ep->worker, boot);
	ep->num_lanes = 0;
}

/* ------------------------------------------------------------------ our ends */

static int create_end(struct weft_ep *ep, unsigned int n)
{
	struct weft_lane_iface *iface = weft_map_iface(ep, n);
	struct weft_wireup *wu = ep->wireup;
	struct weft_lane_ep *lane_ep;
	int rc;

	rc = iface->ops->ep_create(iface, ep, &lane_ep);
	if (rc == 0) {
		weft_lane_bind(ep, n, lane_ep);
		return 0;
	}
	weft_reason_set(&wu->reason, "%s: no endpoint for a lane: %s", iface->name,
			weft_strerror(rc));
	weft_log_ep(ep, WEFT_LOG_WARN, "lane %u is left out: %s", n, wu->reason.text);
	wu->map[n].max_frag = 0;
	return rc;
}

int weft_links_create(struct weft_ep *ep)
{
	unsigned int i;
	int rc, first = 0;

	for (i = 0; i < WEFT_MAX_LANES; i++) {
		if (!link_needed(ep, i))
			continue;
		rc = create_end(ep, i);
		if (i == 0)
			first = rc;
	}
	return first;
}

void weft_links_record(const struct weft_ep *ep, struct weft_records *r)
{
	struct {
		struct weft_wire_ep_addr head;
		uint8_t bytes[WEFT_LANE_ADDR_MAX];
	} __attribute__((packed)) rec = {0};
	struct weft_lane_ep *lane_ep;
	unsigned int i;

	for (i = 0; i < ep->lane_room; i++) {
		lane_ep = ep->lanes[i].lane_ep;
		if (!lane_ep || !link_needed(ep, i))
			continue;
		rec.head.lane = (uint8_t)i;
		lane_ep->ops->ep_get_address(lane_ep, rec.bytes);
		weft_records_add(r, WEFT_RECORD_EP_ADDR, &rec,
				 sizeof(rec.head) + lane_ep->iface->attr.ep_addr_len);
	}
}

/* ------------------------------------------------------------------ the peer's ends */

bool weft_links_good(const struct weft_worker *w, const struct weft_address *remote,
		     const struct weft_wireup_msg *m)
{
	bool lower = w->id < remote->worker_id;
	const struct weft_wire_lane *wl;
	unsigned int i;
	int r;

	for (i = 0; i < m->num_lanes; i++) {
		wl = &m->lanes[i];
		if (m->ep_addr[wl->lane].len == 0)
			continue;
		r = weft_lanes_position(remote->ifaces, remote->num_ifaces,
					lower ? wl->higher_iface : wl->lower_iface);
		if (r < 0 || remote->ifaces[r].ep_addr_len != m->ep_addr[wl->lane].len)
			return false;
	}
	return true;
}

/* @return 0, or the error for which the lane is left out */
static int connect_end(struct weft_ep *ep, const struct weft_wireup_msg *m, unsigned int n)
{
	const struct weft_address_iface *remote =
		&ep->wireup->remote.ifaces[ep->wireup->map[n].pair.remote];
	struct weft_lane_ep *lane_ep = ep->lanes[n].lane_ep;

	if (m->ep_addr[n].len == 0)
		return -EPROTO;
	weft_lane_bind(ep, n, lane_ep); /* the numbers may have changed */
	return lane_ep->ops->ep_connect_ep(lane_ep, remote->addr, remote->addr_len,
					   m->ep_addr[n].bytes, m->ep_addr[n].len);
}

int weft_links_connect(struct weft_ep *ep, const struct weft_wireup_msg *m, bool final)
{
	struct weft_wireup *wu = ep->wireup;
	unsigned int i;
	int rc;

	for (i = 0; i < ep->lane_room; i++) {
		if (!ep->lanes[i].lane_ep || ep->lanes[i].lane_ep == wu->boot)
			continue;
		if (wu->map[i].max_frag == 0) {
			weft_lane_set_why(ep, i, "left out by the peer");
			ep->lane_info[i].numbers = false;
			drop_end(ep, i);
			continue;
		}
		rc = connect_end(ep, m, i);
		if (rc == 0)
			continue;
		if (i == 0) {
			weft_reason_set(&wu->reason, "%s: lane 0: %s",
					ep->lanes[0].lane_ep->iface->name,
					rc == -EPROTO ? "the peer gave no usable endpoint address"
						      : weft_strerror(rc));
			return rc;
		}
		weft_lane_leave_out(ep, i,
				    rc == -EPROTO ? "the peer gave no usable endpoint address"
						  : weft_strerror(rc),
				    final);
	}
	return 0;
}

/* ------------------------------------------------------------------ lane 0 */

void weft_links_begin(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	wu->step = WEFT_STEP_LINKING;
	wu->attach[0] = wu->leader ? WEFT_ATTACH_OPENING : WEFT_ATTACH_AWAIT;
	if (ep->lanes[0].lane_ep->up)
		weft_lane_ep_up(ep, 0);
	weft_ep_timer_at(ep, wu->deadline);
}

void weft_link_attached(struct weft_ep *ep, unsigned int n)
{
	ep->wireup->attach[n] = WEFT_ATTACH_NONE;
	if (n == 0)
		weft_wireup_linked(ep);
	else
		weft_lane_up(ep, n);
}
