/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_recv.h
 * Receive buffers and the receive path.
 */
#ifndef WEFT_ROCE_RECV_H
#define WEFT_ROCE_RECV_H

#include "roce.h"

int roce_srq_open(struct roce_iface *r, char *why, size_t why_len);
/** Post buffers until all promised windows are covered, as far as memory allows. */
void roce_srq_fill(struct roce_iface *r);
/** The same before a window is promised. @return 0, or a negative error: do not promise it */
int roce_srq_cover(struct roce_iface *r);
void roce_release(struct weft_lane_iface *iface, void *desc);

void roce_recv(struct roce_iface *r, const struct ibv_wc *wc, struct roce_buf *buf);
/** Send counts of processed messages to peers, where they are due. */
void roce_acks_send(struct roce_iface *r);
/** Read the words that peers write. @return number of new counts */
unsigned int roce_words_read(struct roce_iface *r);
struct roce_chan *roce_chan_find(const struct roce_iface *r, uint32_t qpn);
int roce_chan_enter(struct roce_iface *r, struct roce_chan *chan);
void roce_chan_leave(struct roce_iface *r, struct roce_chan *chan);

#endif /* WEFT_ROCE_RECV_H */
