/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/flight.h
 * DATA frames in flight, from the first transmission to the acknowledgement.
 */
#ifndef DUMP_FLIGHT_H
#define DUMP_FLIGHT_H

#include "dump/message.h"

/** Allocate the tables of frames and links. @return 0 or -ENOMEM: also then call flight_free() */
int flight_make(struct trace_follow *fo);
void flight_free(struct trace_follow *fo);

/** Take a DATA or PART frame. */
void flight_data(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		 const struct dump_view *view, uint64_t time);

/** Take the acknowledgements of the other direction from a frame of @p f. */
void flight_ack(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		const struct dump_view *view, uint64_t time);

/** Take a message record. */
void flight_record(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		   const struct dump_view *view, uint64_t time);

/** Keep an event for the time line of @p m, if it is watched. */
void flight_note(struct trace_follow *fo, const struct msg *m, const struct msg_event *e);
/** Record that the frame that the trace has taken last has a part of @p m. */
void flight_mark(struct trace *t, const struct msg *m);
/** Retire all frames in flight, at the end of the captures. */
void flight_end(struct trace *t);

/** Release acknowledged frames whose missing transmissions are no longer awaited. */
void flight_sweep(struct trace *t);
/** Retire the oldest frame of the ring, which frees its links. */
void flight_retire(struct trace *t);

#endif /* DUMP_FLIGHT_H */
