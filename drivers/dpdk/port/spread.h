/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/spread.h
 * Ports with several queues: frames are distributed by flow rules or by the port's hash. And hints
 * about networks that limit a flow.
 */
#ifndef WEFT_PORT_SPREAD_H
#define WEFT_PORT_SPREAD_H

#include <stddef.h>
#include <stdint.h>

#include "port/port.h"

/** How frames find the queue of a port with several queues, or "" */
void weft_port_spread_text(struct weft_frame_port *port, char *text, size_t size);

/** Before rte_eth_dev_configure(): let the port hash UDP, if it has several queues. */
void weft_port_spread_conf(const struct weft_port_dev *d, struct rte_eth_conf *conf);
/** The port is started: find out how it chooses queues. @return 0 or an error with @p why */
int weft_port_spread_open(struct weft_port_dev *d, char *why, size_t why_len);
void weft_port_spread_close(struct weft_port_dev *d);
void weft_port_spread_fill(struct weft_port *p);

/** Make the rules of a queue pair, if its port takes rules. @return 0 or an error with @p why */
int weft_port_steer(struct weft_port *p, char *why, size_t why_len);
void weft_port_unsteer(struct weft_port *p);

/* ---- hints ---------------------------------------------------------------------------------- */

/**
 * AWS limits one flow to 5 Gb/s, or 10 in a cluster placement group, and carries an MTU of 9001: a
 * lane over ENA with one path, or with small frames, gets a part of its link.
 * @param driver  of the port; for others than net_ena the text is ""
 * @param mbps    link speed; 0 = unknown, as ENA's driver reports it
 * @param mtu, paths  of the lane
 * @param[out] text a sentence that names the lane options, or ""
 */
void weft_port_flow_hint(const char *driver, uint32_t mbps, uint16_t mtu, unsigned int paths,
			 char *text, size_t size);

/** A hint about the network behind a port just opened, or "". @p paths: of the lane */
void weft_port_hint(struct weft_frame_port *port, unsigned int paths, char *text, size_t size);

#endif /* WEFT_PORT_SPREAD_H */
