/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_cq.h
 * Completions; receive buffers and the receive path; owners that sleep until a completion arrives.
 */
#ifndef WEFT_ROCE_CQ_H
#define WEFT_ROCE_CQ_H

#include "roce.h"

unsigned int roce_cq_poll(struct roce_iface *r);
/** End messages of @p chan that are complete: call their completions, check flushes. */
void roce_chan_done(struct roce_chan *chan);
/**
 * End requests that the device will not complete, from number @p from on, with the lane_ep's
 * status, or -ECANCELED if it has none. This has no effect while the device still has requests
 * before @p from.
 */
void roce_chan_abandon(struct roce_chan *chan, uint32_t from);

int roce_srq_open(struct roce_iface *r, char *why, size_t why_len);
/** Post buffers until all promised windows are covered, as far as memory allows. */
void roce_srq_fill(struct roce_iface *r);
/**
 * Post buffers until all promised windows are covered, and allocate the missing ones.
 * @return 0, or a negative error: the last window cannot be promised
 */
int roce_srq_cover(struct roce_iface *r);
void roce_release(struct weft_lane_iface *iface, void *desc);

void roce_acks_send(struct roce_iface *r);
/** @return number of new counts */
unsigned int roce_words_read(struct roce_iface *r);
struct roce_chan *roce_chan_find(const struct roce_iface *r, uint32_t qpn);
int roce_chan_enter(struct roce_iface *r, struct roce_chan *chan);
void roce_chan_leave(struct roce_iface *r, struct roce_chan *chan);

/** ns at most until a sleeping owner checks peers' counts, and connections that begin or end */
#define ROCE_LOOK_MAX_NS 1000000u
/** ns at most until a sleeping owner checks the device's events */
#define ROCE_ASLEEP_NS 100000000u
/** A thread that waits for completions yields its core after this number of polls. */
#define ROCE_POLLS_YIELD 64u

void roce_notify_open(struct roce_notify *n, struct ibv_context *ctx);
/** The completion queue must have been destroyed. */
void roce_notify_close(struct roce_notify *n);
/** @return the descriptor that is readable after a notification; -ENOTSUP: there is no channel */
int roce_notify_fd(const struct roce_notify *n);
/**
 * Request a notification of the next completion. @p empties: polls that left the queue empty.
 * @return 0, or -EBUSY: poll the queue once more
 */
int roce_notify_arm(struct roce_notify *n, struct ibv_cq *cq, uint64_t empties);
void roce_notify_taken(struct roce_notify *n);

static inline void roce_due_within(uint64_t now, uint64_t *due, uint64_t ns)
{
	if (now + ns < *due)
		*due = now + ns;
}

/* Members of weft_lane_ops. */
int roce_wait_fd(struct weft_lane_iface *base);
int roce_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns);
void roce_disarm(struct weft_lane_iface *base);
/** A message or completion has arrived: check counts soon, as more may follow. */
void roce_look_soon(struct roce_iface *r);

#endif /* WEFT_ROCE_CQ_H */
