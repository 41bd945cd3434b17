/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/tap.h
 * Where a lane shows its frames: to the flight recorder (capture/recorder.h), and to a capture
 * while there is one (capture/capture.h). The lane's thread calls what is inline here; captures
 * come and go in other threads. Without a capture that is one branch for each burst.
 *
 * Frames are as the port gets or gives them: what a NIC fills in (checksums) is not there yet, and
 * frames that the port did not accept are in neither.
 *
 * A port frees what it sends, and says only afterwards how much that was. So frames are shown by
 * weft_tap_offer() before they are sent, and weft_tap_taken() says how many of them count.
 */
#ifndef WEFT_CAPTURE_TAP_H
#define WEFT_CAPTURE_TAP_H

#include <stdatomic.h>
#include <stdbool.h>
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

/** What the lane's thread needs of a capture; the capture's. */
struct weft_tap_target {
	struct weft_capture_ring *ring;
	_Atomic(struct weft_capture_filter *) filter; /**< NULL = all frames */
	uint32_t snaplen;
	uint64_t offset; /**< from the platform's time to that of the file */
	/** a simulator's: it has no threads, so the lane writes the file itself; else NULL */
	void (*written_by_lane)(struct weft_capture *c);
	struct weft_capture *capture;
};

struct weft_tap {
	/* The lane's. */
	struct weft_recorder *recorder; /**< NULL = none */
	struct weft_tap_target *in_use; /**< between offer() and taken() */
	/** NULL = no capture. Others take it away, and then wait until the lane is not `busy` */
	_Atomic(struct weft_tap_target *) target;
	atomic_bool busy;
	/* Others'. */
	const struct weft_platform *platform;
	LIST_ENTRY(weft_tap) entry;
	char name[160], about[192];
	uint8_t mac[6];
	uint64_t speed; /**< bit/s */
	uint16_t link;  /**< type of its packets, as pcapng has it */
	/** of a lane without frames: tells its worker whether records are wanted; else NULL */
	void (*want)(void *arg, bool yes);
	void *arg;
};

void weft_tap_copy(struct weft_tap *tap, struct rte_mbuf *const *pkts, unsigned int n,
		   enum weft_pcapng_direction direction);
void weft_tap_copied(struct weft_tap *tap, unsigned int n);
/** A message record, in pieces, instead of a burst of frames. */
void weft_tap_copy_bytes(struct weft_tap *tap, const struct iovec *iov, unsigned int num,
			 enum weft_pcapng_direction direction);

/**
 * Frames that are about to be handed to the port; WEFT_CAPTURE_BURST at most.
 * @param now  the lane's, for the recorder; a capture reads the clock
 */
static inline void weft_tap_offer(struct weft_tap *tap, struct rte_mbuf *const *pkts,
				  unsigned int n, enum weft_pcapng_direction direction,
				  uint64_t now)
{
	if (!tap)
		return;
	if (tap->recorder)
		weft_recorder_put(tap->recorder, pkts, n, direction, now);
	/* Relaxed: only whether; weft_tap_copy() looks again. */
	if (unlikely(atomic_load_explicit(&tap->target, memory_order_relaxed)))
		weft_tap_copy(tap, pkts, n, direction);
}

/** The first @p n of them were accepted. */
static inline void weft_tap_taken(struct weft_tap *tap, unsigned int n)
{
	if (!tap)
		return;
	if (tap->recorder)
		weft_recorder_commit(tap->recorder, n);
	if (unlikely(tap->in_use))
		weft_tap_copied(tap, n);
}

/** Frames that have come: weft_tap_offer() and weft_tap_taken() in one, with less to check. */
static inline void weft_tap_arrived(struct weft_tap *tap, struct rte_mbuf *const *pkts,
				    unsigned int n, uint64_t now)
{
	if (!tap)
		return;
	if (tap->recorder)
		weft_recorder_add(tap->recorder, pkts, n, WEFT_PCAPNG_IN, now);
	if (unlikely(atomic_load_explicit(&tap->target, memory_order_relaxed))) {
		weft_tap_copy(tap, pkts, n, WEFT_PCAPNG_IN);
		if (tap->in_use)
			weft_tap_copied(tap, n);
	}
}

/** A lane has failed, or is given up: what the recorders have becomes a file. */
static inline void weft_tap_error(const struct weft_tap *tap, const char *reason)
{
	if (tap && tap->recorder)
		weft_recorder_error(reason);
}

#endif /* WEFT_CAPTURE_TAP_H */
