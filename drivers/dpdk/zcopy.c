/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Zero-copy sends: an mbuf with the headers, and behind it one per piece of user memory, attached
 * as an external buffer.
 *
 * The pieces share one counter (shinfo). It reaches zero when the slot has let go (the peer
 * acknowledged, or the lane failed) and the NIC has let go; only then the memory is the user's
 * again. That moment may lie inside a tx_burst() of somebody else, so the callback only queues, and
 * completions run in progress().
 */

#include <stdlib.h>
#include <string.h>

#include "raw.h"

#define ZC_CHUNK 64u

struct zc_chunk {
	struct zc_chunk *next;
	struct raw_zc zc[ZC_CHUNK];
};

static void zc_released(void *addr, void *opaque)
{
	struct raw_zc *zc = opaque;

	(void)addr;
	STAILQ_INSERT_TAIL(&zc->iface->zc_released, zc, link);
}

static struct raw_zc *zc_get(struct raw_iface *iface)
{
	struct zc_chunk *chunk;
	struct raw_zc *zc;

	if (unlikely(STAILQ_EMPTY(&iface->zc_free))) {
		/* Once per 64 ever outstanding at a time. */
		chunk = calloc(1, sizeof(*chunk));
		if (chunk == NULL)
			return NULL;
		chunk->next = iface->zc_chunks;
		iface->zc_chunks = chunk;
		for (unsigned int i = 0; i < ZC_CHUNK; i++)
			STAILQ_INSERT_TAIL(&iface->zc_free, &chunk->zc[i], link);
	}
	zc = STAILQ_FIRST(&iface->zc_free);
	STAILQ_REMOVE_HEAD(&iface->zc_free, link);
	return zc;
}

static struct rte_mbuf *attach(struct raw_iface *iface, const struct iovec *iov, struct raw_zc *zc)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(iface->port->hdr_pool);

	if (m == NULL)
		return NULL;
	rte_pktmbuf_attach_extbuf(m, iov->iov_base, (rte_iova_t)(uintptr_t)iov->iov_base,
				  (uint16_t)iov->iov_len, &zc->shinfo);
	m->data_off = 0;
	m->data_len = (uint16_t)iov->iov_len;
	m->pkt_len = m->data_len;
	return m;
}

/* Link the segments behind the head. On error the head alone is left, and nothing refers to user
 * memory. */
static int attach_all(struct raw_conn *c, struct rte_mbuf *head, const struct iovec *iov,
		      unsigned int iovcnt, struct raw_zc *zc)
{
	struct rte_mbuf **tail = &head->next, *m;
	unsigned int i;

	rte_mbuf_ext_refcnt_set(&zc->shinfo, 0);
	for (i = 0; i <= iovcnt; i++) {
		if (i < iovcnt) {
			if (iov[i].iov_len == 0)
				continue;
			m = attach(c->iface, &iov[i], zc);
			if (m != NULL)
				rte_mbuf_ext_refcnt_update(&zc->shinfo, 1);
		} else {
			if (c->csum != WEFT_FRAME_CSUM_CRC32C)
				break;
			m = rte_pktmbuf_alloc(c->iface->port->hdr_pool);
			if (m != NULL)
				m->data_len = 4;
		}
		if (m == NULL)
			return -EAGAIN;
		*tail = m;
		tail = &m->next;
		head->nb_segs++;
		head->pkt_len += m->data_len;
	}
	return 0;
}

/* No user memory at all: a copy, and done when it is acknowledged. */
static int header_only(struct weft_lane_ep *lep, uint8_t am_id, const void *hdr, size_t hdr_len,
		       struct weft_lane_comp *comp)
{
	/* First all that can fail: what has been sent cannot be refused afterwards. */
	struct raw_flush *f = malloc(sizeof(*f));
	int err;

	if (f == NULL)
		return -ENOMEM;
	err = raw_am_short(lep, am_id, hdr, hdr_len, NULL, 0);
	if (err != 0) {
		free(f);
		return err;
	}
	raw_flush_queue(raw_conn_of(lep), f, comp);
	return 0;
}

/*
 * Somebody waits for this memory, and an acknowledgement that is delayed for company lets him wait
 * for all of the delay. So it is asked for at once, on the frame that looks like the last one of a
 * message (it is not full), unless one that was asked for is still to come, or the peer keeps
 * sending: then it rides on an answer and costs nothing.
 */
static uint16_t want_ack(struct raw_conn *c, uint32_t payload)
{
	bool heard = c->heard;

	c->heard = false;
	if (heard || c->ack_asked || payload >= c->room)
		return 0;
	c->ack_asked = true;
	return WEFT_FRAME_F_ACK_REQ;
}

/* Everything of the frame but the user's memory. */
static inline void put_headers(const struct raw_conn *c, struct rte_mbuf *head, uint8_t am_id,
			       const void *hdr, size_t hdr_len, uint32_t payload)
{
	struct weft_frame_msg msg = {.am_id = am_id};
	size_t front = c->encap.len + sizeof(struct weft_frame_hdr);
	uint8_t *p = rte_pktmbuf_mtod(head, uint8_t *);

	memcpy(p, c->tmpl, RAW_TMPL);
	p += front;
	msg.length = weft_le16((uint16_t)(payload - sizeof(msg)));
	memcpy(p, &msg, sizeof(msg));
	memcpy(p + sizeof(msg), hdr, hdr_len);
	head->data_len = (uint16_t)(front + sizeof(msg) + hdr_len);
	head->pkt_len = head->data_len;
}

int raw_am_zcopy(struct weft_lane_ep *lep, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		 struct weft_lane_comp *comp)
{
	struct raw_conn *c = raw_conn_of(lep);
	struct raw_iface *iface = c->iface;
	uint32_t payload = (uint32_t)(sizeof(struct weft_frame_msg) + hdr_len);
	size_t data = 0;
	struct rte_mbuf *head;
	struct raw_zc *zc;
	int err;

	(void)mem; /* IOVA is VA: the registration only has to exist */
	for (unsigned int i = 0; i < iovcnt; i++)
		data += iov[i].iov_len;
	if (unlikely(data == 0))
		return header_only(lep, am_id, hdr, hdr_len, comp);
	if (c->open != NULL && !raw_seal(c, 0))
		return -EAGAIN;
	err = raw_tx_ready(c);
	if (unlikely(err != 0))
		return err;
	if (unlikely(data > c->room || payload + data > c->room ||
		     hdr_len > iface->base.attr.max_zcopy_hdr || iovcnt > iface->base.attr.max_iov))
		return -EMSGSIZE;
	if (unlikely(iface->hdr_held + iovcnt + 2 > iface->hdr_held_max)) {
		raw_count(iface, RAW_TX_NO_BUFFER);
		return -EAGAIN;
	}
	payload += (uint32_t)data;
	zc = zc_get(iface);
	head = rte_pktmbuf_alloc(iface->port->hdr_pool);
	if (unlikely(zc == NULL || head == NULL))
		goto no_buffer;
	*zc = (struct raw_zc){
		.shinfo = {.free_cb = zc_released, .fcb_opaque = zc},
		.iface = iface,
		.comp = comp,
	};
	put_headers(c, head, am_id, hdr, hdr_len, payload);
	if (unlikely(attach_all(c, head, iov, iovcnt, zc) != 0)) {
		/* Freeing the last reference would queue zc as released: hold one, then take it
		 * back by hand. */
		rte_mbuf_ext_refcnt_update(&zc->shinfo, 1);
		goto no_buffer;
	}
	LIST_INSERT_HEAD(&c->zc, zc, conn_link);
	iface->tx_held++;
	iface->hdr_held += head->nb_segs;
	raw_tx_commit(c, head, (uint32_t)sizeof(struct weft_frame_hdr) + payload, payload,
		      want_ack(c, payload));
	if (c->snd_next - c->snd_una == 1 || iface->txq_count >= RAW_TX_BATCH)
		raw_txq_flush(iface);
	return 0;

no_buffer:
	raw_count(iface, RAW_TX_NO_BUFFER);
	rte_pktmbuf_free(head);
	if (zc != NULL)
		STAILQ_INSERT_HEAD(&iface->zc_free, zc, link);
	return -EAGAIN;
}

/* @return completions run */
unsigned int raw_zc_complete(struct raw_iface *iface)
{
	struct weft_lane_comp *comp;
	struct raw_zc *zc;
	unsigned int n = 0;

	while ((zc = STAILQ_FIRST(&iface->zc_released)) != NULL) {
		STAILQ_REMOVE_HEAD(&iface->zc_released, link);
		comp = zc->comp;
		if (comp != NULL) {
			LIST_REMOVE(zc, conn_link);
			zc->comp = NULL;
		}
		STAILQ_INSERT_HEAD(&iface->zc_free, zc, link);
		if (comp != NULL) {
			comp->done(comp, zc->status);
			n++;
		}
	}
	return n;
}

/*
 * The lane ends; called while the slots still hold what is not acknowledged. Completions still wait
 * for the NIC to let go, and then carry the error. What is acknowledged and released, and only not
 * told yet, has succeeded.
 */
void raw_zc_fail(struct raw_conn *c, int status)
{
	struct raw_zc *zc;

	LIST_FOREACH(zc, &c->zc, conn_link) {
		if (rte_mbuf_ext_refcnt_read(&zc->shinfo) != 0)
			zc->status = status;
	}
}

/*
 * The lane ep ends; its slots have been released. What the port lets go of now is told now. What
 * the hardware may still read stays with the iface and is told by a later progress(), or by
 * close().
 */
void raw_zc_cancel(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	struct weft_lane_comp *comp;
	struct raw_zc *zc;

	if (LIST_EMPTY(&c->zc))
		return;
	raw_txq_flush(iface);
	if (iface->port->ops->tx_kick != NULL)
		iface->port->ops->tx_kick(iface->port);
	while ((zc = LIST_FIRST(&c->zc)) != NULL) {
		LIST_REMOVE(zc, conn_link);
		if (rte_mbuf_ext_refcnt_read(&zc->shinfo) != 0) {
			LIST_INSERT_HEAD(&iface->zc_orphans, zc, conn_link);
			iface->tx_used = true; /* keeps the port being asked */
			continue;
		}
		/* It is in the list of released ones and returns to the free ones from there. */
		comp = zc->comp;
		zc->comp = NULL;
		comp->done(comp, zc->status);
	}
}

/* The port is closed: nobody reads any more. */
void raw_zc_destroy(struct raw_iface *iface)
{
	struct zc_chunk *chunk, *next;
	struct weft_lane_comp *comp;
	struct raw_zc *zc;

	raw_zc_complete(iface);
	while ((zc = LIST_FIRST(&iface->zc_orphans)) != NULL) {
		LIST_REMOVE(zc, conn_link);
		comp = zc->comp;
		zc->comp = NULL;
		comp->done(comp, zc->status);
	}
	for (chunk = iface->zc_chunks; chunk != NULL; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	iface->zc_chunks = NULL;
}
