/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of fake ports: rings, the wire, what a NIC does to a frame on its way. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_udp.h>

#include "fake/fake_ethdev_priv.h"

#define FRAME_MAX UINT16_MAX

/* ---- buffers -------------------------------------------------------------------------------- */

uint32_t fake_eth_usable(const struct fake_eth_port *p, const struct rte_mempool *mp)
{
	uint32_t room = rte_pktmbuf_data_room_size((struct rte_mempool *)(uintptr_t)mp) -
			RTE_PKTMBUF_HEADROOM;

	return p->t.buffer ? p->t.buffer(room) : room;
}

void fake_eth_post(struct fake_eth_rxq *q)
{
	unsigned int want = q->ring - RTE_MIN(q->ring, q->port->t.rx_spare);
	struct rte_mbuf *m;

	while (q->posted < want && (m = rte_pktmbuf_alloc(q->mp)) != NULL)
		q->bufs[q->posted++] = m;
}

void fake_eth_rxq_drop(struct fake_eth_rxq *q)
{
	while (q->posted)
		rte_pktmbuf_free(q->bufs[--q->posted]);
	while (q->head != q->tail)
		rte_pktmbuf_free(q->done[q->head++ % FAKE_ETH_DONE]);
}

static struct rte_mbuf *take_buffer(struct fake_eth_rxq *q)
{
	struct rte_mbuf *m;

	if (!q->posted)
		return NULL;
	m = q->bufs[0];
	q->posted--;
	memmove(q->bufs, q->bufs + 1, q->posted * sizeof(*q->bufs));
	return m;
}

/* ---- receiving ------------------------------------------------------------------------------ */

/* Where the IPv4 header is; 0: there is none. */
static uint32_t find_ipv4(const uint8_t *f, uint32_t len, uint16_t *vlan)
{
	const struct rte_ether_hdr *eth = (const void *)f;
	uint32_t l2 = sizeof(*eth);
	rte_be16_t type = eth->ether_type;

	*vlan = 0;
	if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN) && len >= l2 + RTE_VLAN_HLEN) {
		const struct rte_vlan_hdr *tag = (const void *)(f + l2);

		*vlan = rte_be_to_cpu_16(tag->vlan_tci) & 0xfff;
		type = tag->eth_proto;
		l2 += RTE_VLAN_HLEN;
	}
	if (type != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) ||
	    len < l2 + sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr))
		return 0;
	return l2;
}

static uint16_t choose_queue(const struct fake_eth_port *p, const uint8_t *f, uint32_t l3)
{
	const struct rte_ipv4_hdr *ip = (const void *)(f + l3);
	const struct rte_udp_hdr *udp = (const void *)(ip + 1);

	if (!l3 || ip->next_proto_id != IPPROTO_UDP)
		return 0;
	return fake_eth_rss_queue(p, rte_be_to_cpu_32(ip->src_addr), rte_be_to_cpu_32(ip->dst_addr),
				  rte_be_to_cpu_16(udp->src_port), rte_be_to_cpu_16(udp->dst_port));
}

/* What the NIC found, for the offloads that it was asked for. Without them it does not look. */
static uint64_t verdict(const struct fake_eth_port *p, const uint8_t *f, uint32_t len, uint32_t l3)
{
	const struct rte_ipv4_hdr *ip = (const void *)(f + l3);
	const struct rte_udp_hdr *udp = (const void *)(ip + 1);
	uint64_t flags = 0;

	if (!l3)
		return 0;
	if (p->conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM)
		flags |= rte_raw_cksum(ip, sizeof(*ip)) == 0xffff ? RTE_MBUF_F_RX_IP_CKSUM_GOOD
								  : RTE_MBUF_F_RX_IP_CKSUM_BAD;
	/* What is no whole datagram is left to software. */
	if (!(p->conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_UDP_CKSUM) ||
	    ip->next_proto_id != IPPROTO_UDP || !udp->dgram_cksum ||
	    rte_be_to_cpu_16(ip->total_length) > len - l3)
		return flags;
	/* The sum over the datagram with its checksum is 0, which UDP writes as 0xffff. */
	return flags | (rte_ipv4_udptcp_cksum(ip, udp) == 0xffff ? RTE_MBUF_F_RX_L4_CKSUM_GOOD
								 : RTE_MBUF_F_RX_L4_CKSUM_BAD);
}

/* Fill buffers with a frame. @return NULL: the ring has too few, or it must not be a chain */
static struct rte_mbuf *fill(struct fake_eth_port *p, struct fake_eth_rxq *q, const uint8_t *f,
			     uint32_t len)
{
	struct rte_mbuf *head = NULL, *last = NULL, *m;
	uint32_t off = 0, n;

	while (off < len) {
		m = take_buffer(q);
		if (!m) {
			p->count.rx_no_buffer++;
			rte_pktmbuf_free(head);
			return NULL;
		}
		rte_pktmbuf_reset(m);
		n = RTE_MIN(len - off, fake_eth_usable(p, m->pool));
		memcpy(rte_pktmbuf_mtod(m, void *), f + off, n);
		m->data_len = (uint16_t)n;
		off += n;
		if (!head)
			head = m;
		else
			last->next = m;
		last = m;
		head->nb_segs = (uint16_t)(head == m ? 1 : head->nb_segs + 1);
		if (off < len &&
		    (p->t.never_chains || (p->t.chain_max && head->nb_segs == p->t.chain_max))) {
			p->count.rx_too_long++;
			rte_pktmbuf_free(head);
			return NULL;
		}
	}
	head->pkt_len = len;
	head->port = p->id;
	return head;
}

bool fake_eth_input(struct fake_eth_port *p, const void *frame, uint32_t len)
{
	struct fake_eth_rxq *q;
	struct rte_mbuf *m;
	uint16_t vlan;
	uint32_t l3 = find_ipv4(frame, len, &vlan);

	if (!fake_eth_link(p) || p->broken) {
		p->count.rx_no_link++;
		return false;
	}
	if (len > p->mtu + RTE_ETHER_HDR_LEN + 2u * RTE_VLAN_HLEN) {
		p->count.rx_too_long++;
		return false;
	}
	if (vlan && !fake_eth_vlan(p, vlan) &&
	    (p->t.filters_vlan || p->conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER)) {
		p->count.rx_vlan++;
		return false;
	}
	q = &p->rxq[choose_queue(p, frame, l3)];
	if (q->tail - q->head == FAKE_ETH_DONE) {
		p->count.rx_no_buffer++;
		return false;
	}
	m = fill(p, q, frame, len);
	if (!m)
		return false;
	m->ol_flags |= verdict(p, frame, len, l3);
	q->done[q->tail++ % FAKE_ETH_DONE] = m;
	p->count.rx_frames++;
	p->count.rx_chained += m->nb_segs > 1;
	fake_eth_intr_raise(q);
	return true;
}

static uint16_t rx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct fake_eth_rxq *q = queue;
	struct fake_eth_port *p = q->port;
	uint16_t i = 0;

	if (p->removed || p->broken)
		return 0;
	fake_eth_move(p);
	if (p->peer)
		fake_eth_move(p->peer);
	while (i < n && q->head != q->tail)
		pkts[i++] = q->done[q->head++ % FAKE_ETH_DONE];
	fake_eth_post(q);
	return i;
}

/* ---- sending -------------------------------------------------------------------------------- */

static void sum_udp(struct fake_eth_port *p, const struct rte_mbuf *m, uint8_t *f, uint32_t len)
{
	uint32_t l4 = (uint32_t)m->l2_len + m->l3_len;
	struct rte_udp_hdr *udp = (void *)(f + l4);
	uint16_t sum;

	if ((m->ol_flags & RTE_MBUF_F_TX_L4_MASK) != RTE_MBUF_F_TX_UDP_CKSUM)
		return;
	if (!(p->conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) || l4 + sizeof(*udp) > len) {
		p->count.tx_unsummed++;
		return;
	}
	/* The pseudo header's sum is there already: NICs add what follows. */
	sum = (uint16_t)~rte_raw_cksum(udp, rte_be_to_cpu_16(udp->dgram_len));
	udp->dgram_cksum = sum ? sum : 0xffff;
	p->count.tx_summed++;
}

static void transmit(struct fake_eth_port *p, const struct rte_mbuf *m)
{
	static uint8_t frame[FRAME_MAX];
	const struct rte_mbuf *s;
	uint32_t len = 0;

	for (s = m; s && len + s->data_len <= FRAME_MAX; s = s->next) {
		if (s != m && !(p->conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS)) {
			p->count.tx_cut++;
			break;
		}
		memcpy(frame + len, rte_pktmbuf_mtod(s, const void *), s->data_len);
		len += s->data_len;
	}
	p->count.tx_chained += m->nb_segs > 1 && !s;
	sum_udp(p, m, frame, len);
	/* NICs fill up to the least frame. */
	if (len < RTE_ETHER_MIN_LEN - RTE_ETHER_CRC_LEN) {
		memset(frame + len, 0, RTE_ETHER_MIN_LEN - RTE_ETHER_CRC_LEN - len);
		len = RTE_ETHER_MIN_LEN - RTE_ETHER_CRC_LEN;
	}
	p->count.tx_frames++;
	if (p->seen)
		p->seen(p->seen_arg, frame, len);
	if (p->peer && fake_eth_link(p))
		fake_eth_input(p->peer, frame, len);
}

void fake_eth_move(struct fake_eth_port *p)
{
	struct fake_eth_txq *q;

	if (p->removed || p->broken || p->t.tx_stuck)
		return;
	for (q = p->txq; q < p->txq + p->nb_tx; q++)
		for (; q->unsent; q->unsent--)
			transmit(p, q->bufs[q->used - q->unsent]);
}

unsigned int fake_eth_tx_free(struct fake_eth_txq *q)
{
	uint16_t i, sent = (uint16_t)(q->used - q->unsent);

	for (i = 0; i < sent; i++)
		rte_pktmbuf_free(q->bufs[i]);
	if (q->unsent) /* or there may be no array yet */
		memmove(q->bufs, q->bufs + sent, q->unsent * sizeof(*q->bufs));
	q->used = q->unsent;
	return sent;
}

void fake_eth_txq_drop(struct fake_eth_txq *q)
{
	q->unsent = 0;
	fake_eth_tx_free(q);
}

static uint16_t tx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct fake_eth_txq *q = queue;
	struct fake_eth_port *p = q->port;
	uint16_t i;

	if (p->removed || p->broken)
		return 0;
	fake_eth_move(p);
	if (q->ring - q->used < RTE_MAX(p->t.tx_free_thresh, n))
		fake_eth_tx_free(q);
	for (i = 0; i < n && q->used < q->ring; i++) {
		q->bufs[q->used++] = pkts[i];
		q->unsent++;
	}
	return i;
}

int rte_eth_tx_done_cleanup(uint16_t port_id, uint16_t queue, uint32_t free_cnt)
{
	struct fake_eth_port *p = fake_eth_port(port_id);

	RTE_SET_USED(free_cnt);
	if (!p)
		return -ENODEV;
	if (p->t.no_done_cleanup)
		return -ENOTSUP;
	if (p->removed || p->broken)
		return -EIO;
	fake_eth_move(p);
	return (int)fake_eth_tx_free(&p->txq[queue]);
}

/*
 * Reports come with every rs_thresh-th descriptor: that of the newest one cannot be counted on, but
 * with 1.
 */
static int tx_status(void *queue, uint16_t offset)
{
	struct fake_eth_txq *q = queue;

	if (!q->port->t.tx_status)
		return -ENOTSUP;
	if (offset >= q->ring)
		return -EINVAL;
	fake_eth_move(q->port);
	return offset == q->ring - 1 && q->rs_thresh == 1 && q->unsent == 0 ? RTE_ETH_TX_DESC_DONE
									    : RTE_ETH_TX_DESC_FULL;
}

/* ---- DPDK's table of the burst calls -------------------------------------------------------- */

static uint16_t no_burst(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	RTE_SET_USED(queue);
	RTE_SET_USED(pkts);
	RTE_SET_USED(n);
	return 0;
}

static void io_set(struct fake_eth_port *p, bool on)
{
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[p->id];
	uint16_t q;

	for (q = 0; q < FAKE_ETH_QUEUES; q++) {
		p->rx_data[q] = &p->rxq[q];
		p->tx_data[q] = &p->txq[q];
	}
	ops->rx_pkt_burst = on ? rx_burst : no_burst;
	ops->tx_pkt_burst = on ? tx_burst : no_burst;
	ops->tx_descriptor_status = tx_status;
	ops->rxq = (struct rte_ethdev_qdata){.data = p->rx_data, .clbk = p->rx_clbk};
	ops->txq = (struct rte_ethdev_qdata){.data = p->tx_data, .clbk = p->tx_clbk};
}

void fake_eth_io_on(struct fake_eth_port *p)
{
	io_set(p, true);
}

void fake_eth_io_off(struct fake_eth_port *p)
{
	io_set(p, false);
}
