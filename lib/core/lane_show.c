/* SPDX-License-Identifier: BSD-3-Clause */

#include "core/lane_show.h"

#include <pthread.h>

#include "core/wire.h"
#include "core/worker.h"

#define LANES 256u /* interfaces of a process: a capture file has no more */
/* Pieces of a record: its head, the message's header, the iov of am_zcopy(). */
#define PARTS 36u

struct shown {
	struct weft_record_head head;
	struct iovec iov[PARTS];
	unsigned int num;
};

_Atomic unsigned int weft_lanes_shown;

/* The worker's thread uses the entry of an interface. Others set only `wanted`. */
static struct shown_lane {
	_Atomic(const struct weft_lane_iface *) iface; /* NULL = free */
	struct weft_lane_tap *tap;
	atomic_bool wanted;
} lanes[LANES];
static _Atomic unsigned int num_lanes; /* entries from here on were never in use */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static struct shown_lane *lane_of(const struct weft_lane_iface *iface)
{
	/* Relaxed: this thread entered the interface, or got the worker's lock after that. */
	unsigned int i, n = atomic_load_explicit(&num_lanes, memory_order_relaxed);

	for (i = 0; i < n; i++)
		if (atomic_load_explicit(&lanes[i].iface, memory_order_relaxed) == iface)
			return &lanes[i];
	return NULL;
}

/* Relaxed: the flag is only a hint; the tap ignores records while it is inactive. */
static struct weft_lane_tap *tap_of(const struct weft_lane_ep *lane_ep)
{
	const struct shown_lane *l = lane_of(lane_ep->iface);

	return l && atomic_load_explicit(&l->wanted, memory_order_relaxed) ? l->tap : NULL;
}

static void want(void *arg, bool yes)
{
	struct shown_lane *l = arg;

	/* Relaxed: only hints. */
	if (atomic_exchange_explicit(&l->wanted, yes, memory_order_relaxed) == yes)
		return;
	if (yes)
		atomic_fetch_add_explicit(&weft_lanes_shown, 1, memory_order_relaxed);
	else
		atomic_fetch_sub_explicit(&weft_lanes_shown, 1, memory_order_relaxed);
}

/* The caller holds the lock, so loads and stores are relaxed. */
static struct shown_lane *take_place(const struct weft_lane_iface *iface)
{
	unsigned int i;

	for (i = 0; i < LANES; i++) {
		if (atomic_load_explicit(&lanes[i].iface, memory_order_relaxed))
			continue;
		lanes[i].tap = NULL;
		atomic_store_explicit(&lanes[i].iface, iface, memory_order_relaxed);
		if (i >= atomic_load_explicit(&num_lanes, memory_order_relaxed))
			atomic_store_explicit(&num_lanes, i + 1, memory_order_relaxed);
		return &lanes[i];
	}
	return NULL;
}

bool weft_lane_show_open(struct weft_lane_iface *iface, const struct weft_lane_tap_ops *ops,
			 struct weft_lane_tap_open *params)
{
	static bool prepared;
	struct shown_lane *l;

	pthread_mutex_lock(&lock);
	if (!prepared) /* so that the child, too, can take the lock */
		prepared = pthread_atfork(before_fork, after_fork, after_fork) == 0;
	l = take_place(iface);
	pthread_mutex_unlock(&lock);
	if (!l)
		return false;
	params->want = want;
	params->arg = l;
	l->tap = ops->open(params);
	if (!l->tap) /* relaxed: no other thread uses the entry */
		atomic_store_explicit(&l->iface, NULL, memory_order_relaxed);
	return l->tap != NULL;
}

bool weft_lane_is_known(const struct weft_lane_iface *iface)
{
	return lane_of(iface) != NULL;
}

void weft_lane_show_close(const struct weft_lane_iface *iface)
{
	struct shown_lane *l = lane_of(iface);

	if (!l)
		return;
	l->tap->ops->close(l->tap);
	pthread_mutex_lock(&lock);
	/* Relaxed: the thread that takes the entry next takes the lock, too. */
	atomic_store_explicit(&l->iface, NULL, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
}

void weft_shown_failed(const struct weft_lane_ep *lane_ep, const char *reason)
{
	struct weft_lane_tap *tap = tap_of(lane_ep);

	if (tap)
		tap->ops->failed(tap, reason);
}

static void add(struct shown *s, const void *data, size_t len)
{
	if (len > 0 && s->num < PARTS)
		s->iov[s->num++] = (struct iovec){(void *)(uintptr_t)data, len};
}

/*
 * While the lane ep belongs to no endpoint, only wire-up messages contain the ids and the lane
 * number: of_wireup().
 */
static void of_endpoint(struct shown *s, const struct weft_lane_ep *lane_ep, bool sends)
{
	const struct weft_worker *w = lane_ep->iface->user;
	const struct weft_ep *ep = lane_ep->user;
	uint64_t far = ep ? ep->remote_id : 0;
	uint8_t lane = WEFT_RECORD_NO_LANE;

	if (ep && lane_ep->index < WEFT_MAX_LANES && ep->lanes[lane_ep->index].lane_ep == lane_ep)
		lane = lane_ep->index;
	s->head = (struct weft_record_head){
		.magic = weft_put16(WEFT_RECORD_MAGIC),
		.version = WEFT_RECORD_VERSION,
		.kind = WEFT_RECORD_MESSAGE,
		.lane = lane,
		.conn_sn = weft_put32(ep ? ep->conn_sn : 0),
		.from = weft_put64(sends ? w->id : far),
		.to = weft_put64(sends ? far : w->id),
	};
	s->num = 0;
	add(s, &s->head, sizeof(s->head));
}

static void of_wireup(struct shown *s, const struct weft_wire_wireup *w)
{
	s->head.conn_sn = w->conn_sn;
	s->head.from = w->src_worker;
	s->head.to = w->dst_worker;
	if (w->type == WEFT_WIREUP_REP || w->type == WEFT_WIREUP_ACK)
		s->head.lane = 0;
	else if (w->type == WEFT_WIREUP_ATTACH || w->type == WEFT_WIREUP_ATTACHED)
		s->head.lane = w->lane;
}

/* @param data  the first @p have of @p length bytes */
static void of_message(struct shown *s, const struct weft_lane_ep *lane_ep, bool sends, uint8_t id,
		       const void *data, size_t have, size_t length)
{
	of_endpoint(s, lane_ep, sends);
	s->head.am_id = id;
	s->head.length = weft_put32((uint32_t)length);
	if (id == WEFT_WIRE_WIREUP && have >= sizeof(struct weft_wire_wireup))
		of_wireup(s, data);
}

static void offer(struct weft_lane_tap *tap, const struct shown *s,
		  const struct weft_lane_ep *lane_ep, enum weft_lane_tap_way way)
{
	const struct weft_worker *w = lane_ep->iface->user;

	tap->ops->offer(tap, way, s->iov, s->num, w->now);
}

/* ---- sends ---------------------------------------------------------------------------------- */

/* A record is offered before the send, and valid if the lane accepts the message. */

int weft_shown_short(struct weft_lane_ep *lane_ep, uint8_t id, const void *hdr, size_t hdr_len,
		     const void *payload, size_t length)
{
	struct weft_lane_tap *tap = tap_of(lane_ep);
	struct shown s;
	int rc;

	if (!tap)
		return lane_ep->ops->am_short(lane_ep, id, hdr, hdr_len, payload, length);
	of_message(&s, lane_ep, true, id, hdr, hdr_len, hdr_len + length);
	add(&s, hdr, hdr_len);
	add(&s, payload, length);
	offer(tap, &s, lane_ep, WEFT_LANE_TAP_OUT);
	rc = lane_ep->ops->am_short(lane_ep, id, hdr, hdr_len, payload, length);
	tap->ops->taken(tap, rc == 0);
	return rc;
}

struct packing {
	struct weft_lane_ep *lane_ep;
	struct weft_lane_tap *tap;
	weft_lane_pack_cb pack;
	void *arg;
	uint8_t id;
	bool offered;
};

static ssize_t pack_and_offer(void *dst, size_t max, void *arg)
{
	struct packing *p = arg;
	ssize_t n = p->pack(dst, max, p->arg);
	struct shown s;

	if (n <= 0 || p->offered)
		return n;
	of_message(&s, p->lane_ep, true, p->id, dst, (size_t)n, (size_t)n);
	add(&s, dst, (size_t)n);
	offer(p->tap, &s, p->lane_ep, WEFT_LANE_TAP_OUT);
	p->offered = true;
	return n;
}

ssize_t weft_shown_bcopy(struct weft_lane_ep *lane_ep, uint8_t id, weft_lane_pack_cb pack,
			 void *arg)
{
	struct packing p = {lane_ep, tap_of(lane_ep), pack, arg, id, false};
	ssize_t n;

	if (!p.tap)
		return lane_ep->ops->am_bcopy(lane_ep, id, pack, arg);
	n = lane_ep->ops->am_bcopy(lane_ep, id, pack_and_offer, &p);
	if (p.offered)
		p.tap->ops->taken(p.tap, n > 0);
	return n;
}

int weft_shown_zcopy(struct weft_lane_ep *lane_ep, uint8_t id, const void *hdr, size_t hdr_len,
		     const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		     struct weft_lane_comp *comp)
{
	struct weft_lane_tap *tap = tap_of(lane_ep);
	size_t length = hdr_len;
	struct shown s;
	unsigned int i;
	int rc;

	if (!tap)
		return lane_ep->ops->am_zcopy(lane_ep, id, hdr, hdr_len, iov, iovcnt, mem, comp);
	for (i = 0; i < iovcnt; i++)
		length += iov[i].iov_len;
	of_message(&s, lane_ep, true, id, hdr, hdr_len, length);
	add(&s, hdr, hdr_len);
	for (i = 0; i < iovcnt; i++)
		add(&s, iov[i].iov_base, iov[i].iov_len);
	offer(tap, &s, lane_ep, WEFT_LANE_TAP_OUT);
	rc = lane_ep->ops->am_zcopy(lane_ep, id, hdr, hdr_len, iov, iovcnt, mem, comp);
	tap->ops->taken(tap, rc == 0);
	return rc;
}

/* ---- received messages, native operations --------------------------------------------------- */

void weft_shown_recv(struct weft_lane_ep *lane_ep, uint8_t id, const void *data, size_t length)
{
	struct weft_lane_tap *tap = tap_of(lane_ep);
	struct shown s;

	if (!tap)
		return;
	of_message(&s, lane_ep, false, id, data, length, length);
	add(&s, data, length);
	offer(tap, &s, lane_ep, WEFT_LANE_TAP_IN);
	tap->ops->taken(tap, true);
}

void weft_shown_native(struct weft_lane_ep *lane_ep, const struct weft_shown_native *n, bool over)
{
	const struct weft_record_native body = {
		.offset = weft_put64(n->offset),
		.key = weft_put64(n->key),
		.local = weft_put64(n->local),
		.compare = weft_put64(n->compare),
		.ref_index = weft_put32(n->ref_index),
		.ref_generation = weft_put32(n->ref_generation),
	};
	struct weft_lane_tap *tap = tap_of(lane_ep);
	struct shown s;

	if (!tap)
		return;
	of_endpoint(&s, lane_ep, true);
	s.head.kind = (uint8_t)n->kind;
	s.head.flags = weft_put16(over ? WEFT_RECORD_F_DONE : 0);
	s.head.length = weft_put32((uint32_t)n->length);
	add(&s, &body, sizeof(body));
	offer(tap, &s, lane_ep, over ? WEFT_LANE_TAP_IN : WEFT_LANE_TAP_OUT);
	tap->ops->taken(tap, true);
}
