/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/stray.h
 * Received frames of no connection: ARP and ICMP, hellos, frames for ends that are gone, and what
 * is dropped. Frames for another worker of the port, which a ring takes there.
 */
#ifndef WEFT_ENGINE_STRAY_H
#define WEFT_ENGINE_STRAY_H

#include <rte_mbuf.h>

#include "engine/iface.h"
#include "frame/parse.h"

/* Handle a valid frame that no connection of this interface gets. */
void raw_stray_input(struct raw_iface *iface, const struct weft_frame_view *v);
/* Handle ARP, ICMP and frames of other queues, and drop others: @p g is not OK. */
void raw_invalid_input(struct raw_iface *iface, enum weft_rx_verdict g,
		       const struct weft_frame_view *v, struct rte_mbuf *m);

#endif /* WEFT_ENGINE_STRAY_H */
