/* SPDX-License-Identifier: BSD-3-Clause */

#include "loss.h"

void weft_loss_init(struct weft_loss *l)
{
	*l = (struct weft_loss){.reorder = WEFT_LOSS_REORDER};
}

void weft_loss_acked(struct weft_loss *l, const struct weft_rtt *r, uint32_t order,
		     unsigned int tries, uint64_t sent, uint64_t now)
{
	if (tries > 1 && now - sent < r->min) {
		weft_loss_spurious(l);
		return;
	}
	if (!l->any || (int32_t)(order - l->acked) > 0) {
		l->acked = order;
		l->any = true;
	}
}

void weft_loss_spurious(struct weft_loss *l)
{
	if (l->reorder < WEFT_LOSS_REORDER_MAX)
		l->reorder++;
}
