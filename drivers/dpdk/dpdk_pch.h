/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a build with b_pch=true compiles once for all sources of this driver and of the simulator.
 * Nobody includes it: without b_pch each source rests on its own includes.
 */
#ifndef WEFT_DPDK_PCH_H
#define WEFT_DPDK_PCH_H

/* As the sources that call such functions have it; the others are checked without b_pch. */
#define ALLOW_EXPERIMENTAL_API

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#endif /* WEFT_DPDK_PCH_H */
