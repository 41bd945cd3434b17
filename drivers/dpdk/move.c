/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The peer's MAC address changes: a gateway takes over for another, a machine moves, a card is replaced. ARP says so, and
 * anybody in the network can. So frames go on to the old MAC until the new one has shown that the peer is behind it: it gets a
 * random number, and answers with a hash of it that only who has both ends' secrets can make. The answer must come from that
 * MAC, for the peer itself answers to the MAC that it knows us by, whoever hands the question on. The question has no token.
 *
 * Nobody looks for another MAC while the peer is heard: only silence asks.
 */

#include <string.h>

#include "log.h"
#include "raw.h"

#define MOVE_GAP 50000000ull  /* lt, between two questions of a connection */
#define ARP_GAP 10000000ull   /* lt, between two ARP questions of an iface for it */
#define ANSWER_GAP 1000000ull /* now, between two answers of an iface */

static uint64_t proof(const struct raw_conn *c, uint64_t number)
{
	const struct weft_siphash_key key = {c->base.passive ? c->remote_secret : c->secret,
					     c->base.passive ? c->secret : c->remote_secret};

	number = weft_le64(number);
	return weft_siphash(&key, &number, sizeof(number));
}

static void ask(struct raw_conn *c, const uint8_t mac[6])
{
	const struct weft_platform *pf = c->iface->platform;
	struct raw_conn tmp = {
		.iface = c->iface,
		.remote_id = c->remote_id,
		.peer_ip = c->peer_ip,
		.peer_port = c->peer_port,
	};
	struct weft_frame_challenge body = {0};

	if (pf->random(pf->arg, &c->challenge, sizeof(c->challenge)) != 0)
		return;
	memcpy(c->new_mac, mac, 6);
	memcpy(tmp.peer_mac, mac, 6);
	tmp.path[0].sport = c->path[0].sport;
	tmp.path[0].dport = c->path[0].dport;
	raw_conn_template(&tmp);
	body.number = weft_le64(c->challenge);
	raw_ctl_send(&tmp, WEFT_FRAME_CHALLENGE, 0, &body, sizeof(body), 0);
	raw_count(c->iface, RAW_MOVE_ASKED);
}

void raw_move_look(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	uint8_t mac[6];

	if (iface->gate.raw_ethertype || iface->lt < c->move_next)
		return;
	c->move_next = iface->lt + MOVE_GAP * RTE_MIN(c->pings + 1, 20u);
	if (weft_arp_lookup(&iface->arp, c->hop_ip, iface->now, mac)) {
		if (memcmp(mac, c->peer_mac, 6) != 0)
			ask(c, mac);
		/* What is known may be what was: ask anew. */
		weft_arp_forget(&iface->arp, c->hop_ip);
	}
	if (iface->lt < iface->move_arp)
		return;
	iface->move_arp = iface->lt + ARP_GAP;
	raw_arp_ask(iface, c->hop_ip);
}

/* Somebody asks whether the peer of one of our connections is here. The answer goes where its frames go. */
void raw_challenge_input(struct raw_iface *iface, const struct weft_frame_view *v)
{
	const struct weft_frame_challenge *q = (const struct weft_frame_challenge *)v->body;
	uint32_t id = weft_le32(v->hdr->dst_conn), index = id & 0xffff;
	struct raw_conn *c = index < iface->refs_len ? iface->refs[index].conn : NULL;
	struct weft_frame_challenge body;

	if (c == NULL || c->id != id || c->state != RAW_UP || v->src_ip != c->peer_ip ||
	    iface->now < iface->next_answer) {
		raw_count(iface, RAW_DROP_STRANGER);
		return;
	}
	iface->next_answer = iface->now + ANSWER_GAP;
	body = (struct weft_frame_challenge){
		.number = q->number,
		.proof = weft_le64(proof(c, weft_le64(q->number))),
	};
	raw_ctl_send(c, WEFT_FRAME_CHALLENGE_ACK, 0, &body, sizeof(body), 0);
}

void raw_challenge_ack_input(struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct weft_frame_challenge *a = (const struct weft_frame_challenge *)v->body;
	const uint8_t *m = c->new_mac;
	char peer[64];

	if (c->challenge == 0 || weft_le64(a->number) != c->challenge ||
	    weft_le64(a->proof) != proof(c, c->challenge) || memcmp(v->src_mac, m, 6) != 0) {
		raw_count(c->iface, RAW_DROP_STATE);
		return;
	}
	c->challenge = 0;
	if (c->open != NULL)
		raw_seal(c, 0);
	memcpy(c->peer_mac, m, 6);
	raw_conn_template(c);
	raw_count(c->iface, RAW_MOVED);
	weft_info("%s: %s has the MAC address %02x:%02x:%02x:%02x:%02x:%02x now",
		  c->iface->base.name, raw_peer_text(c, peer, sizeof(peer)), m[0], m[1], m[2], m[3],
		  m[4], m[5]);
}
