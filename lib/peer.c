/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What is known of remote workers, which is little: the numbers of the endpoints between them and
 * us. A record without endpoints is kept for a while, so that a late REQ of a closed endpoint is
 * told from a new one; strangers cannot make these records pile up.
 */

#include <stdlib.h>

#include "wireup.h"

/* Ids are random: any bits will do. */
static inline unsigned int bucket(uint64_t id)
{
	return (unsigned int)(id >> 32 ^ id) % WEFT_PEER_BUCKETS;
}

static void peer_free(struct weft_conns *conns, struct weft_peer *peer)
{
	TAILQ_REMOVE(&conns->idle, peer, idle_entry);
	conns->num_idle--;
	LIST_REMOVE(peer, hash_entry);
	free(peer);
}

static void peer_idle(struct weft_conns *conns, struct weft_peer *peer)
{
	TAILQ_INSERT_TAIL(&conns->idle, peer, idle_entry);
	conns->num_idle++;
}

struct weft_peer *weft_peer_get(struct weft_conns *conns, uint64_t id, uint64_t identity)
{
	struct weft_peer *peer;

	LIST_FOREACH(peer, &conns->peers[bucket(id)], hash_entry)
		if (peer->id == id && peer->identity == identity)
			return peer;
	peer = calloc(1, sizeof(*peer));
	if (peer == NULL)
		return NULL;
	peer->id = id;
	peer->identity = identity;
	LIST_INIT(&peer->eps);
	LIST_INSERT_HEAD(&conns->peers[bucket(id)], peer, hash_entry);
	peer_idle(conns, peer);
	if (conns->num_idle > WEFT_MAX_IDLE_PEERS)
		peer_free(conns, TAILQ_FIRST(&conns->idle));
	return peer;
}

/* How far @p sn is behind the last one, modulo 2^32; numbers ahead come out huge. */
static inline uint32_t behind(const struct weft_peer *peer, uint32_t sn)
{
	return peer->next_sn - 1 - sn;
}

bool weft_peer_sn_used(const struct weft_peer *peer, uint32_t sn)
{
	uint32_t d = behind(peer, sn);

	if (d >= UINT32_MAX / 2)
		return false; /* ahead of all */
	return d >= 64 || peer->used >> d & 1;
}

void weft_peer_sn_use(struct weft_peer *peer, uint32_t sn)
{
	uint32_t d = behind(peer, sn), ahead;

	if (d < UINT32_MAX / 2) {
		if (d < 64)
			peer->used |= 1ull << d;
		return;
	}
	ahead = sn + 1 - peer->next_sn; /* >= 1 */
	peer->used = ahead < 64 ? peer->used << ahead | 1 : 1;
	peer->next_sn = sn + 1;
}

void weft_peer_sn_skip(struct weft_peer *peer, uint32_t sn)
{
	uint32_t d = behind(peer, sn);

	if (d >= UINT32_MAX / 2 && sn != peer->next_sn)
		weft_peer_sn_use(peer, sn - 1);
}

struct weft_ep *weft_peer_ep(const struct weft_peer *peer, uint32_t sn)
{
	struct weft_ep *ep;

	LIST_FOREACH(ep, &peer->eps, peer_entry)
		if (ep->conn_sn == sn)
			return ep;
	return NULL;
}

struct weft_ep *weft_peer_unclaimed(const struct weft_peer *peer)
{
	struct weft_ep *ep, *best = NULL;

	LIST_FOREACH(ep, &peer->eps, peer_entry)
		if (!ep->owned && ep->state != WEFT_EP_FAILED && ep->closing == NULL &&
		    !ep->remote_closing &&
		    (best == NULL || (int32_t)(ep->conn_sn - best->conn_sn) < 0))
			best = ep;
	return best;
}

void weft_peer_add_ep(struct weft_conns *conns, struct weft_peer *peer, struct weft_ep *ep)
{
	if (peer->num_eps++ == 0) {
		TAILQ_REMOVE(&conns->idle, peer, idle_entry);
		conns->num_idle--;
	}
	LIST_INSERT_HEAD(&peer->eps, ep, peer_entry);
	ep->peer = peer;
}

void weft_peer_remove_ep(struct weft_conns *conns, struct weft_ep *ep)
{
	struct weft_peer *peer = ep->peer;

	if (peer == NULL)
		return;
	LIST_REMOVE(ep, peer_entry);
	ep->peer = NULL;
	if (--peer->num_eps == 0)
		peer_idle(conns, peer);
}

void weft_peers_fini(struct weft_conns *conns)
{
	while (!TAILQ_EMPTY(&conns->idle))
		peer_free(conns, TAILQ_FIRST(&conns->idle));
}
