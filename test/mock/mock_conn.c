/* SPDX-License-Identifier: BSD-3-Clause */

#include "mock/mock_priv.h"

struct mock_lep *mock_lep_new(struct weft_lane_iface *iface, void *user)
{
	struct mock_lep *lep = calloc(1, sizeof(*lep));

	assert_non_null(lep);
	lep->base.iface = iface;
	lep->base.ops = iface->ops;
	lep->base.user = user;
	lep->base.max_msg =
		(uint32_t)(iface->attr.max_zcopy > iface->attr.max_bcopy ? iface->attr.max_zcopy
									 : iface->attr.max_bcopy);
	if (lep->base.max_msg < iface->attr.max_short)
		lep->base.max_msg = (uint32_t)iface->attr.max_short;
	if (to_iface(iface)->no_reads)
		lep->base.lacks = WEFT_LANE_F_GET | WEFT_LANE_F_AMO64;
	lep->deadline = UINT64_MAX;
	mock_net.num_leps++;
	return lep;
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
		if ((mock_net.refusals[i].from == NULL || mock_net.refusals[i].from == from) &&
		    (mock_net.refusals[i].to == NULL || mock_net.refusals[i].to == to))
			return &mock_net.refusals[i];
	return NULL;
}

int mock_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		    struct weft_lane_ep **out)
{
	struct mock_iface *f = to_iface(base);
	struct mock_lep *lep;

	if (len != 16)
		return -EINVAL;
	if (f->down)
		return -ENETDOWN;
	lep = mock_lep_new(base, user);
	memcpy(&lep->target, addr, sizeof(lep->target));
	lep->deadline = mock_now + f->connect_timeout;
	snprintf(lep->text, sizeof(lep->text), "mock-%llu gave no answer",
		 (unsigned long long)lep->target);
	LIST_INSERT_HEAD(&f->leps, lep, entry);
	*out = &lep->base;
	return 0;
}

/* Connects that go to @p f: its progress answers them. */
void mock_answer_connects(struct mock_iface *f)
{
	const struct refusal *no;
	struct mock_lep *lep, *passive;
	struct mock_iface *g;

	if (f->muted || f->down)
		return;
	LIST_FOREACH(g, &mock_net.ifaces, entry) {
		LIST_FOREACH(lep, &g->leps, entry) {
			if (lep->target != f->id || lep->dead || g->muted || find_iface(f->id) != f)
				continue;
			no = refusal_of(g, f);
			if (no != NULL && no->status == 0)
				continue;
			lep->target = 0;
			lep->deadline = UINT64_MAX;
			if (no != NULL) {
				lep->down_due = true;
				lep->down_status = no->status;
				snprintf(lep->text, sizeof(lep->text), "%s", no->text);
				continue;
			}
			passive = mock_lep_new(&f->base, NULL);
			passive->base.passive = true;
			passive->peer = lep;
			lep->peer = passive;
			passive->up_due = lep->up_due = true;
			LIST_INSERT_HEAD(&f->leps, passive, entry);
		}
	}
}

void mock_free_zombies(struct mock_iface *f)
{
	struct mock_lep *lep;

	while ((lep = f->zombies) != NULL) {
		f->zombies = lep->peer;
		free(lep);
	}
}

void mock_ep_destroy(struct weft_lane_ep *base)
{
	struct mock_lep *lep = to_lep(base);
	struct mock_iface *f = to_iface(base->iface), *g;
	struct mock_done *d;
	struct mock_msg *m;
	unsigned int i;

	assert_false(lep->dead);
	LIST_REMOVE(lep, entry);
	lep->dead = true;
	base->up = false;
	mock_net.num_leps--;
	mock_purge_to(lep, -ECONNRESET);
	/* Own messages go on; nobody is told of their fate any more. */
	LIST_FOREACH(g, &mock_net.ifaces, entry) {
		TAILQ_FOREACH(m, &g->inbox, entry) {
			if (m->from != lep)
				continue;
			m->from = NULL;
			if (m->comp != NULL)
				mock_comp_due(lep, m->comp, -ECANCELED);
		}
	}
	for (i = 0; i < lep->num_flush; i++)
		mock_comp_due(lep, lep->flush[i], -ECANCELED);
	lep->num_flush = 0;
	mock_cancel_rmas(f, lep);
	for (d = mock_net.slow_hardware ? NULL : STAILQ_FIRST(&f->done); d != NULL;
	     d = d == NULL ? STAILQ_FIRST(&f->done) : STAILQ_NEXT(d, entry)) {
		if (d->lep != lep)
			continue;
		STAILQ_REMOVE(&f->done, d, mock_done, entry);
		d->comp->done(d->comp, d->status);
		free(d);
		d = NULL; /* the callback may have changed the list */
		if (STAILQ_EMPTY(&f->done))
			break;
	}
	if (lep->peer != NULL) {
		lep->peer->gone_due = true;
		lep->peer->peer = NULL;
	}
	lep->peer = f->zombies;
	f->zombies = lep;
}

int mock_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
{
	struct mock_lep *lep = to_lep(base);

	if (lep->down_due)
		return lep->down_status;
	if (lep->outstanding == 0)
		return WEFT_LANE_IDLE;
	if (lep->num_flush == 8)
		return -EAGAIN;
	lep->flush[lep->num_flush++] = comp;
	return 0;
}

bool mock_ep_is_from(struct weft_lane_ep *base, const void *addr, size_t len)
{
	struct mock_lep *lep = to_lep(base);
	uint64_t id;

	if (len != 16 || lep->peer == NULL)
		return false;
	memcpy(&id, addr, sizeof(id));
	if (lep->peer->stranger)
		return lep->peer->at == 0 || lep->peer->at == id;
	return iface_of(lep->peer)->id == id;
}

/* A stranger is its own host unless it was put somewhere. */
uint64_t mock_ep_host(const struct weft_lane_ep *base)
{
	const struct mock_lep *lep = (const struct mock_lep *)base;

	if (lep->peer == NULL)
		return 0;
	if (lep->peer->stranger)
		return lep->peer->at != 0 ? lep->peer->at : (uintptr_t)lep->peer;
	return iface_of(lep->peer)->id;
}

/* Another iface has the peer's address now, and the peer's is mute: what is asked there does not know us. */
void mock_ep_check(struct weft_lane_ep *base)
{
	struct mock_lep *lep = to_lep(base);
	struct mock_iface *peer, *f;

	if (lep->peer == NULL || lep->peer->stranger || !iface_of(lep->peer)->muted)
		return;
	peer = iface_of(lep->peer);
	LIST_FOREACH(f, &mock_net.ifaces, entry) {
		if (f != peer && f->id == peer->id && !f->muted && !lep->down_due) {
			lep->down_due = true;
			lep->down_status = -ECONNRESET;
			snprintf(lep->text, sizeof(lep->text), "the peer was restarted");
		}
	}
}

/* ------------------------------------------------------------------ events */

static bool has_messages(struct mock_iface *f, const struct mock_lep *lep)
{
	struct mock_msg *m;

	TAILQ_FOREACH(m, &f->inbox, entry)
		if (m->to == lep)
			return true;
	return false;
}

/* One event of one lep. @return false when there is none */
bool mock_run_event(struct mock_iface *f)
{
	struct mock_lep *lep;

	LIST_FOREACH(lep, &f->leps, entry) {
		if (lep->up_due) {
			lep->up_due = false;
			lep->base.up = lep->base.tx_room = true;
			f->event(f->arg, &lep->base, WEFT_LANE_EV_UP, 0, "connected");
			return true;
		}
		if (mock_now >= lep->deadline && !lep->down_due) {
			lep->down_due = true;
			lep->down_status = -ETIMEDOUT;
		}
		if (lep->down_due && lep->deadline != 0) {
			lep->deadline = 0; /* reported */
			lep->base.up = false;
			f->event(f->arg, &lep->base, WEFT_LANE_EV_DOWN, lep->down_status,
				 lep->text);
			return true;
		}
		if (lep->gone_due && !has_messages(f, lep)) {
			lep->gone_due = false;
			lep->base.up = false;
			f->event(f->arg, &lep->base, WEFT_LANE_EV_GONE, 0,
				 "the peer closed the connection");
			return true;
		}
	}
	return false;
}
