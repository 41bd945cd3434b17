/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a worker tells the management interfaces of its lanes' drivers, and calls of weft.h that
 * need the tables.
 */

#include <inttypes.h>
#include <stdio.h>

#include "core/core.h"
#include "plan/plan.h"

static void report_counters(void *arg, weft_lane_counter_cb cb, void *cb_arg)
{
	weft_worker_counters(arg, cb, cb_arg);
}

static const char *state_of(const struct weft_ep *ep)
{
	switch (ep->state) {
	case WEFT_EP_CONNECTING:
		return "connecting";
	case WEFT_EP_UP:
		return "up";
	case WEFT_EP_CLOSING:
		return "closing";
	case WEFT_EP_FAILED:
		return "failed";
	}
	return "?";
}

static void report_endpoints(void *arg, void (*cb)(const char *text, void *arg), void *cb_arg)
{
	struct weft_worker *w = arg;
	struct weft_ep *ep;
	char text[256];
	unsigned int i;
	uint64_t tx, rx;

	weft_worker_lock(w);
	LIST_FOREACH(ep, &w->eps, entry) {
		for (tx = rx = 0, i = 0; i < ep->num_lanes; i++) {
			tx += ep->lane_info[i].tx_bytes;
			rx += ep->lane_info[i].rx_bytes;
		}
		snprintf(text, sizeof(text),
			 "to %.64s/%08" PRIx32 ": %s, %u of %u lanes up, %" PRIu64
			 " bytes sent, %" PRIu64 " received",
			 ep->remote_name, (uint32_t)(ep->remote_id >> 32), state_of(ep),
			 (unsigned int)__builtin_popcount(ep->lanes_up), ep->num_lanes, tx, rx);
		cb(text, cb_arg);
	}
	weft_worker_unlock(w);
}

struct weft_lane_report weft_worker_report(struct weft_worker *w)
{
	return (struct weft_lane_report){
		.counters = report_counters,
		.endpoints = report_endpoints,
		.arg = w,
	};
}

int weft_plan_read(const struct weft_config *config, FILE *in, const char *name,
		   struct weft_plan **out, char *why, size_t why_len)
{
	return weft_plan_read_with(weft_tables.protos, config, in, name, out, why, why_len);
}
