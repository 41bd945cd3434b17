/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/ring.h
 * Frames between a lane and the writer of a capture: records of any length in a ring of bytes, with
 * one producer and one consumer. Neither waits: a record for which there is no room is dropped and
 * counted, so that always seen = records + dropped. Pure: libc only.
 *
 * The consumer sees a record once it is committed. A port may accept only a part of a burst: each
 * frame of the burst is offered before the call, and the accepted frames are committed after it.
 */
#ifndef WEFT_CAPTURE_RING_H
#define WEFT_CAPTURE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_CAPTURE_BURST 32u

struct weft_capture_record {
	/** of the record with its bytes and padding; 0 = the next one is at the beginning */
	uint32_t size;
	uint32_t caplen, len;
	uint32_t direction; /**< enum weft_pcapng_direction */
	uint64_t time_ns;
	uint64_t dropped; /**< since the previous record */
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
	/* Of the producer. */
	_Alignas(64) _Atomic uint64_t head;
	uint64_t tail_seen;
	struct weft_capture_mark now, done, mark[WEFT_CAPTURE_BURST];
	unsigned int offered;
	/** of the committed frames; other threads read it */
	_Atomic uint64_t seen, dropped;
	/** the file cannot be written any more: all frames are dropped */
	atomic_bool dead;
	/* Of the consumer. */
	_Alignas(64) _Atomic uint64_t tail;
};

/** @p size is rounded up to a power of two. @return NULL: no memory */
struct weft_capture_ring *weft_capture_ring_create(uint64_t size);
void weft_capture_ring_destroy(struct weft_capture_ring *r);

/* ---- the producer's side. At most WEFT_CAPTURE_BURST frames are offered between commits. ---- */

/**
 * @return a record for the next frame, to be filled in except `size` and `dropped`; NULL: no room,
 * and the frame is counted
 */
struct weft_capture_record *weft_capture_ring_put(struct weft_capture_ring *r, uint32_t caplen);
/** A frame is complete, with its record or without one (dropped, or not matched by the filter). */
void weft_capture_ring_offered(struct weft_capture_ring *r);
/** The first @p n frames are recorded; the others are discarded. */
void weft_capture_ring_commit(struct weft_capture_ring *r, unsigned int n);

/* ---- the consumer's side -------------------------------------------------------------------- */

/** @return the oldest record; NULL: there is none */
const struct weft_capture_record *weft_capture_ring_peek(struct weft_capture_ring *r);
/** The record that peek() returned is done. */
void weft_capture_ring_next(struct weft_capture_ring *r, const struct weft_capture_record *rec);

#endif /* WEFT_CAPTURE_RING_H */
