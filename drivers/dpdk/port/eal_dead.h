/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/eal_dead.h
 * Sockets whose process is gone. One that is killed leaves them behind, and where several EALs
 * start at a time and find the same one, DPDK 22.11 may say "TELEMETRY: Error binding socket" in
 * one of them, and have no telemetry there.
 */
#ifndef WEFT_EAL_DEAD_H
#define WEFT_EAL_DEAD_H

/**
 * Remove this user's dead telemetry sockets in BASE/dpdk/weft, the folder of the EALs that Weft
 * starts. What else is there stays.
 */
void weft_eal_dead_remove(const char *base);

#endif /* WEFT_EAL_DEAD_H */
