/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/farewell.h
 * Farewells of a process whose lanes are over kernel interfaces. A helper, the program
 * weft-farewell, waits for the end of the process. It then sends a farewell for each of its
 * connections: a frame that was built when the connection came up (weft_frame_farewell()). So peers
 * learn of a killed process at once. A stopped process has not ended.
 *
 * A process has one helper for all of its ports, from the first port to the last one. The two share
 * a table in memory. Without the program or the rights there is no helper; WEFT_PEER_TIMEOUT then
 * detects the end.
 */
#ifndef WEFT_PORT_FAREWELL_H
#define WEFT_PORT_FAREWELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** Connections of a process that have a place; others have none. */
#define WEFT_FAREWELL_SLOTS 4096u

/** An entry of the table. The process writes it, its helper reads it. */
struct weft_farewell_slot {
	_Atomic uint32_t len; /**< bytes of the frame; 0 = none, or one that is being written */
	uint32_t if_index;
	uint8_t frame[120];
};

/* Descriptors of the helper at its start. */
#define WEFT_FAREWELL_FD_TABLE 3
#define WEFT_FAREWELL_FD_SOCKET 4 /**< a packet socket that receives nothing */
#define WEFT_FAREWELL_FD_ALIVE 5  /**< a pipe: its other end closes with the process */

struct weft_frame_port;

/** A port begins to use the helper. @return false: there is none */
bool weft_farewell_begin(void);
void weft_farewell_end(void);

/** As farewell() of frame/frame_port.h, for a port of port/port.h. */
void weft_farewell_set(struct weft_frame_port *fp, uint16_t *slot, const uint8_t *frame,
		       uint32_t len);

#endif /* WEFT_PORT_FAREWELL_H */
