/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/history.h
 * What comments of statistics have (doc/capture.md): of a flight recorder's file the last minute of
 * its lanes, as its frames may begin behind a fault; of a capture times of full receive buffers.
 */
#ifndef DUMP_HISTORY_H
#define DUMP_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_SLOTS 128u  /**< slots of a series that are read, at most */
#define HISTORY_SERIES 512u /**< series of a file, at most */

/** Counts of a lane, in the order of the text. */
enum history_count {
	HISTORY_SENT,
	HISTORY_RECEIVED,
	HISTORY_AGAIN,
	HISTORY_TWICE,
	HISTORY_DAMAGED,
	HISTORY_LOWERED,
	HISTORY_CONNS,
	HISTORY_LATE,    /**< us without a poll, in times of 1 ms and more; 0 in older files */
	HISTORY_STOPPED, /**< the same, of 0.1 s and more */
	HISTORY_COUNTS
};

struct history_slot {
	bool known;
	int64_t delay; /**< least delay, ns; only differences have a meaning, modulo 2^32 */
	uint32_t samples;
	uint32_t count[HISTORY_COUNTS];
};

/** A line of a file: delays of frames that came over a path, or counts of a lane. */
struct history_series {
	uint16_t iface;
	bool counts;
	uint32_t conn, token, path; /**< of delays: the connection at this end */
	uint64_t from, each; /**< begin of slot 0, ns since 1970, file's clock; ns of a slot */
	unsigned int num;
	struct history_slot slot[HISTORY_SLOTS];
};

#define HISTORY_MISSED 8192u /**< records of full receive buffers of a file, at most */

/** Frames for which the receive buffer of an interface had no room since the last such record. */
struct history_missed {
	uint64_t time, count; /**< file's clock; frames, UINT32_MAX at most */
	uint16_t iface;
};

struct history {
	unsigned int num, num_missed;
	struct history_series *series; /**< NULL = none, or no memory */
	struct history_missed *missed; /**< of captures; NULL = none, or no memory */
};

/**
 * Read a comment of statistics. What is beyond a limit is left out.
 * @param time  of the statistics, file's clock
 * @return false: the text has no history
 */
bool history_read(struct history *h, uint16_t iface, const void *text, size_t len, uint64_t time);
void history_free(struct history *h);

#endif /* DUMP_HISTORY_H */
