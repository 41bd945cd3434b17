/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/mtu_search.h
 * Which is the largest frame that arrives, both ways? By probes: full ones, answered by full ones,
 * and small ones beside them, which say that the peer is there. Pure; times in ns of any one clock.
 *
 * A size passes with its first answer. It fails when several small probes have been answered and
 * none of its own, of which there are three for each small one: so mere loss is not taken for a
 * narrow path. Tried are, in this order: the full size; what the MTUs of clouds and tunnels make
 * of it, by bisection; what lies between, by bisection, to within WEFT_MTU_GRAIN bytes.
 */
#ifndef WEFT_MTU_SEARCH_H
#define WEFT_MTU_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_MTU_GRAIN 8u            /**< bytes: no MTU in use lies closer to another one */
#define WEFT_MTU_SMALL_ACKS 6u       /**< small ones answered, and no full one: it fails */
#define WEFT_MTU_BIG 3u              /**< full probes for each small one */
#define WEFT_MTU_WAIT_MIN 1000000ull /**< ns between rounds of one size; doubles */
#define WEFT_MTU_WAIT_FULL 100000000ull
#define WEFT_MTU_WAIT_STEP 8000000ull /**< of the sizes below the full one */
#define WEFT_MTU_TIME 2000000000ull   /**< then the largest one that has passed will do */

struct weft_mtu_search {
	uint64_t begin;
	uint64_t next;  /**< when weft_mtu_search_round() has something to send */
	uint16_t full;  /**< wanted */
	uint16_t least; /**< smaller ones are of no use */
	uint16_t lo;    /**< largest that has passed; 0 = none */
	uint16_t hi;    /**< smallest that has failed; 0 = none */
	uint16_t size;  /**< being tried */
	uint16_t id;    /**< of the round that was sent last: goes with its probes */
	uint16_t first; /**< of the first round of this size */
	uint8_t l2;     /**< of frames: what lies around the MTU */
	uint8_t small_acks, rounds;
	bool between; /**< the usual sizes have been tried */
	bool quick;   /**< traffic waits: the full size is tried no longer than the others */
};

enum weft_mtu_result {
	WEFT_MTU_GOES_ON,
	WEFT_MTU_FOUND,  /**< it is s->lo */
	WEFT_MTU_NARROW, /**< small ones pass, none of at least s->least does */
};

/**
 * @param full   frame size wanted
 * @param least  smallest of use, <= full
 * @param l2     bytes of the L2 header in both
 */
void weft_mtu_search_begin(struct weft_mtu_search *s, uint16_t full, uint16_t least, uint8_t l2,
			   uint64_t now);

/**
 * The same in mid-connection, with the ids going on.
 *
 * @param lo  passes; 0 = nothing is known to
 */
void weft_mtu_search_again(struct weft_mtu_search *s, uint16_t full, uint16_t least, uint8_t l2,
			   uint16_t lo, uint64_t now);

/**
 * A round, when it is time for one.
 *
 * @param[out] big    probes of s->size to send
 * @param[out] small  small ones, behind them
 * @return WEFT_MTU_FOUND when time is up and what has passed will do
 */
enum weft_mtu_result weft_mtu_search_round(struct weft_mtu_search *s, uint64_t now,
					   unsigned int *big, unsigned int *small);

/**
 * A probe of @p size of round @p id was answered; size 0 = a small one, which counts if it was sent
 * beside the present size. After GOES_ON s->next may have come nearer.
 */
enum weft_mtu_result weft_mtu_search_ack(struct weft_mtu_search *s, uint16_t id, uint16_t size,
					 uint64_t now);

#endif /* WEFT_MTU_SEARCH_H */
