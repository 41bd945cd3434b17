/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "engine/address.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/mtu.h"
#include "engine/outstanding.h"
#include "engine/rules.h"
#include "frame/frame.h"
#include "lane.h"

/* ---------------------------------------------------------------- the search */

/*
 * Usual MTUs: AWS 9001, 8500 between regions; bare metal 9000, a VXLAN in it 8950; GCP 8896, 1460;
 * Azure 3900; IB and old jumbo frames 4096; Ethernet 1500; OpenStack's VXLAN 1450; WireGuard 1420;
 * VPNs 1400; IPv6's least 1280; IPv4's 576, which a search on a connection that is up may use.
 */
static const uint16_t usual[] = {9001, 9000, 8950, 8896, 8500, 4096, 3900,
				 1500, 1460, 1450, 1420, 1400, 1280, 576};

#define NUM_USUAL (sizeof(usual) / sizeof(usual[0]))

static void try_size(struct weft_mtu_search *s, uint16_t size, uint64_t now)
{
	s->size = size;
	s->small_acks = 0;
	s->rounds = 0;
	s->first = (uint16_t)(s->id + 1);
	s->next = now;
}

void weft_mtu_search_begin(struct weft_mtu_search *s, uint16_t full, uint16_t least, uint8_t l2,
			   uint64_t now)
{
	*s = (struct weft_mtu_search){.begin = now, .full = full, .least = least, .l2 = l2};
	try_size(s, full, now);
}

/*
 * As weft_mtu_search_begin(), on a connection that is up: ids continue from s->id. @p cut: the size
 * in use when the full one has failed. @p lo: a size that passes; 0 = none is known.
 */
static void search_again(struct weft_mtu_search *s, uint16_t full, uint16_t cut, uint8_t l2,
			 uint16_t lo, uint64_t now)
{
	uint16_t id = s->id;

	weft_mtu_search_begin(s, full, (uint16_t)(WEFT_FRAME_SIZE_FLOOR - RTE_ETHER_HDR_LEN + l2),
			      l2, now);
	s->id = id;
	s->first = (uint16_t)(id + 1);
	s->cut = cut;
	s->lo = lo;
	s->quick = true;
}

enum weft_mtu_result weft_mtu_search_round(struct weft_mtu_search *s, uint64_t now,
					   unsigned int *big, unsigned int *small)
{
	uint64_t most = s->size == s->full && !s->quick ? WEFT_MTU_WAIT_FULL : WEFT_MTU_WAIT_STEP;
	uint64_t wait = WEFT_MTU_WAIT_MIN << (s->rounds < 10 ? s->rounds : 10);
	bool first = s->size == s->full && s->rounds == 0;

	*big = 0;
	*small = 0;
	if (now < s->next)
		return WEFT_MTU_GOES_ON;
	if (s->lo != 0 && now - s->begin >= WEFT_MTU_TIME)
		return WEFT_MTU_FOUND;
	/* Usually the first probe arrives, and no other is sent. */
	*big = first ? 1 : WEFT_MTU_BIG;
	*small = first && !s->quick ? 0 : 1;
	s->id++;
	if (s->rounds < UINT8_MAX)
		s->rounds++;
	s->next = now + (wait < most ? wait : most);
	return WEFT_MTU_GOES_ON;
}

/* @return the middle one of the usual sizes that are not decided; 0 = there is none */
static uint16_t usual_size(const struct weft_mtu_search *s)
{
	uint16_t left[NUM_USUAL + 1], size;
	unsigned int n = 0;

	for (size_t i = 0; i < NUM_USUAL; i++) {
		size = (uint16_t)(usual[i] + s->l2);
		if (size >= s->least && size > s->lo && size < s->hi)
			left[n++] = size;
	}
	/* The search must find out whether any frame passes, whatever the least size is. */
	if (s->lo == 0 && s->least < s->hi && (n == 0 || left[n - 1] != s->least))
		left[n++] = s->least;
	return n > 0 ? left[n / 2] : 0;
}

static enum weft_mtu_result next_size(struct weft_mtu_search *s, uint64_t now)
{
	bool uncertain = s->lo == 0 && s->cut != 0 && s->cut < s->hi;
	uint16_t size = uncertain ? s->cut : usual_size(s);

	if (size == 0 && s->lo == 0)
		return WEFT_MTU_NARROW;
	if (size == 0 && s->hi - s->lo <= (int)WEFT_MTU_GRAIN)
		return WEFT_MTU_FOUND;
	if (size == 0) {
		/* Usually the path has a usual MTU, and the next size above fails. */
		size = (uint16_t)(s->lo + (s->between ? (s->hi - s->lo) / 2 : (int)WEFT_MTU_GRAIN));
		s->between = true;
	}
	try_size(s, size, now);
	return WEFT_MTU_GOES_ON;
}

static enum weft_mtu_result size_passed(struct weft_mtu_search *s, uint16_t size, uint64_t now)
{
	if (size <= s->lo || size > s->full || size < s->least)
		return WEFT_MTU_GOES_ON;
	s->lo = size;
	if (size == s->full)
		return WEFT_MTU_FOUND;
	/* The answer was late, so this size has not failed; only the full size is known to fail. */
	if (s->hi == 0 || size >= s->hi)
		s->hi = s->full;
	return next_size(s, now);
}

enum weft_mtu_result weft_mtu_search_ack(struct weft_mtu_search *s, uint16_t id, uint16_t size,
					 uint64_t now)
{
	if (size != 0)
		return size_passed(s, size, now);
	/* On a long path, answers to small probes of the previous size still arrive. */
	if (s->rounds == 0 || (uint16_t)(id - s->first) > (uint16_t)(s->id - s->first))
		return WEFT_MTU_GOES_ON;
	if (++s->small_acks < WEFT_MTU_SMALL_ACKS)
		return WEFT_MTU_GOES_ON;
	if (s->hi == 0 || s->size < s->hi)
		s->hi = s->size;
	return next_size(s, now);
}

/* ---------------------------------------------------------------- sending in parts */

#define UNITS_MAX (WEFT_FRAME_SIZE_MAX / WEFT_FRAME_PART_UNIT)
/* Most parts of a frame: parts of the least frame size, with at most 128 bytes of headers. */
#define PARTS_MAX (WEFT_FRAME_SIZE_MAX / (WEFT_FRAME_SIZE_FLOOR - 128) + 1)
static_assert(PARTS_MAX <= RAW_TXQ, "the queue holds a frame in parts");

/* Bytes of the frame's body in each part but the last one. */
static uint32_t part_bytes(const struct raw_conn *c)
{
	uint32_t around =
		c->encap.len +
		(uint32_t)(sizeof(struct weft_frame_hdr) + sizeof(struct weft_frame_part)) +
		raw_csum_room(c);

	return RTE_ALIGN_FLOOR((uint32_t)c->tx.cut - around, WEFT_FRAME_PART_UNIT);
}

static uint32_t num_parts(const struct raw_conn *c, uint32_t body)
{
	return (body + part_bytes(c) - 1) / part_bytes(c);
}

static uint8_t parts_of_full_frame(const struct raw_conn *c)
{
	return (uint8_t)num_parts(c, (uint32_t)c->base.max_msg + sizeof(struct weft_frame_msg));
}

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
	struct raw_path *over = &c->path[path];
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
		raw_stamp(c->iface, &c->rx, hdr, over, path);
		raw_finish(c, m[i], (uint32_t)(sizeof(*hdr) + sizeof(part)) + len, over);
		slot->order = over->order++;
		if (c->csum != RAW_CSUM_SEALED) {
			raw_txq_push(iface, m[i]);
			continue;
		}
		raw_sealed_queue(c, m[i], path);
		rte_pktmbuf_free(m[i]);
	}
	iface->counter[RAW_TX_PARTS] += n;
	return 0;
}

/* ---------------------------------------------------------------- receiving parts */

struct raw_part {
	LIST_ENTRY(raw_part) conn_link;
	TAILQ_ENTRY(raw_part) link;
	struct raw_conn *conn;
	uint32_t seq;
	uint32_t total, missing;
	uint64_t got[UNITS_MAX / 64];
	uint8_t pad[4]; /* aligns body: the data of its first message is aligned as in a frame */
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

/* Drops the connection's own oldest frame, or one of a connection with several, or the oldest. */
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
		if (weft_rxwin_check(&c->rx.win, p->seq) != WEFT_RXWIN_NEW)
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

/* ---------------------------------------------------------------- a connection that is up */

#define AGAIN_NS 50000000ull   /* from the end of a search until losses may start another */
#define SILENCE_NS 50000000ull /* silence of the peer after which the search slows down */
#define SLOW_NS 500000000ull   /* between two rounds of a slow search, at most */
#define RAISE_NS 5000000000ull /* from a search to the first try of a larger size; doubles */
#define RAISE_DOUBLES 6u

static uint16_t floor_size(const struct raw_iface *iface)
{
	return (uint16_t)(WEFT_FRAME_SIZE_FLOOR + iface->wire_less);
}

static uint16_t present_size(const struct raw_conn *c)
{
	return RTE_MIN(c->tx.cut, c->frame_size);
}

static void set_size(struct raw_conn *c, uint16_t size)
{
	c->tx.cut = size < c->frame_size ? size : UINT16_MAX;
	c->tx.direct = c->csum == RAW_CSUM_SEALED ? 0 : c->tx.cut;
	c->tx.txq_need = size < c->frame_size ? parts_of_full_frame(c) : 1;
	c->tx.room =
		size - c->encap.len - (uint32_t)sizeof(struct weft_frame_hdr) - raw_csum_room(c);
}

static void send_again(struct raw_conn *c)
{
	if (c->tx.timer == 0)
		return;
	c->tx.tail = RAW_TAIL_PROBED;
	c->tx.tail_at = 0;
	c->tx.backoff = 0;
	c->tx.timer = c->iface->tx_clock;
	raw_deadline_tx(c, c->tx.timer);
}

void raw_mtu_init(struct raw_conn *c)
{
	set_size(c, c->frame_size);
	c->mtu.reported = c->frame_size;
	c->mtu_next = 0;
	c->mtu_again = 0;
}

/* Notify the protocol layer, which cuts messages to this size from now on. */
static void report_size(struct raw_conn *c, bool passes)
{
	struct raw_iface *iface = c->iface;
	bool lower = present_size(c) < c->mtu.reported, small = present_size(c) < iface->least_size;
	char text[320], peer[64];

	if (present_size(c) == c->mtu.reported)
		return;
	raw_peer_text(c, peer, sizeof(peer));
	if (lower)
		snprintf(text, sizeof(text),
			 "%s: frames of %u bytes do not reach %s any more, so %u are used: has the "
			 "MTU of a link or switch between changed?%s",
			 iface->base.name, c->mtu.reported, peer, present_size(c),
			 passes ? small ? " New connections need an MTU of 1280." : ""
				: " No frame of this size is known to pass either.");
	else
		snprintf(text, sizeof(text), "%s: frames of %u bytes reach %s again",
			 iface->base.name, present_size(c), peer);
	c->mtu.reported = present_size(c);
	raw_count(iface, lower ? RAW_MTU_LOWER : RAW_MTU_HIGHER);
	iface->event(iface->cb_arg, &c->base, WEFT_LANE_EV_SIZE, lower, text);
}

int raw_mtu_search_alloc(struct raw_conn *c)
{
	if (!c->search)
		c->search = calloc(1, sizeof(*c->search));
	if (c->search)
		return 0;
	raw_count(c->iface, RAW_NO_MEMORY);
	return -ENOMEM;
}

static void search_free(struct raw_conn *c)
{
	free(c->search);
	c->search = NULL;
}

/* Ends the search. @p passes: frames of the present size pass. May destroy the connection. */
static void search_over(struct raw_conn *c, bool passes)
{
	uint64_t live_clock = c->iface->live_clock;

	search_free(c);
	c->mtu.searching = false;
	c->mtu.raising = false;
	c->mtu_again = live_clock + AGAIN_NS;
	if (present_size(c) != c->mtu.reported)
		c->mtu.raises = 0;
	c->mtu_next = present_size(c) < c->frame_size
			      ? live_clock + (RAISE_NS << RTE_MIN(c->mtu.raises, RAISE_DOUBLES))
			      : 0;
	report_size(c, passes);
}

static bool suspect_arrived(struct raw_conn *c)
{
	return c->mtu.suspect - c->tx.una >= c->tx.next - c->tx.una ||
	       !raw_slot(&c->tx, c->mtu.suspect)->m;
}

/* @return the largest size that has passed; if none has, first IPv6's least MTU, then IPv4's */
static uint16_t smaller_size(const struct raw_conn *c)
{
	if (c->search->lo != 0)
		return c->search->lo;
	return present_size(c) > c->search->cut ? c->search->cut : c->search->least;
}

/* May destroy the connection. */
static void search_result(struct raw_conn *c, enum weft_mtu_result result)
{
	const struct weft_mtu_search *s = c->search;

	if (!c->mtu.raising && s->hi != 0 && s->hi == present_size(c) && s->hi > s->least) {
		/* The frame's size was not the cause of the losses. */
		if (suspect_arrived(c)) {
			search_over(c, true);
			return;
		}
		set_size(c, smaller_size(c));
		send_again(c);
	}
	if (result == WEFT_MTU_FOUND && s->lo != present_size(c)) {
		set_size(c, s->lo);
		send_again(c);
	}
	if (result != WEFT_MTU_GOES_ON)
		search_over(c, result == WEFT_MTU_FOUND);
	else
		c->mtu_next = s->next;
}

/* @return false: there is no memory for a search now */
static bool search_begin(struct raw_conn *c, uint16_t full, uint16_t lo)
{
	if (raw_mtu_search_alloc(c) != 0) {
		c->mtu_again = c->iface->live_clock + AGAIN_NS;
		return false;
	}
	/* Ids are counted over all probes of the connection, also those outside of searches. */
	c->search->id = c->probe_id;
	search_again(c->search, full, c->iface->least_size,
		     (uint8_t)(RTE_ETHER_HDR_LEN + c->iface->l2_tag), lo, c->iface->live_clock);
	c->mtu.searching = true;
	c->mtu.raising = lo != 0;
	c->mtu_next = c->iface->live_clock;
	raw_deadline_live(c, c->mtu_next);
	return true;
}

uint32_t raw_ep_best_msg(const struct weft_lane_ep *lane_ep)
{
	const struct raw_conn *c = (const struct raw_conn *)lane_ep;

	return c->tx.room - (uint32_t)sizeof(struct weft_frame_msg);
}

void raw_mtu_suspect(struct raw_conn *c, uint32_t seq)
{
	/* In another state mtu_again is a time of the handshake. */
	if (c->state != RAW_UP || !c->mtu.parts || (c->mtu.searching && !c->mtu.raising) ||
	    c->iface->live_clock < c->mtu_again || present_size(c) <= floor_size(c->iface) ||
	    raw_slot(&c->tx, seq)->bytes + c->encap.len <= floor_size(c->iface))
		return;
	c->mtu.suspect = seq;
	search_begin(c, present_size(c), 0);
}

enum weft_mtu_result raw_mtu_round(struct raw_conn *c)
{
	enum weft_mtu_result result;
	unsigned int big, small;

	result = weft_mtu_search_round(c->search, c->iface->live_clock, &big, &small);
	c->probe_id = c->search->id;
	while (big-- > 0)
		raw_probe_send(c, c->search->size);
	while (small-- > 0)
		raw_probe_send(c, 0);
	return result;
}

void raw_mtu_timer(struct raw_conn *c)
{
	uint64_t live_clock = c->iface->live_clock, silent = live_clock - c->rx.seen;

	if (!c->mtu.searching) {
		c->mtu.raises++;
		if (!search_begin(c, c->frame_size, present_size(c))) {
			c->mtu_next = live_clock + RAISE_NS;
			return;
		}
	} else if (!c->mtu.raising && c->search->hi == 0 && suspect_arrived(c)) {
		search_over(c, true);
		return;
	}
	search_result(c, raw_mtu_round(c));
	if (c->mtu.searching && silent > SILENCE_NS)
		c->mtu_next = RTE_MAX(c->mtu_next, live_clock + RTE_MIN(silent / 2, SLOW_NS));
}

void raw_mtu_ack(struct raw_conn *c, uint16_t id, uint16_t size)
{
	if (!c->mtu.searching)
		return;
	search_result(c, weft_mtu_search_ack(c->search, id, size, c->iface->live_clock));
	if (c->mtu_next != 0)
		raw_deadline_live(c, RTE_MAX(c->mtu_next, c->iface->live_clock + 1));
}
