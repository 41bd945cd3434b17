/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/arp.h
 * ARP: a small cache per port, requests with backoff, replies; and the addresses of lanes. For
 * lanes over IPv6: numbers of hosts, and neighbour discovery. Pure: builds and reads packets, sends
 * none.
 *
 * The queues of a port share one cache. ARP has no UDP port by which a flow rule could steer it, so
 * its frames come to one queue only.
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
 * The most addresses that this host requests for itself. Beyond that an entry that was unused for
 * WEFT_ARP_BUSY is evicted, or else weft_arp_request() returns false.
 */
#define WEFT_ARP_OURS 4096u
/** The maximum number of addresses requested because unknown senders sent HELLO. */
#define WEFT_ARP_THEIRS 512u
#define WEFT_ARP_FIXED_MAX 32u
#define WEFT_ARP_BUSY 1000000000ull /**< ns */
/** MACs kept of those that replied to one request: the first one and some others */
#define WEFT_ARP_REPLIERS 4u
#define WEFT_ARP_LOOKS 64u            /**< most entries of each kind that are searched for a MAC */
#define WEFT_ARP_RETRY_MIN 2000000ull /**< ns to the second request; doubles each time */
#define WEFT_ARP_RETRY_MAX 500000000ull
/** ns; weft_arp_recheck() does not forget a MAC learned within this time */
#define WEFT_ARP_FRESH 1000000000ull
/** ns; a reply is ignored if it comes this long after the next request was due */
#define WEFT_ARP_OPEN 10000000000ull

enum weft_arp_kind {
	WEFT_ARP_KIND_OURS,   /**< this host sends to the address */
	WEFT_ARP_KIND_THEIRS, /**< an unknown sender claims the address */
	WEFT_ARP_KIND_FIXED, /**< given by the user: no reply changes it, and it is never evicted */
	WEFT_ARP_KINDS,
};

struct weft_arp_entry {
	struct weft_table_node by_ip; /**< key: the IPv4 address in host order */
	TAILQ_ENTRY(weft_arp_entry) link;
	uint32_t unanswered; /**< requests since the last reply, or since the MAC was forgotten */
	uint64_t next_request;
	uint64_t used;
	uint64_t learned;
	uint8_t mac[6];
	bool known;
	uint8_t kind; /**< enum weft_arp_kind */
	/** MACs that replied to the last answered request; repliers[0] is `mac` */
	uint8_t repliers[WEFT_ARP_REPLIERS][6];
	uint32_t num_replies; /**< replies, without those repeated by a MAC in repliers[] */
};

TAILQ_HEAD(weft_arp_list, weft_arp_entry);

/** The calls take the lock for a short search; none is made per message. */
struct weft_arp_table {
	pthread_mutex_t lock;
	struct weft_arp_list list[WEFT_ARP_KINDS]; /**< the entry used last is at the end */
	uint32_t num[WEFT_ARP_KINDS];
	struct weft_table by_ip; /**< seeded: peers choose addresses */
};

struct weft_arp {
	uint32_t ip; /**< ours, host order */
	uint8_t mac[6];
	/** the last conflict: two MACs that claim one address; for our address mac[0] is our own */
	struct weft_arp_conflict {
		uint32_t ip; /**< 0 = there was no conflict */
		uint8_t mac[2][6];
	} conflict;
	struct weft_arp_table *table; /**< &own, or the table that the port's queues share */
	struct weft_arp_table own;
};

enum weft_arp_result {
	WEFT_ARP_IGNORED,
	WEFT_ARP_LEARNED,  /**< the first reply to our request: its MAC is now in the table */
	WEFT_ARP_ANSWER,   /**< @p reply is to be sent, to its arp_tha */
	WEFT_ARP_CONFLICT, /**< another host uses our IP address: a->conflict */
	WEFT_ARP_SEVERAL,  /**< another MAC has replied for a known address: a->conflict */
};

void weft_arp_table_init(struct weft_arp_table *t, uint64_t seed);
void weft_arp_table_fini(struct weft_arp_table *t);

/**
 * Times are ns, of one clock for all callers that share a table.
 * @param seed    a random number
 * @param shared  the port's table, initialised, which outlives @p a; NULL = one for itself
 */
void weft_arp_init(struct weft_arp *a, uint32_t ip, const uint8_t mac[6], uint64_t seed,
		   struct weft_arp_table *shared);
void weft_arp_fini(struct weft_arp *a);

bool weft_arp_lookup(struct weft_arp *a, uint32_t ip, uint64_t now, uint8_t mac[6]);

/** @return true: send @p pkt, a request for the unknown MAC of @p ip, to ff:ff:ff:ff:ff:ff */
bool weft_arp_request(struct weft_arp *a, uint32_t ip, uint64_t now, struct rte_arp_hdr *pkt);
/** weft_arp_request() for an unknown sender that claims @p ip: one of WEFT_ARP_THEIRS entries */
bool weft_arp_request_theirs(struct weft_arp *a, uint32_t ip, uint64_t now,
			     struct rte_arp_hdr *pkt);

/**
 * The MACs that replied to the last answered request for @p ip: the first one, which is trusted,
 * and up to three others. Forgetting an address keeps them until the next reply.
 * @return their number
 */
unsigned int weft_arp_repliers(struct weft_arp *a, uint32_t ip, uint8_t mac[WEFT_ARP_REPLIERS][6]);

/**
 * Build an ARP probe (RFC 5227) for our own address: peers learn from it that this host has
 * started. A reply proves no conflict, since the fabric of a cloud replies for all addresses.
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

/** Has the table an entry for @p ip: requested by an iface that shares the table, or static? */
bool weft_arp_has(const struct weft_arp *a, uint32_t ip);

/** Requests for @p ip since the last reply, or since its MAC was forgotten. */
uint32_t weft_arp_unanswered(struct weft_arp *a, uint32_t ip);

/**
 * Enter a static neighbour: its address is not requested from now on.
 * @return 0; -EEXIST: @p ip is static with another MAC; -ENOSPC: WEFT_ARP_FIXED_MAX; -ENOMEM
 */
int weft_arp_fix(struct weft_arp *a, uint32_t ip, const uint8_t mac[6]);

bool weft_arp_is_fixed(const struct weft_arp *a, uint32_t ip);

/** Forget the MAC of @p ip, unless it is static: the next request for @p ip is then due at once. */
void weft_arp_forget(struct weft_arp *a, uint32_t ip);

/**
 * Frames from @p ip come from another MAC. Forget the known MAC if it is older than WEFT_ARP_FRESH,
 * and not that of a static neighbour. @return true: the MAC was forgotten
 */
bool weft_arp_recheck(struct weft_arp *a, uint32_t ip, uint64_t now);

/**
 * Process a received packet. Only the first reply to an open request of this host sets a MAC in the
 * table; later replies are listed. Requests for our address are answered and change no entry.
 *
 * In a cloud's virtual network, or behind a proxy ARP, one MAC replies for all addresses, also for
 * ours. So a MAC that the table has for another address causes no conflict.
 */
enum weft_arp_result weft_arp_input(struct weft_arp *a, const struct rte_arp_hdr *pkt, uint64_t now,
				    struct rte_arp_hdr *reply);

/* ---------------------------------------------------------------- addresses */

/* IPv4 addresses are in host byte order. */

#define WEFT_LANE_PREFIX_LOCAL 16
#define WEFT_LANE_NEIGH_MAX 8

struct weft_lane_neigh {
	uint32_t ip; /**< IPv4 address; on a lane with IPv6 the number of the host ip6 */
	uint8_t ip6[16];
	uint8_t mac[6];
};

/** Can one host have this address, and not only as its loopback address? */
bool weft_lane_is_unicast(uint32_t ip);

/** Can a host of a network with this prefix length (0..32) have this address? */
bool weft_lane_is_hosts(uint32_t ip, unsigned int prefix);

/** Are the first @p prefix bits (0..32) of both the same? */
bool weft_lane_same_net(uint32_t a, uint32_t b, unsigned int prefix);

/** Two MACs have one link-local address with a probability of 1 in 65024; such lanes need ip=. */
uint32_t weft_lane_link_local(const uint8_t mac[6]);

/* ---------------------------------------------------------------- IPv6 addresses */

/** Can one host have this address on a network, and is it no IPv4-mapped address? */
bool weft_ip6_is_unicast(const uint8_t ip[16]);

static inline bool weft_ip6_is_link_local(const uint8_t ip[16])
{
	return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

bool weft_ip6_same_net(const uint8_t a[16], const uint8_t b[16], unsigned int prefix);

/** Write the last 64 bits of an address, made from a MAC address (RFC 4291, appendix A). */
void weft_ip6_from_mac(uint8_t ip[16], const uint8_t mac[6]);

/** @param ip  gives the group of solicitations; NULL = the group of all nodes */
void weft_ip6_group(const uint8_t *ip, uint8_t group[16], uint8_t mac[6]);

/* ------------------------------------------------------------------ hosts of an IPv6 lane */

/*
 * The hosts of an IPv6 lane. The engine identifies a host by 32 bits, on IPv4 lanes its address. So
 * each IPv6 address has a number of 32 bits, valid on this lane only. Over UDP sockets the number
 * is also the IPv4 address in the headers of the engine's frames.
 *
 * Any host may send a frame, so the table is bounded. A new address replaces the one in its WAYS
 * slots that was idle for longest, except hosts that a connection holds. A number contains the
 * slot's generation, so that frames for a replaced address reach no other host.
 */

#define WEFT_HOSTS 4096u /* a power of two */

struct weft_host {
	struct in6_addr ip;
	uint64_t used; /* number of the last use of this host, counted over all hosts; 0 = free */
	uint32_t held; /* by connections; the lane holds its own address and those of options */
	uint32_t generation;
};

struct weft_hosts {
	struct weft_siphash_key key; /* random, so that no peer can choose the host it replaces */
	uint64_t uses;
	struct weft_host host[WEFT_HOSTS];
};

/* Addresses of type void * are 16 bytes and need no alignment. */

/** @param own  the lane's address, which is never replaced. @return NULL: no memory */
struct weft_hosts *weft_hosts_new(const void *own);

/** @return the number of @p ip, a new one if there is none yet; 0 = other hosts hold all slots */
uint32_t weft_hosts_number(struct weft_hosts *h, const void *ip);

/** @return the number of @p ip; 0 = @p ip has none */
uint32_t weft_hosts_find(const struct weft_hosts *h, const void *ip);

/** A connection with the host begins (@p yes) or ends: no other host replaces this one. */
void weft_hosts_hold(struct weft_hosts *h, uint32_t number, bool yes);

/** @return the address, or NULL: no host has this number now */
const struct in6_addr *weft_hosts_ip(const struct weft_hosts *h, uint32_t number);

/* ------------------------------------------------------------------ neighbour discovery */

/*
 * Neighbour discovery of IPv6 (RFC 4861), translated to and from ARP, so that ARP's table and rules
 * apply. A solicitation becomes an ARP request, and an advertisement an ARP reply, with numbers of
 * hosts as addresses. A test for a duplicate address becomes an ARP probe. An unsolicited
 * advertisement to all nodes becomes an ARP reply whose sender address is also its target address.
 */

/** Bytes of the longest frame: headers, ICMPv6 with a target, and an option. */
#define WEFT_ND_MAX \
	(RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + (uint32_t)sizeof(struct rte_ipv6_hdr) + 24u + 8u)

/**
 * A solicitation for our address gives its sender a number. Other messages of WEFT_VERDICT_ND are
 * translated only if their sender (without a source address the target) has a number.
 * @return false: the message is not translated
 */
bool weft_nd_read(const struct weft_rx_filter *conf, struct weft_hosts *hosts,
		  const struct weft_nd *nd, struct rte_arp_hdr *arp);

/**
 * @param frame  room for WEFT_ND_MAX bytes
 * @return length of the frame; 0: the host of the packet's target address has lost its number
 */
uint32_t weft_nd_write(const struct weft_rx_filter *conf, const struct weft_hosts *hosts,
		       const struct rte_arp_hdr *arp, uint8_t *frame);

#endif /* WEFT_ARP_H */
