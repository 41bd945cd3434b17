/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving. The kernel writes each datagram into a buffer, behind the room for its headers. It may
 * merge datagrams of one flow (UDP_GRO) and give up to 64 KiB at once: while it does, each message
 * has several buffers of the length that the frames had last, so that every frame lands in one of
 * its own. What does not fit, or has another length, is copied.
 *
 * Sockets: the one that received last is polled by each call, all others through epoll now and then
 * and when it has nothing.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "udp/header.h"
#include "udp/priv.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define SPILL 65536u
#define MSGS_MERGED 4u /* messages of a call while the kernel merges */
#define SEG_MIN 512u   /* merged frames shorter than this are copied */
#define CALM 64u       /* calls without a merged datagram after which none is expected */
#define OTHERS_IDLE 4u /* calls without datagrams between two checks of the other sockets */
#define OTHERS_BUSY 2u /* calls with datagrams */
#define RESERVE 256u   /* places of the queue for ARP replies */

#define FULL (RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD)

union control {
	struct cmsghdr align;
	char room[3 * CMSG_SPACE(sizeof(int))]; /* TOS, length of segments, dropped datagrams */
};

struct call {
	struct mmsghdr msg[WEFT_UDP_MSGS];
	struct sockaddr_in from[WEFT_UDP_MSGS];
	union control control[WEFT_UDP_MSGS];
	struct iovec iov[WEFT_UDP_MSGS * (WEFT_UDP_SEGS + 1)];
	uint32_t msgs, bufs, seg; /* buffers of a message, and bytes of each */
};

/* A datagram, or several that the kernel has merged. */
struct datagram {
	struct weft_udp_way way;
	uint32_t len, seg;
};

int weft_udp_rx_init(struct weft_udp *u)
{
	u->rx.spill = malloc((WEFT_UDP_MSGS + 1) * SPILL);
	if (!u->rx.spill)
		return -ENOMEM;
	u->rx.flat = u->rx.spill + WEFT_UDP_MSGS * SPILL;
	return 0;
}

void weft_udp_rx_fini(struct weft_udp *u)
{
	struct weft_udp_rx *rx = &u->rx;

	for (; rx->count > 0; rx->count--, rx->head++)
		rte_pktmbuf_free(rx->queue[rx->head % WEFT_UDP_QUEUE]);
	while (rx->stashed > 0)
		rte_pktmbuf_free(rx->stash[--rx->stashed]);
	free(rx->spill);
}

static void put(struct weft_udp_rx *rx, struct rte_mbuf *m)
{
	rx->queue[(rx->head + rx->count++) % WEFT_UDP_QUEUE] = m;
}

bool weft_udp_rx_put(struct weft_udp *u, const void *frame, uint32_t len)
{
	struct rte_mbuf *m;
	char *at;

	if (u->rx.count == WEFT_UDP_QUEUE)
		return false;
	m = rte_pktmbuf_alloc(u->fp.hdr_pool);
	at = m ? rte_pktmbuf_append(m, (uint16_t)len) : NULL;
	if (!at) {
		u->stats.rx_no_buffer++;
		rte_pktmbuf_free(m);
		return false;
	}
	memcpy(at, frame, len);
	put(&u->rx, m);
	return true;
}

/* The last buffers of the stash are those of the first message: what is left stays in place. */
static struct rte_mbuf **bufs_of(struct weft_udp *u, const struct call *c, uint32_t k)
{
	return &u->rx.stash[u->rx.stashed - (k + 1) * c->bufs];
}

/* ---- frames --------------------------------------------------------------------------------- */

static uint32_t room(const struct weft_udp *u)
{
	return u->fp.frame_size - WEFT_UDP_HEAD;
}

static void deliver(struct weft_udp *u, struct rte_mbuf *m, const struct weft_udp_way *way,
		    uint32_t len)
{
	weft_udp_head(rte_pktmbuf_mtod(m, uint8_t *), way, len);
	m->data_len = (uint16_t)(WEFT_UDP_HEAD + len);
	m->pkt_len = m->data_len;
	m->ol_flags |= FULL;
	put(&u->rx, m);
}

static void copy_frame(struct weft_udp *u, const struct weft_udp_way *way, const uint8_t *from,
		       uint32_t len)
{
	struct rte_mbuf *m;

	if (len > room(u)) {
		u->stats.rx_too_long++;
		return;
	}
	m = rte_pktmbuf_alloc(u->fp.pool);
	if (!m) {
		u->stats.rx_no_buffer++;
		return;
	}
	u->stats.rx_copied++;
	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, WEFT_UDP_HEAD), from, len);
	deliver(u, m, way, len);
}

/* The frames have another length than the buffers: all bytes in one place, and then in frames. */
static void reshape(struct weft_udp *u, const struct call *c, uint32_t k, const struct datagram *d)
{
	const struct iovec *iov = c->msg[k].msg_hdr.msg_iov;
	uint32_t at = 0, n;

	for (; at < d->len; at += n, iov++) {
		n = RTE_MIN((uint32_t)iov->iov_len, d->len - at);
		memcpy(u->rx.flat + at, iov->iov_base, n);
	}
	for (at = 0; at < d->len; at += n) {
		n = RTE_MIN(d->seg, d->len - at);
		copy_frame(u, &d->way, u->rx.flat + at, n);
	}
}

/* @return buffers of the message that are used up */
static uint32_t take(struct weft_udp *u, const struct call *c, uint32_t k, const struct datagram *d)
{
	struct rte_mbuf **bufs = bufs_of(u, c, k);
	uint32_t at, n, used = 0;

	u->stats.rx_datagrams += (d->len + d->seg - 1) / d->seg;
	if (d->seg != c->seg && (d->len > d->seg || d->len > c->seg)) {
		reshape(u, c, k, d);
		return 0;
	}
	for (at = 0; at < d->len; at += n) {
		n = RTE_MIN(d->seg, d->len - at);
		if (used < c->bufs)
			deliver(u, bufs[used++], &d->way, n);
		else
			copy_frame(u, &d->way, u->rx.spill + k * SPILL + (at - used * c->seg), n);
	}
	return used;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* @return messages for which there are buffers */
static uint32_t prepare(struct weft_udp *u, struct call *c)
{
	struct weft_udp_rx *rx = &u->rx;
	uint32_t want, msgs = rx->seg != 0 ? MSGS_MERGED : WEFT_UDP_MSGS;

	c->seg = rx->seg != 0 ? rx->seg : room(u);
	c->bufs = rx->seg != 0 ? RTE_MIN(SPILL / rx->seg + 1, WEFT_UDP_SEGS) : 1;
	want = msgs * c->bufs;
	if (rx->stashed < want &&
	    rte_pktmbuf_alloc_bulk(u->fp.pool, &rx->stash[rx->stashed], want - rx->stashed) == 0)
		rx->stashed = want;
	c->msgs = RTE_MIN(rx->stashed / c->bufs, msgs);
	if (c->msgs == 0 && rx->stashed > 0) {
		c->bufs = rx->stashed;
		c->msgs = 1;
	}
	return c->msgs;
}

static void prepare_msg(struct weft_udp *u, struct call *c, uint32_t k)
{
	struct iovec *iov = &c->iov[k * (c->bufs + 1)];
	struct rte_mbuf **bufs = bufs_of(u, c, k);

	for (uint32_t i = 0; i < c->bufs; i++)
		iov[i] = (struct iovec){
			.iov_base = rte_pktmbuf_mtod_offset(bufs[i], uint8_t *, WEFT_UDP_HEAD),
			.iov_len = c->seg,
		};
	iov[c->bufs] = (struct iovec){.iov_base = u->rx.spill + k * SPILL, .iov_len = SPILL};
	c->msg[k].msg_hdr = (struct msghdr){
		.msg_name = &c->from[k],
		.msg_namelen = sizeof(c->from[k]),
		.msg_iov = iov,
		.msg_iovlen = c->bufs + 1,
		.msg_control = &c->control[k],
		.msg_controllen = sizeof(c->control[k]),
	};
}

static void missed(struct weft_udp *u, struct weft_udp_sock *s, uint32_t now)
{
	u->stats.rx_missed += now - s->missed; /* the kernel counts modulo 2^32 */
	s->missed = now;
}

static void read_control(struct weft_udp *u, struct weft_udp_sock *s, struct msghdr *h,
			 struct datagram *d)
{
	uint32_t number;
	int seg;

	for (struct cmsghdr *m = CMSG_FIRSTHDR(h); m; m = CMSG_NXTHDR(h, m)) {
		if (m->cmsg_level == IPPROTO_IP && m->cmsg_type == IP_TOS) {
			d->way.tos = *CMSG_DATA(m);
		} else if (m->cmsg_level == IPPROTO_UDP && m->cmsg_type == UDP_GRO) {
			memcpy(&seg, CMSG_DATA(m), sizeof(seg));
			if (seg > 0 && (uint32_t)seg < d->len)
				d->seg = (uint32_t)seg;
		} else if (m->cmsg_level == SOL_SOCKET && m->cmsg_type == SO_RXQ_OVFL) {
			memcpy(&number, CMSG_DATA(m), sizeof(number));
			missed(u, s, number);
		}
	}
}

/* @return buffers that are used up */
static uint32_t received(struct weft_udp *u, struct call *c, uint32_t k, uint32_t sock)
{
	struct msghdr *h = &c->msg[k].msg_hdr;
	struct datagram d = {
		.way = {.src_ip = ntohl(c->from[k].sin_addr.s_addr),
			.src_port = ntohs(c->from[k].sin_port),
			.dst_ip = u->ip,
			.dst_port = (uint16_t)(u->block + sock)},
		.len = c->msg[k].msg_len,
		.seg = c->msg[k].msg_len,
	};

	read_control(u, &u->sock[sock], h, &d);
	if (d.len == 0)
		return 0;
	if (d.seg < d.len && d.seg >= SEG_MIN) {
		u->rx.calm = 0;
		u->rx.seg = d.seg;
	}
	/* Longer than a frame: not a peer's, and perhaps longer than a buffer's room. */
	if (h->msg_flags & MSG_TRUNC || d.seg > room(u)) {
		u->stats.rx_too_long++;
		return 0;
	}
	return take(u, c, k, &d);
}

/* Buffers that are used up leave the stash. */
static void compact(struct weft_udp *u, const struct call *c, const uint32_t *used, uint32_t msgs)
{
	uint32_t to = u->rx.stashed - msgs * c->bufs;

	for (uint32_t k = msgs; k-- > 0;)
		for (uint32_t i = used[k]; i < c->bufs; i++)
			u->rx.stash[to++] = bufs_of(u, c, k)[i];
	u->rx.stashed = to;
}

static bool poll_sock(struct weft_udp *u, uint32_t sock)
{
	uint32_t used[WEFT_UDP_MSGS];
	struct call c;
	int got;

	if (u->rx.count + WEFT_UDP_MSGS * WEFT_UDP_SEGS + RESERVE > WEFT_UDP_QUEUE)
		return false;
	if (prepare(u, &c) == 0) {
		u->stats.rx_no_buffer++;
		return false;
	}
	for (uint32_t k = 0; k < c.msgs; k++)
		prepare_msg(u, &c, k);
	got = recvmmsg(u->sock[sock].fd, c.msg, c.msgs, MSG_DONTWAIT, NULL);
	u->stats.rx_calls++;
	if (++u->rx.calm >= CALM)
		u->rx.seg = 0;
	if (got <= 0) {
		u->stats.rx_empty++;
		return false;
	}
	for (int k = 0; k < got; k++)
		used[k] = received(u, &c, (uint32_t)k, sock);
	compact(u, &c, used, (uint32_t)got);
	return true;
}

static void poll_others(struct weft_udp *u)
{
	struct epoll_event ev[WEFT_UDP_PORTS];
	uint32_t before = u->rx.hot;
	int n;

	u->rx.quiet = 0;
	n = epoll_wait(u->epoll, ev, WEFT_UDP_PORTS, 0);
	for (int i = 0; i < n; i++)
		if (ev[i].data.u32 != before && poll_sock(u, ev[i].data.u32))
			u->rx.hot = ev[i].data.u32;
}

uint16_t weft_udp_rx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct weft_udp *u = weft_udp_of(fp);
	struct weft_udp_rx *rx = &u->rx;
	bool busy;
	uint16_t i;

	if (rx->count == 0) {
		busy = poll_sock(u, rx->hot);
		if (u->num_socks > 1 && ++rx->quiet >= (busy ? OTHERS_BUSY : OTHERS_IDLE))
			poll_others(u);
	}
	for (i = 0; i < n && rx->count > 0; i++, rx->count--)
		pkts[i] = rx->queue[rx->head++ % WEFT_UDP_QUEUE];
	return i;
}
