/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_common.h>

#include "engine/conn_rx.h"
#include "engine/iface.h"
#include "engine/rules.h"
#include "frame/frame.h"
#include "lane.h"

void raw_rx_init(struct raw_rx *rx, uint32_t first)
{
	rx->first = first;
	weft_rxwin_init(&rx->win, first);
}

void raw_rx_idle(struct raw_rx *rx)
{
	if (!weft_rxwin_has_hole(&rx->win))
		weft_rxwin_free(&rx->win);
}

void raw_rx_free(struct raw_iface *iface, struct raw_rx *rx)
{
	if (rx->on_ack_list)
		TAILQ_REMOVE(&iface->ack_list, rx, ack_link);
	rx->on_ack_list = false;
	weft_rxwin_free(&rx->win);
}

void raw_rx_hurry(struct raw_iface *iface)
{
	struct raw_rx *rx;

	TAILQ_FOREACH(rx, &iface->ack_list, ack_link)
		if (rx->ack_state == RAW_ACK_DELAYED)
			rx->ack_state = RAW_ACK_NOW;
}

/*
 * The application may have computed since the clock was last read, in a callback or outside. The
 * peer would take that time for the network's. So the clock is read again. That costs as much as
 * half a small message, so only some DATA frames contain a hold time.
 */
uint16_t raw_rx_hold(const struct raw_iface *iface, const struct raw_rx *rx)
{
	const struct weft_platform *pf = iface->platform;
	uint64_t hold = (pf->now(pf->arg) - rx->ts_at) / WEFT_FRAME_HOLD_UNIT;

	return (uint16_t)RTE_MIN(hold, (uint64_t)WEFT_FRAME_NO_ECHO);
}
