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

/** Lanes of a message, each by the lower number of its two flows, in ascending order. */
struct timeline_lanes {
	uint32_t flow[MSG_LANES];
	unsigned int num;
	uint64_t begin, end; /**< of the events */
};

void timeline_lanes(const struct trace *t, const struct msg_watch *w, struct timeline_lanes *lanes);
/** @return MSG_LANES: it is not in the list */
unsigned int timeline_lane(const struct trace *t, const struct timeline_lanes *lanes,
			   uint32_t flow);
/** Is the frame of this event from the message's sender? */
bool timeline_forth(const struct trace *t, const struct msg_watch *w, const struct msg_event *e);

/* dump/svg.c */
void svg_message(FILE *out, const struct list *l, const struct msg_watch *w);
void svg_lanes(FILE *out, const struct list *l);
/** Text in HTML and SVG. */
void svg_text(FILE *out, const char *text);

/* dump/html.c */
void html_report(FILE *out, struct list *l);

#endif /* DUMP_TIMELINE_H */
