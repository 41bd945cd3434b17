/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/fate.h
 * The fate of each frame: the search for it at its receiver.
 */
#ifndef DUMP_FATE_H
#define DUMP_FATE_H

#include "dump/trace.h"

struct trace_pending *trace_pending_make(void);
void trace_pending_free(struct trace_pending *p);
/** Take a frame of flow @p f: record its sighting at the sender or at the receiver. */
void trace_fate(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		const struct dump_view *view, uint64_t time);

/** Count a received frame with a wrong checksum, which was changed on its way. */
void trace_fate_changed(struct trace *t, const struct dump_frame *frame,
			const struct dump_view *view, uint64_t time);

/** Record that a frame came: it was sent once and acknowledged. @param number  as trace.fate */
void trace_fate_acked(struct trace *t, uint64_t number);

/** Record the end of a run of lost frames; with @p open the captures have ended in it. */
void trace_run_end(struct trace_flow *f, bool open);

/**
 * Judge frames that were seen first TRACE_LOST_NS ago or earlier, and the oldest frame of a full
 * ring; with @p all, every frame.
 */
void trace_fate_judge(struct trace *t, bool all);

#endif /* DUMP_FATE_H */
