/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The receive path. Immediate data is validated here before it is used. The hardware has already
 * acknowledged a message that violates the protocol, so the peer will not retransmit it. Such a
 * message is dropped and counted, and its lane ends.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "roce.h"

/* Delay after which a count is written by itself, if no message has carried it. */
#define ACK_DELAY_NS 30000

/* ------------------------------------------------------------------ which queue pair */

struct roce_chan *roce_chan_find(const struct roce_iface *r, uint32_t qpn)
{
	const struct roce_qpns *page = r->by_qpn[qpn >> 12 & 4095];

	return page ? page->chan[qpn & 4095] : NULL;
}

int roce_chan_enter(struct roce_iface *r, struct roce_chan *chan)
{
	uint32_t qpn = chan->qp->qp_num;
	struct roce_qpns **page = &r->by_qpn[qpn >> 12 & 4095];

	if (!*page) {
		*page = calloc(1, sizeof(**page));
		if (!*page)
			return -ENOMEM;
	}
	(*page)->chan[qpn & 4095] = chan;
	(*page)->used++;
	return 0;
}

void roce_chan_leave(struct roce_iface *r, struct roce_chan *chan)
{
	uint32_t qpn = chan->qp->qp_num;
	struct roce_qpns **page = &r->by_qpn[qpn >> 12 & 4095];

	if (roce_chan_find(r, qpn) != chan)
		return;
	(*page)->chan[qpn & 4095] = NULL;
	/* The device assigns numbers in sequence, so in a long run all pages would be used. */
	if (--(*page)->used == 0) {
		free(*page);
		*page = NULL;
	}
}

/* ------------------------------------------------------------------ counts */

static void peer_misbehaves(struct roce_lane_ep *lane_ep, const char *how)
{
	struct weft_roce_names names = roce_names(lane_ep);
	char text[160];

	snprintf(text, sizeof(text), "%s: peer %s breaks the protocol: %s", names.device,
		 names.peer, how);
	roce_lane_ep_fail(lane_ep, WEFT_LANE_EV_DOWN, -EPROTO, text);
}

static void messages_acked(struct roce_chan *chan, enum weft_roce_ack what)
{
	struct roce_lane_ep *lane_ep = chan->lane_ep;

	switch (what) {
	case WEFT_ROCE_ACK_NEW:
		lane_ep->base.tx_room = true;
		roce_chan_done(chan);
		break;
	case WEFT_ROCE_ACK_BAD:
		roce_lane_ep_iface(lane_ep)->count.bad_ack++;
		peer_misbehaves(lane_ep, "it acknowledges messages that were not sent");
		break;
	default:
		break;
	}
}

unsigned int roce_words_read(struct roce_iface *r)
{
	struct roce_chan *chan, *next;
	unsigned int events = 0;
	uint32_t count;

	for (chan = TAILQ_FIRST(&r->waits); chan; chan = next) {
		next = TAILQ_NEXT(chan, wait_link);
		if (chan->lane_ep->state != ROCE_UP || chan->credit.acked == chan->credit.sent) {
			TAILQ_REMOVE(&r->waits, chan, wait_link);
			chan->in_wait = false;
			continue;
		}
		if (!weft_roce_word_read(chan->word, &count)) {
			/* a write is in progress: read it at the next poll */
			r->count.partial_word++;
			continue;
		}
		/* Messages may have carried newer counts: the word counts only when it changes. */
		if (count != chan->word_seen) {
			uint32_t before = chan->credit.acked;

			chan->word_seen = count;
			chan->received = true;
			chan->last_rx_at = r->now;
			messages_acked(chan, weft_roce_credit_word(&chan->credit, count));
			events += chan->credit.acked != before;
			/* Its callbacks may have destroyed others in the list. */
			next = chan->in_wait ? TAILQ_NEXT(chan, wait_link) : TAILQ_FIRST(&r->waits);
		}
	}
	return events;
}

void roce_acks_send(struct roce_iface *r)
{
	struct roce_chan *chan, *next;

	for (chan = TAILQ_FIRST(&r->acks); chan; chan = next) {
		next = TAILQ_NEXT(chan, ack_link);
		if (chan->lane_ep->state == ROCE_UP &&
		    chan->credit.reported != chan->credit.processed) {
			if (!chan->ack_now && !weft_roce_credit_due(&chan->credit) &&
			    r->now - chan->ack_since < ACK_DELAY_NS)
				continue;
			if (roce_chan_count_send(chan) != 0)
				continue;
		}
		TAILQ_REMOVE(&r->acks, chan, ack_link);
		chan->in_acks = false;
		chan->ack_now = false;
	}
}

/* ------------------------------------------------------------------ messages */

static void control_message(struct roce_chan *chan, uint32_t imm)
{
	struct roce_lane_ep *lane_ep = chan->lane_ep;
	struct weft_roce_names names = roce_names(lane_ep);
	char text[128];

	if (weft_roce_imm_id(imm) != WEFT_ROCE_BYE) {
		roce_lane_ep_iface(lane_ep)->count.bad_imm++;
		peer_misbehaves(lane_ep, "an unknown control message");
		return;
	}
	chan->bye = true;
	roce_lane_ep_bye(lane_ep);
	if (lane_ep->close.seen_at == 0)
		return;
	snprintf(text, sizeof(text), "%s: peer %s has closed the lane", names.device, names.peer);
	roce_lane_ep_fail(lane_ep, WEFT_LANE_EV_GONE, -ECONNRESET, text);
}

/* @return true when the message may be delivered */
static bool may_deliver(struct roce_iface *r, struct roce_chan *chan, const struct ibv_wc *wc,
			uint32_t *imm)
{
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || wc->opcode != IBV_WC_RECV) {
		r->count.bad_imm++;
		peer_misbehaves(chan->lane_ep, "a message without immediate data");
		return false;
	}
	*imm = ntohl(wc->imm_data);
	messages_acked(chan, weft_roce_credit_ack(&chan->credit, *imm & WEFT_ROCE_COUNT_MASK));
	if (chan->lane_ep->state >= ROCE_FAILED)
		return false;
	if ((*imm & WEFT_ROCE_IMM_CONTROL) && weft_roce_imm_id(*imm) != WEFT_ROCE_PING) {
		control_message(chan, *imm);
		return false;
	}
	if (chan->bye ||
	    chan->credit.processed - chan->credit.reported >= chan->credit.own_window) {
		r->count.bad_imm++;
		peer_misbehaves(chan->lane_ep, chan->bye ? "a message after the last one"
							 : "more messages than it was allowed");
		return false;
	}
	return true;
}

/*
 * BYE on a lane that has ended: both ends close at the same time, or the lane ended while it was
 * connecting and its own BYE is still due.
 */
static bool bye_crossed(struct roce_chan *chan, const struct ibv_wc *wc)
{
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || !(ntohl(wc->imm_data) & WEFT_ROCE_IMM_CONTROL))
		return false;
	chan->bye = true;
	roce_lane_ep_bye(chan->lane_ep);
	return true;
}

void roce_recv(struct roce_iface *r, const struct ibv_wc *wc, struct roce_buf *buf)
{
	struct roce_chan *chan = roce_chan_find(r, wc->qp_num);
	struct roce_lane_ep *lane_ep;
	uint32_t imm;
	bool may_keep;
	int keep = 0;

	if (chan) {
		chan->received = true;
		chan->last_rx_at = r->now;
	}
	if (!chan || chan->lane_ep->state >= ROCE_FAILED) {
		if (!chan || !bye_crossed(chan, wc))
			r->count.late++;
		roce_pool_put(&r->rx_pool, buf);
		return;
	}
	if (!may_deliver(r, chan, wc, &imm)) {
		roce_pool_put(&r->rx_pool, buf);
		return;
	}
	lane_ep = chan->lane_ep;
	may_keep = roce_srq_may_keep(r);
	if (__builtin_expect(!(imm & WEFT_ROCE_IMM_CONTROL), 1)) {
		r->count.rx++;
		r->count.rx_bytes += wc->byte_len;
		r->count.rx_copied += !may_keep;
		keep = r->recv(r->arg, &lane_ep->base, weft_roce_imm_id(imm), buf->data,
			       wc->byte_len, may_keep ? buf : NULL);
	}
	/* The callback may have destroyed the lane_ep; it is freed later. */
	if (keep == WEFT_LANE_KEEP && may_keep)
		r->kept++;
	else
		roce_pool_put(&r->rx_pool, buf);
	chan->credit.processed++;
	chan->ack_now = chan->ack_now || (imm & WEFT_ROCE_IMM_ACK_REQ);
	if (!chan->in_acks) {
		chan->in_acks = true;
		chan->ack_since = r->now;
		TAILQ_INSERT_TAIL(&r->acks, chan, ack_link);
	}
}
