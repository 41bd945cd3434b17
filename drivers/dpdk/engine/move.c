/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The peer's MAC address changes: a gateway takes over for another, a machine moves, a card is
 * replaced. ARP says so, and anybody in the network can. So frames go on to the old MAC until the
 * new one has shown that the peer is behind it: it gets a number, and answers with a hash of it
 * that only who has both ends' secrets can make. The answer must come from that MAC, for the peer
 * itself answers to the MAC that it knows us by, whoever hands the question on. The question has no
 * token.
 *
 * While the peer is heard ARP is not asked again: silence does that. What ARP or a frame says
 * unasked of another MAC is a reason to ask that one (engine/doubt.c).
 *
 * Several may say that they have the address, and a stranger may be the first each time. ARP keeps
 * a few of them, and two are asked at a time, in turns. The number says which MAC was asked, so
 * nothing is kept for each.
 *
 * A question has a proof, too, and is answered once: a stranger who has got one and repeats it, or
 * makes up others, costs a hash, gets no answers, and uses up nothing that the true one needs.
 */

#include <string.h>

#include <rte_common.h>

#include "base/log.h"
#include "base/siphash.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/conn_table.h"
#include "engine/iface.h"
#include "engine/peer.h"
#include "engine/tx.h"
#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/parse.h"

#define MOVE_GAP 50000000ull /* lt, between two looks of a connection */
#define MOVE_ASKED 2u        /* questions of one look */
#define MOVE_MEMORY 64u      /* questions that are told apart, and answers that are still good */
#define ARP_GAP 10000000ull  /* lt, between two ARP questions of an iface for it */

enum { QUESTION, ANSWER };

static uint64_t proof(const struct raw_conn *c, uint64_t number, bool ours, uint8_t what)
{
	const struct weft_siphash_key key = {c->base.passive ? c->remote_secret : c->secret,
					     c->base.passive ? c->secret : c->remote_secret};
	uint8_t by = ours != c->base.passive; /* the initiator asks */
	weft_le64 wire = weft_put64(number);
	struct weft_siphash s;

	weft_siphash_init(&s, &key);
	weft_siphash_add(&s, &wire, sizeof(wire));
	weft_siphash_add(&s, &by, 1);
	weft_siphash_add(&s, &what, 1);
	return weft_siphash_end(&s);
}

/* The question's number. Only we know which number a MAC is asked with. */
static uint64_t number_of(const struct raw_conn *c, uint32_t question, const uint8_t mac[6])
{
	struct weft_siphash s;

	weft_siphash_init(&s, &c->iface->key);
	weft_siphash_add(&s, &c->secret, sizeof(c->secret));
	weft_siphash_add(&s, &question, sizeof(question));
	weft_siphash_add(&s, mac, 6);
	return (uint64_t)question << 32 | (uint32_t)weft_siphash_end(&s);
}

void raw_move_ask(struct raw_conn *c, const uint8_t mac[6])
{
	struct raw_conn tmp = {
		.iface = c->iface,
		.remote_id = c->remote_id,
		.peer_ip = c->peer_ip,
		.peer_port = c->peer_port,
	};
	uint64_t number = number_of(c, ++c->move.asked, mac);
	struct weft_frame_challenge body = {
		.number = weft_put64(number),
		.proof = weft_put64(proof(c, number, true, QUESTION)),
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
	uint8_t mac[WEFT_ARP_SAID][6];
	unsigned int n, k, asked = 0;

	if (iface->gate.raw_ethertype || iface->lt < c->move.next)
		return;
	n = weft_arp_said(&iface->arp, c->hop_ip, mac);
	for (unsigned int i = 0; i < n && asked < MOVE_ASKED; i++) {
		k = c->move.turn++ % n;
		if (memcmp(mac[k], c->peer_mac, 6) == 0)
			continue;
		raw_move_ask(c, mac[k]);
		asked++;
	}
	/* Who has to wait for his turn to ask ARP looks again soon: others were before him. */
	if (iface->lt < iface->move_arp) {
		c->move.next = asked > 0 ? iface->lt + MOVE_GAP : iface->move_arp;
		return;
	}
	c->move.next = iface->lt + MOVE_GAP * RTE_MIN(c->pings + 1, 20u);
	iface->move_arp = iface->lt + ARP_GAP;
	/* What is known may be what was: ask again. */
	weft_arp_forget(&iface->arp, c->hop_ip);
	raw_arp_ask(iface, c->hop_ip, false);
}

/* Is it one that has not been answered? Then it is now. */
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
 * Somebody asks whether the peer of one of our connections is here. The answer goes where its
 * frames go.
 */
void raw_challenge_input(struct raw_iface *iface, const struct weft_frame_view *v)
{
	const struct weft_frame_challenge *q = (const struct weft_frame_challenge *)v->body;
	uint32_t id = weft_get32(v->hdr->dst_conn), index = id & 0xffff;
	struct raw_conn *c = index < iface->refs_len ? iface->refs[index].conn : NULL;
	uint64_t number = weft_get64(q->number);
	struct weft_frame_challenge body;

	if (!c || c->id != id || c->state != RAW_UP || v->src_ip != c->peer_ip ||
	    weft_get64(q->proof) != proof(c, number, false, QUESTION) ||
	    !take_question(c, (uint32_t)(number >> 32))) {
		raw_count(iface, RAW_DROP_UNKNOWN);
		return;
	}
	body = (struct weft_frame_challenge){
		.number = q->number,
		.proof = weft_put64(proof(c, number, false, ANSWER)),
	};
	raw_ctl_send(c, WEFT_FRAME_CHALLENGE_ACK, 0, &body, sizeof(body), 0);
}

/* An answer to one of our last questions, from who was asked. */
static bool answers(const struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct weft_frame_challenge *a = (const struct weft_frame_challenge *)v->body;
	uint64_t number = weft_get64(a->number);
	uint32_t question = (uint32_t)(number >> 32);

	return c->move.asked - question < MOVE_MEMORY &&
	       c->move.asked - question < c->move.asked - c->move.over &&
	       number == number_of(c, question, v->src_mac) &&
	       weft_get64(a->proof) == proof(c, number, true, ANSWER);
}

void raw_challenge_ack_input(struct raw_conn *c, const struct weft_frame_view *v)
{
	char peer[64], mac[RTE_ETHER_ADDR_FMT_SIZE];
	uint8_t known[6];

	if (!answers(c, v)) {
		raw_count(c->iface, RAW_DROP_STATE);
		return;
	}
	c->move.over = c->move.asked;
	if (c->open)
		raw_seal(c, 0);
	/* Who connects next asks ARP again. */
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
