/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/send.h
 * Sending: the queues of an endpoint, order, and the sequence numbers and credit that a send takes.
 */
#ifndef WEFT_MSG_SEND_H
#define WEFT_MSG_SEND_H

#include "msg/state.h"

/** The endpoint has something to send: the next progress serves it, if its lanes are up. */
void weft_tx_kick(struct weft_msg_ep *me);
/**
 * There is no credit for an eager message: announce it, which takes only a message credit.
 * @return as progress(). -EAGAIN: there is no message credit either, or the message must not be
 * announced; -EMSGSIZE: it must not be announced, and the peer never allows its length
 */
int weft_tx_uncredited(struct weft_request *req);
/**
 * Should the message be announced, though there is credit to send it at once? Yes if other senders
 * wait for the peer's port, or if the lanes allow so few bytes in flight that announcing takes
 * hardly longer: the receiver then schedules the senders. Yes also if the peer was late and can
 * read the message from this memory, or if this is faster because several messages are under way.
 * No if WEFT_RNDV_THRESH is a number or inf, or if there is no protocol or credit to announce it.
 */
bool weft_tx_contended(const struct weft_request *req);
/** Announce the message. @return as progress() */
int weft_tx_announce(struct weft_request *req);
/** The endpoint's protocols have changed: call reset() of pending sends that have begun. */
void weft_tx_reset(struct weft_msg_ep *me);
/** Set again which messages may be sent without a request: me->short_end, me->copied_end. */
void weft_tx_update(struct weft_msg_ep *me);
/**
 * Queue a new send, or send it at once where possible. @return 0 it is over and freed,
 * WEFT_INPROGRESS, or an error (freed)
 */
int weft_tx_start(struct weft_request *req);
/**
 * The call that has started the request cannot go on: undo it. @return false: too late, a part or
 * all of the message has been sent
 */
bool weft_tx_undo(struct weft_request *req);
/** Serve the endpoint's queues. @return events */
unsigned int weft_tx_service(struct weft_msg_ep *me);
/**
 * Apply WEFT_OP_F_INJECT and WEFT_OP_F_DELIVERED. @return 0; -EMSGSIZE: more than WEFT_INJECT_MAX
 * bytes to inject; -ENOMEM; or the error of weft_send_keep(), of a generic type
 */
int weft_send_flags(struct weft_request *req, uint32_t flags);
/**
 * Set the memory of a send, or of a read: its datatype, and the registration that the user passes
 * with it. @return 0, or the error of weft_dt_init() or weft_send_flags(): drop the request
 */
static inline int weft_send_data(struct weft_request *req, const struct weft_op_params *params,
				 const void *buffer, size_t count, bool unpack)
{
	int rc = weft_dt_init(&req->dt, params ? params->datatype : NULL, buffer, count, unpack);

	req->send.mem = NULL;
	req->send.inject = NULL;
	if (rc == 0 && params && (params->flags & (WEFT_OP_F_INJECT | WEFT_OP_F_DELIVERED)))
		rc = weft_send_flags(req, params->flags);
	if (rc == 0 && params && params->mem && !(req->flags & WEFT_REQ_INJECT)) {
		req->send.mem = params->mem;
		params->mem->refs++;
	}
	return rc;
}
/**
 * The request continues after the call that has the user's buffer: with WEFT_REQ_INJECT copy all
 * the data; otherwise no effect.
 * @return 0, or the error of packing, which only generic types have
 */
int weft_send_keep(struct weft_request *req);
/** weft_request_ops.release() of a send; the release() of a module's sends calls it. */
void weft_send_release(struct weft_request *req);
/**
 * Take back the keys that the peer has (WEFT_REQ_KEYS). @p dead: the peer has not sent ATS, and
 * may still use the keys; those of a registration by the user become invalid here
 * (weft_mem_unexport()). A second call has no effect.
 */
void weft_send_withdraw_keys(struct weft_request *req, bool dead);
/** Complete a send if it is over. */
void weft_send_check(struct weft_request *req);
/**
 * Cancel a send. @return 0: it has ended, or will end when the receiver replies; -EBUSY: too late,
 * or of a kind that cannot be cancelled
 */
int weft_send_cancel(struct weft_request *req);
/** The send ends early with an error: call its protocol's abort(). */
void weft_send_abort(struct weft_request *req, int status);
/**
 * Notify the peer that the rest of the message will not come. @param rreq  the receiver's request,
 * if it has requested the data; else {0, 0}
 */
void weft_tx_abort(struct weft_request *req, struct weft_wire_ref rreq, int status);
/**
 * The endpoint has failed: drop control messages, and end all sends. A send that a lane still holds
 * ends with its completion.
 */
void weft_tx_fail(struct weft_msg_ep *me, int status);

/** Has the peer allowed a further sequence number for messages of this class? */
static inline bool weft_tx_has_seq(const struct weft_request *req)
{
	const struct weft_msg_ep *me = req->me;

	return req->flags & WEFT_REQ_AM ? me->tx_am_seq != me->tx_am_seq_end
					: me->tx_seq != me->tx_seq_end;
}
/** May one more message be announced, or (up to WEFT_EAGER_FREE) sent? */
static inline bool weft_tx_has_small(const struct weft_msg_ep *me)
{
	return me->tx_small != me->tx_small_end;
}
/** Is there credit to send a message of @p length bytes whole or in pieces? */
static inline bool weft_tx_has_credit(const struct weft_msg_ep *me, size_t length)
{
	if (length <= WEFT_EAGER_FREE)
		return weft_tx_has_small(me);
	return length <= me->tx_credit - me->tx_used;
}
/** A lane has its first piece, or (@p eager false) its RTS: take sequence number and credit. */
static inline void weft_tx_take_seq(struct weft_request *req, bool eager)
{
	req->send.seq = req->flags & WEFT_REQ_AM ? req->me->tx_am_seq++ : req->me->tx_seq++;
	req->flags |= WEFT_REQ_STARTED;
	if (eager && req->length > WEFT_EAGER_FREE)
		req->me->tx_used += req->length;
	else
		req->me->tx_small++;
}

#endif /* WEFT_MSG_SEND_H */
