/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file peer.h
 * Remote processes: their address, as fi_getname() returns it, and Weft's endpoint to each, which
 * all endpoints and address vectors of this process share.
 */
#ifndef WFI_PEER_H
#define WFI_PEER_H

#include <stdint.h>
#include <sys/queue.h>

#include "weft.h"

#define WFI_BOOT_MAX 56

/** An endpoint's address, in the byte order of the wire (little-endian), 64 bytes. */
struct wfi_addr {
	uint8_t magic[4];  /**< "Weft" */
	uint8_t version;   /**< 1 so far */
	uint8_t length;    /**< length of boot */
	uint8_t number[2]; /**< number of the endpoint in its process */
	uint8_t boot[WFI_BOOT_MAX];
};

struct wfi_rkeys;

struct wfi_peer {
	LIST_ENTRY(wfi_peer) entry;
	uint64_t id; /**< id of its worker */
	unsigned int refs;
	int status;              /**< the error by which it has died; 0 */
	struct weft_ep *ep;      /**< NULL: not used yet, or the peer has closed it */
	struct wfi_rkeys *rkeys; /**< NULL: no key has been used */
	uint8_t length;
	uint8_t boot[WFI_BOOT_MAX];
};

/**
 * The placeholder for the address of an endpoint that does not exist yet: fi_getinfo() cannot
 * return more without starting a worker. It leads to no endpoint.
 */
void wfi_addr_unmade(struct wfi_addr *addr);
/** The address of endpoint @p number of this process. @return 0 or a negative error */
int wfi_addr_own(struct wfi_addr *addr, uint16_t number);
/**
 * Validate an address, which may have any contents. @return 0; -FI_EINVAL; -FI_EOPNOTSUPP: it comes
 * from another version
 */
int wfi_addr_check(const struct wfi_addr *addr, uint64_t *id, uint16_t *number);

/** One more user. Locked. @return NULL without memory */
struct wfi_peer *wfi_peer_get(const struct wfi_addr *addr, uint64_t id);
/** One user less; the last one closes the connection. Locked. */
void wfi_peer_put(struct wfi_peer *peer);

int wfi_peer_connect_now(struct wfi_peer *peer);

/** Create Weft's endpoint at first use. @return 0, or a negative libfabric error */
static inline int wfi_peer_connect(struct wfi_peer *peer)
{
	return peer->ep ? 0 : wfi_peer_connect_now(peer);
}

/**
 * Get the key of the peer's memory, which the peer entry owns. @return 0, or a negative libfabric
 * error
 */
int wfi_peer_rkey(struct wfi_peer *peer, uint64_t key, struct weft_rkey **rkey);

/** The worker is destroyed, and its endpoints with it. Locked. */
void wfi_peers_forget(void);
/** In a child of fork(): there are no peers. */
void wfi_peers_forked(void);

#endif /* WFI_PEER_H */
