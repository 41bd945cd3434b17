/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of lane endpoints that are not on the hot path: connect, destroy, identify the peer,
 * describe.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/build.h"
#include "engine/conn.h"
#include "engine/connect.h"
#include "engine/ep.h"
#include "engine/flush.h"
#include "engine/iface.h"
#include "engine/multipath.h"
#include "engine/peer.h"
#include "engine/slots.h"
#include "engine/tx.h"
#include "engine/txq.h"
#include "engine/zcopy.h"
#include "engine/window.h"
#include "frame/frame.h"
#include "lane.h"

int raw_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		   struct weft_lane_ep **lane_ep)
{
	struct raw_iface *iface = raw_iface_of(base);
	struct raw_addr a;
	struct raw_conn *c;
	char why[160];
	uint32_t hop = 0;
	int err;

	err = raw_is_reachable(base, addr, len, why, sizeof(why));
	if (err != 0)
		return err;
	raw_addr_read(addr, len, &a);
	if (!a.raw_ethertype)
		raw_next_hop(iface, a.ip, &hop);
	c = raw_conn_new(iface, false);
	if (!c)
		return -ENOMEM;
	c->base.user = user;
	c->peer_ip = a.ip;
	c->hop_ip = hop;
	c->peer_port = a.udp_port;
	c->path[0].dport = a.udp_port;
	c->peer_queues = a.queues;
	memcpy(c->peer_mac, a.mac, 6);
	c->remote_iface = a.iface_id;
	raw_conn_template(c);
	raw_hs_start(c);
	*lane_ep = &c->base;
	return 0;
}

/*
 * Frames that were sent before leave the queue in any case; unacknowledged ones are dropped. The
 * connection stays in TIME_WAIT, to acknowledge frames that the peer retransmits and to repeat BYE.
 */
void raw_ep_destroy(struct weft_lane_ep *lane_ep)
{
	struct raw_conn *c = raw_conn_of(lane_ep);
	struct raw_iface *iface = c->iface;
	bool met = c->state == RAW_UP || c->state == RAW_PROBE || c->state == RAW_PATHS ||
		   c->state == RAW_MEASURE || c->state == RAW_READY;
	bool lingers = met || c->state == RAW_DOWN;
	/* the peer has received the sends that are left */
	bool reaped = c->state == RAW_QUIET && !c->slots;

	c->base.up = false;
	c->base.tx_room = false;
	c->base.user = NULL;
	if (c->open)
		raw_seal(c, 0);
	if (met)
		raw_bye_send(c);
	else
		c->bye_done = true;
	raw_conn_linger(c, lingers);
	if (!reaped)
		raw_zc_fail(c, -ECANCELED);
	raw_slots_release(c);
	raw_zc_cancel(c);
	raw_flushes_end(c, -ECANCELED);
	raw_txq_flush(iface);
}

/*
 * Compares an address with the proven address of the peer: the peer has answered with the token of
 * our HELLO, or has sent HELLO and then the token of our answer. So it receives at its address.
 */
bool raw_ep_is_from(struct weft_lane_ep *lane_ep, const void *addr, size_t len)
{
	const struct raw_conn *c = raw_conn_of(lane_ep);
	struct raw_addr a;

	if (c->remote_token == 0 && c->remote_id == 0)
		return false; /* no peer has answered yet */
	if (raw_addr_read(addr, len, &a) != 0 ||
	    a.raw_ethertype != c->iface->rx_filter.raw_ethertype)
		return false;
	if (a.iface_id != c->remote_iface)
		return false;
	if (a.raw_ethertype)
		return memcmp(a.mac, c->peer_mac, sizeof(a.mac)) == 0;
	return a.ip == c->peer_ip && a.udp_port == c->peer_port;
}

/* The peer's IP address, whatever ports it uses; without IP its MAC address. */
uint64_t raw_ep_host(const struct weft_lane_ep *lane_ep)
{
	const struct raw_conn *c = (const struct raw_conn *)lane_ep;
	uint64_t mac = 0;

	if (!c->iface->rx_filter.raw_ethertype)
		return c->peer_ip;
	memcpy(&mac, c->peer_mac, sizeof(c->peer_mac));
	return mac;
}

void raw_ep_check(struct weft_lane_ep *lane_ep)
{
	struct raw_conn *c = raw_conn_of(lane_ep);

	if (c->state == RAW_UP && raw_ack_send(c, WEFT_FRAME_F_ACK_REQ) == 0)
		raw_count(c->iface, RAW_TX_PING);
}

void raw_ep_print(struct weft_lane_ep *lane_ep, char *buf, size_t size)
{
	static const char *const names[] = {
		[RAW_RESOLVE] = "resolving by ARP",
		[RAW_HELLO] = "connecting",
		[RAW_PROBE] = "probing the frame size",
		[RAW_PATHS] = "trying the ports of its paths",
		[RAW_MEASURE] = "measuring the path",
		[RAW_READY] = "connecting",
		[RAW_HALF_OPEN] = "half open",
		[RAW_UP] = "up",
		[RAW_QUIET] = "stopped",
		[RAW_DOWN] = "down",
		[RAW_TIME_WAIT] = "closed",
	};
	const struct raw_conn *c = raw_conn_of(lane_ep);
	char peer[64], window[160];
	int n;

	n = snprintf(buf, size,
		     "%s -> %s: %s, frames of %u bytes, %u outstanding (%u bytes), window %u "
		     "frames or %u bytes",
		     c->iface->base.name, raw_peer_text(c, peer, sizeof(peer)), names[c->state],
		     c->frame_size, c->snd_next - c->snd_una, c->inflight, c->win_frames,
		     c->win_bytes);
	for (unsigned int i = 0; i < c->path_count && n > 0 && (size_t)n < size; i++) {
		raw_window_print(c, i, window, sizeof(window));
		n += snprintf(
			buf + n, size - (size_t)n,
			"; path %u: ports %u to %u, rtt %.1f us +- %.1f, %u sent, %u again%s%s", i,
			c->path[i].sport, c->path[i].dport, c->path[i].rtt.srtt / 1e3,
			c->path[i].rtt.var / 1e3, c->path[i].order, c->path[i].retransmits, window,
			raw_multi_text(c, i));
	}
}

void raw_paths_print(const struct raw_iface *iface, void (*cb)(const char *text, void *arg),
		     void *arg)
{
	const struct raw_conn *c;
	char peer[64], text[256];

	TAILQ_FOREACH(c, &iface->conns, link) {
		for (unsigned int i = 0; i < c->path_count && c->state == RAW_UP; i++) {
			snprintf(text, sizeof(text),
				 "%s conn%u/path%u rtt %.1f us +- %.1f, window %u, %u sent, %u "
				 "again%s, to %s",
				 iface->base.name, c->id & 0xffff, i, c->path[i].rtt.srtt / 1e3,
				 c->path[i].rtt.var / 1e3,
				 c->cc ? (unsigned int)c->cc[i].window : c->win_bytes,
				 c->path[i].order, c->path[i].retransmits, raw_multi_text(c, i),
				 raw_peer_text(c, peer, sizeof(peer)));
			cb(text, arg);
		}
	}
}
