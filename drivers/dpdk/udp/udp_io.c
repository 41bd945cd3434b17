/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends frames as datagrams, and makes frames of received datagrams. */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "udp/udp.h"
#include "udp/udp_io.h"

/* ---- receiving ------------------------------------------------------------------------------ */

/*
 * Receiving. The kernel writes each datagram into a buffer, behind the room for its headers. It may
 * merge datagrams of one flow (UDP_GRO) into a message of up to 64 KiB. While the kernel merges, a
 * call gives each message several buffers, as long as merged frames were last. So each frame has a
 * buffer of its own. Frames that do not fit, or have another length, are copied.
 *
 * A call that finds the port's queue empty polls the socket that received last. Every few such
 * calls also the others are polled that epoll reports. After an empty poll a call is for one
 * message, since the kernel would look for a second one; after a full one for twice as many.
 */

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define SPILL 65536u
#define MSGS_MERGED 4u /* messages of a call while the kernel merges */
#define SEG_MIN 512u   /* merged frames shorter than this are copied */
#define CALM 64u       /* calls without a merged datagram after which none is expected */
#define OTHERS_IDLE 4u /* polls between two checks of the other sockets, if this one is empty */
#define OTHERS_BUSY 2u /* polls between two checks, if this one has received datagrams */
#define RESERVE 256u   /* places of the queue that polls leave for ARP replies and ICMP */

#define FULL (RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD)

union recv_control {
	struct cmsghdr align;
	char room[3 * CMSG_SPACE(sizeof(int))]; /* TOS, segment length, count of drops */
};

struct recv_call {
	struct mmsghdr msg[WEFT_UDP_MSGS];
	union weft_udp_sockaddr from[WEFT_UDP_MSGS];
	union recv_control control[WEFT_UDP_MSGS];
	struct iovec iov[WEFT_UDP_MSGS * (WEFT_UDP_SEGS + 1)];
	uint32_t msgs, bufs, seg; /* messages, buffers of a message, bytes of a buffer */
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
	u->rx.msgs = 1;
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

/* Deliver a frame that the port has made. @return false: there is no room, or no buffer */
static bool rx_put(struct weft_udp *u, const void *frame, uint32_t len)
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

/* Messages take buffers from the stash's end, the first one the last: the others stay in place. */
static struct rte_mbuf **bufs_of(struct weft_udp *u, const struct recv_call *c, uint32_t k)
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

/* If frames have another length than the buffers: copies all bytes to rx.flat, then to frames. */
static void reshape(struct weft_udp *u, const struct recv_call *c, uint32_t k,
		    const struct datagram *d)
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

/* @return number of the message's buffers that are now frames */
static uint32_t take(struct weft_udp *u, const struct recv_call *c, uint32_t k,
		     const struct datagram *d)
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

/* Gets the host (IPv6: its number) and the port of a socket's address, in host order. */
static void take_from(struct weft_udp *u, const union weft_udp_sockaddr *a, uint32_t *ip,
		      uint16_t *port)
{
	*ip = u->fp.hosts ? weft_hosts_number(u->fp.hosts, &a->v6.sin6_addr)
			  : ntohl(a->v4.sin_addr.s_addr);
	*port = ntohs(u->fp.hosts ? a->v6.sin6_port : a->v4.sin_port);
}

/* ---- errors --------------------------------------------------------------------------------- */

/*
 * ICMP about a datagram that a socket has sent. The kernel queues the error at the socket, and the
 * next call fails, whatever its own datagrams are. The engine gets an ICMP packet as from a NIC.
 */

#define ERRORS 64u /* most errors that one call of take_errors() reads */

union error_control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(union weft_udp_sockaddr)) +
		  3 * CMSG_SPACE(sizeof(int))];
};

static bool is_full(int err)
{
	return err == EAGAIN || err == EWOULDBLOCK || err == EINTR;
}

/* Translates to the code of an ICMP error. @return false: @p err is no such ICMPv6 error */
static bool code_of_icmp6(const struct sock_extended_err *err, uint8_t *code)
{
	static const uint8_t codes[] = {
		[ICMP6_DST_UNREACH_NOROUTE] = ICMP_NET_UNREACH,
		[ICMP6_DST_UNREACH_ADMIN] = ICMP_PKT_FILTERED,
		[ICMP6_DST_UNREACH_BEYONDSCOPE] = ICMP_NET_UNREACH,
		[ICMP6_DST_UNREACH_ADDR] = ICMP_HOST_UNREACH,
		[ICMP6_DST_UNREACH_NOPORT] = ICMP_PORT_UNREACH,
	};

	if (err->ee_origin != SO_EE_ORIGIN_ICMP6)
		return false;
	if (err->ee_type == ICMP6_PACKET_TOO_BIG) {
		*code = ICMP_FRAG_NEEDED;
		return true;
	}
	if (err->ee_type != ICMP6_DST_UNREACH || err->ee_code >= sizeof(codes))
		return false;
	*code = codes[err->ee_code];
	return true;
}

/* @return false: the error is no ICMP that reports an undelivered datagram */
static bool read_error(struct msghdr *h, struct weft_udp_error *e)
{
	const struct sockaddr_in *from;
	struct sock_extended_err err;

	for (struct cmsghdr *m = CMSG_FIRSTHDR(h); m; m = CMSG_NXTHDR(h, m)) {
		if (m->cmsg_level == IPPROTO_IPV6 && m->cmsg_type == IPV6_RECVERR) {
			memcpy(&err, CMSG_DATA(m), sizeof(err));
			/* The ICMP sender's address may have no number: use the destination's. */
			e->from_ip = e->way.dst_ip;
			return code_of_icmp6(&err, &e->code);
		}
		if (m->cmsg_level != IPPROTO_IP || m->cmsg_type != IP_RECVERR)
			continue;
		memcpy(&err, CMSG_DATA(m), sizeof(err));
		from = (const struct sockaddr_in *)(CMSG_DATA(m) + sizeof(err));
		e->from_ip = ntohl(from->sin_addr.s_addr);
		e->code = err.ee_code;
		return err.ee_origin == SO_EE_ORIGIN_ICMP && err.ee_type == WEFT_ICMP_UNREACHABLE;
	}
	return false;
}

/* @return false: the socket has no more errors */
static bool take_error(struct weft_udp *u, const struct weft_udp_sock *s)
{
	struct weft_udp_error e = {.way = {.src_ip = u->ip}};
	union error_control control;
	struct weft_udp_icmp frame;
	union weft_udp_sockaddr to;
	struct iovec iov = {.iov_base = e.quote, .iov_len = sizeof(e.quote)};
	struct msghdr h = {
		.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t got = recvmsg(s->fd, &h, MSG_ERRQUEUE | MSG_DONTWAIT);

	if (got < 0)
		return false;
	take_from(u, &to, &e.way.dst_ip, &e.way.dst_port);
	if (!read_error(&h, &e))
		return true;
	e.way.src_port = (uint16_t)(u->block + (s - u->sock));
	rx_put(u, &frame, weft_udp_icmp(&e, (uint32_t)got, &frame));
	return true;
}

static unsigned int take_errors(struct weft_udp *u, const struct weft_udp_sock *s)
{
	unsigned int n = 0;

	while (n < ERRORS && take_error(u, s))
		n++;
	return n;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* @return number of messages for which there are buffers */
static uint32_t prepare(struct weft_udp *u, struct recv_call *c)
{
	struct weft_udp_rx *rx = &u->rx;
	uint32_t want, msgs = RTE_MIN(rx->msgs, rx->seg != 0 ? MSGS_MERGED : WEFT_UDP_MSGS);

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

static void prepare_msg(struct weft_udp *u, struct recv_call *c, uint32_t k)
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

static void read_control(struct weft_udp *u, struct weft_udp_sock *s, struct msghdr *h,
			 struct datagram *d)
{
	uint32_t number;
	int seg;

	for (struct cmsghdr *m = CMSG_FIRSTHDR(h); m; m = CMSG_NXTHDR(h, m)) {
		if (m->cmsg_level == IPPROTO_IP && m->cmsg_type == IP_TOS) {
			d->way.tos = *CMSG_DATA(m);
		} else if (m->cmsg_level == IPPROTO_IPV6 && m->cmsg_type == IPV6_TCLASS) {
			memcpy(&seg, CMSG_DATA(m), sizeof(seg));
			d->way.tos = (uint8_t)seg;
		} else if (m->cmsg_level == IPPROTO_UDP && m->cmsg_type == UDP_GRO) {
			memcpy(&seg, CMSG_DATA(m), sizeof(seg));
			if (seg > 0 && (uint32_t)seg < d->len)
				d->seg = (uint32_t)seg;
		} else if (m->cmsg_level == SOL_SOCKET && m->cmsg_type == SO_RXQ_OVFL) {
			memcpy(&number, CMSG_DATA(m), sizeof(number));
			weft_udp_sock_missed(u, s, number);
		}
	}
}

static bool is_lane_frame(const struct msghdr *h, uint32_t len)
{
	weft_le16 magic;

	if (len < sizeof(struct weft_frame_hdr))
		return false;
	memcpy(&magic, h->msg_iov[0].iov_base, sizeof(magic));
	return weft_get16(magic) == WEFT_FRAME_MAGIC;
}

/* @return number of the message's buffers that are now frames */
static uint32_t received(struct weft_udp *u, struct recv_call *c, uint32_t k, uint32_t sock)
{
	struct msghdr *h = &c->msg[k].msg_hdr;
	struct datagram d = {
		.way = {.dst_ip = u->ip, .dst_port = (uint16_t)(u->block + sock)},
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
	/* A datagram longer than a frame is from no peer, and may exceed a buffer's room. */
	if (h->msg_flags & MSG_TRUNC || d.seg > room(u)) {
		u->stats.rx_too_long++;
		return 0;
	}
	/* Kernels from 6.10 on merge more than the WEFT_UDP_SEGS datagrams of poll_sock(). */
	if (d.len > d.seg * (WEFT_UDP_QUEUE - u->rx.count)) {
		u->stats.rx_no_buffer++;
		return 0;
	}
	/* If the magic is wrong, the sender gets no number: the engine drops such a frame. */
	if (!u->fp.hosts || is_lane_frame(h, d.len))
		take_from(u, &c->from[k], &d.way.src_ip, &d.way.src_port);
	return take(u, c, k, &d);
}

/* Removes the used buffers from the stash. */
static void compact(struct weft_udp *u, const struct recv_call *c, const uint32_t *used,
		    uint32_t msgs)
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
	struct recv_call c;
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
	if (got < 0 && !is_full(errno))
		take_errors(u, &u->sock[sock]);
	if (++u->rx.calm >= CALM)
		u->rx.seg = 0;
	if (got <= 0) {
		u->rx.msgs = 1;
		u->stats.rx_empty++;
		return false;
	}
	u->rx.msgs = (uint32_t)got < c.msgs ? (uint32_t)got : RTE_MIN(2 * c.msgs, WEFT_UDP_MSGS);
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

/* ---- sending -------------------------------------------------------------------------------- */

/*
 * Sending. Successive frames of one way (addresses, ports, TOS) and length leave as one message,
 * which the kernel or the NIC cuts into datagrams (UDP_SEGMENT). Only the last frame may be
 * shorter. Several messages leave by one system call. A router inside this host may get a message
 * before it is cut. It drops all of it if one frame is too long for the next link. So only frames
 * of type DATA share a message: the engine's probes for the MTU leave alone, and so does each frame
 * to a host marked by weft_udp_alone(). The kernel copies the bytes, so a frame's buffers, and user
 * memory that it refers to, are free when the call returns.
 *
 * A socket without room is like a full ring: the engine tries again. After all other errors the
 * frame is lost, as in a network: the interface is down, there is no route, a firewall drops the
 * frame, or it is longer than the interface's MTU. The engine detects such losses itself.
 */

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define IOVS 512u /* most iovecs of one call */

/* Control data of one message: TOS, length of segments. */
union send_control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint16_t))];
};

/* The arguments of one sendmmsg(), to which gather() adds frames. */
struct send_call {
	struct weft_udp *u;
	struct weft_udp_sock *sock;
	unsigned int msgs, iovs;
	uint16_t frames[WEFT_UDP_MSGS]; /* number of frames in each message */
	struct mmsghdr msg[WEFT_UDP_MSGS];
	union weft_udp_sockaddr to[WEFT_UDP_MSGS];
	union send_control control[WEFT_UDP_MSGS];
	struct iovec iov[IOVS];
};

/* The message to which frames are added. */
struct open_msg {
	struct weft_udp_way way;
	uint32_t seg, bytes;
	bool ended; /* no frame may follow: the last is short, no DATA, or has to be alone */
};

static bool same_way(const struct weft_udp_way *a, const struct weft_udp_way *b)
{
	return a->dst_ip == b->dst_ip && a->src_port == b->src_port && a->dst_port == b->dst_port &&
	       a->tos == b->tos;
}

static uint32_t alone_bit(uint32_t ip)
{
	return (ip * UINT32_C(2654435761)) >> 20; /* index of a mark, below WEFT_UDP_ALONE */
}

static_assert(WEFT_UDP_ALONE == 1u << 12, "alone_bit() has 12 bits");

void weft_udp_alone(struct weft_frame_port *fp, uint32_t ip)
{
	struct weft_udp *u = weft_udp_of(fp);

	u->alone[alone_bit(ip) / 64] |= UINT64_C(1) << alone_bit(ip) % 64;
	u->any_alone = true;
}

static bool is_alone(const struct weft_udp *u, uint32_t ip)
{
	return u->any_alone && u->alone[alone_bit(ip) / 64] >> alone_bit(ip) % 64 & 1;
}

static void *put_control(struct msghdr *h, int level, int type, const void *value, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)((char *)h->msg_control + h->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), value, len);
	h->msg_controllen += CMSG_SPACE(len);
	return c;
}

static void close_msg(struct send_call *c, const struct open_msg *m)
{
	struct msghdr *h = &c->msg[c->msgs - 1].msg_hdr;
	uint16_t seg = (uint16_t)m->seg;

	if (c->frames[c->msgs - 1] > 1)
		put_control(h, IPPROTO_UDP, UDP_SEGMENT, &seg, sizeof(seg));
}

static void open_msg(struct send_call *c, struct open_msg *m, const struct weft_udp_sent *sent,
		     uint32_t len)
{
	const struct weft_udp_way *way = &sent->way;
	unsigned int i = c->msgs++;
	int tos = way->tos;

	c->msg[i].msg_hdr = (struct msghdr){
		.msg_name = &c->to[i],
		.msg_namelen = weft_udp_to(c->u, way->dst_ip, way->dst_port, &c->to[i]),
		.msg_iov = &c->iov[c->iovs],
		.msg_control = &c->control[i],
	};
	memset(&c->control[i], 0, sizeof(c->control[i]));
	put_control(&c->msg[i].msg_hdr, c->u->fp.hosts ? IPPROTO_IPV6 : IPPROTO_IP,
		    c->u->fp.hosts ? IPV6_TCLASS : IP_TOS, &tos, sizeof(tos));
	c->frames[i] = 0;
	*m = (struct open_msg){
		.way = *way,
		.seg = len,
		.ended = !sent->data || is_alone(c->u, way->dst_ip),
	};
}

static bool fits(const struct send_call *c, const struct open_msg *m,
		 const struct weft_udp_sent *sent, uint32_t len)
{
	return c->msgs > 0 && c->u->gso && !m->ended && sent->data && len <= m->seg &&
	       m->bytes + len <= WEFT_UDP_BYTES && c->frames[c->msgs - 1] < WEFT_UDP_SEGS &&
	       same_way(&m->way, &sent->way);
}

static void add_frame(struct send_call *c, struct open_msg *m, const struct rte_mbuf *pkt)
{
	struct msghdr *h = &c->msg[c->msgs - 1].msg_hdr;
	uint32_t skip = WEFT_UDP_HEAD, len = pkt->pkt_len - WEFT_UDP_HEAD;

	for (; pkt; pkt = pkt->next, skip = 0) {
		if (pkt->data_len <= skip)
			continue;
		c->iov[c->iovs++] = (struct iovec){
			.iov_base = rte_pktmbuf_mtod_offset(pkt, void *, skip),
			.iov_len = pkt->data_len - skip,
		};
		h->msg_iovlen++;
	}
	m->bytes += len;
	m->ended = m->ended || len < m->seg;
	c->frames[c->msgs - 1]++;
}

/*
 * Puts the first frames of @p pkts together that leave by one socket. A frame for which there is no
 * socket (ARP, a port that is not free, a host without a number) ends the call.
 * @return number of frames; 0: odd_frame() handles the first one
 */
static uint16_t gather(struct send_call *c, struct rte_mbuf **pkts, uint16_t n)
{
	struct open_msg m = {0};
	struct weft_udp_sent sent;
	struct weft_udp_sock *sock;
	uint32_t len;
	uint16_t i;

	c->sock = NULL;
	c->msgs = c->iovs = 0;
	for (i = 0; i < n; i++) {
		weft_udp_read(rte_pktmbuf_mtod(pkts[i], const uint8_t *), &sent);
		if (sent.arp || c->iovs + pkts[i]->nb_segs > IOVS)
			break;
		sock = weft_udp_sock(c->u, sent.way.src_port);
		if (!sock || (c->sock && sock != c->sock))
			break;
		if (c->u->fp.hosts && !weft_hosts_ip(c->u->fp.hosts, sent.way.dst_ip))
			break;
		c->sock = sock;
		len = pkts[i]->pkt_len - WEFT_UDP_HEAD;
		if (!fits(c, &m, &sent, len)) {
			if (c->msgs > 0)
				close_msg(c, &m);
			if (c->msgs == WEFT_UDP_MSGS)
				return i;
			open_msg(c, &m, &sent, len);
		}
		add_frame(c, &m, pkts[i]);
	}
	if (c->msgs > 0)
		close_msg(c, &m);
	return i;
}

static void count_lost(struct weft_udp *u, int err, uint32_t frames)
{
	if (err == EMSGSIZE)
		u->stats.tx_too_long += frames;
	else
		u->stats.tx_failed += frames;
}

/* As sendmmsg(), but repeated if the error was queued for an earlier datagram. */
static int send_msgs(struct weft_udp *u, const struct weft_udp_sock *s, struct mmsghdr *msg,
		     unsigned int n)
{
	int got = sendmmsg(s->fd, msg, n, MSG_DONTWAIT), err = errno;

	u->stats.tx_calls++;
	if (got > 0 || is_full(err))
		return got;
	if (take_errors(u, s) == 0) {
		errno = err;
		return got;
	}
	u->stats.tx_calls++;
	return sendmmsg(s->fd, msg, n, MSG_DONTWAIT);
}

/*
 * Sends the frames of a message that the kernel has refused one by one: each error then counts for
 * one frame only. @p err EIO: the route's device cannot cut messages.
 * @return number of frames that are sent or lost
 */
static uint16_t singly(struct send_call *c, unsigned int k, int err, struct rte_mbuf **pkts)
{
	struct weft_udp *u = c->u;
	uint16_t n = c->frames[k], i;

	if (err == EIO)
		u->gso = false;
	for (i = 0; i < n; i++) {
		struct send_call one = {.u = u};

		gather(&one, &pkts[i], 1);
		if (one.sock && send_msgs(u, one.sock, one.msg, 1) == 1) {
			u->stats.tx_datagrams++;
			continue;
		}
		if (is_full(errno))
			break;
		count_lost(u, errno, 1);
	}
	return i;
}

/* @return number of frames that are sent or lost */
static uint16_t send_call(struct send_call *c, struct rte_mbuf **pkts)
{
	struct weft_udp *u = c->u;
	unsigned int k = 0;
	uint16_t done = 0, n;
	int got;

	while (k < c->msgs) {
		got = send_msgs(u, c->sock, &c->msg[k], c->msgs - k);
		for (int i = 0; i < got; i++, k++) {
			done = (uint16_t)(done + c->frames[k]);
			u->stats.tx_datagrams += c->frames[k];
		}
		if (got > 0)
			continue;
		if (is_full(errno))
			return done;
		if (c->frames[k] == 1) {
			count_lost(u, errno, 1);
			done++;
			k++;
			continue;
		}
		n = singly(c, k, errno, &pkts[done]);
		done = (uint16_t)(done + n);
		if (n < c->frames[k])
			return done;
		k++;
	}
	return done;
}

/* Answers ARP. Counts a frame as lost whose port is not free, or whose host has lost its number. */
static void odd_frame(struct weft_udp *u, const struct rte_mbuf *pkt)
{
	struct weft_udp_arp reply;
	struct weft_udp_sent sent;

	weft_udp_read(rte_pktmbuf_mtod(pkt, const uint8_t *), &sent);
	if (!sent.arp && u->fp.hosts && !weft_hosts_ip(u->fp.hosts, sent.way.dst_ip))
		u->stats.tx_failed++;
	else if (!sent.arp)
		u->stats.tx_no_port++;
	else if (weft_udp_arp_reply(sent.arp, &reply))
		rx_put(u, &reply, sizeof(reply));
}

uint16_t weft_udp_tx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t done = 0, some, sent;
	struct send_call c;

	c.u = weft_udp_of(fp);
	while (done < n) {
		some = gather(&c, &pkts[done], (uint16_t)(n - done));
		if (some == 0) {
			odd_frame(c.u, pkts[done]);
			rte_pktmbuf_free(pkts[done++]);
			continue;
		}
		sent = send_call(&c, &pkts[done]);
		for (uint16_t i = 0; i < sent; i++)
			rte_pktmbuf_free(pkts[done + i]);
		done = (uint16_t)(done + sent);
		if (sent < some)
			break;
	}
	return done;
}
