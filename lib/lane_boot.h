/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lane_boot.h
 * Part of the contract of lane.h: what a driver's interface looks like in a boot address
 * (weft_worker_get_boot_address()), which has room for one interface of a network, and for none of
 * what can be requested once it is reached.
 */
#ifndef WEFT_LANE_BOOT_H
#define WEFT_LANE_BOOT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_lane_iface;

#define WEFT_LANE_BOOT_MAX 19 /**< bytes that an interface has there */

/** Whose bytes they are; 6 and 7 are for drivers that are not part of Weft. */
enum weft_lane_boot_kind {
	WEFT_LANE_BOOT_NONE = 0,
	WEFT_LANE_BOOT_DPDK = 1,
	WEFT_LANE_BOOT_ROCE_UD = 2,
	/**
	 * Inside a host (#WEFT_LANE_F_HOST): beside the one of a network, without bytes, and only
	 * checked where the address is one of the same running system.
	 */
	WEFT_LANE_BOOT_HOST = 3,
	WEFT_LANE_BOOT_OTHER = 6,
};

struct weft_lane_boot {
	uint8_t variant; /**< driver's, 0..7 */
	uint8_t length;  /**< of bytes[] */
	uint8_t bytes[WEFT_LANE_BOOT_MAX];
};

/** Of a driver whose interfaces can stand in a boot address; they connect by address alone. */
struct weft_lane_boot_ops {
	uint8_t kind; /**< enum weft_lane_boot_kind */
	/** Write what get_address() of the interface can be made from again. */
	void (*pack)(struct weft_lane_iface *iface, struct weft_lane_boot *boot);
	/**
	 * The other way round, at the peer: an address that is_reachable() and ep_connect() take.
	 * @param iface     of the peer: what the address leaves out is taken to be like its own
	 * @param iface_id  weft_lane_open.iface_id of the interface that is meant
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
