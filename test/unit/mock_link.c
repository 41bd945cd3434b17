/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"
#include "mock_link.h"
#include "self_lane.h"

/*
 * One list of what is under way, for both drivers. A message names its ends by {iface, lep}
 * numbers, as a queue pair number does: whether there is somebody is seen on delivery.
 */

#define RETRY_NS 1000000000ull /* until a sender gives up an end that does not answer */

struct end {
	uint64_t iface;
	uint32_t lep;
};

struct link_lep {
	struct weft_lane_ep base; /* first */
	LIST_ENTRY(link_lep) entry;
	uint32_t num;
	struct end to; /* lep 0 = not known */
	bool connected;
	bool dead, delivering;
	uint64_t up_at; /* UINT64_MAX = not due */
	int down_status;
	bool down_said;
	char text[128];
	unsigned int outstanding;
	struct weft_lane_comp *flush[8];
	unsigned int num_flush;
};

struct link_msg {
	TAILQ_ENTRY(link_msg) entry;
	struct end from, to;
	struct weft_lane_comp *comp;
	uint64_t ready, give_up;
	bool datagram;
	uint8_t am_id;
	size_t length;
	uint8_t data[];
};

struct link_done {
	STAILQ_ENTRY(link_done) entry;
	struct weft_lane_comp *comp;
	int status;
};

struct link_iface {
	struct weft_lane_iface base; /* first */
	LIST_ENTRY(link_iface) entry;
	uint64_t id;
	uint32_t net;
	bool control;
	unsigned int max_ep, num_ep;
	weft_lane_recv_cb recv;
	weft_lane_event_cb event;
	void *arg;
	LIST_HEAD(, link_lep) leps;
	STAILQ_HEAD(, link_done) done;
	uint64_t tx, rx;
};

static struct {
	LIST_HEAD(, link_iface) ifaces;
	TAILQ_HEAD(link_msgs, link_msg) msgs;
	uint64_t next_id, rng, sent, up_delay;
	uint32_t next_lep;
	unsigned int num_ifaces, num_leps, num_msgs, num_mems;
	unsigned int loss, twice, late, eagain;
	bool random;
	struct weft_lane_iface *blocked;
	int refuse;
	bool (*filter)(void *data, size_t *len, void *arg);
	void *filter_arg;
	uint8_t stranger[4096];
	size_t stranger_len;
} net;

static uint64_t rnd(void)
{
	net.rng ^= net.rng << 13;
	net.rng ^= net.rng >> 7;
	net.rng ^= net.rng << 17;
	return net.rng;
}

static bool chance(unsigned int permille)
{
	return permille != 0 && rnd() % 1000 < permille;
}

static inline struct link_iface *to_iface(struct weft_lane_iface *iface)
{
	return (struct link_iface *)iface;
}

static inline struct link_lep *to_lep(struct weft_lane_ep *lep)
{
	return (struct link_lep *)lep;
}

static inline struct link_iface *iface_of(const struct link_lep *lep)
{
	return (struct link_iface *)lep->base.iface;
}

static struct link_iface *find_iface(uint64_t id)
{
	struct link_iface *f;

	LIST_FOREACH(f, &net.ifaces, entry)
		if (f->id == id)
			return f;
	return NULL;
}

static struct link_lep *find_lep(struct link_iface *f, uint32_t num)
{
	struct link_lep *lep;

	if (f == NULL || num == 0)
		return NULL;
	LIST_FOREACH(lep, &f->leps, entry)
		if (lep->num == num && !lep->dead)
			return lep;
	return NULL;
}

/* ------------------------------------------------------------------ what is under way */

static void comp_due(struct link_iface *f, struct weft_lane_comp *comp, int status)
{
	struct link_done *d = malloc(sizeof(*d));

	assert_non_null(d);
	*d = (struct link_done){.comp = comp, .status = status};
	STAILQ_INSERT_TAIL(&f->done, d, entry);
}

static void msg_free(struct link_msg *m)
{
	TAILQ_REMOVE(&net.msgs, m, entry);
	net.num_msgs--;
	free(m);
}

/* The sender learns the fate of its message. */
static void settle(struct link_msg *m, int status)
{
	struct link_lep *from = find_lep(find_iface(m->from.iface), m->from.lep);
	unsigned int i;

	if (from == NULL || m->datagram)
		return;
	from->outstanding--;
	from->base.queued -= (uint32_t)m->length;
	if (m->comp != NULL)
		comp_due(iface_of(from), m->comp, status);
	for (i = 0; from->outstanding == 0 && i < from->num_flush; i++)
		comp_due(iface_of(from), from->flush[i], status);
	if (from->outstanding == 0)
		from->num_flush = 0;
}

static struct link_msg *enqueue(struct end from, struct end to, uint8_t am_id, const void *data,
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
	TAILQ_INSERT_TAIL(&net.msgs, m, entry);
	net.num_msgs++;
	return m;
}

static void send_datagram(struct end from, struct end to, uint8_t am_id, const void *data,
			  size_t len)
{
	uint8_t buf[4096];
	unsigned int copies = chance(net.loss) ? 0 : chance(net.twice) ? 2 : 1, i;
	struct link_msg *m;

	memcpy(buf, data, len);
	net.sent++;
	if (net.filter != NULL && !net.filter(buf, &len, net.filter_arg))
		return;
	for (i = 0; i < copies; i++) {
		m = enqueue(from, to, am_id, buf, len);
		m->datagram = true;
		if (chance(net.late))
			m->ready += rnd() % 5000000;
		if (i == 1)
			m->ready += rnd() % 50000000;
	}
}

/* ------------------------------------------------------------------ send */

static int check_send(struct link_lep *lep, size_t length, size_t max)
{
	assert_false(lep->dead);
	if (length > max)
		return -EMSGSIZE;
	if (lep->down_status < 0)
		return lep->down_status;
	return !lep->base.up || chance(net.eagain) ? -EAGAIN : 0;
}

static void send_bytes(struct link_lep *lep, uint8_t am_id, const void *data, size_t len,
		       struct weft_lane_comp *comp)
{
	struct link_iface *f = iface_of(lep);
	struct end from = {f->id, lep->num};
	struct link_msg *m;

	f->tx++;
	if (f->control) {
		assert_int_equal(am_id, WEFT_WIRE_WIREUP);
		send_datagram(from, lep->to, am_id, data, len);
		return;
	}
	m = enqueue(from, lep->to, am_id, data, len);
	m->comp = comp;
	lep->outstanding++;
	lep->base.queued += (uint32_t)len;
}

static int link_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
			 const void *payload, size_t length)
{
	int rc = check_send(to_lep(base), hdr_len + length, base->iface->attr.max_short);
	uint8_t buf[4096];

	if (rc < 0)
		return rc;
	memcpy(buf, hdr, hdr_len);
	if (length > 0)
		memcpy(buf + hdr_len, payload, length);
	send_bytes(to_lep(base), am_id, buf, hdr_len + length, NULL);
	return 0;
}

static ssize_t link_am_bcopy(struct weft_lane_ep *base, uint8_t am_id, weft_lane_pack_cb pack,
			     void *arg)
{
	int rc = check_send(to_lep(base), 0, base->iface->attr.max_bcopy);
	uint8_t buf[65536];
	ssize_t n;

	if (rc < 0)
		return rc;
	n = pack(buf, base->iface->attr.max_bcopy, arg);
	if (n > 0)
		send_bytes(to_lep(base), am_id, buf, (size_t)n, NULL);
	return n;
}

static int link_am_zcopy(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
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
	rc = check_send(to_lep(base), n, base->iface->attr.max_zcopy);
	if (rc == 0)
		send_bytes(to_lep(base), am_id, buf, n, comp);
	return rc;
}

/* ------------------------------------------------------------------ connections */

static struct link_lep *lep_new(struct link_iface *f, void *user)
{
	struct link_lep *lep = calloc(1, sizeof(*lep));

	assert_non_null(lep);
	lep->base.iface = &f->base;
	lep->base.ops = f->base.ops;
	lep->base.user = user;
	lep->base.max_msg =
		(uint32_t)(f->control ? f->base.attr.max_short : f->base.attr.max_zcopy);
	lep->num = ++net.next_lep;
	lep->up_at = UINT64_MAX;
	LIST_INSERT_HEAD(&f->leps, lep, entry);
	net.num_leps++;
	f->num_ep++;
	return lep;
}

static int ctl_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
			  struct weft_lane_ep **out)
{
	struct link_lep *lep;

	assert_int_equal(len, 16);
	lep = lep_new(to_iface(base), user);
	memcpy(&lep->to.iface, addr, 8);
	lep->up_at = mock_now;
	*out = &lep->base;
	return 0;
}

static int link_ep_create(struct weft_lane_iface *base, void *user, struct weft_lane_ep **out)
{
	struct link_iface *f = to_iface(base);

	if (f->num_ep >= f->max_ep)
		return -ENOMEM;
	*out = &lep_new(f, user)->base;
	return 0;
}

static void link_ep_get_address(struct weft_lane_ep *base, void *buf)
{
	memset(buf, 0xa5, base->iface->attr.ep_addr_len);
	memcpy(buf, &to_lep(base)->num, 4);
}

static int link_ep_connect_ep(struct weft_lane_ep *base, const void *dev_addr, size_t dev_len,
			      const void *ep_addr, size_t ep_len)
{
	struct link_lep *lep = to_lep(base);

	assert_false(lep->dead);
	assert_false(lep->connected); /* once per lep */
	assert_int_equal(dev_len, 16);
	assert_int_equal(ep_len, base->iface->attr.ep_addr_len);
	if (net.refuse < 0)
		return net.refuse;
	memcpy(&lep->to.iface, dev_addr, 8);
	memcpy(&lep->to.lep, ep_addr, 4);
	lep->connected = true;
	lep->up_at = mock_now + net.up_delay;
	return 0;
}

static void lep_free(struct link_lep *lep)
{
	LIST_REMOVE(lep, entry);
	free(lep);
}

static void link_ep_destroy(struct weft_lane_ep *base)
{
	struct link_lep *lep = to_lep(base);
	struct link_iface *f = iface_of(lep);
	struct link_msg *m;
	unsigned int i;

	assert_false(lep->dead);
	lep->dead = true;
	base->up = false;
	net.num_leps--;
	f->num_ep--;
	TAILQ_FOREACH(m, &net.msgs, entry) {
		if (m->from.iface == f->id && m->from.lep == lep->num && m->comp != NULL) {
			comp_due(f, m->comp, -ECANCELED);
			m->comp = NULL;
		}
	}
	for (i = 0; i < lep->num_flush; i++)
		comp_due(f, lep->flush[i], -ECANCELED);
	lep->num_flush = 0;
	if (!lep->delivering)
		lep_free(lep);
}

static int link_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
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

/* ------------------------------------------------------------------ progress */

static bool run_event(struct link_iface *f)
{
	struct link_lep *lep;

	LIST_FOREACH(lep, &f->leps, entry) {
		if (lep->dead)
			continue;
		if (mock_now >= lep->up_at && net.blocked != &f->base) {
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

/* The end that a message is for, made if need be. NULL = nobody (yet) */
static struct link_lep *receiver(struct link_iface *f, struct link_msg *m)
{
	struct link_lep *lep = find_lep(f, m->to.lep);

	if (!f->control)
		return lep != NULL && lep->connected && lep->down_status == 0 &&
				       lep->to.iface == m->from.iface && lep->to.lep == m->from.lep
			       ? lep
			       : NULL;
	if (m->to.lep != 0)
		return lep;
	LIST_FOREACH(lep, &f->leps, entry)
		if (lep->base.passive && !lep->dead && lep->to.iface == m->from.iface &&
		    lep->to.lep == m->from.lep)
			return lep;
	lep = lep_new(f, NULL);
	lep->to = m->from;
	lep->base.passive = lep->base.up = lep->base.tx_room = true;
	f->event(f->arg, &lep->base, WEFT_LANE_EV_UP, 0, "connected");
	return lep->dead ? NULL : lep;
}

static void give_up(struct link_msg *m)
{
	struct link_lep *from = find_lep(find_iface(m->from.iface), m->from.lep);

	if (from != NULL && from->down_status == 0 && !m->datagram) {
		from->down_status = -ETIMEDOUT;
		snprintf(from->text, sizeof(from->text), "%s: mlink-%llu gave no answer in 1 s",
			 from->base.iface->name, (unsigned long long)m->to.iface);
	}
	settle(m, -ETIMEDOUT);
	msg_free(m);
}

static void deliver(struct link_iface *f, struct link_lep *lep, struct link_msg *m)
{
	uint8_t *copy = malloc(m->length + 1); /* overruns are seen */

	assert_non_null(copy);
	memcpy(copy, m->data, m->length);
	lep->delivering = true;
	f->rx++;
	f->recv(f->arg, &lep->base, m->am_id, copy, m->length, NULL);
	lep->delivering = false;
	settle(m, 0);
	if (lep->dead)
		lep_free(lep);
	msg_free(m);
	free(copy);
}

/* One message for @p f. @return false when there is none */
static bool receive(struct link_iface *f, uint64_t before)
{
	struct link_msg *m, *next, *found = NULL;
	struct link_lep *lep;
	unsigned int seen = 0;

	for (m = TAILQ_FIRST(&net.msgs); m != NULL; m = next) {
		next = TAILQ_NEXT(m, entry);
		if (m->to.iface != f->id || m->ready >= before)
			continue;
		if (!m->datagram && receiver(f, m) == NULL)
			continue;
		seen++;
		if (found == NULL || ((net.random || m->datagram) && rnd() % seen == 0))
			found = m;
	}
	if (found == NULL)
		return false;
	lep = receiver(f, found);
	if (lep == NULL)
		msg_free(found);
	else
		deliver(f, lep, found);
	return true;
}

/* What nobody takes. */
static void expire(void)
{
	struct link_msg *m, *next;

	for (m = TAILQ_FIRST(&net.msgs); m != NULL; m = next) {
		next = TAILQ_NEXT(m, entry);
		if (mock_now >= m->give_up)
			give_up(m);
	}
}

static unsigned int link_progress(struct weft_lane_iface *base, uint64_t now_ns)
{
	struct link_iface *f = to_iface(base);
	struct link_done *d;
	unsigned int n = 0, limit = net.num_msgs;

	assert_true(now_ns == mock_now);
	while (run_event(f))
		n++;
	while (limit-- > 0 && net.blocked != base && receive(f, mock_now + 1))
		n++;
	expire();
	while ((d = STAILQ_FIRST(&f->done)) != NULL) {
		STAILQ_REMOVE_HEAD(&f->done, entry);
		d->comp->done(d->comp, d->status);
		free(d);
		n++;
	}
	while (run_event(f))
		n++;
	return n;
}

static void link_tx_flush(struct weft_lane_iface *base)
{
	(void)base;
}

static void link_release(struct weft_lane_iface *base, void *desc)
{
	(void)base;
	(void)desc;
	fail_msg("nothing is ever kept");
}

/* ------------------------------------------------------------------ cold */

static void link_get_address(struct weft_lane_iface *base, void *buf)
{
	memset(buf, 0, 16);
	memcpy(buf, &to_iface(base)->id, 8);
	memcpy((uint8_t *)buf + 8, &to_iface(base)->net, 4);
}

static int link_is_reachable(struct weft_lane_iface *base, const void *addr, size_t len, char *why,
			     size_t why_len)
{
	uint32_t other;

	assert_int_equal(len, 16);
	memcpy(&other, (const uint8_t *)addr + 8, 4);
	snprintf(why, why_len, "net %u here, net %u there", to_iface(base)->net, other);
	return other == to_iface(base)->net ? 0 : -EHOSTUNREACH;
}

static void link_print_address(const void *addr, size_t len, char *buf, size_t size)
{
	uint64_t id = 0;

	memcpy(&id, addr, len < 8 ? len : 8);
	snprintf(buf, size, "mlink-%llu", (unsigned long long)id);
}

static bool link_link_up(struct weft_lane_iface *base)
{
	(void)base;
	return true;
}

static void link_ep_print(struct weft_lane_ep *base, char *buf, size_t size)
{
	snprintf(buf, size, "mlink end %u", to_lep(base)->num);
}

static void link_counters(struct weft_lane_iface *base, weft_lane_counter_cb cb, void *arg)
{
	cb("tx.messages", to_iface(base)->tx, arg);
	cb("rx.messages", to_iface(base)->rx, arg);
}

static void link_close(struct weft_lane_iface *base)
{
	struct link_iface *f = to_iface(base);
	struct link_msg *m, *next;
	struct link_done *d;

	while (!LIST_EMPTY(&f->leps))
		link_ep_destroy(&LIST_FIRST(&f->leps)->base);
	while ((d = STAILQ_FIRST(&f->done)) != NULL) {
		STAILQ_REMOVE_HEAD(&f->done, entry);
		d->comp->done(d->comp, d->status);
		free(d);
	}
	LIST_REMOVE(f, entry);
	net.num_ifaces--;
	/* With the last one goes what is under way; what others sent here ends as it would have. */
	for (m = TAILQ_FIRST(&net.msgs); m != NULL; m = next) {
		next = TAILQ_NEXT(m, entry);
		if (net.num_ifaces == 0 || m->from.iface == f->id ||
		    (m->datagram && m->to.iface == f->id))
			msg_free(m);
	}
	free(f);
}

static const struct weft_lane_ops link_ops = {
	.am_short = link_am_short,
	.am_bcopy = link_am_bcopy,
	.am_zcopy = link_am_zcopy,
	.tx_flush = link_tx_flush,
	.progress = link_progress,
	.release = link_release,
	.ep_create = link_ep_create,
	.ep_get_address = link_ep_get_address,
	.ep_connect_ep = link_ep_connect_ep,
	.ep_destroy = link_ep_destroy,
	.ep_flush = link_ep_flush,
	.get_address = link_get_address,
	.is_reachable = link_is_reachable,
	.print_address = link_print_address,
	.link_up = link_link_up,
	.ep_print = link_ep_print,
	.counters = link_counters,
	.close = link_close,
};

static const struct weft_lane_ops ctl_ops = {
	.am_short = link_am_short,
	.tx_flush = link_tx_flush,
	.progress = link_progress,
	.release = link_release,
	.ep_connect = ctl_ep_connect,
	.ep_destroy = link_ep_destroy,
	.ep_flush = link_ep_flush,
	.get_address = link_get_address,
	.is_reachable = link_is_reachable,
	.print_address = link_print_address,
	.link_up = link_link_up,
	.ep_print = link_ep_print,
	.counters = link_counters,
	.close = link_close,
};

/* ------------------------------------------------------------------ driver */

static int link_query(const struct weft_lane_conf *conf, struct weft_lane_resource **list)
{
	struct weft_lane_resource *r = calloc(4, sizeof(*r));
	int i;

	(void)conf;
	assert_non_null(r);
	for (i = 0; i < 4; i++)
		snprintf(r[i].name, sizeof(r[i].name), "%d", i);
	*list = r;
	return 4;
}

static double number(const char *options, const char *name, double def)
{
	const char *p = strstr(options, name);

	return p != NULL ? atof(p + strlen(name)) : def;
}

static void text(const char *options, const char *name, char *buf, size_t size, uint64_t def)
{
	const char *p = strstr(options, name);

	if (p == NULL)
		snprintf(buf, size, "mlink-%llu", (unsigned long long)def);
	else
		snprintf(buf, size, "%.*s", (int)strcspn(p + strlen(name), ","), p + strlen(name));
}

static void set_attr(struct link_iface *f, const char *o)
{
	struct weft_lane_attr *a = &f->base.attr;

	a->max_short = (size_t)number(o, "short=", f->control ? 400 : 200);
	a->bandwidth = number(o, "bw=", 5e9);
	a->latency = number(o, "lat=", 2e-6);
	a->opt_align = 1;
	a->dev_addr_len = 16;
	a->features = WEFT_LANE_F_SHORT;
	text(o, "dev=", a->device, sizeof(a->device), f->id);
	text(o, "dom=", a->domain, sizeof(a->domain), f->id);
	if (f->control) {
		a->features |= WEFT_LANE_F_TO_IFACE | WEFT_LANE_F_CONTROL;
		return;
	}
	a->max_bcopy = (size_t)number(o, "bcopy=", 4096);
	a->max_zcopy = (size_t)number(o, "zcopy=", 32768);
	a->max_zcopy_hdr = 128;
	a->max_iov = 4;
	a->ep_addr_len = (size_t)number(o, "eplen=", 12);
	a->features |=
		WEFT_LANE_F_BCOPY | WEFT_LANE_F_ZCOPY | WEFT_LANE_F_ZCOPY_REG | WEFT_LANE_F_TO_EP;
}

static int open_any(const struct weft_lane_open *p, bool control, struct weft_lane_iface **iface)
{
	struct link_iface *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->control = control;
	f->base.ops = control ? &ctl_ops : &link_ops;
	f->base.driver = control ? &mctl_driver : &mlink_driver;
	snprintf(f->base.name, sizeof(f->base.name), "%s:%.40s", f->base.driver->name, p->resource);
	f->id = ++net.next_id;
	f->net = (uint32_t)number(p->options, "net=", 0);
	f->max_ep = (unsigned int)number(p->options, "maxep=", 1000);
	set_attr(f, p->options);
	f->recv = p->recv;
	f->event = p->event;
	f->arg = p->arg;
	LIST_INIT(&f->leps);
	STAILQ_INIT(&f->done);
	LIST_INSERT_HEAD(&net.ifaces, f, entry);
	net.num_ifaces++;
	*iface = &f->base;
	return 0;
}

static int link_open(const struct weft_lane_open *p, struct weft_lane_iface **iface, char *why,
		     size_t why_len)
{
	(void)why;
	(void)why_len;
	return open_any(p, false, iface);
}

static int ctl_open(const struct weft_lane_open *p, struct weft_lane_iface **iface, char *why,
		    size_t why_len)
{
	(void)why;
	(void)why_len;
	return open_any(p, true, iface);
}

static int link_mem_register(struct weft_lane_iface *iface, void *addr, size_t len,
			     unsigned int access, struct weft_mem_lane **mem, char *why,
			     size_t why_len)
{
	uint64_t *key = malloc(sizeof(*key));

	(void)addr;
	(void)access;
	(void)why;
	(void)why_len;
	assert_non_null(key);
	*key = to_iface(iface)->id << 32 | len;
	*mem = (struct weft_mem_lane *)key;
	net.num_mems++;
	return 0;
}

static void link_mem_deregister(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	(void)iface;
	free(mem);
	net.num_mems--;
}

static uint64_t link_mem_key(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	(void)iface;
	return *(uint64_t *)mem;
}

const struct weft_lane_driver mlink_driver = {
	.name = "mlink",
	.abi = WEFT_LANE_ABI,
	.query = link_query,
	.open = link_open,
	.mem_register = link_mem_register,
	.mem_deregister = link_mem_deregister,
	.mem_key = link_mem_key,
	.options = "net,dev,dom,bw,lat,short,bcopy,zcopy,eplen,maxep",
};

const struct weft_lane_driver mctl_driver = {
	.name = "mctl",
	.abi = WEFT_LANE_ABI,
	.query = link_query,
	.open = ctl_open,
	.options = "net,dev,dom,bw,lat,short",
};

const struct weft_lane_driver *const mlink_drivers[] = {&mock_driver, &mlink_driver, &mctl_driver,
							&weft_self_driver, NULL};

/* ------------------------------------------------------------------ control */

void mlink_reset(uint64_t seed)
{
	memset(&net, 0, sizeof(net));
	TAILQ_INIT(&net.msgs);
	LIST_INIT(&net.ifaces);
	net.next_id = 500;
	net.next_lep = 0x1000;
	net.rng = seed * 0x9e3779b97f4a7c15ull + 1;
}

unsigned int mlink_num_ifaces(void)
{
	return net.num_ifaces;
}

unsigned int mlink_num_leps(void)
{
	return net.num_leps;
}

unsigned int mlink_num_messages(void)
{
	return net.num_msgs;
}

unsigned int mlink_num_mems(void)
{
	return net.num_mems;
}

void mctl_set_faults(unsigned int loss, unsigned int twice, unsigned int late)
{
	net.loss = loss;
	net.twice = twice;
	net.late = late;
}

uint64_t mctl_sent(void)
{
	return net.sent;
}

void mlink_set_random(bool on)
{
	net.random = on;
}

void mlink_set_eagain(unsigned int permille)
{
	net.eagain = permille;
}

void mlink_set_up_delay(uint64_t ns)
{
	net.up_delay = ns;
}

void mlink_block(struct weft_lane_iface *iface)
{
	net.blocked = iface;
}

void mlink_fail(struct weft_lane_iface *iface, int status, const char *why)
{
	struct link_lep *lep;

	LIST_FOREACH(lep, &to_iface(iface)->leps, entry) {
		if (lep->down_status == 0) {
			lep->down_status = status;
			snprintf(lep->text, sizeof(lep->text), "%s", why);
		}
	}
}

void mlink_refuse_addresses(int rc)
{
	net.refuse = rc;
}

#define STRANGER 499

void mctl_stranger(struct weft_lane_iface *to, uint32_t lep, uint8_t am_id, const void *data,
		   size_t len)
{
	struct link_msg *m = enqueue((struct end){STRANGER, lep}, (struct end){to_iface(to)->id, 0},
				     am_id, data, len);

	m->datagram = true;
}

size_t mctl_stranger_last(const void **data)
{
	struct link_msg *m, *next;

	for (m = TAILQ_FIRST(&net.msgs); m != NULL; m = next) {
		next = TAILQ_NEXT(m, entry);
		if (m->to.iface != STRANGER)
			continue;
		net.stranger_len = m->length;
		memcpy(net.stranger, m->data, m->length);
		msg_free(m);
	}
	*data = net.stranger;
	return net.stranger_len;
}

void mctl_set_filter(bool (*filter)(void *data, size_t *len, void *arg), void *arg)
{
	net.filter = filter;
	net.filter_arg = arg;
}

struct weft_context *mlink_context(const char *setting, ...)
{
	struct weft_context_params p = WEFT_INIT(struct weft_context_params, .name = "test");
	struct weft_config *config;
	struct weft_context *ctx;
	char name[64];
	va_list ap;
	size_t n;

	assert_int_equal(weft_config_read(&config), 0);
	va_start(ap, setting);
	for (; setting != NULL; setting = va_arg(ap, const char *)) {
		n = strcspn(setting, "=");
		snprintf(name, sizeof(name), "%.*s", (int)n, setting);
		assert_int_equal(weft_config_modify(config, name, setting + n + 1), 0);
	}
	va_end(ap);
	p.config = config;
	assert_int_equal(weft_context_create_in(&p, &mock_platform, mlink_drivers, &ctx), 0);
	weft_config_release(config);
	return ctx;
}
