/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/rx.h
 * Receiving frames, and sending the acknowledgements that they require.
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
 * Pass a frame for another worker's UDP port to that worker.
 * @return false: no worker of this process has the port, or its ring is full
 */
bool raw_hand_over(struct raw_iface *iface, struct rte_mbuf *m, uint16_t udp_port);
/* Pass on an ARP message that may be useful to the port's other workers. */
void raw_hand_hint(struct raw_iface *iface, struct rte_mbuf *m, const struct rte_arp_hdr *arp);

#endif /* WEFT_ENGINE_RX_H */
