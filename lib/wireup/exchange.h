/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/exchange.h
 * The exchange of wire-up messages between two endpoints: messages of both ends, repetition,
 * refusals, time; its first request (wireup/connect.c) and its end (wireup/close.c).
 */
#ifndef WEFT_WIREUP_EXCHANGE_H
#define WEFT_WIREUP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "wireup/state.h"

struct weft_peer;

void weft_wireup_timer(struct weft_ep *ep);
/** Destroy every connection of the ep and its connecting state. */
void weft_wireup_drop(struct weft_ep *ep);
/** Send CLOSE, or CLOSING, over a lane. @return as weft_wireup_send(), or -ENOTCONN */
int weft_wireup_send_close(struct weft_ep *ep, enum weft_wireup_type type);
/** Notify the peer, best effort, that the endpoint failed. */
void weft_wireup_send_failed(struct weft_ep *ep, int status, const char *text);

void weft_wireup_bad(struct weft_worker *w, struct weft_lane_ep *lane_ep, const char *why);
void weft_wireup_refuse(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			const struct weft_wire_wireup *req, int status, const char *text);
/** Refuse a REQ with ESTALE: its conn_sn is used already. The reply contains a free one. */
void weft_wireup_refuse_stale(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			      const struct weft_wire_wireup *req, const struct weft_peer *peer,
			      const char *text);
/**
 * A message over @p lane_ep has had no effect. If the connection is a control channel and belongs
 * to no endpoint, it is destroyed.
 */
void weft_wireup_unwanted(struct weft_worker *w, struct weft_lane_ep *lane_ep);
/** @return NULL: no memory */
struct weft_wireup *weft_wireup_new(struct weft_ep *ep, const struct weft_address *remote);
/** Destroy what two crossing REQs left: wireup->redundant, deferred_lane_ep and deferred. */
void weft_wireup_drop_extra(struct weft_ep *ep);
/** If nothing is left to do, free the connecting state; with too few lanes let the ep fail. */
void weft_wireup_finalize(struct weft_ep *ep);
/** Send wireup->msg as @p type, and repeat it until there is a reply. ACK is sent once. */
void weft_wireup_send_new(struct weft_ep *ep, enum weft_wireup_type type);
void weft_wireup_resend(struct weft_ep *ep);
void weft_wireup_add_model(struct weft_ep *ep, struct weft_records *r);
/** Set ep->bcopy_bw to the smaller copy rate of the two ends. */
void weft_wireup_agree_model(struct weft_ep *ep, const struct weft_wireup_msg *m);
/** Make wireup->credit_out, the peer's first credit; later calls have no effect. */
void weft_wireup_grant(struct weft_ep *ep);
/** Responder: the initiator has the REP, so the endpoint is established. */
void weft_wireup_confirm(struct weft_ep *ep);
void weft_wireup_rep(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
		     const struct weft_wireup_msg *m);
void weft_wireup_ack(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
		     const struct weft_wireup_msg *m);

/** A message has arrived over lane 0, after an exchange over a control channel. */
void weft_wireup_linked(struct weft_ep *ep);

/* ------------------------------------------------------------------ wireup/connect.c */

/** @p learn: @p remote follows from a boot address. After an error the caller releases the ep. */
int weft_wireup_start(struct weft_ep *ep, const struct weft_address *remote, bool learn);
/** Initiator: the connection is up: send WEFT_WIREUP_WHO or REQ over it. */
void weft_wireup_boot_up(struct weft_ep *ep);
/**
 * Initiator: it cannot connect over the current pair: accept a REQ that crossed, or try another
 * pair. @p definite: false if only a timeout has expired
 */
void weft_wireup_boot_failed(struct weft_ep *ep, bool definite);
/**
 * Connect again from the first pair on, as the initiator: a claimed responder has lost its
 * initiator, or the address that an initiator requested does not have the connected pair.
 */
void weft_wireup_restart(struct weft_ep *ep);
void weft_wireup_req(struct weft_worker *w, struct weft_lane_ep *lane_ep,
		     const struct weft_wireup_msg *m, const void *records, size_t len);

/* ------------------------------------------------------------------ wireup/close.c */

/** An ep that is being closed is up now, or its timer has expired: go on with the close. */
void weft_ep_closing_step(struct weft_ep *ep);
/** A lane has died: other lanes send its messages, so they must be flushed again. */
void weft_ep_closing_lanes(struct weft_ep *ep);
/** The ep that is being closed is retired: complete its close request with @p status. */
void weft_ep_closing_end(struct weft_ep *ep, int status);
/** @return status of the close if the ep ends now with @p status: 0 if messages are flushed */
int weft_ep_closing_status(const struct weft_ep *ep, int status);

#endif /* WEFT_WIREUP_EXCHANGE_H */
