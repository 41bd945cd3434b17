/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce.h
 * The RoCE driver's own objects. A *device* is one verbs device, opened once per process and shared
 * by workers (with its protection domain, so that a registration serves them all); an *iface* is
 * one port of it for one worker, with a completion queue and a shared receive queue; a *lane_ep* is
 * a connection; a *chan* is one of its queue pairs.
 *
 *	device.c   devices of the process, GID table, events of the device
 *	mem.c      registration, its keys and its cost; pools of registered buffers
 *	job.c      the threads for kernel calls that sleep (address resolution)
 *	port.c     a port of a device and its address: what both kinds of iface begin with
 *	iface.c    opening, attributes, progress, closing
 *	qp.c       lane_eps and their queue pairs: create
 *	connect.c  connect
 *	ends.c     fail, close, destroy; flush
 *	stop.c     lanes that die while others live: suspected, stopped, taken back
 *	srq.c      receive buffers
 *	recv.c     what arrives
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
 *	roce_addr.c  the gate for addresses and datagrams that come from peers (roce_wire.h)
 *	roce_close.h, roce_credit.h, roce_sq.h  logic of a queue pair: its end, messages under way,
 *	             places of the send queue
 *	roce_silence.h  how long a lane's device may keep requests without an answer
 *
 *	ud.c         the control channel (ud.h): opening, progress, closing
 *	ud_lep.c     its connections
 *	ud_table.c   which of them a datagram is for
 *	ud_cookie.c  who begins shows first that it has its address
 *	ud_data.c    datagrams
 */
#ifndef WEFT_ROCE_H
#define WEFT_ROCE_H

#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "lane.h"
#include "base/mpool.h"
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
 * Bytes that a message has for itself until the peer has processed it: all of a short one, or the
 * header of a zero-copy one and where the rest lies.
 */
#define ROCE_PLACE 192
#define ROCE_ZCOPY_HDR 80
#define ROCE_MAX_SGE 8
#define ROCE_SQ_DEPTH 128
/** Messages of a ring; behind their places are 8 bytes for each request of the send queue. */
#define ROCE_RING_PLACES 128
#define ROCE_RING_SIZE (ROCE_RING_PLACES * ROCE_PLACE + ROCE_SQ_DEPTH * 8)
#define ROCE_MAX_RINGS (WEFT_ROCE_WINDOW_MAX / ROCE_RING_PLACES)
#define ROCE_NO_MESSAGE 0xff /* struct roce_unacked: only an answer was requested */
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
 * A message that the peer has not processed: its bytes stay until then, for a lane that dies hands
 * them back. They lie in its place, or in the buffer, or where the user has them.
 */
struct roce_unacked {
	struct weft_lane_comp *comp; /* zero copy */
	struct roce_buf *buf;        /* bcopy */
	uint32_t bytes;
	uint8_t id;
	uint8_t hdr_len, iovcnt; /* zero copy; the iov is behind the header in the place */
};

static_assert(ROCE_ZCOPY_HDR % 16 == 0 &&
		      ROCE_ZCOPY_HDR + (ROCE_MAX_SGE - 1) * sizeof(struct iovec) <= ROCE_PLACE,
	      "a place holds what a zero-copy message is made of");

struct roce_chan {
	struct roce_lane_ep *lane_ep;
	struct ibv_qp *qp;
	struct weft_roce_credit credit;
	struct weft_roce_sq sq;
	uint32_t reads, max_reads; /* reads and atomics under way */
	uint32_t on_wire;          /* messages whose memory the hardware is done with; cumulative */
	uint32_t done;             /* min(on_wire, acked): messages that are over */
	uint32_t unacked_mask;
	volatile struct weft_roce_word *word; /* where the peer writes */
	uint32_t word_seen;                   /* what it was when it was checked last */
	uint64_t word_remote;
	uint64_t busy_since; /* ns: when the oldest request was posted, or the last one answered */
	uint64_t ack_since; /* ns: when the first message came that the peer has not been told of */
	bool ack_now;
	bool bye;      /* the peer's last word came */
	bool bye_said; /* ours was posted */
	bool last_wqe; /* in the error state, and all its receives are in the completion queue */
	uint64_t last_wqe_at; /* iface->empties, when that was learned */
	uint64_t heard_at;    /* ns: when the peer's process was heard last */
	bool heard;           /* something of the peer came */
	bool abandoned;       /* completions may still come: its memory stays until the end */
	bool lost; /* the device refused requests: those from lost_from on never come back */
	uint32_t lost_from;
	/* of a stopped lane: what failed by its own fault, and reads and such that wait for reap */
	uint32_t refused_at;
	int refused; /* < 0: with that */
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
	ROCE_CONNECTING, /* the thread is at it */
	ROCE_UP,
	ROCE_FAILED,  /* or closed by the peer; waits for its owner to destroy it */
	ROCE_STOPPED, /* by its owner, who has other lanes; what was sent is kept for them */
	ROCE_BYE,     /* destroyed: last words under way */
	ROCE_DRAIN,   /* destroyed: queue pairs in error, requests come back */
};

/** A flush waits until, on each queue pair, these are over. */
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
	/* a lane_ep ends when the iface's changes, but the thread may be at it */
	uint8_t sgid_index;
	uint8_t remote_gid[16];
	uint32_t promised; /* receive buffers */
	uint64_t since;    /* ns: FAILED, DRAIN: when it began, and the thread had let go */
	bool connecting;   /* in iface->connecting: its queue pairs are the thread's */
	bool bye_due;      /* it ended while connecting, and owes the peer a last word */
	bool closing;      /* last words are under way */
	bool reaped;       /* stopped, and what the peer has not got was handed out */
	struct weft_roce_close close;
	struct weft_roce_silence silence;
	uint8_t doubts; /* looks in a row that found no answer for too long */
	char peer[48];
};

/** 4096 queue pair numbers in a row. */
struct roce_qpns {
	uint32_t used;
	struct roce_chan *chan[4096];
};

/** How a device wakes an owner that sleeps: wait.c. */
struct roce_notify {
	struct ibv_comp_channel *channel; /* NULL = it does not */
	bool asked;                       /* the next completion is told of */
	uint64_t empties;                 /* when that was requested */
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
	bool gid_gone;       /* the address was removed: no new lanes until it is back */
	bool tells_last_wqe; /* the device reports QP_LAST_WQE_REACHED */
	struct roce_port_watch watched;
	uint64_t now, next_slow;
	uint64_t empties,
		empty_at;      /* polls that left the completion queue empty; now of the last one */
	uint64_t empty_before; /* and of the last one before this poll */
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
	uint64_t look_ns; /* an owner that sleeps checks counts after so long */
	/* requests that may still be under way: the completion queue holds them all */
	uint32_t tx_room;
	uint32_t tx_total;
	uint32_t byes; /* queue pairs whose last word may still be due: a place is kept for each */
	/* receive buffers */
	struct roce_pool rx_pool;
	uint32_t rx_total; /* buffers at most */
	uint32_t promised; /* sum of windows, with one more each */
	uint32_t posted;   /* in the shared queue */
	uint32_t kept;     /* at the protocol layer */
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

/** Has the completion queue places, besides those for last words and @p reserve more? */
static inline bool roce_tx_room(const struct roce_iface *r, uint32_t reserve)
{
	return r->tx_room > r->byes + reserve;
}

/** A queue pair may have so many requests, and buffers, under way whatever the others have. */
#define ROCE_SHARE_MIN 8u

/**
 * May a queue pair that has @p mine take one more of the @p total that all share, of which @p left
 * are left? The least share of each queue pair is kept, within half of all; of the rest each may
 * have half of what is left. So something is left for whoever comes: also when many peers answer
 * nothing until they are given up.
 */
static inline bool roce_share(const struct roce_iface *r, uint32_t mine, uint32_t total,
			      uint32_t left)
{
	uint32_t kept = r->byes * ROCE_SHARE_MIN;

	if (kept > total / 2)
		kept = total / 2;
	return (left > kept && mine < (left - kept) / 2) || (mine < ROCE_SHARE_MIN && left > 0);
}

/** Of the completion queue's places. */
static inline bool roce_share_place(const struct roce_iface *r, const struct roce_chan *chan)
{
	return roce_share(r, chan->sq.head - chan->sq.tail, r->tx_total, r->tx_room - r->byes);
}

/* iface.c, ud.c */
extern const struct weft_lane_driver weft_roce_driver;
extern const struct weft_lane_driver weft_roce_ud_driver;

/* port.c */

/** What opening an iface of either kind begins with: device, port, GID, path MTU. */
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

/** ns: a device that has given nothing back for so long is gone. */
#define ROCE_ABANDON_NS 1000000000

/**
 * Had the device the time from @p since on, and nothing of it waits for us? The worker's clock
 * alone says nothing: who was away for long finds more completions than one poll takes.
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
/** Reads and atomics under way per queue pair, by what the device can. */
unsigned int roce_reads_max(int device);
struct weft_roce_who roce_who(const struct roce_lane_ep *lane_ep);

/* connect.c */
int roce_ep_connect_ep(struct weft_lane_ep *lane_ep, const void *dev_addr, size_t dev_len,
		       const void *ep_addr, size_t ep_len);
/** Lane endpoints whose connecting has come to an end. @return events */
unsigned int roce_connect_progress(struct roce_iface *r);

/* stop.c */
uint64_t roce_ep_seen(const struct weft_lane_ep *lane_ep);
void roce_ep_check(struct weft_lane_ep *lane_ep);
int roce_ep_quiesce(struct weft_lane_ep *lane_ep, void *state);
int roce_ep_reap(struct weft_lane_ep *lane_ep, const void *state, size_t length,
		 weft_lane_reap_cb cb, void *arg);
/** The lane fails with @p status, unless its owner has others and stops it. */
void roce_lane_ep_lost(struct roce_lane_ep *lane_ep, int status, const char *text);
/** Does it look dead? Its owner is told. */
void roce_suspect_look(struct roce_lane_ep *lane_ep);
#define ROCE_PARKED 1
/**
 * What a read, write or atomic that comes back with @p status ends with, if the lane was stopped;
 * #ROCE_PARKED: not before roce_ep_reap(), or roce_stopped_destroy()
 */
int roce_stopped_status(struct roce_chan *chan, const struct roce_slot *slot, int status);
void roce_stopped_destroy(struct roce_lane_ep *lane_ep);

/* ends.c */
/** Its queue pairs are in the error state. @return 0 or the first one's error */
int roce_lane_ep_to_error(struct roce_lane_ep *lane_ep);
void roce_ep_destroy(struct weft_lane_ep *lane_ep);
int roce_ep_flush(struct weft_lane_ep *lane_ep, struct weft_lane_comp *comp);
/** The oldest flush that waits goes. @return its completion, or NULL */
struct weft_lane_comp *roce_flush_take(struct roce_lane_ep *lane_ep);
/** The lane is over: queue pairs to error; completions come back with @p status; then the event. */
void roce_lane_ep_fail(struct roce_lane_ep *lane_ep, enum weft_lane_event event, int status,
		       const char *text);
void roce_lane_ep_fail_wc(struct roce_lane_ep *lane_ep, struct roce_chan *chan,
			  enum ibv_wc_status status);
/** The peer's last word came on one of the queue pairs. */
void roce_lane_ep_bye(struct roce_lane_ep *lane_ep);
/** Last words are under way: is that over? Then its queue pairs are in error. */
bool roce_lane_ep_close(struct roce_lane_ep *lane_ep);
/**
 * The thread is through with a lane_ep that failed or was destroyed meanwhile; its queue pairs are
 * ours again.
 */
void roce_lane_ep_ended_meanwhile(struct roce_lane_ep *lane_ep);
/** Destroyed lane_eps go their way. */
void roce_reap(struct roce_iface *r);
void roce_flush_check(struct roce_lane_ep *lane_ep);

/* srq.c */
int roce_srq_open(struct roce_iface *r, char *why, size_t why_len);
/** Post until every promise is covered, as far as memory allows. */
void roce_srq_fill(struct roce_iface *r);
/** The same before a promise is given. @return 0, or a negative error: it must not be given */
int roce_srq_cover(struct roce_iface *r);
void roce_release(struct weft_lane_iface *iface, void *desc);
/** May the protocol layer keep the buffer? */
static inline bool roce_srq_may_keep(const struct roce_iface *r)
{
	/* A pool that can't grow, for want of locked memory, has no more than what is promised. */
	return r->posted >= r->promised && r->kept + r->promised + 2 * ROCE_POLL < r->rx_total;
}

/* recv.c */
void roce_recv(struct roce_iface *r, const struct ibv_wc *wc, struct roce_buf *buf);
/** Tell peers what was processed, where it is time. */
void roce_acks_send(struct roce_iface *r);
/** Check the words that peers write. @return true when something went on */
unsigned int roce_words_read(struct roce_iface *r);
struct roce_chan *roce_chan_find(const struct roce_iface *r, uint32_t qpn);
int roce_chan_enter(struct roce_iface *r, struct roce_chan *chan);
void roce_chan_leave(struct roce_iface *r, struct roce_chan *chan);

/* cq.c */
unsigned int roce_cq_poll(struct roce_iface *r);
/** Messages of @p chan that are over: completions, flushes. */
void roce_chan_done(struct roce_chan *chan);
/** Requests that will never come back from the device end with the lane_ep's status. */
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
/** Hand the batch to the device. */
void roce_chan_ring(struct roce_chan *chan);
/** Write our count into the peer's memory. @return 0 or -EAGAIN */
int roce_chan_tell(struct roce_chan *chan);
/** Ask the peer for a sign of life, if there is room. */
void roce_chan_ping(struct roce_chan *chan);
/** Last words. @return false = no place */
bool roce_chan_bye(struct roce_chan *chan);
/**
 * A place for a request with @p kind; its work request, cleared but for the links. The caller has
 * looked for room.
 */
struct ibv_send_wr *roce_chan_add(struct roce_chan *chan, enum roce_slot_kind kind,
				  struct roce_slot **slot);
/** The request is complete: ring now or later. */
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
/** Scatter entries for @p iov, which must lie in @p mem. @return total bytes or a negative error */
ssize_t roce_sge_fill(struct ibv_sge *sge, const struct iovec *iov, unsigned int iovcnt,
		      const struct weft_mem_lane *mem);

/* wait.c */
void roce_notify_open(struct roce_notify *n, struct ibv_context *ctx);
/** After the completion queue is gone. */
void roce_notify_close(struct roce_notify *n);
int roce_wait_fd(struct weft_lane_iface *base);
int roce_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns);
void roce_disarm(struct weft_lane_iface *base);
/** Something has come: what follows may come soon. */
void roce_look_soon(struct roce_iface *r);

/* async.c */
void roce_slow(struct roce_iface *r);

#endif /* WEFT_ROCE_H */
