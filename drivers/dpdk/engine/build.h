/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/build.h
 * Building frames, and the queue of frames to the port. No function waits for the port.
 */
#ifndef WEFT_ENGINE_BUILD_H
#define WEFT_ENGINE_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "frame/frame.h"
#include "frame/parse.h"

/* The receiver of a frame that is built without the headers of a connection. */
struct raw_dest {
	const uint8_t *mac;
	uint32_t ip;
	uint32_t id, token;    /* numbers of the receiver's connection */
	uint16_t sport, dport; /* of this end, of the receiver; host byte order */
	uint8_t tos;
};

void raw_conn_template(struct raw_conn *c);
/* Enter or replace the frame that ends the connection at the peer if this process is killed. */
void raw_farewell_enter(struct raw_conn *c);
void raw_farewell_remove(struct raw_conn *c);
/* The frame has no acknowledgement, sequence or echo. @return 0; -EAGAIN: no buffer, or txq full */
int raw_dest_send(struct raw_iface *iface, const struct raw_dest *d, uint8_t type, const void *body,
		  uint32_t len);
void raw_put_csum(struct raw_conn *c, struct rte_mbuf *m, uint32_t lane_len, bool crc);

static inline void raw_stamp(const struct raw_iface *iface, struct raw_rx *rx,
			     struct weft_frame_hdr *hdr, const struct raw_path *p, uint8_t path)
{
	raw_rx_stamp(iface, rx, hdr);
	hdr->path = path;
	hdr->order = weft_put32(p->order);
	hdr->ts = weft_put32((uint32_t)iface->now);
}

/* Completes a frame as raw_finish() does, but without a UDP checksum or CRC32C. */
static __rte_always_inline void raw_finish_plain(struct raw_conn *c, struct rte_mbuf *m,
						 struct weft_frame_hdr *hdr, uint32_t lane_len,
						 uint32_t crc_len, const struct raw_path *p)
{
	struct raw_iface *iface = c->iface;

	hdr->length = weft_put16((uint16_t)lane_len);
	weft_encap_patch(&c->encap, (uint8_t *)hdr - c->encap.len, lane_len + crc_len, p->sport,
			 p->dport);
	iface->counter[RAW_TX_FRAMES]++;
	iface->counter[RAW_TX_BYTES] += m->pkt_len;
}

/* For each transmission. @p lane_len: lane header and body; the CRC's 4 bytes follow, reserved. */
static inline void raw_finish(struct raw_conn *c, struct rte_mbuf *m, uint32_t lane_len,
			      const struct raw_path *p)
{
	struct weft_frame_hdr *hdr = raw_hdr(c, m);
	bool crc = weft_get16(hdr->flags) & WEFT_FRAME_F_CRC32C;

	raw_finish_plain(c, m, hdr, lane_len, crc ? 4 : 0, p);
	if (unlikely(crc || c->csum != WEFT_FRAME_CSUM_NONE))
		raw_put_csum(c, m, lane_len, crc);
}

/* Queue the sealed copy of a complete frame. Without a buffer the copy is lost. */
void raw_sealed_queue(struct raw_conn *c, const struct rte_mbuf *m, uint8_t path);

/*
 * For sealed connections. While no DATA is sent, no acknowledgement confirms a new key: sends a
 * probe, whose answer does. If the key has changed, replaces the farewell (frame/farewell.h).
 */
void raw_probe_key(struct raw_conn *c);
/*
 * As raw_ctl_send_on(), over c->next_path. All functions that send a control frame of a connection
 * return 0, or -EAGAIN if there is no buffer, or no place in the queue.
 */
int raw_ctl_send(struct raw_conn *c, uint8_t type, uint16_t flags, const void *body,
		 uint32_t body_len, uint32_t pad_to);
/* @return the path over which a frame came; c->next_path if this end has no such path */
uint8_t raw_came_over(const struct raw_conn *c, const struct weft_frame_view *v);
/* @param pad_to  size of the whole frame, unless it is longer anyway */
int raw_ctl_send_on(struct raw_conn *c, uint8_t path, uint8_t type, uint16_t flags,
		    const void *body, uint32_t body_len, uint32_t pad_to);
/* As raw_ctl_send_on(), with these ports instead of the path's. The path need not be open. */
int raw_ctl_send_by(struct raw_conn *c, uint8_t path, uint16_t sport, uint16_t dport, uint8_t type,
		    const void *body, uint32_t body_len);
/* Sends a probe in a frame of @p size bytes; 0: in a short frame. */
void raw_probe_send(struct raw_conn *c, uint16_t size);
int raw_ack_send(struct raw_conn *c, uint16_t flags);
void raw_acks_send_due(struct raw_iface *iface);
int raw_bye_send(struct raw_conn *c);
/* The reply contains the numbers of the frame, which prove that this end has received it. */
void raw_unknown_sender_reply(struct raw_iface *iface, const struct weft_frame_view *v,
			      uint8_t type, const void *body, uint32_t len);
void raw_reset_send(struct raw_iface *iface, const struct weft_frame_view *v, uint16_t reason);
/* Sends an ARP packet, or the message of neighbour discovery in its place (frame/arp.h). */
void raw_arp_send(struct raw_iface *iface, const uint8_t dst[6], const struct rte_arp_hdr *pkt);

/* ---------------------------------------------------------------- queue to the port */

static inline unsigned int raw_txq_space(const struct raw_iface *iface)
{
	return RAW_TXQ - iface->txq.count;
}

static inline void raw_txq_push(struct raw_iface *iface, struct rte_mbuf *m)
{
	iface->txq.frames[(iface->txq.head + iface->txq.count++) % RAW_TXQ] = m;
	iface->base.tx_open = true;
}

/* Offers the queue's first @p n frames, contiguous, to the port. @return frames that it took */
static inline unsigned int raw_port_tx(struct raw_iface *iface, unsigned int n)
{
	struct rte_mbuf **frames = &iface->txq.frames[iface->txq.head];
	unsigned int sent;

	weft_tap_offer(iface->tap, frames, n, WEFT_PCAPNG_OUT, iface->now);
	sent = iface->port->ops->tx_burst(iface->port, frames, (uint16_t)n);
	weft_tap_taken(iface->tap, sent);
	return sent;
}

void raw_txq_flush(struct raw_iface *iface);
void raw_txq_drop(struct raw_iface *iface);

/* Count and drop the frames that wait for a port that takes no more frames. */
void raw_txq_end(struct raw_iface *iface);

#endif /* WEFT_ENGINE_BUILD_H */
