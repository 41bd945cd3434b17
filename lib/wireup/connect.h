/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/connect.h
 * The first request between two endpoints: the initiator's pairs of interfaces, and the responder's
 * handling of a REQ.
 */
#ifndef WEFT_WIREUP_CONNECT_H
#define WEFT_WIREUP_CONNECT_H

#include <stdbool.h>
#include <stddef.h>

struct weft_address;
struct weft_ep;
struct weft_lane_ep;
struct weft_wireup_msg;
struct weft_worker;

/**
 * Start connecting: @p remote is the peer's address; with @p learn it follows from the boot
 * address. @return 0 or an error, after which the caller must release the ep
 */
int weft_wireup_start(struct weft_ep *ep, const struct weft_address *remote, bool learn);
/** Initiator: its connection is up. */
void weft_wireup_boot_up(struct weft_ep *ep);
/**
 * Initiator: its connection is lost before the REP. @p definite: the lane reported it; else there
 * was no reply in time
 */
void weft_wireup_boot_failed(struct weft_ep *ep, bool definite);
/**
 * A responder that lost its initiator, and that the application has claimed, becomes the initiator.
 */
void weft_wireup_restart(struct weft_ep *ep);
void weft_wireup_req(struct weft_worker *w, struct weft_lane_ep *lane_ep,
		     const struct weft_wireup_msg *m, const void *records, size_t len);

#endif /* WEFT_WIREUP_CONNECT_H */
