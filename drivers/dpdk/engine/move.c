/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A peer's MAC address changes when a gateway takes over for another, a machine moves or a NIC is
 * replaced. ARP announces the new address, but any host of the network can send ARP. So frames go
 * to the old MAC until the peer has proved that it is behind the new one: the new MAC gets a
 * CHALLENGE with a number, and the answer is a hash of it under the secrets of both ends. The
 * answer must come from the challenged MAC: the peer answers to the MAC address that it has for
 * this end, so another host that forwards the challenge gains nothing. The challenge has no
 * connection token, so that an unknown receiver learns nothing that it could send.
 *
 * While frames of the peer arrive, ARP requests are not repeated; silence of the peer causes them.
 * An unrequested ARP message, or a frame, that names another MAC starts a challenge to that MAC
 * (engine/hint.c).
 *
 * Several hosts may claim the address, and an unknown one may be the first each time. The ARP table
 * keeps a few of the claims, and two get a challenge at a time, in rotation. The number depends on
 * the challenged MAC, so the connection keeps no state for each MAC.
 *
 * A challenge contains a proof, too, and is answered once. A host that repeats a challenge, or
 * invents one, costs this end one hash. It gets no answer and uses up nothing that the genuine
 * challenge needs.
 */

#include <string.h>

#include <rte_common.h>

#include "base/hash.h"
#include "base/log.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/conn_table.h"
#include "engine/iface.h"
#include "engine/peer.h"
#include "engine/tx.h"
#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/parse.h"

#define MOVE_GAP 50000000ull /* live_clock, between two checks of a connection */
#define MOVE_CHALLENGES 2u   /* challenges of one check */
/* Challenges that the receiver distinguishes, and answers that are still valid. */
#define MOVE_MEMORY 64u
#define ARP_GAP 10000000ull /* live_clock, between two ARP requests of an iface for a moved peer */

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

/*
 * The number of a challenge. Its hash is under a key of this iface, so no other host can compute
 * the number of a MAC.
 */
static uint64_t number_of(const struct raw_conn *c, uint32_t question, const uint8_t mac[6])
{
	struct weft_siphash s;

	weft_siphash_init(&s, &c->iface->key);
	weft_siphash_add(&s, &c->secret, sizeof(c->secret));
	weft_siphash_add(&s, &question, sizeof(question));
	weft_siphash_add(&s, mac, 6);
	return (uint64_t)question << 32 | (uint32_t)weft_siphash_end(&s);
}

void raw_move_challenge(struct raw_conn *c, const uint8_t mac[6])
{
	struct raw_conn tmp = {
		.iface = c->iface,
		.remote_id = c->remote_id,
		.peer_ip = c->peer_ip,
		.peer_port = c->peer_port,
	};
	uint64_t number = number_of(c, ++c->move.challenges, mac);
	struct weft_frame_challenge body = {
		.number = weft_put64(number),
		.proof = weft_put64(challenge_proof(c, number, true, QUESTION)),
	};

	memcpy(tmp.peer_mac, mac, 6);
	tmp.path[0].sport = c->path[c->next_path].sport;
	tmp.path[0].dport = c->path[c->next_path].dport;
	raw_conn_template(&tmp);
	raw_ctl_send(&tmp, WEFT_FRAME_CHALLENGE, 0, &body, sizeof(body), 0);
	raw_count(c->iface, RAW_MOVE_REQUESTS);
}

void raw_move_look(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	uint8_t mac[WEFT_ARP_REPLIERS][6];
	unsigned int n, k, sent = 0;

	if (iface->rx_filter.raw_ethertype || iface->live_clock < c->move.next)
		return;
	n = weft_arp_repliers(&iface->arp, c->hop_ip, mac);
	for (unsigned int i = 0; i < n && sent < MOVE_CHALLENGES; i++) {
		k = c->move.next_mac++ % n;
		if (memcmp(mac[k], c->peer_mac, 6) == 0)
			continue;
		raw_move_challenge(c, mac[k]);
		sent++;
	}
	/*
	 * Other connections have used the iface's ARP requests first: check again as soon as the
	 * next is allowed.
	 */
	if (iface->live_clock < iface->move_arp) {
		c->move.next = sent > 0 ? iface->live_clock + MOVE_GAP : iface->move_arp;
		return;
	}
	c->move.next = iface->live_clock + MOVE_GAP * RTE_MIN(c->pings + 1, 20u);
	iface->move_arp = iface->live_clock + ARP_GAP;
	/* The entry may be the address that the peer had before: request it again. */
	weft_arp_forget(&iface->arp, c->hop_ip);
	raw_arp_request(iface, c->hop_ip, false);
}

/* @return true: the challenge has not been answered before; from now on it counts as answered */
static bool take_question(struct raw_conn *c, uint32_t question)
{
	uint32_t ahead = question - c->move.newest, behind = c->move.newest - question;

	if ((int32_t)ahead > 0) {
		c->move.answered = ahead < MOVE_MEMORY ? c->move.answered << ahead | 1 : 1;
		c->move.newest = question;
		return true;
	}
	if (behind >= MOVE_MEMORY || c->move.answered >> behind & 1)
		return false;
	c->move.answered |= 1ull << behind;
	return true;
}

/*
 * A host checks whether the peer of one of this iface's connections is here. The answer goes to the
 * MAC address that the connection's frames go to.
 */
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

/* Is it the answer to one of the last challenges, from the MAC that was challenged? */
static bool is_answer(const struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct weft_frame_challenge *a = (const struct weft_frame_challenge *)v->body;
	uint64_t number = weft_get64(a->number);
	uint32_t question = (uint32_t)(number >> 32);

	return c->move.challenges - question < MOVE_MEMORY &&
	       c->move.challenges - question < c->move.challenges - c->move.over &&
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
	c->move.over = c->move.challenges;
	if (c->open)
		raw_seal(c, 0);
	/* The next connection to this address requests it by ARP again. */
	if (weft_arp_lookup(&c->iface->arp, c->hop_ip, c->iface->now, known) &&
	    memcmp(known, v->src_mac, 6) != 0)
		weft_arp_forget(&c->iface->arp, c->hop_ip);
	memcpy(c->peer_mac, v->src_mac, 6);
	raw_conn_template(c);
	raw_count(c->iface, RAW_MOVED);
	raw_mac_text(c->peer_mac, mac);
	weft_info("%s: %s has the MAC address %s now", c->iface->base.name,
		  raw_peer_text(c, peer, sizeof(peer)), mac);
}
