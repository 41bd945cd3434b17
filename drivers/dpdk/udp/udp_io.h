/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file udp/udp_io.h
 * Frames into datagrams, and datagrams into frames.
 */
#ifndef WEFT_UDP_IO_H
#define WEFT_UDP_IO_H

#include "udp/udp_socket.h"

uint16_t weft_udp_tx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n);

int weft_udp_rx_init(struct weft_udp *u);
void weft_udp_rx_fini(struct weft_udp *u);
uint16_t weft_udp_rx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n);

#endif /* WEFT_UDP_IO_H */
