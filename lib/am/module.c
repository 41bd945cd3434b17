/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages as a module: the end of a worker's and an endpoint's part. */

#include <stdlib.h>

#include "am/am.h"

static void worker_stop(struct weft_msg_worker *mw)
{
	struct weft_am_worker *aw = mw->am;

	if (!aw)
		return;
	weft_am_drop_kept(aw);
	for (unsigned int i = 0; i < 256; i++)
		free(aw->page[i]);
	free(aw);
	mw->am = NULL;
}

/* Messages that are out of order or incomplete are dropped. */
static void am_fail(struct weft_msg_ep *me)
{
	struct weft_seq_node *node;
	struct weft_am_data *d;

	for (uint32_t i = 0; me->am && (node = weft_seq_table_any(&me->am->ahead, &i));) {
		d = container_of(node, struct weft_am_data, by_seq);
		weft_seq_table_remove(&me->am->ahead, node);
		weft_am_data_free(d);
	}
}

static void ep_fini(struct weft_msg_ep *me)
{
	if (!me->am)
		return;
	weft_seq_table_fini(&me->am->ahead);
	free(me->am);
}

const struct weft_module weft_am_module = {
	.name = "am",
	.worker_stop = worker_stop,
	.ep_fini = ep_fini,
	.fail = am_fail,
	.closing = weft_am_closing,
};
