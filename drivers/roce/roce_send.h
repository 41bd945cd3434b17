/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_send.h
 * Messages, and operations on remote memory.
 */
#ifndef WEFT_ROCE_SEND_H
#define WEFT_ROCE_SEND_H

#include "roce.h"

int roce_am_short(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		  const void *payload, size_t length);
ssize_t roce_am_bcopy(struct weft_lane_ep *lane_ep, uint8_t am_id, weft_lane_pack_cb pack,
		      void *arg);
int roce_am_zcopy(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		  const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		  struct weft_lane_comp *comp);
void roce_tx_flush(struct weft_lane_iface *iface);
/** Post the collected requests to the device. */
void roce_chan_ring(struct roce_chan *chan);
/** Write the count of processed messages into the peer's memory. @return 0 or -EAGAIN */
int roce_chan_count_send(struct roce_chan *chan);
/** Send PING, which the peer's process must acknowledge, if there is space. */
void roce_chan_ping(struct roce_chan *chan);
/** Send BYE. @return false = no place, or BYE was sent before */
bool roce_chan_bye(struct roce_chan *chan);

int roce_get_zcopy(struct weft_lane_ep *lane_ep, const struct iovec *iov, unsigned int iovcnt,
		   struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
		   struct weft_lane_comp *comp);
int roce_put_zcopy(struct weft_lane_ep *lane_ep, const struct iovec *iov, unsigned int iovcnt,
		   struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
		   struct weft_lane_comp *comp);
int roce_amo64(struct weft_lane_ep *lane_ep, enum weft_lane_amo op, uint64_t operand,
	       uint64_t compare, uint64_t *result, uint64_t remote_offset, uint64_t key,
	       struct weft_lane_comp *comp);

#endif /* WEFT_ROCE_SEND_H */
