/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/conf.h
 * The limits of a port, and its configuration within them.
 */
#ifndef WEFT_PORT_CONF_H
#define WEFT_PORT_CONF_H

#include "port/port.h"

struct weft_port_opts;

/** Fill @p d->limits. @return 0, or an error with @p why */
int weft_port_limits_find(struct weft_port_dev *d, char *why, size_t why_len);
/** Bytes of a receive buffer, without headroom, for a whole frame if the NIC's buffers allow. */
uint32_t weft_port_rx_room(const struct weft_port_dev *d);
/** Can a frame need more than one buffer of @p room bytes, by the PMDs' calculations? */
bool weft_port_rx_scatters(const struct weft_port_dev *d, uint32_t room);

/** @return 0 or -EINVAL with @p why */
int weft_port_choose_frame(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
			   size_t why_len);
/** Configure a port that is stopped, with queues and pools. @return 0 or an error with @p why */
int weft_port_configure(struct weft_port_dev *d, const struct weft_port_opts *o, char *why,
			size_t why_len);
/** Store the rings' real depth in @p d->limits, as far as it is known, right after the start. */
void weft_port_find_depth(struct weft_port_dev *d);
/** Let frames of p->vlan pass. @return 0 or an error with @p why */
int weft_port_vlan_add(struct weft_port *p, char *why, size_t why_len);
void weft_port_vlan_remove(struct weft_port *p);
/** Take the IPv6 address of the lane, and receive the group addresses of neighbour discovery. */
void weft_port_take_ip6(struct weft_port *p, const struct weft_port_opts *o);
void weft_port_leave_ip6(struct weft_port *p);

#endif /* WEFT_PORT_CONF_H */
