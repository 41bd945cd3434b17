/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/peer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/op.h"
#include "provider/process.h"
#include "provider/provider.h"

/* Tests build another one. */
#ifndef WFI_ADDR_VERSION
#define WFI_ADDR_VERSION 1
#endif
#define BUCKETS 1024u
#define RKEYS 256u

static const uint8_t magic[4] = {'W', 'e', 'f', 't'};

static_assert(sizeof(struct wfi_addr) == FI_NAME_MAX, "applications reserve this size");

static LIST_HEAD(peers, wfi_peer) table[BUCKETS];

/* Recently used keys, by their low bits, which are random. */
struct wfi_rkeys {
	struct {
		uint64_t key;
		struct weft_rkey *rkey;
	} place[RKEYS];
};

/* ------------------------------------------------------------------ addresses */

void wfi_addr_unmade(struct wfi_addr *addr)
{
	*addr = (struct wfi_addr){.version = WFI_ADDR_VERSION};
	memcpy(addr->magic, magic, sizeof(magic));
}

int wfi_addr_own(struct wfi_addr *addr, uint16_t number)
{
	size_t length = sizeof(addr->boot);
	int rc;

	wfi_addr_unmade(addr);
	rc = weft_worker_get_boot_address(wfi.worker, addr->boot, &length);
	if (rc < 0)
		return -wfi_errno(rc);
	addr->length = (uint8_t)length;
	addr->number[0] = number & 0xff;
	addr->number[1] = (uint8_t)(number >> 8);
	return 0;
}

int wfi_addr_check(const struct wfi_addr *addr, uint64_t *id, uint16_t *number)
{
	struct weft_address_attr attr = {.size = sizeof(attr)};
	int rc;

	if (memcmp(addr->magic, magic, sizeof(magic)) != 0)
		return -FI_EINVAL;
	if (addr->version != WFI_ADDR_VERSION)
		return -FI_EOPNOTSUPP;
	if (addr->length > WFI_BOOT_MAX)
		return -FI_EINVAL;
	rc = weft_address_query(addr->boot, addr->length, &attr);
	if (rc < 0)
		return rc == -EPROTONOSUPPORT ? -FI_EOPNOTSUPP : -FI_EINVAL;
	*id = attr.worker_id;
	*number = (uint16_t)(addr->number[0] | addr->number[1] << 8);
	return 0;
}

/* ------------------------------------------------------------------ the table */

/* Ids are random. */
static struct peers *bucket(uint64_t id)
{
	return &table[id % BUCKETS];
}

struct wfi_peer *wfi_peer_get(const struct wfi_addr *addr, uint64_t id)
{
	struct wfi_peer *peer;

	LIST_FOREACH(peer, bucket(id), entry) {
		if (peer->id == id) {
			peer->refs++;
			return peer;
		}
	}
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->id = id;
	peer->refs = 1;
	peer->length = addr->length;
	memcpy(peer->boot, addr->boot, sizeof(peer->boot));
	LIST_INSERT_HEAD(bucket(id), peer, entry);
	return peer;
}

static void drop_rkeys(struct wfi_peer *peer)
{
	if (!peer->rkeys)
		return;
	for (unsigned int i = 0; i < RKEYS; i++)
		weft_rkey_destroy(peer->rkeys->place[i].rkey);
	free(peer->rkeys);
	peer->rkeys = NULL;
}

int wfi_peer_rkey(struct wfi_peer *peer, uint64_t key, struct weft_rkey **rkey)
{
	struct weft_rkey *new, **place;
	int rc;

	if (!peer->rkeys)
		peer->rkeys = calloc(1, sizeof(*peer->rkeys));
	if (!peer->rkeys)
		return -FI_EAGAIN;
	place = &peer->rkeys->place[key % RKEYS].rkey;
	if (*place && peer->rkeys->place[key % RKEYS].key == key) {
		*rkey = *place;
		return 0;
	}
	rc = weft_rkey_from_key(peer->ep, key, &new);
	if (rc < 0)
		return rc == -ENOMEM ? -FI_EAGAIN : -wfi_errno(rc);
	weft_rkey_destroy(*place);
	*place = new;
	peer->rkeys->place[key % RKEYS].key = key;
	*rkey = new;
	return 0;
}

void wfi_peer_put(struct wfi_peer *peer)
{
	if (--peer->refs > 0)
		return;
	wfi_ops_end(peer, -ECONNRESET);
	drop_rkeys(peer);
	if (peer->ep)
		weft_ep_close(peer->ep, 0, NULL, NULL);
	LIST_REMOVE(peer, entry);
	free(peer);
}

void wfi_peers_forget(void)
{
	struct wfi_peer *peer;

	for (unsigned int i = 0; i < BUCKETS; i++) {
		LIST_FOREACH(peer, &table[i], entry) {
			drop_rkeys(peer);
			peer->ep = NULL;
		}
	}
}

void wfi_peers_forked(void)
{
	memset(table, 0, sizeof(table));
}

/* ------------------------------------------------------------------ connections */

/*
 * A peer that has closed in order may have removed our address and still run: the next message
 * connects again. A peer that has died remains dead. If receives wait for the peer, a new
 * connection determines which of the two is the case.
 */
static void failed(struct weft_ep *ep, int status, const char *why, void *arg)
{
	struct wfi_peer *peer = arg;
	bool current = peer->ep == ep;
	int rc;

	FI_INFO(&wfi_provider, FI_LOG_EP_CTRL, "the connection to a peer has ended: %s\n", why);
	if (current) {
		drop_rkeys(peer);
		peer->ep = NULL;
	}
	if (status != -ECONNRESET)
		peer->status = status;
	weft_ep_close(ep, WEFT_EP_CLOSE_FORCE, NULL, NULL);
	if (!current || !wfi_ops_await(peer))
		return;
	rc = wfi_peer_connect(peer);
	if (rc < 0)
		wfi_ops_end(peer, rc);
}

int wfi_peer_connect_now(struct wfi_peer *peer)
{
	struct weft_ep_params params =
		WEFT_INIT(struct weft_ep_params, .address = peer->boot,
			  .address_length = peer->length, .err_cb = failed, .err_arg = peer);
	int rc;

	if (peer->status != 0)
		return -wfi_errno(peer->status);
	rc = weft_ep_create(wfi.worker, &params, &peer->ep);
	if (rc == -ENOMEM)
		return -FI_EAGAIN;
	return rc < 0 ? -wfi_errno(rc) : 0;
}
