/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/worker.h
 * Structs that the whole library shares: context, worker, endpoint. The comment above a group of
 * fields names the code that reads them.
 */
#ifndef WEFT_WORKER_H
#define WEFT_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/container.h"
#include "base/log.h"
#include "base/pacing.h"
#include "base/platform.h"
#include "base/text.h"
#include "base/thread.h"
#include "core/wire.h"
#include "lane.h"
#include "lane_attr.h"
#include "weft.h"

/* ------------------------------------------------------------------ remote keys */

/*
 * A remote key has 64 bits, random or chosen by the application. Its low bits select one slot in
 * each level. Levels are never removed, so threads of other workers look keys up without a lock. A
 * thread that uses the memory is counted in the slot (enter, leave). Revoking a key waits for the
 * copies that are under way.
 */

struct weft_mem;

struct weft_mem_slot {
	_Atomic uint64_t key;   /* 0 = free */
	_Atomic uint32_t users; /* threads that use `mem` */
	struct weft_mem *mem;   /* valid while key is set or users is not 0 */
};

#define WEFT_MEM_KEY_LEVELS 16

/** Zeroed = empty. Level i has 256 << i slots. */
struct weft_mem_table {
	struct weft_mem_slot *_Atomic level[WEFT_MEM_KEY_LEVELS];
};

static inline void weft_mem_key_leave(struct weft_mem_slot *slot)
{
	/* Release: accesses to the memory happen before the return of revoke_key(). */
	atomic_fetch_sub_explicit(&slot->users, 1, memory_order_release);
}

/* ------------------------------------------------------------------ context */

struct weft_conf;
struct weft_config;
struct weft_found;
struct weft_handler;
struct weft_module;
struct weft_proto;
struct weft_regcache;
struct weft_worker;

/**
 * Tables of the upper layers, whose headers the layers below do not include. A test may replace a
 * table before it makes the first worker.
 */
struct weft_tables {
	/** NULL-terminated (proto/proto.h); of protocols with equal times the first is chosen */
	const struct weft_proto *const *protos;
	/** modules: NULL-terminated; handlers: by message id (msg/state.h) */
	const struct weft_module *const *modules;
	const struct weft_handler *handlers;
};

/** Limit of a context's registration domains. Lanes of further domains copy. */
#define WEFT_MAX_DOMAINS 32

struct weft_context {
	const struct weft_conf *conf;
	struct weft_config *config;
	const struct weft_platform *platform;
	const struct weft_lane_driver *const *drivers; /* NULL-terminated */
	const struct weft_lane_driver *
		*drivers_list;            /* `drivers`, if it must be freed; NULL = static */
	const struct weft_tables *tables; /* lib/dispatch.c */
	uint64_t features;
	pid_t pid; /* of the creator; a forked child must not use the context */
	char name[64];
	struct weft_found *found; /* one for each driver, in the order of `drivers` */
	pthread_mutex_t lock;     /* workers, registrations, driver query/open/close */
	/*
	 * Guards narrow[], exported and withdrawn of each weft_mem. Each rendezvous that gives a
	 * key to the peer takes it, so no driver is called under it. `lock` is taken first.
	 */
	pthread_mutex_t export_lock;
	LIST_HEAD(, weft_worker) workers;
	LIST_HEAD(, weft_mem) mems;
	size_t mem_bytes;
	struct weft_regcache *regcache;
	_Atomic bool mem_garbage; /* weft_regcache_reap() has work */
	/** The index is a domain's fixed number. */
	struct weft_ctx_domain {
		const struct weft_lane_driver *driver;
		char *name;
		/* sums over registrations, which decay: 1, bytes, s, bytes^2, bytes*s */
		struct weft_reg_cost {
			double n, x, t, xx, xt;
		} measured;
		int logged[4]; /* errors that the log has had; 0 = free place */
		/* pauses registrations on the fly after a shortage, by the total mem_bytes */
		struct weft_backoff backoff;
	} domains[WEFT_MAX_DOMAINS];
	unsigned int num_domains;
	struct weft_mem_table keys; /* looked up without the lock */
};

/** False in a forked child, which must not release the parent's sockets, rings and devices. */
static inline bool weft_context_is_ours(const struct weft_context *ctx)
{
	return ctx->pid == getpid();
}

/** A copy of a struct weft_lane_resource from query(). */
struct weft_found_resource {
	char *name, *why; /* why NULL = usable */
	bool inside;
};

struct weft_found {
	bool queried;
	int num; /* entries of list, or query()'s negative error */
	struct weft_found_resource *list;
};

/* ------------------------------------------------------------------ registrations */

struct weft_mem {
	struct weft_context *ctx;
	void *address;
	size_t length;
	_Atomic uint32_t refs; /* operations of all workers */
	unsigned int rights;   /* WEFT_MEM_F_REMOTE_* */
	/*
	 * WEFT_LANE_ACCESS_*, written under the context's lock. It can change under a reader:
	 * LOCAL_WRITE is removed when a domain that registers later finds the memory read-only. A
	 * reader uses domains registered before, so both values are right for it (relaxed).
	 */
	_Atomic unsigned int access;
	bool write_optional;        /* omit LOCAL_WRITE if the memory is not writable */
	bool on_the_fly;            /* made by the library for an operation */
	bool key_chosen;            /* by the application: peers get no keys of lanes */
	uint64_t key;               /* on the wire, if peers have rights */
	struct weft_mem_slot *slot; /* NULL = no rights, or revoked */
	_Atomic bool revoked;
	struct weft_regcache_entry *cached; /* NULL = not in the cache */
	/* for reading alone, for writing alone: weft_mem_export() */
	struct weft_mem *narrow[2];
	uint32_t exported; /* of one made for narrow[]: operations whose peers have its keys */
	bool withdrawn;    /* removed from narrow[]: the end of its last operation frees it */
	/*
	 * By the domain's fixed number, so a lookup without a lock never finds another domain's
	 * entry.
	 */
	struct weft_mem_domain {
		/*
		 * The iface that registered the memory, or took `mem` over; NULL = none. Written
		 * under the context's lock, after `mem` (release). A reader without the lock
		 * (acquire) has an iface of the domain open, so `mem` stays valid.
		 */
		struct weft_lane_iface *_Atomic iface;
		struct weft_mem_lane *mem;
	} domains[WEFT_MAX_DOMAINS];
	LIST_ENTRY(weft_mem) entry;
};

static inline unsigned int weft_mem_access(const struct weft_mem *mem)
{
	return atomic_load_explicit(&mem->access, memory_order_relaxed);
}

/* ------------------------------------------------------------------ worker */

struct weft_conns;
struct weft_connects;
struct weft_ep;
struct weft_ep_events;
struct weft_msg_worker;
struct weft_question;
struct weft_worker;

/* ------------------------------------------------------------------ waking */

/* The state of a waiting worker (wait.h) is here because weft_worker_unlock() wakes threads. */

/** Made when the worker first waits, is armed or gives its descriptor. */
struct weft_wait {
	int epoll, timer, event;
	uint32_t in_epoll;     /* bit i: the epoll set has the descriptor of ifaces[i] */
	uint32_t armed_ifaces; /* bit i: ifaces[i] is armed, and disarm() must follow */
	uint64_t timer_at;     /* ns; UINT64_MAX = not set */
	uint64_t armed_at;     /* ns */
	bool by_timer;         /* the timer alone has ended the last sleep */
	uint64_t sleep;        /* ns: limit of the next sleep, if a lane cannot wake the worker */
	unsigned int sleepers;
	pthread_t armer; /* the last thread in weft_worker_arm(), or awake after a sleep */
	bool others;     /* progress has disarmed the worker of another thread */
	bool roused;     /* weft_wait_rouse() has written `event`: sleepers must return */
	/* Wake-ups whose last sleeper has left. Written under the worker's lock and left_lock. */
	uint64_t wakeups;
	pthread_mutex_t left_lock;
	pthread_cond_t left; /* `wakeups` has grown; timeouts are of CLOCK_MONOTONIC */
	/*
	 * Adaptive polling. spin_skip: number of further waits that do not poll. spin_backoff: the
	 * value of spin_skip after the last poll. A poll without result doubles it, up to
	 * SPIN_SKIP_MAX (0 becomes 1).
	 */
	unsigned int spin_skip, spin_backoff;
};

/** The thread sleeps on if the progress call handles nothing. Needs no lock. */
void weft_wait_nudge(struct weft_worker *w);
/** All sleeping threads return, as the state may be what they wait for. Needs the worker's lock. */
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
	bool seen; /* the link has been up */
	bool down_logged;
	uint64_t since;   /* ns: when the iface was opened, lost its link, or ended; the latest */
	double up_after;  /* s from opening to the first link; 0 = none yet, or at once */
	uint64_t look_at; /* ns: when to check whether the link is up; UINT64_MAX = never */
	struct weft_log_limit limit;
	/* an endpoint lacks a lane over the iface; a lane takes smaller messages */
	bool unused_logged, smaller_logged;
	uint64_t suspect_next; /* ns: the next suspect lane is not checked before */
	uint64_t lines_until;  /* ns: end of the current period of log lines */
	/* ns: when to log the number of lines left out; UINT64_MAX = none */
	uint64_t summary_at;
	unsigned int lines;
	unsigned int lost, back; /* lanes that have no line yet */
};

struct weft_worker {
	/* progress */
	struct weft_lane_iface *ifaces[WEFT_MAX_IFACES];
	unsigned int num_ifaces;
	bool multi; /* each call takes `lock` */
	bool send_now;
	/* a call that may run callbacks is on the stack: progress and destroy are refused */
	bool in_progress;
	bool armed;       /* a thread sleeps, or is about to (wait.h) */
	uint64_t now;     /* ns: time of the last progress call, or of a later call that sets it */
	uint64_t handled; /* grows when a call has handled events or a signal: wait.c */
	struct weft_msg_worker *msg;
	struct weft_question *question; /* NULL = not served: answer.h */
	struct weft_connects *connects; /* weft_ep_connect_to() under way; NULL = none */
	struct weft_lock lock;          /* with multi; recursive: callbacks run with it */
	/* set-up */
	struct weft_context *ctx;
	const struct weft_ep_events *ep_events;
	uint64_t id;     /* random, non-zero */
	uint64_t secret; /* random; a peer that connects must present it */
	uint64_t host_id;
	struct weft_siphash_key hash_key;
	unsigned int num_eps;
	/* by slot; slot and generation make a struct weft_wire_ref */
	struct weft_ep **ep_table;
	uint32_t ep_table_size;
	uint32_t next_generation;
	bool destroying; /* nothing is delivered or accepted */
	struct weft_iface_link links[WEFT_MAX_IFACES];
	char *resources[WEFT_MAX_IFACES]; /* name with which ifaces[i] was opened */
	struct weft_reason missing;       /* interfaces that could not be opened */
	struct weft_texts texts;
	struct weft_conns *conns;
	void (*accept_cb)(struct weft_worker *worker, struct weft_ep *ep, uint64_t remote_id,
			  const char *remote_name, void *arg);
	void *accept_arg;
	LIST_HEAD(, weft_ep) eps;
	LIST_HEAD(, weft_listener) listeners;
	/* ns: the earliest timer of the connection layer; UINT64_MAX = none */
	uint64_t next_timer;
	struct weft_wait *wait; /* NULL = no thread has waited or armed yet */
	/* For weft_worker_signal(), in any thread: wait.c. */
	_Atomic int wake_fd; /* the eventfd of `wait`; -1 = none yet */
	_Atomic bool signalled;
	LIST_ENTRY(weft_worker) entry;
	LIST_ENTRY(weft_worker) heartbeat; /* only if `beats`: wait.c */
	bool beats;
	LIST_ENTRY(weft_worker) answers; /* only with a question: answer.c */
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

/* Does not rouse sleeping threads. */
static inline void weft_worker_unlock_armed(struct weft_worker *w)
{
	if (w->multi)
		weft_lock_release(&w->lock);
}

/**
 * Begin a call that may run the user's callbacks. Progress and destroy are refused until
 * weft_worker_leave(), because they would free objects that the stack still uses.
 * @return argument of weft_worker_leave()
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
	w->handled++;
}

/** Send the frames that wait for further messages. */
static inline void weft_worker_flush_tx(struct weft_worker *w)
{
	for (unsigned int i = 0; i < w->num_ifaces; i++)
		if (w->ifaces[i]->tx_open)
			w->ifaces[i]->ops->tx_flush(w->ifaces[i]);
}

/** For operations with WEFT_OP_F_POLLED, whose frames may wait. */
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
 * With WEFT_WORKER_F_SEND_NOW, send the frames of the operation, unless it has WEFT_OP_F_MORE. The
 * end of progress sends those posted inside progress.
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

void weft_log_worker_write(enum weft_log_level level, const struct weft_worker *worker,
			   const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void weft_log_ep_write(enum weft_log_level level, const struct weft_ep *ep, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

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

/* ------------------------------------------------------------------ endpoint */

/* Connections (wireup/) manage the lanes of an endpoint, messages (msg/ and above) use them. */

struct weft_failover;   /* lanes that die and come back: wireup/state.h */
struct weft_ep_closing; /* an endpoint that is being closed: wireup/close.c */
struct weft_host;       /* quota of a host for unclaimed endpoints: wireup/peer.h */
struct weft_msg_ep;     /* state of the message layer: msg/state.h */
struct weft_peer;       /* a remote worker: wireup/peer.h */
struct weft_wireup;     /* connecting state: wireup/state.h */

/**
 * Events of an endpoint that other layers report. They are a table of the worker (lib/worker.c),
 * because the layer that handles them may be above the layer that detects them.
 */
struct weft_ep_events {
	/**
	 * The endpoint fails: requests end, and err_cb runs once if the program owns the endpoint
	 * and has not closed it. Safe inside receive callbacks, but not inside a call of the user,
	 * because callbacks would run before that call returns. The message layer uses
	 * weft_msg_fail() (msg/endpoint.h).
	 */
	void (*fail)(struct weft_ep *ep, int status, const char *why);
	/**
	 * The endpoint fails in this progress call or in the next one, and does not change until
	 * then: for calls of the user, and callers that are processing requests. The first reason
	 * counts.
	 * @param why  static text
	 */
	void (*fail_later)(struct weft_ep *ep, int status, const char *why);
	/** The endpoint is up, and wire-up adds no further lane. */
	void (*settled)(struct weft_ep *ep);
	/** Deliver a message that overtook the wire-up message which attaches its lane. */
	void (*recv)(struct weft_ep *ep, unsigned int lane, uint8_t id, const void *data,
		     size_t length);
};

enum weft_ep_state {
	WEFT_EP_CONNECTING, /* operations are queued in the message layer */
	WEFT_EP_UP,
	WEFT_EP_CLOSING, /* closed by its owner, flushing */
	WEFT_EP_FAILED,  /* ep->status has the error; the owner must still close the ep */
};

#define WEFT_MAX_LANES 16

/** The fields that every fragment reads. */
struct weft_ep_lane {
	struct weft_lane_ep *lane_ep; /* NULL = no connection */
	/* bytes/s, s, agreed at wire-up; measured rates: struct weft_msg_lane */
	float bandwidth, latency;
	uint32_t max_frag; /* bytes: largest lane message that both ends and the path take */
	bool up;           /* attached at both ends */
	/* domain number of the remote iface at the peer, for remote keys */
	uint8_t remote_domain;
};

/** For queries and set-up; counters, which the message layer writes. */
struct weft_ep_lane_info {
	uint64_t tx_bytes, rx_bytes, tx_msgs, rx_msgs;
	/* s, reg_growth s/byte, agreed at wire-up */
	float send_overhead, recv_overhead, reg_cost, reg_growth;
	double cpu;        /* s: CPU time that weft_ep_lane.latency includes */
	uint32_t features; /* WEFT_LANE_F_COPIES of either end, F_MEMORY of both */
	uint8_t local_iface, remote_iface;
	bool numbers;    /* the text of weft_lane_why_text() has the lane's numbers */
	bool why_static; /* `why` is not freed */
	const char *bandwidth_from, *latency_from; /* origin of the number, as text */
	char *remote;                              /* the peer's network address; NULL = "" */
	const char *why;                           /* why the lane is used, or not; NULL = "" */
};

struct weft_ep {
	/* one cache line: every send and every receive */
	struct weft_worker *worker;
	struct weft_msg_ep *msg;
	enum weft_ep_state state;
	uint8_t num_lanes;
	/* lane with the lowest latency: for single-fragment messages and control */
	uint8_t am_lane;
	uint16_t lanes_up; /* bit i = lanes[i].up */
	/* bit i: lane i died, and the peer's receive state is not known yet */
	uint16_t lanes_closing;
	uint8_t lane_room;
	/* created or claimed by the application; else a peer's connect made the ep */
	bool owned;
	bool remote_closed;
	/** CLOSE follows the peer's CLOSING, so the endpoint must not be claimed */
	bool remote_closing;
	/* lane_room entries: first_lane and first_info, or allocated */
	struct weft_ep_lane *lanes;
	struct weft_ep_lane_info *lane_info;
	struct weft_ep_closing *closing;
	uint32_t slot, generation; /* generation 0: weft_ep_retire() ran */

	struct weft_ep_lane first_lane;
	struct weft_ep_lane_info first_info;
	/* connection layer */
	/* bytes/s of copies: the slower end, or this end if the peer sends none; 0 = unset */
	float bcopy_bw;
	int status;
	int fail_status; /* status with which fail_later() will fail the ep; 0 = none */
	uint32_t conn_sn;
	struct weft_wire_ref remote; /* 0,0 = not known */
	uint64_t remote_id;
	/* of this end, of the peer: wire-up messages are checked by them; 0 = not known */
	uint64_t secret, remote_secret;
	const char *remote_name;        /* in `texts`, or static */
	struct weft_wireup *wireup;     /* NULL once each lane is attached or left out */
	struct weft_failover *failover; /* NULL = no second lane has ever come up, or no memory */
	/*
	 * for all connections after the first; NULL: there are none, their frames are not sealed,
	 * or their driver makes a key for each
	 */
	struct weft_lane_key *lane_key;
	struct weft_peer *peer;           /* NULL on loopback, and after weft_ep_retire() */
	struct weft_texts texts;          /* results of queries, the peer's name */
	struct weft_unclaimed *unclaimed; /* NULL = created or claimed here */
	uint64_t timer; /* ns: when weft_conns_timers() must handle the ep; UINT64_MAX = never */
	const char *fail_why;
	weft_ep_err_cb err_cb;
	void *err_arg;
	void *user_data;
	LIST_ENTRY(weft_ep) entry;      /* worker->eps, or after its end worker->conns->dead */
	LIST_ENTRY(weft_ep) peer_entry; /* peer->eps */
	struct weft_table_node by_sn;   /* worker->conns->by_sn, if `peer` is set */
};

/* The name of the peer's context has arrived. Earlier names stay in ep->texts. */
static inline void weft_ep_set_remote_name(struct weft_ep *ep, const char *name)
{
	ep->remote_name = weft_texts_add(&ep->texts, name);
}

static inline const char *weft_lane_remote(const struct weft_ep *ep, unsigned int n)
{
	return ep->lane_info[n].remote ? ep->lane_info[n].remote : "";
}

static inline const char *weft_lane_why(const struct weft_ep *ep, unsigned int n)
{
	return ep->lane_info[n].why ? ep->lane_info[n].why : "";
}

/** @return NULL if the application does not own @p ep, has closed it, or if it has ended */
static inline struct weft_ep *weft_ep_of_user(struct weft_ep *ep)
{
	return ep && ep->owned && ep->generation && !ep->closing ? ep : NULL;
}

#endif /* WEFT_WORKER_H */
