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
	struct weft_deadlines timers; /* of eps, by their slots */
	uint32_t *free_slots;         /* of worker->ep_table */
	uint32_t num_free_slots;
	struct weft_table by_sn;   /* eps, by peer and conn_sn */
	LIST_HEAD(, weft_ep) dead; /* retired eps: freed when no callback is on the stack */
	/* peers: by identity if it is known, by digest, and by interface while they have eps */
	struct weft_table by_identity, by_digest, by_place;
	TAILQ_HEAD(, weft_peer) idle; /* peers without eps; first: without them for longest */
	unsigned int num_idle;
	LIST_HEAD(, weft_partial_host) partial_hosts;
	unsigned int num_partials;
	TAILQ_HEAD(, weft_pending) pending; /* oldest first */
	struct weft_table by_lane_ep;       /* entries of `pending` */
	struct weft_table_list pending_free;
	struct weft_pending pending_room[WEFT_MAX_PENDING]; /* [pending_used...] never used */
	unsigned int pending_used;
	uint64_t looks; /* statistic: entries checked in searches for eps, peers and hosts */
	/* hosts that have made unclaimed eps */
	struct weft_table hosts;                         /* by weft_host_number() */
	TAILQ_HEAD(weft_host_rank, weft_host) ranks[32]; /* by log2 of host->num_eps */
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
	WEFT_STEP_REPLIED,           /* responder: REP sent; ACK, ATTACH or data awaited */
	/*
	 * After an exchange over a control channel: both ends have the addresses of lane 0, which
	 * is being connected. ATTACH or ATTACHED over lane 0 ends this step.
	 */
	WEFT_STEP_LINKING,
	WEFT_STEP_ESTABLISHED, /* lane 0 is up here; further lanes are being attached */
};

enum weft_attach_state {
	WEFT_ATTACH_NONE,    /* no such lane; or it is attached or left out */
	WEFT_ATTACH_OPENING, /* opened by this end: lane_ep is connecting */
	WEFT_ATTACH_SENT,    /* opened by this end: ATTACH sent, or to be sent */
	WEFT_ATTACH_AWAIT,   /* opened by the peer: its ATTACH is awaited */
	WEFT_ATTACH_EARLY,   /* ATTACH has arrived, and our end is not up yet */
	WEFT_ATTACH_DROP,    /* left out here: the peer must still be notified */
};

#define WEFT_MAX_BOOT_PAIRS 64

struct weft_wireup {
	enum weft_wireup_step step;
	bool initiator; /* this end connects and sends REQ */
	bool learning;  /* initiator: only the peer's boot address is known */
	bool leader;    /* our worker id is the lower one: we propose the lane map */
	bool map_final; /* both ends have agreed on the map */
	bool busy;      /* the peer refused for lack of places; we repeat the REQ */
	bool granted;
	bool too_few; /* fewer lanes than WEFT_MIN_LANES: the timer will fail the ep */
	/*
	 * The boot connection is a control channel, which loses and duplicates messages: it carries
	 * the exchange only, and lane 0 is a connection of its own.
	 */
	bool control;
	/* number of requests sent, without repetitions; number in the REQ that was accepted */
	uint16_t attempt_out, attempt_in;
	uint64_t deadline;
	uint64_t retry_at, backoff;
	struct weft_address remote;
	struct weft_address_iface local[WEFT_MAX_IFACES]; /* our ifaces, except loopback */
	struct weft_select select;
	/* initiator: pairs to connect with, in order */
	struct weft_pair pairs[WEFT_MAX_BOOT_PAIRS];
	/* pair i has failed since the last start with pair 0, and not only by a timeout */
	bool pair_down[WEFT_MAX_BOOT_PAIRS];
	bool closed; /* the peer has closed or reset the connection of pairs[pair] */
	unsigned int num_pairs, pair;
	uint64_t pair_timeout, pair_deadline;
	struct weft_lane_ep *boot; /* becomes lane 0, unless it is a control channel */
	/* own connection, replaced by the peer's that crossed it; kept until the ep is up */
	struct weft_lane_ep *redundant;
	/* at the lower id: a REQ that crossed ours, accepted if our connection fails */
	struct weft_lane_ep *deferred_lane_ep;
	void *deferred;
	size_t deferred_len;
	struct weft_wire_credit credit_out, credit_in;
	struct weft_select_lane map[WEFT_MAX_LANES]; /* by lane number; max_frag 0 = no such lane */
	enum weft_attach_state attach[WEFT_MAX_LANES];
	uint64_t attach_deadline;
	unsigned int renumbered; /* our REQs refused because their conn_sn was used already */
	/* the message that is repeated */
	enum weft_wireup_type msg_type;
	struct weft_records msg;
	struct weft_reason reason;
};

static inline bool weft_wireup_awaits_reply(const struct weft_wireup *wu)
{
	return wu->step == WEFT_STEP_REQUESTED || wu->step == WEFT_STEP_ADDRESS_REQUESTED;
}

static inline bool weft_ref_equal(struct weft_wire_ref a, struct weft_wire_ref b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

/** @return true also for a driver that does not observe the far end */
static inline bool weft_lane_ep_is_from(struct weft_lane_ep *lane_ep,
					const struct weft_address_iface *a)
{
	return lane_ep->ops->ep_is_from == NULL ||
	       lane_ep->ops->ep_is_from(lane_ep, a->addr, a->addr_len);
}

static inline struct weft_lane_iface *weft_map_iface(const struct weft_ep *ep, unsigned int n)
{
	const struct weft_wireup *wu = ep->wireup;

	return ep->worker->ifaces[wu->local[wu->map[n].pair.local].index];
}

/* ------------------------------------------------------------------ lanes that die */

enum weft_lane_life {
	WEFT_LANE_USED,      /* carries messages, or is not attached yet */
	WEFT_LANE_SUSPECTED, /* may be dead: check whether another lane is alive */
	WEFT_LANE_CLOSING,   /* stopped here; the peer's receive state is not known */
	WEFT_LANE_GONE,      /* this end has the peer's receive state; no connection */
	/* a connection is being made again: at the leader, or with LANE_LINK at both ends */
	WEFT_LANE_CONNECTING,
	WEFT_LANE_ATTACHING, /* leader: ATTACH is sent */
};

struct weft_failover_lane {
	uint64_t seen, alive_at; /* ep_seen() at the last check; time of its last change */
	/* when the lane became suspect, stopped, gone, attaching or back, or LANE_LINK began */
	uint64_t since;
	uint64_t look_at;            /* time of the next step; UINT64_MAX = none */
	uint32_t queued;             /* lane_ep->queued (bytes) when the lane became suspect */
	struct weft_select_lane map; /* the lane's numbers, on which both ends agreed */
	uint32_t set;       /* features of both ends: only F_BW_SET and F_LAT_SET are read */
	uint16_t epoch;     /* number of the lane's connection: failover.h */
	uint16_t state_len; /* bytes of `state`; 0 = none yet */
	uint8_t life;       /* enum weft_lane_life */
	/* checks since the suspicion in which another lane was alive, and in which none was */
	uint8_t looks, silent_checks;
	uint32_t tries; /* number of LANE_DOWN or LANE_SUSPECT sent */
	uint32_t taken; /* number of flushes that showed LANE_DOWN to be received by the peer */
	/* flush of the lane that carried LANE_DOWN, and of this lane if it is deaf */
	struct weft_lane_comp down_flush, caught_up;
	bool down_flushing, catching_up; /* down_flush, caught_up is under way */
	/* a deaf lane has acknowledged the sends that were outstanding when it was suspected */
	bool caught;
	uint8_t returns; /* attempts to connect the lane again, up to 255 */
	uint16_t link;   /* number of the last attempt by LANE_LINK; 0 = none */
	bool link_due;   /* LANE_LINK found no room, or no lane: send it again */
	bool linked;     /* our end has the address in the peer's LANE_LINK */
	bool deaf;       /* frames of the peer arrive over the lane, but acknowledge nothing */
	bool answer_due; /* LANE_DOWN_ACK found no room: send it again */
	bool was_up;     /* the lane was up when it was stopped; until WEFT_LANE_GONE */
	uint8_t addr_len;
	uint8_t addr[WEFT_LANE_ADDR_MAX];   /* of the peer's interface */
	uint8_t state[WEFT_LANE_STATE_MAX]; /* our final receive state of a stopped connection */
	char why[120];
};

struct weft_failover {
	unsigned int room;
	struct weft_failover_lane lane[]; /* ep->lane_room of them */
};

#endif /* WEFT_WIREUP_STATE_H */
