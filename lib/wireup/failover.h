/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/failover.h
 * Lanes that die: wireup/failover.c decides which lane of an endpoint is stopped, and when.
 * wireup/lane_return.c connects it again. Messages that the peer has not received over a lane that
 * died are sent over the other lanes (msg/replay.c). doc/raw-lanes.md describes all of it.
 */
#ifndef WEFT_FAILOVER_H
#define WEFT_FAILOVER_H

#include "core/address.h"
#include "core/endpoint.h"
#include "wireup/select.h"

struct weft_wireup_msg;

enum weft_lane_life {
	WEFT_LANE_USED,       /* or not attached yet */
	WEFT_LANE_SUSPECTED,  /* it may be dead: check whether another lane is alive */
	WEFT_LANE_CLOSING,    /* stopped here; the peer's receive state is not known */
	WEFT_LANE_GONE,       /* both ends have the other's receive state; no connection */
	WEFT_LANE_CONNECTING, /* leader: its connection is being made again */
	WEFT_LANE_ATTACHING,  /* leader: ATTACH is sent */
};

struct weft_failover_lane {
	uint64_t seen, alive_at;     /* ep_seen() at the last check; time of its last change */
	uint64_t since;              /* when it became suspect, stopped or gone */
	uint64_t look_at;            /* time of the next step; UINT64_MAX = none */
	uint32_t queued;             /* of the lane_ep, when it became suspect */
	struct weft_select_lane map; /* its numbers, on which both ends agreed */
	uint32_t set;                /* WEFT_LANE_F_BW_SET, _LAT_SET of either end */
	uint16_t epoch;              /* of the connection: in every message about it */
	uint16_t state_len;          /* of our final receive state; 0 = it was never stopped */
	uint8_t life;                /* enum weft_lane_life */
	/* checks: another lane was alive; no other lane was */
	uint8_t looks, silent_checks;
	uint32_t tries; /* LANE_DOWN or LANE_SUSPECT sent */
	uint32_t taken; /* LANE_DOWN that the peer's process has received */
	struct weft_lane_comp down_flush, caught_up; /* flushes: of LANE_DOWN; of a deaf lane */
	bool down_flushing, catching_up;             /* these flushes are under way */
	bool caught;     /* sends from before it was deaf have been acknowledged */
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

/**
 * Numbers of a lane's connections grow, and wrap; 0 is the first connection. A number that is
 * equal, or lower by less than WEFT_LANE_OLD, is old. Every other number is new, because attempts
 * may go on for days.
 */
#define WEFT_LANE_OLD 1024u

static inline bool weft_lane_newer(uint16_t number, uint16_t than)
{
	return (uint16_t)(than - number) >= WEFT_LANE_OLD;
}

static inline uint16_t weft_lane_next(uint16_t number)
{
	return (uint16_t)(number + 1) ? (uint16_t)(number + 1) : 1;
}

/** WEFT_LANE_EV_SUSPECT of lane @p n. */
void weft_failover_suspect(struct weft_ep *ep, unsigned int n, int status, const char *text);
/** LANE_DOWN, LANE_DOWN_ACK, LANE_SUSPECT or LANE_LINK has arrived over lane @p from. */
void weft_failover_recv(struct weft_ep *ep, unsigned int from, const struct weft_wireup_msg *m);
/**
 * Stop lane @p n, and send LANE_DOWN to the peer. @return false: it cannot be stopped and goes on
 */
bool weft_failover_stop(struct weft_ep *ep, unsigned int n, const char *text);
/**
 * Run what is due: checks of suspect lanes, messages that found no room or got no reply, attempts
 * to connect lanes again.
 */
void weft_failover_timer(struct weft_ep *ep);

/** The longest round trip of the lanes in use, in ns; 0 = unknown. */
uint64_t weft_failover_trip(const struct weft_ep *ep);

/**
 * Is this the worker with the lower id? It decides which lane is stopped, and connects it again.
 */
static inline bool weft_failover_leads(const struct weft_ep *ep)
{
	return ep->worker->id < ep->remote_id;
}

#endif /* WEFT_FAILOVER_H */
