/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/failover.h
 * Lanes that die and come back: which of an endpoint's lanes is stopped, and when
 * (wireup/failover.c), and how it is made again (wireup/lane_return.c). What the peer has not
 * received over a lane that died goes over the others (msg/replay.c). doc/failover.md has the
 * whole.
 */
#ifndef WEFT_FAILOVER_H
#define WEFT_FAILOVER_H

#include "core/address.h"
#include "core/endpoint.h"
#include "wireup/select.h"
#include "wireup/wireup.h"

enum weft_lane_life {
	WEFT_LANE_USED,       /* or not attached yet */
	WEFT_LANE_SUSPECTED,  /* it may be dead: does another one live? */
	WEFT_LANE_CLOSING,    /* stopped here; what the peer has received is not known */
	WEFT_LANE_GONE,       /* known at both ends, and sent again; none is there */
	WEFT_LANE_CONNECTING, /* leader: its connection is being made again */
	WEFT_LANE_ATTACHING,  /* leader: ATTACH is out */
};

struct weft_failover_lane {
	uint64_t seen, alive_at; /* ep_seen() at the last look; the look that found it changed */
	uint64_t since;          /* it is suspect, stopped, gone */
	uint64_t look_at;        /* the next step is due; UINT64_MAX = none is */
	uint32_t queued;         /* of the lane_ep, when it became suspect */
	struct weft_select_lane map; /* its numbers; what both ends agreed to take */
	uint32_t set;                /* WEFT_LANE_F_BW_SET, _LAT_SET of either end */
	uint16_t epoch;              /* of the connection: told in every message about it */
	uint16_t state_len;          /* of ours, final; 0 = it was never stopped */
	uint8_t life;                /* enum weft_lane_life */
	uint8_t looks, vain;         /* with another one alive; with none */
	uint32_t tries;              /* LANE_DOWN or LANE_SUSPECT said */
	uint32_t taken;              /* LANE_DOWN that the peer's process has received */
	struct weft_lane_comp told, caught_up; /* flushes: of LANE_DOWN; of a deaf lane */
	bool telling, catching_up;             /* they are under way */
	bool caught;     /* what was sent before it was deaf has been acknowledged */
	uint8_t returns; /* tries to make it again */
	uint16_t link;   /* number of the last try by LANE_LINK; 0 = there was none */
	bool link_due;   /* LANE_LINK found no room */
	bool linked;     /* the peer's address has come */
	bool deaf;       /* it shows signs of life and acknowledges nothing */
	bool answer_due; /* LANE_DOWN_ACK found no room */
	bool was_up;     /* this connection carried messages */
	uint8_t addr_len;
	uint8_t addr[WEFT_LANE_ADDR_MAX]; /* of the peer's interface */
	uint8_t state[WEFT_LANE_STATE_MAX];
	char why[120];
};

struct weft_failover {
	unsigned int room;
	struct weft_failover_lane lane[]; /* so many: ep->lane_room */
};

/**
 * Numbers of a lane's connections grow, and wrap; 0 is the first one's. What is a little less is
 * old, whatever else is new: tries may go on for days.
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

/** The endpoint gets a second lane: from now on one can die. No memory: then it ends with one. */
void weft_failover_init(struct weft_ep *ep);
/** WEFT_LANE_EV_SUSPECT of lane @p n. */
void weft_failover_suspect(struct weft_ep *ep, unsigned int n, int status, const char *text);
/** LANE_DOWN, its answer, or LANE_SUSPECT has come over lane @p from. */
void weft_failover_recv(struct weft_ep *ep, unsigned int from, const struct weft_wireup_msg *m);
/** It is over: stop it, and tell the peer. @return false: it goes on */
bool weft_failover_stop(struct weft_ep *ep, unsigned int n, const char *text);
/** What is due: looks, messages that found no room or no answer, lanes to be made again. */
void weft_failover_timer(struct weft_ep *ep);

/* wireup/lane_return.c */

/** The lower id: it decides which lane is stopped, and makes it again. */
static inline bool weft_failover_leads(const struct weft_ep *ep)
{
	return ep->worker->id < ep->remote_id;
}

/** The connection that is being made comes to nothing. */
void weft_lane_return_drop(struct weft_ep *ep, unsigned int n);
/** LANE_LINK has come. @return false: it is not due */
bool weft_lane_return_linked(struct weft_ep *ep, unsigned int n, const struct weft_wireup_msg *m);
/** Lane @p n is gone: when is it tried again? */
void weft_lane_return_begin(struct weft_ep *ep, unsigned int n);
/** A step of it is due. */
void weft_lane_return_timer(struct weft_ep *ep, unsigned int n);
/** A link is back: lanes over @p iface are tried at once. */
void weft_lane_return_link(struct weft_worker *w, const struct weft_lane_iface *iface);
/** An event of a connection that is being made. @return false: it is none of these */
bool weft_lane_return_event(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			    enum weft_lane_event ev, const char *text);
/** ATTACH of a later connection than the first. @return false: it is none */
bool weft_lane_return_attach(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			     const struct weft_wireup_msg *m);
/** ATTACHED, or data that says as much, has come over lane @p n. */
void weft_lane_return_attached(struct weft_ep *ep, struct weft_lane_ep *lane_ep);

#endif /* WEFT_FAILOVER_H */
