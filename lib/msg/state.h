/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/state.h
 * Modules, and the message half of a worker and of an endpoint: the state that sends, credit, flush
 * and all modules share, and the protocols of an endpoint.
 *
 * Callbacks of the user may close the endpoint whose message is being processed. A struct
 * weft_msg_ep therefore exists until its last reference is released (weft_msg_ep_hold/release);
 * `ep` is NULL once the connection half is gone.
 */
#ifndef WEFT_MSG_STATE_H
#define WEFT_MSG_STATE_H

#include "base/pacing.h"
#include "core/config.h"
#include "core/wire.h"
#include "core/worker.h"
#include "lane.h"
#include "lane_attr.h"
#include "msg/request.h"
#include "proto/proto.h"

/* ------------------------------------------------------------------ modules */

/*
 * Modules are the users of the message layer: tags, active messages, remote memory, rendezvous. The
 * message layer names none of them. Each module is a table of hooks. A second table contains the
 * handler of each message id. lib/dispatch.c has both tables. A new operation needs a folder, a
 * line in the table of modules, and a line for each of its message ids.
 *
 * A module's state of an endpoint is behind a pointer in struct weft_msg_ep: a field for the
 * library's modules, weft_module_own() for others. Its state of a request is in the request
 * (weft_request.recv.own, weft_request.send.own).
 */

struct weft_msg_ep;
struct weft_msg_worker;

/** Number of message ids: struct weft_tables has a handler for each. */
#define WEFT_HANDLERS 32

/** The functions that receive the messages of one id. */
struct weft_handler {
	uint8_t header; /**< length of the header, bytes; the payload is behind it */
	/**
	 * Validation, as far as no state is needed: @return 0: id, length and all fields are
	 * correct. Otherwise the message is dropped, and its endpoint fails with -EPROTO.
	 */
	int (*check)(uint8_t id, const void *data, size_t length);
	/** A valid message has come on @p me. @param payload  bytes behind the header */
	void (*recv)(struct weft_msg_ep *me, const void *data, size_t payload);
	/**
	 * As recv(), but another process can change the payload during the call. Each byte of it is
	 * read once, and only to be copied to its destination. check() reads no byte behind the
	 * header.
	 * weft_dt_in_place is true. NULL = there is only recv().
	 */
	void (*recv_in_place)(struct weft_msg_ep *me, const void *header, const void *payload,
			      size_t length);
};

/** The maximum number of modules: struct weft_flush has a field for each. */
#define WEFT_MODULES_MAX 8

/** Hooks; NULL = nothing to do. They are called in the order of the table. */
struct weft_module {
	const char *name;

	/** @return 0, or an error: the worker is not created */
	int (*worker_init)(struct weft_msg_worker *mw);
	/** All receives end; messages that wait for one are dropped. Callbacks run. */
	void (*worker_stop)(struct weft_msg_worker *mw);
	/** After the lanes have closed: free memory. Called even if worker_init() was not. */
	void (*worker_fini)(struct weft_msg_worker *mw);
	/** Called before and after the endpoints' queues while mw->work is not 0. @return events */
	unsigned int (*before_queues)(struct weft_msg_worker *mw);
	unsigned int (*after_queues)(struct weft_msg_worker *mw);
	/** As weft_msg_busy(). */
	bool (*busy)(const struct weft_msg_worker *mw, bool *soon);
	void (*counters)(const struct weft_msg_worker *mw, weft_lane_counter_cb cb, void *arg);
	/** help texts of counters(), as a driver's */
	const struct weft_lane_counter *counter_help;

	/** @return 0 or -ENOMEM */
	int (*ep_init)(struct weft_msg_ep *me);
	/** The endpoint is unused: free memory. Called once, even if ep_init() was not. */
	void (*ep_fini)(struct weft_msg_ep *me);
	/** The endpoint's lanes are up, or have changed. */
	void (*ep_lanes)(struct weft_msg_ep *me);
	/** The endpoint's protocols have been chosen, or have changed with its lanes. */
	void (*ep_reset)(struct weft_msg_ep *me);
	/**
	 * Serve queues. data() is called in turn before and after the queue of messages, so that
	 * neither starves on a busy lane. serve() is called after both. @return events
	 */
	unsigned int (*data)(struct weft_msg_ep *me);
	unsigned int (*serve)(struct weft_msg_ep *me);
	/** Is there something that data() or serve() could send? */
	bool (*has_work)(const struct weft_msg_ep *me);
	/** The endpoint has failed: remove its entries from all queues. No user's callback runs. */
	void (*fail)(struct weft_msg_ep *me);
	/** Sends have ended, except those that a lane still holds: end receives. Callbacks run. */
	void (*ended)(struct weft_msg_ep *me, int status);
	/** The connection half is freed: me->ep is NULL afterwards. */
	void (*detach)(struct weft_msg_ep *me);
	/** The user has closed the endpoint. */
	void (*closing)(struct weft_msg_ep *me);
	/**
	 * Flush: is everything that the module has sent executed at the peer? @param mark  0 at
	 * first, and preserved between calls.
	 * @return false: a query is sent, and weft_flush_check() is called later
	 */
	bool (*flushed)(struct weft_msg_ep *me, uint64_t *mark);
	/** The error that a flush reports, once: of operations before @p op_sn. */
	int (*take_status)(struct weft_msg_ep *me, uint64_t op_sn);
};

/** The statement behind it runs for each module of @p mw with the hook, and calls m->hook(...). */
#define WEFT_EACH_MODULE(m, mw, hook)                                                              \
	for (const struct weft_module *m, *const *m##_at = (mw)->modules; (m = *m##_at); m##_at++) \
		if (m->hook)

/* ------------------------------------------------------------------ what a peer may send */

/**
 * Sequence numbers of received messages of one class (tags, active messages): the next number, and
 * which numbers the peer may send. Numbers wrap.
 */
struct weft_seq_window {
	uint32_t next;       /**< number of the next message in sequence */
	uint32_t advertised; /**< first number not advertised to the peer; at most a window ahead */
};

/** May a message with this number begin now? Smaller ones are over, larger ones not yet allowed. */
static inline bool weft_seq_inside(const struct weft_seq_window *w, uint32_t seq)
{
	return seq - w->next < w->advertised - w->next;
}

/** Is a message with this number over already? */
static inline bool weft_seq_old(const struct weft_seq_window *w, uint32_t seq)
{
	return (int32_t)(seq - w->next) < 0;
}

/** The first number that the peer may not use, to be advertised. */
static inline uint32_t weft_seq_end(const struct weft_seq_window *w)
{
	return w->next + WEFT_SEQ_WINDOW;
}

/** Has the window moved enough to advertise it? */
static inline bool weft_seq_due(const struct weft_seq_window *w)
{
	return weft_seq_end(w) - w->advertised >= WEFT_SEQ_WINDOW / 4;
}

/* ------------------------------------------------------------------ load of a lane */

/*
 * The bytes that a lane has outstanding in one direction, and the time that they take. Every choice
 * of a lane uses these numbers.
 *
 * Bytes are outstanding from when the lane gets them (posted, or requested) until they are done
 * (completed, or received). Neither a nominal rate nor the time passed indicates when that is; the
 * lane's own completions do. A lane that is slower than its nominal rate keeps bytes outstanding
 * longer, and gets fewer.
 *
 * The rate is measured while bytes are outstanding. A lane may be idle although bytes are
 * outstanding: all of them may be in flight. This happens if the lane got them less than a round
 * trip before the previous ones were done. Then the result is only a lower bound of the rate.
 */

/**
 * Seconds of work, at most 1 MiB, that the window of a lane has beyond its round trips
 * (weft_load_set_window()): the peer, or a kernel in between, polls its queues at intervals.
 */
#define WEFT_LOAD_SLACK 1e-3

/** Directions of a lane, which are independent of each other. */
enum weft_dir { WEFT_DIR_TX, WEFT_DIR_RX };

struct weft_lane_load {
	/** bytes given that are not done; messages in flight are in lane_ep->queued */
	uint64_t out;
	uint64_t window;     /**< bytes that may be outstanding */
	uint64_t since;      /**< time when the lane last got bytes while out was 0, ns */
	uint64_t moved;      /**< time when bytes were done last, at least `since`, ns */
	float per_byte;      /**< s, by the measured rate */
	float latency;       /**< s, one way, as configured or measured at connect */
	uint32_t min_rtt_ns; /**< least round trip; 0 = unknown */
	uint32_t trip_ns;    /**< round trip that requests take now; 0 = unknown */
	bool full;           /**< messages wait for room: their acknowledgements are counted, too */
	struct weft_rate rate;
};

/** The lane has taken @p bytes. */
static inline void weft_load_give(struct weft_lane_load *l, uint64_t bytes, uint64_t now)
{
	if (l->out == 0)
		l->since = l->moved = now;
	l->out += bytes;
	weft_rate_start(&l->rate);
}

/**
 * The number of @p bytes that may be given now: all if the lane has nothing outstanding or its
 * window has room for all; else its room, if that is at least @p min bytes; else 0
 */
static inline uint64_t weft_load_room(const struct weft_lane_load *l, uint64_t bytes, uint64_t min)
{
	uint64_t room = l->window > l->out ? l->window - l->out : 0;

	if (l->out == 0 || bytes <= room)
		return bytes;
	return room >= min ? room : 0;
}

/** s; how much later the outstanding bytes are than expected */
static inline float weft_load_stall(const struct weft_lane_load *l, uint64_t now)
{
	float late;

	if (l->out == 0)
		return 0;
	late = (float)(int64_t)(now - l->moved) * 1e-9f - (float)l->out * l->per_byte -
	       2 * l->latency - (float)WEFT_LOAD_SLACK;
	return late > 0 ? late : 0;
}

/** s until the lane has done its outstanding bytes, @p queued of messages, and @p bytes more */
static inline float weft_load_time(const struct weft_lane_load *l, uint64_t queued, uint64_t bytes,
				   uint64_t now)
{
	return (float)(l->out + queued + bytes) * l->per_byte + l->latency +
	       weft_load_stall(l, now);
}

/* ------------------------------------------------------------------ endpoint */

/** A peer for which more control messages than this wait gets no credit for further messages. */
#define WEFT_CTL_HELD 256

/**
 * A control message for which no lane had room: {id, bytes}. They are short and need no order. For
 * a peer that receives no control message, WEFT_CTL_HELD may wait, and two more for each message
 * that the peer may still send: 2 * 2 * WEFT_SEQ_WINDOW. Replies to remote operations have other
 * limits (rma/target.c).
 */
struct weft_ctl {
	STAILQ_ENTRY(weft_ctl) link;
	uint8_t id;
	int8_t lane; /* or WEFT_TX_ANY_LANE */
	uint16_t length;
	uint8_t data[];
};

/** The fields of a lane that striping reads. */
struct weft_msg_lane {
	struct weft_lane_ep *lane_ep; /* NULL = not usable */
	uint32_t max_short;           /* bytes, header and payload; 0 = no short sends */
	uint32_t max_bcopy;
	uint32_t max_zcopy;
	uint32_t max_zcopy_hdr;
	uint32_t min_zcopy; /* messages shorter than this are copied */
	uint32_t max_get;   /* most bytes of a native read; 0 = the lane has none */
	uint32_t max_put;   /* most bytes of a native write; 0 = the lane has none */
	uint32_t align;
	uint16_t max_iov;
	bool zcopy_any;       /* zcopy needs no registered memory */
	uint64_t sent;        /* bytes sent since the last measurement, with headers */
	uint32_t queued_seen; /* lane_ep->queued at the last measurement */
	/*
	 * Bytes that were in flight when the lane last took no more, or more if it has taken more
	 * since: about what congestion control allows. 0 = unknown
	 */
	uint32_t room;
	uint32_t room_most; /* the largest value of room */
	/*
	 * by enum weft_dir: what is sent and written; what is read and pulled. NULL: the only lane
	 * of an endpoint, which has sent messages only (weft_lane_loads())
	 */
	struct weft_lane_load *load;
};

/** State that few endpoints need. */
struct weft_msg_rare {
	/* Messages that a dead lane has returned, and those that wait behind (msg/replay.c). */
	STAILQ_HEAD(, weft_replay) replay, replay_later;
	void *own[WEFT_MODULES_MAX]; /* of modules without a field: weft_module_own() */
};

struct weft_msg_ep {
	/* cache line 0: the short send */
	struct weft_lane_ep *short_lane_ep;
	/*
	 * tagged messages shorter than this may be sent without a request; 0 = none, as with
	 * WEFT_THREAD_MULTI
	 */
	size_t short_end;
	struct weft_ep_lane_info *short_count;
	uint32_t tx_seq;       /* number of the next tagged message */
	uint32_t tx_seq_end;   /* first number that the peer has not allowed */
	uint32_t tx_small;     /* messages that took a message credit (msg/credit.c), in total */
	uint32_t tx_small_end; /* message credits that the peer has given, in total */
	struct weft_ep *ep;    /* NULL = gone */
	struct weft_msg_worker *mw;
	uint32_t refs;
	bool failed;
	bool send_now; /* copy of worker->send_now */
	/* cache line 1: a received message in sequence */
	struct weft_tag *tag; /* tagged messages */
	struct weft_seq_window rx_seq;
	/* messages that take a message credit, in total: received, allowed, advertised; window */
	uint32_t rx_small, rx_small_allowed, rx_small_advertised, rx_small_window;
	uint64_t rx_used;    /* total length of begun eager messages of more than WEFT_EAGER_FREE */
	uint64_t rx_allowed; /* total of bytes that may be advertised: window + bytes matched */
	uint64_t rx_advertised; /* total of bytes that was advertised last */
	uint64_t rx_window;     /* bytes */
	/* receive, less frequently used */
	struct weft_seq_window rx_am_seq; /* of active messages */
	uint64_t rx_low;                  /* value of rx_used from which the window is checked */
	uint32_t rx_small_low; /* value of rx_small from which the window of messages is checked */
	/* received ranges of incomplete messages beyond the first of each (base/container.h) */
	uint32_t rx_ranges;
	uint64_t rx_window_advertised;
	/* bytes of stored messages whose credit was freed before a match: weft_credit_spill() */
	uint64_t rx_spilled;
	bool replaying;
	uint8_t replay_lane; /* while replaying: the lane that sends these messages */
	bool rx_shrunk;      /* the window has shrunk: CREDIT messages contain its size */
	/*
	 * the endpoint had the most ranges at WEFT_RX_RANGES_LIMIT: it fails at the end of
	 * progress, and its ranges no longer count in those of the worker
	 */
	bool rx_fragmented;
	/* send, less frequently used */
	uint32_t short_locked; /* WEFT_THREAD_MULTI: as short_end, under the worker's lock */
	/* messages shorter than this are copied whole, and may need no request; 0 = none */
	uint32_t copied_end;
	uint32_t num_ctl;
	/* total length of eager messages of more than WEFT_EAGER_FREE: sent; allowed by the peer */
	uint64_t tx_used, tx_credit;
	/*
	 * the peer's window in bytes, as its CREDIT reports it; without a report the most that it
	 * ever allowed at a time
	 */
	uint64_t tx_window;
	struct weft_requests pending; /* sends not handed over in full, in order */
	/* operations that are not complete, in the order of the calls; without parked ones */
	struct weft_requests ops;
	/* sends that are with the lanes, and that end when the peer's application acts */
	struct weft_requests parked;
	/* sends that end with a flush of the lanes, for which a lane has had no room yet */
	struct weft_requests flush_waits;
	STAILQ_HEAD(, weft_ctl) ctl;
	STAILQ_HEAD(, weft_flush) flushes;
	TAILQ_ENTRY(weft_msg_ep) ready_link;
	uint64_t op_sn;
	uint32_t tx_am_seq, tx_am_seq_end; /* of active messages */
	bool ready;      /* in the worker's list of endpoints with something to send */
	bool up;         /* connected, and a lane is up */
	bool credit_due; /* CREDIT waits for a lane, or for control messages to be sent */
	bool data_turn;  /* alternates: weft_tx_service() begins with data, or with messages */
	bool closing;    /* no receive of the user will match its messages any more */
	uint8_t stall;   /* enum weft_stall */
	/* the peer's last PULL reported that other senders wait for its port */
	bool peer_contended;
	uint8_t am_lane;
	uint8_t last_lane[2]; /* the lane of the last piece, by enum weft_dir */
	uint16_t lanes_up;
	uint16_t tx_full;                 /* mask of full lanes, whose rate is being measured */
	uint16_t eager_lanes, rndv_lanes; /* lanes that multi-eager and bulk data may use */
	/* lanes through memory: messages to a prompt peer are faster than its native reads */
	uint16_t slow_reads;
	/*
	 * lanes of slow_reads over which messages are faster than reads only for single messages
	 * below WEFT_MULTI_EAGER_LIMIT
	 */
	uint16_t stream_reads;
	uint16_t forced;             /* weft_model_conf.forced */
	struct weft_msg_lane *lanes; /* ep->lane_room entries, once connected */
	/* worker->now at the last long message: in_stream() of msg/send.c */
	uint64_t tx_long_at;
	struct weft_promptness promptness; /* of the peer, on slow_reads */
	/* a lane sends pieces of at least this size from user memory, where possible */
	size_t zcopy_from;
	/* the protocol of each message size; NULL until there are lanes */
	struct weft_ep_config *config;
	struct weft_msg_rare *rare; /* NULL = never used */
	/* the state of modules, each used by its module alone */
	struct weft_rndv *rndv; /* NULL = never used */
	struct weft_am *am;     /* NULL = no message has ever been stored */
	struct weft_rma *rma;   /* NULL = never used */
};

/* From now on sends need a request: they must go behind the queue, or the endpoint is down. */
static inline void weft_tx_no_short(struct weft_msg_ep *me)
{
	/* With WEFT_THREAD_MULTI short_end is always 0: threads read it without the lock. */
	if (me->short_end)
		me->short_end = 0;
	me->short_locked = 0;
	me->copied_end = 0;
}

TAILQ_HEAD(weft_msg_eps, weft_msg_ep);

/* ------------------------------------------------------------------ worker */

struct weft_msg_conf {
	struct weft_model_conf model;
	size_t min_chunk;
	size_t unexp_limit, eager_credit;
	size_t unexp_memory; /* limit of weft_msg_worker.spilled, bytes */
	uint32_t seq_start;
	enum weft_rndv_scheme rndv_scheme;
	size_t rndv_min_piece;
	size_t rndv_window; /* the largest window of a lane, bytes: struct weft_lane_load */
	size_t rndv_limit;  /* most bytes that the worker has requested by PULL and not received */
	uint32_t rma_max_gets;
	bool zcopy;
	bool atomic_device; /* atomics are executed by lanes alone, never by a CPU */
};

/** The counters of messages: events, and what was received and dropped, and why. */
#define WEFT_MSG_COUNTERS(X)                                                                       \
	X(expected, "tag.expected", "Tagged messages that came after their receive was posted.")   \
	X(unexpected, "tag.unexpected",                                                            \
	  "Tagged messages that came before their receive was posted.")                            \
	X(rx_copied_bytes, "rx_copied_bytes",                                                      \
	  "Bytes copied by receives, into buffers or to where they waited.")                       \
	X(am_received, "am.received", "Active messages given to a handler.")                       \
	X(copied_bytes, "copied_bytes",                                                            \
	  "Bytes sent out of a copy, the shortest sends not counted.")                             \
	X(out_of_order, "tag.out_of_order",                                                        \
	  "Messages that came before one sent earlier, and waited for it.")                        \
	X(rts, "tag.rts", "Messages that their sender announced first (rendezvous).")              \
	X(truncated, "tag.truncated", "Messages longer than the buffer of their receive.")         \
	X(withdrawn, "tag.withdrawn", "Sends that their sender took back before a match.")         \
	X(no_eager_credit, "tag.no_eager_credit",                                                  \
	  "Sends that were announced first for want of credit.")                                   \
	X(pulls, "rndv.pulls", "Pieces of messages that were requested.")                          \
	X(gets, "rndv.gets", "Native reads of message data.")                                      \
	X(puts, "rndv.puts", "Native writes of message data.")                                     \
	X(native_failed, "rndv.native_failed",                                                     \
	  "Native reads and writes that failed; the data came another way.")                       \
	X(register_failed, "rndv.register_failed",                                                 \
	  "Memory that could not be registered, and was copied.")                                  \
	X(malformed, "tag.drop.malformed", "Messages dropped: unknown kind, or wrong lengths.")    \
	X(old_seq, "tag.drop.old_sequence", "Messages dropped: their sequence number is over.")    \
	X(far_seq, "tag.drop.far_sequence",                                                        \
	  "Messages dropped: sequence number beyond what was granted.")                            \
	X(no_credit, "tag.drop.no_credit",                                                         \
	  "Messages dropped: more than their sender was granted.")                                 \
	X(mismatch, "tag.drop.mismatch",                                                           \
	  "Pieces dropped that contradict others of their message.")                               \
	X(overlap, "tag.drop.overlap", "Pieces dropped: their bytes were there already.")          \
	X(fragmented, "tag.drop.torn", "Messages dropped: in more pieces than are kept track of.") \
	X(bad_ref, "tag.drop.bad_reference",                                                       \
	  "Answers dropped: they name no request that is under way.")                              \
	X(am_unknown, "am.drop.unknown_id", "Active messages dropped: no handler has that id.")    \
	X(am_closed, "am.drop.endpoint_closed",                                                    \
	  "Active messages dropped: their endpoint is closed.")                                    \
	X(am_not_kept, "am.drop.not_kept",                                                         \
	  "Active messages that a handler wanted to keep and could not.")                          \
	X(am_aborted, "am.drop.aborted", "Active messages that their sender gave up half way.")    \
	X(replayed, "msg.sent_again", "Messages retransmitted because their lane died.")           \
	X(spilled, "tag.spilled",                                                                  \
	  "Unexpected messages kept beyond the credit of their peer (WEFT_UNEXP_MEMORY).")         \
	X(looks, "msg.looks", "Entries of lists checked to find those that matter.")

struct weft_msg_worker {
	struct weft_tag_worker *tag; /* the state of modules, each used by its module alone */
	struct weft_rndv_worker *rndv;
	struct weft_rma_worker *rma;
	struct weft_am_worker *am;                /* NULL = no handler has been set */
	const struct weft_module *const *modules; /* NULL-terminated */
	const struct weft_handler *handlers;
	/* number of list entries that modules' before_queues(), after_queues() serve */
	uint32_t work;
	struct weft_request_table reqs;
	struct weft_requests later; /* complete, their callbacks run at the next progress */
	struct weft_msg_eps ready;  /* endpoints with something to send */
	struct weft_worker *worker;
	SLIST_HEAD(, weft_native) free_natives; /* msg/transmit.c */
	struct weft_credit_pool credit_bytes, credit_msgs;
	uint64_t spilled;   /* rx_spilled of all endpoints */
	uint32_t rx_ranges; /* sum over endpoints of rx_ranges above WEFT_RX_RANGES_FLOOR */
	struct weft_msg_conf conf;
	struct weft_ep_configs configs;
	bool fini;
	struct weft_stalls stalls;
	struct {
		WEFT_MSG_COUNTERS(WEFT_COUNTER_FIELD)
		uint64_t unclaimed; /* messages that no receive had taken at worker_stop() */
	} count;
};

#define WEFT_TX_BURST 64 /* the maximum of requests served per queue and progress call */

/** @return NULL: no memory */
struct weft_msg_rare *weft_msg_rare_get(struct weft_msg_ep *me);

/** Do messages of a dead lane wait? */
static inline bool weft_msg_has_replay(const struct weft_msg_ep *me)
{
	return me->rare && !STAILQ_EMPTY(&me->rare->replay);
}

static inline void weft_msg_ep_hold(struct weft_msg_ep *me)
{
	me->refs++;
}

/** The status of operations on an endpoint that has failed. */
static inline int weft_msg_ep_why(const struct weft_ep *ep)
{
	return ep->status < 0 ? ep->status : -ECONNRESET;
}

/** May the user begin an operation? @return 0; -ENOTCONN: the endpoint closes; or its error */
static inline int weft_msg_ep_check(const struct weft_ep *ep)
{
	if (ep->msg->failed || ep->state == WEFT_EP_FAILED)
		return weft_msg_ep_why(ep);
	return ep->state == WEFT_EP_CLOSING ? -ENOTCONN : 0;
}

/* ------------------------------------------------------------------ requests, the hot part */

/**
 * @param params  its callback and WEFT_OP_F_FORCE_REQUEST are taken over; NULL = no callback
 * @param held    the user gets the pointer: WEFT_REQ_HELD
 * @return a request in progress; NULL = no memory
 */
static inline struct weft_request *weft_request_alloc(struct weft_msg_worker *mw,
						      const struct weft_request_ops *ops,
						      const struct weft_op_params *params,
						      bool held)
{
	/* The place freed last is taken first: it is in the cache. */
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
	req->ops = ops;
	req->ep_generation = 0;
	req->source_id = 0;
	req->ext = (struct weft_ext){0};
	req->dt.dt_class = WEFT_DT_CONTIG;
	if (params) {
		req->cb = params->cb;
		req->cb_arg = params->cb_arg;
		if (params->flags & WEFT_OP_F_FORCE_REQUEST)
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

/* ------------------------------------------------------------------ protocols of an endpoint */

void weft_msg_conf_read(struct weft_msg_conf *to, const struct weft_conf *from, double bcopy_bw,
			const struct weft_proto *const *protos);
/**
 * The endpoint's lanes are known, or have changed: find their configuration. Endpoints with equal
 * lanes share it (proto/select.c). Requests that have not begun select their protocol again at
 * their next step.
 * @return 1: another configuration than before; 0: no change, or the first one; -ENOMEM
 */
int weft_proto_select_build(struct weft_msg_ep *me);

#endif /* WEFT_MSG_STATE_H */
