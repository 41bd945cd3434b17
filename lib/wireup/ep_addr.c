/* SPDX-License-Identifier: BSD-3-Clause */

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

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wireup/wireup.h"

bool weft_link_needed(const struct weft_ep *ep, unsigned int n)
{
	const struct weft_wireup *wu = ep->wireup;

	return wu->map[n].max_frag != 0 &&
	       wu->local[wu->map[n].pair.local].features & WEFT_LANE_F_TO_EP;
}

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

	wu->boot = NULL;
	for (i = 0; i < WEFT_MAX_LANES; i++) {
		wu->attach[i] = WEFT_ATTACH_NONE;
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
		if (!weft_link_needed(ep, i))
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

	for (i = 0; i < WEFT_MAX_LANES; i++) {
		lane_ep = ep->lanes[i].lane_ep;
		if (!lane_ep || !weft_link_needed(ep, i))
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

/*
 * Connect our end of lane @p n to the peer's. @return 0, or the error for which the lane is left
 * out
 */
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

	for (i = 0; i < WEFT_MAX_LANES; i++) {
		if (!ep->lanes[i].lane_ep || ep->lanes[i].lane_ep == wu->boot)
			continue;
		if (wu->map[i].max_frag == 0) {
			snprintf(ep->lane_info[i].why, sizeof(ep->lane_info[i].why),
				 "left out by the peer");
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
