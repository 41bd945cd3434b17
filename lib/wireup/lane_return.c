/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes that died come back. The leader tries to connect again, at once when the link of its port
 * is back. The leader attaches the connection with the lane's next connection number. The other end
 * accepts it after it has finished with the last connection.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/config.h"
#include "msg/msg.h"
#include "wireup/codec.h"
#include "wireup/ep.h"
#include "wireup/failover.h"
#include "wireup/lane_return.h"
#include "wireup/lanes.h"
#include "wireup/rails.h"
#include "wireup/select.h"
#include "wireup/state.h"
#include "wireup/peer.h"

/*
 * Wait before the first attempt. Before each further attempt the wait is longer by this time, up to
 * TRY_MAX_NS. An attempt repeats its handshake, so it succeeds if the path recovers in that time.
 */
#define TRY_NS 100000000ull
#define TRY_MAX_NS 500000000ull
/* Timeouts of a connection attempt, and of ATTACH, which is repeated in the meantime. */
#define CONNECT_NS 1000000000ull
#define CONNECT_TRIPS 10u /* a handshake takes six: ARP, HELLO, PROBE, two pings, READY */
#define ATTACH_AGAIN_NS 100000000ull
#define ATTACH_NS 2000000000ull
#define ATTACH_TRIPS 2u

static struct weft_lane_iface *iface_of(const struct weft_ep *ep, unsigned int n)
{
	return ep->worker->ifaces[ep->lane_info[n].local_iface];
}

static uint64_t at_least(uint64_t ns, uint64_t trips, const struct weft_ep *ep)
{
	trips *= weft_failover_trip(ep);
	return trips > ns ? trips : ns;
}

static void retry_later(struct weft_ep *ep, unsigned int n)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];
	uint64_t wait = TRY_NS * (1u + l->returns);

	l->life = WEFT_LANE_GONE;
	l->look_at = UINT64_MAX;
	if (!weft_failover_leads(ep))
		return;
	l->returns += l->returns < UINT8_MAX;
	l->look_at = ep->worker->now + (wait < TRY_MAX_NS ? wait : TRY_MAX_NS);
	weft_ep_timer_at(ep, l->look_at);
}

void weft_lane_return_begin(struct weft_ep *ep, unsigned int n)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];

	l->look_at = UINT64_MAX;
	l->since = ep->worker->now;
	if (l->addr_len)
		retry_later(ep, n);
}

/* ------------------------------------------------------------------ addresses of both ends */

/*
 * A lane whose two ends need each other's address (WEFT_LANE_F_TO_EP) comes back. The leader makes
 * its end and sends its address over another lane, in LANE_LINK. The other side makes its end,
 * connects it, and replies with its own address. Then the leader connects, and attaches as any
 * lane. Each attempt has a number of its own, which identifies late replies to an earlier attempt.
 */

#define RETRY_NS 1000000ull
/* For these times the leader waits for the reply, longer each attempt, and for its end to be up. */
#define ANSWER_NS 300000000ull
#define UP_NS 1000000000ull
/*
 * The other side's timeout; at both ends also the time for which a send of the address is repeated,
 * and upper bound of the leader's wait for the reply. Only the leader tries again.
 */
#define WAIT_NS 4000000000ull
/* Least time between two ends made for the peer: its attempts are usually TRY_NS or more apart. */
#define OFTEN_NS 50000000ull

static bool lane_link_needed(const struct weft_lane_iface *iface)
{
	return iface->attr.features & WEFT_LANE_F_TO_EP;
}

static int send_link(struct weft_ep *ep, unsigned int n)
{
	struct weft_lane_ep *lane_ep = ep->lanes[n].lane_ep, *over = weft_lane_any(ep);
	struct {
		struct weft_wire_ep_addr head;
		uint8_t bytes[WEFT_LANE_ADDR_MAX];
	} __attribute__((packed)) rec = {.head.lane = (uint8_t)n};
	struct weft_records r = {.len = 0};
	struct weft_wire_wireup h;

	if (!over)
		return -ENOTCONN;
	lane_ep->ops->ep_get_address(lane_ep, rec.bytes);
	weft_records_add(&r, WEFT_RECORD_EP_ADDR, &rec,
			 sizeof(rec.head) + lane_ep->iface->attr.ep_addr_len);
	weft_wireup_head(ep, WEFT_WIREUP_LANE_LINK, n, &h);
	h.lane_epoch = weft_put16(ep->failover->lane[n].link);
	return weft_wireup_send(over, &h, r.buf, r.len);
}

static void announce_link(struct weft_ep *ep, unsigned int n)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];
	uint64_t wait = ANSWER_NS * (1u + l->returns);

	if (!weft_failover_leads(ep) || wait > WAIT_NS)
		wait = WAIT_NS;
	l->link_due = send_link(ep, n) < 0;
	l->look_at = l->link_due ? ep->worker->now + RETRY_NS : ep->worker->now + wait;
	weft_ep_timer_at(ep, l->look_at);
}

/* @return 0, or an error: no lane endpoint was made */
static int lane_link_begin(struct weft_ep *ep, unsigned int n, struct weft_lane_iface *iface)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];
	uint16_t next = weft_lane_next(l->link);
	struct weft_lane_ep *lane_ep;
	int rc = iface->ops->ep_create(iface, ep, &lane_ep);

	if (rc < 0)
		return rc;
	lane_ep->index = (uint8_t)n;
	ep->lanes[n].lane_ep = lane_ep;
	l->life = WEFT_LANE_CONNECTING;
	l->since = ep->worker->now;
	l->link = weft_lane_newer(next, l->epoch) ? next : weft_lane_next(l->epoch);
	l->linked = false;
	announce_link(ep, n);
	return 0;
}

/* @return false: a wait is over, or the address could not be sent for WAIT_NS */
static bool lane_link_timer(struct weft_ep *ep, unsigned int n)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];

	if (!l->link_due || ep->worker->now - l->since >= WAIT_NS)
		return false;
	announce_link(ep, n);
	return true;
}

/* @return 0, or an error: the caller must destroy the end */
static int connect_end(struct weft_ep *ep, unsigned int n, const struct weft_wireup_msg *m)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];
	struct weft_lane_ep *lane_ep = ep->lanes[n].lane_ep;
	int rc = lane_ep->ops->ep_connect_ep(lane_ep, l->addr, l->addr_len, m->ep_addr[n].bytes,
					     m->ep_addr[n].len);

	l->linked = rc == 0;
	return rc;
}

static void make_end(struct weft_ep *ep, unsigned int n, struct weft_lane_iface *iface,
		     const struct weft_wireup_msg *m)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];
	struct weft_lane_ep *lane_ep;

	if (l->life == WEFT_LANE_CONNECTING)
		weft_lane_return_drop(ep, n);
	l->link = weft_get16(m->head.lane_epoch);
	l->since = ep->worker->now;
	if (!iface->ops->link_up(iface) || iface->ops->ep_create(iface, ep, &lane_ep) < 0)
		return;
	lane_ep->index = (uint8_t)n;
	ep->lanes[n].lane_ep = lane_ep;
	l->life = WEFT_LANE_CONNECTING;
	if (connect_end(ep, n, m) < 0)
		weft_lane_return_drop(ep, n);
	else
		announce_link(ep, n);
}

static bool lane_link_recv(struct weft_ep *ep, unsigned int n, struct weft_lane_iface *iface,
			   const struct weft_wireup_msg *m)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];
	uint16_t number = weft_get16(m->head.lane_epoch);

	if (!lane_link_needed(iface) || m->ep_addr[n].len != iface->attr.ep_addr_len)
		return false;
	if (weft_failover_leads(ep)) {
		if (l->life != WEFT_LANE_CONNECTING || number != l->link || l->linked)
			return false;
		if (connect_end(ep, n, m) < 0)
			weft_lane_return_drop(ep, n);
		else
			l->look_at = ep->worker->now + UP_NS;
		weft_ep_timer_at(ep, l->look_at);
		return true;
	}
	if ((l->life != WEFT_LANE_GONE && l->life != WEFT_LANE_CONNECTING) ||
	    !weft_lane_newer(number, l->epoch) ||
	    (l->link &&
	     (!weft_lane_newer(number, l->link) || ep->worker->now - l->since < OFTEN_NS)))
		return false;
	make_end(ep, n, iface, m);
	return true;
}

static bool lane_link_attaches(const struct weft_ep *ep, const struct weft_lane_ep *lane_ep,
			       unsigned int n, uint16_t epoch)
{
	const struct weft_failover_lane *l = &ep->failover->lane[n];

	/* The lane must be up to carry the reply. The leader repeats ATTACH until then. */
	return !weft_failover_leads(ep) && l->life == WEFT_LANE_CONNECTING &&
	       ep->lanes[n].lane_ep == lane_ep && lane_ep->up && epoch == l->link;
}

/* ------------------------------------------------------------------ the leader */

void weft_lane_return_drop(struct weft_ep *ep, unsigned int n)
{
	struct weft_lane_ep *lane_ep = ep->lanes[n].lane_ep;

	ep->lanes[n].lane_ep = NULL;
	weft_lane_ep_destroy(ep->worker, lane_ep);
	retry_later(ep, n);
}

static void lane_connect(struct weft_ep *ep, unsigned int n)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];
	struct weft_lane_iface *iface = iface_of(ep, n);
	struct weft_lane_ep *lane_ep;

	/* LANE_DOWN_ACK of the last connection must be sent before the next connection is made. */
	if (!iface->ops->link_up(iface) || l->answer_due) {
		retry_later(ep, n);
		return;
	}
	if (lane_link_needed(iface)) {
		if (lane_link_begin(ep, n, iface) < 0)
			retry_later(ep, n);
		return;
	}
	if (weft_lane_connect(ep, n, iface, l->addr, l->addr_len, &lane_ep) < 0) {
		retry_later(ep, n);
		return;
	}
	lane_ep->index = (uint8_t)n;
	ep->lanes[n].lane_ep = lane_ep;
	l->life = WEFT_LANE_CONNECTING;
	l->look_at = ep->worker->now + at_least(CONNECT_NS, CONNECT_TRIPS, ep);
	weft_ep_timer_at(ep, l->look_at);
}

static void send_attach(struct weft_ep *ep, unsigned int n)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];
	struct weft_wire_lane numbers = {
		.lane = (uint8_t)n,
		.lower_iface = ep->lane_info[n].local_iface,
		.higher_iface = ep->lane_info[n].remote_iface,
		.flags = l->map.measured,
		.max_frag = weft_put32(l->map.max_frag),
		.bandwidth = weft_put_single((float)l->map.bandwidth),
		.latency = weft_put_single((float)l->map.latency),
	};
	struct weft_records r = {.len = 0};
	struct weft_wire_wireup h;

	weft_wireup_head(ep, WEFT_WIREUP_ATTACH, n, &h);
	h.lane_epoch = weft_put16(l->epoch);
	weft_records_add(&r, WEFT_RECORD_LANES, &numbers, sizeof(numbers));
	weft_wireup_send(ep->lanes[n].lane_ep, &h, r.buf, r.len);
	l->look_at = ep->worker->now + at_least(ATTACH_AGAIN_NS, ATTACH_TRIPS, ep);
	weft_ep_timer_at(ep, l->look_at);
}

void weft_lane_return_timer(struct weft_ep *ep, unsigned int n)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];

	if (l->life == WEFT_LANE_GONE) {
		lane_connect(ep, n);
	} else if (l->life == WEFT_LANE_CONNECTING) {
		if (!lane_link_timer(ep, n))
			weft_lane_return_drop(ep, n);
	} else if (ep->worker->now - l->since < ATTACH_NS ||
		   !weft_failover_stop(ep, n, "the peer does not attach it")) {
		send_attach(ep, n);
	}
}

void weft_lane_return_link(struct weft_worker *w, const struct weft_lane_iface *iface)
{
	struct weft_ep *ep;

	LIST_FOREACH(ep, &w->eps, entry) {
		for (unsigned int n = 0; ep->failover && n < ep->num_lanes; n++) {
			struct weft_failover_lane *l = &ep->failover->lane[n];

			if (l->life != WEFT_LANE_GONE || l->look_at == UINT64_MAX ||
			    iface_of(ep, n) != iface)
				continue;
			l->returns = 0;
			l->look_at = w->now;
			weft_ep_timer_at(ep, w->now);
		}
	}
}

/* ------------------------------------------------------------------ both ends */

static void set_numbers(struct weft_ep *ep, unsigned int n)
{
	const struct weft_select_lane *map = &ep->failover->lane[n].map;
	struct weft_ep_lane_info *info = &ep->lane_info[n];
	struct weft_ep_lane *lane = &ep->lanes[n];

	/* As in lanes.c: rounded to single precision, the numbers are the same at both ends. */
	lane->bandwidth = (float)map->bandwidth;
	lane->latency = (float)map->latency;
	lane->max_frag = map->max_frag;
	if (map->measured & WEFT_WIRE_LANE_F_BW)
		info->bandwidth_from = "measured";
	if (map->measured & WEFT_WIRE_LANE_F_LAT)
		info->latency_from = "measured";
	/* The text has no measured numbers, so all returns share it (struct weft_texts). */
	weft_lane_set_why(ep, n, "back");
	info->numbers = false;
}

static void lane_is_back(struct weft_ep *ep, unsigned int n)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];

	l->life = WEFT_LANE_USED;
	l->since = ep->worker->now;
	l->look_at = UINT64_MAX;
	set_numbers(ep, n);
	ep->worker->count.lanes_back++;
	if (weft_iface_lane_line(ep->worker, iface_of(ep, n), true))
		weft_log_ep(ep, WEFT_LOG_WARN, "lane %u to %s is back: %s, %.3g GB/s, %.3g us", n,
			    ep->remote_name, iface_of(ep, n)->name,
			    (double)ep->lanes[n].bandwidth / 1e9,
			    (double)ep->lanes[n].latency * 1e6);
	weft_lane_up(ep, n);
}

bool weft_lane_return_linked(struct weft_ep *ep, unsigned int n, const struct weft_wireup_msg *m)
{
	return lane_link_recv(ep, n, iface_of(ep, n), m);
}

bool weft_lane_return_event(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			    enum weft_lane_event ev, const char *text)
{
	unsigned int n = lane_ep->index;
	struct weft_failover_lane *l;

	if (!ep->failover || n >= ep->num_lanes || ep->lanes[n].lane_ep != lane_ep)
		return false;
	l = &ep->failover->lane[n];
	if (l->life != WEFT_LANE_CONNECTING && l->life != WEFT_LANE_ATTACHING)
		return false;
	if (ev != WEFT_LANE_EV_UP) {
		weft_log_ep(ep, WEFT_LOG_INFO, "lane %u is not back yet: %s", n, text);
		weft_lane_return_drop(ep, n);
	} else if (l->life == WEFT_LANE_CONNECTING && weft_failover_leads(ep)) {
		l->life = WEFT_LANE_ATTACHING;
		l->since = ep->worker->now;
		l->answer_due = false;
		l->epoch = lane_link_needed(lane_ep->iface) ? l->link : weft_lane_next(l->epoch);
		l->map.measured = 0;
		weft_map_measured(lane_ep, l->set, &l->map);
		send_attach(ep, n);
	}
	return true;
}

static bool may_attach(const struct weft_ep *ep, struct weft_lane_ep *lane_ep, unsigned int n,
		       uint16_t epoch)
{
	const struct weft_failover_lane *l = &ep->failover->lane[n];
	const struct weft_lane_ops *ops = lane_ep->ops;

	return (ep->state == WEFT_EP_UP || ep->state == WEFT_EP_CLOSING) &&
	       !weft_failover_leads(ep) && l->life == WEFT_LANE_GONE &&
	       weft_lane_newer(epoch, l->epoch) && !lane_ep->user &&
	       lane_ep->iface == iface_of(ep, n) &&
	       (!ops->ep_is_from || ops->ep_is_from(lane_ep, l->addr, l->addr_len)) &&
	       weft_lane_has_key(ep, n, lane_ep);
}

bool weft_lane_return_attach(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			     const struct weft_wireup_msg *m)
{
	uint16_t epoch = weft_get16(m->head.lane_epoch);
	unsigned int n = m->head.lane;
	struct weft_failover_lane *l;

	if (epoch == 0 || !ep->failover || n >= ep->num_lanes)
		return false;
	l = &ep->failover->lane[n];
	if (ep->lanes[n].lane_ep == lane_ep && epoch == l->epoch) {
		weft_lane_answer_attach(ep, lane_ep, n, epoch);
		return true;
	}
	if (!may_attach(ep, lane_ep, n, epoch) && !lane_link_attaches(ep, lane_ep, n, epoch)) {
		ep->worker->count.wireup_stale++;
		return true;
	}
	weft_pending_remove(ep->worker, lane_ep);
	lane_ep->user = ep;
	lane_ep->index = (uint8_t)n;
	ep->lanes[n].lane_ep = lane_ep;
	l->epoch = epoch;
	l->answer_due = false;
	if (m->num_lanes == 1 && m->lanes[0].lane == n)
		weft_map_get_numbers(&m->lanes[0], &l->map);
	weft_lane_answer_attach(ep, lane_ep, n, epoch);
	lane_is_back(ep, n);
	return true;
}

void weft_lane_return_attached(struct weft_ep *ep, struct weft_lane_ep *lane_ep)
{
	unsigned int n = lane_ep->index;

	if (ep->failover && n < ep->num_lanes && ep->lanes[n].lane_ep == lane_ep &&
	    ep->failover->lane[n].life == WEFT_LANE_ATTACHING)
		lane_is_back(ep, n);
}
