/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A lep's life.
 *
 *	CREATED ── ep_connect_ep() ──> CONNECTING ── the thread is done ──> UP ──> FAILED (error, or the peer has closed)
 *	   └───────────── ep_destroy() ────────┴──> BYE (last words under way) ──> DRAIN (requests come back) ──> freed
 *
 * When the peer has closed, the answer to its last word is under way in FAILED; when that is over (roce_close.h) is the same as in BYE.
 *
 * A lep may end while the thread is at it: destroyed (DRAIN), or failed. Its queue pairs are the thread's then, so nothing is done to them until it is
 * through (lep->connecting); only after that the last words are said where they are owed (lep->bye_due: the peer may have its own end up and
 * something under way to us), or the queue pairs go into the error state. The time of FAILED and DRAIN counts from there.
 *
 * Destroying a queue pair drops its completions, and with them buffers of the shared queue. So a queue pair first goes into the error state,
 * then everything it had comes back, and only then it is destroyed.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "roce.h"

#define READS_MAX 16          /* reads and atomics under way per queue pair */
#define DRAIN_NS 10000000     /* for the receive side, which says nothing when it is empty */
#define ABANDON_NS 1000000000 /* a device that gives nothing back is gone */

struct weft_roce_who roce_who(const struct roce_lep *lep)
{
	return (struct weft_roce_who){.device = roce_lep_iface(lep)->dev->name, .peer = lep->peer};
}

/* ------------------------------------------------------------------ create */

static unsigned int reads_max(int device)
{
	return device < 0 ? 0 : device < READS_MAX ? (unsigned int)device : READS_MAX;
}

static int init_qp(struct roce_iface *r, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = (uint8_t)r->port,
		.qp_access_flags =
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			(r->base.attr.features & WEFT_LANE_F_AMO64 ? IBV_ACCESS_REMOTE_ATOMIC : 0),
	};

	return -ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static void chan_free(struct roce_iface *r, struct roce_chan *chan)
{
	if (chan->in_acks)
		TAILQ_REMOVE(&r->acks, chan, ack_link);
	if (chan->in_wait)
		TAILQ_REMOVE(&r->waits, chan, wait_link);
	if (chan->in_batch)
		TAILQ_REMOVE(&r->batches, chan, batch_link);
	if (chan->qp != NULL) {
		roce_chan_leave(r, chan);
		ibv_destroy_qp(chan->qp);
	}
	if (chan->ring != NULL)
		roce_pool_put(&r->ring_pool, chan->ring);
	free(chan->unacked);
	if (chan->abandoned) {
		TAILQ_INSERT_TAIL(&r->graves, chan, ack_link);
		return;
	}
	free(chan->slots);
	free(chan);
}

static int chan_setup(struct roce_iface *r, struct roce_chan *chan)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = chan,
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.srq = r->srq,
		.cap = {.max_send_wr = ROCE_SQ_DEPTH,
			.max_send_sge = r->max_sge,
			.max_inline_data = r->max_inline},
		.qp_type = IBV_QPT_RC,
	};
	unsigned int i;
	int rc;

	chan->sq.depth = ROCE_SQ_DEPTH;
	chan->slots = calloc(ROCE_SQ_DEPTH, sizeof(*chan->slots));
	chan->ring = roce_pool_get(&r->ring_pool);
	if (chan->slots == NULL || chan->ring == NULL)
		return -ENOMEM;
	for (i = 0; i < ROCE_SQ_DEPTH; i++)
		chan->slots[i].chan = chan;
	chan->qp = ibv_create_qp(r->dev->pd, &attr);
	if (chan->qp == NULL)
		return errno ? -errno : -EIO;
	rc = init_qp(r, chan->qp);
	return rc == 0 ? roce_chan_enter(r, chan) : rc;
}

static int chan_create(struct roce_lep *lep)
{
	struct roce_iface *r = roce_lep_iface(lep);
	struct roce_chan *chan = calloc(1, sizeof(*chan));
	uint32_t left = weft_roce_left(r->rx_total, r->promised, r->kept);
	int rc;

	if (chan == NULL)
		return -ENOMEM;
	chan->lep = lep;
	chan->credit.own_window = weft_roce_window(r->opts.window, left);
	if (chan->credit.own_window == 0) {
		free(chan);
		weft_warn("%s: no receive buffers are left for another peer: %u are promised, "
			  "%u are kept by the application; raise WEFT_RX_BUFS",
			  r->base.name, r->promised, r->kept);
		return -ENOBUFS;
	}
	rc = chan_setup(r, chan);
	if (rc < 0) {
		chan_free(r, chan);
		return rc;
	}
	chan->word = &lep->words[lep->num_qps];
	lep->promised += chan->credit.own_window + 1;
	r->promised += chan->credit.own_window + 1;
	lep->chans[lep->num_qps++] = chan;
	return 0;
}

static void lep_free(struct roce_lep *lep)
{
	struct roce_iface *r = roce_lep_iface(lep);

	while (lep->num_qps > 0)
		chan_free(r, lep->chans[--lep->num_qps]);
	if (lep->word_mr != NULL)
		ibv_dereg_mr(lep->word_mr);
	free(lep->words);
	r->promised -= lep->promised;
	free(lep);
}

static int words_setup(struct roce_iface *r, struct roce_lep *lep)
{
	size_t size = WEFT_ROCE_MAX_QPS * sizeof(struct weft_roce_word);
	unsigned int i;

	lep->words = aligned_alloc(64, size);
	if (lep->words == NULL)
		return -ENOMEM;
	for (i = 0; i < WEFT_ROCE_MAX_QPS; i++)
		lep->words[i] = weft_roce_word(0);
	/* Its own registration: no peer can write another one's words. */
	lep->word_mr = ibv_reg_mr_iova(r->dev->pd, lep->words, size, (uintptr_t)lep->words & 4095,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return lep->word_mr != NULL ? 0 : errno ? -errno : -EIO;
}

int roce_ep_create(struct weft_lane_iface *base, void *user, struct weft_lane_ep **out)
{
	struct roce_iface *r = roce_iface_of(base);
	struct roce_lep *lep = calloc(1, sizeof(*lep));
	char why[256];
	unsigned int i;
	int rc;

	if (lep == NULL)
		return -ENOMEM;
	lep->base = (struct weft_lane_ep){.iface = base, .ops = base->ops, .user = user};
	snprintf(lep->peer, sizeof(lep->peer), "not known yet");
	STAILQ_INIT(&lep->flushes);
	rc = words_setup(r, lep);
	if (rc == 0)
		rc = r->platform->random(r->platform->arg, &lep->psn, sizeof(lep->psn));
	lep->psn &= 0xffffff;
	for (i = 0; rc == 0 && i < r->opts.qps; i++)
		rc = chan_create(lep);
	if (rc < 0) {
		roce_setup_failed(r->dev, "queue pair for another lane", -rc, why, sizeof(why));
		weft_warn("%s", why);
		lep_free(lep);
		return rc;
	}
	roce_srq_fill(r);
	LIST_INSERT_HEAD(&r->leps, lep, link);
	*out = &lep->base;
	return 0;
}

void roce_ep_get_address(struct weft_lane_ep *base, void *buf)
{
	struct roce_lep *lep = roce_lep_of(base);
	struct roce_iface *r = roce_lep_iface(lep);
	struct weft_roce_ep_addr a = {
		.version = WEFT_ROCE_VERSION,
		.num_qps = lep->num_qps,
		.reads = (uint8_t)reads_max(r->dev->attr.max_qp_rd_atom),
		.window = weft_put32(lep->chans[0]->credit.own_window),
		.psn = weft_put32(lep->psn),
		.word_rkey = weft_put32(lep->word_mr->rkey),
		.word_addr = weft_put64((uintptr_t)lep->words & 4095),
	};
	unsigned int i;

	for (i = 0; i < lep->num_qps; i++) {
		a.qpn[i] = weft_put32(lep->chans[i]->qp->qp_num);
		/* All get the smallest: one number tells. */
		if (lep->chans[i]->credit.own_window < weft_get32(a.window))
			a.window = weft_put32(lep->chans[i]->credit.own_window);
	}
	memcpy(buf, &a, sizeof(a));
}

/* ------------------------------------------------------------------ connect */

static int to_rtr(struct roce_lep *lep, unsigned int i)
{
	struct roce_iface *r = roce_lep_iface(lep);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)lep->mtu,
		.dest_qp_num = lep->remote_qpn[i],
		.rq_psn = lep->remote_psn,
		.max_dest_rd_atomic = (uint8_t)reads_max(r->dev->attr.max_qp_rd_atom),
		.min_rnr_timer = (uint8_t)r->opts.rnr_timer,
		.ah_attr = {.is_global = 1,
			    .port_num = (uint8_t)r->port,
			    .grh = {.sgid_index = r->gid.index,
				    .hop_limit = 64,
				    .traffic_class = (uint8_t)r->opts.tc,
				    /* Becomes the UDP source port: queue pairs of a lane take
				     * different ways where switches hash. */
				    .flow_label = (lep->psn ^ (i * 0x3c6efu)) & 0xfffff}},
	};

	memcpy(attr.ah_attr.grh.dgid.raw, lep->remote_gid, 16);
	return ibv_modify_qp(lep->chans[i]->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct roce_lep *lep, unsigned int i)
{
	struct roce_iface *r = roce_lep_iface(lep);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = (uint8_t)r->opts.timeout,
		.retry_cnt = (uint8_t)r->opts.retry,
		.rnr_retry = 6,
		.sq_psn = lep->psn,
		.max_rd_atomic = (uint8_t)lep->chans[i]->max_reads,
	};

	return ibv_modify_qp(lep->chans[i]->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* In the device's thread: the kernel resolves the peer's Ethernet address here. */
static void connect_job(struct roce_job *job)
{
	struct roce_lep *lep = (struct roce_lep *)((char *)job - offsetof(struct roce_lep, job));
	unsigned int i;
	int err = 0;

	for (i = 0; i < lep->num_qps && err == 0; i++) {
		err = to_rtr(lep, i);
		if (err == 0)
			err = to_rts(lep, i);
	}
	job->err = err < 0 ? -err : err;
}

/* Queue pairs that the peer has no partner for. */
static void drop_extra(struct roce_lep *lep, unsigned int keep)
{
	struct roce_iface *r = roce_lep_iface(lep);
	struct roce_chan *chan;

	while (lep->num_qps > keep) {
		chan = lep->chans[--lep->num_qps];
		lep->promised -= chan->credit.own_window + 1;
		r->promised -= chan->credit.own_window + 1;
		chan_free(r, chan);
	}
}

int roce_ep_connect_ep(struct weft_lane_ep *base, const void *dev_addr, size_t dev_len,
		       const void *ep_addr, size_t ep_len)
{
	struct roce_lep *lep = roce_lep_of(base);
	struct roce_iface *r = roce_lep_iface(lep);
	struct weft_roce_ep_addr e;
	struct weft_roce_addr a;
	char why[160];
	unsigned int i;
	int rc;

	rc = weft_roce_addr_check(dev_addr, dev_len, WEFT_ROCE_RC, why, sizeof(why));
	if (rc == 0)
		rc = weft_roce_ep_addr_check(ep_addr, ep_len, why, sizeof(why));
	if (rc < 0) {
		weft_warn("%s: a peer can't be connected to: %s", r->base.name, why);
		return rc;
	}
	if (lep->state != ROCE_CREATED)
		return -EALREADY;
	memcpy(&a, dev_addr, sizeof(a));
	memcpy(&e, ep_addr, sizeof(e));
	memcpy(lep->remote_gid, a.gid, 16);
	weft_roce_gid_print(a.gid, lep->peer, sizeof(lep->peer));
	drop_extra(lep, e.num_qps);
	lep->mtu = a.mtu < r->mtu ? a.mtu : r->mtu;
	lep->remote_psn = weft_get32(e.psn);
	lep->remote_rkey = weft_get32(e.word_rkey);
	base->max_msg =
		(uint32_t)(weft_get32(a.seg) < r->opts.seg ? weft_get32(a.seg) : r->opts.seg);
	for (i = 0; i < lep->num_qps; i++) {
		struct roce_chan *chan = lep->chans[i];
		/* A message is over when the peer and the device are done with it, whoever is later. */
		uint32_t places = ROCE_SQ_DEPTH;

		lep->remote_qpn[i] = weft_get32(e.qpn[i]);
		chan->credit.window = weft_get32(e.window);
		chan->word_remote = weft_get64(e.word_addr) + i * sizeof(struct weft_roce_word);
		chan->max_reads = reads_max(r->dev->attr.max_qp_init_rd_atom);
		if (chan->max_reads > e.reads)
			chan->max_reads = e.reads;
		while (places < chan->credit.window)
			places *= 2;
		chan->unacked_mask = places - 1;
		chan->unacked = calloc(places, sizeof(*chan->unacked));
		if (chan->unacked == NULL)
			return -ENOMEM;
	}
	lep->job.run = connect_job;
	rc = roce_job_start(r->dev, &lep->job);
	if (rc < 0) {
		lep->job.run = NULL; /* nobody waits for its end */
		return rc;
	}
	lep->state = ROCE_CONNECTING;
	lep->connecting = true;
	lep->since = r->now;
	TAILQ_INSERT_TAIL(&r->connecting, lep, connect_link);
	return 0;
}

/* ------------------------------------------------------------------ the end */

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

/* ------------------------------------------------------------------ the thread is done */

/* It failed or was destroyed meanwhile; the queue pairs are ours again. */
static void ended_meanwhile(struct roce_lep *lep)
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

static void connected(struct roce_lep *lep)
{
	struct roce_iface *r = roce_lep_iface(lep);
	struct weft_roce_who who = roce_who(lep);
	char text[256];
	unsigned int i;

	if (lep->job.err != 0) {
		weft_roce_text_connect(&who, lep->job.err, text, sizeof(text));
		roce_lep_fail(lep, WEFT_LANE_EV_DOWN, -EHOSTUNREACH, text);
		return;
	}
	lep->state = ROCE_UP;
	lep->base.up = true;
	lep->base.tx_room = true;
	/* Keepalive counts from here. */
	for (i = 0; i < lep->num_qps; i++)
		lep->chans[i]->busy_since = r->now;
	snprintf(text, sizeof(text), "%s: peer %s, path MTU %u, %u queue pair%s", who.device,
		 who.peer, 128u << lep->mtu, lep->num_qps, lep->num_qps > 1 ? "s" : "");
	r->event(r->arg, &lep->base, WEFT_LANE_EV_UP, 0, text);
}

unsigned int roce_connect_progress(struct roce_iface *r)
{
	struct roce_lep *lep, *next;
	unsigned int events = 0;

	for (lep = TAILQ_FIRST(&r->connecting); lep != NULL; lep = next) {
		next = TAILQ_NEXT(lep, connect_link);
		if (!roce_job_done(&lep->job))
			continue;
		TAILQ_REMOVE(&r->connecting, lep, connect_link);
		lep->connecting = false;
		if (lep->state != ROCE_CONNECTING) {
			ended_meanwhile(lep);
			continue;
		}
		events++;
		connected(lep);
		next = TAILQ_FIRST(&r->connecting); /* the callback may have changed the list */
	}
	return events;
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
		if (lep->job.run != NULL && r->now - lep->since < DRAIN_NS)
			continue;
		if (!drained(lep)) {
			if (r->now - lep->since < ABANDON_NS)
				continue;
			abandon(lep);
		}
		LIST_REMOVE(lep, link);
		lep_free(lep);
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
