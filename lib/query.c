/* SPDX-License-Identifier: BSD-3-Clause */

/* Queries of a worker's interfaces and counters, and calls of weft.h that need the tables. */

#include <errno.h>
#include <stdio.h>

#include "base/copy.h"
#include "core/address.h"
#include "core/wait.h"
#include "mem/mem.h"
#include "msg/msg.h"
#include "plan/plan.h"
#include "roof.h"
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

static void fill_link_info(const struct weft_worker *w, unsigned int index,
			   struct weft_iface_info *info)
{
	struct weft_lane_iface *iface = w->ifaces[index];
	const struct weft_iface_link *l = &w->links[index];
	char use[sizeof(info->why)];

	info->up = iface->ops->link_up(iface);
	info->up_after = l->up_after;
	/* The link event is handled by the next progress call. */
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
	snprintf(info->why, sizeof(info->why), "%s%s%s", iface->note,
		 iface->note[0] != '\0' ? "; " : "", use);
}

static const char *from_text(const char *from)
{
	return from ? from : "stated by the driver";
}

static void fill_iface_info(struct weft_lane_iface *iface, struct weft_iface_info *info)
{
	const struct weft_lane_attr *attr = &iface->attr;
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	snprintf(info->driver, sizeof(info->driver), "%s", iface->driver->name);
	snprintf(info->name, sizeof(info->name), "%s", iface->name);
	snprintf(info->device, sizeof(info->device), "%s", attr->device);
	iface->ops->get_address(iface, addr);
	iface->ops->print_address(addr, attr->dev_addr_len, info->address, sizeof(info->address));
	info->bandwidth = attr->bandwidth;
	info->latency = attr->latency;
	info->send_overhead = attr->send_overhead;
	info->recv_overhead = attr->recv_overhead;
	weft_mem_cost(((struct weft_worker *)iface->user)->ctx, iface, &info->reg_cost,
		      &info->reg_growth);
	snprintf(info->bandwidth_from, sizeof(info->bandwidth_from), "%s",
		 from_text(attr->bandwidth_from));
	snprintf(info->latency_from, sizeof(info->latency_from), "%s",
		 from_text(attr->latency_from));
	snprintf(info->overhead_from, sizeof(info->overhead_from), "%s",
		 from_text(attr->overhead_from));
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
	fill_iface_info(w->ifaces[index], &out);
	fill_link_info(w, index, &out);
	out.wakes = weft_wait_fd_of(w->ifaces[index]) >= 0;
	weft_worker_unlock(w);
	return weft_struct_out(info, &out, sizeof(out));
}

/* ------------------------------------------------------------------ counters */

#define LEVELS(X)                                                               \
	X(w->num_eps, "ep.open", "Endpoints now.")                              \
	X(w->conns->num_unclaimed, "ep.unclaimed",                              \
	  "Endpoints now that peers have begun and the program has not taken.") \
	X(w->conns->num_pending, "wireup.pending", "Requests to connect that wait now.")
#define SEARCHES(X) \
	X(w->conns->looks, "wireup.looks", "Entries checked to find a connection or a peer.")

/* clang-format off */
const struct weft_lane_counter weft_worker_counter_help[] = {
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
	weft_msg_counters(w, cb, arg);
	regcache_counters(w->ctx, cb, arg);
	weft_worker_unlock(w);
}

int weft_plan_read(const struct weft_config *config, FILE *in, const char *name,
		   struct weft_plan **out, char *why, size_t why_len)
{
	return weft_plan_read_with(weft_tables.protos, config, in, name, out, why, why_len);
}
