/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/peer.h
 * Remote workers: who they are, and the numbers of the endpoints between them and us.
 */
#ifndef WEFT_PEER_H
#define WEFT_PEER_H

#include <sys/queue.h>

#include "core/address.h"
#include "core/endpoint.h"

struct weft_conns;

/** Where an interface of a remote worker is: in the worker's table while there are endpoints. */
struct weft_peer_place {
	LIST_ENTRY(weft_peer_place) link;
	struct weft_peer *peer;
	uint64_t hash; /* of the driver's name and its words for the address */
};

/** A remote worker. */
struct weft_peer {
	LIST_ENTRY(weft_peer) hash_entry; /* by identity */
	LIST_ENTRY(weft_peer) digest_entry;
	TAILQ_ENTRY(weft_peer) idle_entry; /* while it has no endpoint */
	uint64_t id;
	/* weft_address_identity(): with another secret or other addresses it is another peer. */
	uint64_t identity;
	uint64_t digest;  /* weft_address_digest() */
	bool boot;        /* the rest of its address, and so its identity, is not known yet */
	uint32_t next_sn; /* number of the next endpoint made here */
	uint64_t used;    /* bit i: next_sn - 1 - i was used; what is further back counts as used */
	unsigned int num_eps;
	LIST_HEAD(, weft_ep) eps;
	TAILQ_HEAD(weft_ep_queue, weft_ep) unclaimed; /* those that nobody owns, by conn_sn */
	uint64_t others_checked; /* when weft_peer_check_others() has done so; 0 = never */
	unsigned int num_places;
	struct weft_peer_place place[];
};

#define WEFT_PEER_BUCKETS 1024
#define WEFT_MAX_IDLE_PEERS 1024

/** Find or make. NULL = no memory. */
struct weft_peer *weft_peer_get(struct weft_worker *w, const struct weft_address *remote);
/** The same by a boot address. */
struct weft_peer *weft_peer_of_boot(struct weft_worker *w, uint64_t id, uint64_t digest);
/** Was this number used by an endpoint already? */
bool weft_peer_sn_used(const struct weft_peer *peer, uint32_t sn);
void weft_peer_sn_use(struct weft_peer *peer, uint32_t sn);
/** The peer has told that @p sn is free there: numbers before it are used no more. */
void weft_peer_sn_skip(struct weft_peer *peer, uint32_t sn);
/** The endpoint with number @p sn, or NULL: wireup/ep_table.c. */
struct weft_ep *weft_peer_ep(const struct weft_worker *w, const struct weft_peer *peer,
			     uint32_t sn);
/** The oldest live endpoint that the peer made and nobody owns, or NULL. */
struct weft_ep *weft_peer_unclaimed(const struct weft_worker *w, const struct weft_peer *peer);
/** The number of @p ep is @p sn, used from now on. */
void weft_ep_renumber(struct weft_ep *ep, uint32_t sn);
/** Somebody owns it from now on. */
void weft_peer_claim(struct weft_ep *ep);
/** Lanes of other peers than @p peer to @p words: ask their far ends whether they know them. */
void weft_peer_check_others(struct weft_worker *w, const struct weft_peer *peer,
			    const struct weft_lane_driver *driver, const char *words);
void weft_peer_add_ep(struct weft_conns *conns, struct weft_peer *peer, struct weft_ep *ep);
void weft_peer_remove_ep(struct weft_conns *conns, struct weft_ep *ep);
void weft_peers_fini(struct weft_conns *conns);

#endif /* WEFT_PEER_H */
