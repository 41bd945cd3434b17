/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * In every step the initiator repeats a request until it is answered. The responder has no timer
 * but the expiry of half-open entries.
 *
 *   initiator                         responder
 *   RESOLVE    ARP for the next hop
 *   HELLO      HELLO        ------>   new entry, HALF_OPEN; or, when there are many of them,
 *              <------ HELLO_RETRY    a cookie, to be sent with another HELLO (engine/lifetime.c)
 *              <------  HELLO_ACK
 *   PROBE      PROBE, full size -->
 *              <-- PROBE_ACK, full size
 *   PATHS      PROBE over each path ->   if there are several (engine/path_probe.c)
 *   MEASURE    PROBE  ------------->   several, answered each (engine/path_probe.c)
 *   READY      READY{frame size} ->   UP
 *   UP         <------  READY_ACK
 *
 * Sizes in these messages are those of untagged frames with IPv4: a switch may remove the VLAN tag
 * between two ifaces, and both ends must compute the same room for messages.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "engine/address.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/handshake.h"
#include "engine/iface.h"
#include "engine/lifetime.h"
#include "engine/mtu.h"
#include "engine/multipath.h"
#include "engine/neighbour.h"
#include "engine/path_open.h"
#include "engine/path_probe.h"
#include "engine/sealed.h"
#include "engine/sealed_frame.h"
#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "frame/parse.h"
#include "lane.h"

#define LATE_NS 3000000000ull

static uint64_t retry_wait(const struct raw_conn *c)
{
	uint64_t wait = RAW_HS_RETRY_MIN << RTE_MIN(c->hs_tries, 10u);

	return RTE_MIN(wait, RAW_HS_RETRY_MAX);
}

void raw_hs_enter(struct raw_conn *c, enum raw_state state)
{
	c->state = (uint8_t)state;
	c->hs_tries = 0;
	c->hs_next = c->iface->live_clock;
	raw_deadline_live(c, c->hs_next);
}

static void fill_hello(const struct raw_conn *c, struct weft_frame_hello *h)
{
	const struct raw_iface *iface = c->iface;
	bool socket = iface->port->flags & WEFT_FRAME_PORT_SOCKET;

	*h = (struct weft_frame_hello){
		.conn = weft_put32(c->id),
		.token = weft_put32(c->token),
		.worker_id = weft_put64(iface->worker_id),
		.iface_id = weft_put64(iface->iface_id),
		.peer_iface = weft_put64(c->remote_iface),
		.first_seq = weft_put32(c->tx.next),
		.rx_frames = weft_put32(iface->port->rx_depth),
		.rx_bufs = weft_put32(iface->port->pool->size),
		.frame_size = weft_put16((uint16_t)(iface->frame_size - iface->wire_less)),
		.csum = c->csum,
		.paths = iface->paths,
		.features = weft_put32(WEFT_HELLO_F_PARTS | WEFT_HELLO_F_MARKS |
				       WEFT_HELLO_F_PROGRESS | (socket ? WEFT_HELLO_F_SOCKET : 0) |
				       (iface->seal ? WEFT_HELLO_F_GONE : 0)),
		.udp_port = weft_put16(iface->rx_filter.udp_port),
		.rx_shift = (uint8_t)rte_log2_u32(WEFT_RXWIN / WEFT_FRAME_SEQS),
		.secret = weft_put64(c->secret),
	};
}

static void send_hello(struct raw_conn *c, uint8_t type)
{
	uint8_t body[WEFT_EXCHANGE_BODY] __rte_aligned(8);
	struct weft_frame_hello *h = (struct weft_frame_hello *)body;
	uint32_t len = sizeof(*h);

	fill_hello(c, h);
	if (type == WEFT_FRAME_HELLO ? c->hs_tries >= RAW_STEER_ROUNDS : c->elsewhere)
		h->steer = WEFT_HELLO_ANY_QUEUE;
	if (type == WEFT_FRAME_HELLO)
		h->cookie = weft_put64(c->hs->cookie);
	if (c->iface->seal)
		len = raw_sealed_hello(c, type, body);
	if (len > 0)
		raw_ctl_send(c, type, 0, body, len, 0);
}

/* The MAC from ARP may be outdated: every eighth try without an answer queries ARP again. */
static void refresh_mac(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	uint8_t mac[6];

	if (iface->rx_filter.raw_ethertype)
		return;
	if (weft_arp_lookup(&iface->arp, c->hop_ip, iface->now, mac) &&
	    memcmp(mac, c->peer_mac, sizeof(mac)) != 0) {
		memcpy(c->peer_mac, mac, sizeof(mac));
		raw_conn_template(c);
	}
	if (c->hs_tries % 8 == 7) {
		weft_arp_forget(&iface->arp, c->hop_ip);
		raw_arp_request(iface, c->hop_ip, false);
	}
}

static void send_hellos(struct raw_conn *c)
{
	refresh_mac(c);
	for (unsigned int n = raw_paths_hellos(c); n > 0; n--) {
		raw_paths_next(c, 0);
		send_hello(c, WEFT_FRAME_HELLO);
	}
}

static void take_hello(struct raw_conn *c, const struct weft_frame_hello *h)
{
	c->remote_id = weft_get32(h->conn);
	c->remote_token = weft_get32(h->token);
	c->remote_secret = weft_get64(h->secret);
	c->remote_iface = weft_get64(h->iface_id);
	c->hs->peer_rx_frames = weft_get32(h->rx_frames);
	c->hs->peer_rx_seqs = WEFT_FRAME_SEQS << h->rx_shift;
	c->frame_size =
		(uint16_t)RTE_MIN((uint32_t)c->iface->frame_size,
				  (uint32_t)weft_get16(h->frame_size) + c->iface->wire_less);
	/* The stronger of both checksums: both ends compute the same. */
	if (c->csum != RAW_CSUM_SEALED)
		c->csum = RTE_MAX(c->csum, h->csum);
	c->mtu.parts = weft_get32(h->features) & WEFT_HELLO_F_PARTS;
	c->ect = weft_get32(h->features) & WEFT_HELLO_F_MARKS && c->iface->ecn;
	raw_gap_init(c, weft_get32(h->features) & WEFT_HELLO_F_PROGRESS);
	c->live.socket = weft_get32(h->features) & WEFT_HELLO_F_SOCKET;
	c->hs->peer_paths = (uint8_t)RTE_MIN(h->paths, WEFT_FRAME_PATHS_MAX);
	raw_rx_init(&c->rx, weft_get32(h->first_seq));
	raw_conn_template(c);
}

static bool hello_acceptable(const struct raw_iface *iface, const struct weft_frame_hello *h)
{
	return weft_get16(h->frame_size) + iface->wire_less >= iface->least_size &&
	       h->csum <= WEFT_FRAME_CSUM_CRC32C && weft_get32(h->rx_frames) > 0 && h->paths > 0 &&
	       h->rx_shift <= WEFT_FRAME_SEQS_SHIFT;
}

/* ---------------------------------------------------------------- initiator */

static void resolve_peer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	/* iface->now, not a clock of this iface alone: ifaces of other workers share the table. */
	if (weft_arp_lookup(&iface->arp, c->hop_ip, iface->now, c->peer_mac)) {
		raw_conn_template(c);
		raw_hs_enter(c, RAW_HELLO);
		return;
	}
	raw_arp_request(iface, c->hop_ip, false);
	/* An ARP reply to another queue is found at the next try. */
	c->hs_next = iface->live_clock + RTE_MAX(WEFT_ARP_RETRY_MIN, retry_wait(c));
	c->hs_tries++;
	raw_table_resolving(c, true);
}

static void send_ready(struct raw_conn *c)
{
	uint8_t body[sizeof(struct weft_frame_ready) + 2 * WEFT_FRAME_PATHS_MAX];
	uint32_t len = raw_paths_ready(c, body);

	raw_ctl_send(c, WEFT_FRAME_READY, 0, body, len, 0);
}

static void too_narrow(struct raw_conn *c)
{
	char text[256], peer[64];

	snprintf(text, sizeof(text),
		 "%s: frames of %u bytes do not reach %s although small ones do: the path between "
		 "must carry an MTU of at least 1280",
		 c->iface->base.name, c->search->least, raw_peer_text(c, peer, sizeof(peer)));
	raw_conn_fail(c, -EMSGSIZE, text);
}

void raw_hs_ready(struct raw_conn *c)
{
	raw_hs_enter(c, RAW_READY);
	raw_hs_timer(c);
}

void raw_hs_measure(struct raw_conn *c)
{
	raw_hs_enter(c, RAW_MEASURE);
	if (!raw_measure_begin(c))
		raw_hs_ready(c);
}

static void search_result(struct raw_conn *c, enum weft_mtu_result result)
{
	if (result == WEFT_MTU_NARROW) {
		too_narrow(c);
	} else if (result == WEFT_MTU_FOUND) {
		c->frame_size = c->search->lo;
		weft_rtt_first(&c->path[0].rtt, c->iface->live_clock - c->search->begin);
		if (raw_paths_begin(c))
			raw_hs_timer(c);
		else
			raw_hs_measure(c);
	} else {
		c->hs_next = c->search->next;
		raw_deadline_live(c, c->hs_next);
	}
}

static void probe_round(struct raw_conn *c)
{
	search_result(c, raw_mtu_round(c));
}

static void probe_ack_input(struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct weft_frame_probe *p = (const struct weft_frame_probe *)v->body;
	uint32_t size = weft_get16(p->frame_size);

	if (c->state == RAW_UP && size >= WEFT_FRAME_PROBE_PATH && size <= WEFT_FRAME_PROBE_USE) {
		raw_multi_answer(c, v);
		return;
	}
	if (c->state == RAW_UP && size == WEFT_FRAME_PROBE_PING) {
		raw_sealed_answered(c, weft_get16(p->id));
		return;
	}
	if (c->state == RAW_MEASURE) {
		raw_measure_ack(c, weft_get16(p->id), (uint16_t)size);
		return;
	}
	if (c->state == RAW_PATHS) {
		raw_paths_ack(c, v, (uint16_t)size);
		return;
	}
	if (size != 0)
		size += c->iface->wire_less;
	if (c->state == RAW_UP)
		raw_mtu_ack(c, weft_get16(p->id), (uint16_t)size);
	else if (c->state == RAW_PROBE && size <= c->search->full)
		search_result(c, weft_mtu_search_ack(c->search, weft_get16(p->id), (uint16_t)size,
						     c->iface->live_clock));
}

/* The responder is busy. Its cookie, repeated in HELLO, proves that this end has its address. */
static void retry_input(struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct weft_frame_retry *r = (const struct weft_frame_retry *)v->body;

	if (c->state != RAW_HELLO || c->hs->cookie == weft_get64(r->cookie))
		return; /* a repeated HELLO_RETRY: the next round sends HELLO again */
	c->hs->cookie = weft_get64(r->cookie);
	c->path[0].sport = v->dst_port;
	send_hello(c, WEFT_FRAME_HELLO);
}

static void hello_ack_input(struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct weft_frame_hello *h = (const struct weft_frame_hello *)v->body;

	if (c->state != RAW_HELLO)
		return; /* the answer to a repeated HELLO */
	if (!hello_acceptable(c->iface, h) || weft_get64(h->iface_id) != c->remote_iface) {
		raw_count(c->iface, RAW_DROP_BAD_TYPE);
		return;
	}
	if (raw_paths_ignored(c, c->hs_tries > RAW_STEER_ROUNDS))
		return;
	if (raw_mtu_search_alloc(c) != 0)
		return; /* the next HELLO_ACK may find memory */
	if (c->iface->seal && !raw_sealed_take_ack(c, v))
		return;
	if (h->steer & WEFT_HELLO_ANY_QUEUE)
		c->elsewhere = true;
	c->path[0].sport = v->dst_port;
	take_hello(c, h);
	weft_mtu_search_begin(c->search, c->frame_size, c->iface->least_size,
			      (uint8_t)(RTE_ETHER_HDR_LEN + c->iface->l2_tag),
			      c->iface->live_clock);
	raw_hs_enter(c, RAW_PROBE);
	raw_hs_timer(c);
}

static const char *reset_text(uint16_t reason)
{
	switch (reason) {
	case WEFT_RESET_IFACE:
		return "the worker whose address this is has gone (its process ended or was "
		       "restarted)";
	case WEFT_RESET_VERSION:
		return "it has another version of the lane protocol";
	case WEFT_RESET_REFUSED:
		return "it refused the connection";
	case WEFT_RESET_GONE:
		return "its process has ended";
	case WEFT_RESET_SEAL:
		return "it refused the connection, since both ends do not seal their frames alike: "
		       "give them the same WEFT_JOB_KEY, WEFT_SEAL and WEFT_SEAL_DH";
	default:
		return "it does not know this connection any more: it was restarted, or gave the "
		       "connection up";
	}
}

static void resolve_text(const struct raw_conn *c, double s, char *text, size_t size)
{
	const struct raw_iface *iface = c->iface;
	static const char *const texts[2][2] = {
		{"no ARP answer from", "no neighbour discovery answer from"},
		{"no ARP answer from the gateway",
		 "no neighbour discovery answer from the gateway"},
	};
	bool gateway = c->hop_ip != c->peer_ip;
	const char *none = texts[gateway][iface->rx_filter.six];
	char peer[64], hop[INET6_ADDRSTRLEN];

	raw_peer_text(c, peer, sizeof(peer));
	raw_ip_text(iface, c->hop_ip, hop, sizeof(hop));
	if (gateway)
		snprintf(text, size, "%s: %s %s in %.1f s (wanted for %s): check gw=, ip= and VLAN",
			 iface->base.name, none, hop, s, peer);
	else
		snprintf(text, size,
			 "%s: %s %s in %.1f s: check addresses, VLAN and that the peer runs%s",
			 iface->base.name, none, hop, s,
			 iface->no_ip ? raw_ip_hint(iface)
			 : iface->rx_filter.six
				 ? ""
				 : "; where only the gateway answers ARP give ip=ADDRESS/32 "
				   "and gw=, without any ARP give neigh=");
}

void raw_ep_waits_for(const struct weft_lane_ep *lane_ep, char *text, size_t size)
{
	const struct raw_conn *c = (const struct raw_conn *)lane_ep;
	struct raw_iface *iface = c->iface;
	char link[320], peer[64], own[200];
	double s = c->hs ? (double)(iface->live_clock - c->hs->started) / 1e9 : 0;

	raw_peer_text(c, peer, sizeof(peer));
	raw_own_ip_text(iface, own, sizeof(own));
	weft_frame_port_link_text(iface->port, link, sizeof(link));
	if (!iface->port->ops->link_up(iface->port))
		snprintf(text, size, "%s: %s could not be reached in %.1f s: %s", iface->base.name,
			 peer, s, link[0] ? link : "the port has no link");
	else if (c->state == RAW_RESOLVE)
		resolve_text(c, s, text, size);
	else if (c->state == RAW_HELLO && c->hs->refused)
		snprintf(text, size, "%s: %s answers that %s", iface->base.name, peer,
			 reset_text(c->hs->refused));
	else if (c->state == RAW_HELLO)
		snprintf(text, size,
			 "%s: no answer from %s in %.1f s: check that the peer runs, polls, and "
			 "that UDP port %u is open in the firewalls and security groups of both "
			 "ends%s",
			 iface->base.name, peer, s, c->peer_port, own);
	else if (c->state == RAW_PROBE && c->search->small_acks > 0)
		snprintf(text, size,
			 "%s: %s answers small frames but none of %u bytes: the path between "
			 "carries a smaller MTU",
			 iface->base.name, peer, c->search->size);
	else
		snprintf(text, size,
			 "%s: %s stopped answering while connecting (%.1f s): check that it still "
			 "runs and polls",
			 iface->base.name, peer, s);
}

static void no_answer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	char text[512];

	raw_ep_waits_for(&c->base, text, sizeof(text));
	/* The next attempt queries ARP again: the address may have moved to another NIC. */
	if (!iface->rx_filter.raw_ethertype)
		weft_arp_forget(&iface->arp, c->hop_ip);
	raw_conn_fail(c, c->hs->refused != 0 ? -ECONNREFUSED : -ETIMEDOUT, text);
}

void raw_hs_start(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	c->hs->started = iface->live_clock;
	c->hs_expire = iface->live_clock + iface->conf.connect_timeout_ns;
	raw_hs_enter(c, iface->rx_filter.raw_ethertype ? RAW_HELLO : RAW_RESOLVE);
}

/* Names the probable cause early, since WEFT_CONNECT_TIMEOUT is long. */
static void report_late(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	char text[512];

	if (c->hs->late || c->state == RAW_HALF_OPEN ||
	    iface->live_clock - c->hs->started < LATE_NS)
		return;
	c->hs->late = true;
	raw_ep_waits_for(&c->base, text, sizeof(text));
	weft_log_limited(&iface->late_log, WEFT_LOG_WARN, "still connecting: %s", text);
}

void raw_hs_timer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (iface->live_clock >= c->hs_expire) {
		if (c->state == RAW_HALF_OPEN) {
			raw_count(iface, RAW_CONN_EXPIRED);
			raw_conn_free(c);
		} else {
			no_answer(c);
		}
		return;
	}
	if (c->state == RAW_HALF_OPEN || iface->live_clock < c->hs_next)
		return;
	report_late(c);
	if (c->state == RAW_RESOLVE) {
		resolve_peer(c);
		if (c->state == RAW_RESOLVE)
			return;
	}
	switch (c->state) {
	case RAW_MEASURE:
		raw_measure_timer(c);
		return;
	case RAW_HELLO:
		send_hellos(c);
		break;
	case RAW_PROBE:
		probe_round(c);
		return;
	case RAW_PATHS:
		raw_paths_send(c);
		break;
	case RAW_READY:
		send_ready(c);
		break;
	}
	c->hs_next = iface->live_clock + retry_wait(c);
	c->hs_tries++;
	raw_deadline_live(c, c->hs_next);
}

/* ---------------------------------------------------------------- responder */

/* A HELLO gets at most one HELLO_ACK, of its length: its source address may be forged. */
void raw_hello_answer(struct raw_conn *c)
{
	if (c->state == RAW_HALF_OPEN)
		c->hs->unanswered = false;
	send_hello(c, WEFT_FRAME_HELLO_ACK);
}

/* @return false: the HELLO has been refused. Only this end's log has the exact reason. */
static bool seals_alike(struct raw_iface *iface, const struct weft_frame_view *v)
{
	enum weft_hello_verdict verdict = WEFT_HELLO_PLAIN;
	char ip[INET6_ADDRSTRLEN];

	if (iface->seal)
		verdict = raw_sealed_check_hello(iface, v);
	else if (v->body_len < WEFT_EXCHANGE_BODY)
		return true;
	if (verdict == WEFT_HELLO_OK)
		return true;
	if (!iface->seal) {
		raw_count(iface, RAW_SEAL_HELLO_PLAIN);
		raw_ip_text(iface, v->src_ip, ip, sizeof(ip));
		weft_log_limited(&iface->late_log, WEFT_LOG_WARN,
				 "%s: a connection with %s is refused: the peer seals its "
				 "frames: give both ends the same WEFT_JOB_KEY, or none",
				 iface->base.name, ip);
	}
	raw_reset_send(iface, v,
		       verdict == WEFT_HELLO_ENDED ? WEFT_RESET_UNKNOWN : WEFT_RESET_SEAL);
	return false;
}

/* Derives the keys. @return false: the half-open connection is gone; HELLO will be repeated */
static bool answer_sealed(struct raw_conn *c, const struct weft_frame_view *v)
{
	uint8_t ack[WEFT_EXCHANGE_BODY] __rte_aligned(8);
	struct weft_frame_hello *h = (struct weft_frame_hello *)ack;

	fill_hello(c, h);
	if (c->iface->rx_elsewhere)
		h->steer = WEFT_HELLO_ANY_QUEUE;
	if (raw_sealed_answer(c, v, ack) == 0)
		return true;
	raw_conn_free(c);
	return false;
}

void raw_hello_input(struct raw_iface *iface, const struct weft_frame_view *v)
{
	const struct weft_frame_hello *h = (const struct weft_frame_hello *)v->body;
	struct raw_conn *c;
	bool shown;
	int rc;

	if (!(v->flags & WEFT_FRAME_F_CRC32C)) {
		raw_count(iface, RAW_DROP_BAD_CSUM);
		return;
	}
	if (weft_get64(h->peer_iface) != iface->iface_id) {
		raw_count(iface, RAW_DROP_UNKNOWN);
		raw_reset_send(iface, v, WEFT_RESET_IFACE);
		return;
	}
	if (!hello_acceptable(iface, h) || weft_get64(h->iface_id) == iface->iface_id) {
		raw_count(iface, RAW_DROP_BAD_TYPE);
		raw_reset_send(iface, v, WEFT_RESET_REFUSED);
		return;
	}
	if (iface->rx_elsewhere && !(h->steer & WEFT_HELLO_ANY_QUEUE)) {
		raw_count(iface, RAW_STEER_WRONG);
		return;
	}
	c = raw_table_hello(iface, h, NULL);
	if (c && iface->seal && !raw_sealed_find_offer(&c, v)) {
		raw_count(iface, RAW_DROP_STATE);
		return;
	}
	if (!c) {
		if (!raw_half_admit(iface, v, &shown) || !seals_alike(iface, v))
			return;
		rc = raw_conn_new(iface, true, &c);
		if (rc != 0) {
			if (rc == -ENOSPC)
				raw_count(iface, RAW_DROP_HALF_OPEN_FULL);
			raw_reset_send(iface, v, WEFT_RESET_BUSY);
			return;
		}
		raw_half_add(c, v, shown);
		raw_hello_mac_begin(c, v);
		c->peer_port = weft_get16(h->udp_port) != 0 ? weft_get16(h->udp_port) : v->src_port;
		take_hello(c, h);
		if (iface->seal && !answer_sealed(c, v))
			return;
		raw_table_hello_add(c);
		c->hs_expire = iface->live_clock + RAW_HALF_OPEN_NS;
		raw_deadline_live(c, c->hs_expire);
	}
	if (c->state == RAW_HALF_OPEN) {
		c->hs->unanswered = true;
		c->elsewhere = iface->rx_elsewhere;
		c->path[0].dport = v->src_port;
	}
	/* While a sealed connection is up, no HELLO_ACK is repeated: its peer has the keys. */
	if ((c->state == RAW_HALF_OPEN && raw_hello_mac_known(c)) ||
	    (c->state == RAW_UP && !c->sealed))
		raw_hello_answer(c);
}

/* Bytes of the received frame as this end would have sent it: a switch may have changed its tag. */
static uint32_t came_size(const struct raw_conn *c, const struct weft_frame_view *v)
{
	return c->encap.len + weft_get16(v->hdr->length) +
	       (v->flags & WEFT_FRAME_F_CRC32C ? 4u : raw_csum_len(c));
}

/* Drops a probe shorter than it states: a forged one would make this end flood another host. */
static void probe_input(struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct weft_frame_probe *p = (const struct weft_frame_probe *)v->body;
	uint32_t size = weft_get16(p->frame_size);
	uint8_t path;

	if (!raw_path_probe(c, v, &path))
		return;
	if (size != 0)
		size += c->iface->wire_less;
	if (size > c->iface->frame_size)
		raw_count(c->iface, RAW_DROP_BAD_TYPE);
	else if (size > came_size(c, v))
		raw_count(c->iface, RAW_DROP_PROBE);
	else if (raw_ctl_send_on(c, path, WEFT_FRAME_PROBE_ACK, 0, p, sizeof(*p), size) == 0)
		raw_measure_probe(c, weft_get16(p->id), weft_get16(p->frame_size));
}

static void ready_input(struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct weft_frame_ready *r = (const struct weft_frame_ready *)v->body;
	uint32_t size = weft_get16(r->frame_size) + c->iface->wire_less;
	int err = 0;

	if (!c->base.passive || size < c->iface->least_size || size > c->iface->frame_size) {
		raw_count(c->iface, RAW_DROP_BAD_TYPE);
		return;
	}
	if (c->state == RAW_HALF_OPEN)
		err = raw_paths_take(c, v);
	if (err == -EPROTO)
		raw_count(c->iface, RAW_DROP_BAD_TYPE);
	if (err != 0)
		return; /* without memory the next READY may find some */
	/* READY came from another port: a host on the path may have changed that of path 0. */
	if (!c->rx.data_received && c->path[0].dport != v->src_port) {
		c->path[0].dport = v->src_port;
		if (c->state == RAW_UP)
			raw_farewell_enter(c);
	}
	raw_ctl_send(c, WEFT_FRAME_READY_ACK, 0, NULL, 0, 0);
	if (c->state == RAW_HALF_OPEN)
		raw_conn_up(c, (uint16_t)size);
}

/* Handles a frame whose token is that of the connection. */
void raw_hs_input(struct raw_conn *c, const struct weft_frame_view *v)
{
	if (c->state == RAW_HALF_OPEN)
		raw_half_shown(c);
	switch (v->type) {
	case WEFT_FRAME_HELLO_RETRY:
		retry_input(c, v);
		break;
	case WEFT_FRAME_HELLO_ACK:
		hello_ack_input(c, v);
		break;
	case WEFT_FRAME_PROBE:
		if (c->state == RAW_HALF_OPEN || c->state == RAW_UP)
			probe_input(c, v);
		break;
	case WEFT_FRAME_PROBE_ACK:
		probe_ack_input(c, v);
		break;
	case WEFT_FRAME_READY:
		if (c->state == RAW_HALF_OPEN || c->state == RAW_UP)
			ready_input(c, v);
		break;
	case WEFT_FRAME_READY_ACK:
		if (c->state == RAW_READY)
			raw_conn_up(c, c->frame_size);
		break;
	case WEFT_FRAME_BYE:
		/* Before HELLO_ACK there is no key, so an unsealed BYE is not from the peer. */
		if (c->iface->seal && c->csum != RAW_CSUM_SEALED) {
			raw_count(c->iface, RAW_DROP_UNSEALED);
			break;
		}
		/* The peer closed the connection before it was up here, or it is down already. */
		raw_ctl_send_on(c, raw_came_over(c, v), WEFT_FRAME_BYE_ACK, 0, NULL, 0, 0);
		if (c->state == RAW_HALF_OPEN)
			raw_conn_free(c);
		else if (c->state != RAW_DOWN)
			raw_conn_fail(c, -ECONNRESET,
				      "the peer closed the connection during the handshake");
		break;
	default:
		raw_count(c->iface, RAW_DROP_STATE);
	}
}

/* ---------------------------------------------------------------- RESET */

/* Any host on the path can forge RESET, so it ends no connection of an iface with a job key. */
static void reset_hint(struct raw_conn *c, uint16_t reason)
{
	struct raw_iface *iface = c->iface;
	char peer[64];

	raw_count(iface, RAW_RESET_HINTS);
	if (c->state == RAW_HELLO && reason != WEFT_RESET_BUSY) {
		if (c->hs->refused == reason)
			return;
		c->hs->refused = reason;
		weft_log_limited(&iface->late_log, WEFT_LOG_WARN,
				 "%s: %s answers that %s; connecting goes on", iface->base.name,
				 raw_peer_text(c, peer, sizeof(peer)), reset_text(reason));
	} else if (c->state == RAW_UP) {
		raw_hint_reset(c);
	} else if (reason == WEFT_RESET_UNKNOWN && c->state >= RAW_PROBE && c->state <= RAW_READY &&
		   raw_sealed_restart(c)) {
		raw_hs_enter(c, RAW_HELLO);
	}
}

void raw_reset_input(struct raw_iface *iface, const struct weft_frame_view *v)
{
	const struct weft_frame_reset *r = (const struct weft_frame_reset *)v->body;
	uint32_t index = weft_get32(v->hdr->dst_conn) & 0xffff;
	struct raw_conn *c = index < iface->refs_len ? iface->refs[index].conn : NULL;
	uint16_t reason = weft_get16(r->reason);
	char text[320], peer[64];
	bool early;

	if (!c) {
		raw_count(iface, RAW_DROP_RESET);
		return;
	}
	early = c->state == RAW_HELLO;
	if (weft_get32(r->echo_conn) != (early ? c->id : c->remote_id) ||
	    weft_get32(r->echo_token) != (early ? c->token : c->remote_token) ||
	    c->state == RAW_RESOLVE) {
		raw_count(iface, RAW_DROP_RESET);
		return;
	}
	if (iface->seal) {
		reset_hint(c, reason);
		return;
	}
	if (c->state == RAW_TIME_WAIT) {
		c->bye.done = true;
		return;
	}
	if (c->state == RAW_DOWN || c->state == RAW_QUIET || reason == WEFT_RESET_BUSY)
		return; /* busy: HELLO is sent again anyway */
	if (c->state == RAW_HALF_OPEN) {
		raw_conn_free(c);
		return;
	}
	if (reason == WEFT_RESET_UNKNOWN && (c->state == RAW_PROBE || c->state == RAW_PATHS ||
					     c->state == RAW_MEASURE || c->state == RAW_READY)) {
		/* The peer's half-open entry expired while this end did not poll: begin again. */
		raw_hs_enter(c, RAW_HELLO);
		return;
	}
	raw_count(iface, RAW_RESET_IN);
	if (reason == WEFT_RESET_VERSION)
		snprintf(text, sizeof(text), "%s: %s answers that %s (%u to %u, this end has %u)",
			 iface->base.name, raw_peer_text(c, peer, sizeof(peer)), reset_text(reason),
			 r->version_min, r->version_max, WEFT_FRAME_VERSION);
	else
		snprintf(text, sizeof(text), "%s: %s answers that %s", iface->base.name,
			 raw_peer_text(c, peer, sizeof(peer)), reset_text(reason));
	raw_hint_siblings(c);
	raw_conn_fail(c, early ? -ECONNREFUSED : -ECONNRESET, text);
}
