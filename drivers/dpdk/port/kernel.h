/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/kernel.h
 * Ports over kernel interfaces: link, MTU, packet sockets, AF_XDP sockets.
 */
#ifndef WEFT_PORT_KERNEL_H
#define WEFT_PORT_KERNEL_H

#include "port/port.h"

bool weft_kernel_link_up(unsigned int if_index);
/** Write why the interface has no link: the side that is down. */
void weft_kernel_link_why(unsigned int if_index, char *buf, size_t size);
/** The interface's first IPv4 address, host order; 0 = it has none. */
uint32_t weft_kernel_ip(unsigned int if_index);
/** MTU of the interface; 0 = there is no such interface. */
uint32_t weft_kernel_mtu(unsigned int if_index);
/** The MTU of a veth's other end; 0 = it is no veth, or the other end is not visible here. */
uint32_t weft_veth_peer_mtu(unsigned int if_index);
/** Receive frames to two groups until the socket is closed. @return the socket, or an error */
int weft_kernel_join(unsigned int if_index, uint8_t mac[2][6]);
/** @return the socket of net_af_packet's queue @p k on the interface; -1 = there is none */
int weft_packet_socket_find(unsigned int if_index, unsigned int k);
/** @return frames that had no place in the socket's receive ring, since the last call */
uint32_t weft_packet_socket_lost(int sock);
void weft_packet_socket_init(struct weft_port *p);
/** @return how many frames the PMD takes without sleeping; from now on they count as sent */
uint16_t weft_packet_socket_room(struct weft_port *p, struct rte_mbuf **pkts, uint16_t n);
/** Send the frames that the kernel has left in the ring, 20 us after the last send() or later. */
void weft_packet_socket_kick(struct weft_port *p);
/** arm() of frame/frame_port.h. */
int weft_packet_socket_arm(struct weft_port *p, uint64_t *within);

/** Note the AF_XDP sockets that exist before rte_eth_rx_queue_setup() creates the queue's. */
void weft_xdp_before(const struct weft_port_dev *d);
/** Find the queue's socket after rte_eth_rx_queue_setup(): d->xdp_socks[queue]. */
void weft_xdp_after(struct weft_port_dev *d, uint16_t queue);
/** arm() of frame/frame_port.h: -EBUSY if a frame is there. */
int weft_xdp_arm(const struct weft_port *p);

#endif /* WEFT_PORT_KERNEL_H */
