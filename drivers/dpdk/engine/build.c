/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_mbuf.h>

#include "engine/build.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/sealed_frame.h"
#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "frame/parse.h"

/* ---------------------------------------------------------------- queue to the port */

/* Frames that the port does not take stay in the queue: no thread spins on a full ring. */
void raw_txq_flush(struct raw_iface *iface)
{
	unsigned int n, sent;

	while (iface->txq.count > 0) {
		n = RTE_MIN(iface->txq.count, RAW_TXQ - iface->txq.head);
		n = RTE_MIN(n, RTE_MAX(iface->tx_batch, RAW_BURST));
		sent = raw_port_tx(iface, n);
		iface->txq.head = (iface->txq.head + sent) % RAW_TXQ;
		iface->txq.count -= sent;
		if (sent > 0) {
			/* So idle_poll() soon calls tx_kick(), even after a long idle time. */
			iface->tx_used = true;
			iface->idle_polls = 0;
		}
		if (unlikely(iface->ended != 0)) {
			raw_txq_end(iface);
			return;
		}
		if (sent < n) {
			raw_count(iface, RAW_TX_RING_FULL);
			return;
		}
	}
	/* An empty queue begins at 0, so that the end of the array rarely cuts a burst in two. */
	iface->txq.head = 0;
}

void raw_txq_drop(struct raw_iface *iface)
{
	while (iface->txq.count > 0) {
		rte_pktmbuf_free(iface->txq.frames[iface->txq.head]);
		iface->txq.head = (iface->txq.head + 1) % RAW_TXQ;
		iface->txq.count--;
	}
}

void raw_txq_end(struct raw_iface *iface)
{
	iface->counter[RAW_DROP_ENDED] += iface->txq.count;
	raw_txq_drop(iface);
	iface->txq.head = 0;
}

/* ---------------------------------------------------------------- frames */

/*
 * RESETs of an iface: the least mean of the ns between two, and how many may leave at once after a
 * pause in addition to the first. Unknown senders must not cause floods, and a restarted process
 * must reach all its former peers.
 */
#define RESET_GAP 100000ull
#define RESET_BURST 32u

#define ECN_MAX \
	(sizeof(struct weft_frame_ecn) + WEFT_FRAME_PATHS_MAX * sizeof(struct weft_frame_ecn_path))

#define ARP_FRAME (RTE_ETHER_MIN_LEN - RTE_ETHER_CRC_LEN)

/* If no host has number @p dst any more, the destination is the unspecified address: no host's. */
static void put_ip6(const struct raw_iface *iface, uint32_t dst, struct weft_encap_addr *a)
{
	const struct in6_addr *ip;

	if (!iface->rx_filter.six)
		return;
	a->six = true;
	memcpy(a->src_ip6, iface->rx_filter.ip6, sizeof(a->src_ip6));
	ip = weft_hosts_ip(iface->port->hosts, dst);
	if (ip)
		memcpy(a->dst_ip6, ip, sizeof(a->dst_ip6));
}

static struct weft_encap_addr conn_addr(const struct raw_conn *c)
{
	const struct raw_iface *iface = c->iface;
	struct weft_encap_addr a = {
		.vlan = iface->rx_filter.vlan,
		.raw_ethertype = iface->rx_filter.raw_ethertype,
		.tos = (uint8_t)(iface->dscp << 2 | (c->ect ? WEFT_IP_ECT0 : 0)),
		.src_ip = iface->rx_filter.ip,
		.dst_ip = c->peer_ip,
		.src_port = iface->rx_filter.udp_port,
		.dst_port = c->peer_port,
	};

	memcpy(a.src_mac, iface->rx_filter.mac, 6);
	memcpy(a.dst_mac, c->peer_mac, 6);
	put_ip6(iface, c->peer_ip, &a);
	return a;
}

/* Builds c->tmpl: the headers in front of the body, with the fields that all DATA frames share. */
void raw_conn_template(struct raw_conn *c)
{
	struct weft_encap_addr a = conn_addr(c);
	struct weft_frame_hdr *hdr;

	weft_encap_build(&c->encap, c->tmpl, &a);
	hdr = (struct weft_frame_hdr *)(c->tmpl + c->encap.len);
	*hdr = (struct weft_frame_hdr){
		.magic = weft_put16(WEFT_FRAME_MAGIC),
		.version = WEFT_FRAME_VERSION,
		.type = WEFT_FRAME_DATA,
		.dst_conn = weft_put32(c->remote_id),
		.token = weft_put32(c->remote_token),
		.src_conn = weft_put16((uint16_t)c->id),
	};
}

void raw_farewell_enter(struct raw_conn *c)
{
	struct weft_frame_port *port = c->iface->port;
	struct weft_encap_addr a = conn_addr(c);
	uint8_t frame[WEFT_FAREWELL_MAX];
	uint32_t len;

	if (!port->ops->farewell)
		return;
	a.src_port = c->path[0].sport;
	a.dst_port = c->path[0].dport;
	if (c->sealed)
		len = raw_sealed_farewell(c, &a, frame);
	else
		len = weft_frame_farewell(frame, &a, (uint16_t)c->remote_id, c->id, c->token);
	port->ops->farewell(port, &c->farewell, frame, len);
}

void raw_farewell_remove(struct raw_conn *c)
{
	struct weft_frame_port *port = c->iface->port;

	if (port->ops->farewell)
		port->ops->farewell(port, &c->farewell, NULL, 0);
}

static uint32_t crc_chain(const struct rte_mbuf *m, uint32_t skip, uint32_t len)
{
	uint32_t crc = WEFT_CRC32C_INIT, n;

	for (; m && len > 0; m = m->next, skip = 0) {
		n = RTE_MIN((uint32_t)m->data_len - skip, len);
		crc = weft_crc32c(crc, rte_pktmbuf_mtod_offset(m, const uint8_t *, skip), n);
		len -= n;
	}
	return ~crc;
}

/* The builder of the frame has reserved the CRC's bytes: the last four of the last segment. */
static void put_crc(struct rte_mbuf *m, uint32_t skip, uint32_t lane_len)
{
	struct rte_mbuf *last = rte_pktmbuf_lastseg(m);
	weft_le32 crc = weft_put32(crc_chain(m, skip, lane_len));

	memcpy(rte_pktmbuf_mtod_offset(last, uint8_t *, last->data_len - 4), &crc, 4);
}

/* rte_ipv4_udptcp_cksum_mbuf() is not used: it loses carries of odd segments (DPDK 22.11). */
static void put_udp_csum(struct raw_conn *c, struct rte_mbuf *m, uint32_t udp_len)
{
	uint32_t skip = (uint32_t)c->encap.l2_len + c->encap.l3_len, n, odd = 0;
	struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, struct rte_udp_hdr *, skip);
	uint32_t sum = (uint32_t)c->encap.udp_sum + weft_be16((uint16_t)udp_len);
	uint16_t part, csum;

	if (c->iface->port->flags & WEFT_FRAME_PORT_TX_CSUM) {
		/* The field has the sum of the pseudo header; the NIC adds that of the datagram. */
		udp->dgram_cksum = weft_csum_fold(sum);
		m->ol_flags |=
			(c->encap.l3_len == sizeof(struct rte_ipv4_hdr) ? RTE_MBUF_F_TX_IPV4
									: RTE_MBUF_F_TX_IPV6) |
			RTE_MBUF_F_TX_UDP_CKSUM;
		m->l2_len = c->encap.l2_len;
		m->l3_len = c->encap.l3_len;
		return;
	}
	udp->dgram_cksum = 0;
	for (const struct rte_mbuf *s = m; s; s = s->next, skip = 0) {
		n = (uint32_t)s->data_len - skip;
		part = rte_raw_cksum(rte_pktmbuf_mtod_offset(s, const void *, skip), n);
		/* The sum of a segment at an odd offset has its bytes exchanged. */
		sum += odd ? __builtin_bswap16(part) : part;
		odd ^= n & 1;
	}
	csum = (uint16_t)~weft_csum_fold(sum);
	udp->dgram_cksum = csum == 0 ? UINT16_MAX : csum;
}

/* HELLO_ACK is not sealed: the peer makes its keys from this frame, so it can't open it yet. */
static bool leaves_sealed(const struct raw_conn *c, const struct rte_mbuf *m)
{
	const struct weft_frame_hdr *hdr =
		rte_pktmbuf_mtod_offset(m, const struct weft_frame_hdr *, c->encap.len);

	return c->csum == RAW_CSUM_SEALED && hdr->type != WEFT_FRAME_HELLO_ACK;
}

void raw_put_csum(struct raw_conn *c, struct rte_mbuf *m, uint32_t lane_len, bool crc)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	const struct rte_udp_hdr *udp =
		(const struct rte_udp_hdr *)(frame + c->encap.l2_len + c->encap.l3_len);

	/* A sealed copy leaves instead of this frame, and gets the headers of this frame. */
	if (leaves_sealed(c, m)) {
		weft_encap_patch(&c->encap, frame, lane_len + WEFT_FRAME_SEAL_LEN,
				 weft_be16(udp->src_port), weft_be16(udp->dst_port));
		return;
	}
	if (crc)
		put_crc(m, c->encap.len, lane_len);
	/* IPv6 requires the UDP checksum. With IPv4 the CRC takes its place. */
	if (c->encap.l3_len != 0 && (!crc || c->iface->rx_filter.six))
		put_udp_csum(c, m, (uint32_t)sizeof(*udp) + lane_len + (crc ? 4 : 0));
}

void raw_sealed_queue(struct raw_conn *c, const struct rte_mbuf *m, uint8_t path)
{
	struct rte_mbuf *sealed = raw_sealed_copy(c, m, path);

	if (!sealed)
		return;
	if (c->iface->rx_filter.six)
		put_udp_csum(c, sealed,
			     sealed->pkt_len - c->encap.len + (uint32_t)sizeof(struct rte_udp_hdr));
	raw_txq_push(c->iface, sealed);
}

/* Queue a frame that is not kept for retransmission. */
static void queue_once(struct raw_conn *c, struct rte_mbuf *m, uint8_t path)
{
	if (!leaves_sealed(c, m)) {
		raw_txq_push(c->iface, m);
		return;
	}
	raw_sealed_queue(c, m, path);
	rte_pktmbuf_free(m);
}

static struct rte_mbuf *ctl_alloc(struct raw_iface *iface, uint32_t size)
{
	struct rte_mempool *pool = iface->port->hdr_pool;
	struct rte_mbuf *m;

	if (raw_txq_space(iface) == 0) {
		raw_txq_flush(iface);
		if (raw_txq_space(iface) == 0)
			return NULL;
	}
	if (size > (uint32_t)rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM)
		pool = iface->port->pool;
	m = rte_pktmbuf_alloc(pool);
	if (!m)
		raw_count(iface, RAW_TX_NO_BUFFER);
	return m;
}

/*
 * Sends a control frame other than ACK and BYE, with a CRC32C unless sealed: such frames are rare,
 * and errors in them would spoil the connection that they set up.
 */
static int ctl_send(struct raw_conn *c, const struct raw_path *over, uint8_t path, uint8_t type,
		    uint16_t flags, const void *body, uint32_t body_len, uint32_t pad_to)
{
	struct raw_iface *iface = c->iface;
	uint32_t lane_len = (uint32_t)sizeof(struct weft_frame_hdr) + body_len;
	uint32_t room = type == WEFT_FRAME_HELLO_ACK ? 4 : raw_csum_room(c);
	struct weft_frame_hdr *hdr;
	struct rte_mbuf *m;
	uint32_t total;
	uint8_t *p;

	if (c->encap.len + lane_len + room < pad_to)
		lane_len = pad_to - c->encap.len - room;
	total = c->encap.len + lane_len + 4;
	m = ctl_alloc(iface, total);
	if (!m)
		return -EAGAIN;
	p = rte_pktmbuf_mtod(m, uint8_t *);
	memset(p, 0, total);
	memcpy(p, c->tmpl, c->encap.len + sizeof(*hdr));
	m->data_len = (uint16_t)total;
	m->pkt_len = total;
	hdr = raw_hdr(c, m);
	hdr->type = type;
	hdr->flags = weft_put16(flags | WEFT_FRAME_F_CRC32C);
	hdr->seq = weft_put32(c->tx.next);
	if (type == WEFT_FRAME_HELLO) {
		/* The receiver has no connection yet: HELLO has the sender's own numbers. */
		hdr->dst_conn = weft_put32(c->id);
		hdr->token = weft_put32(c->token);
	}
	if (body_len > 0)
		memcpy(hdr + 1, body, body_len);
	raw_stamp(c->iface, &c->rx, hdr, over, path);
	raw_finish(c, m, lane_len, over);
	queue_once(c, m, path);
	raw_count(iface, RAW_TX_CONTROL);
	return 0;
}

int raw_ctl_send_on(struct raw_conn *c, uint8_t path, uint8_t type, uint16_t flags,
		    const void *body, uint32_t body_len, uint32_t pad_to)
{
	return ctl_send(c, &c->path[path], path, type, flags, body, body_len, pad_to);
}

int raw_ctl_send_by(struct raw_conn *c, uint8_t path, uint16_t sport, uint16_t dport, uint8_t type,
		    const void *body, uint32_t body_len)
{
	const struct raw_path over = {
		.order = path < c->path_count ? c->path[path].order : 0,
		.sport = sport,
		.dport = dport,
	};

	return ctl_send(c, &over, path, type, 0, body, body_len, 0);
}

int raw_ctl_send(struct raw_conn *c, uint8_t type, uint16_t flags, const void *body,
		 uint32_t body_len, uint32_t pad_to)
{
	return raw_ctl_send_on(c, c->next_path, type, flags, body, body_len, pad_to);
}

uint8_t raw_came_over(const struct raw_conn *c, const struct weft_frame_view *v)
{
	return v->hdr->path < c->path_count ? v->hdr->path : c->next_path;
}

static uint32_t state_size(const struct raw_conn *c, uint32_t words)
{
	uint32_t head = c->encap.len + (uint32_t)sizeof(struct weft_frame_hdr);

	return RTE_MAX(head, RAW_TMPL) + (uint32_t)sizeof(struct weft_frame_sack) + 8 * words + 4;
}

/* Words of a SACK block that fit a frame of the least size, next to the other blocks. */
#define SACK_ALWAYS                                                           \
	((WEFT_FRAME_SIZE_FLOOR - RAW_TMPL - sizeof(struct weft_frame_sack) - \
	  sizeof(struct weft_frame_progress) - 4 - ECN_MAX) /                 \
	 8)

/* No buffer of frame size is free. @return the words of a SACK block that fit a small buffer */
static uint32_t short_sack(const struct raw_conn *c, uint32_t words)
{
	uint32_t room = (uint32_t)rte_pktmbuf_data_room_size(c->iface->port->hdr_pool) -
			RTE_PKTMBUF_HEADROOM;

	return room < state_size(c, 1) ? 0 : RTE_MIN(words, (room - state_size(c, 0)) / 8);
}

static uint32_t put_ecn(const struct raw_conn *c, void *at)
{
	struct weft_frame_ecn *ecn = at;
	struct weft_frame_ecn_path *e = (struct weft_frame_ecn_path *)(ecn + 1);
	uint16_t n = 0;

	for (uint8_t k = 0; k < c->path_room; k++)
		if (c->path[k].marked != 0)
			e[n++] = (struct weft_frame_ecn_path){
				.path = k, .marked = weft_put16(c->path[k].marked)};
	if (n == 0) /* counters modulo 2^16 may all be 0 */
		e[n++] = (struct weft_frame_ecn_path){0};
	*ecn = (struct weft_frame_ecn){.paths = weft_put16(n)};
	return (uint32_t)(sizeof(*ecn) + n * sizeof(*e));
}

/*
 * Sends ACK or BYE. It has a SACK block if received sequences have holes, an ECN block if marks are
 * to be reported, and a progress block if this end has not polled for a time.
 */
static int send_state(struct raw_conn *c, uint8_t path, uint8_t type, uint16_t flags)
{
	struct raw_iface *iface = c->iface;
	uint32_t lane_len = sizeof(struct weft_frame_hdr), words = weft_rxwin_words(&c->rx.win);
	bool marks = c->rx.mark_acks > 0, gaps = true;
	struct weft_frame_progress progress;
	struct weft_frame_sack *sack;
	struct weft_frame_hdr *hdr;
	struct rte_mbuf *m;

	if (unlikely(words > SACK_ALWAYS) &&
	    c->tx.cut < state_size(c, words) + ECN_MAX + sizeof(progress))
		words = SACK_ALWAYS;
	m = ctl_alloc(iface, state_size(c, words) + (marks ? ECN_MAX : 0) + sizeof(progress));
	if (!m && type == WEFT_FRAME_ACK && words > 0) {
		/* A short block is better than no ACK, which the sender would take for silence. */
		words = short_sack(c, words);
		marks = gaps = false;
		m = ctl_alloc(iface, state_size(c, words));
	}
	if (!m)
		return -EAGAIN;
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), c->tmpl, RAW_TMPL);
	hdr = raw_hdr(c, m);
	hdr->type = type;
	hdr->seq = weft_put32(c->tx.next);
	if (words > 0) {
		sack = (struct weft_frame_sack *)(hdr + 1);
		weft_rxwin_sack(&c->rx.win, sack + 1, words);
		sack->words = weft_put16((uint16_t)words);
		sack->reserved = weft_put16(0);
		lane_len += (uint32_t)sizeof(*sack) + 8 * words;
		flags |= WEFT_FRAME_F_SACK;
	}
	if (unlikely(marks)) {
		c->rx.mark_acks--;
		lane_len += put_ecn(c, (uint8_t *)hdr + lane_len);
		flags |= WEFT_FRAME_F_ECN;
	}
	if (gaps && unlikely(raw_gap_take(c, &progress))) {
		memcpy((uint8_t *)hdr + lane_len, &progress, sizeof(progress));
		lane_len += (uint32_t)sizeof(progress);
		flags |= WEFT_FRAME_F_PROGRESS;
	}
	hdr->flags = weft_put16(flags);
	/* With a valid timestamp raw_stamp() notes the delay. */
	if (!c->rx.ts_valid && raw_rx_is_new(iface, &c->rx))
		raw_conn_delay(c, c->rx.echo_path, c->rx.ts_echo);
	raw_stamp(c->iface, &c->rx, hdr, &c->path[path], path);
	m->data_len = (uint16_t)(c->encap.len + lane_len + (flags & WEFT_FRAME_F_CRC32C ? 4 : 0));
	m->pkt_len = m->data_len;
	raw_finish(c, m, lane_len, &c->path[path]);
	queue_once(c, m, path);
	return 0;
}

void raw_probe_key(struct raw_conn *c)
{
	struct weft_frame_probe p = {.frame_size = weft_put16(WEFT_FRAME_PROBE_PING)};
	uint16_t id;

	if (unlikely(raw_sealed_farewell_due(c)))
		raw_farewell_enter(c);
	if (likely(!raw_sealed_probe_due(c, &id)))
		return;
	p.id = weft_put16(id);
	raw_ctl_send_on(c, 0, WEFT_FRAME_PROBE, 0, &p, sizeof(p), 0);
}

void raw_probe_send(struct raw_conn *c, uint16_t size)
{
	struct weft_frame_probe p = {
		.id = weft_put16(c->probe_id),
		.frame_size = weft_put16(size != 0 ? (uint16_t)(size - c->iface->wire_less) : 0),
	};

	raw_ctl_send(c, WEFT_FRAME_PROBE, 0, &p, sizeof(p), size);
}

/* @return the path for an ACK: that of the request that it answers, or else of the newest DATA */
static uint8_t ack_path(const struct raw_conn *c, uint16_t flags)
{
	uint8_t path = c->rx.reply_path != 0 ? c->rx.reply_path - 1 : c->rx.echo_path;

	if (!c->multi)
		return c->next_path;
	/* A request that got no answer is repeated over another path. */
	if (flags & WEFT_FRAME_F_ACK_REQ)
		return (uint8_t)((c->next_path + c->live.pings) % c->path_count);
	return path < c->path_count ? path : c->next_path;
}

int raw_ack_send(struct raw_conn *c, uint16_t flags)
{
	uint8_t path;

	if (c->csum == WEFT_FRAME_CSUM_CRC32C)
		flags |= WEFT_FRAME_F_CRC32C;
	path = ack_path(c, flags);
	if (send_state(c, path, WEFT_FRAME_ACK, flags) != 0)
		return -EAGAIN;
	/* One path may fail in this direction only. */
	for (uint8_t k = 0; c->rx.ack_all && c->multi && k < c->path_count; k++)
		if (k != path)
			send_state(c, k, WEFT_FRAME_ACK, flags);
	c->rx.ack_all = false;
	raw_count(c->iface, RAW_TX_ACKS);
	c->rx.reply_path = 0;
	raw_rx_acked(&c->rx);
	return 0;
}

/*
 * The list has the connections that received within RAW_ACK_DELAY, or whose acknowledgement got no
 * buffer or no place in the queue. So it does not grow with idle connections.
 */
void raw_acks_send_due(struct raw_iface *iface)
{
	struct raw_rx_list list = TAILQ_HEAD_INITIALIZER(list);
	struct raw_conn *c;
	struct raw_rx *rx;

	iface->acks_now = false;
	iface->acks_due = RAW_NEVER;
	TAILQ_CONCAT(&list, &iface->ack_list, ack_link);
	while ((rx = TAILQ_FIRST(&list))) {
		TAILQ_REMOVE(&list, rx, ack_link);
		c = container_of(rx, struct raw_conn, rx);
		if (rx->ack_state != RAW_ACK_NONE &&
		    (rx->ack_state == RAW_ACK_NOW || iface->tx_clock >= rx->ack_due) &&
		    (c->state != RAW_UP || raw_ack_send(c, 0) == 0))
			rx->ack_state = RAW_ACK_NONE;
		if (rx->ack_state != RAW_ACK_NONE) {
			TAILQ_INSERT_TAIL(&iface->ack_list, rx, ack_link);
			iface->acks_due = RTE_MIN(iface->acks_due, rx->ack_due);
		} else {
			rx->on_ack_list = false;
		}
	}
}

/* BYE acknowledges frames out of order, too, by a SACK block: they have been processed. */
int raw_bye_send(struct raw_conn *c)
{
	uint8_t path = c->next_path;

	/* A repeated BYE takes another path: the same path may lose it again. */
	if (c->multi)
		path = (uint8_t)((path + c->hs_tries) % c->path_count);
	if (send_state(c, path, WEFT_FRAME_BYE, WEFT_FRAME_F_CRC32C) != 0)
		return -EAGAIN;
	raw_count(c->iface, RAW_TX_CONTROL);
	return 0;
}

int raw_dest_send(struct raw_iface *iface, const struct raw_dest *d, uint8_t type, const void *body,
		  uint32_t len)
{
	struct weft_encap_addr a = {
		.vlan = iface->rx_filter.vlan,
		.raw_ethertype = iface->rx_filter.raw_ethertype,
		.tos = d->tos,
		.src_ip = iface->rx_filter.ip,
		.dst_ip = d->ip,
		.src_port = d->sport,
		.dst_port = d->dport,
	};
	const struct weft_frame_hdr hdr = {
		.type = type,
		.dst_conn = weft_put32(d->id),
		.token = weft_put32(d->token),
		.ts = weft_put32((uint32_t)iface->now),
		.ts_hold = weft_put16(WEFT_FRAME_NO_ECHO),
	};
	struct rte_mbuf *m = ctl_alloc(iface, WEFT_FRAME_AROUND + (uint32_t)sizeof(hdr) + len);

	if (!m)
		return -EAGAIN;
	memcpy(a.src_mac, iface->rx_filter.mac, 6);
	memcpy(a.dst_mac, d->mac, 6);
	put_ip6(iface, d->ip, &a);
	m->data_len =
		(uint16_t)weft_frame_write(rte_pktmbuf_mtod(m, uint8_t *), &a, &hdr, body, len);
	m->pkt_len = m->data_len;
	raw_txq_push(iface, m);
	iface->counter[RAW_TX_FRAMES]++;
	iface->counter[RAW_TX_BYTES] += m->pkt_len;
	raw_count(iface, RAW_TX_CONTROL);
	return 0;
}

void raw_unknown_sender_reply(struct raw_iface *iface, const struct weft_frame_view *v,
			      uint8_t type, const void *body, uint32_t len)
{
	bool reset = type == WEFT_FRAME_RESET;
	const struct raw_dest d = {
		.mac = v->src_mac,
		.ip = v->src_ip,
		.id = reset ? weft_get16(v->hdr->src_conn) : weft_get32(v->hdr->dst_conn),
		.token = reset ? 0 : weft_get32(v->hdr->token),
		.sport = v->dst_port,
		.dport = v->src_port,
	};

	if (raw_dest_send(iface, &d, type, body, len) == 0 && reset)
		raw_count(iface, RAW_TX_RESET);
}

/* @return the MAC of the peer that has or had index dst_conn, if the frame is from it; or NULL */
static const uint8_t *known_peer(const struct raw_iface *iface, const struct weft_frame_view *v)
{
	uint32_t index = weft_get32(v->hdr->dst_conn) & 0xffff;
	const struct raw_gone *gone;
	const struct raw_conn *c;
	bool by_mac = iface->rx_filter.raw_ethertype;

	if (index >= iface->refs_len)
		return NULL;
	c = iface->refs[index].conn;
	if (c && (by_mac ? memcmp(v->src_mac, c->peer_mac, 6) == 0 : v->src_ip == c->peer_ip))
		return c->peer_mac;
	gone = &iface->gone[index];
	if (gone->known && (by_mac ? memcmp(v->src_mac, gone->mac, 6) == 0 : v->src_ip == gone->ip))
		return gone->mac;
	return NULL;
}

/*
 * May this iface send a RESET for this reason? An iface that has its port alone also answers for
 * earlier processes on that port. On a shared port it answers a HELLO, which names this iface. The
 * connection of another frame may belong to another, live process: the iface answers only for
 * connections that it has made itself, and only their peers at their known addresses. Otherwise any
 * host could find out which generations were used.
 * @param to  set to the MAC to which the answer is sent, where that is not the frame's
 */
static bool answers_for(const struct raw_iface *iface, const struct weft_frame_view *v,
			uint16_t reason, const uint8_t **to)
{
	uint16_t number =
		raw_generation_number(&iface->key, (uint16_t)(weft_get32(v->hdr->dst_conn) >> 16));

	if (!(iface->port->flags & WEFT_FRAME_PORT_SHARED))
		return true;
	switch (reason) {
	case WEFT_RESET_REFUSED:
	case WEFT_RESET_BUSY:
	case WEFT_RESET_SEAL:
		return true;
	case WEFT_RESET_UNKNOWN:
		if (v->type == WEFT_FRAME_HELLO)
			return true;
		*to = known_peer(iface, v);
		return number < iface->generation && *to != NULL;
	default:
		return false;
	}
}

/* The frame belongs to no connection of this iface, or its HELLO is rejected. */
void raw_reset_send(struct raw_iface *iface, const struct weft_frame_view *v, uint16_t reason)
{
	/* dst_conn and token of a HELLO are the sender's own numbers, in every version. */
	struct weft_frame_reset body = {
		.reason = weft_put16(reason),
		.version_min = WEFT_FRAME_VERSION,
		.version_max = WEFT_FRAME_VERSION,
		.echo_conn = v->hdr->dst_conn,
		.echo_token = v->hdr->token,
	};

	struct weft_frame_view view = *v;

	if (!answers_for(iface, v, reason, &view.src_mac)) {
		raw_count(iface, RAW_RESET_NOT_OURS);
		return;
	}
	if (iface->now < iface->next_reset)
		return;
	iface->next_reset =
		RESET_GAP + RTE_MAX(iface->next_reset,
				    iface->now - RTE_MIN(iface->now, RESET_BURST * RESET_GAP));
	raw_unknown_sender_reply(iface, &view, WEFT_FRAME_RESET, &body, sizeof(body));
}

static uint32_t write_arp(const struct raw_iface *iface, const uint8_t dst[6],
			  const struct rte_arp_hdr *pkt, uint8_t *p)
{
	uint8_t l2;

	memset(p, 0, ARP_FRAME + RTE_VLAN_HLEN);
	l2 = weft_encap_l2(p, dst, iface->rx_filter.mac, iface->rx_filter.vlan, RTE_ETHER_TYPE_ARP);
	memcpy(p + l2, pkt, sizeof(*pkt));
	return ARP_FRAME + l2 - RTE_ETHER_HDR_LEN;
}

void raw_arp_send(struct raw_iface *iface, const uint8_t dst[6], const struct rte_arp_hdr *pkt)
{
	struct rte_mbuf *m = ctl_alloc(iface, RTE_MAX(ARP_FRAME + RTE_VLAN_HLEN, WEFT_ND_MAX));
	uint32_t len;
	uint8_t *p;

	if (!m)
		return;
	p = rte_pktmbuf_mtod(m, uint8_t *);
	len = iface->rx_filter.six ? weft_nd_write(&iface->rx_filter, iface->port->hosts, pkt, p)
				   : write_arp(iface, dst, pkt, p);
	if (len == 0) {
		rte_pktmbuf_free(m);
		return;
	}
	m->data_len = (uint16_t)len;
	m->pkt_len = m->data_len;
	raw_txq_push(iface, m);
	raw_count(iface, RAW_TX_FRAMES);
	iface->counter[RAW_TX_BYTES] += len;
}
