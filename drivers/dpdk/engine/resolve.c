/* SPDX-License-Identifier: BSD-3-Clause */
/* Received ARP frames: answers go to the connections that wait for them. */

#include <stdio.h>

#include <rte_ether.h>

#include "base/log.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/connect.h"
#include "engine/hint.h"
#include "engine/iface.h"
#include "engine/peer.h"
#include "engine/timer.h"
#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/parse.h"

/*
 * Two hosts have one address. The frames of a connection go on to the host with which it was made;
 * new connections reach one or the other. Only a person can resolve the conflict, so the log
 * reports it.
 */
static void several_have_it(struct raw_iface *iface)
{
	const struct weft_arp_conflict *k = &iface->arp.conflict;
	char ip[16], mac[2][RTE_ETHER_ADDR_FMT_SIZE];

	raw_count(iface, RAW_ARP_CONFLICT);
	for (unsigned int i = 0; i < 2; i++)
		raw_mac_text(k->mac[i], mac[i]);
	snprintf(ip, sizeof(ip), "%u.%u.%u.%u", k->ip >> 24, k->ip >> 16 & 255, k->ip >> 8 & 255,
		 k->ip & 255);
	if (k->ip == iface->rx_filter.ip)
		weft_log_limited(
			&iface->conflict_log, WEFT_LOG_WARN,
			"%s (%s): address conflict: %s is this port's, which has MAC "
			"address %s, and a host with MAC address %s claims it, "
			"too: peers may reach either, so give one of them another address (ip=)",
			iface->base.name, iface->base.attr.device, ip, mac[0], mac[1]);
	else
		weft_log_limited(&iface->conflict_log, WEFT_LOG_WARN,
				 "%s (%s): address conflict: %s is claimed by MAC addresses "
				 "%s and %s: if these are two hosts, give one of them another "
				 "address; neigh=%s-MAC selects one of them here",
				 iface->base.name, iface->base.attr.device, ip, mac[0], mac[1], ip);
}

void raw_arp_input(struct raw_iface *iface, const struct weft_frame_view *v)
{
	struct rte_arp_hdr reply;
	struct raw_conn *c;

	raw_count(iface, RAW_ARP_IN);
	raw_hint_arp(iface, v->arp);
	switch (weft_arp_input(&iface->arp, v->arp, iface->now, &reply)) {
	case WEFT_ARP_ANSWER:
		raw_arp_send(iface, reply.arp_data.arp_tha.addr_bytes, &reply);
		raw_count(iface, RAW_ARP_ANSWERED);
		break;
	case WEFT_ARP_CONFLICT:
	case WEFT_ARP_SEVERAL:
		several_have_it(iface);
		return;
	case WEFT_ARP_IGNORED:
		return;
	case WEFT_ARP_LEARNED:
		break;
	}
	raw_hello_mac_learned(iface);
	while ((c = TAILQ_FIRST(&iface->resolving))) {
		raw_resolving(c, false);
		if (c->state == RAW_RESOLVE)
			raw_deadline_live(c, c->hs_next = iface->live_clock);
	}
}
