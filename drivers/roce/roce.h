/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce.h
 * The objects of the RoCE driver. A *device* is one verbs device, opened once per process. Workers
 * share it with its protection domain, so that one registration serves all of them. An *iface* is
 * one port of it for one worker, with a completion queue and a shared receive queue. A *lane_ep* is
 * a connection, and a *chan* is one of its queue pairs.
 *
 *	device.c   devices of the process, GID table, events of the device
 *	mem.c      registration, its keys and its cost; pools of registered buffers
 *	job.c      the threads for kernel calls that sleep (address resolution)
 *  port.c     a port of a device and its address, for both kinds of iface
 *	iface.c    opening, attributes, progress, closing
 *	qp.c       lane_eps and their queue pairs: create
 *	connect.c  connect
 *	ends.c     fail, close, destroy; flush
 *  stop.c     lanes that die while others live: suspicion, stop, return of their messages
 *	srq.c      receive buffers
 *  recv.c     the receive path
 *	cq.c       completions
 *	send.c     messages
 *	rma.c      remote reads, writes, atomics
 *	async.c    events of the device become events of lanes
 *	route.c    which peers can be reached
 *	wait.c     owners that sleep until something completes
 *
 *	roce_opts.c  options of a lane
 *	roce_gid.c   which entry of the GID table a lane uses
 *	roce_text.c  message texts: completion errors, events
 *  roce_addr.c  validation of addresses and datagrams from peers (roce_wire.h)
 *  roce_close.h, roce_credit.h, roce_sq.h  logic of a queue pair: its end, outstanding messages,
 *               places of the send queue
 *  roce_silence.h  the time for which a device may not complete requests without suspicion
 *
 *	ud.c         the control channel (ud.h): opening, progress, closing
 *	ud_lep.c     its connections
 *  ud_table.c   finds the connection of a datagram
 *  ud_cookie.c  initiators prove that they receive at their address
 *	ud_data.c    datagrams
 */
#ifndef WEFT_ROCE_H
#define WEFT_ROCE_H

#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "base/container.h"
#include "lane.h"
#include "roce_close.h"
#include "roce_counters.h"
#include "roce_credit.h"
#include "roce_dev.h"
#include "roce_gid.h"
#include "roce_mem.h"
#include "roce_opts.h"
#include "roce_silence.h"
#include "roce_sq.h"
#include "roce_text.h"
#include "roce_wire.h"

/* ------------------------------------------------------------------ connection */

/**
 * Bytes of a place, which belong to a message until the peer has processed it. They have all of a
 * short message, or the header of a zero-copy message and the iov of its payload.
 */
#define ROCE_PLACE 192
#define ROCE_ZCOPY_HDR 80
#define ROCE_MAX_SGE 8
#define ROCE_SQ_DEPTH 128
/** Messages of a ring; after their places are 8 bytes for each request of the send queue. */
#define ROCE_RING_PLACES 128
#define ROCE_RING_SIZE (ROCE_RING_PLACES * ROCE_PLACE + ROCE_SQ_DEPTH * 8)
#define ROCE_MAX_RINGS (WEFT_ROCE_WINDOW_MAX / ROCE_RING_PLACES)
#define ROCE_NO_MESSAGE 0xff /* struct roce_unacked: a request without a message */
#define ROCE_POLL 32

enum roce_slot_kind {
	ROCE_SLOT_SEND,
	ROCE_SLOT_WORD,
	ROCE_SLOT_READ,
	ROCE_SLOT_WRITE,
	ROCE_SLOT_AMO
};

/** One request on a send queue. */
struct roce_slot {
	struct roce_chan *chan;
	struct weft_lane_comp *comp; /* remote memory */
	uint64_t *result;            /* atomics */
	uint32_t at;                 /* its number */
	uint32_t sent;               /* SEND: messages sent, this one included */
	uint32_t bytes;
	uint8_t kind;
};

/**
 * A message that the peer has not processed. Its bytes stay until then, because a lane that dies
 * returns them to be sent over others. They are in its place, in a buffer, or in the user's memory.
 */
struct roce_unacked {
	struct weft_lane_comp *comp; /* zero copy */
	struct roce_buf *buf;        /* bcopy */
	uint32_t bytes;
	uint8_t id;
	uint8_t hdr_len, iovcnt; /* zero copy; the iov follows the header in the place */
};

static_assert(ROCE_ZCOPY_HDR % 16 == 0 &&
		      ROCE_ZCOPY_HDR + (ROCE_MAX_SGE - 1) * sizeof(struct iovec) <= ROCE_PLACE,
	      "a place holds what a zero-copy message is made of");

struct roce_chan {
	struct roce_lane_ep *lane_ep;
	struct ibv_qp *qp;
	struct weft_roce_credit credit;
	struct weft_roce_sq sq;
	uint32_t reads, max_reads; /* outstanding reads and atomics */
	uint32_t on_wire;          /* messages that the device has completed; cumulative */
	uint32_t done;             /* min(on_wire, acked): messages that are complete */
	uint32_t unacked_mask;
	volatile struct weft_roce_word *word; /* written by the peer */
	uint32_t word_seen;                   /* its value at the last check */
	uint64_t word_remote;
	uint64_t busy_since; /* ns: post of the oldest request, or the last completion */
	uint64_t ack_since; /* ns: arrival of the first message that is not reported as processed */
	bool ack_now;
	bool bye;      /* BYE of the peer has arrived */
	bool bye_sent; /* our BYE was posted */
	bool last_wqe; /* in the error state, and all its receives are in the completion queue */
	uint64_t last_wqe_at; /* iface->empties at that time */
	uint64_t last_rx_at;  /* ns: last evidence that the peer's process lives */
	bool received;        /* at least one message, count or acknowledgement has arrived */
	bool abandoned;       /* completions may still come: its memory stays until the end */
	bool lost; /* the device refused requests: those from lost_from on get no completion */
	uint32_t lost_from;
	/* of a stopped lane: the operation that caused the error, and operations kept for reap */
	uint32_t refused_at;
	int refused; /* < 0: its status */
	uint64_t parked[ROCE_SQ_DEPTH / 64];
	bool in_acks, in_batch, in_wait;
	TAILQ_ENTRY(roce_chan) ack_link, batch_link, wait_link;
	struct roce_buf *rings[ROCE_MAX_RINGS]; /* the first one always */
	struct roce_slot *slots;
	struct roce_unacked *unacked;
	struct ibv_send_wr wr[WEFT_ROCE_BATCH];
	struct ibv_sge sge[WEFT_ROCE_BATCH][ROCE_MAX_SGE];
};

enum roce_lane_ep_state {
	ROCE_CREATED,
	ROCE_CONNECTING, /* the thread connects it */
	ROCE_UP,
	ROCE_FAILED,  /* or closed by the peer; waits for its owner to destroy it */
	ROCE_STOPPED, /* by its owner, which has other lanes; its messages are kept for them */
	ROCE_BYE,     /* destroyed: BYE was sent and is not complete */
	ROCE_DRAIN,   /* destroyed: queue pairs in error, requests complete */
};

/** A flush waits until, on each queue pair, messages up to these numbers are complete. */
struct roce_flush {
	STAILQ_ENTRY(roce_flush) link;
	struct weft_lane_comp *comp;
	uint32_t sent[WEFT_ROCE_MAX_QPS], tail[WEFT_ROCE_MAX_QPS];
};

struct roce_lane_ep {
	struct weft_lane_ep base; /* first */
	enum roce_lane_ep_state state;
	uint8_t num_qps, next_qp;
	int status; /* why it failed */
	int broken; /* the device refused a request, in a call that may not report events */
	struct roce_chan *chans[WEFT_ROCE_MAX_QPS];
	STAILQ_HEAD(, roce_flush) flushes;
	LIST_ENTRY(roce_lane_ep) link; /* iface->lane_eps, or iface->dying */
	TAILQ_ENTRY(roce_lane_ep) connect_link;
	struct roce_job job;
	struct ibv_mr *word_mr;
	struct weft_roce_word *words;
	uint32_t psn;
	uint32_t remote_rkey, remote_psn, remote_qpn[WEFT_ROCE_MAX_QPS];
	uint8_t mtu, remote_reads;
	/* a copy for the thread: the lane_ep ends when the index of the iface changes */
	uint8_t sgid_index;
	uint8_t remote_gid[16];
	uint32_t promised; /* receive buffers */
	uint64_t since;    /* ns: begin of FAILED or DRAIN, after the thread has finished */
	bool connecting;   /* in iface->connecting: the thread owns its queue pairs */
	bool bye_due;      /* it ended while connecting, and must still send BYE */
	bool closing;      /* BYE was sent and is not complete */
	bool reaped;       /* stopped, and the messages that the peer lacks were returned */
	struct weft_roce_close close;
	struct weft_roce_silence silence;
	uint8_t silent_checks; /* consecutive checks that found it silent for too long */
	char peer[48];
};

/** 4096 consecutive queue pair numbers. */
struct roce_qpns {
	uint32_t used;
	struct roce_chan *chan[4096];
};

/** How a device wakes a sleeping owner: wait.c. */
struct roce_notify {
	struct ibv_comp_channel *channel; /* NULL = it can't */
	/* a notification of the next completion is requested */
	bool requested;
	uint64_t empties; /* iface->empties at that request */
};

struct roce_iface {
	struct weft_lane_iface base; /* first */
	struct roce_dev *dev;
	unsigned int port;
	struct weft_roce_opts opts;
	struct weft_roce_gid gid;
	char gid_why[96], netdev[64];
	uint8_t mtu; /* IBTA code */
	bool failing;
	bool gid_gone;         /* the address was removed: no new lanes until it returns */
	bool reports_last_wqe; /* the device reports QP_LAST_WQE_REACHED */
	struct roce_port_watch watched;
	uint64_t now, next_slow;
	uint64_t empties,
		empty_at; /* polls that left the completion queue empty; time of the last one */
	uint64_t empty_before; /* time of the last one before this poll */
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
	uint64_t look_ns; /* a sleeping owner checks counts after this time */
	/* requests that may still be posted: the completion queue has an entry for each */
	uint32_t tx_room;
	uint32_t tx_total;
	uint32_t byes; /* queue pairs whose BYE may still be due: each has a place reserved */
	/* receive buffers */
	struct roce_pool rx_pool;
	uint32_t rx_total; /* buffers at most */
	uint32_t promised; /* sum of windows, with one more each */
	uint32_t posted;   /* in the shared queue */
	uint32_t kept;     /* by the protocol layer */
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

/** Has the completion queue places, in addition to those for BYE and @p reserve more? */
static inline bool roce_tx_room(const struct roce_iface *r, uint32_t reserve)
{
	return r->tx_room > r->byes + reserve;
}

/** Requests, and buffers, that a queue pair may always have, whatever the others have. */
#define ROCE_SHARE_MIN 8u

/**
 * May a queue pair that has @p mine take one more of the @p total that all share, of which @p left
 * are left? Half of the total guarantees each queue pair a minimum. Of the other half, each may
 * have half of what is left. So some are always left for new queue pairs, also while many dead
 * peers hold theirs until the device gives up.
 */
static inline bool roce_share(const struct roce_iface *r, uint32_t mine, uint32_t total,
			      uint32_t left)
{
	uint32_t kept = r->byes * ROCE_SHARE_MIN;

	if (kept > total / 2)
		kept = total / 2;
	return (left > kept && mine < (left - kept) / 2) || (mine < ROCE_SHARE_MIN && left > 0);
}

/** The same for places of the completion queue. */
static inline bool roce_share_place(const struct roce_iface *r, const struct roce_chan *chan)
{
	return roce_share(r, chan->sq.head - chan->sq.tail, r->tx_total, r->tx_room - r->byes);
}

/* iface.c, ud.c */
extern const struct weft_lane_driver weft_roce_driver;
extern const struct weft_lane_driver weft_roce_ud_driver;

/* port.c */

/** Properties that both kinds of iface share: device, port, GID, path MTU. */
struct roce_port_info {
	struct roce_dev *dev;
	unsigned int port;
	struct weft_roce_opts opts;
	struct ibv_port_attr attr;
	struct weft_roce_gid gid;
	uint8_t mtu;
	char why[96], netdev[64];
};

int roce_port_open(const struct weft_lane_open *params, struct roce_port_info *info, char *why,
		   size_t why_len);
void roce_addr_fill(struct weft_roce_addr *addr, enum weft_roce_kind kind, const uint8_t gid[16],
		    uint8_t mtu, uint32_t seg);
/** is_reachable() and print_address() of both kinds. */
int roce_reachable(const struct weft_roce_gid *own, bool gone, const char *netdev,
		   enum weft_roce_kind kind, const void *addr, size_t len, char *why,
		   size_t why_len);
void roce_print_address(const void *addr, size_t len, char *buf, size_t size);

/** ns: a device that has completed nothing for this time is gone. */
#define ROCE_ABANDON_NS 1000000000

/**
 * Has the device had the time from @p since on, without completions that wait for us? The worker's
 * clock alone is not enough: after a long pause of the worker, more completions may wait than one
 * poll takes.
 */
static inline bool roce_empty_since(const struct roce_iface *r, uint64_t since, uint64_t time)
{
	return r->empty_at >= since + time;
}

/* qp.c */
int roce_ep_create(struct weft_lane_iface *iface, void *user, struct weft_lane_ep **lane_ep);
void roce_ep_get_address(struct weft_lane_ep *lane_ep, void *buf);
void roce_chan_free(struct roce_iface *r, struct roce_chan *chan);
void roce_lane_ep_free(struct roce_lane_ep *lane_ep);
/** Outstanding reads and atomics per queue pair, from the limit of the device. */
unsigned int roce_reads_max(int device);
struct weft_roce_names roce_names(const struct roce_lane_ep *lane_ep);

/* connect.c */
int roce_ep_connect_ep(struct weft_lane_ep *lane_ep, const void *dev_addr, size_t dev_len,
		       const void *ep_addr, size_t ep_len);
/** Handle lane_eps that have connected, or failed to. @return events */
unsigned int roce_connect_progress(struct roce_iface *r);

/* stop.c */
uint64_t roce_ep_seen(const struct weft_lane_ep *lane_ep);
void roce_ep_check(struct weft_lane_ep *lane_ep);
int roce_ep_quiesce(struct weft_lane_ep *lane_ep, void *state);
int roce_ep_reap(struct weft_lane_ep *lane_ep, const void *state, size_t length,
		 weft_lane_reap_cb cb, void *arg);
/** Fail the lane with @p status, unless its owner has others and stops it. */
void roce_lane_ep_lost(struct roce_lane_ep *lane_ep, int status, const char *text);
/** Check whether the lane seems dead; report that to its owner. */
void roce_suspect_look(struct roce_lane_ep *lane_ep);
#define ROCE_PARKED 1
/**
 * The final status of a read, write or atomic that has completed with @p status, if the lane was
 * stopped. #ROCE_PARKED: it is open until roce_ep_reap() or roce_stopped_destroy()
 */
int roce_stopped_status(struct roce_chan *chan, const struct roce_slot *slot, int status);
void roce_stopped_destroy(struct roce_lane_ep *lane_ep);

/* ends.c */
/** Put its queue pairs into the error state. @return 0 or the first one's error */
int roce_lane_ep_to_error(struct roce_lane_ep *lane_ep);
void roce_ep_destroy(struct weft_lane_ep *lane_ep);
int roce_ep_flush(struct weft_lane_ep *lane_ep, struct weft_lane_comp *comp);
/** Remove the oldest flush that waits. @return its completion, or NULL */
struct weft_lane_comp *roce_flush_take(struct roce_lane_ep *lane_ep);
/** End the lane: queue pairs to error, completions with @p status, then the event. */
void roce_lane_ep_fail(struct roce_lane_ep *lane_ep, enum weft_lane_event event, int status,
		       const char *text);
void roce_lane_ep_fail_wc(struct roce_lane_ep *lane_ep, struct roce_chan *chan,
			  enum ibv_wc_status status);
/** BYE of the peer has arrived on one of the queue pairs. */
void roce_lane_ep_bye(struct roce_lane_ep *lane_ep);
/** BYE was sent: has the close finished? Then its queue pairs are in the error state. */
bool roce_lane_ep_close(struct roce_lane_ep *lane_ep);
/**
 * The thread has finished with a lane_ep that had failed or been destroyed before. The worker owns
 * its queue pairs again.
 */
void roce_lane_ep_ended_meanwhile(struct roce_lane_ep *lane_ep);
/** Advance destroyed lane_eps, and free those that are drained. */
void roce_reap(struct roce_iface *r);
void roce_flush_check(struct roce_lane_ep *lane_ep);

/* srq.c */
int roce_srq_open(struct roce_iface *r, char *why, size_t why_len);
/** Post buffers until all promised windows are covered, as far as memory allows. */
void roce_srq_fill(struct roce_iface *r);
/** The same before a window is promised. @return 0, or a negative error: do not promise it */
int roce_srq_cover(struct roce_iface *r);
void roce_release(struct weft_lane_iface *iface, void *desc);
/** May the protocol layer keep the buffer? */
static inline bool roce_srq_may_keep(const struct roce_iface *r)
{
	/* A pool that can't grow, without more locked memory, has only the promised buffers. */
	return r->posted >= r->promised && r->kept + r->promised + 2 * ROCE_POLL < r->rx_total;
}

/* recv.c */
void roce_recv(struct roce_iface *r, const struct ibv_wc *wc, struct roce_buf *buf);
/** Send counts of processed messages to peers, where they are due. */
void roce_acks_send(struct roce_iface *r);
/** Read the words that peers write. @return number of new counts */
unsigned int roce_words_read(struct roce_iface *r);
struct roce_chan *roce_chan_find(const struct roce_iface *r, uint32_t qpn);
int roce_chan_enter(struct roce_iface *r, struct roce_chan *chan);
void roce_chan_leave(struct roce_iface *r, struct roce_chan *chan);

/* cq.c */
unsigned int roce_cq_poll(struct roce_iface *r);
/** End messages of @p chan that are complete: call their completions, check flushes. */
void roce_chan_done(struct roce_chan *chan);
/** End requests that the device will not complete, with the lane_ep's status. */
void roce_chan_abandon(struct roce_chan *chan, uint32_t from);

/* send.c */
int roce_am_short(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		  const void *payload, size_t length);
ssize_t roce_am_bcopy(struct weft_lane_ep *lane_ep, uint8_t am_id, weft_lane_pack_cb pack,
		      void *arg);
int roce_am_zcopy(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		  const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		  struct weft_lane_comp *comp);
void roce_tx_flush(struct weft_lane_iface *iface);
/** Post the batch to the device. */
void roce_chan_ring(struct roce_chan *chan);
/** Write our count into the peer's memory. @return 0 or -EAGAIN */
int roce_chan_count_send(struct roce_chan *chan);
/** Send PING, which the peer's process must acknowledge, if there is space. */
void roce_chan_ping(struct roce_chan *chan);
/** Send BYE. @return false = no place */
bool roce_chan_bye(struct roce_chan *chan);
/**
 * Take a place for a request of @p kind. The caller has checked that there is one. @return its work
 * request, with all but the links cleared
 */
struct ibv_send_wr *roce_chan_add(struct roce_chan *chan, enum roce_slot_kind kind,
				  struct roce_slot **slot);
/** The request is filled in: post it now or with the batch. */
void roce_chan_commit(struct roce_chan *chan);

/** 8 bytes of a request: a count, or an atomic's result; in the first ring. */
static inline uint8_t *roce_slot_mem(const struct roce_chan *chan, const struct roce_slot *slot)
{
	return chan->rings[0]->data + ROCE_RING_PLACES * ROCE_PLACE +
	       (size_t)(slot->at & (ROCE_SQ_DEPTH - 1)) * 8;
}

/** The ring that message number @p n has its place in. */
static inline struct roce_buf *roce_ring_of(const struct roce_chan *chan, uint32_t n)
{
	return chan->rings[(n & chan->unacked_mask) / ROCE_RING_PLACES];
}

static inline uint8_t *roce_place(const struct roce_chan *chan, uint32_t n)
{
	return roce_ring_of(chan, n)->data + (size_t)(n & (ROCE_RING_PLACES - 1)) * ROCE_PLACE;
}

/* rma.c */
int roce_get_zcopy(struct weft_lane_ep *lane_ep, const struct iovec *iov, unsigned int iovcnt,
		   struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
		   struct weft_lane_comp *comp);
int roce_put_zcopy(struct weft_lane_ep *lane_ep, const struct iovec *iov, unsigned int iovcnt,
		   struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
		   struct weft_lane_comp *comp);
int roce_amo64(struct weft_lane_ep *lane_ep, enum weft_lane_amo op, uint64_t operand,
	       uint64_t compare, uint64_t *result, uint64_t remote_offset, uint64_t key,
	       struct weft_lane_comp *comp);
/** Fill scatter entries from @p iov, which must be in @p mem. @return total bytes or an error */
ssize_t roce_sge_fill(struct ibv_sge *sge, const struct iovec *iov, unsigned int iovcnt,
		      const struct weft_mem_lane *mem);

/* wait.c */
void roce_notify_open(struct roce_notify *n, struct ibv_context *ctx);
/** Call it after the completion queue is destroyed. */
void roce_notify_close(struct roce_notify *n);
int roce_wait_fd(struct weft_lane_iface *base);
int roce_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns);
void roce_disarm(struct weft_lane_iface *base);
/** A message or completion has arrived: check counts soon, as more may follow. */
void roce_look_soon(struct roce_iface *r);

/* async.c */
void roce_slow(struct roce_iface *r);

#endif /* WEFT_ROCE_H */
