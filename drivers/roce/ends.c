/* SPDX-License-Identifier: BSD-3-Clause */

/* How leps end: by a failure, by the peer's last word, or because their owner destroys them; and flushes, which end before or with them. qp.c has the states. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "roce.h"

#define DRAIN_NS \
	10000000 /* for receives of a device that has never reported QP_LAST_WQE_REACHED (rdma_rxe of Linux 6.1) */

static void to_error(struct roce_lep *lep)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	unsigned int i;

	for (i = 0; i < lep->num_qps; i++)
		ibv_modify_qp(lep->chans[i]->qp, &attr, IBV_QP_STATE);
}

/* From here on nothing else is sent. */
static void say_bye(struct roce_lep *lep)
{
	struct roce_iface *r = roce_lep_iface(lep);
	unsigned int i;

	lep->closing = true;
	lep->close.begin = r->now;
	lep->close.give_up = r->now + r->give_up_ns;
	for (i = 0; i < lep->num_qps; i++) {
		/* Whoever was sent messages has the device's patience, heard or not. */
		lep->close.heard =
			lep->close.heard || lep->chans[i]->heard || lep->chans[i]->credit.sent != 0;
		roce_chan_ring(lep->chans[i]);
		roce_chan_bye(lep->chans[i]);
	}
}

void roce_lep_bye(struct roce_lep *lep)
{
	unsigned int i;

	for (i = 0; i < lep->num_qps; i++)
		if (!lep->chans[i]->bye)
			return;
	if (lep->close.seen_at == 0)
		lep->close.seen_at = roce_lep_iface(lep)->now;
}

static bool drained(const struct roce_lep *lep)
{
	unsigned int i;

	for (i = 0; i < lep->num_qps; i++)
		if (lep->chans[i]->sq.tail != lep->chans[i]->sq.head)
			return false;
	return true;
}

bool roce_lep_close(struct roce_lep *lep)
{
	struct roce_iface *r = roce_lep_iface(lep);

	if (lep->close.acked_at == 0 && drained(lep))
		lep->close.acked_at = r->now;
	if (!weft_roce_close_over(&lep->close, r->now))
		return false;
	lep->closing = false;
	lep->since = r->now;
	to_error(lep);
	return true;
}

static void end_flushes(struct roce_lep *lep, int status)
{
	struct roce_iface *r = roce_lep_iface(lep);
	struct weft_lane_comp *comp;
	struct roce_flush *f;

	while ((f = STAILQ_FIRST(&lep->flushes)) != NULL) {
		STAILQ_REMOVE_HEAD(&lep->flushes, link);
		comp = f->comp;
		weft_mpool_put(&r->flush_pool, f);
		comp->done(comp, status);
	}
}

void roce_lep_fail(struct roce_lep *lep, enum weft_lane_event event, int status, const char *text)
{
	struct roce_iface *r = roce_lep_iface(lep);
	unsigned int i;

	if (lep->state >= ROCE_FAILED)
		return;
	/* What was collected goes to the device too, which gives it back. */
	for (i = 0; i < lep->num_qps; i++)
		if (lep->state == ROCE_UP)
			roce_chan_ring(lep->chans[i]);
	lep->status = status;
	lep->base.up = false;
	lep->base.tx_room = false;
	lep->since = r->now;
	if (lep->connecting)
		lep->bye_due = event == WEFT_LANE_EV_GONE;
	else if (event == WEFT_LANE_EV_GONE && lep->state == ROCE_UP)
		say_bye(lep);
	else
		to_error(lep);
	lep->state = ROCE_FAILED;
	if (event == WEFT_LANE_EV_DOWN)
		r->count.failed++;
	for (i = 0; i < lep->num_qps; i++) {
		roce_chan_done(lep->chans[i]);
		if (lep->chans[i]->lost)
			roce_chan_abandon(lep->chans[i], lep->chans[i]->lost_from);
	}
	end_flushes(lep, status);
	if (lep->state == ROCE_FAILED)
		r->event(r->arg, &lep->base, event, status, text);
}

void roce_lep_fail_wc(struct roce_lep *lep, struct roce_chan *chan, enum ibv_wc_status status)
{
	struct roce_iface *r = roce_lep_iface(lep);
	struct weft_roce_who who = roce_who(lep);
	char text[320];

	weft_roce_text_wc(&who, status, r->now - chan->busy_since, text, sizeof(text));
	roce_lep_fail(lep, WEFT_LANE_EV_DOWN, weft_roce_wc_error(status), text);
}

void roce_ep_destroy(struct weft_lane_ep *base)
{
	struct roce_lep *lep = roce_lep_of(base);
	struct roce_iface *r = roce_lep_iface(lep);
	enum roce_lep_state was = lep->state;
	unsigned int i;

	if (was >= ROCE_BYE)
		return;
	LIST_REMOVE(lep, link);
	LIST_INSERT_HEAD(&r->dying, lep, link);
	base->up = false;
	lep->state = ROCE_DRAIN;
	lep->since = r->now;
	if (was == ROCE_UP)
		say_bye(lep);
	else if (was == ROCE_CONNECTING)
		lep->bye_due = true;
	if (lep->connecting)
		roce_job_cancel(r->dev, &lep->job);
	if (lep->closing)
		lep->state = ROCE_BYE;
	/* Those that only wait for the peer's word; the others when the hardware gives the memory back. */
	for (i = 0; i < lep->num_qps; i++)
		roce_chan_done(lep->chans[i]);
	/* What the device refused to take has no completion to wait for. */
	for (i = 0; i < lep->num_qps; i++)
		if (lep->chans[i]->lost)
			roce_chan_abandon(lep->chans[i], lep->chans[i]->lost_from);
	end_flushes(lep, -ECANCELED);
}

void roce_lep_ended_meanwhile(struct roce_lep *lep)
{
	lep->since = roce_lep_iface(lep)->now;
	if (lep->job.err != 0 || !lep->bye_due) {
		to_error(lep);
		return;
	}
	say_bye(lep);
	if (lep->state == ROCE_DRAIN)
		lep->state = ROCE_BYE;
}

/* ------------------------------------------------------------------ reap */

static void abandon(struct roce_lep *lep)
{
	unsigned int i;

	for (i = 0; i < lep->num_qps; i++) {
		lep->chans[i]->abandoned = true;
		roce_chan_abandon(lep->chans[i], lep->chans[i]->sq.tail);
	}
}

/*
 * Is no receive of its queue pairs left in the completion queue, nor will be? Destroying a queue pair would remove it there without a word
 * (mlx5 does), and its buffer with it.
 */
static bool receives_are_back(const struct roce_lep *lep)
{
	const struct roce_iface *r = roce_lep_iface(lep);
	uint64_t bound = r->tells_last_wqe ? ROCE_ABANDON_NS : DRAIN_NS;
	unsigned int i;

	for (i = 0; i < lep->num_qps; i++) {
		const struct roce_chan *chan = lep->chans[i];

		if (!(chan->last_wqe && r->empties != chan->last_wqe_at) &&
		    !roce_empty_since(r, lep->since, bound))
			return false;
	}
	return true;
}

void roce_reap(struct roce_iface *r)
{
	struct roce_lep *lep, *next;

	for (lep = LIST_FIRST(&r->dying); lep != NULL; lep = next) {
		next = LIST_NEXT(lep, link);
		if (lep->connecting)
			continue; /* roce_connect_progress() */
		if (lep->state == ROCE_BYE) {
			if (roce_lep_close(lep))
				lep->state = ROCE_DRAIN;
			continue;
		}
		if (lep->job.run != NULL && !receives_are_back(lep))
			continue;
		if (!drained(lep)) {
			if (!roce_empty_since(r, lep->since, ROCE_ABANDON_NS))
				continue;
			abandon(lep);
		}
		LIST_REMOVE(lep, link);
		roce_lep_free(lep);
	}
}

/* ------------------------------------------------------------------ flush */

static bool flush_over(const struct roce_lep *lep, const struct roce_flush *f)
{
	unsigned int i;

	for (i = 0; i < lep->num_qps; i++)
		if ((int32_t)(lep->chans[i]->done - f->sent[i]) < 0 ||
		    (int32_t)(lep->chans[i]->sq.tail - f->tail[i]) < 0)
			return false;
	return true;
}

void roce_flush_check(struct roce_lep *lep)
{
	struct roce_iface *r = roce_lep_iface(lep);
	struct weft_lane_comp *comp;
	struct roce_flush *f;

	while (lep->state < ROCE_FAILED && (f = STAILQ_FIRST(&lep->flushes)) != NULL &&
	       flush_over(lep, f)) {
		STAILQ_REMOVE_HEAD(&lep->flushes, link);
		comp = f->comp;
		weft_mpool_put(&r->flush_pool, f);
		comp->done(comp, 0);
	}
}

int roce_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
{
	struct roce_lep *lep = roce_lep_of(base);
	struct roce_iface *r = roce_lep_iface(lep);
	struct roce_flush *f;
	unsigned int i;

	if (lep->status != 0)
		return lep->status;
	f = weft_mpool_get(&r->flush_pool);
	if (f == NULL)
		return -ENOMEM;
	f->comp = comp;
	for (i = 0; i < lep->num_qps; i++) {
		struct roce_chan *chan = lep->chans[i];
		uint32_t n = chan->sq.head - chan->sq.posted;

		/* The last message that is still here asks for an answer at once. */
		if (n > 0 && chan->wr[n - 1].opcode == IBV_WR_SEND_WITH_IMM)
			chan->wr[n - 1].imm_data |= WEFT_ROCE_IMM_ASK;
		f->sent[i] = chan->credit.sent;
		f->tail[i] = chan->sq.head;
	}
	if (flush_over(lep, f)) {
		weft_mpool_put(&r->flush_pool, f);
		return WEFT_LANE_IDLE;
	}
	STAILQ_INSERT_TAIL(&lep->flushes, f, link);
	return 0;
}
