/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/cc.h
 * Congestion control of one path: how many bytes may be in flight, and how far apart frames
 * leave. doc/raw-lanes.md has the terms. Time is an argument of the functions, and they allocate
 * nothing.
 *
 * An algorithm is one file with a `struct weft_cc_ops`, which its header declares, and one line in
 * WEFT_CC_LIST (lib/lane.h). The sender reports acknowledgements, losses and timeouts to the
 * algorithm, which writes `window`, `limit` and `gap`. The sender decides by no other field of the
 * algorithm; reports show more of them.
 */
#ifndef WEFT_CC_H
#define WEFT_CC_H

#include <stdbool.h>
#include <stdint.h>

struct weft_cc;

/** What is known of the path when the algorithm starts. */
struct weft_cc_conf {
	uint32_t frame; /**< bytes of a full frame that count in the window; at least 1 */
	uint32_t most;  /**< bytes: the largest window for which sender and receiver have buffers */
	/** ns: round trip of a small frame before there was traffic; 0 = unknown, or found wrong */
	uint32_t rtt;
	/** ns: time of a full frame, by the port's speed or the handshake; 0 = unknown */
	uint32_t frame_ns;
	bool meter; /**< the port's speed is a guess: measure the rate that is achieved */
};

/** An acknowledgement. */
struct weft_cc_ack {
	uint64_t now;      /**< ns of the clock that measures round trips */
	uint32_t acked;    /**< bytes acknowledged since the last on_ack() */
	uint32_t inflight; /**< bytes that were in flight before this acknowledgement */
	uint32_t marked;   /**< bytes of `acked` that arrived with Congestion Experienced */
	uint32_t rtt;      /**< ns: round trip without the receiver's hold time; 0 = no sample */
	uint32_t size;     /**< bytes of the frame whose round trip is `rtt`; 0 = unknown */
	/** since the last on_ack() the window has held frames back, or frames were lost */
	bool limited;
};

struct weft_cc_ops {
	const char *name;
	void (*init)(struct weft_cc *cc, const struct weft_cc_conf *conf);
	void (*on_ack)(struct weft_cc *cc, const struct weft_cc_ack *ack);
	/** @p bytes are lost: newer frames of this path, or far newer ones of another, arrived. */
	void (*on_loss)(struct weft_cc *cc, uint32_t bytes, uint64_t now);
	/**
	 * The retransmission timer has expired, for the @p tries th time in a row. The first
	 * timeout is always reported, later ones if a quarter of the limit was in flight.
	 */
	void (*on_timeout)(struct weft_cc *cc, unsigned int tries, uint64_t now);
	/**
	 * Frames that were sent only once, before the first of the timeouts in a row, have
	 * arrived. So the network lost nothing: the peer was silent.
	 */
	void (*on_spurious)(struct weft_cc *cc);
	/**
	 * The knowledge of the path is old: nothing was in flight for a long time, frames timed out
	 * while little was in flight, or the path was bad until now.
	 */
	void (*on_idle)(struct weft_cc *cc);
	/**
	 * Optional: the peer reports that it has read no frames for @p ns, until it sent the frame
	 * that has just arrived.
	 */
	void (*on_peer_gap)(struct weft_cc *cc, uint32_t ns);
};

/** What the delay algorithm collects in a round, in bytes and ns. */
struct weft_cc_round {
	uint64_t at;    /**< time at which the round began */
	uint32_t from;  /**< window when the round began */
	uint32_t worst; /**< largest round trip */
	uint32_t least;
	uint64_t sum; /**< sum of the round trips */
	uint32_t samples;
	uint32_t late; /**< least round trip of the last quarter of the round; 0 = none */
	uint32_t acked;
	uint32_t lost;
	uint32_t marked;
	bool limited;
};

/** Estimate of the delay that does not depend on the window, in bytes, ns, rounds (cc_cause.c). */
struct weft_cc_noise {
	uint32_t noise; /**< delay beyond `base` that counts as no queue */
	uint32_t mean;  /**< mean round trip of the last round; smoothed while `steady` */
	uint32_t from;  /**< window at the begin of the last round */
	/** smoothed difference of the longest and the shortest round trip of a round */
	uint32_t range;
	uint32_t peak; /**< longest delay beyond `base` in the last peak_rounds rounds */
	uint8_t peak_rounds, low_rounds;
	/** least round trip of the last low_rounds rounds; of the LOW_ROUNDS before them */
	uint32_t low, low_before;
	uint8_t rounds; /**< rounds of the present test */
	bool spared;    /**< the last round did not cut, though its delay was long */
	bool steady;    /**< the window has hardly changed in the last two rounds */
	/** sum: a round with a delay beyond the target adds OVER_MORE, any other takes 1 away */
	uint8_t over;
	uint32_t high;    /**< largest window; falls by a part of itself in each round */
	uint16_t wait;    /**< rounds until the next test because of a long delay */
	uint16_t backoff; /**< the value of `wait` after the last test */
	uint16_t again;   /**< rounds until a test whether the noise is still there */
	/** the window that ref_mean belongs to; 0 = no test is in progress */
	uint32_t ref_window;
	uint32_t ref_mean;
	uint32_t late; /**< longest delay beyond `base` in the test */
	uint32_t samples;
	uint64_t sum; /**< sum of the round trips in the test */
};

enum weft_cc_mode {
	WEFT_CC_MODE_START, /**< the window doubles in each round, until a queue or a loss shows */
	WEFT_CC_MODE_DELAY, /**< the window keeps the queue near the target */
	/** other flows fill the queue in any case: additive increase, decrease by loss */
	WEFT_CC_MODE_SHARE,
};

/** How a long path's window grows next to other flows, in bytes and ns (cc_cause.c). */
struct weft_cc_climb {
	bool on;           /**< the window climbs: it grows by a part of itself each round */
	bool held;         /**< mode START: the window does not grow in this round */
	bool again;        /**< the climb began after a cut by loss */
	uint8_t wait;      /**< rounds until the next such climb; 0 = none is due */
	uint8_t backoff;   /**< the last value that `wait` was set to */
	uint64_t full_at;  /**< last cut in mode SHARE by a full queue; 0 = none */
	uint8_t cuts;      /**< cuts by loss since mode SHARE began */
	uint8_t unlimited; /**< rounds of a climb in a row that the window did not limit */
	uint32_t from;     /**< window at the begin of this stage of a climb: climb_round() */
	/** rate of the stage before (mode START: round), in bytes per 2^20 ns; 0 = none */
	uint64_t rate;
	uint64_t acked, at; /**< bytes acknowledged since the begin of this stage; its begin */
	uint32_t late;      /**< longest delay beyond `base` in the climb */
	/** window before the last cut by loss, or after a climb that ended later; 0 = neither */
	uint32_t high;
	uint32_t mid; /**< ms from cut_at until Cubic's window is `high` again */
	uint64_t cut_at;
	/** bytes per 2^20 ns: mean rate of the last rounds that the window limited; its maximum */
	uint64_t rate_now, peak;
	uint8_t starved;     /**< rounds in a row with a delay, and less than 1/4 of `peak` */
	uint64_t starved_at; /**< begin of these rounds */
	/** time at which mode SHARE last ended, though not by its losses or dips; 0 = never */
	uint64_t left_at;
	uint32_t yield_from; /**< largest window since the queue was last short */
	uint8_t yield;       /**< rounds since the queue was last short */
};

/** The reason for which the window became smaller. */
enum weft_cc_cut {
	WEFT_CC_CUT_NONE,
	WEFT_CC_CUT_DELAY,
	WEFT_CC_CUT_MARKS,
	WEFT_CC_CUT_QUEUE, /**< loss that a full queue explains */
	WEFT_CC_CUT_LOSS,  /**< more other loss than is allowed for */
	WEFT_CC_CUT_TIMEOUT,
	WEFT_CC_CUT_TEST, /**< for some rounds, to find the cause of a delay */
};

/** State of the delay algorithm (cc_delay.c). */
struct weft_cc_delay {
	struct weft_cc_round round;
	uint8_t mode;       /**< enum weft_cc_mode */
	uint8_t loss_shift; /**< a loss rate of 2^-shift is the path's own, not a queue's */
	uint8_t over;       /**< rounds with a queue of 1.5 targets; others take OVER_BACK away */
	uint8_t look;       /**< rounds left of a dip: a small window, to observe other flows */
	uint8_t clear;      /**< calls of window_increase() in a row with a nearly empty queue */
	uint8_t cuts;       /**< cuts by window_decrease(), modulo 256 */
	uint8_t uncut;      /**< rounds in a row that used half of the window and kept the target */
	uint8_t looks;      /**< cuts by loss in mode SHARE; every LOOK_EVERY-th may begin a dip */
	uint8_t empty;      /**< dips in a row that found an empty queue */
	bool again;         /**< mode SHARE was left for too many losses, and began again soon */
	uint64_t ban_at;    /**< begin of the last ban, or the end of mode SHARE with `again` */
	uint8_t trips;      /**< round trips that the last round took */
	uint8_t gap_rounds; /**< rounds left that may contain frames of the peer's last gap */
	uint8_t gap_cuts;   /**< cuts in a row that the gap has prevented */
	uint32_t gap;       /**< ns: the peer's longest gap of these rounds */
	bool blind_lost;  /**< frames were lost in a round without a sample; no other came since */
	uint8_t cut_wait; /**< rounds in which losses do not cut the window again */
	uint32_t base;    /**< ns: least round trip of full frames; of any before the first one */
	uint32_t small;   /**< ns: least round trip of small frames; 0 = none yet */
	bool full_seen;   /**< base is of full frames */
	/** ns: full frames take at most this much longer than small ones; 0 = unknown */
	uint32_t links;
	uint8_t still;                    /**< rounds in a row with nearly the same round trip */
	uint32_t still_least, still_most; /**< ns: bounds of these round trips */
	uint32_t start_most;              /**< mode START ends at this window; 0 = at none */
	/** window before the present series of timeouts; 0 = there were fewer than two */
	uint32_t undo_window;
	uint32_t undo_most;  /**< start_most before these timeouts */
	uint8_t undo_mode;   /**< mode before these timeouts */
	uint32_t srtt;       /**< ns: mean of the last few samples */
	uint8_t full_wait;   /**< rounds until full_new goes into full */
	uint32_t full_new;   /**< ns: longest queueing delay of these rounds so far */
	uint32_t queue_last; /**< ns: queueing delay of the round before */
	uint32_t full;       /**< ns: queueing delay of a full queue, estimated; 0 = unknown */
	uint32_t calm;       /**< rounds since the last cut by loss */
	uint64_t over_at;    /**< begin of the first of `over` rounds */
	/** window at the first of `over` rounds, or before; mode SHARE begins with half of it */
	uint32_t over_from;
	uint32_t over_queue; /**< ns of queueing at the first of `over` rounds */
	uint32_t mean_queue; /**< ns: mean queueing of the last rounds of mode DELAY */
	/** time since which mean_queue is MEAN_TARGETS targets, with few frames; 0 = it is not */
	uint64_t mean_at;
	uint8_t mean_rounds;              /**< rounds since mean_at */
	uint16_t look_wait;               /**< rounds of mode SHARE until the next dip may begin */
	uint8_t idle;                     /**< rounds of mode SHARE in a row with a short queue */
	uint32_t back, base_before;       /**< window after the dip; base before it */
	uint16_t share_ban;               /**< rounds in which mode SHARE must not begin */
	uint64_t share_acked, share_lost; /**< bytes in mode SHARE; older ones weigh less */
	uint32_t share_left;              /**< rounds of mode SHARE until a trial without it */
	int64_t allow;      /**< bytes that may be lost before losses cut the window */
	uint8_t burst;      /**< rounds left in which a burst of losses is judged */
	uint8_t burst_lost; /**< rounds of these with more losses than are allowed for */
	uint64_t seen_acked,
		seen_lost;    /**< bytes since allow was used up, without cut_wait rounds */
	uint32_t loss_before; /**< loss rate when allow was used up, in 2^-16 */
	uint64_t old_at;      /**< begin of the interval that old_least covers */
	uint32_t old_least;   /**< ns: least `round.late` since old_at */
	uint8_t below;        /**< sum: grows with samples of less than half of conf.rtt */
	uint32_t below_least; /**< ns: least of these samples */
	uint64_t meter_at;    /**< begin of the time that meter_acked counts */
	uint64_t meter_acked; /**< bytes */
	uint32_t frame_ns;    /**< ns: least time of a full frame, by the meter; 0 = not yet */
	struct weft_cc_noise jitter;
	struct weft_cc_climb climb;
	bool old_low; /**< since old_at the queue was once below the target */
};

struct weft_cc {
	const struct weft_cc_ops *ops;
	/** bytes; `limit` is this number, rounded up to full frames if there is a gap */
	uint32_t window;
	/** bytes: a frame may leave if at most this many are in flight with it, or if alone */
	uint32_t limit;
	uint32_t gap;    /**< ns from one full frame to the next; 0 = only the limit applies */
	uint32_t target; /**< ns: the round trip that the algorithm steers to; 0 = none */
	/** for reports only: bytes that were marked, lost by a full queue, and lost otherwise */
	uint64_t marked, lost_queue, lost_random;
	uint32_t modes; /**< for reports only: times that mode SHARE began */
	uint8_t cut;    /**< for reports only: enum weft_cc_cut, the last one */
	struct weft_cc_conf conf;
	struct weft_cc_delay delay;
};

/** @return the algorithm @p number of enum weft_cc_number (lib/lane.h); `fixed` for any other */
const struct weft_cc_ops *weft_cc_ops(unsigned int number);

static inline void weft_cc_init(struct weft_cc *cc, const struct weft_cc_ops *ops,
				const struct weft_cc_conf *conf)
{
	*cc = (struct weft_cc){.ops = ops, .conf = *conf};
	ops->init(cc, conf);
}

/** Name of the present mode, for reports; "" with an algorithm without modes. */
const char *weft_cc_mode_name(const struct weft_cc *cc);

/** The last reason for a smaller window, for reports. */
const char *weft_cc_cut_name(const struct weft_cc *cc);

#endif /* WEFT_CC_H */
