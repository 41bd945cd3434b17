/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rma/fence.h
 * Order among operations on remote memory: confirmation, fences, the part of a flush; the number of
 * outstanding gets of a worker; and puts that notify their target, when all bytes have arrived.
 */
#ifndef WEFT_RMA_FENCE_H
#define WEFT_RMA_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_msg_ep;
struct weft_msg_worker;
struct weft_request;
struct weft_rma;
struct weft_ext;
struct weft_wire_put_note;

/** Must the operation wait for operations before a fence? */
bool weft_rma_blocked(const struct weft_request *req);
/** May the endpoint's next operation start? If not, the missing confirmation is requested. */
bool weft_rma_may_start(struct weft_request *req);
/** Request that @p count messages are confirmed. */
void weft_rma_want(struct weft_msg_ep *me, uint64_t count);
void weft_rma_flush_send(struct weft_msg_ep *me);
void weft_rma_recv_flushed(struct weft_msg_ep *me, const void *data, size_t payload);
/** A NAK has come: an RMA_FLUSHED may take effect now. */
void weft_rma_nak_counted(struct weft_msg_ep *me);
/** An operation has ended, or is confirmed: others may continue. */
void weft_rma_moved(struct weft_msg_ep *me);
/** Flush: is everything confirmed? @p count is 0 at first, and preserved between calls. */
bool weft_rma_flushed(struct weft_msg_ep *me, uint64_t *count);
/** At least one operation from @p first to @p last has failed, and no request can report it. */
void weft_rma_error(struct weft_rma *rma, uint64_t first, uint64_t last, int status);
/** The error that flush reports, once: of operations before @p op_sn. */
int weft_rma_take_status(struct weft_msg_ep *me, uint64_t op_sn);

/* ------------------------------------------------------------------ gets outstanding */

/** Set the pieces of the window that the operation uses: @p left requested bytes have not come. */
void weft_rma_set_pieces(struct weft_request *req, uint64_t left);
/**
 * May this endpoint request one more piece? If not, the refusal is counted, and the endpoint
 * continues when there is room.
 */
bool weft_rma_gets_room(struct weft_msg_ep *me);
/** Count @p pieces more as outstanding. */
void weft_rma_gets_take(struct weft_msg_ep *me, uint32_t pieces);
/** @p pieces have come, or (@p good false) will not come. */
void weft_rma_gets_done(struct weft_msg_ep *me, uint32_t pieces, bool good);
/** If there is room, let waiting endpoints continue. */
void weft_rma_gets_look(struct weft_msg_worker *mw);
/** Remove the endpoint from those that wait for room. */
void weft_rma_gets_leave(struct weft_msg_ep *me);

/* ------------------------------------------------------------------ notifying puts */

/** Number a put with a notification, and request a flush once per WEFT_WIRE_NOTES / 4 of them. */
void weft_rma_note_begin(struct weft_request *req);
/** As weft_rma_put_step(). */
int weft_rma_note_step(struct weft_request *req);
void weft_rma_recv_put_note(struct weft_msg_ep *me, const struct weft_wire_put_note *n,
			    size_t payload, const struct weft_ext *x);
/** The endpoint has failed: incomplete puts will not become complete. */
void weft_rma_note_drop(struct weft_rma *rma);

#endif /* WEFT_RMA_FENCE_H */
