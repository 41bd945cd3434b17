/* SPDX-License-Identifier: BSD-3-Clause */
/* Loss detection of one path, by newer frames that have overtaken older ones. */

#include "engine/loss.h"

void weft_loss_init(struct weft_loss *l)
{
	*l = (struct weft_loss){.reorder = WEFT_LOSS_REORDER};
}

void weft_loss_spurious(struct weft_loss *l)
{
	if (l->reorder < WEFT_LOSS_REORDER_MAX)
		l->reorder++;
}
