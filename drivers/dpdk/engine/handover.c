/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_common.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "engine/handover.h"
#include "engine/iface.h"
#include "engine/outstanding.h"
#include "frame/arp.h"
#include "frame/frame_port.h"

/* At most this number of hints waits for a worker: old ones are of no use. */
#define HINTS_MAX 32u

static bool enqueue_frame(struct raw_iface *iface, struct rte_mbuf *m, unsigned int queue,
			  uint32_t max)
{
	struct rte_ring *ring = iface->port->steering.handed[queue];

	if (rte_ring_count(ring) >= max)
		return false;
	raw_ref_chain(m); /* the caller frees its own reference */
	if (rte_ring_enqueue(ring, m) != 0) {
		rte_pktmbuf_free(m);
		return false;
	}
	return true;
}

bool raw_hand_over(struct raw_iface *iface, struct rte_mbuf *m, uint16_t udp_port)
{
	const struct weft_steering *s = &iface->port->steering;
	int owner;

	if (!s->handed || iface->rx_elsewhere || udp_port == 0)
		return false;
	owner = weft_port_owner((uint16_t)(iface->rx_filter.udp_port - s->queue), s->queues,
				udp_port);
	if (owner < 0 || owner == s->queue)
		return false;
	if (enqueue_frame(iface, m, (unsigned int)owner, iface->hand_max)) {
		raw_count(iface, RAW_STEER_HANDED);
		return true;
	}
	raw_count(iface, RAW_STEER_FULL);
	return false;
}

void raw_hand_hint(struct raw_iface *iface, struct rte_mbuf *m, const struct rte_arp_hdr *arp)
{
	const struct weft_steering *s = &iface->port->steering;
	struct weft_arp_hint hint;

	if (!s->handed || !weft_arp_hint(&iface->arp, arp, &hint) ||
	    !weft_arp_has(&iface->arp, hint.ip))
		return;
	for (unsigned int q = 0; q < s->queues; q++)
		if (q != s->queue &&
		    enqueue_frame(iface, m, q, RTE_MIN(iface->hand_max / 2 + 1, HINTS_MAX)))
			raw_count(iface, RAW_STEER_HINTS);
}
