/* SPDX-License-Identifier: BSD-3-Clause */

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

#include <string.h>

#include "engine/build.h"
#include "engine/conn.h"
#include "engine/connect.h"
#include "engine/iface.h"
#include "engine/peer.h"
#include "frame/arp.h"
#include "frame/parse.h"

void raw_hello_mac_begin(struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct raw_iface *iface = c->iface;

	memcpy(c->peer_mac, v->src_mac, 6);
	memcpy(c->hello_mac, v->src_mac, 6);
	c->peer_ip = v->src_ip;
	c->hop_ip = v->src_ip;
	c->mac_unproven =
		!iface->rx_filter.raw_ethertype && raw_next_hop(iface, c->peer_ip, &c->hop_ip) == 0;
}

bool raw_hello_mac_known(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	bool same;
	uint8_t mac[6];

	if (!c->mac_unproven)
		return true;
	if (!weft_arp_lookup(&iface->arp, c->hop_ip, iface->now, mac)) {
		raw_arp_request(iface, c->hop_ip, true);
		return iface->live_clock + RAW_HALF_OPEN_NS >= c->hs_expire + RAW_HELLO_MAC_NS;
	}
	same = memcmp(mac, c->hello_mac, 6) == 0;
	/* The peer may have moved since; so a HELLO starts another ARP request now and then. */
	if (!same && weft_arp_recheck(&iface->arp, c->hop_ip, iface->now)) {
		raw_arp_request(iface, c->hop_ip, true);
		return false;
	}
	memcpy(c->peer_mac, mac, 6);
	raw_conn_template(c);
	c->mac_unproven = !same;
	return true;
}

/* The list has RAW_HALF_OPEN_MAX entries at most. */
void raw_hello_mac_learned(struct raw_iface *iface)
{
	struct raw_conn *c;

	TAILQ_FOREACH(c, &iface->half.list, half_link)
		if (c->mac_unproven && raw_hello_mac_known(c))
			raw_hello_answer(c);
}
