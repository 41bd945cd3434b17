/* SPDX-License-Identifier: BSD-3-Clause */

/* State of an endpoint's lanes: which of them are up, and the memory for failover. */

#include <stdlib.h>
#include <string.h>

#include "core/endpoint.h"
#include "wireup/failover.h"
#include "wireup/wireup.h"

struct weft_lane_ep *weft_lane_any(const struct weft_ep *ep)
{
	return ep->lanes_up ? ep->lanes[__builtin_ctz(ep->lanes_up)].lane_ep : NULL;
}

void weft_failover_init(struct weft_ep *ep)
{
	const struct weft_wireup *wu = ep->wireup;
	struct weft_failover *f;

	if (ep->failover || !wu || !ep->peer)
		return;
	f = calloc(1, sizeof(*f) + ep->lane_room * sizeof(f->lane[0]));
	if (!f)
		return;
	f->room = ep->lane_room;
	for (unsigned int i = 0; i < ep->lane_room; i++) {
		const struct weft_address_iface *l = &wu->local[wu->map[i].pair.local],
						*r = &wu->remote.ifaces[wu->map[i].pair.remote];

		f->lane[i].look_at = UINT64_MAX;
		if (wu->map[i].max_frag == 0)
			continue;
		f->lane[i].map = wu->map[i];
		f->lane[i].set = l->features | r->features;
		f->lane[i].addr_len = r->addr_len;
		memcpy(f->lane[i].addr, r->addr, r->addr_len);
	}
	ep->failover = f;
}
