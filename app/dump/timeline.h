/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/timeline.h
 * One message over the lanes that carried it, as text and as a picture (SVG); and the rates of
 * lanes as a picture.
 */
#ifndef DUMP_TIMELINE_H
#define DUMP_TIMELINE_H

#include "dump/list.h"

void timeline_text(FILE *out, const struct list *l, const struct msg_watch *w);
/** One object on one line: the message, and its events. */
void timeline_json(FILE *out, const struct list *l, const struct msg_watch *w);

/* Pictures, as SVG. */
void svg_message(FILE *out, const struct list *l, const struct msg_watch *w);
void svg_lanes(FILE *out, const struct list *l);

/** A report in one file. */
void html_report(FILE *out, struct list *l);

#endif /* DUMP_TIMELINE_H */
