/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/worker.h
 * One progress engine: its interfaces, its endpoints, its lock. Fields are grouped by the path that
 * reads them; the comment above each group names the path.
 */
#ifndef WEFT_WORKER_H
#define WEFT_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/counters.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "core/context.h"
#include "lane.h"
#include "weft.h"

struct weft_conns;      /* connection state: wireup/state.h */
struct weft_connects;   /* listen.c */
struct weft_ep;         /* core/endpoint.h */
struct weft_ep_events;  /* core/endpoint.h */
struct weft_msg_worker; /* state of the message layer: msg/state.h */
struct weft_question;   /* base/question.h */
struct weft_worker;

/* ------------------------------------------------------------------ waking */

/*
 * The state of a worker that waits (wait.h), and how its sleeping threads are woken. Every call
 * that takes the worker's lock refers to it, and needs nothing else of waiting.
 */

/** State of a worker that has waited at least once: wait.c. */
struct weft_wait {
	int epoll, timer, event;
	uint32_t in_epoll;     /* bit i: ifaces[i] wakes */
	uint32_t armed_ifaces; /* bit i: arm() of ifaces[i] was called */
	uint64_t timer_at;     /* time of the timer; NEVER = not set */
	uint64_t armed_at;     /* when it was armed last */
	bool by_timer;         /* the timer alone has ended the sleep */
	uint64_t sleep;        /* next sleep, if a lane cannot wake the worker */
	unsigned int sleepers; /* threads that sleep in weft_worker_wait() */
	pthread_t armer;       /* thread that armed it */
	bool others;           /* another thread than those that wait has called progress */
	bool roused;           /* sleepers must return: the eventfd was written */
	/*
	 * Number of wake-ups whose last sleeper has left. Written with both locks, the worker's
	 * first; read with one of them.
	 */
	uint64_t wakeups;
	pthread_mutex_t left_lock;
	pthread_cond_t left; /* by the monotonic clock */
	/*
	 * Adaptive polling. spin_skip: number of further waits that do not poll. spin_backoff: the
	 * value of spin_skip after the last poll. A poll without result doubles it, up to
	 * SPIN_SKIP_MAX (0 becomes 1).
	 */
	unsigned int spin_skip, spin_backoff;
};

/** Wake a sleeping thread for one progress call; then it sleeps on. Any thread; not locked. */
void weft_wait_nudge(struct weft_worker *w);
/** Rouse sleeping threads, because a call has changed state that they may wait for. Locked. */
void weft_wait_rouse(struct weft_worker *w);

/* ------------------------------------------------------------------ worker */

#define WEFT_MAX_IFACES 16

/** Counters of the connection layer; the message layer has its own (msg/state.h). */
#define WEFT_WORKER_COUNTERS(X)                                                                  \
	X(eps_created, "ep.created", "Endpoints created.")                                       \
	X(eps_accepted, "ep.accepted", "Endpoints made because a peer connected.")               \
	X(eps_failed, "ep.failed", "Endpoints that failed.")                                     \
	X(lanes_lost, "ep.lanes_lost", "Lanes that died while their endpoint went on.")          \
	X(lanes_back, "ep.lanes_back", "Lanes that came back to their endpoint.")                \
	X(wireup_bad, "wireup.drop.bad",                                                         \
	  "Wire-up messages dropped: malformed, or of another version.")                         \
	X(wireup_stale, "wireup.drop.stale",                                                     \
	  "Wire-up messages dropped: for an endpoint that is gone.")                             \
	X(wireup_denied, "wireup.denied", "Requests to connect denied: wrong secret or origin.") \
	X(unbound, "wireup.drop.unbound",                                                        \
	  "Messages dropped that came over a connection of no endpoint.")                        \
	X(late, "progress.late", "Progress calls more than 200 us after the one before.")        \
	X(late_ns, "progress.late_ns", "ns from the call before to a late one, without sleeps.") \
	X(late_work_ns, "progress.late_work_ns",                                                 \
	  "ns of progress.late_ns after which messages or acknowledgements were waiting.")       \
	X(wake_lost, "progress.wake_lost",                                                       \
	  "Sleeps that the timer ended, while frames were there: no port had woken the worker.") \
	X(wake_lost_ns, "progress.wake_lost_ns", "ns of these sleeps.")

/** State of an iface's link: wireup/rails.c. */
struct weft_iface_link {
	bool up;
	bool ended;
	bool seen;        /* it has been up */
	bool down_logged; /* the log has a line that it is down */
	uint64_t since;   /* when it went down, or the iface was opened */
	double up_after;  /* s from opening to the first link; 0 = at once, or none yet */
	uint64_t look_at; /* when to check whether it is up; UINT64_MAX = never */
	struct weft_log_limit limit;
	bool unused_logged, smaller_logged; /* of its lanes: see wireup/rails.c */
	/* Lanes that die and come back. */
	uint64_t suspect_next; /* the next suspect lane is not checked before this time */
	uint64_t lines_until;  /* end of the current period of log lines */
	/* when to log the number of lines left out; UINT64_MAX = none */
	uint64_t summary_at;
	unsigned int lines;      /* of the period */
	unsigned int lost, back; /* lanes without a line */
};

struct weft_worker {
	/* progress */
	struct weft_lane_iface *ifaces[WEFT_MAX_IFACES];
	unsigned int num_ifaces;
	bool multi;    /* take the lock */
	bool send_now; /* WEFT_WORKER_F_SEND_NOW */
	/* a call that may run callbacks is on the stack: progress and destroy are refused */
	bool in_progress;
	bool armed;       /* a thread sleeps, or is about to (wait.h) */
	uint64_t now;     /* time of this progress call */
	uint64_t handled; /* events, by any thread: wait.c */
	struct weft_msg_worker *msg;
	struct weft_question *question; /* of other threads: answer.h; NULL = there is no socket */
	struct weft_connects *connects; /* by host and port; NULL = none under way */
	struct weft_lock lock; /* only with multi; callbacks run with it and may call back in */
	/* set-up */
	struct weft_context *ctx;
	const struct weft_ep_events *ep_events;
	uint64_t id;     /* random, non-zero */
	uint64_t secret; /* random; in our address: a peer must know it to connect */
	uint64_t host_id;
	struct weft_siphash_key hash_key; /* of weft_address_identity() */
	unsigned int num_eps;
	/* slot -> ep; slot and generation make a struct weft_wire_ref */
	struct weft_ep **ep_table;
	uint32_t ep_table_size;
	uint32_t next_generation;
	bool destroying; /* being destroyed: nothing is delivered or accepted any more */
	struct weft_iface_link links[WEFT_MAX_IFACES]; /* of ifaces[] */
	char *resources[WEFT_MAX_IFACES];              /* for which ifaces[] were opened */
	struct weft_reason missing; /* interfaces that could not be opened, and why */
	struct weft_texts texts;    /* of queries of interfaces */
	struct weft_conns *conns;
	void (*accept_cb)(struct weft_worker *worker, struct weft_ep *ep, uint64_t remote_id,
			  const char *remote_name, void *arg);
	void *accept_arg;
	LIST_HEAD(, weft_ep) eps;
	LIST_HEAD(, weft_listener) listeners; /* listen.c */
	/* earliest time of a timer of wireup; UINT64_MAX = none */
	uint64_t next_timer;
	struct weft_wait *wait; /* NULL = no thread has waited yet */
	/* For weft_worker_signal(), in any thread: wait.c. */
	_Atomic int wake_fd; /* -1 = not there yet */
	_Atomic bool signalled;
	LIST_ENTRY(weft_worker) entry;
	LIST_ENTRY(weft_worker) heartbeat; /* if beats: wait.c */
	bool beats;
	LIST_ENTRY(weft_worker) answers; /* if it has a question: answer.c */
	struct {
		WEFT_WORKER_COUNTERS(WEFT_COUNTER_FIELD)
	} count;
};

static inline void weft_worker_lock(struct weft_worker *w)
{
	if (w->multi)
		weft_lock_acquire(&w->lock);
}

static inline void weft_worker_unlock(struct weft_worker *w)
{
	if (w->multi) {
		if (__builtin_expect(w->armed, 0))
			weft_wait_rouse(w);
		weft_lock_release(&w->lock);
	}
}

/* weft_worker_unlock() of calls that leave an armed worker as it is. */
static inline void weft_worker_unlock_armed(struct weft_worker *w)
{
	if (w->multi)
		weft_lock_release(&w->lock);
}

/**
 * Begin a call in which callbacks of the user may run. Progress and destroy are refused until
 * weft_worker_leave(), because they would free objects that this thread's stack still uses. @return
 * argument of weft_worker_leave()
 */
static inline bool weft_worker_enter(struct weft_worker *w)
{
	bool was = w->in_progress;

	w->in_progress = true;
	return was;
}

static inline void weft_worker_leave(struct weft_worker *w, bool was)
{
	w->in_progress = was;
	w->handled++; /* it may have handled an event */
}

/** Send the frames that wait for further messages. */
static inline void weft_worker_flush_tx(struct weft_worker *w)
{
	for (unsigned int i = 0; i < w->num_ifaces; i++)
		if (w->ifaces[i]->tx_open)
			w->ifaces[i]->ops->tx_flush(w->ifaces[i]);
}

/** weft_worker_flush_tx() behind an operation that a progress call follows soon. */
static inline void weft_worker_posted_tx(struct weft_worker *w)
{
	struct weft_lane_iface *iface;

	for (unsigned int i = 0; i < w->num_ifaces; i++) {
		iface = w->ifaces[i];
		if (!iface->tx_open)
			continue;
		if (iface->ops->tx_posted)
			iface->ops->tx_posted(iface);
		else
			iface->ops->tx_flush(iface);
	}
}

/**
 * End a call that has posted an operation. Inside progress the end of progress sends the frames.
 */
static inline void weft_worker_posted(struct weft_worker *w, const struct weft_op_params *params)
{
	uint32_t flags = params ? params->flags : 0;

	if (__builtin_expect(!w->send_now, 1) || w->in_progress || (flags & WEFT_OP_F_MORE))
		return;
	if (flags & WEFT_OP_F_POLLED)
		weft_worker_posted_tx(w);
	else
		weft_worker_flush_tx(w);
}

/* ------------------------------------------------------------------ log */

/* Log lines that name the worker or the endpoint they are about. */

void weft_log_worker_write(enum weft_log_level level, const struct weft_worker *worker,
			   const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void weft_log_ep_write(enum weft_log_level level, const struct weft_ep *ep, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** weft_log() with the worker, or the endpoint, in the line. */
#define weft_log_worker(worker, level, ...)                                \
	do {                                                               \
		if (__builtin_expect((int)(level) <= weft_log_level, 0))   \
			weft_log_worker_write(level, worker, __VA_ARGS__); \
	} while (0)
#define weft_log_ep(ep, level, ...)                                      \
	do {                                                             \
		if (__builtin_expect((int)(level) <= weft_log_level, 0)) \
			weft_log_ep_write(level, ep, __VA_ARGS__);       \
	} while (0)

#endif /* WEFT_WORKER_H */
