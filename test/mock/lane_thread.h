/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/lane_thread.h
 * A prototype, which no user can enable: an iface of any lane driver that a thread of its own
 * polls. doc/results/2026-11-30-lane-threads.md has the design and what is missing.
 *
 * The inner iface has one owner at a time, the worker's thread ("home") or the lane's thread
 * ("away"). Only the owner calls the inner driver. The lane's thread only moves messages. All other
 * work brings the iface home: connections, events, wire-up messages, the end of a lane, sleep.
 * Neither thread waits for the other: a call that needs the iface at home is carried out when the
 * iface arrives, or returns -EAGAIN.
 */
#ifndef MOCK_LANE_THREAD_H
#define MOCK_LANE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lane.h"

/* ------------------------------------------------------------------ destinations */

/*
 * Memory for message data whose destination is known before the data arrives. The worker's thread
 * opens and closes destinations. Lane threads copy into them. A lane thread shows the destination
 * that it uses in a word of its own, so lane threads write no common cache line.
 */

#define LANE_PLACES 64u      /* a power of two */
#define LANE_PLACE_THREADS 8 /* lane threads of a worker */

struct lane_place {
	_Atomic uint64_t id; /* 0 = closed */
	uint64_t last;       /* worker's: the id before it was closed */
	uint8_t *base;
	size_t length;
};

struct lane_places {
	struct lane_place place[LANE_PLACES];
	struct {
		_Alignas(64) _Atomic uint64_t
			id; /* the destination that the thread uses; 0 = none */
	} pin[LANE_PLACE_THREADS];
};

/**
 * Worker's thread. @p id is never 0 and never comes twice.
 * @return false: the place of the id has another destination, or a lane thread uses it still
 */
bool lane_place_open(struct lane_places *p, uint64_t id, void *base, size_t length);

/**
 * Worker's thread: no lane thread begins to copy into the destination any more. Does not wait.
 * @return true: no lane thread uses the memory. On false the caller repeats the call later, and
 *   keeps the memory until it returns true
 */
bool lane_place_close(struct lane_places *p, uint64_t id);

/** Lane thread number @p thread. @return false: the destination is closed, or has no such bytes */
bool lane_place_copy(struct lane_places *p, unsigned int thread, uint64_t id, uint64_t offset,
		     const void *data, size_t length);

/* ------------------------------------------------------------------ ifaces */

struct lane_thread_conf {
	/**
	 * There is no thread: the caller runs lane_thread_step() in its place. Simulations
	 */
	bool manual;
	int cpu;             /**< the thread's processor; -1 = any */
	void (*begin)(void); /**< first call of the thread; NULL = none */
	uint64_t quiet_ns;   /**< the thread gets the iface after this time without other work */
	int home_id;         /**< messages with this am_id bring the iface home; -1 = none */
	/** Destinations; NULL = the worker's thread copies all messages. */
	struct lane_places *places;
	unsigned int thread; /**< number of the lane thread */
	/**
	 * In the lane's thread: does the message belong into a destination? @return length of its
	 * header, whose bytes placed() gets; 0 = it has no destination
	 */
	size_t (*where)(uint8_t am_id, const void *msg, size_t length, uint64_t *id,
			uint64_t *offset);
	/** In the worker's thread: as the receive callback, for data that is in its destination. */
	void (*placed)(void *arg, struct weft_lane_ep *lane_ep, const void *hdr, size_t hdr_len,
		       size_t length);
};

/** As inner->open(). The iface has its own attr: no native access, no registrations, no keys. */
int lane_thread_open(const struct weft_lane_driver *inner, const struct weft_lane_open *params,
		     const struct lane_thread_conf *conf, struct weft_lane_iface **iface, char *why,
		     size_t why_len);

/** One round of the lane's thread. @return events handled; 0 also while the iface is at home */
unsigned int lane_thread_step(struct weft_lane_iface *iface, uint64_t now);

/** Keep the iface at home from now on, or no more. Worker's thread. */
void lane_thread_hold(struct weft_lane_iface *iface, bool hold);

/** Does the lane's thread own the inner iface? Worker's thread. */
bool lane_thread_is_away(const struct weft_lane_iface *iface);

struct lane_thread_count {
	uint64_t away;   /* times that the iface left */
	uint64_t sends;  /* that the lane's thread was given */
	uint64_t recvs;  /* that the lane's thread passed on */
	uint64_t placed; /* of these: copied by the lane's thread */
	uint64_t later;  /* ep_quiesce() that had to be repeated */
	uint64_t reaped; /* messages that the inner driver had not accepted when a lane ended */
};

const struct lane_thread_count *lane_thread_count(const struct weft_lane_iface *iface);

#endif /* MOCK_LANE_THREAD_H */
