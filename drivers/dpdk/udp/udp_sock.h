/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file udp/udp_sock.h
 * The sockets of a lane: their options, the ports to which they are bound, and their counts.
 */
#ifndef WEFT_UDP_SOCK_H
#define WEFT_UDP_SOCK_H

#include "udp/udp.h"

/**
 * Bind the socket on which the lane listens, and so choose its block of ports.
 * @return 0, or a negative error with a sentence in @p why
 */
int weft_udp_listen(struct weft_udp *u, const struct weft_udp_opts *o, char *why, size_t why_len);

/** The lane's interface has got another index. */
void weft_udp_sock_iface(struct weft_udp *u);

void weft_udp_sock_close(struct weft_udp *u);

/** weft_frame_port_ops.missed */
uint64_t weft_udp_missed(struct weft_frame_port *fp);

#endif /* WEFT_UDP_SOCK_H */
