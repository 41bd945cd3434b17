/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdbool.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "engine/iface.h"
#include "engine/rx.h"
#include "engine/slots.h"
#include "frame/arp.h"
#include "frame/frame_port.h"
#include "frame/steering.h"

/* So many hints wait for a worker at most: of old ones nothing more is learned. */
#define HINTS_MAX 32u

static bool hand(struct raw_iface *iface, struct rte_mbuf *m, unsigned int queue, uint32_t max)
{
	struct rte_ring *ring = iface->port->steering.handed[queue];

	if (rte_ring_count(ring) >= max)
		return false;
	raw_ref_chain(m); /* the caller lets go of its own */
	if (rte_ring_enqueue(ring, m) != 0) {
		rte_pktmbuf_free(m);
		return false;
	}
	return true;
}

/*
 * A frame for another worker of this port goes to it by a ring: the NIC's hash has brought it here,
 * for a moment or, where nothing better was to be had, always. Only frames as they came: no worker
 * passes on what it was passed.
 */
bool raw_hand_over(struct raw_iface *iface, struct rte_mbuf *m, uint16_t udp_port)
{
	const struct weft_steering *s = &iface->port->steering;
	int owner;

	if (!s->handed || iface->rx_elsewhere || udp_port == 0)
		return false;
	owner = weft_port_owner((uint16_t)(iface->gate.udp_port - s->queue), s->queues, udp_port);
	if (owner < 0 || owner == s->queue)
		return false;
	if (hand(iface, m, (unsigned int)owner, iface->hand_max)) {
		raw_count(iface, RAW_STEER_HANDED);
		return true;
	}
	raw_count(iface, RAW_STEER_FULL);
	return false;
}

/*
 * ARP comes to the first queue, and what it says of a host that some worker of the port has asked
 * for is for all of them. A queue without a worker has a ring that nobody empties: a few hints wait
 * in it, and that there is no room for more is no loss. None of them came to a wrong queue.
 */
void raw_hand_hint(struct raw_iface *iface, struct rte_mbuf *m, const struct rte_arp_hdr *arp)
{
	const struct weft_steering *s = &iface->port->steering;
	struct weft_arp_hint hint;

	if (!s->handed || !weft_arp_hint(&iface->arp, arp, &hint) ||
	    !weft_arp_has(&iface->arp, hint.ip))
		return;
	for (unsigned int q = 0; q < s->queues; q++)
		if (q != s->queue && hand(iface, m, q, RTE_MIN(iface->hand_max / 2 + 1, HINTS_MAX)))
			raw_count(iface, RAW_STEER_HINTS);
}
