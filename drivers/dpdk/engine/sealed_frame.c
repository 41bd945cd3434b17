/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A plain frame stays what it is for all other files: it is kept for its retransmission, cut into
 * parts, or given back to the protocol layer. Only its copies on the wire are sealed, each with a
 * number of its own. So no frame is sealed twice with one number, and no decrypted byte is written
 * to memory that another process shares.
 */

#include <assert.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/sealed_frame.h"
#include "engine/sealed_state.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "frame/parse.h"
#include "seal/seal.h"

#define HEAD_LEN ((uint32_t)sizeof(struct weft_frame_hdr))
/* Segments of a plain frame, at most: the head, and pieces of user memory. */
#define SEGS_MAX 64u
#define TICK_NS 10000000ull   /* ns between two checks of the age of keys, at least */
#define PROBE_NS 100000000ull /* ns between two probes that confirm a key, at least */

static_assert(WEFT_SEALED_HEAD == sizeof(struct weft_frame_hdr) + WEFT_FRAME_NUMBER_LEN, "head");
static_assert(WEFT_CIPHER_TAG_LEN == WEFT_FRAME_TAG_LEN, "tag");

/* ---------------------------------------------------------------- sending */

static unsigned int body_segs(const struct rte_mbuf *m, uint32_t skip, uint32_t len, uint8_t *out,
			      struct weft_cipher_seg *segs)
{
	unsigned int n = 0;
	uint32_t part;

	for (; m && len > 0 && n < SEGS_MAX; m = m->next, skip = 0) {
		part = RTE_MIN((uint32_t)m->data_len - skip, len);
		if (part == 0)
			continue;
		segs[n++] = (struct weft_cipher_seg){
			.in = rte_pktmbuf_mtod_offset(m, const uint8_t *, skip),
			.out = out,
			.len = part,
		};
		out += part;
		len -= part;
	}
	return len == 0 ? n : 0;
}

/*
 * Copies a body before the cipher reads it. In mode auth the cipher writes no body, and a shared
 * body may change: the tag is that of the copy.
 */
static void copy_segs(struct weft_cipher_seg *segs, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		memcpy(segs[i].out, segs[i].in, segs[i].len);
		segs[i].in = segs[i].out;
	}
}

static struct rte_mbuf *alloc_for(struct raw_iface *iface, uint32_t size)
{
	struct rte_mempool *pool = iface->port->hdr_pool;
	struct rte_mbuf *m;

	if (size > (uint32_t)rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM)
		pool = iface->port->pool;
	m = rte_pktmbuf_alloc(pool);
	if (!m) {
		raw_count(iface, RAW_TX_NO_BUFFER);
		return NULL;
	}
	m->data_len = (uint16_t)size;
	m->pkt_len = size;
	return m;
}

/*
 * The pool's functions take as long as writing all headers of the frame. So seal->spare keeps a
 * reference to one buffer, which is used again once the port has dropped its reference.
 */
struct rte_mbuf *raw_sealed_spare(struct raw_iface *iface, uint32_t size)
{
	struct raw_seal *seal = iface->seal;
	struct rte_mbuf *m = seal->spare;

	if (unlikely(!m || rte_mbuf_refcnt_read(m) != 1 ||
		     size + RTE_PKTMBUF_HEADROOM > m->buf_len)) {
		m = alloc_for(iface, size);
		if (!m || seal->spare || m->pool != iface->port->hdr_pool)
			return m;
		seal->spare = m;
	}
	rte_mbuf_refcnt_set(m, 2);
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->ol_flags = 0;
	m->data_len = (uint16_t)size;
	m->pkt_len = size;
	return m;
}

void raw_sealed_spare_free(struct raw_iface *iface)
{
	if (!iface->seal)
		return;
	rte_pktmbuf_free(iface->seal->spare);
	iface->seal->spare = NULL;
}

/* Zero-copy with mode auth. @return the place of the tag; NULL: there is no buffer */
static uint8_t *link_user(struct raw_iface *iface, struct rte_mbuf *head, const struct rte_mbuf *m)
{
	struct rte_mbuf **tail = &head->next, *s;

	do {
		s = *tail = alloc_for(iface, WEFT_FRAME_TAG_LEN);
		if (!s)
			return NULL;
		head->nb_segs++;
		tail = &s->next;
		m = m->next;
		if (m)
			rte_pktmbuf_attach(s, (struct rte_mbuf *)(uintptr_t)m);
	} while (m);
	return rte_pktmbuf_mtod(s, uint8_t *);
}

struct rte_mbuf *raw_sealed_copy(struct raw_conn *c, const struct rte_mbuf *m, uint8_t path)
{
	const struct weft_frame_hdr *from =
		rte_pktmbuf_mtod_offset(m, const struct weft_frame_hdr *, c->encap.len);
	uint32_t lane_len = weft_get16(from->length), front = c->encap.len + HEAD_LEN;
	uint32_t body = lane_len - HEAD_LEN, size = c->encap.len + lane_len + WEFT_FRAME_SEAL_LEN;
	const struct raw_seal *seal = c->iface->seal;
	bool auth = seal->conf.mode == WEFT_SEAL_AUTH, refer = auth && m->nb_segs > 1;
	struct rte_mbuf *out =
		alloc_for(c->iface, refer ? m->data_len + WEFT_FRAME_NUMBER_LEN : size);
	struct weft_cipher_seg segs[SEGS_MAX];
	struct weft_frame_hdr *hdr;
	struct weft_sealed_op op;
	uint8_t *p;

	if (!out)
		return NULL;
	p = rte_pktmbuf_mtod(out, uint8_t *);
	memcpy(p, rte_pktmbuf_mtod(m, const uint8_t *), front);
	hdr = raw_hdr(c, out);
	hdr->flags = weft_put16(weft_get16(hdr->flags) & (uint16_t)~WEFT_FRAME_F_CRC32C);
	hdr->length = weft_put16((uint16_t)(lane_len + WEFT_FRAME_NUMBER_LEN));
	op = (struct weft_sealed_op){
		.conn = c->sealed->keys,
		.head = p + c->encap.len,
		.segs = segs,
		.num_segs = body_segs(m, front, body, p + front + WEFT_FRAME_NUMBER_LEN, segs),
		.slot = path,
		.tag = refer ? link_user(c->iface, out, m) : p + size - WEFT_FRAME_TAG_LEN,
	};
	if (!op.tag) {
		rte_pktmbuf_free(out);
		return NULL;
	}
	/* In front of user memory only the headers of the message are copied: one segment. */
	if (auth)
		copy_segs(segs, refer ? 1 : op.num_segs);
	out->pkt_len = size;
	if ((body > 0 && op.num_segs == 0) || weft_sealed_seal(seal->cipher, &op, 1) != 1) {
		raw_count(c->iface, RAW_SEAL_KEY_SPENT);
		rte_pktmbuf_free(out);
		return NULL;
	}
	c->iface->counter[RAW_TX_BYTES] += size - m->pkt_len;
	return out;
}

bool raw_sealed_fill(struct raw_conn *c, struct rte_mbuf *out, const uint8_t *body,
		     uint32_t body_len, uint8_t path)
{
	uint8_t *head = (uint8_t *)raw_hdr(c, out);
	const struct raw_seal *seal = c->iface->seal;
	struct weft_cipher_seg seg = {body, head + WEFT_SEALED_HEAD, body_len};
	struct weft_sealed_op op = {
		.conn = c->sealed->keys,
		.head = head,
		.segs = &seg,
		.num_segs = 1,
		.slot = path,
		.tag = head + WEFT_SEALED_HEAD + body_len,
	};

	if (seal->conf.mode == WEFT_SEAL_AUTH)
		copy_segs(&seg, 1);
	if (likely(weft_sealed_seal(seal->cipher, &op, 1) == 1))
		return true;
	raw_count(c->iface, RAW_SEAL_KEY_SPENT);
	rte_pktmbuf_free(out);
	return false;
}

/* weft-farewell has no key. Another key, or another address of the peer, needs another GONE. */
uint32_t raw_sealed_farewell(struct raw_conn *c, const struct weft_encap_addr *a,
			     uint8_t frame[WEFT_FAREWELL_MAX])
{
	const uint32_t lane_len = HEAD_LEN + WEFT_FRAME_NUMBER_LEN;
	struct weft_encap_hdr encap;
	struct weft_sealed_op op;
	struct weft_frame_hdr hdr = {
		.magic = weft_put16(WEFT_FRAME_MAGIC),
		.version = WEFT_FRAME_VERSION,
		.type = WEFT_FRAME_GONE,
		.length = weft_put16((uint16_t)lane_len),
		.dst_conn = weft_put32(c->remote_id),
		.token = weft_put32(c->remote_token),
		.src_conn = weft_put16((uint16_t)c->id),
		.ts_hold = weft_put16(WEFT_FRAME_NO_ECHO),
	};

	if (!c->sealed->gone)
		return 0;
	weft_encap_build(&encap, frame, a);
	memcpy(frame + encap.len, &hdr, sizeof(hdr));
	op = (struct weft_sealed_op){
		.conn = c->sealed->keys,
		.head = frame + encap.len,
		.slot = WEFT_SEALED_SLOT_GONE,
		.tag = frame + encap.len + lane_len,
	};
	if (weft_sealed_seal(c->iface->seal->cipher, &op, 1) != 1)
		return 0;
	weft_encap_patch(&encap, frame, lane_len + WEFT_FRAME_TAG_LEN, a->src_port, a->dst_port);
	weft_encap_csum6(&encap, frame);
	return encap.len + lane_len + WEFT_FRAME_TAG_LEN;
}

/* ---------------------------------------------------------------- receiving */

static void count_drop(struct raw_conn *c, enum weft_sealed_verdict verdict,
		       enum raw_sealed_event *event)
{
	static const enum raw_counter counter[] = {
		[WEFT_SEALED_FORMAT] = RAW_DROP_BAD_TYPE, [WEFT_SEALED_TAG] = RAW_DROP_SEAL_TAG,
		[WEFT_SEALED_SEEN] = RAW_DROP_SEAL_SEEN,  [WEFT_SEALED_OLD] = RAW_DROP_SEAL_OLD,
		[WEFT_SEALED_SPENT] = RAW_SEAL_KEY_SPENT,
	};

	raw_count(c->iface, counter[verdict]);
	if (verdict == WEFT_SEALED_SPENT)
		*event = RAW_SEALED_SPENT;
}

/*
 * The peer has this end's present key once it has acknowledged a frame that was sealed with it, or
 * answered a probe. Only then another key may follow.
 */
static __rte_noinline void look_at_keys(struct raw_conn *c, uint32_t ack)
{
	const struct raw_iface *iface = c->iface;
	struct raw_sealed *s = c->sealed;
	uint64_t keep = 3ull * RTE_MAX((uint64_t)c->base.rtt_ns, WEFT_RTO_INITIAL);

	if (weft_seq_diff(ack, s->key_from) > 0 && c->state == RAW_UP)
		weft_sealed_confirm(s->keys);
	s->tick_at = iface->now + TICK_NS;
	if (weft_sealed_tick(s->keys, iface->seal->cipher, iface->now, keep)) {
		s->key_from = c->tx.next;
		s->probe++;
		s->farewell_due = true;
		raw_count(c->iface, RAW_SEAL_REKEYS);
	}
}

static inline void tick(struct raw_conn *c, const struct weft_frame_hdr *hdr,
			enum raw_sealed_event *event)
{
	if (likely(c->iface->now < c->sealed->tick_at))
		return;
	look_at_keys(c, weft_get32(hdr->ack));
	*event = RAW_SEALED_TICK;
}

bool raw_sealed_farewell_due(struct raw_conn *c)
{
	bool due = c->sealed->farewell_due && c->state == RAW_UP;

	c->sealed->farewell_due = false;
	return due;
}

bool raw_sealed_probe_due(struct raw_conn *c, uint16_t *probe)
{
	struct raw_sealed *s = c->sealed;

	if (c->state != RAW_UP || c->iface->now < s->probe_at ||
	    !weft_sealed_unsure(s->keys, c->iface->now))
		return false;
	s->probe_at = c->iface->now + PROBE_NS;
	*probe = s->probe;
	return true;
}

void raw_sealed_answered(struct raw_conn *c, uint16_t probe)
{
	if (c->sealed && c->sealed->keys && probe == c->sealed->probe)
		weft_sealed_confirm(c->sealed->keys);
}

/* Restores the header as it was before the frame was sealed. */
static void open_header(struct weft_frame_hdr *hdr)
{
	hdr->flags = weft_put16(weft_get16(hdr->flags) & (uint16_t)~WEFT_FRAME_F_OF_SEAL);
	hdr->length = weft_put16((uint16_t)(weft_get16(hdr->length) - WEFT_FRAME_NUMBER_LEN));
}

/* @return false: the plain frame is invalid, which is counted */
static bool read_plain(struct raw_conn *c, struct weft_frame_view *plain)
{
	enum weft_rx_verdict g;

	plain->flags = weft_get16(plain->hdr->flags);
	plain->type = plain->hdr->type;
	g = plain->flags & ~WEFT_FRAME_F_KNOWN ? WEFT_VERDICT_BAD_TYPE
					       : weft_frame_parse_body(plain);
	if (g == WEFT_VERDICT_OK)
		return true;
	raw_count(c->iface, g == WEFT_VERDICT_BAD_LENGTH    ? RAW_DROP_BAD_LENGTH
			    : g == WEFT_VERDICT_BAD_MESSAGE ? RAW_DROP_BAD_MESSAGE
							    : RAW_DROP_BAD_TYPE);
	return false;
}

/* The buffer of the plain frame: the received one, if it is single and owned by this process. */
struct place {
	struct rte_mbuf *m;
	struct weft_frame_hdr *hdr;
	bool received; /* m is the received buffer, which the caller owns */
};

static bool find_place(const struct raw_conn *c, const struct weft_frame_view *v,
		       struct rte_mbuf *desc, struct place *at)
{
	const struct weft_frame_port *port = c->iface->port;

	if (desc && port->flags & WEFT_FRAME_PORT_RX_OWN) {
		*at = (struct place){desc, (struct weft_frame_hdr *)(uintptr_t)v->hdr, true};
		return true;
	}
	at->received = false;
	at->m = rte_pktmbuf_alloc(port->pool);
	if (!at->m) {
		raw_count(c->iface, RAW_NO_MEMORY);
		return false;
	}
	at->hdr = raw_hdr(c, at->m);
	if (c->encap.len + HEAD_LEN + v->body_len <= rte_pktmbuf_tailroom(at->m))
		return true;
	raw_count(c->iface, RAW_DROP_BAD_LENGTH);
	rte_pktmbuf_free(at->m);
	return false;
}

/*
 * Another process may change a buffer that it can write to between two reads. So the header is
 * copied and its length checked again, and the body is copied before it is verified.
 */
struct rte_mbuf *raw_sealed_open(struct raw_conn *c, const struct weft_frame_view *v,
				 struct rte_mbuf *desc, struct weft_frame_view *plain,
				 enum raw_sealed_event *event)
{
	const bool shared = !(c->iface->port->flags & WEFT_FRAME_PORT_RX_OWN);
	const struct raw_seal *seal = c->iface->seal;
	uint8_t head[WEFT_SEALED_HEAD] __rte_aligned(8), tag[WEFT_FRAME_TAG_LEN];
	struct weft_cipher_seg seg;
	struct weft_sealed_op op;
	struct place at;

	if (!find_place(c, v, desc, &at))
		return NULL;
	memcpy(head, v->hdr, sizeof(head));
	memcpy(tag, v->body + v->body_len, sizeof(tag));
	seg = (struct weft_cipher_seg){
		.in = v->body,
		.out = at.received ? (uint8_t *)(uintptr_t)v->body : (uint8_t *)(at.hdr + 1),
		.len = v->body_len,
	};
	if (!at.received && (shared || seal->conf.mode == WEFT_SEAL_AUTH))
		copy_segs(&seg, 1);
	op = (struct weft_sealed_op){
		.conn = c->sealed->keys,
		.head = head,
		.segs = &seg,
		.num_segs = v->body_len > 0,
		.tag = tag,
		.verdict = WEFT_SEALED_FORMAT,
	};
	if (weft_get16(((struct weft_frame_hdr *)head)->length) == sizeof(head) + v->body_len)
		weft_sealed_open(seal->cipher, &op, 1, c->iface->now);
	if (op.verdict != WEFT_SEALED_OK) {
		count_drop(c, op.verdict, event);
		goto drop;
	}
	/* The upper byte of the number is the slot. */
	if ((head[sizeof(head) - 1] == WEFT_SEALED_SLOT_GONE) !=
	    (((struct weft_frame_hdr *)head)->type == WEFT_FRAME_GONE)) {
		raw_count(c->iface, RAW_DROP_BAD_TYPE);
		goto drop;
	}
	memcpy(at.hdr, head, HEAD_LEN);
	open_header(at.hdr);
	*plain = *v;
	plain->hdr = at.hdr;
	plain->body = seg.out;
	if (!read_plain(c, plain))
		goto drop;
	/* GONE was sealed in advance, so its field `ack` is old. */
	if (at.hdr->type != WEFT_FRAME_GONE)
		tick(c, at.hdr, event);
	return at.m;

drop:
	if (!at.received)
		rte_pktmbuf_free(at.m);
	return NULL;
}

const struct weft_frame_hdr *raw_sealed_open_data(struct raw_conn *c,
						  const struct weft_frame_hdr *hdr,
						  uint32_t *body_len, enum raw_sealed_event *event)
{
	uint8_t *head = (uint8_t *)(uintptr_t)hdr, *body = head + WEFT_SEALED_HEAD;
	struct weft_frame_hdr *plain = (struct weft_frame_hdr *)(head + WEFT_FRAME_NUMBER_LEN);
	struct weft_cipher_seg seg = {body, body, *body_len - WEFT_FRAME_NUMBER_LEN};
	struct weft_sealed_op op = {
		.conn = c->sealed->keys,
		.head = head,
		.segs = &seg,
		.num_segs = 1,
		.tag = body + seg.len,
	};
	struct weft_frame_hdr copy;

	if (unlikely(weft_sealed_open(c->iface->seal->cipher, &op, 1, c->iface->now) != 1)) {
		count_drop(c, op.verdict, event);
		return NULL;
	}
	if (unlikely(body[-1] == WEFT_SEALED_SLOT_GONE)) {
		raw_count(c->iface, RAW_DROP_BAD_TYPE);
		return NULL;
	}
	copy = *hdr;
	*plain = copy;
	open_header(plain);
	*body_len = (uint32_t)seg.len;
	tick(c, plain, event);
	return plain;
}
