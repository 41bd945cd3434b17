/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Hints: a host's word by ARP that it begins or has another MAC address, ICMP's that a frame did
 * not arrive, a frame that comes from another MAC. Anybody can make them up, and some networks have
 * them all the time (a kernel that shares a port with Weft sends ICMP for every frame). So a hint
 * moves and ends nothing: the peer is asked, by a keepalive whose answer proves what is true, or
 * the new MAC is (engine/move.c). Who began again answers with RESET; who says nothing to three
 * questions is suspect, which is for the other lanes to judge.
 *
 * Questions are bounded for each connection, by a wait that doubles with each hint in vain, and for
 * all of an iface; so is the number of connections that a hint is for. ICMP that quotes ports alone
 * has connections searched for them: each sender has a share of such looks, too.
 */

#include "engine/doubt.h"

#include <string.h>

#include <rte_common.h>

#include "engine/ack.h"
#include "engine/build.h"
#include "engine/conn_table.h"
#include "engine/mtu.h"
#include "engine/peer.h"
#include "engine/suspect.h"
#include "engine/timer.h"
#include "frame/arp.h"
#include "frame/frame.h"

#define WAIT_NS 200000000ull /* lt, between two hints of a kind that a connection checks */
#define WAIT_DOUBLES 6u
#define CALM_NS 60000000000ull      /* without any: the next one is the first again */
#define GAP_NS 200000ull            /* between two of all connections */
#define AHEAD_NS 1000000000ull      /* so much is planned; what more there is goes by */
#define LOOKS 64u                   /* connections that one frame makes us check */
#define QUOTE_GAP_NS 400000ull      /* between two looks for whom a short quote is about */
#define QUOTE_SHARE_NS 1600000ull   /* the same, for one sender */
#define QUOTE_BURST_NS 100000000ull /* so much of either may come at once */
#define QUESTIONS 3u
#define ANSWER_NS 20000000ull /* between two questions, at least */
#define ANNOUNCE 3u           /* said so often: broadcasts get lost */
#define ANNOUNCE_NS 100000000ull

/*
 * When this connection may check one more hint of this kind: each has a slot of its own, so that
 * the RESETs of who began again, which are few at a time, reach all.
 * @return lt, 0 = it may not
 */
static uint64_t slot(struct raw_conn *c, enum raw_hint kind)
{
	struct raw_iface *iface = c->iface;
	uint64_t lt = iface->lt, at = RTE_MAX(lt, iface->doubt_next);

	if (lt >= c->doubt.hint[kind].next + CALM_NS)
		c->doubt.hint[kind].vain = 0;
	if (c->state != RAW_UP || lt < c->doubt.hint[kind].next || at - lt > AHEAD_NS) {
		raw_count(iface, RAW_HINT_LIMITED);
		return 0;
	}
	iface->doubt_next = at + GAP_NS;
	c->doubt.hint[kind].next = at + (WAIT_NS << c->doubt.hint[kind].vain);
	if (c->doubt.hint[kind].vain < WAIT_DOUBLES)
		c->doubt.hint[kind].vain++;
	return at;
}

static void doubt(struct raw_conn *c, enum raw_hint kind)
{
	uint64_t at = c->doubt.at == 0 ? slot(c, kind) : 0;

	if (at == 0)
		return;
	c->doubt.left = QUESTIONS;
	c->doubt.since = c->iface->lt;
	c->doubt.at = at;
	raw_deadline_lt(c, at);
}

static void question(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (raw_ack_send(c, WEFT_FRAME_F_ACK_REQ) == 0)
		raw_count(iface, RAW_HINT_ASKED);
	c->doubt.left--;
	c->pings++;
	c->doubt.at = iface->lt + RTE_MAX(ANSWER_NS, 2ull * c->base.rtt_ns);
	raw_deadline_lt(c, c->doubt.at);
}

void raw_doubt_timer(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (c->doubt.at == 0)
		return;
	if (c->seen > c->doubt.since) {
		c->doubt.left = 0;
		c->doubt.at = 0;
		return;
	}
	if (iface->lt < c->doubt.at) {
		raw_deadline_lt(c, c->doubt.at);
		return;
	}
	if (c->doubt.left > 0) {
		question(c);
		return;
	}
	c->doubt.at = 0;
	raw_move_look(c);
	raw_suspect_idle(c);
}

static void new_mac(struct raw_conn *c, const uint8_t mac[6])
{
	/* The table is all workers': it is checked as seldom as there may be a question. */
	if (memcmp(mac, c->peer_mac, 6) != 0 && slot(c, RAW_HINT_MAC) != 0 &&
	    !weft_arp_is_fixed(&c->iface->arp, c->hop_ip))
		raw_move_ask(c, mac);
}

/*
 * The first of the list, which goes to its end: the next hint begins with others.
 * @param last  of the list, before the first call; set to NULL when it has had its turn
 */
static struct raw_conn *turn(struct raw_hop_list *hop, struct raw_conn **last)
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

/* The ARP of whole networks passes here, so it costs a look into a table. */
void raw_doubt_arp(struct raw_iface *iface, const struct rte_arp_hdr *arp)
{
	struct weft_arp_hint hint;
	struct raw_hop_list *hop;
	struct raw_conn *c, *last;

	if (!weft_arp_hint(&iface->arp, arp, &hint))
		return;
	hop = raw_table_hop(iface, hint.ip);
	last = hop ? TAILQ_LAST(hop, raw_hop_list) : NULL;
	for (unsigned int n = 0; n < LOOKS && (c = turn(hop, &last)); n++) {
		if (c->hop_ip != hint.ip || c->state != RAW_UP)
			continue;
		new_mac(c, hint.mac);
		/* A gateway's beginning says nothing about who is behind it. */
		if (hint.begins && c->peer_ip == hint.ip)
			doubt(c, RAW_HINT_ARP);
	}
}

void raw_doubt_source(struct raw_conn *c, const uint8_t mac[6])
{
	/*
	 * Gateways send from other MACs than they answer for, so of these ARP is asked.
	 */
	if (c->iface->gate.raw_ethertype)
		return;
	if (c->hop_ip == c->peer_ip)
		new_mac(c, mac);
	else if (slot(c, RAW_HINT_MAC) != 0)
		raw_move_look(c);
}

void raw_doubt_siblings(struct raw_conn *c)
{
	struct raw_hop_list *hop = c->in_hop ? raw_table_hop(c->iface, c->hop_ip) : NULL;
	struct raw_conn *d, *last = hop ? TAILQ_LAST(hop, raw_hop_list) : NULL;

	for (unsigned int n = 0; n < LOOKS && (d = turn(hop, &last)); n++)
		if (d != c && d->state == RAW_UP && d->remote_iface == c->remote_iface)
			doubt(d, RAW_HINT_ARP);
}

static bool has_ports(const struct raw_conn *c, uint16_t ours, uint16_t theirs)
{
	for (unsigned int k = 0; k < c->path_count; k++)
		if (c->path[k].sport == ours && c->path[k].dport == theirs)
			return true;
	return false;
}

/* @p next: when the one after it may come at the usual pace. */
static bool is_due(uint64_t *next, uint64_t lt, uint64_t gap)
{
	uint64_t at = RTE_MAX(lt, *next);

	if (at - lt > QUOTE_BURST_NS)
		return false;
	*next = at + gap;
	return true;
}

/*
 * Anybody can make short quotes up, also in others' names: who floods uses up the own share first,
 * and what is there for all is little beside what other hints may ask.
 */
static bool may_look(struct raw_iface *iface, uint32_t sender)
{
	uint64_t *share =
		&iface->quote_by[weft_siphash(&iface->key, &sender, sizeof(sender)) % RAW_QUOTERS];

	if (is_due(share, iface->lt, QUOTE_SHARE_NS) &&
	    is_due(&iface->quote_next, iface->lt, QUOTE_GAP_NS))
		return true;
	raw_count(iface, RAW_HINT_LIMITED);
	return false;
}

/*
 * By ports alone: routers may quote no more. Of many connections the next frame's quote finds
 * those that this one's does not reach.
 */
static struct raw_conn *by_ports(struct raw_iface *iface, const struct weft_frame_view *v,
				 const struct rte_udp_hdr *udp)
{
	uint32_t ip = weft_be32(v->quote->dst_addr), hop_ip;
	struct raw_conn *c, *last;
	struct raw_hop_list *hop;

	if (raw_next_hop(iface, ip, &hop_ip) != 0 || !may_look(iface, v->src_ip))
		return NULL;
	hop = raw_table_hop(iface, hop_ip);
	last = hop ? TAILQ_LAST(hop, raw_hop_list) : NULL;
	for (unsigned int n = 0; n < LOOKS && (c = turn(hop, &last)); n++)
		if (c->state == RAW_UP && c->peer_ip == ip &&
		    has_ports(c, weft_be16(udp->src_port), weft_be16(udp->dst_port)))
			return c;
	return NULL;
}

/* Whose frame it is that did not arrive. Of one that is quoted at length all must be right. */
static struct raw_conn *quoted(struct raw_iface *iface, const struct weft_frame_view *v)
{
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(v->quote + 1);
	const struct weft_frame_hdr *hdr = (const struct weft_frame_hdr *)(udp + 1);
	uint32_t ip = weft_be32(v->quote->dst_addr), index;
	struct raw_conn *c;

	if (v->quote_len < WEFT_IP_UDP_LEN + sizeof(*hdr))
		return by_ports(iface, v, udp);
	index = weft_get16(hdr->src_conn);
	c = index < iface->refs_len ? iface->refs[index].conn : NULL;
	if (!c || c->state != RAW_UP || c->peer_ip != ip ||
	    weft_get16(hdr->magic) != WEFT_FRAME_MAGIC ||
	    weft_get32(hdr->dst_conn) != c->remote_id || weft_get32(hdr->token) != c->remote_token)
		return NULL;
	return c;
}

void raw_doubt_icmp(struct raw_iface *iface, const struct weft_frame_view *v)
{
	struct raw_conn *c = quoted(iface, v);

	if (!c) {
		raw_count(iface, RAW_DROP_ICMP);
		return;
	}
	raw_count(iface, RAW_ICMP_IN);
	if (v->icmp_code != WEFT_ICMP_TOO_LONG)
		doubt(c, RAW_HINT_ICMP);
	else if (c->timer != 0 && slot(c, RAW_HINT_ICMP) != 0)
		raw_mtu_suspect(c, c->snd_una); /* which finds out by itself what passes */
}

/*
 * A process that began in the place of another has connections that it knows nothing of. Their
 * peers, when they hear this, ask, and get RESET.
 */
void raw_announce_begin(struct raw_iface *iface)
{
	iface->announced = 0;
	iface->announce_at = iface->gate.raw_ethertype ? RAW_NEVER : iface->lt;
	iface->next_lt = RTE_MIN(iface->next_lt, iface->announce_at);
}

void raw_announce(struct raw_iface *iface)
{
	static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct rte_arp_hdr probe;

	weft_arp_probe(&iface->arp, &probe);
	raw_arp_send(iface, everybody, &probe);
	iface->announced++;
	iface->announce_at = iface->announced < ANNOUNCE
				     ? iface->lt + (ANNOUNCE_NS << iface->announced)
				     : RAW_NEVER;
}
