/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The headers that a build with b_pch=true compiles once for all sources of this driver and of the
 * simulator. No source includes this file: without b_pch each source has its own includes.
 */
#ifndef WEFT_DPDK_PCH_H
#define WEFT_DPDK_PCH_H

/* Sources that call experimental functions define it; a build without b_pch checks the others. */
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
