/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/lane_thread_priv.h
 * The structs of the prototype, and the two rings between the worker's thread and the lane's.
 */
#ifndef MOCK_LANE_THREAD_PRIV_H
#define MOCK_LANE_THREAD_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "mock/lane_thread.h"

#define LT_CMDS 128u   /* sends and flushes of an iface that are under way to the inner driver */
#define LT_EP_CMDS 64u /* of one lane_ep */
#ifndef LT_RECS        /* a test has a small ring */
#define LT_RECS 1024u
#endif
#define LT_GIFTS 8192u
#define LT_IOV 2u

/* ------------------------------------------------------------------ rings */

/* One producer, one consumer. Both indices only grow. */
struct lt_index {
	_Alignas(64) _Atomic uint32_t head; /* written by the producer */
	uint32_t tail_seen;                 /* the producer's copy of tail */
	_Alignas(64) _Atomic uint32_t tail; /* written by the consumer */
	uint32_t head_seen;                 /* the consumer's copy of head */
};

/* Producer. @return false: the ring of @p size is full; else *at is the index to write to */
static inline bool lt_may_put(struct lt_index *x, uint32_t size, uint32_t *at)
{
	/* Relaxed: this thread writes head. */
	uint32_t head = atomic_load_explicit(&x->head, memory_order_relaxed);

	if (head - x->tail_seen == size) {
		/* Acquire: the consumer has read the entry that is overwritten. */
		x->tail_seen = atomic_load_explicit(&x->tail, memory_order_acquire);
		if (head - x->tail_seen == size)
			return false;
	}
	*at = head & (size - 1);
	return true;
}

static inline void lt_put(struct lt_index *x)
{
	uint32_t head = atomic_load_explicit(&x->head, memory_order_relaxed);

	/* Release: the entry, and what it refers to, is written. */
	atomic_store_explicit(&x->head, head + 1, memory_order_release);
}

/* Consumer. @return false: the ring is empty; else *at is the index to read from */
static inline bool lt_may_get(struct lt_index *x, uint32_t size, uint32_t *at)
{
	/* Relaxed: this thread writes tail. */
	uint32_t tail = atomic_load_explicit(&x->tail, memory_order_relaxed);

	if (tail == x->head_seen) {
		/* Acquire: the entries before head are written. */
		x->head_seen = atomic_load_explicit(&x->head, memory_order_acquire);
		if (tail == x->head_seen)
			return false;
	}
	*at = tail & (size - 1);
	return true;
}

static inline void lt_got(struct lt_index *x)
{
	uint32_t tail = atomic_load_explicit(&x->tail, memory_order_relaxed);

	/* Release: the entry was read. */
	atomic_store_explicit(&x->tail, tail + 1, memory_order_release);
}

/* ------------------------------------------------------------------ objects */

struct lt_ep;
struct lt_iface;

enum lt_kind { LT_SEND, LT_ZSEND, LT_FLUSH };

/*
 * A send or a flush, from the worker to the inner driver and back. A short header is in the second
 * cache line, and the lane's thread reads no other.
 */
struct lt_cmd {
	_Alignas(64) struct weft_lane_comp own; /* the inner driver's */
	struct lt_ep *ep;
	STAILQ_ENTRY(lt_cmd) link; /* free, or in the backlog of ep */
	struct weft_mem_lane *mem;
	enum lt_kind kind;
	uint8_t am_id;
	uint32_t hdr_len, iovcnt, length; /* length: of the whole message */
	struct iovec iov[LT_IOV];
	struct weft_lane_comp *comp; /* the worker's; NULL = none */
	LIST_ENTRY(lt_cmd) flush;    /* of ep */
	uint8_t data[];              /* header, or the whole message */
};

/* From the lane's thread to the worker: one cache line. */
#define LT_HDR 24u
enum lt_what { LT_MSG, LT_PLACED, LT_DONE, LT_EVENT, LT_IFACE_EVENT };

struct lt_rec {
	_Alignas(64) uint8_t what, am_id;
	uint16_t hdr_len;
	int32_t status; /* or the event of an iface */
	enum weft_lane_event event;
	uint32_t length;
	struct lt_ep *ep;
	const void *data;    /* or the text of an event, which the worker frees */
	void *p;             /* desc, or the command */
	uint8_t hdr[LT_HDR]; /* LT_PLACED */
};

struct lt_spill {
	STAILQ_ENTRY(lt_spill) link;
	struct lt_rec rec;
};

struct lt_ep {
	struct weft_lane_ep base; /* first */
	struct lt_iface *lt;
	/* the owner's */
	struct weft_lane_ep *inner; /* NULL: not connected yet */
	LIST_ENTRY(lt_ep) link;
	STAILQ_HEAD(, lt_cmd) backlog; /* that inner has had no room for */
	int saved_len;                 /* of saved: quiesced by the thread, 0 = not */
	uint8_t saved[WEFT_LANE_STATE_MAX];
	/* the worker's */
	LIST_HEAD(, lt_cmd) flushes;
	TAILQ_ENTRY(lt_ep) cold; /* of lt->cold */
	bool in_cold;
	bool dead;     /* destroyed */
	bool stopping; /* ep_quiesce() was called while the iface was away */
	bool final;    /* the thread has stopped it, and its last message is delivered */
	bool stopped;
	bool check;
	int error;
	uint32_t refs; /* commands, and the lane_ep itself */
	uint32_t posted;
	uint32_t addr_len; /* of a connect that waits for the iface; 0 = none */
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	/*
	 * Written by the owner, if they have changed, and read by the worker: hints, each on its
	 * own, so relaxed.
	 */
	_Alignas(64) _Atomic uint32_t taken, queued, rtt_ns, max_msg, retransmits, best;
	_Atomic uint64_t seen;
	_Atomic bool tx_room;
	_Alignas(64) uint32_t taken_now; /* the owner's */
};

struct lt_iface {
	struct weft_lane_iface base; /* first */
	struct weft_lane_ops ops;
	struct weft_lane_open open; /* as the worker gave it */
	struct lane_thread_conf conf;
	struct weft_lane_iface *inner;
	LIST_HEAD(, lt_ep) eps; /* the owner's */
	size_t room;            /* of lt_cmd.data */

	/* the worker's */
	bool home, held;
	uint64_t now, cold_at;
	STAILQ_HEAD(, lt_cmd) free;
	TAILQ_HEAD(, lt_ep) cold;  /* connects and ends that wait for the iface */
	LIST_HEAD(, lt_ep) graves; /* freed by the next progress() */
	void **late;               /* buffers that found the ring full */
	size_t num_late, max_late;
	struct lane_thread_count count;
	pthread_t thread;

	/* the owner's */
	_Alignas(64) STAILQ_HEAD(, lt_spill) spill; /* that found the ring full */
	bool come_home;

	_Alignas(64) _Atomic bool ask; /* the worker wants the iface */
	_Atomic bool stop;
	/*
	 * The iface is at home, or has arrived there: the only word by which it changes hands. The
	 * lane's thread sets it, the worker clears it.
	 */
	_Alignas(64) _Atomic bool parked;

	struct lt_index cmd_at, rec_at, gift_at;
	struct lt_cmd *cmd[LT_CMDS]; /* to the thread */
	void *gift[LT_GIFTS];        /* to the thread: buffers back */
	struct lt_rec rec[LT_RECS];  /* to the worker */
};

static inline struct lt_iface *lt_of(const struct weft_lane_iface *iface)
{
	return (struct lt_iface *)iface;
}

static inline struct lt_ep *lt_ep_of(const struct weft_lane_ep *lane_ep)
{
	return (struct lt_ep *)lane_ep;
}

/* ------------------------------------------------------------------ functions */

/* lane_thread_owner.c: what the owner of the inner iface does */

/* The callbacks that the inner driver gets. */
int lt_recv(void *arg, struct weft_lane_ep *inner, uint8_t am_id, const void *data, size_t length,
	    void *desc);
void lt_event(void *arg, struct weft_lane_ep *inner, enum weft_lane_event ev, int status,
	      const char *text);
void lt_iface_event(void *arg, struct weft_lane_iface *inner, enum weft_lane_iface_event ev,
		    const char *text);
void lt_comp_done(struct weft_lane_comp *comp, int status);

struct lt_ep *lt_ep_new(struct lt_iface *lt, void *user);
/* Take what the worker has put into the rings. */
void lt_take_in(struct lt_iface *lt);
/* One round: sends, progress. */
unsigned int lt_round(struct lt_iface *lt, uint64_t now);
/* @return 0, -EAGAIN or an error, after which there is no completion */
int lt_try(struct lt_cmd *c);
void lt_publish(struct lt_ep *ep);
void lt_buf_free(struct lt_iface *lt, void *desc);

/* lane_thread.c: the worker */

int lt_deliver(struct lt_iface *lt, struct lt_ep *ep, uint8_t am_id, const void *data,
	       size_t length, void *desc);
void lt_cmd_over(struct lt_iface *lt, struct lt_cmd *c, int status);
void lt_event_in(struct lt_iface *lt, struct lt_ep *ep, enum weft_lane_event ev, int status,
		 const char *text);

/* lane_thread_conn.c: the worker's calls that need the iface at home */

extern const struct weft_lane_ops lt_conn_ops;
void lt_cold(struct lt_iface *lt);
/* The iface has arrived, and all records of the ring have been handled. */
void lt_arrived(struct lt_iface *lt);
void lt_ep_put(struct lt_ep *ep);
void lt_end_all(struct lt_iface *lt);

#endif /* MOCK_LANE_THREAD_PRIV_H */
