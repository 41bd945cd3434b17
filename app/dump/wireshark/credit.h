/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/wireshark/credit.h
 * What the sender of a direction of an endpoint may send, and what it has sent, over all lanes.
 * Wire-up names the endpoint of a connection, and has the first credit: without it in the capture
 * nothing is known. Endpoints and credits are kept for each interface of the capture, since
 * captures of both ends have every frame twice.
 */
#ifndef DUMP_WIRESHARK_CREDIT_H
#define DUMP_WIRESHARK_CREDIT_H

#include <stdint.h>

#include <epan/packet.h>

#include "core/wire_frame_def.h"

/**
 * The messages of a DATA frame that is there for the first time.
 * @param place  dissect_place()
 * @param body   @p len bytes of messages
 */
void dissect_learn_credit(packet_info *pinfo, uint32_t place, const struct weft_frame_hdr *hdr,
			  const uint8_t *body, uint32_t len);

void dissect_credit_register(void);

#endif /* DUMP_WIRESHARK_CREDIT_H */
