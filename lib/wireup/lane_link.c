/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane whose two ends need each other's address (WEFT_LANE_F_TO_EP) comes back. The leader makes
 * its end and sends its address over another lane, in LANE_LINK. The other side makes its end,
 * connects it, and replies with its own address. Then the leader connects, and attaches as any
 * lane. Each attempt has a number of its own, which identifies late replies to an earlier attempt.
 */

#include "wireup/failover.h"
#include "wireup/lane_link.h"

#include <errno.h>
#include <string.h>

#define RETRY_NS 1000000ull
/*
 * Times for which the leader waits for the reply, longer with each attempt, and for its end to be
 * up.
 */
#define ANSWER_NS 300000000ull
#define UP_NS 1000000000ull
/*
 * The other side's timeout. A whole attempt of the leader takes less, and only the leader tries
 * again.
 */
#define WAIT_NS 4000000000ull
/* Least time between two ends made for the peer, whose attempts are at least 0.1 s apart. */
#define OFTEN_NS 50000000ull

bool weft_lane_link_needed(const struct weft_lane_iface *iface)
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

int weft_lane_link_begin(struct weft_ep *ep, unsigned int n, struct weft_lane_iface *iface)
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

bool weft_lane_link_timer(struct weft_ep *ep, unsigned int n)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];

	if (!l->link_due || ep->worker->now - l->since >= WAIT_NS)
		return false;
	announce_link(ep, n);
	return true;
}

/* @return 0, or an error: the end is of no use */
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

bool weft_lane_link_recv(struct weft_ep *ep, unsigned int n, struct weft_lane_iface *iface,
			 const struct weft_wireup_msg *m)
{
	struct weft_failover_lane *l = &ep->failover->lane[n];
	uint16_t number = weft_get16(m->head.lane_epoch);

	if (!weft_lane_link_needed(iface) || m->ep_addr[n].len != iface->attr.ep_addr_len)
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

bool weft_lane_link_attaches(const struct weft_ep *ep, const struct weft_lane_ep *lane_ep,
			     unsigned int n, uint16_t epoch)
{
	const struct weft_failover_lane *l = &ep->failover->lane[n];

	/* Not before the lane is up and can carry the reply: the leader repeats ATTACH. */
	return !weft_failover_leads(ep) && l->life == WEFT_LANE_CONNECTING &&
	       ep->lanes[n].lane_ep == lane_ep && lane_ep->up && epoch == l->link;
}
