/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ud.h
 * The driver `roce_ud`: an unreliable control channel over a UD queue pair, for wire-up where no
 * other lane connects to an interface's address. Datagrams may be lost, duplicated and reordered.
 * This driver does not repair that: wire-up retries, and recognises duplicates.
 *
 * A connection is a pair of random numbers, one of each end. The first datagram of a connection
 * creates the passive lane_ep at its receiver, after its sender has proven that it receives at its
 * address (ud_cookie.c). The datagram is kept until the peer's Ethernet address is resolved (by the
 * kernel, in the device's thread), and is delivered then. The queue pair's key is random and part
 * of the interface's address, so the device drops datagrams of unknown senders, which lack the
 * address.
 */
#ifndef WEFT_ROCE_UD_IFACE_H
#define WEFT_ROCE_UD_IFACE_H

#include "base/hash.h"
#include "base/log.h"
#include "roce.h"

#define UD_RX 256 /* receive buffers */
#define UD_TX 128
#define UD_TX_KEPT 64 /* of them not for RETRY, which unknown senders can cause without limit */
#define UD_PASSIVE_MAX 1024  /* connections that peers have begun */
#define UD_PASSIVE_SHARE 512 /* of one host */
#define UD_ASKERS 64         /* hosts to which cookies are sent */
#define UD_BUCKETS 1024
#define UD_ASKER_NS 1000000000ull
#define UD_IDLE_NS 60000000000ull
#define UD_SLOW_NS 20000000
#define UD_CLOSE_NS 2000000000ull
#define UD_HOPS 64

enum ud_state { UD_RESOLVING, UD_UP, UD_OVER, UD_DEAD };

struct ud_lane_ep {
	struct weft_lane_ep base; /* first */
	enum ud_state state;
	struct roce_job job;
	struct ud_iface *u;
	LIST_ENTRY(ud_lane_ep) link;
	LIST_ENTRY(ud_lane_ep) conn_link, peer_link, passive_link, resolving_link; /* ud_table.c */
	struct ibv_ah *ah;
	uint8_t gid[16];
	uint8_t sgid_index; /* for the thread: that of the iface may change in the meantime */
	uint32_t qpn, qkey; /* the peer's */
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
	struct roce_dev *dev;
	unsigned int port;
	struct weft_roce_opts opts;
	struct weft_roce_gid gid;
	char netdev[64];
	uint8_t mtu;
	struct roce_port_watch watched;
	uint64_t now, next_slow, give_up_ns;
	int status; /* error after which nothing can be sent; 0 = none */
	const char *what;
	bool gid_gone; /* the address was removed */
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
	struct ud_lane_eps by_conn[UD_BUCKETS]; /* all of lane_eps, by their own number */
	struct ud_lane_eps
		by_peer[UD_BUCKETS];  /* passive ones, by address and number of the peer */
	struct ud_lane_eps of_others; /* the passive ones */
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

/* ud_data.c */
int roce_ud_send(struct ud_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const void *payload, size_t length);
/** Post a datagram with this head. */
int roce_ud_post(struct ud_lane_ep *lane_ep, const struct weft_roce_ud_head *h, const void *hdr,
		 size_t hdr_len, const void *payload, size_t length);
int roce_ud_am_short(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		     const void *payload, size_t length);
void roce_ud_post_receives(struct ud_iface *u);
/** A receive has completed. */
void roce_ud_received(struct ud_iface *u, const struct ibv_wc *wc, struct roce_buf *buf);
void roce_ud_deliver(struct ud_lane_ep *lane_ep, const struct weft_roce_ud_packet *p);

/* ud_cookie.c */
/** Does the datagram have a cookie that was sent to its source address? */
bool roce_ud_shows_cookie(const struct ud_iface *u, const struct weft_roce_ud_packet *p,
			  uint32_t src_qpn);
/** Send its sender a cookie: at once if its Ethernet address is resolved. */
void roce_ud_query(struct ud_iface *u, const struct weft_roce_ud_packet *p, uint32_t src_qpn);
/** Handle askers whose address resolution has ended. @return events */
unsigned int roce_ud_queries_progress(struct ud_iface *u);
/** End askers whose address handles are @p age old: they are resolved again when needed. */
void roce_ud_askers_end(struct ud_iface *u, uint64_t age);
/** Keep a datagram of an initiator, which a RETRY may request again. */
void roce_ud_hold(struct ud_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		  const void *payload, size_t length);
/** A RETRY has arrived. */
void roce_ud_retry(struct ud_iface *u, const struct weft_roce_ud_packet *p, uint32_t src_qpn);

/* ud_table.c */
/** Add it to lane_eps and to the tables: it belongs to its owner from now on. */
void roce_ud_table_add(struct ud_lane_ep *lane_ep);
/** Remove it from all lists and tables. */
void roce_ud_table_remove(struct ud_lane_ep *lane_ep);
/** Its address resolution has ended. */
void roce_ud_table_settled(struct ud_lane_ep *lane_ep);
/**
 * Find the connection of a datagram; its source must be the peer of the connection. @return NULL =
 * none
 */
struct ud_lane_ep *roce_ud_find(struct ud_iface *u, const struct weft_roce_ud_packet *p,
				uint32_t src_qpn);

/* ud_lep.c */
/** Create one that is in no list yet, and start its address resolution. NULL = no memory */
struct ud_lane_ep *roce_ud_lane_ep_new(struct ud_iface *u, const uint8_t gid[16], uint32_t qpn,
				       uint32_t qkey, uint32_t max_msg);
int roce_ud_ep_connect(struct weft_lane_iface *iface, const void *addr, size_t len, void *user,
		       struct weft_lane_ep **lane_ep);
void roce_ud_ep_destroy(struct weft_lane_ep *lane_ep);
bool roce_ud_ep_is_from(struct weft_lane_ep *lane_ep, const void *addr, size_t len);
uint64_t roce_ud_ep_host(const struct weft_lane_ep *lane_ep);
int roce_ud_ep_flush(struct weft_lane_ep *lane_ep, struct weft_lane_comp *comp);
void roce_ud_ep_print(struct weft_lane_ep *lane_ep, char *buf, size_t size);
/** The first datagram of a connection. @return true when the buffer is kept */
bool roce_ud_accept_first(struct ud_iface *u, const struct weft_roce_ud_packet *p, uint32_t src_qpn,
			  struct roce_buf *buf, size_t len);
/** Handle lane_eps whose address resolution has ended. @return events */
unsigned int roce_ud_resolved(struct ud_iface *u);
void roce_ud_lane_ep_over(struct ud_lane_ep *lane_ep, enum weft_lane_event ev, int status,
			  const char *text);
/** End passive lane_eps without a datagram for long. */
void roce_ud_idle(struct ud_iface *u);
/** All lane_eps end. @p what: a phrase for messages */
void roce_ud_fail_all(struct ud_iface *u, int status, const char *what);
/**
 * Free destroyed lane_eps. Outstanding requests may use their address handles, so they are freed
 * after all of these have completed.
 */
void roce_ud_reap(struct ud_iface *u);

/* wait.c */
int roce_ud_wait_fd(struct weft_lane_iface *base);
int roce_ud_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns);
void roce_ud_disarm(struct weft_lane_iface *base);

#endif /* WEFT_ROCE_UD_IFACE_H */
