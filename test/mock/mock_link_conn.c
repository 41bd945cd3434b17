/* SPDX-License-Identifier: BSD-3-Clause */

#include "mock/mock_link_priv.h"

struct link_iface *mlink_find_iface(uint64_t id)
{
	struct link_iface *f;

	LIST_FOREACH(f, &mlink_net.ifaces, entry)
		if (f->id == id)
			return f;
	return NULL;
}

struct link_lep *mlink_find_lep(struct link_iface *f, uint32_t num)
{
	struct link_lep *lep;

	if (f == NULL || num == 0)
		return NULL;
	LIST_FOREACH(lep, &f->leps, entry)
		if (lep->num == num && !lep->dead)
			return lep;
	return NULL;
}

struct link_lep *mlink_lep_new(struct link_iface *f, void *user)
{
	struct link_lep *lep = calloc(1, sizeof(*lep));

	assert_non_null(lep);
	lep->base.iface = &f->base;
	lep->base.ops = f->base.ops;
	lep->base.user = user;
	lep->base.max_msg =
		(uint32_t)(f->control ? f->base.attr.max_short : f->base.attr.max_zcopy);
	lep->num = ++mlink_net.next_lep;
	lep->up_at = UINT64_MAX;
	LIST_INSERT_HEAD(&f->leps, lep, entry);
	mlink_net.num_leps++;
	f->num_ep++;
	return lep;
}

int mctl_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		    struct weft_lane_ep **out)
{
	struct link_lep *lep;

	assert_int_equal(len, 16);
	lep = mlink_lep_new(to_iface(base), user);
	memcpy(&lep->to.iface, addr, 8);
	lep->up_at = mock_now;
	*out = &lep->base;
	return 0;
}

int mlink_ep_create(struct weft_lane_iface *base, void *user, struct weft_lane_ep **out)
{
	struct link_iface *f = to_iface(base);

	if (f->num_ep >= f->max_ep)
		return -ENOMEM;
	*out = &mlink_lep_new(f, user)->base;
	return 0;
}

void mlink_ep_get_address(struct weft_lane_ep *base, void *buf)
{
	memset(buf, 0xa5, base->iface->attr.ep_addr_len);
	memcpy(buf, &to_lep(base)->num, 4);
}

int mlink_ep_connect_ep(struct weft_lane_ep *base, const void *dev_addr, size_t dev_len,
			const void *ep_addr, size_t ep_len)
{
	struct link_lep *lep = to_lep(base);

	assert_false(lep->dead);
	assert_false(lep->connected); /* once per lep */
	assert_int_equal(dev_len, 16);
	assert_int_equal(ep_len, base->iface->attr.ep_addr_len);
	if (mlink_net.refuse < 0)
		return mlink_net.refuse;
	memcpy(&lep->to.iface, dev_addr, 8);
	memcpy(&lep->to.lep, ep_addr, 4);
	lep->connected = true;
	lep->up_at = mock_now + mlink_net.up_delay;
	return 0;
}

void mlink_lep_free(struct link_lep *lep)
{
	LIST_REMOVE(lep, entry);
	free(lep);
}

void mlink_ep_destroy(struct weft_lane_ep *base)
{
	struct link_lep *lep = to_lep(base);
	struct link_iface *f = iface_of(lep);
	struct link_msg *m;
	unsigned int i;

	assert_false(lep->dead);
	lep->dead = true;
	base->up = false;
	mlink_net.num_leps--;
	f->num_ep--;
	TAILQ_FOREACH(m, &mlink_net.msgs, entry) {
		if (m->from.iface == f->id && m->from.lep == lep->num && m->comp != NULL) {
			mlink_comp_due(f, m->comp, -ECANCELED);
			m->comp = NULL;
		}
	}
	for (i = 0; i < lep->num_flush; i++)
		mlink_comp_due(f, lep->flush[i], -ECANCELED);
	lep->num_flush = 0;
	if (!lep->delivering)
		mlink_lep_free(lep);
}

int mlink_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
{
	struct link_lep *lep = to_lep(base);

	if (lep->down_status < 0)
		return lep->down_status;
	if (lep->outstanding == 0)
		return WEFT_LANE_IDLE;
	if (lep->num_flush == 8)
		return -EAGAIN;
	lep->flush[lep->num_flush++] = comp;
	return 0;
}

/* ------------------------------------------------------------------ events */

bool mlink_run_event(struct link_iface *f)
{
	struct link_lep *lep;

	LIST_FOREACH(lep, &f->leps, entry) {
		if (lep->dead)
			continue;
		if (mock_now >= lep->up_at && mlink_net.blocked != &f->base) {
			lep->up_at = UINT64_MAX;
			lep->base.up = lep->base.tx_room = true;
			f->event(f->arg, &lep->base, WEFT_LANE_EV_UP, 0, "connected");
			return true;
		}
		if (lep->down_status < 0 && !lep->down_said) {
			lep->down_said = true;
			lep->base.up = false;
			f->event(f->arg, &lep->base, WEFT_LANE_EV_DOWN, lep->down_status,
				 lep->text);
			return true;
		}
	}
	return false;
}
