/* SPDX-License-Identifier: BSD-3-Clause */

/* Numbers by which both ends choose protocols: the copy rate of the slower CPU. */

#include "base/host.h"
#include "core/config.h"
#include "wireup/wireup.h"

static float own_bcopy_bw(const struct weft_ep *ep)
{
	const struct weft_context *ctx = ep->worker->ctx;

	return (float)(ctx->conf->bcopy_bw > 0 ? ctx->conf->bcopy_bw
					       : weft_bcopy_bw(ctx->platform));
}

void weft_wireup_add_model(struct weft_ep *ep, struct weft_records *r)
{
	struct weft_wire_model model = {.bcopy_bw = weft_put_single(own_bcopy_bw(ep))};

	weft_records_add(r, WEFT_RECORD_MODEL, &model, sizeof(model));
}

void weft_wireup_agree_model(struct weft_ep *ep, const struct weft_wireup_msg *m)
{
	float own = own_bcopy_bw(ep);

	/* No CPU copies at less than a megabyte per second: ignore an impossible number. */
	ep->bcopy_bw = (double)(m->bcopy_bw >= 1e6f && m->bcopy_bw < own ? m->bcopy_bw : own);
}
