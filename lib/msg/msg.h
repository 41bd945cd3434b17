/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/msg.h
 * The message half's own objects: what it keeps per worker, per endpoint and per message that has
 * come.
 *
 *	tag/tag.c        the calls of weft.h
 *	msg/request.c    operations: life, references
 *	msg/send.c     send queues, order, service
 *	msg/piece.c   pieces onto lanes
 *	tag/recv.c     what arrives: sequence, reassembly
 *	tag/deliver.c       receives and the messages they get
 *	tag/unexpected.c    messages that are still coming or wait: memory, table by sequence
 *	proto_*.c    protocols
 *	rndv_*.c     rendezvous: the data of messages that ask first
 *	msg/credit.c     how much a peer may send unasked
 *	msg/flush.c      when everything is at the peer
 *
 * Callbacks of the user may close the endpoint whose message is being handled. A struct weft_msg_ep
 * therefore lives until nobody uses it (weft_msg_ep_hold/release); `ep` is NULL once the connection
 * half has let go.
 */
#ifndef WEFT_MSG_H
#define WEFT_MSG_H

#include "core/config.h"
#include "core/core.h"
#include "msg/credit.h"
#include "proto/ep_config.h"
#include "msg/lane_load.h"
#include "tag/match.h"
#include "proto/proto.h"
#include "msg/request.h"
#include "rndv/rndv.h"
#include "base/share.h"

/* ------------------------------------------------------------------ messages that have come */

/* Message flags. */
#define WEFT_MSG_AHEAD (1u << 0)  /**< waits for its turn in the sequence */
#define WEFT_MSG_QUEUED (1u << 1) /**< in the unexpected lists */
#define WEFT_MSG_PROBED (1u << 2) /**< taken out by a probe */
#define WEFT_MSG_HASHED \
	(1u << 3) /**< in its endpoint's table of messages that are not over (by sequence) */
#define WEFT_MSG_SYNC (1u << 4)  /**< the sender wants to know of the match */
#define WEFT_MSG_RTS (1u << 5)   /**< the data is still at the sender */
#define WEFT_MSG_ACKED (1u << 7) /**< it has been told */
#define WEFT_MSG_HELD \
	(1u << 6) /**< in the list of the endpoint, or of the worker, of probed and complete ones */

/**
 * A message between its first piece and its end, unless a receive was there and one piece was all:
 * such a message never gets one. This is also the `struct weft_message` of a matched probe.
 */
struct weft_message {
	struct weft_match_msg match;   /* tag, source */
	LIST_ENTRY(weft_message) link; /* HASHED or HELD */
	struct weft_msg_worker *mw;
	struct weft_msg_ep *me;    /* NULL = the endpoint is gone */
	struct weft_request *recv; /* the receive it is bound to */
	uint64_t total;
	uint64_t source_id; /* worker it comes from */
	uint8_t *data;      /* total bytes, or NULL: bound, RTS or empty */
	union {
		struct weft_ivals got;
		struct {
			struct weft_rndv_offer *keys; /* the offer, if it has keys; else NULL */
			uint32_t flags;
			bool withdrawn; /* waits for its turn, and is forgotten then */
		} rts;
	};
	struct weft_wire_ref sreq; /* SYNC, RTS: the sender's request */
	uint32_t seq;
	int16_t error; /* its sender, or its endpoint, failed: no more pieces */
	uint8_t flags;
	uint8_t slot; /* size class, for giving it back; a small payload follows */
};

LIST_HEAD(weft_message_list, weft_message);

static inline bool weft_message_complete(const struct weft_message *msg)
{
	return msg->error || (!(msg->flags & WEFT_MSG_RTS) && msg->got.covered == msg->total);
}

/** Payload sizes of the slots: steps small enough for payload x 1.1 + 256 bytes per message. */
#define WEFT_MSG_SLOTS 7

/** Memory of messages: slots of a few sizes out of large chunks; longer payloads are malloc()ed. */
struct weft_message_pool {
	struct weft_message *free[WEFT_MSG_SLOTS]; /* by link.le_next */
	void *chunks;
	uint64_t bytes; /* payload kept now */
	uint64_t bytes_peak;
	uint64_t num;        /* messages kept now, envelopes alone included */
	uint64_t slot_bytes; /* memory in chunks */
};

/**
 * A message for @p total bytes; with @p with_data there is room for them. Flags, references and
 * links are clear. @return NULL = no memory
 */
struct weft_message *weft_message_alloc(struct weft_msg_worker *mw, struct weft_msg_ep *me,
					uint64_t total, bool with_data);
/** Free the payload only: it has been copied, the rest goes elsewhere. */
void weft_message_free_data(struct weft_message *msg);
void weft_message_free(struct weft_message *msg);
/** It is an RTS: keep what it offers. */
void weft_message_set_offer(struct weft_message *msg, const struct weft_rndv_offer *offer);
void weft_message_get_offer(const struct weft_message *msg, struct weft_rndv_offer *offer);
void weft_message_pool_fini(struct weft_message_pool *pool);

/* Messages that have begun and are not over, by sequence. */

struct weft_message *weft_rx_lookup(const struct weft_msg_ep *me, uint32_t seq);
int weft_rx_hash(struct weft_msg_ep *me, struct weft_message *msg);
void weft_rx_unhash(struct weft_message *msg);
/**
 * Complete, and known to the user: in the list of its endpoint, or of the worker when that is gone.
 */
void weft_rx_hold_probed(struct weft_message *msg);
/** Out of all lists of the endpoint, and freed. */
void weft_rx_free(struct weft_message *msg);

/* ------------------------------------------------------------------ protocols */

extern const struct weft_proto weft_proto_eager_short;
extern const struct weft_proto weft_proto_eager_bcopy;
extern const struct weft_proto weft_proto_eager_zcopy;
extern const struct weft_proto weft_proto_multi_eager;
extern const struct weft_proto weft_proto_rndv_get;
extern const struct weft_proto weft_proto_rndv_pull;
extern const struct weft_proto weft_proto_rndv_put;
extern const struct weft_proto weft_proto_rndv_am;
extern const struct weft_proto weft_proto_data_get;
extern const struct weft_proto weft_proto_data_pull;
extern const struct weft_proto weft_proto_data_put;
extern const struct weft_proto weft_proto_data_am;
extern const struct weft_proto weft_proto_put_native;
extern const struct weft_proto weft_proto_put_am;
extern const struct weft_proto weft_proto_get_native;
extern const struct weft_proto weft_proto_get_am;
extern const struct weft_proto weft_proto_amo_native;
extern const struct weft_proto weft_proto_amo_am;

/**
 * The endpoint's lanes are known, or have changed: find the configuration for them, shared with
 * endpoints whose lanes are equal (proto/ep_config.c). Requests that have not begun are selected
 * anew by their next step.
 * @return 1 it is another one than before; 0; -ENOMEM
 */
int weft_proto_select_build(struct weft_msg_ep *me);

/** Sends without asking have failed: the peer, whose turn it is, shall not wait for the rest. */
void weft_eager_abort(struct weft_request *req, int status);

/* ------------------------------------------------------------------ endpoint */

/** With more control messages waiting than this a peer gets no credit for further messages. */
#define WEFT_CTL_HELD 256

/**
 * A control message that found no room: {id, bytes}. They are short, order does not matter to them.
 * A peer that takes none makes at most WEFT_CTL_HELD and two for each message that it may still
 * send: 2 * 2 * WEFT_SEQ_WINDOW.
 */
struct weft_ctl {
	STAILQ_ENTRY(weft_ctl) link;
	uint8_t id;
	int8_t lane; /* or WEFT_TX_ANY_LANE */
	uint16_t length;
	uint8_t data[];
};

/** What the striping looks at, per lane. */
struct weft_msg_lane {
	struct weft_lane_ep *lane_ep; /* NULL = not usable */
	uint32_t max_short;           /* header + payload, 0 = cannot */
	uint32_t max_bcopy;
	uint32_t max_zcopy;
	uint32_t max_zcopy_hdr;
	uint32_t max_get; /* native read and write, 0 = cannot */
	uint32_t max_put;
	uint32_t align;
	uint16_t max_iov;
	bool zcopy_any;       /* zcopy of memory that is not registered */
	uint64_t sent;        /* since the last look, headers included */
	uint32_t queued_seen; /* lane_ep->queued then */
	/* by enum weft_dir: what is sent and written; what is read and pulled */
	struct weft_lane_load load[2];
};

struct weft_msg_ep {
	/* line 0: the short send */
	struct weft_lane_ep *short_lane_ep;
	size_t short_end; /* messages shorter than this may go out at once */
	struct weft_ep_lane_info *short_count;
	uint32_t tx_seq;       /* of the next message */
	uint32_t tx_seq_end;   /* first one that the peer has not allowed */
	uint32_t tx_small;     /* messages that took a message credit (msg/credit.c); cumulative */
	uint32_t tx_small_end; /* and allowed */
	struct weft_ep *ep;    /* NULL = gone */
	struct weft_msg_worker *mw;
	uint32_t refs;
	bool failed;
	/* line 1: a message in sequence; then `source` */
	uint32_t rx_seq;      /* of the next message to match */
	uint32_t rx_seq_told; /* first sequence not allowed, as the peer knows it */
	uint32_t rx_open;     /* messages in rx_table */
	uint32_t rx_ahead;    /* those of them that wait for their turn */
	/* messages that take a message credit: come, allowed, told; cumulative. Their window */
	uint32_t rx_small, rx_small_allowed, rx_small_told, rx_small_window;
	uint64_t rx_used;    /* eager bytes of the messages that have begun to come; cumulative */
	uint64_t rx_allowed; /* what the peer could be told: window + bytes matched */
	uint64_t rx_told;    /* what it was told */
	uint64_t rx_window;
	struct weft_match_source source;
	/* receive, the rest */
	struct weft_message_list *rx_table; /* by sequence, lazily allocated */
	uint32_t rx_table_bits;
	uint64_t rx_low;       /* rx_used from which on the window is looked at */
	uint32_t rx_small_low; /* rx_small, the same */
	/* in what is coming, beyond the first of each message (base/interval.h) */
	uint32_t rx_islands;
	uint64_t rx_window_told;
	bool rx_shrunk;                  /* the window has: the peer is told how large it is */
	bool rx_torn;                    /* more than its share: fails soon, and counts no more */
	bool draining;                   /* in the worker's list */
	struct weft_requests rx_active;  /* matched receives whose data is coming */
	struct weft_message_list probed; /* complete and taken out by a probe */
	TAILQ_ENTRY(weft_msg_ep) drain_link;
	/* send, the rest */
	uint64_t tx_used, tx_credit;  /* eager bytes: sent, allowed; cumulative */
	uint64_t tx_window;           /* the peer's, or the most that were ever allowed at a time */
	struct weft_requests pending; /* not begun, or partly handed over: in order */
	struct weft_requests data;    /* rendezvous data to hand over, any order */
	struct weft_requests ops; /* every send that is not complete, in the order of the calls */
	/* but those that are with the lanes, and whose end is the peer's application's matter */
	struct weft_requests parked;
	STAILQ_HEAD(, weft_ctl) ctl;
	uint32_t num_ctl;
	STAILQ_HEAD(, weft_flush) flushes;
	TAILQ_ENTRY(weft_msg_ep) ready_link;
	uint64_t op_sn;
	bool ready;      /* in the worker's list of endpoints with something to send */
	bool up;         /* connected, lanes known */
	bool credit_due; /* a CREDIT message found no room */
	bool data_turn;  /* who goes first at the next service */
	bool closing;    /* nobody here will match any more */
	uint8_t am_lane;
	uint8_t last_lane[2]; /* by enum weft_dir: that got the last piece */
	uint16_t lanes_up;
	uint16_t tx_full;            /* lanes that were full and are measured */
	struct weft_msg_lane *lanes; /* ep->lane_room of them, once connected */
	/* rendezvous */
	struct weft_fetches fetches; /* those with something left to ask for, in order */
	uint64_t unasked;            /* how much */
	TAILQ_ENTRY(weft_msg_ep) fetching_link;
	struct weft_share_user pulls; /* bytes asked for */
	/* in which list of the worker's: of those that may ask, or that wait for room to */
	enum { WEFT_FETCHING_NOT, WEFT_FETCHING, WEFT_FETCHING_LATER } fetching;
	uint32_t num_pulls; /* the peer's, waiting */
	struct weft_rndv_lane rndv[WEFT_MAX_LANES];
	unsigned int forced;               /* weft_model_conf.forced */
	struct weft_am *am;                /* active messages that are ahead; NULL = never any */
	LIST_HEAD(, weft_am_data) am_kept; /* its messages that handlers have kept */
	uint32_t tx_am_seq, tx_am_seq_end, rx_am_seq, rx_am_told; /* as tx_seq, rx_seq of tags */
	struct weft_rma *rma;             /* remote memory; NULL = never used */
	uint32_t eager_lanes, rndv_lanes; /* lanes that multi-eager and rendezvous data may use */
	size_t zcopy_from;             /* pieces of this size go from user memory where they can */
	struct weft_ep_config *config; /* which protocol for what; NULL until there are lanes */
};

TAILQ_HEAD(weft_msg_eps, weft_msg_ep);

/** Waits until everything before it is at the peer (msg/flush.c). */
struct weft_flush {
	STAILQ_ENTRY(weft_flush) link;
	struct weft_msg_ep *me;
	uint64_t op_sn;     /* sends with a lower number must be over, or known to the peer */
	bool all;           /* the endpoint closes: over */
	uint64_t rma_count; /* puts and atomics that must be confirmed; 0 = not known yet */
	uint32_t lanes;     /* lanes that have not answered, + 1 while asking */
	int status;
	void (*done)(void *arg, int status);
	void *arg;
	struct weft_flush_lane {
		struct weft_lane_comp comp;
		struct weft_flush *flush;
	} lane[WEFT_MAX_LANES];
};

/* ------------------------------------------------------------------ worker */

struct weft_msg_conf {
	struct weft_model_conf model;
	size_t min_chunk;
	size_t unexp_limit, eager_credit;
	uint32_t seq_start;
	enum weft_rndv_scheme rndv_scheme;
	size_t rndv_min_piece, rndv_align;
	size_t rndv_window; /* asked for, per lane */
	size_t rndv_limit;  /* and per worker */
	uint32_t rma_max_gets;
	bool zcopy;
	bool atomic_device; /* atomics by the lanes only */
};

struct weft_msg_worker {
	struct weft_match match;
	struct weft_request_table reqs;
	struct weft_requests later; /* complete, callback at the next progress */
	struct weft_msg_eps ready;  /* something to send */
	struct weft_msg_eps drain;  /* messages that are in sequence now */
	struct weft_worker *worker;
	struct weft_message_pool messages;
	struct weft_message_list probed;    /* complete, taken out by a probe, endpoint gone */
	struct weft_msg_eps fetching;       /* may ask for more */
	struct weft_msg_eps fetching_later; /* when others have less */
	uint32_t num_later;                 /* endpoints there, and in rma.gets_waiting */
	struct weft_share pulls;            /* bytes asked for that have not come */
	STAILQ_HEAD(, weft_pull) free_pulls;
	struct weft_asks free_asks;
	struct weft_fetches free_fetches;
	SLIST_HEAD(, weft_native) free_natives;
	void *match_mem;
	struct weft_credit_pool credit_bytes, credit_msgs;
	uint32_t rx_islands; /* of all endpoints, those within the floors not counted */
	struct weft_msg_conf conf;
	struct weft_ep_configs configs;
	struct weft_am_table *am; /* handlers */
	LIST_HEAD(, weft_am_data) am_kept;
	uint32_t fence_sn, fence_done;  /* fences of the worker: called for, passed */
	uint32_t fence_holders;         /* endpoints that the next one waits for */
	LIST_HEAD(, weft_rma) rma_used; /* by operations, since a fence has looked last */
	bool fini;
	/* Remote memory: what peers did to ours, what we did, and what was refused. */
	struct {
		uint64_t puts, put_bytes, gets_served, get_bytes, amos;
		uint64_t native_bytes;
		uint64_t naks;    /* of ours, refused by peers */
		uint64_t bad_key; /* revoked, forged, foreign */
		uint64_t bad_rights;
		uint64_t bad_range;
		uint64_t misaligned;
		uint64_t bad_ref;  /* answers to what is over */
		uint64_t too_many; /* asked for beyond the window */
		/* Pieces that gets have asked for; tries that had to wait for others. */
		struct weft_share gets;
		uint64_t gets_limited;
		TAILQ_HEAD(, weft_rma) gets_waiting;
	} rma;
	/* What came in and was dropped, and why; what happened. */
	struct {
		uint64_t malformed; /* the gate: unknown id, lengths */
		uint64_t old_seq;   /* a sequence that is over */
		uint64_t far_seq;   /* beyond the window */
		uint64_t no_credit; /* more than was granted */
		uint64_t mismatch;  /* pieces of one message contradict each other */
		uint64_t overlap;   /* a byte that was there already */
		uint64_t torn;      /* messages in more pieces than can be kept track of */
		uint64_t bad_ref;   /* a request that is not (any more) */
		uint64_t expected, unexpected, ahead, rts;
		uint64_t no_eager_credit; /* sends that became rendezvous for want of credit */
		uint64_t truncated;
		uint64_t am_received, am_unknown, am_closed, am_not_kept, am_aborted;
		uint64_t copied_bytes; /* sent out of a copy, the shortest sends not counted */
		/* by receives: to their place, or to where they waited for it */
		uint64_t rx_copied_bytes;
		uint64_t pulls;         /* pieces asked for */
		uint64_t gets, puts;    /* pieces read and written natively */
		uint64_t native_failed; /* which then came another way */
		uint64_t
			register_failed; /* so did these, as their memory could not be registered */
		uint64_t withdrawn;      /* sends that their sender took back before a match */
		uint64_t unclaimed;      /* messages that nobody had received at the end */
		uint64_t looks; /* at endpoints and messages of a list, to find those that matter */
	} count;
};

#define WEFT_RX_DRAIN 64 /* messages taken out of the waiting ones per call */
#define WEFT_TX_BURST 64 /* requests served per endpoint and progress */

static inline void weft_msg_ep_hold(struct weft_msg_ep *me)
{
	me->refs++;
}

void weft_msg_ep_destroy(struct weft_msg_ep *me);

/* weft_ep_events.fail(), fail_later(): the endpoint is broken, now or at the end of progress. */
void weft_msg_fail(struct weft_msg_ep *me, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void weft_msg_fail_later(struct weft_msg_ep *me, int status, const char *why);

static inline void weft_msg_ep_release(struct weft_msg_ep *me)
{
	/* Sends whose buffers a lane still holds need it too. */
	if (--me->refs == 0 && TAILQ_EMPTY(&me->ops))
		weft_msg_ep_destroy(me);
}

/* ------------------------------------------------------------------ requests, the hot part */

/**
 * @return a request with the callback and flags of @p params, in progress; or NULL when memory is
 * out
 */
static inline struct weft_request *weft_request_alloc(struct weft_msg_worker *mw,
						      enum weft_req_kind kind,
						      const struct weft_op_params *params,
						      bool held)
{
	/* The place given back last is taken first: it is warm. */
	struct weft_request *req = mw->reqs.free;

	if (__builtin_expect(!req, 0)) {
		req = weft_request_more(mw);
		if (!req)
			return NULL;
	}
	mw->reqs.free = req->link.tqe_next;
	mw->reqs.in_use++;
	req->flags = held ? WEFT_REQ_HELD : 0;
	req->status = WEFT_INPROGRESS;
	req->cb = NULL;
	req->me = NULL;
	req->kind = (uint16_t)kind;
	req->ep_generation = 0;
	req->source_id = 0;
	req->dt.dt_class = WEFT_DT_CONTIG;
	if (params) {
		req->cb = params->cb;
		req->cb_arg = params->cb_arg;
		if (params->flags & WEFT_OP_FORCE_REQUEST)
			req->flags |= WEFT_REQ_FORCE;
	}
	return req;
}

static inline void weft_request_give_back(struct weft_request *req)
{
	struct weft_msg_worker *mw = req->mw;

	if (++req->generation == 0)
		req->generation = 1;
	mw->reqs.in_use--;
	req->link.tqe_next = mw->reqs.free;
	mw->reqs.free = req;
}

/** Larger tables for matching. */
void weft_msg_match_grow(struct weft_msg_worker *mw);

/** Settings out of the configuration. */
void weft_msg_conf_read(struct weft_msg_conf *to, const struct weft_conf *from, double bcopy_bw,
			const struct weft_proto *const *protos);

/*
 * ------------------------------------------------------------------ sending (msg/send.c,
 * msg/piece.c)
 */

/** Something of the endpoint waits: progress shall look at it. */
void weft_tx_kick(struct weft_msg_ep *me);
/**
 * An eager protocol has no credit for the request: it goes by the protocol that needs none. @return
 * as progress()
 */
int weft_tx_uncredited(struct weft_request *req);
/** The endpoint's protocols are others now: what has begun is given to its protocol's reset(). */
void weft_tx_reset(struct weft_msg_ep *me);
/** Decide anew whether short messages may go out at once. */
void weft_tx_update(struct weft_msg_ep *me);
/**
 * Put a new send in line; it goes out at once where it may. @return 0 it is over and was dropped,
 * WEFT_INPROGRESS, or an error (dropped)
 */
int weft_tx_start(struct weft_request *req);
/**
 * The call that has put it in line cannot go on: as if it had never been. @return false: too late,
 * something of it has left
 */
bool weft_tx_undo(struct weft_request *req);
/** Serve what waits. @return events */
unsigned int weft_tx_service(struct weft_msg_ep *me);
/** Send a control message now or as soon as there is room. */
void weft_tx_ctl(struct weft_msg_ep *me, uint8_t id, const void *data, size_t length);
#define WEFT_TX_ANY_LANE (-1)
/**
 * The same over lane @p lane, as long as that is up: what it says is true only behind what went
 * over this lane.
 */
void weft_tx_ctl_on(struct weft_msg_ep *me, int lane, uint8_t id, const void *data, size_t length);
/** A send may be over: look, and complete it. */
void weft_send_check(struct weft_request *req);
/**
 * Take a send back. @return 0: it has ended, or the receiver will tell how it ends; -EBUSY: too
 * late, or of a kind that cannot be
 */
int weft_send_cancel(struct weft_request *req);
/** It ends with an error before its time: its protocol's abort(). */
void weft_send_abort(struct weft_request *req, int status);
/**
 * Tell the peer that the rest of the message will not come. @param rreq  its request, if it has
 * asked for the data
 */
void weft_tx_abort(struct weft_request *req, struct weft_wire_ref rreq, int status);
/** All sends and control messages end. */
void weft_tx_fail(struct weft_msg_ep *me, int status);

/** Send a message without payload on one lane. @return 0 or -EAGAIN */
int weft_tx_envelope(struct weft_msg_ep *me, unsigned int lane, uint8_t id, const void *data,
		     size_t length);
/** The same on the lowest-latency lane if it has room, else on any that has. */
int weft_tx_envelope_any(struct weft_msg_ep *me, uint8_t id, const void *data, size_t length);
/** The longest piece after a header of @p hdr_len that lane @p lane takes of this request. */
size_t weft_tx_piece_max(const struct weft_request *req, unsigned int lane, size_t hdr_len);
/**
 * Send bytes [off, off + len) on one lane, by whichever call suits. @return 0, -EAGAIN, or the pack
 * error
 */
int weft_tx_piece(struct weft_request *req, unsigned int lane, uint8_t id, const void *hdr,
		  size_t hdr_len, size_t off, size_t len);
/** How long shall the next piece be: @p max, less where alignment or a tiny rest ask for it. */
size_t weft_tx_cut(const struct weft_msg_ep *me, size_t off, size_t rest, size_t max, size_t align);
/** Has the peer allowed a further message? */
static inline bool weft_tx_has_seq(const struct weft_request *req)
{
	const struct weft_msg_ep *me = req->me;

	return req->flags & WEFT_REQ_AM ? me->tx_am_seq != me->tx_am_seq_end
					: me->tx_seq != me->tx_seq_end;
}
/** May one more be announced, or (up to WEFT_EAGER_FREE) sent? */
static inline bool weft_tx_has_small(const struct weft_msg_ep *me)
{
	return me->tx_small != me->tx_small_end;
}
/** May it be sent whole or in pieces? */
static inline bool weft_tx_has_credit(const struct weft_msg_ep *me, size_t length)
{
	if (length <= WEFT_EAGER_FREE)
		return weft_tx_has_small(me);
	return length <= me->tx_credit - me->tx_used;
}
/**
 * The message's first piece, or (@p eager false) its RTS, is accepted: its sequence and its credit
 * are taken.
 */
static inline void weft_tx_take_seq(struct weft_request *req, bool eager)
{
	req->send.seq = req->flags & WEFT_REQ_AM ? req->me->tx_am_seq++ : req->me->tx_seq++;
	req->flags |= WEFT_REQ_STARTED;
	if (eager && req->length > WEFT_EAGER_FREE)
		req->me->tx_used += req->length;
	else
		req->me->tx_small++;
}

/**
 * What a lane says of a piece that it gives back. One that closes with its endpoint does not know
 * why.
 */
static inline int weft_lane_status(const struct weft_msg_ep *me, int status)
{
	return status == -ECANCELED && me->ep && me->ep->status ? me->ep->status : status;
}

/** Bytes that a lane writes or reads by itself, for those who look at shares. */
static inline void weft_lane_wrote(struct weft_msg_ep *me, unsigned int lane, size_t length)
{
	if (!me->ep)
		return;
	me->ep->lane_info[lane].tx_bytes += length;
	me->ep->lane_info[lane].tx_msgs++;
}

static inline void weft_lane_read(struct weft_msg_ep *me, unsigned int lane, size_t length)
{
	if (!me->ep)
		return;
	me->ep->lane_info[lane].rx_bytes += length;
	me->ep->lane_info[lane].rx_msgs++;
}

/*
 * ------------------------------------------------------------------ receiving (tag/recv.c,
 * tag/deliver.c)
 */

/**
 * Islands cost memory that no credit bounds. An endpoint may have its floor whatever the others
 * have, and beyond it up to WEFT_IVAL_MAX, all together as many as the limit. When that is reached
 * who has most ends, so who has no more than an even share never does.
 */
#define WEFT_ISLANDS_LIMIT (1u << 19)
#define WEFT_ISLANDS_FLOOR 256u

/** Tell the sender of a synchronous message, once, that it is matched (or why it never will be). */
void weft_rx_ack(struct weft_message *msg, int status);
/** The posted receive that gets a message with @p tag from here, taken out; or NULL. */
struct weft_request *weft_rx_match(struct weft_msg_ep *me, uint64_t tag);
/**
 * Bytes [off, off + len) of something have come. @return 0: for the first time; else they are
 * dropped: -EEXIST (counted), or no memory, or more islands than the peer may have in all that is
 * coming from it (WEFT_ISLANDS_LIMIT): then the endpoint fails
 */
int weft_rx_note(struct weft_msg_ep *me, struct weft_ivals *got, uint64_t off, uint64_t len);
static inline uint32_t weft_rx_islands_above(const struct weft_msg_ep *me)
{
	return me->rx_islands > WEFT_ISLANDS_FLOOR ? me->rx_islands - WEFT_ISLANDS_FLOOR : 0;
}

/** So many islands more, or less. */
static inline void weft_rx_islands(struct weft_msg_ep *me, int32_t more)
{
	uint32_t before = weft_rx_islands_above(me);

	me->rx_islands += (uint32_t)more;
	if (!me->rx_torn)
		me->mw->rx_islands += weft_rx_islands_above(me) - before;
}

/** Nothing more of it is awaited. @param me  that noted it */
static inline void weft_rx_forget(struct weft_msg_ep *me, struct weft_ivals *got)
{
	if (me && got->num > 1)
		weft_rx_islands(me, -(int32_t)(got->num - 1));
	weft_ivals_fini(got);
}
/** Nobody has posted a receive for it. */
void weft_rx_queue(struct weft_message *msg);
/** Its pieces will go to @p req as they come. */
void weft_rx_await_rest(struct weft_message *msg, struct weft_request *req);
/** All pieces are here, or no more will come. */
void weft_rx_over(struct weft_message *msg);
/**
 * Its sender waits for a match that will not come, since this end is closing: say so, and forget
 * the message.
 */
void weft_rx_refuse(struct weft_message *msg);

/**
 * A receive takes a message (out of the unexpected lists by now): what has come is copied, what
 * comes goes direct. The request completes when all is there. @p now: see weft_recv_done().
 */
void weft_rx_bind(struct weft_message *msg, struct weft_request *req, bool now);
/** Nobody will ever receive it. */
void weft_rx_drop(struct weft_message *msg);
/** Take the message out of matching for a probe. */
void weft_rx_take(struct weft_message *msg);
/** Match messages whose turn has come. @return how many */
unsigned int weft_rx_drain(struct weft_msg_ep *me, unsigned int budget);
/** Everything that is still coming from the endpoint ends. */
void weft_rx_fail(struct weft_msg_ep *me, int status);
/** Its owner has closed it: senders that wait for a match are told that none will come. */
void weft_rx_closing(struct weft_msg_ep *me);
/** The endpoint goes: what is complete stays. */
void weft_rx_detach(struct weft_msg_ep *me);
/** Note what a matched receive gets; truncation is known now. */
static inline void weft_recv_matched(struct weft_request *req, struct weft_msg_ep *me, uint64_t tag,
				     uint64_t total)
{
	req->me = me;
	req->source_id = me ? me->ep->remote_id : 0;
	req->tag = tag;
	req->length = total;
	if (__builtin_expect(total > req->dt.length, 0)) {
		req->status = -EMSGSIZE;
		req->mw->count.truncated++;
	}
}

/** Some of it will not come, which says more than that the rest has no room. */
static inline void weft_recv_fail(struct weft_request *req, int status)
{
	if (req->status == WEFT_INPROGRESS || req->status == -EMSGSIZE)
		req->status = status;
}

/** Put bytes where the user wants them; past the buffer's end they vanish. */
static inline void weft_recv_place(struct weft_request *req, uint64_t off, const void *src,
				   size_t len)
{
	int rc;

	if (off >= req->dt.length || (req->flags & WEFT_REQ_UNPACKERR))
		return;
	if (len > req->dt.length - off)
		len = req->dt.length - off;
	if (len == 0)
		return;
	/* On the line of what counts matched messages. */
	req->mw->count.rx_copied_bytes += len;
	rc = weft_dt_unpack(&req->dt, off, src, len);
	if (__builtin_expect(rc >= 0, 1))
		return;
	req->flags |= WEFT_REQ_UNPACKERR;
	weft_recv_fail(req, rc);
}

/**
 * All there. @p now: inside the call of the user; the request is then marked WEFT_REQ_NOW, or
 * completes at the next progress.
 */
static inline void weft_recv_done(struct weft_request *req, bool now)
{
	int status = req->status == WEFT_INPROGRESS ? 0 : req->status;

	if (!now)
		weft_request_complete(req, status);
	else if (status || (req->flags & WEFT_REQ_FORCE))
		weft_request_complete_later(req, status);
	else
		req->flags |= WEFT_REQ_NOW;
}

/* ------------------------------------------------------------------ credits (msg/credit.c) */

/**
 * Has the peer credit for a message of @p total bytes, of which nobody has told before? Books it.
 */
static inline bool weft_credit_take(struct weft_msg_ep *me, uint64_t total)
{
	if (total <= WEFT_EAGER_FREE) {
		if (me->rx_small == me->rx_small_told)
			return false;
		me->rx_small++;
		return true;
	}
	if (total > me->rx_told - me->rx_used)
		return false;
	me->rx_used += total;
	return true;
}

/** The same of one that is announced only. */
static inline bool weft_credit_take_rts(struct weft_msg_ep *me)
{
	return weft_credit_take(me, 0);
}

/** An eager message of @p total bytes is matched, or dropped: another one may come. */
static inline void weft_credit_give(struct weft_msg_ep *me, uint64_t total)
{
	if (total > WEFT_EAGER_FREE)
		me->rx_allowed += total;
	else
		me->rx_small_allowed++;
}

/** The same of one that is announced only. */
static inline void weft_credit_give_rts(struct weft_msg_ep *me)
{
	me->rx_small_allowed++;
}

/** Of a message that has waited. */
static inline void weft_credit_give_msg(struct weft_message *msg)
{
	if (msg->me)
		weft_credit_give(msg->me, msg->flags & WEFT_MSG_RTS ? 0 : msg->total);
}

void weft_credit_worker_init(struct weft_msg_worker *mw);
/** Send what may be sent by now, or when there is room. */
void weft_credit_send(struct weft_msg_ep *me);
/** Much is used, or has come back: fit the windows, and tell the peer. */
void weft_credit_look(struct weft_msg_ep *me);

/** Tell the peer when enough has become free. */
static inline void weft_credit_update(struct weft_msg_ep *me)
{
	if (__builtin_expect((uint32_t)(me->rx_seq + WEFT_SEQ_WINDOW - me->rx_seq_told) >=
				     WEFT_SEQ_WINDOW / 4,
			     0) ||
	    __builtin_expect((uint32_t)(me->rx_am_seq + WEFT_SEQ_WINDOW - me->rx_am_told) >=
				     WEFT_SEQ_WINDOW / 4,
			     0) ||
	    __builtin_expect(me->rx_small_allowed - me->rx_small_told > me->rx_small_window / 4,
			     0) ||
	    __builtin_expect(me->rx_allowed - me->rx_told > me->rx_window / 4, 0))
		weft_credit_look(me);
}

/** A message waits here: much may be used. */
static inline void weft_credit_kept(struct weft_msg_ep *me)
{
	if ((int64_t)(me->rx_used - me->rx_low) >= 0 ||
	    (int32_t)(me->rx_small - me->rx_small_low) >= 0)
		weft_credit_look(me);
}

/** @param length  with records, if there are any */
void weft_credit_recv(struct weft_msg_ep *me, const struct weft_wire_credit *c, size_t length);
/** Give the peer's windows back to the worker. */
void weft_credit_fini(struct weft_msg_ep *me);
/** A message stays (@p stays), or has stayed, when its endpoint is gone: it counts in the pools. */
void weft_credit_left(const struct weft_message *msg, bool stays);

/* ------------------------------------------------------------------ flush (msg/flush.c) */

/** Sends or control messages have ended: perhaps a flush may go on. */
void weft_flush_check(struct weft_msg_ep *me);
void weft_flush_fail(struct weft_msg_ep *me, int status);

#endif /* WEFT_MSG_H */
