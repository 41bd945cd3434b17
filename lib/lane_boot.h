/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lane_boot.h
 * Part of the contract of lane.h: the form of a driver's interface in a boot address
 * (weft_worker_get_boot_address()). A boot address has room for one network interface only. It
 * omits everything that can be requested from the worker once it is reached.
 */
#ifndef WEFT_LANE_BOOT_H
#define WEFT_LANE_BOOT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_lane_iface;

#define WEFT_LANE_BOOT_MAX 19 /**< bytes that an interface has there */

/** Which driver the bytes belong to; 6 and 7 are for drivers that are not part of Weft. */
enum weft_lane_boot_kind {
	WEFT_LANE_BOOT_NONE = 0,
	WEFT_LANE_BOOT_DPDK = 1,
	WEFT_LANE_BOOT_ROCE_UD = 2,
	/**
	 * Inside a host (#WEFT_LANE_F_HOST): in addition to a network interface, without bytes. It
	 * is tried only if the address is one of the same running system.
	 */
	WEFT_LANE_BOOT_HOST = 3,
	WEFT_LANE_BOOT_UDP = 4,
	WEFT_LANE_BOOT_OTHER = 6,
};

struct weft_lane_boot {
	uint8_t variant; /**< driver's, 0..7 */
	uint8_t length;  /**< of bytes[] */
	uint8_t bytes[WEFT_LANE_BOOT_MAX];
};

/** For drivers whose interfaces a boot address may contain; these connect by address alone. */
struct weft_lane_boot_ops {
	uint8_t kind; /**< enum weft_lane_boot_kind */
	/** Write the bytes from which unpack() can restore get_address() of the interface. */
	void (*pack)(struct weft_lane_iface *iface, struct weft_lane_boot *boot);
	/**
	 * The inverse, at the peer: make an address that is_reachable() and ep_connect() accept.
	 * @param iface     local to the caller; values that the boot address omits are taken from
	 *   it
	 * @param iface_id  weft_lane_open.iface_id of the remote interface
	 * @param addr      attr.dev_addr_len bytes
	 * @return 0 or -EINVAL
	 */
	int (*unpack)(struct weft_lane_iface *iface, const struct weft_lane_boot *boot,
		      uint64_t iface_id, void *addr);
};

#ifdef __cplusplus
}
#endif

#endif /* WEFT_LANE_BOOT_H */
