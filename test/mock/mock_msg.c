/* SPDX-License-Identifier: BSD-3-Clause */

#include "mock/in_place.h"
#include "mock/mock_priv.h"

/* ------------------------------------------------------------------ under way */

void mock_msg_free(struct mock_msg *m)
{
	free(m->data);
	free(m);
	mock_net.num_msgs--;
}

void mock_comp_due(struct mock_lane_ep *lane_ep, struct weft_lane_comp *comp, int status)
{
	struct mock_done *d = malloc(sizeof(*d));

	assert_non_null(d);
	*d = (struct mock_done){.lane_ep = lane_ep, .comp = comp, .status = status};
	STAILQ_INSERT_TAIL(&iface_of(lane_ep)->done, d, entry);
	mock_ring(iface_of(lane_ep));
}

unsigned int mock_run_done(struct mock_iface *f)
{
	struct mock_done *d;
	unsigned int n = 0;

	while ((d = STAILQ_FIRST(&f->done))) {
		STAILQ_REMOVE_HEAD(&f->done, entry);
		d->comp->done(d->comp, d->status);
		free(d);
		n++;
	}
	return n;
}

/* The sender learns that its message was delivered, or that it never will be. */
void mock_settle(struct mock_msg *m, int status)
{
	unsigned int i;

	if (!m->from)
		return;
	m->from->outstanding--;
	m->from->base.queued -= (uint32_t)m->length;
	if (m->from->unknown_sender)
		return;
	if (m->comp)
		mock_comp_due(m->from, m->comp, status);
	if (m->from->outstanding == 0) {
		for (i = 0; i < m->from->num_flush; i++)
			mock_comp_due(m->from, m->from->flush[i], status);
		m->from->num_flush = 0;
	}
}

static void unknown_take(struct mock_lane_ep *lane_ep, uint8_t am_id, const void *data,
			 size_t length)
{
	lane_ep->received++;
	lane_ep->last_id = am_id;
	lane_ep->last_len = length;
	assert_true(length <= sizeof(lane_ep->last));
	memcpy(lane_ep->last, data, length);
}

void mock_enqueue(struct mock_lane_ep *from, struct mock_lane_ep *to, uint8_t am_id,
		  const void *data, size_t length, struct weft_lane_comp *comp)
{
	struct mock_iface *src = from ? iface_of(from) : NULL;
	struct mock_msg *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	*m = (struct mock_msg){
		.from = from, .to = to, .comp = comp, .am_id = am_id, .length = length};
	m->ready = (src ? mock_due(src, MOCK_MESSAGE, length) : mock_now) +
		   (src != NULL && src->delay ? src->delay : mock_net.delay);
	m->data = malloc(length > 0 ? length : 1);
	assert_non_null(m->data);
	memcpy(m->data, data, length);
	mock_net.num_msgs++;
	if (from) {
		from->outstanding++;
		from->base.queued += (uint32_t)length;
	}
	if (to->unknown_sender) {
		unknown_take(to, am_id, data, length);
		mock_settle(m, 0);
		mock_msg_free(m);
		return;
	}
	TAILQ_INSERT_TAIL(&iface_of(to)->inbox, m, entry);
	mock_ring(iface_of(to));
}

/* Messages to a lane_ep that is no more. */
void mock_purge_to(struct mock_lane_ep *lane_ep, int status)
{
	struct mock_iface *f = iface_of(lane_ep);
	struct mock_msg *m, *next;

	if (!f)
		return;
	for (m = TAILQ_FIRST(&f->inbox); m; m = next) {
		next = TAILQ_NEXT(m, entry);
		if (m->to != lane_ep)
			continue;
		TAILQ_REMOVE(&f->inbox, m, entry);
		mock_settle(m, status);
		mock_msg_free(m);
	}
}

/* ------------------------------------------------------------------ send */

int mock_check_send(struct mock_lane_ep *lane_ep, size_t length, size_t max)
{
	struct mock_iface *f = iface_of(lane_ep);
	unsigned int p = f->eagain ? f->eagain : mock_net.eagain;

	if (lane_ep->base.user)
		assert_false(lane_ep->dead);
	if (length > max)
		return -EMSGSIZE;
	if (lane_ep->down_due)
		return lane_ep->down_status;
	if (!lane_ep->base.up || !lane_ep->peer)
		return -EAGAIN;
	if ((p && mock_rnd() % 1000 < p) ||
	    (mock_net.window && lane_ep->outstanding >= mock_net.window))
		return -EAGAIN;
	return 0;
}

int mock_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		  const void *payload, size_t length)
{
	struct mock_lane_ep *lane_ep = to_lane_ep(base);
	int rc = mock_check_send(lane_ep, hdr_len + length, base->iface->attr.max_short);
	uint8_t buf[65536];

	if (rc < 0)
		return rc;
	memcpy(buf, hdr, hdr_len);
	if (length > 0)
		memcpy(buf + hdr_len, payload, length);
	iface_of(lane_ep)->tx++;
	mock_enqueue(lane_ep, lane_ep->peer, am_id, buf, hdr_len + length, NULL);
	return 0;
}

ssize_t mock_am_bcopy(struct weft_lane_ep *base, uint8_t am_id, weft_lane_pack_cb pack, void *arg)
{
	struct mock_lane_ep *lane_ep = to_lane_ep(base);
	size_t max = base->iface->attr.max_bcopy;
	int rc = mock_check_send(lane_ep, 0, max);
	uint8_t *buf;
	ssize_t n;

	if (rc < 0)
		return rc;
	buf = malloc(max);
	assert_non_null(buf);
	n = pack(buf, max, arg);
	if (n > 0) {
		iface_of(lane_ep)->tx++;
		mock_enqueue(lane_ep, lane_ep->peer, am_id, buf, (size_t)n, NULL);
	}
	free(buf);
	return n != 0 ? n : -EINVAL;
}

int mock_am_zcopy(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		  const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		  struct weft_lane_comp *comp)
{
	const struct weft_lane_attr *attr = &base->iface->attr;
	struct mock_lane_ep *lane_ep = to_lane_ep(base);
	size_t n = hdr_len;
	unsigned int i;
	uint8_t *buf;
	int rc;

	assert_true(iovcnt <= attr->max_iov);
	if (attr->features & WEFT_LANE_F_ZCOPY_REG)
		assert_non_null(mem);
	for (i = 0; i < iovcnt; i++)
		n += iov[i].iov_len;
	rc = mock_check_send(lane_ep, n, attr->max_zcopy);
	if (rc < 0)
		return rc;
	buf = malloc(n);
	assert_non_null(buf);
	memcpy(buf, hdr, hdr_len);
	for (i = 0, n = hdr_len; i < iovcnt; n += iov[i++].iov_len)
		memcpy(buf + n, iov[i].iov_base, iov[i].iov_len);
	iface_of(lane_ep)->tx++;
	mock_enqueue(lane_ep, lane_ep->peer, am_id, buf, n, comp);
	free(buf);
	return 0;
}

/* ------------------------------------------------------------------ delivery */

static enum mock_verdict judge(struct mock_iface *f, const struct mock_msg *m)
{
	struct mock_msg_view v = {
		.from = m->from != NULL && !m->from->unknown_sender ? m->from->base.iface : NULL,
		.to = &f->base,
		.am_id = m->am_id,
		.data = m->data,
		.length = m->length,
	};

	if (m->ready > mock_now || !m->to->base.up)
		return MOCK_LATER;
	if (m->from && !m->from->unknown_sender && iface_of(m->from)->muted)
		return MOCK_LATER;
	return mock_net.filter ? mock_net.filter(&v, mock_net.filter_arg) : MOCK_DELIVER;
}

/* The next message that may be delivered, of the first @p n in the inbox. */
static struct mock_msg *pick(struct mock_iface *f, unsigned int n, bool *twice, bool *drop)
{
	struct mock_msg *m, *found = NULL;
	unsigned int i = 0, seen = 0;
	enum mock_verdict v, kept = MOCK_DELIVER;

	TAILQ_FOREACH(m, &f->inbox, entry) {
		if (i++ == n)
			break;
		v = judge(f, m);
		if (v == MOCK_LATER)
			continue;
		seen++;
		if (!found || mock_net.order == MOCK_REVERSE ||
		    (mock_net.order == MOCK_RANDOM && mock_rnd() % seen == 0)) {
			found = m;
			kept = v;
		}
		if (mock_net.order == MOCK_FIFO)
			break;
	}
	*twice = kept == MOCK_TWICE;
	*drop = kept == MOCK_DROP;
	return found;
}

static void deliver(struct mock_iface *f, struct mock_msg *m, bool twice)
{
	struct mock_lane_ep *to = m->to;
	int rc;

	f->rx++;
	if (twice && !to->dead)
		f->recv(f->arg, &to->base, m->am_id, m->data, m->length, NULL);
	if (to->dead) {
		mock_settle(m, -ECONNRESET);
		mock_msg_free(m);
		return;
	}
	if (mock_in_place(f->recv_in_place, &to->base, m->am_id, m->data, m->length))
		rc = 0;
	else
		rc = f->recv(f->arg, &to->base, m->am_id, m->data, m->length,
			     mock_net.no_keep ? NULL : m);
	mock_settle(m, 0);
	if (rc == WEFT_LANE_KEEP) {
		assert_false(mock_net.no_keep);
		mock_net.num_kept++;
		m->from = m->to = NULL;
	} else {
		mock_msg_free(m);
	}
}

unsigned int mock_run_inbox(struct mock_iface *f)
{
	unsigned int n = 0, delivered = 0, limit;
	struct mock_msg *m;
	bool twice, drop;

	/* What callbacks send now is for the next call. */
	TAILQ_FOREACH(m, &f->inbox, entry)
		n++;
	limit = mock_net.burst != 0 && mock_net.burst < n ? mock_net.burst : n;
	while (!f->held && !mock_net.held && !f->muted && limit-- > 0 &&
	       (m = pick(f, n, &twice, &drop)) != NULL) {
		TAILQ_REMOVE(&f->inbox, m, entry);
		n--;
		if (drop) {
			mock_settle(m, 0);
			mock_msg_free(m);
			continue;
		}
		deliver(f, m, twice);
		delivered++;
	}
	return delivered;
}

void mock_give_back(struct weft_lane_iface *base, void *desc)
{
	(void)base;
	assert_true(mock_net.num_kept > 0);
	mock_net.num_kept--;
	mock_msg_free(desc);
}
