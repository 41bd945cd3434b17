/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/timeline.h
 * One message over the lanes that carried it, as text, as JSON and as a picture (SVG). Messages,
 * lanes and faults as a trace in Chrome's format, which Perfetto shows.
 */
#ifndef DUMP_TIMELINE_H
#define DUMP_TIMELINE_H

#include <stdio.h>

#include "dump/list.h"

void timeline_text(FILE *out, const struct list *l, const struct msg_watch *w);
/** One object on one line: the message, and its events. */
void timeline_json(FILE *out, const struct list *l, const struct msg_watch *w);

/** Draw a message as SVG. */
void svg_message(FILE *out, const struct list *l, const struct msg_watch *w);

/* ---- all messages: a trace for Perfetto */

void events_begin(FILE *out);
/** Write the events of a message that has ended. */
void events_message(FILE *out, const struct list *l, const struct msg *m);
/** When all captures have been read: write lanes, faults, and names. */
void events_end(FILE *out, const struct list *l);

#endif /* DUMP_TIMELINE_H */
