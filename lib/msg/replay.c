/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that a lane took along when it died (wireup/failover.c) go over another one, before
 * anything else of the endpoint. They are complete lane messages, wire-up's among them, and nobody
 * above knows that they are sent again. One lane gets them all, so that what waits for all messages
 * before it, a flush of the lane that died, can wait for that lane.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "msg/layer.h"
#include "msg/send.h"

struct weft_replay {
	STAILQ_ENTRY(weft_replay) link;
	struct weft_lane_comp *comp;
	size_t length, sent; /* sent: bytes that are with the lane */
	bool message;        /* else only a completion */
	uint8_t id;
	uint8_t data[];
};

/* What speaks of the connection that it came over is of no use on another one. */
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
	r = malloc(sizeof(*r) + length);
	if (!r) {
		if (comp)
			comp->done(comp, -ENOMEM);
		weft_msg_fail_later(me, -ENOMEM, "no memory for what a lane that died had to send");
		return;
	}
	*r = (struct weft_replay){.comp = comp, .length = length, .message = msg, .id = id};
	if (msg) {
		memcpy(r->data, msg, length);
		me->mw->count.replayed++;
	}
	STAILQ_INSERT_TAIL(&me->replay, r, link);
}

/*
 * A second lane dies while the first one's messages still wait. What it gives back was before them,
 * and what waits for all before it must find it there.
 */
void weft_msg_replay_begin(struct weft_ep *ep)
{
	struct weft_msg_ep *me = ep->msg;

	STAILQ_CONCAT(&me->replay_later, &me->replay);
}

void weft_msg_replay_end(struct weft_ep *ep)
{
	struct weft_msg_ep *me = ep->msg;

	STAILQ_CONCAT(&me->replay, &me->replay_later);
	weft_tx_kick(me);
	weft_flush_check(me);
}

bool weft_msg_replaying(const struct weft_ep *ep)
{
	return !STAILQ_EMPTY(&ep->msg->replay);
}

static uint32_t most_of(const struct weft_msg_lane *l)
{
	return l->max_bcopy > l->max_short ? l->max_bcopy : l->max_short;
}

struct part {
	const struct weft_replay *r;
	size_t take; /* bytes of r->data */
	size_t head; /* in front of them, written anew; 0 = the first part */
};

static ssize_t pack_part(void *dst, size_t max, void *arg)
{
	const struct part *p = arg;
	uint8_t room[WEFT_LANE_PIECE_ROOM];

	if (p->head + p->take > max)
		return -EMSGSIZE;
	if (p->head) {
		weft_msg_split(p->r->id, p->r->data, p->r->sent, room + sizeof(room));
		memcpy(dst, room + sizeof(room) - p->head, p->head);
	}
	memcpy((uint8_t *)dst + p->head, p->r->data + p->r->sent, p->take);
	return (ssize_t)(p->head + p->take);
}

static int hand_over(const struct weft_msg_lane *l, struct part *p)
{
	uint8_t buf[4096];
	ssize_t rc;

	if (p->head + p->take <= l->max_bcopy) {
		rc = l->lane_ep->ops->am_bcopy(l->lane_ep, p->r->id, pack_part, p);
		return rc < 0 ? (int)rc : 0;
	}
	rc = pack_part(buf, sizeof(buf), p);
	if (rc < 0)
		return (int)rc;
	return l->lane_ep->ops->am_short(l->lane_ep, p->r->id, buf, (size_t)rc, NULL, 0);
}

/* @return 0, -EAGAIN, -EMSGSIZE: the lane does not carry it, whole or in parts; or its error */
static int send_part(struct weft_msg_ep *me, struct weft_replay *r)
{
	struct weft_msg_lane *l = &me->lanes[me->replay_lane];
	size_t max = most_of(l), left = r->length - r->sent;
	struct part p = {.r = r};
	int rc;

	if (r->sent)
		p.head = weft_msg_split(r->id, r->data, r->sent, NULL);
	if (p.head >= max || (p.head + left > max && weft_msg_split(r->id, r->data, 0, NULL) == 0))
		return -EMSGSIZE;
	p.take = p.head + left > max ? max - p.head : left;
	rc = hand_over(l, &p);
	if (rc < 0)
		return rc;
	l->sent += p.head + p.take;
	r->sent += p.take;
	return 0;
}

static int finish(struct weft_msg_ep *me, struct weft_replay *r)
{
	struct weft_lane_ep *lane_ep = me->lanes[me->replay_lane].lane_ep;
	struct weft_lane_comp *comp = r->comp;
	int rc = comp ? lane_ep->ops->ep_flush(lane_ep, comp) : 0;

	if (rc < 0)
		return rc;
	STAILQ_REMOVE_HEAD(&me->replay, link);
	free(r);
	if (rc == WEFT_LANE_IDLE)
		comp->done(comp, 0);
	return 0;
}

/* The one that takes the largest messages, and it stays until nothing waits. */
static void choose_lane(struct weft_msg_ep *me)
{
	uint32_t best = 0;

	if (me->replaying && (me->lanes_up & 1u << me->replay_lane))
		return;
	me->replaying = true;
	for (uint32_t m = me->lanes_up; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		if (most_of(&me->lanes[i]) > best) {
			best = most_of(&me->lanes[i]);
			me->replay_lane = (uint8_t)i;
		}
	}
}

/* A part that is with a lane that died meanwhile has come back itself: the rest is what is left. */
static int serve_first(struct weft_msg_ep *me, struct weft_replay *r)
{
	int rc = 0;

	choose_lane(me);
	while (rc == 0 && r->message && r->sent < r->length)
		rc = send_part(me, r);
	return rc ? rc : finish(me, r);
}

unsigned int weft_replay_serve(struct weft_msg_ep *me)
{
	struct weft_replay *r;
	unsigned int n = 0;
	int rc;

	while (me->up && n < WEFT_TX_BURST && (r = STAILQ_FIRST(&me->replay))) {
		rc = serve_first(me, r);
		if (rc == -EMSGSIZE)
			weft_msg_fail_later(me, rc,
					    "no lane that is left carries a message as long as "
					    "one that a lane which died had to send");
		if (rc < 0)
			break; /* no room; or the lane has failed, which an event says */
		n++;
	}
	me->replaying = !STAILQ_EMPTY(&me->replay);
	return n;
}

void weft_replay_fail(struct weft_msg_ep *me, int status)
{
	struct weft_lane_comp *comp;
	struct weft_replay *r;

	STAILQ_CONCAT(&me->replay, &me->replay_later);
	while ((r = STAILQ_FIRST(&me->replay))) {
		STAILQ_REMOVE_HEAD(&me->replay, link);
		comp = r->comp;
		free(r);
		if (comp)
			comp->done(comp, status);
	}
}
