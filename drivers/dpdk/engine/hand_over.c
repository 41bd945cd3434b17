/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdbool.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "engine/iface.h"
#include "engine/rx.h"
#include "engine/slots.h"
#include "frame/frame_port.h"
#include "frame/steering.h"

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
	if (rte_ring_count(s->handed[owner]) >= iface->hand_max) {
		raw_count(iface, RAW_STEER_FULL);
		return false;
	}
	raw_ref_chain(m); /* the caller lets go of its own */
	if (rte_ring_enqueue(s->handed[owner], m) != 0) {
		raw_count(iface, RAW_STEER_FULL);
		rte_pktmbuf_free(m);
		return false;
	}
	raw_count(iface, RAW_STEER_HANDED);
	return true;
}
