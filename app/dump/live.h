/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/live.h
 * A report for each interval with frames, of captures that are being read: rates of lanes, and new
 * faults. Intervals in a row without frames have one line.
 */
#ifndef DUMP_LIVE_H
#define DUMP_LIVE_H

#include "dump/list.h"

struct live;

/** @param interval  ns. @return NULL: no memory */
struct live *live_make(const struct list *l, uint64_t interval);
/** Report the intervals that are over, before a frame of this time is taken. */
void live_frame(struct live *v, uint64_t time);
void live_free(struct live *v);

#endif /* DUMP_LIVE_H */
