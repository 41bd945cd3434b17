/* SPDX-License-Identifier: BSD-3-Clause */

#include "mock/mock_link_priv.h"

void mlink_reset(uint64_t seed)
{
	memset(&mlink_net, 0, sizeof(mlink_net));
	TAILQ_INIT(&mlink_net.msgs);
	LIST_INIT(&mlink_net.ifaces);
	mlink_net.next_id = 500;
	mlink_net.next_lane_ep = 0x1000;
	mlink_net.rng = seed * 0x9e3779b97f4a7c15ull + 1;
}

unsigned int mlink_num_ifaces(void)
{
	return mlink_net.num_ifaces;
}

unsigned int mlink_num_lane_eps(void)
{
	return mlink_net.num_lane_eps;
}

unsigned int mlink_num_messages(void)
{
	return mlink_net.num_msgs;
}

unsigned int mlink_num_mems(void)
{
	return mlink_net.num_mems;
}

void mctl_set_faults(unsigned int loss, unsigned int twice, unsigned int late)
{
	mlink_net.loss = loss;
	mlink_net.twice = twice;
	mlink_net.late = late;
}

uint64_t mctl_sent(void)
{
	return mlink_net.sent;
}

void mlink_set_random(bool on)
{
	mlink_net.random = on;
}

void mlink_set_eagain(unsigned int permille)
{
	mlink_net.eagain = permille;
}

void mlink_set_up_delay(uint64_t ns)
{
	mlink_net.up_delay = ns;
}

void mlink_block(struct weft_lane_iface *iface)
{
	mlink_net.blocked = iface;
}

void mlink_fail(struct weft_lane_iface *iface, int status, const char *why)
{
	struct link_lane_ep *lane_ep;

	LIST_FOREACH(lane_ep, &to_iface(iface)->lane_eps, entry) {
		if (lane_ep->down_status == 0) {
			lane_ep->down_status = status;
			snprintf(lane_ep->text, sizeof(lane_ep->text), "%s", why);
		}
	}
}

void mlink_refuse_addresses(int rc)
{
	mlink_net.refuse = rc;
}

/* ------------------------------------------------------------------ unknown senders */

#define UNKNOWN 499

void mctl_unknown(struct weft_lane_iface *to, uint32_t lane_ep, uint8_t am_id, const void *data,
		  size_t len)
{
	struct link_msg *m = mlink_enqueue((struct end){UNKNOWN, lane_ep},
					   (struct end){to_iface(to)->id, 0}, am_id, data, len);

	m->datagram = true;
}

size_t mctl_unknown_last(const void **data)
{
	struct link_msg *m, *next;

	for (m = TAILQ_FIRST(&mlink_net.msgs); m; m = next) {
		next = TAILQ_NEXT(m, entry);
		if (m->to.iface != UNKNOWN)
			continue;
		mlink_net.unknown_len = m->length;
		memcpy(mlink_net.unknown_sender, m->data, m->length);
		mlink_msg_free(m);
	}
	*data = mlink_net.unknown_sender;
	return mlink_net.unknown_len;
}

void mctl_set_filter(bool (*filter)(void *data, size_t *len, void *arg), void *arg)
{
	mlink_net.filter = filter;
	mlink_net.filter_arg = arg;
}

struct weft_context *mlink_context(const char *setting, ...)
{
	struct weft_context *ctx;
	va_list ap;

	va_start(ap, setting);
	ctx = mock_context_with(mlink_drivers, setting, ap);
	va_end(ap);
	return ctx;
}
