/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/stray.h
 * Received frames that belong to no connection of the interface: ARP, ICMP, HELLO, frames for
 * connections that have ended or for other workers of the port, and invalid ones.
 */
#ifndef WEFT_ENGINE_STRAY_H
#define WEFT_ENGINE_STRAY_H

#include <rte_mbuf.h>

#include "engine/iface.h"
#include "frame/parse.h"

/* Handle a valid frame that no connection of this interface receives: also HELLO and RESET. */
void raw_stray_input(struct raw_iface *iface, const struct weft_frame_view *v);
/* Handle a frame whose verdict @p g is not OK: ARP, ICMP, or for another queue. Drop others. */
void raw_invalid_input(struct raw_iface *iface, enum weft_rx_verdict g,
		       const struct weft_frame_view *v, struct rte_mbuf *m);

#endif /* WEFT_ENGINE_STRAY_H */
