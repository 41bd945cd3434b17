/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/events.h
 * Messages, lanes and faults as a trace in Chrome's format, which Perfetto shows.
 */
#ifndef DUMP_EVENTS_H
#define DUMP_EVENTS_H

#include <stdio.h>

struct list;
struct msg;

void events_begin(FILE *out);
/** Write the events of a message that has ended. */
void events_message(FILE *out, const struct list *l, const struct msg *m);
/** When all captures have been read: write lanes, faults, and names. */
void events_end(FILE *out, const struct list *l);

#endif /* DUMP_EVENTS_H */
