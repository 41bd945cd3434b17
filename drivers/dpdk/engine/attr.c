/* SPDX-License-Identifier: BSD-3-Clause */

/* The attributes that an iface reports: limits, costs, features. */

#include <stdio.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/link_state.h"
#include "engine/peer.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "frame/steering.h"
#include "lane.h"

/* Costs per message that protocol selection starts from; measured on memif, 2.5 GHz. */
#define SEND_OVERHEAD 60e-9
#define RECV_OVERHEAD 60e-9
#define MAX_IOV 4u

/*
 * Estimate of a registration's cost until a few have been measured: one or two system calls, and a
 * look-up of each page.
 */
#define REG_COST 20e-6
#define REG_GROWTH 0.1e-9

/*
 * Sets the bandwidth that is reported until a connection has measured it. Called again when the
 * link's speed changes.
 */
void raw_fill_numbers(struct raw_iface *iface)
{
	const struct weft_frame_port *port = iface->port;
	struct weft_lane_attr *a = &iface->base.attr;
	bool guess = port->flags & WEFT_FRAME_PORT_GUESS;

	if (a->features & WEFT_LANE_F_BW_SET)
		return;
	a->bandwidth = port->bandwidth > 0  ? port->bandwidth
		       : iface->copy_bw > 0 ? iface->copy_bw
					    : 10e9;
	a->bandwidth *= (double)a->max_bcopy / iface->frame_size;
	a->bandwidth_known = port->bandwidth > 0 && !guess;
	if (port->bandwidth > 0)
		a->bandwidth_from = guess ? "a guess until measured" : "link speed";
	else
		a->bandwidth_from = "copy rate of this CPU";
}

static void fill_costs(struct raw_iface *iface)
{
	const struct weft_frame_port *port = iface->port;
	struct weft_lane_attr *a = &iface->base.attr;

	a->latency = port->latency;
	a->send_overhead = SEND_OVERHEAD;
	a->recv_overhead = RECV_OVERHEAD;
	if (port->flags & WEFT_FRAME_PORT_MEASURE)
		a->latency_from = "a guess until measured";
	if (port->flags & WEFT_FRAME_PORT_COPIES)
		a->features |= WEFT_LANE_F_COPIES;
	if (port->flags & WEFT_FRAME_PORT_MEMORY)
		a->features |= WEFT_LANE_F_MEMORY;
}

static void needs_registration(struct raw_iface *iface)
{
	struct weft_lane_attr *a = &iface->base.attr;

	a->features |= WEFT_LANE_F_ZCOPY_REG;
	a->reg_cost = REG_COST;
	a->reg_growth = REG_GROWTH;
	snprintf(a->domain, sizeof(a->domain), "%s", iface->port->mem_domain);
}

/*
 * A port that copies each frame in a system call (af_packet, UDP sockets) gains nothing from user
 * memory: the copy into a frame is one of four. A send from user memory costs an acknowledgement
 * more, and with it a system call at either end: 8 KiB take 14.5 us one way, and 10.9 when copied.
 */
static bool sends_user_memory(const struct raw_iface *iface)
{
	uint32_t flags = iface->port->flags;

	if ((flags & WEFT_FRAME_PORT_COPIES) && !(flags & WEFT_FRAME_PORT_MEMORY))
		return false;
	return iface->conf.zcopy && (flags & WEFT_FRAME_PORT_EXTBUF) &&
	       (flags & WEFT_FRAME_PORT_MULTISEG);
}

/* For weft-info. */
static void steering_note(struct raw_iface *iface)
{
	const struct weft_steering *s = &iface->port->steering;
	const char *how = "flow rules bring its frames";

	if (s->queues < 2)
		return;
	if (s->hashed)
		how = s->rss ? "the NIC's hash, which its driver reports, brings frames"
			     : "the NIC's hash brings frames; ports are found by trying";
	snprintf(iface->base.note, sizeof(iface->base.note), "queue %u of %u on UDP port %u: %s",
		 s->queue, s->queues, iface->rx_filter.udp_port, how);
}

void raw_fill_attr(struct raw_iface *iface)
{
	const struct weft_frame_port *port = iface->port;
	struct weft_lane_attr *a = &iface->base.attr;
	uint32_t room = iface->frame_size - iface->encap_len -
			(uint32_t)sizeof(struct weft_frame_hdr) - 4 -
			(uint32_t)sizeof(struct weft_frame_msg);
	uint32_t small =
		rte_pktmbuf_data_room_size(port->hdr_pool) - RTE_PKTMBUF_HEADROOM - RAW_TMPL - 4;

	*a = (struct weft_lane_attr){
		.features = WEFT_LANE_F_SHORT | WEFT_LANE_F_BCOPY | WEFT_LANE_F_TO_IFACE,
		.max_short = room,
		.max_bcopy = room,
		.opt_align = 1,
		.frame_size = iface->frame_size,
		.dev_addr_len = RAW_ADDR_LEN,
		.link = port->link,
	};
	snprintf(a->device, sizeof(a->device), "%s", port->device);
	raw_fill_numbers(iface);
	fill_costs(iface);
	if (sends_user_memory(iface)) {
		a->features |= WEFT_LANE_F_ZCOPY;
		a->max_zcopy = room;
		a->max_zcopy_hdr = RTE_MIN(small, 128u);
		a->max_iov = MAX_IOV;
		if (port->flags & WEFT_FRAME_PORT_REG)
			needs_registration(iface);
	}
	steering_note(iface);
}
