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

struct link_lane_ep *mlink_find_lane_ep(struct link_iface *f, uint32_t num)
{
	struct link_lane_ep *lane_ep;

	if (!f || num == 0)
		return NULL;
	LIST_FOREACH(lane_ep, &f->lane_eps, entry)
		if (lane_ep->num == num && !lane_ep->dead)
			return lane_ep;
	return NULL;
}

struct link_lane_ep *mlink_lane_ep_new(struct link_iface *f, void *user)
{
	struct link_lane_ep *lane_ep = calloc(1, sizeof(*lane_ep));

	assert_non_null(lane_ep);
	lane_ep->base.iface = &f->base;
	lane_ep->base.ops = f->base.ops;
	lane_ep->base.user = user;
	lane_ep->base.max_msg =
		(uint32_t)(f->control ? f->base.attr.max_short : f->base.attr.max_zcopy);
	lane_ep->num = ++mlink_net.next_lane_ep;
	lane_ep->up_at = UINT64_MAX;
	LIST_INSERT_HEAD(&f->lane_eps, lane_ep, entry);
	mlink_net.num_lane_eps++;
	f->num_ep++;
	return lane_ep;
}

int mctl_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		    struct weft_lane_ep **out)
{
	struct link_lane_ep *lane_ep;

	assert_int_equal(len, 16);
	lane_ep = mlink_lane_ep_new(to_iface(base), user);
	memcpy(&lane_ep->to.iface, addr, 8);
	lane_ep->up_at = mock_now;
	*out = &lane_ep->base;
	return 0;
}

int mlink_ep_create(struct weft_lane_iface *base, void *user, struct weft_lane_ep **out)
{
	struct link_iface *f = to_iface(base);

	if (f->num_ep >= f->max_ep)
		return -ENOMEM;
	*out = &mlink_lane_ep_new(f, user)->base;
	return 0;
}

void mlink_ep_get_address(struct weft_lane_ep *base, void *buf)
{
	memset(buf, 0xa5, base->iface->attr.ep_addr_len);
	memcpy(buf, &to_lane_ep(base)->num, 4);
}

int mlink_ep_connect_ep(struct weft_lane_ep *base, const void *dev_addr, size_t dev_len,
			const void *ep_addr, size_t ep_len)
{
	struct link_lane_ep *lane_ep = to_lane_ep(base);

	assert_false(lane_ep->dead);
	assert_false(lane_ep->connected); /* once per lane_ep */
	assert_int_equal(dev_len, 16);
	assert_int_equal(ep_len, base->iface->attr.ep_addr_len);
	if (mlink_net.refuse < 0)
		return mlink_net.refuse;
	memcpy(&lane_ep->to.iface, dev_addr, 8);
	memcpy(&lane_ep->to.lane_ep, ep_addr, 4);
	lane_ep->connected = true;
	lane_ep->up_at = mock_now + mlink_net.up_delay;
	return 0;
}

void mlink_lane_ep_free(struct link_lane_ep *lane_ep)
{
	LIST_REMOVE(lane_ep, entry);
	free(lane_ep);
}

void mlink_ep_destroy(struct weft_lane_ep *base)
{
	struct link_lane_ep *lane_ep = to_lane_ep(base);
	struct link_iface *f = iface_of(lane_ep);
	struct link_msg *m;
	unsigned int i;

	assert_false(lane_ep->dead);
	lane_ep->dead = true;
	base->up = false;
	mlink_net.num_lane_eps--;
	f->num_ep--;
	TAILQ_FOREACH(m, &mlink_net.msgs, entry) {
		if (m->from.iface == f->id && m->from.lane_ep == lane_ep->num && m->comp) {
			mlink_comp_due(f, m->comp, -ECANCELED);
			m->comp = NULL;
		}
	}
	for (i = 0; i < lane_ep->num_flush; i++)
		mlink_comp_due(f, lane_ep->flush[i], -ECANCELED);
	lane_ep->num_flush = 0;
	if (!lane_ep->delivering)
		mlink_lane_ep_free(lane_ep);
}

int mlink_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
{
	struct link_lane_ep *lane_ep = to_lane_ep(base);

	if (lane_ep->down_status < 0)
		return lane_ep->down_status;
	if (lane_ep->outstanding == 0)
		return WEFT_LANE_IDLE;
	if (lane_ep->num_flush == 8)
		return -EAGAIN;
	lane_ep->flush[lane_ep->num_flush++] = comp;
	return 0;
}

/* ------------------------------------------------------------------ events */

bool mlink_run_event(struct link_iface *f)
{
	struct link_lane_ep *lane_ep;

	LIST_FOREACH(lane_ep, &f->lane_eps, entry) {
		if (lane_ep->dead)
			continue;
		if (mock_now >= lane_ep->up_at && mlink_net.blocked != &f->base) {
			lane_ep->up_at = UINT64_MAX;
			lane_ep->base.up = lane_ep->base.tx_room = true;
			f->event(f->arg, &lane_ep->base, WEFT_LANE_EV_UP, 0, "connected");
			return true;
		}
		if (lane_ep->down_status < 0 && !lane_ep->down_reported) {
			lane_ep->down_reported = true;
			lane_ep->base.up = false;
			f->event(f->arg, &lane_ep->base, WEFT_LANE_EV_DOWN, lane_ep->down_status,
				 lane_ep->text);
			return true;
		}
	}
	return false;
}
