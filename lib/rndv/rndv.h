/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rndv/rndv.h
 * The data of a message whose receiver is asked first, whatever space it belongs to: tags, active
 * messages. How the two find each other is not its business.
 *
 *	a space (tags, active messages)                  rendezvous (this file)
 *	RTS of its own, which carries an *offer*         weft_rndv_offer(), weft_rndv_offered()
 *	the receiver knows where the data shall go       weft_rndv_fetch()
 *	or does not want it                              weft_rndv_refuse()
 *	the receive request ends                         weft_recv_done()
 *
 * Files: rndv/send.c answers (pulls, RTR, ATS), rndv/recv.c fetches, rndv/pull.c decides which
 * bytes are asked for next and over which lane.
 *
 * A fetch takes one of three ways, by what the offer allows and WEFT_RNDV_SCHEME wants:
 *  - get: bytes are asked for in pieces, a few per lane at a time. A lane that reads remote memory
 *    itself does (the offer had a key for it), on any other the sender is asked (PULL) and answers
 *    with DATA on that lane. What is outstanding is bounded per lane and per worker, so the
 *    receiver is in control however many send to it;
 *  - put: RTR with keys, the sender writes and says so (PUT_DONE), over lanes that can't it sends
 *    DATA;
 *  - am: RTR, the sender sends DATA as its lanes take it.
 * ATS ends each of them, at the sender.
 */
#ifndef WEFT_RNDV_H
#define WEFT_RNDV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/config.h"
#include "core/core.h"
#include "base/interval.h"
#include "lane.h"
#include "base/rate.h"
#include "core/wire.h"

struct weft_ask;
struct weft_fetch;
struct weft_proto;
struct weft_mem;
struct weft_msg_ep;
struct weft_msg_worker;
struct weft_request;

/** Pulls of one peer that may wait for their lanes here. Ours ask for far less. */
#define WEFT_RNDV_PULLS_MAX 1024u

/* ------------------------------------------------------------------ offers */

/** What an RTS says about the data; kept while nobody has asked for the message. */
struct weft_rndv_offer {
	struct weft_wire_ref sreq;
	uint32_t flags;  /**< WEFT_RTS_F_* */
	uint32_t lanes;  /**< lanes that there are keys for */
	uint64_t offset; /**< of the data from the start of the registration */
	uint64_t key[WEFT_MAX_LANES];
};

/** Most bytes of records that weft_rndv_offer() writes. */
#define WEFT_RNDV_RECORDS_MAX                                              \
	(sizeof(struct weft_wire_record) + sizeof(struct weft_wire_keys) + \
	 WEFT_MAX_LANES * sizeof(struct weft_wire_key))

/**
 * The sender's RTS, of whatever space, is being written: what may the receiver do?
 * @param flags    for its flags field
 * @param records  WEFT_RNDV_RECORDS_MAX bytes, to follow the RTS
 * @return bytes of records
 */
size_t weft_rndv_offer(struct weft_request *req, weft_le32 *flags, void *records);

/**
 * A lane has taken the RTS: from now on the peer may name the request, until ATS. The request
 * waits (WEFT_REQ_WAIT_ACK).
 */
void weft_rndv_offered(struct weft_request *req);

/** Read an offer out of an RTS that has passed the gate. Without keys it is small: see flags. */
void weft_rndv_offer_read(struct weft_rndv_offer *offer, struct weft_wire_ref sreq, weft_le32 flags,
			  const void *records, size_t length);

/* ------------------------------------------------------------------ receiver */

/**
 * Get the @c req->length bytes of an offer to where @c req->dt says, or those that have room there.
 * Requests that have failed already (status), and empty messages, take nothing: the sender is told
 * that it may finish.
 * @param now  see weft_recv_done(), which ends it
 */
void weft_rndv_fetch(struct weft_msg_ep *me, struct weft_request *req,
		     const struct weft_rndv_offer *offer, bool now);

/** The data is not wanted, or (@p status) cannot be. */
void weft_rndv_refuse(struct weft_msg_ep *me, struct weft_wire_ref sreq, int status);

/** The endpoint has failed: the fetch ends with @p status; the request is in no list any more. */
void weft_rndv_fetch_fail(struct weft_request *req, int status);

/* ------------------------------------------------------------------ what comes (tag/recv.c) */

void weft_rndv_recv_rtr(struct weft_msg_ep *me, const struct weft_wire_rtr *rtr, size_t length);
void weft_rndv_recv_pull(struct weft_msg_ep *me, const struct weft_wire_pull *pull);
void weft_rndv_recv_data(struct weft_msg_ep *me, const struct weft_wire_data *hdr, size_t length);
void weft_rndv_recv_put_done(struct weft_msg_ep *me, const struct weft_wire_put_done *done);
void weft_rndv_recv_abort(struct weft_msg_ep *me, const struct weft_wire_abort *abort);
void weft_rndv_recv_ats(struct weft_msg_ep *me, uint8_t id, const struct weft_wire_ats *ats);
void weft_rndv_send_ats(struct weft_msg_ep *me, uint8_t id, struct weft_wire_ref sreq, int status);

/* ------------------------------------------------------------------ at work */

/** Rendezvous state of one lane of an endpoint: in struct weft_msg_ep, by lane. */
struct weft_rndv_lane {
	STAILQ_HEAD(, weft_pull) pulls; /**< asked for over this lane, in order */
};

/** Registered memory of [buf, buf + len) and its keys (rndv/keys.c). */

/**
 * Describe memory to the peer: for each lane of @p lanes that has a key for it, in a record.
 * @return bytes written to @p record, 0 = no lane has
 */
size_t weft_rndv_keys_write(const struct weft_msg_ep *me, uint32_t lanes,
			    const struct weft_mem *mem, const void *buf, void *record);
/** Find and read the KEYS record among records that have passed the gate. */
void weft_rndv_keys_read(struct weft_rndv_offer *offer, const void *records, size_t length);
/** Lanes of @p me that rendezvous may use and that read (@p put: write) remote memory. */
uint32_t weft_rndv_native_lanes(const struct weft_msg_ep *me, bool put);

/** Sender: hand over what RTR asked for. @return 0 all handed over, -EAGAIN, or the pack error */
int weft_rndv_data_progress(struct weft_request *req);
/** Sender: hand over what was pulled, as far as the lanes take it. @return pieces handed over */
unsigned int weft_rndv_serve(struct weft_msg_ep *me);
/**
 * Sender: the peer needs its keys no more; @p dead: it may still use them, and shall not. Again: no
 * effect.
 */
void weft_rndv_withdraw_keys(struct weft_request *req, bool dead);
/** Sender: the request ends: nothing of it waits any more. */
void weft_rndv_send_end(struct weft_request *req);

/*
 * Receiver: begin to get the data of a matched receive, by its fetch: what the protocols of
 * WEFT_OP_RNDV_DATA do.
 * @return 0
 */
int weft_rndv_begin_get(struct weft_request *req);
int weft_rndv_begin_pull(struct weft_request *req);
int weft_rndv_begin_put(struct weft_request *req);
int weft_rndv_begin_am(struct weft_request *req);
/* And their reset(). */
int weft_rndv_reset_get(struct weft_request *req);
int weft_rndv_reset_pull(struct weft_request *req);
/** The endpoint's protocols are others now: fetches are given to reset(). */
void weft_rndv_reset(struct weft_msg_ep *me);

/** Receiver: this fetch has something to ask for. */
void weft_rndv_pull_add(struct weft_fetch *f);
/** Receiver: there may be room to ask for more. @return pieces asked for */
unsigned int weft_rndv_pump(struct weft_msg_worker *mw);
/** Have bytes [off, off + len) been asked for? */
bool weft_rndv_pull_asked(struct weft_fetch *f, uint64_t off, uint64_t len);
/** They have come, for the first time. @return with them all that one PULL asked for has */
bool weft_rndv_pull_came(struct weft_fetch *f, uint64_t off, uint64_t len);
/** Receiver: read a->left bytes at a->offset over its lane. @return 0, -EAGAIN, or a refusal */
int weft_rndv_native_read(struct weft_fetch *f, struct weft_ask *a);
/** Receiver: a native read has ended: the bytes are there, or (if still wanted) asked for anew. */
void weft_rndv_pull_read(struct weft_ask *a, bool good);
/** Receiver: a piece of a fetch is in its place. It may have been the last. */
void weft_rndv_fetch_progress(struct weft_fetch *f);
/** Receiver: the last native read of a fetch that is over has ended. */
void weft_rndv_fetch_reads_over(struct weft_fetch *f);
/** The fetch is over: nothing is outstanding any more, except native reads (f->reads). */
void weft_rndv_pull_end(struct weft_fetch *f);

/** Bytes of a native write at @p off: at most @p max and a share of the lane's window, well cut. */
size_t weft_rndv_piece(const struct weft_msg_ep *me, unsigned int lane, uint64_t off, uint64_t rest,
		       size_t max);

void weft_rndv_ep_init(struct weft_msg_ep *me);
/** Its lanes are up, or others than before. */
void weft_rndv_ep_lanes(struct weft_msg_ep *me);
void weft_rndv_ep_fail(struct weft_msg_ep *me);
/** The same of the sender's half. */
void weft_rndv_send_ep_lanes(struct weft_msg_ep *me);
void weft_rndv_worker_init(struct weft_msg_worker *mw);
void weft_rndv_worker_fini(struct weft_msg_worker *mw);

/* ------------------------------------------------------------------ inside */

/** Sender: a stretch that was asked for. */
struct weft_pull {
	STAILQ_ENTRY(weft_pull) link;
	struct weft_request *req;
	uint64_t offset, end; /**< next byte, and where to stop */
};

/** Receiver: a stretch that was asked for, over one lane. */
struct weft_ask {
	TAILQ_ENTRY(weft_ask) link; /**< of its fetch: asks, or again */
	struct weft_lane_comp comp; /**< native read */
	struct weft_fetch *fetch;
	uint64_t offset, end;
	uint64_t left;  /**< bytes of it that have not come */
	uint64_t given; /**< when it was asked for, ns */
	uint8_t lane;
	bool native;
};

TAILQ_HEAD(weft_asks, weft_ask);

/** A native operation under way: a put, a get, an atomic, a rendezvous' write (msg/stripe.h). */
struct weft_native {
	SLIST_ENTRY(weft_native) link;
	struct weft_lane_comp comp;
	struct weft_request *req;
	uint64_t offset, length;
	uint64_t given; /**< ns */
	uint8_t lane;
	uint8_t dir; /**< enum weft_dir */
};

/** Receiver: a message on its way. */
struct weft_fetch {
	TAILQ_ENTRY(weft_fetch) link; /**< of me->fetches, while something is left to ask for */
	struct weft_request *req;
	struct weft_msg_ep *me;
	struct weft_ivals got;
	uint64_t length;       /**< bytes that are wanted: the message's, as far as there is room */
	uint64_t next;         /**< first byte that was never asked for */
	struct weft_asks asks; /**< under way */
	struct weft_asks again; /**< to be asked for once more: a native read was refused */
	uint32_t reads;         /**< native reads under way */
	const struct weft_proto *proto;
	bool pulled;  /**< bytes are asked for piece by piece; else all by RTR */
	bool written; /**< the RTR had keys */
	bool queued;  /**< in me->fetches */
	bool over;    /**< waits for native reads only */
	int status;
	struct weft_mem *mem; /**< of the receive buffer, for native reads and puts, or NULL */
	uint32_t native;      /**< lanes that read by themselves */
	struct weft_rndv_offer offer;
};

TAILQ_HEAD(weft_fetches, weft_fetch);

#endif /* WEFT_RNDV_H */
