/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/rules.h
 * The rules of reliability and of several paths. doc/raw-lanes.md has the reasons. Times are in ns.
 */
#ifndef WEFT_RULES_H
#define WEFT_RULES_H

#include <stdbool.h>
#include <stdint.h>

/* ---------------------------------------------------------------- round trips */

/* Round trips are smoothed as in RFC 6298. */

/** ns, the least timeout: on a shared machine a peer may be off its core for 1 ms */
#define WEFT_RTO_MIN 1000000ull
/** ns, the greatest timeout with backoff, unless the first timeout is longer */
#define WEFT_RTO_MAX 50000000ull
#define WEFT_RTO_INITIAL 5000000ull /**< ns, before the first sample; or twice `first` if longer */
/** ns, the greatest first timeout: wrong echoes of the peer may give any round trip */
#define WEFT_RTO_ROOF 3000000000ull
#define WEFT_RTT_FIRST_MAX 1000000000u
#define WEFT_PROBE_MIN 200000ull /**< ns, the least result of weft_rtt_probe() */

struct weft_rtt {
	uint32_t first; /**< ns, of the handshake, used until the first sample; 0 = unknown */
	uint32_t srtt;  /**< ns, smoothed; 0 = no sample yet */
	uint32_t var;
	uint32_t min;
	uint32_t last;
};

/** 0 counts as 1 ns: both events of the round trip were in one poll. */
void weft_rtt_sample(struct weft_rtt *r, uint32_t ns);

/** A step of the handshake took @p ns: one round trip, or a few. */
static inline void weft_rtt_first(struct weft_rtt *r, uint64_t ns)
{
	r->first = ns < WEFT_RTT_FIRST_MAX ? (uint32_t)ns : WEFT_RTT_FIRST_MAX;
}

/** @return the smoothed round trip, before a sample that of the handshake; 0 = unknown */
static inline uint32_t weft_rtt_known(const struct weft_rtt *r)
{
	return r->srtt != 0 ? r->srtt : r->first;
}

/** @return ns of the retransmission timeout after @p backoff doublings, as far as limits allow */
uint64_t weft_rtt_rto(const struct weft_rtt *r, unsigned int backoff);

/**
 * @return ns without an acknowledgement after which a tail probe is sent
 * @param ack_delay  ns for which the peer may delay an acknowledgement
 */
uint64_t weft_rtt_probe(const struct weft_rtt *r, uint64_t ack_delay);

/* ---------------------------------------------------------------- loss */

/*
 * Loss detection as in RACK, for each path. A frame is lost when it has been in flight for five
 * quarters of a round trip, and a frame that left several frames later over the path has arrived.
 */

#define WEFT_LOSS_REORDER 3u
#define WEFT_LOSS_REORDER_MAX 64u /**< limit of `reorder`: needless retransmissions raise it */

/** Loss detection of one path. Each transmission has the next order of its path. */
struct weft_loss {
	uint32_t acked;   /**< highest order that has been acknowledged */
	uint32_t reorder; /**< least distance to `acked` at which a frame may be lost, in orders */
	bool any;         /**< acked is valid */
};

void weft_loss_init(struct weft_loss *l);

/** A retransmission was needless, as the first transmission was only late: raise the threshold. */
void weft_loss_spurious(struct weft_loss *l);

/**
 * @param tries  number of transmissions of the frame. If a retransmitted frame is acknowledged
 * sooner than the least round trip, an earlier transmission has arrived.
 */
static inline void weft_loss_acked(struct weft_loss *l, const struct weft_rtt *r, uint32_t order,
				   unsigned int tries, uint64_t sent, uint64_t now)
{
	if (tries > 1 && now - sent < r->min) {
		weft_loss_spurious(l);
		return;
	}
	if (!l->any || (int32_t)(order - l->acked) > 0) {
		l->acked = order;
		l->any = true;
	}
}

/** @return ns that a frame must have been in flight before it can be lost */
static inline uint64_t weft_loss_timeout(const struct weft_rtt *r)
{
	return (uint64_t)r->srtt + r->srtt / 4;
}

static inline bool weft_loss_suspect(const struct weft_loss *l, uint32_t order)
{
	return l->any && (int32_t)(l->acked - order) >= (int32_t)l->reorder;
}

static inline bool weft_loss_lost(const struct weft_loss *l, const struct weft_rtt *r,
				  uint32_t order, uint64_t sent, uint64_t now)
{
	return weft_loss_suspect(l, order) && now >= sent + weft_loss_timeout(r);
}

/* ---------------------------------------------------------------- received sequences */

/*
 * Sequences are 32-bit and wrap. `next` is the first one missing; `high` is one past the newest
 * received one. A ring of WEFT_RXWIN bits, indexed by the sequence, marks the received ones in
 * [next, next + WEFT_RXWIN). The ring is allocated with the first sequence out of order, since few
 * connections lose frames.
 */

#define WEFT_RXWIN 4096u
#define WEFT_RXWIN_WORDS (WEFT_RXWIN / 64)

struct weft_rxwin {
	uint32_t next;
	uint32_t high;
	uint64_t *bits; /* WEFT_RXWIN_WORDS; NULL until there is a hole */
};

enum weft_rxwin_verdict {
	WEFT_RXWIN_NEW,
	WEFT_RXWIN_DUPLICATE,
	WEFT_RXWIN_BEYOND, /**< beyond the window: no correct sender uses such a sequence */
};

void weft_rxwin_init(struct weft_rxwin *w, uint32_t first);
/** Free the ring. If there is no hole, the window remains usable. */
void weft_rxwin_free(struct weft_rxwin *w);
int weft_rxwin_alloc(struct weft_rxwin *w);

static inline int32_t weft_seq_diff(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

static inline bool weft_rxwin_has_hole(const struct weft_rxwin *w)
{
	return w->high != w->next;
}

/** @return the words of a complete SACK bitmap; 0 = there is no hole */
static inline uint32_t weft_rxwin_words(const struct weft_rxwin *w)
{
	uint32_t span = w->high - w->next; /* with `next`, which has no bit in the bitmap */

	return span <= 1 ? 0 : (span - 1 + 63) / 64;
}

static inline enum weft_rxwin_verdict weft_rxwin_check(const struct weft_rxwin *w, uint32_t seq)
{
	int32_t d = weft_seq_diff(seq, w->next);

	if (d < 0)
		return WEFT_RXWIN_DUPLICATE;
	if ((uint32_t)d >= WEFT_RXWIN)
		return WEFT_RXWIN_BEYOND;
	if (d == 0 || !w->bits)
		return WEFT_RXWIN_NEW;
	return w->bits[seq % WEFT_RXWIN / 64] >> (seq % 64) & 1 ? WEFT_RXWIN_DUPLICATE
								: WEFT_RXWIN_NEW;
}

/**
 * Allocates the ring if the mark of a NEW sequence needs it. To be called before the messages are
 * delivered, since the mark must not fail afterwards.
 * @return 0 or -ENOMEM
 */
static inline int weft_rxwin_need(struct weft_rxwin *w, uint32_t seq)
{
	return seq == w->next || w->bits ? 0 : weft_rxwin_alloc(w);
}

void weft_rxwin_mark_slow(struct weft_rxwin *w, uint32_t seq);

/** Record a delivered sequence, after weft_rxwin_check() returned NEW and weft_rxwin_need() 0. */
static inline void weft_rxwin_mark(struct weft_rxwin *w, uint32_t seq)
{
	if (seq == w->next && w->high == w->next)
		w->high = ++w->next;
	else
		weft_rxwin_mark_slow(w, seq);
}

/**
 * Write the bitmap of a SACK block: bit i = sequence next + 1 + i was received.
 * @param word  @p max words, little-endian as on the wire, any alignment
 * @return the number of words written; 0 = there is no hole
 */
uint32_t weft_rxwin_sack(const struct weft_rxwin *w, void *word, uint32_t max);

/**
 * Finds the next set bit of a bitmap, in ascending order.
 * @param pos  0 before the first call
 * @return false: there is no further one
 */
bool weft_sack_next(const void *word, uint32_t words, uint32_t *pos, uint32_t *bit);

/* ---------------------------------------------------------------- several paths */

#define WEFT_PATHS_MAX 16u
/** Without a configured number of paths, a connection opens paths up to this number. */
#define RAW_PATHS_AUTO 8u
#define WEFT_PATH_STRIKES 3u /**< N failures in a row make a path bad (engine/multipath.c) */
/** ns until a bad path is probed for the first time; doubles with each probe */
#define WEFT_PATH_PROBE_WAIT_MIN 2000000ull
#define WEFT_PATH_PROBE_WAIT_MAX 1000000000ull /**< ns between two probes, at most */

struct weft_path_load {
	uint32_t srtt;     /**< ns; 0 = unknown */
	uint32_t inflight; /**< bytes */
	bool full;         /**< the path's window has no room for a frame */
};

/**
 * @return the path of @p mask that delivers a frame of @p bytes soonest: the one with the least
 * srtt x (inflight + bytes). A full path is taken only if all are full.
 * @param after  of equal paths the next one behind it is taken, in rotation
 */
unsigned int weft_path_soonest(const struct weft_path_load load[WEFT_PATHS_MAX], uint16_t mask,
			       unsigned int after, uint32_t bytes);

/** @return the next path of @p mask behind @p path; @p path itself if there is no other */
static inline unsigned int weft_path_other(uint16_t mask, unsigned int path)
{
	for (unsigned int i = 1; i < WEFT_PATHS_MAX; i++) {
		unsigned int k = (path + i) % WEFT_PATHS_MAX;

		if (mask & 1u << k)
			return k;
	}
	return path;
}

enum weft_path_verdict {
	WEFT_PATH_WAIT, /**< the frame is not lost by this rule */
	/** the frame is lost; the other paths may have been silent at that time, too */
	WEFT_PATH_LATE,
	/** the frame is lost; another path delivered one that left at most 3 timeouts later */
	WEFT_PATH_SILENT,
};

/**
 * A frame left over a path at @p sent and is not acknowledged. The newest frame of the same path
 * that arrived left at @p proved, the newest one of any other path at @p other.
 * @param r  round trips of the path
 */
static inline enum weft_path_verdict weft_path_judge(const struct weft_rtt *r, uint64_t sent,
						     uint64_t proved, uint64_t other)
{
	uint64_t rto = weft_rtt_rto(r, 0);

	if (sent <= proved || other <= sent || other - sent < rto)
		return WEFT_PATH_WAIT;
	return other - sent < 3 * rto ? WEFT_PATH_SILENT : WEFT_PATH_LATE;
}

/** @return ns until a bad path is probed again, after @p tries probes without an answer */
static inline uint64_t weft_path_wait(unsigned int tries)
{
	uint64_t wait = WEFT_PATH_PROBE_WAIT_MIN << (tries < 16 ? tries : 16);

	return wait < WEFT_PATH_PROBE_WAIT_MAX ? wait : WEFT_PATH_PROBE_WAIT_MAX;
}

/* ---------------------------------------------------------------- trials */

/*
 * A trial finds out whether more paths help. Equal frames leave at the same time over a path in use
 * and over a spare one. If a queue or a limit applies to a single flow, the spare path is faster or
 * loses less. If all flows share the queue, as on one switch, it is not.
 */

#define WEFT_TRIAL_PAIRS 8u /**< pairs that may wait for answers at a time */

struct weft_trial_pair {
	uint32_t used, spare; /**< round trips, in ns; 0 = no answer yet */
	uint16_t id;          /**< of the used path's probe; that of the spare path has id + 1 */
	uint8_t used_path, spare_path;
	bool open;     /**< the pair was sent, and not compared yet */
	uint64_t sent; /**< ns, by the clock of weft_trial_answer() */
};

struct weft_path_trial {
	uint16_t rounds; /**< pairs that were compared */
	uint16_t wins;   /**< pairs in which the spare path was clearly better */
	uint16_t losses; /**< pairs in which the spare path was clearly worse */
	uint16_t sent;   /**< pairs that left */
	struct weft_trial_pair pair[WEFT_TRIAL_PAIRS];
};

enum weft_trial_result {
	WEFT_TRIAL_ON,
	WEFT_TRIAL_MORE,
	WEFT_TRIAL_ENDS, /**< more paths do not help, or too many pairs gave no result */
};

/**
 * The new pair replaces the pair WEFT_TRIAL_PAIRS before: answers of that pair that are missing
 * count as lost. @return the new pair's entry
 */
struct weft_trial_pair *weft_trial_send(struct weft_path_trial *t, uint64_t now, uint16_t id,
					uint8_t used_path, uint8_t spare_path);
/** Process an answer. @return false: it belongs to no open pair of the trial */
bool weft_trial_answer(struct weft_path_trial *t, uint16_t id, uint8_t path, uint64_t now);
enum weft_trial_result weft_trial_result(const struct weft_path_trial *t);

#endif /* WEFT_RULES_H */
