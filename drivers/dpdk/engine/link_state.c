/* SPDX-License-Identifier: BSD-3-Clause */

/* Events of the port while its iface is open: a link goes down or comes up, a NIC is removed. */

#include <stdio.h>

#include <rte_common.h>

#include "engine/conn.h"
#include "engine/hint.h"
#include "engine/iface.h"
#include "engine/link_state.h"
#include "engine/peer.h"
#include "engine/suspect.h"
#include "engine/txq.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "lane.h"

static void report_event(struct raw_iface *iface, enum weft_lane_iface_event ev, const char *text)
{
	if (iface->iface_event)
		iface->iface_event(iface->cb_arg, &iface->base, ev, text);
}

/*
 * The port sends and receives nothing any more. All connections end at once: a timeout would only
 * hide the reason. Callbacks may destroy connections, and create others at the end of the list.
 * Only a connection that the protocol layer does not know is freed here, in its own iteration.
 */
static void end_all(struct raw_iface *iface, const struct weft_frame_port_event *ev)
{
	struct raw_conn *c, *next;
	char text[sizeof(iface->ended_why) + 128], peer[64];

	iface->ended = ev->status;
	snprintf(iface->ended_why, sizeof(iface->ended_why), "%s (%s): %s", iface->base.name,
		 iface->base.attr.device, ev->text);
	raw_count(iface, RAW_PORT_ENDED);
	raw_txq_end(iface);
	report_event(iface, WEFT_LANE_IFACE_EV_ENDED, ev->text);
	for (c = TAILQ_FIRST(&iface->conns); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->state == RAW_DOWN || c->state == RAW_QUIET || c->state == RAW_TIME_WAIT)
			continue;
		snprintf(text, sizeof(text), "%s; the connection with %s is lost", iface->ended_why,
			 raw_peer_text(c, peer, sizeof(peer)));
		raw_conn_lost(c, ev->status, text);
	}
}

void raw_port_look(struct raw_iface *iface)
{
	struct weft_frame_port *port = iface->port;
	struct weft_frame_port_event ev = {0};
	enum weft_frame_port_what what;

	port->event = false;
	while (iface->ended == 0 && port->ops->look &&
	       (what = port->ops->look(port, &ev)) != WEFT_FRAME_PORT_NOTHING) {
		switch (what) {
		case WEFT_FRAME_PORT_LINK_DOWN:
			iface->link_up = false;
			raw_count(iface, RAW_PORT_LINK_DOWN);
			report_event(iface, WEFT_LANE_IFACE_EV_LINK_DOWN, ev.text);
			raw_suspect_link(iface);
			break;
		case WEFT_FRAME_PORT_LINK_UP:
			iface->link_up = true;
			raw_count(iface, RAW_PORT_LINK_UP);
			raw_fill_numbers(iface);
			raw_announce_begin(iface);
			report_event(iface, WEFT_LANE_IFACE_EV_LINK_UP, ev.text);
			break;
		case WEFT_FRAME_PORT_SPEED:
			raw_fill_numbers(iface);
			report_event(iface, WEFT_LANE_IFACE_EV_SPEED, ev.text);
			break;
		default:
			end_all(iface, &ev);
		}
		ev.text[0] = '\0';
	}
	iface->look_at =
		iface->ended != 0 || !port->ops->look
			? RAW_NEVER
			: iface->live_clock + (iface->link_up ? RAW_LOOK_UP : RAW_LOOK_DOWN);
	iface->next_live_clock = RTE_MIN(iface->next_live_clock, iface->look_at);
}
