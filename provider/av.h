/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/av.h
 * Addresses: remote processes with the connection to each, and address vectors.
 */
#ifndef WFI_AV_H
#define WFI_AV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/container.h"
#include "provider/process.h"
#include "weft.h"

/* ------------------------------------------------------------------ peers */

/*
 * A peer is a remote process, known by the boot address of its worker. All endpoints and address
 * vectors of this process share one connection to the peer, an endpoint of Weft.
 */

#define WFI_BOOT_MAX 56

/** An endpoint's address, in the byte order of the wire (little-endian), 64 bytes. */
struct wfi_addr {
	uint8_t magic[3]; /**< "Wef" */
	uint8_t domain;   /**< number of its domain, if the application chooses keys; else 0 */
	uint8_t version;  /**< 2: version of this format */
	uint8_t length;   /**< used bytes of boot; the bit #WFI_ADDR_INTRODUCE is separate */
	uint8_t number;   /**< number of the endpoint in its process */
	uint8_t receiver; /**< number of its shared receive context, or without one its own */
	uint8_t boot[WFI_BOOT_MAX]; /**< boot address of the worker */
};

/**
 * A bit of `length`: the endpoint has FI_SOURCE_ERR, so it reports addresses of senders that its
 * address vector lacks. So peers send their address to its process before messages (av.c).
 */
#define WFI_ADDR_INTRODUCE 0x80u

struct wfi_rkeys;

struct wfi_peer {
	struct weft_table_node by_id;
	uint64_t id;        /**< id of the peer's worker */
	unsigned int refs;  /**< number of entries of address vectors that have this peer */
	int status;         /**< the error by which it has died, negative; 0: it has not died */
	bool introduce;     /**< this process sends its address first over each connection */
	struct weft_ep *ep; /**< the connection; NULL: there is none now */
	struct wfi_rkeys *rkeys; /**< remote keys for `ep`; NULL: none has been used */
	uint8_t length;
	uint8_t boot[WFI_BOOT_MAX];
};

/**
 * The placeholder for the address of an endpoint that does not exist yet: fi_getinfo() cannot
 * return more without starting a worker. It leads to no endpoint.
 */
void wfi_addr_unmade(struct wfi_addr *addr);
/**
 * The address of this process, whose members about an endpoint are 0. Locked; the process has a
 * worker. @return 0 or a negative libfabric error
 */
int wfi_addr_own(struct wfi_addr *addr);
/**
 * Validate an address, which may have any contents.
 * @param[out] id  id of its worker
 * @return 0; -FI_EINVAL: malformed; -FI_EOPNOTSUPP: it comes from another version
 */
int wfi_addr_check(const struct wfi_addr *addr, uint64_t *id);

int wfi_peer_connect_now(struct wfi_peer *peer);

/** Create Weft's endpoint, if there is none. Locked. @return 0, or a negative libfabric error */
static inline int wfi_peer_connect(struct wfi_peer *peer)
{
	return peer->ep ? 0 : wfi_peer_connect_now(peer);
}

/**
 * Get Weft's remote key for @p key. The peer must be connected. @p peer owns the remote key, which
 * is valid until the next call, or until the connection ends. Locked.
 * @return 0; -FI_EAGAIN: there is no memory; or another negative libfabric error
 */
int wfi_peer_rkey(struct wfi_peer *peer, uint64_t key, struct weft_rkey **rkey);

/*
 * Weft's source channel of an endpoint: the low byte is the endpoint's number, and the high byte is
 * `receiver` of its address.
 */

static inline uint16_t wfi_source_channel(uint16_t number, uint16_t receiver)
{
	return (uint16_t)(number | receiver << 8);
}

static inline uint8_t wfi_source_number(uint16_t source_channel)
{
	return (uint8_t)(source_channel & 0xff);
}

/**
 * From now on keep the addresses that senders introduce (av.c). Called when an endpoint with
 * FI_SOURCE_ERR is enabled. Locked.
 * @return 0 or a negative error
 */
int wfi_senders_listen(void);
/**
 * Get the address of an endpoint that has sent a message. Locked.
 * @param id              id of the sender's worker
 * @param source_channel  of the message
 * @return false: the address is not known
 */
bool wfi_sender_addr(struct wfi_addr *addr, uint64_t id, uint16_t source_channel);

/**
 * The worker is about to be destroyed: free remote keys and the addresses of senders, and forget
 * the connections, which end with the worker. Locked.
 */
void wfi_peers_forget(void);
/** In a child of fork(): forget all peers and addresses of senders. */
void wfi_peers_forked(void);

/* ------------------------------------------------------------------ address vectors */

/*
 * An fi_addr_t is the index of an address in its vector, for FI_AV_MAP as for
 * FI_AV_TABLE. Inserting an address does not connect: the first operation does.
 */

struct wfi_av_entry {
	struct wfi_peer *peer; /**< NULL: the address has been removed */
	uint8_t number;        /**< number of the endpoint in its process */
	uint8_t receiver;      /**< number of its shared receive context, or without one its own */
	struct wfi_addr addr;
};

struct wfi_av {
	struct fid_av av;
	struct wfi_domain *domain;
	struct wfi_eq *eq;  /**< FI_EVENT: insertions are reported to it */
	unsigned int refs;  /**< number of endpoints that are bound to it */
	bool events;        /**< FI_EVENT was requested */
	size_t count, size; /**< entries in use, removed ones included; allocated entries */
	struct wfi_av_entry *entries;
	size_t hash_size;
	uint32_t *hash; /**< entry + 1, by worker id and number; 0: free; UINT32_MAX: removed */
};

int wfi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		void *context);

/** The entry of an address. Locked. @return NULL: there is none */
static inline struct wfi_av_entry *wfi_av_entry(const struct wfi_av *av, fi_addr_t addr)
{
	if (addr >= av->count || !av->entries[addr].peer)
		return NULL;
	return &av->entries[addr];
}

/**
 * The fi_addr_t of an endpoint, by the id of its worker and its number in its process. Locked.
 * @return FI_ADDR_NOTAVAIL: the endpoint is not in the vector
 */
fi_addr_t wfi_av_find(const struct wfi_av *av, uint64_t id, uint16_t number);

#endif /* WFI_AV_H */
