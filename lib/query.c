/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queries of a worker's interfaces and counters; weft_plan_read(), which needs the table of
 * protocols; reports to drivers; help of counters.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "context.h"
#include "core/address.h"
#include "core/worker.h"
#include "dispatch.h"
#include "mem/mem.h"
#include "msg/msg.h"
#include "plan/plan.h"
#include "proto/proto.h"
#include "wait.h"
#include "weft_plan.h"
#include "wireup/wireup.h"

/* ------------------------------------------------------------------ interfaces */

static const char *use_of(uint64_t features)
{
	if (features & WEFT_LANE_F_LOOPBACK)
		return "messages to the own worker";
	if (features & WEFT_LANE_F_CONTROL)
		return "connects peers where no other lane can";
	if (!weft_address_bootable(features))
		return "used once another lane has connected the peers";
	return "used";
}

static void fill_link_info(struct weft_worker *w, unsigned int index, struct weft_iface_info *info)
{
	struct weft_lane_iface *iface = w->ifaces[index];
	const struct weft_iface_link *l = &w->links[index];
	char use[160], why[256];

	info->up = iface->ops->link_up(iface);
	info->up_after = l->up_after;
	/* The link has come up since the last progress call: the next one will store this time. */
	if (info->up && !l->seen)
		info->up_after =
			(double)(w->ctx->platform->now(w->ctx->platform->arg) - l->since) * 1e-9;
	info->link_expected = !info->up && l->look_at != UINT64_MAX;
	if (info->up)
		snprintf(use, sizeof(use), "%s", use_of(iface->attr.features));
	else if (info->link_expected)
		snprintf(use, sizeof(use),
			 "no link yet: a NIC that was just started may need "
			 "some seconds");
	else
		weft_iface_link_text(iface, use, sizeof(use));
	snprintf(why, sizeof(why), "%s%s%s", iface->note, iface->note[0] != '\0' ? "; " : "", use);
	info->why = weft_texts_add(&w->texts, why);
}

static const char *from_text(const char *from)
{
	return from ? from : "stated by the driver";
}

static void fill_iface_info(struct weft_worker *w, struct weft_lane_iface *iface,
			    struct weft_iface_info *info)
{
	const struct weft_lane_attr *attr = &iface->attr;
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	char text[128];

	info->driver = iface->driver->name;
	info->name = iface->name;
	info->device = attr->device;
	iface->ops->get_address(iface, addr);
	iface->ops->print_address(addr, attr->dev_addr_len, text, sizeof(text));
	info->address = weft_texts_add(&w->texts, text);
	info->bandwidth = attr->bandwidth;
	info->latency = attr->latency;
	info->send_overhead = attr->send_overhead;
	info->recv_overhead = attr->recv_overhead;
	weft_mem_cost(w->ctx, iface, &info->reg_cost, &info->reg_growth);
	info->bandwidth_from = from_text(attr->bandwidth_from);
	info->latency_from = from_text(attr->latency_from);
	info->overhead_from = from_text(attr->overhead_from);
	info->max_short = attr->max_short;
	info->max_bcopy = attr->max_bcopy;
	info->max_zcopy = attr->max_zcopy;
	info->max_iov = attr->max_iov;
	info->frame_size = attr->frame_size;
	info->features = attr->features;
}

int weft_worker_query_iface(struct weft_worker *w, unsigned int index, struct weft_iface_info *info)
{
	struct weft_iface_info out = {0};

	if (!w || !info)
		return -EINVAL;
	if (index >= w->num_ifaces)
		return -ENOENT;
	weft_worker_lock(w);
	fill_iface_info(w, w->ifaces[index], &out);
	fill_link_info(w, index, &out);
	out.wakes = weft_wait_fd_of(w->ifaces[index]) >= 0;
	weft_worker_unlock(w);
	return weft_struct_out(info, &out, sizeof(out));
}

/* ------------------------------------------------------------------ counters */

#define LEVELS(X)                                                                               \
	X(w->now, "progress.clock_ns", "ns of the worker's clock at its newest progress call.") \
	X(w->num_eps, "ep.open", "Endpoints now.")                                              \
	X(w->conns->num_unclaimed, "ep.unclaimed",                                              \
	  "Endpoints now that peers have begun and the program has not taken.")                 \
	X(w->conns->by_lane_ep.num, "wireup.pending", "Requests to connect that wait now.")
#define SEARCHES(X) \
	X(w->conns->looks, "wireup.looks", "Entries checked to find a connection or a peer.")

/* Help of the counters of the connection layer and the registration cache. */
/* clang-format off */
static const struct weft_lane_counter worker_counter_help[] = {
	WEFT_WORKER_COUNTERS(WEFT_COUNTER_HELP)
	WEFT_REGCACHE_COUNTERS(WEFT_COUNTER_HELP)
	LEVELS(WEFT_LEVEL_HELP)
	SEARCHES(WEFT_COUNTER_HELP)
	WEFT_COUNTER_HELP_END
};
/* clang-format on */

/* Names of an iface's counters get the iface's name as a prefix. */
struct prefix {
	const char *name;
	void (*cb)(const char *name, uint64_t value, void *arg);
	void *arg;
};

static void prefixed(const char *name, uint64_t value, void *arg)
{
	const struct prefix *p = arg;
	char full[160];

	snprintf(full, sizeof(full), "%s.%s", p->name, name);
	p->cb(full, value, p->arg);
}

/* The registration cache belongs to the context: each of its workers reports the same values. */
static void regcache_counters(const struct weft_context *ctx,
			      void (*cb)(const char *name, uint64_t value, void *arg), void *arg)
{
	struct weft_regcache_stats stats;

	weft_regcache_query(ctx->regcache, &stats);
#define REPORT(field, name, help) cb(name, stats.field, arg);
	WEFT_REGCACHE_COUNTERS(REPORT)
#undef REPORT
}

void weft_worker_counters(struct weft_worker *w,
			  void (*cb)(const char *name, uint64_t value, void *arg), void *arg)
{
	struct prefix p = {.cb = cb, .arg = arg};
	unsigned int i;

	if (!w || !cb)
		return;
	weft_worker_lock(w);
	for (i = 0; i < w->num_ifaces; i++) {
		p.name = w->ifaces[i]->name;
		w->ifaces[i]->ops->counters(w->ifaces[i], prefixed, &p);
	}
#define REPORT(value, name, help) cb(name, value, arg);
	LEVELS(REPORT)
	SEARCHES(REPORT)
#undef REPORT
#define REPORT(field, name, help) cb(name, w->count.field, arg);
	WEFT_WORKER_COUNTERS(REPORT)
#undef REPORT
	weft_msg_report_counters(w, cb, arg);
	regcache_counters(w->ctx, cb, arg);
	weft_worker_unlock(w);
}

int weft_plan_read(const struct weft_config *config, FILE *in, const char *name,
		   struct weft_plan **out, char *why, size_t why_len)
{
	return weft_plan_read_with(weft_tables.protos, config, in, name, out, why, why_len);
}

/* ------------------------------------------------------------------ reports to drivers */

/* Reports of a worker for the management interfaces of its lanes' drivers (lane.h). */

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
		/* The name is cut: in DPDK's telemetry the whole text must fit 127 bytes. */
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

/* Report the protocol of each range of sizes. No text if the operation was not used yet. */
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

/* A choice is reported if it takes this factor times the time of the model's choice, or more. */
#define COSTLY 1.2

/*
 * The protocol for @p length bytes, and in @p us its time in us; NULL = no protocol carries them.
 */
static const struct weft_proto *costed(const struct weft_model *m,
				       const struct weft_proto_select *sel,
				       const struct weft_proto_key *key, size_t length, double *us)
{
	const struct weft_proto *proto = weft_proto_lookup(sel, length);
	struct weft_curve cv;

	if (!proto || weft_proto_curve(m, key, proto, &cv) < 0)
		return NULL;
	*us = weft_curve_at(&cv, length) * 1e6;
	return proto;
}

/*
 * Report that the user's threshold makes sends of @p length bytes slower than the model's choice by
 * COSTLY or more. @p model  the model, which decides in place of the user's threshold @p value
 */
static void report_cost(const struct weft_ep_config *config, unsigned int set,
			const struct weft_model *model, size_t value, size_t length,
			void (*cb)(const char *text, void *arg), void *cb_arg)
{
	const struct weft_proto_key key = {WEFT_OP_TAG_SEND, weft_buf_usual(WEFT_OP_TAG_SEND)};
	const struct weft_proto *own, *best;
	struct weft_proto_select sel;
	char text[192], number[32];
	double own_us = 0, best_us = 0;

	if (weft_proto_choose(model, &key, &sel, NULL, 0) < 0)
		return;
	own = costed(&config->model, &config->select[key.op][key.buf], &key, length, &own_us);
	best = costed(model, &sel, &key, length, &best_us);
	if (!own || !best || own == best || own_us < COSTLY * best_us)
		return;
	snprintf(number, sizeof(number), "%zu", value);
	snprintf(text, sizeof(text),
		 "set %u, RNDV_THRESH=%s: sends of %zu bytes by %s take %.1f us, by %s %.1f us",
		 set, value == WEFT_CONF_INF ? "inf" : number, length, own->name, own_us,
		 best->name, best_us);
	cb(text, cb_arg);
}

/*
 * If the user has set the rendezvous threshold, find its cost for the mean send of each class of
 * lengths. A class is reported if its sends take COSTLY times as long as by the model, or longer.
 */
static void report_costs(const struct weft_worker *w, const struct weft_ep_config *config,
			 unsigned int set, void (*cb)(const char *text, void *arg), void *cb_arg)
{
	struct weft_model model = config->model;
	size_t length, value = model.conf.rndv_thresh;

	if (value == WEFT_CONF_AUTO || value == WEFT_CONF_MODEL)
		return;
	model.conf.rndv_thresh = WEFT_CONF_MODEL;
	for (unsigned int i = 0; i < WEFT_LATENCY_SIZES; i++) {
		length = weft_latency_mean_size(&w->msg->stalls, i);
		if (length)
			report_cost(config, set, &model, value, length, cb, cb_arg);
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
		report_costs(w, config, set, cb, cb_arg);
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

/* ------------------------------------------------------------------ help of counters */

/* Help texts of counters, from the tables next to the code that counts. */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool names_entry(const char *name, const char *entry)
{
	for (; *entry; entry++) {
		if (*entry == '#') {
			if (!is_digit(*name))
				return false;
			while (is_digit(*name))
				name++;
		} else if (*name == *entry || (*name == '/' && *entry == '.')) {
			name++;
		} else {
			return false;
		}
	}
	return *name == '\0';
}

static const struct weft_lane_counter *find_help(const struct weft_lane_counter *table,
						 const char *name)
{
	for (; table && table->name; table++)
		if (names_entry(name, table->name))
			return table;
	return NULL;
}

/* Find the counter of an interface, whose name may have dots: "dpdk:0000:00:05.0.rx.frames". */
static const struct weft_lane_counter *find_in_driver(const char *name, size_t driver_len)
{
	const struct weft_lane_driver **drivers = weft_drivers_list();
	const struct weft_lane_counter *found = NULL;
	const char *p;

	for (unsigned int i = 0; drivers && drivers[i] && !found; i++) {
		if (strlen(drivers[i]->name) != driver_len ||
		    memcmp(drivers[i]->name, name, driver_len))
			continue;
		for (p = name + driver_len; *p && !found; p++)
			if (*p == '.' || *p == '/')
				found = find_help(drivers[i]->counters, p + 1);
	}
	free(drivers);
	return found;
}

static const struct weft_lane_counter *find_in_worker(const char *name)
{
	const struct weft_lane_counter *found = find_help(worker_counter_help, name);

	if (!found)
		found = find_help(weft_msg_counter_help, name);
	if (!found)
		found = find_help(weft_stall_counter_help, name);
	for (const struct weft_module *const *m = weft_tables.modules; *m && !found; m++)
		found = find_help((*m)->counter_help, name);
	return found;
}

const char *weft_counter_help(const char *name, bool *level)
{
	const struct weft_lane_counter *found = NULL;

	if (name && !strchr(name, ':'))
		found = find_in_worker(name);
	if (name && !found)
		found = find_in_driver(name, strcspn(name, ":./"));
	if (level)
		*level = found && found->level;
	return found ? found->help : NULL;
}
