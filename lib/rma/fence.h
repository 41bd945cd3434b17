/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rma/fence.h
 * Order among operations on remote memory: confirmation, fences, what a flush waits for; the limit
 * of a worker's outstanding gets; and puts that notify their target when all bytes have arrived.
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

/** Must the operation wait for those before a fence, or a put that notifies for earlier ones? */
bool weft_rma_blocked(const struct weft_request *req);
/** May the endpoint's next operation start? If not, and none is running, request confirmation. */
bool weft_rma_may_start(struct weft_request *req);
/** Request confirmation of the first @p count PUT and counted AMO messages of the endpoint. */
void weft_rma_want(struct weft_msg_ep *me, uint64_t count);
void weft_rma_flush_send(struct weft_msg_ep *me);
void weft_rma_recv_flushed(struct weft_msg_ep *me, const void *data, size_t payload);
/** A NAK has come: an RMA_FLUSHED may take effect now. */
void weft_rma_nak_counted(struct weft_msg_ep *me);
void weft_rma_moved(struct weft_msg_ep *me);
/**
 * Flush: are all messages confirmed that were sent before the first call? If not, request it.
 * @param[in,out] count  0 at the first call, which sets the number of these messages
 */
bool weft_rma_flushed(struct weft_msg_ep *me, uint64_t *count);
/** At least one operation from @p first to @p last (op_sn) has failed: a flush reports it. */
void weft_rma_error(struct weft_rma *rma, uint64_t first, uint64_t last, int status);
/**
 * The error that a flush reports: of operations before @p op_sn, or 0. An error is removed, unless
 * its range of operations continues at @p op_sn.
 */
int weft_rma_take_status(struct weft_msg_ep *me, uint64_t op_sn);

/* ------------------------------------------------------------------ gets outstanding */

/** Set the operation's part of weft_rma.open: @p left requested bytes have not come. */
void weft_rma_set_pieces(struct weft_request *req, uint64_t left);
/** If there is no room, the refusal is counted, and the endpoint continues later. */
bool weft_rma_gets_room(struct weft_msg_ep *me);
void weft_rma_gets_take(struct weft_msg_ep *me, uint32_t pieces);
/** @p pieces have come, or (@p good false) will not come. */
void weft_rma_gets_done(struct weft_msg_ep *me, uint32_t pieces, bool good);
void weft_rma_gets_look(struct weft_msg_worker *mw);
void weft_rma_gets_leave(struct weft_msg_ep *me);

/* ------------------------------------------------------------------ notifying puts */

/** Number a put that notifies. Once per WEFT_WIRE_NOTES / 4 of them, request confirmation. */
void weft_rma_note_begin(struct weft_request *req);
/** weft_rma_put_step() for a put that notifies. */
int weft_rma_note_step(struct weft_request *req);
void weft_rma_recv_put_note(struct weft_msg_ep *me, const struct weft_wire_put_note *n,
			    size_t payload, const struct weft_ext *x);
/** The endpoint has failed, or ends: free the state of the peer's incomplete puts. */
void weft_rma_note_drop(struct weft_rma *rma);

#endif /* WEFT_RMA_FENCE_H */
