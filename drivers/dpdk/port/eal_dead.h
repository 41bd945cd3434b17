/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/eal_dead.h
 * Telemetry sockets of processes that have ended. A killed process leaves them behind. If several
 * EALs start at the same time and find the same socket, one of them in DPDK 22.11 may report
 * "TELEMETRY: Error binding socket" and have no telemetry.
 */
#ifndef WEFT_EAL_DEAD_H
#define WEFT_EAL_DEAD_H

/**
 * Remove this user's dead telemetry sockets in BASE/dpdk/weft, the folder of the EALs that Weft
 * starts. Other files stay.
 */
void weft_eal_dead_remove(const char *base);

#endif /* WEFT_EAL_DEAD_H */
