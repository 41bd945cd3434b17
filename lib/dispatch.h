/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dispatch.h
 * The path of a received message from a lane to its module; the tables of modules, messages and
 * protocols; the reports of a worker, which need these tables. The files directly in lib/ may
 * include headers of every folder. Files in the folders of lib/ include, of the headers directly in
 * lib/, weft*.h and lane*.h only.
 */
#ifndef WEFT_DISPATCH_H
#define WEFT_DISPATCH_H

#include <stdbool.h>

#include "core/worker.h"
#include "lane.h"

/** weft_lane_open.recv(). @param arg  the worker */
int weft_worker_recv(void *arg, struct weft_lane_ep *lane_ep, uint8_t id, const void *data,
		     size_t length, void *desc);
/** weft_lane_open.recv_batch(). */
unsigned int weft_worker_recv_batch(struct weft_lane_ep *lane_ep, const struct weft_lane_msg *msgs,
				    unsigned int num);
/** weft_lane_open.recv_in_place(). */
bool weft_worker_recv_in_place(struct weft_lane_ep *lane_ep, uint8_t id, const void *head,
			       size_t head_len, const void *shared, size_t length);
/** Handle a message, other than wire-up, that arrived on lane @p lane of @p ep. */
void weft_msg_recv(struct weft_ep *ep, unsigned int lane, uint8_t id, const void *data,
		   size_t length);

/** The tables of this build. */
extern const struct weft_tables weft_tables;

/** The functions that report the worker's counters, lanes and endpoints (query.c). */
struct weft_lane_report weft_worker_report(struct weft_worker *w);

#endif /* WEFT_DISPATCH_H */
