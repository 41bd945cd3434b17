/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/rxtx.h
 * The operations of an open port, and RX interrupts for an owner that sleeps.
 */
#ifndef WEFT_PORT_RXTX_H
#define WEFT_PORT_RXTX_H

#include "port/ethdev.h"
#include "port/port.h"

/** The reason why a port that should wake a sleeping owner can't, or "" */
void weft_port_intr_text(struct weft_frame_port *port, char *text, size_t size);

/**
 * @return a device's interrupts for DPDK; 0: none, or not visible to this user; UINT_MAX: no PCI
 *   device, or its PMD has interrupts of another kind
 */
unsigned int weft_port_intr_vectors(const char *sysfs, const char *device);
bool weft_port_intr_wanted(const struct weft_port_dev *d, enum weft_rx_intr mode);
/** The port is started: let interrupts wake the owner of this queue pair, if the port has any. */
void weft_port_intr_open(struct weft_port *p, const struct weft_port_intr_modes *modes);
void weft_port_intr_close(struct weft_port *p);

extern const struct weft_frame_port_ops weft_port_ops; /**< hardware, and PMDs not named below */
extern const struct weft_port_intr_modes weft_port_intr_modes;
extern const struct weft_frame_port_ops weft_port_xdp_ops;
extern const struct weft_frame_port_ops weft_port_memif_ops;
extern const struct weft_frame_port_ops weft_port_packet_ops;
extern const struct weft_frame_port_ops weft_port_ring_ops;

#endif /* WEFT_PORT_RXTX_H */
