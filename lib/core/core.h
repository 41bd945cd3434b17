/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/core.h
 * The library's own objects and who may touch which part of them.
 *
 * Two halves share them: *connections* (context.c, worker.c, core/address.c, wireup/wireup.c,
 * wireup/ep.c: which lanes an endpoint has) and *messages* (tag/match.c, msg_*.c, proto_*.c,
 * msg/request.c: what goes over them). The boundary is the functions at the end of this file. Hot
 * fields stand together; the comment beside each group says which path reads it.
 */
#ifndef WEFT_CORE_H
#define WEFT_CORE_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/queue.h>

#include "base/backoff.h"
#include "lane.h"
#include "core/log_who.h"
#include "core/mem_key.h"
#include "base/siphash.h"
#include "weft.h"
#include "core/wire.h"

struct weft_conf;       /* parsed configuration: core/config.h */
struct weft_msg_worker; /* message half of a worker: msg/msg.h */
struct weft_msg_ep;     /* message half of an ep: msg/msg.h */
struct weft_wireup;     /* connecting state of an ep: wireup/wireup.h */
struct weft_conns;      /* connection state of a worker: wireup/wireup.h */
struct weft_peer;       /* what is known of a remote worker: wireup/wireup.h */
struct weft_ep_closing; /* an ep on its way out: wireup/ep.c */

/* ------------------------------------------------------------------ parameter structs */

/**
 * Copy a caller's parameter struct (its first member is `size`) into ours of @p size bytes: what
 * the caller does not know is zero. NULL = all zero. @return 0, or -EINVAL when size is not set
 */
static inline int weft_struct_in(void *mine, size_t size, const void *theirs)
{
	size_t n;

	memset(mine, 0, size);
	if (!theirs)
		return 0;
	memcpy(&n, theirs, sizeof(n));
	if (n < sizeof(n))
		return -EINVAL;
	memcpy(mine, theirs, n < size ? n : size);
	return 0;
}

/**
 * Fill a caller's struct, whose `size` must be set, from ours. Fields that we do not know become
 * zero. @return 0 or -EINVAL
 */
static inline int weft_struct_out(void *theirs, const void *mine, size_t size)
{
	size_t n;

	if (!theirs)
		return -EINVAL;
	memcpy(&n, theirs, sizeof(n));
	if (n < sizeof(n))
		return -EINVAL;
	memset((char *)theirs + sizeof(n), 0, n - sizeof(n));
	memcpy((char *)theirs + sizeof(n), (const char *)mine + sizeof(n),
	       (n < size ? n : size) - sizeof(n));
	return 0;
}

/* ------------------------------------------------------------------ context */

/**
 * What the layers below must know of those above, handed down by pointer. A test may give a context
 * another table before it makes the first worker.
 */
struct weft_tables {
	/** NULL-terminated (proto/proto.h); between equal times the first wins */
	const struct weft_proto *const *protos;
	/** NULL-terminated, and by message id (msg/module.h) */
	const struct weft_module *const *modules;
	const struct weft_handler *handlers;
};

/** All there is in this build (lib/tables.c). */
extern const struct weft_tables weft_tables;

/** Registration domains one context can number; ifaces of further ones have no remote keys. */
#define WEFT_MAX_DOMAINS 32

struct weft_context {
	const struct weft_conf *conf;
	struct weft_config *config;
	const struct weft_platform *platform;
	const struct weft_lane_driver *const *drivers; /* NULL-terminated */
	const struct weft_tables *tables;              /* what there is above: lib/tables.c */
	uint64_t features;
	char name[64];
	struct weft_found *found; /* resources per driver, same order: context.c */
	pthread_mutex_t lock;     /* workers, registrations, driver query/open/close */
	/*
	 * narrow[], exported, withdrawn of mems. With messages, so never held through a driver's
	 * call; inside lock
	 */
	pthread_mutex_t export_lock;
	LIST_HEAD(, weft_worker) workers;
	LIST_HEAD(, weft_mem) mems;
	size_t mem_bytes; /* of all mems */
	struct weft_regcache *regcache;
	_Atomic bool mem_garbage; /* registrations wait for regcache_reap(); progress looks */
	/**
	 * Registration domains that ifaces of this context have had; a domain's position is its
	 * number, for good.
	 */
	struct weft_ctx_domain {
		const struct weft_lane_driver *driver;
		char name[32];
		struct weft_reg_cost {
			double n, x, t, xx, xt; /* decaying sums: 1, bytes, s, bytes^2, bytes*s */
		} measured;
		int told[4]; /* errors of registrations on the fly whose sentence has been logged */
		struct weft_backoff backoff; /* of registrations on the fly; bytes: mem_bytes */
	} domains[WEFT_MAX_DOMAINS];
	unsigned int num_domains;
	struct weft_mem_table keys; /* read without the lock: core/mem_key.h */
};

/**
 * As weft_context_create(), with another outside world: for the simulator and tests. NULL = the
 * real one.
 * @param drivers  NULL-terminated table, static storage; NULL = weft_drivers
 */
int weft_context_create_in(const struct weft_context_params *params,
			   const struct weft_platform *platform,
			   const struct weft_lane_driver *const *drivers,
			   struct weft_context **ctx);

/** All drivers of this build, NULL-terminated (drivers.c). */
extern const struct weft_lane_driver *const weft_drivers[];

/* ------------------------------------------------------------------ worker */

#define WEFT_MAX_IFACES 16

/** What is known of an iface's link: wireup/iface_event.c. */
struct weft_iface_link {
	bool up;
	bool ended;
	bool seen;        /* it has been up */
	bool told;        /* a line says that it is down */
	uint64_t since;   /* when it went down, or the iface was opened */
	double up_after;  /* s from opening to the first link; 0 = it was there */
	uint64_t look_at; /* when to look whether it has come; UINT64_MAX = not */
	struct weft_log_limit limit;
	bool unused_told, smaller_told; /* of its lanes: see wireup/rails.c */
};

struct weft_worker {
	/* progress */
	struct weft_lane_iface *ifaces[WEFT_MAX_IFACES];
	unsigned int num_ifaces;
	bool multi;       /* take the lock */
	bool in_progress; /* a callback runs: progress and destroy are refused */
	bool armed;       /* somebody sleeps, or is about to (core/wait.h) */
	uint64_t now;     /* time of this progress call */
	uint64_t handled; /* events, by any thread: wait.c */
	struct weft_msg_worker *msg;
	pthread_mutex_t lock; /* recursive, only with multi */
	/* set-up */
	struct weft_context *ctx;
	const struct weft_ep_events *ep_events;
	uint64_t id;     /* random, non-zero */
	uint64_t secret; /* random; in our address: who connects must know it */
	uint64_t host_id;
	struct weft_siphash_key hash_key; /* of weft_address_identity() */
	unsigned int num_eps;
	/* slot -> ep; slot and generation make a struct weft_wire_ref */
	struct weft_ep **ep_table;
	uint32_t ep_table_size;
	uint32_t next_generation;
	bool destroying; /* only teardown goes on: nothing is delivered or accepted */
	struct weft_iface_link links[WEFT_MAX_IFACES]; /* of ifaces[] */
	char missing[384]; /* interfaces that could not be opened, and why */
	struct weft_conns *conns;
	void (*accept_cb)(struct weft_worker *worker, struct weft_ep *ep, uint64_t remote_id,
			  const char *remote_name, void *arg);
	void *accept_arg;
	LIST_HEAD(, weft_ep) eps;
	/* earliest time at which wireup has something to do; UINT64_MAX = never */
	uint64_t next_timer;
	struct weft_wait *wait; /* NULL = nobody has waited yet */
	/* For weft_worker_signal(), in any thread: wait.c. */
	_Atomic int wake_fd; /* -1 = not there yet */
	_Atomic bool signalled;
	LIST_ENTRY(weft_worker) entry;
	/* Counters of the connection half; the message half has its own. */
	struct {
		uint64_t wireup_bad;   /* malformed or foreign wire-up messages */
		uint64_t wireup_stale; /* for an ep that is not there any more */
		/* REQs without our secret, or from elsewhere than they say */
		uint64_t wireup_denied;
		uint64_t unbound; /* data on a connection that no ep owns */
		uint64_t eps_created, eps_accepted, eps_failed;
	} count;
};

static inline void weft_worker_lock(struct weft_worker *w)
{
	if (w->multi)
		pthread_mutex_lock(&w->lock);
}

/* Another thread sleeps, and a call has changed what it may wait for: core/wake.c. */
void weft_wait_rouse(struct weft_worker *w);

static inline void weft_worker_unlock(struct weft_worker *w)
{
	if (w->multi) {
		if (__builtin_expect(w->armed, 0))
			weft_wait_rouse(w);
		pthread_mutex_unlock(&w->lock);
	}
}

/* As above, in calls that leave an armed worker as it is. */
static inline void weft_worker_unlock_armed(struct weft_worker *w)
{
	if (w->multi)
		pthread_mutex_unlock(&w->lock);
}

/* ------------------------------------------------------------------ endpoint */

/**
 * A call in which callbacks of the user may run: what they must not do meanwhile (progress,
 * destroy) is refused, since it would end what is half way on this thread's stack. @return for
 * weft_worker_leave()
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
	w->handled++; /* perhaps */
}

/**
 * What the layers below and beside the connections report of an endpoint, as lanes report
 * WEFT_LANE_EV_DOWN: a table of the worker's (lib/worker.c), since who acts on it stands above
 * them.
 */
struct weft_ep_events {
	/**
	 * The endpoint is broken: state FAILED, requests end, err_cb once. Safe inside receive
	 * callbacks; not where a call of the user may be on the stack, which would get callbacks
	 * before its answer: see fail_later(). Messages call it by weft_msg_fail() (msg/msg.h).
	 */
	void (*fail)(struct weft_ep *ep, int status, const char *why);
	/**
	 * The same at the end of this progress call, or of the next one: for what a call of the
	 * user finds, and for whoever has requests in hand. Until then the endpoint is as it was.
	 * The first reason counts.
	 * @param why  static text
	 */
	void (*fail_later)(struct weft_ep *ep, int status, const char *why);
	/** It is up and no further lane is going to join. */
	void (*settled)(struct weft_ep *ep);
	/**
	 * The first message on a lane has come, which shows that the lane is up: it is no wire-up.
	 */
	void (*recv)(struct weft_ep *ep, unsigned int lane, uint8_t id, const void *data,
		     size_t length);
};

enum weft_ep_state {
	WEFT_EP_CONNECTING, /* operations queue up in the message half */
	WEFT_EP_UP,
	WEFT_EP_CLOSING, /* closed by its owner, flushing */
	WEFT_EP_FAILED,  /* ep->status says why; waits for its owner to close it */
};

#define WEFT_MAX_LANES 16

/** One lane of an endpoint: what every fragment reads. */
struct weft_ep_lane {
	struct weft_lane_ep *lane_ep; /* NULL = not there */
	/* agreed at wire-up; measured rates refine them in the message half */
	double bandwidth, latency;
	uint32_t max_frag; /* largest lane message both ends take */
	bool up;           /* attached at both ends: may carry messages */
	/*
	 * number of the remote iface's registration domain at the peer: which remote key is for it
	 */
	uint8_t remote_domain;
};

/** What only people and set-up look at, and counters (written by the message half). */
struct weft_ep_lane_info {
	uint64_t tx_bytes, rx_bytes, tx_msgs, rx_msgs;
	/* Agreed at wire-up, the same at both ends: s, s/byte. */
	double send_overhead, recv_overhead, reg_cost, reg_growth;
	double cpu;        /* CPU time that weft_ep_lane.latency includes */
	uint32_t features; /* WEFT_LANE_F_COPIES of either end, F_MEMORY of both */
	const char *bandwidth_from, *latency_from; /* in words */
	uint8_t local_iface, remote_iface;
	char remote[128]; /* remote network address in words */
	char why[160];
};

struct weft_ep {
	/* hot: every send and every receive */
	struct weft_worker *worker;
	struct weft_msg_ep *msg;
	enum weft_ep_state state;
	uint8_t num_lanes;
	/* up lane with the lowest latency: single-fragment messages and control */
	uint8_t am_lane;
	uint16_t lanes_up; /* bit i = lanes[i].up */
	struct weft_ep_lane lanes[WEFT_MAX_LANES];
	struct weft_ep_lane_info *lane_info; /* lane_room of them: most endpoints have one lane */
	uint8_t lane_room;
	/* connection half */
	double bcopy_bw; /* bytes/s, the slower end's; 0 = the peer did not tell */
	int status;      /* why it failed */
	/* the application created it (or adopted it); else the peer's connect did */
	bool owned;
	bool remote_closed;
	bool remote_closing;         /**< CLOSE will come: not to be adopted */
	uint32_t slot, generation;   /* our reference, as the peer names us */
	struct weft_wire_ref remote; /* the peer's reference; 0,0 = not known */
	uint64_t remote_id;
	/* Prove that a wire-up message is about this endpoint; remote_secret 0 = not known. */
	uint64_t secret, remote_secret;
	uint32_t conn_sn;
	char remote_name[64];
	struct weft_wireup *wireup; /* NULL once connected and all lanes are settled */
	struct weft_ep_closing *closing;
	struct weft_peer *peer; /* NULL on loopback */
	struct weft_host *host; /* that takes a place with it; NULL = somebody has claimed it */
	bool host_busy;         /* in host->busy */
	uint64_t placed_at;
	uint64_t timer;  /* when this ep wants weft_conns_timers(); UINT64_MAX = not */
	int fail_status; /* fail_later(): is about to fail with this; 0 = is not */
	const char *fail_why;
	weft_ep_err_cb err_cb;
	void *err_arg;
	void *user_data;
	LIST_ENTRY(weft_ep) entry;        /* worker->eps, or the worker's dead ones */
	LIST_ENTRY(weft_ep) peer_entry;   /* peer->eps */
	LIST_ENTRY(weft_ep) sn_entry;     /* conns->by_sn, while it has a peer */
	TAILQ_ENTRY(weft_ep) claim_entry; /* peer->unclaimed, while nobody owns it */
	TAILQ_ENTRY(weft_ep) host_entry;  /* host->eps, while nobody owns it */
};

/**
 * What the application is told of: nothing that it has closed, nothing that belongs to the library.
 */
static inline struct weft_ep *weft_ep_of_user(struct weft_ep *ep)
{
	return ep && ep->owned && ep->generation && !ep->closing ? ep : NULL;
}

/* ------------------------------------------------------------------ memory */

struct weft_mem {
	struct weft_context *ctx;
	void *address;
	size_t length;
	_Atomic uint32_t refs; /* operations using it, of any worker */
	unsigned int rights;   /* WEFT_MEM_REMOTE_* */
	/*
	 * WEFT_LANE_ACCESS_* it is registered with. Written under the context's lock; read without
	 * it. Once others know the registration only LOCAL_WRITE can go, when a domain that comes
	 * later finds that the memory is read-only. Whoever reads it uses domains that were there
	 * before, whose registrations do not change: either value is right for them, so no order is
	 * needed (relaxed).
	 */
	_Atomic unsigned int access;
	bool write_optional; /* try LOCAL_WRITE, do without it if the memory is not writable */
	bool on_the_fly;     /* for an operation, not by the user */
	uint64_t key;        /* with rights: what peers name it by */
	struct weft_mem_slot *slot; /* of the key; NULL = no rights, or revoked */
	_Atomic bool revoked;
	struct weft_regcache_entry *cached; /* made by weft_mem_get() and kept; NULL = not */
	/* the same memory with keys that allow reading, or writing, alone; weft_mem_export() */
	struct weft_mem *narrow[2];
	uint32_t exported; /* of such a one: operations whose peers have its keys */
	bool withdrawn;    /* of such a one: in narrow[] no more; the last of them ends it */
	/*
	 * By number of the domain in the context, for good: whoever looks for his own
	 * (weft_mem_lane_of(), without a lock) never meets another's.
	 */
	struct weft_mem_domain {
		/*
		 * That it was registered with, or that has taken it over; NULL = not registered.
		 * Written under the context's lock, after mem (release); who reads without the lock
		 * (acquire) has an iface of the domain, so mem stays.
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

/** Driver state of @p mem for @p iface, or NULL. */
struct weft_mem_lane *weft_mem_lane_of(const struct weft_mem *mem,
				       const struct weft_lane_iface *iface);

/* wireup/iface_event.c: what happens to ports and devices, in the log */

/** ifaces[@p index] was opened. */
void weft_iface_link_init(struct weft_worker *w, unsigned int index);
/** weft_lane_open.iface_event; @p arg is the worker. */
void weft_iface_event(void *arg, struct weft_lane_iface *iface, enum weft_lane_iface_event ev,
		      const char *text);
/** Why @p iface has no link and what to do, in a sentence. */
void weft_iface_link_text(struct weft_lane_iface *iface, char *buf, size_t size);
/** Links that have not come: part of weft_conns_timers(). */
void weft_iface_timers(struct weft_worker *w);

/** What the worker tells its lanes' drivers about itself; report.c. */
struct weft_lane_report weft_worker_report(struct weft_worker *w);

/* ------------------------------------------------------------------ the boundary */

/* Connections call messages: */

int weft_msg_worker_init(struct weft_worker *worker);
/** All receives end, all messages are dropped; sends end when the lanes close. Callbacks run. */
void weft_msg_worker_stop(struct weft_worker *worker);
/** After the lanes have closed: the last callbacks, and the memory. */
void weft_msg_worker_fini(struct weft_worker *worker);
int weft_msg_ep_init(struct weft_ep *ep);
/**
 * Everything of the ep's messages ends with @p status; afterwards the ep may be freed. Unexpected
 * messages that are complete stay receivable.
 */
void weft_msg_ep_fini(struct weft_ep *ep, int status);
/**
 * Credits that this side grants the peer at connect. Called once per connection, before CONNECTED
 * is told to the peer.
 */
void weft_msg_ep_grant(struct weft_ep *ep, struct weft_wire_credit *credit);
/**
 * The ep went UP (or a further lane joined); @p credit is what the peer granted, NULL when only
 * lanes changed. Queued sends start.
 */
void weft_msg_ep_connected(struct weft_ep *ep, const struct weft_wire_credit *credit);
/** Its lanes are about to be destroyed: their last completions shall start nothing on them. */
void weft_msg_ep_down(struct weft_ep *ep);
/** The ep failed: complete all its requests with @p status. */
void weft_msg_ep_failed(struct weft_ep *ep, int status);
/** Takes messages apart that lie in several buffers: weft_lane_split_fn. Pure. */
size_t weft_msg_split(uint8_t id, const void *msg, size_t had, void *piece);
/** Serve queued sends, credits. Called once per progress after the lanes. @return events */
unsigned int weft_msg_progress(struct weft_worker *worker);
/**
 * Is there something to do at once? @p soon: set when there is something that may go on, or not.
 */
bool weft_msg_busy(const struct weft_worker *worker, bool *soon);
void weft_msg_counters(struct weft_worker *worker, weft_lane_counter_cb cb, void *arg);
/**
 * All that was posted on the ep before is sent and acknowledged by the peer's protocol layer (the
 * peer has also finished rendezvous); then done(arg, status).
 * @return 0 = it will be called, WEFT_LANE_IDLE = nothing was outstanding, or an error
 */
int weft_msg_ep_flush(struct weft_ep *ep, void (*done)(void *arg, int status), void *arg);

/**
 * A request for an operation of the connection half (close, flush): made here, ended by
 * weft_msg_request_done(), tested, queried and freed like any other; it cannot be cancelled.
 * @param what    static text for weft_request_query(): "endpoint close"
 * @param params  callback and its argument; NULL = none
 * @param wanted  the caller asked for the request (req != NULL); else the library frees it after
 *   the callback
 * @return NULL = no memory
 */
struct weft_request *weft_msg_request_new(struct weft_worker *worker, const char *what,
					  const struct weft_op_params *params, bool wanted);
/** End a request of weft_msg_request_new(): its callback runs, unless the user has freed it. */
void weft_msg_request_done(struct weft_request *req, int status);
/**
 * The operation was over at once. @return what the call answers: @p status, and the request is
 * gone; or WEFT_INPROGRESS with WEFT_OP_FORCE_REQUEST, and it ends with @p status at the next
 * progress
 */
int weft_msg_request_at_once(struct weft_request *req, int status);

#endif /* WEFT_CORE_H */
