/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/wireup.h
 * Connecting endpoints: state and functions that the files of the connection layer share.
 * doc/wire.md describes the exchange.
 *
 * One state machine, whose files may call each other:
 *   wireup/wireup.c     messages of both ends, repetition, established, time
 *   wireup/initiator.c  choice of the pair of interfaces, and REQ
 *   wireup/responder.c  handling of a received REQ
 *   wireup/lanes.c      attaching further lanes
 *   wireup/ep_addr.c    lanes whose two ends need each other's address
 *   wireup/ep.c         creation, failure and queries of endpoints
 *   wireup/close.c      closing and flushing
 *   wireup/lane_state.c  which lane is up, memory for failover
 *   wireup/failover.c   lanes that die
 *   wireup/lane_return.c  lanes that come back
 *   wireup/lane_link.c  the same for lanes whose two ends need each other's address
 * Above it:
 *   wireup/learn.c      boot addresses: request and reply for the whole address
 *   wireup/recv.c       messages and events: finds their endpoint
 *   wireup/progress.c   timers
 *   wireup/iface_event.c  links that go down and come up
 * Below it:
 *   wireup/boot_address.c  a worker's own, and the address that follows from a peer's
 *   wireup/map.c        the lane map: proposing, reducing
 *   wireup/select.c     which pairs of interfaces become lanes
 *   wireup/model.c      the copy rate of both ends
 *   wireup/refuse.c     refusals, failure, close as messages
 *   wireup/record.c, wireup/piece.c  bytes: building and parsing, cutting and joining
 *   wireup/peer.c       records of remote workers
 *   wireup/ep_table.c   endpoints by slot, number and time
 *   wireup/pending.c    connections without an endpoint yet
 *   wireup/unclaimed.c  endpoints that the program has not claimed
 *   wireup/rails.c      lanes that are missing, or worse than others
 */
#ifndef WEFT_WIREUP_H
#define WEFT_WIREUP_H

#include "base/container.h"
#include "base/log.h"
#include "base/text.h"
#include "core/address.h"
#include "core/endpoint.h"
#include "core/wire.h"
#include "wireup/peer.h"
#include "wireup/select.h"

/* ------------------------------------------------------------------ messages */

/** A validated WIREUP message. Pointers point into the received bytes. */
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
	float bcopy_bw; /* bytes/s; 0 = not in the message */
	bool have_next_sn;
	uint32_t next_sn; /* with ESTALE: a number that is free at the sender */
	/* Addresses of the sender's ends of lanes; len 0 = none. The lane is in `lanes`. */
	struct {
		const uint8_t *bytes;
		uint8_t len;
	} ep_addr[WEFT_MAX_LANES];
	const void *rx_state; /* of LANE_DOWN and LANE_DOWN_ACK, not validated; NULL = none */
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
 * Send a message, in pieces if it is too long. @return 0, -EAGAIN (send all of it again later), or
 * the lane's error
 */
int weft_wireup_send(struct weft_lane_ep *lane_ep, struct weft_wire_wireup *head,
		     const void *records, size_t len);

/** Validate a whole message, without state. @return 0, or -EPROTO with a reason in @p why */
int weft_wireup_parse(const struct weft_wire_wireup *head, const void *records, size_t len,
		      struct weft_wireup_msg *m, const char **why);

/** A message that is being assembled from its pieces. */
struct weft_partial {
	TAILQ_ENTRY(weft_partial) entry; /* of its host's */
	struct weft_partial_host *host;
	struct weft_lane_ep *lane_ep;
	struct weft_wire_wireup head; /* of its first piece */
	size_t total, got;
	uint8_t have[WEFT_WIREUP_MAX / 8]; /* bit per byte */
	uint8_t data[];
};

/** A host that sends such messages. */
struct weft_partial_host {
	LIST_ENTRY(weft_partial_host) entry;
	uint64_t number; /* weft_host_number() */
	unsigned int num;
	TAILQ_HEAD(, weft_partial) partials; /* oldest first */
};

/**
 * Most partial messages of a worker, and of one connection. When all are in use, the host with the
 * most of them loses its oldest one. So a host that has none always gets a place, however many
 * other hosts are greedy. An honest peer sends one message after the other; there are two when a
 * repeated message follows one of another step.
 */
#define WEFT_MAX_PARTIALS 128
#define WEFT_MAX_PARTIALS_LANE_EP 2

struct weft_conns;

/**
 * Add a received piece.
 * @param[out] records  the whole message's records when it is complete: valid until
 *   weft_partial_done(), or the end of the callback
 * @param[out] done     to be passed to weft_partial_done() after use; NULL = nothing to do
 * @return 1 complete, 0 incomplete, -EPROTO malformed, -ENOMEM
 */
int weft_partial_add(struct weft_conns *conns, struct weft_lane_ep *lane_ep, const void *data,
		     size_t length, struct weft_wire_wireup *head, const void **records,
		     size_t *len, struct weft_partial **done);
void weft_partial_done(struct weft_partial *p);
/** The lane_ep is destroyed: free its partial messages. */
void weft_partial_forget(struct weft_conns *conns, const struct weft_lane_ep *lane_ep);
void weft_partials_fini(struct weft_conns *conns);

/* ------------------------------------------------------------------ unclaimed endpoints */

/** A host that has made endpoints which the program has not claimed. */
struct weft_host {
	LIST_ENTRY(weft_host) entry; /* of its bucket */
	TAILQ_ENTRY(weft_host) rank;
	uint64_t number; /* the lane's: ep_host() */
	unsigned int num_eps;
	TAILQ_HEAD(, weft_ep) eps, busy; /* oldest first; those over which a message has arrived */
};

#define WEFT_HOST_BUCKETS 256

/** The host at the far end of a lane connection, as its lane identifies hosts. */
uint64_t weft_host_number(const struct weft_lane_ep *lane_ep);
/**
 * Is there a place for one more endpoint, whose REQ came over @p lane_ep?
 * @param[out] goes  the endpoint that must fail to make room for it; NULL = none
 * @return false: not now
 */
bool weft_unclaimed_room(struct weft_worker *worker, const struct weft_lane_ep *lane_ep,
			 struct weft_ep **goes);
/** Enter @p ep, whose REQ came over @p lane_ep, as unclaimed. @return 0 or -ENOMEM */
int weft_unclaimed_add(struct weft_ep *ep, const struct weft_lane_ep *lane_ep);
/** Remove @p ep, because it is claimed or ends. */
void weft_unclaimed_remove(struct weft_ep *ep);

/* ------------------------------------------------------------------ a worker's connections */

/** A connection that a peer made, and over which no message for an endpoint has arrived yet. */
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
	struct weft_pending pending_room[WEFT_MAX_PENDING]; /* pending_used have been used */
	unsigned int num_pending, pending_used;
	uint64_t looks; /* entries checked in searches of all these tables */
	/* Hosts of unclaimed eps. */
	LIST_HEAD(weft_host_list, weft_host) hosts[WEFT_HOST_BUCKETS];
	TAILQ_HEAD(weft_host_rank, weft_host) ranks[32]; /* by the logarithm of num_eps */
	unsigned int num_unclaimed;
	struct weft_log_limit limit_bad, limit_refused;
};

int weft_conns_init(struct weft_worker *worker);
void weft_conns_fini(struct weft_worker *worker);
/** Run the timers that are due at worker->now. @return events */
unsigned int weft_conns_timers(struct weft_worker *worker);
/** Free dead endpoints. No callback may be on the stack. */
void weft_conns_reap(struct weft_worker *worker);

/*
 * Callbacks of the worker's ifaces. (lib/dispatch.c passes other ids than WIREUP of attached lanes
 * directly to the message layer.)
 */
int weft_wireup_recv(struct weft_worker *worker, struct weft_lane_ep *lane_ep, uint8_t am_id,
		     const void *data, size_t length, void *desc);
void weft_wireup_event(struct weft_worker *worker, struct weft_lane_ep *lane_ep,
		       enum weft_lane_event ev, int status, const char *text);

/* ------------------------------------------------------------------ an endpoint being connected */

/** lane_ep->index of a connection that is no lane. */
#define WEFT_NO_LANE 0xff

enum weft_wireup_step {
	WEFT_STEP_BOOT,              /* initiator: a pair of ifaces is being connected */
	WEFT_STEP_ADDRESS_REQUESTED, /* initiator: WEFT_WIREUP_WHO sent, ADDRESS awaited */
	WEFT_STEP_REQUESTED,         /* initiator: REQ sent, REP awaited */
	WEFT_STEP_REPLIED,           /* responder: REP sent, ACK or data awaited */
	/*
	 * Over a control channel: the addresses of lane 0 are exchanged, and it is being connected.
	 * Its ATTACH and ATTACHED establish the two ends.
	 */
	WEFT_STEP_LINKING,
	WEFT_STEP_ESTABLISHED, /* up at both ends; further lanes are being attached */
};

enum weft_attach_state {
	WEFT_ATTACH_NONE,    /* no such lane, or finished */
	WEFT_ATTACH_START,   /* opened by this end: not begun */
	WEFT_ATTACH_OPENING, /* opened by this end: lane_ep is connecting */
	WEFT_ATTACH_SENT,    /* opened by this end: ATTACH sent, or to be sent */
	WEFT_ATTACH_AWAIT,   /* opened by the peer */
	WEFT_ATTACH_EARLY,   /* the peer has sent ATTACH, our end is not up yet */
	WEFT_ATTACH_DROP,    /* left out; the peer must still be notified */
};

#define WEFT_MAX_BOOT_PAIRS 64

struct weft_wireup {
	enum weft_wireup_step step;
	bool initiator; /* we sent the REQ */
	bool learning;  /* initiator: only the peer's boot address is known */
	bool leader;    /* our id is the lower one: we propose the lane map */
	bool map_final; /* both ends have agreed on the map */
	bool busy;      /* the peer refused for lack of places; we repeat the REQ */
	bool granted;   /* credit_out is set */
	bool too_few;   /* fewer lanes than WEFT_MIN_LANES: it is about to fail */
	/*
	 * The boot connection is a control channel, which loses and duplicates messages: it carries
	 * the exchange only, and lane 0 is a connection of its own.
	 */
	bool control;
	/*
	 * Number of connections over which we have sent REQ; number of the REQ that we have
	 * accepted.
	 */
	uint16_t attempt_out, attempt_in;
	uint64_t deadline;
	uint64_t retry_at, backoff;
	/* the peer */
	struct weft_address remote;
	struct weft_address_iface local[WEFT_MAX_IFACES]; /* our network ifaces */
	struct weft_select select;
	/* initiator: pairs to connect with, in order */
	struct weft_pair pairs[WEFT_MAX_BOOT_PAIRS];
	/* the lane reported a failure in this round, not merely a timeout */
	bool pair_down[WEFT_MAX_BOOT_PAIRS];
	bool closed; /* the peer has closed the connection of this pair */
	unsigned int num_pairs, pair;
	uint64_t pair_timeout, pair_deadline;
	/* connections */
	struct weft_lane_ep *boot; /* becomes lane 0, unless it is a control channel */
	/*
	 * higher id: own connection that lost a crossing; destroyed when the other one is confirmed
	 */
	struct weft_lane_ep *redundant;
	struct weft_lane_ep *deferred_lane_ep; /* lower id: connection whose REQ crossed ours... */
	void *deferred; /* ...and the REQ, accepted if our connection fails */
	size_t deferred_len;
	struct weft_wire_credit credit_out, credit_in;
	/* the map */
	struct weft_select_lane map[WEFT_MAX_LANES]; /* by lane number; max_frag 0 = no such lane */
	enum weft_attach_state attach[WEFT_MAX_LANES];
	uint64_t attach_deadline;
	unsigned int renumbered; /* times that the peer had used our number already */
	/* the message that is repeated */
	enum weft_wireup_type msg_type;
	struct weft_records msg;
	struct weft_reason reason; /* the last failure */
};

/**
 * Start connecting: @p remote is the peer's address; with @p learn it follows from the boot
 * address. @return 0 or an error, after which the caller must release the ep
 */
int weft_wireup_start(struct weft_ep *ep, const struct weft_address *remote, bool learn);
/** The ep's timer has expired. */
void weft_wireup_timer(struct weft_ep *ep);
/** Destroy every connection of the ep and its connecting state. */
void weft_wireup_drop(struct weft_ep *ep);
/** Send CLOSE, or CLOSING, over a lane. @return as weft_wireup_send(), or -ENOTCONN */
int weft_wireup_send_close(struct weft_ep *ep, enum weft_wireup_type type);
/** Notify the peer, best effort, that the endpoint failed. */
void weft_wireup_send_failed(struct weft_ep *ep, int status, const char *text);
/** Fill the fields of a head from the ep. */
void weft_wireup_head(const struct weft_ep *ep, enum weft_wireup_type type, unsigned int lane,
		      struct weft_wire_wireup *h);
/** Destroy a connection and its partial messages. */
void weft_lane_ep_destroy(struct weft_worker *worker, struct weft_lane_ep *lane_ep);
/** The connection belongs to an endpoint now: it no longer ends with WEFT_CONNECT_TIMEOUT. */
void weft_pending_remove(struct weft_worker *worker, const struct weft_lane_ep *lane_ep);

/* Between the wire-up files. */

/** Does a request of the initiator await its reply? */
static inline bool weft_wireup_awaits_reply(const struct weft_wireup *wu)
{
	return wu->step == WEFT_STEP_REQUESTED || wu->step == WEFT_STEP_ADDRESS_REQUESTED;
}

static inline bool weft_ref_equal(struct weft_wire_ref a, struct weft_wire_ref b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

/** WEFT_CONNECT_TIMEOUT, ns. */
uint64_t weft_connect_timeout(const struct weft_worker *w);
/** Destroy pending connections that were not bound in time. */
void weft_pending_timers(struct weft_worker *w);
/** Put a connection on the list of pending ones, which are not bound to an endpoint. */
void weft_pending_add(struct weft_worker *w, struct weft_lane_ep *lane_ep);
/** Count and log a message that is dropped. */
void weft_wireup_bad(struct weft_worker *w, struct weft_lane_ep *lane_ep, const char *why);
/** Refuse a REQ. */
void weft_wireup_refuse(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			const struct weft_wire_wireup *req, int status, const char *text);
/** The same with ESTALE: its number was used before, and the reply contains one that is free. */
void weft_wireup_refuse_stale(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			      const struct weft_wire_wireup *req, const struct weft_peer *peer,
			      const char *text);
/**
 * A message over @p lane_ep has had no effect: a control channel's connection is destroyed at once.
 */
void weft_wireup_unwanted(struct weft_worker *w, struct weft_lane_ep *lane_ep);
/** Connecting state of an ep; NULL = no memory. */
struct weft_wireup *weft_wireup_new(struct weft_ep *ep, const struct weft_address *remote);
/**
 * Destroy the connections that a crossing has left: the redundant one, and the deferred one with
 * its REQ.
 */
void weft_wireup_drop_extra(struct weft_ep *ep);
/** Free the connecting state when nothing is left to do. */
void weft_wireup_finalize(struct weft_ep *ep);
/** Send wireup->msg as a message of this type, and repeat it until there is a reply. */
void weft_wireup_send_new(struct weft_ep *ep, enum weft_wireup_type type);
/**
 * Is the far end of @p lane_ep, by the observation of its lane, the interface with this address?
 */
static inline bool weft_lane_ep_is_from(struct weft_lane_ep *lane_ep,
					const struct weft_address_iface *a)
{
	return lane_ep->ops->ep_is_from == NULL ||
	       lane_ep->ops->ep_is_from(lane_ep, a->addr, a->addr_len);
}

/** Send the message of the current step again. */
void weft_wireup_resend(struct weft_ep *ep);
/** Add the copy rate of our CPU to a message. */
void weft_wireup_add_model(struct weft_ep *ep, struct weft_records *r);
/** Take the peer's copy rate: ep->bcopy_bw is the smaller one. */
void weft_wireup_agree_model(struct weft_ep *ep, const struct weft_wireup_msg *m);
/** Make wireup->credit_out, once. */
void weft_wireup_grant(struct weft_ep *ep);
/** Initiator: its connection is up. */
void weft_wireup_boot_up(struct weft_ep *ep);
/**
 * Initiator: its connection is lost before the REP. @p definite: the lane reported it; else there
 * was no reply in time
 */
void weft_wireup_boot_failed(struct weft_ep *ep, bool definite);
/**
 * A responder that lost its initiator, and that the application has claimed, becomes the initiator.
 */
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

/**
 * Both ends of lane 0 have received a message over it, after an exchange over a control channel.
 */
void weft_wireup_linked(struct weft_ep *ep);

/* wireup/ep_addr.c */
/** Do the ends of lane @p n of the map need each other's address? */
bool weft_link_needed(const struct weft_ep *ep, unsigned int n);
/**
 * Make our ends of such lanes. Lanes that cannot be made are removed from the map. @return 0, or
 * the error of lane 0
 */
int weft_links_create(struct weft_ep *ep);
/** Add our ends' addresses to a message that has the map. */
void weft_links_record(const struct weft_ep *ep, struct weft_records *r);
/** Have the addresses in @p m, of lanes to @p remote, the lengths that its interfaces require? */
bool weft_links_good(const struct weft_worker *w, const struct weft_address *remote,
		     const struct weft_wireup_msg *m);
/**
 * Connect our ends to the peer's; destroy the ends of lanes that are no longer in the map.
 * @param final  both maps are made: notify the peer of lanes that are left out from now on
 * @return 0, or the error of lane 0
 */
int weft_links_connect(struct weft_ep *ep, const struct weft_wireup_msg *m, bool final);
/** Destroy all lanes that are connected or being connected, and the boot connection. */
void weft_links_reset(struct weft_ep *ep);
/** The addresses are exchanged over a control channel: start to connect lane 0. */
void weft_links_begin(struct weft_ep *ep);
/** Lane @p n is attached at both ends. */
void weft_link_attached(struct weft_ep *ep, unsigned int n);

/* wireup/map.c */
/** Position of iface number @p index in the list, or -1. */
int weft_lanes_position(const struct weft_address_iface *list, unsigned int n, unsigned int index);
void weft_lanes_describe_local(struct weft_ep *ep);
void weft_lanes_find_reachable(struct weft_ep *ep, bool complain);
/** The leader's choice, with @p boot as lane 0. */
void weft_lanes_propose(struct weft_ep *ep, struct weft_pair boot);
/**
 * Accept a map from the peer, without its impossible lanes. @return lanes kept, or -EPROTO: not
 * even lane 0 is possible
 */
int weft_lanes_accept(struct weft_ep *ep, const struct weft_wireup_msg *m, struct weft_pair boot);
void weft_lanes_record(const struct weft_ep *ep, struct weft_records *r);
/** The interface that lane @p n of the map uses here. */
static inline struct weft_lane_iface *weft_map_iface(const struct weft_ep *ep, unsigned int n)
{
	const struct weft_wireup *wu = ep->wireup;

	return ep->worker->ifaces[wu->local[wu->map[n].pair.local].index];
}

/**
 * Take the numbers that @p lane_ep has measured, except those that a user has set: @p set,
 * WEFT_LANE_F_*_SET.
 */
void weft_map_measured(struct weft_lane_ep *lane_ep, uint32_t set, struct weft_select_lane *lane);
/** The leader: give lane @p n the numbers that @p lane_ep has measured, if any. */
void weft_map_take_measured(struct weft_ep *ep, unsigned int n, struct weft_lane_ep *lane_ep);
/** The peer's numbers of a lane, by which it has made its choices. */
void weft_map_get_numbers(const struct weft_wire_lane *wl, struct weft_select_lane *lane);
/** Lane @p n of the map in the form of the wire. */
struct weft_wire_lane weft_map_wire_lane(const struct weft_ep *ep, unsigned int n);

/* wireup/lanes.c */
/** Bind a connection as lane @p n. */
void weft_lane_bind(struct weft_ep *ep, unsigned int n, struct weft_lane_ep *lane_ep);
/** Lane @p n is attached at both ends. */
void weft_lane_up(struct weft_ep *ep, unsigned int n);
/** Lane @p n, which was up, carries no messages any more; other lanes do. */
void weft_lane_lost(struct weft_ep *ep, unsigned int n);
/** Any lane that is up, for wire-up messages; NULL = none is. */
struct weft_lane_ep *weft_lane_any(const struct weft_ep *ep);
/** Send ATTACHED, for connection number @p epoch of the lane. */
void weft_lane_answer_attach(struct weft_ep *ep, struct weft_lane_ep *lane_ep, unsigned int n,
			     uint16_t epoch);
/** The map is agreed: open or await the further lanes. */
void weft_lanes_start(struct weft_ep *ep);
void weft_lanes_timer(struct weft_ep *ep);
void weft_lane_ep_up(struct weft_ep *ep, unsigned int n);
/** Leave out a lane that is not attached, and notify the peer if the last argument is true. */
void weft_lane_leave_out(struct weft_ep *ep, unsigned int n, const char *why, bool notify_peer);
bool weft_lanes_settled(const struct weft_ep *ep);
void weft_lanes_attach(struct weft_worker *worker, struct weft_ep *ep, struct weft_lane_ep *lane_ep,
		       const struct weft_wireup_msg *m);
void weft_lanes_attached(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			 const struct weft_wireup_msg *m);

/* ------------------------------------------------------------------ wireup/ep_table.c */

/** Give @p ep a slot and a generation. @return 0 or -ENOMEM */
int weft_ep_slot_take(struct weft_ep *ep);
/** Release the slot, the generation and the timer of @p ep. */
void weft_ep_slot_give(struct weft_ep *ep);
/** Enter @p ep in the table by ep->peer and ep->conn_sn. */
void weft_ep_sn_add(struct weft_ep *ep);

/* ------------------------------------------------------------------ wireup/ep.c */

/** A new endpoint with a slot and message state, CONNECTING. @return NULL = no memory */
struct weft_ep *weft_ep_alloc(struct weft_worker *worker, struct weft_peer *peer, uint32_t conn_sn,
			      bool owned);
/**
 * Remove @p ep from every table, destroy its connections, end its messages with @p status. It is
 * freed later.
 */
void weft_ep_retire(struct weft_ep *ep, int status);
/** The worker is destroyed: the ep ends with -ECANCELED, and so does its close. */
void weft_ep_close_now(struct weft_ep *ep);
/** The peer has closed. */
void weft_ep_remote_closed(struct weft_ep *ep, const char *text);
/** A lane in use has failed. */
void weft_ep_lane_down(struct weft_ep *ep, int status, const char *text);
/** Endpoint of a reference in a peer's message, or NULL. */
struct weft_ep *weft_ep_of_ref(const struct weft_worker *worker, struct weft_wire_ref ref);
/** Set the ep's timer to @p when, or earlier if it is set already. */
void weft_ep_timer_at(struct weft_ep *ep, uint64_t when);

/* wireup/close.c */
/** An ep that is being closed is up now, or its timer has expired. */
void weft_ep_closing_step(struct weft_ep *ep);
/** A lane has died: other lanes send its messages, so they must be flushed again. */
void weft_ep_closing_lanes(struct weft_ep *ep);
/** The ep that is being closed is retired: end its close. */
void weft_ep_closing_end(struct weft_ep *ep, int status);
/**
 * Status of the close if the ep ends now with @p status: 0 once the flush is over, because no
 * message is lost then.
 */
int weft_ep_closing_status(const struct weft_ep *ep, int status);

/* wireup/ep.c: the ends of an endpoint, see struct weft_ep_events (core/endpoint.h) */

void weft_ep_fail(struct weft_ep *ep, int status, const char *why_fmt, ...)
	__attribute__((format(printf, 3, 4)));
/** weft_ep_events.fail(): the peer is notified, unless @p status means that it is gone. */
void weft_ep_fail_text(struct weft_ep *ep, int status, const char *why);
void weft_ep_fail_later(struct weft_ep *ep, int status, const char *why);

/* ------------------------------------------------------------------ ports and devices */

/* wireup/rails.c */
/**
 * An interface of a worker that is being created is missing: store the reason for the message of
 * weft_rails_opened().
 */
void weft_rails_missing(struct weft_worker *w, const char *name, const char *why);
/**
 * All possible interfaces are open. @return 0, or -ENODEV: fewer than WEFT_MIN_LANES, which has
 * been logged
 */
int weft_rails_opened(struct weft_worker *w, bool wants_rails);

/* wireup/iface_event.c: events of ports and devices, in the log */

/** ifaces[@p index] was opened. */
void weft_iface_link_init(struct weft_worker *w, unsigned int index);
/** weft_lane_open.iface_event; @p arg is the worker. */
void weft_iface_event(void *arg, struct weft_lane_iface *iface, enum weft_lane_iface_event ev,
		      const char *text);
/** The reason why @p iface has no link, and the remedy, as text. */
void weft_iface_link_text(struct weft_lane_iface *iface, char *buf, size_t size);
/** Check links that are not up yet: part of weft_conns_timers(). */
void weft_iface_timers(struct weft_worker *w);
/**
 * A lane of @p iface may be dead. With their interface thousands may be dead.
 * @return time of its check: now, or after the checks before it
 */
uint64_t weft_iface_suspect_at(struct weft_worker *w, const struct weft_lane_iface *iface);
/**
 * A lane of @p iface is given up, or @p back. @return it may have a log line; else a later line
 * counts it
 */
bool weft_iface_lane_line(struct weft_worker *w, const struct weft_lane_iface *iface, bool back);

#endif /* WEFT_WIREUP_H */
