/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/endpoint.h
 * A connection from a worker to a remote worker, and its lanes. Two layers share it: connections
 * (wireup/) manage the lanes, messages (msg/ and above) use them.
 */
#ifndef WEFT_ENDPOINT_H
#define WEFT_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/container.h"
#include "core/wire.h"
#include "core/worker.h"
#include "lane.h"
#include "weft.h"

struct weft_failover;   /* lanes that die and come back: wireup/state.h */
struct weft_ep_closing; /* an endpoint that is being closed: wireup/close.c */
struct weft_host;       /* quota of a host for unclaimed endpoints: wireup/peer.h */
struct weft_msg_ep;     /* state of the message layer: msg/state.h */
struct weft_peer;       /* a remote worker: wireup/peer.h */
struct weft_wireup;     /* connecting state: wireup/state.h */

/**
 * Events of an endpoint that other layers report, as lanes report WEFT_LANE_EV_DOWN. They are a
 * table of the worker (lib/worker.c), because the layer that handles them may be above the layer
 * that detects them.
 */
struct weft_ep_events {
	/**
	 * The endpoint fails: state FAILED, requests end, err_cb runs once. Safe inside receive
	 * callbacks. Not allowed inside a call of the user, because callbacks would run before that
	 * call returns: see fail_later(). The message layer calls it by weft_msg_fail()
	 * (msg/endpoint.h).
	 */
	void (*fail)(struct weft_ep *ep, int status, const char *why);
	/**
	 * The endpoint fails in this progress call or in the next one: for failures that a call of
	 * the user detects, and for callers that are processing requests. Until then the endpoint
	 * does not change. The first reason counts.
	 * @param why  static text
	 */
	void (*fail_later)(struct weft_ep *ep, int status, const char *why);
	/** The endpoint is up, and no further lane will be added. */
	void (*settled)(struct weft_ep *ep);
	/** A message of another layer has overtaken the wire-up message that attaches its lane. */
	void (*recv)(struct weft_ep *ep, unsigned int lane, uint8_t id, const void *data,
		     size_t length);
};

enum weft_ep_state {
	WEFT_EP_CONNECTING, /* operations are queued in the message layer */
	WEFT_EP_UP,
	WEFT_EP_CLOSING, /* closed by its owner, flushing */
	WEFT_EP_FAILED,  /* ep->status has the error; the owner must still close it */
};

#define WEFT_MAX_LANES 16

/** One lane of an endpoint: the fields that every fragment reads. */
struct weft_ep_lane {
	struct weft_lane_ep *lane_ep; /* NULL = not there */
	/* agreed at wire-up; measured rates are in the message layer (struct weft_msg_lane) */
	double bandwidth, latency;
	uint32_t max_frag; /* largest lane message both ends take */
	bool up;           /* attached at both ends: may carry messages */
	/*
	 * number of the remote iface's registration domain at the peer; it selects the remote key
	 */
	uint8_t remote_domain;
};

/** Fields for queries and set-up, and counters (written by the message layer). */
struct weft_ep_lane_info {
	uint64_t tx_bytes, rx_bytes, tx_msgs, rx_msgs;
	/* Agreed at wire-up, the same at both ends: s, s/byte. */
	double send_overhead, recv_overhead, reg_cost, reg_growth;
	double cpu;        /* CPU time that weft_ep_lane.latency includes */
	uint32_t features; /* WEFT_LANE_F_COPIES of either end, F_MEMORY of both */
	const char *bandwidth_from, *latency_from; /* as text */
	uint8_t local_iface, remote_iface;
	char remote[128]; /* remote network address as text */
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
	/* lanes that died, for which the peer's receive state is not known yet */
	uint16_t lanes_closing;
	struct weft_ep_lane lanes[WEFT_MAX_LANES];
	struct weft_ep_lane_info *lane_info; /* lane_room of them: most endpoints have one lane */
	uint8_t lane_room;
	/* connection layer */
	/* bytes/s, the slower end's; the own one if the peer reports none; 0 = not agreed yet */
	double bcopy_bw;
	int status; /* the error with which it failed */
	/* the application created it (or adopted it); else the peer's connect did */
	bool owned;
	bool remote_closed;
	/** the peer has sent CLOSING, and CLOSE follows: not to be adopted */
	bool remote_closing;
	uint32_t slot, generation;   /* our reference, which the peer's messages contain */
	struct weft_wire_ref remote; /* the peer's reference; 0,0 = not known */
	uint64_t remote_id;
	/* authenticate wire-up messages for this endpoint; remote_secret 0 = not known */
	uint64_t secret, remote_secret;
	uint32_t conn_sn;
	char remote_name[64];
	struct weft_wireup *wireup;     /* NULL once connected and all lanes are settled */
	struct weft_failover *failover; /* NULL = it never had a second lane, or no memory */
	/*
	 * the key of all connections after the first one; NULL: their frames are not sealed, or
	 * their driver makes a key for each
	 */
	struct weft_lane_key *lane_key;
	struct weft_ep_closing *closing;
	struct weft_peer *peer;  /* NULL on loopback */
	struct weft_texts texts; /* of queries */
	struct weft_host *host;  /* whose quota it uses; NULL = the program has claimed it */
	bool host_busy;          /* in host->busy */
	uint64_t placed_at;
	uint64_t timer;  /* when weft_conns_timers() must handle this ep; UINT64_MAX = never */
	int fail_status; /* fail_later(): the status it will fail with; 0 = none */
	const char *fail_why;
	weft_ep_err_cb err_cb;
	void *err_arg;
	void *user_data;
	LIST_ENTRY(weft_ep) entry;        /* worker->eps, or the worker's dead ones */
	LIST_ENTRY(weft_ep) peer_entry;   /* peer->eps */
	struct weft_table_node by_sn;     /* while it has a peer */
	TAILQ_ENTRY(weft_ep) claim_entry; /* peer->unclaimed, until it is claimed */
	TAILQ_ENTRY(weft_ep) host_entry;  /* host->eps, until it is claimed */
};

/**
 * The endpoint as reported to the application: NULL if the application has closed it, or if the
 * library owns it.
 */
static inline struct weft_ep *weft_ep_of_user(struct weft_ep *ep)
{
	return ep && ep->owned && ep->generation && !ep->closing ? ep : NULL;
}

#endif /* WEFT_ENDPOINT_H */
