/* SPDX-License-Identifier: BSD-3-Clause */

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_ether.h>

#include "base/container.h"
#include "base/log.h"
#include "engine/address.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/handshake.h"
#include "engine/iface.h"
#include "engine/lifetime.h"
#include "engine/liveness.h"
#include "engine/mtu.h"
#include "engine/neighbour.h"
#include "engine/tx.h"
#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/parse.h"

/* ---------------------------------------------------------------- requests */

bool raw_arp_request(struct raw_iface *iface, uint32_t ip, bool theirs)
{
	static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct rte_arp_hdr request;

	if (!(theirs ? weft_arp_request_theirs(&iface->arp, ip, iface->now, &request)
		     : weft_arp_request(&iface->arp, ip, iface->now, &request)))
		return false;
	raw_arp_send(iface, everybody, &request);
	raw_count(iface, RAW_ARP_REQUESTS);
	return true;
}

/* ---------------------------------------------------------------- answers to HELLO */

/*
 * The answer to a HELLO contains the connection's secrets, so it goes to the owner of the sender's
 * IP address. ARP finds the owner, or the gateway of an address outside the subnet. Without an ARP
 * reply or a gateway the answer goes to the frame's source MAC.
 */

void raw_hello_mac_begin(struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct raw_iface *iface = c->iface;

	memcpy(c->peer_mac, v->src_mac, 6);
	memcpy(c->hs->hello_mac, v->src_mac, 6);
	raw_state_peer(c, v->src_ip);
	c->hop_ip = v->src_ip;
	c->hs->mac_unproven =
		!iface->rx_filter.raw_ethertype && raw_next_hop(iface, c->peer_ip, &c->hop_ip) == 0;
}

bool raw_hello_mac_known(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	bool same;
	uint8_t mac[6];

	if (!c->hs->mac_unproven)
		return true;
	if (!weft_arp_lookup(&iface->arp, c->hop_ip, iface->now, mac)) {
		raw_arp_request(iface, c->hop_ip, true);
		return iface->live_clock + RAW_HALF_OPEN_NS >= c->hs_expire + RAW_HELLO_MAC_NS;
	}
	same = memcmp(mac, c->hs->hello_mac, 6) == 0;
	/* The peer may have moved since; so a HELLO starts another ARP request now and then. */
	if (!same && weft_arp_recheck(&iface->arp, c->hop_ip, iface->now)) {
		raw_arp_request(iface, c->hop_ip, true);
		return false;
	}
	memcpy(c->peer_mac, mac, 6);
	raw_conn_template(c);
	c->hs->mac_unproven = !same;
	return true;
}

/*
 * Each accepted ARP frame may be the awaited one. HELLOs that have been answered get no other
 * HELLO_ACK: a sender of ARP frames would make this end flood another host.
 */
static void hello_mac_learned(struct raw_iface *iface)
{
	struct raw_conn *c;

	TAILQ_FOREACH(c, &iface->half.list, hs->half_link)
		if (c->hs->mac_unproven && c->hs->unanswered && raw_hello_mac_known(c))
			raw_hello_answer(c);
}

/* ---------------------------------------------------------------- received ARP frames */

static void several_have_it(struct raw_iface *iface)
{
	const struct weft_arp_conflict *k = &iface->arp.conflict;
	char ip[INET6_ADDRSTRLEN], mac[2][RTE_ETHER_ADDR_FMT_SIZE];

	raw_count(iface, RAW_ARP_CONFLICT);
	for (unsigned int i = 0; i < 2; i++)
		raw_mac_text(k->mac[i], mac[i]);
	raw_ip_text(iface, k->ip, ip, sizeof(ip));
	if (k->ip == iface->rx_filter.ip)
		weft_log_limited(
			&iface->conflict_log, WEFT_LOG_WARN,
			"%s (%s): address conflict: %s is this port's, which has MAC "
			"address %s, and a host with MAC address %s claims it, "
			"too: peers may reach either, so give one of them another address (ip=)",
			iface->base.name, iface->base.attr.device, ip, mac[0], mac[1]);
	else
		weft_log_limited(&iface->conflict_log, WEFT_LOG_WARN,
				 "%s (%s): address conflict: %s is claimed by MAC addresses "
				 "%s and %s: if these are two hosts, give one of them another "
				 "address; neigh=%s-MAC selects one of them here",
				 iface->base.name, iface->base.attr.device, ip, mac[0], mac[1], ip);
}

void raw_arp_input(struct raw_iface *iface, const struct weft_frame_view *v)
{
	struct rte_arp_hdr reply;
	struct raw_conn *c;

	raw_count(iface, RAW_ARP_IN);
	raw_hint_arp(iface, v->arp);
	switch (weft_arp_input(&iface->arp, v->arp, iface->now, &reply)) {
	case WEFT_ARP_ANSWER:
		raw_arp_send(iface, reply.arp_data.arp_tha.addr_bytes, &reply);
		raw_count(iface, RAW_ARP_ANSWERED);
		break;
	case WEFT_ARP_CONFLICT:
	case WEFT_ARP_SEVERAL:
		several_have_it(iface);
		return;
	case WEFT_ARP_IGNORED:
		return;
	case WEFT_ARP_LEARNED:
		break;
	}
	hello_mac_learned(iface);
	while ((c = TAILQ_FIRST(&iface->resolving))) {
		raw_table_resolving(c, false);
		if (c->state == RAW_RESOLVE)
			raw_deadline_live(c, c->hs_next = iface->live_clock);
	}
}

/* ---------------------------------------------------------------- IPv6 */

enum weft_rx_verdict raw_ip6_input(struct raw_iface *iface, enum weft_rx_verdict g,
				   struct weft_frame_view *v, struct rte_arp_hdr *arp)
{
	bool checked = iface->port->flags & WEFT_FRAME_PORT_RX_CSUM && iface->rx_l4_ok;
	const uint16_t own_sum = WEFT_FRAME_F_CRC32C | WEFT_FRAME_F_SEALED;
	struct weft_hosts *hosts = iface->port->hosts;

	if (g == WEFT_VERDICT_ND) {
		v->arp = arp;
		return weft_nd_read(&iface->rx_filter, hosts, &v->nd, arp) ? WEFT_VERDICT_ARP
									   : WEFT_VERDICT_NOT_OURS;
	}
	if (g == WEFT_VERDICT_ICMP) {
		v->src_ip = weft_hosts_find(hosts, &v->ip6->src_addr);
		v->quote_ip = weft_hosts_find(hosts, v->quote_ip6);
		return g;
	}
	/*
	 * A kernel leaves UDP's checksum to its device, and a veth or a tap passes the frame on
	 * without it. The frame's CRC, or the tag of a sealed frame, then takes its place.
	 */
	if (v->udp_csum == 0 || (!checked && !weft_frame_udp_csum_ok(v) &&
				 (g != WEFT_VERDICT_OK || !(v->flags & own_sum))))
		return WEFT_VERDICT_BAD_CSUM;
	iface->rx_l4_ok = true;
	if (g != WEFT_VERDICT_OK && g != WEFT_VERDICT_BAD_VERSION)
		return g;
	v->src_ip = weft_hosts_number(hosts, &v->ip6->src_addr);
	return v->src_ip != 0 ? g : WEFT_VERDICT_NOT_OURS; /* 0: connections hold all numbers */
}

/* ---------------------------------------------------------------- peers that move: challenges */

/*
 * A peer's MAC address changes when a gateway takes over for another, a machine moves or a NIC is
 * replaced. ARP announces the new address, but any host of the network can send ARP. So frames go
 * to the old MAC until the peer has proved that it is behind the new one: the new MAC gets a
 * CHALLENGE with a number, and the answer is a hash of it under the secrets of both ends. The
 * answer must come from the challenged MAC: the peer answers to the MAC address that it has for
 * this end, so another host that forwards the challenge gains nothing. The challenge has no
 * connection token, so that an unknown receiver learns nothing that it could send.
 *
 * Several hosts may claim the address, and an unknown one may be the first each time. So two of the
 * claims in the ARP table get a challenge at a time, in rotation. The number depends on the
 * challenged MAC, so the connection keeps no state for each MAC.
 *
 * A challenge contains a proof, too, and is answered once. So a host that repeats or invents one
 * costs this end one hash, and uses up nothing that the genuine challenge needs.
 */

#define MOVE_GAP 50000000ull /* least ns between two checks of a connection */
#define MOVE_CHALLENGES 2u   /* most challenges of one check */
/* Newest challenges that the receiver distinguishes, and to which an answer is still valid. */
#define MOVE_MEMORY 64u
/* least ns between two ARP requests of an iface for peers that may have moved */
#define ARP_GAP 10000000ull

enum { QUESTION, ANSWER };

static uint64_t challenge_proof(const struct raw_conn *c, uint64_t number, bool ours, uint8_t what)
{
	const struct weft_siphash_key key = {c->base.passive ? c->remote_secret : c->secret,
					     c->base.passive ? c->secret : c->remote_secret};
	uint8_t by = ours != c->base.passive; /* 1: the initiator is the challenger */
	weft_le64 wire = weft_put64(number);
	struct weft_siphash s;

	weft_siphash_init(&s, &key);
	weft_siphash_add(&s, &wire, sizeof(wire));
	weft_siphash_add(&s, &by, 1);
	weft_siphash_add(&s, &what, 1);
	return weft_siphash_end(&s);
}

/* The hash is under a key of this iface, so no other host can compute the number. */
static uint64_t number_of(const struct raw_conn *c, uint32_t question, const uint8_t mac[6])
{
	struct weft_siphash s;

	weft_siphash_init(&s, &c->iface->key);
	weft_siphash_add(&s, &c->secret, sizeof(c->secret));
	weft_siphash_add(&s, &question, sizeof(question));
	weft_siphash_add(&s, mac, 6);
	return (uint64_t)question << 32 | (uint32_t)weft_siphash_end(&s);
}

static void challenge_mac(struct raw_conn *c, const uint8_t mac[6])
{
	const struct raw_dest d = {
		.mac = mac,
		.ip = c->peer_ip,
		.id = c->remote_id,
		.sport = c->path[c->next_path].sport,
		.dport = c->path[c->next_path].dport,
		.tos = (uint8_t)(c->iface->dscp << 2),
	};
	uint64_t number = number_of(c, ++c->move->challenges, mac);
	struct weft_frame_challenge body = {
		.number = weft_put64(number),
		.proof = weft_put64(challenge_proof(c, number, true, QUESTION)),
	};

	raw_dest_send(c->iface, &d, WEFT_FRAME_CHALLENGE, &body, sizeof(body));
	raw_count(c->iface, RAW_MOVE_REQUESTS);
}

void raw_move_look(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	uint8_t mac[WEFT_ARP_REPLIERS][6];
	unsigned int n, k, sent = 0;

	if (iface->rx_filter.raw_ethertype || raw_state_move(c) != 0 ||
	    iface->live_clock < c->move->next)
		return;
	n = weft_arp_repliers(&iface->arp, c->hop_ip, mac);
	for (unsigned int i = 0; i < n && sent < MOVE_CHALLENGES; i++) {
		k = c->move->next_mac++ % n;
		if (memcmp(mac[k], c->peer_mac, 6) == 0)
			continue;
		challenge_mac(c, mac[k]);
		sent++;
	}
	if (iface->live_clock < iface->move_arp) {
		c->move->next = sent > 0 ? iface->live_clock + MOVE_GAP : iface->move_arp;
		return;
	}
	c->move->next = iface->live_clock + MOVE_GAP * RTE_MIN(c->live.pings + 1, 20u);
	iface->move_arp = iface->live_clock + ARP_GAP;
	/* The entry may be the address that the peer had before: request it again. */
	weft_arp_forget(&iface->arp, c->hop_ip);
	raw_arp_request(iface, c->hop_ip, false);
}

/* @return true: the challenge has not been answered before */
static bool take_question(struct raw_conn *c, uint32_t question)
{
	uint32_t ahead, behind;

	if (raw_state_move(c) != 0)
		return false;
	ahead = question - c->move->newest;
	behind = c->move->newest - question;
	if ((int32_t)ahead > 0) {
		c->move->answered = ahead < MOVE_MEMORY ? c->move->answered << ahead | 1 : 1;
		c->move->newest = question;
		return true;
	}
	if (behind >= MOVE_MEMORY || c->move->answered >> behind & 1)
		return false;
	c->move->answered |= 1ull << behind;
	return true;
}

void raw_challenge_input(struct raw_iface *iface, const struct weft_frame_view *v)
{
	const struct weft_frame_challenge *q = (const struct weft_frame_challenge *)v->body;
	uint32_t id = weft_get32(v->hdr->dst_conn), index = id & 0xffff;
	struct raw_conn *c = index < iface->refs_len ? iface->refs[index].conn : NULL;
	uint64_t number = weft_get64(q->number);
	struct weft_frame_challenge body;

	if (!c || c->id != id || c->state != RAW_UP || v->src_ip != c->peer_ip ||
	    weft_get64(q->proof) != challenge_proof(c, number, false, QUESTION) ||
	    !take_question(c, (uint32_t)(number >> 32))) {
		raw_count(iface, RAW_DROP_UNKNOWN);
		return;
	}
	body = (struct weft_frame_challenge){
		.number = q->number,
		.proof = weft_put64(challenge_proof(c, number, false, ANSWER)),
	};
	raw_ctl_send(c, WEFT_FRAME_CHALLENGE_ACK, 0, &body, sizeof(body), 0);
}

static bool is_answer(const struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct weft_frame_challenge *a = (const struct weft_frame_challenge *)v->body;
	uint64_t number = weft_get64(a->number);
	uint32_t question = (uint32_t)(number >> 32);

	return c->move && c->move->challenges - question < MOVE_MEMORY &&
	       c->move->challenges - question < c->move->challenges - c->move->over &&
	       number == number_of(c, question, v->src_mac) &&
	       weft_get64(a->proof) == challenge_proof(c, number, true, ANSWER);
}

void raw_challenge_ack_input(struct raw_conn *c, const struct weft_frame_view *v)
{
	char peer[64], mac[RTE_ETHER_ADDR_FMT_SIZE];
	uint8_t known[6];

	if (!is_answer(c, v)) {
		raw_count(c->iface, RAW_DROP_STATE);
		return;
	}
	c->move->over = c->move->challenges;
	if (c->tx.open)
		raw_frame_close(c, 0);
	/* The next connection to this address requests it by ARP again. */
	if (weft_arp_lookup(&c->iface->arp, c->hop_ip, c->iface->now, known) &&
	    memcmp(known, v->src_mac, 6) != 0)
		weft_arp_forget(&c->iface->arp, c->hop_ip);
	memcpy(c->peer_mac, v->src_mac, 6);
	raw_conn_template(c);
	raw_farewell_enter(c);
	raw_count(c->iface, RAW_MOVED);
	raw_mac_text(c->peer_mac, mac);
	weft_info("%s: %s has the MAC address %s now", c->iface->base.name,
		  raw_peer_text(c, peer, sizeof(peer)), mac);
}

/* ---------------------------------------------------------------- hints */

/*
 * Hints that a peer may be gone or may have moved. Any host can forge them, and some networks have
 * them all the time: a kernel that shares a port with Weft sends ICMP for every frame.
 *
 * So a hint alone neither moves nor ends a connection, but causes a query to the peer by a
 * keepalive, or a challenge to the new MAC (challenge_mac()). A restarted peer answers with RESET.
 * A peer that answers none of three queries is suspect, and the protocol layer then checks its
 * other lanes.
 */

/* ns of live_clock between two checked hints of one kind; doubles up to WAIT_DOUBLES times */
#define WAIT_NS 200000000ull
#define WAIT_DOUBLES 6u
#define CALM_NS 60000000000ull /* after this time without hints the wait starts again */
#define GAP_NS 200000ull       /* between two hints that an iface checks */
/* queries are planned up to this time ahead; hints beyond that are dropped */
#define AHEAD_NS 1000000000ull
#define LOOKS 64u              /* connections that are checked because of one frame */
#define QUOTE_GAP_NS 400000ull /* between two searches for the connection of a short quote */
/* between two of these searches for quotes of one bucket of senders */
#define QUOTE_SHARE_NS 1600000ull
#define QUOTE_BURST_NS 100000000ull /* the searches that are due in this time may come at once */
#define QUERIES 3u
#define ANSWER_NS 20000000ull /* between two queries, at least */
#define GONE_NS 300000000ull  /* silence after which a host's report that the peer is gone counts */
#define GONE_TRIPS 5u         /* round trips that this silence has at least */
#define ANNOUNCE 3u           /* number of announcements: broadcasts get lost */
#define ANNOUNCE_NS 100000000ull

/*
 * Each hint gets a time slot of its own: a restarted peer sends few RESETs at a time, and all its
 * connections need one.
 * @return the live_clock at which the connection may check a hint of this kind; 0: it may not
 */
static uint64_t hint_slot(struct raw_conn *c, enum raw_hint kind)
{
	struct raw_iface *iface = c->iface;
	uint64_t live_clock = iface->live_clock, at = RTE_MAX(live_clock, iface->hint_next);

	if (c->state != RAW_UP || at - live_clock > AHEAD_NS || raw_state_move(c) != 0 ||
	    live_clock < c->move->hint[kind].next) {
		raw_count(iface, RAW_HINT_LIMITED);
		return 0;
	}
	if (live_clock >= c->move->hint[kind].next + CALM_NS)
		c->move->hint[kind].doublings = 0;
	iface->hint_next = at + GAP_NS;
	c->move->hint[kind].next = at + (WAIT_NS << c->move->hint[kind].doublings);
	if (c->move->hint[kind].doublings < WAIT_DOUBLES)
		c->move->hint[kind].doublings++;
	return at;
}

static void hint_check(struct raw_conn *c, enum raw_hint kind)
{
	uint64_t at = !c->move || c->move->query_at == 0 ? hint_slot(c, kind) : 0;

	if (at == 0)
		return;
	c->move->queries = QUERIES;
	c->move->hint_since = c->iface->live_clock;
	c->move->query_at = at;
	raw_deadline_live(c, at);
}

static void send_query(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (raw_ack_send(c, WEFT_FRAME_F_ACK_REQ) == 0)
		raw_count(iface, RAW_HINT_QUERIES);
	c->live.pings++;
	c->move->query_at = iface->live_clock + RTE_MAX(ANSWER_NS, 2ull * c->base.rtt_ns);
	raw_deadline_live(c, c->move->query_at);
}

static void hint_end(struct raw_conn *c)
{
	c->move->queries = 0;
	c->move->query_at = 0;
	c->move->refused = false;
}

/* No query had an answer. A report that the peer is gone is accepted after a longer silence. */
static bool hint_unanswered(struct raw_conn *c)
{
	uint64_t most = RTE_MAX(GONE_NS, GONE_TRIPS * (uint64_t)c->base.rtt_ns);
	bool refused = c->move->refused;

	if (refused && c->iface->live_clock - c->move->hint_since >= most) {
		hint_end(c);
		return true;
	}
	if (refused)
		send_query(c);
	else
		hint_end(c);
	raw_move_look(c);
	raw_suspect_idle(c);
	return false;
}

bool raw_hint_timer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (!c->move || c->move->query_at == 0)
		return false;
	if (c->rx.seen > c->move->hint_since) {
		hint_end(c);
		return false;
	}
	if (iface->live_clock < c->move->query_at) {
		raw_deadline_live(c, c->move->query_at);
		return false;
	}
	if (c->move->queries == 0)
		return hint_unanswered(c);
	c->move->queries--;
	send_query(c);
	return false;
}

static void new_mac(struct raw_conn *c, const uint8_t mac[6])
{
	/* The ARP table is searched last, since all workers share the table and its lock. */
	if (memcmp(mac, c->peer_mac, 6) != 0 && hint_slot(c, RAW_HINT_MAC) != 0 &&
	    !weft_arp_is_fixed(&c->iface->arp, c->hop_ip))
		challenge_mac(c, mac);
}

/*
 * Moves the first connection to the list's end, so that the next hint begins with others.
 * @param last  last of the list before the first call; set to NULL when it has been returned
 */
static struct raw_conn *next_of_hop(struct raw_hop_list *hop, struct raw_conn **last)
{
	struct raw_conn *c = *last ? TAILQ_FIRST(hop) : NULL;

	if (!c)
		return NULL;
	if (c == *last)
		*last = NULL;
	TAILQ_REMOVE(hop, c, hop_link);
	TAILQ_INSERT_TAIL(hop, c, hop_link);
	return c;
}

void raw_hint_arp(struct raw_iface *iface, const struct rte_arp_hdr *arp)
{
	struct weft_arp_hint hint;
	struct raw_hop_list *hop;
	struct raw_conn *c, *last;

	if (!weft_arp_hint(&iface->arp, arp, &hint))
		return;
	hop = raw_table_hop(iface, hint.ip);
	last = hop ? TAILQ_LAST(hop, raw_hop_list) : NULL;
	for (unsigned int n = 0; n < LOOKS && (c = next_of_hop(hop, &last)); n++) {
		if (c->hop_ip != hint.ip || c->state != RAW_UP)
			continue;
		new_mac(c, hint.mac);
		/* That a gateway has started does not concern the peers behind it. */
		if (hint.begins && c->peer_ip == hint.ip)
			hint_check(c, RAW_HINT_ARP);
	}
}

void raw_hint_source(struct raw_conn *c, const uint8_t mac[6])
{
	if (c->iface->rx_filter.raw_ethertype)
		return;
	/* A gateway may send from other MACs than its ARP replies contain: ARP decides then. */
	if (c->hop_ip == c->peer_ip)
		new_mac(c, mac);
	else if (hint_slot(c, RAW_HINT_MAC) != 0)
		raw_move_look(c);
}

void raw_hint_siblings(struct raw_conn *c)
{
	struct raw_hop_list *hop = c->in_hop ? raw_table_hop(c->iface, c->hop_ip) : NULL;
	struct raw_conn *d, *last = hop ? TAILQ_LAST(hop, raw_hop_list) : NULL;

	for (unsigned int n = 0; n < LOOKS && (d = next_of_hop(hop, &last)); n++)
		if (d != c && d->state == RAW_UP && d->remote_iface == c->remote_iface)
			hint_check(d, RAW_HINT_ARP);
}

void raw_hint_reset(struct raw_conn *c)
{
	hint_check(c, RAW_HINT_RESET);
}

static bool has_ports(const struct raw_conn *c, uint16_t ours, uint16_t theirs)
{
	for (unsigned int k = 0; k < c->path_count; k++)
		if (c->path[k].sport == ours && c->path[k].dport == theirs)
			return true;
	return false;
}

/* Token bucket. @p next: the time from which the next event is within the rate. */
static bool is_due(uint64_t *next, uint64_t live_clock, uint64_t gap)
{
	uint64_t at = RTE_MAX(live_clock, *next);

	if (at - live_clock > QUOTE_BURST_NS)
		return false;
	*next = at + gap;
	return true;
}

/*
 * Any host can forge a short quote, also with another sender's address. Each bucket of senders has
 * a rate, so that one sender can't use up the rate of all senders.
 */
static bool may_look(struct raw_iface *iface, uint32_t sender)
{
	uint64_t *share =
		&iface->quote_by[weft_siphash(&iface->key, &sender, sizeof(sender)) % RAW_QUOTERS];

	if (is_due(share, iface->live_clock, QUOTE_SHARE_NS) &&
	    is_due(&iface->quote_next, iface->live_clock, QUOTE_GAP_NS))
		return true;
	raw_count(iface, RAW_HINT_LIMITED);
	return false;
}

/* Routers may quote no more than ports. The next quote reaches other connections. */
static struct raw_conn *by_ports(struct raw_iface *iface, const struct weft_frame_view *v,
				 const struct rte_udp_hdr *udp)
{
	uint32_t ip = v->quote_ip, hop_ip;
	struct raw_conn *c, *last;
	struct raw_hop_list *hop;

	if (raw_next_hop(iface, ip, &hop_ip) != 0 || !may_look(iface, v->src_ip))
		return NULL;
	hop = raw_table_hop(iface, hop_ip);
	last = hop ? TAILQ_LAST(hop, raw_hop_list) : NULL;
	for (unsigned int n = 0; n < LOOKS && (c = next_of_hop(hop, &last)); n++)
		if (c->state == RAW_UP && c->peer_ip == ip &&
		    has_ports(c, weft_be16(udp->src_port), weft_be16(udp->dst_port)))
			return c;
	return NULL;
}

static struct raw_conn *quoted_conn(struct raw_iface *iface, const struct weft_frame_view *v)
{
	const struct weft_frame_hdr *hdr = (const struct weft_frame_hdr *)(v->quote + 1);
	uint32_t ip = v->quote_ip, index;
	struct raw_conn *c;

	if (v->quote_len < sizeof(*v->quote) + sizeof(*hdr))
		return by_ports(iface, v, v->quote);
	index = weft_get16(hdr->src_conn);
	c = index < iface->refs_len ? iface->refs[index].conn : NULL;
	if (!c || c->state != RAW_UP || c->peer_ip != ip ||
	    weft_get16(hdr->magic) != WEFT_FRAME_MAGIC ||
	    weft_get32(hdr->dst_conn) != c->remote_id || weft_get32(hdr->token) != c->remote_token)
		return NULL;
	return c;
}

/*
 * The kernel of a peer with a socket reports an unreachable port as soon as the peer's process is
 * gone, but not while the process is stopped. The report ends the connection when the queries that
 * it starts have no answer, and the silence lasts for GONE_NS and GONE_TRIPS round trips. On an
 * interface with a job key no unsealed frame ends a connection.
 */
static bool is_refused(const struct raw_conn *c, const struct weft_frame_view *v)
{
	return v->icmp_code == WEFT_ICMP_NO_PORT && c->live.socket && !c->iface->seal &&
	       v->src_ip == c->peer_ip &&
	       v->quote_len >= sizeof(*v->quote) + sizeof(struct weft_frame_hdr);
}

static void hint_refused(struct raw_conn *c)
{
	hint_check(c, RAW_HINT_GONE);
	if (c->move && c->move->query_at != 0)
		c->move->refused = true;
}

void raw_hint_icmp(struct raw_iface *iface, const struct weft_frame_view *v)
{
	struct raw_conn *c = quoted_conn(iface, v);

	if (!c) {
		raw_count(iface, RAW_DROP_ICMP);
		return;
	}
	raw_count(iface, RAW_ICMP_IN);
	if (is_refused(c, v))
		hint_refused(c);
	else if (v->icmp_code != WEFT_ICMP_TOO_LONG)
		hint_check(c, RAW_HINT_ICMP);
	else if (c->tx.timer != 0 && hint_slot(c, RAW_HINT_ICMP) != 0)
		raw_mtu_suspect(c, c->tx.una); /* begins the search for the size that passes */
}

/* Peers then query their connections: a process that replaced another one answers by RESET. */
void raw_announce_begin(struct raw_iface *iface)
{
	iface->announced = 0;
	iface->announce_at = iface->rx_filter.raw_ethertype ? RAW_NEVER : iface->live_clock;
	iface->next_live_clock = RTE_MIN(iface->next_live_clock, iface->announce_at);
}

void raw_announce(struct raw_iface *iface)
{
	static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct rte_arp_hdr probe;

	weft_arp_probe(&iface->arp, &probe);
	raw_arp_send(iface, everybody, &probe);
	/* IPv6 solicitations reach only hosts with this address; advertisements reach all. */
	if (iface->rx_filter.six) {
		probe.arp_opcode = RTE_BE16(RTE_ARP_OP_REPLY);
		raw_arp_send(iface, everybody, &probe);
	}
	iface->announced++;
	iface->announce_at = iface->announced < ANNOUNCE
				     ? iface->live_clock + (ANNOUNCE_NS << iface->announced)
				     : RAW_NEVER;
}
