/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/handover.h
 * Received frames for another worker of the port. A ring for each worker takes them there.
 */
#ifndef WEFT_ENGINE_HANDOVER_H
#define WEFT_ENGINE_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_arp.h>
#include <rte_mbuf.h>

#include "engine/iface.h"

/**
 * Hands a frame for another worker of this port to it by a ring. The NIC's hash has brought the
 * frame to this queue: until the connection changes its port, or always if no better port was
 * found. Only frames from the port are handed over: no worker passes on a frame that it got by a
 * ring.
 * @return false: no worker of this process has the port, or its ring is full
 */
bool raw_hand_over(struct raw_iface *iface, struct rte_mbuf *m, uint16_t udp_port);

/**
 * Hands ARP to the other workers. It comes to the first queue only, and is of interest to all
 * workers if one of them has requested that host. The ring of a queue without a worker is never
 * emptied: a few hints wait in it, and dropping further ones is no loss. Hints do not count as
 * frames that came to a wrong queue.
 */
void raw_hand_hint(struct raw_iface *iface, struct rte_mbuf *m, const struct rte_arp_hdr *arp);

#endif /* WEFT_ENGINE_HANDOVER_H */
