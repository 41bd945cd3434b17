/* SPDX-License-Identifier: BSD-3-Clause */

#include "core/wire.h"
#include "mock/mock_link_priv.h"

#define RETRY_NS 1000000000ull /* until a sender gives up an end that does not answer */

/* ------------------------------------------------------------------ under way */

void mlink_comp_due(struct link_iface *f, struct weft_lane_comp *comp, int status)
{
	struct link_done *d = malloc(sizeof(*d));

	assert_non_null(d);
	*d = (struct link_done){.comp = comp, .status = status};
	STAILQ_INSERT_TAIL(&f->done, d, entry);
}

unsigned int mlink_run_done(struct link_iface *f)
{
	struct link_done *d;
	unsigned int n = 0;

	while ((d = STAILQ_FIRST(&f->done))) {
		STAILQ_REMOVE_HEAD(&f->done, entry);
		d->comp->done(d->comp, d->status);
		free(d);
		n++;
	}
	return n;
}

void mlink_msg_free(struct link_msg *m)
{
	TAILQ_REMOVE(&mlink_net.msgs, m, entry);
	mlink_net.num_msgs--;
	free(m);
}

/* The sender learns the fate of its message. */
static void settle(struct link_msg *m, int status)
{
	struct link_lane_ep *from =
		mlink_find_lane_ep(mlink_find_iface(m->from.iface), m->from.lane_ep);
	unsigned int i;

	if (!from || m->datagram)
		return;
	from->outstanding--;
	from->base.queued -= (uint32_t)m->length;
	if (m->comp)
		mlink_comp_due(iface_of(from), m->comp, status);
	for (i = 0; from->outstanding == 0 && i < from->num_flush; i++)
		mlink_comp_due(iface_of(from), from->flush[i], status);
	if (from->outstanding == 0)
		from->num_flush = 0;
}

struct link_msg *mlink_enqueue(struct end from, struct end to, uint8_t am_id, const void *data,
			       size_t len)
{
	struct link_msg *m = malloc(sizeof(*m) + len);

	assert_non_null(m);
	*m = (struct link_msg){.from = from,
			       .to = to,
			       .am_id = am_id,
			       .length = len,
			       .ready = mock_now,
			       .give_up = mock_now + RETRY_NS};
	memcpy(m->data, data, len);
	TAILQ_INSERT_TAIL(&mlink_net.msgs, m, entry);
	mlink_net.num_msgs++;
	return m;
}

static void send_datagram(struct end from, struct end to, uint8_t am_id, const void *data,
			  size_t len)
{
	uint8_t buf[4096];
	unsigned int copies = mlink_chance(mlink_net.loss)    ? 0
			      : mlink_chance(mlink_net.twice) ? 2
							      : 1,
		     i;
	struct link_msg *m;

	memcpy(buf, data, len);
	mlink_net.sent++;
	if (mlink_net.filter && !mlink_net.filter(buf, &len, mlink_net.filter_arg))
		return;
	for (i = 0; i < copies; i++) {
		m = mlink_enqueue(from, to, am_id, buf, len);
		m->datagram = true;
		if (mlink_chance(mlink_net.late))
			m->ready += mlink_rnd() % 5000000;
		if (i == 1)
			m->ready += mlink_rnd() % 50000000;
	}
}

/* ------------------------------------------------------------------ send */

static int check_send(struct link_lane_ep *lane_ep, size_t length, size_t max)
{
	assert_false(lane_ep->dead);
	if (length > max)
		return -EMSGSIZE;
	if (lane_ep->down_status < 0)
		return lane_ep->down_status;
	return !lane_ep->base.up || mlink_chance(mlink_net.eagain) ? -EAGAIN : 0;
}

static void send_bytes(struct link_lane_ep *lane_ep, uint8_t am_id, const void *data, size_t len,
		       struct weft_lane_comp *comp)
{
	struct link_iface *f = iface_of(lane_ep);
	struct end from = {f->id, lane_ep->num};
	struct link_msg *m;

	f->tx++;
	if (f->control) {
		assert_int_equal(am_id, WEFT_WIRE_WIREUP);
		send_datagram(from, lane_ep->to, am_id, data, len);
		return;
	}
	m = mlink_enqueue(from, lane_ep->to, am_id, data, len);
	m->comp = comp;
	lane_ep->outstanding++;
	lane_ep->base.queued += (uint32_t)len;
}

int mlink_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		   const void *payload, size_t length)
{
	int rc = check_send(to_lane_ep(base), hdr_len + length, base->iface->attr.max_short);
	uint8_t buf[4096];

	if (rc < 0)
		return rc;
	memcpy(buf, hdr, hdr_len);
	if (length > 0)
		memcpy(buf + hdr_len, payload, length);
	send_bytes(to_lane_ep(base), am_id, buf, hdr_len + length, NULL);
	return 0;
}

ssize_t mlink_am_bcopy(struct weft_lane_ep *base, uint8_t am_id, weft_lane_pack_cb pack, void *arg)
{
	int rc = check_send(to_lane_ep(base), 0, base->iface->attr.max_bcopy);
	uint8_t buf[65536];
	ssize_t n;

	if (rc < 0)
		return rc;
	n = pack(buf, base->iface->attr.max_bcopy, arg);
	if (n > 0)
		send_bytes(to_lane_ep(base), am_id, buf, (size_t)n, NULL);
	return n;
}

int mlink_am_zcopy(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		   const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		   struct weft_lane_comp *comp)
{
	uint8_t buf[65536];
	size_t n = hdr_len;
	unsigned int i;
	int rc;

	assert_non_null(mem);
	memcpy(buf, hdr, hdr_len);
	for (i = 0; i < iovcnt; n += iov[i++].iov_len) {
		assert_true(n + iov[i].iov_len <= sizeof(buf));
		memcpy(buf + n, iov[i].iov_base, iov[i].iov_len);
	}
	rc = check_send(to_lane_ep(base), n, base->iface->attr.max_zcopy);
	if (rc == 0)
		send_bytes(to_lane_ep(base), am_id, buf, n, comp);
	return rc;
}

/* ------------------------------------------------------------------ delivery */

/* The end that a message is for, made if need be. NULL = none (yet) */
static struct link_lane_ep *receiver(struct link_iface *f, struct link_msg *m)
{
	struct link_lane_ep *lane_ep = mlink_find_lane_ep(f, m->to.lane_ep);

	if (!f->control)
		return lane_ep != NULL && lane_ep->connected && lane_ep->down_status == 0 &&
				       lane_ep->to.iface == m->from.iface &&
				       lane_ep->to.lane_ep == m->from.lane_ep
			       ? lane_ep
			       : NULL;
	if (m->to.lane_ep != 0)
		return lane_ep;
	LIST_FOREACH(lane_ep, &f->lane_eps, entry)
		if (lane_ep->base.passive && !lane_ep->dead && lane_ep->to.iface == m->from.iface &&
		    lane_ep->to.lane_ep == m->from.lane_ep)
			return lane_ep;
	lane_ep = mlink_lane_ep_new(f, NULL);
	lane_ep->to = m->from;
	lane_ep->base.passive = lane_ep->base.up = lane_ep->base.tx_room = true;
	f->event(f->arg, &lane_ep->base, WEFT_LANE_EV_UP, 0, "connected");
	return lane_ep->dead ? NULL : lane_ep;
}

static void give_up(struct link_msg *m)
{
	struct link_lane_ep *from =
		mlink_find_lane_ep(mlink_find_iface(m->from.iface), m->from.lane_ep);

	if (from && from->down_status == 0 && !m->datagram) {
		from->down_status = -ETIMEDOUT;
		snprintf(from->text, sizeof(from->text), "%s: mlink-%llu gave no answer in 1 s",
			 from->base.iface->name, (unsigned long long)m->to.iface);
	}
	settle(m, -ETIMEDOUT);
	mlink_msg_free(m);
}

static void deliver(struct link_iface *f, struct link_lane_ep *lane_ep, struct link_msg *m)
{
	uint8_t *copy = malloc(m->length + 1); /* overruns are seen */

	assert_non_null(copy);
	memcpy(copy, m->data, m->length);
	lane_ep->delivering = true;
	f->rx++;
	f->recv(f->arg, &lane_ep->base, m->am_id, copy, m->length, NULL);
	lane_ep->delivering = false;
	settle(m, 0);
	if (lane_ep->dead)
		mlink_lane_ep_free(lane_ep);
	mlink_msg_free(m);
	free(copy);
}

/* One message for @p f. @return false when there is none */
static bool receive(struct link_iface *f, uint64_t before)
{
	struct link_msg *m, *next, *found = NULL;
	struct link_lane_ep *lane_ep;
	unsigned int seen = 0;

	for (m = TAILQ_FIRST(&mlink_net.msgs); m; m = next) {
		next = TAILQ_NEXT(m, entry);
		if (m->to.iface != f->id || m->ready >= before)
			continue;
		if (!m->datagram && !receiver(f, m))
			continue;
		seen++;
		if (!found || ((mlink_net.random || m->datagram) && mlink_rnd() % seen == 0))
			found = m;
	}
	if (!found)
		return false;
	lane_ep = receiver(f, found);
	if (!lane_ep)
		mlink_msg_free(found);
	else
		deliver(f, lane_ep, found);
	return true;
}

/* A message that no end takes. */
static void expire(void)
{
	struct link_msg *m, *next;

	for (m = TAILQ_FIRST(&mlink_net.msgs); m; m = next) {
		next = TAILQ_NEXT(m, entry);
		if (mock_now >= m->give_up)
			give_up(m);
	}
}

/* Delivers what is for @p f now, and drops what no end takes. @return messages delivered */
unsigned int mlink_run_messages(struct link_iface *f)
{
	unsigned int n = 0, limit = mlink_net.num_msgs;

	while (limit-- > 0 && mlink_net.blocked != &f->base && receive(f, mock_now + 1))
		n++;
	expire();
	return n;
}

void mlink_release(struct weft_lane_iface *base, void *desc)
{
	(void)base;
	(void)desc;
	fail_msg("nothing is ever kept");
}
