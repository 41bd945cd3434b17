/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushes: each completes when all frames sent before it are acknowledged. */

#include <stdlib.h>

#include "engine/conn.h"
#include "engine/flush.h"
#include "lane.h"

/* Queues @p f, from malloc(): it completes when all frames sent so far are acknowledged. */
void raw_flush_queue(struct raw_conn *c, struct raw_flush *f, struct weft_lane_comp *comp)
{
	/* An open frame, which found the queue full, will have the next sequence. */
	*f = (struct raw_flush){.comp = comp, .seq = c->snd_next + (c->open != NULL)};
	STAILQ_INSERT_TAIL(&c->flushes, f, link);
}

unsigned int raw_flushes_check(struct raw_conn *c)
{
	struct raw_flush *f;
	unsigned int n = 0;

	while ((f = STAILQ_FIRST(&c->flushes)) && weft_seq_diff(c->snd_una, f->seq) >= 0) {
		struct weft_lane_comp *comp = f->comp;

		STAILQ_REMOVE_HEAD(&c->flushes, link);
		free(f);
		comp->done(comp, 0);
		n++;
	}
	return n;
}

void raw_flushes_end(struct raw_conn *c, int status)
{
	struct raw_flush *f;

	while ((f = STAILQ_FIRST(&c->flushes))) {
		struct weft_lane_comp *comp = f->comp;

		STAILQ_REMOVE_HEAD(&c->flushes, link);
		free(f);
		comp->done(comp, status);
	}
}
