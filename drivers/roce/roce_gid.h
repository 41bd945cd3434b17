/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_gid.h
 * Which entry of a device's GID table a lane uses. Pure: the table is given.
 */
#ifndef WEFT_ROCE_GID_H
#define WEFT_ROCE_GID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_roce_gid {
	uint8_t gid[16];
	uint8_t index; /**< in the table, 0..255 */
	bool v2;       /**< RoCE v2 (UDP); else v1, or InfiniBand */
};

/** Addresses that a lane may have: subnet=10.0.0.0/16. */
struct weft_roce_subnet {
	uint8_t net[16];
	uint8_t prefix; /**< of 128 bits; 0 = not given */
};

/** Does @p gid lie in @p net? */
bool weft_roce_gid_in(const uint8_t gid[16], const struct weft_roce_subnet *net);

/**
 * Choose: RoCE v2 before v1, which nobody gets without asking; IPv4 before IPv6; addresses of the
 * network before link-local ones; then the lowest index.
 *
 * @param table   what the device has; @p num entries
 * @param index   wanted index, or -1; v1 only so
 * @param subnet  NULL = any
 * @param[out] why  the reason for the choice, or a sentence that says what there is and what to do
 * @return position in @p table, or -EADDRNOTAVAIL
 */
int weft_roce_gid_pick(const struct weft_roce_gid *table, int num, int index,
		       const struct weft_roce_subnet *subnet, char *why, size_t why_len);

#endif /* WEFT_ROCE_GID_H */
