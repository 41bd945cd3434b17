/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/record.h
 * Message records: the messages of lanes without frames (lib/lane_tap.h).
 */
#ifndef DUMP_RECORD_H
#define DUMP_RECORD_H

#include "dump/decode.h"
#include "dump/walk.h"

/** As dump_decode(), of a record. */
void dump_record(const struct dump_frame *frame, struct dump_view *v);
/** As dump_msg_next(), of a record. */
bool dump_record_message(const struct dump_view *v, uint32_t *at, struct dump_msg *msg);
/** As dump_walk(), of a record: without the message in it. */
void dump_record_walk(const struct dump_view *v, struct dump_sink *sink);
/** Does the header of its message differ from that of any other message? */
bool dump_record_is_unique(const struct dump_view *v);

#endif /* DUMP_RECORD_H */
