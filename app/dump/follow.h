/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/follow.h
 * Maps the messages of a frame, and native operations, to messages of endpoints.
 */
#ifndef DUMP_FOLLOW_H
#define DUMP_FOLLOW_H

#include "dump/message.h"

/** Take a lane frame, or the record of a message, of flow @p f. */
void follow_frame(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		  const struct dump_view *view, uint64_t time);

/** End all messages, after the last frame. */
void follow_end(struct trace *t);

struct msg_link {
	uint64_t offset;
	uint32_t msg, number, next, bytes;
	uint8_t kind; /**< enum link_kind */
};

/** Read the messages of a frame at its first sighting. @return its links, or TRACE_NONE */
uint32_t follow_messages(struct trace *t, struct trace_flow *f, const struct dump_view *view,
			 uint64_t time, uint8_t way);

/** The message of a link, or NULL: it has ended. */
struct msg *link_msg(const struct trace_follow *fo, const struct msg_link *l);

/** @return the counters of this lane's part of a message; lanes beyond MSG_LANES share the last */
struct msg_lane *msg_lane(struct msg *m, uint32_t flow, uint64_t time);

/** Take a record of a native operation. */
void follow_native(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		   const struct dump_view *view, uint64_t time);

#endif /* DUMP_FOLLOW_H */
