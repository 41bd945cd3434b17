/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/plot.h
 * Frames of lanes over time, for pictures: those sent, sent again, lost and acknowledged. The first
 * PLOT_FLOWS flows have points.
 */
#ifndef DUMP_PLOT_H
#define DUMP_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "dump/decode.h"
#include "dump/file.h"

#define PLOT_FLOWS 64u
#define PLOT_PENDING (1u << 18) /**< TRACE_PENDING */
/** Points of a flow, of each kind that is thinned out: the longer the capture, the fewer. */
#define PLOT_POINTS 2048u
#define PLOT_MARKS (1u << 19) /**< points of all flows that are not thinned out */

/** PLOT_SENT and PLOT_ACKED are thinned out, the others are not. */
enum plot_kind { PLOT_SENT, PLOT_ACKED, PLOT_AGAIN, PLOT_LOST, PLOT_KINDS };

struct plot_point {
	uint64_t time;    /**< common clock */
	uint64_t number;  /**< number of the frame in its file; 0 with PLOT_ACKED */
	uint64_t message; /**< number of the frame's first message; 0 = none, or not known */
	uint32_t seq;     /**< PLOT_ACKED: all frames before this one are acknowledged */
	uint8_t path, file;
};

struct plot_list {
	struct plot_point *point; /**< in the order in which they were found */
	unsigned int num, room;
	uint64_t each, seen; /**< one of `each` frames has a point; frames */
};

struct plot {
	struct plot_list list[PLOT_FLOWS][PLOT_KINDS];
	uint32_t acked[PLOT_FLOWS]; /**< the newest acknowledgement */
	unsigned int marks;
	uint64_t left; /**< points beyond PLOT_MARKS, or without memory */
	/** by trace.fate: sent frames whose fate is not known yet */
	struct plot_point *pending;
};

/** @return NULL: no memory */
struct plot *plot_make(void);
void plot_free(struct plot *p);

/**
 * Take a frame of a flow.
 * @param point    of this frame
 * @param fate     as trace.fate
 * @param counted  it is one of trace_flow.frames
 */
void plot_frame(struct plot *p, uint32_t flow, const struct dump_view *view,
		const struct plot_point *point, uint64_t fate, bool counted);
/** The frame with number @p fate of trace.fate is lost. */
void plot_lost(struct plot *p, uint32_t flow, uint64_t fate);
/** Frames of a flow before @p ack are acknowledged. */
void plot_acked(struct plot *p, uint32_t flow, uint32_t ack, uint64_t time);

#endif /* DUMP_PLOT_H */
