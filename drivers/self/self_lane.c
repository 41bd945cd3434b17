/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Driver "self": messages of a worker to itself, through a queue in memory.
 *
 * One queue per iface holds the messages of all its lane_eps in the order of sending. progress()
 * delivers the messages that were queued before the call. A message is never delivered within the
 * send call, because the caller's state may not be ready for its own callback. A lane_ep is
 * connected to itself: it receives the messages that it sends.
 *
 * A message is one object of a pool with a limit; without a free object sends return -EAGAIN. A
 * receiver that keeps a buffer keeps the object. Once SELF_KEEP_MAX objects are kept, no buffer is
 * offered for keeping, so sends never block for good.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/container.h"
#include "lane_attr.h"
#include "self/self_lane.h"

#define SELF_MSG_MAX (16 * 1024)      /* bytes of header and payload */
#define SELF_MSGS 256                 /* most messages and flushes that are queued or kept */
#define SELF_KEEP_MAX (SELF_MSGS / 2) /* kept buffers, from which on callbacks must copy */
#define SELF_ADDR_LEN 8               /* the worker's id */

struct self_msg {
	STAILQ_ENTRY(self_msg) entry;
	struct self_lane_ep *lane_ep; /* NULL = the lane_ep was destroyed */
	struct weft_lane_comp *comp;  /* zcopy or flush; NULL = none */
	uint32_t length;
	uint8_t am_id;
	bool marker; /* a flush, without a message */
	_Alignas(64) uint8_t data[];
};

struct self_lane_ep {
	struct weft_lane_ep base; /* first */
	LIST_ENTRY(self_lane_ep) entry;
	TAILQ_ENTRY(self_lane_ep) fresh; /* until EV_UP is reported */
	uint32_t outstanding;            /* messages and markers in the queue */
	bool announced;                  /* EV_UP was reported */
	bool delivering;                 /* in a callback: deliver() frees a destroyed lane_ep */
	bool dead;
};

struct self_iface {
	struct weft_lane_iface base; /* first */
	uint64_t worker_id;
	weft_lane_recv_cb recv;
	weft_lane_event_cb event;
	void *arg;
	STAILQ_HEAD(, self_msg) queue;
	LIST_HEAD(, self_lane_ep) lane_eps;
	uint32_t num_queued, num_kept;
	TAILQ_HEAD(, self_lane_ep) fresh; /* lane_eps whose EV_UP is due */
	struct weft_mpool pool;
	uint64_t tx, rx, no_room;
};

static inline struct self_iface *to_iface(struct weft_lane_iface *iface)
{
	return (struct self_iface *)iface;
}

static inline struct self_lane_ep *to_lane_ep(struct weft_lane_ep *lane_ep)
{
	return (struct self_lane_ep *)lane_ep;
}

/* ------------------------------------------------------------------ send */

/* An object for a message of @p lane_ep, or NULL: the limit is reached. */
static struct self_msg *msg_get(struct self_lane_ep *lane_ep)
{
	struct self_iface *s = to_iface(lane_ep->base.iface);
	struct self_msg *m;

	m = weft_mpool_get(&s->pool);
	if (!m)
		s->no_room++;
	return m;
}

static void msg_queue(struct self_lane_ep *lane_ep, struct self_msg *m, uint8_t am_id,
		      size_t length, struct weft_lane_comp *comp)
{
	struct self_iface *s = to_iface(lane_ep->base.iface);

	m->lane_ep = lane_ep;
	m->comp = comp;
	m->length = (uint32_t)length;
	m->am_id = am_id;
	m->marker = false;
	STAILQ_INSERT_TAIL(&s->queue, m, entry);
	s->num_queued++;
	s->base.quiet = false;
	lane_ep->outstanding++;
	lane_ep->base.queued += m->length;
}

static void msg_send(struct self_lane_ep *lane_ep, struct self_msg *m, uint8_t am_id, size_t length,
		     struct weft_lane_comp *comp)
{
	to_iface(lane_ep->base.iface)->tx++;
	msg_queue(lane_ep, m, am_id, length, comp);
}

static int self_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
			 const void *payload, size_t length)
{
	struct self_lane_ep *lane_ep = to_lane_ep(base);
	struct self_msg *m;

	if (hdr_len > SELF_MSG_MAX || length > SELF_MSG_MAX - hdr_len)
		return -EMSGSIZE;
	m = msg_get(lane_ep);
	if (!m)
		return -EAGAIN;
	memcpy(m->data, hdr, hdr_len);
	if (length > 0)
		memcpy(m->data + hdr_len, payload, length);
	msg_send(lane_ep, m, am_id, hdr_len + length, NULL);
	return 0;
}

static ssize_t self_am_bcopy(struct weft_lane_ep *base, uint8_t am_id, weft_lane_pack_cb pack,
			     void *arg)
{
	struct self_lane_ep *lane_ep = to_lane_ep(base);
	struct self_msg *m;
	ssize_t n;

	m = msg_get(lane_ep);
	if (!m)
		return -EAGAIN;
	n = pack(m->data, SELF_MSG_MAX, arg);
	if (n <= 0) {
		weft_mpool_put(&to_iface(base->iface)->pool, m);
		return n < 0 ? n : -EINVAL;
	}
	msg_send(lane_ep, m, am_id, (size_t)n, NULL);
	return n;
}

/*
 * In memory a copy is the fastest method. In spite of that, @p comp is called only when the message
 * was delivered or canceled.
 */
static int self_am_zcopy(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
			 const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
			 struct weft_lane_comp *comp)
{
	struct self_lane_ep *lane_ep = to_lane_ep(base);
	struct self_msg *m;
	size_t n = hdr_len;
	unsigned int i;

	(void)mem;
	for (i = 0; i < iovcnt && n <= SELF_MSG_MAX; i++)
		n = iov[i].iov_len > SELF_MSG_MAX ? SIZE_MAX : n + iov[i].iov_len;
	if (n > SELF_MSG_MAX)
		return -EMSGSIZE;
	m = msg_get(lane_ep);
	if (!m)
		return -EAGAIN;
	memcpy(m->data, hdr, hdr_len);
	for (i = 0, n = hdr_len; i < iovcnt; n += iov[i++].iov_len)
		if (iov[i].iov_len > 0)
			memcpy(m->data + n, iov[i].iov_base, iov[i].iov_len);
	msg_send(lane_ep, m, am_id, n, comp);
	return 0;
}

/* ------------------------------------------------------------------ receive */

/*
 * Lane endpoints are up from the start, but events come from progress() only. The callback may
 * destroy lane_eps and connect new ones.
 */
static unsigned int report_up(struct self_iface *s)
{
	struct self_lane_ep *lane_ep;
	unsigned int events = 0;

	while ((lane_ep = TAILQ_FIRST(&s->fresh))) {
		TAILQ_REMOVE(&s->fresh, lane_ep, fresh);
		lane_ep->announced = true;
		s->event(s->arg, &lane_ep->base, WEFT_LANE_EV_UP, 0, "loopback");
		events++;
	}
	return events;
}

static void deliver(struct self_iface *s, struct self_msg *m)
{
	struct self_lane_ep *lane_ep = m->lane_ep;
	struct weft_lane_comp *comp = m->comp;
	bool keep = false;

	lane_ep->delivering = true;
	if (!m->marker) {
		s->rx++;
		keep = s->recv(s->arg, &lane_ep->base, m->am_id, m->data, m->length,
			       s->num_kept < SELF_KEEP_MAX ? m : NULL) == WEFT_LANE_KEEP;
	}
	lane_ep->outstanding--;
	lane_ep->base.queued -= m->length;
	if (keep)
		s->num_kept++;
	else
		weft_mpool_put(&s->pool, m);
	/* A delivered message is acknowledged, even if a callback destroys the lane_ep. */
	if (comp)
		comp->done(comp, 0);
	lane_ep->delivering = false;
	if (lane_ep->dead)
		free(lane_ep);
}

static unsigned int self_progress(struct weft_lane_iface *base, uint64_t now_ns)
{
	struct self_iface *s = to_iface(base);
	uint32_t n = s->num_queued; /* messages from callbacks are for the next call */
	unsigned int events;
	struct self_msg *m;

	(void)now_ns; /* no timers */
	events = report_up(s);
	for (; n > 0 && (m = STAILQ_FIRST(&s->queue)) != NULL; n--) {
		STAILQ_REMOVE_HEAD(&s->queue, entry);
		s->num_queued--;
		if (!m->lane_ep) {
			weft_mpool_put(&s->pool, m);
			continue;
		}
		deliver(s, m);
		events++;
	}
	s->base.quiet = s->num_queued == 0 && TAILQ_EMPTY(&s->fresh);
	return events;
}

static void self_release(struct weft_lane_iface *base, void *desc)
{
	struct self_iface *s = to_iface(base);

	s->num_kept--;
	weft_mpool_put(&s->pool, desc);
}

/* ------------------------------------------------------------------ connection */

static int self_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
			   struct weft_lane_ep **out)
{
	struct self_iface *s = to_iface(base);
	struct self_lane_ep *lane_ep;

	if (len != SELF_ADDR_LEN || memcmp(addr, &s->worker_id, SELF_ADDR_LEN) != 0)
		return -EHOSTUNREACH;
	lane_ep = calloc(1, sizeof(*lane_ep));
	if (!lane_ep)
		return -ENOMEM;
	lane_ep->base = (struct weft_lane_ep){
		.iface = base,
		.ops = base->ops,
		.user = user,
		.up = true,
		.tx_room = true,
		.max_msg = SELF_MSG_MAX,
	};
	LIST_INSERT_HEAD(&s->lane_eps, lane_ep, entry);
	TAILQ_INSERT_TAIL(&s->fresh, lane_ep, fresh);
	base->quiet = false;
	*out = &lane_ep->base;
	return 0;
}

static void self_ep_destroy(struct weft_lane_ep *base)
{
	struct self_iface *s = to_iface(base->iface);
	struct self_lane_ep *lane_ep = to_lane_ep(base);
	struct self_msg *m;

	if (!lane_ep->announced)
		TAILQ_REMOVE(&s->fresh, lane_ep, fresh);
	LIST_REMOVE(lane_ep, entry);
	lane_ep->dead = true;
	lane_ep->base.up = false;
	/*
	 * Messages of the lane_ep stay in the queue, and progress() frees them. Completions
	 * run now. The queue has at most SELF_MSGS messages of all lane_eps.
	 */
	STAILQ_FOREACH(m, &s->queue, entry) {
		struct weft_lane_comp *comp = m->comp;

		if (m->lane_ep != lane_ep)
			continue;
		m->lane_ep = NULL;
		m->comp = NULL;
		if (comp)
			comp->done(comp, -ECANCELED);
	}
	if (!lane_ep->delivering)
		free(lane_ep);
}

static int self_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
{
	struct self_lane_ep *lane_ep = to_lane_ep(base);
	struct self_msg *m;

	if (lane_ep->outstanding == 0)
		return WEFT_LANE_IDLE;
	m = msg_get(lane_ep);
	if (!m)
		return -EAGAIN;
	msg_queue(lane_ep, m, 0, 0, comp);
	m->marker = true;
	return 0;
}

/* ------------------------------------------------------------------ cold */

static void self_get_address(struct weft_lane_iface *base, void *buf)
{
	memcpy(buf, &to_iface(base)->worker_id, SELF_ADDR_LEN);
}

static int self_is_reachable(struct weft_lane_iface *base, const void *addr, size_t len, char *why,
			     size_t why_len)
{
	if (len == SELF_ADDR_LEN && memcmp(addr, &to_iface(base)->worker_id, SELF_ADDR_LEN) == 0)
		return 0;
	snprintf(why, why_len, "reaches its own worker only");
	return -EHOSTUNREACH;
}

static void self_print_address(const void *addr, size_t len, char *buf, size_t size)
{
	(void)addr;
	(void)len;
	snprintf(buf, size, "own worker");
}

static bool self_link_up(struct weft_lane_iface *base)
{
	(void)base;
	return true;
}

static void self_ep_print(struct weft_lane_ep *base, char *buf, size_t size)
{
	snprintf(buf, size, "loopback, %u messages and flushes queued",
		 to_lane_ep(base)->outstanding);
}

#define COUNTERS(X)                                   \
	X(s->tx, "tx.messages", "Messages sent.")     \
	X(s->rx, "rx.messages", "Messages received.") \
	X(s->no_room, "tx.no_room", "Sends that found the queue full.")
#define LEVELS(X) X(s->num_kept, "rx.kept", "Messages now that the program has not released.")

/* clang-format off */
static const struct weft_lane_counter counter_help[] = {
	COUNTERS(WEFT_COUNTER_HELP)
	LEVELS(WEFT_LEVEL_HELP)
	WEFT_COUNTER_HELP_END
};
/* clang-format on */

static void self_counters(struct weft_lane_iface *base, weft_lane_counter_cb cb, void *arg)
{
	struct self_iface *s = to_iface(base);

#define REPORT(value, name, help) cb(name, value, arg);
	COUNTERS(REPORT)
	LEVELS(REPORT)
#undef REPORT
}

static void self_close(struct weft_lane_iface *base)
{
	struct self_iface *s = to_iface(base);

	while (!LIST_EMPTY(&s->lane_eps))
		self_ep_destroy(&LIST_FIRST(&s->lane_eps)->base);
	weft_mpool_fini(&s->pool);
	free(s);
}

static const struct weft_lane_ops self_ops = {
	.am_short = self_am_short,
	.am_bcopy = self_am_bcopy,
	.am_zcopy = self_am_zcopy,
	.progress = self_progress,
	.release = self_release,
	.ep_connect = self_ep_connect,
	.ep_destroy = self_ep_destroy,
	.ep_flush = self_ep_flush,
	.get_address = self_get_address,
	.is_reachable = self_is_reachable,
	.print_address = self_print_address,
	.link_up = self_link_up,
	.ep_print = self_ep_print,
	.counters = self_counters,
	.close = self_close,
};

/* ------------------------------------------------------------------ driver */

static int self_query(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	(void)conf;
	return add(arg, &(struct weft_lane_resource){.name = "self"});
}

static int self_open(const struct weft_lane_open *params, struct weft_lane_iface **iface, char *why,
		     size_t why_len)
{
	struct self_iface *s = calloc(1, sizeof(*s));

	if (!s) {
		snprintf(why, why_len, "out of memory");
		return -ENOMEM;
	}
	s->base.ops = &self_ops;
	s->base.driver = &weft_self_driver;
	s->base.name = "self";
	/* Figures of a copy within a core's cache; they only have to be better than any network. */
	s->base.attr = (struct weft_lane_attr){
		.features = WEFT_LANE_F_SHORT | WEFT_LANE_F_BCOPY | WEFT_LANE_F_ZCOPY |
			    WEFT_LANE_F_TO_IFACE | WEFT_LANE_F_LOOPBACK,
		.bandwidth = 10e9,
		.latency = 50e-9,
		.send_overhead = 20e-9,
		.recv_overhead = 20e-9,
		.max_short = SELF_MSG_MAX,
		.max_bcopy = SELF_MSG_MAX,
		.max_zcopy = SELF_MSG_MAX,
		.max_zcopy_hdr = SELF_MSG_MAX,
		.max_iov = 16,
		.opt_align = 1,
		.frame_size = SELF_MSG_MAX,
		.dev_addr_len = SELF_ADDR_LEN,
		.device = "self",
		.domain = "self",
	};
	s->worker_id = params->worker_id;
	s->recv = params->recv;
	s->event = params->event;
	s->arg = params->arg;
	STAILQ_INIT(&s->queue);
	LIST_INIT(&s->lane_eps);
	TAILQ_INIT(&s->fresh);
	weft_mpool_init(&s->pool, sizeof(struct self_msg) + SELF_MSG_MAX, 8, SELF_MSGS);
	*iface = &s->base;
	return 0;
}

const struct weft_lane_driver weft_self_driver = {
	.name = "self",
	.counters = counter_help,
	.abi = WEFT_LANE_ABI,
	.query = self_query,
	.open = self_open,
	.options = "",
};
