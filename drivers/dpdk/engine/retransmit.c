/* SPDX-License-Identifier: BSD-3-Clause */

/* The retransmission timer and loss detection: when, which and how frames are retransmitted. */

#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_mbuf.h>

#include "engine/ack.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/mtu.h"
#include "engine/multipath.h"
#include "engine/parts.h"
#include "engine/peer.h"
#include "engine/rx.h"
#include "engine/share.h"
#include "engine/slots.h"
#include "engine/suspect.h"
#include "engine/timer.h"
#include "engine/txq.h"
#include "engine/window.h"
#include "frame/frame.h"

#define LATE_MAX (2ull * WEFT_RTO_MIN)
#define QUEUE_NS 20000u /* of half a round trip, beyond the least one */

/*
 * @return the round trip of the slowest path, since a tail may be on any of them. Only paths that
 * new frames take and that have been measured count, if there are any.
 */
const struct weft_rtt *raw_timer_slowest(const struct raw_conn *c)
{
	const struct weft_rtt *r = &c->path[c->next_path].rtt, *p;

	for (uint8_t i = 0; c->multi && i < c->path_count; i++) {
		p = &c->path[i].rtt;
		if (p->srtt != 0 && raw_multi_usable(c, i) &&
		    (r->srtt == 0 || weft_rtt_rto(p, 0) > weft_rtt_rto(r, 0)))
			r = p;
	}
	return r;
}

static void set_probe_wait(struct raw_conn *c)
{
	uint64_t wait = weft_rtt_probe(raw_timer_slowest(c), 2 * RAW_ACK_DELAY);

	c->probe_wait = (uint32_t)RTE_MAX(wait, c->late + c->late / 4ull);
}

/*
 * A new sample of a round trip: the values that follow from it are computed now, not for each
 * frame.
 */
void raw_timer_learn(struct raw_conn *c)
{
	const struct weft_rtt *r = &c->path[c->next_path].rtt;

	if (unlikely(r->srtt / 2 > r->min + QUEUE_NS))
		c->path_busy = true; /* other paths may have shorter queues (engine/path_grow.c) */
	c->late -= c->late / 16;
	set_probe_wait(c);
}

/*
 * After a request the peer acknowledges frames that had arrived before: they waited in a full ring,
 * or for its core. Round trips do not show that delay, as a burst of long frames gives no exact
 * sample.
 */
void raw_tail_answered(struct raw_conn *c)
{
	const struct raw_slot *slot = raw_slot(c, c->snd_una);
	uint64_t age = c->iface->tx_clock - slot->sent;

	if (slot->m && slot->tries <= 1 && age > c->late) {
		c->late = (uint32_t)RTE_MIN(age, LATE_MAX);
		set_probe_wait(c);
	}
}

/* The last frame was retransmitted: from here on the retransmission timeout applies. */
void raw_timer_arm_rto(struct raw_conn *c)
{
	/* Each path gets a try before the timeout doubles. */
	c->timer =
		c->iface->tx_clock + weft_rtt_rto(raw_timer_slowest(c), c->backoff / c->path_count);
	raw_deadline_tx(c, c->timer);
}

#define RESERVE_TRIES 2u /* a frame that was lost more often is sent over a path in reserve */

/* Copies a frame to a new buffer, since the NIC may still read the first one. User memory is
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

/* Retransmit the frame unchanged. @return 0, or -EAGAIN without side effect */
static int send_whole(struct raw_conn *c, struct raw_slot *slot, uint8_t path, uint16_t flags)
{
	struct raw_iface *iface = c->iface;
	struct weft_frame_hdr *hdr;
	struct rte_mbuf *m = slot->m;

	if (raw_txq_space(iface) == 0)
		return -EAGAIN;
	if (slot->taken_back) {
		/*
		 * The mbuf is sent and not kept: the copy in memory stays until the
		 * acknowledgement.
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
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), c->peer_mac,
	       6); /* it may have changed (engine/move.c) */
	hdr = raw_hdr(c, m);
	flags |= weft_get16(hdr->flags) & WEFT_FRAME_F_CRC32C;
	hdr->flags = weft_put16(flags);
	raw_stamp(c, hdr, path);
	raw_finish(c, m, slot->bytes, path);
	slot->order = c->path[path].order++;
	if (!slot->taken_back)
		raw_ref_chain(m);
	raw_txq_push(iface, m);
	return 0;
}

/* @return 0, or -EAGAIN without side effect */
static int retransmit_slot(struct raw_conn *c, uint32_t seq, enum raw_counter why, uint16_t flags)
{
	struct raw_iface *iface = c->iface;
	struct raw_slot *slot = raw_slot(c, seq);
	uint8_t before = slot->path, path;
	int err;

	/* Another path, if there is one: the cause of the loss may still exist on the last one. */
	path = raw_multi_other(c, before, why != RAW_TX_FAST || slot->tries > RESERVE_TRIES);
	if (unlikely(slot->tries >= RAW_MTU_TRIES))
		raw_mtu_suspect(c, seq);
	flags |= WEFT_FRAME_F_RETX;
	err = raw_parts_needed(c, slot) ? raw_parts_send(c, slot, seq, path, flags)
					: send_whole(c, slot, path, flags);
	if (err != 0)
		return err;
	slot->path = path;
	slot->sent = iface->tx_clock;
	if (c->cc)
		raw_window_resent(c, slot, before);
	raw_multi_resent(c, slot, before, why != RAW_TX_FAST);
	c->path_busy = true; /* other paths may lose less (engine/path_grow.c) */
	if (slot->tries < UINT8_MAX)
		slot->tries++;
	c->path[slot->path].retransmits++;
	c->base.retransmits++;
	raw_count(iface, why);
	return 0;
}

/*
 * Retransmit frames that newer frames of the same path have overtaken, once each had time to
 * arrive, and frames of a path that is silent. loss_timer is set for frames that only lack time.
 */
void raw_loss_detect(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	uint64_t wait = RAW_NEVER, due;
	struct raw_slot *slot;
	struct raw_path *p;
	uint32_t seq;
	bool silent;

	c->loss_timer = 0;
	for (seq = c->snd_una; seq != c->snd_next; seq++) {
		slot = raw_slot(c, seq);
		p = &c->path[slot->path];
		if (!slot->m)
			continue;
		silent = unlikely(c->multi) && raw_multi_lost(c, slot);
		if (!silent && !weft_loss_suspect(&p->loss, slot->order))
			continue;
		due = slot->sent + weft_loss_timeout(&p->rtt);
		if (due > iface->tx_clock && !silent) {
			wait = RTE_MIN(wait, due);
			continue;
		}
		if (c->cc && !slot->lost)
			raw_window_lost(c, slot);
		if (c->cc && !raw_window_again(c, slot->bytes, &wait))
			continue;
		if (retransmit_slot(c, seq, RAW_TX_FAST, 0) != 0) {
			/* no room in the queue: go on in the next progress call */
			wait = iface->tx_clock + 1;
			break;
		}
	}
	if (wait != RAW_NEVER) {
		c->loss_timer = wait;
		raw_deadline_tx(c, wait);
	}
}

static uint32_t last_unacked(struct raw_conn *c)
{
	uint32_t seq = c->snd_next - 1;

	while (seq != c->snd_una && !raw_slot(c, seq)->m)
		seq--;
	return seq;
}

/* Only frames of the peer's own thread count: its heartbeat thread receives no frames. */
static bool received_since(const struct raw_conn *c, uint64_t live_clock)
{
	return raw_ep_seen(&c->base) > live_clock;
}

/*
 * A ring in memory loses no frame, and a switch behind it rarely one: a silent peer almost always
 * waits for its core. Retransmitted data would only be in the ring twice, so an empty frame
 * requests an acknowledgement first. Data is retransmitted after a frame of the peer that does not
 * acknowledge it.
 */
static bool queries_first(const struct raw_conn *c)
{
	return (c->iface->port->flags & WEFT_FRAME_PORT_MEMORY) != 0 &&
	       (c->tail == RAW_TAIL_NONE || !received_since(c, c->tail_at));
}

/* The wait doubles with each try without an answer. */
static void back_off(struct raw_conn *c)
{
	if (c->backoff >= 15u * c->path_count)
		return;
	c->backoff++;
	c->pings++;
	if (c->cc)
		raw_window_timeout(c);
	if (c->backoff >= c->path_count)
		raw_path_open(c); /* no path gets an answer */
}

/* @return false: the queue has no room */
static bool query_peer(struct raw_conn *c)
{
	bool first = c->tail == RAW_TAIL_NONE;

	if (raw_ack_send(c, WEFT_FRAME_F_ACK_REQ) != 0)
		return false;
	raw_count(c->iface, RAW_TX_QUERY);
	c->tail_at = c->iface->live_clock;
	if (first) {
		c->tail = RAW_TAIL_ACK_REQUESTED;
		c->timer = c->iface->tx_clock + c->probe_wait;
		raw_deadline_tx(c, c->timer);
		return true;
	}
	back_off(c);
	raw_share_stalled(c);
	raw_timer_arm(c);
	return true;
}

static void send_again(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (c->tail != RAW_TAIL_PROBED) {
		if (retransmit_slot(c, last_unacked(c), RAW_TX_PROBE, WEFT_FRAME_F_ACK_REQ) == 0) {
			c->tail = RAW_TAIL_PROBED;
			c->tail_at = iface->live_clock;
		}
	} else {
		if (retransmit_slot(c, c->snd_una, RAW_TX_RTO, WEFT_FRAME_F_ACK_REQ) == 0) {
			c->tail_at = iface->live_clock;
			back_off(c);
		}
		raw_share_stalled(c);
	}
	raw_timer_arm(c);
}

/*
 * The peer is silent although frames are outstanding. First the last frame is retransmitted with a
 * request for an acknowledgement: the SACK in the answer names the missing frames. Only then the
 * oldest frame is retransmitted, at growing intervals. On ports in memory a request without data
 * precedes each of them.
 */
bool raw_timer_fire(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (iface->txq.count > 0) {
		/* Frames in the engine's own queue are not lost. */
		c->timer = iface->tx_clock + WEFT_PROBE_MIN;
		raw_deadline_tx(c, c->timer);
		return false;
	}
	if (!queries_first(c))
		send_again(c);
	else if (!query_peer(c))
		raw_timer_arm(c);
	return c->tail != RAW_TAIL_NONE && c->backoff >= 2;
}
