/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: filled from a profile or from a live endpoint. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "base/host.h"
#include "base/log.h"
#include "msg/msg.h"
#include "plan/plan.h"

static const char *const op_names[] = {
	[WEFT_OP_TAG_SEND] = "tag_send",
	[WEFT_OP_TAG_SEND_SYNC] = "tag_send_sync",
	[WEFT_OP_AM_SEND] = "am_send",
	[WEFT_OP_PUT] = "put",
	[WEFT_OP_GET] = "get",
	[WEFT_OP_AMO] = "amo",
	[WEFT_OP_AMO_FETCH] = "amo_fetch",
	[WEFT_OP_RNDV_DATA] = "rndv_data",
};

#define NUM_NAMES (sizeof(op_names) / sizeof(op_names[0]))

const char *weft_op_name(enum weft_op op)
{
	return (size_t)op < NUM_NAMES ? op_names[op] : NULL;
}

int weft_op_find(const char *name)
{
	/* Names that users, and weft-perf, use. */
	if (name && (strcmp(name, "fadd") == 0 || strcmp(name, "cswap") == 0))
		return WEFT_OP_AMO_FETCH;
	for (size_t i = 0; name && i < NUM_NAMES; i++)
		if (op_names[i] && strcmp(name, op_names[i]) == 0)
			return (int)i;
	return -EINVAL;
}

int weft_plan_read_with(const struct weft_proto *const *protos, const struct weft_config *config,
			FILE *in, const char *name, struct weft_plan **out, char *why,
			size_t why_len)
{
	struct weft_config *conf;
	struct weft_plan *plan;
	int rc;

	if (!in || !name || !out)
		return -EINVAL;
	rc = weft_config_copy(config, &conf);
	if (rc < 0) {
		snprintf(why, why_len, "%s", weft_strerror(rc));
		return rc;
	}
	plan = calloc(1, sizeof(*plan));
	if (plan) {
		snprintf(plan->title, sizeof(plan->title), "lanes of %.100s", name);
		plan->measured = !(conf->conf.bcopy_bw > 0);
		weft_model_conf_read(&plan->model.conf, &conf->conf,
				     weft_bcopy_bw(&weft_platform_host), protos);
		rc = weft_profile_parse(in, name, plan, why, why_len);
	} else {
		rc = -ENOMEM;
		snprintf(why, why_len, "no memory");
	}
	weft_config_release(conf);
	if (rc < 0) {
		free(plan);
		return rc;
	}
	*out = plan;
	return 0;
}

/* Fill a plan from an endpoint that is up. */
static void plan_fill(const struct weft_msg_ep *me, struct weft_plan *plan)
{
	const struct weft_ep *ep = me->ep;

	memcpy(&plan->model, &me->config->model, sizeof(plan->model));
	snprintf(plan->title, sizeof(plan->title), "lanes to worker %016llx (%.64s)",
		 (unsigned long long)ep->remote_id, ep->remote_name);
	plan->measured = !(me->mw->worker->ctx->conf->bcopy_bw > 0);
	for (uint32_t left = me->lanes_up; left; left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(left);
		const struct weft_lane_iface *iface = me->lanes[i].lane_ep->iface;
		struct weft_plan_lane *l = &plan->lanes[i];

		snprintf(l->name, sizeof(l->name), "%u:%.60s", i, iface->name);
		snprintf(l->driver, sizeof(l->driver), "%.15s",
			 iface->driver ? iface->driver->name : "");
		snprintf(l->device, sizeof(l->device), "%s", iface->attr.device);
		snprintf(l->domain, sizeof(l->domain), "%s", iface->attr.domain);
		snprintf(l->why, sizeof(l->why), "%s", ep->lane_info[i].why);
	}
}

int weft_plan_of_ep(struct weft_ep *ep, struct weft_plan **out)
{
	struct weft_plan *plan;
	int rc = -ENOTCONN;

	if (!ep || !out)
		return -EINVAL;
	plan = calloc(1, sizeof(*plan));
	if (!plan)
		return -ENOMEM;
	weft_worker_lock(ep->worker);
	if (ep->msg && ep->msg->up) {
		plan_fill(ep->msg, plan);
		rc = 0;
	}
	weft_worker_unlock(ep->worker);
	if (rc < 0) {
		free(plan);
		return rc;
	}
	*out = plan;
	return 0;
}

/* Tables of the operations and buffers that programs commonly use. */
static void print_all(const struct weft_plan *plan, FILE *out)
{
	for (unsigned int op = 0; op < WEFT_OP_LAST; op++) {
		struct weft_proto_key key = {(enum weft_op)op, weft_buf_usual((enum weft_op)op)};
		struct weft_proto_select sel;

		/*
		 * Operations without a protocol, or that these lanes do not support, are not
		 * printed.
		 */
		if (weft_proto_choose(&plan->model, &key, &sel, NULL, 0) == 0)
			weft_plan_print_key(plan, out, &key, WEFT_PLAN_TABLE);
	}
}

void weft_plan_settled(struct weft_ep *ep)
{
	struct weft_plan *plan;
	char *text = NULL;
	size_t length = 0;
	FILE *out;

	if (!ep->worker->ctx->conf->proto_info || !ep->msg || !ep->msg->up ||
	    ep->msg->config->logged)
		return;
	plan = calloc(1, sizeof(*plan));
	out = plan ? open_memstream(&text, &length) : NULL;
	if (out) {
		plan_fill(ep->msg, plan);
		print_all(plan, out);
		if (fclose(out) == 0)
			weft_log_block(text, length);
		ep->msg->config->logged = true;
	}
	free(text);
	free(plan);
}

void weft_plan_destroy(struct weft_plan *plan)
{
	free(plan);
}

/* Protocol @p index among those that implement the operation; NULL past the last. */
static const struct weft_proto *nth(const struct weft_plan *plan, const struct weft_proto_key *key,
				    unsigned int index)
{
	for (const struct weft_proto *const *p = plan->model.conf.protos; *p; p++)
		if (weft_proto_implements(*p, key) && index-- == 0)
			return *p;
	return NULL;
}

int weft_plan_query(const struct weft_plan *plan, enum weft_op op, size_t length,
		    unsigned int index, struct weft_proto_info *info)
{
	struct weft_proto_key key = {op, weft_buf_usual(op)};
	struct weft_proto_info full = {.min = 1};
	struct weft_proto_select sel;
	const struct weft_proto *proto;
	struct weft_curve cv;

	if (!plan || !info || (unsigned int)op >= WEFT_OP_LAST)
		return -EINVAL;
	proto = nth(plan, &key, index);
	if (!proto)
		return -ENOENT;
	snprintf(full.name, sizeof(full.name), "%s", proto->name);
	snprintf(full.desc, sizeof(full.desc), "%s", proto->desc);
	if (weft_proto_curve(&plan->model, &key, proto, &cv) < 0) {
		snprintf(full.why, sizeof(full.why), "%s", cv.why);
		return weft_struct_out(info, &full, sizeof(full));
	}
	full.min = cv.min;
	full.max = cv.max;
	full.lanes = cv.lanes;
	full.usable = cv.min <= length && length <= cv.max;
	if (full.usable) {
		full.time = weft_curve_at(&cv, length);
		weft_proto_choose(&plan->model, &key, &sel, NULL, 0);
		full.chosen = weft_proto_lookup(&sel, length) == proto;
	}
	return weft_struct_out(info, &full, sizeof(full));
}
