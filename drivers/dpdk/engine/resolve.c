/* SPDX-License-Identifier: BSD-3-Clause */
/* What ARP frames say: answers go to the connections that wait for them. */

#include "engine/build.h"
#include "engine/conn.h"
#include "engine/connect.h"
#include "engine/iface.h"
#include "engine/timer.h"
#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/parse.h"

void raw_arp_input(struct raw_iface *iface, const struct weft_frame_view *v)
{
	struct rte_arp_hdr reply;
	struct raw_conn *c;

	raw_count(iface, RAW_ARP_IN);
	switch (weft_arp_input(&iface->arp, v->arp, iface->now, &reply)) {
	case WEFT_ARP_ANSWER:
		raw_arp_send(iface, reply.arp_data.arp_tha.addr_bytes, &reply);
		raw_count(iface, RAW_ARP_ANSWERED);
		break;
	case WEFT_ARP_CONFLICT:
		raw_count(iface, RAW_ARP_CONFLICT);
		return;
	case WEFT_ARP_IGNORED:
		return;
	case WEFT_ARP_LEARNED:
		break;
	}
	raw_place_learned(iface);
	while ((c = TAILQ_FIRST(&iface->resolving))) {
		raw_resolving(c, false);
		if (c->state == RAW_RESOLVE)
			raw_deadline_lt(c, c->hs_next = iface->lt);
	}
}
