/* SPDX-License-Identifier: BSD-3-Clause */

/* Datagrams of the control channel. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ud.h"

/* ------------------------------------------------------------------ send */

int roce_ud_post(struct ud_lane_ep *lane_ep, const struct weft_roce_ud_head *h, const void *hdr,
		 size_t hdr_len, const void *payload, size_t length)
{
	struct ud_iface *u = lane_ep->u;
	struct roce_buf *buf = u->tx_room > 0 && !u->sick ? roce_pool_get(&u->tx_pool) : NULL;
	struct ibv_send_wr wr = {0}, *bad;
	struct ibv_sge sge;

	if (!buf) {
		u->count.no_room++;
		return -EAGAIN;
	}
	memcpy(buf->data, h, sizeof(*h));
	memcpy(buf->data + sizeof(*h), hdr, hdr_len);
	if (length > 0)
		memcpy(buf->data + sizeof(*h) + hdr_len, payload, length);
	sge = (struct ibv_sge){
		.addr = (uintptr_t)buf->data,
		.length = (uint32_t)(sizeof(*h) + hdr_len + length),
		.lkey = buf->lkey,
	};
	wr.wr_id = (uintptr_t)buf;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.ud.ah = lane_ep->ah;
	wr.wr.ud.remote_qpn = lane_ep->qpn;
	wr.wr.ud.remote_qkey = lane_ep->qkey;
	if (ibv_post_send(u->qp, &wr, &bad) != 0) {
		/* For the peer this is a lost datagram. */
		roce_pool_put(&u->tx_pool, buf);
		u->count.tx_error++;
		return 0;
	}
	u->tx_room--;
	u->count.tx++;
	return 0;
}

int roce_ud_send(struct ud_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const void *payload, size_t length)
{
	const struct weft_roce_ud_head h = {
		.magic = weft_put16(WEFT_ROCE_UD_MAGIC),
		.version = WEFT_ROCE_VERSION,
		.am_id = am_id,
		.src_conn = weft_put32(lane_ep->conn),
		.dst_conn = weft_put32(lane_ep->remote_conn),
		.src_qkey = weft_put32(lane_ep->u->qkey),
		.length = weft_put16((uint16_t)(hdr_len + length)),
		.mtu = lane_ep->u->mtu,
		.cookie = weft_put64(lane_ep->remote_conn == 0 ? lane_ep->cookie : 0),
	};

	return roce_ud_post(lane_ep, &h, hdr, hdr_len, payload, length);
}

int roce_ud_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		     const void *payload, size_t length)
{
	struct ud_lane_ep *lane_ep = ud_lane_ep_of(base);
	int rc;

	if (lane_ep->state != UD_UP)
		return lane_ep->state == UD_RESOLVING ? -EAGAIN : -ECONNRESET;
	if (hdr_len > base->max_msg || length > base->max_msg - hdr_len)
		return -EMSGSIZE;
	rc = roce_ud_send(lane_ep, am_id, hdr, hdr_len, payload, length);
	if (rc == 0 && lane_ep->remote_conn == 0)
		roce_ud_hold(lane_ep, am_id, hdr, hdr_len, payload, length);
	return rc;
}

/* ------------------------------------------------------------------ receive */

void roce_ud_deliver(struct ud_lane_ep *lane_ep, const struct weft_roce_ud_packet *p)
{
	struct ud_iface *u = lane_ep->u;
	char text[96];

	lane_ep->last_rx = u->now;
	if (p->am_id == WEFT_ROCE_UD_BYE) {
		snprintf(text, sizeof(text), "%s: peer %s has closed the control channel",
			 u->dev->name, lane_ep->peer);
		roce_ud_lane_ep_over(lane_ep, WEFT_LANE_EV_GONE, -ECONNRESET, text);
		return;
	}
	u->count.rx++;
	u->recv(u->arg, &lane_ep->base, p->am_id, p->data, p->length, NULL);
}

void roce_ud_received(struct ud_iface *u, const struct ibv_wc *wc, struct roce_buf *buf)
{
	struct weft_roce_ud_packet p;
	struct ud_lane_ep *lane_ep;
	bool keep = false;

	if (wc->status != IBV_WC_SUCCESS) {
		u->count.stray += wc->status != IBV_WC_WR_FLUSH_ERR;
	} else if (!(wc->wc_flags & IBV_WC_GRH) ||
		   weft_roce_ud_check(buf->data, wc->byte_len, &p) < 0) {
		u->count.bad++;
	} else if (p.am_id == WEFT_ROCE_UD_RETRY) {
		roce_ud_retry(u, &p, wc->src_qp);
	} else {
		lane_ep = roce_ud_find(u, &p, wc->src_qp);
		if (!lane_ep) {
			keep = roce_ud_accept_first(u, &p, wc->src_qp, buf, wc->byte_len);
		} else if (lane_ep->state == UD_UP) {
			lane_ep->remote_conn = p.src_conn;
			roce_ud_deliver(lane_ep, &p);
		} else {
			u->count.late++; /* still resolving: the sender retries */
		}
	}
	if (!keep)
		roce_pool_put(&u->rx_pool, buf);
}

void roce_ud_post_receives(struct ud_iface *u)
{
	struct ibv_recv_wr wr = {.num_sge = 1}, *bad;
	struct roce_buf *buf;
	struct ibv_sge sge;

	while (u->posted < UD_RX && (buf = roce_pool_get(&u->rx_pool)) != NULL) {
		sge = (struct ibv_sge){
			.addr = (uintptr_t)buf->data,
			.length = WEFT_ROCE_GRH + (128u << u->mtu),
			.lkey = buf->lkey,
		};
		wr.wr_id = (uintptr_t)buf | 1;
		wr.sg_list = &sge;
		if (ibv_post_recv(u->qp, &wr, &bad) != 0) {
			roce_pool_put(&u->rx_pool, buf);
			break;
		}
		u->posted++;
	}
}
