/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/rx.h
 * Receiving frames, and the acknowledgements that they want.
 */
#ifndef WEFT_ENGINE_RX_H
#define WEFT_ENGINE_RX_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/iface.h"

struct rte_arp_hdr;
struct rte_mbuf;

#define RAW_ACK_DELAY 25000ull
#define RAW_ACK_FRAMES 8u
#define RAW_ACK_BYTES 65536u

/* @return frames received */
unsigned int raw_rx(struct raw_iface *iface);
void raw_acks(struct raw_iface *iface);

/*
 * A frame for another worker's UDP port goes to it (engine/hand_over.c).
 * @return false: it is nobody's here, or there is no room
 */
bool raw_hand_over(struct raw_iface *iface, struct rte_mbuf *m, uint16_t udp_port);
/* ARP that may be of use to the port's other workers. */
void raw_hand_hint(struct raw_iface *iface, struct rte_mbuf *m, const struct rte_arp_hdr *arp);

#endif /* WEFT_ENGINE_RX_H */
