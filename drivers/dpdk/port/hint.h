/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/hint.h
 * A hint about a port whose network has limits of its own. Pure.
 */
#ifndef WEFT_PORT_HINT_H
#define WEFT_PORT_HINT_H

#include <stddef.h>
#include <stdint.h>

/**
 * AWS limits one flow to 5 Gb/s, or 10 in a cluster placement group, and carries an MTU of 9001: a
 * lane over ENA with one path, or with small frames, gets a part of its link.
 *
 * @param driver  of the port; for others than net_ena the text is ""
 * @param mbps    link speed; 0 = unknown, as ENA's driver reports it
 * @param mtu     of the lane
 * @param paths   of the lane
 * @param[out] text a sentence that names the lane options, or ""
 */
void weft_port_flow_hint(const char *driver, uint32_t mbps, uint16_t mtu, unsigned int paths,
			 char *text, size_t size);

#endif /* WEFT_PORT_HINT_H */
