/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/writer.h
 * One capture: its file, its interfaces with a ring each, and who writes the one from the others.
 * Records of all rings go to the file by their times.
 */
#ifndef WEFT_CAPTURE_WRITER_H
#define WEFT_CAPTURE_WRITER_H

#include <pthread.h>
#include <sys/queue.h>

#include "capture/options.h"
#include "capture/pcapng.h"
#include "capture/tap.h"

#define WEFT_CAPTURE_SOURCES WEFT_PCAPNG_INTERFACES

/** An interface: what a lane shows, and what has become of it. Under the capture's lock. */
struct weft_capture_source {
	struct weft_tap_target target;
	char name[160], about[192];
	uint8_t mac[6];
	uint64_t speed;
	uint16_t link;
	bool closed;        /* the lane is: when the ring is empty, it goes */
	uint32_t interface; /* of the present file */
	uint64_t records;   /* in the present file */
	uint64_t told;      /* of those that were dropped, in files before */
	uint64_t all;       /* records in all files */
	uint64_t dropped_at_stats;
};

struct weft_capture {
	LIST_ENTRY(weft_capture) entry;
	struct weft_capture_options options;
	bool by_command;
	struct weft_capture_filter *filter;
	pthread_mutex_t lock; /**< by weft_capture_lock() */
	atomic_uint waiting;  /**< for the lock: the writer's thread lets them have it */
	struct weft_capture_source *source[WEFT_CAPTURE_SOURCES];
	unsigned int num_sources;
	char why[256];                       /* ended: not written any more */
	uint64_t gone_records, gone_dropped; /* of sources that have gone */
	uint64_t unwritten;                  /* records that the file has not taken */
	uint64_t flush_at, stats_at;
	uint64_t offset; /**< from the host's monotonic time to that of day; 0 = not known yet */
	pthread_t thread;
	bool threaded;
	atomic_bool stop;
	struct weft_pcapng out;
};

/**
 * @param filter  the capture's from now on, also where there is none
 * @return NULL with a sentence
 */
struct weft_capture *weft_capture_create(const struct weft_capture_options *o,
					 struct weft_capture_filter *filter, bool threaded, int *rc,
					 char *why, size_t why_len);
/** No lane shows frames to it any more. Writes what is left. */
void weft_capture_destroy(struct weft_capture *c);
/** The lock, soon, however much the writer's thread has to write. */
void weft_capture_lock(struct weft_capture *c);
void weft_capture_unlock(struct weft_capture *c);
/** A lane as another interface. @return NULL: no memory, or too many */
struct weft_capture_source *weft_capture_add(struct weft_capture *c, const struct weft_tap *tap);
/** Write what is in the rings. @return records */
unsigned int weft_capture_drain(struct weft_capture *c);
/** Flush, with statistics. */
void weft_capture_settle(struct weft_capture *c);

#endif /* WEFT_CAPTURE_WRITER_H */
