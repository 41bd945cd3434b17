/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/state.h
 * States of paths over time, which captures of Weft contain: windows, round trips and modes of
 * congestion control. doc/capture.md has the text.
 */
#ifndef DUMP_STATE_H
#define DUMP_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATE_PATHS 64u   /**< paths of a file that are read, at most */
#define STATE_POINTS 512u /**< states of a path that are kept: the longer the file, the fewer */

enum state_mode { STATE_NONE, STATE_START, STATE_DELAY, STATE_SHARE, STATE_MODES };

/** Bytes and ns; 0 = not known. */
struct state_point {
	uint64_t time; /**< ns since 1970, file's clock */
	uint32_t window, in_flight;
	uint32_t rtt, least;          /**< smoothed, and the least since the connection began */
	uint32_t base, noise, target; /**< of congestion control */
	uint8_t mode;                 /**< enum state_mode */
};

struct state_path {
	uint16_t iface;
	uint32_t conn, token, path; /**< of the sender's end of the connection */
	unsigned int num;
	uint64_t each, seen; /**< one of `each` states is kept; states in the file */
	struct state_point last;
	struct state_point point[STATE_POINTS];
};

struct states {
	unsigned int num;
	struct state_path *path; /**< NULL = none, or no memory */
};

/**
 * Read a comment of statistics. Paths beyond the limit are left out.
 * @return false: the text has no state
 */
bool state_read(struct states *s, uint16_t iface, const void *text, size_t len, uint64_t time);
void state_free(struct states *s);

/** "start", "delay", "share"; "" = an algorithm without modes. */
const char *state_mode_name(uint8_t mode);

#endif /* DUMP_STATE_H */
