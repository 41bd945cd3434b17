/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/arp.h
 * ARP: a small cache per port, requests with backoff, replies; and the addresses of lanes. For
 * lanes over IPv6: numbers of hosts, and neighbour discovery. Pure: builds and reads packets, sends
 * none.
 *
 * The queues of a port share one cache. ARP has no UDP port by which a flow rule could steer it. So
 * its frames come to one queue only, as a rule the first one. The worker there learns an address,
 * and the other workers find it here at their next look-up.
 */
#ifndef WEFT_ARP_H
#define WEFT_ARP_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_arp.h>
#include <rte_ether.h>

#include "base/container.h"
#include "frame/parse.h"

/**
 * The maximum number of addresses that this host requests for itself. Beyond that the entry that
 * was unused for the longest time is evicted, if it was unused for WEFT_ARP_BUSY; else the new
 * request waits.
 */
#define WEFT_ARP_OURS 4096u
/** Addresses requested because unknown senders sent HELLO, at most; with entries of their own. */
#define WEFT_ARP_THEIRS 512u
#define WEFT_ARP_FIXED_MAX 32u
#define WEFT_ARP_BUSY 1000000000ull /**< ns */
/** MACs that are kept of the hosts that replied to one request */
#define WEFT_ARP_REPLIERS 4u
#define WEFT_ARP_LOOKS 64u            /**< entries of a kind that are searched for a MAC */
#define WEFT_ARP_RETRY_MIN 2000000ull /**< ns; doubles */
#define WEFT_ARP_RETRY_MAX 500000000ull
#define WEFT_ARP_FRESH 1000000000ull /**< ns; an address learned within this time is not doubted */
/** ns after the next request was due: a later reply is ignored */
#define WEFT_ARP_OPEN 10000000000ull

/** The origin of an entry. */
enum weft_arp_kind {
	WEFT_ARP_KIND_OURS,   /**< this host sends to the address */
	WEFT_ARP_KIND_THEIRS, /**< an unknown sender claims it */
	WEFT_ARP_KIND_FIXED, /**< given by the user: no reply changes it, and it is never evicted */
	WEFT_ARP_KINDS,
};

struct weft_arp_entry {
	struct weft_table_node by_ip; /**< host order */
	TAILQ_ENTRY(weft_arp_entry) link;
	uint32_t unanswered; /**< requests without a reply */
	uint64_t next_request;
	uint64_t used;
	uint64_t learned;
	uint8_t mac[6];
	bool known;
	uint8_t kind; /**< enum weft_arp_kind */
	/** MACs that replied to the last request with a reply */
	uint8_t repliers[WEFT_ARP_REPLIERS][6];
	uint32_t num_replies; /**< number of replies, those without a place included */
};

TAILQ_HEAD(weft_arp_list, weft_arp_entry);

/**
 * The table of addresses. The calls below take the lock for a short search. None is made per
 * message. A request makes the entry.
 */
struct weft_arp_table {
	pthread_mutex_t lock;
	struct weft_arp_list list[WEFT_ARP_KINDS]; /**< the entry used last is at the end */
	uint32_t num[WEFT_ARP_KINDS];
	struct weft_table by_ip; /**< seeded: peers choose addresses */
};

/** One iface's view. */
struct weft_arp {
	uint32_t ip; /**< ours, host order */
	uint8_t mac[6];
	/** the last two MACs that claim one address; for our address the first one is our own */
	struct weft_arp_conflict {
		uint32_t ip; /**< 0 = there was no conflict */
		uint8_t mac[2][6];
	} conflict;
	struct weft_arp_table *table; /**< own, or the port's */
	struct weft_arp_table own;
};

enum weft_arp_result {
	WEFT_ARP_IGNORED,
	WEFT_ARP_LEARNED,  /**< the reply to our request */
	WEFT_ARP_ANSWER,   /**< @p reply is to be sent, to its arp_tha */
	WEFT_ARP_CONFLICT, /**< another host uses our IP address: a->conflict */
	WEFT_ARP_SEVERAL,  /**< a second MAC has replied for an address: a->conflict */
};

void weft_arp_table_init(struct weft_arp_table *t, uint64_t seed);
void weft_arp_table_fini(struct weft_arp_table *t);

/**
 * @param seed    a random number
 * @param shared  the port's table, initialised, which outlives @p a; NULL = one for itself
 *
 * Times are ns. All callers that share a table must use one clock.
 */
void weft_arp_init(struct weft_arp *a, uint32_t ip, const uint8_t mac[6], uint64_t seed,
		   struct weft_arp_table *shared);
void weft_arp_fini(struct weft_arp *a);

/** Look up the MAC of @p ip. @return true: known, and in @p mac */
bool weft_arp_lookup(struct weft_arp *a, uint32_t ip, uint64_t now, uint8_t mac[6]);

/**
 * Request @p ip if a request is due.
 * @param[out] pkt  the request, when true is returned; goes to ff:ff:ff:ff:ff:ff
 */
bool weft_arp_request(struct weft_arp *a, uint32_t ip, uint64_t now, struct rte_arp_hdr *pkt);
/** weft_arp_request() because an unknown sender claims to have @p ip: WEFT_ARP_THEIRS limits it. */
bool weft_arp_request_theirs(struct weft_arp *a, uint32_t ip, uint64_t now,
			     struct rte_arp_hdr *pkt);

/**
 * The MACs that replied to the last answered request for @p ip: the first one, which is trusted,
 * and up to three others, a random choice if there were more. Forgetting an address keeps them
 * until the next reply.
 *
 * @return their number
 */
unsigned int weft_arp_repliers(struct weft_arp *a, uint32_t ip, uint8_t mac[WEFT_ARP_REPLIERS][6]);

/**
 * An ARP probe for our own address, with which RFC 5227 begins. It changes no host's table, and
 * peers learn from it that this host has started. (A reply proves no conflict: the fabric of a
 * cloud replies for all addresses.)
 */
void weft_arp_probe(const struct weft_arp *a, struct rte_arp_hdr *pkt);

/** What ARP states about another host. A hint is not trusted: it is a reason to query that host. */
struct weft_arp_hint {
	uint32_t ip;
	uint8_t mac[6];
	bool begins; /**< the host announces itself: it has started, restarted or changed */
};

/** @return false: the packet contains no hint, or one about this host */
bool weft_arp_hint(const struct weft_arp *a, const struct rte_arp_hdr *pkt,
		   struct weft_arp_hint *hint);

/** Has an iface that shares the table requested @p ip, or is it a static neighbour? */
bool weft_arp_has(const struct weft_arp *a, uint32_t ip);

/** The number of requests for @p ip without a reply so far. */
uint32_t weft_arp_unanswered(struct weft_arp *a, uint32_t ip);

/**
 * Enter a static neighbour: its address is never requested.
 *
 * @return 0; -EEXIST: another MAC was given for @p ip; -ENOSPC: WEFT_ARP_FIXED_MAX; -ENOMEM
 */
int weft_arp_fix(struct weft_arp *a, uint32_t ip, const uint8_t mac[6]);

bool weft_arp_is_fixed(const struct weft_arp *a, uint32_t ip);

/** Forget the MAC of @p ip, unless it is static: the peer is silent and may have moved. */
void weft_arp_forget(struct weft_arp *a, uint32_t ip);

/**
 * Frames from @p ip come from another MAC than the known one. Forget the known MAC if it is older
 * than WEFT_ARP_FRESH, and not that of a static neighbour.
 *
 * @return true: the MAC was forgotten
 */
bool weft_arp_recheck(struct weft_arp *a, uint32_t ip, uint64_t now);

/**
 * Process a received packet. Only the first reply to an open request of this host enters the cache.
 * Requests are answered and teach nothing, whatever address they contain as their sender's.
 *
 * In a cloud's virtual network, or behind a router with proxy ARP, one MAC replies for all
 * addresses. It may claim our address as well, and that takes nothing from us. So a MAC that is
 * known to reply for another address is no conflict.
 */
enum weft_arp_result weft_arp_input(struct weft_arp *a, const struct rte_arp_hdr *pkt, uint64_t now,
				    struct rte_arp_hdr *reply);

/* ---------------------------------------------------------------- addresses */

/* In host byte order. */

#define WEFT_LANE_PREFIX_LOCAL 16 /**< prefix length of link-local addresses */
#define WEFT_LANE_NEIGH_MAX 8     /**< static neighbours of a lane */

/** A neighbour whose MAC address is known without ARP. */
struct weft_lane_neigh {
	uint32_t ip; /**< of a lane with IPv6: a host's number */
	uint8_t ip6[16];
	uint8_t mac[6];
};

/** Can a host have this address? */
bool weft_lane_is_unicast(uint32_t ip);

/**
 * The link-local address (169.254/16, RFC 3927's range) of a MAC: the same MAC gives the same
 * address. Two MACs may share one (1 in 65024): lanes then need ip=.
 */
uint32_t weft_lane_link_local(const uint8_t mac[6]);

/* ---------------------------------------------------------------- IPv6 addresses */

/** Can a host have this address on a network? */
bool weft_ip6_is_unicast(const uint8_t ip[16]);

/** Is the address valid on one link only (fe80::/10)? */
static inline bool weft_ip6_is_link_local(const uint8_t ip[16])
{
	return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

/** Are the first @p prefix bits of both the same? */
bool weft_ip6_same_net(const uint8_t a[16], const uint8_t b[16], unsigned int prefix);

/** Make an address of a network of 64 bits from a MAC address (RFC 4291, appendix A). */
void weft_ip6_from_mac(uint8_t ip[16], const uint8_t mac[6]);

/**
 * The group at which an address is solicited, which hosts with the same last three bytes share;
 * NULL = the group of all nodes. And its MAC address.
 */
void weft_ip6_group(const uint8_t *ip, uint8_t group[16], uint8_t mac[6]);

/* ------------------------------------------------------------------ hosts of an IPv6 lane */

/*
 * The hosts of an IPv6 lane. The engine knows a host by a number of 32 bits, as by an IPv4 address.
 * So each IPv6 address has such a number here, which no other lane sees. Over UDP sockets it is
 * also the IPv4 address in the headers of the engine's frames. Pure, but for random bytes at the
 * start.
 *
 * Any host may send a frame, so the table is bounded. A new address replaces the one that was idle
 * for longest, but no host that a connection holds, whatever other hosts send. A number contains a
 * generation. So frames for an address that was replaced reach no other host.
 *
 * An address has WAYS places. If connections hold all of them, a new host gets no number.
 */

#define WEFT_HOSTS 4096u /* a power of two */

struct weft_host {
	struct in6_addr ip;
	uint64_t used; /* number of the last use of this host, counted over all hosts; 0 = free */
	uint32_t held; /* connections; the lane itself holds its own address */
	uint32_t generation;
};

struct weft_hosts {
	struct weft_siphash_key key; /* random: no peer can choose the host that it replaces */
	uint64_t uses;
	struct weft_host host[WEFT_HOSTS];
};

/* Addresses are 16 bytes, at any position of a frame. */

/** @param own  the lane's address, which is never replaced. @return NULL: no memory */
struct weft_hosts *weft_hosts_new(const void *own);

/** @return the number of @p ip, of a new host if it has none yet; 0 = there is no room */
uint32_t weft_hosts_number(struct weft_hosts *h, const void *ip);

/** @return the number of @p ip; 0 = it has none */
uint32_t weft_hosts_find(const struct weft_hosts *h, const void *ip);

/** A connection with the host begins, or it ends: in between no other host replaces this one. */
void weft_hosts_hold(struct weft_hosts *h, uint32_t number, bool yes);

/** @return the address, or NULL: no host has this number now */
const struct in6_addr *weft_hosts_ip(const struct weft_hosts *h, uint32_t number);

/* ------------------------------------------------------------------ neighbour discovery */

/*
 * Neighbour discovery of IPv6 (RFC 4861), in place of ARP. Pure: reads and writes frames.
 *
 * The rules of trust are those of ARP, and so are the table and the code: a solicitation is an ARP
 * request, and an advertisement an ARP reply, with numbers of hosts as addresses. The
 * functions here translate. A test for a duplicate address is an ARP probe, and an unsolicited
 * advertisement to all nodes an ARP reply that names its sender twice.
 */

/** Bytes of the longest frame: headers, ICMPv6 with a target, and an option. */
#define WEFT_ND_MAX \
	(RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + (uint32_t)sizeof(struct rte_ipv6_hdr) + 24u + 8u)

/**
 * Translate a message of the verdict WEFT_VERDICT_ND.
 *
 * A message about our address gives its sender a number. Others are read if both hosts have one.
 * @return false: it concerns no host of this lane
 */
bool weft_nd_read(const struct weft_rx_filter *conf, struct weft_hosts *hosts,
		  const struct weft_nd *nd, struct rte_arp_hdr *arp);

/**
 * Write the frame that takes the place of an ARP packet.
 * @param frame  room for WEFT_ND_MAX
 * @return its length; 0: a host of it has lost its number
 */
uint32_t weft_nd_write(const struct weft_rx_filter *conf, const struct weft_hosts *hosts,
		       const struct rte_arp_hdr *arp, uint8_t *frame);

#endif /* WEFT_ARP_H */
