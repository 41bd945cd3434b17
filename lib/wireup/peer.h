/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/peer.h
 * Remote workers: their identity, and the numbers of the endpoints between them and us; boot
 * addresses; endpoints that peers have made.
 */
#ifndef WEFT_PEER_H
#define WEFT_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/container.h"
#include "core/address.h"
#include "core/worker.h"

struct weft_boot;
struct weft_conns;

/** The address of a remote worker's interface, in our table while the peer has endpoints. */
struct weft_peer_place {
	struct weft_table_node entry; /* by a hash of the driver's text for the address */
	struct weft_peer *peer;
};

struct weft_peer {
	struct weft_table_node by_identity, by_digest;
	TAILQ_ENTRY(weft_peer) idle_entry; /* while it has no endpoint */
	uint64_t id;
	/* weft_address_identity(): another secret or other addresses make another peer. */
	uint64_t identity;
	uint64_t digest;  /* weft_address_digest() */
	bool boot;        /* only its boot address is known, so the identity is not */
	uint32_t next_sn; /* number of the next endpoint made here */
	/* bit i: next_sn - 1 - i is used; all numbers below these 64 count as used */
	uint64_t used;
	unsigned int num_eps;
	LIST_HEAD(, weft_ep) eps;
	TAILQ_HEAD(weft_unclaimed_queue, weft_unclaimed) unclaimed; /* in the order of conn_sn */
	uint64_t others_checked; /* time of the last weft_peer_check_others(); 0 = never */
	unsigned int num_places;
	struct weft_peer_place place[];
};

#define WEFT_MAX_IDLE_PEERS 1024

/** Find or make the record of a remote worker. NULL = no memory. */
struct weft_peer *weft_peer_get(struct weft_worker *w, const struct weft_address *remote);
/** Find or make the record of the worker that a boot address names. NULL = no memory. */
struct weft_peer *weft_peer_of_boot(struct weft_worker *w, uint64_t id, uint64_t digest);
/** Does @p sn count as used? All numbers 64 or more below the newest do, used or not. */
bool weft_peer_sn_used(const struct weft_peer *peer, uint32_t sn);
void weft_peer_sn_use(struct weft_peer *peer, uint32_t sn);
/** The peer has reported that @p sn is free there: peer->next_sn becomes at least @p sn. */
void weft_peer_sn_skip(struct weft_peer *peer, uint32_t sn);
/**
 * Of the endpoints that the peer made and the program has not claimed: the one with the lowest
 * number that has not failed and that neither end is closing. NULL = none
 */
struct weft_ep *weft_peer_unclaimed(const struct weft_worker *w, const struct weft_peer *peer);
struct weft_ep *weft_peer_ep(const struct weft_worker *w, const struct weft_peer *peer,
			     uint32_t sn);
/** Change the number of @p ep to @p sn, which counts as used from now on. */
void weft_ep_renumber(struct weft_ep *ep, uint32_t sn);
void weft_peer_claim(struct weft_ep *ep);
/**
 * Probe the lanes that lead to the address @p words, but to other peers than @p peer. A lane fails
 * if its connection does not exist at the far end.
 */
void weft_peer_check_others(struct weft_worker *w, const struct weft_peer *peer,
			    const struct weft_lane_driver *driver, const char *words);
void weft_peer_add_ep(struct weft_conns *conns, struct weft_peer *peer, struct weft_ep *ep);
void weft_peer_remove_ep(struct weft_conns *conns, struct weft_ep *ep);
/** @return 0 or -ENOMEM; weft_peers_fini() is called in both cases */
int weft_peers_init(struct weft_conns *conns);
void weft_peers_fini(struct weft_conns *conns);

/* ------------------------------------------------------------------ boot addresses */

/** @return 0, or -EINVAL: our driver cannot read the interface in the boot address */
int weft_learn_address(struct weft_worker *w, const struct weft_boot *b, struct weft_address *a);
/** The peer's whole address, @p remote, has arrived: use it in place of the boot address. */
void weft_learn_from(struct weft_ep *ep, const struct weft_address *remote);

/* ------------------------------------------------------------------ unclaimed endpoints */

/*
 * Endpoints that peers have made and the program has not claimed, and connections without an
 * endpoint. Any host can make them, so their number is limited.
 */

struct weft_ep;
struct weft_lane_ep;
struct weft_worker;

/** A host that has made endpoints which the program has not claimed. */
struct weft_host {
	struct weft_table_node by_number; /* weft_host_number() */
	TAILQ_ENTRY(weft_host) rank;
	unsigned int num_eps;
	/* oldest first; `busy`: eps that a search for room found to have received a message */
	TAILQ_HEAD(, weft_unclaimed) eps, busy;
};

/** Of an endpoint that the program has not claimed. */
struct weft_unclaimed {
	struct weft_ep *ep;
	TAILQ_ENTRY(weft_unclaimed) claim; /* peer->unclaimed */
	struct weft_host *host;            /* whose quota the endpoint uses; NULL = none */
	TAILQ_ENTRY(weft_unclaimed) entry; /* host->eps or host->busy */
	bool busy;                         /* the entry is in host->busy */
	uint64_t placed_at;                /* ns: when the endpoint got its host */
};

/** The host at the far end of a connection, by ep_host(); 0 = the lane does not identify hosts. */
uint64_t weft_host_number(const struct weft_lane_ep *lane_ep);
/**
 * @param[out] goes  the endpoint that the caller must let fail to make room; NULL = none
 * @return false: there is no place now
 */
bool weft_unclaimed_room(struct weft_worker *worker, const struct weft_lane_ep *lane_ep,
			 struct weft_ep **goes);
/** Enter @p ep, whose REQ came over @p lane_ep, as unclaimed. @return 0 or -ENOMEM */
int weft_unclaimed_add(struct weft_ep *ep, const struct weft_lane_ep *lane_ep);
/** If @p ep is unclaimed, free its place, because it is claimed or ends. */
void weft_unclaimed_remove(struct weft_ep *ep);

/* ------------------------------------------------------------------ no endpoint yet */

/** A connection that a peer made, and over which no message for an endpoint has arrived yet. */
struct weft_pending {
	struct weft_lane_ep *lane_ep;
	uint64_t deadline;
	struct weft_table_node entry; /* by lane_ep */
	TAILQ_ENTRY(weft_pending) order;
};

#define WEFT_MAX_PENDING 4096

void weft_lane_ep_destroy(struct weft_worker *worker, struct weft_lane_ep *lane_ep);
/** Remove a connection, if it is pending: it no longer ends with WEFT_CONNECT_TIMEOUT. */
void weft_pending_remove(struct weft_worker *worker, const struct weft_lane_ep *lane_ep);
/** WEFT_CONNECT_TIMEOUT, ns. */
uint64_t weft_connect_timeout(const struct weft_worker *w);
void weft_pending_timers(struct weft_worker *w);
void weft_pending_add(struct weft_worker *w, struct weft_lane_ep *lane_ep);

#endif /* WEFT_PEER_H */
