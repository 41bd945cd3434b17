/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "engine/build.h"
#include "engine/sack.h"
#include "engine/share.h"
#include "engine/txq.h"
#include "frame/frame.h"

#define UNITS_MAX (WEFT_FRAME_SIZE_MAX / WEFT_FRAME_PART_UNIT)
/* Parts of the longest frame, each of the shortest size that frames may have. */
#define PARTS_MAX (WEFT_FRAME_SIZE_MAX / (WEFT_FRAME_SIZE_MIN - 128) + 1)

/* ---------------------------------------------------------------- sending */

/* Bytes of the frame's body in each part but the last one. */
static uint32_t part_bytes(const struct raw_conn *c)
{
	uint32_t around =
		c->encap.len +
		(uint32_t)(sizeof(struct weft_frame_hdr) + sizeof(struct weft_frame_part)) + 4;

	return RTE_ALIGN_FLOOR((uint32_t)c->cut - around, WEFT_FRAME_PART_UNIT);
}

static uint32_t num_parts(const struct raw_conn *c, uint32_t body)
{
	return (body + part_bytes(c) - 1) / part_bytes(c);
}

uint16_t raw_parts_count(const struct raw_conn *c)
{
	return (uint16_t)num_parts(c, (uint32_t)c->base.max_msg + sizeof(struct weft_frame_msg));
}

/* Copy bytes of the frame from @p at on, from wherever they are stored. */
static void copy_bytes(const struct raw_slot *slot, uint32_t at, uint32_t len, uint8_t *to)
{
	struct raw_zc *zc;
	const uint8_t *from;

	from = slot->taken_back ? raw_copy_bytes(slot->copy, &zc) + at
				: rte_pktmbuf_read(slot->m, at, len, to);
	if (from != to)
		memcpy(to, from, len);
}

int raw_parts_send(struct raw_conn *c, struct raw_slot *slot, uint32_t seq, uint8_t path,
		   uint16_t flags)
{
	const uint32_t front = c->encap.len + (uint32_t)sizeof(struct weft_frame_hdr);
	uint32_t body = slot->bytes - (uint32_t)sizeof(struct weft_frame_hdr), len, at = 0;
	uint32_t crc = c->csum == WEFT_FRAME_CSUM_CRC32C ? 4 : 0, n = num_parts(c, body);
	struct rte_mbuf *m[PARTS_MAX];
	struct raw_iface *iface = c->iface;
	struct weft_frame_part part = {.total = weft_put16((uint16_t)body)};
	struct weft_frame_hdr *hdr;
	uint8_t *p;

	if (raw_txq_space(iface) < n)
		return -EAGAIN;
	if (rte_pktmbuf_alloc_bulk(iface->port->pool, m, n) != 0) {
		raw_count(iface, RAW_TX_NO_BUFFER);
		return -EAGAIN;
	}
	flags |= crc != 0 ? WEFT_FRAME_F_CRC32C : 0;
	for (uint32_t i = 0; i < n; i++, at += len) {
		len = RTE_MIN(body - at, part_bytes(c));
		p = rte_pktmbuf_mtod(m[i], uint8_t *);
		memcpy(p, c->tmpl, RAW_TMPL);
		part.offset = weft_put16((uint16_t)at);
		memcpy(p + front, &part, sizeof(part));
		copy_bytes(slot, front + at, len, p + front + sizeof(part));
		m[i]->data_len = (uint16_t)(front + sizeof(part) + len + crc);
		m[i]->pkt_len = m[i]->data_len;
		hdr = raw_hdr(c, m[i]);
		hdr->type = WEFT_FRAME_PART;
		/* An acknowledgement is of use only after the last part. */
		hdr->flags = weft_put16(i + 1 < n ? flags & ~WEFT_FRAME_F_ACK_REQ : flags);
		hdr->seq = weft_put32(seq);
		raw_stamp(c, hdr, path);
		raw_finish(c, m[i], (uint32_t)(sizeof(*hdr) + sizeof(part)) + len, path);
		slot->order = c->path[path].order++;
		raw_txq_push(iface, m[i]);
	}
	iface->counter[RAW_TX_PARTS] += n;
	return 0;
}

/* ---------------------------------------------------------------- receiving */

struct raw_part {
	LIST_ENTRY(raw_part) conn_link;
	TAILQ_ENTRY(raw_part) link;
	struct raw_conn *conn;
	uint32_t seq;
	uint32_t total, missing; /* bytes of the body */
	uint64_t got[UNITS_MAX / 64];
	uint8_t pad[4]; /* aligns the data of the first message behind it as in a frame */
	uint8_t body[];
};

static void parts_unlink(struct raw_part *p)
{
	LIST_REMOVE(p, conn_link);
	TAILQ_REMOVE(&p->conn->iface->parts, p, link);
	p->conn->num_parts--;
	p->conn->iface->num_parts--;
}

static void parts_drop(struct raw_part *p)
{
	raw_count(p->conn->iface, RAW_DROP_PARTS);
	parts_unlink(p);
	free(p);
}

void raw_parts_forget(struct raw_conn *c)
{
	struct raw_part *p;

	while ((p = LIST_FIRST(&c->parts))) {
		parts_unlink(p);
		free(p);
	}
}

/*
 * Drop the connection's own oldest frame. If it has none and the limit of the iface is reached,
 * drop one of a connection that has more than one.
 */
static void make_room(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	struct raw_part *p, *oldest = NULL;

	if (c->num_parts < RAW_PARTS_OF_CONN && iface->num_parts < RAW_PARTS_OF_IFACE)
		return;
	if (c->num_parts > 0) {
		LIST_FOREACH(p, &c->parts, conn_link)
			oldest = p; /* new ones are inserted at the front */
	} else {
		TAILQ_FOREACH(oldest, &iface->parts, link)
			if (oldest->conn->num_parts > 1)
				break;
		if (!oldest)
			oldest = TAILQ_FIRST(&iface->parts);
	}
	parts_drop(oldest);
}

static struct raw_part *part_of(struct raw_conn *c, uint32_t seq, uint32_t total)
{
	struct raw_part *p, *next;

	/* Drop frames that arrived whole in the meantime: their sequence numbers will be reused. */
	for (p = LIST_FIRST(&c->parts); p; p = next) {
		next = LIST_NEXT(p, conn_link);
		if (weft_rxwin_check(&c->rx, p->seq) != WEFT_RXWIN_NEW)
			parts_drop(p);
	}
	LIST_FOREACH(p, &c->parts, conn_link)
		if (p->seq == seq)
			break;
	if (p && p->total == total)
		return p;
	if (p)
		parts_drop(p); /* the parts contradict each other */
	make_room(c);
	p = calloc(1, sizeof(*p) + total);
	if (!p)
		return NULL;
	p->conn = c;
	p->seq = seq;
	p->total = total;
	p->missing = total;
	LIST_INSERT_HEAD(&c->parts, p, conn_link);
	TAILQ_INSERT_TAIL(&c->iface->parts, p, link);
	c->num_parts++;
	c->iface->num_parts++;
	return p;
}

/* Bytes that are there already are not counted again. */
static void put_bytes(struct raw_part *p, uint32_t at, uint32_t len, const uint8_t *from)
{
	uint32_t n;

	for (; len > 0; at += n, from += n, len -= n) {
		uint32_t unit = at / WEFT_FRAME_PART_UNIT;
		uint64_t bit = 1ull << unit % 64;

		n = RTE_MIN(len, WEFT_FRAME_PART_UNIT);
		if (p->got[unit / 64] & bit)
			continue;
		p->got[unit / 64] |= bit;
		memcpy(p->body + at, from, n);
		p->missing -= n;
	}
}

struct raw_part *raw_part_take(struct raw_conn *c, const struct weft_frame_view *v,
			       struct weft_frame_view *whole)
{
	const struct weft_frame_part *part = (const struct weft_frame_part *)v->body;
	uint32_t total = weft_get16(part->total);
	struct raw_part *p;

	raw_count(c->iface, RAW_RX_PARTS);
	if (total > c->iface->frame_size) {
		raw_count(c->iface, RAW_DROP_BAD_LENGTH);
		return NULL;
	}
	p = part_of(c, weft_get32(v->hdr->seq), total);
	if (!p) {
		raw_count(c->iface, RAW_DROP_PARTS);
		return NULL;
	}
	put_bytes(p, weft_get16(part->offset), v->body_len - (uint32_t)sizeof(*part),
		  (const uint8_t *)(part + 1));
	if (p->missing > 0)
		return NULL;
	parts_unlink(p);
	*whole = *v;
	whole->body = p->body;
	whole->body_len = total;
	if (weft_frame_messages_ok(whole))
		return p;
	raw_count(c->iface, RAW_DROP_BAD_MESSAGE);
	free(p);
	return NULL;
}
