/* SPDX-License-Identifier: BSD-3-Clause */

/* Reports of a worker for the management interfaces of its lanes' drivers (lane.h). */

#include <inttypes.h>
#include <stdio.h>

#include "core/endpoint.h"
#include "core/worker.h"
#include "msg/msg.h"
#include "proto/proto.h"
#include "roof.h"
#include "weft_plan.h"

static void report_counters(void *arg, weft_lane_counter_cb cb, void *cb_arg)
{
	weft_worker_counters(arg, cb, cb_arg);
}

static const char *help_of(const char *name)
{
	return weft_counter_help(name, NULL);
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
		/*
		 * The name is cut so that the numbers fit into the 127 bytes of DPDK's telemetry.
		 */
		snprintf(text, sizeof(text),
			 "to %.20s/%08" PRIx32 ": %s, %u of %u lanes up, %" PRIu64
			 " bytes sent, %" PRIu64 " received",
			 ep->remote_name, (uint32_t)(ep->remote_id >> 32), state_of(ep),
			 (unsigned int)__builtin_popcount(ep->lanes_up), ep->num_lanes, tx, rx);
		cb(text, cb_arg);
	}
	weft_worker_unlock(w);
}

static void report_lanes(void *arg, void (*cb)(const char *text, void *arg), void *cb_arg)
{
	struct weft_iface_info info;
	struct weft_worker *w = arg;
	char text[384];

	for (unsigned int i = 0; i < w->num_ifaces; i++) {
		info = (struct weft_iface_info)WEFT_INIT(struct weft_iface_info);
		if (weft_worker_query_iface(w, i, &info) != 0)
			continue;
		snprintf(text, sizeof(text),
			 "%s %s, %s, %.3f GB/s, %.2f us, %zu bytes a frame, at %s", info.name,
			 info.up ? "up" : "down", info.device, info.bandwidth / 1e9,
			 info.latency * 1e6, (size_t)info.frame_size, info.address);
		cb(text, cb_arg);
	}
}

/* Protocols of one operation by size, as far as they have been computed. */
static void report_select(const struct weft_ep_config *config, unsigned int set, enum weft_op op,
			  void (*cb)(const char *text, void *arg), void *cb_arg)
{
	const struct weft_proto_select *s = &config->select[op][weft_buf_usual(op)];
	size_t from = 0;
	char text[192], to[32];

	for (unsigned int i = 0; i < s->num; i++) {
		snprintf(to, sizeof(to), "to %zu", s->ranges[i].max);
		snprintf(text, sizeof(text),
			 "set %u, %" PRIu32 " endpoints, %s from %zu %s: %s, lanes %#" PRIx32, set,
			 config->refs, weft_op_name(op), from,
			 s->ranges[i].max == SIZE_MAX ? "on" : to,
			 s->ranges[i].proto ? s->ranges[i].proto->name : "none",
			 s->ranges[i].lanes);
		cb(text, cb_arg);
		from = s->ranges[i].max + 1;
	}
}

/* Endpoints with equal lanes share one set of thresholds. */
static void report_thresholds(void *arg, void (*cb)(const char *text, void *arg), void *cb_arg)
{
	const struct weft_ep_config *config;
	struct weft_worker *w = arg;
	unsigned int set = 0, op;

	weft_worker_lock(w);
	LIST_FOREACH(config, &w->msg->configs, link) {
		for (op = 0; op < WEFT_OP_LAST; op++)
			report_select(config, set, (enum weft_op)op, cb, cb_arg);
		set++;
	}
	weft_worker_unlock(w);
}

struct weft_lane_report weft_worker_report(struct weft_worker *w)
{
	return (struct weft_lane_report){
		.counters = report_counters,
		.help = help_of,
		.endpoints = report_endpoints,
		.lanes = report_lanes,
		.thresholds = report_thresholds,
		.arg = w,
	};
}
