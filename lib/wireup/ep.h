/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/ep.h
 * Endpoints as the user sees them: creation and failure; their tables by slot and by time.
 */
#ifndef WEFT_WIREUP_EP_H
#define WEFT_WIREUP_EP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/wire.h"

struct weft_ep;
struct weft_peer;
struct weft_worker;

/** @return NULL: no memory, or no random number for its secret */
struct weft_ep *weft_ep_alloc(struct weft_worker *worker, struct weft_peer *peer, uint32_t conn_sn,
			      bool owned);
/** Remove @p ep from all tables, destroy its connections, end its messages; free @p ep later. */
void weft_ep_retire(struct weft_ep *ep, int status);
/** The worker is being destroyed: the ep ends with -ECANCELED, and so does its close. */
void weft_ep_close_now(struct weft_ep *ep);
/**
 * The peer has closed or is gone. The ep fails if the application owns it and has not closed it.
 * Otherwise the ep is retired, and its close ends with 0.
 */
void weft_ep_remote_closed(struct weft_ep *ep, const char *text);
/**
 * A lane in use has failed. The ep fails, too, unless it is closing, all its messages are delivered
 * and @p status is -ECONNRESET: then it ends as in weft_ep_remote_closed().
 */
void weft_ep_lane_down(struct weft_ep *ep, int status, const char *text);
struct weft_ep *weft_ep_of_ref(const struct weft_worker *worker, struct weft_wire_ref ref);
/** Set the ep's timer to @p when, unless it is set to an earlier time. A past time means now. */
void weft_ep_timer_at(struct weft_ep *ep, uint64_t when);
void weft_ep_fail(struct weft_ep *ep, int status, const char *why_fmt, ...)
	__attribute__((format(printf, 3, 4)));
/** weft_ep_events.fail(): the ep fails. The peer is notified, unless @p status is -ECONNRESET. */
void weft_ep_fail_text(struct weft_ep *ep, int status, const char *why);
void weft_ep_fail_later(struct weft_ep *ep, int status, const char *why);

#endif /* WEFT_WIREUP_EP_H */
