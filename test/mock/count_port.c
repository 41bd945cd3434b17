/* SPDX-License-Identifier: BSD-3-Clause */

#include "mock/count_port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_mbuf.h>

#include "frame/frame.h"

#define LANE_AT (RTE_ETHER_HDR_LEN + WEFT_IP_UDP_LEN)
#define FRAG_AT (LANE_AT + sizeof(struct weft_frame_hdr) + sizeof(struct weft_frame_msg))
#define ACK_EACH 8u  /* frames */
#define ACK_IDLE 16u /* polls */
#define BUFS 2047u

static struct weft_frame_hdr *lane_hdr(void *frame)
{
	return (struct weft_frame_hdr *)((uint8_t *)frame + LANE_AT);
}

/* ------------------------------------------------------------------ connecting */

static void copy_out(const struct rte_mbuf *m, uint8_t *to)
{
	for (; m; m = m->next) {
		memcpy(to, rte_pktmbuf_mtod(m, void *), m->data_len);
		to += m->data_len;
	}
}

/* A frame from the far end: what it could be used for. */
static void learn(struct count_end *e, struct rte_mbuf *m)
{
	const struct weft_frame_hdr *hdr = lane_hdr(rte_pktmbuf_mtod(m, void *));
	struct rte_mbuf *c;

	if (m->pkt_len < LANE_AT + sizeof(*hdr))
		return;
	if (hdr->type == WEFT_FRAME_ACK && m->pkt_len <= sizeof(e->ack) &&
	    !(weft_get16(hdr->flags) & ~(WEFT_FRAME_F_CRC32C | WEFT_FRAME_F_PROGRESS))) {
		e->ack_len = m->pkt_len;
		copy_out(m, e->ack);
	}
	if (hdr->type != WEFT_FRAME_DATA)
		return;
	e->next_seq = weft_get32(hdr->seq) + 1;
	e->next_order = weft_get32(hdr->order) + 1;
	if (weft_get16(hdr->flags) & ~(WEFT_FRAME_F_ACK_REQ | WEFT_FRAME_F_CRC32C))
		return; /* it was sent again: the ring would have a piece twice */
	c = e->ring_len < COUNT_DEPTH ? rte_pktmbuf_alloc(e->port.pool) : NULL;
	if (!c)
		return;
	copy_out(m, (uint8_t *)rte_pktmbuf_append(c, (uint16_t)m->pkt_len));
	e->ring[e->ring_len++] = c;
}

static void hand_over(struct count_end *from, struct rte_mbuf *m)
{
	struct count_end *to = from->peer;
	struct rte_mbuf *c = rte_pktmbuf_alloc(to->port.pool);

	if (c && to->queued < RTE_DIM(to->queue)) {
		copy_out(m, (uint8_t *)rte_pktmbuf_append(c, (uint16_t)m->pkt_len));
		to->queue[to->queued++] = c;
		learn(to, c);
	} else {
		rte_pktmbuf_free(c);
	}
}

/* ------------------------------------------------------------------ alone */

static void count_frame(struct count_end *e, const struct rte_mbuf *m)
{
	const struct weft_frame_hdr *hdr = lane_hdr(rte_pktmbuf_mtod(m, void *));
	struct count_frag frag;
	const uint8_t *at;

	if (hdr->type != WEFT_FRAME_DATA)
		return;
	e->sent_seq = weft_get32(hdr->seq) + 1;
	e->frames++;
	e->bytes += m->pkt_len;
	if (!e->check)
		return;
	at = rte_pktmbuf_mtod_offset(m, const uint8_t *, FRAG_AT);
	memcpy(&frag, at, sizeof(frag));
	e->check(e->arg, &frag, at + sizeof(frag));
}

static struct rte_mbuf *make_ack(struct count_end *e)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->port.hdr_pool);
	struct weft_frame_hdr *hdr;
	weft_le32 crc;
	uint8_t *at;

	if (!m)
		return NULL;
	at = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)e->ack_len);
	memcpy(at, e->ack, e->ack_len);
	hdr = lane_hdr(at);
	hdr->ack = weft_put32(e->sent_seq);
	hdr->ts_hold = weft_put16(WEFT_FRAME_NO_ECHO);
	crc = weft_put32(~weft_crc32c(WEFT_CRC32C_INIT, hdr, weft_get16(hdr->length)));
	memcpy(at + LANE_AT + weft_get16(hdr->length), &crc, sizeof(crc));
	e->acked_seq = e->sent_seq;
	e->idle = 0;
	return m;
}

static uint16_t rx_ring(struct count_end *e, struct rte_mbuf **pkts, uint16_t n)
{
	/* Acquire: the destinations of these messages are open. */
	uint64_t permitted = atomic_load_explicit(&e->permitted, memory_order_acquire), id;
	struct weft_frame_hdr *hdr;
	struct rte_mbuf *m;
	uint16_t got = 0;

	for (; got < n; e->delivered++) {
		id = e->delivered / e->per_message + 1;
		m = e->ring[e->delivered % COUNT_DEPTH];
		if (id > permitted || rte_mbuf_refcnt_read(m) != 1)
			break;
		hdr = lane_hdr(rte_pktmbuf_mtod(m, void *));
		hdr->seq = weft_put32(e->next_seq++);
		hdr->order = weft_put32(e->next_order++);
		memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, FRAG_AT), &id, sizeof(id));
		rte_mbuf_refcnt_set(m, 2);
		pkts[got++] = m;
	}
	return got;
}

static uint16_t count_rx(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n)
{
	struct count_end *e = (struct count_end *)port;
	uint16_t got = 0;

	if (!e->alone) {
		for (; got < n && got < e->queued; got++)
			pkts[got] = e->queue[got];
		e->queued -= got;
		memmove(e->queue, e->queue + got, e->queued * sizeof(e->queue[0]));
		return got;
	}
	if (e->sent_seq - e->acked_seq >= ACK_EACH ||
	    (e->sent_seq != e->acked_seq && ++e->idle == ACK_IDLE)) {
		pkts[0] = make_ack(e);
		got = pkts[0] != NULL;
	}
	if (e->per_message)
		got += rx_ring(e, pkts + got, n - got);
	return got;
}

static uint16_t count_tx(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n)
{
	struct count_end *e = (struct count_end *)port;

	for (uint16_t i = 0; i < n; i++) {
		if (e->alone)
			count_frame(e, pkts[i]);
		else
			hand_over(e, pkts[i]);
		rte_pktmbuf_free(pkts[i]);
	}
	return n;
}

void count_ring_begin(struct count_end *near)
{
	while (near->ring_len > 0)
		rte_pktmbuf_free(near->ring[--near->ring_len]);
}

void count_ring_fill(struct count_end *near)
{
	uint32_t have = near->ring_len;
	struct rte_mbuf *m, *from;

	for (; near->ring_len < COUNT_DEPTH; near->ring_len++) {
		from = near->ring[near->ring_len % have];
		m = rte_pktmbuf_alloc(near->port.pool);
		if (!m)
			rte_exit(1, "no buffer for the ring\n");
		copy_out(from, (uint8_t *)rte_pktmbuf_append(m, (uint16_t)from->pkt_len));
		near->ring[near->ring_len] = m;
	}
	near->per_message = have;
}

void count_pair_part(struct count_end *near)
{
	near->alone = true;
	near->acked_seq = near->sent_seq = weft_get32(lane_hdr(near->ack)->ack);
}

/* ------------------------------------------------------------------ life */

static bool count_link(struct weft_frame_port *port)
{
	(void)port;
	return true;
}

/* The process ends soon: pools and rings stay. */
static void count_close(struct weft_frame_port *port)
{
	(void)port;
}

static const struct weft_frame_port_ops count_ops = {
	.rx_burst = count_rx,
	.tx_burst = count_tx,
	.link_up = count_link,
	.close = count_close,
};

static struct rte_mempool *pool(const char *what, unsigned int number, uint16_t room)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%u", what, number);
	return rte_pktmbuf_pool_create(name, BUFS, 256, 0, room, SOCKET_ID_ANY);
}

int count_pair_open(struct count_end end[2], unsigned int number, uint16_t frame_size)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct count_end *e = &end[i];
		unsigned int k = 2 * number + i;

		memset(e, 0, sizeof(*e));
		e->peer = &end[1 - i];
		e->port = (struct weft_frame_port){
			.ops = &count_ops,
			.flags = WEFT_FRAME_PORT_MEMORY,
			.mac = {2, 0, 0, 0, (uint8_t)number, (uint8_t)(i + 1)},
			.frame_size = frame_size,
			.tx_depth = 256,
			.rx_depth = 512,
			.bandwidth = 12.5e9,
			.latency = 1e-6,
			.pool = pool("f", k, (uint16_t)(RTE_PKTMBUF_HEADROOM + frame_size + 64)),
			.hdr_pool = pool("h", k, 512),
		};
		snprintf(e->port.name, sizeof(e->port.name), "%u", k);
		if (!e->port.pool || !e->port.hdr_pool)
			return -ENOMEM;
	}
	return 0;
}
