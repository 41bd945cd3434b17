/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The sender's half of reliability: what acknowledgements say, what they do not say, and when to
 * send again.
 *
 * Sequences [snd_una, snd_next) are outstanding. A slot whose mbuf is NULL has been acknowledged by
 * a SACK bit.
 */

#include <stdlib.h>
#include <string.h>

#include <rte_lcore.h>

#include "engine/raw.h"

/* The slowest path decides: a tail may sit on any of them. */
static const struct weft_rtt *slowest(const struct raw_conn *c)
{
	const struct raw_path *p = &c->path[0];

	for (uint8_t i = 1; i < c->paths; i++) {
		if (weft_rtt_rto(&c->path[i].rtt, 0) > weft_rtt_rto(&p->rtt, 0))
			p = &c->path[i];
	}
	return &p->rtt;
}

/* A round trip is known anew: what follows from it is computed now, not for each frame. */
void raw_timer_learn(struct raw_conn *c)
{
	c->probe_wait = (uint32_t)weft_rtt_probe(slowest(c), 2 * RAW_ACK_DELAY);
}

void raw_timer_arm(struct raw_conn *c)
{
	if (c->snd_una == c->snd_next) {
		c->timer = 0;
		return;
	}
	c->timer = c->iface->et +
		   (c->tail_probed ? weft_rtt_rto(slowest(c), c->backoff) : c->probe_wait);
	raw_deadline_et(c, c->timer);
}

static inline void slot_free(struct raw_conn *c, struct raw_slot *slot, unsigned int lcore)
{
	struct raw_iface *iface = c->iface;
	struct raw_zc *zc;

	if (unlikely(slot->taken_back)) {
		raw_copy_free(iface, slot->copy);
		slot->copy = NULL;
		return;
	}
	if (likely(slot->m->nb_segs == 1)) {
		raw_slot_release(c, slot, lcore);
		return;
	}
	zc = raw_zc_of(slot->m);
	raw_slot_release(c, slot, lcore);
	raw_zc_slot_freed(iface, zc);
}

static inline void slot_acked(struct raw_conn *c, struct raw_slot *slot)
{
	struct raw_iface *iface = c->iface;
	struct raw_path *p = &c->path[slot->path];

	if (!slot->m)
		return; /* a SACK bit was earlier */
	weft_loss_acked(&p->loss, &p->rtt, slot->order, slot->tries, slot->sent, iface->et);
	c->inflight -= slot->bytes;
	c->base.queued -= slot->payload;
	slot_free(c, slot, iface->lcore);
}

static void take_sample(struct raw_conn *c, const struct weft_frame_hdr *hdr)
{
	struct raw_iface *iface = c->iface;
	uint32_t hold = weft_le16(hdr->ts_hold), rtt, s;
	uint8_t path = hdr->echo_path;

	if (iface->gap || path >= c->paths)
		return;
	rtt = (uint32_t)iface->now - weft_le32(hdr->ts_echo);
	if (rtt > INT32_MAX)
		return;
	hold *= WEFT_FRAME_HOLD_UNIT;
	s = weft_le32(hdr->ts_echo) / 64 % RAW_STALE;
	if (iface->stale[s].ts == weft_le32(hdr->ts_echo) &&
	    iface->stale[s].error > RTE_MAX(RAW_STAMP_ERROR, rtt / 4))
		return; /* sent long after the clock was read */
	weft_rtt_sample(&c->path[path].rtt, rtt > hold ? rtt - hold : 1);
	c->base.rtt_ns = c->path[path].rtt.srtt;
	raw_timer_learn(c);
}

static unsigned int take_sack(struct raw_conn *c, const struct weft_frame_sack *sack, uint32_t ack)
{
	uint32_t pos = 0, bit, seq, words = weft_le16(sack->words);
	unsigned int acked = 0;

	while (weft_sack_next(sack + 1, words, &pos, &bit)) {
		seq = ack + 1 + bit;
		if (weft_seq_diff(seq, c->snd_una) < 0)
			continue; /* an older view than the one we have */
		if (seq - c->snd_una >= c->snd_next - c->snd_una) {
			raw_count(c->iface, RAW_DROP_BAD_ACK);
			break;
		}
		if (!raw_slot(c, seq)->m)
			continue;
		slot_acked(c, raw_slot(c, seq));
		acked++;
		if (weft_seq_diff(seq + 1, c->sack_high) > 0)
			c->sack_high = seq + 1;
	}
	return acked;
}

/* raw_ack_input() of a frame that says more than the one before. */
unsigned int raw_ack_new(struct raw_conn *c, const struct weft_frame_hdr *hdr,
			 const struct weft_frame_sack *sack)
{
	uint32_t ack = weft_le32(hdr->ack);
	unsigned int acked = 0;

	if (unlikely(ack - c->snd_una > c->snd_next - c->snd_una)) {
		/* Older than what we know: overtaken on its way. Newer than what we sent: nonsense.
		 */
		if (weft_seq_diff(ack, c->snd_una) > 0)
			raw_count(c->iface, RAW_DROP_BAD_ACK);
		return 0;
	}
	while (c->snd_una != ack) {
		acked += raw_slot(c, c->snd_una)->m != NULL;
		slot_acked(c, raw_slot(c, c->snd_una));
		c->snd_una++;
	}
	if (unlikely(sack))
		acked += take_sack(c, sack, ack);
	/* A SACK has named it: only a peer that contradicts itself gets here, and snd_una must stay
	 * a frame we hold. */
	while (c->snd_una != c->snd_next && !raw_slot(c, c->snd_una)->m)
		c->snd_una++;
	if (weft_seq_diff(c->sack_high, c->snd_una) < 0)
		c->sack_high = c->snd_una;
	if (acked == 0)
		return 0;

	if (hdr->ts_hold != weft_le16(WEFT_FRAME_NO_ECHO))
		take_sample(c, hdr);
	c->backoff = 0;
	if (weft_seq_diff(c->snd_una, c->round_end) >= 0) {
		c->round_at = c->iface->lt;
		c->round_end = c->snd_una + RTE_MIN(RAW_ROUND, c->snd_next - c->snd_una);
	}
	if (unlikely(c->win_frames < c->win_whole))
		raw_share_acked(c, acked);
	c->tail_probed = false;
	c->ack_asked = false;
	c->base.tx_room = true;
	raw_timer_arm(c);
	if (unlikely(c->sack_high != c->snd_una))
		raw_loss_detect(c);
	if (unlikely(!STAILQ_EMPTY(&c->flushes)))
		raw_flushes_check(c);
	return acked;
}

/*
 * Send again what newer frames of the same path have overtaken, once each had time to arrive.
 * Frames that only lack time set loss_timer.
 */
void raw_loss_detect(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	uint64_t wait = RAW_NEVER, due;
	struct raw_slot *slot;
	struct raw_path *p;
	uint32_t seq;

	c->loss_timer = 0;
	for (seq = c->snd_una; seq != c->snd_next; seq++) {
		slot = raw_slot(c, seq);
		p = &c->path[slot->path];
		if (!slot->m || !weft_loss_suspect(&p->loss, slot->order))
			continue;
		due = slot->sent + weft_loss_patience(&p->rtt);
		if (due > iface->et) {
			wait = RTE_MIN(wait, due);
			continue;
		}
		if (raw_retransmit(c, seq, RAW_TX_FAST, 0) != 0) {
			wait = iface->et + 1; /* no room in the queue: go on at the next progress */
			break;
		}
	}
	if (wait != RAW_NEVER) {
		c->loss_timer = wait;
		raw_deadline_et(c, wait);
	}
}

/* The same bytes in a buffer of our own, for the NIC may still read the first. User memory is
 * shared, not copied. */
static struct rte_mbuf *copy_frame(struct raw_iface *iface, const struct rte_mbuf *m)
{
	struct rte_mempool *pool = m->nb_segs == 1 ? iface->port->pool : iface->port->hdr_pool;
	struct rte_mbuf *head = NULL, **tail = &head, *s;
	uint32_t pkt_len = m->pkt_len;
	uint16_t segs = m->nb_segs;
	uint64_t ol_flags = m->ol_flags, tx_offload = m->tx_offload;

	for (; m; m = m->next, tail = &s->next) {
		s = rte_pktmbuf_alloc(pool);
		if (!s) {
			rte_pktmbuf_free(head);
			return NULL;
		}
		*tail = s;
		if (RTE_MBUF_HAS_EXTBUF(m)) {
			rte_pktmbuf_attach(s, (struct rte_mbuf *)(uintptr_t)m);
			s->next = NULL;
			s->nb_segs = 1;
			continue;
		}
		s->data_len = m->data_len;
		memcpy(rte_pktmbuf_mtod(s, void *), rte_pktmbuf_mtod(m, const void *), m->data_len);
	}
	head->pkt_len = pkt_len;
	head->nb_segs = segs;
	head->ol_flags |= ol_flags & (RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM);
	head->tx_offload = tx_offload;
	return head;
}

static bool held_by_port(const struct rte_mbuf *m)
{
	for (; m; m = m->next) {
		if (rte_mbuf_refcnt_read(m) > 1)
			return true;
	}
	return false;
}

/* @return 0, or -EAGAIN without side effect */
int raw_retransmit(struct raw_conn *c, uint32_t seq, enum raw_counter why, uint16_t flags)
{
	struct raw_iface *iface = c->iface;
	struct raw_slot *slot = raw_slot(c, seq);
	struct weft_frame_hdr *hdr;
	struct rte_mbuf *m = slot->m;

	if (raw_txq_space(iface) == 0)
		return -EAGAIN;
	if (slot->taken_back) {
		/*
		 * It goes out and is not kept: the copy in memory stays until it is acknowledged.
		 */
		m = raw_copy_frame(iface, slot->copy);
	} else if (held_by_port(slot->m)) {
		m = copy_frame(iface, slot->m);
		if (m) {
			raw_count(iface, RAW_TX_RETX_COPY);
			rte_pktmbuf_free(slot->m);
			slot->m = m;
		}
	}
	if (!m) {
		raw_count(iface, RAW_TX_NO_BUFFER);
		return -EAGAIN;
	}
	/* Another path, if there is one: whatever ate the frame may eat it again. */
	if (++slot->path >= c->paths)
		slot->path = 0;
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), c->peer_mac,
	       6); /* it may have changed (engine/move.c) */
	hdr = raw_hdr(c, m);
	flags |= weft_le16(hdr->flags) & WEFT_FRAME_F_CRC32C;
	hdr->flags = weft_le16((uint16_t)(flags | WEFT_FRAME_F_RETX));
	raw_stamp(c, hdr, slot->path);
	raw_finish(c, m, slot->bytes, slot->path);
	slot->order = c->path[slot->path].order++;
	slot->sent = iface->et;
	if (slot->tries < UINT8_MAX)
		slot->tries++;
	c->path[slot->path].retransmits++;
	c->base.retransmits++;
	raw_count(iface, why);
	if (!slot->taken_back)
		raw_ref_chain(m);
	raw_txq_push(iface, m);
	return 0;
}

static uint32_t last_unacked(struct raw_conn *c)
{
	uint32_t seq = c->snd_next - 1;

	while (seq != c->snd_una && !raw_slot(c, seq)->m)
		seq--;
	return seq;
}

/*
 * Silence although frames are outstanding. First the last frame goes out again with the wish for an
 * answer: the SACK that comes back tells what is missing. Only then, and at growing intervals, the
 * oldest one.
 */
void raw_timer_fire(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (iface->txq_count > 0) {
		/* What waits in our own queue is not lost. */
		c->timer = iface->et + WEFT_PROBE_MIN;
		raw_deadline_et(c, c->timer);
		return;
	}
	if (!c->tail_probed) {
		if (raw_retransmit(c, last_unacked(c), RAW_TX_PROBE, WEFT_FRAME_F_ACK_REQ) == 0)
			c->tail_probed = true;
	} else {
		if (raw_retransmit(c, c->snd_una, RAW_TX_RTO, WEFT_FRAME_F_ACK_REQ) == 0 &&
		    c->backoff < 16) {
			c->backoff++;
			c->pings++;
		}
		raw_share_stalled(c);
		if (c->backoff >= 2)
			raw_move_look(c);
	}
	raw_timer_arm(c);
}

/* The connection is over: nothing is sent again. */
void raw_slots_release(struct raw_conn *c)
{
	if (c->open) {
		rte_pktmbuf_free(c->open);
		c->iface->tx_held--;
		c->open = NULL;
	}
	c->open_room = 0;
	raw_share_forget(c);
	c->timer = 0;
	c->loss_timer = 0;
	c->inflight = 0;
	c->base.queued = 0;
	for (; c->slots && c->snd_una != c->snd_next; c->snd_una++) {
		if (raw_slot(c, c->snd_una)->m)
			slot_free(c, raw_slot(c, c->snd_una), rte_lcore_id());
	}
	/* What is left of the connection waits for seconds, and there may be hundreds of them. */
	free(c->slots);
	c->slots = NULL;
}

/* ---------------------------------------------------------------- flush */

/* @p f, from malloc(), waits for all that was sent. */
void raw_flush_queue(struct raw_conn *c, struct raw_flush *f, struct weft_lane_comp *comp)
{
	/* An open frame that found the queue full will be the next sequence. */
	*f = (struct raw_flush){.comp = comp, .seq = c->snd_next + (c->open != NULL)};
	STAILQ_INSERT_TAIL(&c->flushes, f, link);
}

int raw_ep_flush(struct weft_lane_ep *lane_ep, struct weft_lane_comp *comp)
{
	struct raw_conn *c = raw_conn_of(lane_ep);
	struct raw_flush *f;

	if (c->state == RAW_DOWN)
		return c->error;
	if (c->state == RAW_QUIET)
		return -ENOTCONN;
	if (c->open)
		raw_seal(c, WEFT_FRAME_F_ACK_REQ);
	if (!c->open && c->snd_una == c->snd_next)
		return WEFT_LANE_IDLE;
	f = malloc(sizeof(*f));
	if (!f)
		return -ENOMEM;
	raw_flush_queue(c, f, comp);
	return 0;
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
