/* SPDX-License-Identifier: BSD-3-Clause */

/* The MAC addresses of next hops, by ARP. */

#include <stdio.h>
#include <string.h>

#include <rte_ether.h>

#include "base/log.h"
#include "engine/address.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/conn_state.h"
#include "engine/conn_table.h"
#include "engine/half_open.h"
#include "engine/handshake.h"
#include "engine/iface.h"
#include "engine/move.h"
#include "engine/neighbour.h"
#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/parse.h"

/* ---------------------------------------------------------------- requests */

bool raw_arp_request(struct raw_iface *iface, uint32_t ip, bool theirs)
{
	static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct rte_arp_hdr request;

	if (!(theirs ? weft_arp_request_theirs(&iface->arp, ip, iface->now, &request)
		     : weft_arp_request(&iface->arp, ip, iface->now, &request)))
		return false;
	raw_arp_send(iface, everybody, &request);
	raw_count(iface, RAW_ARP_REQUESTS);
	return true;
}

/* ---------------------------------------------------------------- answers to HELLO */

/*
 * Which MAC address the answer to a HELLO goes to. The answer contains the connection's secrets, so
 * it goes to the owner of the sender's IP address, which need not be the sender of the frame. The
 * owner is found by ARP; if the address is outside the subnet, the gateway's address is requested.
 * If the ARP request gets no answer, or there is no gateway, the answer goes to the frame's source
 * MAC.
 *
 * The ARP request leaves as soon as the half-open entry exists, and the initiator soon repeats
 * HELLO. So an unknown address costs one round trip, and a known one costs nothing.
 */

void raw_hello_mac_begin(struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct raw_iface *iface = c->iface;

	memcpy(c->peer_mac, v->src_mac, 6);
	memcpy(c->hs->hello_mac, v->src_mac, 6);
	c->peer_ip = v->src_ip;
	c->hop_ip = v->src_ip;
	c->hs->mac_unproven =
		!iface->rx_filter.raw_ethertype && raw_next_hop(iface, c->peer_ip, &c->hop_ip) == 0;
}

bool raw_hello_mac_known(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	bool same;
	uint8_t mac[6];

	if (!c->hs->mac_unproven)
		return true;
	if (!weft_arp_lookup(&iface->arp, c->hop_ip, iface->now, mac)) {
		raw_arp_request(iface, c->hop_ip, true);
		return iface->live_clock + RAW_HALF_OPEN_NS >= c->hs_expire + RAW_HELLO_MAC_NS;
	}
	same = memcmp(mac, c->hs->hello_mac, 6) == 0;
	/* The peer may have moved since; so a HELLO starts another ARP request now and then. */
	if (!same && weft_arp_recheck(&iface->arp, c->hop_ip, iface->now)) {
		raw_arp_request(iface, c->hop_ip, true);
		return false;
	}
	memcpy(c->peer_mac, mac, 6);
	raw_conn_template(c);
	c->hs->mac_unproven = !same;
	return true;
}

/* To be called when ARP has learned an address. The list has RAW_HALF_OPEN_MAX entries at most. */
static void hello_mac_learned(struct raw_iface *iface)
{
	struct raw_conn *c;

	TAILQ_FOREACH(c, &iface->half.list, hs->half_link)
		if (c->hs->mac_unproven && raw_hello_mac_known(c))
			raw_hello_answer(c);
}

/* ---------------------------------------------------------------- received ARP frames */

/* Answers go to the connections that wait for them. */

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
	hello_mac_learned(iface);
	while ((c = TAILQ_FIRST(&iface->resolving))) {
		raw_table_resolving(c, false);
		if (c->state == RAW_RESOLVE)
			raw_deadline_live(c, c->hs_next = iface->live_clock);
	}
}
