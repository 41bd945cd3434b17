/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file arp.h
 * ARP: a small cache per port, asks with backoff, answers. Pure: builds and reads packets, sends
 * none.
 *
 * A port's queues share one cache. ARP has no UDP port that a flow rule could steer by, so its
 * frames come to one queue only, the first one's as a rule: what the worker there learns the others
 * find here, at their next look.
 */
#ifndef WEFT_ARP_H
#define WEFT_ARP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"

#define WEFT_ARP_ENTRIES 64u
#define WEFT_ARP_FIXED_MAX (WEFT_ARP_ENTRIES / 2) /**< the rest is for who is asked */
#define WEFT_ARP_RETRY_MIN 2000000ull             /**< ns; doubles */
#define WEFT_ARP_RETRY_MAX 500000000ull
#define WEFT_ARP_FRESH 1000000000ull /**< ns; what was learned just now is not doubted */
#define WEFT_ARP_OPEN 10000000000ull /**< ns after the next one was due: an answer comes too late */

struct weft_arp_entry {
	uint32_t ip;    /**< host order; 0 = free */
	uint32_t asked; /**< asks without an answer */
	uint64_t next_ask;
	uint64_t used;
	uint64_t learned;
	uint8_t mac[6];
	bool known;
	bool fixed; /**< given by the user: no answer changes it, nothing pushes it out */
};

/**
 * Who has which address. Each call below takes the lock, for the time of a look through the entries:
 * none is made per message.
 */
struct weft_arp_table {
	pthread_mutex_t lock;
	struct weft_arp_entry entry[WEFT_ARP_ENTRIES];
};

/** One iface's view. */
struct weft_arp {
	uint32_t ip; /**< ours, host order */
	uint8_t mac[6];
	uint64_t conflicts; /**< others that claim our address */
	uint8_t conflict_mac[6];
	struct weft_arp_table *table; /**< own, or the port's */
	struct weft_arp_table own;
};

enum weft_arp_result {
	WEFT_ARP_IGNORED,
	WEFT_ARP_LEARNED,  /**< the answer to our question */
	WEFT_ARP_ANSWER,   /**< @p reply is to be sent to reply->tha */
	WEFT_ARP_CONFLICT, /**< someone else uses our IP address */
};

void weft_arp_table_init(struct weft_arp_table *t);

/**
 * @param shared  the port's table, initialised, which outlives @p a; NULL = one for itself
 *
 * Times given to the calls below are of one clock for all who share a table: ns.
 */
void weft_arp_init(struct weft_arp *a, uint32_t ip, const uint8_t mac[6],
		   struct weft_arp_table *shared);

/** MAC of @p ip if known. */
bool weft_arp_lookup(struct weft_arp *a, uint32_t ip, uint64_t now, uint8_t mac[6]);

/**
 * Ask for @p ip if it is time to.
 * @param[out] pkt  the request, when true is returned; goes to ff:ff:ff:ff:ff:ff
 */
bool weft_arp_ask(struct weft_arp *a, uint32_t ip, uint64_t now, struct weft_frame_arp *pkt);

/** Asks for @p ip that had no answer so far. */
uint32_t weft_arp_asked(struct weft_arp *a, uint32_t ip);

/**
 * Static neighbour: its address is never asked for.
 *
 * @return 0, -EEXIST (another MAC was given for it), -ENOSPC
 */
int weft_arp_fix(struct weft_arp *a, uint32_t ip, const uint8_t mac[6]);

/** Is @p ip a static neighbour? */
bool weft_arp_is_fixed(const struct weft_arp *a, uint32_t ip);

/** Forget an answer: the peer behind it has gone silent and may have moved. */
void weft_arp_forget(struct weft_arp *a, uint32_t ip);

/**
 * Frames from @p ip come from another MAC than the known one. Forget that, if it is older than a while.
 *
 * @return it was forgotten
 */
bool weft_arp_doubt(struct weft_arp *a, uint32_t ip, uint64_t now);

/**
 * Handle a received packet. Nothing enters the cache but the first answer to a question of ours that
 * is open: requests are answered and teach nothing, whoever's address they name as their sender's.
 *
 * Where one MAC answers for everybody (a cloud's virtual network, a router with proxy ARP) it may
 * claim our address as well, and takes nothing from us by that: a MAC that is known to answer for
 * another address is no conflict.
 */
enum weft_arp_result weft_arp_input(struct weft_arp *a, const struct weft_frame_arp *pkt,
				    uint64_t now, struct weft_frame_arp *reply);

#endif /* WEFT_ARP_H */
