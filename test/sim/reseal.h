/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file reseal.h
 * Lane frames (UDP, untagged) that a test has changed get right checksums again, so that they pass
 * validation as a lying peer's would.
 */
#ifndef SIM_RESEAL_H
#define SIM_RESEAL_H

#include <string.h>

#include "frame/csum.h"
#include "frame/frame.h"

#define RESEAL_LANE 42u /* where the lane header begins */

static inline struct weft_frame_hdr *reseal_header(uint8_t *f)
{
	return (struct weft_frame_hdr *)(f + RESEAL_LANE);
}

static inline bool reseal_is_lane(const uint8_t *f, size_t len)
{
	return len >= RESEAL_LANE + sizeof(struct weft_frame_hdr) && f[12] == 8 && f[13] == 0;
}

static inline void reseal(uint8_t *f, size_t len)
{
	struct weft_frame_hdr *h = reseal_header(f);
	uint16_t body = weft_get16(h->length);
	weft_le32 crc;

	memset(f + 24, 0, 2);
	weft_put_be16(f + 24, weft_inet_fold(weft_inet_sum(0, f + 14, 20)));
	memset(f + 40, 0, 2);
	if ((weft_get16(h->flags) & WEFT_FRAME_F_CRC32C) && RESEAL_LANE + body + 4 <= len) {
		crc = weft_put32(~weft_crc32c(WEFT_CRC32C_INIT, h, body));
		memcpy((uint8_t *)h + body, &crc, 4);
	}
}

#endif /* SIM_RESEAL_H */
