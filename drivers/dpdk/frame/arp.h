/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/arp.h
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
#include <sys/queue.h>

#include <rte_arp.h>

/**
 * Addresses that we request ourselves. Beyond that the one that was unused for longest goes, if
 * that is WEFT_ARP_BUSY ago; else who asks has to wait.
 */
#define WEFT_ARP_OURS 4096u
/** And those that strangers make us request, by a HELLO. They have their own places. */
#define WEFT_ARP_THEIRS 512u
#define WEFT_ARP_FIXED_MAX 32u
#define WEFT_ARP_BUSY 1000000000ull   /**< ns */
#define WEFT_ARP_SAID 4u              /**< MACs kept of those that answered one question */
#define WEFT_ARP_LOOKS 64u            /**< entries that are searched for a MAC, of a kind */
#define WEFT_ARP_BUCKETS 512u         /**< a power of two */
#define WEFT_ARP_RETRY_MIN 2000000ull /**< ns; doubles */
#define WEFT_ARP_RETRY_MAX 500000000ull
#define WEFT_ARP_FRESH 1000000000ull /**< ns; what was learned just now is not doubted */
#define WEFT_ARP_OPEN 10000000000ull /**< ns after the next one was due: an answer comes too late */

/** Whose an entry is. */
enum weft_arp_kind {
	WEFT_ARP_KIND_OURS,
	WEFT_ARP_KIND_THEIRS,
	WEFT_ARP_KIND_FIXED, /**< given by the user: no answer changes it, nothing pushes it out */
	WEFT_ARP_KINDS,
};

struct weft_arp_entry {
	LIST_ENTRY(weft_arp_entry) bucket;
	TAILQ_ENTRY(weft_arp_entry) link;
	uint32_t ip;    /**< host order */
	uint32_t asked; /**< asks without an answer */
	uint64_t next_ask;
	uint64_t used;
	uint64_t learned;
	uint8_t mac[6];
	bool known;
	uint8_t kind;                   /**< enum weft_arp_kind */
	uint8_t said[WEFT_ARP_SAID][6]; /**< who answered the last question that was answered */
	uint32_t num_said;              /**< answers by others than those, too */
};

TAILQ_HEAD(weft_arp_list, weft_arp_entry);
LIST_HEAD(weft_arp_bucket, weft_arp_entry);

/**
 * Who has which address. Each call below takes the lock for a check of one bucket: none is made per
 * message. Entries are made when somebody is asked.
 */
struct weft_arp_table {
	pthread_mutex_t lock;
	uint64_t seed; /**< random: peers choose addresses, but not who shares a bucket with whom */
	struct weft_arp_list list[WEFT_ARP_KINDS]; /**< the one used last at the end */
	uint32_t num[WEFT_ARP_KINDS];
	struct weft_arp_bucket bucket[WEFT_ARP_BUCKETS];
};

/** One iface's view. */
struct weft_arp {
	uint32_t ip; /**< ours, host order */
	uint8_t mac[6];
	/** the last two that claim one address; of ours the first one is our own MAC */
	struct weft_arp_conflict {
		uint32_t ip; /**< 0 = there was none */
		uint8_t mac[2][6];
	} conflict;
	struct weft_arp_table *table; /**< own, or the port's */
	struct weft_arp_table own;
};

enum weft_arp_result {
	WEFT_ARP_IGNORED,
	WEFT_ARP_LEARNED,  /**< the answer to our question */
	WEFT_ARP_ANSWER,   /**< @p reply is to be sent to the reply's arp_tha */
	WEFT_ARP_CONFLICT, /**< someone else uses our IP address: a->conflict */
	WEFT_ARP_SEVERAL,  /**< somebody has answered for an address as others have: a->conflict */
};

void weft_arp_table_init(struct weft_arp_table *t, uint64_t seed);
void weft_arp_table_fini(struct weft_arp_table *t);

/**
 * @param seed    a random number
 * @param shared  the port's table, initialised, which outlives @p a; NULL = one for itself
 *
 * Times given to the calls below are of one clock for all who share a table: ns.
 */
void weft_arp_init(struct weft_arp *a, uint32_t ip, const uint8_t mac[6], uint64_t seed,
		   struct weft_arp_table *shared);
void weft_arp_fini(struct weft_arp *a);

/** MAC of @p ip if known. */
bool weft_arp_lookup(struct weft_arp *a, uint32_t ip, uint64_t now, uint8_t mac[6]);

/**
 * Request @p ip if it is time to.
 * @param[out] pkt  the request, when true is returned; goes to ff:ff:ff:ff:ff:ff
 */
bool weft_arp_ask(struct weft_arp *a, uint32_t ip, uint64_t now, struct rte_arp_hdr *pkt);
/** The same, because a stranger says that it has @p ip. */
bool weft_arp_ask_theirs(struct weft_arp *a, uint32_t ip, uint64_t now, struct rte_arp_hdr *pkt);

/**
 * Who said that it has @p ip when that was asked last: the first one, which is believed, and up to
 * three others, of more a random choice. Forgetting leaves them until the next answer.
 *
 * @return how many
 */
unsigned int weft_arp_said(struct weft_arp *a, uint32_t ip, uint8_t mac[WEFT_ARP_SAID][6]);

/**
 * "Does anybody have this address?" of our own, as RFC 5227 begins with: it changes nobody's table,
 * and peers learn that somebody begins here. (Answers prove no conflict: a cloud's fabric answers
 * for all.)
 */
void weft_arp_probe(const struct weft_arp *a, struct rte_arp_hdr *pkt);

/** What a packet of ARP says unasked of another host. Not believed: a reason to ask that host. */
struct weft_arp_hint {
	uint32_t ip;
	uint8_t mac[6];
	bool begins; /**< it says so of itself: it has come, come back, or changed */
};

/** @return false: nothing, or of ourselves */
bool weft_arp_hint(const struct weft_arp *a, const struct rte_arp_hdr *pkt,
		   struct weft_arp_hint *hint);

/** Has anybody who shares the table requested @p ip? */
bool weft_arp_has(const struct weft_arp *a, uint32_t ip);

/** Requests @p ip that had no answer so far. */
uint32_t weft_arp_asked(struct weft_arp *a, uint32_t ip);

/**
 * Static neighbour: its address is never requested.
 *
 * @return 0, -EEXIST (another MAC was given for it), -ENOSPC
 */
int weft_arp_fix(struct weft_arp *a, uint32_t ip, const uint8_t mac[6]);

/** Is @p ip a static neighbour? */
bool weft_arp_is_fixed(const struct weft_arp *a, uint32_t ip);

/** Forget an answer: the peer behind it has gone silent and may have moved. */
void weft_arp_forget(struct weft_arp *a, uint32_t ip);

/**
 * Frames from @p ip come from another MAC than the known one. Forget that, if it is older than a
 * while.
 *
 * @return it was forgotten
 */
bool weft_arp_doubt(struct weft_arp *a, uint32_t ip, uint64_t now);

/**
 * Handle a received packet. Nothing enters the cache but the first answer to a question of ours
 * that is open: requests are answered and teach nothing, whoever's address they name as their
 * sender's.
 *
 * Where one MAC answers for everybody (a cloud's virtual network, a router with proxy ARP) it may
 * claim our address as well, and takes nothing from us by that: a MAC that is known to answer for
 * another address is no conflict.
 */
enum weft_arp_result weft_arp_input(struct weft_arp *a, const struct rte_arp_hdr *pkt, uint64_t now,
				    struct rte_arp_hdr *reply);

#endif /* WEFT_ARP_H */
