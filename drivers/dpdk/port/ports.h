/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/ports.h
 * The ports of DPDK, those that are open, and the process that has one.
 */
#ifndef WEFT_PORT_PORTS_H
#define WEFT_PORT_PORTS_H

#include "port/port.h"

/**
 * List the ports of the (initialised) EAL, and the virtual devices of its arguments that are no
 * ports.
 *
 * @param add  called for each, as in query() of struct weft_lane_driver
 * @return how many are listed, or a negative errno
 */
int weft_port_ethdev_list(weft_lane_resource_cb add, void *arg);

/** Reserve the devices of the port for this process. @return 0, or an error with @p why */
int weft_port_claim(struct weft_port_dev *d, char *why, size_t why_len);
void weft_port_unclaim(struct weft_port_dev *d);

/** Format a message. @return @p rc */
__attribute__((format(printf, 4, 5))) int weft_port_fail(int rc, char *why, size_t why_len,
							 const char *fmt, ...);
void weft_port_link_text(struct weft_frame_port *fp, char *buf, size_t size);

/**
 * Contexts of one process may open and close ports in several threads. The lock protects
 * weft_port_devs, their queues and the pools (port/ethdev.c).
 */
extern pthread_mutex_t weft_port_lock;
/** the open ports, by number; NULL = not open */
extern struct weft_port_dev *weft_port_devs[RTE_MAX_ETHPORTS];

void weft_port_name(uint16_t id, char name[RTE_ETH_NAME_MAX_LEN]);
/** Find a port by number or name. @return 0, or an error with @p why */
int weft_port_find(const char *resource, uint16_t *id, char *why, size_t why_len);

#endif /* WEFT_PORT_PORTS_H */
