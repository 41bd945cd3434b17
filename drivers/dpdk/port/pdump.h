/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/pdump.h
 * WEFT_DUMPCAP: dpdk-dumpcap and dpdk-pdump attach as DPDK's secondary processes and get copies of
 * the frames of this process's ports. DPDK copies them, in callbacks of its own. It requires two
 * things: its handling of such processes has to be started, and ports must have no owner
 * (port/ethdev.h).
 */
#ifndef WEFT_PDUMP_H
#define WEFT_PDUMP_H

/**
 * Once the EAL is up, before ports are opened: let them capture. A log line contains the command,
 * or the reason why they can't attach. Any number of calls, from any thread.
 */
void weft_pdump_serve(void);

#endif /* WEFT_PDUMP_H */
