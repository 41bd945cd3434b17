/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file arp.h
 * ARP: a small cache per iface, asks with backoff, answers. Pure: builds and reads packets, sends
 * none.
 */
#ifndef WEFT_ARP_H
#define WEFT_ARP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"

#define WEFT_ARP_ENTRIES 64u
#define WEFT_ARP_RETRY_MIN 2000000ull /**< ns; doubles */
#define WEFT_ARP_RETRY_MAX 500000000ull

struct weft_arp_entry {
	uint32_t ip;    /**< host order; 0 = free */
	uint32_t asked; /**< asks without an answer */
	uint64_t next_ask;
	uint64_t used;
	uint8_t mac[6];
	bool known;
};

struct weft_arp {
	uint32_t ip; /**< ours, host order */
	uint8_t mac[6];
	uint64_t conflicts; /**< others that claim our address */
	uint8_t conflict_mac[6];
	struct weft_arp_entry entry[WEFT_ARP_ENTRIES];
};

enum weft_arp_result {
	WEFT_ARP_IGNORED,
	WEFT_ARP_LEARNED,  /**< an answer, or a request that told its sender's address */
	WEFT_ARP_ANSWER,   /**< @p reply is to be sent to reply->tha (may have learned as well) */
	WEFT_ARP_CONFLICT, /**< someone else uses our IP address */
};

void weft_arp_init(struct weft_arp *a, uint32_t ip, const uint8_t mac[6]);

/** MAC of @p ip if known. */
const uint8_t *weft_arp_lookup(struct weft_arp *a, uint32_t ip, uint64_t now);

/**
 * Ask for @p ip if it is time to.
 * @param[out] pkt  the request, when true is returned; goes to ff:ff:ff:ff:ff:ff
 */
bool weft_arp_ask(struct weft_arp *a, uint32_t ip, uint64_t now, struct weft_frame_arp *pkt);

/** Asks for @p ip that had no answer so far. */
uint32_t weft_arp_asked(const struct weft_arp *a, uint32_t ip);

/** Forget an answer: the peer behind it has gone silent and may have moved. */
void weft_arp_forget(struct weft_arp *a, uint32_t ip);

/**
 * Handle a received packet. Only addresses that were asked for, or that ask us, enter the cache, so
 * that strangers cannot fill it.
 */
enum weft_arp_result weft_arp_input(struct weft_arp *a, const struct weft_frame_arp *pkt,
				    uint64_t now, struct weft_frame_arp *reply);

#endif /* WEFT_ARP_H */
