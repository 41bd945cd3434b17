/* SPDX-License-Identifier: BSD-3-Clause */

#include "mock/mock_priv.h"

struct mock_lane_ep *mock_lane_ep_new(struct weft_lane_iface *iface, void *user)
{
	struct mock_lane_ep *lane_ep = calloc(1, sizeof(*lane_ep));

	assert_non_null(lane_ep);
	lane_ep->base.iface = iface;
	lane_ep->base.ops = iface->ops;
	lane_ep->base.user = user;
	lane_ep->base.max_msg =
		(uint32_t)(iface->attr.max_zcopy > iface->attr.max_bcopy ? iface->attr.max_zcopy
									 : iface->attr.max_bcopy);
	if (lane_ep->base.max_msg < iface->attr.max_short)
		lane_ep->base.max_msg = (uint32_t)iface->attr.max_short;
	if (to_iface(iface)->no_reads)
		lane_ep->base.lacks = WEFT_LANE_F_GET | WEFT_LANE_F_AMO64;
	lane_ep->deadline = UINT64_MAX;
	mock_net.num_lane_eps++;
	return lane_ep;
}

static struct mock_iface *find_iface(uint64_t id)
{
	struct mock_iface *f;

	LIST_FOREACH(f, &mock_net.ifaces, entry)
		if (f->id == id)
			return f;
	return NULL;
}

static const struct refusal *refusal_of(const struct mock_iface *from, const struct mock_iface *to)
{
	unsigned int i;

	for (i = 0; i < mock_net.num_refusals; i++)
		if ((!mock_net.refusals[i].from || mock_net.refusals[i].from == from) &&
		    (!mock_net.refusals[i].to || mock_net.refusals[i].to == to))
			return &mock_net.refusals[i];
	return NULL;
}

int mock_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		    struct weft_lane_ep **out)
{
	struct mock_iface *f = to_iface(base);
	struct mock_lane_ep *lane_ep;

	if (len != 16)
		return -EINVAL;
	if (f->down)
		return -ENETDOWN;
	lane_ep = mock_lane_ep_new(base, user);
	memcpy(&lane_ep->target, addr, sizeof(lane_ep->target));
	lane_ep->deadline = mock_now + f->connect_timeout;
	snprintf(lane_ep->text, sizeof(lane_ep->text), "mock-%llu gave no answer",
		 (unsigned long long)lane_ep->target);
	LIST_INSERT_HEAD(&f->lane_eps, lane_ep, entry);
	*out = &lane_ep->base;
	return 0;
}

/* Connects that go to @p f: its progress answers them. */
void mock_answer_connects(struct mock_iface *f)
{
	const struct refusal *no;
	struct mock_lane_ep *lane_ep, *passive;
	struct mock_iface *g;

	if (f->muted || f->down)
		return;
	LIST_FOREACH(g, &mock_net.ifaces, entry) {
		LIST_FOREACH(lane_ep, &g->lane_eps, entry) {
			if (lane_ep->target != f->id || lane_ep->dead || g->muted ||
			    find_iface(f->id) != f)
				continue;
			no = refusal_of(g, f);
			if (no && no->status == 0)
				continue;
			lane_ep->target = 0;
			lane_ep->deadline = UINT64_MAX;
			if (no) {
				lane_ep->down_due = true;
				lane_ep->down_status = no->status;
				snprintf(lane_ep->text, sizeof(lane_ep->text), "%s", no->text);
				continue;
			}
			passive = mock_lane_ep_new(&f->base, NULL);
			passive->base.passive = true;
			passive->peer = lane_ep;
			lane_ep->peer = passive;
			passive->up_due = lane_ep->up_due = true;
			LIST_INSERT_HEAD(&f->lane_eps, passive, entry);
		}
	}
}

void mock_free_zombies(struct mock_iface *f)
{
	struct mock_lane_ep *lane_ep;

	while ((lane_ep = f->zombies)) {
		f->zombies = lane_ep->peer;
		free(lane_ep);
	}
}

void mock_ep_destroy(struct weft_lane_ep *base)
{
	struct mock_lane_ep *lane_ep = to_lane_ep(base);
	struct mock_iface *f = to_iface(base->iface), *g;
	struct mock_done *d;
	struct mock_msg *m;
	unsigned int i;

	assert_false(lane_ep->dead);
	LIST_REMOVE(lane_ep, entry);
	lane_ep->dead = true;
	base->up = false;
	mock_net.num_lane_eps--;
	mock_purge_to(lane_ep, -ECONNRESET);
	/* Own messages go on; no event reports their fate any more. */
	LIST_FOREACH(g, &mock_net.ifaces, entry) {
		TAILQ_FOREACH(m, &g->inbox, entry) {
			if (m->from != lane_ep)
				continue;
			m->from = NULL;
			if (m->comp)
				mock_comp_due(lane_ep, m->comp, -ECANCELED);
		}
	}
	for (i = 0; i < lane_ep->num_flush; i++)
		mock_comp_due(lane_ep, lane_ep->flush[i], -ECANCELED);
	lane_ep->num_flush = 0;
	mock_cancel_rmas(f, lane_ep);
	for (d = mock_net.slow_hardware ? NULL : STAILQ_FIRST(&f->done); d != NULL;
	     d = !d ? STAILQ_FIRST(&f->done) : STAILQ_NEXT(d, entry)) {
		if (d->lane_ep != lane_ep)
			continue;
		STAILQ_REMOVE(&f->done, d, mock_done, entry);
		d->comp->done(d->comp, d->status);
		free(d);
		d = NULL; /* the callback may have changed the list */
		if (STAILQ_EMPTY(&f->done))
			break;
	}
	if (lane_ep->peer) {
		lane_ep->peer->gone_due = true;
		lane_ep->peer->peer = NULL;
	}
	lane_ep->peer = f->zombies;
	f->zombies = lane_ep;
}

int mock_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
{
	struct mock_lane_ep *lane_ep = to_lane_ep(base);

	if (lane_ep->down_due)
		return lane_ep->down_status;
	if (lane_ep->outstanding == 0)
		return WEFT_LANE_IDLE;
	if (lane_ep->num_flush == 8)
		return -EAGAIN;
	lane_ep->flush[lane_ep->num_flush++] = comp;
	return 0;
}

bool mock_ep_is_from(struct weft_lane_ep *base, const void *addr, size_t len)
{
	struct mock_lane_ep *lane_ep = to_lane_ep(base);
	uint64_t id;

	if (len != 16 || !lane_ep->peer)
		return false;
	memcpy(&id, addr, sizeof(id));
	if (lane_ep->peer->unknown_sender)
		return lane_ep->peer->at == 0 || lane_ep->peer->at == id;
	return iface_of(lane_ep->peer)->id == id;
}

/* An unknown sender is its own host unless it was put somewhere. */
uint64_t mock_ep_host(const struct weft_lane_ep *base)
{
	const struct mock_lane_ep *lane_ep = (const struct mock_lane_ep *)base;

	if (!lane_ep->peer)
		return 0;
	if (lane_ep->peer->unknown_sender)
		return lane_ep->peer->at != 0 ? lane_ep->peer->at : (uintptr_t)lane_ep->peer;
	return iface_of(lane_ep->peer)->id;
}

/*
 * Another iface has the peer's address now, and the peer's is mute: what is asked there does not
 * know us.
 */
void mock_ep_check(struct weft_lane_ep *base)
{
	struct mock_lane_ep *lane_ep = to_lane_ep(base);
	struct mock_iface *peer, *f;

	if (!lane_ep->peer || lane_ep->peer->unknown_sender || !iface_of(lane_ep->peer)->muted)
		return;
	peer = iface_of(lane_ep->peer);
	LIST_FOREACH(f, &mock_net.ifaces, entry) {
		if (f != peer && f->id == peer->id && !f->muted && !lane_ep->down_due) {
			lane_ep->down_due = true;
			lane_ep->down_status = -ECONNRESET;
			snprintf(lane_ep->text, sizeof(lane_ep->text), "the peer was restarted");
		}
	}
}

/* ------------------------------------------------------------------ events */

static bool has_messages(struct mock_iface *f, const struct mock_lane_ep *lane_ep)
{
	struct mock_msg *m;

	TAILQ_FOREACH(m, &f->inbox, entry)
		if (m->to == lane_ep)
			return true;
	return false;
}

/* One event of one lane_ep. @return false when there is none */
bool mock_run_event(struct mock_iface *f)
{
	struct mock_lane_ep *lane_ep;

	LIST_FOREACH(lane_ep, &f->lane_eps, entry) {
		if (lane_ep->up_due) {
			lane_ep->up_due = false;
			lane_ep->base.up = lane_ep->base.tx_room = true;
			f->event(f->arg, &lane_ep->base, WEFT_LANE_EV_UP, 0, "connected");
			return true;
		}
		if (mock_now >= lane_ep->deadline && !lane_ep->down_due) {
			lane_ep->down_due = true;
			lane_ep->down_status = -ETIMEDOUT;
		}
		if (lane_ep->down_due && lane_ep->deadline != 0) {
			lane_ep->deadline = 0; /* reported */
			lane_ep->base.up = false;
			f->event(f->arg, &lane_ep->base, WEFT_LANE_EV_DOWN, lane_ep->down_status,
				 lane_ep->text);
			return true;
		}
		if (lane_ep->gone_due && !has_messages(f, lane_ep)) {
			lane_ep->gone_due = false;
			lane_ep->base.up = false;
			f->event(f->arg, &lane_ep->base, WEFT_LANE_EV_GONE, 0,
				 "the peer closed the connection");
			return true;
		}
	}
	return false;
}
