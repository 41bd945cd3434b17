/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP requests for the MAC address of the next hop. */

#include "engine/build.h"
#include "engine/iface.h"
#include "engine/peer.h"
#include "frame/arp.h"
#include "frame/frame.h"

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
