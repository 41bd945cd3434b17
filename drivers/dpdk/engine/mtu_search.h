/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/mtu_search.h
 * Searches the largest frame that arrives in both directions. Probes of a size are answered by
 * frames of the same size. Small probes are sent along with them, and their answers show that the
 * peer is alive. Pure; times in ns of any one clock.
 *
 * A size passes with its first answer. It fails when several small probes have been answered and
 * none of its own, of which three are sent for each small one: so random loss is not taken for a
 * narrow path. The sizes are tried in this order: the full size; the usual MTUs of clouds and
 * tunnels, by bisection; the sizes between them, by bisection, to within WEFT_MTU_GRAIN bytes.
 */
#ifndef WEFT_MTU_SEARCH_H
#define WEFT_MTU_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_MTU_GRAIN 8u /**< bytes: MTUs in use differ by at least this */
/** a size fails when N small probes are answered, and none of its own */
#define WEFT_MTU_SMALL_ACKS 6u
#define WEFT_MTU_BIG 3u              /**< full probes for each small one */
#define WEFT_MTU_WAIT_MIN 1000000ull /**< ns between rounds of one size; doubles */
#define WEFT_MTU_WAIT_FULL 100000000ull
#define WEFT_MTU_WAIT_STEP 8000000ull /**< for the sizes below the full one */
/** after this time the largest size that has passed is taken */
#define WEFT_MTU_TIME 2000000000ull

struct weft_mtu_search {
	uint64_t begin;
	uint64_t next;  /**< when weft_mtu_search_round() has a probe to send */
	uint16_t full;  /**< the requested frame size */
	uint16_t least; /**< smaller frames are of no use */
	uint16_t lo;    /**< largest that has passed; 0 = none */
	uint16_t hi;    /**< smallest that has failed; 0 = none */
	uint16_t size;  /**< the size being tried */
	uint16_t id;    /**< of the last round sent: its probes contain it */
	uint16_t first; /**< of the first round of this size */
	uint8_t l2;     /**< bytes of the L2 header, which MTUs do not include */
	uint8_t small_acks, rounds;
	bool between; /**< the usual sizes have been tried */
	bool quick;   /**< traffic waits: the full size is tried for no longer than the others */
};

enum weft_mtu_result {
	WEFT_MTU_GOES_ON,
	WEFT_MTU_FOUND,  /**< it is s->lo */
	WEFT_MTU_NARROW, /**< small probes pass, but no frame of s->least or more */
};

/**
 * @param full   the requested frame size
 * @param least  smallest frame of use, <= full
 * @param l2     bytes of the L2 header in both
 */
void weft_mtu_search_begin(struct weft_mtu_search *s, uint16_t full, uint16_t least, uint8_t l2,
			   uint64_t now);

/**
 * The same on a connection that is up; the ids go on.
 *
 * @param lo  a size that passes; 0 = none is known
 */
void weft_mtu_search_again(struct weft_mtu_search *s, uint16_t full, uint16_t least, uint8_t l2,
			   uint16_t lo, uint64_t now);

/**
 * Start a round, if one is due.
 *
 * @param[out] big    probes of s->size to send
 * @param[out] small  small probes to send after them
 * @return WEFT_MTU_FOUND when the time is over and the size that has passed suffices
 */
enum weft_mtu_result weft_mtu_search_round(struct weft_mtu_search *s, uint64_t now,
					   unsigned int *big, unsigned int *small);

/**
 * A probe of @p size in round @p id was answered; size 0 = a small one, which counts if it belongs
 * to the present size. After GOES_ON, s->next may be sooner than before.
 */
enum weft_mtu_result weft_mtu_search_ack(struct weft_mtu_search *s, uint16_t id, uint16_t size,
					 uint64_t now);

#endif /* WEFT_MTU_SEARCH_H */
