/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <string.h>

#include "port/hint.h"

#define FLOW 5000u   /* Mb/s */
#define GROUP 10000u /* in a cluster placement group */
#define PATHS_MAX 16u
#define MTU 9001

static unsigned int paths_for(uint32_t mbps, uint32_t flow)
{
	uint32_t n = (mbps + flow - 1) / flow;

	return n > PATHS_MAX ? PATHS_MAX : n;
}

void weft_port_flow_hint(const char *driver, uint32_t mbps, uint16_t mtu, unsigned int paths,
			 char *text, size_t size)
{
	const char *jumbo = mtu < MTU ? "; inside a VPC mtu=9001 is carried" : "";

	text[0] = '\0';
	if (!driver || strcmp(driver, "net_ena") != 0)
		return;
	if (mbps == 0)
		snprintf(text, size,
			 "AWS gives each flow 5 Gb/s, 10 in a cluster placement group: %u paths at "
			 "most now, for a link of N Gb/s paths=N/5 or N/10 is needed%s",
			 paths, jumbo);
	else if (paths < paths_for(mbps, FLOW))
		snprintf(text, size,
			 "AWS gives each flow 5 Gb/s, so this link of %u Gb/s needs paths=%u, or "
			 "paths=%u in a cluster placement group (10 Gb/s a flow), and has "
			 "%u at most%s",
			 mbps / 1000, paths_for(mbps, FLOW), paths_for(mbps, GROUP), paths, jumbo);
	else if (*jumbo)
		snprintf(text, size, "%s", jumbo + 2);
}
