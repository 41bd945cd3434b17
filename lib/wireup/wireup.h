/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/wireup.h
 * Connecting endpoints: state and the functions that the connection layer's files share. The
 * exchange is described in doc/wire.md.
 *
 * One state machine, in which each file may call each other:
 *   wireup/wireup.c     messages of both ends, retries, established, time
 *   wireup/initiator.c  which pair of interfaces, and REQ
 *   wireup/responder.c  what a REQ leads to
 *   wireup/lanes.c      attaching further lanes
 *   wireup/ep_addr.c    lanes whose two ends need each other's address
 *   wireup/ep.c         life of an endpoint as its user sees it
 *   wireup/close.c      closing and flushing
 *   wireup/lane_state.c  which lane is up, what is kept for its failing
 *   wireup/failover.c   lanes that die
 *   wireup/lane_return.c  and come back
 *   wireup/lane_link.c  those whose two ends need each other's address
 * Above it:
 *   wireup/learn.c      boot addresses: the rest is requested, and answered
 *   wireup/recv.c       messages and events: which endpoint they are for
 *   wireup/progress.c   what is due
 *   wireup/iface_event.c  links that come and go
 * Below it:
 *   wireup/boot_address.c  a worker's own, and what one of a peer says
 *   wireup/map.c        the lane map: proposing, trimming
 *   wireup/select.c     which pairs of interfaces become lanes
 *   wireup/model.c      how fast both ends copy
 *   wireup/refuse.c     refusals, failure, close as messages
 *   wireup/record.c, wireup/piece.c  bytes: building and parsing, cutting and joining
 *   wireup/peer.c       what is known of remote workers
 *   wireup/ep_table.c   endpoints by slot, number and time
 *   wireup/pending.c    connections that name no endpoint yet
 *   wireup/unclaimed.c  endpoints that nobody owns
 *   wireup/rails.c      lanes that are missing, or worse than others
 */
#ifndef WEFT_WIREUP_H
#define WEFT_WIREUP_H

#include "core/address.h"
#include "core/endpoint.h"
#include "base/deadline.h"
#include "wireup/select.h"
#include "base/log.h"
#include "base/text.h"
#include "core/wire.h"
#include "wireup/peer.h"

/* ------------------------------------------------------------------ messages */

/** A WIREUP message, checked. Pointers go into the received bytes. */
struct weft_wireup_msg {
	struct weft_wire_wireup head;
	const void *address;
	size_t address_len;
	/* num_lanes of them; each lane number < WEFT_MAX_LANES, once */
	const struct weft_wire_lane *lanes;
	unsigned int num_lanes;
	bool have_boot, have_credit;
	struct weft_wire_boot boot;
	struct weft_wire_credit credit;
	float bcopy_bw; /* bytes/s; 0 = not told */
	bool have_next_sn;
	uint32_t next_sn; /* with ESTALE: a number that is free at the sender */
	/* Addresses of the sender's ends of lanes; len 0 = none. The lane is in `lanes`. */
	struct {
		const uint8_t *bytes;
		uint8_t len;
	} ep_addr[WEFT_MAX_LANES];
	const void *rx_state; /* of LANE_DOWN and its answer: the driver checks it; NULL = none */
	size_t rx_state_len;
	char text[256]; /* fit for printing */
};

/** Records of a message to be sent. */
struct weft_records {
	size_t len;
	uint8_t buf[WEFT_WIREUP_MAX];
};

void weft_records_add(struct weft_records *r, enum weft_wire_record_type type, const void *data,
		      size_t len);

/**
 * Send a message, in pieces if need be. @return 0, -EAGAIN (send all of it again later), or the
 * lane's error
 */
int weft_wireup_send(struct weft_lane_ep *lane_ep, struct weft_wire_wireup *head,
		     const void *records, size_t len);

/** Judge a whole message by itself. @return 0, or -EPROTO with a reason in @p why */
int weft_wireup_parse(const struct weft_wire_wireup *head, const void *records, size_t len,
		      struct weft_wireup_msg *m, const char **why);

/** A message being put together from its pieces. */
struct weft_partial {
	TAILQ_ENTRY(weft_partial) entry; /* of its host's */
	struct weft_partial_host *host;
	struct weft_lane_ep *lane_ep;
	struct weft_wire_wireup head; /* of its first piece */
	size_t total, got;
	uint8_t have[WEFT_WIREUP_MAX / 8]; /* bit per byte */
	uint8_t data[];
};

/** Who sends such messages. */
struct weft_partial_host {
	LIST_ENTRY(weft_partial_host) entry;
	uint64_t number; /* weft_host_number() */
	unsigned int num;
	TAILQ_HEAD(, weft_partial) partials; /* oldest first */
};

/**
 * Partial messages that a worker keeps, and that one connection may have of them. When all are
 * taken the host that has most of them gives its oldest one, so a host that has none gets a place
 * each time, however many others are greedy. Who is honest sends one message after the other: two
 * are there when a retry follows another step.
 */
#define WEFT_MAX_PARTIALS 128
#define WEFT_MAX_PARTIALS_LANE_EP 2

struct weft_conns;

/**
 * Take a received piece.
 * @param[out] records  the whole message's records when it is complete: valid until
 *   weft_partial_done(), or the end of the callback
 * @param[out] done     to be passed to weft_partial_done() after use; NULL = nothing to do
 * @return 1 complete, 0 more to come, -EPROTO malformed, -ENOMEM
 */
int weft_partial_add(struct weft_conns *conns, struct weft_lane_ep *lane_ep, const void *data,
		     size_t length, struct weft_wire_wireup *head, const void **records,
		     size_t *len, struct weft_partial **done);
void weft_partial_done(struct weft_partial *p);
/** The lane_ep goes: so do its partial messages. */
void weft_partial_forget(struct weft_conns *conns, const struct weft_lane_ep *lane_ep);
void weft_partials_fini(struct weft_conns *conns);

/* ------------------------------------------------------------------ endpoints that nobody owns */

/** One that has made endpoints which nobody here has claimed. */
struct weft_host {
	LIST_ENTRY(weft_host) entry; /* of its bucket */
	TAILQ_ENTRY(weft_host) rank;
	uint64_t number; /* the lane's: ep_host() */
	unsigned int num_eps;
	TAILQ_HEAD(, weft_ep) eps, busy; /* oldest first; those that are known to have work */
};

#define WEFT_HOST_BUCKETS 256

/** The host behind a lane connection, as its lane tells hosts apart. */
uint64_t weft_host_number(const struct weft_lane_ep *lane_ep);
/**
 * Is there a place for an endpoint more that came over @p lane_ep?
 * @param[out] goes  the endpoint that is to fail to make room for it; NULL = none has to
 * @return false: not now
 */
bool weft_unclaimed_room(struct weft_worker *worker, const struct weft_lane_ep *lane_ep,
			 struct weft_ep **goes);
/** @p ep came over @p lane_ep, and nobody owns it yet. @return 0 or -ENOMEM */
int weft_unclaimed_add(struct weft_ep *ep, const struct weft_lane_ep *lane_ep);
/** It has an owner, or ends. */
void weft_unclaimed_remove(struct weft_ep *ep);

/* ------------------------------------------------------------------ a worker's connections */

/** A connection that a peer made and that has not said yet which endpoint it is for. */
struct weft_pending {
	struct weft_lane_ep *lane_ep;
	uint64_t deadline;
	LIST_ENTRY(weft_pending) link; /* of its bucket, or of the free ones */
	TAILQ_ENTRY(weft_pending) order;
};

#define WEFT_MAX_PENDING 4096
#define WEFT_PENDING_BUCKETS 1024
#define WEFT_EP_TIMER_BATCH 32u

struct weft_conns {
	struct weft_deadlines timers; /* eps, by slot */
	uint32_t *free_slots;         /* of worker->ep_table */
	uint32_t num_free_slots;
	LIST_HEAD(weft_ep_list, weft_ep) * by_sn;        /* worker->ep_table_size buckets */
	LIST_HEAD(, weft_ep) dead;                       /* freed when no call is on the stack */
	LIST_HEAD(, weft_peer) peers[WEFT_PEER_BUCKETS]; /* whose identity is known */
	LIST_HEAD(, weft_peer) by_digest[WEFT_PEER_BUCKETS];
	LIST_HEAD(, weft_peer_place) places[WEFT_PEER_BUCKETS]; /* of peers with endpoints */
	TAILQ_HEAD(, weft_peer) idle;                           /* least recently used first */
	unsigned int num_idle;
	LIST_HEAD(, weft_partial_host) partial_hosts;
	unsigned int num_partials;
	TAILQ_HEAD(, weft_pending) pending; /* oldest first */
	LIST_HEAD(weft_pending_list, weft_pending) pending_table[WEFT_PENDING_BUCKETS];
	LIST_HEAD(, weft_pending) pending_free;
	struct weft_pending pending_room[WEFT_MAX_PENDING]; /* pending_used were used ever */
	unsigned int num_pending, pending_used;
	uint64_t looks; /* entries checked to find one, of all these tables */
	/* Of the eps that nobody owns. */
	LIST_HEAD(weft_host_list, weft_host) hosts[WEFT_HOST_BUCKETS];
	TAILQ_HEAD(weft_host_rank, weft_host) ranks[32]; /* by the logarithm of num_eps */
	unsigned int num_unclaimed;                      /* those */
	struct weft_log_limit limit_bad, limit_refused;
};

int weft_conns_init(struct weft_worker *worker);
void weft_conns_fini(struct weft_worker *worker);
/** Run what is due at worker->now. @return events */
unsigned int weft_conns_timers(struct weft_worker *worker);
/** Free dead endpoints. No callback may be on the stack. */
void weft_conns_reap(struct weft_worker *worker);

/*
 * Callbacks of the worker's ifaces (worker.c sends other ids than WIREUP of attached lanes straight
 * to the messages).
 */
int weft_wireup_recv(struct weft_worker *worker, struct weft_lane_ep *lane_ep, uint8_t am_id,
		     const void *data, size_t length, void *desc);
void weft_wireup_event(struct weft_worker *worker, struct weft_lane_ep *lane_ep,
		       enum weft_lane_event ev, int status, const char *text);

/* ------------------------------------------------------------------ an endpoint being connected */

/** lane_ep->index of a connection that carries no lane. */
#define WEFT_NO_LANE 0xff

enum weft_wireup_step {
	WEFT_STEP_BOOT,      /* initiator: a pair of ifaces is being connected */
	WEFT_STEP_ASKED,     /* initiator: WHO sent, ADDRESS awaited */
	WEFT_STEP_REQUESTED, /* initiator: REQ sent, REP awaited */
	WEFT_STEP_REPLIED,   /* responder: REP sent, ACK or data awaited */
	/*
	 * Over a control channel, addresses of lane 0 exchanged: it is being connected. Its ATTACH
	 * and ATTACHED join the two ends.
	 */
	WEFT_STEP_LINKING,
	WEFT_STEP_ESTABLISHED, /* both ends know: up, further lanes are being attached */
};

enum weft_attach_state {
	WEFT_ATTACH_NONE,    /* no such lane, or finished with */
	WEFT_ATTACH_START,   /* ours to open: not begun */
	WEFT_ATTACH_OPENING, /* ours to open: lane_ep is connecting */
	WEFT_ATTACH_SENT,    /* ours to open: ATTACH sent, or to be sent */
	WEFT_ATTACH_AWAIT,   /* the peer opens it */
	WEFT_ATTACH_EARLY,   /* the peer has said ATTACH, our end is not up yet */
	WEFT_ATTACH_DROP,    /* left out; the peer is still to be told */
};

#define WEFT_MAX_BOOT_PAIRS 64

struct weft_wireup {
	enum weft_wireup_step step;
	bool initiator; /* we sent the REQ */
	bool learning;  /* initiator: the peer's boot address is all we have */
	bool leader;    /* our id is the lower one: the lane map is ours */
	bool map_final; /* both ends have agreed on the map */
	bool busy;      /* the peer has no room for us yet */
	bool granted;   /* credit_out is set */
	bool too_few;   /* lanes, for WEFT_MIN_LANES: is about to fail */
	/*
	 * The boot connection is a channel that loses and doubles: it carries the exchange only,
	 * and lane 0 is a connection of its own.
	 */
	bool control;
	/* Connections we have asked on, as the initiator; number of the REQ we have answered. */
	uint16_t attempt_out, attempt_in;
	uint64_t deadline;
	uint64_t retry_at, backoff;
	/* who the peer is */
	struct weft_address remote;
	struct weft_address_iface local[WEFT_MAX_IFACES]; /* our network ifaces */
	struct weft_select select;
	/* initiator: pairs to connect with, in order */
	struct weft_pair pairs[WEFT_MAX_BOOT_PAIRS];
	/* the lane said no in this round, not merely no answer in time */
	bool pair_down[WEFT_MAX_BOOT_PAIRS];
	bool closed; /* the peer was there, and has closed the connection of this pair */
	unsigned int num_pairs, pair;
	uint64_t pair_timeout, pair_deadline;
	/* connections */
	struct weft_lane_ep *boot; /* becomes lane 0, unless it is a control channel */
	/* higher id: own connection that lost a crossing; goes when the other one is confirmed */
	struct weft_lane_ep *redundant;
	struct weft_lane_ep *deferred_lane_ep; /* lower id: connection whose REQ crossed ours... */
	void *deferred; /* ...and the REQ, answered if our connection fails */
	size_t deferred_len;
	struct weft_wire_credit credit_out, credit_in;
	/* the map */
	struct weft_select_lane map[WEFT_MAX_LANES]; /* by lane number; max_frag 0 = no such lane */
	enum weft_attach_state attach[WEFT_MAX_LANES];
	uint64_t attach_deadline;
	unsigned int renumbered; /* times that our number was used up at the peer */
	/* the message that is retried */
	enum weft_wireup_type msg_type;
	struct weft_records msg;
	struct weft_reason reason; /* last thing that went wrong */
};

/**
 * Start connecting: @p remote is the peer's address; with @p learn made of its boot address.
 * @return 0 or an error, after which the ep is to be released
 */
int weft_wireup_start(struct weft_ep *ep, const struct weft_address *remote, bool learn);
/** The ep's timer has come. */
void weft_wireup_timer(struct weft_ep *ep);
/** Destroy every connection of the ep and its connecting state. */
void weft_wireup_drop(struct weft_ep *ep);
/** Say CLOSE, or CLOSING, over a lane. @return as weft_wireup_send(), or -ENOTCONN */
int weft_wireup_send_close(struct weft_ep *ep, enum weft_wireup_type type);
/** Tell the peer, best effort, that the endpoint failed. */
void weft_wireup_send_failed(struct weft_ep *ep, int status, const char *text);
/** Fill the fields of a head that follow from the ep. */
void weft_wireup_head(const struct weft_ep *ep, enum weft_wireup_type type, unsigned int lane,
		      struct weft_wire_wireup *h);
/** Destroy a connection; what is being put together from it goes too. */
void weft_lane_ep_destroy(struct weft_worker *worker, struct weft_lane_ep *lane_ep);
/** The connection belongs to an endpoint now: it no longer ends with WEFT_CONNECT_TIMEOUT. */
void weft_pending_remove(struct weft_worker *worker, const struct weft_lane_ep *lane_ep);

/* Among the wire-up files. */

/** A question of the initiator's has no answer yet. */
static inline bool weft_wireup_asks(const struct weft_wireup *wu)
{
	return wu->step == WEFT_STEP_REQUESTED || wu->step == WEFT_STEP_ASKED;
}

static inline bool weft_ref_equal(struct weft_wire_ref a, struct weft_wire_ref b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

/** WEFT_CONNECT_TIMEOUT, ns. */
uint64_t weft_connect_timeout(const struct weft_worker *w);
/** End those that nobody has bound in time. */
void weft_pending_timers(struct weft_worker *w);
/** Put a connection on the list of those that nobody has bound. */
void weft_pending_add(struct weft_worker *w, struct weft_lane_ep *lane_ep);
/** Count and log a message that is dropped. */
void weft_wireup_bad(struct weft_worker *w, struct weft_lane_ep *lane_ep, const char *why);
/** Answer a REQ with "no". */
void weft_wireup_refuse(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			const struct weft_wire_wireup *req, int status, const char *text);
/** The same with ESTALE: its number is used up, the one that is free goes with it. */
void weft_wireup_refuse_stale(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			      const struct weft_wire_wireup *req, const struct weft_peer *peer,
			      const char *text);
/** @p lane_ep brought something that leads to nothing: over a control channel it goes at once. */
void weft_wireup_unwanted(struct weft_worker *w, struct weft_lane_ep *lane_ep);
/** Connecting state of an ep; NULL = no memory. */
struct weft_wireup *weft_wireup_new(struct weft_ep *ep, const struct weft_address *remote);
/**
 * Destroy the connections that a crossing has left over: the redundant one, the deferred one and
 * its REQ.
 */
void weft_wireup_drop_extra(struct weft_ep *ep);
/** Free the connecting state when nothing is left to do. */
void weft_wireup_finalize(struct weft_ep *ep);
/** Send wireup->msg as a message of this type, and again until it is answered. */
void weft_wireup_send_new(struct weft_ep *ep, enum weft_wireup_type type);
/** Is the far end of @p lane_ep, by what its lane has seen, the interface with this address? */
static inline bool weft_lane_ep_is_from(struct weft_lane_ep *lane_ep,
					const struct weft_address_iface *a)
{
	return lane_ep->ops->ep_is_from == NULL ||
	       lane_ep->ops->ep_is_from(lane_ep, a->addr, a->addr_len);
}

/** Send what the current step wants sent, once more. */
void weft_wireup_resend(struct weft_ep *ep);
/** Tell the peer how fast our CPU copies. */
void weft_wireup_add_model(struct weft_ep *ep, struct weft_records *r);
/** The peer has told its own: ep->bcopy_bw is the smaller one. */
void weft_wireup_agree_model(struct weft_ep *ep, const struct weft_wireup_msg *m);
/** Make wireup->credit_out, once. */
void weft_wireup_grant(struct weft_ep *ep);
/** Initiator: its connection is up. */
void weft_wireup_boot_up(struct weft_ep *ep);
/**
 * Initiator: its connection is lost before the REP. @p definite: the lane said so; else it gave no
 * answer in time
 */
void weft_wireup_boot_failed(struct weft_ep *ep, bool definite);
/** A responder that lost its initiator and whose user wants the endpoint becomes the initiator. */
void weft_wireup_restart(struct weft_ep *ep);
/** Responder: the initiator has the REP. */
void weft_wireup_confirm(struct weft_ep *ep);
/** Responder: @p lane_ep, over which the REQ @p m came, becomes lane 0. */
void weft_wireup_accept(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			const struct weft_wireup_msg *m);
void weft_wireup_req(struct weft_worker *w, struct weft_lane_ep *lane_ep,
		     const struct weft_wireup_msg *m, const void *records, size_t len);
void weft_wireup_rep(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
		     const struct weft_wireup_msg *m);
void weft_wireup_ack(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
		     const struct weft_wireup_msg *m);

/** Both ends of lane 0 have heard each other over it, after an exchange over a control channel. */
void weft_wireup_linked(struct weft_ep *ep);

/* wireup/ep_addr.c */
/** Is lane @p n of the map one whose ends need each other's address? */
bool weft_link_needed(const struct weft_ep *ep, unsigned int n);
/**
 * Make our ends of such lanes. Lanes that cannot be had leave the map. @return 0, or the error of
 * lane 0
 */
int weft_links_create(struct weft_ep *ep);
/** Add our ends' addresses to a message that has the map. */
void weft_links_record(const struct weft_ep *ep, struct weft_records *r);
/** Are the addresses in @p m, of lanes to @p remote, as long as its interfaces say? */
bool weft_links_good(const struct weft_worker *w, const struct weft_address *remote,
		     const struct weft_wireup_msg *m);
/**
 * Connect our ends to the peer's; ends of lanes that the map has lost go.
 * @param final  both maps are made: the peer must be told of lanes that are left out now
 * @return 0, or the error of lane 0
 */
int weft_links_connect(struct weft_ep *ep, const struct weft_wireup_msg *m, bool final);
/** Forget all lanes that are connected or being connected, and the boot connection. */
void weft_links_reset(struct weft_ep *ep);
/** Addresses are exchanged over a control channel: from here on lane 0 is connected. */
void weft_links_begin(struct weft_ep *ep);
/** Lane @p n is connected at both ends, and both know. */
void weft_link_attached(struct weft_ep *ep, unsigned int n);

/* wireup/map.c */
/** Position of iface number @p index in the list, or -1. */
int weft_lanes_position(const struct weft_address_iface *list, unsigned int n, unsigned int index);
void weft_lanes_describe_local(struct weft_ep *ep);
void weft_lanes_find_reachable(struct weft_ep *ep, bool complain);
/** The leader's choice, with @p boot as lane 0. */
void weft_lanes_propose(struct weft_ep *ep, struct weft_pair boot);
/**
 * Take a map from the peer, leaving out what cannot be. @return lanes kept, or -EPROTO: not even
 * lane 0 fits
 */
int weft_lanes_accept(struct weft_ep *ep, const struct weft_wireup_msg *m, struct weft_pair boot);
void weft_lanes_record(const struct weft_ep *ep, struct weft_records *r);
/** The interface that lane @p n of the map uses here. */
static inline struct weft_lane_iface *weft_map_iface(const struct weft_ep *ep, unsigned int n)
{
	const struct weft_wireup *wu = ep->wireup;

	return ep->worker->ifaces[wu->local[wu->map[n].pair.local].index];
}

/** What @p lane_ep has measured counts, unless a user knows better: @p set, WEFT_LANE_F_*_SET. */
void weft_map_measured(struct weft_lane_ep *lane_ep, uint32_t set, struct weft_select_lane *lane);
/** The leader: lane @p n gets the numbers that @p lane_ep has measured, if any. */
void weft_map_take_measured(struct weft_ep *ep, unsigned int n, struct weft_lane_ep *lane_ep);
/** The peer's numbers of a lane: what it has chosen by. */
void weft_map_get_numbers(const struct weft_wire_lane *wl, struct weft_select_lane *lane);
/** Lane @p n of the map as it is sent. */
struct weft_wire_lane weft_map_wire_lane(const struct weft_ep *ep, unsigned int n);

/* wireup/lanes.c */
/** Bind a connection as lane @p n. */
void weft_lane_bind(struct weft_ep *ep, unsigned int n, struct weft_lane_ep *lane_ep);
/** Lane @p n is attached at both ends. */
void weft_lane_up(struct weft_ep *ep, unsigned int n);
/** Lane @p n, which was up, carries nothing any more; others do. */
void weft_lane_lost(struct weft_ep *ep, unsigned int n);
/** Any lane that is up, for wire-up messages; NULL = none is. */
struct weft_lane_ep *weft_lane_any(const struct weft_ep *ep);
/** Say ATTACHED, of connection number @p epoch of the lane. */
void weft_lane_answer_attach(struct weft_ep *ep, struct weft_lane_ep *lane_ep, unsigned int n,
			     uint16_t epoch);
/** The map is agreed: open or await the further lanes. */
void weft_lanes_start(struct weft_ep *ep);
void weft_lanes_timer(struct weft_ep *ep);
void weft_lane_ep_up(struct weft_ep *ep, unsigned int n);
/** Leave a lane out that is not attached. @p tell: the peer does not know yet */
void weft_lane_leave_out(struct weft_ep *ep, unsigned int n, const char *why, bool tell);
bool weft_lanes_settled(const struct weft_ep *ep);
void weft_lanes_attach(struct weft_worker *worker, struct weft_ep *ep, struct weft_lane_ep *lane_ep,
		       const struct weft_wireup_msg *m);
void weft_lanes_attached(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			 const struct weft_wireup_msg *m);

/* ------------------------------------------------------------------ wireup/ep_table.c */

/** Give it a slot and a generation. @return 0 or -ENOMEM */
int weft_ep_slot_take(struct weft_ep *ep);
/** It has no slot, no generation and no timer any more. */
void weft_ep_slot_give(struct weft_ep *ep);
/** It can be found by ep->peer and ep->conn_sn. */
void weft_ep_sn_add(struct weft_ep *ep);

/* ------------------------------------------------------------------ wireup/ep.c */

/** A new endpoint with a slot and message state, CONNECTING. @return NULL = no memory */
struct weft_ep *weft_ep_alloc(struct weft_worker *worker, struct weft_peer *peer, uint32_t conn_sn,
			      bool owned);
/**
 * Take it out of every table, destroy its connections, end its messages with @p status; freed
 * later.
 */
void weft_ep_retire(struct weft_ep *ep, int status);
/** The worker goes: the ep ends with -ECANCELED, and so does its close. */
void weft_ep_close_now(struct weft_ep *ep);
/** The peer has closed. */
void weft_ep_remote_closed(struct weft_ep *ep, const char *text);
/** A lane in use has failed. */
void weft_ep_lane_down(struct weft_ep *ep, int status, const char *text);
/** Endpoint of a reference that the peer used, or NULL. */
struct weft_ep *weft_ep_of_ref(const struct weft_worker *worker, struct weft_wire_ref ref);
/** Wake the ep's timer at @p when at the latest. */
void weft_ep_timer_at(struct weft_ep *ep, uint64_t when);

/* wireup/close.c */
/** An ep that is being closed has gone up, or its timer came. */
void weft_ep_closing_step(struct weft_ep *ep);
/** A lane has died: what it gives back goes over others, which are flushed again. */
void weft_ep_closing_lanes(struct weft_ep *ep);
/** The ep being closed is retired: its close ends. */
void weft_ep_closing_end(struct weft_ep *ep, int status);
/**
 * What the close has to say if the ep ends now with @p status: nothing is lost once the flush is
 * over.
 */
int weft_ep_closing_status(const struct weft_ep *ep, int status);

/* wireup/ep.c: the ends of an endpoint, see struct weft_ep_events (core/endpoint.h) */

void weft_ep_fail(struct weft_ep *ep, int status, const char *why_fmt, ...)
	__attribute__((format(printf, 3, 4)));
/** weft_ep_events.fail(): the peer is told, unless @p status says that it has gone. */
void weft_ep_fail_text(struct weft_ep *ep, int status, const char *why);
void weft_ep_fail_later(struct weft_ep *ep, int status, const char *why);

/* ------------------------------------------------------------------ ports and devices */

/* wireup/rails.c */
/**
 * An interface of a worker being made is not there: kept for the sentence of weft_rails_opened().
 */
void weft_rails_missing(struct weft_worker *w, const char *name, const char *why);
/** All are open that can be. @return 0, or -ENODEV: fewer than WEFT_MIN_LANES, and that was said */
int weft_rails_opened(struct weft_worker *w, bool wants_rails);

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
/**
 * A lane of @p iface may be dead; thousands may be, with their interface.
 * @return when it is to be checked: now, or later than those before
 */
uint64_t weft_iface_suspect_at(struct weft_worker *w, const struct weft_lane_iface *iface);
/** A lane of it is given up, or @p back. @return it may have a line; else it is counted in one */
bool weft_iface_lane_line(struct weft_worker *w, const struct weft_lane_iface *iface, bool back);

#endif /* WEFT_WIREUP_H */
