/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/recorder.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/tap.h"

#define FRAMES_MIN 128u
/* A burst may be in progress behind head: it overwrites N of the oldest frames at most. */
#define MARGIN 32u

static _Atomic(struct weft_recorder *) pool[WEFT_RECORDERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for threads that add a recorder */

struct weft_recorder *weft_recorder_at(unsigned int i)
{
	return i < WEFT_RECORDERS ? atomic_load_explicit(&pool[i], memory_order_acquire) : NULL;
}

/* ---- writing records that are in pieces ----------------------------------------------------- */

void weft_recorder_put_bytes(struct weft_recorder *r, const struct iovec *iov, unsigned int num,
			     enum weft_pcapng_direction direction, uint64_t now)
{
	/* this thread's own */
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed), word;
	struct weft_recorder_slot *s = &r->slots[head & r->mask];
	uint8_t bytes[WEFT_RECORDER_BYTES] = {0};
	uint64_t len = 0, have = 0, n;
	unsigned int i;

	for (i = 0; i < num; i++) {
		n = RTE_MIN(iov[i].iov_len, sizeof(bytes) - have);
		memcpy(bytes + have, iov[i].iov_base, n);
		have += n;
		len += iov[i].iov_len;
	}
	/* Release: as in weft_recorder_put(). */
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&s->time, now << 2 | direction, memory_order_relaxed);
	atomic_store_explicit(&s->lengths, len | have << 32, memory_order_relaxed);
	for (i = 0; i < WEFT_RECORDER_WORDS; i++) {
		memcpy(&word, bytes + i * sizeof(word), sizeof(word));
		atomic_store_explicit(&s->word[i], word, memory_order_relaxed);
	}
}

/* ---- reading: any thread, a signal handler too ---------------------------------------------- */

static void copy_slot(struct weft_recorder_slot *to, struct weft_recorder_slot *from)
{
	_Atomic uint64_t *d = (_Atomic uint64_t *)to, *s = (_Atomic uint64_t *)from;
	unsigned int i;

	for (i = 0; i < sizeof(*to) / sizeof(*d); i++)
		atomic_store_explicit(&d[i], atomic_load_explicit(&s[i], memory_order_relaxed),
				      memory_order_relaxed);
}

void weft_recorder_snapshot(struct weft_recorder *r, uint64_t *from, uint64_t *to)
{
	uint64_t begin = atomic_load_explicit(&r->begin, memory_order_relaxed), i, now;
	uint64_t frames = r->mask + 1;

	/* Acquire: the words of all frames before head. */
	*to = atomic_load_explicit(&r->head, memory_order_acquire);
	*from = *to > begin + frames ? *to - frames : begin;
	for (i = *from; i < *to; i++)
		copy_slot(&r->copy[i & r->mask], &r->slots[i & r->mask]);
	/*
	 * Acquire: if a word was overwritten, the head of that time or a later one is visible now.
	 */
	atomic_thread_fence(memory_order_acquire);
	now = atomic_load_explicit(&r->head, memory_order_relaxed) + MARGIN;
	if (now > frames && now - frames > *from)
		*from = now - frames;
	if (*from > *to)
		*from = *to;
}

/* ---- lifetime ------------------------------------------------------------------------------- */

static void recorder_free(struct weft_recorder *r)
{
	free(r->slots);
	free(r->copy);
	free(r);
}

static struct weft_recorder *recorder_new(uint64_t frames)
{
	struct weft_recorder *r = calloc(1, sizeof(*r));
	size_t size = frames * sizeof(*r->slots);

	if (!r)
		return NULL;
	r->mask = frames - 1;
	r->slots = aligned_alloc(64, size);
	r->copy = aligned_alloc(64, size);
	if (!r->slots || !r->copy) {
		recorder_free(r);
		return NULL;
	}
	memset(r->slots, 0, size);
	return r;
}

/* @return a recorder that a lane has left, or a new one. Under the lock. */
static struct weft_recorder *recorder_get(uint64_t frames)
{
	struct weft_recorder *r;
	unsigned int i;

	for (i = 0; i < WEFT_RECORDERS; i++) {
		r = atomic_load_explicit(&pool[i], memory_order_relaxed);
		if (!r)
			return recorder_new(frames);
		/* Acquire: all that its last lane has written. */
		if (r->mask == frames - 1 && !atomic_load_explicit(&r->open, memory_order_acquire))
			return r;
	}
	return NULL;
}

static void recorder_publish(struct weft_recorder *r)
{
	unsigned int i;

	for (i = 0; atomic_load_explicit(&pool[i], memory_order_relaxed); i++)
		if (atomic_load_explicit(&pool[i], memory_order_relaxed) == r)
			return;
	/* Release: it is complete before other threads see it. */
	atomic_store_explicit(&pool[i], r, memory_order_release);
}

struct weft_recorder *weft_recorder_open(const struct weft_lane_conf *conf,
					 const struct weft_platform *platform,
					 const struct weft_tap *tap)
{
	struct weft_recorder *r;
	uint64_t frames = FRAMES_MIN;

	if (!conf->recorder)
		return NULL;
	while (frames < conf->recorder)
		frames *= 2;
	weft_recorder_setup(conf);
	pthread_mutex_lock(&lock);
	r = recorder_get(frames);
	if (r) {
		snprintf(r->name, sizeof(r->name), "%s", tap->name);
		snprintf(r->about, sizeof(r->about), "%s", tap->about);
		memcpy(r->mac, tap->mac, sizeof(r->mac));
		r->speed = tap->speed;
		r->link = tap->link;
		r->platform = platform;
		atomic_store_explicit(&r->begin,
				      atomic_load_explicit(&r->head, memory_order_relaxed),
				      memory_order_relaxed);
		atomic_store_explicit(&r->open, true, memory_order_relaxed);
		recorder_publish(r);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

void weft_recorder_close(struct weft_recorder *r)
{
	/* Release: the next lane that opens it goes on behind the frames of this one. */
	if (r)
		atomic_store_explicit(&r->open, false, memory_order_release);
}
