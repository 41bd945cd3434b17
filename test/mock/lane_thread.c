/* SPDX-License-Identifier: BSD-3-Clause */
/* The worker's thread: messages, progress, open and close. */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "mock/lane_thread_priv.h"

/* Ifaces of one kind have one driver: its functions of an iface would get this one. */
static struct weft_lane_driver driver;

#define PARK_SPINS 20000u
#define PARK_SLEEP_NS 50000

/* ------------------------------------------------------------------ commands */

static void refresh(struct lt_ep *ep)
{
	uint32_t taken = atomic_load_explicit(&ep->taken, memory_order_relaxed);

	ep->base.queued =
		atomic_load_explicit(&ep->queued, memory_order_relaxed) + (ep->posted - taken);
	ep->base.rtt_ns = atomic_load_explicit(&ep->rtt_ns, memory_order_relaxed);
	ep->base.max_msg = atomic_load_explicit(&ep->max_msg, memory_order_relaxed);
	ep->base.retransmits = atomic_load_explicit(&ep->retransmits, memory_order_relaxed);
	ep->base.tx_room = ep->lt->home ? atomic_load_explicit(&ep->tx_room, memory_order_relaxed)
					: ep->refs <= LT_EP_CMDS && !STAILQ_EMPTY(&ep->lt->free);
}

/* @return 0; -EAGAIN: not now */
static int may_send(const struct lt_ep *ep)
{
	if (ep->base.up && !ep->stopping)
		return 0;
	return ep->error ? ep->error : -EAGAIN;
}

static struct lt_cmd *cmd_new(struct lt_ep *ep, enum lt_kind kind, struct weft_lane_comp *comp)
{
	struct lt_iface *lt = ep->lt;
	struct lt_cmd *c = STAILQ_FIRST(&lt->free);

	if (!c || ep->refs > LT_EP_CMDS) {
		ep->base.tx_room = false;
		return NULL;
	}
	STAILQ_REMOVE_HEAD(&lt->free, link);
	c->own.done = lt_comp_done;
	c->ep = ep;
	c->comp = comp;
	c->kind = kind;
	c->mem = NULL;
	c->iovcnt = c->hdr_len = c->length = 0;
	ep->refs++;
	if (kind == LT_FLUSH)
		LIST_INSERT_HEAD(&ep->flushes, c, flush);
	return c;
}

static void cmd_free(struct lt_iface *lt, struct lt_cmd *c)
{
	if (c->kind == LT_FLUSH && c->comp)
		LIST_REMOVE(c, flush);
	STAILQ_INSERT_HEAD(&lt->free, c, link);
	lt_ep_put(c->ep);
}

void lt_cmd_over(struct lt_iface *lt, struct lt_cmd *c, int status)
{
	struct weft_lane_comp *comp = c->comp;

	c->ep->base.tx_room = true;
	cmd_free(lt, c);
	if (comp)
		comp->done(comp, status);
}

/* To the owner. There is room: the ring has a place for each command. */
static void cmd_post(struct lt_iface *lt, struct lt_cmd *c)
{
	uint32_t at;

	c->ep->posted += c->length;
	c->ep->base.queued += c->length;
	if (lt->home) {
		STAILQ_INSERT_TAIL(&c->ep->backlog, c, link);
		return;
	}
	if (!lt_may_put(&lt->cmd_at, LT_CMDS, &at))
		abort();
	lt->cmd[at] = c;
	lt_put(&lt->cmd_at);
	lt->count.sends++;
}

static int lt_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		       const void *payload, size_t length)
{
	struct lt_ep *ep = lt_ep_of(base);
	struct lt_iface *lt = ep->lt;
	int rc = may_send(ep);
	struct lt_cmd *c;

	if (rc)
		return rc;
	if (lt->home) {
		rc = ep->inner->ops->am_short(ep->inner, am_id, hdr, hdr_len, payload, length);
		lt->base.tx_open = lt->inner->tx_open;
		lt_publish(ep);
		refresh(ep);
		return rc;
	}
	if (hdr_len + length > base->max_msg || hdr_len + length > lt->room)
		return -EMSGSIZE;
	c = cmd_new(ep, LT_SEND, NULL);
	if (!c)
		return -EAGAIN;
	c->am_id = am_id;
	c->hdr_len = c->length = (uint32_t)(hdr_len + length);
	memcpy(c->data, hdr, hdr_len);
	if (length > 0)
		memcpy(c->data + hdr_len, payload, length);
	cmd_post(lt, c);
	return 0;
}

static ssize_t lt_am_bcopy(struct weft_lane_ep *base, uint8_t am_id, weft_lane_pack_cb pack,
			   void *arg)
{
	struct lt_ep *ep = lt_ep_of(base);
	struct lt_iface *lt = ep->lt;
	ssize_t n = may_send(ep);
	struct lt_cmd *c;

	if (n)
		return n;
	if (lt->home) {
		n = ep->inner->ops->am_bcopy(ep->inner, am_id, pack, arg);
		lt->base.tx_open = lt->inner->tx_open;
		lt_publish(ep);
		refresh(ep);
		return n;
	}
	c = cmd_new(ep, LT_SEND, NULL);
	if (!c)
		return -EAGAIN;
	n = pack(c->data, base->max_msg < lt->room ? base->max_msg : lt->room, arg);
	if (n <= 0) {
		cmd_free(lt, c);
		return n < 0 ? n : -EINVAL;
	}
	c->am_id = am_id;
	c->hdr_len = c->length = (uint32_t)n;
	cmd_post(lt, c);
	return n;
}

static int lt_am_zcopy(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		       const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		       struct weft_lane_comp *comp)
{
	struct lt_ep *ep = lt_ep_of(base);
	size_t length = hdr_len;
	int rc = may_send(ep);
	struct lt_cmd *c;

	if (rc)
		return rc;
	for (unsigned int i = 0; i < iovcnt; i++)
		length += iov[i].iov_len;
	if (length > base->max_msg || hdr_len > ep->lt->base.attr.max_zcopy_hdr || iovcnt > LT_IOV)
		return -EMSGSIZE;
	c = cmd_new(ep, LT_ZSEND, comp);
	if (!c)
		return -EAGAIN;
	c->am_id = am_id;
	c->mem = mem;
	c->hdr_len = (uint32_t)hdr_len;
	c->length = (uint32_t)length;
	c->iovcnt = iovcnt;
	memcpy(c->data, hdr, hdr_len);
	memcpy(c->iov, iov, iovcnt * sizeof(*iov));
	cmd_post(ep->lt, c);
	return 0;
}

static int lt_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
{
	struct lt_ep *ep = lt_ep_of(base);
	int rc = may_send(ep);
	struct lt_cmd *c;

	if (rc)
		return rc == -EAGAIN && ep->stopped ? -ENOTCONN : rc;
	c = cmd_new(ep, LT_FLUSH, comp);
	if (!c)
		return -EAGAIN;
	if (ep->lt->home && STAILQ_EMPTY(&ep->backlog)) {
		rc = ep->inner->ops->ep_flush(ep->inner, &c->own);
		if (rc)
			cmd_free(ep->lt, c);
		return rc;
	}
	cmd_post(ep->lt, c);
	return 0;
}

static void lt_tx_flush(struct weft_lane_iface *base)
{
	struct lt_iface *lt = lt_of(base);

	if (!lt->home)
		return;
	if (lt->inner->ops->tx_flush)
		lt->inner->ops->tx_flush(lt->inner);
	base->tx_open = lt->inner->tx_open;
}

/* ------------------------------------------------------------------ what comes */

int lt_deliver(struct lt_iface *lt, struct lt_ep *ep, uint8_t am_id, const void *data,
	       size_t length, void *desc)
{
	if (ep->dead || ep->stopped)
		return 0;
	return lt->open.recv(lt->open.arg, &ep->base, am_id, data, length, desc);
}

static bool gift_put(struct lt_iface *lt, void *desc)
{
	uint32_t at;

	if (!lt_may_put(&lt->gift_at, LT_GIFTS, &at))
		return false;
	lt->gift[at] = desc;
	lt_put(&lt->gift_at);
	return true;
}

static void lt_release(struct weft_lane_iface *base, void *desc)
{
	struct lt_iface *lt = lt_of(base);

	if (lt->home) {
		lt_buf_free(lt, desc);
		return;
	}
	if (lt->num_late == 0 && gift_put(lt, desc))
		return;
	if (lt->num_late == lt->max_late) {
		lt->max_late = 2 * lt->max_late + 64;
		lt->late = realloc(lt->late, lt->max_late * sizeof(*lt->late));
		if (!lt->late)
			abort();
	}
	lt->late[lt->num_late++] = desc;
}

static void release_late(struct lt_iface *lt)
{
	while (lt->num_late > 0) {
		if (lt->home)
			lt_buf_free(lt, lt->late[lt->num_late - 1]);
		else if (!gift_put(lt, lt->late[lt->num_late - 1]))
			return;
		lt->num_late--;
	}
}

/*
 * The state of a lane that the thread has stopped is final. If the worker does not take it in this
 * event, the lane ends.
 */
void lt_event_in(struct lt_iface *lt, struct lt_ep *ep, enum weft_lane_event ev, int status,
		 const char *text)
{
	lt->cold_at = lt->now;
	if (ep->dead || ep->stopped)
		return;
	refresh(ep);
	if (ev == WEFT_LANE_EV_UP) {
		ep->base.up = true;
		ep->base.lacks = ep->inner->lacks;
	} else if (ev == WEFT_LANE_EV_DOWN || ev == WEFT_LANE_EV_GONE) {
		ep->base.up = false;
		ep->error = ev == WEFT_LANE_EV_DOWN ? status : -ECONNRESET;
	}
	ep->final = ev == WEFT_LANE_EV_SUSPECT && ep->saved_len > 0;
	lt->open.event(lt->open.arg, &ep->base, ev, status, text);
	if (!ep->final || ep->stopped || ep->dead)
		return;
	ep->base.up = false;
	ep->error = status;
	lt->open.event(lt->open.arg, &ep->base, WEFT_LANE_EV_DOWN, status, text);
}

static void handle(struct lt_iface *lt, struct lt_rec *r)
{
	switch (r->what) {
	case LT_MSG:
		lt->count.recvs++;
		if (lt_deliver(lt, r->ep, r->am_id, r->data, r->length, r->p) != WEFT_LANE_KEEP)
			lt_release(&lt->base, r->p);
		break;
	case LT_PLACED:
		lt->count.recvs++;
		lt->count.placed++;
		if (!r->ep->dead && !r->ep->stopped)
			lt->conf.placed(lt->open.arg, &r->ep->base, r->hdr, r->hdr_len, r->length);
		break;
	case LT_DONE:
		lt_cmd_over(lt, r->p, r->status);
		break;
	case LT_EVENT:
		lt_event_in(lt, r->ep, r->event, r->status, r->data);
		free((void *)(uintptr_t)r->data);
		break;
	case LT_IFACE_EVENT:
		lt_iface_event(lt, NULL, (enum weft_lane_iface_event)r->status, r->data);
		free((void *)(uintptr_t)r->data);
	}
}

static bool needs_home(const struct lt_iface *lt, const struct lt_rec *r)
{
	return r->what == LT_EVENT || r->what == LT_IFACE_EVENT ||
	       (r->what == LT_MSG && r->am_id == lt->conf.home_id);
}

/* @return the iface is at home */
static bool arrive(struct lt_iface *lt)
{
	/* Acquire: what the lane's thread did with the inner iface. */
	if (!lt->home && atomic_load_explicit(&lt->parked, memory_order_acquire)) {
		lt->home = true;
		lt->cold_at = lt->now;
		atomic_store_explicit(&lt->ask, false, memory_order_relaxed);
	}
	return lt->home;
}

/* A record whose handling needs the iface waits for it, and so do those behind it. */
static unsigned int drain(struct lt_iface *lt)
{
	struct lt_ep *last = NULL;
	struct lt_spill *s;
	unsigned int n = 0;
	struct lt_rec rec;
	uint32_t at;

	while (lt_may_get(&lt->rec_at, LT_RECS, &at)) {
		if (needs_home(lt, &lt->rec[at]) && !arrive(lt)) {
			lt_cold(lt);
			break;
		}
		rec = lt->rec[at];
		lt_got(&lt->rec_at);
		if (rec.what == LT_DONE)
			rec.ep = ((struct lt_cmd *)rec.p)->ep;
		if (rec.ep && rec.ep != last)
			refresh(rec.ep);
		last = rec.ep;
		handle(lt, &rec);
		n++;
	}
	while (lt->home && (s = STAILQ_FIRST(&lt->spill))) {
		STAILQ_REMOVE_HEAD(&lt->spill, link);
		handle(lt, &s->rec);
		free(s);
		n++;
	}
	return n;
}

/* ------------------------------------------------------------------ progress */

static void bury(struct lt_iface *lt)
{
	struct lt_ep *ep;

	while ((ep = LIST_FIRST(&lt->graves))) {
		LIST_REMOVE(ep, link);
		free(ep);
	}
}

static void maybe_leave(struct lt_iface *lt)
{
	bool up = false;
	struct lt_ep *ep;

	/* A lane_ep that is stopped will be reaped. */
	LIST_FOREACH(ep, &lt->eps, link)
		if (ep->stopped && !ep->dead)
			return;
	if (lt->held || lt->now - lt->cold_at < lt->conf.quiet_ns || !TAILQ_EMPTY(&lt->cold))
		return;
	LIST_FOREACH(ep, &lt->eps, link)
		up |= ep->base.up && !ep->dead;
	if (!up)
		return;
	lt->count.away++;
	lt->base.tx_open = false;
	lt->home = false;
	LIST_FOREACH(ep, &lt->eps, link)
		refresh(ep);
	/* Release: what this thread did with the inner iface. */
	atomic_store_explicit(&lt->parked, false, memory_order_release);
}

static unsigned int lt_progress(struct weft_lane_iface *base, uint64_t now)
{
	struct lt_iface *lt = lt_of(base);
	struct lt_ep *ep;
	unsigned int n;

	lt->now = now;
	if (!LIST_EMPTY(&lt->graves))
		bury(lt);
	arrive(lt);
	release_late(lt);
	n = drain(lt);
	if (!lt->home)
		return n;
	n += lt_round(lt, now);
	lt_arrived(lt);
	LIST_FOREACH(ep, &lt->eps, link)
		refresh(ep);
	lt->base.tx_open = lt->inner->tx_open;
	maybe_leave(lt);
	return n;
}

/* ------------------------------------------------------------------ life */

static void pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((unsigned int)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *run(void *arg)
{
	const struct timespec nap = {.tv_nsec = PARK_SLEEP_NS};
	struct lt_iface *lt = arg;
	const struct weft_platform *platform = lt->open.platform;
	unsigned int idle = 0;

	pin(lt->conf.cpu);
	if (lt->conf.begin)
		lt->conf.begin();
	while (!atomic_load_explicit(&lt->stop, memory_order_acquire)) {
		if (!atomic_load_explicit(&lt->parked, memory_order_relaxed)) {
			lane_thread_step(&lt->base, platform->now(platform->arg));
			idle = 0;
		} else if (++idle > PARK_SPINS) {
			nanosleep(&nap, NULL);
		}
	}
	return NULL;
}

static void lt_close(struct weft_lane_iface *base)
{
	struct lt_iface *lt = lt_of(base);
	struct lt_cmd *c;

	if (!lt->conf.manual) {
		/* Release: pairs with run(). */
		atomic_store_explicit(&lt->stop, true, memory_order_release);
		pthread_join(lt->thread, NULL);
	}
	lt->home = true;
	lt_take_in(lt);
	drain(lt);
	lt_end_all(lt);
	release_late(lt);
	lt->inner->ops->close(lt->inner);
	bury(lt);
	while ((c = STAILQ_FIRST(&lt->free))) {
		STAILQ_REMOVE_HEAD(&lt->free, link);
		free(c);
	}
	free(lt->late);
	free(lt);
}

static void make_ops(struct lt_iface *lt)
{
	const struct weft_lane_ops *in = lt->inner->ops;
	struct weft_lane_ops *ops = &lt->ops;

	*ops = lt_conn_ops;
	ops->am_short = lt_am_short;
	ops->am_bcopy = lt_am_bcopy;
	ops->am_zcopy = lt_am_zcopy;
	ops->tx_flush = lt_tx_flush;
	ops->progress = lt_progress;
	ops->release = lt_release;
	ops->ep_flush = lt_ep_flush;
	ops->print_address = in->print_address;
	ops->close = lt_close;
	if (!in->ep_is_from)
		ops->ep_is_from = NULL;
	if (!in->ep_host)
		ops->ep_host = NULL;
	if (!in->ep_quiesce) {
		ops->ep_quiesce = NULL;
		ops->ep_reap = NULL;
		ops->ep_seen = NULL;
	}
	if (!in->arm) {
		ops->wait_fd = NULL;
		ops->arm = NULL;
		ops->disarm = NULL;
	}
}

/* Sends from user memory are the ones that the thread copies, whatever the inner driver does. */
static void make_attr(struct lt_iface *lt)
{
	struct weft_lane_attr *attr = &lt->base.attr;

	*attr = lt->inner->attr;
	attr->domain = NULL;
	attr->features &= WEFT_LANE_F_SHORT | WEFT_LANE_F_BCOPY | WEFT_LANE_F_ZCOPY |
			  WEFT_LANE_F_TO_IFACE | WEFT_LANE_F_LOOPBACK | WEFT_LANE_F_COPIES |
			  WEFT_LANE_F_MEMORY;
	if (!(attr->features & WEFT_LANE_F_ZCOPY)) {
		attr->features |= WEFT_LANE_F_ZCOPY;
		attr->max_zcopy = attr->max_bcopy;
		attr->max_zcopy_hdr = attr->max_short;
	}
	if (attr->max_iov == 0 || attr->max_iov > LT_IOV)
		attr->max_iov = LT_IOV;
	lt->room = attr->max_bcopy > attr->max_short ? attr->max_bcopy : attr->max_short;
	if (lt->room < attr->max_zcopy_hdr)
		lt->room = attr->max_zcopy_hdr;
	if (attr->max_zcopy_hdr > lt->room)
		attr->max_zcopy_hdr = lt->room;
}

static bool make_cmds(struct lt_iface *lt)
{
	for (unsigned int i = 0; i < LT_CMDS; i++) {
		struct lt_cmd *c = aligned_alloc(64, (sizeof(*c) + lt->room + 63) / 64 * 64);

		if (!c)
			return false;
		memset(c, 0, sizeof(*c));
		STAILQ_INSERT_HEAD(&lt->free, c, link);
	}
	return true;
}

static struct lt_iface *iface_new(const struct weft_lane_open *params,
				  const struct lane_thread_conf *conf)
{
	struct lt_iface *lt = aligned_alloc(64, sizeof(*lt));

	if (!lt)
		return NULL;
	memset(lt, 0, sizeof(*lt));
	lt->open = *params;
	lt->conf = *conf;
	lt->home = true;
	atomic_init(&lt->parked, true);
	LIST_INIT(&lt->eps);
	LIST_INIT(&lt->graves);
	STAILQ_INIT(&lt->free);
	STAILQ_INIT(&lt->spill);
	TAILQ_INIT(&lt->cold);
	return lt;
}

int lane_thread_open(const struct weft_lane_driver *inner, const struct weft_lane_open *params,
		     const struct lane_thread_conf *conf, struct weft_lane_iface **iface, char *why,
		     size_t why_len)
{
	struct lt_iface *lt = iface_new(params, conf);
	struct weft_lane_open own = *params;
	int rc;

	if (!lt)
		return -ENOMEM;
	own.recv = lt_recv;
	own.recv_batch = NULL;
	own.recv_in_place = NULL;
	own.event = lt_event;
	own.iface_event = lt_iface_event;
	own.arg = lt;
	memset(&own.report, 0, sizeof(own.report)); /* its functions read the worker */
	rc = inner->open(&own, &lt->inner, why, why_len);
	if (rc < 0) {
		free(lt);
		return rc;
	}
	driver = *inner;
	driver.boot = NULL;
	driver.control = NULL;
	driver.mem_register = NULL;
	driver.mem_deregister = NULL;
	driver.mem_key = NULL;
	lt->base.name = lt->inner->name;
	lt->base.note = lt->inner->note;
	lt->base.driver = &driver;
	lt->base.ops = &lt->ops;
	make_attr(lt);
	make_ops(lt);
	lt->conf.manual = true; /* no thread yet: for lt_close() */
	if (!make_cmds(lt) ||
	    (!conf->manual && weft_thread_start("weft-lane", run, lt, NULL, &lt->thread) != 0)) {
		lt_close(&lt->base);
		return -ENOMEM;
	}
	lt->conf.manual = conf->manual;
	*iface = &lt->base;
	return 0;
}

void lane_thread_hold(struct weft_lane_iface *iface, bool hold)
{
	lt_of(iface)->held = hold;
	if (hold)
		lt_cold(lt_of(iface));
}

bool lane_thread_is_away(const struct weft_lane_iface *iface)
{
	return !lt_of(iface)->home;
}

const struct lane_thread_count *lane_thread_count(const struct weft_lane_iface *iface)
{
	return &lt_of(iface)->count;
}
