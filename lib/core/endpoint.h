/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/endpoint.h
 * A connection from a worker to a remote worker, and its lanes. Two layers share it: connections
 * (wireup/: which lanes it has) and messages (msg/ and above: what goes over them).
 */
#ifndef WEFT_ENDPOINT_H
#define WEFT_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/log_who.h"
#include "core/wire_conn.h"
#include "core/worker.h"
#include "lane.h"
#include "weft.h"

struct weft_failover;   /* lanes that die and come back: wireup/failover.h */
struct weft_ep_closing; /* an endpoint on its way out: wireup/close.c */
struct weft_host;       /* of endpoints that nobody owns: wireup/wireup.h */
struct weft_msg_ep;     /* state of the message layer: msg/msg.h */
struct weft_peer;       /* what is known of a remote worker: wireup/wireup.h */
struct weft_wireup;     /* connecting state: wireup/wireup.h */

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
	/** The first message on a lane has come, and is no wire-up: the lane is up. */
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

/** What only people and set-up check, and counters (written by the message half). */
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
	/* of those that died: it is not known yet what the peer has received over them */
	uint16_t lanes_closing;
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
	struct weft_wireup *wireup;     /* NULL once connected and all lanes are settled */
	struct weft_failover *failover; /* NULL = there was never a second lane */
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

#endif /* WEFT_ENDPOINT_H */
