/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that a dead lane returns (wireup/failover.c) go over another lane. Progress sends them
 * before it serves the endpoint's queues. They are complete lane messages. Those of wire-up are
 * sent again, too, except the ones about the dead lane itself (is_of_lane()). Layers above do not
 * notice that messages are sent again, even when one is longer than the new lane's limit and is cut
 * for it. One lane carries all of them. So a request that must follow all of them, such as a flush
 * of the dead lane, needs to wait for that lane only.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/lane_show.h"
#include "msg/endpoint.h"
#include "msg/replay.h"
#include "msg/send.h"

#define NO_MEMORY "no memory for the messages of a lane that died"

struct weft_replay {
	STAILQ_ENTRY(weft_replay) link;
	struct weft_lane_comp *comp;
	size_t length, sent; /* sent: bytes that are with the lane */
	bool message;        /* false: there is only comp */
	bool recast;         /* the message begins at room[0], not at data[0] */
	uint8_t id;
	uint8_t room[WEFT_RECAST_ROOM];
	uint8_t data[];
};

/* Messages about the connection of the dead lane have no meaning on another one. */
static bool is_of_lane(uint8_t id, const void *msg, size_t length)
{
	const struct weft_wire_wireup *h = msg;

	return id == WEFT_WIRE_WIREUP && msg && length >= sizeof(*h) &&
	       (h->type == WEFT_WIREUP_ATTACH || h->type == WEFT_WIREUP_ATTACHED ||
		h->type == WEFT_WIREUP_ACK);
}

void weft_msg_replay(void *arg, uint8_t id, const void *msg, size_t length,
		     struct weft_lane_comp *comp)
{
	struct weft_ep *ep = arg;
	struct weft_msg_ep *me = ep->msg;
	struct weft_replay *r;

	if (is_of_lane(id, msg, length))
		return;
	if (me->failed) {
		if (comp)
			comp->done(comp, -ECONNRESET);
		return;
	}
	r = weft_msg_rare_get(me) ? malloc(sizeof(*r) + length) : NULL;
	if (!r) {
		if (comp)
			comp->done(comp, -ENOMEM);
		weft_msg_fail_later(me, -ENOMEM, NO_MEMORY);
		return;
	}
	*r = (struct weft_replay){.comp = comp, .length = length, .message = msg, .id = id};
	if (msg) {
		memcpy(r->data, msg, length);
		me->mw->count.replayed++;
	}
	STAILQ_INSERT_TAIL(&me->rare->replay, r, link);
}

/*
 * A second lane may die while messages of the first one still wait here. The second lane's messages
 * were sent before those, and go first. So the flush of a request still follows all messages that
 * were sent before it.
 */
void weft_msg_replay_begin(struct weft_ep *ep)
{
	struct weft_msg_ep *me = ep->msg;

	if (me->rare)
		STAILQ_CONCAT(&me->rare->replay_later, &me->rare->replay);
}

void weft_msg_replay_end(struct weft_ep *ep)
{
	struct weft_msg_ep *me = ep->msg;

	if (me->rare)
		STAILQ_CONCAT(&me->rare->replay, &me->rare->replay_later);
	weft_tx_kick(me);
	weft_flush_check(me);
}

bool weft_msg_replaying(const struct weft_ep *ep)
{
	return weft_msg_has_replay(ep->msg);
}

static uint32_t most_of(const struct weft_msg_lane *l)
{
	return l->max_bcopy > l->max_short ? l->max_bcopy : l->max_short;
}

/* ------------------------------------------------------------------ for a lane that takes less */

static uint8_t *bytes_of(const struct weft_replay *r)
{
	return (uint8_t *)(uintptr_t)(r->recast ? r->room : r->data);
}

/*
 * Split a PUT that is too long into two halves, the second one behind the first. The receiver
 * counts PUTs, and each half counts as half a PUT. @return 0 or an error
 */
static int halve_put(struct weft_msg_ep *me, struct weft_replay *r)
{
	struct weft_replay *second = malloc(sizeof(*r) + r->length);
	size_t keep, rest;

	if (!second)
		return -ENOMEM;
	*second = (struct weft_replay){.comp = r->comp, .message = true, .id = r->id};
	keep = weft_put_halve(r->id, r->data, r->length, second->data, &rest);
	if (!keep) {
		free(second);
		return -EMSGSIZE;
	}
	second->length = rest;
	r->length = keep;
	r->comp = NULL; /* the second half has it */
	STAILQ_INSERT_AFTER(&me->rare->replay, r, second, link);
	return 0;
}

/* @return 0: the message can now be sent, whole or in parts; or an error */
static int fit_lane(struct weft_msg_ep *me, struct weft_replay *r, size_t max)
{
	uint8_t id;
	int rc = 0;

	while (rc == 0 && r->length > max && weft_msg_is_put(r->id, bytes_of(r)))
		rc = halve_put(me, r);
	if (rc || r->length <= max)
		return rc;
	id = r->recast ? 0 : weft_msg_recast(r->id, r->data, r->length);
	if (id) {
		r->id = id;
		r->recast = true;
		r->length += WEFT_RECAST_ROOM;
	}
	return weft_msg_part(r->id, bytes_of(r), 0, NULL) ? 0 : -EMSGSIZE;
}

/*
 * The longest part: the length that the lane carries well. A message that cannot be cut may have
 * any length up to the lane's limit.
 */
static size_t most_for(const struct weft_msg_lane *l, const struct weft_replay *r)
{
	size_t max = most_of(l), end = l->lane_ep->iface->attr.max_bcopy;

	if (r->length <= max || !l->max_bcopy || weft_msg_part(r->id, bytes_of(r), 0, NULL))
		return max;
	if (end > l->lane_ep->max_msg)
		end = l->lane_ep->max_msg;
	return r->length <= end ? r->length : max;
}

struct part {
	const struct weft_replay *r;
	size_t take; /* bytes of the message */
	size_t head; /* bytes of the new header in front of them; 0 = the first part */
};

static ssize_t pack_part(void *dst, size_t max, void *arg)
{
	const struct part *p = arg;
	uint8_t room[WEFT_LANE_PIECE_ROOM];

	if (p->head + p->take > max)
		return -EMSGSIZE;
	if (p->head) {
		weft_msg_part(p->r->id, bytes_of(p->r), p->r->sent, room + sizeof(room));
		memcpy(dst, room + sizeof(room) - p->head, p->head);
	}
	memcpy((uint8_t *)dst + p->head, bytes_of(p->r) + p->r->sent, p->take);
	return (ssize_t)(p->head + p->take);
}

static int hand_over(const struct weft_msg_lane *l, struct part *p)
{
	uint8_t buf[4096];
	ssize_t rc;

	if (l->max_bcopy &&
	    (p->head + p->take <= l->max_bcopy || p->head + p->take > l->max_short)) {
		rc = weft_lane_bcopy(l->lane_ep, p->r->id, pack_part, p);
		return rc < 0 ? (int)rc : 0;
	}
	rc = pack_part(buf, sizeof(buf), p);
	if (rc < 0)
		return (int)rc;
	return weft_lane_short(l->lane_ep, p->r->id, buf, (size_t)rc, NULL, 0);
}

/* @return 0; -EAGAIN; -EMSGSIZE: the lane cannot carry the message; or the lane's error */
static int send_part(struct weft_msg_ep *me, struct weft_replay *r)
{
	struct weft_msg_lane *l = &me->lanes[me->replay_lane];
	size_t max = r->sent ? most_of(l) : most_for(l, r), head;
	struct part p = {.r = r};
	int rc = r->sent ? 0 : fit_lane(me, r, max);

	if (rc < 0)
		return rc;
	head = weft_msg_part(r->id, bytes_of(r), r->sent, NULL);
	p.head = r->sent ? head : 0;
	p.take = r->length - r->sent;
	if (p.head + p.take > max) {
		if (head >= max)
			return -EMSGSIZE;
		p.take = max - p.head;
	}
	rc = hand_over(l, &p);
	if (rc < 0)
		return rc;
	l->sent += p.head + p.take;
	r->sent += p.take;
	return 0;
}

static int replay_sent(struct weft_msg_ep *me, struct weft_replay *r)
{
	struct weft_lane_ep *lane_ep = me->lanes[me->replay_lane].lane_ep;
	struct weft_lane_comp *comp = r->comp;
	int rc = comp ? lane_ep->ops->ep_flush(lane_ep, comp) : 0;

	if (rc < 0)
		return rc;
	STAILQ_REMOVE_HEAD(&me->rare->replay, link);
	free(r);
	if (rc == WEFT_LANE_IDLE)
		comp->done(comp, 0);
	return 0;
}

/* The lane with the largest messages is used until no message waits, or it is down. */
static void choose_lane(struct weft_msg_ep *me)
{
	uint32_t best = 0;

	if (me->replaying && (me->lanes_up & 1u << me->replay_lane))
		return;
	for (uint32_t m = me->lanes_up; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		if (most_of(&me->lanes[i]) > best) {
			best = most_of(&me->lanes[i]);
			me->replay_lane = (uint8_t)i;
		}
	}
}

/*
 * A lane may die when it has taken a part of the message. The lane then returns this part, which is
 * sent again before the message. So only the rest is sent here.
 */
static int serve_first(struct weft_msg_ep *me, struct weft_replay *r)
{
	int rc = 0;

	choose_lane(me);
	while (rc == 0 && r->message && r->sent < r->length)
		rc = send_part(me, r);
	return rc ? rc : replay_sent(me, r);
}

unsigned int weft_replay_serve(struct weft_msg_ep *me)
{
	unsigned int n = 0;
	int rc;

	while (me->up && n < WEFT_TX_BURST && weft_msg_has_replay(me)) {
		rc = serve_first(me, STAILQ_FIRST(&me->rare->replay));
		if (rc == -EMSGSIZE)
			weft_msg_fail_later(me, rc,
					    "no remaining lane carries a message as long as "
					    "one of a lane that died");
		if (rc == -ENOMEM)
			weft_msg_fail_later(me, rc, NO_MEMORY);
		if (rc < 0)
			break; /* no room; or the lane has failed, which an event reports */
		n++;
	}
	me->replaying = weft_msg_has_replay(me);
	return n;
}

void weft_replay_fail(struct weft_msg_ep *me, int status)
{
	struct weft_lane_comp *comp;
	struct weft_replay *r;

	if (!me->rare)
		return;
	STAILQ_CONCAT(&me->rare->replay, &me->rare->replay_later);
	while ((r = STAILQ_FIRST(&me->rare->replay))) {
		STAILQ_REMOVE_HEAD(&me->rare->replay, link);
		comp = r->comp;
		free(r);
		if (comp)
			comp->done(comp, status);
	}
}
