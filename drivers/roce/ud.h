/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ud.h
 * The driver `roce_ud`: an unreliable control channel over a UD queue pair, for wire-up where no
 * other lane connects to an interface's address. Datagrams may be lost, duplicated and reordered.
 * This driver does not repair that: wire-up retries, and recognises duplicates.
 *
 * A connection is a pair of random numbers, one of each end. The first datagram of a connection
 * creates the passive lane_ep at its receiver, after its sender has proven that it receives at its
 * address (ud_ep.c). The datagram is kept until the peer's Ethernet address is resolved (by the
 * kernel, in the device's thread), and is delivered then. The queue pair's key is made from the
 * interface's random id, which is part of its address. So the device drops datagrams of unknown
 * senders, which lack the address.
 */
#ifndef WEFT_ROCE_UD_IFACE_H
#define WEFT_ROCE_UD_IFACE_H

#include "base/container.h"
#include "base/log.h"
#include "roce.h"

#define UD_COUNTERS(X)                                                                  \
	X(tx, "tx.messages", "Datagrams sent.")                                         \
	X(no_room, "tx.no_room", "Sends that found the queue full.")                    \
	X(tx_error, "tx.errors", "Datagrams that the device did not send.")             \
	X(cookie_requests, "tx.retry", "Proofs of address requested of peers.")         \
	X(resets, "qp.resets", "Times that the queue pair failed and was reset.")       \
	X(rx, "rx.messages", "Datagrams received.")                                     \
	X(shown, "rx.retry", "Proofs of address that peers requested.")                 \
	X(looks, "conn.looks", "Connections checked to find that of a datagram.")       \
	X(bad, "drop.malformed", "Datagrams dropped: malformed.")                       \
	X(bad_addr, "drop.bad_address", "Addresses of peers refused: malformed.")       \
	X(late, "drop.late", "Datagrams dropped: their connection is gone.")            \
	X(full, "drop.too_many_peers", "Datagrams dropped: no place for another peer.") \
	X(stray, "drop.stray_completion", "Completions dropped: of no request.")

#define UD_RX 256
#define UD_TX 128
/* RETRYs use at most UD_TX - UD_TX_KEPT of the requests: senders cause RETRYs without limit */
#define UD_TX_KEPT 64
#define UD_PASSIVE_MAX 1024       /* connections that peers have begun, at most */
#define UD_PASSIVE_SHARE 512      /* connections that one host has begun, at most */
#define UD_ASKERS 64              /* hosts to which cookies are sent, at most */
#define UD_ASKER_NS 1000000000ull /* keep a host's address handle for this time */
#define UD_IDLE_NS 60000000000ull /* a peer's connection ends after this time without a datagram */
#define UD_SLOW_NS 20000000       /* time between checks of events, port and idle connections */
#define UD_CLOSE_NS 2000000000ull /* longest wait of close() for completions */
#define UD_HOPS 64

enum ud_state { UD_RESOLVING, UD_UP, UD_OVER, UD_DEAD };

struct ud_lane_ep {
	struct weft_lane_ep base; /* first */
	enum ud_state state;
	struct roce_job job;
	struct ud_iface *u;
	LIST_ENTRY(ud_lane_ep) link;
	struct weft_table_node by_conn, by_peer;
	LIST_ENTRY(ud_lane_ep) passive_link, resolving_link; /* in u->of_others, u->in_search */
	struct ibv_ah *ah;
	uint8_t gid[16];
	/* copy for resolve_job() in the device's thread: the iface's may change in the meantime */
	uint8_t sgid_index;
	uint32_t qpn, qkey;         /* the peer's */
	uint32_t conn, remote_conn; /* remote_conn 0 = unknown yet */
	struct roce_buf *first;     /* datagram that waits for address resolution */
	size_t first_len;
	/* of an initiator, until the first reply: the cookie to send, and its last datagram */
	uint64_t cookie;
	uint8_t *held, held_id;
	size_t held_len;
	uint64_t last_rx;
	char peer[48];
};

struct ud_iface {
	struct weft_lane_iface base; /* first */
	char name[64], note[128], device[64];
	struct roce_dev *dev;
	unsigned int port;
	struct weft_roce_opts opts;
	struct weft_roce_gid gid;
	char netdev[64];
	uint8_t mtu;
	struct roce_port_watch watched;
	uint64_t now, next_slow, give_up_ns;
	int status; /* error that has ended the iface; 0 = none */
	const char *what;
	bool gid_gone;
	bool sick; /* the queue pair is in error: all requests complete, then it is set up again */
	uint64_t sick_since;
	weft_lane_recv_cb recv;
	weft_lane_event_cb event;
	void *arg;
	const struct weft_platform *platform;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct roce_notify notify;
	uint64_t empties; /* polls that left the completion queue empty */
	uint32_t qkey;
	struct roce_pool rx_pool, tx_pool;
	uint32_t posted, tx_room, passive;
	LIST_HEAD(ud_lane_eps, ud_lane_ep) lane_eps, dead;
	struct weft_table by_conn;    /* all of lane_eps, by ud_lane_ep.conn */
	struct weft_table by_peer;    /* passive ones, by address and number of the peer */
	struct ud_lane_eps of_others; /* lane_eps whose connections peers have begun */
	struct ud_lane_eps in_search; /* lane_eps in state UD_RESOLVING */
	LIST_HEAD(, ud_lane_ep)
	askers; /* address handles of hosts without a proven address; newest first */
	struct weft_siphash_key key; /* of cookies */
	unsigned int resolving;
	struct roce_watch watch;
	struct {
		UD_COUNTERS(WEFT_COUNTER_FIELD)
	} count;
};

static inline struct ud_iface *ud_iface_of(struct weft_lane_iface *iface)
{
	return (struct ud_iface *)iface;
}

static inline struct ud_lane_ep *ud_lane_ep_of(struct weft_lane_ep *lane_ep)
{
	return (struct ud_lane_ep *)lane_ep;
}

int roce_ud_send(struct ud_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const void *payload, size_t length);
/** Post a datagram that begins with @p h. @return 0, also if the device refuses it; or -EAGAIN */
int roce_ud_post(struct ud_lane_ep *lane_ep, const struct weft_roce_ud_head *h, const void *hdr,
		 size_t hdr_len, const void *payload, size_t length);
void roce_ud_deliver(struct ud_lane_ep *lane_ep, const struct weft_roce_ud_packet *p);

#endif /* WEFT_ROCE_UD_IFACE_H */
