/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/ring.h
 * Frames on their way from a lane to the writer of a capture: records of any length in a ring of
 * bytes, one producer and one consumer. Nobody waits: a record for which there is no room is
 * dropped and counted, so that always seen = records + dropped. Pure: libc only.
 *
 * What is put in is seen by the consumer once it is committed. A port takes a part of a burst only:
 * each frame of the burst is offered before the call, and those that the port has taken are
 * committed after it.
 */
#ifndef WEFT_CAPTURE_RING_H
#define WEFT_CAPTURE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_CAPTURE_BURST 32u

struct weft_capture_record {
	uint32_t size; /**< of the record with its bytes and padding; 0 = go on at the beginning */
	uint32_t caplen, len;
	uint32_t direction; /**< enum weft_pcapng_direction */
	uint64_t time_ns;
	uint64_t dropped; /**< since the record before */
	uint8_t data[];
};

/** Where the producer is behind a frame of its burst. */
struct weft_capture_mark {
	uint64_t head, seen, dropped;
	uint64_t unsaid; /**< dropped, and no record tells of it yet */
};

struct weft_capture_ring {
	uint8_t *data;
	uint64_t size; /**< a power of two */
	/* The producer's. */
	_Alignas(64) _Atomic uint64_t head;
	uint64_t tail_seen;
	struct weft_capture_mark now, done, mark[WEFT_CAPTURE_BURST];
	unsigned int offered;
	/** of what is committed; read by others */
	_Atomic uint64_t seen, dropped;
	/** nothing can be written any more: everything is dropped */
	atomic_bool dead;
	/* The consumer's. */
	_Alignas(64) _Atomic uint64_t tail;
};

/** @p size is rounded up to a power of two. @return NULL: no memory */
struct weft_capture_ring *weft_capture_ring_create(uint64_t size);
void weft_capture_ring_destroy(struct weft_capture_ring *r);

/* ---- the producer's side. At most WEFT_CAPTURE_BURST frames are offered between commits. ---- */

/**
 * A record for the next frame, to be filled in, `size` and `dropped` excepted.
 * @return NULL: no room; the frame is counted
 */
struct weft_capture_record *weft_capture_ring_put(struct weft_capture_ring *r, uint32_t caplen);
/** A frame is complete, with its record or without one (dropped, or not wanted). */
void weft_capture_ring_offered(struct weft_capture_ring *r);
/** The first @p n frames count, the others were never there. */
void weft_capture_ring_commit(struct weft_capture_ring *r, unsigned int n);

/* ---- the consumer's side -------------------------------------------------------------------- */

/** @return NULL: there is none */
const struct weft_capture_record *weft_capture_ring_peek(struct weft_capture_ring *r);
/** Done with what peek() returned. */
void weft_capture_ring_next(struct weft_capture_ring *r, const struct weft_capture_record *rec);

#endif /* WEFT_CAPTURE_RING_H */
