/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/cc.h
 * Congestion control of one path: how many bytes may be in flight, and how far apart frames
 * leave. doc/congestion.md has the equations. Pure: time is passed in, nothing is allocated.
 *
 * An algorithm is one file with a `struct weft_cc_ops` and one line in WEFT_CC_LIST
 * (lib/lane.h). It is told what happened and writes `window`, `limit` and `gap`; the sender
 * reads nothing else.
 */
#ifndef WEFT_CC_H
#define WEFT_CC_H

#include <stdbool.h>
#include <stdint.h>

struct weft_cc;

/** What an algorithm knows of the way from the start. */
struct weft_cc_conf {
	uint32_t frame; /**< bytes of a full frame, as the window counts them; at least 1 */
	uint32_t most;  /**< bytes: the largest window that sender and receiver have room for */
	/** ns: round trip of a small frame before there was traffic; 0 = not known */
	uint32_t rtt;
	uint32_t frame_ns; /**< time of a full frame on the slowest link known; 0 = none is */
	bool meter;        /**< nobody knows the port's speed: what gets through tells more */
};

/** An acknowledgement. */
struct weft_cc_ack {
	uint64_t now;      /**< of the clock that round trips are measured by */
	uint32_t acked;    /**< bytes that left the network */
	uint32_t inflight; /**< bytes that were in flight before */
	uint32_t marked;   /**< bytes of those that came with Congestion Experienced */
	uint32_t rtt;      /**< ns, the receiver's hold time taken off; 0 = no sample */
	uint32_t size;     /**< bytes of the frame that rtt is of; 0 = not known */
	bool limited;      /**< since the last one, the window kept frames back */
};

struct weft_cc_ops {
	const char *name;
	void (*init)(struct weft_cc *cc, const struct weft_cc_conf *conf);
	void (*on_ack)(struct weft_cc *cc, const struct weft_cc_ack *ack);
	/** @p bytes are known to be lost: newer frames of this path arrived. */
	void (*on_loss)(struct weft_cc *cc, uint32_t bytes, uint64_t now);
	/**
	 * Nothing was heard for a timeout; for the @p tries th time in a row. The first one is
	 * always told, others where enough was in flight.
	 */
	void (*on_timeout)(struct weft_cc *cc, unsigned int tries, uint64_t now);
	/**
	 * Frames from before the first of these timeouts, sent once, have arrived: nobody lost
	 * them, it was the peer that was silent.
	 */
	void (*on_spurious)(struct weft_cc *cc);
	/** Nothing was in flight for long: what is known of the way is old. */
	void (*on_idle)(struct weft_cc *cc);
};

/** What a round of the delay algorithm collects. Bytes and ns. */
struct weft_cc_round {
	uint64_t at;    /**< begin */
	uint32_t from;  /**< window then */
	uint32_t worst; /**< largest round trip */
	uint32_t late;  /**< least one of the last part of the round; 0 = none */
	uint32_t acked;
	uint32_t lost;
	uint32_t marked;
	bool limited;
};

enum weft_cc_mode {
	WEFT_CC_MODE_START, /**< doubling, until something is in the way */
	WEFT_CC_MODE_DELAY, /**< the queue is kept at the target */
	/** others fill the queue whatever we do: additive increase, loss decides */
	WEFT_CC_MODE_SHARE,
};

/** State of the delay algorithm (cc_delay.c). */
struct weft_cc_delay {
	struct weft_cc_round round;
	uint8_t mode;       /**< enum weft_cc_mode */
	uint8_t loss_shift; /**< a loss rate of 2^-shift is the way's own, not a queue's */
	uint8_t over;       /**< rounds in a row with a queue far beyond the target */
	uint8_t look;       /**< rounds for which the window is small to see who else is there */
	uint8_t clear;      /**< rounds with an empty queue */
	uint8_t cuts;       /**< by delay */
	uint8_t uncut;      /**< rounds since a cut by delay */
	uint8_t looks;      /**< losses in mode SHARE */
	uint8_t empty;      /**< looks in a row that saw an empty queue */
	bool again;         /**< mode SHARE was left for too many losses, and had to come back */
	uint64_t ban_at;    /**< when it was left */
	uint8_t trips;      /**< round trips that the last round took */
	bool blind_lost;    /**< frames, since a round trip was last told */
	uint8_t cut_wait;   /**< rounds until the next cut by loss */
	uint32_t base;      /**< ns: least round trip of full frames; of others until there are */
	uint32_t small;     /**< ns: least round trip of small frames; 0 = none yet */
	bool full_seen;     /**< base is of full frames */
	uint32_t links; /**< ns: full frames take so much longer at most than small; 0 = unknown */
	uint8_t still;  /**< rounds in a row in which hardly anything moved */
	uint32_t still_least, still_most; /**< ns, of their round trips */
	uint32_t start_most;              /**< mode START ends at this window; 0 = at none */
	uint32_t undo_window;             /**< before the outage in this silence; 0 = none yet */
	uint32_t undo_most;               /**< start_most then */
	uint8_t undo_mode;                /**< mode then */
	uint32_t srtt;                    /**< ns, of the last few samples */
	uint8_t full_wait;                /**< rounds until full_new is taken */
	uint32_t full_new;                /**< ns, what full_wait has seen so far */
	uint32_t queue_last;              /**< ns, of the round before */
	uint32_t full;              /**< ns of queueing at which frames were lost; 0 = never */
	uint32_t calm;              /**< rounds since a loss by a queue */
	uint64_t over_at;           /**< begin of the first of `over` rounds */
	uint32_t over_from;         /**< window at the first of `over` rounds */
	uint32_t over_queue;        /**< ns of queueing then */
	uint32_t mean_queue;        /**< ns, of the last rounds of mode DELAY */
	uint64_t mean_at;           /**< since when it is far beyond the target; 0 = it is not */
	uint8_t mean_rounds;        /**< since then */
	uint16_t look_wait;         /**< rounds of mode SHARE until the next look */
	uint8_t idle;               /**< rounds of it in a row with a short queue */
	uint32_t back, base_before; /**< after the look; of before it */
	uint16_t share_ban;         /**< rounds in which mode SHARE is not to be entered */
	uint64_t share_acked, share_lost; /**< in mode SHARE, the older the less */
	uint32_t share_left;              /**< rounds of mode SHARE until a trial without it */
	int64_t allow;                    /**< bytes that may be lost before it counts */
	uint64_t seen_acked, seen_lost;   /**< since allow was last used up */
	uint32_t loss_before;             /**< loss rate then, in 2^-16 */
	uint64_t old_at;                  /**< since when old_least is collected */
	uint32_t old_least;               /**< ns */
	uint8_t below;                    /**< samples are below what can be: the more, the more */
	uint32_t below_least;             /**< ns, of them */
	uint64_t meter_at;                /**< since when meter_acked counts */
	uint64_t meter_acked;             /**< bytes */
	uint32_t frame_ns; /**< least time of a full frame, by the meter; 0 = not yet */
	bool old_low;      /**< since then the queue was once below the target */
};

struct weft_cc {
	const struct weft_cc_ops *ops;
	uint32_t window; /**< bytes, exactly */
	/** bytes: one more frame may leave when so many with it are in flight, or it alone */
	uint32_t limit;
	uint32_t gap;    /**< ns between frames; 0 = the limit is all */
	uint32_t target; /**< ns of round trip that it steers to; 0 = none */
	/** for people: bytes */
	uint64_t marked, lost_queue, lost_random;
	uint32_t modes; /**< for people: times that mode SHARE was entered */
	struct weft_cc_conf conf;
	struct weft_cc_delay delay;
};

/** The algorithm with number @p number of enum weft_cc_number (lib/lane.h). */
const struct weft_cc_ops *weft_cc_ops(unsigned int number);

static inline void weft_cc_init(struct weft_cc *cc, const struct weft_cc_ops *ops,
				const struct weft_cc_conf *conf)
{
	*cc = (struct weft_cc){.ops = ops, .conf = *conf};
	ops->init(cc, conf);
}

/** Word for a mode, for people. */
const char *weft_cc_mode_name(const struct weft_cc *cc);

#endif /* WEFT_CC_H */
