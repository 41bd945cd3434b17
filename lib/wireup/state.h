/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/state.h
 * The state that the files of the connection layer share: a worker's connections, an endpoint that
 * is being connected, and lanes that die.
 */
#ifndef WEFT_WIREUP_STATE_H
#define WEFT_WIREUP_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include "base/container.h"
#include "base/log.h"
#include "base/text.h"
#include "core/address.h"
#include "core/wire.h"
#include "core/worker.h"
#include "wireup/codec.h"
#include "wireup/peer.h"
#include "wireup/select.h"

/* ------------------------------------------------------------------ a worker's connections */

struct weft_conns {
	struct weft_deadlines timers; /* eps, by slot */
	uint32_t *free_slots;         /* of worker->ep_table */
	uint32_t num_free_slots;
	struct weft_table by_sn;   /* eps, by peer and number */
	LIST_HEAD(, weft_ep) dead; /* freed when no call is on the stack */
	/* Peers: by identity if known, by digest, and by place while they have endpoints. */
	struct weft_table by_identity, by_digest, by_place;
	TAILQ_HEAD(, weft_peer) idle; /* least recently used first */
	unsigned int num_idle;
	LIST_HEAD(, weft_partial_host) partial_hosts;
	unsigned int num_partials;
	TAILQ_HEAD(, weft_pending) pending; /* oldest first */
	struct weft_table by_lane_ep;       /* of `pending` */
	struct weft_table_list pending_free;
	struct weft_pending pending_room[WEFT_MAX_PENDING]; /* pending_used have been used */
	unsigned int pending_used;
	uint64_t looks; /* entries checked in searches of the tables of this struct */
	/* Hosts of unclaimed eps. */
	struct weft_table hosts;                         /* by number */
	TAILQ_HEAD(weft_host_rank, weft_host) ranks[32]; /* by the logarithm of num_eps */
	unsigned int num_unclaimed;
	struct weft_log_limit limit_bad, limit_refused;
};

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
	/* number of connections over which REQ was sent; number of the REQ accepted */
	uint16_t attempt_out, attempt_in;
	uint64_t deadline;
	uint64_t retry_at, backoff;
	struct weft_address remote;                       /* the peer's */
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
	/* higher id: own connection that lost a crossing, until the other is confirmed */
	struct weft_lane_ep *redundant;
	struct weft_lane_ep *deferred_lane_ep; /* lower id: connection whose REQ crossed ours... */
	void *deferred; /* ...and the REQ, accepted if our connection fails */
	size_t deferred_len;
	struct weft_wire_credit credit_out, credit_in;
	/* the map */
	struct weft_select_lane map[WEFT_MAX_LANES]; /* by lane number; max_frag 0 = no such lane */
	enum weft_attach_state attach[WEFT_MAX_LANES];
	uint64_t attach_deadline;
	unsigned int renumbered; /* REQs refused because their number had been used before */
	/* the message that is repeated */
	enum weft_wireup_type msg_type;
	struct weft_records msg;
	struct weft_reason reason; /* the last failure */
};

/** Does a request of the initiator await its reply? */
static inline bool weft_wireup_awaits_reply(const struct weft_wireup *wu)
{
	return wu->step == WEFT_STEP_REQUESTED || wu->step == WEFT_STEP_ADDRESS_REQUESTED;
}

static inline bool weft_ref_equal(struct weft_wire_ref a, struct weft_wire_ref b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

/**
 * Has the lane of @p lane_ep observed the interface with this address at its far end? @return true
 * also for a driver that does not observe the far end
 */
static inline bool weft_lane_ep_is_from(struct weft_lane_ep *lane_ep,
					const struct weft_address_iface *a)
{
	return lane_ep->ops->ep_is_from == NULL ||
	       lane_ep->ops->ep_is_from(lane_ep, a->addr, a->addr_len);
}

/** The interface that lane @p n of the map uses here. */
static inline struct weft_lane_iface *weft_map_iface(const struct weft_ep *ep, unsigned int n)
{
	const struct weft_wireup *wu = ep->wireup;

	return ep->worker->ifaces[wu->local[wu->map[n].pair.local].index];
}

/* ------------------------------------------------------------------ lanes that die */

enum weft_lane_life {
	WEFT_LANE_USED,      /* carries messages, or is not attached yet */
	WEFT_LANE_SUSPECTED, /* it may be dead: check whether another lane is alive */
	WEFT_LANE_CLOSING,   /* stopped here; the peer's receive state is not known */
	WEFT_LANE_GONE,      /* this end has the peer's receive state; no connection */
	/* a connection is being made again: at the leader, or with LANE_LINK at both ends */
	WEFT_LANE_CONNECTING,
	WEFT_LANE_ATTACHING, /* leader: ATTACH is sent */
};

struct weft_failover_lane {
	uint64_t seen, alive_at;     /* ep_seen() at the last check; time of its last change */
	uint64_t since;              /* when it became suspect, stopped or gone */
	uint64_t look_at;            /* time of the next step; UINT64_MAX = none */
	uint32_t queued;             /* lane_ep->queued (bytes) when the lane became suspect */
	struct weft_select_lane map; /* its numbers, on which both ends agreed */
	uint32_t set;                /* WEFT_LANE_F_BW_SET, _LAT_SET of either end */
	uint16_t epoch;              /* number of the lane's connection: failover.h */
	uint16_t state_len;          /* of our final receive state; 0 = it was never stopped */
	uint8_t life;                /* enum weft_lane_life */
	/* number of checks in which another lane was alive, and in which none was */
	uint8_t looks, silent_checks;
	uint32_t tries; /* LANE_DOWN or LANE_SUSPECT sent */
	uint32_t taken; /* LANE_DOWN that the peer's process has received */
	struct weft_lane_comp down_flush, caught_up; /* flushes: of LANE_DOWN; of a deaf lane */
	bool down_flushing, catching_up;             /* these flushes are under way */
	/* the lane has acknowledged the sends that were outstanding when it was suspected */
	bool caught;
	uint8_t returns; /* attempts to connect it again */
	uint16_t link;   /* number of the last attempt by LANE_LINK; 0 = none */
	bool link_due;   /* LANE_LINK found no room */
	bool linked;     /* the peer's address has arrived */
	bool deaf;       /* frames of the peer arrive, but acknowledge nothing */
	bool answer_due; /* LANE_DOWN_ACK found no room */
	bool was_up;     /* this connection carried messages */
	uint8_t addr_len;
	uint8_t addr[WEFT_LANE_ADDR_MAX]; /* of the peer's interface */
	uint8_t state[WEFT_LANE_STATE_MAX];
	char why[120];
};

struct weft_failover {
	unsigned int room;
	struct weft_failover_lane lane[]; /* ep->lane_room of them */
};

#endif /* WEFT_WIREUP_STATE_H */
