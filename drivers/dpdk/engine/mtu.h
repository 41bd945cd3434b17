/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/mtu.h
 * The path's MTU while a connection is up. It may become smaller (a route around a broken switch, a
 * tunnel), and no trustworthy message reports that. So the search follows RFC 8899 for black holes.
 * If small probes are answered and probes of the present size are not, frames are cut to IPv6's
 * least MTU, and sent in parts. If that size does not pass either, they are cut to IPv4's. When the
 * search is over, frames have the largest size that passes. Later, larger sizes are tried, up to
 * the one that was agreed when the connection was made.
 *
 * A probe is answered at its own size, so a size must pass in both directions.
 */
#ifndef WEFT_ENGINE_MTU_H
#define WEFT_ENGINE_MTU_H

#include <stdbool.h>
#include <stdint.h>

#include "frame/parse.h"

struct raw_conn;
struct raw_part;
struct raw_slot;
struct weft_lane_ep;

/* ---------------------------------------------------------------- the search */

/*
 * Small probes are sent along with those of a size: their answers show that the peer is alive.
 * Pure; times in ns of any one clock.
 *
 * A size passes with its first answer. It fails when several small probes have been answered and
 * none of its own. After the first round, three of its own are sent for each small one: so random
 * loss is not taken for a narrow path.
 *
 * The sizes are tried in this order: the full size; `cut`, if it is set; the usual MTUs of clouds
 * and tunnels, by bisection; the sizes between them, by bisection, to within WEFT_MTU_GRAIN bytes.
 */

#define WEFT_MTU_GRAIN 8u /**< bytes: the search ends when `hi` - `lo` is at most this */
/** a size fails when this number of small probes are answered, and none of its own */
#define WEFT_MTU_SMALL_ACKS 6u
#define WEFT_MTU_BIG 3u                 /**< probes of the tried size for each small one */
#define WEFT_MTU_WAIT_MIN 1000000ull    /**< ns after the first round of a size; doubles */
#define WEFT_MTU_WAIT_FULL 100000000ull /**< most ns between rounds of the full size */
/** most ns between rounds of smaller sizes, and of all with `quick` */
#define WEFT_MTU_WAIT_STEP 8000000ull
/** ns after which the largest size that has passed is taken */
#define WEFT_MTU_TIME 2000000000ull

struct weft_mtu_search {
	uint64_t begin;
	uint64_t next;  /**< when weft_mtu_search_round() has a probe to send */
	uint16_t full;  /**< the requested frame size */
	uint16_t least; /**< smaller frames are of no use */
	uint16_t cut;   /**< size after the full one has failed, tried next; 0 = bisect at once */
	uint16_t lo;    /**< largest size that has passed; 0 = none */
	uint16_t hi;    /**< smallest size that has failed; 0 = none */
	uint16_t size;
	uint16_t id;    /**< id of the last round: its probes contain this number */
	uint16_t first; /**< id of the first round of `size` */
	uint8_t l2;     /**< bytes of the L2 header, which MTUs do not include */
	uint8_t small_acks, rounds;
	bool between; /**< the usual sizes have been tried */
	bool quick;   /**< traffic waits: the full size is tried for no longer than the others */
};

enum weft_mtu_result {
	WEFT_MTU_GOES_ON,
	WEFT_MTU_FOUND,  /**< the frame size to use is s->lo */
	WEFT_MTU_NARROW, /**< small probes pass, but no frame of s->least or more */
};

/** @p least: smallest frame of use, <= @p full. @p l2: bytes of the L2 header in both. */
void weft_mtu_search_begin(struct weft_mtu_search *s, uint16_t full, uint16_t least, uint8_t l2,
			   uint64_t now);

/**
 * Starts a round, if one is due.
 * @param[out] big    probes of s->size to send; 0: no round is due
 * @param[out] small  small probes to send after them
 * @return WEFT_MTU_FOUND when WEFT_MTU_TIME is over and a size has passed; else WEFT_MTU_GOES_ON
 */
enum weft_mtu_result weft_mtu_search_round(struct weft_mtu_search *s, uint64_t now,
					   unsigned int *big, unsigned int *small);

/**
 * A probe of @p size in round @p id was answered; size 0 = a small one, which counts if it belongs
 * to the present size. After GOES_ON, s->next may be sooner than before.
 */
enum weft_mtu_result weft_mtu_search_ack(struct weft_mtu_search *s, uint16_t id, uint16_t size,
					 uint64_t now);

/* ---------------------------------------------------------------- a connection that is up */

/* Transmissions of a frame that are lost before its size is suspected. */
#define RAW_MTU_TRIES 3u

void raw_mtu_init(struct raw_conn *c);
/* Allocates c->search if there is none. @return 0 or -ENOMEM */
int raw_mtu_search_alloc(struct raw_conn *c);
/* The longest message that now fits one frame. */
uint32_t raw_ep_best_msg(const struct weft_lane_ep *lane_ep);
/*
 * This frame was lost RAW_MTU_TRIES times, or ICMP reports a frame that was too long: its size may
 * be the cause, so a search begins. No effect while another search for a cause goes on or has just
 * ended, if each path carries frames of this length, or if the peer accepts no frames in parts.
 */
void raw_mtu_suspect(struct raw_conn *c, uint32_t seq);
/** Sends the probes of a search's next round, if it is due; also while connecting. */
enum weft_mtu_result raw_mtu_round(struct raw_conn *c);
/* live_clock has reached c->mtu.next: goes on with the search, or tries a larger size. */
void raw_mtu_timer(struct raw_conn *c);
/* A probe of @p size was answered; 0: a small one. */
void raw_mtu_ack(struct raw_conn *c, uint16_t id, uint16_t size);

/* ---------------------------------------------------------------- frames in parts */

/*
 * Frames that are longer than the path carries now are sent in parts, under their own sequence
 * number. The receiver assembles them before it checks their messages. So frames that were in
 * flight when the path became narrower are delivered exactly once.
 *
 * A part may arrive twice, late, or with other boundaries than before. If a part is lost, the whole
 * frame is retransmitted.
 */

#define RAW_PARTS_OF_CONN 8u    /* most frames being assembled, of a connection */
#define RAW_PARTS_OF_IFACE 256u /* most frames being assembled, of an iface */

/* slot->order becomes that of the last part. @return 0, or -EAGAIN without side effect */
int raw_parts_send(struct raw_conn *c, struct raw_slot *slot, uint32_t seq, uint8_t path,
		   uint16_t flags);

/*
 * Take a part of a frame that has not been received yet.
 * @param[out] whole  when the frame is complete: the frame, valid until the result is freed
 * @return the memory of the complete frame, to be freed; NULL = parts are missing, or the part or
 * the frame was dropped, which is counted
 */
struct raw_part *raw_part_take(struct raw_conn *c, const struct weft_frame_view *v,
			       struct weft_frame_view *whole);
void raw_parts_forget(struct raw_conn *c);

#endif /* WEFT_ENGINE_MTU_H */
