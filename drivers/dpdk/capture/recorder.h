/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/recorder.h
 * The flight recorder: the beginnings of the last frames of each raw lane, in memory, always. They
 * become a file when a lane fails, by a signal, or by a command (capture/recorder_file.c).
 *
 * The lane's thread writes; anybody reads at any time, a signal handler too: all words are atomic,
 * and a reader throws away what may have been written over meanwhile (take()). Nobody waits.
 * Recorders are never freed: one that a closed lane has left goes to the next lane, and may be read
 * until then.
 */
#ifndef WEFT_CAPTURE_RECORDER_H
#define WEFT_CAPTURE_RECORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "base/platform.h"
#include "capture/pcapng.h"
#include "lane.h"

/** Bytes of a frame: Ethernet with a tag, IPv4, UDP, lane header, and the first blocks. */
#define WEFT_RECORDER_BYTES 112u
#define WEFT_RECORDER_WORDS (WEFT_RECORDER_BYTES / 8)

struct weft_recorder_slot {
	_Atomic uint64_t time;
	_Atomic uint64_t about; /**< length, bytes that are here << 32, direction << 48 */
	_Atomic uint64_t word[WEFT_RECORDER_WORDS];
};

struct weft_recorder {
	_Atomic uint64_t head; /**< frames so far: the next one goes to head & mask */
	uint64_t mask;
	struct weft_recorder_slot *slots;
	/* Others'. */
	struct weft_recorder_slot *copy; /**< of who writes the file */
	_Atomic uint64_t begin;          /**< head when the lane was opened */
	atomic_bool open;
	const struct weft_platform *platform;
	char name[160], about[192];
	uint8_t mac[6];
	uint64_t speed;
};

/**
 * A recorder for a lane that opens.
 * @param conf  recorder: frames, 0 = none; recorder_file, recorder_signal
 * @return NULL: off, no memory, or too many lanes; the lane does without
 */
struct weft_recorder *weft_recorder_open(const struct weft_lane_conf *conf,
					 const struct weft_platform *platform, const char *name,
					 const char *about, const uint8_t mac[6], uint64_t speed);
/** The lane closes. NULL is allowed. */
void weft_recorder_close(struct weft_recorder *r);

/* ---- the file: recorder_file.c ---- */

/** Of all recorders, what they have now. Everything else is as recorder_file.c wants it. */
#define WEFT_RECORDERS 64u

/** Recorder @p i of all, from 0; NULL: there are no more. */
struct weft_recorder *weft_recorder_at(unsigned int i);

/**
 * Copy what there is. Any thread, also a signal handler; one at a time.
 * @param[out] from, to  frames [from, to) are in r->copy, each at its number & mask
 */
void weft_recorder_snapshot(struct weft_recorder *r, uint64_t *from, uint64_t *to);

/** Where files go and which signals make one, as the first lane has it. */
void weft_recorder_setup(const struct weft_lane_conf *conf);

/**
 * Write a file because of an error: in a thread of its own, from a copy that is made at once. Not
 * more than one in ten seconds and eight in all, so that many errors don't fill a disk.
 */
void weft_recorder_error(const char *reason);

/**
 * Wait, for two seconds at most, until a file that is being written is whole: the accident is often
 * the last thing that happens, and not every process ends by its exit handlers.
 */
void weft_recorder_settle(void);

/**
 * Write a file now.
 * @param[out] name  of the file, or a sentence that says why there is none
 * @return 0, or a negative errno
 */
int weft_recorder_write(const char *reason, char *name, size_t size);

/** Behind head: frames of a burst whose acceptance is not known yet. */
static inline void weft_recorder_put(struct weft_recorder *r, struct rte_mbuf *const *pkts,
				     unsigned int n, enum weft_pcapng_direction direction,
				     uint64_t now)
{
	uint64_t head, have, word;
	struct weft_recorder_slot *s;
	const uint8_t *from;
	unsigned int i, j;

	head = atomic_load_explicit(&r->head, memory_order_relaxed); /* ours */
	/* Release: who sees these words sees the head that was before them, too. */
	atomic_thread_fence(memory_order_release);
	for (i = 0; i < n; i++) {
		s = &r->slots[(head + i) & r->mask];
		have = RTE_MIN(pkts[i]->data_len, WEFT_RECORDER_BYTES);
		atomic_store_explicit(&s->time, now, memory_order_relaxed);
		atomic_store_explicit(&s->about,
				      pkts[i]->pkt_len | have << 32 | (uint64_t)direction << 48,
				      memory_order_relaxed);
		from = rte_pktmbuf_mtod(pkts[i], const uint8_t *);
		for (j = 0; j + sizeof(word) <= have; j += sizeof(word)) {
			memcpy(&word, from + j, sizeof(word));
			atomic_store_explicit(&s->word[j / sizeof(word)], word,
					      memory_order_relaxed);
		}
		if (unlikely(j < have)) {
			word = 0;
			memcpy(&word, from + j, have - j);
			atomic_store_explicit(&s->word[j / sizeof(word)], word,
					      memory_order_relaxed);
		}
	}
	/* Long out of the first-level cache by now. */
	s = &r->slots[(head + n) & r->mask];
	__builtin_prefetch(s, 1);
	__builtin_prefetch((const uint8_t *)s + sizeof(*s) - 1, 1);
}

static inline void weft_recorder_commit(struct weft_recorder *r, unsigned int n)
{
	/* Release: their words come before. */
	atomic_store_explicit(&r->head, atomic_load_explicit(&r->head, memory_order_relaxed) + n,
			      memory_order_release);
}

#endif /* WEFT_CAPTURE_RECORDER_H */
