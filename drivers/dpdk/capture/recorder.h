/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/recorder.h
 * The flight recorder: the first bytes of the last frames of each raw lane, in memory. It has
 * message records of other lanes, too, if weft_recorder_has_messages(). Unless WEFT_RECORDER is
 * off, it records from the opening of the lane on. The frames are written to a file when a lane
 * fails, by a call of the program, or by a command.
 *
 * The lane's thread writes, without a lock. Any thread, or a signal handler, may read at any time,
 * but only one reader at a time. A reader discards the frames that may have been overwritten in the
 * meantime (recorder_snapshot()). Recorders are never freed: the recorder of a closed lane is
 * reused by a later lane with the same number of frames, and can be read until then.
 *
 * By default the files are in the user's own folder, where no other user can create or replace any.
 */
#ifndef WEFT_CAPTURE_RECORDER_H
#define WEFT_CAPTURE_RECORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "base/platform.h"
#include "capture/history.h"
#include "capture/pcapng.h"
#include "lane.h"

/** Bytes kept of a frame: Ethernet with a tag, IPv4, UDP, lane header, and the first blocks. */
#define WEFT_RECORDER_BYTES 112u
#define WEFT_RECORDER_WORDS (WEFT_RECORDER_BYTES / 8)

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_RECORDER_BY_WORDS
#endif
#elif defined(__SANITIZE_THREAD__)
#define WEFT_RECORDER_BY_WORDS
#endif

struct weft_tap;

struct weft_recorder_slot {
	_Atomic uint64_t time; /**< ns << 2 | enum weft_pcapng_direction */
	/** bytes of the frame | bytes of its first mbuf << 32 | marks of recorder.c << 48 */
	_Atomic uint64_t lengths;
	_Atomic uint64_t word[WEFT_RECORDER_WORDS];
};

struct weft_recorder {
	_Atomic uint64_t head; /**< frames committed so far: the next one goes to head & mask */
	uint64_t mask;
	struct weft_recorder_slot *slots;
	struct weft_history *history;
	/* Not used while frames are recorded. */
	struct weft_recorder_slot *copy; /**< frames that recorder_snapshot() has copied */
	_Atomic uint64_t begin;          /**< head when the lane was opened */
	atomic_bool open;
	const struct weft_platform *platform;
	char name[160], about[192];
	uint8_t mac[6];
	uint64_t speed;
	uint16_t link;
};

/**
 * @return a recorder for a lane that opens; NULL: off, no memory, too many lanes
 * @param conf  its `recorder` is the least number of frames; 0 = off
 * @param tap   has the lane's name
 */
struct weft_recorder *weft_recorder_open(const struct weft_lane_conf *conf,
					 const struct weft_platform *platform,
					 const struct weft_tap *tap);
/** The lane closes. NULL is allowed. */
void weft_recorder_close(struct weft_recorder *r);
/**
 * As weft_recorder_put(), for a message record or a frame in pieces.
 * @param behind  frames that were put since the last commit
 * @param len     bytes of the whole frame, of which the pieces may be the first ones
 */
void weft_recorder_put_bytes(struct weft_recorder *r, unsigned int behind, const struct iovec *iov,
			     unsigned int num, uint32_t len, enum weft_pcapng_direction direction,
			     uint64_t now);

/**
 * The next progress call began @p ns after the one of time @p call, apart from sleep. Mark the
 * frames of @p call. The caller leaves out pauses of up to 100 us.
 */
void weft_recorder_pause(struct weft_recorder *r, uint64_t call, uint64_t ns);
/**
 * Mark a frame whose checksum is wrong. It was received in the progress call of time @p call.
 * @param iov  the beginning of the frame, in pieces
 */
void weft_recorder_damaged(struct weft_recorder *r, const struct iovec *iov, unsigned int num,
			   uint64_t call);

/* ---- files ---------------------------------------------------------------------------------- */

/** Recorders of a process, at most. */
#define WEFT_RECORDERS 64u

/** @return message records of lanes without frames are kept: WEFT_RECORDER_FILE=FILE,messages */
bool weft_recorder_has_messages(const struct weft_lane_conf *conf);

/**
 * Write a file because of an error: in a thread of its own, from a copy that is made at once. A
 * process writes at most one such file in ten seconds and eight in all, to spare the disk.
 */
void weft_recorder_error(const char *reason);

/**
 * Wait up to two seconds until a file that is being written is complete. The error is often the
 * last event in a process, and not every process runs its exit handlers.
 */
void weft_recorder_settle(void);

/**
 * Write a file now. Any thread, or a signal handler.
 * @param[out] name  the file, or the reason why there is none
 * @return 0, or a negative errno value. -ENOENT: no recorder; -EBUSY: another file is being written
 */
int weft_recorder_file_write(const char *reason, char *name, size_t size);
/** As weft_recorder_file_write(), but not in a signal handler: it then removes old files, too. */
int weft_recorder_file_command(const char *reason, char *name, size_t size);

/*
 * Copies the bytes. C11 has atomics of words only, but vectors take a quarter of the instructions,
 * and 112 bytes that are known to be there need no loop. It suffices that the compiler keeps the
 * fence before them and the release behind them: a reader discards all frames that it may have seen
 * half-written. ThreadSanitizer cannot know that, so its build copies words.
 */
static inline void weft_recorder_bytes(struct weft_recorder_slot *s, const struct rte_mbuf *m)
{
	const uint8_t *from = rte_pktmbuf_mtod(m, const uint8_t *);
#ifdef WEFT_RECORDER_BY_WORDS
	unsigned int have = RTE_MIN(m->data_len, WEFT_RECORDER_BYTES);
	uint64_t word;

	for (unsigned int i = 0; i < have; i += sizeof(word)) {
		word = 0;
		memcpy(&word, from + i, RTE_MIN(sizeof(word), have - i));
		atomic_store_explicit(&s->word[i / sizeof(word)], word, memory_order_relaxed);
	}
#else
	/* Bytes after a short frame do no harm: a reader takes only those that `lengths` has. */
	if (likely(m->buf_len >= m->data_off + WEFT_RECORDER_BYTES))
		memcpy((void *)s->word, from, WEFT_RECORDER_BYTES);
	else
		memcpy((void *)s->word, from, RTE_MIN(m->data_len, WEFT_RECORDER_BYTES));
#endif
}

/** Write one frame to its place. @param time  as struct weft_recorder_slot has it */
static inline void weft_recorder_frame(struct weft_recorder *r, uint64_t head,
				       const struct rte_mbuf *m, uint64_t time)
{
	struct weft_recorder_slot *s = &r->slots[head & r->mask];

	atomic_store_explicit(&s->time, time, memory_order_relaxed);
	atomic_store_explicit(&s->lengths, m->pkt_len | (uint64_t)m->data_len << 32,
			      memory_order_relaxed);
	weft_recorder_bytes(s, m);
}

/**
 * Write frames after head without moving it: the port may not accept all frames of a burst.
 * @return the head if the port accepts all
 */
static inline uint64_t weft_recorder_put(struct weft_recorder *r, struct rte_mbuf *const *pkts,
					 unsigned int n, enum weft_pcapng_direction direction,
					 uint64_t now)
{
	uint64_t head, end;

	now = now << 2 | direction;
	head = atomic_load_explicit(&r->head, memory_order_relaxed); /* no other writer */
	/* Release: a reader that sees these words sees the head before them, too. */
	atomic_thread_fence(memory_order_release);
	end = head + n;
	if (likely(n == 1)) {
		/* Without a loop fewer registers are needed. */
		weft_recorder_frame(r, head, *pkts, now);
		return end;
	}
	for (; head != end; head++, pkts++)
		weft_recorder_frame(r, head, *pkts, now);
	return end;
}

static inline void weft_recorder_commit(struct weft_recorder *r, unsigned int n)
{
	/* Release: after the words of the frames. */
	atomic_store_explicit(&r->head, atomic_load_explicit(&r->head, memory_order_relaxed) + n,
			      memory_order_release);
}

/** Record received frames: weft_recorder_put() and weft_recorder_commit() in one. */
static inline void weft_recorder_add(struct weft_recorder *r, struct rte_mbuf *const *pkts,
				     unsigned int n, enum weft_pcapng_direction direction,
				     uint64_t now)
{
	/* Release: after the words of the frames. */
	atomic_store_explicit(&r->head, weft_recorder_put(r, pkts, n, direction, now),
			      memory_order_release);
}

/* ---- the folder of the files ---------------------------------------------------------------- */

/** Most files and bytes that weft_recorder_folder_prune() leaves, for all processes of the user. */
#define WEFT_RECORDER_FILES 20u
#define WEFT_RECORDER_FILES_BYTES (64ull << 20)

/**
 * Find the folder: weft-UID in TMPDIR; without TMPDIR weft_user_folder_find().
 * @return 0, or a negative errno value with a sentence in @p path
 */
int weft_recorder_folder_find(char *path, size_t size);

/**
 * Create a file recorder-PID-RANDOM.pcapng in @p folder. A signal handler may call this function.
 * @param[out] name  the file, or a sentence on error
 * @return a descriptor, or a negative errno value
 */
int weft_recorder_folder_create(const char *folder, char *name, size_t size);

/**
 * Remove the oldest files of the user's flight recorders in @p folder, until at most @p files are
 * left with at most @p bytes; the newest file always stays.
 */
void weft_recorder_folder_prune(const char *folder, unsigned int files, uint64_t bytes);

#endif /* WEFT_CAPTURE_RECORDER_H */
