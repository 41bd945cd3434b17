/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/address.h
 * By a worker address a peer chooses lanes and reaches them. A boot address is enough to reach the
 * worker, which then sends the whole address. doc/wire.md has the bytes.
 */
#ifndef WEFT_ADDRESS_H
#define WEFT_ADDRESS_H

#include "base/container.h"
#include "core/wire.h"
#include "lane.h"

/* ------------------------------------------------------------------ worker addresses */

#define WEFT_ADDRESS_MAX_IFACES 16
#define WEFT_ADDRESS_MAX 4096 /**< bytes: above any result of weft_address_pack() */

struct weft_address_iface {
	uint8_t index;
	char driver[16];
	/** hash of the card's or port's name; equal at one worker = same hardware */
	uint64_t device;
	uint32_t features; /**< WEFT_LANE_F_*, low 32 bits */
	float bandwidth, latency, send_overhead, recv_overhead, reg_cost, reg_growth;
	uint32_t max_short, max_bcopy, max_zcopy;
	uint8_t ep_addr_len; /**< of a lane ep; 0 without WEFT_LANE_F_TO_EP */
	/** of the iface in its context, for remote keys; or WEFT_NO_DOMAIN */
	uint8_t domain;
	uint8_t addr_len;
	uint8_t addr[WEFT_LANE_ADDR_MAX];
};

struct weft_address {
	uint64_t worker_id;
	uint64_t features; /**< WEFT_FEATURE_* of the context */
	uint64_t secret;   /**< a peer must present it to connect to the worker */
	uint64_t host_id;  /**< from the boot id of the running system; 0 = not known */
	uint8_t major, minor;
	char name[64];
	unsigned int num_ifaces;
	struct weft_address_iface ifaces[WEFT_ADDRESS_MAX_IFACES];
};

/** Can peers connect to such an iface by its address alone, and send wire-up? */
static inline bool weft_address_bootable(uint64_t features)
{
	return (features & WEFT_LANE_F_TO_IFACE) && (features & WEFT_LANE_F_SHORT);
}

/** Do interfaces of @p driver reach those of the driver called @p name? */
bool weft_address_is_of(const struct weft_lane_driver *driver, const char *name);

void weft_address_from_iface(struct weft_address_iface *a, unsigned int index,
			     struct weft_lane_iface *iface);

struct weft_worker;

/** @p a gets all ifaces but the loopback. */
void weft_address_of_worker(const struct weft_worker *w, struct weft_address *a);

size_t weft_address_size(const struct weft_address *a);

/** @param buf  weft_address_size() bytes. @return bytes written */
size_t weft_address_pack(const struct weft_address *a, void *buf);

/**
 * A hash of the worker's secret, and of number, driver and network address of each interface. With
 * one key all addresses that a worker packs have the same hash, unless an interface is added, left
 * out or replaced.
 */
uint64_t weft_address_identity(const struct weft_address *a, const struct weft_siphash_key *key);

/**
 * weft_address_identity() with the worker's id and secret as the key. A peer with a boot address
 * checks the whole address by the digest.
 */
uint64_t weft_address_digest(const struct weft_address *a);

/** @return identifies interface @p index of this worker on the wire; never 0 */
uint64_t weft_iface_id(uint64_t worker_id, uint64_t secret, unsigned int index);

/** Write the checksum, after bytes were changed (tests, fuzzers). */
void weft_address_seal(void *address, size_t length);

/**
 * @param why  gets a sentence on error; may be NULL
 * @return 0, -EINVAL (truncated, damaged, contradictory), -EPROTONOSUPPORT (another major version)
 */
int weft_address_unpack(struct weft_address *a, const void *buf, size_t length, char *why,
			size_t why_len);

/* ------------------------------------------------------------------ boot addresses */

/* At most 56 bytes. The worker sends its whole address on request (wireup/wireup.c). */

struct weft_boot {
	uint64_t worker_id, secret;
	uint64_t digest; /**< weft_address_digest() of the whole address */
	uint32_t host;   /**< low half of weft_address.host_id; 0 = not known */
	uint8_t major;
	uint8_t kind; /**< enum weft_lane_boot_kind of `iface`; NONE = no network interface */
	uint8_t index;
	uint8_t host_lane; /**< 1 + number of the worker's interface inside the host; 0 = none */
	struct weft_lane_boot iface;
};

bool weft_boot_is(const void *buf, size_t length);
/** @param buf  WEFT_BOOT_ADDRESS_MAX bytes. @return bytes written */
size_t weft_boot_pack(const struct weft_boot *b, void *buf);
/** Parameters and errors as of weft_address_unpack(). */
int weft_boot_unpack(struct weft_boot *b, const void *buf, size_t length, char *why,
		     size_t why_len);

#endif /* WEFT_ADDRESS_H */
