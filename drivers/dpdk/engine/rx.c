/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <rte_ring.h>

#include "engine/build.h"
#include "engine/conn.h"
#include "engine/handshake.h"
#include "engine/iface.h"
#include "engine/lifetime.h"
#include "engine/liveness.h"
#include "engine/mtu.h"
#include "engine/neighbour.h"
#include "engine/outstanding.h"
#include "engine/reliability.h"
#include "engine/rx.h"
#include "engine/sealed_frame.h"
#include "engine/stray.h"
#include "engine/window.h"
#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "frame/parse.h"
#include "lane.h"

/* ---------------------------------------------------------------- frames of this worker */

#define CHAIN_HEAD 256 /* bytes that hold all headers of a frame and of its first message */

/* Most bytes of a frame to be prefetched: with the frame being copied they fit the L1 cache. */
#define PREFETCH_MAX 4096u

/* Without a known round trip, a timestamp is echoed if the last check was at most N ns ago. */
#define STEP_ROUGH 20000u
#define ECHO_ROUGH 255u   /* after a longer time one of N timestamps is echoed */
#define ECHO_REQUESTED 4u /* one of N rough arrivals that request an ACK at once gets an echo */

/* Delivers the part in each buffer as a message of its own, so that each byte is copied once. */
static __rte_noinline void deliver_pieces(struct raw_conn *c, const struct weft_frame_view *v,
					  struct rte_mbuf *m)
{
	const struct weft_frame_msg *msg = (const struct weft_frame_msg *)v->body;
	const uint8_t *first = (const uint8_t *)(msg + 1);
	size_t left = weft_get16(msg->length), had, n, hdr = 0;
	struct raw_iface *iface = c->iface;
	uint8_t *at = (uint8_t *)(uintptr_t)first;

	n = m->data_len - (size_t)(first - rte_pktmbuf_mtod(m, const uint8_t *));
	raw_count(iface, RAW_RX_MESSAGES);
	for (had = 0; left > 0 && c->state == RAW_UP; had += n, left -= n) {
		if (had > 0) {
			m = m->next;
			at = rte_pktmbuf_mtod(m, uint8_t *);
			n = m->data_len;
			hdr = iface->split(msg->am_id, first, had, at);
		}
		n = RTE_MIN(n, left);
		iface->recv(iface->cb_arg, &c->base, msg->am_id, at - hdr, hdr + n, NULL);
	}
}

/*
 * Delivers messages of the batch's kind (iface->batch_id) from @p *off on, until one is of another
 * kind or the callback has left one. Then @p *off is behind the last delivered one.
 */
static __rte_noinline void deliver_batches(struct raw_conn *c, const struct weft_frame_view *v,
					   uint32_t *off)
{
	struct weft_lane_msg msgs[WEFT_LANE_BATCH];
	struct raw_iface *iface = c->iface;
	uint32_t end[WEFT_LANE_BATCH], next = *off;
	const struct weft_frame_msg *msg;
	unsigned int n, taken;

	do {
		for (n = 0; n < WEFT_LANE_BATCH && (msg = weft_frame_msg_next(v, &next)) &&
			    msg->am_id == iface->batch_id;
		     n++) {
			msgs[n] = (struct weft_lane_msg){msg + 1, weft_get16(msg->length)};
			end[n] = next;
		}
		if (n == 0)
			return;
		taken = iface->recv_batch(&c->base, msgs, n);
		if (taken == 0)
			return;
		iface->counter[RAW_RX_MESSAGES] += taken;
		next = *off = end[taken - 1];
	} while (taken == WEFT_LANE_BATCH && c->state == RAW_UP);
}

static inline bool begins_batch(const struct raw_iface *iface, const struct weft_frame_view *v)
{
	const struct weft_frame_msg *msg = (const struct weft_frame_msg *)v->body;

	return v->body_len > sizeof(*msg) && msg->am_id == iface->batch_id && iface->recv_batch;
}

static inline void take_back(struct raw_iface *iface, struct rte_mbuf *desc)
{
	while (unlikely(iface->in_hand_back > 0)) {
		iface->in_hand_back--;
		iface->kept--;
		rte_mbuf_refcnt_update(desc, -1);
	}
}

/* A callback may destroy the lane endpoint: then the further messages are dropped. */
static inline void deliver_each(struct raw_conn *c, const struct weft_frame_view *v, uint32_t off,
				struct rte_mbuf *desc)
{
	struct raw_iface *iface = c->iface;
	const struct weft_frame_msg *msg;
	void *keep;

	while (likely(c->state == RAW_UP) && (msg = weft_frame_msg_next(v, &off))) {
		keep = desc;
		if (unlikely(iface->kept >= iface->keep_max || iface->rx_elsewhere)) {
			keep = NULL;
			raw_count(iface, RAW_RX_COPY_ONLY);
		}
		raw_count(iface, RAW_RX_MESSAGES);
		if (iface->recv(iface->cb_arg, &c->base, msg->am_id, msg + 1,
				weft_get16(msg->length), keep) == WEFT_LANE_KEEP &&
		    keep) {
			rte_mbuf_refcnt_update(desc, 1);
			iface->kept++;
		}
		take_back(iface, desc);
	}
	iface->in_hand = NULL;
}

/*
 * A frame in place (port->rx_in_place) with one message. The callback validates the first bytes,
 * which are private, and copies further bytes from where the peer has written them.
 */
static __rte_noinline void deliver_in_place(struct raw_conn *c, const struct weft_frame_view *v,
					    struct rte_mbuf *m)
{
	const struct weft_frame_msg *msg = (const struct weft_frame_msg *)v->body;
	const uint8_t *head = (const uint8_t *)(msg + 1);
	size_t off = (size_t)(head - rte_pktmbuf_mtod(m, const uint8_t *));
	struct raw_iface *iface = c->iface;

	if (iface->recv_in_place(&c->base, msg->am_id, head, m->data_len - off,
				 weft_in_place_at(m) + off, weft_get16(msg->length))) {
		raw_count(iface, RAW_RX_MESSAGES);
		raw_count(iface, RAW_RX_IN_PLACE);
		return;
	}
	weft_in_place_copy(m);
	iface->in_hand = m;
	deliver_each(c, v, 0, m);
}

static inline void deliver_messages(struct raw_conn *c, const struct weft_frame_view *v,
				    struct rte_mbuf *desc)
{
	uint32_t off = 0;

	if (unlikely(desc && desc->nb_segs > 1)) {
		if (c->iface->port->rx_in_place)
			deliver_in_place(c, v, desc);
		else
			deliver_pieces(c, v, desc);
		return;
	}
	c->iface->in_hand = desc;
	if (begins_batch(c->iface, v))
		deliver_batches(c, v, &off);
	deliver_each(c, v, off, desc);
}

/*
 * @return true: the arrival time of the current frame is known well enough to echo its timestamp.
 *
 * The frame arrived at some time since the last check of the port. If the application computed in
 * between, that time must not pass for a delay of the network: up to a quarter of the round trip is
 * accepted. An end that only receives knows no round trip, and echoes one of ECHO_ROUGH timestamps,
 * since the sender would otherwise get no echo. A sender that requests acknowledgements at once has
 * a small window: it gets one of ECHO_REQUESTED.
 */
static bool rough_arrival_known(const struct raw_iface *iface, struct raw_rx *rx, uint32_t rtt,
				uint16_t flags)
{
	if (iface->gap)
		return false;
	if (flags & WEFT_FRAME_F_ACK_REQ && ++rx->echo_requested % ECHO_REQUESTED == 0)
		return true;
	if (rtt != 0)
		return iface->step <= rtt / 4;
	if (iface->step > STEP_ROUGH && ++rx->echo_missed < ECHO_ROUGH)
		return false;
	rx->echo_missed = 0;
	return true;
}

static inline bool arrival_known(const struct raw_iface *iface, struct raw_rx *rx, uint32_t rtt,
				 uint16_t flags)
{
	return likely(iface->step <= RAW_STAMP_ERROR) || rough_arrival_known(iface, rx, rtt, flags);
}

/* @param rtt  ns of a round trip; 0 = none is known */
static inline void take_echo(const struct raw_iface *iface, struct raw_rx *rx, uint32_t rtt,
			     const struct weft_frame_hdr *hdr)
{
	rx->ts_echo = weft_get32(hdr->ts);
	rx->ts_at = iface->now;
	rx->ts_valid = arrival_known(iface, rx, rtt, weft_get16(hdr->flags));
	rx->echo_path = hdr->path;
	rx->data_received = true;
}

static __rte_always_inline void data_input(struct raw_conn *c, const struct weft_frame_view *v,
					   struct rte_mbuf *desc)
{
	struct raw_iface *iface = c->iface;
	uint32_t seq = weft_get32(v->hdr->seq);
	enum weft_rxwin_verdict verdict = weft_rxwin_check(&c->rx.win, seq);

	/* A duplicate is echoed, too: the sender measures the round trip of the retransmission. */
	take_echo(iface, &c->rx, c->base.rtt_ns, v->hdr);
	if (unlikely(verdict != WEFT_RXWIN_NEW)) {
		c->rx.ack_all = true;
		raw_count(iface,
			  verdict == WEFT_RXWIN_DUPLICATE ? RAW_DROP_DUPLICATE : RAW_DROP_BEYOND);
		raw_rx_schedule_ack(iface, &c->rx, RAW_ACK_NOW);
		return;
	}
	if (unlikely(weft_rxwin_need(&c->rx.win, seq) != 0)) {
		raw_count(iface, RAW_NO_MEMORY); /* the frame counts as lost */
		return;
	}
	deliver_messages(c, v, desc);
	if (unlikely(c->state != RAW_UP))
		return; /* destroyed: frames that were not delivered are not acknowledged */
	/* Only now: an acknowledgement means that the callback has returned. */
	raw_rx_delivered(iface, &c->rx, seq, v->body_len, v->flags & WEFT_FRAME_F_ACK_REQ);
}

/* A part of a frame that was too long for the path. The frame is delivered with its last part. */
static __rte_noinline void part_input(struct raw_conn *c, const struct weft_frame_view *v)
{
	struct weft_frame_view whole;
	struct raw_part *p;

	if (weft_rxwin_check(&c->rx.win, weft_get32(v->hdr->seq)) != WEFT_RXWIN_NEW) {
		data_input(c, v, NULL); /* counts the duplicate, and acknowledges it */
		return;
	}
	p = raw_part_take(c, v, &whole);
	if (p)
		data_input(c, &whole, NULL);
	free(p);
}

/* A destroyed connection acknowledges data that it has received, and answers new data with BYE. */
static void time_wait_input(struct raw_conn *c, const struct weft_frame_view *v)
{
	if (v->type == WEFT_FRAME_BYE) {
		raw_ctl_send_on(c, raw_came_over(c, v), WEFT_FRAME_BYE_ACK, 0, NULL, 0, 0);
		c->bye.done = true; /* the peer is closing, too, and needs no BYE */
	} else if (v->type == WEFT_FRAME_BYE_ACK) {
		c->bye.done = true;
	} else if (v->type == WEFT_FRAME_DATA || v->flags & WEFT_FRAME_F_ACK_REQ) {
		if (v->type == WEFT_FRAME_DATA &&
		    weft_rxwin_check(&c->rx.win, weft_get32(v->hdr->seq)) == WEFT_RXWIN_NEW)
			raw_bye_send(c);
		else
			raw_ack_send(c, 0);
	}
}

/* Marked frames, and frames that report marks, never take the fast path of plain_input(). */
static void up_input(struct raw_conn *c, const struct weft_frame_view *v, struct rte_mbuf *desc)
{
	c->live.pings = 0;
	if (unlikely(v->ce))
		raw_window_marked(c, v);
	if (unlikely(v->ecn) && c->tx.cc)
		raw_window_marks(c, v->ecn);
	if (unlikely(v->flags & WEFT_FRAME_F_PROGRESS))
		raw_window_peer_gap(c, raw_gap_input(c, v->progress));
	if (unlikely(memcmp(v->src_mac, c->peer_mac, 6) != 0))
		raw_hint_source(c, v->src_mac);
	raw_ack_input(c, v->hdr, v->sack);
	if (unlikely(c->state != RAW_UP))
		return; /* a completion has destroyed the connection */
	switch (v->type) {
	case WEFT_FRAME_DATA:
		data_input(c, v, desc);
		break;
	case WEFT_FRAME_ACK:
		raw_count(c->iface, RAW_RX_ACKS);
		if (v->flags & WEFT_FRAME_F_ACK_REQ) {
			c->rx.reply_path = v->hdr->path % WEFT_FRAME_PATHS_MAX + 1;
			raw_rx_schedule_ack(c->iface, &c->rx, RAW_ACK_NOW);
		}
		break;
	case WEFT_FRAME_PART:
		part_input(c, v);
		break;
	case WEFT_FRAME_ALIVE:
		raw_alive_input(c);
		break;
	case WEFT_FRAME_BYE:
		raw_conn_bye_input(c, v);
		break;
	case WEFT_FRAME_CHALLENGE_ACK:
		raw_challenge_ack_input(c, v);
		break;
	default:
		raw_hs_input(c, v);
	}
}

static void conn_input(struct raw_conn *c, const struct weft_frame_view *v, struct rte_mbuf *desc)
{
	struct raw_iface *iface = c->iface;

	/* With CRC32C agreed, a frame without the flag has been damaged: the flag has flipped. */
	if (unlikely(c->csum == WEFT_FRAME_CSUM_CRC32C && !(v->flags & WEFT_FRAME_F_CRC32C))) {
		raw_count(iface, RAW_DROP_BAD_CSUM);
		return;
	}
	if (c->csum == WEFT_FRAME_CSUM_UDP && !(v->flags & WEFT_FRAME_F_CRC32C) &&
	    (v->udp_csum == 0 || (!iface->rx_l4_ok && !weft_frame_udp_csum_ok(v)))) {
		raw_count(iface, RAW_DROP_BAD_CSUM);
		return;
	}
	if (unlikely(v->type == WEFT_FRAME_ALIVE))
		raw_live_beat(&c->live, c->rx.seen, iface->live_clock);
	c->rx.seen = iface->live_clock;
	if (likely(c->state == RAW_UP)) {
		up_input(c, v, desc);
	} else if (c->state == RAW_TIME_WAIT) {
		time_wait_input(c, v);
	} else if (c->state == RAW_READY && v->type == WEFT_FRAME_DATA) {
		/* The answer to READY was lost or overtaken; data proves that the peer is up. */
		raw_conn_up(c, c->frame_size);
		if (c->state == RAW_UP)
			up_input(c, v, desc);
	} else if (c->state == RAW_QUIET) {
		raw_count(iface, RAW_DROP_STATE);
	} else if (c->state == RAW_DOWN && v->type != WEFT_FRAME_BYE) {
		/* A RESET ends the failed connection at the peer without a timeout. */
		raw_count(iface, RAW_DROP_STATE);
		raw_reset_send(iface, v, WEFT_RESET_UNKNOWN);
	} else {
		raw_hs_input(c, v);
	}
}

static __rte_noinline void sealed_event(struct raw_conn *c, enum raw_sealed_event event)
{
	if (event == RAW_SEALED_TICK)
		raw_probe_key(c);
	else if (event == RAW_SEALED_SPENT && c->state == RAW_UP)
		raw_conn_fail(c, -EBADMSG, "too many frames with wrong tags arrived");
}

static __rte_noinline void sealed_input(struct raw_conn *c, const struct weft_frame_view *v,
					struct rte_mbuf *desc)
{
	enum raw_sealed_event event = RAW_SEALED_NONE;
	struct weft_frame_view plain;
	struct rte_mbuf *m;

	if (!(v->flags & WEFT_FRAME_F_SEALED)) {
		/* A repeated HELLO_ACK is plain, and no attack. */
		if (v->type != WEFT_FRAME_HELLO_ACK)
			raw_count(c->iface, RAW_DROP_UNSEALED);
		return;
	}
	if (c->csum != RAW_CSUM_SEALED) {
		raw_count(c->iface, RAW_DROP_BAD_TYPE);
		return;
	}
	m = raw_sealed_open(c, v, desc, &plain, &event);
	if (unlikely(event != RAW_SEALED_NONE))
		sealed_event(c, event);
	if (m && plain.type == WEFT_FRAME_GONE)
		raw_conn_gone_input(c);
	else if (m)
		conn_input(c, &plain, m);
	if (m != desc)
		rte_pktmbuf_free(m);
}

static void lane_input(struct raw_iface *iface, const struct weft_frame_view *v,
		       struct rte_mbuf *desc)
{
	uint32_t id = weft_get32(v->hdr->dst_conn), index = id & 0xffff;
	const struct raw_ref *ref;

	if (likely(index < iface->refs_len)) {
		ref = &iface->refs[index];
		if (likely(ref->conn && ref->id == id && ref->token == weft_get32(v->hdr->token) &&
			   v->type != WEFT_FRAME_RESET && v->type != WEFT_FRAME_HELLO)) {
			if (unlikely(v->flags & WEFT_FRAME_F_SEALED ||
				     ref->conn->csum == RAW_CSUM_SEALED))
				sealed_input(ref->conn, v, desc);
			else
				conn_input(ref->conn, v, desc);
			return;
		}
	}
	raw_stray_input(iface, v);
}

/*
 * @return true: no checksum is left to the CPU. L4_CKSUM_NONE from virtio is accepted: that frame
 * has not left memory.
 */
static inline bool nic_has_checked(const struct raw_iface *iface, const struct raw_conn *c,
				   const struct rte_mbuf *m)
{
	const struct weft_rx_pattern *p = &iface->pattern;
	const struct rte_udp_hdr *udp;
	uint64_t l4;

	if (likely(!(iface->port->flags & WEFT_FRAME_PORT_RX_CSUM)))
		return c->csum == WEFT_FRAME_CSUM_NONE;
	l4 = m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
	udp = rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *,
				      p->ip + sizeof(struct rte_ipv4_hdr));
	if (l4 == RTE_MBUF_F_RX_L4_CKSUM_BAD ||
	    (m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_BAD)
		return false;
	if (c->csum == WEFT_FRAME_CSUM_NONE)
		return true;
	return c->csum == WEFT_FRAME_CSUM_UDP && p->ip && l4 != RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN &&
	       udp->dgram_cksum != 0;
}

/* @return the connection, which is up, of a frame with checked headers; NULL: there is none */
static __rte_always_inline struct raw_conn *up_conn(const struct raw_iface *iface,
						    const struct weft_frame_hdr *hdr)
{
	uint32_t id = weft_get32(hdr->dst_conn);
	const struct raw_ref *ref = &iface->refs[id & 0xffff];

	if ((id & 0xffff) >= iface->refs_len || !ref->conn || ref->id != id ||
	    ref->token != weft_get32(hdr->token) || ref->conn->state != RAW_UP)
		return NULL;
	return ref->conn;
}

/*
 * DATA with checked headers, whose checksum needs no check by the CPU. gcc does not inline this
 * function by itself, which costs 15 instructions a message.
 * @param opened  constant: the frame was sealed, and its tag has been verified
 * @return false: nothing has been done; no such connection is up, or the CPU has to check the frame
 */
static __rte_always_inline bool known_input(struct raw_iface *iface,
					    const struct weft_frame_view *v, struct rte_mbuf *m,
					    const bool opened)
{
	struct raw_conn *c = up_conn(iface, v->hdr);

	if (!c || (!opened && !nic_has_checked(iface, c, m)))
		return false;
	c->rx.seen = iface->live_clock;
	c->live.pings = 0;
	raw_ack_input(c, v->hdr, NULL);
	if (likely(c->state == RAW_UP))
		data_input(c, v, m);
	return true;
}

/* The batch callback has left the message of alone_input(): delivers it by iface->recv(). */
static __rte_noinline void left_alone(struct raw_iface *iface, struct raw_conn *c,
				      const struct weft_frame_hdr *hdr, uint32_t body_len,
				      struct rte_mbuf *m)
{
	struct weft_frame_view v;

	weft_frame_head_view(&v, hdr, body_len);
	iface->in_hand = m;
	deliver_each(c, &v, 0, m);
}

/*
 * As known_input(), for a frame with the next sequence, without holes, and with one message of the
 * batch's kind: one comparison validates the message's header, and no view is needed.
 */
static __rte_always_inline bool alone_input(struct raw_iface *iface,
					    const struct weft_frame_hdr *hdr, uint32_t body_len,
					    struct rte_mbuf *m, const bool opened)
{
	const struct weft_frame_msg *msg = (const struct weft_frame_msg *)(hdr + 1);
	const struct weft_lane_msg alone = {msg + 1, body_len - (uint32_t)sizeof(*msg)};
	uint32_t seq = weft_get32(hdr->seq);
	struct raw_conn *c;
	weft_le32 word;

	memcpy(&word, msg, sizeof(word));
	/* In 64 bits: if the body is shorter than a header, the difference is no 32-bit word. */
	if (weft_get32(word) != (iface->alone | ((uint64_t)body_len - sizeof(*msg))))
		return false;
	c = up_conn(iface, hdr);
	if (!c || c->rx.win.next != seq || c->rx.win.high != seq ||
	    (!opened && !nic_has_checked(iface, c, m)))
		return false;
	c->rx.seen = iface->live_clock;
	c->live.pings = 0;
	raw_ack_input(c, hdr, NULL);
	if (unlikely(c->state != RAW_UP))
		return true;
	take_echo(iface, &c->rx, c->base.rtt_ns, hdr);
	if (likely(iface->recv_batch(&c->base, &alone, 1) == 1))
		raw_count(iface, RAW_RX_MESSAGES);
	else
		left_alone(iface, c, hdr, body_len, m);
	if (likely(c->state == RAW_UP))
		raw_rx_delivered(iface, &c->rx, seq, body_len,
				 weft_get16(hdr->flags) & WEFT_FRAME_F_ACK_REQ);
	return true;
}

/* The most frequent frame: one for alone_input() or known_input(), in a single buffer. */
static inline bool plain_input(struct raw_iface *iface, struct rte_mbuf *m)
{
	struct weft_frame_view v;
	const struct weft_frame_hdr *hdr;
	uint32_t body_len;

	if (m->nb_segs != 1)
		return false;
	hdr = weft_frame_head(&iface->pattern, rte_pktmbuf_mtod(m, const uint8_t *), m->pkt_len, 0,
			      &body_len);
	if (!hdr)
		return false;
	if (likely(alone_input(iface, hdr, body_len, m, false)))
		return true;
	weft_frame_head_view(&v, hdr, body_len);
	return weft_frame_messages_ok(&v) && known_input(iface, &v, m, false);
}

/* As plain_input(), for sealed frames that can be opened in place. Invalid ones are dropped. */
static bool sealed_data_input(struct raw_iface *iface, struct rte_mbuf *m)
{
	enum raw_sealed_event event = RAW_SEALED_NONE;
	const struct weft_frame_hdr *hdr;
	struct weft_frame_view v;
	struct raw_conn *c;
	uint32_t body_len;

	if (m->nb_segs != 1 || !(iface->port->flags & WEFT_FRAME_PORT_RX_OWN))
		return false;
	hdr = weft_frame_head(&iface->sealed_pattern, rte_pktmbuf_mtod(m, const uint8_t *),
			      m->pkt_len, WEFT_FRAME_TAG_LEN, &body_len);
	if (!hdr || body_len <= WEFT_FRAME_NUMBER_LEN)
		return false;
	c = up_conn(iface, hdr);
	if (!c || c->csum != RAW_CSUM_SEALED)
		return false;
	hdr = raw_sealed_open_data(c, hdr, &body_len, &event);
	if (unlikely(event != RAW_SEALED_NONE))
		sealed_event(c, event);
	if (unlikely(!hdr) || likely(alone_input(iface, hdr, body_len, m, true)))
		return true;
	weft_frame_head_view(&v, hdr, body_len);
	if (!weft_frame_messages_ok(&v))
		raw_count(iface, RAW_DROP_BAD_MESSAGE);
	else
		known_input(iface, &v, m, true);
	return true;
}

static bool has_one_message(const struct weft_frame_view *v)
{
	const struct weft_frame_msg *msg = (const struct weft_frame_msg *)v->body;

	return v->body_len >= sizeof(*msg) && msg->flags == 0 && msg->am_id < WEFT_LANE_AM_MAX &&
	       weft_get16(msg->length) == v->body_len - sizeof(*msg);
}

/* @return true: one message in several buffers, all but the first with room for a header */
static bool can_be_split(const struct raw_iface *iface, const struct weft_frame_view *v,
			 const struct rte_mbuf *m)
{
	const struct weft_frame_msg *msg = (const struct weft_frame_msg *)v->body;
	uint32_t len = m->data_len, pkt_len = m->pkt_len;

	if (!iface->split || !has_one_message(v) || iface->split(msg->am_id, msg + 1, 0, NULL) == 0)
		return false;
	for (m = m->next; m; m = m->next) {
		if (rte_pktmbuf_headroom(m) < WEFT_LANE_PIECE_ROOM || !RTE_MBUF_DIRECT(m) ||
		    m->data_len == 0)
			return false;
		len += m->data_len;
	}
	return len == pkt_len;
}

/* The most frequent chained frame: one for known_input() with one message that can be split. */
static bool chain_input(struct raw_iface *iface, struct rte_mbuf *m)
{
	struct weft_frame_view v;

	return m->data_len >= CHAIN_HEAD && iface->pattern.least <= CHAIN_HEAD &&
	       weft_frame_parse_head(&iface->pattern, rte_pktmbuf_mtod(m, const uint8_t *),
				     m->pkt_len, &v) &&
	       can_be_split(iface, &v, m) && known_input(iface, &v, m, false);
}

/*
 * A frame in place with one message is delivered from the peer's memory; any other is copied first.
 * @return false: the frame was copied, and plain_input() did not take it
 */
static bool in_place_input(struct raw_iface *iface, struct rte_mbuf *m)
{
	struct weft_frame_view v;

	if (iface->pattern.least <= m->data_len &&
	    weft_frame_parse_head(&iface->pattern, rte_pktmbuf_mtod(m, const uint8_t *), m->pkt_len,
				  &v) &&
	    has_one_message(&v) && known_input(iface, &v, m, false)) {
		if (m->nb_segs > 1)
			weft_in_place_end(m);
		return true;
	}
	weft_in_place_copy(m);
	return plain_input(iface, m);
}

static inline void any_input(struct raw_iface *iface, struct rte_mbuf *m)
{
	const void *data = rte_pktmbuf_mtod(m, const void *);
	struct rte_mbuf *desc = m;
	struct weft_frame_view v;
	struct rte_arp_hdr arp;
	enum weft_rx_verdict g;
	uint64_t l4;

	if (m->nb_segs > 1 && iface->port->rx_in_place) {
		if (in_place_input(iface, m))
			return;
	} else if (unlikely(m->nb_segs > 1)) {
		raw_count(iface, RAW_RX_CHAINED);
		if (chain_input(iface, m))
			return;
		if (m->pkt_len > WEFT_FRAME_SIZE_MAX) {
			raw_count(iface, RAW_DROP_TOO_LONG);
			return;
		}
		raw_count(iface, RAW_RX_CHAINED_COPIED);
		data = rte_pktmbuf_read(m, 0, m->pkt_len, iface->scratch);
		desc = NULL;
	}
	if (iface->port->flags & WEFT_FRAME_PORT_RX_CSUM) {
		l4 = m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
		if (unlikely(l4 == RTE_MBUF_F_RX_L4_CKSUM_BAD ||
			     (m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) ==
				     RTE_MBUF_F_RX_IP_CKSUM_BAD)) {
			raw_count(iface, RAW_DROP_BAD_CSUM);
			return;
		}
		/* UNKNOWN is no error: a NIC does not check every frame that it could check. */
		iface->rx_l4_ok = l4 != RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN;
	}
	g = weft_frame_parse(&iface->rx_filter, data, m->pkt_len, &v);
	if (iface->rx_filter.six && v.ip6)
		g = raw_ip6_input(iface, g, &v, &arp);
	if (likely(g == WEFT_VERDICT_OK))
		lane_input(iface, &v, desc);
	else
		raw_invalid_input(iface, g, &v, m);
}

static __rte_noinline void frame_input(struct raw_iface *iface, struct rte_mbuf *m)
{
	uint64_t damaged = iface->counter[RAW_DROP_BAD_CSUM];

	if (iface->seal && sealed_data_input(iface, m))
		return;
	any_input(iface, m);
	if (unlikely(iface->counter[RAW_DROP_BAD_CSUM] != damaged))
		weft_tap_damaged(iface->tap, m, iface->now);
}

static __rte_noinline unsigned int handed_input(struct raw_iface *iface, struct rte_ring *ring)
{
	struct rte_mbuf *m[RAW_BURST];
	unsigned int n = rte_ring_sc_dequeue_burst(ring, (void **)m, RAW_BURST, NULL);

	iface->counter[RAW_STEER_ELSEWHERE] += n;
	iface->rx_elsewhere = true;
	for (unsigned int i = 0; i < n; i++) {
		frame_input(iface, m[i]);
		rte_pktmbuf_free(m[i]);
	}
	iface->rx_elsewhere = false;
	return n;
}

/* Loads the body of the next frame, which is not in this core's cache, during work on this one. */
static inline void prefetch_body(const struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t len = RTE_MIN((uint32_t)m->data_len, PREFETCH_MAX);

	for (uint32_t off = RTE_CACHE_LINE_SIZE; off < len; off += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(p + off);
}

unsigned int raw_rx_poll(struct raw_iface *iface)
{
	struct weft_frame_port *port = iface->port;
	struct rte_mbuf *pkts[RAW_BURST];
	unsigned int n, i, more = 0;
	struct rte_ring *ring;

	iface->lcore = rte_lcore_id();
	if (port->steering.handed) {
		ring = port->steering.handed[port->steering.queue];
		if (unlikely(!rte_ring_empty(ring)))
			more = handed_input(iface, ring);
	}
	n = port->ops->rx_burst(port, pkts, RAW_BURST);
	if (n == 0)
		return more;
	for (i = 1; i < n && (i < 3 || iface->tap); i++)
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], void *));
	weft_tap_arrived(iface->tap, pkts, n, iface->now);
	iface->counter[RAW_RX_FRAMES] += n;
	for (i = 0; i < n; i++) {
		if (i + 3 < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + 3], void *));
		if (iface->rx_far && i + 1 < n)
			prefetch_body(pkts[i + 1]);
		iface->counter[RAW_RX_BYTES] += pkts[i]->pkt_len;
		if (!plain_input(iface, pkts[i]))
			frame_input(iface, pkts[i]);
		raw_mbuf_free(pkts[i], iface->lcore);
	}
	return n + more;
}
