/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/timeline.h
 * One message over the lanes that carried it, as text, as JSON and as a picture (SVG).
 */
#ifndef DUMP_TIMELINE_H
#define DUMP_TIMELINE_H

#include "dump/list.h"

void timeline_text(FILE *out, const struct list *l, const struct msg_watch *w);
/** One object on one line: the message, and its events. */
void timeline_json(FILE *out, const struct list *l, const struct msg_watch *w);

/** Draw a message as SVG. */
void svg_message(FILE *out, const struct list *l, const struct msg_watch *w);

#endif /* DUMP_TIMELINE_H */
