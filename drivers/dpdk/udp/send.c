/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending. Frames of one way (addresses, ports, TOS) and length that follow each other leave as one
 * message, which the kernel or the NIC cuts into datagrams (UDP_SEGMENT); only the last may be
 * shorter. Several messages leave by one system call. A message that is cut behind a router is lost
 * as a whole where a frame of it is too long, so only frames of data share one: the engine's probes
 * for the MTU are alone. The kernel copies the bytes, so a frame's
 * buffers, and user memory that it refers to, are free when the call returns.
 *
 * A socket without room is a full ring: the engine tries again. All other errors lose the frame, as
 * a network would: the interface is down, there is no route, a firewall drops it, or it is longer
 * than the interface's MTU. The engine finds out by itself and acts on each.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "udp/header.h"
#include "udp/priv.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define IOVS 512u /* of one call; a frame has few, and 64 frames are one message */

/* Control data of one message: TOS, length of segments. */
union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint16_t))];
};

/* One system call, as it is put together. */
struct call {
	struct weft_udp *u;
	struct weft_udp_sock *sock;
	unsigned int msgs, iovs;
	uint16_t frames[WEFT_UDP_MSGS]; /* of each message */
	struct mmsghdr msg[WEFT_UDP_MSGS];
	struct sockaddr_in to[WEFT_UDP_MSGS];
	union control control[WEFT_UDP_MSGS];
	struct iovec iov[IOVS];
};

/* The message to which frames are added. */
struct open_msg {
	struct weft_udp_way way;
	uint32_t seg, bytes;
	bool ended; /* a shorter frame, or one that is no data */
};

static bool same_way(const struct weft_udp_way *a, const struct weft_udp_way *b)
{
	return a->dst_ip == b->dst_ip && a->src_port == b->src_port && a->dst_port == b->dst_port &&
	       a->tos == b->tos;
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

static void close_msg(struct call *c, const struct open_msg *m)
{
	struct msghdr *h = &c->msg[c->msgs - 1].msg_hdr;
	uint16_t seg = (uint16_t)m->seg;

	if (c->frames[c->msgs - 1] > 1)
		put_control(h, IPPROTO_UDP, UDP_SEGMENT, &seg, sizeof(seg));
}

static void open_msg(struct call *c, struct open_msg *m, const struct weft_udp_sent *sent,
		     uint32_t len)
{
	const struct weft_udp_way *way = &sent->way;
	unsigned int i = c->msgs++;
	int tos = way->tos;

	c->to[i] = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(way->dst_port),
		.sin_addr.s_addr = htonl(way->dst_ip),
	};
	c->msg[i].msg_hdr = (struct msghdr){
		.msg_name = &c->to[i],
		.msg_namelen = sizeof(c->to[i]),
		.msg_iov = &c->iov[c->iovs],
		.msg_control = &c->control[i],
	};
	memset(&c->control[i], 0, sizeof(c->control[i]));
	put_control(&c->msg[i].msg_hdr, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	c->frames[i] = 0;
	*m = (struct open_msg){.way = *way, .seg = len, .ended = !sent->data};
}

static bool fits(const struct call *c, const struct open_msg *m, const struct weft_udp_sent *sent,
		 uint32_t len)
{
	return c->msgs > 0 && c->u->gso && !m->ended && sent->data && len <= m->seg &&
	       m->bytes + len <= WEFT_UDP_BYTES && c->frames[c->msgs - 1] < WEFT_UDP_SEGS &&
	       same_way(&m->way, &sent->way);
}

static void add_frame(struct call *c, struct open_msg *m, const struct rte_mbuf *pkt)
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
 * Puts the first frames together that leave by one socket. Those that can't be sent at all end the
 * call, and are handled alone.
 * @return frames
 */
static uint16_t gather(struct call *c, struct rte_mbuf **pkts, uint16_t n)
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

static bool is_full(int err)
{
	return err == EAGAIN || err == EWOULDBLOCK || err == EINTR;
}

static void count_lost(struct weft_udp *u, int err, uint32_t frames)
{
	if (err == EMSGSIZE)
		u->stats.tx_too_long += frames;
	else
		u->stats.tx_failed += frames;
}

/*
 * The kernel has refused a message of several frames: one by one, the good ones leave, and each
 * error counts for its own frame. EIO: the route's device cannot cut messages.
 * @return frames that are done
 */
static uint16_t singly(struct call *c, unsigned int k, int err, struct rte_mbuf **pkts)
{
	struct weft_udp *u = c->u;
	uint16_t n = c->frames[k], i;

	if (err == EIO)
		u->gso = false;
	for (i = 0; i < n; i++) {
		struct call one = {.u = u};

		gather(&one, &pkts[i], 1);
		u->stats.tx_calls++;
		if (one.sock && sendmmsg(one.sock->fd, one.msg, 1, MSG_DONTWAIT) == 1) {
			u->stats.tx_datagrams++;
			continue;
		}
		if (is_full(errno))
			break;
		count_lost(u, errno, 1);
	}
	return i;
}

/* @return frames that are done: sent or lost */
static uint16_t send_call(struct call *c, struct rte_mbuf **pkts)
{
	struct weft_udp *u = c->u;
	unsigned int k = 0;
	uint16_t done = 0, n;
	int got;

	while (k < c->msgs) {
		got = sendmmsg(c->sock->fd, &c->msg[k], c->msgs - k, MSG_DONTWAIT);
		u->stats.tx_calls++;
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

/* ARP, or a frame from a port that another socket of this host has. */
static void odd_frame(struct weft_udp *u, const struct rte_mbuf *pkt)
{
	struct weft_udp_arp reply;
	struct weft_udp_sent sent;

	weft_udp_read(rte_pktmbuf_mtod(pkt, const uint8_t *), &sent);
	if (!sent.arp)
		u->stats.tx_no_port++;
	else if (weft_udp_arp_reply(sent.arp, &reply))
		weft_udp_rx_put(u, &reply, sizeof(reply));
}

uint16_t weft_udp_tx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t done = 0, some, sent;
	struct call c;

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
