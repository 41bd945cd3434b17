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

/** Is @p gid in @p net? */
bool weft_roce_gid_in(const uint8_t gid[16], const struct weft_roce_subnet *net);

/**
 * Choose: RoCE v2 before v1, which is used only with gid=N; IPv4 before IPv6; addresses of the
 * network before link-local ones; then the lowest index.
 *
 * @param table   entries of the device; @p num of them
 * @param index   requested index, or -1; required for v1
 * @param subnet  NULL = any
 * @param[out] why  the reason for the choice, or an error message with the entries and the remedy
 * @return position in @p table, or -EADDRNOTAVAIL
 */
int weft_roce_gid_pick(const struct weft_roce_gid *table, int num, int index,
		       const struct weft_roce_subnet *subnet, char *why, size_t why_len);

#endif /* WEFT_ROCE_GID_H */
