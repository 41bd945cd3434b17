/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/iface_event.h
 * Events of ports and devices: links that go down and come up, in the log.
 */
#ifndef WEFT_IFACE_EVENT_H
#define WEFT_IFACE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lane.h"

struct weft_worker;

/** ifaces[@p index] was opened. */
void weft_iface_link_init(struct weft_worker *w, unsigned int index);
/** weft_lane_open.iface_event; @p arg is the worker. */
void weft_iface_event(void *arg, struct weft_lane_iface *iface, enum weft_lane_iface_event ev,
		      const char *text);
/** The reason why @p iface has no link, and the remedy, as text. */
void weft_iface_link_text(struct weft_lane_iface *iface, char *buf, size_t size);
/** Check links that are not up yet: part of weft_conns_timers(). */
void weft_iface_timers(struct weft_worker *w);
/**
 * A lane of @p iface may be dead. With their interface thousands may be dead.
 * @return time of its check: now, or after the checks before it
 */
uint64_t weft_iface_suspect_at(struct weft_worker *w, const struct weft_lane_iface *iface);
/**
 * A lane of @p iface is given up, or @p back. @return it may have a log line; else a later line
 * counts it
 */
bool weft_iface_lane_line(struct weft_worker *w, const struct weft_lane_iface *iface, bool back);

#endif /* WEFT_IFACE_EVENT_H */
