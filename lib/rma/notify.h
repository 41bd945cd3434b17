/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rma/notify.h
 * Puts that notify their target, at both ends.
 */
#ifndef WEFT_RMA_NOTIFY_H
#define WEFT_RMA_NOTIFY_H

#include <stddef.h>

struct weft_ext;
struct weft_msg_ep;
struct weft_request;
struct weft_rma;
struct weft_wire_put_note;

/** The put begins. */
void weft_rma_note_begin(struct weft_request *req);
/** As weft_rma_put_step(). */
int weft_rma_note_step(struct weft_request *req);
void weft_rma_recv_put_note(struct weft_msg_ep *me, const struct weft_wire_put_note *n,
			    size_t payload, const struct weft_ext *x);
/** The endpoint has failed: incomplete puts will not become complete. */
void weft_rma_note_drop(struct weft_rma *rma);

#endif /* WEFT_RMA_NOTIFY_H */
