/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/writer.h
 * A capture: its file, its interfaces with a ring each, and the thread that writes the file from
 * the rings. It always writes the oldest record of all rings next.
 */
#ifndef WEFT_CAPTURE_WRITER_H
#define WEFT_CAPTURE_WRITER_H

#include <pthread.h>
#include <sys/queue.h>

#include "capture/capture_file.h"
#include "capture/pcapng.h"
#include "capture/tap.h"

#define WEFT_CAPTURE_SOURCES WEFT_PCAPNG_INTERFACES

/** An interface: the frames of a lane and their statistics. All but `target` is under the lock. */
struct weft_capture_source {
	struct weft_tap_target target;
	char name[160], about[192];
	uint8_t mac[6];
	uint64_t speed;
	uint16_t link;
	bool closed;        /* the lane is closed: the source is removed once its ring is empty */
	uint32_t interface; /* number in the present file */
	uint64_t records;   /* records in the present file */
	uint64_t reported;  /* dropped frames that earlier files have reported */
	uint64_t all;       /* records taken from the ring, written or not */
	uint64_t dropped_at_stats;
};

struct weft_capture {
	LIST_ENTRY(weft_capture) entry;
	struct weft_capture_options options;
	bool by_command;
	struct weft_capture_filter *filter;
	pthread_mutex_t lock; /**< all but the writer take it by weft_capture_lock() */
	atomic_uint waiting;  /**< threads that wait for the lock: the writer lets them have it */
	struct weft_capture_source *source[WEFT_CAPTURE_SOURCES];
	unsigned int num_sources;
	/* the reason why nothing is written any more; "" = the capture goes on */
	char why[256];
	uint64_t gone_records, gone_dropped; /* `all` and dropped frames of removed sources */
	uint64_t unwritten;                  /* records that could not be written */
	uint64_t flush_at, stats_at, counters_at;
	/** ns from the host's monotonic time to the time of day; 0 = not known yet */
	uint64_t offset;
	uint64_t host; /**< number of the running system; 0 = of a simulator */
	pthread_t thread;
	bool threaded;
	atomic_bool stop;
	struct weft_pcapng out;
};

/**
 * @param filter  belongs to the capture from now on, also on failure
 * @param[out] rc  after a failure a negative errno
 * @return NULL: failure, with a sentence in @p why
 */
struct weft_capture *weft_capture_create(const struct weft_capture_options *o,
					 struct weft_capture_filter *filter, bool threaded, int *rc,
					 char *why, size_t why_len);
/** Write the remaining records and free the capture. No lane may show frames to it any more. */
void weft_capture_destroy(struct weft_capture *c);
/** Take the lock. The writer gives way after the round of records that it is writing. */
void weft_capture_lock(struct weft_capture *c);
void weft_capture_unlock(struct weft_capture *c);
/** Add a lane as another interface. @return NULL: no memory, or too many */
struct weft_capture_source *weft_capture_add(struct weft_capture *c, const struct weft_tap *tap);
/** Write a round of records, and remove closed sources. @return records; 0 = rings are empty */
unsigned int weft_capture_drain(struct weft_capture *c);
/** Write counters of devices and statistics, and flush the file. */
void weft_capture_settle(struct weft_capture *c);
/**
 * Begin the file again if it was removed, renamed or replaced.
 * @return 0, or a negative errno with a sentence
 */
int weft_capture_renew(struct weft_capture *c, char *why, size_t why_len);

#endif /* WEFT_CAPTURE_WRITER_H */
