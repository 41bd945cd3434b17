/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/six.h
 * Frames of IPv6 lanes over sockets. The engine's headers of such frames are those of IPv4, with
 * numbers of hosts as addresses (frame/arp.h). Captures get the headers that the network sees.
 */
#ifndef WEFT_CAPTURE_SIX_H
#define WEFT_CAPTURE_SIX_H

#include <assert.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "frame/arp.h"
#include "frame/frame.h"

static_assert(WEFT_ND_MAX >= WEFT_ENCAP_MAX, "room for both");

struct weft_six_head {
	uint32_t len;  /**< of the headers in front of the rest of the frame */
	uint32_t skip; /**< bytes of the frame whose place they take */
	uint8_t bytes[WEFT_ND_MAX];
};

/**
 * The headers of a frame; of an ARP packet the frame of neighbour discovery.
 * @param whole  a longer frame has no UDP checksum (0): no file has all of its bytes
 * @param[out] head  both lengths are 0 for other frames, and if a host has no number any more
 */
void weft_six_head(const struct weft_hosts *hosts, const struct rte_mbuf *m, uint32_t whole,
		   struct weft_six_head *head);

#endif /* WEFT_CAPTURE_SIX_H */
