/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/eal_dead.h"

#include <stdio.h>

#include "base/user_folder.h"

#define TELEMETRY "dpdk_telemetry.v" /* followed by 1 or 2, and :N */

void weft_eal_dead_remove(const char *base)
{
	char folder[256];

	if (snprintf(folder, sizeof(folder), "%s/dpdk/weft", base) < (int)sizeof(folder))
		weft_sockets_sweep(folder, TELEMETRY, 0);
}
