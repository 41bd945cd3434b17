/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which protocol a message of a connected endpoint would use, and forcing another one. Protocols
 * that could carry it, too: plan/plan.c.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/copy.h"
#include "msg/msg.h"
#include "proto/proto.h"

static double time_of(const struct weft_msg_ep *me, const struct weft_proto_key *key,
		      const struct weft_proto *proto, size_t length)
{
	struct weft_curve cv;

	if (weft_proto_curve(&me->config->model, key, proto, &cv) < 0 || length < cv.min ||
	    length > cv.max)
		return 0;
	return weft_curve_at(&cv, length);
}

static int query_chosen(const struct weft_msg_ep *me, enum weft_op op, size_t length,
			struct weft_proto_info *full)
{
	const struct weft_proto_key key = {op, weft_buf_usual(op)};
	const struct weft_proto_select *sel = weft_ep_config_select(me->config, op, key.buf);
	const struct weft_proto_range *r = sel->ranges;

	while (length > r->max)
		r++;
	if (!r->proto)
		return -EOPNOTSUPP;
	full->min = r > sel->ranges ? r[-1].max + 1 : 0;
	full->max = r->max;
	full->lanes = r->lanes;
	full->chosen = 1;
	full->usable = 1;
	full->time = time_of(me, &key, r->proto, length);
	snprintf(full->name, sizeof(full->name), "%s", r->proto->name);
	snprintf(full->desc, sizeof(full->desc), "%s", r->proto->desc);
	return 0;
}

int weft_ep_query_proto(struct weft_ep *ep, enum weft_op op, size_t length,
			struct weft_proto_info *info)
{
	struct weft_proto_info full = {.min = 0};
	int rc = -ENOTCONN;

	if ((unsigned int)op >= WEFT_OP_LAST)
		return -EINVAL;
	weft_worker_lock(ep->worker);
	if (ep->msg->up)
		rc = query_chosen(ep->msg, op, length, &full);
	weft_worker_unlock(ep->worker);
	return rc < 0 ? rc : weft_struct_out(info, &full, sizeof(full));
}

static int number_of(const struct weft_msg_ep *me, const char *name, unsigned int *number)
{
	const struct weft_proto *const *protos = me->mw->conf.model.protos;

	*number = 0;
	if (!name)
		return 0;
	while (protos[*number])
		if (strcmp(protos[(*number)++]->name, name) == 0)
			return 0;
	return -ENOENT;
}

int weft_ep_force_proto(struct weft_ep *ep, const char *name)
{
	struct weft_msg_ep *me = ep->msg;
	unsigned int number, before;
	int rc = number_of(me, name, &number);

	if (rc < 0)
		return rc;
	weft_worker_lock(ep->worker);
	before = me->forced;
	me->forced = number;
	if (me->up) {
		rc = weft_proto_select_build(me);
		if (rc < 0)
			me->forced = before;
		else
			weft_tx_update(me);
		rc = rc < 0 ? rc : 0; /* requests that have begun keep their protocol */
	}
	weft_worker_unlock(ep->worker);
	return rc;
}
