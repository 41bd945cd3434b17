/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A record without endpoints is kept for some time, to distinguish a late REQ of a closed endpoint
 * from a new one. The number of such records is bounded, so unknown senders cannot fill the memory.
 */

#include "wireup/peer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/address.h"
#include "core/config.h"
#include "wireup/codec.h"
#include "wireup/select.h"
#include "wireup/state.h"

/* The tables' keys are keyed hashes, so that a peer cannot choose its bucket. */
static uint64_t hash_place(const struct weft_worker *w, const char *words)
{
	return weft_siphash(&w->hash_key, words, strlen(words));
}

static void set_places(const struct weft_worker *w, struct weft_peer *peer,
		       const struct weft_address *remote)
{
	const struct weft_lane_iface *iface;
	char words[128];

	for (unsigned int i = 0; i < remote->num_ifaces; i++) {
		const struct weft_address_iface *a = &remote->ifaces[i];

		for (unsigned int k = 0; k < w->num_ifaces; k++) {
			iface = w->ifaces[k];
			if (!weft_address_is_of(iface->driver, a->driver))
				continue;
			iface->ops->print_address(a->addr, a->addr_len, words, sizeof(words));
			peer->place[peer->num_places++] = (struct weft_peer_place){
				.peer = peer, .entry.key = hash_place(w, words)};
			break;
		}
	}
}

static uint64_t hash_digest(const struct weft_worker *w, uint64_t id, uint64_t digest)
{
	const uint64_t both[] = {id, digest};

	return weft_siphash(&w->hash_key, both, sizeof(both));
}

static void peer_free(struct weft_conns *conns, struct weft_peer *peer)
{
	TAILQ_REMOVE(&conns->idle, peer, idle_entry);
	conns->num_idle--;
	if (!peer->boot)
		weft_table_remove(&conns->by_identity, &peer->by_identity);
	weft_table_remove(&conns->by_digest, &peer->by_digest);
	free(peer);
}

static void peer_idle(struct weft_conns *conns, struct weft_peer *peer)
{
	TAILQ_INSERT_TAIL(&conns->idle, peer, idle_entry);
	conns->num_idle++;
}

static void places_insert(struct weft_conns *conns, struct weft_peer *peer)
{
	for (unsigned int i = 0; i < peer->num_places; i++)
		weft_table_add(&conns->by_place, &peer->place[i].entry, peer->place[i].entry.key);
}

static struct weft_peer *find_by_digest(struct weft_worker *w, uint64_t id, uint64_t digest,
					bool boot)
{
	struct weft_table_node *n;
	struct weft_peer *peer;

	n = weft_table_bucket(&w->conns->by_digest, hash_digest(w, id, digest));
	for (; n; n = SLIST_NEXT(n, link)) {
		w->conns->looks++;
		peer = container_of(n, struct weft_peer, by_digest);
		if (peer->id == id && peer->digest == digest && peer->boot == boot)
			return peer;
	}
	return NULL;
}

static struct weft_peer *peer_new(struct weft_worker *w, uint64_t id, uint64_t digest,
				  unsigned int places)
{
	struct weft_conns *conns = w->conns;
	struct weft_peer *peer = calloc(1, sizeof(*peer) + places * sizeof(peer->place[0]));

	if (!peer)
		return NULL;
	peer->id = id;
	peer->digest = digest;
	peer->boot = true;
	LIST_INIT(&peer->eps);
	TAILQ_INIT(&peer->unclaimed);
	weft_table_add(&conns->by_digest, &peer->by_digest, hash_digest(w, id, digest));
	peer_idle(conns, peer);
	if (conns->num_idle > WEFT_MAX_IDLE_PEERS)
		peer_free(conns, TAILQ_FIRST(&conns->idle));
	return peer;
}

struct weft_peer *weft_peer_of_boot(struct weft_worker *w, uint64_t id, uint64_t digest)
{
	struct weft_peer *peer = find_by_digest(w, id, digest, false);

	if (!peer)
		peer = find_by_digest(w, id, digest, true);
	return peer ? peer : peer_new(w, id, digest, WEFT_ADDRESS_MAX_IFACES);
}

struct weft_peer *weft_peer_get(struct weft_worker *w, const struct weft_address *remote)
{
	uint64_t id = remote->worker_id, identity = weft_address_identity(remote, &w->hash_key);
	uint64_t digest = weft_address_digest(remote);
	struct weft_conns *conns = w->conns;
	struct weft_table_node *n = weft_table_bucket(&conns->by_identity, identity);
	struct weft_peer *peer;

	for (; n; n = SLIST_NEXT(n, link)) {
		conns->looks++;
		peer = container_of(n, struct weft_peer, by_identity);
		if (peer->id == id && peer->identity == identity)
			return peer;
	}
	peer = find_by_digest(w, id, digest, true);
	if (!peer)
		peer = peer_new(w, id, digest, remote->num_ifaces);
	if (!peer)
		return NULL;
	peer->boot = false;
	peer->identity = identity;
	set_places(w, peer, remote);
	if (peer->num_eps > 0)
		places_insert(conns, peer);
	weft_table_add(&conns->by_identity, &peer->by_identity, identity);
	return peer;
}

/* ------------------------------------------------------------------ endpoints by number */

static uint64_t sn_key(const struct weft_worker *w, const struct weft_peer *peer, uint32_t sn)
{
	/* The identity is not in the key: it may become known while there are endpoints. */
	const uint64_t key[] = {peer->id, peer->digest, sn};

	return weft_siphash(&w->hash_key, key, sizeof(key));
}

static void ep_sn_add(struct weft_ep *ep)
{
	struct weft_worker *w = ep->worker;

	weft_table_add(&w->conns->by_sn, &ep->by_sn, sn_key(w, ep->peer, ep->conn_sn));
}

struct weft_ep *weft_peer_ep(const struct weft_worker *w, const struct weft_peer *peer, uint32_t sn)
{
	struct weft_table_node *n = weft_table_bucket(&w->conns->by_sn, sn_key(w, peer, sn));
	struct weft_ep *ep;

	for (; n; n = SLIST_NEXT(n, link)) {
		w->conns->looks++;
		ep = container_of(n, struct weft_ep, by_sn);
		if (ep->peer == peer && ep->conn_sn == sn)
			return ep;
	}
	return NULL;
}

/* Distance of @p sn behind the last number, modulo 2^32; numbers ahead of it give huge results. */
static inline uint32_t sn_behind(const struct weft_peer *peer, uint32_t sn)
{
	return peer->next_sn - 1 - sn;
}

bool weft_peer_sn_used(const struct weft_peer *peer, uint32_t sn)
{
	uint32_t d = sn_behind(peer, sn);

	if (d >= UINT32_MAX / 2)
		return false;
	return d >= 64 || peer->used >> d & 1;
}

void weft_peer_sn_use(struct weft_peer *peer, uint32_t sn)
{
	uint32_t d = sn_behind(peer, sn), ahead;

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
	uint32_t d = sn_behind(peer, sn);

	if (d >= UINT32_MAX / 2 && sn != peer->next_sn)
		weft_peer_sn_use(peer, sn - 1);
}

void weft_ep_renumber(struct weft_ep *ep, uint32_t sn)
{
	weft_table_remove(&ep->worker->conns->by_sn, &ep->by_sn);
	ep->conn_sn = sn;
	ep_sn_add(ep);
	weft_peer_sn_use(ep->peer, sn);
}

struct weft_ep *weft_peer_unclaimed(const struct weft_worker *w, const struct weft_peer *peer)
{
	const struct weft_unclaimed *u;

	TAILQ_FOREACH(u, &peer->unclaimed, claim) {
		w->conns->looks++;
		if (u->ep->state != WEFT_EP_FAILED && !u->ep->closing && !u->ep->remote_closing)
			return u->ep;
	}
	return NULL;
}

/* Numbers arrive in ascending order, except those that weft_peer_sn_used() allows to be late. */
static void unclaimed_insert(struct weft_conns *conns, struct weft_peer *peer,
			     struct weft_unclaimed *u)
{
	struct weft_unclaimed *last = TAILQ_LAST(&peer->unclaimed, weft_unclaimed_queue);

	while (last && (int32_t)(last->ep->conn_sn - u->ep->conn_sn) > 0) {
		conns->looks++;
		last = TAILQ_PREV(last, weft_unclaimed_queue, claim);
	}
	if (last)
		TAILQ_INSERT_AFTER(&peer->unclaimed, last, u, claim);
	else
		TAILQ_INSERT_HEAD(&peer->unclaimed, u, claim);
}

static void peer_busy(struct weft_conns *conns, struct weft_peer *peer)
{
	TAILQ_REMOVE(&conns->idle, peer, idle_entry);
	conns->num_idle--;
	places_insert(conns, peer);
}

void weft_peer_add_ep(struct weft_conns *conns, struct weft_peer *peer, struct weft_ep *ep)
{
	if (peer->num_eps++ == 0)
		peer_busy(conns, peer);
	LIST_INSERT_HEAD(&peer->eps, ep, peer_entry);
	ep->peer = peer;
	ep_sn_add(ep);
	if (!ep->owned)
		unclaimed_insert(conns, peer, ep->unclaimed);
}

void weft_peer_claim(struct weft_ep *ep)
{
	TAILQ_REMOVE(&ep->peer->unclaimed, ep->unclaimed, claim);
	weft_unclaimed_remove(ep);
	free(ep->unclaimed);
	ep->unclaimed = NULL;
	ep->owned = true;
}

void weft_peer_remove_ep(struct weft_conns *conns, struct weft_ep *ep)
{
	struct weft_peer *peer = ep->peer;

	if (!peer)
		return;
	if (!ep->owned)
		TAILQ_REMOVE(&peer->unclaimed, ep->unclaimed, claim);
	weft_table_remove(&conns->by_sn, &ep->by_sn);
	LIST_REMOVE(ep, peer_entry);
	ep->peer = NULL;
	if (--peer->num_eps > 0)
		return;
	for (unsigned int i = 0; i < peer->num_places; i++)
		weft_table_remove(&conns->by_place, &peer->place[i].entry);
	peer->others_checked = 0;
	peer_idle(conns, peer);
}

/* ------------------------------------------------------------------ by place */

static void check_lanes(struct weft_conns *conns, const struct weft_peer *peer,
			const struct weft_lane_driver *driver, const char *words)
{
	struct weft_lane_ep *lane_ep;
	struct weft_ep *ep;

	LIST_FOREACH(ep, &peer->eps, peer_entry) {
		conns->looks++;
		for (unsigned int i = 0; i < ep->num_lanes && ep->state != WEFT_EP_FAILED; i++) {
			lane_ep = ep->lanes[i].lane_ep;
			if (lane_ep && lane_ep->up && lane_ep->iface->driver == driver &&
			    strcmp(weft_lane_remote(ep, i), words) == 0 && lane_ep->ops->ep_check)
				lane_ep->ops->ep_check(lane_ep);
		}
	}
}

void weft_peer_check_others(struct weft_worker *w, const struct weft_peer *peer,
			    const struct weft_lane_driver *driver, const char *words)
{
	uint64_t hash = hash_place(w, words);
	struct weft_table_node *n = weft_table_bucket(&w->conns->by_place, hash);
	const struct weft_peer *other;

	for (; n; n = SLIST_NEXT(n, link)) {
		w->conns->looks++;
		other = container_of(n, struct weft_peer_place, entry)->peer;
		if (n->key == hash && other->id != peer->id)
			check_lanes(w->conns, other, driver, words);
	}
}

int weft_peers_init(struct weft_conns *conns)
{
	if (weft_table_reserve(&conns->by_identity) || weft_table_reserve(&conns->by_digest))
		return -ENOMEM;
	return weft_table_reserve(&conns->by_place);
}

void weft_peers_fini(struct weft_conns *conns)
{
	while (!TAILQ_EMPTY(&conns->idle))
		peer_free(conns, TAILQ_FIRST(&conns->idle));
	weft_table_fini(&conns->by_identity);
	weft_table_fini(&conns->by_digest);
	weft_table_fini(&conns->by_place);
}

/* ------------------------------------------------------------------ our own boot address */

static const struct weft_lane_boot_ops *boot_ops(const struct weft_lane_iface *iface)
{
	return weft_address_bootable(iface->attr.features) ? iface->driver->boot : NULL;
}

static void describe_boot(struct weft_worker *w, struct weft_boot *b)
{
	const struct weft_lane_boot_ops *ops;
	struct weft_lane_iface *best = NULL;

	for (unsigned int i = 0; i < w->num_ifaces; i++) {
		struct weft_lane_iface *iface = w->ifaces[i];

		ops = boot_ops(iface);
		if (!ops)
			continue;
		if (ops->kind == WEFT_LANE_BOOT_HOST) {
			if (b->host_lane == 0)
				b->host_lane = (uint8_t)(i + 1);
			continue;
		}
		if (best && !(iface->attr.latency < best->attr.latency))
			continue;
		best = iface;
		b->index = (uint8_t)i;
		b->kind = ops->kind;
	}
	if (best)
		best->driver->boot->pack(best, &b->iface);
}

int weft_worker_get_boot_address(struct weft_worker *w, void *buf, size_t *length)
{
	uint8_t bytes[WEFT_BOOT_ADDRESS_MAX];
	struct weft_boot b = {0};
	struct weft_address *a;
	size_t n;

	if (!w || !length || (!buf && *length))
		return -EINVAL;
	a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	weft_worker_lock(w);
	weft_address_of_worker(w, a);
	b.worker_id = a->worker_id;
	b.secret = a->secret;
	b.digest = weft_address_digest(a);
	b.host = (uint32_t)a->host_id;
	describe_boot(w, &b);
	weft_worker_unlock(w);
	free(a);
	n = weft_boot_pack(&b, bytes);
	if (n <= *length)
		memcpy(buf, bytes, n);
	else
		buf = NULL;
	*length = n;
	return buf ? 0 : -EMSGSIZE;
}

/* ------------------------------------------------------------------ boot address of a peer */

/* Our interface of the kind of a boot address, or else one that reaches this kind, or NULL. */
static struct weft_lane_iface *iface_of_kind(const struct weft_worker *w, uint8_t kind)
{
	struct weft_lane_iface *other = NULL;
	const struct weft_lane_boot_ops *ops;

	for (unsigned int i = 0; i < w->num_ifaces; i++) {
		ops = boot_ops(w->ifaces[i]);
		if (ops && ops->kind == kind)
			return w->ifaces[i];
		if (ops && ops->also == kind && !other)
			other = w->ifaces[i];
	}
	return other;
}

/* Attributes that a boot address lacks are those of @p like, which is ours. */
static bool add_iface(struct weft_address *a, const struct weft_boot *b,
		      struct weft_lane_iface *like, uint8_t index)
{
	struct weft_address_iface *f = &a->ifaces[a->num_ifaces];

	weft_address_from_iface(f, index, like);
	if (like->driver->boot->also == b->kind && b->kind != WEFT_LANE_BOOT_NONE)
		snprintf(f->driver, sizeof(f->driver), "%s", like->driver->counterpart);
	f->domain = WEFT_NO_DOMAIN;
	memset(f->addr, 0, sizeof(f->addr));
	if (like->driver->boot->unpack(like, &b->iface,
				       weft_iface_id(b->worker_id, b->secret, index), f->addr) < 0)
		return false;
	a->num_ifaces++;
	return true;
}

int weft_learn_address(struct weft_worker *w, const struct weft_boot *b, struct weft_address *a)
{
	struct weft_lane_iface *like;

	memset(a, 0, sizeof(*a));
	a->worker_id = b->worker_id;
	a->secret = b->secret;
	a->host_id = b->host; /* the lower half, until the whole address is known */
	a->major = b->major;
	snprintf(a->name, sizeof(a->name), "worker %016" PRIx64, b->worker_id);
	like = iface_of_kind(w, WEFT_LANE_BOOT_HOST);
	if (b->host_lane && like && b->host && b->host == (uint32_t)w->host_id)
		add_iface(a, b, like, (uint8_t)(b->host_lane - 1));
	like = iface_of_kind(w, b->kind);
	if (b->kind != WEFT_LANE_BOOT_NONE && like && !add_iface(a, b, like, b->index))
		return -EINVAL;
	return 0;
}

void weft_learn_from(struct weft_ep *ep, const struct weft_address *remote)
{
	struct weft_wireup *wu = ep->wireup;

	wu->learning = false;
	wu->select.any_control = false;
	wu->remote = *remote;
	weft_lanes_describe_local(ep);
	weft_lanes_find_reachable(ep, false);
	weft_ep_set_remote_name(ep, remote->name);
}

/* ------------------------------------------------------------------ unclaimed endpoints */

/*
 * Unclaimed endpoints share WEFT_MAX_UNCLAIMED_EPS places. The quota is per host, as lanes identify
 * hosts: a peer chooses its worker id, name and interfaces itself.
 *
 * A sixteenth of the places, at least one, is reserved for hosts that have none, one place for
 * each. Of the others a host may have at most HOST_SHARE times the number that is free. So one host
 * alone gets seven of eight of all places, and the next hosts nearly all of the rest except the
 * sixteenth.
 *
 * When all places are taken, one of the hosts with the most endpoints loses the oldest of those
 * over which no message has arrived. The host must have at least two endpoints more than the host
 * of the new one. The endpoint must be older than half of WEFT_CONNECT_TIMEOUT, because a program
 * that gets many connections at once needs time to claim them.
 *
 * "Most" means that no other host has twice as many. A REQ that finds no place checks at most
 * RANK_LOOKS hosts, from the highest rank down. In each rank it begins with hosts whose last check
 * is the longest ago.
 */

#define HOST_SHARE 14u
#define NEWCOMERS 16u
#define RANK_LOOKS 8u

uint64_t weft_host_number(const struct weft_lane_ep *lane_ep)
{
	return lane_ep->ops->ep_host ? lane_ep->ops->ep_host(lane_ep) : 0;
}

static struct weft_host *find_host(struct weft_worker *w, uint64_t number)
{
	struct weft_table_node *n = weft_table_find(&w->conns->hosts, number);

	w->conns->looks += n != NULL;
	return n ? container_of(n, struct weft_host, by_number) : NULL;
}

static unsigned int rank_of(unsigned int num_eps)
{
	return 31u - (unsigned int)__builtin_clz(num_eps);
}

static void set_num(struct weft_conns *conns, struct weft_host *host, unsigned int num)
{
	unsigned int before = host->num_eps;

	host->num_eps = num;
	if (before > 0 && num > 0 && rank_of(before) == rank_of(num))
		return;
	if (before > 0)
		TAILQ_REMOVE(&conns->ranks[rank_of(before)], host, rank);
	if (num > 0)
		TAILQ_INSERT_HEAD(&conns->ranks[rank_of(num)], host, rank);
}

static bool has_brought(const struct weft_ep *ep)
{
	for (unsigned int i = 0; i < ep->num_lanes && i < ep->lane_room; i++)
		if (ep->lane_info[i].rx_msgs > 0)
			return true;
	return false;
}

static struct weft_ep *silent_of(struct weft_worker *w, struct weft_host *host)
{
	struct weft_unclaimed *u;

	while ((u = TAILQ_FIRST(&host->eps))) {
		w->conns->looks++;
		if (w->now - u->placed_at < w->ctx->conf->lane.connect_timeout_ns / 2)
			break;
		if (!has_brought(u->ep))
			return u->ep;
		TAILQ_REMOVE(&host->eps, u, entry);
		TAILQ_INSERT_TAIL(&host->busy, u, entry);
		u->busy = true;
	}
	return NULL;
}

static struct weft_ep *pick_victim(struct weft_worker *w, unsigned int mine)
{
	struct weft_conns *conns = w->conns;
	struct weft_host *host, *next, *last;
	unsigned int looks = 0;
	struct weft_ep *ep;

	for (unsigned int r = 32; r-- > 0;) {
		last = TAILQ_LAST(&conns->ranks[r], weft_host_rank);
		for (host = TAILQ_FIRST(&conns->ranks[r]); host; host = next) {
			next = host != last ? TAILQ_NEXT(host, rank) : NULL;
			if (looks++ == RANK_LOOKS)
				return NULL;
			conns->looks++;
			TAILQ_REMOVE(&conns->ranks[r], host, rank);
			TAILQ_INSERT_TAIL(&conns->ranks[r], host, rank);
			ep = host->num_eps > mine + 1 ? silent_of(w, host) : NULL;
			if (ep)
				return ep;
		}
	}
	return NULL;
}

bool weft_unclaimed_room(struct weft_worker *w, const struct weft_lane_ep *lane_ep,
			 struct weft_ep **goes)
{
	unsigned int max = w->ctx->conf->max_passive_eps, taken = w->conns->num_unclaimed;
	struct weft_host *host = find_host(w, weft_host_number(lane_ep));
	unsigned int mine = host ? host->num_eps : 0;
	unsigned int kept = max >= NEWCOMERS ? max / NEWCOMERS : 1;

	*goes = NULL;
	if (taken < max)
		return mine == 0 ||
		       (taken + kept < max && mine < (uint64_t)HOST_SHARE * (max - taken - kept));
	*goes = pick_victim(w, mine);
	return *goes != NULL;
}

int weft_unclaimed_add(struct weft_ep *ep, const struct weft_lane_ep *lane_ep)
{
	struct weft_worker *w = ep->worker;
	uint64_t number = weft_host_number(lane_ep);
	struct weft_host *host = find_host(w, number);

	if (!host) {
		host = calloc(1, sizeof(*host));
		if (!host || weft_table_add(&w->conns->hosts, &host->by_number, number) < 0) {
			free(host);
			return -ENOMEM;
		}
		TAILQ_INIT(&host->eps);
		TAILQ_INIT(&host->busy);
	}
	set_num(w->conns, host, host->num_eps + 1);
	TAILQ_INSERT_TAIL(&host->eps, ep->unclaimed, entry);
	ep->unclaimed->host = host;
	ep->unclaimed->placed_at = w->now;
	w->conns->num_unclaimed++;
	return 0;
}

void weft_unclaimed_remove(struct weft_ep *ep)
{
	struct weft_unclaimed *u = ep->unclaimed;
	struct weft_host *host = u ? u->host : NULL;

	if (!host)
		return;
	u->host = NULL;
	ep->worker->conns->num_unclaimed--;
	if (u->busy)
		TAILQ_REMOVE(&host->busy, u, entry);
	else
		TAILQ_REMOVE(&host->eps, u, entry);
	set_num(ep->worker->conns, host, host->num_eps - 1);
	if (host->num_eps == 0) {
		weft_table_remove(&ep->worker->conns->hosts, &host->by_number);
		free(host);
	}
}

/* ------------------------------------------------------------------ no endpoint yet */

/*
 * All pending connections have the same time for their first message, so the list is in the order
 * of their deadlines. weft_lane_ep_destroy() ends any connection, also one that is not listed.
 */

uint64_t weft_connect_timeout(const struct weft_worker *w)
{
	return w->ctx->conf->lane.connect_timeout_ns;
}

void weft_pending_remove(struct weft_worker *worker, const struct weft_lane_ep *lane_ep)
{
	struct weft_conns *conns = worker->conns;
	struct weft_table_node *n = weft_table_find(&conns->by_lane_ep, (uintptr_t)lane_ep);

	if (!n)
		return;
	conns->looks++;
	weft_table_remove(&conns->by_lane_ep, n);
	TAILQ_REMOVE(&conns->pending, container_of(n, struct weft_pending, entry), order);
	SLIST_INSERT_HEAD(&conns->pending_free, n, link);
}

void weft_lane_ep_destroy(struct weft_worker *worker, struct weft_lane_ep *lane_ep)
{
	weft_pending_remove(worker, lane_ep);
	weft_partial_forget(worker->conns, lane_ep);
	lane_ep->user = NULL;
	lane_ep->ops->ep_destroy(lane_ep);
}

/* Honest peers send a message at once, so a peer that fills the table excludes only itself. */
static void evict_silent(struct weft_worker *w, const char *iface)
{
	struct weft_conns *conns = w->conns;

	weft_log_limited(
		&conns->limit_refused, WEFT_LOG_WARN,
		"%s: a peer connects, and %d connections without an endpoint exist, which is the "
		"limit: the oldest is closed",
		iface, WEFT_MAX_PENDING);
	conns->looks++;
	weft_lane_ep_destroy(w, TAILQ_FIRST(&conns->pending)->lane_ep);
}

void weft_pending_add(struct weft_worker *w, struct weft_lane_ep *lane_ep)
{
	struct weft_conns *conns = w->conns;
	struct weft_table_node *n;
	struct weft_pending *p;

	if (conns->by_lane_ep.num == WEFT_MAX_PENDING)
		evict_silent(w, lane_ep->iface->name);
	n = SLIST_FIRST(&conns->pending_free);
	if (n)
		SLIST_REMOVE_HEAD(&conns->pending_free, link);
	else
		n = &conns->pending_room[conns->pending_used++].entry;
	p = container_of(n, struct weft_pending, entry);
	p->lane_ep = lane_ep;
	p->deadline = w->now + weft_connect_timeout(w);
	/* Keys are local addresses, which peers cannot choose. */
	weft_table_add(&conns->by_lane_ep, n, (uintptr_t)lane_ep);
	TAILQ_INSERT_TAIL(&conns->pending, p, order);
	if (p->deadline < w->next_timer)
		w->next_timer = p->deadline;
}

void weft_pending_timers(struct weft_worker *w)
{
	struct weft_conns *conns = w->conns;
	struct weft_pending *p;

	while ((p = TAILQ_FIRST(&conns->pending))) {
		conns->looks++;
		if (w->now < p->deadline) {
			if (p->deadline < w->next_timer)
				w->next_timer = p->deadline;
			return;
		}
		weft_lane_ep_destroy(w, p->lane_ep);
	}
}
