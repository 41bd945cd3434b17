/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/tap.h
 * A lane shows its frames to its tap. The tap passes them to the flight recorder
 * (capture/recorder.h), and to a capture while there is one (capture/capture.h). The lane's thread
 * calls the inline functions of this file; any thread may start and stop captures. The flight
 * recorder keeps the beginning of each frame, unless WEFT_RECORDER is off. With neither, a burst
 * costs a few branches.
 *
 * Frames are as the port receives or sends them: fields that the NIC fills in (checksums) are
 * missing, and frames that the port did not accept are not recorded.
 *
 * A port frees the frames that it sends, and returns their number only afterwards. So
 * weft_tap_offer() shows frames before they are sent, and weft_tap_taken() reports how many count.
 *
 * Between a lane and the writer of a capture, frames are in a ring: records of any length in a ring
 * of bytes, with one producer and one consumer. Neither waits: a record for which there is no room
 * is dropped and counted, so that always seen = records + dropped.
 *
 * The consumer sees a record once it is committed. A port may accept only a part of a burst: each
 * frame of the burst is offered before the call, and the accepted frames are committed after it.
 */
#ifndef WEFT_CAPTURE_TAP_H
#define WEFT_CAPTURE_TAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "base/platform.h"
#include "capture/pcapng.h"
#include "capture/recorder.h"
#include "frame/frame_port.h"

struct weft_capture;
struct weft_capture_filter;
struct weft_capture_ring;
struct weft_hosts;

/** The part of a capture that the lane's thread needs; it belongs to the capture. */
struct weft_tap_target {
	struct weft_capture_ring *ring;
	_Atomic(struct weft_capture_filter *) filter; /**< NULL = all frames */
	uint32_t snaplen;
	uint64_t offset; /**< ns from the platform's time to the file's */
	/** in a simulator, the lane calls it to write the file; NULL = a thread writes the file */
	void (*written_by_lane)(struct weft_capture *c);
	struct weft_capture *capture;
};

/** State of a path of a connection, which captures record: bytes, ns; 0 = not known. */
struct weft_tap_path {
	uint32_t conn, token; /**< of this end */
	uint32_t path, window, in_flight;
	uint32_t rtt, least;          /**< smoothed, and the least */
	uint32_t base, noise, target; /**< of congestion control (engine/cc.h) */
	const char *mode;             /**< one word in static storage; "" = it has no modes */
};

/** Paths that a lane reports at once, at most. */
#define WEFT_TAP_PATHS 64u

struct weft_tap {
	/*
	 * Used by the lane's thread. Other threads use `target` and `busy`, too, and read
	 * `recorder`, which does not change while the lane is open.
	 */
	struct weft_recorder *recorder; /**< NULL = none */
	/** replaces `recorder` on a lane whose frames have numbers of IPv6 hosts; else NULL */
	struct weft_recorder *recorder6;
	struct weft_tap_target *in_use; /**< target from offer() to taken(); else NULL */
	uint64_t offered_at;
	/** NULL = no capture. Other threads remove it, then wait until the lane is not `busy`. */
	_Atomic(struct weft_tap_target *) target;
	atomic_bool busy;
	/* Not changed while the lane is open, except `entry`. */
	const struct weft_platform *platform;
	LIST_ENTRY(weft_tap) entry;
	char name[160], about[192];
	uint8_t mac[6];
	uint64_t speed; /**< bit/s */
	uint16_t link;  /**< type of its packets, as in pcapng */
	/** of a lane without frames: notifies its worker whether records are needed; else NULL */
	void (*want)(void *arg, bool yes);
	void *arg;
	/**
	 * Of a lane with frames: calls weft_tap_path() for WEFT_TAP_PATHS paths from number @p from
	 * on. @return number of the next path; 0 = there is none. NULL: no paths are recorded
	 */
	unsigned int (*paths)(const void *arg, struct weft_tap *tap, unsigned int from);
	const void *paths_arg;
	uint64_t paths_at;       /**< when `paths` was called last */
	unsigned int paths_next; /**< from where it is called next */
	uint64_t missed; /**< the port's count at the last weft_tap_missed() of the capture */
	const struct weft_tap_target *missed_in; /**< that capture's target; only compared */
	/** of an IPv6 lane over sockets: frames get the headers of the network; else NULL */
	const struct weft_hosts *hosts;
};

void weft_tap_copy(struct weft_tap *tap, struct rte_mbuf *const *pkts, unsigned int n,
		   enum weft_pcapng_direction direction);
/** As weft_tap_copy(), for received frames. @param now  as in weft_tap_arrived() */
void weft_tap_copy_arrived(struct weft_tap *tap, struct rte_mbuf *const *pkts, unsigned int n,
			   uint64_t now);
void weft_tap_copied(struct weft_tap *tap, unsigned int n);
/** Record the state of a path. To be called by weft_tap.paths. */
void weft_tap_path(struct weft_tap *tap, const struct weft_tap_path *path);
/**
 * Record the growth of the number of frames for which the port's receive buffer had no room. To be
 * called by weft_tap.paths.
 */
void weft_tap_missed(struct weft_tap *tap, uint64_t total);
/** The lane takes no more frames: record the last states. Its port is still open. */
void weft_tap_end(struct weft_tap *tap);
/** As weft_recorder_damaged(). @param m  as the port gave it */
void weft_tap_damaged(struct weft_tap *tap, const struct rte_mbuf *m, uint64_t call);
/** As weft_recorder_put(), for frames that get the headers of the network. */
void weft_tap_record6(struct weft_tap *tap, struct rte_mbuf *const *pkts, unsigned int n,
		      enum weft_pcapng_direction direction, uint64_t now);
/** As weft_tap_copy(), for one message record in pieces. */
void weft_tap_copy_bytes(struct weft_tap *tap, const struct iovec *iov, unsigned int num,
			 enum weft_pcapng_direction direction);

/**
 * Show frames that are about to be sent, WEFT_CAPTURE_BURST at most.
 * @param now  the lane's time, for the recorder; a capture reads the clock
 */
static inline void weft_tap_offer(struct weft_tap *tap, struct rte_mbuf *const *pkts,
				  unsigned int n, enum weft_pcapng_direction direction,
				  uint64_t now)
{
	if (!tap)
		return;
	if (tap->recorder)
		weft_recorder_put(tap->recorder, pkts, n, direction, now);
	else if (tap->recorder6)
		weft_tap_record6(tap, pkts, n, direction, now);
	/* Relaxed: a hint; weft_tap_copy() checks again. */
	if (unlikely(atomic_load_explicit(&tap->target, memory_order_relaxed)))
		weft_tap_copy(tap, pkts, n, direction);
}

/** The port has accepted the first @p n frames of the burst that weft_tap_offer() copied. */
static inline void weft_tap_taken(struct weft_tap *tap, unsigned int n)
{
	if (!tap)
		return;
	if (tap->recorder)
		weft_recorder_commit(tap->recorder, n);
	else if (tap->recorder6)
		weft_recorder_commit(tap->recorder6, n);
	if (unlikely(tap->in_use))
		weft_tap_copied(tap, n);
}

/**
 * Show received frames: weft_tap_offer() and weft_tap_taken() in one, with less to check.
 * @param now  a time before the port was polled
 */
static inline void weft_tap_arrived(struct weft_tap *tap, struct rte_mbuf *const *pkts,
				    unsigned int n, uint64_t now)
{
	if (!tap)
		return;
	if (tap->recorder) {
		weft_recorder_add(tap->recorder, pkts, n, WEFT_PCAPNG_IN, now);
	} else if (tap->recorder6) {
		weft_tap_record6(tap, pkts, n, WEFT_PCAPNG_IN, now);
		weft_recorder_commit(tap->recorder6, n);
	}
	if (unlikely(atomic_load_explicit(&tap->target, memory_order_relaxed)))
		weft_tap_copy_arrived(tap, pkts, n, now);
}

/** As weft_recorder_pause(). */
static inline void weft_tap_pause(struct weft_tap *tap, uint64_t call, uint64_t ns)
{
	if (tap && (tap->recorder || tap->recorder6))
		weft_recorder_pause(tap->recorder ? tap->recorder : tap->recorder6, call, ns);
}

/** The history of the lane; NULL = none. */
static inline struct weft_history *weft_tap_history(const struct weft_tap *tap)
{
	const struct weft_recorder *r;

	if (!tap)
		return NULL;
	r = tap->recorder ? tap->recorder : tap->recorder6;
	return r ? r->history : NULL;
}

/**
 * A lane has failed or is given up: the frames of all recorders are written to a file, within the
 * limits of weft_recorder_error(). No effect if the lane has no recorder.
 */
static inline void weft_tap_error(const struct weft_tap *tap, const char *reason)
{
	if (tap && (tap->recorder || tap->recorder6))
		weft_recorder_error(reason);
}

/* ---- the ring ------------------------------------------------------------------------------- */

#define WEFT_CAPTURE_BURST 64u
/** In the place of a direction: the record's data are a struct weft_tap_path. */
#define WEFT_CAPTURE_PATH 0u
/** In the place of a direction: the record's data are a uint64_t, of weft_tap_missed(). */
#define WEFT_CAPTURE_MISSED 3u

struct weft_capture_record {
	/** bytes with data and padding; 0 = the next record is at the beginning of the ring */
	uint32_t size;
	uint32_t caplen, len;
	/** enum weft_pcapng_direction, WEFT_CAPTURE_PATH or WEFT_CAPTURE_MISSED */
	uint32_t direction;
	uint64_t time_ns;
	/**
	 * ns of uncertainty: a sent frame left at most `within` after time_ns. The poll that found
	 * a received frame began `within` before time_ns.
	 */
	uint64_t within;
	uint64_t dropped; /**< frames dropped since the previous record of the ring */
	uint8_t data[];
};

/** Position of the producer after a frame of its burst. */
struct weft_capture_mark {
	uint64_t head, seen, dropped;
	uint64_t unreported; /**< dropped frames that no record has reported yet */
};

struct weft_capture_ring {
	uint8_t *data;
	uint64_t size; /**< a power of two */
	/* Written by the producer, which is the lane's thread; `dead` by other threads. */
	_Alignas(64) _Atomic uint64_t head;
	uint64_t tail_seen;
	struct weft_capture_mark now, done, mark[WEFT_CAPTURE_BURST];
	struct weft_capture_record *put[WEFT_CAPTURE_BURST]; /**< by frame; NULL = none */
	unsigned int offered;
	/** committed frames that the filter took, and the dropped ones of them; others read both */
	_Atomic uint64_t seen, dropped;
	/** the file cannot be written any more: all frames are dropped */
	atomic_bool dead;
	/* Written by the consumer, which has the capture's lock. */
	_Alignas(64) _Atomic uint64_t tail;
};

/** @p size is rounded up to a power of two. @return NULL: no memory */
struct weft_capture_ring *weft_capture_ring_create(uint64_t size);
void weft_capture_ring_destroy(struct weft_capture_ring *r);

/* The consumer's side. */

/** @return the oldest record; NULL: there is none */
const struct weft_capture_record *weft_capture_ring_peek(struct weft_capture_ring *r);
/** Free the place of the record that peek() returned. */
void weft_capture_ring_next(struct weft_capture_ring *r, const struct weft_capture_record *rec);

#endif /* WEFT_CAPTURE_TAP_H */
