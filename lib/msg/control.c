/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages without payload. They are sent now, or stored and sent as soon as a lane has room. They
 * need no order.
 */

#include <errno.h>
#include <stdlib.h>

#include "core/lane_show.h"
#include "msg/credit.h"
#include "msg/send.h"

struct small_arg {
	const void *data;
	size_t length;
};

static ssize_t pack_small(void *dst, size_t max, void *arg)
{
	const struct small_arg *s = arg;

	if (max < s->length)
		return -EMSGSIZE;
	memcpy(dst, s->data, s->length);
	return (ssize_t)s->length;
}

static int small_on(struct weft_msg_lane *l, uint8_t id, const void *data, size_t length)
{
	struct small_arg arg = {data, length};

	if (length <= l->max_short)
		return weft_lane_short(l->lane_ep, id, data, length, NULL, 0);
	return weft_lane_bcopy(l->lane_ep, id, pack_small, &arg) < 0 ? -EAGAIN : 0;
}

int weft_tx_envelope(struct weft_msg_ep *me, unsigned int lane, uint8_t id, const void *data,
		     size_t length)
{
	if (small_on(&me->lanes[lane], id, data, length))
		return -EAGAIN;
	me->ep->lane_info[lane].tx_msgs++;
	return 0;
}

/* The lowest-latency lane if it has room, else any that has. */
int weft_tx_envelope_any(struct weft_msg_ep *me, uint8_t id, const void *data, size_t length)
{
	uint32_t rest;
	int rc;

	if (!me->up)
		return -EAGAIN;
	rc = weft_tx_envelope(me, me->am_lane, id, data, length);
	for (rest = me->lanes_up & ~(1u << me->am_lane); rc && rest; rest &= rest - 1)
		rc = weft_tx_envelope(me, (unsigned int)__builtin_ctz(rest), id, data, length);
	return rc;
}

static int ctl_send(struct weft_msg_ep *me, int lane, uint8_t id, const void *data, size_t length)
{
	if (lane == WEFT_TX_ANY_LANE || !me->up || !(me->lanes_up & 1u << lane) ||
	    (length > me->lanes[lane].max_short && length > me->lanes[lane].max_bcopy))
		return weft_tx_envelope_any(me, id, data, length);
	return weft_tx_envelope(me, (unsigned int)lane, id, data, length);
}

void weft_tx_ctl_on(struct weft_msg_ep *me, int lane, uint8_t id, const void *data, size_t length)
{
	struct weft_ctl *ctl;

	if (me->failed || !me->ep)
		return;
	if (STAILQ_EMPTY(&me->ctl) && ctl_send(me, lane, id, data, length) == 0)
		return;
	ctl = malloc(sizeof(*ctl) + length);
	if (!ctl) {
		/* The peer would wait forever: fail the endpoint, which both ends detect. */
		weft_msg_fail_later(me, -ENOMEM, "no memory for a control message");
		return;
	}
	ctl->id = id;
	ctl->lane = (int8_t)lane;
	ctl->length = (uint16_t)length;
	memcpy(ctl->data, data, length);
	STAILQ_INSERT_TAIL(&me->ctl, ctl, link);
	me->num_ctl++;
	weft_tx_kick(me);
}

void weft_tx_ctl(struct weft_msg_ep *me, uint8_t id, const void *data, size_t length)
{
	weft_tx_ctl_on(me, WEFT_TX_ANY_LANE, id, data, length);
}

unsigned int weft_tx_serve_ctl(struct weft_msg_ep *me)
{
	STAILQ_HEAD(, weft_ctl) later = STAILQ_HEAD_INITIALIZER(later);
	struct weft_ctl *ctl;
	uint32_t full = 0;
	unsigned int n = 0;
	bool all_full = false;

	/* A message that waits for its lane does not block the others. */
	while ((ctl = STAILQ_FIRST(&me->ctl))) {
		uint32_t lane = ctl->lane == WEFT_TX_ANY_LANE ? 0 : 1u << ctl->lane;
		bool sent = !(full & lane) &&
			    ctl_send(me, ctl->lane, ctl->id, ctl->data, ctl->length) == 0;

		all_full = !sent && !lane;
		if (all_full)
			break;
		STAILQ_REMOVE_HEAD(&me->ctl, link);
		full |= sent ? 0 : lane;
		n += sent;
		me->num_ctl -= sent;
		if (sent)
			free(ctl);
		else
			STAILQ_INSERT_TAIL(&later, ctl, link);
	}
	STAILQ_CONCAT(&later, &me->ctl);
	STAILQ_CONCAT(&me->ctl, &later);
	/* A message that waits for a particular lane does not block credit. */
	if (me->credit_due && !all_full)
		weft_credit_send(me);
	return n;
}

void weft_tx_drop_ctl(struct weft_msg_ep *me)
{
	struct weft_ctl *ctl;

	while ((ctl = STAILQ_FIRST(&me->ctl))) {
		STAILQ_REMOVE_HEAD(&me->ctl, link);
		free(ctl);
	}
	me->num_ctl = 0;
}
