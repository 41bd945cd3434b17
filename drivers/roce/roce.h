/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce.h
 * The objects of the RoCE driver. A *device* is one verbs device, opened once per process. Workers
 * share it with its protection domain, so that one registration serves all of them. An *iface* is
 * one port of a device for one worker, with a completion queue and a shared receive queue. A
 * *lane_ep* is a connection, and a *chan* is one of its queue pairs.
 *
 *	roce_dev.c    devices, their GID tables, ports, routes; registrations; registered buffers
 *	roce_async.c  events of the device; the threads for kernel calls that sleep
 *	roce_iface.c  opening, attributes, progress, closing
 *	roce_qp.c     lane_eps and their queue pairs: create, connect
 *	roce_end.c    fail, close, destroy; flush; suspicion, stop, return of messages
 *	roce_cq.c     completions; receive buffers, the receive path; owners that sleep
 *	roce_send.c   messages; remote reads, writes, atomics
 *	roce_text.c   options of a lane; the choice of its GID; message texts
 *	roce_wire.c   validation of addresses and datagrams from peers
 *	ud.c          the control channel (ud.h): opening, progress, closing, datagrams
 *	ud_ep.c       its connections
 */
#ifndef WEFT_ROCE_H
#define WEFT_ROCE_H

#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "base/container.h"
#include "lane.h"
#include "lane_attr.h"
#include "roce_dev.h"
#include "roce_text.h"
#include "roce_wire.h"

/* ------------------------------------------------------------------ counters */

#define ROCE_COUNTERS(X)                                                                          \
	X(tx, "tx.messages", "Messages sent.")                                                    \
	X(tx_bytes, "tx.bytes", "Bytes of messages sent.")                                        \
	X(doorbells, "tx.doorbells", "Times that requests were posted to the device.")            \
	X(words, "tx.counts", "Writes of a count of processed messages.")                         \
	X(no_credit, "tx.no_credit", "Sends that found the peer's window full.")                  \
	X(no_place, "tx.no_place", "Sends refused by a full queue, its share or the read limit.") \
	X(no_buffer, "tx.no_buffer", "Sends that found no buffer.")                               \
	X(rx, "rx.messages", "Messages received.")                                                \
	X(rx_bytes, "rx.bytes", "Bytes of messages received.")                                    \
	X(rx_copied, "rx.copied", "Messages received that had to be copied: buffers are short.")  \
	X(partial_word, "rx.torn_count", "Counts of peers read while they were being written.")   \
	X(gets, "rma.gets", "Native reads posted.")                                               \
	X(get_bytes, "rma.get_bytes", "Bytes of native reads.")                                   \
	X(puts, "rma.puts", "Native writes posted.")                                              \
	X(put_bytes, "rma.put_bytes", "Bytes of native writes.")                                  \
	X(amos, "rma.atomics", "Native atomic operations posted.")                                \
	X(bad_imm, "drop.bad_immediate",                                                          \
	  "Messages that ended a lane: missing or invalid immediate data.")                       \
	X(bad_ack, "drop.bad_count", "Counts that ended a lane: of what was never sent.")         \
	X(bad_addr, "drop.bad_address", "Addresses of peers refused: malformed.")                 \
	X(oversize, "drop.too_long", "Messages that ended a lane: longer than a buffer.")         \
	X(late, "drop.late", "Messages dropped: their lane is closed.")                           \
	X(stray, "drop.stray_completion", "Completions dropped: of no request.")                  \
	X(failed, "lanes.failed", "Lanes that failed.")                                           \
	X(suspect, "lanes.suspect", "Times that a silent lane was suspected to be dead.")         \
	X(stopped, "lanes.stopped", "Lanes stopped, with a report to the peer.")                  \
	X(events, "device.events", "Asynchronous events of the device.")

/* ------------------------------------------------------------------ connection */

/**
 * Bytes of a message's place in a ring, which the message keeps until the peer has processed it. A
 * place contains a short message, or the header of a zero-copy message and the iov of its payload.
 */
#define ROCE_PLACE WEFT_LANE_ROCE_SHORT
#define ROCE_ZCOPY_HDR 80
#define ROCE_MAX_SGE 8
#define ROCE_SQ_DEPTH 128
/** Messages of a ring; after their places are 8 bytes for each request of the send queue. */
#define ROCE_RING_PLACES 128
#define ROCE_RING_SIZE (ROCE_RING_PLACES * ROCE_PLACE + ROCE_SQ_DEPTH * 8)
#define ROCE_MAX_RINGS (WEFT_ROCE_WINDOW_MAX / ROCE_RING_PLACES)
#define ROCE_NO_MESSAGE 0xff /* roce_unacked.id of PING: it is not sent over another lane */
#define ROCE_POLL 32         /* completions that one poll takes at most */

enum roce_slot_kind {
	ROCE_SLOT_SEND,
	ROCE_SLOT_WORD,
	ROCE_SLOT_READ,
	ROCE_SLOT_WRITE,
	ROCE_SLOT_AMO
};

struct roce_slot {
	struct roce_chan *chan;
	struct weft_lane_comp *comp; /* completion of an operation on remote memory */
	uint64_t *result;            /* AMO: the caller's memory for the old value */
	uint32_t at;                 /* number of the request on its queue pair */
	uint32_t sent;               /* SEND: messages sent on the queue pair, this one included */
	uint32_t bytes;
	uint8_t kind;
};

/**
 * A message that the peer has not processed. Its bytes stay until then, because a lane that dies
 * returns them to be sent over others. They are in its place, in a buffer, or in the user's memory.
 */
struct roce_unacked {
	struct weft_lane_comp *comp; /* completion of a zero-copy message, else NULL */
	struct roce_buf *buf;        /* buffer of a packed message, else NULL */
	uint32_t bytes;
	uint8_t id;
	uint8_t hdr_len, iovcnt; /* zero copy: the place has the header and, after it, the iov */
};

static_assert(ROCE_ZCOPY_HDR % 16 == 0 &&
		      ROCE_ZCOPY_HDR + (ROCE_MAX_SGE - 1) * sizeof(struct iovec) <= ROCE_PLACE,
	      "a place holds what a zero-copy message is made of");

struct roce_chan {
	struct roce_lane_ep *lane_ep;
	struct ibv_qp *qp;
	struct weft_roce_credit credit;
	struct weft_roce_sq sq;
	uint32_t reads, max_reads; /* outstanding reads and atomics, and their maximum */
	uint32_t on_wire;          /* messages that the device has completed; cumulative */
	uint32_t done;             /* messages that are complete; ROCE_UP: min(on_wire, acked) */
	uint32_t unacked_mask;
	volatile struct weft_roce_word *word; /* count of processed messages: the peer writes it */
	uint32_t word_seen;                   /* value of word at the last check */
	uint64_t word_remote;
	uint64_t busy_since; /* ns: the oldest request was added, or a later completion came */
	uint64_t ack_since; /* ns: arrival of the first message that is not reported as processed */
	bool ack_now;
	bool bye;      /* BYE of the peer has arrived */
	bool bye_sent; /* our BYE was posted */
	bool last_wqe; /* in the error state all receives have gone to the completion queue */
	uint64_t last_wqe_at; /* iface->empties when last_wqe was set */
	uint64_t last_rx_at;  /* ns: last evidence that the peer's process lives */
	bool received;        /* at least one message, count or acknowledgement has arrived */
	bool abandoned;       /* completions may still come: its memory stays until close() */
	bool lost; /* requests from lost_from on were not posted, and get no completion */
	uint32_t lost_from;
	uint32_t refused_at; /* number of the operation that caused the error, if refused < 0 */
	int refused;         /* status of that operation; 0 = none */
	uint64_t parked[ROCE_SQ_DEPTH / 64]; /* mask of slots that wait for roce_ep_reap() */
	bool in_acks, in_batch, in_wait;
	TAILQ_ENTRY(roce_chan) ack_link, batch_link, wait_link;
	struct roce_buf *rings[ROCE_MAX_RINGS]; /* NULL = not needed for the window */
	struct roce_slot *slots;
	struct roce_unacked *unacked;
	struct ibv_send_wr wr[WEFT_ROCE_BATCH];
	struct ibv_sge sge[WEFT_ROCE_BATCH][ROCE_MAX_SGE];
};

enum roce_lane_ep_state {
	ROCE_CREATED,
	ROCE_CONNECTING, /* a thread of the device connects it */
	ROCE_UP,
	ROCE_FAILED,  /* it has failed, or the peer has closed it; its owner has not destroyed it */
	ROCE_STOPPED, /* its owner has stopped it, and takes its messages for other lanes */
	ROCE_BYE,     /* destroyed: BYE was sent, and the close has not finished */
	ROCE_DRAIN,   /* destroyed: it waits for completions of queue pairs in the error state */
};

/** A flush waits for messages up to `sent`, and requests up to `tail`, on each queue pair. */
struct roce_flush {
	STAILQ_ENTRY(roce_flush) link;
	struct weft_lane_comp *comp;
	uint32_t sent[WEFT_ROCE_MAX_QPS], tail[WEFT_ROCE_MAX_QPS];
};

struct roce_lane_ep {
	struct weft_lane_ep base; /* first */
	enum roce_lane_ep_state state;
	uint8_t num_qps, next_qp;
	int status; /* 0, or after the end the error that calls return */
	int broken; /* errno of a post that the device refused; progress() then fails the lane */
	struct roce_chan *chans[WEFT_ROCE_MAX_QPS];
	STAILQ_HEAD(, roce_flush) flushes;
	LIST_ENTRY(roce_lane_ep) link; /* in iface->lane_eps; destroyed: in iface->dying */
	TAILQ_ENTRY(roce_lane_ep) connect_link;
	struct roce_job job;
	struct ibv_mr *word_mr;
	struct weft_roce_word *words;
	uint32_t psn;
	uint32_t remote_rkey, remote_psn, remote_qpn[WEFT_ROCE_MAX_QPS];
	uint8_t mtu, remote_reads;
	/* copy for the thread that connects; if the iface's index changes, the lane_ep ends */
	uint8_t sgid_index;
	uint8_t remote_gid[16];
	uint32_t promised; /* receive buffers that its queue pairs promise to the peer */
	uint64_t since;    /* ns: its end or destruction, or later the queue pairs' error state */
	bool connecting;   /* in iface->connecting: a thread owns its queue pairs */
	bool bye_due;      /* it ended while connecting, and must still send BYE */
	bool closing;      /* BYE was sent, and the close has not finished */
	bool reaped;       /* stopped, and the messages that the peer lacks were returned */
	struct weft_roce_close close;
	struct weft_roce_silence silence;
	uint8_t silent_checks; /* consecutive checks that found it silent, up to SILENT_CHECKS */
	char peer[48];
};

/** Queue pairs with 4096 consecutive numbers. */
struct roce_qpns {
	uint32_t used;
	struct roce_chan *chan[4096];
};

struct roce_notify {
	struct ibv_comp_channel *channel; /* NULL = none: nothing wakes the owner */
	bool requested;
	uint64_t empties; /* the interface's `empties` when the notification was requested */
};

struct roce_iface {
	struct weft_lane_iface base; /* first */
	char name[64], note[160], device[64];
	struct roce_dev *dev;
	unsigned int port;
	struct weft_roce_opts opts;
	struct weft_roce_gid gid;
	char gid_why[96], netdev[64];
	uint8_t mtu; /* path MTU, as IBTA code */
	bool failing;
	bool gid_gone; /* the address was removed: no new lanes until it returns */
	bool reports_last_wqe;
	struct roce_port_watch watched;
	uint64_t now, next_slow;
	uint64_t empties,
		empty_at; /* polls that left the completion queue empty; time of the last one */
	uint64_t empty_before; /* empty_at before the present poll */
	weft_lane_recv_cb recv;
	weft_lane_event_cb event;
	weft_lane_iface_event_cb iface_event;
	bool ended; /* the device is gone */
	void *arg;
	const struct weft_platform *platform;
	uint64_t keepalive_ns, give_up_ns;
	uint32_t max_inline, max_sge;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct roce_notify notify;
	uint64_t look_ns; /* after this time of sleep the owner checks counts of peers */
	/* requests that may still be added: the completion queue has an entry for each */
	uint32_t tx_room;
	uint32_t tx_total;
	uint32_t byes; /* queue pairs whose BYE may still be due: each has a place reserved */
	struct roce_pool rx_pool;
	uint32_t rx_total; /* buffers at most */
	uint32_t promised; /* sum of the queue pairs' windows, and one more (BYE) for each */
	uint32_t posted;   /* buffers in the shared receive queue */
	uint32_t kept;     /* buffers that the protocol layer keeps */
	struct roce_pool tx_pool, ring_pool;
	struct weft_mpool flush_pool;
	struct roce_qpns *by_qpn[4096];
	TAILQ_HEAD(, roce_chan) acks, batches, waits, graves;
	TAILQ_HEAD(, roce_lane_ep) connecting;
	LIST_HEAD(, roce_lane_ep) lane_eps;
	LIST_HEAD(, roce_lane_ep) dying;
	struct roce_watch watch;
	struct {
		ROCE_COUNTERS(WEFT_COUNTER_FIELD)
	} count;
};

static inline struct roce_iface *roce_iface_of(struct weft_lane_iface *iface)
{
	return (struct roce_iface *)iface;
}

static inline struct roce_lane_ep *roce_lane_ep_of(struct weft_lane_ep *lane_ep)
{
	return (struct roce_lane_ep *)lane_ep;
}

static inline struct roce_iface *roce_lane_ep_iface(const struct roce_lane_ep *lane_ep)
{
	return (struct roce_iface *)lane_ep->base.iface;
}

static inline struct weft_roce_names roce_names(const struct roce_lane_ep *lane_ep)
{
	return (struct weft_roce_names){.device = roce_lane_ep_iface(lane_ep)->dev->name,
					.peer = lane_ep->peer};
}

/** Has the completion queue places, in addition to those for BYE and @p reserve more? */
static inline bool roce_tx_room(const struct roce_iface *r, uint32_t reserve)
{
	return r->tx_room > r->byes + reserve;
}

/** Requests, and buffers, that a queue pair may have while any are left. */
#define ROCE_SHARE_MIN 8u

/**
 * May a queue pair that has @p mine take one more of the @p total that all share, of which @p left
 * are left? ROCE_SHARE_MIN are reserved for each queue pair, but at most half of the total. Beyond
 * ROCE_SHARE_MIN, a queue pair has at most half of the unreserved ones that are left. So some are
 * left for new queue pairs, also while many dead peers hold theirs until the device gives up.
 */
static inline bool roce_share(const struct roce_iface *r, uint32_t mine, uint32_t total,
			      uint32_t left)
{
	uint32_t kept = r->byes * ROCE_SHARE_MIN;

	if (kept > total / 2)
		kept = total / 2;
	return (left > kept && mine < (left - kept) / 2) || (mine < ROCE_SHARE_MIN && left > 0);
}

static inline bool roce_share_place(const struct roce_iface *r, const struct roce_chan *chan)
{
	return roce_share(r, chan->sq.head - chan->sq.tail, r->tx_total, r->tx_room - r->byes);
}

/** Handle events of the device, and do other rare work, if its time has come (roce_iface.c). */
void roce_slow(struct roce_iface *r);

extern const struct weft_lane_driver weft_roce_driver;
extern const struct weft_lane_driver weft_roce_ud_driver;

/** ns after the failure of a queue pair: requests that are still not complete are abandoned. */
#define ROCE_ABANDON_NS 1000000000

/**
 * Has a poll found no further completion when @p time had passed since @p since? The worker's clock
 * alone does not show that the device had this time: after a long pause of the worker, more
 * completions may wait than one poll takes.
 */
static inline bool roce_empty_since(const struct roce_iface *r, uint64_t since, uint64_t time)
{
	return r->empty_at >= since + time;
}

static inline bool roce_srq_may_keep(const struct roce_iface *r)
{
	/* If locked memory is short, the pool can't grow: it may have just the promised buffers. */
	return r->posted >= r->promised && r->kept + r->promised + 2 * ROCE_POLL < r->rx_total;
}

/** 8 bytes of a request: a count, or an atomic's result; in the first ring. */
static inline uint8_t *roce_slot_mem(const struct roce_chan *chan, const struct roce_slot *slot)
{
	return chan->rings[0]->data + ROCE_RING_PLACES * ROCE_PLACE +
	       (size_t)(slot->at & (ROCE_SQ_DEPTH - 1)) * 8;
}

static inline struct roce_buf *roce_ring_of(const struct roce_chan *chan, uint32_t n)
{
	return chan->rings[(n & chan->unacked_mask) / ROCE_RING_PLACES];
}

static inline uint8_t *roce_place(const struct roce_chan *chan, uint32_t n)
{
	return roce_ring_of(chan, n)->data + (size_t)(n & (ROCE_RING_PLACES - 1)) * ROCE_PLACE;
}

#endif /* WEFT_ROCE_H */
