/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_mbuf.h>

#include "base/bytes.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/mtu.h"
#include "engine/multipath.h"
#include "engine/outstanding.h"
#include "engine/reliability.h"
#include "engine/sealed_frame.h"
#include "engine/tx.h"
#include "engine/window.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "lane.h"

/* ---------------------------------------------------------------- open frames */

static inline uint8_t *put_msg_hdr(uint8_t *p, uint8_t am_id, size_t length)
{
	struct weft_frame_msg msg = {.length = weft_put16((uint16_t)length), .am_id = am_id};

	memcpy(p, &msg, sizeof(msg));
	return p + sizeof(msg);
}

static inline void append_message(struct raw_conn *c, uint8_t am_id, const void *hdr,
				  size_t hdr_len, const void *payload, size_t length)
{
	uint8_t *p = put_msg_hdr(c->open_pos, am_id, hdr_len + length);

	weft_copy(p, hdr, hdr_len);
	weft_copy(p + hdr_len, payload, length);
	c->open_pos = p + hdr_len + length;
	c->open_room -= (uint32_t)(sizeof(struct weft_frame_msg) + hdr_len + length);
}

/* @return 0: another frame may leave; -EAGAIN; or the error of a failed connection */
static inline int tx_ready(struct raw_conn *c)
{
	uint32_t outstanding = raw_tx_outstanding(&c->tx);
	struct raw_iface *iface = c->iface;

	if (unlikely(c->state != RAW_UP))
		return c->state == RAW_DOWN ? c->error : -EAGAIN;
	if (unlikely(c->tx.inflight >= c->tx.win_bytes || outstanding >= c->tx.win_frames) &&
	    (!c->tx.cc || outstanding >= c->tx.win_frames || !raw_window_paced(c))) {
		raw_count(iface, RAW_TX_WINDOW_FULL);
		c->path_busy = true;
		c->base.tx_room = false;
		raw_limit_begin(c);
		return -EAGAIN;
	}
	if (unlikely((outstanding > c->tx.slot_mask || raw_slots_none(&c->tx)) &&
		     !raw_slots_grow(&c->tx)))
		return -EAGAIN;
	if (unlikely(!raw_share_frame(iface, outstanding))) {
		raw_count(iface, RAW_TX_SHARE_FULL);
		return -EAGAIN;
	}
	if (unlikely(raw_txq_space(iface) < c->tx.txq_need)) {
		raw_txq_flush(iface);
		if (raw_txq_space(iface) < c->tx.txq_need)
			return -EAGAIN;
	}
	return 0;
}

/* @return a buffer with the connection's headers; NULL: there is none, which is counted */
static __rte_always_inline struct rte_mbuf *frame_alloc(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	struct rte_mbuf *m = rte_pktmbuf_alloc(iface->port->pool);

	if (unlikely(!m)) {
		raw_count(iface, RAW_TX_NO_BUFFER);
		iface->share.pressed = true;
		return NULL;
	}
	iface->share.tx_held++;
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), c->tmpl, RAW_TMPL);
	return m;
}

static inline int open_frame(struct raw_conn *c)
{
	struct rte_mbuf *m;
	int err = tx_ready(c);

	if (unlikely(err != 0))
		return err;
	m = frame_alloc(c);
	if (unlikely(!m))
		return -EAGAIN;
	c->tx.open = m;
	c->open_pos = rte_pktmbuf_mtod(m, uint8_t *) + c->encap.len + sizeof(struct weft_frame_hdr);
	c->open_room = c->tx.room;
	return 0;
}

static void unopen_frame(struct raw_conn *c)
{
	rte_pktmbuf_free(c->tx.open);
	c->iface->share.tx_held--;
	c->tx.open = NULL;
	c->open_room = 0;
}

/* The path carries no frame of this size now: sends parts. Without buffers the frame is lost. */
static void commit_parts(struct raw_conn *c, struct raw_slot *slot, uint8_t path, uint16_t flags)
{
	c->path[path].order--; /* the first part takes the frame's order */
	if (raw_parts_send(c, slot, c->tx.next - 1, path, flags) != 0)
		c->path[path].order++;
}

static __rte_noinline void commit_other(struct raw_conn *c, struct raw_slot *slot, uint8_t path,
					uint16_t flags)
{
	if (raw_parts_needed(c, slot))
		commit_parts(c, slot, path, flags);
	else
		raw_sealed_queue(c, slot->m, path);
}

/*
 * From here on the frame is retransmitted, until the peer acknowledges it.
 * @param alone  constant: leaves_alone() is true, so that there is less to check
 * @param sealed  with alone: the copy that leaves instead of @p m, with c->tmpl as headers; or NULL
 * @return true: the caller sends the frame or @p sealed; false: parts or a sealed copy are queued
 */
static __rte_always_inline bool commit_frame(struct raw_conn *c, struct rte_mbuf *m,
					     uint32_t lane_len, uint32_t payload, uint16_t flags,
					     const bool alone, struct rte_mbuf *sealed)
{
	struct raw_iface *iface = c->iface;
	struct weft_frame_hdr *hdr = raw_hdr(c, sealed ? sealed : m);
	struct raw_slot *slot = raw_slot(&c->tx, c->tx.next);
	uint8_t path = c->next_path;
	struct raw_path *p = &c->path[path];

	flags |= raw_window_sent(c, path, lane_len);
	if (!alone && c->csum == WEFT_FRAME_CSUM_CRC32C)
		flags |= WEFT_FRAME_F_CRC32C;
	hdr->flags = weft_put16(flags);
	hdr->seq = weft_put32(c->tx.next);
	raw_stamp(iface, &c->rx, hdr, p, path);
	if (sealed)
		raw_finish_plain(c, sealed, hdr, lane_len + WEFT_FRAME_NUMBER_LEN,
				 WEFT_FRAME_TAG_LEN, p);
	else if (alone)
		raw_finish_plain(c, m, hdr, lane_len, 0, p);
	else
		raw_finish(c, m, lane_len, p);

	*slot = (struct raw_slot){
		.m = m,
		.sent = iface->tx_clock,
		.order = p->order++,
		.payload = payload,
		.bytes = (uint16_t)lane_len,
		.path = path,
		.tries = 1,
	};
	if (!alone && unlikely(c->path_watch & RAW_WATCH_MANY))
		raw_multi_sent(c, path, lane_len);
	c->tx.next++;
	c->tx.inflight += lane_len;
	c->base.queued += payload;
	if (alone || c->tx.timer == 0) {
		c->tx.round_at = iface->live_clock;
		c->tx.round_end = c->tx.next;
		raw_timer_arm(c);
	}
	raw_rx_carried(iface, &c->rx);
	iface->sent = true;
	if (!iface->in_progress)
		iface->sent_outside = true;
	raw_count(iface, RAW_TX_DATA);
	if (!alone && unlikely(m->pkt_len > c->tx.direct)) {
		commit_other(c, slot, path, flags);
		return false;
	}
	if (sealed) /* a retransmission of m does not write the sequence */
		raw_hdr(c, m)->seq = hdr->seq;
	else if (alone)
		rte_mbuf_refcnt_set(m, 2);
	else
		raw_ref_chain(m);
	return true;
}

/* Before the call iface->txq must have c->tx.txq_need free places. */
static inline void close_frame(struct raw_conn *c, uint16_t flags)
{
	struct rte_mbuf *m = c->tx.open;
	uint32_t lane_len, payload;

	lane_len = (uint32_t)(c->open_pos - (rte_pktmbuf_mtod(m, uint8_t *) + c->encap.len));
	payload = lane_len - (uint32_t)sizeof(struct weft_frame_hdr);
	m->data_len =
		(uint16_t)(c->encap.len + lane_len + (c->csum == WEFT_FRAME_CSUM_CRC32C ? 4 : 0));
	m->pkt_len = m->data_len;
	c->tx.open = NULL;
	c->open_room = 0;
	if (commit_frame(c, m, lane_len, payload, flags, false, NULL))
		raw_txq_push(c->iface, m);
}

/* @return false: the queue has no room, and the frame stays open */
bool raw_frame_close(struct raw_conn *c, uint16_t flags)
{
	if (unlikely(raw_txq_space(c->iface) < c->tx.txq_need)) {
		raw_txq_flush(c->iface);
		if (raw_txq_space(c->iface) < c->tx.txq_need)
			return false;
	}
	close_frame(c, flags);
	return true;
}

/* Sends the only frame of the queue by a fast path. With several, flushes the whole queue. */
static inline void send_now(struct raw_iface *iface)
{
	if (likely(iface->txq.count == 1 && raw_port_tx(iface, 1) == 1)) {
		iface->txq.count = 0;
		iface->txq.head = 0;
		iface->tx_used = true;
		iface->idle_polls = 0;
		iface->base.tx_open = !TAILQ_EMPTY(&iface->tx_list);
		return;
	}
	raw_txq_flush(iface);
}

/*
 * The frame leaves at once if no frame of the connection is unacknowledged, since the peer may wait
 * for just this message. A frame with less than half of its room left goes to the queue. Any other
 * stays open for further messages (iface->wait).
 */
static inline void frame_opened(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (c->tx.una == c->tx.next) {
		close_frame(c, 0); /* open_frame() has checked that there is room */
		send_now(iface);
		return;
	}
	if (c->open_room < c->tx.room / 2) {
		raw_frame_close(c, 0);
		if (iface->txq.count >= iface->tx_batch)
			raw_txq_flush(iface);
		return;
	}
	iface->wait.opened = true;
	if (raw_tx_outstanding(&c->tx) < RAW_WAIT_FRAMES)
		iface->wait.leave = true;
	if (!c->tx.on_list) {
		c->tx.on_list = true;
		TAILQ_INSERT_TAIL(&iface->tx_list, &c->tx, link);
		iface->base.tx_open = true;
	}
}

/* ---------------------------------------------------------------- a frame alone under way */

/*
 * @return true: a message of @p n bytes may leave at once in a frame of its own. commit_frame()
 * skips steps that such a frame does not need: a checksum, counts for several paths.
 * @param csum  constant: weft_frame_csum that the connection has to have
 */
static inline bool leaves_alone(const struct raw_conn *c, size_t n, const uint8_t csum)
{
	const struct raw_iface *iface = c->iface;

	return c->state == RAW_UP && c->tx.una == c->tx.next && !c->tx.open && c->csum == csum &&
	       !raw_slots_none(&c->tx) && c->path_watch == 0 && c->tx.timer == 0 &&
	       c->tx.inflight < c->tx.win_bytes &&
	       n + sizeof(struct weft_frame_msg) <= c->tx.room && iface->txq.count == 0 &&
	       iface->share.tx_held < iface->share.tx_held_max;
}

static inline void send_alone(struct raw_iface *iface, struct rte_mbuf *m)
{
	unsigned int sent;

	weft_tap_offer(iface->tap, &m, 1, WEFT_PCAPNG_OUT, iface->now);
	sent = iface->port->ops->tx_burst(iface->port, &m, 1);
	weft_tap_taken(iface->tap, sent);
	if (likely(sent == 1)) {
		iface->tx_used = true;
		iface->idle_polls = 0;
		return;
	}
	raw_txq_push(iface, m);
	raw_txq_flush(iface);
}

/* @return a frame with one message; NULL: there is no buffer, which is counted */
static __rte_always_inline struct rte_mbuf *frame_of(struct raw_conn *c, uint8_t am_id,
						     const void *hdr, size_t hdr_len,
						     const void *payload, size_t length)
{
	struct rte_mbuf *m = frame_alloc(c);
	uint8_t *p;

	if (unlikely(!m))
		return NULL;
	p = rte_pktmbuf_mtod(m, uint8_t *) + c->encap.len + sizeof(struct weft_frame_hdr);
	p = put_msg_hdr(p, am_id, hdr_len + length);
	weft_copy(p, hdr, hdr_len);
	weft_copy(p + hdr_len, payload, length);
	m->data_len = (uint16_t)(c->encap.len + sizeof(struct weft_frame_hdr) +
				 sizeof(struct weft_frame_msg) + hdr_len + length);
	m->pkt_len = m->data_len;
	return m;
}

/* leaves_alone() on a sealed connection: the plain frame is kept, and its sealed copy leaves. */
static __rte_noinline int short_sealed(struct raw_conn *c, uint8_t am_id, const void *hdr,
				       size_t hdr_len, const void *payload, size_t length)
{
	uint32_t bytes = (uint32_t)(sizeof(struct weft_frame_msg) + hdr_len + length);
	uint32_t lane_len = (uint32_t)sizeof(struct weft_frame_hdr) + bytes;
	struct rte_mbuf *out =
		raw_sealed_spare(c->iface, c->encap.len + lane_len + WEFT_FRAME_SEAL_LEN);
	uint8_t path = c->next_path;
	struct rte_mbuf *m;

	if (unlikely(!out))
		return -EAGAIN;
	m = frame_of(c, am_id, hdr, hdr_len, payload, length);
	if (unlikely(!m)) {
		rte_pktmbuf_free(out);
		return -EAGAIN;
	}
	memcpy(rte_pktmbuf_mtod(out, uint8_t *), c->tmpl, RAW_TMPL);
	commit_frame(c, m, lane_len, bytes, 0, true, out);
	if (likely(raw_sealed_fill(c, out, (const uint8_t *)(raw_hdr(c, m) + 1), bytes, path)))
		send_alone(c->iface, out);
	return 0;
}

static __rte_always_inline int short_alone(struct raw_conn *c, uint8_t am_id, const void *hdr,
					   size_t hdr_len, const void *payload, size_t length)
{
	struct rte_mbuf *m = frame_of(c, am_id, hdr, hdr_len, payload, length);
	uint32_t bytes = (uint32_t)(sizeof(struct weft_frame_msg) + hdr_len + length);
	uint32_t lane_len = (uint32_t)sizeof(struct weft_frame_hdr) + bytes;

	if (unlikely(!m))
		return -EAGAIN;
	commit_frame(c, m, lane_len, bytes, 0, true, NULL);
	send_alone(c->iface, m);
	return 0;
}

/* Sends a message for which leaves_alone() is false with WEFT_FRAME_CSUM_NONE. */
static __rte_noinline int short_slow(struct raw_conn *c, uint8_t am_id, const void *hdr,
				     size_t hdr_len, const void *payload, size_t length)
{
	int err;

	if (c->csum == RAW_CSUM_SEALED && leaves_alone(c, hdr_len + length, RAW_CSUM_SEALED) &&
	    !c->iface->rx_filter.six)
		return short_sealed(c, am_id, hdr, hdr_len, payload, length);
	if (unlikely(hdr_len + length > c->base.max_msg && c->state == RAW_UP))
		return -EMSGSIZE;
	if (c->tx.open && !raw_frame_close(c, 0))
		return -EAGAIN;
	err = open_frame(c);
	if (err != 0)
		return err;
	/* A message that is longer than the path carries now (engine/mtu.h) fills its frame. */
	c->open_room =
		RTE_MAX(c->open_room, (uint32_t)(sizeof(struct weft_frame_msg) + hdr_len + length));
	append_message(c, am_id, hdr, hdr_len, payload, length);
	frame_opened(c);
	return 0;
}

static __rte_noinline int short_new_frame(struct raw_conn *c, uint8_t am_id, const void *hdr,
					  size_t hdr_len, const void *payload, size_t length)
{
	if (likely(leaves_alone(c, hdr_len + length, WEFT_FRAME_CSUM_NONE)))
		return short_alone(c, am_id, hdr, hdr_len, payload, length);
	return short_slow(c, am_id, hdr, hdr_len, payload, length);
}

int raw_am_short(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const void *payload, size_t length)
{
	struct raw_conn *c = raw_conn_of(lane_ep);

	if (likely(hdr_len + length + sizeof(struct weft_frame_msg) <= c->open_room)) {
		append_message(c, am_id, hdr, hdr_len, payload, length);
		return 0;
	}
	return short_new_frame(c, am_id, hdr, hdr_len, payload, length);
}

/* The length is known only after packing, so the message begins a frame. */
ssize_t raw_am_bcopy(struct weft_lane_ep *lane_ep, uint8_t am_id, weft_lane_pack_cb pack, void *arg)
{
	struct raw_conn *c = raw_conn_of(lane_ep);
	ssize_t n;
	int err;

	if (c->tx.open && !raw_frame_close(c, 0))
		return -EAGAIN;
	err = open_frame(c);
	if (unlikely(err != 0))
		return err;
	n = pack(c->open_pos + sizeof(struct weft_frame_msg), c->base.max_msg, arg);
	if (unlikely(n < 0 || (size_t)n > c->base.max_msg)) {
		unopen_frame(c);
		return n < 0 ? n : -EMSGSIZE;
	}
	put_msg_hdr(c->open_pos, am_id, (size_t)n);
	c->open_pos += sizeof(struct weft_frame_msg) + (size_t)n;
	c->open_room -=
		RTE_MIN(c->open_room, (uint32_t)sizeof(struct weft_frame_msg) + (uint32_t)n);
	frame_opened(c);
	return n;
}

void raw_frames_close(struct raw_iface *iface)
{
	struct raw_conn *c;
	struct raw_tx *tx;

	while ((tx = TAILQ_FIRST(&iface->tx_list))) {
		c = container_of(tx, struct raw_conn, tx);
		if (tx->open && c->open_pos && !raw_frame_close(c, 0))
			return;
		TAILQ_REMOVE(&iface->tx_list, tx, link);
		tx->on_list = false;
	}
}

int raw_ep_flush(struct weft_lane_ep *lane_ep, struct weft_lane_comp *comp)
{
	struct raw_conn *c = raw_conn_of(lane_ep);
	struct raw_flush *f;

	if (c->state == RAW_DOWN)
		return c->error;
	if (c->state == RAW_QUIET)
		return -ENOTCONN;
	if (c->tx.open)
		raw_frame_close(c, WEFT_FRAME_F_ACK_REQ);
	if (!c->tx.open && c->tx.una == c->tx.next)
		return WEFT_LANE_IDLE;
	f = malloc(sizeof(*f));
	if (!f)
		return -ENOMEM;
	raw_flush_queue(&c->tx, f, comp);
	return 0;
}

/* ---------------------------------------------------------------- zero-copy sends */

/* Mbufs with pieces of user memory, as external buffers, follow the mbuf with the headers. */

/* want_ack(): one of N sends requests no ACK, as a test whether the peer's data carries it */
#define ALONE_SENDS 64u

struct chain {
	struct raw_iface *iface;
	struct raw_zc *zc;
	struct rte_mbuf *head, **tail;
};

static int link_segment(struct chain *ch, struct rte_mbuf *m)
{
	if (!m)
		return -EAGAIN;
	*ch->tail = m;
	ch->tail = &m->next;
	ch->head->nb_segs++;
	ch->head->pkt_len += m->data_len;
	return 0;
}

static int attach_memory(struct chain *ch, void *at, rte_iova_t iova, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(ch->iface->port->hdr_pool);

	if (!m)
		return -EAGAIN;
	rte_pktmbuf_attach_extbuf(m, at, iova, (uint16_t)len, &ch->zc->shinfo);
	rte_mbuf_ext_refcnt_update(&ch->zc->shinfo, 1);
	m->data_off = 0;
	m->data_len = (uint16_t)len;
	m->pkt_len = m->data_len;
	return link_segment(ch, m);
}

/* @return the number of bytes from @p at on, up to @p len, that may be one segment for the NIC */
static uint32_t segment_len(const struct weft_frame_port *port, const struct weft_mem_lane *mem,
			    const uint8_t *at, uint32_t len, rte_iova_t *iova)
{
	uintptr_t page = (uintptr_t)1 << port->tx_page_bits;

	*iova = (rte_iova_t)(uintptr_t)at;
	if (!mem)
		return len;
	if (page > 1)
		len = (uint32_t)RTE_MIN((uintptr_t)len, page - ((uintptr_t)at & (page - 1)));
	return weft_mem_lane_iova(mem, at, len, iova);
}

/* Links a piece of user memory: several segments if its pages are not contiguous for the NIC. */
static int attach_piece(struct chain *ch, const struct iovec *iov)
{
	uint32_t len = (uint32_t)iov->iov_len, n;
	uint8_t *at = iov->iov_base;
	rte_iova_t iova;
	int err = 0;

	for (; len > 0 && err == 0; at += n, len -= n) {
		n = segment_len(ch->iface->port, ch->zc->mem, at, len, &iova);
		err = attach_memory(ch, at, iova, n);
	}
	return err;
}

/* After an error only the chain refers to user memory: the caller frees the chain. */
static int attach_all(struct raw_conn *c, struct rte_mbuf *head, const struct iovec *iov,
		      unsigned int iovcnt, struct raw_zc *zc)
{
	struct chain ch = {.iface = c->iface, .zc = zc, .head = head, .tail = &head->next};
	struct rte_mbuf *m;
	int err = 0;

	rte_mbuf_ext_refcnt_set(&zc->shinfo, 0);
	for (unsigned int i = 0; i < iovcnt && err == 0; i++)
		err = attach_piece(&ch, &iov[i]);
	if (err == 0 && c->csum == WEFT_FRAME_CSUM_CRC32C) {
		m = rte_pktmbuf_alloc(c->iface->port->hdr_pool);
		if (m)
			m->data_len = 4;
		err = link_segment(&ch, m);
	}
	return err;
}

/* A send without user memory is a short message. It completes when it is acknowledged. */
static int header_only(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		       struct weft_lane_comp *comp)
{
	/* First all steps that can fail: a message that was sent cannot be refused afterwards. */
	struct raw_flush *f = malloc(sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	err = raw_am_short(lane_ep, am_id, hdr, hdr_len, NULL, 0);
	if (err != 0) {
		free(f);
		return err;
	}
	raw_flush_queue(&raw_conn_of(lane_ep)->tx, f, comp);
	return 0;
}

struct pack_pieces {
	const void *hdr;
	size_t hdr_len;
	const struct iovec *iov;
	unsigned int iovcnt;
};

static ssize_t pack_pieces(void *dst, size_t max, void *arg)
{
	const struct pack_pieces *p = arg;
	size_t n = p->hdr_len;

	memcpy(dst, p->hdr, p->hdr_len);
	for (unsigned int i = 0; i < p->iovcnt; i++) {
		if (p->iov[i].iov_len > max - n)
			return -EMSGSIZE;
		memcpy((uint8_t *)dst + n, p->iov[i].iov_base, p->iov[i].iov_len);
		n += p->iov[i].iov_len;
	}
	return (ssize_t)n;
}

/* The NIC cannot read the memory, or not in that number of pieces: the data is copied. */
static int send_copied(struct weft_lane_ep *lane_ep, uint8_t am_id, struct pack_pieces *p,
		       struct weft_lane_comp *comp)
{
	struct raw_flush *f = malloc(sizeof(*f));
	ssize_t n;

	if (!f)
		return -ENOMEM;
	n = raw_am_bcopy(lane_ep, am_id, pack_pieces, p);
	if (n < 0) {
		free(f);
		return (int)n;
	}
	raw_flush_queue(&raw_conn_of(lane_ep)->tx, f, comp);
	raw_count(raw_iface_of(lane_ep->iface), RAW_TX_ZCOPY_COPIED);
	return 0;
}

static bool mem_covers(const struct weft_mem_lane *mem, const struct iovec *iov)
{
	uintptr_t at = (uintptr_t)iov->iov_base;

	return at >= mem->start && at <= mem->end && iov->iov_len <= mem->end - at;
}

/* @return the number of mbufs of the frame; 0: the port cannot send it without a copy */
static unsigned int count_segments(const struct raw_conn *c, const struct iovec *iov,
				   unsigned int iovcnt, const struct weft_mem_lane *mem)
{
	const struct weft_frame_port *port = c->iface->port;
	/* A last mbuf has the CRC, or the tag. */
	bool last = c->csum == WEFT_FRAME_CSUM_CRC32C || c->csum == RAW_CSUM_SEALED;
	unsigned int n = 1 + last, pages;
	rte_iova_t iova;

	if (!mem)
		return port->flags & WEFT_FRAME_PORT_REG ? 0 : n + iovcnt;
	for (unsigned int i = 0; i < iovcnt; i++) {
		if (iov[i].iov_len == 0)
			continue;
		if (!mem_covers(mem, &iov[i]))
			return 0;
		for (size_t off = 0; off < iov[i].iov_len; n++)
			off += segment_len(port, mem, (const uint8_t *)iov[i].iov_base + off,
					   (uint32_t)(iov[i].iov_len - off), &iova);
	}
	pages = port->tx_segs;
	return pages != 0 && n > pages ? 0 : n;
}

/*
 * The user waits for this memory, and a delayed acknowledgement would add its whole delay. So an
 * acknowledgement is requested on a frame that is not full: it seems to be the last one of a
 * message. None is requested if an earlier request is outstanding, or if the peer's data carries
 * the acknowledgement at no cost.
 *
 * Received data does not prove that more will follow: two ends that send to each other at once, and
 * wait for both messages, send nothing before an acknowledgement. Then the acknowledgement arrives
 * in a frame of its own. Of the next ALONE_SENDS sends, one requests none, as a test.
 */
static uint16_t want_ack(struct raw_conn *c, uint32_t payload)
{
	bool data_received = c->rx.data_received;

	c->rx.data_received = false;
	if (c->tx.zc_ack == RAW_ZC_ACK_REQUESTED || payload >= c->tx.room)
		return 0;
	if (data_received && (c->tx.acked_alone == 0 || c->tx.acked_alone++ == ALONE_SENDS)) {
		c->tx.zc_ack = RAW_ZC_ACK_NO_REQUEST;
		return 0;
	}
	c->tx.zc_ack = RAW_ZC_ACK_REQUESTED;
	return WEFT_FRAME_F_ACK_REQ;
}

static inline void put_headers(const struct raw_conn *c, struct rte_mbuf *head, uint8_t am_id,
			       const void *hdr, size_t hdr_len, uint32_t payload)
{
	struct weft_frame_msg msg = {.am_id = am_id};
	size_t front = c->encap.len + sizeof(struct weft_frame_hdr);
	uint8_t *p = rte_pktmbuf_mtod(head, uint8_t *);

	memcpy(p, c->tmpl, RAW_TMPL);
	p += front;
	msg.length = weft_put16((uint16_t)(payload - sizeof(msg)));
	memcpy(p, &msg, sizeof(msg));
	memcpy(p + sizeof(msg), hdr, hdr_len);
	head->data_len = (uint16_t)(front + sizeof(msg) + hdr_len);
	head->pkt_len = head->data_len;
}

static inline void commit_zcopy(struct raw_conn *c, struct rte_mbuf *head, struct raw_zc *zc,
				uint32_t payload)
{
	struct raw_iface *iface = c->iface;

	/* Relaxed: the registration has the caller's reference until raw_am_zcopy() returns. */
	if (zc->mem)
		atomic_fetch_add_explicit(&zc->mem->refs, 1, memory_order_relaxed);
	LIST_INSERT_HEAD(&c->tx.zc, zc, conn_link);
	raw_count(iface, RAW_TX_ZCOPY);
	iface->share.tx_held++;
	iface->share.hdr_held += head->nb_segs;
	c->tx.hdr_held += head->nb_segs;
	if (commit_frame(c, head, (uint32_t)sizeof(struct weft_frame_hdr) + payload, payload,
			 want_ack(c, payload), false, NULL))
		raw_txq_push(c->iface, head);
	if (c->tx.next - c->tx.una == 1 || iface->txq.count >= iface->tx_batch)
		raw_txq_flush(iface);
}

int raw_am_zcopy(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		 struct weft_lane_comp *comp)
{
	struct raw_conn *c = raw_conn_of(lane_ep);
	struct raw_iface *iface = c->iface;
	uint32_t payload = (uint32_t)(sizeof(struct weft_frame_msg) + hdr_len);
	size_t data = 0;
	struct rte_mbuf *head;
	unsigned int segs;
	struct raw_zc *zc;
	int err;

	for (unsigned int i = 0; i < iovcnt; i++)
		data += iov[i].iov_len;
	if (unlikely(data == 0))
		return header_only(lane_ep, am_id, hdr, hdr_len, comp);
	if (c->tx.open && !raw_frame_close(c, 0))
		return -EAGAIN;
	err = tx_ready(c);
	if (unlikely(err != 0))
		return err;
	if (unlikely(data > c->base.max_msg ||
		     payload - sizeof(struct weft_frame_msg) + data > c->base.max_msg ||
		     hdr_len > iface->base.attr.max_zcopy_hdr || iovcnt > iface->base.attr.max_iov))
		return -EMSGSIZE;
	segs = count_segments(c, iov, iovcnt, mem);
	if (unlikely(segs == 0))
		return send_copied(lane_ep, am_id, &(struct pack_pieces){hdr, hdr_len, iov, iovcnt},
				   comp);
	if (unlikely(!raw_share_hdrs(iface, &c->tx, segs))) {
		raw_count(iface, RAW_TX_SHARE_FULL);
		return -EAGAIN;
	}
	payload += (uint32_t)data;
	zc = raw_zc_get(iface);
	head = rte_pktmbuf_alloc(iface->port->hdr_pool);
	if (unlikely(!zc || !head))
		goto no_buffer;
	*zc = (struct raw_zc){
		.shinfo = {.free_cb = raw_zc_released, .fcb_opaque = zc},
		.iface = iface,
		.comp = comp,
		.mem = mem,
	};
	put_headers(c, head, am_id, hdr, hdr_len, payload);
	if (unlikely(attach_all(c, head, iov, iovcnt, zc) != 0)) {
		/* Freeing the last reference would queue zc as released: hold one. */
		rte_mbuf_ext_refcnt_update(&zc->shinfo, 1);
		goto no_buffer;
	}
	commit_zcopy(c, head, zc, payload);
	return 0;

no_buffer:
	raw_count(iface, RAW_TX_NO_BUFFER);
	iface->share.pressed = true;
	rte_pktmbuf_free(head);
	if (zc)
		raw_zc_put(iface, zc);
	return -EAGAIN;
}
