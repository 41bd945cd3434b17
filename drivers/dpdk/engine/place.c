/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Which MAC address gets the answer to a HELLO. It has the connection's secrets, so it goes to who
 * has the sender's IP address and not to whoever sent the frame: ARP is asked, for the gateway if
 * the address is outside the subnet. Where nobody answers ARP for it, or no gateway was given,
 * there is nobody to ask, and the answer goes where the frame came from.
 *
 * The question is out as soon as the entry is made, and the initiator says HELLO again soon: this
 * costs a round trip when the address is not known, and nothing when it is.
 */

#include <string.h>

#include "engine/build.h"
#include "engine/conn.h"
#include "engine/connect.h"
#include "engine/iface.h"
#include "engine/peer.h"
#include "frame/arp.h"
#include "frame/parse.h"

void raw_place_begin(struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct raw_iface *iface = c->iface;

	memcpy(c->peer_mac, v->src_mac, 6);
	memcpy(c->hello_mac, v->src_mac, 6);
	c->peer_ip = v->src_ip;
	c->hop_ip = v->src_ip;
	c->unplaced =
		!iface->gate.raw_ethertype && raw_next_hop(iface, c->peer_ip, &c->hop_ip) == 0;
}

bool raw_placed(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	bool same;
	uint8_t mac[6];

	if (!c->unplaced)
		return true;
	if (!weft_arp_lookup(&iface->arp, c->hop_ip, iface->now, mac)) {
		raw_arp_ask(iface, c->hop_ip, true);
		return iface->lt + RAW_HALF_OPEN_NS >= c->hs_expire + RAW_PLACE_NS;
	}
	same = memcmp(mac, c->hello_mac, 6) == 0;
	/* It may have moved since; so each HELLO asks again, now and then. */
	if (!same && weft_arp_doubt(&iface->arp, c->hop_ip, iface->now)) {
		raw_arp_ask(iface, c->hop_ip, true);
		return false;
	}
	memcpy(c->peer_mac, mac, 6);
	raw_conn_template(c);
	c->unplaced = !same;
	return true;
}

/* RAW_HALF_OPEN_MAX at most. */
void raw_place_learned(struct raw_iface *iface)
{
	struct raw_conn *c;

	TAILQ_FOREACH(c, &iface->half.list, half_link)
		if (c->unplaced && raw_placed(c))
			raw_hello_answer(c);
}
