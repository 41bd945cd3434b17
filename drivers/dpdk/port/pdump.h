/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/pdump.h
 * WEFT_DUMPCAP: dpdk-dumpcap and dpdk-pdump attach as DPDK's secondary processes and have frames of
 * our ports copied. DPDK does the copying, in callbacks of its own. What is asked of us: to have
 * its answering of such processes started, and to leave ports without an owner (port/ethdev.h).
 */
#ifndef WEFT_PDUMP_H
#define WEFT_PDUMP_H

/**
 * Once the EAL is up, before ports are opened: let them capture. A line in the log says by which
 * command, or why they can't attach. Any number of calls, from any thread.
 */
void weft_pdump_serve(void);

#endif /* WEFT_PDUMP_H */
